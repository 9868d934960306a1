//! The executive of a supervisor, in its thread, and who watches it.
//!
//! The loop of many tasks with posts behind its ranks; nothing else is in it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::clock::Clock;
use punctual_core::dispatch::State;
use punctual_core::executive::Ended;
use punctual_core::executive::many::Many;
use punctual_core::page::{Aggregate, Page, PageKind};
use punctual_core::time::{Instant, Span};
use punctual_core::wait::Wait;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;

use super::stop::Stop;
use super::threads::Rounds;
use super::{Ready, Seat};
use crate::clocks::MachineClock;
use crate::guard::{self, Charge};
use crate::posts::Posts;
use crate::session::{Refusal, Thread};
use crate::stage::{GUARD, watchdog_bound};
use crate::watchdog::{self, Charge as Loop, Watched};

/// Looks of the guard, one each 2 ms, from one look at a process's other threads to the next.
const THREADS_EVERY: usize = 50;

/// What the threads of a supervisor share.
#[derive(Debug)]
pub(super) struct Stage<'s> {
    pub(super) stop: Stop<'s>,
    /// Set once nothing is to be guarded any more.
    pub(super) done: AtomicBool,
    pub(super) aside: CpuMask,
    pub(super) end: Instant,
    pub(super) beats: AtomicU64,
    pub(super) watched: Watched,
}

/// What the executive leaves.
#[derive(Debug)]
pub(super) struct Executed<'s> {
    pub(super) ended: Ended,
    pub(super) policy: SchedPolicy,
    pub(super) refused: Vec<Refusal>,
    pub(super) posts: Posts<'s>,
}

impl Stage<'_> {
    /// The guard of the tasks' threads: of those that registered, and of those beside them.
    pub(super) fn guard(&self, seats: &[Seat]) {
        let mut charges: Vec<Charge<'_>> = seats.iter().map(Seat::charge).collect();
        let mut rounds = Rounds::new(seats.iter().map(Seat::watch).collect(), THREADS_EVERY);
        self.above(|| guard::watch(&mut charges, &self.done, || rounds.call()));
    }

    /// The watchdog of the executive.
    pub(super) fn watchdog(&self, bound: Span) {
        let progress = || self.beats.load(Ordering::Relaxed);
        let charge = [Loop { watched: &self.watched, progress, bound }];
        self.above(|| watchdog::watch(&charge, self.stop.flag, &self.done));
    }

    /// Above all loops, and on another CPU where there is one.
    fn above(&self, watch: impl FnOnce()) {
        let _beside_them = affinity::set(0, &self.aside);
        let _session = Thread::enter(None, GUARD);
        watch();
    }

    /// The executive, to its end; then all tasks are told theirs.
    pub(super) fn execute<'p, W: Wait<MachineClock>>(
        &self,
        ready: &'p Ready,
        tasks: Posts<'p>,
        wait: W,
        clock: MachineClock,
    ) -> Executed<'p> {
        let Some(page) = Page::new(ready.page.mapping.words(), PageKind::Lateness) else {
            let (ended, policy, refused) = (Ended::Stopped, SchedPolicy::Other, Vec::new());
            return Executed { ended, policy, refused, posts: tasks };
        };
        let mut starts = vec![None; ready.plan.tasks()];
        let observe = Aggregate::new(page, &mut starts);
        let mut many = Many { clock, wait, tasks, observe };
        let table = ready.plan.table(ready.epoch);
        let mut storage = ready.plan.storage();
        ready.seats.iter().for_each(Seat::touch);
        let session = Thread::enter(ready.cpu, SchedPolicy::Fifo(ready.priority));
        let from = many.clock.now();
        let state = State::begin(&table, storage.lend(), from);
        self.watched.arm(process::tid());
        let ended = state.map_or(Ended::Stopped, |mut state| {
            many.run(&table, &mut state, self.end, self.stop.flag)
        });
        self.watched.disarm();
        let (policy, refused) = (session.policy(), session.refused().to_vec());
        drop(session);
        many.tasks.end();
        Executed { ended, policy, refused, posts: many.tasks }
    }
}

/// How long the executive may post nothing.
pub(super) fn bound(ready: &Ready) -> Span {
    watchdog_bound(&ready.plan).unwrap_or(Span::from_ms(1_000))
}
