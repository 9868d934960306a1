//! Compares two runs: significant differences, and the cycles needed to detect one.
//!
//! Ratios of exceedance rates at common thresholds (exact), differences of quantiles
//! ([`bootstrap`]), both adjusted for dependence and for how many tests there are. Maxima are never
//! compared: the largest of n depends more on n and on chance than on the machine. Pure; the series
//! come from samples or from a baseline, bounded in size ([`series`]).

mod blocks;
pub mod bootstrap;
mod dispersion;
pub mod distributions;
mod holm;
mod outcome;
pub mod power;
mod rates;
pub mod series;
mod turns;
mod words;

use crate::claim::bound::CONFIDENCE;
use crate::summary::SummaryStats;
use bootstrap::{Quantiles, quantiles};
pub use dispersion::Part;
use holm::{Tested, holm};
pub use outcome::{Family, QuantileDifference, RateRatio, RunComparison, Verdict};
use power::{detectable, releases_needed, would_have_detected};
use rates::{Counts, thresholds};
use series::LatenessSeries;
pub use turns::quantile;

/// A run on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its parts in A and in B.
    pub sides: [&'a [Part<'a>]; 2],
    /// Its quantiles in A and in B as results show them, where a side is one run: they are shown,
    /// instead of those of the parts, which stand within a bucket.
    pub shown: [Option<&'a SummaryStats>; 2],
    /// Thresholds to compare at, in addition to those at fixed ranks, ns.
    pub thresholds_ns: &'a [i64],
    /// Whether to test counts whose order is not known, as if cycles were independent.
    pub as_if_independent: bool,
}

/// What the tests of one run are made from.
struct Prepared<'a> {
    runs: Runs<'a>,
    ordered: bool,
    rates: Vec<Counts>,
    quantiles: Vec<Quantiles>,
}

impl<'a> Prepared<'a> {
    fn new(runs: &Runs<'a>) -> Self {
        let sides = runs.sides;
        let ordered = sides.iter().all(|side| side.iter().all(|part| part.series.ordered));
        let cells = thresholds(sides, runs.thresholds_ns);
        Self {
            runs: *runs,
            ordered,
            rates: cells.into_iter().map(|cell| Counts::of(sides, cell)).collect(),
            quantiles: quantiles(sides, runs.shown, ordered),
        }
    }

    /// Whether there is enough data for a verdict.
    fn is_testable(&self) -> bool {
        self.ordered || self.runs.as_if_independent
    }

    fn p_values(&self) -> Vec<f64> {
        if !self.is_testable() {
            return Vec::new();
        }
        let rates = self.rates.iter().map(Counts::p_value);
        let tested = self.quantiles.iter().filter(|quantile| quantile.is_tested());
        rates.chain(tested.map(Quantiles::p_value)).collect()
    }

    /// The comparison, with the levels of its tests in the order of [`Self::p_values`]. `least` is
    /// the level of a test that comes first in the family.
    fn finish(&self, tested: &[Tested], least: f64) -> RunComparison {
        let mut levels = tested.iter();
        let alpha = 1.0 - CONFIDENCE;
        let rate = |counts: &Counts| rate(counts, levels.next().copied(), alpha, least);
        let rates: Vec<RateRatio> = self.rates.iter().map(rate).collect();
        let quantile = |of: &Quantiles| {
            let test = if of.is_tested() { levels.next().copied() } else { None };
            quantile_difference(of, test, alpha)
        };
        let quantiles: Vec<QuantileDifference> = self.quantiles.iter().map(quantile).collect();
        let all = rates.iter().map(|rate| rate.verdict);
        let verdict = together(all.chain(quantiles.iter().map(|quantile| quantile.verdict)));
        let sum = |side: usize, what: fn(&Part<'_>) -> u64| {
            self.runs.sides[side].iter().map(what).fold(0, u64::saturating_add)
        };
        let max = |side: usize| {
            let parts = self.runs.sides[side].iter();
            parts.filter_map(|part| part.series.max_ns).max().map(|ns| ns as f64)
        };
        let is_open = |side: usize| self.runs.sides[side].iter().any(|part| part.series.is_open());
        let mut comparison = RunComparison {
            name: self.runs.name.to_owned(),
            verdict,
            statement: String::new(),
            n_a: sum(0, |part| part.series.releases()),
            n_b: sum(1, |part| part.series.releases()),
            missed_a: sum(0, |part| part.series.missed),
            missed_b: sum(1, |part| part.series.missed),
            max_a_ns: max(0),
            max_b_ns: max(1),
            max_a_open: is_open(0),
            max_b_open: is_open(1),
            rates,
            quantiles,
        };
        comparison.statement = words::statement(&comparison, self.is_testable());
        comparison
    }
}

/// Compares every run; all tests together are one family.
pub fn compare(runs: &[Runs<'_>]) -> (Vec<RunComparison>, Family) {
    let alpha = 1.0 - CONFIDENCE;
    let prepared: Vec<Prepared<'_>> = runs.iter().map(Prepared::new).collect();
    let p_values: Vec<Vec<f64>> = prepared.iter().map(Prepared::p_values).collect();
    let tested = holm(&p_values.concat(), alpha);
    let least = alpha / tested.len().max(1) as f64;
    let mut from = 0;
    let mut compared = Vec::new();
    for (run, p_values) in prepared.iter().zip(&p_values) {
        let to = from + p_values.len();
        compared.push(run.finish(&tested[from..to], least));
        from = to;
    }
    (compared, Family { tests: tested.len() as u64, confidence: CONFIDENCE })
}

/// How often B of each pair exceeds `threshold_ns`, compared with A, at the end of the bucket that
/// holds it: one test a pair, all of them one family (Holm). `None` for a pair of which a side has
/// nothing.
pub fn exceedances(pairs: &[[&LatenessSeries; 2]], threshold_ns: i64) -> Vec<Option<RateRatio>> {
    let alpha = 1.0 - CONFIDENCE;
    let cell = series::cell_of(threshold_ns);
    let counts = pairs.iter().map(|sides| {
        let [a, b] = sides.map(|series| [Part { result: 0, series }]);
        let full = sides.iter().all(|series| series.releases() > 0);
        full.then(|| Counts::of([&a, &b], cell))
    });
    let counts: Vec<Option<Counts>> = counts.collect();
    let p_values: Vec<f64> = counts.iter().flatten().map(Counts::p_value).collect();
    let mut tested = holm(&p_values, alpha).into_iter();
    let least = alpha / p_values.len().max(1) as f64;
    let mut of = |counts: &Counts| rate(counts, tested.next(), alpha, least);
    counts.iter().map(|counts| counts.as_ref().map(&mut of)).collect()
}

fn rate(counts: &Counts, test: Option<Tested>, alpha: f64, least: f64) -> RateRatio {
    let interval = counts.interval(test.map_or(alpha, |test| test.level));
    let significant = test.is_some_and(|test| test.adjusted <= alpha);
    let [n_a, n_b] = counts.releases;
    // Without a single exceedance on side A, any on side B point up.
    let is_more = counts.ratio().is_none_or(|ratio| ratio > 1.0);
    let needed = releases_needed(counts, least);
    let more = needed.map(|needed| needed.saturating_sub(n_a.min(n_b)));
    RateRatio {
        threshold_ns: counts.threshold_ns() as f64,
        exceedances_a: counts.exceedances[0],
        exceedances_b: counts.exceedances[1],
        n_a,
        n_b,
        ratio: counts.ratio(),
        lower: interval.lower,
        upper: interval.upper,
        dispersion: counts.dispersion.factor,
        p_value: counts.p_value(),
        p_adjusted: test.map(|test| test.adjusted),
        verdict: verdict(significant, is_more),
        clustered: !significant && counts.independent().p_value() <= least,
        detectable: detectable(counts, least),
        more_cycles: if would_have_detected(counts, least) { Some(0) } else { more },
    }
}

fn quantile_difference(of: &Quantiles, test: Option<Tested>, alpha: f64) -> QuantileDifference {
    let interval = test.and_then(|test| of.interval(test.level));
    let significant = test.is_some_and(|test| test.adjusted <= alpha);
    QuantileDifference {
        p: of.p.share(),
        a_ns: of.values_ns[0],
        b_ns: of.values_ns[1],
        difference_ns: of.difference_ns(),
        lower_ns: interval.map(|interval| interval.0),
        upper_ns: interval.map(|interval| interval.1),
        p_value: test.map(|_| of.p_value()),
        untested: of.untested.clone(),
        p_adjusted: test.map(|test| test.adjusted),
        verdict: verdict(significant, of.difference_ns() > 0.0),
    }
}

fn verdict(significant: bool, is_more: bool) -> Verdict {
    match (significant, is_more) {
        (false, _) => Verdict::Undecided,
        (true, true) => Verdict::Worse,
        (true, false) => Verdict::Better,
    }
}

/// The verdict of several together.
pub fn together(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    verdicts.fold(Verdict::Undecided, |all, one| match (all, one) {
        (all, Verdict::Undecided) => all,
        (Verdict::Undecided, one) => one,
        (all, one) if all == one => all,
        _ => Verdict::Mixed,
    })
}

#[cfg(test)]
mod tests;
