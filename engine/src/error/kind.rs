//! The kinds of errors, by which callers decide.
//!
//! For the C API, the command line and programs. Plain data; beneath every type of error, which
//! returns its kind.

/// The kind of an [`Error`](crate::error::Error).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting that cannot be.
    Setting,
    /// Two tasks or units have one name.
    SameName,
    /// There is no task or unit of this name or id.
    Unknown,
    /// More tasks or units than there may be.
    TooMany,
    /// Budgets ask for more time than there is, or units for the same time.
    NoTime,
    /// It cannot change while the executive runs, or another change is under way.
    Busy,
    /// A task would change the loop that runs it.
    FromLoop,
    /// The executive, or the supervisor of a task, does not run.
    NotRunning,
    /// A thread cannot be started.
    Thread,
    /// A device cannot be opened, or is of another kind.
    Device,
    /// A clock cannot be read.
    Unreadable,
    /// A sample file cannot be written.
    Samples,
    /// The kernel refused what was to be strictly had, or a supervisor a task.
    Refused,
    /// The watchdog stopped it.
    Forced,
    /// A task panicked.
    Panicked,
    /// A task overran, and its policy is to stop everything.
    Overran,
    /// It was made by another process, of which fork(2) made this one.
    Forked,
}
