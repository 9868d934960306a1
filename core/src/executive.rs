//! The loop of many tasks ([`many`]), the loop of one task that a device paces ([`paced`]), and why
//! a loop is over.
//!
//! For callers that run them, on the machine or in a simulated clock. All decisions are made before
//! a loop starts, and all results are read after it; it never allocates, never fails and calls only
//! the clock, the wait, the tasks and the observer that it is given.

pub mod cancel;
pub mod cancelling;
pub mod many;
pub mod paced;
pub mod schedule;

/// Why a loop is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Ended {
    /// It came to its end.
    Finished,
    /// A flag or a task stopped it.
    Stopped,
    /// The task of this rank overran, and its policy is to stop the executive.
    Overran(usize),
}
