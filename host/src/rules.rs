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
mod row;
mod scheduler;
mod table;
mod throttling;
mod watchdogs;

pub use engine::{KnobVerdict, judge};
pub use finding::{KnobChange, RuleVerdict};
pub use inputs::{CpuScope, Inputs, Workload};
pub use row::{Release, Rule};
pub use table::{all, subjects};

#[cfg(test)]
mod tests;
