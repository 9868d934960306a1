//! Which runs stand in which plot: all of one result together, two results side by side, many as
//! an overview.
//!
//! Names and places only; nothing is computed from the numbers but who was latest.

use std::path::Path;

use punctual_analysis::plot::Thinned;
use punctual_report::{Report, Run};

use super::samples::Loaded;
use crate::stored::{LATEST, Stored};
use crate::subcommand::RESULTS;

/// The most runs of a page that are drawn; tables have all.
pub(super) const RUNS_DRAWN: usize = 8;

/// The most results that an overview draws: as many as there are dashes and colours.
const OVERVIEW_DRAWN: usize = 6;

/// One result on a page.
#[derive(Debug)]
pub(crate) struct Shown {
    /// Its name on the page: "before", the directory's name, "this run".
    pub(crate) label: String,
    /// Where it was, as the reader may look for it.
    pub(crate) place: String,
    /// A link to a page of its own, relative to this page.
    pub(crate) link: Option<String>,
    /// The report of the result.
    pub(crate) report: Report,
    /// The time series of each run, where there are samples.
    pub(super) series: Vec<Option<Thinned>>,
    /// The turns of each run whose loads took turns: which load ran when, as far as samples show
    /// it.
    pub(super) loaded: Vec<Vec<Loaded>>,
    /// The reasons why a time series is missing, or ends early.
    pub(crate) notes: Vec<String>,
}

impl Shown {
    /// The load that ran next to a cycle of a run, "none" without one; `None` where that was not
    /// recorded.
    pub(super) fn load_at(&self, run: usize, cycle: u64) -> Option<String> {
        let setup = &self.report.body.runs()[run].setup;
        match self.loaded.get(run).map_or(&[][..], Vec::as_slice) {
            [] if setup.load.len() > 1 => None,
            [] if setup.load.is_empty() => setup.wait.as_ref().map(|_| "none".to_owned()),
            [] => setup.load.first().cloned(),
            // A missed release may lie just after the last sample of a load.
            turns => turns.iter().rfind(|turn| turn.first <= cycle).map(|turn| turn.load.clone()),
        }
    }
}

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
    /// The runs in it, after the kind of plot: "idle, before".
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

/// Returns true where these are two measurements, to be seen side by side; recorded data of
/// somebody else are laid over instead.
pub(super) fn paired(results: &[Shown]) -> bool {
    results.len() == 2 && results.iter().all(|shown| shown.report.envelope.experiment != "analyse")
}

/// Names of results: by directory or file, else by the time at which they began. A directory that
/// nobody named gives way, of two, to the one that somebody did: `before/2026-11-22T21-41` is
/// "before".
///
/// Of two with the same name, or without any, what tells them apart stands for them: the kernel,
/// else the time.
pub(super) fn labels(stored: &[Stored]) -> Vec<String> {
    let is_pair = stored.len() == 2;
    let names: Vec<Option<String>> =
        stored.iter().map(|stored| given_name(&stored.path, is_pair)).collect();
    let by_name = || {
        let named = stored.iter().zip(&names);
        let name = |(stored, name): (&Stored, &Option<String>)| {
            let own = name.clone().or_else(|| started(stored));
            own.unwrap_or_else(|| stored.report.envelope.experiment.clone())
        };
        named.map(name).collect::<Vec<String>>()
    };
    if is_pair {
        let named = names.iter().any(Option::is_some).then(by_name);
        let kernels = stored.iter().map(kernel).collect::<Option<Vec<String>>>();
        let times = times_apart(stored);
        let mut labels = [named, kernels, times].into_iter().flatten();
        if let Some(labels) = labels.find(|labels| labels[0] != labels[1]) {
            return labels;
        }
    }
    let mut labels: Vec<String> = Vec::new();
    for (number, name) in by_name().into_iter().enumerate() {
        let taken = labels.contains(&name);
        labels.push(if taken { format!("{name} ({})", number + 1) } else { name });
    }
    labels
}

/// The name that somebody gave the file of a result, or its directory; of one of two the directory
/// above it too. `None` where only this program named them.
fn given_name(path: &Path, is_pair: bool) -> Option<String> {
    let file_name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    if let Some(stem) = path.file_stem().filter(|stem| *stem != "result") {
        return Some(stem.to_string_lossy().into_owned());
    }
    let name = file_name(path.parent()?)?;
    let is_time = name.as_bytes().get(10) == Some(&b'T');
    match is_pair {
        true if is_time || name == LATEST => file_name(path.parent()?.parent()?),
        true => Some(name),
        false => Some(name).filter(|name| name != LATEST),
    }
    .filter(|name| name != RESULTS)
}

fn kernel(stored: &Stored) -> Option<String> {
    let machine = stored.report.envelope.machine.as_ref()?;
    Some(format!("Linux {}", machine.kernel.kernel.value()?))
}

/// The time at which a result began.
fn started(stored: &Stored) -> Option<String> {
    stored.report.envelope.started()
}

/// The times at which two results began, in the fewest words: labels stand inside sentences. `None`
/// where one is not known, or not in UTC.
fn times_apart(stored: &[Stored]) -> Option<Vec<String>> {
    let at: Vec<String> = stored.iter().map(started).collect::<Option<_>>()?;
    let at: Vec<&str> = at.iter().map(|at| at.strip_suffix(" UTC")).collect::<Option<_>>()?;
    let differ = |end: usize| at[0].get(..end) != at[1].get(..end);
    let (day, minute) = (10, 16);
    let from = if differ(day) { 0 } else { day + 1 };
    let to = if differ(minute) { minute } else { at[0].len() };
    let time = |at: &&str| Some(format!("{} UTC", at.get(from..to)?));
    at.iter().map(time).collect()
}

/// The runs that are drawn, and what is left out.
pub(super) fn drawn(results: &[Shown]) -> (Vec<(usize, usize)>, Vec<String>) {
    if results.len() > 2 {
        return overview(results);
    }
    let mut drawn: Vec<(usize, usize)> = Vec::new();
    for (result, shown) in results.iter().enumerate() {
        let runs = shown.report.body.runs().iter().enumerate();
        drawn.extend(
            runs.filter(|(_, run)| run.outcome.releases() > 0).map(|(run, _)| (result, run)),
        );
    }
    if drawn.len() <= RUNS_DRAWN {
        return (drawn, Vec::new());
    }
    let note = format!(
        "{RUNS_DRAWN} of {} runs are drawn, with claims and worst cycles: those with the latest \
         wakes; the figures cover all runs",
        drawn.len()
    );
    let latest = |&(result, run): &(usize, usize)| {
        results[result].report.body.runs()[run].outcome.lateness_ns.max.unwrap_or(0.0)
    };
    drawn.sort_by(|a, b| latest(b).total_cmp(&latest(a)));
    drawn.truncate(RUNS_DRAWN);
    drawn.sort_unstable();
    (drawn, vec![note])
}

/// The last run of each result under load, or without, as far as it has data: result and run.
pub(crate) fn last_runs(results: &[Shown], loaded: bool) -> Vec<(usize, usize)> {
    let run = |shown: &Shown| last_run(shown.report.body.runs(), loaded);
    let runs = results.iter().enumerate();
    runs.filter_map(|(result, shown)| Some((result, run(shown)?))).collect()
}

/// The last of runs under load, or without, which has data. Where it can be, one of the way to wait
/// of the first run: that of another, as of the library's loop, is not to be held against it.
fn last_run(runs: &[Run], loaded: bool) -> Option<usize> {
    let fits = |run: &Run| run.outcome.releases() > 0 && is_loaded(run) == loaded;
    let first = runs.first().and_then(|run| run.setup.wait.as_ref());
    let is_like_first = |run: &Run| fits(run) && run.setup.wait.as_ref() == first;
    runs.iter().rposition(is_like_first).or_else(|| runs.iter().rposition(fits))
}

/// Results by what one in 1000 wakes was later than, and by their worst, of the runs that an
/// overview draws of them: the latest first.
pub(crate) fn latest_first(results: &[Shown]) -> Vec<usize> {
    let none = f64::NEG_INFINITY;
    let mut latest = vec![(none, none); results.len()];
    for (result, run) in [false, true].into_iter().flat_map(|loaded| last_runs(results, loaded)) {
        let lateness = &results[result].report.body.runs()[run].outcome.lateness_ns;
        let worst = lateness.max.unwrap_or(none);
        let (p99_9, max) = &mut latest[result];
        (*p99_9, *max) = (p99_9.max(lateness.p99_9.unwrap_or(worst)), max.max(worst));
    }
    let mut order: Vec<usize> = (0..results.len()).filter(|at| latest[*at].1 > none).collect();
    let later = |a: (f64, f64), b: (f64, f64)| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1));
    order.sort_by(|a, b| later(latest[*a], latest[*b]));
    order
}

/// The runs in histograms and curves of many results: of the latest results the last run without
/// load and the last one under load; all without load first.
fn overview(results: &[Shown]) -> (Vec<(usize, usize)>, Vec<String>) {
    let order = latest_first(results);
    let mut notes = vec![
        "drawn are the last run without load and the last under load of each result, without their \
         time series"
            .to_owned(),
    ];
    if order.len() > OVERVIEW_DRAWN {
        notes.push(format!(
            "histograms and curves have the {OVERVIEW_DRAWN} latest of {} results; the first chart \
             and the table have all",
            order.len()
        ));
    }
    let latest = &order[..order.len().min(OVERVIEW_DRAWN)];
    let runs = [false, true].into_iter().flat_map(|loaded| last_runs(results, loaded));
    (runs.filter(|(result, _)| latest.contains(result)).collect(), notes)
}

/// Returns true where a run was under load.
fn is_loaded(run: &Run) -> bool {
    !run.setup.load.is_empty()
}

/// The drawn runs of many results: those without load in one plot, those under load in another.
fn apart(results: &[Shown], drawn: &[(usize, usize)]) -> Vec<Row> {
    let mut inks: Vec<usize> = drawn.iter().map(|(result, _)| *result).collect();
    inks.sort_unstable();
    inks.dedup();
    let panel = |title: &str, loaded: bool| {
        let belongs = |&(result, run): &(usize, usize)| {
            is_loaded(&results[result].report.body.runs()[run]) == loaded
        };
        let lines_of = drawn.iter().enumerate().filter(|(_, at)| belongs(at));
        let line = |(at, &(result, run)): (usize, &(usize, usize))| {
            let shown = &results[result];
            let name = format!("{}: {}", shown.label, shown.report.body.runs()[run].name);
            let ink = inks.iter().position(|other| *other == result).unwrap_or(0);
            Line { name, drawn: at, ink }
        };
        let lines: Vec<Line> = lines_of.map(line).collect();
        Panel { title: title.to_owned(), lines }
    };
    let panels = [panel("without load", false), panel("under load", true)];
    let panels = panels.into_iter().filter(|panel| !panel.lines.is_empty());
    panels.map(|panel| Row { panels: vec![panel] }).collect()
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

fn together_or_apart(results: &[Shown], drawn: &[(usize, usize)]) -> Vec<Row> {
    if results.len() > 2 { apart(results, drawn) } else { together(results, drawn) }
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
        return together_or_apart(results, drawn);
    }
    names(results, drawn).iter().map(|name| side_by_side(of_name(results, drawn, name))).collect()
}

/// Rows of percentile curves: two results in one plot.
pub(super) fn curves(results: &[Shown], drawn: &[(usize, usize)]) -> Vec<Row> {
    if !paired(results) {
        return together_or_apart(results, drawn);
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_core::sample::Sample;
    use punctual_report::{CheckBody, Setup};

    use super::*;
    use crate::program::PROGRAM;

    #[test]
    fn a_loop_that_waits_in_another_way_stands_for_no_result() {
        let run = |wait: &str, load: &[&str]| {
            let mut recording = Recording::new(RecordingConfig::default());
            recording.push(&Sample::default());
            let setup = Setup {
                wait: Some(wait.to_owned()),
                load: load.iter().map(|load| (*load).to_owned()).collect(),
                ..Setup::default()
            };
            Run::recorded(wait.to_owned(), setup, recording.finish(0))
        };
        let runs = [run("sleep", &[]), run("sleep", &["cpu"]), run("adaptive", &[])];
        assert_eq!([false, true].map(|loaded| last_run(&runs, loaded)), [Some(0), Some(1)]);
        let waits = [run("sleep", &[]), run("hop", &[]), run("hop", &["cpu"])];
        assert_eq!([false, true].map(|loaded| last_run(&waits, loaded)), [Some(0), Some(2)]);
        assert_eq!(last_run(&waits[..2], true), None);
    }

    #[test]
    fn a_name_that_nobody_gave_tells_no_results_apart() {
        let stored = |path: &str, at: &str| {
            let mut report = Report::new(PROGRAM, "check", CheckBody::default());
            report.envelope.started_at = Some(format!("2026-11-{at}.5Z"));
            Stored { path: PathBuf::from(path).join("result.json"), report, samples: None }
        };
        let at = ["22T21:41:01", "22T21:41:02", "22T21:42:00"];
        let labels = |paths: &[&str]| {
            let stored = paths.iter().zip(at).map(|(path, at)| stored(path, at));
            labels(&stored.collect::<Vec<Stored>>())
        };
        let own = "punctual-results/2026-11-22T21-41";
        let pair = ["21:41:01 UTC", "21:41:02 UTC"];
        assert_eq!(labels(&[own, "punctual-results/latest"]), pair);
        let named = labels(&["/r/punctual-results/latest", "after/latest"]);
        assert_eq!(named, ["2026-11-22 21:41:01 UTC", "after"]);
        assert_eq!(labels(&["before/2026-11-22T21-41", "after"]), ["before", "after"]);
        assert_eq!(labels(&["a/before", "b/before"]), pair);
        let many = labels(&[own, "punctual-results/latest", "before"]);
        assert_eq!(many, ["2026-11-22T21-41", "2026-11-22 21:41:02 UTC", "before"]);
        let times = |a: &str, b: &str| times_apart(&[a, b].map(|at| stored(own, at)));
        let expected = |labels: [&str; 2]| Some(labels.map(str::to_owned).to_vec());
        assert_eq!(times(at[0], at[2]), expected(["21:41 UTC", "21:42 UTC"]));
        let days = expected(["2026-11-22 21:41 UTC", "2026-11-23 21:41 UTC"]);
        assert_eq!(times(at[0], "23T21:41:01"), days);
    }
}
