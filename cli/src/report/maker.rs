//! The runs and rows of a report, from recordings and what the experiment says beside them.
//!
//! For `build`. Where conditions count as one, that one stands in their place, and a row for each.

use punctual::core::grid::Grid;
use punctual::core::time::Span;
use punctual::os::scheduler::Policy;
use punctual_analysis::recording::{Outcome, Recording as Accumulator};
use punctual_lab::load::LoadReport;
use punctual_lab::periodic::RunOutcome;

use super::build::{UNDER_LOAD, duration_ns, run_name};
use super::{Approach, Load, LoadRow, Row, Run, Setup};
use crate::experiment::{Experiment, Recordings, policy_words};

/// What runs are made from.
pub(super) struct Maker<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) grids: &'a [Grid],
    pub(super) follows: Option<&'a str>,
    pub(super) outcome: &'a [RunOutcome],
    pub(super) loads: &'a [Vec<LoadReport>],
    pub(super) floor_ns: f64,
}

impl Maker<'_> {
    /// All runs; where conditions count as one, that one in their place, and a row for each.
    pub(super) fn runs(&self, sink: Recordings) -> (Vec<Run>, Vec<Row>) {
        let plan = &self.experiment.plan;
        let (mut runs, mut rows) = (Vec::new(), Vec::new());
        let mut recordings = sink.runs.into_iter();
        let mut merged = sink.merged.into_iter();
        for stream in 0..plan.streams.len() {
            let together = merged.next();
            for condition in 0..plan.conditions.len() {
                let Some(recording) = recordings.next() else { break };
                let outcome = self.finish(recording, &[plan.run(stream, condition)]);
                if together.is_some() && condition > 0 {
                    rows.push(self.row(condition, outcome));
                } else {
                    let name = &plan.conditions[condition].name;
                    runs.push(self.run(stream, name, &[condition], outcome));
                }
            }
            if let Some(together) = together {
                let conditions: Vec<usize> = (1..plan.conditions.len()).collect();
                let of: Vec<usize> = conditions.iter().map(|&c| plan.run(stream, c)).collect();
                let outcome = self.finish(together, &of);
                runs.push(self.run(stream, UNDER_LOAD, &conditions, outcome));
            }
        }
        (runs, rows)
    }

    /// The recorder's own counters hold also where nothing came after.
    fn finish(&self, recording: Accumulator, of: &[usize]) -> Outcome {
        let sum =
            |count: fn(&RunOutcome) -> u64| of.iter().map(|&run| count(&self.outcome[run])).sum();
        recording.finish_with(sum(|run| run.missed), sum(|run| run.unrecorded))
    }

    fn row(&self, condition: usize, outcome: Outcome) -> Row {
        Row::Load(LoadRow {
            load: self.experiment.plan.conditions[condition].name.clone(),
            cycles: outcome.cycles,
            missed: outcome.missed.unwrap_or_default(),
            censored: outcome.censored,
            lateness_ns: outcome.lateness_ns,
            loads: loads(&self.loads[condition]),
        })
    }

    fn run(&self, number: usize, name: &str, conditions: &[usize], outcome: Outcome) -> Run {
        let plan = &self.experiment.plan;
        let stream = &plan.streams[number];
        let of: Vec<&RunOutcome> =
            conditions.iter().map(|&c| &self.outcome[plan.run(number, c)]).collect();
        let spins = conditions.iter().any(|&c| plan.wait(stream, c).spins());
        let stall_max = of.iter().map(|run| run.stalls.longest).max().unwrap_or(Span::ZERO);
        let busy: f64 = of.iter().map(|run| run.cpu_load * run.wall_ns as f64).sum();
        let wall: f64 = of.iter().map(|run| run.wall_ns as f64).sum();
        Run {
            name: run_name(plan, stream, name),
            setup: self.setup(number, conditions, of.first().map(|run| run.policy)),
            stalled: spins.then(|| of.iter().map(|run| run.stalls.count).sum()),
            stall_max_ns: spins.then_some(stall_max.as_ns() as f64),
            cpu_load: (wall > 0.0).then_some(busy / wall),
            page_faults: Some(
                of.iter().map(|run| run.usage.minor_faults + run.usage.major_faults).sum(),
            ),
            preempted: Some(of.iter().map(|run| run.usage.involuntary_switches).sum()),
            floor_ns: Some(self.floor_ns),
            approach: of.last().filter(|_| spins).map(|run| Approach::of(run)),
            loads: conditions.iter().flat_map(|&c| loads(&self.loads[c])).collect(),
            outcome,
        }
    }

    fn setup(&self, number: usize, conditions: &[usize], policy: Option<Policy>) -> Setup {
        let plan = &self.experiment.plan;
        let stream = &plan.streams[number];
        let (policy, priority) = policy_words(policy.unwrap_or(stream.policy));
        Setup {
            cpu: stream.cpu,
            period_ns: Some(stream.period.as_ns()),
            phase_ns: Some(self.grids[number].phase_ns()),
            follows: self.follows.map(ToOwned::to_owned),
            policy: Some(policy.to_owned()),
            priority,
            wait: conditions.first().map(|&c| plan.wait(stream, c).name().to_owned()),
            load: conditions
                .iter()
                .flat_map(|&c| self.experiment.specs[c].iter().map(ToString::to_string))
                .collect(),
            duration_ns: Some(conditions.iter().map(|&c| duration_ns(plan, c)).sum()),
        }
    }
}

/// What loads did, as a report has it.
pub(crate) fn loads(reports: &[LoadReport]) -> Vec<Load> {
    let load = |report: &LoadReport| Load {
        name: report.name.clone(),
        rate: report.rate,
        unit: report.unit.clone(),
        note: report.note.clone(),
    };
    reports.iter().map(load).collect()
}
