//! What `reproduce` gives: each figure of a paper beside today's.

use punctual_analysis::plain::significant;
use punctual_document::{Block, Section, Table, numbers, words};
use punctual_report::reproduced::{ReproduceBody, ReproducedRow};

use crate::format;

/// Rows on a terminal, and columns: those without sentences.
const ROWS: usize = 26;
const COLUMNS: usize = 5;
/// Published words that are longer stand on the page alone.
const PUBLISHED: usize = 16;

/// Each figure of a paper beside that of today; a terminal has some rows of each paper.
pub(super) fn shown(body: &ReproduceBody) -> Section {
    let heads = [
        words("row"),
        numbers("published"),
        numbers("formula"),
        numbers("measured"),
        words("unit"),
        words("what"),
        words("note"),
    ];
    let caption = "Published, by the paper's own formula, and measured here";
    let table = Table::new(caption, heads, body.rows.iter().map(cells).collect())
        .fitted(COLUMNS, telling(body));
    Section {
        id: "reproduced",
        heading: "Papers reproduced",
        blocks: vec![table.into(), Block::words(counts(body))],
    }
}

fn cells(row: &ReproducedRow) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), significant);
    let published = if row.published.is_empty() { "-" } else { &row.published };
    vec![
        row.id.clone(),
        published.to_owned(),
        number(row.formula),
        number(row.measured),
        row.unit.clone(),
        row.what.clone(),
        row.note.clone(),
    ]
}

/// Places of rows to show first: as many of each paper, spread over those that are both published
/// and measured.
fn telling(body: &ReproduceBody) -> Vec<usize> {
    let each = ROWS / body.papers.len().max(1);
    let is_shown = |row: &ReproducedRow| {
        let published = row.published.chars().count();
        (1..=PUBLISHED).contains(&published) && row.measured.is_some()
    };
    let mut shown = Vec::new();
    for paper in &body.papers {
        let own = |row: &ReproducedRow| row.id.split('.').next() == Some(paper.as_str());
        let rows = body.rows.iter().enumerate().filter(|(_, row)| own(row) && is_shown(row));
        let rows: Vec<usize> = rows.map(|(at, _)| at).collect();
        let count = each.min(rows.len());
        shown.extend((0..count).map(|at| rows[at * rows.len() / count]));
    }
    shown
}

fn counts(body: &ReproduceBody) -> String {
    let count = |matches: &dyn Fn(&ReproducedRow) -> bool| {
        format::count(body.rows.iter().filter(|row| matches(row)).count() as u64)
    };
    format!(
        "{} rows: {} measured here, {} not, with the reason in the row's note{}",
        count(&|_| true),
        count(&|row| row.measured.is_some()),
        count(&|row| row.measured.is_none()),
        if body.quick { "; shortened by --quick" } else { "" },
    )
}
