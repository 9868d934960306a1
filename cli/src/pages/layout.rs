//! Which runs stand in which plot: all of one result together, two results side by side, many as
//! an overview.
//!
//! Names and places only; nothing is computed from the numbers but who was latest.

use super::shown::{Shown, judged};
use crate::report::Report;
use crate::stored::Stored;

/// The most runs of a page that are drawn; tables have all.
pub(super) const RUNS_DRAWN: usize = 8;

/// The most results that an overview draws: as many as there are dashes and colours.
const OVERVIEW_DRAWN: usize = 6;

/// A run in a plot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its name there.
    pub(crate) name: String,
    /// Its place among the drawn runs.
    pub(crate) drawn: usize,
    /// Its colour and dashes.
    pub(crate) ink: usize,
}

/// One plot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panel {
    /// What it shows, after the kind of plot: "idle, before".
    pub(crate) title: String,
    /// The runs in it.
    pub(crate) lines: Vec<Line>,
}

/// Plots side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// From left to right; one or two.
    pub(crate) panels: Vec<Panel>,
}

/// Whether these are two measurements, before and after; recorded data of somebody else are laid
/// over instead.
fn are_paired<'a>(mut reports: impl ExactSizeIterator<Item = &'a Report>) -> bool {
    reports.len() == 2 && reports.all(|report| report.envelope.experiment != "analyse")
}

fn paired(results: &[Shown]) -> bool {
    are_paired(results.iter().map(|shown| &shown.report))
}

/// What results are called: "before" and "after" for two measurements, else by directory or file.
pub(super) fn labels(stored: &[Stored]) -> Vec<String> {
    if are_paired(stored.iter().map(|stored| &stored.report)) {
        return vec!["before".to_owned(), "after".to_owned()];
    }
    let name = |stored: &Stored| {
        let path = &stored.path;
        let own = path.file_stem().filter(|stem| *stem != "result");
        let named = own.or_else(|| path.parent().and_then(|dir| dir.file_name()));
        named.map_or_else(
            || stored.report.envelope.experiment.clone(),
            |name| name.to_string_lossy().into_owned(),
        )
    };
    let mut labels: Vec<String> = Vec::new();
    for (number, name) in stored.iter().map(name).enumerate() {
        let taken = labels.contains(&name);
        labels.push(if taken { format!("{name} ({})", number + 1) } else { name });
    }
    labels
}

/// The runs that are drawn, and what is left out.
pub(super) fn drawn(results: &[Shown]) -> (Vec<(usize, usize)>, Vec<String>) {
    if results.len() > 2 {
        return overview(results);
    }
    let mut all: Vec<(usize, usize)> = Vec::new();
    for (result, shown) in results.iter().enumerate() {
        let runs = shown.report.body.runs().iter().enumerate();
        all.extend(runs.filter(|(_, run)| judged(run) > 0).map(|(run, _)| (result, run)));
    }
    if all.len() <= RUNS_DRAWN {
        return (all, Vec::new());
    }
    let note = format!(
        "{RUNS_DRAWN} of {} runs are drawn, with claims and worst cycles: those with the latest \
         wakes; the figures cover all runs",
        all.len()
    );
    let latest = |&(result, run): &(usize, usize)| {
        results[result].report.body.runs()[run].outcome.lateness_ns.max.unwrap_or(0.0)
    };
    all.sort_by(|a, b| latest(b).total_cmp(&latest(a)));
    all.truncate(RUNS_DRAWN);
    all.sort_unstable();
    (all, vec![note])
}

/// Of each result its last run that has data: the one under load where there is one.
fn overview(results: &[Shown]) -> (Vec<(usize, usize)>, Vec<String>) {
    let last = |(result, shown): (usize, &Shown)| {
        let run = shown.report.body.runs().iter().rposition(|run| judged(run) > 0)?;
        Some((result, run))
    };
    let all: Vec<(usize, usize)> = results.iter().enumerate().filter_map(last).collect();
    let mut notes =
        vec!["only the last run of each result is drawn, without its time series".to_owned()];
    if all.len() > OVERVIEW_DRAWN {
        notes.push(format!(
            "the first {OVERVIEW_DRAWN} of {} results are drawn; the tables list all",
            all.len()
        ));
    }
    (all.into_iter().take(OVERVIEW_DRAWN).collect(), notes)
}

/// The names of the drawn runs, each once, in order of appearance.
fn names(results: &[Shown], drawn: &[(usize, usize)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for &(result, run) in drawn {
        let name = &results[result].report.body.runs()[run].name;
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// All drawn runs in one plot.
fn together(results: &[Shown], drawn: &[(usize, usize)]) -> Vec<Row> {
    let line = |(at, &(result, run)): (usize, &(usize, usize))| {
        let shown = &results[result];
        let name = &shown.report.body.runs()[run].name;
        let name =
            if results.len() > 1 { format!("{}: {name}", shown.label) } else { name.clone() };
        Line { name, drawn: at, ink: at }
    };
    let lines: Vec<Line> = drawn.iter().enumerate().map(line).collect();
    lines
        .chunks(OVERVIEW_DRAWN)
        .map(|lines| Panel { title: title(lines), lines: lines.to_vec() })
        .map(|panel| Row { panels: vec![panel] })
        .collect()
}

fn title(lines: &[Line]) -> String {
    lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The drawn runs of one name, by result.
fn of_name(results: &[Shown], drawn: &[(usize, usize)], name: &str) -> Vec<Line> {
    let named = drawn.iter().enumerate();
    named
        .filter(|(_, (result, run))| results[*result].report.body.runs()[*run].name == name)
        .map(|(at, &(result, _))| Line {
            name: format!("{name}, {}", results[result].label),
            drawn: at,
            ink: result,
        })
        .collect()
}

/// Each line in a plot of its own, side by side.
fn side_by_side(lines: Vec<Line>) -> Row {
    let alone = |line: Line| Panel { title: line.name.clone(), lines: vec![line] };
    Row { panels: lines.into_iter().map(alone).collect() }
}

/// Rows of histograms.
pub(super) fn histograms(results: &[Shown], drawn: &[(usize, usize)]) -> Vec<Row> {
    if !paired(results) {
        return together(results, drawn);
    }
    names(results, drawn).iter().map(|name| side_by_side(of_name(results, drawn, name))).collect()
}

/// Rows of percentile curves: two results in one plot.
pub(super) fn curves(results: &[Shown], drawn: &[(usize, usize)]) -> Vec<Row> {
    if !paired(results) {
        return together(results, drawn);
    }
    let row = |name: &String| {
        let lines = of_name(results, drawn, name);
        Row { panels: vec![Panel { title: title(&lines), lines }] }
    };
    names(results, drawn).iter().map(row).collect()
}

/// Rows of time series, one run in each; none in an overview.
pub(super) fn times(results: &[Shown], drawn: &[(usize, usize)]) -> Vec<Row> {
    let has = |&(result, run): &(usize, usize)| {
        results[result].series.get(run).is_some_and(Option::is_some)
    };
    let rows = match paired(results) {
        _ if results.len() > 2 => Vec::new(),
        false => {
            let lines = together(results, drawn).into_iter().flat_map(|row| row.panels);
            lines
                .flat_map(|panel| panel.lines)
                .filter(|line| has(&drawn[line.drawn]))
                .map(|line| side_by_side(vec![line]))
                .collect()
        }
        true => {
            let lines = |name: &String| {
                let mut lines = of_name(results, drawn, name);
                lines.retain(|line| has(&drawn[line.drawn]));
                side_by_side(lines)
            };
            names(results, drawn).iter().map(lines).collect()
        }
    };
    rows.into_iter().filter(|row: &Row| !row.panels.is_empty()).collect()
}
