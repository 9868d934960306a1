//! The facts of a machine that a baseline holds for: which matter, their digest, what changed.
//!
//! A baseline holds for one machine; another kernel or another tuning of it is what it is there to
//! find. Pure; the facts come in, and files are kept elsewhere.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twox_hash::XxHash3_128;

use crate::facts::MachineFacts;

/// Facts that say which machine it is, by their keys in a result.
pub const MACHINE: &[&str] =
    &["architecture", "cpu_model", "machine_model", "possible_cpus", "virtualization"];

/// Facts that say how it is set up, by their keys: kernel, preemption, isolation, idle, frequency,
/// clock and what limits real-time threads. What changes by itself (frequencies, steal, power
/// source) and what is this process's own (limits, capabilities) is not among them.
pub const SETUP: &[&str] = &[
    "kernel",
    "kernel_version",
    "preemption",
    "preemption_mode",
    "hz",
    "no_hz",
    "rt_group_sched",
    "isolated_cpus",
    "nohz_full_cpus",
    "cpuset_isolated_cpus",
    "isolcpus_parameter",
    "nohz_full_parameter",
    "rcu_nocbs_parameter",
    "irqaffinity_parameter",
    "online_cpus",
    "smt",
    "clocksource",
    "frequency_driver",
    "governor",
    "boost",
    "idle_driver",
    "idle_governor",
    "idle_states",
    "rt_throttling",
    "fair_server",
    "cgroup_rt_runtime_us",
    "cgroup_rt_period_us",
    "transparent_hugepages",
    "container",
];

/// Those of [`SETUP`] that tell as much of who reads them: only root may, or they are of the
/// control group that one is in.
const OF_THE_READER: &[&str] =
    &["fair_server", "cgroup_rt_runtime_us", "cgroup_rt_period_us", "container"];

/// Facts that change by themselves, and make the machine another one meanwhile.
const PASSING: &[&str] = &["power_source"];

/// Facts of which a change begins something new where a measurement goes on for months: those of
/// [`SETUP`] that everybody reads alike, and what passes.
pub fn lasting() -> impl Iterator<Item = &'static str> {
    SETUP.iter().filter(|name| !OF_THE_READER.contains(name)).chain(PASSING).copied()
}

/// The named facts that are known, as text; the others are left out.
pub fn known<'a>(
    names: impl IntoIterator<Item = &'a str>,
    facts: &MachineFacts,
) -> BTreeMap<String, String> {
    let facts = as_json(facts);
    let is_known = |name: &str| facts.get(name)?.get("value").filter(|value| !value.is_null());
    let text = |name: &str| {
        is_known(name)?;
        Some((name.to_owned(), value_text(&facts, name)?))
    };
    names.into_iter().filter_map(text).collect()
}

/// A fact that is not the same in two places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its key.
    pub name: &'static str,
    /// The value in the first; "absent" where the machine did not have it.
    pub from: String,
    /// The value in the second; "absent" where the machine does not have it.
    pub to: String,
}

/// The value of a fact as text, for comparing: `None` where it could not be read.
fn value_text(facts: &Value, name: &str) -> Option<String> {
    let fact = facts.get(name)?;
    match fact.get("value") {
        Some(Value::Null) | None if fact.get("why").is_some() => None,
        Some(Value::Null) | None => Some("absent".to_owned()),
        Some(Value::String(text)) if text.is_empty() => Some("none".to_owned()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(value) => Some(value.to_string()),
    }
}

fn as_json(facts: &MachineFacts) -> Value {
    // Facts are plain data: they always have a JSON form.
    serde_json::to_value(facts).unwrap_or(Value::Null)
}

/// The named facts that are known to differ. One that could not be read on either side is not
/// known to.
pub fn changed(names: &[&'static str], from: &MachineFacts, to: &MachineFacts) -> Vec<Changed> {
    let (from, to) = (as_json(from), as_json(to));
    let differs = |&name: &&'static str| {
        let (from, to) = (value_text(&from, name)?, value_text(&to, name)?);
        (from != to).then_some(Changed { name, from, to })
    };
    names.iter().filter_map(differs).collect()
}

/// 128 bits of the named facts, as 32 hexadecimal digits: XXH3 over lines `name=value`, `?` for
/// what could not be read. The same on every machine and with every version. It names a state;
/// whether two states are equal is for the facts themselves to show.
pub fn digest(names: &[&str], facts: &MachineFacts) -> String {
    let facts = as_json(facts);
    let line = |name: &&str| {
        let value = value_text(&facts, name).unwrap_or_else(|| "?".to_owned());
        format!("{name}={}\n", value.replace('\n', "\\n"))
    };
    let text: String = names.iter().map(line).collect();
    format!("{:032x}", XxHash3_128::oneshot(text.as_bytes()))
}

/// The name of a baseline: letters, digits, `.`, `_` and `-`, at most 64, the first one a letter or
/// a digit. So it is one file's name, whatever was typed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// A name that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a baseline name must be at most 64 letters, digits, '.', '_' and '-', and begin with a \
     letter or digit"
)]
pub struct NameError;

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// Where it is none.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let permitted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= 64 && text.chars().all(permitted) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError)
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::root::Root;

    fn facts() -> MachineFacts {
        MachineFacts::collect(&Root::live())
    }

    #[test]
    fn every_fact_that_matters_exists() {
        let facts = as_json(&facts());
        for name in MACHINE.iter().copied().chain(SETUP.iter().copied()).chain(lasting()) {
            assert!(facts.get(name).is_some(), "{name}");
        }
        assert!(OF_THE_READER.iter().all(|name| SETUP.contains(name)));
        assert!(lasting().all(|name| !OF_THE_READER.contains(&name)));
    }

    #[test]
    fn another_kernel_is_found_and_what_cannot_be_read_is_not() {
        let mut old = facts();
        old.kernel.kernel = Fact::known("6.18.44".to_owned(), "test");
        let mut new = old.clone();
        new.kernel.kernel = Fact::known("6.18.50".to_owned(), "test");
        let found = changed(SETUP, &old, &new);
        let kernel =
            Changed { name: "kernel", from: "6.18.44".to_owned(), to: "6.18.50".to_owned() };
        assert_eq!(found, [kernel]);
        assert!(changed(MACHINE, &old, &new).is_empty());
        assert_ne!(digest(SETUP, &old), digest(SETUP, &new));
        assert_eq!(digest(MACHINE, &old), digest(MACHINE, &new));
        new.kernel.kernel = Fact::unreadable("test", "permission denied");
        assert!(changed(SETUP, &old, &new).is_empty());
        new.kernel.kernel = Fact::absent("test");
        assert_eq!(changed(SETUP, &old, &new)[0].to, "absent");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut facts = facts();
        facts.kernel.kernel = Fact::known("6.18.44".to_owned(), "test");
        let names = ["kernel", "no such fact"];
        assert_eq!(known(names, &facts), BTreeMap::from([("kernel".into(), "6.18.44".into())]));
        facts.kernel.kernel = Fact::absent("test");
        assert!(known(names, &facts).is_empty());
        facts.kernel.kernel = Fact::unreadable("test", "permission denied");
        assert!(known(names, &facts).is_empty());
    }

    #[test]
    fn a_digest_is_what_it_was() {
        // Over "a=?\n": what a later version must give too.
        assert_eq!(digest(&["a"], &facts()), format!("{:032x}", XxHash3_128::oneshot(b"a=?\n")));
        assert_eq!(digest(&[], &facts()), "99aa06d3014798d86001c324468d497f");
    }

    #[test]
    fn names_are_one_files_name() {
        for good in ["before", "6.18.44-rt", "a", "A_1"] {
            assert_eq!(Name::parse(good).map(String::from), Ok(good.to_owned()));
        }
        let long = "a".repeat(65);
        for bad in ["", ".", "..", ".x", "-x", "a/b", "../a", "a\0b", "ä", "a b", "\u{1b}[", &long]
        {
            assert_eq!(Name::parse(bad), Err(NameError), "{bad:?}");
        }
    }
}
