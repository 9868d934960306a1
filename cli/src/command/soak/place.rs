//! Where a campaign is: which machine, which boot, and what of the machine decides how late loops
//! are (`punctual_host::baseline` says which facts these are).
//!
//! Through the root of the facts, so that what a captured machine says counts as this one's.

use std::collections::BTreeMap;

use punctual_analysis::campaign::{RunSetup, Setup, plain};
use punctual_host::baseline;
use punctual_host::facts::MachineFacts;
use punctual_host::identity;
use punctual_host::root::Root;

/// Facts by name, as a campaign keeps text.
fn named<'a>(
    facts: &MachineFacts,
    names: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, String> {
    baseline::known(names, facts).into_iter().map(|(name, text)| (name, plain(&text))).collect()
}

/// Which machine this is.
pub(super) fn machine(root: &Root, facts: &MachineFacts) -> BTreeMap<String, String> {
    let mut machine = named(facts, baseline::MACHINE.iter().copied());
    if let Some(id) = identity::machine(root).value() {
        machine.insert("identifier".to_owned(), id.clone());
    }
    machine
}

/// The kernel's name of this boot; empty where it does not tell.
pub(super) fn boot(root: &Root) -> String {
    identity::boot(root).value().cloned().unwrap_or_default()
}

/// The kernel's release.
pub(super) fn kernel(facts: &MachineFacts) -> String {
    facts.kernel.kernel.value().cloned().unwrap_or_default()
}

/// The setup of these runs on this machine.
pub(super) fn setup(runs: Vec<RunSetup>, facts: &MachineFacts) -> Setup {
    Setup { runs, facts: named(facts, baseline::lasting()) }
}
