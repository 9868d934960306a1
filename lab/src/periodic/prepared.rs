//! A periodic experiment that is set up, and its run: threads up, blocks in turn, all put back.
//!
//! For callers: the entrance of this module. Decides nothing about loads (its [`BackgroundLoads`]
//! does) and nothing about numbers.

use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use punctual::clocks::{MachineClock, Reading, StampCost};
use punctual::drain::{Drainage, SampleFile, Sink};
use punctual::follow::Follower;
use punctual::monitor::Watched;
use punctual::session::ThreadSession;
use punctual::spawn;
use punctual_core::clock::Clock;
use punctual_core::releases::Releases;
use punctual_core::ring::{self, Drain, Ring, RingView, split};
use punctual_core::time::Instant;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::signal;

use super::context::RunContext;
use super::drain::{drain_thread, watchdog_thread};
use super::followed::{FollowedFigures, Moment};
use super::outcome::{LoopsOutcome, RunOutcome};
use super::plan::{KnownWait, PeriodicPlan, Stream};
use super::stream::Tally;
use super::threads::StreamThreads;
use crate::experiment::{BackgroundLoads, ClockFacts, ExperimentEnd};

/// An experiment that is set up: its clock is calibrated and its grids are fixed.
#[derive(Debug)]
pub struct Prepared {
    plan: PeriodicPlan,
    clock: MachineClock,
    cost: StampCost,
    begun: Reading,
    grids: Vec<Releases>,
    follower: Option<Follower>,
    storage: Vec<Vec<AtomicU64>>,
    known: Vec<KnownWait>,
}

/// Samples that a ring holds: two seconds' worth, ten times what the drain leaves it to hold.
fn ring_samples(stream: &Stream) -> usize {
    let in_two_seconds = 2_000_000_000 / stream.period.as_ns();
    usize::try_from(in_two_seconds).unwrap_or(usize::MAX).clamp(4096, 1 << 20).next_power_of_two()
}

impl Prepared {
    /// Calibrates the clock (about 50 ms) and fixes the grids.
    pub fn new(plan: PeriodicPlan) -> Self {
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let begun = Reading::take();
        let now = Instant::from_ns(now_ns(ClockId::Monotonic));
        let grids = grids(&plan, now);
        let storage = plan
            .streams
            .iter()
            .flat_map(|stream| plan.conditions.iter().map(move |_| stream))
            .map(|stream| {
                (0..ring::words(ring_samples(stream))).map(|_| AtomicU64::new(0)).collect()
            })
            .collect();
        Self { plan, clock, cost, begun, grids, follower: None, storage, known: Vec::new() }
    }

    /// The same with what earlier runs learned: waits that learn begin with it.
    #[must_use]
    pub fn knowing(self, known: Vec<KnownWait>) -> Self {
        Self { known, ..self }
    }

    /// The same on the timescale of a clock that is followed: its grids lie on that one's time, and
    /// what stamps cost is measured through the map.
    #[must_use]
    pub fn following(self, follower: Follower) -> Self {
        let mut clock = follower.over(self.clock.clone());
        let cost = StampCost::measure(&mut clock);
        let grids = grids(&self.plan, clock.wake());
        Self { cost, grids, follower: Some(follower), ..self }
    }

    /// The plan.
    pub fn plan(&self) -> &PeriodicPlan {
        &self.plan
    }

    /// The grid of each stream.
    pub fn grids(&self) -> &[Releases] {
        &self.grids
    }

    /// What stamps cost.
    pub fn cost(&self) -> StampCost {
        self.cost
    }

    /// The calibrated clock, another one like it.
    pub fn clock(&self) -> MachineClock {
        self.clock.clone()
    }

    /// What stamps are taken with.
    pub fn clock_name(&self) -> &'static str {
        self.clock.name()
    }

    /// The policy that the kernel grants each stream, found out on threads that end at once.
    ///
    /// # Errors
    /// That no thread could be started.
    pub fn granted(&self) -> io::Result<Vec<SchedPolicy>> {
        let ask = |stream: &Stream| {
            let (cpu, policy) = (stream.thread.pinned_to(), stream.thread.policy());
            let enter = move || ThreadSession::enter(cpu, policy).policy();
            let thread = spawn::plain("punctual-policy", enter)?;
            Ok(thread.join().unwrap_or(SchedPolicy::Other))
        };
        self.plan.streams.iter().map(ask).collect()
    }

    /// Runs the experiment until it ends or `stop` is set; samples go to `sink` and `file`.
    ///
    /// # Errors
    /// That a thread could not be started.
    pub fn run<S: Sink + Send, W: Write + Send>(
        self,
        sink: S,
        file: Option<SampleFile<W>>,
        background: &mut dyn BackgroundLoads,
        stop: &AtomicBool,
    ) -> io::Result<LoopsOutcome<S>> {
        let Self { plan, mut clock, cost, begun, grids, follower, storage, known } = self;
        let followed = follower.as_ref().map(|follower| (follower, Moment::now(follower)));
        // Without it a sleeping loop learns of a stop only at its next wake.
        let _late_stop = signal::catch_interrupt();
        let (rings, drains, views) = split_all(&storage);
        let watched: Vec<Watched> = plan.streams.iter().map(|_| Watched::default()).collect();
        let over = Over { done: AtomicBool::new(false), early: AtomicBool::new(false) };
        let pinned = Mutex::new(Vec::new());
        let context = RunContext {
            plan: &plan,
            known: &known,
            grids: &grids,
            watched: &watched,
            clock: &clock,
            follower: follower.as_ref(),
            stop,
            pinned: &pinned,
        };
        let (tallies, drained) = thread::scope(|scope| -> io::Result<_> {
            // Whatever happens in here, the watchdog ends and no loop goes on.
            let _over = ThreadStopper { over: &over, stop };
            let drainage = Drainage::new(drains, sink, file);
            let (handle, drain) = drain_thread(scope, &context, drainage, &over.early)?;
            watchdog_thread(scope, &context, &views, &over.done)?;
            let threads = StreamThreads::start(scope, &context, rings)?;
            let tallies = threads.run_blocks(&context, &handle, background);
            over.early.store(tallies.end != ExperimentEnd::Finished, Ordering::Release);
            drop(handle);
            Ok((tallies, drain.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))))
        })?;
        clock.discipline();
        let force = watched.iter().find_map(Watched::ended);
        Ok(LoopsOutcome {
            sink: drained.sink,
            runs: outcomes(&plan, &views, &tallies.runs, &tallies.policies),
            refused: tallies.refused,
            clock: ClockFacts::of(&clock, cost, begun.until(&Reading::take())),
            followed: followed.map(|(follower, began)| FollowedFigures::of(follower, began)),
            disturbances: drained.disturbances,
            file_error: drained.file_error,
            end: force.map_or(tallies.end, ExperimentEnd::Watchdog),
        })
    }
}

/// The grid of each stream, from `now` on.
fn grids(plan: &PeriodicPlan, now: Instant) -> Vec<Releases> {
    plan.streams.iter().map(|s| Releases::aligned(now, s.period, s.phase_ns)).collect()
}

/// How the experiment ends, for the threads next to it.
struct Over {
    done: AtomicBool,
    /// Before its time.
    early: AtomicBool,
}

/// Ends the threads next to the coordinator when it leaves, by whichever way.
struct ThreadStopper<'a> {
    over: &'a Over,
    stop: &'a AtomicBool,
}

impl Drop for ThreadStopper<'_> {
    fn drop(&mut self) {
        self.over.done.store(true, Ordering::Release);
        // On the regular way all loops are over; on any other they have to end now.
        if thread::panicking() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

type Ends<'a> = (Vec<Ring<'a>>, Vec<(Drain<'a>, RingView<'a>)>, Vec<RingView<'a>>);

/// The ends of all rings.
fn split_all(storage: &[Vec<AtomicU64>]) -> Ends<'_> {
    let (mut rings, mut drains, mut views) = (Vec::new(), Vec::new(), Vec::new());
    for words in storage {
        let (ring, drain, view) = split(words).expect("a ring of at least 4096 samples");
        rings.push(ring);
        drains.push((drain, view));
        views.push(view);
    }
    (rings, drains, views)
}

fn outcomes(
    plan: &PeriodicPlan,
    views: &[RingView<'_>],
    tallies: &[Tally],
    policies: &[SchedPolicy],
) -> Vec<RunOutcome> {
    views
        .iter()
        .zip(tallies)
        .enumerate()
        .map(|(run, (view, tally))| RunOutcome {
            cycles: view.count(),
            missed: view.missed(),
            unrecorded: view.unrecorded(),
            stalls: tally.stalls,
            approach: tally.approach,
            learned: tally.learned,
            paused: tally.paused,
            resumed: tally.resumed,
            steal_ns: tally.steal_ns,
            cpu_load: tally.cpu_ns as f64 / (tally.wall_ns.max(1)) as f64,
            wall_ns: tally.wall_ns,
            usage: tally.usage,
            policy: policies[run / plan.conditions.len()],
        })
        .collect()
}
