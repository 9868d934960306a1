//! Kinds of results without runs: their tables and sentences.

use super::markup::{paragraph, still, table};
use super::section::{Section, Source};
use crate::report::Body;
use crate::report::measured::Measured;
use crate::view::kinds::{self as parts, Part, Shown};
use crate::view::plots;

/// The section; none where no result is of such a kind.
pub(super) fn section(source: &Source<'_>) -> Option<Section> {
    joined(source, parts::of)
}

/// What a page has behind the figures of runs.
pub(super) fn behind(source: &Source<'_>) -> Option<Section> {
    joined(source, parts::on_page_alone)
}

/// Figures of papers, and traces of answers, drawn from what was measured.
pub(super) fn drawn(source: &Source<'_>) -> Option<Section> {
    let results = source.page.results.iter().filter(|_| source.page.results.len() <= 2);
    let mut html = String::new();
    for (at, shown) in results.enumerate() {
        let traces;
        let figures = match &shown.report.body {
            Body::Reproduce(body) => &body.figures,
            Body::Measured(Measured::Response(body)) => {
                traces = parts::traces(body);
                &traces
            }
            _ => continue,
        };
        for figure in figures {
            let chart = plots::of_paper(figure);
            let id = format!("{}-{}", figure.id.replace('.', "-"), at + 1);
            html += &chart.map_or_else(String::new, |chart| still(&chart, &id));
        }
    }
    let section = Section { id: "figures-drawn", heading: "Drawn from the data", body: html };
    (!section.body.is_empty()).then_some(section)
}

/// One section of all results that have such parts.
fn joined(source: &Source<'_>, of: fn(&Body) -> Option<Shown>) -> Option<Section> {
    let results = &source.page.results;
    let mut section: Option<Section> = None;
    for shown in results.iter().filter(|_| results.len() <= 2) {
        let Some(of) = of(&shown.report.body) else { continue };
        let label = if results.len() > 1 { format!("{}: ", shown.label) } else { String::new() };
        let body: String = of.parts.iter().map(|part| html(part, &label)).collect();
        let section =
            section.get_or_insert(Section { id: of.id, heading: of.heading, body: String::new() });
        section.body += &body;
    }
    section
}

fn html(part: &Part, label: &str) -> String {
    match part {
        Part::Table(of) => {
            let heads: Vec<&str> = of.heads.iter().map(String::as_str).collect();
            table(&format!("{label}{}", of.caption), &heads, &of.rows)
        }
        Part::Words(words) => paragraph("", &format!("{label}{words}")),
    }
}
