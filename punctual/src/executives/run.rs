//! A fleet at work: one thread a CPU, each with the loop of many tasks.
//!
//! The calling thread waits for them. The first that ends before its time ends all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::clock::Clock;
use punctual_core::dispatch::State;
use punctual_core::executive::Ended;
use punctual_core::executive::cancel::{Cancelling, Token};
use punctual_core::executive::many::{Cycle, Dispatch, Flow, Many};
use punctual_core::page::{Kind, Page};
use punctual_core::time::{Instant, Span};
use punctual_core::wait::Wait;
use punctual_os::affinity;
use punctual_os::process;
use punctual_os::scheduler::Policy;

use super::{Finished, Fleet, One};
use crate::clocks::MachineClock;
use crate::guard;
use crate::session::{Attempt, Thread};
use crate::stage::{GUARD, aside, watchdog_bound};
use crate::watchdog::{self, Charge, Watched};
use crate::workers::Body;

/// Bodies behind the ranks, and how often one ran.
struct Bodies<'b, 'w> {
    all: &'b mut [Body<'w>],
    beats: &'b AtomicU64,
}

impl Dispatch for Bodies<'_, '_> {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        // One writer, so that no locked instruction is needed.
        self.beats.store(self.beats.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.all.get_mut(rank).map_or(Flow::Continue, |body| body(cycle))
    }
}

/// What the threads about one executive share.
#[derive(Debug, Default)]
struct Shared {
    token: Token,
    beats: AtomicU64,
    watched: Watched,
}

impl Fleet<'_> {
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
        let Self { mut on, priority, epoch } = self;
        let shared: Vec<Shared> = on.iter().map(|_| Shared::default()).collect();
        let aside = aside(&on.iter().map(|one| one.cpu).collect::<Vec<u32>>());
        let bounds: Vec<Option<Span>> = on.iter().map(|one| watchdog_bound(&one.plan)).collect();
        let done = AtomicBool::new(false);
        let mut clock = MachineClock::best();
        let end = clock.now() + duration;
        std::thread::scope(|scope| {
            let (shared, done, aside, clock) = (&shared, &done, &aside, &clock);
            let beside = move |watch: &dyn Fn()| {
                // Where it may not go aside it stays: its priority is above theirs.
                let _beside_them = affinity::set(0, aside);
                let _session = Thread::enter(None, GUARD);
                watch();
            };
            scope.spawn(move || {
                let tokens: Vec<&Token> = shared.iter().map(|shared| &shared.token).collect();
                beside(&|| guard::cancel(&tokens, done));
            });
            let dog = scope.spawn(move || {
                let charges: Vec<_> = shared
                    .iter()
                    .zip(bounds)
                    .filter_map(|(shared, bound)| {
                        let beats = &shared.beats;
                        let progress = move || beats.load(Ordering::Relaxed);
                        Some(Charge { watched: &shared.watched, progress, bound: bound? })
                    })
                    .collect();
                beside(&|| watchdog::watch(&charges, stop, done));
            });
            let threads: Vec<_> = on
                .iter_mut()
                .zip(shared)
                .map(|(one, shared)| {
                    let wait = wait(one.cpu);
                    let (clock, times) = (clock.clone(), (epoch, end));
                    scope.spawn(move || one.run(shared, clock, wait, priority, times, stop))
                })
                .collect();
            let finished = threads.into_iter().map(|thread| thread.join().expect("caught inside"));
            let finished = finished.collect();
            done.store(true, Ordering::Release);
            drop(dog.join());
            finished
        })
    }
}

impl One<'_> {
    fn run<W: Wait<MachineClock>>(
        &mut self,
        shared: &Shared,
        clock: MachineClock,
        wait: W,
        priority: u8,
        (epoch, end): (Instant, Instant),
        stop: &AtomicBool,
    ) -> Finished {
        let table = self.plan.table(epoch);
        let mut storage = self.plan.storage();
        let words = |rank: usize| self.pages.words(rank);
        let mut pages: Vec<Page<'_>> = (0..self.plan.tasks())
            .filter_map(|rank| Page::new(words(rank), Kind::Lateness))
            .collect();
        let bodies = Bodies { all: &mut self.bodies, beats: &shared.beats };
        let tasks = Cancelling { tasks: bodies, token: &shared.token };
        let mut many = Many { clock, wait, tasks, observe: &mut pages[..] };
        let session = Thread::enter(Some(self.cpu), Policy::Fifo(priority));
        shared.watched.arm(process::tid());
        let from = many.clock.now();
        // What the bodies borrowed is theirs; nothing of it is used again here.
        let ran = catch_unwind(AssertUnwindSafe(|| {
            State::begin(&table, storage.lend(), from)
                .map_or(Ended::Finished, |mut state| many.run(&table, &mut state, end, stop))
        }));
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
        let tasks = self
            .pages
            .iter()
            .map(|(name, page)| (name.to_owned(), page.map(|p| p.counts()).unwrap_or_default()))
            .collect();
        Finished { cpu: self.cpu, ended, policy, pinned, panicked, tasks }
    }
}
