//! `punctual measure work`: how long a fixed piece of work takes, idle and under loads.

use anyhow::{Result, bail};
use clap::ValueEnum;
use punctual::RtThread;
use punctual_lab::load::Loads;
use punctual_lab::work::{WORK_SHARE_MAX, WorkExperiment, WorkKind};

use super::periodic::with_idle;
use crate::args::PolicyName;
use crate::command;
use crate::exit::Exit;
use crate::experiment::{self, Machine, words};
use crate::format;
use crate::output::OutputArgs;
use crate::parse;
use crate::progress::Line;
use crate::report::body::Body;
use crate::report::measured::WorkBody;
use crate::report::{self, Report};

/// `punctual measure work`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What kind of work
    #[arg(long, value_enum, default_value = "mixed")]
    kind: KindName,
    /// How long the work takes when nothing disturbs it; at most 80 % of the period
    #[arg(
        long,
        default_value = "200us",
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    work: parse::Duration,
    /// The period
    #[arg(
        long,
        short,
        default_value = "1ms",
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    period: parse::Duration,
    /// How long to measure each condition: idle, and under each load
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// The CPU to measure on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    /// The scheduling policy to request
    #[arg(long, value_enum, default_value = "fifo")]
    policy: PolicyName,
    /// The priority to request, as the kernel counts
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
    /// Loads to run after the idle measurement, as for 'measure periodic'
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    output: OutputArgs,
}

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KindName {
    /// A chain of multiplications, each of which needs the result of the one before
    Integer,
    /// Loads and stores all over 4 MiB
    Memory,
    /// Both in turn
    Mixed,
}

impl KindName {
    fn kind(self) -> WorkKind {
        match self {
            Self::Integer => WorkKind::Integer,
            Self::Memory => WorkKind::Memory,
            Self::Mixed => WorkKind::Mixed,
        }
    }
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let here = &machine.here;
    let (cpu, choice) = experiment::one_cpu(args.cpu.as_deref(), here, "work is measured")?;
    let period = args.period.period()?;
    let share = args.work.0.as_ns() as f64 / period.as_ns() as f64;
    if share > WORK_SHARE_MAX {
        bail!(
            "--work {} takes {} of --period {}; at most {} may be work",
            format::ns(Some(args.work.0.as_ns() as f64)),
            format::share(share),
            format::period(period.as_ns()),
            format::share(WORK_SHARE_MAX),
        );
    }
    let outputs = args.output.open()?;
    let started = jiff::Timestamp::now();
    let work = WorkExperiment {
        thread: RtThread::cpu(cpu).with_policy(args.policy.with(args.priority)),
        period,
        kind: args.kind.kind(),
        work: args.work.0,
        duration: args.duration.0,
        conditions: with_idle(&args.load),
    };
    let finished = experiment::run(work, here, &mut Line::new()).map_err(words::error)?;
    let envelope = experiment::envelope("measure work", &machine, choice, started, &finished);
    let loads = finished.loads.iter().flat_map(|loads| report::loads(loads)).collect();
    let body = WorkBody { work: finished.outcome, loads };
    command::write(&Report { envelope, body: Body::Measured(body.into()) }, outputs)?;
    Ok(Exit::Fine)
}
