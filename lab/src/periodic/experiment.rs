//! The periodic experiment as the lifecycle of all experiments runs it.
//!
//! Sets loops up on CLOCK_MONOTONIC or on the time of a clock that is followed, finds out what the
//! kernel grants and what recording costs, and hands what is known to whoever takes the samples.

use std::error::Error;
use std::io::{self, Write};

use punctual::clocks::MachineClock;
use punctual::drain::{SampleFile, Sink};
use punctual::follow::Reference;
use punctual::safety::{STAMPS_IN_A_PERIOD, is_too_short};
use punctual::session::ThreadSession;
use punctual::spawn;
use punctual_core::releases::Releases;
use punctual_core::time::Span;
use punctual_os::scheduler::SchedPolicy;

use super::followed::{FollowedFigures, follow};
use super::outcome::{LoopsOutcome, RunOutcome};
use super::plan::{KnownWait, PeriodicPlan};
use super::prepared::Prepared;
use crate::cost::RecordCost;
use crate::experiment::{
    BackgroundLoads, ConditionChanges, Context, Demand, Experiment, ExperimentError,
    ExperimentProgress, Loading, LoopSoFar, Measured, Risk, RunSoFar, Taken,
};
use crate::load::LoadSpec;

/// Pushes that the cold cost of recording is measured over: 0.2 s before the run.
const COLD_PUSHES: u32 = 200;

/// A periodic experiment with all its choices made.
pub struct PeriodicExperiment<'d, D> {
    /// What to run.
    pub plan: PeriodicPlan,
    /// The clock whose time the grids lie on, where it is not CLOCK_MONOTONIC.
    pub follow: Option<Reference>,
    /// What earlier runs learned: waits that learn begin with it.
    pub known: Vec<KnownWait>,
    /// Whether to measure what recording costs, before the run.
    pub recording_cost: bool,
    /// Who changes the machine for each condition, where somebody does.
    pub changes: Option<&'d mut dyn ConditionChanges>,
    /// Where its samples go.
    pub destination: &'d mut D,
}

/// Where the samples of a periodic experiment go.
pub trait Destination {
    /// Takes them in, on the drain's thread.
    type Sink: Sink + Send;
    /// What the sample file is written to.
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

/// What a periodic experiment gives.
#[derive(Debug)]
pub struct PeriodicOutcome<S> {
    /// What was run.
    pub plan: PeriodicPlan,
    /// The grid of each stream.
    pub grids: Vec<Releases>,
    /// The sink, which has seen all recorded samples.
    pub sink: S,
    /// By run, see [`PeriodicPlan::run`].
    pub runs: Vec<RunOutcome>,
    /// How the grids followed another clock, where they did.
    pub followed: Option<FollowedFigures>,
    /// What recording cost, where that was measured.
    pub recording: Option<RecordCost>,
    /// Why the sample file ends early, if it does.
    pub file_error: Option<io::Error>,
}

impl<S> PeriodicOutcome<S> {
    /// The sink, and the rest without it.
    pub fn without_sink(self) -> (S, PeriodicOutcome<()>) {
        let Self { plan, grids, sink, runs, followed, recording, file_error } = self;
        (sink, PeriodicOutcome { plan, grids, sink: (), runs, followed, recording, file_error })
    }
}

impl<D: Destination> Experiment for PeriodicExperiment<'_, D> {
    type Outcome = PeriodicOutcome<D::Sink>;

    fn demands(&self) -> Vec<Demand> {
        self.plan.demands()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        self.plan.conditions.iter().map(|of| (of.name.clone(), of.loads.clone())).collect()
    }

    fn check(&self) -> Result<(), Risk> {
        self.plan.check()
    }

    fn run(self, context: Context<'_, '_>) -> Result<Measured<Self::Outcome>, ExperimentError> {
        let Self { plan, follow: reference, known, recording_cost, changes, destination } = self;
        let mut prepared = Prepared::new(plan.clone()).knowing(known);
        if let Some(reference) = reference {
            let follower = follow(reference, &plan).start().map_err(ExperimentError::Follow)?;
            prepared = prepared.following(follower);
        }
        refuse_short_periods(&prepared).map_err(ExperimentError::Refused)?;
        let recording = if recording_cost { cost(&plan, prepared.clock()) } else { None };
        let granted = prepared.granted()?;
        let grids = prepared.grids().to_vec();
        let begun = destination.begin(&prepared, &granted).map_err(ExperimentError::Destination)?;
        let mut background = WithFigures {
            loading: context.loading,
            changes,
            destination: &*destination,
            plan: &plan,
        };
        let outcome = prepared.run(begun.sink, begun.file, &mut background, context.stop)?;
        let LoopsOutcome { sink, runs, refused, clock, followed, disturbances, file_error, end } =
            outcome;
        let taken = taken(&plan, &runs);
        let outcome = PeriodicOutcome { plan, grids, sink, runs, followed, recording, file_error };
        Ok(Measured { outcome, end, clock, refused, disturbances, taken })
    }
}

/// What real-time streams took of their CPUs.
fn taken(plan: &PeriodicPlan, runs: &[RunOutcome]) -> Vec<Taken> {
    let of = |(number, run): (usize, &RunOutcome)| {
        let (stream, condition) = (number / plan.conditions.len(), number % plan.conditions.len());
        let real_time = matches!(run.policy, SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_));
        let cpu = plan.streams[stream].thread.pinned_to().filter(|_| real_time)?;
        Some(Taken { cpu, condition, share: run.cpu_load })
    };
    runs.iter().enumerate().filter_map(of).collect()
}

/// The loads of the experiment, and its progress with the figures of each loop.
struct WithFigures<'a, 'l, 'd, D> {
    loading: &'a mut Loading<'l>,
    changes: Option<&'d mut dyn ConditionChanges>,
    destination: &'a D,
    plan: &'a PeriodicPlan,
}

impl<D: Destination> BackgroundLoads for WithFigures<'_, '_, '_, D> {
    fn begin(&mut self, condition: usize, length: Span) -> Result<(), String> {
        self.changes.as_mut().map_or(Ok(()), |changes| changes.begin(condition))?;
        self.loading.begin(condition, length)
    }

    fn end(&mut self, condition: usize) {
        self.loading.end(condition);
        if let Some(changes) = &mut self.changes {
            changes.end();
        }
    }

    fn progress(&mut self, progress: &ExperimentProgress) {
        let of = self.destination.so_far(progress.condition);
        let loops = self.plan.streams.iter().zip(of);
        let loops =
            loops.map(|(of, run)| LoopSoFar { cpu: of.thread.pinned_to(), period: of.period, run });
        self.loading.report(progress, &loops.collect::<Vec<_>>());
    }
}

/// What recording costs where the first loop will run, and as it will run. `None` where no thread
/// could be had for it.
fn cost(plan: &PeriodicPlan, mut clock: MachineClock) -> Option<RecordCost> {
    let thread = &plan.streams.first()?.thread;
    let (cpu, policy) = (thread.pinned_to(), thread.policy());
    let measure = move || {
        let _session = ThreadSession::enter(cpu, policy);
        RecordCost::measure(&mut clock, COLD_PUSHES)
    };
    spawn::plain("punctual-cost", measure).ok()?.join().ok()?
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
