//! A report from what an experiment gave: facts, numbers, verdicts, limits, refusals explained.
//!
//! For the subcommands. Pure: everything comes in as an argument.

use punctual::core::grid::Grid;
use punctual::core::time::Span;
use punctual::os::scheduler::Policy;
use punctual::session::{Attempt, Refusal};
use punctual::watchdog::Force;
use punctual_analysis::limit::Limit;
use punctual_analysis::recording::{Outcome, Recording as Accumulator};
use punctual_host::cpulist::CpuList;
use punctual_host::explain::{self, explain};
use punctual_host::facts::Facts;
use punctual_lab::cost::RecordCost;
use punctual_lab::load::LoadReport;
use punctual_lab::periodic::{self, End, Plan, RunOutcome, Stream, WaitKind};

use super::{
    Clock, Disturbance, JudgedLimit, Load, Overall, Recording, Refused, Report, Row, Run, Session,
    Setup,
};
use crate::experiment::{Experiment, Recordings, policy_words};
use crate::view::show;

/// The name of the run in which all loads of `check` count as one.
pub(crate) const UNDER_LOAD: &str = "under load";

/// Everything that a report of an experiment is made from.
pub(crate) struct Context {
    /// What was run.
    pub(crate) experiment: Experiment,
    /// The grid of each stream.
    pub(crate) grids: Vec<Grid>,
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
    let name = format!("{cpu}, {}", show::period(stream.period.as_ns()));
    if plan.conditions.len() == 1 { name } else { format!("{name}, {condition}") }
}

/// How long condition `condition` was to run in all, in ns.
pub(crate) fn duration_ns(plan: &Plan, condition: usize) -> u64 {
    let blocks = plan.blocks.iter().filter(|block| block.condition == condition);
    blocks.map(|block| block.length.as_ns().unsigned_abs()).sum()
}

/// The report of an experiment, verdicts and limits included.
pub(crate) fn from_experiment(context: Context) -> Report {
    let Context { experiment, grids, outcome, loads, recording, started } = context;
    let mut report = Report::empty(experiment.name);
    report.started_at = Some(started);
    report.incomplete = outcome.end != End::Finished;
    report.clock = Some(clock(&outcome));
    report.recording =
        recording.map(|cost| Recording { hot_ns: cost.hot_ns, cold_ns: cost.cold_ns });
    report.session = Some(session(&outcome, &experiment.facts));
    report.disturbances = outcome
        .disturbances
        .iter()
        .map(|(at_ns, what)| Disturbance { at_ns: *at_ns, what: what.to_string() })
        .collect();
    let cold = if experiment.keep_cold { 0 } else { experiment.plan.cold };
    report.warnings.clone_from(&experiment.warnings);
    report.warnings.extend(warnings(&outcome, &experiment.facts, cold));
    report.choice = Some(experiment.choice.clone());
    let maker = Maker {
        experiment: &experiment,
        grids: &grids,
        outcome: &outcome.runs,
        loads: &loads,
        floor_ns: outcome.clock.cost.now_ns,
    };
    let (runs, rows) = maker.runs(outcome.sink);
    report.runs = runs;
    report.rows = rows;
    report.verdicts = super::verdict::of(&report.runs);
    report.verdict = judge(&report.runs, &experiment.limits, report.incomplete);
    report.machine = Some(experiment.facts);
    report
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
    let reasons: Vec<String> = judged
        .iter()
        .filter(|limit| !limit.judgement.ok)
        .map(|limit| format!("{}: {}: {}", limit.run, limit.judgement.text, limit.judgement.reason))
        .chain(cut)
        .collect();
    Overall { ok: reasons.is_empty(), limits: judged, reasons }
}

/// What runs are made from.
struct Maker<'a> {
    experiment: &'a Experiment,
    grids: &'a [Grid],
    outcome: &'a [RunOutcome],
    loads: &'a [Vec<LoadReport>],
    floor_ns: f64,
}

impl Maker<'_> {
    /// All runs; where conditions count as one, that one in their place, and a row for each.
    fn runs(&self, sink: Recordings) -> (Vec<Run>, Vec<Row>) {
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
        Row {
            load: self.experiment.plan.conditions[condition].name.clone(),
            cycles: outcome.cycles,
            missed: outcome.missed,
            lateness_ns: outcome.lateness_ns,
            loads: loads(&self.loads[condition]),
        }
    }

    fn run(&self, number: usize, name: &str, conditions: &[usize], outcome: Outcome) -> Run {
        let plan = &self.experiment.plan;
        let stream = &plan.streams[number];
        let of: Vec<&RunOutcome> =
            conditions.iter().map(|&c| &self.outcome[plan.run(number, c)]).collect();
        let spins = stream.wait == WaitKind::Spin;
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
            policy: Some(policy.to_owned()),
            priority,
            wait: Some(stream.wait.name().to_owned()),
            load: conditions
                .iter()
                .flat_map(|&c| self.experiment.specs[c].iter().map(ToString::to_string))
                .collect(),
            duration_ns: Some(conditions.iter().map(|&c| duration_ns(plan, c)).sum()),
        }
    }
}

fn loads(reports: &[LoadReport]) -> Vec<Load> {
    let load = |report: &LoadReport| Load {
        name: report.name.clone(),
        rate: report.rate,
        unit: report.unit.clone(),
        note: report.note.clone(),
    };
    reports.iter().map(load).collect()
}

fn clock<S>(outcome: &periodic::Outcome<S>) -> Clock {
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

fn session<S>(outcome: &periodic::Outcome<S>, facts: &Facts) -> Session {
    let refused = |refusal: &Refusal| Refused {
        attempt: refusal.attempt.to_string(),
        errno: refusal.errno.to_string(),
        explanation: explain(&attempt(refusal.attempt), refusal.errno.0, facts),
    };
    Session {
        memory_locked: outcome.memory_locked,
        idle_states_held: outcome.idle_states_held,
        refused: outcome.refused.iter().map(refused).collect(),
    }
}

/// The attempt in the words of the room that explains it.
fn attempt(attempt: Attempt) -> explain::Attempt {
    match attempt {
        Attempt::Affinity(cpu) => explain::Attempt::SetAffinity { cpus: CpuList::single(cpu) },
        Attempt::Scheduler(policy) => {
            explain::Attempt::SetScheduler { priority: policy_words(policy).1.map_or(0, u32::from) }
        }
        Attempt::LockMemory => explain::Attempt::LockMemory { bytes: None },
        Attempt::HoldIdleStates => explain::Attempt::HoldCpuDmaLatency,
        Attempt::TimerSlack => explain::Attempt::SetTimerSlack,
    }
}

fn warnings<S>(outcome: &periodic::Outcome<S>, facts: &Facts, cold: u32) -> Vec<String> {
    let mut warnings = Vec::new();
    if let End::Watchdog(force) = outcome.end {
        warnings.push(
            match force {
                Force::Demoted => {
                    "the watchdog ended a loop that did not yield: it was made SCHED_OTHER and \
                     stopped"
                }
                Force::Told => {
                    "the watchdog stopped a loop that did not yield; the kernel refused to make it \
                     SCHED_OTHER"
                }
                Force::Starved => {
                    "the watchdog stopped the run: a loop did not get its CPU, another one kept it"
                }
            }
            .to_owned(),
        );
    }
    if let Some(why) = &outcome.clock.untrusted {
        warnings.push(format!("stamps are clock_gettime, not the processor's counter: {why}"));
    }
    if outcome.runs.iter().any(|run| run.cycles > 0 && run.cycles <= u64::from(cold)) {
        warnings.push(
            "a run was so short that all its cycles were cold and are left out: measure longer, or \
             take them in with --keep-cold"
                .to_owned(),
        );
    }
    let real_time = outcome.runs.iter().all(|run| run.policy != Policy::Other);
    if !real_time && outcome.refused.iter().any(|r| matches!(r.attempt, Attempt::Scheduler(_))) {
        warnings.push(
            "measured as SCHED_OTHER: any process may run before the loop; a real-time loop on \
             this machine is late less often"
                .to_owned(),
        );
    }
    if facts.virtualization.virtualization.value().is_some_and(|name| name != "none") {
        warnings.push(
            "this is a guest: time that the host takes is in these numbers and not in its kernel's"
                .to_owned(),
        );
    }
    warnings
}
