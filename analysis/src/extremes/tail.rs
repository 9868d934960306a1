//! Whether the largest values are one tail of the fitted kind.
//!
//! For the battery. The critical values of these tests have no formula: they were found by
//! simulation (`examples/extremes_rates.rs critical` prints them again), because parameters are
//! estimated.

use super::gev;
use super::gpd::{Gpd, Likelihood, SHAPE_MAX, SHAPE_MIN};
use super::peaks::{BLOCKS, Ordered};
use super::search::largest;
use super::test::{About, Test};

/// How many of the largest values are set apart, in turn.
const SET_APART: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Exceeded in at most 1 % of runs.
const TOP: f64 = 9.5;
/// Exceeded in at most 0.5 % of runs.
const AGREEMENT: f64 = 4.5;

/// Whether the largest values lie where the others predict. The j largest are set apart: beyond the
/// largest of the others they may be λ times as far out, on the scale of hazards, as the common
/// distribution has them. The statistic is the largest likelihood ratio against λ = 1, over the j
/// for which λ > 1. A second mechanism that shows in few cycles stands out (the low-density
/// mixtures of TailID, ECRTS 2025), and does not hide by bending the common fit.
///
/// `excesses` fall; at least 200 of them.
pub(super) fn top(excesses: &[f64]) -> Test {
    let ratios = SET_APART
        .into_iter()
        .filter(|j| 2 * j <= excesses.len())
        .filter_map(|j| Apart { excesses, j }.ratio());
    Test {
        about: About::Tail,
        fails_when: "the largest values are larger than the others predict",
        name: "likelihood ratio",
        statistic: ratios.fold(0.0, f64::max),
        limit: TOP,
    }
}

/// The j largest of falling excesses, set apart.
struct Apart<'a> {
    excesses: &'a [f64],
    j: usize,
}

/// Likelihoods at one θ = ξ/σ, with all else at its likeliest.
struct At {
    common: f64,
    apart: f64,
    /// How many times as far out the largest are.
    factor: f64,
}

impl Apart<'_> {
    /// Twice the logarithm of the likelihood ratio; `None` where the largest are not further out.
    fn ratio(&self) -> Option<f64> {
        let look = |value: fn(&At) -> f64| {
            let f = |w: f64| self.at(w).as_ref().map_or(f64::NEG_INFINITY, value);
            largest(-6.0, 6.0, 36, 24, f)
        };
        let (_, common) = look(|at| at.common)?;
        let (w, apart) = look(|at| at.apart)?;
        (self.at(w)?.factor > 1.0).then_some(2.0 * (apart - common))
    }

    /// At ln(1 + θ·top) = w.
    fn at(&self, w: f64) -> Option<At> {
        // The exponential distribution is the limit; next to it is near enough.
        let w = if w.abs() < 1e-4 { 1e-4 } else { w };
        let theta = w.exp_m1() / self.excesses[0];
        let log = |y: f64| (theta * y).ln_1p();
        let (count, j) = (self.excesses.len() as f64, self.j as f64);
        let start = log(self.excesses[self.j]);
        let upper: f64 = self.excesses[..self.j].iter().map(|&y| log(y)).sum();
        let lower: f64 = self.excesses[self.j..].iter().map(|&y| log(y)).sum();
        // The common shape, and that of the others with the j largest censored.
        let (common, others) = ((upper + lower) / count, (lower + j * start) / (count - j));
        let beyond = upper / j - start;
        let factor = beyond / others;
        let regular = |shape: f64| (SHAPE_MIN..=SHAPE_MAX).contains(&shape);
        let shared = -upper - lower - count;
        Some(At {
            common: if regular(common) {
                shared - count * (common / theta).ln()
            } else {
                f64::NEG_INFINITY
            },
            apart: if regular(others) && others * factor >= SHAPE_MIN {
                shared - (count - j) * (others / theta).ln() - j * (beyond / theta).ln()
            } else {
                f64::NEG_INFINITY
            },
            factor,
        })
    }
}

/// Whether the fitted distribution is that of the excesses (falling): Anderson and Darling's A²,
/// with critical values for estimated parameters, which depend on the shape (Choulakian and
/// Stephens, Technometrics 43, 2001).
pub(super) fn fitted(excesses: &[f64], gpd: &Gpd) -> Test {
    let n = excesses.len() as f64;
    // Probabilities of being larger, rising along falling values.
    let larger: Vec<f64> = excesses.iter().map(|&y| (-gpd.hazard(y)).exp()).collect();
    let sum: f64 = (1..=excesses.len())
        .map(|i| {
            let (s, opposite) = (larger[i - 1], larger[excesses.len() - i]);
            (2 * i - 1) as f64 * (s.max(f64::MIN_POSITIVE).ln() + (-opposite).ln_1p())
        })
        .sum();
    Test {
        about: About::Tail,
        fails_when: "the largest values do not follow the fitted distribution",
        name: "Anderson-Darling A2",
        statistic: -n - sum / n,
        limit: (1.45 - 0.5 * gpd.shape).clamp(1.2, 1.6),
    }
}

/// Whether block maxima agree: the loss of likelihood among the fitted excesses (over `threshold`)
/// at the value that a GEV of the largest of 64 blocks gives for probability `p`.
pub(super) fn agreement(
    ordered: &Ordered,
    p: f64,
    threshold: f64,
    likelihood: &Likelihood<'_>,
) -> Test {
    let gev = ordered.block_maxima().and_then(|maxima| gev::fit(&maxima));
    let statistic = gev.map_or(f64::INFINITY, |gev| {
        let cycles = ordered.n as f64 / BLOCKS as f64;
        let value = gev.exceeded_with(-((-p).ln_1p() * cycles).exp_m1());
        if value > threshold { likelihood.loss(value - threshold) } else { f64::INFINITY }
    });
    Test {
        about: About::Tail,
        fails_when: "block maxima and peaks over the threshold disagree",
        name: "likelihood ratio",
        statistic,
        limit: AGREEMENT,
    }
}

#[cfg(test)]
mod tests {
    use super::super::gpd::fit;
    use super::*;

    /// The expected order statistics of an exponential tail, falling.
    fn ideal(count: usize) -> Vec<f64> {
        let mut sum = 0.0;
        let mut rising: Vec<f64> = (1..=count)
            .map(|i| {
                sum += 1.0 / (count + 1 - i) as f64;
                sum
            })
            .collect();
        rising.reverse();
        rising
    }

    #[test]
    fn one_tail_passes_and_a_few_far_out_do_not() {
        let mut excesses = ideal(500);
        assert!(top(&excesses).passes(), "{}", top(&excesses).statistic);
        // Three of them elsewhere.
        excesses[..3].iter_mut().for_each(|y| *y += 25.0);
        assert!(!top(&excesses).passes());
        // An end that comes sooner than expected is not further out.
        let mut short = ideal(500);
        short[..3].iter_mut().for_each(|y| *y = 4.5 + 0.01 * *y);
        assert!(top(&short).passes());
    }

    #[test]
    fn two_heaps_are_no_tail() {
        let excesses = ideal(100);
        let gpd = fit(&excesses, 0).unwrap();
        assert!(fitted(&excesses, &gpd).passes());
        let heaps: Vec<f64> =
            excesses.iter().map(|y| if *y > 0.7 { 9.0 + 0.1 * y } else { *y }).collect();
        let gpd = fit(&heaps, 0).unwrap();
        assert!(!fitted(&heaps, &gpd).passes(), "{}", fitted(&heaps, &gpd));
    }
}
