//! A task of an executive that has a thread of its own: what it is, before and while it runs.

use punctual_core::stats::PageKind;
use punctual_core::time::Period;
use punctual_os::scheduler::SchedPolicy;

use super::pace::Pace;
use crate::rt_thread::RtThread;
use crate::safety::{self, Demand};
use crate::task::{Place, Task};
use crate::wait_policy::WaitPolicy;

/// A task in a thread of its own, but for its work.
#[derive(Debug)]
pub(super) struct ThreadTask {
    pub(super) entry: usize,
    pub(super) task: Task,
    pub(super) cpu: Option<u32>,
    pub(super) policy: SchedPolicy,
    pub(super) wait: WaitPolicy,
    pub(super) pace: Pace,
}

impl ThreadTask {
    /// Beside a main loop that runs so, in which it has this rank.
    pub(super) fn new(
        entry: usize,
        task: Task,
        pace: Pace,
        (main, rank): (&RtThread, Option<usize>),
    ) -> Self {
        let thread = match &task.placement.0 {
            Place::Thread(thread) => thread.clone(),
            _ => RtThread::any(),
        };
        // Below the executive, in the order of the tasks; one without releases comes last.
        let below = rank.map_or(u8::MAX, |rank| u8::try_from(rank + 1).unwrap_or(u8::MAX));
        let policy = thread.policy.unwrap_or(match main.policy() {
            SchedPolicy::Fifo(n) | SchedPolicy::RoundRobin(n) => {
                SchedPolicy::Fifo(n.saturating_sub(below).max(1))
            }
            other => other,
        });
        Self { entry, task, cpu: thread.cpu, policy, wait: thread.wait, pace }
    }

    /// What it may take of its CPU.
    pub(super) fn demand(&self) -> Demand {
        let Self { cpu, policy, task, .. } = self;
        let real_time = safety::is_real_time(*policy);
        Demand { cpu: *cpu, real_time, period: task.period, share: task.load() }
    }

    /// Its period and its phase, ns, where it waits for its releases itself.
    pub(super) fn grid(&self) -> Option<(Period, u64)> {
        match &self.pace {
            Pace::Own(plan) => Some((plan.period(0), plan.phase_ns(0))),
            Pace::Remote { .. } | Pace::Triggered => None,
        }
    }

    /// What its statistics are of.
    pub(super) fn kind(&self) -> PageKind {
        match self.pace {
            Pace::Triggered => PageKind::Distance,
            _ => PageKind::Lateness,
        }
    }
}
