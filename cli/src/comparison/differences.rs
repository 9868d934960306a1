//! What is not the same in two results apart from their numbers: setup, machine, conventions.
//!
//! For `compared`. Lists; judges nothing.

use punctual_host::baseline::{MACHINE, SETUP, changed};

use super::recorded::{Recorded, RecordedRun};
use crate::format;
use crate::report::Difference;

/// Everything that is known to differ between A and B, each once.
pub(super) fn of(a: &Recorded, b: &Recorded, matched: &[(usize, usize)]) -> Vec<Difference> {
    let mut found = Vec::new();
    if let (Some(a), Some(b)) = (&a.machine, &b.machine) {
        let names: Vec<&'static str> = MACHINE.iter().chain(SETUP).copied().collect();
        found.extend(changed(&names, a, b).into_iter().map(|fact| Difference {
            what: fact.name.to_owned(),
            a: fact.from,
            b: fact.to,
        }));
    }
    for &(run_a, run_b) in matched {
        found.extend(setups(&a.runs[run_a], &b.runs[run_b]));
    }
    if let (Some(a), Some(b)) = (&a.session, &b.session) {
        let yes = |value: bool| Some(if value { "yes" } else { "no" }.to_owned());
        found.extend(difference("memory locked", yes(a.memory_locked), yes(b.memory_locked)));
        let (a, b) = (a.idle_states_held, b.idle_states_held);
        found.extend(difference("idle states held off", yes(a), yes(b)));
    }
    found.extend(difference("stamps", a.stamps.clone(), b.stamps.clone()));
    let version = |of: &Recorded| Some(of.version.clone()).filter(|text| !text.is_empty());
    found.extend(difference("version of punctual", version(a), version(b)));
    let mut once: Vec<Difference> = Vec::new();
    for difference in found {
        if !once.contains(&difference) {
            once.push(difference);
        }
    }
    once
}

/// What makes two runs of one name answers to different questions.
const OF_THE_QUESTION: [&str; 5] = ["period", "clock of the grid", "wait", "load", "cold cycles"];

/// Those differences of how two runs were set up that leave nothing to compare.
pub(super) fn of_questions(a: &RecordedRun, b: &RecordedRun) -> impl Iterator<Item = Difference> {
    let matters = |of: &Difference| OF_THE_QUESTION.contains(&of.what.as_str());
    setups(a, b).into_iter().filter(matters)
}

fn setups(a: &RecordedRun, b: &RecordedRun) -> Vec<Difference> {
    let time = |ns: Option<u64>| ns.map(format::period);
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let load = |run: &RecordedRun| {
        let mut loads = run.setup.load.clone();
        loads.sort();
        Some(if loads.is_empty() { "none".to_owned() } else { loads.join(", ") })
    };
    let cold = |run: &RecordedRun| {
        Some(if run.cold_left_out { "left out" } else { "taken in" }.to_owned())
    };
    let clock = |follows: Option<&String>| {
        Some(follows.map_or_else(|| "CLOCK_MONOTONIC".to_owned(), Clone::clone))
    };
    let (x, y) = (&a.setup, &b.setup);
    let priority = |priority: Option<u8>| priority.map(|priority| priority.to_string());
    [
        difference("run", Some(a.name.clone()), Some(b.name.clone())),
        difference("CPU", number(x.cpu), number(y.cpu)),
        difference("period", time(x.period_ns), time(y.period_ns)),
        difference("phase", time(x.phase_ns), time(y.phase_ns)),
        difference("clock of the grid", clock(x.follows.as_ref()), clock(y.follows.as_ref())),
        difference("policy", x.policy.clone(), y.policy.clone()),
        difference("priority", priority(x.priority), priority(y.priority)),
        difference("wait", x.wait.clone(), y.wait.clone()),
        difference("load", load(a), load(b)),
        difference("cold cycles", cold(a), cold(b)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A difference between two things of which at least one is known.
fn difference(what: &str, a: Option<String>, b: Option<String>) -> Option<Difference> {
    let text = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    (a != b).then(|| Difference { what: what.to_owned(), a: text(a), b: text(b) })
}
