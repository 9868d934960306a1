//! What a time error does to a machine, in the unit of its user's work.
//!
//! Formulas with their sources; no measuring, no guessing of inputs. Each model takes the statistic
//! that is right for it out of [`timing::Timing`], which says what the number rests on.

pub mod application;
pub mod audio;
pub mod drives;
pub mod ethercat;
pub mod pacing;
pub mod position;
pub mod pwm;
pub mod quadrature;
pub mod safety;
pub mod sampling;
pub mod servo;
pub mod step_generation;
pub mod stepper;
pub mod timing;
pub mod tsn;
pub mod velocity;

#[cfg(test)]
mod tests;
