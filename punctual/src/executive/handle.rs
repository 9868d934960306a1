//! An executive from outside: stop it, read what its tasks do.
//!
//! For other threads. Reading disturbs no loop. A change is prepared here and taken by the loop
//! between two jobs, where there is time for it before the next release; what was removed is freed
//! here. A task with a thread of its own waits for its releases itself: no loop learns of it.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use punctual_core::cycle::{Cycle, Flow};
use punctual_core::stats::{Counts, PageKind};
use punctual_core::table::OnOverrun;
use punctual_core::time::Span;
use punctual_engine::calendar::Combination;
use punctual_engine::counting::{CycleCounting, StatsPage, Words, blank};
use punctual_engine::error::ExecutiveError;
use punctual_engine::error::{Error, Kind};
use punctual_engine::handover::Change;
use punctual_engine::monitor::Force;
use punctual_engine::outcome;
use punctual_engine::outcome::Stats;
use punctual_engine::pack::place;
use punctual_engine::periodic::Successor;
use punctual_engine::rt_thread::RtThread;
use punctual_engine::safety::check_demands;
use punctual_engine::task::{Place, Task};
use punctual_os::process;

use super::builder::{check_load, check_thread};
use super::lane::{Body, Parts, Ranked, boxed, nothing};
use super::shared::{Entry, LaneShared, LaneTasks, RunState, Shared, pause};
use super::slot::{LATE_MOST, LateTask, Slot, SlotState};
use super::thread::{Pace, ThreadTask};

/// A handle of an executive, for any thread that the bodies' borrows reach (a scoped one, say);
/// outlives it. What stops it from anywhere is [`StopHandle`](crate::StopHandle).
pub struct Handle<'env> {
    pub(super) shared: Arc<Shared<'env>>,
}

impl Clone for Handle<'_> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl fmt::Debug for Handle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("state", &self.shared.state()).finish_non_exhaustive()
    }
}

impl<'env> Handle<'env> {
    /// Ends the executive: at once where it spins, at its next wake where it sleeps, and where a
    /// task runs when that returns. Stays so. Releases from now on are none of its run:
    /// what was due before and never ran is missed. May be called in a signal handler.
    ///
    /// # Real-time: in loop
    pub fn stop(&self) {
        self.shared.ending.stop();
    }

    /// Whether it is to stop, or has ended, or was dropped.
    ///
    /// # Real-time: in loop
    pub fn stopped(&self) -> bool {
        self.shared.ending.stopped()
    }

    /// Whether its first releases are decided: setup is over, and every thread runs or has ended.
    ///
    /// # Real-time: in loop
    pub fn started(&self) -> bool {
        matches!(self.shared.state(), RunState::Running | RunState::Over)
    }

    /// The most releases of its main loop that fall on one instant, with the tasks that it has now;
    /// an upper bound of it where the periods have a long common multiple.
    ///
    /// # Real-time: reader side
    pub fn peak(&self) -> u64 {
        self.shared.tasks().lanes.first().map_or(0, |lane| lane.plan.peak())
    }

    /// What all tasks did so far, in the order in which they were given; the last
    /// 64 of those that were removed keep what they had.
    ///
    /// # Real-time: reader side
    pub fn stats(&self) -> Vec<Stats> {
        self.shared.stats()
    }

    /// What each unit of the calendar did so far, in the order of the frame. An only unit is as its
    /// task; of several of one task those that ran count, and frames are missed by the task.
    ///
    /// # Real-time: reader side
    pub fn units(&self) -> Vec<Stats> {
        self.shared.units()
    }

    /// What a task did so far.
    ///
    /// # Errors
    /// That it is a task of another executive, or one that was removed before 64 others were.
    ///
    /// # Real-time: reader side
    pub fn task(&self, id: TaskId) -> Result<Stats, Error> {
        Ok(self.entry(id)?.stats())
    }

    /// The counts of a task alone, which takes no walk through its histogram.
    ///
    /// # Errors
    /// That it is a task of another executive.
    ///
    /// # Real-time: reader side
    pub fn counts(&self, id: TaskId) -> Result<Counts, Error> {
        let entry = self.entry(id)?;
        let view = entry.stats.as_ref().and_then(StatsPage::view);
        Ok(view.map(|view| view.counts()).unwrap_or_default())
    }

    /// A lateness that at least `share` of a task's releases did not exceed, at most 0.8 % too
    /// much; `None` before its first release and for a share outside [0, 1].
    ///
    /// # Errors
    /// That it is a task of another executive.
    ///
    /// # Real-time: reader side
    pub fn quantile(&self, id: TaskId, share: f64) -> Result<Option<Span>, Error> {
        let entry = self.entry(id)?;
        let view = entry.stats.as_ref().and_then(StatsPage::view);
        Ok(view.and_then(|view| outcome::quantile(&view, share)))
    }

    /// How the watchdog ended it, if it did.
    ///
    /// # Real-time: reader side
    pub fn forced(&self) -> Option<Force> {
        self.shared.forced()
    }

    /// Where a periodic task of a loop, or one that came with a thread of its own, is now, also
    /// after others came or went; `None` for one that a loop does not run, or that was removed.
    ///
    /// # Errors
    /// That it is a task of another executive.
    ///
    /// # Real-time: reader side
    pub fn placed(&self, id: TaskId) -> Result<Option<Placed>, Error> {
        let Entry { name, removed, .. } = self.entry(id)?;
        if let Some(late) = self.shared.tasks().late.iter().find(|late| late.entry == id.at) {
            let phase = Some(Duration::from_nanos(late.phase_ns));
            return Ok(Some(Placed { name, cpu: late.cpu, phase, rank: None }));
        }
        let calendar = self.shared.rules.calendar.as_ref();
        let units = calendar.map_or(0, |(calendar, _)| calendar.tasks());
        let tasks = self.shared.tasks();
        let lanes = tasks.lanes.iter().zip(&self.shared.lanes).filter(|_| !removed);
        let mut found = lanes.filter_map(|(LaneTasks { plan, .. }, lane)| {
            let rank = (0..plan.tasks()).find(|&rank| plan.name(rank) == name)?;
            Some((units + rank, plan.phase_ns(rank), lane.cpu))
        });
        Ok(found.next().map(|(rank, phase_ns, cpu)| Placed {
            name: name.clone(),
            cpu,
            phase: Some(Duration::from_nanos(phase_ns)),
            rank: Some(rank),
        }))
    }

    pub(super) fn entry(&self, id: TaskId) -> Result<Entry, Error> {
        let at = self.shared.at(id);
        let entry = at.and_then(|at| self.shared.tasks().entries.get(at).cloned());
        entry.ok_or_else(|| ExecutiveError::NoTask.into())
    }

    /// One more task, which the executive's own thread runs, or that of the CPU it is placed on;
    /// with several CPUs where it fits best. One with a thread of its own gets that here, and waits
    /// for its releases itself; there may be 32 of them at a time, and their samples are not
    /// recorded. Returns once that is in effect, with the task's id;
    /// its first release is the first one after that. The others keep every release, their phases,
    /// numbers and counts. In an executive with a calendar its budget must fit between two units.
    ///
    /// # Errors
    /// What [`ExecutiveBuilder::build`](crate::ExecutiveBuilder::build) refuses; that the executive
    /// does not run; that this is called from one of its tasks; that the task's thread cannot be
    /// started. Nothing is changed then.
    ///
    /// # Real-time: setup only
    pub fn add<R: Into<Flow>>(
        &self,
        task: Task,
        body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
    ) -> Result<TaskId, Error> {
        let _one_at_a_time = self.change()?;
        let shared = &*self.shared;
        if !task.has_period() {
            return Err(ExecutiveError::NoPeriod(task.name().to_owned()).into());
        }
        let lanes = shared.tasks().lanes.clone();
        let late: Vec<Task> = shared.tasks().late.iter().map(|of| of.task.clone()).collect();
        let others = lanes.iter().flat_map(|lane| &lane.tasks).chain(&late);
        let all = others.chain([&task]).cloned();
        // Names, and that all tasks have a priority or none, hold over all CPUs.
        shared.rules.periodic(all).allow_overload().check()?;
        let on: Vec<&[Task]> = lanes.iter().map(|lane| &lane.tasks[..]).collect();
        let at = match task.placement().place() {
            Place::Inline if lanes.len() == 1 => 0,
            Place::Inline => place(&task, &on, shared.rules.most),
            Place::Cpu(cpu) => {
                let is = |lane: &LaneShared<'_>| lane.cpu == Some(*cpu);
                let at = shared.lanes.iter().position(is);
                at.ok_or_else(|| Error::from(ExecutiveError::NoLane(task.name().to_owned(), *cpu)))?
            }
            Place::Thread(own) => {
                let own = own.clone();
                return self.add_thread(task, boxed(body), &own);
            }
        };
        if task.overrun_policy() == OnOverrun::Terminate {
            shared.cancels.store(true, Ordering::Relaxed);
        }
        let (name, words) = (task.name().to_owned(), blank(PageKind::Lateness));
        let mut tasks = lanes[at].tasks.clone();
        tasks.push(task);
        self.exchange(at, &lanes[at], tasks, Some((boxed(body), words.clone())))?;
        let entry = Entry { stats: Some(StatsPage::Own(words)), ..Entry::new(name) };
        Ok(shared.id(shared.tasks().entries.push(entry)))
    }

    /// One task less. Returns once that is in effect, with what the task did; its body is dropped
    /// here. A release that it was due for, and that has not begun, does not run and is missed.
    /// Tasks that follow it keep their phases. One with a thread of its own leaves within some
    /// 100 ms, once its body has returned, and its thread ends.
    ///
    /// # Errors
    /// That there is no such task; that it has a process, or a thread since before the executive
    /// ran; that it belongs to the calendar, whose frame is fixed before the first release; that
    /// the executive does not run; that this is called from one of its tasks.
    ///
    /// # Real-time: setup only
    pub fn remove(&self, id: TaskId) -> Result<Stats, Error> {
        let _one_at_a_time = self.change()?;
        let shared = &*self.shared;
        let name = self.entry(id)?.name;
        if self.remove_thread(id.at) {
            return Ok(shared.removed(id.at));
        }
        let lanes = shared.tasks().lanes.clone();
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
        Ok(shared.removed(id.at))
    }

    /// Waits until changes can be made, and holds others off meanwhile.
    fn change(&self) -> Result<std::sync::MutexGuard<'_, ()>, Error> {
        self.shared.ending.check_process()?;
        let tid = process::tid();
        let late = self.shared.threads.iter().filter(|slot| slot.late).map(|slot| &slot.watched);
        let mut all = self.shared.lanes.iter().map(|lane| &lane.watched).chain(late);
        if all.any(|watched| watched.thread() == Some(tid)) {
            return Err(ExecutiveError::FromLoop.into());
        }
        let guard = self.shared.changes.lock().unwrap_or_else(PoisonError::into_inner);
        while self.shared.state() == RunState::Starting {
            pause();
        }
        match self.shared.state() {
            RunState::Running => Ok(guard),
            _ => Err(ExecutiveError::NotRunning.into()),
        }
    }

    /// Other tasks in one loop; of those that are new there is one, with this body.
    fn exchange(
        &self,
        at: usize,
        lane: &LaneTasks,
        tasks: Vec<Task>,
        new: Option<(Body<'env>, Words)>,
    ) -> Result<(), Error> {
        let shared = &*self.shared;
        let Successor { plan, ranks } =
            shared.rules.periodic(tasks.iter().cloned()).build_after(&lane.plan)?;
        let calendar = shared.rules.calendar.as_ref();
        if let Some((calendar, gap)) = calendar {
            Combination::with_gap(calendar, &plan, *gap)?;
        }
        // The calendar's tasks come first, and stay.
        let units = calendar.map_or(0, |(calendar, _)| calendar.tasks());
        let of_units = calendar.iter().flat_map(|(of, _)| (0..units).map(|task| of.name(task)));
        let of_plan = (0..plan.tasks()).map(|rank| plan.name(rank));
        let names: Vec<String> = of_units.chain(of_plan).map(str::to_owned).collect();
        let mut ranked: Vec<_> = names.iter().map(|_| nothing()).collect();
        let mut counting: Vec<Option<CycleCounting>> = names.iter().map(|_| None).collect();
        if let Some((body, words)) = new
            && let Some(rank) = ranks.iter().position(Option::is_none)
        {
            ranked[units + rank] = Ranked::Here(body);
            counting[units + rank] = Some(CycleCounting::on(words, None));
        }
        let periods = (0..plan.tasks()).map(|rank| plan.period(rank));
        let shortest = periods.chain(calendar.map(|(calendar, _)| calendar.frame())).min();
        let bound = shortest.and_then(|period| shared.rules.thread.bound(period));
        let parts = Parts { units, ranked, names, counting, bound };
        let next = Successor { plan: plan.clone(), ranks };
        let change = Change::new(next, shared.epoch(), parts);
        // What was there before is freed here.
        let taken = shared.lanes[at].handover.publish(change);
        taken.map(drop).map_err(|(why, _)| Error::from(Kind::Change(why)))?;
        shared.tasks().lanes[at] = LaneTasks { tasks, plan };
        Ok(())
    }

    /// One more task with a thread of its own; one change at a time.
    pub(super) fn add_thread(
        &self,
        task: Task,
        body: Body<'env>,
        own: &RtThread,
    ) -> Result<TaskId, Error> {
        let shared = &*self.shared;
        let rules = &shared.rules;
        check_thread(&task, own, rules.thread.policy())?;
        let (lanes, late) = {
            let tasks = shared.tasks();
            (tasks.lanes.clone(), tasks.late.clone())
        };
        let main = lanes[0].tasks.iter().chain(late.iter().map(|of| &of.task)).chain([&task]);
        check_load(&rules.thread, main, rules.overload)?;
        let free = |slot: &Slot<'_>| slot.late && matches!(*slot.state(), SlotState::Free);
        let at = shared.threads.iter().position(free);
        let at = at.ok_or_else(|| {
            Error::from(ExecutiveError::LateThreads(task.name().to_owned(), LATE_MOST))
        })?;
        // Its phase and its rank are those that it would have beside the main loop's tasks.
        let beside = rules.periodic(lanes[0].tasks.iter().chain([&task]).cloned()).allow_overload();
        let Successor { plan, .. } = beside.build_after(&lanes[0].plan)?;
        let rank = (0..plan.tasks()).find(|&rank| plan.name(rank) == task.name());
        let phase_ns = rank.map_or(0, |rank| plan.phase_ns(rank));
        let task = task.at(Duration::from_nanos(phase_ns));
        let pace = Pace::Own(Box::new(rules.periodic([task.clone()]).build()?));
        let entry = shared.tasks().entries.next();
        let of = ThreadTask::new(entry, task.clone(), pace, (&rules.thread, rank));
        let (cpu, demand) = (of.cpu, of.demand());
        let others = late.iter().map(|of| of.demand);
        check_demands(
            &shared.demands.iter().copied().chain(others).chain([demand]).collect::<Vec<_>>(),
        )?;
        if task.overrun_policy() == OnOverrun::Terminate {
            shared.cancels.store(true, Ordering::Relaxed);
        }
        let slot = &shared.threads[at];
        slot.watched.allow(rules.thread.bound(task.period()));
        let memory = Some(StatsPage::Own(blank(PageKind::Lateness)));
        shared.tasks().entries.push(Entry { stats: memory, ..Entry::new(task.name().to_owned()) });
        *slot.state() = SlotState::Wanted(Box::new((of, body)));
        shared.starter.ring();
        if let Err(why) = self.await_start(slot) {
            shared.tasks().entries.withdraw(entry);
            return Err(why);
        }
        shared.tasks().late.push(LateTask { slot: at, entry, task, cpu, phase_ns, demand });
        Ok(shared.id(entry))
    }

    /// Waits until a late task runs, or cannot.
    fn await_start(&self, slot: &Slot<'env>) -> Result<(), Error> {
        loop {
            let mut state = slot.state();
            let closed = self.shared.starter.closed.load(Ordering::Acquire)
                || self.shared.state() == RunState::Over;
            match &*state {
                SlotState::Runs | SlotState::Over(_) => return Ok(()),
                SlotState::Starting | SlotState::Refused(_) => {}
                SlotState::Wanted(_) if !closed => {}
                _ => {
                    let why = std::mem::replace(&mut *state, SlotState::Free);
                    drop(state);
                    return Err(match why {
                        SlotState::Failed(why) => why,
                        _ => ExecutiveError::NotRunning.into(),
                    });
                }
            }
            drop(state);
            pause();
        }
    }

    /// One such task less, by its entry; whether there is one. Its body is dropped here.
    pub(super) fn remove_thread(&self, entry: usize) -> bool {
        let shared = &*self.shared;
        let late = shared.tasks().late.iter().find(|of| of.entry == entry).cloned();
        let Some(LateTask { slot, .. }) = late else { return false };
        let slot = &shared.threads[slot];
        slot.leave.store(1, Ordering::Release);
        while matches!(*slot.state(), SlotState::Runs) {
            pause();
        }
        slot.clear();
        shared.tasks().late.retain(|of| of.entry != entry);
        true
    }
}

/// A task of an executive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId {
    /// Of which executive of this process.
    pub(super) executive: u64,
    /// Its number there.
    pub(super) at: usize,
}

/// Where a task of an executive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its name.
    pub name: String,
    /// The CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// From the epoch to its release 0; `None` for one that a device triggers.
    pub phase: Option<Duration>,
    /// Its place in the order of urgency among the tasks of its loop, 0 the first.
    pub rank: Option<usize>,
}
