//! What a lateness does to a machine, in the unit of its user's work.
//!
//! Formulas with their sources; no measuring, no guessing of inputs.

pub mod step_generation;
pub mod stepper;
