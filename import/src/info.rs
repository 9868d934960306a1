//! The JSON text at the head of a sample file: what was run, where.
//!
//! Written by the recorder's drain, read by the importer. Fields of later versions are ignored,
//! missing optional ones get their defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What stands at the head of a sample file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileInfo {
    /// Name of the program that wrote it.
    #[serde(default)]
    pub tool: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// When the recording began: RFC 3339, UTC.
    #[serde(default)]
    pub started_at: String,
    /// Facts of the machine, as in the result's `machine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<serde_json::Value>,
    /// The runs that the blocks refer to by index.
    pub runs: Vec<RunInfo>,
}

/// One run of a sample file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// What it was: `idle`, `cpu`, …
    #[serde(default)]
    pub name: String,
    /// The name of the run in whose figures it counts, together with others; none: it stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// CPU it ran on.
    #[serde(default)]
    pub cpu: u32,
    /// Period, ns, at least 1.
    pub period_ns: u64,
    /// Instant of release 0, ns: on CLOCK_MONOTONIC, or on the time of the clock that is followed.
    #[serde(default)]
    pub epoch_ns: u64,
    /// Offset of the grid from multiples of the period, ns.
    #[serde(default)]
    pub phase_ns: u64,
    /// The clock that the grid follows, as it was requested; none: the grid is on CLOCK_MONOTONIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// Scheduling policy, as the kernel names it.
    #[serde(default)]
    pub policy: String,
    /// Priority within the policy, as the kernel counts; none for SCHED_OTHER.
    #[serde(default)]
    pub priority: Option<u8>,
    /// How it waited.
    #[serde(default)]
    pub wait: String,
    /// The loads that ran at the same time.
    #[serde(default)]
    pub load: Vec<String>,
    /// How long it was to run, ns.
    #[serde(default)]
    pub duration_ns: u64,
    /// Cost of a time stamp, ns: smaller differences cannot be measured.
    #[serde(default)]
    pub floor_ns: Option<f64>,
    /// Which clock stamped.
    #[serde(default)]
    pub clock: String,
}
