//! The result of comparing one run, in a sentence.
//!
//! Picks the row that shows it best; computes nothing new.

use punctual_core::time::Span;

use super::outcome::{RateRatio, RunComparison, Verdict};
use crate::plain::grouped;

/// The sentence. A comparison that is not testable holds counts without their order.
pub(super) fn statement(run: &RunComparison, is_testable: bool) -> String {
    if !is_testable {
        return "undecided: the order of the cycles is not known, so one burst looks like many \
                single exceedances"
            .to_owned();
    }
    if run.rates.is_empty() {
        return format!(
            "undecided: {} and {} releases are too few",
            grouped(run.n_a),
            grouped(run.n_b)
        );
    }
    let rate_of = |verdict: Verdict| run.rates.iter().rev().find(|rate| rate.verdict == verdict);
    match run.verdict {
        Verdict::Undecided => undecided(run),
        Verdict::Better | Verdict::Worse => match rate_of(run.verdict) {
            Some(rate) => format!("{}: {}", word(run.verdict), of_rate(rate)),
            None => format!("{}: {}", word(run.verdict), of_quantile(run)),
        },
        Verdict::Mixed => {
            let part =
                |verdict| rate_of(verdict).map_or_else(|| "in quantiles".to_owned(), of_rate);
            format!(
                "better in one place and worse in another: worse, {}; better, {}",
                part(Verdict::Worse),
                part(Verdict::Better)
            )
        }
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Mixed => "mixed",
        Verdict::Undecided => "no significant difference",
    }
}

fn shown(ns: f64) -> Span {
    Span::from_ns(ns.round() as i64)
}

fn of_rate(rate: &RateRatio) -> String {
    let threshold = shown(rate.threshold_ns);
    let counts = format!(
        "{} of {} against {} of {}",
        grouped(rate.exceedances_b),
        grouped(rate.n_b),
        grouped(rate.exceedances_a),
        grouped(rate.n_a)
    );
    match (rate.ratio, rate.upper) {
        (Some(ratio), Some(upper)) => format!(
            "later than {threshold} {} times as often [{}, {}] ({counts})",
            figures(ratio),
            figures(rate.lower),
            figures(upper)
        ),
        _ => format!(
            "later than {threshold} at least {} times as often ({counts})",
            figures(rate.lower)
        ),
    }
}

fn figures(value: f64) -> String {
    match value {
        v if v >= 9_999.5 => format!("{v:.0e}"),
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn of_quantile(run: &RunComparison) -> String {
    let quantile = run.quantiles.iter().rev().find(|quantile| quantile.verdict == run.verdict);
    quantile.map_or_else(String::new, |quantile| {
        format!(
            "the {} % quantile {} instead of {}",
            quantile.p * 100.0,
            shown(quantile.b_ns),
            shown(quantile.a_ns)
        )
    })
}

fn undecided(run: &RunComparison) -> String {
    if let Some(rate) = run.rates.iter().rev().find(|rate| rate.clustered) {
        return format!("undecided: {}; {}", of_rate(rate), in_clusters(rate));
    }
    let enough = run.rates.iter().rev().find(|rate| rate.more_cycles == Some(0));
    let rarest = run.rates.iter().rev().find(|rate| rate.more_cycles.is_some_and(|n| n > 0));
    let mut text = match enough {
        Some(rate) => format!(
            "no significant difference; exceeding {} twice as often would have been detected with \
             a probability of 80 %",
            shown(rate.threshold_ns)
        ),
        None => "undecided".to_owned(),
    };
    if let Some((rate, more)) = rarest.and_then(|rate| Some((rate, rate.more_cycles?))) {
        text += &format!(
            "; about {} more cycles on each side would be needed to detect a ratio of 2 at {}",
            two_figures(more),
            shown(rate.threshold_ns)
        );
    }
    text
}

/// Why counts that differ so much are no evidence, and what would have been.
fn in_clusters(rate: &RateRatio) -> String {
    let late = rate.exceedances_a.saturating_add(rate.exceedances_b);
    let independent = (late as f64 / rate.dispersion).round() as u64;
    let detectable = match rate.detectable {
        Some(ratio) => format!("a ratio of {} or more would have been detected", figures(ratio)),
        None => "no ratio would have been detected".to_owned(),
    };
    format!(
        "they come in clusters, and all {} count as about {} independent ones: {detectable}",
        grouped(late),
        grouped(independent)
    )
}

/// A count rounded to two figures: it is an estimate.
fn two_figures(count: u64) -> String {
    let digits = count.checked_ilog10().unwrap_or(0);
    let place = 10u64.pow(digits.saturating_sub(1));
    grouped(count.div_ceil(place).saturating_mul(place))
}
