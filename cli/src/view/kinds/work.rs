//! What `measure work` gives: how long the work took, and what is left of each period.

use punctual_analysis::summary::SummaryStats;
use punctual_document::{Block, Figure, Section, Table, numbers, words};
use punctual_lab::work::{WorkOutcome, WorkRow};
use punctual_plot::chart::Chart;
use punctual_report::measured::WorkBody;

use super::head::rate_line;
use crate::format;
use crate::view::plots::boxes::{self, BoxSeries, Boxes};

/// The time of the work, and what is left of each period, by condition.
pub(super) fn shown(body: &WorkBody) -> Section {
    let outcome = &body.work;
    let chart = durations(outcome).map(|chart| Figure::still("work-1".to_owned(), chart));
    let mut parts: Vec<Block> = chart.into_iter().collect();
    parts.extend([times(outcome), usable(outcome)]);
    parts.extend(body.loads.iter().map(|load| Block::words(rate_line(load))));
    parts.push(Block::words(about(outcome)));
    Section { id: "work", heading: "Work in each period", blocks: parts }
}

/// How long the work took under each condition, and until when it was done, beside the period.
fn durations(outcome: &WorkOutcome) -> Option<Chart> {
    let names = outcome.rows.iter().map(|row| format::plain(&row.condition)).collect();
    let series = |name: &str, times: fn(&WorkRow) -> &SummaryStats| {
        let rows = outcome.rows.iter().enumerate();
        let boxes = rows.filter_map(|(at, row)| Some((at, boxes::of_times(times(row))?)));
        BoxSeries { name: name.to_owned(), boxes: boxes.collect() }
    };
    let series = vec![
        series("from the wake to the end of the work", |row| &row.time_ns),
        series("from the release to the end of the work", |row| &row.done_ns),
    ];
    let times = Boxes::of_times("Time of the work in each period", "time (log)", names);
    let bound = Some(("the period", outcome.period_ns as f64));
    Boxes { description: described(outcome), series, bound, ..times }.chart()
}

/// Each condition with its usual and its longest work.
fn described(outcome: &WorkOutcome) -> String {
    let row = |row: &WorkRow| {
        format!(
            "{}: {} cycles, half of them at most {}, the longest {}",
            format::plain(&row.condition),
            format::count(row.n),
            format::ns(row.time_ns.p50),
            format::ns(row.time_ns.max)
        )
    };
    let rows: Vec<String> = outcome.rows.iter().map(row).collect();
    format!("The same {} work. {}.", outcome.kind, rows.join("; "))
}

fn times(outcome: &WorkOutcome) -> Block {
    let heads = [
        words("condition"),
        numbers("least"),
        numbers("median"),
        numbers("1 in 100"),
        numbers("1 in 1000"),
        numbers("worst"),
        numbers("range"),
        numbers("n"),
    ];
    let row = |row: &WorkRow| {
        let ns = &row.time_ns;
        let mut cells = vec![format::plain(&row.condition)];
        cells.extend([ns.min, ns.p50, ns.p99, ns.p99_9, ns.max, row.time_range_ns].map(format::ns));
        cells.push(format::count(row.n));
        cells
    };
    let caption = "Time of the same piece of work, from the wake to its end";
    Table::new(caption, heads, outcome.rows.iter().map(row).collect()).into()
}

fn usable(outcome: &WorkOutcome) -> Block {
    let heads = [
        words("condition"),
        numbers("half"),
        numbers("99 %"),
        numbers("99.9 %"),
        numbers("all"),
        numbers("missed"),
    ];
    let row = |row: &WorkRow| {
        let usable = &row.usable_ns;
        let mut cells = vec![format::plain(&row.condition)];
        let times = [usable.half, usable.p99, usable.p99_9, usable.all];
        cells.extend(times.map(|ns| format::ns(ns.map(|ns| ns.max(0.0)))));
        cells.push(format::count(row.missed));
        cells
    };
    let caption = format!(
        "Usable part of each period of {}, by share of cycles that have it",
        format::period(outcome.period_ns)
    );
    Table::new(caption, heads, outcome.rows.iter().map(row).collect()).into()
}

fn about(outcome: &WorkOutcome) -> String {
    let policy = outcome
        .priority
        .map_or_else(|| outcome.policy.clone(), |at| format!("{} {at}", outcome.policy));
    format!(
        "{} steps of {} work on CPU {}, {policy}: {} undisturbed; usable: the period less \
         lateness and disturbance, 0 where they take all of it",
        format::count(outcome.steps),
        outcome.kind,
        outcome.cpu,
        format::ns(Some(outcome.least_ns as f64)),
    )
}
