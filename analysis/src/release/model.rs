//! The definition, slowly: every wake and every release by itself, no gap and no sum.
//!
//! For tests, which hold all that is quick here against it.

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
        let due = |k: u64| i128::from(k) * i128::from(self.period_ns);
        let wake = |&(k, lateness): &(u64, i64)| due(k) + i128::from(lateness);
        let release = |k: u64| {
            if let Some(ran) = self.cycles.iter().find(|cycle| cycle.0 == k) {
                return Release::Ran(ran.1);
            }
            match self.cycles.iter().map(wake).find(|&wake| wake >= due(k)) {
                Some(wake) => {
                    let late = i64::try_from(wake - due(k)).expect("a short run");
                    Release::Missed(late.max(self.period_ns))
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
        let mut all: Vec<i64> = releases.iter().filter_map(known).collect();
        all.sort_unstable();
        let censored = (releases.len() - all.len()) as u64;
        (all, censored)
    }
}
