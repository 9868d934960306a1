//! The numbers that a page's script draws plots from: series as in the drawings, in finer steps
//! where that helps a zoom.

use punctual_analysis::plot::curve;
use punctual_plot::axis::{Axis, Scale};
use punctual_plot::chart::NamedSpan;
use serde_json::{Value, json};

use super::source::Source;
use crate::pages::{Line, Page};
use crate::view::plots::{self, Kind, Plot, Times};

/// All of them: the common edges of histograms, their open bin, and one entry a plot.
pub(super) fn json(source: &Source<'_>) -> Value {
    let mut charts = Vec::new();
    for kind in Kind::ALL {
        for row in plots::of(source.page, &source.axes, kind) {
            charts.extend(row.iter().map(|plot| chart(source.page, plot)));
        }
    }
    let beyond = plots::beyond(source.page).map(span);
    json!({ "edges": source.page.bins.edges_ns, "beyond": beyond, "charts": charts })
}

/// A span as the script reads it: from, to, name.
fn span(NamedSpan { from, to, name }: NamedSpan) -> (f64, f64, String) {
    (from, to, name)
}

fn chart(page: &Page, plot: &Plot<'_>) -> Value {
    let series: Vec<Value> = plot
        .panel
        .lines
        .iter()
        .map(|line| {
            let mut series = match plot.kind {
                Kind::Histogram => json!({ "counts": page.bins.counts[line.drawn] }),
                Kind::Curve => points(page, line),
                Kind::Time => times(page, line),
                Kind::Heat => heat(page, line),
            };
            series["name"] = json!(line.name);
            series["ink"] = json!(line.ink);
            series
        })
        .collect();
    json!({
        "id": plot.id,
        "kind": plot.kind.id(),
        "title": plot.chart.title,
        "x": axis(&plot.chart.x),
        "y": axis(&plot.chart.y),
        "series": series,
        "deadlines": plots::deadlines(page, plot.panel),
    })
}

fn axis(axis: &Axis) -> Value {
    let (is_log, is_clock) = (axis.scale == Scale::Log, axis.scale == Scale::Clock);
    json!({
        "label": axis.label,
        "low": axis.low,
        "high": axis.high,
        "log": is_log,
        "clock": is_clock,
    })
}

fn points(page: &Page, line: &Line) -> Value {
    let outcome = &page.run(line).outcome;
    let points = curve(&outcome.histogram, outcome.lateness_ns.max);
    let x: Vec<f64> = points.iter().map(|point| point.one_in).collect();
    let y: Vec<f64> = points.iter().map(|point| point.lateness_ns).collect();
    json!({ "x": x, "y": y })
}

/// Microseconds are fine enough for a place in time.
fn micro(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

fn heat(page: &Page, line: &Line) -> Value {
    let Some(times) = Times::of(page, line) else { return json!({}) };
    let (width_s, from_s, columns) = plots::brief_heat(page, &times);
    let from: Vec<f64> = from_s.into_iter().map(micro).collect();
    json!({ "width": width_s, "t": from, "columns": columns })
}

fn times(page: &Page, line: &Line) -> Value {
    let Some(times) = Times::of(page, line) else { return json!({}) };
    let placed = times.placed(&times.thinned.envelope);
    let column = |value: &dyn Fn(&(f64, &_)) -> Value| -> Vec<Value> {
        placed.iter().map(|point| point.as_ref().map_or(Value::Null, value)).collect()
    };
    type Bin = punctual_analysis::plot::EnvelopeBin;
    let missed = times.thinned.envelope.bins().iter().filter(|s| s.missed > 0);
    let outliers = &times.thinned.outliers;
    // Sparse: of few it is known what made them late.
    let run = page.run(line);
    let why = |o: &punctual_analysis::plot::LateCycle| {
        Some((o.cycle.to_string(), json!(run.cause_of(o.cycle, o.lateness_ns)?)))
    };
    let causes: serde_json::Map<String, Value> = outliers.iter().filter_map(why).collect();
    json!({
        "t": column(&|(at, _): &(f64, &Bin)| json!(micro(*at))),
        "min": column(&|(_, s): &(f64, &Bin)| json!(s.min_ns)),
        "mean": column(&|(_, s): &(f64, &Bin)| json!(s.mean_ns().round())),
        "max": column(&|(_, s): &(f64, &Bin)| json!(s.max_ns)),
        "cycles": times.thinned.envelope.width(),
        "missed": missed.map(|s| micro(times.at_s(s.first))).collect::<Vec<_>>(),
        "ot": outliers.iter().map(|o| micro(times.at_s(o.cycle))).collect::<Vec<_>>(),
        "ov": outliers.iter().map(|o| o.lateness_ns).collect::<Vec<_>>(),
        "loads": times.loads(page.loaded(line)).into_iter().map(span).collect::<Vec<_>>(),
        "ok": outliers.iter().map(|o| o.cycle).collect::<Vec<_>>(),
        "why": causes,
    })
}
