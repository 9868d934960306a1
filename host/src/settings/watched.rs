//! Settings that another program may change while something is measured: read at both ends.
//!
//! Of the rules' settings those that a running kernel takes, by name, where they can be read. What
//! changes by itself, and what a measurement holds itself, is not among them.

use super::{PerCpu, interrupts, single};
use crate::fact::Fact;
use crate::facts::source::Source;
use crate::root::Root;
use std::collections::BTreeMap;

/// What a loop's own session holds while it runs.
const OWN: &str = "cpu_dma_latency";

/// Settings as they are at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedSettings(BTreeMap<String, String>);

/// A setting that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSetting {
    /// Its name.
    pub name: String,
    /// What it was.
    pub from: String,
    /// What it is.
    pub to: String,
}

impl WatchedSettings {
    /// As they are now.
    pub fn read(root: &Root) -> Self {
        let source = Source::new(root);
        let mut all = BTreeMap::new();
        for (name, value) in single::read(&source) {
            if let (true, Fact::Known { value, .. }) = (name != OWN, value) {
                all.insert(name.to_owned(), value);
            }
        }
        let PerCpu { resume_latency, energy_preference, governor } = PerCpu::read(&source);
        for (name, values) in [
            ("pm_qos_resume_latency_us", resume_latency),
            ("energy_performance_preference", energy_preference),
            ("scaling_governor", governor),
        ] {
            for (cpu, value) in values.value().into_iter().flatten() {
                all.insert(format!("{name} of CPU {cpu}"), value.clone());
            }
        }
        // irqbalance moves them all the time.
        let stay = all.get("irqbalance").is_none_or(|state| state != "running");
        let table = interrupts::read(&source);
        if let Some(interrupts) = table.value().filter(|_| stay) {
            for interrupt in &interrupts.all {
                if let Some(cpus) = interrupt.allowed.value() {
                    let name = format!("CPUs of interrupt {}", interrupt.number);
                    all.insert(name, cpus.to_string());
                }
            }
        }
        Self(all)
    }

    /// Those that are not the same in `later`; one that is known on one side alone is not known to
    /// differ.
    pub fn changed(&self, later: &Self) -> Vec<ChangedSetting> {
        let differs = |(name, from): (&String, &String)| {
            let to = later.0.get(name).filter(|to| *to != from)?;
            Some(ChangedSetting { name: name.clone(), from: from.clone(), to: to.clone() })
        };
        self.0.iter().filter_map(differs).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_between_two_looks_is_named_with_both_values() {
        let tree =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/firecracker-guest-2cpu");
        let before = WatchedSettings::read(&Root::captured(tree).expect("a fixture"));
        assert_eq!(before.changed(&before.clone()), []);
        let mut after = before.clone();
        let was = after.0.insert("vm.stat_interval".to_owned(), "77".to_owned());
        let moved = after.0.keys().find(|name| name.starts_with("CPUs of interrupt")).cloned();
        let moved = moved.expect("the guest has interrupts");
        after.0.insert(moved.clone(), "63".to_owned());
        // One that cannot be read any more is not known to differ.
        after.0.remove("kernel.watchdog_cpumask");
        let changed = before.changed(&after);
        let names: Vec<&str> = changed.iter().map(|changed| changed.name.as_str()).collect();
        assert_eq!(names, [moved.as_str(), "vm.stat_interval"]);
        assert_eq!((Some(&changed[1].from), changed[1].to.as_str()), (was.as_ref(), "77"));
        assert!(!before.0.contains_key(OWN));
    }
}
