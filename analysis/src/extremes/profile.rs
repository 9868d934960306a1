//! The interval of an extrapolated value by profile likelihood.
//!
//! For each value z the likeliest distribution that has it as its quantile; the interval is where
//! twice the loss of log likelihood stays below a cut (Coles 2001, §4.3.3). Unlike an interval of
//! ± so many standard errors it is as lopsided as the evidence. Arithmetic only.

use super::gpd::{FLAT, Gpd, SHAPE_MAX, SHAPE_MIN};
use super::search::largest;

/// An estimate with its interval, as excesses over the threshold.
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
    use super::super::gpd::fit;
    use super::*;
    use crate::rng::Rng;

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
