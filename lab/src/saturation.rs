//! The highest frequency of stimuli that two stages serve, and what is left for work behind them:
//! MF and SF of the Windows CE benchmark (Tacke and Ricci, after Dupré and Barcos).
//!
//! For `measure saturation`. Trials of [`crate::response`]'s loop at one frequency after another,
//! chosen by MLRsearch's semantics (RFC 9971); alone, and with polygons of a thread without
//! privilege on the same CPU, whose rate shows what the stimuli take. Throttling stays as the
//! caller has it.

mod background;
mod experiment;
mod outcome;
mod search;
mod trials;

pub use experiment::SaturationExperiment;
pub use outcome::{BackgroundRow, SaturationOutcome, SaturationRow, SearchEnd, TrialRow};
