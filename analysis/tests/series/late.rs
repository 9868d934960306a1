//! Series of late cycles that come alone or together, each with the share that is truly late.
//!
//! For rates of requested claims: what is late is all that they see.

use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::dependence::Exceedances;
use punctual_analysis::claim::judge::{Judged, StoppingRule, judge};
use punctual_analysis::recording::{Recording, RecordingConfig};
use punctual_analysis::rng::Rng;
use punctual_core::sample::Sample;
use punctual_core::time::{Period, Span};

use super::parents::normal_tail;

/// How late cycles come.
#[derive(Clone, Copy)]
pub(crate) enum Pattern {
    /// Each alone.
    Alone,
    /// In stretches of so many cycles, a tenth of the time; each cycle of one with the same chance.
    Stretches(u64),
    /// So many in a row.
    Bursts(u64),
    /// In a row, of geometric length with this mean.
    Markov(f64),
    /// Those of an autoregressive series of this memory above a level.
    Regressive(f64),
    /// In stretches whose lengths have a Pareto tail of 1.5, a fifth of the time.
    Pareto,
    /// With a chance that wanders: log-normal, forgotten in so many cycles.
    Cox(f64),
    /// Each makes others likelier for some hundred cycles: nine in ten follow from another.
    Exciting,
    /// In showers of a size with a Pareto tail of 2.5, each scattered over some 500 cycles.
    Showers,
    /// With a chance that is twenty times as high in one part of the time in ten, which lasts 400
    /// cycles on average.
    TwoStates,
    /// Those in which the largest of the last 50 values, of a Pareto tail, is above a level.
    MovingMaximum,
}

/// A kind of series.
#[derive(Clone, Copy)]
pub(crate) struct LateKind {
    pub(crate) name: &'static str,
    pub(crate) pattern: Pattern,
    /// The share of cycles that is late.
    pub(crate) p: f64,
    /// Whether they are missed rather than late.
    pub(crate) missed: bool,
    /// Whether it was used while the limits were chosen.
    pub(crate) tuned: bool,
}

const fn kind(name: &'static str, pattern: Pattern, p: f64) -> LateKind {
    LateKind { name, pattern, p, missed: false, tuned: true }
}

const fn missed(name: &'static str, pattern: Pattern, p: f64) -> LateKind {
    LateKind { missed: true, ..kind(name, pattern, p) }
}

const fn unseen(name: &'static str, pattern: Pattern, p: f64) -> LateKind {
    LateKind { tuned: false, ..kind(name, pattern, p) }
}

pub(crate) const LATE_KINDS: [LateKind; 37] = [
    kind("independent", Pattern::Alone, 0.001),
    kind("independent", Pattern::Alone, 0.01),
    kind("independent", Pattern::Alone, 0.1),
    kind("stretches of 1000", Pattern::Stretches(1_000), 0.001),
    kind("stretches of 1000", Pattern::Stretches(1_000), 0.01),
    kind("stretches of 1000", Pattern::Stretches(1_000), 0.05),
    kind("stretches of 2000", Pattern::Stretches(2_000), 0.001),
    kind("stretches of 2000", Pattern::Stretches(2_000), 0.01),
    kind("stretches of 2000", Pattern::Stretches(2_000), 0.05),
    kind("bursts of 20", Pattern::Bursts(20), 0.001),
    kind("bursts of 20", Pattern::Bursts(20), 0.01),
    kind("bursts of 20", Pattern::Bursts(20), 0.05),
    kind("Markov, mean 50", Pattern::Markov(50.0), 0.005),
    kind("Markov, mean 50", Pattern::Markov(50.0), 0.02),
    kind("Markov, mean 50", Pattern::Markov(50.0), 0.05),
    missed("missed, stalls of 100", Pattern::Bursts(100), 0.01),
    missed("missed, stalls of 100", Pattern::Bursts(100), 0.1),
    kind("AR(1) 0.98", Pattern::Regressive(0.98), 0.001),
    kind("AR(1) 0.98", Pattern::Regressive(0.98), 0.01),
    kind("AR(1) 0.98", Pattern::Regressive(0.98), 0.05),
    kind("Pareto stretches", Pattern::Pareto, 0.002),
    kind("Pareto stretches", Pattern::Pareto, 0.02),
    kind("wandering chance", Pattern::Cox(1_000.0), 0.001),
    kind("wandering chance", Pattern::Cox(1_000.0), 0.005),
    kind("wandering chance", Pattern::Cox(1_000.0), 0.03),
    kind("self-exciting", Pattern::Exciting, 0.001),
    kind("self-exciting", Pattern::Exciting, 0.01),
    kind("self-exciting", Pattern::Exciting, 0.05),
    kind("scattered showers", Pattern::Showers, 0.001),
    kind("scattered showers", Pattern::Showers, 0.01),
    kind("scattered showers", Pattern::Showers, 0.05),
    unseen("two states", Pattern::TwoStates, 0.001),
    unseen("two states", Pattern::TwoStates, 0.005),
    unseen("two states", Pattern::TwoStates, 0.03),
    unseen("moving maximum of 50", Pattern::MovingMaximum, 0.005),
    unseen("moving maximum of 50", Pattern::MovingMaximum, 0.02),
    unseen("moving maximum of 50", Pattern::MovingMaximum, 0.1),
];

impl LateKind {
    /// Gives for each of n cycles whether it is late.
    pub(crate) fn each(&self, rng: &mut Rng, n: u64, late: &mut dyn FnMut(bool)) {
        match self.pattern {
            Pattern::Alone => (0..n).for_each(|_| late(rng.uniform() < self.p)),
            Pattern::Stretches(length) => {
                let lengths = |_: &mut Rng| length as f64;
                on_and_off(rng, n, (lengths, length as f64, 0.1), self.p / 0.1, late);
            }
            Pattern::Bursts(length) => {
                let lengths = |_: &mut Rng| length as f64;
                on_and_off(rng, n, (lengths, length as f64, self.p), 1.0, late);
            }
            Pattern::Markov(mean) => {
                let lengths = |rng: &mut Rng| (rng.exponential() / -(-1.0 / mean).ln_1p()).ceil();
                on_and_off(rng, n, (lengths, mean, self.p), 1.0, late);
            }
            Pattern::Pareto => {
                let lengths = |rng: &mut Rng| 100.0 * (1.0 - rng.uniform()).powf(-1.0 / 1.5);
                on_and_off(rng, n, (lengths, 300.0, 0.2), self.p / 0.2, late);
            }
            Pattern::Regressive(memory) => {
                let level = normal_tail(self.p);
                wandering(rng, n, memory, |_, x| late(x > level));
            }
            Pattern::Cox(cycles) => {
                // The mean of exp(x − 1/2) is 1.
                let mean = self.p;
                wandering(rng, n, (-1.0 / cycles).exp(), |rng, x| {
                    late(rng.uniform() < mean * (x - 0.5).exp());
                });
            }
            Pattern::Exciting => {
                let (mut excited, own) = (0.0f64, self.p / 10.0);
                for at in 0..n + 20_000 {
                    let is_late = rng.uniform() < own + excited;
                    excited = 0.99 * excited + if is_late { 0.009 } else { 0.0 };
                    if at >= 20_000 {
                        late(is_late);
                    }
                }
            }
            Pattern::TwoStates => {
                let lengths = |rng: &mut Rng| rng.exponential() * 400.0;
                let (mut high, low) = (Vec::new(), self.p / (0.9 + 0.1 * 20.0));
                on_and_off(rng, n, (lengths, 400.0, 0.1), 1.0, &mut |is_high| high.push(is_high));
                for is_high in high {
                    late(rng.uniform() < if is_high { 20.0 * low } else { low });
                }
            }
            Pattern::MovingMaximum => {
                // Whatever the tail, one of the last 50 values is above a level of the chance q
                // with 1 − (1 − q)⁵⁰.
                let above = -((-self.p).ln_1p() / 50.0).exp_m1();
                let mut left = 0;
                for at in 0..n + 50 {
                    left = if rng.uniform() < above { 50 } else { left - left.min(1) };
                    if at >= 50 {
                        late(left > 0);
                    }
                }
            }
            Pattern::Showers => {
                // The mean of 9·Pareto(2.5) is 15; one on another is late in the next cycle.
                let mut is_late = vec![false; (n + 10_000) as usize];
                for at in 0..is_late.len() {
                    if rng.uniform() >= self.p / 15.0 {
                        continue;
                    }
                    let size = 9.0 * (1.0 - rng.uniform()).powf(-1.0 / 2.5);
                    for _ in 0..(size + rng.uniform()) as u64 {
                        let place = at + (500.0 * rng.exponential()) as usize;
                        let free = is_late.iter_mut().skip(place).find(|late| !**late);
                        free.into_iter().for_each(|late| *late = true);
                    }
                }
                is_late[10_000..].iter().for_each(|&is_late| late(is_late));
            }
        }
    }

    /// Judges the claim that the share is below `factor` times the truth, on one series.
    pub(crate) fn judged(&self, n: u64, factor: f64, seed: u64) -> Judged {
        let event = if self.missed { "missed" } else { "lateness>50us" };
        let ask = Ask::parse(&format!("p({event})<{:e}", self.p * factor)).expect("a claim");
        let mut rng = Rng::new(seed);
        let counted = if self.missed {
            let config =
                RecordingConfig { period: Period::from_ns(1_000_000), ..Default::default() };
            let mut recording = Recording::new(config).watching(&[ask]);
            let mut cycle = 0;
            self.each(&mut rng, n, &mut |missed| {
                if !missed {
                    recording.push(&Sample {
                        cycle,
                        lateness: Span::from_ns(5_000),
                        ..Sample::default()
                    });
                }
                cycle += 1;
            });
            recording.finish(0).counted(&ask)
        } else {
            let mut exceedances = Exceedances::new(1_000_000, &[]);
            self.each(&mut rng, n, &mut |late| {
                exceedances.push(if late { 90_000 } else { 5_000 }, 0, 0);
            });
            Ok(exceedances.finish(0).counted(50_000))
        };
        judge(&ask, &counted, StoppingRule::AsPlanned, Some(1_000_000))
    }
}

/// Stretches of the lengths given, `share` of the time (the mean length with it), begun in the
/// middle of the process; within one each cycle is late with chance `within`.
fn on_and_off(
    rng: &mut Rng,
    n: u64,
    (lengths, mean, share): (impl Fn(&mut Rng) -> f64, f64, f64),
    within: f64,
    late: &mut dyn FnMut(bool),
) {
    let off = mean / share - mean;
    // Long enough before the first cycle that the start is forgotten.
    let before = (20.0 * (mean + off)) as u64;
    let (mut at, mut on, mut left) = (0, false, 0u64);
    while at < before + n {
        if left == 0 {
            on = !on;
            let length = if on { lengths(rng) } else { rng.exponential() * off };
            left = (length + rng.uniform()) as u64;
            continue;
        }
        if at >= before {
            late(on && (within >= 1.0 || rng.uniform() < within));
        }
        (at, left) = (at + 1, left - 1);
    }
}

/// A normal variable of this memory, cycle by cycle.
fn wandering(rng: &mut Rng, n: u64, memory: f64, mut each: impl FnMut(&mut Rng, f64)) {
    let (mut x, fresh) = (rng.normal(), (1.0 - memory * memory).sqrt());
    for _ in 0..n {
        x = memory * x + fresh * rng.normal();
        each(rng, x);
    }
}
