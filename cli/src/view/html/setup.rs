//! How each run was set up, and what the instruments cost.

use super::figures;
use super::markup::{escape, table};
use super::section::{Section, Source};
use crate::format;
use crate::report::{Report, Run};
use crate::view::followed;

/// The section.
pub(super) fn section(source: &Source<'_>) -> Option<Section> {
    let results = &source.page.results;
    if results.len() > 2 {
        return None;
    }
    let heads =
        ["run", ">CPU", ">period", ">phase", "policy", "wait", "load", ">requested duration"];
    let rows: Vec<Vec<String>> =
        figures::runs(source.page).iter().map(|(name, run)| row(name, run)).collect();
    let mut body = String::new();
    if !rows.is_empty() {
        body += &table("How each run was set up", &heads, &rows);
    }
    for shown in results {
        let label = if results.len() > 1 { format!("{}: ", shown.label) } else { String::new() };
        let words = instruments(&shown.report);
        if !words.is_empty() {
            body += &format!("<p>{}{}</p>", escape(&label), escape(&words));
        }
    }
    (!body.is_empty()).then_some(Section { id: "setup", heading: "Setup", body })
}

fn row(name: &str, run: &Run) -> Vec<String> {
    let setup = &run.setup;
    let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let policy = setup.policy.as_ref().map(|policy| match setup.priority {
        Some(priority) => format!("{policy} {priority}"),
        None => policy.clone(),
    });
    vec![
        name.to_owned(),
        or(setup.cpu.map(|cpu| cpu.to_string())),
        or(setup.period_ns.map(format::period)),
        or(setup.phase_ns.map(|phase| self::phase(phase, setup.follows.as_ref()))),
        or(policy),
        or(setup.wait.clone()),
        if setup.load.is_empty() { "none".to_owned() } else { setup.load.join(", ") },
        or(setup.duration_ns.map(format::period)),
    ]
}

fn phase(ns: u64, follows: Option<&String>) -> String {
    let on = follows.map(|clock| format!(" on {}", format::plain(clock))).unwrap_or_default();
    format::ns(Some(ns as f64)) + &on
}

fn instruments(report: &Report) -> String {
    let mut parts = Vec::new();
    if let Some(session) = &report.envelope.session {
        let locked = if session.memory_locked { "memory locked" } else { "memory not locked" };
        let kept_away = session.idle_states_held;
        parts.push(locked.to_owned());
        parts.push(
            if kept_away { "idle states held off" } else { "idle states not held off" }.into(),
        );
    }
    if let Some(clock) = &report.envelope.clock {
        parts.push(format!(
            "timestamps {}, each {}",
            clock.source,
            format::ns(Some(clock.stamp_ns))
        ));
        parts.extend(clock.pause_words());
        if let (Some(ppb), Some(bound)) = (clock.slew_ppb, clock.slew_bound_ppb) {
            parts.push(format!(
                "CLOCK_MONOTONIC slewed by {} ppb (± {bound:.0})",
                format::whole(ppb)
            ));
        }
    }
    let loops = report.body.loops();
    parts.extend(loops.and_then(|loops| loops.follow.as_ref()).map(followed::words));
    if let Some(cost) = loops.and_then(|loops| loops.recording.as_ref()) {
        parts.push(format!(
            "recording a sample costs {:.1} ns, in a cold cycle {:.0} ns",
            cost.hot_ns, cost.cold_ns
        ));
    }
    parts.push(format!("punctual {}", report.envelope.version));
    parts.join(" · ")
}
