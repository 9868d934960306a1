//! Why a loop is late, and what to do next, as far as facts at hand show it: a table of rules.
//!
//! A rule states a fact of the machine or of the run, and a command that exists. It names no cause
//! that it did not see.

use punctual_host::facts::MachineFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::LoadRow;
use crate::format;

/// That stalls may be the host's: also an advice.
pub(crate) const NOTE_GUEST: &str = "virtual machine: stalls caused by the host are included";

/// That the policy was refused: also in the headline.
pub(crate) const NOTE_ORDINARY: &str = "measured as SCHED_OTHER: any process can delay the loop; \
                                        a real-time loop on this machine would be late less often";

/// The most that are given.
const ADVICE_MAX: usize = 3;

/// One fact, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Advice {
    /// "host", "CPU", "load", "frequency", "memory".
    pub(crate) topic: String,
    /// The fact.
    pub(crate) text: String,
    /// A command that shows more, or changes it; null where none does.
    pub(crate) command: Option<String>,
}

/// What rules look at.
struct Seen<'a> {
    facts: &'a MachineFacts,
    rows: &'a [LoadRow],
}

/// The rules, the most telling first.
const RULES: &[fn(&Seen<'_>) -> Option<Advice>] = &[host, load, cpu, frequency, memory];

/// What the rules find.
pub(super) fn of(facts: &MachineFacts, rows: &[LoadRow]) -> Vec<Advice> {
    let seen = Seen { facts, rows };
    RULES.iter().filter_map(|rule| rule(&seen)).take(ADVICE_MAX).collect()
}

fn advice(topic: &str, text: impl Into<String>, command: Option<&str>) -> Option<Advice> {
    let command = command.map(ToOwned::to_owned);
    Some(Advice { topic: topic.to_owned(), text: text.into(), command })
}

fn host(seen: &Seen<'_>) -> Option<Advice> {
    let guest = seen.facts.virtualization.is_guest();
    let text = "virtual machine, so stalls of the host are included";
    if guest { advice("host", text, Some("punctual measure noise")) } else { None }
}

/// The load under which most were missed.
fn load(seen: &Seen<'_>) -> Option<Advice> {
    let all: u64 = seen.rows.iter().map(|row| row.missed).sum();
    let most = seen.rows.iter().max_by_key(|row| row.missed)?;
    if seen.rows.len() < 2 || most.missed * 2 <= all {
        return None;
    }
    let (missed, all) = (format::count(most.missed), format::count(all));
    advice(
        "load",
        format!("{missed} of the {all} missed under load were under {}", most.load),
        None,
    )
}

fn cpu(seen: &Seen<'_>) -> Option<Advice> {
    let preemption = seen.facts.preemption.preemption.value();
    let preemption = preemption.filter(|name| name.as_str() != "PREEMPT_RT");
    let isolated = !seen.facts.isolation.isolated().is_empty();
    let text = match (isolated, preemption) {
        (false, Some(kernel)) => format!("no CPU is isolated, the kernel is {kernel}"),
        (false, None) => "no CPU is isolated".to_owned(),
        (true, Some(kernel)) => format!("the kernel is {kernel}"),
        (true, None) => return None,
    };
    advice("CPU", text, None)
}

fn frequency(seen: &Seen<'_>) -> Option<Advice> {
    let governor = seen.facts.frequency.governor.value().filter(|word| *word != "performance")?;
    let command = "echo performance | \
                   sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    advice("frequency", format!("governor {governor}"), Some(command))
}

fn memory(seen: &Seen<'_>) -> Option<Advice> {
    let mode = seen.facts.memory.transparent_hugepages.value()?;
    let command = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
    if mode != "always" {
        return None;
    }
    advice("memory", "transparent huge pages are always on", Some(command))
}
