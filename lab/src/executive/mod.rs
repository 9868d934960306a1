//! What the executive costs: to release many tasks, to dispatch the first, to let one wait,
//! compared with the ways of others.
//!
//! For `measure executive`. Measures on the calling thread, in blocks that take turns, so that a
//! drift of the machine hits all designs alike; never prints.

mod cell;
mod experiment;
mod measured;
mod ratios;
mod stamps;
mod turn;

pub use cell::Row;
pub use experiment::{Executive, ExecutiveOutcome};
pub use ratios::Ratio;
pub use turn::Turn;
