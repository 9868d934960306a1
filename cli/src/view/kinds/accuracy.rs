//! What `measure accuracy` gives: the errors of each exit in ticks and in ns, the loop's period.

use punctual_document::{Block, Section, Table, numbers, words};
use punctual_lab::accuracy::{AccuracyOutcome, AccuracyRow};
use punctual_report::measured::AccuracyBody;

use crate::format;

/// The errors of each exit, and how they were measured.
pub(super) fn shown(body: &AccuracyBody) -> Section {
    let outcome = &body.accuracy;
    let mut parts = vec![errors(outcome)];
    parts.extend(own_step(outcome).map(Block::words));
    parts.push(Block::words(about(outcome)));
    Section { id: "accuracy", heading: "How exactly a wait ends", blocks: parts }
}

fn errors(outcome: &AccuracyOutcome) -> Block {
    let heads = [
        words("exit"),
        numbers("best"),
        numbers("median"),
        numbers("95 %"),
        numbers("period"),
        numbers("poll"),
        numbers("ns"),
        numbers("5-95 %"),
        numbers("cut"),
    ];
    let tenths = |value: f64| format!("{value:.1}");
    let row = |row: &AccuracyRow| {
        let mut cells = vec![row.name()];
        cells.extend([row.min_ticks, row.p50_ticks, row.p95_ticks].map(format::whole));
        cells.push(row.period.map_or_else(|| "-".to_owned(), |period| tenths(period.ticks)));
        cells.push(row.poll_ticks.map_or_else(|| "-".to_owned(), tenths));
        cells.push(tenths(row.p50_ticks * outcome.tick_ns));
        cells.push(tenths((row.p95_ticks - row.p5_ticks) * outcome.tick_ns));
        cells.push(format::count(row.interrupted));
        cells
    };
    let caption = "Error of the exit (stamp after it minus target), in ticks: best, median, 95 %, \
                   its period over the offset; ticks per poll; in ns: median, 5 to 95 %";
    Table::new(caption, heads, outcome.rows.iter().map(row).collect()).folded().into()
}

/// Where errors repeat with one period though polls take longer, that is the counter's.
fn own_step(outcome: &AccuracyOutcome) -> Option<String> {
    outcome.counter_step().map(|ticks| {
        format!(
            "errors repeat every {ticks:.1} ticks whatever a poll takes: that is the step in \
             which this counter advances, and hides the loop's own period"
        )
    })
}

fn about(outcome: &AccuracyOutcome) -> String {
    let n: u64 = outcome.rows.iter().map(|row| row.n).sum();
    let worst = outcome.rows.iter().filter_map(|row| row.interrupted_worst_ns).fold(0.0, f64::max);
    // Those of results of before are not known.
    let sweeps = match outcome.rows.iter().map(|row| row.sweeps).max().unwrap_or(0) {
        0 => String::new(),
        sweeps => format!(" in up to {} sweeps each", format::count(sweeps)),
    };
    format!(
        "{} exits{sweeps}; a tick is {:.3} ns; {} offsets a tick apart; cut: exits that \
         were interrupted (later than {}), worst {}; \"at once\" and \
         cold: the first targets are due at the entry",
        format::count(n),
        outcome.tick_ns,
        outcome.rows.first().map_or(0, |row| row.offsets),
        format::period(outcome.interrupted_from_ns),
        format::ns(Some(worst)),
    )
}
