//! What a periodic experiment tells, on its way and at its end.
//!
//! For callers. Plain data.

use std::io;

use punctual::clocks::{Rate, Slew, StampCost};
use punctual::core::time::Span;
use punctual::core::wait::exit::Trial;
use punctual::core::wait::{Approach, Learned, Stalls};
use punctual::disturbance::Disturbance;
use punctual::os::scheduler::Policy;
use punctual::os::usage::Usage;
use punctual::session::Refusal;
use punctual::watchdog::Force;

use super::followed::Followed;

/// What else the machine does: started before a block's loop, ended after it.
pub trait Background {
    /// Starts what condition `condition` names and returns once it is at work. It must end by
    /// itself soon after `length`, whatever becomes of the caller.
    ///
    /// # Errors
    /// In one line, why it could not be started.
    fn begin(&mut self, condition: usize, length: Span) -> Result<(), String>;

    /// Ends it.
    fn end(&mut self, condition: usize);

    /// Is told, about ten times a second, how far the experiment is.
    fn progress(&mut self, _: &Progress) {}
}

/// How far the experiment is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time left.
    pub left: Span,
    /// The condition of the block that runs.
    pub condition: usize,
    /// The worst lateness of all streams so far, in any condition.
    pub worst: Option<Span>,
    /// Cycles of all streams so far.
    pub cycles: u64,
    /// Missed releases of all streams so far.
    pub missed: u64,
}

/// Why the experiment is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It came to its end.
    Finished,
    /// It was told to stop.
    Stopped,
    /// The watchdog ended a loop, like this.
    Watchdog(Force),
    /// A load could not be started.
    Load(String),
}

/// What one stream did under one condition, beside its samples.
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
    pub policy: Policy,
    /// How the wait approached releases at the end.
    pub approach: Approach,
    /// What came of trying a corrected exit of its spins, where that was tried.
    pub exit: Option<Trial>,
    /// What the wait learned, as far as it does.
    pub learned: Option<Learned>,
}

/// What stamps were taken with.
#[derive(Clone, Debug)]
pub struct ClockFacts {
    /// `tsc`, `cntvct` or `vdso`.
    pub name: &'static str,
    /// Why not the counter, where it is not.
    pub untrusted: Option<String>,
    /// The counter's rate over the whole experiment.
    pub rate: Option<Rate>,
    /// CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW over the whole experiment.
    pub slew: Option<Slew>,
    /// What stamps cost.
    pub cost: StampCost,
}

/// An experiment that is over.
#[derive(Debug)]
pub struct Outcome<S> {
    /// The sink, which has seen all recorded samples.
    pub sink: S,
    /// By run, see [`super::Plan::run`].
    pub runs: Vec<RunOutcome>,
    /// What the kernel refused, once each.
    pub refused: Vec<Refusal>,
    /// Whether all memory was locked.
    pub memory_locked: bool,
    /// Whether idle states were held off.
    pub idle_states_held: bool,
    /// What stamps were taken with.
    pub clock: ClockFacts,
    /// How the grids followed another clock, where they did.
    pub followed: Option<Followed>,
    /// What happened to the machine, and when on CLOCK_MONOTONIC, in ns.
    pub disturbances: Vec<(u64, Disturbance)>,
    /// Why the sample file ends early, if it does.
    pub file_error: Option<io::Error>,
    /// Why it is over.
    pub end: End,
}
