//! One condition: both stages up, stimuli raised on a grid, everything ended in order.
//!
//! Each thread is bounded: the stages sleep between stimuli, the generator between instants, and
//! all end with the condition.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use punctual::session::{Refusal, ThreadSession};
use punctual::spawn;
use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::descriptor::Descriptor;
use punctual_os::events;
use punctual_os::futex::{self, Scope};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::signal;

use super::source::Source;
use super::stages::{EndedStage, Shared, Slot};
use crate::experiment::{BackgroundLoads, ExperimentProgress, Loading};

/// From the start of the threads to the first stimulus.
const LEAD_NS: u64 = 10_000_000;
/// How often progress is reported and a stop is looked for.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_NS: u64 = 50_000_000;
/// The last answers may take this long.
const ANSWERS: Duration = Duration::from_millis(300);

/// What a condition goes by.
pub(crate) struct Condition<'a> {
    pub(crate) number: usize,
    pub(crate) source: &'a Source,
    pub(crate) stimuli: u64,
    pub(crate) period_ns: u64,
    pub(crate) cpu: u32,
    pub(crate) stimulus_cpu: u32,
    /// Of stage 1, stage 2 and the thread that raises stimuli.
    pub(crate) policies: [SchedPolicy; 3],
    /// Whether a thread of stage 2's policy computes beside it.
    pub(crate) competitor: bool,
    /// Whether stimuli are raised by polling the clock: for short periods.
    pub(crate) polls: bool,
    /// A count that others keep: how it grows from the first stimulus to the last.
    pub(crate) counted: Option<&'a AtomicU64>,
    pub(crate) stop: &'a AtomicBool,
}

/// What a condition left.
pub(crate) struct Ran {
    pub(crate) slots: Vec<Slot>,
    pub(crate) stages: [EndedStage; 2],
    pub(crate) not_raised: u64,
    pub(crate) refused: Vec<Refusal>,
    /// How much the other count grew, and in how many ns.
    pub(crate) counted: Option<(u64, u64)>,
    pub(super) lost: Option<io::Error>,
}

impl Ran {
    /// Why it ended before its time.
    pub(crate) fn lost(&self) -> Option<&io::Error> {
        self.lost.as_ref().or(self.stages[0].lost.as_ref())
    }
}

/// What the generator knows at its end.
#[derive(Debug, Default)]
struct Raised {
    not_raised: u64,
    refused: Vec<Refusal>,
    counted: Option<(u64, u64)>,
    lost: Option<io::Error>,
}

impl Condition<'_> {
    /// Runs it to its end, or until it is to stop.
    ///
    /// # Errors
    /// A thread could not be had.
    pub(crate) fn run(&self, loading: &mut Loading<'_>) -> io::Result<Ran> {
        let count = usize::try_from(self.stimuli).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let slots: Vec<Slot> = (0..count).map(|_| Slot::default()).collect();
        let shared = Shared {
            source: self.source,
            slots: &slots,
            handed: AtomicU64::new(0),
            answers: [AtomicU64::new(0), AtomicU64::new(0)],
            over: AtomicBool::new(false),
            waiting: AtomicI32::new(0),
        };
        // Without it a wait for a device that gives nothing more would not end.
        signal::catch_interrupt().map_err(|why| io::Error::from_raw_os_error(why.0))?;
        let (first, second, raised) = thread::scope(|scope| {
            let (to_us, ready) = channel::<()>();
            let [of_first, of_second, of_raiser] = self.policies;
            let up = || {
                let to_us = to_us.clone();
                // Who does not wait any more needs no message.
                move || to_us.send(()).unwrap_or(())
            };
            let shared = &shared;
            let ending = Ending(shared);
            let (go, took) = (up(), up());
            let answer = move || shared.second(self.cpu, of_second, go);
            let second = spawn::scoped(scope, "punctual-second", answer)?;
            let answer = move || shared.first(self.cpu, of_first, took);
            let first = spawn::scoped(scope, "punctual-first", answer)?;
            let mut threads = 2;
            if self.competitor {
                let go = up();
                spawn::scoped(scope, "punctual-other", move || {
                    shared.compete(self.cpu, of_second, go);
                })?;
                threads += 1;
            }
            for _ in 0..threads {
                // One that does not come up in time is waited for no longer.
                let _late = ready.recv_timeout(Duration::from_secs(5));
            }
            let (over, done) = channel::<()>();
            let raiser = spawn::scoped(scope, "punctual-raise", move || {
                let _over = over;
                self.raise(shared, of_raiser)
            })?;
            self.report(&done, shared, loading);
            let raised = joined(raiser);
            await_answers(shared, self.stop);
            ending.end(&first, &second);
            Ok::<_, io::Error>((joined(first), joined(second), raised))
        })?;
        Ok(Ran {
            refused: raised.refused,
            not_raised: raised.not_raised,
            counted: raised.counted,
            lost: raised.lost,
            stages: [first, second],
            slots,
        })
    }

    /// Raises all stimuli, or watches while the kernel's timer does.
    fn raise(&self, shared: &Shared<'_>, policy: SchedPolicy) -> Raised {
        let lead = || now_ns(ClockId::Monotonic) + LEAD_NS;
        if let Source::Timerfd(timer) = shared.source {
            return self.watch_timer(shared, (timer, lead()));
        }
        let session = ThreadSession::enter(Some(self.stimulus_cpu), policy);
        // After the session, which may take longer than the lead.
        let first_ns = lead();
        let mut raised = Raised { refused: session.refused().to_vec(), ..Raised::default() };
        let mut number = 0;
        let counted =
            || self.counted.map(|of| (of.load(Ordering::Relaxed), now_ns(ClockId::Monotonic)));
        let mut first = None;
        for at in 0..self.stimuli {
            if self.stop.load(Ordering::Relaxed) || shared.over.load(Ordering::Acquire) {
                break;
            }
            let due_ns = first_ns + at * self.period_ns;
            if now_ns(ClockId::Monotonic) >= due_ns + self.period_ns {
                raised.not_raised += 1;
                continue;
            }
            if self.polls {
                while now_ns(ClockId::Monotonic) < due_ns {}
            } else {
                let _interrupted = sleep_until_ns(due_ns);
            }
            first = first.or_else(counted);
            let Some(slot) = shared.slots.get(number as usize) else { break };
            number += 1;
            let now_ns = now_ns(ClockId::Monotonic);
            slot.late_ns.store(now_ns.saturating_sub(due_ns), Ordering::Release);
            slot.raised_ns.store(now_ns, Ordering::Release);
            if let Err(why) = shared.source.raise(number) {
                raised.lost = Some(why);
                break;
            }
        }
        let grown = |((first, since), (last, until))| (last - first, until - since);
        raised.counted = first.zip(counted()).map(grown);
        raised
    }

    /// The kernel's timer raises them: each expiry is a stimulus.
    fn watch_timer(&self, shared: &Shared<'_>, (timer, first_ns): (&Descriptor, u64)) -> Raised {
        let lost = events::arm(timer, first_ns, self.period_ns).err();
        let end_ns = first_ns + self.stimuli * self.period_ns;
        let over = || {
            lost.is_some()
                || self.stop.load(Ordering::Relaxed)
                || shared.over.load(Ordering::Acquire)
        };
        while !over() && now_ns(ClockId::Monotonic) < end_ns {
            let _interrupted = sleep_until_ns((now_ns(ClockId::Monotonic) + LOOK_NS).min(end_ns));
        }
        let until_ns = now_ns(ClockId::Monotonic).min(end_ns);
        for (at, slot) in (0..).zip(shared.slots) {
            let due_ns = first_ns + at * self.period_ns;
            if due_ns < until_ns {
                slot.raised_ns.store(due_ns, Ordering::Release);
            }
        }
        let lost = lost.map(|why| io::Error::from_raw_os_error(why.0));
        Raised { lost, ..Raised::default() }
    }

    /// Reports how far it is until `done` has no sender any more.
    fn report(&self, done: &Receiver<()>, shared: &Shared<'_>, loading: &mut Loading<'_>) {
        let end_ns = now_ns(ClockId::Monotonic) + LEAD_NS + self.stimuli * self.period_ns;
        while done.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let left_ns = end_ns.saturating_sub(now_ns(ClockId::Monotonic));
            loading.progress(&ExperimentProgress {
                left: Span::from_ns(left_ns.cast_signed()),
                condition: self.number,
                worst: None,
                count: shared.answers[1].load(Ordering::Relaxed),
            });
        }
    }
}

/// Waits until both stages are through with what was raised, a moment at most.
fn await_answers(shared: &Shared<'_>, stop: &AtomicBool) {
    let raised = |slot: &&Slot| slot.raised_ns.load(Ordering::Acquire) > 0;
    let last = shared.slots.iter().take_while(raised).count() as u64;
    let until_ns = now_ns(ClockId::Monotonic) + ANSWERS.as_nanos() as u64;
    while shared.answers[1].load(Ordering::Acquire) < last
        && now_ns(ClockId::Monotonic) < until_ns
        && !stop.load(Ordering::Relaxed)
        && !shared.over.load(Ordering::Acquire)
    {
        // How long a look takes does not matter: it ends by the clock.
        thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the stages, whichever way the condition ends: a scope waits for all its threads.
struct Ending<'a, 'b>(&'a Shared<'b>);

impl Ending<'_, '_> {
    /// Wakes both until they are gone.
    fn end(
        &self,
        first: &ScopedJoinHandle<'_, EndedStage>,
        second: &ScopedJoinHandle<'_, EndedStage>,
    ) {
        while !first.is_finished() || !second.is_finished() {
            self.wake();
            // Until they are gone, however long a look takes.
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn wake(&self) {
        let shared = self.0;
        shared.over.store(true, Ordering::Release);
        shared.source.end_wait();
        let waiting = shared.waiting.load(Ordering::Acquire);
        if waiting > 0 {
            // One that is gone needs no signal.
            let _gone = signal::interrupt(waiting);
        }
        // No stimulus: stage 2 is not to answer one that stage 1 did not hand on.
        shared.handed.store(u64::MAX, Ordering::Release);
        let _woken = futex::wake(&shared.handed, 1, Scope::Process);
    }
}

impl Drop for Ending<'_, '_> {
    fn drop(&mut self) {
        // Where a thread could not be started: those that were see it once they are woken.
        self.wake();
    }
}

/// What the thread returned; its panic goes on here.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
}
