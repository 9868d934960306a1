//! Options that several subcommands share: where a report goes, its limits and claims, whose facts
//! it names.

use std::path::PathBuf;

use clap::Args;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::limit::MetricLimit;

use crate::parse;

/// Where a report goes, and its limits and claims.
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
    pub(crate) limits: Vec<MetricLimit>,
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
    /// of an earlier run gave it; half of it takes twice the time [default: 1, independent cycles]
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
