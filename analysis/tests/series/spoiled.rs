//! Series that must not be prolonged: changes, dependence, mixtures.

use punctual_analysis::rng::Rng;

use super::{Kind, each};

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
