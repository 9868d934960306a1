//! What tasks of an executive are known by.
//!
//! Plain data.

use std::time::Duration;

/// A task of an executive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId {
    /// Of which executive of this process.
    pub(super) executive: u64,
    /// Its number there.
    pub(super) at: usize,
}

/// Where a task of an executive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its name.
    pub name: String,
    /// The CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// From the epoch to its release 0; `None` for one that a device triggers.
    pub phase: Option<Duration>,
    /// Its place in the order of urgency among the tasks of its loop, 0 the first.
    pub rank: Option<usize>,
}
