//! `punctual measure accuracy`: how exactly a wait ends at an instant of the processor's counter.
//!
//! Maruti's experiment: polling loops of known code, targets that sweep all offsets.

use anyhow::Result;
use punctual::RtThread;
use punctual_lab::accuracy::AccuracyExperiment;

use crate::args::PolicyName;
use crate::command;
use crate::exit::Exit;
use crate::experiment::{self, Machine, words};
use crate::output::OutputArgs;
use crate::parse;
use crate::report::Report;
use crate::report::body::Body;
use crate::report::measured::AccuracyBody;

/// `punctual measure accuracy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The CPU to measure on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    /// How long to measure, in all; the ways to wait take turns, and each is swept at least once
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// The scheduling policy to request
    #[arg(long, value_enum, default_value = "fifo")]
    policy: PolicyName,
    /// The priority to request, as the kernel counts
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let (cpu, choice) =
        experiment::one_cpu(args.cpu.as_deref(), &machine.here, "accuracy is measured")?;
    let outputs = args.output.open()?;
    let started = jiff::Timestamp::now();
    let thread = RtThread::cpu(cpu).with_policy(args.policy.with(args.priority));
    let accuracy = AccuracyExperiment { thread, duration: args.duration.0 };
    let finished = experiment::run(accuracy, &machine.here, &mut ()).map_err(words::error)?;
    let envelope = experiment::envelope("measure accuracy", &machine, choice, started, &finished);
    let body = AccuracyBody { accuracy: finished.outcome };
    command::write(&Report { envelope, body: Body::Measured(body.into()) }, outputs)?;
    Ok(Exit::Fine)
}
