//! Frequencies of the CPUs and who sets them: `/sys/devices/system/cpu/cpu*/cpufreq`. Reads through
//! the root only.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CPUS, Source, number, switch};
use crate::cpulist::CpuList;
use crate::fact::Fact;

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
    /// True where frequencies above the nominal one are permitted (turbo).
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

#[cfg(test)]
mod tests {
    use crate::facts::MachineFacts;
    use crate::testing::Tree;

    #[test]
    fn governors_are_one_word_or_a_list() {
        let governor = |names: [&str; 3]| {
            let tree = Tree::of(&[("/sys/devices/system/cpu/online", "0-2\n")]);
            for (cpu, name) in names.iter().enumerate() {
                let at = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
                tree.write(&at, format!("{name}\n"));
            }
            MachineFacts::collect(&tree.root()).frequency.governor.value().cloned().unwrap()
        };
        assert_eq!(governor(["performance"; 3]), "performance");
        assert_eq!(
            governor(["schedutil", "performance", "schedutil"]),
            "0,2 schedutil, 1 performance"
        );
    }
}
