//! Why wakes were late: a loop of its own, or threads of any program, while the kernel records what
//! each CPU does.
//!
//! For `punctual blame`. The parts of each wake add up to its lateness; what is not known is a part
//! too. What recording costs a loop is measured before it, on the same loop. Changes nothing of the
//! machine; the kernel's events end with the process. Never prints.

mod coincidence;
mod kept;
mod named;

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, Write};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use punctual::{Loop, Phase, RtThread, WaitPolicy};
use punctual_analysis::summary::{Distribution, SummaryStats};
use punctual_blame::blame::Blame;
use punctual_blame::calls::CallNumbers;
use punctual_blame::cause::CauseKind;
use punctual_blame::config::{
    BlameConfig, CapturedMachine, FollowedThreads, KernelFiles, LateThreshold, Platform,
    RecordingBegin,
};
use punctual_blame::counters::{CountedStretch, WakeCounts};
use punctual_blame::keep::LateWake;
use punctual_blame::outcome::{BlameOutcome, LatenessBounds, ThreadOutcome, ThreadSnapshot};
use punctual_blame::programs::{ProgramOwner, ThreadProgram};
use punctual_blame::recall::Recall;
use punctual_blame::symbols::SymbolMap;
use punctual_blame::table::{CauseRow, CauseTable};
use punctual_blame::unseen::UnseenWakes;
use punctual_blame::wake::FinishedWake;
use punctual_core::time::{Period, Span};
use punctual_engine::clocks::{MachineClock, StampCost};
use punctual_engine::disturbance::Disturbance;
use punctual_engine::session::Refusal;
use punctual_engine::spawn;
use punctual_host::CpuList;
use punctual_host::facts::SmiCount;
use punctual_host::root::{self, Listing, Root};
use punctual_host::threads::RunningProcess;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;
use punctual_trace::capture::{self, CaptureClock, THREAD_NAMES_MAX};
use punctual_trace::event::{ShortName, TaskName, Tid, TraceEvent};
use punctual_trace::symbols::Symbols;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capture::counters::{CounterFallback, CounterPlan, CounterWatch};
use crate::capture::{
    Capture, CaptureItem, CapturePlan, CaptureRefused, CaptureTally, ClockOffsets, EventSet,
    FastLoop, FollowedThread, MissingEvidence, ThreadTarget, WindowStore, kernel_symbols,
    runnable_threads,
};
use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError,
    ExperimentProgress, Measured, Taken, cpu_of, demand,
};
use crate::load::LoadSpec;

pub use coincidence::{BlamedCounters, CountedRise, CountedThread};
pub use kept::{EventForm, KeptCapture, KeptCounts};
pub use named::ReadCaptureError;

use coincidence::{CoincidenceBook, CountedLoop, LateLog, SeenWake};
use kept::{EventFile, KeptRecording, Note};
use named::{CaptureThreads, NamedThreads};

/// Wakes whose lateness is kept for the price, of each part.
const PRICE_WAKES: usize = 200_000;
/// The longest time that is measured without recording.
const UNRECORDED_MAX: Span = Span::from_ms(2_000);
/// The time from the last event that is opened, while the kernel interrupts all CPUs, to the first
/// that counts.
pub(crate) const SETTLE: Span = Span::from_ms(200);
/// The time between two looks at the clock and at the followed threads.
const LOOK: Span = Span::from_ms(50);
/// The name of the loop's thread.
const LOOP_NAME: &str = "punctual-loop";
/// Late wakes that results have with all their parts.
const SHOWN_WAKES: usize = 20;
/// The threshold of lateness by default: the latest hundredth.
pub const LATE: LateThreshold = LateThreshold::Quantile(0.99);
/// Most threads that results have.
const SHOWN_THREADS: usize = 64;

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

/// The facts of a machine that attribution needs to record it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedMachine {
    /// The platform that the kernel runs on.
    pub platform: Platform,
    /// Major and minor of the kernel's release, where known.
    pub kernel: Option<(u32, u32)>,
    /// The CPU that counts system management interrupts; `None` where none does.
    pub smi_cpu: Option<u32>,
}

impl RecordedMachine {
    /// The configuration of attribution for this machine as it is now; the caller sets the threads
    /// that are followed.
    pub(crate) fn config(self) -> BlameConfig {
        let Self { platform, kernel, smi_cpu: _ } = self;
        let machine = CapturedMachine {
            platform,
            kernel,
            smi_count: None,
            files: kernel_files(&Root::live()),
            cpus: online_cpus(&Root::live()),
            clock_offsets_ns: ClockOffsets::take().all_ns(),
        };
        BlameConfig { machine, event_driven: true, ..BlameConfig::default() }
    }

    /// A capture by a reader that every loop is above. A loop that only wakes is not followed in
    /// it: it has no system calls and faults but its sleep, and recording these costs more than all
    /// other events.
    pub(crate) fn capture_plan(self, set: EventSet) -> CapturePlan {
        let in_guest = self.platform == Platform::VirtualMachine;
        CapturePlan::new(set).in_guest(in_guest).read_by(SchedPolicy::Fifo(1))
    }

    /// The count of system management interrupts up to now, where there is one.
    pub(crate) fn smi_count(self) -> Option<SmiCount> {
        SmiCount::read(&Root::live(), self.smi_cpu?)
    }

    /// System management interrupts since `before`, where they are counted.
    pub(crate) fn smis_since(self, before: Option<SmiCount>) -> Option<u64> {
        let before = before?;
        self.smi_count().map(|now| now.since(before))
    }
}

/// The CPUs that are online; none where that may not be read.
fn online_cpus(root: &Root) -> Vec<u32> {
    let root::Read::Text(list) = root.read("/sys/devices/system/cpu/online") else {
        return Vec::new();
    };
    CpuList::parse(list.trim(), u32::MAX).map_or_else(|_| Vec::new(), |cpus| cpus.iter().collect())
}

/// The files that advice may name, as far as the machine has them and this user may see them.
fn kernel_files(root: &Root) -> KernelFiles {
    let names = |directory: &str| match root.list(directory) {
        Listing::Names(names) => names,
        Listing::Absent | Listing::Unreadable { .. } => Vec::new(),
    };
    let is_there = |path: &str| {
        path.rsplit_once('/')
            .is_some_and(|(directory, name)| names(directory).iter().any(|known| known == name))
    };
    let single = KernelFiles::CANDIDATES.map(str::to_owned).into_iter();
    let of_folders = KernelFiles::FOLDERS.iter().flat_map(|(folder, name)| {
        names(folder).into_iter().map(move |each| format!("{folder}/{each}/{name}"))
    });
    KernelFiles::new(single.chain(of_folders).filter(|path| is_there(path)))
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

    fn run(self, context: Context<'_, '_>) -> Result<Measured<BlameResult>, ExperimentError> {
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
        Ok(Measured {
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

/// The loop's thread at its end.
pub(crate) struct LoopEnd {
    /// Lateness before it was recorded, ns; `recorded_ns` is that while it was.
    pub(crate) unrecorded_ns: Vec<u64>,
    pub(crate) recorded_ns: Vec<u64>,
    refused: Vec<Refusal>,
    policy: SchedPolicy,
    cpu_share: Option<f64>,
    end: Option<ExperimentEnd>,
}

/// The orders to the loop's thread, and its answer.
#[derive(Default)]
pub(crate) struct Orders {
    /// Its number, once it waits for its first release.
    pub(crate) tid: AtomicI32,
    /// True where its wakes are recorded now, and count.
    pub(crate) is_recorded: AtomicBool,
    /// True where its wakes do not count: events are being opened or closed.
    pub(crate) is_settling: AtomicBool,
    pub(crate) stop: AtomicBool,
    /// Late wakes, where counters are all there is.
    late: LateLog,
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
            let price = RecordingPrice::of(&ended.unrecorded_ns, &ended.recorded_ns);
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
                        kernel_priority: kernel_priority(ended.policy),
                        period_ns: period.as_ns(),
                        duration_ns: counted.duration_ns,
                        late: self.late,
                        lateness_ns: ended.recorded_ns,
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
        let accountant = self.accountant(follow, &symbols, left);
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
        let accountant = self.accountant(follow, &symbols, self.duration);
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

    fn accountant(&self, follow: FollowedThreads, symbols: &Symbols, length: Span) -> Accountant {
        Accountant {
            blame: Blame::new(self.config(follow, symbols)),
            beginning: Arc::default(),
            has_begun: false,
            length_ns: length.as_ns().max(0).unsigned_abs(),
            stop_over_ns: self.stop_over.map(|over| over.as_ns().max(0).unsigned_abs()),
            has_stopped: Arc::new(AtomicBool::new(false)),
            stopped_by: None,
            windows: self.keeps.then(WindowStore::default),
            processes: BTreeMap::new(),
        }
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

/// A loop that wakes by a sleep and notes its lateness; on the thread that it is to have.
pub(crate) fn run_loop(
    thread: RtThread,
    period: Period,
    orders: &Orders,
) -> Result<LoopEnd, punctual::Error> {
    let (mut unrecorded_ns, mut recorded_ns): (Vec<u64>, Vec<u64>) =
        (Vec::with_capacity(PRICE_WAKES), Vec::with_capacity(PRICE_WAKES));
    let control_loop =
        Loop::builder(period).phase(Phase::Zero).thread(thread.wait(WaitPolicy::sleep())).start();
    let mut control_loop = match control_loop {
        Ok(control_loop) => control_loop,
        Err(why) => {
            orders.stop.store(true, Ordering::Release);
            return Err(why);
        }
    };
    orders.tid.store(process::tid(), Ordering::Release);
    let (cpu_ns, begun_ns) = (now_ns(ClockId::ThreadCpu), now_ns(ClockId::Monotonic));
    while let Some(cycle) = control_loop.wait() {
        if orders.stop.load(Ordering::Relaxed) {
            break;
        }
        if orders.is_settling.load(Ordering::Relaxed) {
            continue;
        }
        let is_recorded = orders.is_recorded.load(Ordering::Relaxed);
        let lateness_ns = cycle.lateness.as_ns().max(0).unsigned_abs();
        if is_recorded && orders.late.wants(lateness_ns) {
            orders.late.note(SeenWake { ran_ns: now_ns(ClockId::Monotonic), lateness_ns });
        }
        let lateness = if is_recorded { &mut recorded_ns } else { &mut unrecorded_ns };
        // Never grows: the loop does not allocate.
        if lateness.len() < lateness.capacity() {
            lateness.push(lateness_ns);
        }
    }
    let took_ns = now_ns(ClockId::Monotonic) - begun_ns;
    let used_ns = now_ns(ClockId::ThreadCpu) - cpu_ns;
    orders.stop.store(true, Ordering::Release);
    let forced = control_loop.handle().forced();
    let summary = control_loop.finish();
    Ok(LoopEnd {
        unrecorded_ns,
        recorded_ns,
        policy: summary.policy,
        refused: summary.refused,
        cpu_share: (took_ns > 0).then(|| used_ns as f64 / took_ns as f64),
        end: forced.map(ExperimentEnd::Watchdog),
    })
}

/// Names of addresses, as attribution takes them.
pub(crate) fn map(symbols: &Symbols) -> SymbolMap {
    SymbolMap::new(symbols.functions().map(|(address, name)| (address, name.to_owned())))
}

/// As [`map`], with the names of this machine's system calls.
pub(crate) fn live_map(symbols: &Symbols) -> SymbolMap {
    map(symbols).with_calls(CallNumbers::of_machine(std::env::consts::ARCH))
}

/// A capture whose events go straight into an account.
struct Recording {
    capture: Capture<Accountant>,
    missing: Vec<MissingEvent>,
    has_stopped: Arc<AtomicBool>,
    begun_ns: u64,
    machine: RecordedMachine,
    /// System management interrupts when it began.
    smi: Option<SmiCount>,
}

/// Takes events; those of the time in which events were opened do not count.
struct Accountant {
    blame: Blame,
    beginning: Arc<OnceLock<RecordingBegin>>,
    /// True where attribution has taken `beginning`.
    has_begun: bool,
    /// The time that counts from then on, ns: the end may come late on a busy machine.
    length_ns: u64,
    stop_over_ns: Option<u64>,
    has_stopped: Arc<AtomicBool>,
    /// The wake that ends the recording: nothing behind it counts.
    stopped_by: Option<FinishedWake>,
    windows: Option<WindowStore>,
    /// Threads with their processes, for what is kept.
    processes: BTreeMap<Tid, Tid>,
}

impl Accountant {
    fn event(&mut self, event: &TraceEvent) {
        if let Some(windows) = &mut self.windows {
            windows.see(event);
        }
        if self.stopped_by.is_some() {
            return;
        }
        self.blame.push(event);
        while let Some(wake) = self.blame.take_finished() {
            self.open(&wake);
            let spun_ns = wake.margin_ns;
            let is_over = |over_ns: u64| wake.least_ns > over_ns.saturating_add(spun_ns);
            if self.stopped_by.is_none() && self.stop_over_ns.is_some_and(is_over) {
                self.stopped_by = Some(wake);
                self.has_stopped.store(true, Ordering::Release);
            }
        }
        if let Some(windows) = self.windows.as_mut().filter(|windows| windows.is_full()) {
            windows.make_room(self.blame.kept());
        }
    }
}

impl Accountant {
    /// The events around a wake are kept, where it is late.
    fn open(&mut self, wake: &FinishedWake) {
        if let Some(windows) = self.windows.as_mut().filter(|_| wake.is_late) {
            windows.open(wake);
        }
    }

    /// A thread that still waits for a CPU does not run in this recording: its window reaches up to
    /// here.
    fn end_waits(&mut self) {
        self.blame.end_waits();
        while let Some(wake) = self.blame.take_finished() {
            self.open(&wake);
        }
    }
}

impl crate::capture::CaptureConsumer for Accountant {
    fn take(&mut self, item: CaptureItem<'_>) {
        let event = match item {
            CaptureItem::Event(event) => event,
            CaptureItem::Process { tid, process } => {
                let program = program(process);
                self.blame.set_program(tid, program);
                if self.windows.is_some() && self.processes.len() < THREAD_NAMES_MAX {
                    self.processes.insert(tid, program.pid);
                }
                return;
            }
            _ => return,
        };
        let Some(beginning) = self.beginning.get() else { return };
        if !self.has_begun {
            self.has_begun = true;
            self.blame.begin(beginning);
        }
        let since_ns = event.at_ns.checked_sub(beginning.at_ns);
        if since_ns.is_some_and(|since_ns| since_ns < self.length_ns) {
            self.event(event);
        }
    }
}

/// A process, as attribution takes it: this one is the measurement, and what it started are loads.
pub(crate) fn program(process: &RunningProcess) -> ThreadProgram {
    let own = std::process::id().cast_signed();
    let owner = match process {
        RunningProcess { pid, .. } if *pid == own => ProgramOwner::Measurement,
        RunningProcess { parent, .. } if *parent == own => ProgramOwner::Load,
        _ => ProgramOwner::Stranger,
    };
    ThreadProgram {
        pid: process.pid.unsigned_abs(),
        name: ShortName::new(process.name.as_bytes()),
        owner,
    }
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

/// The priority as the kernel counts: 9 is SCHED_FIFO 90, 120 nice 0.
fn kernel_priority(policy: SchedPolicy) -> i32 {
    match policy {
        SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority) => 99 - i32::from(priority),
        SchedPolicy::Other | SchedPolicy::Unknown(_) => 120,
    }
}

/// The end of a recording.
struct RecordingEnd {
    outcome: BlameOutcome,
    evidence: CaptureEvidence,
    stopped_by: Option<FinishedWake>,
    kept: Option<KeptRecording>,
}

impl RecordingEnd {
    fn result(self, price: Option<RecordingPrice>) -> BlameResult {
        let Self { outcome, evidence, stopped_by, kept } = self;
        let mut blamed = Blamed::new(&outcome, price, Some(evidence));
        blamed.stopped_by = stopped_by.as_ref().map(BlamedStop::of);
        let kept = kept.map(|kept| KeptCapture::new(kept, outcome));
        blamed.kept = kept.as_ref().map(KeptCapture::counts);
        BlameResult { blamed, kept }
    }
}

impl Recording {
    /// Opens all events, waits until what that did to the machine is over, and begins.
    fn start(
        machine: RecordedMachine,
        plan: &CapturePlan,
        accountant: Accountant,
        begins: impl FnOnce(),
    ) -> Result<Self, CaptureRefused> {
        let beginning = Arc::clone(&accountant.beginning);
        let has_stopped = Arc::clone(&accountant.has_stopped);
        let capture = Capture::start(plan, accountant)?;
        let missing = capture.missing().iter().map(MissingEvent::of).collect();
        pause(SETTLE);
        let smi = machine.smi_count();
        let runnable = runnable_threads(&Root::live());
        // Events show what happens in between.
        let begun_ns = now_ns(ClockId::Monotonic);
        let _first = beginning.set(RecordingBegin { at_ns: begun_ns, runnable });
        begins();
        Ok(Self { capture, missing, has_stopped, begun_ns, machine, smi })
    }

    /// Returns true where a wake was so late that nothing more counts.
    fn has_stopped(&self) -> bool {
        self.has_stopped.load(Ordering::Acquire)
    }

    /// Ends the recording, and judges what is left. `symbols` are for the events that are kept.
    fn end(self, symbols: Symbols) -> Result<RecordingEnd, ExperimentError> {
        let Self { capture, missing, begun_ns, machine, smi, has_stopped: _ } = self;
        let smis = machine.smis_since(smi);
        let recorded = capture.opened().iter().map(|event| event.name.clone()).collect();
        let ended = capture.end().ok_or(ExperimentError::Panic)?;
        let mut accountant = ended.consumer;
        accountant.end_waits();
        let Accountant { mut blame, windows, stopped_by, processes, .. } = accountant;
        if let Some(count) = smis {
            blame.set_smi_count(count);
        }
        let outcome = blame.finish();
        let kept = windows.map(|windows| {
            let wakes = outcome.worst.iter().chain(&outcome.sample);
            let events = windows.finish(wakes.map(|wake| (wake.task.tid, wake.release_ns)));
            KeptRecording { events, symbols, recorded, processes }
        });
        let evidence = CaptureEvidence::of(&ended.facts, missing, begun_ns);
        ended.closing.wait();
        Ok(RecordingEnd { outcome, evidence, stopped_by, kept })
    }
}

/// The causes of late wakes, as results have them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Blamed {
    /// The answer in a sentence.
    pub sentence: String,
    /// The time that was recorded, ns.
    pub duration_ns: u64,
    /// Causes of all threads together; of one thread the same as its own.
    pub causes: Vec<BlamedCause>,
    /// Each thread that woke at a release, the one with most wakes first; at most 64.
    pub runs: Vec<BlamedRun>,
    /// Threads beyond those.
    pub more_runs: u64,
    /// The latest wakes, with all their parts; at most 20.
    pub worst: Vec<BlamedWake>,
    /// Threads that interrupted other CPUs, most sends first; at most 10.
    pub senders: Vec<BlamedSender>,
    /// The cost of recording for the loop; null for threads of others, and for a capture.
    pub price: Option<RecordingPrice>,
    /// The recording of the kernel's events; null for a capture.
    pub evidence: Option<CaptureEvidence>,
    /// Records that the recorder dropped; wakes that they touch are not whole.
    pub lost: u64,
    /// Switches that were not recorded: the begin of the wake after is only bounded.
    pub holes: u64,
    /// Timers that were programmed before the beginning, so that their wakes have no release.
    pub unknown_releases: u64,
    /// The wake that ended the recording, as `--stop-over` asks; null where none did.
    pub stopped_by: Option<BlamedStop>,
    /// The part of the recording that was kept; null where nothing was to be.
    pub kept: Option<KeptCounts>,
    /// The reason for which no events were recorded, and what was used instead; null where events
    /// were.
    pub fallback: Option<String>,
}

/// The wake that ended a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedStop {
    /// The thread's name.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// Its release, ns on CLOCK_MONOTONIC.
    pub release_ns: u64,
    /// The lower bound of its lateness, ns.
    pub lateness_ns: u64,
}

impl BlamedStop {
    fn of(wake: &FinishedWake) -> Self {
        Self {
            name: wake.task.name.to_string(),
            tid: wake.task.tid,
            release_ns: wake.release_ns,
            lateness_ns: wake.least_ns,
        }
    }
}

/// The wakes of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedRun {
    /// The thread's name.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// The CPU that it was on last.
    pub cpu: u32,
    /// Its priority as the kernel counts: 0 to 98 real-time (9 is SCHED_FIFO 90), from 100 on fair.
    pub kernel_priority: i32,
    /// The median time between its releases, ns; null where it has had too few.
    pub period_ns: Option<u64>,
    /// Its margin: the time before its goal at which it wakes in order to spin, ns; 0 where it does
    /// not.
    pub margin_ns: u64,
    /// Wakes with a release.
    pub wakes: u64,
    /// The lateness that half of them do not exceed, ns; null where that is only bounded, by
    /// `bounds`.
    pub p50_ns: Option<u64>,
    /// The lateness that 99 of 100 do not exceed, ns; null likewise.
    pub p99_ns: Option<u64>,
    /// The largest lateness, ns; null likewise.
    pub max_ns: Option<u64>,
    /// The bounds of these three, where the begin of wakes is not recorded; null where all three
    /// are known.
    #[serde(default)]
    pub bounds: Option<FigureBounds>,
    /// The lateness beyond which a wake is late, ns; null where there is none.
    pub threshold_ns: Option<u64>,
    /// Late wakes.
    pub late: u64,
    /// Wakes whose begin is only bounded.
    pub censored: u64,
    /// Wakes of which something is missing, though no events were lost.
    pub broken: u64,
    /// The events that were lost, and the wakes across that: they are none of `wakes` and `late`;
    /// null where nothing was lost.
    #[serde(default)]
    pub unseen: Option<BlamedLoss>,
    /// Late wakes of threads that waited already when the recording began, or whose timer was
    /// programmed before: later than they count.
    #[serde(default)]
    pub begun: u64,
    /// Late wakes of threads that still waited for a CPU when it ended: likewise.
    #[serde(default)]
    pub waiting: u64,
    /// Releases that found it still at work and that it skipped, by its usual period: no wake
    /// shows them, and they are none of `late`. 0 of a capture of late wakes alone.
    #[serde(default)]
    pub busy: u64,
    /// The longest time that it worked through such releases, from a wake to its next wait, ns; 0
    /// where there were none.
    #[serde(default)]
    pub busy_longest_ns: u64,
    /// True where it ended before the recording did.
    pub has_ended: bool,
    /// The answer for this thread in a sentence.
    pub sentence: String,
    /// Late wakes that shares still need; null where there are enough.
    pub wanted: Option<u64>,
    /// Its causes, the one that took most time first.
    pub causes: Vec<BlamedCause>,
}

/// Wakes that were not seen, since events were lost: they are in no figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedLoss {
    /// Wakes that began before a loss and ended behind it.
    pub wakes: u64,
    /// The time that was lost on their CPUs, ns: of several threads that of the one with most.
    pub time_ns: u64,
    /// Its share of the time that was recorded, in [0, 1].
    pub share_of_time: f64,
    /// The share of the events of all CPUs that was lost, in [0, 1].
    pub share_of_events: f64,
    /// True where that is too much to show causes: then nothing is decided, and nothing advised.
    pub is_too_much: bool,
}

impl BlamedLoss {
    fn of(unseen: &UnseenWakes) -> Option<Self> {
        let UnseenWakes { wakes, time_ns, .. } = *unseen;
        (wakes > 0 || time_ns > 0).then(|| Self {
            wakes,
            time_ns,
            share_of_time: unseen.share_of_time(),
            share_of_events: unseen.share_of_events(),
            is_too_much: unseen.is_too_much(),
        })
    }
}

/// The bounds of figures of lateness, ns: of each the lower and the upper one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FigureBounds {
    /// Of the median.
    pub p50_ns: (u64, u64),
    /// Of the lateness that 99 of 100 do not exceed.
    pub p99_ns: (u64, u64),
    /// Of the largest.
    pub max_ns: (u64, u64),
}

impl FigureBounds {
    /// The bounds of these figures; `None` where all are known.
    fn of(figures: &ThreadSnapshot) -> Option<Self> {
        let ThreadSnapshot { p50, p99, max, .. } = *figures;
        let is_open = [p50, p99, max].iter().any(|figure| figure.known_ns().is_none());
        let between = |figure: LatenessBounds| (figure.least_ns(), figure.most_ns());
        is_open.then(|| Self { p50_ns: between(p50), p99_ns: between(p99), max_ns: between(max) })
    }
}

/// A cause of late wakes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedCause {
    /// Its kind, in a word: "higher-priority", "host-or-firmware", "softirq"; by counters "thread",
    /// "host", "softirq", "interrupt"; "unexplained" where none is known.
    pub cause: String,
    /// The cause in words, with the number of a thread, or the count of those of one program: "hog
    /// (priority 97, 311) ran above", "rustc (nice 0, 12 threads) was not preempted".
    pub name: String,
    /// The same without numbers of threads: equal in several results.
    #[serde(default)]
    pub family: String,
    /// The name of the program whose threads it names; null where it names none, or that is not
    /// known.
    #[serde(default)]
    pub program: Option<String>,
    /// The threads that it names, each once; 64 where there are more.
    #[serde(default)]
    pub threads: u64,
    /// The processes that these belong to, as far as that is known.
    #[serde(default)]
    pub processes: u64,
    /// Of several threads the one that took most of its time; null of one alone, or where that is
    /// not known.
    #[serde(default)]
    pub largest: Option<BlamedLargest>,
    /// The owner of these: the measurement itself, a load that it runs, or somebody else.
    #[serde(default)]
    pub owner: CulpritOwner,
    /// The CPU that it was on; null where they were several.
    pub cpu: Option<u32>,
    /// Late wakes of which it is the main cause.
    pub wakes: u64,
    /// Late wakes that have it at all.
    #[serde(default)]
    pub touched: u64,
    /// Their share of all late wakes, in [0, 1].
    pub share_of_late: f64,
    /// The interval of that share at 95 %, its lower and its upper end.
    pub share_between: (f64, f64),
    /// The time by which it made late wakes late, ns, also where it is not the main cause; causes
    /// stand in the order of this.
    #[serde(default)]
    pub time_ns: u64,
    /// Its share of the time by which late wakes were late, in [0, 1].
    pub share_of_time: f64,
    /// The most that it took of one wake, ns.
    pub worst_ns: u64,
    /// True where it took most of the latest wake, the normal path left out.
    #[serde(default)]
    pub is_of_latest: bool,
    /// The confidence in it, in [0, 1]: 0.99 where events on both sides show it, 0.4 where others
    /// fit nearly as well.
    pub confidence: f64,
    /// The rule that found it.
    pub rule: String,
    /// The evidence for it, in words.
    pub evidence: String,
    /// The advice against it, in words; empty where nothing is decided.
    pub advice: String,
    /// The rule of `punctual tune` that would move it; null where no setting does.
    pub tune_rule: Option<String>,
}

/// The one of several threads that took most of the time of their cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedLargest {
    /// The thread's name.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// Its share of the time of that cause, in (0, 1].
    pub share: f64,
}

/// The owner of the threads that a cause names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CulpritOwner {
    /// Somebody else's, or it names none, or that is not known.
    #[default]
    Stranger,
    /// The measurement's own.
    Measurement,
    /// Those of a load that the measurement runs.
    Load,
    /// The recording itself: what it takes is its price, and in no share of a sentence.
    Recording,
}

impl From<ProgramOwner> for CulpritOwner {
    fn from(owner: ProgramOwner) -> Self {
        match owner {
            ProgramOwner::Stranger => Self::Stranger,
            ProgramOwner::Measurement => Self::Measurement,
            ProgramOwner::Load => Self::Load,
        }
    }
}

/// One late wake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedWake {
    /// The thread's name.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// The CPU that it ran on.
    pub cpu: u32,
    /// Its release, ns on CLOCK_MONOTONIC; of a capture, on the capture's clock.
    pub release_ns: u64,
    /// Its lateness, ns.
    pub lateness_ns: u64,
    /// Its main cause.
    pub cause: String,
    /// True where all records of it are there.
    pub is_whole: bool,
    /// Its parts, from the release to its first instruction, without gaps.
    pub parts: Vec<BlamedPart>,
    /// Functions of the kernel that the main cause was in, innermost first.
    pub chain: Vec<String>,
    /// The rises of counters around it, where events were not recorded; else null.
    pub counters: Option<BlamedCounters>,
    /// The counts of the processor around it; null where it, or the kernel, gives no such counters.
    #[serde(default)]
    pub processor: Option<CountedWake>,
}

/// The counts of the processor around a late wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedWake {
    /// On its CPU, from the last switch before its release to its own; null where that was not
    /// counted.
    pub wait: Option<CountedWork>,
    /// While its thread ran in the cycle before, preemptions left out; null likewise.
    pub cycle: Option<CountedWork>,
}

/// Counts of the processor; null of a counter that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedWork {
    /// Cycles.
    pub cycles: Option<u64>,
    /// Instructions.
    pub instructions: Option<u64>,
    /// Accesses that its last cache did not hold.
    pub cache_misses: Option<u64>,
    /// Cycles in which a resource was waited for.
    pub stalled_cycles: Option<u64>,
}

impl CountedWake {
    /// The counts around a wake; `None` where nothing was counted.
    fn of(counts: WakeCounts) -> Option<Self> {
        let work = |stretch: CountedStretch| {
            let CountedStretch { cycles, instructions, cache_misses, stalled_cycles } = stretch;
            CountedWork { cycles, instructions, cache_misses, stalled_cycles }
        };
        let WakeCounts { wait, cycle } = counts;
        let is_counted = wait.is_some() || cycle.is_some();
        is_counted.then(|| Self { wait: wait.map(work), cycle: cycle.map(work) })
    }
}

/// A part of a late wake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedPart {
    /// The time from the release to its begin, ns.
    pub after_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// The CPU on which it passed; 0 where it passed on none.
    pub cpu: u32,
    /// The cause that it is booked to, in words.
    pub cause: String,
    /// The rule that booked it.
    pub rule: String,
    /// The confidence in that rule, in [0, 1].
    pub confidence: f64,
}

/// Parts of a late wake that follow each other and have the same cause.
#[derive(Clone, Debug, PartialEq)]
pub struct WakeStretch {
    /// The time from the release to its begin, ns.
    pub after_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// The CPU on which it passed; 0 where it passed on none.
    pub cpu: u32,
    /// The cause that it is booked to, in words.
    pub cause: String,
    /// The rules that booked it, each once.
    pub rules: Vec<String>,
}

/// A thread that interrupted other CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedSender {
    /// The thread's name.
    pub name: String,
    /// Its number; of several of that name, the first's.
    pub tid: u32,
    /// Interrupts that it sent.
    pub sends: u64,
    /// The function that others were to call last; null where none was recorded.
    pub function: Option<String>,
}

/// The cost of recording for the loop that it watched: the same loop before and while it was
/// recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingPrice {
    /// Lateness before, ns.
    pub unrecorded_ns: SummaryStats,
    /// Lateness meanwhile, ns.
    pub recorded_ns: SummaryStats,
    /// Wakes before.
    pub unrecorded: u64,
    /// Wakes meanwhile.
    pub recorded: u64,
}

impl RecordingPrice {
    pub(crate) fn of(unrecorded_ns: &[u64], recorded_ns: &[u64]) -> Self {
        let stats = |lateness_ns: &[u64]| {
            let mut distribution = Distribution::default();
            lateness_ns.iter().for_each(|&ns| {
                distribution.push(i64::try_from(ns).unwrap_or(i64::MAX));
            });
            distribution.stats()
        };
        Self {
            unrecorded_ns: stats(unrecorded_ns),
            recorded_ns: stats(recorded_ns),
            unrecorded: unrecorded_ns.len() as u64,
            recorded: recorded_ns.len() as u64,
        }
    }

    /// The median lateness while it was recorded less that before, ns; `None` where one part is
    /// empty.
    pub fn median_ns(&self) -> Option<f64> {
        Some(self.recorded_ns.p50? - self.unrecorded_ns.p50?)
    }
}

/// The recording of the kernel's events: its size, and what it lacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureEvidence {
    /// Events that were read.
    pub events: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Records that the kernel dropped, for a ring was full.
    pub lost: u64,
    /// Records that were not understood.
    pub damaged: u64,
    /// The most bytes that were unread in one ring.
    pub fullest_bytes: u64,
    /// Bytes of each ring.
    pub ring_bytes: u64,
    /// CPU time of the reader over time, in [0, 1].
    pub reader_cpu_share: Option<f64>,
    /// CPUs that were offline or not recorded.
    pub unseen_cpus: u32,
    /// True where the reader had to run on a measured CPU.
    pub shares_cpu: bool,
    /// Events that this kernel does not have, with the evidence that is missing without them.
    pub missing: Vec<MissingEvent>,
}

/// An event that is not recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingEvent {
    /// "sched:sched_switch".
    pub event: String,
    /// The evidence that is missing without it, in words.
    pub lost: String,
}

impl MissingEvent {
    pub(crate) fn of(missing: &MissingEvidence) -> Self {
        Self { event: format!("{}:{}", missing.system, missing.name), lost: missing.lost.into() }
    }
}

impl CaptureEvidence {
    pub(crate) fn of(tally: &CaptureTally, missing: Vec<MissingEvent>, begun_ns: u64) -> Self {
        let took_ns = tally.ended_ns.saturating_sub(tally.began_ns.min(begun_ns));
        Self {
            events: tally.events,
            bytes: tally.bytes,
            lost: tally.lost,
            damaged: tally.damaged,
            fullest_bytes: tally.fullest_bytes,
            ring_bytes: tally.ring_bytes as u64,
            reader_cpu_share: (took_ns > 0).then(|| tally.reader_cpu_ns as f64 / took_ns as f64),
            unseen_cpus: tally.unseen_cpus + tally.offline_cpus,
            shares_cpu: tally.shares_cpu,
            missing,
        }
    }
}

impl Blamed {
    /// As results have it.
    fn new(
        outcome: &BlameOutcome,
        price: Option<RecordingPrice>,
        evidence: Option<CaptureEvidence>,
    ) -> Self {
        let worst = outcome.worst.iter().take(SHOWN_WAKES);
        let senders = outcome.senders.iter().take(10).map(|sender| BlamedSender {
            name: sender.sender.name.to_string(),
            tid: sender.sender.tid,
            sends: sender.sends,
            function: outcome.function(sender.function).map(str::to_owned),
        });
        let shown = outcome.threads.len().min(SHOWN_THREADS);
        Self {
            sentence: outcome.table.sentence.clone(),
            duration_ns: outcome.duration_ns,
            causes: causes(&outcome.table),
            runs: outcome.threads[..shown].iter().map(BlamedRun::of).collect(),
            more_runs: (outcome.threads.len() - shown) as u64,
            worst: worst.map(|wake| BlamedWake::of(wake, outcome)).collect(),
            senders: senders.collect(),
            price,
            evidence,
            lost: outcome.counts.timeline.lost_events,
            holes: outcome.counts.timeline.holes,
            unknown_releases: outcome.counts.unknown_releases,
            stopped_by: None,
            kept: None,
            fallback: None,
        }
    }
}

/// A capture that was read.
#[derive(Debug)]
pub struct ReadCapture {
    /// The causes of late wakes, as results have them.
    pub blamed: Blamed,
    /// Evidence that it lacks, a line each.
    pub untold: Vec<String>,
    outcome: BlameOutcome,
    clock: CaptureClock,
    symbols: Symbols,
    threads: Vec<TaskName>,
    /// Threads with their processes.
    processes: BTreeMap<Tid, Tid>,
}

impl ReadCapture {
    /// Why wakes were late in a capture, which is read twice: names of functions may stand anywhere
    /// in it. Without `target` and `late`, those of the recording where it says them, else
    /// real-time threads and the latest hundredth.
    ///
    /// # Errors
    /// It cannot be read, has no such thread, or does not say which threads a process has.
    pub fn read<R: Read + Seek>(
        file: &mut R,
        target: Option<&ThreadTarget>,
        late: Option<LateThreshold>,
    ) -> Result<Self, ReadCaptureError> {
        let mut reader = capture::open(&mut *file)?;
        let mut named = NamedThreads::default();
        while let Some(event) = reader.next_event()? {
            named.see(&event);
        }
        let facts = reader.facts();
        facts.threads().iter().for_each(|task| named.name(task));
        let mut untold: Vec<String> = facts.untold().iter().map(ToString::to_string).collect();
        let (symbols, clock) = (facts.symbols().clone(), facts.clock().clone());
        let threads = facts.threads().to_vec();
        let note = facts.note().map(Note::read).transpose();
        let machine = facts.machine().and_then(CallNumbers::of_machine);
        let note = note.unwrap_or_else(|why| {
            untold.push(format!("what was known beside its events cannot be used: {why}"));
            None
        });
        let (recalled, processes) = note.map(Note::into_parts).unzip();
        let processes = processes.unwrap_or_else(|| facts.processes().collect());
        let kept = recalled.as_ref().map(Recall::tids);
        let follow = match (target, &kept) {
            (Some(target), kept) => {
                let kept = kept.as_deref();
                CaptureThreads { facts, named: &named, kept, processes: &processes }
                    .follow(target)?
            }
            (None, Some(kept)) => FollowedThreads::Threads(kept.clone()),
            (None, None) => FollowedThreads::RealTime,
        };
        drop(reader);
        let config = BlameConfig {
            follow,
            late: late.unwrap_or(LATE),
            symbols: map(&symbols).with_calls(machine),
            event_driven: true,
            is_clock_foreign: clock != CaptureClock::Monotonic,
            ..BlameConfig::default()
        };
        let config = match (recalled, late) {
            (None, _) => config,
            (Some(recall), Some(LateThreshold::Above(over_ns))) => {
                config.recalling(recall.over(over_ns))
            }
            (Some(recall), Some(LateThreshold::Quantile(_))) => {
                let text = "it has late wakes alone, and no share of all can be told: those \
                            that were late when it was recorded are taken";
                untold.push(text.to_owned());
                config.recalling(recall)
            }
            (Some(recall), None) => config.recalling(recall),
        };
        let mut blame = Blame::new(config);
        let mut reader = capture::open(&mut *file)?;
        while let Some(event) = reader.next_event()? {
            blame.push(&event);
        }
        let outcome = blame.finish();
        let blamed = Blamed::new(&outcome, None, None);
        drop(reader);
        Ok(Self { blamed, untold, outcome, clock, symbols, threads, processes })
    }

    /// Writes all of its events in another form, from the file that it was read from.
    ///
    /// # Errors
    /// It cannot be read again, or the system refuses to write.
    pub fn write<R: Read + Seek, W: Write>(
        &self,
        file: &mut R,
        form: EventForm,
        out: W,
    ) -> io::Result<()> {
        let mut writer = EventFile::begin(form, out, &self.clock, self.symbols.clone())?;
        writer.name_threads(&self.threads, |tid| self.processes.get(&tid).copied())?;
        let mut reader = capture::open(&mut *file).map_err(io::Error::other)?;
        while let Some(event) = reader.next_event().map_err(io::Error::other)? {
            writer.write(&event)?;
        }
        writer.finish(&self.outcome)
    }
}

fn causes(table: &CauseTable) -> Vec<BlamedCause> {
    let latest = table.worst_cause.as_ref().map(|worst| worst.group);
    let cause = |row: &CauseRow| {
        let is_of_latest = latest == Some(row.group);
        BlamedCause { is_of_latest, ..BlamedCause::of(row) }
    };
    table.rows.iter().map(cause).collect()
}

impl BlamedCause {
    /// Returns true where it is one of the machine: neither what wakes on time take too, nor what
    /// is not explained, nor the recording itself.
    pub fn is_named(&self) -> bool {
        let open = [
            CauseKind::NormalPath,
            CauseKind::NoEvent,
            CauseKind::NoSingle,
            CauseKind::Unexplained,
        ];
        self.owner != CulpritOwner::Recording && open.iter().all(|kind| kind.word() != self.cause)
    }

    /// Returns true where it is one of the machine, or time without an event: neither the normal
    /// path, nor what is not explained.
    pub fn is_known(&self) -> bool {
        self.is_named() || self.cause == CauseKind::NoEvent.word()
    }

    fn of(row: &CauseRow) -> Self {
        Self {
            cause: row.cause.kind().word().to_owned(),
            name: row.name.clone(),
            family: row.family.clone(),
            program: row.culprits.program().map(|program| program.to_string()),
            threads: row.culprits.count() as u64,
            processes: row.culprits.processes().len() as u64,
            largest: row.culprits.largest(row.time_ns).map(|largest| BlamedLargest {
                name: largest.task.name.to_string(),
                tid: largest.task.tid,
                share: largest.share,
            }),
            owner: match row.is_of_recording() {
                true => CulpritOwner::Recording,
                false => row.culprits.owner().into(),
            },
            cpu: row.cpu,
            wakes: row.wakes,
            touched: row.touched,
            share_of_late: row.share_of_late,
            share_between: (row.share_low, row.share_high),
            time_ns: row.time_ns,
            share_of_time: row.share_of_time,
            worst_ns: row.worst_ns,
            is_of_latest: false,
            confidence: row.confidence,
            rule: row.rule.word().to_owned(),
            evidence: row.evidence.clone(),
            advice: row.advice.text.clone(),
            tune_rule: row.advice.rule.map(str::to_owned),
        }
    }
}

impl BlamedRun {
    /// As results have it.
    pub(crate) fn of(thread: &ThreadOutcome) -> Self {
        let (figures, table) = (&thread.figures, &thread.table);
        Self {
            name: figures.task.name.to_string(),
            tid: figures.task.tid,
            cpu: figures.cpu,
            kernel_priority: figures.task.kernel_priority,
            period_ns: figures.period_ns,
            margin_ns: figures.margin_ns,
            wakes: figures.wakes,
            p50_ns: figures.p50.known_ns(),
            p99_ns: figures.p99.known_ns(),
            max_ns: figures.max.known_ns(),
            bounds: FigureBounds::of(figures),
            threshold_ns: table.threshold_ns,
            late: table.late,
            censored: thread.censored,
            broken: thread.broken,
            unseen: BlamedLoss::of(&thread.unseen),
            begun: thread.open.begun,
            waiting: thread.open.waiting,
            busy: thread.busy.count,
            busy_longest_ns: thread.busy.longest_ns,
            has_ended: figures.has_ended,
            sentence: table.sentence.clone(),
            wanted: table.undecided.as_ref().map(|few| few.needed.saturating_sub(few.late)),
            causes: causes(table),
        }
    }
}

impl BlamedWake {
    /// Its parts, those with one cause together.
    pub fn stretches(&self) -> Vec<WakeStretch> {
        let mut stretches: Vec<WakeStretch> = Vec::new();
        for part in &self.parts {
            match stretches.last_mut() {
                Some(last) if (last.cpu, &last.cause) == (part.cpu, &part.cause) => {
                    last.length_ns += part.length_ns;
                    if !last.rules.contains(&part.rule) {
                        last.rules.push(part.rule.clone());
                    }
                }
                _ => stretches.push(WakeStretch {
                    after_ns: part.after_ns,
                    length_ns: part.length_ns,
                    cpu: part.cpu,
                    cause: part.cause.clone(),
                    rules: vec![part.rule.clone()],
                }),
            }
        }
        stretches
    }

    pub(crate) fn of(wake: &LateWake, outcome: &BlameOutcome) -> Self {
        let parts = wake.parts.iter().map(|part| BlamedPart {
            after_ns: part.from_ns.saturating_sub(wake.release_ns),
            length_ns: part.length_ns(),
            cpu: part.cpu,
            cause: outcome.part_name(wake, &part.cause),
            rule: part.rule.word().to_owned(),
            confidence: part.certainty.confidence(),
        });
        let parts = parts.collect();
        let function = |&address: &u64| outcome.function(address).map(str::to_owned);
        Self {
            name: wake.task.name.to_string(),
            tid: wake.task.tid,
            cpu: wake.cpu,
            release_ns: wake.release_ns,
            lateness_ns: wake.lateness_ns(),
            cause: outcome.main_name(wake),
            is_whole: wake.is_whole,
            parts,
            chain: wake.chain.iter().filter_map(function).collect(),
            counters: None,
            processor: CountedWake::of(wake.counts()),
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_blame::advice::ADVISED_RULES;
    use punctual_host::rules;
    use punctual_trace::event::{ContextFlags, TraceKind};
    use punctual_trace::write::perf_data::Addresses;

    use super::*;
    use crate::capture::CaptureConsumer;

    /// One that has seen nothing yet, and keeps no windows.
    fn accountant(config: BlameConfig, length_ns: u64) -> Accountant {
        Accountant {
            blame: Blame::new(config),
            beginning: Arc::default(),
            has_begun: false,
            length_ns,
            stop_over_ns: None,
            has_stopped: Arc::new(AtomicBool::new(false)),
            stopped_by: None,
            processes: BTreeMap::new(),
            windows: None,
        }
    }

    fn see(accountant: &mut Accountant, at_ns: u64, tid: Tid, kind: TraceKind) {
        let context = ContextFlags::default();
        let event = TraceEvent { at_ns, cpu: 0, tid, context, kind, chain: Box::default() };
        accountant.take(CaptureItem::Event(&event));
    }

    /// The servo of [`behind_a_hog`], and the hog.
    fn servo_and_hog() -> [TaskName; 2] {
        [(7, &b"servo"[..], 9), (8, b"hog", 2)].map(|(tid, name, kernel_priority)| TaskName {
            tid,
            name: ShortName::new(name),
            kernel_priority,
        })
    }

    /// One that keeps windows, and has seen a servo of 1 ms released behind a hog.
    fn behind_a_hog() -> Accountant {
        let [servo, hog] = servo_and_hog();
        let follow = FollowedThreads::Threads(vec![servo.tid]);
        let late = LateThreshold::Above(50_000);
        let config = BlameConfig { follow, late, ..BlameConfig::default() };
        let mut accountant = accountant(config, 1_000_000_000);
        let beginning = RecordingBegin { at_ns: 1_000, runnable: Vec::new() };
        accountant.beginning.set(beginning).expect("the first one");
        accountant.windows = Some(WindowStore::default());
        let (expires_ns, soft_expires_ns) = (1_000_000, 1_000_000);
        for (at_ns, tid, kind) in [
            (
                10_000,
                servo.tid,
                TraceKind::TimerStart { timer: 1, function: 2, expires_ns, soft_expires_ns },
            ),
            (
                11_000,
                servo.tid,
                TraceKind::Switch { previous: servo, previous_state: 1, next: hog },
            ),
            (
                1_005_000,
                hog.tid,
                TraceKind::TimerExpireEntry { timer: 1, function: 2, now_ns: 1_005_000 },
            ),
            (1_006_000, hog.tid, TraceKind::Waking { task: servo, target_cpu: 0 }),
        ] {
            see(&mut accountant, at_ns, tid, kind);
        }
        accountant
    }

    #[test]
    fn what_comes_before_the_begin_or_after_the_end_does_not_count() {
        let mut accountant = accountant(BlameConfig::default(), 100);
        let cancels = TraceKind::TimerCancel { timer: 1 };
        // Until it begins nothing counts.
        see(&mut accountant, 1_050, 1, cancels.clone());
        let beginning = RecordingBegin { at_ns: 1_000, runnable: Vec::new() };
        accountant.beginning.set(beginning).expect("the first one");
        // Whoever ends it may come late.
        for at_ns in [999, 1_000, 1_099, 1_100, 60_000] {
            see(&mut accountant, at_ns, 1, cancels.clone());
        }
        assert_eq!(accountant.blame.finish().counts.events, 2);
    }

    #[test]
    fn what_still_waits_at_the_end_has_its_window() {
        let mut accountant = behind_a_hog();
        // The hog never lets it run.
        for tick in 2..=20 {
            see(&mut accountant, tick * 1_000_000, 8, TraceKind::TimerCancel { timer: 9 });
        }
        accountant.end_waits();
        let windows = accountant.windows.take().expect("it keeps");
        let outcome = accountant.blame.finish();
        let wake = &outcome.worst[0];
        assert_eq!((wake.task.tid, wake.release_ns, wake.ran_ns), (7, 1_000_000, 20_000_000));
        let kept = windows.finish([(7, 1_000_000)].into_iter());
        assert_eq!((kept.wakes(), kept.missing(), kept.cut()), (1, 0, 0));
        assert_eq!(kept.events().last().map(|event| event.at_ns), Some(20_000_000));
    }

    /// The servo waits behind a hog while more happens than is held for a window.
    fn long_hang() -> Accountant {
        let mut accountant = behind_a_hog();
        for step in 0..80_000 {
            let at_ns = 1_010_000 + step * 5_000;
            see(&mut accountant, at_ns, 8, TraceKind::SoftirqEntry(9));
            see(&mut accountant, at_ns + 1_000, 8, TraceKind::SoftirqExit(9));
        }
        let [servo, hog] = servo_and_hog();
        let runs = TraceKind::Switch { previous: hog, previous_state: 1, next: servo };
        see(&mut accountant, 402_000_000, 8, runs);
        accountant
    }

    #[test]
    fn a_hang_longer_than_what_is_held_is_read_again_as_it_was_said_and_not_whole() {
        let mut accountant = long_hang();
        accountant.end_waits();
        let windows = accountant.windows.take().expect("it keeps");
        let outcome = accountant.blame.finish();
        let before = Blamed::new(&outcome, None, None);
        let events = windows.finish([(7, 1_000_000)].into_iter());
        let (symbols, recorded, processes) = (Symbols::default(), Vec::new(), BTreeMap::new());
        let kept = KeptRecording { events, symbols, recorded, processes };
        let kept = KeptCapture::new(kept, outcome);
        let counts = kept.counts();
        assert_eq!((counts.wakes, counts.dropped, counts.cut), (1, 0, 1));
        let mut file = io::Cursor::new(Vec::new());
        kept.write_perf_data(&mut file, Addresses::Numbered).expect("to memory");
        let again = ReadCapture::read(&mut file, None, None).expect("what was written").blamed;
        let time_ns = |causes: &[BlamedCause]| -> Vec<(String, u64)> {
            causes.iter().map(|cause| (cause.name.clone(), cause.time_ns)).collect()
        };
        assert_eq!(time_ns(&again.causes), time_ns(&before.causes));
        let of_kind = |kind: &str| before.causes.iter().find(|cause| cause.cause == kind);
        assert_eq!(of_kind("softirq").map(|cause| cause.time_ns), Some(80_000_000));
        assert_eq!(
            (again.worst.len(), again.worst[0].parts.len()),
            (1, before.worst[0].parts.len())
        );
        assert!(before.worst[0].is_whole && !again.worst[0].is_whole);
        assert!(again.causes[0].confidence <= before.causes[0].confidence / 2.0);
    }

    #[test]
    fn advice_names_rules_that_tune_has() {
        let known: Vec<&str> = rules::all().map(|rule| rule.id).collect();
        let missing: Vec<_> = ADVISED_RULES.iter().filter(|id| !known.contains(id)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn advice_may_name_the_files_that_a_machine_has() {
        let dir = std::env::temp_dir().join(format!("punctual-files-{}", std::process::id()));
        let own = ["proc/irq/9/smp_affinity_list", "sys/kernel/debug/sched/preempt"];
        for file in own {
            let file = dir.join(file);
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("ours");
            std::fs::write(file, "").expect("ours");
        }
        std::fs::create_dir_all(dir.join("sys/kernel/debug/sched/fair_server/cpu0")).expect("ours");
        let files = kernel_files(&Root::captured(&dir).expect("a machine"));
        std::fs::remove_dir_all(&dir).expect("ours");
        assert_eq!(files, KernelFiles::new(own.map(|file| format!("/{file}"))));
    }

    #[test]
    fn what_a_measurement_starts_is_no_stranger() {
        let own = std::process::id().cast_signed();
        let owner = |pid, parent| {
            let name = "punctual".to_owned();
            program(&RunningProcess { pid, parent, name }).owner
        };
        assert_eq!(owner(own, 1), ProgramOwner::Measurement);
        assert_eq!(owner(own + 1, own), ProgramOwner::Load);
        assert_eq!(owner(own + 1, 1), ProgramOwner::Stranger, "another measurement is");
    }

    #[test]
    fn bounds_stand_beside_figures_that_are_not_known() {
        let exact = LatenessBounds::exact(7_000);
        let figures = ThreadSnapshot {
            task: TaskName::default(),
            cpu: 0,
            period_ns: None,
            margin_ns: 0,
            wakes: 90,
            p50: LatenessBounds::new(0, 250_000),
            p99: exact,
            max: exact,
            late: 0,
            delivery_ns: 0,
            ready_ns: 0,
            first_cause: None,
            ran_before: None,
            has_ended: false,
            unmatched: 0,
        };
        let bounds = FigureBounds::of(&figures).expect("the median is open");
        assert_eq!(bounds.p50_ns, (0, 250_000));
        assert_eq!(bounds.max_ns, (7_000, 7_000));
        assert_eq!(FigureBounds::of(&ThreadSnapshot { p50: exact, ..figures }), None);
    }
}
