//! The releases of one period: the one type that says when cycle k is due.
//!
//! For loops, for tasks that run elsewhere, and for counters of missed releases. Pure arithmetic on
//! an exact fraction; reads no clock, and never adds a measured time to a planned one, so that no
//! error accumulates.

use crate::time::{Instant, Period, Span};

/// Releases at `origin + ⌊(base + k)·period⌋` for k = 0, 1, 2, … on CLOCK_MONOTONIC, or on the time
/// of a clock that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Releases {
    /// The instant of m = 0, where the exact fraction is whole.
    origin: Instant,
    /// The m of release 0, below the period's denominator: 0 for a period of whole nanoseconds.
    base: u64,
    period: Period,
}

impl Releases {
    /// Releases of which number 0 is at `first`.
    ///
    /// # Real-time: in loop
    pub const fn new(first: Instant, period: Period) -> Self {
        Self { origin: first, base: 0, period }
    }

    /// Releases at `phase + ⌊m·period⌋`, m = 0, 1, 2, …, of which number 0 is the first one at or
    /// after `not_before`. Separate processes with one period and phase agree on the instants
    /// without communication. A phase of a period or more is taken modulo the period.
    ///
    /// # Real-time: setup only
    pub const fn aligned(not_before: Instant, period: Period, phase_ns: u64) -> Self {
        let phase_ns = phase_ns % period.as_ns();
        let m = period.releases_below(not_before.as_ns().saturating_sub(phase_ns));
        // Whole rounds of the fraction go into the origin, so that numbers stay small.
        let (rounds, base) = (m / period.den(), m % period.den());
        let origin_ns = phase_ns.saturating_add(rounds.saturating_mul(period.num_ns()));
        Self { origin: Instant::from_ns(origin_ns), base, period }
    }

    /// The same, each so much later.
    ///
    /// # Real-time: in loop
    #[must_use]
    pub fn later(self, by: Span) -> Self {
        Self { origin: self.origin + by, ..self }
    }

    /// The instant of release 0.
    ///
    /// # Real-time: in loop
    pub const fn first(&self) -> Instant {
        self.release(0)
    }

    /// The distance of two releases; with a fractional one they lie up to 1 ns closer or farther.
    ///
    /// # Real-time: in loop
    pub const fn period(&self) -> Period {
        self.period
    }

    /// The phase of [`Releases::aligned`]: the offset from multiples of the period, ns.
    ///
    /// # Real-time: in loop
    pub const fn phase_ns(&self) -> u64 {
        self.origin.as_ns() % self.period.num_ns()
    }

    /// The instant of release `k`, saturating at the clock's end (584 years).
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn release(&self, k: u64) -> Instant {
        let offset_ns = self.period.offset_ns(self.base.saturating_add(k));
        Instant::from_ns(self.origin.as_ns().saturating_add(offset_ns))
    }

    /// The number of the first release at or after `at`, which is also the count of those before
    /// `at`.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn at_or_after(&self, at: Instant) -> u64 {
        let away_ns = at.as_ns().saturating_sub(self.origin.as_ns());
        self.period.releases_below(away_ns).saturating_sub(self.base)
    }

    /// The count of releases up to `now`, one at `now` included, which is also the number of the
    /// first one that is still to come.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn released(&self, now: Instant) -> u64 {
        if now.as_ns() < self.origin.as_ns() {
            return 0;
        }
        let after_ns = (now.as_ns() - self.origin.as_ns()).saturating_add(1);
        self.period.releases_below(after_ns).saturating_sub(self.base)
    }

    /// The cycle to run after `k`, which was still running at `now`: the next one, or, when that
    /// one's release has passed too, the first whose release is still to come.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn next(&self, k: u64, now: Instant) -> u64 {
        let following = k.saturating_add(1);
        if now.as_ns() < self.release(following).as_ns() {
            return following;
        }
        let to_come = self.released(now);
        if to_come > following { to_come } else { following }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIODS: [(u64, u64); 6] = [(7, 1), (10, 3), (7, 2), (9, 7), (1, 1), (1_000, 999)];

    fn instant(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    fn period(num: u64, den: u64) -> Period {
        Period::ratio(num, den).expect("in range")
    }

    #[test]
    fn releases_are_exact_after_a_billion_cycles() {
        let releases = Releases::new(instant(17), period(333_333, 1));
        assert_eq!(releases.release(1_000_000_000).as_ns(), 17 + 333_333_000_000_000);
        assert_eq!(releases.release(u64::MAX).as_ns(), u64::MAX);
        let far = Releases::new(instant(9), Period::from_ns(Period::MAX_NS).expect("in range"));
        assert_eq!(far.release(u64::MAX).as_ns(), u64::MAX);
        assert_eq!(far.released(instant(u64::MAX)), 4);
    }

    #[test]
    fn what_is_released_agrees_with_counting() {
        for (num, den) in PERIODS {
            for from in [0, 1, 50] {
                let kinds = [
                    Releases::new(instant(from), period(num, den)),
                    Releases::aligned(instant(from), period(num, den), 3),
                ];
                for releases in kinds {
                    for now in 0..300 {
                        let first = |found: &dyn Fn(u64) -> bool| {
                            (0..).find(|&k| found(releases.release(k).as_ns())).expect("unbounded")
                        };
                        let after = first(&|release| release > now);
                        assert_eq!(releases.released(instant(now)), after, "{releases:?} {now}");
                        let at = first(&|release| release >= now);
                        assert_eq!(releases.at_or_after(instant(now)), at, "{releases:?} {now}");
                    }
                }
            }
        }
    }

    #[test]
    fn next_agrees_with_counting_and_never_goes_back() {
        for (num, den) in PERIODS {
            let releases = Releases::aligned(instant(20), period(num, den), 1);
            for k in 0..10 {
                for now in 0..120 {
                    let slow = (k + 1..).find(|&j| releases.release(j) > instant(now));
                    assert_eq!(Some(releases.next(k, instant(now))), slow, "{num}/{den} {k} {now}");
                }
            }
        }
    }

    #[test]
    fn aligned_releases_meet_their_phase_and_begin_with_the_first() {
        for (num, den) in PERIODS {
            let period = period(num, den);
            for at in 0..60 {
                for phase in 0..20 {
                    let releases = Releases::aligned(instant(at), period, phase);
                    let phase = phase % period.as_ns();
                    let slow = (0..).map(|m| phase + period.offset_ns(m)).skip_while(|&ns| ns < at);
                    let listed = (0..20).map(|k| releases.release(k).as_ns());
                    assert!(listed.eq(slow.take(20)), "{period} from {at} at {phase}");
                    assert_eq!(releases.phase_ns(), phase);
                }
            }
        }
    }
}
