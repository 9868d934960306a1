//! What was known of the machine when a recording began: no event tells who runs before the first
//! switch.

use punctual_trace::event::TaskName;
use serde::{Deserialize, Serialize};

/// A thread that ran, or waited for a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnableThread {
    /// The thread.
    pub task: TaskName,
    /// The CPU that it ran on last.
    pub cpu: u32,
}

/// A look at the threads of the machine, right before the first event that counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingBegin {
    /// When recording began, ns on the events' clock.
    pub at_ns: u64,
    /// Who ran or waited then.
    pub runnable: Vec<RunnableThread>,
}
