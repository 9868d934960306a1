//! The two stages: threads that wait for a stimulus and answer it.
//!
//! Allocate and lock nothing between their first and last stimulus; the times go into memory that
//! was there before.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use punctual::session::{Refusal, ThreadSession};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::futex::{self, Scope};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;

use super::Times;
use super::source::{Source, Stimulus};

/// When a stimulus was raised and answered.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(super) raised_ns: AtomicU64,
    /// How long after it was due.
    pub(super) late_ns: AtomicU64,
    pub(super) kernel_ns: AtomicU64,
    start_ns: [AtomicU64; 2],
    complete_ns: [AtomicU64; 2],
}

impl Slot {
    /// Its times, once all threads are done.
    pub(crate) fn times(&self) -> Times {
        let read = |word: &AtomicU64| word.load(Ordering::Acquire);
        Times {
            raised_ns: read(&self.raised_ns),
            kernel_ns: read(&self.kernel_ns),
            start_ns: [read(&self.start_ns[0]), read(&self.start_ns[1])],
            complete_ns: [read(&self.complete_ns[0]), read(&self.complete_ns[1])],
        }
    }
}

/// What all threads of a condition share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) source: &'a Source,
    /// One for each stimulus.
    pub(super) slots: &'a [Slot],
    /// The latest stimulus that stage 1 answered: what stage 2 waits for.
    pub(super) handed: AtomicU64,
    /// What each stage answered last: the channels that a scope would show.
    pub(super) answers: [AtomicU64; 2],
    /// Set when all stimuli are over.
    pub(super) over: AtomicBool,
    /// The thread of stage 1, whose waits a signal ends; 0 before it is there.
    pub(super) waiting: AtomicI32,
}

/// What a stage knows at its end.
#[derive(Debug)]
pub(crate) struct EndedStage {
    pub(crate) policy: SchedPolicy,
    pub(crate) refused: Vec<Refusal>,
    /// Events that were no stimulus.
    pub(super) unexpected: u64,
    /// Why it ended before its time.
    pub(super) lost: Option<io::Error>,
}

impl Shared<'_> {
    /// The slot of a stimulus. Numbers beyond the last wake a stage that is to end.
    fn slot(&self, number: u64) -> Option<&Slot> {
        usize::try_from(number.checked_sub(1)?).ok().and_then(|at| self.slots.get(at))
    }

    /// Answers stimulus `number` as stage `stage`.
    #[inline]
    fn answer(&self, stage: usize, number: u64, start_ns: u64) {
        self.answers[stage].store(number, Ordering::Release);
        let complete_ns = now_ns(ClockId::Monotonic);
        if let Some(slot) = self.slot(number) {
            slot.start_ns[stage].store(start_ns, Ordering::Release);
            slot.complete_ns[stage].store(complete_ns, Ordering::Release);
        }
    }

    /// Stage 1: waits for the source.
    pub(super) fn first(&self, cpu: u32, policy: SchedPolicy, ready: impl FnOnce()) -> EndedStage {
        let session = ThreadSession::enter(Some(cpu), policy);
        self.waiting.store(process::tid(), Ordering::Release);
        ready();
        let (mut seen, mut unexpected) = (0, 0);
        let mut lost = None;
        while !self.over.load(Ordering::Acquire) {
            let found = match self.source.wait(seen) {
                Ok(found) => found,
                Err(why) => {
                    lost = Some(why);
                    self.over.store(true, Ordering::Release);
                    break;
                }
            };
            let start_ns = now_ns(ClockId::Monotonic);
            let Some(Stimulus { number, kernel_ns }) = found else { continue };
            if number <= seen {
                unexpected += 1;
                continue;
            }
            self.answer(0, number, start_ns);
            if let Some((slot, kernel_ns)) = self.slot(number).zip(kernel_ns) {
                slot.kernel_ns.store(kernel_ns, Ordering::Release);
            }
            self.handed.store(number, Ordering::Release);
            let _woken = futex::wake(&self.handed, 1, Scope::Process);
            seen = number;
        }
        let refused = session.refused().to_vec();
        EndedStage { policy: session.policy(), refused, unexpected, lost }
    }

    /// Stage 2: waits for stage 1.
    pub(super) fn second(&self, cpu: u32, policy: SchedPolicy, ready: impl FnOnce()) -> EndedStage {
        let session = ThreadSession::enter(Some(cpu), policy);
        ready();
        let mut seen = 0;
        while !self.over.load(Ordering::Acquire) {
            futex::wait(&self.handed, seen as u32, Scope::Process);
            let number = self.handed.load(Ordering::Acquire);
            let start_ns = now_ns(ClockId::Monotonic);
            if number == seen {
                continue;
            }
            self.answer(1, number, start_ns);
            seen = number;
        }
        let refused = session.refused().to_vec();
        EndedStage { policy: session.policy(), refused, unexpected: 0, lost: None }
    }
}

/// How long the competitor computes and rests in turn: seven tenths of the time, and no longer at a
/// stretch than a slice of the round robin (100 ms, sched_rr_get_interval(2)).
const COMPUTES_NS: u64 = 14_000_000;
const RESTS_NS: u64 = 6_000_000;
/// The share of the time that it computes.
pub(super) const COMPETES: f64 = 0.7;

impl Shared<'_> {
    /// Computes beside the stages with the policy of the second, until all is over.
    pub(super) fn compete(&self, cpu: u32, policy: SchedPolicy, ready: impl FnOnce()) {
        let _session = ThreadSession::enter(Some(cpu), policy);
        ready();
        let mut work = 1u64;
        while !self.over.load(Ordering::Acquire) {
            let until_ns = now_ns(ClockId::Monotonic) + COMPUTES_NS;
            while now_ns(ClockId::Monotonic) < until_ns && !self.over.load(Ordering::Relaxed) {
                work = black_box(work.wrapping_mul(work) | 1);
            }
            let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + RESTS_NS);
        }
    }
}
