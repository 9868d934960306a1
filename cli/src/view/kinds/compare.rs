//! Documents of a comparison: the differences, a table a run, and how sure they are.

use punctual_analysis::compare::{
    QuantileDifference, RateRatio, RunComparison, Verdict, ratio_figures,
};
use punctual_document::{Block, Column, Item, Items, ItemsKind, Table, numbers, words};
use punctual_report::{ComparedSide, Comparison, Pair, Report};

use super::grid;
use crate::format;

/// The document of `compare`: its sides, then each pair with a table a run.
pub(super) fn document(report: &Report, comparison: &Comparison) -> Vec<Block> {
    let mut blocks = vec![Block::words(format!("punctual {} · compare", report.envelope.version))];
    blocks.extend(compared(comparison));
    blocks
}

/// The comparison of a run with a baseline, or of a machine with another, in the document of the
/// run.
pub(super) fn against(report: &Report) -> Vec<Block> {
    let Some(comparison) = report.body.compare() else { return Vec::new() };
    let mut blocks = vec![Block::Break];
    blocks.extend(compared(comparison));
    blocks
}

/// The same in a few lines: the answer, and the sentence of each run. Tables and notes are in the
/// long document and on the page.
pub(super) fn against_briefly(report: &Report) -> Vec<Block> {
    let Some(comparison) = report.body.compare() else { return Vec::new() };
    if comparison.grid.is_some() {
        return against(report);
    }
    let mut blocks = Vec::new();
    for pair in &comparison.pairs {
        let heading = format!("{} compared with {}: {}", pair.b, pair.a, answer(pair));
        blocks.push(Block::Heading(heading));
        let sentences = pair.runs.iter().map(|run| format!("{}: {}", run.name, run.statement));
        blocks.extend(sentences.map(|text| Block::words_at(1, text)));
        blocks.extend(not_idle(pair).into_iter().map(|text| Block::words_at(1, text)));
        let differing = differing(comparison, pair);
        blocks.extend(differing.map(|text| Block::words_at(1, text)));
    }
    blocks
}

/// A line for each difference between the sides of a pair.
fn differing<'a>(comparison: &'a Comparison, pair: &'a Pair) -> impl Iterator<Item = String> + 'a {
    pair.differences.iter().map(|difference| {
        let (name, a, b) = (&difference.what, &difference.a, &difference.b);
        let note = if comparison.changed.contains(name) { THE_CHANGE } else { "" };
        format!("differs: {name}: {a} → {b}{note}")
    })
}

/// The note beside a difference that `--changed` names.
const THE_CHANGE: &str = " (the change that is compared)";

/// What else ran on CPUs of a side, each once.
pub(in crate::view) fn not_idle(pair: &Pair) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let seen = pair.runs.iter().filter_map(|run| run.disturbance.as_ref());
    let sides = seen.flat_map(|seen| {
        let note = if seen.is_the_change { THE_CHANGE } else { "" };
        [(&pair.a, &seen.a, note), (&pair.b, &seen.b, note)]
    });
    for (label, used, note) in sides {
        let Some(used) = used else { continue };
        let line = format!("not idle: {label}: {used}{note}");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The outcome of a comparison, in a word or two: its verdict, and whether that is open. Figure by
/// figure all is open that no interval shows.
fn answer(pair: &Pair) -> &'static str {
    match pair.verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Mixed => "mixed, worse in part",
        Verdict::Undecided if pair.runs.is_empty() => "undecided",
        Verdict::Undecided if pair.runs.iter().any(RunComparison::is_open) => "undecided",
        Verdict::Undecided => "not worse",
    }
}

/// The outcome for each side after the first, in a sentence: for whoever sees nothing else.
pub(super) fn held(comparison: &Comparison) -> Vec<String> {
    let pairs = comparison.pairs.iter();
    pairs.map(|pair| format!("{} compared with {}: {}", pair.b, pair.a, answer(pair))).collect()
}

/// A comparison in one line for each side after the first, which names the result.
pub(super) fn lines(comparison: &Comparison) -> String {
    let others = comparison.sides.iter().skip(1);
    let line = |(answer, side): (String, &ComparedSide)| {
        let from: Vec<&str> = side.results.iter().map(|result| &result.from[..]).collect();
        format::plain(&format!("{answer} ({})", from.join(", "))) + "\n"
    };
    held(comparison).into_iter().zip(others).map(line).collect()
}

fn compared(comparison: &Comparison) -> Vec<Block> {
    let sides = comparison.sides.iter().flat_map(results).collect();
    let sides = Items::new(ItemsKind::Notes, sides).spaced(1, 2);
    let mut blocks = vec![sides.into()];
    comparison.pairs.iter().for_each(|pair| blocks.extend(of_pair(comparison, pair)));
    if let Some(grid) = &comparison.grid {
        blocks.extend(grid::blocks(comparison, grid));
        return blocks;
    }
    blocks.extend([Block::Break, Block::words(how_sure(comparison))]);
    blocks
}

/// The confidence of the tests, which are one family, and that of intervals without a test.
pub(in crate::view) fn how_sure(comparison: &Comparison) -> String {
    let (tests, confidence) =
        (comparison.family.tests, format::share(comparison.family.confidence));
    let mut runs = comparison.pairs.iter().flat_map(|pair| &pair.runs);
    let is_alone = runs.any(|run| run.rates.iter().any(|rate| rate.p_adjusted.is_none()));
    let sure = match (tests, is_alone) {
        (0, _) => format!(
            "Nothing was tested: each interval holds alone, at {confidence}, and for independent \
             cycles."
        ),
        (_, false) => format!(
            "{} tests: verdicts and intervals hold together with a confidence of {confidence} \
             (Holm).",
            format::count(tests)
        ),
        (_, true) => format!(
            "{} tests: their verdicts and intervals hold together with a confidence of \
             {confidence} (Holm), an interval that was not tested alone.",
            format::count(tests)
        ),
    };
    format!("{sure} A missed release counts with its full lateness.")
}

/// The results of a side.
fn results(side: &ComparedSide) -> Vec<Item> {
    let item = |result: &punctual_report::ComparedResult| {
        let kernel = result.kernel.as_ref().map(|kernel| format!(" · Linux {kernel}"));
        let started =
            result.started_at.as_ref().map(|at| format!(" · {}", at.get(..19).unwrap_or(at)));
        let from = if result.from == side.label { "" } else { &result.from };
        let more = [started, kernel].into_iter().flatten().collect::<String>();
        Item::new(&side.label, format!("{from}{more}"))
    };
    side.results.iter().map(item).collect()
}

fn of_pair(comparison: &Comparison, pair: &Pair) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(format!("{} compared with {}", pair.b, pair.a))];
    let mut add = |text: String| blocks.push(Block::words_at(1, text));
    differing(comparison, pair).for_each(&mut add);
    for (only, side) in [(&pair.only_in_a, &pair.a), (&pair.only_in_b, &pair.b)] {
        if !only.is_empty() {
            add(format!("not compared, only in {side}: {}", only.join(", ")));
        }
    }
    not_idle(pair).into_iter().for_each(&mut add);
    pair.notes.iter().for_each(|note| add(format!("note: {note}")));
    pair.runs.iter().for_each(|run| blocks.extend(of_run(run, pair)));
    blocks
}

/// The columns of what one run of a pair is compared by; `by` is between the names of its sides in
/// the words of their relation.
fn columns(pair: &Pair, first: &str, by: [&str; 2]) -> [Column; 5] {
    // Labels that are words, such as that of a baseline, leave no room for both of them once more.
    let is_short = pair.a.chars().count().max(pair.b.chars().count()) <= 2;
    let [a, b] = if is_short { [&pair.a[..], &pair.b[..]] } else { ["first", "second"] };
    let relation = format!("{b}{}{a}{}", by[0], by[1]);
    [
        numbers(first).at_least(10),
        numbers(&pair.a).at_least(7),
        numbers(&pair.b).at_least(7),
        words(&relation).at_least(21),
        words("verdict"),
    ]
}

fn of_run(run: &RunComparison, pair: &Pair) -> Vec<Block> {
    let mut blocks =
        vec![Block::Break, Block::words_at(1, format!("{}: {}", run.name, run.statement))];
    if !run.rates.is_empty() {
        let rows = run.rates.iter().map(|rate| of_rate(rate, run)).collect();
        let columns = columns(pair, "later than", ["/", " by rate"]);
        blocks.push(Table::new("", columns, rows).bare().into());
    }
    if !run.quantiles.is_empty() {
        let rows = run.quantiles.iter().map(|quantile| of_quantile(quantile, run)).collect();
        let columns = columns(pair, "quantile", [" − ", ""]);
        blocks.push(Table::new("", columns, rows).bare().into());
    }
    for quantile in &run.quantiles {
        let untested = quantile.untested.as_ref().map(|why| format!("not tested: {why}"));
        let open = || quantile.open_words().map(|why| format!("undecided: {why}"));
        let words = untested.or_else(open);
        let words = words.map(|words| format!("p{} {words}", quantile.p * 100.0));
        blocks.extend(words.map(|text| Block::words_at(2, text)));
    }
    let text = format!(
        "releases {} and {}, missed {} and {}; the largest, {} and {}, are not compared: \
         maxima depend on run length and chance",
        format::count(run.n_a),
        format::count(run.n_b),
        missed(run.missed_a),
        missed(run.missed_b),
        format::largest(run.max_a_ns, u64::from(run.max_a_open)),
        format::largest(run.max_b_ns, u64::from(run.max_b_open)),
    );
    blocks.push(Block::words_at(2, text));
    blocks
}

/// Missed releases, where they are recorded.
fn missed(releases: Option<u64>) -> String {
    releases.map_or_else(|| "unknown".to_owned(), format::count)
}

fn of_rate(rate: &RateRatio, run: &RunComparison) -> Vec<String> {
    let upper = rate.upper.map_or_else(|| "∞".to_owned(), ratio_figures);
    let interval = match rate.ratio {
        Some(ratio) => format!("{} [{}, {upper}]", ratio_figures(ratio), ratio_figures(rate.lower)),
        None => format!("- [{}, {upper}]", ratio_figures(rate.lower)),
    };
    // Counted at most: a histogram's bucket holds the threshold.
    let unsure = match rate.unsure {
        0 => String::new(),
        unsure => format!(", {} of them unsure", format::count(unsure)),
    };
    vec![
        format::ns(Some(rate.threshold_ns)),
        format::count(rate.exceedances_a),
        format::count(rate.exceedances_b),
        interval,
        verdict(rate.by_test(), run, rate.p_adjusted.is_some(), rate.is_open()).to_owned()
            + &unsure,
    ]
}

fn of_quantile(quantile: &QuantileDifference, run: &RunComparison) -> Vec<String> {
    let interval = match (quantile.lower_ns, quantile.upper_ns) {
        (Some(lower), Some(upper)) => {
            format!("[{}, {}]", format::ns(Some(lower)), format::ns(Some(upper)))
        }
        _ => "-".to_owned(),
    };
    vec![
        format!("p{}", quantile.p * 100.0),
        format::ns(Some(quantile.a_ns)),
        format::ns(Some(quantile.b_ns)),
        interval,
        verdict(quantile.by_test(), run, quantile.p_value.is_some(), quantile.is_open()).to_owned(),
    ]
}

/// The verdict of one test of a run, as its sentence has it: what others on the CPU may account for
/// is undecided there too.
fn verdict(test: Verdict, run: &RunComparison, is_tested: bool, is_open: bool) -> &'static str {
    let weighed = run.disturbance.as_ref().map_or(test, |seen| seen.weigh(test));
    match weighed {
        _ if !is_tested => "not tested",
        Verdict::Undecided if weighed != test => "undecided",
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Mixed => "mixed",
        Verdict::Undecided if is_open => "undecided",
        Verdict::Undecided => "no significant difference",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_interval_without_a_test_is_of_no_family() {
        let compared = |tests: u64, p_adjusted: &[Option<f64>]| {
            let rate = |p_adjusted: &Option<f64>| {
                json!({
                    "threshold_ns": 1e5, "exceedances_a": 1, "exceedances_b": 9, "n_a": 90,
                    "n_b": 90, "ratio": 9.0, "lower": 5.0, "upper": 12.0, "dispersion": 1.0,
                    "p_value": 0.001, "p_adjusted": p_adjusted, "verdict": "undecided",
                    "more_cycles": 0
                })
            };
            let run = json!({
                "name": "idle", "verdict": "undecided", "statement": "", "n_a": 90, "n_b": 90,
                "missed_a": 0, "missed_b": 0, "max_a_ns": null, "max_b_ns": null,
                "rates": p_adjusted.iter().map(rate).collect::<Vec<_>>(), "quantiles": []
            });
            let pair = json!({
                "a": "A", "b": "B", "verdict": "undecided", "differences": [], "notes": [],
                "only_in_a": [], "only_in_b": [], "runs": [run]
            });
            let family = json!({ "tests": tests, "confidence": 0.95 });
            let comparison = json!({ "family": family, "sides": [], "pairs": [pair] });
            how_sure(&serde_json::from_value(comparison).expect("a comparison"))
        };
        let alone = compared(0, &[None]);
        assert!(alone.starts_with("Nothing was tested: each interval holds alone"), "{alone}");
        let together = compared(2, &[Some(0.1), Some(0.2)]);
        assert!(together.contains("intervals hold together") && !together.contains("alone"));
        let some = compared(1, &[Some(0.1), None]);
        assert!(some.contains("(Holm), an interval that was not tested alone."), "{some}");
    }

    #[test]
    fn the_table_names_the_sides_of_its_pair() {
        let heads = |a: &str, b: &str| {
            let pair = json!({
                "a": a, "b": b, "verdict": "undecided", "differences": [], "notes": [],
                "only_in_a": [], "only_in_b": [], "runs": []
            });
            let pair: Pair = serde_json::from_value(pair).expect("a pair");
            columns(&pair, "quantile", [" − ", ""]).map(|column| column.head)[1..4].join("|")
        };
        assert_eq!(heads("A", "C"), "A|C|C − A");
        assert_eq!(heads("baseline b", "this run"), "baseline b|this run|second − first");
    }

    #[test]
    fn the_table_has_the_word_of_the_sentence() {
        let rate = |verdict: &str, clustered: bool| {
            json!({
                "threshold_ns": 1e5, "exceedances_a": 100, "exceedances_b": 900, "n_a": 90_000,
                "n_b": 90_000, "ratio": 9.0, "lower": 5.0, "upper": 12.0, "dispersion": 1.0,
                "p_value": 0.001, "p_adjusted": 0.01, "verdict": verdict, "more_cycles": 0,
                "clustered": clustered
            })
        };
        let compared = |verdict: &str, clustered: bool, more: Option<&str>| {
            let run = json!({
                "name": "idle", "verdict": "undecided", "statement": "", "n_a": 90_000,
                "n_b": 90_000, "missed_a": 0, "missed_b": 0, "max_a_ns": null, "max_b_ns": null,
                "rates": [rate(verdict, clustered)], "quantiles": [],
                "disturbance": { "a": null, "b": "rustc", "more": more }
            });
            serde_json::from_value::<RunComparison>(run).expect("a comparison")
        };
        let words = |verdict: &str, clustered: bool, more: Option<&str>| {
            let run = compared(verdict, clustered, more);
            of_rate(&run.rates[0], &run).pop().expect("a verdict")
        };
        // Others had more of the CPU of B: what speaks against it may be theirs.
        assert_eq!(words("worse", false, Some("b")), "undecided");
        assert_eq!(words("better", false, Some("b")), "better");
        assert_eq!(words("worse", false, None), "worse");
        let run = compared("undecided", false, Some("b"));
        let rate = RateRatio { withheld: Some(Verdict::Worse), ..run.rates[0].clone() };
        assert_eq!(of_rate(&rate, &run).pop().as_deref(), Some("undecided"));
        let run = compared("worse", false, None);
        let rate = RateRatio { unsure: 40, ..run.rates[0].clone() };
        assert_eq!(of_rate(&rate, &run).pop().as_deref(), Some("worse, 40 of them unsure"));
        // Clusters alone keep it from being a difference.
        assert_eq!(words("undecided", true, None), "undecided");
        assert_eq!(words("undecided", false, None), "no significant difference");
        // A quantile that may be ten times as large is undecided, with what it takes.
        let quantile = |upper_ns: f64| {
            let quantile = json!({
                "p": 0.99, "a_ns": 4e4, "b_ns": 4e4, "difference_ns": 0.0, "lower_ns": -upper_ns,
                "upper_ns": upper_ns, "p_value": 0.9, "p_adjusted": 1.0, "verdict": "undecided"
            });
            let quantiles = vec![serde_json::from_value(quantile).expect("a quantile")];
            let run = RunComparison { quantiles, ..run.clone() };
            let word = of_quantile(&run.quantiles[0], &run).pop().expect("a verdict");
            let pair = json!({
                "a": "A", "b": "B", "verdict": "undecided", "differences": [], "notes": [],
                "only_in_a": [], "only_in_b": [], "runs": []
            });
            let pair: Pair = serde_json::from_value(pair).expect("a pair");
            (word, format!("{:?}", of_run(&run, &pair)))
        };
        let (word, page) = quantile(4e5);
        assert!(word == "undecided" && page.contains("p99 undecided: they may differ"), "{page}");
        let (word, page) = quantile(1e3);
        assert!(word == "no significant difference" && !page.contains("p99 und"), "{page}");
    }
}
