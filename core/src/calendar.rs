//! The calendar: elemental units, each at its place in a frame that repeats, and which of them is
//! next.
//!
//! For the executive's loop, on the machine as in a simulated clock. *Temporal accuracy on the
//! Pentium Pro* (Maruti, §6.1): a thread is a sequence of elemental units that nothing preempts,
//! each started at an instant that was fixed before the run. A builder prepares the slices;
//! [`UnitTable::new`] checks them once, so that nothing can fail in the loop. Pure: time is an
//! argument, everything is in the caller's storage, nothing grows.
//!
//! A task has one cycle a frame, and in it as many units as the calendar names: a *voluntary break*
//! ends a unit before its work is done, and the next unit of the task goes on with it. A task that
//! is done returns the rest of its time: that of this unit, and its later units in this frame.

use crate::cycle::{Decision, Flow, Job, Missed, Overruns};
use crate::ready::RANKS_MAX;
use crate::releases::Releases;
use crate::table::OnOverrun;
use crate::time::{Instant, Period, Span};

/// The most units of a frame.
pub const UNITS_MAX: usize = 1 << 16;

/// One elemental unit: a place in the frame, and the task that runs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitSlot {
    /// From the start of the frame to its start, ns: `ready + budget` is within the frame.
    pub ready_ns: u64,
    /// The longest execution, ns, at least 1: what runs longer is timed out.
    pub budget_ns: u64,
    /// From the start of the frame to the latest finish, ns: from `ready + budget` to `ready +
    /// frame`. A unit that could not be started by then is missed.
    pub deadline_ns: u64,
    /// From `ready` to the latest start that is not counted as late, ns.
    pub start_ns: u64,
    /// Its task, by rank in the loop.
    pub task: u32,
    /// The number of the cycle in the frame, among those of its task, that it belongs to: 0 where
    /// that has one. It MUST NOT fall from one unit of the task to the next in the frame; one whose
    /// turn falls never runs.
    pub turn: u32,
    /// The number of cycles that its task has in a frame, at least 1 and the same for all its
    /// units.
    pub turns: u32,
    /// The time from one of them to the next, the frame by `turns`.
    pub period: Period,
}

impl UnitSlot {
    /// The cycle of its task that it belongs to in a frame, counted from frame 0.
    #[inline]
    fn cycle(&self, frame: u64) -> u64 {
        frame.saturating_mul(u64::from(self.turns)).saturating_add(u64::from(self.turn))
    }
}

/// The reason for which slices are not a valid calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitTableError {
    /// No unit, or more than [`UNITS_MAX`].
    Units(usize),
    /// More than [`RANKS_MAX`] tasks.
    Tasks(usize),
    /// The frame is no whole number of nanoseconds.
    Frame,
    /// The unit at this index has no budget, is outside of the frame, has its deadline out of
    /// range, a turn or a period that its frame does not have, or names a task that does not exist.
    Unit(usize),
    /// The unit at this index starts before the one before it is over.
    Overlap(usize),
    /// The task at this index has a policy that a fixed place does not allow: only
    /// [`OnOverrun::Skip`], [`OnOverrun::Terminate`] and [`OnOverrun::Stop`] leave all places
    /// where they are.
    OnOverrun(usize),
}

/// Units at their places in a frame; never changes.
#[derive(Clone, Copy, Debug)]
pub struct UnitTable<'t> {
    epoch: Instant,
    frame_ns: u64,
    units: &'t [UnitSlot],
    tasks: &'t [OnOverrun],
}

impl<'t> UnitTable<'t> {
    /// The calendar of these units in the order of their places, whose frame 0 starts at `epoch`;
    /// `tasks` are what happens to each task that is timed out.
    ///
    /// # Errors
    ///
    /// The first invalid unit or task.
    ///
    /// # Real-time: setup only
    pub fn new(
        epoch: Instant,
        frame: Period,
        units: &'t [UnitSlot],
        tasks: &'t [OnOverrun],
    ) -> Result<Self, UnitTableError> {
        let frame_ns = frame.as_ns();
        if units.is_empty() || units.len() > UNITS_MAX {
            return Err(UnitTableError::Units(units.len()));
        }
        if tasks.len() > RANKS_MAX {
            return Err(UnitTableError::Tasks(tasks.len()));
        }
        if frame.den() != 1 {
            return Err(UnitTableError::Frame);
        }
        let mut free_ns = 0;
        for (index, unit) in units.iter().enumerate() {
            let end_ns = unit.ready_ns.saturating_add(unit.budget_ns);
            let placed = unit.budget_ns > 0 && end_ns <= frame_ns;
            // Below 2 · 2⁶², so that no sum overflows.
            let latest_ns = unit.ready_ns.saturating_add(frame_ns);
            let dated = (end_ns..=latest_ns).contains(&unit.deadline_ns);
            let is_paced = unit.turn < unit.turns
                && Period::ratio(frame_ns, u64::from(unit.turns)) == Some(unit.period);
            if !placed || !dated || !is_paced || unit.task as usize >= tasks.len() {
                return Err(UnitTableError::Unit(index));
            }
            if unit.ready_ns < free_ns {
                return Err(UnitTableError::Overlap(index));
            }
            free_ns = end_ns;
        }
        let moves = |policy: &OnOverrun| matches!(policy, OnOverrun::Delay | OnOverrun::Burst(_));
        if let Some(task) = tasks.iter().position(moves) {
            return Err(UnitTableError::OnOverrun(task));
        }
        Ok(Self { epoch, frame_ns, units, tasks })
    }

    /// The answer to an overrun of a task.
    #[inline]
    pub(crate) fn policy(&self, task: usize) -> OnOverrun {
        self.tasks[task]
    }

    /// The number of tasks.
    ///
    /// # Real-time: in loop
    pub const fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// The number of units in a frame.
    ///
    /// # Real-time: in loop
    pub const fn units(&self) -> usize {
        self.units.len()
    }

    /// The length of the frame, ns.
    ///
    /// # Real-time: in loop
    pub const fn frame_ns(&self) -> u64 {
        self.frame_ns
    }

    /// The start of frame 0.
    ///
    /// # Real-time: in loop
    pub const fn epoch(&self) -> Instant {
        self.epoch
    }

    /// The start of a frame, ns, saturating at the clock's end.
    #[inline]
    fn start_ns(&self, frame: u64) -> u64 {
        self.epoch.as_ns().saturating_add(frame.saturating_mul(self.frame_ns))
    }
}

/// The counters of a task of a calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitCounters {
    /// Units that ran.
    pub ran: u64,
    /// Units whose deadline had passed before they could start.
    pub missed_units: u64,
    /// Units not needed: the task was done before them.
    pub spare_units: u64,
    /// Cycles that the task did not begin: of a task with one a frame, frames.
    pub missed: u64,
    /// Voluntary breaks.
    pub breaks: u64,
    /// Cycles ended by [`OnOverrun::Terminate`] before they were done.
    pub terminated: u64,
    /// Starts later than the unit allows: delayed by others.
    pub started_late: u64,
    /// Units that ran longer than their budget, timed out: the causes of delays.
    pub over_budget: u64,
    /// Units that still ran at the `next` of their cycle, the instant at which their budget was
    /// spent: those that took exactly their budget too.
    pub over_release: u64,
    /// Cycles that were not done when the place of their task's next one came.
    pub over_frame: u64,
    /// Finishes after the deadline.
    pub over_deadline: u64,
}

/// The place of a task in its cycles, and its counters: the storage of a
/// [`CalendarState`], one a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskProgress {
    /// The first cycle that is neither run nor counted as missed.
    next: u64,
    /// The cycle that it is in, or was in.
    cycle: u64,
    /// The breaks that this cycle has had.
    part: u32,
    /// True where it took a break and is not done.
    unfinished: bool,
    /// Missed cycles that no other has counted in its `missed` yet.
    uncounted: u64,
    counters: UnitCounters,
}

impl TaskProgress {
    /// True where it has nothing to do in the places of this cycle any more.
    #[inline]
    fn is_done(&self, cycle: u64) -> bool {
        !self.unfinished && self.next > cycle
    }

    /// The cycle of `job` never ran: it is missed, and nobody has counted what it would have.
    fn refuse(&mut self, job: &Job) {
        self.counters.missed += 1;
        self.uncounted += job.missed + 1;
    }

    /// The run ends, and the cycles from `due` on are none of it. Those missed that no other has
    /// counted: the first, and how many.
    fn end(&mut self, due: u64) -> (u64, u64) {
        let first = self.next - core::mem::take(&mut self.uncounted);
        let end = due.max(first);
        self.counters.missed = (self.counters.missed + end).saturating_sub(self.next);
        self.next = end;
        (first, end - first)
    }

    /// A unit starts in a place of `cycle`: for that one, or for the one that took a break.
    #[inline]
    fn begin(&mut self, cycle: u64, policy: OnOverrun) {
        let passed = cycle.saturating_sub(self.next);
        if self.unfinished && cycle >= self.next {
            self.counters.over_frame += 1;
            if policy == OnOverrun::Terminate {
                self.counters.terminated += 1;
                self.unfinished = false;
            }
        }
        if self.unfinished {
            // The cycles that it runs into are missed, this one included.
            let missed = cycle.saturating_add(1).saturating_sub(self.next);
            self.uncounted += missed;
            self.counters.missed += missed;
        } else {
            (self.cycle, self.part) = (cycle, 0);
            self.uncounted += passed;
            self.counters.missed += passed;
        }
        self.next = self.next.max(cycle.saturating_add(1));
    }
}

/// The state of a calendar that runs: all that changes.
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

/// The position of a state in its calendar, for [`CalendarState::resume`].
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
        tasks.fill(TaskProgress::default());
        // What still has a unit in this frame has its cycle in it, all else in the next one.
        for unit in calendar.units.iter().rev() {
            tasks[unit.task as usize].next = unit.cycle(frame + 1);
        }
        for unit in calendar.units[at..].iter().rev() {
            tasks[unit.task as usize].next = unit.cycle(frame);
        }
        let last = Instant::from_ns(u64::MAX);
        let mut state = Self { from, last, frame, start_ns, at, running: (0, 0), tasks };
        if at == calendar.units() {
            state.enter(calendar, frame + 1);
        }
        Some(state)
    }

    /// Its position between two units: with its storage all that [`CalendarState::resume`] needs.
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

    /// The cycles that a task missed since its last one up to `over`, where the run ends: those
    /// that had a place by then. Of a task with several in a frame their releases are told as if
    /// they came evenly.
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
        let releases = Releases::new(Instant::from_ns(ready_ns), unit.period);
        let due = self.due(calendar, task, over.min(self.last));
        let (first, count) = self.tasks.get_mut(task)?.end(due);
        (count > 0).then_some(Missed { releases, first, count })
    }

    /// The first cycle of the task that has had no place up to `over`.
    fn due(&self, calendar: &UnitTable<'_>, task: usize, over: Instant) -> u64 {
        let since_ns = over.as_ns().saturating_sub(calendar.epoch.as_ns());
        let newest = since_ns / calendar.frame_ns;
        let places = self.from.as_ns()..=over.as_ns();
        let newest_in = |frame: u64| {
            let start_ns = calendar.start_ns(frame);
            let mut units = calendar.units.iter().rev().filter(|unit| unit.task as usize == task);
            let unit =
                units.find(|unit| places.contains(&start_ns.saturating_add(unit.ready_ns)))?;
            Some(unit.cycle(frame).saturating_add(1))
        };
        // Of the frame before that one all places have passed.
        let frames = [Some(newest), newest.checked_sub(1)].into_iter().flatten();
        frames.into_iter().find_map(newest_in).unwrap_or(0)
    }

    /// The counters of a task up to now.
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

/// The decision at `now`. Idle until the next unit that its task needs.
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
        let cycle = unit.cycle(state.frame);
        if state.tasks[task].is_done(cycle) {
            state.tasks[task].counters.spare_units += 1;
            state.advance(calendar);
            continue;
        }
        let release_ns = state.start_ns.saturating_add(unit.ready_ns);
        if release_ns > now.min(state.last).as_ns() || release_ns == u64::MAX {
            return Decision::Idle(Instant::from_ns(release_ns));
        }
        let start_ns = state.start_ns;
        state.running = (state.at, start_ns);
        state.advance(calendar);
        if now.as_ns() >= start_ns.saturating_add(unit.deadline_ns) {
            state.tasks[task].counters.missed_units += 1;
            continue;
        }
        let progress = &mut state.tasks[task];
        progress.begin(cycle, calendar.tasks[task]);
        let new = progress.part == 0;
        return Decision::Run(Job {
            rank: task,
            cycle: progress.cycle,
            part: progress.part,
            release: Instant::from_ns(release_ns),
            next: Instant::from_ns(now.as_ns().saturating_add(unit.budget_ns)),
            missed: if new { core::mem::take(&mut progress.uncounted) } else { 0 },
            passed: 0,
            period: unit.period,
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

/// A calendar of one unit that is due at `epoch`, on which a loop with time in hand runs a turn to
/// warm up: the state of the real units is never touched.
#[inline]
pub(crate) const fn one_unit(epoch: Instant) -> UnitTable<'static> {
    /// Long enough that nothing is late in it.
    const FRAME_NS: u64 = 1 << 40;
    const FRAME: Period = match Period::from_ns(FRAME_NS) {
        Some(frame) => frame,
        None => panic!(),
    };
    const UNITS: &[UnitSlot] = &[UnitSlot {
        ready_ns: 0,
        budget_ns: FRAME_NS,
        deadline_ns: FRAME_NS,
        start_ns: FRAME_NS,
        task: 0,
        turn: 0,
        turns: 1,
        period: FRAME,
    }];
    const TASKS: &[OnOverrun] = &[OnOverrun::Skip];
    UnitTable { epoch, frame_ns: FRAME_NS, units: UNITS, tasks: TASKS }
}

#[cfg(test)]
mod tests {
    //! The calendar against a model that keeps every place of every frame in a list.

    use super::*;
    use crate::cycle::{Decision, Flow};
    use crate::testing::Random;
    use std::collections::{BTreeSet, VecDeque};
    use std::vec;
    use std::vec::Vec;

    /// One place of one cycle.
    #[derive(Clone, Copy, Debug)]
    struct Place {
        cycle: u64,
        ready: u64,
        latest: u64,
        task: usize,
    }

    /// The slow model: every place in a list, every cycle in a set.
    struct Model<'m> {
        units: &'m [UnitSlot],
        policies: &'m [OnOverrun],
        frame_ns: u64,
        places: VecDeque<Place>,
        frames: u64,
        epoch: u64,
        /// For each task: cycles begun or given up, the one broken off and its breaks, missed
        /// cycles not yet counted, the frame from which on it is to be looked for, and what it did.
        used: Vec<BTreeSet<u64>>,
        broken: Vec<Option<(u64, u32)>>,
        uncounted: Vec<u64>,
        first: Vec<Option<u64>>,
        counters: Vec<UnitCounters>,
    }

    impl<'m> Model<'m> {
        fn new(calendar: &'m UnitTable<'m>, from: u64) -> Self {
            let tasks = calendar.tasks();
            let mut model = Self {
                units: calendar.units,
                policies: calendar.tasks,
                frame_ns: calendar.frame_ns,
                places: VecDeque::new(),
                frames: 0,
                epoch: calendar.epoch.as_ns(),
                used: vec![BTreeSet::new(); tasks],
                broken: vec![None; tasks],
                uncounted: vec![0; tasks],
                first: vec![None; tasks],
                counters: vec![UnitCounters::default(); tasks],
            };
            while model.first.iter().any(Option::is_none) {
                model.fill();
                model.places.retain(|place| place.ready >= from);
                for task in 0..tasks {
                    let place = model.places.iter().find(|place| place.task == task);
                    model.first[task] = place.map(|place| place.cycle);
                }
            }
            model
        }

        fn fill(&mut self) {
            let start = self.epoch + self.frames * self.frame_ns;
            self.places.extend(self.units.iter().map(|unit| Place {
                cycle: self.frames * u64::from(unit.turns) + u64::from(unit.turn),
                ready: start + unit.ready_ns,
                latest: start + unit.deadline_ns,
                task: unit.task as usize,
            }));
            self.frames += 1;
        }

        /// Rank, cycle, part, release, missed; or when the next unit is ready.
        fn step(&mut self, now: u64) -> Result<(usize, u64, u32, u64, u64), u64> {
            loop {
                if self.places.len() <= self.units.len() {
                    self.fill();
                }
                let place = self.places[0];
                let Place { cycle: due, ready, latest, task } = place;
                if self.broken[task].is_none() && self.used[task].contains(&due) {
                    self.counters[task].spare_units += 1;
                    self.places.pop_front();
                    continue;
                }
                if ready > now {
                    return Err(ready);
                }
                self.places.pop_front();
                if now >= latest {
                    self.counters[task].missed_units += 1;
                    continue;
                }
                let missed = self.begin(task, due);
                let (cycle, part) = self.broken[task].unwrap_or((due, 0));
                return Ok((task, cycle, part, ready, missed));
            }
        }

        fn begin(&mut self, task: usize, due: u64) -> u64 {
            let new_cycle = !self.used[task].contains(&due);
            if self.broken[task].is_some() && new_cycle {
                self.counters[task].over_frame += 1;
                if self.policies[task] == OnOverrun::Terminate {
                    self.counters[task].terminated += 1;
                    self.broken[task] = None;
                }
            }
            let resumed = self.broken[task].is_some();
            let from = self.first[task].expect("set");
            for earlier in from..=due {
                if self.used[task].insert(earlier) && (earlier < due || resumed) {
                    self.counters[task].missed += 1;
                    self.uncounted[task] += 1;
                }
            }
            // All before this one are settled.
            self.first[task] = Some(due);
            if resumed { 0 } else { std::mem::take(&mut self.uncounted[task]) }
        }

        fn finish(&mut self, task: usize, cycle: u64, part: u32, flow: Flow, over_budget: bool) {
            self.counters[task].ran += 1;
            self.broken[task] = None;
            if flow == Flow::Break {
                self.counters[task].breaks += 1;
                if over_budget && self.policies[task] == OnOverrun::Terminate {
                    self.counters[task].terminated += 1;
                } else {
                    self.broken[task] = Some((cycle, part + 1));
                }
            }
        }
    }

    /// A calendar of up to 12 units in a frame of 1 000 ns.
    fn some(random: &mut Random) -> (Vec<UnitSlot>, Vec<OnOverrun>) {
        let kinds = [OnOverrun::Skip, OnOverrun::Terminate, OnOverrun::Stop];
        let tasks: Vec<OnOverrun> =
            (0..=random.below(4)).map(|_| kinds[random.below(3) as usize]).collect();
        let mut units = Vec::new();
        let mut at = 0;
        while units.len() < 12 {
            let ready_ns = at + random.below(2) * random.below(150);
            let budget_ns = 1 + random.below(200);
            at = ready_ns + budget_ns;
            if at > 1_000 {
                break;
            }
            let latest = at + random.below(ready_ns + 1_000 - at + 1);
            let deadline_ns = if random.below(2) == 0 { at } else { latest };
            let task = if units.len() < tasks.len() { units.len() as u64 } else { random.below(9) };
            let task = (task % tasks.len() as u64) as u32;
            units.push(UnitSlot { deadline_ns, start_ns: 3, task, ..unit(ready_ns, budget_ns) });
        }
        // Some tasks have several cycles in a frame.
        for task in 0..tasks.len() as u32 {
            let own = units.iter().filter(|unit| unit.task == task).count() as u64;
            let turns = [1, 1 + random.below(own.max(1))][random.below(2) as usize];
            let mut left = own;
            let mut turn = 0;
            for unit in units.iter_mut().filter(|unit| unit.task == task) {
                let period = Period::ratio(1_000, turns).expect("positive");
                *unit = UnitSlot { turn: turn as u32, turns: turns as u32, period, ..*unit };
                left -= 1;
                // Each has a place, and so does the last.
                let others = turns - 1 - turn;
                turn += u64::from(others > 0 && (left <= others || random.below(2) == 0));
            }
        }
        let named = units.iter().map(|unit| unit.task + 1).max().unwrap_or(0) as usize;
        (units, tasks[..named].to_vec())
    }

    /// Runs both for `steps` decisions; tasks are done, break off, overrun and stall at random.
    fn agree(units: &[UnitSlot], policies: &[OnOverrun], seed: u64, steps: u32) {
        let frame = Period::from_ns(1_000).expect("positive");
        let epoch = Instant::from_ns(5_000 + seed % 777);
        let calendar = UnitTable::new(epoch, frame, units, policies).expect("a calendar");
        let mut random = Random::new(seed);
        let from = 4_000 + random.below(4_000);
        let mut now = from;
        let mut storage = vec![TaskProgress::default(); policies.len()];
        let mut state =
            CalendarState::begin(&calendar, &mut storage, Instant::from_ns(now)).expect("it fits");
        let mut model = Model::new(&calendar, now);
        for at in 0..steps {
            let shown = (at, now, units, policies);
            match (step(&calendar, &mut state, Instant::from_ns(now)), model.step(now)) {
                (Decision::Idle(until), Err(slow)) => {
                    assert_eq!(until.as_ns(), slow, "{shown:?}");
                    let stall = if random.below(40) == 0 { random.below(9_000) } else { 0 };
                    now = slow + random.below(4) + stall;
                }
                (Decision::Run(job), Ok((task, cycle, part, release, missed))) => {
                    let fast = (job.rank, job.cycle, job.part, job.release.as_ns(), job.missed);
                    assert_eq!(fast, (task, cycle, part, release, missed), "{shown:?}");
                    let budget = job.next.as_ns() - now;
                    assert!(units.iter().any(|u| u.budget_ns == budget && u.task as usize == task));
                    let took = match random.below(12) {
                        0 => budget + 1 + random.below(900),
                        _ => random.below(budget + 1),
                    };
                    let flow = [Flow::Continue, Flow::Break][(random.below(3) / 2) as usize];
                    let (start, end) = (Instant::from_ns(now), Instant::from_ns(now + took));
                    let overruns = finish(&calendar, &mut state, &job, start, end, flow);
                    assert_eq!(overruns.over_budget, took > budget, "{shown:?}");
                    assert_eq!(overruns.started_late, now - release > 3, "{shown:?}");
                    now += took;
                    model.finish(task, cycle, part, flow, took > budget);
                }
                (fast, slow) => panic!("{fast:?} against {slow:?}: {shown:?}"),
            }
        }
        // At the end each cycle for which a task had a place by then ran or was missed.
        let over = now + random.below(2) * random.below(3_000);
        for task in 0..policies.len() {
            let start = |frame| epoch.as_ns() + frame * 1_000;
            let cycles_in = |frame: u64| {
                let places = units.iter().filter(move |unit| unit.task as usize == task);
                places
                    .filter(move |unit| (from..=over).contains(&(start(frame) + unit.ready_ns)))
                    .map(move |unit| frame * u64::from(unit.turns) + u64::from(unit.turn))
            };
            let frames = (0..).take_while(|&frame| start(frame) <= over);
            let cycles: BTreeSet<u64> = frames.flat_map(cycles_in).collect();
            let unused = cycles.difference(&model.used[task]).count() as u64;
            let missed = state.never_ran(&calendar, task, Instant::from_ns(over));
            let count = missed.map_or(0, |missed| missed.count);
            assert_eq!(count, model.uncounted[task] + unused, "{task} of {units:?} {policies:?}");
            model.counters[task].missed += unused;
            assert!(state.never_ran(&calendar, task, Instant::from_ns(over)).is_none(), "once");
        }
        for (task, slow) in model.counters.iter().enumerate() {
            let fast = state.counters(task);
            let late = (fast.started_late, fast.over_budget, fast.over_release, fast.over_deadline);
            let (started_late, over_budget, over_release, over_deadline) = late;
            let whole =
                UnitCounters { started_late, over_budget, over_release, over_deadline, ..*slow };
            assert_eq!(*fast, whole, "{task} of {units:?} {policies:?}");
        }
    }

    #[test]
    fn every_calendar_agrees_with_the_model() {
        let mut random = Random::new(5);
        for seed in 0..400 {
            let (units, policies) = some(&mut random);
            agree(&units, &policies, seed, 2_000);
        }
    }

    fn unit(ready_ns: u64, budget_ns: u64) -> UnitSlot {
        let end_ns = ready_ns.saturating_add(budget_ns);
        let period = Period::from_ns(1_000).expect("positive");
        let turns = 1;
        UnitSlot {
            ready_ns,
            budget_ns,
            deadline_ns: end_ns,
            start_ns: 0,
            task: 0,
            turn: 0,
            turns,
            period,
        }
    }

    fn refusal(frame_ns: u64, units: &[UnitSlot], tasks: &[OnOverrun]) -> Option<UnitTableError> {
        let frame = Period::from_ns(frame_ns).expect("positive");
        let paced = |unit: &UnitSlot| match Period::ratio(frame_ns, u64::from(unit.turns)) {
            Some(period) => UnitSlot { period, ..*unit },
            None => *unit,
        };
        let units: Vec<UnitSlot> = units.iter().map(paced).collect();
        UnitTable::new(Instant::from_ns(0), frame, &units, tasks).err()
    }

    #[test]
    fn what_cannot_be_is_refused() {
        use UnitTableError as E;
        let tasks = [OnOverrun::Skip];
        assert_eq!(refusal(100, &[], &tasks), Some(E::Units(0)));
        assert_eq!(refusal(100, &[unit(0, 100)], &tasks), None);
        assert_eq!(refusal(100, &[unit(0, 101)], &tasks), Some(E::Unit(0)));
        assert_eq!(refusal(100, &[unit(100, 1)], &tasks), Some(E::Unit(0)));
        assert_eq!(refusal(100, &[unit(u64::MAX, u64::MAX)], &tasks), Some(E::Unit(0)));
        assert_eq!(refusal(100, &[unit(5, 0)], &tasks), Some(E::Unit(0)));
        assert_eq!(refusal(100, &[unit(0, 10), unit(9, 10)], &tasks), Some(E::Overlap(1)));
        assert_eq!(refusal(100, &[unit(0, 10), unit(10, 10)], &tasks), None);
        assert_eq!(refusal(100, &[unit(0, 10)], &[]), Some(E::Unit(0)));
        let third = Period::hz(3).expect("in range");
        let refused = UnitTable::new(Instant::from_ns(0), third, &[unit(0, 10)], &tasks).err();
        assert_eq!(refused, Some(E::Frame));
        for (turn, turns, refused) in [(0, 0, true), (2, 2, true), (1, 2, false), (0, 101, true)] {
            let turned = refusal(100, &[UnitSlot { turn, turns, ..unit(0, 10) }], &tasks);
            assert_eq!(turned, refused.then_some(E::Unit(0)), "{turn} of {turns}");
        }
        let whole = Period::from_ns(100).expect("positive");
        let uneven = [UnitSlot { turns: 2, period: whole, ..unit(0, 10) }];
        let refused = UnitTable::new(Instant::from_ns(0), whole, &uneven, &tasks).err();
        assert_eq!(refused, Some(E::Unit(0)));
        let late = |deadline_ns| [UnitSlot { deadline_ns, ..unit(10, 10) }];
        assert_eq!(refusal(100, &late(19), &tasks), Some(E::Unit(0)));
        assert_eq!(refusal(100, &late(20), &tasks), None);
        assert_eq!(refusal(100, &late(110), &tasks), None);
        assert_eq!(refusal(100, &late(111), &tasks), Some(E::Unit(0)));
        assert_eq!(refusal(100, &[unit(0, 10)], &[OnOverrun::Delay]), Some(E::OnOverrun(0)));
        assert_eq!(refusal(100, &[unit(0, 10)], &[OnOverrun::Burst(2)]), Some(E::OnOverrun(0)));
        assert_eq!(refusal(100, &vec![unit(0, 1); UNITS_MAX + 1], &tasks), Some(E::Units(65_537)));
    }

    #[test]
    fn at_the_ends_of_the_clock_it_waits_for_ever() {
        let frame = Period::from_ns(Period::MAX_NS).expect("positive");
        let units = [UnitSlot { period: frame, ..unit(0, 10) }];
        let epoch = Instant::from_ns(u64::MAX - 5);
        let calendar =
            UnitTable::new(epoch, frame, &units, &[OnOverrun::Skip]).expect("a calendar");
        let mut storage = [TaskProgress::default()];
        assert!(CalendarState::begin(&calendar, &mut [], epoch).is_none());
        let mut state = CalendarState::begin(&calendar, &mut storage, epoch).expect("it fits");
        let Decision::Run(job) = step(&calendar, &mut state, epoch) else { panic!("it is ready") };
        let end = Instant::from_ns(u64::MAX);
        finish(&calendar, &mut state, &job, epoch, end, Flow::Break);
        assert_eq!(step(&calendar, &mut state, end), Decision::Idle(end));
    }
}
