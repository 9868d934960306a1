//! The plots of a page: a drawing that needs no script, and behind each its numbers as a table.

use std::collections::BTreeMap;

use punctual_analysis::plot::{HeatColumn, curve};
use punctual_document::{Block, Figure, Row, Section, Table, numbers, words};

use super::source::Source;
use crate::format;
use crate::pages::{Line, Page};
use crate::view::plots::{self, Kind, Plot, Times};

/// Rows of the table behind a time series, at most.
const TIME_ROWS: usize = 48;

/// Stretches of time in the table behind a heat map, at most.
const HEAT_STRETCHES: usize = 6;

/// Points of a curve in its table, at most one each so many.
const CURVE_EACH: usize = 6;

/// Histograms.
pub(super) fn histograms(source: &Source<'_>) -> Option<Section> {
    section(source, Kind::Histogram, "plot-histogram")
}

/// Percentile curves.
pub(super) fn curves(source: &Source<'_>) -> Option<Section> {
    section(source, Kind::Curve, "plot-percentiles")
}

/// Time series.
pub(super) fn times(source: &Source<'_>) -> Option<Section> {
    section(source, Kind::Time, "plot-time")
}

/// Heat maps.
pub(super) fn heat_maps(source: &Source<'_>) -> Option<Section> {
    let mut whole = section(source, Kind::Heat, "plot-heat")?;
    let lines = source.page.times.iter().flat_map(|row| &row.panels).flat_map(|panel| &panel.lines);
    for (at, line) in lines.enumerate() {
        if let Some((sentence, chart)) = plots::repeated(source.page, &source.axes, line) {
            whole.blocks.push(Block::words(sentence));
            whole.blocks.push(Figure::still(format!("repeated-{}", at + 1), chart));
        }
    }
    Some(whole)
}

fn section(source: &Source<'_>, kind: Kind, id: &'static str) -> Option<Section> {
    let page = source.page;
    let rows = plots::of(page, &source.axes, kind);
    if rows.is_empty() || page.bins.edges_ns.is_empty() {
        return None;
    }
    let mut blocks: Vec<Block> = match kind {
        Kind::Histogram if page.results.len() <= 2 => {
            page.left_out.iter().map(Block::muted).collect()
        }
        _ => Vec::new(),
    };
    for row in rows {
        let figures = row.into_iter().map(|plot| vec![figure(page, plot)]).collect();
        blocks.push(Block::Row(Row::Plots, figures));
    }
    Some(Section { id, heading: kind.heading(), blocks })
}

fn figure(page: &Page, plot: Plot<'_>) -> Block {
    let lines = plot.panel.lines.iter();
    let behind = match plot.kind {
        Kind::Histogram => vec![bins(page, &plot).into()],
        Kind::Curve => lines.map(|line| points(page, line).into()).collect(),
        Kind::Time => lines.filter_map(|line| Some(time_bins(page, line)?.into())).collect(),
        Kind::Heat => lines.filter_map(|line| Some(heat_counts(page, line)?.into())).collect(),
    };
    let (id, title, chart) = (plot.id, plot.panel.title.clone(), plot.chart);
    let (brief, data) = (String::new(), Some(plot.kind.id()));
    Block::Figure(Box::new(Figure { id, title, chart, brief, data, behind }))
}

fn bins(page: &Page, plot: &Plot<'_>) -> Table {
    let lines = &plot.panel.lines;
    let mut columns = vec![words("lateness from"), numbers("to below")];
    columns.extend(lines.iter().map(|line| numbers(&format!("{}, cycles", line.name))));
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
    Table::new(&plot.chart.title, columns, rows)
}

fn points(page: &Page, line: &Line) -> Table {
    let outcome = &page.run(line).outcome;
    let points = curve(&outcome.histogram, outcome.lateness_ns.max);
    let last = points.len().saturating_sub(1);
    let kept = points.iter().enumerate().filter(|(at, _)| at % CURVE_EACH == 0 || *at == last);
    let rows: Vec<Vec<String>> = kept
        .map(|(_, point)| vec![format::rate(point.one_in), format::ns(Some(point.lateness_ns))])
        .collect();
    let columns = [words("all but one in … cycles"), numbers("at most this late")];
    Table::new(format!("Percentile curve, {}", line.name), columns, rows)
}

/// The cycles of each stretch of time by lateness, in octaves.
fn heat_counts(page: &Page, line: &Line) -> Option<Table> {
    let times = Times::of(page, line)?;
    let heat = times.thinned.heat.thinned(HEAT_STRETCHES);
    let mut octaves: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for (at, column) in heat.bins().iter().enumerate() {
        for cell in column.cells() {
            let octave = cell.from_ns.log2().floor() as u32;
            octaves.entry(octave).or_insert_with(|| vec![0; heat.bins().len()])[at] += cell.count;
        }
    }
    let mut columns = vec![words("lateness from"), numbers("to below")];
    let from = |column: &HeatColumn| numbers(&format!("from {:.3} s", times.at_s(column.first)));
    columns.extend(heat.bins().iter().map(from));
    let ns = |octave: u32| format::ns(Some(f64::from(octave).exp2()));
    let row = |(octave, counts): (u32, Vec<u64>)| {
        let counts = counts.into_iter().map(format::count);
        // The first has all that is earlier.
        let from = if octave > HeatColumn::FROM_NS.ilog2() { ns(octave) } else { "-".to_owned() };
        [from, ns(octave + 1)].into_iter().chain(counts).collect()
    };
    let rows: Vec<Vec<String>> = octaves.into_iter().map(row).collect();
    Some(Table::new(format!("Cycles by lateness and time, {}", line.name), columns, rows))
}

fn time_bins(page: &Page, line: &Line) -> Option<Table> {
    let times = Times::of(page, line)?;
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
    let caption =
        format!("Lateness over time, {}: bins of {:.3} s", line.name, times.width_s(&envelope));
    let columns = [
        words("from"),
        numbers("cycles"),
        numbers("smallest"),
        numbers("mean"),
        numbers("largest"),
        numbers(times.gaps),
    ];
    Some(Table::new(caption, columns, rows))
}
