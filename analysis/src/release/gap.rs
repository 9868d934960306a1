//! The releases that were missed between two wakes, with the lateness of each.
//!
//! A gap may be millions of releases long: it is at most four runs of equal steps, and whoever
//! counts takes from them as many at once as it does not tell apart. Numbers only.

/// Missed releases that follow each other, each a period less late than the one before, or all
/// equally late.
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

    /// How many are left.
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
pub(super) fn counted(number: i128) -> u64 {
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

    /// How many releases.
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
        let next = i128::from(self.after_ns);
        // The k-th release before the wake at the end of the gap is next + k·T late.
        let early = if next < 0 { (-next + period - 1) / period } else { 0 };
        let early = counted(early).min(left);
        let first = next + i128::from(left) * period;
        let falling = Falling::new(first, self.period_ns, left - early);
        [before, after, falling, Falling::new(period, 0, early)]
    }
}

/// The first of at most `most` releases that passed before a wake `late` after its own release:
/// those that are more than a period late, then the one that is late by a period at least.
pub(super) fn after_stall(late: i128, period: i128, most: u64) -> [Falling; 2] {
    let passed = counted(late / period).min(most);
    let whole =
        if i128::from(passed) * period + period > late { passed.saturating_sub(1) } else { passed };
    let step_ns = saturated(period);
    [Falling::new(late - period, step_ns, whole), Falling::new(period, 0, passed - whole)]
}

#[cfg(test)]
mod tests {
    use super::super::model;
    use super::*;
    use proptest::prelude::*;

    fn each(gap: &ReleaseGap) -> Vec<i64> {
        let mut all = Vec::new();
        for mut piece in gap.pieces() {
            while let Some(ns) = piece.next_ns() {
                all.push(ns);
                assert_eq!(piece.take(1).last_ns(), ns);
            }
        }
        all
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
        let both = ReleaseGap::new(5, 2_500, 50, 1_000);
        assert_eq!(each(&both), [1_500, 1_000, 3_050, 2_050, 1_050]);
        assert_eq!(both.longest_wait(), Some((3, 3_050)));
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
}
