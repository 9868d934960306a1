//! The releases of one period that need not be whole nanoseconds.
//!
//! For a lone loop: pure arithmetic on the period as a fraction, so that no error accumulates;
//! reads no clock. With a denominator of 1 they are those of [`punctual_core::grid::Grid`].

use punctual_core::time::Instant;

use crate::periodic::Rate;

/// Releases at `phase + ⌊(first + k)·num/den⌋` on CLOCK_MONOTONIC for k = 0, 1, 2, …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Releases {
    rate: Rate,
    phase_ns: u64,
    first: u64,
}

impl Releases {
    /// Those of `rate` and `phase_ns`, of which release 0 is the first one at or after
    /// `not_before`. Separate processes with one rate and phase agree on them without talking.
    ///
    /// # Real-time: setup only
    pub fn aligned(rate: Rate, phase_ns: u64, not_before: Instant) -> Self {
        let from_zero = Self { rate, phase_ns, first: 0 };
        Self { first: from_zero.at_or_after(not_before), ..from_zero }
    }

    /// The instant of release `k`, saturating at the clock's end (584 years).
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn release(&self, k: u64) -> Instant {
        let n = self.first.saturating_add(k);
        let (num_ns, den) = (self.rate.num_ns(), self.rate.den());
        let offset_ns = if den == 1 {
            n.saturating_mul(num_ns)
        } else {
            let exact = u128::from(n) * u128::from(num_ns) / u128::from(den);
            u64::try_from(exact).unwrap_or(u64::MAX)
        };
        Instant::from_ns(self.phase_ns.saturating_add(offset_ns))
    }

    /// The cycle to run after `k`, which was still running at `now`: the next one, or, when that
    /// one's release has passed too, the first whose release is still to come.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn next(&self, k: u64, now: Instant) -> u64 {
        let following = k.saturating_add(1);
        if now < self.release(following) {
            return following;
        }
        let after = Instant::from_ns(now.as_ns().saturating_add(1));
        self.at_or_after(after).max(following)
    }

    /// The first release at or after `at`.
    fn at_or_after(&self, at: Instant) -> u64 {
        let away_ns = at.as_ns().saturating_sub(self.phase_ns);
        let (num_ns, den) = (u128::from(self.rate.num_ns()), u128::from(self.rate.den()));
        // ⌊n·num/den⌋ ≥ away when n·num/den is, for away is whole.
        let n = (u128::from(away_ns) * den).div_ceil(num_ns);
        u64::try_from(n).unwrap_or(u64::MAX).saturating_sub(self.first)
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::grid::Grid;
    use punctual_core::time::Period;

    use super::*;

    fn instant(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn whole_periods_are_those_of_a_grid() {
        for at in 0..60 {
            for phase in 0..7 {
                let releases =
                    Releases::aligned(Rate::new(7, 1).expect("rate"), phase, instant(at));
                let period = Period::from_ns(7).expect("positive");
                // A grid of the past begins below its phase; these begin at it.
                let grid = Grid::aligned(instant(at.max(phase)), period, phase);
                for k in 0..20 {
                    assert_eq!(releases.release(k), grid.release(k), "{at} {phase} {k}");
                    let now = instant(at + 3 * k);
                    assert_eq!(releases.next(k, now), grid.next(k, now), "{at} {phase} {k}");
                }
            }
        }
    }

    #[test]
    fn three_a_second_stay_three_a_second() {
        let releases = Releases::aligned(Rate::hertz(3).expect("rate"), 0, instant(0));
        assert_eq!(releases.release(1).as_ns(), 333_333_333);
        assert_eq!(releases.release(3_000_000).as_ns(), 1_000_000_000_000_000);
        assert_eq!(releases.release(u64::MAX).as_ns(), u64::MAX);
    }

    #[test]
    fn next_agrees_with_counting() {
        for (num, den) in [(10, 3), (7, 2), (5, 1), (9, 7)] {
            let rate = Rate::new(num, den).expect("rate");
            let releases = Releases::aligned(rate, 1, instant(20));
            assert!(releases.release(0) >= instant(20));
            for k in 0..10 {
                for now in 0..120 {
                    let slow = (k + 1..).find(|&j| releases.release(j) > instant(now));
                    assert_eq!(Some(releases.next(k, instant(now))), slow, "{num}/{den} {k} {now}");
                }
            }
        }
    }
}
