//! `punctual measure`: one experiment a file, with its arguments, its plan and what is shown of its
//! result; here they are listed.
//!
//! A new experiment of the lab is a file that implements [`Measuring`] for its arguments and has
//! the section that is shown ([`noise`] is the pattern), and a row of `experiments!`. Loops that
//! become runs of a report (`periodic`, `wait`) have a life of their own, which `check` shares:
//! `experiment::loops`.

mod accuracy;
pub(crate) mod executive;
mod noise;
mod periodic;
pub(crate) mod response;
mod saturation;
mod timer;
mod wait;
mod work;

use anyhow::Result;
use punctual_document::Section;
use punctual_report::measured::Measured;

use crate::measuring::{FinishedMeasuring, Measuring, measured};
use crate::subcommand::{Execute, Exit, write_in};

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

/// The rows: the subcommand's help, its name and arguments, what runs it, and the section that is
/// made of its body; of runs of loops none.
macro_rules! experiments {
    ($($(#[$help:meta])* $name:ident($arguments:ty) => $run:path $(, $shown:path)?;)*) => {
        /// The experiments.
        #[derive(Debug, clap::Subcommand)]
        enum MeasureCommand {
            $($(#[$help])* $name(Box<$arguments>)),*
        }

        impl Execute for MeasureCommand {
            fn execute(&self) -> Result<Exit> {
                match self {
                    $(Self::$name(arguments) => $run(&**arguments)),*
                }
            }
        }

        /// The section of a result; `None` for one of another command.
        pub(crate) fn section(measured: &Measured) -> Option<Section> {
            Some(match measured {
                $($(Measured::$name(body) => $shown(body),)?)*
                _ => return None,
            })
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
    Executive(executive::Args) => measure, executive::shown;
    /// How exactly a wait ends at an instant of the processor's counter
    ///
    /// Takes no --load: its figures leave out exits that something interrupted, and a load only
    /// adds those.
    Accuracy(accuracy::Args) => measure, accuracy::shown;
    /// How late timers reach a thread, with work of several kinds behind it
    Timer(timer::Args) => measure, timer::shown;
    /// The highest frequency of stimuli that is served, and what that leaves for others
    Saturation(saturation::Args) => measure, saturation::shown;
    /// How long a fixed piece of work takes, idle and under loads: what each period has room for
    Work(work::Args) => measure, work::shown;
    /// How fast threads answer a stimulus: a stage near the interrupt, and the application's
    Response(response::Args) => measure, response::shown;
}

/// Measures, and writes what came of it.
pub(super) fn measure<M: Measuring>(args: &M) -> Result<Exit> {
    let FinishedMeasuring { report, outputs, trouble } = measured(args)?;
    let kept = args.keep(&report);
    write_in(&report, outputs, args.detail())?;
    kept?;
    Exit::after(&report, trouble)
}
