//! The grid: all releases of one period, as exact integers.
//!
//! For whoever asks when cycle k is due, or which cycle is next. Touches nothing; never adds a
//! measured time to a planned one, so that no error accumulates.

use crate::time::{Instant, Period};

/// Releases at `epoch + k·period` for k = 0, 1, 2, … on CLOCK_MONOTONIC, or on the time of a clock
/// that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    epoch: Instant,
    period: Period,
}

impl Grid {
    /// The grid whose release 0 is at `epoch`.
    ///
    /// # Real-time: setup only
    pub const fn new(epoch: Instant, period: Period) -> Self {
        Self { epoch, period }
    }

    /// The grid of releases at `m·period + phase` on CLOCK_MONOTONIC, m integer, whose release 0 is
    /// the first one at or after `not_before`. Separate processes with one period and phase agree
    /// on it without talking.
    ///
    /// # Real-time: setup only
    pub const fn aligned(not_before: Instant, period: Period, phase_ns: u64) -> Self {
        let (at, step) = (not_before.as_ns(), period.as_ns());
        let phase = phase_ns % step;
        let past = (at % step + step - phase) % step;
        let epoch = if past == 0 { at } else { at.saturating_add(step - past) };
        Self { epoch: Instant::from_ns(epoch), period }
    }

    /// The instant of release 0.
    ///
    /// # Real-time: in loop
    pub const fn epoch(&self) -> Instant {
        self.epoch
    }

    /// The distance of two releases.
    ///
    /// # Real-time: in loop
    pub const fn period(&self) -> Period {
        self.period
    }

    /// The offset of the grid within its period on CLOCK_MONOTONIC, in [0, period) ns.
    ///
    /// # Real-time: in loop
    pub const fn phase_ns(&self) -> u64 {
        self.epoch.as_ns() % self.period.as_ns()
    }

    /// The instant of release `cycle`, saturating at the clock's end (584 years).
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn release(&self, cycle: u64) -> Instant {
        Instant::from_ns(
            self.epoch.as_ns().saturating_add(cycle.saturating_mul(self.period.as_ns())),
        )
    }

    /// The first cycle whose release is at or after `at`.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn cycle_at(&self, at: Instant) -> u64 {
        at.as_ns().saturating_sub(self.epoch.as_ns()).div_ceil(self.period.as_ns())
    }

    /// The cycle to run after `cycle`, which was still running at `now`: the next one, or, when
    /// that one's release has passed too, the first whose release is still to come. All between
    /// are missed.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn next(&self, cycle: u64, now: Instant) -> u64 {
        let following = cycle.saturating_add(1);
        if now.as_ns() < self.release(following).as_ns() {
            return following;
        }
        (now.as_ns() - self.epoch.as_ns()) / self.period.as_ns() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(epoch_ns: u64, period_ns: u64) -> Grid {
        Grid::new(Instant::from_ns(epoch_ns), Period::from_ns(period_ns).expect("positive"))
    }

    #[test]
    fn releases_are_exact_after_a_billion_cycles() {
        let grid = grid(17, 333_333);
        assert_eq!(grid.release(1_000_000_000).as_ns(), 17 + 333_333_000_000_000);
        assert_eq!(grid.release(u64::MAX).as_ns(), u64::MAX);
    }

    #[test]
    fn next_agrees_with_counting() {
        let grid = grid(100, 10);
        for cycle in 0..5 {
            for now in 100..200 {
                let slow = (cycle + 1..).find(|&k| 100 + k * 10 > now).expect("unbounded");
                assert_eq!(grid.next(cycle, Instant::from_ns(now)), slow, "{cycle} at {now}");
            }
        }
    }

    #[test]
    fn a_wake_before_its_release_does_not_go_back() {
        assert_eq!(grid(100, 10).next(3, Instant::from_ns(5)), 4);
    }

    #[test]
    fn cycle_at_agrees_with_counting() {
        let grid = grid(100, 10);
        for at in 0..200 {
            let slow = (0..).find(|&k| 100 + k * 10 >= at).expect("unbounded");
            assert_eq!(grid.cycle_at(Instant::from_ns(at)), slow, "at {at}");
        }
    }

    #[test]
    fn aligned_meets_its_phase_and_is_the_first_such() {
        let period = Period::from_ns(7).expect("positive");
        for at in 0..50 {
            for phase in 0..20 {
                let grid = Grid::aligned(Instant::from_ns(at), period, phase);
                let epoch = grid.epoch().as_ns();
                assert_eq!(grid.phase_ns(), phase % 7);
                assert!(epoch >= at && epoch < at + 7, "{epoch} from {at}");
            }
        }
    }
}
