//! The life of every experiment: judged for safety, the process prepared (memory locked, idle
//! states held), the measurement, which starts and ends its loads, what throttling did to it.
//!
//! For the command line. An experiment fills in [`Experiment`]; what it tells while it runs goes to
//! an [`Observer`]. A stop (SIGINT, SIGTERM, SIGHUP) ends any of them early with what there is.
//! Never prints; gives facts, no sentences.

mod blocks;
mod loading;
mod safety;
mod standing;

use std::error::Error;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::{io, thread};

use punctual::RtThread;
use punctual_core::ring::{self, Drain, Ring, RingView, SplitRing};
use punctual_core::stop::StopRequest;
use punctual_core::time::{Instant, Period, Span};
use punctual_engine::clocks::{self, CounterRate, MachineClock, PauseTrial, Slew, StampCost};
use punctual_engine::disturbance::Disturbance;
use punctual_engine::monitor::{Force, WatchedProgress, watch};
use punctual_engine::safety::is_real_time;
use punctual_engine::session::{ProcessSession, Refusal, ThreadSession};
use punctual_engine::spawn;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::threads::{self, Usage};
use punctual_os::{Errno, signal};

use crate::load::{Launcher, LoadReport, LoadSpec};
use crate::starvation::StarvationWatch;

pub use blocks::{ConditionBlock, interleave, round, split};
pub use loading::{Loading, bounds, startable};
pub use safety::{Caution, CpuTaken, Demand, Risk, Taken, Throttling, judge, throttling};
pub use standing::{RunSoFar, Standing, Standings, StandingsWriter};

/// An experiment with all its choices made.
pub trait Experiment: Sized {
    /// Its own result, beside what every experiment has.
    type Outcome;

    /// Its threads, as far as they could take a CPU away from everybody else.
    fn demands(&self) -> Vec<Demand>;

    /// Its conditions: the name of each, and the loads that run under it.
    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)>;

    /// Refuses an experiment that cannot run as requested, where that is known beforehand.
    ///
    /// # Errors
    /// That reason.
    fn check(&self) -> Result<(), Risk> {
        Ok(())
    }

    /// Returns true where it measures threads of its own: idle states are held off for them. Those
    /// of other programs are left what they run under.
    fn has_own_threads(&self) -> bool {
        true
    }

    /// Measures, until its end or until `context.stop` is set.
    ///
    /// # Errors
    /// Why nothing could be measured.
    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<Self::Outcome>, ExperimentError>;
}

/// The loads and the stop flag that an experiment runs with.
pub struct Context<'a, 'l> {
    /// Its loads, and the way to report how far it is.
    pub loading: &'a mut Loading<'l>,
    /// Set when it is to end early.
    pub stop: &'a AtomicBool,
}

/// The machine that an experiment runs on, and the caller's observer.
pub struct Setting<'a> {
    /// The facts of the machine that measures.
    pub facts: &'a MachineFacts,
    /// The way to start a load's process.
    pub launcher: &'a dyn Launcher,
    /// The observer of its progress.
    pub observer: &'a mut dyn Observer,
}

/// The result of an experiment, and what it saw of the machine.
pub struct ExperimentOutcome<T> {
    /// Its own result.
    pub outcome: T,
    /// The reason for its end.
    pub end: ExperimentEnd,
    /// The clock that took its stamps.
    pub clock: ClockFacts,
    /// The requests of its threads that the kernel refused.
    pub refused: Vec<Refusal>,
    /// The disturbances of the machine, each with its time on CLOCK_MONOTONIC, in ns.
    pub disturbances: Vec<(u64, Disturbance)>,
    /// Shares of their CPUs that its real-time threads took, one for each thread and condition.
    pub taken: Vec<Taken>,
}

impl<T> ExperimentOutcome<T> {
    /// The result of one thread that ran to its end, which looked at nothing else of the machine.
    pub fn of_thread(outcome: T, clock: ClockFacts, refused: Vec<Refusal>) -> Self {
        let (end, disturbances, taken) = (ExperimentEnd::Finished, Vec::new(), Vec::new());
        Self { outcome, end, clock, refused, disturbances, taken }
    }
}

/// An experiment that is over.
#[derive(Debug)]
pub struct FinishedExperiment<T> {
    /// Its own result.
    pub outcome: T,
    /// The reason for its end.
    pub end: ExperimentEnd,
    /// The clock that took its stamps.
    pub clock: ClockFacts,
    /// True where all memory was locked.
    pub memory_locked: bool,
    /// True where idle states were kept away.
    pub idle_states_held: bool,
    /// The requests that the kernel refused, once each.
    pub refused: Vec<Refusal>,
    /// The disturbances of the machine, each with its time on CLOCK_MONOTONIC, in ns.
    pub disturbances: Vec<(u64, Disturbance)>,
    /// The reports of the loads, a list for each condition.
    pub loads: Vec<Vec<LoadReport>>,
    /// The CPUs that loads can run on; none where no condition has any.
    pub load_cpus: CpuList,
    /// The risks of its plan, known before it ran.
    pub planned: Vec<Caution>,
    /// Shares of each of their CPUs that its real-time threads took.
    pub taken: Vec<CpuTaken>,
}

/// The reason for which an experiment has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExperimentEnd {
    /// It came to its end.
    Finished,
    /// It was stopped.
    Stopped,
    /// A release was later than may be: the outcome says which.
    Late,
    /// The link to another machine, or the source of stimuli, was lost: the outcome says how.
    Lost,
    /// The watchdog ended a thread, like this.
    Watchdog(Force),
    /// A load could not be started.
    Load(String),
}

/// The reason for which nothing could be measured.
#[derive(Debug)]
pub enum ExperimentError {
    /// It could take the machine away, or cannot run as requested.
    Refused(Risk),
    /// A signal cannot be caught.
    Signal(Errno),
    /// A thread could not be started.
    Thread(io::Error),
    /// A thread of the experiment ended by a panic.
    Panic,
    /// A load could not be started.
    Load(String),
    /// A source of stimuli cannot be had.
    Source(String),
    /// A clock could not be followed.
    Follow(punctual::Error),
    /// The kernel gives no evidence, with what forbids it and what would allow it.
    Evidence(String),
    /// The caller could not use the samples.
    Destination(Box<dyn Error + Send + Sync>),
}

impl ExperimentEnd {
    /// The regular end, or that of a stop, where `stop` is set.
    pub(crate) fn by(stop: &AtomicBool) -> Self {
        if stop.load(Ordering::Relaxed) { Self::Stopped } else { Self::Finished }
    }
}

impl From<io::Error> for ExperimentError {
    fn from(why: io::Error) -> Self {
        Self::Thread(why)
    }
}

/// Those of the CPUs that a process may run on which the kernel lets it reach: it moves nothing
/// onto one of `isolcpus=`, unless there is no other.
fn reachable(allowed: CpuList, isolated: &CpuList) -> CpuList {
    let balanced = allowed.difference(isolated);
    if balanced.is_empty() { allowed } else { balanced }
}

/// Runs an experiment to its end, or to the first SIGINT, SIGTERM or SIGHUP; a second one kills.
///
/// # Errors
/// Why nothing was measured.
pub fn run<E: Experiment>(
    experiment: E,
    setting: Setting<'_>,
) -> Result<FinishedExperiment<E::Outcome>, ExperimentError> {
    let Setting { facts, launcher, observer } = setting;
    experiment.check().map_err(ExperimentError::Refused)?;
    let planned = judge(&experiment.demands(), facts).map_err(ExperimentError::Refused)?;
    signal::catch_stop().map_err(ExperimentError::Signal)?;
    let process = ProcessSession::ask(true, experiment.has_own_threads());
    let (conditions, bounds) = (experiment.conditions(), bounds(facts));
    let has_loads = conditions.iter().any(|(_, loads)| !loads.is_empty());
    let allowed: CpuList = bounds.cpus.iter().copied().filter(|_| has_loads).collect();
    let load_cpus = reachable(allowed, &facts.isolation.isolated());
    let mut loading = Loading::new(conditions, bounds, launcher, observer);
    let (stop, starvation) = (signal::stop_flag(), StarvationWatch::new());
    let measured = thread::scope(|scope| {
        let _watching = starvation.start(scope, stop, |_| true)?;
        experiment.run(Context { loading: &mut loading, stop })
    });
    let loads = loading.finish();
    let measured = measured?;
    let end = match measured.end {
        ExperimentEnd::Stopped if starvation.has_ended() => ExperimentEnd::Watchdog(Force::Starved),
        end => end,
    };
    Ok(FinishedExperiment {
        outcome: measured.outcome,
        end,
        clock: measured.clock,
        memory_locked: process.memory_locked(),
        idle_states_held: process.idle_states_held(),
        refused: once_each(process.refused().iter().chain(&measured.refused)),
        disturbances: measured.disturbances,
        loads,
        load_cpus,
        planned,
        taken: safety::cpus_taken(&measured.taken, facts),
    })
}

/// Each refusal once: several threads are refused the same.
fn once_each<'a>(refusals: impl Iterator<Item = &'a Refusal>) -> Vec<Refusal> {
    let mut once = Vec::new();
    for refusal in refusals {
        if !once.contains(refusal) {
            once.push(*refusal);
        }
    }
    once
}

/// The progress of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct ExperimentProgress {
    /// Time left.
    pub left: Span,
    /// The condition that runs.
    pub condition: usize,
    /// The longest gap of all threads so far; `None` where there are loops, which have figures of
    /// their own ([`LoopSoFar`]).
    pub worst: Option<Span>,
    /// Gaps of all threads so far.
    pub count: u64,
}

/// One loop, and what it saw so far.
#[derive(Clone, Debug)]
pub struct LoopSoFar {
    /// The CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// Its period.
    pub period: Period,
    /// Its figures under the condition that runs; `None` until there are samples.
    pub run: Option<RunSoFar>,
}

/// Something that is reported.
#[derive(Debug)]
pub enum ExperimentEvent<'a> {
    /// About ten times a second: how far it is.
    Progress {
        /// Time left, what was seen so far.
        progress: &'a ExperimentProgress,
        /// The name of the condition that runs.
        condition: &'a str,
        /// True once the measurement is over: what runs then does not count.
        is_over: bool,
        /// Each loop so far; none in an experiment without loops.
        loops: &'a [LoopSoFar],
    },
    /// Nothing more comes.
    Ended,
}

/// The receiver of an experiment's progress.
pub trait Observer {
    /// Takes in an event. Called on the thread that coordinates; the loops do not wait for it.
    fn event(&mut self, event: &ExperimentEvent<'_>);
}

/// Nobody.
impl Observer for () {
    fn event(&mut self, _: &ExperimentEvent<'_>) {}
}

/// The work that the machine does beside: started before a block's loop, ended after it.
pub trait BackgroundLoads {
    /// Called once, before the first block, with the thread of each loop: they are ready, and wait.
    fn ready(&mut self, _tids: &[i32]) {}

    /// Starts what condition `condition` names and returns once it is at work. It must end by
    /// itself soon after `length`, whatever becomes of the caller.
    ///
    /// # Errors
    /// In one line, why it could not be started.
    fn begin(&mut self, condition: usize, length: Span) -> Result<(), String>;

    /// Ends it.
    fn end(&mut self, condition: usize);

    /// Called once, when all blocks have run to their end: the measurement is over. What it returns
    /// runs behind it as blocks that do not count; the loops wait meanwhile.
    fn measured(&mut self) -> Vec<ConditionBlock> {
        Vec::new()
    }

    /// Called about ten times a second with how far the experiment is.
    fn progress(&mut self, _: &ExperimentProgress) {}
}

/// Changes the machine for a condition before its loads start, and back after they ended.
pub trait ConditionChanges {
    /// Changes what condition `condition` needs.
    ///
    /// # Errors
    /// In one line, why the experiment cannot go on.
    fn begin(&mut self, condition: usize) -> Result<(), String>;

    /// Puts everything back.
    fn end(&mut self);
}

/// The demand on its CPU of a thread that computes for `share` of each period; `share` in [0, 1].
pub fn demand(thread: &RtThread, period: Period, share: f64) -> Demand {
    let real_time = is_real_time(thread.policy());
    Demand { cpu: thread.pinned_to(), real_time, period, share }
}

/// The CPU that it is pinned to; where it is to none, the first that this process may use.
pub(crate) fn cpu_of(thread: &RtThread) -> u32 {
    let first = || affinity::get(0).ok().and_then(|mask| mask.iter().next()).unwrap_or(0);
    thread.pinned_to().unwrap_or_else(first)
}

/// Runs `measure` on a thread of its own, to its end or until it saw `stop`, which decides the
/// `end` of the result.
///
/// # Errors
/// The thread could not be started, or panicked.
pub fn on_one_thread<T: Send>(
    stop: &AtomicBool,
    measure: impl FnOnce() -> ExperimentOutcome<T> + Send,
) -> Result<ExperimentOutcome<T>, ExperimentError> {
    let measured = thread::scope(|scope| {
        let measuring = spawn::scoped(scope, "punctual-measure", measure)?;
        measuring.join().map_err(|_| ExperimentError::Panic)
    })?;
    Ok(ExperimentOutcome { end: ExperimentEnd::by(stop), ..measured })
}

/// As [`on_one_thread`], on the CPU and by the policy of `thread`, with the machine's best clock.
///
/// # Errors
/// As there.
pub fn on_measuring_thread<T: Send>(
    thread: &RtThread,
    stop: &AtomicBool,
    measure: impl FnOnce(&mut MachineClock) -> T + Send,
) -> Result<ExperimentOutcome<T>, ExperimentError> {
    on_one_thread(stop, || {
        let mut clock = MachineClock::best();
        let session = ThreadSession::enter(thread.pinned_to(), thread.policy());
        let cost = StampCost::measure(&mut clock);
        let outcome = measure(&mut clock);
        let facts = ClockFacts::of(&clock, cost, None);
        ExperimentOutcome::of_thread(outcome, facts, session.refused().to_vec())
    })
}

/// Keeps the calling thread on these CPUs. Where that is refused it runs where it may.
pub(crate) fn keep_to(cpus: &[u32]) {
    if !cpus.is_empty() {
        let mut mask = CpuMask::EMPTY;
        cpus.iter().for_each(|&cpu| mask.insert(cpu));
        let _anywhere = affinity::set(0, &mask);
    }
}

/// Watches `loops` until `done`, from a thread on the housekeeping CPUs.
///
/// # Errors
/// No thread could be had.
pub(crate) fn watchdog<'scope, 'env: 'scope, P: Fn() -> u64 + Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    housekeeping: &'env [u32],
    loops: Vec<WatchedProgress<'env, P>>,
    (stop, done): (&'env DatedStop<'env>, &'env AtomicBool),
) -> io::Result<()> {
    spawn::scoped(scope, "punctual-watch", move || {
        keep_to(housekeeping);
        // Above the measuring threads where permitted; below them it still runs, as it has another
        // CPU, or their rests.
        let _as_it_is = scheduler::set(0, SchedPolicy::Fifo(99));
        watch(&loops, stop, done);
    })?;
    Ok(())
}

/// The flag that ends a run, with the instant at which its watchdog set it: releases that passed
/// up to then are of the run. Of a signal no instant is known.
#[derive(Debug)]
pub(crate) struct DatedStop<'a> {
    flag: &'a AtomicBool,
    /// ns on CLOCK_MONOTONIC; the largest number where the watchdog did not set it.
    at_ns: AtomicU64,
}

impl<'a> DatedStop<'a> {
    pub(crate) const fn of(flag: &'a AtomicBool) -> Self {
        Self { flag, at_ns: AtomicU64::new(u64::MAX) }
    }
}

impl StopRequest for DatedStop<'_> {
    fn flag(&self) -> &AtomicBool {
        self.flag
    }

    fn requested(&self) -> Option<Instant> {
        // The instant is written before the flag.
        let is_set = self.flag.load(Ordering::Acquire);
        let at_ns = self.at_ns.load(Ordering::Relaxed);
        (is_set && at_ns < u64::MAX).then(|| Instant::from_ns(at_ns))
    }

    fn request(&self, at: Instant) {
        // Where it is set already the run was to end before.
        if !self.flag.load(Ordering::Relaxed) {
            self.at_ns.fetch_min(at.as_ns(), Ordering::Relaxed);
        }
        self.flag.store(true, Ordering::Release);
    }
}

/// Page faults and context switches of the calling thread since it had used `before`.
pub(crate) fn usage_since(before: Usage) -> Usage {
    let after = threads::usage().unwrap_or_default();
    Usage {
        minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
        major_faults: after.major_faults.saturating_sub(before.major_faults),
        voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: after
            .involuntary_switches
            .saturating_sub(before.involuntary_switches),
    }
}

/// The clock that took the stamps of an experiment.
#[derive(Clone, Debug)]
pub struct ClockFacts {
    /// `tsc`, `cntvct` or `vdso`.
    pub name: &'static str,
    /// The reason for which stamps are not the counter's, where they are not.
    pub untrusted: Option<String>,
    /// The counter's rate over the whole experiment.
    pub rate: Option<CounterRate>,
    /// CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW over the whole experiment.
    pub slew: Option<Slew>,
    /// The cost of its stamps.
    pub cost: StampCost,
    /// The trial of the processor's timed pauses.
    pub pauses: PauseTrial,
}

impl ClockFacts {
    /// Of this clock, whose stamps cost that much.
    pub fn of(clock: &MachineClock, cost: StampCost, slew: Option<Slew>) -> Self {
        let untrusted = clocks::mistrust(clock).map(ToString::to_string);
        let (rate, pauses) = (clocks::counter_rate(clock), clocks::pause_trial(clock));
        let name = clock.name();
        Self { name, untrusted, rate, slew, cost, pauses }
    }
}

/// The ends of rings, each list in the order of the rings.
pub(crate) struct RingEnds<'a> {
    pub(crate) rings: Vec<Ring<'a>>,
    pub(crate) drains: Vec<Drain<'a>>,
    pub(crate) views: Vec<RingView<'a>>,
}

impl<'a> RingEnds<'a> {
    /// The ends of a ring in each memory of `storage`, which are emptied.
    ///
    /// # Panics
    /// A memory is too small for a ring: it is made by [`punctual_core::ring::words`].
    pub(crate) fn of(storage: &'a [impl Deref<Target = [AtomicU64]>]) -> Self {
        let (mut rings, mut drains, mut views) = (Vec::new(), Vec::new(), Vec::new());
        for words in storage {
            let SplitRing { ring, drain, view } = ring::split(words).expect("memory for a ring");
            rings.push(ring);
            drains.push(drain);
            views.push(view);
        }
        Self { rings, drains, views }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_has_the_instant_of_the_watchdog_that_was_first() {
        let at = Instant::from_ns;
        let flag = AtomicBool::new(false);
        let stop = DatedStop::of(&flag);
        assert_eq!(stop.requested(), None);
        stop.request(at(7));
        stop.request(at(9));
        assert_eq!((stop.requested(), flag.load(Ordering::Relaxed)), (Some(at(7)), true));
        // A signal was first.
        let stop = DatedStop::of(&flag);
        stop.request(at(7));
        assert_eq!(stop.requested(), None);
    }

    #[test]
    fn a_cpu_of_isolcpus_is_reached_where_there_is_no_other() {
        let list = |text| CpuList::parse(text, 15).expect("a list");
        let cpus = |allowed, isolated| reachable(list(allowed), &list(isolated)).to_string();
        assert_eq!(cpus("0-3", "3"), "0-2");
        assert_eq!(cpus("3", "3"), "3");
        assert_eq!(cpus("0-2", "3"), "0-2");
    }
}
