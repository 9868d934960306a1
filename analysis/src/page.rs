//! The nine numbers of a loop's page: its counters and its histogram, as another process sees them.
//!
//! Quantiles are the upper ends of the page's buckets, 1/128 wide, and never above the maximum. A
//! page holds no squares, so there is no standard deviation.

use punctual_core::bucket;
use punctual_core::stats::Counts;

use crate::quantile::Probability;
use crate::summary::SummaryStats;

/// The numbers of `counts` and of `buckets`, one count a bucket of [`bucket`]; values in no bucket
/// are below or above all buckets.
pub fn stats(counts: &Counts, buckets: &[u64]) -> SummaryStats {
    let (Some(min), Some(max)) = (counts.min, counts.max) else { return SummaryStats::default() };
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
    SummaryStats {
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

#[cfg(test)]
mod tests {
    use punctual_core::bucket::BucketPlace;
    use punctual_core::time::Span;

    use super::*;

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
        let stats = stats(&counts, &buckets);
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
        assert_eq!(stats(&Counts::default(), &[]), SummaryStats::default());
        let far = Counts {
            below: u64::MAX,
            above: u64::MAX,
            min: Some(Span::from_ns(-5)),
            max: Some(Span::from_ns(5)),
            ..Counts::default()
        };
        let stats = stats(&far, &[u64::MAX; 9]);
        assert!(stats.p50.is_some_and(|ns| (-5.0..=5.0).contains(&ns)), "{stats:?}");
    }
}
