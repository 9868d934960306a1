//! The two stages: threads that wait for a stimulus and answer it.
//!
//! Allocate and lock nothing between their first and last stimulus; the times go into memory that
//! was there before.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual::session::{Refusal, ThreadSession};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::futex::{self, Scope};
use punctual_os::scheduler::SchedPolicy;

use super::outcome::Times;
use super::source::Source;

/// When a stimulus was raised and answered.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(super) raised_ns: AtomicU64,
    /// How long after it was due.
    pub(super) late_ns: AtomicU64,
    start_ns: [AtomicU64; 2],
    complete_ns: [AtomicU64; 2],
}

impl Slot {
    /// Its times, once all threads are done.
    pub(crate) fn times(&self) -> Times {
        let of = |word: &AtomicU64| word.load(Ordering::Acquire);
        Times {
            raised_ns: of(&self.raised_ns),
            start_ns: [of(&self.start_ns[0]), of(&self.start_ns[1])],
            complete_ns: [of(&self.complete_ns[0]), of(&self.complete_ns[1])],
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
}

/// What a stage knows at its end.
#[derive(Debug)]
pub(crate) struct EndedStage {
    pub(crate) policy: SchedPolicy,
    pub(crate) refused: Vec<Refusal>,
    /// Why it ended before its time.
    pub(crate) lost: Option<io::Error>,
}

impl Shared<'_> {
    /// Answers stimulus `number` as stage `stage`.
    #[inline]
    fn answer(&self, stage: usize, number: u64, start_ns: u64) {
        self.answers[stage].store(number, Ordering::Release);
        let complete_ns = now_ns(ClockId::Monotonic);
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        // Numbers beyond the last wake a stage that is to end.
        if let Some(slot) = at.and_then(|at| self.slots.get(at)) {
            slot.start_ns[stage].store(start_ns, Ordering::Release);
            slot.complete_ns[stage].store(complete_ns, Ordering::Release);
        }
    }

    /// Stage 1: waits for the source.
    pub(super) fn first(&self, cpu: u32, policy: SchedPolicy, ready: impl FnOnce()) -> EndedStage {
        let session = ThreadSession::enter(Some(cpu), policy);
        ready();
        let mut seen = 0;
        let mut lost = None;
        while !self.over.load(Ordering::Acquire) {
            let number = match self.source.wait(seen) {
                Ok(number) => number,
                Err(why) => {
                    lost = Some(why);
                    self.over.store(true, Ordering::Release);
                    break;
                }
            };
            let start_ns = now_ns(ClockId::Monotonic);
            if number == seen {
                continue;
            }
            self.answer(0, number, start_ns);
            self.handed.store(number, Ordering::Release);
            let _woken = futex::wake(&self.handed, 1, Scope::Process);
            seen = number;
        }
        EndedStage { policy: session.policy(), refused: session.refused().to_vec(), lost }
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
        EndedStage { policy: session.policy(), refused: session.refused().to_vec(), lost: None }
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
