//! The cost of jitter to a controller, in simulated time: a PID at 1 kHz has the speed of a DC
//! motor follow a sine for ten seconds, its load changing, under the lateness of a sample file:
//! `cargo run --release -p punctual --example replay -- loop.punctual`
//! (the example `loop` records one). Without a file the lateness is made up.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::time::Duration;

use punctual::sim::{self, SimulatedClock};
use punctual::{Loop, Period, Span};

/// A motor of 24 V: its current follows within a millisecond, its speed within 50.
#[derive(Default)]
struct Motor {
    amperes: f64,
    rad_per_s: f64,
    at_ns: u64,
}

/// The squared and the absolute error of the speed, summed over time.
#[derive(Clone, Copy, Default)]
struct Cost {
    ise: f64,
    iae: f64,
}

impl Motor {
    const OHMS: f64 = 1.0;
    const HENRYS: f64 = 1e-3;
    const VOLTS_PER_RAD_PER_S: f64 = 0.05;
    const INERTIA: f64 = 1.25e-4;
    /// The step of the integration.
    const STEP_NS: u64 = 10_000;
    /// From here on its error counts: the start, at full voltage, costs the same with any jitter.
    const STARTED_NS: u64 = 500_000_000;

    /// The speed that it should have now, rad/s: 5 Hz around 100.
    fn target(&self) -> f64 {
        let turns = 5.0 * self.at_ns as f64 * 1e-9;
        100.0 + 20.0 * (std::f64::consts::TAU * turns).sin()
    }

    /// The speed that it lacks now, rad/s.
    fn error(&self) -> f64 {
        self.target() - self.rad_per_s
    }

    /// Up to `to_ns` with this voltage; adds the error to the cost.
    fn run(&mut self, volts: f64, to_ns: u64, cost: &mut Cost) {
        while self.at_ns < to_ns {
            let step_ns = Self::STEP_NS.min(to_ns - self.at_ns);
            let dt = step_ns as f64 * 1e-9;
            // A load that is put on and taken off each half second.
            let load = if self.at_ns / 500_000_000 % 2 == 1 { 0.1 } else { 0.0 };
            let back = Self::VOLTS_PER_RAD_PER_S * self.rad_per_s;
            self.amperes += dt * (volts - Self::OHMS * self.amperes - back) / Self::HENRYS;
            let torque = Self::VOLTS_PER_RAD_PER_S * self.amperes - load;
            self.rad_per_s += dt * torque / Self::INERTIA;
            let error = self.error();
            if self.at_ns >= Self::STARTED_NS {
                cost.ise += dt * error * error;
                cost.iae += dt * error.abs();
            }
            self.at_ns += step_ns;
        }
    }
}

/// A PID that takes its constant period for granted, as most do: jitter costs what that costs.
#[derive(Default)]
struct Pid {
    integral: f64,
    last: f64,
}

impl Pid {
    fn volts(&mut self, error: f64) -> f64 {
        const DT: f64 = 1e-3;
        let slope = (error - self.last) / DT;
        self.last = error;
        let volts = 1.2 * error + 40.0 * self.integral + 4e-4 * slope;
        let limited = volts.clamp(-24.0, 24.0);
        if volts == limited {
            self.integral += DT * error;
        }
        limited
    }
}

/// Runs the motor for ten seconds under this lateness; its cost, and the missed releases.
fn cost(lateness: Vec<Span>) -> Result<(Cost, u64), punctual::Error> {
    let (mut motor, mut pid, mut volts) = (Motor::default(), Pid::default(), 0.0);
    let mut cost = Cost::default();
    let summary = Loop::builder(Period::hz(1_000).expect("in range"))
        .thread(sim::thread())
        .start_on(SimulatedClock::new().replay(lateness))?
        .run_for(Duration::from_secs(10), |cycle| {
            let start = cycle.release + cycle.lateness;
            motor.run(volts, start.as_ns(), &mut cost);
            volts = pid.volts(motor.error());
        });
    Ok((cost, summary.tasks[0].counts.missed))
}

/// Mostly a few microseconds, each hundredth wake 200 µs, each thousandth 2 ms.
fn made_up() -> Vec<Span> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (state >> 33).cast_signed()
    };
    let late = |number: i64| match number % 1_000 {
        0 => Span::from_us(2_000),
        1..=10 => Span::from_us(200),
        rest => Span::from_ns(2_000 + 10 * rest),
    };
    (0..10_000).map(|_| late(next())).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recorded = match std::env::args_os().nth(1) {
        Some(file) => sim::recorded(file, 0)?,
        None => {
            println!("no sample file given: the lateness is made up");
            made_up()
        }
    };
    println!("lateness    ISE (rad²/s)    IAE (rad)    missed");
    for factor in [0, 1, 2, 5, 10] {
        let scaled = recorded.iter().map(|late| Span::from_ns(late.as_ns() * factor)).collect();
        let (Cost { ise, iae }, missed) = cost(scaled)?;
        println!("{:>8} {ise:>15.3} {iae:>12.4} {missed:>9}", format!("×{factor}"));
    }
    Ok(())
}
