//! `punctual tune`: what of a machine's settings is wrong, what would change it, changing it and
//! putting it back.
//!
//! Rules and plans are `host`'s, changing settings is `lab`'s; here they meet arguments and pages.
//! `apply` writes no file that the plan does not print, and of the next boot only what `--boot`
//! names; `revert` writes only settings of the journal that still are as they were left; `verify`
//! and `status` change nothing.

mod boot;
mod experiment;
mod formats;

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::time::Duration;

use anyhow::Result;
use punctual_analysis::plain::shell_word;
use punctual_document::{Block, Frame, Table, words};
use punctual_host::cmdline::Param;
use punctual_host::rules::{self, KnobChange, KnobVerdict, RuleVerdict};
use punctual_host::settings::{IrqPlace, KernelSettings};
use punctual_host::{CpuFormat, CpuList};
use punctual_lab::tuning::{
    self, JournalEntry, KnobFiles, MachineFiles, RevertOutcome, TuningJournal, WantedValue,
};
use punctual_os::Errno;
use punctual_report::{Envelope, TuneBody};

use crate::args::{RootArgs, StateArgs};
use crate::output::{
    JournalFile, JournalName, MarkdownArgs, OutputArgs, SettingsLock, SettingsOwner, TreeFiles,
};
use crate::program::PROGRAM;
use crate::settings::VerdictArgs;
use crate::settings::{
    AppliedCounts, NEVER_CHANGED, RevertedCounts, TuneScopeArgs, TunedMachine, applied_line, are,
    counted, reverted_line, show,
};
use crate::subcommand::{Execute, Exit};
use crate::{format, view};
use formats::{FormatName, PrintedPlan};

use experiment::TuneExperimentArgs;

/// `punctual tune`.
#[derive(Debug, clap::Args)]
pub(super) struct TuneArgs {
    #[command(subcommand)]
    command: TuneCommand,
}

/// Subcommands about settings.
#[derive(Debug, clap::Subcommand)]
enum TuneCommand {
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
    /// Print what would be changed, what helps most first, boot parameters last; changes nothing
    ///
    /// What takes no reboot comes first: settings that change while the machine runs, then what is
    /// left to a person; behind it what takes one: boot parameters, another kernel, firmware. In
    /// each of these what usually gains a loop most comes first, and of equal gain what costs
    /// nothing.
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
    /// Put back what was applied, unless it was changed since
    Revert(TuneStateArgs),
    /// Show what is applied and how it stands
    Status(TuneStatusArgs),
}

/// `punctual tune apply`.
#[derive(Debug, clap::Args)]
struct TuneApplyArgs {
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

/// `punctual tune verify`.
#[derive(Debug, clap::Args)]
struct TuneVerifyArgs {
    #[command(flatten)]
    scope: TuneScopeArgs,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    output: MarkdownArgs,
}

/// `punctual tune revert`.
#[derive(Debug, clap::Args)]
struct TuneStateArgs {
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    state: StateArgs,
}

/// `punctual tune status`.
#[derive(Debug, clap::Args)]
struct TuneStatusArgs {
    #[command(flatten)]
    about: TuneStateArgs,
    #[command(flatten)]
    output: MarkdownArgs,
}

/// `punctual tune check`.
#[derive(Debug, clap::Args)]
struct TuneCheckArgs {
    #[command(flatten)]
    scope: TuneScopeArgs,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    verdicts: VerdictArgs,
}

/// `punctual tune plan`.
#[derive(Debug, clap::Args)]
struct TunePlanArgs {
    #[command(flatten)]
    scope: TuneScopeArgs,
    /// Change only this setting, by its name in the verdicts; may be given again
    #[arg(long, value_name = "SETTING")]
    only: Vec<String>,
    /// How the plan is written
    #[arg(long = "as", value_name = "FORMAT", default_value = "diff")]
    format: FormatName,
    /// Print also what is good, what does not apply, and what makes no loop less late
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Execute for TuneArgs {
    fn execute(&self) -> Result<Exit> {
        match &self.command {
            TuneCommand::Check(args) => check(args),
            TuneCommand::Plan(args) => plan(args),
            TuneCommand::Apply(args) => apply(args),
            TuneCommand::Experiment(args) => experiment::run(args),
            TuneCommand::Verify(args) => verify(args),
            TuneCommand::Revert(args) => revert(args),
            TuneCommand::Status(args) => status(args),
        }
    }
}

/// The time that interrupts are watched: those of a network that is in use arrive many times.
const WATCH: Duration = Duration::from_secs(1);

/// The settings of this machine, or of a captured one.
fn files_of(args: &RootArgs) -> Box<dyn KnobFiles> {
    match args.path() {
        Some(tree) => Box::new(TreeFiles::below(tree)),
        None => Box::new(MachineFiles::live()),
    }
}

/// `punctual tune check`.
fn check(args: &TuneCheckArgs) -> Result<Exit> {
    args.verdicts.output.spare_tree(args.scope.root.path())?;
    let outputs = args.verdicts.output.open()?;
    let mut machine = TunedMachine::read(&args.scope)?;
    machine.leave_impossible(&args.state)?;
    let mut envelope = Envelope::of(PROGRAM, "tune check");
    if machine.root.is_live() {
        envelope.started_at = Some(jiff::Timestamp::now().to_string());
        // Counts of interrupts are compared over a while; how long it really was does not matter.
        std::thread::sleep(WATCH);
        machine.settings.watch(&machine.root, &machine.facts);
    }
    let verdicts = machine.verdicts();
    envelope.machine = Some(machine.facts);
    let body = TuneBody {
        cpus: machine.scope.cpus,
        why: machine.scope.why,
        workload: args.scope.workload_name(),
        program: None,
        verdicts,
    };
    args.verdicts.write(outputs, envelope, body)
}

/// `punctual tune plan`.
fn plan(args: &TunePlanArgs) -> Result<Exit> {
    args.output.spare_tree(args.scope.root.path())?;
    let outputs = args.output.open()?;
    let mut machine = TunedMachine::read(&args.scope)?;
    machine.leave_impossible(&args.state)?;
    machine.leaves_cpus(&args.scope)?;
    let plan = machine.plan(&args.only)?;
    let printed = PrintedPlan::new(&plan, &machine.scope, machine.settings.command_line.value());
    let mut blocks = printed.document(args.verbose);
    if args.verbose {
        blocks.extend(view::kinds::tune::settled(&machine.verdicts()));
    }
    if !plan.is_empty() && machine.root.is_live() {
        let options = same_plan(&machine, &args.scope, &args.only);
        let question = args.scope.question_option();
        let commands = [
            format!("sudo punctual check{question} --baseline before"),
            format!("sudo punctual tune apply{options}"),
            format!("sudo punctual check{question} --against before"),
        ];
        let (column, rows) = ([words("command")], commands.map(|line| vec![line]).to_vec());
        let next = Table::new("", column.clone(), rows.clone());
        blocks.extend([Block::Break, Block::words("next:")]);
        blocks.push(next.brief(Frame::Headless, column, rows).into());
    }
    let (json, heading) = (view::json(&plan)?, "punctual tune plan");
    match args.format.print(&printed)? {
        Some(text) => outputs.write_beside(&json, heading, &blocks, text)?,
        None => outputs.write_document(&json, heading, &blocks)?,
    }
    Ok(Exit::Fine)
}

/// The options with which a command of `tune` makes the same plan: the CPUs, what they are for, the
/// settings that alone are wanted, and the machine.
fn same_plan(machine: &TunedMachine, scope: &TuneScopeArgs, only: &[String]) -> String {
    let tree = scope.root.path().map(|tree| ("--root", tree.to_string_lossy().into_owned()));
    let only = only.iter().map(|name| ("--only", name.clone()));
    let narrowed: String =
        only.chain(tree).map(|(option, word)| format!(" {option} {}", shell_word(&word))).collect();
    format!(" --cpus {}{}{narrowed}", machine.scope.cpus, scope.workload_option())
}

/// `punctual tune apply`.
fn apply(args: &TuneApplyArgs) -> Result<Exit> {
    let (tree, state) = (args.scope.root.path(), &args.state.state);
    let owner = SettingsOwner::of(&args.scope.root.open()?)?;
    let boot = owner.to_string();
    let mut settings = SettingsLock::take(tree, &owner, "tune apply")?;
    let mut journal = JournalFile::begin(&mut settings, state, JournalName::Settings)?;
    let machine = TunedMachine::read(&args.scope)?;
    machine.leaves_cpus(&args.scope)?;
    let plan = machine.plan(&args.only)?;
    let printed = PrintedPlan::new(&plan, &machine.scope, machine.settings.command_line.value());
    let wanted: Vec<WantedValue> =
        plan.writes().map(|write| WantedValue::new(write.path, write.value)).collect();
    let mut files = files_of(&args.scope.root);
    let mut counts = AppliedCounts::default();
    let done = tuning::apply(&wanted, &mut files, &mut journal, &boot, |step| {
        counts.count(&step);
        show(applied_line(&step));
    });
    let undo = format::tune("revert", tree, state);
    show(format!("{counts}; to undo: {undo}"));
    done?;
    let mut failed = counts.refused();
    if args.boot {
        failed += boot::apply(&machine, &plan, &args.scope.root, (&settings, &args.state))?.failed;
    }
    let rest = [
        (!args.boot && !plan.boot.is_empty()).then_some("boot parameters (--boot)"),
        printed.partition().map(|_| "an isolated partition (punctual isolate)"),
        (!plan.by_hand.is_empty()).then_some("what is left to a person"),
    ];
    let rest: Vec<&str> = rest.into_iter().flatten().collect();
    if !rest.is_empty() {
        let options = same_plan(&machine, &args.scope, &args.only);
        let plan = format::command(&format!("punctual tune plan{options}"));
        show(format!("not applied: {}; see {plan}", rest.join(", ")));
    }
    Ok(if failed == 0 { Exit::Fine } else { Exit::Failed })
}

/// `punctual tune revert`.
fn revert(args: &TuneStateArgs) -> Result<Exit> {
    let state = &args.state.state;
    let at_boot = !boot::journal(&args.state)?.entries.is_empty();
    let mut names = Vec::new();
    for name in JournalName::RUNNING {
        let bytes = JournalFile::read(state, name)?;
        names.extend(bytes.is_some_and(|bytes| !bytes.is_empty()).then_some(name));
    }
    if names.is_empty() && !at_boot {
        show("nothing is applied");
        return Ok(Exit::Fine);
    }
    let root = args.root.open()?;
    let owner = SettingsOwner::of(&root)?;
    let boot = owner.to_string();
    let settings = SettingsLock::take(args.root.path(), &owner, "tune revert")?;
    // All of them before any is put back: where one is not to be obeyed, nothing is changed.
    let lock = |name| JournalFile::lock(&settings, state, name);
    let journals: Vec<JournalFile> = names.into_iter().map(lock).collect::<Result<_>>()?;
    let mut counts = RevertedCounts::default();
    if at_boot {
        let outcome = boot::revert(&root, &args.root, (&settings, &args.state))?;
        counts.count_boot_files(outcome.done, outcome.failed);
    }
    for mut journal in journals {
        if earlier_boot(&TuningJournal::load(&mut journal)?, &boot) {
            show("the machine was restarted since: its settings are those of the boot");
        }
        tuning::revert(&mut files_of(&args.root), &mut journal, &boot, |step| {
            counts.count(&step);
            show(reverted_line(&step.entry, &step.outcome));
        })?;
    }
    show(counts.to_string());
    Ok(if counts.left() == 0 { Exit::Fine } else { Exit::Failed })
}

/// `punctual tune status`.
fn status(args: &TuneStatusArgs) -> Result<Exit> {
    let TuneStatusArgs { about: TuneStateArgs { root: place, state }, output } = args;
    let output = output.open(place.path())?;
    let root = place.open()?;
    let at_boot = boot::journal(state)?.entries;
    let mut rows = Vec::new();
    if !at_boot.is_empty() {
        let settings = KernelSettings::collect(&root);
        let now = settings.command_line.value();
        rows.extend(at_boot.iter().map(|entry| boot::standing(entry, place, now)));
    }
    let (mut is_of_earlier_boot, mut counts) = (false, StandingCounts::default());
    for name in JournalName::RUNNING {
        let bytes = JournalFile::read(&state.state, name)?.unwrap_or_default();
        let journal = TuningJournal::parse(&bytes)?;
        if earlier_boot(&journal, &SettingsOwner::of(&root)?.to_string()) {
            is_of_earlier_boot = true;
            continue;
        }
        let files = files_of(place);
        rows.extend(journal.entries.iter().map(|entry| {
            let JournalEntry { path, old, new, .. } = entry;
            let old = entry.shown(old);
            let state = counts.count(entry, standing(entry, &files));
            vec![path.clone(), format!("{old} -> {new}"), state]
        }));
    }
    let mut blocks = Vec::new();
    if is_of_earlier_boot {
        let words = "the machine was restarted since: nothing of the journal is in effect";
        blocks.push(Block::words(words));
    }
    if !rows.is_empty() {
        let columns = ["setting", "applied", "now"].map(words);
        blocks.push(Table::new("", columns, rows).joined().into());
    }
    if counts.changed + counts.never > 0 {
        blocks.extend([Block::Break, Block::words(counts.to_string())]);
    }
    if blocks.is_empty() {
        blocks.push(Block::words("nothing is applied"));
    }
    output.write("punctual tune status", &blocks)?;
    Ok(Exit::Fine)
}

/// The words for what still is as it was applied.
const AS_APPLIED: &str = "as applied";

/// Settings of the journal by how they stand, each once.
#[derive(Debug, Default, Clone, Copy)]
struct StandingCounts {
    /// Those that were changed.
    changed: u32,
    /// Those of them that are as applied.
    as_applied: u32,
    /// Those that could not be set.
    never: u32,
}

impl StandingCounts {
    /// Counts a setting, and says how it stands; `otherwise` where it is not as it was applied.
    fn count(&mut self, entry: &JournalEntry, otherwise: Option<String>) -> String {
        if entry.could_not_be_set() {
            self.never += 1;
        } else {
            self.changed += 1;
            self.as_applied += u32::from(otherwise.is_none());
        }
        otherwise.unwrap_or_else(|| AS_APPLIED.to_owned())
    }
}

impl fmt::Display for StandingCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changed, as_applied, never } = *self;
        if changed == 0 {
            return write!(f, "{} {NEVER_CHANGED}", counted(never));
        }
        let (settings, were, verb) = (counted(changed), was(changed), are(as_applied));
        write!(f, "{as_applied} of {settings} that {were} changed {verb} {AS_APPLIED}")?;
        if never > 0 { write!(f, ", {never} {NEVER_CHANGED}") } else { Ok(()) }
    }
}

/// Tells whether a journal is of a boot before this one.
fn earlier_boot(journal: &TuningJournal, boot: &str) -> bool {
    !journal.entries.is_empty() && journal.boot != boot
}

/// The state of a setting of the journal now; `None` where it is as it was applied.
fn standing(entry: &JournalEntry, files: &impl KnobFiles) -> Option<String> {
    match files.read(&entry.path).map(|now| tuning::state(entry, &now, files)) {
        Ok(RevertOutcome::Restored) => None,
        Ok(RevertOutcome::AsBefore) => Some(match (entry.impossible_here(), entry.refusal) {
            (Some(why), _) => format!("cannot be set here: {why}"),
            (None, Some(Errno(number))) => {
                format!("as before: refused: {}", io::Error::from_raw_os_error(number))
            }
            (None, None) => "as before".to_owned(),
        }),
        Ok(RevertOutcome::Changed { now }) => Some(format!("changed since to {now}")),
        Ok(_) => Some("unknown".to_owned()),
        Err(why) => Some(format!("cannot read it: {why}")),
    }
}

/// `punctual tune verify`.
fn verify(args: &TuneVerifyArgs) -> Result<Exit> {
    let output = args.output.open(args.scope.root.path())?;
    let bytes = JournalFile::read(&args.state.state, JournalName::Settings)?.unwrap_or_default();
    let journal = TuningJournal::parse(&bytes)?;
    let mut machine = TunedMachine::read(&args.scope)?;
    if machine.root.is_live() {
        // As for check: how long it really was does not matter.
        std::thread::sleep(WATCH);
        machine.settings.watch(&machine.root, &machine.facts);
    }
    let verdicts = rules::judge(&machine.inputs());
    let files = files_of(&args.scope.root);
    let mut count = VerifiedCounts::default();
    let mut rows = Vec::new();
    let mut found = |name: &str, state: String| rows.push(vec![name.to_owned(), state]);
    let owner = SettingsOwner::of(&machine.root)?;
    let entries = if journal.boot == owner.to_string() { journal.entries } else { Vec::new() };
    for entry in &entries {
        if let Some(now) = standing(entry, &files) {
            match entry.impossible_here() {
                Some(_) => count.applied.impossible += 1,
                None => count.applied.bad += 1,
            }
            found(&entry.path, format!("{} -> {}: {now}", entry.shown(&entry.old), entry.new));
            continue;
        }
        let effect = Effect::of_irq(entry, &machine.settings).unwrap_or_else(|| {
            still_wanted(entry, &verdicts)
                .map_or(Effect::Good, |verdict| Effect::None(verdict.found.clone()))
        });
        found(&entry.path, count.applied.words(effect));
    }
    let line = machine.settings.command_line.value();
    // Several files may have the same parameters.
    let at_boot = boot::journal(&args.state)?.entries;
    let mut written: Vec<Param> = at_boot.iter().flat_map(boot::written).collect();
    let mut seen = HashSet::new();
    written.retain(|param| seen.insert(param.to_string()));
    let running = line.into_iter().flat_map(|line| &line.params);
    for param in running.clone() {
        let verdict = verdicts.iter().find(|judged| param.is(&judged.knob));
        let is_written = written.contains(param);
        let counts = if is_written { &mut count.written } else { &mut count.booted };
        // One that is given twice is one that the kernel was started with.
        if !(is_written || verdict.is_some() && seen.insert(param.to_string())) {
            continue;
        }
        let Some(judged) = verdict else {
            counts.good += 1;
            found(&param.to_string(), "the kernel was started with it".to_owned());
            continue;
        };
        match judged.verdict {
            RuleVerdict::Conflict | RuleVerdict::NoEffect => counts.bad += 1,
            RuleVerdict::Unknown => counts.unknown += 1,
            _ => counts.good += 1,
        }
        found(&judged.knob, format!("{}: {}", judged.verdict.word(), judged.found));
    }
    for param in written.iter().filter(|param| !running.clone().any(|now| now == *param)) {
        count.written.bad += 1;
        found(&param.to_string(), "the kernel was not started with it".to_owned());
    }
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        blocks.push(Table::new("", ["setting", "now"].map(words), rows).joined().into());
        blocks.push(Block::Break);
    }
    blocks.push(Block::words(count.to_string()));
    output.write("punctual tune verify", &blocks)?;
    Ok(if count.is_good() { Exit::Fine } else { Exit::Failed })
}

/// The effect of a setting that has the value which was applied.
enum Effect {
    Good,
    /// An interrupt goes to these CPUs until it comes once more.
    Waits(CpuList),
    /// Nothing, for this reason.
    None(String),
}

impl Effect {
    /// The effect of a setting that says where an interrupt may go; `None` of any other setting,
    /// and of an interrupt that no device uses.
    fn of_irq(entry: &JournalEntry, settings: &KernelSettings) -> Option<Self> {
        let number =
            entry.path.strip_prefix("/proc/irq/")?.split('/').next()?.parse::<u32>().ok()?;
        let wanted = CpuFormat::of_file(&entry.path)?.parse(&entry.new)?;
        let lines = &settings.interrupts.value()?.lines;
        let line = lines.iter().find(|line| line.number == number)?;
        Some(match line.place(&wanted) {
            IrqPlace::Moved => Self::Good,
            IrqPlace::Waits(cpus) => Self::Waits(cpus),
            IrqPlace::StillOn(cpus) => {
                Self::None(format!("{} still arrives on CPU {cpus}", line.name))
            }
        })
    }
}

/// Settings of one kind by their effect: the numbers add up to all of them.
#[derive(Debug, Default, Clone, Copy)]
struct EffectCounts {
    good: u32,
    waiting: u32,
    unknown: u32,
    impossible: u32,
    bad: u32,
}

impl EffectCounts {
    /// Counts a setting, and says what it does.
    fn words(&mut self, effect: Effect) -> String {
        match effect {
            Effect::Good => {
                self.good += 1;
                "in effect".to_owned()
            }
            Effect::Waits(cpus) => {
                self.waiting += 1;
                format!("set: takes effect at its next interrupt (CPU {cpus} until then)")
            }
            Effect::None(why) => {
                self.bad += 1;
                format!("set, and without effect: {why}")
            }
        }
    }

    /// All of them.
    fn sum(self) -> u32 {
        self.good + self.waiting + self.unknown + self.impossible + self.bad
    }

    /// "2 of 4 settings that were applied are in effect, 1 waits for its next interrupt, 1 is not",
    /// where `named` says which they are; `None` where there are none.
    fn sentence(self, named: impl FnOnce(u32) -> String) -> Option<String> {
        let Self { good, waiting, unknown, impossible, bad } = self;
        // What cannot be set was not applied.
        let tried = self.sum() - impossible;
        if tried == 0 {
            let none = || format!("{} cannot be set on this machine", counted(impossible));
            return (impossible > 0).then(none);
        }
        let mut words = format!("{good} of {} {} in effect", named(tried), are(good));
        words += &match waiting {
            0 => String::new(),
            1 => ", 1 waits for its next interrupt".to_owned(),
            n => format!(", {n} wait for their next interrupt"),
        };
        if unknown > 0 {
            words += &format!(", {unknown} {} not known to be", are(unknown));
        }
        if bad > 0 {
            words += &format!(", {bad} {} not", are(bad));
        }
        if impossible > 0 {
            words += &format!(", {impossible} cannot be set on this machine");
        }
        Some(words)
    }
}

/// Settings by their effect, each counted once.
#[derive(Debug, Default, Clone, Copy)]
struct VerifiedCounts {
    /// Settings of the journal of applied ones.
    applied: EffectCounts,
    /// Boot parameters that `apply --boot` wrote.
    written: EffectCounts,
    /// Other parameters that the kernel was started with, which a rule knows.
    booted: EffectCounts,
}

impl VerifiedCounts {
    /// Returns true where none is without effect.
    fn is_good(&self) -> bool {
        [self.applied, self.written, self.booted].iter().all(|counts| counts.bad == 0)
    }
}

impl fmt::Display for VerifiedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = |n: u32| if n == 1 { "parameter" } else { "parameters" };
        let sentences = [
            self.applied.sentence(|n| format!("{} that {} applied", counted(n), was(n))),
            self.written.sentence(|n| format!("{n} {} that {} written", parameters(n), was(n))),
            self.booted.sentence(|n| {
                format!("{n} {} of this boot that {} not written here", parameters(n), was(n))
            }),
        ];
        let sentences: Vec<String> = sentences.into_iter().flatten().collect();
        match sentences.is_empty() {
            true => f.write_str("nothing is applied, and no parameter of this boot is known"),
            false => f.write_str(&sentences.join("; ")),
        }
    }
}

fn was(n: u32) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

/// The finding that still asks for the value that was applied. One that asks for another value is
/// about other CPUs, or another workload, than those it was applied for.
fn still_wanted<'a>(entry: &JournalEntry, verdicts: &'a [KnobVerdict]) -> Option<&'a KnobVerdict> {
    let wants = |change: &KnobChange| match change {
        KnobChange::Write { path, value } => *path == entry.path && *value == entry.new,
        _ => false,
    };
    verdicts.iter().find(|judged| judged.verdict.is_open() && judged.changes.iter().any(wants))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_no_failure_one_is_no_plural_and_kinds_are_counted_apart() {
        let mut count = VerifiedCounts::default();
        assert_eq!(count.to_string(), "nothing is applied, and no parameter of this boot is known");
        count.applied.words(Effect::Good);
        assert_eq!(count.to_string(), "1 of 1 setting that was applied is in effect");
        let waits = count.applied.words(Effect::Waits(CpuList::single(1)));
        assert_eq!(waits, "set: takes effect at its next interrupt (CPU 1 until then)");
        let applied = "1 of 2 settings that were applied is in effect, 1 waits for its next \
                       interrupt";
        assert_eq!((count.to_string().as_str(), count.is_good()), (applied, true));
        count.booted = EffectCounts { good: 2, unknown: 1, ..EffectCounts::default() };
        let booted = "2 of 3 parameters of this boot that were not written here are in effect, 1 \
                      is not known to be";
        assert_eq!(count.to_string(), format!("{applied}; {booted}"));
        count.applied.words(Effect::Good);
        count.applied.words(Effect::Waits(CpuList::single(1)));
        let none = count.applied.words(Effect::None("virtio1-req.0 still arrives".to_owned()));
        assert_eq!(none, "set, and without effect: virtio1-req.0 still arrives");
        count.written = EffectCounts { bad: 1, ..EffectCounts::default() };
        let applied = "2 of 5 settings that were applied are in effect, 2 wait for their next \
                       interrupt, 1 is not";
        let written = "0 of 1 parameter that was written are in effect, 1 is not";
        assert_eq!(count.to_string(), format!("{applied}; {written}; {booted}"));
        assert!(!count.is_good());
        count.written = EffectCounts::default();
        count.applied = EffectCounts { good: 2, impossible: 1, ..EffectCounts::default() };
        let applied = "2 of 2 settings that were applied are in effect, 1 cannot be set on this \
                       machine";
        assert_eq!((count.to_string(), count.is_good()), (format!("{applied}; {booted}"), true));
        assert_eq!((count.applied.sum(), count.written.sum(), count.booted.sum()), (3, 0, 3));
        count.applied = EffectCounts { impossible: 2, ..EffectCounts::default() };
        let none = "2 settings cannot be set on this machine";
        assert_eq!(count.to_string(), format!("{none}; {booted}"));
    }
}
