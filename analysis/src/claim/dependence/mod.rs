//! How often thresholds were exceeded, and how much those exceedances came in clusters.
//!
//! The extremal index θ in (0, 1] (1: independent) by the intervals estimator of Ferro and Segers
//! (2003), streaming and in constant memory, at a ladder of thresholds fixed beforehand: 1-2-5
//! steps from 100 ns to 1 s, the caller's, and four quantiles of the first samples, so that there
//! is always a threshold inside the body. A threshold is touched only when the series crosses it.
//!
//! A missed release never ran, so it has no lateness of its own. It is given the one that it would
//! have had at the wake that ended the stall: the stalled cycle's, less the periods in between. And
//! at least one period, for a loop of that period gained nothing from it.

mod placed;
mod pooled;
mod stretch;
mod tails;
mod watch;

pub use pooled::Pooled;
pub use tails::{Tail, Tails};
use watch::Watch;

pub(crate) use placed::Placed;

/// How many first samples choose the adaptive thresholds.
const WARM_UP: usize = 4_096;
/// Their quantiles, in thousandths.
const ADAPTIVE: [usize; 4] = [500, 900, 990, 999];

/// The thresholds of the ladder: 100 ns, 200 ns, 500 ns … 1 s.
pub fn ladder() -> impl Iterator<Item = i64> {
    (2..=9)
        .flat_map(|decade| [1, 2, 5].map(|step| step * 10i64.pow(decade)))
        .filter(|&ns| ns <= 1_000_000_000)
}

/// The accumulator: push latenesses, then finish.
#[derive(Clone, Debug)]
pub struct Exceedances {
    watches: Vec<Watch>,
    /// For each number of significant bits: the first threshold a positive value might not exceed.
    starts: [u16; 65],
    /// How many thresholds the last release exceeded.
    level: usize,
    /// Releases so far, missed ones included; and recorded cycles so far.
    index: u64,
    recorded: u64,
    /// The most releases without a sample between two recorded cycles.
    gap_longest: u64,
    /// What was pushed until the thresholds are chosen.
    warm_up: Vec<Pushed>,
    warm: bool,
    /// The period, ns; 0 when there is none.
    period_ns: i64,
}

/// One recorded cycle, and the releases missed just before it.
#[derive(Clone, Copy, Debug)]
struct Pushed {
    lateness_ns: i64,
    missed: u64,
    /// Lateness of the cycle that they were missed after.
    stalled_ns: i64,
}

impl Exceedances {
    /// Watches the ladder and the given thresholds (ns), for cycles `period_ns` apart; 0 when there
    /// is no period, and then a missed release is later than any threshold.
    pub fn new(period_ns: i64, thresholds_ns: &[i64]) -> Self {
        let mut asked: Vec<i64> = ladder().chain(thresholds_ns.iter().copied()).collect();
        asked.sort_unstable();
        asked.dedup();
        Self {
            watches: asked.into_iter().map(|ns| Watch::new(ns, true)).collect(),
            starts: [0; 65],
            level: 0,
            index: 0,
            recorded: 0,
            gap_longest: 0,
            warm_up: Vec::with_capacity(WARM_UP),
            warm: false,
            period_ns,
        }
    }

    /// Watches the thresholds of `pooled`, so that the counts can be added to it. Where that has
    /// none yet, as [`Self::new`].
    pub fn like(period_ns: i64, pooled: &Pooled) -> Self {
        let mut like = Self::new(period_ns, &[]);
        if !pooled.counts.is_empty() {
            like.watches = pooled.counts.iter().map(Watch::like).collect();
            like.warm_up = Vec::new();
            like.begin();
        }
        like
    }

    /// Takes in one recorded cycle, and how many releases were missed just before it, after a cycle
    /// that was `stalled_ns` late. (How many count in all is given at the end.)
    #[inline]
    pub fn push(&mut self, lateness_ns: i64, missed: u64, stalled_ns: i64) {
        let pushed = Pushed { lateness_ns, missed, stalled_ns };
        if self.warm {
            self.watch(pushed);
        } else {
            self.warm_up.push(pushed);
            if self.warm_up.len() == WARM_UP {
                self.choose();
            }
        }
    }

    /// Adds the adaptive thresholds and replays what was held back.
    #[cold]
    fn choose(&mut self) {
        let held = std::mem::take(&mut self.warm_up);
        let mut sorted: Vec<i64> = held.iter().map(|held| held.lateness_ns).collect();
        sorted.sort_unstable();
        if !sorted.is_empty() {
            for share in ADAPTIVE {
                let threshold_ns = sorted[(sorted.len() - 1) * share / 1000];
                let at = self.watches.binary_search_by_key(&threshold_ns, |w| w.threshold_ns());
                if let Err(at) = at {
                    self.watches.insert(at, Watch::new(threshold_ns, false));
                }
            }
        }
        self.begin();
        held.into_iter().for_each(|pushed| self.watch(pushed));
    }

    /// The thresholds are fixed: from here on they are watched.
    fn begin(&mut self) {
        for (bits, start) in self.starts.iter_mut().enumerate() {
            // A value of `bits` significant bits is at least 2^(bits − 1).
            let least = if bits == 0 { 0 } else { 1u64 << (bits - 1) };
            let below = |w: &Watch| w.threshold_ns() < 0 || w.threshold_ns().unsigned_abs() < least;
            *start = u16::try_from(self.watches.partition_point(below)).unwrap_or(0);
        }
        self.warm = true;
    }

    /// How many thresholds a value exceeds.
    #[inline]
    fn level_of(&self, lateness_ns: i64) -> usize {
        let mut level = if lateness_ns > 0 {
            usize::from(self.starts[64 - lateness_ns.leading_zeros() as usize])
        } else {
            0
        };
        while self.watches.get(level).is_some_and(|watch| lateness_ns > watch.threshold_ns()) {
            level += 1;
        }
        level
    }

    #[inline]
    fn watch(&mut self, pushed: Pushed) {
        if pushed.missed > 0 {
            self.watch_missed(pushed);
        }
        let level = self.level_of(pushed.lateness_ns);
        if level != self.level {
            self.move_to(level);
        }
        self.index = self.index.saturating_add(1);
        self.recorded += 1;
    }

    /// The missed releases, a threshold at a time.
    fn watch_missed(&mut self, Pushed { missed, stalled_ns, .. }: Pushed) {
        self.gap_longest = self.gap_longest.max(missed);
        let mut placed = Placed::new(missed, stalled_ns, self.period_ns);
        while let Some(lateness_ns) = placed.lateness_ns() {
            let level = self.level_of(lateness_ns);
            self.move_to(level);
            // All that exceed the same thresholds, at once.
            let highest = level.checked_sub(1).map(|at| self.watches[at].threshold_ns());
            let alike_ns = highest.map_or(i64::MIN, |below| below.saturating_add(1));
            self.index = self.index.saturating_add(placed.take(alike_ns));
        }
    }

    fn move_to(&mut self, level: usize) {
        let (index, recorded) = (self.index, self.recorded);
        if level > self.level {
            self.watches[self.level..level].iter_mut().for_each(|watch| watch.up(index, recorded));
        } else {
            self.watches[level..self.level]
                .iter_mut()
                .for_each(|watch| watch.down(index, recorded));
        }
        self.level = level;
    }

    /// The exceedances, with the number of releases that were really missed.
    pub fn finish(self, missed: u64) -> Tails {
        self.finish_with(missed, 0)
    }

    /// The same, where `unrecorded` more cycles ran: each may have been later than any threshold.
    pub fn finish_with(self, missed: u64, unrecorded: u64) -> Tails {
        self.counted(missed).tails(unrecorded)
    }

    /// The same as counts, to be added to those of other recordings.
    pub fn counted(mut self, missed: u64) -> Pooled {
        if !self.warm {
            self.choose();
        }
        self.move_to(0);
        Pooled {
            counts: self.watches.into_iter().map(|watch| watch.counts).collect(),
            releases: self.index,
            recorded: self.recorded,
            gap_longest: self.gap_longest,
            missed,
            unplaced: missed.saturating_sub(self.index.saturating_sub(self.recorded)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tails(latenesses: impl IntoIterator<Item = i64>, asked: &[i64]) -> Tails {
        let mut exceedances = Exceedances::new(0, asked);
        latenesses.into_iter().for_each(|ns| exceedances.push(ns, 0, 0));
        exceedances.finish(0)
    }

    #[test]
    fn the_ladder_holds_a_tenth_of_every_period() {
        let ladder: Vec<i64> = ladder().collect();
        assert_eq!((ladder[0], ladder[1], ladder[ladder.len() - 1]), (100, 200, 1_000_000_000));
        assert!(crate::verdict::periods_ns().all(|ns| ladder.contains(&(ns / 10))));
    }

    #[test]
    fn neighbours_are_a_cluster_and_loners_are_not() {
        // Bursts of ten late cycles at irregular distances: θ = 1/10. One every 50: no dependence.
        let mut state = 1u64;
        let clustered = (0..5_000).flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let is_late = (state >> 33).is_multiple_of(50);
            [if is_late { 90_000 } else { 5_000 }; 10]
        });
        let theta = tails(clustered, &[]).theta_at(50_000);
        assert!((0.06..=0.11).contains(&theta), "{theta}");
        let alone = (0..50_000).map(|i| if i % 50 == 0 { 90_000 } else { 5_000 });
        let theta = tails(alone, &[]).theta_at(50_000);
        assert!(theta > 0.9, "{theta}");
    }

    #[test]
    fn one_burst_among_many_cycles_counts_as_one() {
        let burst = (0..100_000).map(|i| if (500..540).contains(&i) { 90_000 } else { 5_000 });
        let tails = tails(burst, &[]);
        assert_eq!(tails.exceedances(50_000), Some(40));
        assert!(tails.theta_at(50_000) <= 1.0 / 40.0);
        // A threshold that everything exceeds says nothing about dependence.
        assert_eq!(tails.theta_at(2_000), 1.0);
    }

    #[test]
    fn a_gap_of_missed_releases_is_one_cluster() {
        let mut exceedances = Exceedances::new(0, &[]);
        (0..10_000)
            .for_each(|i| exceedances.push(5_000, if i % 1_000 == 999 { 20 } else { 0 }, 5_000));
        let tails = exceedances.finish(200);
        assert_eq!((tails.n(), tails.exceedances(1_000_000)), (10_200, Some(200)));
        assert!(tails.theta_at(1_000_000) <= 0.05, "{}", tails.theta_at(1_000_000));
    }

    #[test]
    fn cycles_that_went_unrecorded_may_all_have_been_late_and_together() {
        let lost = |unrecorded| {
            let mut exceedances = Exceedances::new(1_000_000, &[]);
            (0..10_000).for_each(|i| exceedances.push(5_000, if i == 4_000 { 40 } else { 0 }, 0));
            exceedances.finish_with(40 - unrecorded, unrecorded)
        };
        let (none, some) = (lost(0), lost(30));
        assert_eq!((none.n(), some.n()), (10_040, 10_040));
        // A missed release is a period late at least; of one that nobody saw nothing is known, nor
        // which of the forty were missed.
        assert_eq!(none.exceedances(2_000_000), Some(0));
        assert_eq!(some.exceedances(2_000_000), Some(40));
        assert_eq!(some.exceedances_within(2_000_000), (0, 40));
        assert_eq!(some.exceedances_within(500_000), (10, 40));
        assert!(none.theta_at(2_000_000) == 1.0 && some.theta_at(2_000_000) <= 1.0 / 40.0);
        let p = |tails: &Tails| tails.p_upper(2_000_000).unwrap();
        assert!(p(&none) < 1e-3 && p(&some) > 40.0 / 10_040.0, "{} {}", p(&none), p(&some));
    }

    #[test]
    fn a_missed_release_is_as_late_as_what_was_left_of_the_stall() {
        // 10.4 ms late at 1 ms: ten releases went by, 9.4 to 0.4 ms before the wake.
        let mut exceedances = Exceedances::new(1_000_000, &[]);
        exceedances.push(10_400_000, 0, 0);
        exceedances.push(5_000, 10, 10_400_000);
        let tails = exceedances.finish(10);
        let above = |ns| tails.exceedances(ns);
        assert_eq!(
            (above(10_000_000), above(5_000_000), above(2_000_000)),
            (Some(1), Some(6), Some(9))
        );
        // To a loop of this period, or a shorter one, all of them were lost.
        assert_eq!((above(500_000), above(100_000)), (Some(11), Some(11)));
    }

    proptest! {
        #[test]
        fn missed_releases_agree_with_replaying_them(
            period in 1i64..2_000_000,
            cycles in prop::collection::vec((0i64..20_000_000, 0u64..30), 1..300),
            trailing in 0u64..5,
        ) {
            let mut exceedances = Exceedances::new(period, &[]);
            let (mut all, mut previous, mut missed) = (Vec::new(), 0, trailing);
            for (at, &(ns, before)) in cycles.iter().enumerate() {
                let before = if at == 0 { 0 } else { before };
                exceedances.push(ns, before, previous);
                all.extend((1..=before as i64).map(|j| (previous - j * period).max(period)));
                all.push(ns);
                (previous, missed) = (ns, missed + before);
            }
            let tails = exceedances.finish(missed);
            prop_assert_eq!(tails.n(), all.len() as u64 + trailing);
            for tail in tails.tails() {
                let counted = all.iter().filter(|&&ns| ns > tail.threshold_ns).count() as u64;
                prop_assert_eq!(tails.exceedances(tail.threshold_ns), Some(counted + trailing));
            }
        }

        #[test]
        fn counts_agree_with_counting(
            values in prop::collection::vec(
                prop_oneof![-500i64..500, 0i64..2_000_000, any::<i64>()],
                0..6_000,
            ),
            asked in prop::collection::vec(-1_000i64..1_000_000, 0..4),
        ) {
            let tails = tails(values.iter().copied(), &asked);
            prop_assert!(tails.tails().is_sorted_by(|a, b| a.threshold_ns < b.threshold_ns));
            for tail in tails.tails() {
                let counted = values.iter().filter(|&&ns| ns > tail.threshold_ns).count();
                prop_assert_eq!(tail.exceedances, counted as u64);
                let theta = tails.theta_at(tail.threshold_ns);
                prop_assert!(theta > 0.0 && theta <= 1.0);
            }
            prop_assert!(asked.iter().all(|&ns| tails.exceedances(ns).is_some()));
        }
    }
}
