//! A task of a supervisor: what is run, when, and what happens when it does not behave.
//!
//! Plain data, and what cannot be where a process runs.

mod surroundings;

use std::ffi::OsString;

use punctual_core::block::OUTPUT_WORDS_MAX;
use punctual_core::time::Span;

use super::error::SetupError;
use super::lifecycle::Restart;
use super::request::is_name;
use crate::periodic::{BuildError, OnOverrun, Task};
use crate::rt_thread::RtThread;

pub(super) use surroundings::Resolved;
pub use surroundings::Surroundings;

/// A task that is a process.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Name, period, phase, budget, limits and policy.
    pub task: Task,
    /// The program and its arguments; none: a process that joins by name.
    pub command: Vec<OsString>,
    /// The CPU that its thread is pinned to, and its SCHED_FIFO priority, below the supervisor's;
    /// without one: by rank, 1 for all whose rank is beyond the priorities there are.
    pub thread: RtThread,
    /// How long it may take to register; more than nothing.
    pub register_within: Span,
    /// Whether it is started again.
    pub restart: Restart,
    /// Its output while nobody gives one: a multiple of 8 bytes; none for no output.
    pub safe: Vec<u8>,
    /// User, group, environment, capabilities, directory and umask of a process that is started.
    pub surroundings: Surroundings,
}

impl Spec {
    /// The longest burst: its results fit in the block until they are taken.
    pub const BURST_MAX: u32 = 16;
    /// How long a process may take to register by default.
    pub const REGISTER_WITHIN: Span = Span::from_ms(5_000);

    /// A process of these words; without a word, one that joins.
    ///
    /// # Real-time: setup only
    pub fn new(task: Task, command: Vec<OsString>) -> Self {
        Self {
            task,
            command,
            thread: RtThread::any(),
            register_within: Self::REGISTER_WITHIN,
            restart: Restart::default(),
            safe: Vec::new(),
            surroundings: Surroundings::default(),
        }
    }

    /// The safe value as words.
    pub(super) fn safe_words(&self) -> Vec<u64> {
        let word = |bytes: &[u8]| {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            u64::from_ne_bytes(whole)
        };
        self.safe.chunks(8).map(word).collect()
    }

    /// What cannot be.
    pub(super) fn check(&self, supervisor: u8) -> Result<(), SetupError> {
        let name = || self.task.name.clone();
        let cannot = |why| Err(SetupError::Build(BuildError::Cannot(name(), why)));
        if !is_name(&self.task.name) {
            return Err(SetupError::Name(name()));
        }
        match self.task.policy {
            OnOverrun::Delay => {
                return cannot(
                    "a process cannot move its phase, which its supervisor keeps: use skip or \
                     burst, or a worker thread",
                );
            }
            OnOverrun::Burst(most) if most > Self::BURST_MAX => {
                return cannot("a burst of a process must be at most 16 cycles");
            }
            _ => {}
        }
        match self.thread.named_fifo() {
            Some(fifo) if fifo == 0 || fifo >= supervisor => {
                return Err(SetupError::Priority(name(), fifo, supervisor));
            }
            _ => {}
        }
        if self.register_within <= Span::ZERO {
            return cannot("register_within must be above 0");
        }
        if self.restart.pause < Span::ZERO {
            return cannot("the pause before a restart must not be negative");
        }
        if self.safe.len() > 8 * OUTPUT_WORDS_MAX {
            return cannot("a safe value must be at most 4096 bytes");
        }
        if !self.safe.len().is_multiple_of(8) {
            return cannot("a safe value must be a multiple of 8 bytes");
        }
        Ok(())
    }
}
