//! What the accuracy experiment gives: plain data, as results hold it.
//!
//! The doc comments are the descriptions in the schema of results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How exactly waits end at an instant of the counter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccuracyOutcome {
    /// One tick of the counter, in ns. All errors here are in ticks; with CLOCK_MONOTONIC as the
    /// clock a tick is 1 ns.
    pub tick_ns: f64,
    /// An exit that is later than this is one that something interrupted: it is counted apart.
    pub interrupted_from_ns: u64,
    /// One for each way to wait.
    pub rows: Vec<AccuracyRow>,
}

/// One way to wait for a target, with targets that sweep all offsets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccuracyRow {
    /// "rdtsc", "lfence+rdtsc", "rdtscp"; "cntvct", "isb+cntvct"; "vdso": clock_gettime; "plain":
    /// the polling loop of the library's clock; "corrected": left a little early, and the rest by a
    /// computed delay.
    pub exit: String,
    /// "aligned": the loop begins a cache line; "split": it lies in two; null where the compiler
    /// places it.
    pub code: Option<String>,
    /// "warm"; "cold data": the line that holds the target was flushed before; "cold code": the
    /// loop's own lines were flushed before.
    pub cache: String,
    /// The first offset from the entry to the target, in ticks.
    pub lead_ticks: f64,
    /// Offsets that were swept, a tick apart.
    pub offsets: u64,
    /// Sweeps over all of them; 0 in results of before, which do not tell. Quantiles, curve and
    /// period are of all sweeps, or of 400 that were drawn from them, each as likely as any other.
    #[serde(default)]
    pub sweeps: u64,
    /// Exits measured, interrupted ones not included.
    pub n: u64,
    /// Exits that something interrupted.
    pub interrupted: u64,
    /// The latest of these, in ns; null if there was none.
    pub interrupted_worst_ns: Option<f64>,
    /// The smallest error: the stamp right after the exit minus the target, in ticks.
    pub min_ticks: f64,
    /// Its quantile 0.05.
    pub p5_ticks: f64,
    /// Its median.
    pub p50_ticks: f64,
    /// Its quantile 0.95.
    pub p95_ticks: f64,
    /// The largest of the n.
    pub max_ticks: f64,
    /// From one poll to the next, in ticks: the mean of the wait where that is smallest, which no
    /// interrupt made longer; null where polls are not counted.
    pub poll_ticks: Option<f64>,
    /// The period of the errors over the offset; null where none stands out.
    pub period: Option<LoopPeriod>,
    /// The median error at each offset, in ticks; null where there is none.
    pub curve: Vec<Option<f64>>,
}

/// The period with which errors repeat over the offset.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopPeriod {
    /// In ticks.
    pub ticks: f64,
    /// The share of the variance over the offset that a sine of this period explains, in [0, 1]; a
    /// perfect sawtooth reaches 0.61.
    pub share: f64,
}
