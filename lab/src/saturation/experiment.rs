//! The saturation experiment as the lifecycle of all experiments runs it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use punctual::clocks::{MachineClock, StampCost};
use punctual::safety::is_real_time;
use punctual::session::Refusal;
use punctual_core::time::{Period, Span};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::SchedPolicy;

use super::background::{self, Background};
use super::outcome::{SaturationOutcome, SaturationRow, SearchEnd, TrialRow};
use super::search::{Load, Trial, found, next};
use crate::experiment::{
    ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError, Loading, Measured,
};
use crate::load::LoadSpec;
use crate::response::{Condition, SourceName, Times};

/// The goals: the paper's, and two that a machine with stalls can reach.
const GOALS: [f64; 3] = [1e-2, 1e-4, 0.0];
/// The lowest and the highest frequency, Hz.
const LOWEST: f64 = 200.0;
const HIGHEST: f64 = 50_000.0;
/// How long a trial is, and the rest after it: together below what throttling allows.
const TRIAL_NS: u64 = 400_000_000;
const REST_NS: u64 = 80_000_000;
/// More stimuli not raised than this share: the generator does not keep the frequency.
const NOT_RAISED: f64 = 0.05;

/// The highest frequencies that are served.
#[derive(Clone, Debug)]
pub struct SaturationExperiment {
    /// Where stimuli come from; not the kernel's timer.
    pub source: SourceName,
    /// The CPU of both stages.
    pub cpu: u32,
    /// The CPU that raises stimuli.
    pub stimulus_cpu: u32,
    /// The policy of stage 1, and of the thread that raises stimuli.
    pub first: SchedPolicy,
    /// The policy of stage 2.
    pub second: SchedPolicy,
    /// How long at most, in all: half unloaded, half loaded.
    pub duration: Span,
}

/// One condition's search.
struct Search<'a, 'l> {
    of: &'a SaturationExperiment,
    name: &'static str,
    background: Option<(&'a Background, f64)>,
    loading: &'a mut Loading<'l>,
    stop: &'a AtomicBool,
    until_ns: u64,
    highest: Load,
    trials: Vec<Trial>,
    /// The last load that the generator did not keep.
    limited: Option<Load>,
}

/// What all searches add to: the trials, and what threads were refused.
type Kept<'k> = (&'k mut Vec<TrialRow>, &'k mut Vec<Refusal>);

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
        vec![("unloaded".to_owned(), Vec::new()), ("loaded".to_owned(), Vec::new())]
    }

    fn run(self, context: Context<'_, '_>) -> Result<Measured<SaturationOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let (mut trials, mut refused) = (Vec::new(), Vec::new());
        let mut alone = Search::new(&self, "unloaded", (&mut *loading, stop));
        let mut rows = alone.run((&mut trials, &mut refused))?;
        let behind = Background::default();
        let loaded = std::thread::scope(|scope| {
            let drawing = Builder::new().spawn_scoped(scope, || behind.draw(self.cpu))?;
            let rate = rate(&behind);
            let mut search = Search::new(&self, "loaded", (&mut *loading, stop));
            search.background = Some((&behind, rate));
            let kept = (&mut trials, &mut refused);
            let found = search.run((&mut *kept.0, &mut *kept.1));
            let found = found.and_then(|found| search.rise(kept).map(|()| found));
            behind.end();
            drawing.join().map_err(|_| ExperimentError::Panic)?;
            found.map(|found| (found, rate))
        });
        let (found, rate) = loaded?;
        rows.extend(found);
        clock.discipline();
        let end = if stop.load(Ordering::Relaxed) {
            ExperimentEnd::Stopped
        } else {
            ExperimentEnd::Finished
        };
        let outcome = SaturationOutcome {
            source: self.source.to_string(),
            cpu: self.cpu,
            stimulus_cpu: self.stimulus_cpu,
            trial_ns: TRIAL_NS,
            highest_hz: HIGHEST,
            background: Some(background::row(&trials, rate)).filter(|_| rate > 0.0),
            rows,
            trials,
        };
        let clock = ClockFacts::of(&clock, cost, None);
        let (disturbances, taken) = (Vec::new(), Vec::new());
        Ok(Measured { outcome, end, clock, refused, disturbances, taken })
    }
}

/// The background's rate without stimuli.
fn rate(behind: &Background) -> f64 {
    let (begun_ns, before) = (now_ns(ClockId::Monotonic), behind.drawn());
    let _interrupted = sleep_until_ns(begun_ns + TRIAL_NS);
    let took_ns = now_ns(ClockId::Monotonic) - begun_ns;
    (behind.drawn() - before) as f64 / (took_ns as f64 / 1e9)
}

impl<'a, 'l> Search<'a, 'l> {
    /// With half of the time, from now on.
    fn new(
        of: &'a SaturationExperiment,
        name: &'static str,
        (loading, stop): (&'a mut Loading<'l>, &'a AtomicBool),
    ) -> Self {
        let half_ns = of.duration.as_ns().max(0).unsigned_abs() / 2;
        Self {
            of,
            name,
            background: None,
            loading,
            stop,
            until_ns: now_ns(ClockId::Monotonic) + half_ns,
            highest: Load::at_most(HIGHEST),
            trials: Vec::new(),
            limited: None,
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || now_ns(ClockId::Monotonic) >= self.until_ns
    }

    /// Searches for each stage and goal; all of them share their trials.
    fn run(&mut self, kept: Kept<'_>) -> Result<Vec<SaturationRow>, ExperimentError> {
        let mut rows = Vec::new();
        for goal in GOALS {
            for stage in 0..2 {
                let range = |search: &Self| (Load::at_most(LOWEST), search.highest);
                let mut open = next(&self.trials, (stage, goal), range(self));
                while let Some(load) = open.filter(|_| !self.is_over()) {
                    self.trial(load, (&mut *kept.0, &mut *kept.1))?;
                    open = next(&self.trials, (stage, goal), range(self));
                }
                rows.push((stage, goal, open.is_none()));
            }
        }
        Ok(rows.into_iter().map(|of| self.row(of)).collect())
    }

    /// Frequencies up to the highest, to see what is left for the background.
    fn rise(&mut self, kept: Kept<'_>) -> Result<(), ExperimentError> {
        let mut load = Load::at_most(LOWEST);
        while load < self.highest && !self.is_over() {
            load = Load::at_most(load.hz() * 2.0).min(self.highest);
            self.trial(load, (&mut *kept.0, &mut *kept.1))?;
        }
        Ok(())
    }

    /// One trial, and its rest.
    fn trial(&mut self, load: Load, kept: Kept<'_>) -> Result<(), ExperimentError> {
        let (rows, refused) = kept;
        let hz = load.hz();
        let period_ns = (1e9 / hz) as u64;
        let (source, _) = self.of.source.open().map_err(ExperimentError::Source)?;
        let condition = Condition {
            number: usize::from(self.background.is_some()),
            source: &source,
            stimuli: TRIAL_NS / period_ns,
            period_ns,
            cpu: self.of.cpu,
            stimulus_cpu: self.of.stimulus_cpu,
            policies: [self.of.first, self.of.second, self.of.first],
            competitor: false,
            polls: true,
            stop: self.stop,
        };
        let (begun_ns, before) = (now_ns(ClockId::Monotonic), self.drawn());
        let ran = condition.run(self.loading)?;
        let took_ns = now_ns(ClockId::Monotonic) - begun_ns;
        let drawn = self.drawn() - before;
        for refusal in ran.stages.iter().flat_map(|stage| &stage.refused).chain(&ran.refused) {
            if !refused.contains(refusal) {
                refused.push(*refusal);
            }
        }
        let times: Vec<Times> = ran.slots.iter().map(|slot| slot.times()).collect();
        let raised = times.iter().filter(|of| of.raised_ns > 0).count() as u64;
        let loss = [0, 1].map(|stage| loss(&times, stage, period_ns));
        let limited = ran.not_raised as f64 > NOT_RAISED * (raised + ran.not_raised) as f64;
        let share = self
            .background
            .filter(|(_, rate)| *rate > 0.0)
            .map(|(_, rate)| drawn as f64 / (took_ns as f64 / 1e9) / rate);
        rows.push(TrialRow {
            condition: self.name.to_owned(),
            hz,
            stimuli: raised,
            not_raised: ran.not_raised,
            loss: loss.to_vec(),
            generator_limited: limited,
            background_share: share,
        });
        if limited && self.limited == Some(load) {
            // Twice, so no single stall: nothing at or above this can be raised.
            self.highest = self.highest.min(load.below());
        } else if limited {
            self.limited = Some(load);
        } else if raised > 0 && !self.stop.load(Ordering::Relaxed) {
            self.trials.push(Trial { load, loss, stimuli: raised });
        }
        let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + REST_NS);
        Ok(())
    }

    fn drawn(&self) -> u64 {
        self.background.map_or(0, |(behind, _)| behind.drawn())
    }

    fn row(&self, (stage, goal, over): (usize, f64, bool)) -> SaturationRow {
        let found = found(&self.trials, stage, goal);
        let lossy = self.trials.iter().filter(|trial| trial.loss[stage] > 0.0);
        SaturationRow {
            condition: self.name.to_owned(),
            stage: stage as u32 + 1,
            goal,
            pass_hz: found.pass.map(Load::hz),
            fail_hz: found.fail.map(Load::hz),
            first_loss_hz: lossy.map(|trial| trial.load).min().map(Load::hz),
            stimuli: found.stimuli,
            end: match (over, found.pass, found.fail) {
                (false, ..) => SearchEnd::Unfinished,
                (_, Some(_), Some(_)) => SearchEnd::Found,
                (_, Some(_), None) | (_, None, None) => SearchEnd::GeneratorLimited,
                (_, None, Some(_)) => SearchEnd::BelowLowest,
            },
        }
    }
}

/// The share of the raised stimuli that a stage did not serve.
fn loss(times: &[Times], stage: usize, period_ns: u64) -> f64 {
    let raised = || times.iter().filter(|of| of.raised_ns > 0);
    let served = |of: &&Times| {
        let complete_ns = of.complete_ns[stage];
        complete_ns > 0 && complete_ns < of.raised_ns + period_ns
    };
    let count = raised().count();
    if count == 0 { 0.0 } else { 1.0 - raised().filter(served).count() as f64 / count as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stimulus_is_served_by_an_answer_before_the_next_one() {
        let times = |raised_ns: u64, after: u64| Times {
            raised_ns,
            complete_ns: [raised_ns + after, 0],
            ..Times::default()
        };
        let all = [times(1_000, 10), times(2_000, 999), times(3_000, 1_000), Times::default()];
        assert!((loss(&all, 0, 1_000) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((loss(&all, 1, 1_000), loss(&[], 0, 1_000)), (1.0, 0.0));
    }
}
