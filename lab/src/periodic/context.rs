//! What all threads of a periodic experiment share.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use punctual::clocks::MachineClock;
use punctual::follow::Follower;
use punctual::monitor::Watched;
use punctual_core::releases::Releases;

use super::plan::{KnownWait, PeriodicPlan};

/// What all threads of an experiment share.
pub(super) struct RunContext<'a> {
    pub(super) plan: &'a PeriodicPlan,
    pub(super) known: &'a [KnownWait],
    pub(super) grids: &'a [Releases],
    pub(super) watched: &'a [Watched],
    pub(super) clock: &'a MachineClock,
    pub(super) follower: Option<&'a Follower>,
    pub(super) stop: &'a AtomicBool,
    /// Threads and the CPUs that they were pinned to, once they are.
    pub(super) pinned: &'a Mutex<Vec<(i32, u32)>>,
}
