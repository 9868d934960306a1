//! Which CPUs are kept free of others' work: what the kernel says, and what it was asked for.
//! Reads `/sys/devices/system/cpu`, the command line and the control groups.

use super::source::{CPUS, Source};
use crate::cpulist::CpuList;
use crate::fact::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Isolation by effect (lists that the kernel shows) and by wish (boot parameters).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Isolation {
    /// CPUs outside of the scheduler's load balancing.
    pub isolated_cpus: Fact<CpuList>,
    /// CPUs whose tick can stop while one task runs; absent where the kernel cannot do it.
    pub nohz_full_cpus: Fact<CpuList>,
    /// CPUs in isolated cpuset partitions, by control groups of version 2.
    pub cpuset_isolated_cpus: Fact<CpuList>,
    /// The value of `isolcpus=`, flags included.
    pub isolcpus_parameter: Fact<String>,
    /// The value of `nohz_full=`.
    pub nohz_full_parameter: Fact<String>,
    /// The value of `rcu_nocbs=`.
    pub rcu_nocbs_parameter: Fact<String>,
    /// The value of `irqaffinity=`.
    pub irqaffinity_parameter: Fact<String>,
}

impl Isolation {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        Self {
            isolated_cpus: source.cpu_list(&format!("{CPUS}/isolated")),
            nohz_full_cpus: source.cpu_list(&format!("{CPUS}/nohz_full")),
            cpuset_isolated_cpus: source.cgroups.v2.clone().and_then(|group, _| {
                source.cpu_list(&format!("{}/cpuset.cpus.isolated", group.mount))
            }),
            isolcpus_parameter: source.parameter("isolcpus"),
            nohz_full_parameter: source.parameter("nohz_full"),
            rcu_nocbs_parameter: source.parameter("rcu_nocbs"),
            irqaffinity_parameter: source.parameter("irqaffinity"),
        }
    }

    /// The CPUs that are isolated by boot parameter or by control group.
    pub fn isolated(&self) -> CpuList {
        let none = CpuList::new();
        let booted = self.isolated_cpus.value().unwrap_or(&none);
        booted.union(self.cpuset_isolated_cpus.value().unwrap_or(&none))
    }
}
