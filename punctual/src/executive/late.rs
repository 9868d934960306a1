//! Tasks with threads of their own that come while an executive runs, and go.
//!
//! For other threads, and for the one thread of the run that starts them. Such a task waits for its
//! releases itself, so that no loop learns of it; its slot is made with the executive. Nothing here
//! runs in a loop.

use std::sync::atomic::Ordering;
use std::thread::{Scope, ScopedJoinHandle};

use punctual_core::clock::Clock;
use punctual_core::stats::PageKind;
use punctual_core::table::OnOverrun;
use punctual_os::futex;

use super::body::Body;
use super::entries::Entry;
use super::error::ExecutiveError;
use super::handle::Handle;
use super::id::TaskId;
use super::pace::Pace;
use super::released::Released;
use super::run::Run;
use super::shared::{RunState, Shared, pause};
use super::slot::{LATE_MOST, LateTask, Slot, SlotState};
use super::sorted::{check_load, check_thread};
use super::thread;
use super::thread_task::ThreadTask;
use super::work::Work;
use crate::checks::check_demands;
use crate::counting::{Stats as Memory, blank};
use crate::error::Error;
use crate::periodic::Successor;
use crate::rt_thread::RtThread;
use crate::task::{Offset, Task};

/// Starts what comes late, until the run is over; returns when all of it has ended.
pub(super) fn start<'scope, 'env, C: Clock + Clone + Send>(
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
