//! Plots of a page as charts: axes with their words, marks in their units.
//!
//! For the page and for files of their own. The numbers come from `punctual_analysis::plot`.

mod axes;
mod curve;
mod day;
mod front;
mod histogram;
mod paper;
mod time;
mod times;

use punctual_plot::chart::Chart;

use crate::pages::{Page, Panel, Row};
pub(crate) use axes::Axes;
use axes::Size;
pub(crate) use day::charts as by_day;
pub(crate) use front::chart as front;
pub(crate) use histogram::beyond;
pub(crate) use paper::chart as of_paper;
pub(crate) use times::Times;

/// Width and height of a plot that stands alone, and of one of two side by side, pixels.
const ALONE: Size = (880.0, 340.0);
const ONE_OF_TWO: Size = (560.0, 320.0);

/// A kind of plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// How often which lateness.
    Histogram,
    /// Which lateness once in how many cycles.
    Curve,
    /// Lateness over time.
    Time,
}

impl Kind {
    /// All kinds, in the order of the page.
    pub(crate) const ALL: [Self; 3] = [Self::Histogram, Self::Curve, Self::Time];

    /// In identifiers and names of files.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Histogram => "histogram",
            Self::Curve => "percentiles",
            Self::Time => "time",
        }
    }

    /// As a heading.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Histogram => "Histogram of lateness",
            Self::Curve => "Percentile curve",
            Self::Time => "Lateness over time",
        }
    }

    /// The page's rows of this kind.
    pub(crate) fn rows(self, page: &Page) -> &[Row] {
        match self {
            Self::Histogram => &page.histograms,
            Self::Curve => &page.curves,
            Self::Time => &page.times,
        }
    }
}

/// One plot, ready to be drawn.
pub(crate) struct Plot<'a> {
    /// Unique in the page.
    pub(crate) id: String,
    /// What kind it is.
    pub(crate) kind: Kind,
    /// What is in it.
    pub(crate) panel: &'a Panel,
    /// As a picture.
    pub(crate) chart: Chart,
}

/// The plots of one kind, in rows.
pub(crate) fn of<'a>(page: &'a Page, axes: &Axes, kind: Kind) -> Vec<Vec<Plot<'a>>> {
    let rows = kind.rows(page).iter().enumerate();
    rows.map(|(number, row)| {
        let panels = row.panels.iter().enumerate();
        panels
            .map(|(column, panel)| {
                let id = format!("{}-{}-{}", kind.id(), number + 1, column + 1);
                let size = if row.panels.len() > 1 { ONE_OF_TWO } else { ALONE };
                let chart = match kind {
                    Kind::Histogram => histogram::chart(page, axes, panel, size),
                    Kind::Curve => curve::chart(page, axes, panel, size),
                    Kind::Time => time::chart(page, axes, panel, size),
                };
                Plot { id, kind, panel, chart }
            })
            .collect()
    })
    .collect()
}
