//! The releases that were missed at the end of a segment, after its last cycle.
//!
//! A recorder says how many releases were missed in all; those that lie in no gap came after the
//! last cycle of some segment. Where that cycle woke late they passed before its wake, which shows
//! their lateness; the others are censored. Bounded memory.

use super::gap::{Falling, after_stall, counted};

/// The most ends that are kept: the latest.
const ENDS_MAX: usize = 1_024;

/// Releases that were missed after the last cycle of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailing {
    /// That cycle: they follow it, one after the other.
    pub after: u64,
    /// Their latenesses: in falling steps, then one that was late by a period at least.
    pub pieces: [Falling; 2],
}

/// The last cycles of segments, where releases may have passed before their wake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Lateness and cycle, in falling order of lateness.
    late: Vec<(i64, u64)>,
}

impl Ends {
    /// A segment ended with this cycle.
    pub(crate) fn push(&mut self, cycle: u64, lateness_ns: i64, period_ns: i64) {
        if period_ns > 0 && lateness_ns >= period_ns {
            let at = self.late.partition_point(|&(ns, _)| ns >= lateness_ns);
            self.late.insert(at, (lateness_ns, cycle));
            self.late.truncate(ENDS_MAX);
        }
    }

    /// The latenesses of `missed` releases that lie in no gap, and how many of them are censored.
    /// Where more may have passed than were missed the latest that there can have been are taken.
    pub(crate) fn place(&self, missed: u64, period_ns: i64) -> (Vec<Trailing>, u64) {
        let period = i128::from(period_ns);
        let of = |&(late_ns, after): &(i64, u64), most| Trailing {
            after,
            pieces: after_stall(i128::from(late_ns), period, most),
        };
        let all: Vec<Trailing> = self.late.iter().map(|end| of(end, u64::MAX)).collect();
        let counts = all.iter().flat_map(|end| end.pieces.iter().map(Falling::count));
        let total = counts.fold(0, u64::saturating_add);
        if total <= missed {
            return (all, missed - total);
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
            placed.push(of(end, many));
        }
        placed.retain(|end| end.pieces[0].count() + end.pieces[1].count() > 0);
        (placed, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The latenesses, in falling order.
    fn placed(ends: &Ends, missed: u64, period_ns: i64) -> (Vec<i64>, u64) {
        let (placed, censored) = ends.place(missed, period_ns);
        let mut all = Vec::new();
        for mut piece in placed.into_iter().flat_map(|end| end.pieces) {
            while let Some(ns) = piece.next_ns() {
                piece.take(1);
                all.push(ns);
            }
        }
        all.sort_unstable_by(|a, b| b.cmp(a));
        (all, censored)
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
            let mut all: Vec<i64> = late_ns.iter().flat_map(passed).collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            let censored = missed.saturating_sub(all.len() as u64);
            all.truncate(missed as usize);
            let all: Vec<i64> = all.into_iter().map(|ns| ns.max(period)).collect();
            prop_assert_eq!(placed(&late, missed, period), (all, censored));
        }
    }
}
