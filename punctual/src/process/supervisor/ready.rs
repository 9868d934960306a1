//! A supervisor that was built: everything is checked and made, nothing runs yet.
//!
//! What it does is in `run`.

mod execute;
mod run;

use std::sync::Arc;

use punctual_core::time::{Instant, Period};

use super::super::listener::Listener;
use super::Memory;
use super::task_block::TaskBlock;
use crate::periodic::Plan;
use crate::rt_thread::RtThread;

/// A supervisor that can begin: it has its name, and the tasks their memory.
#[derive(Debug)]
pub struct Ready {
    pub(super) plan: Plan,
    /// By rank.
    pub(super) blocks: Vec<TaskBlock>,
    pub(super) listener: Option<Listener>,
    pub(super) page: Memory,
    pub(super) thread: RtThread,
    pub(super) epoch: Instant,
    pub(super) warnings: Vec<String>,
}

impl Ready {
    /// Which task is released when.
    ///
    /// # Real-time: setup only
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The SCHED_FIFO priority of each task, by rank.
    ///
    /// # Real-time: setup only
    pub fn priorities(&self) -> impl Iterator<Item = u8> {
        self.blocks.iter().map(|block| block.fifo)
    }

    /// Where throttling will stop its threads, in words.
    ///
    /// # Real-time: setup only
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The memory of each task's page, by name.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (&str, Arc<Memory>)> {
        self.blocks.iter().map(|block| (block.spec.task.name.as_str(), Arc::clone(&block.page)))
    }

    /// The shortest period.
    pub(crate) fn shortest(&self) -> Option<Period> {
        (0..self.plan.tasks()).map(|rank| self.plan.period(rank)).min()
    }
}
