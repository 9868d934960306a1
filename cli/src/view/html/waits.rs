//! The ways to wait that were compared: their table, and the front as a picture.

use super::markup::{escape, still, table};
use super::section::{Section, Source};
use crate::format;
use crate::report::{Body, FrontComparison, StrategyRow};
use crate::view::plots;

/// The section; none where no result is of `measure wait`.
pub(super) fn section(source: &Source<'_>) -> Option<Section> {
    let results = source.page.results.iter().filter(|_| source.page.results.len() <= 2);
    let mut html = String::new();
    for (at, shown) in results.enumerate() {
        let Body::Wait(body) = &shown.report.body else { continue };
        html += &plots::front(&shown.report)
            .map_or_else(String::new, |chart| still(&chart, &format!("front-{}", at + 1)));
        html += &rows(&body.strategies);
        html += &held(&body.front);
    }
    (!html.is_empty()).then_some(Section { id: "waits", heading: "Ways to wait", body: html })
}

/// The learned wait against others; nothing where it was not compared.
fn held(front: &[FrontComparison]) -> String {
    let item = |of: &FrontComparison| format!("<li>{}</li>\n", escape(&of.sentence()));
    let items: String = front.iter().map(item).collect();
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
}

fn rows(rows: &[StrategyRow]) -> String {
    let heads = [
        "wait",
        ">cycles",
        ">median",
        ">p99",
        ">p99.9",
        ">worst",
        ">CPU",
        ">missed",
        ">spin beside, p99",
        "on the front",
    ];
    let row = |row: &StrategyRow| {
        let of = &row.lateness_ns;
        vec![
            row.label(),
            format::count(row.releases),
            format::ns(of.p50),
            format::ns(of.p99),
            format::ns(of.p99_9),
            format::largest(of.max, row.unknown),
            row.cpu_load.map_or_else(|| "-".to_owned(), format::share),
            format::count_or_dash(row.missed),
            format::ns(row.quiet_p99_ns),
            if row.on_front { "yes" } else { "" }.to_owned(),
        ]
    };
    let caption = "Ways to wait, in turns; beside each, what a pure spin next to its turns saw";
    table(caption, &heads, &rows.iter().map(row).collect::<Vec<_>>())
}
