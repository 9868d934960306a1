//! Options of comparisons and baselines.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::parse;

/// `punctual compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 compared, whatever came out; 1 worse, with --fail-if-worse; \
                        2 could not compare."
)]
pub(crate) struct CompareArgs {
    /// Results to hold against each other, two or more: directories of 'punctual check',
    /// result.json files, sample files. The first is the reference
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
    /// Compare also how often this lateness is exceeded; may be given again. It is moved up to the
    /// end of its bucket, by less than 1 %
    #[arg(
        long = "threshold",
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    pub(crate) thresholds: Vec<parse::Duration>,
    /// Exit 1 when another side is worse than the reference, at least somewhere
    #[arg(long)]
    pub(crate) fail_if_worse: bool,
    /// Compare also the same recording with itself, and histograms without an order of cycles, as
    /// if cycles were independent
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Write the result as JSON to FILE, or to standard output alone for '-'
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
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
    /// Keep this run as baseline NAME of this machine, for --against
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// Replace the baseline where there is one of that name
    #[arg(long, requires = "baseline")]
    pub(crate) force: bool,
    /// Hold this run against baseline NAME, and fail (exit 1) where it is worse
    #[arg(long, value_name = "NAME")]
    pub(crate) against: Option<String>,
    #[command(flatten)]
    pub(crate) dir: BaselinesDir,
}

/// `punctual baseline`.
#[derive(Debug, Subcommand)]
pub(crate) enum BaselineCommand {
    /// List the baselines that are kept
    List {
        #[command(flatten)]
        dir: BaselinesDir,
    },
    /// Show what a baseline is about: its machine, the facts that matter, its runs
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
