//! The bounds of every histogram: the same for all runs and machines, so that they can be summed.
//!
//! Two a power of two from 255 ns to 1.07 s, each the last nanosecond below a power of two or below
//! one and a half of it: there the histograms of results have an edge at every resolution, so that
//! each count is exact.

use punctual_analysis::histogram::Bucket;

/// How many bounds.
const BOUNDS: usize = 43;
/// The first power of two with two bounds a power.
const FROM_BITS: usize = 10;

/// The bounds, inclusive, ns, rising.
pub const BOUNDS_NS: [i64; BOUNDS] = {
    let mut bounds = [0; BOUNDS];
    (bounds[0], bounds[1], bounds[2]) = (255, 511, 1_023);
    let mut at = 3;
    while at < BOUNDS {
        let power = 1 << (FROM_BITS + (at - 3) / 2);
        bounds[at] = if (at - 3) % 2 == 0 { power + power / 2 - 1 } else { 2 * power - 1 };
        at += 1;
    }
    bounds
};

/// How many values are at most each bound. A bucket that spans a bound (of histograms with other
/// edges) counts above it: late rather than early.
pub(super) fn cumulative(buckets: &[Bucket]) -> [u64; BOUNDS] {
    let mut counts = [0_u64; BOUNDS];
    for bucket in buckets {
        let first = BOUNDS_NS.partition_point(|&bound| bound < bucket.highest_ns);
        for count in &mut counts[first..] {
            *count = count.saturating_add(bucket.count);
        }
    }
    counts
}

/// Whole nanoseconds as a decimal number of seconds, exact: 1023 is "0.000001023".
pub fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let text = format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_analysis::histogram::Histogram;
    use punctual_analysis::histogram::display::HistogramView;

    #[test]
    fn bounds_rise_to_a_second() {
        assert!(BOUNDS_NS.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!((BOUNDS_NS[3], BOUNDS_NS[4]), (1_535, 2_047));
        assert_eq!(BOUNDS_NS[BOUNDS - 1], (1 << 30) - 1);
    }

    #[test]
    fn seconds_are_exact() {
        let shown = [1_023, 1_500_000_000, 2_000_000_000, 0, -5].map(seconds);
        assert_eq!(shown, ["0.000001023", "1.5", "2.0", "0.0", "-0.000000005"]);
    }

    proptest! {
        #[test]
        fn counts_are_exact_at_every_resolution_of_a_result(
            values in prop::collection::vec((-3_000i64..1 << 41, 0u32..41), 1..3_000),
        ) {
            let values: Vec<i64> = values.iter().map(|(value, shift)| value >> shift).collect();
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.push(value));
            let full: Vec<Bucket> = histogram.buckets().collect();
            let view = HistogramView::of(&histogram);
            let coarse: Vec<Bucket> = view
                .buckets
                .iter()
                .map(|&(lowest_ns, upper, count)| {
                    Bucket { lowest_ns, highest_ns: upper - 1, count }
                })
                .collect();
            let exact = BOUNDS_NS.map(|bound| {
                values.iter().filter(|&&value| value <= bound).count() as u64
            });
            prop_assert_eq!(cumulative(&full), exact);
            prop_assert_eq!(cumulative(&coarse), exact);
        }
    }
}
