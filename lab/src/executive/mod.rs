//! What the executive costs: to release many tasks, to dispatch the first, to let one wait, held
//! against the ways of others.
//!
//! For `measure executive`. Measures on the calling thread, in blocks that take turns, so that a
//! drift of the machine hits all designs alike; never prints.

mod cell;
mod measured;
mod ratios;
mod stamps;
mod turn;

pub use cell::{Cell, Row};
pub use ratios::{Aim, Ratio, ratios};
pub use stamps::Stamps;
pub use turn::Turn;

/// The numbers of tasks that are looked at.
pub const SIZES: [usize; 7] = [1, 10, 50, 100, 1_000, 10_000, 100_000];

/// The most tasks of a design whose waits walk a queue: its cycle takes n² steps.
pub const WALKED_MAX: usize = 10_000;
