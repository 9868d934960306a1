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
use punctual_core::cycle::CancelToken;
use punctual_engine::error::Error;
use punctual_engine::error::ExecutiveError;
use punctual_engine::monitor::Watched;
use punctual_engine::safety::Demand;
use punctual_engine::task::Task;
use punctual_os::futex;

use super::builder::Work;
use super::lane::Body;
use super::run::Run;
use super::shared::Shared;
use super::thread;
use super::thread::{Released, ThreadTask};

/// The most tasks with threads of their own that were added while it ran, at one time.
pub(super) const LATE_MOST: usize = 32;

/// What a task that waits for its releases itself shares with handles and the monitor.
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
pub(super) struct Slot<'env> {
    pub(super) watched: Watched,
    pub(super) token: CancelToken,
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
        let (watched, token, leave) = (Watched::default(), CancelToken::new(), AtomicU64::new(0));
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
