//! The loop of many tasks ([`many`]), the loop of one task that a device paces ([`paced`]).
//!
//! For callers that run them, on the machine or in a simulated clock. All decisions are made before
//! a loop starts, and all results are read after it; it never allocates, never fails and calls only
//! the clock, the wait, the tasks and the observer that it is given.

pub mod cancelling;
pub mod many;
pub mod paced;
pub mod schedule;
