//! Tasks that run elsewhere, behind the ranks of an executive: it releases, it does not run.
//!
//! For executives of workers and of processes. In the loop of [`punctual_core::executive`]:
//! takes the results of a task's last cycles onto its page, releases the next, wakes it. No system
//! call but futex; an overrun is noted for whoever watches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual_core::block::{Admission, Done, Entered, TaskServer};
use punctual_core::cycle::{Cycle, Flow, Missed, Overruns};
use punctual_core::executive::Dispatch;
use punctual_core::stats::At;
use punctual_core::table::OnOverrun;
use punctual_core::time::{Instant, Span};
use punctual_os::futex::{self, Scope};

use crate::counting::Keep;
use crate::task::Task;

/// The longest time that a release of a task elsewhere takes of the loop, beside a calendar: a look
/// at its block and a futex wake. One that would not end before the next unit comes after it.
pub const POST: Duration = Duration::from_micros(5);

/// The limits of a cycle, beyond which it counts as late or over; `u64::MAX` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From release to the latest start that is not counted as late, ns.
    pub start_ns: u64,
    /// The longest execution, ns.
    pub budget_ns: u64,
    /// From release to the latest finish, ns.
    pub deadline_ns: u64,
}

impl Limits {
    /// The limits of this task.
    ///
    /// # Real-time: setup only
    pub fn of(task: &Task) -> Self {
        Self {
            start_ns: task.start_ns().unwrap_or(u64::MAX),
            budget_ns: task.budget_ns().unwrap_or(u64::MAX),
            deadline_ns: task.deadline_ns().unwrap_or_else(|| task.period().as_ns()),
        }
    }

    /// The limits that a cycle did not keep.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn judge(&self, done: &Done) -> Overruns {
        let over = |span: Span, most_ns: u64| {
            u64::try_from(span.as_ns()).is_ok_and(|span_ns| span_ns > most_ns)
        };
        Overruns {
            started_late: over(done.start - done.release, self.start_ns),
            over_budget: over(done.finish - done.start, self.budget_ns),
            over_release: done.finish >= done.next,
            over_deadline: over(done.finish - done.release, self.deadline_ns),
        }
    }
}

/// The effect of an overrun on a task elsewhere, as far as its server brings it about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteOverrun {
    /// Nothing: the task misses or catches up by itself.
    Nothing,
    /// Its cancel token is set.
    Cancel,
    /// The executive ends.
    Stop,
}

impl RemoteOverrun {
    /// The number of cycles that a task with this policy may catch up with, and the effect of an
    /// overrun.
    ///
    /// # Real-time: setup only
    pub fn of(policy: OnOverrun) -> (u32, Self) {
        match policy {
            OnOverrun::Burst(most) => (most, Self::Nothing),
            OnOverrun::Terminate => (0, Self::Cancel),
            OnOverrun::Stop => (0, Self::Stop),
            _ => (0, Self::Nothing),
        }
    }
}

/// The counts of a task that its server shows to other threads.
#[derive(Debug, Default)]
pub struct RemoteCounts {
    /// Releases that were posted.
    posted: AtomicU64,
    /// Releases, its own and those of other units, that found the task still running.
    overran: AtomicU64,
    /// Releases at which no task was registered.
    unattended: AtomicU64,
    /// Those of them since its last process ended or left; 0 until one was released.
    after_end: AtomicU64,
    /// Results that cannot be.
    invalid: AtomicU64,
}

impl RemoteCounts {
    /// Releases that were posted to a process or thread that was registered.
    ///
    /// # Real-time: reader side
    pub fn posted(&self) -> u64 {
        self.posted.load(Ordering::Relaxed)
    }

    /// Releases that found the task still running an earlier cycle: its own, and of a unit of a
    /// calendar those of the other units too.
    ///
    /// # Real-time: reader side
    pub fn overran(&self) -> u64 {
        self.overran.load(Ordering::Relaxed)
    }

    /// Releases at which no task was registered.
    ///
    /// # Real-time: reader side
    pub fn unattended(&self) -> u64 {
        self.unattended.load(Ordering::Relaxed)
    }

    /// Those of them since its last process ended or left; 0 until one was released.
    ///
    /// # Real-time: reader side
    pub fn after_end(&self) -> u64 {
        self.after_end.load(Ordering::Relaxed)
    }

    /// Returns true where a task was registered at the last release.
    ///
    /// # Real-time: reader side
    pub fn is_attended(&self) -> bool {
        self.posted() > 0 && self.after_end() == 0
    }

    /// A place of another unit at which it was still running an earlier cycle.
    pub(crate) fn note_overrun(&self) {
        bump(&self.overran);
    }

    /// So many releases at which no task was registered.
    #[inline]
    fn leave_unattended(&self, count: u64) {
        bump_by(&self.unattended, count);
        if self.posted() > 0 {
            bump_by(&self.after_end, count);
        }
    }

    /// Results that cannot be: of cycles that were not posted, or at impossible times.
    ///
    /// # Real-time: reader side
    pub fn invalid(&self) -> u64 {
        self.invalid.load(Ordering::Relaxed)
    }
}

/// One task elsewhere; `K` keeps its cycles.
#[derive(Debug)]
pub struct RemoteTask<'a, K> {
    /// Its block.
    pub server: TaskServer<'a>,
    /// The recorder of its cycles.
    pub kept: K,
    /// The gate that says which of its processes or threads may be released.
    pub admission: &'a Admission,
    /// The counts that other threads read.
    pub counts: &'a RemoteCounts,
    /// The limits of its cycles, by place of its frame ([`Places`](punctual_core::block::Places)):
    /// of a task whose releases come evenly there is one.
    pub limits: Vec<Limits>,
    /// The effect of an overrun.
    pub on_overrun: RemoteOverrun,
    /// The scope of the futex on which the task sleeps.
    pub scope: Scope,
}

/// One more.
#[inline]
fn bump(word: &AtomicU64) {
    bump_by(word, 1);
}

/// So many more: a plain load and store, for there is one writer.
#[inline]
fn bump_by(word: &AtomicU64, count: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
}

impl<K: Keep> RemoteTask<'_, K> {
    /// Takes the task's results up to `now` onto its page.
    ///
    /// # Real-time: in loop
    pub fn harvest(&mut self, now: Instant) {
        let (kept, limits) = (&mut self.kept, &self.limits);
        self.server.harvest(now, |done| keep(kept, limits, &done));
        self.counts.invalid.store(self.server.invalid(), Ordering::Relaxed);
    }

    /// Takes the last results up to `now`, and counts what was posted and not taken as missed at
    /// `over`, when nothing was released any more. The task runs no more: a cycle that it began and
    /// did not end ran.
    ///
    /// # Real-time: setup only
    pub fn close(&mut self, now: Instant, over: Instant) {
        self.harvest(now);
        let (kept, limits) = (&mut self.kept, &self.limits);
        self.server.take_begun(now, |done| keep(kept, limits, &done));
        if let Some(missed) = self.server.unclaimed() {
            self.kept.end(missed, over);
        }
    }

    /// Counts releases that never were posted: missed by the task that was there at the last one
    /// before them, otherwise unattended.
    ///
    /// # Real-time: in loop
    #[cold]
    pub fn never_posted(&mut self, missed: Missed, now: Instant) {
        if self.counts.is_attended() {
            self.kept.end(missed, now);
        } else {
            self.counts.leave_unattended(missed.count);
        }
    }

    /// No task is registered at `cycle`; `missed` releases just before it were never posted.
    #[cold]
    fn leave(&mut self, cycle: u64, missed: u64, now: Instant) {
        if missed > 0 {
            let releases = self.server.terms().releases;
            let first = cycle.saturating_sub(missed);
            self.never_posted(Missed { releases, first, count: missed }, now);
        }
        self.counts.leave_unattended(1);
    }

    /// Releases the task for a cycle that is due at `now`; `missed` releases just before it never
    /// were.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn post(&mut self, cycle: u64, missed: u64, now: Instant) -> Flow {
        let (kept, limits) = (&mut self.kept, &self.limits);
        match self.server.enter(self.admission, now, |done| keep(kept, limits, &done)) {
            Entered::Open => {
                // The task that was there finds them before its next result.
                if missed > 0 && !self.counts.is_attended() {
                    self.counts.leave_unattended(missed);
                }
                self.counts.after_end.store(0, Ordering::Relaxed);
            }
            Entered::Left(unclaimed) => {
                if let Some(unclaimed) = unclaimed {
                    self.kept.end(unclaimed, now);
                }
                self.leave(cycle, missed, now);
                return Flow::Continue;
            }
            Entered::Closed => {
                self.leave(cycle, missed, now);
                return Flow::Continue;
            }
        }
        self.harvest(now);
        let posted = self.server.post(cycle, self.on_overrun == RemoteOverrun::Cancel);
        bump(&self.counts.posted);
        if posted.wake {
            // A word of our own memory: nothing can be wrong with it.
            let _woken = futex::wake(self.server.bell(), 1, self.scope);
        }
        if posted.overran.is_some() {
            bump(&self.counts.overran);
            if self.on_overrun == RemoteOverrun::Stop {
                return Flow::Stop;
            }
        }
        Flow::Continue
    }
}

#[inline]
fn keep(kept: &mut impl Keep, limits: &[Limits], done: &Done) {
    let at = At { release: done.release, cycle: done.cycle };
    let limits = limits.get(done.place);
    let overruns = limits.map_or_else(Overruns::default, |limits| limits.judge(done));
    kept.keep(at, done.start - done.release, done.missed, overruns);
}

/// All tasks elsewhere of one executive, by rank.
#[derive(Debug)]
pub struct RemoteTasks<'a, K> {
    /// The tasks, by rank.
    pub tasks: Vec<RemoteTask<'a, K>>,
    /// Releases handled: progress for a watchdog.
    pub beats: &'a AtomicU64,
    /// The rank of the task that ended the executive.
    pub stopped_by: Option<usize>,
}

impl<K: Keep> Dispatch for RemoteTasks<'_, K> {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        bump(self.beats);
        let Some(post) = self.tasks.get_mut(rank) else { return Flow::Continue };
        let flow = post.post(cycle.n, cycle.missed, cycle.release + cycle.lateness);
        if flow == Flow::Stop {
            self.stopped_by = Some(rank);
        }
        flow
    }
}

impl<K: Keep> RemoteTasks<'_, K> {
    /// Ends all tasks' loops and wakes them. A task whose overruns cancel it is cancelled now too,
    /// for it may go on until it is.
    ///
    /// # Real-time: setup only
    pub fn end(&self) {
        for post in &self.tasks {
            if post.on_overrun == RemoteOverrun::Cancel {
                post.server.cancel();
            }
            post.server.end();
            let _woken = futex::wake(post.server.bell(), u32::MAX, post.scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::block::{ClientStep, TaskClient, Terms, words};
    use punctual_core::releases::Releases;
    use punctual_core::stats::{Page, PageKind, View, WORDS};
    use punctual_core::time::Period;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn what_a_stalled_loop_never_posted_is_missed_or_unattended_whoever_comes_and_goes() {
        let memory: Vec<AtomicU64> = (0..words(0)).map(|_| AtomicU64::new(0)).collect();
        let page: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let releases = Releases::new(at(0), Period::hz(1_000).expect("in range"));
        let terms = Terms::even(releases, 0);
        let (admission, counts) = (Admission::new(), RemoteCounts::default());
        let mut task = RemoteTask {
            server: TaskServer::new(&memory, terms).expect("large enough"),
            kept: Page::new(&page, PageKind::Lateness).expect("large enough"),
            admission: &admission,
            counts: &counts,
            limits: Vec::new(),
            on_overrun: RemoteOverrun::Nothing,
            scope: Scope::Process,
        };
        let counted = || {
            let counts_of_page = View::open(&page).expect("a page").counts();
            (counts_of_page.ran, counts_of_page.missed, counts.unattended())
        };
        let post = |task: &mut RemoteTask<'_, _>, cycle: u64, missed: u64| {
            assert_eq!(task.post(cycle, missed, at(cycle)), Flow::Continue);
        };
        // Nobody is there, at 3 after two that the loop slept through; it comes after 4 and 5.
        post(&mut task, 0, 0);
        post(&mut task, 3, 2);
        assert_eq!(counted(), (0, 0, 4));
        admission.open(1);
        post(&mut task, 6, 2);
        assert_eq!(counted(), (0, 0, 6));
        let mut client = TaskClient::open(&memory).expect("a task block");
        assert_eq!(client.turn(), ClientStep::Run);
        let _cycle = client.begin(at(6));
        client.done(at(6));
        // Of 7 to 9 the first two were missed; it never ends 9, and is gone by 13.
        post(&mut task, 9, 2);
        assert_eq!(client.turn(), ClientStep::Run);
        let _cycle = client.begin(at(9));
        post(&mut task, 10, 0);
        admission.close(1);
        post(&mut task, 13, 2);
        assert_eq!(counted(), (2, 2 + 1 + 2, 7), "0 to 13");
        // Until the end nobody is there.
        task.never_posted(Missed { releases, first: 14, count: 3 }, at(17));
        task.close(at(17), at(17));
        assert_eq!((counted(), counts.after_end()), ((2, 5, 10), 4), "0 to 16");
    }
}
