//! What cannot be in an executive, in words for a person.
//!
//! Plain data and its text.

use std::fmt;

use crate::error_kind::ErrorKind;

/// What cannot be in an executive.
#[derive(Debug)]
pub(crate) enum ExecutiveError {
    /// A task that needs a period has none.
    NoPeriod(String),
    /// It has no such task.
    NoTask,
    /// A task is to be added on a CPU where no loop is.
    NoLane(String, u32),
    /// One more task is to be added with a thread of its own than there may be.
    LateThreads(String, usize),
    /// A task that cannot be removed.
    Stays(String),
    /// A change from a task of a loop.
    FromLoop,
    /// It does not run yet, or no more.
    NotRunning,
    /// A calendar and several loops.
    CalendarCpus,
    /// No unit of this task has a body.
    NoBody(String),
    /// Two units of this task have one.
    TwoBodies(String),
    /// A task's priority, and the executive's, which is not above it.
    NotBelow(String, u8, u8),
    /// Processes, and a clock of its own.
    ProcessClock,
}

impl ExecutiveError {
    /// What kind of thing it is.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::NoTask => ErrorKind::Unknown,
            Self::Stays(_) => ErrorKind::Busy,
            Self::LateThreads(..) => ErrorKind::TooMany,
            Self::FromLoop => ErrorKind::FromLoop,
            Self::NotRunning => ErrorKind::NotRunning,
            _ => ErrorKind::Setting,
        }
    }
}

impl fmt::Display for ExecutiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPeriod(task) => {
                write!(f, "task {task:?} has no period: give it one, or a trigger")
            }
            Self::NoTask => f.write_str("the executive has no such task"),
            Self::NoLane(task, cpu) => write!(
                f,
                "task {task:?} cannot be added on CPU {cpu}: the executive has no loop there; name \
                 all its CPUs before it runs"
            ),
            Self::LateThreads(task, most) => write!(
                f,
                "task {task:?} cannot be added with a thread of its own: {most} tasks with threads \
                 were already added while the executive runs, which is the most; remove one of \
                 them, or place it inline",
            ),
            Self::Stays(task) => {
                write!(
                    f,
                    "task {task:?} cannot be removed: it has its own thread or process, or belongs \
                     to the calendar"
                )
            }
            Self::FromLoop => f.write_str(
                "a task of a loop cannot add or remove tasks: the loop would wait for itself; do \
                 it from another thread",
            ),
            Self::NotRunning => f.write_str("the executive does not run"),
            Self::CalendarCpus => f.write_str(
                "an executive with a calendar has one loop: place its tasks inline or in threads",
            ),
            Self::NoBody(task) => {
                write!(f, "no unit of the calendar brings a body for task {task:?}")
            }
            Self::TwoBodies(task) => {
                write!(f, "two units of task {task:?} bring a body: only one of them may")
            }
            Self::NotBelow(task, got, main) => write!(
                f,
                "task {task:?}: the priority of its thread must be below the executive's {main} \
                 (got {got})"
            ),
            Self::ProcessClock => f.write_str(
                "the releases of processes are on CLOCK_MONOTONIC: an executive with processes has \
                 no clock of its own",
            ),
        }
    }
}
