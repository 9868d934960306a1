//! The periodic experiment: loops on this machine's clock, under conditions that take turns.
//!
//! For `check` and `measure periodic` (NIST's periodic task, LinuxCNC's latency test, cyclictest).
//! Runs threads, never prints; what it learns is returned, and on the way handed to a sink, sample
//! by sample. Analysis is somebody else's.

mod beside;
mod crew;
mod followed;
mod outcome;
mod plan;
mod prepared;
mod stream;
mod timescale;

pub use followed::{Followed, Moment, follow};
pub use outcome::{Background, ClockFacts, End, Outcome, Progress, RunOutcome};
pub use plan::{Block, Condition, Plan, SPIN_PERIOD_MIN, Stream, WaitKind, interleave, split};
pub use prepared::Prepared;
