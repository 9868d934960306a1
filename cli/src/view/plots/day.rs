//! A campaign over its time, and by the time of day: how often releases were how late in each
//! batch, the worst of each, and the latest wakes.
//!
//! Lateness that comes back every day (backups, logs that are rotated, people) stands in a column.

use punctual_analysis::plot::HeatColumn;
use punctual_plot::axis::Axis;
use punctual_plot::chart::{Chart, ChartSeries, Mark};
use punctual_report::Campaign;

use super::{ALONE, ns, shaded};
use crate::format;
use crate::view::kinds::campaign::run_name;

/// The most runs that have a chart: each setup's runs count anew.
const RUNS_MAX: usize = 8;

/// Seconds of a day.
const DAY_S: i64 = 86_400;

/// The charts of a campaign, one for each run of each setup.
pub(crate) fn charts(campaign: &Campaign) -> Vec<Chart> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for row in &campaign.stretches {
        if !runs.contains(&(row.setup, row.run)) {
            runs.push((row.setup, row.run));
        }
    }
    let both = |run| [heat_map(campaign, run), by_day(campaign, run)];
    runs.into_iter().take(RUNS_MAX).flat_map(both).flatten().collect()
}

/// Releases by lateness, over the whole campaign; `None` without counts.
fn heat_map(campaign: &Campaign, run: (usize, usize)) -> Option<Chart> {
    let rows = campaign.stretches.iter().filter(|row| (row.setup, row.run) == run);
    let is_merged = rows.clone().any(|row| row.batches > 1);
    let columns: Vec<((f64, f64), HeatColumn)> = rows
        .filter(|row| !row.by_lateness.is_empty())
        .map(|row| {
            let [from, to] = [row.from_unix_s, row.to_unix_s]
                .map(|unix_s| unix_s.saturating_sub(campaign.began_unix_s) as f64);
            ((from, to.max(from + 1.0)), HeatColumn::of_rows(0, &row.by_lateness))
        })
        .collect();
    let cells = || columns.iter().flat_map(|(_, column)| column.cells());
    let low = cells().map(|cell| cell.from_ns).reduce(f64::min)?;
    let high = cells().map(|cell| cell.to_ns).reduce(f64::max)?;
    let from = columns.iter().map(|((from, _), _)| *from).reduce(f64::min)?;
    let to = columns.iter().map(|((_, to), _)| *to).reduce(f64::max)?;
    let y = Axis::log("lateness (log)", low, high, ns);
    // Seconds are round numbers only of what is short.
    let (unit_s, unit) = [(86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")]
        .into_iter()
        .find(|(unit_s, _)| to - from >= 2.0 * unit_s)
        .unwrap_or((1.0, "seconds"));
    let placed = columns.iter().map(|((from, to), column)| ((from / unit_s, to / unit_s), column));
    let shaded = Mark::Cells(shaded(placed, (y.low, y.high)));
    let name = run_name(campaign, run);
    Some(Chart {
        title: format!("Lateness over the campaign: {name}"),
        titled: false,
        description: format!(
            "{name}: {}, a column each; the darker, the more releases were so late (log). Where \
             nothing is drawn, nothing was measured.",
            rows_words(columns.len(), is_merged)
        ),
        size: ALONE,
        x: Axis::even(
            &format!("{unit} from the beginning of the campaign"),
            from / unit_s,
            to / unit_s,
            8,
            |at| format!("{}", (at * 1e3).round() / 1e3),
        ),
        y,
        series: vec![ChartSeries { name, ink: 0, marks: vec![shaded] }],
        notes: Vec::new(),
    })
}

fn by_day(campaign: &Campaign, run: (usize, usize)) -> Option<Chart> {
    let rows = || campaign.stretches.iter().filter(|row| (row.setup, row.run) == run);
    let is_merged = rows().any(|row| row.batches > 1);
    let worst: Vec<(f64, f64)> =
        rows().filter_map(|row| Some((hour(row.from_unix_s, 0), positive(row.max_ns?)?))).collect();
    let typical: Vec<(f64, f64)> =
        rows().filter_map(|row| Some((hour(row.from_unix_s, 0), positive(row.p50_ns?)?))).collect();
    let late = campaign.outliers.iter().filter(|late| (late.setup, late.run) == run);
    let at = late.map(|late| &late.outlier).filter_map(|late| {
        let (s, ns) =
            (late.at_unix_ns.div_euclid(1_000_000_000), late.at_unix_ns.rem_euclid(1_000_000_000));
        Some((hour(s, ns), positive(late.lateness_ns)?))
    });
    let latest: Vec<(f64, f64)> = at.collect();
    let values = || worst.iter().chain(&typical).chain(&latest).map(|point| point.1);
    let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let name = run_name(campaign, run);
    let part = if is_merged { "stretch" } else { "batch" };
    let dots = |name: &str, ink, dots: &[(f64, f64)]| ChartSeries {
        name: name.to_owned(),
        ink,
        marks: vec![Mark::Dots(dots.to_vec())],
    };
    Some(Chart {
        title: format!("Lateness by time of day: {name}"),
        titled: false,
        description: format!(
            "{name}: {}, of each the worst and the median{} at the hour at which it began; latest \
             wakes at theirs: {}. Hours are UTC.",
            rows_words(worst.len(), is_merged),
            if is_merged { " (of several batches the largest)" } else { "" },
            format::count(latest.len() as u64)
        ),
        size: ALONE,
        x: Axis::even("time of day, UTC", 0.0, 24.0, 12, |hour| format!("{hour:02}:00")),
        y: Axis::log("lateness (log)", low * 0.8, high * 1.25, ns),
        series: vec![
            dots(&format!("median of a {part}"), 0, &typical),
            dots(&format!("worst of a {part}"), 1, &worst),
            dots("latest wakes", 2, &latest),
        ],
        notes: Vec::new(),
    })
}

/// So many rows in words; where the list was full, one stands for several batches.
fn rows_words(rows: usize, is_merged: bool) -> String {
    let plural = if rows == 1 { "" } else { "es" };
    let batches = if is_merged { " of one or more batches" } else { "" };
    let part = if is_merged { "stretch" } else { "batch" };
    format!("{} {part}{plural}{batches}", format::count(rows as u64))
}

/// The hour of the day, UTC.
fn hour(unix_s: i64, ns: i64) -> f64 {
    (unix_s.rem_euclid(DAY_S) as f64 + ns as f64 / 1e9) / 3_600.0
}

/// A log scale has no place for anything else.
fn positive(ns: i64) -> Option<f64> {
    (ns > 0).then_some(ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_batch_is_no_batches() {
        let words = [(1, false), (2, false), (1, true), (1_000, true)];
        assert_eq!(
            words.map(|(rows, is_merged)| rows_words(rows, is_merged)),
            [
                "1 batch",
                "2 batches",
                "1 stretch of one or more batches",
                "1\u{a0}000 stretches of one or more batches",
            ]
        );
    }

    #[test]
    fn hours_are_those_of_the_day_before_1970_too() {
        assert_eq!([0, 3_600, 90_000, -3_600].map(|s| hour(s, 0)), [0.0, 1.0, 1.0, 23.0]);
        assert_eq!((positive(0), positive(-5), positive(7)), (None, None, Some(7.0)));
    }
}
