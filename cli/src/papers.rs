//! What a paper gives, as results have it.
//!
//! Papers know nothing of results, and results nothing of papers: each of both has its own plain
//! data, and here one is made of the other.

use punctual_papers::figure::{Drawing, Series, Style};
use punctual_papers::row::PaperRow;

use punctual_report::reproduced::{Drawn, FigureSeries, PaperFigure, ReproducedRow};

/// A row of a result.
pub(crate) fn row(row: PaperRow) -> ReproducedRow {
    let PaperRow { id, title: what, unit, published, formula, measured, note } = row;
    ReproducedRow { id, what, unit, published, formula, measured, note }
}

/// A figure of a result.
pub(crate) fn figure(figure: Drawing) -> PaperFigure {
    let Drawing { id, title: what, x, y, log, series } = figure;
    PaperFigure { id, what, x, y, log, series: series.into_iter().map(drawn).collect() }
}

fn drawn(series: Series) -> FigureSeries {
    let Series { name, style, points, labels } = series;
    let drawn = match style {
        Style::Line => Drawn::Line,
        Style::Points => Drawn::Points,
        Style::Rug => Drawn::Rug,
        Style::Steps => Drawn::Steps,
    };
    FigureSeries { name, drawn, points, labels }
}
