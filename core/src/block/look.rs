//! What a task does, read from its task block by another thread.
//!
//! For watchdogs and supervisors. Only loads; what the task wrote is not checked.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{DROPPED, START, STATE, TAKEN, THREAD, Words};
use crate::time::Instant;

/// The state of a task, as it wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskState {
    /// No task has opened the block.
    #[default]
    Empty,
    /// A task requests releases.
    Asking,
    /// Waits for a release.
    Idle,
    /// Runs a cycle.
    Running,
    /// The task has ended.
    Gone,
    /// None of these: an invalid value.
    Unknown,
}

impl TaskState {
    pub(super) const fn code(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Asking => 1,
            Self::Idle => 2,
            Self::Running => 3,
            Self::Gone => 4,
            Self::Unknown => u64::MAX,
        }
    }

    fn of(code: u64) -> Self {
        let known = [Self::Empty, Self::Asking, Self::Idle, Self::Running, Self::Gone];
        usize::try_from(code).ok().and_then(|at| known.get(at)).copied().unwrap_or(Self::Unknown)
    }
}

/// What a task does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Its state.
    pub state: TaskState,
    /// The cycle that it runs or ran last; `None` before the first.
    pub cycle: Option<u64>,
    /// When it started that one.
    pub start: Instant,
    /// Results that did not fit in the task block.
    pub dropped: u64,
    /// The number of its thread, not checked here.
    pub thread: u64,
}

/// Reads a task block; `None` when the words are too few for one.
///
/// # Real-time: reader side
pub fn look(words: &[AtomicU64]) -> Option<Look> {
    let block = Words::of(words)?;
    let get = |at: usize| block.fixed[at].load(Ordering::Acquire);
    Some(Look {
        state: TaskState::of(get(STATE)),
        cycle: get(TAKEN).checked_sub(1),
        start: Instant::from_ns(get(START)),
        dropped: get(DROPPED),
        thread: get(THREAD),
    })
}
