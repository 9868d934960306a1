//! What an experiment reports while it runs.

use punctual_core::time::{Period, Span};

use super::standing::RunSoFar;

/// How far an experiment is.
#[derive(Clone, Copy, Debug)]
pub struct ExperimentProgress {
    /// Time left.
    pub left: Span,
    /// The condition that runs.
    pub condition: usize,
    /// The longest gap of all threads so far; `None` where there are loops, which have figures of
    /// their own ([`LoopSoFar`]).
    pub worst: Option<Span>,
    /// Gaps of all threads so far.
    pub count: u64,
}

/// One loop, and what it saw so far.
#[derive(Clone, Debug)]
pub struct LoopSoFar {
    /// The CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// Its period.
    pub period: Period,
    /// Its figures under the condition that runs; `None` until there are samples.
    pub run: Option<RunSoFar>,
}

/// Something that is reported.
#[derive(Debug)]
pub enum ExperimentEvent<'a> {
    /// About ten times a second: how far it is.
    Progress {
        /// Time left, what was seen so far.
        progress: &'a ExperimentProgress,
        /// The name of the condition that runs.
        condition: &'a str,
        /// Each loop so far; none in an experiment without loops.
        loops: &'a [LoopSoFar],
    },
    /// Nothing more comes.
    Ended,
}

/// Who takes it in.
pub trait Observer {
    /// Takes in an event. Called on the thread that coordinates; the loops do not wait for it.
    fn event(&mut self, event: &ExperimentEvent<'_>);
}

/// Nobody.
impl Observer for () {
    fn event(&mut self, _: &ExperimentEvent<'_>) {}
}
