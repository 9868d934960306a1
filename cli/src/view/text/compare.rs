//! The page of a comparison: what differs, a table a run, and what can be told of it.

use punctual_analysis::compare::{QuantileDifference, RateRatio, RunComparison, Verdict};

use crate::format;
use crate::report::{ComparedSide, Comparison, Pair, Report};

/// The page of `compare`.
pub(super) fn page(report: &Report, comparison: &Comparison) -> String {
    format!("punctual {} · compare\n", report.envelope.version) + &part(comparison)
}

/// The part of another page that holds a run against a baseline.
pub(super) fn against(report: &Report) -> String {
    report.body.compare().map_or_else(String::new, |comparison| format!("\n{}", part(comparison)))
}

fn part(comparison: &Comparison) -> String {
    let mut page: String = comparison.sides.iter().map(side).collect();
    for pair in &comparison.pairs {
        page += &of_pair(pair);
    }
    let family = &comparison.family;
    let text = format!(
        "{} tests: verdicts and intervals hold together with a confidence of {} (Holm). A missed \
         release counts with its full lateness.",
        format::count(family.tests),
        format::share(family.confidence)
    );
    page + "\n" + &format::wrap(&text, 0) + "\n"
}

fn side(side: &ComparedSide) -> String {
    let mut page = String::new();
    for result in &side.results {
        let kernel = result.kernel.as_ref().map(|kernel| format!(" · Linux {kernel}"));
        let started =
            result.started_at.as_ref().map(|at| format!(" · {}", at.get(..19).unwrap_or(at)));
        let from = if result.from == side.label { "" } else { &result.from };
        let text = format!(
            "  {}  {from}{}{}",
            side.label,
            started.unwrap_or_default(),
            kernel.unwrap_or_default()
        );
        page += &(format::wrap(&text, 5) + "\n");
    }
    page
}

fn of_pair(pair: &Pair) -> String {
    let mut page =
        format!("\n{} compared with {}\n", format::plain(&pair.b), format::plain(&pair.a));
    for difference in &pair.differences {
        let text = format!("  differs: {}: {} → {}", difference.what, difference.a, difference.b);
        page += &(format::wrap(&text, 4) + "\n");
    }
    for (only, side) in [(&pair.only_in_a, &pair.a), (&pair.only_in_b, &pair.b)] {
        if !only.is_empty() {
            let text = format!("  not compared, only in {side}: {}", only.join(", "));
            page += &(format::wrap(&text, 4) + "\n");
        }
    }
    for note in &pair.notes {
        page += &(format::wrap(&format!("  note: {note}"), 4) + "\n");
    }
    pair.runs.iter().for_each(|run| page += &of_run(run));
    page
}

fn of_run(run: &RunComparison) -> String {
    let text = format!("  {}: {}", run.name, run.statement);
    let mut page = format!("\n{}\n", format::wrap(&text, 4));
    if !run.rates.is_empty() {
        page += &format!(
            "  {:>9} {:>8} {:>8}  {:<22} {}\n",
            "later than", "A", "B", "B/A by rate", "verdict"
        );
    }
    run.rates.iter().for_each(|rate| page += &of_rate(rate));
    if !run.quantiles.is_empty() {
        page +=
            &format!("  {:>9} {:>8} {:>8}  {:<22} {}\n", "quantile", "A", "B", "B − A", "verdict");
    }
    run.quantiles.iter().for_each(|quantile| page += &of_quantile(quantile));
    for quantile in &run.quantiles {
        let why = quantile.untested.as_ref().map(|why| {
            format::wrap(&format!("    p{} not tested: {why}", quantile.p * 100.0), 6) + "\n"
        });
        page += &why.unwrap_or_default();
    }
    let text = format!(
        "    releases {} and {}, missed {} and {}; the largest, {} and {}, are not compared: \
         maxima depend on run length and chance",
        format::count(run.n_a),
        format::count(run.n_b),
        format::count(run.missed_a),
        format::count(run.missed_b),
        format::largest(run.max_a_ns, u64::from(run.max_a_open)),
        format::largest(run.max_b_ns, u64::from(run.max_b_open)),
    );
    page + &format::wrap(&text, 4) + "\n"
}

fn of_rate(rate: &RateRatio) -> String {
    let upper = rate.upper.map_or_else(|| "∞".to_owned(), figures);
    let interval = match rate.ratio {
        Some(ratio) => format!("{} [{}, {upper}]", figures(ratio), figures(rate.lower)),
        None => format!("- [{}, {upper}]", figures(rate.lower)),
    };
    format!(
        "  {:>10} {:>8} {:>8}  {interval:<22} {}\n",
        format::ns(Some(rate.threshold_ns)),
        format::count(rate.exceedances_a),
        format::count(rate.exceedances_b),
        verdict(rate.verdict, rate.p_adjusted.is_some(), rate.is_open())
    )
}

fn of_quantile(quantile: &QuantileDifference) -> String {
    let interval = match (quantile.lower_ns, quantile.upper_ns) {
        (Some(lower), Some(upper)) => {
            format!("[{}, {}]", format::ns(Some(lower)), format::ns(Some(upper)))
        }
        _ => "-".to_owned(),
    };
    format!(
        "  {:>10} {:>8} {:>8}  {interval:<22} {}\n",
        format!("p{}", quantile.p * 100.0),
        format::ns(Some(quantile.a_ns)),
        format::ns(Some(quantile.b_ns)),
        verdict(quantile.verdict, quantile.p_value.is_some(), false)
    )
}

fn verdict(verdict: Verdict, is_tested: bool, is_open: bool) -> &'static str {
    match verdict {
        _ if !is_tested => "not tested",
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Mixed => "mixed",
        Verdict::Undecided if is_open => "undecided",
        Verdict::Undecided => "no significant difference",
    }
}

fn figures(value: f64) -> String {
    match value {
        // Nobody plans with a ratio beyond these, and of the ends of an interval it is chance.
        v if v >= 9_999.5 => ">9999".to_owned(),
        v if v > 0.0 && v < 0.005 => "<0.01".to_owned(),
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_three_figures_however_large() {
        let shown = [0.7, 12.34, 580.4, 9_999.0, 3.6e75].map(figures);
        assert_eq!(shown, ["0.70", "12.3", "580", "9999", ">9999"]);
    }
}
