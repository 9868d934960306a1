//! Rules about tuning: what is known of each knob, as data, and what facts make of it.
//!
//! One row a rule, by subject; the engine knows no rule. Pure: facts and settings in, verdicts
//! out. Nothing is read, changed or printed here.
//!
//! | module | what it judges |
//! |---|---|
//! | `boot` | the command line as a whole: unknown parameters, conflicts, what is not booted |
//! | `isolation` | which CPUs are kept free |
//! | `interrupts` | where interrupts and unbound work go |
//! | `rcu` | RCU's callbacks and threads |
//! | `scheduler`, `throttling` | preemption, timers; what stops real-time tasks |
//! | `idle`, `frequency`, `clock` | how deep CPUs sleep, how fast they run, what tells the time |
//! | `memory`, `watchdogs`, `risks` | paging, periodic checks, what is dangerous |

mod boot;
mod clock;
mod frequency;
mod idle;
mod interrupts;
mod isolation;
mod memory;
mod rcu;
mod risks;
mod scheduler;
mod throttling;
mod watchdogs;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choose::{CpuError, LoopCores, choose};
use crate::cmdline::Param;
use crate::cpulist::CpuList;
use crate::fact::Fact;
use crate::facts::{MachineFacts, NoHz, PreemptionModel};
use crate::settings::KernelSettings;

/// The function by which a rule judges: one knob, or any number of them.
#[derive(Clone, Copy)]
enum Judge {
    One(fn(&Inputs<'_>) -> Finding),
    Each(fn(&Inputs<'_>) -> Vec<Finding>),
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::One(_) => "One",
            Self::Each(_) => "Each",
        })
    }
}

/// A kernel release, major and minor.
pub type Release = (u32, u32);

/// A knob, with the text of its verdicts and the function that judges it.
#[derive(Debug)]
pub struct Rule {
    /// Stable: `isolation.isolcpus`.
    pub id: &'static str,
    /// The parameter's or setting's own name.
    pub knob: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// Its cost: heat, security, lost diagnostics; empty where it costs nothing.
    pub cost: &'static str,
    /// The first kernel that has the knob; `None` for all that are in use.
    pub since: Option<Release>,
    /// The first kernel that no longer has it; `None` where it is still there.
    pub until: Option<Release>,
    /// The way the verdict is verified: what is read.
    pub verified: &'static str,
    /// Where this is from.
    pub source: &'static str,
    /// The usual gain of a loop: from 9, a stall of milliseconds, to 0.
    pub gain: u8,
    judge: Judge,
}

/// A row in which only what is usual stands: the rest is written over it.
const fn rule(id: &'static str, knob: &'static str, gain: u8, judge: Judge) -> Rule {
    Rule {
        id,
        knob,
        why: "",
        cost: "",
        since: None,
        until: None,
        verified: "/proc/cmdline",
        source: PARAMETERS,
        gain,
        judge,
    }
}

/// The kernel's list of its parameters.
const PARAMETERS: &str = "Linux, admin-guide/kernel-parameters";

/// Rules that belong together: a section of the documentation.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Its heading.
    pub heading: &'static str,
    /// Its rules, in the order of the documentation.
    pub rules: &'static [Rule],
}

impl Subject {
    /// All subjects, in the order of the documentation.
    pub const ALL: [Self; 12] = [
        Self { heading: "The command line", rules: boot::RULES },
        Self { heading: "Isolated CPUs", rules: isolation::RULES },
        Self { heading: "Interrupts and unbound work", rules: interrupts::RULES },
        Self { heading: "RCU", rules: rcu::RULES },
        Self { heading: "Scheduler and preemption", rules: scheduler::RULES },
        Self { heading: "Throttling of real-time tasks", rules: throttling::RULES },
        Self { heading: "Idle states", rules: idle::RULES },
        Self { heading: "Frequency", rules: frequency::RULES },
        Self { heading: "Clock", rules: clock::RULES },
        Self { heading: "Memory", rules: memory::RULES },
        Self { heading: "Watchdogs", rules: watchdogs::RULES },
        Self { heading: "Risks and what is not a setting", rules: risks::RULES },
    ];
}

/// Every rule, subject by subject.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    Subject::ALL.into_iter().flat_map(|subject| subject.rules)
}

/// The verdict of one rule on one knob, with the text about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnobVerdict {
    /// The rule; stable from version to version.
    pub id: String,
    /// The parameter's or setting's own name; one verdict has it.
    pub knob: String,
    /// "conflict", "no-effect", "improve", "needs-reboot", "unknown", "good" or "not-applicable".
    pub verdict: RuleVerdict,
    /// The value as it was read, in words.
    pub found: String,
    /// Where it was read.
    pub origin: String,
    /// Why it matters here.
    pub why: String,
    /// Its cost: heat, security, lost diagnostics; empty where it costs nothing.
    pub cost: String,
    /// The first kernel that has the knob, as "6.12"; null for all in use.
    pub since: Option<String>,
    /// The first kernel without it; null where it is still there.
    pub until: Option<String>,
    /// The way the verdict was verified: what was read.
    pub verified: String,
    /// Where the rule is from.
    pub source: String,
    /// The usual gain of a loop, from 9 (stalls of milliseconds) to 0.
    pub gain: u8,
    /// The changes that would improve it; empty where none would.
    pub changes: Vec<KnobChange>,
}

/// Judges a machine by all rules, and knows none of them: one verdict a knob, the most urgent
/// first.
pub fn judge(inputs: &Inputs<'_>) -> Vec<KnobVerdict> {
    let mut by_knob: BTreeMap<String, KnobVerdict> = BTreeMap::new();
    for rule in all() {
        for verdict in rule.verdicts(inputs) {
            // Of several rules about a knob, the one that finds most counts; what another one
            // would change is kept where that one has nothing.
            let verdict = match by_knob.remove(&verdict.knob) {
                None => verdict,
                Some(earlier) if earlier.rank() <= verdict.rank() => earlier.or_changes(verdict),
                Some(earlier) => verdict.or_changes(earlier),
            };
            by_knob.insert(verdict.knob.clone(), verdict);
        }
    }
    let mut verdicts: Vec<_> = by_knob.into_values().collect();
    verdicts.sort_by(|a, b| (a.rank(), &a.id, &a.knob).cmp(&(b.rank(), &b.id, &b.knob)));
    verdicts
}

impl KnobVerdict {
    fn or_changes(mut self, second: Self) -> Self {
        if self.changes.is_empty() && self.verdict.is_open() {
            self.changes = second.changes;
        }
        self
    }

    fn rank(&self) -> (RuleVerdict, u8) {
        (self.verdict, u8::MAX - self.gain)
    }
}

impl Rule {
    /// The verdicts of this rule alone.
    fn verdicts(&self, inputs: &Inputs<'_>) -> Vec<KnobVerdict> {
        let findings = match (self.before_its_time(inputs), self.judge) {
            (Some(finding), _) => vec![finding],
            (None, Judge::One(judge)) => vec![judge(inputs)],
            (None, Judge::Each(each)) => each(inputs),
        };
        let findings = findings.into_iter().map(|finding| self.not_passed_over(finding, inputs));
        findings.map(|finding| self.verdict(finding)).collect()
    }

    /// A parameter that was typed where the machine or the kernel does not have what it sets does
    /// nothing, which is more than that the setting is not there.
    fn not_passed_over(&self, finding: Finding, inputs: &Inputs<'_>) -> Finding {
        match inputs.typed(self.knob) {
            Typed::Yes(param)
                if finding.verdict == RuleVerdict::NotApplicable && finding.knob.is_none() =>
            {
                let joined = inputs.joined(self.knob).filter(|_| boot::adds_up(self.knob));
                let param = joined.unwrap_or_else(|| param.clone());
                Finding::no_effect(format!("{param}; {}", finding.found), finding.origin)
                    .note("This machine does not have what it sets.")
                    .remove(self.knob)
            }
            _ => finding,
        }
    }

    /// The verdict where this kernel does not have the knob yet, or no longer; else `None`.
    fn before_its_time(&self, inputs: &Inputs<'_>) -> Option<Finding> {
        let release = inputs.settings.release?;
        let (major, minor) = release;
        let lacks = match (self.since, self.until) {
            (Some(since), _) if release < since => format!("came with Linux {}", shown(since)),
            (_, Some(until)) if release >= until => format!("went with Linux {}", shown(until)),
            _ => return None,
        };
        let found = format!("this is Linux {major}.{minor}, and it {lacks}");
        Some(match inputs.typed(self.knob) {
            Typed::Yes(param) => Finding::no_effect(format!("{param}: {found}"), CMDLINE)
                .note("This kernel does not have the parameter.")
                .remove(self.knob),
            _ => Finding::not_applicable(found, "/proc/sys/kernel/osrelease"),
        })
    }

    fn verdict(&self, finding: Finding) -> KnobVerdict {
        let why = [finding.note.as_str(), self.why].map(str::trim);
        KnobVerdict {
            id: self.id.to_owned(),
            knob: finding.knob.map_or_else(|| self.knob.to_owned(), String::from),
            verdict: finding.verdict,
            found: finding.found,
            origin: finding.origin,
            why: why.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "),
            cost: self.cost.to_owned(),
            since: self.since.map(shown),
            until: self.until.map(shown),
            verified: self.verified.to_owned(),
            source: self.source.to_owned(),
            gain: self.gain,
            changes: finding.changes,
        }
    }
}

/// A release as people write it.
fn shown((major, minor): Release) -> String {
    format!("{major}.{minor}")
}

/// The verdicts on a knob, the most urgent first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RuleVerdict {
    /// It contradicts another setting, or does harm.
    Conflict,
    /// It was set and does nothing.
    NoEffect,
    /// It can be improved while the machine runs.
    Improve,
    /// It can be improved by a boot parameter, another kernel or firmware.
    NeedsReboot,
    /// A value that is needed to judge could not be read, or it is not known what reads a
    /// parameter.
    Unknown,
    /// It is as it should be.
    Good,
    /// This machine or this kernel does not have it.
    NotApplicable,
}

impl RuleVerdict {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 7] = [
        Self::Conflict,
        Self::NoEffect,
        Self::Improve,
        Self::NeedsReboot,
        Self::Unknown,
        Self::Good,
        Self::NotApplicable,
    ];

    /// The word of it, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::NoEffect => "no-effect",
            Self::Improve => "improve",
            Self::NeedsReboot => "needs-reboot",
            Self::Unknown => "unknown",
            Self::Good => "good",
            Self::NotApplicable => "not-applicable",
        }
    }

    /// Returns true where something is left to do.
    pub fn is_open(self) -> bool {
        self <= Self::NeedsReboot
    }
}

/// A change of a knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum KnobChange {
    /// A file is written while the machine runs.
    Write {
        /// The file.
        path: String,
        /// The value that is written into it.
        value: String,
    },
    /// A boot parameter is set.
    Boot {
        /// Its name.
        name: String,
        /// Its value; null for one without.
        value: Option<String>,
    },
    /// A boot parameter is removed.
    Remove {
        /// Its name.
        name: String,
    },
    /// A cgroup v2 partition with these CPUs is made.
    Partition {
        /// The CPUs.
        cpus: String,
    },
    /// A command is run: what a program that runs was given is no setting of the machine.
    Run {
        /// The command.
        command: String,
    },
}

/// A finding of one rule on one knob.
#[derive(Debug, Clone)]
struct Finding {
    verdict: RuleVerdict,
    /// The value as it was read, in words.
    found: String,
    origin: String,
    /// A remark on this finding, sentences; stands before the rule's own reason; may be empty.
    note: String,
    /// Another knob than that of the rule.
    knob: Option<Box<str>>,
    changes: Vec<KnobChange>,
}

impl Finding {
    fn new(verdict: RuleVerdict, found: impl Into<String>, origin: impl Into<String>) -> Self {
        let (found, origin) = (found.into(), origin.into());
        Self { verdict, found, origin, note: String::new(), knob: None, changes: Vec::new() }
    }

    fn conflict(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::Conflict, found, origin)
    }

    fn no_effect(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::NoEffect, found, origin)
    }

    fn improve(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::Improve, found, origin)
    }

    fn needs_reboot(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::NeedsReboot, found, origin)
    }

    fn unknown(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::Unknown, found, origin)
    }

    fn good(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::Good, found, origin)
    }

    fn not_applicable(found: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(RuleVerdict::NotApplicable, found, origin)
    }

    /// Sets the remark, sentences.
    fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Of this knob rather than that of the rule.
    fn knob(mut self, knob: impl Into<String>) -> Self {
        self.knob = Some(knob.into().into());
        self
    }

    /// A file that would be written.
    fn write(mut self, path: impl Into<String>, value: impl Into<String>) -> Self {
        self.changes.push(KnobChange::Write { path: path.into(), value: value.into() });
        self
    }

    /// A boot parameter that would be set.
    fn boot(mut self, name: &str, value: Option<String>) -> Self {
        self.changes.push(KnobChange::Boot { name: name.to_owned(), value });
        self
    }

    /// A boot parameter that would go.
    fn remove(mut self, name: &str) -> Self {
        self.changes.push(KnobChange::Remove { name: name.to_owned() });
        self
    }

    /// A partition that would be made.
    fn partition(mut self, cpus: impl ToString) -> Self {
        self.changes.push(KnobChange::Partition { cpus: cpus.to_string() });
        self
    }
}

/// Where the command line is.
pub(crate) const CMDLINE: &str = "/proc/cmdline";

/// The behaviour of the loop between its cycles, which decides what helps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Steps of a motor: sleeps, 20 to 50 µs of period.
    StepGeneration,
    /// A control loop: sleeps, 100 µs to 10 ms of period.
    Servo,
    /// Sound: sleeps, milliseconds of period, on a machine that is used for other things.
    Audio,
    /// A loop that never sleeps.
    Polling,
    /// A virtual machine's processors on this host.
    VmGuest,
}

impl Workload {
    /// Returns true where its threads are always ready to run.
    pub fn spins(self) -> bool {
        matches!(self, Self::Polling | Self::VmGuest)
    }
}

/// The CPUs that are tuned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuScope {
    /// Which.
    pub cpus: CpuList,
    /// Why these, in words.
    pub why: String,
}

impl CpuScope {
    /// Whole cores for loops.
    ///
    /// # Errors
    /// The machine has too few.
    pub fn of_cores(cores: LoopCores, facts: &MachineFacts) -> Result<Self, CpuError> {
        let cpus = cores.choose(facts)?;
        let count = match cores {
            LoopCores::Half => "half of the cores".to_owned(),
            LoopCores::Each(1) => "a core for one loop".to_owned(),
            LoopCores::Each(loops) => format!("a core for each of {loops} loops"),
        };
        let apart = match facts.cpu.topology.value() {
            Some(_) => "",
            None => "; which CPUs share a core is not known",
        };
        Ok(Self { cpus, why: format!("{count}, the last ones{apart}") })
    }

    /// Those that were requested; else those that are isolated; else the one to measure on.
    pub fn of(requested: Option<CpuList>, facts: &MachineFacts) -> Self {
        if let Some(cpus) = requested {
            return Self { cpus, why: "as requested".to_owned() };
        }
        let none = CpuList::new();
        let full = facts.isolation.nohz_full_cpus.value().unwrap_or(&none);
        let isolated = facts.isolation.isolated().union(full);
        if !isolated.is_empty() {
            return Self { cpus: isolated, why: "isolated".to_owned() };
        }
        let choice = choose(facts);
        Self { cpus: CpuList::single(choice.cpu), why: choice.why }
    }
}

/// The data that rules look at.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The facts of every result.
    pub facts: &'a MachineFacts,
    /// The settings that rules need beyond them.
    pub settings: &'a KernelSettings,
    /// The CPUs that are tuned.
    pub cpus: &'a CpuList,
    /// The workload that runs on them, where that is known.
    pub workload: Option<Workload>,
}

impl Inputs<'_> {
    /// The last CPU that can be there; the last online one where the kernel does not tell.
    fn last_cpu(&self) -> Option<u32> {
        let cpu = &self.facts.cpu;
        cpu.possible_cpus.value().or(cpu.online_cpus.value())?.last()
    }

    /// The online CPUs that are not tuned.
    fn others(&self) -> CpuList {
        let online = self.facts.cpu.online_cpus.value().cloned().unwrap_or_default();
        online.difference(self.cpus)
    }

    /// Returns true where the kernel is at least this one; `None` where its release is not known.
    fn kernel_from(&self, release: Release) -> Option<bool> {
        Some(self.settings.release? >= release)
    }

    /// The last occurrence of a parameter on the command line.
    fn typed(&self, name: &str) -> Typed<'_> {
        match &self.settings.command_line {
            Fact::Known { value, .. } => value.last(name).map_or(Typed::No, Typed::Yes),
            Fact::Absent { .. } => Typed::Unknown("there is no /proc/cmdline"),
            Fact::Unreadable { why, .. } => Typed::Unknown(why),
        }
    }

    /// The occurrences of a parameter, where each adds its words to those before, as one with all
    /// of them, each once, where it is the last time; `None` where it is not there.
    fn joined(&self, name: &str) -> Option<Param> {
        let line = self.settings.command_line.value()?;
        let last = line.last(name)?;
        let values = line.all(name).filter_map(|param| param.value.as_deref());
        let mut words: Vec<&str> = Vec::new();
        for word in values.flat_map(|value| value.split(',')) {
            words.retain(|earlier| *earlier != word);
            words.push(word);
        }
        let value = (!words.is_empty()).then(|| words.join(","));
        Some(Param { name: last.name.clone(), value })
    }

    /// The finding about a parameter that takes one word each time, and was typed, at last as
    /// `last`: about each occurrence, the most urgent. Of several none is planned away: a change
    /// would take the others along.
    fn each_time(&self, last: &Param, judge: impl Fn(&Param) -> Finding) -> Finding {
        let line = self.settings.command_line.value();
        let findings = line.into_iter().flat_map(|line| line.all(&last.name)).map(&judge);
        let finding = findings.min_by_key(|finding| finding.verdict);
        self.kept_if_repeated(&last.name, finding.unwrap_or_else(|| judge(last)))
    }

    /// The finding about a parameter without its changes where it occurs more than once.
    fn kept_if_repeated(&self, name: &str, mut finding: Finding) -> Finding {
        let line = self.settings.command_line.value();
        if line.is_some_and(|line| line.all(name).count() > 1) {
            finding.changes.clear();
        }
        finding
    }

    /// A list of CPUs that was typed; the error in the kernel's grammar.
    fn list(&self, text: &str) -> Result<CpuList, String> {
        let last = self.last_cpu().unwrap_or(crate::cpulist::MAX_CPUS - 1);
        CpuList::parse(text, last).map_err(|error| error.to_string())
    }

    /// CPUs of a list that share a core with CPUs outside of it, those outside.
    pub(crate) fn split_siblings(&self, cpus: &CpuList) -> CpuList {
        let Some(topology) = self.facts.cpu.topology.value() else { return CpuList::new() };
        let siblings =
            cpus.iter().flat_map(|cpu| topology.siblings(cpu).iter().collect::<Vec<_>>());
        siblings.collect::<CpuList>().difference(cpus)
    }

    /// The cores of these CPUs, each with all of its threads; `None` where no CPU would be left for
    /// other tasks.
    pub(crate) fn whole_cores(&self, cpus: &CpuList) -> Option<CpuList> {
        let whole = cpus.union(&self.split_siblings(cpus));
        let online = self.facts.cpu.online_cpus.value()?;
        (!online.difference(&whole).is_empty()).then_some(whole)
    }

    /// Why this kernel cannot stop the tick of a CPU that is busy (`nohz_full=`), where that is
    /// known.
    pub(crate) fn keeps_the_tick(&self) -> Option<&'static str> {
        let built = self.settings.is_built("NO_HZ_FULL");
        let mode = self.facts.kernel.no_hz.value();
        if built == Some(false) || mode.is_some_and(|mode| *mode != NoHz::Full) {
            return Some("the kernel is built without CONFIG_NO_HZ_FULL");
        }
        // With the option the file exists.
        let shown = &self.facts.isolation.nohz_full_cpus;
        let is_absent = !shown.is_known() && shown.why().is_none();
        is_absent.then_some("the kernel shows no list of such CPUs")
    }

    /// True for a PREEMPT_RT kernel.
    fn is_rt(&self) -> Option<bool> {
        let model = self.facts.preemption.preemption_model.value()?;
        Some(*model == PreemptionModel::Rt)
    }

    /// True for an x86 machine.
    fn is_x86(&self) -> Option<bool> {
        let name = self.facts.kernel.architecture.value()?;
        Some(matches!(name.as_str(), "x86_64" | "i386" | "i586" | "i686"))
    }

    /// True where a hypervisor runs this kernel.
    fn is_guest(&self) -> Option<bool> {
        self.facts.virtualization.virtualization.value().map(|name| name != "none")
    }

    /// A setting's value, or a finding that says why there is none.
    fn value(&self, name: &str) -> Result<(&str, &str), Finding> {
        read(self.settings.value(name)).map(|(value, origin)| (value.as_str(), origin))
    }
}

/// A fact's value with its origin, or a finding that says why there is none.
fn read<T>(fact: &Fact<T>) -> Result<(&T, &str), Finding> {
    match fact {
        Fact::Known { value, origin } => Ok((value, origin)),
        Fact::Absent { origin } => Err(Finding::not_applicable("absent", origin)),
        Fact::Unreadable { origin, why } => {
            Err(Finding::unknown(format!("unreadable: {why}"), origin))
        }
    }
}

/// A parameter and the command line.
#[derive(Debug, Clone, Copy)]
enum Typed<'a> {
    Yes(&'a Param),
    No,
    /// The command line could not be read.
    Unknown(&'a str),
}

impl<'a> Typed<'a> {
    /// The parameter as typed, or `otherwise` where it was not; what is unknown stays unknown.
    fn or(self, otherwise: impl FnOnce() -> Finding) -> Result<&'a Param, Finding> {
        match self {
            Self::Yes(param) => Ok(param),
            Self::No => Err(otherwise()),
            Self::Unknown(why) => Err(Finding::unknown(format!("unreadable: {why}"), CMDLINE)),
        }
    }

    /// The parameter as typed; that it is not there does not matter.
    fn or_absent(self) -> Result<&'a Param, Finding> {
        self.or(|| Finding::not_applicable("not set", CMDLINE))
    }

    /// The parameter as typed; that it is not there is right.
    fn or_good(self) -> Result<&'a Param, Finding> {
        self.or(|| Finding::good("not set", CMDLINE))
    }
}

/// Either way it is the finding.
fn settled(finding: Result<Finding, Finding>) -> Finding {
    finding.unwrap_or_else(|finding| finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmdline::{CommandLine, Param};
    use crate::facts::MachineFacts;
    use crate::plan::is_planned;
    use crate::settings::KernelSettings;
    use crate::{Fact, Root};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn ids_are_unique_and_name_their_subject() {
        let ids: BTreeSet<&str> = all().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), all().count());
        for rule in all() {
            let (subject, name) = rule.id.split_once('.').unwrap();
            assert!(!subject.is_empty() && !name.is_empty(), "{}", rule.id);
            for text in [rule.why, rule.verified, rule.source, rule.knob] {
                assert!(!text.is_empty(), "{} lacks a text", rule.id);
                assert!(!text.contains("  "), "{}: two spaces in {text:?}", rule.id);
            }
            assert!(rule.why.ends_with('.') && rule.gain <= 9, "{}", rule.id);
        }
    }

    /// A machine of `fixtures`.
    struct Captured {
        name: String,
        facts: MachineFacts,
        settings: KernelSettings,
    }

    /// The machines of `fixtures`, by name.
    fn machines() -> Vec<Captured> {
        let at = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
        let entries = std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
        let mut machines: Vec<_> = entries.filter(|path| path.is_dir()).collect();
        machines.sort();
        let machine = |path: std::path::PathBuf| {
            let root = Root::captured(&path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let facts = MachineFacts::collect(&root);
            Captured { name, facts, settings: KernelSettings::collect(&root) }
        };
        machines.into_iter().map(machine).collect()
    }

    /// The machine of `fixtures` with this name.
    fn captured(name: &str) -> Captured {
        machines().into_iter().find(|machine| machine.name == name).unwrap()
    }

    /// The findings of each rule on each machine, for all workloads.
    fn found() -> BTreeMap<&'static str, BTreeSet<(RuleVerdict, String)>> {
        let workloads = [None, Some(Workload::Servo), Some(Workload::Polling)];
        let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for Captured { name, facts, settings } in machines() {
            let scope = CpuScope::of(None, &facts);
            for workload in workloads {
                let inputs =
                    Inputs { facts: &facts, settings: &settings, cpus: &scope.cpus, workload };
                for rule in all() {
                    let verdicts = rule.verdicts(&inputs);
                    for change in verdicts.iter().flat_map(|verdict| &verdict.changes) {
                        if let KnobChange::Write { path, .. } = change {
                            assert!(is_planned(path), "{}: {path} is not in FILES", rule.id);
                        }
                    }
                    let seen = found.entry(rule.id).or_default();
                    let named = verdicts.into_iter().map(|found| (found.verdict, name.clone()));
                    seen.extend(named);
                }
            }
        }
        found
    }

    #[test]
    fn every_rule_is_hit_as_good_as_bad_and_as_unknown() {
        let found = found();
        let lacks = |rule: &Rule, wanted: fn(RuleVerdict) -> bool| {
            !found[rule.id].iter().any(|(verdict, _)| wanted(*verdict))
        };
        let mut missing = Vec::new();
        for rule in all() {
            let is_lacking = [
                ("good", lacks(rule, |verdict| verdict == RuleVerdict::Good)),
                ("bad", lacks(rule, RuleVerdict::is_open)),
                ("unknown", lacks(rule, |verdict| verdict == RuleVerdict::Unknown)),
            ];
            let names = is_lacking.iter().filter(|(_, lacking)| *lacking);
            missing.extend(names.map(|(name, _)| format!("{} is {name} on no machine", rule.id)));
        }
        assert!(missing.is_empty(), "{}", missing.join("\n"));
    }

    #[test]
    fn one_verdict_a_knob_the_most_urgent_first() {
        for Captured { name, facts, settings } in machines() {
            let scope = CpuScope::of(None, &facts);
            let inputs =
                Inputs { facts: &facts, settings: &settings, cpus: &scope.cpus, workload: None };
            let verdicts = judge(&inputs);
            let knobs: BTreeSet<&str> = verdicts.iter().map(|v| v.knob.as_str()).collect();
            assert_eq!(knobs.len(), verdicts.len(), "{name}");
            assert!(verdicts.is_sorted_by_key(|v| v.verdict), "{name}");
            for verdict in &verdicts {
                assert!(
                    !verdict.found.is_empty() && !verdict.why.is_empty(),
                    "{name}: {verdict:?}"
                );
            }
            // What was typed is never passed over.
            let line = settings.command_line.value();
            for param in line.into_iter().flat_map(|line| &line.params) {
                let of_it = verdicts.iter().find(|verdict| param.is(&verdict.knob));
                let passed = of_it.is_some_and(|v| v.verdict == RuleVerdict::NotApplicable);
                assert!(!passed, "{name}: {param} is passed over");
            }
        }
    }

    /// The verdict on `name` where it is typed with this value on that machine.
    fn typed(
        (facts, settings): (&MachineFacts, &KernelSettings),
        words: &str,
        name: &str,
    ) -> Option<KnobVerdict> {
        let mut settings = settings.clone();
        let line = settings.command_line.value().cloned().unwrap_or_default();
        let mut params: Vec<Param> = line.params;
        let new = CommandLine::parse(words).params;
        params.retain(|param| !new.iter().any(|new_param| param.is(&new_param.name)));
        params.extend(new);
        settings.command_line = Fact::known(CommandLine { params, ..line }, "/proc/cmdline");
        let cpus = CpuScope::of(None, facts).cpus;
        let inputs = Inputs { facts, settings: &settings, cpus: &cpus, workload: None };
        judge(&inputs).into_iter().find(|verdict| verdict.knob == name)
    }

    #[test]
    fn no_name_that_is_known_is_passed_over_where_it_is_typed() {
        let known = boot::TUNING.iter().chain(boot::NEVER.iter().map(|(name, _)| name));
        let known: BTreeSet<&str> = known.copied().collect();
        let mut passed = BTreeSet::new();
        for Captured { facts, settings, .. } in machines() {
            for name in &known {
                for value in ["", "=1", "=0", "=off"] {
                    let verdict = typed((&facts, &settings), &format!("{name}{value}"), name);
                    let found = verdict.map(|verdict| (verdict.verdict, verdict.found));
                    if found
                        .as_ref()
                        .is_none_or(|(verdict, _)| *verdict == RuleVerdict::NotApplicable)
                    {
                        passed.insert(format!("{name}{value}: {found:?}"));
                    }
                }
            }
        }
        assert!(passed.is_empty(), "{}", passed.into_iter().collect::<Vec<_>>().join("\n"));
    }

    /// The verdict about `name` on a machine of `fixtures`.
    fn verdict_on(machine: &str, words: &str, name: &str) -> (RuleVerdict, String) {
        let Captured { facts, settings, .. } = captured(machine);
        let verdict = typed((&facts, &settings), words, name).unwrap();
        (verdict.verdict, verdict.why)
    }

    #[test]
    fn threads_that_poll_for_callbacks_need_cpus_that_have_some_offloaded() {
        let poll = |machine: &str, list: &str| {
            verdict_on(machine, &format!("{list} rcu_nocb_poll"), "rcu_nocb_poll")
        };
        // The logs of both reach back to the start; one names CPU 1, the other none.
        assert_eq!(poll("debian-rt-guest-2cpu-tuned", "rcu_nocbs=1").0, RuleVerdict::Good);
        assert_eq!(poll("firecracker-guest-2cpu", "rcu_nocbs=1").0, RuleVerdict::NoEffect);
        let (verdict, why) = poll("smt-desktop-8cpu", "rcu_nocbs=4-7");
        assert_eq!(verdict, RuleVerdict::NoEffect);
        assert!(why.contains("built without CONFIG_RCU_NOCB_CPU"), "{why}");
        // Without a log it is what the kernel makes of the list: what it does not take, it takes
        // for all CPUs.
        let Captured { facts, mut settings, .. } = captured("firecracker-guest-2cpu");
        settings.kernel_log = Fact::unreadable("dmesg", "refused");
        for (list, wanted) in [
            ("rcu_nocbs=1-2", RuleVerdict::Good),
            ("rcu_nocbs", RuleVerdict::NoEffect),
            ("rcu_nocbs=1-0", RuleVerdict::Good),
            ("rcu_nocbs=1", RuleVerdict::Good),
        ] {
            let words = format!("{list} rcu_nocb_poll");
            let verdict = typed((&facts, &settings), &words, "rcu_nocb_poll").unwrap();
            assert_eq!(verdict.verdict, wanted, "{list}");
        }
        let list = typed((&facts, &settings), "rcu_nocbs=1-2", "rcu_nocbs").unwrap();
        assert_eq!(list.verdict, RuleVerdict::Conflict);
        assert!(list.why.contains("offloads all CPUs in its place"), "{}", list.why);
    }

    #[test]
    fn an_iommu_is_judged_by_what_it_does_and_its_parameters_by_whether_they_do_it() {
        let on = |machine: &str, words: &str, name: &str| verdict_on(machine, words, name).0;
        let (smt, industrial) = ("smt-desktop-8cpu", "industrial-rt-4cpu");
        let (verdict, why) = verdict_on(smt, "quiet", "iommu");
        assert_eq!(verdict, RuleVerdict::NeedsReboot);
        assert!(why.contains("Measure what 'iommu=pt' gains"), "{why}");
        assert_eq!(on(smt, "iommu=pt", "iommu"), RuleVerdict::NoEffect);
        assert_eq!(on(industrial, "iommu=pt", "iommu"), RuleVerdict::Good);
        assert_eq!(on(industrial, "intel_iommu=on,sm_on", "intel_iommu"), RuleVerdict::Good);
        assert_eq!(on(industrial, "intel_iommu=off", "intel_iommu"), RuleVerdict::NoEffect);
        // Intel's last switch counts; AMD's driver knows no 'on'.
        assert_eq!(on(industrial, "intel_iommu=off,on", "intel_iommu"), RuleVerdict::Good);
        assert_eq!(on(industrial, "intel_iommu=on,off", "intel_iommu"), RuleVerdict::NoEffect);
        assert_eq!(on(industrial, "amd_iommu=off,on", "amd_iommu"), RuleVerdict::NoEffect);
        // No device of this one has an IOMMU.
        let guest = "firecracker-guest-2cpu";
        assert_eq!(on(guest, "intel_iommu=on", "intel_iommu"), RuleVerdict::NoEffect);
        assert_eq!(on(guest, "amd_iommu=off", "amd_iommu"), RuleVerdict::Good);
        assert_eq!(on(guest, "iommu=off", "iommu"), RuleVerdict::Good);
        assert_eq!(on(guest, "iommu=pt", "iommu"), RuleVerdict::NoEffect);
        // Of several the words are together, and none stands there twice.
        let found = |machine: &str, words: &str| {
            let Captured { facts, settings, .. } = captured(machine);
            typed((&facts, &settings), words, "iommu").expect("judged").found
        };
        assert_eq!(found(smt, "iommu=pt iommu=pt"), "iommu=pt; DMA-FQ");
        assert_eq!(found(guest, "iommu=pt iommu=force"), "iommu=pt,force; absent");
        // The last of these counts wherever it stood before.
        let again = "intel_iommu=on,sm_on intel_iommu=sm_on,on";
        assert_eq!(on(industrial, again, "intel_iommu"), RuleVerdict::Good);
        // Linux 5.10 does not show it.
        assert_eq!(on("legacy-4cpu", "intel_iommu=on", "intel_iommu"), RuleVerdict::Unknown);
        assert_eq!(on("container-unprivileged", "quiet", "iommu"), RuleVerdict::Unknown);
    }

    #[test]
    fn management_interrupts_are_judged_by_the_watch_and_by_uptime() {
        let mut facts = captured("industrial-rt-4cpu").facts;
        let after = |uptime: &str| {
            let tree = crate::testing::Tree::of(&[("/proc/uptime", uptime)]);
            KernelSettings::collect(&tree.root())
        };
        let mut judged = |count: u64, watched: Option<u64>, uptime: &str| {
            facts.power.smi_count = Fact::known(count, "msr");
            let mut settings = after(uptime);
            settings.smi_watched = watched;
            typed((&facts, &settings), "quiet", "SMI").unwrap().verdict
        };
        let day = "86400.5 1.0";
        assert_eq!(judged(0, None, "60.0 1.0"), RuleVerdict::Good);
        assert_eq!(judged(100, Some(0), day), RuleVerdict::Good);
        assert_eq!(judged(100, Some(1), day), RuleVerdict::NeedsReboot);
        assert_eq!(judged(1_440 * 2, Some(0), day), RuleVerdict::NeedsReboot);
        // Just started: those of the firmware's own start are among them.
        assert_eq!(judged(1_000, Some(0), "60.0 1.0"), RuleVerdict::Good);
        assert_eq!(judged(1_000, None, "60.0 1.0"), RuleVerdict::Unknown);
        facts.power.smi_count = Fact::absent("msr");
        let verdict =
            |facts: &MachineFacts| typed((facts, &after(day)), "quiet", "SMI").unwrap().verdict;
        assert_eq!(verdict(&facts), RuleVerdict::Unknown, "the module msr is missing");
        let amd = captured("amd-smt-32cpu").facts;
        assert_eq!(verdict(&amd), RuleVerdict::NotApplicable);
    }

    #[test]
    fn turbo_is_named_and_never_planned_unasked() {
        let on = |machine: &str| verdict_on(machine, "quiet", "boost").0;
        assert_eq!(on("smt-desktop-8cpu"), RuleVerdict::Improve);
        assert_eq!(on("industrial-rt-4cpu"), RuleVerdict::Good);
        assert_eq!(on("container-unprivileged"), RuleVerdict::Unknown);
        let at = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/smt-desktop-8cpu");
        let root = Root::captured(at).unwrap();
        let (facts, settings) = (MachineFacts::collect(&root), KernelSettings::collect(&root));
        let cpus = CpuScope::of(None, &facts).cpus;
        let inputs = Inputs { facts: &facts, settings: &settings, cpus: &cpus, workload: None };
        let mut plan = crate::plan::TuningPlan::of(&inputs, &judge(&inputs), &root);
        let mut named = plan.clone();
        named.keep(&["boost".to_owned()]);
        let changes: Vec<_> = named.runtime.iter().map(|step| step.change.clone()).collect();
        let path = "/sys/devices/system/cpu/intel_pstate/no_turbo".to_owned();
        assert_eq!(changes, [KnobChange::Write { path, value: "1".to_owned() }]);
        plan.leave_dangerous();
        assert!(plan.runtime.iter().all(|step| step.knob != "boost"));
        assert!(plan.by_hand.iter().any(|step| step.knob == "boost"));
    }

    #[test]
    fn what_switches_the_detector_of_soft_lockups_off_is_told_from_what_does_not() {
        let on = |machine: &str, words: &str| verdict_on(machine, words, "nosoftlockup");
        let (verdict, why) = on("amd-smt-32cpu", "nosoftlockup nowatchdog");
        assert_eq!(verdict, RuleVerdict::NoEffect);
        assert!(why.starts_with("nowatchdog switches"), "{why}");
        assert_eq!(on("industrial-rt-4cpu", "nosoftlockup").0, RuleVerdict::Good);
        let (verdict, why) = on("laptop-intel-pstate", "nosoftlockup");
        assert_eq!(verdict, RuleVerdict::NoEffect);
        assert!(why.starts_with("Something switched it on again."), "{why}");
        let (verdict, why) =
            verdict_on("legacy-4cpu", "amd_idle.max_cstate=1", "amd_idle.max_cstate");
        assert_eq!(verdict, RuleVerdict::NoEffect);
        assert!(why.starts_with("No driver of Linux"), "{why}");
    }
}
