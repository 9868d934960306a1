//! What an experiment reports while it runs.

use punctual_core::time::Span;

use super::standing::Standing;

/// How far an experiment is.
#[derive(Clone, Copy, Debug)]
pub struct ExperimentProgress {
    /// Time left.
    pub left: Span,
    /// The condition that runs.
    pub condition: usize,
    /// The worst value of all threads so far, in any condition.
    pub worst: Option<Span>,
    /// Values of all threads so far: cycles, or gaps.
    pub count: u64,
    /// Missed releases of all threads so far.
    pub missed: u64,
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
        /// How the claim that is farthest from being shown stands.
        standing: Option<&'a Standing>,
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
