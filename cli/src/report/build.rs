//! A report from what an experiment gave: facts, numbers, verdicts, limits, refusals explained.
//!
//! For the subcommands. Pure: everything comes in as an argument.

use punctual::clocks::{MachineClock, StampCost};
use punctual::core::grid::Grid;
use punctual_analysis::limit::Limit;
use punctual_lab::cost::RecordCost;
use punctual_lab::load::LoadReport;
use punctual_lab::periodic::{self, End, Plan, Stream};

use super::maker::Maker;
use super::words::{session, warnings};
use super::{Clock, Disturbance, Follow, JudgedLimit, Overall, Recording, Report, Run};
use crate::comparison::live;
use crate::experiment::{Experiment, Recordings};
use crate::format;

/// The name of the run in which all loads of `check` count as one.
pub(crate) const UNDER_LOAD: &str = "under load";

/// Everything that a report of an experiment is made from.
pub(crate) struct Context {
    /// What was run.
    pub(crate) experiment: Experiment,
    /// The grid of each stream.
    pub(crate) grids: Vec<Grid>,
    /// The clock that they follow.
    pub(crate) followed: Option<Follow>,
    /// What it gave.
    pub(crate) outcome: periodic::Outcome<Recordings>,
    /// What the loads of each condition did.
    pub(crate) loads: Vec<Vec<LoadReport>>,
    /// What recording cost.
    pub(crate) recording: Option<RecordCost>,
    /// When it started.
    pub(crate) started: String,
}

/// How results name the run of a stream under a condition: the condition alone while there is one
/// stream.
pub(crate) fn run_name(plan: &Plan, stream: &Stream, condition: &str) -> String {
    if plan.streams.len() == 1 {
        return condition.to_owned();
    }
    let cpu = stream.cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let name = format!("{cpu}, {}", format::period(stream.period.as_ns()));
    if plan.conditions.len() == 1 { name } else { format!("{name}, {condition}") }
}

/// How long condition `condition` was to run in all, in ns.
pub(crate) fn duration_ns(plan: &Plan, condition: usize) -> u64 {
    let blocks = plan.blocks.iter().filter(|block| block.condition == condition);
    blocks.map(|block| block.length.as_ns().unsigned_abs()).sum()
}

/// The report of an experiment, verdicts and limits included.
pub(crate) fn from_experiment(context: Context) -> Report {
    let Context { experiment, grids, followed, mut outcome, loads, recording, started } = context;
    let mut report = Report::empty(experiment.name);
    report.started_at = Some(started);
    report.incomplete = outcome.end != End::Finished;
    report.clock = Some(clock(&outcome));
    report.follow = followed.map(|follow| match &outcome.followed {
        Some(ended) => follow.ended(ended),
        None => follow,
    });
    report.recording =
        recording.map(|cost| Recording { hot_ns: cost.hot_ns, cold_ns: cost.cold_ns });
    report.session = Some(session(&outcome, &experiment.here));
    report.disturbances = outcome
        .disturbances
        .iter()
        .map(|(at_ns, what)| Disturbance { at_ns: *at_ns, what: what.to_string() })
        .collect();
    let cold = if experiment.asked.keep_cold { 0 } else { experiment.plan.cold };
    report.warnings.clone_from(&experiment.warnings);
    report.warnings.extend(warnings(&outcome, &experiment.here, cold));
    report.warnings.extend(report.follow.iter().flat_map(Follow::warnings).collect::<Vec<_>>());
    report.choice = Some(experiment.choice.clone());
    let series = std::mem::take(&mut outcome.sink.series);
    let maker = Maker {
        experiment: &experiment,
        grids: &grids,
        follows: report.follow.as_ref().map(|follow| follow.clock.as_str()),
        outcome: &outcome.runs,
        loads: &loads,
        floor_ns: outcome.clock.cost.now_ns,
    };
    let (runs, rows) = maker.runs(outcome.sink);
    report.recorded = live::recorded(
        &experiment.plan,
        experiment.merge,
        experiment.asked.keep_cold,
        &outcome.runs,
        series,
        &runs,
    );
    report.warnings.extend(unmeasured(&runs));
    report.runs = runs;
    report.rows = rows;
    report.verdicts = super::verdict::of(&report.runs);
    report.verdict = judge(&report.runs, &experiment.asked.limits, report.incomplete);
    report.verdict.hold(&report.runs, &experiment.asked.claims, report.incomplete);
    report.plans.clone_from(&experiment.plans);
    report.machine = Some(experiment.facts);
    report
}

/// Runs without a cycle that counts: no lateness is no good one.
fn unmeasured(runs: &[Run]) -> Vec<String> {
    let empty = runs.iter().filter(|run| run.outcome.lateness.count() == 0);
    let said = empty.map(|run| {
        format!(
            "\"{}\" has no cycle that counts, and says nothing: what its loads take to start is \
             taken from its time; a longer --duration gives it some",
            run.name
        )
    });
    said.collect()
}

/// Holds every run to every limit. A run that ended before its time did not show that one holds.
pub(crate) fn judge(runs: &[Run], limits: &[Limit], incomplete: bool) -> Overall {
    let judged: Vec<JudgedLimit> = runs
        .iter()
        .flat_map(|run| {
            limits.iter().map(|limit| JudgedLimit {
                run: run.name.clone(),
                judgement: limit.judge(&run.outcome),
            })
        })
        .collect();
    let cut = (incomplete && !limits.is_empty())
        .then(|| "it ended before its time: what did not run was not held to any limit".to_owned());
    let failed = judged.iter().filter(|limit| !limit.judgement.ok);
    let failed = failed.map(|limit| {
        format!("{}: {}: {}", limit.run, limit.judgement.text, limit.judgement.reason)
    });
    let reasons: Vec<String> = cut.into_iter().chain(failed).collect();
    Overall { ok: reasons.is_empty(), limits: judged, claims: Vec::new(), reasons }
}

/// What stamps were taken with.
pub(crate) fn clock<S>(outcome: &periodic::Outcome<S>) -> Clock {
    let clock = &outcome.clock;
    Clock {
        source: clock.name.to_owned(),
        untrusted: clock.untrusted.clone(),
        rate_hz: clock.rate.map(|rate| rate.hz),
        rate_bound_ppb: clock.rate.map(|rate| rate.bound_ppb).filter(|bound| bound.is_finite()),
        slew_ppb: clock.slew.map(|slew| slew.ppb),
        slew_bound_ppb: clock.slew.map(|slew| slew.bound_ppb),
        stamp_ns: clock.cost.now_ns,
        poll_ns: clock.cost.poll_ns,
        wake_ns: clock.cost.wake_ns,
    }
}

/// What stamps are taken with, where nothing was released on them.
pub(crate) fn stamps(clock: &MachineClock, cost: StampCost) -> Clock {
    let untrusted = match clock {
        MachineClock::Counter(_) => None,
        MachineClock::Vdso(_, why) => Some(why.to_string()),
    };
    Clock {
        source: clock.name().to_owned(),
        untrusted,
        rate_hz: clock.rate().map(|rate| rate.hz),
        rate_bound_ppb: clock.rate().map(|rate| rate.bound_ppb).filter(|bound| bound.is_finite()),
        slew_ppb: None,
        slew_bound_ppb: None,
        stamp_ns: cost.now_ns,
        poll_ns: cost.poll_ns,
        wake_ns: cost.wake_ns,
    }
}

#[cfg(test)]
mod tests {
    use punctual::core::sample::Sample;
    use punctual_analysis::recording::{Recording, Setup as Recorded};

    use super::*;

    #[test]
    fn a_run_without_cycles_is_not_taken_for_a_good_one() {
        let mut some = Recording::new(Recorded::default());
        some.push(&Sample::default());
        let none = Recording::new(Recorded::default());
        let run = |name: &str, recording: Recording| {
            Run::recorded(name.to_owned(), super::super::Setup::default(), recording.finish(0))
        };
        let said = unmeasured(&[run("idle", some), run("under load", none)]);
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("\"under load\" has no cycle"), "{said:?}");
    }
}
