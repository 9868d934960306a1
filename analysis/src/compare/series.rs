//! A run in bounded memory, in the order of time: chunks of releases with a histogram each.
//!
//! Comparisons take a run in it and baselines keep it: any count above an edge of a bucket is
//! exact, and the scatter of the counts of chunks shows how dependent cycles are. The buckets are
//! the recorder's ([`punctual_core::bucket`]): at most 1/128 of their value wide. Of a histogram
//! alone its own buckets are kept too, which may be wider.

use punctual_core::bucket::{self, BucketPlace};
use punctual_core::sample::Sample;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::count::EventCount;
use crate::histogram::{Bucket, VIEW_BUCKETS_MAX, ViewBucket};
use crate::recording::{RELEASES_MAX, RunFigures};
use crate::release::{Falling, Walk};

/// The most chunks of a series; when they are full, neighbours are merged.
pub const CHUNKS_MAX: usize = 128;

/// Releases in a chunk at first.
const CHUNK_FIRST: u64 = 16;

/// Values below 0 have the first cell, those beyond the last bucket the last.
const CELLS: usize = bucket::COUNT + 2;

/// The cell of what is later than every bucket.
const TOP: u16 = (CELLS - 1) as u16;

/// Counts by cell, in rising order of the cell, without empty ones.
pub type Cells = Vec<(u16, u64)>;

/// One run, or one load's part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatenessSeries {
    /// Consecutive releases, chunk by chunk; each with the cells of their lateness, missed ones
    /// included.
    pub chunks: Vec<Cells>,
    /// Of each chunk the missed releases alone; empty where they are not kept apart.
    pub missed_chunks: Vec<Cells>,
    /// True where the chunks are in the order of time; false for a histogram alone, which is one
    /// chunk.
    pub ordered: bool,
    /// Releases that never ran; they are in the chunks too.
    pub missed: u64,
    /// The largest lateness that is known, ns; a lower bound where releases are only known to be a
    /// period late.
    pub max_ns: Option<i64>,
    /// True where these are the wakes alone, of data that know no releases.
    pub of_wakes: bool,
    /// The largest lateness of a wake, ns.
    pub wakes_max_ns: Option<i64>,
    /// Of a histogram alone its own buckets, in rising order: [lower, upper, count]; what lies
    /// beyond them is in `chunks` alone. Not there of samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<(i64, i64, u64)>")]
    pub buckets: Vec<ViewBucket>,
    /// What another program left out of its histogram, as [lower, upper, count]: it lies somewhere
    /// between the end of that and the largest value. Not there where nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<(i64, i64, u64)>")]
    pub left_out: Option<ViewBucket>,
}

impl LatenessSeries {
    /// The histogram of a result, without the order of its cycles.
    pub fn of_figures(outcome: &RunFigures) -> Self {
        let (view, max_ns) = (&outcome.histogram, outcome.lateness_ns.max);
        let unbounded = || {
            let imported = outcome.imported.as_ref().filter(|_| view.overflow > 0)?;
            let last_ns = || view.buckets.last().map(|bucket| bucket.upper_ns);
            let lowest_ns = imported.limit_ns.or_else(last_ns).unwrap_or(i64::MIN);
            Some(Bucket { lowest_ns, highest_ns: i64::MAX - 1, count: view.overflow })
        };
        let left_out = outcome.left_out().or_else(unbounded);
        let beyond = if left_out.is_some() { 0 } else { view.overflow };
        let beyond = beyond.saturating_add(outcome.censored);
        let series = Self::of_buckets(&view.buckets, beyond, max_ns.map(|ns| ns as i64));
        let Some(left_out) = left_out else { return series };
        let cell = [(cell_of(left_out.highest_ns), left_out.count)];
        let chunks = series.chunks.iter().map(|cells| merged(cells, &cell)).collect();
        Self { chunks, left_out: Some(left_out.into()), ..series }
    }

    /// A histogram alone: its buckets, and how much lies beyond its end.
    pub fn of_buckets(buckets: &[ViewBucket], beyond: u64, max_ns: Option<i64>) -> Self {
        let mut cells: Vec<(u16, u64)> = buckets
            .iter()
            .map(|bucket| (cell_of(bucket.closed().highest_ns), bucket.count))
            .chain((beyond > 0).then_some((TOP, beyond)))
            .filter(|&(_, count)| count > 0)
            .collect();
        cells.sort_unstable_by_key(|&(cell, _)| cell);
        let mut buckets: Vec<ViewBucket> =
            buckets.iter().filter(|bucket| bucket.count > 0).copied().collect();
        buckets.sort_unstable_by_key(|bucket| bucket.lower_ns);
        Self { chunks: vec![merged(&cells, &[])], max_ns, buckets, ..Self::default() }
    }

    /// The wakes alone; `None` where they cannot be separated from missed releases.
    pub fn wakes(&self) -> Option<Self> {
        if self.of_wakes || self.missed == 0 {
            return Some(Self { of_wakes: true, ..self.clone() });
        }
        if self.missed_chunks.len() != self.chunks.len() {
            return None;
        }
        let chunks = self.chunks.iter().zip(&self.missed_chunks).map(|(cells, missed)| {
            let place = |cell: u16| missed.binary_search_by_key(&cell, |&(at, _)| at).ok();
            let left = |&(cell, count): &(u16, u64)| {
                (cell, count.saturating_sub(place(cell).map_or(0, |at| missed[at].1)))
            };
            cells.iter().map(left).filter(|&(_, count)| count > 0).collect()
        });
        let mut chunks: Vec<Cells> = chunks.collect();
        chunks.retain(|cells| !cells.is_empty());
        let max_ns = self.wakes_max_ns;
        Some(Self {
            chunks,
            max_ns,
            of_wakes: true,
            ordered: self.ordered,
            wakes_max_ns: self.wakes_max_ns,
            ..Self::default()
        })
    }

    /// Releases, missed ones included.
    pub fn releases(&self) -> u64 {
        self.chunks.iter().map(|cells| count(cells)).fold(0, u64::saturating_add)
    }

    /// The least end of a bucket, ns, that no more than 1 − `p` of the releases exceed; `None`
    /// without a release. `p` in (0, 1).
    pub fn quantile_ns(&self, p: f64) -> Option<i64> {
        let pooled = self.chunks.iter().fold(Cells::new(), |sum, cells| merged(&sum, cells));
        let allowed = (1.0 - p) * count(&pooled) as f64;
        let exceeded = |&&(cell, _): &&(u16, u64)| above(&pooled, cell) as f64 <= allowed;
        pooled.iter().find(exceeded).map(|&(cell, _)| bounds_ns(cell).1 - 1)
    }

    /// Returns true where some releases may have been later than the largest that is known: they
    /// count beyond the last bucket.
    pub(super) fn is_open(&self) -> bool {
        let beyond = self.chunks.iter().any(|cells| cells.last().is_some_and(|last| last.0 == TOP));
        beyond && self.max_ns.is_none_or(|ns| cell_of(ns) < TOP)
    }

    /// Returns true where every cell exists, cells and buckets stand in order, and there are no
    /// more releases than any run has: what a file contains is checked before use.
    pub fn is_sound(&self) -> bool {
        let sound = |cells: &Cells| {
            cells.is_sorted_by(|a, b| a.0 < b.0)
                && cells.iter().all(|&(cell, count)| cell <= TOP && count < 1 << 56)
        };
        let lists = [&self.chunks, &self.missed_chunks];
        lists.iter().all(|list| list.len() <= CHUNKS_MAX + 1 && list.iter().all(sound))
            && self.releases() <= RELEASES_MAX
            && self.are_buckets_sound()
    }

    fn are_buckets_sound(&self) -> bool {
        let held = || self.buckets.iter().chain(&self.left_out);
        let sum = held().fold(0, |sum: u64, bucket| sum.saturating_add(bucket.count));
        self.buckets.len() <= VIEW_BUCKETS_MAX
            && held().all(|bucket| bucket.lower_ns < bucket.upper_ns)
            && self.buckets.is_sorted_by(|a, b| a.upper_ns <= b.lower_ns)
            && sum <= self.releases()
    }

    /// The part in the turns that `keep` is true of, of `turns` that are equally long, from 0. A
    /// chunk of which a part lies in another turn is left out.
    #[must_use]
    pub fn of_turns(&self, turns: u64, keep: impl Fn(u64) -> bool) -> Self {
        let releases = u128::from(self.releases().max(1));
        let turn = |release: u64| (u128::from(release) * u128::from(turns) / releases) as u64;
        let mut first = 0;
        let lies_within: Vec<bool> = self
            .chunks
            .iter()
            .map(|cells| {
                let after = first + count(cells);
                let last = turn(after.max(first + 1) - 1);
                let kept = (turn(first)..=last).all(&keep);
                first = after;
                kept
            })
            .collect();
        let kept = |chunks: &[Cells]| {
            let chunks = chunks.iter().zip(&lies_within);
            chunks.filter(|(_, kept)| **kept).map(|(cells, _)| cells.clone()).collect()
        };
        let missed_chunks: Vec<_> = kept(&self.missed_chunks);
        Self {
            chunks: kept(&self.chunks),
            missed: missed_chunks.iter().map(|cells| count(cells)).sum(),
            missed_chunks,
            ordered: self.ordered,
            of_wakes: self.of_wakes,
            ..Self::default()
        }
    }

    /// Releases later than `ns`, at the end of the bucket that holds it.
    pub fn later_than(&self, ns: i64) -> u64 {
        let cell = cell_of(ns);
        self.chunks.iter().map(|cells| above(cells, cell)).sum()
    }

    /// Releases later than `ns`, at least and at most: a bucket may hold it.
    pub(super) fn later_within(&self, ns: i64) -> (u64, u64) {
        if !self.buckets.is_empty() || self.left_out.is_some() {
            let held = || self.buckets.iter().chain(&self.left_out);
            let within = |sum: u64, bucket: &ViewBucket| sum.saturating_add(bucket.count);
            let beyond = self.releases().saturating_sub(held().fold(0, within));
            let buckets = held().map(|bucket| bucket.closed());
            let EventCount { least, most, .. } = EventCount::of_buckets(ns, buckets, beyond);
            return (least, most);
        }
        let (least, cell) = (self.later_than(ns), cell_of(ns));
        if end_of_cell(ns) == ns {
            return (least, least);
        }
        let at = |cells: &Cells| count(cells) - above(cells, cell) - below(cells, cell);
        (least, self.chunks.iter().map(at).fold(least, u64::saturating_add))
    }
}

/// The threshold to compare at, of those from `from_ns` on: the end of a cell, `end_ns`, where no
/// histogram's bucket holds it; else the latest end of a bucket up to there, or the next one from
/// there, that none holds. Where there is none within two buckets, `from_ns` or the end of the
/// widest bucket that holds the end of the cell: the one that the narrower bucket holds.
pub(super) fn common_threshold_ns(series: &[&LatenessSeries], from_ns: i64, end_ns: i64) -> i64 {
    let buckets = || series.iter().flat_map(|series| &series.buckets);
    let holders =
        |ns: i64| buckets().filter(move |held| held.lower_ns <= ns && ns < held.upper_ns - 1);
    let holder = |ns: i64| holders(ns).next();
    if holder(end_ns).is_none() {
        return end_ns;
    }
    let ends = buckets().map(|bucket| bucket.upper_ns - 1);
    let ends = ends.filter(|ns| (from_ns..end_ns).contains(ns) && holder(*ns).is_none());
    if let Some(end) = ends.max() {
        return end;
    }
    let mut next_ns = end_ns;
    for _ in 0..2 {
        next_ns = holder(next_ns).map_or(next_ns, |bucket| bucket.upper_ns - 1);
    }
    if holder(next_ns).is_none() {
        return next_ns;
    }
    let width = |held: &&ViewBucket| held.upper_ns.saturating_sub(held.lower_ns);
    let widest = holders(end_ns).max_by_key(width).map_or(end_ns, |held| held.upper_ns - 1);
    let widest_at = |ns: &i64| holders(*ns).map(|held| width(&held)).max();
    [from_ns, widest].into_iter().min_by_key(widest_at).unwrap_or(end_ns)
}

/// All counts of a chunk.
pub(super) fn count(cells: &[(u16, u64)]) -> u64 {
    cells.iter().fold(0, |sum: u64, &(_, count)| sum.saturating_add(count))
}

/// The count of a chunk above a cell.
pub(super) fn above(cells: &[(u16, u64)], cell: u16) -> u64 {
    count(&cells[cells.partition_point(|&(at, _)| at <= cell)..])
}

/// The count of a chunk below a cell.
fn below(cells: &[(u16, u64)], cell: u16) -> u64 {
    count(&cells[..cells.partition_point(|&(at, _)| at < cell)])
}

/// The cell of a lateness.
pub(super) fn cell_of(ns: i64) -> u16 {
    match bucket::index(ns) {
        BucketPlace::Below => 0,
        BucketPlace::In(at) => at as u16 + 1,
        BucketPlace::Above => TOP,
    }
}

/// The values of a cell: from the first to before the second, ns.
pub(super) fn bounds_ns(cell: u16) -> (i64, i64) {
    match cell {
        0 => (-1, 0),
        TOP => {
            let end = bucket::bounds(bucket::COUNT - 1).1;
            (end.cast_signed(), end.cast_signed() + 1)
        }
        cell => {
            let (low, high) = bucket::bounds(usize::from(cell) - 1);
            (low.cast_signed(), high.cast_signed())
        }
    }
}

/// The largest lateness in the cell of this one, ns.
pub(super) fn end_of_cell(ns: i64) -> i64 {
    bounds_ns(cell_of(ns)).1 - 1
}

/// Two sorted lists of cells as one.
pub(super) fn merged(a: &[(u16, u64)], b: &[(u16, u64)]) -> Cells {
    let mut cells: Cells = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.0 <= y.0 => a.next(),
            (Some(_), None) => a.next(),
            (_, Some(_)) => b.next(),
            (None, None) => return cells,
        };
        let Some(&(cell, count)) = next else { return cells };
        match cells.last_mut() {
            Some(last) if last.0 == cell => last.1 = last.1.saturating_add(count),
            _ => cells.push((cell, count)),
        }
    }
}

/// A chunk while it is built: what ran, and what was missed in gaps of k.
#[derive(Clone, Debug, Default)]
struct Chunk {
    ran: Cells,
    missed: Cells,
}

/// Makes a [`LatenessSeries`] from samples, one at a time; about 150 KiB, no more for longer runs.
#[derive(Clone, Debug)]
pub struct Builder {
    walk: Walk,
    chunks: Vec<Chunk>,
    chunk_releases: u64,
    /// The present chunk: counts by cell, which cells are in use, and its missed releases.
    dense: Vec<u64>,
    used: Vec<u16>,
    missed: Cells,
    releases: u64,
    max_ns: Option<i64>,
    wakes_max_ns: Option<i64>,
}

impl Builder {
    /// For a run of this period, 0 when there is none: then a missed release is later than
    /// everything. Cold cycles are left out or not.
    pub fn new(period_ns: u64, leave_out_cold: bool) -> Self {
        let period_ns = i64::try_from(period_ns).unwrap_or(i64::MAX);
        Self {
            walk: Walk::new(period_ns, leave_out_cold),
            chunks: Vec::new(),
            chunk_releases: CHUNK_FIRST,
            dense: vec![0; CELLS],
            used: Vec::new(),
            missed: Vec::new(),
            releases: 0,
            max_ns: None,
            wakes_max_ns: None,
        }
    }

    /// Takes in the next sample. Cycles must not decrease.
    pub fn push(&mut self, sample: &Sample) {
        let lateness_ns = sample.lateness.as_ns();
        let step = self.walk.step(sample, lateness_ns);
        if let Some(gap) = step.gap {
            let pieces = gap.pieces();
            self.max_ns = pieces.iter().filter_map(Falling::next_ns).chain(self.max_ns).max();
            let lost: Cells = pieces.into_iter().flat_map(cells_of).collect();
            self.missed = merged(&self.missed, &sorted(lost));
            self.releases = self.releases.saturating_add(gap.missed());
        }
        if step.left_out {
            return;
        }
        let cell = cell_of(lateness_ns);
        let slot = &mut self.dense[usize::from(cell)];
        if *slot == 0 {
            self.used.push(cell);
        }
        *slot += 1;
        self.wakes_max_ns = self.wakes_max_ns.max(Some(lateness_ns));
        self.releases = self.releases.saturating_add(1);
        if self.releases >= self.chunk_releases {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.releases == 0 {
            return;
        }
        self.used.sort_unstable();
        let dense = &mut self.dense;
        let take = |&cell: &u16| (cell, std::mem::take(&mut dense[usize::from(cell)]));
        let ran = self.used.iter().map(take).collect();
        self.used.clear();
        self.chunks.push(Chunk { ran, missed: std::mem::take(&mut self.missed) });
        self.releases = 0;
        if self.chunks.len() >= CHUNKS_MAX {
            let join = |pair: &[Chunk]| match pair {
                [a, b] => {
                    Chunk { ran: merged(&a.ran, &b.ran), missed: merged(&a.missed, &b.missed) }
                }
                rest => rest.first().cloned().unwrap_or_default(),
            };
            self.chunks = self.chunks.chunks(2).map(join).collect();
            self.chunk_releases = self.chunk_releases.saturating_mul(2);
        }
    }

    /// The series of all releases, where `missed` were missed and every cycle was recorded.
    pub fn finish(self, missed: u64) -> LatenessSeries {
        self.finish_with(missed, 0)
    }

    /// The series of all releases, where `missed` were missed and `unrecorded` cycles ran without a
    /// sample. Where that is, nobody knows which gap was which: the missed ones count as one stall,
    /// later than everything. So do those that no wake followed.
    pub fn finish_with(mut self, missed: u64, unrecorded: u64) -> LatenessSeries {
        self.close();
        let placement = self.walk.placement(missed, unrecorded);
        let known = |missed: Cells| if placement.gaps { missed } else { Cells::new() };
        let mut parts: Vec<[Cells; 2]> =
            self.chunks.into_iter().map(|chunk| [chunk.ran, known(chunk.missed)]).collect();
        let trailing = placement.trailing.iter().flat_map(|end| end.pieces);
        let late_ns = trailing.clone().filter_map(|piece| piece.next_ns());
        let of_gaps = self.max_ns.filter(|_| placement.gaps);
        let least_ns = (placement.censored > 0).then_some(placement.censored_from_ns);
        let max_ns = late_ns.chain(of_gaps).chain(self.wakes_max_ns).max();
        let max_ns = max_ns.map(|ns| least_ns.map_or(ns, |least| ns.max(least)));
        let trailing: Cells = trailing.flat_map(cells_of).collect();
        let beyond = (placement.censored > 0).then_some((TOP, placement.censored));
        parts.push([Cells::new(), merged(&sorted(trailing), beyond.as_slice())]);
        parts.retain(|[ran, missed]| !ran.is_empty() || !missed.is_empty());
        LatenessSeries {
            chunks: parts.iter().map(|[ran, missed]| merged(ran, missed)).collect(),
            missed_chunks: parts.into_iter().map(|[_, missed]| missed).collect(),
            ordered: true,
            missed,
            max_ns,
            of_wakes: false,
            wakes_max_ns: self.wakes_max_ns,
            buckets: Vec::new(),
            left_out: None,
        }
    }
}

/// The cells of missed releases, each with how many fall in it.
fn cells_of(mut piece: Falling) -> Cells {
    let mut cells = Vec::new();
    while let Some(lateness_ns) = piece.next_ns() {
        let cell = cell_of(lateness_ns);
        cells.push((cell, piece.take_from(bounds_ns(cell).0).count()));
    }
    cells
}

fn sorted(mut cells: Cells) -> Cells {
    cells.sort_unstable_by_key(|&(cell, _)| cell);
    cells
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use punctual_core::sample::Sample;
    use punctual_core::time::Span;

    use crate::compare::series::Builder;

    /// Ten turns of 1 000 releases: in every other one each is 1 µs late, else 10 µs.
    pub(crate) fn alternating() -> LatenessSeries {
        let mut builder = Builder::new(1_000_000, true);
        for cycle in 0..10_000 {
            let late = if cycle / 1_000 % 2 == 0 { 1 } else { 10 };
            builder.push(&Sample { cycle, lateness: Span::from_us(late), ..Sample::default() });
        }
        builder.finish(0)
    }

    #[test]
    fn a_turn_holds_its_own_releases_only() {
        let alternating = alternating();
        let even = alternating.of_turns(10, |turn| turn % 2 == 0);
        assert_eq!((even.later_than(2_000), alternating.later_than(2_000)), (0, 5_000));
        // Chunks of 128: at each of ten borders one is left out.
        assert!((3_700..=5_000).contains(&even.releases()), "{}", even.releases());
        let odd = alternating.of_turns(10, |turn| turn % 2 == 1);
        assert_eq!(odd.later_than(2_000), odd.releases());
        assert_eq!(alternating.of_turns(10, |_| false).releases(), 0);
        assert_eq!(alternating.of_turns(10, |_| true).releases(), 10_000);
        assert_eq!(LatenessSeries::default().of_turns(3, |_| true).releases(), 0);
    }

    #[test]
    fn a_missed_release_stays_in_its_turn() {
        let mut builder = Builder::new(1_000_000, true);
        for cycle in (0..2_000).filter(|cycle| *cycle != 1_500) {
            builder.push(&Sample { cycle, lateness: Span::from_us(1), ..Sample::default() });
        }
        let series = builder.finish(1);
        let turns = [0, 1].map(|turn| series.of_turns(2, |at| at == turn).missed);
        assert_eq!(turns, [0, 1]);
    }
    #[test]
    fn kept_buckets_are_those_of_a_run() {
        let series_of = |buckets: &[(i64, i64, u64)]| {
            let buckets = buckets.iter().copied().map(ViewBucket::from).collect();
            LatenessSeries { buckets, ..LatenessSeries::of_buckets(&[(0, 9, 900).into()], 0, None) }
        };
        assert!(series_of(&[(0, 5, 100), (5, 9, 800)]).is_sound());
        for wrong in [
            &[(5, 9, 100), (0, 5, 100)][..],
            &[(0, 6, 100), (5, 9, 100)],
            &[(5, 5, 100)],
            &[(0, i64::MIN, 100)],
            &[(0, 5, 901)],
            &[(0, 5, u64::MAX), (5, 9, u64::MAX)],
        ] {
            assert!(!series_of(wrong).is_sound(), "{wrong:?}");
        }
        let many: Vec<_> = (0..501).map(|at| (at, at + 1, 1)).collect();
        assert!(!series_of(&many).is_sound());
        let cells = vec![(1, (1 << 56) - 1); 1];
        let most = LatenessSeries { chunks: vec![cells; 9], ..LatenessSeries::default() };
        assert!(!most.is_sound(), "more releases than any run has");
    }

    #[test]
    fn what_another_program_left_out_is_no_later_than_its_largest() {
        use crate::imported::{Imported, ImportedQuantity};
        use crate::recording::{Recording, RecordingConfig};

        // cyclictest -h 100: 500 overflows, and the largest was 180 µs.
        let counted = |max_ns: Option<f64>| {
            let mut outcome = Recording::new(RecordingConfig::default()).finish(0);
            outcome.histogram.buckets = vec![(5_000, 6_000, 59_500).into()];
            outcome.histogram.overflow = 500;
            outcome.lateness_ns.max = max_ns;
            outcome.imported = Some(Imported {
                format: String::new(),
                program: "cyclictest".to_owned(),
                version: None,
                command: None,
                holds: ImportedQuantity::Lateness,
                values_ns: outcome.lateness_ns.clone(),
                resolution_ns: Some(1e3),
                rounding_ns: 999.0,
                limit_ns: Some(100_000),
                overflow: 500,
                cannot_know: Vec::new(),
            });
            LatenessSeries::of_figures(&outcome)
        };
        let series = counted(Some(180_000.0));
        let within = |ns| series.later_within(ns);
        assert_eq!((within(99_999), within(150_000)), ((500, 500), (0, 500)));
        assert_eq!((within(180_999), within(1_000_000)), ((0, 0), (0, 0)));
        assert_eq!((series.releases(), series.is_open(), series.is_sound()), (60_000, false, true));
        // No end of it is a threshold: it would be far from the one that was meant.
        assert_eq!(common_threshold_ns(&[&series], 150_000, 150_527), 150_527);
        // Where they end is unknown.
        let series = counted(None);
        assert_eq!((series.later_within(1_000_000), series.is_open()), ((0, 500), true));
    }
}
