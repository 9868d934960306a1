//! `punctual tune`: what of a machine's settings is wrong, what would change it, changing it and
//! putting it back.
//!
//! Rules and plans are `host`'s, changing settings is `lab`'s; here they meet arguments and pages.

pub(super) mod apply;
mod boot;
mod experiment;
pub(crate) mod formats;
pub(super) mod revert;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use punctual_host::facts::MachineFacts;
use punctual_host::plan::TuningPlan;
use punctual_host::rules::{self, CpuScope, Inputs, RuleVerdict, Workload};
use punctual_host::settings::KernelSettings;
use punctual_host::{Fact, Root, identity, parse_cpus};
use punctual_lab::load::Loads;
use punctual_lab::tuning::{CountedTail, KnobFiles, MachineFiles};
use punctual_report::{Envelope, Report, TuneBody};

use crate::args::{RootArgs, StateArgs};
use crate::cli::PROGRAM;
use crate::exit::Exit;
use crate::output::{self, OutputArgs, OutputTarget, TREE, TreeFiles};
use crate::{format, parse, view};
use formats::{FormatName, Printed};

pub(crate) use experiment::PlannedSettings;

/// `punctual tune`.
#[derive(Debug, clap::Subcommand)]
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

/// `punctual tune apply`.
#[derive(Debug, clap::Args)]
pub(crate) struct TuneApplyArgs {
    #[command(flatten)]
    scope: TuneScopeArgs,
    /// Change only this setting, by its name in the verdicts; may be given again
    #[arg(long, value_name = "SETTING")]
    only: Vec<String>,
    /// Change the boot parameters of the plan too, in the files of the boot loader
    #[arg(long)]
    boot: bool,
    #[command(flatten)]
    state: StateArgs,
}

/// `punctual tune experiment`.
#[derive(Debug, clap::Args)]
pub(crate) struct TuneExperimentArgs {
    #[command(flatten)]
    scope: TuneScopeArgs,
    /// Try only this setting, by its name in the verdicts; may be given again
    #[arg(long, value_name = "SETTING")]
    only: Vec<String>,
    /// How long everything may take
    #[arg(long, short, default_value = "10min", value_parser = parse::duration)]
    duration: parse::Duration,
    /// The period of the loop, on the first of the CPUs
    #[arg(long, short, default_value = "1ms", value_parser = parse::period)]
    period: parse::Duration,
    /// The releases that count: later than this time (50us), or than this quantile without any
    /// setting (p99)
    #[arg(long, value_name = "TIME|QUANTILE", default_value = "p99", value_parser = tail)]
    tail: CountedTail,
    /// Loads that run in every block, as for 'measure periodic'
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    /// Put all settings back at the end, also those that help
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    state: StateArgs,
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
#[derive(Debug, clap::Args)]
pub(crate) struct TuneVerifyArgs {
    #[command(flatten)]
    scope: TuneScopeArgs,
    #[command(flatten)]
    state: StateArgs,
}

/// `punctual tune revert` and `status`.
#[derive(Debug, clap::Args)]
pub(crate) struct TuneStateArgs {
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    state: StateArgs,
}

/// Which CPUs are tuned, for what, on which machine.
#[derive(Debug, clap::Args)]
pub(crate) struct TuneScopeArgs {
    /// The CPUs of the loop, as the kernel lists them: 3, 2-3,7 [default: the isolated ones, else
    /// the one that check would measure]
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// What runs on them
    #[arg(long = "for", value_name = "WORKLOAD")]
    workload: Option<WorkloadName>,
    #[command(flatten)]
    root: RootArgs,
}

impl TuneScopeArgs {
    /// These CPUs of this machine, whatever runs on them.
    pub(crate) fn of_cpus(list: &str) -> Self {
        Self { cpus: Some(list.to_owned()), workload: None, root: RootArgs::default() }
    }
}

/// `punctual tune check`.
#[derive(Debug, clap::Args)]
pub(crate) struct TuneCheckArgs {
    #[command(flatten)]
    scope: TuneScopeArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Print also what is good, what does not apply, and where each verdict comes from
    #[arg(long, short)]
    verbose: bool,
    /// Fail (exit 1) if a setting conflicts or has no effect
    #[arg(long)]
    strict: bool,
}

/// `punctual tune plan`.
#[derive(Debug, clap::Args)]
pub(crate) struct TunePlanArgs {
    #[command(flatten)]
    scope: TuneScopeArgs,
    /// Change only this setting, by its name in the verdicts; may be given again
    #[arg(long, value_name = "SETTING")]
    only: Vec<String>,
    /// How the plan is written
    #[arg(long = "as", value_name = "FORMAT", default_value = "diff")]
    format: FormatName,
    /// Write the plan as JSON to FILE; '-' writes JSON to standard output and nothing else
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// What runs on the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
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

/// Runs the subcommand.
pub(crate) fn run(command: &TuneCommand) -> Result<Exit> {
    match command {
        TuneCommand::Check(args) => check(args),
        TuneCommand::Plan(args) => plan(args),
        TuneCommand::Apply(args) => apply::run(args),
        TuneCommand::Experiment(args) => experiment::run(args),
        TuneCommand::Verify(args) => verify::run(args),
        TuneCommand::Revert(args) => revert::run(args),
        TuneCommand::Status(args) => revert::status(args),
    }
}

/// Shows a line at once. Nobody may be reading any more: what is being done goes on.
pub(super) fn show(line: impl AsRef<str>) {
    let _closed = output::page(&(format::plain(line.as_ref()) + "\n"));
}

/// How long interrupts are watched: those of a network that is in use arrive many times.
const WATCH: Duration = Duration::from_secs(1);

/// The settings of this machine, or of a captured one.
fn files_of(args: &RootArgs) -> Box<dyn KnobFiles> {
    match &args.root {
        Some(tree) => Box::new(TreeFiles::below(tree)),
        None => Box::new(MachineFiles::live()),
    }
}

/// What a journal's settings are those of: this boot, or a directory, whose files stay.
///
/// # Errors
/// Where it cannot be known which boot this is: settings of this one would be taken for those of an
/// earlier one, which went with it.
pub(super) fn boot_of(root: &Root) -> Result<String> {
    if let Some(tree) = root.tree() {
        let tree = tree.canonicalize().with_context(|| tree.display().to_string())?;
        return Ok(format!("{TREE}{}", tree.display()));
    }
    match identity::boot(root) {
        Fact::Known { value, .. } => Ok(value),
        Fact::Absent { origin } => bail!("{UNKNOWN_BOOT}: there is no {origin}"),
        Fact::Unreadable { origin, why } => bail!("{UNKNOWN_BOOT}: {origin}: {why}"),
    }
}

const UNKNOWN_BOOT: &str = "nothing is changed or put back, because it is unknown which boot of \
                            the machine this is, and whether settings went with an earlier one";

/// A machine with the CPUs that are tuned.
pub(super) struct Machine {
    pub(crate) root: Root,
    pub(crate) facts: MachineFacts,
    pub(crate) settings: KernelSettings,
    pub(crate) scope: CpuScope,
    workload: Option<Workload>,
}

impl Machine {
    pub(crate) fn read(args: &TuneScopeArgs) -> Result<Self> {
        let root = super::root(args.root.root.as_deref())?;
        let facts = MachineFacts::collect(&root);
        let requested = args.cpus.as_deref().map(|text| {
            parse_cpus(text, &facts).with_context(|| format!("--cpus {}", text.escape_debug()))
        });
        let scope = CpuScope::of(requested.transpose()?, &facts);
        let settings = KernelSettings::collect(&root);
        Ok(Self { root, facts, settings, scope, workload: args.workload.map(Into::into) })
    }

    /// That CPUs which were named leave one for the other tasks.
    pub(crate) fn leaves_cpus(&self, args: &TuneScopeArgs) -> Result<()> {
        let online = self.facts.cpu.online_cpus.value().cloned().unwrap_or_default();
        if args.cpus.is_some() && online.difference(&self.scope.cpus).is_empty() {
            bail!(
                "--cpus {}: no CPU is left for other tasks; online are {online}",
                self.scope.cpus
            );
        }
        Ok(())
    }

    /// What would be changed; of all that, only these settings where some are named.
    pub(crate) fn plan(&self, only: &[String]) -> Result<TuningPlan> {
        let inputs = self.inputs();
        let verdicts = rules::judge(&inputs);
        let known = |name: &&String| verdicts.iter().any(|of| of.knob == **name);
        if let Some(name) = only.iter().find(|name| !known(name)) {
            bail!(
                "--only {}: no such setting; 'punctual tune check -v' lists them",
                name.escape_debug()
            );
        }
        let mut plan = TuningPlan::of(&inputs, &verdicts, &self.root);
        match only {
            [] => plan.leave_dangerous(),
            only => plan.keep(only),
        }
        Ok(plan)
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            facts: &self.facts,
            settings: &self.settings,
            cpus: &self.scope.cpus,
            workload: self.workload,
        }
    }
}

/// Runs the subcommand.
pub(crate) fn check(args: &TuneCheckArgs) -> Result<Exit> {
    args.output.spare_tree(args.scope.root.root.as_deref())?;
    let outputs = args.output.open()?;
    let mut machine = Machine::read(&args.scope)?;
    let mut envelope = Envelope::of(PROGRAM, "tune check");
    if machine.root.is_live() {
        envelope.started_at = Some(jiff::Timestamp::now().to_string());
        // Counts of interrupts are compared over a while; how long it really was does not matter.
        std::thread::sleep(WATCH);
        machine.settings.watch(&machine.root);
    }
    let verdicts = rules::judge(&machine.inputs());
    let wrong = |verdict| matches!(verdict, RuleVerdict::Conflict | RuleVerdict::NoEffect);
    if args.strict {
        let wrong: Vec<_> = verdicts.iter().filter(|of| wrong(of.verdict)).collect();
        envelope.verdict.ok = wrong.is_empty();
        let reason = |of: &&rules::KnobVerdict| format!("{}: {}", of.knob, of.verdict.word());
        envelope.verdict.reasons.extend(wrong.iter().map(reason));
    }
    envelope.machine = Some(machine.facts);
    let body = TuneBody { cpus: machine.scope.cpus, why: machine.scope.why, verdicts };
    let page = punctual_document::text::rendered(&view::kinds::tune::document(
        &envelope,
        &body,
        args.verbose,
    ));
    let report = Report { envelope, body: body.into() };
    outputs.write(&view::json(&report)?, || view::markdown(&report), page)?;
    Ok(Exit::of(&report))
}

/// Runs the subcommand.
pub(crate) fn plan(args: &TunePlanArgs) -> Result<Exit> {
    output::spare_tree("--json", args.json.as_deref(), args.scope.root.root.as_deref())?;
    let json = OutputTarget::open(args.json.as_deref())?;
    let machine = Machine::read(&args.scope)?;
    machine.leaves_cpus(&args.scope)?;
    let plan = machine.plan(&args.only)?;
    let printed = Printed {
        plan: &plan,
        cpus: &machine.scope.cpus,
        why: &machine.scope.why,
        now: machine.settings.command_line.value(),
    };
    let text = (args.format.0.print)(&printed)?;
    json.write(&view::json(&plan)?, text)?;
    Ok(Exit::Fine)
}
