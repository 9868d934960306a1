//! `punctual measure`: one experiment a file, each with its arguments; here they are listed.

mod accuracy;
mod executive;
mod noise;
mod periodic;
mod response;
mod saturation;
mod timer;
mod wait;
mod work;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;

pub(crate) use executive::experiment as executive_of;
pub(crate) use periodic::{LoopChoices, PlannedLoops, blocks, wait_kind};

/// Experiments.
#[derive(Debug, Subcommand)]
pub(crate) enum Measure {
    /// A loop that only wakes on time: lateness, interval, grid, missed releases
    Periodic(periodic::Args),
    /// The ways to wait, compared on this machine: how late each is, and what it costs
    Wait(wait::Args),
    /// What takes CPUs away from threads that only spin: gaps per CPU, and on all CPUs at once
    Noise(noise::Args),
    /// What releasing, dispatching and waiting cost with many tasks, compared with other designs
    Executive(executive::Args),
    /// How exactly a wait ends at an instant of the processor's counter
    Accuracy(accuracy::Args),
    /// How late timers reach a thread, with work of several kinds behind it
    Timer(timer::Args),
    /// The highest frequency of stimuli that is served, and what that leaves for others
    Saturation(saturation::Args),
    /// How long a fixed piece of work takes, idle and under loads: what each period has room for
    Work(work::Args),
    /// How fast threads answer a stimulus: a stage near the interrupt, and the application's
    Response(response::Args),
}

/// Runs the subcommand.
pub(crate) fn run(experiment: &Measure) -> Result<Exit> {
    match experiment {
        Measure::Periodic(args) => periodic::run(args),
        Measure::Wait(args) => wait::run(args),
        Measure::Noise(args) => noise::run(args),
        Measure::Executive(args) => executive::run(args),
        Measure::Accuracy(args) => accuracy::run(args),
        Measure::Timer(args) => timer::run(args),
        Measure::Work(args) => work::run(args),
        Measure::Saturation(args) => saturation::run(args),
        Measure::Response(args) => response::run(args),
    }
}
