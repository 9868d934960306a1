//! The settings that a plan may change while the machine runs: what stands here is planned, and is
//! put back from a journal; nothing else is either. Data, and whether a path is in it.

use super::CpuPartition;
use crate::Root;

/// Their files; `*` is a number.
const FILES: [&str; 28] = [
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
    "/sys/devices/system/machinecheck/machinecheck0/ignore_ce",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/devices/virtual/workqueue/writeback/cpumask",
    "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
    "/sys/kernel/debug/sched/features",
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/rcu_expedited",
    "/sys/kernel/rcu_normal",
    "/sys/module/pcie_aspm/parameters/policy",
];

/// Whether a plan may change this file.
pub(super) fn is_planned(path: &str) -> bool {
    FILES.iter().any(|known| matches(path, known))
}

/// Whether this version changes what is at `path` while the machine runs: a file of a plan, or a
/// control group of [`CpuPartition`] where `root` has them mounted.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

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
}
