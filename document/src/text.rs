//! A document as text for a terminal: what a person sees first.
//!
//! Eighty columns at most, no colour needed, and forty lines where tables can be shortened for it.

use std::collections::BTreeSet;

use punctual_analysis::plain::{grouped, plain};

use crate::terminal::{self, Styled};
use crate::{Block, Brief, Cells, Column, Frame, Item, Items, Table, Words};

/// Between two columns.
const GAP: usize = 2;

/// The columns by which a level is further to the right than the one above it, and the lines of one
/// block after its first.
const STEP: usize = 2;

/// Fewer characters of words than this are no use.
const WORDS_MIN: usize = 20;

/// Lines of a page that is read at once.
const LINES: usize = 40;
/// The rows that a fitted table keeps however long the rest is. Where the page comes to fit by it,
/// one of fewer rows than twice as many keeps half of them, but two.
const ROWS_MIN: usize = 6;

/// Blocks as lines. Tables that are fitted have as many rows as the page has room for.
pub fn rendered(blocks: &[Block]) -> Styled {
    let fitted = |block: &Block| match block {
        Block::Table(table) => table.brief.iter().filter_map(order).map(<[usize]>::len).max(),
        _ => None,
    };
    let mut rows = blocks.iter().filter_map(fitted).max().unwrap_or(0);
    let (kept, least) = (ROWS_MIN.min(rows), ROWS_MIN.min(rows.div_ceil(2).max(2)));
    let mut page = sequence(blocks, rows);
    while rows > least && page.lines() > LINES {
        rows -= 1;
        page = sequence(blocks, rows);
    }
    match page.lines() > LINES && rows < kept {
        // It is too long whatever is left out.
        true => sequence(blocks, kept),
        false => page,
    }
}

/// The order of the rows of a brief that may be shortened.
fn order(brief: &Brief) -> Option<&[usize]> {
    if let Frame::Fitted(order) = &brief.frame { Some(order) } else { None }
}

/// Blocks as lines, at most so many rows in a table that is fitted.
fn sequence(blocks: &[Block], rows: usize) -> Styled {
    let mut page = Styled::default();
    let mut after_table = false;
    for block in blocks.iter().filter(|block| !block.is_picture_alone()) {
        let is_table = matches!(block, Block::Table(table) if is_captioned(table));
        if after_table && !is_table && !matches!(block, Block::Break | Block::Heading(_)) {
            page.push("\n");
        }
        after_table = is_table;
        match block {
            Block::Heading(heading) => page.push(&format!("\n{}\n", terminal::wrap(heading, STEP))),
            Block::Words(words) => page.append(sentences(words)),
            Block::Items(items) => page.append(listed(items)),
            Block::Table(table) => page.push(&briefly(table, rows)),
            Block::Drawing(lines) => page.push(lines),
            Block::Break => page.push("\n"),
            Block::Figure(figure) => page.push(&line_of(1, &figure.brief)),
            Block::Row(_, groups) => {
                groups.iter().for_each(|group| page.append(sequence(group, rows)));
            }
            Block::Folded(summary, blocks) => {
                page.push(&format!("\n{}\n", terminal::wrap(summary, STEP)));
                page.append(sequence(blocks, rows));
            }
        }
    }
    page
}

/// Returns true where a table stands under its caption.
fn is_captioned(table: &Table) -> bool {
    table.brief.is_empty() || table.brief.iter().any(|brief| order(brief).is_some())
}

/// Text at a level, in lines.
fn line_of(level: usize, text: &str) -> String {
    terminal::wrap(&format!("{:1$}{text}", "", level * STEP), (level + 1) * STEP) + "\n"
}

fn sentences(words: &Words) -> Styled {
    Styled::painted(line_of(words.level, &words.text), words.paint.as_ref())
}

/// Items in lines, their sentences below each other.
fn listed(list: &Items) -> Styled {
    let label = |item: &Item| plain(&item.label);
    let widths = list.items.iter().map(|item| label(item).chars().count());
    let width = widths.max().unwrap_or(0).max(list.width);
    let mut page = Styled::default();
    for item in &list.items {
        let command = item.command.as_ref();
        let command = command.map(|command| format!(": {}", terminal::command(command)));
        let text = item.text.clone() + &command.unwrap_or_default();
        let (indent, gap) = (list.level * STEP, list.gap);
        let first = format!("{:indent$}{:width$}{:gap$}{text}", "", label(item), "");
        let line = terminal::wrap(&first, indent + width + gap) + "\n";
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
        Frame::Lines { has_heads } => {
            lines_within(usize::MAX, &brief.columns, &brief.rows, *has_heads, 0)
        }
    };
    table.brief.iter().map(brief).collect()
}

/// As much of a table as there is room for: the first rows of the order, and as many columns as
/// one line has.
fn fitted(table: &Table, brief: &Brief, order: &[usize], most: usize) -> String {
    let mut shown: Vec<usize> = order.iter().take(most).copied().collect();
    shown.sort_unstable();
    let mut rows: Vec<Vec<String>> = shown.iter().map(|&at| brief.rows[at].clone()).collect();
    let mut widths = widths(&brief.columns, &rows, true);
    // Long names do not crowd out the numbers that they name, or all that is said of them.
    let is_number = |column: &Column| matches!(column.cells, Cells::Numbers);
    let last = brief.columns.iter().rposition(is_number).unwrap_or(0).max(1);
    let beside: usize = widths.iter().take(last + 1).skip(1).map(|width| width + GAP).sum();
    let room = terminal::width().saturating_sub(STEP + beside);
    let is_named = !brief.columns.first().is_some_and(is_number) && widths.len() > 1;
    if is_named && widths[0] > room && room >= NAMES_MIN {
        let short: Vec<String> = rows.iter().map(|row| cut(&row[0], room)).collect();
        let whole: Vec<&String> = rows.iter().map(|row| &row[0]).collect();
        if different(&short) == different(&whole) {
            rows.iter_mut().zip(short).for_each(|(row, cell)| row[0] = cell);
            widths[0] = room;
        }
    }
    let ends = widths.iter().scan(STEP, |end, width| {
        *end += width + GAP;
        Some(*end)
    });
    let mut columns = ends.clone().take_while(|end| end - GAP <= terminal::width()).count().max(1);
    // Words that have no room for all of them are cut rather than left out.
    let used = ends.clone().nth(columns - 1).unwrap_or(0);
    let room = terminal::width().saturating_sub(used);
    let next = brief.columns.get(columns);
    if room >= WORDS_MIN && next.is_some_and(|next| matches!(next.cells, Cells::Words)) {
        let whole: Vec<&String> = rows.iter().filter_map(|row| row.get(columns)).collect();
        let short: Vec<String> = whole.iter().map(|cell| cut(cell, room)).collect();
        // Two that look alike would be worse than none.
        if different(&short) == different(&whole) {
            for (row, cell) in rows.iter_mut().filter(|row| row.len() > columns).zip(short) {
                row[columns] = cell;
            }
            columns += 1;
        }
    }
    let rows: Vec<&[String]> = rows.iter().map(|row| &row[..columns.min(row.len())]).collect();
    let text = captioned(&table.caption, &brief.columns[..columns], &rows);
    let (more, narrowed) = (table.rows.len() - rows.len(), columns < table.columns.len());
    let rows = match more {
        0 => String::new(),
        1 => "1 more row".to_owned(),
        more => format!("{} more rows", grouped(more as u64)),
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

/// Names are not cut to fewer characters than these.
const NAMES_MIN: usize = 24;

/// A cell in so many characters, with an ellipsis in its middle where that is not all of it: names
/// that begin alike often end otherwise.
fn cut(cell: &str, room: usize) -> String {
    let count = cell.chars().count();
    if count <= room {
        return cell.to_owned();
    }
    let end = (room - 1) / 2;
    let begin = cell.chars().take(room - 1 - end);
    begin.chain(['…']).chain(cell.chars().skip(count - end)).collect()
}

/// The number of different ones among these.
fn different<T: Ord>(cells: &[T]) -> usize {
    cells.iter().collect::<BTreeSet<_>>().len()
}

/// A table under its caption.
fn captioned<R: AsRef<[String]>>(caption: &str, columns: &[Column], rows: &[R]) -> String {
    format!("\n{}\n", terminal::wrap(caption, STEP)) + &lines(columns, rows, true, STEP)
}

/// The lines of a table; one that is too wide is cut between columns, and each piece has the first
/// one.
fn lines<R: AsRef<[String]>>(
    columns: &[Column],
    rows: &[R],
    has_heads: bool,
    indent: usize,
) -> String {
    lines_within(terminal::width(), columns, rows, has_heads, indent)
}

/// As [`lines`], of a terminal of so many columns.
fn lines_within<R: AsRef<[String]>>(
    columns_of_terminal: usize,
    columns: &[Column],
    rows: &[R],
    has_heads: bool,
    indent: usize,
) -> String {
    let mut widths = widths(columns, rows, has_heads);
    if pieces(&widths, columns_of_terminal).len() > 1 {
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
    for piece in &pieces(&widths, columns_of_terminal) {
        if has_heads {
            page += &line(&|column| plain(&columns[column].head), piece);
        }
        for row in rows {
            page += &line(&|column| cell(row.as_ref(), column), piece);
        }
    }
    page
}

/// A cell as a terminal may show it.
fn cell(row: &[String], column: usize) -> String {
    row.get(column).map(|cell| plain(cell)).unwrap_or_default()
}

/// The width of each column, characters.
fn widths<R: AsRef<[String]>>(columns: &[Column], rows: &[R], has_heads: bool) -> Vec<usize> {
    let width = |(at, column): (usize, &Column)| {
        let cells = rows.iter().map(|row| cell(row.as_ref(), at).chars().count());
        let head = if has_heads { plain(&column.head).chars().count() } else { 0 };
        cells.chain([head, column.width]).max().unwrap_or(0)
    };
    columns.iter().enumerate().map(width).collect()
}

/// The columns, in pieces that fit beside the first one in so many columns of a terminal.
fn pieces(widths: &[usize], columns_of_terminal: usize) -> Vec<Vec<usize>> {
    let first = widths.first().copied().unwrap_or(0) + GAP;
    let mut pieces: Vec<Vec<usize>> = Vec::new();
    let mut used = usize::MAX;
    for (column, width) in widths.iter().enumerate().skip(1) {
        used = used.saturating_add(width + GAP);
        match pieces.last_mut() {
            Some(piece) if used <= columns_of_terminal => piece.push(column),
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
    use super::*;
    use crate::{numbers, words};
    use proptest::array::uniform6;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_never_touch_whatever_their_numbers_and_the_width(
            width in 45_usize..=200,
            counts in prop::collection::vec(uniform6(0_u64..1_000_000_000_000), 1..5),
            name in "[a-z]{1,20}(, [a-z0-9]{1,9}){0,3}",
        ) {
            let mut columns = vec![words("run")];
            columns.extend((0..6).map(|at| numbers(&format!("column {at}"))));
            let pair = |&count: &u64| format!("{}/{}", grouped(count), grouped(count));
            let rows: Vec<Vec<String>> = counts.iter().enumerate().map(|(at, counts)| {
                std::iter::once(format!("{name} {at}")).chain(counts.iter().map(pair)).collect()
            }).collect();
            let text = lines_within(width, &columns, &rows, true, STEP);
            for row in &rows {
                let begins = |line: &&str| line.trim_start().starts_with(row[0].as_str());
                let cells = text.lines().filter(begins).flat_map(|line| {
                    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).skip(1)
                });
                prop_assert_eq!(cells.collect::<Vec<_>>(), row[1..].iter().collect::<Vec<_>>());
            }
            let length = |cell: &String| cell.chars().count();
            let widest = rows.iter().flat_map(|row| row[1..].iter()).map(length).max();
            let room = width.max(STEP + length(&rows[0][0]) + GAP + widest.unwrap_or(0));
            prop_assert!(text.lines().all(|line| line.chars().count() <= room), "{}", text);
        }
    }

    #[test]
    fn what_looks_alike_when_cut_is_left_out() {
        let columns = [numbers("after"), words("what"), numbers("CPU")];
        let row = |name: &str| {
            vec![
                "23.3 µs".to_owned(),
                format!("{}{name}{}", "x".repeat(90), "y".repeat(90)),
                "1".to_owned(),
            ]
        };
        let table_of = |rows: Vec<Vec<String>>| {
            let table = Table::new("A wake", columns.clone(), rows.clone());
            let table = table.brief(Frame::Fitted(vec![0, 1]), columns.clone(), rows);
            rendered(&[table.into()]).to_string()
        };
        let alike = table_of(vec![row("one"), row("two")]);
        assert!(!alike.contains("xxx") && alike.contains("the other columns are"), "{alike}");
        let same = table_of(vec![row("one"), row("one")]);
        assert!(same.contains("xxx…yyy"), "{same}");
        assert_eq!(cut("CPU 1, 25 µs, under load", 15), "CPU 1, …er load");
    }

    #[test]
    fn long_names_do_not_crowd_out_what_is_said_of_them() {
        let columns = [words("what"), numbers("published"), numbers("measured")];
        let row = |number: u32| {
            let name = format!("figure {number}: {}, loading {number}", "late ".repeat(14));
            vec![name, "ten microseconds".to_owned(), "8.26".to_owned()]
        };
        let table = Table::new("Reproduced", columns, vec![row(1), row(2)]).folded();
        let text = rendered(&[table.into()]).to_string();
        assert!(text.contains("measured") && text.contains("8.26"), "{text}");
        assert!(text.contains("figure 1: ") && text.contains("loading 2 "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= terminal::width()), "{text}");
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
        assert!(text.lines().all(|line| line.chars().count() <= terminal::width()), "{text}");
        assert_eq!(text.matches("count").count(), 3, "{text}");
        let cells = text.matches("000 000 000").count();
        assert_eq!(cells, 18, "{text}");
    }

    #[test]
    fn lines_for_programs_begin_at_the_margin_and_are_never_cut() {
        let row = |name: &str, why: &str| vec![name.to_owned(), String::new(), why.to_owned()];
        let rows = vec![row("/proc/a", &"long ".repeat(30)), row("b", "short")];
        let table = Table::new("What", ["place", "empty", "why"].map(words), rows);
        let page = rendered(&[table.clone().joined().into()]).to_string();
        assert_eq!(page, format!("/proc/a: {}\nb: short\n", "long ".repeat(30).trim_end()));
        let page = rendered(&[table.lined().into()]).to_string();
        assert!(page.starts_with("place    empty  why\n/proc/a         long long"), "{page}");
        assert_eq!(page.lines().count(), 3, "{page}");
    }

    #[test]
    fn a_table_of_few_rows_is_shortened_too_where_the_rest_is_long() {
        let rows = || (0..9).map(|n| vec![format!("row {n}")]).collect();
        let shown = |lines_beside: usize| {
            let last = Table::new("Trials", [words("trial")], rows()).fitted(1, vec![5, 6, 7, 8]);
            let rest = Block::Drawing("beside it\n".repeat(lines_beside));
            let page = rendered(&[rest, last.into()]).to_string();
            (page.matches("row ").count(), page.lines().count(), page)
        };
        // An empty line, a caption, heads, four rows, and what is left out.
        assert_eq!((shown(32).0, shown(32).1), (4, 40));
        let (rows, lines, page) = shown(34);
        assert_eq!((rows, lines), (2, 40), "{page}");
        assert!(page.contains("row 5\n  row 6\n  7 more rows are"), "{page}");
        assert_eq!(shown(35).0, 4, "where the page is too long all the same, all of them stay");
    }

    #[test]
    fn long_words_are_cut_rather_than_left_out() {
        let columns = [numbers("after"), words("what"), numbers("CPU")];
        let row = |name: String| vec!["23.3 µs".to_owned(), name, "1".to_owned()];
        let rows = vec![row("short".to_owned()), row("long ".repeat(30))];
        let order = vec![0, 1];
        let table = Table::new("A wake", columns.clone(), rows.clone());
        let table = table.brief(Frame::Fitted(order), columns, rows);
        let text = rendered(&[table.into()]).to_string();
        assert!(text.contains("short\n") && text.contains("…"), "{text}");
        assert!(text.contains("the other columns are"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= terminal::width()), "{text}");
    }
}
