//! What the kernel granted a run, and what it refused.
//!
//! For `report`. Plain data.

use punctual_host::explain::Explanation;
use punctual_os::scheduler::SchedPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the kernel granted and what it refused.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Session {
    /// Whether all memory was locked.
    pub(crate) memory_locked: bool,
    /// Whether deep idle states were held off by /dev/cpu_dma_latency.
    pub(crate) idle_states_held: bool,
    /// Refused requests, each with the reason and the consequence.
    pub(crate) refused: Vec<Refused>,
}

/// A request that the kernel refused.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Refused {
    /// What was requested.
    pub(crate) attempt: String,
    /// The error: a symbol of errno(3).
    pub(crate) errno: String,
    /// What going on without it costs, in a few words.
    #[serde(default)]
    pub(crate) price: String,
    /// The reason, the remedy, the consequence.
    #[serde(flatten)]
    pub(crate) explanation: Explanation,
}

/// The kernel's name of a policy, and its priority.
pub(crate) fn policy_words(policy: SchedPolicy) -> (&'static str, Option<u8>) {
    match policy {
        SchedPolicy::Other => ("SCHED_OTHER", None),
        SchedPolicy::Fifo(priority) => ("SCHED_FIFO", Some(priority)),
        SchedPolicy::RoundRobin(priority) => ("SCHED_RR", Some(priority)),
        SchedPolicy::Unknown(_) => ("unknown", None),
    }
}
