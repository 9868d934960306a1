//! Simulated series of lateness whose truth is known, for rates of claims of level L3.
//!
//! Shared by the test and by the example that prints the whole table. Seeded: the same series
//! everywhere.

// Each user takes a part of it.
#![allow(dead_code)]

pub(crate) mod late;
pub(crate) mod parents;
pub(crate) mod spoiled;

use punctual_analysis::extremes::peaks::Peaks;
use punctual_analysis::rng::Rng;

/// One unit of a simulated quantity, ns: fine enough that whole ns are a continuum.
pub(crate) const UNIT_NS: f64 = 10_000.0;

/// How one series is made: pushes n latenesses.
pub(crate) type Make = fn(&mut Rng, u64, &mut dyn FnMut(f64));

/// A kind of series.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) make: Make,
}

/// One series of a kind.
pub(crate) fn simulated(make: Make, n: u64, seed: u64) -> Peaks {
    let mut rng = Rng::new(seed);
    let mut peaks = Peaks::default();
    make(&mut rng, n, &mut |x| peaks.push((x * UNIT_NS).round() as i64));
    peaks
}

/// n independent values.
pub(crate) fn each(n: u64, push: &mut dyn FnMut(f64), mut next: impl FnMut() -> f64) {
    (0..n).for_each(|_| push(next()));
}
