//! Many results in one table: the first thing on a page of more than two.

use super::markup::{escape, table};
use super::section::{Section, Source};
use crate::format;
use crate::pages::Shown;
use crate::report::Run;

/// The section; none for one or two results.
pub(super) fn section(source: &Source<'_>) -> Option<Section> {
    let page = source.page;
    if page.results.len() <= 2 {
        return None;
    }
    let heads =
        ["result", "started", "run", ">n", ">median", ">1 in 1000", ">worst", ">missed", "limits"];
    let rows: Vec<Vec<String>> = page
        .results
        .iter()
        .flat_map(|shown| shown.report.body.runs().iter().map(|run| row(shown, run)))
        .collect();
    let mut body = table("Every run of every result", &heads, &rows);
    for words in &page.left_out {
        body += &format!("<p class=\"muted\">{}</p>", escape(words));
    }
    let links: String = page.results.iter().filter_map(link).collect();
    if !links.is_empty() {
        body += &format!("<p>Pages of their own:</p><ul class=\"links\">{links}</ul>");
    }
    Some(Section { id: "overview", heading: "Overview", body })
}

fn link(shown: &Shown) -> Option<String> {
    let link = escape(shown.link.as_ref()?);
    Some(format!("<li><a href=\"{link}\">{}</a></li>", escape(&shown.label)))
}

fn row(shown: &Shown, run: &Run) -> Vec<String> {
    let report = &shown.report;
    let lateness = &run.outcome.lateness_ns;
    let criteria = report.envelope.verdict.limits.len() + report.envelope.verdict.claims.len();
    let limits = match (report.envelope.incomplete, report.envelope.verdict.ok, criteria == 0) {
        (_, false, _) => "fail",
        (true, ..) => "incomplete",
        (false, true, true) => "none given",
        (false, true, false) => "hold",
    };
    vec![
        shown.label.clone(),
        report.envelope.started_at.clone().unwrap_or_else(|| "-".to_owned()),
        run.name.clone(),
        format::count(run.outcome.releases()),
        format::ns(lateness.p50),
        format::ns(lateness.p99_9),
        format::largest(lateness.max, run.outcome.unknown()),
        format::count_or_dash(run.outcome.missed),
        limits.to_owned(),
    ]
}
