//! What a task that waits for its releases itself shares with handles and the monitor; and the
//! slots for those that come while an executive runs.
//!
//! For setup and readers but for the atomic numbers; starts nothing.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use punctual_core::clock::Clock;
use punctual_core::executive::cancel::Token;
use punctual_core::stats::PageKind;
use punctual_core::table::OnOverrun;
use punctual_os::futex;

use super::builder::{Work, check_load, check_thread};
use super::error::ExecutiveError;
use super::handle::{Handle, TaskId};
use super::lane::Body;
use super::run::Run;
use super::shared::{Entry, RunState, Shared, pause};
use super::thread;
use super::thread::{Pace, Released, ThreadTask};
use crate::checks::check_demands;
use crate::counting::{Stats as Memory, blank};
use crate::error::Error;
use crate::monitor::Watched;
use crate::periodic::Successor;
use crate::rt_thread::RtThread;
use crate::safety::Demand;
use crate::task::{Offset, Task};

/// The most tasks with threads of their own that were added while it ran, at one time.
pub(super) const LATE_MOST: usize = 32;

/// What a task that waits for its releases itself shares with handles and the monitor.
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
pub(super) struct Slot<'env> {
    pub(super) watched: Watched,
    pub(super) token: Token,
    /// Not 0 once the task shall leave.
    pub(super) leave: AtomicU64,
    /// Whether it is for tasks that come while the executive runs.
    pub(super) late: bool,
    state: Mutex<SlotState<'env>>,
}

/// Where the task of a slot is in its life.
pub(super) enum SlotState<'env> {
    Free,
    Wanted(Box<(ThreadTask, Body<'env>)>),
    Starting,
    Runs,
    /// It will not run; its thread is about to end.
    Refused(Error),
    /// It did not run, and its thread has ended.
    Failed(Error),
    /// It ran; dropped by whoever clears the slot.
    Over(#[expect(dead_code, reason = "kept until it is dropped")] Body<'env>),
}

/// A task in such a slot.
#[derive(Clone, Debug)]
pub(super) struct LateTask {
    pub(super) slot: usize,
    pub(super) entry: usize,
    pub(super) task: Task,
    pub(super) cpu: Option<u32>,
    pub(super) phase_ns: u64,
    pub(super) demand: Demand,
}

impl fmt::Debug for Slot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("late", &self.late).finish_non_exhaustive()
    }
}

impl<'env> Slot<'env> {
    #[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
    pub(super) fn new(late: bool) -> Self {
        let (watched, token, leave) = (Watched::default(), Token::new(), AtomicU64::new(0));
        Self { watched, token, leave, late, state: Mutex::new(SlotState::Free) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SlotState<'env>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its task is set up, and about to begin.
    pub(super) fn runs(&self) {
        *self.state() = SlotState::Runs;
    }

    /// Its task will not run, says its own thread.
    pub(super) fn refuse(&self, why: Error) {
        *self.state() = SlotState::Refused(why);
    }

    /// Drops what is left in it.
    pub(super) fn clear(&self) {
        let left = std::mem::replace(&mut *self.state(), SlotState::Free);
        drop(left);
        self.leave.store(0, Ordering::Relaxed);
    }

    /// Its thread has ended, and gives the body back.
    pub(super) fn over(&self, body: Body<'env>) {
        let mut state = self.state();
        *state = match std::mem::replace(&mut *state, SlotState::Free) {
            SlotState::Runs => SlotState::Over(body),
            SlotState::Refused(why) => SlotState::Failed(why),
            _ => SlotState::Failed(ExecutiveError::NotRunning.into()),
        };
    }

    /// The task that waits in it to be started.
    pub(super) fn take(&self) -> Option<Box<(ThreadTask, Body<'env>)>> {
        let mut state = self.state();
        if !matches!(*state, SlotState::Wanted(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, SlotState::Starting) {
            SlotState::Wanted(wanted) => Some(wanted),
            _ => None,
        }
    }
}

/// What wakes the thread that starts late tasks, and ends it.
#[derive(Debug, Default)]
pub(super) struct Starter {
    pub(super) bell: AtomicU64,
    pub(super) closed: AtomicBool,
}

impl Starter {
    pub(super) fn ring(&self) {
        self.bell.fetch_add(1, Ordering::Release);
        let _woken = futex::wake(&self.bell, u32::MAX, futex::Scope::Process);
    }

    /// Starts nothing any more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.ring();
    }
}

/// Starts what comes late, until the run is over; returns when all of it has ended.
pub(super) fn start_added<'scope, 'env, C: Clock + Clone + Send>(
    run: &'scope Run<'scope, 'env, C>,
    scope: &'scope Scope<'scope, '_>,
) {
    let Shared { starter, threads, .. } = run.shared;
    let mut all = Vec::new();
    while !starter.closed.load(Ordering::Acquire) {
        let seen = starter.bell.load(Ordering::Acquire);
        for (at, slot) in threads.iter().enumerate() {
            let Some(wanted) = slot.take() else { continue };
            let thread = run.try_start_thread(scope, "punctual-task", move || {
                let (of, body) = *wanted;
                let mut work = Work::Body(body);
                thread::work(run, (at, &of), &mut work, &Released::default());
                if let Work::Body(body) = work {
                    run.shared.threads[at].over(body);
                }
            });
            match thread {
                Ok(thread) => all.push(thread),
                Err(why) => *slot.state() = SlotState::Failed(why),
            }
        }
        // One that is not joined keeps its stack.
        let (ended, runs): (Vec<_>, Vec<_>) =
            all.into_iter().partition(ScopedJoinHandle::is_finished);
        ended.into_iter().for_each(|thread| drop(thread.join()));
        all = runs;
        if !starter.closed.load(Ordering::Acquire) {
            futex::wait(&starter.bell, seen as u32, futex::Scope::Process);
        }
    }
    // What panicked there was caught there.
    all.into_iter().for_each(|thread| drop(thread.join()));
}

impl<'env> Handle<'env> {
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
            Error::from(ExecutiveError::LateThreads(task.name.clone(), LATE_MOST))
        })?;
        // Its phase and its rank are those that it would have beside the main loop's tasks.
        let beside = rules.periodic(lanes[0].tasks.iter().chain([&task]).cloned()).allow_overload();
        let Successor { plan, .. } = beside.build_after(&lanes[0].plan)?;
        let rank = (0..plan.tasks()).find(|&rank| plan.name(rank) == task.name());
        let phase_ns = rank.map_or(0, |rank| plan.phase_ns(rank));
        let task = task.phase(Offset::At(phase_ns));
        let pace = Pace::Own(Box::new(rules.periodic([task.clone()]).build()?));
        let entry = shared.tasks().entries.next();
        let of = ThreadTask::new(entry, task.clone(), pace, (&rules.thread, rank));
        let (cpu, demand) = (of.cpu, of.demand());
        let others = late.iter().map(|of| of.demand);
        check_demands(
            &shared.demands.iter().copied().chain(others).chain([demand]).collect::<Vec<_>>(),
        )?;
        if task.policy == OnOverrun::Terminate {
            shared.cancels.store(true, Ordering::Relaxed);
        }
        let slot = &shared.threads[at];
        slot.watched.allow(rules.thread.bound(task.period));
        let memory = Some(Memory::Own(blank(PageKind::Lateness)));
        shared.tasks().entries.push(Entry { stats: memory, ..Entry::new(task.name.clone()) });
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
