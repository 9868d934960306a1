//! What every way to keep periodic tasks is: the contract, and what all of them share.

pub use punctual_core::parts::Visit;

/// Priorities of the baselines: one word of a bitmap.
pub const LEVELS: usize = 64;

/// No task, no link.
pub(super) const NONE: u32 = u32::MAX;

/// A periodic task; its number is its place in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaselineTask {
    /// Ticks from release to release, at least 1.
    pub period: u32,
    /// The tick of its first release, below the period.
    pub phase: u32,
    /// Its priority, below [`LEVELS`]; 0 is the most urgent.
    pub level: u8,
}

/// What releases periodic tasks, says which is next, and makes them wait.
pub trait Design {
    /// A task that is to run now.
    type Job: Copy;

    /// The timer's next interrupt, the first being that of tick 0: all tasks whose release this is
    /// become ready.
    fn release(&mut self);

    /// The most urgent task that is ready.
    fn dispatch(&mut self) -> Option<Self::Job>;

    /// The design's own number of that task.
    fn number(job: &Self::Job) -> usize;

    /// A task that was dispatched waits until its next release.
    fn wait(&mut self, job: Self::Job);

    /// Shows all memory that it lies in.
    fn visit(&self, visit: &mut impl Visit);
}
