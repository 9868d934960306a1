//! Documents of `measure wait`: one table, the cost of each way, and one recommendation.

use punctual_analysis::quantile::Probability;
use punctual_document::{Block, Column, Frame, Table, numbers, words};
use punctual_report::strategies::{FrontComparison, StrategyRow};
use punctual_report::{Clock, Report, WaitBody};

use super::{blame, head, judged};
use crate::format;

/// The key to the table: its mark, and its last column.
const FRONT: [&str; 2] = [
    "* on the front: no other way is cheaper and has a lower p99",
    "quiet: 1 in 100 of a pure spin next to its turns, how quiet the machine was",
];

/// Where a quantile is not known, though there are releases enough for it.
const LATEST_MISSED: &str =
    "missed: so many releases were missed that it is one of them, later than all that ran";

/// Where the learned wait could not be compared.
const TOO_SHORT: &str =
    "too few turns to compare adaptive with the others: use a longer --duration";

/// A column for a terminal: its head, its least width, what it shows.
type BriefColumn = (&'static str, usize, fn(&StrategyRow) -> String);

const TYPICAL: BriefColumn = ("typical", 8, |row| format::ns(row.lateness_ns.p50));
const HUNDREDTH: BriefColumn = ("1 in 100", 8, |row| one_in(row, Probability::P99));
const THOUSANDTH: BriefColumn = ("1 in 1000", 9, |row| one_in(row, Probability::P99_9));
const WITHIN: BriefColumn = ("95 % sure", 10, within);
const WORST: BriefColumn = ("worst", 8, worst);
const CPU: BriefColumn = ("CPU", 5, cpu);
const MISSED: BriefColumn = ("missed", 6, missed);
const CYCLES: BriefColumn = ("n", 6, |row| format::count(row.releases));
const HELD: BriefColumn = ("deadline", 9, held);
const QUIET: BriefColumn = ("quiet", 7, |row| format::ns(row.quiet_p99_ns));

/// The columns of the ways of `--wait`, and those of a sweep.
const PLAIN: [&BriefColumn; 6] = [&TYPICAL, &THOUSANDTH, &WITHIN, &WORST, &CPU, &MISSED];
const SWEPT: [&BriefColumn; 6] = [&HUNDREDTH, &THOUSANDTH, &WITHIN, &CPU, &CYCLES, &QUIET];

/// The short document of `measure wait`; the long one is that of all loops.
pub(super) fn document(report: &Report, body: &WaitBody) -> Vec<Block> {
    let swept = body.is_sweep();
    let mut blocks = Vec::new();
    if let Some(advice) = body.advice() {
        blocks.extend([Block::words(advice), Block::Break]);
    }
    blocks.extend(head::refused_briefly(report));
    blocks.extend(head::incomplete(report));
    blocks.push(briefly(&body.strategies, swept).into());
    if body.strategies.iter().any(|row| one_in(row, Probability::P99_9) == MISSED.0) {
        blocks.push(Block::words_at(1, LATEST_MISSED));
    }
    if swept {
        blocks.extend(FRONT.map(|text| Block::words_at(1, text)));
        let held = body.front.iter().map(FrontComparison::sentence);
        let held: Vec<Block> = held.map(|text| Block::words_at(1, text)).collect();
        match held.is_empty() {
            true if report.envelope.is_interrupted() => {}
            true => blocks.push(Block::words_at(1, TOO_SHORT)),
            false => blocks.extend(std::iter::once(Block::Break).chain(held)),
        }
    }
    let plans = report.body.runs().iter().filter_map(|run| run.approach.as_ref());
    let shares: Vec<f64> = plans.filter_map(|plan| plan.paused_share).collect();
    let pauses = pauses(report.envelope.clock.as_ref(), &shares);
    blocks.extend(pauses.map(|text| Block::words_at(1, text)));
    blocks.extend(blame::sentences(report).map(|text| Block::words_at(1, text)));
    blocks.extend(judged::warnings(report));
    blocks.extend(judged::limits(report));
    blocks.extend(judged::claims(report));
    blocks
}

/// The ends of what 1 in 1000 releases are later than; nothing in results of before.
fn within(row: &StrategyRow) -> String {
    let within = row.p99_9_within_ns;
    format::within(within.and_then(|within| within.low), within.and_then(|within| within.high))
}

/// The lateness that a release exceeds with one less this probability; `missed` where so many
/// releases were missed that it is the lateness of one of them, which is not known; `-` where there
/// are too few releases.
fn one_in(row: &StrategyRow, p: Probability) -> String {
    match row.lateness_ns.quantile(p) {
        None if row.unknown > 0 && p.is_supported(row.releases) => MISSED.0.to_owned(),
        quantile => format::ns(quantile),
    }
}

/// The releases missed, of all: `3/1 000`.
fn missed(row: &StrategyRow) -> String {
    format!("{}/{}", format::count_or_dash(row.missed), format::count(row.releases))
}

/// The answer to the deadline.
fn held(row: &StrategyRow) -> String {
    row.held.as_ref().map_or_else(String::new, |held| held.word().to_owned())
}

fn worst(row: &StrategyRow) -> String {
    format::largest(row.lateness_ns.max, row.unknown)
}

fn cpu(row: &StrategyRow) -> String {
    row.cpu_load.map_or_else(|| "-".to_owned(), format::share)
}

/// All ways with all their figures.
pub(crate) fn ways(rows: &[StrategyRow]) -> Table {
    let columns = [
        words("wait"),
        numbers("cycles"),
        numbers("median"),
        numbers("p99"),
        numbers("p99.9"),
        numbers("p99.9, 95 % sure"),
        numbers("worst"),
        numbers("CPU"),
        numbers("missed"),
        numbers("spin beside, p99"),
        words("on the front"),
    ];
    let row = |row: &StrategyRow| {
        let times = &row.lateness_ns;
        vec![
            row.label(),
            format::count(row.releases),
            format::ns(times.p50),
            one_in(row, Probability::P99),
            one_in(row, Probability::P99_9),
            within(row),
            worst(row),
            cpu(row),
            format::count_or_dash(row.missed),
            format::ns(row.quiet_p99_ns),
            if row.on_front { "yes" } else { "" }.to_owned(),
        ]
    };
    let caption = "Ways to wait, in turns; beside each, what a pure spin next to its turns saw";
    Table::new(caption, columns, rows.iter().map(row).collect())
}

/// All ways; a terminal has fewer columns, and a mark where a way of a sweep is on the front.
fn briefly(rows: &[StrategyRow], swept: bool) -> Table {
    let mut shown: Vec<&BriefColumn> = if swept { SWEPT.to_vec() } else { PLAIN.to_vec() };
    if rows.iter().any(|row| row.held.is_some()) {
        // In the place of the ends of a quantile: the deadline is the question.
        let at = shown.iter().position(|(head, ..)| *head == WITHIN.0).unwrap_or(0);
        shown[at] = &HELD;
    }
    let name = if swept { words(" wait").at_least(16) } else { words("wait").at_least(9) };
    let mut columns: Vec<Column> = vec![name];
    columns.extend(shown.iter().map(|(head, width, _)| numbers(head).at_least(*width)));
    let row = |row: &StrategyRow| {
        let mut cells = vec![match (swept, row.on_front) {
            (false, _) => row.name.clone(),
            (true, false) => format!(" {}", row.label()),
            (true, true) => format!("*{}", row.label()),
        }];
        cells.extend(shown.iter().map(|(.., value)| value(row)));
        cells
    };
    let frame = if swept { Frame::Marked } else { Frame::Bare };
    ways(rows).brief(frame, columns, rows.iter().map(row).collect())
}

/// The use of timed pauses in the spins, and the saving by them; `None` where the processor has
/// none.
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
    Some(words)
}

#[cfg(test)]
mod tests {
    use punctual_analysis::interval::Interval;
    use punctual_document::text;

    use super::*;

    #[test]
    fn one_in_a_thousand_stands_with_its_interval_and_its_n() {
        let text = include_str!("../../../tests/results/kinds/wait.json");
        let report = Report::parse(text).expect("a result");
        let mut rows = report.body.strategies().to_vec();
        let within = [
            Some(Interval::between(1.2e6, 2.06e6, 8.05e6)),
            Some(Interval { value: 2.06e6, low: Some(980e3), high: None }),
            None,
        ];
        for (row, within) in rows.iter_mut().zip(within) {
            (row.lateness_ns.p99_9, row.p99_9_within_ns) = (Some(2.06e6), within);
            (row.missed, row.releases) = (Some(38), 20_751);
        }
        for swept in [false, true] {
            let page = text::rendered(&[briefly(&rows, swept).into()]).to_string();
            let mut lines = page.lines();
            assert!(page.contains("1 in 1000") && page.contains("95 % sure"), "{page}");
            assert!(lines.all(|line| line.chars().count() <= 80), "{page}");
            for (at, shown) in ["1.20–8.05 ms", "≥ 980 µs", "-"].into_iter().enumerate() {
                let line = page.lines().find(|line| line.contains(&rows[at].name));
                let line = line.expect("its row");
                assert!(line.contains(shown) && line.contains("20\u{a0}751"), "{line}");
            }
        }
        let whole = text::rendered(&[ways(&rows).into()]).to_string();
        assert!(whole.contains("1.20–8.05 ms"), "{whole}");
    }

    #[test]
    fn a_quantile_among_the_missed_releases_is_named_and_too_few_releases_have_none() {
        let text = include_str!("../../../tests/results/kinds/wait.json");
        let report = Report::parse(text).expect("a result");
        let mut row = report.body.strategies()[0].clone();
        row.lateness_ns.p99_9 = None;
        let shown = |releases: u64, unknown: u64| {
            let row = StrategyRow { releases, unknown, ..row.clone() };
            one_in(&row, Probability::P99_9)
        };
        assert_eq!(
            [shown(2_000, 5), shown(2_000, 0), shown(999, 5)],
            ["missed", "-", "-"].map(str::to_owned)
        );
    }

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
        assert!(text.starts_with("spins pause by TPAUSE C0.2 and poll at the end: 80 %"), "{text}");
        clock.timed_pause_off = Some("it returns before its deadline".to_owned());
        let text = pauses(Some(&clock), &[]).expect("it has one");
        assert_eq!(text, "spins poll, without TPAUSE C0.2: it returns before its deadline");
    }
}
