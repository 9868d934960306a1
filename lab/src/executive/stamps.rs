//! Stamps in ticks of the finest clock that may be trusted.
//!
//! For short spans: nothing is anchored. The counter is read in order, so that what stands
//! between two stamps happens between them.

use punctual::clocks::MachineClock;
use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::cycles;

/// Takes stamps.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    counter: bool,
    ns_a_tick: f64,
}

impl Stamps {
    /// Of the counter where the clock is one, else of CLOCK_MONOTONIC.
    pub fn of(clock: &MachineClock) -> Self {
        match clock.rate() {
            Some(rate) if rate.hz > 0.0 => Self { counter: true, ns_a_tick: 1e9 / rate.hz },
            _ => Self { counter: false, ns_a_tick: 1.0 },
        }
    }

    /// Now, in ticks.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        if self.counter { cycles::ordered() } else { now_ns(ClockId::Monotonic) }
    }

    /// About how many ticks a time has.
    pub fn ticks(&self, time: Span) -> u64 {
        (time.as_ns() as f64 / self.ns_a_tick) as u64
    }

    /// A number of ticks in ns.
    pub fn ns(&self, ticks: f64) -> f64 {
        ticks * self.ns_a_tick
    }
}
