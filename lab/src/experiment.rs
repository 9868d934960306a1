//! How every experiment runs: judged for safety, the session entered, loads started and ended, the
//! measurement, what throttling did to it.
//!
//! For the command line. An experiment fills in [`Experiment`]; what it tells while it runs goes to
//! an [`Observer`]. A stop (SIGINT, SIGTERM) ends any of them early with what there is. Never
//! prints; gives facts, no sentences.

mod clock;
mod companion;
mod event;
mod loading;
mod safety;
mod single;
mod standing;
mod steal;

use std::error::Error;
use std::io;
use std::sync::atomic::AtomicBool;

use punctual::disturbance::Disturbance;
use punctual::monitor::Force;
use punctual::session::{ProcessSession, Refusal};
use punctual_host::facts::MachineFacts;
use punctual_os::Errno;
use punctual_os::signal;

use crate::load::{Launcher, LoadReport, LoadSpec};

pub use clock::ClockFacts;
pub(crate) use companion::{Lookout, keep_to, policy_words, watchdog};
pub use event::{ExperimentEvent, ExperimentProgress, LoopSoFar, Observer};
pub use loading::{BackgroundLoads, ConditionChanges, Loading, bounds, startable};
pub use safety::{Caution, Demand, Risk, Taken, Throttling, judge, throttling};
pub(crate) use single::{cpu_of, demand, on_one_thread};
pub use standing::{RunSoFar, Standing, Standings, StandingsWriter};
pub(crate) use steal::StealTicks;

/// An experiment with all its choices made.
pub trait Experiment: Sized {
    /// What it gives, apart from what every experiment does.
    type Outcome;

    /// Its threads, as far as they could take a CPU away from everybody else.
    fn demands(&self) -> Vec<Demand>;

    /// Its conditions: the name of each, and the loads that run under it.
    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)>;

    /// Why it cannot run as requested, where that is known beforehand.
    ///
    /// # Errors
    /// That reason.
    fn check(&self) -> Result<(), Risk> {
        Ok(())
    }

    /// Measures, until its end or until `context.stop` is set.
    ///
    /// # Errors
    /// Why nothing could be measured.
    fn run(self, context: Context<'_, '_>) -> Result<Measured<Self::Outcome>, ExperimentError>;
}

/// What an experiment runs in.
pub struct Context<'a, 'l> {
    /// Its loads, and the way to report how far it is.
    pub loading: &'a mut Loading<'l>,
    /// Set when it is to end early.
    pub stop: &'a AtomicBool,
}

/// Where an experiment runs: the machine and what the caller lends.
pub struct Setting<'a> {
    /// What is known of the machine that measures.
    pub here: &'a MachineFacts,
    /// How a load's process is started.
    pub launcher: &'a dyn Launcher,
    /// Who learns how far it is.
    pub observer: &'a mut dyn Observer,
}

/// What an experiment measured, and what it saw of the machine.
pub struct Measured<T> {
    /// What it gives.
    pub outcome: T,
    /// Why it is over.
    pub end: ExperimentEnd,
    /// What stamps were taken with.
    pub clock: ClockFacts,
    /// What its threads were refused.
    pub refused: Vec<Refusal>,
    /// What happened to the machine, and when on CLOCK_MONOTONIC, in ns.
    pub disturbances: Vec<(u64, Disturbance)>,
    /// What its real-time threads took of their CPUs.
    pub taken: Vec<Taken>,
}

/// An experiment that is over.
#[derive(Debug)]
pub struct FinishedExperiment<T> {
    /// What it gives.
    pub outcome: T,
    /// Why it is over.
    pub end: ExperimentEnd,
    /// What stamps were taken with.
    pub clock: ClockFacts,
    /// Whether all memory was locked.
    pub memory_locked: bool,
    /// Whether idle states were kept away.
    pub idle_states_held: bool,
    /// What the kernel refused, once each.
    pub refused: Vec<Refusal>,
    /// What happened to the machine, and when on CLOCK_MONOTONIC, in ns.
    pub disturbances: Vec<(u64, Disturbance)>,
    /// What the loads of each condition did.
    pub loads: Vec<Vec<LoadReport>>,
    /// What it risked, by its plan.
    pub planned: Vec<Caution>,
    /// What throttling did to it.
    pub throttled: Vec<Caution>,
}

/// Why an experiment is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExperimentEnd {
    /// It came to its end.
    Finished,
    /// It was stopped.
    Stopped,
    /// The link to another machine, or the source of stimuli, was lost: the outcome says how.
    Lost,
    /// The watchdog ended a thread, like this.
    Watchdog(Force),
    /// A load could not be started.
    Load(String),
}

/// Why nothing could be measured.
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
    /// What the caller does with the samples failed.
    Destination(Box<dyn Error + Send + Sync>),
}

impl From<io::Error> for ExperimentError {
    fn from(why: io::Error) -> Self {
        Self::Thread(why)
    }
}

/// Runs an experiment to its end, or to the first SIGINT, SIGTERM or SIGHUP; a second one kills.
///
/// # Errors
/// Why nothing was measured.
pub fn run<E: Experiment>(
    experiment: E,
    setting: Setting<'_>,
) -> Result<FinishedExperiment<E::Outcome>, ExperimentError> {
    let Setting { here, launcher, observer } = setting;
    experiment.check().map_err(ExperimentError::Refused)?;
    let planned = judge(&experiment.demands(), here).map_err(ExperimentError::Refused)?;
    signal::catch_stop().map_err(ExperimentError::Signal)?;
    let process = ProcessSession::enter();
    let mut loading = Loading::new(experiment.conditions(), bounds(here), launcher, observer);
    let context = Context { loading: &mut loading, stop: signal::stop_flag() };
    let measured = experiment.run(context);
    let loads = loading.finish();
    let measured = measured?;
    Ok(FinishedExperiment {
        outcome: measured.outcome,
        end: measured.end,
        clock: measured.clock,
        memory_locked: process.memory_locked(),
        idle_states_held: process.idle_states_held(),
        refused: once_each(process.refused().iter().chain(&measured.refused)),
        disturbances: measured.disturbances,
        loads,
        planned,
        throttled: safety::throttled(&measured.taken, here),
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
