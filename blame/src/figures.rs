//! The figures of a followed thread, for a live view and a result.

use punctual_trace::event::TaskName;

use crate::cause::LateCause;
use crate::spread::LatenessBounds;

/// A followed thread, as a live view shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSnapshot {
    /// The thread, with the priority of its last wake.
    pub task: TaskName,
    /// The CPU that it was on last.
    pub cpu: u32,
    /// The median time between its releases, ns.
    pub period_ns: Option<u64>,
    /// Its margin: the time before its goal at which it wakes in order to spin, ns; 0 where it does
    /// not.
    pub margin_ns: u64,
    /// Wakes with a release.
    pub wakes: u64,
    /// The lateness that half of them do not exceed, between its bounds.
    pub p50: LatenessBounds,
    /// The lateness that 99 of 100 do not exceed, between its bounds.
    pub p99: LatenessBounds,
    /// The largest lateness, between its bounds.
    pub max: LatenessBounds,
    /// Wakes beyond the absolute threshold; 0 where there is none.
    pub late: u64,
    /// The time of late wakes that passed before their interrupt, ns.
    pub delivery_ns: u64,
    /// The time of late wakes that passed after it, waiting for the CPU, ns.
    pub ready_ns: u64,
    /// The most frequent main cause of late wakes.
    pub first_cause: Option<LateCause>,
    /// The thread that ran most often before late wakes.
    pub ran_before: Option<TaskName>,
    /// True where it has ended.
    pub has_ended: bool,
    /// Wakes that no release is known of, so that none of the figures has them: by an interrupt or
    /// a timer's programming that was not recorded, or by another thread in the middle of a cycle.
    pub unmatched: u64,
    /// Its wait for a CPU that goes on, where another thread has that CPU.
    pub waiting: Option<WaitingNow>,
}

impl ThreadSnapshot {
    /// Its largest lateness, with that of a wait that goes on.
    #[must_use]
    pub fn worst_so_far(&self) -> LatenessBounds {
        self.waiting.map_or(self.max, |waiting| self.max.max(waiting.lateness()))
    }
}

/// A released thread that waits for a CPU while another thread runs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingNow {
    /// From its release to the last event, ns.
    pub for_ns: u64,
    /// The thread that runs.
    pub runner: TaskName,
}

impl WaitingNow {
    /// The lateness of the wake that it becomes: at least what it waited already, ns.
    #[must_use]
    pub const fn lateness(&self) -> LatenessBounds {
        LatenessBounds::new(self.for_ns, u64::MAX)
    }
}
