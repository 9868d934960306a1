//! The gaps in a thread that only spins, in which something else had its CPU, as oslat, sysjitter
//! and the kernel's hwlat tracer see them.
//!
//! For `measure noise`. A thread on each CPU reads the clock as fast as it can, in windows with
//! rests between them; whatever comes between two reads is a gap. Gaps on all CPUs at once, the
//! host's steal, interrupts and the firmware's are counted apart. Runs threads, never prints.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use punctual::RtThread;
use punctual_analysis::histogram::HistogramView;
use punctual_analysis::summary::{Distribution, SummaryStats};
use punctual_core::clock::Clock;
use punctual_core::releases::Releases;
use punctual_core::ring::{self, Drain, Ring, RingView};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::{Instant, Period, Span};
use punctual_engine::clocks::{MachineClock, Reading, StampCost};
use punctual_engine::monitor::Force;
use punctual_engine::quiet::{Gap, Spun, spin};
use punctual_engine::safety::is_real_time;
use punctual_engine::session::{Refusal, ThreadSession};
use punctual_engine::spawn;
use punctual_host::counts::{CountTable, RisenCount, StealTicks};
use punctual_host::facts::SmiCount;
use punctual_host::root::Root;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::threads::{self, Usage};
use punctual_os::{process, signal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError,
    ExperimentOutcome, ExperimentProgress, Loading, RingEnds, Risk, Taken, keep_to, usage_since,
};
use crate::load::LoadSpec;
use crate::lookout::Lookout;

/// Reads of the clock that the threshold must be as long as.
const READS_IN_A_THRESHOLD: f64 = 4.0;

/// Measures the gaps in threads that only spin.
#[derive(Clone, Debug)]
pub struct NoiseExperiment {
    /// The CPUs to measure, each once.
    pub cpus: Vec<u32>,
    /// The policy to request for their threads.
    pub thread: RtThread,
    /// Two reads of the clock that are this far apart are a gap.
    pub threshold: Span,
    /// Time of all windows and rests together.
    pub duration: Span,
    /// The share of the time to spin, in (0, 1].
    pub duty: f64,
    /// The loads that run meanwhile, and how results name them.
    pub loads: (String, Vec<LoadSpec>),
    /// CPUs for all that does not spin; empty to leave that to the kernel.
    pub housekeeping: Vec<u32>,
    /// The kernel's ticks in a second, where that is known.
    pub tick_hz: Option<u32>,
    /// The CPU that counts system management interrupts; `None` where none does.
    pub smi_cpu: Option<u32>,
}

impl Experiment for NoiseExperiment {
    type Outcome = NoiseOutcome;

    fn demands(&self) -> Vec<Demand> {
        let demand = |&cpu: &u32| Demand {
            cpu: Some(cpu),
            real_time: is_real_time(self.thread.policy()),
            period: Windows::frame(),
            share: self.duty,
        };
        self.cpus.iter().map(demand).collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        vec![self.loads.clone()]
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<NoiseOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let begun = Reading::take();
        self.check_threshold(cost.poll_ns).map_err(ExperimentError::Refused)?;
        let windows = Windows::of(self.duration, self.duty);
        loading.begin(0, windows.length()).map_err(ExperimentError::Load)?;
        let root = Root::live();
        let before = Accounts::read(&root, self.smi_cpu);
        let hz = self.tick_hz.filter(|&hz| hz > 0);
        let threads = Threads {
            cpus: &self.cpus,
            policy: self.thread.policy(),
            threshold: self.threshold,
            windows,
            housekeeping: &self.housekeeping,
            tick_ns: hz.map(|hz| 1_000_000_000 / u64::from(hz)),
            clock: &clock,
            stop,
        };
        let spun = threads.run(loading);
        let after = Accounts::read(&root, self.smi_cpu);
        loading.end(0);
        let spun = spun?;
        clock.discipline();
        let forced = spun.collected.forced.map(ExperimentEnd::Watchdog);
        let stopped = ExperimentEnd::by(stop);
        let taken = |(&cpu, spun): (&u32, &Measurement)| {
            let real_time =
                matches!(spun.ended.policy, SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_));
            let share = spun.ended.cpu_share;
            real_time.then_some(Taken { cpu, condition: 0, share, period: None })
        };
        Ok(ExperimentOutcome {
            end: forced.unwrap_or(stopped),
            clock: ClockFacts::of(&clock, cost, begun.until(&Reading::take())),
            refused: spun
                .measurements
                .iter()
                .flat_map(|measured| measured.ended.refused.clone())
                .collect(),
            taken: self.cpus.iter().zip(&spun.measurements).filter_map(taken).collect(),
            disturbances: spun.lookout.happened(),
            outcome: self.outcome(windows, spun.measurements, spun.collected, (&before, &after)),
        })
    }
}

impl NoiseExperiment {
    /// A threshold that the clock's own reads would reach is refused.
    fn check_threshold(&self, read_ns: f64) -> Result<(), Risk> {
        let times = READS_IN_A_THRESHOLD;
        let value_ns = self.threshold.as_ns().max(0).unsigned_abs();
        if (value_ns as f64) < times * read_ns {
            return Err(Risk::TooFine {
                option: "--threshold",
                value_ns,
                stamp_ns: read_ns,
                times,
            });
        }
        Ok(())
    }

    fn outcome(
        &self,
        windows: Windows,
        measurements: Vec<Measurement>,
        collected: Collected,
        (before, after): (&Accounts, &Accounts),
    ) -> NoiseOutcome {
        let spun =
            measurements.iter().map(|measured| measured.ended.spun).max().unwrap_or(Span::ZERO);
        let begun = measurements.iter().map(|measured| measured.ended.windows).max().unwrap_or(0);
        let row = |((&cpu, measured), gaps): ((&u32, Measurement), &Distribution)| {
            cpu_noise(cpu, &measured, gaps, (before, after))
        };
        NoiseOutcome {
            threshold_ns: self.threshold.as_ns().unsigned_abs(),
            duty: self.duty,
            frame_ns: Windows::frame().as_ns(),
            window_ns: windows.width.as_ns().unsigned_abs(),
            windows: begun,
            cpus: self.cpus.iter().zip(measurements).zip(&collected.gaps).map(row).collect(),
            lengths: Lengths::of(&collected.gaps),
            at_once: collected.at_once.finish(spun),
            smi: after.smi(before),
        }
    }
}

/// The gaps of one CPU, and what it counted meanwhile.
fn cpu_noise(
    cpu: u32,
    measured: &Measurement,
    gaps: &Distribution,
    (before, after): (&Accounts, &Accounts),
) -> CpuNoise {
    let ended = &measured.ended;
    let spun_ns = ended.spun.as_ns().max(0).unsigned_abs();
    let (policy, priority) = (ended.policy.name().to_owned(), ended.policy.priority());
    let between = ended.reads.saturating_sub(measured.gaps);
    let between_ns = spun_ns.saturating_sub(measured.lost_ns);
    let (interrupts, most_often) = after.interrupts(before, cpu).unzip();
    CpuNoise {
        cpu,
        policy,
        priority,
        spun_ns,
        read_ns: (between > 0).then(|| between_ns as f64 / between as f64),
        gaps: measured.gaps,
        lost_ns: measured.lost_ns,
        lost_share: (spun_ns > 0).then(|| measured.lost_ns as f64 / spun_ns as f64),
        worst: measured.worst,
        gap_ns: gaps.stats(),
        histogram: HistogramView::of(gaps.histogram()),
        unlisted: measured.unlisted,
        page_faults: ended.usage.minor_faults + ended.usage.major_faults,
        preempted: ended.usage.involuntary_switches,
        steal_ns: after.steal_ns(before, cpu),
        interrupts,
        most_often: most_often.unwrap_or_default(),
    }
}

/// The gaps in threads that only spin, on all measured CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseOutcome {
    /// Two reads of the clock that are this far apart, or farther, are a gap.
    pub threshold_ns: u64,
    /// The share of the time that was spun, in (0, 1].
    pub duty: f64,
    /// From the beginning of a window to that of the next.
    pub frame_ns: u64,
    /// The length of a window.
    pub window_ns: u64,
    /// Windows that were spun.
    pub windows: u64,
    /// One for each measured CPU.
    pub cpus: Vec<CpuNoise>,
    /// Lengths of gaps, on all CPUs in the same steps: 1, 2, 5, 10 and so on.
    pub lengths: Vec<Lengths>,
    /// Gaps that all measured CPUs had at once; null where one CPU was measured.
    pub at_once: Option<AtOnce>,
    /// System management interrupts of the firmware during the measurement; null if the machine
    /// does not count them.
    pub smi: Option<u64>,
}

/// The gaps of one CPU, and what it counted meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuNoise {
    /// The CPU.
    pub cpu: u32,
    /// The policy that the thread really had: "SCHED_FIFO".
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// Time that was spun.
    pub spun_ns: u64,
    /// Mean time from one read of the clock to the next, gaps left out: no gap is known finer.
    pub read_ns: Option<f64>,
    /// Gaps.
    pub gaps: u64,
    /// Their total length.
    pub lost_ns: u64,
    /// Their share of the time that was spun, in [0, 1].
    pub lost_share: Option<f64>,
    /// The longest.
    pub worst: Option<WorstGap>,
    /// Lengths of gaps.
    pub gap_ns: SummaryStats,
    /// Lengths of gaps, as a histogram.
    pub histogram: HistogramView,
    /// Gaps that did not fit in memory: they are only in `gaps`, `lost_ns` and `worst`.
    pub unlisted: u64,
    /// Page faults of the spinning thread.
    pub page_faults: u64,
    /// Times that it was preempted.
    pub preempted: u64,
    /// Time that the host took from this CPU, as the kernel counts it in steps of 10 ms, rests
    /// included; null if the kernel does not report it.
    pub steal_ns: Option<u64>,
    /// Interrupts of this CPU, rests included; null if the kernel does not report them.
    pub interrupts: Option<u64>,
    /// The most frequent kinds of interrupts.
    pub most_often: Vec<Interrupt>,
}

/// Gaps of about one length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lengths {
    /// As long as this, or longer.
    pub from_ns: u64,
    /// Shorter than this.
    pub to_ns: u64,
    /// Number of gaps, by CPU in the order of `cpus`.
    pub counts: Vec<u64>,
}

/// A kind of interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interrupt {
    /// As /proc/interrupts has it: "LOC Local timer interrupts".
    pub name: String,
    /// Number of times that it came.
    pub count: u64,
}

/// The longest of some gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorstGap {
    /// Its begin, ns on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Its length.
    pub length_ns: u64,
}

/// Simultaneous gaps on all measured CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtOnce {
    /// Those at the tick and elsewhere together.
    pub all: Overlaps,
    /// Those at the phase of the kernel's tick, which also comes on all CPUs at once; null if its
    /// period is unknown.
    pub tick: Option<Overlaps>,
    /// The others: the host of a guest, or the firmware.
    pub elsewhere: Overlaps,
}

/// Times in which all CPUs had a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overlaps {
    /// Number of overlaps.
    pub count: u64,
    /// All of them together.
    pub total_ns: u64,
    /// The longest.
    pub worst: Option<WorstGap>,
}

impl Lengths {
    /// The gaps of each CPU by length; steps in which there are none at either end are left out.
    fn of(cpus: &[Distribution]) -> Vec<Self> {
        let step = |exponent: u32| [1, 2, 5].map(|first| first * 10u64.pow(exponent));
        let edges: Vec<u64> = (0..=18).flat_map(step).collect();
        let rows = edges.windows(2).map(|pair| Self {
            from_ns: pair[0],
            to_ns: pair[1],
            counts: cpus.iter().map(|gaps| within(gaps, pair[0], pair[1])).collect(),
        });
        let rows: Vec<Self> = rows.collect();
        let some = |row: &Self| row.counts.iter().any(|&count| count > 0);
        let (first, last) = (rows.iter().position(some), rows.iter().rposition(some));
        first.zip(last).map_or_else(Vec::new, |(first, last)| rows[first..=last].to_vec())
    }
}

/// Values from `from_ns` to below `to_ns`, by the lowest of their bucket.
fn within(gaps: &Distribution, from_ns: u64, to_ns: u64) -> u64 {
    let inside = |ns: i64| u64::try_from(ns).is_ok_and(|ns| (from_ns..to_ns).contains(&ns));
    let buckets = gaps.histogram().buckets();
    buckets.filter(|bucket| inside(bucket.lowest_ns)).map(|bucket| bucket.count).sum()
}

impl WorstGap {
    fn of(gap: Gap) -> Self {
        Self { at_ns: gap.at.as_ns(), length_ns: gap.length.as_ns().unsigned_abs() }
    }
}

impl Overlaps {
    fn add(&mut self, more: &Self) {
        self.count += more.count;
        self.total_ns += more.total_ns;
        // Of equal ones the first stays.
        let longer =
            |worst: &WorstGap| self.worst.is_none_or(|own| own.length_ns < worst.length_ns);
        if let Some(worst) = more.worst.filter(longer) {
            self.worst = Some(worst);
        }
    }
}

/// Gaps that a ring holds: a window full of the shortest that a threshold can be.
const RING_GAPS: usize = 1 << 16;
/// Time between two reports of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// The parameters of the threads.
struct Threads<'a> {
    cpus: &'a [u32],
    policy: SchedPolicy,
    threshold: Span,
    windows: Windows,
    housekeeping: &'a [u32],
    /// The period of the kernel's tick, where that is known.
    tick_ns: Option<u64>,
    clock: &'a MachineClock,
    stop: &'a AtomicBool,
}

/// The result of one CPU.
struct Measurement {
    ended: Ended,
    gaps: u64,
    lost_ns: u64,
    worst: Option<WorstGap>,
    unlisted: u64,
}

/// The result of all threads.
struct SpunAll {
    measurements: Vec<Measurement>,
    collected: Collected,
    lookout: Lookout,
}

/// A spinning thread that was started, and what gives it its grid.
struct Started<'scope> {
    thread: ScopedJoinHandle<'scope, Ended>,
    start: Sender<Releases>,
}

impl Threads<'_> {
    /// Runs them to their end, or until they are to stop.
    ///
    /// # Errors
    /// A thread could not be had.
    fn run(&self, loading: &mut Loading<'_>) -> io::Result<SpunAll> {
        // Without it a thread that rests learns of a stop only at its next window.
        let _late_stop = signal::catch_interrupt();
        let ring = || (0..ring::words(RING_GAPS)).map(|_| AtomicU64::new(0)).collect();
        let storage: Vec<Vec<AtomicU64>> = self.cpus.iter().map(|_| ring()).collect();
        let seen: Vec<Seen> = self.cpus.iter().map(|_| Seen::default()).collect();
        let RingEnds { rings, drains, views } = RingEnds::of(&storage);
        thread::scope(|scope| {
            let (to_us, ready) = channel();
            let started = self.start(scope, rings, &seen, &to_us)?;
            // A thread that ends before it is ready has panicked, which its join hands on.
            let _all = self.cpus.iter().try_for_each(|_| ready.recv());
            let grid = Windows::grid(Instant::from_ns(now_ns(ClockId::Monotonic)));
            let (collecting, done) = self.collect(scope, drains, &seen, grid)?;
            let mut spinners = Vec::new();
            for Started { thread, start } in started {
                let _gone = start.send(grid);
                spinners.push(thread);
            }
            let tids = seen.iter().map(|seen| seen.tid.load(Ordering::Acquire));
            let pinned: Vec<(i32, u32)> = tids.zip(self.cpus.iter().copied()).collect();
            let end = grid.first() + self.windows.length();
            let lookout = self.report_progress(&done, (&views, end), loading, (&pinned, &seen));
            let collected = collecting.join().unwrap_or_else(|why| resume_unwind(why));
            let ended = spinners.into_iter().map(ScopedJoinHandle::join);
            let ended = ended.map(|ended| ended.unwrap_or_else(|why| resume_unwind(why)));
            let threads = ended.zip(views.iter().zip(&seen));
            let measurements =
                threads.map(|(ended, (view, seen))| measurement(ended, view, seen, &grid));
            Ok(SpunAll { measurements: measurements.collect(), collected, lookout })
        })
    }

    /// Starts the spinning threads, which wait for their grid.
    fn start<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        rings: Vec<Ring<'env>>,
        seen: &'env [Seen],
        ready: &Sender<()>,
    ) -> io::Result<Vec<Started<'scope>>> {
        let spinner = |((&cpu, ring), seen): ((&u32, Ring<'env>), &'env Seen)| {
            let (start, take) = channel();
            let spinner = Spinner {
                cpu,
                policy: self.policy,
                threshold: self.threshold,
                windows: self.windows,
                ring,
                seen,
                stop: self.stop,
                ready: ready.clone(),
                start: take,
            };
            let clock = self.clock.clone();
            let thread = spawn::scoped(scope, "punctual-spin", move || spinner.run(clock))?;
            Ok(Started { thread, start })
        };
        self.cpus.iter().zip(rings).zip(seen).map(spinner).collect()
    }

    /// Starts the collector; the channel loses its sender when that is over.
    fn collect<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        drains: Vec<Drain<'env>>,
        seen: &'env [Seen],
        grid: Releases,
    ) -> io::Result<(ScopedJoinHandle<'scope, Collected>, Receiver<()>)> {
        let at_once = OverlapTally::new(self.cpus.len(), self.tick_ns);
        let (windows, stop) = (self.windows, self.stop);
        let looks_max = LOOKS_MAX;
        let collector = Collector { drains, seen, windows, stop, at_once, looks_max };
        let (over, done) = channel();
        let thread = spawn::scoped(scope, "punctual-drain", move || {
            let _over: Sender<()> = over;
            keep_to(self.housekeeping);
            // Above the spinning threads, whose rests it works in.
            let _session = ThreadSession::enter(None, above(self.policy));
            collector.run(&grid)
        })?;
        Ok((thread, done))
    }

    /// Reports how far the threads are and looks at the machine, until `done` has no sender any
    /// more.
    fn report_progress(
        &self,
        done: &Receiver<()>,
        (views, end): (&[RingView<'_>], Instant),
        loading: &mut Loading<'_>,
        (pinned, seen): (&[(i32, u32)], &[Seen]),
    ) -> Lookout {
        let mut lookout = Lookout::new(pinned);
        // One that is over loses its CPU as it should.
        let all_spin = || seen.iter().all(|seen| seen.done() < self.windows.count);
        while done.recv_timeout(PROGRESS_EVERY) == Err(RecvTimeoutError::Timeout) {
            let left = end - Instant::from_ns(now_ns(ClockId::Monotonic));
            loading.progress(&ExperimentProgress {
                left: left.max(Span::ZERO),
                condition: 0,
                worst: seen.iter().filter_map(Seen::worst).max(),
                count: views.iter().map(RingView::count).sum(),
            });
            lookout.look(pinned, all_spin);
            if self.stop.load(Ordering::Relaxed) {
                for &(tid, _) in pinned {
                    // A thread that is not in a sleep, or gone, needs no waking.
                    let _awake = signal::interrupt(tid);
                }
            }
        }
        lookout
    }
}

/// The policy of the thread above threads with this one.
fn above(policy: SchedPolicy) -> SchedPolicy {
    match policy {
        SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority) => {
            SchedPolicy::Fifo(priority.saturating_add(1).min(99))
        }
        SchedPolicy::Other | SchedPolicy::Unknown(_) => policy,
    }
}

/// The exact counts of one CPU.
fn measurement(ended: Ended, view: &RingView<'_>, seen: &Seen, grid: &Releases) -> Measurement {
    let worst = seen.worst().map(|length| WorstGap {
        at_ns: grid.first().as_ns() + seen.worst_at_ns.load(Ordering::Relaxed),
        length_ns: length.as_ns().unsigned_abs(),
    });
    Measurement {
        ended,
        gaps: view.count(),
        lost_ns: seen.lost_ns.load(Ordering::Relaxed),
        worst,
        unlisted: view.unrecorded(),
    }
}

/// The counters of a spinning thread that other threads read.
#[derive(Debug, Default)]
struct Seen {
    /// Its thread.
    tid: AtomicI32,
    /// Windows that it is over with; all there are once it has ended, by whichever way.
    done: AtomicU64,
    /// The sum of its gaps, ns, those that found the ring full included; and the longest one, when
    /// it began, ns from the first window on.
    lost_ns: AtomicU64,
    worst_ns: AtomicU64,
    worst_at_ns: AtomicU64,
}

impl Seen {
    /// Windows that it is over with.
    fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    /// The longest gap so far.
    fn worst(&self) -> Option<Span> {
        let ns = self.worst_ns.load(Ordering::Relaxed);
        (ns > 0).then(|| Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)))
    }

    /// Counts a gap: plain loads and stores, for there is one writer.
    fn count(&self, at_ns: u64, length: Span) {
        let length_ns = length.as_ns().max(0).unsigned_abs();
        let lost_ns = self.lost_ns.load(Ordering::Relaxed).saturating_add(length_ns);
        self.lost_ns.store(lost_ns, Ordering::Relaxed);
        if length_ns > self.worst_ns.load(Ordering::Relaxed) {
            self.worst_ns.store(length_ns, Ordering::Relaxed);
            self.worst_at_ns.store(at_ns, Ordering::Relaxed);
        }
    }
}

/// Everything that a spinning thread needs.
///
/// A window, a rest, a window. Allocates and locks nothing between its first and its last window.
struct Spinner<'a> {
    cpu: u32,
    policy: SchedPolicy,
    threshold: Span,
    windows: Windows,
    /// A gap is a sample: when it began, in ns from the first window on, and how long it was.
    ring: Ring<'a>,
    seen: &'a Seen,
    stop: &'a AtomicBool,
    /// Receives one message when the thread is set up.
    ready: Sender<()>,
    /// Gives the grid of windows once all threads are.
    start: Receiver<Releases>,
}

/// The result of a spinning thread at its end.
#[derive(Clone, Debug)]
struct Ended {
    policy: SchedPolicy,
    refused: Vec<Refusal>,
    /// All its windows.
    spun: Span,
    reads: u64,
    /// Windows that it began.
    windows: u64,
    usage: Usage,
    /// Its CPU time over wall time.
    cpu_share: f64,
}

/// Marks all windows as done when the thread ends.
struct EndMark<'a>(&'a Seen);

impl Drop for EndMark<'_> {
    fn drop(&mut self) {
        self.0.done.store(u64::MAX, Ordering::Release);
    }
}

impl Spinner<'_> {
    /// Spins through all windows, or until it is to stop.
    fn run(mut self, mut clock: MachineClock) -> Ended {
        let _mark = EndMark(self.seen);
        let session = ThreadSession::enter(Some(self.cpu), self.policy);
        self.seen.tid.store(process::tid(), Ordering::Release);
        // Whoever waits for it may be gone, and then there is no start.
        let _gone = self.ready.send(());
        let mut ended = Ended {
            policy: session.policy(),
            refused: session.refused().to_vec(),
            spun: Span::ZERO,
            reads: 0,
            windows: 0,
            usage: Usage::default(),
            cpu_share: 0.0,
        };
        let Ok(grid) = self.start.recv() else { return ended };
        let counted = || (now_ns(ClockId::Monotonic), now_ns(ClockId::ThreadCpu));
        let (before, used) = (counted(), threads::usage().unwrap_or_default());
        for window in 0..self.windows.count {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            clock.discipline();
            clock.sleep_until(grid.release(window));
            clock.wake();
            let Spun { length, reads } = self.window(&mut clock, &grid, window);
            ended.spun = Span::from_ns(ended.spun.as_ns().saturating_add(length.as_ns()));
            ended.reads += reads;
            ended.windows += 1;
            self.seen.done.store(window + 1, Ordering::Release);
        }
        let after = counted();
        let wall_ns = after.0.saturating_sub(before.0).max(1);
        ended.cpu_share = after.1.saturating_sub(before.1) as f64 / wall_ns as f64;
        ended.usage = usage_since(used);
        ended
    }

    fn window(&mut self, clock: &mut MachineClock, grid: &Releases, window: u64) -> Spun {
        let end = grid.release(window) + self.windows.width;
        let (epoch, ring, seen) = (grid.first(), &mut self.ring, self.seen);
        spin(clock, end, self.threshold, self.stop, |gap| {
            let cycle = u64::try_from((gap.at - epoch).as_ns()).unwrap_or(0);
            seen.count(cycle, gap.length);
            ring.push(Sample { cycle, lateness: gap.length, flags: Flags::NONE });
        })
    }
}

/// Between two looks at threads that are not over with a window.
const LOOK_NS: u64 = 1_000_000;
/// Looks after which a thread is taken not to yield: two seconds, longer than throttling. They are
/// counted, so that time in which nothing ran (suspend, a halted guest) is no fault of a thread.
const LOOKS_MAX: u32 = 2_000;

/// The thread that collects the gaps of all CPUs after each window.
///
/// It is above the spinning ones: it runs in their rests, so that its own work is no gap. A
/// thread that does not come out of a window is demoted, and all are stopped.
struct Collector<'a> {
    /// One for each CPU.
    drains: Vec<Drain<'a>>,
    seen: &'a [Seen],
    windows: Windows,
    stop: &'a AtomicBool,
    /// Gaps that all CPUs had at once, so far.
    at_once: OverlapTally,
    /// Number of looks at threads that are not over with a window, before it ends them.
    looks_max: u32,
}

/// The collected gaps.
struct Collected {
    /// Lengths of gaps, ns, by CPU.
    gaps: Vec<Distribution>,
    at_once: OverlapTally,
    /// The force by which the threads were ended; `None` where they ended by themselves.
    forced: Option<Force>,
}

impl Collector<'_> {
    /// Collects all windows of `grid`, or until it is to stop.
    fn run(mut self, grid: &Releases) -> Collected {
        let mut gaps: Vec<Distribution> =
            self.drains.iter().map(|_| Distribution::default()).collect();
        let mut pending: Vec<Vec<Gap>> = self.drains.iter().map(|_| Vec::new()).collect();
        let mut forced = None;
        for window in 0..self.windows.count {
            let end = grid.release(window) + self.windows.width;
            // Not the gate: no window may be left out, however late this is. A signal that cuts it
            // short costs some looks.
            let _interrupted = sleep_until_ns(end.as_ns() + LOOK_NS);
            forced = self.await_window(window);
            let over = forced.is_some() || self.stop.load(Ordering::Relaxed);
            if over && forced.is_none() {
                // They end now: what they had is taken in below.
                forced = self.await_window(self.windows.count);
            }
            self.take(grid.first(), &mut gaps, &mut pending);
            let until = if over { None } else { Some(grid.release(window + 1)) };
            self.count(&mut pending, until);
            if over {
                break;
            }
        }
        Collected { gaps, at_once: self.at_once, forced }
    }

    /// Waits until all threads are over with a window; how they were forced to be, if they were.
    fn await_window(&self, window: u64) -> Option<Force> {
        for _ in 0..self.looks_max {
            if self.seen.iter().all(|seen| seen.done() > window) {
                return None;
            }
            let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
        }
        self.stop.store(true, Ordering::Relaxed);
        let stuck = self.seen.iter().filter(|seen| seen.done() <= window);
        let mut demoted = true;
        for tid in stuck.map(|seen| seen.tid.load(Ordering::Acquire)).filter(|&tid| tid > 0) {
            demoted &= scheduler::demote(tid).is_ok();
        }
        Some(if demoted { Force::Demoted } else { Force::NotDemoted })
    }

    /// Takes the gaps out of the rings.
    fn take(&mut self, epoch: Instant, gaps: &mut [Distribution], pending: &mut [Vec<Gap>]) {
        for ((drain, gaps), pending) in self.drains.iter_mut().zip(gaps).zip(pending) {
            while let Some(sample) = drain.pop() {
                gaps.push(sample.lateness.as_ns());
                let after = i64::try_from(sample.cycle).unwrap_or(i64::MAX);
                pending.push(Gap { at: epoch + Span::from_ns(after), length: sample.lateness });
            }
        }
    }

    /// Counts what is on all CPUs at once before `until`; later gaps stay.
    fn count(&mut self, pending: &mut [Vec<Gap>], until: Option<Instant>) {
        let earlier = |gaps: &mut Vec<Gap>| {
            let place = until.map(|until| gaps.partition_point(|gap| gap.at < until));
            let later = gaps.split_off(place.unwrap_or(gaps.len()));
            std::mem::replace(gaps, later)
        };
        let window: Vec<Vec<Gap>> = pending.iter_mut().map(earlier).collect();
        self.at_once.take(&window);
    }
}

/// From one window to the next. Long enough for any usual gap; short enough that other work waits
/// no longer than a window; and no round number, so that what comes every second, or at each tick,
/// falls into a rest one time and into a window another.
const FRAME_NS: u64 = 97_310_000;

/// The windows of an experiment.
///
/// They are the same on every CPU, so that what comes on all of them at once is seen.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Windows {
    /// The length of each.
    width: Span,
    /// Number of windows.
    count: u64,
}

impl Windows {
    /// As many as `duration` has room for, one at least, each `duty` of its frame, in (0, 1].
    fn of(duration: Span, duty: f64) -> Self {
        let width = Span::from_ns((FRAME_NS as f64 * duty.clamp(0.0, 1.0)) as i64);
        let count = duration.as_ns().max(1).unsigned_abs().div_ceil(FRAME_NS);
        Self { width, count }
    }

    /// From one window to the next.
    fn frame() -> Period {
        const FRAME: Option<Period> = Period::from_ns(FRAME_NS);
        FRAME.expect("positive")
    }

    /// The grid of windows, the first one soon after `now`.
    fn grid(now: Instant) -> Releases {
        Releases::new(now + Span::from_ms(5), Self::frame())
    }

    /// Time of all windows and rests.
    fn length(&self) -> Span {
        Span::from_ns(i64::try_from(FRAME_NS.saturating_mul(self.count)).unwrap_or(i64::MAX))
    }
}

/// Kinds of interrupts that are named for a CPU, at most.
const KINDS_MAX: usize = 5;

/// The counts of the kernel and the firmware up to one moment: steal, interrupts, system management
/// interrupts. A count that cannot be read is unknown, not zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Accounts {
    steal: StealTicks,
    interrupts: Option<CountTable>,
    smi: Option<SmiCount>,
}

impl Accounts {
    /// Reads them; the firmware's of `smi_cpu`, where the machine counts them.
    pub(crate) fn read(root: &Root, smi_cpu: Option<u32>) -> Self {
        Self {
            steal: StealTicks::read(root),
            interrupts: CountTable::read(root, "/proc/interrupts"),
            smi: smi_cpu.and_then(|cpu| SmiCount::read(root, cpu)),
        }
    }

    /// Time that the host took from a CPU since `before`, ns; `None` where unknown.
    fn steal_ns(&self, before: &Self, cpu: u32) -> Option<u64> {
        self.steal.since_ns(&before.steal, cpu)
    }

    /// The interrupts of a CPU since `before`, and the kinds that came most often.
    pub(crate) fn interrupts(&self, before: &Self, cpu: u32) -> Option<(u64, Vec<Interrupt>)> {
        let risen = self.interrupts.as_ref()?.risen(before.interrupts.as_ref()?, cpu)?;
        let sum = risen.iter().map(|kind| kind.count).sum();
        let most_often = risen.into_iter().take(KINDS_MAX);
        let kinds = most_often.map(|RisenCount { name, count }| Interrupt { name, count });
        Some((sum, kinds.collect()))
    }

    /// The firmware's interrupts since `before`.
    fn smi(&self, before: &Self) -> Option<u64> {
        Some(self.smi?.since(before.smi?))
    }
}

/// Overlaps within this of each other in the tick's period are at one place, ns.
const PLACE_NS: u64 = 40_000;
/// The place of the tick is one that this share of its periods has an overlap at, at least.
const TICK_SHARE: f64 = 0.1;

/// The times in which every CPU has a gap; each list is in order, and so is the result.
fn overlaps(cpus: &[Vec<Gap>]) -> Vec<Gap> {
    let Some((first, others)) = cpus.split_first() else { return Vec::new() };
    others.iter().fold(joined(first), |common, gaps| joined(&shared(&common, gaps)))
}

/// Gaps of which one ends where the next begins, as one.
fn joined(gaps: &[Gap]) -> Vec<Gap> {
    let mut joined: Vec<Gap> = Vec::with_capacity(gaps.len());
    for gap in gaps {
        match joined.last_mut() {
            Some(last) if last.at + last.length >= gap.at => {
                last.length = (gap.at + gap.length) - last.at;
            }
            _ => joined.push(*gap),
        }
    }
    joined
}

/// The times in both.
fn shared(a: &[Gap], b: &[Gap]) -> Vec<Gap> {
    let (mut in_a, mut in_b) = (0, 0);
    let mut overlaps = Vec::new();
    while let (Some(x), Some(y)) = (a.get(in_a), b.get(in_b)) {
        let at = x.at.max(y.at);
        let (end_a, end_b) = (x.at + x.length, y.at + y.length);
        let end = end_a.min(end_b);
        if at < end {
            overlaps.push(Gap { at, length: end - at });
        }
        if end_a <= end_b {
            in_a += 1;
        } else {
            in_b += 1;
        }
    }
    overlaps
}

/// Gaps that all CPUs have at once, added up by their place in the tick's period.
///
/// The host that stops a guest and the firmware take all CPUs at once, which no scheduler and no
/// device of one CPU does; so does the kernel's tick, which is told from them by its place in its
/// own period.
#[derive(Debug)]
struct OverlapTally {
    cpus: usize,
    tick_ns: Option<u64>,
    places: Vec<Overlaps>,
}

impl OverlapTally {
    /// Of so many CPUs, where the tick comes every `tick_ns`.
    fn new(cpus: usize, tick_ns: Option<u64>) -> Self {
        let tick_ns = tick_ns.filter(|&ns| ns >= 4 * PLACE_NS);
        let places = tick_ns.map_or(1, |ns| usize::try_from(ns / PLACE_NS).unwrap_or(1));
        Self { cpus, tick_ns, places: vec![Overlaps::default(); places] }
    }

    /// Takes in the gaps of each CPU in one window.
    fn take(&mut self, cpus: &[Vec<Gap>]) {
        for overlap in overlaps(cpus) {
            let place = self.place(overlap.at);
            self.places[place].add(&Overlaps {
                count: 1,
                total_ns: overlap.length.as_ns().unsigned_abs(),
                worst: Some(WorstGap::of(overlap)),
            });
        }
    }

    fn place(&self, at: Instant) -> usize {
        let Some(tick_ns) = self.tick_ns else { return 0 };
        let place = u128::from(at.as_ns() % tick_ns) * self.places.len() as u128;
        usize::try_from(place / u128::from(tick_ns)).unwrap_or(0)
    }

    /// The overlaps, in `spun` of spinning; `None` for one CPU.
    fn finish(self, spun: Span) -> Option<AtOnce> {
        if self.cpus < 2 {
            return None;
        }
        let count = self.places.len();
        let near = |middle: usize, at: usize| {
            let distance = middle.abs_diff(at);
            distance.min(count - distance) <= 1
        };
        let sum = |is_chosen: &dyn Fn(usize) -> bool| {
            let mut sum = Overlaps::default();
            let chosen = self.places.iter().enumerate().filter(|(at, _)| is_chosen(*at));
            chosen.for_each(|(_, overlaps)| sum.add(overlaps));
            sum
        };
        let ticks = self.tick_ns.map(|ns| spun.as_ns() as f64 / ns as f64);
        let around = |middle: usize| sum(&|at| near(middle, at));
        let middle = (0..count).max_by_key(|&middle| around(middle).count);
        let is_tick = |middle: &usize| {
            let count = around(*middle).count as f64;
            count > 0.0 && ticks.is_some_and(|ticks| count >= ticks * TICK_SHARE)
        };
        let middle = middle.filter(is_tick);
        let at_tick = |at: usize| middle.is_some_and(|middle| near(middle, at));
        Some(AtOnce {
            all: sum(&|_| true),
            tick: self.tick_ns.map(|_| sum(&at_tick)),
            elsewhere: sum(&|at| !at_tick(at)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::experiment::judge;
    use crate::testing::{Tree, guest};

    fn noise(duty: f64) -> NoiseExperiment {
        NoiseExperiment {
            cpus: vec![0, 1],
            thread: RtThread::any().fifo(90),
            threshold: Span::from_us(1),
            duration: Span::from_ms(1_000),
            duty,
            loads: ("idle".to_owned(), Vec::new()),
            housekeeping: Vec::new(),
            tick_hz: None,
            smi_cpu: None,
        }
    }

    #[test]
    fn a_full_spin_on_all_cpus_needs_throttling_and_half_of_it_does_not() {
        let judged = |duty, runtime_us| judge(&noise(duty).demands(), &guest(runtime_us));
        assert_eq!(judged(1.0, -1), Err(Risk::NoCpuLeft));
        assert_eq!(judged(1.0, 950_000).map(|cautions| cautions.len()), Ok(2));
        assert_eq!(judged(0.5, 950_000), Ok(vec![]));
        assert_eq!(judged(0.5, -1), Ok(vec![]));
        let ordinary = NoiseExperiment { thread: RtThread::any().other(), ..noise(1.0) };
        assert_eq!(judge(&ordinary.demands(), &guest(-1)), Ok(vec![]));
    }

    #[test]
    fn a_threshold_that_reads_of_the_clock_reach_is_refused() {
        assert_eq!(noise(0.5).check_threshold(25.0), Ok(()));
        let refused = noise(0.5).check_threshold(251.0).expect_err("refused");
        assert!(matches!(refused, Risk::TooFine { option: "--threshold", value_ns: 1_000, .. }));
    }

    #[test]
    fn lengths_are_in_steps_and_every_gap_is_in_one() {
        let mut busy = Distribution::default();
        let lengths_ns = [1_000, 1_500, 1_999, 2_000, 90_000, 3_000_000_000];
        lengths_ns.into_iter().for_each(|ns| busy.push(ns));
        let rows = Lengths::of(&[busy, Distribution::default()]);
        let first = &rows[0];
        assert_eq!((first.from_ns, first.to_ns, &first.counts[..]), (1_000, 2_000, &[3, 0][..]));
        let last = rows.last().expect("some");
        assert_eq!((last.from_ns, last.to_ns), (2_000_000_000, 5_000_000_000));
        assert_eq!(rows.iter().map(|row| row.counts[0]).sum::<u64>(), lengths_ns.len() as u64);
        assert!(rows.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert_eq!(Lengths::of(&[Distribution::default()]), []);
    }

    #[test]
    fn a_thread_that_does_not_come_out_of_its_window_is_ended() {
        let (seen, stop) = (Seen::default(), AtomicBool::new(false));
        let collected = thread::scope(|scope| {
            let (ready, began) = channel();
            let (seen, stop) = (&seen, &stop);
            scope.spawn(move || {
                seen.tid.store(process::tid(), Ordering::Release);
                ready.send(()).expect("it is waited for");
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            began.recv().expect("it runs");
            let windows = Windows::of(Span::from_ns(1), 0.5);
            let at_once = OverlapTally::new(1, None);
            let seen = std::slice::from_ref(seen);
            let collector =
                Collector { drains: Vec::new(), seen, windows, stop, at_once, looks_max: 5 };
            collector.run(&Windows::grid(Instant::from_ns(now_ns(ClockId::Monotonic))))
        });
        assert_eq!(collected.forced, Some(Force::Demoted));
        assert!(stop.load(Ordering::Relaxed));
    }

    #[test]
    fn windows_fill_the_duration_and_rest_as_they_should() {
        let windows = Windows::of(Span::from_ms(1_000), 0.5);
        assert_eq!((windows.count, windows.width), (11, Span::from_ns(48_655_000)));
        assert!(windows.length() >= Span::from_ms(1_000));
        assert_eq!(Windows::of(Span::from_ns(1), 1.0).count, 1);
        assert_eq!(Windows::of(Span::from_ms(1), 1.0).width.as_ns().unsigned_abs(), FRAME_NS);
    }

    #[test]
    fn nothing_that_comes_regularly_hides_in_the_rests() {
        let windows = Windows::of(Span::from_ms(60_000), 0.5);
        let grid = Windows::grid(Instant::from_ns(0));
        for every_ms in [1, 4, 10, 20, 50, 100, 250, 500, 1_000] {
            for phase_ms in [0, 13, 49, 77, 98] {
                let seen = (0..60_000 / every_ms).filter(|k| {
                    let at_ns: u64 = (k * every_ms + phase_ms % every_ms) * 1_000_000;
                    let since_ns = at_ns.checked_sub(grid.first().as_ns());
                    since_ns.is_some_and(|ns| ns % FRAME_NS < windows.width.as_ns().unsigned_abs())
                });
                let share = seen.count() as f64 / (60_000 / every_ms) as f64;
                assert!((0.4..0.6).contains(&share), "{every_ms} ms at {phase_ms}: {share}");
            }
        }
    }

    #[test]
    fn the_sum_of_interrupts_has_the_kinds_that_are_not_named_too() {
        let accounts = |factor: u64| {
            let rows = (1..=7).map(|kind| format!("I{kind}: {}\n", kind * factor));
            let table = "  CPU3\n".to_owned() + &rows.collect::<String>();
            let tree = Tree::new(&[("proc/interrupts", &table)]);
            Accounts::read(&tree.root(), None)
        };
        let (before, after) = (accounts(1), accounts(11));
        let (sum, kinds) = after.interrupts(&before, 3).expect("counted");
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!((sum, names), (280, vec!["I7", "I6", "I5", "I4", "I3"]));
        assert!(after.interrupts(&before, 1).is_none(), "it is offline");
        assert!(after.steal_ns(&before, 3).is_none());
    }

    #[test]
    fn this_machine_counts() {
        let root = Root::live();
        let before = Accounts::read(&root, None);
        let after = Accounts::read(&root, None);
        let cpu = punctual_os::affinity::get(0).expect("own").iter().next().expect("one");
        assert!(after.steal_ns(&before, cpu).is_some());
        assert_eq!(after.smi(&before), None);
    }

    fn gaps(pairs: &[(u64, i64)]) -> Vec<Gap> {
        let gap = |&(at, ns)| Gap { at: Instant::from_ns(at), length: Span::from_ns(ns) };
        pairs.iter().map(gap).collect()
    }

    /// The slow way: every nanosecond is looked at.
    fn model(cpus: &[Vec<Gap>]) -> Vec<Gap> {
        let within = |gaps: &[Gap], ns: u64| {
            let at = Instant::from_ns(ns);
            gaps.iter().any(|gap| gap.at <= at && at < gap.at + gap.length)
        };
        let mut runs: Vec<(u64, i64)> = Vec::new();
        for ns in 0..1_200 {
            if !cpus.is_empty() && cpus.iter().all(|gaps| within(gaps, ns)) {
                match runs.last_mut() {
                    Some((at, length)) if *at + length.unsigned_abs() == ns => *length += 1,
                    _ => runs.push((ns, 1)),
                }
            }
        }
        gaps(&runs)
    }

    fn list() -> impl Strategy<Value = Vec<Gap>> {
        prop::collection::vec((0..60u64, 1..40i64), 0..12).prop_map(|steps| {
            let mut at = 0;
            let place = |(rest, length): (u64, i64)| {
                let begin = at + rest;
                at = begin + length.unsigned_abs();
                (begin, length)
            };
            gaps(&steps.into_iter().map(place).collect::<Vec<_>>())
        })
    }

    proptest! {
        #[test]
        fn overlaps_are_those_of_the_slow_way(cpus in prop::collection::vec(list(), 0..4)) {
            prop_assert_eq!(overlaps(&cpus), model(&cpus));
        }
    }

    #[test]
    fn the_tick_is_told_from_what_comes_anywhere() {
        let tick_ns = 4_000_000;
        let mut tally = OverlapTally::new(2, Some(tick_ns));
        let tick = |k: u64| (k * tick_ns + 1_234_000 + k % 7 * 1_000, 3_000);
        let firmware = [(50_100_000, 200_000), (81_900_000, 150_000)];
        let mut listed: Vec<(u64, i64)> = (0..25).map(tick).chain(firmware).collect();
        listed.sort_unstable();
        tally.take(&[gaps(&listed), gaps(&listed)]);
        let found = tally.finish(Span::from_ms(100)).expect("two CPUs");
        assert_eq!(found.tick.as_ref().map(|tick| tick.count), Some(25));
        assert_eq!((found.all.count, found.elsewhere.count), (27, 2));
        let worst = found.elsewhere.worst.expect("two of them");
        assert_eq!((worst.at_ns, worst.length_ns), (50_100_000, 200_000));
        assert_eq!(found.elsewhere.total_ns, 350_000);
    }

    #[test]
    fn a_few_are_no_tick_and_one_cpu_has_none_at_once() {
        let some = gaps(&[(1_000, 500), (9_000_000, 500)]);
        let mut tally = OverlapTally::new(2, Some(4_000_000));
        tally.take(&[some.clone(), some.clone()]);
        let found = tally.finish(Span::from_ms(10_000)).expect("two CPUs");
        assert_eq!((found.tick.map(|tick| tick.count), found.elsewhere.count), (Some(0), 2));
        let mut unknown = OverlapTally::new(2, None);
        unknown.take(&[some.clone(), some.clone()]);
        let found = unknown.finish(Span::from_ms(10_000)).expect("two CPUs");
        assert_eq!((found.tick, found.elsewhere.count), (None, 2));
        assert!(OverlapTally::new(1, None).finish(Span::from_ms(1)).is_none());
    }
}
