//! Releases that never ran, as values of lateness: what a page counts of them.
//!
//! For the page's writer. Bounded work however many were missed: few are looked at one by one, many
//! bucket by bucket; both agree with [`Missed::lateness`]. Pure arithmetic.

use crate::bucket::{self, BucketPlace};
use crate::cycle::Missed;
use crate::time::{Instant, Span};

/// Up to so many are looked at one by one: each then has its exact lateness, also in the sum.
const SINGLY: u64 = 64;

/// Missed releases that one start followed.
pub(super) struct Waited {
    missed: Missed,
    /// The task's first start at or after them.
    start: Instant,
}

impl Waited {
    /// Those `missed`, where the task's first start at or after them was at `start`; `None` where
    /// there are none.
    pub(super) fn new(missed: Missed, start: Instant) -> Option<Self> {
        (missed.count > 0).then_some(Self { missed, start })
    }

    /// Lateness of release `k`, ns.
    fn ns(&self, k: u64) -> i64 {
        self.missed.lateness(k, self.start).as_ns()
    }

    /// The number of the last one.
    fn last(&self) -> u64 {
        self.missed.first + self.missed.count - 1
    }

    /// The smallest and the largest lateness.
    pub(super) fn extremes(&self) -> (Span, Span) {
        let lateness = |k| self.missed.lateness(k, self.start);
        (lateness(self.last()), lateness(self.missed.first))
    }

    /// The sum of all lateness, ns, wrapping; of more than a few to half a nanosecond each.
    pub(super) fn sum_ns(&self) -> i64 {
        let Missed { releases, first, count } = self.missed;
        if count <= SINGLY {
            return (0..count).fold(0i64, |sum, k| sum.wrapping_add(self.ns(first + k)));
        }
        // Only the last one may be within a period of the start.
        let since_ns = (self.start - releases.release(self.last())).as_ns();
        let ends = i128::from(self.ns(first)) + i128::from(since_ns);
        (ends * i128::from(count) / 2) as i64 + (self.ns(self.last()) - since_ns)
    }

    /// Passes to `put` how many of them belong into each place of the histogram.
    pub(super) fn places(&self, mut put: impl FnMut(BucketPlace, u64)) {
        let Missed { releases, first, count } = self.missed;
        if count <= SINGLY {
            (0..count).for_each(|k| put(bucket::index(self.ns(first + k)), 1));
            return;
        }
        // Lateness falls from one release to the next: each bucket holds a run of them.
        let end = first + count;
        let mut left = count;
        // Those that are at least so late: released by start − lateness.
        let at_least = |lateness_ns: u64| {
            let latest = self.start.as_ns().checked_sub(lateness_ns).map(Instant::from_ns);
            let released = latest.map_or(0, |latest| releases.released(latest));
            released.clamp(first, end) - first
        };
        let above = at_least(bucket::bounds(bucket::COUNT - 1).1).min(left);
        if above > 0 {
            put(BucketPlace::Above, above);
            left -= above;
        }
        let lowest = match bucket::index(self.ns(end - 1)) {
            BucketPlace::In(at) => at,
            BucketPlace::Below | BucketPlace::Above => 0,
        };
        let mut at = bucket::COUNT;
        while left > 0 && at > lowest {
            at -= 1;
            let (low_ns, _) = bucket::bounds(at);
            // A release within the last period is late by a period all the same.
            let down_to_low = if at == lowest { count } else { at_least(low_ns) };
            let inside = down_to_low.saturating_sub(count - left).min(left);
            if inside > 0 {
                put(BucketPlace::In(at), inside);
                left -= inside;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::releases::Releases;
    use crate::time::Period;

    /// One by one, from the definition.
    fn slowly(missed: &Missed, start: Instant) -> BTreeMap<i64, u64> {
        let mut latenesses = BTreeMap::new();
        for k in missed.first..missed.first + missed.count {
            let late =
                start.as_ns().cast_signed() - missed.releases.release(k).as_ns().cast_signed();
            let late = late.max(missed.releases.period().as_ns().cast_signed());
            *latenesses.entry(late).or_insert(0) += 1;
        }
        latenesses
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
                    let waited = Waited::new(missed, start).expect("not empty");
                    let mut placed = BTreeMap::new();
                    waited.places(|place, n| *placed.entry(key(place)).or_insert(0) += n);
                    let mut slowly = BTreeMap::new();
                    for (&late, &n) in &slow {
                        *slowly.entry(key(bucket::index(late))).or_insert(0u64) += n;
                    }
                    assert_eq!(
                        placed, slowly,
                        "{count} of {period}, start {after} ns after the last"
                    );
                    let (min, max) = waited.extremes();
                    let ends = slow.first_key_value().zip(slow.last_key_value());
                    let ((first, _), (last, _)) = ends.expect("not empty");
                    assert_eq!((max.as_ns(), min.as_ns()), (*last, *first));
                    let sum: i64 = slow.iter().map(|(&late, &n)| late * n.cast_signed()).sum();
                    let off = (waited.sum_ns() - sum).unsigned_abs();
                    assert!(off <= if count <= SINGLY { 0 } else { count + num }, "off by {off}");
                }
            }
        }
    }

    fn key(place: BucketPlace) -> i64 {
        match place {
            BucketPlace::Below => -1,
            BucketPlace::In(at) => at as i64,
            BucketPlace::Above => i64::MAX,
        }
    }

    #[test]
    fn an_hour_is_as_quick_as_a_second_and_nothing_is_lost() {
        let period = Period::from_ns(10_000).expect("in range");
        let releases = Releases::new(Instant::from_ns(0), period);
        let missed = Missed { releases, first: 1, count: 360_000_000 };
        let start = releases.release(360_000_001);
        let waited = Waited::new(missed, start).expect("not empty");
        let (mut total, mut calls) = (0, 0);
        waited.places(|_, n| {
            total += n;
            calls += 1;
        });
        assert_eq!(total, missed.count);
        assert!(calls <= bucket::COUNT + 1);
    }
}
