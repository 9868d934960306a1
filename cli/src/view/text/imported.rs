//! What another program's data hold and what they cannot tell: once for the runs that share it.
//!
//! For the page of `analyse`.

use punctual_analysis::imported::Imported;

use crate::format;
use crate::report::Report;

/// A paragraph for each kind of run.
pub(super) fn of(report: &Report) -> String {
    let mut page = String::new();
    let mut paragraphs: Vec<String> = Vec::new();
    for run in report.body.runs() {
        let Some(imported) = &run.outcome.imported else { continue };
        let text = paragraph(imported);
        if !paragraphs.contains(&text) {
            page += &text;
            paragraphs.push(text);
        }
        if imported.overflow > 0 {
            let where_ends = imported
                .limit_ns
                .map(|ns| format!(", which ends at {}", format::ns(Some(ns as f64))))
                .unwrap_or_default();
            let text = format!(
                "    {}: {} of {} values are beyond the histogram{where_ends}; drawn at their \
                 maximum",
                run.name,
                format::count(imported.overflow),
                format::count(run.outcome.cycles),
            );
            page += &(format::wrap(&text, 6) + "\n");
        }
    }
    page
}

fn paragraph(imported: &Imported) -> String {
    let version = imported.version.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
    let fine = match imported.resolution_ns {
        Some(ns) => format!("resolution {}", format::ns(Some(ns))),
        None => "in buckets that widen with the value".to_owned(),
    };
    let holds = format!(
        "  from {}{version} ({}): {}, {fine}",
        imported.program,
        imported.format,
        imported.holds.many()
    );
    let mut page = format!("\n{}\n  not in these data\n", format::wrap(&holds, 4));
    for line in &imported.cannot_know {
        page += &(format::wrap(&format!("    - {line}"), 6) + "\n");
    }
    page
}
