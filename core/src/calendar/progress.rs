//! Where a task of a calendar is, and what it did so far.
//!
//! For the calendar's state, which has one a task in its caller's storage. Pure.

use crate::cycle::Job;
use crate::table::OnOverrun;

/// What a task of a calendar did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitCounters {
    /// Units that ran.
    pub ran: u64,
    /// Units whose deadline had passed before they could start.
    pub missed_units: u64,
    /// Units not needed: the task was done before them.
    pub spare_units: u64,
    /// Frames in which the task began no cycle.
    pub missed: u64,
    /// Voluntary breaks.
    pub breaks: u64,
    /// Cycles ended by [`OnOverrun::Terminate`] before they were done.
    pub terminated: u64,
    /// Starts later than the unit allows: delayed by others.
    pub started_late: u64,
    /// Executions beyond the budget, timed out: the causes of delays.
    pub over_budget: u64,
    /// Units that ran beyond the `next` of their cycle, at which their budget was spent.
    pub over_release: u64,
    /// Cycles that were not done when their task's next frame came.
    pub over_frame: u64,
    /// Finishes after the deadline.
    pub over_deadline: u64,
}

/// Where a task is, and what it did: the storage of a [`CalendarState`](super::CalendarState), one
/// a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskProgress {
    /// The first frame that is neither run nor counted as missed.
    pub(super) next: u64,
    /// The cycle that it is in, or was in.
    pub(super) cycle: u64,
    /// How many breaks this cycle has had.
    pub(super) part: u32,
    /// Whether it took a break and is not done.
    pub(super) unfinished: bool,
    /// Missed frames that no cycle has counted in its `missed` yet.
    pub(super) uncounted: u64,
    pub(super) counters: UnitCounters,
}

impl TaskProgress {
    /// Whether it has nothing to do in this frame any more.
    #[inline]
    pub(super) fn is_done(&self, frame: u64) -> bool {
        !self.unfinished && self.next > frame
    }

    /// The cycle of `job` never ran: it is missed, and nobody has counted what it would have.
    pub(super) fn refuse(&mut self, job: &Job) {
        self.counters.missed += 1;
        self.uncounted += job.missed + 1;
    }

    /// The run ends, and the frames from `due` on are none of it. The frames missed that no cycle
    /// has counted: the first, and how many.
    pub(super) fn end(&mut self, due: u64) -> (u64, u64) {
        let first = self.next - core::mem::take(&mut self.uncounted);
        let end = due.max(first);
        self.counters.missed = (self.counters.missed + end).saturating_sub(self.next);
        self.next = end;
        (first, end - first)
    }

    /// The cycle of a unit that starts in `frame`: the next one, or the one that took a break.
    #[inline]
    pub(super) fn begin(&mut self, frame: u64, policy: OnOverrun) {
        let passed = frame.saturating_sub(self.next);
        if self.unfinished && frame >= self.next {
            self.counters.over_frame += 1;
            if policy == OnOverrun::Terminate {
                self.counters.terminated += 1;
                self.unfinished = false;
            }
        }
        if self.unfinished {
            // The frames that it runs into are missed, this one included.
            let missed = frame.saturating_add(1).saturating_sub(self.next);
            self.uncounted += missed;
            self.counters.missed += missed;
        } else {
            (self.cycle, self.part) = (frame, 0);
            self.uncounted += passed;
            self.counters.missed += passed;
        }
        self.next = self.next.max(frame.saturating_add(1));
    }
}
