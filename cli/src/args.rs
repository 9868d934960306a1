//! The command line as data: every subcommand, every option, every default.
//!
//! For `main` and for the man pages, which are made from it. Parses and validates; does nothing.

mod compare;
mod executive;
mod export;
mod periodic;
mod run;
mod soak;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::import::formats;
use punctual_analysis::limit::Limit;
use punctual_lab::load::Loads;

use crate::command::impact::args::Impact;
use crate::parse::{self, Phase};
pub(crate) use compare::{BaselineArgs, BaselineCommand, BaselinesDir, CompareArgs};
pub(crate) use executive::ExecutiveArgs;
pub(crate) use export::ExportArgs;
pub(crate) use periodic::{PeriodicArgs, PolicyName, WaitName};
pub(crate) use run::RunArgs;
pub(crate) use soak::SoakArgs;

/// How punctual is this machine?
///
/// Measures how late Linux wakes a periodic loop on this machine, idle and under load, and says
/// what that is good for.
#[derive(Debug, Parser)]
#[command(name = "punctual", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Exit status: 0 fine; 1 a limit or claim failed; 2 could not run, or unreadable \
                  input."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tell how punctual this machine is: about one minute, no options needed
    Check(CheckArgs),
    /// Run one experiment with every choice open
    Measure {
        #[command(subcommand)]
        experiment: Measure,
    },
    /// Measure for days, over reboots: a campaign in bounded memory and on a bounded disk
    Soak(SoakArgs),
    /// Run the tasks that a file names, each a process of its own, on one grid
    Run(RunArgs),
    /// Judge recorded data without measuring
    Analyse(AnalyseArgs),
    /// Make a page to send of one, two or many results
    Report(ReportPageArgs),
    /// Hold results against each other: what can be told apart, and what it would take
    Compare(CompareArgs),
    /// The baselines that --baseline kept, for --against
    Baseline {
        #[command(subcommand)]
        command: BaselineCommand,
    },
    /// Say what lateness does to an application
    Impact {
        #[command(subcommand)]
        model: Impact,
    },
    /// Write samples and histograms of a result for pandas, DuckDB, HdrHistogram, Prometheus
    Export(ExportArgs),
    /// Show what is known of this machine, each thing with its origin
    Facts(FactsArgs),
    /// Copy the facts of this machine as plain files, without secrets
    Capture(CaptureArgs),
    /// Print the JSON schema of results
    Schema,
    /// Write the man pages into a directory
    Man(ManArgs),
}

/// Experiments.
#[derive(Debug, Subcommand)]
pub(crate) enum Measure {
    /// A loop that does nothing but wake on time: lateness, interval, grid, missed releases
    Periodic(PeriodicArgs),
    /// The ways to wait held against each other on this machine: how late each is, what it costs
    Wait(WaitArgs),
    /// What releasing, dispatching and waiting cost with many tasks, against the ways of others
    Executive(ExecutiveArgs),
}

/// Where a report goes, and what it is held to.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ReportArgs {
    /// Fail (exit 1) unless this holds for every run: 'p99.9<50us', 'max<1ms', 'missed<1',
    /// 'jitter_pp<20us'; may be given again
    #[arg(
        long = "limit",
        value_name = "LIMIT",
        allow_hyphen_values = true,
        value_parser = parse::limit
    )]
    pub(crate) limits: Vec<Limit>,
    /// Fail (exit 1) unless every run shows this, 95 % sure or as sure as '@99%' says:
    /// 'p(lateness>50us)<1e-6', 'p(|interval|>20us)<1e-4 @99%', 'p(missed)<1e-6'; may be given
    /// again. Before measuring it says how long that takes; it never measures longer by itself
    #[arg(
        long = "claim",
        value_name = "CLAIM",
        allow_hyphen_values = true,
        value_parser = parse::claim
    )]
    pub(crate) claims: Vec<Ask>,
    /// Write the result as JSON to FILE, or to standard output alone for '-'
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
    /// Take in the cold cycles at the start of each block, which are left out otherwise
    #[arg(long)]
    pub(crate) keep_cold: bool,
}

/// How claims are planned.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Say how many cycles and how long each --claim takes, and measure nothing
    #[arg(long, requires = "claims")]
    pub(crate) plan: bool,
    /// Extremal index to plan claims with, in (0, 1]: how far late cycles come alone, as the claims
    /// of an earlier run told it; half of it takes twice the time [default: 1, independent cycles]
    #[arg(long, value_name = "SHARE", requires = "claims", value_parser = parse::theta)]
    pub(crate) theta: Option<f64>,
}

/// Read the facts of a captured machine instead of this one's.
#[derive(Debug, Default, Args)]
pub(crate) struct RootArgs {
    /// Read facts from OUT, which 'punctual capture OUT' wrote, instead of from this machine
    #[arg(long, value_name = "OUT")]
    pub(crate) root: Option<PathBuf>,
}

/// `punctual check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// How long to measure, in all
    #[arg(long, default_value = "60s", allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) duration: parse::Duration,
    /// The CPU to measure [default: an isolated one, else the last that is allowed]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<String>,
    /// The loop's period
    #[arg(long, default_value = "1ms", allow_hyphen_values = true, value_parser = parse::period)]
    pub(crate) period: parse::Duration,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: zero, quiet (away from
    /// the kernel's tick) or a duration
    #[arg(long, default_value = "zero", allow_hyphen_values = true, value_parser = parse::phase)]
    pub(crate) phase: Phase,
    /// Directory in which each run gets a directory of its own
    #[arg(long, default_value = "punctual-results", value_name = "DIR")]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) root: RootArgs,
    #[command(flatten)]
    pub(crate) baseline: BaselineArgs,
}

/// `punctual measure wait`.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The CPU to measure [default: an isolated one, else the last that is allowed]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<String>,
    /// The loop's period
    #[arg(long, default_value = "1ms", allow_hyphen_values = true, value_parser = parse::period)]
    pub(crate) period: parse::Duration,
    /// How long to measure, in all; each way has an equal share of it, in turns
    #[arg(long, default_value = "60s", allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) duration: parse::Duration,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: quiet (away from the
    /// kernel's tick), zero or a duration
    #[arg(long, default_value = "quiet", allow_hyphen_values = true, value_parser = parse::phase)]
    pub(crate) phase: Phase,
    /// The share of the CPU that the adaptive way may take
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = parse::share)]
    pub(crate) budget: f64,
    /// What to load the machine with meanwhile, as for 'measure periodic', all at once
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    pub(crate) load: Loads,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) root: RootArgs,
}

/// `punctual analyse`.
#[derive(Debug, Args)]
pub(crate) struct AnalyseArgs {
    #[arg(help = format!(
        "A sample file of punctual's or a directory of 'punctual check'; a file of another program \
         ({}), recognised by its content (docs/importing.md); or, with --column, CSV with one \
         instant or one lateness a line. Each also compressed by gzip; '-' for standard input",
        formats::programs()
    ))]
    pub(crate) file: PathBuf,
    /// What a CSV column holds, NAME:UNIT: 'instant:ns' (needs --period) or 'lateness:us'; where
    /// the first line is a header, NAME picks the column
    #[arg(long, value_name = "NAME:UNIT", value_parser = parse::column)]
    pub(crate) column: Option<punctual_analysis::import::csv::ColumnSpec>,
    /// The unit of the values in a file that does not tell it: ns, us, ms or s
    #[arg(long, value_name = "UNIT", value_parser = parse::unit, conflicts_with = "column")]
    pub(crate) unit: Option<parse::Unit>,
    /// The nominal period of CSV data
    #[arg(long, allow_hyphen_values = true, value_parser = parse::period)]
    pub(crate) period: Option<parse::Duration>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// `punctual report`.
#[derive(Debug, Args)]
pub(crate) struct ReportPageArgs {
    /// Results: a directory of 'punctual check', a result as JSON, or a directory of such
    /// directories; two are set side by side, before and after
    #[arg(required = true, value_name = "RESULT")]
    pub(crate) results: Vec<PathBuf>,
    /// Write the page to FILE [default: report.html beside the one RESULT, else here]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write each plot as an SVG and a PNG file into DIR too; it is made if need be
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
}

/// `punctual facts`.
#[derive(Debug, Args)]
pub(crate) struct FactsArgs {
    /// Write the facts as JSON to FILE, or to standard output alone for '-'
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) root: RootArgs,
}

/// `punctual capture`.
#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {
    /// The directory to write, new or empty
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) root: RootArgs,
}

/// `punctual man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory to write into; it is made if need be
    pub(crate) dir: PathBuf,
}
