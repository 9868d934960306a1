//! The periodic experiment: loops on this machine's clock, under conditions that take turns.
//!
//! For `check`, `measure periodic`, `measure wait`, `soak`, `tune experiment` and papers (NIST's
//! periodic task, LinuxCNC's latency test, cyclictest). Runs threads, never prints; what it learns
//! is returned, and on the way handed to a sink, sample by sample. Analysis is somebody else's.

mod causes;
mod claims;
mod followed;
mod plan;
mod prepared;
mod recordings;
mod stop_over;

use std::error::Error;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual::follow::Reference;
use punctual_core::releases::Releases;
use punctual_core::time::Span;
use punctual_core::wait::{Learned, PausedSpin, Stalls, WakePlan};
use punctual_engine::clocks::MachineClock;
use punctual_engine::disturbance::Disturbance;
use punctual_engine::drain::{SampleFile, Sink};
use punctual_engine::rt_thread::run_before;
use punctual_engine::safety::{STAMPS_IN_A_PERIOD, is_too_short};
use punctual_engine::session::Refusal;
use punctual_os::scheduler::SchedPolicy;
use punctual_os::threads::Usage;

use causes::{LoopRecorder, ReadyLoops};

use crate::cost::RecordCost;
use crate::experiment::{
    BackgroundLoads, ClockFacts, ConditionChanges, Context, Demand, Experiment, ExperimentEnd,
    ExperimentError, ExperimentOutcome, ExperimentProgress, Loading, LoopSoFar, Risk, RunSoFar,
    Taken,
};
pub use crate::experiment::{ConditionBlock, interleave, round, split};
use crate::load::LoadSpec;
use crate::others::OthersOnCpu;
pub use causes::{
    BlameWhen, BlamedCycle, LoopBlamePlan, LoopCauses, NotRecorded, RecordedWhere, first_waiting,
};
pub use claims::{RunClaim, plans};
pub use followed::{FollowedFigures, Moment, follow};
pub use plan::{Condition, KnownWait, LibraryLoop, PeriodicPlan, Stream};
pub use prepared::Prepared;
pub use punctual_engine::wait_policy::{SPIN_PERIOD_MIN, WaitKind};
pub use recordings::{EvaluationConfig, Recordings};
pub use stop_over::{LateRelease, StopOver};

/// Pushes that the cold cost of recording is measured over: 0.2 s before the run.
const COLD_PUSHES: u32 = 200;

/// A periodic experiment with all its choices made.
pub struct PeriodicExperiment<'d, D> {
    /// The streams, conditions and blocks.
    pub plan: PeriodicPlan,
    /// The clock whose time the grids lie on, where it is not CLOCK_MONOTONIC.
    pub follow: Option<Reference>,
    /// Results of earlier runs: waits that learn begin with them.
    pub known: Vec<KnownWait>,
    /// True to measure the cost of recording before the run.
    pub recording_cost: bool,
    /// The way to find the causes of late wakes; `None` to let them be.
    pub blame: Option<LoopBlamePlan>,
    /// The changes to the machine for each condition; `None` for none.
    pub changes: Option<&'d mut dyn ConditionChanges>,
    /// The release that ends it before its time; `None` for none.
    pub stop_over: Option<StopOver>,
    /// The receiver of its samples.
    pub destination: &'d mut D,
}

/// A receiver of the samples of a periodic experiment.
pub trait Destination {
    /// Takes them in, on the drain's thread.
    type Sink: Sink + Send;
    /// The writer of the sample file.
    type File: Write + Send;

    /// Called once everything is known but the samples: the grids are fixed, and `granted` are the
    /// policies that the kernel grants each stream.
    ///
    /// # Errors
    /// Why they cannot be taken; then nothing is run.
    fn begin(
        &mut self,
        prepared: &Prepared,
        granted: &[SchedPolicy],
    ) -> Result<Begun<Self::Sink, Self::File>, Box<dyn Error + Send + Sync>>;

    /// A quantile of the lateness of a stream's wakes under a condition, or under all that count as
    /// one with it, ns: that of this share, in [0, 1]. `None` where too few show it, or it is not
    /// known.
    fn lateness_ns(
        _sink: &Self::Sink,
        _stream: usize,
        _condition: usize,
        _share: f64,
    ) -> Option<u64> {
        None
    }

    /// The figures of each stream under a condition, as far as there are any. While it runs.
    fn so_far(&self, _condition: usize) -> Vec<Option<RunSoFar>> {
        Vec::new()
    }
}

/// A destination that is ready.
pub struct Begun<S, W: Write> {
    /// Takes the samples in.
    pub sink: S,
    /// The sample file, its header written.
    pub file: Option<SampleFile<W>>,
}

/// The result of a periodic experiment.
#[derive(Debug)]
pub struct PeriodicOutcome<S> {
    /// The plan that was run.
    pub plan: PeriodicPlan,
    /// The grid of each run, see [`PeriodicPlan::run_index`].
    pub run_grids: Vec<Releases>,
    /// The sink, which has seen all recorded samples.
    pub sink: S,
    /// By run, see [`PeriodicPlan::run_index`].
    pub runs: Vec<RunOutcome>,
    /// The errors of the grids that followed another clock; `None` where they followed none.
    pub followed: Option<FollowedFigures>,
    /// Cost of recording; `None` where it was not measured.
    pub recording: Option<RecordCost>,
    /// The causes of late wakes of its loops; `None` where they were not to be found.
    pub causes: Option<LoopCauses>,
    /// The release that ended it ([`StopOver`]); `None` where none did.
    pub late: Option<LateRelease>,
    /// The error by which the sample file ends early; `None` where it does not.
    pub file_error: Option<io::Error>,
}

impl<S> PeriodicOutcome<S> {
    /// The sink, and the rest without it.
    pub fn without_sink(self) -> (S, PeriodicOutcome<()>) {
        let Self { plan, run_grids, sink, runs, followed, recording, causes, late, file_error } =
            self;
        let rest = PeriodicOutcome {
            plan,
            run_grids,
            sink: (),
            runs,
            followed,
            recording,
            causes,
            late,
            file_error,
        };
        (sink, rest)
    }
}

impl<D: Destination> Experiment for PeriodicExperiment<'_, D> {
    type Outcome = PeriodicOutcome<D::Sink>;

    fn demands(&self) -> Vec<Demand> {
        self.plan.demands()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        self.plan.conditions.iter().map(|row| (row.name.clone(), row.loads.clone())).collect()
    }

    fn check(&self) -> Result<(), Risk> {
        self.plan.check()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<Self::Outcome>, ExperimentError> {
        let Self { plan, follow: reference, known, recording_cost, blame, changes, .. } = self;
        let Self { stop_over, destination, .. } = self;
        let mut prepared = Prepared::new(plan.clone()).knowing(known).stopping_over(stop_over);
        if let Some(reference) = reference {
            let follower = follow(reference, &plan).start().map_err(ExperimentError::Follow)?;
            prepared = prepared.following(follower);
        }
        refuse_short_periods(&prepared).map_err(ExperimentError::Refused)?;
        let recording = if recording_cost { cost(&plan, prepared.clock()) } else { None };
        let granted = prepared.granted()?;
        let run_grids = prepared.run_grids().to_vec();
        let begun = destination.begin(&prepared, &granted).map_err(ExperimentError::Destination)?;
        let mut recorder = blame.map(LoopRecorder::new);
        let mut background = WithFigures {
            loading: context.loading,
            changes,
            recorder: recorder.as_mut(),
            destination: &*destination,
            plan: &plan,
            stop: context.stop,
        };
        let outcome = prepared.run(begun.sink, begun.file, &mut background, context.stop)?;
        let causes = recorder.map(|recorder| {
            recorder.finish(context.stop, |stream, condition, share| {
                D::lateness_ns(&outcome.sink, stream, condition, share)
            })
        });
        let LoopsOutcome { sink, runs, refused, clock, followed, disturbances, .. } = outcome;
        let LoopsOutcome { file_error, end, late, .. } = outcome;
        let taken = taken(&plan, &runs);
        let outcome = PeriodicOutcome {
            plan,
            run_grids,
            sink,
            runs,
            followed,
            recording,
            causes,
            late,
            file_error,
        };
        Ok(ExperimentOutcome { outcome, end, clock, refused, disturbances, taken })
    }
}

/// Shares of their CPUs that real-time streams took.
fn taken(plan: &PeriodicPlan, runs: &[RunOutcome]) -> Vec<Taken> {
    let share = |(number, run): (usize, &RunOutcome)| {
        let (stream, condition) = (number / plan.conditions.len(), number % plan.conditions.len());
        let real_time = matches!(run.policy, SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_));
        let stream = &plan.streams[stream];
        let cpu = stream.thread.pinned_to().filter(|_| real_time)?;
        Some(Taken { cpu, condition, share: run.cpu_load, period: Some(stream.period) })
    };
    runs.iter().enumerate().filter_map(share).collect()
}

/// The loads of the experiment, and its progress with the figures of each loop.
struct WithFigures<'a, 'l, 'd, D> {
    loading: &'a mut Loading<'l>,
    changes: Option<&'d mut dyn ConditionChanges>,
    recorder: Option<&'a mut LoopRecorder>,
    destination: &'a D,
    plan: &'a PeriodicPlan,
    stop: &'a AtomicBool,
}

impl<D: Destination> BackgroundLoads for WithFigures<'_, '_, '_, D> {
    fn ready(&mut self, tids: &[i32]) {
        let Self { recorder: Some(recorder), loading, plan, stop, .. } = self else { return };
        let left = plan.length();
        let condition = plan.blocks.first().map_or(0, |block| block.condition);
        let progress = ExperimentProgress { left, condition, worst: None, count: 0 };
        recorder.begin(tids, &ReadyLoops { plan, stop }, &mut || loading.progress(&progress));
    }

    fn begin(&mut self, condition: usize, length: Span) -> Result<(), String> {
        self.changes.as_mut().map_or(Ok(()), |changes| changes.begin(condition))?;
        self.loading.begin(condition, length)?;
        if let Some(recorder) = &mut self.recorder {
            recorder.begin_block(self.plan, condition);
        }
        Ok(())
    }

    fn end(&mut self, condition: usize) {
        if let Some(recorder) = &mut self.recorder {
            recorder.end_block();
        }
        self.loading.end(condition);
        if let Some(changes) = &mut self.changes {
            changes.end();
        }
    }

    fn measured(&mut self) -> Vec<ConditionBlock> {
        self.loading.measured();
        let Self { recorder: Some(recorder), loading, plan, stop, .. } = self else {
            return Vec::new();
        };
        let blocks = recorder.blocks_behind(plan);
        let Some(first) = blocks.first() else { return blocks };
        let left = Span::from_ns(blocks.iter().map(|block| block.length.as_ns()).sum());
        let progress =
            ExperimentProgress { left, condition: first.condition, worst: None, count: 0 };
        let is_recorded =
            recorder.begin_behind(&ReadyLoops { plan, stop }, &mut || loading.progress(&progress));
        if is_recorded { blocks } else { Vec::new() }
    }

    fn progress(&mut self, progress: &ExperimentProgress) {
        let runs = self.destination.so_far(progress.condition);
        let so_far = |(stream, run): (&Stream, Option<RunSoFar>)| LoopSoFar {
            cpu: stream.thread.pinned_to(),
            period: stream.period,
            run,
        };
        let loops: Vec<LoopSoFar> = self.plan.streams.iter().zip(runs).map(so_far).collect();
        self.loading.report(progress, &loops);
    }
}

/// The most time for what is found out beforehand and takes some ms: where others keep the CPU of a
/// loop, the loop itself meets them, and its watchdog.
const PREPARED: Duration = Duration::from_secs(1);

/// Cost of recording where the first loop will run, and as it will run. `None` where no thread
/// could be had for it.
fn cost(plan: &PeriodicPlan, mut clock: MachineClock) -> Option<RecordCost> {
    let thread = &plan.streams.first()?.thread;
    let measure = move || RecordCost::measure(&mut clock, COLD_PUSHES);
    run_before(thread, "punctual-cost", PREPARED, measure).ok()??
}

/// A period that the clock's own stamps would fill is refused.
fn refuse_short_periods(prepared: &Prepared) -> Result<(), Risk> {
    let (stamp_ns, times) = (prepared.cost().wake_ns, STAMPS_IN_A_PERIOD);
    let mut periods = prepared.plan().streams.iter().map(|stream| stream.period);
    let short = periods.find(|&period| is_too_short(period, stamp_ns));
    short.map_or(Ok(()), |period| {
        Err(Risk::TooFine { option: "--period", value_ns: period.as_ns(), stamp_ns, times })
    })
}

/// The figures of one stream under one condition, apart from its samples.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Cycles that ran, those included that did not fit in the ring.
    pub cycles: u64,
    /// Releases that never ran.
    pub missed: u64,
    /// Samples that did not fit in the ring.
    pub unrecorded: u64,
    /// Gaps inside spins.
    pub stalls: Stalls,
    /// CPU time of the loop's thread over wall time, in [0, 1].
    pub cpu_load: f64,
    /// Time that its blocks took, in ns.
    pub wall_ns: u64,
    /// Page faults and context switches of the loop's thread.
    pub usage: Usage,
    /// The policy that the thread really had.
    pub policy: SchedPolicy,
    /// The sleeps before a release and the margin, as the wait had them at the end.
    pub approach: WakePlan,
    /// The parameters that the wait learned; `None` where it does not learn.
    pub learned: Option<Learned>,
    /// Time that the processor paused in its spins.
    pub paused: PausedSpin,
    /// True where the wait began with what an earlier run learned.
    pub resumed: bool,
    /// Time that the host took from the stream's CPU during its blocks, ns, in steps of 10 ms;
    /// `None` where the kernel does not report it, or the stream has no CPU of its own.
    pub steal_ns: Option<u64>,
    /// The other threads on the stream's CPU during its blocks, where no load ran; `None` under a
    /// load, and where the stream has no CPU of its own.
    pub others: Option<OthersOnCpu>,
    /// The threads that had the stream's CPU while it was seen waiting for it, under a load too;
    /// `None` where it was not.
    pub kept_waiting: Option<OthersOnCpu>,
}

/// What the loops of an experiment did: its outcome.
#[derive(Debug)]
pub struct LoopsOutcome<S> {
    /// The sink, which has seen all recorded samples.
    pub sink: S,
    /// By run, see [`PeriodicPlan::run_index`].
    pub runs: Vec<RunOutcome>,
    /// The requests that the kernel refused, once each.
    pub refused: Vec<Refusal>,
    /// The clock that took the stamps.
    pub clock: ClockFacts,
    /// The errors of the grids that followed another clock; `None` where they followed none.
    pub followed: Option<FollowedFigures>,
    /// The disturbances of the machine, each with its time on CLOCK_MONOTONIC, in ns.
    pub disturbances: Vec<(u64, Disturbance)>,
    /// The error by which the sample file ends early; `None` where it does not.
    pub file_error: Option<io::Error>,
    /// The reason for its end.
    pub end: ExperimentEnd,
    /// The release that ended it ([`StopOver`]); `None` where none did.
    pub late: Option<LateRelease>,
}
