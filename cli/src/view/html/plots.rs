//! The plots: a drawing that needs no script, and behind each its numbers as a table.

use punctual_analysis::plot::curve::curve;

use super::markup::{details, drawing, escape, paragraph, table};
use super::section::{Section, Source};
use crate::format;
use crate::pages::{Line, Page};
use crate::view::plots::{self, Kind, Plot, Times};

/// Rows of the table behind a time series, at most.
const TIME_ROWS: usize = 48;

/// Points of a curve in its table, at most one each so many.
const CURVE_EACH: usize = 6;

/// Histograms.
pub(super) fn histograms(source: &Source<'_>) -> Option<Section> {
    of(source, Kind::Histogram, "plot-histogram")
}

/// Percentile curves.
pub(super) fn curves(source: &Source<'_>) -> Option<Section> {
    of(source, Kind::Curve, "plot-percentiles")
}

/// Time series.
pub(super) fn times(source: &Source<'_>) -> Option<Section> {
    of(source, Kind::Time, "plot-time")
}

fn of(source: &Source<'_>, kind: Kind, id: &'static str) -> Option<Section> {
    let page = source.page;
    let rows = plots::of(page, &source.axes, kind);
    if rows.is_empty() || page.bins.edges_ns.is_empty() {
        return None;
    }
    let mut body = match (kind, page.left_out.as_slice()) {
        (Kind::Histogram, left_out) if page.results.len() <= 2 => {
            left_out.iter().map(|words| paragraph("muted", words)).collect()
        }
        _ => String::new(),
    };
    for row in &rows {
        let class = if row.len() > 1 { "side" } else { "alone" };
        body += &format!("<div class=\"{class}\">");
        for plot in row {
            body += &figure(page, plot);
        }
        body += "</div>";
    }
    Some(Section { id, heading: kind.heading(), body })
}

fn figure(page: &Page, plot: &Plot<'_>) -> String {
    let data: String = match plot.kind {
        Kind::Histogram => bins(page, plot),
        Kind::Curve => plot.panel.lines.iter().map(|line| points(page, line)).collect(),
        Kind::Time => plot.panel.lines.iter().map(|line| time_bins(page, line)).collect(),
    };
    format!(
        "<figure id=\"{id}\" class=\"plot\" data-kind=\"{kind}\"><h3>{}</h3>{}\
         <figcaption>{}</figcaption>{}</figure>",
        escape(&plot.panel.title),
        drawing(&plot.chart, &plot.id),
        escape(&plot.chart.description),
        details("Numbers behind this plot", &data),
        id = plot.id,
        kind = plot.kind.id(),
    )
}

fn bins(page: &Page, plot: &Plot<'_>) -> String {
    let lines = &plot.panel.lines;
    let names: Vec<String> = lines.iter().map(|line| format!(">{}, cycles", line.name)).collect();
    let mut heads = vec!["lateness from", ">to below"];
    heads.extend(names.iter().map(String::as_str));
    let count = |line: &Line, bin: usize| page.bins.counts[line.drawn][bin];
    let rows: Vec<Vec<String>> = page
        .bins
        .edges_ns
        .windows(2)
        .enumerate()
        .filter(|(bin, _)| lines.iter().any(|line| count(line, *bin) > 0))
        .map(|(bin, edges)| {
            // The last bin may have no end.
            let open = page.bins.open_ns.is_some() && bin + 2 == page.bins.edges_ns.len();
            let end = if open { "-".to_owned() } else { format::ns(Some(edges[1])) };
            let mut row = vec![format::ns(Some(edges[0])), end];
            row.extend(lines.iter().map(|line| format::count(count(line, bin))));
            row
        })
        .collect();
    table(&plot.chart.title, &heads, &rows)
}

fn points(page: &Page, line: &Line) -> String {
    let outcome = &page.run(line).outcome;
    let points = curve(&outcome.histogram, outcome.lateness_ns.max);
    let last = points.len().saturating_sub(1);
    let kept = points.iter().enumerate().filter(|(at, _)| at % CURVE_EACH == 0 || *at == last);
    let rows: Vec<Vec<String>> = kept
        .map(|(_, point)| vec![format::rate(point.one_in), format::ns(Some(point.lateness_ns))])
        .collect();
    table(
        &format!("Percentile curve, {}", line.name),
        &["all but one in … cycles", ">at most this late"],
        &rows,
    )
}

fn time_bins(page: &Page, line: &Line) -> String {
    let Some(times) = Times::of(page, line) else { return String::new() };
    let envelope = times.thinned.envelope.thinned(TIME_ROWS);
    let rows: Vec<Vec<String>> = envelope
        .bins()
        .iter()
        .map(|bin| {
            vec![
                format!("{:.3} s", times.at_s(bin.first)),
                format::count(bin.n),
                format::ns(Some(bin.min_ns as f64)),
                format::ns(Some(bin.mean_ns())),
                format::ns(Some(bin.max_ns as f64)),
                format::count(bin.missed),
            ]
        })
        .collect();
    table(
        &format!("Lateness over time, {}: bins of {:.3} s", line.name, times.width_s(&envelope)),
        &["from", ">cycles", ">smallest", ">mean", ">largest", &format!(">{}", times.gaps)],
        &rows,
    )
}
