//! The generalised extreme value distribution (GEV) of block maxima: fit and quantile.
//!
//! P(X ≤ x) = exp(−(1 + ξ(x − μ)/σ)^(−1/ξ)), Gumbel's at ξ = 0 (Coles 2001, chapter 3). Maximum
//! likelihood by a simplex from the L-moment estimate (Hosking, Wallis and Wood, Technometrics 27,
//! 1985). Arithmetic only; scipy's `genextreme` has c = −ξ.

use super::gpd::{Gpd, SHAPE_MAX, SHAPE_MIN};
use super::search::largest_of_three;
use crate::special::ln_gamma;

/// Moves of the simplex.
const ROUNDS: u32 = 400;

/// One distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gev {
    /// μ, in the unit of the maxima.
    pub location: f64,
    /// σ > 0, in the same unit.
    pub scale: f64,
    /// ξ: the same as that of the GPD of the same tail.
    pub shape: f64,
}

impl Gev {
    /// −ln(−ln P(X ≤ x)), the Gumbel variate of x; ±∞ beyond the ends.
    fn reduced(&self, x: f64) -> f64 {
        let gpd = Gpd { scale: self.scale, shape: self.shape };
        let y = x - self.location;
        if self.shape * y / self.scale <= -1.0 {
            return if self.shape > 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
        }
        gpd.hazard(y)
    }

    /// The value that a maximum exceeds with probability `p`.
    pub fn exceeded_with(&self, p: f64) -> f64 {
        let reduced = -(-(-p).ln_1p()).ln();
        self.location + Gpd { scale: self.scale, shape: self.shape }.at_hazard(reduced)
    }

    /// Log likelihood of maxima; −∞ where one is beyond the end.
    pub fn log_likelihood(&self, maxima: &[f64]) -> f64 {
        let log_density = |x: &f64| {
            let reduced = self.reduced(*x);
            -self.scale.ln() - (1.0 + self.shape) * reduced - (-reduced).exp()
        };
        let sum: f64 = maxima.iter().map(log_density).sum();
        if sum.is_nan() { f64::NEG_INFINITY } else { sum }
    }
}

/// The likeliest distribution of maxima (in any order, at least ten).
pub fn fit(maxima: &[f64]) -> Option<Gev> {
    let start = by_l_moments(maxima)?;
    let at = |x: &[f64; 3]| Gev { location: x[0], scale: x[1].exp(), shape: x[2] };
    let likelihood = |x: &[f64; 3]| {
        let allowed = (SHAPE_MIN..=SHAPE_MAX).contains(&x[2]);
        if allowed { at(x).log_likelihood(maxima) } else { f64::NEG_INFINITY }
    };
    let mut from = [start.location, start.scale.ln(), start.shape];
    if likelihood(&from) == f64::NEG_INFINITY {
        from[2] = 0.0;
    }
    let size = [0.2 * start.scale, 0.1, 0.05];
    let (found, value) = largest_of_three(from, size, ROUNDS, likelihood);
    value.is_finite().then(|| at(&found))
}

/// Hosking's estimate from the first three L-moments.
pub fn by_l_moments(maxima: &[f64]) -> Option<Gev> {
    let n = maxima.len() as f64;
    if maxima.len() < 10 {
        return None;
    }
    let mut sorted = maxima.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut b = [0.0f64; 3];
    for (i, x) in sorted.iter().enumerate() {
        let i = i as f64;
        b[0] += x / n;
        b[1] += x * i / (n - 1.0) / n;
        b[2] += x * i * (i - 1.0) / ((n - 1.0) * (n - 2.0)) / n;
    }
    let (l2, l3) = (2.0 * b[1] - b[0], 6.0 * b[2] - 6.0 * b[1] + b[0]);
    if l2 <= 0.0 {
        return None;
    }
    let c = 2.0 / (3.0 + l3 / l2) - 2f64.ln() / 3f64.ln();
    let k = 7.859 * c + 2.955_4 * c * c;
    let k = if k.abs() < 1e-6 { 1e-6 } else { k.clamp(-0.9, 0.9) };
    let gamma = ln_gamma(1.0 + k).exp();
    let scale = l2 * k / ((1.0 - 2f64.powf(-k)) * gamma);
    Some(Gev { location: b[0] - scale * (1.0 - gamma) / k, scale, shape: -k })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_fit_finds_what_was_drawn() {
        for shape in [-0.2, 0.0, 0.3] {
            let truth = Gev { location: 50.0, scale: 4.0, shape };
            let mut rng = Rng::new(11);
            let drawn: Vec<f64> =
                (0..5_000).map(|_| truth.exceeded_with(1.0 - rng.uniform())).collect();
            let start = by_l_moments(&drawn).unwrap();
            let found = fit(&drawn).unwrap();
            assert!((found.shape - shape).abs() < 0.04, "{found:?}");
            assert!((found.location - 50.0).abs() < 0.3 && (found.scale - 4.0).abs() < 0.2);
            assert!(found.log_likelihood(&drawn) >= start.log_likelihood(&drawn));
        }
    }

    #[test]
    fn nothing_is_fitted_to_too_few_or_equal_maxima() {
        assert_eq!(fit(&[1.0; 5]), None);
        assert_eq!(fit(&[1.0; 64]), None);
    }
}
