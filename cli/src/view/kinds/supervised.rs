//! Documents of `run`: each task with its counts.

use punctual_document::{Block, Section, Table, numbers, words};
use punctual_report::Report;
use punctual_report::supervised::{Supervised, TaskRow};

use crate::format;

/// The least width of the name of a task.
const NAME: usize = 16;

/// The document: the end of the run, a table of the tasks, counts of their faults, warnings,
/// failures.
pub(super) fn document(report: &Report, supervised: &Supervised) -> Vec<Block> {
    let mut blocks = shown(supervised).blocks;
    let warnings = report.envelope.warnings.iter();
    blocks.extend(warnings.map(|warning| Block::words_at(1, warning.text())));
    let reasons = report.envelope.verdict.reasons();
    blocks.extend(reasons.map(|reason| Block::words(format!("FAILED: {}", reason.text))));
    blocks
}

/// The end of the run, a table of the tasks, counts of their faults.
pub(super) fn shown(supervised: &Supervised) -> Section {
    let mut blocks = vec![Block::words(releases(supervised)), Block::Break, tasks(supervised)];
    blocks.extend(supervised.tasks.iter().filter_map(notes));
    Section { id: "tasks", heading: "Tasks", blocks }
}

fn tasks(supervised: &Supervised) -> Block {
    let columns = [
        words("task").at_least(NAME),
        numbers("ran").at_least(8),
        numbers("missed").at_least(7),
        numbers("overran"),
        numbers("restarts"),
        numbers("median").at_least(8),
        numbers("1 in 1000"),
        numbers("worst").at_least(9),
    ];
    let row = |task: &TaskRow| {
        vec![
            task.name.clone(),
            format::count(task.cycles),
            format::count(task.missed),
            format::count(task.over_release),
            format::count(task.restarts),
            format::ns(task.lateness_ns.p50),
            format::ns(task.lateness_ns.p99_9),
            format::largest(task.lateness_ns.max, task.censored),
        ]
    };
    let rows = supervised.tasks.iter().map(row).collect();
    Table::new("What became of each task", columns, rows).bare().into()
}

/// The end of the run, and the thread that released the tasks, in a sentence.
fn releases(supervised: &Supervised) -> String {
    let executive = &supervised.executive;
    let policy = match executive.priority {
        Some(priority) => format!("{} {priority}", executive.policy),
        None => executive.policy.clone(),
    };
    let missed = match executive.missed {
        0 => String::new(),
        missed => format!(", {} missed", format::count(missed)),
    };
    format!(
        "{} · released by {policy}, wait {} · lateness of the releases: median {}, worst {} of \
         {}{missed}",
        supervised.over,
        executive.wait,
        format::ns(executive.lateness_ns.p50),
        format::largest(executive.lateness_ns.max, executive.censored),
        format::count(executive.cycles),
    )
}

/// Counts of a task that do not stand in the table; `None` where all are 0.
fn notes(task: &TaskRow) -> Option<Block> {
    let counted = [
        (task.started_late, "started late"),
        (task.over_budget, "over budget"),
        (task.overran, "releases found it still running"),
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
        .map(|(n, event)| format!("{} {event}", format::count(*n)))
        .collect();
    let name = &task.name;
    (!parts.is_empty()).then(|| Block::words_at(2, format!("{name}: {}", parts.join(" · "))))
}
