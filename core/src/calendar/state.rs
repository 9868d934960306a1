//! Which unit is next: the decisions of a calendar.
//!
//! For the loop, in a simulated clock as on the machine. Pure: time is an argument, everything is
//! in the caller's storage, nothing grows.
//!
//! A task has one cycle a frame, and in it as many units as the calendar names: a *voluntary break*
//! ends a unit before its work is done, and the next unit of the task goes on with it. A task that
//! is done returns the rest of its time: that of this unit, and its later units in this frame.

use super::progress::TaskProgress;
use super::{UnitCounters, UnitSlot, UnitTable};
use crate::cycle::{Decision, Flow, Job, Missed, Overruns};
use crate::releases::Releases;
use crate::table::OnOverrun;
use crate::time::{Instant, Span};

/// What changes while a calendar runs.
#[derive(Debug)]
pub struct CalendarState<'s> {
    /// The first and the last instant at which a unit is ready.
    from: Instant,
    last: Instant,
    /// The frame of the next unit, its start, ns, and the unit.
    frame: u64,
    start_ns: u64,
    at: usize,
    /// The unit that runs, and the start of its frame, ns.
    running: (usize, u64),
    tasks: &'s mut [TaskProgress],
}

/// Where a state is in its calendar, for [`CalendarState::resume`].
#[derive(Clone, Copy, Debug)]
pub struct CalendarPosition {
    from: Instant,
    frame: u64,
    start_ns: u64,
    at: usize,
}

impl<'s> CalendarState<'s> {
    /// The state of `calendar` in which all units ready at or after `from` are to come; `None` when
    /// the storage is smaller than the number of tasks. Frames count from the calendar's epoch.
    ///
    /// # Real-time: setup only
    pub fn begin(
        calendar: &UnitTable<'_>,
        storage: &'s mut [TaskProgress],
        from: Instant,
    ) -> Option<Self> {
        let tasks = storage.get_mut(..calendar.tasks())?;
        let frame = from.as_ns().saturating_sub(calendar.epoch.as_ns()) / calendar.frame_ns;
        let start_ns = calendar.start_ns(frame);
        let ready = |unit: &UnitSlot| start_ns.saturating_add(unit.ready_ns) >= from.as_ns();
        let at = calendar.units.iter().position(ready).unwrap_or(calendar.units());
        tasks.fill(TaskProgress { next: frame + 1, ..TaskProgress::default() });
        // What still has a unit in this frame has its cycle in it.
        for unit in &calendar.units[at..] {
            tasks[unit.task as usize].next = frame;
        }
        let last = Instant::from_ns(u64::MAX);
        let mut state = Self { from, last, frame, start_ns, at, running: (0, 0), tasks };
        if at == calendar.units() {
            state.enter(calendar, frame + 1);
        }
        Some(state)
    }

    /// Where it is between two units; with its storage all that [`CalendarState::resume`] needs.
    ///
    /// # Real-time: in loop
    pub fn position(&self) -> CalendarPosition {
        let Self { from, frame, start_ns, at, .. } = *self;
        CalendarPosition { from, frame, start_ns, at }
    }

    /// The state that an earlier one was at `position`, in the storage that it left.
    ///
    /// # Real-time: in loop
    pub fn resume(storage: &'s mut [TaskProgress], position: CalendarPosition) -> Self {
        let CalendarPosition { from, frame, start_ns, at } = position;
        let last = Instant::from_ns(u64::MAX);
        Self { from, last, frame, start_ns, at, running: (0, 0), tasks: storage }
    }

    /// Units that are ready at or after `end` do not run: an overloaded calendar ends too.
    ///
    /// # Real-time: setup only
    pub fn end(&mut self, end: Instant) {
        self.last = end - Span::from_ns(1);
    }

    /// Takes note that the cycle of `job` never ran, because the loop ends over it: it is missed,
    /// and no cycle has counted those that were missed before it.
    ///
    /// # Real-time: in loop
    #[cold]
    pub fn refuse(&mut self, job: &Job) {
        if let Some(progress) = self.tasks.get_mut(job.rank) {
            progress.refuse(job);
        }
    }

    /// The frames that a task missed since its last cycle up to `over`, where the run ends: those
    /// in which it had a place by then.
    ///
    /// # Real-time: in loop
    #[cold]
    pub fn never_ran(
        &mut self,
        calendar: &UnitTable<'_>,
        task: usize,
        over: Instant,
    ) -> Option<Missed> {
        let unit = calendar.units.iter().find(|unit| unit.task as usize == task)?;
        let ready_ns = calendar.epoch.as_ns().saturating_add(unit.ready_ns);
        let releases = Releases::new(Instant::from_ns(ready_ns), calendar.frame);
        let due = self.due(calendar, task, over.min(self.last));
        let (first, count) = self.tasks.get_mut(task)?.end(due);
        (count > 0).then_some(Missed { releases, first, count })
    }

    /// The first frame in which the task has had no place up to `over`.
    fn due(&self, calendar: &UnitTable<'_>, task: usize, over: Instant) -> u64 {
        let since_ns = over.as_ns().saturating_sub(calendar.epoch.as_ns());
        let newest = since_ns / calendar.frame_ns;
        let places = self.from.as_ns()..=over.as_ns();
        let has_place = |&frame: &u64| {
            let start_ns = calendar.start_ns(frame);
            let mut units = calendar.units.iter().filter(|unit| unit.task as usize == task);
            units.any(|unit| places.contains(&start_ns.saturating_add(unit.ready_ns)))
        };
        // Of the frame before that one all places have passed.
        let frames = [Some(newest), newest.checked_sub(1)].into_iter().flatten();
        frames.into_iter().find(has_place).map_or(0, |frame| frame.saturating_add(1))
    }

    /// What a task did so far.
    ///
    /// # Real-time: in loop
    pub fn counters(&self, task: usize) -> &UnitCounters {
        &self.tasks[task].counters
    }

    /// The task of the unit it is at, and when that is ready.
    ///
    /// # Real-time: in loop
    pub fn coming(&self, calendar: &UnitTable<'_>) -> (usize, Instant) {
        let unit = &calendar.units[self.at];
        let ready_ns = self.start_ns.saturating_add(unit.ready_ns);
        (unit.task as usize, Instant::from_ns(ready_ns))
    }

    #[inline]
    fn enter(&mut self, calendar: &UnitTable<'_>, frame: u64) {
        (self.frame, self.start_ns, self.at) = (frame, calendar.start_ns(frame), 0);
    }

    /// On to the next unit.
    #[inline]
    fn advance(&mut self, calendar: &UnitTable<'_>) {
        self.at += 1;
        if self.at == calendar.units() {
            self.enter(calendar, self.frame.saturating_add(1));
        }
    }

    /// At the start of a frame: those that are over with all their deadlines are passed at once.
    #[inline]
    fn pass(&mut self, calendar: &UnitTable<'_>, now: Instant) {
        // A deadline is less than two frames after the start of its own.
        let frames = now.as_ns().saturating_sub(self.start_ns) / calendar.frame_ns;
        let over = frames.saturating_sub(2);
        if over == 0 {
            return;
        }
        for unit in calendar.units {
            self.tasks[unit.task as usize].counters.missed_units += over;
        }
        self.enter(calendar, self.frame + over);
    }
}

/// What there is to do at `now`. Idle until the next unit that its task needs.
///
/// # Real-time: in loop
#[inline(always)]
pub fn step(calendar: &UnitTable<'_>, state: &mut CalendarState<'_>, now: Instant) -> Decision {
    loop {
        if state.at == 0 {
            state.pass(calendar, now);
        }
        let unit = &calendar.units[state.at];
        let task = unit.task as usize;
        if state.tasks[task].is_done(state.frame) {
            state.tasks[task].counters.spare_units += 1;
            state.advance(calendar);
            continue;
        }
        let release_ns = state.start_ns.saturating_add(unit.ready_ns);
        if release_ns > now.min(state.last).as_ns() || release_ns == u64::MAX {
            return Decision::Idle(Instant::from_ns(release_ns));
        }
        let (frame, start_ns) = (state.frame, state.start_ns);
        state.running = (state.at, start_ns);
        state.advance(calendar);
        if now.as_ns() >= start_ns.saturating_add(unit.deadline_ns) {
            state.tasks[task].counters.missed_units += 1;
            continue;
        }
        let progress = &mut state.tasks[task];
        progress.begin(frame, calendar.tasks[task]);
        let new = progress.part == 0;
        return Decision::Run(Job {
            rank: task,
            cycle: progress.cycle,
            part: progress.part,
            release: Instant::from_ns(release_ns),
            next: Instant::from_ns(now.as_ns().saturating_add(unit.budget_ns)),
            missed: if new { core::mem::take(&mut progress.uncounted) } else { 0 },
            passed: 0,
            period: calendar.frame,
        });
    }
}

/// Takes note that the unit of `job` ran from `start` to `finish` and ended by `flow`.
///
/// # Real-time: in loop
#[inline(always)]
pub fn finish(
    calendar: &UnitTable<'_>,
    state: &mut CalendarState<'_>,
    job: &Job,
    start: Instant,
    finish: Instant,
    flow: Flow,
) -> Overruns {
    let (index, frame_start_ns) = state.running;
    let unit = &calendar.units[index];
    let took_ns = finish.as_ns().saturating_sub(start.as_ns());
    let late_ns = start.as_ns().saturating_sub(job.release.as_ns());
    let overruns = Overruns {
        started_late: late_ns > unit.start_ns,
        over_budget: took_ns > unit.budget_ns,
        over_release: finish >= job.next,
        over_deadline: finish.as_ns() > frame_start_ns.saturating_add(unit.deadline_ns),
    };
    let progress = &mut state.tasks[job.rank];
    let counters = &mut progress.counters;
    counters.ran += 1;
    counters.started_late += u64::from(overruns.started_late);
    counters.over_budget += u64::from(overruns.over_budget);
    counters.over_release += u64::from(overruns.over_release);
    counters.over_deadline += u64::from(overruns.over_deadline);
    progress.unfinished = flow == Flow::Break;
    if progress.unfinished {
        counters.breaks += 1;
        progress.part = progress.part.saturating_add(1);
        if overruns.over_budget && calendar.tasks[job.rank] == OnOverrun::Terminate {
            counters.terminated += 1;
            progress.unfinished = false;
        }
    }
    overruns
}
