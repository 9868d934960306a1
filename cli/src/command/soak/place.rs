//! Where a campaign is: which machine, which boot, and what of the machine decides how late loops
//! are.
//!
//! Through the root of the facts, so that what a captured machine says counts as this one's.

use std::collections::BTreeMap;

use anyhow::Result;
use punctual_analysis::campaign::{RunSetup, Setup};
use punctual_host::facts::Facts;
use punctual_host::identity;
use punctual_host::root::Root;
use serde_json::Value;

/// Facts with which lateness changes: cycles under another value of these are not added up. Only
/// such as every user may read: what a process may see is no change of the machine.
const DECIDING: [&str; 20] = [
    "kernel",
    "kernel_version",
    "hz",
    "no_hz",
    "preemption",
    "preemption_mode",
    "clocksource",
    "online_cpus",
    "smt",
    "isolated_cpus",
    "nohz_full_cpus",
    "rcu_nocbs_parameter",
    "irqaffinity_parameter",
    "frequency_driver",
    "governor",
    "boost",
    "idle_driver",
    "idle_governor",
    "rt_throttling",
    "power_source",
];

/// Facts that a machine keeps, whatever is done to its kernel.
const LASTING: [&str; 4] = ["architecture", "cpu_model", "machine_model", "possible_cpus"];

/// The longest value that a campaign keeps.
const VALUE_MAX: usize = 400;

/// Facts by name, as text; one that is not known is left out.
fn named(facts: &Facts, names: &[&str]) -> Result<BTreeMap<String, String>> {
    let all = serde_json::to_value(facts)?;
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let known =
        |name: &&str| Some(((*name).to_owned(), plain(&text(all.get(name)?.get("value")?)?)));
    Ok(names.iter().filter_map(known).collect())
}

/// As a campaign keeps text.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(VALUE_MAX).collect()
}

/// Which machine this is.
pub(super) fn machine(root: &Root, facts: &Facts) -> Result<BTreeMap<String, String>> {
    let mut machine = named(facts, &LASTING)?;
    if let Some(id) = identity::machine(root).value() {
        machine.insert("identifier".to_owned(), id.clone());
    }
    Ok(machine)
}

/// The kernel's name of this boot; empty where it does not tell.
pub(super) fn boot(root: &Root) -> String {
    identity::boot(root).value().cloned().unwrap_or_default()
}

/// The kernel's release.
pub(super) fn kernel(facts: &Facts) -> String {
    facts.kernel.kernel.value().cloned().unwrap_or_default()
}

/// The setup of these runs on this machine.
pub(super) fn setup(runs: Vec<RunSetup>, facts: &Facts) -> Result<Setup> {
    Ok(Setup { runs, facts: named(facts, &DECIDING)? })
}
