//! The short page of `measure wait`: one table, what each way costs, and one recommendation.

use super::{claims, head, verdict};
use crate::format;
use crate::report::{FrontComparison, Report, StrategyRow, WaitBody};

/// What the mark means, and the last column.
const FRONT: &str = "  * on the front: no other way is cheaper and has a lower p99\n  quiet: 1 in \
                     100 of a pure spin next to its turns, how quiet the machine was\n";

/// Where the learned wait could not be compared.
const TOO_SHORT: &str =
    "  too few turns to compare adaptive with the others: use a longer --duration\n";

/// A column: its head, its width, what it shows.
type Column = (&'static str, usize, fn(&StrategyRow) -> String);

const TYPICAL: Column = ("typical", 10, |row| format::ns(row.lateness_ns.p50));
const HUNDREDTH: Column = ("1 in 100", 10, |row| format::ns(row.lateness_ns.p99));
const THOUSANDTH: Column = ("1 in 1000", 11, |row| format::ns(row.lateness_ns.p99_9));
const WORST: Column = ("worst", 10, |row| format::ns(row.lateness_ns.max));
const CPU: Column = ("CPU", 7, |row| row.cpu_load.map_or_else(|| "-".to_owned(), format::share));
const MISSED: Column = ("missed", 8, |row| format::count_or_dash(row.missed));
const CYCLES: Column = ("n", 8, |row| format::count(row.releases));
const QUIET: Column = ("quiet", 9, |row| format::ns(row.quiet_p99_ns));

/// The columns of the ways of `--wait`, and those of a sweep.
const PLAIN: [&Column; 6] = [&TYPICAL, &THOUSANDTH, &WORST, &CPU, &MISSED, &CYCLES];
const SWEPT: [&Column; 6] = [&TYPICAL, &HUNDREDTH, &THOUSANDTH, &CPU, &CYCLES, &QUIET];

/// The page.
pub(super) fn page(report: &Report, body: &WaitBody) -> String {
    // A sweep has several rows of one name.
    let swept = body.strategies.iter().filter(|row| row.name == "fixed").count() > 1;
    let shown_columns: &[&Column] = if swept { &SWEPT } else { &PLAIN };
    let width = if swept { 17 } else { 9 };
    let mut head = format!("  {:width$}", "wait");
    shown_columns.iter().for_each(|(name, room, _)| head += &format!("{name:>room$}"));
    head.push('\n');
    let rows = body.strategies.iter().map(|row| {
        let mark = if swept && row.on_front { "*" } else { " " };
        let name = if swept { format::plain(&row.label()) } else { format::plain(&row.name) };
        let cells = shown_columns.iter().map(|(_, room, of)| format!("{:>room$}", of(row)));
        format!(" {mark}{name:width$}{}\n", cells.collect::<String>())
    });
    let rows: String = rows.collect();
    let held = |of: &FrontComparison| format!("  {}\n", format::wrap(&of.sentence(), 4));
    let front: String = body.front.iter().map(held).collect();
    let front = match (swept, front.is_empty()) {
        (false, _) => String::new(),
        (true, true) => TOO_SHORT.to_owned(),
        (true, false) => format!("\n{front}"),
    };
    let advice = body.recommendation.as_ref();
    let advice = advice.map(|text| format::wrap(&format!("Use {text}."), 2) + "\n\n");
    [
        advice.unwrap_or_default(),
        head::refused_briefly(report),
        head,
        rows,
        if swept { FRONT.to_owned() } else { String::new() },
        front,
        verdict::warnings(report),
        verdict::limits(report),
        claims::judged(report),
    ]
    .concat()
}
