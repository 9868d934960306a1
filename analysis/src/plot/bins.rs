//! Histograms side by side on one scale: the same bins of equal width in log scale for all.
//!
//! From the buckets of results, which are finer. Counts whole buckets, never parts of one.

use crate::histogram::HistogramView;

/// The most bins.
pub const BINS_MAX: usize = 160;

/// Bins to a decade that are tried, the finest first.
const TO_A_DECADE: [u32; 7] = [80, 40, 20, 10, 5, 3, 1];

/// Below this, whole nanoseconds are wider than fine bins.
const SMALL_NS: f64 = 8.0;

/// Several histograms in the same bins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bins {
    /// Edges in rising order, ns, all positive; one more than there are bins. Empty without any
    /// positive value.
    pub edges_ns: Vec<f64>,
    /// By histogram, by bin. A bucket is in the bin of its middle.
    pub counts: Vec<Vec<u64>>,
    /// By histogram: values that are not positive (wakes that were on time to the nanosecond, or
    /// early), which a log scale has no place for.
    pub not_positive: Vec<u64>,
    /// By histogram: values beyond its end, of which no more is known.
    pub overflow: Vec<u64>,
    /// Where values are beyond an end: the last bin is theirs, and begins here.
    pub open_ns: Option<f64>,
    /// The largest count of a bin.
    pub most: u64,
}

/// The share of the axis that the bin beyond the end takes, and its least width in decades.
const OPEN_SHARE: f64 = 0.15;
const OPEN_DECADES: f64 = 0.15;

/// The bins of `views`, between the smallest and the largest positive value of all; a last one for
/// what is beyond the `ends` of the histograms, ns, where they are known.
pub fn bins(views: &[&HistogramView], ends: &[Option<i64>]) -> Bins {
    let mut all = finite(views);
    let beyond = |view: usize| all.overflow[view] > 0;
    if (0..views.len()).any(beyond) {
        let ends = (0..views.len())
            .filter(|&view| beyond(view))
            .filter_map(|view| ends.get(view)?.as_ref());
        let end = ends.max().map(|end| (*end as f64).max(1.0));
        open(&mut all, end);
    }
    all
}

/// Adds the bin of what is beyond the end.
fn open(all: &mut Bins, end: Option<f64>) {
    let Some(from) = end.into_iter().chain(all.edges_ns.last().copied()).reduce(f64::max) else {
        return;
    };
    let missing = match all.edges_ns.last() {
        None => true,
        Some(last) => *last < from,
    };
    if missing && !all.edges_ns.is_empty() {
        all.counts.iter_mut().for_each(|counts| counts.push(0));
    }
    if missing {
        all.edges_ns.push(from);
    }
    let decades = (from / all.edges_ns[0]).log10() * OPEN_SHARE;
    all.edges_ns.push(from * 10f64.powf(decades.max(OPEN_DECADES)));
    for (counts, overflow) in all.counts.iter_mut().zip(&all.overflow) {
        counts.push(*overflow);
    }
    all.open_ns = Some(end.unwrap_or(from));
    all.most = all.overflow.iter().copied().fold(all.most, u64::max);
}

/// Without what is beyond.
fn finite(views: &[&HistogramView]) -> Bins {
    let sum = |view: &HistogramView, keep: fn(&(i64, i64, u64)) -> bool| {
        let kept = view.buckets.iter().filter(|bucket| keep(bucket));
        kept.map(|bucket| bucket.2).fold(0, u64::saturating_add)
    };
    let mut all = Bins {
        not_positive: views.iter().map(|view| sum(view, |b| middle(b) < 1.0)).collect(),
        overflow: views.iter().map(|view| view.overflow).collect(),
        counts: vec![Vec::new(); views.len()],
        ..Bins::default()
    };
    let positive =
        || views.iter().flat_map(|view| &view.buckets).filter(|bucket| middle(bucket) >= 1.0);
    let lowest = positive().map(middle).min_by(f64::total_cmp);
    let highest = positive().map(middle).max_by(f64::total_cmp);
    let (Some(lowest), Some(highest)) = (lowest, highest) else { return all };
    let coarsest = positive().map(width).fold(0.0, f64::max);
    let fits = |&&per: &&u32| {
        let count = (highest.log10() - lowest.log10()) * f64::from(per) + 2.0;
        // Two more for what is beyond the end.
        1.0 / f64::from(per) >= coarsest && count + 2.0 <= BINS_MAX as f64
    };
    let per = f64::from(*TO_A_DECADE.iter().find(fits).unwrap_or(&1));
    let place = |ns: f64| (ns.log10() * per + 1e-9).floor();
    let (first, last) = (place(lowest), place(highest));
    let count = (last - first) as usize + 1;
    all.edges_ns = (0..=count).map(|at| 10f64.powf((first + at as f64) / per)).collect();
    for (view, counts) in views.iter().zip(&mut all.counts) {
        counts.resize(count, 0);
        for bucket in view.buckets.iter().filter(|bucket| middle(bucket) >= 1.0) {
            let at = (place(middle(bucket)) - first).max(0.0) as usize;
            let bin = &mut counts[at.min(count - 1)];
            *bin = bin.saturating_add(bucket.2);
        }
    }
    all.most = all.counts.iter().flatten().copied().max().unwrap_or(0);
    all
}

/// The middle of the values that fall in a bucket, ns.
fn middle(&(lower, upper, _): &(i64, i64, u64)) -> f64 {
    (lower as f64 + upper as f64 - 1.0) / 2.0
}

/// How wide a bucket is, in decades; the whole nanoseconds of small values do not count.
fn width(&(lower, upper, _): &(i64, i64, u64)) -> f64 {
    if (lower as f64) < SMALL_NS { 0.0 } else { (upper as f64 / lower as f64).log10() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use proptest::prelude::*;

    fn view(values: impl IntoIterator<Item = i64>) -> HistogramView {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.push(value));
        HistogramView::of(&histogram)
    }

    #[test]
    fn two_share_their_bins() {
        let (a, b) = (view([1_000, 1_001, 50_000]), view([900, 2_000_000, -3, 0]));
        let both = bins(&[&a, &b], &[]);
        assert_eq!(both.counts[0].iter().sum::<u64>(), 3);
        assert_eq!(both.counts[1].iter().sum::<u64>(), 2);
        assert_eq!(both.not_positive, [0, 2]);
        assert!(both.edges_ns[0] <= 900.0 && *both.edges_ns.last().unwrap() > 2_000_000.0);
        assert_eq!(both.most, 2);
    }

    #[test]
    fn nothing_positive_has_no_bins() {
        assert!(bins(&[], &[]).edges_ns.is_empty());
        let none = bins(&[&view([]), &view([-5])], &[]);
        assert!(none.edges_ns.is_empty());
        assert_eq!((none.not_positive, none.counts), (vec![0, 1], vec![vec![], vec![]]));
    }

    #[test]
    fn what_is_beyond_the_end_has_the_last_bin() {
        let beyond =
            |values: &[i64], overflow| HistogramView { overflow, ..view(values.iter().copied()) };
        let (a, b) = (beyond(&[1_000, 50_000], 3), beyond(&[2_000], 0));
        let drawn = bins(&[&a, &b], &[Some(500_000), Some(900_000)]);
        assert_eq!(drawn.open_ns, Some(500_000.0));
        let last = drawn.counts[0].len() - 1;
        assert_eq!((drawn.counts[0][last], drawn.counts[1][last]), (3, 0));
        assert_eq!(drawn.edges_ns.len(), last + 2);
        assert_eq!((drawn.edges_ns[last], drawn.most), (500_000.0, 3));
        assert!(drawn.edges_ns.windows(2).all(|pair| pair[0] < pair[1]));
        // Without a known end it begins where the largest value is, and alone at the end.
        assert_eq!(bins(&[&a], &[None]).counts[0].last(), Some(&3));
        let alone = bins(&[&beyond(&[], 7)], &[Some(500_000)]);
        assert_eq!((alone.edges_ns.len(), &alone.counts[0][..]), (2, &[7][..]));
        assert_eq!(bins(&[&beyond(&[], 7)], &[None]).edges_ns, [0.0; 0]);
    }

    #[test]
    fn what_a_file_claims_is_counted_without_panic() {
        let wild = HistogramView {
            buckets: vec![
                (i64::MIN, i64::MAX, 1),
                (i64::MIN, 0, u64::MAX),
                (5, 1, u64::MAX),
                (5, 1, 9),
                (1, i64::MAX, 3),
            ],
            overflow: u64::MAX,
            ..HistogramView::default()
        };
        let drawn = bins(&[&wild], &[]);
        assert!(drawn.counts[0].len() <= BINS_MAX);
        assert_eq!(drawn.not_positive, [u64::MAX]);
    }

    proptest! {
        #[test]
        fn every_value_is_counted_once(
            values in prop::collection::vec(-2_000i64..40_000_000_000, 0..300),
            scale in 0u32..30,
        ) {
            let view = view(values.iter().map(|value| value >> scale));
            let drawn = bins(&[&view], &[]);
            let counted = drawn.counts[0].iter().sum::<u64>() + drawn.not_positive[0];
            prop_assert_eq!(counted, values.len() as u64);
            prop_assert!(drawn.counts[0].len() <= BINS_MAX);
            prop_assert!(drawn.edges_ns.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
