//! What a campaign remembers beside its numbers: boots, and what happened.
//!
//! Plain data; decides nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One boot of the machine, or the part of it in which the campaign ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Boot {
    /// Counted from 1.
    pub number: u32,
    /// The kernel's identifier of the boot; empty where the kernel has none.
    pub id: String,
    /// When the campaign began in it, in seconds since 1970.
    pub from_unix_s: i64,
    /// When it was last seen running.
    pub to_unix_s: i64,
    /// The kernel's release.
    pub kernel: String,
    /// The digest of the setup.
    pub setup: String,
    /// How often the campaign was started in this boot.
    pub sessions: u32,
    /// Whether the last session ended normally, rather than was cut off.
    pub ended: bool,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignEvent {
    /// When, in seconds since 1970.
    pub at_unix_s: i64,
    /// The number of the boot.
    pub boot: u32,
    /// What, in words.
    pub what: String,
}
