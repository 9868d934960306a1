//! Arguments of whatever measures or reads loops: where the report goes, its limits and claims, how
//! those are planned, and what waits begin with.
//!
//! Those of one subcommand stand with it, those that commands alone share in `command`. Parses and
//! validates; does nothing.

use clap::Args;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::limit::MetricLimit;

use crate::output::OutputArgs;
use crate::parse;
use crate::view::Detail;

/// Where a report goes, and its limits and claims.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ReportArgs {
    /// Fail (exit 1) unless this limit holds for every run: 'p99.9<50us', 'max<1ms', 'missed<1',
    /// 'jitter_pp<20us'; may be given again
    #[arg(
        long = "limit",
        value_name = "LIMIT",
        allow_hyphen_values = true,
        value_parser = parse::limit
    )]
    pub(crate) limits: Vec<MetricLimit>,
    /// Fail (exit 1) unless every run shows this claim, with 95 % confidence or as given by '@99%':
    /// 'p(lateness>50us)<1e-6', 'p(|interval|>20us)<1e-4 @99%', 'p(missed)<1e-6'; may be given
    /// again. The time that the claim needs is printed before the measurement, which never runs
    /// longer by itself
    #[arg(
        long = "claim",
        value_name = "CLAIM",
        allow_hyphen_values = true,
        value_parser = parse::claim
    )]
    pub(crate) claims: Vec<Ask>,
    /// Fail (exit 1) also where a claim holds only if late cycles come alone: too few separate
    /// clusters of them were seen to show whether they do
    #[arg(long, requires = "claims")]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Print everything: the machine, all measures, what can be claimed
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print the result in one line a loop; what fails is named on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Include the cold cycles at the start of each block, which are left out by default
    #[arg(long)]
    pub(crate) keep_cold: bool,
}

impl ReportArgs {
    /// The detail that is shown, where `usual` is without an option.
    pub(crate) fn detail(&self, usual: Detail) -> Detail {
        match (self.quiet, self.verbose) {
            (true, _) => Detail::Line,
            (false, true) => Detail::Long,
            (false, false) => usual,
        }
    }
}

/// Planning of claims.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Print how many cycles and how much time each --claim needs, and measure nothing
    #[arg(long, requires = "claims")]
    pub(crate) plan: bool,
    /// Extremal index for planning claims, in (0, 1], as the claims of an earlier run show it: 1
    /// means that late cycles are independent; half the index doubles the time [default: 1,
    /// independent cycles]
    #[arg(long, value_name = "SHARE", requires = "claims", value_parser = parse::share)]
    pub(crate) theta: Option<f64>,
}

/// Use of what earlier runs learned.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LearnArgs {
    /// Let an adaptive wait learn this machine anew, instead of beginning with what an earlier run
    /// learned and kept
    #[arg(long)]
    pub(crate) relearn: bool,
}

/// Where journals are, unless another directory is named.
pub(crate) const STATE: &str = "/var/lib/punctual";
