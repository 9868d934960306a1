//! What `reproduce` gives: a row for each figure that a paper prints.
//!
//! Plain data.

use punctual_lab::response::StageRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Run;

/// Of `reproduce`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReproduceBody {
    /// The papers, by their short names, in the order of the rows.
    pub papers: Vec<String>,
    /// Whether the measurements were shortened by --quick.
    pub quick: bool,
    /// One for each figure that a paper prints.
    pub rows: Vec<ReproducedRow>,
    /// The loops that were measured for them, named by paper and condition; none in results of
    /// before.
    #[serde(default)]
    pub runs: Vec<Run>,
    /// Figures of the papers, drawn from what was measured; none in results of before.
    #[serde(default)]
    pub figures: Vec<PaperFigure>,
}

/// A figure of a paper: its axes, what the paper has, what its formula gives, what was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaperFigure {
    /// Paper and figure: "nist.fig5".
    pub id: String,
    /// What it shows.
    pub what: String,
    /// The horizontal axis, with its unit.
    pub x: String,
    /// The vertical axis, with its unit.
    pub y: String,
    /// Whether each axis is a log scale, x and y.
    pub log: [bool; 2],
    /// The series, in the order of the legend.
    pub series: Vec<FigureSeries>,
}

/// A series of a paper's figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureSeries {
    /// "published", "formula: …", "here: …".
    pub name: String,
    /// How it is drawn.
    pub drawn: Drawn,
    /// Its points, x and y in the units of the axes.
    pub points: Vec<[f64; 2]>,
    /// A name for each point; empty where they have none.
    pub labels: Vec<String>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Drawn {
    /// Its points joined by a line.
    Line,
    /// Single points.
    Points,
    /// A small mark on the horizontal axis for the x of each.
    Rug,
    /// The columns of a histogram: the y of each point holds from its x to that of the next point;
    /// the last point only ends the last column.
    Steps,
}

impl PaperFigure {
    /// A figure without series.
    pub fn new(id: impl Into<String>, what: &str, x: &str, y: &str) -> Self {
        let (id, what, x, y) = (id.into(), what.to_owned(), x.to_owned(), y.to_owned());
        Self { id, what, x, y, ..Self::default() }
    }

    /// On log scales, x and y.
    pub fn log(self, log: [bool; 2]) -> Self {
        Self { log, ..self }
    }

    /// With a line; none where there is no point.
    pub fn line(self, name: &str, points: Vec<[f64; 2]>) -> Self {
        self.with(name, Drawn::Line, points, Vec::new())
    }

    /// With small marks on the horizontal axis.
    pub fn rug(self, name: &str, points: Vec<[f64; 2]>) -> Self {
        self.with(name, Drawn::Rug, points, Vec::new())
    }

    /// With the columns of a histogram: counts between edges, of which there is one more.
    pub fn steps(self, name: &str, edges: &[f64], counts: &[u64]) -> Self {
        let counts = counts.iter().chain(counts.last()).map(|&count| count as f64);
        let points = edges.iter().zip(counts).map(|(edge, count)| [*edge, count]).collect();
        self.with(name, Drawn::Steps, points, Vec::new())
    }

    /// With single points, each with its name.
    pub fn points<'p>(
        self,
        name: &str,
        points: impl IntoIterator<Item = ([f64; 2], &'p str)>,
    ) -> Self {
        let (points, labels) = points.into_iter().map(|(at, label)| (at, label.to_owned())).unzip();
        self.with(name, Drawn::Points, points, labels)
    }

    fn with(
        mut self,
        name: &str,
        drawn: Drawn,
        points: Vec<[f64; 2]>,
        labels: Vec<String>,
    ) -> Self {
        if !points.is_empty() {
            self.series.push(FigureSeries { name: name.to_owned(), drawn, points, labels });
        }
        self
    }
}

/// A figure of a paper, and what it is today.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReproducedRow {
    /// Paper and figure: "nist.fig2", "wince.fig11.ce30-loaded.app.max".
    pub id: String,
    /// What the figure is.
    pub what: String,
    /// The unit of `formula` and `measured`.
    pub unit: String,
    /// As the paper prints it; empty where it shows a plot without a number.
    pub published: String,
    /// Computed from the paper's own formula and its inputs; null where it has none.
    pub formula: Option<f64>,
    /// Measured here; null where this run did not measure it, and `note` says why.
    pub measured: Option<f64>,
    /// Where the paper errs, what differs here, or why there is no measured value; may be empty.
    pub note: String,
}

/// Why nothing was measured, where nobody knows better.
const NO_DATA: &str = "not measured: too few data for it";
/// Why nothing was measured, where the run was over before.
const ENDED_EARLY: &str = "not measured: the run ended early";

impl ReproducedRow {
    /// A row of which only the paper is known.
    pub fn new(id: impl Into<String>, what: &str, unit: &str, published: &str) -> Self {
        Self {
            id: id.into(),
            what: what.to_owned(),
            unit: unit.to_owned(),
            published: published.to_owned(),
            formula: None,
            measured: None,
            note: String::new(),
        }
    }

    /// With what the paper's formula gives.
    pub fn formula(self, value: f64) -> Self {
        Self { formula: Some(value), ..self }
    }

    /// With what was measured.
    pub fn measured(self, value: Option<f64>) -> Self {
        self.measured_or(value, NO_DATA)
    }

    /// Of a run that ended early: that is the reason where no better one is known.
    pub fn ended_early(self) -> Self {
        Self { note: self.note.replace(NO_DATA, ENDED_EARLY), ..self }
    }

    /// With what was measured, or a note that says why nothing was.
    pub fn measured_or(self, value: Option<f64>, why: &str) -> Self {
        let value = value.filter(|value| value.is_finite());
        let row = Self { measured: value, ..self };
        if value.is_some() { row } else { row.note(why) }
    }

    /// With a note, after the others.
    pub fn note(mut self, text: &str) -> Self {
        if !self.note.is_empty() {
            self.note += "; ";
        }
        self.note += text;
        self
    }
}

/// The averaged edges of these stages, each with its name.
pub fn averaged<'s>(
    id: &str,
    what: &str,
    stages: impl IntoIterator<Item = (String, &'s StageRow)>,
) -> PaperFigure {
    let (x, y) = ("µs after the stimulus", "share of answers that have started");
    let figure = PaperFigure::new(id, what, x, y);
    stages.into_iter().fold(figure, |figure, (name, stage)| {
        let Some(trace) = &stage.trace else { return figure };
        let at = |(point, share): (usize, &f64)| [point as f64 * trace.step_ns / 1e3, *share];
        let name = match trace.beyond {
            0 => name,
            late => format!("{name} ({late} later)"),
        };
        let end_us = trace.step_ns * trace.started.len() as f64 / 1e3;
        let single = trace.single_ns.iter().map(|ns| *ns as f64 / 1e3);
        let single = single.filter(|us| *us <= end_us).map(|us| [us, 0.0]);
        let edge = trace.started.iter().enumerate().map(at).collect();
        figure.line(&name, edge).rug("single ones", single.collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_missing_is_explained() {
        let row = || ReproducedRow::new("p.fig1", "a time", "µs", "3").note("first");
        assert_eq!(row().measured(Some(2.0)).note, "first");
        let missing = row().measured(Some(f64::NAN));
        assert_eq!(missing.measured, None);
        assert_eq!(missing.note, "first; not measured: too few data for it");
        assert_eq!(missing.ended_early().note, "first; not measured: the run ended early");
        assert_eq!(row().measured(Some(2.0)).ended_early().note, "first");
        let why = row().measured_or(None, "not reached").ended_early();
        assert_eq!(why.note, "first; not reached");
        assert_eq!(row().measured_or(Some(2.0), "not reached").note, "first");
    }
}
