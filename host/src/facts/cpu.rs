//! The processors: which there are, what they are called, which share a core.
//! Reads `/proc/cpuinfo` and `/sys/devices/system/cpu` through the source.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CPUS, Source, cpu_list, switch};
use crate::cpulist::CpuList;
use crate::fact::Fact;

/// The processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The processor's name; of several kinds, joined by ` + `.
    pub cpu_model: Fact<String>,
    /// The machine's name as its maker gives it: device tree, else DMI.
    pub machine_model: Fact<String>,
    /// CPUs that are online, 1 or more.
    pub cpus: Fact<u32>,
    /// Which are online.
    pub online_cpus: Fact<CpuList>,
    /// Which can ever be there.
    pub possible_cpus: Fact<CpuList>,
    /// Which are possible and not online.
    pub offline_cpus: Fact<CpuList>,
    /// Which CPUs share a core, which a package.
    pub topology: Fact<Topology>,
    /// True where several threads of a core are in use.
    pub smt: Fact<bool>,
    /// True where the TSC runs at one rate at every frequency (x86).
    pub tsc_constant: Fact<bool>,
    /// True where the TSC runs on in deep idle (x86).
    pub tsc_nonstop: Fact<bool>,
}

/// The sockets and the cores of the online CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// Sockets, 1 or more.
    pub packages: u32,
    /// Cores of all sockets.
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

/// `/proc/cpuinfo` in the forms of the architectures: the fields that count, one map a
/// CPU, then those that stand outside of any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CpuInfo {
    cpus: Vec<BTreeMap<String, String>>,
}

impl CpuInfo {
    pub(crate) fn parse(text: &str) -> Self {
        let mut cpus = Vec::new();
        for block in text.split("\n\n") {
            let fields = block.lines().filter_map(|line| {
                let (name, value) = line.split_once(':')?;
                Some((name.trim().to_owned(), value.trim().to_owned()))
            });
            let fields: BTreeMap<_, _> = fields.collect();
            if !fields.is_empty() {
                cpus.push(fields);
            }
        }
        Self { cpus }
    }

    /// A field's first value that is not empty.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.cpus.iter().filter_map(|cpu| cpu.get(name));
        values.find(|value| !value.is_empty()).map(String::as_str)
    }

    /// Returns true where the first CPU's `flags` hold this one; `None` where there is no such
    /// line, as on ARM.
    pub(crate) fn flag(&self, flag: &str) -> Option<bool> {
        self.field("flags").map(|flags| flags.split_ascii_whitespace().any(|word| word == flag))
    }

    /// The processor's name and the field that it came from. Different cores are joined by ` + `.
    fn model(&self) -> Option<(String, &'static str)> {
        // `model name` on x86 and 32-bit ARM, the others on s390, PowerPC, RISC-V.
        for name in ["model name", "cpu model", "uarch", "cpu", "processor 0"] {
            if let Some(value) = self.field(name) {
                return Some((squeeze(value), name));
            }
        }
        let mut cores: Vec<String> = Vec::new();
        for cpu in &self.cpus {
            let number = |name: &str| {
                let text = cpu.get(name)?.trim_start_matches("0x");
                u32::from_str_radix(text, 16).ok()
            };
            let Some((implementer, part)) = number("CPU implementer").zip(number("CPU part"))
            else {
                continue;
            };
            let name = arm_core(implementer, part);
            if !cores.contains(&name) {
                cores.push(name);
            }
        }
        (!cores.is_empty()).then(|| (cores.join(" + "), "CPU implementer, CPU part"))
    }
}

/// One space between words: vendors pad model names.
fn squeeze(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Names by implementer and part number (Linux, `arch/arm64/include/asm/cputype.h`, and the
/// vendors' manuals).
#[rustfmt::skip]
const ARM_CORES: &[(u32, u32, &str)] = &[
    (0x41, 0xc07, "Cortex-A7"), (0x41, 0xc09, "Cortex-A9"), (0x41, 0xc0f, "Cortex-A15"),
    (0x41, 0xd03, "Cortex-A53"), (0x41, 0xd04, "Cortex-A35"), (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"), (0x41, 0xd08, "Cortex-A72"), (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"), (0x41, 0xd0b, "Cortex-A76"), (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd0d, "Cortex-A77"), (0x41, 0xd0e, "Cortex-A76AE"), (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"), (0x41, 0xd42, "Cortex-A78AE"), (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"), (0x41, 0xd47, "Cortex-A710"), (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse-N2"), (0x41, 0xd4a, "Neoverse-E1"), (0x41, 0xd4b, "Cortex-A78C"),
    (0x41, 0xd4d, "Cortex-A715"), (0x41, 0xd4e, "Cortex-X3"), (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd80, "Cortex-A520"), (0x41, 0xd81, "Cortex-A720"), (0x41, 0xd82, "Cortex-X4"),
    (0x41, 0xd84, "Neoverse-V3"), (0x41, 0xd85, "Cortex-X925"), (0x41, 0xd8e, "Neoverse-N3"),
    (0x42, 0x516, "ThunderX2"), (0x43, 0x0a1, "ThunderX"), (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"), (0x48, 0xd01, "Kunpeng-920"), (0x4e, 0x003, "Denver 2"),
    (0x4e, 0x004, "Carmel"), (0x51, 0x800, "Kryo 2xx Gold"), (0x51, 0x801, "Kryo 2xx Silver"),
    (0x51, 0x804, "Kryo 4xx Gold"), (0x51, 0x805, "Kryo 4xx Silver"), (0x51, 0x001, "Oryon"),
    (0xc0, 0xac3, "Ampere-1"), (0xc0, 0xac4, "Ampere-1A"),
];

fn arm_core(implementer: u32, part: u32) -> String {
    let known = ARM_CORES.iter().find(|(by, number, _)| (*by, *number) == (implementer, part));
    match known {
        Some((_, _, name)) => (*name).to_owned(),
        None => format!("ARM implementer {implementer:#x} part {part:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_by_architecture() {
        let model = |text: &str| CpuInfo::parse(text).model();
        assert_eq!(
            model("processor\t: 0\nmodel name\t: Intel(R)  Xeon(R)   CPU\nflags\t\t: fpu tsc\n"),
            Some(("Intel(R) Xeon(R) CPU".to_owned(), "model name"))
        );
        let arm = |part: &str| format!("CPU implementer\t: 0x41\nCPU part\t: {part}\n\n");
        assert_eq!(model(&arm("0xd08")).unwrap().0, "Cortex-A72");
        let mixed = arm("0xd05") + &arm("0xd05") + &arm("0xd0b");
        assert_eq!(model(&mixed).unwrap().0, "Cortex-A55 + Cortex-A76");
        assert_eq!(model(&arm("0xfff")).unwrap().0, "ARM implementer 0x41 part 0xfff");
        assert_eq!(model("processor : 0\nuarch : sifive,u74-mc\n").unwrap().0, "sifive,u74-mc");
        assert_eq!(model("processor : 0\n"), None);
    }

    #[test]
    fn flags_are_whole_words() {
        let info = CpuInfo::parse("flags : constant_tsc nonstop_tsc\n\nflags : x\n");
        assert_eq!(info.flag("nonstop_tsc"), Some(true));
        assert_eq!(info.flag("tsc"), Some(false));
        assert_eq!(CpuInfo::parse("Features : fp\n").flag("fp"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[a-zA-Z :0-9x\n\t]{0,200}") {
            let _ = CpuInfo::parse(&text).model();
        }
    }
}
