//! Where the loop's steps come from: a table of periodic tasks, a calendar, or both.
//!
//! For [`super::many::Many`], which runs them all with one loop. Pure: time is an argument.

use super::many::Flow;
use crate::calendar::{self, Calendar};
use crate::dispatch::{self, Job, Overruns, State, Step};
use crate::page::Missed;
use crate::table::{OnOverrun, Table};
use crate::time::{Instant, Span};

/// What says what is next.
pub trait Source {
    /// Nothing that is due at or after `end` comes any more.
    ///
    /// # Real-time: setup only
    fn end(&mut self, end: Instant);

    /// What there is to do at `now`.
    ///
    /// # Real-time: in loop
    fn step(&mut self, now: Instant) -> Step;

    /// Which task is most likely next while there is nothing to do; reads what that step will read.
    ///
    /// # Real-time: in loop
    fn coming(&self) -> Option<usize>;

    /// From the release of the last cycle of the task to this one, ns.
    ///
    /// # Real-time: in loop
    fn dt_ns(&self, job: &Job) -> u64;

    /// What an overrun of the task of this rank does.
    ///
    /// # Real-time: in loop
    fn policy(&self, rank: usize) -> OnOverrun;

    /// Takes note that `job` ran from `start` to `finish` and ended by `flow`.
    ///
    /// # Real-time: in loop
    fn finish(&mut self, job: &Job, start: Instant, finish: Instant, flow: Flow) -> Overruns;

    /// Whether the whole executive ends over this job and what it did.
    ///
    /// # Real-time: in loop
    fn ends(&self, job: &Job, overruns: Overruns) -> bool;

    /// Takes note that `job` never ran, because the executive ends over it.
    ///
    /// # Real-time: in loop
    fn refuse(&mut self, _job: &Job) {}

    /// How many ranks there are.
    ///
    /// # Real-time: in loop
    fn ranks(&self) -> usize;

    /// The releases of the task of this rank up to `now`, where everything ends, that never ran and
    /// that no cycle was told of.
    ///
    /// # Real-time: in loop
    fn never_ran(&mut self, rank: usize, now: Instant) -> Option<Missed>;

    /// Has one turn of the loop rehearsed on a source of this kind, with one task, due at `now`:
    /// its code is then at hand when the turn is meant.
    ///
    /// # Real-time: in loop
    fn rehearse(&self, now: Instant, turn: &mut impl Rehearse);
}

/// Who rehearses a turn of its loop.
pub trait Rehearse {
    /// Rehearses it on `source`.
    ///
    /// # Real-time: in loop
    fn on<S: Source>(&mut self, source: &mut S, now: Instant);
}

/// A table alone.
#[derive(Debug)]
pub struct Tasks<'r, 't, 's> {
    /// Who is released when.
    pub table: &'r Table<'t>,
    /// Where that is.
    pub state: &'r mut State<'s>,
}

impl Source for Tasks<'_, '_, '_> {
    fn end(&mut self, end: Instant) {
        self.state.end(end);
    }

    #[inline]
    fn step(&mut self, now: Instant) -> Step {
        dispatch::step(self.table, self.state, now)
    }

    #[inline]
    fn coming(&self) -> Option<usize> {
        self.state.coming(self.table)
    }

    #[inline]
    fn dt_ns(&self, job: &Job) -> u64 {
        let class = &self.table.classes[self.table.slots[job.rank].class as usize];
        let cycles = job.missed.saturating_add(1);
        class.period.offset_ns(job.cycle) - class.period.offset_ns(job.cycle.saturating_sub(cycles))
    }

    #[inline]
    fn policy(&self, rank: usize) -> OnOverrun {
        self.table.slots[rank].policy
    }

    #[inline]
    fn finish(&mut self, job: &Job, start: Instant, finish: Instant, _: Flow) -> Overruns {
        dispatch::finish(self.table, self.state, job, start, finish)
    }

    #[inline]
    fn ends(&self, job: &Job, overruns: Overruns) -> bool {
        let stops = self.policy(job.rank) == OnOverrun::Stop;
        stops && (job.missed > 0 || job.passed > 0 || overruns.over_release)
    }

    #[cold]
    fn refuse(&mut self, job: &Job) {
        self.state.refuse(job);
    }

    fn ranks(&self) -> usize {
        self.table.tasks()
    }

    fn never_ran(&mut self, rank: usize, now: Instant) -> Option<Missed> {
        self.state.never_ran(self.table, rank, now)
    }

    #[inline]
    fn rehearse(&self, now: Instant, turn: &mut impl Rehearse) {
        dispatch::rehearse(now, |table, state| turn.on(&mut Tasks { table, state }, now));
    }
}

/// A calendar alone; the ranks are its tasks.
#[derive(Debug)]
pub struct Units<'r, 't, 's> {
    /// Which unit has its place when.
    pub calendar: &'r Calendar<'t>,
    /// Where that is.
    pub state: &'r mut calendar::State<'s>,
}

impl Source for Units<'_, '_, '_> {
    fn end(&mut self, end: Instant) {
        self.state.end(end);
    }

    #[inline]
    fn step(&mut self, now: Instant) -> Step {
        calendar::step(self.calendar, self.state, now)
    }

    #[inline]
    fn coming(&self) -> Option<usize> {
        Some(self.state.coming(self.calendar).0)
    }

    #[inline]
    fn dt_ns(&self, job: &Job) -> u64 {
        let cycles = job.missed.saturating_add(1).min(job.cycle);
        cycles.saturating_mul(self.calendar.frame_ns)
    }

    #[inline]
    fn policy(&self, rank: usize) -> OnOverrun {
        self.calendar.tasks[rank]
    }

    #[inline]
    fn finish(&mut self, job: &Job, start: Instant, finish: Instant, flow: Flow) -> Overruns {
        calendar::finish(self.calendar, self.state, job, start, finish, flow)
    }

    /// Over a frame that never ran, and over a unit beyond its budget; not over a victim.
    #[inline]
    fn ends(&self, job: &Job, overruns: Overruns) -> bool {
        let stops = self.policy(job.rank) == OnOverrun::Stop;
        stops && (job.missed > 0 || overruns.over_budget)
    }

    fn ranks(&self) -> usize {
        self.calendar.tasks()
    }

    fn never_ran(&mut self, rank: usize, _: Instant) -> Option<Missed> {
        self.state.never_ran(self.calendar, rank)
    }

    #[inline]
    fn rehearse(&self, now: Instant, turn: &mut impl Rehearse) {
        calendar::rehearse(now, |calendar, state| turn.on(&mut Units { calendar, state }, now));
    }
}

/// A calendar and a table: a task of the table is started only if its budget fits before the next
/// unit. The ranks are the calendar's tasks, then those of the table.
#[derive(Debug)]
pub struct Both<'r, 't, 'u, 's> {
    /// The units, which come first.
    pub units: Units<'r, 't, 'u>,
    /// The tasks between them.
    pub tasks: Tasks<'r, 't, 's>,
    /// The last of these nanoseconds before a unit nothing starts or runs by its budget: what one
    /// turn of the loop takes.
    pub guard: Span,
}

impl Both<'_, '_, '_, '_> {
    /// The rank of the table's first task.
    #[inline]
    fn first(&self) -> usize {
        self.units.calendar.tasks()
    }

    /// The job as the table knows it; `None` for one of the calendar.
    #[inline]
    fn of_table(&self, job: &Job) -> Option<Job> {
        Some(Job { rank: job.rank.checked_sub(self.first())?, ..*job })
    }
}

impl Source for Both<'_, '_, '_, '_> {
    fn end(&mut self, end: Instant) {
        self.units.end(end);
        self.tasks.end(end);
    }

    #[inline]
    fn step(&mut self, now: Instant) -> Step {
        let unit = match self.units.step(now) {
            Step::Run(job) => return Step::Run(job),
            Step::Idle(unit) => unit,
        };
        let Tasks { table, state } = &mut self.tasks;
        match dispatch::step_before(table, state, now, unit - self.guard) {
            Step::Run(job) => Step::Run(Job { rank: job.rank + self.first(), ..job }),
            // In the guard there is nothing to wait for but the unit.
            Step::Idle(until) if until > now && until < unit - self.guard => Step::Idle(until),
            Step::Idle(_) => Step::Idle(unit),
        }
    }

    #[inline]
    fn coming(&self) -> Option<usize> {
        let (unit, ready) = self.units.state.coming(self.units.calendar);
        match self.tasks.coming() {
            Some(rank) if self.tasks.state.next_release() < ready => Some(rank + self.first()),
            _ => Some(unit),
        }
    }

    #[inline]
    fn dt_ns(&self, job: &Job) -> u64 {
        self.of_table(job).map_or_else(|| self.units.dt_ns(job), |job| self.tasks.dt_ns(&job))
    }

    #[inline]
    fn policy(&self, rank: usize) -> OnOverrun {
        match rank.checked_sub(self.first()) {
            Some(rank) => self.tasks.policy(rank),
            None => self.units.policy(rank),
        }
    }

    #[inline]
    fn finish(&mut self, job: &Job, start: Instant, finish: Instant, flow: Flow) -> Overruns {
        match self.of_table(job) {
            Some(job) => self.tasks.finish(&job, start, finish, flow),
            None => self.units.finish(job, start, finish, flow),
        }
    }

    #[inline]
    fn ends(&self, job: &Job, overruns: Overruns) -> bool {
        self.of_table(job)
            .map_or_else(|| self.units.ends(job, overruns), |job| self.tasks.ends(&job, overruns))
    }

    #[cold]
    fn refuse(&mut self, job: &Job) {
        match self.of_table(job) {
            Some(job) => self.tasks.refuse(&job),
            None => self.units.refuse(job),
        }
    }

    fn ranks(&self) -> usize {
        self.first() + self.tasks.ranks()
    }

    fn never_ran(&mut self, rank: usize, now: Instant) -> Option<Missed> {
        match rank.checked_sub(self.first()) {
            Some(rank) => self.tasks.never_ran(rank, now),
            None => self.units.never_ran(rank, now),
        }
    }

    /// A unit, and a task that there is no time for before the next one: both have their say.
    #[inline]
    fn rehearse(&self, now: Instant, turn: &mut impl Rehearse) {
        let guard = self.guard;
        calendar::rehearse(now, |calendar, units| {
            dispatch::rehearse(now, |table, state| {
                let units = Units { calendar, state: units };
                turn.on(&mut Both { units, tasks: Tasks { table, state }, guard }, now);
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// The steps of a turn at its instant, until there is nothing to do.
    struct Steps(Vec<Step>);

    impl Rehearse for Steps {
        fn on<S: Source>(&mut self, source: &mut S, now: Instant) {
            loop {
                let step = source.step(now);
                self.0.push(step);
                let Step::Run(job) = step else { return };
                let overruns = source.finish(&job, now, now, Flow::Continue);
                assert_eq!((overruns, source.ends(&job, overruns)), Default::default());
            }
        }
    }

    #[test]
    fn a_rehearsal_has_one_task_that_is_due_and_then_idles() {
        let now = Instant::from_ns(1_234_567);
        let rehearsed = |source: &dyn Fn(&mut Steps)| {
            let mut steps = Steps(Vec::new());
            source(&mut steps);
            assert!(matches!(steps.0[0], Step::Run(Job { rank: 0, release, missed: 0, .. })
                if release == now));
            assert!(matches!(steps.0[1], Step::Idle(until) if until > now));
            assert_eq!(steps.0.len(), 2);
        };
        dispatch::rehearse(now, |table, state| {
            let tasks = Tasks { table, state };
            rehearsed(&|steps| tasks.rehearse(now, steps));
            calendar::rehearse(now, |calendar, units| {
                let units = Units { calendar, state: units };
                rehearsed(&|steps| units.rehearse(now, steps));
                let both = Both { units, tasks, guard: Span::ZERO };
                rehearsed(&|steps| both.rehearse(now, steps));
            });
        });
    }
}
