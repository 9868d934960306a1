//! The errors of waits for an instant of the processor's counter: Maruti's experiment (*Temporal
//! accuracy on the Pentium Pro*, §4).
//!
//! For `measure accuracy`. Waits in a tight loop for targets that sweep all offsets, by each way to
//! read the counter, from aligned and split code, with warm and with flushed caches; the period of
//! the loop is found in the errors themselves. Runs one thread, never prints.

use std::f64::consts::TAU;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::RtThread;
use punctual_analysis::folding::FoldedPeriod;
use punctual_analysis::interval::Interval;
use punctual_analysis::rng::Rng;
use punctual_analysis::scatter::Scatter;
use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Period, Span};
use punctual_engine::clocks::{MachineClock, StampCost, Vdso, counter_rate};
use punctual_engine::session::ThreadSession;
use punctual_host::root::Root;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::perf::CountedEvent;
use punctual_os::polling::{self, Alignment, CounterRead, PolledExit};
use punctual_os::{cycles, memory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{
    ClockFacts, Context, Demand, Experiment, ExperimentError, ExperimentOutcome, cpu_of, demand,
    on_one_thread,
};
use crate::load::LoadSpec;
use crate::noise::Accounts;
use crate::processor::{ProcessorCount, ProcessorCounters, no_counters};

/// The share of the time that it rests.
const RESTS: f64 = 0.1;
/// About how long a sweep takes: how often it rests.
const ROUND_NS: u64 = 3_000_000;

/// Measures the errors of waits for an instant of the counter.
///
/// One thread on one CPU, with the session of a real-time loop; the ways to wait take turns, and it
/// rests a tenth of the time.
#[derive(Clone, Debug)]
pub struct AccuracyExperiment {
    /// The thread: its CPU, and the policy to request.
    pub thread: RtThread,
    /// Time of all ways together, about; each is swept once at least.
    pub duration: Span,
    /// Exits that are compared with this crate's own, in the order of rows.
    pub rivals: Vec<Calibrate>,
}

/// An exit that the caller compares with the loops of this experiment.
pub trait RivalExit {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// A note for its row, a sentence for the user; `None` where it needs none.
    fn note(&self) -> Option<String> {
        None
    }

    /// Waits so many ns by it; the error in ns. That is [`error_ns`] with the exit itself, so that
    /// nothing stands between the exit and its stamp.
    fn error_ns(&self, clock: &mut MachineClock, ns: f64) -> f64;
}

/// Makes such an exit, on the thread that will wait; `None` where this machine has none.
pub type Calibrate = fn(&mut MachineClock) -> Option<Box<dyn RivalExit>>;

impl Experiment for AccuracyExperiment {
    type Outcome = AccuracyOutcome;

    fn demands(&self) -> Vec<Demand> {
        let demand = |period| demand(&self.thread, period, 1.0 - RESTS);
        Period::from_ns(ROUND_NS).map(demand).into_iter().collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<AccuracyOutcome>, ExperimentError> {
        let stop = context.stop;
        on_one_thread(stop, || self.measure(stop))
    }
}

impl AccuracyExperiment {
    /// On the calling thread.
    fn measure(&self, stop: &AtomicBool) -> ExperimentOutcome<AccuracyOutcome> {
        let mut clock = MachineClock::best();
        let session = ThreadSession::enter(self.thread.pinned_to(), self.thread.policy());
        let cost = StampCost::measure(&mut clock);
        let tick_ns = tick_ns(&clock);
        let reads = std::iter::repeat_with(cycles::ordered).take(STEP_READS);
        let step_ticks = counter_rate(&clock).and_then(|_| step_ticks(reads));
        let mut cells = cells(&mut clock, &self.rivals);
        let (root, cpu) = (Root::live(), cpu_of(&self.thread));
        let counters = ProcessorCounters::open(&CountedEvent::OF_PROCESSOR, cpu);
        let end_ns = now_ns(ClockId::Monotonic) + self.duration.as_ns().max(0).unsigned_abs();
        let stopped = || stop.load(Ordering::Relaxed);
        let mut over = stopped();
        while !over {
            for cell in &mut cells {
                let before_ns = now_ns(ClockId::Monotonic);
                let before = Accounts::read(&root, None);
                let events = counters.as_ref().map_or_else(|_| Vec::new(), |open| open.read());
                cell.round(&mut clock, tick_ns);
                if let Ok(open) = &counters {
                    ProcessorCount::add(&mut cell.counters, &open.since(&events));
                }
                let counted = Accounts::read(&root, None).interrupts(&before, cpu);
                cell.sweep.end(counted.map(|(interrupts, _)| interrupts));
                let after_ns = now_ns(ClockId::Monotonic);
                let rest_ns = (after_ns - before_ns) as f64 * RESTS / (1.0 - RESTS);
                let _interrupted = sleep_until_ns(after_ns + rest_ns as u64);
                if stopped() {
                    break;
                }
            }
            over = stopped() || now_ns(ClockId::Monotonic) >= end_ns;
        }
        let refused = session.refused().to_vec();
        // What follows is arithmetic, for seconds where there are many sweeps.
        drop(session);
        let outcome = AccuracyOutcome {
            tick_ns,
            interrupted_from_ns: INTERRUPTED_NS as u64,
            rows: cells.iter().filter_map(|cell| cell.row(tick_ns)).collect(),
            no_counters: counters.err().map(|why| no_counters(&root, why)),
            step_ticks,
        };
        let facts = ClockFacts::of(&clock, cost, None);
        ExperimentOutcome::of_thread(outcome, facts, refused)
    }
}

/// The errors of waits for an instant of the counter, a row for each way to wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccuracyOutcome {
    /// One tick of the counter, in ns. All errors here are in ticks; with CLOCK_MONOTONIC as the
    /// clock a tick is 1 ns.
    pub tick_ns: f64,
    /// An exit that is later than this is one that something interrupted: it is counted apart.
    pub interrupted_from_ns: u64,
    /// One for each way to wait.
    pub rows: Vec<AccuracyRow>,
    /// Why interrupts are counted and nothing of the processor's own counters (cache misses,
    /// stalls); null where those were read, and in results of before.
    #[serde(default)]
    pub no_counters: Option<String>,
    /// The step in which the counter advances, in ticks: what divides all differences of
    /// consecutive readings. 1 where it takes every value; null where the counter is not trusted,
    /// and in results of before.
    #[serde(default)]
    pub step_ticks: Option<f64>,
}

/// Two periods are one within this, relative; two lengths of a poll differ beyond it.
const ALIKE: f64 = 0.05;
const APART: f64 = 0.2;
/// Steps of the counter in a poll from which on errors can repeat with the poll: below, the counter
/// has fewer than two values in each.
const STEPS_MIN: f64 = 2.0;
/// Consecutive readings whose differences show the step.
const STEP_READS: usize = 20_000;

/// What divides all differences of consecutive readings, in ticks; `None` where they are all equal.
fn step_ticks(readings: impl Iterator<Item = u64>) -> Option<f64> {
    fn common_divisor(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { common_divisor(b, a % b) }
    }
    let mut last = None;
    let differences =
        readings.filter_map(|reading| Some(reading.wrapping_sub(last.replace(reading)?)));
    let step = differences.fold(0, common_divisor);
    (step > 0).then_some(step as f64)
}

impl AccuracyOutcome {
    /// The step in which the counter advances, in ticks, where that is more than one. A loop that
    /// polls faster than it can follow shows this step instead of its own period:
    /// [`AccuracyRow::shows_polls`].
    pub fn counter_step(&self) -> Option<f64> {
        self.step_ticks.filter(|step| *step > 1.0).or_else(|| self.shared_period())
    }

    /// The period of all loops, in ticks, where it is one though their polls differ: the step of a
    /// counter whose readings do not show it, for it is no whole number of ticks.
    fn shared_period(&self) -> Option<f64> {
        let of_code =
            |row: &&AccuracyRow| row.code.is_some() && row.lead_ticks > 0.0 && row.cache == "warm";
        let known = |row: &AccuracyRow| Some((row.period?.ticks, row.poll_ticks?));
        let rows: Vec<(f64, f64)> = self.rows.iter().filter(of_code).filter_map(known).collect();
        let &(period, poll) = rows.first()?;
        let alike = rows.iter().all(|(ticks, _)| (ticks / period - 1.0).abs() < ALIKE);
        let apart = rows.iter().any(|(_, ticks)| (ticks / poll - 1.0).abs() > APART);
        (alike && apart).then_some(period)
    }
}

/// One way to wait for a target, with targets that sweep all offsets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccuracyRow {
    /// "rdtsc", "lfence+rdtsc", "rdtscp"; "cntvct", "isb+cntvct"; "vdso": clock_gettime; "plain":
    /// the polling loop of the library's clock; "corrected": left a little early, and the rest by a
    /// computed delay.
    pub exit: String,
    /// "aligned": the loop begins a cache line; "split": it lies in two; null where the compiler
    /// places it.
    pub code: Option<String>,
    /// "warm"; "cold data": the line that holds the target was flushed before; "cold code": the
    /// loop's own lines were flushed before; "cold polls": they were flushed before each poll.
    pub cache: String,
    /// The first offset from the entry to the target, in ticks.
    pub lead_ticks: f64,
    /// Offsets that were swept.
    pub offsets: u64,
    /// From one offset to the next, in ticks: a whole number; 1 in results of before.
    #[serde(default = "one_tick")]
    pub stride_ticks: f64,
    /// Sweeps over all of them; 0 in results of before, which do not tell. Quantiles, curve and
    /// period are of all sweeps, or of 400 that were drawn from them, each as likely as any other.
    #[serde(default)]
    pub sweeps: u64,
    /// Exits measured, interrupted ones not included.
    pub n: u64,
    /// Exits that something interrupted.
    pub interrupted: u64,
    /// The latest of these, in ns; null if there was none.
    pub interrupted_worst_ns: Option<f64>,
    /// The smallest error: the stamp right after the exit minus the target, in ticks.
    pub min_ticks: f64,
    /// Its quantile 0.05.
    pub p5_ticks: f64,
    /// Its median.
    pub p50_ticks: f64,
    /// Its quantile 0.95.
    pub p95_ticks: f64,
    /// The largest of the n.
    pub max_ticks: f64,
    /// From one poll to the next, in ticks: the mean of the wait where that is smallest, which no
    /// interrupt made longer; null where polls are not counted. With cold polls it has what flushed
    /// them as well.
    pub poll_ticks: Option<f64>,
    /// Scatter of the errors, in ticks; null in results of before.
    #[serde(default)]
    pub scatter: Option<Scatter>,
    /// Sweeps in which no interrupt of the CPU was counted: the paper disables interrupts. Null
    /// where the kernel does not count them, and in results of before.
    #[serde(default)]
    pub quiet_sweeps: Option<u64>,
    /// Scatter of the errors of these sweeps, in ticks; null where there is none.
    #[serde(default)]
    pub quiet: Option<Scatter>,
    /// Counts of the processor's own counters over all sweeps; empty where it has none, which
    /// `no_counters` explains, and in results of before.
    #[serde(default)]
    pub counters: Vec<ProcessorCount>,
    /// From one poll to the next in most sweeps, in ticks: the median of their medians; null where
    /// polls are not counted, and in results of before.
    #[serde(default)]
    pub poll_interval_ticks: Option<Interval>,
    /// The period of the errors over the offset, in single sweeps: their median over all sweeps is
    /// flat where loops were entered at many phases. Null where none stands out.
    pub period: Option<LoopPeriod>,
    /// That period as single sweeps have it, in ticks; null where fewer than half of them have one,
    /// and in results of before.
    #[serde(default)]
    pub period_ticks: Option<Interval>,
    /// The median error at each offset, in ticks; null where there is none.
    pub curve: Vec<Option<f64>>,
    /// The quantile 0.05 of the errors at each offset, in ticks, likewise; of few sweeps it is the
    /// smallest. Empty in results of before.
    #[serde(default)]
    pub p5_curve: Vec<Option<f64>>,
    /// The quantile 0.95 likewise; of few sweeps it is the largest.
    #[serde(default)]
    pub p95_curve: Vec<Option<f64>>,
    /// The errors of one sweep, in ticks; null where something interrupted; empty in results of
    /// before.
    #[serde(default)]
    pub single: Vec<Option<f64>>,
    /// The share of the variance of single sweeps that a sine of each period explains, the mean of
    /// them: of each period that was tried, in ticks, from the longest on; not in results.
    #[serde(skip)]
    pub periods: Vec<LoopPeriod>,
    /// The note of an exit of the caller's; not in results.
    #[serde(skip)]
    pub note: Option<String>,
}

fn one_tick() -> f64 {
    1.0
}

impl AccuracyRow {
    /// From the entry to the target at the offset with this number, in ticks.
    pub fn at_ticks(&self, offset: usize) -> f64 {
        self.lead_ticks + offset as f64 * self.stride_ticks
    }

    /// True where its errors can repeat with its polls, beside a counter that advances by `step`
    /// ticks: a poll takes two steps at least, and they do not repeat with the step.
    pub fn shows_polls(&self, step: f64) -> bool {
        let is_step = |period: LoopPeriod| (period.ticks / step - 1.0).abs() < ALIKE;
        self.poll_ticks.is_some_and(|poll| poll >= STEPS_MIN * step)
            && !self.period.is_some_and(is_step)
    }

    /// The way to wait and how it was entered, in short: `rdtsc`, `rdtsc split`, `rdtsc cold code`.
    pub fn name(&self) -> String {
        let mut parts = vec![self.exit.as_str()];
        parts.extend(self.code.as_deref().filter(|&code| code != "aligned"));
        match self.cache.as_str() {
            "warm" if self.lead_ticks == 0.0 => parts.push("at once"),
            "warm" => {}
            cold => parts.push(cold),
        }
        parts.join(" ")
    }
}

/// The period with which errors repeat over the offset.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopPeriod {
    /// In ticks.
    pub ticks: f64,
    /// The share of the variance over the offset that a sine of this period explains, in [0, 1]:
    /// the mean of single sweeps; a perfect sawtooth reaches 0.61.
    pub share: f64,
}

impl LoopPeriod {
    /// The same where the offsets of its sweep are so many ticks apart.
    fn stretched(self, stride_ticks: f64) -> Self {
        Self { ticks: self.ticks * stride_ticks, ..self }
    }
}

/// Offsets in a sweep: many periods of any loop that polls from a warm cache.
const OFFSETS: usize = 512;
/// Cold polls in a sweep at least: [`FEWEST`] periods of one and a half polls are the longest that
/// is looked for.
const COLD_POLLS: f64 = 1.5 * FEWEST as f64;
/// Waits that show how long a cold poll is.
const COLD_WAITS: usize = 32;
/// Polls of a wait whose mean distance counts.
const POLLS_MIN: u64 = 8;
/// Sweeps that quantiles are of at most: 1.6 MB.
const SWEEPS: usize = 400;
/// An exit later than this was interrupted: it is ten times what the paper aims at.
const INTERRUPTED_NS: f64 = 1_000.0;
/// From the entry to the first target, where the entry is to be over by then.
const LEAD_NS: f64 = 1_000.0;
/// From the entry to the first target for exits that take over so early themselves.
const LEAD_CORRECTED_NS: f64 = 3_000.0;
/// Units of [`Clock::fine`] in a nanosecond.
pub const FINE: u64 = 256;

/// A way to end a wait.
enum Exit {
    Polled(CounterRead, Alignment),
    Vdso,
    Plain,
    Rival(Box<dyn RivalExit>),
}

/// The memory that is cold at the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cold {
    Nothing,
    Data,
    Code,
    /// The code, before each poll.
    Polls,
}

/// One way to wait.
///
/// Allocates nothing while it measures. Each wait ends by the counter, after a few microseconds.
struct Cell {
    exit: Exit,
    cold: Cold,
    lead_ticks: f64,
    /// From one offset to the next.
    stride_ticks: f64,
    sweep: Sweep,
    /// The offset that a polling loop reads, in a line of its own.
    offset: Box<Line>,
    last: Option<PolledExit>,
    poll_ticks: Option<f64>,
    /// The polls of each wait of a sweep, and the median of each sweep's, in ticks.
    polls: Vec<f64>,
    sweep_polls: Vec<f64>,
    interrupted: u64,
    interrupted_worst_ticks: f64,
    counters: Vec<ProcessorCount>,
}

#[repr(align(128))]
#[derive(Debug, Default)]
struct Line(u64);

/// All ways that this machine has, with the counter as far as it is trusted.
fn cells(clock: &mut MachineClock, rivals: &[Calibrate]) -> Vec<Cell> {
    let mut cells = Vec::new();
    let tick_ns = tick_ns(clock);
    let lead = |ns: f64| ns / tick_ns;
    if counter_rate(clock).is_some() {
        let reads = [
            CounterRead::Unordered,
            CounterRead::Fenced,
            #[cfg(target_arch = "x86_64")]
            CounterRead::WithProcessor,
        ];
        for read in reads.into_iter().filter(|read| read.is_supported()) {
            for alignment in [Alignment::Aligned, Alignment::Split] {
                let exit = Exit::Polled(read, alignment);
                cells.push(Cell::new(exit, Cold::Nothing, lead(LEAD_NS)));
            }
        }
        // Short leads, so that what is cold is still missing when the target comes.
        for cold in [Cold::Nothing, Cold::Data, Cold::Code] {
            let exit = Exit::Polled(CounterRead::Unordered, Alignment::Aligned);
            cells.push(Cell::new(exit, cold, 0.0));
        }
        let exit = Exit::Polled(CounterRead::Unordered, Alignment::Aligned);
        let mut cold = Cell::new(exit, Cold::Polls, lead(LEAD_NS));
        cold.stretch();
        cells.push(cold);
    }
    cells.push(Cell::new(Exit::Vdso, Cold::Nothing, lead(LEAD_NS)));
    cells.push(Cell::new(Exit::Plain, Cold::Nothing, lead(LEAD_CORRECTED_NS)));
    for calibrate in rivals {
        let exit = calibrate(clock).map(Exit::Rival);
        cells.extend(exit.map(|exit| Cell::new(exit, Cold::Nothing, lead(LEAD_CORRECTED_NS))));
    }
    cells
}

/// A tick of the counter, or of CLOCK_MONOTONIC where the counter is not trusted.
fn tick_ns(clock: &MachineClock) -> f64 {
    counter_rate(clock).filter(|rate| rate.hz > 0.0).map_or(1.0, |rate| 1e9 / rate.hz)
}

impl Cell {
    fn new(exit: Exit, cold: Cold, lead_ticks: f64) -> Self {
        Self {
            exit,
            cold,
            lead_ticks,
            stride_ticks: 1.0,
            sweep: Sweep::new(OFFSETS, SWEEPS),
            offset: Box::default(),
            last: None,
            poll_ticks: None,
            polls: Vec::with_capacity(OFFSETS),
            sweep_polls: Vec::with_capacity(SWEEPS),
            interrupted: 0,
            interrupted_worst_ticks: 0.0,
            counters: Vec::new(),
        }
    }

    /// Sets the offsets of a loop of known code so far apart that a sweep has [`COLD_POLLS`] of its
    /// polls.
    fn stretch(&mut self) {
        let &Exit::Polled(read, alignment) = &self.exit else { return };
        for _ in 0..COLD_WAITS {
            self.polled(read, alignment, self.lead_ticks);
        }
        let poll_ticks = Interval::median(&self.polls).map_or(0.0, |median| median.value);
        self.stride_ticks = (poll_ticks * COLD_POLLS / OFFSETS as f64).ceil().max(1.0);
        self.polls.clear();
        self.poll_ticks = None;
    }

    /// One sweep over all offsets: a few milliseconds.
    fn round(&mut self, clock: &mut MachineClock, tick_ns: f64) {
        self.sweep.begin();
        clock.wake();
        for offset in 0..OFFSETS {
            let ticks = self.lead_ticks + offset as f64 * self.stride_ticks;
            let ns = ticks * tick_ns;
            let error = match &self.exit {
                &Exit::Polled(read, alignment) => self.polled(read, alignment, ticks),
                Exit::Vdso => {
                    let poll = |clock: &mut Vdso, target| while clock.now() < target {};
                    error_ns(&mut Vdso, ns, poll) / tick_ns
                }
                Exit::Plain => error_ns(clock, ns, plain) / tick_ns,
                Exit::Rival(rival) => rival.error_ns(clock, ns) / tick_ns,
            };
            self.take(error, INTERRUPTED_NS / tick_ns);
        }
        self.polls.sort_unstable_by(f64::total_cmp);
        if let Some(&median) = self.polls.get(self.polls.len() / 2)
            && self.sweep_polls.len() < SWEEPS
        {
            self.sweep_polls.push(median);
        }
        self.polls.clear();
    }

    /// Waits so many ticks by polls of the loop that run one at a time, each from flushed lines;
    /// the error in ticks.
    #[inline]
    fn polled_cold(&mut self, read: CounterRead, alignment: Alignment, ticks: f64) -> f64 {
        // A loop whose target has come polls once.
        self.offset.0 = 0;
        let from = cycles::ordered();
        let target = from.wrapping_add(ticks as u64);
        let mut polls = 0u64;
        loop {
            polls += 1;
            if let Some(last) = &self.last {
                last.flush_code();
            }
            let exit = polling::leave_at(read, alignment, from, &self.offset.0);
            self.last = Some(exit);
            if exit.polled.wrapping_sub(target).cast_signed() >= 0 {
                self.take_poll(exit.polled.wrapping_sub(from) as f64 / polls as f64);
                return exit.stamp.wrapping_sub(target).cast_signed() as f64;
            }
        }
    }

    /// Takes the mean time from poll to poll of a wait, in ticks.
    #[inline]
    fn take_poll(&mut self, ticks: f64) {
        self.poll_ticks = Some(self.poll_ticks.map_or(ticks, |least| least.min(ticks)));
        self.polls.push(ticks);
    }

    /// Waits so many ticks by a loop of known code; the error in ticks.
    #[inline]
    fn polled(&mut self, read: CounterRead, alignment: Alignment, ticks: f64) -> f64 {
        if self.cold == Cold::Polls {
            return self.polled_cold(read, alignment, ticks);
        }
        self.offset.0 = ticks as u64;
        match (self.cold, &self.last) {
            (Cold::Data, _) => memory::flush(std::slice::from_ref(&*self.offset)),
            (Cold::Code, Some(last)) => last.flush_code(),
            _ => {}
        }
        let from = cycles::ordered();
        let exit = polling::leave_at(read, alignment, from, &self.offset.0);
        self.last = Some(exit);
        if exit.polls >= POLLS_MIN {
            self.take_poll(exit.polled.wrapping_sub(from) as f64 / exit.polls as f64);
        }
        exit.stamp.wrapping_sub(from.wrapping_add(ticks as u64)).cast_signed() as f64
    }

    /// Takes an error in ticks.
    #[inline]
    fn take(&mut self, error: f64, interrupted_from: f64) {
        if error < interrupted_from {
            self.sweep.push(error);
        } else {
            self.interrupted += 1;
            self.interrupted_worst_ticks = self.interrupted_worst_ticks.max(error);
            self.sweep.push(f64::NAN);
        }
    }

    /// The row of its sweeps; `None` where no error is kept.
    fn row(&self, tick_ns: f64) -> Option<AccuracyRow> {
        let spread = self.sweep.spread()?;
        let spectra = self.sweep.spectra();
        let found = self.sweep.period(&spectra);
        let (exit, code) = self.names();
        let known = |error: &f64| error.is_finite().then_some(*error);
        let at_offsets = |share| self.sweep.at_offsets(share).iter().map(known).collect();
        Some(AccuracyRow {
            exit: exit.to_owned(),
            code: code.map(str::to_owned),
            cache: match self.cold {
                Cold::Nothing => "warm",
                Cold::Data => "cold data",
                Cold::Code => "cold code",
                Cold::Polls => "cold polls",
            }
            .to_owned(),
            lead_ticks: self.lead_ticks,
            offsets: OFFSETS as u64,
            stride_ticks: self.stride_ticks,
            sweeps: self.sweep.swept(),
            n: self.sweep.count(),
            interrupted: self.interrupted,
            interrupted_worst_ns: (self.interrupted > 0)
                .then_some(self.interrupted_worst_ticks * tick_ns),
            min_ticks: spread.min,
            p5_ticks: spread.p5,
            p50_ticks: spread.p50,
            p95_ticks: spread.p95,
            max_ticks: spread.max,
            poll_ticks: self.poll_ticks,
            scatter: self.sweep.scatter(),
            quiet_sweeps: self.sweep.quiet_sweeps,
            quiet: self.sweep.quiet_scatter(),
            counters: self.counters.clone(),
            poll_interval_ticks: Interval::median(&self.sweep_polls),
            period: found.map(|(period, _)| period.stretched(self.stride_ticks)),
            period_ticks: found.and_then(|(_, offsets)| Some(offsets?.times(self.stride_ticks))),
            curve: at_offsets(0.5),
            p5_curve: at_offsets(0.05),
            p95_curve: at_offsets(0.95),
            single: self.sweep.single().iter().map(known).collect(),
            periods: Spectrum::mean(&spectra)
                .iter()
                .flat_map(Spectrum::periods)
                .map(|period| period.stretched(self.stride_ticks))
                .collect(),
            note: match &self.exit {
                Exit::Rival(rival) => rival.note(),
                Exit::Polled(..) | Exit::Vdso | Exit::Plain => None,
            },
        })
    }

    fn names(&self) -> (&'static str, Option<&'static str>) {
        let arm = cfg!(target_arch = "aarch64");
        match &self.exit {
            Exit::Polled(read, alignment) => {
                let name = match read {
                    CounterRead::Unordered if arm => "cntvct",
                    CounterRead::Unordered => "rdtsc",
                    CounterRead::Fenced if arm => "isb+cntvct",
                    CounterRead::Fenced => "lfence+rdtsc",
                    #[cfg(target_arch = "x86_64")]
                    CounterRead::WithProcessor => "rdtscp",
                };
                let code = match alignment {
                    Alignment::Aligned => "aligned",
                    Alignment::Split => "split",
                };
                (name, Some(code))
            }
            Exit::Vdso => ("vdso", None),
            Exit::Plain => ("plain", None),
            Exit::Rival(rival) => (rival.name(), None),
        }
    }
}

/// The plain loop: polls until the target has come.
///
/// # Real-time: in loop, waits
#[inline(never)]
pub fn plain<C: Clock>(clock: &mut C, target: Instant) {
    let target = target.as_ns().wrapping_mul(FINE);
    while target.wrapping_sub(clock.fine()).cast_signed() > 0 {}
}

/// Waits so many ns on `clock` by `exit`; the error in ns: the stamp after it minus the target.
///
/// # Real-time: in loop, waits
#[inline]
pub fn error_ns<C: Clock>(clock: &mut C, ns: f64, exit: impl FnOnce(&mut C, Instant)) -> f64 {
    let target = clock.now() + Span::from_ns(ns as i64);
    exit(clock, target);
    let late = clock.fine_now().wrapping_sub(target.as_ns().wrapping_mul(FINE));
    late.cast_signed() as f64 / FINE as f64
}

/// Frequencies that are tried for each that the sweep resolves.
const OVERSAMPLE: usize = 8;
/// Sweeps that are searched for a period: a few milliseconds each.
const SEARCHED: usize = 32;
/// A period of one sweep that differs from that of all by less than this factor is the same one.
const NEAR: f64 = 1.2;
/// The shortest period that is looked for, in offsets.
const SHORTEST: f64 = 3.0;
/// A sine that explains less of the variance than this is no period: among noise alone one of 512
/// offsets reaches it once in some thousand sweeps (256·(1−s)²⁵⁴).
pub const SHARE_MIN: f64 = 0.05;

/// The errors at each offset: counts and extremes of all sweeps; of more sweeps than fit, a sample
/// for the quantiles, each as likely to be in it (Vitter's algorithm R).
///
/// Over memory that was allocated before, however many sweeps there are.
#[derive(Debug)]
struct Sweep {
    offsets: usize,
    /// Whole sweeps, one after the other.
    errors: Vec<f64>,
    capacity: usize,
    /// Sweeps that were begun.
    swept: u64,
    /// Where the next error goes; `None` where its sweep is not in the sample.
    at: Option<usize>,
    random: Rng,
    /// Of each kept sweep, whether no interrupt came in it; and how many had none.
    quiet: Vec<bool>,
    quiet_sweeps: Option<u64>,
    count: u64,
    min: f64,
    max: f64,
}

/// The errors in short, in their own unit.
#[derive(Clone, Debug, PartialEq)]
struct Spread {
    min: f64,
    p5: f64,
    p50: f64,
    p95: f64,
    max: f64,
}

impl Sweep {
    /// Of so many offsets, with room for so many sweeps, at least one.
    fn new(offsets: usize, sweeps: usize) -> Self {
        let capacity = offsets * sweeps;
        Self {
            offsets,
            errors: Vec::with_capacity(capacity),
            capacity,
            swept: 0,
            at: None,
            random: Rng::new(0),
            quiet: Vec::with_capacity(sweeps),
            quiet_sweeps: None,
            count: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }

    /// Begins a sweep: an error at each offset follows, from the first on.
    fn begin(&mut self) {
        self.swept += 1;
        let kept_sweeps = self.capacity / self.offsets;
        self.at = match self.errors.len() < self.capacity {
            true => Some(self.errors.len()),
            false => {
                let place = self.random.below(usize::try_from(self.swept).unwrap_or(usize::MAX));
                (place < kept_sweeps).then_some(place * self.offsets)
            }
        };
    }

    /// Takes the error at the next offset; NaN for a sample that is left out.
    #[inline]
    fn push(&mut self, error: f64) {
        if error.is_finite() {
            self.count += 1;
            self.min = self.min.min(error);
            self.max = self.max.max(error);
        }
        let Some(at) = self.at else { return };
        match self.errors.get_mut(at) {
            Some(place) => *place = error,
            None => self.errors.push(error),
        }
        self.at = Some(at + 1);
    }

    /// Ends a sweep in which so many interrupts were counted; `None` where they are not.
    fn end(&mut self, interrupts: Option<u64>) {
        let is_quiet = interrupts == Some(0);
        if interrupts.is_some() {
            self.quiet_sweeps = Some(self.quiet_sweeps.unwrap_or(0) + u64::from(is_quiet));
        }
        let Some(last) = self.at.and_then(|at| at.checked_sub(1)) else { return };
        match self.quiet.get_mut(last / self.offsets) {
            Some(place) => *place = is_quiet,
            None => self.quiet.push(is_quiet),
        }
    }

    /// Number of sweeps begun.
    fn swept(&self) -> u64 {
        self.swept
    }

    /// Number of errors, without those that are left out.
    fn count(&self) -> u64 {
        self.count
    }

    /// The errors in short; `None` where there are none.
    fn spread(&self) -> Option<Spread> {
        let mut errors: Vec<f64> =
            self.errors.iter().copied().filter(|error| error.is_finite()).collect();
        errors.sort_by(f64::total_cmp);
        let last = errors.len().checked_sub(1)?;
        let at = |share: f64| errors[(share * last as f64).round() as usize];
        Some(Spread { min: self.min, p5: at(0.05), p50: at(0.5), p95: at(0.95), max: self.max })
    }

    /// Scatter of the errors; `None` where there are none.
    fn scatter(&self) -> Option<Scatter> {
        scatter(self.errors.iter().copied())
    }

    /// The same of the sweeps in which no interrupt came.
    fn quiet_scatter(&self) -> Option<Scatter> {
        let sweeps = self.errors.chunks_exact(self.offsets).zip(&self.quiet);
        scatter(sweeps.filter(|(_, is_quiet)| **is_quiet).flat_map(|(errors, _)| errors).copied())
    }

    /// The last sweep that is kept whole.
    fn single(&self) -> &[f64] {
        self.errors.chunks_exact(self.offsets).next_back().unwrap_or_default()
    }

    /// The spectra of some of the sweeps, each by itself: the share of its variance that a sine of
    /// each period explains.
    fn spectra(&self) -> Vec<Spectrum> {
        let sweeps = self.errors.chunks_exact(self.offsets);
        let step = sweeps.len().div_ceil(SEARCHED).max(1);
        let spectrum = |errors: &[f64]| Spectrum::of(errors, FEWEST);
        sweeps.step_by(step).filter_map(spectrum).collect()
    }

    /// The period of the errors in these single sweeps, and what those have it as; `None` where
    /// none stands out.
    fn period(&self, found: &[Spectrum]) -> Option<(LoopPeriod, Option<Interval>)> {
        let period = Spectrum::mean(found)?.period(SHARE_MIN)?;
        // What one sweep has by chance lies anywhere: that of all is looked for near it.
        let near = |own: &LoopPeriod| (own.ticks / period.ticks).ln().abs() < NEAR.ln();
        let own = found.iter().filter_map(|spectrum| spectrum.period(SHARE_MIN)).filter(near);
        let own: Vec<f64> = own.map(|own| own.ticks).collect();
        let enough = own.len() * 2 >= found.len();
        // No finer than the frequencies that are tried.
        let half = period.ticks.powi(2) / (2 * OVERSAMPLE * self.offsets) as f64;
        let within = Interval::between(-half, 0.0, half);
        let ticks = Interval::median(&own).filter(|_| enough).map(|ticks| ticks.plus(within));
        Some((period, ticks))
    }

    /// The error at each offset that this share of the sweeps is below, from the first offset on;
    /// NaN where there is none.
    fn at_offsets(&self, share: f64) -> Vec<f64> {
        let quantile = |offset: usize| {
            let at = self.errors.iter().skip(offset).step_by(self.offsets).copied();
            let mut errors: Vec<f64> = at.filter(|error| error.is_finite()).collect();
            errors.sort_by(f64::total_cmp);
            let rank = (share * errors.len() as f64) as usize;
            errors.get(rank.min(errors.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
        };
        (0..self.offsets).map(quantile).collect()
    }
}

/// Scatter of errors; `None` where there are none but those that are left out.
fn scatter(errors: impl Iterator<Item = f64>) -> Option<Scatter> {
    let known = errors.filter(|error| error.is_finite());
    let parts = known.map(|error| (error * FINE as f64).round() as i64);
    Some(Scatter::of_series(parts)?.times(1.0 / FINE as f64))
}

/// Periods that a sweep has at least of any that is looked for, and a block of samples.
const FEWEST: usize = 4;
const FEWEST_OF_BLOCK: usize = 2;

/// The periods with which values repeat, in samples, looked for in blocks of which each is in the
/// order of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeriodOfBlocks {
    /// The best sine, up to [`Self::longest_sine`]; `None` where none stands out.
    pub sine: Option<LoopPeriod>,
    /// The best pattern of any shape, one spike among them, in the longest block.
    pub pattern: Option<FoldedPeriod>,
    /// The longest sine that was looked for: half the length of the shortest block but the last.
    pub longest_sine: usize,
    /// The longest pattern that was.
    pub longest_pattern: usize,
}

/// Looks for both. A wave is both a sine and a pattern.
pub fn period_of_blocks(blocks: &[Vec<i64>]) -> PeriodOfBlocks {
    // The last may have been cut off where the room ended.
    let whole = if blocks.len() > 1 { &blocks[..blocks.len() - 1] } else { blocks };
    let length = whole.iter().map(Vec::len).min().unwrap_or(0);
    let spectrum = |block: &Vec<i64>| {
        let values: Vec<f64> = block[..length].iter().map(|ns| *ns as f64).collect();
        Spectrum::of(&values, FEWEST_OF_BLOCK)
    };
    let found: Vec<Spectrum> = whole.iter().filter_map(spectrum).collect();
    let longest = blocks.iter().max_by_key(|block| block.len()).map_or(&[][..], Vec::as_slice);
    PeriodOfBlocks {
        sine: Spectrum::mean(&found).and_then(|mean| mean.period(SHARE_MIN)),
        pattern: FoldedPeriod::of(longest, SHARE_MIN),
        longest_sine: length / FEWEST_OF_BLOCK,
        longest_pattern: FoldedPeriod::longest(longest.len()),
    }
}

/// The share of the variance of a curve that a sine of each period explains, of those tried.
struct Spectrum {
    /// Steps of the curve.
    steps: usize,
    /// Periods that it has at least of each that is tried.
    fewest: usize,
    shares: Vec<f64>,
}

impl Spectrum {
    /// Of a curve with NaN where it is not known; `None` where it is too short, mostly unknown or
    /// flat.
    fn of(curve: &[f64], fewest: usize) -> Option<Self> {
        let steps = curve.len();
        let known = || curve.iter().copied().filter(|error| error.is_finite());
        let count = known().count();
        let mean = known().sum::<f64>() / count as f64;
        let power = known().map(|error| (error - mean).powi(2)).sum::<f64>();
        if steps < 16 || count * 2 < steps || power <= 0.0 {
            return None;
        }
        let whole = count as f64 * power;
        let share = |number: usize| {
            // A turn of the phase a step: no sine of each.
            let (turn_sine, turn_cosine) =
                (TAU * number as f64 / (OVERSAMPLE * steps) as f64).sin_cos();
            let (mut cosine, mut sine) = (1.0f64, 0.0f64);
            let (mut real, mut imaginary) = (0.0, 0.0);
            for error in curve {
                if error.is_finite() {
                    real += (error - mean) * cosine;
                    imaginary += (error - mean) * sine;
                }
                (cosine, sine) = (
                    cosine * turn_cosine - sine * turn_sine,
                    sine * turn_cosine + cosine * turn_sine,
                );
            }
            2.0 * (real * real + imaginary * imaginary) / whole
        };
        Some(Self { steps, fewest, shares: Self::tried(steps, fewest).map(share).collect() })
    }

    /// The numbers of the frequencies that are tried, from the fewest periods in the curve on.
    fn tried(steps: usize, fewest: usize) -> std::ops::RangeInclusive<usize> {
        fewest * OVERSAMPLE..=(steps as f64 / SHORTEST) as usize * OVERSAMPLE
    }

    /// The mean of several of the same length; `None` without any.
    fn mean(found: &[Self]) -> Option<Self> {
        let (steps, fewest) = (found.first()?.steps, found.first()?.fewest);
        let count = found.first()?.shares.len();
        let mean = |at: usize| {
            found.iter().map(|spectrum| spectrum.shares[at]).sum::<f64>() / found.len() as f64
        };
        Some(Self { steps, fewest, shares: (0..count).map(mean).collect() })
    }

    /// All periods that were tried, in steps, from the longest on.
    fn periods(&self) -> impl Iterator<Item = LoopPeriod> + '_ {
        let ticks = |number| (OVERSAMPLE * self.steps) as f64 / number as f64;
        let tried = Self::tried(self.steps, self.fewest).zip(&self.shares);
        tried.map(move |(number, share)| LoopPeriod { ticks: ticks(number), share: share.min(1.0) })
    }

    /// The period that explains most, in steps; `None` where that is less than `least`.
    fn period(&self, least: f64) -> Option<LoopPeriod> {
        let most = self.periods().max_by(|a, b| a.share.total_cmp(&b.share));
        most.filter(|most| most.share >= least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors of a loop that polls every `poll`, entered at the same phase each time.
    fn sawtooth(poll: f64, noise: f64) -> Vec<f64> {
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as f64 / (1u64 << 31) as f64 - 0.5
        };
        (0..512u32).map(|offset| poll - f64::from(offset) % poll + noise * random()).collect()
    }

    fn period(curve: &[f64]) -> Option<LoopPeriod> {
        Spectrum::of(curve, FEWEST)?.period(SHARE_MIN)
    }

    #[test]
    fn the_period_is_that_of_single_sweeps_whose_phases_differ() {
        let mut sweep = Sweep::new(512, 40);
        for number in 0..40usize {
            sweep.begin();
            let errors = sawtooth(32.0, 4.0);
            // Entered at another phase each time: the median over sweeps is flat.
            (0..512).for_each(|at| sweep.push(errors[(at + number * 13) % 512]));
        }
        assert!(period(&sweep.at_offsets(0.5)).is_none_or(|found| found.share < 0.3));
        let spectra = sweep.spectra();
        let (found, ticks) = sweep.period(&spectra).expect("a period");
        // The curve that is drawn has its peak there.
        let mean = Spectrum::mean(&spectra).expect("sweeps");
        let drawn: Vec<LoopPeriod> = mean.periods().collect();
        assert!(drawn.is_sorted_by(|a, b| a.ticks > b.ticks) && drawn.contains(&found));
        assert!(drawn.iter().all(|period| period.share <= found.share));
        assert!((found.ticks - 32.0).abs() < 0.3 && found.share > 0.3, "{found:?}");
        let ticks = ticks.expect("in every sweep");
        let (low, high) = (ticks.low.expect("an end"), ticks.high.expect("an end"));
        assert!(low <= 32.0 && 32.0 <= high && high - low < 1.0, "{ticks}");
        assert_eq!(sweep.single().len(), 512);
        let scatter = sweep.scatter().expect("errors");
        assert!(scatter.middle().is_some_and(|middle| (26.0..34.0).contains(&middle.value)));
        assert_eq!(scatter.n, 512 * 40);
    }

    #[test]
    fn the_period_of_a_polling_loop_is_found_in_its_errors() {
        for poll in [9.5, 31.0, 32.0, 36.7, 100.0] {
            let LoopPeriod { ticks, share } = period(&sawtooth(poll, 4.0)).expect("a period");
            // Within a step of the frequencies that are tried.
            assert!((ticks - poll).abs() <= poll * poll / 512.0 / 4.0, "{ticks} for {poll}");
            assert!((0.3..=1.0).contains(&share), "{share}");
        }
    }

    #[test]
    fn noise_and_too_little_have_no_period() {
        assert_eq!(period(&sawtooth(1.0, 30.0)), None);
        assert_eq!(period(&[1.0, 2.0, 1.0, 2.0]), None);
        assert_eq!(period(&[f64::NAN; 512]), None);
        assert_eq!(period(&[5.0; 512]), None);
    }

    #[test]
    fn the_period_of_samples_is_found_up_to_half_a_block() {
        let block = |phase: usize| -> Vec<i64> {
            let at = |number: usize| ((number + phase) % 512) as i64;
            (0..1_333).map(|number| at(number) * 10 + number as i64 % 7).collect()
        };
        // The phases differ, as others have their turns between two blocks; the last is cut off.
        let blocks = [block(0), block(200), block(77)[..300].to_vec()];
        let found = period_of_blocks(&blocks);
        assert!(found.sine.is_some_and(|sine| (sine.ticks - 512.0).abs() < 30.0), "{found:?}");
        assert_eq!((found.longest_sine, found.longest_pattern), (666, 166));
        let noise: Vec<i64> = sawtooth(1.0, 3e4).iter().map(|value| *value as i64).collect();
        let none =
            PeriodOfBlocks { sine: None, pattern: None, longest_sine: 256, longest_pattern: 64 };
        assert_eq!(period_of_blocks(&[noise]), none);
        let nothing = PeriodOfBlocks { longest_sine: 0, longest_pattern: 0, ..none };
        assert_eq!(period_of_blocks(&[]), nothing);
    }

    #[test]
    fn one_spike_in_512_samples_is_a_pattern_and_no_sine() {
        let spike = |at: i64| if at % 512 == 9 { 4_000 } else { 0 };
        let block: Vec<i64> = (0..4_096).map(|at| spike(at) + at * at % 97).collect();
        let found = period_of_blocks(&[block]);
        assert_eq!(found.pattern.map(|pattern| pattern.samples), Some(512), "{found:?}");
    }

    #[test]
    fn a_loop_of_cold_polls_ends_at_its_target_and_never_before() {
        let mut clock = MachineClock::best();
        let tick_ns = tick_ns(&clock);
        let is_cold = |cell: &Cell| cell.cold == Cold::Polls;
        // Where the counter is not trusted there is no such loop.
        for mut cell in cells(&mut clock, &[]).into_iter().filter(is_cold) {
            cell.round(&mut clock, tick_ns);
            let row = cell.row(tick_ns);
            let row = row.as_ref();
            assert!(row.is_none_or(|row| row.min_ticks >= 0.0), "{row:?}");
            assert!(row.is_none_or(|row| row.cache == "cold polls"), "{row:?}");
            assert_eq!(cell.sweep.swept(), 1);
        }
    }

    #[test]
    fn a_sweep_of_cold_polls_is_long_enough_for_a_period_of_one_and_a_half_of_them() {
        let mut clock = MachineClock::best();
        let tick_ns = tick_ns(&clock);
        let is_cold = |cell: &Cell| cell.cold == Cold::Polls;
        // Where the counter is not trusted there is no such loop.
        for mut cell in cells(&mut clock, &[]).into_iter().filter(is_cold) {
            cell.stretch();
            assert!(cell.stride_ticks >= 1.0 && cell.stride_ticks.fract() == 0.0);
            // What a machine with longer polls would have.
            cell.stride_ticks = cell.stride_ticks.max(3.0);
            cell.round(&mut clock, tick_ns);
            let Some(row) = cell.row(tick_ns) else { continue };
            // The first offset is no whole number of ticks.
            let swept = row.at_ticks(511) - row.at_ticks(0) - 511.0 * cell.stride_ticks;
            assert!(swept.abs() < 1e-6, "{swept}");
            assert!(row.poll_ticks.is_some_and(|ticks| ticks > 0.0), "cold polls are counted");
            let longest = row.periods.first().map(|period| period.ticks);
            let swept = OFFSETS as f64 * cell.stride_ticks;
            assert!(longest.is_none_or(|ticks| ticks == swept / FEWEST as f64), "{longest:?}");
        }
    }

    #[test]
    fn the_step_of_a_counter_is_what_divides_all_differences_of_its_readings() {
        let step = |readings: &[u64]| step_ticks(readings.iter().copied());
        assert_eq!(step(&[1_007, 1_047, 1_107, 1_207]), Some(20.0));
        assert_eq!(step(&[7, 7, 7]), None);
        assert_eq!((step(&[]), step(&[3])), (None, None));
        assert_eq!(step(&[100, 120, 141]), Some(1.0));
        // Readings that go over the end of the counter differ as others do.
        assert_eq!(step(&[u64::MAX - 9, 10, 30]), Some(20.0));
    }

    #[test]
    fn quantiles_and_curve_leave_out_what_is_told_apart() {
        let mut sweep = Sweep::new(2, 3);
        assert_eq!(sweep.spread(), None);
        for errors in [[1.0, 10.0], [f64::NAN, 12.0], [3.0, 14.0]] {
            sweep.begin();
            errors.into_iter().for_each(|error| sweep.push(error));
        }
        let spread = sweep.spread().expect("five errors");
        assert_eq!((spread.min, spread.p50, spread.max), (1.0, 10.0, 14.0));
        let at_offsets = [0.05, 0.5, 0.95].map(|share| sweep.at_offsets(share));
        assert_eq!(at_offsets, [[1.0, 10.0], [3.0, 12.0], [3.0, 14.0]]);
        assert_eq!((sweep.swept(), sweep.count()), (3, 5));
    }

    #[test]
    fn sweeps_that_something_interrupted_are_told_from_quiet_ones() {
        let mut sweep = Sweep::new(2, 3);
        assert_eq!((sweep.quiet_sweeps, sweep.quiet_scatter()), (None, None));
        let rounds = [([1.0, 2.0], Some(0)), ([1.0, 900.0], Some(1)), ([3.0, f64::NAN], Some(0))];
        for (errors, interrupts) in rounds {
            sweep.begin();
            errors.into_iter().for_each(|error| sweep.push(error));
            sweep.end(interrupts);
        }
        assert_eq!(sweep.quiet_sweeps, Some(2));
        let quiet = sweep.quiet_scatter().expect("three errors");
        assert_eq!((quiet.n, quiet.range()), (3, 2.0));
        assert_eq!(sweep.scatter().map(|scatter| scatter.n), Some(5));
        // One that takes the place of another brings its own answer; not counted is not quiet.
        for _ in 0..200 {
            sweep.begin();
            [5.0, 5.0].into_iter().for_each(|error| sweep.push(error));
            sweep.end(None);
        }
        assert_eq!((sweep.quiet_sweeps, sweep.quiet.len()), (Some(2), 3));
        assert!(sweep.quiet_scatter().is_none_or(|quiet| quiet.range() < 3.0));
    }

    #[test]
    fn sweeps_beyond_the_room_count_and_each_is_as_likely_in_the_quantiles() {
        let (offsets, kept_sweeps, sweeps) = (4, 400, 40_000);
        let mut sweep = Sweep::new(offsets, kept_sweeps);
        let memory = sweep.errors.capacity();
        for number in 0..sweeps {
            sweep.begin();
            for offset in 0..offsets {
                // The machine changes half way, and is interrupted now and then; one is a stall.
                let level = if number < sweeps / 2 { 10.0 } else { 30.0 };
                let told_apart = number % 10 == 0 && offset == 3;
                let stall = if number == 31_111 && offset == 1 { 500.0 } else { 0.0 };
                let error = level + offset as f64 + stall;
                sweep.push(if told_apart { f64::NAN } else { error });
            }
        }
        assert_eq!(sweep.errors.capacity(), memory);
        let apart = sweeps / 10;
        assert_eq!((sweep.swept(), sweep.count()), (sweeps, sweeps * 4 - apart));
        let spread = sweep.spread().expect("errors");
        // The extremes are of all; the quantiles are of both halves.
        assert_eq!((spread.min, spread.max), (10.0, 531.0));
        assert!(spread.p5 < 14.0 && spread.p95 >= 30.0, "{spread:?}");
        let late = sweep.errors.iter().filter(|error| **error >= 30.0).count();
        let known = sweep.errors.iter().filter(|error| error.is_finite()).count();
        // Of 400 in two halves: six standard deviations.
        assert!((0.35..0.65).contains(&(late as f64 / known as f64)), "{late} of {known}");
    }
}
