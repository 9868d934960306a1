//! Counts of an event, between bounds, and of the separate clusters that it came in.
//!
//! For who counts (a run's tails, a histogram's buckets) and for who judges. Plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Bucket;

/// The count of one event, at least and at most, with its trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventCount {
    /// Cycles, or intervals, or releases: the number of trials.
    pub n: u64,
    /// The event happened at least this often.
    pub least: u64,
    /// And at most this often; the same where it was counted exactly.
    pub most: u64,
    /// Extremal index to use, in (0, 1]; 1: independent.
    pub theta: f64,
    /// The separate clusters that they came in.
    pub separate: Separate,
    /// True where the order of cycles was known, so that bursts would have shown.
    pub ordered: bool,
}

impl EventCount {
    /// From buckets: one that contains the threshold counts as 0 at least and as all of it at most.
    /// `beyond` more values lie above all buckets. Buckets do not show dependence, so θ is 1 and
    /// `ordered` is false.
    pub fn of_buckets(
        above_ns: i64,
        buckets: impl IntoIterator<Item = Bucket>,
        beyond: u64,
    ) -> Self {
        let (n, least, most) = (beyond, beyond, beyond);
        let separate = Separate::Unknown;
        let mut counted = Self { n, least, most, theta: 1.0, separate, ordered: false };
        for Bucket { lowest_ns, highest_ns, count } in buckets {
            counted.n += count;
            counted.least += if lowest_ns > above_ns { count } else { 0 };
            counted.most += if highest_ns > above_ns { count } else { 0 };
        }
        counted
    }

    /// This count with `unseen` more trials that were not recorded: each may be the event.
    #[must_use]
    pub fn with_unseen(self, unseen: u64) -> Self {
        let n = self.n.saturating_add(unseen);
        Self { n, most: self.most.saturating_add(unseen), ..self }
    }

    /// The number of separate clusters that they came in; `None` where their order is unknown.
    pub(super) fn clusters(&self) -> Option<f64> {
        match self.separate {
            Separate::Evenly(count) | Separate::Unevenly(count) if self.ordered => Some(count),
            _ => None,
        }
    }

    /// The extremal index with which the upper bound holds however late cycles come together, as
    /// far as the run shows it; `None` where too few separate clusters show it, or they came more
    /// often in one part of the run.
    pub fn theta_shown(&self) -> Option<f64> {
        let Separate::Evenly(clusters) = self.separate else { return None };
        (clusters >= CLUSTERS_MIN && self.ordered)
            .then(|| self.theta.min(theta_of(clusters, self.most)))
    }

    /// The extremal index of the lower bound: that of the separate clusters, and of one where they
    /// came more often in one part of the run or their order is unknown. Fewer than one they cannot
    /// be, whatever estimates say of many late cycles in a row; the bound from one is that of
    /// Markov's inequality, which holds however they come.
    pub(crate) fn theta_refuting(&self) -> f64 {
        let one = theta_of(1.0, self.least);
        let theta = match self.separate {
            Separate::Evenly(clusters) if self.ordered => {
                self.theta.min(theta_of(clusters, self.least))
            }
            Separate::Unknown if self.ordered => self.theta,
            _ => one,
        };
        theta.max(one)
    }
}

/// The extremal index with which so many of `events` count as independent, in (0, 1].
fn theta_of(independent: f64, events: u64) -> f64 {
    let share = (independent / events.max(1) as f64).min(1.0);
    2.0 * share / (1.0 + share)
}

/// Separate clusters that show how late cycles come together: with as many, by simulation
/// (`examples/claims_simulated.rs`), at most one answer in twenty is a wrong yes.
pub const CLUSTERS_MIN: f64 = 25.0;

/// Cycles later than a threshold that was watched, and how they come together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedThreshold {
    /// The threshold, ns.
    pub above_ns: i64,
    /// At least so many cycles were later, missed ones included.
    pub least: u64,
    /// And at most so many; the same where it was counted exactly.
    pub most: u64,
    /// Extremal index to use, in (0, 1]; 1: independent.
    pub theta: f64,
    /// Whether too few separate clusters show how they come, or more of them came in one part of
    /// the run.
    pub alone: bool,
}

impl WatchedThreshold {
    /// The cycles of `n` later than `above_ns`, where `watched`, as a run has it, counts them
    /// exactly: one that all exceed stands for all below it, and one that none does for all above.
    pub fn exactly_later(watched: &[Self], above_ns: i64, n: u64) -> Option<u64> {
        let decides = |kept: &&Self| {
            kept.above_ns == above_ns
                || (kept.above_ns > above_ns && kept.least >= n)
                || (kept.above_ns < above_ns && kept.most == 0)
        };
        let kept = watched.iter().find(decides)?;
        (kept.least == kept.most).then_some(kept.most)
    }
}

/// The number of separate clusters of exceedances in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Separate {
    /// So many, and they came evenly.
    Evenly(f64),
    /// So many; more of them came in one part of the run.
    Unevenly(f64),
    /// Where they were is unknown.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_none_exceeds_and_the_last_that_all_do_stand_for_what_is_beyond_them() {
        let kept = |above_ns, least, most| WatchedThreshold {
            above_ns,
            least,
            most,
            theta: 1.0,
            alone: false,
        };
        let watched = [kept(10, 90, 90), kept(20, 7, 7), kept(30, 1, 3), kept(40, 0, 0)];
        let later = |ns| WatchedThreshold::exactly_later(&watched, ns, 90);
        assert_eq!([5, 10, 20, 40, 99].map(later), [Some(90), Some(90), Some(7), Some(0), Some(0)]);
        assert_eq!([15, 25, 30].map(later), [None; 3], "between bounds");
        assert_eq!(WatchedThreshold::exactly_later(&watched[1..], 5, 90), None);
    }
}
