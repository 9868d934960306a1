//! One distribution in nine numbers.
//!
//! Moments are exact integer sums over every value; quantiles come from the histogram. Streaming,
//! constant memory. Never estimates what n does not support: that is `None`.

use punctual_core::bucket;
use punctual_core::stats::Counts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::quantile::Probability;

/// A distribution of signed times in nanoseconds; `None` (JSON null) where n is too small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryStats {
    /// Smallest value, exact.
    pub min: Option<f64>,
    /// Mean, exact to floating-point rounding.
    pub mean: Option<f64>,
    /// Sample standard deviation (divisor n − 1), from exact sums; needs n ≥ 2.
    pub stddev: Option<f64>,
    /// Median. Like all quantiles: the order statistic of rank ⌈p·n⌉, rounded up by at most 1/1024.
    pub p50: Option<f64>,
    /// 90 % quantile; needs n ≥ 10.
    pub p90: Option<f64>,
    /// 99 % quantile; needs n ≥ 100.
    pub p99: Option<f64>,
    /// 99.9 % quantile; needs n ≥ 1000.
    pub p99_9: Option<f64>,
    /// 99.99 % quantile; needs n ≥ 10 000.
    pub p99_99: Option<f64>,
    /// Largest value, exact; where values are known only to be at least this, a lower bound.
    pub max: Option<f64>,
}

impl SummaryStats {
    /// The quantiles of [`Probability::SUMMARY`], in its order.
    pub fn quantiles(&self) -> [Option<f64>; 5] {
        [self.p50, self.p90, self.p99, self.p99_9, self.p99_99]
    }

    /// One of them; `None` for another probability, too.
    pub fn quantile(&self, p: Probability) -> Option<f64> {
        let at = Probability::SUMMARY.iter().position(|summary| *summary == p)?;
        self.quantiles()[at]
    }

    /// With these quantiles, in the order of [`Probability::SUMMARY`].
    #[must_use]
    pub fn with_quantiles(self, quantiles: [Option<f64>; 5]) -> Self {
        let [p50, p90, p99, p99_9, p99_99] = quantiles;
        Self { p50, p90, p99, p99_9, p99_99, ..self }
    }

    /// The numbers of a loop's page as another process sees it: of `counts` and of `buckets`, one
    /// count a bucket of [`bucket`]; values in no bucket are below or above all buckets.
    ///
    /// Quantiles are the upper ends of the page's buckets, 1/128 wide, and never above the maximum.
    /// A page holds no squares, so there is no standard deviation.
    pub fn of_page(counts: &Counts, buckets: &[u64]) -> Self {
        let (Some(min), Some(max)) = (counts.min, counts.max) else { return Self::default() };
        let (min, max) = (min.as_ns() as f64, max.as_ns() as f64);
        let held = buckets.iter().take(bucket::COUNT).fold(0u64, |sum, n| sum.saturating_add(*n));
        let n = held.saturating_add(counts.below).saturating_add(counts.above);
        let quantile = |p: Probability| {
            p.is_supported(n).then(|| {
                let mut rest = p.rank(n);
                if rest <= counts.below {
                    // Below 0, and no more is known.
                    return max.min(0.0);
                }
                rest -= counts.below;
                for (index, count) in buckets.iter().enumerate().take(bucket::COUNT) {
                    if rest <= *count {
                        return ((bucket::bounds(index).1 - 1) as f64).clamp(min, max);
                    }
                    rest -= count;
                }
                max
            })
        };
        Self {
            min: Some(min),
            mean: Some(counts.sum_ns as f64 / n.max(1) as f64),
            stddev: None,
            p50: quantile(Probability::P50),
            p90: quantile(Probability::P90),
            p99: quantile(Probability::P99),
            p99_9: quantile(Probability::P99_9),
            p99_99: quantile(Probability::P99_99),
            max: Some(max),
        }
    }
}

/// Exact count, sum and sum of squares of signed nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    n: u64,
    #[serde(with = "decimal")]
    sum: i128,
    #[serde(with = "decimal")]
    squares: u128,
}

impl Moments {
    /// Takes in one value. The sum of squares saturates, which ends [`Self::variance`]: at 10⁹
    /// values that takes an rms of 10 000 years.
    #[inline]
    pub fn push(&mut self, value_ns: i64) {
        self.n += 1;
        self.sum += i128::from(value_ns);
        let magnitude = u128::from(value_ns.unsigned_abs());
        self.squares = self.squares.saturating_add(magnitude * magnitude);
    }

    /// Takes in all values of `added`.
    pub fn merge(&mut self, added: &Self) {
        self.n += added.n;
        self.sum += added.sum;
        self.squares = self.squares.saturating_add(added.squares);
    }

    /// Takes in `count` values, from `least_ns` on in steps of `step_ns`; neither is negative.
    fn push_steps(&mut self, least_ns: i64, step_ns: i64, count: u64) {
        let [least, step] = [least_ns, step_ns].map(|ns| u128::from(ns.unsigned_abs()));
        let n = u128::from(count);
        // Σ(a + i·d) = n·a + d·n(n − 1)/2;
        // Σ(a + i·d)² = n·a² + a·d·n(n − 1) + d²·(n − 1)n(2n − 1)/6.
        let pairs = n.saturating_mul(n.saturating_sub(1));
        let sum = (n * least).saturating_add(step.saturating_mul(pairs / 2));
        let most = n * u128::from(i64::MAX.unsigned_abs());
        let cubes = (pairs / 2).saturating_mul((2 * n).saturating_sub(1)) / 3;
        let squares = (n.saturating_mul(least.saturating_mul(least)))
            .saturating_add(least.saturating_mul(step).saturating_mul(pairs))
            .saturating_add(step.saturating_mul(step).saturating_mul(cubes));
        self.n = self.n.saturating_add(count);
        self.sum = self.sum.saturating_add(sum.min(most).cast_signed());
        self.squares = self.squares.saturating_add(squares);
    }

    /// Takes in values of a magnitude below 2²⁷, at most 256 of them: their sums fit in words.
    #[inline]
    fn extend_near(&mut self, values_ns: &[i64]) {
        let (mut sum, mut squares) = (0i64, 0i64);
        for &ns in values_ns {
            sum += ns;
            squares += ns * ns;
        }
        self.n += values_ns.len() as u64;
        self.sum += i128::from(sum);
        self.squares = self.squares.saturating_add(u128::from(squares.cast_unsigned()));
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// Mean in ns; `None` for no values.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| {
            let n = i128::from(self.n);
            // Whole part apart, so that a large mean keeps its fraction.
            self.sum.div_euclid(n) as f64 + self.sum.rem_euclid(n) as f64 / n as f64
        })
    }

    /// Sample variance in ns² (divisor n − 1); `None` for n < 2 or where the sum overflowed.
    pub fn variance(&self) -> Option<f64> {
        if self.n < 2 || self.squares == u128::MAX {
            return None;
        }
        let squares = i128::try_from(self.squares).ok()?;
        let n = i128::from(self.n);
        let (whole, rest) = (self.sum.div_euclid(n), self.sum.rem_euclid(n));
        // Σ(x − whole)² = Σx² − whole·Σx − whole·rest: exact, and small, before any rounding.
        let centred = squares
            .checked_sub(whole.checked_mul(self.sum)?)?
            .checked_sub(whole.checked_mul(rest)?)?;
        let rest = rest as f64;
        Some(((centred as f64 - rest * rest / n as f64) / (n - 1) as f64).max(0.0))
    }

    /// Sample standard deviation in ns; `None` as for [`Self::variance`].
    pub fn stddev(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }
}

/// A distribution while it is being collected: moments and histogram side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    moments: Moments,
    histogram: Histogram,
}

impl Distribution {
    /// Takes in one value.
    #[inline]
    pub fn push(&mut self, value_ns: i64) {
        self.moments.push(value_ns);
        self.histogram.push(value_ns);
    }

    /// Takes in `count` values that share a bucket of the histogram, from `least_ns` on in steps of
    /// `step_ns`; neither is negative.
    pub(super) fn push_steps(&mut self, least_ns: i64, step_ns: i64, count: u64) {
        self.moments.push_steps(least_ns, step_ns, count);
        let steps = i64::try_from(count.saturating_sub(1)).unwrap_or(i64::MAX);
        let most_ns = least_ns.saturating_add(steps.saturating_mul(step_ns));
        self.histogram.push_within(least_ns, most_ns, count);
    }

    /// Takes in all values of `added`.
    pub fn merge(&mut self, added: &Self) {
        self.moments.merge(&added.moments);
        self.histogram.merge(&added.histogram);
    }

    /// Checks that both parts can be of the same values, after reading them back.
    pub fn is_sound(&self) -> bool {
        let Moments { n, sum, .. } = self.moments;
        let (min, max) = (self.histogram.min().unwrap_or(0), self.histogram.max().unwrap_or(0));
        let between = (i128::from(n) * i128::from(min))..=(i128::from(n) * i128::from(max));
        n == self.histogram.count() && between.contains(&sum)
    }

    /// Takes in values of a magnitude below 2²⁷ ns, 1 to 256 of them; returns the largest.
    #[inline]
    pub(super) fn extend_near(&mut self, values_ns: &[i64]) -> i64 {
        self.moments.extend_near(values_ns);
        self.histogram.extend_near(values_ns)
    }

    /// The exact sums.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The histogram.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// The histogram alone.
    pub fn into_histogram(self) -> Histogram {
        self.histogram
    }

    /// The nine numbers.
    pub fn stats(&self) -> SummaryStats {
        self.stats_below(0)
    }

    /// The nine numbers where `later` more values count as larger than all: quantiles include them;
    /// minimum, maximum and moments do not.
    pub(super) fn stats_below(&self, later: u64) -> SummaryStats {
        let quantile = |p| self.histogram.quantile_below(p, later).map(|ns| ns as f64);
        let stats = SummaryStats {
            min: self.histogram.min().map(|ns| ns as f64),
            mean: self.moments.mean(),
            stddev: self.moments.stddev(),
            max: self.histogram.max().map(|ns| ns as f64),
            ..SummaryStats::default()
        };
        stats.with_quantiles(Probability::SUMMARY.map(quantile))
    }
}

/// An integer of 128 bits as decimal text, for `#[serde(with = …)]`: JSON's own numbers are exact
/// to 53 bits in many readers.
pub(crate) mod decimal {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &impl Display,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| D::Error::custom("expected a whole number as text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::bucket::BucketPlace;
    use punctual_core::time::Span;

    fn collected(values: &[i64]) -> Distribution {
        let mut distribution = Distribution::default();
        values.iter().for_each(|&value| distribution.push(value));
        distribution
    }

    #[test]
    fn nothing_says_nothing_and_one_value_has_no_spread() {
        assert_eq!(collected(&[]).stats(), SummaryStats::default());
        let single = collected(&[-7]).stats();
        assert_eq!((single.min, single.mean, single.max), (Some(-7.0), Some(-7.0), Some(-7.0)));
        assert_eq!((single.stddev, single.p50), (None, None));
    }

    #[test]
    fn variance_survives_a_huge_offset() {
        let offset = 1 << 60;
        let stats = collected(&[offset - 1, offset + 1]).moments().variance();
        assert_eq!(stats, Some(2.0));
    }

    #[test]
    fn overflowing_squares_end_the_variance_only() {
        let extremes = collected(&[i64::MIN; 8]);
        assert_eq!(extremes.moments().variance(), None);
        assert_eq!(extremes.stats().mean, Some(i64::MIN as f64));
    }

    #[test]
    fn what_was_stored_comes_back_and_adds_up() {
        let values = [i64::MIN, -3, 7, 1 << 60, i64::MAX];
        let mut merged = collected(&values[..2]);
        merged.merge(&collected(&values[2..]));
        assert_eq!(merged, collected(&values));
        let text = serde_json::to_string(&merged).unwrap();
        assert_eq!(serde_json::from_str::<Distribution>(&text).unwrap(), merged);
        assert!(merged.is_sound() && Distribution::default().is_sound());
        let lies = text.replacen("\"n\":5", "\"n\":6", 1);
        assert!(!serde_json::from_str::<Distribution>(&lies).unwrap().is_sound());
    }

    proptest! {
        #[test]
        fn moments_agree_with_two_passes(
            values in prop::collection::vec(-1_000_000_000i64..1_000_000_000, 2..400),
        ) {
            let stats = collected(&values).stats();
            let n = values.len() as f64;
            let mean = values.iter().sum::<i64>() as f64 / n;
            let squares: f64 = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum();
            let stddev = (squares / (n - 1.0)).sqrt();
            prop_assert!((stats.mean.unwrap() - mean).abs() <= 1e-6 * mean.abs().max(1.0));
            prop_assert!((stats.stddev.unwrap() - stddev).abs() <= 1e-9 * stddev.max(1.0));
            prop_assert_eq!(stats.max, values.iter().max().map(|&v| v as f64));
            prop_assert_eq!(stats.min, values.iter().min().map(|&v| v as f64));
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values_within_a_bucket() {
        let values: Vec<i64> = (0..2_000).map(|n| n * n / 3 - 40).collect();
        let mut buckets = vec![0; bucket::COUNT];
        let mut counts = Counts::default();
        for &value in &values {
            match bucket::index(value) {
                BucketPlace::In(at) => buckets[at] += 1,
                BucketPlace::Below => counts.below += 1,
                BucketPlace::Above => counts.above += 1,
            }
            counts.ran += 1;
            counts.sum_ns += value;
        }
        (counts.min, counts.max) = (Some(Span::from_ns(-40)), Some(Span::from_ns(values[1_999])));
        let stats = SummaryStats::of_page(&counts, &buckets);
        let exact = |rank: usize| values[rank - 1] as f64;
        for (quantile, rank) in [(stats.p50, 1_000), (stats.p99, 1_980), (stats.p99_9, 1_998)] {
            let quantile = quantile.expect("enough");
            assert!(
                quantile >= exact(rank) && quantile <= exact(rank) * 1.01 + 1.0,
                "{quantile} at {rank}"
            );
        }
        assert_eq!((stats.min, stats.max), (Some(-40.0), Some(exact(2_000))));
        assert_eq!((stats.p99_99, stats.stddev), (None, None));
        assert_eq!(stats.mean, Some(values.iter().sum::<i64>() as f64 / 2_000.0));
    }

    #[test]
    fn an_empty_page_says_nothing_and_an_odd_one_harms_nobody() {
        assert_eq!(SummaryStats::of_page(&Counts::default(), &[]), SummaryStats::default());
        let mut far = Counts::default();
        (far.below, far.above) = (u64::MAX, u64::MAX);
        (far.min, far.max) = (Some(Span::from_ns(-5)), Some(Span::from_ns(5)));
        let stats = SummaryStats::of_page(&far, &[u64::MAX; 9]);
        assert!(stats.p50.is_some_and(|ns| (-5.0..=5.0).contains(&ns)), "{stats:?}");
    }
}
