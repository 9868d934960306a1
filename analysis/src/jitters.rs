//! Every measure that some tool or paper calls "jitter", from one recording, each under its name.
//!
//! For the report. Combines numbers already collected; computes no sums of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gridfit::Grid;
use crate::summary::Distribution;

/// One recording, all measures; null where n is too small or nothing of the kind was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Jitters {
    /// NIST: peak-to-peak of the deviations from the least-squares grid, ns.
    pub grid_pp_ns: Option<f64>,
    /// Root mean square of the same deviations, ns.
    pub grid_rms_ns: Option<f64>,
    /// LinuxCNC: standard deviation of the interval (wake − previous wake − period), ns.
    pub interval_stddev_ns: Option<f64>,
    /// LinuxCNC: largest |interval|, ns. One release missed shows as at least one period.
    pub interval_max_abs_ns: Option<f64>,
    /// cyclictest: smallest lateness, ns.
    pub lateness_min_ns: Option<f64>,
    /// cyclictest: mean lateness, ns.
    pub lateness_mean_ns: Option<f64>,
    /// cyclictest: largest lateness, ns.
    pub lateness_max_ns: Option<f64>,
    /// Windows CE: largest minus smallest response, ns; null when no response was recorded.
    pub response_range_ns: Option<f64>,
    /// AnT: variance of lateness, ns².
    pub lateness_variance_ns2: Option<f64>,
}

impl Jitters {
    /// All measures of one recording.
    pub fn of(lateness: &Distribution, interval: &Distribution, grid: Option<&Grid>) -> Self {
        let ns = |value: i64| value as f64;
        let farthest = |d: &Distribution| {
            let histogram = d.histogram();
            Some(histogram.max()?.unsigned_abs().max(histogram.min()?.unsigned_abs()) as f64)
        };
        Self {
            grid_pp_ns: grid.map(|grid| grid.jitter_pp_ns),
            grid_rms_ns: grid.map(|grid| grid.rms_ns),
            interval_stddev_ns: interval.moments().stddev(),
            interval_max_abs_ns: farthest(interval),
            lateness_min_ns: lateness.histogram().min().map(ns),
            lateness_mean_ns: lateness.moments().mean(),
            lateness_max_ns: lateness.histogram().max().map(ns),
            response_range_ns: None,
            lateness_variance_ns2: lateness.moments().variance(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measure_is_its_own() {
        let (mut lateness, mut interval) = Default::default();
        let push = |d: &mut Distribution, values: &[i64]| values.iter().for_each(|&v| d.push(v));
        push(&mut lateness, &[2, 4, 6]);
        push(&mut interval, &[-9, 2, 5]);
        let jitters = Jitters::of(&lateness, &interval, None);
        assert_eq!(jitters.lateness_variance_ns2, Some(4.0));
        assert_eq!(jitters.interval_max_abs_ns, Some(9.0));
        assert_eq!(jitters.lateness_mean_ns, Some(4.0));
        assert_eq!(jitters.grid_pp_ns, None);
        assert_eq!(Jitters::of(&lateness, &interval, None).response_range_ns, None);
    }
}
