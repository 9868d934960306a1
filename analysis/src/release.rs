//! The lateness of a release, whether it ran or was missed; of the missed ones many at once.
//!
//! Release r is due at t(r); S(r) is the first wake at or after t(r); T is the period.
//!
//! | the release | its lateness |
//! |---|---|
//! | ran | wake − t(r) |
//! | missed | max(S(r) − t(r), T), as [`Missed::lateness`] defines it |
//! | censored: missed, and the run ended before S(r) | T at least; the first of n, (n − 1)·T |
//!
//! After a stall in the wait S(r) of the missed releases is the late wake itself, so that the first
//! of them is almost as late as the release that ran. After a body that ran too long it is the wake
//! that came next. Everything here that counts lateness goes through [`Walk`] and [`ReleaseGap`]:
//! sums, quantiles, exceedances, series for comparisons. Reads no clock and no file.
//!
//! [`Missed::lateness`]: punctual_core::cycle::Missed::lateness

#[cfg(test)]
pub(crate) mod model;

use punctual_core::sample::{Flags, Sample};
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::summary::{Distribution, SummaryStats};

/// Missed releases that follow each other, each a period less late than the one before, or all
/// equally late.
///
/// A gap may be millions of releases long: it is at most four runs of equal steps, and whoever
/// counts takes from them as many at once as it does not tell apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Falling {
    /// Lateness of the next one; wide, for a gap may be longer than 292 years.
    first_ns: i128,
    step_ns: i64,
    count: u64,
}

impl Falling {
    /// `count` releases, the first of them `first_ns` late, each `step_ns` (≥ 0) less than the one
    /// before.
    pub fn new(first_ns: i128, step_ns: i64, count: u64) -> Self {
        Self { first_ns, step_ns, count }
    }

    /// The number that is left.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// By how much each is less late than the one before, ns.
    pub fn step_ns(&self) -> i64 {
        self.step_ns
    }

    /// Lateness of the next one, ns; `None` where none is left.
    pub fn next_ns(&self) -> Option<i64> {
        (self.count > 0).then(|| saturated(self.first_ns))
    }

    /// Takes the next one and all others that are at least `least_ns` late, which the next one is.
    pub fn take_from(&mut self, least_ns: i64) -> Self {
        let above = self.first_ns - i128::from(least_ns);
        let many = match i128::from(self.step_ns) {
            0 => self.count,
            step => counted(above / step + 1).min(self.count),
        };
        self.take(many.max(1))
    }

    /// Takes the next `count`, or as many as there are.
    pub fn take(&mut self, count: u64) -> Self {
        let taken = Self { count: count.min(self.count), ..*self };
        self.first_ns -= i128::from(taken.count) * i128::from(self.step_ns);
        self.count -= taken.count;
        taken
    }

    /// Lateness of the last one, ns; of none the same as of the first.
    pub fn last_ns(&self) -> i64 {
        let steps = i128::from(self.count.saturating_sub(1));
        saturated(self.first_ns - steps * i128::from(self.step_ns))
    }
}

fn saturated(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// A number as a count: nothing where it is negative.
fn counted(number: i128) -> u64 {
    u64::try_from(number.max(0)).unwrap_or(u64::MAX)
}

/// Releases that were missed between two wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseGap {
    missed: u64,
    /// Lateness of the cycles before and after it.
    before_ns: i64,
    after_ns: i64,
    /// 0 where there is none.
    period_ns: i64,
}

impl ReleaseGap {
    /// `missed` releases between a cycle that woke `before_ns` late and one that woke `after_ns`
    /// late; with a period of 0 each is later than anything.
    pub fn new(missed: u64, before_ns: i64, after_ns: i64, period_ns: i64) -> Self {
        Self { missed, before_ns, after_ns, period_ns }
    }

    /// The number of releases.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The first of those that waited for the wake at the end of the gap: how many releases before
    /// that one it was due, and how late it was. The others are less late than a neighbour is.
    pub fn longest_wait(&self) -> Option<(u64, i64)> {
        let [.., falling, early] = self.pieces();
        let waited = falling.count() + early.count();
        let piece = if falling.count() > 0 { falling } else { early };
        Some((waited, piece.next_ns()?)).filter(|_| self.period_ns > 0)
    }

    /// Their latenesses, in the order of time. The wake before it is the first one after the
    /// earlier releases, where it was that late; for the others it is the wake after the gap.
    pub fn pieces(&self) -> [Falling; 4] {
        let period = i128::from(self.period_ns);
        if period <= 0 {
            let beyond = Falling::new(i128::from(i64::MAX), 0, self.missed);
            return [beyond, Falling::default(), Falling::default(), Falling::default()];
        }
        let [before, after] = after_stall(i128::from(self.before_ns), period, self.missed);
        let left = self.missed - before.count - after.count;
        // The first of them waited for the wake that ends the gap, which came late itself.
        let first = i128::from(self.after_ns) + i128::from(left) * period;
        let [falling, early] = waited(first, period, left);
        [before, after, falling, early]
    }
}

/// The first of at most `most` releases that passed before a wake `late` after its own release.
fn after_stall(late: i128, period: i128, most: u64) -> [Falling; 2] {
    waited(late - period, period, counted(late / period).min(most))
}

/// Many at once of what [`Missed::lateness`] says of one: of `count` missed releases the first was
/// due `first` before the wake that came next, each other one a period later. Those that are more
/// than a period late, then those that are late by a period at least.
///
/// [`Missed::lateness`]: punctual_core::cycle::Missed::lateness
fn waited(first: i128, period: i128, count: u64) -> [Falling; 2] {
    let longer = counted(first / period).min(count);
    let step_ns = saturated(period);
    [Falling::new(first, step_ns, longer), Falling::new(period, 0, count - longer)]
}

/// The most ends that are kept: the latest.
const ENDS_MAX: usize = 1_024;

/// Releases that were missed after the last cycle of a segment.
///
/// A recorder says how many releases were missed in all; those that lie in no gap came after the
/// last cycle of some segment. Where that cycle woke late they passed before its wake, which shows
/// their lateness; the others are censored. Bounded memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailing {
    /// That cycle: they follow it, one after the other.
    pub after: u64,
    /// Their latenesses: in falling steps, then one that was late by a period at least.
    pub pieces: [Falling; 2],
}

/// The last cycles of segments, where releases may have passed before their wake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ends {
    /// Lateness and cycle, in falling order of lateness.
    late: Vec<(i64, u64)>,
}

impl Ends {
    /// A segment ended with this cycle.
    fn push(&mut self, cycle: u64, lateness_ns: i64, period_ns: i64) {
        if period_ns > 0 && lateness_ns >= period_ns {
            let at = self.late.partition_point(|&(ns, _)| ns >= lateness_ns);
            self.late.insert(at, (lateness_ns, cycle));
            self.late.truncate(ENDS_MAX);
        }
    }

    /// The latenesses of `missed` releases that lie in no gap, and how many of them are censored.
    /// Where more may have passed than were missed the latest that there can have been are taken.
    fn place(&self, missed: u64, period_ns: i64) -> (Vec<Trailing>, u64) {
        let period = i128::from(period_ns);
        let trailing = |&(late_ns, after): &(i64, u64), most| Trailing {
            after,
            pieces: after_stall(i128::from(late_ns), period, most),
        };
        let latest: Vec<Trailing> = self.late.iter().map(|end| trailing(end, u64::MAX)).collect();
        let counts = latest.iter().flat_map(|end| end.pieces.iter().map(Falling::count));
        let total = counts.fold(0, u64::saturating_add);
        if total <= missed {
            return (latest, missed - total);
        }
        // The highest lateness that at least as many reach as were missed.
        let reach = |least_ns: i64| {
            let many = |(late_ns, _): &(i64, u64)| match late_ns.checked_sub(least_ns) {
                Some(above) if above >= 0 => counted(i128::from(above) / period),
                _ => 0,
            };
            self.late.iter().map(many).fold(0, u64::saturating_add)
        };
        let (mut low, mut high) = (0, i64::MAX);
        while low < high {
            let middle = low + (high - low) / 2 + 1;
            if reach(middle) >= missed { low = middle } else { high = middle - 1 }
        }
        let mut over = reach(low).saturating_sub(missed);
        let mut placed = Vec::new();
        for end in &self.late {
            let above_ns = (end.0 - low).max(0);
            let mut many = (above_ns / period_ns).unsigned_abs();
            // Of those that are equally late any will do.
            if over > 0 && many > 0 && above_ns % period_ns == 0 {
                (many, over) = (many - 1, over - 1);
            }
            placed.push(trailing(end, many));
        }
        placed.retain(|end| end.pieces[0].count() + end.pieces[1].count() > 0);
        (placed, 0)
    }
}

/// Where a run has come to.
///
/// For every accumulator that is fed with samples. Holds one sample and a few counts.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// The nominal period, ns; 0 where there is none.
    period_ns: i64,
    /// The time from release to release, which is another where releases are fitted.
    spacing_ns: i64,
    leave_out_cold: bool,
    /// The latest sample, and its lateness, which is another where releases are fitted.
    previous: Option<(Sample, i64)>,
    /// True where it was left out, so that no interval starts there.
    previous_left_out: bool,
    samples: u64,
    cold: u64,
    cold_max_ns: Option<i64>,
    gaps: u64,
    /// Segments that have ended.
    ended: u64,
    ends: Ends,
}

impl Walk {
    /// A run of which nothing came yet, of cycles `period_ns` apart; 0 where there is no period.
    pub fn new(period_ns: i64, leave_out_cold: bool) -> Self {
        Self { period_ns, spacing_ns: period_ns, leave_out_cold, ..Self::default() }
    }

    /// Walks a run whose releases are `spacing_ns` apart, as fitted, not a nominal period.
    #[must_use]
    pub fn spaced(self, spacing_ns: i64) -> Self {
        Self { spacing_ns, ..self }
    }

    /// Takes in the next sample, which was `lateness_ns` late. Cycles must not decrease.
    #[inline]
    pub fn step(&mut self, sample: &Sample, lateness_ns: i64) -> WalkStep {
        self.samples += 1;
        let before = self.previous.replace((*sample, lateness_ns));
        let before = if sample.flags.has(Flags::FIRST) { self.ended(before) } else { before };
        let gap = before.and_then(|(previous, before_ns)| {
            let missed = sample.cycle.saturating_sub(previous.cycle).saturating_sub(1);
            self.gaps = self.gaps.saturating_add(missed);
            (missed > 0).then(|| ReleaseGap::new(missed, before_ns, lateness_ns, self.spacing_ns))
        });
        let cold = sample.flags.has(Flags::COLD);
        if cold {
            self.cold += 1;
            self.cold_max_ns = self.cold_max_ns.max(Some(sample.lateness.as_ns()));
        }
        let left_out = cold && self.leave_out_cold;
        let kept = before.filter(|_| !self.previous_left_out && !left_out);
        self.previous_left_out = left_out;
        let interval_ns = kept.map(|(previous, _)| interval_ns(&previous, sample, self.period_ns));
        WalkStep { gap, interval_ns, left_out }
    }

    /// A segment ended before this sample.
    #[cold]
    fn ended(&mut self, last: Option<(Sample, i64)>) -> Option<(Sample, i64)> {
        if let Some((sample, lateness_ns)) = last {
            self.ended += 1;
            self.ends.push(sample.cycle, lateness_ns, self.spacing_ns);
        }
        None
    }

    /// The latest sample, where the next one can simply follow it.
    #[inline]
    pub fn follows(&self) -> Option<&Sample> {
        self.previous.as_ref().filter(|_| !self.previous_left_out).map(|(sample, _)| sample)
    }

    /// Takes in `count` samples that follow each other without a gap or a flag, up to `last`.
    #[inline]
    pub fn stride(&mut self, count: u64, last: Option<&Sample>) {
        self.samples += count;
        self.previous = last.map(|sample| (*sample, sample.lateness.as_ns())).or(self.previous);
    }

    /// Samples so far, cold ones included.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Samples that were flagged cold so far.
    pub fn cold(&self) -> u64 {
        self.cold
    }

    /// The largest lateness of a cold one, about the nominal grid.
    pub fn cold_max_ns(&self) -> Option<i64> {
        self.cold_max_ns
    }

    /// Releases so far that lie in a gap: missed, or run but unrecorded.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// The placement of the releases without a sample: `missed` never ran, `unrecorded` ran.
    pub fn placement(&self, missed: u64, unrecorded: u64) -> StartPlacement {
        let censored_from_ns = self.spacing_ns;
        if unrecorded > 0 || missed < self.gaps {
            let trailing = Vec::new();
            let censored = missed;
            let (gaps, unanswered_ns) = (false, censored_from_ns);
            return StartPlacement { gaps, trailing, censored, censored_from_ns, unanswered_ns };
        }
        let mut ends = self.ends.clone();
        if let Some((sample, lateness_ns)) = self.previous {
            ends.push(sample.cycle, lateness_ns, self.spacing_ns);
        }
        let (trailing, censored) = ends.place(missed - self.gaps, self.spacing_ns);
        let unanswered_ns = self.unanswered_ns(censored);
        StartPlacement { gaps: true, trailing, censored, censored_from_ns, unanswered_ns }
    }

    /// The least that one of so many censored releases waited: those at the end of a segment came
    /// one after the other, so that the first was still unanswered when the last was due. Only one
    /// that was stopped has no cycle of its own; of the others any may have the most.
    fn unanswered_ns(&self, censored: u64) -> i64 {
        let segments = self.ended + 1;
        let behind = censored.div_ceil(segments).saturating_sub(1).max(1);
        saturated(i128::from(behind) * i128::from(self.spacing_ns))
    }
}

/// The result of one more sample.
#[derive(Clone, Copy, Debug)]
pub struct WalkStep {
    /// The releases between the sample before and this one.
    pub gap: Option<ReleaseGap>,
    /// wake − previous wake − period, where the loop ran just before.
    pub interval_ns: Option<i64>,
    /// True where the sample itself is left out of every figure.
    pub left_out: bool,
}

/// The releases without a sample, once a run is over.
#[derive(Clone, Debug, Default)]
pub struct StartPlacement {
    /// True where each release in a gap was missed. Where cycles went unrecorded that is not known.
    pub gaps: bool,
    /// Releases that were missed at the end of a segment, with their lateness.
    pub trailing: Vec<Trailing>,
    /// Missed releases of which only is known that they were late by a period at least.
    pub censored: u64,
    /// That period, ns; 0 where there is none.
    pub censored_from_ns: i64,
    /// The least by which the latest of them was late, ns: that period at least.
    pub unanswered_ns: i64,
}

/// wake − previous wake − one period, saturating: a missed release shows as at least one period.
#[inline]
fn interval_ns(previous: &Sample, sample: &Sample, period_ns: i64) -> i64 {
    let difference = sample.lateness.as_ns().saturating_sub(previous.lateness.as_ns());
    if sample.cycle == previous.cycle.wrapping_add(1) {
        return difference;
    }
    let releases = i128::from(sample.cycle) - i128::from(previous.cycle) - 1;
    let apart = releases * i128::from(period_ns);
    let apart = apart.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    difference.saturating_add(apart)
}

/// Lateness while a run is collected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lateness {
    wakes: Distribution,
    /// Of releases in gaps, as if each had been missed.
    gaps: Distribution,
}

impl Lateness {
    /// Takes in a release that ran.
    #[inline]
    pub(crate) fn push(&mut self, lateness_ns: i64) {
        self.wakes.push(lateness_ns);
    }

    /// Takes in releases that ran, 1 to 256 of a magnitude below 2²⁷ ns; returns the largest.
    #[inline]
    pub(crate) fn extend_near(&mut self, latenesses_ns: &[i64]) -> i64 {
        self.wakes.extend_near(latenesses_ns)
    }

    /// Takes in the releases of a gap.
    pub(crate) fn miss(&mut self, gap: &ReleaseGap) {
        gap.pieces().into_iter().for_each(|piece| push_falling(&mut self.gaps, piece));
    }

    /// Of wakes alone.
    pub(crate) fn wakes(&self) -> &Distribution {
        &self.wakes
    }

    /// The run as it is known at its end; `unrecorded` cycles ran without a sample.
    pub(crate) fn finish(self, placement: &StartPlacement, unrecorded: u64) -> Releases {
        let mut missed = if placement.gaps { self.gaps } else { Distribution::default() };
        let trailing = placement.trailing.iter().flat_map(|end| end.pieces);
        trailing.for_each(|piece| push_falling(&mut missed, piece));
        let &StartPlacement { censored, censored_from_ns, unanswered_ns, .. } = placement;
        let wakes = self.wakes;
        Releases { wakes, missed, censored, censored_from_ns, unanswered_ns, unrecorded }
    }
}

/// The lateness of the releases of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Releases {
    /// Of those that ran.
    pub wakes: Distribution,
    /// Of those that were missed, as far as it is known.
    missed: Distribution,
    /// Missed releases that were late by a period at least, and no more is known.
    pub censored: u64,
    /// That period, ns; 0 where it is not known.
    #[serde(default)]
    censored_from_ns: i64,
    /// The least by which the latest of them was late, ns; 0 in what was kept before.
    #[serde(default)]
    unanswered_ns: i64,
    /// Cycles that ran, and nobody knows how late.
    unrecorded: u64,
}

impl Releases {
    /// Takes in those of another run.
    pub(crate) fn merge(&mut self, added: &Self) {
        self.wakes.merge(&added.wakes);
        self.missed.merge(&added.missed);
        self.censored_from_ns = match (self.censored, added.censored) {
            (0, _) => added.censored_from_ns,
            (_, 0) => self.censored_from_ns,
            _ => self.censored_from_ns.min(added.censored_from_ns),
        };
        self.unanswered_ns = self.unanswered_ns.max(added.unanswered_ns);
        self.censored = self.censored.saturating_add(added.censored);
        self.unrecorded = self.unrecorded.saturating_add(added.unrecorded);
    }

    /// Of those that ran and those that were missed, as far as it is known.
    pub(crate) fn known(&self) -> Distribution {
        let mut known = self.wakes.clone();
        known.merge(&self.missed);
        known
    }

    /// The nine numbers: quantiles count those that are not known as the latest, and the maximum
    /// is a lower bound where there are such.
    pub(crate) fn stats(&self) -> SummaryStats {
        self.stats_of(&self.known())
    }

    /// The numbers of [`Self::stats`], from what [`Self::known`] gave: saves merging again.
    pub(crate) fn stats_of(&self, known: &Distribution) -> SummaryStats {
        let stats = known.stats_below(self.unknown());
        let unanswered_ns = self.censored_from_ns.max(self.unanswered_ns) as f64;
        let least_ns = if self.censored > 0 { unanswered_ns } else { f64::MIN };
        SummaryStats { max: stats.max.map(|ns| ns.max(least_ns)), ..stats }
    }

    /// The number that is not known, which may have been later than all others.
    pub(crate) fn unknown(&self) -> u64 {
        self.censored.saturating_add(self.unrecorded)
    }

    /// Checks the parts after reading them back.
    pub(crate) fn is_sound(&self, count_max: u64) -> bool {
        let counts = [self.censored, self.unrecorded, self.missed.histogram().count()];
        self.wakes.is_sound()
            && self.missed.is_sound()
            && self.censored_from_ns >= 0
            && self.unanswered_ns >= 0
            && counts.iter().all(|&count| count <= count_max)
    }
}

/// Takes in missed releases, as many at once as fall in one bucket.
fn push_falling(distribution: &mut Distribution, mut piece: Falling) {
    while let Some(ns) = piece.next_ns() {
        let least_ns = Histogram::lowest_with(ns);
        let taken = piece.take_from(least_ns);
        distribution.push_steps(taken.last_ns(), taken.step_ns(), taken.count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Span;

    use crate::quantile::Probability;

    fn each(gap: &ReleaseGap) -> Vec<i64> {
        let mut latenesses = Vec::new();
        for mut piece in gap.pieces() {
            while let Some(ns) = piece.next_ns() {
                latenesses.push(ns);
                assert_eq!(piece.take(1).last_ns(), ns);
            }
        }
        latenesses
    }

    #[test]
    fn a_stall_in_the_wait_leaves_what_was_left_of_it() {
        // 10.4 ms late at 1 ms: ten releases passed before that wake, 9.4 to 0.4 ms before it.
        let gap = ReleaseGap::new(10, 10_400, 5, 1_000);
        let expected = [9_400, 8_400, 7_400, 6_400, 5_400, 4_400, 3_400, 2_400, 1_400, 1_000];
        assert_eq!(each(&gap), expected);
    }

    #[test]
    fn a_body_that_ran_too_long_leaves_releases_that_wait_for_the_next_wake() {
        assert_eq!(each(&ReleaseGap::new(3, 10, 50, 1_000)), [3_050, 2_050, 1_050]);
        // Both: the wake came 2.5 periods late, then the body took three more.
        let gap = ReleaseGap::new(5, 2_500, 50, 1_000);
        assert_eq!(each(&gap), [1_500, 1_000, 3_050, 2_050, 1_050]);
        assert_eq!(gap.longest_wait(), Some((3, 3_050)));
        assert_eq!(ReleaseGap::new(2, 2_500, 50, 1_000).longest_wait(), None);
        // The next wake was early, after the release that it is about had been missed.
        assert_eq!(each(&ReleaseGap::new(2, 0, -300, 1_000)), [1_700, 1_000]);
        assert_eq!(each(&ReleaseGap::new(2, 0, 0, 0)), [i64::MAX; 2], "no period");
    }

    #[test]
    fn the_longest_gaps_do_not_overflow() {
        for (before, after) in [(i64::MAX, i64::MAX), (i64::MIN, i64::MIN), (0, i64::MIN)] {
            for period in [1, i64::MAX] {
                for mut piece in ReleaseGap::new(1 << 56, before, after, period).pieces() {
                    while let Some(ns) = piece.next_ns() {
                        assert!(ns >= period);
                        assert!(piece.take_from(ns / 2).count() > 0);
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn each_is_late_until_the_first_wake_at_or_after_it(
            period in 1i64..5_000,
            before in -4_000i64..100_000,
            after in -4_000i64..100_000,
            missed in 0u64..60,
        ) {
            let (before, after) = (before.max(-period), after.max(-period));
            let series = model::Series::of(period, &[(0, before), (missed + 1, after)]);
            prop_assert_eq!(each(&ReleaseGap::new(missed, before, after, period)), series.missed());
        }

        #[test]
        fn taking_by_value_takes_each_once(
            first in 0i64..100_000, step in 0i64..3_000, count in 1u64..100, least in 0i64..100_000,
        ) {
            let step = step.min(first / count as i64);
            let mut left = Falling::new(i128::from(first), step, count);
            let values: Vec<i64> = (0..count as i64).map(|at| first - at * step).collect();
            let taken = left.take_from(least.min(first));
            let above = values.iter().filter(|&&ns| ns >= least.min(first)).count();
            prop_assert_eq!(taken.count(), above as u64);
            prop_assert_eq!(taken.last_ns(), values[above - 1]);
            prop_assert_eq!(left.next_ns(), values.get(above).copied());
        }
    }

    /// The latenesses, in falling order.
    fn placed(ends: &Ends, missed: u64, period_ns: i64) -> (Vec<i64>, u64) {
        let (placed, censored) = ends.place(missed, period_ns);
        let mut latenesses = Vec::new();
        for mut piece in placed.into_iter().flat_map(|end| end.pieces) {
            while let Some(ns) = piece.next_ns() {
                piece.take(1);
                latenesses.push(ns);
            }
        }
        latenesses.sort_unstable_by(|a, b| b.cmp(a));
        (latenesses, censored)
    }

    fn ends(late_ns: &[i64], period_ns: i64) -> Ends {
        let mut ends = Ends::default();
        late_ns.iter().for_each(|&ns| ends.push(7, ns, period_ns));
        ends
    }

    #[test]
    fn what_passed_before_the_last_wake_is_as_late_as_that_leaves_it() {
        let late = ends(&[3_500, 20, 999], 1_000);
        assert_eq!(placed(&late, 3, 1_000), (vec![2_500, 1_500, 1_000], 0));
        assert_eq!(placed(&late, 5, 1_000), (vec![2_500, 1_500, 1_000], 2));
        assert_eq!(
            placed(&late, 2, 1_000),
            (vec![2_500, 1_500], 0),
            "the latest that there can be"
        );
        assert_eq!(placed(&late, 0, 1_000), (vec![], 0));
        assert_eq!(placed(&Ends::default(), 7, 1_000), (vec![], 7));
        assert_eq!(placed(&ends(&[9_000], 0), 7, 0), (vec![], 7), "no period");
    }

    #[test]
    fn no_more_ends_are_kept_than_there_is_room_for() {
        let mut late = Ends::default();
        (0..5_000).for_each(|k| late.push(k, 1_000 + k as i64 % 4_000, 1_000));
        assert_eq!(late.late.len(), ENDS_MAX);
        assert_eq!(late.late.first(), Some(&(4_999, 3_999)));
        assert!(late.late.iter().all(|&(ns, _)| ns > 3_000), "the latest");
    }

    proptest! {
        #[test]
        fn the_latest_that_can_have_passed_are_taken(
            late_ns in prop::collection::vec(0i64..20_000, 0..8),
            period in 1i64..4_000,
            missed in 0u64..80,
        ) {
            let late = ends(&late_ns, period);
            let passed = |&ns: &i64| (1..=ns / period).map(move |j| ns - j * period);
            let mut latenesses: Vec<i64> = late_ns.iter().flat_map(passed).collect();
            latenesses.sort_unstable_by(|a, b| b.cmp(a));
            let censored = missed.saturating_sub(latenesses.len() as u64);
            latenesses.truncate(missed as usize);
            let latenesses: Vec<i64> = latenesses.into_iter().map(|ns| ns.max(period)).collect();
            prop_assert_eq!(placed(&late, missed, period), (latenesses, censored));
        }
    }

    fn sample(cycle: u64, lateness_ns: i64, flags: Flags) -> Sample {
        Sample { cycle, lateness: Span::from_ns(lateness_ns), flags }
    }

    #[test]
    fn gaps_lie_inside_segments_and_what_was_missed_after_one_has_no_gap() {
        let mut walk = Walk::new(1_000, true);
        let mut step = |cycle, ns, flags| walk.step(&sample(cycle, ns, flags), ns);
        let first = step(5, 900, Flags::FIRST.with(Flags::COLD));
        assert!(first.left_out && first.gap.is_none() && first.interval_ns.is_none());
        let second = step(7, 20, Flags::NONE);
        assert_eq!(second.gap, Some(ReleaseGap::new(1, 900, 20, 1_000)));
        assert_eq!(second.interval_ns, None, "the cycle before it was left out");
        assert_eq!(step(8, 2_500, Flags::NONE).interval_ns, Some(2_480));
        // Two releases passed before that wake, and the segment ended.
        assert!(step(90, 10, Flags::FIRST).gap.is_none());
        assert_eq!((walk.samples(), walk.cold(), walk.gaps()), (4, 1, 1));
        let placed = walk.placement(3, 0);
        let pieces = placed.trailing.iter().flat_map(|end| end.pieces);
        let late: Vec<_> = pieces.filter_map(|piece| piece.next_ns()).collect();
        assert_eq!(placed.trailing[0].after, 8);
        assert_eq!((placed.gaps, late, placed.censored), (true, vec![1_500, 1_000], 0));
        let lost = walk.placement(3, 2);
        assert!(!lost.gaps && lost.trailing.is_empty() && lost.censored == 3, "{lost:?}");
        assert!(!walk.placement(0, 0).gaps, "a gap that the recorder does not know of");
    }

    #[test]
    fn a_release_that_nothing_answered_waited_for_those_behind_it() {
        let mut walk = Walk::new(1_000, false);
        walk.step(&sample(0, 20, Flags::FIRST), 20);
        let waited = |walk: &Walk, missed| walk.placement(missed, 0).unanswered_ns;
        assert_eq!(waited(&walk, 2_048), 2_047_000);
        assert_eq!([1, 2, 3].map(|missed| waited(&walk, missed)), [1_000, 1_000, 2_000]);
        assert_eq!(walk.placement(2_048, 1).unanswered_ns, 1_000, "some of them ran");
        // Those at the ends of two segments may be as many.
        walk.step(&sample(90, 20, Flags::FIRST), 20);
        assert_eq!([2_048, 2_049].map(|missed| waited(&walk, missed)), [1_023_000, 1_024_000]);
        assert_eq!(waited(&Walk::new(1_000, false), 5), 4_000, "no release was answered");
        assert_eq!(waited(&Walk::new(i64::MAX, false), u64::MAX), i64::MAX);
    }

    /// Latenesses of a run with stalls: (releases to the next cycle, lateness).
    fn runs() -> impl Strategy<Value = Vec<(u64, i64)>> {
        let calm = (Just(1u64), -200i64..900);
        let late = (Just(1u64), 0i64..40_000);
        let body = (1u64..30, 0i64..900);
        prop::collection::vec(prop_oneof![12 => calm, 1 => late, 1 => body], 1..300)
    }

    proptest! {
        #[test]
        fn every_release_is_counted_as_the_definition_has_it(
            period in 500i64..2_000, steps in runs(), trailing in 0u64..6,
        ) {
            let (mut walk, mut lateness) = (Walk::new(period, false), Lateness::default());
            let mut cycles: Vec<(u64, i64)> = Vec::new();
            for (step, ns) in steps {
                // A late wake takes the releases that passed before it with it.
                let passed = cycles.last().map_or(0, |last| (last.1 / period).max(0) as u64);
                let cycle = cycles.last().map_or(0, |last| last.0 + step + passed);
                cycles.push((cycle, ns));
                let sample = Sample { cycle, lateness: Span::from_ns(ns), flags: Flags::NONE };
                let step = walk.step(&sample, ns);
                step.gap.iter().for_each(|gap| lateness.miss(gap));
                lateness.push(ns);
            }
            // What passed before the last wake was missed too, where the run went on that long.
            let passed = cycles.last().map_or(0, |last| (last.1 / period).max(0) as u64);
            let model = model::Series::of(period, &cycles).with_trailing(passed + trailing);
            let (known, censored) = model.known();
            let missed = model.releases().len() as u64 - cycles.len() as u64;
            let releases = lateness.finish(&walk.placement(missed, 0), 0);
            prop_assert_eq!(releases.censored, censored);
            prop_assert_eq!(censored, trailing);
            let mut model = Distribution::default();
            known.iter().for_each(|&ns| model.push(ns));
            prop_assert_eq!(releases.known(), model, "sums and every bucket");
            let stats = releases.stats();
            // The first of those behind the last wake, until the last of them.
            let unanswered = (trailing as i64 - 1).max(1) * period;
            let unanswered = (censored > 0).then_some(unanswered);
            let latest = known.last().copied().into_iter().chain(unanswered);
            prop_assert_eq!(stats.max, latest.max().map(|ns| ns as f64));
            let n = known.len() as u64 + censored;
            for p in Probability::SUMMARY {
                let rank = p.rank(n) as usize - 1;
                let expected = p.is_supported(n).then(|| known.get(rank)).flatten();
                let found = stats.quantile(p);
                prop_assert_eq!(found.is_some(), expected.is_some(), "{} of {}", p, n);
                if let (Some(found), Some(&expected)) = (found, expected) {
                    let above = found - expected as f64;
                    let bucket = (expected.abs() as f64 / 1_024.0).max(1.0);
                    prop_assert!((0.0..=bucket).contains(&above), "{p}: {found} for {expected}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_known_counts_as_the_latest() {
        let mut lateness = Lateness::default();
        (0..90).for_each(|ns| lateness.push(ns));
        let lost = StartPlacement {
            gaps: false,
            trailing: Vec::new(),
            censored: 9,
            censored_from_ns: 1_000,
            unanswered_ns: 1_000,
        };
        let releases = lateness.clone().finish(&lost, 1);
        let wakes = releases.wakes.stats();
        let stats = releases.stats();
        assert_eq!((stats.p50, stats.p90, stats.p99), (Some(49.0), Some(89.0), None));
        assert_eq!((stats.max, wakes.max), (Some(1_000.0), Some(89.0)), "a period at least");
        assert_eq!(wakes.p90, Some(80.0));
        let more = StartPlacement { censored: 10, ..lost };
        assert_eq!(lateness.finish(&more, 1).stats().p90, None, "the 91st of 101 is not known");
    }
}
