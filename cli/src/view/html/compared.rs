//! What a comparison says of two results, in its own sentences.
//!
//! Words only; the numbers behind them are those of `punctual compare`.

use super::markup::paragraph;
use super::section::{Section, Source};
use crate::format;
use crate::report::{Comparison, Pair};

/// The section; none where nothing was compared.
pub(super) fn section(source: &Source<'_>) -> Option<Section> {
    let page = source.page;
    let own = page.results.iter().filter_map(|shown| shown.report.body.compare());
    let own = own.filter(|_| page.results.len() <= 2);
    let body: String = page.compared.iter().chain(own).map(comparison).collect();
    (!body.is_empty()).then_some(Section { id: "compared", heading: "Comparison", body })
}

fn comparison(of: &Comparison) -> String {
    let pairs: String = of.pairs.iter().map(pair).collect();
    let words = format!(
        "{} tests: verdicts hold together with a confidence of {} (Holm). A missed release counts \
         with its full lateness. punctual compare gives the intervals.",
        format::count(of.family.tests),
        format::share(of.family.confidence)
    );
    pairs + &paragraph("muted", &words)
}

fn pair(of: &Pair) -> String {
    let mut html = paragraph("", &format!("{} compared with {}", of.b, of.a));
    for run in &of.runs {
        html += &paragraph("", &format!("{}: {}", run.name, run.statement));
    }
    for (only, side) in [(&of.only_in_a, &of.a), (&of.only_in_b, &of.b)] {
        if !only.is_empty() {
            let words = format!("not compared, only in {side}: {}", only.join(", "));
            html += &paragraph("muted", &words);
        }
    }
    for difference in &of.differences {
        let words = format!("differs: {}: {} → {}", difference.what, difference.a, difference.b);
        html += &paragraph("muted", &words);
    }
    of.notes.iter().fold(html, |html, note| html + &paragraph("muted", &format!("note: {note}")))
}
