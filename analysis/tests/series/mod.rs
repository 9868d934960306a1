//! Simulated series of lateness whose truth is known, for rates of claims: stationary independent
//! ones with the quantile that each truly has, ones that must not be prolonged, and late cycles
//! that come alone or together with the share that is truly late.
//!
//! Shared by the test and by the example that prints the whole table. Seeded: the same series
//! everywhere.

// Each user takes a part of it.
#![allow(dead_code)]

use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::dependence::Exceedances;
use punctual_analysis::claim::judge::{Judged, StoppingRule, judge};
use punctual_analysis::extremes::peaks::Peaks;
use punctual_analysis::recording::{Recording, RecordingConfig};
use punctual_analysis::rng::Rng;
use punctual_core::sample::Sample;
use punctual_core::time::{Period, Span};

/// One unit of a simulated quantity, ns: fine enough that whole ns are a continuum.
pub(crate) const UNIT_NS: f64 = 10_000.0;

/// The maker of one series: it pushes n latenesses.
pub(crate) type Make = fn(&mut Rng, u64, &mut dyn FnMut(f64));

/// A kind of series.
pub(crate) struct Kind {
    pub name: &'static str,
    pub make: Make,
}

/// One series of a kind.
pub(crate) fn simulated(make: Make, n: u64, seed: u64) -> Peaks {
    let mut rng = Rng::new(seed);
    let mut peaks = Peaks::default();
    make(&mut rng, n, &mut |x| peaks.push((x * UNIT_NS).round() as i64));
    peaks
}

/// n independent values.
fn each(n: u64, push: &mut dyn FnMut(f64), mut next: impl FnMut() -> f64) {
    (0..n).for_each(|_| push(next()));
}

/// A distribution to draw from.
pub(crate) struct Parent {
    pub name: &'static str,
    pub make: Make,
    /// The value exceeded with probability p, for small p.
    pub exceeded_with: fn(f64) -> f64,
}

/// One family for each way a tail can go.
pub(crate) const PARENTS: [Parent; 9] = [
    Parent { name: "GPD -0.2", make: gpd_ends, exceeded_with: |p| gpd(-0.2, p) },
    Parent { name: "exponential", make: exponential, exceeded_with: |p| -p.ln() },
    Parent { name: "GPD 0.2", make: gpd_heavy, exceeded_with: |p| gpd(0.2, p) },
    Parent { name: "normal", make: normal, exceeded_with: normal_tail },
    Parent {
        name: "lognormal 0.5",
        make: lognormal,
        exceeded_with: |p| (0.5 * normal_tail(p)).exp(),
    },
    Parent { name: "Weibull 2", make: weibull_light, exceeded_with: |p| (-p.ln()).sqrt() },
    Parent {
        name: "Weibull 0.7",
        make: weibull_heavy,
        exceeded_with: |p| (-p.ln()).powf(1.0 / 0.7),
    },
    Parent { name: "gamma 3", make: gamma, exceeded_with: gamma_tail },
    Parent { name: "exponential, 5 steps", make: stepped, exceeded_with: |p| -p.ln() },
];

fn gpd(shape: f64, p: f64) -> f64 {
    (p.powf(-shape) - 1.0) / shape
}

fn gpd_ends(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    each(n, push, || gpd(-0.2, rng.uniform()));
}

fn gpd_heavy(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    each(n, push, || gpd(0.2, rng.uniform()));
}

fn exponential(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    each(n, push, || rng.exponential());
}

fn normal(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    each(n, push, || rng.normal());
}

fn lognormal(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    each(n, push, || (0.5 * rng.normal()).exp());
}

fn weibull_light(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    each(n, push, || rng.exponential().sqrt());
}

fn weibull_heavy(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    each(n, push, || rng.exponential().powf(1.0 / 0.7));
}

fn gamma(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    each(n, push, || -(rng.uniform() * rng.uniform() * rng.uniform()).ln());
}

/// As a program sees it that counts in steps of a fifth of the scale.
fn stepped(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    each(n, push, || (rng.exponential() * 5.0).round() / 5.0);
}

/// The standard normal value exceeded with probability p < 0.1: Newton on the logarithm.
fn normal_tail(p: f64) -> f64 {
    let mut x = (-2.0 * p.ln()).sqrt();
    for _ in 0..40 {
        // The continued fraction of Mills' ratio.
        let mills = 1.0 / (1..=200).rev().fold(x, |below, i| x + f64::from(i) / below);
        let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        x += ((density * mills).ln() - p.ln()) * mills;
    }
    x
}

/// The quantile of a gamma variable of shape 3, by bisection.
fn gamma_tail(p: f64) -> f64 {
    let (mut low, mut high) = (0.0f64, 200.0f64);
    for _ in 0..100 {
        let x = 0.5 * (low + high);
        let tail = (-x).exp() * (1.0 + x + x * x / 2.0);
        if tail > p { low = x } else { high = x }
    }
    high
}

/// Something changed during the run.
pub(crate) const CHANGES: [Kind; 7] = [
    Kind { name: "level +0.5 sd from the middle on", make: step_small },
    Kind { name: "level +1 sd in the last tenth", make: step_late },
    Kind { name: "level +2 sd in 5 % of the run", make: stretch },
    Kind { name: "level drifts by 1 sd", make: drift },
    Kind { name: "lognormal, level +1 sd, middle", make: step_lognormal },
    Kind { name: "scale x 1.25 from the middle on", make: wider },
    Kind { name: "stalls twice as often, middle", make: stalls_more },
];

/// Cycles depend on each other.
pub(crate) const DEPENDENT: [Kind; 6] = [
    Kind { name: "AR(1) 0.5", make: |r, n, p| regressive(r, n, p, 0.5) },
    Kind { name: "AR(1) 0.8", make: |r, n, p| regressive(r, n, p, 0.8) },
    Kind { name: "AR(1) 0.999", make: |r, n, p| regressive(r, n, p, 0.999) },
    Kind { name: "maximum of 3 neighbours", make: moving_maximum },
    Kind { name: "bursts of 6", make: bursts },
    Kind { name: "scale wanders (ARCH)", make: arch },
];

/// A second mechanism that shows in few cycles; the number is how many are expected in the run.
pub(crate) const MIXTURES: [Kind; 7] = [
    Kind { name: "5 far out", make: |r, n, p| far(r, n, p, 5.0) },
    Kind { name: "10 far out", make: |r, n, p| far(r, n, p, 10.0) },
    Kind { name: "30 far out", make: |r, n, p| far(r, n, p, 30.0) },
    Kind { name: "10 of 10 x scale", make: |r, n, p| longer(r, n, p, 10.0, 10.0) },
    Kind { name: "30 of 5 x scale", make: |r, n, p| longer(r, n, p, 30.0, 5.0) },
    Kind { name: "60 of 5 x scale", make: |r, n, p| longer(r, n, p, 60.0, 5.0) },
    Kind { name: "normal and 10 of Pareto 0.5", make: heavy },
];

fn at_time(n: u64, push: &mut dyn FnMut(f64), mut next: impl FnMut(f64) -> f64) {
    (0..n).for_each(|k| push(next(k as f64 / n as f64)));
}

fn step_small(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    at_time(n, push, |t| rng.exponential() + if t > 0.5 { 0.5 } else { 0.0 });
}

fn step_late(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    at_time(n, push, |t| rng.normal() + if t > 0.9 { 1.0 } else { 0.0 });
}

fn stretch(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    at_time(n, push, |t| rng.exponential() + if (0.40..0.45).contains(&t) { 2.0 } else { 0.0 });
}

fn drift(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    at_time(n, push, |t| rng.normal() + t);
}

fn step_lognormal(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    at_time(n, push, |t| (0.5 * rng.normal()).exp() + if t > 0.5 { 0.6 } else { 0.0 });
}

fn wider(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    at_time(n, push, |t| rng.exponential() * if t > 0.5 { 1.25 } else { 1.0 });
}

/// One cycle in 200 stalls, one in 100 later on.
fn stalls_more(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    at_time(n, push, |t| {
        let share = if t > 0.5 { 0.01 } else { 0.005 };
        let scale = if rng.uniform() < share { 10.0 } else { 1.0 };
        scale * rng.exponential()
    });
}

fn regressive(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64), memory: f64) {
    let mut level = rng.normal();
    let fresh = (1.0 - memory * memory).sqrt();
    each(n, push, || {
        level = memory * level + fresh * rng.normal();
        (0.5 * level).exp()
    });
}

fn moving_maximum(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    let mut last = [rng.exponential(), rng.exponential()];
    each(n, push, || {
        let next = rng.exponential();
        let largest = next.max(last[0]).max(last[1]);
        last = [last[1], next];
        largest
    });
}

/// One cycle in 400 begins a burst of six on average.
fn bursts(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    let mut late = false;
    each(n, push, || {
        late = if late { rng.uniform() >= 1.0 / 6.0 } else { rng.uniform() < 1.0 / 400.0 };
        rng.exponential() * if late { 10.0 } else { 1.0 }
    });
}

fn arch(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    let mut last = 0.0f64;
    each(n, push, || {
        last = (0.5 + 0.5 * last * last).sqrt() * rng.normal();
        last
    });
}

/// An exponential body of scale 1 (largest about ln n), and cycles at 40 to 41.
fn far(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64), expected: f64) {
    let share = expected / n as f64;
    each(n, push, || if rng.uniform() < share { 40.0 + rng.uniform() } else { rng.exponential() });
}

/// A body, and exponential cycles of another scale that start where the body ends.
fn longer(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64), expected: f64, scale: f64) {
    let share = expected / n as f64;
    let start = (n as f64).ln();
    each(n, push, || {
        if rng.uniform() < share { start + scale * rng.exponential() } else { rng.exponential() }
    });
}

fn heavy(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    let share = 10.0 / n as f64;
    each(n, push, || if rng.uniform() < share { 4.0 / rng.uniform().sqrt() } else { rng.normal() });
}

/// The pattern in which late cycles come.
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
    pub name: &'static str,
    pub pattern: Pattern,
    /// The share of cycles that is late.
    pub p: f64,
    /// True where they are missed rather than late.
    pub missed: bool,
    /// True where it was used while the limits were chosen.
    pub tuned: bool,
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
    fn each(&self, rng: &mut Rng, n: u64, late: &mut dyn FnMut(bool)) {
        match self.pattern {
            Pattern::Alone => (0..n).for_each(|_| late(rng.uniform() < self.p)),
            Pattern::Stretches(length) => {
                let lengths = |_: &mut Rng| length as f64;
                on_and_off(
                    rng,
                    n,
                    &Stretches { lengths, mean: length as f64, share: 0.1 },
                    self.p / 0.1,
                    late,
                );
            }
            Pattern::Bursts(length) => {
                let lengths = |_: &mut Rng| length as f64;
                on_and_off(
                    rng,
                    n,
                    &Stretches { lengths, mean: length as f64, share: self.p },
                    1.0,
                    late,
                );
            }
            Pattern::Markov(mean) => {
                let lengths = |rng: &mut Rng| (rng.exponential() / -(-1.0 / mean).ln_1p()).ceil();
                on_and_off(rng, n, &Stretches { lengths, mean, share: self.p }, 1.0, late);
            }
            Pattern::Pareto => {
                let lengths = |rng: &mut Rng| 100.0 * (1.0 - rng.uniform()).powf(-1.0 / 1.5);
                on_and_off(
                    rng,
                    n,
                    &Stretches { lengths, mean: 300.0, share: 0.2 },
                    self.p / 0.2,
                    late,
                );
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
                on_and_off(
                    rng,
                    n,
                    &Stretches { lengths, mean: 400.0, share: 0.1 },
                    1.0,
                    &mut |is_high| high.push(is_high),
                );
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

/// Stretches of the time, in cycles.
struct Stretches<L> {
    lengths: L,
    /// Their mean length.
    mean: f64,
    /// The share of the time that lies in one.
    share: f64,
}

/// Stretches begun in the middle of the process; within one each cycle is late with chance
/// `within`.
fn on_and_off(
    rng: &mut Rng,
    n: u64,
    stretches: &Stretches<impl Fn(&mut Rng) -> f64>,
    within: f64,
    late: &mut dyn FnMut(bool),
) {
    let Stretches { lengths, mean, share } = stretches;
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
