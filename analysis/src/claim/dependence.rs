//! How often thresholds were exceeded, and how much those exceedances came in clusters.
//!
//! The extremal index θ in (0, 1] (1: independent) by the intervals estimator of Ferro and Segers
//! (2003), streaming and in constant memory, at a ladder of thresholds fixed beforehand: 1-2-5
//! steps from 100 ns to 1 s, the caller's, and four quantiles of the first samples, so that there
//! is always a threshold inside the body. A threshold is touched only when the series crosses it.
//!
//! Missed releases count with their lateness ([`crate::release`]).

mod block;
mod places;
mod pooled;
mod tails;
mod watch;

pub use places::Separate;
pub use pooled::Pooled;
pub use tails::{Tails, ThresholdCount, ThresholdExceedances};
use watch::Watch;

use crate::release::{Falling, ReleaseGap, StartPlacement};

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
    /// Values pushed before the thresholds are chosen.
    warm_up: Vec<Pushed>,
    warm: bool,
    /// The period, ns; 0 when there is none.
    period_ns: i64,
}

/// What came next.
#[derive(Clone, Copy, Debug)]
enum Pushed {
    Ran(i64),
    Missed(ReleaseGap),
}

impl Exceedances {
    /// Watches the ladder and the given thresholds (ns), for cycles `period_ns` apart; 0 when there
    /// is no period, and then a missed release is later than any threshold.
    pub fn new(period_ns: i64, thresholds_ns: &[i64]) -> Self {
        let mut requested: Vec<i64> = ladder().chain(thresholds_ns.iter().copied()).collect();
        requested.sort_unstable();
        requested.dedup();
        Self {
            watches: requested.into_iter().map(|ns| Watch::new(ns, true)).collect(),
            starts: [0; 65],
            level: 0,
            index: 0,
            recorded: 0,
            gap_longest: 0,
            warm_up: Vec::new(),
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
    /// that was `before_ns` late. (How many count in all is given at the end.)
    #[inline]
    pub fn push(&mut self, lateness_ns: i64, missed: u64, before_ns: i64) {
        if missed > 0 {
            self.miss(ReleaseGap::new(missed, before_ns, lateness_ns, self.period_ns));
        }
        self.take(Pushed::Ran(lateness_ns));
    }

    /// Takes in the releases of a gap.
    pub(crate) fn miss(&mut self, gap: ReleaseGap) {
        self.take(Pushed::Missed(gap));
    }

    #[inline]
    fn take(&mut self, pushed: Pushed) {
        if self.warm {
            self.watch(pushed);
        } else {
            self.warm_up.push(pushed);
            if self.warm_up.len() == WARM_UP {
                self.choose();
            }
        }
    }

    /// Adds the adaptive thresholds and replays the buffered values.
    #[cold]
    fn choose(&mut self) {
        let held = std::mem::take(&mut self.warm_up);
        let ran = |pushed: &Pushed| match *pushed {
            Pushed::Ran(lateness_ns) => Some(lateness_ns),
            Pushed::Missed(_) => None,
        };
        let mut sorted: Vec<i64> = held.iter().filter_map(ran).collect();
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
        let lateness_ns = match pushed {
            Pushed::Ran(lateness_ns) => lateness_ns,
            Pushed::Missed(gap) => return self.watch_missed(&gap),
        };
        let level = self.level_of(lateness_ns);
        if level != self.level {
            self.move_to(level);
        }
        self.index = self.index.saturating_add(1);
        self.recorded += 1;
    }

    /// The missed releases, a threshold at a time.
    #[cold]
    fn watch_missed(&mut self, gap: &ReleaseGap) {
        self.gap_longest = self.gap_longest.max(gap.missed());
        for piece in gap.pieces() {
            self.each_level(piece, |watching, level, count| {
                watching.move_to(level);
                watching.index = watching.index.saturating_add(count);
            });
        }
    }

    /// Counts releases by how many thresholds they exceed, all that exceed the same ones at once.
    fn each_level(&mut self, mut piece: Falling, mut give: impl FnMut(&mut Self, usize, u64)) {
        while let Some(lateness_ns) = piece.next_ns() {
            let level = self.level_of(lateness_ns);
            let highest = level.checked_sub(1).map(|at| self.watches[at].threshold_ns());
            let alike_ns = highest.map_or(i64::MIN, |below| below.saturating_add(1));
            let count = piece.take_from(alike_ns).count();
            give(self, level, count);
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
        self.close();
        let censored = missed.saturating_sub(self.index.saturating_sub(self.recorded));
        let censored_from_ns = self.period_ns;
        let trailing = Vec::new();
        self.placed(missed, &StartPlacement { gaps: true, trailing, censored, censored_from_ns })
    }

    /// Ends the series.
    fn close(&mut self) {
        if !self.warm {
            self.choose();
        }
        self.move_to(0);
    }

    /// The same, where more is known about the releases that are in no gap.
    pub(crate) fn placed(mut self, missed: u64, placement: &StartPlacement) -> Pooled {
        self.close();
        for piece in placement.trailing.iter().flat_map(|end| end.pieces) {
            self.each_level(piece, |watching, level, count| {
                watching.watches[..level].iter_mut().for_each(|watch| watch.counts.miss(count));
            });
        }
        // Gaps that may not be missed releases have nothing censored: all of them count.
        let unplaced = if placement.gaps {
            placement.censored
        } else {
            missed.saturating_sub(self.index.saturating_sub(self.recorded))
        };
        Pooled {
            counts: self.watches.into_iter().map(|watch| watch.counts).collect(),
            releases: self.index,
            recorded: self.recorded,
            gap_longest: self.gap_longest,
            missed,
            unplaced,
            unplaced_from_ns: if self.period_ns > 0 { self.period_ns } else { i64::MAX },
        }
    }
}

#[cfg(test)]
mod tests;
