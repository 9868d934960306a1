//! How fast threads answer a stimulus: the full loop of the Windows CE benchmark (Tacke and Ricci,
//! *Benchmarking Real-time Determinism in Windows CE*).
//!
//! For `measure response`. A stimulus wakes stage 1, the thread nearest to the interrupt (a thread
//! is no interrupt handler: that is the driver's); stage 1 answers and wakes stage 2, the
//! application's thread, which answers too. Runs threads, never prints.

mod experiment;
mod floor;
mod outcome;
mod run;
mod source;
mod stages;
mod trace;

pub use experiment::{ResponseExperiment, STIMULI_MAX};
pub(crate) use outcome::Times;
pub use outcome::{Floor, ResponseOutcome, ResponseRow, StageRow};
pub(crate) use run::{Condition, Ran};
pub use source::{SOURCES, SourceName, SourceRow};
pub use trace::StageTrace;
