//! The percentile curve: how late the latest of x cycles is, x = 1/(1 − p) on a log scale.
//!
//! From the buckets of a result and its exact maximum; ends at x = n, where the maximum stands,
//! and never beyond. HdrHistogram's plot (hdrhistogram.github.io) has the same axis.

use crate::histogram::HistogramView;

/// Points to a decade of x, at most.
const TO_A_DECADE: f64 = 50.0;

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// 1/(1 − p), in [1, n].
    pub one_in: f64,
    /// All but one in `one_in` cycles were at most this late, ns: rounded up within its bucket.
    pub lateness_ns: f64,
}

/// The curve of a histogram whose largest value is `max_ns`; empty for no values.
///
/// The value holds from the point before to this one: a curve of steps, each at its upper end.
/// Values without a bucket (73 min and more, of either sign) count as the largest. Where some are
/// not known the curve ends at the largest that is.
pub fn curve(view: &HistogramView, max_ns: Option<f64>) -> Vec<CurvePoint> {
    let sum = |sum: u64, count: u64| sum.saturating_add(count);
    let known = view.buckets.iter().map(|bucket| bucket.2).fold(view.overflow, sum);
    let n = known.saturating_add(view.unknown);
    let (Some(first), Some(max_ns), 1..) = (view.buckets.first(), max_ns, known) else {
        return Vec::new();
    };
    // Of those that are not known the maximum may say the least that they can have been.
    let highest_ns = view.buckets.last().filter(|_| view.unknown > 0 && view.overflow == 0);
    let max_ns = highest_ns.map_or(max_ns, |bucket| max_ns.min(bucket.1 as f64 - 1.0));
    let mut points = vec![CurvePoint { one_in: 1.0, lateness_ns: (first.0 as f64).min(max_ns) }];
    let mut seen = 0u64;
    for &(_, upper, count) in &view.buckets {
        seen = seen.saturating_add(count);
        if seen >= known {
            break;
        }
        let one_in = n as f64 / (n - seen) as f64;
        let lateness_ns = (upper as f64 - 1.0).min(max_ns);
        let point = CurvePoint { one_in, lateness_ns };
        let last = points.len() - 1;
        let near = last > 0 && (one_in / points[last - 1].one_in).log10() < 1.0 / TO_A_DECADE;
        // Of near points the later one is kept: the curve never understates.
        if near {
            points[last] = point;
        } else {
            points.push(point);
        }
    }
    let one_in = n as f64 / view.unknown.max(1) as f64;
    points.push(CurvePoint { one_in, lateness_ns: max_ns });
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    #[test]
    fn ends_where_the_known_end() {
        let known: Vec<i64> = (1..=95).collect();
        let points = curve(&view(&known).with_unknown(5), Some(95.0));
        let last = points.last().unwrap();
        assert_eq!((last.one_in, last.lateness_ns), (20.0, 95.0), "5 of 100 may be later");
        assert_eq!(curve(&view(&known).with_unknown(5), Some(1_000.0)).last(), Some(last));
        let median = points.iter().find(|point| point.one_in >= 2.0).unwrap();
        assert!((49.0..=51.0).contains(&median.lateness_ns), "{median:?}");
    }

    use proptest::prelude::*;

    fn view(values: &[i64]) -> HistogramView {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&value| histogram.push(value));
        HistogramView::of(&histogram)
    }

    #[test]
    fn a_hundred_values_are_where_their_ranks_say() {
        let values: Vec<i64> = (1..=100).collect();
        let points = curve(&view(&values), Some(100.0));
        let at = |x: f64| {
            points.iter().find(|point| point.one_in >= x - 1e-9).map(|point| point.lateness_ns)
        };
        assert_eq!((at(2.0), at(10.0), at(100.0)), (Some(50.0), Some(90.0), Some(99.0)));
        assert_eq!(points[points.len() - 1], CurvePoint { one_in: 100.0, lateness_ns: 100.0 });
        assert_eq!(curve(&view(&[]), None), []);
        assert_eq!(curve(&view(&[7]), Some(7.0)).last().unwrap().one_in, 1.0);
    }

    proptest! {
        #[test]
        fn rises_ends_at_the_largest_of_n_and_stays_small(
            mut values in prop::collection::vec(-100i64..10_000_000, 1..2_000),
        ) {
            values.sort_unstable();
            let max = values[values.len() - 1] as f64;
            let points = curve(&view(&values), Some(max));
            prop_assert!(points.len() <= 12 + (TO_A_DECADE * 4.0) as usize * 2);
            prop_assert!(points.windows(2).all(|pair| pair[0].one_in <= pair[1].one_in));
            prop_assert!(points.windows(2).all(|pair| pair[0].lateness_ns <= pair[1].lateness_ns));
            let last = points[points.len() - 1];
            prop_assert_eq!((last.one_in, last.lateness_ns), (values.len() as f64, max));
            // Never less than the order statistic at its x.
            for point in &points[1..] {
                let rank = (values.len() as f64 * (1.0 - 1.0 / point.one_in)).round() as usize;
                prop_assert!(point.lateness_ns >= values[rank.max(1) - 1] as f64);
            }
        }
    }
}
