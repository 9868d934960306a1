//! Percentile curves: how late the latest of x cycles was.

use punctual_analysis::plot::curve::curve;
use punctual_analysis::recording::RunFigures;
use punctual_plot::chart::{Chart, ChartSeries, Mark};

use super::axes::{Axes, Size};
use crate::format;
use crate::pages::{Line, Page, Panel};

/// The chart of a panel.
pub(super) fn chart(page: &Page, axes: &Axes, panel: &Panel, size: Size) -> Chart {
    let series = |line: &Line| {
        let outcome = &page.run(line).outcome;
        let points = curve(&outcome.histogram, outcome.lateness_ns.max);
        let stairs = points.iter().map(|point| (point.one_in, point.lateness_ns)).collect();
        let marks = vec![Mark::Stairs(stairs)];
        ChartSeries { name: line.name.clone(), ink: line.ink, marks }
    };
    let part = |line: &Line| described(line, &page.run(line).outcome);
    Chart {
        title: format!("Percentile curve of lateness: {}", panel.title),
        titled: false,
        description: panel.lines.iter().map(part).collect::<Vec<_>>().join(" "),
        size,
        x: axes.one_in.clone(),
        y: axes.quantile.clone(),
        series: panel.lines.iter().map(series).collect(),
    }
}

/// Only what n supports.
fn described(line: &Line, outcome: &RunFigures) -> String {
    let lateness = &outcome.lateness_ns;
    let known = [("half", lateness.p50), ("99 %", lateness.p99), ("99.9 %", lateness.p99_9)];
    let known = known.iter().filter(|(_, ns)| ns.is_some());
    let shares: Vec<String> = known
        .map(|(share, ns)| format!("{share} of cycles at most {} late", format::ns(*ns)))
        .collect();
    let worst = format::largest(lateness.max, outcome.unknown());
    format!("{}: {}; the worst {worst}.", line.name, shares.join(", "))
}
