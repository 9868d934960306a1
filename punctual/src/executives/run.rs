//! A fleet at work: one thread a CPU, each with the loop of many tasks.
//!
//! The calling thread waits for them. The first that ends before its time ends all.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::clock::Clock;
use punctual_core::executive::Ended;
use punctual_core::executive::cancel::{Cancelling, Token};
use punctual_core::executive::many::Many;
use punctual_core::time::{Instant, Span};
use punctual_core::wait::Wait;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;

use super::parts::{Bodies, Parts, Shared};
use super::roster::{Desk, Roster};
use super::{Finished, Fleet, One};
use crate::clocks::MachineClock;
use crate::guard;
use crate::handover::{Handover, Running, Stretch};
use crate::session::{Attempt, Thread};
use crate::stage::{GUARD, aside, watchdog_bound};
use crate::watchdog::{self, Charge};

impl<'w> Fleet<'w> {
    /// Runs all executives for `duration`, or until `stop` is set, or a task or its policy stops
    /// them; `stop` is set at the end. Each waits for releases as `wait` says of its CPU.
    ///
    /// # Panics
    ///
    /// Only where a thread cannot be started.
    ///
    /// # Real-time: setup only
    pub fn run<W: Wait<MachineClock> + Send>(
        self,
        wait: impl Fn(u32) -> W,
        duration: Span,
        stop: &AtomicBool,
    ) -> Vec<Finished> {
        self.run_with(wait, duration, stop, |_| ()).1
    }

    /// As [`Fleet::run`], with `beside` in the calling thread meanwhile, which may register and
    /// remove tasks; what it returns, and what became of the executives. When it returns they go
    /// on until their time is up; when they end first, what it asks for is refused.
    ///
    /// While it runs, each executive looks at least every [`crate::handover::LOOK`] whether there
    /// is a change.
    ///
    /// # Panics
    ///
    /// Where a thread cannot be started; and when `beside` panics, after all has ended.
    ///
    /// # Real-time: setup only
    pub fn run_with<W: Wait<MachineClock> + Send, R>(
        self,
        wait: impl Fn(u32) -> W,
        duration: Span,
        stop: &AtomicBool,
        beside: impl FnOnce(&mut Roster<'_, 'w>) -> R,
    ) -> (R, Vec<Finished>) {
        let Self { on, priority, epoch, most, overload } = self;
        let shared: Vec<Shared> = on.iter().map(|_| Shared::default()).collect();
        let places: Vec<Handover<Parts<'w>>> = on.iter().map(|_| Handover::new()).collect();
        let aside = aside(&on.iter().map(|one| one.cpu).collect::<Vec<u32>>());
        let bounds: Vec<Option<Span>> = on.iter().map(|one| watchdog_bound(&one.plan)).collect();
        let desks = on.iter().zip(&places).map(|(one, handover)| one.desk(handover)).collect();
        let mut roster = Roster { on: desks, most, overload, epoch };
        let done = AtomicBool::new(false);
        let mut clock = MachineClock::best();
        let end = clock.now() + duration;
        std::thread::scope(|scope| {
            let (shared, done, aside, clock) = (&shared, &done, &aside, &clock);
            scope.spawn(move || {
                let tokens: Vec<&Token> = shared.iter().map(|shared| &shared.token).collect();
                beside_them(aside, || guard::cancel(&tokens, done));
            });
            let dog = scope.spawn(move || {
                beside_them(aside, || watch(shared, &bounds, stop, done));
            });
            let threads: Vec<_> = on
                .into_iter()
                .zip(shared.iter().zip(&places))
                .map(|(one, (shared, place))| {
                    let wait = wait(one.cpu);
                    let (clock, times) = (clock.clone(), (epoch, end));
                    scope
                        .spawn(move || one.run((shared, place), clock, wait, priority, times, stop))
                })
                .collect();
            // What it borrowed is not used again where it panicked.
            let said = catch_unwind(AssertUnwindSafe(|| beside(&mut roster)));
            if said.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            places.iter().for_each(Handover::finish);
            let finished = threads.into_iter().map(|thread| thread.join().expect("caught inside"));
            let removed = roster.on.into_iter().map(|desk| desk.removed);
            let finished = finished.zip(removed);
            let finished = finished.map(|(one, removed)| Finished { removed, ..one }).collect();
            done.store(true, Ordering::Release);
            drop(dog.join());
            (said.unwrap_or_else(|panic| resume_unwind(panic)), finished)
        })
    }
}

/// Runs `watch` where none of the executives is; where it may not go there it stays: its priority
/// is above theirs.
fn beside_them(aside: &CpuMask, watch: impl FnOnce()) {
    let _beside_them = affinity::set(0, aside);
    let _session = Thread::enter(None, GUARD);
    watch();
}

/// Watches all executives until `done`.
fn watch(shared: &[Shared], bounds: &[Option<Span>], stop: &AtomicBool, done: &AtomicBool) {
    let charges: Vec<_> = shared
        .iter()
        .zip(bounds)
        .map(|(shared, bound)| {
            let beats = &shared.beats;
            let progress = move || beats.load(Ordering::Relaxed);
            // Without tasks there is nothing to get stuck in.
            Charge { watched: &shared.watched, progress, bound: bound.unwrap_or(IDLE_BOUND) }
        })
        .collect();
    watchdog::watch(&charges, stop, done);
}

/// How long an executive without tasks may get nowhere: many looks.
const IDLE_BOUND: Span = Span::from_ms(2_000);

impl<'w> One<'w> {
    /// The executive as it is changed.
    fn desk<'r>(&self, handover: &'r Handover<Parts<'w>>) -> Desk<'r, 'w> {
        let Self { cpu, tasks, plan, pages, .. } = self;
        let (tasks, plan, pages) = (tasks.clone(), plan.clone(), pages.clone());
        Desk { cpu: *cpu, handover, tasks, plan, pages, removed: Vec::new() }
    }

    fn run<W: Wait<MachineClock>>(
        self,
        (shared, place): (&Shared, &Handover<Parts<'w>>),
        clock: MachineClock,
        wait: W,
        priority: u8,
        (epoch, end): (Instant, Instant),
        stop: &AtomicBool,
    ) -> Finished {
        self.pages.begin();
        let bodies = Bodies { all: self.bodies, shared };
        let tasks = Cancelling { tasks: bodies, token: &shared.token };
        let mut many = Many { clock, wait, tasks, observe: self.pages.writers() };
        let session = Thread::enter(Some(self.cpu), SchedPolicy::Fifo(priority));
        shared.watched.arm(process::tid());
        let from = many.clock.now();
        let mut running = Running::new(self.plan, epoch, from);
        let stretch = Stretch { from, end, stop, turns: &shared.beats };
        // What the bodies borrowed is theirs; nothing of it is used again here.
        let ran = catch_unwind(AssertUnwindSafe(|| place.run(&mut many, &mut running, &stretch)));
        place.close();
        shared.watched.disarm();
        let (policy, panicked) = (session.policy(), ran.is_err());
        let pinned = !session
            .refused()
            .iter()
            .any(|refusal| matches!(refusal.attempt, Attempt::Affinity(_)));
        drop(session);
        let ended = ran.unwrap_or(Ended::Stopped);
        if ended != Ended::Finished {
            stop.store(true, Ordering::Relaxed);
        }
        let plan = running.plan();
        let task = |rank: usize| {
            (plan.name(rank).to_owned(), many.observe.counts(rank).unwrap_or_default())
        };
        let tasks = (0..plan.tasks()).map(task).collect();
        Finished { cpu: self.cpu, ended, policy, pinned, panicked, tasks, removed: Vec::new() }
    }
}
