//! How exactly a wait ends at an instant of the processor's counter: Maruti's experiment (*Temporal
//! accuracy on the Pentium Pro*, §4).
//!
//! For `measure accuracy`. Waits in a tight loop for targets that sweep all offsets, by each way to
//! read the counter, from aligned and split code, with warm and with flushed caches; the period of
//! the loop is found in the errors themselves. Runs one thread, never prints.

mod cell;
mod experiment;
mod outcome;
mod sweep;

pub use experiment::AccuracyExperiment;
pub use outcome::{AccuracyOutcome, AccuracyRow, LoopPeriod};
pub use sweep::SHARE_MIN;
