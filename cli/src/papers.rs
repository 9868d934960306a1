//! Figures and claims of papers, in the shape of results.
//!
//! Papers know nothing of results, and results nothing of papers: each of both has its own plain
//! data, and here one is made of the other.

use punctual_papers::claim::{self, ClaimedBound, PaperClaim};
use punctual_papers::figure::{Drawing, Series, Style};
use punctual_papers::row::PaperRow;

use punctual_report::reproduced::{
    ClaimFigure, Drawn, FigureSeries, PaperFigure, ReproducedClaim, ReproducedRow,
};

/// A row of a result.
pub(crate) fn row(row: PaperRow) -> ReproducedRow {
    let PaperRow { id, title: what, unit, published, formula, measured, note } = row;
    ReproducedRow { id, what, unit, published, formula, measured, note }
}

/// A claim of a result.
pub(crate) fn claim(claim: PaperClaim) -> ReproducedClaim {
    let PaperClaim { id, claim, holds, because, remark, figures, .. } = claim;
    let figures = figures.into_iter().map(claim_figure).collect();
    ReproducedClaim { id, claim, holds, because, remark, figures }
}

fn claim_figure(figure: claim::ClaimFigure) -> ClaimFigure {
    let claim::ClaimFigure { title: what, unit, value, n, test } = figure;
    let bound = test.map(|(bound, _)| bound);
    let at_least = bound.and_then(|bound| match bound {
        ClaimedBound::AtLeast(least) => Some(least),
        ClaimedBound::AtMost(_) => None,
    });
    let at_most = bound.and_then(|bound| match bound {
        ClaimedBound::AtMost(most) => Some(most),
        ClaimedBound::AtLeast(_) => None,
    });
    let holds = test.map(|(_, holds)| holds);
    ClaimFigure { what, unit, value, n, at_least, at_most, holds }
}

/// A figure of a result.
pub(crate) fn figure(figure: Drawing) -> PaperFigure {
    let Drawing { id, title: what, x, y, log, names, channels, beside, series } = figure;
    let series = series.into_iter().map(drawn).collect();
    PaperFigure { id, what, x, y, log, names, channels, beside, series }
}

fn drawn(series: Series) -> FigureSeries {
    let Series { name, style, points, labels, channel } = series;
    let drawn = match style {
        Style::Line => Drawn::Line,
        Style::Points => Drawn::Points,
        Style::Rug => Drawn::Rug,
        Style::Steps => Drawn::Steps,
        Style::Bars => Drawn::Bars,
        Style::Range => Drawn::Range,
        Style::Band => Drawn::Band,
        Style::Density => Drawn::Density,
    };
    FigureSeries { name, drawn, points, labels, channel }
}
