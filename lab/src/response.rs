//! The answers of threads to a stimulus: the full loop of the Windows CE benchmark (Tacke and
//! Ricci, *Benchmarking Real-time Determinism in Windows CE*).
//!
//! For `measure response`. A stimulus wakes stage 1, the thread nearest to the interrupt (a thread
//! is no interrupt handler: that is the driver's); stage 1 answers and wakes stage 2, the
//! application's thread, which answers too. Runs threads, never prints.

mod source;

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use punctual_analysis::scatter::Scatter;
use punctual_analysis::summary::{Distribution, SummaryStats};
use punctual_core::time::{Period, Span};
use punctual_engine::clocks::{MachineClock, Reading, StampCost};
use punctual_engine::safety::is_real_time;
use punctual_engine::session::{Refusal, ThreadSession};
use punctual_engine::spawn;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::descriptor::Descriptor;
use punctual_os::futex::{self, Scope};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::{events, process, signal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError,
    ExperimentOutcome, ExperimentProgress, Loading,
};
use crate::load::{LoadSpec, Polygons};
use source::{Source, Stimulus};

pub use source::{SOURCES, SourceName, SourceRow};

/// Stimuli of a condition at most: each keeps 56 bytes.
pub const STIMULI_MAX: u64 = 1_000_000;
/// Time of both stages for a stimulus, about, where nothing is known yet, ns.
const ANSWER_NS: f64 = 40_000.0;

/// Measures the answers of two stages to stimuli.
#[derive(Clone, Debug)]
pub struct ResponseExperiment {
    /// The source that stimuli come from.
    pub source: SourceName,
    /// The CPU of both stages.
    pub cpu: u32,
    /// The CPU that raises stimuli.
    pub stimulus_cpu: u32,
    /// From one stimulus to the next.
    pub period: Period,
    /// Time that each condition is measured for.
    pub duration: Span,
    /// The policy of stage 1, and of the thread that raises stimuli.
    pub first: SchedPolicy,
    /// The policy of stage 2.
    pub second: SchedPolicy,
    /// The work of a thread of stage 2's policy on its CPU; `None`: there is none.
    pub competitor: Option<Competitor>,
    /// The conditions: their names and loads.
    pub conditions: Vec<(String, Vec<LoadSpec>)>,
}

impl ResponseExperiment {
    /// Stimuli of a condition.
    pub fn stimuli(&self) -> u64 {
        (self.duration.as_ns().max(0).unsigned_abs() / self.period.as_ns().max(1)).max(1)
    }

    /// Runs condition `number`, with its loads.
    fn condition(
        &self,
        (number, source): (usize, &Source),
        loading: &mut Loading<'_>,
        stop: &AtomicBool,
    ) -> Result<Ran, ExperimentError> {
        loading.begin(number, self.duration).map_err(ExperimentError::Load)?;
        let ran = self.planned(number, source, stop).run(loading);
        loading.end(number);
        Ok(ran?)
    }

    /// One trial without loads, whose stimuli are raised by polling the clock: for short periods.
    /// `counted` is a count that others keep.
    ///
    /// # Errors
    /// A thread could not be had.
    pub(crate) fn trial(
        &self,
        (number, source): (usize, &Source),
        counted: Option<&AtomicU64>,
        loading: &mut Loading<'_>,
        stop: &AtomicBool,
    ) -> io::Result<Ran> {
        Condition { polls: true, counted, ..self.planned(number, source, stop) }.run(loading)
    }

    /// Condition `number`.
    fn planned<'a>(
        &self,
        number: usize,
        source: &'a Source,
        stop: &'a AtomicBool,
    ) -> Condition<'a> {
        Condition {
            number,
            source,
            stimuli: self.stimuli(),
            period_ns: self.period.as_ns(),
            cpu: self.cpu,
            stimulus_cpu: self.stimulus_cpu,
            policies: [self.first, self.second, self.first],
            competitor: self.competitor,
            polls: false,
            counted: None,
            stop,
        }
    }

    fn row(
        &self,
        name: &str,
        ran: &Ran,
        stamps_within: Result<Option<Span>, String>,
    ) -> ResponseRow {
        let (mut late, mut kernel) = (Distribution::default(), Distribution::default());
        let times = ran.times();
        for stimulus in &times {
            if stimulus.raised_ns > 0 {
                late.push(stimulus.late_ns.cast_signed());
            }
            if stimulus.raised_ns > 0 && stimulus.kernel_ns > 0 {
                kernel.push(stimulus.kernel_ns.cast_signed() - stimulus.raised_ns.cast_signed());
            }
        }
        let policies = [&ran.stages[0], &ran.stages[1]].map(|stage| {
            let policy = stage.policy;
            (policy.name().to_owned(), policy.priority())
        });
        let stamps_within = stamps_within.and_then(|within| between(&times, within));
        let within = *stamps_within.as_ref().unwrap_or(&None);
        let [first, second] = policies;
        let parts = [(first, None), (second, ran.stages[1].slice_ns)];
        ResponseRow {
            condition: condition_name(name, self.competitor),
            competitor_rate: ran.competitor_rate,
            stimuli: times.iter().filter(|times| times.raised_ns > 0).count() as u64,
            not_raised: ran.not_raised(),
            raised_late_ns: late.stats(),
            unexpected: ran.stages[0].unexpected,
            kernel_ns: Some(kernel.stats())
                .filter(|stats| stats.min.is_some() && stamps_within.is_ok()),
            kernel_within_ns: within.map_or(0, |within| within.as_ns().unsigned_abs()),
            kernel_left_out: stamps_within.err(),
            stages: stages(&times, self.period.as_ns(), parts),
            lost: ran.lost().map(io::Error::to_string),
        }
    }
}

impl Experiment for ResponseExperiment {
    type Outcome = ResponseOutcome;

    fn demands(&self) -> Vec<Demand> {
        let share = (ANSWER_NS / self.period.as_ns() as f64).min(1.0);
        let demand = |cpu, policy, share| Demand {
            cpu: Some(cpu),
            real_time: is_real_time(policy),
            period: self.period,
            share,
        };
        let mut demands = vec![demand(self.cpu, self.first, share)];
        if self.competitor.is_some() {
            demands.push(demand(self.cpu, self.second, COMPETES));
        }
        if !self.source.row().by_kernel {
            demands.push(demand(self.stimulus_cpu, self.first, share));
        }
        demands
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        self.conditions.clone()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<ResponseOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let begun = Reading::take();
        let (first, note) = self.source.open().map_err(ExperimentError::Source)?;
        let mut opened = Some(first);
        let cpus = [self.stimulus_cpu, self.cpu];
        let floor = measure_floor(cpus, self.first, self.period.as_ns(), stop);
        let mut outcome = ResponseOutcome {
            source: self.source.to_string(),
            path: self.source.row().path.to_owned(),
            note,
            period_ns: self.period.as_ns(),
            cpu: self.cpu,
            stimulus_cpu: (!self.source.row().by_kernel).then_some(self.stimulus_cpu),
            floor,
            rows: Vec::new(),
        };
        let (mut refused, mut lost, mut no_load) = (Vec::new(), false, None);
        for (number, (name, _)) in self.conditions.iter().enumerate() {
            if stop.load(Ordering::Relaxed) || lost {
                break;
            }
            // What a source still has from the condition before is no stimulus of this one; a
            // device is closed before it is opened again.
            let source =
                match opened.take().map_or_else(|| self.source.open(), |source| Ok((source, None)))
                {
                    Ok((source, _)) => source,
                    Err(why) => {
                        lost = true;
                        let name = condition_name(name, self.competitor);
                        outcome.rows.push(ResponseRow::lost(&name, why));
                        break;
                    }
                };
            let ran = match self.condition((number, &source), loading, stop) {
                // What was measured before it is kept.
                Err(ExperimentError::Load(why)) if number > 0 => {
                    no_load = Some(why);
                    break;
                }
                ran => ran?,
            };
            refused.extend(ran.refused());
            let row = self.row(name, &ran, source.stamps_within());
            lost = row.lost.is_some();
            outcome.rows.push(row);
        }
        clock.discipline();
        let end = match no_load {
            Some(why) => ExperimentEnd::Load(why),
            None if lost => ExperimentEnd::Lost,
            None => ExperimentEnd::by(stop),
        };
        Ok(ExperimentOutcome {
            end,
            clock: ClockFacts::of(&clock, cost, begun.until(&Reading::take())),
            refused,
            disturbances: Vec::new(),
            taken: Vec::new(),
            outcome,
        })
    }
}

/// The answers of two stages to stimuli.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseOutcome {
    /// Where stimuli came from: "eventfd", "futex", "timerfd", "udp", "pty", or one with its
    /// device, as --source has it: "serial:/dev/ttyS1".
    pub source: String,
    /// The path that they passed through, and what that leaves out.
    pub path: String,
    /// A note where the source is not quite as requested; null otherwise.
    pub note: Option<String>,
    /// From one stimulus to the next.
    pub period_ns: u64,
    /// The CPU of both stages.
    pub cpu: u32,
    /// The CPU that raises stimuli; null where the kernel's timer does.
    pub stimulus_cpu: Option<u32>,
    /// A bare futex ping-pong between the two CPUs, before anything else; null where one CPU does
    /// both.
    pub floor: Option<Floor>,
    /// One for each condition.
    pub rows: Vec<ResponseRow>,
}

/// Two threads that wake each other by a futex, as often as stimuli come (100 µs to 5 ms apart).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Floor {
    /// Round trips.
    pub n: u64,
    /// Half of each.
    pub half_round_trip_ns: SummaryStats,
}

/// The stimuli of one condition, and how they were answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseRow {
    /// "idle", or the names of the loads; "beside polygons", "cpu, beside polygons" with a
    /// competitor.
    pub condition: String,
    /// Polygons that the competitor drew a second; null without one, and where it draws none.
    #[serde(default)]
    pub competitor_rate: Option<f64>,
    /// Stimuli that were raised.
    pub stimuli: u64,
    /// Stimuli that were not raised, because the one who raises them was late by a period or more.
    pub not_raised: u64,
    /// Lateness of raised stimuli, against their grid: the instrument's own floor. Zero for the
    /// kernel's timer, whose expiry is the stimulus.
    pub raised_late_ns: SummaryStats,
    /// Events of the source that were no stimulus (noise, a line that bounces, another sender), or
    /// that were found after the stimulus that followed theirs.
    #[serde(default)]
    pub unexpected: u64,
    /// Stage 0: from the stimulus to the kernel's own stamp of its event, of those that stage 1
    /// answered one by one; null where the source has none.
    pub kernel_ns: Option<SummaryStats>,
    /// By how much stage 0 may be off, ns: where the kernel's stamps were on another clock. 0 where
    /// they were not, or there are none.
    #[serde(default)]
    pub kernel_within_ns: u64,
    /// Why stage 0 is left out; null where it is not, or where the source has none.
    #[serde(default)]
    pub kernel_left_out: Option<String>,
    /// Stage 1, then stage 2.
    pub stages: Vec<StageRow>,
    /// Why the condition ended before its time: the source was lost; null where it did not.
    pub lost: Option<String>,
}

impl ResponseRow {
    /// A condition that did not begin.
    fn lost(condition: &str, why: String) -> Self {
        Self {
            condition: condition.to_owned(),
            competitor_rate: None,
            stimuli: 0,
            not_raised: 0,
            raised_late_ns: Distribution::default().stats(),
            unexpected: 0,
            kernel_ns: None,
            kernel_within_ns: 0,
            kernel_left_out: None,
            stages: Vec::new(),
            lost: Some(why),
        }
    }
}

/// The answers of one stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageRow {
    /// 1: the thread nearest to the interrupt; 2: the application's, which stage 1 wakes.
    pub stage: u32,
    /// The policy that it really had: "SCHED_FIFO".
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// Stimuli that it started to answer one by one.
    pub answered: u64,
    /// Stimuli that it found together with a later one, or not at all.
    pub skipped: u64,
    /// Stimuli whose answer was complete before the next one was due.
    pub served: u64,
    /// From the stimulus to the first instruction of the stage.
    pub start_ns: SummaryStats,
    /// From the stimulus to the complete answer.
    pub complete_ns: SummaryStats,
    /// The largest start minus the smallest; null where none was answered.
    pub response_range_ns: Option<f64>,
    /// From the quantile 0.025 of the starts to 0.975: where 95 % of them lie; null below 40, and
    /// in results of before.
    #[serde(default)]
    pub middle_ns: Option<f64>,
    /// Time that the kernel lets it run before an equal of SCHED_RR has its turn; null for other
    /// policies, and in results of before.
    #[serde(default)]
    pub slice_ns: Option<u64>,
    /// Scatter of the starts, ns, of all stimuli: one that was found together with a later one
    /// waited until that one's answer. Null where none was answered, and in results of before.
    #[serde(default)]
    pub scatter: Option<Scatter>,
    /// The traces that an oscilloscope would show; null where none was answered.
    #[serde(default)]
    pub trace: Option<StageTrace>,
}

/// The instants at which a stimulus was raised and answered, ns on CLOCK_MONOTONIC; 0 where it was
/// not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) raised_ns: u64,
    /// How long after it was due it was raised.
    pub(crate) late_ns: u64,
    kernel_ns: u64,
    start_ns: [u64; 2],
    /// Of stage 1, of stage 2.
    pub(crate) complete_ns: [u64; 2],
}

impl Times {
    /// Returns true where this stage's answer was complete before the next stimulus was due: a
    /// period after this one was, however late it was raised.
    pub(crate) fn is_served(&self, stage: usize, period_ns: u64) -> bool {
        let next_ns = self.raised_ns.saturating_sub(self.late_ns).saturating_add(period_ns);
        self.complete_ns[stage] > 0 && self.complete_ns[stage] < next_ns
    }
}

/// `within`, where all stamps that may be off by that lie between their stimulus and its answer.
///
/// # Errors
/// They do not: the clock that they are on was set, and perhaps set back.
fn between(times: &[Times], within: Option<Span>) -> Result<Option<Span>, String> {
    let Some(bound) = within else { return Ok(None) };
    let bound_ns = bound.as_ns().unsigned_abs();
    let is_outside = |stimulus: &&Times| {
        stimulus.kernel_ns > 0
            && (stimulus.kernel_ns.saturating_add(bound_ns) < stimulus.raised_ns
                || stimulus.kernel_ns > stimulus.start_ns[0].saturating_add(bound_ns))
    };
    match times.iter().filter(is_outside).count() {
        0 => Ok(within),
        outside => Err(format!(
            "{outside} of its stamps are earlier than the stimulus or later than the answer"
        )),
    }
}

/// Time from each stimulus to the start of its answer, or of the first one after it that was
/// answered, ns; those that none followed are left out.
fn waited(raised: &[&Times], stage: usize) -> Vec<i64> {
    let mut answered_ns = None;
    let mut waited: Vec<i64> = Vec::with_capacity(raised.len());
    for stimulus in raised.iter().rev() {
        if stimulus.complete_ns[stage] > 0 {
            answered_ns = Some(stimulus.start_ns[stage]);
        }
        waited
            .extend(answered_ns.map(|ns: u64| ns.cast_signed() - stimulus.raised_ns.cast_signed()));
    }
    waited.reverse();
    waited
}

/// The fewest starts of which 95 % in the middle are known: one lies beyond each end.
const MIDDLE_MIN: usize = 40;

/// From the quantile 0.025 of these to 0.975, ns: where 95 % of them lie.
pub fn middle_ns(starts_ns: &[i64]) -> Option<f64> {
    let mut sorted = starts_ns.to_vec();
    sorted.sort_unstable();
    let beyond = sorted.len() / MIDDLE_MIN;
    let [low, high] = [sorted.get(beyond)?, sorted.get(sorted.len().checked_sub(1 + beyond)?)?];
    (beyond > 0).then(|| (high - low) as f64)
}

/// The name of a condition: a thread of stage 2's priority is no idle machine.
fn condition_name(name: &str, competitor: Option<Competitor>) -> String {
    match (competitor, name) {
        (None, _) => name.to_owned(),
        (Some(competitor), "idle") => format!("beside {}", competitor.words()),
        (Some(competitor), _) => format!("{name}, beside {}", competitor.words()),
    }
}

/// The policy that a stage really had, its priority, and its slice of the round robin.
type StagePolicy = ((String, Option<u8>), Option<u64>);

/// The rows of both stages from the times of all stimuli that were raised.
fn stages(times: &[Times], period_ns: u64, policies: [StagePolicy; 2]) -> Vec<StageRow> {
    let raised: Vec<&Times> = times.iter().filter(|times| times.raised_ns > 0).collect();
    let row = |(stage, ((policy, priority), slice_ns)): (usize, StagePolicy)| {
        let (mut start, mut complete) = (Distribution::default(), Distribution::default());
        let mut served = 0;
        let mut starts_ns = Vec::with_capacity(raised.len());
        let answered = raised.iter().filter(|stimulus| stimulus.complete_ns[stage] > 0);
        let after = |ns: u64, stimulus: &Times| {
            i64::try_from(ns).unwrap_or(i64::MAX) - stimulus.raised_ns.cast_signed()
        };
        let mut count = 0;
        for stimulus in answered {
            count += 1;
            let start_ns = after(stimulus.start_ns[stage], stimulus);
            start.push(start_ns);
            let complete_ns = after(stimulus.complete_ns[stage], stimulus);
            starts_ns.push(start_ns);
            complete.push(complete_ns);
            served += u64::from(stimulus.is_served(stage, period_ns));
        }
        let (start_ns, complete_ns) = (start.stats(), complete.stats());
        StageRow {
            stage: stage as u32 + 1,
            policy,
            priority,
            answered: count,
            skipped: raised.len() as u64 - count,
            served,
            response_range_ns: start_ns.max.zip(start_ns.min).map(|(max, min)| max - min),
            middle_ns: middle_ns(&starts_ns),
            slice_ns,
            start_ns,
            complete_ns,
            scatter: Scatter::of_series(waited(&raised, stage)),
            trace: trace(starts_ns),
        }
    };
    policies.into_iter().enumerate().map(row).collect()
}

/// From the start of the threads to the first stimulus.
const LEAD_NS: u64 = 10_000_000;
/// Time between two reports of progress, and between two looks for a stop.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_NS: u64 = 50_000_000;
/// The last answers may take this long.
const ANSWERS: Duration = Duration::from_millis(300);

/// The parameters of a condition.
///
/// Both stages up, stimuli raised on a grid, everything ended in order. Each thread is bounded: the
/// stages sleep between stimuli, the generator between instants, and all end with the condition.
struct Condition<'a> {
    number: usize,
    source: &'a Source,
    stimuli: u64,
    period_ns: u64,
    cpu: u32,
    stimulus_cpu: u32,
    /// Of stage 1, stage 2 and the thread that raises stimuli.
    policies: [SchedPolicy; 3],
    /// The work of a thread of stage 2's policy beside it.
    competitor: Option<Competitor>,
    /// True where stimuli are raised by polling the clock: for short periods.
    polls: bool,
    /// A count that others keep: how it grows from the first stimulus to the last.
    counted: Option<&'a AtomicU64>,
    stop: &'a AtomicBool,
}

/// The result of a condition.
pub(crate) struct Ran {
    slots: Vec<Slot>,
    stages: [EndedStage; 2],
    raised: Raised,
    /// Polygons that the competitor drew a second.
    competitor_rate: Option<f64>,
}

impl Ran {
    /// The instants at which each stimulus was raised and answered.
    pub(crate) fn times(&self) -> Vec<Times> {
        self.slots.iter().map(Slot::times).collect()
    }

    /// Stimuli that were not raised, because their turn came a period late.
    pub(crate) fn not_raised(&self) -> u64 {
        self.raised.not_raised
    }

    /// The requests of its threads that the kernel refused.
    pub(crate) fn refused(&self) -> impl Iterator<Item = Refusal> {
        self.stages.iter().flat_map(|stage| &stage.refused).chain(&self.raised.refused).copied()
    }

    /// Growth of the other count, and the time that it took, ns.
    pub(crate) fn counted(&self) -> Option<(u64, u64)> {
        self.raised.counted
    }

    /// The error by which it ended before its time; `None` where it did not.
    pub(crate) fn lost(&self) -> Option<&io::Error> {
        self.raised.lost.as_ref().or(self.stages[0].lost.as_ref())
    }
}

/// The result of the generator at its end.
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
    fn run(&self, loading: &mut Loading<'_>) -> io::Result<Ran> {
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
        let (first, second, raised, competitor_rate) = thread::scope(|scope| {
            let (to_us, ready) = channel::<()>();
            let [first_policy, second_policy, raiser_policy] = self.policies;
            let up = || {
                let to_us = to_us.clone();
                // Who does not wait any more needs no message.
                move || to_us.send(()).unwrap_or(())
            };
            let shared = &shared;
            let ending = Ending(shared);
            let (go, took) = (up(), up());
            let answer = move || shared.second(self.cpu, second_policy, go);
            let second = spawn::scoped(scope, "punctual-second", answer)?;
            let answer = move || shared.first(self.cpu, first_policy, took);
            let first = spawn::scoped(scope, "punctual-first", answer)?;
            let mut threads = 2;
            let mut beside = None;
            if let Some(competitor) = self.competitor {
                let go = up();
                beside = Some(spawn::scoped(scope, "punctual-other", move || {
                    shared.compete(competitor, (self.cpu, second_policy), go)
                })?);
                threads += 1;
            }
            for _ in 0..threads {
                // One that does not come up in time is waited for no longer.
                let _late = ready.recv_timeout(Duration::from_secs(5));
            }
            let (over, done) = channel::<()>();
            let raiser = spawn::scoped(scope, "punctual-raise", move || {
                let _over = over;
                self.raise(shared, raiser_policy)
            })?;
            self.report(&done, shared, loading);
            let raised = joined(raiser);
            await_answers(shared, self.stop);
            ending.end(&first, &second);
            Ok::<_, io::Error>((joined(first), joined(second), raised, beside.and_then(joined)))
        })?;
        Ok(Ran { slots, stages: [first, second], raised, competitor_rate })
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
        let counted = || {
            self.counted.map(|count| (count.load(Ordering::Relaxed), now_ns(ClockId::Monotonic)))
        };
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
            // Not the gate: a stimulus that is late by less than a period is raised all the same.
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

/// The value that the thread returned; its panic goes on here.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
}

/// Round trips at most and at least, the first of which are not counted.
const TRIPS: std::ops::RangeInclusive<u64> = 300..=2_000;
const COLD: u64 = 100;
/// Time of all of them, about, where the least do not take longer, ns.
const ALL_NS: u64 = 1_000_000_000;
/// From one to the next: as from one stimulus to the next, since a CPU that idles for longer wakes
/// later, within these limits.
const APART_NS: std::ops::RangeInclusive<u64> = 100_000..=5_000_000;
/// A round trip that takes longer than this ends it.
const PATIENCE_NS: u64 = 500_000_000;

/// Measures from the first CPU to the second and back, each `period_ns`; `None` where they are one,
/// or no thread could be had.
///
/// Two threads wake each other by a futex, with nothing around it. Bounded by a number of round
/// trips and by a time for each.
fn measure_floor(
    [near, far]: [u32; 2],
    policy: SchedPolicy,
    period_ns: u64,
    stop: &AtomicBool,
) -> Option<Floor> {
    if near == far {
        return None;
    }
    let (ping, pong) = (AtomicU64::new(0), AtomicU64::new(0));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let answering = spawn::scoped(scope, "punctual-pong", || {
            let _session = ThreadSession::enter(Some(far), policy);
            while !over.load(Ordering::Acquire) {
                let seen = ping.load(Ordering::Acquire);
                if seen == pong.load(Ordering::Relaxed) {
                    futex::wait(&ping, seen as u32, Scope::Process);
                    continue;
                }
                pong.store(seen, Ordering::Release);
                let _woken = futex::wake(&pong, 1, Scope::Process);
            }
        });
        let measuring = spawn::scoped(scope, "punctual-ping", || {
            let _session = ThreadSession::enter(Some(near), policy);
            trips(&ping, &pong, period_ns, stop)
        });
        let floor = measuring.ok().and_then(|measuring| measuring.join().ok());
        over.store(true, Ordering::Release);
        if let Ok(answering) = answering {
            while !answering.is_finished() {
                ping.fetch_add(1, Ordering::Release);
                let _woken = futex::wake(&ping, 1, Scope::Process);
                thread::yield_now();
            }
        }
        floor.filter(|floor| floor.n > 0)
    })
}

/// The round trips, until one takes too long.
fn trips(ping: &AtomicU64, pong: &AtomicU64, period_ns: u64, stop: &AtomicBool) -> Floor {
    let apart_ns = period_ns.clamp(*APART_NS.start(), *APART_NS.end());
    let count = (ALL_NS / apart_ns).clamp(*TRIPS.start(), *TRIPS.end());
    let mut halves = Distribution::default();
    let mut n = 0;
    let mut next_ns = now_ns(ClockId::Monotonic);
    for trip in 1..=count {
        next_ns = (next_ns + apart_ns).max(now_ns(ClockId::Monotonic));
        // Not the gate: round trips lie apart, on no grid, and none may be left out.
        let _interrupted = sleep_until_ns(next_ns);
        let begin_ns = now_ns(ClockId::Monotonic);
        ping.store(trip, Ordering::Release);
        let _woken = futex::wake(ping, 1, Scope::Process);
        while pong.load(Ordering::Acquire) != trip {
            futex::wait_until(pong, (trip - 1) as u32, Scope::Process, begin_ns + PATIENCE_NS);
            if now_ns(ClockId::Monotonic) >= begin_ns + PATIENCE_NS {
                break;
            }
        }
        let took_ns = now_ns(ClockId::Monotonic) - begin_ns;
        if took_ns >= PATIENCE_NS || stop.load(Ordering::Relaxed) {
            break;
        }
        if trip > COLD {
            halves.push((took_ns / 2).cast_signed());
            n += 1;
        }
    }
    Floor { n, half_round_trip_ns: halves.stats() }
}

/// Points of a trace.
const POINTS: usize = 200;
/// Single edges: the paper's oscilloscope averaged as many.
const SINGLE: usize = 128;
/// The share of starts within its length: one that comes far later would leave nothing to be seen
/// of all others.
const SHOWN: f64 = 0.999;
/// The end of a trace, as a multiple of when that share has started.
const BEYOND: f64 = 1.2;

/// The rising edge of a stage's output over the time since the stimulus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageTrace {
    /// From one point to the next; the first is at the stimulus.
    pub step_ns: f64,
    /// The share of answers that had started by each point, in [0, 1].
    pub started: Vec<f64>,
    /// Answers that started after the last point.
    pub beyond: u64,
    /// When each of the last 128 answers started, in ns after its stimulus.
    pub single_ns: Vec<i64>,
}

/// The trace of starts in ns after their stimulus; `None` without.
fn trace(mut starts_ns: Vec<i64>) -> Option<StageTrace> {
    let single_ns = starts_ns[starts_ns.len().saturating_sub(SINGLE)..].to_vec();
    starts_ns.sort_unstable();
    let n = starts_ns.len();
    let last = starts_ns.get(((n as f64 * SHOWN) as usize).min(n.checked_sub(1)?))?;
    let step_ns = (last.max(&1).unsigned_abs() as f64 * BEYOND / POINTS as f64).max(1.0);
    let by = |point: usize| {
        let ns = point as f64 * step_ns;
        starts_ns.partition_point(|start| *start as f64 <= ns)
    };
    let started = (0..POINTS).map(|point| by(point) as f64 / n as f64).collect();
    Some(StageTrace { step_ns, started, beyond: (n - by(POINTS - 1)) as u64, single_ns })
}

/// The instants at which a stimulus was raised and answered, shared by its threads.
#[derive(Debug, Default)]
struct Slot {
    raised_ns: AtomicU64,
    /// Time after it was due, ns.
    late_ns: AtomicU64,
    kernel_ns: AtomicU64,
    start_ns: [AtomicU64; 2],
    complete_ns: [AtomicU64; 2],
}

impl Slot {
    /// Its times, once all threads are done.
    fn times(&self) -> Times {
        let read = |word: &AtomicU64| word.load(Ordering::Acquire);
        Times {
            raised_ns: read(&self.raised_ns),
            late_ns: read(&self.late_ns),
            kernel_ns: read(&self.kernel_ns),
            start_ns: [read(&self.start_ns[0]), read(&self.start_ns[1])],
            complete_ns: [read(&self.complete_ns[0]), read(&self.complete_ns[1])],
        }
    }
}

/// The data that all threads of a condition share.
///
/// Between their first and last stimulus the threads of the stages allocate and lock nothing; the
/// times go into memory that was there before.
#[derive(Debug)]
struct Shared<'a> {
    source: &'a Source,
    /// One for each stimulus.
    slots: &'a [Slot],
    /// The latest stimulus that stage 1 answered: what stage 2 waits for.
    handed: AtomicU64,
    /// The number of the last stimulus that each stage answered: the channels that a scope would
    /// show.
    answers: [AtomicU64; 2],
    /// Set when all stimuli are over.
    over: AtomicBool,
    /// The thread of stage 1, whose waits a signal ends; 0 before it is there.
    waiting: AtomicI32,
}

/// The result of a stage at its end.
#[derive(Debug)]
struct EndedStage {
    policy: SchedPolicy,
    /// Its slice of the round robin.
    slice_ns: Option<u64>,
    refused: Vec<Refusal>,
    /// Events that were no stimulus.
    unexpected: u64,
    /// The error by which it ended before its time; `None` where it did not.
    lost: Option<io::Error>,
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
    fn first(&self, cpu: u32, policy: SchedPolicy, ready: impl FnOnce()) -> EndedStage {
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
        EndedStage { policy: session.policy(), slice_ns: None, refused, unexpected, lost }
    }

    /// Stage 2: waits for stage 1.
    fn second(&self, cpu: u32, policy: SchedPolicy, ready: impl FnOnce()) -> EndedStage {
        let session = ThreadSession::enter(Some(cpu), policy);
        let takes_turns = matches!(session.policy(), SchedPolicy::RoundRobin(_));
        let slice_ns = scheduler::slice_ns(0).ok().filter(|_| takes_turns);
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
        EndedStage { policy: session.policy(), slice_ns, refused, unexpected: 0, lost: None }
    }
}

/// Times that the competitor computes and rests in turn, ns: seven tenths of the time, and no
/// longer at a stretch than a slice of the round robin usually is (100 ms; [`StageRow::slice_ns`]).
const COMPUTES_NS: u64 = 14_000_000;
const RESTS_NS: u64 = 6_000_000;
/// The share of the time that it computes.
const COMPETES: f64 = 0.7;

/// The work of a thread of stage 2's policy and priority on its CPU, for seven tenths of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Competitor {
    /// Computes for 14 ms and rests for 6.
    Computes,
    /// Draws polygons for 14 ms and rests for 6; after each polygon it gives way to threads of its
    /// priority (sched_yield(2)), as a program does that a system call makes wait.
    Polygons,
}

impl Competitor {
    /// Its name in those of conditions.
    pub fn words(self) -> &'static str {
        match self {
            Self::Computes => "an equal",
            Self::Polygons => "polygons",
        }
    }
}

impl Shared<'_> {
    /// Works beside the stages with the policy of the second, until all is over. The polygons that
    /// it drew a second, where it draws.
    fn compete(
        &self,
        competitor: Competitor,
        (cpu, policy): (u32, SchedPolicy),
        ready: impl FnOnce(),
    ) -> Option<f64> {
        let _session = ThreadSession::enter(Some(cpu), policy);
        let (mut work, mut polygons, mut drawn) = (1u64, Polygons::new(0), 0u64);
        ready();
        let begun_ns = now_ns(ClockId::Monotonic);
        while !self.over.load(Ordering::Acquire) {
            let until_ns = now_ns(ClockId::Monotonic) + COMPUTES_NS;
            while now_ns(ClockId::Monotonic) < until_ns && !self.over.load(Ordering::Relaxed) {
                match competitor {
                    Competitor::Computes => work = black_box(work.wrapping_mul(work) | 1),
                    Competitor::Polygons => {
                        polygons.draw();
                        drawn += 1;
                        thread::yield_now();
                    }
                }
            }
            let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + RESTS_NS);
        }
        let took_ns = now_ns(ClockId::Monotonic) - begun_ns;
        (drawn > 0 && took_ns > 0).then(|| drawn as f64 / (took_ns as f64 / 1e9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stage_0_is_left_out_with_the_reason_and_the_rest_is_kept() {
        let ordinary = SchedPolicy::Other;
        let experiment = ResponseExperiment {
            source: "udp".parse().expect("a source"),
            cpu: 0,
            stimulus_cpu: 0,
            period: Period::from_ns(1_000_000).expect("a period"),
            duration: Span::from_ms(1),
            first: ordinary,
            second: ordinary,
            competitor: None,
            conditions: Vec::new(),
        };
        let stage = || EndedStage {
            policy: ordinary,
            slice_ns: None,
            refused: Vec::new(),
            unexpected: 0,
            lost: None,
        };
        let slot = |_| {
            let slot = Slot::default();
            slot.raised_ns.store(1_000, Ordering::Relaxed);
            slot.kernel_ns.store(990, Ordering::Relaxed);
            slot
        };
        let ran = |stimuli: u64| Ran {
            slots: (0..stimuli).map(slot).collect(),
            stages: [stage(), stage()],
            raised: Raised::default(),
            competitor_rate: None,
        };
        let row = |stamps_within| experiment.row("idle", &ran(100), stamps_within);
        let stamped = row(Ok(Some(Span::from_ns(1_000))));
        let median = stamped.kernel_ns.and_then(|ns| ns.p50);
        assert_eq!((median, stamped.kernel_within_ns), (Some(-10.0), 1_000));
        assert_eq!(stamped.kernel_left_out, None);
        // Of a single stimulus there is no median, and yet its stamp is known.
        let single = experiment.row("idle", &ran(1), Ok(Some(Span::from_ns(1_000))));
        assert_eq!(single.kernel_ns.and_then(|ns| ns.min), Some(-10.0));
        // Set and not set back; set back before the end.
        for within in [Err("it was set".to_owned()), Ok(Some(Span::from_ns(9)))] {
            let set = row(within);
            assert_eq!((set.kernel_ns, set.kernel_within_ns, set.stimuli), (None, 0, 100));
            assert!(set.kernel_left_out.is_some());
        }
    }

    #[test]
    fn stamps_before_their_stimulus_or_after_its_answer_are_left_out() {
        let times = |kernel_ns: u64| Times {
            raised_ns: 1_000,
            late_ns: 0,
            kernel_ns,
            start_ns: [1_500, 1_700],
            complete_ns: [1_600, 1_800],
        };
        let within = |ns: i64| Some(Span::from_ns(ns));
        // 0 where there is no stamp.
        let fine = [times(970), times(1_200), times(1_530), times(0)];
        assert_eq!(between(&fine, within(30)), Ok(within(30)));
        assert_eq!(between(&[], within(30)), Ok(within(30)));
        // A clock that is set forth, and back before the end.
        let why = between(&[times(1_200), times(1_531), times(969)], within(30)).expect_err("set");
        assert!(why.starts_with("2 of its stamps are earlier"), "{why}");
        // On the same clock a line that bounces may have the stamp of another edge.
        assert_eq!(between(&[times(969)], None), Ok(None));
    }

    #[test]
    fn stages_count_what_was_answered_in_time_late_and_not_at_all() {
        let times = |raised_ns: u64, first: u64, second: u64| Times {
            raised_ns,
            late_ns: 0,
            kernel_ns: 0,
            start_ns: [raised_ns + first, raised_ns + second],
            complete_ns: [raised_ns + first + 1, raised_ns + second + 2],
        };
        let mut stimuli = vec![times(1_000, 10, 50), times(2_000, 30, 1_500), times(3_000, 20, 60)];
        stimuli.push(Times { raised_ns: 4_000, ..Times::default() });
        stimuli.push(Times::default());
        let fifo = || (("SCHED_FIFO".to_owned(), Some(90)), None);
        let rows = stages(&stimuli, 1_000, [fifo(), fifo()]);
        let counts = |row: &StageRow| (row.stage, row.answered, row.skipped, row.served);
        assert_eq!((counts(&rows[0]), counts(&rows[1])), ((1, 3, 1, 3), (2, 3, 1, 2)));
        assert_eq!((rows[0].start_ns.min, rows[0].start_ns.max), (Some(10.0), Some(30.0)));
        assert_eq!(rows[1].complete_ns.max, Some(1_502.0));
        assert_eq!(rows[0].response_range_ns, Some(20.0));
        assert_eq!(stages(&[], 1_000, [fifo(), fifo()])[1].response_range_ns, None);
        // Raised late: the next one is due a period after this one was.
        let late = Times { late_ns: 400, ..times(5_400, 598, 600) };
        let rows = stages(&[late], 1_000, [fifo(), fifo()]);
        assert_eq!((rows[0].served, rows[1].served), (1, 0));
    }

    #[test]
    fn a_stimulus_that_was_found_with_a_later_one_waited_for_that_ones_answer() {
        let answered = |raised_ns: u64, start_ns: u64| Times {
            raised_ns,
            start_ns: [start_ns; 2],
            complete_ns: [start_ns + 1; 2],
            ..Times::default()
        };
        let lost = |raised_ns| Times { raised_ns, ..Times::default() };
        let times =
            [answered(1_000, 1_010), lost(2_000), lost(3_000), answered(4_000, 4_500), lost(5_000)];
        let raised: Vec<&Times> = times.iter().collect();
        assert_eq!(waited(&raised, 1), [10, 2_500, 1_500, 500]);
        assert!(waited(&raised[4..], 0).is_empty());
        // A stage that is given up for most of the time is not as quick as its answers.
        let fifo = || (("SCHED_FIFO".to_owned(), Some(90)), None);
        let rows = stages(&times, 1_000, [fifo(), fifo()]);
        assert_eq!(
            (rows[0].answered, rows[0].scatter.map(|scatter| scatter.largest)),
            (2, Some(2_500.0))
        );
    }

    #[test]
    fn the_middle_of_starts_leaves_out_as_many_at_each_end() {
        let mut starts: Vec<i64> = (0..1_000).rev().collect();
        starts[500] = 9_000_000;
        assert_eq!(middle_ns(&starts), Some(950.0), "one stall moves it by one rank");
        assert_eq!(middle_ns(&starts[..39]), None);
        assert_eq!(middle_ns(&[]), None);
    }

    #[test]
    fn a_machine_with_a_competitor_is_not_called_idle() {
        let polygons = Some(Competitor::Polygons);
        assert_eq!(condition_name("idle", polygons), "beside polygons");
        assert_eq!(condition_name("cpu", polygons), "cpu, beside polygons");
        assert_eq!(condition_name("idle", Some(Competitor::Computes)), "beside an equal");
        assert_eq!(condition_name("idle", None), "idle");
    }

    #[test]
    fn a_stop_ends_it_and_one_cpu_has_none() {
        let stop = AtomicBool::new(true);
        assert_eq!(measure_floor([0, 0], SchedPolicy::Other, 1_000_000, &stop), None);
        assert_eq!(measure_floor([0, 1], SchedPolicy::Other, 1_000_000, &stop), None);
    }

    #[test]
    fn an_edge_rises_as_answers_start() {
        assert_eq!(trace(Vec::new()), None);
        let two = trace(vec![1_800, 1_000]).expect("two answers");
        assert!((two.step_ns - 10.8).abs() < 1e-9, "{two:?}");
        let at = |ns: f64| two.started[(ns / two.step_ns).ceil() as usize];
        assert_eq!(
            [at(0.0), at(900.0), at(1_000.0), at(1_700.0), at(1_800.0)],
            [0.0, 0.0, 0.5, 0.5, 1.0]
        );
        assert_eq!((two.beyond, two.single_ns), (0, vec![1_800, 1_000]));
    }

    #[test]
    fn a_late_answer_is_counted_and_hides_no_other() {
        let mut starts = vec![10_000; 2_000];
        starts.push(900_000_000);
        let seen = trace(starts).expect("answers");
        assert_eq!((seen.beyond, seen.single_ns.len()), (1, SINGLE));
        assert!(seen.step_ns < 1_000.0, "{}", seen.step_ns);
        assert!(seen.started.iter().any(|share| *share > 0.99));
    }
}
