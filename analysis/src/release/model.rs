//! The definition, slowly: every wake and every release by itself, no gap and no sum.
//!
//! For tests, which hold all that is quick here against it.

use punctual_core::cycle::Missed;
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};

/// A run as its wakes, each with its cycle and lateness. Release k is due at k·T.
pub(crate) struct Series {
    period_ns: i64,
    cycles: Vec<(u64, i64)>,
    /// Releases that were missed after the last cycle.
    trailing: u64,
}

/// A release: its lateness, and whether it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    Ran(i64),
    Missed(i64),
    /// No wake came after it.
    Censored,
}

impl Series {
    pub(crate) fn of(period_ns: i64, cycles: &[(u64, i64)]) -> Self {
        Self { period_ns, cycles: cycles.to_vec(), trailing: 0 }
    }

    pub(super) fn with_trailing(self, trailing: u64) -> Self {
        Self { trailing, ..self }
    }

    /// Every release from the first cycle on, in order.
    pub(super) fn releases(&self) -> Vec<Release> {
        let (first, last) = match (self.cycles.first(), self.cycles.last()) {
            (Some(first), Some(last)) => (first.0, last.0),
            _ => return Vec::new(),
        };
        let period = Period::from_ns(self.period_ns.unsigned_abs()).expect("a period");
        // Far from both ends of the clock, so that a wake may lie before release 0.
        let releases = Releases::new(Instant::from_ns(1 << 62), period);
        let wake =
            |&(k, lateness_ns): &(u64, i64)| releases.release(k) + Span::from_ns(lateness_ns);
        let release = |k: u64| {
            if let Some(ran) = self.cycles.iter().find(|cycle| cycle.0 == k) {
                return Release::Ran(ran.1);
            }
            match self.cycles.iter().map(wake).find(|&wake| wake >= releases.release(k)) {
                Some(wake) => {
                    let missed = Missed { releases, first: k, count: 1 };
                    Release::Missed(missed.lateness(k, wake).as_ns())
                }
                None => Release::Censored,
            }
        };
        (first..=last + self.trailing).map(release).collect()
    }

    /// The latenesses of those that were missed, in order.
    pub(crate) fn missed(&self) -> Vec<i64> {
        let missed = |release| match release {
            Release::Missed(ns) => Some(ns),
            Release::Ran(_) | Release::Censored => None,
        };
        self.releases().into_iter().filter_map(missed).collect()
    }

    /// The latenesses that are known, in rising order; and how many are not.
    pub(crate) fn known(&self) -> (Vec<i64>, u64) {
        let known = |release: &Release| match *release {
            Release::Ran(ns) | Release::Missed(ns) => Some(ns),
            Release::Censored => None,
        };
        let releases = self.releases();
        let mut known: Vec<i64> = releases.iter().filter_map(known).collect();
        known.sort_unstable();
        let censored = (releases.len() - known.len()) as u64;
        (known, censored)
    }
}
