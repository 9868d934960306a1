//! Tables of docs/ that are made from the tables of this crate: each must say what the code says.
//!
//! A table stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->`. With PUNCTUAL_BLESS=1 in
//! the environment it is written anew.

use std::fs;
use std::path::Path;

use punctual_analysis::impact::{MODELS, stepper};
use punctual_import::formats;

/// Holds the table NAME of a document against these rows, of which the first is the heading.
fn holds(document: &str, name: &str, rows: &[Vec<&str>]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(document);
    let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{document}: {why}"));
    let [begin, end] = ["begin", "end"].map(|mark| format!("<!-- {name}: {mark} -->\n"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (table, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
    let mut lines: Vec<String> =
        rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect();
    lines.insert(1, format!("|{}\n", "---|".repeat(rows[0].len())));
    let expected = lines.concat();
    if std::env::var_os("PUNCTUAL_BLESS").is_some() {
        fs::write(&path, [before, &begin, &expected, &end, after].concat()).expect("writable");
        return;
    }
    for (expected, line) in expected.lines().zip(table.lines().chain(std::iter::repeat(""))) {
        assert_eq!(line, expected, "docs/{document}: PUNCTUAL_BLESS=1 writes this table anew");
    }
    assert_eq!(table.lines().count(), lines.len(), "docs/{document}: rows that no code has");
}

#[test]
fn importing_lists_every_format() {
    let mut rows =
        vec![vec!["format", "made with", "holds", "resolution", "what it does not record"]];
    for writer in formats::ALL.iter().flat_map(|format| format.writers) {
        let columns = [writer.made_with, writer.holds, writer.resolution, writer.cannot_tell];
        rows.push(std::iter::once(writer.file).chain(columns).collect());
    }
    holds("importing.md", "formats", &rows);
}

#[test]
fn impact_lists_every_model() {
    let models = MODELS.iter().map(|model| (model.name, model.formulas));
    let mut rows: Vec<[String; 4]> = Vec::new();
    for (name, formulas) in [("stepper", stepper::FORMULAS)].into_iter().chain(models) {
        for formula in formulas {
            let subject = if formula.subject.is_empty() {
                String::new()
            } else {
                format!(", {}", formula.subject)
            };
            let columns = [formula.formula, formula.decides, formula.source].map(str::to_owned);
            let [formula, decides, source] = columns;
            rows.push([format!("`{name}`{subject}"), formula, decides, source]);
        }
    }
    let mut table = vec![vec!["model", "formula", "statistic that decides, and why", "source"]];
    table.extend(rows.iter().map(|row| row.iter().map(String::as_str).collect()));
    holds("impact.md", "models", &table);
}
