//! A supervisor that was built: everything is checked and made, nothing runs yet.
//!
//! What it does is in [`super::run`].

use std::sync::Arc;

use punctual_core::time::{Instant, Period};

use super::super::listener::Listener;
use super::super::memory::Memory;
use super::task_block::TaskBlock;
use crate::periodic::Plan;

/// A supervisor that can begin: it has its name, and the tasks their memory.
#[derive(Debug)]
pub struct Ready {
    pub(super) plan: Plan,
    /// By rank.
    pub(super) blocks: Vec<TaskBlock>,
    pub(super) listener: Option<Listener>,
    pub(super) page: Memory,
    pub(super) cpu: Option<u32>,
    pub(super) priority: u8,
    pub(super) epoch: Instant,
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

    /// The memory of each task's page, by name.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (&str, Arc<Memory>)> {
        self.blocks.iter().map(|block| (block.spec.task.name.as_str(), Arc::clone(&block.page)))
    }

    /// The shortest period.
    pub(crate) fn shortest(&self) -> Option<Period> {
        (0..self.plan.tasks()).map(|rank| self.plan.period(rank)).min()
    }
}
