//! One stream of the periodic experiment: a thread that runs segments as ordered.
//!
//! Waits for orders between segments, where it may allocate; inside a segment it is the executive's
//! alone.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender};

use punctual::clocks::{MachineClock, wake_cost};
use punctual::follow::FollowedClock;
use punctual::monitor::Watched;
use punctual::session::{Refusal, ThreadSession};
use punctual_core::clock::Clock;
use punctual_core::dispatch::{Job, Overruns};
use punctual_core::executive::Ended;
use punctual_core::executive::many::Observe;
use punctual_core::gate::Gate;
use punctual_core::releases::Releases;
use punctual_core::ring::Ring;
use punctual_core::sample::{Beginning, Sample};
use punctual_core::stats::Missed;
use punctual_core::time::{Instant, Span};
use punctual_core::wait::adaptive::LearnPhase;
use punctual_core::wait::{Adaptive, Learned, PausedSpin, Stalls, Strategy, Wait, WakePlan};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;
use punctual_os::usage::{self, Usage};

use crate::experiment::usage_since;

use super::{KnownWait, Stream, WaitKind};

/// From the order to the first release: time to get from the order into the loop.
const LEAD: Span = Span::from_ms(1);

/// An order to a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// Under which condition, that is into which ring.
    pub(super) condition: usize,
    /// Until when, on CLOCK_MONOTONIC.
    pub(super) end: Instant,
}

/// What a stream answers.
#[derive(Debug)]
pub(super) enum Answer {
    /// It is set up: its thread, the policy it has, what it was refused.
    Ready { stream: usize, tid: i32, policy: SchedPolicy, refused: Vec<Refusal> },
    /// The thread ends by a panic, which the scope hands on once all have ended.
    Gone,
    /// A segment is over.
    Done { stream: usize, condition: usize, ended: Ended, tally: Box<SegmentTally> },
}

/// What a stream used in a segment, apart from what its ring holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentTally {
    /// CPU time of the thread, in ns.
    pub(super) cpu_ns: u64,
    /// Wall time, in ns.
    pub(super) wall_ns: u64,
    /// Gaps inside spins.
    pub(super) stalls: Stalls,
    /// Page faults and context switches.
    pub(super) usage: Usage,
    /// How the wait approached releases at the end.
    pub(super) approach: WakePlan,
    /// What the wait learned, as far as it does.
    pub(super) learned: Option<Learned>,
    /// How much of its spins the processor paused, from the wait's first on.
    pub(super) paused: PausedSpin,
    /// Whether it began with what an earlier run learned.
    pub(super) resumed: bool,
    /// Time that the host took from the stream's CPU, ns; `None` where that is not known.
    pub(super) steal_ns: Option<u64>,
}

impl SegmentTally {
    /// Both together.
    pub(super) fn add(&mut self, segment: &Self) {
        self.cpu_ns += segment.cpu_ns;
        self.wall_ns += segment.wall_ns;
        self.stalls.count += segment.stalls.count;
        self.stalls.longest = self.stalls.longest.max(segment.stalls.longest);
        self.stalls.sum = Span::from_ns(self.stalls.sum.as_ns() + segment.stalls.sum.as_ns());
        self.usage.minor_faults += segment.usage.minor_faults;
        self.usage.major_faults += segment.usage.major_faults;
        self.usage.voluntary_switches += segment.usage.voluntary_switches;
        self.usage.involuntary_switches += segment.usage.involuntary_switches;
        self.approach = segment.approach;
        self.learned = segment.learned.or(self.learned);
        self.paused = segment.paused;
        self.resumed |= segment.resumed;
    }
}

/// Everything that one stream's thread needs.
pub(super) struct Worker<'a> {
    pub(super) number: usize,
    pub(super) stream: &'a Stream,
    pub(super) grid: Releases,
    pub(super) cold: u32,
    /// How to wait under each condition.
    pub(super) waits: Vec<WaitKind>,
    /// What earlier runs learned.
    pub(super) known: &'a [KnownWait],
    /// One for each condition.
    pub(super) rings: Vec<Ring<'a>>,
    pub(super) watched: &'a Watched,
    pub(super) stop: &'a AtomicBool,
    pub(super) orders: Receiver<Order>,
    pub(super) answers: Sender<Answer>,
}

/// Reports it when its thread ends by a panic: others wait for its answers.
struct PanicNotice(Sender<Answer>);

impl Drop for PanicNotice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _nobody = self.0.send(Answer::Gone);
        }
    }
}

impl Worker<'_> {
    /// Carries out orders until there are no more, on the timescale of `clock`. An answer that
    /// nobody waits for any more is dropped.
    pub(super) fn run<C: Timescale>(mut self, mut clock: C) {
        let _notice = PanicNotice(self.answers.clone());
        let session =
            ThreadSession::enter(self.stream.thread.pinned_to(), self.stream.thread.policy());
        let tid = process::tid();
        let (mut waits, resumed) = self.strategies(&mut clock, tid);
        let _gone = self.answers.send(Answer::Ready {
            stream: self.number,
            tid,
            policy: session.policy(),
            refused: session.refused().to_vec(),
        });
        while let Ok(order) = self.orders.recv() {
            let Some(ring) = self.rings.get_mut(order.condition) else { break };
            let Some(wait) = waits.get_mut(order.condition) else { break };
            clock.discipline();
            let now = clock.now();
            let first = self.grid.at_or_after(now + LEAD);
            let observe = Recording { ring, beginning: Beginning::new(self.cold) };
            let mut gate = Gate::new(clock.clone(), wait, observe, self.grid, first)
                .until(clock.at(order.end));
            let before = (now_ns(ClockId::ThreadCpu), usage::of_thread().unwrap_or_default());
            self.watched.arm(tid);
            let ended = gate.run(self.stop);
            self.watched.disarm();
            let status = Wait::<C>::status(gate.wait);
            let tally = Box::new(SegmentTally {
                cpu_ns: now_ns(ClockId::ThreadCpu).saturating_sub(before.0),
                wall_ns: u64::try_from((clock.now() - now).as_ns()).unwrap_or(0),
                stalls: Wait::<C>::take_stalls(gate.wait),
                usage: usage_since(before.1),
                approach: status.plan,
                learned: status.learned,
                paused: status.paused,
                resumed: resumed[order.condition],
                // The coordinator counts that.
                steal_ns: None,
            });
            let done =
                Answer::Done { stream: self.number, condition: order.condition, ended, tally };
            if self.answers.send(done).is_err() {
                break;
            }
        }
    }
}

impl Worker<'_> {
    /// One for each condition, and whether it goes on from what was learned before; of those that
    /// learn the others have learned.
    fn strategies<C: Timescale>(&mut self, clock: &mut C, tid: i32) -> (Vec<Strategy>, Vec<bool>) {
        let kinds: Vec<WaitKind> = self.waits.clone();
        let strategy = |kind: &WaitKind| {
            let wait = kind.strategy(self.stream.period, || wake_cost(clock));
            let known = super::known(self.known, self.stream, *kind);
            let mut wait = match (wait, &known) {
                (Strategy::Adaptive(wait), Some(known)) => Strategy::Adaptive(wait.resume(known)),
                (wait, _) => wait,
            };
            let phase = Wait::<C>::status(&wait).learned.map(|learned| learned.phase);
            // What does not fit is not gone on from.
            let learns = phase == Some(LearnPhase::Calibrating);
            if learns {
                self.warm_up(clock, &mut wait, tid);
            }
            (wait, known.is_some() && !learns)
        };
        kinds.iter().map(strategy).unzip()
    }

    /// Runs the loop without keeping anything, so that a wait that learns has learned.
    fn warm_up<C: Timescale>(&mut self, clock: &mut C, wait: &mut Strategy, tid: i32) {
        clock.discipline();
        let now = clock.now();
        let first = self.grid.at_or_after(now + LEAD);
        let end = now + Adaptive::calibration(self.stream.period);
        let observe = Nowhere(self.watched);
        let mut gate = Gate::new(clock.clone(), wait, observe, self.grid, first).until(end);
        self.watched.arm(tid);
        // A stop is seen by the first order too.
        let _ended = gate.run(self.stop);
        self.watched.disarm();
        // What stalled while it learned is not counted.
        let _stalls = Wait::<C>::take_stalls(gate.wait);
    }
}

/// Keeps nothing, and shows the watchdog that the loop makes progress.
struct Nowhere<'a>(&'a Watched);

impl Observe for Nowhere<'_> {
    fn ran(&mut self, _: &Job, _: Instant, _: Instant, _: Overruns) {
        self.0.beat();
    }
}

/// Keeps the samples of one block in a ring that outlives it.
struct Recording<'a, 'b> {
    ring: &'a mut Ring<'b>,
    beginning: Beginning,
}

impl Observe for Recording<'_, '_> {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, _: Overruns) {
        if job.missed > 0 {
            self.ring.miss(job.missed);
        }
        self.ring.push(Sample::of(job, start, self.beginning.flags()));
    }

    fn never_ran(&mut self, _: usize, missed: Missed, _: Instant) {
        self.ring.miss(missed.count);
    }
}

/// The clock of a loop. All its instants are on one timescale, which is the grid's.
pub(super) trait Timescale: Clock + Clone + Send {
    /// Takes in what was learned of its rate since it was last used. Between segments.
    fn discipline(&mut self);

    /// An instant of CLOCK_MONOTONIC on this timescale, by what is known of it now.
    fn at(&self, monotonic: Instant) -> Instant;
}

impl Timescale for MachineClock {
    fn discipline(&mut self) {
        Self::discipline(self);
    }

    fn at(&self, monotonic: Instant) -> Instant {
        monotonic
    }
}

impl Timescale for FollowedClock {
    fn discipline(&mut self) {
        self.clock_mut().discipline();
        // A wake takes the latest map, which may have been bent while no loop ran.
        self.wake();
    }

    fn at(&self, monotonic: Instant) -> Instant {
        self.map().grid(monotonic)
    }
}
