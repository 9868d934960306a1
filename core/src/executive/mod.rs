//! The loop of many tasks ([`many`]), the loop of one task that a device paces ([`paced`]), and why
//! a loop is over.
//!
//! For whoever runs them, on the machine or in a simulated clock. Everything that a loop needs is
//! decided before it starts and everything that it learns is read after; it never allocates, never
//! fails and calls nothing but the clock, the wait, the tasks and the observer that it is given.

pub mod cancel;
mod cycle;
pub mod many;
pub mod paced;
pub mod schedule;

/// Why a loop is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Ended {
    /// It came to its end.
    Finished,
    /// It was told to stop.
    Stopped,
    /// The task of this rank overran, and its policy is to stop everything.
    Overran(usize),
}
