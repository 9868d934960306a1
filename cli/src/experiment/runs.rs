//! The runs and rows of a report, from recordings and what the experiment gives with them.
//!
//! Where conditions count as one, that one stands in their place, and a row for each.

use punctual_analysis::compare::series::Builder;
use punctual_analysis::recording::{Recording, RunFigures};
use punctual_core::time::Span;
use punctual_lab::load::LoadReport;
use punctual_lab::periodic::{PeriodicOutcome, PeriodicPlan, Recordings, RunOutcome, Stream};
use punctual_os::scheduler::SchedPolicy;
use punctual_report::{Approach, LoadRow, Run, Setup, loads, policy_words};

use crate::comparison::RecordedRun;
use crate::format;

/// The name of the run in which all loads of `check` count as one.
pub(crate) const UNDER_LOAD: &str = "under load";

/// How results name the run of a stream under a condition: the condition alone while there is one
/// stream.
pub(crate) fn run_name(plan: &PeriodicPlan, stream: &Stream, condition: &str) -> String {
    if plan.streams.len() == 1 {
        return condition.to_owned();
    }
    let cpu =
        stream.thread.pinned_to().map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let name = format!("{cpu}, {}", format::period(stream.period.as_ns()));
    if plan.conditions.len() == 1 { name } else { format!("{name}, {condition}") }
}

/// What runs are made from.
pub(super) struct Maker<'a> {
    /// What the experiment gave.
    pub(super) outcome: &'a PeriodicOutcome<()>,
    /// The clock that the grids follow.
    pub(super) follows: Option<&'a str>,
    /// What the loads of each condition did.
    pub(super) loads: &'a [Vec<LoadReport>],
    /// What a stamp costs.
    pub(super) floor_ns: f64,
}

impl Maker<'_> {
    /// All runs; where conditions count as one, that one in their place, and a row for each.
    pub(super) fn runs(&self, recorded: Recordings) -> (Vec<Run>, Vec<LoadRow>) {
        let plan = &self.outcome.plan;
        let (mut runs, mut rows) = (Vec::new(), Vec::new());
        let mut recordings = recorded.runs.into_iter();
        let mut merged = recorded.merged.into_iter();
        for stream in 0..plan.streams.len() {
            let together = merged.next();
            let as_one = |at: usize| together.is_some() && plan.counts_as_one(at);
            let mut apart = Vec::new();
            for condition in 0..plan.conditions.len() {
                let Some(recording) = recordings.next() else { break };
                let outcome = self.finish(recording, &[plan.run(stream, condition)]);
                let name = &plan.conditions[condition].name;
                if as_one(condition) {
                    rows.push(self.row(stream, condition, outcome));
                } else if together.is_some() && condition > 0 {
                    apart.push(self.run(stream, name, &[condition], outcome));
                } else {
                    runs.push(self.run(stream, name, &[condition], outcome));
                }
            }
            if let Some(together) = together {
                let loaded = 1..plan.conditions.len();
                let conditions: Vec<usize> = loaded.filter(|&at| plan.counts_as_one(at)).collect();
                let together_of: Vec<usize> =
                    conditions.iter().map(|&c| plan.run(stream, c)).collect();
                let outcome = self.finish(together, &together_of);
                runs.push(self.run(stream, UNDER_LOAD, &conditions, outcome));
            }
            runs.extend(apart);
        }
        (runs, rows)
    }

    /// The recorder's own counters hold also where nothing came after.
    fn finish(&self, recording: Recording, runs: &[usize]) -> RunFigures {
        let sum = |count: fn(&RunOutcome) -> u64| {
            runs.iter().map(|&run| count(&self.outcome.runs[run])).sum()
        };
        recording.finish_with(sum(|run| run.missed), sum(|run| run.unrecorded))
    }

    fn row(&self, number: usize, condition: usize, outcome: RunFigures) -> LoadRow {
        LoadRow {
            period_ns: Some(self.outcome.plan.streams[number].period.as_ns()),
            load: self.outcome.plan.conditions[condition].name.clone(),
            cycles: outcome.cycles,
            missed: outcome.missed.unwrap_or_default(),
            censored: outcome.censored,
            unrecorded: outcome.unrecorded,
            lateness_ns: outcome.lateness_ns,
            steal_ns: self.outcome.runs[self.outcome.plan.run(number, condition)].steal_ns,
            loads: loads(&self.loads[condition]),
        }
    }

    fn run(&self, number: usize, name: &str, conditions: &[usize], outcome: RunFigures) -> Run {
        let plan = &self.outcome.plan;
        let stream = &plan.streams[number];
        let outcomes: Vec<&RunOutcome> =
            conditions.iter().map(|&c| &self.outcome.runs[plan.run(number, c)]).collect();
        let spins = conditions.iter().any(|&c| plan.wait(stream, c).spins());
        let stall_max = outcomes.iter().map(|run| run.stalls.longest).max().unwrap_or(Span::ZERO);
        let busy: f64 = outcomes.iter().map(|run| run.cpu_load * run.wall_ns as f64).sum();
        let wall: f64 = outcomes.iter().map(|run| run.wall_ns as f64).sum();
        let run = Run {
            name: run_name(plan, stream, name),
            condition: None,
            setup: self.setup(number, conditions, outcomes.first().map(|run| run.policy)),
            stalled: spins.then(|| outcomes.iter().map(|run| run.stalls.count).sum()),
            stall_max_ns: spins.then_some(stall_max.as_ns() as f64),
            cpu_load: (wall > 0.0).then_some(busy / wall),
            page_faults: Some(
                outcomes.iter().map(|run| run.usage.minor_faults + run.usage.major_faults).sum(),
            ),
            preempted: Some(outcomes.iter().map(|run| run.usage.involuntary_switches).sum()),
            steal_ns: outcomes.iter().filter_map(|run| run.steal_ns).reduce(u64::saturating_add),
            floor_ns: Some(self.floor_ns),
            approach: outcomes.last().filter(|_| spins).map(|run| Approach::of(run)),
            loads: conditions.iter().flat_map(|&c| loads(&self.loads[c])).collect(),
            load_deaths: conditions.iter().map(|&c| load_deaths(&self.loads[c])).sum(),
            outcome,
        };
        run.under(name)
    }

    fn setup(&self, number: usize, conditions: &[usize], policy: Option<SchedPolicy>) -> Setup {
        let plan = &self.outcome.plan;
        let stream = &plan.streams[number];
        let (policy, priority) = policy_words(policy.unwrap_or(stream.thread.policy()));
        Setup {
            cpu: stream.thread.pinned_to(),
            period_ns: Some(stream.period.as_ns()),
            phase_ns: conditions.first().map(|&c| plan.phase_ns(stream, c)),
            follows: self.follows.map(ToOwned::to_owned),
            policy: Some(policy.to_owned()),
            priority,
            wait: conditions.first().map(|&c| plan.wait(stream, c).name().to_owned()),
            load: conditions
                .iter()
                .flat_map(|&c| plan.conditions[c].loads.iter().map(ToString::to_string))
                .collect(),
            duration_ns: Some(conditions.iter().map(|&c| length_ns(plan, c)).sum()),
        }
    }
}

/// How often a process of these loads died.
pub(crate) fn load_deaths(reports: &[LoadReport]) -> u64 {
    reports.iter().map(|report| report.deaths.len() as u64).sum()
}

/// How long a condition was to run in all, in ns.
pub(super) fn length_ns(plan: &PeriodicPlan, condition: usize) -> u64 {
    plan.length_of(condition).as_ns().unsigned_abs()
}

/// The runs that a plan is to give, without anything measured; their grids follow `clock`.
pub(crate) fn planned(
    plan: &PeriodicPlan,
    merge: bool,
    keep_cold: bool,
    clock: Option<&str>,
) -> Vec<RecordedRun> {
    let mut planned: Vec<RecordedRun> = Vec::new();
    for stream in &plan.streams {
        for (at, condition) in plan.conditions.iter().enumerate() {
            let Some(name) = name(plan, merge, stream, at) else { continue };
            let load: Vec<String> = condition.loads.iter().map(ToString::to_string).collect();
            if let Some(together) = planned.iter_mut().find(|run| run.name == name) {
                together.setup.load.extend(load);
                continue;
            }
            let setup = Setup {
                cpu: stream.thread.pinned_to(),
                period_ns: Some(stream.period.as_ns()),
                follows: clock.map(ToOwned::to_owned),
                wait: Some(plan.wait(stream, at).name().to_owned()),
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
