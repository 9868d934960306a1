//! Arguments of subcommands, and the options that several of them share.
//!
//! Those of `check`, `measure`, `soak` and `impact` stand with their subcommands. Parses and
//! validates; does nothing.

mod compare;
mod export;
mod names;
mod report;
mod run;
mod sched;
mod tune;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use punctual_import::formats;

use crate::parse;
pub(crate) use compare::{BaselineArgs, BaselineCommand, BaselinesDir, CompareArgs, Undecided};
pub(crate) use export::ExportArgs;
pub(crate) use names::{PolicyName, WaitName};
pub(crate) use report::{LearnArgs, PlanArgs, ReportArgs, RootArgs};
pub(crate) use run::{RunArgs, TaskCommand, TaskExecArgs};
pub(crate) use sched::{
    IsolateArgs, SchedArgs, SchedCommand, SchedRunArgs, SchedSetArgs, SchedShowArgs,
};
pub(crate) use tune::{
    STATE, StateArgs, TuneApplyArgs, TuneCheckArgs, TuneCommand, TuneExperimentArgs, TunePlanArgs,
    TuneScopeArgs, TuneStateArgs, TuneVerifyArgs, WorkloadName,
};

/// `punctual analyse`.
#[derive(Debug, Args)]
pub(crate) struct AnalyseArgs {
    #[arg(help = format!(
        "A sample file, or a result directory of 'punctual check'; a file of another program \
         ({}), recognised by its content (docs/importing.md); or, with --column, CSV with one \
         instant or one lateness per line. Any of them may be compressed with gzip; '-' reads \
         standard input",
        formats::programs()
    ))]
    pub(crate) file: PathBuf,
    /// What a CSV column contains, NAME:UNIT: 'instant:ns' (needs --period) or 'lateness:us'; if
    /// the first line is a header, NAME selects the column
    #[arg(long, value_name = "NAME:UNIT", value_parser = parse::column)]
    pub(crate) column: Option<punctual_import::csv::ColumnSpec>,
    /// The unit of the values, for a file that does not state it: ns, us, ms or s
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
    /// directories; two results are shown side by side
    #[arg(required = true, value_name = "RESULT")]
    pub(crate) results: Vec<PathBuf>,
    /// Write the page to FILE [default: report.html next to the one RESULT, else here]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write each plot also as an SVG and a PNG file into DIR, which is created if necessary
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
}

/// `punctual facts`.
#[derive(Debug, Args)]
pub(crate) struct FactsArgs {
    /// Write the facts as JSON to FILE; '-' writes JSON to standard output and nothing else
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

/// `punctual completions`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// A shell that has completions.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// `punctual man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory to write into; it is created if necessary
    pub(crate) dir: PathBuf,
}
