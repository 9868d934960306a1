//! A document as text for a terminal: what a person sees first.
//!
//! Eighty columns at most, no colour needed, and forty lines where tables can be shortened for it.
//! Knows no kind of result.

use punctual_report::Report;

use crate::format::{self, Styled};
use crate::view::document::{Block, Brief, Cells, Column, Frame, Item, Items, Table, Words};
use crate::view::kinds;

pub(crate) use crate::view::document::Detail;

/// Between two columns.
const GAP: usize = 2;

/// What a level is further to the right than the one above it, and the lines of one block after its
/// first.
const STEP: usize = 2;

/// Lines of a page that is read at once, and rows that a table keeps however long the rest is.
const LINES: usize = 40;
const ROWS_MIN: usize = 6;

/// The page of a report; `results` is the directory that it is written to.
pub(crate) fn page(report: &Report, results: Option<&str>, detail: Detail) -> Styled {
    if detail == Detail::Line
        && let Some(line) = kinds::line(report)
    {
        return line.into();
    }
    rendered(&kinds::document(report, results, detail))
}

/// Blocks as lines. Tables that are fitted have as many rows as the page has room for.
pub(crate) fn rendered(blocks: &[Block]) -> Styled {
    let fitted = |block: &Block| match block {
        Block::Table(table) => table.brief.iter().filter_map(order).map(<[usize]>::len).max(),
        _ => None,
    };
    let mut rows = blocks.iter().filter_map(fitted).max().unwrap_or(0);
    let mut page = all(blocks, rows);
    while rows > ROWS_MIN && page.lines() > LINES {
        rows -= 1;
        page = all(blocks, rows);
    }
    page
}

/// The order of the rows of a brief that may be shortened.
fn order(brief: &Brief) -> Option<&[usize]> {
    if let Frame::Fitted(order) = &brief.frame { Some(order) } else { None }
}

/// Blocks as lines, at most so many rows in a table that is fitted.
fn all(blocks: &[Block], rows: usize) -> Styled {
    let mut page = Styled::default();
    let mut after_table = false;
    for block in blocks {
        let is_table = matches!(block, Block::Table(table) if is_captioned(table));
        if after_table && !is_table && !matches!(block, Block::Break | Block::Heading(_)) {
            page.push("\n");
        }
        after_table = is_table;
        match block {
            Block::Heading(heading) => page.push(&format!("\n{}\n", format::wrap(heading, STEP))),
            Block::Words(words) => page.append(sentences(words)),
            Block::Items(items) => page.append(listed(items)),
            Block::Table(table) => page.push(&briefly(table, rows)),
            Block::Drawing(lines) => page.push(lines),
            Block::Break => page.push("\n"),
            Block::Figure(figure) => page.push(&line_of(1, &figure.chart.description)),
            Block::Row(_, groups) => {
                groups.iter().for_each(|group| page.append(all(group, rows)));
            }
            Block::Folded(summary, blocks) => {
                page.push(&format!("\n{}\n", format::wrap(summary, STEP)));
                page.append(all(blocks, rows));
            }
        }
    }
    page
}

/// Whether a table stands under its caption.
fn is_captioned(table: &Table) -> bool {
    table.brief.is_empty() || table.brief.iter().any(|brief| order(brief).is_some())
}

/// Text at a level, in lines.
fn line_of(level: usize, text: &str) -> String {
    format::wrap(&format!("{:1$}{text}", "", level * STEP), (level + 1) * STEP) + "\n"
}

fn sentences(words: &Words) -> Styled {
    Styled::painted(line_of(words.level, &words.text), words.paint.as_ref())
}

/// Items in lines, their sentences below each other.
fn listed(list: &Items) -> Styled {
    let label = |item: &Item| format::plain(&item.label);
    let widths = list.items.iter().map(|item| label(item).chars().count());
    let width = widths.max().unwrap_or(0).max(list.width);
    let mut page = Styled::default();
    for item in &list.items {
        let command = item.command.as_ref();
        let command = command.map(|command| format!(": {}", format::command(command)));
        let text = item.text.clone() + &command.unwrap_or_default();
        let (indent, gap) = (list.level * STEP, list.gap);
        let first = format!("{:indent$}{:width$}{:gap$}{text}", "", label(item), "");
        let line = format::wrap(&first, indent + width + gap) + "\n";
        page.append(Styled::painted(line, item.paint.as_ref()));
    }
    page
}

/// A table, or what a terminal shows of it: `most` rows where it is fitted.
fn briefly(table: &Table, most: usize) -> String {
    if table.brief.is_empty() {
        return captioned(&table.caption, &table.columns, &table.rows);
    }
    let brief = |brief: &Brief| match &brief.frame {
        Frame::Fitted(order) => fitted(table, brief, order, most),
        Frame::Bare => lines(&brief.columns, &brief.rows, true, STEP),
        Frame::Titled => "\n".to_owned() + &lines(&brief.columns, &brief.rows, true, STEP),
        Frame::Marked => lines(&brief.columns, &brief.rows, true, STEP - 1),
        Frame::Headless => lines(&brief.columns, &brief.rows, false, STEP),
    };
    table.brief.iter().map(brief).collect()
}

/// As much of a table as there is room for: the first rows of the order, and as many columns as
/// one line has.
fn fitted(table: &Table, brief: &Brief, order: &[usize], most: usize) -> String {
    let mut shown: Vec<usize> = order.iter().take(most).copied().collect();
    shown.sort_unstable();
    let rows: Vec<&[String]> = shown.iter().map(|&at| brief.rows[at].as_slice()).collect();
    let columns =
        pieces(&widths(&brief.columns, &rows, true)).first().map_or(1, |piece| 1 + piece.len());
    let rows: Vec<&[String]> = rows.iter().map(|row| &row[..columns.min(row.len())]).collect();
    let text = captioned(&table.caption, &brief.columns[..columns], &rows);
    let (more, narrowed) = (table.rows.len() - rows.len(), columns < table.columns.len());
    let rows = match more {
        0 => String::new(),
        1 => "1 more row".to_owned(),
        more => format!("{} more rows", format::count(more as u64)),
    };
    let left_out = match (more, narrowed) {
        (0, false) => return text,
        (0, true) => "the other columns are".to_owned(),
        (1, false) => format!("{rows} is"),
        (_, false) => format!("{rows} are"),
        (_, true) => format!("{rows}, and the other columns, are"),
    };
    text + &line_of(1, &format!("{left_out} in the JSON and its page"))
}

/// A table under its caption.
fn captioned<R: AsRef<[String]>>(caption: &str, columns: &[Column], rows: &[R]) -> String {
    format!("\n{}\n", format::wrap(caption, STEP)) + &lines(columns, rows, true, STEP)
}

/// The lines of a table; one that is too wide is cut between columns, and each piece has the first
/// one.
fn lines<R: AsRef<[String]>>(
    columns: &[Column],
    rows: &[R],
    has_heads: bool,
    indent: usize,
) -> String {
    let mut widths = widths(columns, rows, has_heads);
    if pieces(&widths).len() > 1 {
        // Wide columns are only for the eye.
        let narrow: Vec<Column> =
            columns.iter().cloned().map(|column| column.at_least(0)).collect();
        widths = self::widths(&narrow, rows, has_heads);
    }
    let line = |text: &dyn Fn(usize) -> String, piece: &[usize]| {
        let mut line = " ".repeat(indent);
        for &column in [0].iter().chain(piece) {
            let (text, width) = (text(column), widths[column]);
            line += &" ".repeat(if column == 0 { 0 } else { GAP });
            line += &match columns[column].cells {
                Cells::Numbers => format!("{text:>width$}"),
                Cells::Words => format!("{text:width$}"),
            };
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut page = String::new();
    for piece in &pieces(&widths) {
        if has_heads {
            page += &line(&|column| format::plain(&columns[column].head), piece);
        }
        for row in rows {
            page += &line(&|column| cell(row.as_ref(), column), piece);
        }
    }
    page
}

/// A cell as a terminal may show it.
fn cell(row: &[String], column: usize) -> String {
    row.get(column).map(|cell| format::plain(cell)).unwrap_or_default()
}

/// How wide each column is.
fn widths<R: AsRef<[String]>>(columns: &[Column], rows: &[R], has_heads: bool) -> Vec<usize> {
    let width = |(at, column): (usize, &Column)| {
        let cells = rows.iter().map(|row| cell(row.as_ref(), at).chars().count());
        let head = if has_heads { format::plain(&column.head).chars().count() } else { 0 };
        cells.chain([head, column.width]).max().unwrap_or(0)
    };
    columns.iter().enumerate().map(width).collect()
}

/// The columns, in pieces that fit beside the first one.
fn pieces(widths: &[usize]) -> Vec<Vec<usize>> {
    let first = widths.first().copied().unwrap_or(0) + GAP;
    let mut pieces: Vec<Vec<usize>> = Vec::new();
    let mut used = usize::MAX;
    for (column, width) in widths.iter().enumerate().skip(1) {
        used = used.saturating_add(width + GAP);
        match pieces.last_mut() {
            Some(piece) if used <= format::width() => piece.push(column),
            _ => {
                used = first + width + GAP;
                pieces.push(vec![column]);
            }
        }
    }
    if pieces.is_empty() { vec![Vec::new()] } else { pieces }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use punctual_analysis::summary::SummaryStats;
    use punctual_host::facts::MachineFacts;
    use punctual_host::root::Root;
    use punctual_lab::timer::{TimerOutcome, TimerRow};
    use punctual_report::measured::TimerBody;
    use punctual_report::{Body, Choice, Clock, Envelope, NOTE_GUEST, Session};

    use super::*;
    use crate::cli::PROGRAM;
    use crate::view::document::{numbers, words};

    /// A timer outcome of a processor with these kinds of work; SERIALIZE delays most.
    fn timers(backgrounds: &[&str], reserved: bool, periods: &[u64], unit_ns: f64) -> TimerOutcome {
        let row = |period_ns: u64, path: &str, background: &str| {
            let (name, store) = if path == "hot" { ("sleep", "hot") } else { (path, "array") };
            let ns = unit_ns * if background == "serialize" { 3.0 } else { 2.0 };
            let [min, p50, p99, max] = [0.1, 0.5, 1.0, 9.0].map(|times| Some(ns * times));
            TimerRow {
                path: name.to_owned(),
                period_ns,
                background: background.to_owned(),
                store: store.to_owned(),
                n: 1_234_567,
                missed: 12_345,
                lateness_ns: SummaryStats { min, p50, p99, max, ..SummaryStats::default() },
                cpu_share: Some(0.5),
            }
        };
        let mut rows = Vec::new();
        for &period_ns in periods {
            for path in ["sleep", "timerfd", "posix", "mdelay", "deadline", "hot"] {
                if reserved || path != "deadline" {
                    rows.extend(backgrounds.iter().map(|kind| row(period_ns, path, kind)));
                }
            }
        }
        TimerOutcome {
            cpu: 1,
            policy: "SCHED_FIFO".to_owned(),
            priority: Some(90),
            rows,
            deadline_refused: (!reserved).then_some(1),
        }
    }

    /// A result of it on a captured machine.
    fn report(machine: &Path, timer: TimerOutcome) -> Report {
        let root = Root::captured(machine).expect("a machine");
        let clock = Clock {
            source: "tsc".to_owned(),
            untrusted: None,
            rate_hz: None,
            rate_bound_ppb: None,
            slew_ppb: None,
            slew_bound_ppb: None,
            stamp_ns: 39.0,
            poll_ns: 20.0,
            wake_ns: 40.0,
            timed_pause: None,
            timed_pause_off: None,
            timed_pause_lead_ns: None,
        };
        let (cpus, why) = ("1".to_owned(), "last allowed, none isolated".to_owned());
        let envelope = Envelope {
            machine: Some(MachineFacts::collect(&root)),
            choice: Some(Choice { cpus, why }),
            clock: Some(clock),
            session: Some(Session {
                memory_locked: true,
                idle_states_held: true,
                refused: Vec::new(),
            }),
            warnings: vec![NOTE_GUEST.to_owned()],
            ..Envelope::of(PROGRAM, "measure timer")
        };
        Report { envelope, body: Body::Measured(TimerBody { timer }.into()) }
    }

    #[test]
    fn a_page_of_timers_fits_for_every_processor() {
        let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
        let machines = std::fs::read_dir(machines).expect("machines").flatten();
        let machines: Vec<_> =
            machines.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        // With SERIALIZE, and AArch64, which has its own of all kinds; without.
        let kinds: [&[&str]; 2] =
            [&["none", "nop", "serialize", "cpuid"], &["none", "nop", "cpuid"]];
        for (machine, kind) in machines.iter().flat_map(|machine| kinds.map(|kind| (machine, kind)))
        {
            for reserved in [true, false] {
                for (periods, unit_ns) in [(&[100_000][..], 100.0), (&[100_000], 12_345_678.0)] {
                    let timer = timers(kind, reserved, periods, unit_ns);
                    let page = page(&report(machine, timer), None, Detail::Short).to_string();
                    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
                    assert!(page.lines().count() <= 40, "{}: {page}", page.lines().count());
                    // Every path alone, and with what delays it most, is there.
                    let count = |path: &str, behind: &str| {
                        let begins = |line: &&str| {
                            line.trim_start().strip_prefix(path).is_some_and(|rest| {
                                rest.trim_start().starts_with(&format!("{behind} "))
                            })
                        };
                        page.lines().filter(begins).count()
                    };
                    let most = if kind.len() == 4 { "serialize" } else { "nop" };
                    for path in ["sleep", "timerfd", "posix", "mdelay", "sleep hot"] {
                        assert_eq!(
                            (count(path, "none"), count(path, most)),
                            (1, 1),
                            "{path}: {page}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/amd-smt-32cpu");
        let kinds = ["none", "nop", "serialize", "cpuid"];
        let timer = timers(&kinds, true, &[100_000, 200_000, 500_000], 100.0);
        let text = page(&report(Path::new(machine), timer.clone()), None, Detail::Short);
        let text = text.to_string();
        let rows = text.lines().filter(|line| line.contains(" 12\u{a0}345 ")).count();
        assert!((6..timer.rows.len()).contains(&rows), "{text}");
        let more = format!("{} more rows, and the other columns,", timer.rows.len() - rows);
        assert!(text.contains(&more), "{text}");
        assert!(text.lines().count() <= 40, "{text}");
    }

    #[test]
    fn a_wide_table_is_cut_between_columns_and_every_line_fits() {
        let mut columns = vec![words("what")];
        columns.extend((0..9).map(|n| numbers(&format!("CPU {n}"))));
        let row = |name: &str| {
            let cells = (0..9).map(|n| format!("{n} 000 000 000"));
            std::iter::once(name.to_owned()).chain(cells).collect()
        };
        let table = Table::new("Gaps", columns, vec![row("count"), row("b")]);
        let text = rendered(&[table.into()]).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= format::width()), "{text}");
        assert_eq!(text.matches("count").count(), 3, "{text}");
        let cells = text.matches("000 000 000").count();
        assert_eq!(cells, 18, "{text}");
    }
}
