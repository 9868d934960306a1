//! What the runs say of applications: loops, software stepping, stepper motors, rarer events.
//!
//! Picks the numbers and the words; the rules themselves are in `punctual_analysis`.

use punctual_analysis::claim::bound::p_upper;
use punctual_analysis::claim::dependence::Tails;
use punctual_analysis::impact::step_generation::{DriveTimings, SteppingClass, step_generation};
use punctual_analysis::impact::stepper::max_step_rate_hz;
use punctual_analysis::quantity::Share;
use punctual_analysis::verdict::{LoopVerdict, loop_verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Run;
use crate::format;

/// What a machine is good for, in the unit of one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Verdict {
    /// "loop", "software stepping", "stepper", "rarer events".
    pub(crate) application: String,
    /// "yes", "no" or "unknown".
    pub(crate) answer: Answer,
    /// The verdict as a sentence.
    pub(crate) statement: String,
    /// For "loop": the shortest period that holds.
    pub(crate) period_ns: Option<f64>,
    /// For "loop" and steps: the highest rate that holds.
    pub(crate) rate_hz: Option<f64>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    /// It is good enough.
    Yes,
    /// It is not.
    No,
    /// This run is too short to decide.
    Unknown,
}

/// NIST's point: a motor at the speed at which it has half of its holding torque.
const AVAILABLE_RATIO: f64 = 0.5;

/// Fewer cycles than this show no worst case worth a yes: their maximum bounds no more than one
/// cycle in 330 (rule of three).
const CYCLES_MIN: u64 = 1_000;

/// All verdicts. Runs without any lateness (instants alone) give none.
pub(crate) fn of(runs: &[Run]) -> Vec<Verdict> {
    let judged: Vec<&Run> = runs.iter().filter(|run| run.outcome.lateness.count() > 0).collect();
    if judged.is_empty() {
        // Another program's intervals say at least what software can step with.
        let holds = |run: &&Run| run.outcome.imported.is_some();
        let intervals: Vec<&Run> = runs.iter().filter(holds).collect();
        let n = intervals.iter().map(|run| run.outcome.cycles).sum();
        return stepping(&intervals, n).into_iter().collect();
    }
    let loaded = judged.iter().any(|run| !run.setup.load.is_empty());
    let known = judged.iter().all(|run| run.setup.wait.is_some());
    // Each way to wait is a loop of its own; of one the worst run decides, idle or loaded.
    let mut waits: Vec<Option<&str>> = Vec::new();
    for wait in judged.iter().map(|run| run.setup.wait.as_deref()) {
        if !waits.contains(&wait) {
            waits.push(wait);
        }
    }
    let mut verdicts = Vec::new();
    for &wait in &waits {
        let of: Vec<&Run> =
            judged.iter().filter(|run| run.setup.wait.as_deref() == wait).copied().collect();
        let tails: Vec<&Tails> = of.iter().map(|run| &run.outcome.tails).collect();
        let mut verdict = control_loop(&loop_verdict(&tails), loaded, known);
        if let Some(wait) = wait.filter(|_| waits.len() > 1) {
            verdict.statement = format!("wait {wait}: {}", verdict.statement);
        }
        if of.iter().any(|run| run.outcome.missed.is_none()) {
            verdict.statement += "; missed releases are not in the data";
        }
        // Without a real-time policy it is another machine, as it were: the answer says so.
        if of.iter().any(|run| run.setup.policy.as_deref() == Some("SCHED_OTHER")) {
            verdict.statement += "; measured as SCHED_OTHER, not real-time";
        }
        verdicts.push(verdict);
    }
    if waits.len() > 1 {
        return verdicts;
    }
    // Steps are made by the thread of the shortest period, LinuxCNC's base thread.
    let shortest = judged.iter().filter_map(|run| run.setup.period_ns).min();
    let fastest: Vec<&Run> =
        judged.iter().filter(|run| run.setup.period_ns == shortest).copied().collect();
    let n = fastest.iter().map(|run| run.outcome.lateness.count()).sum();
    verdicts.extend(stepping(&fastest, n));
    verdicts.extend(stepper(&fastest, n));
    verdicts.extend(rarer(&judged));
    verdicts
}

fn control_loop(verdict: &LoopVerdict, loaded: bool, known: bool) -> Verdict {
    let when = match (loaded, known) {
        (true, _) => "",
        (false, true) => "; measured without load",
        (false, false) => "; the load is not recorded",
    };
    let answer = match (verdict.period_ns, verdict.n_needed) {
        (Some(_), _) => Answer::Yes,
        (None, Some(_)) => Answer::Unknown,
        (None, None) => Answer::No,
    };
    Verdict {
        application: "loop".to_owned(),
        answer,
        statement: format!("{}{when}", verdict.statement),
        period_ns: verdict.period_ns,
        rate_hz: verdict.rate_hz,
    }
}

/// LinuxCNC's rule, with the slow timings that nearly every drive takes.
fn stepping(runs: &[&Run], n: u64) -> Option<Verdict> {
    let of = |run: &&Run| run.outcome.jitters.interval_max_abs_ns;
    let worst = runs.iter().filter_map(of).max_by(f64::total_cmp)?;
    let result = step_generation(worst.ceil() as u64, DriveTimings::default());
    let lost: u64 = runs.iter().map(|run| run.outcome.unrecorded).sum();
    let answer = match result.class {
        SteppingClass::Good | SteppingClass::Fair if lost > 0 => Answer::Unknown,
        SteppingClass::Good | SteppingClass::Fair if n < CYCLES_MIN => Answer::Unknown,
        SteppingClass::Good | SteppingClass::Fair => Answer::Yes,
        SteppingClass::HardwareSteps | SteppingClass::Unusable => Answer::No,
    };
    Some(Verdict {
        application: "software stepping".to_owned(),
        answer,
        statement: match answer {
            Answer::Unknown if lost > 0 => format!(
                "software stepping: {} cycles were not recorded, so their intervals are unknown",
                format::count(lost)
            ),
            Answer::Unknown => format!(
                "software stepping: {} cycles are too few to trust the worst of them; at least {} \
                 are needed",
                format::count(n),
                format::count(CYCLES_MIN)
            ),
            Answer::Yes => format!("{} (worst of {} cycles)", result.statement, format::count(n)),
            Answer::No => format!(
                "software stepping above {} steps/s: max |interval| {} of {} cycles: {}",
                format::rate(result.max_step_rate_hz),
                format::ns(Some(worst)),
                format::count(n),
                result.class.advice()
            ),
        },
        period_ns: Some(result.base_period_ns as f64),
        rate_hz: Some(result.max_step_rate_hz),
    })
}

/// NIST eq. [7] inverted: where a tenth of the available torque is gone.
fn stepper(runs: &[&Run], n: u64) -> Option<Verdict> {
    let of = |run: &&Run| run.outcome.grid.as_ref().map(|grid| grid.jitter_pp_ns);
    let worst = runs.iter().filter_map(of).max_by(f64::total_cmp)?;
    let rate = max_step_rate_hz(worst, Share::from_one(0.1)?, AVAILABLE_RATIO)?;
    Some(Verdict {
        application: "stepper".to_owned(),
        answer: Answer::No,
        statement: format!(
            "stepping a motor from this loop above {} steps/s without losing 10 % of its torque \
             (peak-to-peak {} of {} cycles about the grid)",
            format::rate(rate),
            format::ns(Some(worst)),
            format::count(n)
        ),
        period_ns: None,
        rate_hz: Some(rate),
    })
}

/// What the longest run cannot tell: no event rarer than this was within its reach.
fn rarer(runs: &[&Run]) -> Option<Verdict> {
    let longest = runs.iter().max_by_key(|run| run.outcome.tails.n())?;
    let tails = &longest.outcome.tails;
    let theta = tails.theta_at(longest.outcome.lateness.max()?);
    let p = p_upper(tails.unrecorded(), tails.n(), theta);
    let period_ns = longest.setup.period_ns? as f64;
    let million = p / 1e-6 * tails.n() as f64 * period_ns;
    let hint = if p > 1e-6 {
        format!(": this run is too short; {} would show one in a million", format::long(million))
    } else {
        String::new()
    };
    Some(Verdict {
        application: "rarer events".to_owned(),
        answer: Answer::Unknown,
        statement: format!(
            "anything rarer than once in {} cycles{hint}",
            format::count((1.0 / p).floor() as u64)
        ),
        period_ns: None,
        rate_hz: None,
    })
}

#[cfg(test)]
mod tests {
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_core::sample::Sample;
    use punctual_core::time::{Period, Span};

    use super::super::run::Setup;
    use super::*;

    /// A run of 20 000 cycles of 1 ms, one in a hundred of them `late_us` late.
    fn run(wait: &str, load: &[&str], late_us: i64) -> Run {
        let config =
            RecordingConfig { period: Period::from_ns(1_000_000), ..RecordingConfig::default() };
        let mut recording = Recording::new(config);
        for cycle in 0..20_000 {
            let us = if cycle % 100 == 7 { late_us } else { 5 };
            recording.push(&Sample { cycle, lateness: Span::from_us(us), ..Sample::default() });
        }
        let setup = Setup {
            period_ns: Some(1_000_000),
            wait: Some(wait.to_owned()),
            load: load.iter().map(|&load| load.to_owned()).collect(),
            ..Setup::default()
        };
        Run::recorded(wait.to_owned(), setup, recording.finish(0))
    }

    fn loops(runs: &[Run]) -> Vec<(Option<f64>, String)> {
        let verdicts = of(runs).into_iter().filter(|verdict| verdict.application == "loop");
        verdicts.map(|verdict| (verdict.period_ns, verdict.statement)).collect()
    }

    #[test]
    fn an_idle_run_that_refutes_a_rate_is_not_left_out() {
        let (idle, loaded) = (run("sleep", &[], 900), run("sleep", &["cpu"], 30));
        let both = loops(&[idle.clone(), loaded.clone()]);
        assert_eq!(both.len(), 1);
        assert_eq!((both[0].0, loops(&[idle])[0].0), (Some(1e7), Some(1e7)));
        assert_eq!(loops(&[loaded])[0].0, Some(5e5));
    }

    #[test]
    fn each_way_to_wait_is_a_loop_of_its_own() {
        let both = loops(&[run("sleep", &[], 900), run("spin", &[], 30)]);
        assert_eq!([both[0].0, both[1].0], [Some(1e7), Some(5e5)]);
        assert!(both[0].1.starts_with("wait sleep: a loop at 100 Hz"), "{}", both[0].1);
        assert!(both[1].1.starts_with("wait spin: a loop at 2 kHz"), "{}", both[1].1);
    }
}
