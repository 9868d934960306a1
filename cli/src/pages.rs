//! Data of a page: results, the thinned time series of their runs, and which of them are drawn.
//!
//! Plain data for the views, made from results that were read back or just measured. Reads sample
//! files; draws and prints nothing.

mod layout;
mod samples;

use std::path::PathBuf;

use anyhow::{Context, Result};
use punctual_analysis::plot::{Bins, Thinned, bins};
use punctual_analysis::recording::RunFigures;
use punctual_report::{Comparison, Report, Run};

use crate::comparison::grid::GridSide;
use crate::comparison::{self, ComparisonArgs, Side};
use crate::output::Dir;
use crate::stored::{SAMPLES, Stored};
use layout::RUNS_DRAWN;
use samples::FromSamples;

pub(crate) use layout::{Line, Panel, Row, Shown, last_runs, latest_first};
pub(crate) use samples::Loaded;

/// The most results on one page.
pub(crate) const RESULTS_MAX: usize = 500;

/// Everything on a page.
#[derive(Debug)]
pub(crate) struct Page {
    /// The results, in order.
    pub(crate) results: Vec<Shown>,
    /// Histograms that stand side by side, all in the same bins.
    pub(crate) histograms: Vec<Row>,
    /// Percentile curves.
    pub(crate) curves: Vec<Row>,
    /// Time series, all on one scale.
    pub(crate) times: Vec<Row>,
    /// The common bins of all drawn runs; a line's are at its place in `drawn`.
    pub(crate) bins: Bins,
    /// (result, run) of every run that is drawn.
    pub(crate) drawn: Vec<(usize, usize)>,
    /// Two results, compared with each other.
    pub(crate) compared: Option<Comparison>,
    /// The results and runs that are not drawn, in words.
    pub(crate) left_out: Vec<String>,
}

impl Page {
    /// The page of results that were read back; the samples next to them are read again.
    pub(crate) fn of(stored: Vec<Stored>, links: Vec<Option<String>>) -> Result<Self> {
        let labels = layout::labels(&stored);
        let many = stored.len() > 2;
        let paths: Vec<PathBuf> = stored.iter().map(|stored| stored.path.clone()).collect();
        let runs: usize = stored.iter().map(|stored| stored.report.body.runs().len()).sum();
        let of_one = runs.clamp(1, RUNS_DRAWN);
        let mut results = Vec::new();
        for ((stored, label), link) in stored.into_iter().zip(labels).zip(links) {
            let FromSamples { series, loaded, notes } = match &stored.samples {
                // An overview has no time series.
                _ if many => FromSamples::default(),
                None => FromSamples::missing(&stored.report),
                Some(path) => samples::read(path, &stored.report, of_one)?,
            };
            let place = stored.path.display().to_string();
            results.push(Shown {
                label,
                place,
                link,
                report: stored.report,
                series,
                loaded,
                notes,
            });
        }
        let compared = compared(&mut results, &paths);
        Ok(Self { compared, ..Self::laid_out(results) })
    }

    /// The page of a result that was just measured.
    pub(crate) fn measured(report: &Report, results: &Dir) -> Result<Self> {
        let report = report.clone();
        let drawn = report.body.runs().len().clamp(1, RUNS_DRAWN);
        let shown = results.path().join(SAMPLES);
        let file = results.read(SAMPLES);
        let FromSamples { series, loaded, notes } =
            match file.with_context(|| format!("cannot read {}", shown.display()))? {
                None => FromSamples::missing(&report),
                Some(file) => samples::thinned(file, &shown, &report, drawn)?,
            };
        let place = results.path().display().to_string();
        let label = report.envelope.experiment.clone();
        Ok(Self::laid_out(vec![Shown { label, place, link: None, report, series, loaded, notes }]))
    }

    fn laid_out(results: Vec<Shown>) -> Self {
        let (drawn, left_out) = layout::drawn(&results);
        let outcomes: Vec<_> = drawn
            .iter()
            .map(|&(result, run)| &results[result].report.body.runs()[run].outcome)
            .collect();
        let views: Vec<_> = outcomes.iter().map(|outcome| &outcome.histogram).collect();
        let end = |outcome: &&RunFigures| {
            outcome.imported.as_ref().and_then(|imported| imported.limit_ns)
        };
        let ends: Vec<_> = outcomes.iter().map(end).collect();
        Self {
            bins: bins(&views, &ends),
            histograms: layout::histograms(&results, &drawn),
            curves: layout::curves(&results, &drawn),
            times: layout::times(&results, &drawn),
            drawn,
            left_out,
            compared: None,
            results,
        }
    }

    /// The run of a line.
    pub(crate) fn run(&self, line: &Line) -> &Run {
        let (result, run) = self.drawn[line.drawn];
        &self.results[result].report.body.runs()[run]
    }

    /// The result that a line is of.
    pub(crate) fn result(&self, line: &Line) -> &Shown {
        &self.results[self.drawn[line.drawn].0]
    }

    /// The load that ran next to a cycle of a run of this page; `None` where that was not recorded.
    pub(crate) fn load_at(&self, run: &Run, cycle: u64) -> Option<String> {
        self.results.iter().find_map(|shown| {
            let at = shown.report.body.runs().iter().position(|own| std::ptr::eq(own, run))?;
            shown.load_at(at, cycle)
        })
    }

    /// Which load ran when beside a line, where loads took turns.
    pub(crate) fn loaded(&self, line: &Line) -> &[Loaded] {
        let (result, run) = self.drawn[line.drawn];
        self.results[result].loaded.get(run).map_or(&[], Vec::as_slice)
    }

    /// The time series of a line, where there is one.
    pub(crate) fn series(&self, line: &Line) -> Option<&Thinned> {
        let (result, run) = self.drawn[line.drawn];
        self.results[result].series.get(run)?.as_ref()
    }
}

/// The most results that stand side by side on one grid.
pub(crate) const GRID_MAX: usize = 8;

/// Different measurements on one grid, where they are of a kind that has one; `None` where they are
/// not all of it.
fn on_a_grid(results: &[Shown], paths: &[PathBuf]) -> Option<Comparison> {
    let is_twice = paths.iter().enumerate().any(|(at, path)| paths[..at].contains(path));
    if !(2..=GRID_MAX).contains(&results.len()) || is_twice {
        return None;
    }
    let sides = results.iter().map(|shown| GridSide {
        label: &shown.label,
        from: &shown.place,
        report: &shown.report,
    });
    let sides: Vec<GridSide<'_>> = sides.collect();
    comparison::grid::of(&sides).ok()?
}

/// Returns true where a result has its comparison with that other one alone, known by the time at
/// which that was started.
fn is_against(shown: &Shown, other: &Shown) -> bool {
    let reference = shown.report.body.compare().and_then(|compared| compared.sides.first());
    let Some([only]) = reference.map(|side| &side.results[..]) else { return false };
    only.started_at.is_some() && only.started_at == other.report.envelope.started_at
}

/// Returns true where two results are compared on their page: two measurements, or what was
/// recorded twice. Recorded data beside a measurement have other runs than it.
fn is_pair(results: &[Shown]) -> bool {
    let [a, b] = results else { return false };
    let is_recorded = |shown: &Shown| shown.report.envelope.experiment == "analyse";
    if is_recorded(a) && is_recorded(b) {
        // Samples and the result that was made of them are one recording.
        let started_at = &a.report.envelope.started_at;
        return started_at.is_none() || *started_at != b.report.envelope.started_at;
    }
    layout::paired(results)
}

/// Two different results compared, the first as the reference; why not is noted.
fn compared(results: &mut [Shown], paths: &[PathBuf]) -> Option<Comparison> {
    if let Some(compared) = on_a_grid(results, paths) {
        return Some(compared);
    }
    if !is_pair(results) || paths[0] == paths[1] {
        return None;
    }
    // Tasks, figures of an application and settings are nothing that is late.
    let has_no_runs = |shown: &Shown| shown.report.body.runs().is_empty();
    if results.iter().all(has_no_runs) {
        return None;
    }
    // What one of them was measured against stands in its own result, which judged by it.
    if is_against(&results[0], &results[1]) || is_against(&results[1], &results[0]) {
        return None;
    }
    let side = |(shown, path): (&Shown, &PathBuf)| -> Result<Side> {
        Ok(Side { label: shown.label.clone(), results: vec![comparison::read(path)?] })
    };
    let sides: Result<Vec<Side>> = results.iter().zip(paths).map(side).collect();
    // The tests of `punctual compare`, whose intervals a reader may look up.
    match sides.and_then(|sides| {
        let terms = ComparisonArgs::default().with_questions_of(&sides);
        comparison::compare_sides(&sides, &terms, false)
    }) {
        Ok(compared) => Some(compared),
        Err(why) => {
            results[1].notes.push(format!("not compared: {why:#}"));
            None
        }
    }
}
