//! Stationary independent series, with the quantile that each truly has.

use punctual_analysis::rng::Rng;

use super::{Make, each};

/// A distribution to draw from.
pub(crate) struct Parent {
    pub(crate) name: &'static str,
    pub(crate) make: Make,
    /// The value exceeded with probability p, for small p.
    pub(crate) exceeded_with: fn(f64) -> f64,
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

pub(crate) fn exponential(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
    each(n, push, || rng.exponential());
}

pub(crate) fn normal(rng: &mut Rng, n: u64, push: &mut dyn FnMut(f64)) {
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
pub(crate) fn normal_tail(p: f64) -> f64 {
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
