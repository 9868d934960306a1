//! From CLOCK_MONOTONIC to the grid's timescale and back: two straight lines that meet.
//!
//! For the clock that a followed grid runs on. Pure integer arithmetic; saturates at the clock's
//! ends.

use crate::time::Instant;

/// Parts in a whole, for rates.
pub const PPB: i64 = 1_000_000_000;

/// The grid's time as a function of CLOCK_MONOTONIC: before the bend with one rate, after it with
/// another, and at the bend with one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// Where it bends, on CLOCK_MONOTONIC.
    pub at: Instant,
    /// The grid's time there.
    pub grid: Instant,
    /// By how much the grid's time runs faster than CLOCK_MONOTONIC until then, in parts of 10⁹.
    pub before_ppb: i64,
    /// And from then on.
    pub after_ppb: i64,
}

impl Map {
    /// The map that shifts by a constant.
    ///
    /// # Real-time: in loop
    pub const fn shifted(monotonic: Instant, grid: Instant) -> Self {
        Self { at: monotonic, grid, before_ppb: 0, after_ppb: 0 }
    }

    /// The grid's time at an instant of CLOCK_MONOTONIC, rounded down.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn grid(&self, monotonic: Instant) -> Instant {
        let away = (monotonic - self.at).as_ns();
        let ppb = if away < 0 { self.before_ppb } else { self.after_ppb };
        let bent = (i128::from(away) * i128::from(ppb)).div_euclid(i128::from(PPB));
        shift(self.grid, i128::from(away) + bent)
    }

    /// The first instant of CLOCK_MONOTONIC at which the grid's time is `grid`.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn monotonic(&self, grid: Instant) -> Instant {
        let away = i128::from((grid - self.grid).as_ns());
        let ppb = if away <= 0 { self.before_ppb } else { self.after_ppb };
        let whole = i128::from(PPB) + i128::from(ppb);
        let numerator = away * i128::from(PPB);
        // Rounded up: never before it.
        shift(self.at, -((-numerator).div_euclid(whole.max(1))))
    }

    /// The same map, with another rate from `at` on, which is not before its own bend.
    ///
    /// # Real-time: in loop
    #[must_use]
    pub fn bent(&self, at: Instant, after_ppb: i64) -> Self {
        let at = at.max(self.at);
        Self { at, grid: self.grid(at), before_ppb: self.after_ppb, after_ppb }
    }
}

fn shift(from: Instant, by: i128) -> Instant {
    let ns = (i128::from(from.as_ns()) + by).clamp(0, i128::from(u64::MAX));
    Instant::from_ns(ns as u64)
}
