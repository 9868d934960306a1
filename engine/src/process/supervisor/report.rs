//! What a supervisor tells while it runs, and what became of it and its tasks.
//!
//! Plain data; whoever ran it says it to a person.

use std::sync::atomic::AtomicU64;

use punctual_core::bucket;
use punctual_core::stats::{Counts, View};
use punctual_core::time::Span;
use punctual_os::Errno;
use punctual_os::scheduler::SchedPolicy;

use crate::process::lifecycle::{Cause, ProcessEnd};
use crate::safety::CpuTaken;
use crate::session::{Attempt, Refusal};

/// Why a supervisor ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// Its time was up.
    Finished,
    /// It was asked to stop, or its watchdog did.
    Stopped,
    /// No task is left that could run.
    AllGone,
    /// The task of this name overran, or took no releases, and its policy is to stop everything.
    Overran(String),
}

/// What became of a supervisor.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Why it ended.
    pub over: Over,
    /// The policy that its executive really had.
    pub policy: SchedPolicy,
    /// What its executive's thread was refused.
    pub refused: Vec<Refusal>,
    /// How the executive itself was ended by force, if it was.
    pub forced: Option<crate::monitor::Force>,
    /// What its executive took of its CPU, where it was real-time.
    pub taken: Option<CpuTaken>,
    /// How late the executive's own releases were.
    pub releases: Figures,
    /// What became of each task, by rank.
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

/// What became of a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskOutcome {
    /// The task.
    pub name: String,
    /// Its period, ns, rounded down, and its phase.
    pub period_ns: u64,
    /// Where its releases lie, ns after the epoch.
    pub phase_ns: u64,
    /// Its counters and its histogram of lateness.
    pub figures: Figures,
    /// The policy that its thread had last; `None` when it never registered.
    pub policy: Option<SchedPolicy>,
    /// How many processes were started for it, or joined.
    pub starts: u64,
    /// How often it registered.
    pub registered: u64,
    /// How often it was started again.
    pub restarts: u64,
    /// Releases that found it still running an earlier cycle.
    pub overran: u64,
    /// How often its process was ended because of that, or because it took no releases.
    pub terminated: u64,
    /// How often the monitor made it SCHED_OTHER, and how often it got its policy back.
    pub demoted: (u64, u64),
    /// How many threads other than the registered one lost a real-time policy of their own.
    pub threads_demoted: u64,
    /// Releases at which no process was registered; with those that ran or were missed all of the
    /// run.
    pub unattended: u64,
    /// Those of them since its last process ended or left; 0 where none was ever released.
    pub after_end: u64,
    /// Results in its block that cannot be.
    pub invalid: u64,
    /// Whether it was given up: no restart was left, or wanted, and it had failed.
    pub failed: bool,
    /// How its last process ended.
    pub exit: Option<ProcessEnd>,
}

/// Something that happened to a task while its supervisor ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The task it happened to.
    pub task: String,
    /// What happened.
    pub kind: EventKind,
}

/// What can happen to a task.
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
