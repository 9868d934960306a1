//! What a supervisor tells while it runs.
//!
//! Plain data; whoever runs it says it to a person.

use punctual_core::time::Span;
use punctual_os::Errno;

use crate::process::lifecycle::{Cause, ProcessEnd};
use crate::session::Attempt;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// To this task.
    pub task: String,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Its process was started, with this number.
    Started(u32),
    /// A process of this number joined.
    Joined(i32),
    /// A process asked to join and was refused.
    TurnedAway(&'static str),
    /// It registered and is released from now on.
    Registered,
    /// The kernel refused something for its thread.
    Refused(Attempt, Errno),
    /// So many of its threads beside the registered one used the CPU under a real-time policy of
    /// their own without waiting, and lost that.
    ThreadsDemoted(u64),
    /// It took none of the releases of a second, ten at least.
    Silent,
    /// It unregistered.
    Unregistered,
    /// It lost its block, and goes on without.
    Dismissed(Cause),
    /// Its process is ended.
    Killed(Cause),
    /// Its process has ended.
    Ended(ProcessEnd),
    /// It is started again after this pause.
    StartsAgain(Span),
    /// It is not started again.
    GivenUp,
}
