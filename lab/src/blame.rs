//! Why wakes were late: a loop of its own, or threads of any program, while the kernel records what
//! each CPU does.
//!
//! For `punctual blame`. The parts of each wake add up to its lateness; what is not known is a part
//! too. What recording costs a loop is measured before it, on the same loop. Changes nothing of the
//! machine; the kernel's events end with the process. Never prints.

mod blamed;
mod coincidence;
mod kept;
mod machine;
mod named;
mod own_loop;
mod read_capture;
mod recording;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use punctual::RtThread;
use punctual_blame::calls::CallNumbers;
use punctual_blame::config::{BlameConfig, FollowedThreads, LateThreshold};
use punctual_blame::symbols::SymbolMap;
use punctual_core::time::{Period, Span};
use punctual_engine::clocks::{MachineClock, StampCost};
use punctual_engine::disturbance::Disturbance;
use punctual_engine::session::Refusal;
use punctual_engine::spawn;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::SchedPolicy;
use punctual_trace::symbols::Symbols;

use crate::capture::counters::{CounterFallback, CounterPlan, CounterWatch};
use crate::capture::{EventSet, FastLoop, FollowedThread, kernel_symbols};
use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError,
    ExperimentOutcome, ExperimentProgress, Taken, cpu_of, demand,
};
use crate::load::LoadSpec;

pub use blamed::{
    Blamed, BlamedCause, BlamedFlaw, BlamedLargest, BlamedLoss, BlamedPart, BlamedRun,
    BlamedSender, BlamedStop, BlamedWake, CaptureEvidence, CountedWake, CountedWork, CulpritOwner,
    FigureBounds, MissedReleases, MissingEvent, RecordingPrice, WakeStretch,
};
pub use coincidence::{BlamedCounters, CountedRise, CountedThread};
pub use kept::{EventForm, KeptCapture, KeptCounts};
pub use machine::RecordedMachine;
pub use named::ReadCaptureError;
pub(crate) use own_loop::{LoopEnd, Orders, run_loop};
pub use read_capture::ReadCapture;
pub(crate) use recording::program;

use coincidence::{CoincidenceBook, CountedLoop, SeenWake};
use recording::{Accountant, Recording, RecordingEnd};

/// The longest time that is measured without recording.
const UNRECORDED_MAX: Span = Span::from_ms(2_000);
/// The time from the last event that is opened, while the kernel interrupts all CPUs, to the first
/// that counts.
pub(crate) const SETTLE: Span = Span::from_ms(200);
/// The time between two looks at the clock and at the followed threads.
const LOOK: Span = Span::from_ms(50);
/// The name of the loop's thread.
const LOOP_NAME: &str = "punctual-loop";
/// The threshold of lateness by default: the latest hundredth.
pub const LATE: LateThreshold = LateThreshold::Quantile(0.99);

/// The threads whose wakes are judged.
#[derive(Clone, Debug)]
pub enum BlameSubject {
    /// A loop that only wakes on time, on a thread that is made for it.
    Loop {
        /// Its thread.
        thread: RtThread,
        /// Its period.
        period: Period,
    },
    /// These threads, of programs that run already.
    Threads(Vec<FollowedThread>),
    /// Every thread with a real-time policy.
    RealTime,
}

/// An experiment that finds the causes of late wakes.
#[derive(Clone, Debug)]
pub struct BlameExperiment {
    /// The threads whose wakes are judged.
    pub subject: BlameSubject,
    /// The time of all, with the part of it that is not recorded.
    pub duration: Span,
    /// The lateness beyond which a wake is late.
    pub late: LateThreshold,
    /// The name that results have for the loads, and the loads that run meanwhile.
    pub loads: (String, Vec<LoadSpec>),
    /// The machine that is recorded.
    pub machine: RecordedMachine,
    /// Ends at the first wake that is later than this, beyond the margin that its thread spins.
    pub stop_over: Option<Span>,
    /// True where the events around late wakes are kept.
    pub keeps: bool,
}

/// The result of `blame`.
#[derive(Debug)]
pub struct BlameResult {
    /// The causes of late wakes, as results have them.
    pub blamed: Blamed,
    /// The events around late wakes, where they were to be kept.
    pub kept: Option<KeptCapture>,
}

impl Experiment for BlameExperiment {
    type Outcome = BlameResult;

    fn demands(&self) -> Vec<Demand> {
        match &self.subject {
            BlameSubject::Loop { thread, period } => vec![demand(thread, *period, 0.0)],
            BlameSubject::Threads(_) | BlameSubject::RealTime => Vec::new(),
        }
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        vec![self.loads.clone()]
    }

    fn has_own_threads(&self) -> bool {
        matches!(self.subject, BlameSubject::Loop { .. })
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<BlameResult>, ExperimentError> {
        let Context { loading, stop } = context;
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        loading.begin(0, self.duration).map_err(ExperimentError::Load)?;
        let mut look = |left: Span| {
            let progress = ExperimentProgress { left, condition: 0, worst: None, count: 0 };
            loading.progress(&progress);
        };
        let measured = match &self.subject {
            BlameSubject::Loop { thread, period } => {
                self.own_loop(thread, *period, stop, &mut look)
            }
            BlameSubject::Threads(threads) => {
                let tids: Vec<i32> = threads.iter().map(|thread| thread.tid).collect();
                let follow = tids.iter().map(|tid| tid.unsigned_abs()).collect();
                self.foreign(&tids, FollowedThreads::Threads(follow), stop, &mut look)
            }
            BlameSubject::RealTime => self.foreign(&[], FollowedThreads::RealTime, stop, &mut look),
        };
        loading.end(0);
        let Recorded { result, refused, taken, end } = measured?;
        let disturbances: Vec<(u64, Disturbance)> = Vec::new();
        Ok(ExperimentOutcome {
            outcome: result,
            end: end.unwrap_or_else(|| ExperimentEnd::by(stop)),
            clock: ClockFacts::of(&clock, cost, None),
            refused,
            disturbances,
            taken,
        })
    }
}

/// A recording that has ended: its result, and what its own loop was refused and took.
struct Recorded {
    result: BlameResult,
    refused: Vec<Refusal>,
    taken: Vec<Taken>,
    end: Option<ExperimentEnd>,
}

impl BlameExperiment {
    fn own_loop(
        &self,
        thread: &RtThread,
        period: Period,
        stop: &AtomicBool,
        look: &mut dyn FnMut(Span),
    ) -> Result<Recorded, ExperimentError> {
        let orders = Orders::default();
        let symbols = kernel_symbols();
        thread::scope(|scope| {
            let requested = thread.clone();
            let loop_thread =
                spawn::scoped(scope, LOOP_NAME, || run_loop(requested, period, &orders))?;
            let recorded = self.record_loop(&orders, (stop, cpu_of(thread)), symbols, look);
            orders.stop.store(true, Ordering::Release);
            let ended = loop_thread.join().map_err(|_| ExperimentError::Panic)?;
            let ended = ended.map_err(|why| ExperimentError::Source(why.to_string()))?;
            let recorded = recorded?;
            let price = RecordingPrice::of(&ended.unrecorded, &ended.recorded);
            let real_time =
                matches!(ended.policy, SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_));
            let share = ended.cpu_share.filter(|_| real_time);
            let cpu = cpu_of(thread);
            let took = |share| Taken { cpu, condition: 0, share, period: Some(period) };
            let taken = share.map(took).into_iter().collect();
            let (refused, end) = (ended.refused, ended.end);
            let result = match recorded {
                WatchedLoop::Events(recorded) => recorded.result(Some(price)),
                WatchedLoop::Counters(counted) => {
                    let control_loop = CountedLoop {
                        name: LOOP_NAME.to_owned(),
                        tid: counted.tid.unsigned_abs(),
                        cpu,
                        kernel_priority: ended.policy.kernel_priority(),
                        period_ns: period.as_ns(),
                        duration_ns: counted.duration_ns,
                        late: self.late,
                        lateness_ns: ended.recorded.lateness_ns,
                    };
                    counted.result(control_loop, price)
                }
            };
            Ok(Recorded { result, refused, taken, end })
        })
    }

    /// The loop without recording, then with it.
    fn record_loop(
        &self,
        orders: &Orders,
        (stop, cpu): (&AtomicBool, u32),
        symbols: Symbols,
        look: &mut dyn FnMut(Span),
    ) -> Result<WatchedLoop, ExperimentError> {
        let until = |end_ns: u64| now_ns(ClockId::Monotonic) >= end_ns;
        let is_over = || stop.load(Ordering::Relaxed) || orders.stop.load(Ordering::Acquire);
        // Until its first release.
        let mut tid = orders.tid.load(Ordering::Acquire);
        while tid == 0 && !is_over() {
            pause(LOOK);
            tid = orders.tid.load(Ordering::Acquire);
        }
        let unrecorded = (self.duration.as_ns() / 10).min(UNRECORDED_MAX.as_ns());
        let begun_ns = now_ns(ClockId::Monotonic);
        let end_ns = begun_ns + unrecorded.max(0).unsigned_abs();
        while !is_over() && !until(end_ns) {
            look(self.duration);
            pause(LOOK);
        }
        orders.is_settling.store(true, Ordering::Release);
        let fast = match self.subject {
            BlameSubject::Loop { period, .. } => FastLoop::of(tid.unsigned_abs(), cpu, period),
            BlameSubject::Threads(_) | BlameSubject::RealTime => None,
        };
        let plan = self.machine.capture_plan(EventSet::Full).away_from(&[cpu]);
        let plan = plan.with_fast_loops(fast.into_iter().collect());
        let follow = FollowedThreads::Threads(vec![tid.unsigned_abs()]);
        let left = Span::from_ns((self.duration.as_ns() - unrecorded).max(0));
        let config = BlameConfig {
            // It only waits.
            workless: vec![tid.unsigned_abs()],
            ..self.config(follow, &symbols)
        };
        let accountant = self.accountant(config, left);
        let recording = Recording::start(self.machine, &plan, accountant, || {
            orders.is_recorded.store(true, Ordering::Release);
            orders.is_settling.store(false, Ordering::Release);
        });
        let recording = match recording {
            Ok(recording) => recording,
            // Counters have no events that could be kept.
            Err(why) if why.is_of_rights() && !self.keeps => {
                return self.count_loop(orders, (stop, cpu), CounterFallback { why }, left, look);
            }
            Err(why) => return Err(ExperimentError::Evidence(why.to_string())),
        };
        let end_ns = now_ns(ClockId::Monotonic) + left.as_ns().unsigned_abs();
        while !is_over() && !until(end_ns) && !recording.has_stopped() {
            look(time_left(end_ns));
            pause(LOOK);
        }
        // Closing the events disturbs every CPU.
        orders.is_settling.store(true, Ordering::Release);
        recording.end(symbols).map(Box::new).map(WatchedLoop::Events)
    }

    /// The loop with counters around its late wakes, where there are no events.
    fn count_loop(
        &self,
        orders: &Orders,
        (stop, cpu): (&AtomicBool, u32),
        fallback: CounterFallback,
        length: Span,
        look: &mut dyn FnMut(Span),
    ) -> Result<WatchedLoop, ExperimentError> {
        let tid = orders.tid.load(Ordering::Acquire);
        let pid = std::process::id().cast_signed();
        let watch = CounterWatch::start(CounterPlan { cpu, pid, tid })?;
        let mut book = CoincidenceBook::default();
        orders.late.note_over(match self.late {
            LateThreshold::Above(over_ns) => over_ns,
            LateThreshold::Quantile(_) => 0,
        });
        let begun_ns = now_ns(ClockId::Monotonic);
        let end_ns = begun_ns + length.as_ns().max(0).unsigned_abs();
        orders.is_recorded.store(true, Ordering::Release);
        orders.is_settling.store(false, Ordering::Release);
        let stop_over_ns = self.stop_over.map(|over| over.as_ns().max(0).unsigned_abs());
        let mut stopped_by = None;
        let is_over = || stop.load(Ordering::Relaxed) || orders.stop.load(Ordering::Acquire);
        while !is_over() && now_ns(ClockId::Monotonic) < end_ns && stopped_by.is_none() {
            look(time_left(end_ns));
            pause(LOOK);
            let now_ns = now_ns(ClockId::Monotonic);
            book.look(&orders.late, |from_ns, to_ns| watch.around(from_ns, to_ns), now_ns);
            stopped_by = stop_over_ns
                .and_then(|over_ns| orders.late.since(0).find(|wake| wake.lateness_ns > over_ns));
        }
        let ended_ns = now_ns(ClockId::Monotonic);
        orders.is_settling.store(true, Ordering::Release);
        // The reads behind the last wakes.
        pause(LOOK);
        book.look(&orders.late, |from_ns, to_ns| watch.around(from_ns, to_ns), ended_ns);
        let duration_ns = ended_ns - begun_ns;
        Ok(WatchedLoop::Counters(CountedEnd { book, fallback, tid, duration_ns, stopped_by }))
    }

    fn foreign(
        &self,
        tids: &[i32],
        follow: FollowedThreads,
        stop: &AtomicBool,
        look: &mut dyn FnMut(Span),
    ) -> Result<Recorded, ExperimentError> {
        let symbols = kernel_symbols();
        let plan = self.machine.capture_plan(EventSet::Full).following(tids);
        let accountant = self.accountant(self.config(follow, &symbols), self.duration);
        let recording = Recording::start(self.machine, &plan, accountant, || {});
        let recording = recording.map_err(|why| ExperimentError::Evidence(why.to_string()))?;
        let end_ns = now_ns(ClockId::Monotonic) + self.duration.as_ns().max(0).unsigned_abs();
        let have_ended = || !tids.is_empty() && tids.iter().all(|&tid| !is_alive(tid));
        let is_over = || stop.load(Ordering::Relaxed) || now_ns(ClockId::Monotonic) >= end_ns;
        while !is_over() && !have_ended() && !recording.has_stopped() {
            look(time_left(end_ns));
            pause(LOOK);
        }
        let outcome = recording.end(symbols)?;
        let result = outcome.result(None);
        Ok(Recorded { result, refused: Vec::new(), taken: Vec::new(), end: None })
    }

    fn accountant(&self, config: BlameConfig, length: Span) -> Accountant {
        Accountant::new(config, length).stopping_over(self.stop_over).keeping(self.keeps)
    }

    fn config(&self, follow: FollowedThreads, symbols: &Symbols) -> BlameConfig {
        BlameConfig { follow, late: self.late, symbols: live_map(symbols), ..self.machine.config() }
    }
}

/// Time left.
fn time_left(end_ns: u64) -> Span {
    let left_ns = end_ns.saturating_sub(now_ns(ClockId::Monotonic));
    Span::from_ns(i64::try_from(left_ns).unwrap_or(i64::MAX))
}

/// Sleeps for so long, or until a signal.
pub(crate) fn pause(length: Span) {
    let _signal = sleep_until_ns(now_ns(ClockId::Monotonic) + length.as_ns().unsigned_abs());
}

/// Returns true where there is such a thread.
fn is_alive(tid: i32) -> bool {
    std::path::Path::new("/proc").join(tid.to_string()).exists()
}

/// Names of addresses, as attribution takes them.
pub(crate) fn map(symbols: &Symbols) -> SymbolMap {
    SymbolMap::new(symbols.functions().map(|(address, name)| (address, name.to_owned())))
}

/// As [`map`], with the names of this machine's system calls.
pub(crate) fn live_map(symbols: &Symbols) -> SymbolMap {
    map(symbols).with_calls(CallNumbers::of_machine(std::env::consts::ARCH))
}

/// The end of watching the measurement's own loop, by events or by counters.
enum WatchedLoop {
    Events(Box<RecordingEnd>),
    Counters(CountedEnd),
}

/// The end of counting around late wakes.
struct CountedEnd {
    book: CoincidenceBook,
    fallback: CounterFallback,
    tid: i32,
    duration_ns: u64,
    stopped_by: Option<SeenWake>,
}

impl CountedEnd {
    fn result(self, control_loop: CountedLoop, price: RecordingPrice) -> BlameResult {
        let (name, tid) = (control_loop.name.clone(), control_loop.tid);
        let mut blamed = self.book.blamed(control_loop, &self.fallback);
        blamed.price = Some(price);
        blamed.stopped_by = self.stopped_by.map(|wake| BlamedStop {
            name,
            tid,
            release_ns: wake.release_ns(),
            lateness_ns: wake.lateness_ns,
        });
        BlameResult { blamed, kept: None }
    }
}
