//! A part of a load: one process, or the reason why there is none.

use std::time::Duration;

use super::setup::Setup;

/// A load of ours has so long to end in order: it only says a last count.
pub(super) const GRACE: Duration = Duration::from_millis(1500);

/// One process of a load, or the reason why there is none.
pub(super) struct Part {
    /// As reports name it.
    pub(super) name: String,
    /// The process; none when something is not installed.
    pub(super) setup: Option<Setup>,
    /// What it counts, for a report of one that has not named it itself.
    pub(super) unit: &'static str,
    /// What is not installed.
    pub(super) note: Option<String>,
    /// How long it may take to end when that is requested.
    pub(super) grace: Duration,
}
