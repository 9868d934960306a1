//! How a wait that spins came to its releases.
//!
//! For `report`. Plain data, made from what the experiment says.

use punctual_lab::periodic::RunOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a wait that spins approaches its releases.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Approach {
    /// The length of a short sleep; null for a single sleep of any length.
    pub(crate) hop_ns: Option<u64>,
    /// How many short sleeps end the wait, after a long one; null where all are short.
    #[serde(default)]
    pub(crate) hops: Option<u32>,
    /// How long before the release the last sleep ends.
    pub(crate) margin_ns: u64,
    /// Of an adaptive wait: the share of late wakes since its last calibration.
    pub(crate) late_share: Option<f64>,
    /// Of an adaptive wait: how many of those while it tried another approach than it follows.
    #[serde(default)]
    pub(crate) trials_late: Option<u64>,
    /// Of an adaptive wait: whether its target is within its budget on this machine.
    pub(crate) reachable: Option<bool>,
    /// Of an adaptive wait: whether too few sleeps were seen for the aim; the margin is then as
    /// wide as a fixed one, or as the budget pays.
    pub(crate) extrapolated: Option<bool>,
    /// Of an adaptive wait: whether it began with what an earlier run learned.
    #[serde(default)]
    pub(crate) resumed: Option<bool>,
    /// The share of its spins in which the processor paused by a timed pause, in [0, 1]; null where
    /// it used none.
    #[serde(default)]
    pub(crate) paused_share: Option<f64>,
}

impl Approach {
    pub(crate) fn of(run: &RunOutcome) -> Self {
        let learned = run.learned.as_ref();
        Self {
            hop_ns: Some(run.approach.hop_ns).filter(|&ns| ns > 0),
            hops: Some(run.approach.hops).filter(|&hops| hops > 0 && hops < u32::MAX),
            margin_ns: run.approach.margin_ns,
            late_share: learned.map(|learned| learned.late),
            trials_late: learned.map(|learned| learned.trials_late),
            reachable: learned.map(|learned| learned.reachable),
            extrapolated: learned.map(|learned| learned.extrapolated),
            resumed: learned.map(|_| run.resumed),
            paused_share: run.paused.share(),
        }
    }
}
