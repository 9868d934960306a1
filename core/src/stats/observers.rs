//! Pages as observers of a loop: of one task, of each task, of all tasks together.
//!
//! For loops, which call them after each cycle, and after each unit in which one goes on: that
//! counts for what went wrong in it, and is no cycle. Each says for a missed release when its own
//! task started next; never allocates, never fails.

use super::{At, Page};
use crate::cycle::{Job, Missed, Observe, Overruns};
use crate::time::Instant;

/// The page of a loop's only task. For several tasks there is [`Aggregate`], or a page for each.
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
        self.page.keep_after(last, at(job), late, missed_before(job), overruns);
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        let last = self.starts.get(rank).copied().flatten();
        self.page.end_after(last, missed, end);
    }
}

/// Keeps the distance of starts on a page of [`super::PageKind::Distance`]: one value less
/// than cycles.
#[derive(Debug)]
pub struct Distances<'a> {
    /// The page.
    pub page: Page<'a>,
    last: Option<Instant>,
}

impl<'a> Distances<'a> {
    /// Nothing ran yet.
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
            self.page.keep(At { release: start, cycle: job.cycle }, start - last, None, overruns);
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
