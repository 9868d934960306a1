//! Scatter: how far values lie apart, in numbers that one stall does not make: quantiles with
//! intervals, and the range beside them.
//!
//! For claims of papers, whose "jitter" is a range. Reads counts; keeps no values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::QuantileInterval;
use crate::claim::dependence::{Exceedances, Tails};
use crate::histogram::Histogram;
use crate::interval::{EACH, Interval, independent};
use crate::quantile::Probability;
use crate::recording::RunFigures;

/// Quantiles of values in the order of time, adjusted for their dependence. Each interval holds at
/// 98.75 %, so that all four hold at 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scatter {
    /// Values.
    pub n: u64,
    /// As many independent ones would show as much: of the quantile that needs most.
    pub independent: u64,
    /// The least value.
    pub least: f64,
    /// Quantile 0.05; null where n is too small.
    pub p5: Option<Interval>,
    /// The median.
    pub p50: Option<Interval>,
    /// Quantile 0.95.
    pub p95: Option<Interval>,
    /// Quantile 0.99.
    pub p99: Option<Interval>,
    /// The largest value.
    pub largest: f64,
}

impl Scatter {
    /// Of values whose exceedances were counted in their order; `None` without any.
    pub fn of(values: &Histogram, tails: &Tails) -> Option<Self> {
        let quantile = |p: Option<Probability>| {
            let found = QuantileInterval::of(tails, values, p?, EACH)?;
            let end = |end: Option<i64>| end.map(|ns| ns as f64);
            let value = found.value as f64;
            Some(Interval { value, low: end(found.lower), high: end(found.upper) })
        };
        let n = values.count().saturating_add(tails.unknown());
        let shares = [Probability::from_share(0.05), Some(Probability::P50)];
        let shares = shares.into_iter().chain([Some(Probability::P95), Some(Probability::P99)]);
        let theta = |p: Option<Probability>| values.quantile(p?).map(|ns| tails.theta_at(ns));
        let theta = shares.filter_map(theta).fold(1.0, f64::min);
        Some(Self {
            n,
            independent: independent(n, theta),
            least: values.min()? as f64,
            p5: quantile(Probability::from_share(0.05)),
            p50: quantile(Some(Probability::P50)),
            p95: quantile(Some(Probability::P95)),
            p99: quantile(Some(Probability::P99)),
            largest: values.max()? as f64,
        })
    }

    /// Of the lateness of a run's releases, ns.
    pub fn of_run(run: &RunFigures) -> Option<Self> {
        Self::of(&run.lateness, &run.tails)
    }

    /// Of a series in the order of time.
    pub fn of_series(values: impl IntoIterator<Item = i64>) -> Option<Self> {
        let (mut histogram, mut exceedances) = (Histogram::new(), Exceedances::new(0, &[]));
        for value in values {
            histogram.push(value);
            exceedances.push(value, 0, 0);
        }
        Self::of(&histogram, &exceedances.finish(0))
    }

    /// The same in another unit, of which there are `factor` in the old one; positive.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let quantile = |at: Option<Interval>| at.map(|at| at.times(factor));
        Self {
            least: self.least * factor,
            p5: quantile(self.p5),
            p50: quantile(self.p50),
            p95: quantile(self.p95),
            p99: quantile(self.p99),
            largest: self.largest * factor,
            ..self
        }
    }

    /// From 5 to 95 %; `None` where n is too small.
    pub fn middle(&self) -> Option<Interval> {
        Some(self.p95?.minus(self.p5?))
    }

    /// From the least to 95 %.
    pub fn to_p95(&self) -> Option<Interval> {
        Some(self.p95?.minus(Interval::exact(self.least)))
    }

    /// From the least to 99 %.
    pub fn to_p99(&self) -> Option<Interval> {
        Some(self.p99?.minus(Interval::exact(self.least)))
    }

    /// From the least to the largest: one stall is all of it.
    pub fn range(&self) -> f64 {
        self.largest - self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Values from 1000 on, evenly spread over 1000.
    fn values(n: usize) -> Vec<i64> {
        let mut rng = Rng::new(3);
        (0..n).map(|_| 1_000 + rng.below(1_001) as i64).collect()
    }

    #[test]
    fn one_stall_is_the_range_and_nothing_else() {
        let calm = values(2_000);
        let mut stalled = calm.clone();
        stalled[700] = 400_000_000;
        let [calm, stalled] =
            [calm, stalled].map(|values| Scatter::of_series(values).expect("values"));
        assert!(calm.range() < 1_010.0 && stalled.range() > 3e8);
        for part in [Scatter::middle, Scatter::to_p95, Scatter::to_p99] {
            let (a, b) = (part(&calm).expect("enough"), part(&stalled).expect("enough"));
            assert!((a.value - b.value).abs() <= 10.0, "{a} {b}");
            assert!(b.high.is_some_and(|high| high < 1_010.0), "{b}");
        }
    }

    #[test]
    fn intervals_contain_the_quantiles_that_the_values_were_drawn_from() {
        let scatter = Scatter::of_series(values(3_000)).expect("values");
        let quantiles = [(scatter.p5, 1_050.0), (scatter.p50, 1_500.0), (scatter.p95, 1_950.0)];
        for (found, true_value) in quantiles.into_iter().chain([(scatter.p99, 1_990.0)]) {
            let Interval { low: Some(low), high: Some(high), .. } = found.expect("enough") else {
                panic!("{found:?}");
            };
            assert!(low < true_value && true_value < high && high - low < 80.0, "{found:?}");
        }
        assert_eq!(scatter.n, 3_000);
        let scaled = scatter.times(0.5);
        assert_eq!(scaled.middle(), scatter.middle().map(|middle| middle.times(0.5)));
        assert_eq!(scaled.range(), scatter.range() / 2.0);
    }

    #[test]
    fn values_that_come_together_count_as_fewer() {
        // Each value twenty times.
        let alone = values(4_000);
        let together: Vec<i64> = values(200).into_iter().flat_map(|value| [value; 20]).collect();
        let [alone, together] =
            [alone, together].map(|values| Scatter::of_series(values).expect("values"));
        assert!(together.independent * 10 < alone.independent, "{together:?}");
        let width = |scatter: &Scatter| {
            let median = scatter.p50.expect("enough");
            median.high.expect("an end") - median.low.expect("an end")
        };
        assert!(width(&together) > 3.0 * width(&alone), "{together:?} {alone:?}");
    }

    #[test]
    fn too_few_leave_ends_open() {
        let few = Scatter::of_series(values(30)).expect("values");
        assert!(few.p50.is_some_and(|p50| p50.high.is_some()), "{few:?}");
        assert!(few.p99.is_none() && few.to_p99().is_none(), "{few:?}");
        let more = Scatter::of_series(values(150)).expect("values");
        assert!(more.to_p99().is_some_and(|spread| spread.high.is_none()), "{more:?}");
        assert_eq!(Scatter::of_series([]), None);
    }
}
