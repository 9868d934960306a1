//! What stamps were taken with, and what they cost.
//!
//! Plain data.

use punctual::clocks::{CounterRate, MachineClock, PauseTrial, Slew, StampCost};

/// What stamps were taken with.
#[derive(Clone, Debug)]
pub struct ClockFacts {
    /// `tsc`, `cntvct` or `vdso`.
    pub name: &'static str,
    /// Why not the counter, where it is not.
    pub untrusted: Option<String>,
    /// The counter's rate over the whole experiment.
    pub rate: Option<CounterRate>,
    /// CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW over the whole experiment.
    pub slew: Option<Slew>,
    /// What stamps cost.
    pub cost: StampCost,
    /// What became of the processor's timed pauses.
    pub pauses: PauseTrial,
}

impl ClockFacts {
    /// Of this clock, whose stamps cost that much.
    pub fn of(clock: &MachineClock, cost: StampCost, slew: Option<Slew>) -> Self {
        let untrusted = match clock {
            MachineClock::Counter(_) => None,
            MachineClock::Vdso(_, why) => Some(why.to_string()),
        };
        let (name, rate, pauses) = (clock.name(), clock.rate(), clock.pauses());
        Self { name, untrusted, rate, slew, cost, pauses }
    }
}
