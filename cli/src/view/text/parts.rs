//! Kinds of results without runs: their tables and sentences, in eighty columns.

use crate::format;
use crate::view::kinds::{Part, Shown, Table};

/// Between two columns.
const GAP: usize = 2;

/// Lines of a page that is read at once, and rows that a table keeps however long the rest is.
const LINES: usize = 40;
const ROWS_MIN: usize = 6;

/// The parts, in order; `others` lines of the page are not theirs. Tables with a brief have as many
/// rows as fit.
pub(super) fn of(shown: &Shown, others: usize) -> String {
    let briefs = shown.parts.iter().filter_map(|part| match part {
        Part::Table(table) => table.brief.as_ref().map(|brief| brief.rows.len()),
        Part::Words(_) => None,
    });
    let most = briefs.max().unwrap_or(0);
    let mut page = all(shown, most);
    let mut rows = most;
    while rows > ROWS_MIN && others + page.lines().count() > LINES {
        rows -= 1;
        page = all(shown, rows);
    }
    page
}

/// The parts, a brief of a table with at most so many rows.
fn all(shown: &Shown, rows: usize) -> String {
    let mut page = String::new();
    let mut after_table = true;
    for part in &shown.parts {
        match part {
            Part::Table(of) => page += &brief(of, rows),
            Part::Words(words) => {
                page += if after_table { "\n" } else { "" };
                page += &(format::wrap(&format!("  {words}"), 4) + "\n");
            }
        }
        after_table = matches!(part, Part::Table(_));
    }
    page
}

/// A table, or what of it fits a terminal: the first of its brief's rows, and as many columns as
/// one line has.
fn brief(of: &Table, most: usize) -> String {
    let Some(brief) = &of.brief else { return table(of) };
    let mut shown: Vec<usize> = brief.rows.iter().take(most).copied().collect();
    shown.sort_unstable();
    let rows: Vec<&[String]> = shown.iter().map(|&at| of.rows[at].as_slice()).collect();
    let widths = widths(&of.heads[..brief.columns], &rows);
    let columns = pieces(&widths).first().map_or(1, |piece| 1 + piece.len());
    let part = Table {
        caption: of.caption.clone(),
        heads: of.heads[..columns].to_vec(),
        rows: rows.iter().map(|row| row.iter().take(columns).cloned().collect()).collect(),
        brief: None,
    };
    let (more, narrowed) = (of.rows.len() - part.rows.len(), columns < of.heads.len());
    let rows = match more {
        0 => String::new(),
        1 => "1 more row".to_owned(),
        more => format!("{} more rows", format::count(more as u64)),
    };
    let left_out = match (more, narrowed) {
        (0, false) => return table(&part),
        (0, true) => "the other columns are".to_owned(),
        (1, false) => format!("{rows} is"),
        (_, false) => format!("{rows} are"),
        (_, true) => format!("{rows}, and the other columns, are"),
    };
    let text = format!("  {left_out} in the JSON and its page");
    table(&part) + &format::wrap(&text, 4) + "\n"
}

/// A cell as a terminal may show it.
fn cell(row: &[String], column: usize) -> String {
    row.get(column).map(|cell| format::plain(cell)).unwrap_or_default()
}

/// How wide each column is.
fn widths<R: AsRef<[String]>>(heads: &[String], rows: &[R]) -> Vec<usize> {
    let width = |(column, head): (usize, &String)| {
        let cells = rows.iter().map(|row| cell(row.as_ref(), column).chars().count());
        let head = head.trim_start_matches('>').chars().count();
        cells.chain([head]).max().unwrap_or(0)
    };
    heads.iter().enumerate().map(width).collect()
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
    pieces
}

/// A table; one that is too wide is cut between columns, and each piece has the first one.
fn table(of: &Table) -> String {
    let widths = widths(&of.heads, &of.rows);
    let line = |row: &dyn Fn(usize) -> String, columns: &[usize]| {
        let mut line = format!("  {:width$}", row(0), width = widths[0]);
        for &column in columns {
            let (text, width) = (row(column), widths[column]);
            let number = of.heads[column].starts_with('>');
            line += &" ".repeat(GAP);
            line += &if number { format!("{text:>width$}") } else { format!("{text:width$}") };
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut page = format!("\n{}\n", format::wrap(&of.caption, 2));
    for columns in &pieces(&widths) {
        page += &line(&|column| of.heads[column].trim_start_matches('>').to_owned(), columns);
        for row in &of.rows {
            page += &line(&|column| cell(row, column), columns);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_table_is_cut_between_columns_and_every_line_fits() {
        let heads: Vec<String> =
            std::iter::once("what".to_owned()).chain((0..9).map(|n| format!(">CPU {n}"))).collect();
        let row = |name: &str| {
            let cells = (0..9).map(|n| format!("{n} 000 000 000"));
            std::iter::once(name.to_owned()).chain(cells).collect()
        };
        let table = Table {
            caption: "Gaps".to_owned(),
            heads,
            rows: vec![row("count"), row("b")],
            brief: None,
        };
        let text = super::table(&table);
        assert!(text.lines().all(|line| line.chars().count() <= format::width()), "{text}");
        assert_eq!(text.matches("count").count(), 3, "{text}");
        let cells = text.matches("000 000 000").count();
        assert_eq!(cells, 18, "{text}");
    }
}
