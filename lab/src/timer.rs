//! The lateness of a timer's interrupt in a thread, with work of several kinds behind it: Maruti's
//! second experiment (*Temporal accuracy on the Pentium Pro*, §5), as user space can see it.
//!
//! For `measure timer`. By absolute sleep, timerfd, POSIX timer, by polling (Maruti's `mdelay`) and
//! by a sleep under SCHED_DEADLINE; a thread without privilege runs NOPs or serialising
//! instructions on the same CPU meanwhile; what each costs stands beside it. Runs two threads,
//! never prints.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual::RtThread;
use punctual_analysis::claim::dependence::Exceedances;
use punctual_analysis::histogram::Histogram;
use punctual_analysis::scatter::Scatter;
use punctual_analysis::summary::{Distribution, SummaryStats};
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};
use punctual_engine::clocks::{MachineClock, StampCost};
use punctual_engine::session::ThreadSession;
use punctual_engine::spawn;
use punctual_host::root::Root;
use punctual_os::Errno;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::cycles::{self, Serialise};
use punctual_os::descriptor::Descriptor;
use punctual_os::events::{self, SignalTimer};
use punctual_os::futex::{self, Scope};
use punctual_os::perf::CountedEvent;
use punctual_os::scheduler::{self, SchedAttributes, SchedPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentError, ExperimentOutcome,
    cpu_of, demand, on_one_thread,
};
use crate::load::LoadSpec;
use crate::noise::Accounts;
pub use crate::processor::ProcessorCount;
use crate::processor::{ProcessorCounters, no_counters};

/// The shortest period: the paper's.
pub const PERIOD_MIN_NS: u64 = 15_000;
/// The share of the time that the waiting thread rests.
const RESTS: f64 = 0.1;

/// Measures the lateness of timers in a thread.
///
/// The waiting thread and the one behind it share a CPU; all combinations take turns in blocks of
/// 20 ms, and a tenth of the time is rest. Before these come the blocks of [`Self::in_a_row`].
#[derive(Clone, Debug)]
pub struct TimerExperiment {
    /// The waiting thread: its CPU, which it shares with what runs behind, and the policy to
    /// request.
    pub thread: RtThread,
    /// The periods.
    pub periods: Vec<Period>,
    /// The kinds of work behind, each in turn.
    pub backgrounds: Vec<Background>,
    /// Time of all combinations together, about; each has a block at least.
    pub duration: Span,
    /// So many expiries in a row, in a block of its own, are the series of each sleep whose stamps
    /// go into large memory; 0: the series is of the blocks in which they take turns.
    pub in_a_row: u32,
    /// The loads that run meanwhile.
    pub loads: Vec<LoadSpec>,
}

impl Experiment for TimerExperiment {
    type Outcome = TimerOutcome;

    fn demands(&self) -> Vec<Demand> {
        // Polling takes all of a block, and so may the shortest periods.
        let demand = |period| demand(&self.thread, period, 1.0 - RESTS);
        Period::from_ns(BLOCK_NS).map(demand).into_iter().collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        vec![(String::new(), self.loads.clone())]
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<TimerOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let (order, cpu) = (Order::default(), cpu_of(&self.thread));
        loading.begin(0, self.duration).map_err(ExperimentError::Load)?;
        let measured = std::thread::scope(|scope| {
            let behind = spawn::scoped(scope, "punctual-load", || order.obey(cpu))?;
            let measured = on_one_thread(stop, || self.measure(&order, stop));
            order.give(None);
            // Its panic is one of an instruction loop: there is nothing to hand on.
            let _ended = behind.join();
            measured
        });
        loading.end(0);
        measured
    }
}

impl TimerExperiment {
    /// All combinations, those with the large array first.
    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for period in &self.periods {
            let fits = |path: &TimerPath| {
                *path != TimerPath::Deadline || period.as_ns() >= DEADLINE_PERIOD_MIN_NS
            };
            let cell = |path, background, store| Cell::new(path, period.as_ns(), background, store);
            for path in TimerPath::ALL.into_iter().filter(fits) {
                let backgrounds = self.backgrounds.iter();
                cells.extend(backgrounds.map(|&behind| cell(path, behind, StampStore::Array)));
            }
            for store in [StampStore::Hot, StampStore::Cold] {
                let backgrounds = self.backgrounds.iter();
                cells.extend(backgrounds.map(|&behind| cell(TimerPath::Sleep, behind, store)));
            }
        }
        cells
    }

    /// On the calling thread.
    fn measure(&self, order: &Order, stop: &AtomicBool) -> ExperimentOutcome<TimerOutcome> {
        let mut clock = MachineClock::best();
        let cpus = affinity::get(0).unwrap_or(CpuMask::EMPTY);
        let session = ThreadSession::enter(Some(cpu_of(&self.thread)), self.thread.policy());
        let cost = StampCost::measure(&mut clock);
        let (root, cpu) = (Root::live(), cpu_of(&self.thread));
        let counters = ProcessorCounters::open(&CountedEvent::OF_PROCESSOR, cpu);
        let (mut cells, mut stores, paths) = (self.cells(), Stores::new(), paths(cpus));
        let end_ns = now_ns(ClockId::Monotonic) + self.duration.as_ns().max(0).unsigned_abs();
        let stopped = || stop.load(Ordering::Relaxed);
        for cell in cells.iter_mut().filter(|cell| cell.has_own_series() && self.in_a_row > 0) {
            if stopped() {
                break;
            }
            order.give(Some(cell.background));
            let before_ns = now_ns(ClockId::Monotonic);
            cell.run_in_a_row(self.in_a_row, &mut stores, stop);
            rest(before_ns);
        }
        let mut over = stopped();
        while !over {
            for cell in &mut cells {
                let Some(path) = &paths[cell.path as usize] else { continue };
                order.give(Some(cell.background));
                let before = Accounts::read(&root, None);
                let before_ns = now_ns(ClockId::Monotonic);
                let counted = counters.as_ref().map_or_else(|_| Vec::new(), |open| open.read());
                cell.block(path, &mut stores, stop);
                if let Ok(open) = &counters {
                    cell.count_events(&open.since(&counted));
                }
                cell.count_interrupts(&before, &Accounts::read(&root, None), cpu);
                rest(before_ns);
                if stopped() {
                    break;
                }
            }
            over = stopped() || now_ns(ClockId::Monotonic) >= end_ns;
        }
        let (policy, priority) = (session.policy().name().to_owned(), session.policy().priority());
        let refused = session.refused().to_vec();
        // What follows is arithmetic.
        drop(session);
        let outcome = TimerOutcome {
            cpu: cpu_of(&self.thread),
            policy,
            priority,
            rows: cells.iter().filter_map(Cell::row).collect(),
            deadline_refused: cells.iter().find_map(|cell| cell.refused).map(|why| why.0),
            no_counters: counters.err().map(|why| no_counters(&root, why)),
        };
        let facts = ClockFacts::of(&clock, cost, None);
        ExperimentOutcome::of_thread(outcome, facts, refused)
    }
}

/// Rests as long as what began then took in proportion.
fn rest(begun_ns: u64) {
    let after_ns = now_ns(ClockId::Monotonic);
    let rest_ns = (after_ns - begun_ns) as f64 * RESTS / (1.0 - RESTS);
    let _interrupted = sleep_until_ns(after_ns + rest_ns as u64);
}

/// Lateness of timers, by path and by the work behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerOutcome {
    /// The CPU of the thread that waits and of the work behind it.
    pub cpu: u32,
    /// The policy that the waiting thread really had: "SCHED_FIFO".
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// One for each path, period, background and store.
    pub rows: Vec<TimerRow>,
    /// The kernel's error number where it refused SCHED_DEADLINE: 1 (EPERM) without rights or where
    /// the process may not use all CPUs of a root domain, 16 (EBUSY) where the bandwidth is taken.
    #[serde(default)]
    pub deadline_refused: Option<i32>,
    /// Why interrupts are counted and nothing of the processor's own counters (cache misses,
    /// stalls); null where those were read, and in results of before.
    #[serde(default)]
    pub no_counters: Option<String>,
}

/// One way to be started by time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerRow {
    /// The path of the time to the thread.
    pub path: TimerPath,
    /// From one expiry to the next.
    pub period_ns: u64,
    /// The work on the CPU meanwhile.
    pub background: Background,
    /// The store of the stamps.
    pub store: StampStore,
    /// Expiries that were stamped.
    pub n: u64,
    /// Expiries that passed while the thread was late.
    pub missed: u64,
    /// Interrupts of the CPU in its blocks, as /proc/interrupts counts them: timers, devices, and
    /// calls by other CPUs; null where the kernel does not show it, and in results of before.
    #[serde(default)]
    pub interrupts: Option<u64>,
    /// Counts of the processor's own counters over its blocks; empty where it has none, which
    /// `no_counters` explains, and in results of before.
    #[serde(default)]
    pub counters: Vec<ProcessorCount>,
    /// From the expiry to the stamp.
    pub lateness_ns: SummaryStats,
    /// Scatter of these, ns; null in results of before.
    #[serde(default)]
    pub scatter: Option<Scatter>,
    /// CPU time of the waiting thread over wall time, in [0, 1].
    pub cpu_share: Option<f64>,
    /// The same latenesses in full resolution; not in results.
    #[serde(skip)]
    pub lateness: Histogram,
    /// As they came, ns: those of a block of their own, or the first 4 096, a list for each block;
    /// of `measure timer` the first 1 024. Between two blocks others had their turn. Empty in
    /// results of before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Vec<i64>>,
    /// Expiries that passed unseen in a series that is a block of its own; not in results.
    #[serde(skip)]
    pub series_missed: u64,
}

impl TimerRow {
    /// Leaves out all but the first of its series, so many.
    pub fn keep_first(&mut self, count: usize) {
        let mut room = count;
        for block in &mut self.series {
            block.truncate(room);
            room -= block.len();
        }
        self.series.retain(|block| !block.is_empty());
    }
}

/// A path of the time to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimerPath {
    /// clock_nanosleep to an instant.
    Sleep,
    /// A timerfd.
    Timerfd,
    /// A timer that sends a signal.
    Posix,
    /// Polling, without any timer.
    Mdelay,
    /// A sleep under SCHED_DEADLINE, pinned to no CPU, for periods of 100 µs and more.
    Deadline,
}

impl TimerPath {
    /// In the order in which they take turns.
    pub const ALL: [Self; 5] =
        [Self::Sleep, Self::Timerfd, Self::Posix, Self::Mdelay, Self::Deadline];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Timerfd => "timerfd",
            Self::Posix => "posix",
            Self::Mdelay => "mdelay",
            Self::Deadline => "deadline",
        }
    }
}

/// The memory that stamps go into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StampStore {
    /// 8 MiB that no cache keeps.
    Array,
    /// 4 KiB that stay in the cache.
    Hot,
    /// The 8 MiB, and before each wait 2 MiB are read, so that nothing of the way to the thread is
    /// in the first and second cache: user space disables none. Expiries that pass meanwhile are
    /// left out, and not counted as missed.
    Cold,
}

impl StampStore {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Hot => "hot",
            Self::Cold => "cold",
        }
    }
}

/// The work behind: what runs on the CPU of the waiting thread, without privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// Nothing: the CPU is idle, or does what others want.
    None,
    /// A loop of NOPs.
    Nop,
    /// A loop of SERIALIZE (AArch64: ISB), which waits for all before it.
    Serialize,
    /// A loop of CPUID (AArch64: ISB and DSB), which in a virtual machine goes to the host.
    Cpuid,
}

impl Background {
    /// In the order of the numbers that the loop gives its companion.
    pub const ALL: [Self; 4] = [Self::None, Self::Nop, Self::Serialize, Self::Cpuid];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Nop => "nop",
            Self::Serialize => "serialize",
            Self::Cpuid => "cpuid",
        }
    }

    /// Returns true where the processor has its instruction.
    pub fn is_supported(self) -> bool {
        self != Self::Serialize || Serialise::detect().is_some()
    }
}

/// The order for the thread: which work, from 0 on; one beyond all of them ends it.
///
/// Its thread is of SCHED_OTHER and looks at the order now and then; without one it sleeps.
#[derive(Debug, Default)]
struct Order(AtomicU64);

impl Order {
    /// Gives another one.
    fn give(&self, background: Option<Background>) {
        let number = background.map_or(Background::ALL.len(), |background| background as usize);
        self.0.store(number as u64, Ordering::Release);
        let _woken = futex::wake(&self.0, 1, Scope::Process);
    }

    /// Works on `cpu` until it is to end.
    fn obey(&self, cpu: u32) {
        let _session = ThreadSession::enter(Some(cpu), SchedPolicy::Other);
        let serialise = Serialise::detect();
        loop {
            let order = self.0.load(Ordering::Acquire);
            let number = usize::try_from(order).ok();
            let Some(background) = number.and_then(|number| Background::ALL.get(number)) else {
                return;
            };
            match (background, serialise) {
                (Background::Nop, _) => cycles::idle_work(),
                (Background::Serialize, Some(serialise)) => serialise.run(),
                (Background::Cpuid, _) => cycles::serialise_heavily(),
                _ => futex::wait(&self.0, order as u32, Scope::Process),
            }
        }
    }
}

/// Length of a block, ns.
const BLOCK_NS: u64 = 20_000_000;
/// From the beginning of a block to its first expiry.
const LEAD_NS: u64 = 200_000;
/// Latenesses of a cell that are kept as they came: eight pages of stamps.
pub const SERIES: u32 = 4_096;
/// Stamps in the large array, and in the one that stays in the cache.
const ARRAY: usize = 1 << 20;
const HOT: usize = 512;
/// Words that are read to make caches cold: 2 MiB, no less than a second cache has.
const READ: usize = 1 << 18;
/// Words of a cache line.
const LINE: usize = 8;

/// A [`TimerPath`] with what it needs.
#[derive(Debug)]
enum Path {
    Sleep,
    Timerfd(Descriptor),
    Posix(SignalTimer),
    Delay,
    /// A sleep under SCHED_DEADLINE, on any of these CPUs.
    Deadline(Box<CpuMask>),
}

/// The memory that stamps are stored in: expiry and lateness of both kinds share it.
#[derive(Debug)]
struct Stores {
    array: Vec<i64>,
    at: usize,
    hot: Vec<i64>,
    /// Memory that is read to make caches cold.
    read: Vec<i64>,
}

/// A combination, and what it has seen.
///
/// Allocates nothing while it waits, and a block is bounded in time, whatever its period.
#[derive(Debug)]
struct Cell {
    path: TimerPath,
    period_ns: u64,
    background: Background,
    store: StampStore,
    lateness: Distribution,
    exceedances: Exceedances,
    /// The first ones as they came, by block, and how many more there is room for.
    series: Vec<Vec<i64>>,
    series_room: usize,
    series_missed: u64,
    n: u64,
    missed: u64,
    interrupts: Option<u64>,
    counters: Vec<ProcessorCount>,
    used_ns: u64,
    wall_ns: u64,
    /// The error by which its path was refused; `None` where it was not.
    refused: Option<Errno>,
}

/// All paths in the order of [`TimerPath::ALL`], made in the thread that will wait; `None` where
/// the kernel refuses one. `cpus` are those of the process.
fn paths(cpus: CpuMask) -> [Option<Path>; 5] {
    [
        Some(Path::Sleep),
        events::timer().ok().map(Path::Timerfd),
        SignalTimer::new().ok().map(Path::Posix),
        Some(Path::Delay),
        Some(Path::Deadline(Box::new(cpus))),
    ]
}

impl Stores {
    fn new() -> Self {
        // Not of zeros, which would all be one page.
        Self { array: vec![0; ARRAY], at: 0, hot: vec![0; HOT], read: vec![1; READ] }
    }
}

impl Cell {
    fn new(path: TimerPath, period_ns: u64, background: Background, store: StampStore) -> Self {
        Self {
            path,
            period_ns,
            background,
            store,
            lateness: Distribution::default(),
            exceedances: Exceedances::new(0, &[]),
            series: Vec::new(),
            series_room: SERIES as usize,
            series_missed: 0,
            n: 0,
            missed: 0,
            interrupts: None,
            counters: Vec::new(),
            used_ns: 0,
            wall_ns: 0,
            refused: None,
        }
    }

    /// Adds the interrupts of a CPU from before a block until after it.
    fn count_interrupts(&mut self, before: &Accounts, after: &Accounts, cpu: u32) {
        if let Some((count, _)) = after.interrupts(before, cpu) {
            self.interrupts = Some(self.interrupts.unwrap_or(0) + count);
        }
    }

    /// Adds what the processor counted in a block.
    fn count_events(&mut self, counted: &[ProcessorCount]) {
        ProcessorCount::add(&mut self.counters, counted);
    }

    /// Returns true where its series may be a block of its own.
    fn has_own_series(&self) -> bool {
        self.path == TimerPath::Sleep && self.store != StampStore::Hot
    }

    /// A block of so many expiries, which is its series and nothing else: it would outweigh the
    /// blocks in which all take turns.
    fn run_in_a_row(&mut self, count: u32, stores: &mut Stores, stop: &AtomicBool) {
        let first_ns = now_ns(ClockId::Monotonic) + LEAD_NS;
        let end_ns = first_ns + u64::from(count) * self.period_ns;
        let evicts = (self.store == StampStore::Cold).then_some(&*stores.read);
        let (begun, mut stored) = (stores.at, 0);
        let limits = Limits { first_ns, end_ns, period_ns: self.period_ns, evicts, stop };
        let store = |ns: i64| {
            stores.array[(begun + stored) % ARRAY] = ns;
            stored += 1;
            stored < ARRAY
        };
        self.series_missed = limits.run(&Path::Sleep, store);
        stores.at = (begun + stored) % ARRAY;
        if stored > 0 {
            self.series =
                vec![(begun..begun + stored).map(|at| stores.array[at % ARRAY]).collect()];
            self.series_room = 0;
        }
    }

    /// A block of expiries.
    fn block(&mut self, path: &Path, stores: &mut Stores, stop: &AtomicBool) {
        let (cpu_ns, wall_ns) = (now_ns(ClockId::ThreadCpu), now_ns(ClockId::Monotonic));
        let first_ns = wall_ns + LEAD_NS;
        let end_ns = first_ns + BLOCK_NS;
        let begun = stores.at;
        let mut stored = 0;
        let large = self.store != StampStore::Hot;
        let evicts = (self.store == StampStore::Cold).then_some(&*stores.read);
        let store = |ns: i64| {
            if large {
                stores.array[(begun + stored) % ARRAY] = ns;
            } else {
                stores.hot[stored % HOT] = ns;
            }
            stored += 1;
            large || stored < HOT
        };
        let limits = Limits { first_ns, end_ns, period_ns: self.period_ns, evicts, stop };
        match path {
            Path::Deadline(cpus) => {
                match under_deadline(cpus, self.period_ns, || limits.run(path, store)) {
                    Ok(missed) => self.missed += missed,
                    Err(why) => self.refused = Some(why),
                }
            }
            _ => self.missed += limits.run(path, store),
        }
        let kept: &mut dyn Iterator<Item = i64> = if large {
            &mut (begun..begun + stored).map(|at| stores.array[at % ARRAY])
        } else {
            &mut stores.hot.iter().copied().take(stored)
        };
        let mut series = Vec::with_capacity(stored.min(self.series_room));
        kept.for_each(|ns| {
            self.lateness.push(ns);
            self.exceedances.push(ns, 0, 0);
            if series.len() < self.series_room {
                series.push(ns);
            }
        });
        self.series_room -= series.len();
        if !series.is_empty() {
            self.series.push(series);
        }
        if large {
            stores.at = (begun + stored) % ARRAY;
        }
        self.n += stored as u64;
        self.wall_ns += now_ns(ClockId::Monotonic).saturating_sub(wall_ns);
        self.used_ns += now_ns(ClockId::ThreadCpu).saturating_sub(cpu_ns);
    }

    /// The row of its expiries; `None` where none was stamped.
    fn row(&self) -> Option<TimerRow> {
        (self.n > 0).then(|| TimerRow {
            path: self.path,
            period_ns: self.period_ns,
            background: self.background,
            store: self.store,
            n: self.n,
            missed: self.missed,
            interrupts: self.interrupts,
            counters: self.counters.clone(),
            lateness_ns: self.lateness.stats(),
            scatter: Scatter::of(self.lateness.histogram(), &self.exceedances.clone().finish(0)),
            cpu_share: (self.wall_ns > 0)
                .then(|| (self.used_ns as f64 / self.wall_ns as f64).min(1.0)),
            lateness: self.lateness.histogram().clone(),
            series: self.series.clone(),
            series_missed: self.series_missed,
        })
    }
}

/// The expiries of a block.
struct Limits<'a> {
    first_ns: u64,
    end_ns: u64,
    period_ns: u64,
    /// Memory that is read after each expiry, to make caches cold.
    evicts: Option<&'a [i64]>,
    stop: &'a AtomicBool,
}

impl Limits<'_> {
    /// Waits for expiry after expiry and stores how late each is, until `store` is full; how many
    /// passed unseen.
    fn run(&self, path: &Path, store: impl FnMut(i64) -> bool) -> u64 {
        match path {
            Path::Sleep | Path::Deadline(_) => self.by_instants(store, |due_ns| {
                let _interrupted = sleep_until_ns(due_ns);
            }),
            Path::Delay => {
                self.by_instants(store, |due_ns| while now_ns(ClockId::Monotonic) < due_ns {})
            }
            Path::Timerfd(timer) => {
                let armed = events::arm(timer, self.first_ns, self.period_ns);
                let missed = self.by_counts(store, armed.is_ok(), || events::take(timer).ok());
                let _disarmed = events::arm(timer, 0, 0);
                missed
            }
            Path::Posix(timer) => {
                let armed = timer.arm(self.first_ns, self.period_ns);
                let take = || timer.take(BLOCK_NS).ok();
                let missed = self.by_counts(store, armed.is_ok(), take);
                let _disarmed = timer.arm(0, 0);
                // A signal that is still pending belongs to no other block.
                while timer.take(0).is_ok() {}
                missed
            }
        }
    }

    fn over(&self, due_ns: u64) -> bool {
        due_ns >= self.end_ns || self.stop.load(Ordering::Relaxed)
    }

    /// Each expiry is an instant to wait for, by the rule of the gate; not the gate itself, whose
    /// clock and wait would stand between the paths that are compared here.
    fn by_instants(&self, mut store: impl FnMut(i64) -> bool, wait: impl Fn(u64)) -> u64 {
        let Some(period) = Period::from_ns(self.period_ns) else { return 0 };
        let releases = Releases::new(Instant::from_ns(self.first_ns), period);
        let (mut number, mut missed) = (0, 0);
        while !self.over(releases.release(number).as_ns()) {
            let due = releases.release(number);
            wait(due.as_ns());
            let now = Instant::from_ns(now_ns(ClockId::Monotonic));
            if !store((now - due).as_ns()) {
                break;
            }
            let mut next = releases.next(number, now);
            missed += next - number - 1;
            if let Some(read) = self.evicts {
                black_box(read.iter().step_by(LINE).fold(0, |sum, word| sum ^ word));
                let now = Instant::from_ns(now_ns(ClockId::Monotonic));
                next = next.max(releases.next(number, now));
            }
            number = next;
        }
        missed
    }

    /// A periodic timer says how often it expired; the stamp is late by the first of these.
    fn by_counts(
        &self,
        mut store: impl FnMut(i64) -> bool,
        armed: bool,
        take: impl Fn() -> Option<u64>,
    ) -> u64 {
        let (mut due_ns, mut missed) = (self.first_ns, 0);
        while armed && !self.over(due_ns) {
            let Some(count) = take().filter(|&count| count > 0) else { break };
            let late_ns = now_ns(ClockId::Monotonic).cast_signed() - due_ns.cast_signed();
            if !store(late_ns) {
                break;
            }
            missed += count - 1;
            due_ns += count * self.period_ns;
        }
        missed
    }
}

/// The shortest period that the kernel admits by default: /proc/sys/kernel/
/// sched_deadline_period_min_us.
const DEADLINE_PERIOD_MIN_NS: u64 = 100_000;

/// Runs `wait` with half of each period reserved.
///
/// The policy and the affinity from before are put back after it. The kernel admits such a thread
/// only where it may run on all CPUs of its root domain
/// (Documentation/scheduler/sched-deadline.rst, §5): so it is pinned to none meanwhile.
///
/// # Errors
/// `EPERM` without rights or where `cpus` are not all of a root domain, `EBUSY` where the bandwidth
/// is taken.
fn under_deadline<T>(cpus: &CpuMask, period_ns: u64, wait: impl FnOnce() -> T) -> Result<T, Errno> {
    let (policy, pinned) = (SchedAttributes::get(0)?, affinity::get(0)?);
    affinity::set(0, cpus)?;
    let reserved = SchedAttributes {
        runtime_ns: period_ns / 2,
        deadline_ns: period_ns,
        period_ns,
        flags: scheduler::RESET_ON_FORK,
        ..SchedAttributes::of(scheduler::DEADLINE)
    };
    let waited = reserved.give(0).map(|()| wait());
    // What was once the thread's own is always allowed again.
    let _restored = policy.give(0);
    let _pinned = affinity::set(0, &pinned);
    waited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_takes_every_order_and_ends_by_the_last() {
        let order = Order::default();
        std::thread::scope(|scope| {
            let working = scope.spawn(|| order.obey(affinity::current_cpu()));
            for background in
                Background::ALL.into_iter().filter(|background| background.is_supported())
            {
                order.give(Some(background));
                std::thread::yield_now();
            }
            order.give(None);
            working.join().expect("no panic");
        });
    }

    #[test]
    fn every_path_stamps_its_expiries_and_none_before_its_time() {
        let (mut stores, stop) = (Stores::new(), AtomicBool::new(false));
        let cpus = affinity::get(0).expect("own");
        for (name, path) in TimerPath::ALL.into_iter().zip(&paths(cpus)) {
            let path = path.as_ref().expect("every kernel has it");
            for store in [StampStore::Array, StampStore::Hot, StampStore::Cold] {
                if store == StampStore::Cold && name != TimerPath::Sleep {
                    continue;
                }
                let mut cell = Cell::new(name, 1_000_000, Background::None, store);
                assert_eq!(cell.row(), None);
                cell.block(path, &mut stores, &stop);
                if name == TimerPath::Deadline && cell.refused.is_some() {
                    assert_eq!(cell.row(), None, "nothing is measured under another policy");
                    continue;
                }
                let row = cell.row().expect("measured");
                // Releases that pass while memory is read are left out.
                let least = if store == StampStore::Cold { 1 } else { BLOCK_NS / 1_000_000 };
                let (n, missed) = (row.n, row.missed);
                assert!(n + missed >= least, "{name:?}, {store:?}: {n} ran, {missed} missed");
                let least_ns = row.lateness_ns.min;
                assert!(least_ns.is_some_and(|ns| ns >= 0.0), "{name:?}, {store:?}: {least_ns:?}");
            }
        }
    }

    #[test]
    fn interrupts_of_a_block_are_counted() {
        let root = Root::live();
        let cpu = affinity::current_cpu();
        let mut cell = Cell::new(TimerPath::Sleep, 1_000_000, Background::None, StampStore::Array);
        let before = Accounts::read(&root, None);
        cell.block(&Path::Sleep, &mut Stores::new(), &AtomicBool::new(false));
        cell.count_interrupts(&before, &Accounts::default(), cpu);
        assert_eq!(cell.interrupts, None, "not shown");
        cell.count_interrupts(&before, &before, cpu);
        assert_eq!(cell.interrupts, Some(0));
        assert_eq!(cell.row().expect("measured").interrupts, Some(0));
    }

    #[test]
    fn what_the_processor_counts_is_added_up_by_block() {
        // What the kernel counts stands in for the processor, which may show nothing here.
        let cpu = affinity::current_cpu();
        let Ok(open) = ProcessorCounters::open(&[CountedEvent::ContextSwitches], cpu) else {
            return;
        };
        let mut cell = Cell::new(TimerPath::Sleep, 1_000_000, Background::None, StampStore::Array);
        std::thread::spawn(move || {
            affinity::set(0, &CpuMask::one(cpu)).expect("allowed");
            let mut counted = 0.0;
            for _ in 0..2 {
                let before = open.read();
                cell.block(&Path::Sleep, &mut Stores::new(), &AtomicBool::new(false));
                cell.count_events(&open.since(&before));
                let row = cell.row().expect("measured");
                let [own] = &row.counters[..] else { panic!("{row:?}") };
                assert_eq!(own.event, "context-switches");
                // It slept for each release.
                assert!(own.count >= counted + 10.0, "{row:?}");
                counted = own.count;
            }
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_full_store_ends_a_block_and_a_stop_does_so_at_once() {
        let mut stores = Stores::new();
        let mut cell = Cell::new(TimerPath::Mdelay, 1_000, Background::None, StampStore::Hot);
        cell.block(&Path::Delay, &mut stores, &AtomicBool::new(false));
        assert!((1..=HOT as u64).contains(&cell.n), "{cell:?}");
        assert_eq!(cell.row().expect("measured").series[0].len() as u64, cell.n);
        // The series is bounded, whatever is measured, and what is in it came first.
        while cell.series_room > 0 {
            cell.block(&Path::Delay, &mut stores, &AtomicBool::new(false));
        }
        let before = cell.series.clone();
        cell.block(&Path::Delay, &mut stores, &AtomicBool::new(false));
        assert_eq!(before.iter().map(Vec::len).sum::<usize>(), SERIES as usize);
        assert_eq!(cell.series, before);
        let mut cell = Cell::new(TimerPath::Sleep, 1_000, Background::None, StampStore::Array);
        cell.block(&Path::Sleep, &mut stores, &AtomicBool::new(true));
        assert_eq!(cell.n, 0);
    }

    #[test]
    fn expiries_in_a_row_are_one_series_and_outweigh_nothing() {
        let (mut stores, stop) = (Stores::new(), AtomicBool::new(false));
        // More than a block of 20 ms has.
        let count = 2 * (BLOCK_NS / 100_000) as u32;
        let mut cell = Cell::new(TimerPath::Sleep, 100_000, Background::None, StampStore::Array);
        cell.run_in_a_row(count, &mut stores, &stop);
        assert_eq!(cell.row(), None, "nothing but the series");
        let [own] = &cell.series[..] else { panic!("{:?}", cell.series) };
        // Each expiry was seen, or missed; more are missed where the machine stands still at the
        // end.
        let seen = own.len() as u64 + cell.series_missed;
        assert!((1..=u64::from(count)).contains(&(own.len() as u64)), "{seen}");
        assert!(seen >= u64::from(count), "{} seen, {} missed", own.len(), cell.series_missed);
        let series = cell.series.clone();
        cell.block(&Path::Sleep, &mut stores, &stop);
        let row = cell.row().expect("measured");
        assert_eq!(row.series, series, "no other block is drawn");
        assert!(row.n <= BLOCK_NS / 100_000, "{}", row.n);
        let drawn = |path, store| Cell::new(path, 1, Background::None, store).has_own_series();
        assert!(drawn(TimerPath::Sleep, StampStore::Cold));
        assert!(!drawn(TimerPath::Sleep, StampStore::Hot));
        assert!(!drawn(TimerPath::Mdelay, StampStore::Array));
        let mut cell = Cell::new(TimerPath::Sleep, 100_000, Background::None, StampStore::Array);
        cell.run_in_a_row(count, &mut stores, &AtomicBool::new(true));
        assert!(cell.series.is_empty() && cell.series_room > 0);
    }

    #[test]
    fn policy_and_cpus_are_as_before_whether_it_was_admitted_or_not() {
        std::thread::spawn(|| {
            let cpus = affinity::get(0).expect("own");
            affinity::set(0, &CpuMask::one(affinity::current_cpu())).expect("allowed");
            let before = (SchedAttributes::get(0), affinity::get(0));
            let policy = || SchedAttributes::get(0).expect("own").policy;
            match under_deadline(&cpus, 1_000_000, policy) {
                Ok(inside) => assert_eq!(inside, scheduler::DEADLINE),
                Err(why) => assert!(matches!(why, Errno::PERM | Errno::BUSY), "{why}"),
            }
            assert_eq!((SchedAttributes::get(0), affinity::get(0)), before);
            // No runtime at all is never admitted.
            assert!(under_deadline(&cpus, 0, policy).is_err());
            assert_eq!((SchedAttributes::get(0), affinity::get(0)), before);
        })
        .join()
        .expect("no panic");
    }
}
