//! Tasks that run elsewhere, behind the ranks of an executive: it posts, it does not run.
//!
//! For executives of workers and of processes. In the loop of [`crate::core::executive::many`]:
//! takes the results of a task's last cycles onto its page, posts the next, wakes it. No system
//! call but futex; an overrun is noted for whoever watches.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::dispatch::Overruns;
use punctual_core::executive::many::{Cycle, Dispatch, Flow};
use punctual_core::page::{At, Page};
use punctual_core::seat::{Done, Entered, TaskGate, TaskServer};
use punctual_core::time::{Instant, Span};
use punctual_os::futex::{self, Scope};

/// What counts as wrong in a cycle; `u64::MAX` for what does not.
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
    /// What a cycle did wrong.
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

/// What an overrun does to a task elsewhere, as far as its releaser does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostOverrun {
    /// Nothing: the task misses or catches up by itself.
    Nothing,
    /// Its cancel token is set.
    Cancel,
    /// The executive ends.
    Stop,
}

/// What a releaser tells of a task to other threads.
#[derive(Debug, Default)]
pub struct Told {
    /// Releases that were posted.
    posted: AtomicU64,
    /// Releases that found the task still running an earlier cycle.
    overran: AtomicU64,
    /// Releases at which nobody sat on the seat.
    vacant: AtomicU64,
    /// Results that cannot be.
    rubbish: AtomicU64,
}

impl Told {
    /// Releases that were posted to whoever sat there.
    ///
    /// # Real-time: reader side
    pub fn posted(&self) -> u64 {
        self.posted.load(Ordering::Relaxed)
    }

    /// Releases that found the task still running an earlier cycle.
    ///
    /// # Real-time: reader side
    pub fn overran(&self) -> u64 {
        self.overran.load(Ordering::Relaxed)
    }

    /// Releases at which nobody sat on the seat.
    ///
    /// # Real-time: reader side
    pub fn vacant(&self) -> u64 {
        self.vacant.load(Ordering::Relaxed)
    }

    /// Results that cannot be: of cycles that were not posted, or at impossible times.
    ///
    /// # Real-time: reader side
    pub fn rubbish(&self) -> u64 {
        self.rubbish.load(Ordering::Relaxed)
    }
}

/// One task elsewhere.
#[derive(Debug)]
pub struct Post<'a> {
    /// Its seat.
    pub releaser: TaskServer<'a>,
    /// Its page.
    pub page: Page<'a>,
    /// Who may be released.
    pub door: &'a TaskGate,
    /// What others hear.
    pub told: &'a Told,
    /// What counts as wrong.
    pub limits: Limits,
    /// What an overrun does.
    pub on_overrun: PostOverrun,
    /// Where the task sleeps.
    pub scope: Scope,
}

/// One more: a plain load and store, for there is one writer.
fn bump(word: &AtomicU64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

impl Post<'_> {
    /// Takes the task's results up to `now` onto its page.
    ///
    /// # Real-time: in loop
    pub fn harvest(&mut self, now: Instant) {
        let (page, limits) = (&mut self.page, &self.limits);
        self.releaser.harvest(now, |done| keep(page, limits, &done));
        self.told.rubbish.store(self.releaser.invalid(), Ordering::Relaxed);
    }

    /// Takes the last results, and counts what was posted and not taken as missed. The task runs no
    /// more.
    ///
    /// # Real-time: setup only
    pub fn close(&mut self, now: Instant) {
        self.harvest(now);
        if let Some(missed) = self.releaser.unclaimed() {
            self.page.end(missed, now);
        }
    }

    /// Releases the task for a cycle that is due at `now`.
    #[inline]
    fn post(&mut self, cycle: u64, now: Instant) -> Flow {
        let (page, limits) = (&mut self.page, &self.limits);
        match self.releaser.enter(self.door, now, |done| keep(page, limits, &done)) {
            Entered::Open => {}
            Entered::Left(unclaimed) => {
                if let Some(missed) = unclaimed {
                    self.page.end(missed, now);
                }
                bump(&self.told.vacant);
                return Flow::Continue;
            }
            Entered::Closed => {
                bump(&self.told.vacant);
                return Flow::Continue;
            }
        }
        self.harvest(now);
        let posted = self.releaser.post(cycle, self.on_overrun == PostOverrun::Cancel);
        bump(&self.told.posted);
        if posted.wake {
            // A word of our own memory: nothing can be wrong with it.
            let _woken = futex::wake(self.releaser.bell(), 1, self.scope);
        }
        if posted.overran.is_some() {
            bump(&self.told.overran);
            if self.on_overrun == PostOverrun::Stop {
                return Flow::Stop;
            }
        }
        Flow::Continue
    }
}

#[inline]
fn keep(page: &mut Page<'_>, limits: &Limits, done: &Done) {
    let at = At { release: done.release, cycle: done.cycle };
    page.keep(at, done.start - done.release, done.missed, limits.judge(done));
}

/// All tasks elsewhere of one executive, by rank.
#[derive(Debug)]
pub struct Posts<'a> {
    /// One a rank.
    pub all: Vec<Post<'a>>,
    /// Releases handled: progress for a watchdog.
    pub beats: &'a AtomicU64,
    /// Which task ended the executive.
    pub stopped_by: Option<usize>,
}

impl Dispatch for Posts<'_> {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        bump(self.beats);
        let Some(post) = self.all.get_mut(rank) else { return Flow::Continue };
        let flow = post.post(cycle.n, cycle.release + cycle.lateness);
        if flow == Flow::Stop {
            self.stopped_by = Some(rank);
        }
        flow
    }
}

impl Posts<'_> {
    /// Ends all tasks' loops and wakes them. Who is told of an overrun is told of this, for it may
    /// go on until it is told.
    ///
    /// # Real-time: setup only
    pub fn end(&self) {
        for post in &self.all {
            if post.on_overrun == PostOverrun::Cancel {
                post.releaser.cancel();
            }
            post.releaser.end();
            let _woken = futex::wake(post.releaser.bell(), u32::MAX, post.scope);
        }
    }
}
