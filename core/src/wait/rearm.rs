//! NIST's wait: called early again and again, and the last call spins.
//!
//! For the executive, and for comparison. *Timing jitter of real-time Linux and its effect on motor
//! control*, §3: a task of a short period A looks whether its release is more than A away, sleeps
//! again if so, and else polls. The short sleeps keep the CPU awake; on average half of A is spun.

use core::sync::atomic::{AtomicBool, Ordering};

use super::spin::Spinner;
use super::{Stalls, Wait, WaitStatus, WakePlan};
use crate::clock::Clock;
use crate::time::{Instant, Period, Span};

/// Short sleeps on a grid of their own, then a spin of at most one of them.
#[derive(Clone, Copy, Debug)]
pub struct Rearm {
    every: Period,
    spinner: Spinner,
}

impl Rearm {
    /// A wait that is called every `every`.
    ///
    /// # Real-time: setup only
    pub fn new(every: Period) -> Self {
        Self { every, spinner: Spinner::default() }
    }

    /// The A that costs the least CPU, √(T·S), for a period T and a cost S of one early call (NIST,
    /// equation 2); at least 1 ns.
    ///
    /// # Real-time: setup only
    pub fn best(period: Period, cost: Span) -> Period {
        let cost_ns = u128::from(cost.as_ns().unsigned_abs());
        let best = (u128::from(period.as_ns()) * cost_ns).isqrt();
        let ns = u64::try_from(best).unwrap_or(u64::MAX).clamp(1, period.as_ns());
        Period::from_ns(ns).unwrap_or(period)
    }
}

impl Wait for Rearm {
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let every_ns = self.every.as_ns();
        let mut now = clock.wake();
        while (release - now).as_ns() > 0 && (release - now).as_ns().unsigned_abs() > every_ns {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let next_ns = now.as_ns() - now.as_ns() % every_ns + every_ns;
            clock.sleep_until(Instant::from_ns(next_ns));
            now = clock.wake();
        }
        if now >= release {
            return Some(now);
        }
        self.spinner.spin(clock, now, release, stop)
    }

    fn status(&self) -> WaitStatus {
        let every_ns = self.every.as_ns();
        let plan = WakePlan { hop_ns: every_ns, hops: u32::MAX, margin_ns: every_ns };
        WaitStatus { plan, learned: None, paused: self.spinner.paused }
    }

    fn take_stalls(&mut self) -> Stalls {
        core::mem::take(&mut self.spinner.stalls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_interval_is_nists() {
        let best = |t, s| Rearm::best(Period::from_ns(t).expect("positive"), Span::from_ns(s));
        assert_eq!(best(500_000, 5_000).as_ns(), 50_000);
        assert_eq!(best(1_000, 0).as_ns(), 1);
        assert_eq!(best(1_000, i64::MAX).as_ns(), 1_000);
    }
}
