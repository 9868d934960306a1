//! The threads of a task's process beside the one that registered: one that runs on and on under a
//! real-time policy loses it.
//!
//! For the monitor, which runs above everything: no allocation, no lock. The kernel grants the
//! task's priority to the registered thread alone; others have one only where the program took it
//! itself. One that waits now and then keeps it.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use punctual_core::time::Span;
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::threads::{self, Account};

use crate::monitor::Demotable;

/// Real-time threads of one process that are watched at a time; further ones once there is room.
const THREADS_MAX: usize = 64;

/// One process's threads beside the registered one, as the monitor and the supervising thread share
/// them.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// The process; 0 for none.
    process: AtomicI32,
    demoted: AtomicU64,
}

impl Others {
    /// Watches the threads of this process from now on; 0 for none.
    pub(super) fn watch(&self, process: i32) {
        self.process.store(process, Ordering::Release);
    }

    /// Threads that lost a real-time policy.
    pub(super) fn demoted(&self) -> u64 {
        self.demoted.load(Ordering::Relaxed)
    }
}

/// A real-time thread that is not the registered one.
#[derive(Clone, Copy, Debug)]
struct Known {
    thread: i32,
    /// As it was when it had waited last.
    since: Account,
    /// True where the last look found it, under a real-time policy.
    is_found: bool,
}

impl Known {
    /// Returns true where it used more CPU time than `bound` since it waited last.
    fn runs_on(&mut self, account: Account, bound: Span) -> bool {
        // Another thread may have got its number.
        if account.waits != self.since.waits || account.cpu_ns < self.since.cpu_ns {
            self.since = account;
        }
        account.cpu_ns - self.since.cpu_ns > bound.as_ns().unsigned_abs()
    }
}

/// The watch over one process's threads.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    others: &'a Others,
    demotable: &'a Demotable,
    /// CPU time that a thread may use without waiting.
    bound: Span,
    process: i32,
    known: Vec<Known>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(others: &'a Others, demotable: &'a Demotable, bound: Span) -> Self {
        Self { others, demotable, bound, process: 0, known: Vec::with_capacity(THREADS_MAX) }
    }

    /// Looks at all threads of the process once, and demotes those that run on.
    fn look(&mut self) {
        let process = self.others.process.load(Ordering::Acquire);
        if process != self.process {
            self.known.clear();
            self.process = process;
        }
        if process == 0 {
            return;
        }
        self.known.iter_mut().for_each(|known| known.is_found = false);
        let registered = self.demotable.thread();
        // A process that is gone has no threads.
        let _gone = threads::of(process, |thread| {
            if thread != registered {
                self.examine(thread);
            }
        });
        self.known.retain(|known| known.is_found);
    }

    fn examine(&mut self, thread: i32) {
        if !matches!(scheduler::get(thread), Ok(SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_)))
        {
            return;
        }
        let Some(account) = threads::account(self.process, thread) else { return };
        let Some(known) = self.known.iter_mut().find(|known| known.thread == thread) else {
            if self.known.len() < THREADS_MAX {
                self.known.push(Known { thread, since: account, is_found: true });
            }
            return;
        };
        // One that is demoted is not there any more: if it takes the policy again, that is news.
        known.is_found = !known.runs_on(account, self.bound);
        if !known.is_found && scheduler::set(thread, SchedPolicy::Other).is_ok() {
            self.others.demoted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The watches over all processes, looked at in turns.
#[derive(Debug)]
pub(super) struct Rounds<'a> {
    watches: Vec<Watch<'a>>,
    /// Calls from one look to the next.
    every: usize,
    calls: usize,
    next: usize,
}

impl<'a> Rounds<'a> {
    /// Each process is looked at once in so many calls, or at every call one of them.
    pub(super) fn new(watches: Vec<Watch<'a>>, calls: usize) -> Self {
        let every = calls.checked_div(watches.len()).unwrap_or(calls).max(1);
        Self { watches, every, calls: 0, next: 0 }
    }

    /// One more call: at most one process is looked at, so that no look is long.
    pub(super) fn call(&mut self) {
        self.calls += 1;
        if self.calls < self.every {
            return;
        }
        self.calls = 0;
        if let Some(watch) = self.watches.get_mut(self.next) {
            watch.look();
        }
        self.next = (self.next + 1) % self.watches.len().max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(cpu_ms: u64, waits: u64) -> Account {
        Account { cpu_ns: cpu_ms * 1_000_000, waits }
    }

    #[test]
    fn only_cpu_time_without_a_wait_counts() {
        let bound = Span::from_ms(1_000);
        let mut known = Known { thread: 7, since: account(500, 3), is_found: true };
        assert!(!known.runs_on(account(1_500, 3), bound), "the bound itself is allowed");
        assert!(known.runs_on(account(1_510, 3), bound));
        assert!(!known.runs_on(account(9_000, 4), bound), "it waited once");
        assert!(!known.runs_on(account(10_000, 4), bound));
        assert!(known.runs_on(account(10_010, 4), bound));
        assert!(!known.runs_on(account(10, 4), bound), "another thread has its number");
    }

    #[test]
    fn each_process_gets_its_turn_and_few_are_looked_at_as_often_as_many() {
        let (others, demotable) = (Others::default(), Demotable::default());
        let turns = |processes: usize, calls: usize| {
            let watch = || Watch::new(&others, &demotable, Span::from_ms(1));
            let mut rounds = Rounds::new((0..processes).map(|_| watch()).collect(), 50);
            let mut seen = Vec::new();
            for _ in 0..calls {
                let before = rounds.next;
                rounds.call();
                if rounds.next != before || (rounds.calls == 0 && processes == 1) {
                    seen.push(before);
                }
            }
            seen
        };
        assert_eq!(turns(1, 100), [0, 0]);
        assert_eq!(turns(5, 60), [0, 1, 2, 3, 4, 0]);
        assert_eq!(turns(200, 3), [0, 1, 2]);
        assert!(turns(0, 99).is_empty());
    }
}
