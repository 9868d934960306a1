//! The axes that all plots of a kind share: one scale, so that what differs is what was measured.
//!
//! Words at ticks are as people write them.

use punctual_analysis::plot::curve::curve;
use punctual_plot::axis::Axis;

use super::times::Times;
use crate::format;
use crate::pages::{Line, Page};

/// Width and height of a drawing, pixels.
pub(super) type Size = (f64, f64);

/// Every axis of a page.
#[derive(Debug)]
pub(crate) struct Axes {
    /// Lateness, of histograms.
    pub(super) bins: Axis,
    /// Cycles in a bin.
    pub(super) count: Axis,
    /// One in so many cycles.
    pub(super) one_in: Axis,
    /// Lateness, of curves.
    pub(super) quantile: Axis,
    /// Seconds.
    pub(super) time: Axis,
    /// Lateness, of time series.
    pub(super) lateness: Axis,
}

impl Axes {
    /// The axes of a page.
    pub(crate) fn of(page: &Page) -> Self {
        let edges = &page.bins.edges_ns;
        let (first, last) = (edges.first().copied(), edges.last().copied());
        let lines = || page.curves.iter().flat_map(|row| &row.panels).flat_map(|p| &p.lines);
        let most = lines().map(|line| one_in(page, line)).fold(10.0, f64::max);
        let times = page.times.iter().flat_map(|row| &row.panels).flat_map(|p| &p.lines);
        let (mut seconds, mut low, mut high) = (0.0, f64::INFINITY, 0.0);
        for line in times {
            let Some(times) = Times::of(page, line) else { continue };
            seconds = times.end_s().max(seconds);
            low = times.lowest_ns().min(low);
            high = times.highest_ns().max(high);
        }
        let worst = lines().filter_map(|line| page.run(line).outcome.lateness_ns.max);
        let worst = worst.fold(0.0, f64::max);
        let label = "lateness (log)";
        let (first, last) = (first.unwrap_or(1.0), last.unwrap_or(10.0));
        Self {
            bins: Axis::log(label, first, last, ns),
            count: Axis::log("cycles in a bin (log)", 0.7, page.bins.most as f64 * 1.4, count),
            one_in: Axis::log("one cycle in … is later: 1/(1 − p) (log)", 1.0, most, count),
            quantile: Axis::log(label, first, if worst > first { worst } else { last } * 1.2, ns),
            time: Axis::even("seconds from the first release", 0.0, seconds, 8, seconds_of),
            lateness: Axis::log(label, low.min(high).max(1.0) * 0.8, high * 1.25, ns),
        }
    }
}

/// How many cycles a curve goes up to.
fn one_in(page: &Page, line: &Line) -> f64 {
    let outcome = &page.run(line).outcome;
    let points = curve(&outcome.histogram, outcome.lateness_ns.max);
    points.last().map_or(1.0, |point| point.one_in)
}

/// A round time: `10 µs`, `500 ns`.
pub(crate) fn ns(at: f64) -> String {
    let unit = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let (unit_ns, unit) = unit.into_iter().find(|(ns, _)| at >= ns * 0.999).unwrap_or((1.0, "ns"));
    // Ticks are round: three figures are all there are.
    let figures = (at / unit_ns * 1e3).round() / 1e3;
    format!("{figures} {unit}")
}

fn count(at: f64) -> String {
    if at < 1.0 { format!("{at:.1}") } else { format::count(at.round() as u64) }
}

fn seconds_of(at: f64) -> String {
    format!("{}", (at * 1e6).round() / 1e6)
}
