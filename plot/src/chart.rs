//! A chart: two axes, series of marks, a legend.
//!
//! Plain data in the units of the axes; [`Chart::scene`] lays it out in pixels.

use crate::axis::Axis;
use crate::layout;
use crate::scene::Scene;

/// The mark of a series; all numbers in the units of the axes.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// Steps: value k from edge k to edge k + 1 (one edge more than values), filled lightly down
    /// to the axis. A value at or below the axis is not drawn.
    Steps {
        /// The edges, rising.
        edges: Vec<f64>,
        /// The values between them.
        values: Vec<f64>,
    },
    /// Stairs through points: each value holds from the point before up to its own x.
    Stairs(Vec<(f64, f64)>),
    /// A filled band with a line through it: (x, lowest, middle, highest). `None` is a gap.
    Band(Vec<Option<(f64, f64, f64, f64)>>),
    /// A line from point to point.
    Line(Vec<(f64, f64)>),
    /// Dots.
    Dots(Vec<(f64, f64)>),
    /// Larger dots, each with its name above it where there is room; an empty name is none.
    Points(Vec<(f64, f64, String)>),
    /// Small marks on the lower axis.
    Rug(Vec<f64>),
    /// Named spans of x, above the frame: from, to, name.
    Spans(Vec<(f64, f64, String)>),
}

/// A series.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartSeries {
    /// Its name in the legend.
    pub name: String,
    /// Its number: colour and dashes. Several may share one.
    pub ink: usize,
    /// Its mark.
    pub marks: Vec<Mark>,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title of the picture, in one line.
    pub title: String,
    /// True where the title stands in the picture too: for files that travel alone.
    pub titled: bool,
    /// The picture in words, for who cannot see it.
    pub description: String,
    /// Width and height, pixels.
    pub size: (f64, f64),
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in the order in which they are drawn.
    pub series: Vec<ChartSeries>,
}

impl Chart {
    /// The chart in pixels.
    pub fn scene(&self) -> Scene {
        layout::scene(self)
    }
}
