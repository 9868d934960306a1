//! `punctual measure work`: how long a fixed piece of work takes, idle and under loads.

use std::path::Path;

use anyhow::{Result, bail};
use clap::ValueEnum;
use punctual::RtThread;
use punctual_lab::load::Loads;
use punctual_lab::work::{WORK_SHARE_MAX, WorkExperiment, WorkKind};
use punctual_report::measured::WorkBody;

use crate::args::{RequestedPolicyArgs, RootArgs};
use crate::experiment::Machine;
use crate::measuring::{CpuArgs, Measuring, Outcome, Planned, Shown, with_idle};
use crate::output::OutputArgs;
use crate::{format, parse};

/// `punctual measure work`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
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
    #[command(flatten)]
    cpu: CpuArgs,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    /// Loads to run after the idle measurement, as for 'measure periodic'
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    root: RootArgs,
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

impl Measuring for Args {
    const NAME: &'static str = "measure work";
    type Experiment = WorkExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<WorkExperiment>> {
        let (cpu, choice) = self.cpu.choose(machine, "work is measured")?;
        let period = self.period.period()?;
        let share = self.work.0.as_ns() as f64 / period.as_ns() as f64;
        if share > WORK_SHARE_MAX {
            bail!(
                "--work {} takes {} of --period {}; at most {} may be work",
                format::ns(Some(self.work.0.as_ns() as f64)),
                format::share(share),
                format::period(period.as_ns()),
                format::share(WORK_SHARE_MAX),
            );
        }
        let experiment = WorkExperiment {
            thread: RtThread::cpu(cpu).with_policy(self.policy.policy()),
            period,
            kind: self.kind.kind(),
            work: self.work.0,
            duration: self.duration.0,
            conditions: with_idle(&self.load),
        };
        Ok(Planned { experiment, choice })
    }

    fn shown(&self, outcome: Outcome<'_, WorkExperiment>) -> Shown {
        let loads = outcome.load_rows();
        Shown::body(WorkBody { work: outcome.figures, loads })
    }
}
