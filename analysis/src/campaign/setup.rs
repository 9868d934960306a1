//! What must be equal for two batches to be added up.
//!
//! Plain data and comparisons in words.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One loop under one condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSetup {
    /// How results name it.
    pub name: String,
    /// The CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// Its period.
    pub period_ns: u64,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC.
    pub phase_ns: u64,
    /// The policy that the thread really had.
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// "sleep" or "spin".
    pub wait: String,
    /// Names of the loads; none means idle.
    pub load: Vec<String>,
}

/// The loops, and what of the machine decides how late they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setup {
    /// All runs.
    pub runs: Vec<RunSetup>,
    /// Facts by name, as text: kernel, governor, isolated CPUs and their like.
    pub facts: BTreeMap<String, String>,
}

impl Setup {
    /// A short name of this setup: CRC-32 of all of it, in hexadecimal.
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{:08x}", crc32fast::hash(text.as_bytes()))
    }

    /// What is different in `other`, one phrase each: "kernel: 6.1 → 6.12".
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut differences = different(&self.facts, &other.facts);
        if self.runs.len() != other.runs.len() {
            differences.push(format!("runs: {} → {}", self.runs.len(), other.runs.len()));
        }
        for (mine, theirs) in self.runs.iter().zip(&other.runs).filter(|(a, b)| a != b) {
            differences.push(format!("run: {} → {}", mine.words(), theirs.words()));
        }
        differences
    }
}

impl RunSetup {
    fn words(&self) -> String {
        let cpu = self.cpu.map_or_else(String::new, |cpu| format!("CPU {cpu}, "));
        let priority = self.priority.map_or_else(String::new, |p| format!(" {p}"));
        let load = if self.load.is_empty() { "none".to_owned() } else { self.load.join(",") };
        format!(
            "{cpu}{} ns + {} ns, {}{priority}, {}, load {load}",
            self.period_ns, self.phase_ns, self.policy, self.wait
        )
    }
}

/// What is different between two lists of names and values, one phrase each.
pub fn different(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let shown = |value: Option<&String>| value.map_or("-".to_owned(), Clone::clone);
    names
        .into_iter()
        .filter(|&name| a.get(name) != b.get(name))
        .map(|name| format!("{name}: {} → {}", shown(a.get(name)), shown(b.get(name))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_said_in_words() {
        let run =
            RunSetup { policy: "SCHED_FIFO".into(), priority: Some(90), ..Default::default() };
        let facts = |kernel: &str| BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]);
        let old = Setup { runs: vec![run.clone()], facts: facts("6.1") };
        let other = RunSetup { policy: "SCHED_OTHER".into(), priority: None, ..run };
        let new = Setup { runs: vec![other], facts: facts("6.12") };
        let found = old.differences(&new);
        assert_eq!(found[0], "kernel: 6.1 → 6.12");
        assert!(
            found[1].contains("SCHED_FIFO 90") && found[1].contains("SCHED_OTHER"),
            "{found:?}"
        );
        assert!(old.differences(&old).is_empty());
        assert_ne!(old.digest(), new.digest());
        let empty = BTreeMap::new();
        assert_eq!(different(&facts("6.1"), &empty), ["kernel: 6.1 → -"]);
    }
}
