//! What tests of several experiments use.

use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;

/// The captured guest: two CPUs, throttling at 95 %; or without throttling.
pub(crate) fn guest(runtime_us: i64) -> MachineFacts {
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/firecracker-guest-2cpu");
    let mut facts = MachineFacts::collect(&Root::captured(tree).expect("a fixture"));
    let fact = facts.limits.rt_throttling.clone();
    facts.limits.rt_throttling = fact.map(|mut throttling| {
        throttling.runtime_us = runtime_us;
        throttling
    });
    facts
}
