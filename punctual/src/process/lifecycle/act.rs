//! What a lifecycle takes in, and what comes out of it.
//!
//! Plain data between the supervising thread, which looks and acts, and [`super::Lifecycle`], which
//! decides.

use punctual_core::block::TaskState;

use super::end::{Cause, ProcessEnd};

/// What the supervisor sees of a task block.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Seen {
    /// How the process ended, if it did.
    pub(in super::super) ended: Option<ProcessEnd>,
    /// What its block says.
    pub(in super::super) state: TaskState,
    /// Releases so far that found it still running.
    pub(in super::super) overran: u64,
    /// The last release that it took, by its own word.
    pub(in super::super) taken: Option<u64>,
    /// Releases posted so far.
    pub(in super::super) posted: u64,
    /// Whether the loop has seen that the gate is closed.
    pub(in super::super) left: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Act {
    /// Nothing.
    Nothing,
    /// Clear the block, and start the program.
    Start,
    /// Give its thread its CPU and its priority, and open the gate.
    Admit,
    /// Say that it takes no releases.
    Note,
    /// End everything: it takes no releases, and that is its policy.
    Stop,
    /// Close the gate; the process goes on without releases.
    Dismiss,
    /// Close the gate, and end the process.
    Kill(Cause),
    /// Close the gate; the process is gone, and the safe value is its output.
    Reap(ProcessEnd),
    /// Clear the block for whoever comes by name.
    Free,
}
