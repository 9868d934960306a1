//! A figure of a paper, drawn from today's data beside what the paper has.
//!
//! For the page.

use punctual_plot::axis::Axis;
use punctual_plot::chart::{Chart, ChartSeries, Mark};
use punctual_report::Body;
use punctual_report::measured::Measured;
use punctual_report::reproduced::{Drawn, FigureSeries, PaperFigure};

use super::ALONE;
use crate::format;
use crate::pages::Shown;
use crate::view::kinds;

/// The figures of papers, and the traces of answers, of these results, each with a name for files
/// and pages: a result may call its figures anything.
pub(crate) fn drawn(results: &[Shown]) -> Vec<(String, Chart)> {
    let mut laid: Vec<(usize, PaperFigure)> = Vec::new();
    for (at, shown) in results.iter().enumerate() {
        let figures = match &shown.report.body {
            Body::Reproduce(body) => body.figures.clone(),
            Body::Measured(Measured::Response(body)) => kinds::traces(body),
            _ => continue,
        };
        let is_paper = matches!(shown.report.body, Body::Reproduce(_));
        for figure in figures {
            // One that an earlier result has is laid over it.
            match laid.iter_mut().find(|(_, earlier)| is_paper && earlier.id == figure.id) {
                Some((_, earlier)) => earlier.overlay(&figure, &shown.label),
                None => laid.push((at, figure)),
            }
        }
    }
    let chart = |(at, figure): &(usize, PaperFigure)| Some((name(&figure.id, *at), chart(figure)?));
    laid.iter().filter_map(chart).collect()
}

/// A name of letters, figures and dashes, whatever the result calls it; `at`: which result.
fn name(id: &str, at: usize) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let id: String = id.chars().take(ID_MOST).map(safe).collect();
    format!("{id}-{}", at + 1)
}

/// The most characters of a figure's name.
const ID_MOST: usize = 40;
/// The least room between the outermost points and the frame, of the range.
const ROOM: f64 = 0.06;

/// The chart; `None` where nothing was measured and nothing published that can be drawn.
pub(crate) fn chart(figure: &PaperFigure) -> Option<Chart> {
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let shown = |at: &&[f64; 2]| {
        at.iter().zip(figure.log).all(|(value, log)| value.is_finite() && (!log || *value > 0.0))
    };
    let range = |axis: usize| {
        let values = || points().filter(shown).map(move |at| at[axis]);
        Some((values().reduce(f64::min)?, values().reduce(f64::max)?))
    };
    let axis = |label: &str, (low, high): (f64, f64), log: bool| match log {
        true => Axis::log(label, low * 0.7, high * 1.5, words),
        false => {
            let room = (high - low).max(f64::MIN_POSITIVE) * ROOM;
            // A scale that begins near zero begins there.
            let low = if low >= 0.0 && low < high * 0.5 { 0.0 } else { low - room };
            Axis::even(label, low, high + room, 6, words)
        }
    };
    let is_rug = |series: &&FigureSeries| series.drawn == Drawn::Rug;
    let named = figure.series.iter().filter(|series| !is_rug(series));
    let names: Vec<&str> = named.map(|series| series.name.as_str()).collect();
    let single = figure.series.iter().any(|series| is_rug(&series));
    let marks = if single { " Marks on the axis are the last single ones." } else { "" };
    Some(Chart {
        title: format!("{}: {}", figure.id, figure.what),
        titled: false,
        description: format!("{} over {}: {}.{marks}", figure.y, figure.x, names.join(", ")),
        size: ALONE,
        x: axis(&figure.x, range(0)?, figure.log[0]),
        y: axis(&figure.y, range(1)?, figure.log[1]),
        series: all_series(figure, &shown),
        notes: Vec::new(),
    })
}

/// The series; a rug is a mark of the one before it.
fn all_series(figure: &PaperFigure, shown: &impl Fn(&&[f64; 2]) -> bool) -> Vec<ChartSeries> {
    let mut drawn: Vec<ChartSeries> = Vec::new();
    for series in &figure.series {
        let (ink, mark) = (drawn.len(), mark(series, shown));
        match drawn.last_mut().filter(|_| series.drawn == Drawn::Rug) {
            Some(line) => line.marks.push(mark),
            None => drawn.push(ChartSeries { name: series.name.clone(), ink, marks: vec![mark] }),
        }
    }
    drawn
}

fn mark(series: &FigureSeries, shown: &impl Fn(&&[f64; 2]) -> bool) -> Mark {
    match series.drawn {
        Drawn::Rug => Mark::Rug(series.points.iter().filter(shown).map(|at| at[0]).collect()),
        Drawn::Line => {
            Mark::Line(series.points.iter().filter(shown).map(|at| (at[0], at[1])).collect())
        }
        Drawn::Steps => Mark::Steps {
            edges: series.points.iter().map(|at| at[0]).collect(),
            values: series.points.iter().rev().skip(1).rev().map(|at| at[1]).collect(),
        },
        Drawn::Points => {
            let labels = series.labels.iter().map(String::as_str).chain(std::iter::repeat(""));
            let points = series.points.iter().zip(labels).filter(|(at, _)| shown(at));
            Mark::Points(points.map(|(at, label)| (at[0], at[1], label.to_owned())).collect())
        }
    }
}

/// A number at a tick.
fn words(at: f64) -> String {
    match at.abs() {
        size if size >= 1e5 => format!("{at:.0e}"),
        size if size >= 10.0 || size == 0.0 => format::whole(at),
        size if size >= 0.01 => format!("{}", (at * 1e3).round() / 1e3),
        _ => format!("{at:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use punctual_papers::figure::Drawing;
    use punctual_plot::axis::Scale;

    use super::*;

    fn chart(figure: &Drawing) -> Option<Chart> {
        super::chart(&crate::papers::figure(figure.clone()))
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let empty = Drawing::new("a.fig1", "nothing", "x", "y");
        assert_eq!(chart(&empty), None);
        let figure =
            empty.log([true; 2]).line("here: a", vec![[1.0, 2.0], [0.0, 3.0], [f64::NAN, 1.0]]);
        let drawn = chart(&figure.points("published", [([10.0, 20.0], "b")])).expect("two points");
        assert_eq!(drawn.series.len(), 2);
        assert_eq!(drawn.series[0].marks, [Mark::Line(vec![(1.0, 2.0)])]);
        assert_eq!(drawn.series[1].marks, [Mark::Points(vec![(10.0, 20.0, "b".to_owned())])]);
        assert!(drawn.x.scale == Scale::Log && drawn.y.high >= 20.0);
        let line = Drawing::new("a.fig2", "edges", "x", "y").line("a", vec![[1.0, 2.0]]);
        let drawn = chart(&line.rug("single", vec![[3.0, 2.0]])).expect("points");
        assert_eq!(drawn.series.len(), 1);
        assert_eq!(drawn.series[0].marks[1], Mark::Rug(vec![3.0]));
        let figure = Drawing::new("a.fig3", "columns", "x", "y").log([true; 2]);
        let drawn = chart(&figure.steps("here: a", &[1.0, 10.0, 100.0, 1e3], &[7, 0, 2]));
        let drawn = drawn.expect("columns");
        let (edges, values) = (vec![1.0, 10.0, 100.0, 1e3], vec![7.0, 0.0, 2.0]);
        assert_eq!(drawn.series[0].marks, [Mark::Steps { edges, values }]);
        assert!(drawn.x.low <= 1.0 && drawn.x.high >= 1e3, "the last column has room");
    }

    #[test]
    fn no_result_chooses_where_a_file_of_its_figure_goes() {
        assert_eq!(name("nist.fig1a", 0), "nist-fig1a-1");
        assert_eq!(name("../../etc/x\u{0}\"", 1), "------etc-x---2");
        assert!(name(&"a".repeat(5_000), 0).len() < 50);
    }

    #[test]
    fn a_tick_has_no_more_digits_than_it_needs() {
        let shown = [0.0, 0.2, 2.5, 19.0, 250_000.0, 0.0001].map(words);
        assert_eq!(shown, ["0", "0.2", "2.5", "19", "2e5", "1e-4"]);
    }
}
