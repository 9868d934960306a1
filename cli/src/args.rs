//! Arguments of whatever measures or reads loops: where the report goes, its limits and claims, how
//! those are planned, and what waits begin with.
//!
//! Arguments of one subcommand alone stand with it. Parses and validates; does nothing.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::limit::MetricLimit;
use punctual_core::time::Span;
use punctual_host::root::Root;
use punctual_lab::periodic::BlameWhen;
use punctual_lab::waits::{WAITS, WaitRow};
use punctual_os::scheduler::SchedPolicy;
use punctual_report::UndecidedAs;

use crate::output::{JudgedOutputArgs, OutputArgs};
use crate::parse;
use crate::stored::STATE;

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
    /// Fail unless every run shows this claim (exit 1 where it is shown to be false, else what
    /// --undecided says), with 95 % confidence or as given by '@99%': 'p(lateness>50us)<1e-6',
    /// 'p(|interval|>20us)<1e-4 @99%', 'p(missed)<1e-6'; may be given again. The time that the
    /// claim needs is printed before the measurement, which never runs longer by itself
    #[arg(
        long = "claim",
        value_name = "CLAIM",
        allow_hyphen_values = true,
        value_parser = parse::claim
    )]
    pub(crate) claims: Vec<Ask>,
    /// Fail (exit 1) also where a claim holds only if late releases come alone: too few separate
    /// clusters of them were seen to show whether they do
    #[arg(long, requires = "claims")]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) undecided: UndecidedArgs,
    #[command(flatten)]
    judged_output: JudgedOutputArgs,
    /// Print everything: the machine, all measures, what can be claimed
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// Print the result in one line a loop; what fails is named on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Include the cold cycles at the start of each block, which are left out by default
    #[arg(long)]
    pub(crate) keep_cold: bool,
}

/// The CPUs of loops.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CpusArgs {
    /// The CPUs to measure, as the kernel lists them: 1, 0-3,5 or all [default: as check chooses]
    #[arg(long, short, value_name = "LIST")]
    pub(crate) cpu: Option<String>,
}

/// The periods of loops that run at once.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PeriodsArgs {
    /// The period; several, separated by commas, run at once on each CPU, shorter periods with
    /// higher priority (rate-monotonic); with --for linuxcnc the base and the servo thread's, with
    /// --for mesa the servo thread's [default: 1ms, with --for those that it says]
    #[arg(
        long,
        short,
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    pub(crate) period: Vec<parse::Duration>,
}

/// The lateness that ends a run before its time.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct StopArgs {
    /// End at the first release that is later than this, and fail (exit 1): the result is kept, and
    /// says which release it was and when. The first cycles of a block, which are cold, end nothing
    /// without --keep-cold
    #[arg(
        long = "stop-over",
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    over: Option<parse::Duration>,
}

impl StopArgs {
    /// The lateness beyond which it ends.
    pub(crate) fn over(self) -> Option<Span> {
        self.over.map(|over| over.0)
    }
}

/// The picture of a run on the terminal while it runs.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LiveArgs {
    /// Show how late the loop wakes as a picture while it runs: over time, and all so far; on a
    /// terminal of 40 columns and 10 lines at least, else lines
    #[arg(long)]
    pub(crate) live: bool,
}

impl ReportArgs {
    /// No limit and no claim, with the cold cycles of each block or without them.
    pub(crate) fn unjudged(keep_cold: bool) -> Self {
        Self { keep_cold, ..Self::default() }
    }

    /// Where the report goes.
    pub(crate) fn output(&self) -> OutputArgs {
        self.judged_output.all()
    }

    /// The detail that is shown, where `usual` is without an option.
    pub(crate) fn detail(&self, usual: Detail) -> Detail {
        Detail::of(self.quiet, self.verbose, usual)
    }
}

impl Detail {
    /// The detail by the options --quiet and --verbose; `usual` without one.
    pub(crate) const fn of(quiet: bool, verbose: bool, usual: Self) -> Self {
        match (quiet, verbose) {
            (true, _) => Self::Line,
            (false, true) => Self::Long,
            (false, false) => usual,
        }
    }
}

/// The result that a judgement counts as which is not decided.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct UndecidedArgs {
    /// What a claim, a comparison or an answer counts as that needs more data than there are
    /// [default: neither, which is exit status 3 where nothing fails]
    #[arg(long = "undecided", value_name = "WORD", value_enum)]
    word: Option<UndecidedWord>,
}

impl UndecidedArgs {
    /// Returns true where the option is given.
    pub(crate) fn is_given(self) -> bool {
        self.word.is_some()
    }

    /// The result that was chosen; without the option the judgement stays open.
    pub(crate) fn counts_as(self) -> UndecidedAs {
        match self.word {
            None => UndecidedAs::Itself,
            Some(UndecidedWord::Pass) => UndecidedAs::Held,
            Some(UndecidedWord::Fail) => UndecidedAs::Failed,
        }
    }
}

/// The results that a judgement may count as which is not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UndecidedWord {
    /// As what holds: exit status 0
    Pass,
    /// As what fails: exit status 1
    Fail,
}

/// Planning of claims.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Print how long it measures, and how many cycles and how much time each --claim needs, and
    /// measure nothing
    #[arg(long, conflicts_with = "junit")]
    pub(crate) plan: bool,
    /// Extremal index for planning claims, in (0, 1], as the claims of an earlier run show it: 1
    /// means that late releases are independent; half the index doubles the time [default: 1,
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

/// The times at which the kernel's events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BlameWord {
    /// Where the kernel allows it; behind the measurement unless it costs little
    Auto,
    /// Where the kernel allows it, while it measures
    On,
    /// Not at all
    Off,
}

/// The recording of the causes of late releases.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct CausesArgs {
    /// Record the kernel's events meanwhile, and name what made releases late. Needs root or
    /// CAP_PERFMON, and makes each release some 1.5 us later, which is measured first and said.
    /// 'auto' records behind the measurement instead, in a tenth of its time, where it is more than
    /// 2 us and 10 % of the median, and beside a baseline; and not in runs of less than 10 s
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, default_missing_value = "on")]
    blame: Option<BlameWord>,
}

impl CausesArgs {
    /// The way that causes are recorded in a run that may be compared with others; `None` for not
    /// at all. `usual` holds without the option.
    pub(crate) fn when(self, usual: BlameWord, is_compared: bool) -> Option<BlameWhen> {
        match self.blame.unwrap_or(usual) {
            BlameWord::Off => None,
            BlameWord::On => Some(BlameWhen::Asked),
            BlameWord::Auto if is_compared => Some(BlameWhen::UnaskedBehind),
            BlameWord::Auto => Some(BlameWhen::Unasked),
        }
    }
}

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

/// The policy of the threads that measure.
#[derive(Debug, Args)]
pub(crate) struct RequestedPolicyArgs {
    /// The scheduling policy to request
    #[arg(long, value_enum, default_value = "fifo")]
    policy: PolicyName,
    /// The priority to request, as the kernel counts
    #[arg(long, default_value_t = PRIORITY, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
}

impl RequestedPolicyArgs {
    /// The policy to request, with its priority where it has one.
    pub(crate) fn policy(&self) -> SchedPolicy {
        self.policy.with(self.priority)
    }
}

/// A way to wait, by its row in the table of them.
#[derive(Clone, Copy)]
pub(crate) struct WaitName(pub(crate) &'static WaitRow);

impl ValueEnum for WaitName {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: [WaitName; WAITS.len()] = {
            let mut names = [WaitName(&WAITS[0]); WAITS.len()];
            let mut at = 0;
            while at < names.len() {
                names[at] = WaitName(&WAITS[at]);
                at += 1;
            }
            names
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

/// Read the facts of a captured machine instead of this one's.
#[derive(Debug, Default, Args)]
pub(crate) struct RootArgs {
    /// Read facts from OUT, written by 'punctual capture OUT', instead of from this machine
    #[arg(long, value_name = "OUT")]
    root: Option<PathBuf>,
}

impl RootArgs {
    /// The directory of the captured machine; `None` for this one.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Where facts are read.
    ///
    /// # Errors
    /// The captured machine cannot be read.
    pub(crate) fn open(&self) -> Result<Root> {
        root(self.path())
    }
}

/// Where the journal of applied settings is.
#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// The directory of the journal
    #[arg(long, value_name = "DIR", default_value = STATE)]
    pub(crate) state: PathBuf,
}

/// The priority that a measuring loop asks for: above the kernel's threaded interrupts (50).
pub(crate) const PRIORITY: u8 = 90;

/// Where facts are read: this machine, or one that was captured.
pub(crate) fn root(captured: Option<&Path>) -> Result<Root> {
    Ok(match captured {
        None => Root::live(),
        Some(dir) => Root::captured(dir)?,
    })
}

/// The part of a report that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// One line a loop.
    Line,
    /// The verdict, its figures, what next.
    Short,
    /// Everything.
    Long,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_recorded_within_and_what_is_compared_only_behind() {
        let when = |blame, is_compared| CausesArgs { blame }.when(BlameWord::Auto, is_compared);
        assert_eq!(when(None, false), Some(BlameWhen::Unasked));
        assert_eq!(when(Some(BlameWord::Auto), true), Some(BlameWhen::UnaskedBehind));
        assert_eq!(when(Some(BlameWord::On), true), Some(BlameWhen::Asked));
        assert_eq!(when(Some(BlameWord::Off), false), None);
        let off = CausesArgs::default().when(BlameWord::Off, false);
        assert_eq!(off, None, "where it is not usual");
    }
}
