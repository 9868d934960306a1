//! Why a supervisor ends a process, and how one ended.
//!
//! Plain data; for whoever supervises, and for a person.

/// Why a supervisor ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It did not register in time.
    NeverRegistered,
    /// It was still running at its next release, and its policy is to be terminated.
    Overran,
    /// It took none of the releases of a second, ten at least, and its policy is to be terminated.
    Silent,
    /// Its block holds what no task writes there.
    Invalid,
    /// It registered a thread that is not its own.
    ForeignThread,
    /// The supervisor ends.
    Over,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody can tell: it is no child of the supervisor's.
    Unknown,
    /// It could not be started, with this errno.
    NotStarted(i32),
}
