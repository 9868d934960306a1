//! The short page of `measure wait`: one table, what each way costs, and one recommendation.

use super::{claims, head, verdict};
use crate::format;
use crate::report::{Report, WaitBody};

/// The page.
pub(super) fn page(report: &Report, body: &WaitBody) -> String {
    let head = format!(
        "  {:10}{:>10}{:>11}{:>10}{:>7}{:>10}\n",
        "wait", "typical", "1 in 1000", "worst", "CPU", "missed"
    );
    let rows = body.strategies.iter().map(|row| {
        format!(
            "  {:10}{:>10}{:>11}{:>10}{:>7}{:>10}\n",
            format::plain(&row.name),
            format::ns(row.lateness_ns.p50),
            format::ns(row.lateness_ns.p99_9),
            format::ns(row.lateness_ns.max),
            row.cpu_load.map_or_else(|| "-".to_owned(), format::share),
            format::count_or_dash(row.missed),
        )
    });
    let rows: String = rows.collect();
    let advice = body.recommendation.as_ref();
    let advice = advice.map(|text| format::wrap(&format!("Use {text}."), 2) + "\n\n");
    [
        advice.unwrap_or_default(),
        head::refused_briefly(report),
        head,
        rows,
        verdict::warnings(report),
        verdict::limits(report),
        claims::judged(report),
    ]
    .concat()
}
