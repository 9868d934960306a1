//! A page: what a loop did so far, in memory that another thread or process may read at any time.
//!
//! For every loop, one page a task: its counters and its histogram of lateness. The layout is fixed
//! and says its version, so that a reader needs nothing but the words. One writer, which stores and
//! never waits; any number of readers ([`View`]), which never disturb it. Lies in the caller's
//! words: a vector, or memory shared with other processes. Never allocates, never fails in a loop.
//!
//! Words of 64 bits, native order:
//!
//! | word | holds |
//! |---|---|
//! | 0 | [`MAGIC`] |
//! | 1 | [`VERSION`] |
//! | 2 | [`WORDS`], the size of all |
//! | 3 | [`Kind`]: what the histogram is of |
//! | 8 | sequence: odd while the writer writes |
//! | 9 … 14 | ran, missed, started late, over budget, over release, over deadline |
//! | 15, 16 | values below the first bucket, and above the last |
//! | 17, 18 | the smallest value and the largest, ns, signed |
//! | 19, 20 | the last release, ns on CLOCK_MONOTONIC, and its cycle |
//! | 21 | the sum of all values, ns, wrapping |
//! | 32 … | one count a bucket of [`crate::bucket`] |

mod beside;
mod view;

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::bucket::{self, Place};
use crate::dispatch::{Job, Overruns};
use crate::executive::many::Observe;
use crate::time::{Instant, Span};

pub use beside::Beside;
pub use view::{Counts, PageError, View};

/// The first word of a page: "punctpag".
pub const MAGIC: u64 = u64::from_le_bytes(*b"punctpag");
/// The layout above.
pub const VERSION: u64 = 1;
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

/// What the histogram of a page is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
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
    pub fn new(words: &'a [AtomicU64], kind: Kind) -> Option<Self> {
        let (header, rest) = words.split_first_chunk()?;
        let (buckets, _) = rest.split_first_chunk()?;
        let page = Self { header, buckets, sequence: 0, min_ns: i64::MAX, max_ns: i64::MIN };
        page.header.iter().chain(page.buckets).for_each(|word| word.store(0, Ordering::Relaxed));
        page.put(KIND, kind as u64);
        page.put(MIN, i64::MAX.cast_unsigned());
        page.put(MAX, i64::MIN.cast_unsigned());
        page.put(1, VERSION);
        page.put(2, WORDS as u64);
        // Last, so that who sees the magic sees a page.
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

    /// A cycle whose value (its lateness, for [`Kind::Lateness`]) is this, and what went wrong
    /// with it; `missed` releases just before it never ran.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn keep(&mut self, at: At, value: Span, missed: u64, overruns: Overruns) {
        self.write(|page| {
            let value_ns = value.as_ns();
            page.bump(RAN, 1);
            page.bump(MISSED, missed);
            page.bump(STARTED_LATE, u64::from(overruns.started_late));
            page.bump(OVER_BUDGET, u64::from(overruns.over_budget));
            page.bump(OVER_RELEASE, u64::from(overruns.over_release));
            page.bump(OVER_DEADLINE, u64::from(overruns.over_deadline));
            page.bump(SUM, value_ns.cast_unsigned());
            page.put(RELEASE, at.release.as_ns());
            page.put(CYCLE, at.cycle);
            if value_ns < page.min_ns {
                page.min_ns = value_ns;
                page.put(MIN, value_ns.cast_unsigned());
            }
            if value_ns > page.max_ns {
                page.max_ns = value_ns;
                page.put(MAX, value_ns.cast_unsigned());
            }
            match bucket::index(value_ns) {
                Place::In(at) => bump(&page.buckets[at], 1),
                Place::Below => page.bump(BELOW, 1),
                Place::Above => page.bump(ABOVE, 1),
            }
        });
    }

    /// Releases that never ran, and that no later cycle tells of.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn missed(&mut self, releases: u64) {
        self.write(|page| page.bump(MISSED, releases));
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

impl Observe for Page<'_> {
    /// All tasks of a loop together.
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, overruns: Overruns) {
        let at = At { release: job.release, cycle: job.cycle };
        self.keep(at, start - job.release, job.missed, overruns);
    }
}

impl Observe for [Page<'_>] {
    /// The page of each rank; a rank without one is not kept.
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        if let Some(page) = self.get_mut(job.rank) {
            Observe::ran(page, job, start, finish, overruns);
        }
    }
}

#[cfg(test)]
mod tests;
