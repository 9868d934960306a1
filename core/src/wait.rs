//! Waits for a release: sleep, or sleep and spin at the end.
//!
//! [`Sleep`] is what a plain loop does, [`Spin`] wakes early by a constant, [`Rearm`] is NIST's
//! method, [`Adaptive`] learns what this machine needs.
//!
//! For the executive, over any [`Clock`]. Each wait is absolute; relative sleeps exist nowhere.
//! Never decides which release is next, never records.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::time::{Instant, Span};

pub mod adaptive;
mod plan;
mod rearm;
mod spin;
mod strategy;

pub use adaptive::{Adaptive, Learned};
pub use plan::WakePlan;
pub use rearm::Rearm;
pub use spin::Spin;
pub use strategy::Strategy;

/// Waits for releases.
pub trait Wait {
    /// Waits until `release` and returns the wake (Maruti's `mdelay`, with a sleep where there is
    /// time for one); at once when that has passed already. `None`
    /// when `stop` was set first.
    ///
    /// # Real-time: in loop, waits
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant>;

    /// Sleeps as far as [`Wait::until`] would, and returns when that was over: up to the release
    /// there is time in hand. A wait that has none returns the release at once and sleeps in
    /// `until`. `None` when `stop` was set first.
    ///
    /// # Real-time: in loop, waits
    fn near<C: Clock>(&mut self, _: &mut C, release: Instant, _: &AtomicBool) -> Option<Instant> {
        Some(release)
    }

    /// Gaps seen inside spins since this was last called.
    ///
    /// # Real-time: in loop
    fn take_stalls(&mut self) -> Stalls {
        Stalls::default()
    }

    /// What it does at present, and what it learned of this machine.
    ///
    /// # Real-time: in loop
    fn status(&self) -> WaitStatus {
        WaitStatus::default()
    }
}

/// What a wait does at present.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WaitStatus {
    /// The sleeps before a release.
    pub plan: WakePlan,
    /// What it learned of this machine; `None` for a wait that learns nothing.
    pub learned: Option<Learned>,
    /// How much of its spins the processor paused.
    pub paused: PausedSpin,
}

/// How much of the spins that paused the processor did pause ([`Clock::pause_until`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PausedSpin {
    /// In pauses.
    pub paused: Span,
    /// From the first pause to the release.
    pub spun: Span,
}

impl PausedSpin {
    /// Counts a spin.
    #[inline]
    pub(crate) fn add(&mut self, paused: Span, spun: Span) {
        let sum = |a: Span, b: Span| Span::from_ns(a.as_ns().saturating_add(b.as_ns()));
        (self.paused, self.spun) = (sum(self.paused, paused), sum(self.spun, spun));
    }

    /// The share of the spins that was paused; `None` where none was.
    ///
    /// # Real-time: setup only
    pub fn share(self) -> Option<f64> {
        let spun_ns = self.spun.as_ns();
        (spun_ns > 0).then(|| self.paused.as_ns() as f64 / spun_ns as f64)
    }
}

impl<W: Wait> Wait for &mut W {
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        (**self).until(clock, release, stop)
    }

    fn near<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        (**self).near(clock, release, stop)
    }

    fn take_stalls(&mut self) -> Stalls {
        (**self).take_stalls()
    }

    fn status(&self) -> WaitStatus {
        (**self).status()
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

impl Wait for Sleep {
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
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
