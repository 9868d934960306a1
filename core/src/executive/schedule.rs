//! The schedule of an executive: a table of periodic tasks, a calendar, or both, and whether the
//! loop shall leave it to be changed.
//!
//! For [`super::many::Many`], which runs each of them with one loop. The ranks are the calendar's
//! tasks, then those of the table. Pure: time is an argument; never allocates, never fails.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::calendar::{self, UnitTable};
use crate::cycle::{Decision, Flow, Job, Missed, Overruns};
use crate::dispatch::{self, TableState};
use crate::table::{OnOverrun, Table};
use crate::time::{Instant, Span};

/// What an executive runs.
#[derive(Debug)]
pub struct Schedule<'r, 's> {
    units: Option<(&'r UnitTable<'r>, &'r mut calendar::CalendarState<'s>)>,
    tasks: Option<(&'r Table<'r>, &'r mut TableState<'s>)>,
    /// The rank of the table's first task.
    first: usize,
    /// In this time before a unit no task of the table starts or runs by its budget.
    guard: Span,
    change: Option<Change<'r>>,
}

/// The request to leave a schedule.
#[derive(Debug)]
struct Change<'r> {
    /// The idle time that is needed to make the change, ns; 0 while none is requested.
    request_ns: &'r AtomicU64,
    /// Counts the steps that had nothing to do.
    idles: &'r AtomicU64,
    poll: Span,
    since: Option<Instant>,
    left: bool,
}

impl<'r, 's> Schedule<'r, 's> {
    /// A table of periodic tasks.
    ///
    /// # Real-time: setup only
    pub fn of_table(table: &'r Table<'r>, state: &'r mut TableState<'s>) -> Self {
        let tasks = Some((table, state));
        Self { units: None, tasks, first: 0, guard: Span::ZERO, change: None }
    }

    /// The units of a calendar.
    ///
    /// # Real-time: setup only
    pub fn of_calendar(
        calendar: &'r UnitTable<'r>,
        state: &'r mut calendar::CalendarState<'s>,
    ) -> Self {
        let units = Some((calendar, state));
        Self { units, tasks: None, first: calendar.tasks(), guard: Span::ZERO, change: None }
    }

    /// The same with periodic tasks between the units: a task starts only if its budget fits before
    /// `guard` before the next unit, the time that one turn of the loop takes.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn with_table(
        mut self,
        table: &'r Table<'r>,
        state: &'r mut TableState<'s>,
        guard: Span,
    ) -> Self {
        (self.tasks, self.guard) = (Some((table, state)), guard);
        self
    }

    /// The same, and the loop leaves it when `request_ns` is not 0: as soon as it is idle for at
    /// least that many nanoseconds, and after `poll` in any case, when the task that runs has
    /// returned. The loop reads the request at least every `poll` while it is idle, and each such
    /// read counts in `idles`.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn leave_on(mut self, request_ns: &'r AtomicU64, idles: &'r AtomicU64, poll: Span) -> Self {
        self.change = Some(Change { request_ns, idles, poll, since: None, left: false });
        self
    }

    /// Whether the loop left it to be changed; otherwise the loop has ended.
    ///
    /// # Real-time: in loop
    pub fn left(&self) -> bool {
        self.change.as_ref().is_some_and(|change| change.left)
    }

    /// Releases at or after `end` do not run.
    pub(super) fn end(&mut self, end: Instant) {
        if let Some((_, state)) = &mut self.units {
            state.end(end);
        }
        if let Some((_, state)) = &mut self.tasks {
            state.end(end);
        }
    }

    /// Whether it has units, and whether it has tasks of a table: the loop chooses its code by
    /// that once, before it begins (`UNITS` and `TASKS` below).
    pub(super) fn kind(&self) -> (bool, bool) {
        (self.units.is_some(), self.tasks.is_some())
    }

    /// What there is to do at `now`.
    #[inline(always)]
    pub(super) fn step<const UNITS: bool, const TASKS: bool>(&mut self, now: Instant) -> Decision {
        if let Some(change) = &self.change {
            let needed_ns = change.request_ns.load(Ordering::Relaxed);
            if needed_ns > 0 {
                return self.step_requested::<UNITS, TASKS>(now, needed_ns);
            }
        }
        match self.next::<UNITS, TASKS>(now) {
            Decision::Run(job) => Decision::Run(job),
            Decision::Idle(until) => self.idle(now, until),
        }
    }

    #[inline(always)]
    fn next<const UNITS: bool, const TASKS: bool>(&mut self, now: Instant) -> Decision {
        let mut unit = Instant::from_ns(u64::MAX);
        if UNITS && let Some((calendar, state)) = &mut self.units {
            match calendar::step(calendar, state, now) {
                Decision::Run(job) => return Decision::Run(job),
                Decision::Idle(until) => unit = until,
            }
        }
        if TASKS && let Some((table, state)) = &mut self.tasks {
            if !UNITS {
                return dispatch::step(table, state, now);
            }
            let until = unit - self.guard;
            match dispatch::step_before(table, state, now, until) {
                Decision::Run(job) => {
                    return Decision::Run(Job { rank: job.rank + self.first, ..job });
                }
                Decision::Idle(release) if release > now && release < until => {
                    return Decision::Idle(release);
                }
                // Within the guard the loop waits for the unit.
                Decision::Idle(_) => {}
            }
        }
        Decision::Idle(unit)
    }

    /// Nothing to do: the loop waits no longer than until the next poll of the request.
    #[inline]
    fn idle(&self, now: Instant, until: Instant) -> Decision {
        let Some(Change { idles, poll, .. }) = &self.change else { return Decision::Idle(until) };
        // One writer, so that no locked instruction is needed.
        idles.store(idles.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        Decision::Idle(until.min(now + *poll))
    }

    #[cold]
    #[inline(never)]
    fn step_requested<const UNITS: bool, const TASKS: bool>(
        &mut self,
        now: Instant,
        needed_ns: u64,
    ) -> Decision {
        let Some(change) = &mut self.change else { return NEVER };
        let since = *change.since.get_or_insert(now);
        if now - since < change.poll {
            match self.next::<UNITS, TASKS>(now) {
                run @ Decision::Run(_) => return run,
                Decision::Idle(until) if until.as_ns().saturating_sub(now.as_ns()) < needed_ns => {
                    return self.idle(now, until);
                }
                Decision::Idle(_) => {}
            }
        }
        if let Some(change) = &mut self.change {
            change.left = true;
        }
        NEVER
    }

    /// The task that is most likely next while there is nothing to do. Reads what that step reads.
    #[inline]
    pub(super) fn coming(&self) -> Option<usize> {
        let tasks = self.tasks.as_ref();
        let task = tasks.and_then(|(table, state)| Some((state.coming(table)?, state)));
        let Some((calendar, units)) = &self.units else { return task.map(|(rank, _)| rank) };
        let (unit, ready) = units.coming(calendar);
        match task {
            Some((rank, state)) if state.next_release() < ready => Some(rank + self.first),
            _ => Some(unit),
        }
    }

    /// Releases what is due at `until` while the loop only waits for that: at the wake it is ready.
    /// Of a table alone.
    #[inline(always)]
    pub(super) fn release_ahead<const UNITS: bool, const TASKS: bool>(&mut self, until: Instant) {
        if TASKS
            && !UNITS
            && let Some((table, state)) = &mut self.tasks
        {
            state.release(table, until);
        }
    }

    /// What an overrun of the task of this rank does.
    #[inline(always)]
    pub(super) fn policy<const UNITS: bool, const TASKS: bool>(&self, rank: usize) -> OnOverrun {
        match (&self.tasks, &self.units) {
            (Some((table, _)), _) if TASKS && (!UNITS || rank >= self.first) => {
                table.slots[rank - self.first].policy
            }
            (_, Some((calendar, _))) if UNITS => calendar.tasks[rank],
            _ => OnOverrun::Skip,
        }
    }

    /// How far the phase of the task of this rank, which moves it, moved since its last release.
    #[cold]
    pub(super) fn shift(&self, rank: usize) -> Span {
        let task = self.tasks.as_ref().zip(rank.checked_sub(self.first));
        let shift_ns = task.map_or(0, |((_, state), rank)| state.shift_ns(rank));
        Span::from_ns(i64::try_from(shift_ns).unwrap_or(i64::MAX))
    }

    /// Takes note that `job` ran from `start` to `finish` and ended by `flow`.
    #[inline(always)]
    pub(super) fn finish<const UNITS: bool, const TASKS: bool>(
        &mut self,
        job: &Job,
        start: Instant,
        finish: Instant,
        flow: Flow,
    ) -> Overruns {
        match (&mut self.tasks, &mut self.units) {
            (Some((table, state)), _) if TASKS && (!UNITS || job.rank >= self.first) => {
                let job = Job { rank: job.rank - self.first, ..*job };
                dispatch::finish(table, state, &job, start, finish)
            }
            (_, Some((calendar, state))) if UNITS => {
                calendar::finish(calendar, state, job, start, finish, flow)
            }
            _ => Overruns::default(),
        }
    }

    /// Whether `job`, whose policy is [`OnOverrun::Stop`], and what it did end the loop. Of a unit
    /// a missed frame and its own overrun do, its late start does not.
    #[cold]
    pub(super) fn overran(&self, job: &Job, overruns: Overruns) -> bool {
        let over = if job.rank < self.first { overruns.over_budget } else { overruns.over_release };
        job.missed > 0 || job.passed > 0 || over
    }

    /// Takes note that `job` never ran, because the loop ends over it.
    #[cold]
    pub(super) fn refuse(&mut self, job: &Job) {
        match (&mut self.tasks, &mut self.units) {
            (Some((_, state)), _) if job.rank >= self.first => {
                state.refuse(&Job { rank: job.rank - self.first, ..*job });
            }
            (_, Some((_, state))) => state.refuse(job),
            _ => {}
        }
    }

    /// How many ranks there are.
    pub(super) fn ranks(&self) -> usize {
        self.first + self.tasks.as_ref().map_or(0, |(table, _)| table.tasks())
    }

    /// The releases of the task of this rank up to `over`, where the run ends, that never ran and
    /// that no cycle counted. None where the loop goes on after a change.
    pub(super) fn never_ran(&mut self, rank: usize, over: Instant) -> Option<Missed> {
        if self.left() {
            return None;
        }
        match (&mut self.tasks, &mut self.units) {
            (Some((table, state)), _) if rank >= self.first => {
                state.never_ran(table, rank - self.first, over)
            }
            (_, Some((calendar, state))) => state.never_ran(calendar, rank, over),
            _ => None,
        }
    }
}

/// No loop has a release then: it ends.
const NEVER: Decision = Decision::Idle(Instant::from_ns(u64::MAX));

#[cfg(test)]
mod tests;
mod warm_up;
