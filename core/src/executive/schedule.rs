//! The schedule of an executive: a table of periodic tasks, a calendar, or both, and whether the
//! loop shall leave it to be changed.
//!
//! For [`super::Many`], which runs each of them with one loop. The ranks are the calendar's
//! tasks, then those of the table. Pure: time is an argument; never allocates, never fails.

use core::sync::atomic::Ordering;

use crate::atomic::AtomicU64;
use crate::calendar::{self, TaskProgress, UnitTable};
use crate::cycle::{Decision, Flow, Job, Missed, Overruns};
use crate::dispatch::{self, OneTask, TableState};
use crate::table::{OnOverrun, Table};
use crate::time::{Instant, Span};

/// No loop has a release then: it ends.
const NEVER: Decision = Decision::Idle(Instant::from_ns(u64::MAX));

/// The plan of an executive and its state: a calendar, a table of tasks, or both.
#[derive(Debug)]
pub struct Schedule<'r, 's> {
    units: Option<(&'r UnitTable<'r>, &'r mut calendar::CalendarState<'s>)>,
    tasks: Option<(&'r Table<'r>, &'r mut TableState<'s>)>,
    /// The rank of the table's first task.
    first: usize,
    /// In this time before a unit no task of the table starts or runs by its budget: the loop needs
    /// it to turn round.
    turnaround: Span,
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
        Self { units: None, tasks, first: 0, turnaround: Span::ZERO, change: None }
    }

    /// The units of a calendar.
    ///
    /// # Real-time: setup only
    pub fn of_calendar(
        calendar: &'r UnitTable<'r>,
        state: &'r mut calendar::CalendarState<'s>,
    ) -> Self {
        let units = Some((calendar, state));
        Self { units, tasks: None, first: calendar.tasks(), turnaround: Span::ZERO, change: None }
    }

    /// Adds periodic tasks between the units: a task starts only if its budget fits before
    /// `turnaround` before the next unit, the time that one turn of the loop takes.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn with_table(
        mut self,
        table: &'r Table<'r>,
        state: &'r mut TableState<'s>,
        turnaround: Span,
    ) -> Self {
        (self.tasks, self.turnaround) = (Some((table, state)), turnaround);
        self
    }

    /// Lets the loop leave this schedule when `request_ns` is not 0: as soon as it is idle for at
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

    /// True where the loop left it to be changed; otherwise the loop has ended.
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

    /// True for a calendar, and true for a table: the loop chooses its code by
    /// that once, before it begins (`UNITS` and `TASKS` below).
    pub(super) fn kind(&self) -> (bool, bool) {
        (self.units.is_some(), self.tasks.is_some())
    }

    /// The decision at `now`. Never by way of a call that returns one: every job would lie in
    /// memory, to be written and read back in parts of other widths, for which the CPU waits.
    #[inline(always)]
    pub(super) fn step<const UNITS: bool, const TASKS: bool>(&mut self, now: Instant) -> Decision {
        let request = self.change.as_ref().map(|change| change.request_ns);
        let needed_ns = request.map_or(0, |request_ns| request_ns.load(Ordering::Relaxed));
        if needed_ns > 0 && self.is_overdue(now) {
            self.leave();
            return NEVER;
        }
        match self.next::<UNITS, TASKS>(now) {
            Decision::Run(job) => Decision::Run(job),
            Decision::Idle(until) => self.idle(now, until, needed_ns),
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
            let until = unit - self.turnaround;
            match dispatch::step_before(table, state, now, until) {
                Decision::Run(job) => {
                    return Decision::Run(Job { rank: job.rank + self.first, ..job });
                }
                Decision::Idle(release) if release > now && release < until => {
                    return Decision::Idle(release);
                }
                // Within a turnaround of it the loop waits for the unit.
                Decision::Idle(_) => {}
            }
        }
        Decision::Idle(unit)
    }

    /// Nothing to do: the loop waits no longer than until the next poll of the request, and leaves
    /// where one needs no more than this time.
    #[inline(always)]
    fn idle(&mut self, now: Instant, until: Instant, needed_ns: u64) -> Decision {
        let Some(Change { idles, poll, .. }) = &self.change else { return Decision::Idle(until) };
        if needed_ns > 0 && until.as_ns().saturating_sub(now.as_ns()) >= needed_ns {
            self.leave();
            return NEVER;
        }
        // One writer, so that no locked instruction is needed.
        idles.store(idles.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        Decision::Idle(until.min(now + *poll))
    }

    /// True where a request, which there is, was first seen a poll ago or more.
    #[cold]
    #[inline(never)]
    fn is_overdue(&mut self, now: Instant) -> bool {
        let Some(change) = &mut self.change else { return false };
        now - *change.since.get_or_insert(now) >= change.poll
    }

    /// The loop leaves this schedule to be changed.
    #[cold]
    fn leave(&mut self) {
        if let Some(change) = &mut self.change {
            change.left = true;
        }
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
            state.release_ahead(table, until);
        }
    }

    /// The answer to an overrun of the task of this rank.
    #[inline(always)]
    pub(super) fn policy<const UNITS: bool, const TASKS: bool>(&self, rank: usize) -> OnOverrun {
        match (&self.tasks, &self.units) {
            (Some((table, _)), _) if TASKS && (!UNITS || rank >= self.first) => {
                table.slots[rank - self.first].policy
            }
            (_, Some((calendar, _))) if UNITS => calendar.policy(rank),
            _ => OnOverrun::Skip,
        }
    }

    /// The move of the phase of the task of this rank since its last release.
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

    /// True where `job`, whose policy is [`OnOverrun::Stop`], ends the loop by its missed releases
    /// or its overruns. Of a unit a missed frame and its own overrun do, its late start does not.
    #[inline]
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

    /// The number of ranks.
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

    /// Runs `turn` on a schedule of the same kind with one task or unit, due at `now`: the code
    /// that the next release needs is in the caches afterwards.
    #[inline]
    pub(super) fn warm_up(&self, now: Instant, turn: impl FnOnce(&mut Schedule<'_, '_>)) {
        let calendar = calendar::one_unit(now);
        let table = OneTask::table(now);
        let (mut progress, mut storage) = ([TaskProgress::default()], OneTask::default());
        let units = self.units.as_ref();
        let mut units =
            units.and_then(|_| calendar::CalendarState::begin(&calendar, &mut progress, now));
        let tasks = self.tasks.as_ref();
        let mut tasks = tasks.and_then(|_| TableState::begin(&table, storage.lend(), now));
        let (request_ns, idles) = (&AtomicU64::new(0), &AtomicU64::new(0));
        let change = self.change.as_ref().map(|change| Change {
            request_ns,
            idles,
            poll: change.poll,
            since: None,
            left: false,
        });
        let mut schedule = Schedule {
            first: usize::from(units.is_some()),
            units: units.as_mut().map(|state| (&calendar, state)),
            tasks: tasks.as_mut().map(|state| (&table, state)),
            turnaround: self.turnaround,
            change,
        };
        if self.units.is_none() {
            // As before a turn of the real schedule, so that the branches are the same.
            schedule.release_ahead::<false, true>(now);
        }
        turn(&mut schedule);
    }
}

#[cfg(test)]
mod tests {

    use std::vec::Vec;

    use super::*;
    use crate::table::{Mask, PeriodClass, PhaseGroup, TaskSlot};
    use crate::time::Period;

    /// A task that is released every 500 µs and ends the loop when it overruns, budget 20 µs.
    const SLOT: TaskSlot = TaskSlot {
        class: 0,
        group: 0,
        deadline_ns: u64::MAX,
        budget_ns: 20_000,
        start_ns: u64::MAX,
        policy: OnOverrun::Stop,
    };

    fn every_500_us(classes: &[PeriodClass; 1]) -> Table<'_> {
        const GROUPS: &[PhaseGroup] = &[PhaseGroup { phase_ns: 0, masks: (0, 1) }];
        const MASKS: &[Mask] = &[Mask { word: 0, bits: 1 }];
        let epoch = Instant::from_ns(0);
        Table { epoch, classes, groups: GROUPS, masks: MASKS, slots: &[SLOT] }
    }

    fn class() -> [PeriodClass; 1] {
        let period = Period::from_ns(500_000).expect("in range");
        [PeriodClass { period, groups: (0, 1), moves: false }]
    }

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1_000)
    }

    #[test]
    fn it_is_left_with_enough_idle_time_or_after_a_poll_in_any_case() {
        let (request, idles) = (AtomicU64::new(0), AtomicU64::new(0));
        let classes = class();
        let table = every_500_us(&classes);
        let mut storage = OneTask::default();
        let mut state = TableState::begin(&table, storage.lend(), at(0)).expect("its own storage");
        let mut schedule =
            Schedule::of_table(&table, &mut state).leave_on(&request, &idles, Span::from_us(100));
        assert!(matches!(schedule.step::<false, true>(at(0)), Decision::Run(_)));
        assert_eq!(idles.load(Ordering::Relaxed), 0);
        assert_eq!(
            schedule.step::<false, true>(at(20)),
            Decision::Idle(at(120)),
            "no longer than a poll"
        );
        assert_eq!(schedule.step::<false, true>(at(450)), Decision::Idle(at(500)));
        assert_eq!(idles.load(Ordering::Relaxed), 2);
        request.store(60_000, Ordering::Relaxed);
        assert_eq!(
            schedule.step::<false, true>(at(450)),
            Decision::Idle(at(500)),
            "too little time"
        );
        assert!(matches!(schedule.step::<false, true>(at(500)), Decision::Run(_)));
        assert!(!schedule.left());
        assert_eq!((schedule.step::<false, true>(at(501)), schedule.left()), (NEVER, true));
        assert_eq!(schedule.never_ran(0, at(5_000)), None, "the loop goes on");

        // A task that is due at each step keeps the loop busy.
        let mut storage = OneTask::default();
        let mut state = TableState::begin(&table, storage.lend(), at(0)).expect("its own storage");
        let mut busy =
            Schedule::of_table(&table, &mut state).leave_on(&request, &idles, Span::from_us(900));
        assert!(matches!(busy.step::<false, true>(at(0)), Decision::Run(_)));
        assert!(matches!(busy.step::<false, true>(at(500)), Decision::Run(_)));
        assert_eq!(
            (busy.step::<false, true>(at(1_000)), busy.left()),
            (NEVER, true),
            "always busy"
        );
    }

    #[test]
    fn a_schedule_to_be_changed_runs_what_it_holds() {
        let (request, idles) = (AtomicU64::new(0), AtomicU64::new(0));
        let classes = class();
        let table = every_500_us(&classes);
        let mut storage = OneTask::default();
        let mut state = TableState::begin(&table, storage.lend(), at(0)).expect("its own storage");
        let mut schedule =
            Schedule::of_table(&table, &mut state).leave_on(&request, &idles, Span::from_ms(100));
        assert_eq!(
            (schedule.coming(), schedule.ranks(), schedule.policy::<false, true>(0)),
            (Some(0), 1, OnOverrun::Stop)
        );
        let Decision::Run(job) = schedule.step::<false, true>(at(0)) else {
            panic!("there is a job")
        };
        let in_time = schedule.finish::<false, true>(&job, at(0), at(1), Flow::Continue);
        assert_eq!((in_time, schedule.overran(&job, in_time)), Default::default());
        let late = schedule.finish::<false, true>(&job, at(0), at(600), Flow::Continue);
        assert!(schedule.overran(&job, late));
        let missed = schedule.never_ran(0, at(1_400)).expect("one at 500, one at 1 000");
        assert_eq!((missed.first, missed.count), (1, 2));

        // A warm-up reads a request of its own, and polls as often.
        for (poll, idle) in [(Span::from_ms(100), at(100_300)), (Span::from_us(100), at(400))] {
            let mut storage = OneTask::default();
            let mut state =
                TableState::begin(&table, storage.lend(), at(0)).expect("its own storage");
            let request = AtomicU64::new(1);
            let schedule = Schedule::of_table(&table, &mut state).leave_on(&request, &idles, poll);
            schedule.warm_up(at(300), |warm| {
                assert!(matches!(warm.step::<false, true>(at(300)), Decision::Run(_)));
                assert_eq!(warm.step::<false, true>(at(300)), Decision::Idle(idle));
            });
        }
    }

    /// The steps of a turn at its instant, until there is nothing to do.
    fn steps<const UNITS: bool, const TASKS: bool>(
        schedule: &Schedule<'_, '_>,
        now: Instant,
    ) -> Vec<Decision> {
        let mut steps = Vec::new();
        schedule.warm_up(now, |warm| {
            // As the loop does before it waits for a release.
            let is_released = warm.tasks.as_ref().map(|(_, state)| state.next_release() > now);
            assert!(UNITS || is_released == Some(true));
            loop {
                let step = warm.step::<UNITS, TASKS>(now);
                steps.push(step);
                let Decision::Run(job) = step else { return };
                let overruns = warm.finish::<UNITS, TASKS>(&job, now, now, Flow::Continue);
                assert_eq!((overruns, warm.overran(&job, overruns)), Default::default());
            }
        });
        steps
    }

    #[test]
    fn a_warm_up_has_one_task_that_is_due_and_then_idles() {
        let now = Instant::from_ns(1_234_567);
        let (table, calendar) = (OneTask::table(now), calendar::one_unit(now));
        for kind in 0..3 {
            let (mut storage, mut progress) = (OneTask::default(), [TaskProgress::default()]);
            let mut state =
                TableState::begin(&table, storage.lend(), now).expect("its own storage");
            let mut units = calendar::CalendarState::begin(&calendar, &mut progress, now)
                .expect("its own storage");
            let steps = match kind {
                0 => steps::<false, true>(&Schedule::of_table(&table, &mut state), now),
                1 => steps::<true, false>(&Schedule::of_calendar(&calendar, &mut units), now),
                _ => steps::<true, true>(
                    &Schedule::of_calendar(&calendar, &mut units).with_table(
                        &table,
                        &mut state,
                        Span::ZERO,
                    ),
                    now,
                ),
            };
            assert!(matches!(steps[0], Decision::Run(Job { rank: 0, release, missed: 0, .. })
                if release == now));
            assert!(matches!(steps[1], Decision::Idle(until) if until > now));
            assert_eq!(steps.len(), 2);
        }
    }
}
