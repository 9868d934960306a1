//! The head of the page: which machine, which CPU, under what conditions, and what was refused.

use std::fmt::Display;

use punctual_host::facts::MachineFacts;

use crate::format;
use crate::report::{EndedBy, Report, Run};

/// The first lines, with all that was refused in few words: for pages that fit a screen.
pub(super) fn brief(report: &Report) -> String {
    measured(report).join("\n") + "\n" + &refused_briefly(report) + &incomplete(report)
}

/// The first lines, with the cause, price and remedy of each refusal.
pub(super) fn of(report: &Report) -> String {
    let mut page = measured(report);
    for refused in report.envelope.session.iter().flat_map(|session| &session.refused) {
        let text = format!(
            "refused: {} ({}): {}. Consequence: {}. Remedy: {}.",
            refused.attempt,
            refused.errno,
            full(&refused.explanation.why),
            full(&refused.explanation.cost),
            full(&refused.explanation.remedy),
        );
        page.push(format::wrap(&text, 2));
    }
    page.join("\n") + "\n" + &incomplete(report)
}

/// The machine and the conditions.
fn measured(report: &Report) -> Vec<String> {
    let first = match &report.envelope.machine {
        Some(facts) => machine(&report.envelope.version, facts),
        None => format!("punctual {}", report.envelope.version),
    };
    let conditions = report.envelope.choice.as_ref().map(|_| conditions(report));
    std::iter::once(first).chain(conditions).collect()
}

/// That it ended early, where it did.
pub(super) fn incomplete(report: &Report) -> String {
    if !report.envelope.incomplete {
        return String::new();
    }
    format::wrap(&EndedBy::words(report.envelope.ended_by), 2) + "\n"
}

/// What was refused, its price and the way out.
pub(super) fn refused_briefly(report: &Report) -> String {
    let refused = report.envelope.session.as_ref().map_or(&[][..], |session| &session.refused);
    let Some(first) = refused.first() else { return String::new() };
    let attempts: Vec<&str> = refused.iter().map(|refused| refused.attempt.as_str()).collect();
    let first = refused.iter().find(|of| of.attempt.starts_with("SCHED_")).unwrap_or(first);
    let price = if first.price.is_empty() { full(&first.explanation.cost) } else { &first.price };
    let machine = report.envelope.machine.as_ref();
    let contained = machine.is_some_and(|of| of.virtualization.container.value().is_some());
    // In a container sudo grants nothing that the container was not given.
    let remedy = match punctual_os::process::euid() {
        1.. if !contained => "Use sudo",
        _ => full(&first.explanation.remedy),
    };
    let text = format!("refused: {}: {price}. {remedy}.", attempts.join(", "));
    format::wrap(&text, 2) + "\n"
}

/// Without the stop at its end, where there is one.
fn full(sentence: &str) -> &str {
    sentence.trim_end_matches('.')
}

fn or<'a, T: Display>(value: Option<&'a T>, otherwise: &'a str) -> String {
    value.map_or_else(|| otherwise.to_owned(), ToString::to_string)
}

pub(super) fn machine(version: &str, facts: &MachineFacts) -> String {
    let guest = match facts.virtualization.virtualization.value().map(String::as_str) {
        None | Some("none") => String::new(),
        Some(host) => format!(", {host} guest"),
    };
    let hz = facts.kernel.tick_hz.value().map(|hz| format!(", {hz} Hz")).unwrap_or_default();
    let text = format!(
        "punctual {version} · {} ({} CPUs{guest}) · Linux {}, {}{hz}",
        or(facts.cpu.cpu_model.value(), "processor unknown"),
        or(facts.cpu.cpus.value(), "?"),
        or(facts.kernel.kernel.value(), "?"),
        or(facts.preemption.preemption.value(), "preemption unknown"),
    );
    format::wrap(&text, 2)
}

fn conditions(report: &Report) -> String {
    let mut parts = Vec::new();
    if let Some(choice) = &report.envelope.choice {
        parts.push(format!("CPU {} ({})", choice.cpus, choice.why));
    }
    // Each period with its own policy: the shortest has the highest priority.
    let runs = report.body.runs().iter().filter(|run| run.setup.period_ns.is_some());
    let mut loops: Vec<(Option<u64>, Option<String>)> =
        runs.map(|run| (run.setup.period_ns, policy(run))).collect();
    loops.sort();
    loops.dedup();
    let of = |(period, policy): &(Option<u64>, Option<String>)| {
        let words = [period.map(format::period), policy.clone()];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    parts.push(loops.iter().map(of).collect::<Vec<_>>().join(" + "));
    if let Some(session) = &report.envelope.session {
        parts
            .push(if session.memory_locked { "memory locked" } else { "memory not locked" }.into());
        let kept_away = session.idle_states_held;
        parts.push(
            if kept_away { "idle states held off" } else { "idle states not held off" }.into(),
        );
    }
    if let Some(clock) = &report.envelope.clock {
        parts.push(format!("timestamps {} ({})", clock.source, format::ns(Some(clock.stamp_ns))));
    }
    // Where nothing ran on a grid there is no period and no policy.
    parts.retain(|part| !part.is_empty());
    format::wrap(&parts.join(" · "), 2)
}

fn policy(run: &Run) -> Option<String> {
    let policy = run.setup.policy.as_ref()?;
    Some(match run.setup.priority {
        Some(priority) => format!("{policy} {priority}"),
        None => policy.clone(),
    })
}
