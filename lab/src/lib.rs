//! The experiments of punctual, and the loads that they run under. Never prints.
//!
//! [`periodic`]: loops on this machine's clock, idle and under load. [`cost`]: what recording
//! costs. [`load`]: what makes the machine busy meanwhile. [`quiet`]: the phase away from the tick.
#![forbid(unsafe_code)]

pub mod cost;
pub mod load;
pub mod periodic;
pub mod quiet;
