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

mod waited;

use core::fmt;
use core::sync::atomic::{Ordering, fence};

use crate::atomic::AtomicU64;
use crate::bucket::{self, BucketPlace};
use crate::cycle::{Job, Missed, Observe, Overruns};
use crate::time::{Instant, Span};
use waited::Waited;

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

/// The quantity that the histogram of a page counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
#[non_exhaustive]
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
        self.keep_after((last, at.release + value), at, value, missed, overruns);
    }

    /// Keeps a cycle, as [`Page::keep`] does, where the task started at `start`, and at `last`
    /// before.
    #[inline]
    fn keep_after(
        &mut self,
        (last, start): (Option<Instant>, Instant),
        at: At,
        value: Span,
        missed: Option<Missed>,
        overruns: Overruns,
    ) {
        self.write(|page| {
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
    fn count(&self, place: BucketPlace, values: u64) {
        match place {
            BucketPlace::In(at) => bump(&self.buckets[at], values),
            BucketPlace::Below => self.bump(BELOW, values),
            BucketPlace::Above => self.bump(ABOVE, values),
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

/// The release and the number of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// The instant at which it was due.
    pub release: Instant,
    /// Its number.
    pub cycle: u64,
}

/// The page of a loop's only task; for several tasks there is [`Aggregate`], or a page for each. A
/// unit in which a cycle goes on counts for what went wrong in it, and is no cycle.
impl Observe for Page<'_> {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, overruns: Overruns) {
        if job.part > 0 {
            return self.go_on(overruns);
        }
        self.keep(at(job), start - job.release, missed_before(job), overruns);
    }

    fn never_ran(&mut self, _: usize, missed: Missed, end: Instant) {
        self.end(missed, end);
    }
}

impl Observe for [Page<'_>] {
    /// Writes to the page of each rank; a rank without a page is not counted.
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        if let Some(page) = self.get_mut(job.rank) {
            Observe::ran(page, job, start, finish, overruns);
        }
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        if let Some(page) = self.get_mut(rank) {
            page.end(missed, end);
        }
    }
}

/// One page of all tasks of a loop together.
///
/// The lateness of a missed release ends at the next start of its own task, so the last start of
/// each is kept here: that on the page is of whichever task ran last.
#[derive(Debug)]
pub struct Aggregate<'p, 's> {
    page: Page<'p>,
    starts: &'s mut [Option<Instant>],
}

impl<'p, 's> Aggregate<'p, 's> {
    /// All tasks on `page`, with one of `starts` a task; `None` there before its first start. A
    /// rank beyond them counts as one that starts for the first time.
    ///
    /// # Real-time: setup only
    pub fn new(page: Page<'p>, starts: &'s mut [Option<Instant>]) -> Self {
        starts.fill(None);
        Self { page, starts }
    }
}

impl Observe for Aggregate<'_, '_> {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, overruns: Overruns) {
        if job.part > 0 {
            return self.page.go_on(overruns);
        }
        let last = self.starts.get_mut(job.rank).and_then(|last| last.replace(start));
        let late = start - job.release;
        self.page.keep_after((last, start), at(job), late, missed_before(job), overruns);
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        let last = self.starts.get(rank).copied().flatten();
        self.page.end_after(last, missed, end);
    }
}

/// Keeps the distance of starts on a page of [`PageKind::Distance`]: one value less
/// than cycles.
#[derive(Debug)]
pub struct Distances<'a> {
    /// The page.
    pub page: Page<'a>,
    last: Option<Instant>,
}

impl<'a> Distances<'a> {
    /// Distances on this page, before the first cycle.
    ///
    /// # Real-time: setup only
    pub fn new(page: Page<'a>) -> Self {
        Self { page, last: None }
    }
}

impl Observe for Distances<'_> {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, overruns: Overruns) {
        if let Some(last) = self.last.replace(start) {
            let at = At { release: start, cycle: job.cycle };
            self.page.keep_after((None, start), at, start - last, None, overruns);
        }
    }
}

#[inline]
fn at(job: &Job) -> At {
    At { release: job.release, cycle: job.cycle }
}

#[inline]
fn missed_before(job: &Job) -> Option<Missed> {
    if job.missed == 0 { None } else { Some(job.missed_before()) }
}

/// Attempts of a reader at one state before it takes what there is. A writer is done in well
/// under a microsecond, a reader in some.
const TRIES: u32 = 64;

/// The reason for which words are not a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageError {
    /// They do not begin as a page does.
    NoPage,
    /// A page of another version: this one.
    Version(u64),
    /// A page that states this size, in words.
    Size(u64),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPage => f.write_str("this memory is not a page of a loop"),
            Self::Version(version) => {
                write!(f, "page version {version} is not supported, only version {VERSION}")
            }
            Self::Size(words) => write!(f, "a page has {WORDS} words, this one states {words}"),
        }
    }
}

impl core::error::Error for PageError {}

/// The counters of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// True where all are of one moment; false when the writer wrote all the time, or broke off.
    pub consistent: bool,
    /// Cycles that ran; one that takes several units of a calendar counts once, when it begins.
    pub ran: u64,
    /// Releases that never ran, each counted with the next cycle or at the end.
    pub missed: u64,
    /// Those of the missed that no start followed before the end: what the other values say of
    /// them are lower bounds.
    pub censored: u64,
    /// Cycles that started later than their slot allows; here and below each unit of a calendar
    /// counts, also where several of them are one cycle.
    pub started_late: u64,
    /// Cycles that ran longer than their budget.
    pub over_budget: u64,
    /// Cycles that still ran at their `next`: their next release; or, of a unit, the end of its
    /// budget.
    pub over_release: u64,
    /// Cycles that finished after their deadline.
    pub over_deadline: u64,
    /// Values below 0, which have no bucket.
    pub below: u64,
    /// Values above the last bucket.
    pub above: u64,
    /// The smallest value, of releases that ran and of missed ones; `None` before the first.
    pub min: Option<Span>,
    /// The largest value; `None` before the first.
    pub max: Option<Span>,
    /// The sum of all values, ns, wrapping.
    pub sum_ns: i64,
    /// The instant of the last release that ran.
    pub release: Instant,
    /// The number of that release.
    pub cycle: u64,
}

/// The reader's end of a page: reads, never writes, relies only on the layout.
///
/// For readers in another thread or process. A page whose writer broke off, or is broken, is
/// reported as not consistent; the reader never waits.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a [AtomicU64; HEADER_WORDS],
    buckets: &'a [AtomicU64; bucket::COUNT],
    kind: PageKind,
}

impl<'a> View<'a> {
    /// The page in `words`.
    ///
    /// # Errors
    ///
    /// There is no page that this version can read.
    ///
    /// # Real-time: reader side
    pub fn open(words: &'a [AtomicU64]) -> Result<Self, PageError> {
        let (header, rest): (&[AtomicU64; HEADER_WORDS], _) =
            words.split_first_chunk().ok_or(PageError::NoPage)?;
        if header[0].load(Ordering::Acquire) != MAGIC {
            return Err(PageError::NoPage);
        }
        let get = |at: usize| header[at].load(Ordering::Relaxed);
        if get(1) != VERSION {
            return Err(PageError::Version(get(1)));
        }
        let (buckets, _) = rest.split_first_chunk().ok_or(PageError::Size(words.len() as u64))?;
        if get(2) != WORDS as u64 {
            return Err(PageError::Size(get(2)));
        }
        let kind = if get(KIND) == 0 { PageKind::Lateness } else { PageKind::Distance };
        Ok(Self { header, buckets, kind })
    }

    /// The quantity that the histogram counts.
    ///
    /// # Real-time: reader side
    pub fn kind(&self) -> PageKind {
        self.kind
    }

    /// The counters alone.
    ///
    /// # Real-time: reader side
    pub fn counts(&self) -> Counts {
        let (counts, consistent) = self.once(|| self.load());
        Counts { consistent, ..counts }
    }

    /// The counters and the histogram, which goes to `buckets`.
    ///
    /// # Real-time: reader side
    pub fn read(&self, buckets: &mut [u64; bucket::COUNT]) -> Counts {
        let (counts, consistent) = self.once(|| {
            for (to, from) in buckets.iter_mut().zip(self.buckets) {
                *to = from.load(Ordering::Relaxed);
            }
            self.load()
        });
        Counts { consistent, ..counts }
    }

    /// Calls `read`, again where a write came between. Returns its value, and true where none did.
    fn once<T>(&self, mut read: impl FnMut() -> T) -> (T, bool) {
        let mut tries = 0;
        loop {
            let before = self.header[SEQUENCE].load(Ordering::Acquire);
            let seen = read();
            // What was read is read before the sequence is again.
            fence(Ordering::Acquire);
            let after = self.header[SEQUENCE].load(Ordering::Relaxed);
            let consistent = before == after && before.is_multiple_of(2);
            tries += 1;
            if consistent || tries == TRIES {
                return (seen, consistent);
            }
            core::hint::spin_loop();
        }
    }

    fn load(&self) -> Counts {
        let get = |at: usize| self.header[at].load(Ordering::Relaxed);
        let span =
            |at: usize| (get(RAN) + get(MISSED) > 0).then(|| Span::from_ns(get(at).cast_signed()));
        Counts {
            consistent: false,
            ran: get(RAN),
            missed: get(MISSED),
            censored: get(CENSORED),
            started_late: get(STARTED_LATE),
            over_budget: get(OVER_BUDGET),
            over_release: get(OVER_RELEASE),
            over_deadline: get(OVER_DEADLINE),
            below: get(BELOW),
            above: get(ABOVE),
            min: span(MIN),
            max: span(MAX),
            sum_ns: get(SUM).cast_signed(),
            release: Instant::from_ns(get(RELEASE)),
            cycle: get(CYCLE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::sync::atomic::AtomicBool;
    use std::vec::Vec;

    use crate::cycle::{Job, Observe};
    use crate::releases::Releases;
    use crate::time::Period;

    fn words() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(7)).collect()
    }

    fn job(rank: usize, cycle: u64, missed: u64) -> Job {
        let at = |cycle: u64| Instant::from_ns(cycle * 1_000);
        let (release, next, passed) = (at(cycle), at(cycle + 1), 0);
        let period = Period::from_ns(1_000).expect("in range");
        Job { rank, cycle, part: 0, release, next, missed, passed, period }
    }

    fn histogram(view: &View<'_>) -> (Counts, Box<[u64; bucket::COUNT]>) {
        let mut buckets = Box::new([0; bucket::COUNT]);
        (view.read(&mut buckets), buckets)
    }

    #[test]
    fn what_was_written_is_read() {
        let words = words();
        assert_eq!(View::open(&words).err(), Some(PageError::NoPage));
        let mut page = Page::new(&words, PageKind::Lateness).expect("large enough");
        let view = View::open(&words).expect("a page");
        assert_eq!(view.counts(), Counts { consistent: true, ..Counts::default() });
        let every_overrun = Overruns {
            started_late: true,
            over_budget: true,
            over_release: true,
            over_deadline: true,
        };
        let (start, finish) = (Instant::from_ns(5_300), Instant::from_ns(6_100));
        Observe::ran(&mut page, &job(0, 5, 2), start, finish, every_overrun);
        Observe::ran(
            &mut page,
            &job(0, 6, 0),
            Instant::from_ns(5_990),
            finish,
            Overruns::default(),
        );
        let far = Instant::from_ns(9_000 + (1 << 40));
        Observe::ran(&mut page, &job(0, 9, 2), far, far, Overruns::default());
        // Nothing ran after 9; the loop ends 500 ns after release 12.
        let releases =
            Releases::new(Instant::from_ns(0), Period::from_ns(1_000).expect("in range"));
        page.end(Missed { releases, first: 10, count: 3 }, far + Span::from_ns(500));
        let (counts, buckets) = histogram(&view);
        let expected = Counts {
            consistent: true,
            ran: 3,
            missed: 7,
            censored: 0,
            started_late: 1,
            over_budget: 1,
            over_release: 1,
            over_deadline: 1,
            below: 1,
            above: 3,
            min: Some(Span::from_ns(-10)),
            // Release 7 was missed, and the next start is that of 9.
            max: Some(Span::from_ns(2_000 + (1 << 40))),
            sum_ns: 890 + 6 * (1 << 40),
            release: Instant::from_ns(9_000),
            cycle: 9,
        };
        assert_eq!(counts, expected);
        assert_eq!(buckets.iter().sum::<u64>(), 6);
        for late in [300, 1_300, 2_300] {
            let BucketPlace::In(at) = bucket::index(late) else { panic!("{late} ns has a bucket") };
            assert_eq!(buckets[at], 1, "{late}");
        }
    }

    #[test]
    fn what_no_start_followed_is_late_by_the_time_to_the_end_at_least() {
        let words = words();
        let mut page = Page::new(&words, PageKind::Lateness).expect("large enough");
        let view = View::open(&words).expect("a page");
        // Started when releases 6 and 7 had passed, too; ended 200 ns after release 9.
        Observe::ran(
            &mut page,
            &job(0, 5, 0),
            Instant::from_ns(7_100),
            Instant::from_ns(9_200),
            Overruns::default(),
        );
        let releases =
            Releases::new(Instant::from_ns(0), Period::from_ns(1_000).expect("in range"));
        page.end(Missed { releases, first: 6, count: 4 }, Instant::from_ns(9_200));
        let (counts, buckets) = histogram(&view);
        assert_eq!((counts.ran, counts.missed, counts.censored), (1, 4, 2));
        assert_eq!(counts.sum_ns, 2_100 + 1_100 + 1_000 + 1_200 + 1_000);
        assert_eq!(buckets.iter().sum::<u64>(), 5);
    }

    #[test]
    fn each_rank_has_its_page_and_one_without_harms_nobody() {
        let (first, second) = (words(), words());
        let page = |words| Page::new(words, PageKind::Lateness).expect("large enough");
        let mut pages = [page(&first), page(&second)];
        let pages = &mut pages[..];
        for (rank, cycle) in [(0, 1), (1, 2), (1, 3), (2, 4)] {
            let job = job(rank, cycle, 0);
            pages.ran(&job, job.release, job.release, Overruns::default());
        }
        let ran = |words| View::open(words).expect("a page").counts().ran;
        assert_eq!((ran(&first), ran(&second)), (1, 2));
    }

    #[test]
    fn tasks_on_one_page_are_each_followed_by_their_own_start() {
        let words = words();
        let page = Page::new(&words, PageKind::Lateness).expect("large enough");
        let mut starts = [Some(Instant::from_ns(1)); 2];
        let mut aggregate = Aggregate::new(page, &mut starts);
        let mut ran = |rank, cycle, missed, start_ns| {
            let (job, start) = (job(rank, cycle, missed), Instant::from_ns(start_ns));
            aggregate.ran(&job, start, start, Overruns::default());
        };
        // Rank 0 stalls from 1 000 to 4 500, and runs late: 2, 3 and 4 had passed by then.
        ran(0, 1, 0, 4_500);
        // Rank 1 starts later than that; rank 0 misses 5 in an overrun, and goes on with 6.
        ran(1, 4, 0, 5_200);
        ran(0, 6, 4, 6_010);
        // Rank 1 misses 7: its last start is before that, rank 0's is after it.
        ran(1, 5, 0, 5_100);
        ran(0, 7, 0, 7_400);
        let releases =
            Releases::new(Instant::from_ns(0), Period::from_ns(1_000).expect("in range"));
        aggregate.never_ran(1, Missed { releases, first: 7, count: 1 }, Instant::from_ns(9_500));
        let counts = View::open(&words).expect("a page").counts();
        assert_eq!((counts.ran, counts.missed, counts.censored), (5, 5, 1));
        let ran = 3_500 + 1_200 + 10 + 100 + 400;
        // 2, 3, 4 until 4 500; 5 until 6 010; 7 of rank 1 until the end, a lower bound.
        assert_eq!(counts.sum_ns, ran + (2_500 + 1_500 + 1_000) + 1_010 + 2_500);
    }

    #[test]
    fn of_aligned_fractions_a_missed_release_is_known_to_a_nanosecond() {
        for (num, den) in [(10_000, 3), (1_000, 7), (999_999, 1_000)] {
            let period = Period::ratio(num, den).expect("in range");
            let mut off = 0;
            for phase in 0..den {
                let start = Instant::from_ns(1_000_000 + phase * num / den);
                let releases = Releases::aligned(start, period, 0);
                for cycle in [20, 21, 22] {
                    let (release, next) = (releases.release(cycle), releases.release(cycle + 1));
                    let (rank, part, missed, passed) = (0, 0, 20, 0);
                    let job = Job { rank, cycle, part, release, next, missed, passed, period };
                    let missed = job.missed_before();
                    assert_eq!(missed.first, cycle - 20);
                    for k in missed.first..cycle {
                        let shift = (missed.releases.release(k) - releases.release(k)).as_ns();
                        off = off.max(shift.unsigned_abs());
                    }
                }
            }
            assert!(off <= 1, "off by {off} ns");
        }
    }

    #[test]
    fn a_reader_beside_a_writer_sees_one_moment_at_a_time() {
        let words = words();
        let mut page = Page::new(&words, PageKind::Lateness).expect("large enough");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let view = View::open(&words).expect("a page");
                let mut whole = 0u32;
                while whole < 20 || !done.load(Ordering::Relaxed) {
                    let (counts, buckets) = histogram(&view);
                    if counts.consistent {
                        whole += 1;
                        assert_eq!(counts.ran + counts.missed, buckets.iter().sum::<u64>());
                        assert_eq!(counts.ran, counts.missed);
                        // A missed one is a period late, and what its next start is late.
                        assert_eq!(counts.sum_ns, counts.ran.cast_signed() * (40 + 1_040));
                    }
                }
            });
            for cycle in (1..40_000u64).step_by(2) {
                let job = job(0, cycle, 1);
                let start = job.release + Span::from_ns(40);
                Observe::ran(&mut page, &job, start, start, Overruns::default());
                if cycle % 64 == 0 {
                    std::thread::yield_now();
                }
            }
            done.store(true, Ordering::Relaxed);
            reader.join().expect("no panic");
        });
    }

    #[test]
    fn a_writer_that_broke_off_is_told_not_waited_for() {
        let words = words();
        let page = Page::new(&words, PageKind::Distance).expect("large enough");
        page.put(SEQUENCE, 1);
        let view = View::open(&words).expect("a page");
        assert!(!view.counts().consistent);
        assert_eq!(view.kind(), PageKind::Distance);
        // Another writer goes on with it.
        for value in [7, 5, 9] {
            let mut page = Page::resume(&words).expect("a page");
            let at = At { release: Instant::from_ns(1), cycle: 2 };
            page.keep(at, Span::from_ns(value), None, Overruns::default());
        }
        let Counts { consistent, ran, min, max, .. } = view.counts();
        assert_eq!((consistent, ran), (true, 3));
        assert_eq!((min, max), (Some(Span::from_ns(5)), Some(Span::from_ns(9))));
    }

    #[test]
    fn what_is_no_page_is_refused() {
        let words = words();
        assert!(Page::new(&words[1..], PageKind::Lateness).is_none());
        assert!(Page::resume(&words).is_none() && Page::resume(&words[1..]).is_none());
        let _page = Page::new(&words, PageKind::Lateness).expect("large enough");
        assert_eq!(View::open(&words[..3]).err(), Some(PageError::NoPage));
        assert_eq!(View::open(&words[..40]).err(), Some(PageError::Size(40)));
        words[2].store(12, Ordering::Relaxed);
        assert_eq!(View::open(&words).err(), Some(PageError::Size(12)));
        words[1].store(3, Ordering::Relaxed);
        let why = View::open(&words).expect_err("another version");
        assert_eq!(why, PageError::Version(3));
        assert!(std::format!("{why}").contains("version 3"));
    }
}
