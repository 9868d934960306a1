//! Results as comparisons see them, and how two of them compare.
//!
//! For `compare`, `--against` and `--baseline`. The statistics are in `punctual_analysis::compare`;
//! here is what is read, matched by name, and noted about setups that differ.

mod compared;
mod differences;
pub(crate) mod gate;
mod read;
mod recorded;
pub(crate) mod store;

pub(crate) use compared::{Side, compare_sides};
pub(crate) use read::read;
pub(crate) use recorded::{RUNS_MAX, Recorded, RecordedRun};
