//! The measurements that a paper asks of its caller. The papers define what is measured; the caller
//! has the machine, the time and the result.

use punctual::RtThread;
use punctual_analysis::interval::Interval;
use punctual_analysis::recording::RunFigures;
use punctual_analysis::scatter::Scatter;
use punctual_core::sample::Sample;
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

/// The outcome of an experiment, and the reports of its loads, a list for each condition.
pub type WithLoads<T> = (T, Vec<Vec<LoadReport>>);

/// A caller that measures for a paper, on one CPU of one machine.
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

    /// The facts read from the machine.
    fn machine(&self) -> &MachineFacts;

    /// A share of the time for one paper, in [0, 1].
    fn share(&self, share: f64) -> Span;

    /// The paths of the settings that tuned conditions have; `None` where nothing may be tuned.
    fn tuned(&self) -> Option<Vec<&str>>;

    /// Runs a loop under each condition, in turns.
    ///
    /// # Errors
    /// Why it cannot be measured.
    fn loops(&mut self, loops: &LoopSet<'_>) -> Result<Vec<MeasuredLoop>, Self::Error> {
        Ok(self.together(&[loops.period_ns], loops)?.pop().unwrap_or_default())
    }

    /// Runs loops of these periods at once on the measured CPU, the shortest above the others,
    /// under each condition in turns: by period in the order given, which is rising, then by
    /// condition. That of `loops` is not looked at. Empty once an end was requested.
    ///
    /// # Errors
    /// Why it cannot be measured.
    fn together(
        &mut self,
        periods_ns: &[u64],
        loops: &LoopSet<'_>,
    ) -> Result<Vec<Vec<MeasuredLoop>>, Self::Error>;

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
    /// The conditions, a loop for each.
    pub conditions: &'a [LoopCondition],
    /// Time of all of them together.
    pub length: Span,
    /// Cycles at the start of each block that are left out.
    pub cold: u32,
    /// Where their releases lie.
    pub phase: LoopPhase,
    /// Samples of each that are kept as they came, from the first one on; 0 for none.
    pub keep: usize,
}

/// Where releases lie on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopPhase {
    /// At multiples of the period, where the kernel's tick may meet them.
    Zero,
    /// Away from the kernel's tick, as far as that is found: a loop in user space cannot keep
    /// interrupts off, but out of their way.
    Quiet,
    /// So many ns after the quiet phase, less than a period.
    AfterQuiet(u64),
}

/// A loop under one condition.
#[derive(Clone, Copy, Debug)]
pub struct LoopCondition {
    /// Its name in results.
    pub name: &'static str,
    /// The wait of the loop.
    pub wait: WaitKind,
    /// The loads, as --load has them.
    pub load: &'static str,
    /// True where the settings of --tune hold while it runs; false without --tune.
    pub tuned: bool,
}

impl LoopCondition {
    /// On the machine as it is, without loads.
    pub const fn idle(name: &'static str, wait: WaitKind) -> Self {
        Self { name, wait, load: "none", tuned: false }
    }
}

/// The figures of a loop under one condition.
#[derive(Clone, Debug)]
pub struct MeasuredLoop {
    /// The name of its condition.
    pub name: String,
    /// Cycles, lateness, interval, grid, histogram.
    pub figures: RunFigures,
    /// CPU time of the loop's thread over wall time, in [0, 1].
    pub cpu_load: Option<f64>,
    /// The part of `cpu_load` that may have been others': what the host took, and the longest gap
    /// in a spin. 0 where none was seen.
    pub stolen: f64,
    /// The interval of early wakes, of a wait that hops to its release.
    pub hop_ns: Option<u64>,
    /// Its first samples as they came, as many as were to be kept; fewer where it had fewer.
    pub first: Vec<Sample>,
    /// Notes of its loads on themselves, sentences for the user.
    pub load_notes: Vec<String>,
}

impl MeasuredLoop {
    /// Scatter of the lateness of its releases, µs.
    pub fn scatter_us(&self) -> Option<Scatter> {
        Some(Scatter::of_run(&self.figures)?.times(1e-3))
    }

    /// A loop of 1 ms with these latenesses, for tests.
    #[cfg(test)]
    pub(crate) fn of_latenesses(latenesses_ns: &[i64], cpu_load: f64, hop_ns: u64) -> Self {
        use punctual_analysis::recording::{Recording, RecordingConfig};
        use punctual_core::time::Period;

        let period = Period::from_ns(1_000_000);
        let mut recording =
            Recording::new(RecordingConfig { period, ..RecordingConfig::default() });
        let sample = |(cycle, &ns): (u64, &i64)| Sample {
            cycle,
            lateness: Span::from_ns(ns),
            ..Sample::default()
        };
        let first: Vec<Sample> = (0..).zip(latenesses_ns).map(sample).collect();
        recording.extend(&first);
        Self {
            name: "rearm".to_owned(),
            figures: recording.finish(0),
            cpu_load: Some(cpu_load),
            stolen: 0.0,
            hop_ns: Some(hop_ns),
            first,
            load_notes: Vec::new(),
        }
    }

    /// Its share of the CPU, %: less what may have been others' at its lower end.
    pub fn cpu_percent(&self) -> Option<Interval> {
        let share = self.cpu_load?;
        let own = (share - self.stolen).max(0.0);
        Some(Interval::between(own, share, share).times(100.0))
    }
}
