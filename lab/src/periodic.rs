//! The periodic experiment: loops on this machine's clock, under conditions that take turns.
//!
//! For `check`, `measure periodic`, `measure wait` and `soak` (NIST's periodic task, LinuxCNC's
//! latency test, cyclictest). Runs threads, never prints; what it learns is returned, and on the
//! way handed to a sink, sample by sample. Analysis is somebody else's.

mod claims;
mod context;
mod drain;
mod experiment;
mod followed;
mod outcome;
mod plan;
mod prepared;
mod recordings;
mod stream;
mod threads;
mod timescale;

pub use claims::{RunClaim, plans};
pub use experiment::{Begun, Destination, PeriodicExperiment, PeriodicOutcome};
pub use followed::{FollowedFigures, Moment, follow};
pub use outcome::{LoopsOutcome, RunOutcome};
pub use plan::{
    Condition, ConditionBlock, KnownWait, PeriodicPlan, SPIN_PERIOD_MIN, Stream, WaitKind,
    interleave, round, split,
};
pub use prepared::Prepared;
pub use recordings::{EvaluationConfig, Recordings};
