//! A followed thread: what it does, what it waits for, and what is learnt of it.

use punctual_trace::event::{CodeAddress, TaskName};

use crate::cause::LateCause;
use crate::ledger::Ledger;
use crate::normal::Normals;
use crate::pace::Pace;
use crate::past::{Past, WakePhase};
use crate::rules::PreviousWake;
use crate::timeline::TaskMode;
use crate::wake::ReleaseAnchor;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// Not known: before its first event, or after a loss.
    Unknown,
    /// It runs on this CPU.
    Running(u32),
    /// It waits for this CPU.
    Ready(u32),
    /// It sleeps.
    Sleeping,
    /// It sleeps, and no signal ends that.
    Blocked,
    /// A signal stopped it.
    Stopped,
}

impl ThreadState {
    pub(crate) const fn phase(self) -> WakePhase {
        match self {
            Self::Unknown => WakePhase::Unseen,
            Self::Running(_) => WakePhase::Running,
            Self::Ready(_) => WakePhase::Ready,
            Self::Sleeping => WakePhase::Waiting { is_blocked: false },
            Self::Blocked => WakePhase::Waiting { is_blocked: true },
            Self::Stopped => WakePhase::Stopped,
        }
    }

    /// The CPU that decides what happens to it.
    pub(crate) const fn cpu(self) -> Option<u32> {
        match self {
            Self::Running(cpu) | Self::Ready(cpu) => Some(cpu),
            _ => None,
        }
    }
}

/// A timer of its own that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnArm {
    pub(crate) timer: u64,
    pub(crate) function: CodeAddress,
    pub(crate) expires_ns: i64,
    /// The earliest and the latest expiry on the events' clock, as far as that clock is known.
    pub(crate) release_ns: u64,
    pub(crate) latest_ns: u64,
    pub(crate) armed_ns: u64,
    pub(crate) cpu: u32,
    /// Whether it still waits: not cancelled, and its thread was not woken by something else.
    pub(crate) is_pending: bool,
}

/// A release that its thread has not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Activation {
    pub(crate) anchor: ReleaseAnchor,
    pub(crate) release_ns: u64,
    pub(crate) latest_ns: u64,
    pub(crate) armed_ns: Option<u64>,
    pub(crate) is_whole: bool,
}

/// The last release that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastWake {
    pub(crate) release_ns: u64,
    pub(crate) lateness_ns: u64,
    /// The thread's priority then: on its way out a program may give up its own.
    pub(crate) kernel_priority: i32,
}

/// Who ran before a late wake: the most frequent of a few.
#[derive(Debug, Clone, Default)]
pub(crate) struct Before {
    seen: Vec<(TaskName, u64)>,
}

impl Before {
    const ROOM: usize = 16;

    /// Counts one; where the room is full, all lose one (Misra and Gries).
    pub(crate) fn add(&mut self, task: TaskName) {
        if let Some((_, count)) = self.seen.iter_mut().find(|(known, _)| known.tid == task.tid) {
            *count += 1;
        } else if self.seen.len() < Self::ROOM {
            self.seen.push((task, 1));
        } else {
            self.seen.iter_mut().for_each(|(_, count)| *count -= 1);
            self.seen.retain(|(_, count)| *count > 0);
        }
    }

    /// The most frequent.
    pub(crate) fn most(&self) -> Option<TaskName> {
        self.seen.iter().max_by_key(|(_, count)| *count).map(|(task, _)| *task)
    }
}

/// The thread.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) task: TaskName,
    pub(crate) state: ThreadState,
    pub(crate) past: Past,
    pub(crate) arm: Option<OwnArm>,
    pub(crate) activation: Option<Activation>,
    pub(crate) last: Option<LastWake>,
    /// Since when it is ready.
    pub(crate) ready_ns: u64,
    pub(crate) is_passed_over: bool,
    pub(crate) stop_sender: Option<TaskName>,
    pub(crate) syscall: Option<u32>,
    pub(crate) is_in_fault: bool,
    pub(crate) pace: Pace,
    pub(crate) normals: Normals,
    pub(crate) ledger: Ledger,
    pub(crate) previous: Option<PreviousWake>,
    pub(crate) before: Before,
    pub(crate) last_cpu: u32,
    late_main: Vec<(LateCause, u64)>,
    pub(crate) delivery_ns: u64,
    pub(crate) ready_wait_ns: u64,
    pub(crate) has_ended: bool,
    /// Up to which lateness a wake is on time, ns; worked out anew now and then.
    pub(crate) on_time_ns: u64,
    /// How often a timer released it.
    pub(crate) timer_releases: u64,
}

impl Thread {
    pub(crate) fn new(task: TaskName, at_ns: u64, pieces: usize, causes: usize) -> Self {
        Self {
            task,
            state: ThreadState::Unknown,
            past: Past::new(at_ns, pieces),
            arm: None,
            activation: None,
            last: None,
            ready_ns: at_ns,
            is_passed_over: false,
            stop_sender: None,
            syscall: None,
            is_in_fault: false,
            pace: Pace::default(),
            normals: Normals::default(),
            ledger: Ledger::new(causes),
            previous: None,
            before: Before::default(),
            last_cpu: 0,
            late_main: Vec::new(),
            delivery_ns: 0,
            ready_wait_ns: 0,
            has_ended: false,
            on_time_ns: 0,
            timer_releases: 0,
        }
    }

    /// What it does while it runs.
    pub(crate) const fn mode(&self) -> TaskMode {
        match (self.is_in_fault, self.syscall) {
            (true, _) => TaskMode::Fault,
            (false, Some(number)) => TaskMode::Syscall(number),
            (false, None) => TaskMode::Code,
        }
    }

    /// The release that its past must reach back to, ns.
    pub(crate) fn release_ns(&self) -> Option<u64> {
        let open = self.activation.map(|activation| activation.release_ns);
        open.or_else(|| self.arm.filter(|arm| arm.is_pending).map(|arm| arm.release_ns))
    }

    /// Counts the main cause of a late wake, for the live view: of sixteen, as exact as those of
    /// `Before`.
    pub(crate) fn count_main(&mut self, main: LateCause) {
        if let Some((_, count)) = self.late_main.iter_mut().find(|(known, _)| *known == main) {
            *count += 1;
        } else if self.late_main.len() < Before::ROOM {
            self.late_main.push((main, 1));
        } else {
            self.late_main.iter_mut().for_each(|(_, count)| *count -= 1);
            self.late_main.retain(|(_, count)| *count > 0);
        }
    }

    /// The most frequent of them.
    pub(crate) fn first_cause(&self) -> Option<LateCause> {
        self.late_main.iter().max_by_key(|(_, count)| *count).map(|(cause, _)| *cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_survives_a_crowd() {
        let mut before = Before::default();
        for number in 0..1_000 {
            before.add(TaskName { tid: 1_000 + number, ..TaskName::default() });
            before.add(TaskName { tid: 7, ..TaskName::default() });
        }
        assert_eq!(before.most().map(|task| task.tid), Some(7));
        assert!(before.seen.len() <= Before::ROOM);
    }

    #[test]
    fn a_fault_within_a_call_counts_as_the_fault() {
        let mut thread = Thread::new(TaskName::default(), 0, 8, 8);
        assert_eq!(thread.mode(), TaskMode::Code);
        thread.syscall = Some(3);
        assert_eq!(thread.mode(), TaskMode::Syscall(3));
        thread.is_in_fault = true;
        assert_eq!(thread.mode(), TaskMode::Fault);
    }
}
