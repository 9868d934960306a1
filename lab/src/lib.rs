//! The experiments of punctual, and the loads that they run under. Never prints.
//!
//! [`baseline`]: other ways to keep periodic tasks. [`executive`]: what releasing, dispatching and
//! waiting cost. [`periodic`]: loops on this machine's clock, idle and under load. [`cost`]: what
//! recording costs. [`load`]: what makes the machine busy meanwhile. [`quiet`]: the phase away from
//! the tick. [`tasks`]: the file that names the tasks of a supervisor.
#![forbid(unsafe_code)]

pub mod baseline;
pub mod cost;
pub mod executive;
pub mod load;
pub mod periodic;
pub mod quiet;
pub mod tasks;
