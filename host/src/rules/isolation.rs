//! Rules about which CPUs are kept free: `isolcpus=`, cpuset partitions, `nohz_full=`, siblings.

use super::{CMDLINE, Finding, Inputs, Judge, PARAMETERS, Rule, read, rule, settled};
use crate::cmdline::Isolcpus;
use crate::cpulist::CpuList;
use crate::facts::PARTITIONS_SINCE;

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "A CPU outside of load balancing runs only what is put there, so that no ordinary \
              task delays the loop.",
        cost: "The CPUs idle unless something is pinned to them; it cannot be undone until the \
               next boot.",
        verified: "/sys/devices/system/cpu/isolated holds the CPUs that were typed",
        source: PARAMETERS,
        ..rule("isolation.isolcpus", "isolcpus", 8, Judge::One(isolcpus))
    },
    Rule {
        why: "An isolated partition takes CPUs out of load balancing while the machine runs, and \
              gives them back.",
        cost: "Other tasks have fewer CPUs. It stops neither the tick nor interrupts.",
        verified: "the kernel's list cpuset.cpus.isolated, before Linux 6.8 cpuset.cpus.partition \
                   of each partition; with cgroups of version 1 cpuset.sched_load_balance of each \
                   group",
        source: "Linux, admin-guide/cgroup-v2; admin-guide/cgroup-v1/cpusets; \
                 admin-guide/cpu-isolation",
        ..rule("isolation.partition", "cpuset.cpus.partition", 8, Judge::One(partition))
    },
    Rule {
        why: "The tick stops while one task runs on the CPU and RCU's callbacks move away, which \
              helps loops that never sleep; a loop that sleeps every period gains little, since \
              an idle CPU has no tick anyway.",
        cost: "System calls, interrupts and timers of processes become slower on these CPUs.",
        verified: "/sys/devices/system/cpu/nohz_full, the kernel log (NO_HZ)",
        source: "Linux, admin-guide/cpu-isolation; timers/no_hz",
        ..rule("isolation.nohz_full", "nohz_full", 6, Judge::One(nohz_full))
    },
    Rule {
        why: "Two threads of a core share its execution units and caches: what runs on the \
              sibling slows the loop down by a varying amount.",
        cost: "The sibling's time is lost.",
        verified: "topology/core_cpus_list of each CPU, smt/active",
        source: "Linux, admin-guide/cpu-isolation (no SMT)",
        ..rule("isolation.siblings", "smt", 5, Judge::One(siblings))
    },
    Rule {
        why: "SMT switched off at boot removes the siblings of every core.",
        cost: "Half of the logical CPUs.",
        verified: "/sys/devices/system/cpu/smt/control",
        ..rule("isolation.nosmt", "nosmt", 3, Judge::One(nosmt))
    },
    Rule {
        why: "A thread of SCHED_DEADLINE must be allowed on all CPUs of its root domain. CPUs of \
              isolcpus= have no domain of their own, so pinning such a thread fails with EPERM; \
              an isolated partition has one.",
        verified: "/sys/devices/system/cpu/isolated and cpuset.cpus.isolated",
        source: "Linux, scheduler/sched-deadline, section 5",
        ..rule("isolation.deadline", "SCHED_DEADLINE", 2, Judge::One(deadline))
    },
];

fn isolcpus(inputs: &Inputs<'_>) -> Finding {
    settled(judged_isolcpus(inputs))
}

fn judged_isolcpus(inputs: &Inputs<'_>) -> Result<Finding, Finding> {
    let param = inputs.typed("isolcpus").or(|| without_isolcpus(inputs))?;
    let shown = param.to_string();
    let Some(last) = inputs.last_cpu() else {
        return Err(Finding::unknown(shown, CMDLINE).note("The number of CPUs is not known."));
    };
    let nothing = |why: String| Finding::no_effect(shown.clone(), CMDLINE).note(why);
    let value = param.value.as_deref().unwrap_or_default();
    let isolcpus = Isolcpus::parse(value, last)
        .map_err(|error| nothing(format!("The kernel drops the whole parameter: {error}.")))?;
    if isolcpus.cpus.is_empty() {
        return Err(nothing("The list names no CPU.".to_owned()));
    }
    if let Some(false) = inputs.settings.is_built("CPU_ISOLATION") {
        return Err(nothing("The kernel is built without CONFIG_CPU_ISOLATION.".to_owned()));
    }
    let cpus = isolcpus.cpus;
    let partitioned = inputs.facts.isolation.cpuset_isolated_cpus.value();
    if !isolcpus.domain {
        let by_partition =
            partitioned.is_some_and(|partitioned| cpus.difference(partitioned).is_empty());
        let found = format!("{shown}; isolated: {}", list(&inputs.facts.isolation.isolated()));
        return Ok(if by_partition {
            Finding::good(found, CMDLINE).note("A partition isolates the same CPUs.")
        } else {
            let finding = Finding::no_effect(found, CMDLINE).note(
                "Any flag drops the implied flag 'domain', so these CPUs stay in load balancing: \
                 add 'domain', or isolate them by a partition.",
            );
            whole(inputs, &cpus, finding)
        });
    }
    let (effective, origin) = read(&inputs.facts.isolation.isolated_cpus)?;
    let missing = cpus.difference(effective);
    if !missing.is_empty() {
        let found = format!("{shown}; the kernel isolates {}", list(effective));
        return Err(Finding::no_effect(found, origin)
            .note(format!("CPU {missing} was typed and is not isolated.")));
    }
    Ok(layout(inputs, &cpus, "isolcpus").unwrap_or_else(|| Finding::good(shown, origin)))
}

/// The conflict of a set of isolated CPUs with this machine's cores.
fn layout(inputs: &Inputs<'_>, cpus: &CpuList, name: &str) -> Option<Finding> {
    let online = inputs.facts.cpu.online_cpus.value()?;
    if online.difference(cpus).is_empty() {
        let found = format!("{name}={cpus}, online are {online}");
        return Some(Finding::conflict(found, CMDLINE).note("No CPU is left for other tasks."));
    }
    let split = inputs.split_siblings(cpus);
    if split.is_empty() {
        return None;
    }
    let found = format!("{name}={cpus}; CPU {split} shares its cores");
    let finding = Finding::conflict(found, "/sys/devices/system/cpu/cpu*/topology").note(
        "The range splits cores: one thread of a core is isolated, the other works for everybody. \
         Isolate both threads or neither.",
    );
    Some(whole(inputs, cpus, finding))
}

/// With the parameter that isolates the whole cores of these CPUs, where that leaves others some.
fn whole(inputs: &Inputs<'_>, cpus: &CpuList, finding: Finding) -> Finding {
    match inputs.whole_cores(cpus) {
        Some(whole) => finding.boot("isolcpus", Some(format!("domain,managed_irq,{whole}"))),
        None => finding,
    }
}

fn without_isolcpus(inputs: &Inputs<'_>) -> Finding {
    let isolation = &inputs.facts.isolation;
    if inputs.others().is_empty() {
        return Finding::not_applicable("there is one CPU only", "/sys/devices/system/cpu/online");
    }
    let found = Finding::not_applicable("not set", CMDLINE);
    let partitions = &isolation.cpuset_isolated_cpus;
    if partitions.is_known() {
        return found.note("A partition can isolate CPUs without a reboot.");
    }
    if let Some(why) = partitions.why() {
        let found = format!("not set; cpusets of cgroup v2 unreadable: {why}");
        return Finding::unknown(found, partitions.origin())
            .note("With them, a partition can isolate CPUs without a reboot.");
    }
    let found = match inputs.kernel_from(PARTITIONS_SINCE) {
        Some(false) => "not set; this kernel has no isolated partitions of cgroup v2",
        _ => "not set; cpusets of cgroup v2 are not available",
    };
    whole(inputs, inputs.cpus, Finding::needs_reboot(found, CMDLINE))
}

fn partition(inputs: &Inputs<'_>) -> Finding {
    let isolation = &inputs.facts.isolation;
    let booted = isolation.isolated_cpus.value().cloned().unwrap_or_default();
    if inputs.cpus.difference(&booted).is_empty() {
        let found = format!("isolcpus= isolates {booted} already");
        return Finding::not_applicable(found, isolation.isolated_cpus.origin());
    }
    let judged = read(&isolation.cpuset_isolated_cpus).map(|(isolated, origin)| {
        if inputs.cpus.difference(isolated).is_empty() {
            return Finding::good(format!("isolated: {isolated}"), origin);
        }
        let found = format!("isolated: {}; wanted: {}", list(isolated), inputs.cpus);
        if inputs.others().is_empty() {
            return Finding::not_applicable(found, origin).note("There is no other CPU.");
        }
        Finding::improve(found, origin).partition(inputs.cpus)
    });
    settled(judged)
}

fn nohz_full(inputs: &Inputs<'_>) -> Finding {
    settled(judged_nohz_full(inputs))
}

fn judged_nohz_full(inputs: &Inputs<'_>) -> Result<Finding, Finding> {
    let param = inputs.typed("nohz_full").or(|| without_nohz_full(inputs))?;
    let shown = param.to_string();
    let nothing =
        |why: String| Finding::no_effect(shown.clone(), CMDLINE).note(why).remove("nohz_full");
    if let Some(why) = inputs.keeps_the_tick() {
        return Err(nothing(sentence(why)));
    }
    let log = inputs.settings.kernel_log.value();
    if log.is_some_and(|log| log.after("nohz unsupported").is_some()) {
        return Err(nothing("The kernel log says that it does not support it.".to_owned()));
    }
    let typed = inputs
        .list(param.value.as_deref().unwrap_or_default())
        .map_err(|error| nothing(format!("The kernel drops the whole parameter: {error}.")))?;
    let (effective, origin) = read(&inputs.facts.isolation.nohz_full_cpus)?;
    let found = format!("{shown}; effective: {}", list(effective));
    if effective.is_empty() {
        return Err(Finding::no_effect(found, origin).note("The kernel took none of the CPUs."));
    }
    let refused = typed.difference(effective);
    if !refused.is_empty() {
        return Ok(otherwise(inputs, Finding::conflict(found, origin)).note(format!(
            "The kernel keeps CPU {refused} out: the boot CPU must keep its tick."
        )));
    }
    let open = effective.difference(&inputs.facts.isolation.isolated());
    if !open.is_empty() {
        return Ok(otherwise(inputs, Finding::conflict(found, origin)).note(format!(
            "CPU {open} is not isolated: with a second task there the tick is back."
        )));
    }
    if inputs.workload.is_some_and(|workload| !workload.spins()) {
        return Ok(Finding::needs_reboot(found, origin)
            .note("The workload sleeps every period, so this costs more than it gives.")
            .remove("nohz_full"));
    }
    Ok(Finding::good(found, origin))
}

/// With the list that it should have: none where the workload sleeps every period. Where the CPUs
/// are not isolated, that comes first, and is for a person to decide.
fn otherwise(inputs: &Inputs<'_>, finding: Finding) -> Finding {
    if inputs.workload.is_some_and(|workload| !workload.spins()) {
        return finding.remove("nohz_full");
    }
    match inputs.cpus.difference(&inputs.facts.isolation.isolated()).is_empty() {
        true => finding.boot("nohz_full", Some(inputs.cpus.to_string())),
        false => finding,
    }
}

/// A reason as a sentence.
fn sentence(why: &str) -> String {
    let mut letters = why.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

fn without_nohz_full(inputs: &Inputs<'_>) -> Finding {
    let spins = inputs.workload.is_some_and(super::Workload::spins);
    match (spins, inputs.keeps_the_tick()) {
        (true, Some(why)) => Finding::not_applicable(why, inputs.settings.options.origin()),
        (true, None) => Finding::needs_reboot("not set", CMDLINE)
            .boot("nohz_full", Some(inputs.cpus.to_string())),
        (false, _) => Finding::not_applicable("not set", CMDLINE),
    }
}

fn siblings(inputs: &Inputs<'_>) -> Finding {
    let judged = read(&inputs.facts.cpu.topology).map(|(_, origin)| {
        let split = inputs.split_siblings(inputs.cpus);
        if split.is_empty() {
            return Finding::good("no CPU shares a core with them", origin);
        }
        let found = format!("CPU {split} shares a core with CPU {}", inputs.cpus);
        let off = |finding: Finding, cpu: u32| {
            finding.write(format!("/sys/devices/system/cpu/cpu{cpu}/online"), "0")
        };
        split.iter().filter(|cpu| *cpu != 0).fold(Finding::improve(found, origin), off)
    });
    settled(judged)
}

fn nosmt(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("nosmt").or_absent().and_then(|param| {
        let (control, origin) = inputs.value("smt/control")?;
        let found = format!("{param}; control: {control}");
        Ok(match control {
            "off" | "forceoff" => Finding::good(found, origin),
            "on" => Finding::no_effect(found, origin).note("SMT was switched on again."),
            _ => Finding::no_effect(found, origin)
                .note("This machine has no threads to switch off.")
                .remove("nosmt"),
        })
    });
    settled(judged)
}

fn deadline(inputs: &Inputs<'_>) -> Finding {
    let isolation = &inputs.facts.isolation;
    let judged = read(&isolation.isolated_cpus).map(|(booted, origin)| {
        let shared = inputs.cpus.intersection(booted);
        if shared.is_empty() {
            return Finding::good("no CPU is isolated by isolcpus=", origin);
        }
        let found = format!("CPU {shared} is isolated by isolcpus=");
        Finding::needs_reboot(found, origin)
            .note("This matters only for threads of SCHED_DEADLINE.")
    });
    settled(judged)
}

/// A list for a sentence.
fn list(cpus: &CpuList) -> String {
    if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() }
}

#[cfg(test)]
mod tests {
    use crate::rules::RuleVerdict;
    use crate::testing::verdict;

    #[test]
    fn isolcpus_is_wanted_only_where_no_partition_can_be_had() {
        let on = |release: &str, controllers: &str, knob: &str| {
            let files = [
                ("/proc/cmdline", "quiet"),
                ("/proc/sys/kernel/osrelease", release),
                ("/sys/devices/system/cpu/online", "0-3\n"),
                ("/sys/devices/system/cpu/isolated", "\n"),
                ("/proc/self/cgroup", "0::/\n"),
                ("/proc/self/mountinfo", "3 0 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("/sys/fs/cgroup/cgroup.controllers", controllers),
                ("/sys/fs/cgroup/cgroup.subtree_control", "cpu\n"),
            ];
            verdict(&files, Some("2-3"), knob).unwrap()
        };
        let isolcpus = |release, controllers| on(release, controllers, "isolcpus").verdict;
        let partition =
            |release, controllers| on(release, controllers, "cpuset.cpus.partition").verdict;
        let cpuset = "cpuset cpu\n";
        assert_eq!(isolcpus("6.1.0\n", cpuset), RuleVerdict::NotApplicable);
        assert_eq!(partition("6.1.0\n", cpuset), RuleVerdict::Improve);
        assert_eq!(isolcpus("6.1.0\n", "cpu\n"), RuleVerdict::NeedsReboot);
        assert_eq!(partition("6.1.0\n", "cpu\n"), RuleVerdict::NotApplicable);
        let earlier = on("5.10.0\n", cpuset, "isolcpus");
        assert!(earlier.found.contains("this kernel has no isolated partitions"), "{earlier:?}");
        // A container does not show it.
        assert_eq!(isolcpus("6.8.0\n", cpuset), RuleVerdict::Unknown);
        assert_eq!(partition("6.8.0\n", cpuset), RuleVerdict::Unknown);
    }
}
