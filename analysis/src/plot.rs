//! Plain data that a page draws: bins, percentile curves, thinned time series.
//!
//! For the views, which only map these numbers to pixels. Streaming where samples come in, and of
//! bounded size whatever their number. Draws nothing, knows no pixel.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use punctual_core::sample::Sample;

use crate::histogram::{Histogram, HistogramView, ViewBucket};
use crate::release::Walk;

/// The most bins.
pub const BINS_MAX: usize = 160;

/// Bins to a decade that are tried, the finest first.
const BINS_TO_A_DECADE: [u32; 7] = [80, 40, 20, 10, 5, 3, 1];

/// Below this, whole nanoseconds are wider than fine bins.
const SMALL_NS: f64 = 8.0;

/// Several histograms in the same bins.
///
/// All of equal width in log scale, from the buckets of results, which are finer: whole buckets
/// are counted, never parts of one.
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
    let mut bins = Bins::finite(views);
    let beyond = |view: usize| bins.overflow[view] > 0;
    if (0..views.len()).any(beyond) {
        let ends = (0..views.len())
            .filter(|&view| beyond(view))
            .filter_map(|view| ends.get(view)?.as_ref());
        let end = ends.max().map(|end| (*end as f64).max(1.0));
        bins.open(end);
    }
    bins
}

impl Bins {
    /// Adds the bin of what is beyond the end, ns.
    fn open(&mut self, end: Option<f64>) {
        let last = self.edges_ns.last().copied();
        let Some(from) = end.into_iter().chain(last).reduce(f64::max) else { return };
        if last.is_none_or(|last| last < from) {
            if last.is_some() {
                self.counts.iter_mut().for_each(|counts| counts.push(0));
            }
            self.edges_ns.push(from);
        }
        let decades = (from / self.edges_ns[0]).log10() * OPEN_SHARE;
        self.edges_ns.push(from * 10f64.powf(decades.max(OPEN_DECADES)));
        for (counts, overflow) in self.counts.iter_mut().zip(&self.overflow) {
            counts.push(*overflow);
        }
        self.open_ns = Some(end.unwrap_or(from));
        self.most = self.overflow.iter().copied().fold(self.most, u64::max);
    }

    /// The bins of what has a bucket, without those beyond the ends.
    fn finite(views: &[&HistogramView]) -> Self {
        let sum = |view: &HistogramView, keep: fn(&ViewBucket) -> bool| {
            let kept = view.buckets.iter().filter(|bucket| keep(bucket));
            kept.map(|bucket| bucket.count).fold(0, u64::saturating_add)
        };
        let mut bins = Self {
            not_positive: views.iter().map(|view| sum(view, |b| middle(b) < 1.0)).collect(),
            overflow: views.iter().map(|view| view.overflow).collect(),
            counts: vec![Vec::new(); views.len()],
            ..Self::default()
        };
        let positive =
            || views.iter().flat_map(|view| &view.buckets).filter(|bucket| middle(bucket) >= 1.0);
        let lowest = positive().map(middle).min_by(f64::total_cmp);
        let highest = positive().map(middle).max_by(f64::total_cmp);
        let (Some(lowest), Some(highest)) = (lowest, highest) else { return bins };
        let coarsest = positive().map(width).fold(0.0, f64::max);
        let fits = |&&per: &&u32| {
            let count = (highest.log10() - lowest.log10()) * f64::from(per) + 2.0;
            // Two more for what is beyond the end.
            1.0 / f64::from(per) >= coarsest && count + 2.0 <= BINS_MAX as f64
        };
        let per = f64::from(*BINS_TO_A_DECADE.iter().find(fits).unwrap_or(&1));
        let place = |ns: f64| (ns.log10() * per + 1e-9).floor();
        let (first, last) = (place(lowest), place(highest));
        let count = (last - first) as usize + 1;
        bins.edges_ns = (0..=count).map(|at| 10f64.powf((first + at as f64) / per)).collect();
        for (view, counts) in views.iter().zip(&mut bins.counts) {
            counts.resize(count, 0);
            for bucket in view.buckets.iter().filter(|bucket| middle(bucket) >= 1.0) {
                let at = (place(middle(bucket)) - first).max(0.0) as usize;
                let bin = &mut counts[at.min(count - 1)];
                *bin = bin.saturating_add(bucket.count);
            }
        }
        bins.most = bins.counts.iter().flatten().copied().max().unwrap_or(0);
        bins
    }
}

/// The middle of the values that fall in a bucket, ns.
fn middle(bucket: &ViewBucket) -> f64 {
    (bucket.lower_ns as f64 + bucket.upper_ns as f64 - 1.0) / 2.0
}

/// The width of a bucket in decades; 0 below [`SMALL_NS`], where buckets are whole nanoseconds.
fn width(bucket: &ViewBucket) -> f64 {
    let (lower, upper) = (bucket.lower_ns as f64, bucket.upper_ns as f64);
    if lower < SMALL_NS { 0.0 } else { (upper / lower).log10() }
}

/// Which part of an axis values take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisExtent {
    /// The least of them.
    pub low: f64,
    /// The largest that is shown.
    pub high: f64,
    /// Values that lie above that.
    pub beyond: usize,
}

/// Of so many values one may lie beyond the axis: it ends at their quantile 0.999. Of fewer, one of
/// each fifty, and two at most.
const ONE_BEYOND_OF: usize = 1_000;
const FEW_BEYOND_OF: usize = 50;
const FEW_BEYOND: usize = 2;
/// An axis ends before the largest values where they would take more than so many times what all
/// others take.
const STRETCHED: f64 = 1.5;

/// The part of an axis that these values take, on a log scale or an even one: all of them, or all
/// but the few largest that would leave nothing to be seen of the others. `None` without a value
/// that the scale has a place for.
pub fn extent(values: impl IntoIterator<Item = f64>, is_log: bool) -> Option<AxisExtent> {
    let has_place = |value: &f64| value.is_finite() && (!is_log || *value > 0.0);
    let mut sorted: Vec<f64> = values.into_iter().filter(has_place).collect();
    sorted.sort_by(f64::total_cmp);
    let (low, largest) = (*sorted.first()?, *sorted.last()?);
    let place = |value: f64| if is_log { value.ln() } else { value };
    let count = sorted.len();
    let most = (count / ONE_BEYOND_OF).max((count / FEW_BEYOND_OF).min(FEW_BEYOND));
    let usual = place(sorted[count - 1 - most]) - place(low);
    let fits = |value: f64| place(value) - place(low) <= STRETCHED * usual;
    // Where all others are alike, there is no length to compare with.
    if usual <= 0.0 || fits(largest) {
        return Some(AxisExtent { low, high: largest, beyond: 0 });
    }
    let shown = sorted.partition_point(|value| fits(*value));
    Some(AxisExtent { low, high: sorted[shown - 1], beyond: count - shown })
}

/// Points to a decade of x, at most.
const CURVE_POINTS_TO_A_DECADE: f64 = 50.0;

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
///
/// The lateness of the latest of x cycles, ns, x = 1/(1 − p) on a log scale; it ends at x = n,
/// where the exact maximum stands, and never beyond. HdrHistogram's plot (hdrhistogram.github.io)
/// has the same axis.
pub fn curve(view: &HistogramView, max_ns: Option<f64>) -> Vec<CurvePoint> {
    let sum = |sum: u64, count: u64| sum.saturating_add(count);
    let known = view.buckets.iter().map(|bucket| bucket.count).fold(view.overflow, sum);
    let n = known.saturating_add(view.unknown);
    let (Some(first), Some(max_ns), 1..) = (view.buckets.first(), max_ns, known) else {
        return Vec::new();
    };
    // Of those that are not known the maximum may say the least that they can have been.
    let highest_ns = view.buckets.last().filter(|_| view.unknown > 0 && view.overflow == 0);
    let max_ns = highest_ns.map_or(max_ns, |bucket| max_ns.min(bucket.upper_ns as f64 - 1.0));
    let mut points =
        vec![CurvePoint { one_in: 1.0, lateness_ns: (first.lower_ns as f64).min(max_ns) }];
    let mut seen = 0u64;
    for bucket in &view.buckets {
        seen = seen.saturating_add(bucket.count);
        if seen >= known {
            break;
        }
        let one_in = n as f64 / (n - seen) as f64;
        let lateness_ns = (bucket.upper_ns as f64 - 1.0).min(max_ns);
        let point = CurvePoint { one_in, lateness_ns };
        let last = points.len() - 1;
        let near =
            last > 0 && (one_in / points[last - 1].one_in).log10() < 1.0 / CURVE_POINTS_TO_A_DECADE;
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

/// Neighbouring cycles as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeBin {
    /// The first cycle that would fall in it; the last one is `width − 1` later.
    pub first: u64,
    /// Cycles in it, at least 1.
    pub n: u64,
    /// Smallest lateness, ns.
    pub min_ns: i64,
    /// Largest lateness, ns.
    pub max_ns: i64,
    /// Sum of the latenesses, ns.
    sum_ns: i128,
    /// Releases without a sample right before cycles of this bin: missed, or unrecorded where the
    /// run counts such.
    pub missed: u64,
}

impl EnvelopeBin {
    /// Mean lateness, ns.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.n as f64
    }

    fn of(first: u64, lateness_ns: i64, missed: u64) -> Self {
        let sum_ns = i128::from(lateness_ns);
        Self { first, n: 1, min_ns: lateness_ns, max_ns: lateness_ns, sum_ns, missed }
    }
}

impl TimeBin for EnvelopeBin {
    fn first(&self) -> u64 {
        self.first
    }

    fn begin_at(&mut self, first: u64) {
        self.first = first;
    }

    fn take(&mut self, next: &Self) {
        self.n += next.n;
        self.min_ns = self.min_ns.min(next.min_ns);
        self.max_ns = self.max_ns.max(next.max_ns);
        self.sum_ns += next.sum_ns;
        self.missed = self.missed.saturating_add(next.missed);
    }
}

/// A bin of [`TimeBins`]: neighbouring cycles, which can be put together.
pub trait TimeBin: Clone {
    /// The first cycle that would fall in it.
    fn first(&self) -> u64;
    /// Lets it begin at an earlier one.
    fn begin_at(&mut self, first: u64);
    /// Takes in the one after it.
    fn take(&mut self, next: &Self);
}

/// Neighbouring cycles in at most so many bins, all of one width, in rising order.
///
/// One pass, constant memory, for any number of cycles and any gaps between them: when there are
/// too many bins, neighbours are merged and each is twice as wide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeBins<B> {
    most: usize,
    shift: u32,
    bins: Vec<B>,
}

/// A time series. No value is lost: the extremes of the whole are the extremes of its bins.
pub type Envelope = TimeBins<EnvelopeBin>;

impl<B: TimeBin> TimeBins<B> {
    /// Empty, of at most `most` (at least 2) bins.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(2), shift: 0, bins: Vec::new() }
    }

    /// The last bin where it has `cycle` (a lower one counts with the last), and else where a bin
    /// with that cycle begins.
    #[inline]
    fn place(&mut self, cycle: u64) -> Result<&mut B, u64> {
        let first = cycle >> self.shift << self.shift;
        match self.bins.last_mut() {
            Some(last) if first <= last.first() => Ok(last),
            _ => Err(first),
        }
    }

    fn append(&mut self, bin: B) {
        self.bins.push(bin);
        while self.bins.len() > self.most {
            self.widen();
        }
    }

    /// Twice the width.
    fn widen(&mut self) {
        self.shift += 1;
        let shift = self.shift;
        for bin in &mut self.bins {
            bin.begin_at(bin.first() >> shift << shift);
        }
        self.bins.dedup_by(|next, kept| {
            let same = next.first() == kept.first();
            if same {
                kept.take(next);
            }
            same
        });
    }

    /// The same in at most `most` (at least 2) bins.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Self {
        let mut thinner = self.clone();
        thinner.most = most.max(2);
        while thinner.bins.len() > thinner.most {
            thinner.widen();
        }
        thinner
    }

    /// Cycles that a bin spans: a power of two.
    pub fn width(&self) -> u64 {
        1 << self.shift
    }

    /// The bins that hold something.
    pub fn bins(&self) -> &[B] {
        &self.bins
    }
}

impl Envelope {
    /// Takes in a cycle; cycles must not decrease (a lower one counts with the last).
    #[inline]
    pub fn push(&mut self, cycle: u64, lateness_ns: i64, missed: u64) {
        match self.place(cycle) {
            Ok(last) => last.take(&EnvelopeBin::of(cycle, lateness_ns, missed)),
            Err(first) => self.append(EnvelopeBin::of(first, lateness_ns, missed)),
        }
    }
}

/// The counts of neighbouring cycles by lateness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatColumn {
    /// The first cycle that would fall in it; the last one is `width − 1` later.
    pub first: u64,
    counts: Vec<u64>,
}

impl Default for HeatColumn {
    fn default() -> Self {
        Self { first: 0, counts: vec![0; Self::ROWS] }
    }
}

impl TimeBin for HeatColumn {
    fn first(&self) -> u64 {
        self.first
    }

    fn begin_at(&mut self, first: u64) {
        self.first = first;
    }

    fn take(&mut self, next: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&next.counts) {
            *count = count.saturating_add(*more);
        }
    }
}

impl HeatColumn {
    /// Rows for each doubling of the lateness.
    const STEPS: u32 = 4;
    /// Where rows begin, ns; what is earlier is in the first.
    pub const FROM_NS: u64 = 4;
    /// All rows: from [`Self::FROM_NS`] up to 2⁴⁰ ns (18 minutes); what is later is in the last.
    pub const ROWS: usize = (38 * Self::STEPS) as usize;

    /// The characters that [`Self::brief`] counts by: none needs an escape.
    pub const LEVELS: &[u8; 64] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

    /// The row of a lateness.
    #[inline]
    fn row(lateness_ns: i64) -> usize {
        let ns = lateness_ns.max(0).unsigned_abs().max(Self::FROM_NS);
        let octave = ns.ilog2();
        let step = (ns >> (octave - 2)) as u32 % Self::STEPS;
        (((octave - 2) * Self::STEPS + step) as usize).min(Self::ROWS - 1)
    }

    /// The least lateness of a row, ns.
    fn from_ns(row: usize) -> f64 {
        let (octave, step) = (row as u32 / Self::STEPS + 2, row as u32 % Self::STEPS);
        (1.0 + f64::from(step) / f64::from(Self::STEPS)) * f64::from(octave).exp2()
    }

    /// Of all values of a histogram; what overflowed it is in the last row.
    pub fn of(histogram: &Histogram) -> Self {
        let mut column = Self::default();
        for bucket in histogram.buckets() {
            column.counts[Self::row(bucket.lowest_ns)] += bucket.count;
        }
        column.counts[Self::ROWS - 1] += histogram.overflow();
        column
    }

    /// Of rows as [`Self::rows`] gives them, and of any others.
    pub fn of_rows(first: u64, rows: &[(u64, u64)]) -> Self {
        let mut column = Self { first, ..Self::default() };
        for &(from_ns, count) in rows {
            let row = &mut column.counts[Self::row(from_ns.min(i64::MAX as u64).cast_signed())];
            *row = row.saturating_add(count);
        }
        column
    }

    /// The rows that have cycles, in the form in which they are kept: from which lateness on, ns,
    /// and how many.
    pub fn rows(&self) -> Vec<(u64, u64)> {
        self.cells().map(|cell| (cell.from_ns as u64, cell.count)).collect()
    }

    /// In as few characters as a page has room for: two digits of base 36 for the first row that
    /// has cycles, then one of [`Self::LEVELS`] for each row up to the last: the first for none,
    /// the second for one cycle, each further one for 2^(1/3) times as many as the one before it,
    /// the last for 2²⁰ and more.
    pub fn brief(&self) -> String {
        let rows = |row: &usize| self.counts[*row] > 0;
        let (Some(first), Some(last)) = ((0..Self::ROWS).find(rows), (0..Self::ROWS).rfind(rows))
        else {
            return String::new();
        };
        let digit = |value: usize| char::from_digit(value as u32, 36).unwrap_or('0');
        let level = |count: &u64| match count {
            0 => 0,
            count => 1 + (3.0 * (*count as f64).log2()).round() as usize,
        };
        let last_level = Self::LEVELS.len() - 1;
        let character = |count| char::from(Self::LEVELS[level(count).min(last_level)]);
        let levels = self.counts[first..=last].iter().map(character);
        [digit(first / 36), digit(first % 36)].into_iter().chain(levels).collect()
    }

    /// The cycles that came since it was `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let counts = self.counts.iter().zip(&before.counts);
        let counts = counts.map(|(now, then)| now.saturating_sub(*then)).collect();
        Self { first: self.first, counts }
    }

    /// With what another has.
    pub fn add(&mut self, other: &Self) {
        self.take(other);
    }

    /// The rows that have cycles: from which lateness to below which, ns, and how many.
    pub fn cells(&self) -> impl Iterator<Item = HeatCell> {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(row, &count)| {
            let [from_ns, to_ns] = [row, row + 1].map(Self::from_ns);
            HeatCell { from_ns, to_ns, count }
        })
    }
}

/// Cycles of one stretch of time and of one range of lateness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeatCell {
    /// From this lateness on, ns.
    pub from_ns: f64,
    /// Below this one, ns.
    pub to_ns: f64,
    /// Cycles, at least 1.
    pub count: u64,
}

/// Lateness over time, by how often each is: what comes again and again is a line in it, what
/// repeats in time a pattern.
pub type HeatMap = TimeBins<HeatColumn>;

impl HeatMap {
    /// Takes in a cycle; cycles must not decrease (a lower one counts with the last).
    #[inline]
    pub fn push(&mut self, cycle: u64, lateness_ns: i64) {
        let row = HeatColumn::row(lateness_ns);
        match self.place(cycle) {
            Ok(last) => last.counts[row] += 1,
            Err(first) => {
                let mut column = HeatColumn { first, ..HeatColumn::default() };
                column.counts[row] = 1;
                self.append(column);
            }
        }
    }
}

/// A cycle later than the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LateCycle {
    /// Its lateness, ns.
    pub lateness_ns: i64,
    /// Its cycle.
    pub cycle: u64,
}

/// The limits of a thinned time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinnerConfig {
    /// The most bins of the envelope.
    pub bins: usize,
    /// The most columns of the heat map.
    pub heat_columns: usize,
    /// The most outliers.
    pub outliers: usize,
    /// A cycle later than this is an outlier; `None`: no cycle is.
    pub outlier_above_ns: Option<i64>,
    /// Leave cold cycles out, as the figures do.
    pub leave_out_cold: bool,
}

/// A time series while its samples come in.
///
/// One pass in constant memory. All outliers are counted, the latest are kept.
#[derive(Clone, Debug)]
pub struct Thinner {
    bounds: ThinnerConfig,
    envelope: Envelope,
    heat: HeatMap,
    latest: BinaryHeap<Reverse<LateCycle>>,
    beyond: u64,
    walk: Walk,
}

/// A time series, thinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thinned {
    /// All cycles, in few bins.
    pub envelope: Envelope,
    /// All cycles, by how late and when.
    pub heat: HeatMap,
    /// The outliers in order of their cycle; the latest, where there were too many.
    pub outliers: Vec<LateCycle>,
    /// The number of outliers: more than are listed where the list was cut.
    pub outliers_in_all: u64,
    /// The threshold that they are later than, ns.
    pub outlier_above_ns: Option<i64>,
    /// Samples that came in, cold ones included.
    pub samples: u64,
}

impl Thinner {
    /// Nothing yet.
    pub fn new(bounds: ThinnerConfig) -> Self {
        Self {
            envelope: Envelope::new(bounds.bins),
            heat: HeatMap::new(bounds.heat_columns),
            latest: BinaryHeap::new(),
            beyond: 0,
            walk: Walk::new(0, bounds.leave_out_cold),
            bounds,
        }
    }

    /// Takes in the next samples; cycles must not decrease.
    pub fn extend(&mut self, samples: &[Sample]) {
        for sample in samples {
            self.push(sample);
        }
    }

    #[inline]
    fn push(&mut self, sample: &Sample) {
        let lateness_ns = sample.lateness.as_ns();
        let step = self.walk.step(sample, lateness_ns);
        if step.left_out {
            return;
        }
        let missed = step.gap.map_or(0, |gap| gap.missed());
        self.envelope.push(sample.cycle, lateness_ns, missed);
        self.heat.push(sample.cycle, lateness_ns);
        if self.bounds.outlier_above_ns.is_some_and(|above| lateness_ns > above) {
            self.keep(LateCycle { lateness_ns, cycle: sample.cycle });
        }
    }

    #[cold]
    fn keep(&mut self, outlier: LateCycle) {
        self.beyond += 1;
        self.latest.push(Reverse(outlier));
        if self.latest.len() > self.bounds.outliers {
            self.latest.pop();
        }
    }

    /// The time series.
    pub fn finish(self) -> Thinned {
        let mut outliers: Vec<LateCycle> = self.latest.into_iter().map(|kept| kept.0).collect();
        outliers.sort_unstable_by_key(|outlier| (outlier.cycle, outlier.lateness_ns));
        Thinned {
            envelope: self.envelope,
            heat: self.heat,
            outliers,
            outliers_in_all: self.beyond,
            outlier_above_ns: self.bounds.outlier_above_ns,
            samples: self.walk.samples(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::sample::Flags;
    use punctual_core::time::Span;

    use crate::histogram::Histogram;

    fn view(values: impl IntoIterator<Item = i64>) -> HistogramView {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.push(value));
        HistogramView::of(&histogram)
    }

    #[test]
    fn a_column_of_a_histogram_has_its_values_and_what_came_since() {
        let mut histogram = Histogram::new();
        [5, 5, 1_000, 70_000].iter().for_each(|ns| histogram.push(*ns));
        let before = HeatColumn::of(&histogram);
        let counts =
            |column: &HeatColumn| column.cells().map(|cell| cell.count).collect::<Vec<_>>();
        assert_eq!(counts(&before), [2, 1, 1]);
        histogram.push(70_000);
        histogram.push(1 << 60);
        let after = HeatColumn::of(&histogram);
        assert_eq!(HeatColumn::of_rows(0, &after.rows()), after);
        assert_eq!(after.brief().len(), 2 + HeatColumn::ROWS - 1);
        assert!(after.brief().starts_with("0140"), "twice in the second row: {}", after.brief());
        assert_eq!(HeatColumn::default().brief(), "");
        let hostile = HeatColumn::of_rows(0, &[(u64::MAX, u64::MAX), (u64::MAX, 1), (0, 1)]);
        assert_eq!(counts(&hostile), [1, u64::MAX]);
        let mut since = after.since(&before);
        assert_eq!(counts(&since), [1, 1]);
        assert!(
            since
                .cells()
                .next()
                .is_some_and(|cell| cell.from_ns <= 70_000.0 && cell.to_ns > 70_000.0)
        );
        since.add(&before);
        assert_eq!(since, after);
    }

    #[test]
    fn two_share_their_bins() {
        let (a, b) = (view([1_000, 1_001, 50_000]), view([900, 2_000_000, -3, 0]));
        let shared = bins(&[&a, &b], &[]);
        assert_eq!(shared.counts[0].iter().sum::<u64>(), 3);
        assert_eq!(shared.counts[1].iter().sum::<u64>(), 2);
        assert_eq!(shared.not_positive, [0, 2]);
        assert!(shared.edges_ns[0] <= 900.0 && *shared.edges_ns.last().unwrap() > 2_000_000.0);
        assert_eq!(shared.most, 2);
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
            buckets: [
                (i64::MIN, i64::MAX, 1),
                (i64::MIN, 0, u64::MAX),
                (5, 1, u64::MAX),
                (5, 1, 9),
                (1, i64::MAX, 3),
            ]
            .map(ViewBucket::from)
            .to_vec(),
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

    #[test]
    fn a_stall_leaves_the_axis_to_the_others_and_is_counted() {
        let evenly = |count: u32| (0..count).map(|at| 10.0 + f64::from(at % 90));
        let stalled =
            |count: u32, stalls: usize| evenly(count).chain(std::iter::repeat_n(217_000.0, stalls));
        for (count, stalls) in [(127, 1), (126, 2), (5_000, 5)] {
            let found = extent(stalled(count, stalls), false).expect("values");
            assert_eq!((found.low, found.high, found.beyond), (10.0, 99.0, stalls), "{count}");
        }
        // Neither a few of few, nor many of many, nor what is not far away.
        for (count, stalls) in [(8, 1), (900, 9)] {
            assert_eq!(extent(stalled(count, stalls), false).map(|found| found.beyond), Some(0));
        }
        let near = extent(evenly(200).chain([140.0]), false).expect("values");
        assert_eq!((near.high, near.beyond), (140.0, 0));
        // On a log scale the same stall takes little more than its share.
        let log = extent((1..=200).map(f64::from).chain([2_000.0]), true).expect("values");
        assert_eq!((log.high, log.beyond), (2_000.0, 0));
        assert_eq!(extent([0.0, -1.0, f64::NAN], true), None);
        let alike = extent([5.0; 100].into_iter().chain([7.0]), false).expect("values");
        assert_eq!((alike.low, alike.high, alike.beyond), (5.0, 7.0, 0));
    }

    #[test]
    fn ends_where_the_known_end() {
        let known: Vec<i64> = (1..=95).collect();
        let points = curve(&view(known.iter().copied()).with_unknown(5), Some(95.0));
        let last = points.last().unwrap();
        assert_eq!((last.one_in, last.lateness_ns), (20.0, 95.0), "5 of 100 may be later");
        assert_eq!(
            curve(&view(known.iter().copied()).with_unknown(5), Some(1_000.0)).last(),
            Some(last)
        );
        let median = points.iter().find(|point| point.one_in >= 2.0).unwrap();
        assert!((49.0..=51.0).contains(&median.lateness_ns), "{median:?}");
    }

    #[test]
    fn a_hundred_values_are_where_their_ranks_say() {
        let values: Vec<i64> = (1..=100).collect();
        let points = curve(&view(values.iter().copied()), Some(100.0));
        let at = |x: f64| {
            points.iter().find(|point| point.one_in >= x - 1e-9).map(|point| point.lateness_ns)
        };
        assert_eq!((at(2.0), at(10.0), at(100.0)), (Some(50.0), Some(90.0), Some(99.0)));
        assert_eq!(points[points.len() - 1], CurvePoint { one_in: 100.0, lateness_ns: 100.0 });
        assert_eq!(curve(&view([]), None), []);
        assert_eq!(curve(&view([7]), Some(7.0)).last().unwrap().one_in, 1.0);
    }

    proptest! {
        #[test]
        fn rises_ends_at_the_largest_of_n_and_stays_small(
            mut values in prop::collection::vec(-100i64..10_000_000, 1..2_000),
        ) {
            values.sort_unstable();
            let max = values[values.len() - 1] as f64;
            let points = curve(&view(values.iter().copied()), Some(max));
            prop_assert!(points.len() <= 12 + (CURVE_POINTS_TO_A_DECADE * 4.0) as usize * 2);
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

    #[test]
    fn few_cycles_stay_as_they_are() {
        let mut envelope = Envelope::new(4);
        for (cycle, lateness) in [(3, 7), (9, -2), (10, 5)] {
            envelope.push(cycle, lateness, 0);
        }
        assert_eq!(envelope.width(), 1);
        let firsts: Vec<_> = envelope.bins().iter().map(|s| (s.first, s.max_ns)).collect();
        assert_eq!(firsts, [(3, 7), (9, -2), (10, 5)]);
    }

    #[test]
    fn the_largest_cycles_and_values_fit() {
        let mut envelope = Envelope::new(2);
        for cycle in [0, 1, 2, u64::MAX >> 8] {
            envelope.push(cycle, i64::MAX, u64::MAX);
            envelope.push(cycle, i64::MIN, u64::MAX);
        }
        assert!(envelope.bins().len() <= 2);
        assert_eq!(envelope.bins().iter().map(|s| s.n).sum::<u64>(), 8);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_the_size_is_kept(
            steps in prop::collection::vec((1u64..5_000, -50i64..1_000, 0u64..3), 1..600),
            most in 2usize..64,
        ) {
            let mut envelope = Envelope::new(most);
            let mut cycle = 0;
            let mut pushed = Vec::new();
            for &(step, lateness, missed) in &steps {
                cycle += step;
                envelope.push(cycle, lateness, missed);
                pushed.push((cycle, lateness));
            }
            let bins = envelope.bins();
            prop_assert!(bins.len() <= most);
            prop_assert!(bins.windows(2).all(|pair| pair[0].first < pair[1].first));
            for bin in bins {
                let end = bin.first + envelope.width();
                let inside: Vec<i64> = pushed
                    .iter()
                    .filter(|(cycle, _)| (bin.first..end).contains(cycle))
                    .map(|&(_, lateness)| lateness)
                    .collect();
                prop_assert_eq!(bin.n, inside.len() as u64);
                prop_assert_eq!(Some(&bin.min_ns), inside.iter().min());
                prop_assert_eq!(Some(&bin.max_ns), inside.iter().max());
                let mean = inside.iter().sum::<i64>() as f64 / inside.len() as f64;
                prop_assert!((bin.mean_ns() - mean).abs() < 1e-6);
            }
            let counted: u64 = bins.iter().map(|s| s.n).sum();
            prop_assert_eq!(counted, steps.len() as u64);
            let missed: u64 = bins.iter().map(|s| s.missed).sum();
            prop_assert_eq!(missed, steps.iter().map(|s| s.2).sum::<u64>());
        }
    }

    fn sample(cycle: u64, lateness_ns: i64, flags: Flags) -> Sample {
        Sample { cycle, lateness: Span::from_ns(lateness_ns), flags }
    }

    #[test]
    fn rows_of_a_heat_map_hold_their_latenesses() {
        for ns in [-5, 0, 3, 4, 5, 7, 8, 1_000, 1_023, 1_024, 999_999, 1 << 39, (1 << 40) - 1] {
            let mut map = HeatMap::new(4);
            map.push(0, ns);
            let cells: Vec<HeatCell> = map.bins()[0].cells().collect();
            let [HeatCell { from_ns, to_ns, count: 1 }] = cells[..] else { panic!("{cells:?}") };
            let at = (ns as f64).max(4.0);
            assert!(from_ns <= at && at < to_ns && to_ns <= 1.25 * from_ns, "{ns}: {cells:?}");
        }
        let mut map = HeatMap::new(2);
        map.push(0, i64::MIN);
        map.push(u64::MAX, i64::MAX);
        let count = |column: &HeatColumn| column.cells().map(|cell| cell.count).sum::<u64>();
        assert_eq!(map.bins().iter().map(count).collect::<Vec<_>>(), [1, 1], "none is lost");
    }

    proptest! {
        #[test]
        fn a_heat_map_counts_every_cycle_in_its_row_and_keeps_its_size(
            most in 2_usize..40,
            latenesses in prop::collection::vec(1_i64..10_000_000, 1..400),
            gap in 1_u64..5_000,
        ) {
            let (mut map, mut rows) = (HeatMap::new(most), vec![0_u64; HeatColumn::ROWS]);
            for (at, &ns) in latenesses.iter().enumerate() {
                map.push(at as u64 * gap, ns);
                rows[HeatColumn::row(ns)] += 1;
            }
            prop_assert!(map.bins().len() <= most);
            let mut counted = vec![0; HeatColumn::ROWS];
            for column in map.bins() {
                prop_assert_eq!(column.first % map.width(), 0);
                counted.iter_mut().zip(&column.counts).for_each(|(sum, more)| *sum += more);
            }
            prop_assert_eq!(counted, rows);
            prop_assert!(map.bins().windows(2).all(|pair| pair[0].first < pair[1].first));
        }
    }

    fn bounds() -> ThinnerConfig {
        ThinnerConfig {
            bins: 8,
            heat_columns: 8,
            outliers: 3,
            outlier_above_ns: Some(50),
            leave_out_cold: true,
        }
    }

    #[test]
    fn the_latest_outliers_are_kept_and_all_are_counted() {
        let mut thinner = Thinner::new(bounds());
        for cycle in 0..100 {
            thinner.push(&sample(cycle, (cycle as i64 * 37) % 100, Flags::NONE));
        }
        let thinned = thinner.finish();
        assert_eq!(thinned.outliers_in_all, 49);
        let mut kept: Vec<i64> = thinned.outliers.iter().map(|o| o.lateness_ns).collect();
        assert!(thinned.outliers.windows(2).all(|pair| pair[0].cycle < pair[1].cycle));
        kept.sort_unstable();
        assert_eq!(kept, [97, 98, 99]);
        assert!(thinned.envelope.bins().len() <= 8);
    }

    #[test]
    fn cold_cycles_are_left_out_and_gaps_within_a_segment_are_missed() {
        let mut thinner = Thinner::new(bounds());
        thinner.extend(&[
            sample(0, 900, Flags::FIRST.with(Flags::COLD)),
            sample(1, 5, Flags::NONE),
            sample(4, 60, Flags::NONE),
            sample(90, 7, Flags::FIRST),
        ]);
        let thinned = thinner.finish();
        assert_eq!((thinned.samples, thinned.outliers_in_all), (4, 1));
        let bins = thinned.envelope.bins();
        let seen: Vec<_> = bins.iter().map(|s| (s.first, s.max_ns, s.missed)).collect();
        assert_eq!(seen, [(1, 5, 0), (4, 60, 2), (90, 7, 0)]);
    }
}
