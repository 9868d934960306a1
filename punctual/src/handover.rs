//! Tasks registered and removed while an executive runs: a new plan is made beside the loop, and
//! the loop takes it between two jobs.
//!
//! For whoever runs [`Many`] over a [`Plan`] and wants to change the tasks meanwhile, whatever it
//! keeps with them (bodies, statistics: [`Exchange`]). The publishing thread makes a [`Change`] and
//! waits until the loop has taken it; what was there before comes back to it, and is freed by it.
//! The loop neither allocates nor frees nor waits; it pays one load a turn, and the switch itself
//! (`cargo bench -p punctual --bench switch`).
//!
//! When: at the first moment with nothing to do for as long as the switch may take; after [`LOOK`]
//! in any case, once the task that runs has returned. A loop that idles for long looks every
//! [`LOOK`]. What goes on has exactly the releases that it would have had
//! ([`TableState::follow`](punctual_core::dispatch::TableState::follow)); a new task begins at its
//! first release after the switch; what is removed runs no more, also where it was due.
//!
//! [`crate::Handle`] does all of this for closures. For bodies of one's own:
//!
//! ```
//! use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
//! use punctual::clocks::MachineClock;
//! use punctual_core::executive::many::{Cycle, Dispatch, Flow, Many};
//! use punctual_core::{clock::Clock, time::{Instant, Span}, wait::Sleep};
//! use punctual::handover::{Exchange, Change, Handover, RunningPlan, LoopRun};
//! use punctual::periodic::{Periodic, Period, Task};
//!
//! /// A counter a rank.
//! struct Counts<'c>(Vec<&'c AtomicU64>);
//!
//! impl Dispatch for Counts<'_> {
//!     fn run(&mut self, rank: usize, _: &mut Cycle<'_>) -> Flow {
//!         self.0[rank].fetch_add(1, Ordering::Relaxed);
//!         Flow::Continue
//!     }
//! }
//!
//! /// Those of the next ranks: here the publisher knows them all; what only the loop has is
//! /// swapped from the rank before.
//! impl<'c> Exchange<Counts<'c>, ()> for Vec<&'c AtomicU64> {
//!     fn exchange(&mut self, tasks: &mut Counts<'c>, _: &mut (), _ranks: &[Option<u32>]) {
//!         std::mem::swap(&mut tasks.0, self);
//!     }
//! }
//!
//! let task = |name: &str, hertz| Task::every(name, Period::hz(hertz).expect("in range"));
//! let one = Periodic::new().task(task("steady", 1_000));
//! let (plan, epoch) = (one.build()?, Instant::from_ns(0));
//! let (steady, guest) = (AtomicU64::new(0), AtomicU64::new(0));
//! let (handover, stop, turns) = (Handover::new(), AtomicBool::new(false), AtomicU64::new(0));
//! let mut clock = MachineClock::best();
//! let from = clock.now();
//! let mut running = RunningPlan::new(plan.clone(), epoch, from);
//! std::thread::scope(|scope| {
//!     let looped = scope.spawn(|| {
//!         let tasks = Counts(vec![&steady]);
//!         let mut many = Many { clock, wait: Sleep, tasks, observe: () };
//!         let end = from + Span::from_ms(60_000);
//!         let run = LoopRun { from, end, stop: &stop, turns: &turns };
//!         handover.run(&mut many, &mut running, &run)
//!     });
//!     let next = one.clone().task(task("guest", 500)).build_after(&plan).expect("it fits");
//!     let of = |name: &str| if name == "guest" { &guest } else { &steady };
//!     let ranked = (0..next.plan.tasks()).map(|rank| of(next.plan.name(rank)));
//!     let beside: Vec<&AtomicU64> = ranked.collect();
//!     let mut before = handover.publish(Change::new(next, epoch, beside)).expect("taken");
//!     println!("{} cycles before", before.before().counters(0).map_or(0, |all| all.ran));
//!     while guest.load(Ordering::Relaxed) < 3 {
//!         std::thread::yield_now();
//!     }
//!     stop.store(true, Ordering::Relaxed);
//!     looped.join().expect("no panic");
//! });
//! # Ok::<(), punctual::periodic::BuildError>(())
//! ```
//!
//! [`Many`]: punctual_core::executive::many::Many

mod publish;
mod refused;
mod run;

use std::fmt;

use punctual_core::dispatch::{Counters, Mismatch, TableState};
use punctual_core::time::{Instant, Span};

use crate::periodic::{Plan, PlanStorage, Successor};

pub use publish::{Answer, Handover};
pub use refused::Refused;
pub use run::{LoopRun, RunningUnits};

/// How often a loop looks whether there is a change, at least.
pub const LOOK: Span = Span::from_ms(100);

/// A switch is made where there is as much time before the next release as it may take, ns: for
/// itself and for each task of the new plan. A few times what it takes with warm caches: on a
/// virtual CPU 0.2 µs with one task, 22 ns a task with many (`cargo bench -p punctual --bench
/// switch`, medians of 31).
const SWITCH_NS: u64 = 5_000;
const SWITCH_TASK_NS: u64 = 100;

/// A plan that runs, and where it is in it.
#[derive(Clone, Debug)]
pub struct RunningPlan {
    plan: Plan,
    storage: PlanStorage,
    epoch: Instant,
}

impl RunningPlan {
    /// The plan, of which all releases at or after `from` are to come; its release 0 of phase 0 is
    /// at `epoch`.
    ///
    /// # Real-time: setup only
    pub fn new(plan: Plan, epoch: Instant, from: Instant) -> Self {
        let mut storage = plan.storage();
        // Its own storage is never too small. All of it is touched here.
        drop(TableState::begin(&plan.table(epoch), storage.lend(), from));
        Self { plan, storage, epoch }
    }

    /// The plan.
    ///
    /// # Real-time: setup only
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What the task of this rank did so far.
    ///
    /// # Real-time: setup only
    pub fn counters(&mut self, rank: usize) -> Option<Counters> {
        let state = TableState::resume(&self.plan.table(self.epoch), self.storage.lend())?;
        (rank < self.plan.tasks()).then(|| state.counters(rank))
    }
}

/// What goes with a plan, by rank, and is exchanged with it: the bodies of tasks `D`, and who
/// observes them `O`.
pub trait Exchange<D, O> {
    /// Puts what is new where the loop finds it, and takes away what it had; rank `r` goes on from
    /// `ranks[r]`, and has kept what it needs from there. Must neither allocate nor free.
    ///
    /// # Real-time: in loop
    fn exchange(&mut self, tasks: &mut D, observe: &mut O, ranks: &[Option<u32>]);
}

impl<D, O> Exchange<D, O> for () {
    fn exchange(&mut self, _: &mut D, _: &mut O, _: &[Option<u32>]) {}
}

/// A change: what is to run next, and what goes with it. Once the loop has taken it, it holds
/// what ran before.
pub struct Change<B> {
    running: RunningPlan,
    ranks: Vec<Option<u32>>,
    /// The ranks of before that go on, in their order.
    stay: Vec<u32>,
    refused: Option<Mismatch>,
    /// What goes with the plan.
    pub parts: B,
}

impl<B> fmt::Debug for Change<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}

impl<B> Change<B> {
    /// The change to `next`, which was built after the plan that runs when the loop takes it: the
    /// last one that it took. Its release 0 of phase 0 is at `epoch`, as that of all others.
    ///
    /// # Real-time: setup only
    pub fn new(next: Successor, epoch: Instant, parts: B) -> Box<Self> {
        let Successor { plan, ranks } = next;
        let running = RunningPlan::new(plan, epoch, epoch);
        let mut stay: Vec<u32> = ranks.iter().copied().flatten().collect();
        stay.sort_unstable();
        Box::new(Self { running, ranks, stay, refused: None, parts })
    }

    /// What ran before, once the loop has taken the change.
    ///
    /// # Real-time: setup only
    pub fn before(&mut self) -> &mut RunningPlan {
        &mut self.running
    }

    /// How much time there should be for the switch, ns.
    fn room_ns(&self) -> u64 {
        SWITCH_NS + SWITCH_TASK_NS * self.ranks.len() as u64
    }
}

#[cfg(test)]
mod tests;
