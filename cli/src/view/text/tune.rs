//! The page of `tune check`: what is wrong, ranked, and what is good in one line.

use punctual_host::rules::{KnobChange, KnobVerdict, RuleVerdict};

use super::head;
use crate::format::{self, Paint};
use crate::report::Envelope;
use crate::report::body::TuneBody;

/// So many places are named of changes that are alike.
const PLACES_MAX: usize = 3;

/// The page.
pub(crate) fn page(envelope: &Envelope, body: &TuneBody, verbose: bool) -> String {
    let mut page = envelope
        .machine
        .as_ref()
        .map(|facts| head::machine(&envelope.version, facts) + "\n")
        .unwrap_or_default();
    page += &(format::wrap(&format!("CPU {}: {}", body.cpus, body.why), 2) + "\n");
    for verdict in RuleVerdict::ALL {
        let of_it: Vec<_> = body.verdicts.iter().filter(|of| of.verdict == verdict).collect();
        if of_it.is_empty() {
            continue;
        }
        if verdict.is_open() || verbose {
            page += &format!("\n{}\n", painted(verdict));
            page += &of_it.into_iter().map(|of| finding(of, verbose)).collect::<String>();
        } else {
            let knobs: Vec<&str> = of_it.iter().map(|of| of.knob.as_str()).collect();
            let text = format!("{}: {}", painted(verdict), knobs.join(", "));
            page += &format!("\n{}\n", format::wrap(&text, 2));
        }
    }
    page + &next(body)
}

fn painted(verdict: RuleVerdict) -> String {
    let paint = match verdict {
        RuleVerdict::Conflict | RuleVerdict::NoEffect => Paint::Bad,
        RuleVerdict::Good => Paint::Good,
        _ => Paint::Open,
    };
    format::painted(verdict.word(), verdict.word(), paint)
}

fn finding(of: &KnobVerdict, verbose: bool) -> String {
    let line = |text: &str| format::wrap(&format!("    {text}"), 6) + "\n";
    let mut text = format::wrap(&format!("  {}: {}", of.knob, of.found), 4) + "\n";
    text += &line(&of.why);
    if !of.cost.is_empty() && of.verdict.is_open() {
        text += &line(&format!("costs: {}", of.cost));
    }
    let changes = changes(&of.changes);
    if !changes.is_empty() {
        text += &line(&format!("change: {changes}"));
    }
    if verbose {
        text += &line(&format!("from: {}; verified by: {}", of.origin, of.verified));
        let kernel = match (&of.since, &of.until) {
            (Some(since), Some(until)) => format!("; Linux {since} to before {until}"),
            (Some(since), None) => format!("; since Linux {since}"),
            (None, Some(until)) => format!("; until Linux {until}"),
            (None, None) => String::new(),
        };
        text += &line(&format!("rule: {} ({}){kernel}", of.id, of.source));
    }
    text
}

/// The changes in a few words.
fn changes(changes: &[KnobChange]) -> String {
    let one = |change: &KnobChange| match change {
        KnobChange::Write { path, value } => format!("echo {value} > {path}"),
        KnobChange::Boot { name, value: Some(value) } => format!("boot with {name}={value}"),
        KnobChange::Boot { name, value: None } => format!("boot with {name}"),
        KnobChange::Remove { name } => format!("boot without {name}"),
        KnobChange::Partition { cpus } => format!("isolate CPU {cpus} by a cgroup v2 partition"),
    };
    let mut words: Vec<String> = changes.iter().take(PLACES_MAX).map(one).collect();
    if changes.len() > PLACES_MAX {
        words.push(format!("{} more like these", changes.len() - PLACES_MAX));
    }
    words.join("; ")
}

/// What to do with all of it.
fn next(body: &TuneBody) -> String {
    let open = body.verdicts.iter().filter(|of| of.verdict.is_open()).count();
    if open == 0 {
        return "\nnothing is left to do\n".to_owned();
    }
    let command = format::command(&format!("punctual tune plan --cpus {}", body.cpus));
    format!("\n{open} settings could be better; all changes at once:\n  {command}\n")
}
