//! The processors: which there are, what they are called, which share a core.
//! Reads `/proc/cpuinfo` and `/sys/devices/system/cpu` through the source.

use super::source::{CPUS, Source, cpu_list, switch};
use crate::cpulist::CpuList;
use crate::fact::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The processor's name; of several kinds, joined by ` + `.
    pub cpu_model: Fact<String>,
    /// The machine's name as its maker gives it: device tree, else DMI.
    pub machine_model: Fact<String>,
    /// How many CPUs are online.
    pub cpus: Fact<u32>,
    /// Which are online.
    pub online_cpus: Fact<CpuList>,
    /// Which can ever be there.
    pub possible_cpus: Fact<CpuList>,
    /// Which are possible and not online.
    pub offline_cpus: Fact<CpuList>,
    /// Which CPUs share a core, which a package.
    pub topology: Fact<Topology>,
    /// Whether several threads of a core are in use.
    pub smt: Fact<bool>,
    /// Whether the TSC runs at one rate at every frequency (x86).
    pub tsc_constant: Fact<bool>,
    /// Whether the TSC runs on in deep idle (x86).
    pub tsc_nonstop: Fact<bool>,
}

/// How the online CPUs share hardware.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// How many sockets.
    pub packages: u32,
    /// How many cores in all.
    pub cores: u32,
    /// The CPUs of each core; more than one each with SMT.
    pub core_cpus: Vec<CpuList>,
}

impl Topology {
    /// The other CPUs of the same core.
    pub fn siblings(&self, cpu: u32) -> CpuList {
        let core = self.core_cpus.iter().find(|core| core.contains(cpu));
        core.map(|core| core.difference(&CpuList::single(cpu))).unwrap_or_default()
    }
}

impl Cpu {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        let online = source.cpu_list(&format!("{CPUS}/online"));
        Self {
            cpu_model: model(source),
            machine_model: machine(source),
            cpus: online.clone().map(|cpus| cpus.len() as u32),
            online_cpus: online,
            possible_cpus: source.cpu_list(&format!("{CPUS}/possible")),
            offline_cpus: source.cpu_list(&format!("{CPUS}/offline")),
            topology: topology(source),
            smt: source.parsed(&format!("{CPUS}/smt/active"), switch),
            tsc_constant: flag(source, "constant_tsc"),
            tsc_nonstop: flag(source, "nonstop_tsc"),
        }
    }
}

fn model(source: &Source<'_>) -> Fact<String> {
    let named = source.cpuinfo.clone().and_then(|info, origin| match info.model() {
        Some((model, field)) => Fact::known(model, format!("{origin} ({field})")),
        None => Fact::absent(origin),
    });
    named.or_else(|| source.word("/sys/firmware/devicetree/base/model"))
}

fn machine(source: &Source<'_>) -> Fact<String> {
    source.word("/sys/firmware/devicetree/base/model").or_else(|| {
        let product = source.word("/sys/class/dmi/id/product_name");
        let vendor = source.word("/sys/class/dmi/id/sys_vendor");
        product.map(|product| match vendor.value() {
            Some(vendor) if !product.starts_with(vendor.as_str()) => format!("{vendor} {product}"),
            _ => product,
        })
    })
}

fn flag(source: &Source<'_>, flag: &str) -> Fact<bool> {
    source.cpuinfo.clone().and_then(|info, origin| {
        let origin = format!("{origin} (flags)");
        match info.flag(flag) {
            Some(set) => Fact::known(set, origin),
            None => Fact::absent(origin),
        }
    })
}

fn topology(source: &Source<'_>) -> Fact<Topology> {
    let mut cores: Vec<CpuList> = Vec::new();
    let mut packages: Vec<String> = Vec::new();
    for cpu in source.online.iter() {
        let at = format!("{CPUS}/cpu{cpu}/topology");
        // `thread_siblings_list` is the name up to Linux 5.1.
        let core = source
            .parsed(&format!("{at}/core_cpus_list"), cpu_list)
            .or_else(|| source.parsed(&format!("{at}/thread_siblings_list"), cpu_list));
        match core {
            Fact::Known { value, .. } => {
                if !cores.contains(&value) {
                    cores.push(value);
                }
            }
            Fact::Absent { origin } => return Fact::absent(origin),
            Fact::Unreadable { origin, why } => return Fact::unreadable(origin, why),
        }
        if let Fact::Known { value, .. } = source.word(&format!("{at}/physical_package_id"))
            && !packages.contains(&value)
        {
            packages.push(value);
        }
    }
    let topology = Topology {
        packages: packages.len().max(1) as u32,
        cores: cores.len() as u32,
        core_cpus: cores,
    };
    Fact::known(topology, format!("{CPUS}/cpu*/topology"))
}
