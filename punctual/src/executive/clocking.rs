//! The clock that an executive's releases are on, and what is known of it.
//!
//! For the builder, which chooses it, and for the main loop, which makes it on its own thread.

use punctual_core::clock::Clock;
use punctual_core::time::Period;

use crate::clocks::MachineClock;
use crate::quiet::{self, Quiet};

/// The clock of an executive, made on its own thread.
pub(super) struct Clocking<'env, C> {
    /// Makes it.
    pub(super) make: Box<dyn FnOnce() -> C + Send + 'env>,
    /// Takes in what was learned of its rate.
    pub(super) discipline: fn(&mut C),
    /// Finds a quiet phase, where its time is the kernel's.
    pub(super) quiet: fn(&mut C, Period) -> Option<Quiet>,
    /// Whether it is CLOCK_MONOTONIC's time.
    pub(super) is_machine: bool,
}

impl<'env> Clocking<'env, MachineClock> {
    /// The machine's, calibrated.
    pub(super) fn machine() -> Self {
        let quiet = |clock: &mut MachineClock, period| {
            quiet::place(&quiet::listen(clock, crate::loops::LISTEN), period)
        };
        Self {
            make: Box::new(MachineClock::best),
            discipline: MachineClock::discipline,
            quiet,
            is_machine: true,
        }
    }
}

impl<'env, C: Clock + Send + 'env> Clocking<'env, C> {
    /// One that is given.
    pub(super) fn given(clock: C) -> Self {
        Self {
            make: Box::new(move || clock),
            discipline: |_| {},
            quiet: |_, _| None,
            is_machine: false,
        }
    }
}
