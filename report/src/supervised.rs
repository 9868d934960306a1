//! Supervised tasks and the thread that released them, as rows of a report.
//!
//! Plain data, made from what the supervisor left; the numbers of a page are
//! [`SummaryStats::of_page`]'s.

use punctual_analysis::summary::SummaryStats;
use punctual_engine::process::{Figures, Finished, Over, ProcessEnd, TaskOutcome};
use punctual_os::scheduler::SchedPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RestlessCpu;

/// Tasks that ran as processes under one supervisor.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Supervised {
    /// The reason why it ended: "finished", "stopped", "all gone", "overran".
    pub over: String,
    /// The task whose overrun stopped everything; null otherwise.
    pub overran: Option<String>,
    /// The thread that released them.
    pub executive: ExecutiveRow,
    /// One row per task, the most urgent first.
    pub tasks: Vec<TaskRow>,
}

/// The thread that releases tasks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExecutiveRow {
    /// The policy that it really had: "SCHED_FIFO".
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// Its wait policy: "sleep".
    pub wait: String,
    /// Offset of the whole grid on CLOCK_MONOTONIC.
    pub phase_ns: u64,
    /// The end that its watchdog put to it: "demoted", "not_demoted", "starved", "blocked", or
    /// "stuck" where nothing shows why it made no progress; null where it put none.
    pub forced: Option<String>,
    /// CPU time of its thread over wall time, in [0, 1]; null where it was not real-time, and in
    /// results of before.
    #[serde(default)]
    pub cpu_load: Option<f64>,
    /// Its CPU, where it left little of that to others; not there where it left enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restless: Option<RestlessCpu>,
    /// Releases that it posted.
    pub cycles: u64,
    /// Releases that it missed.
    pub missed: u64,
    /// Missed releases of which only a lower bound of lateness is known: nothing came after them.
    #[serde(default)]
    pub censored: u64,
    /// post − release: how late a task is released, before it is woken.
    pub lateness_ns: SummaryStats,
}

/// A task that ran as a process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskRow {
    /// Its name.
    pub name: String,
    /// Its period, rounded down.
    pub period_ns: u64,
    /// Offset of its releases within the period, from the grid's own phase.
    pub phase_ns: u64,
    /// The policy that its thread had last; null when it never registered.
    pub policy: Option<String>,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// Cycles that ran, as its process reported them, with the one in which it ended, if it did.
    pub cycles: u64,
    /// Releases that never ran while it was registered.
    pub missed: u64,
    /// Missed releases of which only a lower bound of lateness is known: no start came after them.
    #[serde(default)]
    pub censored: u64,
    /// start − release.
    pub lateness_ns: SummaryStats,
    /// Cycles that started later than `start_within`.
    pub started_late: u64,
    /// Cycles that ran longer than their budget.
    pub over_budget: u64,
    /// Cycles that still ran at their next release, for whatever reason.
    pub over_release: u64,
    /// Cycles that finished after their deadline.
    pub over_deadline: u64,
    /// Releases that were given to it, and in a calendar places of other units, that found it still
    /// running: what its overrun policy looks at. One that was given late, or missed by the thread
    /// that gives them, is none of them: `over_release` counts cycles by their own times.
    pub overran: u64,
    /// Times its process was ended because it overran or ran none of its releases.
    pub terminated: u64,
    /// Times its thread lost its real-time policy because it ran without waiting.
    pub demoted: u64,
    /// Times the thread got its policy back.
    pub restored: u64,
    /// Its other threads that lost a real-time policy of their own because they ran without
    /// waiting.
    #[serde(default)]
    pub threads_demoted: u64,
    /// Times a process was started for it, or joined as it.
    pub starts: u64,
    /// Times a process registered.
    pub registered: u64,
    /// Times it was started again.
    pub restarts: u64,
    /// Releases at which no process was registered; with `cycles` and `missed` all of the run.
    #[serde(rename = "vacant")]
    pub unattended: u64,
    /// Releases of these after its last process had ended or left.
    #[serde(default)]
    pub after_end: u64,
    /// Invalid results that it reported: for instance a finish in the future.
    #[serde(rename = "rubbish")]
    pub invalid: u64,
    /// True where it was given up, or had to be ended at the end.
    pub failed: bool,
    /// Exit status of its last process; null when it had none.
    pub exit_status: Option<i32>,
    /// Signal that ended its last process; null when none did.
    pub exit_signal: Option<i32>,
}

/// The rows of a supervisor that ended.
pub fn of(finished: &Finished, wait: &str, phase_ns: u64) -> Supervised {
    let (over, overran) = match &finished.over {
        Over::Finished => ("finished", None),
        Over::Stopped => ("stopped", None),
        Over::AllGone => ("all gone", None),
        Over::Overran(task) => ("overran", Some(task.clone())),
    };
    let (policy, priority) = (finished.policy.name().to_owned(), finished.policy.priority());
    let forced = finished.forced.map(|force| force.name().to_owned());
    Supervised {
        over: over.to_owned(),
        overran,
        executive: ExecutiveRow {
            policy,
            priority,
            wait: wait.to_owned(),
            phase_ns,
            forced,
            cpu_load: finished.taken.map(|taken| taken.share),
            restless: finished.taken.as_ref().and_then(RestlessCpu::of),
            cycles: finished.releases.counts.ran,
            missed: finished.releases.counts.missed,
            censored: finished.releases.counts.censored,
            lateness_ns: stats(&finished.releases),
        },
        tasks: finished.tasks.iter().map(row).collect(),
    }
}

fn stats(figures: &Figures) -> SummaryStats {
    SummaryStats::of_page(&figures.counts, &figures.buckets)
}

fn row(task: &TaskOutcome) -> TaskRow {
    let counts = &task.figures.counts;
    TaskRow {
        name: task.name.clone(),
        period_ns: task.period_ns,
        phase_ns: task.phase_ns,
        policy: task.policy.map(|policy| policy.name().to_owned()),
        priority: task.policy.and_then(SchedPolicy::priority),
        cycles: counts.ran,
        missed: counts.missed,
        censored: counts.censored,
        lateness_ns: stats(&task.figures),
        started_late: counts.started_late,
        over_budget: counts.over_budget,
        over_release: counts.over_release,
        over_deadline: counts.over_deadline,
        overran: task.overran,
        terminated: task.terminated,
        demoted: task.demoted.0,
        restored: task.demoted.1,
        threads_demoted: task.threads_demoted,
        starts: task.starts,
        registered: task.registered,
        restarts: task.restarts,
        unattended: task.unattended,
        after_end: task.after_end,
        invalid: task.invalid,
        failed: task.failed,
        exit_status: match task.exit {
            Some(ProcessEnd::Status(status)) => Some(status),
            _ => None,
        },
        exit_signal: match task.exit {
            Some(ProcessEnd::Signal(signal)) => Some(signal),
            _ => None,
        },
    }
}
