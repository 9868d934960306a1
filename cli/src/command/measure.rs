//! `punctual measure`: one experiment a file, with its arguments, its plan and what is shown of its
//! result; here they are listed.
//!
//! A new experiment of the lab is a file that implements `Measuring` for its arguments and has
//! the section that is shown ([`work`] is the pattern), a row of `experiments!`, and its body in a
//! result (CONTRIBUTING.md has all the steps). Loops that
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

use crate::measuring::{Measurement, measured};

/// `punctual measure`.
#[derive(Debug, clap::Args)]
pub(super) struct MeasureArgs {
    #[command(subcommand)]
    experiment: MeasureCommand,
}

impl MeasureArgs {
    /// Runs the experiment. Writes no result: sections of results are made here, and what writes
    /// them stands above (`writing`).
    ///
    /// # Errors
    /// Nothing was measured.
    pub(super) fn measurement(&self) -> Result<Measurement> {
        self.experiment.measurement()
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

        impl MeasureCommand {
            fn measurement(&self) -> Result<Measurement> {
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
    Periodic(periodic::Args) => periodic::Args::measurement;
    /// The ways to wait, compared on this machine: how late each is, and what it costs
    Wait(wait::Args) => wait::Args::measurement;
    /// What takes CPUs away from threads that only spin: gaps per CPU, and on all CPUs at once
    Noise(noise::Args) => measured, noise::shown;
    /// What releasing, dispatching and waiting cost with many tasks, compared with other designs
    Executive(executive::Args) => measured, executive::shown;
    /// How exactly a wait ends at an instant of the processor's counter
    ///
    /// Takes no --load: its figures leave out exits that something interrupted, and a load only
    /// adds those.
    Accuracy(accuracy::Args) => measured, accuracy::shown;
    /// How late timers reach a thread, with work of several kinds behind it
    Timer(timer::Args) => measured, timer::shown;
    /// The highest frequency of stimuli that is served, and what that leaves for others
    Saturation(saturation::Args) => measured, saturation::shown;
    /// How long a fixed piece of work takes, idle and under loads: what each period has room for
    Work(work::Args) => measured, work::shown;
    /// How fast threads answer a stimulus: a stage near the interrupt, and the application's
    Response(response::Args) => measured, response::shown;
}
