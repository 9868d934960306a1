//! A run in bounded memory, in the order of time: chunks of releases with a histogram each.
//!
//! What a comparison needs of a run and what a baseline keeps of it: any count above an edge of a
//! bucket is exact, and how the counts of chunks scatter tells how dependent cycles are. The
//! buckets are the recorder's ([`punctual_core::bucket`]): at most 1/128 of their value wide.

use punctual_core::bucket::{self, Place};
use punctual_core::sample::{Flags, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::dependence::Placed;

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
pub struct Series {
    /// Consecutive releases, chunk by chunk; each with the cells of their lateness. A missed
    /// release is as late as the stall left it, and a period at least.
    pub chunks: Vec<Cells>,
    /// Whether the chunks are in the order of time. A histogram alone is one chunk without.
    pub ordered: bool,
    /// Releases that never ran; they are in the chunks too.
    pub missed: u64,
    /// The largest lateness of the recorded cycles, ns.
    pub max_ns: Option<i64>,
}

impl Series {
    /// A histogram alone: [lower, upper, count] in ns, and how much lies beyond its end.
    pub fn of_buckets(buckets: &[(i64, i64, u64)], beyond: u64, max_ns: Option<i64>) -> Self {
        let mut cells: Vec<(u16, u64)> = buckets
            .iter()
            .map(|&(_, upper, count)| (cell_of(upper.saturating_sub(1)), count))
            .chain((beyond > 0).then_some((TOP, beyond)))
            .filter(|&(_, count)| count > 0)
            .collect();
        cells.sort_unstable_by_key(|&(cell, _)| cell);
        Self { chunks: vec![merged(&cells, &[])], ordered: false, missed: 0, max_ns }
    }

    /// Releases, missed ones included.
    pub fn releases(&self) -> u64 {
        self.chunks.iter().map(|cells| count(cells)).fold(0, u64::saturating_add)
    }

    /// Whether every cell exists and stands in order: what a file says is checked before it counts.
    pub fn is_sound(&self) -> bool {
        self.chunks.len() <= CHUNKS_MAX + 1
            && self.chunks.iter().all(|cells| {
                cells.is_sorted_by(|a, b| a.0 < b.0)
                    && cells.iter().all(|&(cell, count)| cell <= TOP && count < 1 << 56)
            })
    }
}

/// All counts of a chunk.
pub(super) fn count(cells: &[(u16, u64)]) -> u64 {
    cells.iter().fold(0, |sum: u64, &(_, count)| sum.saturating_add(count))
}

/// The count of a chunk above a cell.
pub(super) fn above(cells: &[(u16, u64)], cell: u16) -> u64 {
    count(&cells[cells.partition_point(|&(at, _)| at <= cell)..])
}

/// The cell of a lateness.
pub(super) fn cell_of(ns: i64) -> u16 {
    match bucket::index(ns) {
        Place::Below => 0,
        Place::In(at) => at as u16 + 1,
        Place::Above => TOP,
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

/// Two sorted lists of cells as one.
pub(super) fn merged(a: &[(u16, u64)], b: &[(u16, u64)]) -> Cells {
    let mut all: Cells = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.0 <= y.0 => a.next(),
            (Some(_), None) => a.next(),
            (_, Some(_)) => b.next(),
            (None, None) => return all,
        };
        let Some(&(cell, count)) = next else { return all };
        match all.last_mut() {
            Some(last) if last.0 == cell => last.1 = last.1.saturating_add(count),
            _ => all.push((cell, count)),
        }
    }
}

/// A chunk while it is built: what ran, and what was missed in gaps of k.
#[derive(Clone, Debug, Default)]
struct Chunk {
    ran: Cells,
    missed: Cells,
}

/// Makes a [`Series`] from samples, one at a time; about 150 KiB, no more for longer runs.
#[derive(Clone, Debug)]
pub struct Builder {
    period_ns: i64,
    leave_out_cold: bool,
    chunks: Vec<Chunk>,
    chunk_releases: u64,
    /// The present chunk: counts by cell, which cells are in use, and its missed releases.
    dense: Vec<u64>,
    used: Vec<u16>,
    missed: Cells,
    releases: u64,
    previous: Option<Sample>,
    /// Missed releases that were placed, and those before a sample that was left out.
    placed: u64,
    cold: u64,
    max_ns: Option<i64>,
}

impl Builder {
    /// For a run of this period, 0 when there is none: then a missed release is later than
    /// everything. Cold cycles are left out or not.
    pub fn new(period_ns: u64, leave_out_cold: bool) -> Self {
        Self {
            period_ns: i64::try_from(period_ns).unwrap_or(i64::MAX),
            leave_out_cold,
            chunks: Vec::new(),
            chunk_releases: CHUNK_FIRST,
            dense: vec![0; CELLS],
            used: Vec::new(),
            missed: Vec::new(),
            releases: 0,
            previous: None,
            placed: 0,
            cold: 0,
            max_ns: None,
        }
    }

    /// Takes in the next sample. Cycles must not decrease.
    pub fn push(&mut self, sample: &Sample) {
        let first = sample.flags.has(Flags::FIRST);
        let previous = if first { None } else { self.previous };
        self.previous = Some(*sample);
        let missed = previous.map_or(0, |p| sample.cycle.saturating_sub(p.cycle).saturating_sub(1));
        if self.leave_out_cold && sample.flags.has(Flags::COLD) {
            self.cold += missed;
            return;
        }
        let lateness_ns = sample.lateness.as_ns();
        if let Some(previous) = previous.filter(|_| missed > 0) {
            self.place(missed, previous.lateness.as_ns());
        }
        let cell = cell_of(lateness_ns);
        let slot = &mut self.dense[usize::from(cell)];
        if *slot == 0 {
            self.used.push(cell);
        }
        *slot += 1;
        self.max_ns = self.max_ns.max(Some(lateness_ns));
        self.releases = self.releases.saturating_add(1);
        if self.releases >= self.chunk_releases {
            self.close();
        }
    }

    /// Gives each of the missed releases the lateness that it would have had when the stall ended,
    /// all that fall in one cell at once.
    fn place(&mut self, missed: u64, stalled_ns: i64) {
        let mut lost = Vec::new();
        let mut placed = Placed::new(missed, stalled_ns, self.period_ns);
        while let Some(lateness_ns) = placed.lateness_ns() {
            let cell = cell_of(lateness_ns);
            lost.push((cell, placed.take(bounds_ns(cell).0)));
        }
        lost.reverse();
        self.missed = merged(&self.missed, &merged(&lost, &[]));
        self.placed = self.placed.saturating_add(missed);
        self.releases = self.releases.saturating_add(missed);
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

    /// The series, where `missed` releases were really missed. Gaps in k may be cycles that went
    /// unrecorded; where they are more than were missed, nobody knows which were which, and the
    /// missed ones count as one stall, later than everything.
    pub fn finish(mut self, missed: u64) -> Series {
        self.close();
        let told = self.placed.saturating_add(self.cold) <= missed;
        let unplaced = if told { missed - self.placed - self.cold } else { missed };
        let join = |chunk: &Chunk| match told {
            true => merged(&chunk.ran, &chunk.missed),
            false => chunk.ran.clone(),
        };
        let mut chunks: Vec<Cells> = self.chunks.iter().map(join).collect();
        if unplaced > 0 {
            chunks.push(vec![(TOP, unplaced)]);
        }
        chunks.retain(|cells| !cells.is_empty());
        Series { chunks, ordered: true, missed, max_ns: self.max_ns }
    }
}
