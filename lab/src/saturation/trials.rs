//! The trials of one condition: at the loads that its search wants, one after the other.
//!
//! Each opens its source anew. Ends with its time, a stop, or its source.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual::session::Refusal;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::background::Background;
use super::experiment::SaturationExperiment;
use super::outcome::{SaturationRow, TrialRow};
use super::search::{Load, SEARCHES, Trial, end, found, next_of_all};
use crate::experiment::{ExperimentError, Loading};
use crate::response::{Condition, Ran, Times};

/// The lowest and the highest frequency, Hz.
const LOWEST: f64 = 200.0;
pub(super) const HIGHEST: f64 = 50_000.0;
/// How long a trial is, and the rest after it: together below what throttling allows.
pub(super) const TRIAL_NS: u64 = 400_000_000;
pub(super) const REST_NS: u64 = 80_000_000;
/// A trial that shows whether the background dies: longer than the period of throttling and of the
/// fair server, 1 s, and short enough for a machine that is dead meanwhile.
const DEATH_NS: u64 = 2_500_000_000;
/// The highest frequency of such a trial, Hz: nothing is left where stimuli come faster than they
/// are answered.
const DEATH_HIGHEST: f64 = 400_000.0;
/// More stimuli not raised than this share: the generator does not keep the frequency.
const NOT_RAISED: f64 = 0.05;

/// One condition's search.
pub(super) struct Search<'a, 'l> {
    of: &'a SaturationExperiment,
    name: &'static str,
    pub(super) background: Option<(&'a Background, f64)>,
    loading: &'a mut Loading<'l>,
    stop: &'a AtomicBool,
    until_ns: u64,
    highest: Load,
    trials: Vec<Trial>,
    /// The last load that the generator did not keep.
    limited: Option<Load>,
    /// Why there is no source any more.
    pub(super) lost: Option<String>,
}

/// What all searches add to: the trials, and what threads were refused.
pub(super) type Kept<'k> = (&'k mut Vec<TrialRow>, &'k mut Vec<Refusal>);

impl<'a, 'l> Search<'a, 'l> {
    /// With half of the time, from now on.
    pub(super) fn new(
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
            lost: None,
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.lost.is_some()
            || now_ns(ClockId::Monotonic) >= self.until_ns
    }

    /// Searches for each stage and goal; all of them share their trials.
    pub(super) fn run(&mut self, kept: Kept<'_>) -> Result<Vec<SaturationRow>, ExperimentError> {
        let range = |search: &Self| (Load::at_most(LOWEST), search.highest);
        let mut open = next_of_all(&self.trials, range(self));
        while let Some(load) = open.filter(|_| !self.is_over()) {
            self.trial((load, TRIAL_NS), (&mut *kept.0, &mut *kept.1))?;
            open = next_of_all(&self.trials, range(self));
        }
        Ok(SEARCHES.into_iter().map(|of| self.row(of, range(self))).collect())
    }

    /// Both; what is left for the background comes first where that is what throttling is off for.
    pub(super) fn run_and_rise(
        &mut self,
        kept: Kept<'_>,
    ) -> Result<Vec<SaturationRow>, ExperimentError> {
        if self.of.unthrottled {
            self.rise((&mut *kept.0, &mut *kept.1))?;
            return self.run(kept);
        }
        let found = self.run((&mut *kept.0, &mut *kept.1))?;
        self.rise(kept).map(|()| found)
    }

    /// Frequencies up to the highest, to see what is left for the background.
    fn rise(&mut self, kept: Kept<'_>) -> Result<(), ExperimentError> {
        let mut load = Load::at_most(LOWEST);
        let (ns, highest) = match self.of.unthrottled {
            true => (DEATH_NS, Load::at_most(DEATH_HIGHEST)),
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
        for refusal in ran.stages.iter().flat_map(|stage| &stage.refused).chain(&ran.refused) {
            if !refused.contains(refusal) {
                refused.push(*refusal);
            }
        }
        let period_ns = period_ns(load);
        let times: Vec<Times> = ran.slots.iter().map(|slot| slot.times()).collect();
        let raised = times.iter().filter(|of| of.raised_ns > 0).count() as u64;
        let loss = [0, 1].map(|stage| loss(&times, stage, period_ns));
        let limited = ran.not_raised as f64 > NOT_RAISED * (raised + ran.not_raised) as f64;
        rows.push(TrialRow {
            condition: self.name.to_owned(),
            hz: load.hz(),
            stimuli: raised,
            not_raised: ran.not_raised,
            loss: loss.to_vec(),
            generator_limited: limited,
            ns,
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

    /// Raises the stimuli of a trial, and what share was left for the background; `None` where the
    /// source was lost: a part of a trial decides nothing. The very first trial needs a source.
    fn ran(
        &mut self,
        (load, ns): (Load, u64),
        is_first: bool,
    ) -> Result<Option<(Ran, Option<f64>)>, ExperimentError> {
        let period_ns = period_ns(load);
        let source = match self.of.source.open() {
            Ok((source, _)) => source,
            Err(why) if is_first => return Err(ExperimentError::Source(why)),
            Err(why) => {
                self.lost = Some(why);
                return Ok(None);
            }
        };
        let condition = Condition {
            number: usize::from(self.background.is_some()),
            source: &source,
            stimuli: ns / period_ns,
            period_ns,
            cpu: self.of.cpu,
            stimulus_cpu: self.of.stimulus_cpu,
            policies: [self.of.first, self.of.second, self.of.first],
            competitor: false,
            polls: true,
            counted: self.background.map(|(behind, _)| behind.drawn()),
            stop: self.stop,
        };
        let ran = condition.run(self.loading)?;
        self.lost = ran.lost().map(ToString::to_string);
        let share = self
            .background
            .zip(ran.counted)
            .filter(|((_, rate), (_, took_ns))| *rate > 0.0 && *took_ns > 0)
            .map(|((_, rate), (drawn, ns))| drawn as f64 / (ns as f64 / 1e9) / rate);
        Ok(Some((ran, share)).filter(|_| self.lost.is_none()))
    }

    fn row(&self, (stage, goal): (usize, f64), range: (Load, Load)) -> SaturationRow {
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
            end: end(&self.trials, (stage, goal), range),
        }
    }
}

fn period_ns(load: Load) -> u64 {
    (1e9 / load.hz()) as u64
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
