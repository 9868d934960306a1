//! Options of comparisons and baselines.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::output::OutputArgs;
use crate::parse;

/// `punctual compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 compared, whatever came out; 1 worse, with --fail-if-worse; \
                        2 could not compare."
)]
pub(crate) struct CompareArgs {
    /// Results to compare, two or more: directories of 'punctual check', result.json files, sample
    /// files. The first is the reference
    #[arg(value_name = "RESULT", num_args = 1.., required_unless_present = "a")]
    pub(crate) results: Vec<PathBuf>,
    /// Several results of the reference, separated by commas; best measured in turn with those of
    /// --b
    #[arg(long, value_name = "RESULTS", value_delimiter = ',', requires = "b")]
    #[arg(conflicts_with = "results")]
    pub(crate) a: Vec<PathBuf>,
    /// Several results of the other side, separated by commas
    #[arg(long, value_name = "RESULTS", value_delimiter = ',', requires = "a")]
    pub(crate) b: Vec<PathBuf>,
    /// Compare also how often this lateness is exceeded; may be given again. It is rounded up to
    /// the end of its histogram bucket, by less than 1 %
    #[arg(
        long = "threshold",
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    pub(crate) thresholds: Vec<parse::Duration>,
    /// Exit 1 if another side is worse than the reference in any respect
    #[arg(long)]
    pub(crate) fail_if_worse: bool,
    /// Compare even a recording with itself, and histograms (which lack the order of cycles) as if
    /// cycles were independent
    #[arg(long)]
    pub(crate) anyway: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Where baselines are.
#[derive(Clone, Debug, Args)]
pub(crate) struct BaselinesDir {
    /// Directory of baselines [default: $XDG_STATE_HOME/punctual/baselines, else
    /// ~/.local/state/punctual/baselines]
    #[arg(long, value_name = "DIR")]
    pub(crate) baselines: Option<PathBuf>,
}

/// Baselines of a measuring subcommand.
#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    /// Save this run as baseline NAME of this machine, for --against
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// Replace an existing baseline of that name
    #[arg(long, requires = "baseline")]
    pub(crate) force: bool,
    /// Compare this run with baseline NAME, and fail (exit 1) if it is worse
    #[arg(long, value_name = "NAME")]
    pub(crate) against: Option<String>,
    /// What a comparison with --against that can tell neither counts as: exit status 0, or 1
    #[arg(long, value_name = "WORD", value_enum, default_value = "pass", requires = "against")]
    pub(crate) undecided: Undecided,
    #[command(flatten)]
    pub(crate) dir: BaselinesDir,
}

/// What an undecided comparison counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Undecided {
    /// Only what is worse fails
    Pass,
    /// What may be worse fails too
    Fail,
}

/// `punctual baseline`.
#[derive(Debug, Subcommand)]
pub(crate) enum BaselineCommand {
    /// List the saved baselines
    List {
        #[command(flatten)]
        dir: BaselinesDir,
    },
    /// Show a baseline: its machine, the facts that matter, its runs
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        dir: BaselinesDir,
    },
    /// Remove a baseline
    Remove {
        /// Its name
        name: String,
        #[command(flatten)]
        dir: BaselinesDir,
    },
}
