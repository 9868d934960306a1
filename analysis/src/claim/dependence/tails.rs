//! The exceedances of one run, counted: what bounds and verdicts are made from.
//!
//! Plain data; collects nothing.

use super::places::Separate;
use crate::claim::bound::p_upper;
use crate::claim::judge::EventCount;

/// The exceedances of one threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdExceedances {
    /// The threshold, ns.
    pub threshold_ns: i64,
    /// Recorded cycles whose lateness was above it.
    pub exceedances: u64,
    /// How many of those may not have been: they are in a bucket that the threshold cuts. 0 where
    /// every cycle was recorded.
    pub unsure: u64,
    /// Missed releases that were above it, as far as their lateness is known.
    pub missed: u64,
    /// Extremal index with its uncertainty taken off, in (0, 1]; `None` when there are too few
    /// clusters for an estimate.
    pub(super) theta: Option<f64>,
    /// Clusters per exceedance when there are few clusters.
    pub(super) theta_few: Option<f64>,
    /// How many separate clusters the exceedances came in.
    pub(super) separate: Separate,
    /// Whether it belongs to the fixed ladder (1-2-5 steps, or requested).
    pub requested: bool,
}

/// How many values exceed a threshold, where they were counted in buckets that it may cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThresholdCount {
    /// The threshold, ns.
    pub threshold_ns: i64,
    /// The most values that may be above it.
    pub most: u64,
    /// How many of those may not be.
    pub unsure: u64,
}

/// The exceedances of every threshold of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tails {
    pub(super) tails: Vec<ThresholdExceedances>,
    /// Recorded cycles.
    pub(super) recorded: u64,
    /// Releases that never ran.
    pub(crate) missed: u64,
    /// Missed releases that were at least `unplaced_from_ns` late; each may exceed every threshold.
    pub(super) unplaced: u64,
    pub(super) unplaced_from_ns: i64,
    /// Cycles that ran and did not fit in the recorder. Any of them may have been late, so it is
    /// not known which gaps in k were missed releases.
    pub(crate) unrecorded: u64,
    /// The most releases without a sample that came together.
    pub(super) lost_together: u64,
    /// Whether the order of cycles, and so their dependence, is unknown.
    pub(super) unordered: bool,
}

impl Tails {
    /// Exceedances that were counted without their order, so that their dependence is unknown: of
    /// n recorded cycles, by rising threshold; `unrecorded` more ran, at one time.
    pub fn of_counts(n: u64, unrecorded: u64, counts: &[ThresholdCount]) -> Self {
        let tail = |count: &ThresholdCount| ThresholdExceedances {
            threshold_ns: count.threshold_ns,
            exceedances: count.most,
            unsure: count.unsure,
            missed: 0,
            theta: None,
            theta_few: None,
            separate: Separate::Unknown,
            requested: true,
        };
        Self {
            tails: counts.iter().map(tail).collect(),
            recorded: n,
            unrecorded,
            lost_together: unrecorded,
            unordered: true,
            ..Self::default()
        }
    }

    /// As they are, but of values that were rounded up before they were pushed: `counts`, by rising
    /// threshold, tell how many exceedances are unsure; without a count all of them are.
    pub fn with_unsure(mut self, counts: &[ThresholdCount]) -> Self {
        for tail in &mut self.tails {
            let known = counts.binary_search_by_key(&tail.threshold_ns, |count| count.threshold_ns);
            tail.unsure = known.map_or(tail.exceedances, |at| counts[at].unsure);
        }
        self
    }

    /// All thresholds in rising order.
    pub fn tails(&self) -> &[ThresholdExceedances] {
        &self.tails
    }

    /// Releases that count: recorded, missed and unrecorded.
    pub fn n(&self) -> u64 {
        self.recorded.saturating_add(self.missed).saturating_add(self.unrecorded)
    }

    /// The counts behind bounds of P(lateness > threshold): the least and the most exceedances
    /// possible, and the extremal index to use.
    pub fn counted(&self, above_ns: i64) -> EventCount {
        let (least, most) = self.exceedances_within(above_ns);
        let theta = self.theta_at(above_ns);
        let separate = self.separate_at(above_ns);
        EventCount { n: self.n(), least, most, theta, separate, ordered: !self.unordered }
    }

    /// How many separate clusters exceeded the watched threshold at or next below this one.
    fn separate_at(&self, above_ns: i64) -> Separate {
        let at = self.tails.partition_point(|tail| tail.threshold_ns <= above_ns);
        match at.checked_sub(1) {
            Some(at) if !self.unordered => self.tails[at].separate,
            _ => Separate::Unknown,
        }
    }

    /// Cycles that ran and did not fit in the recorder.
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// Exceedances of a threshold of the ladder at most, missed releases included, and each cycle
    /// that went unrecorded. `None` for a threshold that was not watched.
    pub fn exceedances(&self, threshold_ns: i64) -> Option<u64> {
        let at = self.tails.binary_search_by_key(&threshold_ns, |tail| tail.threshold_ns).ok()?;
        Some(self.exceeding(&self.tails[at]))
    }

    /// How many exceed a threshold at least and at most: the same number for one that was watched,
    /// else those of the nearest watched ones above and below it.
    pub fn exceedances_within(&self, threshold_ns: i64) -> (u64, u64) {
        let count = |tail: Option<&ThresholdExceedances>| tail.map(|tail| self.exceeding(tail));
        let (below, above) =
            self.tails.split_at(self.tails.partition_point(|t| t.threshold_ns <= threshold_ns));
        let most = count(below.last());
        if let Some(tail) = below.last().filter(|tail| tail.threshold_ns == threshold_ns) {
            return (self.surely_exceeding(tail), self.exceeding(tail));
        }
        let none = || self.surely_missed(threshold_ns, 0);
        let least = above.first().map_or_else(none, |tail| self.surely_exceeding(tail));
        (least, most.unwrap_or_else(|| self.n()))
    }

    /// Exceedances of one of the thresholds at most.
    pub(crate) fn exceeding(&self, tail: &ThresholdExceedances) -> u64 {
        tail.exceedances.saturating_add(self.lost(tail.missed))
    }

    /// Releases without a sample that exceed a threshold at most, where the gaps in k give `missed`
    /// ones. With unrecorded cycles among the gaps, the gaps are no evidence.
    fn lost(&self, missed: u64) -> u64 {
        match self.unrecorded {
            0 => missed.saturating_add(self.unplaced).min(self.missed),
            some => self.missed.saturating_add(some),
        }
    }

    /// Exceedances of one of the thresholds at least.
    fn surely_exceeding(&self, tail: &ThresholdExceedances) -> u64 {
        (tail.exceedances - tail.unsure)
            .saturating_add(self.surely_missed(tail.threshold_ns, tail.missed))
    }

    /// Missed releases that exceed a threshold at least, of which the gaps in k give `placed`. A
    /// release that is censored, or in a gap where cycles went unrecorded, is only known to be at
    /// least a period late.
    fn surely_missed(&self, threshold_ns: i64, placed: u64) -> u64 {
        let censored = if self.unrecorded > 0 { self.missed } else { self.unplaced };
        let censored = if threshold_ns < self.unplaced_from_ns { censored } else { 0 };
        let placed = if self.unrecorded > 0 { 0 } else { placed };
        placed.saturating_add(censored).min(self.missed)
    }

    /// Releases whose lateness is not known: censored, or among those that went unrecorded. They
    /// count as the latest.
    pub(crate) fn unknown(&self) -> u64 {
        self.lost(0)
    }

    /// Missed releases known only to be at least a period late.
    pub(crate) fn censored(&self) -> u64 {
        if self.unrecorded > 0 { self.missed } else { self.unplaced.min(self.missed) }
    }

    /// How late each of those was at least, ns; `None` without any.
    pub(crate) fn censored_from_ns(&self) -> Option<i64> {
        (self.censored() > 0 && self.unplaced_from_ns < i64::MAX).then_some(self.unplaced_from_ns)
    }

    /// Upper 95 % bound of P(lateness > threshold), adjusted for dependence; `None` for a threshold
    /// that was not watched.
    pub fn p_upper(&self, threshold_ns: i64) -> Option<f64> {
        self.exceedances(threshold_ns)?;
        Some(self.p_upper_below(threshold_ns))
    }

    /// The lowest bound of all watched thresholds up to this one: what is later than it is later
    /// than each of them, so that a bound never rises with its threshold. 1 where there is none.
    pub(crate) fn p_upper_below(&self, threshold_ns: i64) -> f64 {
        let up_to = self.tails.iter().take_while(|tail| tail.threshold_ns <= threshold_ns);
        let bound = |tail: &ThresholdExceedances| {
            p_upper(self.exceeding(tail), self.n(), self.theta_at(tail.threshold_ns))
        };
        up_to.map(bound).fold(1.0, f64::min)
    }

    /// The upper 95 % bound of P(lateness > threshold) for a watched threshold, its extremal index,
    /// and whether it holds only if late cycles come alone.
    pub(crate) fn l1_bound(&self, threshold_ns: i64) -> (f64, f64, bool) {
        match self.counted(threshold_ns).theta_shown() {
            Some(theta) => {
                let exceedances = self.exceedances(threshold_ns).unwrap_or_else(|| self.n());
                (p_upper(exceedances, self.n(), theta), theta, false)
            }
            None => (self.p_upper_below(threshold_ns), self.theta_at(threshold_ns), true),
        }
    }

    /// The extremal index to use at a lateness: the lowest of the nearest watched threshold above
    /// it and the two nearest at or below it, among those with enough clusters. 1 when none has.
    /// Where cycles went unrecorded, those that came together are a cluster.
    pub fn theta_at(&self, lateness_ns: i64) -> f64 {
        let split = self.tails.partition_point(|tail| tail.threshold_ns <= lateness_ns);
        let (below, above) = self.tails.split_at(split);
        let below = below.iter().rev().filter_map(|tail| tail.theta).take(2);
        let above = above.iter().filter_map(|tail| tail.theta).take(1);
        let few = self.tails[..split].last().and_then(|tail| tail.theta_few);
        let lost = (self.unrecorded > 0).then(|| 1.0 / self.lost_together.max(1) as f64);
        below.chain(above).chain(few).chain(lost).fold(1.0, f64::min)
    }
}
