//! A histogram of signed times with a relative resolution of 1/1024, in fixed memory.
//!
//! Log-linear, in two halves: magnitudes below 2048 ns each have a bucket of their own, above that
//! every power of two is cut in 1024. Magnitudes from 2⁴² ns (73 min) on are counted as overflow.
//! Minimum and maximum are exact. Holds counts only; never forgets a value silently.

pub mod clusters;

use punctual_core::bucket::LogLinear;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::quantile::Probability;
use clusters::{Cluster, clusters};

/// A histogram of signed nanoseconds. As long as its largest value needs: 8 KiB for each power of
/// two above 1 µs, about 270 KiB at most, and as much for negative ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Counts of values ≥ 0 by bucket; as far as the largest one needs.
    positive: Vec<u64>,
    /// Counts of values < 0 by bucket of the magnitude, likewise.
    negative: Vec<u64>,
    /// Values of magnitude 2⁴² ns or more, above and below.
    beyond: u64,
    below: u64,
    n: u64,
    /// `None` while empty.
    range: Option<(i64, i64)>,
}

impl Histogram {
    /// An empty histogram, without memory until the first value.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in one value.
    #[inline]
    pub fn push(&mut self, value_ns: i64) {
        self.n += 1;
        self.range = Some(match self.range {
            Some((min, max)) => (min.min(value_ns), max.max(value_ns)),
            None => (value_ns, value_ns),
        });
        let bucket = Buckets::index(value_ns.unsigned_abs());
        let half = if value_ns >= 0 { &mut self.positive } else { &mut self.negative };
        match half.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.push_outside(value_ns, bucket),
        }
    }

    /// Takes in `count` values; those of magnitude 2⁴² ns or more are overflow, as in
    /// [`Self::push`]. The caller keeps the sum of all counts within `u64`.
    pub fn push_many(&mut self, value_ns: i64, count: u64) {
        let Some(more) = count.checked_sub(1) else { return };
        self.push(value_ns);
        self.n += more;
        let bucket = Buckets::index(value_ns.unsigned_abs());
        match (value_ns >= 0, bucket < Buckets::COUNT) {
            (true, true) => self.positive[bucket] += more,
            (false, true) => self.negative[bucket] += more,
            (true, false) => self.beyond += more,
            (false, false) => self.below += more,
        }
    }

    /// The smallest value that shares the bucket of `value_ns` (≥ 0).
    pub(super) fn lowest_with(value_ns: i64) -> i64 {
        let bucket = Buckets::index(value_ns.max(0).unsigned_abs()).min(Buckets::COUNT);
        lowest_ns(bucket)
    }

    /// Takes in `count` values from `least_ns` to `most_ns`, which share a bucket.
    pub(super) fn push_within(&mut self, least_ns: i64, most_ns: i64, count: u64) {
        debug_assert_eq!(Self::lowest_with(least_ns), Self::lowest_with(most_ns), "one bucket");
        if count > 0 {
            self.push_many(most_ns, count);
            self.range = self.range.map(|(min, max)| (min.min(least_ns), max));
        }
    }

    /// Takes in `count` values that are above all others and at most `most_ns`: they are overflow.
    pub fn push_beyond(&mut self, most_ns: i64, count: u64) {
        if count > 0 {
            self.n += count;
            self.beyond += count;
            let (min, max) = self.range.unwrap_or((most_ns, most_ns));
            self.range = Some((min, max.max(most_ns)));
        }
    }

    /// Takes in values of a magnitude below 2³², at least one; returns the largest.
    #[inline]
    pub(super) fn extend_near(&mut self, values_ns: &[i64]) -> i64 {
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        for &ns in values_ns {
            (min, max) = (min.min(ns), max.max(ns));
        }
        self.n += values_ns.len() as u64;
        let (so_far_min, so_far_max) = self.range.unwrap_or((min, max));
        self.range = Some((so_far_min.min(min), so_far_max.max(max)));
        if max >= 0 {
            reach(&mut self.positive, Buckets::index(max.unsigned_abs()));
        }
        if min < 0 {
            reach(&mut self.negative, Buckets::index(min.unsigned_abs()));
        }
        // The sign selects the half without a branch: that of intervals is unpredictable.
        let halves = [&mut self.positive[..], &mut self.negative[..]];
        for &ns in values_ns {
            if let Some(count) =
                halves[usize::from(ns < 0)].get_mut(Buckets::index(ns.unsigned_abs()))
            {
                *count += 1;
            }
        }
        max
    }

    /// The rare cases of `push`: a half that does not reach the bucket yet, or an overflow.
    #[cold]
    fn push_outside(&mut self, value_ns: i64, bucket: usize) {
        let half = if value_ns >= 0 { &mut self.positive } else { &mut self.negative };
        if bucket < Buckets::COUNT {
            reach(half, bucket);
            half[bucket] += 1;
        } else if value_ns >= 0 {
            self.beyond += 1;
        } else {
            self.below += 1;
        }
    }

    /// Takes in all values of `added`.
    pub fn merge(&mut self, added: &Self) {
        for (mine, theirs) in
            [(&mut self.positive, &added.positive), (&mut self.negative, &added.negative)]
        {
            if let Some(last) = theirs.len().checked_sub(1) {
                reach(mine, last);
            }
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.beyond += added.beyond;
        self.below += added.below;
        self.n += added.n;
        self.range = match (self.range, added.range) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// The smallest value, exact, ns.
    pub fn min(&self) -> Option<i64> {
        self.range.map(|range| range.0)
    }

    /// The largest value, exact, ns.
    pub fn max(&self) -> Option<i64> {
        self.range.map(|range| range.1)
    }

    /// Values of magnitude 2⁴² ns (73 min) or more, which have no bucket.
    pub fn overflow(&self) -> u64 {
        self.beyond + self.below
    }

    /// The quantile at p: the order statistic of rank ⌈p·n⌉, rounded up to the highest value of its
    /// bucket (conservative for upper limits, at most 1/1024 too large), never beyond the exact
    /// maximum. `None` when n does not support it ([`Probability::is_supported`]).
    pub fn quantile(&self, p: Probability) -> Option<i64> {
        self.quantile_below(p, 0)
    }

    /// The quantile at p as [`Self::quantile`] has it, where `later` more values count as larger
    /// than all of these; `None` where the quantile is one of them.
    pub fn quantile_below(&self, p: Probability, later: u64) -> Option<i64> {
        let n = self.n.saturating_add(later);
        p.is_supported(n).then(|| self.order_statistic(p.rank(n)))?
    }

    /// The value of the given rank (1 = smallest), rounded up within its bucket; `None` outside
    /// [1, n].
    pub fn order_statistic(&self, rank: u64) -> Option<i64> {
        let (min, max) = self.range?;
        if rank == 0 || rank > self.n {
            return None;
        }
        let mut seen = self.below;
        if rank <= seen {
            // Somewhere in the overflow: all that is known of it is the end of the range.
            return Some((-lowest_ns(Buckets::COUNT)).clamp(min, max));
        }
        for bucket in self.buckets() {
            seen += bucket.count;
            if rank <= seen {
                return Some(bucket.highest_ns.clamp(min, max));
            }
        }
        Some(max)
    }

    /// The value of the given rank, rounded down within its bucket: the conservative side for lower
    /// ends of intervals.
    pub fn order_statistic_floor(&self, rank: u64) -> Option<i64> {
        let (min, max) = self.range?;
        if rank == 0 || rank > self.n {
            return None;
        }
        let mut seen = self.below;
        if rank <= seen {
            return Some(min);
        }
        for bucket in self.buckets() {
            seen += bucket.count;
            if rank <= seen {
                return Some(bucket.lowest_ns.clamp(min, max));
            }
        }
        Some(lowest_ns(Buckets::COUNT).clamp(min, max))
    }

    /// The buckets that hold something, in rising order; without the overflow.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.grouped(0)
    }

    /// Groups of 2^`bits` neighbouring buckets that hold something, in rising order; without the
    /// overflow. `bits` is at most 10, so that a group never spans two powers of two with different
    /// widths.
    pub fn grouped(&self, bits: u32) -> impl Iterator<Item = Bucket> + '_ {
        let size = 1 << bits.min(10);
        let below = self.negative.chunks(size).enumerate().rev();
        let above = self.positive.chunks(size).enumerate();
        let bounds = move |group: usize| {
            let (first, last) = (group * size, group * size + size - 1);
            (lowest_ns(first), lowest_ns(last + 1) - 1)
        };
        below
            .map(move |(group, counts)| {
                let (lowest, highest) = bounds(group);
                // Magnitude 0 is never negative: the first group starts at −1.
                (-highest, -lowest.max(1), counts)
            })
            .chain(above.map(move |(group, counts)| {
                let (lowest, highest) = bounds(group);
                (lowest, highest, counts)
            }))
            .map(|(lowest_ns, highest_ns, counts)| Bucket {
                lowest_ns,
                highest_ns,
                count: counts.iter().sum(),
            })
            .filter(|bucket| bucket.count > 0)
    }

    /// True where the bucket of this value holds something.
    fn holds(&self, value_ns: i64) -> bool {
        let bucket = Buckets::index(value_ns.unsigned_abs());
        let (half, outside) = if value_ns >= 0 {
            (&self.positive, self.beyond)
        } else {
            (&self.negative, self.below)
        };
        if bucket < Buckets::COUNT {
            half.get(bucket).is_some_and(|&count| count > 0)
        } else {
            outside > 0
        }
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            positive: sparse(&self.positive),
            negative: sparse(&self.negative),
            beyond: self.beyond,
            below: self.below,
            range_ns: self.range,
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        whole(&wire).map_err(|why| D::Error::custom(format!("a histogram with {why}")))
    }
}

/// A bucket that holds something: values in `lowest_ns ..= highest_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value that would fall in it, ns.
    pub lowest_ns: i64,
    /// Largest value that would fall in it, ns.
    pub highest_ns: i64,
    /// The number of values in it.
    pub count: u64,
}

/// Counts are allocated for so many buckets at once: a power of two of magnitudes.
const AT_ONCE: usize = 1024;

/// Makes a half long enough for a bucket; its length depends on its largest value alone.
fn reach(half: &mut Vec<u64>, bucket: usize) {
    let wanted = (bucket + 1).next_multiple_of(AT_ONCE).min(Buckets::COUNT);
    if half.len() < wanted {
        // Zeroed by the system rather than here: what is never counted takes no memory.
        let mut longer = vec![0; wanted];
        longer[..half.len()].copy_from_slice(half);
        *half = longer;
    }
}

/// The buckets of a half, ns: each at most 1/1024 of its values wide, up to a magnitude of 2⁴² ns.
type Buckets = LogLinear<10, 42>;

/// The lowest magnitude of a bucket, ns; of the one behind the last where the range ends.
fn lowest_ns(bucket: usize) -> i64 {
    Buckets::bounds(bucket).0.cast_signed()
}

/// More values than any histogram holds: so many that a few such counts add up without overflow.
const COUNT_MAX: u64 = 1 << 56;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    /// [steps over empty buckets, count, …], for values ≥ 0 and < 0.
    positive: Vec<u64>,
    negative: Vec<u64>,
    beyond: u64,
    below: u64,
    range_ns: Option<(i64, i64)>,
}

fn sparse(counts: &[u64]) -> Vec<u64> {
    let mut next = 0;
    let mut list = Vec::new();
    for (at, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        list.extend([(at - next) as u64, count]);
        next = at + 1;
    }
    list
}

/// The counts by bucket, and how many there are in all.
fn dense(list: &[u64]) -> Result<(Vec<u64>, u64), &'static str> {
    let (pairs, rest) = list.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("a bucket without a count");
    }
    let (mut counts, mut next, mut n) = (Vec::new(), 0u64, 0u64);
    for &[step, count] in pairs {
        let at = next.checked_add(step).filter(|&at| at < Buckets::COUNT as u64);
        let at = at.ok_or("a bucket beyond the last one")?;
        if count == 0 || count > COUNT_MAX {
            return Err("an invalid count");
        }
        reach(&mut counts, at as usize);
        counts[at as usize] = count;
        n += count;
        if n > COUNT_MAX {
            return Err("too many values");
        }
        next = at + 1;
    }
    Ok((counts, n))
}

fn whole(wire: &Wire) -> Result<Histogram, &'static str> {
    let (positive, above) = dense(&wire.positive)?;
    let (negative, under) = dense(&wire.negative)?;
    if wire.beyond > COUNT_MAX || wire.below > COUNT_MAX {
        return Err("too many values");
    }
    let n = above + under + wire.beyond + wire.below;
    let range = wire.range_ns.filter(|_| n > 0);
    let histogram =
        Histogram { positive, negative, beyond: wire.beyond, below: wire.below, n, range };
    match (n, wire.range_ns) {
        (0, None) => Ok(histogram),
        (1.., Some((min, max))) if min <= max => {
            let ends = [min, max].into_iter().all(|ns| histogram.holds(ns));
            let inside = histogram.buckets().all(|b| b.highest_ns >= min && b.lowest_ns <= max);
            if ends && inside {
                Ok(histogram)
            } else {
                Err("a minimum or maximum outside its buckets")
            }
        }
        _ => Err("an invalid minimum or maximum"),
    }
}

/// The most buckets that a [`HistogramView`] lists.
pub const VIEW_BUCKETS_MAX: usize = 500;

/// A bucket of a [`HistogramView`]: values in lower ≤ value < upper. One that was read from a file
/// may have its ends the wrong way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, i64, u64)", into = "(i64, i64, u64)")]
pub struct ViewBucket {
    /// The smallest value that falls in it, ns.
    pub lower_ns: i64,
    /// The smallest value above it, ns.
    pub upper_ns: i64,
    /// The number of values in it.
    pub count: u64,
}

impl ViewBucket {
    /// This bucket with its largest value in place of its upper end.
    pub fn closed(self) -> Bucket {
        let highest_ns = self.upper_ns.saturating_sub(1);
        Bucket { lowest_ns: self.lower_ns, highest_ns, count: self.count }
    }
}

impl From<Bucket> for ViewBucket {
    fn from(Bucket { lowest_ns, highest_ns, count }: Bucket) -> Self {
        Self { lower_ns: lowest_ns, upper_ns: highest_ns + 1, count }
    }
}

impl From<(i64, i64, u64)> for ViewBucket {
    fn from((lower_ns, upper_ns, count): (i64, i64, u64)) -> Self {
        Self { lower_ns, upper_ns, count }
    }
}

impl From<ViewBucket> for (i64, i64, u64) {
    fn from(ViewBucket { lower_ns, upper_ns, count }: ViewBucket) -> Self {
        (lower_ns, upper_ns, count)
    }
}

/// A histogram as it stands in a result file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistogramView {
    /// The unit of all bounds: 1 ns.
    pub unit_ns: u64,
    /// [lower, upper, count] in rising order, only those that hold something: lower ≤ value <
    /// upper.
    #[schemars(with = "Vec<(i64, i64, u64)>")]
    pub buckets: Vec<ViewBucket>,
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
        Self {
            unit_ns: 1,
            buckets: histogram.grouped(bits.unwrap_or(10)).map(ViewBucket::from).collect(),
            overflow: histogram.overflow(),
            unknown: 0,
            clusters: clusters(histogram),
        }
    }

    /// This view with `unknown` more values, which count as the largest.
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
    use proptest::prelude::*;

    fn of(values: impl IntoIterator<Item = i64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.push(value));
        histogram
    }

    #[test]
    fn an_empty_one_says_nothing() {
        let empty = Histogram::new();
        assert_eq!((empty.min(), empty.max(), empty.count()), (None, None, 0));
        assert_eq!(empty.quantile(Probability::P50), None);
        assert_eq!(empty.order_statistic(1), None);
        assert_eq!(empty.buckets().count(), 0);
    }

    #[test]
    fn quantiles_need_enough_samples() {
        let values: Vec<i64> = (1..=999).collect();
        assert_eq!(of(values.iter().copied()).quantile(Probability::P99), Some(990));
        assert_eq!(of(values.iter().copied()).quantile(Probability::P99_9), None);
    }

    #[test]
    fn many_at_once_are_the_same_as_one_by_one() {
        let mut at_once = Histogram::new();
        let each = [(-7, 2), (5, 3), (0, 0), (1 << 50, 2), (-(1 << 50), 1)];
        each.iter().for_each(|&(value, count)| at_once.push_many(value, count));
        let one_by_one: Vec<i64> =
            each.iter().flat_map(|&(value, count)| vec![value; count as usize]).collect();
        assert_eq!(at_once, of(one_by_one.iter().copied()));
        at_once.push_beyond(1 << 51, 4);
        assert_eq!((at_once.count(), at_once.max(), at_once.overflow()), (12, Some(1 << 51), 7));
    }

    #[test]
    fn the_overflow_is_counted_and_the_extremes_stay_exact() {
        let histogram = of([i64::MIN, -5, 5, i64::MAX]);
        assert_eq!(histogram.overflow(), 2);
        assert_eq!((histogram.min(), histogram.max()), (Some(i64::MIN), Some(i64::MAX)));
        assert_eq!(histogram.order_statistic(4), Some(i64::MAX));
        assert_eq!(histogram.order_statistic(2), Some(-5));
        assert!(histogram.order_statistic(1).unwrap() <= -(1 << 42));
        assert_eq!(histogram.order_statistic_floor(1), Some(i64::MIN));
    }

    fn any_time() -> impl Strategy<Value = i64> {
        prop_oneof![
            -3_000i64..3_000,
            -1_000_000_000_000i64..1_000_000_000_000,
            (0u32..41).prop_map(|s| 1 << s)
        ]
    }

    proptest! {
        #[test]
        fn quantiles_agree_with_sorting_within_one_part_in_1024(
            mut values in prop::collection::vec(any_time(), 1..500), p in 0.001f64..0.999,
        ) {
            let histogram = of(values.iter().copied());
            values.sort_unstable();
            let p = Probability::from_share(p).unwrap();
            let rank = p.rank(values.len() as u64);
            let exact = values[rank as usize - 1];
            let up = histogram.order_statistic(rank).unwrap();
            let down = histogram.order_statistic_floor(rank).unwrap();
            prop_assert!(down <= exact && exact <= up);
            let allowed = exact.unsigned_abs() as f64 / 1024.0;
            prop_assert!((up - exact) as f64 <= allowed && (exact - down) as f64 <= allowed);
            let supported = p.is_supported(values.len() as u64).then_some(up);
            prop_assert_eq!(histogram.quantile(p), supported);
        }

        #[test]
        fn merging_is_the_same_as_collecting_together(
            a in prop::collection::vec(any_time(), 0..100),
            b in prop::collection::vec(any_time(), 0..100),
        ) {
            let mut merged = of(a.iter().copied());
            merged.merge(&of(b.iter().copied()));
            let together = of([a, b].concat());
            prop_assert_eq!(merged, together);
        }

        #[test]
        fn every_value_is_in_its_bucket(value in any_time(), bits in 0u32..=10) {
            let buckets: Vec<_> = of([value]).grouped(bits).collect();
            prop_assert_eq!(buckets.len(), 1);
            prop_assert!(buckets[0].lowest_ns <= value && value <= buckets[0].highest_ns);
        }
    }

    #[test]
    fn it_is_as_long_as_its_largest_value_needs_however_it_came() {
        let mut pushed = of([1_000, 50_000, 2]);
        assert_eq!((pushed.positive.len(), pushed.negative.len()), (7 * 1024, 0));
        let mut near = Histogram::new();
        near.extend_near(&[1_000, 50_000, 2]);
        let mut merged = of([2]);
        merged.merge(&of([50_000, 1_000]));
        assert_eq!((&near, &merged), (&pushed, &pushed));
        pushed.push(-3_000_000);
        pushed.push(i64::MAX);
        assert_eq!((pushed.positive.len(), pushed.negative.len()), (7 * 1024, 13 * 1024));
        merged.merge(&of([-3_000_000, i64::MAX]));
        assert_eq!(merged, pushed);
        pushed.push((1 << 42) - 1);
        assert_eq!(pushed.positive.len(), Buckets::COUNT);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let read = |text: &str| serde_json::from_str::<Histogram>(text).map_err(|e| e.to_string());
        let histogram = |positive: &str, range: &str| {
            let rest = r#""negative":[],"beyond":0,"below":0"#;
            read(&format!(r#"{{"positive":{positive},{rest},"range_ns":{range}}}"#))
        };
        assert_eq!(histogram("[5,2]", "[5,5]").map(|h| h.count()), Ok(2));
        assert_eq!(histogram("[]", "null"), Ok(Histogram::new()));
        for (positive, range, why) in [
            ("[5]", "[5,5]", "without a count"),
            ("[5,0]", "[5,5]", "an invalid count"),
            ("[99999999,1]", "[5,5]", "beyond the last"),
            ("[18446744073709551615,1]", "[5,5]", "beyond the last"),
            ("[5,72057594037927937]", "[5,5]", "an invalid count"),
            ("[5,1]", "null", "minimum or maximum"),
            ("[5,1]", "[6,5]", "minimum or maximum"),
            ("[5,1]", "[5,6]", "minimum or maximum"),
            ("[5,1,1,1]", "[5,5]", "minimum or maximum"),
            ("[]", "[5,5]", "minimum or maximum"),
        ] {
            let refused = histogram(positive, range).unwrap_err();
            assert!(refused.contains(why), "{positive} {range}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn what_was_stored_comes_back(
            values in prop::collection::vec(
                prop_oneof![-3_000i64..3_000, -1_000_000_000i64..1_000_000_000, any::<i64>()],
                0..200,
            ),
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.push(value));
            let text = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        }
    }

    #[test]
    fn a_view_is_small_and_loses_nothing() {
        let histogram = of((0..200_000).map(|i| i * 997 - 1_000_000).chain([i64::MAX]));
        let view = HistogramView::of(&histogram);
        assert!(view.buckets.len() <= VIEW_BUCKETS_MAX, "{}", view.buckets.len());
        assert_eq!(
            view.buckets.iter().map(|bucket| bucket.count).sum::<u64>() + view.overflow,
            200_001
        );
        assert!(view.buckets.windows(2).all(|pair| pair[0].upper_ns <= pair[1].lower_ns));
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
