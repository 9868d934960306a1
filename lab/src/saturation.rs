//! The highest frequency of stimuli that two stages serve, and what is left for work behind them:
//! MF and SF of the Windows CE benchmark (Tacke and Ricci, after Dupré and Barcos).
//!
//! For `measure saturation`. Trials of [`crate::response`]'s loop at one frequency after another,
//! chosen by MLRsearch's semantics (RFC 9971); alone, with polygons of a thread without privilege
//! on the same CPU, whose rate shows what the stimuli take, and beside a competitor of stage 2's
//! priority. Throttling stays as the caller has it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_analysis::interval::Interval;
use punctual_analysis::summary::Distribution;
use punctual_core::time::{Period, Span};
use punctual_engine::clocks::{MachineClock, StampCost};
use punctual_engine::safety::is_real_time;
use punctual_engine::session::{Refusal, ThreadSession};
use punctual_engine::spawn;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::SchedPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{
    ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError, ExperimentOutcome,
    Loading,
};
use crate::load::{LoadSpec, Polygons};
use crate::response::{Competitor, Ran, ResponseExperiment, SourceName, Times};

/// The highest frequencies that are served.
#[derive(Clone, Debug)]
pub struct SaturationExperiment {
    /// The source that stimuli come from; not the kernel's timer.
    pub source: SourceName,
    /// The CPU of both stages.
    pub cpu: u32,
    /// The CPU that raises stimuli.
    pub stimulus_cpu: u32,
    /// The policy of stage 1, and of the thread that raises stimuli.
    pub first: SchedPolicy,
    /// The policy of stage 2.
    pub second: SchedPolicy,
    /// The work of a thread of stage 2's policy on its CPU in a condition of its own, "equal";
    /// `None`: there is none.
    pub competitor: Option<Competitor>,
    /// The most time of all conditions together: as long for each.
    pub duration: Span,
    /// True where nothing limits real-time threads meanwhile, which is the caller's to see to: what
    /// is left for the background is then measured in longer trials.
    pub unthrottled: bool,
}

/// Time between two looks for the background's first polygon, and the most time for it, ns.
const LOOK_NS: u64 = 1_000_000;
const PATIENCE_NS: u64 = 5_000_000_000;

/// The result of the search beside the background.
struct Loaded {
    rows: Vec<SaturationRow>,
    /// The background's own rate.
    rate: f64,
    /// The reason, in words, for which the source was lost; `None` where it was not.
    lost: Option<String>,
}

impl Experiment for SaturationExperiment {
    type Outcome = SaturationOutcome;

    fn demands(&self) -> Vec<Demand> {
        let share = TRIAL_NS as f64 / (TRIAL_NS + REST_NS) as f64;
        let demand = |(cpu, period)| Demand {
            cpu: Some(cpu),
            real_time: is_real_time(self.first),
            period,
            share,
        };
        let period = Period::from_ns(TRIAL_NS + REST_NS);
        let cpus = [self.cpu, self.stimulus_cpu];
        period.map_or_else(Vec::new, |period| cpus.map(|cpu| demand((cpu, period))).into())
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        let conditions = self.searches().iter();
        conditions.map(|condition| ((*condition).to_owned(), Vec::new())).collect()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<SaturationOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let (mut trials, mut refused) = (Vec::new(), Vec::new());
        let mut alone = Search::new(&self, UNLOADED, (&mut *loading, stop));
        let mut rows = alone.run((&mut trials, &mut refused))?;
        let (mut lost, mut rate) = (alone.lost.take(), 0.0);
        if lost.is_none() {
            let loaded = self.loaded((&mut *loading, stop), (&mut trials, &mut refused))?;
            rows.extend(loaded.rows);
            (rate, lost) = (loaded.rate, loaded.lost);
        }
        if lost.is_none() && self.competitor.is_some() {
            let mut equal = Search::new(&self, EQUAL, (&mut *loading, stop));
            rows.extend(equal.run((&mut trials, &mut refused))?);
            lost = equal.lost.take();
        }
        clock.discipline();
        let end = if lost.is_some() { ExperimentEnd::Lost } else { ExperimentEnd::by(stop) };
        let outcome = SaturationOutcome {
            source: self.source.to_string(),
            cpu: self.cpu,
            stimulus_cpu: self.stimulus_cpu,
            trial_ns: TRIAL_NS,
            unthrottled: self.unthrottled,
            highest_hz: HIGHEST,
            stage_2: Some(Stage2::of(self.second, self.competitor)),
            generator_hz: generator_hz(&trials),
            background: Some(background_row(&trials, rate)).filter(|_| rate > 0.0),
            rows,
            trials,
            lost,
        };
        let clock = ClockFacts::of(&clock, cost, None);
        let (disturbances, taken) = (Vec::new(), Vec::new());
        Ok(ExperimentOutcome { outcome, end, clock, refused, disturbances, taken })
    }
}

impl SaturationExperiment {
    /// The conditions, each of which is searched in.
    fn searches(&self) -> &'static [&'static str] {
        if self.competitor.is_some() { &CONDITIONS } else { &CONDITIONS[..=LOADED] }
    }

    /// The search beside the background.
    fn loaded(
        &self,
        (loading, stop): (&mut Loading<'_>, &AtomicBool),
        kept: Kept<'_>,
    ) -> Result<Loaded, ExperimentError> {
        let behind = Background::default();
        std::thread::scope(|scope| {
            let drawing = spawn::scoped(scope, "punctual-load", || behind.draw(self.cpu))?;
            let rate = rate(&behind, stop);
            let mut search = Search::new(self, LOADED, (loading, stop));
            search.background = Some((&behind, rate));
            let found = search.run_and_rise(kept);
            behind.end();
            drawing.join().map_err(|_| ExperimentError::Panic)?;
            Ok(Loaded { rows: found?, rate, lost: search.lost.take() })
        })
    }
}

/// The background's rate without stimuli, from its first polygon on: beside others that keep its
/// CPU it may be long in starting, and stand still for longer than a trial.
fn rate(behind: &Background, stop: &AtomicBool) -> f64 {
    let drawn = || behind.drawn().load(Ordering::Relaxed);
    // Sleeps so long, and again while nothing was drawn; how long it was.
    let until_drawn_since = |before, step_ns| {
        let begun_ns = now_ns(ClockId::Monotonic);
        loop {
            let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + step_ns);
            let took_ns = now_ns(ClockId::Monotonic) - begun_ns;
            let over = took_ns >= PATIENCE_NS || stop.load(Ordering::Relaxed);
            if over || drawn() > before {
                return took_ns;
            }
        }
    };
    until_drawn_since(0, LOOK_NS);
    let before = drawn();
    let took_ns = until_drawn_since(before, TRIAL_NS);
    (drawn() - before) as f64 / (took_ns as f64 / 1e9)
}

/// The highest frequencies that are served, and what is left for others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SaturationOutcome {
    /// Where stimuli came from, as for `measure response`: "eventfd", "serial:/dev/ttyS1".
    pub source: String,
    /// The CPU of both stages and of the background.
    pub cpu: u32,
    /// The CPU that raised stimuli, by polling the clock.
    pub stimulus_cpu: u32,
    /// Length of a trial of the search.
    pub trial_ns: u64,
    /// True where real-time throttling and the fair server of `cpu` were off.
    #[serde(default)]
    pub unthrottled: bool,
    /// The highest frequency that the search may try.
    pub highest_hz: f64,
    /// Stage 2's policy, and what else ran with it; null in results of before.
    #[serde(default)]
    pub stage_2: Option<Stage2>,
    /// The most stimuli a second that were raised in a trial whose frequency the generator did not
    /// keep: what it can at most, with the stages waiting. Null where it kept every frequency.
    #[serde(default)]
    pub generator_hz: Option<f64>,
    /// One for each condition, stage and goal.
    pub rows: Vec<SaturationRow>,
    /// Every trial, in the order of time.
    pub trials: Vec<TrialRow>,
    /// The rate that was left for the background; null where that was not measured.
    pub background: Option<BackgroundRow>,
    /// Why it ended before its time: the source was lost; null where it did not.
    pub lost: Option<String>,
}

impl SaturationOutcome {
    /// SF10, in Hz: between the highest frequency at which a trial left the background a tenth or
    /// more and the next higher one that was tried, as [`BackgroundRow::sf10_hz`] has it; its upper
    /// end is open where none was. `None` where no trial had a background.
    pub fn sf10(&self) -> Option<Interval> {
        let [last, next] = saturated(&shares_left(&self.trials), TENTH);
        Some(Interval { value: last.or(next)?, low: Some(last.unwrap_or(0.0)), high: next })
    }
}

/// Stage 2's policy, and what ran with the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage2 {
    /// The policy that was requested: "SCHED_FIFO".
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// The work of the thread of the same policy and priority in the condition "equal"; null where
    /// that was not measured.
    pub competitor: Option<Competitor>,
}

impl Stage2 {
    fn of(policy: SchedPolicy, competitor: Option<Competitor>) -> Self {
        let (policy, priority) = (policy.name().to_owned(), policy.priority());
        Self { policy, priority, competitor }
    }
}

/// The highest frequency of one stage whose loss stays within a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SaturationRow {
    /// "unloaded"; "loaded": with the background; "equal": with a competitor of stage 2's policy
    /// and priority.
    pub condition: String,
    /// The stage: 1 or 2.
    pub stage: u32,
    /// The share of stimuli that may be lost: 0, 0.0001, 0.01.
    pub goal: f64,
    /// MF: the highest frequency that is a lower bound by RFC 9971, 3 trials deciding by majority,
    /// and 3 more confirming it where the search ended; null where even the lowest frequency loses
    /// more.
    pub pass_hz: Option<f64>,
    /// The lowest frequency that is an upper bound; null where none was found.
    pub fail_hz: Option<f64>,
    /// The lowest frequency at which any stimulus was lost in a trial; null where none was.
    pub first_loss_hz: Option<f64>,
    /// Stimuli of the trials at `pass_hz`: none lost among n supports a share of 3/n at 95 %.
    pub stimuli: u64,
    /// The end of the search.
    pub end: SearchEnd,
}

/// The end of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnd {
    /// `pass_hz` and `fail_hz` are neighbours, 2.5 % apart.
    Found,
    /// The highest frequency that could be raised was served: the generator is the limit.
    GeneratorLimited,
    /// The lowest frequency was not served.
    BelowLowest,
    /// Time was over, or it was stopped, with frequencies undecided: all that is known is that MF
    /// lies between `pass_hz` and `fail_hz`, or beyond the one of them that there is.
    Unfinished,
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRow {
    /// "unloaded", "loaded" or "equal".
    pub condition: String,
    /// The frequency.
    pub hz: f64,
    /// Stimuli that were raised.
    pub stimuli: u64,
    /// Stimuli that were not, because the generator was late by a period.
    pub not_raised: u64,
    /// The share that each stage did not serve: its answer was not complete when the next stimulus
    /// was due, or there was none.
    pub loss: Vec<f64>,
    /// From the stimulus to the complete answer of each stage, its quantile 0.99; null where fewer
    /// than 100 were answered. Empty in results of before.
    #[serde(default)]
    pub p99_ns: Vec<Option<f64>>,
    /// True where the generator did not keep the frequency: such a trial decides nothing.
    pub generator_limited: bool,
    /// Its length; 0 in results of before, where it was `trial_ns`.
    #[serde(default)]
    pub ns: u64,
    /// The background's rate from the first stimulus to the last over its own without stimuli; null
    /// without a background.
    pub background_share: Option<f64>,
}

/// The cost of stimuli for a thread without privilege on the same CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundRow {
    /// Its polygons per second without stimuli.
    pub rate: f64,
    /// SF50: the lowest frequency tried from which on no trial left half of that; null where the
    /// highest did.
    pub sf50_hz: Option<f64>,
    /// SF10: the same for a tenth.
    pub sf10_hz: Option<f64>,
    /// SF: the lowest frequency tried from which on it finished not one polygon from the first
    /// stimulus to the last; null where it did at the highest. Trials shorter than a second do not
    /// show what throttling and the fair server leave it in the long run: only
    /// `--unsafe-no-throttle` shows its death.
    #[serde(default)]
    pub dead_hz: Option<f64>,
    /// The least share that any trial left.
    pub least_share: Option<f64>,
    /// Cost of a stimulus: the slope of the share taken over the frequency, through zero, in trials
    /// that left half or more; null where trials do not fit it.
    pub cost_ns: Option<f64>,
    /// The frequency at which nothing would be left by that cost: SF where none that was tried
    /// shows it. Null where trials do not fit it: they leave more than a line can.
    pub predicted_hz: Option<f64>,
    /// How far from the shares that such a cost leaves those of trials lie, their median: of trials
    /// that left less than half, where there are such. Null where there are none, and in results of
    /// before.
    #[serde(default)]
    pub off_line: Option<f64>,
    /// The highest frequency that was tried beside it; null in results of before.
    #[serde(default)]
    pub tried_hz: Option<f64>,
}

/// The conditions, by their places.
const CONDITIONS: [&str; 3] = ["unloaded", "loaded", "equal"];
const UNLOADED: usize = 0;
const LOADED: usize = 1;
const EQUAL: usize = 2;
/// The lowest and the highest frequency, Hz: three times the paper's highest; a thread that raises
/// stimuli by a system call each does not keep a higher one.
const LOWEST: f64 = 200.0;
const HIGHEST: f64 = 400_000.0;
/// The first frequency that is tried: each doubling from the lowest one on takes two trials.
const FIRST: f64 = 3_200.0;
/// Length of a trial, and of the rest after it, ns: together below what throttling allows.
const TRIAL_NS: u64 = 400_000_000;
const REST_NS: u64 = 80_000_000;
/// A trial that shows whether the background dies: longer than the period of throttling and of the
/// fair server, 1 s, and short enough for a machine that is dead meanwhile.
const DEATH_NS: u64 = 2_500_000_000;
/// More stimuli not raised than this share: the generator does not keep the frequency.
const NOT_RAISED: f64 = 0.05;

/// One condition's search.
///
/// One trial after the other, at the loads that the search wants; each opens its source anew. Ends
/// with its time, a stop, or its source.
struct Search<'a, 'l> {
    experiment: &'a SaturationExperiment,
    /// The place of its condition.
    condition: usize,
    background: Option<(&'a Background, f64)>,
    loading: &'a mut Loading<'l>,
    stop: &'a AtomicBool,
    until_ns: u64,
    highest: Load,
    trials: Vec<Trial>,
    /// The last load that the generator did not keep, and how many stimuli a second it raised.
    limited: Option<(Load, f64)>,
    /// The reason, in words, for which there is no source any more; `None` where there is one.
    lost: Option<String>,
}

/// The lists that all searches add to: the trials, and the requests that the kernel refused.
type Kept<'k> = (&'k mut Vec<TrialRow>, &'k mut Vec<Refusal>);

impl<'a, 'l> Search<'a, 'l> {
    /// With its part of the time, from now on.
    fn new(
        experiment: &'a SaturationExperiment,
        condition: usize,
        (loading, stop): (&'a mut Loading<'l>, &'a AtomicBool),
    ) -> Self {
        let all_ns = experiment.duration.as_ns().max(0).unsigned_abs();
        let part_ns = all_ns / experiment.searches().len() as u64;
        Self {
            experiment,
            condition,
            background: None,
            loading,
            stop,
            until_ns: now_ns(ClockId::Monotonic) + part_ns,
            highest: Load::at_most(HIGHEST),
            trials: Vec::new(),
            limited: None,
            lost: None,
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.lost.is_some()
            || now_ns(ClockId::Monotonic) >= self.until_ns
    }

    /// Searches for each stage and goal; all of them share their trials.
    fn run(&mut self, kept: Kept<'_>) -> Result<Vec<SaturationRow>, ExperimentError> {
        let range =
            |search: &Self| Range { lowest: Load::at_most(LOWEST), highest: search.highest };
        let mut open = next_of_all(&self.trials, range(self));
        while let Some(load) = open.filter(|_| !self.is_over()) {
            self.trial((load, TRIAL_NS), (&mut *kept.0, &mut *kept.1))?;
            open = next_of_all(&self.trials, range(self));
        }
        Ok(GOALS.into_iter().map(|goal| self.row(goal, range(self))).collect())
    }

    /// Both; what is left for the background comes first where that is what throttling is off for.
    fn run_and_rise(&mut self, kept: Kept<'_>) -> Result<Vec<SaturationRow>, ExperimentError> {
        if self.experiment.unthrottled {
            self.rise((&mut *kept.0, &mut *kept.1))?;
            return self.run(kept);
        }
        let found = self.run((&mut *kept.0, &mut *kept.1))?;
        self.rise(kept).map(|()| found)
    }

    /// Frequencies up to the highest, to see what is left for the background.
    fn rise(&mut self, kept: Kept<'_>) -> Result<(), ExperimentError> {
        let mut load = Load::at_most(LOWEST);
        let (ns, highest) = match self.experiment.unthrottled {
            true => (DEATH_NS, Load::at_most(HIGHEST)),
            false => (TRIAL_NS, self.highest),
        };
        while load < highest && !self.is_over() {
            load = Load::at_most(load.hz() * 2.0).min(highest);
            self.trial((load, ns), (&mut *kept.0, &mut *kept.1))?;
        }
        Ok(())
    }

    /// One trial, and its rest.
    fn trial(&mut self, (load, ns): (Load, u64), kept: Kept<'_>) -> Result<(), ExperimentError> {
        let (rows, refused) = kept;
        let Some((ran, share)) = self.ran((load, ns), rows.is_empty())? else { return Ok(()) };
        for refusal in ran.refused() {
            if !refused.contains(&refusal) {
                refused.push(refusal);
            }
        }
        let period_ns = period(load).as_ns();
        let times = ran.times();
        let raised = times.iter().filter(|times| times.raised_ns > 0).count() as u64;
        let loss = [0, 1].map(|stage| loss(&times, stage, period_ns));
        let limited = ran.not_raised() as f64 > NOT_RAISED * (raised + ran.not_raised()) as f64;
        rows.push(TrialRow {
            condition: CONDITIONS[self.condition].to_owned(),
            hz: load.hz(),
            stimuli: raised,
            not_raised: ran.not_raised(),
            loss: loss.to_vec(),
            p99_ns: [0, 1].map(|stage| p99_ns(&times, stage)).to_vec(),
            generator_limited: limited,
            ns,
            background_share: share,
        });
        let raised_hz = raised as f64 / (ns as f64 / 1e9);
        let before = self.limited.filter(|(before, _)| *before == load);
        if let Some((_, before_hz)) = before.filter(|_| limited) {
            // Twice, so no single stall: nothing at or above this can be raised, and nothing much
            // above what was raised.
            let raised = Load::at_most(raised_hz.max(before_hz));
            self.highest = self.highest.min(load.below()).min(raised);
        } else if limited {
            self.limited = Some((load, raised_hz));
        } else if raised > 0 && !self.stop.load(Ordering::Relaxed) {
            self.trials.push(Trial { load, loss, stimuli: raised });
        }
        let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + REST_NS);
        Ok(())
    }

    /// Raises the stimuli of a trial, and what share was left for the background; `None` where the
    /// source was lost: a part of a trial decides nothing. The very first trial needs a source.
    fn ran(
        &mut self,
        (load, ns): (Load, u64),
        is_first: bool,
    ) -> Result<Option<(Ran, Option<f64>)>, ExperimentError> {
        let source = match self.experiment.source.open() {
            Ok((source, _)) => source,
            Err(why) if is_first => return Err(ExperimentError::Source(why)),
            Err(why) => {
                self.lost = Some(why);
                return Ok(None);
            }
        };
        let trial = ResponseExperiment {
            source: self.experiment.source.clone(),
            cpu: self.experiment.cpu,
            stimulus_cpu: self.experiment.stimulus_cpu,
            period: period(load),
            duration: Span::from_ns(ns.cast_signed()),
            first: self.experiment.first,
            second: self.experiment.second,
            competitor: self.experiment.competitor.filter(|_| self.condition == EQUAL),
            conditions: Vec::new(),
        };
        let counted = self.background.map(|(behind, _)| behind.drawn());
        let ran = trial.trial((self.condition, &source), counted, self.loading, self.stop)?;
        self.lost = ran.lost().map(ToString::to_string);
        let share = self
            .background
            .zip(ran.counted())
            .filter(|((_, rate), (_, took_ns))| *rate > 0.0 && *took_ns > 0)
            .map(|((_, rate), (drawn, ns))| drawn as f64 / (ns as f64 / 1e9) / rate);
        Ok(Some((ran, share)).filter(|_| self.lost.is_none()))
    }

    fn row(&self, goal: Goal, range: Range) -> SaturationRow {
        let found = found(&self.trials, goal);
        let lossy = self.trials.iter().filter(|trial| trial.loss[goal.stage] > 0.0);
        SaturationRow {
            condition: CONDITIONS[self.condition].to_owned(),
            stage: goal.stage as u32 + 1,
            goal: goal.loss,
            pass_hz: found.pass.map(Load::hz),
            fail_hz: found.fail.map(Load::hz),
            first_loss_hz: lossy.map(|trial| trial.load).min().map(Load::hz),
            stimuli: found.stimuli,
            end: end(&self.trials, goal, range),
        }
    }
}

/// From one stimulus to the next, a nanosecond at least.
fn period(load: Load) -> Period {
    const SHORTEST: Option<Period> = Period::from_ns(1);
    Period::from_ns((1e9 / load.hz()) as u64).unwrap_or(SHORTEST.expect("positive"))
}

/// The share of the raised stimuli that a stage did not serve.
fn loss(times: &[Times], stage: usize, period_ns: u64) -> f64 {
    let raised = || times.iter().filter(|times| times.raised_ns > 0);
    let served = |times: &&Times| times.is_served(stage, period_ns);
    let count = raised().count();
    if count == 0 { 0.0 } else { 1.0 - raised().filter(served).count() as f64 / count as f64 }
}

/// From the stimulus to the complete answer of a stage, its quantile 0.99; `None` where n does not
/// support it.
fn p99_ns(times: &[Times], stage: usize) -> Option<f64> {
    let mut answers = Distribution::default();
    for stimulus in times.iter().filter(|times| times.raised_ns > 0) {
        let complete_ns = stimulus.complete_ns[stage];
        if complete_ns > 0 {
            answers.push(complete_ns.cast_signed() - stimulus.raised_ns.cast_signed());
        }
    }
    answers.stats().p99
}

/// Trials with a smaller share of the background left do not say what a stimulus costs: the floor
/// that the kernel guarantees bends the line.
const LINEAR: f64 = 0.5;
/// The share of SF10: more than what the kernel guarantees others.
const TENTH: f64 = 0.1;
/// Trials that lie farther from the line than this, most of them, do not fit it: twice what the
/// kernel guarantees others, 5 %, which no line has.
pub const OFF_LINE_MOST: f64 = 0.1;

/// The thread's counter, and its end.
#[derive(Debug, Default)]
struct Background {
    drawn: AtomicU64,
    over: AtomicBool,
}

impl Background {
    /// Draws on `cpu` until [`Background::end`].
    fn draw(&self, cpu: u32) {
        let _session = ThreadSession::enter(Some(cpu), SchedPolicy::Other);
        let mut polygons = Polygons::new(0);
        while !self.over.load(Ordering::Relaxed) {
            polygons.draw();
            self.drawn.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The polygons so far.
    fn drawn(&self) -> &AtomicU64 {
        &self.drawn
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The most that was raised where the generator did not keep the frequency, in Hz.
fn generator_hz(trials: &[TrialRow]) -> Option<f64> {
    let limited = trials.iter().filter(|trial| trial.generator_limited && trial.ns > 0);
    let raised_hz = limited.map(|trial| trial.stimuli as f64 / (trial.ns as f64 / 1e9));
    raised_hz.max_by(f64::total_cmp)
}

/// The frequency of each trial beside the background, and the share that it left.
fn shares_left(trials: &[TrialRow]) -> Vec<(f64, f64)> {
    trials.iter().filter_map(|trial| Some((trial.hz, trial.background_share?))).collect()
}

/// The highest frequency at which a trial left that share or more, and the next higher one that was
/// tried: no trial from there on left it. A stall of one trial below them moves neither.
fn saturated(known: &[(f64, f64)], share: f64) -> [Option<f64>; 2] {
    let left = known.iter().filter(|(_, left)| *left >= share).map(|(hz, _)| *hz);
    let last = left.max_by(f64::total_cmp);
    let above = known.iter().map(|(hz, _)| *hz).filter(|hz| last.is_none_or(|last| *hz > last));
    [last, above.min_by(f64::total_cmp)]
}

/// The row of the trials beside the background; `rate` is its own without stimuli, polygons a
/// second.
fn background_row(trials: &[TrialRow], rate: f64) -> BackgroundRow {
    let known = shares_left(trials);
    let first_below = |share: f64| saturated(&known, share)[1];
    let linear = || known.iter().filter(|(_, left)| *left >= LINEAR);
    let taken: f64 = linear().map(|(hz, left)| hz * (1.0 - left)).sum();
    let squares: f64 = linear().map(|(hz, _)| hz * hz).sum();
    let cost_s = (squares > 0.0).then_some(taken / squares).filter(|cost| *cost > 0.0);
    let off_line = cost_s.and_then(|cost_s| {
        let off = |(hz, left): &(f64, f64)| (left - (1.0 - hz * cost_s).max(0.0)).abs();
        // Those that it is not drawn through say most of where it leads.
        let beyond = known.iter().filter(|(_, left)| *left < LINEAR).map(off);
        let beyond: Vec<f64> = beyond.collect();
        let off: Vec<f64> =
            if beyond.is_empty() { known.iter().map(off).collect() } else { beyond };
        Some(Interval::median(&off)?.value)
    });
    let cost_s = cost_s.filter(|_| off_line.is_some_and(|off| off <= OFF_LINE_MOST));
    BackgroundRow {
        rate,
        sf50_hz: first_below(0.5),
        sf10_hz: first_below(TENTH),
        dead_hz: first_below(f64::MIN_POSITIVE),
        least_share: known.iter().map(|(_, left)| *left).min_by(f64::total_cmp),
        cost_ns: cost_s.map(|cost| cost * 1e9),
        predicted_hz: cost_s.map(|cost| 1.0 / cost),
        off_line,
        tried_hz: known.iter().map(|(hz, _)| *hz).max_by(f64::total_cmp),
    }
}

/// Frequencies on a logarithmic grid, which makes a load that is tried again the same load: 2.5 %
/// apart.
const STEP: f64 = 1.025;
/// Of the trials at a load at most this share may exceed the goal (RFC 9971, goal exceed ratio).
const EXCEED: f64 = 0.5;
/// Trials of full length that a load needs (goal duration sum over goal final trial duration).
const TRIALS: u32 = 3;
/// Trials that the load found needs: once more as many confirm it, and may overthrow it.
const CONFIRMED: usize = 6;

/// The loss that a stage may have at the frequency that is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Goal {
    /// From 0 on.
    stage: usize,
    /// The share of stimuli that are not served, in [0, 1].
    loss: f64,
}

const fn goal(stage: usize, loss: f64) -> Goal {
    Goal { stage, loss }
}

/// In the order of their searches: two goals that a machine with stalls can reach, and the paper's,
/// 0.
const GOALS: [Goal; 6] =
    [goal(0, 1e-2), goal(1, 1e-2), goal(0, 1e-4), goal(1, 1e-4), goal(0, 0.0), goal(1, 0.0)];

/// The frequencies that can be raised.
#[derive(Clone, Copy, Debug)]
struct Range {
    lowest: Load,
    highest: Load,
}

/// A frequency on the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Load(u32);

/// One trial: what share of stimuli each stage did not serve. Trials decide whether a load is a
/// lower or an upper bound, and a smaller upper bound outweighs every pass above it (RFC 9971).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trial {
    load: Load,
    /// Of stage 1, of stage 2.
    loss: [f64; 2],
    stimuli: u64,
}

/// The role of a load in the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Lower,
    Upper,
    Undecided,
}

/// The bounds found for one stage and goal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    /// The highest load that is a lower bound, below every upper one.
    pass: Option<Load>,
    /// The lowest load that is an upper bound.
    fail: Option<Load>,
    /// Stimuli of the trials at `pass`.
    stimuli: u64,
}

impl Load {
    /// The nearest on the grid, below or equal.
    fn at_most(hz: f64) -> Self {
        Self((hz.max(1.0).ln() / STEP.ln() + 1e-9).floor() as u32)
    }

    /// The next one below.
    fn below(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    fn hz(self) -> f64 {
        STEP.powi(self.0.cast_signed())
    }
}

/// The role of a load by the losses of its trials, for this goal.
fn bound(losses: impl Iterator<Item = f64>, goal: f64) -> Bound {
    let (mut good, mut bad) = (0u32, 0u32);
    losses.for_each(|loss| if loss <= goal { good += 1 } else { bad += 1 });
    let whole = f64::from(TRIALS.max(good + bad));
    // What is missing is taken for bad by one, for good by the other.
    if (whole - f64::from(good)) / whole <= EXCEED {
        Bound::Lower
    } else if f64::from(bad) / whole > EXCEED {
        Bound::Upper
    } else {
        Bound::Undecided
    }
}

/// The bounds that trials show for a goal.
fn found(trials: &[Trial], Goal { stage, loss: goal }: Goal) -> Found {
    let at = |load: Load| trials.iter().filter(move |trial| trial.load == load);
    let is =
        |load: Load, wanted: Bound| bound(at(load).map(|trial| trial.loss[stage]), goal) == wanted;
    let loads = || trials.iter().map(|trial| trial.load);
    let fail = loads().filter(|&load| is(load, Bound::Upper)).min();
    let below = |load: &Load| fail.is_none_or(|fail| *load < fail);
    let pass = loads().filter(below).filter(|&load| is(load, Bound::Lower)).max();
    let stimuli = pass.map_or(0, |pass| at(pass).map(|trial| trial.stimuli).sum());
    Found { pass, fail, stimuli }
}

/// The frequency to try next for a goal; `None` once pass and fail are neighbours on the grid, or
/// the range ends, and the pass is confirmed.
fn next(trials: &[Trial], goal: Goal, Range { lowest, highest }: Range) -> Option<Load> {
    let found = found(trials, goal);
    // A load that is begun is finished first, if its outcome matters.
    let matters = |load: &Load| {
        found.pass.is_none_or(|pass| *load > pass)
            && found.fail.is_none_or(|fail| *load < fail)
            && *load <= highest
    };
    let begun = trials.iter().map(|trial| trial.load).filter(matters);
    if let Some(load) = begun.max() {
        return Some(load);
    }
    let open = match (found.pass, found.fail) {
        (None, None) => (lowest <= highest).then(|| Load::at_most(FIRST).min(highest).max(lowest)),
        (None, Some(fail)) => {
            // A factor of four down, to a load that was not tried.
            let down = Load::at_most(fail.hz() / 4.0).min(highest).max(lowest);
            (down < fail && down <= highest).then_some(down)
        }
        (Some(pass), None) => {
            let up = Load::at_most(pass.hz() * 2.0).min(highest);
            (up > pass).then_some(up)
        }
        (Some(pass), Some(fail)) => {
            let middle = Load(pass.0.midpoint(fail.0)).min(highest);
            (middle > pass).then_some(middle)
        }
    };
    let count = |load: Load| trials.iter().filter(|trial| trial.load == load).count();
    open.or_else(|| found.pass.filter(|&pass| count(pass) < CONFIRMED))
}

/// The frequency to try next for all [`GOALS`], which share their trials: a trial of a later one
/// may overthrow the pass or the fail of an earlier one, which then goes on.
fn next_of_all(trials: &[Trial], range: Range) -> Option<Load> {
    GOALS.into_iter().find_map(|goal| next(trials, goal, range))
}

/// The end of the search for a goal, by the trials of all.
fn end(trials: &[Trial], goal: Goal, range: Range) -> SearchEnd {
    let found = found(trials, goal);
    match (next(trials, goal, range), found.pass, found.fail) {
        (Some(_), ..) => SearchEnd::Unfinished,
        (None, Some(pass), Some(fail)) if fail.below() == pass => SearchEnd::Found,
        (None, None, Some(fail)) if fail <= range.lowest => SearchEnd::BelowLowest,
        (None, ..) => SearchEnd::GeneratorLimited,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stimulus_is_served_by_an_answer_before_the_next_one() {
        let times = |raised_ns: u64, after: u64| {
            let mut times = Times::default();
            times.raised_ns = raised_ns;
            times.complete_ns = [raised_ns + after, 0];
            times
        };
        let stimuli = [times(1_000, 10), times(2_000, 999), times(3_000, 1_000), Times::default()];
        assert!((loss(&stimuli, 0, 1_000) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((loss(&stimuli, 1, 1_000), loss(&[], 0, 1_000)), (1.0, 0.0));
        let late = [999, 1_000].map(|after| {
            let mut late = times(1_080, after - 80);
            late.late_ns = 80;
            late
        });
        assert!((loss(&late, 0, 1_000) - 0.5).abs() < 1e-12);
        // Three are too few for 1 in 100, and a stage that never answered has none.
        assert_eq!((p99_ns(&stimuli, 0), p99_ns(&stimuli, 1)), (None, None));
        let many: Vec<Times> = (1..=200).map(|at| times(at * 1_000, at)).collect();
        assert_eq!(p99_ns(&many, 0), Some(198.0));
    }

    fn trial(hz: f64, share: Option<f64>) -> TrialRow {
        TrialRow { hz, background_share: share, ..TrialRow::default() }
    }

    #[test]
    fn the_cost_of_a_stimulus_is_the_slope_of_what_is_taken() {
        // 20 µs a stimulus, and 5 % that the kernel guarantees.
        let at = |hz: f64| trial(hz, Some((1.0 - hz * 20e-6).max(0.05)));
        let trials = [1_000.0, 5_000.0, 20_000.0, 26_000.0, 46_000.0, 60_000.0].map(at);
        let row = background_row(&trials, 7.0);
        assert!(row.cost_ns.is_some_and(|ns| (ns - 20_000.0).abs() < 1.0), "{row:?}");
        assert!(row.predicted_hz.is_some_and(|hz| (hz - 50_000.0).abs() < 5.0), "{row:?}");
        assert_eq!((row.sf50_hz, row.sf10_hz), (Some(26_000.0), Some(46_000.0)));
        assert_eq!((row.least_share, row.rate, row.dead_hz), (Some(0.05), 7.0, None));
        assert_eq!(row.tried_hz, Some(60_000.0));
    }

    #[test]
    fn trials_that_leave_more_than_a_line_predict_nothing() {
        // A guest on a busy host: the first stimuli take most, and more of them hardly more.
        let shares = [
            (3_133.0, 0.60),
            (3_133.0, 0.65),
            (6_255.0, 0.53),
            (6_255.0, 0.59),
            (12_488.0, 0.47),
            (24_933.0, 0.38),
            (35_230.0, 0.31),
            (49_779.0, 0.23),
        ];
        let row = background_row(&shares.map(|(hz, left)| trial(hz, Some(left))), 7.0);
        assert_eq!((row.predicted_hz, row.cost_ns), (None, None));
        assert!(row.off_line.is_some_and(|off| off > OFF_LINE_MOST), "{row:?}");
        assert_eq!(row.sf50_hz, Some(12_488.0));
        // Many trials on the line do not outvote those that it would lead through.
        let low = (1..30).map(|at| f64::from(at) * 500.0).map(|hz| (hz, 1.0 - hz * 20e-6));
        let high = [(40_000.0, 0.35), (49_780.0, 0.25)];
        let trials: Vec<TrialRow> =
            low.chain(high).map(|(hz, left)| trial(hz, Some(left))).collect();
        assert_eq!(background_row(&trials, 7.0).predicted_hz, None);
        // One trial of a stall refutes no line.
        let line = [(5_000.0, 0.75), (10_000.0, 0.5), (10_000.0, 0.02), (40_000.0, 0.05)];
        let row = background_row(&line.map(|(hz, left)| trial(hz, Some(left))), 7.0);
        assert_eq!(row.sf10_hz, Some(40_000.0), "the stalled trial at 10 kHz is no death");
        assert!(row.predicted_hz.is_some_and(|hz| (hz / 20_000.0 - 1.0).abs() < 0.01), "{row:?}");
    }

    #[test]
    fn the_background_is_dead_where_nothing_is_left() {
        let trials = [(1_000.0, 0.9), (2_000.0, 0.001), (4_000.0, 0.0), (8_000.0, 0.0)];
        let row = background_row(&trials.map(|(hz, left)| trial(hz, Some(left))), 7.0);
        assert_eq!((row.dead_hz, row.sf10_hz), (Some(4_000.0), Some(2_000.0)));
    }

    #[test]
    fn what_the_generator_can_is_the_most_that_it_raised_where_it_did_not_keep_the_frequency() {
        let trial = |stimuli, generator_limited| TrialRow {
            stimuli,
            generator_limited,
            ns: TRIAL_NS,
            ..TrialRow::default()
        };
        assert_eq!(generator_hz(&[trial(160_000, false)]), None);
        let trials = [trial(160_000, false), trial(100_000, true), trial(104_000, true)];
        assert_eq!(generator_hz(&trials), Some(260_000.0));
    }

    #[test]
    fn a_competitor_is_a_third_condition() {
        let experiment = |competitor| SaturationExperiment {
            source: SourceName::default(),
            cpu: 0,
            stimulus_cpu: 1,
            first: SchedPolicy::Fifo(90),
            second: SchedPolicy::RoundRobin(70),
            competitor,
            duration: Span::from_ms(900),
            unthrottled: false,
        };
        let names = |competitor| {
            let conditions = experiment(competitor).conditions().into_iter();
            conditions.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(None), "unloaded loaded");
        assert_eq!(names(Some(Competitor::Polygons)), "unloaded loaded equal");
        let stage = Stage2::of(SchedPolicy::RoundRobin(70), Some(Competitor::Polygons));
        assert_eq!((stage.policy.as_str(), stage.priority), ("SCHED_RR", Some(70)));
    }

    #[test]
    fn without_trials_nothing_is_known() {
        let row = background_row(&[trial(1_000.0, None)], 7.0);
        assert_eq!((row.cost_ns, row.sf50_hz, row.least_share), (None, None, None));
        assert_eq!(row.tried_hz, None);
    }

    fn range(lowest_hz: f64, highest_hz: f64) -> Range {
        Range { lowest: Load::at_most(lowest_hz), highest: Load::at_most(highest_hz) }
    }

    /// Searches on a machine that loses nothing up to `hz`, and then ever more.
    fn search(hz: f64, loss: f64, noise: impl Fn(usize) -> f64) -> (Found, usize) {
        let mut trials = Vec::new();
        while let Some(load) = next(&trials, goal(0, loss), range(100.0, 50_000.0)) {
            let over = (load.hz() / hz - 1.0).max(0.0);
            let loss = over + noise(trials.len());
            trials.push(Trial { load, loss: [loss, 1.0], stimuli: 10 });
            assert!(trials.len() < 200, "the search ends");
        }
        (found(&trials, goal(0, loss)), trials.len())
    }

    #[test]
    fn the_limit_is_bracketed_by_neighbours_in_a_few_trials() {
        for hz in [101.0, 750.0, 9_000.0, 31_234.0] {
            let (found, count) = search(hz, 0.0, |_| 0.0);
            let (pass, fail) = (found.pass.expect("a pass").hz(), found.fail.expect("a fail").hz());
            assert!(pass <= hz && hz < fail && fail / pass < 1.026, "{hz}: {pass} to {fail}");
            assert!(found.stimuli >= 60 && count < 45, "six trials confirm it: {count}");
        }
        let (beyond, _) = search(1e6, 0.0, |_| 0.0);
        assert_eq!((beyond.pass, beyond.fail), (Some(Load::at_most(50_000.0)), None));
        let (none, _) = search(50.0, 0.0, |_| 0.0);
        assert_eq!((none.pass, none.fail), (None, Some(Load::at_most(100.0))));
    }

    #[test]
    fn a_goal_allows_its_share_and_one_bad_trial_of_three_is_outvoted() {
        let (strict, _) = search(9_000.0, 0.0, |_| 0.0);
        let (loose, _) = search(9_000.0, 0.2, |_| 0.0);
        assert!(loose.pass.expect("a pass").hz() > 1.15 * strict.pass.expect("a pass").hz());
        let (noisy, _) = search(9_000.0, 0.0, |at| if at % 3 == 0 { 0.5 } else { 0.0 });
        assert_eq!(noisy.pass, strict.pass);
    }

    #[test]
    fn a_pass_that_its_confirmation_overthrows_is_left_for_a_lower_one() {
        let range = range(100.0, 50_000.0);
        let trial = |load, loss| Trial { load, loss: [loss, 0.0], stimuli: 10 };
        let pass = Load::at_most(9_000.0);
        let above = Load(pass.0 + 1);
        let mut trials = vec![trial(pass, 0.0), trial(pass, 0.0)];
        trials.extend([trial(above, 0.1), trial(above, 0.1)]);
        assert_eq!(next(&trials, goal(0, 0.0), range), Some(pass), "neighbours: confirmed first");
        trials.extend([trial(pass, 0.1); 3]);
        let found = found(&trials, goal(0, 0.0));
        assert_eq!((found.pass, found.fail), (None, Some(pass)));
        assert!(next(&trials, goal(0, 0.0), range).is_some_and(|load| load < pass));
    }

    #[test]
    fn a_failure_below_outweighs_passes_above() {
        let trial = |hz, loss| Trial { load: Load::at_most(hz), loss: [loss, 0.0], stimuli: 1 };
        let mut trials = vec![trial(1_000.0, 0.0), trial(1_000.0, 0.0), trial(4_000.0, 0.0)];
        trials.push(trial(4_000.0, 0.0));
        assert_eq!(found(&trials, goal(0, 0.0)).pass, Some(Load::at_most(4_000.0)));
        trials.extend([trial(2_000.0, 0.1), trial(2_000.0, 0.1)]);
        let found = found(&trials, goal(0, 0.0));
        assert_eq!(found.fail, Some(Load::at_most(2_000.0)));
        assert_eq!(found.pass, Some(Load::at_most(1_000.0)));
    }

    #[test]
    fn a_search_that_another_one_overthrows_goes_on_until_pass_and_fail_are_neighbours() {
        let range = range(200.0, 50_000.0);
        let mut reopened = 0;
        for seed in 0..40u64 {
            // Loses more and more above 9 and 3 kHz, and in bursts of trials at any frequency.
            let (mut trials, mut ended) = (Vec::<Trial>::new(), [false; 6]);
            while let Some(load) = next_of_all(&trials, range) {
                for (ended, goal) in ended.iter_mut().zip(GOALS) {
                    let open = next(&trials, goal, range).is_some();
                    reopened += u32::from(*ended && open);
                    *ended = !open;
                    // What the result says when time is over now.
                    let Found { pass, fail, .. } = found(&trials, goal);
                    let apart = pass.zip(fail).is_some_and(|(pass, fail)| fail.below() > pass);
                    assert!(!apart || end(&trials, goal, range) == SearchEnd::Unfinished);
                }
                let burst = (trials.len() as u64 / 3 * 7 + seed * 13) % 31 < 5;
                let more = if burst { 0.05 } else { 0.0 };
                let loss = [9_000.0, 3_000.0].map(|hz| (load.hz() / hz - 1.0).max(0.0) + more);
                trials.push(Trial { load, loss, stimuli: 10 });
                assert!(trials.len() < 1_000, "the search ends");
            }
            for goal in GOALS {
                let Found { pass, fail, .. } = found(&trials, goal);
                let neighbours = pass.zip(fail).is_some_and(|(pass, fail)| fail.below() == pass);
                assert_eq!(end(&trials, goal, range) == SearchEnd::Found, neighbours, "{goal:?}");
                assert_ne!(end(&trials, goal, range), SearchEnd::Unfinished, "{goal:?}");
            }
        }
        assert!(reopened > 0, "the model never overthrows a search that has ended");
    }

    #[test]
    fn what_cannot_be_raised_leaves_pass_and_fail_apart_and_is_the_limit() {
        let trial = |hz, loss| Trial { load: Load::at_most(hz), loss: [loss, 0.0], stimuli: 1 };
        let mut trials = [trial(20_000.0, 0.0); CONFIRMED].to_vec();
        trials.extend([trial(40_000.0, 0.1), trial(40_000.0, 0.1), trial(30_000.0, 0.0)]);
        let to = |hz| range(200.0, hz);
        assert_eq!(next(&trials, goal(0, 0.0), to(50_000.0)), Some(Load::at_most(30_000.0)));
        // A search begins where a machine of today is served, within its range.
        let first = |lowest, highest| next(&[], goal(0, 0.0), range(lowest, highest));
        assert_eq!(first(200.0, 50_000.0), Some(Load::at_most(FIRST)));
        assert_eq!(first(200.0, 900.0), Some(Load::at_most(900.0)));
        assert_eq!(first(5_000.0, 50_000.0), Some(Load::at_most(5_000.0)));
        assert_eq!(end(&trials, goal(0, 0.0), to(50_000.0)), SearchEnd::Unfinished);
        assert_eq!(
            next(&trials, goal(0, 0.0), to(20_000.0)),
            None,
            "30 kHz cannot be raised any more"
        );
        assert_eq!(end(&trials, goal(0, 0.0), to(20_000.0)), SearchEnd::GeneratorLimited);
        assert_eq!(
            end(&[], goal(0, 0.0), Range { lowest: Load(1), highest: Load(0) }),
            SearchEnd::GeneratorLimited
        );
        assert_eq!(end(&[trial(200.0, 0.1); 2], goal(0, 0.0), to(1e4)), SearchEnd::BelowLowest);
    }
}
