//! Releases that never ran, as values of lateness: what a page counts of them.
//!
//! For the page's writer. The only definition of the lateness of a missed release. Bounded work
//! however many were missed: few are looked at one by one, many bucket by bucket. Pure arithmetic.

use crate::bucket::{self, Place};
use crate::releases::Releases;
use crate::time::{Instant, Span};

/// Some releases in a row that never ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The releases of their task.
    pub releases: Releases,
    /// The number of the first one.
    pub first: u64,
    /// How many.
    pub count: u64,
}

/// Up to so many are looked at one by one: each then has its exact lateness, also in the sum.
const SINGLY: u64 = 64;

impl Missed {
    /// Those of them that were released by `start`, and the others.
    pub(super) fn split(self, start: Instant) -> (Self, Self) {
        let before = self.releases.released(start).saturating_sub(self.first).min(self.count);
        let (first, count) = (self.first + before, self.count - before);
        (Self { count: before, ..self }, Self { first, count, ..self })
    }

    /// How late release `k` of these was, where the task's first start at or after it was at
    /// `start`: start − release, and at least a period.
    fn lateness_ns(&self, k: u64, start: Instant) -> i64 {
        let period_ns = i64::try_from(self.releases.period().as_ns()).unwrap_or(i64::MAX);
        (start - self.releases.release(k)).as_ns().max(period_ns)
    }

    /// The largest and the smallest lateness; at least one was missed.
    pub(super) fn extremes(&self, start: Instant) -> (Span, Span) {
        let last = self.first + self.count - 1;
        let of = |k| Span::from_ns(self.lateness_ns(k, start));
        (of(self.first), of(last))
    }

    /// The sum of all lateness, ns, wrapping; of more than a few to half a nanosecond each.
    pub(super) fn sum_ns(&self, start: Instant) -> i64 {
        let ns = |k| self.lateness_ns(k, start);
        if self.count <= SINGLY {
            return (0..self.count).fold(0i64, |sum, k| sum.wrapping_add(ns(self.first + k)));
        }
        // Only the last one may be within a period of the start.
        let last = self.first + self.count - 1;
        let since_ns = (start - self.releases.release(last)).as_ns();
        let ends = i128::from(ns(self.first)) + i128::from(since_ns);
        (ends * i128::from(self.count) / 2) as i64 + (ns(last) - since_ns)
    }

    /// Passes to `put` how many of them belong into each place of the histogram.
    pub(super) fn places(&self, start: Instant, mut put: impl FnMut(Place, u64)) {
        if self.count <= SINGLY {
            let place = |k| bucket::index(self.lateness_ns(self.first + k, start));
            (0..self.count).for_each(|k| put(place(k), 1));
            return;
        }
        // Lateness falls from one release to the next: each bucket holds a run of them.
        let end = self.first + self.count;
        let mut left = self.count;
        // Those that are at least so late: released by start − lateness.
        let at_least = |lateness_ns: u64| {
            let latest = start.as_ns().checked_sub(lateness_ns).map(Instant::from_ns);
            let released = latest.map_or(0, |latest| self.releases.released(latest));
            released.clamp(self.first, end) - self.first
        };
        let above = at_least(bucket::bounds(bucket::COUNT - 1).1).min(left);
        if above > 0 {
            put(Place::Above, above);
            left -= above;
        }
        let lowest = match bucket::index(self.lateness_ns(end - 1, start)) {
            Place::In(at) => at,
            Place::Below | Place::Above => 0,
        };
        let mut at = bucket::COUNT;
        while left > 0 && at > lowest {
            at -= 1;
            let (low_ns, _) = bucket::bounds(at);
            // A release within the last period is late by a period all the same.
            let down_to_here = if at == lowest { self.count } else { at_least(low_ns) };
            let here = down_to_here.saturating_sub(self.count - left).min(left);
            if here > 0 {
                put(Place::In(at), here);
                left -= here;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::time::Period;

    /// One by one, from the definition.
    fn slowly(missed: &Missed, start: Instant) -> BTreeMap<i64, u64> {
        let mut all = BTreeMap::new();
        for k in missed.first..missed.first + missed.count {
            let late =
                start.as_ns().cast_signed() - missed.releases.release(k).as_ns().cast_signed();
            let late = late.max(missed.releases.period().as_ns().cast_signed());
            *all.entry(late).or_insert(0) += 1;
        }
        all
    }

    #[test]
    fn many_at_once_agree_with_one_by_one() {
        for (num, den) in [(1_000, 1), (10_000, 3), (7, 2), (1_000_000, 1)] {
            let period = Period::ratio(num, den).expect("in range");
            let releases = Releases::new(Instant::from_ns(500), period);
            for count in [1, 2, 63, 64, 65, 200, 5_000] {
                for after in [0, 1, num / den / 2, num / den, 3 * num] {
                    let missed = Missed { releases, first: 7, count };
                    let start =
                        releases.release(7 + count - 1) + Span::from_ns(after.cast_signed());
                    let slow = slowly(&missed, start);
                    let mut placed = BTreeMap::new();
                    missed.places(start, |place, n| *placed.entry(key(place)).or_insert(0) += n);
                    let mut slowly = BTreeMap::new();
                    for (&late, &n) in &slow {
                        *slowly.entry(key(bucket::index(late))).or_insert(0u64) += n;
                    }
                    assert_eq!(
                        placed, slowly,
                        "{count} of {period}, start {after} ns after the last"
                    );
                    let (max, min) = missed.extremes(start);
                    let ends = slow.first_key_value().zip(slow.last_key_value());
                    let ((first, _), (last, _)) = ends.expect("not empty");
                    assert_eq!((max.as_ns(), min.as_ns()), (*last, *first));
                    let sum: i64 = slow.iter().map(|(&late, &n)| late * n.cast_signed()).sum();
                    let off = (missed.sum_ns(start) - sum).unsigned_abs();
                    assert!(off <= if count <= SINGLY { 0 } else { count + num }, "off by {off}");
                }
            }
        }
    }

    fn key(place: Place) -> i64 {
        match place {
            Place::Below => -1,
            Place::In(at) => at as i64,
            Place::Above => i64::MAX,
        }
    }

    #[test]
    fn an_hour_is_as_quick_as_a_second_and_nothing_is_lost() {
        let period = Period::from_ns(10_000).expect("in range");
        let releases = Releases::new(Instant::from_ns(0), period);
        let missed = Missed { releases, first: 1, count: 360_000_000 };
        let start = releases.release(360_000_001);
        let (mut total, mut calls) = (0, 0);
        missed.places(start, |_, n| {
            total += n;
            calls += 1;
        });
        assert_eq!(total, missed.count);
        assert!(calls <= bucket::COUNT + 1);
    }

    #[test]
    fn what_was_released_by_the_last_start_is_told_from_the_rest() {
        let releases = Releases::new(Instant::from_ns(100), Period::from_ns(10).expect("in range"));
        let missed = Missed { releases, first: 3, count: 5 };
        let counts = |at: u64| {
            let (before, after) = missed.split(Instant::from_ns(at));
            assert_eq!((before.first, after.first), (3, 3 + before.count));
            (before.count, after.count)
        };
        assert_eq!(counts(129), (0, 5));
        assert_eq!(counts(130), (1, 4));
        assert_eq!(counts(1_000), (5, 0));
    }
}
