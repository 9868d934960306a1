//! Arguments that several subcommands share: where a report goes, its limits and claims, whose
//! facts it names, and the names of policies and waits.
//!
//! Those of one subcommand stand with it. Parses and validates; does nothing.

use std::fmt;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::limit::MetricLimit;
use punctual_lab::waits::{WAITS, WaitRow};
use punctual_os::scheduler::SchedPolicy;

use crate::output::OutputArgs;
use crate::parse;
use crate::view::Detail;

/// Scheduling policies that a loop can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// SCHED_OTHER
    Other,
    /// SCHED_FIFO
    Fifo,
    /// SCHED_RR
    Rr,
}

impl PolicyName {
    /// The policy, with this priority where it has one.
    pub(crate) fn with(self, priority: u8) -> SchedPolicy {
        match self {
            Self::Other => SchedPolicy::Other,
            Self::Fifo => SchedPolicy::Fifo(priority),
            Self::Rr => SchedPolicy::RoundRobin(priority),
        }
    }
}

/// A way to wait, by its row in the table of them.
#[derive(Clone, Copy)]
pub(crate) struct WaitName(pub(super) &'static WaitRow);

impl ValueEnum for WaitName {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: [WaitName; WAITS.len()] = {
            let mut all = [WaitName(&WAITS[0]); WAITS.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = WaitName(&WAITS[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name).help(self.0.help))
    }
}

impl Default for WaitName {
    fn default() -> Self {
        Self(&WAITS[0])
    }
}

impl fmt::Debug for WaitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

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
    /// How much is shown, where `usual` is without an option.
    pub(crate) fn detail(&self, usual: Detail) -> Detail {
        match (self.quiet, self.verbose) {
            (true, _) => Detail::Line,
            (false, true) => Detail::Long,
            (false, false) => usual,
        }
    }
}

/// How claims are planned.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Print how many cycles and how much time each --claim needs, and measure nothing
    #[arg(long, requires = "claims")]
    pub(crate) plan: bool,
    /// Extremal index for planning claims, in (0, 1], as the claims of an earlier run show it: 1
    /// means that late cycles are independent; half the index doubles the time [default: 1,
    /// independent cycles]
    #[arg(long, value_name = "SHARE", requires = "claims", value_parser = parse::theta)]
    pub(crate) theta: Option<f64>,
}

/// What earlier runs learned.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LearnArgs {
    /// Let an adaptive wait learn this machine anew, instead of beginning with what an earlier run
    /// learned and kept
    #[arg(long)]
    pub(crate) relearn: bool,
}

/// Read the facts of a captured machine instead of this one's.
#[derive(Debug, Default, Args)]
pub(crate) struct RootArgs {
    /// Read facts from OUT, written by 'punctual capture OUT', instead of from this machine
    #[arg(long, value_name = "OUT")]
    pub(crate) root: Option<PathBuf>,
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

/// Where journals are, unless another directory is named.
pub(crate) const STATE: &str = "/var/lib/punctual";

/// Where the journal of applied settings is.
#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// The directory of the journal
    #[arg(long, value_name = "DIR", default_value = STATE)]
    pub(crate) state: PathBuf,
}
