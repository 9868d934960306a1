//! The releases of one task as exact fractions: when cycle k is, and which cycle is the last by
//! now.
//!
//! For seats, on both sides. Touches nothing; adds no measured time to a planned one.

use crate::table::PERIOD_MAX_NS;
use crate::time::Instant;

/// Releases at `first + ⌊k · num / den⌋` ns for k = 0, 1, 2, …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    first: Instant,
    num_ns: u64,
    den: u64,
}

impl Timeline {
    /// Cycle 0 at `first`, a period of `num_ns / den` ns; `None` when that is below 1 ns or above
    /// [`PERIOD_MAX_NS`].
    ///
    /// # Real-time: setup only
    pub const fn new(first: Instant, num_ns: u64, den: u64) -> Option<Self> {
        if den == 0 || den > PERIOD_MAX_NS {
            return None;
        }
        let whole = num_ns / den;
        if whole == 0 || whole > PERIOD_MAX_NS {
            return None;
        }
        Some(Self { first, num_ns, den })
    }

    /// The instant of cycle 0.
    ///
    /// # Real-time: in loop
    pub const fn first(&self) -> Instant {
        self.first
    }

    /// The period's numerator, ns.
    ///
    /// # Real-time: in loop
    pub const fn num_ns(&self) -> u64 {
        self.num_ns
    }

    /// The period's denominator.
    ///
    /// # Real-time: in loop
    pub const fn den(&self) -> u64 {
        self.den
    }

    /// The period, ns, rounded down.
    ///
    /// # Real-time: in loop
    pub const fn whole_ns(&self) -> u64 {
        self.num_ns / self.den
    }

    /// When cycle `k` is released, saturating at the clock's end.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn release(&self, k: u64) -> Instant {
        let since = if self.den == 1 {
            k.saturating_mul(self.num_ns)
        } else {
            let exact = k as u128 * self.num_ns as u128 / self.den as u128;
            if exact > u64::MAX as u128 { u64::MAX } else { exact as u64 }
        };
        Instant::from_ns(self.first.as_ns().saturating_add(since))
    }

    /// How many cycles are released by `now`: the number of the first that is still to come.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn released(&self, now: Instant) -> u64 {
        let Some(since) = now.as_ns().checked_sub(self.first.as_ns()) else { return 0 };
        if self.den == 1 {
            return (since / self.num_ns).saturating_add(1);
        }
        // ⌊k·num/den⌋ ≤ since  ⟺  k·num < (since + 1)·den.
        let below = (since as u128 + 1) * self.den as u128;
        below.div_ceil(self.num_ns as u128) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_counts_what_release_says() {
        for (num, den) in [(7, 1), (10, 3), (1_000, 999), (1, 1)] {
            let timeline = Timeline::new(Instant::from_ns(50), num, den).expect("in range");
            for now in 0..400 {
                let now = Instant::from_ns(now);
                let slow = (0..).find(|&k| timeline.release(k) > now).expect("unbounded");
                assert_eq!(timeline.released(now), slow, "{num}/{den} at {now:?}");
            }
        }
    }

    #[test]
    fn only_periods_in_range() {
        let made = |num, den| Timeline::new(Instant::from_ns(0), num, den).is_some();
        assert!(!made(0, 1) && !made(1, 2) && !made(1, 0) && !made(u64::MAX, 1));
        assert!(!made(u64::MAX, u64::MAX) && made(PERIOD_MAX_NS, 1));
        let far = Timeline::new(Instant::from_ns(9), PERIOD_MAX_NS, 1).expect("in range");
        assert_eq!(far.release(u64::MAX).as_ns(), u64::MAX);
        assert_eq!(far.released(Instant::from_ns(u64::MAX)), 4);
    }
}
