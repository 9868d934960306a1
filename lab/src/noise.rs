//! What takes a CPU away from a thread that only spins: gaps, as oslat, sysjitter and the kernel's
//! hwlat tracer see them.
//!
//! For `measure noise`. A thread on each CPU reads the clock as fast as it can, in windows with
//! rests between them; whatever comes between two reads is a gap. Gaps on all CPUs at once, the
//! host's steal, interrupts and the firmware's are counted apart. Runs threads, never prints.

mod accounts;
mod at_once;
mod collector;
mod experiment;
mod outcome;
mod spinner;
mod threads;
mod windows;

pub use experiment::NoiseExperiment;
pub use outcome::{AtOnce, CpuNoise, Interrupt, Lengths, NoiseOutcome, Overlaps, WorstGap};
