//! The machines of `fixtures` started anew with what is planned for them: the rules have nothing to
//! say against a line of the plan.

use std::path::Path;

use super::*;
use crate::cmdline::{CommandLine, Isolcpus};
use crate::cpulist::CpuFormat;
use crate::testing::Tree;

const LOG: &str = "/var/log/dmesg";

/// What the workload may be.
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
        let isolated = isolcpus.filter(|of| of.domain).map(|of| of.cpus).unwrap_or_default();
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

/// The CPUs that a machine may be tuned for: those that would be chosen, the last one, and the last
/// half; the boot CPU and one more are left to others.
fn scopes(facts: &MachineFacts) -> Vec<CpuList> {
    let online = facts.cpu.online_cpus.value().cloned().unwrap_or_default();
    let half = online.iter().skip(online.len().div_ceil(2)).collect();
    let last = online.last().map(CpuList::single).unwrap_or_default();
    let mut scopes = vec![CpuScope::of(None, facts).cpus, last, half];
    scopes.retain(|cpus| !cpus.is_empty() && !cpus.contains(0));
    scopes.dedup();
    scopes
}

/// What the rules find wrong with the lines of a plan once the machine was started with them, and
/// what another plan would change of them.
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
        let open = verdicts.iter().find(|of| is_set && of.knob == knob && of.verdict.is_open());
        let open = open.map(|of| format!("{:?}: {}: {}", of.verdict, of.found, of.why));
        let again = again.boot.iter().find(|of| boot_name(&of.change) == Some(knob));
        let why = open.or(again.map(|of| format!("then {:?}", of.change)))?;
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
