//! Ways to be there at a release: sleep, or sleep a little and spin.
//!
//! For the executive, over any [`Clock`]. Each wait is absolute; relative sleeps exist nowhere.
//! Never decides which release is next, never records.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::time::{Instant, Span};

/// A way to wait for releases.
pub trait Wait<C: Clock> {
    /// Waits until `release` and returns the wake; at once when that has passed already. `None`
    /// when `stop` was set first.
    ///
    /// # Real-time: in loop, waits
    fn until(&mut self, clock: &mut C, release: Instant, stop: &AtomicBool) -> Option<Instant>;

    /// Gaps seen inside spins so far.
    ///
    /// # Real-time: in loop
    fn stalls(&self) -> Stalls {
        Stalls::default()
    }
}

/// Gaps between two polls of a spin that were longer than [`Spin::STALL`]: the CPU was elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// The longest one.
    pub longest: Span,
    /// All of them together.
    pub sum: Span,
}

/// An absolute sleep, nothing else: what a plain loop does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sleep;

impl<C: Clock> Wait<C> for Sleep {
    fn until(&mut self, clock: &mut C, release: Instant, stop: &AtomicBool) -> Option<Instant> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            clock.sleep_until(release);
            let wake = clock.wake();
            // Early only when a signal interrupted the sleep.
            if wake >= release {
                return Some(wake);
            }
        }
    }
}

/// A sleep that ends `margin` before the release, then a spin up to it.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    margin: Span,
    stalls: Stalls,
}

impl Spin {
    /// A gap between two polls that counts as a stall: an order of magnitude above the cost of a
    /// poll (20–30 ns), below the shortest interrupt (about 1 µs).
    pub const STALL: Span = Span::from_us(1);

    /// After a gap longer than this the clock is anchored anew: the machine may have been
    /// suspended, in which time a counter goes on and CLOCK_MONOTONIC does not.
    pub const ADRIFT: Span = Span::from_us(100);

    /// A wait that sleeps until `margin` before each release. A margin of a whole period or more
    /// never sleeps.
    ///
    /// # Real-time: setup only
    pub const fn new(margin: Span) -> Self {
        Self { margin, stalls: Stalls { count: 0, longest: Span::ZERO, sum: Span::ZERO } }
    }

    fn stalled(&mut self, gap: Span) {
        self.stalls.count += 1;
        self.stalls.longest = self.stalls.longest.max(gap);
        self.stalls.sum = Span::from_ns(self.stalls.sum.as_ns().saturating_add(gap.as_ns()));
    }
}

impl<C: Clock> Wait<C> for Spin {
    fn until(&mut self, clock: &mut C, release: Instant, stop: &AtomicBool) -> Option<Instant> {
        let sleep_return = release - self.margin;
        if clock.poll() < sleep_return {
            clock.sleep_until(sleep_return);
        }
        // Anchored here, in time to spare, so that the stamp after the spin costs nothing.
        let mut last = clock.wake();
        if last >= release {
            return Some(last);
        }
        loop {
            let mut now = clock.poll();
            let gap = now - last;
            if gap > Self::STALL {
                self.stalled(gap);
            }
            if gap > Self::ADRIFT {
                now = clock.wake();
            }
            if now >= release {
                return Some(clock.now());
            }
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            last = now;
            clock.relax();
        }
    }

    fn stalls(&self) -> Stalls {
        self.stalls
    }
}
