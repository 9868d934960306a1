//! The periodic experiment: loops on this machine's clock, under conditions that take turns.
//!
//! For `check`, `measure periodic`, `measure wait` and `soak` (NIST's periodic task, LinuxCNC's
//! latency test, cyclictest). Runs threads, never prints; what it learns is returned, and on the
//! way handed to a sink, sample by sample. Analysis is somebody else's.

mod causes;
mod claims;
mod prepared;
mod stop_over;

use std::error::Error;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual::follow::{Follow, Follower, Reference, ServoStatus, Settings};
use punctual::{RtThread, WaitPolicy};
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::compare::series::Builder;
use punctual_analysis::quantile::Probability;
use punctual_analysis::recording::{Recording, RecordingConfig, ReleaseInstants};
use punctual_core::releases::Releases;
use punctual_core::sample::Sample;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::{Adaptive, Learned, PausedSpin, Stalls, WakePlan};
use punctual_engine::clocks::{MachineClock, Vdso};
use punctual_engine::disturbance::Disturbance;
use punctual_engine::drain::{SampleFile, Sink};
use punctual_engine::rt_thread::run_before;
use punctual_engine::safety::{STAMPS_IN_A_PERIOD, is_real_time, is_too_short};
use punctual_engine::session::Refusal;
use punctual_engine::wait_policy::WARM_UP_MAX;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::threads::Usage;

use causes::{LoopRecorder, ReadyLoops};

use crate::cost::RecordCost;
use crate::experiment::{
    BackgroundLoads, ClockFacts, ConditionChanges, Context, Demand, Experiment, ExperimentEnd,
    ExperimentError, ExperimentOutcome, ExperimentProgress, Loading, LoopSoFar, Risk, RunSoFar,
    Standings, StandingsWriter, Taken,
};
pub use crate::experiment::{ConditionBlock, interleave, round, split};
use crate::load::LoadSpec;
use crate::others::OthersOnCpu;
pub use causes::{
    BlameWhen, BlamedCycle, LoopBlamePlan, LoopCauses, NotRecorded, RecordedWhere, first_waiting,
};
pub use claims::{RunClaim, plans};
pub use prepared::Prepared;
pub use punctual_engine::wait_policy::{SPIN_PERIOD_MIN, WaitKind};
pub use stop_over::{LateRelease, StopOver};

/// One loop: a thread with a CPU and a period.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Its thread: the CPU, the policy that it is to have, and the wait.
    pub thread: RtThread,
    /// Its period.
    pub period: Period,
    /// The offset of its grid from multiples of the period on CLOCK_MONOTONIC, in ns.
    pub phase_ns: u64,
}

impl Stream {
    /// The share of a CPU that it takes by its plan, at most; for a sleeping loop next to nothing.
    pub fn cpu_share(&self) -> f64 {
        self.thread.wait_kind().cpu_share(self.period)
    }
}

/// The state of the machine that loops are measured under.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Its name in results: `idle`, `cpu`, …
    pub name: String,
    /// The wait of the streams under it, where not their usual one.
    pub wait: Option<WaitKind>,
    /// The loop that runs under it instead, where that is one as this library makes it by default.
    pub library: Option<LibraryLoop>,
    /// The loads that run meanwhile.
    pub loads: Vec<LoadSpec>,
}

/// A loop with the defaults of [`punctual::Loop`], on the thread and with the period of its stream:
/// the wait of [`RtThread::any`], which learns first, and a phase of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryLoop {
    /// The quiet phase that was found for it ([`crate::quiet`]), ns; 0 where there is none.
    pub phase_ns: u64,
}

/// The wait that an earlier run learned on a machine, for loops like its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownWait {
    /// The CPU.
    pub cpu: u32,
    /// The period.
    pub period: Period,
    /// The share of the CPU that the wait might take.
    pub budget: f64,
    /// The parameters that it learned.
    pub learned: Learned,
}

impl KnownWait {
    /// Returns true where it is of a loop that waits like this.
    fn is_of(&self, stream: &Stream, wait: WaitKind) -> bool {
        (Some(self.cpu), self.period) == (stream.thread.pinned_to(), stream.period)
            && wait == WaitKind::Adaptive(self.budget)
    }
}

/// The earlier result for a stream that waits like this; `None` where there is none.
fn known(waits: &[KnownWait], stream: &Stream, wait: WaitKind) -> Option<Learned> {
    waits.iter().find(|known| known.is_of(stream, wait)).map(|known| known.learned)
}

/// A whole experiment.
#[derive(Clone, Debug)]
pub struct PeriodicPlan {
    /// The loops, which all run in every block.
    pub streams: Vec<Stream>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// The blocks in the order in which they run.
    pub blocks: Vec<ConditionBlock>,
    /// CPUs for all that is not the loop; empty to leave that to the kernel.
    pub housekeeping: Vec<u32>,
    /// Cycles at the start of each block that are marked as cold.
    pub cold: u32,
}

impl PeriodicPlan {
    /// The number of the run of stream `stream` under condition `condition`.
    pub fn run_index(&self, stream: usize, condition: usize) -> usize {
        stream * self.conditions.len() + condition
    }

    /// Returns true where a condition counts as one with others where conditions do: all but the
    /// first, unless it has a wait or a loop of its own.
    pub fn counts_as_one(&self, condition: usize) -> bool {
        let planned = self.conditions.get(condition);
        let waits_alike = |planned: &Condition| planned.wait.is_none() && planned.library.is_none();
        condition > 0 && planned.is_some_and(waits_alike)
    }

    /// The kind of a stream's wait under a condition.
    pub fn wait(&self, stream: &Stream, condition: usize) -> WaitKind {
        self.policy(stream, condition).kind()
    }

    /// The wait policy of a stream under a condition.
    pub fn policy(&self, stream: &Stream, condition: usize) -> WaitPolicy {
        let planned = &self.conditions[condition];
        match (planned.library, planned.wait) {
            (Some(_), _) => *RtThread::any().wait_policy(),
            (None, Some(wait)) => wait.into(),
            (None, None) => *stream.thread.wait_policy(),
        }
    }

    /// The offset of a stream's grid under a condition, ns.
    pub fn phase_ns(&self, stream: &Stream, condition: usize) -> u64 {
        let library = self.conditions[condition].library;
        library.map_or(stream.phase_ns, |library| library.phase_ns)
    }

    /// The longest that a wait may learn before the first block: as long as it takes, but for a
    /// loop of the library, whose users wait no longer than this either.
    fn warm_up_max(&self, stream: &Stream, condition: usize) -> Span {
        match self.conditions[condition].library {
            Some(_) => WARM_UP_MAX,
            None => Adaptive::calibration(stream.period),
        }
    }

    /// Number of runs: one for each stream and condition.
    pub fn runs(&self) -> usize {
        self.streams.len() * self.conditions.len()
    }

    /// Time of all blocks of condition `condition`.
    pub fn length_of(&self, condition: usize) -> Span {
        let blocks = self.blocks.iter().filter(|block| block.condition == condition);
        Span::from_ns(blocks.map(|block| block.length.as_ns()).sum())
    }

    /// The most that its threads may take of their CPUs.
    pub fn demands(&self) -> Vec<Demand> {
        let demand = |stream: &Stream| Demand {
            cpu: stream.thread.pinned_to(),
            real_time: is_real_time(stream.thread.policy()),
            period: stream.period,
            share: stream.cpu_share(),
        };
        self.streams.iter().map(demand).collect()
    }

    /// Refuses a loop that would spin without a rest.
    ///
    /// # Errors
    /// Which period is too short.
    pub fn check(&self) -> Result<(), Risk> {
        let shortest = SPIN_PERIOD_MIN;
        let spins =
            self.streams.iter().filter(|stream| stream.thread.wait_kind() == WaitKind::Spin);
        let mut periods = spins.map(|stream| stream.period);
        let short = periods.find(|period| period.as_ns() < shortest.as_ns().unsigned_abs());
        short.map_or(Ok(()), |period| Err(Risk::NoRest { period, shortest }))
    }

    /// The whole experiment's length.
    pub fn length(&self) -> Span {
        Span::from_ns(self.blocks.iter().map(|block| block.length.as_ns()).sum())
    }
}

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

/// The choices for recordings.
#[derive(Clone, Debug, Default)]
pub struct EvaluationConfig {
    /// True where conditions count as one, too ([`PeriodicPlan::counts_as_one`]).
    pub merge: bool,
    /// True where the cold cycles at the start of each block count.
    pub keep_cold: bool,
    /// Lateness above which cycles are counted.
    pub thresholds_ns: Vec<i64>,
    /// The claims that they are to show.
    pub claims: Vec<Ask>,
    /// Samples of each run that are kept as they came, from the first one on; 0 for none.
    pub first: usize,
}

/// All recordings of an experiment.
///
/// For the drain's thread, as samples come. Constant memory; touches no file.
#[derive(Debug)]
pub struct Recordings {
    /// By run, as the plan counts them.
    pub runs: Vec<Recording>,
    /// By stream: the conditions that count as one. Empty unless requested.
    pub merged: Vec<Recording>,
    /// By run, as `runs`: what a comparison needs.
    pub series: Vec<Builder>,
    /// By run, as `runs`: the first samples, as many as were requested.
    pub first: Vec<Vec<Sample>>,
    first_most: usize,
    /// By condition: whether it counts as one with others.
    as_one: Vec<bool>,
    /// The standing of the claims, by run; those of a merged run stand at each of its conditions.
    standings: StandingsWriter,
}

impl Recordings {
    /// Recordings for each stream and condition of the plan, on the grids of the runs; how the
    /// claims stand goes to `standings`.
    pub fn new(
        run_grids: &[Releases],
        plan: &PeriodicPlan,
        watch: &EvaluationConfig,
        standings: &Standings,
    ) -> Self {
        let setup = |grid: &Releases| RecordingConfig {
            period: Some(grid.period()),
            epoch: grid.first(),
            leave_out_cold: !watch.keep_cold,
            thresholds_ns: watch.thresholds_ns.clone(),
            releases: ReleaseInstants::Known,
        };
        let recording = |grid: &Releases| Recording::new(setup(grid)).watching(&watch.claims);
        let conditions = plan.conditions.len();
        let as_one = (0..conditions).map(|at| watch.merge && plan.counts_as_one(at)).collect();
        // Those that count as one are on the grid of the first.
        let of_streams = || run_grids.iter().step_by(conditions.max(1)).map(recording);
        let series = |grid: &Releases| Builder::new(grid.period().as_ns(), !watch.keep_cold);
        Self {
            runs: run_grids.iter().map(recording).collect(),
            merged: if watch.merge { of_streams().collect() } else { Vec::new() },
            series: run_grids.iter().map(series).collect(),
            first: run_grids.iter().map(|_| Vec::with_capacity(watch.first)).collect(),
            first_most: watch.first,
            as_one,
            standings: standings.writer(),
        }
    }

    /// A quantile of the lateness of a stream's wakes under a condition, or under all that count as
    /// one with it, ns: that of this share, in [0, 1]; 0 where it is an early wake. `None` where
    /// too few show it.
    pub fn lateness_ns(&self, stream: usize, condition: usize, share: f64) -> Option<u64> {
        let merged = self.merged.get(stream).filter(|_| self.as_one.get(condition) == Some(&true));
        let recording = merged.or_else(|| self.runs.get(stream * self.as_one.len() + condition))?;
        let quantile_ns = recording.wakes_so_far(Probability::from_share(share)?)?;
        Some(quantile_ns.max(0).unsigned_abs())
    }
}

impl Sink for Recordings {
    fn take(&mut self, run: usize, samples: &[Sample]) {
        self.runs[run].extend(samples);
        samples.iter().for_each(|sample| self.series[run].push(sample));
        let first = &mut self.first[run];
        let room = self.first_most - first.len();
        first.extend(samples.iter().take(room).copied());
        let (stream, condition) = (run / self.as_one.len(), run % self.as_one.len());
        if self.as_one[condition]
            && let Some(merged) = self.merged.get_mut(stream)
        {
            merged.extend(samples);
            self.standings.look(run, merged);
        } else {
            self.standings.look(run, &self.runs[run]);
        }
    }
}

/// A bend is published so many times the longest period before it comes, and readings are so many
/// times as far apart as that.
const LEAD_PERIODS: i64 = 2;
const READING_LEADS: i64 = 5;

/// The errors of the experiment's grids against the clock that they followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowedFigures {
    /// Drift and errors up to the last reading.
    pub status: ServoStatus,
    /// Readings that failed.
    pub unread: u64,
    /// Bends that were known only after they came.
    pub late: u64,
    /// The settings of the follower.
    pub settings: Settings,
    /// Both timescales at the start.
    pub began: Moment,
    /// And at the end.
    pub ended: Moment,
}

/// One moment on CLOCK_MONOTONIC and on the grid's timescale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// CLOCK_MONOTONIC.
    pub monotonic: Instant,
    /// The grid's time.
    pub grid: Instant,
}

impl Moment {
    /// Now.
    fn now(follower: &Follower) -> Self {
        let monotonic = Instant::from_ns(now_ns(ClockId::Monotonic));
        Self { monotonic, grid: follower.over(Vdso).map().grid(monotonic) }
    }
}

impl FollowedFigures {
    fn of(follower: &Follower, began: Moment) -> Self {
        Self {
            status: follower.status(),
            unread: follower.unread(),
            late: follower.late(),
            settings: follower.settings(),
            began,
            ended: Moment::now(follower),
        }
    }
}

/// The way in which the grids of a plan follow `reference`: each loop knows a bend before it comes,
/// of a step only what is left over whole periods of all of them is slewed in, and the thread that
/// reads keeps to the housekeeping CPUs.
pub fn follow(reference: Reference, plan: &PeriodicPlan) -> Follow {
    let periods = || plan.streams.iter().map(|stream| stream.period.as_ns());
    let longest_ns = i64::try_from(periods().max().unwrap_or(0)).unwrap_or(i64::MAX);
    let lead = Span::from_ns(longest_ns.saturating_mul(LEAD_PERIODS)).max(Span::from_ms(100));
    let every = Span::from_ns(lead.as_ns().saturating_mul(READING_LEADS));
    let period_ns = periods().try_fold(1, common_multiple);
    Follow::new(reference)
        .settings(Settings::default().with_period_ns(period_ns))
        .every(every, lead)
        .cpus(plan.housekeeping.iter().copied())
}

/// `None` where it is beyond the clock's end.
fn common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor.max(1)).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_of_wakes_is_that_of_all_conditions_that_count_as_one() {
        let (us, period) = (1_000, Period::from_ns(1_000_000).expect("positive"));
        let thread = RtThread::cpu(1).fifo(90).wait(WaitKind::Sleep);
        let condition = |name: &str| Condition {
            name: name.to_owned(),
            wait: None,
            library: None,
            loads: Vec::new(),
        };
        let plan = PeriodicPlan {
            streams: vec![Stream { thread, period, phase_ns: 0 }; 2],
            conditions: ["idle", "cpu", "memory"].map(condition).into(),
            blocks: Vec::new(),
            housekeeping: Vec::new(),
            cold: 0,
        };
        let grids = vec![Releases::new(Instant::from_ns(0), period); plan.runs()];
        let quantile = |merge, run: usize, late_us: &[i64], (judged, rank): (usize, usize)| {
            let watch = EvaluationConfig { merge, keep_cold: true, ..EvaluationConfig::default() };
            let standings = Standings::new(&[], plan.runs());
            let mut recordings = Recordings::new(&grids, &plan, &watch, &standings);
            for (at, &late_us) in late_us.iter().enumerate() {
                // Of two conditions in turn, where those are one.
                let run = if merge { run + at % 2 } else { run };
                let (cycle, lateness) = (at as u64, Span::from_ns(late_us * us));
                let flags = punctual_core::sample::Flags::NONE;
                recordings.take(run, &[Sample { cycle, lateness, flags }]);
            }
            recordings.lateness_ns(judged, rank, 0.9)
        };
        let late: Vec<i64> = (1..=100).collect();
        let near = |ns: Option<u64>| ns.is_some_and(|ns| (90_000..93_000).contains(&ns));
        assert!(near(quantile(false, plan.run_index(1, 2), &late, (1, 2))));
        assert_eq!(quantile(false, plan.run_index(1, 2), &late, (1, 1)), None, "nothing ran there");
        assert!(near(quantile(true, plan.run_index(1, 1), &late, (1, 1))), "both loads");
        assert!(near(quantile(true, plan.run_index(1, 1), &late, (1, 2))), "both loads");
        assert_eq!(quantile(false, 0, &late[..5], (0, 0)), None, "too few");
        assert_eq!(quantile(false, 0, &[-3; 20], (0, 0)), Some(0), "none is late");
        assert_eq!(quantile(false, 0, &late, (9, 9)), None);
    }

    #[test]
    fn a_spin_without_a_rest_is_refused() {
        let plan = |period_ns| PeriodicPlan {
            streams: vec![Stream {
                thread: RtThread::cpu(1).fifo(90).wait(WaitKind::Spin),
                period: Period::from_ns(period_ns).expect("positive"),
                phase_ns: 0,
            }],
            conditions: Vec::new(),
            blocks: Vec::new(),
            housekeeping: Vec::new(),
            cold: 0,
        };
        let refused = plan(5_000).check().expect_err("refused");
        assert!(matches!(refused, Risk::NoRest { period, .. } if period.as_ns() == 5_000));
        assert_eq!(plan(40_000).check(), Ok(()));
    }

    #[test]
    fn grids_of_several_periods_have_a_common_one_or_none() {
        assert_eq!(
            [1_000_000, 1_500_000, 3].into_iter().try_fold(1, common_multiple),
            Some(3_000_000)
        );
        assert_eq!([u64::MAX, u64::MAX - 1].into_iter().try_fold(1, common_multiple), None);
    }
}
