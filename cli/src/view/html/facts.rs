//! What is known of the machine, each thing with its origin.

use serde_json::Value;

use super::markup::{details, table};
use super::section::{Section, Source};
use crate::report::Report;

/// The section: a table a machine, closed.
pub(super) fn section(source: &Source<'_>) -> Option<Section> {
    let results = &source.page.results;
    if results.len() > 2 {
        return None;
    }
    let mut body = String::new();
    for shown in results {
        let Some(rows) = rows(&shown.report) else { continue };
        let label = if results.len() > 1 { format!(", {}", shown.label) } else { String::new() };
        let caption = format!("Facts of the machine{label}");
        let facts = table(&caption, &["fact", "value", "read from"], &rows);
        body += &details(&format!("{} facts{label}, each with its origin", rows.len()), &facts);
    }
    (!body.is_empty()).then_some(Section { id: "facts", heading: "Machine", body })
}

/// Every fact, as the result has it.
fn rows(report: &Report) -> Option<Vec<Vec<String>>> {
    let facts = serde_json::to_value(report.envelope.machine.as_ref()?).ok()?;
    let row = |(key, fact): (&String, &Value)| {
        let value = match (&fact["value"], fact["why"].as_str()) {
            (Value::Null, Some(why)) => format!("unreadable: {why}"),
            (Value::Null, None) => "not there".to_owned(),
            (Value::String(text), _) => text.clone(),
            (other, _) => other.to_string(),
        };
        let origin = fact["origin"].as_str().unwrap_or("-").to_owned();
        vec![key.replace('_', " "), value, origin]
    };
    Some(facts.as_object()?.iter().map(row).collect())
}
