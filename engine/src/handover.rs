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
//! `punctual::Handle` does all of this for closures. For bodies of one's own:
//!
//! ```
//! use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
//! use punctual_engine::clocks::MachineClock;
//! use punctual_core::clock::Clock;
//! use punctual_core::cycle::{Cycle, Flow};
//! use punctual_core::executive::{Dispatch, Many};
//! use punctual_core::time::{Instant, Span};
//! use punctual_core::wait::Sleep;
//! use punctual_engine::handover::{Exchange, Change, Handover, RunningPlan, LoopRun};
//! use punctual_engine::periodic::{Periodic, Period, Task};
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
//!     let runner = scope.spawn(|| {
//!         let tasks = Counts(vec![&steady]);
//!         let mut many = Many { clock, wait: Sleep, tasks, observe: () };
//!         let end = from + Span::from_ms(60_000);
//!         let run = LoopRun { from, end, stop: &stop, turns: &turns };
//!         handover.run(&mut many, &mut running, &run)
//!     });
//!     let next = one.clone().task(task("guest", 500)).build_after(&plan).expect("it fits");
//!     let counter = |name: &str| if name == "guest" { &guest } else { &steady };
//!     let ranked = (0..next.plan.tasks()).map(|rank| counter(next.plan.name(rank)));
//!     let beside: Vec<&AtomicU64> = ranked.collect();
//!     let mut before = handover.publish(Change::new(next, epoch, beside)).expect("taken");
//!     println!("{} cycles before", before.before().counters(0).map_or(0, |page| page.ran));
//!     while guest.load(Ordering::Relaxed) < 3 {
//!         std::thread::yield_now();
//!     }
//!     stop.store(true, Ordering::Relaxed);
//!     runner.join().expect("no panic");
//! });
//! # Ok::<(), punctual_engine::error::BuildError>(())
//! ```
//!
//! [`Many`]: punctual_core::executive::Many

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[expect(
    clippy::disallowed_types,
    reason = "the flag says whose it is: no thread ever waits for it"
)]
use std::sync::{Mutex, PoisonError};

use punctual_core::calendar::{CalendarPosition, CalendarState, TaskProgress, UnitTable};
use punctual_core::clock::Clock;
use punctual_core::cycle::{Ended, Observe};
use punctual_core::dispatch::{Before, Counters, Mismatch, TableState};
use punctual_core::executive::{Dispatch, Many, Schedule};
use punctual_core::releases::Releases;
use punctual_core::stop::StopRequest;
use punctual_core::table::Table;
use punctual_core::time::{Instant, Span};
use punctual_core::wait::Wait;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use crate::calendar::CalendarPlan;
use crate::error::ChangeRefused;
use crate::periodic::{Plan, PlanStorage, Successor};

/// The longest time between two looks of a loop for a change.
pub use punctual_core::gate::LOOK;

/// A switch is made where there is as much time before the next release as it may take, ns: for
/// itself and for each task of the new plan. A few times what it takes with warm caches: on a
/// virtual CPU 0.2 µs with one task, 22 ns a task with many (`cargo bench -p punctual --bench
/// switch`, medians of 31).
const SWITCH_NS: u64 = 5_000;
const SWITCH_TASK_NS: u64 = 100;

/// A plan that runs, and the state that it is in.
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

    /// The counters of the task of this rank so far; `None` for no such rank.
    ///
    /// # Real-time: setup only
    pub fn counters(&mut self, rank: usize) -> Option<Counters> {
        let state = TableState::resume(&self.plan.table(self.epoch), self.storage.lend())?;
        (rank < self.plan.tasks()).then(|| state.counters(rank))
    }
}

/// The parts that go with a plan, by rank, and are exchanged with it: the bodies of tasks `D`, and
/// their observers `O`.
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

/// A change: the next plan, and the parts that go with it. Once the loop has taken it, it holds
/// those of before.
pub struct Change<B> {
    running: RunningPlan,
    ranks: Vec<Option<u32>>,
    /// The ranks of before that go on, in their order.
    stay: Vec<u32>,
    refused: Option<Mismatch>,
    /// The parts that go with the plan; once the loop has taken it, those of before.
    parts: B,
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

    /// The plan that ran before, once the loop has taken the change.
    ///
    /// # Real-time: setup only
    pub fn before(&mut self) -> &mut RunningPlan {
        &mut self.running
    }

    /// The time that there should be for the switch, ns.
    fn room_ns(&self) -> u64 {
        SWITCH_NS + SWITCH_TASK_NS * self.ranks.len() as u64
    }
}

/// The time between two looks of the publisher whether its change is taken, ns.
const LOOK_NS: u64 = 500_000;

/// The place where changes are handed over to the loop, and those of before come back. The flag
/// says whose the place is, so that no thread ever waits for its lock, which is there because it
/// needs no unsafe code. (A ring or a channel between the two would make the loop spin while a
/// sender that it keeps from running is halfway through.)
#[expect(
    clippy::disallowed_types,
    reason = "the flag says whose it is: no thread ever waits for it"
)]
pub struct Handover<B> {
    /// 0 while the place is the publisher's; otherwise it is the loop's, which should have so many
    /// nanoseconds of time for the switch.
    request_ns: AtomicU64,
    place: Mutex<Option<Box<Change<B>>>>,
    /// No loop will take anything any more.
    over: AtomicBool,
    /// No change will come any more.
    last: AtomicBool,
    publishing: AtomicBool,
}

/// The change as it was taken, holding what ran before; or why not, and the change as it was.
pub type Answer<B> = Result<Box<Change<B>>, (ChangeRefused, Box<Change<B>>)>;

impl<B> fmt::Debug for Handover<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover")
            .field("request_ns", &self.request_ns)
            .field("over", &self.over)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl<B> Default for Handover<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B> Handover<B> {
    /// A place for the changes of one executive, which runs now or will.
    ///
    /// # Real-time: setup only
    #[expect(clippy::disallowed_types, reason = "no thread ever waits for it")]
    pub fn new() -> Self {
        Self {
            request_ns: AtomicU64::new(0),
            place: Mutex::new(None),
            over: AtomicBool::new(false),
            last: AtomicBool::new(false),
            publishing: AtomicBool::new(false),
        }
    }

    /// Hands `change` to the loop, and waits until that has taken it; then it holds what ran
    /// before. Waits also for a loop that has yet to begin.
    ///
    /// # Errors
    ///
    /// The reason why it did not take effect, and the change as it was; nothing is changed then.
    ///
    /// # Real-time: setup only
    pub fn publish(&self, change: Box<Change<B>>) -> Answer<B> {
        self.offer(change)?;
        loop {
            if let Some(answer) = self.answer() {
                return answer;
            }
            // A signal that cuts this short costs an extra look.
            let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
        }
    }

    /// Hands `change` to the loop, and goes on: [`Handover::answer`] gives its outcome.
    ///
    /// # Errors
    ///
    /// Another change is under way, or none will be taken; and the change.
    ///
    /// # Real-time: setup only
    pub fn offer(&self, change: Box<Change<B>>) -> Result<(), (ChangeRefused, Box<Change<B>>)> {
        if self.last.load(Ordering::Relaxed) {
            return Err((ChangeRefused::Ended, change));
        }
        if self.publishing.swap(true, Ordering::Acquire) {
            return Err((ChangeRefused::Busy, change));
        }
        let room_ns = change.room_ns();
        self.put(Some(change));
        self.request_ns.store(room_ns, Ordering::Release);
        Ok(())
    }

    /// The outcome of the change that was offered; `None` while the loop has not answered, and when
    /// nothing was offered. Given once, to the thread that offered it.
    ///
    /// # Real-time: setup only
    pub fn answer(&self) -> Option<Answer<B>> {
        if !self.publishing.load(Ordering::Acquire) {
            return None;
        }
        // In this order: what is over answered before.
        let over = self.over.load(Ordering::Acquire);
        let taken = self.request_ns.load(Ordering::Acquire) == 0;
        if !taken && !over {
            return None;
        }
        self.request_ns.store(0, Ordering::Relaxed);
        let change = self.put(None);
        self.publishing.store(false, Ordering::Release);
        let mut change = change?;
        Some(match change.refused.take().map(ChangeRefused::Mismatch) {
            _ if !taken => Err((ChangeRefused::Ended, change)),
            Some(why) => Err((why, change)),
            None => Ok(change),
        })
    }

    /// Puts another change, or none, in the place; returns the one that was there.
    fn put(&self, change: Option<Box<Change<B>>>) -> Option<Box<Change<B>>> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, change)
    }

    /// No change will come any more: the loop need not look for one.
    ///
    /// # Real-time: setup only
    pub fn finish(&self) {
        self.last.store(true, Ordering::Release);
        if !self.publishing.load(Ordering::Acquire) {
            self.request_ns.store(1, Ordering::Release);
        }
    }

    /// No loop will take anything any more: a change that waits is refused. For whoever runs the
    /// loop, when that has ended, however it did.
    ///
    /// # Real-time: setup only
    pub fn close(&self) {
        self.over.store(true, Ordering::Release);
    }
}

/// A look that never comes: waits are as long as they are.
const NEVER: Span = Span::from_ns(i64::MAX);

/// The extent of a run of the loop, and its stop.
#[derive(Debug)]
pub struct LoopRun<'s, S> {
    /// The first release is at or after this instant, as given to [`RunningPlan::new`].
    pub from: Instant,
    /// Releases at or after this instant do not run.
    pub end: Instant,
    /// The request that ends it.
    pub stop: &'s S,
    /// Counts the moments in which there was nothing to do: progress for a watchdog, at least
    /// every [`LOOK`] while tasks return.
    pub turns: &'s AtomicU64,
}

/// The units of a calendar that run in the same loop as the plan, and never change.
#[derive(Debug)]
pub struct RunningUnits<'c> {
    table: UnitTable<'c>,
    progress: Vec<TaskProgress>,
    position: CalendarPosition,
    gap: Span,
}

impl<'c> RunningUnits<'c> {
    /// The units of `plan`, whose first frame is the first one at or after `from`; tasks of the
    /// other plan run until `gap` before a unit.
    ///
    /// # Real-time: setup only
    pub fn new(plan: &'c CalendarPlan, epoch: Instant, from: Instant, gap: Span) -> Self {
        let (table, mut progress) = (plan.calendar(epoch), plan.storage());
        // No frame is begun in its middle.
        let frames = Releases::new(epoch, plan.frame());
        let from = frames.release(frames.at_or_after(from));
        let state = CalendarState::begin(&table, &mut progress, from);
        let position = state.expect("the plan's own storage is large enough").position();
        Self { table, progress, position, gap }
    }
}

impl<B> Handover<B> {
    /// Runs `running` by `many` as [`Many::run`] does, and takes each change on the way; at the end
    /// `running` is what ran last. Then no change is taken any more ([`Handover::close`] where a
    /// task may panic).
    ///
    /// # Real-time: in loop, waits
    pub fn run<C, W, D, O>(
        &self,
        many: &mut Many<C, W, D, O>,
        running: &mut RunningPlan,
        run: &LoopRun<'_, impl StopRequest>,
    ) -> Ended
    where
        C: Clock,
        W: Wait,
        D: Dispatch,
        O: Observe,
        B: Exchange<D, O>,
    {
        self.run_with(many, running, None, run)
    }

    /// The same with the units of a calendar, which stay: changes are of the plan alone.
    ///
    /// # Real-time: in loop, waits
    pub fn run_with<C, W, D, O>(
        &self,
        many: &mut Many<C, W, D, O>,
        running: &mut RunningPlan,
        mut units: Option<RunningUnits<'_>>,
        run: &LoopRun<'_, impl StopRequest>,
    ) -> Ended
    where
        C: Clock,
        W: Wait,
        D: Dispatch,
        O: Observe,
        B: Exchange<D, O>,
    {
        let ended = loop {
            if let Some(ended) = self.leg(many, running, units.as_mut(), run) {
                break ended;
            }
        };
        self.close();
        ended
    }

    /// Runs until the end, or until there is something to change; `None` where it goes on.
    fn leg<C, W, D, O>(
        &self,
        many: &mut Many<C, W, D, O>,
        running: &mut RunningPlan,
        units: Option<&mut RunningUnits<'_>>,
        run: &LoopRun<'_, impl StopRequest>,
    ) -> Option<Ended>
    where
        C: Clock,
        W: Wait,
        D: Dispatch,
        O: Observe,
        B: Exchange<D, O>,
    {
        let RunningPlan { plan, storage, epoch } = running;
        let table = plan.table(*epoch);
        // Its own storage, in which a state was begun.
        let Some(mut state) = TableState::resume(&table, storage.lend()) else {
            return Some(Ended::Finished);
        };
        let first = units.as_ref().map_or(0, |units| units.table.tasks());
        let look = if self.last.load(Ordering::Acquire) { NEVER } else { LOOK };
        let (mut unit_state, position) = match units {
            Some(RunningUnits { table, progress, position, gap }) => {
                let unit_state = CalendarState::resume(progress, *position);
                (Some((&*table, unit_state, *gap)), Some(position))
            }
            None => (None, None),
        };
        let mut schedule = match &mut unit_state {
            None => Schedule::of_table(&table, &mut state),
            Some((units, unit_state, gap)) => {
                let schedule = Schedule::of_calendar(units, unit_state);
                match table.tasks() {
                    0 => schedule,
                    _ => schedule.with_table(&table, &mut state, *gap),
                }
            }
        };
        schedule = schedule.leave_on(&self.request_ns, run.turns, look);
        let ended = many.obey(&mut schedule, run.end, run.stop);
        if !schedule.left() {
            return Some(ended);
        }
        if let (Some((_, unit_state, _)), Some(position)) = (&unit_state, position) {
            *position = unit_state.position();
        }
        // No release before the first one, also where there is a change before that.
        let now = many.clock.now().max(run.from - Span::from_ns(1));
        let Ok(mut place) = self.place.try_lock() else { return None };
        if let Some(change) = &mut *place
            && change.take((&table, &mut state, first), many, now)
        {
            drop(state);
            std::mem::swap(running, &mut change.running);
        }
        drop(place);
        self.request_ns.store(0, Ordering::Release);
        None
    }
}

impl<B> Change<B> {
    /// Goes on in the new plan from where the old one is, whose ranks begin at `first`; returns
    /// true where that fits. What a task that goes was due for and did not run is missed.
    fn take<C, W, D, O>(
        &mut self,
        (table, state, first): (&Table<'_>, &mut TableState<'_>, usize),
        many: &mut Many<C, W, D, O>,
        now: Instant,
    ) -> bool
    where
        O: Observe,
        B: Exchange<D, O>,
    {
        let RunningPlan { plan, storage, epoch } = &mut self.running;
        let before = Before { table, state: &mut *state, ranks: &self.ranks };
        match TableState::follow(&plan.table(*epoch), storage.lend(), before, now) {
            Ok(_left_in_its_storage) => {
                let mut stay = self.stay.iter().peekable();
                for rank in 0..table.tasks() {
                    if stay.next_if(|stays| **stays as usize == rank).is_some() {
                        continue;
                    }
                    if let Some(missed) = state.never_ran(table, rank, now) {
                        many.observe.never_ran(first + rank, missed, now);
                    }
                }
                self.parts.exchange(&mut many.tasks, &mut many.observe, &self.ranks);
                true
            }
            Err(why) => {
                self.refused = Some(why);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
