//! Results as comparisons see them, and what two of them say of each other.
//!
//! For `compare`, `--against` and `--baseline`. The statistics are in `punctual_analysis::compare`;
//! here is what is read, matched by name, and said about setups that differ.

mod differences;
pub(crate) mod gate;
mod held;
mod read;
mod recorded;
pub(crate) mod store;

pub(crate) use held::{Side, hold};
pub(crate) use read::read;
pub(crate) use recorded::{RUNS_MAX, Recorded, RecordedRun};
