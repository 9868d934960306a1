//! A plan of changes: what the rules would change on one machine, while it runs and at its next
//! boot. Pure but for reading the values of now through the root; nothing is changed here.

mod loader;
mod partition;
mod presets;

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Root;
use crate::cmdline::{CommandLine, Param};
use crate::root::Read;
use crate::rules::{self, Inputs, KnobChange, KnobVerdict, Rule, RuleVerdict, Workload};
use crate::settings::KernelSettings;
use presets::{ISOLCPUS, PRESETS};

pub use loader::{BootPlan, BootText, GRUBBY, grub_lines};
pub use partition::CpuPartition;

/// One change, with what it replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// The rule that wants it.
    pub id: String,
    /// The knob.
    pub knob: String,
    /// Why.
    pub why: String,
    /// Its cost: heat, security, lost diagnostics; empty where it costs nothing.
    pub cost: String,
    /// The value there now; null where it could not be read, or is not set.
    pub from: Option<String>,
    /// The change.
    pub change: KnobChange,
}

/// The id of steps that a workload wants, whatever rules find.
const WORKLOAD: &str = "workload";

impl PlanStep {
    /// The usual gain of a loop by the rule that wants it, or, where a workload does, by the rule
    /// about the same parameter: from 9 to 0.
    fn gain(&self) -> u8 {
        gain(|rule| match self.id == WORKLOAD {
            true => rule.knob == self.knob,
            false => rule.id == self.id,
        })
    }
}

/// The gain of the first rule like that; 0 without one.
fn gain(is_it: impl Fn(&Rule) -> bool) -> u8 {
    rules::all().find(|rule| is_it(rule)).map_or(0, |rule| rule.gain)
}

/// A file that a step of a plan writes.
#[derive(Debug, Clone, Copy)]
pub struct PlannedWrite<'a> {
    /// The step.
    pub step: &'a PlanStep,
    /// The path of the file.
    pub path: &'a str,
    /// The text to write.
    pub value: &'a str,
}

/// A change that cannot be planned: somebody has to do it by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByHand {
    /// The knob.
    pub knob: String,
    /// The value that was found, in words.
    pub found: String,
    /// Why, and what to do.
    pub why: String,
    /// True where it takes a reboot: a boot parameter, another kernel, firmware.
    #[serde(default)]
    pub needs_reboot: bool,
    /// The usual gain of a loop, from 9 (stalls of milliseconds) to 0.
    #[serde(default)]
    pub gain: u8,
}

/// All changes, in each list those of most gain first, and of equal gain those that cost nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuningPlan {
    /// While the machine runs, in this order.
    pub runtime: Vec<PlanStep>,
    /// Boot parameters, in this order.
    pub boot: Vec<PlanStep>,
    /// Changes that are left to a person.
    pub by_hand: Vec<ByHand>,
}

/// Rules whose changes nobody gets who did not name the setting.
const DANGEROUS: [&str; 2] = ["watchdogs.machine_check", "frequency.boost"];

/// Rules whose settings keep interrupts, work, timers of others and deep idle states away from
/// CPUs, and cost the other CPUs nothing else.
const ISOLATION: [&str; 7] = [
    "idle.resume_latency",
    "interrupts.default",
    "interrupts.placement",
    "interrupts.workqueue",
    "interrupts.writeback",
    "scheduler.timer_migration",
    "watchdogs.cpumask",
];

/// The row of the workload; `None` where it has none.
fn preset(inputs: &Inputs<'_>) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| Some(preset.workload) == inputs.workload)
}

/// The verdicts of the rules, which agree with the plan: a boot parameter that a workload wants is
/// one that could be better, and what has changes at the boot alone takes a reboot. The most urgent
/// first, of them what helps most.
pub fn verdicts(inputs: &Inputs<'_>, root: &Root) -> Vec<KnobVerdict> {
    let mut verdicts = rules::judge(inputs);
    let boot = TuningPlan::of(inputs, &verdicts, root).boot;
    verdicts.iter_mut().for_each(|judged| leave_unplanned(judged, inputs, &boot));
    for step in boot {
        let KnobChange::Boot { name, .. } = &step.change else { continue };
        if verdicts.iter().any(|judged| judged.changes.contains(&step.change)) {
            continue;
        }
        let judged = verdicts.iter_mut().find(|judged| judged.knob == *name);
        judged.into_iter().for_each(|judged| want_at_boot(judged, &step));
    }
    verdicts.iter_mut().for_each(name_the_reboot);
    verdicts.sort_by_key(|judged| (judged.verdict, Reverse(judged.gain)));
    verdicts
}

/// Leaves out what the plan for a workload does: what that does without, and what it has already.
fn leave_unplanned(judged: &mut KnobVerdict, inputs: &Inputs<'_>, boot: &[PlanStep]) {
    if !judged.verdict.is_open() {
        return;
    }
    let preset = preset(inputs);
    if preset.is_some_and(|preset| preset.without.contains(&judged.id.as_str())) {
        judged.verdict = RuleVerdict::NotApplicable;
        judged.why = format!("What runs there does without. {}", judged.why);
        judged.changes.clear();
        return;
    }
    let is_planned = |change: &KnobChange| {
        let name = boot_name(change);
        name.is_none() || boot.iter().any(|step| boot_name(&step.change) == name)
    };
    let had_changes = !judged.changes.is_empty();
    judged.changes.retain(is_planned);
    if had_changes && judged.changes.is_empty() {
        judged.verdict = RuleVerdict::Good;
        judged.why = format!("As what runs there wants it. {}", judged.why);
    }
}

/// Adds to a verdict about a boot parameter that a plan sets it; one that could not be judged stays
/// so.
fn want_at_boot(judged: &mut KnobVerdict, step: &PlanStep) {
    match judged.verdict {
        RuleVerdict::Unknown => return,
        RuleVerdict::Good | RuleVerdict::NotApplicable => {
            judged.verdict = RuleVerdict::NeedsReboot;
            judged.why = format!("{} {}", step.why, judged.why);
        }
        // What it is set to, or that it goes, is for the plan to say.
        _ => judged.changes.retain(|change| !is_at_boot(change)),
    }
    judged.changes.push(step.change.clone());
}

/// Gives a verdict that says "without a reboot" the one that says with it, where all its changes
/// take one.
fn name_the_reboot(judged: &mut KnobVerdict) {
    let takes_one = !judged.changes.is_empty() && judged.changes.iter().all(is_at_boot);
    if judged.verdict == RuleVerdict::Improve && takes_one {
        judged.verdict = RuleVerdict::NeedsReboot;
    }
}

const fn is_at_boot(change: &KnobChange) -> bool {
    matches!(change, KnobChange::Boot { .. } | KnobChange::Remove { .. })
}

impl TuningPlan {
    /// The changes that the verdicts ask for, and those of the workload. `root` gives the values
    /// that files have now.
    pub fn of(inputs: &Inputs<'_>, verdicts: &[KnobVerdict], root: &Root) -> Self {
        let preset = preset(inputs);
        let without = preset.map_or(&[][..], |preset| preset.without);
        let mut plan = Self { runtime: Vec::new(), boot: Vec::new(), by_hand: Vec::new() };
        let wanted = verdicts.iter().filter(|verdict| !without.contains(&verdict.id.as_str()));
        for verdict in wanted {
            if verdict.changes.is_empty() && verdict.verdict.is_open() {
                plan.by_hand.push(ByHand {
                    knob: verdict.knob.clone(),
                    found: verdict.found.clone(),
                    why: verdict.why.clone(),
                    needs_reboot: verdict.verdict == RuleVerdict::NeedsReboot
                        || verdict.origin == rules::CMDLINE
                        || typed(inputs.settings, &verdict.knob).is_some(),
                    gain: verdict.gain,
                });
            }
            for change in &verdict.changes {
                plan.take(step(verdict, change.clone()), inputs.settings, root);
            }
        }
        plan.by_hand.extend(preset.and_then(|preset| preset.split(inputs)));
        for row in preset.map_or(&[][..], |preset| preset.boot) {
            if let Some(value) = (row.value)(inputs) {
                plan.want(row, value, inputs.settings);
            }
        }
        plan.sort();
        plan
    }

    /// Puts what helps most first, and of that what costs nothing; the rest stays as it is, the
    /// most urgent first.
    fn sort(&mut self) {
        let place = |step: &PlanStep| (Reverse(step.gain()), !step.cost.is_empty());
        self.runtime.sort_by_key(place);
        self.boot.sort_by_key(place);
        self.by_hand.sort_by_key(|by_hand| Reverse(by_hand.gain));
    }

    /// The files that are written while the machine runs.
    pub fn writes(&self) -> impl Iterator<Item = PlannedWrite<'_>> {
        self.runtime.iter().filter_map(|step| match &step.change {
            KnobChange::Write { path, value } => Some(PlannedWrite { step, path, value }),
            _ => None,
        })
    }

    /// Leaves only the changes of these knobs.
    pub fn keep(&mut self, knobs: &[String]) {
        let wanted = |knob: &String| knobs.contains(knob);
        self.runtime.retain(|step| wanted(&step.knob));
        self.boot.retain(|step| wanted(&step.knob));
        self.by_hand.retain(|by_hand| wanted(&by_hand.knob));
    }

    /// Leaves only what keeps CPUs for a command while the machine runs, groups left out
    /// ([`CpuPartition`]).
    pub fn keep_isolation(&mut self) {
        let wanted = |step: &PlanStep| ISOLATION.contains(&step.id.as_str());
        self.runtime.retain(wanted);
        self.boot.clear();
        self.by_hand.clear();
    }

    /// Leaves out what takes diagnostics of the hardware away, or speed: such a change has to be
    /// named.
    pub fn leave_dangerous(&mut self) {
        let (left, runtime) =
            self.runtime.drain(..).partition(|step| DANGEROUS.contains(&step.id.as_str()));
        self.runtime = runtime;
        let left: Vec<PlanStep> = left;
        self.by_hand.extend(left.into_iter().map(|step| ByHand {
            why: format!("{} {} It is changed only if it is named: --only.", step.why, step.cost),
            needs_reboot: false,
            gain: step.gain(),
            found: step.from.unwrap_or_default(),
            knob: step.knob,
        }));
        self.sort();
    }

    /// True where nothing would change.
    pub fn is_empty(&self) -> bool {
        self.runtime.is_empty() && self.boot.is_empty()
    }

    fn take(&mut self, mut step: PlanStep, settings: &KernelSettings, root: &Root) {
        match &step.change {
            // Where debugfs is not mounted, or a driver is gone, there is nothing to write.
            KnobChange::Write { path, .. } if root.read(path) == Read::Absent => {}
            // What a journal could not put back is not changed either.
            KnobChange::Write { path, .. } if !is_planned(path) => {
                debug_assert!(false, "{path} is not in the list of settings");
            }
            KnobChange::Write { path, value } => {
                step.from = current(root, path, value);
                let same = step.from.as_deref() == Some(value);
                let known = self.runtime.iter().any(|planned| planned.change == step.change);
                if !same && !known {
                    self.runtime.push(step);
                }
            }
            KnobChange::Partition { .. } => self.runtime.push(step),
            // A program's, not the machine's: no plan has one.
            KnobChange::Run { .. } => {}
            KnobChange::Boot { name, .. } | KnobChange::Remove { name } => {
                step.from = typed(settings, name);
                let name = name.clone();
                self.boot.retain(|planned| boot_name(&planned.change) != Some(name.as_str()));
                self.boot.push(step);
            }
        }
    }

    /// Plans the value that the workload wants, in place of one that a rule found; what is there
    /// already is left.
    fn want(&mut self, row: &BootRow, value: Option<String>, settings: &KernelSettings) {
        let wanted = Param { name: row.name.to_owned(), value: value.clone() }.to_string();
        let from = typed(settings, row.name);
        self.boot.retain(|planned| boot_name(&planned.change) != Some(row.name));
        if from.as_deref() == Some(wanted.as_str()) {
            return;
        }
        self.boot.push(PlanStep {
            id: WORKLOAD.to_owned(),
            knob: row.name.to_owned(),
            why: row.why.to_owned(),
            cost: String::new(),
            from,
            change: KnobChange::Boot { name: row.name.to_owned(), value },
        });
    }

    /// A command line with the boot parameters of this plan: each is replaced where it stands, new
    /// ones are added at the end.
    pub fn command_line(&self, now: &CommandLine) -> CommandLine {
        let mut line = now.clone();
        for step in &self.boot {
            match &step.change {
                KnobChange::Remove { name } => line.params.retain(|param| !param.is(name)),
                KnobChange::Boot { name, value } => {
                    let new = Param { name: name.clone(), value: value.clone() };
                    let at = line.params.iter().position(|param| param.is(name));
                    line.params.retain(|param| !param.is(name));
                    let at = at.unwrap_or(line.params.len()).min(line.params.len());
                    line.params.insert(at, new);
                }
                KnobChange::Write { .. }
                | KnobChange::Partition { .. }
                | KnobChange::Run { .. } => {}
            }
        }
        line
    }
}

fn step(verdict: &KnobVerdict, change: KnobChange) -> PlanStep {
    PlanStep {
        id: verdict.id.clone(),
        knob: verdict.knob.clone(),
        why: verdict.why.clone(),
        cost: verdict.cost.clone(),
        from: None,
        change,
    }
}

/// The name of a boot parameter that a change is about.
fn boot_name(change: &KnobChange) -> Option<&str> {
    match change {
        KnobChange::Boot { name, .. } | KnobChange::Remove { name } => Some(name),
        KnobChange::Write { .. } | KnobChange::Partition { .. } | KnobChange::Run { .. } => None,
    }
}

/// A file of switches: it shows all of them, each as NAME or `NO_NAME`, and takes one of these
/// words (Linux, kernel/sched/debug.c, sched_feat_write).
const SWITCHES: &str = "/sys/kernel/debug/sched/features";

/// The part of the text of the setting at `path` that `value` is about: of a file of switches, the
/// word of the one switch, empty where there is no such; of any other all of it.
pub fn value_part<'a>(path: &str, text: &'a str, value: &str) -> &'a str {
    if path != SWITCHES {
        return text;
    }
    let name = |word: &str| word.strip_prefix("NO_").unwrap_or(word).to_owned();
    let wanted = name(value.trim());
    text.split_ascii_whitespace().find(|word| name(word) == wanted).unwrap_or_default()
}

/// The value of a file now that `value` would replace; of a choice, the word in brackets or
/// parentheses.
fn current(root: &Root, path: &str, value: &str) -> Option<String> {
    let Read::Text(text) = root.read(path) else { return None };
    let text = value_part(path, &text, value).trim();
    let between = |open, close| Some(text.split_once(open)?.1.split_once(close)?.0);
    Some(between('[', ']').or_else(|| between('(', ')')).unwrap_or(text).to_owned())
}

/// A parameter as it stands on the command line.
fn typed(settings: &KernelSettings, name: &str) -> Option<String> {
    let line = settings.command_line.value()?;
    let words: Vec<String> = line.all(name).map(Param::to_string).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Files of the settings that a plan may change while the machine runs, `*` for a number: what
/// stands here is planned, and is put back from a journal; nothing else is either.
const FILES: [&str; 30] = [
    "/proc/irq/*/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/sched_util_clamp_min_rt_default",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/vm/compact_unevictable_allowed",
    "/proc/sys/vm/compaction_proactiveness",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/swappiness",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu*/online",
    "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/machinecheck/machinecheck0/ignore_ce",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/devices/virtual/workqueue/writeback/cpumask",
    "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
    SWITCHES,
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/rcu_expedited",
    "/sys/kernel/rcu_normal",
    "/sys/module/pcie_aspm/parameters/policy",
];

/// True for a file that a plan may change.
pub(crate) fn is_planned(path: &str) -> bool {
    FILES.iter().any(|known| matches(path, known))
}

/// Returns true where this version changes what is at `path` while the machine runs: a file of a
/// plan, or a control group of [`CpuPartition`] where `root` has them mounted.
pub fn is_setting(path: &str, root: &Root) -> bool {
    is_planned(path) || CpuPartition::has(path, root)
}

fn matches(path: &str, known: &str) -> bool {
    match known.split_once('*') {
        None => path == known,
        Some((before, after)) => {
            let number = path.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            number.is_some_and(|number| {
                // As the kernel writes it: not 03, not +3.
                number.parse::<u32>().is_ok_and(|parsed| parsed.to_string() == number)
            })
        }
    }
}

/// A parameter that a workload wants at boot: its name, and its value on this machine; `None` where
/// this machine has no use for it.
struct BootRow {
    name: &'static str,
    value: fn(&Inputs<'_>) -> Option<Option<String>>,
    why: &'static str,
}

/// The wishes of a workload at boot, beyond what rules find, and the rules that are not for it.
struct Preset {
    workload: Workload,
    boot: &'static [BootRow],
    /// Rules whose changes are left out.
    without: &'static [&'static str],
}

impl Preset {
    /// Why the CPUs cannot be isolated as the workload wants it, for a person to solve.
    fn split(&self, inputs: &Inputs<'_>) -> Option<ByHand> {
        let split = inputs.split_siblings(inputs.cpus);
        let wants = self.boot.iter().any(|row| row.name == ISOLCPUS.name);
        let fits = inputs.whole_cores(inputs.cpus).is_some();
        (wants && !fits && !split.is_empty()).then(|| ByHand {
            knob: ISOLCPUS.name.to_owned(),
            found: format!("CPU {split} shares the cores of CPU {}", inputs.cpus),
            why: "One thread of a core is not isolated without the other, and no core would be \
                  left for other tasks: name the CPUs of fewer cores."
                .to_owned(),
            // Other CPUs are named, and the plan is another one.
            needs_reboot: false,
            gain: gain(|rule| rule.knob == ISOLCPUS.name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choose::LoopCores;
    use crate::cmdline::{CommandLine, Isolcpus};
    use crate::cpulist::CpuFormat;
    use crate::cpulist::CpuList;
    use crate::facts::MachineFacts;
    use crate::rules::{CpuScope, Workload, judge};
    use crate::testing::Tree;
    use std::path::Path;

    /// The directories of `fixtures/machines`.
    fn machines() -> Vec<std::path::PathBuf> {
        let at = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
        let entries = std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
        let mut machines: Vec<_> = entries.filter(|path| path.is_dir()).collect();
        machines.sort();
        machines
    }

    fn plan(machine: &str, cpus: &str, workload: Workload) -> (TuningPlan, KernelSettings) {
        let at = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/");
        let root = Root::captured(format!("{at}{machine}")).unwrap();
        let (facts, settings) = (MachineFacts::collect(&root), KernelSettings::collect(&root));
        let scope = CpuScope::of(Some(CpuList::parse(cpus, 63).unwrap()), &facts);
        let workload = Some(workload);
        let inputs = Inputs { facts: &facts, settings: &settings, cpus: &scope.cpus, workload };
        let plan = TuningPlan::of(&inputs, &judge(&inputs), &root);
        (plan, settings)
    }

    fn line(plan: &TuningPlan, settings: &KernelSettings) -> String {
        plan.command_line(settings.command_line.value().unwrap()).to_string()
    }

    #[test]
    fn a_plan_leaves_out_what_no_kernel_has_and_sets_what_the_workload_wants() {
        let (plan, settings) = plan("smt-desktop-8cpu", "3,7", Workload::StepGeneration);
        let line = line(&plan, &settings);
        for gone in ["kthread_cpus", "workqueue.cpumask", "noirqbalance", "irqpoll", "mitigations"]
        {
            assert!(!line.contains(gone), "{gone}: {line}");
        }
        assert!(line.contains("isolcpus=domain,managed_irq,3,7"), "{line}");
        assert!(line.contains("irqaffinity=0-2,4-6"), "{line}");
        assert!(!line.contains("nohz_full"), "the loop sleeps: {line}");
        assert!(!line.contains("rcu_nocbs"), "the kernel is built without it: {line}");
        assert!(line.starts_with("BOOT_IMAGE="), "the rest stays in its place: {line}");
        let writes = |end: &str| {
            plan.runtime.iter().any(
                |step| {
 matches!(&step.change, KnobChange::Write { path, .. } if path.ends_with(end))
},
            )
        };
        assert!(
            writes("cpu3/power/pm_qos_resume_latency_us") && writes("irq/130/smp_affinity_list")
        );
        assert!(!writes("cpu2/power/pm_qos_resume_latency_us"), "only the CPUs of the loop");
    }

    #[test]
    fn of_a_file_of_switches_a_step_names_the_one_that_it_changes() {
        let (plan, _) = plan("smt-desktop-8cpu", "3,7", Workload::Servo);
        let step = plan.runtime.iter().find(|step| step.knob == "RT_RUNTIME_SHARE").expect("one");
        assert_eq!(step.from.as_deref(), Some("RT_RUNTIME_SHARE"));
        let part = |text, value| value_part(SWITCHES, text, value);
        assert_eq!(part("NO_A NO_AB B\n", "AB"), "NO_AB");
        assert_eq!(part("A B\n", "C"), "");
        assert_eq!(value_part("/proc/sys/vm/swappiness", "60\n", "10"), "60\n");
    }

    #[test]
    fn what_is_right_already_is_not_planned() {
        let (plan, settings) = plan("industrial-rt-4cpu", "2-3", Workload::Servo);
        let changed: Vec<&str> = plan.boot.iter().map(|step| step.knob.as_str()).collect();
        // nohz=off and no change of isolation: the machine is tuned.
        assert!(!changed.contains(&"isolcpus") && !changed.contains(&"irqaffinity"), "{changed:?}");
        assert!(line(&plan, &settings).contains("isolcpus=domain,managed_irq,2-3"));
    }

    #[test]
    fn sound_does_not_take_cpus_from_others() {
        let (plan, settings) = plan("laptop-intel-pstate", "7", Workload::Audio);
        let line = line(&plan, &settings);
        assert!(!line.contains("isolcpus") && line.ends_with("threadirqs"), "{line}");
        assert!(!plan.runtime.iter().any(|s| matches!(s.change, KnobChange::Partition { .. })));
        assert!(plan.runtime.iter().any(|step| step.knob == "scaling_governor"));
    }

    #[test]
    fn loops_that_never_sleep_get_a_stopped_tick() {
        let (plan, settings) = plan("laptop-intel-pstate", "7", Workload::Polling);
        let line = line(&plan, &settings);
        assert!(line.contains("nohz_full=7") && line.contains("rcu_nocb_poll"), "{line}");
        assert!(!line.contains("preempt=none"), "{line}");
    }

    #[test]
    fn a_plan_for_whole_cores_isolates_the_threads_of_each() {
        let line_of = |machine: &str, cores: LoopCores| {
            let path = format!("{}/../fixtures/machines/{machine}", env!("CARGO_MANIFEST_DIR"));
            let facts = MachineFacts::collect(&Root::captured(path).unwrap());
            let scope = CpuScope::of_cores(cores, &facts).unwrap();
            let (plan, settings) = plan(machine, &scope.cpus.to_string(), Workload::Servo);
            (scope.why, line(&plan, &settings))
        };
        for (machine, cores, isolated) in [
            // Cores 0-1 and 2-3 have two threads, 4 to 7 one.
            ("laptop-intel-pstate", LoopCores::Half, "5-7"),
            ("laptop-intel-pstate", LoopCores::Each(5), "2-7"),
            ("smt-desktop-8cpu", LoopCores::Half, "2-3,6-7"),
            ("smt-desktop-8cpu", LoopCores::Each(1), "3,7"),
            ("debian-rt-guest-2cpu", LoopCores::Half, "1"),
        ] {
            let (why, line) = line_of(machine, cores);
            let wanted = format!("isolcpus=domain,managed_irq,{isolated}");
            assert!(line.split(' ').any(|word| word == wanted), "{machine} {cores:?}: {line}");
            assert!(why.ends_with("the last ones"), "{why}");
        }
    }

    #[test]
    fn what_helps_most_and_costs_least_comes_first_in_each_list() {
        let (mut seen, mut reboots) = (0, 0);
        for machine in machines() {
            let name = machine.file_name().unwrap().to_string_lossy().into_owned();
            let facts = MachineFacts::collect(&Root::captured(machine).unwrap());
            let Some(cpu) = facts.cpu.online_cpus.value().and_then(CpuList::last) else { continue };
            for workload in [Workload::Servo, Workload::Audio, Workload::Polling] {
                let (mut plan, settings) = plan(&name, &cpu.to_string(), workload);
                plan.leave_dangerous();
                let place = |step: &PlanStep| (Reverse(step.gain()), !step.cost.is_empty());
                assert!(plan.runtime.is_sorted_by_key(place), "{name}: {:#?}", plan.runtime);
                assert!(plan.boot.is_sorted_by_key(place), "{name}: {:#?}", plan.boot);
                assert!(plan.by_hand.is_sorted_by_key(|by_hand| Reverse(by_hand.gain)), "{name}");
                // What a person typed goes with the next boot only.
                for by_hand in &plan.by_hand {
                    let is_typed = typed(&settings, &by_hand.knob).is_some();
                    assert!(by_hand.needs_reboot || !is_typed, "{name}: {by_hand:?}");
                    reboots += usize::from(by_hand.needs_reboot);
                }
                // The steps of a rule stand together: its reason is given once.
                let mut ids: Vec<&str> = plan.runtime.iter().map(|step| &step.id[..]).collect();
                ids.dedup();
                let count = ids.len();
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), count, "{name}: {ids:?}");
                seen += plan.runtime.len() + plan.boot.len();
            }
        }
        assert!(seen > 100 && reboots > 10, "{seen} steps, {reboots} reboots");
        // Of a workload's wishes the place is that of the rule about the same parameter.
        let (plan, _) = plan("smt-desktop-8cpu", "3,7", Workload::Servo);
        let at = |knob: &str| plan.boot.iter().position(|step| step.knob == knob).expect(knob);
        assert!(at("highres") < at("isolcpus") && at("isolcpus") < at("nohz"), "{:#?}", plan.boot);
    }

    const IGNORE_CE: &str = "machinecheck/ignore_ce";

    #[test]
    fn what_takes_diagnostics_away_has_to_be_named() {
        let (mut plan, _) = plan("smt-desktop-8cpu", "3,7", Workload::Servo);
        let mut named = plan.clone();
        let has = |plan: &TuningPlan| plan.runtime.iter().any(|step| step.knob == IGNORE_CE);
        assert!(has(&plan), "the rule wants it");
        plan.leave_dangerous();
        assert!(!has(&plan));
        let left = plan.by_hand.iter().find(|by_hand| by_hand.knob == IGNORE_CE).expect("named");
        assert!(left.why.contains("only if it is named"), "{}", left.why);
        named.keep(&[IGNORE_CE.to_owned()]);
        assert!(has(&named) && named.runtime.len() == 1);
    }

    #[test]
    fn a_path_is_known_letter_by_letter() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let tree =
            Tree::of(&[("/proc/self/cgroup", "3:cpuset:/\n"), ("/proc/self/mountinfo", mounts)]);
        let root = tree.root();
        let known = [
            "/proc/sys/vm/swappiness",
            "/proc/irq/130/smp_affinity_list",
            "/sys/devices/system/cpu/cpu0/online",
            "/sys/fs/cgroup/cpuset/punctual.isolated/",
            "/sys/fs/cgroup/cpuset/punctual.others/cpuset.cpus",
            "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance",
        ];
        assert!(known.iter().all(|path| is_setting(path, &root)));
        let foreign = [
            "",
            "/",
            "/etc/shadow",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/vm/swappiness/",
            "/proc/sys/vm/../vm/swappiness",
            "//proc/sys/vm/swappiness",
            "/proc/irq/../irq/1/smp_affinity_list",
            "/proc/irq//smp_affinity_list",
            "/proc/irq/+1/smp_affinity_list",
            "/sys/devices/system/cpu/cpu0/../../../../../tmp/online",
            "/tmp/punctual.isolated/",
            "/sys/fs/cgroup/cpuset/",
            "/sys/fs/cgroup/cpuset/other/",
            "/sys/fs/cgroup/cpuset/punctual.isolated/../other/",
            "/sys/fs/cgroup/cpuset/punctual.isolated/cgroup.procs",
        ];
        let taken: Vec<_> = foreign.iter().filter(|path| is_setting(path, &root)).collect();
        assert!(taken.is_empty(), "{taken:?}");
    }

    const LOG: &str = "/var/log/dmesg";

    /// All workloads, and none.
    const WORKLOADS: [Option<Workload>; 6] = [
        None,
        Some(Workload::StepGeneration),
        Some(Workload::Servo),
        Some(Workload::Audio),
        Some(Workload::Polling),
        Some(Workload::VmGuest),
    ];

    /// A machine in a tree of the test's own, read again after each change.
    struct Booted {
        tree: Tree,
        facts: MachineFacts,
        settings: KernelSettings,
    }

    impl Booted {
        /// With the machine's own kernel, or one that is built without CONFIG_NO_HZ_FULL.
        fn of(machine: &Path, own_kernel: bool) -> Self {
            let tree = Tree::new();
            copy(machine, tree.path(), own_kernel);
            let root = tree.root();
            let (facts, settings) = (MachineFacts::collect(&root), KernelSettings::collect(&root));
            Self { tree, facts, settings }
        }

        fn text(&self, path: &str) -> Option<String> {
            std::fs::read_to_string(self.tree.path().join(path.trim_start_matches('/'))).ok()
        }

        fn read(&mut self) {
            let root = self.tree.root();
            self.facts = MachineFacts::collect(&root);
            self.settings = KernelSettings::collect(&root);
        }

        fn inputs<'a>(&'a self, cpus: &'a CpuList, workload: Option<Workload>) -> Inputs<'a> {
            Inputs { facts: &self.facts, settings: &self.settings, cpus, workload }
        }

        fn plan(&self, cpus: &CpuList, workload: Option<Workload>) -> TuningPlan {
            let inputs = self.inputs(cpus, workload);
            TuningPlan::of(&inputs, &judge(&inputs), &self.tree.root())
        }

        /// Starts it with this command line: what a kernel of these options shows of it.
        fn start(&mut self, line: &CommandLine) {
            let last = self.facts.cpu.possible_cpus.value().or(self.facts.cpu.online_cpus.value());
            let last = last.and_then(CpuList::last).unwrap_or(0);
            let list = |name: &str| {
                let text = line.value(name)?;
                CpuList::parse(text, last).ok().filter(|cpus| !cpus.is_empty())
            };
            let built = |option: &str| self.settings.is_built(option) == Some(true);
            self.tree.write("/proc/cmdline", format!("{line}\n"));
            let isolcpus = line.value("isolcpus").and_then(|text| Isolcpus::parse(text, last).ok());
            let isolated = isolcpus
                .filter(|isolcpus| isolcpus.domain)
                .map(|isolcpus| isolcpus.cpus)
                .unwrap_or_default();
            self.tree.write("/sys/devices/system/cpu/isolated", format!("{isolated}\n"));
            let mut offloaded = list("rcu_nocbs").unwrap_or_default();
            if built("NO_HZ_FULL") {
                // The boot CPU keeps its tick.
                let full = list("nohz_full").unwrap_or_default().difference(&CpuList::single(0));
                self.tree.write("/sys/devices/system/cpu/nohz_full", format!("{full}\n"));
                offloaded = offloaded.union(&full);
            }
            if let Some(cpus) = list("irqaffinity") {
                // The boot CPU is always among them.
                let cpus = cpus.union(&CpuList::single(0));
                self.tree.write("/proc/irq/default_smp_affinity", CpuFormat::Mask.show(&cpus));
            }
            let mode =
                line.value("preempt").map(|mode| ("/sys/kernel/debug/sched/preempt".into(), mode));
            let shown = line.params.iter().filter_map(|param| {
                let (module, name) = param.name.split_once('.')?;
                Some((format!("/sys/module/{module}/parameters/{name}"), param.value.as_deref()?))
            });
            for (path, value) in shown.chain(mode) {
                if let Some(text) = self.text(&path) {
                    self.tree.write(&path, chosen(&text, value));
                }
            }
            if let Some(log) = self.text(LOG) {
                let stays = |line: &&str| !line.contains("Offload RCU") && !line.contains("NO_HZ:");
                let mut log: Vec<&str> = log.lines().filter(stays).collect();
                let offload =
                    format!("[    0.01] rcu: \tOffload RCU callbacks from CPUs: {offloaded}.");
                if built("RCU_NOCB_CPU") && !offloaded.is_empty() {
                    log.push(&offload);
                }
                self.tree.write(LOG, log.join("\n") + "\n");
            }
            self.read();
        }
    }

    /// A choice with this word marked; what is no choice is the value.
    fn chosen(text: &str, value: &str) -> String {
        for (open, close) in [('[', ']'), ('(', ')')] {
            if text.contains(open) {
                let plain = text.replace([open, close], "");
                let mark = |word: &str| match word == value {
                    true => format!("{open}{word}{close}"),
                    false => word.to_owned(),
                };
                return plain.split_whitespace().map(mark).collect::<Vec<_>>().join(" ");
            }
        }
        value.to_owned()
    }

    fn copy(from: &Path, to: &Path, own_kernel: bool) {
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                std::fs::create_dir_all(&to).unwrap();
                copy(&entry.path(), &to, own_kernel);
            } else if own_kernel || entry.file_name() != "nohz_full" {
                let bytes = std::fs::read(entry.path()).unwrap();
                let config = entry.file_name().to_string_lossy().starts_with("config-");
                let bytes = match std::str::from_utf8(&bytes) {
                    Ok(text) if config && !own_kernel => {
                        text.replace("CONFIG_NO_HZ_FULL=y", "# CONFIG_NO_HZ_FULL is not set").into()
                    }
                    _ => bytes,
                };
                std::fs::write(to, bytes).unwrap();
            }
        }
    }

    /// The CPUs that a machine may be tuned for: those that would be chosen, the last one, and the
    /// last half; the boot CPU and one more are left to others.
    fn scopes(facts: &MachineFacts) -> Vec<CpuList> {
        let online = facts.cpu.online_cpus.value().cloned().unwrap_or_default();
        let half = online.iter().skip(online.len().div_ceil(2)).collect();
        let last = online.last().map(CpuList::single).unwrap_or_default();
        let mut scopes = vec![CpuScope::of(None, facts).cpus, last, half];
        scopes.retain(|cpus| !cpus.is_empty() && !cpus.contains(0));
        scopes.dedup();
        scopes
    }

    /// The faults that the rules find with the lines of a plan once the machine was started with
    /// them, and the changes that another plan would make to them.
    fn faults(
        after: &Booted,
        plan: &TuningPlan,
        cpus: &CpuList,
        workload: Option<Workload>,
    ) -> Vec<String> {
        let (again, verdicts) = (after.plan(cpus, workload), judge(&after.inputs(cpus, workload)));
        let fault = |step: &PlanStep| {
            let knob = boot_name(&step.change)?;
            let is_set = matches!(step.change, KnobChange::Boot { .. });
            let open = verdicts
                .iter()
                .find(|verdict| is_set && verdict.knob == knob && verdict.verdict.is_open());
            let open = open.map(|verdict| {
                format!("{:?}: {}: {}", verdict.verdict, verdict.found, verdict.why)
            });
            let again = again.boot.iter().find(|step| boot_name(&step.change) == Some(knob));
            let why = open.or(again.map(|step| format!("then {:?}", step.change)))?;
            Some(format!("{cpus} {workload:?}: {:?}: {why}", step.change))
        };
        plan.boot.iter().filter_map(fault).collect()
    }

    #[test]
    fn a_machine_that_was_started_as_planned_finds_no_fault_with_the_plan() {
        let (mut found, mut planned) = (Vec::new(), 0);
        let kernels =
            machines().into_iter().flat_map(|machine| [(machine.clone(), true), (machine, false)]);
        for (machine, own) in kernels {
            let name = format!("{} {own}", machine.file_name().unwrap().to_string_lossy());
            let (before, mut after) = (Booted::of(&machine, own), Booted::of(&machine, own));
            let Some(line) = before.settings.command_line.value() else { continue };
            for cpus in scopes(&before.facts) {
                for workload in WORKLOADS {
                    let plan = before.plan(&cpus, workload);
                    after.start(&plan.command_line(line));
                    planned += plan.boot.len();
                    let faults = faults(&after, &plan, &cpus, workload);
                    found.extend(faults.into_iter().map(|fault| format!("{name} {fault}")));
                }
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
        assert!(planned > 100, "{planned} lines are too few to show anything");
    }
}
