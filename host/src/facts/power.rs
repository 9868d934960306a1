//! Where the current comes from, and what firmware and host took of the CPUs' time.
//!
//! Reads `/sys/class/power_supply`, `/proc/stat` (steal) and, where it is Intel's own hardware,
//! the counter of system management interrupts (`MSR_SMI_COUNT`, 0x34, Intel SDM volume 4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::virtualization::Virtualization;
use super::{MachineFacts, Source};
use crate::counts::StealTicks;
use crate::cpulist::CpuList;
use crate::fact::Fact;
use crate::root::{Listing, Read, Root};

const SUPPLIES: &str = "/sys/class/power_supply";
const SMI_COUNT: u32 = 0x34;
/// The counter has 32 bits; the upper half of the register is reserved.
const COUNT_MASK: u64 = 0xffff_ffff;
/// Why they are not counted.
const NOT_INTEL: &str = "/proc/cpuinfo (vendor_id, flags)";

/// Power, and time that this kernel did not have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// Mains or battery; absent where the machine reports no supply.
    pub power_source: Fact<PowerSource>,
    /// Time since boot that the host gave to others while a CPU here was ready to run, summed over
    /// the CPUs, in ticks of `USER_HZ` (10 ms on every architecture in use).
    pub steal_ticks: Fact<u64>,
    /// System management interrupts since reset, of the first online CPU.
    pub smi_count: Fact<u64>,
}

/// Where the current comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PowerSource {
    /// A supply is connected, or the battery is not being drawn from.
    Mains,
    /// The battery is being drawn from.
    Battery,
}

impl Power {
    pub(crate) fn collect(source: &Source<'_>, virtualization: &Virtualization) -> Self {
        Self {
            power_source: supply(source),
            steal_ticks: source.parsed("/proc/stat", |text| StealTicks::parse(text).total()),
            smi_count: smi_count(source, virtualization),
        }
    }
}

fn supply(source: &Source<'_>) -> Fact<PowerSource> {
    let names = match source.root.list(SUPPLIES) {
        Listing::Names(names) => names,
        Listing::Absent => return Fact::absent(SUPPLIES),
        Listing::Unreadable { why } => return Fact::unreadable(SUPPLIES, why),
    };
    let mut on_battery = false;
    let mut has_battery = false;
    for name in names {
        let word = |file: &str| source.word(&format!("{SUPPLIES}/{name}/{file}"));
        // A supply of a device, such as a mouse, says nothing about the machine.
        if word("scope").value().is_some_and(|scope| scope == "Device") {
            continue;
        }
        match word("type").value().map(String::as_str) {
            Some("Battery") => {
                has_battery = true;
                on_battery |= word("status").value().is_some_and(|s| s == "Discharging");
            }
            Some(_) if word("online").value().is_some_and(|online| online != "0") => {
                return Fact::known(PowerSource::Mains, format!("{SUPPLIES}/{name}/online"));
            }
            _ => {}
        }
    }
    match (on_battery, has_battery) {
        (true, _) => Fact::known(PowerSource::Battery, SUPPLIES),
        (false, true) => Fact::known(PowerSource::Mains, SUPPLIES),
        (false, false) => Fact::absent(SUPPLIES),
    }
}

fn smi_count(source: &Source<'_>, virtualization: &Virtualization) -> Fact<u64> {
    let cpu = source.online.first().unwrap_or(0);
    let intel = source.cpu_vendor().value().is_some_and(|vendor| vendor == "GenuineIntel");
    // A guest's register, where there is one, does not count the host's interrupts.
    if !intel || virtualization.is_guest() {
        return Fact::absent(NOT_INTEL);
    }
    read_smi(source.root, cpu)
}

/// The counter of a CPU of Intel.
fn read_smi(root: &Root, cpu: u32) -> Fact<u64> {
    let origin = format!("/dev/cpu/{cpu}/msr ({SMI_COUNT:#x})");
    match root.read_msr(cpu, SMI_COUNT) {
        Read::Text(text) => match text.trim().parse::<u64>() {
            Ok(value) => Fact::known(value & COUNT_MASK, origin),
            Err(_) => Fact::unreadable(origin, "not a number"),
        },
        Read::Absent => Fact::absent(origin),
        Read::Unreadable { why } => Fact::unreadable(origin, why),
    }
}

/// Returns true where the processor counts system management interrupts: Intel's own hardware.
pub(crate) fn counts_smi(facts: &MachineFacts) -> bool {
    facts.power.smi_count.origin() != NOT_INTEL
}

/// The system management interrupts that a CPU of Intel counted up to one moment (MSR 0x34 of the
/// Software Developer's Manual, volume 4), for the difference to a later one.
///
/// Of 32 bits: wrong where 2^32 interrupts pass between two readings. Reading it needs the module
/// msr and CAP_SYS_RAWIO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmiCount {
    count: u64,
}

impl SmiCount {
    /// The CPU whose register counts them; `None` where `facts` found none that can be read.
    pub fn cpu(facts: &MachineFacts) -> Option<u32> {
        facts.power.smi_count.value()?;
        Some(facts.cpu.online_cpus.value().and_then(CpuList::first).unwrap_or(0))
    }

    /// The count of now, of a CPU that [`Self::cpu`] gave.
    pub fn read(root: &Root, cpu: u32) -> Option<Self> {
        read_smi(root, cpu).value().map(|&count| Self { count })
    }

    /// Interrupts since these facts were read; `None` where they are not counted.
    pub(crate) fn since_facts(facts: &MachineFacts, root: &Root) -> Option<u64> {
        let count = *facts.power.smi_count.value()?;
        Some(Self::read(root, Self::cpu(facts)?)?.since(Self { count }))
    }

    /// Interrupts from `before` to this one, modulo 2^32.
    pub fn since(self, before: Self) -> u64 {
        // It goes on from 0.
        self.count.wrapping_sub(before.count) & COUNT_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::MachineFacts;
    use crate::testing::Tree;

    fn facts(files: &[(&str, &str)]) -> MachineFacts {
        MachineFacts::collect(&Tree::of(files).root())
    }

    #[test]
    fn power_supplies() {
        let supply = |files: &[(&str, &str)]| {
            let files: Vec<_> =
                files.iter().map(|(p, t)| (format!("/sys/class/power_supply/{p}"), *t)).collect();
            let files: Vec<_> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
            facts(&files).power.power_source.value().copied()
        };
        let charging = ("BAT0/status", "Charging\n");
        let battery = ("BAT0/type", "Battery\n");
        assert_eq!(supply(&[]), None);
        assert_eq!(
            supply(&[battery, ("BAT0/status", "Discharging\n")]),
            Some(PowerSource::Battery)
        );
        assert_eq!(supply(&[battery, charging]), Some(PowerSource::Mains));
        assert_eq!(
            supply(&[("AC/type", "Mains\n"), ("AC/online", "1\n")]),
            Some(PowerSource::Mains)
        );
        let mouse = [("m/type", "Battery"), ("m/scope", "Device"), ("m/status", "Discharging")];
        assert_eq!(supply(&mouse), None);
    }

    #[test]
    fn smi_counts_are_of_intels_own_hardware() {
        let count = |vendor: &str, flags: &str| {
            let info = format!("vendor_id\t: {vendor}\nflags\t: {flags}\n");
            let files = [("/proc/cpuinfo", info.as_str()), ("/dev/cpu/0/msr-0x34", "4294967301")];
            facts(&files).power.smi_count.value().copied()
        };
        assert_eq!(count("GenuineIntel", "fpu"), Some(5), "the upper half is reserved");
        assert_eq!(count("GenuineIntel", "fpu hypervisor"), None);
        assert_eq!(count("AuthenticAMD", "fpu"), None);
    }

    #[test]
    fn smi_counts_go_on_from_zero() {
        let count = |count| SmiCount { count };
        assert_eq!(count(9).since(count(4)), 5);
        assert_eq!(count(2).since(count(0xffff_fffe)), 4);
        let info = "vendor_id\t: GenuineIntel\nflags\t: fpu\n";
        let counted = |number: &str| {
            let tree = Tree::of(&[("/proc/cpuinfo", info), ("/dev/cpu/0/msr-0x34", number)]);
            let root = tree.root();
            (SmiCount::cpu(&MachineFacts::collect(&root)), SmiCount::read(&root, 0))
        };
        assert_eq!(counted("7"), (Some(0), Some(count(7))));
        assert_eq!(counted("no number"), (None, None));
    }
}
