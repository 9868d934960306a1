//! Settings of one value, by name: a table of names and paths. Reads through the source.

use crate::fact::Fact;
use crate::facts::source::Source;
use std::collections::BTreeMap;

/// Name, path. A sysctl has its own name; others have the end of their path.
const SETTINGS: &[(&str, &str)] = &[
    ("kernel.nmi_watchdog", "/proc/sys/kernel/nmi_watchdog"),
    ("kernel.numa_balancing", "/proc/sys/kernel/numa_balancing"),
    ("kernel.sched_rt_period_us", "/proc/sys/kernel/sched_rt_period_us"),
    ("kernel.sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"),
    ("kernel.sched_util_clamp_min_rt_default", "/proc/sys/kernel/sched_util_clamp_min_rt_default"),
    ("kernel.soft_watchdog", "/proc/sys/kernel/soft_watchdog"),
    ("kernel.timer_migration", "/proc/sys/kernel/timer_migration"),
    ("kernel.watchdog", "/proc/sys/kernel/watchdog"),
    ("kernel.watchdog_cpumask", "/proc/sys/kernel/watchdog_cpumask"),
    ("vm.compact_unevictable_allowed", "/proc/sys/vm/compact_unevictable_allowed"),
    ("vm.compaction_proactiveness", "/proc/sys/vm/compaction_proactiveness"),
    ("vm.stat_interval", "/proc/sys/vm/stat_interval"),
    ("vm.swappiness", "/proc/sys/vm/swappiness"),
    ("amd_pstate/status", "/sys/devices/system/cpu/amd_pstate/status"),
    ("current_tracer", "/sys/kernel/tracing/current_tracer"),
    ("cpu_dma_latency", "/dev/cpu_dma_latency"),
    ("default_smp_affinity", "/proc/irq/default_smp_affinity"),
    ("intel_pstate/status", "/sys/devices/system/cpu/intel_pstate/status"),
    ("ksm/run", "/sys/kernel/mm/ksm/run"),
    ("machinecheck/ignore_ce", "/sys/devices/system/machinecheck/machinecheck0/ignore_ce"),
    ("cpuidle.off", "/sys/module/cpuidle/parameters/off"),
    ("cpufreq.off", "/sys/module/cpufreq/parameters/off"),
    ("i915.enable_dc", "/sys/module/i915/parameters/enable_dc"),
    ("intel_idle.max_cstate", "/sys/module/intel_idle/parameters/max_cstate"),
    ("pcie_aspm.policy", "/sys/module/pcie_aspm/parameters/policy"),
    ("processor.max_cstate", "/sys/module/processor/parameters/max_cstate"),
    ("rcutree.kthread_prio", "/sys/module/rcutree/parameters/kthread_prio"),
    ("rcutree.nohz_full_patience_delay", "/sys/module/rcutree/parameters/nohz_full_patience_delay"),
    ("rcu_expedited", "/sys/kernel/rcu_expedited"),
    ("rcu_normal", "/sys/kernel/rcu_normal"),
    ("realtime", "/sys/kernel/realtime"),
    ("sched/features", "/sys/kernel/debug/sched/features"),
    ("smt/control", "/sys/devices/system/cpu/smt/control"),
    ("vulnerabilities/spectre_v2", "/sys/devices/system/cpu/vulnerabilities/spectre_v2"),
    ("workqueue/cpumask", "/sys/devices/virtual/workqueue/cpumask"),
    ("workqueue/writeback/cpumask", "/sys/devices/virtual/workqueue/writeback/cpumask"),
];

/// Services whose group of processes tells whether they run.
const SERVICES: &[&str] = &["irqbalance", "stalld", "tuned"];

/// The path of a setting.
pub fn path_of(name: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|(known, _)| *known == name).map(|(_, path)| *path)
}

pub(super) fn read(source: &Source<'_>) -> BTreeMap<&'static str, Fact<String>> {
    let word = |path: &str| match path {
        "/dev/cpu_dma_latency" => source.device_number(path),
        _ => source.word(path),
    };
    let mut all: BTreeMap<&'static str, Fact<String>> =
        SETTINGS.iter().map(|(name, path)| (*name, word(path))).collect();
    all.extend(SERVICES.iter().map(|name| (*name, service(source, name))));
    all.insert("irqbalance.conf", irqbalance(source));
    all
}

/// "running" where systemd has a group of that service with processes.
fn service(source: &Source<'_>, name: &str) -> Fact<String> {
    let tops = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];
    let group = |top: &&str| {
        source
            .word(&format!("{top}/system.slice/{name}.service/cgroup.procs"))
            .map(|_| "running".to_owned())
    };
    // All three are looked at, so that a capture holds them.
    let found: Vec<_> = tops.iter().map(group).collect();
    let absent = Fact::absent(format!("/sys/fs/cgroup (system.slice/{name}.service)"));
    found.into_iter().fold(absent, |found, next| found.or_else(|| next))
}

/// What irqbalance is configured to leave alone: the lines that set its variables.
fn irqbalance(source: &Source<'_>) -> Fact<String> {
    let [debian, fedora] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"]
        .map(|path| source.word(path).map(|text| variables(&text)));
    debian.or_else(|| fedora)
}

/// The lines of irqbalance's configuration that set something.
pub(crate) fn variables(text: &str) -> String {
    let set = |line: &&str| line.trim_start().starts_with("IRQBALANCE_");
    text.lines().filter(set).collect::<Vec<_>>().join("\n")
}
