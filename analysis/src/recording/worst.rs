//! The latest releases of a run, by name.
//!
//! For the report, and for what later looks for their causes. Keeps ten; of equals the earlier.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RecordingConfig;

/// How many are kept.
pub const WORST_MAX: usize = 10;

/// Whether a release ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReleaseKind {
    /// It ran.
    #[default]
    Ran,
    /// It was missed.
    Missed,
}

/// One late release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstRelease {
    /// Its cycle.
    pub cycle: u64,
    /// Instant of its wake, ns: on CLOCK_MONOTONIC, or on the clock that the run follows. For a
    /// missed release the first wake after it.
    pub at_ns: u64,
    /// "ran", or "missed": then the first of those that waited for the same wake.
    #[serde(default)]
    pub kind: ReleaseKind,
    /// Its lateness, ns.
    pub lateness_ns: f64,
    /// What made it late, where that is known.
    pub cause: Option<String>,
}

/// A late release as it is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) lateness_ns: i64,
    pub(super) cycle: u64,
    /// wake − (epoch + cycle·period), which is not the lateness where that is about a fitted line.
    pub(super) deviation_ns: i64,
    pub(super) kind: ReleaseKind,
}

/// The latest releases so far, latest first.
#[derive(Clone, Debug)]
pub(super) struct WorstList {
    kept: Vec<Kept>,
    /// A lateness must exceed this to be kept.
    bar_ns: Option<i64>,
}

impl Default for WorstList {
    fn default() -> Self {
        Self { kept: Vec::with_capacity(WORST_MAX + 1), bar_ns: None }
    }
}

impl WorstList {
    /// Whether a lateness would be kept.
    #[inline]
    pub(super) fn takes(&self, lateness_ns: i64) -> bool {
        self.bar_ns.is_none_or(|bar| lateness_ns > bar)
    }

    /// Takes one in that is late enough.
    #[cold]
    pub(super) fn push(&mut self, late: Kept) {
        if !self.takes(late.lateness_ns) {
            return;
        }
        let at = self.kept.partition_point(|kept| kept.lateness_ns >= late.lateness_ns);
        self.kept.insert(at, late);
        self.kept.truncate(WORST_MAX);
        if self.kept.len() == WORST_MAX {
            self.bar_ns = self.kept.last().map(|kept| kept.lateness_ns);
        }
    }

    pub(super) fn finish(&self, setup: &RecordingConfig) -> Vec<WorstRelease> {
        let period_ns = setup.period.map_or(0, |period| u128::from(period.as_ns()));
        let worst = |kept: &Kept| {
            let release = u128::from(setup.epoch.as_ns()) + u128::from(kept.cycle) * period_ns;
            let release = u64::try_from(release).unwrap_or(u64::MAX);
            WorstRelease {
                cycle: kept.cycle,
                at_ns: release.saturating_add_signed(kept.deviation_ns),
                kind: kept.kind,
                lateness_ns: kept.lateness_ns as f64,
                cause: None,
            }
        };
        self.kept.iter().map(worst).collect()
    }
}
