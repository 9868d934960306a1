//! What a task does, as seen from outside its seat.
//!
//! For watchdogs and supervisors. Loads alone; what it says is the task's word.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{DROPPED, START, STATE, TAKEN, THREAD, Words};
use crate::time::Instant;

/// Where a task is, as it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nobody has sat down.
    #[default]
    Empty,
    /// Somebody asks to be released.
    Asking,
    /// Waits for a release.
    Idle,
    /// Runs a cycle.
    Running,
    /// Got up and left.
    Gone,
    /// None of these: rubbish.
    Unknown,
}

impl State {
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
    /// Where it is.
    pub state: State,
    /// The cycle that it runs or ran last; `None` before the first.
    pub cycle: Option<u64>,
    /// When it started that one.
    pub start: Instant,
    /// Results that did not fit in the seat.
    pub dropped: u64,
    /// The number of its thread; checked by nobody here.
    pub thread: u64,
}

/// Looks at a seat; `None` when the words are too few for one.
///
/// # Real-time: reader side
pub fn look(words: &[AtomicU64]) -> Option<Look> {
    let seat = Words::of(words)?;
    let get = |at: usize| seat.fixed[at].load(Ordering::Acquire);
    Some(Look {
        state: State::of(get(STATE)),
        cycle: get(TAKEN).checked_sub(1),
        start: Instant::from_ns(get(START)),
        dropped: get(DROPPED),
        thread: get(THREAD),
    })
}
