//! Plans of the machines of `fixtures`.

use super::*;
use crate::cpulist::CpuList;
use crate::facts::MachineFacts;
use crate::rules::{CpuScope, Workload, judge};

mod booted;

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
    for gone in ["kthread_cpus", "workqueue.cpumask", "noirqbalance", "irqpoll", "mitigations"] {
        assert!(!line.contains(gone), "{gone}: {line}");
    }
    assert!(line.contains("isolcpus=domain,managed_irq,3,7"), "{line}");
    assert!(line.contains("irqaffinity=0-2,4-6"), "{line}");
    assert!(!line.contains("nohz_full"), "the loop sleeps: {line}");
    assert!(!line.contains("rcu_nocbs"), "the kernel is built without it: {line}");
    assert!(line.starts_with("BOOT_IMAGE="), "the rest stays in its place: {line}");
    let writes = |end: &str| {
        plan.runtime.iter().any(
            |step| matches!(&step.change, KnobChange::Write { path, .. } if path.ends_with(end)),
        )
    };
    assert!(writes("cpu3/power/pm_qos_resume_latency_us") && writes("irq/130/smp_affinity_list"));
    assert!(!writes("cpu2/power/pm_qos_resume_latency_us"), "only the CPUs of the loop");
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
