//! The short page of `measure wait`: one table, what each way costs, and one recommendation.

use super::{claims, head, verdict};
use crate::format;
use crate::report::{Report, StrategyRow, WaitBody};

/// What the mark means.
const FRONT: &str = "  * on the front: no other way is cheaper and has a lower p99\n";

/// A way with its parameters.
fn shown(row: &StrategyRow) -> String {
    let ns = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), format::period);
    match row.name.as_str() {
        "fixed" => format!("fixed {}", ns(row.margin_ns)),
        "hop" => format!("hop {} {}", ns(row.hop_ns), ns(row.margin_ns)),
        other => format::plain(other),
    }
}

/// The page.
pub(super) fn page(report: &Report, body: &WaitBody) -> String {
    // A sweep has several rows of one name.
    let swept = body.strategies.iter().filter(|row| row.name == "fixed").count() > 1;
    let (width, hundredth) = if swept { (18, 10) } else { (10, 0) };
    let head = format!(
        "  {:width$}{:>10}{:>hundredth$}{:>11}{:>10}{:>7}{:>10}\n",
        "wait",
        "typical",
        if swept { "1 in 100" } else { "" },
        "1 in 1000",
        "worst",
        "CPU",
        "missed"
    );
    let rows = body.strategies.iter().map(|row| {
        let mark = if swept && row.on_front { "*" } else { " " };
        format!(
            " {mark}{:width$}{:>10}{:>hundredth$}{:>11}{:>10}{:>7}{:>10}\n",
            if swept { shown(row) } else { format::plain(&row.name) },
            format::ns(row.lateness_ns.p50),
            if swept { format::ns(row.lateness_ns.p99) } else { String::new() },
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
        if swept { FRONT.to_owned() } else { String::new() },
        verdict::warnings(report),
        verdict::limits(report),
        claims::judged(report),
    ]
    .concat()
}
