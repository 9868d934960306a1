//! The head of the page: which machine, which CPU, under what conditions, and what was refused.

use std::fmt::Display;

use punctual_host::facts::MachineFacts;

use crate::format;
use crate::report::{Report, Run};

/// The first lines.
pub(super) fn of(report: &Report) -> String {
    let mut page = Vec::new();
    match &report.envelope.machine {
        Some(facts) => page.push(machine(&report.envelope.version, facts)),
        None => page.push(format!("punctual {}", report.envelope.version)),
    }
    page.extend(report.envelope.choice.as_ref().map(|_| conditions(report)));
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
    if report.envelope.incomplete {
        page.push(
            "incomplete: the run ended early, or its file did; these are the results so far"
                .to_owned(),
        );
    }
    page.join("\n") + "\n"
}

/// Without the stop at its end, where there is one.
fn full(sentence: &str) -> &str {
    sentence.trim_end_matches('.')
}

fn or<'a, T: Display>(value: Option<&'a T>, otherwise: &'a str) -> String {
    value.map_or_else(|| otherwise.to_owned(), ToString::to_string)
}

fn machine(version: &str, facts: &MachineFacts) -> String {
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
    let mut periods: Vec<u64> =
        report.body.runs().iter().filter_map(|run| run.setup.period_ns).collect();
    periods.sort_unstable();
    periods.dedup();
    let periods: Vec<String> = periods.iter().map(|&ns| format::period(ns)).collect();
    parts.push(periods.join(" + "));
    let mut policies: Vec<String> = report.body.runs().iter().filter_map(policy).collect();
    policies.sort();
    policies.dedup();
    parts.push(policies.join(", "));
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
