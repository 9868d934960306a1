//! The state that the threads of an executive share with each other and with handles from outside,
//! its changes while it runs, and how it is stopped.
//!
//! Atomics for the loops; locks for setup and readers alone, which no loop waits for. A change is
//! prepared here and taken by the loop between two jobs, where there is time for it before the next
//! release; what was removed is freed here. A task with a thread of its own waits for its releases
//! itself: no loop learns of it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Index, IndexMut};
use std::slice;
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_core::cycle::CancelToken;
use punctual_core::stats::{Counts, PageKind, View};
use punctual_core::table::OnOverrun;
use punctual_core::time::{Instant, Period, Span};
use punctual_engine::budgets::Budgets;
use punctual_engine::calendar::{CalendarPlan, Combination};
use punctual_engine::counting::{CycleCounting, StatsPage, Words, blank};
use punctual_engine::duration::ns;
use punctual_engine::error::{BuildError, Error, ExecutiveError, Kind};
use punctual_engine::handover::{Change, Handover};
use punctual_engine::monitor::{Force, Watched};
use punctual_engine::outcome::Stats;
use punctual_engine::pack::{Placed, place};
use punctual_engine::periodic::{LateTask, Periodic, Plan, Successor};
use punctual_engine::process::SharedMemory;
use punctual_engine::rt_thread::RtThread;
use punctual_engine::safety::{Caution, Demand, check_demands};
use punctual_engine::task::{Place, Task};
use punctual_os::process;

use super::bodies::Parts;
use super::ending::Ending;
use super::idle::IdleCounts;
use super::startup::pause;
use super::thread::{ReleasedBy, Starter, ThreadSlot, ThreadTask};
use super::work::Body;

/// The most tasks with threads of their own that were added while it ran, at one time.
pub(super) const ADDED_MAX: usize = 32;

/// The period that the wait of a loop without tasks adapts to.
pub(super) const IDLE: Period = match Period::from_ns(100_000_000) {
    Some(period) => period,
    None => panic!(),
};

/// Executives that this process built so far.
static EXECUTIVES: AtomicU64 = AtomicU64::new(0);

/// The state of an executive's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunState {
    Built,
    Starting,
    Running,
    Over,
}

/// One loop of an executive, as others see it.
#[derive(Debug)]
pub(super) struct LaneShared<'env> {
    cpu: Option<u32>,
    pub(super) handover: Handover<Parts<'env>>,
    pub(super) token: CancelToken,
    pub(super) watched: Watched,
}

impl LaneShared<'_> {
    /// A loop on this CPU, or on any.
    pub(super) fn new(cpu: Option<u32>) -> Self {
        let (handover, token, watched) = (Handover::new(), CancelToken::new(), Watched::default());
        Self { cpu, handover, token, watched }
    }
}

/// The periodic tasks of one loop as they are now.
#[derive(Clone, Debug)]
pub(super) struct LaneTasks {
    tasks: Vec<Task>,
    plan: Plan,
}

impl LaneTasks {
    /// These tasks by this plan.
    pub(super) fn new(tasks: Vec<Task>, plan: Plan) -> Self {
        Self { tasks, plan }
    }

    /// True where one of them may have to be cancelled.
    pub(super) fn cancels(&self) -> bool {
        self.tasks.iter().any(|task| task.overrun_policy() == OnOverrun::Terminate)
    }
}

/// A task with a thread of its own that was added while the executive ran.
#[derive(Clone, Debug)]
struct AddedTask {
    slot: usize,
    entry: usize,
    task: Task,
    demand: Demand,
}

/// What an executive's loops, threads, units and processes take of their CPUs, as it was built.
#[derive(Debug)]
pub(super) struct CpuUse {
    /// The shares that they take at most.
    pub(super) demands: Vec<Demand>,
    /// The budgets of all but the tasks of its loops, which may change.
    pub(super) budgets: Budgets,
}

/// All tasks.
#[derive(Debug)]
struct AllTasks {
    entries: Entries,
    lanes: Vec<LaneTasks>,
    added: Vec<AddedTask>,
}

/// The rules that hold for all changes of an executive.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) thread: RtThread,
    pub(super) overload: bool,
    /// The first of its CPUs, on which tasks go that name none.
    pub(super) own_cpus: usize,
    pub(super) most: f64,
    pub(super) tick: Option<Duration>,
    /// The calendar, and the time before each unit in which nothing else runs.
    pub(super) calendar: Option<(Arc<CalendarPlan>, Span)>,
}

impl Rules {
    /// The builder of one loop's table.
    pub(super) fn periodic(&self, tasks: impl IntoIterator<Item = Task>) -> Periodic {
        let periodic = tasks.into_iter().fold(Periodic::new(), Periodic::task);
        let periodic = match self.tick {
            Some(tick) => periodic.tick_ns(ns(tick)),
            None => periodic,
        };
        if self.overload { periodic.allow_overload() } else { periodic }
    }

    /// Checks that these budgets fit on their CPUs, with those of the tasks of loops, each on its
    /// CPU.
    pub(super) fn check_budgets<'t>(
        &self,
        mut budgets: Budgets,
        loops: impl Iterator<Item = (Option<u32>, &'t LaneTasks)>,
    ) -> Result<(), Error> {
        if self.overload {
            return Ok(());
        }
        for (cpu, lane) in loops {
            let own = lane.tasks.iter().filter(|task| !task.is_remote());
            own.for_each(|task| budgets.add(task, cpu));
        }
        Ok(budgets.check()?)
    }

    /// Warnings about the tasks that may be late in `plan` and were not so `before`; refuses a new
    /// one where no phases help and the thread is strict.
    fn late(&self, plan: &Plan, before: &Plan) -> Result<Vec<String>, Error> {
        let known = before.late_tasks();
        let late = plan.late_tasks().into_iter().filter(|late| !known.contains(late));
        let late: Vec<LateTask> = late.collect();
        let warnings = late.iter().map(LateTask::to_string).collect();
        let refuses = self.thread.is_strict() && !self.overload;
        match late.into_iter().find(|late| refuses && late.is_certain()) {
            Some(late) => Err(BuildError::from(&late).into()),
            None => Ok(warnings),
        }
    }

    /// The number of tasks in the calendar.
    fn units(&self) -> usize {
        self.calendar.as_ref().map_or(0, |(calendar, _)| calendar.tasks())
    }
}

/// The state that all threads and handles of an executive share.
#[derive(Debug)]
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
pub(super) struct Shared<'env> {
    /// The number of this executive in its process, which tells ids of tasks apart.
    number: u64,
    pub(super) ending: Arc<Ending>,
    pub(super) lanes: Vec<LaneShared<'env>>,
    /// The slots of the tasks in threads of their own that wait for themselves, or for a device;
    /// then those of tasks that come while it runs.
    pub(super) threads: Vec<ThreadSlot<'env>>,
    pub(super) starter: Starter,
    cpu_use: CpuUse,
    pub(super) idle: IdleCounts,
    /// True where there is a task that may have to be cancelled.
    pub(super) cancels: AtomicBool,
    pub(super) rules: Rules,
    /// Held by the one call at a time that changes the tasks.
    changes: Mutex<()>,
    tasks: Mutex<AllTasks>,
    /// Warnings about tasks that came while it ran.
    warnings: Mutex<Vec<String>>,
    state: AtomicU8,
    epoch_ns: AtomicU64,
}

impl<'env> Shared<'env> {
    #[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
    pub(super) fn new(
        lanes: Vec<LaneShared<'env>>,
        threads: usize,
        rules: Rules,
        (entries, lane_tasks): (Vec<Entry>, Vec<LaneTasks>),
        (cancels, cpu_use): (bool, CpuUse),
    ) -> Self {
        let (entries, added) = (Entries::new(entries), Vec::new());
        let tasks = AllTasks { entries, lanes: lane_tasks, added };
        Self {
            number: EXECUTIVES.fetch_add(1, Ordering::Relaxed),
            ending: Arc::default(),
            lanes,
            threads: (0..threads + ADDED_MAX).map(|at| ThreadSlot::new(at >= threads)).collect(),
            starter: Starter::default(),
            cpu_use,
            idle: IdleCounts::default(),
            cancels: AtomicBool::new(cancels),
            rules,
            changes: Mutex::new(()),
            tasks: Mutex::new(tasks),
            warnings: Mutex::default(),
            state: AtomicU8::new(RunState::Built as u8),
            epoch_ns: AtomicU64::new(0),
        }
    }

    /// The id of the task of this number.
    fn id(&self, at: usize) -> TaskId {
        TaskId { executive: self.number, at }
    }

    /// The ids of all tasks.
    pub(super) fn ids(&self) -> Vec<TaskId> {
        (0..self.tasks().entries.next()).map(|at| self.id(at)).collect()
    }

    /// The tasks as they are. Held for moments only.
    fn tasks(&self) -> MutexGuard<'_, AllTasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task of this id; an error for one of another executive, or one that is forgotten.
    fn entry(&self, id: TaskId) -> Result<Entry, Error> {
        let at = (id.executive == self.number).then_some(id.at);
        let entry = at.and_then(|at| self.tasks().entries.get(at).cloned());
        entry.ok_or_else(|| ExecutiveError::NoTask.into())
    }

    /// The task of this name that is there.
    pub(super) fn task_named(&self, name: &str) -> Option<TaskId> {
        let tasks = self.tasks();
        let mut entries = tasks.entries.by_number.iter();
        let found = entries.find(|(_, entry)| entry.name == name && !entry.removed);
        found.map(|(number, _)| self.id(*number))
    }

    /// The statistics of a task as they are now.
    pub(super) fn task(&self, id: TaskId) -> Result<Stats, Error> {
        Ok(self.entry(id)?.stats())
    }

    /// The counts of a task as they are now.
    pub(super) fn counts(&self, id: TaskId) -> Result<Counts, Error> {
        Ok(self.entry(id)?.page.map(|page| page.counts()).unwrap_or_default())
    }

    /// A quantile of a task's lateness as it is now.
    pub(super) fn quantile(&self, id: TaskId, share: f64) -> Result<Option<Span>, Error> {
        Ok(self.entry(id)?.page.and_then(|page| page.quantile(share)))
    }

    /// The observer of a task's cycles, and of those of its units where it has several; samples go
    /// to `ring`, where there is one. `None` for a process.
    pub(super) fn counting(
        &self,
        entry: usize,
        epoch: Instant,
        ring: Option<Words>,
    ) -> Option<CycleCounting> {
        let Entry { page, units, .. } = self.tasks().entries[entry].clone();
        let Some(StatsPage::Own(page)) = page else { return None };
        let counting = CycleCounting::on(page, ring);
        Some(match &self.rules.calendar {
            Some((calendar, _)) if units.len() > 1 => {
                let pages = units.into_iter().map(|unit| (unit.ready_ns, unit.page));
                counting.by_unit(epoch, calendar.frame(), pages.collect())
            }
            _ => counting,
        })
    }

    /// Gives this page to the task of this name, one of those with these numbers, which are
    /// processes.
    pub(super) fn put_page(&self, entries: &[usize], name: &str, page: Arc<SharedMemory>) {
        let mut tasks = self.tasks();
        if let Some(&at) = entries.iter().find(|&&at| tasks.entries[at].name == name) {
            tasks.entries[at].page = Some(StatsPage::Shared(page));
        }
    }

    /// Takes note of warnings about a task that was added.
    fn warn(&self, warnings: Vec<String>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
    }

    /// The warnings about tasks that were added.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True while tasks with threads of their own are there that were added.
    pub(super) fn has_added(&self) -> bool {
        !self.tasks().added.is_empty()
    }

    /// The most releases of its main loop that fall on one instant, as it is now.
    pub(super) fn peak(&self) -> u64 {
        self.tasks().lanes.first().map_or(0, |lane| lane.plan.peak())
    }

    /// The tasks' statistics as they are now, in the order in which they were given.
    pub(super) fn stats(&self) -> Vec<Stats> {
        let entries: Vec<Entry> = self.tasks().entries.iter().cloned().collect();
        entries.iter().map(Entry::stats).collect()
    }

    /// Marks a task as removed, and returns its statistics.
    fn removed(&self, at: usize) -> Stats {
        let entry = {
            let entries = &mut self.tasks().entries;
            entries.remove(at);
            entries[at].clone()
        };
        entry.stats()
    }

    /// The statistics of each unit of the calendar, in the order of the frame.
    pub(super) fn units(&self) -> Vec<Stats> {
        let entries: Vec<Entry> = self.tasks().entries.iter().cloned().collect();
        let mut units: Vec<_> = entries.iter().flat_map(|entry| &entry.units).collect();
        units.sort_by_key(|unit| unit.ready_ns);
        units
            .iter()
            .map(|unit| Stats::of(&unit.name, View::open(&unit.page).ok().as_ref()))
            .collect()
    }

    /// The way in which the watchdog ended it; `None` where it did not.
    pub(super) fn forced(&self) -> Option<Force> {
        let loops = self.lanes.iter().map(|lane| &lane.watched);
        loops.chain(self.threads.iter().map(ThreadSlot::watched)).find_map(Watched::ended)
    }

    /// The state of its life.
    pub(super) fn state(&self) -> RunState {
        match self.state.load(Ordering::Acquire) {
            0 => RunState::Built,
            1 => RunState::Starting,
            2 => RunState::Running,
            _ => RunState::Over,
        }
    }

    /// Sets the state of its life.
    pub(super) fn enter(&self, state: RunState) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Takes the instant of release 0 of phase 0: all run.
    pub(super) fn begin(&self, epoch: Instant) {
        self.epoch_ns.store(epoch.as_ns(), Ordering::Relaxed);
        self.enter(RunState::Running);
    }

    /// The instant of release 0 of phase 0.
    pub(super) fn epoch(&self) -> Instant {
        Instant::from_ns(self.epoch_ns.load(Ordering::Relaxed))
    }

    /// The place of a task now, see [`Handle::placed`](super::Handle::placed).
    pub(super) fn placed(&self, id: TaskId) -> Result<Option<Placed>, Error> {
        let Entry { name, removed, beside, .. } = self.entry(id)?;
        if removed || beside.is_some() {
            return Ok(beside.filter(|_| !removed));
        }
        let tasks = self.tasks();
        let units = self.rules.units();
        let lanes = tasks.lanes.iter().zip(&self.lanes);
        let mut found = lanes.filter_map(|(LaneTasks { plan, .. }, lane)| {
            let rank = (0..plan.tasks()).find(|&rank| plan.name(rank) == name)?;
            Some(Placed::in_table(plan, rank, units, lane.cpu))
        });
        Ok(found.next())
    }

    /// Adds a task while it runs, see [`Handle::add`](super::Handle::add).
    pub(super) fn add(&self, task: Task, body: Body<'env>) -> Result<TaskId, Error> {
        let _one_at_a_time = self.change()?;
        if !task.has_period() {
            return Err(ExecutiveError::NoPeriod(task.name().to_owned()).into());
        }
        let lanes = self.tasks().lanes.clone();
        let added: Vec<Task> = self.tasks().added.iter().map(|added| added.task.clone()).collect();
        let before = lanes.iter().flat_map(|lane| &lane.tasks).chain(&added);
        // Names, and that all tasks have a priority or none, hold over all CPUs.
        self.rules.periodic(before.chain([&task]).cloned()).allow_overload().check()?;
        let on: Vec<&[Task]> = lanes.iter().map(|lane| &lane.tasks[..]).collect();
        let at = match task.placement().place() {
            Place::Inline => place(slice::from_ref(&task), &on, &self.taken(), self.rules.most),
            Place::Cpu(cpu) => {
                let is = |lane: &LaneShared<'_>| lane.cpu == Some(*cpu);
                let at = self.lanes.iter().position(is);
                at.ok_or_else(|| Error::from(ExecutiveError::NoLane(task.name().to_owned(), *cpu)))?
            }
            Place::Thread(own) => {
                let own = own.clone();
                return self.add_thread(task, body, &own);
            }
        };
        self.cancels_with(&task);
        let (name, page) = (task.name().to_owned(), blank(PageKind::Lateness));
        let mut tasks = lanes[at].tasks.clone();
        tasks.push(task);
        self.exchange(at, &lanes[at], tasks, Some((body, page.clone())))?;
        let entry = Entry { page: Some(StatsPage::Own(page)), ..Entry::new(name) };
        Ok(self.id(self.tasks().entries.push(entry)))
    }

    /// Removes a task while it runs, see [`Handle::remove`](super::Handle::remove).
    pub(super) fn remove(&self, id: TaskId) -> Result<Stats, Error> {
        let _one_at_a_time = self.change()?;
        let name = self.entry(id)?.name;
        if self.remove_thread(id.at) {
            return Ok(self.removed(id.at));
        }
        let lanes = self.tasks().lanes.clone();
        let is = |task: &Task| {
            task.name() == name && matches!(task.placement().place(), Place::Inline | Place::Cpu(_))
        };
        let at = lanes.iter().position(|lane| lane.tasks.iter().any(is));
        let at = match at {
            _ if self.entry(id)?.removed => return Err(ExecutiveError::NoTask.into()),
            None => return Err(ExecutiveError::Stays(name).into()),
            Some(at) => at,
        };
        let mut tasks = lanes[at].tasks.clone();
        tasks.retain(|task| !is(task));
        self.exchange(at, &lanes[at], tasks, None)?;
        Ok(self.removed(id.at))
    }

    /// Waits until changes can be made, and holds others off meanwhile.
    fn change(&self) -> Result<MutexGuard<'_, ()>, Error> {
        self.ending.check_process()?;
        let tid = process::tid();
        if self.lanes.iter().any(|lane| lane.watched.thread() == Some(tid))
            || self.threads.iter().any(|slot| slot.is_run_by(tid))
        {
            return Err(ExecutiveError::FromLoop.into());
        }
        let turn = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        // A start that fails stops all, and never begins.
        while self.state() == RunState::Starting && !self.ending.stopped() {
            pause();
        }
        match self.state() {
            RunState::Running => Ok(turn),
            _ => Err(ExecutiveError::NotRunning.into()),
        }
    }

    /// The budgets of all but the tasks of its loops, with those that were added.
    fn beside_loops(&self) -> Budgets {
        let mut budgets = self.cpu_use.budgets.clone();
        for AddedTask { task, .. } in &self.tasks().added {
            budgets.add(task, task.placement().thread_cpu());
        }
        budgets
    }

    /// The shares of the CPUs of inline tasks that others than its loops take.
    fn taken(&self) -> Vec<f64> {
        let budgets = self.beside_loops();
        let lanes = self.lanes[..self.rules.own_cpus].iter();
        lanes.map(|lane| budgets.load_on(lane.cpu)).collect()
    }

    /// Checks that the budgets of all tasks fit on their CPUs, with these in the loops, and one
    /// more in a thread of its own.
    fn check_budgets<'t>(
        &self,
        lanes: impl Iterator<Item = &'t LaneTasks>,
        more: Option<&Task>,
    ) -> Result<(), Error> {
        let mut budgets = self.beside_loops();
        more.into_iter().for_each(|task| budgets.add(task, task.placement().thread_cpu()));
        self.rules.check_budgets(budgets, self.lanes.iter().map(|lane| lane.cpu).zip(lanes))
    }

    /// Has the monitor look at tokens from now on, where this task may have to be cancelled.
    fn cancels_with(&self, task: &Task) {
        if task.overrun_policy() == OnOverrun::Terminate {
            self.cancels.store(true, Ordering::Relaxed);
        }
    }

    /// Puts other tasks in one loop; of those that are new there is one, with this body and page.
    fn exchange(
        &self,
        at: usize,
        lane: &LaneTasks,
        tasks: Vec<Task>,
        new: Option<(Body<'env>, Words)>,
    ) -> Result<(), Error> {
        let next = self.rules.periodic(tasks.iter().cloned()).build_after(&lane.plan);
        let Successor { plan, ranks } = next.map_err(|why| why.on_cpu(self.lanes[at].cpu))?;
        let mut warnings = Vec::new();
        if new.is_some() {
            let mut lanes = self.tasks().lanes.clone();
            lanes[at].tasks.clone_from(&tasks);
            self.check_budgets(lanes.iter(), None)?;
            warnings = self.rules.late(&plan, &lane.plan)?;
        }
        let calendar = self.rules.calendar.as_ref();
        if let Some((calendar, gap)) = calendar {
            Combination::with_gap(calendar, &plan, *gap)
                .map_err(|why| why.on_cpu(self.lanes[at].cpu))?;
        }
        // The calendar's tasks come first, and stay.
        let units = self.rules.units();
        let unit_names =
            calendar.iter().flat_map(|(calendar, _)| (0..units).map(|task| calendar.name(task)));
        let plan_names = (0..plan.tasks()).map(|rank| plan.name(rank));
        let names = unit_names.chain(plan_names).map(str::to_owned).collect();
        let periods = (0..plan.tasks()).map(|rank| plan.period(rank));
        let shortest = periods.chain(calendar.map(|(calendar, _)| calendar.frame())).min();
        let bound = shortest.and_then(|period| self.rules.thread.bound(period));
        let mut parts = Parts::new(units, names, bound);
        if let Some((body, page)) = new
            && let Some(rank) = ranks.iter().position(Option::is_none)
        {
            parts.begin(rank, body, page);
        }
        let next = Successor { plan: plan.clone(), ranks };
        let change = Change::new(next, self.epoch(), parts);
        // What was there before is freed here.
        let taken = self.lanes[at].handover.publish(change);
        taken.map(drop).map_err(|(why, _)| Error::from(Kind::Change(why)))?;
        self.warn(warnings);
        self.tasks().lanes[at] = LaneTasks { tasks, plan };
        Ok(())
    }

    /// Adds a task with a thread of its own; one change at a time.
    fn add_thread(&self, task: Task, body: Body<'env>, own: &RtThread) -> Result<TaskId, Error> {
        let rules = &self.rules;
        ThreadTask::check(&task, own, rules.thread.policy())?;
        let (lanes, added) = {
            let tasks = self.tasks();
            (tasks.lanes.clone(), tasks.added.clone())
        };
        self.check_budgets(lanes.iter(), Some(&task))?;
        let at = self.threads.iter().position(ThreadSlot::is_free).ok_or_else(|| {
            Error::from(ExecutiveError::AddedThreads(task.name().to_owned(), ADDED_MAX))
        })?;
        // Its phase and its rank are those that it would have beside the main loop's tasks.
        let beside = rules.periodic(lanes[0].tasks.iter().chain([&task]).cloned()).allow_overload();
        let Successor { plan, .. } = beside.build_after(&lanes[0].plan)?;
        let rank = (0..plan.tasks()).find(|&rank| plan.name(rank) == task.name());
        let phase_ns = rank.map_or(0, |rank| plan.phase_ns(rank));
        let task = task.at(Duration::from_nanos(phase_ns));
        let released_by = ReleasedBy::Itself(Box::new(rules.periodic([task.clone()]).build()?));
        let entry = self.tasks().entries.next();
        let thread = ThreadTask::new(entry, task.clone(), released_by, (&rules.thread, rank));
        let (beside, demand) = (Some(thread.placed()), thread.demand());
        let demands =
            self.cpu_use.demands.iter().copied().chain(added.iter().map(|added| added.demand));
        let demands: Vec<Demand> = demands.collect();
        let known = check_demands(&demands).unwrap_or_default();
        let cautions = check_demands(&[&demands[..], &[demand]].concat())?;
        let cautions = cautions.iter().filter(|caution| !known.contains(caution));
        let cautions = cautions.map(Caution::to_string).collect();
        self.cancels_with(&task);
        let page = Some(StatsPage::Own(blank(PageKind::Lateness)));
        self.tasks().entries.push(Entry { page, beside, ..Entry::new(task.name().to_owned()) });
        let bound = rules.thread.bound(task.period());
        let is_over = || self.state() == RunState::Over;
        if let Err(why) = self.threads[at].start((thread, body), bound, &self.starter, is_over) {
            self.tasks().entries.withdraw(entry);
            return Err(why);
        }
        self.warn(cautions);
        self.tasks().added.push(AddedTask { slot: at, entry, task, demand });
        Ok(self.id(entry))
    }

    /// Removes an added task with a thread of its own, by its entry; false where there is none. Its
    /// body is dropped here.
    fn remove_thread(&self, entry: usize) -> bool {
        let slot =
            self.tasks().added.iter().find(|added| added.entry == entry).map(|added| added.slot);
        let Some(slot) = slot else { return false };
        self.threads[slot].remove();
        self.tasks().added.retain(|added| added.entry != entry);
        true
    }
}

/// Identifies a task of an executive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId {
    /// The number of the executive in this process.
    executive: u64,
    /// Its number there.
    at: usize,
}

/// Ends what an executive shares when it is dropped: a change that waits is refused, and all
/// handles say that it is over.
#[derive(Debug)]
pub(super) struct Closing<'env>(pub(super) Arc<Shared<'env>>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.ending.stop();
        self.0.enter(RunState::Over);
        self.0.lanes.iter().for_each(|lane| lane.handover.close());
    }
}

/// Removed tasks that are kept: 34 KiB each.
const KEPT: usize = 64;

/// A task that is or was there.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    name: String,
    /// The page of its statistics; none for a process whose memory is not there yet.
    page: Option<StatsPage>,
    removed: bool,
    /// The place of a task in a thread of its own.
    pub(super) beside: Option<Placed>,
    /// The units of a calendar's task; the page of an only one is the task's.
    units: Vec<UnitEntry>,
}

/// A unit of a calendar's task.
#[derive(Clone, Debug)]
struct UnitEntry {
    name: String,
    /// The instant in the frame at which it is ready, ns.
    ready_ns: u64,
    page: Words,
}

impl Entry {
    /// A task of this name, without statistics yet.
    pub(super) fn new(name: String) -> Self {
        Self { name, page: None, removed: false, beside: None, units: Vec::new() }
    }

    /// A calendar's task: with a page for each of its units, of these names and instants at which
    /// they are ready in the frame, ns.
    pub(super) fn with_units(self, units: impl Iterator<Item = (String, u64)>) -> Self {
        let unit = |(name, ready_ns)| {
            let page = blank(PageKind::Lateness);
            UnitEntry { name, ready_ns, page }
        };
        Self { units: units.map(unit).collect(), ..self }
    }

    /// Makes the memory of its statistics.
    pub(super) fn make_page(&mut self, kind: PageKind) {
        let page = match &self.units[..] {
            [only] => only.page.clone(),
            _ => blank(kind),
        };
        self.page = Some(StatsPage::Own(page));
    }

    fn stats(&self) -> Stats {
        let stats = |page: &StatsPage| page.stats(&self.name);
        self.page.as_ref().map_or_else(|| Stats::of(&self.name, None), stats)
    }
}

/// All tasks that are known.
#[derive(Debug)]
struct Entries {
    by_number: BTreeMap<usize, Entry>,
    next: usize,
    removed: VecDeque<usize>,
}

impl Entries {
    /// Those that an executive begins with, numbered in their order.
    fn new(entries: Vec<Entry>) -> Self {
        let next = entries.len();
        let by_number = entries.into_iter().enumerate().collect();
        Self { by_number, next, removed: VecDeque::new() }
    }

    /// One more, and its number.
    fn push(&mut self, entry: Entry) -> usize {
        let number = self.next;
        self.next += 1;
        self.by_number.insert(number, entry);
        number
    }

    /// The number that the next one gets.
    fn next(&self) -> usize {
        self.next
    }

    /// Takes back one that never ran.
    fn withdraw(&mut self, number: usize) {
        self.by_number.remove(&number);
    }

    /// Marks one as removed, and forgets the one that was removed [`KEPT`] before it.
    fn remove(&mut self, number: usize) {
        self[number].removed = true;
        self.removed.push_back(number);
        if self.removed.len() > KEPT
            && let Some(oldest) = self.removed.pop_front()
        {
            self.by_number.remove(&oldest);
        }
    }

    /// The one of this number, unless it is forgotten.
    fn get(&self, number: usize) -> Option<&Entry> {
        self.by_number.get(&number)
    }

    /// All, by number.
    fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.by_number.values()
    }
}

impl Index<usize> for Entries {
    type Output = Entry;

    /// # Panics
    /// Where there is none of this number.
    fn index(&self, number: usize) -> &Entry {
        &self.by_number[&number]
    }
}

impl IndexMut<usize> for Entries {
    fn index_mut(&mut self, number: usize) -> &mut Entry {
        self.by_number.get_mut(&number).expect("the number of a task that is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_were_removed_stay_and_no_number_comes_twice() {
        let mut entries = Entries::new(vec![Entry::new("a".to_owned())]);
        for round in 0..3 * KEPT {
            let number = entries.push(Entry::new(format!("{round}")));
            assert_eq!(number, round + 1);
            entries.remove(number);
            assert!(entries.get(number).is_some_and(|entry| entry.removed));
        }
        assert_eq!(entries.iter().count(), 1 + KEPT);
        assert!(entries.get(0).is_some() && entries.get(1).is_none());
        assert_eq!(entries.next(), 3 * KEPT + 1);
        let never = entries.push(Entry::new("never ran".to_owned()));
        entries.withdraw(never);
        assert!(entries.get(never).is_none());
    }
}
