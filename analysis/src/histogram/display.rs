//! The histogram as people and files see it: few buckets, or columns of equal width in log scale.
//!
//! Pure data; draws nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Histogram;
use super::clusters::{Cluster, clusters};

/// The most buckets that a [`HistogramView`] lists.
pub const VIEW_BUCKETS_MAX: usize = 500;

/// A histogram as it stands in a result file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistogramView {
    /// The unit of all bounds: 1 ns.
    pub unit_ns: u64,
    /// [lower, upper, count] in rising order, only those that hold something: lower ≤ value <
    /// upper.
    pub buckets: Vec<(i64, i64, u64)>,
    /// Values of magnitude 2⁴² ns (73 min) or more, which are in no bucket.
    pub overflow: u64,
    /// Releases whose lateness is not known, which are in no bucket; they count as the latest.
    #[serde(default)]
    pub unknown: u64,
    /// The modes.
    pub clusters: Vec<Cluster>,
}

impl HistogramView {
    /// The view of a histogram: as fine as [`VIEW_BUCKETS_MAX`] buckets allow.
    pub fn of(histogram: &Histogram) -> Self {
        let bits = (0..10).find(|&bits| histogram.grouped(bits).count() <= VIEW_BUCKETS_MAX);
        let buckets = histogram
            .grouped(bits.unwrap_or(10))
            .map(|bucket| (bucket.lowest_ns, bucket.highest_ns + 1, bucket.count));
        Self {
            unit_ns: 1,
            buckets: buckets.collect(),
            overflow: histogram.overflow(),
            unknown: 0,
            clusters: clusters(histogram),
        }
    }

    /// The same, of which `unknown` more values count as the largest.
    #[must_use]
    pub fn with_unknown(self, unknown: u64) -> Self {
        Self { unknown, ..self }
    }
}

/// One column of a drawing: values in lower ≤ value < upper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// Lower edge, ns; the first column also takes all that is smaller (early wakes included).
    pub lower_ns: f64,
    /// Upper edge, ns; the last column also takes all that is larger.
    pub upper_ns: f64,
    /// Values in it. A bucket that spans an edge is in the column of its middle.
    pub count: u64,
}

/// The histogram in `columns` (at least 1) columns of equal width in log scale, between the powers
/// of ten that enclose the positive values; empty for no values.
pub fn columns(histogram: &Histogram, columns: usize) -> Vec<Column> {
    let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else { return Vec::new() };
    let columns = columns.max(1);
    let decade = |ns: i64| (ns.max(1) as f64).log10();
    let low = decade(min).floor();
    let high = (decade(max).floor() + 1.0).max(low + 1.0);
    let edge = |column: usize| 10f64.powf(low + (high - low) * column as f64 / columns as f64);
    let mut drawn: Vec<Column> = (0..columns)
        .map(|column| Column { lower_ns: edge(column), upper_ns: edge(column + 1), count: 0 })
        .collect();
    let mut add = |middle_ns: f64, count: u64| {
        let place = (middle_ns.max(1.0).log10() - low) / (high - low) * columns as f64;
        drawn[(place.max(0.0) as usize).min(columns - 1)].count += count;
    };
    for bucket in histogram.buckets() {
        add((bucket.lowest_ns as f64 + bucket.highest_ns as f64) / 2.0, bucket.count);
    }
    add(max as f64, histogram.beyond);
    add(min as f64, histogram.below);
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = i64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.push(value));
        histogram
    }

    #[test]
    fn a_view_is_small_and_loses_nothing() {
        let histogram = of((0..200_000).map(|i| i * 997 - 1_000_000).chain([i64::MAX]));
        let view = HistogramView::of(&histogram);
        assert!(view.buckets.len() <= VIEW_BUCKETS_MAX, "{}", view.buckets.len());
        assert_eq!(view.buckets.iter().map(|b| b.2).sum::<u64>() + view.overflow, 200_001);
        assert!(view.buckets.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }

    #[test]
    fn columns_span_decades_and_hold_everything() {
        let histogram = of([-3, 5_000, 7_000, 90_000, i64::MAX]);
        let drawn = columns(&of([1_500, 7_000, 90_000]), 20);
        assert_eq!((drawn[0].lower_ns, drawn[19].upper_ns.round()), (1_000.0, 100_000.0));
        assert_eq!(drawn.iter().map(|c| c.count).sum::<u64>(), 3);
        assert_eq!(columns(&histogram, 7).iter().map(|c| c.count).sum::<u64>(), 5);
        assert!(columns(&Histogram::new(), 7).is_empty());
        assert_eq!(columns(&of([0]), 0).len(), 1);
    }
}
