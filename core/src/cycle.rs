//! A cycle as its task sees it, and what the task returns at its end.
//!
//! For tasks, and for the loops that make it. Plain data.

use core::marker::PhantomData;

use crate::dispatch::Job;
use crate::executive::cancel::Cancel;
use crate::table::OnOverrun;
use crate::time::{Instant, Span};

/// One cycle of one task, as the task sees it.
#[derive(Debug)]
pub struct Cycle<'c> {
    /// The number of the release: those before it since the epoch of an executive, which is long
    /// ago, or frames of a calendar; of a loop of one period since its first. No count of cycles.
    pub n: u64,
    /// How often the task broke this cycle off before: it goes on where it was.
    pub part: u32,
    /// When it was due, on the clock of its loop.
    pub release: Instant,
    /// start − release.
    pub lateness: Span,
    /// Releases of this task that never ran since its last cycle.
    pub missed: u64,
    /// From the release of its last cycle to this one: the step of an integrator.
    pub dt: Span,
    /// When the task's next cycle is, its first release that is still to come; or, for a unit of a
    /// calendar, when its budget is spent: what runs beyond this is an overrun.
    pub next: Instant,
    /// Whether an overrun cancels it.
    terminates: bool,
    cancel: Option<Cancel<'c>>,
    /// Stays on the thread of its executive.
    thread: PhantomData<&'c mut *const ()>,
}

impl<'c> Cycle<'c> {
    /// Whether the next release has passed at `now`, or the unit is timed out, by which the cycle
    /// should be over: a long task checks this, and returns with its outputs in a safe state, or
    /// breaks off ([`Flow::Break`]).
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn overran(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Whether the cancel token is set: the task is to be terminated, because it was still running
    /// at its next release or, where it runs elsewhere, at the end of the executive, and should
    /// return with its outputs in a safe state. Costs one load; never set without a watchdog (see
    /// [`crate::executive::cancel`]) or with another policy.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.is_set())
    }

    #[inline]
    pub(crate) fn terminates(&self) -> bool {
        self.terminates
    }

    /// A cycle of a task that runs elsewhere: its number, (release, lateness), (missed, dt), the
    /// next release.
    #[inline]
    pub(crate) fn served(
        n: u64,
        (release, lateness): (Instant, Span),
        (missed, dt): (u64, Span),
        next: Instant,
        cancel: Cancel<'c>,
    ) -> Self {
        let (terminates, cancel, thread) = (true, Some(cancel), PhantomData);
        Self { n, part: 0, release, lateness, missed, dt, next, terminates, cancel, thread }
    }

    /// A cycle that a device paces: due at its start.
    #[inline]
    pub(crate) fn paced(n: u64, start: Instant, dt: Span, next: Instant) -> Self {
        let (part, release, lateness, missed) = (0, start, Span::ZERO, 0);
        let (terminates, cancel, thread) = (false, None, PhantomData);
        Self { n, part, release, lateness, missed, dt, next, terminates, cancel, thread }
    }

    /// A cycle of a loop of one period.
    #[inline]
    pub(crate) fn at_gate(job: &Job, start: Instant, dt: Span) -> Cycle<'static> {
        Cycle {
            n: job.cycle,
            part: 0,
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

    /// The same cycle with a cancel token.
    #[inline]
    pub(crate) fn with_cancel<'s>(&self, cancel: Cancel<'s>) -> Cycle<'s>
    where
        'c: 's,
    {
        let cancel = Some(cancel);
        let Self { n, part, release, lateness, missed, dt, next, terminates, .. } = *self;
        let thread = PhantomData;
        Cycle { n, part, release, lateness, missed, dt, next, terminates, cancel, thread }
    }
}

impl Cycle<'_> {
    #[inline]
    pub(crate) fn of(job: &Job, start: Instant, policy: OnOverrun) -> Self {
        // From the release of the task's last cycle: the cycles between were missed.
        let last = job.cycle.saturating_sub(job.missed.saturating_add(1));
        let dt_ns = job.period.between_ns(last, job.cycle);
        Self {
            n: job.cycle,
            part: job.part,
            release: job.release,
            lateness: start - job.release,
            missed: job.missed,
            dt: Span::from_ns(i64::try_from(dt_ns).unwrap_or(i64::MAX)),
            next: job.next,
            terminates: policy == OnOverrun::Terminate,
            cancel: None,
            thread: PhantomData,
        }
    }
}

/// What a task returns at its end.
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

/// A body without a return value goes on.
impl From<()> for Flow {
    fn from((): ()) -> Self {
        Self::Continue
    }
}
