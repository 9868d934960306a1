//! A sleep that ends a constant time early, also by way of a short one, then a spin.
//!
//! For the gate of a loop, the executive, and the waits that spin at their end. Distinguishes gaps
//! in the spin, in which the CPU was elsewhere, from a late wake.

use core::sync::atomic::{AtomicBool, Ordering};

use super::{PausedSpin, Stalls, Wait, WaitStatus, WakePlan};
use crate::clock::Clock;
use crate::time::{Instant, Span};

/// The last of a spin, in which the processor gets no hint that it spins: the hint takes tens of
/// ns, a poll 10 to 30, and the exit scatters by what lies between two polls.
const NEAR: Span = Span::from_us(1);

/// The longest pause of the processor: a stop is seen after it.
const PAUSE: Span = Span::from_us(100);

/// A sleep that ends `margin` before the release, or a long one and a short one that does, then a
/// spin up to it.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    plan: WakePlan,
    spinner: Spinner,
}

/// Spins, and counts the gaps and the pauses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spinner {
    pub(super) stalls: Stalls,
    pub(super) paused: PausedSpin,
}

impl Spin {
    /// A gap between two polls that counts as a stall: an order of magnitude above the cost of a
    /// poll (10 to 30 ns), below the shortest interrupt (about 1 µs).
    pub const STALL: Span = Span::from_us(1);

    /// After a gap longer than this the clock is anchored anew: the machine may have been
    /// suspended, in which time a counter goes on and CLOCK_MONOTONIC does not.
    pub const ADRIFT: Span = Span::from_us(100);

    /// The margin of spin_sleep 1.3 on Linux, and ours where a constant is configured without a
    /// value.
    pub const FIXED: Span = Span::from_us(125);

    /// A wait that sleeps until `margin` before each release. A margin of a whole period or more
    /// never sleeps.
    ///
    /// # Real-time: setup only
    pub const fn new(margin: Span) -> Self {
        let stalls = Stalls { count: 0, longest: Span::ZERO, sum: Span::ZERO };
        let margin_ns = if margin.as_ns() > 0 { margin.as_ns().unsigned_abs() } else { 0 };
        let plan = WakePlan { hop_ns: 0, hops: 0, margin_ns };
        let paused = PausedSpin { paused: Span::ZERO, spun: Span::ZERO };
        Self { plan, spinner: Spinner { stalls, paused } }
    }

    /// Sleeps a long time and then a short one of `hop`, from which a CPU in deep idle comes
    /// back sooner; none where that is not positive.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn hop(mut self, hop: Span) -> Self {
        let hop_ns = if hop.as_ns() > 0 { hop.as_ns().unsigned_abs() } else { 0 };
        self.plan = WakePlan { hop_ns, hops: (hop_ns > 0) as u32, ..self.plan };
        self
    }
}

impl Spinner {
    /// Spins from `last`, a stamp just taken, to `release`, and returns the last poll: a stamp in
    /// order after it would only make the caller later. `None` when `stop` was set first.
    #[inline]
    pub(super) fn spin<C: Clock>(
        &mut self,
        clock: &mut C,
        last: Instant,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let mut last = self.pause(clock, last, release, stop);
        loop {
            let mut now = clock.poll();
            let gap = now - last;
            if gap > Spin::STALL {
                self.stalled(gap);
            }
            if gap > Spin::ADRIFT {
                now = clock.wake();
            }
            if now >= release {
                return Some(now);
            }
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            last = now;
            if release - now > NEAR {
                clock.relax();
            }
        }
    }

    /// Lets the processor pause up to the last polls, where it can; when that was over. What
    /// interrupts a pause is no gap, unless the pause came back late by it.
    #[inline]
    fn pause<C: Clock>(
        &mut self,
        clock: &mut C,
        first: Instant,
        release: Instant,
        stop: &AtomicBool,
    ) -> Instant {
        let mut last = first;
        loop {
            let until = (release - NEAR).min(last + PAUSE);
            if !clock.pause_until(until) {
                break;
            }
            last = clock.poll();
            let late = last - until;
            if late > Spin::STALL {
                self.stalled(late);
            }
            if late > Spin::ADRIFT {
                last = clock.wake();
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        if last > first {
            self.paused.add(last.min(release) - first, release - first);
        }
        last
    }

    #[cold]
    fn stalled(&mut self, gap: Span) {
        self.stalls.count += 1;
        self.stalls.longest = self.stalls.longest.max(gap);
        self.stalls.sum = Span::from_ns(self.stalls.sum.as_ns().saturating_add(gap.as_ns()));
    }
}

impl Wait for Spin {
    #[inline]
    fn near<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let (now, _) = self.plan.sleep(clock, release, stop)?;
        Some(now)
    }

    #[inline]
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let last = self.near(clock, release, stop)?;
        if last >= release {
            return Some(last);
        }
        self.spinner.spin(clock, last, release, stop)
    }

    fn status(&self) -> WaitStatus {
        WaitStatus { plan: self.plan, learned: None, paused: self.spinner.paused }
    }

    fn take_stalls(&mut self) -> Stalls {
        core::mem::take(&mut self.spinner.stalls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock whose polls take 10 ns, and one of them much longer.
    struct Polls {
        now: u64,
        stall: (u64, u64),
        relaxed: u64,
        /// The pauses so far and the lateness of their end, ns; `None` for a processor without.
        pauses: Option<(u64, u64)>,
    }

    impl Clock for Polls {
        fn now(&mut self) -> Instant {
            Instant::from_ns(self.now)
        }
        fn poll(&mut self) -> Instant {
            let (at, by_ns) = self.stall;
            let stalls = self.now <= at && at < self.now + 10;
            self.now += if stalls { by_ns } else { 10 };
            self.now()
        }
        fn sleep_until(&mut self, at: Instant) {
            self.now = self.now.max(at.as_ns());
        }
        fn wake(&mut self) -> Instant {
            self.now()
        }
        fn relax(&mut self) {
            self.now += 50;
            self.relaxed = self.now;
        }
        fn pause_until(&mut self, at: Instant) -> bool {
            let Some((count, late_ns)) = &mut self.pauses else { return false };
            let left = at.as_ns().saturating_sub(self.now);
            if left < 1_000 {
                return false;
            }
            *count += 1;
            // An interrupt ends each second one.
            self.now += if *count % 2 == 0 { left / 2 } else { left + *late_ns };
            true
        }
    }

    fn until(stall: (u64, u64)) -> (Span, Stalls, u64) {
        let release = Instant::from_ns(2_000_000);
        let mut clock = Polls { now: 1_000_000, stall, relaxed: 0, pauses: None };
        let mut wait = Spin::new(Span::from_us(50));
        let wake = wait.until(&mut clock, release, &AtomicBool::new(false)).expect("not stopped");
        (wake - release, wait.take_stalls(), clock.relaxed)
    }

    #[test]
    fn it_ends_within_a_poll_of_the_release_and_relaxes_only_before_the_last_of_it() {
        let (late, stalls, relaxed) = until((0, 0));
        assert!((0..10).contains(&late.as_ns()), "{late}");
        assert_eq!(stalls.count, 0);
        assert!((1_998_900..1_999_100).contains(&relaxed), "{relaxed}");
    }

    #[test]
    fn a_stall_in_the_last_microsecond_is_lateness_and_counted() {
        let (late, stalls, _) = until((1_999_500, 5_000));
        assert!((4_000..5_000).contains(&late.as_ns()), "{late}");
        assert_eq!((stalls.count, stalls.longest), (1, Span::from_us(5)));
    }

    /// Of a spin of 250 µs on a processor whose pauses are so late: how late it ended, pauses, how
    /// much they took, gaps.
    fn paused(late_ns: u64, stop: bool) -> (Option<Span>, u64, PausedSpin, Stalls) {
        let release = Instant::from_ns(2_000_000);
        let mut clock =
            Polls { now: 1_000_000, stall: (0, 0), relaxed: 0, pauses: Some((0, late_ns)) };
        let mut wait = Spin::new(Span::from_us(250));
        let near = wait.near(&mut clock, release, &AtomicBool::new(false)).expect("not stopped");
        let stop = AtomicBool::new(stop);
        let wake = wait.spinner.spin(&mut clock, near, release, &stop);
        let status = wait.status();
        let (pauses, _) = clock.pauses.expect("it pauses");
        (wake.map(|wake| wake - release), pauses, status.paused, wait.spinner.stalls)
    }

    #[test]
    fn the_processor_pauses_up_to_the_last_microsecond_and_early_ends_are_waited_out() {
        let (late, pauses, paused, stalls) = paused(0, false);
        assert!(late.is_some_and(|late| (0..10).contains(&late.as_ns())), "{late:?}");
        // 100 µs whole, 50 of the next 100, 99 for what is left of it and the last ones.
        assert!(pauses >= 3 && stalls.count == 0, "{pauses} {stalls:?}");
        assert!(paused.share().is_some_and(|share| share > 0.98 && share < 1.0), "{paused:?}");
        let polled_ns = paused.spun.as_ns() - paused.paused.as_ns();
        assert!(polled_ns >= NEAR.as_ns() - 20, "{paused:?}");
    }

    #[test]
    fn a_pause_that_comes_back_late_is_a_stall_and_one_pause_is_all_that_a_stop_waits_for() {
        let (late, pauses, paused_of, stalls) = paused(5_000, false);
        assert!(late.is_some_and(|late| (0..5_000).contains(&late.as_ns())), "{late:?}");
        assert!(pauses > 0 && stalls.count > 0 && stalls.longest >= Span::from_us(5));
        assert!(paused_of.paused <= paused_of.spun, "{paused_of:?}");
        let (ended, pauses, ..) = paused(0, true);
        assert_eq!((ended, pauses), (None, 1));
    }
}
