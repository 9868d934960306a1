//! The response experiment as the lifecycle of all experiments runs it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::clocks::{MachineClock, Reading, StampCost};
use punctual::safety::is_real_time;
use punctual_analysis::summary::Distribution;
use punctual_core::time::{Period, Span};
use punctual_os::scheduler::SchedPolicy;

use super::floor;
use super::outcome::{ResponseOutcome, ResponseRow, Times, between, stages};
use super::run::{Condition, Ran};
use super::source::{Source, SourceName};
use super::stages::COMPETES;
use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError,
    Loading, Measured, policy_words,
};
use crate::load::LoadSpec;

/// Stimuli of a condition at most: each keeps 56 bytes.
pub const STIMULI_MAX: u64 = 1_000_000;
/// What both stages take for a stimulus, about, where nothing is known yet.
const ANSWER_NS: f64 = 40_000.0;

/// How fast two stages answer stimuli.
#[derive(Clone, Debug)]
pub struct ResponseExperiment {
    /// Where stimuli come from.
    pub source: SourceName,
    /// The CPU of both stages.
    pub cpu: u32,
    /// The CPU that raises stimuli.
    pub stimulus_cpu: u32,
    /// From one stimulus to the next.
    pub period: Period,
    /// How long each condition is measured.
    pub duration: Span,
    /// The policy of stage 1, and of the thread that raises stimuli.
    pub first: SchedPolicy,
    /// The policy of stage 2.
    pub second: SchedPolicy,
    /// Whether a thread of stage 2's policy computes on its CPU for seven tenths of the time.
    pub competitor: bool,
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
        let condition = Condition {
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
        };
        let ran = condition.run(loading);
        loading.end(number);
        Ok(ran?)
    }

    fn row(
        &self,
        name: &str,
        ran: &Ran,
        stamps_within: Result<Option<Span>, String>,
    ) -> ResponseRow {
        let (mut late, mut kernel) = (Distribution::default(), Distribution::default());
        let times: Vec<Times> = ran.slots.iter().map(|slot| slot.times()).collect();
        for (slot, of) in ran.slots.iter().zip(&times) {
            if of.raised_ns > 0 {
                late.push(slot.late_ns.load(Ordering::Relaxed).cast_signed());
            }
            if of.raised_ns > 0 && of.kernel_ns > 0 {
                kernel.push(of.kernel_ns.cast_signed() - of.raised_ns.cast_signed());
            }
        }
        let policies = [&ran.stages[0], &ran.stages[1]].map(|stage| policy_words(stage.policy));
        let stamps_within = stamps_within.and_then(|within| between(&times, within));
        let within = *stamps_within.as_ref().unwrap_or(&None);
        ResponseRow {
            condition: name.to_owned(),
            stimuli: times.iter().filter(|of| of.raised_ns > 0).count() as u64,
            not_raised: ran.not_raised,
            raised_late_ns: late.stats(),
            unexpected: ran.stages[0].unexpected,
            kernel_ns: Some(kernel.stats())
                .filter(|stats| stats.p50.is_some() && stamps_within.is_ok()),
            kernel_within_ns: within.map_or(0, |within| within.as_ns().unsigned_abs()),
            kernel_left_out: stamps_within.err(),
            stages: stages(&times, self.period.as_ns(), policies),
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
        if self.competitor {
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

    fn run(self, context: Context<'_, '_>) -> Result<Measured<ResponseOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let begun = Reading::take();
        let (first, note) = self.source.open().map_err(ExperimentError::Source)?;
        let mut opened = Some(first);
        let cpus = [self.stimulus_cpu, self.cpu];
        let floor = floor::measure(cpus, self.first, self.period.as_ns(), stop);
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
        let (mut refused, mut lost) = (Vec::new(), false);
        for (number, (name, _)) in self.conditions.iter().enumerate() {
            if stop.load(Ordering::Relaxed) || lost {
                break;
            }
            // What a source still has from the condition before is no stimulus of this one; a
            // device is closed before it is opened again.
            let source = match opened.take().map_or_else(|| self.source.open(), |of| Ok((of, None)))
            {
                Ok((source, _)) => source,
                Err(why) => {
                    lost = true;
                    outcome.rows.push(ResponseRow::lost(name, why));
                    break;
                }
            };
            let ran = self.condition((number, &source), loading, stop)?;
            refused.extend(ran.stages.iter().flat_map(|stage| stage.refused.clone()));
            refused.extend(ran.refused.clone());
            let row = self.row(name, &ran, source.stamps_within());
            lost = row.lost.is_some();
            outcome.rows.push(row);
        }
        clock.discipline();
        let end = if lost {
            ExperimentEnd::Lost
        } else if stop.load(Ordering::Relaxed) {
            ExperimentEnd::Stopped
        } else {
            ExperimentEnd::Finished
        };
        Ok(Measured {
            end,
            clock: ClockFacts::of(&clock, cost, begun.until(&Reading::take())),
            refused,
            disturbances: Vec::new(),
            taken: Vec::new(),
            outcome,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::stages::{EndedStage, Slot};
    use super::*;

    #[test]
    fn stage_0_is_left_out_with_the_reason_and_the_rest_is_kept() {
        let other = SchedPolicy::Other;
        let experiment = ResponseExperiment {
            source: "udp".parse().expect("a source"),
            cpu: 0,
            stimulus_cpu: 0,
            period: Period::from_ns(1_000_000).expect("a period"),
            duration: Span::from_ms(1),
            first: other,
            second: other,
            competitor: false,
            conditions: Vec::new(),
        };
        let stage = || EndedStage { policy: other, refused: Vec::new(), unexpected: 0, lost: None };
        let slot = |_| {
            let slot = Slot::default();
            slot.raised_ns.store(1_000, Ordering::Relaxed);
            slot.kernel_ns.store(990, Ordering::Relaxed);
            slot
        };
        let ran = Ran {
            slots: (0..100).map(slot).collect(),
            stages: [stage(), stage()],
            not_raised: 0,
            refused: Vec::new(),
            counted: None,
            lost: None,
        };
        let row = |stamps_within| experiment.row("idle", &ran, stamps_within);
        let stamped = row(Ok(Some(Span::from_ns(1_000))));
        let median = stamped.kernel_ns.and_then(|ns| ns.p50);
        assert_eq!((median, stamped.kernel_within_ns), (Some(-10.0), 1_000));
        assert_eq!(stamped.kernel_left_out, None);
        // Set and not set back; set back before the end.
        for within in [Err("it was set".to_owned()), Ok(Some(Span::from_ns(9)))] {
            let set = row(within);
            assert_eq!((set.kernel_ns, set.kernel_within_ns, set.stimuli), (None, 0, 100));
            assert!(set.kernel_left_out.is_some());
        }
    }
}
