//! What holds for one thread: its CPU, its policy, its timer slack, its stack touched.
//!
//! For sessions. Each keeps what it found; who leaves in between hands what it found to the one
//! that came after it, so that the last one puts back what there was before the first. Setup only.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use punctual_os::affinity::{self, CpuMask};
use punctual_os::fork::Origin;
use punctual_os::scheduler::{self, Saved, SchedPolicy};
use punctual_os::{Errno, memory, process};

use super::{Attempt, Refusal};

/// What a thread was before a session.
#[derive(Clone, Copy, Debug)]
struct Found {
    cpus: Option<CpuMask>,
    policy: Option<Saved>,
    slack_ns: Option<u64>,
}

impl Found {
    fn now() -> Self {
        let (cpus, policy) = (affinity::get(0).ok(), scheduler::save(0).ok());
        Self { cpus, policy, slack_ns: process::timer_slack_ns().ok() }
    }

    /// What was once the thread's own is always allowed again.
    fn restore(&self) {
        if let Some(policy) = &self.policy {
            let _restored = scheduler::restore(0, policy);
        }
        if let Some(cpus) = &self.cpus {
            let _restored = affinity::set(0, cpus);
        }
        if let Some(slack_ns) = self.slack_ns {
            let _restored = process::set_timer_slack_ns(slack_ns);
        }
    }
}

thread_local! {
    /// The sessions of this thread in the order in which they began: number, and what each found.
    static SESSIONS: RefCell<Vec<(u64, Found)>> = const { RefCell::new(Vec::new()) };
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// What holds for the calling thread: CPU, policy, timer slack, stack touched. Put back when
/// dropped, by the same thread: it cannot be sent to another.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct ThreadSession {
    origin: Origin,
    number: u64,
    refused: Vec<Refusal>,
    policy: SchedPolicy,
    _of_this_thread: PhantomData<*const ()>,
}

impl ThreadSession {
    /// Makes the calling thread run on `cpu` under `policy`, as far as the kernel lets it. A
    /// real-time policy is that thread's alone: the threads and processes that it starts are
    /// SCHED_OTHER.
    ///
    /// The CPU first: a policy beyond what another CPU's cgroup allows would be refused there.
    ///
    /// # Real-time: setup only
    pub fn enter(cpu: Option<u32>, policy: SchedPolicy) -> Self {
        let number = NUMBER.get();
        NUMBER.set(number + 1);
        SESSIONS.with_borrow_mut(|sessions| sessions.push((number, Found::now())));
        let mut refused = Vec::new();
        let mut ask = |attempt, answer: Result<(), Errno>| {
            refused.extend(answer.err().map(|errno| Refusal { attempt, errno }));
        };
        if let Some(cpu) = cpu {
            ask(Attempt::Affinity(cpu), affinity::set(0, &CpuMask::one(cpu)));
        }
        ask(Attempt::Scheduler(policy), scheduler::set(0, policy));
        ask(Attempt::TimerSlack, process::set_timer_slack_ns(1));
        memory::prefault_stack();
        let policy = scheduler::get(0).unwrap_or(SchedPolicy::Other);
        let origin = Origin::here();
        Self { origin, number, refused, policy, _of_this_thread: PhantomData }
    }

    /// The policy that the thread was given.
    ///
    /// # Real-time: setup only
    pub fn policy(&self) -> SchedPolicy {
        self.policy
    }

    /// What was refused.
    ///
    /// # Real-time: setup only
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }
}

impl Drop for ThreadSession {
    fn drop(&mut self) {
        // A child that fork(2) made got nothing that could be put back.
        if !self.origin.is_here() {
            return;
        }
        SESSIONS.with_borrow_mut(|sessions| {
            let Some(at) = sessions.iter().position(|(number, _)| *number == self.number) else {
                return;
            };
            let (_, found) = sessions.remove(at);
            match sessions.get_mut(at) {
                // One that began later goes on; it will put back what was there before this one.
                Some((_, later)) => *later = found,
                None => found.restore(),
            }
        });
    }
}
