//! A campaign in a report: its boots, setups, batches, block maxima and outliers.
//!
//! Plain data; the figures of all batches together stand in `runs`.

use punctual_analysis::campaign::{BatchRow, Boot, CampaignEvent, Outlier, Setup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A campaign of `soak`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Campaign {
    /// Its name.
    pub(crate) name: String,
    /// When it began, in seconds since 1970.
    pub(crate) began_unix_s: i64,
    /// How long it was measured in all.
    pub(crate) measured_ns: u64,
    /// How long it is to be measured; null: no end.
    pub(crate) duration_ns: Option<u64>,
    /// The boots, oldest first.
    pub(crate) boots: Vec<Boot>,
    /// How many more there were between those listed.
    pub(crate) boots_unlisted: u64,
    /// The setups, each kept apart from the others.
    pub(crate) setups: Vec<Kept>,
    /// The batches, oldest first; if there were too many, neighbours are merged.
    pub(crate) stretches: Vec<BatchRow>,
    /// The largest lateness of each of many blocks of equal length.
    pub(crate) maxima: Vec<Maxima>,
    /// The latest wakes.
    pub(crate) outliers: Vec<Late>,
    /// What happened, oldest first.
    pub(crate) events: Vec<CampaignEvent>,
    /// How many more there were between those listed.
    pub(crate) events_unlisted: u64,
    /// Limits and claims that were broken for good, in words.
    pub(crate) broken: Vec<String>,
}

/// Batches with one setup.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Kept {
    /// Its digest, as boots name it.
    pub(crate) digest: String,
    /// How long it was measured.
    pub(crate) measured_ns: u64,
    /// What it is.
    #[serde(flatten)]
    pub(crate) setup: Setup,
}

/// Block maxima of one run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Maxima {
    /// The setup, counted from 0.
    pub(crate) setup: usize,
    /// The run of that setup, counted from 0.
    pub(crate) run: usize,
    /// Cycles of each block.
    pub(crate) block_cycles: u64,
    /// Of whole blocks, oldest first.
    pub(crate) largest_ns: Vec<i64>,
}

/// One of the latest wakes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Late {
    /// The setup, counted from 0.
    pub(crate) setup: usize,
    /// The run of that setup, counted from 0.
    pub(crate) run: usize,
    /// The wake.
    #[serde(flatten)]
    pub(crate) outlier: Outlier,
}
