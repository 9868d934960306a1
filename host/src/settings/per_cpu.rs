//! Settings that each CPU has: how late it may wake, how fast it shall be. Reads through the
//! source.

use crate::fact::Fact;
use crate::facts::source::{CPUS, Source};
use std::collections::BTreeMap;

/// Settings of the online CPUs that have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerCpu {
    /// `power/pm_qos_resume_latency_us`: `n/a` forbids all idle states but polling, 0 allows all.
    pub resume_latency: Fact<BTreeMap<u32, String>>,
    /// `cpufreq/energy_performance_preference`.
    pub energy_preference: Fact<BTreeMap<u32, String>>,
    /// `cpufreq/scaling_governor`.
    pub governor: Fact<BTreeMap<u32, String>>,
}

impl PerCpu {
    pub(super) fn read(source: &Source<'_>) -> Self {
        Self {
            resume_latency: each(source, "power/pm_qos_resume_latency_us"),
            energy_preference: each(source, "cpufreq/energy_performance_preference"),
            governor: each(source, "cpufreq/scaling_governor"),
        }
    }
}

fn each(source: &Source<'_>, name: &str) -> Fact<BTreeMap<u32, String>> {
    let mut all = BTreeMap::new();
    let mut missing = Fact::absent(format!("{CPUS}/cpu*/{name}"));
    for cpu in source.online.iter() {
        match source.word(&format!("{CPUS}/cpu{cpu}/{name}")) {
            Fact::Known { value, .. } => drop(all.insert(cpu, value)),
            Fact::Unreadable { origin, why } => missing = Fact::unreadable(origin, why),
            Fact::Absent { .. } => {}
        }
    }
    if all.is_empty() { missing } else { Fact::known(all, format!("{CPUS}/cpu*/{name}")) }
}
