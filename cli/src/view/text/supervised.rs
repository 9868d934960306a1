//! The page of `run`: what became of each task.

use std::fmt::Write as _;

use crate::format;
use crate::report::Report;
use crate::report::supervised::{Supervised, TaskRow};

/// The name of a task, padded to its column.
const NAME: usize = 16;

/// The page.
pub(super) fn page(report: &Report, supervised: &Supervised) -> String {
    let mut page = format!("{}\n\n", head(supervised));
    page += &format!(
        "  {:NAME$}{:>10}{:>9}{:>8}{:>9}{:>10}{:>10}{:>11}\n",
        "task", "ran", "missed", "overran", "restarts", "median", "1 in 1000", "worst"
    );
    for task in &supervised.tasks {
        // Writing to a String cannot fail.
        let _infallible = writeln!(
            page,
            "  {:NAME$}{:>10}{:>9}{:>8}{:>9}{:>10}{:>10}{:>11}",
            format::plain(&task.name),
            format::count(task.cycles),
            format::count(task.missed),
            format::count(task.overran),
            format::count(task.restarts),
            format::ns(task.lateness_ns.p50),
            format::ns(task.lateness_ns.p99_9),
            format::largest(task.lateness_ns.max, task.censored),
        );
    }
    supervised.tasks.iter().filter_map(notes).for_each(|note| page += &note);
    for warning in &report.envelope.warnings {
        page += &(format::wrap(&format!("  {warning}"), 4) + "\n");
    }
    for reason in &report.envelope.verdict.reasons {
        page += &(format::wrap(&format!("FAILED: {reason}"), 2) + "\n");
    }
    page
}

fn head(supervised: &Supervised) -> String {
    let executive = &supervised.executive;
    let policy = match executive.priority {
        Some(priority) => format!("{} {priority}", executive.policy),
        None => executive.policy.clone(),
    };
    let missed = match executive.missed {
        0 => String::new(),
        missed => format!(", {} missed", format::count(missed)),
    };
    let text = format!(
        "{} · released by {policy}, wait {} · lateness of the releases: median {}, worst {} of \
         {}{missed}",
        supervised.over,
        executive.wait,
        format::ns(executive.lateness_ns.p50),
        format::largest(executive.lateness_ns.max, executive.censored),
        format::count(executive.cycles),
    );
    format::wrap(&text, 2)
}

/// What of a task does not stand in the table.
fn notes(task: &TaskRow) -> Option<String> {
    let counted = [
        (task.started_late, "started late"),
        (task.over_budget, "over budget"),
        (task.over_release, "finished after the next release"),
        (task.over_deadline, "after the deadline"),
        (task.terminated, "times terminated"),
        (task.demoted, "times demoted"),
        (task.threads_demoted, "other threads demoted"),
        (task.unattended.saturating_sub(task.after_end), "releases before the task was ready"),
        (task.after_end, "releases after its end"),
        (task.invalid, "invalid results"),
    ];
    let parts: Vec<String> = counted
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {what}", format::count(*n)))
        .collect();
    let name = &task.name;
    (!parts.is_empty())
        .then(|| format::wrap(&format!("    {name}: {}", parts.join(" · ")), 6) + "\n")
}
