//! Arguments of `punctual tune`. Parses and validates; does nothing.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use punctual_host::rules::Workload;
use punctual_lab::load::Loads;
use punctual_lab::tuning::CountedTail;

use super::RootArgs;
use crate::command::tune::formats::FormatName;
use crate::output::OutputArgs;
use crate::parse;

/// `punctual tune`.
#[derive(Debug, Subcommand)]
pub(crate) enum TuneCommand {
    /// Judge every setting that changes how late a loop may be: what is wrong, what does nothing,
    /// what could be better; changes nothing
    ///
    /// Compares what was set with what the kernel took: its log, the lists in /sys, interrupts
    /// that still arrive. docs/tuning.md has all rules.
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual tune check\n\
                       \x20 punctual tune check --cpus 2-3 --for servo\n\
                       \x20 punctual capture machine && punctual tune check --root machine")]
    Check(TuneCheckArgs),
    /// Print what would be changed, runtime settings first, boot parameters second; changes nothing
    #[command(after_long_help = "Examples:\n\
                       \x20 punctual tune plan --cpus 2-3 --for servo\n\
                       \x20 punctual tune plan --cpus 3 --for polling --as grub")]
    Plan(TunePlanArgs),
    /// Change the runtime settings of the plan, one at a time; 'tune revert' puts them back
    ///
    /// The old value of each setting is on the disk before it is changed. What a setting shows
    /// afterwards is compared with what was written. Boot parameters are changed with --boot: in
    /// GRUB's files, entries of the Boot Loader Specification, /etc/kernel/cmdline or a Raspberry
    /// Pi's cmdline.txt, whatever this machine has; its own program (update-grub) is run then.
    #[command(after_long_help = "Examples:\n\
                       \x20 sudo punctual tune apply --cpus 3 --for servo\n\
                       \x20 sudo punctual tune apply --only scaling_governor\n\
                       \x20 sudo punctual tune apply --cpus 3 --for servo --boot && sudo reboot")]
    Apply(TuneApplyArgs),
    /// Try the runtime settings of the plan one at a time, keep those that make a loop less late
    ///
    /// A loop runs in blocks: without any setting, and with each in turn. A setting that helps (the
    /// interval of its effect excludes 1, corrected for how many were tried) is measured again in
    /// fresh blocks; those that help both times are tried together, and stay applied. All others
    /// are put back. How settings act on each other is not seen.
    #[command(after_long_help = "Examples:\n\
                       \x20 sudo punctual tune experiment --cpus 3 --duration 30min\n\
                       \x20 sudo punctual tune experiment --load cpu --tail 50us --dry-run")]
    Experiment(TuneExperimentArgs),
    /// Show whether what was applied, and what was booted with, is in effect (exit 1 if not)
    Verify(TuneVerifyArgs),
    /// Put back what was applied, byte for byte, unless it was changed since
    Revert(TuneStateArgs),
    /// Show what is applied and how it stands
    Status(TuneStateArgs),
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

/// `punctual tune apply`.
#[derive(Debug, Args)]
pub(crate) struct TuneApplyArgs {
    #[command(flatten)]
    pub(crate) scope: TuneScopeArgs,
    /// Change only this setting, by its name in the verdicts; may be given again
    #[arg(long, value_name = "SETTING")]
    pub(crate) only: Vec<String>,
    /// Change the boot parameters of the plan too, in the files of the boot loader
    #[arg(long)]
    pub(crate) boot: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// `punctual tune experiment`.
#[derive(Debug, Args)]
pub(crate) struct TuneExperimentArgs {
    #[command(flatten)]
    pub(crate) scope: TuneScopeArgs,
    /// Try only this setting, by its name in the verdicts; may be given again
    #[arg(long, value_name = "SETTING")]
    pub(crate) only: Vec<String>,
    /// How long everything may take
    #[arg(long, short, default_value = "10min", value_parser = parse::duration)]
    pub(crate) duration: parse::Duration,
    /// The period of the loop, on the first of the CPUs
    #[arg(long, short, default_value = "1ms", value_parser = parse::period)]
    pub(crate) period: parse::Duration,
    /// The releases that count: later than this time (50us), or than this quantile without any
    /// setting (p99)
    #[arg(long, value_name = "TIME|QUANTILE", default_value = "p99", value_parser = tail)]
    pub(crate) tail: CountedTail,
    /// Loads that run in every block, as for 'measure periodic'
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    pub(crate) load: Loads,
    /// Put all settings back at the end, also those that help
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// The tail of `--tail`.
fn tail(text: &str) -> Result<CountedTail, String> {
    let wrong = || format!("{text:?} is neither a time (50us) nor a quantile (p99, p99.9)");
    match text.strip_prefix('p') {
        Some(percent) => {
            let share = percent.parse::<f64>().map_err(|_| wrong())? / 100.0;
            (0.5..1.0).contains(&share).then_some(CountedTail::Quantile(share)).ok_or_else(wrong)
        }
        None => {
            let time = parse::duration(text).map_err(|_| wrong())?;
            Ok(CountedTail::Above(time.0.as_ns()))
        }
    }
}

/// `punctual tune verify`.
#[derive(Debug, Args)]
pub(crate) struct TuneVerifyArgs {
    #[command(flatten)]
    pub(crate) scope: TuneScopeArgs,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// `punctual tune revert` and `status`.
#[derive(Debug, Args)]
pub(crate) struct TuneStateArgs {
    #[command(flatten)]
    pub(crate) root: RootArgs,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// Which CPUs are tuned, for what, on which machine.
#[derive(Debug, Args)]
pub(crate) struct TuneScopeArgs {
    /// The CPUs of the loop, as the kernel lists them: 3, 2-3,7 [default: the isolated ones, else
    /// the one that check would measure]
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// What runs on them
    #[arg(long = "for", value_name = "WORKLOAD")]
    pub(crate) workload: Option<WorkloadName>,
    #[command(flatten)]
    pub(crate) root: RootArgs,
}

/// `punctual tune check`.
#[derive(Debug, Args)]
pub(crate) struct TuneCheckArgs {
    #[command(flatten)]
    pub(crate) scope: TuneScopeArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Print also what is good, what does not apply, and where each verdict comes from
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Fail (exit 1) if a setting conflicts or has no effect
    #[arg(long)]
    pub(crate) strict: bool,
}

/// `punctual tune plan`.
#[derive(Debug, Args)]
pub(crate) struct TunePlanArgs {
    #[command(flatten)]
    pub(crate) scope: TuneScopeArgs,
    /// Change only this setting, by its name in the verdicts; may be given again
    #[arg(long, value_name = "SETTING")]
    pub(crate) only: Vec<String>,
    /// How the plan is written
    #[arg(long = "as", value_name = "FORMAT", default_value = "diff")]
    pub(crate) format: FormatName,
    /// Write the plan as JSON to FILE; '-' writes JSON to standard output and nothing else
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
}

/// What runs on the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadName {
    /// Steps of a motor in software: sleeps, periods of 20 to 50 µs
    StepGeneration,
    /// A control loop: sleeps, periods of 100 µs to 10 ms
    Servo,
    /// Sound, on a machine that is used for other things
    Audio,
    /// A loop that never sleeps
    Polling,
    /// The processors of a virtual machine on this host
    VmGuest,
}

impl From<WorkloadName> for Workload {
    fn from(name: WorkloadName) -> Self {
        match name {
            WorkloadName::StepGeneration => Self::StepGeneration,
            WorkloadName::Servo => Self::Servo,
            WorkloadName::Audio => Self::Audio,
            WorkloadName::Polling => Self::Polling,
            WorkloadName::VmGuest => Self::VmGuest,
        }
    }
}
