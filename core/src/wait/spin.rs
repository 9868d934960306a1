//! A sleep that ends a constant time early, then a spin.
//!
//! For the executive, and for the waits that spin at their end. Distinguishes gaps in the spin, in
//! which the CPU was elsewhere, from a late wake.

use core::sync::atomic::{AtomicBool, Ordering};

use super::spin_exit::Trial;
use super::{Stalls, Wait, WaitStatus, WakePlan};
use crate::clock::Clock;
use crate::time::{Instant, Span};

/// A sleep that ends `margin` before the release, then a spin up to it.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    margin: Span,
    spinner: Spinner,
}

/// Spins, and counts the gaps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spinner {
    pub(super) stalls: Stalls,
    /// The result of trying to leave the spin otherwise than by a poll, where that was tried.
    pub(super) exit: Option<Trial>,
}

impl Spin {
    /// A gap between two polls that counts as a stall: an order of magnitude above the cost of a
    /// poll (20–30 ns), below the shortest interrupt (about 1 µs).
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
        Self { margin, spinner: Spinner { stalls, exit: None } }
    }

    /// The same with the exit that was tried, where the trial succeeded.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn with_exit(mut self, tried: Trial) -> Self {
        self.spinner.exit = Some(tried);
        self
    }
}

impl Spinner {
    /// Spins from `last`, a stamp just taken, to `release`; `None` when `stop` was set first.
    #[inline]
    pub(super) fn spin<C: Clock>(
        &mut self,
        clock: &mut C,
        mut last: Instant,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
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
                return Some(clock.now());
            }
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            last = now;
            match &self.exit {
                Some(Ok(exit)) if release - now <= exit.before() => {
                    // Where the CPU was elsewhere the next poll sees the gap.
                    if exit.leave(clock, release) {
                        let wake = clock.now();
                        // A coarse counter does not show yet what the delay let pass.
                        if wake + exit.behind() >= release {
                            return Some(wake.max(release));
                        }
                        last = wake;
                    }
                }
                _ => clock.relax(),
            }
        }
    }

    /// Whether it is left by a computed delay.
    pub(super) fn corrects(&self) -> bool {
        matches!(self.exit, Some(Ok(_)))
    }

    fn stalled(&mut self, gap: Span) {
        self.stalls.count += 1;
        self.stalls.longest = self.stalls.longest.max(gap);
        self.stalls.sum = Span::from_ns(self.stalls.sum.as_ns().saturating_add(gap.as_ns()));
    }
}

impl<C: Clock> Wait<C> for Spin {
    fn near(&mut self, clock: &mut C, release: Instant, _: &AtomicBool) -> Option<Instant> {
        let sleep_return = release - self.margin;
        if clock.poll() < sleep_return {
            clock.sleep_until(sleep_return);
        }
        // Anchored here, in time to spare, so that the stamp after the spin costs nothing.
        Some(clock.wake())
    }

    fn until(&mut self, clock: &mut C, release: Instant, stop: &AtomicBool) -> Option<Instant> {
        let last = self.near(clock, release, stop)?;
        if last >= release {
            return Some(last);
        }
        self.spinner.spin(clock, last, release, stop)
    }

    fn status(&self) -> WaitStatus {
        let margin_ns = self.margin.as_ns().max(0).unsigned_abs();
        let corrected = self.spinner.corrects();
        let plan = WakePlan { margin_ns, corrected, ..WakePlan::default() };
        WaitStatus { plan, exit: self.spinner.exit, learned: None }
    }

    fn take_stalls(&mut self) -> Stalls {
        core::mem::take(&mut self.spinner.stalls)
    }
}
