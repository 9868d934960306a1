//! The ways to wait side by side, as rows of a report.
//!
//! Plain data, picked from the runs; computes nothing.

use punctual_analysis::summary::SummaryStats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Run;

/// One way to wait, on one grid.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StrategyRow {
    /// "sleep", "fixed", "rearm", "adaptive".
    pub(crate) name: String,
    /// wake − release.
    pub(crate) lateness_ns: SummaryStats,
    /// CPU time of the loop's thread over wall time, in [0, 1].
    pub(crate) cpu_load: Option<f64>,
    /// Releases that never ran.
    pub(crate) missed: Option<u64>,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC.
    pub(crate) phase_ns: Option<u64>,
    /// The longest sleep; null for one sleep however long.
    pub(crate) hop_ns: Option<u64>,
    /// How long before the release the last sleep ends; null for a wait that does not spin.
    pub(crate) margin_ns: Option<u64>,
}

/// A row for each run.
pub(crate) fn of(runs: &[Run]) -> Vec<StrategyRow> {
    let row = |run: &Run| StrategyRow {
        name: run.setup.wait.clone().unwrap_or_default(),
        lateness_ns: run.outcome.lateness_ns.clone(),
        cpu_load: run.cpu_load,
        missed: run.outcome.missed,
        phase_ns: run.setup.phase_ns,
        hop_ns: run.approach.as_ref().and_then(|approach| approach.hop_ns),
        margin_ns: run.approach.as_ref().map(|approach| approach.margin_ns),
    };
    runs.iter().map(row).collect()
}
