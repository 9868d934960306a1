//! How long a fixed piece of work takes, cycle after cycle, idle and under loads: how much of each
//! period a loop can use.
//!
//! For `measure work`. The work is always the same; what takes longer was disturbed by something
//! else: interrupts, other tasks, the host, caches and memory shared with loads. Runs one thread
//! beside the loads, never prints.

mod experiment;
mod outcome;
mod piece;

pub use experiment::{WORK_SHARE_MAX, WorkExperiment};
pub use outcome::{Usable, WorkOutcome, WorkRow};
pub use piece::WorkKind;
