//! What `reproduce` gives: a row for each figure that a paper prints.
//!
//! Plain data.

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
