//! The series of a run that was just measured.
//!
//! For comparisons; the samples were counted on the way.

use punctual_analysis::compare::series::Builder;
use punctual_lab::periodic::{PeriodicPlan, RunOutcome};

use super::runs::{UNDER_LOAD, run_name};
use crate::comparison::RecordedRun;
use crate::report::Run;

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
        for (condition, of) in plan.conditions.iter().enumerate() {
            let Some(builder) = series.next() else { return found };
            let as_one = merge && plan.counts_as_one(condition);
            // A wait of its own is shown beside the others, and compared with nothing.
            if merge && condition > 0 && !as_one {
                continue;
            }
            let condition_name = if as_one { UNDER_LOAD } else { &of.name };
            let name = run_name(plan, stream, condition_name);
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
