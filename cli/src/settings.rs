//! Settings of a machine, as the commands share them that judge or change them: whose settings, for
//! which CPUs, and the lines that say what became of each.
//!
//! Rules and plans are `host`'s, changing settings is `lab`'s.

pub(crate) mod changes;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use punctual_host::facts::MachineFacts;
use punctual_host::plan::{self, TuningPlan};
use punctual_host::rules::{
    self, CpuScope, Inputs, KnobChange, KnobVerdict, RuleVerdict, Workload,
};
use punctual_host::settings::KernelSettings;
use punctual_host::{LoopCores, Root, parse_cpus};
use punctual_lab::tuning::{
    self, AppliedStep, JournalEntry, MachineFiles, RevertOutcome, RevertedStep, StepOutcome,
    TuningJournal, WantedValue, active,
};
use punctual_report::{Envelope, Report, TuneBody};

use crate::args::{RootArgs, StateArgs};
use crate::output::{self, JournalFile, JournalName, OutputArgs, Outputs, SettingsOwner};
use crate::subcommand::Exit;
use crate::{format, view, writing};

/// Which CPUs are tuned, for what, on which machine.
#[derive(Debug, clap::Args)]
pub(crate) struct TuneScopeArgs {
    /// The CPUs of the loop, as the kernel lists them: 3, 2-3,7; or 'half': the last half of the
    /// cores, whole ones, without that of CPU 0 [default: the isolated ones, else the one that
    /// check would measure]
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// A whole core for each of so many loops, the last ones, without that of CPU 0
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "cpus",
        value_parser = clap::value_parser!(u32).range(1..=8192)
    )]
    loops: Option<u32>,
    /// What runs on them; linuxcnc is step-generation, mesa, ros and plc are servo
    #[arg(long = "for", value_name = "WORKLOAD", value_parser = WorkloadParser)]
    workload: Option<NamedWorkload>,
    #[command(flatten)]
    pub(crate) root: RootArgs,
}

impl TuneScopeArgs {
    /// The option that says what the CPUs are for, as it was given; empty without one.
    pub(crate) fn workload_option(&self) -> String {
        self.workload_name().map_or_else(String::new, |name| format!(" --for {name}"))
    }

    /// The value of that option.
    pub(crate) fn workload_name(&self) -> Option<String> {
        let named = self.workload.as_ref().and_then(|named| named.workload.to_possible_value());
        named.map(|value| value.get_name().to_owned())
    }

    /// The option that has `check` ask about such a loop; empty where it asks about any.
    pub(crate) fn question_option(&self) -> &'static str {
        let Some(named) = &self.workload else { return "" };
        crate::question::option_named(&named.name).unwrap_or(match named.workload {
            WorkloadName::StepGeneration => " --for linuxcnc",
            WorkloadName::Audio => " --for audio",
            WorkloadName::Servo | WorkloadName::Polling | WorkloadName::VmGuest => "",
        })
    }

    /// These CPUs of this machine, for this workload, or whatever runs on them.
    pub(crate) fn of_cpus(list: &str, workload: Option<WorkloadName>) -> Self {
        let workload = workload.map(|workload| NamedWorkload { workload, name: String::new() });
        Self { cpus: Some(list.to_owned()), loops: None, workload, root: RootArgs::default() }
    }
}

impl TuneScopeArgs {
    /// The CPUs of this machine.
    ///
    /// # Errors
    /// They are none of it, or too many.
    fn of_machine(&self, facts: &MachineFacts) -> Result<CpuScope> {
        let cores = match (self.cpus.as_deref(), self.loops) {
            (Some(HALF), _) => Some((LoopCores::Half, "--cpus half".to_owned())),
            (_, Some(loops)) => Some((LoopCores::Each(loops), format!("--loops {loops}"))),
            _ => None,
        };
        if let Some((cores, option)) = cores {
            return CpuScope::of_cores(cores, facts).context(option);
        }
        let requested = self.cpus.as_deref().map(|text| {
            parse_cpus(text, facts).with_context(|| format!("--cpus {}", text.escape_debug()))
        });
        Ok(CpuScope::of(requested.transpose()?, facts))
    }
}

/// The word of `--cpus` for half of the cores.
const HALF: &str = "half";

/// The workload of the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WorkloadName {
    /// Steps of a motor in software: sleeps, periods of 20 to 50 µs
    #[value(alias = "linuxcnc")]
    StepGeneration,
    /// A control loop: sleeps, periods of 100 µs to 10 ms
    #[value(aliases = ["mesa", "ros", "plc"])]
    Servo,
    /// Sound, on a machine that is used for other things
    Audio,
    /// A loop that never sleeps
    Polling,
    /// The processors of a virtual machine on this host
    VmGuest,
}

impl WorkloadName {
    /// The workload of a loop of this purpose, as `--for` of commands that measure names it; `None`
    /// where it is none of these.
    pub(crate) fn of_purpose(name: &str) -> Option<Self> {
        Self::from_str(name, false).ok()
    }
}

/// A workload with the name that it was given by: one workload is that of several loops.
#[derive(Clone, Debug)]
struct NamedWorkload {
    workload: WorkloadName,
    /// Empty where no person named it.
    name: String,
}

/// Reads the name of a workload; an error names all that are accepted, and what else they are
/// called.
#[derive(Clone, Copy)]
struct WorkloadParser;

impl WorkloadParser {
    fn accepted() -> String {
        let values = WorkloadName::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let named = values.map(|value| {
            let others: Vec<&str> = value.get_name_and_aliases().skip(1).collect();
            match others.is_empty() {
                true => value.get_name().to_owned(),
                false => format!("{} (also {})", value.get_name(), others.join(", ")),
            }
        });
        named.collect::<Vec<_>>().join(", ")
    }
}

impl TypedValueParser for WorkloadParser {
    type Value = NamedWorkload;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<NamedWorkload, clap::Error> {
        let named = value.to_str().and_then(|text| {
            let workload = WorkloadName::from_str(text, false).ok()?;
            Some(NamedWorkload { workload, name: text.to_owned() })
        });
        named.ok_or_else(|| {
            let value = format::plain(&value.to_string_lossy());
            let why = format!("--for {value}: accepted are {}", Self::accepted());
            command.clone().error(ErrorKind::InvalidValue, why)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = WorkloadName::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        Some(Box::new(values))
    }
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

/// A machine with the CPUs that are tuned.
pub(crate) struct TunedMachine {
    pub(crate) root: Root,
    pub(crate) facts: MachineFacts,
    pub(crate) settings: KernelSettings,
    pub(crate) scope: CpuScope,
    workload: Option<Workload>,
    /// Settings that could not be set in this boot, where the journal was read.
    impossible: Vec<JournalEntry>,
}

impl TunedMachine {
    /// The machine as it is now.
    ///
    /// # Errors
    /// The captured machine cannot be read, or the CPUs are none of it.
    pub(crate) fn read(args: &TuneScopeArgs) -> Result<Self> {
        let root = args.root.open()?;
        let facts = MachineFacts::collect(&root);
        let scope = args.of_machine(&facts)?;
        let settings = KernelSettings::collect(&root);
        Ok(Self {
            root,
            facts,
            settings,
            scope,
            workload: args.workload.as_ref().map(|named| named.workload.into()),
            impossible: Vec::new(),
        })
    }

    /// Leaves out of verdicts and plans what `tune apply` found in this boot that cannot be set
    /// here. A journal that cannot be read, or is damaged, leaves all in: `verify` names that.
    pub(crate) fn leave_impossible(&mut self, state: &StateArgs) -> Result<()> {
        let bytes = JournalFile::read(&state.state, JournalName::Settings).ok().flatten();
        let journal = bytes.and_then(|bytes| TuningJournal::parse(&bytes).ok());
        let owner = SettingsOwner::of(&self.root)?.to_string();
        let journal = journal.filter(|journal| journal.boot == owner);
        let entries = journal.into_iter().flat_map(|journal| journal.entries);
        self.impossible = entries.filter(|entry| entry.impossible_here().is_some()).collect();
        Ok(())
    }

    /// Why this cannot be set here, as far as the journal tells.
    fn why_impossible(&self, change: &KnobChange) -> Option<&'static str> {
        let KnobChange::Write { path, value } = change else { return None };
        let is_same = |entry: &&JournalEntry| entry.path == *path && entry.new == *value;
        self.impossible.iter().find(is_same)?.impossible_here()
    }

    /// Leaves out of a verdict what cannot be set here.
    fn left_possible(&self, mut judged: KnobVerdict) -> KnobVerdict {
        let why = judged.changes.iter().find_map(|change| self.why_impossible(change));
        let Some(why) = why else { return judged };
        let before = judged.changes.len();
        judged.changes.retain(|change| self.why_impossible(change).is_none());
        let places = match (judged.changes.len(), before) {
            (0, _) => {
                judged.verdict = RuleVerdict::NotApplicable;
                String::new()
            }
            (left, before) => format!("{} of {before} ", before - left),
        };
        judged.why = format!("{places}cannot be set here: {why}. {}", judged.why);
        judged
    }

    /// Refuses CPUs that were named and leave none for other tasks.
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

    /// The plan of changes; where settings are named in `only`, of those alone.
    pub(crate) fn plan(&self, only: &[String]) -> Result<TuningPlan> {
        let inputs = self.inputs();
        let verdicts = rules::judge(&inputs);
        let known = |name: &&String| verdicts.iter().any(|judged| judged.knob == **name);
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
        plan.runtime.retain(|step| self.why_impossible(&step.change).is_none());
        Ok(plan)
    }

    /// The verdicts of the rules, which agree with the plan.
    pub(crate) fn verdicts(&self) -> Vec<KnobVerdict> {
        let verdicts = plan::verdicts(&self.inputs(), &self.root);
        verdicts.into_iter().map(|judged| self.left_possible(judged)).collect()
    }

    /// The facts, settings, CPUs and workload that rules judge.
    pub(crate) fn inputs(&self) -> Inputs<'_> {
        Inputs {
            facts: &self.facts,
            settings: &self.settings,
            cpus: &self.scope.cpus,
            workload: self.workload,
        }
    }
}

/// The line about a setting that was applied, or that the kernel did not take.
pub(crate) fn applied_line(step: &AppliedStep) -> String {
    let WantedValue { path, value } = &step.wanted;
    if let Some(why) = step.impossible_here() {
        return format!("{path}: {value} cannot be set here: {why}");
    }
    match &step.outcome {
        StepOutcome::Refused(why) if path.ends_with('/') => {
            format!("the control group {path} cannot be made: {why}")
        }
        StepOutcome::Applied => format!("{path}: {value}"),
        StepOutcome::Already => format!("{path}: {value} already"),
        StepOutcome::Unreadable(why) => format!("{path}: left as it is: cannot read it: {why}"),
        StepOutcome::Refused(why) => format!("{path}: {value} refused: {why}"),
        StepOutcome::Unverified(why) => {
            format!("{path}: wrote {value}, cannot read it back: {why}")
        }
        StepOutcome::Lies { shows, restored } => {
            let back =
                if *restored { "the old value is back" } else { "the old value is not back" };
            format!("{path}: wrote {value}, it shows {}; {back}", active(shows))
        }
    }
}

/// Settings by the outcome of applying them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AppliedCounts {
    changed: u32,
    /// Those that the kernel refused, and those that could not be read.
    refused: u32,
    /// Those that this machine does not have, or keeps as they are.
    impossible: u32,
}

impl AppliedCounts {
    /// Counts one.
    pub(crate) fn count(&mut self, step: &AppliedStep) {
        match step.outcome {
            StepOutcome::Applied => self.changed += 1,
            StepOutcome::Already => {}
            _ if step.impossible_here().is_some() => self.impossible += 1,
            _ => self.refused += 1,
        }
    }

    /// Those that were refused.
    pub(crate) fn refused(self) -> u32 {
        self.refused
    }
}

impl fmt::Display for AppliedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changed, refused, impossible } = *self;
        write!(f, "{} changed, {refused} refused", counted(changed))?;
        match impossible {
            0 => Ok(()),
            _ => write!(f, ", {impossible} cannot be set on this machine"),
        }
    }
}

/// The line about a setting that was put back, or that was not.
pub(crate) fn reverted_line(entry: &JournalEntry, outcome: &RevertOutcome) -> String {
    let (path, old) = (&entry.path, entry.shown(&entry.old));
    match outcome {
        RevertOutcome::Restored => format!("{path}: {old}"),
        RevertOutcome::AsBefore if entry.could_not_be_set() => {
            format!("{path}: {old} unchanged: {} could not be set", entry.new)
        }
        RevertOutcome::AsBefore => format!("{path}: {old} already"),
        RevertOutcome::Changed { now } => {
            format!("{path}: left at {now}: changed since by somebody else; it was {old}")
        }
        RevertOutcome::Gone => format!("{path}: no longer there"),
        RevertOutcome::Refused(why) => format!("{path}: {old} refused: {why}; try again later"),
        RevertOutcome::Differs { now } => {
            format!("{path}: wrote {old}, it shows {}; try again later", entry.shown(now))
        }
    }
}

/// Puts back what the journal has, and says what is not as before; how many settings that are.
pub(crate) fn put_back(journal: &mut JournalFile, boot: &str) -> Result<u32> {
    let mut counts = RevertedCounts::default();
    tuning::revert(&mut MachineFiles::live(), journal, boot, |step| {
        counts.count(&step);
        if !matches!(step.outcome, RevertOutcome::Restored | RevertOutcome::AsBefore) {
            output::message(&reverted_line(&step.entry, &step.outcome));
        }
    })?;
    if !counts.is_empty() {
        output::message(&counts.to_string());
    }
    Ok(counts.left())
}

/// Shows a line at once. Nobody may be reading any more: what is being done goes on.
pub(crate) fn show(line: impl AsRef<str>) {
    let _closed = output::page(&(format::plain(line.as_ref()) + "\n"));
}

/// So many settings, in words: "1 setting", "3 settings".
pub(crate) fn counted<N: fmt::Display + PartialEq + From<u8>>(settings: N) -> String {
    let word = if settings == N::from(1) { "setting" } else { "settings" };
    format!("{settings} {word}")
}

/// The verb for so many: "1 setting is", "3 settings are".
pub(crate) const fn are(settings: u32) -> &'static str {
    if settings == 1 { "is" } else { "are" }
}

/// What is said of a setting once it was to be put back, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reverted {
    /// It could not be set, and never changed.
    NeverChanged,
    /// It was changed, and is as before.
    AsBefore,
    /// It is not as before.
    Left,
}

/// Settings by what became of them when they were put back: each once, by its path.
#[derive(Debug, Default)]
pub(crate) struct RevertedCounts {
    by_path: BTreeMap<String, Reverted>,
    /// Files of the boot loader that are as before, and that are not, its program among them.
    boot_files: [u32; 2],
}

impl RevertedCounts {
    /// Counts one.
    pub(crate) fn count(&mut self, step: &RevertedStep) {
        let became = match step.outcome {
            RevertOutcome::AsBefore if step.entry.could_not_be_set() => Reverted::NeverChanged,
            RevertOutcome::Restored | RevertOutcome::AsBefore => Reverted::AsBefore,
            _ => Reverted::Left,
        };
        let so_far = self.by_path.entry(step.entry.path.clone()).or_insert(became);
        *so_far = became.max(*so_far);
    }

    /// Counts files of the boot loader: so many that are as before, and that are not.
    pub(crate) fn count_boot_files(&mut self, as_before: u32, left: u32) {
        self.boot_files = [as_before, left];
    }

    fn number_of(&self, wanted: Reverted) -> u32 {
        let found = self.by_path.values().filter(|became| **became == wanted).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    }

    /// Those that are not as before.
    pub(crate) fn left(&self) -> u32 {
        self.number_of(Reverted::Left) + self.boot_files[1]
    }

    fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }
}

impl fmt::Display for RevertedCounts {
    /// The line at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (restored, left) =
            (self.number_of(Reverted::AsBefore) + self.boot_files[0], self.left());
        write!(f, "{} {} as before, {left} {} not", counted(restored), are(restored), are(left))?;
        match self.number_of(Reverted::NeverChanged) {
            0 => Ok(()),
            never => write!(f, ", {never} {NEVER_CHANGED}"),
        }
    }
}

/// What is said of settings that could not be set.
pub(crate) const NEVER_CHANGED: &str = "could not be set and never changed";

/// Output of verdicts, and whether they decide the exit status.
#[derive(Debug, clap::Args)]
pub(crate) struct VerdictArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Print also what is good, what does not apply, and where each verdict comes from
    #[arg(long, short)]
    verbose: bool,
    /// Fail (exit 1) if anything conflicts or has no effect
    #[arg(long)]
    strict: bool,
}

impl VerdictArgs {
    /// Writes a result of verdicts.
    pub(crate) fn write(
        &self,
        outputs: Outputs,
        mut envelope: Envelope,
        body: TuneBody,
    ) -> Result<Exit> {
        let is_wrong = |judged: &&KnobVerdict| {
            matches!(judged.verdict, RuleVerdict::Conflict | RuleVerdict::NoEffect)
        };
        for wrong in body.verdicts.iter().filter(is_wrong).filter(|_| self.strict) {
            envelope.verdict.fail(format!("{}: {}", wrong.knob, wrong.verdict.word()));
        }
        let blocks = view::kinds::tune::document(&envelope, &body, self.verbose);
        let page = punctual_document::text::rendered(&blocks);
        let report = Report { envelope, body: body.into() };
        writing::write_page(&report, outputs, page)?;
        Ok(Exit::of(&report))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    #[test]
    fn what_this_machine_keeps_is_not_counted_as_refused() {
        let mut counts = AppliedCounts::default();
        let step = |outcome| AppliedStep {
            wanted: WantedValue::new("/proc/irq/36/smp_affinity_list", "0"),
            outcome,
        };
        counts.count(&step(StepOutcome::Applied));
        counts.count(&step(StepOutcome::Already));
        assert_eq!(counts.to_string(), "1 setting changed, 0 refused");
        // EPERM and EIO of an interrupt that cannot be moved, and EBUSY.
        for number in [1, 5, 16] {
            counts.count(&step(StepOutcome::Refused(Error::from_raw_os_error(number))));
        }
        let words = "1 setting changed, 1 refused, 2 cannot be set on this machine";
        assert_eq!((counts.to_string().as_str(), counts.refused()), (words, 1));
    }

    #[test]
    fn of_a_file_of_switches_a_line_names_the_one() {
        let entry = JournalEntry {
            path: "/sys/kernel/debug/sched/features".to_owned(),
            old: "PLACE_LAG RT_RUNTIME_SHARE NO_HRTICK\n".to_owned(),
            new: "NO_RT_RUNTIME_SHARE".to_owned(),
            took: None,
            refusal: None,
        };
        let line = reverted_line(&entry, &RevertOutcome::Restored);
        assert_eq!(line, format!("{}: RT_RUNTIME_SHARE", entry.path));
        let now = "PLACE_LAG NO_RT_RUNTIME_SHARE HRTICK\n".to_owned();
        let line = reverted_line(&entry, &RevertOutcome::Differs { now });
        let shows = "wrote RT_RUNTIME_SHARE, it shows NO_RT_RUNTIME_SHARE; try again later";
        assert_eq!(line, format!("{}: {shows}", entry.path));
    }

    #[test]
    fn the_loop_that_was_named_is_the_one_that_check_is_asked_about() {
        let asked = |name: &str| {
            let command = clap::Command::new("plan");
            let workload = WorkloadParser.parse_ref(&command, None, OsStr::new(name));
            let workload = Some(workload.expect("accepted"));
            let root = RootArgs::default();
            TuneScopeArgs { cpus: None, loops: None, workload, root }.question_option()
        };
        for name in ["linuxcnc", "mesa", "ros", "plc", "audio"] {
            assert_eq!(asked(name), format!(" --for {name}"));
        }
        assert_eq!(asked("step-generation"), " --for linuxcnc");
        // A loop that no question is about.
        assert_eq!((asked("servo"), asked("polling")), ("", ""));
    }

    #[test]
    fn one_setting_is_no_plural() {
        let mut counts = RevertedCounts::default();
        counts.count_boot_files(1, 0);
        assert_eq!(counts.to_string(), "1 setting is as before, 0 are not");
        counts.count_boot_files(0, 1);
        assert_eq!(counts.to_string(), "0 settings are as before, 1 is not");
    }

    #[test]
    fn what_could_not_be_set_is_not_counted_as_put_back() {
        let entry = |path: &str, took: &str| JournalEntry {
            path: path.to_owned(),
            old: "0-1\n".to_owned(),
            new: "0".to_owned(),
            took: Some(took.to_owned()),
            refusal: None,
        };
        let mut counts = RevertedCounts::default();
        let refused = entry("/proc/irq/36/smp_affinity_list", "0-1\n");
        let line = reverted_line(&refused, &RevertOutcome::AsBefore);
        assert_eq!(line, "/proc/irq/36/smp_affinity_list: 0-1 unchanged: 0 could not be set");
        let changed = entry("/proc/irq/9/smp_affinity_list", "0\n");
        for entry in [refused.clone(), refused, changed.clone()] {
            counts.count(&RevertedStep { entry, outcome: RevertOutcome::AsBefore });
        }
        let words = "1 setting is as before, 0 are not, 1 could not be set and never changed";
        assert_eq!((counts.to_string().as_str(), counts.left()), (words, 0));
        // Whatever else is said of the same setting.
        let outcome = RevertOutcome::Changed { now: "1".to_owned() };
        counts.count(&RevertedStep { entry: changed, outcome });
        assert_eq!(counts.left(), 1);
    }
}
