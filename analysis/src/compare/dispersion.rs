//! How much more the counts of chunks scatter than those of independent cycles would.
//!
//! Bursts, slow wander and loads that differ from run to run all show as counts that scatter more
//! than Poisson's: variance over mean, at every scale that has enough batches, whole results being
//! the coarsest. Counts are divided by that factor before they are tested (a quasi-Poisson model:
//! McCullagh and Nelder, Generalized Linear Models, 2nd ed., §6.2.3).

use super::distributions::student_quantile_above;
use super::series::{LatenessSeries, above, count};

/// Degrees of freedom that a scale inside the results must have.
const DF_MIN: f64 = 10.0;
/// A factor is used if it is this many standard errors above 1: about one in ten by chance alone.
const DOUBT: f64 = 1.3;

/// The factor by which the variance of a count exceeds its mean, and what it is known from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dispersion {
    /// At least 1.
    pub(super) factor: f64,
    /// Degrees of freedom; infinite where the factor is 1.
    pub(super) df: f64,
    /// The scale at which it was found: chunks in a batch.
    pub(super) batch: usize,
}

/// The dispersion of independent cycles.
pub(super) const NONE: Dispersion = Dispersion { factor: 1.0, df: f64::INFINITY, batch: 1 };

/// One part of a run on one side: the result it is from, and what it holds.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Number of the result on its side.
    pub result: usize,
    /// What was measured.
    pub series: &'a LatenessSeries,
}

/// (exceedances, releases) of each chunk of a part.
fn counts(part: &Part<'_>, cell: u16) -> Vec<(f64, f64)> {
    let chunks = part.series.chunks.iter();
    chunks.map(|cells| (above(cells, cell) as f64, count(cells) as f64)).collect()
}

/// The factor for exceedances of a cell, from both sides together.
pub(super) fn dispersion(sides: [&[Part<'_>]; 2], cell: u16) -> Dispersion {
    let parts = sides.iter().flat_map(|side| side.iter());
    let mut series: Vec<Vec<(f64, f64)>> = parts.map(|part| counts(part, cell)).collect();
    let (mut worst, mut batch) = (NONE, 1);
    loop {
        let batches = series.iter().filter(|batches| batches.len() > 1);
        if batches.map(|batches| batches.len() as f64 - 1.0).sum::<f64>() < DF_MIN {
            break;
        }
        worst = scatter(&series, batch).map_or(worst, |found| wider(worst, found));
        batch *= 2;
        series = series.iter().map(|batches| paired(batches)).collect();
    }
    let results: Vec<Vec<(f64, f64)>> = sides.iter().map(|side| by_result(side, cell)).collect();
    scatter(&results, batch).map_or(worst, |found| wider(worst, found))
}

fn paired(batches: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let sum = |pair: &[(f64, f64)]| {
        pair.iter().fold((0.0, 0.0), |sum, batch| (sum.0 + batch.0, sum.1 + batch.1))
    };
    batches.chunks(2).map(sum).collect()
}

fn by_result(side: &[Part<'_>], cell: u16) -> Vec<(f64, f64)> {
    let mut results: Vec<(usize, (f64, f64))> = Vec::new();
    for part in side {
        let more = counts(part, cell).iter().fold((0.0, 0.0), |s, c| (s.0 + c.0, s.1 + c.1));
        match results.iter_mut().find(|(result, _)| *result == part.result) {
            Some((_, sum)) => *sum = (sum.0 + more.0, sum.1 + more.1),
            None => results.push((part.result, more)),
        }
    }
    results.into_iter().map(|(_, sum)| sum).collect()
}

/// Variance over mean of the batches of several series, each about its own rate. `None` without an
/// event or with no series of two batches.
fn scatter(series: &[Vec<(f64, f64)>], batch: usize) -> Option<Dispersion> {
    let (mut variance, mut events, mut df) = (0.0, 0.0, 0.0);
    for batches in series {
        let m = batches.len() as f64;
        let (k, n) =
            batches.iter().fold((0.0, 0.0), |sum, batch| (sum.0 + batch.0, sum.1 + batch.1));
        if m < 2.0 || n <= 0.0 {
            continue;
        }
        let squares: f64 = batches.iter().map(|(c, size)| (c - k / n * size).powi(2)).sum();
        variance += squares * m / (m - 1.0);
        events += k;
        df += m - 1.0;
    }
    (events > 0.0 && df > 0.0).then(|| {
        let factor = variance / events;
        // For Poisson counts the factor has mean 1 and variance 2/df + 1/events.
        let chance = 1.0 + DOUBT * (2.0 / df + 1.0 / events).sqrt();
        if factor <= chance {
            return Dispersion { factor: 1.0, df, batch };
        }
        // Few bursts are weak evidence about the size of bursts.
        let bursts = (events / factor - 1.0).max(1.0);
        Dispersion { factor, df: df.min(bursts), batch }
    })
}

/// The one that widens an interval more; a factor of 1 never does.
fn wider(a: Dispersion, b: Dispersion) -> Dispersion {
    let width = |d: Dispersion| d.factor.sqrt() * student_quantile_above(0.025, d.df);
    if b.factor > 1.0 && width(b) > width(a) { b } else { a }
}
