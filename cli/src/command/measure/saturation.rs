//! `punctual measure saturation`: the highest frequency of stimuli that is served.

use std::path::PathBuf;

use anyhow::{Result, bail};
use punctual_lab::response::SourceName;
use punctual_lab::saturation::SaturationExperiment;

use super::response::another_cpu;
use crate::args::PolicyName;
use crate::command;
use crate::exit::Exit;
use crate::experiment::{self, Machine, words};
use crate::output::Json;
use crate::parse;
use crate::progress::Line;
use crate::report::Report;
use crate::report::body::Body;
use crate::report::measured::SaturationBody;

/// `punctual measure saturation`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What raises stimuli, as for 'measure response'; not the kernel's timer
    #[arg(long, default_value_t)]
    source: SourceName,
    /// The CPU of both stages and of the background [default: an isolated one, else the last that
    /// is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    /// The CPU that raises stimuli, by polling the clock: another one [default: another core]
    #[arg(long, value_name = "CPU")]
    stimulus_cpu: Option<String>,
    /// How long to search at most: half of it unloaded, half with polygons on the same CPU
    #[arg(
        long,
        short,
        default_value = "2min",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// The priority of stage 1, SCHED_FIFO, and of the thread that raises stimuli
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
    /// The priority of stage 2, SCHED_FIFO
    #[arg(
        long,
        value_name = "PRIORITY",
        default_value_t = 70,
        value_parser = clap::value_parser!(u8).range(1..=98)
    )]
    stage2_priority: u8,
    /// Write the result as JSON to FILE; '-' writes JSON to standard output and nothing else
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let here = &machine.here;
    let (cpu, choice) = experiment::one_cpu(args.cpu.as_deref(), here, "both stages run")?;
    let stimulus_cpu = another_cpu(args.stimulus_cpu.as_deref(), cpu, here)?;
    if stimulus_cpu == cpu {
        bail!("saturation needs two CPUs: one raises stimuli by polling, another answers them");
    }
    if args.source.row().by_kernel {
        bail!("--source {}: the kernel raises no stimuli at a chosen load", args.source);
    }
    let json = Json::open(args.json.as_deref())?;
    let started = jiff::Timestamp::now();
    let saturation = SaturationExperiment {
        source: args.source.clone(),
        cpu,
        stimulus_cpu,
        first: PolicyName::Fifo.with(args.priority),
        second: PolicyName::Fifo.with(args.stage2_priority),
        duration: args.duration.0,
    };
    let finished = experiment::run(saturation, here, &mut Line::new()).map_err(words::error)?;
    let envelope = experiment::envelope("measure saturation", &machine, choice, started, &finished);
    let lost = finished.outcome.lost.is_some();
    let body = SaturationBody { saturation: finished.outcome };
    command::write(&Report { envelope, body: Body::Measured(body.into()) }, json)?;
    if lost {
        bail!("the source was lost while it was measured; the result has what there was");
    }
    Ok(Exit::Fine)
}
