//! The nouns of every loop: a cycle as its loop sees it and as its task sees it, what went wrong
//! with it, why a loop is over, who observes, and how a cycle is cancelled.
//!
//! For all loops, of one period and of many tasks, and for what observes them. Plain data and two
//! rules: how late a missed release was ([`Missed::lateness`]), and which cycle a cancellation
//! meets ([`CancelToken`]). Decides nothing, reads no clock.

use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use crate::atomic::AtomicU64;
use crate::releases::Releases;
use crate::time::{Instant, Period, Span};

/// One cycle of one task, to be run now: what a loop knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The rank of its task; 0 in a loop of one task.
    pub rank: usize,
    /// The number of its release, counted from the epoch.
    pub cycle: u64,
    /// Voluntary breaks that this cycle has had: 0 but for a unit of a calendar.
    pub part: u32,
    /// The instant at which it is due.
    pub release: Instant,
    /// The instant at which this cycle must be over: the task's first release that was still to
    /// come at the start; for a task that catches up
    /// ([`OnOverrun::Burst`](crate::table::OnOverrun::Burst)) the release after this one, which may
    /// have passed; for a unit of a calendar, the instant at which its budget is spent. A cycle
    /// that still runs then has overrun.
    pub next: Instant,
    /// Releases of this task that were missed just before: those with the numbers below this
    /// cycle's.
    pub missed: u64,
    /// Releases after this one that passed before it could start. They are missed, and count in
    /// `missed` of the cycle that comes next.
    pub passed: u64,
    /// The task's period; of a unit of a calendar the frame.
    pub period: Period,
}

impl Job {
    /// The releases that were missed just before: those that [`Job::missed`] counts. Where the
    /// releases are [`Releases::aligned`] and the period is no whole number of nanoseconds each may
    /// be 1 ns off: their rounding is not known here.
    ///
    /// # Real-time: in loop
    #[cold]
    pub fn missed_before(&self) -> Missed {
        let since_0 = i64::try_from(self.period.offset_ns(self.cycle)).unwrap_or(i64::MAX);
        let releases = Releases::new(self.release - Span::from_ns(since_0), self.period);
        let first = self.cycle.saturating_sub(self.missed);
        Missed { releases, first, count: self.cycle - first }
    }

    /// The time from the release of the task's last cycle to this one, missed ones included. A
    /// first cycle counts from the release before it, also number 0: as if there were one a period
    /// earlier.
    #[inline]
    pub(crate) fn dt(&self) -> Span {
        let before = self.missed.saturating_add(1);
        let dt_ns = match self.period.whole_ns() {
            Some(period_ns) => before.saturating_mul(period_ns),
            // A copy, so that no loop keeps its job in memory for this call.
            None => { *self }.dt_of_fraction(before),
        };
        Span::from_ns(i64::try_from(dt_ns).unwrap_or(i64::MAX))
    }

    /// [`Job::dt`] in ns of any period, a fraction too: rounded as both releases are. Releases
    /// counted back from this one: `before`, from 1 on.
    #[cold]
    #[inline(never)]
    fn dt_of_fraction(&self, before: u64) -> u64 {
        match self.cycle.checked_sub(before) {
            Some(last) => self.period.between_ns(last, self.cycle),
            None => self.period.offset_ns(self.cycle).saturating_add(self.period.as_ns()),
        }
    }
}

/// The next thing that a loop does, as its schedule decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run this cycle now.
    Run(Job),
    /// Wait until this instant, the next release of any task.
    Idle(Instant),
}

/// The limits that a finished cycle did not keep. A loop without such a limit reports `false`.
///
/// The first, second and fourth are lengths that a cycle may take whole: one that takes exactly its
/// budget is within it. The third is an instant: at its next release a cycle must be over, as that
/// release is due then, and counts as missed where the cycle finishes at that very nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overruns {
    /// It started later after its release than its task may: start − release > limit.
    pub started_late: bool,
    /// It ran longer than its budget: finish − start > budget.
    pub over_budget: bool,
    /// It still ran at its [`Job::next`], its next release or, of a unit, the end of its budget:
    /// finish ≥ next.
    pub over_release: bool,
    /// It finished after its deadline: finish > deadline.
    pub over_deadline: bool,
}

/// One cycle of one task, as the task sees it. Neither sent to another thread nor kept beyond the
/// cycle: its cancel token is that of this cycle alone.
#[derive(Debug)]
pub struct Cycle<'c> {
    /// The number of the release: those before it since the epoch of an executive, which is long
    /// ago, or frames of a calendar; of a loop of one period since its first. No count of cycles.
    pub n: u64,
    /// Voluntary breaks that this cycle has had: where it is above 0 the task goes on where it was.
    pub part: u32,
    /// The instant at which it was due, on the clock of its loop.
    pub release: Instant,
    /// start − release. The start is stamped just before the body's first statement.
    pub lateness: Span,
    /// Releases of this task that never ran since its last cycle. Those that pass while this one
    /// runs are in the next one's.
    pub missed: u64,
    /// The time from the release of its last cycle to this one, the period for a first one: the
    /// step of an integrator. It is of planned instants; lateness is not in it. 0 for the first
    /// cycle of a task that a device triggers and that was given no period.
    pub dt: Span,
    /// The task's first release after the start; for a task that catches up
    /// ([`OnOverrun::Burst`](crate::table::OnOverrun::Burst)) the release after this one, which may
    /// have passed; for a unit of a calendar, the instant at which its budget is spent. A cycle
    /// that still runs then has overrun.
    pub next: Instant,
    /// True where an executive's watchdog cancels it once it has overrun.
    terminates: bool,
    cancel: Option<Cancel<'c>>,
    /// A cycle stays on the thread of its loop.
    thread: PhantomData<&'c mut *const ()>,
}

impl<'c> Cycle<'c> {
    /// True from [`Cycle::next`] on: the next release is due at `now`, or the unit's budget is
    /// spent, and the cycle should be over. A long task asks this now and then, and returns with
    /// its outputs in a safe state, or breaks off ([`Flow::Break`]). `now` is a stamp of the loop's
    /// own clock: on a clock that is followed it is not CLOCK_MONOTONIC.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn overran(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// True once the task is to be terminated, because it was still running at its next release or,
    /// where it runs elsewhere, at the end of the executive: it should return with its outputs in a
    /// safe state. Costs one load. Always false without a watchdog ([`CancelToken`]) or with
    /// another policy: [`Cycle::overran`] answers in any loop.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.is_set())
    }

    /// The cycle of `job` that starts at `start`, `dt` after the release of the task's last cycle.
    /// Nothing cancels it.
    #[inline]
    pub(crate) fn new(job: &Job, start: Instant, dt: Span) -> Self {
        Self {
            n: job.cycle,
            part: job.part,
            release: job.release,
            lateness: start - job.release,
            missed: job.missed,
            dt,
            next: job.next,
            terminates: false,
            cancel: None,
            thread: PhantomData,
        }
    }

    /// Sets [`Cycle::terminates`]; false before.
    #[inline]
    pub(crate) fn terminating(self, terminates: bool) -> Self {
        Self { terminates, ..self }
    }

    /// True where an overrun of its task terminates it.
    #[inline]
    pub(crate) fn terminates(&self) -> bool {
        self.terminates
    }

    /// A copy of this cycle that `cancel` cancels.
    #[inline]
    pub(crate) fn with_cancel<'s>(&self, cancel: Cancel<'s>) -> Cycle<'s> {
        let Self { n, part, release, lateness, missed, dt, next, terminates, .. } = *self;
        let (cancel, thread) = (Some(cancel), PhantomData);
        Cycle { n, part, release, lateness, missed, dt, next, terminates, cancel, thread }
    }
}

/// The answer of a task at the end of its cycle: whether its loop goes on. These three are all:
/// whoever wraps a body must answer each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Go on: this cycle is done.
    #[default]
    Continue,
    /// A voluntary break: this cycle goes on in the task's next unit of the calendar. For a task
    /// that is in none, the same as `Continue`.
    Break,
    /// End the executive.
    Stop,
}

/// The return value of a task's body: nothing, which goes on, or a [`Flow`].
///
/// ```compile_fail,E0277
/// # mod punctual { pub use punctual_core::cycle::IntoFlow; }
/// fn body<R: punctual::IntoFlow>(_: impl Fn() -> R) {}
/// body(|| true);
/// ```
#[diagnostic::on_unimplemented(
    message = "a body returns nothing or a `Flow`, not `{Self}`",
    label = "this body returns `{Self}`",
    note = "for a `bool`: `if done {{ Flow::Stop }} else {{ Flow::Continue }}`",
    note = "for a `Result`: keep the error in a variable of the caller and return `Flow::Stop`"
)]
pub trait IntoFlow {
    /// The [`Flow`] that the value stands for.
    ///
    /// # Real-time: in loop
    fn into_flow(self) -> Flow;
}

/// A body without a return value goes on.
impl IntoFlow for () {
    #[inline]
    fn into_flow(self) -> Flow {
        Flow::Continue
    }
}

impl IntoFlow for Flow {
    #[inline]
    fn into_flow(self) -> Flow {
        self
    }
}

/// The reason for which a loop is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Ended {
    /// Its end has come: the one that was set, or that of what paces it.
    Finished,
    /// A flag or a task stopped it.
    Stopped,
    /// The task of this rank overran, and its policy is to stop the executive.
    Overran(usize),
}

/// Observes each cycle after it ran.
///
/// Called by the loop, in its thread: an implementation MUST NOT allocate, lock or block. The time
/// that it takes comes after a finish and before what the loop does next.
pub trait Observe {
    /// A cycle ran from `start` to `finish`, both on the clock of the loop. What `job` says of
    /// missed releases is counted here and nowhere else.
    ///
    /// # Real-time: in loop
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns);

    /// Releases of the task of this rank that never ran before the loop ended, at `end`, and that
    /// no cycle counted in its `missed`. By default nothing is done: an observer that counts
    /// releases must not leave it at that.
    ///
    /// # Real-time: in loop
    fn never_ran(&mut self, _rank: usize, _missed: Missed, _end: Instant) {}
}

impl<O: Observe + ?Sized> Observe for &mut O {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        (**self).ran(job, start, finish, overruns);
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        (**self).never_ran(rank, missed, end);
    }
}

impl Observe for () {
    fn ran(&mut self, _: &Job, _: Instant, _: Instant, _: Overruns) {}
}

/// Releases in a row that never ran: numbers `first` to `first + count − 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The releases of their task.
    pub releases: Releases,
    /// The number of the first one.
    pub first: u64,
    /// The number of them.
    pub count: u64,
}

impl Missed {
    /// The lateness of release `k` of these, where the task's first start at or after it was at
    /// `start`: start − release, and a period at least. The only definition: whatever counts missed
    /// releases, one by one or many at once, agrees with it.
    ///
    /// # Real-time: in loop
    pub fn lateness(&self, k: u64, start: Instant) -> Span {
        (start - self.releases.release(k)).max(self.releases.period().as_span())
    }

    /// Splits them into those that were released by `start`, one at `start` included, and the
    /// later ones.
    ///
    /// # Real-time: in loop
    #[must_use]
    pub fn split(self, start: Instant) -> (Self, Self) {
        let before = self.releases.released(start).saturating_sub(self.first).min(self.count);
        let (first, count) = (self.first + before, self.count - before);
        (Self { count: before, ..self }, Self { first, count, ..self })
    }
}

/// The request of a watchdog on another CPU to end one cycle of a task in an executive's thread.
///
/// For tasks with [`OnOverrun::Terminate`](crate::table::OnOverrun::Terminate). The executive
/// publishes which cycle runs and until when it may run; a watchdog compares that with its clock
/// and cancels this one cycle. No task is interrupted: a termination takes effect when the task
/// returns.
#[derive(Debug)]
pub struct CancelToken {
    /// Cycles begun so far; the last one is the one that runs.
    begun: AtomicU64,
    /// The instant at which the cycle is to be cancelled, ns.
    until_ns: AtomicU64,
    /// The last cycle that was cancelled.
    cancelled: AtomicU64,
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl CancelToken {
    /// The instant of a cycle that may not be cancelled.
    const NEVER_NS: u64 = u64::MAX;

    /// A token under which no cycle runs.
    ///
    /// # Real-time: setup only
    pub const fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            until_ns: AtomicU64::new(Self::NEVER_NS),
            cancelled: AtomicU64::new(0),
        }
    }

    /// Begins a cycle that is to be cancelled from `until` on, and returns its token.
    #[inline]
    pub(crate) fn begin(&self, until: Instant) -> Cancel<'_> {
        // One writer, so that no locked instruction is needed.
        let turn = self.begun.load(Ordering::Relaxed) + 1;
        // Release: a thread that sees this cycle sees that the one before is over.
        self.begun.store(turn, Ordering::Release);
        self.until_ns.store(until.as_ns(), Ordering::Release);
        Cancel { word: &self.cancelled, turn }
    }

    /// The cycle is over.
    #[inline]
    pub(crate) fn end(&self) {
        self.until_ns.store(Self::NEVER_NS, Ordering::Release);
    }

    /// Cancels the cycle that runs, where its next release has come at `now`; true for the call
    /// that did it. For the watchdog, on another CPU: on the executive's own CPU it would run too
    /// late.
    ///
    /// # Real-time: reader side
    pub fn cancel_overrun(&self, now: Instant) -> bool {
        // Acquire: the cycle is that of this end or a later one; a later one has another end, so
        // that none is cancelled for the end of the one before.
        let until_ns = self.until_ns.load(Ordering::Acquire);
        let turn = self.begun.load(Ordering::Acquire);
        if now.as_ns() < until_ns || self.until_ns.load(Ordering::Acquire) != until_ns {
            return false;
        }
        self.cancelled.swap(turn, Ordering::Relaxed) != turn
    }
}

/// The cancel token of one cycle, as its task holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cancel<'c> {
    word: &'c AtomicU64,
    turn: u64,
}

impl<'c> Cancel<'c> {
    /// In `word`: cancels the cycle that runs, whichever it is.
    pub(crate) const WHICHEVER: u64 = u64::MAX;

    /// The token of cycle `turn`, which is cancelled while `word` is its number.
    #[inline]
    pub(crate) fn new(word: &'c AtomicU64, turn: u64) -> Self {
        Self { word, turn }
    }

    /// True once the cycle is cancelled.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        let cancelled = self.word.load(Ordering::Relaxed);
        cancelled == self.turn || cancelled == Self::WHICHEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn only_the_turn_that_overran_is_cancelled_and_once() {
        let token = CancelToken::new();
        assert!(!token.cancel_overrun(at(u64::MAX - 1)), "nothing runs");
        let cancel = token.begin(at(100));
        assert!(!token.cancel_overrun(at(99)) && !cancel.is_set());
        assert!(token.cancel_overrun(at(100)) && cancel.is_set());
        assert!(!token.cancel_overrun(at(101)), "no news");
        token.end();
        let next = token.begin(at(300));
        assert!(!next.is_set() && !token.cancel_overrun(at(299)));
        assert!(cancel.is_set(), "a late reader of the old one");
    }

    #[test]
    fn a_first_cycle_has_its_period_to_go_on_by_whatever_its_number() {
        let job = |cycle, missed| {
            let period = Period::ratio(100, 3).expect("in range");
            let (release, next) = (at(0), at(0));
            Job { rank: 0, cycle, part: 0, release, next, missed, passed: 0, period }
        };
        assert_eq!(job(0, 0).dt().as_ns(), 33);
        assert_eq!((job(1, 0).dt().as_ns(), job(2, 0).dt().as_ns()), (33, 33));
        assert_eq!(job(3, 0).dt().as_ns(), 34, "100 - 66");
        assert_eq!(job(3, 2).dt().as_ns(), 100);
        assert_eq!(job(3, 3).dt().as_ns(), 133, "0 to 2 were missed");
        for (cycle, missed) in [(0, 0), (1, 0), (1, 1), (9, 4), (9, 9)] {
            let whole =
                Job { period: Period::from_ns(70).expect("in range"), ..job(cycle, missed) };
            assert_eq!(whole.dt().as_ns().unsigned_abs(), whole.dt_of_fraction(missed + 1));
        }
    }

    #[test]
    fn missed_releases_are_split_at_the_last_start() {
        let releases = Releases::new(Instant::from_ns(100), Period::from_ns(10).expect("in range"));
        let missed = Missed { releases, first: 3, count: 5 };
        let counts = |at: u64| {
            let (before, after) = missed.split(Instant::from_ns(at));
            assert_eq!((before.first, after.first), (3, 3 + before.count));
            (before.count, after.count)
        };
        assert_eq!(counts(129), (0, 5));
        assert_eq!(counts(130), (1, 4));
        assert_eq!(counts(1_000), (5, 0));
    }
}
