//! A supervisor that was built: everything is checked and made, nothing runs yet.
//!
//! What it does is in [`super::run`].

use punctual_core::time::Instant;

use super::super::listener::Listener;
use super::super::memory::Memory;
use super::seat::Seat;
use crate::periodic::Plan;

/// A supervisor that can begin: it has its name, and the tasks their memory.
#[derive(Debug)]
pub struct Ready {
    pub(super) plan: Plan,
    /// By rank.
    pub(super) seats: Vec<Seat>,
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
        self.seats.iter().map(|seat| seat.fifo)
    }
}
