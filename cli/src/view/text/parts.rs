//! Kinds of results without runs: their tables and sentences, in eighty columns.

use crate::format;
use crate::view::parts::{Part, Shown, Table};

/// Between two columns.
const GAP: usize = 2;

/// The parts, in order.
pub(super) fn of(shown: &Shown) -> String {
    let mut page = String::new();
    let mut after_table = true;
    for part in &shown.parts {
        match part {
            Part::Table(of) => page += &brief(of),
            Part::Words(words) => {
                page += if after_table { "\n" } else { "" };
                page += &(format::wrap(&format!("  {words}"), 4) + "\n");
            }
        }
        after_table = matches!(part, Part::Table(_));
    }
    page
}

/// A table, or what of it fits a terminal.
fn brief(of: &Table) -> String {
    let Some(brief) = &of.brief else { return table(of) };
    let row = |&at: &usize| of.rows.get(at).map(|row| row.iter().take(brief.columns).cloned());
    let part = Table {
        caption: of.caption.clone(),
        heads: of.heads.iter().take(brief.columns).cloned().collect(),
        rows: brief.rows.iter().filter_map(row).map(Iterator::collect).collect(),
        brief: None,
    };
    let more = of.rows.len() - part.rows.len();
    let mut page = table(&part);
    if more > 0 || brief.columns < of.heads.len() {
        let rows = match more {
            0 => "the other columns".to_owned(),
            1 => "1 more row, and the other columns,".to_owned(),
            more => format!("{} more rows, and the other columns,", format::count(more as u64)),
        };
        let text = format!("  {rows} are in the JSON and its page");
        page += &(format::wrap(&text, 4) + "\n");
    }
    page
}

/// A table; one that is too wide is cut between columns, and each piece has the first one.
fn table(of: &Table) -> String {
    let cell = |row: &[String], column: usize| {
        row.get(column).map(|cell| format::plain(cell)).unwrap_or_default()
    };
    let width = |column: usize| {
        let cells = of.rows.iter().map(|row| cell(row, column).chars().count());
        let head = of.heads[column].trim_start_matches('>').chars().count();
        cells.chain([head]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..of.heads.len()).map(width).collect();
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
    for columns in &pieces {
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
