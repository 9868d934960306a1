//! `punctual reproduce`: the experiments of the papers that punctual builds on, on this machine.
//!
//! One file a paper: what it prints, what its own formula gives, what is measured here, and where
//! it errs. The measurements are the lab's.

mod ant;
mod bench;
mod figures;
mod linuxcnc;
mod maruti;
mod nist;
mod scope;
mod wince;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::args::{StateArgs, WorkloadName};
use crate::command;
use crate::command::tune::PlannedSettings;
use crate::exit::Exit;
use crate::experiment::{self, Machine};
use crate::output::OutputArgs;
use crate::report::Report;
use crate::report::reproduced::{ReproduceBody, ReproducedRow};
use bench::Bench;

/// The papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Paper {
    /// Timing jitter of real-time Linux, and its effect on motor control
    Nist,
    /// Tuning the kernel for LinuxCNC
    Linuxcnc,
    /// Benchmarking real-time determinism in Windows CE
    Wince,
    /// Sophisticated periodic execution control (AnT against ART-Linux)
    Ant,
    /// Temporal accuracy on the Pentium Pro (Maruti)
    Maruti,
}

/// `punctual reproduce`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReproduceArgs {
    /// The paper
    #[arg(value_enum, required_unless_present = "all", conflicts_with = "all")]
    paper: Option<Paper>,
    /// All papers, one after the other: about ten minutes
    #[arg(long)]
    all: bool,
    /// Shorter measurements: less than two minutes for all papers, half a minute for one
    #[arg(long)]
    quick: bool,
    /// linuxcnc: measure also with the runtime settings of 'tune plan --for step-generation',
    /// written before each of their blocks and put back after it
    #[arg(long)]
    tune: bool,
    #[command(flatten)]
    state: StateArgs,
    /// The CPU to measure on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Paper {
    /// Its short name.
    fn name(self) -> &'static str {
        match self {
            Self::Nist => "nist",
            Self::Linuxcnc => "linuxcnc",
            Self::Wince => "wince",
            Self::Ant => "ant",
            Self::Maruti => "maruti",
        }
    }

    /// Its rows, measured.
    fn rows(self, bench: &mut Bench<'_>) -> Result<Vec<ReproducedRow>> {
        match self {
            Self::Nist => nist::rows(bench),
            Self::Linuxcnc => linuxcnc::rows(bench),
            Self::Wince => wince::rows(bench),
            Self::Ant => ant::rows(bench),
            Self::Maruti => maruti::rows(bench),
        }
    }
}

/// Runs the subcommand.
pub(crate) fn run(args: &ReproduceArgs) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let (cpu, choice) =
        experiment::one_cpu(args.cpu.as_deref(), &machine.here, "papers are measured")?;
    let papers: Vec<Paper> = match args.paper {
        Some(paper) => vec![paper],
        None => Paper::value_variants().to_vec(),
    };
    let outputs = args.output.open()?;
    let mut bench = Bench::new(&machine, (cpu, choice), args.quick);
    if args.tune {
        bench.tune(PlannedSettings::of(cpu, WorkloadName::StepGeneration, &args.state)?);
    }
    let mut rows = Vec::new();
    for &paper in &papers {
        bench.begin(paper.name());
        rows.extend(paper.rows(&mut bench)?);
    }
    if rows.is_empty() {
        bail!("no paper was measured");
    }
    let papers = papers.into_iter().map(|paper| paper.name().to_owned()).collect();
    let (envelope, runs, figures) = bench.finish();
    if envelope.incomplete {
        rows = rows.into_iter().map(ReproducedRow::ended_early).collect();
    }
    let body = ReproduceBody { papers, quick: args.quick, rows, runs, figures };
    command::write(&Report { envelope, body: body.into() }, outputs)?;
    Ok(Exit::Fine)
}
