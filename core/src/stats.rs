//! A page: the statistics of a loop, in memory that another thread or process may read at any time.
//!
//! For every loop, one page a task: its counters and its histogram of lateness. The values are
//! those of all releases, whether they ran or were missed: a missed one is as late as the first
//! start at or after it, and late by a period at least ([`Missed`]). The layout is fixed and holds
//! its version, so that a reader needs only the words. One writer, which stores and never waits;
//! any number of readers ([`View`]), which never disturb it. Lies in the caller's words: a vector,
//! or memory shared with other processes. Never allocates, never fails in a loop.
//!
//! Words of 64 bits, native order:
//!
//! | word | holds |
//! |---|---|
//! | 0 | [`MAGIC`] |
//! | 1 | [`VERSION`] |
//! | 2 | [`WORDS`], the size of all |
//! | 3 | [`PageKind`]: what the histogram is of |
//! | 8 | sequence: odd while the writer writes |
//! | 9 … 14 | ran, missed, started late, over budget, over release, over deadline |
//! | 15, 16 | values below the first bucket, and above the last |
//! | 17, 18 | the smallest value and the largest, ns, signed |
//! | 19, 20 | the last release, ns on CLOCK_MONOTONIC, and its cycle |
//! | 21 | the sum of all values, ns, wrapping |
//! | 22 | the start of the last cycle, ns on CLOCK_MONOTONIC |
//! | 23 | missed releases that no start followed: their values are lower bounds |
//! | 32 … | one count a bucket of [`crate::bucket`] |

mod observers;
mod view;
mod waited;

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::bucket::{self, Place};
use crate::cycle::{Missed, Overruns};
use crate::time::{Instant, Span};

use waited::Waited;

pub use observers::{Aggregate, Distances};
pub use view::{Counts, PageError, View};

/// The first word of a page: "punctpag".
pub const MAGIC: u64 = u64::from_le_bytes(*b"punctpag");
/// The layout above.
pub const VERSION: u64 = 2;
/// Words of a page.
pub const WORDS: usize = HEADER_WORDS + bucket::COUNT;

const HEADER_WORDS: usize = 32;
const KIND: usize = 3;
const SEQUENCE: usize = 8;
const RAN: usize = 9;
const MISSED: usize = 10;
const STARTED_LATE: usize = 11;
const OVER_BUDGET: usize = 12;
const OVER_RELEASE: usize = 13;
const OVER_DEADLINE: usize = 14;
const BELOW: usize = 15;
const ABOVE: usize = 16;
const MIN: usize = 17;
const MAX: usize = 18;
const RELEASE: usize = 19;
const CYCLE: usize = 20;
const SUM: usize = 21;
const START: usize = 22;
const CENSORED: usize = 23;

/// What the histogram of a page is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum PageKind {
    /// start − release.
    #[default]
    Lateness = 0,
    /// start − previous start: of a task that a device paces, which has no release.
    Distance = 1,
}

/// The writer's end of a page.
#[derive(Debug)]
pub struct Page<'a> {
    // Arrays of known length, so that an index costs no check.
    header: &'a [AtomicU64; HEADER_WORDS],
    buckets: &'a [AtomicU64; bucket::COUNT],
    sequence: u64,
    min_ns: i64,
    max_ns: i64,
}

impl<'a> Page<'a> {
    /// An empty page of this kind over the first [`WORDS`] of `words`; `None` when there are fewer.
    ///
    /// # Real-time: setup only
    pub fn new(words: &'a [AtomicU64], kind: PageKind) -> Option<Self> {
        let (header, rest) = words.split_first_chunk()?;
        let (buckets, _) = rest.split_first_chunk()?;
        let page = Self { header, buckets, sequence: 0, min_ns: i64::MAX, max_ns: i64::MIN };
        page.header.iter().chain(page.buckets).for_each(|word| word.store(0, Ordering::Relaxed));
        page.put(KIND, kind as u64);
        page.put(MIN, i64::MAX.cast_unsigned());
        page.put(MAX, i64::MIN.cast_unsigned());
        page.put(1, VERSION);
        page.put(2, WORDS as u64);
        // Last, so that a reader that sees the magic sees a page.
        page.header[0].store(MAGIC, Ordering::Release);
        Some(page)
    }

    /// The page that `words` hold, as its last writer left it; `None` where there is none.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn resume(words: &'a [AtomicU64]) -> Option<Self> {
        let (header, rest): (&[AtomicU64; HEADER_WORDS], _) = words.split_first_chunk()?;
        let (buckets, _) = rest.split_first_chunk()?;
        let get = |at: usize| header[at].load(Ordering::Relaxed);
        if get(0) != MAGIC {
            return None;
        }
        // Even also where that one broke off.
        let sequence = get(SEQUENCE).wrapping_add(1) & !1;
        let (min_ns, max_ns) = (get(MIN).cast_signed(), get(MAX).cast_signed());
        Some(Self { header, buckets, sequence, min_ns, max_ns })
    }

    /// A cycle whose value (its lateness, for [`PageKind::Lateness`]) is this, and what went wrong
    /// with it; the releases `missed` just before it never ran.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn keep(&mut self, at: At, value: Span, missed: Option<Missed>, overruns: Overruns) {
        let last = missed.and_then(|_| self.last_start());
        self.keep_after(last, at, value, missed, overruns);
    }

    /// The same where the task's own last start was at `last`.
    #[inline]
    fn keep_after(
        &mut self,
        last: Option<Instant>,
        at: At,
        value: Span,
        missed: Option<Missed>,
        overruns: Overruns,
    ) {
        self.write(|page| {
            let start = at.release + value;
            if let Some(missed) = missed {
                page.count_missed(missed, last, Some(start));
            }
            page.bump(RAN, 1);
            page.count_overruns(overruns);
            page.put(RELEASE, at.release.as_ns());
            page.put(CYCLE, at.cycle);
            page.put(START, start.as_ns());
            let value_ns = value.as_ns();
            page.bump(SUM, value_ns.cast_unsigned());
            page.extend_to(value_ns, value_ns);
            page.count(bucket::index(value_ns), 1);
        });
    }

    /// A cycle that was kept went on in another unit of its calendar, and this went wrong there.
    #[cold]
    fn go_on(&mut self, overruns: Overruns) {
        self.write(|page| page.count_overruns(overruns));
    }

    #[inline]
    fn count_overruns(&mut self, overruns: Overruns) {
        self.bump(STARTED_LATE, u64::from(overruns.started_late));
        self.bump(OVER_BUDGET, u64::from(overruns.over_budget));
        self.bump(OVER_RELEASE, u64::from(overruns.over_release));
        self.bump(OVER_DEADLINE, u64::from(overruns.over_deadline));
    }

    /// Releases that never ran before the loop ended at `end`, and that no cycle has counted. Those
    /// that no start followed are counted as late by the time up to the end, which is a lower
    /// bound: they are censored.
    ///
    /// # Real-time: in loop
    pub fn end(&mut self, missed: Missed, end: Instant) {
        self.end_after(self.last_start(), missed, end);
    }

    fn end_after(&mut self, last: Option<Instant>, missed: Missed, end: Instant) {
        self.write(|page| {
            let (_, unfollowed) = page.count_missed(missed, last, None);
            page.count_late(unfollowed, end);
            page.bump(CENSORED, unfollowed.count);
        });
    }

    /// The start of the last cycle.
    fn last_start(&self) -> Option<Instant> {
        let ran = self.header[RAN].load(Ordering::Relaxed) > 0;
        ran.then(|| Instant::from_ns(self.header[START].load(Ordering::Relaxed)))
    }

    /// Counts missed releases: those up to the task's last start, then those up to `start`, where
    /// there is one. Both parts.
    #[cold]
    #[inline(never)]
    fn count_missed(
        &mut self,
        missed: Missed,
        last: Option<Instant>,
        start: Option<Instant>,
    ) -> (Missed, Missed) {
        self.bump(MISSED, missed.count);
        let none = Missed { count: 0, ..missed };
        let (before, after) = last.map_or((none, missed), |last| missed.split(last));
        if let Some(last) = last {
            self.count_late(before, last);
        }
        if let Some(start) = start {
            self.count_late(after, start);
        }
        (before, after)
    }

    /// The values of releases whose first start after them was at `start`.
    fn count_late(&mut self, missed: Missed, start: Instant) {
        if let Some(waited) = Waited::new(missed, start) {
            let (min, max) = waited.extremes();
            self.extend_to(min.as_ns(), max.as_ns());
            self.bump(SUM, waited.sum_ns().cast_unsigned());
            waited.places(|place, n| self.count(place, n));
        }
    }

    #[inline]
    fn extend_to(&mut self, min_ns: i64, max_ns: i64) {
        if min_ns < self.min_ns {
            self.min_ns = min_ns;
            self.put(MIN, min_ns.cast_unsigned());
        }
        if max_ns > self.max_ns {
            self.max_ns = max_ns;
            self.put(MAX, max_ns.cast_unsigned());
        }
    }

    #[inline]
    fn count(&self, place: Place, values: u64) {
        match place {
            Place::In(at) => bump(&self.buckets[at], values),
            Place::Below => self.bump(BELOW, values),
            Place::Above => self.bump(ABOVE, values),
        }
    }

    /// Makes the page odd, writes, makes it even: a reader that sees one even number before and
    /// after has read one state.
    #[inline]
    fn write(&mut self, writes: impl FnOnce(&mut Self)) {
        self.sequence = self.sequence.wrapping_add(2);
        self.put(SEQUENCE, self.sequence.wrapping_sub(1));
        // The odd number is there before anything that is written.
        fence(Ordering::Release);
        writes(self);
        self.header[SEQUENCE].store(self.sequence, Ordering::Release);
    }

    #[inline]
    fn put(&self, at: usize, value: u64) {
        self.header[at].store(value, Ordering::Relaxed);
    }

    #[inline]
    fn bump(&self, at: usize, by: u64) {
        bump(&self.header[at], by);
    }
}

/// One more: a plain load and store, for there is one writer.
#[inline]
fn bump(word: &AtomicU64, by: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// Which cycle something was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// When it was due.
    pub release: Instant,
    /// Its number.
    pub cycle: u64,
}

#[cfg(test)]
mod tests;
