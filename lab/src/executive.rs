//! What the executive costs: to release many tasks, to dispatch the first, to let one wait,
//! compared with the ways of others.
//!
//! For `measure executive`. Measures on the calling thread, in blocks that take turns, so that a
//! drift of the machine hits all designs alike; never prints.

mod cell;
mod experiment;
mod loop_overhead;
mod measured;
mod ratios;
mod registration;
mod stamps;

pub use cell::ExecutiveRow;
pub use experiment::{ExecutiveExperiment, ExecutiveOutcome};
pub use loop_overhead::LoopOverhead;
pub use ratios::Ratio;
pub use registration::{RegistrationExperiment, RegistrationRow};
