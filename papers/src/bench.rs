//! What a paper asks of whoever measures for it. The papers say what is measured; the caller has
//! the machine, the time and the result.

use punctual::RtThread;
use punctual_analysis::recording::RunFigures;
use punctual_core::time::Span;
use punctual_engine::wait_policy::WaitKind;
use punctual_host::facts::MachineFacts;
use punctual_lab::experiment::Experiment;
use punctual_lab::load::{LoadError, LoadReport};

use super::figure::Drawing;

/// The priority of measuring threads.
pub const PRIORITY: u8 = 90;
/// Cycles at the start of each block that loops leave out, unless a paper counts them.
pub const COLD_CYCLES: u32 = 10;

/// What an experiment gave, and what the loads of each condition did.
pub type WithLoads<T> = (T, Vec<Vec<LoadReport>>);

/// What measures for a paper, on one CPU of one machine.
///
/// Once an end was requested it measures nothing more: [`Bench::loops`] is empty then and
/// [`Bench::measure`] is `None`, which the rows of the paper say.
pub trait Bench {
    /// Why a paper cannot be measured.
    type Error: From<LoadError>;

    /// The CPU that is measured.
    fn cpu(&self) -> u32;

    /// The CPU that raises stimuli for it; `None` on one CPU.
    fn other_cpu(&self) -> Option<u32>;

    /// What is known of the machine.
    fn machine(&self) -> &MachineFacts;

    /// A share of the time for one paper, in [0, 1].
    fn share(&self, share: f64) -> Span;

    /// The paths of the settings that tuned conditions have; `None` where nothing may be tuned.
    fn tuned(&self) -> Option<Vec<&str>>;

    /// Runs a loop under each condition, in turns.
    ///
    /// # Errors
    /// Why it cannot be measured.
    fn loops(&mut self, loops: &LoopSet<'_>) -> Result<Vec<MeasuredLoop>, Self::Error>;

    /// Runs an experiment.
    ///
    /// # Errors
    /// Why it cannot be measured.
    fn measure<E: Experiment>(
        &mut self,
        experiment: E,
    ) -> Result<Option<WithLoads<E::Outcome>>, Self::Error>;

    /// Draws figures; those without series are left out.
    fn draw(&mut self, figures: impl IntoIterator<Item = Drawing>);

    /// The measuring thread: on the measured CPU, SCHED_FIFO.
    fn thread(&self) -> RtThread {
        RtThread::cpu(self.cpu()).fifo(PRIORITY)
    }
}

/// Loops of one period under several conditions.
#[derive(Clone, Copy, Debug)]
pub struct LoopSet<'a> {
    /// The period of all of them.
    pub period_ns: u64,
    /// What differs between them.
    pub conditions: &'a [LoopCondition],
    /// How long all of them run together.
    pub length: Span,
    /// Cycles at the start of each block that are left out.
    pub cold: u32,
}

/// A loop under one condition.
#[derive(Clone, Copy, Debug)]
pub struct LoopCondition {
    /// Its name in results.
    pub name: &'static str,
    /// How the loop waits.
    pub wait: WaitKind,
    /// The loads, as --load has them.
    pub load: &'static str,
    /// Whether the settings of --tune hold while it runs; false without --tune.
    pub tuned: bool,
}

impl LoopCondition {
    /// On the machine as it is, without loads.
    pub const fn idle(name: &'static str, wait: WaitKind) -> Self {
        Self { name, wait, load: "none", tuned: false }
    }
}

/// What a loop did under one condition.
#[derive(Clone, Debug)]
pub struct MeasuredLoop {
    /// The name of its condition.
    pub name: String,
    /// Cycles, lateness, interval, grid, histogram.
    pub figures: RunFigures,
    /// CPU time of the loop's thread over wall time, in [0, 1].
    pub cpu_load: Option<f64>,
    /// The interval of early wakes, of a wait that hops to its release.
    pub hop_ns: Option<u64>,
    /// What its loads noted of themselves.
    pub load_notes: Vec<String>,
}
