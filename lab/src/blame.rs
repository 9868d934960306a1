//! Why wakes were late: a loop of its own, or threads of any program, while the kernel records what
//! each CPU does.
//!
//! For `punctual blame`. The parts of each wake add up to its lateness; what is not known is a part
//! too. What recording costs a loop is measured before it, on the same loop. Changes nothing of the
//! machine; the kernel's events end with the process. Never prints.

mod blamed;
mod coincidence;
mod kept;
mod named;
mod read_capture;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use punctual::{Loop, Phase, RtThread, WaitPolicy};
use punctual_blame::blame::Blame;
use punctual_blame::calls::CallNumbers;
use punctual_blame::config::{
    BlameConfig, CapturedMachine, FollowedThreads, KernelFiles, LateThreshold, Platform,
    RecordingBegin,
};
use punctual_blame::outcome::BlameOutcome;
use punctual_blame::programs::{ProgramOwner, ThreadProgram};
use punctual_blame::symbols::SymbolMap;
use punctual_blame::wake::FinishedWake;
use punctual_core::time::{Period, Span};
use punctual_engine::clocks::{MachineClock, StampCost};
use punctual_engine::disturbance::Disturbance;
use punctual_engine::session::Refusal;
use punctual_engine::spawn;
use punctual_host::facts::{IdleState, SmiCount, online_cpus};
use punctual_host::root::{Listing, Root};
use punctual_host::threads::RunningProcess;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;
use punctual_trace::capture::THREAD_NAMES_MAX;
use punctual_trace::event::{ShortName, Tid, TraceEvent};
use punctual_trace::symbols::Symbols;

use crate::capture::counters::{CounterFallback, CounterPlan, CounterWatch};
use crate::capture::{
    Capture, CaptureItem, CapturePlan, CaptureRefused, ClockOffsets, EventSet, FastLoop,
    FollowedThread, WindowStore, kernel_symbols, runnable_threads,
};
use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError,
    ExperimentOutcome, ExperimentProgress, Taken, cpu_of, demand,
};
use crate::load::LoadSpec;

pub use blamed::{
    Blamed, BlamedCause, BlamedFlaw, BlamedLargest, BlamedLoss, BlamedPart, BlamedRun,
    BlamedSender, BlamedStop, BlamedWake, CaptureEvidence, CountedWake, CountedWork, CulpritOwner,
    FigureBounds, MissingEvent, RecordingPrice, WakeStretch,
};
pub use coincidence::{BlamedCounters, CountedRise, CountedThread};
pub use kept::{EventForm, KeptCapture, KeptCounts};
pub use named::ReadCaptureError;
pub use read_capture::ReadCapture;

use coincidence::{CoincidenceBook, CountedLoop, LateLog, SeenWake};
use kept::KeptRecording;

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
            idle_exits_us: IdleState::exits_us(&Root::live()),
            files: kernel_files(&Root::live()),
            cpus: online_cpus(&Root::live()).iter().collect(),
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

#[cfg(test)]
mod tests {
    use std::io;

    use punctual_blame::advice::ADVISED_RULES;
    use punctual_host::rules;
    use punctual_trace::event::{ContextFlags, TaskName, TraceKind};
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
}
