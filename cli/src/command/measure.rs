//! `punctual measure`: one experiment a file, with its arguments, its plan and what is shown of its
//! result; here they are listed, and here is the life that they share.
//!
//! A new experiment of the lab is a file that implements [`Measuring`] for its arguments and has
//! the section that is shown ([`noise`] is the pattern), and a row of `experiments!`. Loops that
//! become runs of a report (`periodic`, `wait`) have a life of their own, which `check` shares:
//! `experiment::LoopExperiment`.

mod accuracy;
mod executive;
mod noise;
mod periodic;
mod response;
mod saturation;
mod timer;
mod wait;
mod work;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow, bail};
use punctual_document::Section;
use punctual_host::choose::{helper_cpu, parse_cpus};
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::experiment::Experiment;
use punctual_lab::load::LoadReport;
use punctual_report::measured::Measured;
use punctual_report::{self as report, Body, Choice, Load, Report};

use crate::command::unthrottled::Unthrottled;
use crate::command::{Execute, Exit, RequestedPolicyArgs};
use crate::experiment::{self, Machine, words};
use crate::output::OutputArgs;
use crate::progress::Line;

pub(super) use periodic::condition_name;
pub(crate) use periodic::{LoopChoices, PlannedLoops, blocks, wait_kind};

/// `punctual measure`.
#[derive(Debug, clap::Args)]
pub(super) struct MeasureArgs {
    #[command(subcommand)]
    experiment: MeasureCommand,
}

impl Execute for MeasureArgs {
    fn execute(&self) -> Result<Exit> {
        self.experiment.execute()
    }
}

/// The rows: the subcommand's help, its name and arguments, what runs it, and what is shown of its
/// result where `view::kinds` does not say that.
macro_rules! experiments {
    ($($(#[$help:meta])* $name:ident($arguments:ty) => $run:path $(, $shown:path)?;)*) => {
        /// The experiments.
        #[derive(Debug, clap::Subcommand)]
        enum MeasureCommand {
            $($(#[$help])* $name($arguments)),*
        }

        impl Execute for MeasureCommand {
            fn execute(&self) -> Result<Exit> {
                match self {
                    $(Self::$name(arguments) => $run(arguments)),*
                }
            }
        }

        /// What is shown of a result, where the experiment's file says that.
        pub(crate) fn section(measured: &Measured) -> Option<Section> {
            match measured {
                $($(Measured::$name(body) => Some($shown(body)),)?)*
                _ => None,
            }
        }
    };
}

experiments! {
    /// A loop that only wakes on time: lateness, interval, grid, missed releases
    Periodic(periodic::Args) => Execute::execute;
    /// The ways to wait, compared on this machine: how late each is, and what it costs
    Wait(wait::Args) => Execute::execute;
    /// What takes CPUs away from threads that only spin: gaps per CPU, and on all CPUs at once
    Noise(noise::Args) => measure, noise::shown;
    /// What releasing, dispatching and waiting cost with many tasks, compared with other designs
    Executive(executive::Args) => measure;
    /// How exactly a wait ends at an instant of the processor's counter
    ///
    /// Takes no --load: its figures leave out exits that something interrupted, and a load only
    /// adds those.
    Accuracy(accuracy::Args) => measure;
    /// How late timers reach a thread, with work of several kinds behind it
    Timer(timer::Args) => measure;
    /// The highest frequency of stimuli that is served, and what that leaves for others
    Saturation(saturation::Args) => measure;
    /// How long a fixed piece of work takes, idle and under loads: what each period has room for
    Work(work::Args) => measure;
    /// How fast threads answer a stimulus: a stage near the interrupt, and the application's
    Response(response::Args) => measure;
}

/// Arguments that make an experiment of the lab, and what becomes of its outcome.
pub(super) trait Measuring {
    /// Its name in results.
    const NAME: &'static str;
    /// Whether a line shows its progress on a terminal. An experiment that reports none has none.
    const HAS_PROGRESS: bool = true;
    /// The experiment of the lab.
    type Experiment: Experiment;

    /// Where the result goes.
    fn output(&self) -> &OutputArgs;

    /// The captured machine whose facts the result names; `None` for this one.
    fn captured(&self) -> Option<&Path> {
        None
    }

    /// The experiment for a machine. Nothing is changed or written yet.
    ///
    /// # Errors
    /// In one line, which option asks for what cannot be.
    fn plan(&self, machine: &Machine) -> Result<Planned<Self::Experiment>>;

    /// Switches throttling off where that was requested; it is on again after the measurement.
    fn unthrottle(&self, _: &Self::Experiment) -> Result<Option<Unthrottled>> {
        Ok(None)
    }

    /// The part of the result that only this experiment has, and what is said with it.
    fn shown(&self, measured: Outcome<'_, Self::Experiment>) -> Shown;
}

/// An experiment that is chosen.
pub(super) struct Planned<E> {
    /// The experiment.
    pub(super) experiment: E,
    /// The CPUs, and why those.
    pub(super) choice: Choice,
}

/// The outcome of an experiment.
pub(super) struct Outcome<'a, E: Experiment> {
    /// Its figures.
    pub(super) figures: E::Outcome,
    /// The reports of the loads of each condition.
    loads: Vec<Vec<LoadReport>>,
    /// The time that it ran, with its setup.
    took: Duration,
    /// The facts of the machine that measured.
    here: &'a MachineFacts,
}

impl<E: Experiment> Outcome<'_, E> {
    /// The loads of all conditions, as results have them.
    pub(super) fn load_rows(&self) -> Vec<Load> {
        self.loads.iter().flat_map(|loads| report::loads(loads)).collect()
    }
}

/// The part of a result that an outcome gives.
pub(super) struct Shown {
    /// The part of the result that only this experiment has.
    body: Measured,
    /// Warnings for a reader.
    warnings: Vec<String>,
    /// Why it fails although it has a result.
    trouble: Option<Error>,
}

impl Shown {
    /// A result without more to say.
    pub(super) fn body(body: impl Into<Measured>) -> Self {
        Self { body: body.into(), warnings: Vec::new(), trouble: None }
    }
}

/// The life of an experiment: chosen, its output opened, measured, written.
pub(super) fn measure<M: Measuring>(args: &M) -> Result<Exit> {
    let machine = Machine::of(args.captured())?;
    let here = &machine.here;
    let Planned { experiment, choice } = args.plan(&machine)?;
    let outputs = args.output().open()?;
    let unthrottled = args.unthrottle(&experiment)?;
    let (started, begun) = (jiff::Timestamp::now(), Instant::now());
    let finished = if M::HAS_PROGRESS {
        experiment::run(experiment, here, &mut Line::new())
    } else {
        experiment::run(experiment, here, &mut ())
    };
    let took = begun.elapsed();
    // Whatever came of it, the machine is as before.
    let as_before = unthrottled.map_or(Ok(()), Unthrottled::end);
    let finished = finished.map_err(words::error)?;
    let mut envelope = experiment::envelope(M::NAME, &machine, choice, started, &finished);
    let outcome = Outcome { figures: finished.outcome, loads: finished.loads, took, here };
    let Shown { body, warnings, trouble } = args.shown(outcome);
    envelope.warn_first(machine.foreign.clone());
    envelope.warn_of(warnings);
    super::write(&Report { envelope, body: Body::Measured(body) }, outputs)?;
    as_before?;
    trouble.map_or(Ok(Exit::Fine), Err)
}

/// The CPU of an experiment that measures one.
#[derive(Debug, clap::Args)]
pub(super) struct CpuArgs {
    /// The CPU to measure on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
}

impl CpuArgs {
    /// The CPU, and why that; `measured` says what is done on one CPU alone, for a refusal.
    pub(super) fn choose(&self, machine: &Machine, measured: &str) -> Result<(u32, Choice)> {
        experiment::one_cpu(self.cpu.as_deref(), &machine.here, measured)
    }
}

/// The CPU that raises stimuli: as requested, else another one than `cpu`, where there is one.
fn stimulus_cpu(requested: Option<&str>, cpu: u32, here: &MachineFacts) -> Result<u32> {
    match requested {
        Some(text) => match parse_cpus(text, here) {
            Ok(cpus) if cpus.len() == 1 => Ok(cpus.first().unwrap_or(cpu)),
            Ok(_) => bail!("--stimulus-cpu {text}: stimuli are raised on one CPU"),
            Err(why) => bail!("--stimulus-cpu {text}: {why}"),
        },
        None => Ok(helper_cpu(&CpuList::single(cpu), here).unwrap_or(cpu)),
    }
}

/// Why a measurement whose source was lost fails, although it has a result.
fn lost_source() -> Error {
    anyhow!("the source was lost while it was measured; the result has what there was")
}
