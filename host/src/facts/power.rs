//! Where the current comes from, and what firmware and host took of the CPUs' time.
//!
//! Reads `/sys/class/power_supply`, `/proc/stat` (steal) and, where it is Intel's own hardware,
//! the counter of system management interrupts (`MSR_SMI_COUNT`, 0x34, Intel SDM volume 4).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::virtualization::Virtualization;
use super::{CPUS, Source, number, switch};
use crate::cpulist::CpuList;
use crate::fact::Fact;
use crate::root::{Listing, Read};

const SUPPLIES: &str = "/sys/class/power_supply";
const SMI_COUNT: u32 = 0x34;

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
            steal_ticks: source.parsed("/proc/stat", steal),
            smi_count: smi_count(source, virtualization),
        }
    }
}

/// The eighth number of the line of all CPUs (proc_stat(5)).
fn steal(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    line.split_ascii_whitespace().nth(7)?.parse().ok()
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
    let origin = format!("/dev/cpu/{cpu}/msr ({SMI_COUNT:#x})");
    let info = source.cpuinfo.value();
    let intel = info.and_then(|info| info.field("vendor_id")) == Some("GenuineIntel");
    // A guest's register, where there is one, does not count the host's interrupts.
    if !intel || virtualization.is_guest() {
        return Fact::absent(origin);
    }
    match source.root.read_msr(cpu, SMI_COUNT) {
        Read::Text(text) => match text.trim().parse::<u64>() {
            // The counter has 32 bits; the upper half is reserved.
            Ok(value) => Fact::known(value & 0xffff_ffff, origin),
            Err(_) => Fact::unreadable(origin, "not a number"),
        },
        Read::Absent => Fact::absent(origin),
        Read::Unreadable { why } => Fact::unreadable(origin, why),
    }
}

/// Frequencies and who sets them: `/sys/devices/system/cpu/cpu*/cpufreq`
/// (admin-guide/pm/cpufreq).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Frequency {
    /// The cpufreq driver of the first online CPU.
    pub frequency_driver: Fact<String>,
    /// One word if all online CPUs have the same governor, else `0-2 schedutil, 3 performance`.
    pub governor: Fact<String>,
    /// Current and permitted frequencies over all online CPUs.
    pub frequency: Fact<FrequencyRange>,
    /// Whether frequencies above the nominal one are permitted (turbo).
    pub boost: Fact<bool>,
}

/// Frequencies in kHz, as cpufreq gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrequencyRange {
    /// The slowest CPU now.
    pub now_lowest_khz: u64,
    /// The fastest CPU now.
    pub now_highest_khz: u64,
    /// The lowest that a governor may choose on any CPU.
    pub min_khz: u64,
    /// The highest that a governor may choose on any CPU.
    pub max_khz: u64,
}

impl Frequency {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        let first = source.online.first().unwrap_or(0);
        let boost = "/sys/devices/system/cpu/cpufreq/boost";
        let no_turbo = "/sys/devices/system/cpu/intel_pstate/no_turbo";
        Self {
            frequency_driver: source.word(&format!("{CPUS}/cpu{first}/cpufreq/scaling_driver")),
            governor: governor(source),
            frequency: range(source),
            boost: source
                .parsed(no_turbo, switch)
                .map(|off| !off)
                .or_else(|| source.parsed(boost, switch)),
        }
    }
}

fn each<T>(source: &Source<'_>, name: &str, read: impl Fn(&str) -> Fact<T>) -> Fact<Vec<(u32, T)>> {
    let mut values = Vec::new();
    let mut missing = Fact::absent(format!("{CPUS}/cpu*/cpufreq/{name}"));
    for cpu in source.online.iter() {
        match read(&format!("{CPUS}/cpu{cpu}/cpufreq/{name}")) {
            Fact::Known { value, .. } => values.push((cpu, value)),
            Fact::Unreadable { origin, why } => missing = Fact::unreadable(origin, why),
            Fact::Absent { .. } => {}
        }
    }
    if values.is_empty() {
        missing
    } else {
        Fact::known(values, format!("{CPUS}/cpu*/cpufreq/{name}"))
    }
}

fn governor(source: &Source<'_>) -> Fact<String> {
    each(source, "scaling_governor", |path| source.word(path)).map(|governors| {
        let mut by_name: BTreeMap<String, CpuList> = BTreeMap::new();
        for (cpu, name) in governors {
            by_name.entry(name).or_default().insert(cpu);
        }
        let mut groups: Vec<(CpuList, String)> =
            by_name.into_iter().map(|(name, cpus)| (cpus, name)).collect();
        groups.sort_by_key(|(cpus, _)| cpus.first());
        match groups.as_slice() {
            [(_, name)] => name.clone(),
            _ => {
                let shown = groups.iter().map(|(cpus, name)| format!("{cpus} {name}"));
                shown.collect::<Vec<_>>().join(", ")
            }
        }
    })
}

fn range(source: &Source<'_>) -> Fact<FrequencyRange> {
    let khz_of = |name: &str| {
        each(source, name, |path| source.parsed(path, number::<u64>))
            .map(|values| values.into_iter().map(|(_, khz)| khz).collect::<Vec<_>>())
    };
    let (lowest, highest) = (khz_of("scaling_min_freq"), khz_of("scaling_max_freq"));
    khz_of("scaling_cur_freq").and_then(|now, origin| {
        let bound = |fact: &Fact<Vec<u64>>, pick: fn(std::slice::Iter<'_, u64>) -> Option<u64>| {
            fact.value().and_then(|values| pick(values.iter()))
        };
        let min = |values: std::slice::Iter<'_, u64>| values.min().copied();
        let max = |values: std::slice::Iter<'_, u64>| values.max().copied();
        match (min(now.iter()), max(now.iter()), bound(&lowest, min), bound(&highest, max)) {
            (Some(now_lowest_khz), Some(now_highest_khz), Some(min_khz), Some(max_khz)) => {
                let origin = format!("{CPUS}/cpu*/cpufreq/scaling_{{cur,min,max}}_freq");
                let range = FrequencyRange { now_lowest_khz, now_highest_khz, min_khz, max_khz };
                Fact::known(range, origin)
            }
            _ => Fact::absent(origin),
        }
    })
}

/// More states than any driver has (the kernel's own bound is 10).
const MAX_STATES: u32 = 16;

/// Idle states and who chooses them: `/sys/devices/system/cpu/cpuidle` and the states of one CPU
/// (admin-guide/pm/cpuidle).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Idle {
    /// The cpuidle driver; absent where none is loaded.
    pub idle_driver: Fact<String>,
    /// Who chooses the state.
    pub idle_governor: Fact<String>,
    /// The states of the first online CPU, from shallow to deep.
    pub idle_states: Fact<Vec<IdleState>>,
}

/// One idle state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// As the driver calls it, such as `POLL`, `C1E`, `WFI`.
    pub name: String,
    /// What leaving it costs at worst, as the driver says, in microseconds.
    pub exit_us: u64,
    /// Whether it was switched off.
    pub disabled: bool,
}

impl Idle {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        let present = |fact: Fact<String>| {
            fact.and_then(|name, origin| match name.as_str() {
                "none" => Fact::absent(origin),
                _ => Fact::known(name, origin),
            })
        };
        // Read-only name first: it is there whether or not the governor can be switched.
        let governor = source
            .word(&format!("{CPUS}/cpuidle/current_governor_ro"))
            .or_else(|| source.word(&format!("{CPUS}/cpuidle/current_governor")));
        Self {
            idle_driver: present(source.word(&format!("{CPUS}/cpuidle/current_driver"))),
            idle_governor: present(governor),
            idle_states: states(source),
        }
    }
}

fn states(source: &Source<'_>) -> Fact<Vec<IdleState>> {
    let first = source.online.first().unwrap_or(0);
    let at = format!("{CPUS}/cpu{first}/cpuidle");
    let mut states = Vec::new();
    for state in 0..MAX_STATES {
        let state = format!("{at}/state{state}");
        let (name, exit) = match (
            source.word(&format!("{state}/name")),
            source.parsed(&format!("{state}/latency"), number::<u64>),
        ) {
            (Fact::Known { value: name, .. }, Fact::Known { value: exit, .. }) => (name, exit),
            (Fact::Unreadable { origin, why }, _) | (_, Fact::Unreadable { origin, why }) => {
                return Fact::unreadable(origin, why);
            }
            _ => break,
        };
        let disabled = source.parsed(&format!("{state}/disable"), switch);
        let disabled = disabled.value().copied().unwrap_or(false);
        states.push(IdleState { name, exit_us: exit, disabled });
    }
    if states.is_empty() { Fact::absent(at) } else { Fact::known(states, format!("{at}/state*")) }
}
