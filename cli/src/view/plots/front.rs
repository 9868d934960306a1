//! The front of a sweep of ways to wait: what each costs, and how late it is.
//!
//! For the page and for files of their own.

use punctual_plot::axis::Axis;
use punctual_plot::chart::{Chart, ChartSeries, Mark};

use super::ALONE;
use super::axes::ns;
use crate::format;
use crate::report::{Report, StrategyRow};

/// The chart of a result of `measure wait`; `None` for others, and where nothing can be drawn.
pub(crate) fn chart(report: &Report) -> Option<Chart> {
    let rows = report.body.strategies();
    let p99 = points(rows, |row| row.lateness_ns.p99);
    let p99_9 = points(rows, |row| row.lateness_ns.p99_9);
    let all = || p99.iter().chain(&p99_9);
    let (left, right) = (least(all().map(|at| at.0))?, most(all().map(|at| at.0))?);
    let (low, high) = (least(all().map(|at| at.1))?, most(all().map(|at| at.1))?);
    let front = rows.iter().filter(|row| row.on_front);
    let mut front: Vec<(f64, f64)> =
        front.filter_map(|row| Some((cpu(row)?, row.lateness_ns.p99?.max(1.0)))).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    let names: Vec<String> =
        rows.iter().filter(|row| row.on_front).map(StrategyRow::label).collect();
    let series =
        |name: &str, ink, mark| ChartSeries { name: name.to_owned(), ink, marks: vec![mark] };
    let unnamed = |all: Vec<(f64, f64, String)>| all.into_iter().map(|at| (at.0, at.1)).collect();
    Some(Chart {
        title: "Lateness against CPU of ways to wait".to_owned(),
        titled: false,
        description: format!(
            "{} ways to wait. On the front, where no other way is cheaper and has a lower p99: {}.",
            rows.len(),
            names.join(", ")
        ),
        size: ALONE,
        x: Axis::log("CPU of the loop\'s thread, % (log)", left * 0.8, right * 1.25, percent),
        y: Axis::log("lateness (log)", low * 0.7, high * 1.6, ns),
        series: vec![
            series("front", 2, Mark::Line(front)),
            series("1 in 100 later (p99)", 0, Mark::Points(p99)),
            series("1 in 1000 later (p99.9)", 1, Mark::Dots(unnamed(p99_9))),
        ],
    })
}

/// The ways with this quantile; those on the front have their name.
fn points(
    rows: &[StrategyRow],
    of: impl Fn(&StrategyRow) -> Option<f64>,
) -> Vec<(f64, f64, String)> {
    let point = |row: &StrategyRow| {
        let name = if row.on_front { row.label() } else { String::new() };
        // A log scale has no place for a wait that is on time to the nanosecond.
        Some((cpu(row)?, of(row)?.max(1.0), name))
    };
    rows.iter().filter_map(point).collect()
}

fn cpu(row: &StrategyRow) -> Option<f64> {
    row.cpu_load.map(|load| load * 100.0).filter(|percent| *percent > 0.0)
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::min)
}

fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

fn percent(at: f64) -> String {
    format::share(at / 100.0)
}
