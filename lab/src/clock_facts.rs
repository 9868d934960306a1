//! The clock of an experiment, as results have it.

use punctual_engine::clocks::{self, CounterRate, MachineClock, PauseTrial, Slew, StampCost};

/// The clock that took the stamps of an experiment.
#[derive(Clone, Debug)]
pub struct ClockFacts {
    /// `tsc`, `cntvct` or `vdso`.
    pub name: &'static str,
    /// The reason for which stamps are not the counter's, where they are not.
    pub untrusted: Option<String>,
    /// The counter's rate over the whole experiment.
    pub rate: Option<CounterRate>,
    /// CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW over the whole experiment.
    pub slew: Option<Slew>,
    /// The cost of its stamps.
    pub cost: StampCost,
    /// The trial of the processor's timed pauses.
    pub pauses: PauseTrial,
}

impl ClockFacts {
    /// Of this clock, whose stamps cost that much.
    pub fn of(clock: &MachineClock, cost: StampCost, slew: Option<Slew>) -> Self {
        let untrusted = clocks::mistrust(clock).map(ToString::to_string);
        let (rate, pauses) = (clocks::counter_rate(clock), clocks::pause_trial(clock));
        let name = clock.name();
        Self { name, untrusted, rate, slew, cost, pauses }
    }
}
