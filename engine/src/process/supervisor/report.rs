//! The events of a supervisor while it runs, and the outcome of it and of its tasks.
//!
//! Plain data; the program that ran it shows it to a person.

use std::sync::atomic::AtomicU64;

use punctual_core::bucket;
use punctual_core::stats::{Counts, View};
use punctual_core::time::Span;
use punctual_os::Errno;
use punctual_os::scheduler::SchedPolicy;

use crate::process::lifecycle::{Cause, ProcessEnd};
use crate::safety::CpuTaken;
use crate::session::{Attempt, Refusal};

/// The reason of a supervisor's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// Its time was up.
    Finished,
    /// A stop was requested, or its watchdog stopped it.
    Stopped,
    /// No task is left that could run.
    AllGone,
    /// The task of this name overran, or took no releases, and its policy is to stop everything.
    Overran(String),
}

/// The outcome of a supervisor.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The reason of its end.
    pub over: Over,
    /// The policy that its executive really had.
    pub policy: SchedPolicy,
    /// The requests of its executive's thread that the kernel refused.
    pub refused: Vec<Refusal>,
    /// The way in which the executive itself was ended by force; `None` where it was not.
    pub forced: Option<crate::monitor::Force>,
    /// The share of its CPU that its executive took, where it was real-time.
    pub taken: Option<CpuTaken>,
    /// The lateness of the executive's own releases.
    pub releases: Figures,
    /// The outcome of each task, by rank.
    pub tasks: Vec<TaskOutcome>,
}

/// A page as it was at the end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Figures {
    /// Its counters.
    pub counts: Counts,
    /// Its histogram, by [`punctual_core::bucket`].
    pub buckets: Vec<u64>,
}

impl Figures {
    /// Those of a page as it is now.
    pub(super) fn read(words: &[AtomicU64]) -> Self {
        let mut buckets = Box::new([0; bucket::COUNT]);
        let counts = View::open(words).map(|page| page.read(&mut buckets)).unwrap_or_default();
        Self { counts, buckets: buckets.to_vec() }
    }
}

/// The outcome of a task that is a process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskOutcome {
    /// The name of the task.
    pub name: String,
    /// Its period, ns, rounded down.
    pub period_ns: u64,
    /// The phase of its releases, ns after the epoch.
    pub phase_ns: u64,
    /// Its counters and its histogram of lateness.
    pub figures: Figures,
    /// The policy that its thread had last; `None` when it never registered.
    pub policy: Option<SchedPolicy>,
    /// Processes that were started for it, or joined.
    pub starts: u64,
    /// Times that it registered.
    pub registered: u64,
    /// Times that it was started again.
    pub restarts: u64,
    /// Releases that were given to it, and in a calendar places of other units, that found it still
    /// running an earlier cycle. One that was given late may find it done.
    pub overran: u64,
    /// Times that its process was ended because it overran, or because it took no releases.
    pub terminated: u64,
    /// Times that the monitor made it SCHED_OTHER, and times that it got its policy back.
    pub demoted: (u64, u64),
    /// Threads other than the registered one that lost a real-time policy of their own.
    pub threads_demoted: u64,
    /// Releases at which no process was registered; with those that ran or were missed all of the
    /// run.
    pub unattended: u64,
    /// Those of them since its last process ended or left; 0 where none was ever released.
    pub after_end: u64,
    /// Results in its block that cannot be.
    pub invalid: u64,
    /// True where it was given up: no restart was left, or wanted, and it had failed.
    pub failed: bool,
    /// The end of its last process; `None` where none has ended.
    pub exit: Option<ProcessEnd>,
}

/// Something that happened to a task while its supervisor ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name of the task.
    pub task: String,
    /// The kind of the event.
    pub kind: EventKind,
}

/// A kind of event of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Its process was started, with this number.
    Started(u32),
    /// A process of this number joined.
    Joined(i32),
    /// A process was refused that requested to join.
    TurnedAway(&'static str),
    /// It registered and is released from now on.
    Registered,
    /// The kernel refused something for its thread.
    Refused(Attempt, Errno),
    /// Its registered thread used the CPU without waiting, and lost its real-time policy.
    Demoted,
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
