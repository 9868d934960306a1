//! Rules about tuning: what is known of each knob, as data, and what facts make of it.
//!
//! One row a rule, by subject; the engine knows no rule. Pure: facts and settings in, verdicts
//! out. Nothing is read, changed or printed here.
//!
//! | room | what it judges |
//! |---|---|
//! | `boot` | the command line as a whole: unknown parameters, conflicts, what is not booted |
//! | `isolation` | which CPUs are kept free |
//! | `interrupts` | where interrupts and unbound work go |
//! | `rcu` | RCU's callbacks and threads |
//! | `scheduler`, `throttling` | preemption, timers; what stops real-time tasks |
//! | `idle`, `frequency`, `clock` | how deep CPUs sleep, how fast they run, what tells the time |
//! | `memory`, `watchdogs`, `risks` | paging, periodic checks, what is dangerous |

mod boot;
mod clock;
mod engine;
mod finding;
mod frequency;
mod idle;
mod inputs;
mod interrupts;
mod isolation;
mod memory;
mod names;
mod rcu;
mod risks;
mod scheduler;
mod throttling;
mod watchdogs;

pub use engine::{KnobVerdict, judge};
pub use finding::{KnobChange, RuleVerdict};
pub use inputs::{CpuScope, Inputs, Workload};

use finding::Judge;

/// A kernel release, major and minor.
pub type Release = (u32, u32);

/// What is known of one knob, and how it is judged.
#[derive(Debug)]
pub struct Rule {
    /// Stable: `isolation.isolcpus`.
    pub id: &'static str,
    /// The parameter's or setting's own name.
    pub knob: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// What it costs: heat, security, lost diagnostics.
    pub cost: &'static str,
    /// The first kernel that has the knob; `None` for all that are in use.
    pub since: Option<Release>,
    /// The first kernel that no longer has it; `None` where it is still there.
    pub until: Option<Release>,
    /// How the verdict is verified: what is read.
    pub verified: &'static str,
    /// Where this is from.
    pub source: &'static str,
    /// How much a loop usually gains: from 9, a stall of milliseconds, to 0.
    pub gain: u8,
    judge: Judge,
}

/// A row in which only what is usual stands: the rest is written over it.
const fn rule(id: &'static str, knob: &'static str, gain: u8, judge: Judge) -> Rule {
    Rule {
        id,
        knob,
        why: "",
        cost: "",
        since: None,
        until: None,
        verified: "/proc/cmdline",
        source: PARAMETERS,
        gain,
        judge,
    }
}

/// The kernel's list of its parameters.
const PARAMETERS: &str = "Linux, admin-guide/kernel-parameters";

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

#[cfg(test)]
mod tests;
