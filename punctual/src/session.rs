//! A real-time session: what a process and a thread ask of the kernel before a loop, and what it
//! refused.
//!
//! For whoever runs a loop. Each request is tried; a refusal is kept, never fatal, and never
//! silent. Everything is put back when the session ends; sessions nest, in any order: what one
//! requested stays as long as it lives. Why the kernel refuses is not judged here.

mod process;
mod thread;

use std::fmt;

use punctual_os::Errno;
use punctual_os::scheduler::SchedPolicy;

pub use process::ProcessSession;
pub use thread::ThreadSession;

/// A request to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// To run on this CPU alone.
    Affinity(u32),
    /// This scheduling policy.
    Scheduler(SchedPolicy),
    /// To keep all memory of the process in RAM.
    LockMemory,
    /// To keep all CPUs out of deep idle states, by /dev/cpu_dma_latency.
    HoldIdleStates,
    /// A timer slack of 1 ns.
    TimerSlack,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Affinity(cpu) => write!(f, "pin to CPU {cpu}"),
            Self::Scheduler(SchedPolicy::Other) => f.write_str("SCHED_OTHER"),
            Self::Scheduler(SchedPolicy::Fifo(priority)) => write!(f, "SCHED_FIFO {priority}"),
            Self::Scheduler(SchedPolicy::RoundRobin(priority)) => write!(f, "SCHED_RR {priority}"),
            Self::Scheduler(SchedPolicy::Unknown(number)) => {
                write!(f, "scheduling policy {number}")
            }
            Self::LockMemory => f.write_str("lock memory"),
            Self::HoldIdleStates => f.write_str("hold idle states off"),
            Self::TimerSlack => f.write_str("timer slack of 1 ns"),
        }
    }
}

/// A request that the kernel refused. Its text names the request and the kernel's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The request.
    #[doc(hidden)]
    pub attempt: Attempt,
    /// The kernel's error.
    #[doc(hidden)]
    pub errno: Errno,
}

impl Refusal {
    /// The kernel's error number.
    ///
    /// # Real-time: setup only
    pub fn errno(&self) -> i32 {
        self.errno.0
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.attempt, self.errno)
    }
}

#[cfg(test)]
mod tests {
    use punctual_os::affinity::{self, CpuMask};
    use punctual_os::{process, scheduler};

    use super::*;

    fn state() -> (CpuMask, SchedPolicy, u64) {
        (
            affinity::get(0).expect("own"),
            scheduler::get(0).expect("own"),
            process::timer_slack_ns().expect("own"),
        )
    }

    #[test]
    fn a_thread_session_puts_everything_back() {
        let before = state();
        let cpu = before.0.iter().last().expect("one at least");
        let session = ThreadSession::enter(Some(cpu), SchedPolicy::Fifo(5));
        assert_eq!(state().0, CpuMask::one(cpu));
        let granted =
            session.refused().iter().all(|r| r.attempt != Attempt::Scheduler(SchedPolicy::Fifo(5)));
        assert_eq!(session.policy() == SchedPolicy::Fifo(5), granted);
        assert_eq!(state().1, session.policy());
        drop(session);
        assert_eq!(state(), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_and_the_rest_goes_on() {
        let session = ThreadSession::enter(Some(affinity::CPUS_MAX - 1), SchedPolicy::Other);
        let refused = session.refused();
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].attempt, Attempt::Affinity(affinity::CPUS_MAX - 1));
    }

    #[test]
    fn what_is_not_refused_is_held() {
        let process = ProcessSession::enter();
        let refused = |attempt| process.refused().iter().any(|r| r.attempt == attempt);
        assert_eq!(process.memory_locked(), !refused(Attempt::LockMemory));
        assert_eq!(process.idle_states_held(), !refused(Attempt::HoldIdleStates));
        let nothing = ProcessSession::ask(false, false);
        assert!(!nothing.memory_locked() && !nothing.idle_states_held());
        assert_eq!(nothing.refused(), []);
    }

    #[test]
    fn the_session_that_lives_keeps_what_it_asked_for_and_the_last_puts_back() {
        let before = state();
        let cpu = before.0.iter().last().expect("one at least");
        let first = ThreadSession::enter(None, SchedPolicy::Fifo(5));
        let second = ThreadSession::enter(Some(cpu), SchedPolicy::Fifo(6));
        let with_both = state();
        assert_eq!(with_both.1, second.policy());
        drop(first);
        assert_eq!(state(), with_both, "the second one is at work");
        let third = ThreadSession::enter(None, SchedPolicy::Fifo(7));
        drop(third);
        assert_eq!(state(), with_both);
        drop(second);
        assert_eq!(state(), before);
    }

    #[test]
    fn memory_stays_locked_until_the_last_session_ends() {
        // Alone in a process: other tests of this one hold sessions too.
        const INSIDE: &str = "PUNCTUAL_TEST_SESSIONS";
        let name = "session::tests::memory_stays_locked_until_the_last_session_ends";
        let Ok(own) = std::env::var(INSIDE) else {
            for own in ["0", "1"] {
                let exe = std::env::current_exe().expect("own");
                let mut run = std::process::Command::new(exe);
                let status = run.env(INSIDE, own).args(["--exact", name]).status();
                assert!(status.expect("started").success(), "own {own}");
            }
            return;
        };
        let own = own == "1";
        let locked = || {
            let status = std::fs::read_to_string("/proc/self/status").expect("readable");
            let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
            line.expect("there").trim() != "0 kB"
        };
        if own && punctual_os::memory::lock_all().is_err() {
            return;
        }
        let (first, second) = (ProcessSession::enter(), ProcessSession::enter());
        if !first.memory_locked() {
            return;
        }
        drop(first);
        assert!(second.memory_locked() && locked(), "the second one lives");
        drop(second);
        assert_eq!(locked(), own, "what the program locked itself stays");
    }
}
