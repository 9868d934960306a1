//! What a periodic experiment gives at its end.
//!
//! For callers. Plain data.

use std::io;

use punctual::disturbance::Disturbance;
use punctual::session::Refusal;
use punctual_core::wait::{Learned, PausedSpin, Stalls, WakePlan};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::usage::Usage;

use super::followed::FollowedFigures;
use crate::experiment::{ClockFacts, ExperimentEnd};

/// What one stream did under one condition, apart from its samples.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Cycles recorded.
    pub cycles: u64,
    /// Releases that never ran.
    pub missed: u64,
    /// Samples that did not fit in the ring.
    pub unrecorded: u64,
    /// Gaps inside spins.
    pub stalls: Stalls,
    /// CPU time of the loop's thread over wall time, in [0, 1].
    pub cpu_load: f64,
    /// Time that its blocks took, in ns.
    pub wall_ns: u64,
    /// Page faults and context switches of the loop's thread.
    pub usage: Usage,
    /// The policy that the thread really had.
    pub policy: SchedPolicy,
    /// How the wait approached releases at the end.
    pub approach: WakePlan,
    /// What the wait learned, as far as it does.
    pub learned: Option<Learned>,
    /// How much of its spins the processor paused.
    pub paused: PausedSpin,
    /// Whether the wait began with what an earlier run learned.
    pub resumed: bool,
    /// Time that the host took from the stream's CPU during its blocks, ns, in steps of 10 ms;
    /// `None` where the kernel does not report it, or the stream has no CPU of its own.
    pub steal_ns: Option<u64>,
}

/// An experiment that is over.
#[derive(Debug)]
pub struct LoopsOutcome<S> {
    /// The sink, which has seen all recorded samples.
    pub sink: S,
    /// By run, see [`super::PeriodicPlan::run`].
    pub runs: Vec<RunOutcome>,
    /// What the kernel refused, once each.
    pub refused: Vec<Refusal>,
    /// What stamps were taken with.
    pub clock: ClockFacts,
    /// How the grids followed another clock, where they did.
    pub followed: Option<FollowedFigures>,
    /// What happened to the machine, and when on CLOCK_MONOTONIC, in ns.
    pub disturbances: Vec<(u64, Disturbance)>,
    /// Why the sample file ends early, if it does.
    pub file_error: Option<io::Error>,
    /// Why it is over.
    pub end: ExperimentEnd,
}
