//! Results as comparisons see them, and how two of them compare.
//!
//! For `compare`, `--against` and `--baseline`. The statistics are in `punctual_analysis::compare`;
//! here is what is read, matched by name, and noted about setups that differ.

pub(crate) mod baseline;
mod recorded;

use anyhow::{Result, bail};
use punctual_analysis::compare::{Part, Runs, compare, together};
use punctual_analysis::plain::plain_spaces;
use punctual_analysis::summary::SummaryStats;
use punctual_host::baseline::{MACHINE, SETUP, changed};
use punctual_report::{ComparedResult, ComparedSide, Comparison, Difference, Pair};

use crate::format;
pub(crate) use recorded::{RUNS_MAX, Recorded, RecordedRun, read};

/// One side: one result, or several of the same kind.
#[derive(Clone)]
pub(crate) struct Side {
    /// "A", "B", "baseline NAME".
    pub(crate) label: String,
    /// Its results, at least one.
    pub(crate) results: Vec<Recorded>,
}

/// A run that two sides have.
struct Matched<'a> {
    name: &'a str,
    parts: [Vec<Part<'a>>; 2],
    /// The quantiles of a side that is one run.
    shown: [Option<&'a SummaryStats>; 2],
}

/// Compares every side after the first with the first. `anyway` takes counts without an order as if
/// cycles were independent.
pub(crate) fn compare_sides(
    sides: &[Side],
    thresholds_ns: &[i64],
    anyway: bool,
) -> Result<Comparison> {
    let sides = &on_one_footing(sides)?[..];
    let [reference, others @ ..] = sides else { bail!("there is nothing to compare") };
    let matched: Vec<Vec<Matched<'_>>> =
        others.iter().map(|b| matched(reference, b, anyway)).collect();
    if let Some(at) = matched.iter().position(Vec::is_empty) {
        let other = &others[at];
        let one_each = names(reference).len() == 1 && names(other).len() == 1;
        bail!(
            "{} and {} have no run with the same name: the first has {}; the second has {}{}",
            reference.results[0].from,
            other.results[0].from,
            named(reference),
            named(other),
            if one_each { "; --anyway compares them" } else { "" }
        );
    }
    let runs: Vec<Runs<'_>> = matched
        .iter()
        .flatten()
        .map(|run| Runs {
            name: run.name,
            sides: [&run.parts[0], &run.parts[1]],
            shown: run.shown,
            thresholds_ns,
            as_if_independent: anyway,
        })
        .collect();
    let (compared, family) = compare(&runs);
    let mut compared = compared.into_iter();
    let mut pairs = Vec::new();
    for (other, matched) in others.iter().zip(&matched) {
        let runs: Vec<_> = compared.by_ref().take(matched.len()).collect();
        pairs.push(Pair {
            a: reference.label.clone(),
            b: other.label.clone(),
            verdict: together(runs.iter().map(|run| run.verdict)),
            differences: listed(reference, other, anyway),
            notes: notes(reference, other, anyway),
            only_in_a: unmatched(reference, other, anyway),
            only_in_b: unmatched(other, reference, anyway),
            runs,
        });
    }
    Ok(Comparison { family, sides: sides.iter().map(side).collect(), pairs })
}

/// The sides, all of them by wakes alone where one knows nothing else.
fn on_one_footing(sides: &[Side]) -> Result<Vec<Side>> {
    let parts = |side: &Side| -> Vec<bool> {
        let runs = side.results.iter().flat_map(|result| &result.runs);
        runs.flat_map(|run| &run.parts).map(|series| series.of_wakes).collect()
    };
    let mut sides = sides.to_vec();
    for run in
        sides.iter_mut().flat_map(|side| &mut side.results).flat_map(|result| &mut result.runs)
    {
        // Results of before may have hard spaces in names.
        run.name = plain_spaces(&run.name);
    }
    let of_wakes: Vec<bool> = sides.iter().flat_map(parts).collect();
    if of_wakes.contains(&true) && of_wakes.contains(&false) {
        for result in sides.iter_mut().flat_map(|side| &mut side.results) {
            let from = &result.from;
            for run in &mut result.runs {
                for series in &mut run.parts {
                    let Some(wakes) = series.wakes() else {
                        bail!(
                            "{from}: the other side contains wakes only, and without samples the \
                             wakes of this side cannot be separated from its {} missed releases",
                            series.missed
                        );
                    };
                    run.left_out = run.left_out.saturating_add(series.missed);
                    *series = wakes;
                }
                run.lateness_ns = run.wakes_ns.clone();
            }
        }
    }
    Ok(sides)
}

fn side(side: &Side) -> ComparedSide {
    let result = |result: &Recorded| ComparedResult {
        from: result.from.clone(),
        experiment: result.experiment.clone(),
        started_at: result.started_at.clone(),
        kernel: result.kernel(),
        incomplete: result.incomplete,
    };
    ComparedSide { label: side.label.clone(), results: side.results.iter().map(result).collect() }
}

/// The names of a side's runs, quoted: a name may have commas.
fn named(side: &Side) -> String {
    let quoted: Vec<String> = names(side).iter().map(|name| format!("'{name}'")).collect();
    quoted.join(", ")
}

/// The names of a side's runs, in their order, each once.
fn names(side: &Side) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in side.results.iter().flat_map(|result| &result.runs) {
        if !names.contains(&run.name.as_str()) {
            names.push(&run.name);
        }
    }
    names
}

/// Runs of a side that the other one does not have.
fn unmatched(side: &Side, other: &Side, anyway: bool) -> Vec<String> {
    let (names, others) = (names(side), names(other));
    if anyway && names.len() == 1 && others.len() == 1 {
        return Vec::new();
    }
    let left = names.iter().filter(|name| !others.contains(name));
    left.map(|name| (*name).to_owned()).collect()
}

/// The runs that both have; with `anyway` the one run of each, whatever it is called.
fn matched<'a>(a: &'a Side, b: &'a Side, anyway: bool) -> Vec<Matched<'a>> {
    let parts = |side: &'a Side, name: &str| {
        let mut parts = Vec::new();
        for (result, recorded) in side.results.iter().enumerate() {
            let of_name = recorded.runs.iter().filter(|run| run.name == name);
            parts.extend(of_name.flat_map(|run| &run.parts).map(|series| Part { result, series }));
        }
        parts
    };
    let others = names(b);
    if let ([name], [other], true) = (&names(a)[..], &others[..], anyway) {
        let (parts, shown) = ([parts(a, name), parts(b, other)], [shown(a, name), shown(b, other)]);
        return vec![Matched { name, parts, shown }];
    }
    let shared = names(a).into_iter().filter(|name| others.contains(name));
    let shared = shared.map(|name| {
        let (parts, shown) = ([parts(a, name), parts(b, name)], [shown(a, name), shown(b, name)]);
        Matched { name, parts, shown }
    });
    shared.collect()
}

/// The quantiles of the one run of a side with this name.
fn shown<'a>(side: &'a Side, name: &str) -> Option<&'a SummaryStats> {
    let runs = side.results.iter().flat_map(|result| &result.runs);
    let mut runs = runs.filter(|run| run.name == name);
    let only = runs.next().filter(|_| runs.next().is_none());
    only.and_then(|run| run.lateness_ns.as_ref())
}

/// The differences of every result from the first one of A.
fn listed(a: &Side, b: &Side, anyway: bool) -> Vec<Difference> {
    let mut listed = Vec::new();
    let first = &a.results[0];
    for result in a.results[1..].iter().chain(&b.results) {
        let same = |(at, run): (usize, &RecordedRun)| {
            let named = result.runs.iter().position(|theirs| theirs.name == run.name);
            let alone = anyway && first.runs.len() == 1 && result.runs.len() == 1;
            Some((at, named.or(alone.then_some(0))?))
        };
        let matched: Vec<_> = first.runs.iter().enumerate().filter_map(same).collect();
        for difference in differences(first, result, &matched) {
            if !listed.contains(&difference) {
                listed.push(difference);
            }
        }
    }
    listed
}

/// What a reader should know about it.
fn notes(a: &Side, b: &Side, anyway: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let results = || a.results.iter().chain(&b.results);
    notes.extend(in_turn(a, b));
    if a.results.len() < 3 || b.results.len() < 3 {
        notes.push(
            "fewer than three results on a side: how much results differ from boot to boot or \
             hour to hour is unknown"
                .to_owned(),
        );
    }
    for result in results().filter(|result| result.incomplete) {
        notes.push(format!("{} ended early", result.from));
    }
    for result in results() {
        let lost: u64 = result.runs.iter().map(|run| run.unrecorded).sum();
        if lost > 0 {
            notes.push(format!(
                "{}: {lost} cycles were not recorded and are not counted",
                result.from
            ));
        }
    }
    let parts = || results().flat_map(|result| &result.runs).flat_map(|run| &run.parts);
    if parts().any(|series| series.of_wakes) {
        let left_out: u64 = results().flat_map(|result| &result.runs).map(|run| run.left_out).sum();
        notes.push(format!(
            "compared by wakes alone, because one side does not contain its releases: {left_out} \
             missed releases are left out"
        ));
    }
    for result in results().filter(|result| result.machine.is_none()) {
        notes.push(format!("{}: the machine is not recorded", result.from));
    }
    if anyway && parts().any(|series| !series.ordered) {
        notes.push(
            "histograms do not contain the order of cycles: the tests assume independent cycles, \
             which is wrong where late cycles come in bursts"
                .to_owned(),
        );
    }
    if parts().any(|series| series.releases() == 0) {
        notes.push("a run has no cycles".to_owned());
    }
    notes
}

/// Whether the sides took turns in time; where they did not, a drift looks like a difference.
fn in_turn(a: &Side, b: &Side) -> Option<String> {
    let started = |side: &Side, is_b: bool| -> Option<Vec<(jiff::Timestamp, bool)>> {
        let at = |result: &Recorded| result.started_at.as_ref()?.parse().ok();
        side.results.iter().map(|result| Some((at(result)?, is_b))).collect()
    };
    let (Some(mut all), Some(others)) = (started(a, false), started(b, true)) else {
        return Some("it is unknown when they were measured, and whether in turn".to_owned());
    };
    all.extend(others);
    all.sort_unstable();
    let turns = all.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    (turns < 2).then(|| {
        "one side was measured after the other: a drift in between looks like a difference; \
         measure in turn (A B A B) to avoid that"
            .to_owned()
    })
}

/// Everything that is known to differ between A and B, each once.
fn differences(a: &Recorded, b: &Recorded, matched: &[(usize, usize)]) -> Vec<Difference> {
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
    let version = |result: &Recorded| Some(result.version.clone()).filter(|text| !text.is_empty());
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
fn question_differences(a: &RecordedRun, b: &RecordedRun) -> impl Iterator<Item = Difference> {
    let matters = |difference: &Difference| OF_THE_QUESTION.contains(&difference.what.as_str());
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
