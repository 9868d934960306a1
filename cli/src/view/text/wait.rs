//! The short page of `measure wait`: one table, what each way costs, and one recommendation.

use super::{claims, head, verdict};
use crate::format;
use crate::report::{Clock, FrontComparison, Report, StrategyRow, WaitBody};

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
const WORST: Column = ("worst", 10, |row| format::largest(row.lateness_ns.max, row.unknown));
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
        (true, true) if report.envelope.is_interrupted() => String::new(),
        (true, true) => TOO_SHORT.to_owned(),
        (true, false) => format!("\n{front}"),
    };
    let approaches = report.body.runs().iter().filter_map(|run| run.approach.as_ref());
    let shares: Vec<f64> = approaches.filter_map(|approach| approach.paused_share).collect();
    let advice = body.advice().map(|text| format::wrap(&text, 2) + "\n\n");
    [
        advice.unwrap_or_default(),
        head::refused_briefly(report),
        head::incomplete(report),
        head,
        rows,
        if swept { FRONT.to_owned() } else { String::new() },
        front,
        pauses(report.envelope.clock.as_ref(), &shares).unwrap_or_default(),
        verdict::warnings(report),
        verdict::limits(report),
        claims::judged(report),
    ]
    .concat()
}

/// Whether the processor paused in the spins, and what that saves.
fn pauses(clock: Option<&Clock>, shares: &[f64]) -> Option<String> {
    let mut words = clock?.pause_words()?;
    let least = shares.iter().copied().reduce(f64::min);
    if let Some((least, most)) = least.zip(shares.iter().copied().reduce(f64::max)) {
        let (least, most) = (format::share(least), format::share(most));
        words += &format!(
            ": {least} to {most} of each spin, meant to save power and to leave more of the core \
             to its other thread (not measured); the CPU time is the same"
        );
    }
    Some(format!("  {}\n", format::wrap(&words, 4).trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timed_pause_is_shown_with_what_it_saves_or_why_it_is_off() {
        let mut clock = Clock {
            source: "tsc".to_owned(),
            untrusted: None,
            rate_hz: None,
            rate_bound_ppb: None,
            slew_ppb: None,
            slew_bound_ppb: None,
            stamp_ns: 20.0,
            poll_ns: 10.0,
            wake_ns: 50.0,
            timed_pause: None,
            timed_pause_off: None,
            timed_pause_lead_ns: None,
        };
        assert_eq!(pauses(Some(&clock), &[]), None);
        clock.timed_pause = Some("TPAUSE C0.2".to_owned());
        let text = pauses(Some(&clock), &[0.9, 0.8]).expect("it has one");
        assert!(
            text.starts_with("  spins pause by TPAUSE C0.2 and poll at the end: 80 %"),
            "{text}"
        );
        clock.timed_pause_off = Some("it returns before its deadline".to_owned());
        let text = pauses(Some(&clock), &[]).expect("it has one");
        assert_eq!(text, "  spins poll, without TPAUSE C0.2: it returns before its deadline\n");
    }
}
