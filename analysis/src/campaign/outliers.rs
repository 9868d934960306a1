//! The latest releases of a campaign, each with the time of day at which it happened.
//!
//! Keeps [`OUTLIERS_MAX`]; of equals the earlier.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::recording::ReleaseKind;

/// How many are kept of each run.
pub const OUTLIERS_MAX: usize = 64;

/// One late release of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outlier {
    /// Its lateness.
    pub lateness_ns: i64,
    /// When, in ns since 1970 by the time of day as it was set then.
    pub at_unix_ns: i64,
    /// The instant of the wake on CLOCK_MONOTONIC of that boot; for a missed release the first wake
    /// after it.
    pub at_ns: u64,
    /// Its cycle, counted from the start of its batch.
    pub cycle: u64,
    /// Whether it ran.
    #[serde(default)]
    pub kind: ReleaseKind,
    /// The number of the boot.
    pub boot: u32,
}

/// The latest releases so far, latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outliers {
    kept: Vec<Outlier>,
}

impl Outliers {
    /// Whether a wake of this lateness would be kept.
    #[inline]
    pub fn wants(&self, lateness_ns: i64) -> bool {
        match self.kept.last() {
            Some(last) if self.kept.len() == OUTLIERS_MAX => lateness_ns > last.lateness_ns,
            _ => true,
        }
    }

    /// Adds a wake if it is late enough.
    #[cold]
    pub fn insert(&mut self, late: Outlier) {
        let at = self.kept.partition_point(|kept| kept.lateness_ns >= late.lateness_ns);
        self.kept.insert(at, late);
        self.kept.truncate(OUTLIERS_MAX);
    }

    /// Adds the entries of another list.
    pub fn merge(&mut self, other: &Self) {
        for late in &other.kept {
            if self.wants(late.lateness_ns) {
                self.insert(late.clone());
            }
        }
    }

    /// All entries, latest first.
    pub fn kept(&self) -> &[Outlier] {
        &self.kept
    }

    pub(super) fn is_sound(&self) -> bool {
        self.kept.len() <= OUTLIERS_MAX
            && self.kept.is_sorted_by(|a, b| a.lateness_ns >= b.lateness_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_stay_and_merging_is_collecting_together() {
        let late = |n: i64| Outlier {
            lateness_ns: (n * 7_919) % 1_000,
            at_unix_ns: n,
            at_ns: 0,
            cycle: 0,
            kind: ReleaseKind::Ran,
            boot: 0,
        };
        let collect = |numbers: std::ops::Range<i64>| {
            let mut outliers = Outliers::default();
            for late in numbers.map(late).filter(|late| late.lateness_ns >= 0) {
                if outliers.wants(late.lateness_ns) {
                    outliers.insert(late);
                }
            }
            outliers
        };
        let mut merged = collect(0..500);
        merged.merge(&collect(500..1_000));
        assert_eq!(merged, collect(0..1_000));
        assert!(merged.is_sound() && merged.kept().len() == OUTLIERS_MAX);
        assert_eq!(merged.kept()[0].lateness_ns, 999);
    }
}
