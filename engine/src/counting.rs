//! The records of each cycle of a loop or a task: counts and histogram, and samples where it is
//! recorded.
//!
//! In the loop, at the beginning of a wait or after a task's cycle. Owns its memory with those who
//! read it; never allocates, never fails.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use punctual_core::cycle::{Job, Missed, Observe, Overruns};
use punctual_core::ring::{self, Ring};
use punctual_core::sample::{Beginning, Sample};
use punctual_core::stats::{self, At, Counts, Page, PageKind, View};
use punctual_core::time::{Instant, Period, Span};

use crate::outcome::{self, Stats};
use crate::process::SharedMemory;

/// Memory that a loop shares with its readers.
pub type Words = Arc<[AtomicU64]>;

/// Memory of so many words, all touched.
///
/// # Real-time: setup only
pub fn words(count: usize) -> Words {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// A ring has room for what comes while the thread that drains does not run for so long, s: twenty
/// times the interval in which it looks.
const ROOM_S: u64 = 4;
/// The fewest and the most samples of a ring; 16 bytes each.
const RING: (u64, u64) = (1 << 12, 1 << 20);

/// The ring for the samples of a loop of this period, empty.
///
/// # Real-time: setup only
pub fn ring_of(period: Period) -> Words {
    let wanted = ROOM_S.saturating_mul(1_000_000_000) / period.as_ns();
    let samples = wanted.clamp(RING.0, RING.1).next_power_of_two();
    let ring = words(ring::words(samples as usize));
    // Made before anybody resumes it.
    let _made = ring::split(&ring);
    ring
}

/// Keeps the samples of a loop, segment by segment, in a ring that outlives it, which counts what
/// it had no room for and what was missed; it has no page.
#[derive(Debug)]
pub struct SampleRecorder<'a> {
    /// None once segments do not count.
    ring: Option<Ring<'a>>,
    beginning: Beginning,
}

impl<'a> SampleRecorder<'a> {
    /// Into `ring`; the first `cold` cycles of a segment are marked as such.
    ///
    /// # Real-time: setup only
    pub fn new(ring: Ring<'a>, cold: u32) -> Self {
        Self { ring: Some(ring), beginning: Beginning::new(cold) }
    }

    /// Begins another segment.
    ///
    /// # Real-time: setup only
    pub fn begin(&mut self, cold: u32) {
        self.beginning = Beginning::new(cold);
    }

    /// Begins a segment that does not count, as none does after it: neither its cycles nor what is
    /// missed reach the ring, whose counters stay as they are.
    ///
    /// # Real-time: setup only
    pub fn begin_uncounted(&mut self) {
        self.ring = None;
    }
}

impl Observe for SampleRecorder<'_> {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, _: Overruns) {
        if let Some(ring) = &mut self.ring {
            record(ring, &mut self.beginning, job.missed, |next| next.sample(job, start));
        }
    }

    fn never_ran(&mut self, _: usize, missed: Missed, _: Instant) {
        if let Some(ring) = &mut self.ring {
            ring.miss(missed.count);
        }
    }
}

/// Keeps one cycle, and counts what was missed before it.
#[inline]
fn record(
    ring: &mut Ring<'_>,
    beginning: &mut Beginning,
    missed: u64,
    sample: impl FnOnce(&mut Beginning) -> Sample,
) {
    if missed > 0 {
        ring.miss(missed);
    }
    ring.push(sample(beginning));
}

/// The observer of a loop.
#[derive(Debug)]
pub struct CycleCounting {
    stats: Words,
    samples: Option<(Words, Beginning)>,
    units: Option<UnitPages>,
}

/// The pages of a calendar's units, for a task that has several: the cycles of each apart.
#[derive(Debug)]
struct UnitPages {
    epoch: Instant,
    frame: Period,
    /// The instant in the frame at which each unit is ready, ns, and its page.
    pages: Vec<(u64, Words)>,
}

impl UnitPages {
    /// The unit of `job` ran. What its task missed is not its own.
    fn ran(&self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        let since = (job.release - self.epoch).as_ns().max(0).unsigned_abs();
        let ready_ns = since % self.frame.as_ns();
        let found = self.pages.binary_search_by_key(&ready_ns, |(ready_ns, _)| *ready_ns);
        if let Ok(unit) = found
            && let Some(mut page) = Page::resume(&self.pages[unit].1)
        {
            page.ran(&Job { missed: 0, part: 0, ..*job }, start, finish, overruns);
        }
    }
}

/// Memory for the counts and the histogram of one task, empty.
///
/// # Real-time: setup only
pub fn blank(kind: PageKind) -> Words {
    let stats = words(stats::WORDS);
    let _page = Page::new(&stats, kind);
    stats
}

impl CycleCounting {
    /// Counts on a page of its own; samples go to `ring`, where there is one.
    ///
    /// # Real-time: setup only
    pub fn new(ring: Option<Words>) -> Self {
        Self::on(blank(PageKind::Lateness), ring)
    }

    /// Counts in `stats`, which [`blank`] made; samples go to `ring`, where there is one.
    ///
    /// # Real-time: setup only
    pub fn on(stats: Words, ring: Option<Words>) -> Self {
        Self { stats, samples: ring.map(|ring| (ring, Beginning::new(0))), units: None }
    }

    /// The same, and the cycles of each unit of a frame apart, on these pages in the order of the
    /// frame, each with when its unit is ready.
    ///
    /// # Real-time: setup only
    pub fn by_unit(self, epoch: Instant, frame: Period, pages: Vec<(u64, Words)>) -> Self {
        Self { units: Some(UnitPages { epoch, frame, pages }), ..self }
    }

    /// The memory of its page.
    ///
    /// # Real-time: setup only
    pub fn stats(&self) -> Words {
        Arc::clone(&self.stats)
    }
}

/// The recorder of the cycles of a task that runs elsewhere.
pub trait Keep {
    /// A cycle started `lateness` after its release; `missed` releases just before it never ran.
    ///
    /// # Real-time: in loop
    fn keep(&mut self, at: At, lateness: Span, missed: Option<Missed>, overruns: Overruns);

    /// These releases never ran before `end`.
    ///
    /// # Real-time: in loop
    fn end(&mut self, missed: Missed, end: Instant);
}

impl Keep for Page<'_> {
    #[inline]
    fn keep(&mut self, at: At, lateness: Span, missed: Option<Missed>, overruns: Overruns) {
        Page::keep(self, at, lateness, missed, overruns);
    }

    fn end(&mut self, missed: Missed, end: Instant) {
        Page::end(self, missed, end);
    }
}

impl Keep for CycleCounting {
    #[inline]
    fn keep(&mut self, at: At, lateness: Span, missed: Option<Missed>, overruns: Overruns) {
        if let Some(mut page) = Page::resume(&self.stats) {
            page.keep(at, lateness, missed, overruns);
        }
        let count = missed.map_or(0, |missed| missed.count);
        self.record(count, |next| next.sample_of(at.cycle, lateness, 0));
    }

    fn end(&mut self, missed: Missed, end: Instant) {
        if let Some(mut page) = Page::resume(&self.stats) {
            page.end(missed, end);
        }
        if let Some((ring, _)) = &self.samples
            && let Some(mut ring) = Ring::resume(ring)
        {
            ring.miss(missed.count);
        }
    }
}

impl CycleCounting {
    #[inline]
    fn record(&mut self, missed: u64, sample: impl FnOnce(&mut Beginning) -> Sample) {
        if let Some((ring, beginning)) = &mut self.samples
            && let Some(mut ring) = Ring::resume(ring)
        {
            record(&mut ring, beginning, missed, sample);
        }
    }
}

impl Observe for CycleCounting {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        if let Some(mut page) = Page::resume(&self.stats) {
            page.ran(job, start, finish, overruns);
        }
        if let Some(units) = &self.units {
            units.ran(job, start, finish, overruns);
        }
        // A cycle that goes on has its sample already.
        if job.part == 0 {
            self.record(job.missed, |next| next.sample(job, start));
        }
    }

    fn never_ran(&mut self, _: usize, missed: Missed, end: Instant) {
        Keep::end(self, missed, end);
    }
}

/// A task by rank, its releases that were never made, and the instant before which they were due.
pub type Unreleased = (usize, Missed, Instant);

/// The tasks of one loop, by rank; none where a task's cycles are kept by who releases it. They may
/// be exchanged for others while the loop runs: what is kept is in their memory.
#[derive(Debug, Default)]
pub struct ByRank {
    /// The records of each rank's cycles; none where others keep them.
    tasks: Vec<Option<CycleCounting>>,
    unreleased: Vec<Unreleased>,
}

impl ByRank {
    /// The records of each rank's cycles, none where others keep them; of so many tasks at most.
    ///
    /// # Real-time: setup only
    pub fn new(tasks: Vec<Option<CycleCounting>>, elsewhere: usize) -> Self {
        Self { tasks, unreleased: Vec::with_capacity(elsewhere) }
    }

    /// The records, to be exchanged for those of other tasks.
    ///
    /// # Real-time: in loop
    pub fn tasks_mut(&mut self) -> &mut Vec<Option<CycleCounting>> {
        &mut self.tasks
    }

    /// Releases that were never made, at the end, of tasks whose cycles others keep.
    ///
    /// # Real-time: setup only
    pub fn into_unreleased(self) -> Vec<Unreleased> {
        self.unreleased
    }
}

impl Observe for ByRank {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        if let Some(Some(task)) = self.tasks.get_mut(job.rank) {
            task.ran(job, start, finish, overruns);
        }
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        match self.tasks.get_mut(rank) {
            Some(Some(task)) => task.never_ran(rank, missed, end),
            _ => self.unreleased.push((rank, missed, end)),
        }
    }
}

/// The memory of a task's page, as its readers have it.
#[derive(Clone, Debug)]
pub enum StatsPage {
    /// A page of this process.
    Own(Words),
    /// Shared with other processes.
    Shared(Arc<SharedMemory>),
}

impl StatsPage {
    /// The page as it is now.
    ///
    /// # Real-time: reader side
    pub fn view(&self) -> Option<View<'_>> {
        let words = match self {
            Self::Own(words) => words,
            Self::Shared(memory) => memory.words(),
        };
        View::open(words).ok()
    }

    /// The counts as they are now, which takes no walk through the histogram.
    ///
    /// # Real-time: reader side
    pub fn counts(&self) -> Counts {
        self.view().map(|view| view.counts()).unwrap_or_default()
    }

    /// A quantile of the lateness as it is now, see [`outcome::quantile`].
    ///
    /// # Real-time: reader side
    pub fn quantile(&self, share: f64) -> Option<Span> {
        outcome::quantile(&self.view()?, share)
    }

    /// The statistics as they are now, of the task of this name.
    ///
    /// # Real-time: reader side
    pub fn stats(&self, name: &str) -> Stats {
        Stats::of(name, self.view().as_ref())
    }
}
