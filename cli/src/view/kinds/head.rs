//! The head of a document: which machine, which CPU, under what conditions, and what was refused.

use std::fmt::Display;

use punctual_document::{Block, Item};
use punctual_host::facts::MachineFacts;
use punctual_report::measured::Measured;
use punctual_report::{Body, EndedBy, Load, Refused, Report, Request, Run, StopOver};

use crate::format;
use crate::stored::PAGE;

/// The machine and the conditions, with all that was refused in few words: for pages that fit a
/// screen.
pub(super) fn brief(report: &Report) -> Vec<Block> {
    let mut blocks = measured(report);
    blocks.extend(refused_briefly(report));
    blocks.extend(incomplete(report));
    blocks
}

/// The machine and the conditions, with the cause, price and remedy of each refusal.
pub(super) fn whole(report: &Report) -> Vec<Block> {
    let mut blocks = measured(report);
    for refused in report.envelope.session.iter().flat_map(|session| &session.refused) {
        blocks.push(Block::words(format!(
            "refused: {} ({}): {}. Consequence: {}. Remedy: {}.",
            refused.attempt,
            refused.errno,
            without_stop(&refused.explanation.why),
            without_stop(&refused.explanation.cost),
            without_stop(&refused.explanation.remedy),
        )));
    }
    blocks.extend(incomplete(report));
    blocks
}

/// Where the page of a result is that was kept, as what opens it.
pub(super) fn details(results: &str) -> Item {
    let open = if format::has_desktop() { "xdg-open " } else { "" };
    Item::new("details", format!("{open}{results}/{PAGE}"))
}

/// The machine and the conditions.
pub(super) fn measured(report: &Report) -> Vec<Block> {
    let first = match &report.envelope.machine {
        Some(facts) => machine(&report.envelope.version, facts),
        None => format!("punctual {}", report.envelope.version),
    };
    let conditions = report.envelope.choice.as_ref().map(|_| conditions(report));
    std::iter::once(first).chain(conditions).map(Block::words).collect()
}

/// The warning that the result is incomplete; `None` where it is complete.
pub(super) fn incomplete(report: &Report) -> Option<Block> {
    let stop_over = report.body.loops().and_then(|loops| loops.stop_over.as_ref());
    let late = stop_over.and_then(StopOver::sentence).map(|why| format!("incomplete: {why}"));
    let words = || late.unwrap_or_else(|| EndedBy::words(report.envelope.ended_by));
    report.envelope.incomplete.then(|| Block::words(words()))
}

/// The refused requests, their price and the way out; `None` where none was refused.
pub(super) fn refused_briefly(report: &Report) -> Option<Block> {
    let refused = report.envelope.session.as_ref().map_or(&[][..], |session| &session.refused);
    let first = refused.first()?;
    let attempts: Vec<&str> = refused.iter().map(|refused| refused.attempt.text()).collect();
    let is_policy = |refused: &&Refused| matches!(refused.attempt, Request::Policy(_));
    let first = refused.iter().find(is_policy).unwrap_or(first);
    let cost = without_stop(&first.explanation.cost);
    let price = if first.price.is_empty() { cost } else { &first.price };
    let machine = report.envelope.machine.as_ref();
    let contained = machine.is_some_and(|facts| facts.virtualization.container.value().is_some());
    // In a container sudo grants nothing that the container was not given.
    let remedy = match punctual_os::process::euid() {
        1.. if !contained => "Use sudo",
        _ => without_stop(&first.explanation.remedy),
    };
    Some(Block::words(format!("refused: {}: {price}. {remedy}.", attempts.join(", "))))
}

/// Without the stop at its end, where there is one.
fn without_stop(sentence: &str) -> &str {
    sentence.trim_end_matches('.')
}

fn or<'a, T: Display>(value: Option<&'a T>, otherwise: &'a str) -> String {
    value.map_or_else(|| otherwise.to_owned(), ToString::to_string)
}

/// The version, the machine and its kernel, in a line.
pub(in crate::view) fn machine(version: &str, facts: &MachineFacts) -> String {
    let guest = match facts.virtualization.virtualization.value().map(String::as_str) {
        None | Some("none") => String::new(),
        Some(host) => format!(", {host} guest"),
    };
    let hz = facts.kernel.tick_hz.value().map(|hz| format!(", {hz} Hz")).unwrap_or_default();
    format!(
        "punctual {version} · {} ({} CPUs{guest}) · Linux {}, {}{hz}",
        or(facts.cpu.cpu_model.value(), "processor unknown"),
        or(facts.cpu.cpus.value(), "?"),
        or(facts.kernel.kernel.value(), "?"),
        or(facts.preemption.preemption.value(), "preemption unknown"),
    )
}

/// The CPU, the loops, what was granted and the clock, in a line.
fn conditions(report: &Report) -> String {
    let mut parts = Vec::new();
    if let Some(choice) = &report.envelope.choice {
        parts.push(format!("CPU {} ({})", choice.cpus, choice.why));
    }
    // Each period with its own policy: the shortest has the highest priority.
    let runs = report.body.runs().iter().filter(|run| run.setup.period_ns.is_some());
    let mut loops: Vec<(Option<u64>, Option<String>)> =
        runs.map(|run| (run.setup.period_ns, run.setup.policy_words())).collect();
    loops.sort();
    loops.dedup();
    let words = |(period, policy): &(Option<u64>, Option<String>)| {
        let words = [period.map(format::period), policy.clone()];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    parts.push(loops.iter().map(words).collect::<Vec<_>>().join(" + "));
    // What this program was granted says nothing of threads of others.
    let is_of_others = matches!(&report.body, Body::Measured(Measured::Blame(body))
        if body.blame.price.is_none());
    let own = report.envelope.session.iter().filter(|_| !is_of_others);
    parts.extend(own.flat_map(|session| session.granted_words()));
    if let Some(clock) = &report.envelope.clock {
        parts.push(format!("timestamps {} ({})", clock.source, format::ns(Some(clock.stamp_ns))));
    }
    // Where nothing ran on a grid there is no period and no policy.
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

/// A run with its name in a document.
pub(crate) type Named<'a> = (String, &'a Run);

/// A load and its rate, in words.
pub(crate) fn rate(load: &Load) -> String {
    let notes = match load.notes() {
        [] => String::new(),
        notes => format!(" ({})", notes.join("; ")),
    };
    match load.rate {
        Some(rate) => format!("{} {} {}{notes}", load.name, format::rate(rate), load.unit),
        None => format!("{} reported no rate{notes}", load.name),
    }
}

/// A load and its rate, as a sentence of its own.
pub(crate) fn rate_line(load: &Load) -> String {
    format!("load {}", rate(load))
}
