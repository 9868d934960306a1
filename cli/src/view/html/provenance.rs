//! Where numbers come from that this run did not measure at once: a campaign's boots and batches,
//! and what another program's data cannot tell.
//!
//! Words and tables from a report; nothing is computed.

use super::markup::{details, paragraph, still, table};
use super::section::{Section, Source};
use crate::format;
use crate::report::{Body, Campaign};
use crate::view::plots;

/// A campaign's boots and batches, with the time of day.
pub(super) fn campaign(source: &Source<'_>) -> Option<Section> {
    let results = source.page.results.iter().filter(|_| source.page.results.len() <= 2);
    let body: String = results
        .enumerate()
        .filter_map(|(at, shown)| match &shown.report.body {
            Body::Soak(soak) => Some(of_campaign(&soak.campaign, &format!("day-{}", at + 1))),
            _ => None,
        })
        .collect();
    (!body.is_empty()).then_some(Section { id: "campaign", heading: "Campaign", body })
}

fn of_campaign(campaign: &Campaign, id: &str) -> String {
    let boots: Vec<Vec<String>> = campaign
        .boots
        .iter()
        .map(|boot| {
            let (from, to) = (at(boot.from_unix_s), at(boot.to_unix_s));
            vec![boot.number.to_string(), from, to, boot.kernel.clone(), boot.setup.clone()]
        })
        .collect();
    let rows: Vec<Vec<String>> = campaign
        .stretches
        .iter()
        .map(|row| {
            vec![
                at(row.from_unix_s),
                at(row.to_unix_s),
                row.boot.to_string(),
                format::count(row.cycles),
                format::count(row.missed),
                format::ns(row.p50_ns.map(|ns| ns as f64)),
                format::ns(row.p99_ns.map(|ns| ns as f64)),
                format::ns(row.max_ns.map(|ns| ns as f64)),
            ]
        })
        .collect();
    let heads = ["boot", "from (UTC)", "to (UTC)", "Linux", "setup"];
    let mut html = table(&format!("Boots of campaign {}", campaign.name), &heads, &boots);
    for (number, chart) in plots::by_day(campaign).iter().enumerate() {
        html += &still(chart, &format!("{id}-{}", number + 1));
    }
    let heads =
        ["from (UTC)", "to (UTC)", ">boot", ">cycles", ">missed", ">median", ">p99", ">worst"];
    let batches = table("Batches of each run, oldest first", &heads, &rows);
    html += &details(&format!("Batches: {}", rows.len()), &batches);
    html
}

fn at(unix_s: i64) -> String {
    jiff::Timestamp::from_second(unix_s).map_or_else(|_| "-".to_owned(), |at| at.to_string())
}

/// What imported data cannot tell, and how many values lie beyond their histogram.
pub(super) fn imported(source: &Source<'_>) -> Option<Section> {
    let results = source.page.results.iter().filter(|_| source.page.results.len() <= 2);
    let mut lines: Vec<String> = Vec::new();
    for run in results.flat_map(|shown| shown.report.body.runs()) {
        let Some(imported) = &run.outcome.imported else { continue };
        let mut add = |line: String| {
            if !lines.contains(&line) {
                lines.push(line);
            }
        };
        imported.cannot_know.iter().for_each(|line| add(format!("not in these data: {line}")));
        if imported.overflow > 0 {
            let end = imported.limit_ns.map(|ns| format::ns(Some(ns as f64)));
            let end = end.map(|end| format!(", which ends at {end}")).unwrap_or_default();
            let (beyond, n) = (format::count(imported.overflow), format::count(run.outcome.cycles));
            add(format!("{}: {beyond} of {n} values are beyond the histogram{end}", run.name));
        }
    }
    let body: String = lines.iter().map(|line| paragraph("", line)).collect();
    (!body.is_empty()).then_some(Section { id: "imported", heading: "Imported data", body })
}
