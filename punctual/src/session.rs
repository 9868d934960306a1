//! A real-time session: what a process and a thread ask of the kernel before a loop, and what it
//! refused.
//!
//! For whoever runs a loop. Each request is tried; a refusal is kept, never fatal, and never
//! silent. Everything is put back when the session ends. Why the kernel refuses is not judged here.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::marker::PhantomData;

use punctual_os::affinity::{self, CpuMask};
use punctual_os::scheduler::{self, Policy, Saved};
use punctual_os::{Errno, memory, process};

/// What was asked of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// To run on this CPU alone.
    Affinity(u32),
    /// This scheduling policy.
    Scheduler(Policy),
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
            Self::Scheduler(Policy::Other) => f.write_str("SCHED_OTHER"),
            Self::Scheduler(Policy::Fifo(priority)) => write!(f, "SCHED_FIFO {priority}"),
            Self::Scheduler(Policy::RoundRobin(priority)) => write!(f, "SCHED_RR {priority}"),
            Self::Scheduler(Policy::Unknown(number)) => write!(f, "scheduling policy {number}"),
            Self::LockMemory => f.write_str("lock memory"),
            Self::HoldIdleStates => f.write_str("hold idle states off"),
            Self::TimerSlack => f.write_str("timer slack of 1 ns"),
        }
    }
}

/// A request that the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was asked.
    pub attempt: Attempt,
    /// With what it was refused.
    pub errno: Errno,
}

/// What holds for the whole process: memory locked, idle states held off. Ends when dropped.
#[derive(Debug)]
pub struct Process {
    locked: bool,
    idle_states: Option<File>,
    refused: Vec<Refusal>,
}

impl Process {
    /// Locks all memory, now and later, and holds `/dev/cpu_dma_latency` at 0 µs.
    ///
    /// # Real-time: setup only
    pub fn enter() -> Self {
        Self::ask(true, true)
    }

    /// One of the two, or both, or none.
    ///
    /// # Real-time: setup only
    pub fn ask(memory: bool, idle_states: bool) -> Self {
        let mut refused = Vec::new();
        let mut note = |attempt, errno| refused.push(Refusal { attempt, errno });
        let locked =
            memory && lock_memory().map_err(|errno| note(Attempt::LockMemory, errno)).is_ok();
        let idle_states = if idle_states {
            hold_idle_states().map_err(|errno| note(Attempt::HoldIdleStates, errno)).ok()
        } else {
            None
        };
        Self { locked, idle_states, refused }
    }

    /// Whether all memory is locked.
    ///
    /// # Real-time: setup only
    pub fn memory_locked(&self) -> bool {
        self.locked
    }

    /// Whether idle states are held off.
    ///
    /// # Real-time: setup only
    pub fn idle_states_held(&self) -> bool {
        self.idle_states.is_some()
    }

    /// What was refused.
    ///
    /// # Real-time: setup only
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.locked {
            // Cannot fail; closing the device file is what lets idle states in again.
            let _unlocked = memory::unlock_all();
        }
    }
}

/// CAP_IPC_LOCK in the effective capabilities of /proc/self/status.
const CAP_IPC_LOCK: u32 = 14;

/// Locks all memory where that has no limit. Under a limit that is not reached yet, the lock would
/// be granted and every later allocation and thread stack of the process refused: that is no
/// session.
fn lock_memory() -> Result<(), Errno> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    let capable = effective.is_some_and(|set| set >> CAP_IPC_LOCK & 1 == 1);
    if !capable && memory::lock_limit_bytes()?.is_some() {
        return Err(Errno::NOMEM);
    }
    memory::lock_all()
}

/// An exit latency of 0 µs as PM QoS request, held while the file is open (kernel document
/// power/pm_qos_interface.rst, Linux 6.12).
fn hold_idle_states() -> Result<File, Errno> {
    let errno = |why: std::io::Error| Errno(why.raw_os_error().unwrap_or(0));
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").map_err(errno)?;
    file.write_all(&0i32.to_ne_bytes()).map_err(errno)?;
    Ok(file)
}

/// What holds for the calling thread: CPU, policy, timer slack, stack touched. Put back when
/// dropped, by the same thread: it cannot be sent to another.
#[derive(Debug)]
pub struct Thread {
    before: (Option<CpuMask>, Option<Saved>, Option<u64>),
    refused: Vec<Refusal>,
    policy: Policy,
    _of_this_thread: PhantomData<*const ()>,
}

impl Thread {
    /// Makes the calling thread run on `cpu` under `policy`, as far as the kernel lets it. A
    /// real-time policy is that thread's alone: the threads and processes that it starts are
    /// SCHED_OTHER.
    ///
    /// The CPU first: a policy beyond what another CPU's cgroup allows would be refused there.
    ///
    /// # Real-time: setup only
    pub fn enter(cpu: Option<u32>, policy: Policy) -> Self {
        let before =
            (affinity::get(0).ok(), scheduler::save(0).ok(), process::timer_slack_ns().ok());
        let mut refused = Vec::new();
        let mut ask = |attempt, answer: Result<(), Errno>| {
            if let Err(errno) = answer {
                refused.push(Refusal { attempt, errno });
            }
        };
        if let Some(cpu) = cpu {
            ask(Attempt::Affinity(cpu), affinity::set(0, &CpuMask::one(cpu)));
        }
        ask(Attempt::Scheduler(policy), scheduler::set(0, policy));
        ask(Attempt::TimerSlack, process::set_timer_slack_ns(1));
        memory::prefault_stack();
        let policy = scheduler::get(0).unwrap_or(Policy::Other);
        Self { before, refused, policy, _of_this_thread: PhantomData }
    }

    /// The policy that the thread really has.
    ///
    /// # Real-time: setup only
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// What was refused.
    ///
    /// # Real-time: setup only
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let (cpus, policy, slack_ns) = self.before;
        // What was once the thread's own is always allowed again.
        if let Some(policy) = policy {
            let _restored = scheduler::restore(0, &policy);
        }
        if let Some(cpus) = cpus {
            let _restored = affinity::set(0, &cpus);
        }
        if let Some(slack_ns) = slack_ns {
            let _restored = process::set_timer_slack_ns(slack_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (CpuMask, Policy, u64) {
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
        let session = Thread::enter(Some(cpu), Policy::Fifo(5));
        assert_eq!(state().0, CpuMask::one(cpu));
        let granted =
            session.refused().iter().all(|r| r.attempt != Attempt::Scheduler(Policy::Fifo(5)));
        assert_eq!(session.policy() == Policy::Fifo(5), granted);
        assert_eq!(state().1, session.policy());
        drop(session);
        assert_eq!(state(), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_and_the_rest_goes_on() {
        let session = Thread::enter(Some(affinity::CPUS_MAX - 1), Policy::Other);
        let refused = session.refused();
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].attempt, Attempt::Affinity(affinity::CPUS_MAX - 1));
    }

    #[test]
    fn what_is_not_refused_is_held() {
        let process = Process::enter();
        let refused = |attempt| process.refused().iter().any(|r| r.attempt == attempt);
        assert_eq!(process.memory_locked(), !refused(Attempt::LockMemory));
        assert_eq!(process.idle_states_held(), !refused(Attempt::HoldIdleStates));
        let nothing = Process::ask(false, false);
        assert!(!nothing.memory_locked() && !nothing.idle_states_held());
        assert_eq!(nothing.refused(), []);
    }
}
