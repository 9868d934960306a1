//! The series of a run that was just measured.
//!
//! For comparisons; the samples were counted on the way.

use punctual_analysis::compare::series::Builder;
use punctual_lab::periodic::{PeriodicPlan, RunOutcome, Stream};

use super::runs::{UNDER_LOAD, run_name};
use crate::comparison::RecordedRun;
use crate::report::{Run, Setup};

/// The runs that a plan is to give, without anything measured; their grids follow `clock`.
pub(crate) fn planned(
    plan: &PeriodicPlan,
    merge: bool,
    keep_cold: bool,
    clock: Option<&str>,
) -> Vec<RecordedRun> {
    let mut planned: Vec<RecordedRun> = Vec::new();
    for stream in &plan.streams {
        for (condition, of) in plan.conditions.iter().enumerate() {
            let Some(name) = name(plan, merge, stream, condition) else { continue };
            let load: Vec<String> = of.loads.iter().map(ToString::to_string).collect();
            if let Some(together) = planned.iter_mut().find(|run| run.name == name) {
                together.setup.load.extend(load);
                continue;
            }
            let setup = Setup {
                cpu: stream.thread.pinned_to(),
                period_ns: Some(stream.period.as_ns()),
                follows: clock.map(ToOwned::to_owned),
                wait: Some(plan.wait(stream, condition).name().to_owned()),
                load,
                ..Setup::default()
            };
            planned.push(RecordedRun {
                name,
                setup,
                cold_left_out: !keep_cold,
                unrecorded: 0,
                left_out: 0,
                lateness_ns: None,
                wakes_ns: None,
                parts: Vec::new(),
            });
        }
    }
    planned
}

/// The name of the run of a stream in which a condition counts; `None` where a wait of its own is
/// shown beside the others and compared with nothing.
fn name(plan: &PeriodicPlan, merge: bool, stream: &Stream, condition: usize) -> Option<String> {
    let as_one = merge && plan.counts_as_one(condition);
    let is_compared = !merge || condition == 0 || as_one;
    let named = if as_one { UNDER_LOAD } else { &plan.conditions[condition].name };
    is_compared.then(|| run_name(plan, stream, named))
}

/// The runs of a plan, by the names that they have in `runs`; with `merge` those that count as
/// one ([`PeriodicPlan::counts_as_one`]) are one.
pub(super) fn recorded(
    plan: &PeriodicPlan,
    merge: bool,
    keep_cold: bool,
    outcomes: &[RunOutcome],
    series: Vec<Builder>,
    runs: &[Run],
) -> Vec<RecordedRun> {
    let mut found: Vec<RecordedRun> = Vec::new();
    let mut series = series.into_iter();
    for (number, stream) in plan.streams.iter().enumerate() {
        for condition in 0..plan.conditions.len() {
            let Some(builder) = series.next() else { return found };
            let Some(name) = name(plan, merge, stream, condition) else { continue };
            let outcome = &outcomes[plan.run(number, condition)];
            let part = builder.finish_with(outcome.missed, outcome.unrecorded);
            if let Some(together) = found.iter_mut().find(|run| run.name == name) {
                together.unrecorded = together.unrecorded.saturating_add(outcome.unrecorded);
                together.parts.push(part);
                continue;
            }
            let run = runs.iter().find(|run| run.name == name);
            found.push(RecordedRun {
                name,
                setup: run.map(|run| run.setup.clone()).unwrap_or_default(),
                cold_left_out: !keep_cold,
                unrecorded: outcome.unrecorded,
                left_out: 0,
                lateness_ns: run.map(|run| run.outcome.lateness_ns.clone()),
                wakes_ns: run.map(|run| run.outcome.wakes.stats.clone()),
                parts: vec![part],
            });
        }
    }
    found
}
