//! The histogram in a terminal: log scale both ways, so that the rare tail is seen next to the
//! body.

use punctual_analysis::histogram::clusters::Cluster;
use punctual_analysis::histogram::{Column, columns};
use punctual_document::Block;
use punctual_report::{Report, Run};

use crate::format;

/// Eighths of a cell.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The most columns to a decade in a line; fewer where many decades have to fit.
const TO_A_DECADE: usize = 7;

/// The least that the name before a line takes.
const NAME: usize = 10;

/// The columns of a decade's edge next to its bars, in characters: ` 100 µs `.
const EDGE: usize = 8;

/// One line a run: decades with their bars, then the peaks.
pub(super) fn lines(report: &Report) -> Vec<Block> {
    let mut blocks = Vec::new();
    for run in report.body.runs() {
        let Some(line) = line(run, &format::plain(&run.name)) else { continue };
        blocks.push(Block::Drawing(line));
        blocks.extend(clusters(run));
    }
    if !blocks.is_empty() {
        blocks.splice(0..0, [Block::Break, Block::words_at(1, "lateness (log)")]);
    }
    blocks
}

/// The decades of one run with their bars, behind its name; nothing where nothing is in it.
pub(super) fn line(run: &Run, name: &str) -> Option<String> {
    let decades = columns(&run.outcome.lateness, 1).first().map_or(1, decades_in);
    let name_width = name.chars().count().max(NAME);
    let room = format::width().saturating_sub(name_width + 3 + EDGE);
    let (named, to_a_decade) = layout(decades, room);
    let drawn = columns(&run.outcome.lateness, decades * to_a_decade);
    let most = drawn.iter().map(|column| column.count).max()?;
    let mut line = format!("  {name:name_width$} ");
    for (at, column) in drawn.iter().enumerate() {
        if at % to_a_decade == 0 {
            let is_named = (at / to_a_decade).is_multiple_of(named);
            line +=
                &if is_named { format!(" {} ", edge(column.lower_ns)) } else { "│".to_owned() };
        }
        line.push(bar(column.count, most));
    }
    let last = drawn.last().map(|last| format!(" {}", edge(last.upper_ns)));
    Some(line + &last.unwrap_or_default() + "\n")
}

/// Decades to each name, and columns to a decade, so that all fits the room.
fn layout(decades: usize, room: usize) -> (usize, usize) {
    let width = |named: usize| {
        let names = decades.div_ceil(named);
        names * EDGE + (decades - names)
    };
    let named = (1..decades).find(|&named| width(named) + decades <= room).unwrap_or(decades);
    let left = room.saturating_sub(width(named));
    (named, (left / decades).clamp(1, TO_A_DECADE))
}

/// Rows without a value that are drawn before the rest of a gap is left out.
const EMPTY_ROWS: u32 = 2;

/// A drawing for each run: a row for each fifth of a decade.
pub(super) fn drawn(report: &Report) -> Vec<Block> {
    let mut blocks = Vec::new();
    for run in report.body.runs() {
        let decades = columns(&run.outcome.lateness, 1).first().map_or(0, decades_in);
        let rows = columns(&run.outcome.lateness, decades * 5);
        let filled: Vec<bool> = rows.iter().map(|row| row.count > 0).collect();
        let Some(first) = filled.iter().position(|&full| full) else { continue };
        let last = filled.iter().rposition(|&full| full).unwrap_or(first);
        let most = rows.iter().map(|row| row.count).max().unwrap_or(0);
        let title = format!("lateness, {} (bars: log of the count)", run.name);
        blocks.extend([Block::Break, Block::words_at(1, title)]);
        let (mut lines, mut empty) = (String::new(), 0);
        for row in &rows[first..=last] {
            empty = if row.count == 0 { empty + 1 } else { 0 };
            if empty > EMPTY_ROWS {
                continue;
            }
            let length = (scale(row.count, most) * 40.0).ceil() as usize;
            lines += &format!(
                "  {:>9} … {:>9}  {:40} {:>11}\n",
                format::ns(Some(row.lower_ns)),
                format::ns(Some(row.upper_ns)),
                "█".repeat(length),
                format::count(row.count)
            );
        }
        blocks.push(Block::Drawing(lines));
        blocks.extend(clusters(run));
    }
    blocks
}

/// A peak counts as at the period within this share of it: a bucket of the histogram and more.
const AT_PERIOD: f64 = 0.02;

/// A peak of a run's histogram with its share, and how many releases were missed where it is at the
/// period: each counts as a period late at least, so that these lie there or beyond. How many of
/// the peak they are is not known.
pub(in crate::view) fn peak(run: &Run, cluster: &Cluster) -> String {
    let (peak, share) = (format::ns(Some(cluster.peak_ns)), format::share(cluster.share));
    let period_ns = run.setup.period_ns.map_or(f64::INFINITY, |ns| ns as f64);
    let is_at_period = (cluster.peak_ns - period_ns).abs() <= AT_PERIOD * period_ns;
    let missed = run.outcome.missed.filter(|&missed| missed > 0 && is_at_period);
    let missed = missed.map_or_else(String::new, |missed| {
        let of_all = format::share(missed as f64 / run.outcome.releases() as f64);
        format!("; one period: missed releases, {of_all} of all, lie from here on")
    });
    format!("{peak} ({share}{missed})")
}

/// The peaks of a run's histogram, in a sentence.
fn clusters(run: &Run) -> Option<Block> {
    let clusters = &run.outcome.histogram.clusters;
    if clusters.is_empty() {
        return None;
    }
    let named: Vec<String> = clusters.iter().map(|cluster| peak(run, cluster)).collect();
    let word = if clusters.len() == 1 { "peak" } else { "peaks" };
    Some(Block::words_at(2, format!("{} {word}: {}", clusters.len(), named.join(", "))))
}

/// The decades that the one column over everything spans, at least 1.
fn decades_in(whole: &Column) -> usize {
    (whole.upper_ns / whole.lower_ns).log10().round().max(1.0) as usize
}

fn edge(ns: f64) -> String {
    match ns.log10().round() as i64 {
        power @ 0..=2 => format!("{} ns", 10i64.pow(power as u32)),
        power @ 3..=5 => format!("{} µs", 10i64.pow(power as u32 - 3)),
        power @ 6..=8 => format!("{} ms", 10i64.pow(power as u32 - 6)),
        power => format!("{} s", 10f64.powi(power as i32 - 9)),
    }
}

/// A count against the largest, on a log scale, in [0, 1]; a single one is not nothing.
fn scale(count: u64, most: u64) -> f64 {
    if count == 0 { 0.0 } else { (count as f64 + 1.0).ln() / (most as f64 + 1.0).ln() }
}

fn bar(count: u64, most: u64) -> char {
    match (scale(count, most) * BARS.len() as f64).ceil() as usize {
        0 => ' ',
        level => BARS[level.min(BARS.len()) - 1],
    }
}

#[cfg(test)]
mod tests {
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_report::Setup;

    use super::*;

    #[test]
    fn a_peak_at_the_period_says_how_many_releases_were_missed() {
        let figures = Recording::new(RecordingConfig::default()).finish(0);
        let setup = Setup { period_ns: Some(1_000_000), ..Setup::default() };
        let mut run = Run::recorded("idle".to_owned(), setup, figures);
        let peak_at = |run: &Run, peak_ns: f64| {
            let cluster = Cluster { lower_ns: 0.0, upper_ns: 2e6, peak_ns, share: 0.97 };
            peak(run, &cluster).replace('\u{a0}', " ")
        };
        // Most of the peak are wakes that were late by just less.
        (run.outcome.histogram.overflow, run.outcome.missed) = (100, Some(19));
        let named = "1.00 ms (97 %; one period: missed releases, 19 % of all, lie from here on)";
        assert_eq!(peak_at(&run, 1_003_000.0), named);
        assert_eq!(peak_at(&run, 400_000.0), "400 µs (97 %)");
        run.outcome.missed = Some(0);
        assert_eq!(peak_at(&run, 1_003_000.0), "1.00 ms (97 %)");
    }

    #[test]
    fn decades_are_named_as_far_as_there_is_room() {
        assert_eq!(layout(2, 40), (1, 7));
        assert_eq!(layout(5, 43), (2, 3));
        for decades in 1..12 {
            for room in EDGE + 2 * decades..80 {
                let (named, columns) = layout(decades, room);
                let names = decades.div_ceil(named);
                let width = names * EDGE + (decades - names) + decades * columns;
                assert!(width <= room, "{decades} decades in {room}: {width}");
            }
        }
    }

    #[test]
    fn a_single_one_is_seen_and_nothing_is_not() {
        assert_eq!(bar(0, 1_000_000), ' ');
        assert_eq!(bar(1, 1_000_000), '▁');
        assert_eq!(bar(1_000_000, 1_000_000), '█');
        assert_eq!(
            [1.0, 1e3, 1e5, 1e6, 1e10].map(edge),
            ["1 ns", "1 µs", "100 µs", "1 ms", "10 s"]
        );
    }
}
