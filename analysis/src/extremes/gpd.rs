//! The generalised Pareto distribution (GPD) of excesses over a threshold: fit, tail, quantile.
//!
//! P(Y > y) = (1 + ξy/σ)^(−1/ξ), e^(−y/σ) at ξ = 0 (Pickands 1975; Coles, "An Introduction to
//! Statistical Modeling of Extreme Values", 2001, chapter 4). Maximum likelihood by the profile in
//! θ = ξ/σ, where all else is in closed form (Grimshaw, Technometrics 35, 1993); the largest values
//! may be censored. Arithmetic only; scipy's `genpareto` has the same c = ξ.

use super::search::largest;

/// Shapes of a fit: below −½ likelihood is no longer regular, above 1 there is no mean.
pub const SHAPE_MIN: f64 = -0.5;

/// See [`SHAPE_MIN`].
pub const SHAPE_MAX: f64 = 1.5;

/// Shapes nearer to 0 than this are the exponential distribution.
const FLAT: f64 = 1e-7;

/// One distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpd {
    /// σ > 0, in the unit of the excesses.
    pub scale: f64,
    /// ξ: 0 exponential, above 0 a heavy tail, below 0 one that ends.
    pub shape: f64,
}

impl Gpd {
    /// −ln P(Y > y) for y ≥ 0: infinite beyond the end of the tail.
    pub fn hazard(&self, y: f64) -> f64 {
        let z = y / self.scale;
        if self.shape.abs() < FLAT {
            return z;
        }
        let inner = self.shape * z;
        if inner <= -1.0 { f64::INFINITY } else { inner.ln_1p() / self.shape }
    }

    /// The y with −ln P(Y > y) = `hazard`.
    pub fn at_hazard(&self, hazard: f64) -> f64 {
        if self.shape.abs() < FLAT {
            return self.scale * hazard;
        }
        self.scale * (self.shape * hazard).exp_m1() / self.shape
    }

    /// Log likelihood of excesses; −∞ where one is beyond the end.
    pub fn log_likelihood(&self, excesses: &[f64]) -> f64 {
        // ln density = −ln σ − (1 + ξ)·hazard.
        let hazards: f64 = excesses.iter().map(|&y| self.hazard(y)).sum();
        if hazards.is_finite() {
            -(excesses.len() as f64) * self.scale.ln() - (1.0 + self.shape) * hazards
        } else {
            f64::NEG_INFINITY
        }
    }
}

/// The likeliest distribution of excesses (each above 0) of which the `censored` largest are left
/// out, being known only to be at least as large as the largest given. `None` for fewer than two,
/// or when none fits in the range of shapes.
pub fn fit(excesses: &[f64], censored: usize) -> Option<Gpd> {
    let top = excesses.iter().copied().fold(0.0, f64::max);
    if excesses.len() < 2 || !(top > 0.0 && top.is_finite()) {
        return None;
    }
    let profile = Profile { excesses, top, censored: censored as f64 };
    let (w, _) = largest(-8.0, 8.0, 32, 32, |w| profile.log_likelihood(w))?;
    let found = profile.at(w)?;
    (found.scale > 0.0 && found.scale.is_finite()).then_some(found)
}

struct Profile<'a> {
    excesses: &'a [f64],
    top: f64,
    censored: f64,
}

impl Profile<'_> {
    /// The likeliest distribution with ln(1 + θ·top) = w.
    fn at(&self, w: f64) -> Option<Gpd> {
        let count = self.excesses.len() as f64;
        let theta = w.exp_m1() / self.top;
        if w.abs() < 1e-6 {
            let sum: f64 = self.excesses.iter().sum::<f64>() + self.censored * self.top;
            return Some(Gpd { scale: sum / count, shape: 0.0 });
        }
        let sum: f64 = self.excesses.iter().map(|y| (theta * y).ln_1p()).sum();
        let shape = (sum + self.censored * w) / count;
        (SHAPE_MIN..=SHAPE_MAX).contains(&shape).then(|| Gpd { scale: shape / theta, shape })
    }

    fn log_likelihood(&self, w: f64) -> f64 {
        let Some(gpd) = self.at(w) else { return f64::NEG_INFINITY };
        // At the likeliest scale the hazards sum to count − Σ ln(1 + θy) over those not censored.
        gpd.log_likelihood(self.excesses) - self.censored * gpd.hazard(self.top)
    }
}

/// An estimate with its interval, as excesses over the threshold.
///
/// For each value z the likeliest distribution that has it as its quantile; the interval is where
/// twice the loss of log likelihood stays below a cut (Coles 2001, §4.3.3). Unlike an interval of ±
/// so many standard errors it is as lopsided as the evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    /// The likeliest value.
    pub estimate: f64,
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// The likelihood of excesses as a function of the value at one hazard.
pub(super) struct Likelihood<'a> {
    excesses: &'a [f64],
    top: f64,
    hazard: f64,
    fitted: Gpd,
    best: f64,
}

impl<'a> Likelihood<'a> {
    /// Of excesses with their likeliest distribution, for the value that is exceeded with
    /// probability e^(−hazard) among excesses.
    pub(super) fn new(excesses: &'a [f64], fitted: Gpd, hazard: f64) -> Self {
        let top = excesses.iter().copied().fold(0.0, f64::max);
        let best = fitted.log_likelihood(excesses);
        Self { excesses, top, hazard, fitted, best }
    }

    /// Twice the loss of log likelihood when the value is z > 0.
    pub(super) fn loss(&self, z: f64) -> f64 {
        let at = |shape: f64| {
            let by_hazard = if shape.abs() < FLAT {
                self.hazard
            } else {
                (shape * self.hazard).exp_m1() / shape
            };
            let gpd = Gpd { scale: z / by_hazard, shape };
            if shape * self.top / gpd.scale <= -1.0 {
                f64::NEG_INFINITY
            } else {
                gpd.log_likelihood(self.excesses)
            }
        };
        let best = largest(SHAPE_MIN, SHAPE_MAX, 24, 24, at);
        best.map_or(f64::INFINITY, |(_, value)| (2.0 * (self.best - value)).max(0.0))
    }

    /// Where the loss stays below `cut`; `None` when that has no upper end.
    pub(super) fn interval(&self, cut: f64) -> Option<ConfidenceInterval> {
        let estimate = self.fitted.at_hazard(self.hazard);
        let mut outside = 2.0 * estimate;
        while self.loss(outside) <= cut {
            outside *= 2.0;
            if outside > 1e6 * estimate {
                return None;
            }
        }
        let upper = self.crossing(estimate, outside, cut);
        let mut outside = 0.5 * estimate;
        while self.loss(outside) <= cut {
            outside *= 0.5;
            if outside < 1e-6 * estimate {
                break;
            }
        }
        Some(ConfidenceInterval { estimate, lower: self.crossing(estimate, outside, cut), upper })
    }

    fn crossing(&self, mut inside: f64, mut outside: f64, cut: f64) -> f64 {
        while (outside / inside).ln().abs() > 1e-4 {
            let middle = (inside * outside).sqrt();
            if self.loss(middle) <= cut { inside = middle } else { outside = middle }
        }
        outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extremes::gpd::fit;
    use crate::rng::Rng;

    fn drawn(gpd: Gpd, count: usize) -> Vec<f64> {
        let mut rng = Rng::new(3);
        (0..count).map(|_| gpd.at_hazard(rng.exponential())).collect()
    }

    #[test]
    fn a_fit_finds_what_was_drawn() {
        for shape in [-0.3, 0.0, 0.4] {
            let drawn = drawn(Gpd { scale: 5.0, shape }, 20_000);
            let found = fit(&drawn, 0).unwrap();
            assert!((found.shape - shape).abs() < 0.03, "{found:?}");
            assert!((found.scale - 5.0).abs() < 0.2, "{found:?}");
            // No neighbour is likelier.
            let best = found.log_likelihood(&drawn);
            for (scale, step) in [(1.01, 0.0), (0.99, 0.0), (1.0, 0.01), (1.0, -0.01)] {
                let near = Gpd { scale: found.scale * scale, shape: found.shape + step };
                assert!(near.log_likelihood(&drawn) <= best + 1e-6);
            }
        }
    }

    #[test]
    fn a_censored_fit_does_not_see_how_far_out_the_largest_are() {
        let mut drawn = drawn(Gpd { scale: 1.0, shape: 0.1 }, 5_000);
        drawn.sort_by(|a, b| b.total_cmp(a));
        let found = fit(&drawn[50..], 50).unwrap();
        assert!((found.shape - 0.1).abs() < 0.08 && (found.scale - 1.0).abs() < 0.05);
    }

    #[test]
    fn hazards_and_values_are_inverse_and_tails_end() {
        for shape in [-0.4, 0.0, 0.7] {
            let gpd = Gpd { scale: 2.0, shape };
            assert!((gpd.hazard(gpd.at_hazard(3.0)) - 3.0).abs() < 1e-12);
        }
        assert_eq!(Gpd { scale: 1.0, shape: -0.5 }.hazard(2.5), f64::INFINITY);
        assert_eq!(fit(&[], 0), None);
        assert_eq!(fit(&[1.0], 0), None);
        assert_eq!(fit(&[0.0, 0.0], 0), None);
    }

    #[test]
    fn the_interval_ends_where_the_loss_is_the_cut_and_is_lopsided() {
        let mut rng = Rng::new(9);
        let excesses: Vec<f64> = (0..100).map(|_| rng.exponential()).collect();
        let likelihood = Likelihood::new(&excesses, fit(&excesses, 0).unwrap(), 9.0);
        let found = likelihood.interval(4.0).unwrap();
        assert!(likelihood.loss(found.estimate) < 1e-4);
        for end in [found.lower, found.upper] {
            assert!((likelihood.loss(end) - 4.0).abs() < 0.01, "{found:?}");
        }
        assert!(found.upper - found.estimate > found.estimate - found.lower);
        let wider = likelihood.interval(6.0).unwrap();
        assert!(wider.lower < found.lower && wider.upper > found.upper);
    }
}
