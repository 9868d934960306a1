//! All rules, by subject.

use super::row::Rule;
use super::{
    boot, clock, frequency, idle, interrupts, isolation, memory, rcu, risks, scheduler, throttling,
    watchdogs,
};

/// The subjects with their rules, in the order of the documentation.
pub fn subjects() -> [(&'static str, &'static [Rule]); 12] {
    [
        ("The command line", boot::RULES),
        ("Isolated CPUs", isolation::RULES),
        ("Interrupts and unbound work", interrupts::RULES),
        ("RCU", rcu::RULES),
        ("Scheduler and preemption", scheduler::RULES),
        ("Throttling of real-time tasks", throttling::RULES),
        ("Idle states", idle::RULES),
        ("Frequency", frequency::RULES),
        ("Clock", clock::RULES),
        ("Memory", memory::RULES),
        ("Watchdogs", watchdogs::RULES),
        ("Risks and what is not a setting", risks::RULES),
    ]
}

/// All rules.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    subjects().into_iter().flat_map(|(_, rules)| rules)
}
