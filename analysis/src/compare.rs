//! Compares two runs: significant differences, and the cycles needed to detect one.
//!
//! Ratios of exceedance rates at common thresholds (exact), differences of quantiles
//! ([`bootstrap`]), both adjusted for dependence and for how many tests there are. Maxima are never
//! compared: the largest of n depends more on n and on chance than on the machine. Pure; the series
//! come from samples or from a baseline, bounded in size ([`series`]).

pub mod bootstrap;
mod outcome;
pub mod series;

use crate::claim::bound::CONFIDENCE;
use crate::quantile::Probability;
use crate::special::{
    beta, beta_quantile, normal_quantile_above, student_level, student_p, student_quantile_above,
};
use crate::summary::SummaryStats;
use bootstrap::{Quantiles, quantiles};
use series::{
    Cells, LatenessSeries, above, bounds_ns, cell_of, common_threshold_ns, count, end_of_cell,
    merged,
};

pub use outcome::{
    DisturbedSide, Family, QuantileDifference, RateRatio, RunComparison, SideDisturbance, Verdict,
    named_as_change, ratio_figures,
};

/// A run on both sides.
#[derive(Clone, Copy, Debug, Default)]
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
    /// The deadline of the question that the run was measured for, ns: one threshold more, and the
    /// first in words.
    pub deadline_ns: Option<i64>,
    /// Of these thresholds and of the deadline those that both sides counted exactly: they are
    /// compared as they are, and the others at the end of a bucket.
    pub exact: &'a [ExactCounts],
    /// The period of its loop, ns; `None` where it is not known.
    pub period_ns: Option<u64>,
    /// The names of A and B in words.
    pub labels: [&'a str; 2],
    /// What else ran on the CPUs of A and B; `None` where nothing is known to have run.
    pub disturbance: Option<&'a SideDisturbance>,
    /// True to test counts whose order is not known, as if cycles were independent.
    pub as_if_independent: bool,
    /// What to do for a test, and why there is none, where A and B are of no one kind; `None` where
    /// they are.
    pub untested: Option<&'a str>,
    /// Missed releases that the parts of A and of B leave out where they are of wakes alone; `None`
    /// where they are not recorded.
    pub left_out: [Option<u64>; 2],
}

/// Releases later than a threshold, counted one by one and not by bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactCounts {
    /// The threshold, ns.
    pub threshold_ns: i64,
    /// Releases of A and of B that were later.
    pub later: [u64; 2],
}

impl ExactCounts {
    /// Returns true where the buckets of both sides allow these counts.
    fn is_of(&self, sides: [&[Part<'_>]; 2]) -> bool {
        let within = later_within(sides, self.threshold_ns);
        within.iter().zip(self.later).all(|(&(least, most), later)| (least..=most).contains(&later))
    }
}

/// The source of the scatter of the counts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScatterFrom {
    /// Chunks in the order of time, and whole results.
    Chunks,
    /// Whole results alone: counts without an order do not show how late cycles come, but how much
    /// several results differ holds all of that.
    Results,
    /// Nothing, for a side has counts without an order: one burst looks like many single
    /// exceedances.
    Unordered,
    /// Nothing, for a side is as short as one stall may be.
    Short,
}

/// Results without the order of their cycles that each side must have to be tested.
pub const RESULTS_MIN: usize = 3;

/// The shortest side that is tested: one stall can fill less.
const SIDE_MIN_NS: u64 = 100_000_000;
/// Releases that a side must have to be tested, where its period is not known or it is shorter than
/// [`SIDE_LONG_NS`].
const RELEASES_MIN: u64 = 100;
/// A side of this length is tested whatever the number of its releases: no stall fills it.
const SIDE_LONG_NS: u64 = 10_000_000_000;

/// Returns true where one stall may have filled a side of so many releases of this period.
fn is_short(releases: u64, period_ns: Option<u64>) -> bool {
    match period_ns.map(|period_ns| period_ns.saturating_mul(releases)) {
        Some(lasted_ns) => {
            lasted_ns < SIDE_MIN_NS || (releases < RELEASES_MIN && lasted_ns < SIDE_LONG_NS)
        }
        None => releases < RELEASES_MIN,
    }
}

impl ScatterFrom {
    fn of(runs: &Runs<'_>) -> Self {
        let ordered = runs.sides.iter().all(|side| side.iter().all(|part| part.series.ordered));
        let results = |side: &&[Part<'_>]| {
            let mut results: Vec<usize> = side.iter().map(|part| part.result).collect();
            results.sort_unstable();
            results.dedup();
            results.len()
        };
        let releases = |side: &&[Part<'_>]| {
            let counts = side.iter().map(|part| part.series.releases());
            counts.fold(0, u64::saturating_add)
        };
        match runs.sides.iter().map(results).min() {
            _ if runs.as_if_independent => Self::Chunks,
            _ if runs.sides.iter().map(releases).any(|count| is_short(count, runs.period_ns)) => {
                Self::Short
            }
            _ if ordered => Self::Chunks,
            Some(fewest) if fewest >= RESULTS_MIN => Self::Results,
            _ => Self::Unordered,
        }
    }

    /// What to do for a test, and why there is none; `None` where there is enough data for one.
    fn why_untested(self) -> Option<String> {
        match self {
            Self::Chunks | Self::Results => None,
            Self::Unordered => Some(format!(
                "keep samples (one result a side is enough), or give {RESULTS_MIN} results a side: \
                 without samples the order of the cycles is not known, and one burst looks like \
                 many single exceedances"
            )),
            Self::Short => {
                Some("measure longer: one stall may have filled a side that is so short".to_owned())
            }
        }
    }
}

/// The tests of one run, prepared.
struct Prepared<'a> {
    runs: Runs<'a>,
    scatter: ScatterFrom,
    rates: Vec<Counts>,
    quantiles: Vec<Quantiles>,
}

impl<'a> Prepared<'a> {
    fn new(runs: &Runs<'a>) -> Self {
        let sides = runs.sides;
        let ordered = sides.iter().all(|side| side.iter().all(|part| part.series.ordered));
        let scatter = ScatterFrom::of(runs);
        let exact = runs.exact.iter().copied().filter(|exact| exact.is_of(sides));
        let exact: Vec<ExactCounts> = exact.collect();
        let by_bucket = |ns| match scatter {
            ScatterFrom::Results => {
                let dispersion = between_results(sides, cell_of(ns));
                Counts { dispersion, ..Counts::of(sides, ns) }
            }
            ScatterFrom::Chunks | ScatterFrom::Unordered | ScatterFrom::Short => {
                Counts::of(sides, ns)
            }
        };
        let counts = |ns| {
            let counts = by_bucket(ns);
            let counted = exact.iter().find(|exact| exact.threshold_ns == ns);
            counted.map_or(counts, |exact| counts.exactly(exact.later))
        };
        let requested = runs.thresholds_ns.iter().copied().chain(runs.deadline_ns);
        let thresholds_ns = thresholds(sides, requested, &exact);
        Self {
            runs: *runs,
            scatter,
            rates: thresholds_ns.into_iter().map(counts).collect(),
            quantiles: quantiles(sides, runs.shown, ordered),
        }
    }

    /// What to do for a test, and why there is none; `None` where there is one.
    fn why_untested(&self) -> Option<String> {
        self.runs.untested.map(str::to_owned).or_else(|| self.scatter.why_untested())
    }

    fn p_values(&self) -> Vec<f64> {
        if self.why_untested().is_some() {
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
        let quantile = |quantile: &Quantiles| {
            let test = if quantile.is_tested() { levels.next().copied() } else { None };
            quantile_difference(quantile, test, alpha)
        };
        let quantiles: Vec<QuantileDifference> = self.quantiles.iter().map(quantile).collect();
        let of_quantiles = quantiles.iter().map(|quantile| quantile.verdict);
        let verdicts = rates.iter().map(|rate| rate.verdict).chain(of_quantiles);
        let by_tests = together(verdicts.clone());
        let disturbance = self.runs.disturbance;
        let verdict = disturbance.map_or(by_tests, |seen| seen.weigh_together(verdicts));
        let sum = |side: usize, number: fn(&Part<'_>) -> u64| {
            self.runs.sides[side].iter().map(number).fold(0, u64::saturating_add)
        };
        let missed =
            |side: usize| match self.runs.sides[side].iter().any(|part| part.series.of_wakes) {
                true => self.runs.left_out[side],
                false => Some(sum(side, |part| part.series.missed)),
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
            missed_a: missed(0),
            missed_b: missed(1),
            max_a_ns: max(0),
            max_b_ns: max(1),
            period_ns: self.runs.period_ns,
            max_a_open: is_open(0),
            max_b_open: is_open(1),
            rates,
            quantiles,
            deadline_ns: self.runs.deadline_ns.map(|ns| ns as f64),
            disturbance: disturbance.cloned(),
            withheld: (by_tests != verdict).then_some(by_tests),
        };
        comparison.statement =
            outcome::statement(&comparison, self.runs.labels, self.why_untested());
        // The sentence names what is withheld, and where.
        if let Some(seen) = disturbance {
            for rate in &mut comparison.rates {
                rate.withheld = seen.withhold(&mut rate.verdict);
            }
            for quantile in &mut comparison.quantiles {
                quantile.withheld = seen.withhold(&mut quantile.verdict);
            }
        }
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

/// Compares the share of exceedances of `threshold_ns` of B of each pair with that of A, at the end
/// of the bucket that holds it: one test a pair, all of them one family (Holm). `None` for a pair
/// of which a side has nothing.
pub fn exceedances(pairs: &[[&LatenessSeries; 2]], threshold_ns: i64) -> Vec<Option<RateRatio>> {
    let end_ns = end_of_cell(threshold_ns);
    let counts = pairs.iter().map(|sides| {
        let [a, b] = sides.map(|series| [Part { result: 0, series }]);
        let full = sides.iter().all(|series| series.releases() > 0);
        full.then(|| Counts::of([&a, &b], end_ns))
    });
    rates(&counts.collect::<Vec<_>>())
}

/// The ratios of counts, which are one family.
fn rates(counts: &[Option<Counts>]) -> Vec<Option<RateRatio>> {
    let alpha = 1.0 - CONFIDENCE;
    let p_values: Vec<f64> = counts.iter().flatten().map(Counts::p_value).collect();
    let mut tested = holm(&p_values, alpha).into_iter();
    let least = alpha / p_values.len().max(1) as f64;
    let mut ratio = |counts: &Counts| rate(counts, tested.next(), alpha, least);
    counts.iter().map(|counts| counts.as_ref().map(&mut ratio)).collect()
}

/// Releases of two sides that took turns, and how many of them are of one kind, such as late by one
/// cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KindCounts {
    /// Of that kind, in A and in B.
    pub of_kind: [u64; 2],
    /// All.
    pub releases: [u64; 2],
    /// By how much counts scatter more than those of independent releases, as far as is known; at
    /// least 1.
    pub dispersion: f64,
}

/// Compares the share of B's releases that are later than `threshold_ns` and of a kind with that of
/// A: one test for each of `kinds`, all of them one family (Holm). `None` where a side has nothing.
pub fn kinds(kinds: &[KindCounts], threshold_ns: i64) -> Vec<Option<RateRatio>> {
    let counts = kinds.iter().map(|kind| {
        let dispersion = Dispersion { factor: kind.dispersion.max(1.0), ..INDEPENDENT };
        let (exceedances, releases) = (kind.of_kind, kind.releases);
        let is_full = releases.iter().all(|&count| count > 0);
        let (threshold_ns, unsure) = (end_of_cell(threshold_ns), [0; 2]);
        is_full.then_some(Counts {
            threshold_ns,
            exceedances,
            unsure,
            releases,
            dispersion,
            apart: None,
        })
    });
    rates(&counts.collect::<Vec<_>>())
}

fn rate(counts: &Counts, test: Option<Tested>, alpha: f64, least: f64) -> RateRatio {
    let interval = counts.interval_within(test.map_or(alpha, |test| test.level));
    let significant = test.is_some_and(|test| test.adjusted <= alpha);
    let [n_a, n_b] = counts.releases;
    // Without a single exceedance on side A, any on side B point up.
    let is_more = counts.ratio().is_none_or(|ratio| ratio > 1.0);
    let needed = releases_needed(counts, least);
    RateRatio {
        threshold_ns: counts.threshold_ns as f64,
        exceedances_a: counts.exceedances[0],
        exceedances_b: counts.exceedances[1],
        unsure: counts.unsure[0].saturating_add(counts.unsure[1]),
        n_a,
        n_b,
        ratio: counts.ratio(),
        lower: interval.lower,
        upper: interval.upper,
        dispersion: counts.dispersion.factor,
        p_value: counts.p_value(),
        p_adjusted: test.map(|test| test.adjusted),
        verdict: verdict(significant, is_more),
        withheld: None,
        clustered: !significant && counts.independent().p_value() <= least,
        detectable: detectable(counts, least),
        more_cycles: needed.map(|needed| needed - counts.fewest()),
        apart: counts.apart,
    }
}

fn quantile_difference(
    quantile: &Quantiles,
    test: Option<Tested>,
    alpha: f64,
) -> QuantileDifference {
    let interval = test.and_then(|test| quantile.interval(test.level));
    let significant = test.is_some_and(|test| test.adjusted <= alpha);
    QuantileDifference {
        p: quantile.p.share(),
        a_ns: quantile.values_ns[0],
        b_ns: quantile.values_ns[1],
        difference_ns: quantile.difference_ns(),
        lower_ns: interval.map(|interval| interval.0),
        upper_ns: interval.map(|interval| interval.1),
        p_value: test.map(|_| quantile.p_value()),
        untested: quantile.untested.clone(),
        p_adjusted: test.map(|test| test.adjusted),
        verdict: verdict(significant, quantile.difference_ns() > 0.0),
        withheld: None,
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
    verdicts.fold(Verdict::Undecided, |sum, next| match (sum, next) {
        (sum, Verdict::Undecided) => sum,
        (Verdict::Undecided, next) => next,
        (sum, next) if sum == next => sum,
        _ => Verdict::Mixed,
    })
}

/// The verdict of several runs: one that is better makes them so only where none is open.
pub fn of_runs(runs: &[RunComparison]) -> Verdict {
    match together(runs.iter().map(|run| run.verdict)) {
        Verdict::Better if runs.iter().any(RunComparison::is_open) => Verdict::Undecided,
        verdict => verdict,
    }
}

/// Compares a quantile of B with that of A, as one test; `None` where a side has too few releases
/// to show it.
///
/// For runs that took turns and are compared in turns that did not choose what is compared.
pub fn quantile(sides: [&LatenessSeries; 2], p: Probability) -> Option<QuantileDifference> {
    let ordered = sides.iter().all(|series| series.ordered);
    let [a, b] = sides.map(|series| [Part { result: 0, series }]);
    let found = quantiles([&a, &b], [None; 2], ordered);
    let found = found.iter().find(|quantile| quantile.p == p)?;
    let alpha = 1.0 - CONFIDENCE;
    let test = found.is_tested().then(|| holm(&[found.p_value()], alpha));
    Some(quantile_difference(found, test.and_then(|tested| tested.first().copied()), alpha))
}

/// Exceedances that a threshold has in both runs together, at least.
const POOLED_MIN: f64 = 10.0;

/// Two counts at one threshold, ready to be tested.
///
/// Given k exceedances in all, those of B are binomial (k, ρN_B/(ρN_B + N_A)) when the rates have
/// the ratio ρ (Przyborowski and Wilenski, Biometrika 31, 1940); Clopper and Pearson's interval of
/// that share gives an exact one of ρ. Both counts are divided by the dispersion first, and where
/// that is an estimate the level is Student's instead of the normal one.
#[derive(Clone, Copy, Debug)]
struct Counts {
    /// The largest lateness that is no exceedance, ns.
    threshold_ns: i64,
    /// Exceedances of A and of B, at most.
    exceedances: [u64; 2],
    /// Those of them that may be none, as the bucket that they are in holds the threshold.
    unsure: [u64; 2],
    /// Releases of A and of B.
    releases: [u64; 2],
    /// The scatter of the counts.
    dispersion: Dispersion,
    /// As [`RateRatio::apart`] has it.
    apart: Option<[u64; 2]>,
}

impl Counts {
    /// Counts both sides above a threshold.
    fn of(sides: [&[Part<'_>]; 2], threshold_ns: i64) -> Self {
        let later = later_within(sides, threshold_ns);
        let releases = |side: &[Part<'_>]| {
            let parts = side.iter().map(|part| part.series.releases());
            parts.fold(0, u64::saturating_add)
        };
        Self {
            threshold_ns,
            exceedances: later.map(|(_, most)| most),
            unsure: later.map(|(least, most)| most - least),
            releases: sides.map(releases),
            dispersion: dispersion(sides, cell_of(threshold_ns)),
            apart: apart(sides, cell_of(threshold_ns)),
        }
    }

    /// The same with exceedances that were counted one by one.
    fn exactly(self, exceedances: [u64; 2]) -> Self {
        Self { exceedances, unsure: [0; 2], ..self }
    }

    /// The counts that they may be, of the lowest ratio and of the highest; the same twice where
    /// they are exact.
    fn extremes(&self) -> [Self; 2] {
        let ([a, b], [a_unsure, b_unsure]) = (self.exceedances, self.unsure);
        [
            self.exactly([a, b.saturating_sub(b_unsure)]),
            self.exactly([a.saturating_sub(a_unsure), b]),
        ]
    }

    /// The factor by which the ratio is not known; infinite where it may be any.
    fn unsure_factor(&self) -> f64 {
        let most = self.exceedances.iter().zip(self.unsure);
        most.filter(|(_, unsure)| *unsure > 0).fold(1.0, |factor, (&most, unsure)| {
            factor * most as f64 / most.saturating_sub(unsure) as f64
        })
    }

    /// Returns true where the rate of B is the higher one.
    fn is_more(&self) -> bool {
        let [a, b] = self.exceedances.map(|k| k as f64);
        let [n_a, n_b] = self.releases.map(|n| n as f64);
        b * n_a > a * n_b
    }

    /// Rate of B over rate of A; `None` without an exceedance of A.
    fn ratio(&self) -> Option<f64> {
        let [a, b] = self.exceedances.map(|k| k as f64);
        let [n_a, n_b] = self.releases.map(|n| n as f64);
        (a > 0.0 && n_b > 0.0).then(|| b / n_b / (a / n_a))
    }

    /// Releases of the side that has fewer.
    fn fewest(&self) -> u64 {
        self.releases[0].min(self.releases[1])
    }

    /// These counts as if cycles were independent.
    fn independent(&self) -> Self {
        Self { dispersion: INDEPENDENT, ..*self }
    }

    /// The counts that independent cycles would need for the same scatter.
    fn effective(&self) -> [f64; 2] {
        self.exceedances.map(|k| k as f64 / self.dispersion.factor)
    }

    /// The two-sided p value of equal rates: the largest of all counts that they may be.
    fn p_value(&self) -> f64 {
        let [lowest, highest] = self.extremes();
        if lowest.is_more() != highest.is_more() {
            return 1.0;
        }
        lowest.exact_p_value().max(highest.exact_p_value())
    }

    fn exact_p_value(&self) -> f64 {
        let [a, b] = self.effective();
        let [n_a, n_b] = self.releases.map(|n| n as f64);
        if a + b <= 0.0 || n_a <= 0.0 || n_b <= 0.0 {
            return 1.0;
        }
        let share = n_b / (n_a + n_b);
        // P(as many in B or more) and P(as few or fewer).
        let more = if b > 0.0 { beta(share, b, a + 1.0) } else { 1.0 };
        let fewer = if a > 0.0 { beta(1.0 - share, a, b + 1.0) } else { 1.0 };
        student_p((2.0 * more.min(fewer)).min(1.0), self.dispersion.df)
    }

    /// The interval of the ratio that holds with confidence 1 − `alpha`, of all counts that they
    /// may be.
    fn interval_within(&self, alpha: f64) -> Interval {
        let [lowest, highest] = self.extremes();
        Interval { upper: highest.interval(alpha).upper, ..lowest.interval(alpha) }
    }

    /// The same of the counts as they are.
    fn interval(&self, alpha: f64) -> Interval {
        let [a, b] = self.effective();
        let [n_a, n_b] = self.releases.map(|n| n as f64);
        let each = student_level(alpha / 2.0, self.dispersion.df);
        let to_ratio = |share: f64| share / (1.0 - share) * n_a / n_b;
        let lower = beta_quantile(each, b, a + 1.0);
        // 1 − share, so that nothing is lost near 1.
        let rest = beta_quantile(each, a, b + 1.0);
        Interval {
            lower: to_ratio(lower),
            upper: (rest > 0.0).then(|| (1.0 - rest) / rest * n_a / n_b),
        }
    }
}

/// A ratio's interval; no upper end where A has no exceedance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    lower: f64,
    upper: Option<f64>,
}

/// Releases of each side later than a threshold, at least and at most: a bucket may hold it.
fn later_within(sides: [&[Part<'_>]; 2], threshold_ns: i64) -> [(u64, u64); 2] {
    sides.map(|side| {
        let parts = side.iter().map(|part| part.series.later_within(threshold_ns));
        parts.fold((0u64, 0u64), |(least, most), part| {
            (least.saturating_add(part.0), most.saturating_add(part.1))
        })
    })
}

/// The thresholds, ns: those requested (those that are not exact moved up to the end of their
/// bucket, at most 1/128), and those that shares of 0.1, 0.01, … of both runs together exceed, down
/// to ten exceedances, but for those in the bucket of one that is exact. Where a histogram's bucket
/// holds one, its end. Which side the exceedances are from is not used.
fn thresholds(
    sides: [&[Part<'_>]; 2],
    requested_ns: impl Iterator<Item = i64>,
    exact: &[ExactCounts],
) -> Vec<i64> {
    let pooled = pooled(sides);
    let total = count(&pooled) as f64;
    let parts = sides.iter().flat_map(|side| side.iter());
    let series: Vec<&LatenessSeries> = parts.map(|part| part.series).collect();
    let is_exact = |ns: i64| exact.iter().any(|exact| exact.threshold_ns == ns);
    let requested = requested_ns.map(|ns| match is_exact(ns) {
        true => ns,
        false => common_threshold_ns(&series, ns, end_of_cell(ns)),
    });
    let is_counted = |cell| exact.iter().any(|exact| cell_of(exact.threshold_ns) == cell);
    let mut thresholds: Vec<i64> = requested.collect();
    let mut share = 0.1;
    while share * total >= POOLED_MIN {
        let cell = cell_near(&pooled, share * total).filter(|&cell| !is_counted(cell));
        let bounds = cell.map(bounds_ns);
        thresholds.extend(bounds.map(|(low, high)| common_threshold_ns(&series, low, high - 1)));
        share /= 10.0;
    }
    thresholds.sort_unstable();
    thresholds.dedup();
    thresholds
}

/// Both sides as one histogram.
fn pooled(sides: [&[Part<'_>]; 2]) -> Cells {
    let chunks = sides.iter().flat_map(|side| side.iter()).flat_map(|part| &part.series.chunks);
    chunks.fold(Vec::new(), |sum, cells| merged(&sum, cells))
}

/// The cell above which nearest to `events` lie (by ratio), of those above which ten or more do.
fn cell_near(pooled: &Cells, events: f64) -> Option<u16> {
    let mut above = 0.0;
    let mut best: Option<(f64, u16)> = None;
    for &(cell, count) in pooled.iter().rev() {
        if above >= POOLED_MIN {
            let far = f64::abs((above / events).ln());
            if best.is_none_or(|(least, _)| far < least) {
                best = Some((far, cell));
            }
        }
        above += count as f64;
    }
    best.map(|(_, cell)| cell)
}

/// The ratio to detect.
const RATIO: f64 = 2.0;

/// The probability of detecting it when it is there.
const POWER: f64 = 0.8;

/// Releases that each side needs in all, so that a test at level `alpha` detects [`RATIO`] with
/// probability [`POWER`]: the exceedances of a threshold go on as often, and as clustered, as they
/// were. Those that there are where they detect it, else more, within a thousandth. `None` where
/// neither side has an exceedance, or counts are so unsure that no number of them would.
fn releases_needed(counts: &Counts, alpha: f64) -> Option<u64> {
    let normal = needed(counts, alpha, RATIO)?;
    let is_enough =
        |releases| normal as f64 * student_factor(counts, alpha, releases) <= releases as f64;
    let mut too_few = counts.fewest();
    if is_enough(too_few) {
        return Some(too_few);
    }
    let most = (normal as f64 * student_factor(counts, alpha, too_few)).ceil() as u64;
    let mut enough = most.max(too_few.saturating_add(1));
    while enough - too_few > 1 + too_few / 1_000 {
        let middle = too_few + (enough - too_few) / 2;
        if is_enough(middle) { enough = middle } else { too_few = middle }
    }
    Some(enough)
}

/// Releases needed to detect `ratio`, above 1, at level `alpha`, if the dispersion is known. Where
/// counts are unsure, as many as it takes for what of the ratio is sure.
///
/// Two Poisson counts, compared by the logarithm of their ratio (Gu, Ng, Tang and Schucany, Testing
/// the ratio of two Poisson rates, Biometrical Journal 50, 2008).
fn needed(counts: &Counts, alpha: f64, ratio: f64) -> Option<u64> {
    let [a, b] = counts.exceedances.map(|k| k as f64);
    let [n_a, n_b] = counts.releases.map(|n| n as f64);
    let ratio = ratio / counts.unsure_factor();
    if a + b <= 0.0 || alpha <= 0.0 || ratio <= 1.0 {
        return None;
    }
    // Thresholds are at ranks of both runs together: of that rate, A has 2/(1 + ratio).
    let rate = (a + b) / (n_a + n_b) / counts.dispersion.factor * 2.0 / (1.0 + ratio);
    let level = normal_quantile_above(alpha / 2.0);
    let quantiles = level + normal_quantile_above(1.0 - POWER);
    let per_side = quantiles * quantiles * (1.0 + 1.0 / ratio) / ratio.ln().powi(2) / rate;
    // Clopper and Pearson's interval is wider by about one event at each end.
    let margin = (1.0 + 1.0 / ratio) / rate;
    Some((per_side + margin).ceil() as u64)
}

/// The factor by which more releases are needed because the dispersion is an estimate, as well
/// known as `releases` of each side show it; at least 1.
fn student_factor(counts: &Counts, alpha: f64, releases: u64) -> f64 {
    let Dispersion { df, df_grows, .. } = counts.dispersion;
    if df.is_infinite() {
        return 1.0;
    }
    let longer = (releases as f64 / counts.fewest().max(1) as f64).max(1.0);
    let df = if df_grows { df * longer } else { df };
    let normal = normal_quantile_above(alpha / 2.0);
    (student_quantile_above(alpha / 2.0, df) / normal).powi(2).max(1.0)
}

/// Ratios that are tried for one factor of [`RATIO`]: each is less than 5 % above the one before.
const RATIO_STEPS: f64 = 15.0;

/// The smallest ratio that the releases of each side would have detected, within 5 %; `None` where
/// none up to 1000 would.
fn detectable(counts: &Counts, alpha: f64) -> Option<f64> {
    let factor = student_factor(counts, alpha, counts.fewest());
    let have = counts.fewest() as f64;
    let is_detected = |ratio: &f64| {
        needed(counts, alpha, *ratio).is_some_and(|needed| needed as f64 * factor <= have)
    };
    let ratios = (1..).map(|step| RATIO.powf(f64::from(step) / RATIO_STEPS));
    ratios.take_while(|ratio| *ratio <= 1_000.0).find(is_detected)
}

/// One test of a family.
///
/// Holm's procedure (Scandinavian Journal of Statistics 6, 1979): valid whatever the dependence.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tested {
    /// The p value times the factor of the procedure, at most 1; significant where at most alpha.
    adjusted: f64,
    /// The level at which this test is done; an interval of this level agrees with the test.
    level: f64,
}

/// The tests of a family that shall hold at `alpha` together.
fn holm(p_values: &[f64], alpha: f64) -> Vec<Tested> {
    let m = p_values.len();
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut tested = vec![Tested { adjusted: 1.0, level: alpha }; m];
    let (mut adjusted, mut stopped) = (0.0f64, None);
    for (at, &test) in order.iter().enumerate() {
        let left = (m - at) as f64;
        adjusted = adjusted.max((p_values[test] * left).min(1.0));
        let level = stopped.unwrap_or(alpha / left);
        if adjusted > alpha {
            stopped.get_or_insert(level);
        }
        tested[test] = Tested { adjusted, level };
    }
    tested
}

/// Degrees of freedom that a scale inside the results must have.
const DF_MIN: f64 = 10.0;
/// A factor is used if it is this many standard errors above 1: about one in ten by chance alone.
const DOUBT: f64 = 1.3;

/// The factor by which the variance of a count exceeds its mean, and what it is known from.
///
/// Bursts, slow wander and loads that differ from run to run all show as counts that scatter more
/// than Poisson's: variance over mean, at every scale that has enough batches, whole results being
/// the coarsest. Counts are divided by it before they are tested (a quasi-Poisson model: McCullagh
/// and Nelder, Generalized Linear Models, 2nd ed., §6.2.3).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Dispersion {
    /// At least 1.
    factor: f64,
    /// Degrees of freedom; infinite where the factor is 1.
    df: f64,
    /// True where a longer run has more of what the degrees of freedom count, such as bursts; false
    /// where they are of whole results.
    df_grows: bool,
    /// The scale at which it was found: chunks in a batch.
    batch: usize,
}

/// The dispersion of independent cycles.
const INDEPENDENT: Dispersion =
    Dispersion { factor: 1.0, df: f64::INFINITY, df_grows: true, batch: 1 };

/// One part of a run on one side: the result it is from, and what it holds.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Number of the result on its side.
    pub result: usize,
    /// The measured series.
    pub series: &'a LatenessSeries,
}

/// (exceedances, releases) of each chunk of a part.
fn counts(part: &Part<'_>, cell: u16) -> Vec<(f64, f64)> {
    let chunks = part.series.chunks.iter();
    chunks.map(|cells| (above(cells, cell) as f64, count(cells) as f64)).collect()
}

/// The factor for exceedances of a cell, from both sides together.
fn dispersion(sides: [&[Part<'_>]; 2], cell: u16) -> Dispersion {
    let parts = sides.iter().flat_map(|side| side.iter());
    let mut series: Vec<Vec<(f64, f64)>> = parts.map(|part| counts(part, cell)).collect();
    let (mut worst, mut batch) = (INDEPENDENT, 1);
    loop {
        let batches = series.iter().filter(|batches| batches.len() > 1);
        if batches.map(|batches| batches.len() as f64 - 1.0).sum::<f64>() < DF_MIN {
            break;
        }
        worst = scatter(&series, batch).map_or(worst, |found| wider(worst, found));
        batch *= 2;
        series = series.iter().map(|batches| paired(batches)).collect();
    }
    let results: Vec<Vec<(f64, f64)>> = sides.iter().map(|side| by_result(side, cell)).collect();
    scatter(&results, batch)
        .map_or(worst, |found| wider(worst, Dispersion { df_grows: false, ..found }))
}

/// The factor for exceedances of a cell by what whole results show, at least 1, with the degrees of
/// freedom that so few of them leave: nothing is said to be of chance because they are few.
fn between_results(sides: [&[Part<'_>]; 2], cell: u16) -> Dispersion {
    let results: Vec<Vec<(f64, f64)>> = sides.iter().map(|side| by_result(side, cell)).collect();
    variance_over_mean(&results).map_or(INDEPENDENT, |found| Dispersion {
        factor: found.factor.max(1.0),
        df: found.df,
        df_grows: false,
        batch: 1,
    })
}

fn paired(batches: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let sum = |pair: &[(f64, f64)]| {
        pair.iter().fold((0.0, 0.0), |sum, batch| (sum.0 + batch.0, sum.1 + batch.1))
    };
    batches.chunks(2).map(sum).collect()
}

fn by_result(side: &[Part<'_>], cell: u16) -> Vec<(f64, f64)> {
    let mut results: Vec<(usize, (f64, f64))> = Vec::new();
    for part in side {
        let more = counts(part, cell).iter().fold((0.0, 0.0), |s, c| (s.0 + c.0, s.1 + c.1));
        match results.iter_mut().find(|(result, _)| *result == part.result) {
            Some((_, sum)) => *sum = (sum.0 + more.0, sum.1 + more.1),
            None => results.push((part.result, more)),
        }
    }
    results.into_iter().map(|(_, sum)| sum).collect()
}

/// The results of A and of B, two a side at least, where each of one side has a higher share of
/// exceedances of a cell than each of the other.
fn apart(sides: [&[Part<'_>]; 2], cell: u16) -> Option<[u64; 2]> {
    let [a, b] = sides.map(|side| by_result(side, cell));
    let least = |side: &[(f64, f64)]| side.iter().map(|(k, n)| k / n).fold(f64::MAX, f64::min);
    let most = |side: &[(f64, f64)]| side.iter().map(|(k, n)| k / n).fold(0.0, f64::max);
    let is_apart = most(&a) < least(&b) || most(&b) < least(&a);
    let is_full = a.iter().chain(&b).all(|&(_, n)| n > 0.0);
    let results = [a.len() as u64, b.len() as u64];
    (is_apart && is_full && results.iter().all(|&count| count > 1)).then_some(results)
}

/// Variance over mean of batches, and what it is of.
struct Overdispersion {
    factor: f64,
    events: f64,
    df: f64,
}

/// Variance over mean of the batches of several series, each about its own rate. `None` without an
/// event or with no series of two batches.
fn variance_over_mean(series: &[Vec<(f64, f64)>]) -> Option<Overdispersion> {
    let (mut variance, mut events, mut df) = (0.0, 0.0, 0.0);
    for batches in series {
        let m = batches.len() as f64;
        let (k, n) =
            batches.iter().fold((0.0, 0.0), |sum, batch| (sum.0 + batch.0, sum.1 + batch.1));
        if m < 2.0 || n <= 0.0 {
            continue;
        }
        let squares: f64 = batches.iter().map(|(c, size)| (c - k / n * size).powi(2)).sum();
        variance += squares * m / (m - 1.0);
        events += k;
        df += m - 1.0;
    }
    (events > 0.0 && df > 0.0).then(|| Overdispersion { factor: variance / events, events, df })
}

/// The same as a dispersion: one that may be chance counts as none.
fn scatter(series: &[Vec<(f64, f64)>], batch: usize) -> Option<Dispersion> {
    variance_over_mean(series).map(|Overdispersion { factor, events, df }| {
        // For Poisson counts the factor has mean 1 and variance 2/df + 1/events.
        let chance = 1.0 + DOUBT * (2.0 / df + 1.0 / events).sqrt();
        if factor <= chance {
            return Dispersion { factor: 1.0, df, df_grows: true, batch };
        }
        // Few bursts are weak evidence about the size of bursts.
        let bursts = (events / factor - 1.0).max(1.0);
        Dispersion { factor, df: df.min(bursts), df_grows: true, batch }
    })
}

/// The one that widens an interval more; a factor of 1 never does.
fn wider(a: Dispersion, b: Dispersion) -> Dispersion {
    let width = |d: Dispersion| d.factor.sqrt() * student_quantile_above(0.025, d.df);
    if b.factor > 1.0 && width(b) > width(a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Span;

    use super::series::{Builder, CHUNKS_MAX, LatenessSeries, merged};
    use crate::histogram::ViewBucket;
    use crate::rng::Rng;

    /// A body of 5 µs and more, and bursts of geometric length `mean` that are later than 100 µs:
    /// one release in 1/`rate` begins one.
    fn run(rng: &mut Rng, n: u64, rate: f64, mean: f64) -> LatenessSeries {
        let mut builder = Builder::new(1_000_000, true);
        let mut late = false;
        for cycle in 0..n {
            late = if late { rng.uniform() >= 1.0 / mean } else { rng.uniform() < rate };
            let ns = if late {
                100_000.0 * (1.0 + rng.exponential())
            } else {
                5_000.0 * (1.0 + 0.1 * rng.exponential())
            };
            builder.push(&Sample {
                cycle,
                lateness: Span::from_ns(ns as i64),
                ..Sample::default()
            });
        }
        builder.finish(0)
    }

    fn verdict_of(a: &LatenessSeries, b: &LatenessSeries) -> RunComparison {
        let [a, b] = [a, b].map(|series| [Part { result: 0, series }]);
        let runs = Runs { name: "idle", sides: [&a, &b], ..Runs::default() };
        compare(&[runs]).0.remove(0)
    }

    #[test]
    fn three_times_as_often_is_told_and_a_run_from_itself_is_not() {
        let mut rng = Rng::new(3);
        let (a, b) = (run(&mut rng, 60_000, 0.002, 1.0), run(&mut rng, 60_000, 0.006, 1.0));
        let worse = verdict_of(&a, &b);
        assert_eq!(worse.verdict, Verdict::Worse);
        assert!(worse.statement.starts_with("worse: later than"), "{}", worse.statement);
        assert_eq!(verdict_of(&b, &a).verdict, Verdict::Better);
        let same = verdict_of(&a, &a);
        assert_eq!(same.verdict, Verdict::Undecided);
        assert!(same.statement.contains("no significant difference"), "{}", same.statement);
        assert!(same.rates.iter().all(|rate| rate.ratio == Some(1.0)));
        let rarest = same.rates.iter().filter_map(|rate| rate.more_cycles).next_back();
        let more = rarest.filter(|&more| more > 0).expect("too few of the rarest");
        // The time of the cycles that are missing stands beside their number.
        let runs = Runs {
            name: "idle",
            sides: [&[Part { result: 0, series: &a }], &[Part { result: 1, series: &a }]],
            period_ns: Some(1_000_000),
            ..Runs::default()
        };
        let timed = compare(&[runs]).0.remove(0).statement;
        let time = Span::from_ns((60_000 + more as i64) * 1_000_000);
        let time =
            format!(" times as long ({time} of 'idle' each), in turn, to tell twice as often");
        assert!(timed.contains("; run both sides about ") && timed.contains(&time), "{timed}");
    }

    #[test]
    fn a_difference_that_clusters_may_account_for_is_undecided_with_what_would_have_been_seen() {
        // One stall of so many cycles, and nothing else that is late.
        let stalled = |stall: u64| {
            let mut builder = Builder::new(1_000_000, true);
            for cycle in 0..200_000 {
                let is_late = (80_000..80_000 + stall).contains(&cycle);
                let ns = if is_late { 7_000_000 } else { 5_000 + (cycle as i64 * 7_919) % 1_000 };
                builder.push(&Sample { cycle, lateness: Span::from_ns(ns), ..Sample::default() });
            }
            builder.finish(0)
        };
        let compared = verdict_of(&stalled(0), &stalled(4_000));
        assert_eq!((compared.verdict, compared.is_open()), (Verdict::Undecided, true));
        let rate =
            compared.rates.iter().find(|rate| rate.clustered).expect("none against thousands");
        assert!(rate.is_open() && rate.dispersion > 100.0, "{rate:?}");
        let text = compared.statement.replace('\u{a0}', " ");
        assert!(text.starts_with("undecided: run both sides about "), "{text}");
        assert!(text.contains(" of 200 000 against 0 of 200 000"), "{text}");
        assert!(
            text.contains("late releases come in clusters and tell as much as ")
                && text.contains("too few to tell any difference"),
            "{text}"
        );
        // At the deadline its figures stand once.
        let sides = [0, 4_000].map(stalled);
        let text = compared_at(&sides, 100_000, None).statement.replace('\u{a0}', " ");
        for figures in ["100 µs", "A 0 of 200 000", "undecided, "] {
            assert_eq!(text.matches(figures).count(), 1, "{figures} in {text}");
        }
        let far =
            compared.quantiles.iter().find(|quantile| quantile.p == 0.99).expect("of 200 000");
        assert!(far.a_ns < 50_000.0 && far.b_ns > 1e6 && far.p_value.is_none(), "{far:?}");
        let why = far.untested.as_deref().expect("a reason").replace('\u{a0}', " ");
        assert!(
            why.starts_with("of 200 000 releases the 2 000 beyond it count as about "),
            "{why}"
        );
        assert!(why.ends_with("as they come in clusters; 20 are needed on each side"), "{why}");
        // Without clusters there are too few all the same.
        let mut rng = Rng::new(8);
        let short = verdict_of(&run(&mut rng, 300, 0.0, 1.0), &run(&mut rng, 300, 0.0, 1.0));
        let whys: Vec<_> =
            short.quantiles.iter().filter_map(|quantile| quantile.untested.as_deref()).collect();
        assert_eq!(whys, ["3 of 300 releases lie beyond it; 20 are needed on each side"]);
    }

    #[test]
    fn kinds_are_compared_as_exceedances_are_and_scatter_widens_them() {
        let side = |late: u64| {
            let buckets = [(0, 1_000, 10_000 - late), (50_000, 51_000, late)];
            LatenessSeries::of_buckets(&buckets.map(ViewBucket::from), 0, None)
        };
        let (few, many) = (side(20), side(80));
        let kind = |of_kind, dispersion| KindCounts { of_kind, releases: [10_000; 2], dispersion };
        let pairs = [[&few, &many], [&many, &few], [&few, &few]];
        let wanted = exceedances(&pairs, 10_000);
        let counted = [kind([20, 80], 1.0), kind([80, 20], 1.0), kind([20, 20], 0.0)];
        assert_eq!(kinds(&counted, 10_000), wanted);
        let verdicts = |kinds: Vec<Option<RateRatio>>| -> Vec<Option<Verdict>> {
            kinds.into_iter().map(|rate| rate.map(|rate| rate.verdict)).collect()
        };
        let (worse, better) = (Some(Verdict::Worse), Some(Verdict::Better));
        let undecided = Some(Verdict::Undecided);
        assert_eq!(verdicts(wanted), [worse, better, undecided]);
        // Bursts of twenty are no such counts.
        assert_eq!(verdicts(kinds(&[kind([20, 80], 20.0)], 10_000)), [undecided]);
        let none = KindCounts { releases: [0, 5], ..kind([0, 1], 1.0) };
        assert_eq!(verdicts(kinds(&[none, kind([0, 80], 1.0)], 10_000)), [None, worse]);
    }

    #[test]
    fn a_single_burst_is_no_difference() {
        let calm: Vec<i64> = (0..20_000).map(|i| 5_000 + (i * 7_919) % 1_000).collect();
        let series = |latenesses: &[i64]| {
            let mut builder = Builder::new(1_000_000, true);
            for (cycle, &ns) in latenesses.iter().enumerate() {
                let cycle = cycle as u64;
                builder.push(&Sample { cycle, lateness: Span::from_ns(ns), ..Sample::default() });
            }
            builder.finish(0)
        };
        let mut burst = calm.clone();
        burst[7_000..7_040].fill(500_000);
        let compared = verdict_of(&series(&calm), &series(&burst));
        let rate = compared.rates.iter().find(|rate| rate.exceedances_a == 0).expect("the burst");
        assert!(rate.exceedances_b >= 20 && rate.dispersion > 10.0, "{rate:?}");
        assert_eq!(rate.verdict, Verdict::Undecided, "{rate:?}");
    }

    #[test]
    fn a_histogram_alone_has_no_verdict_unless_requested() {
        let [a, b] = [100, 900].map(|late| {
            let buckets = [(5_000, 5_001, 90_000), (90_000, 90_100, late)];
            LatenessSeries::of_buckets(&buckets.map(ViewBucket::from), 0, Some(90_050))
        });
        assert_eq!(verdict_of(&a, &b).verdict, Verdict::Undecided);
        let statement = verdict_of(&a, &b).statement;
        assert!(statement.contains("order of the cycles"), "{statement}");
        assert!(statement.starts_with("undecided: keep samples (one result a side"), "{statement}");
        let [a, b] = [&a, &b].map(|series| [Part { result: 0, series }]);
        let sides = [&a[..], &b[..]];
        let runs = Runs {
            name: "x",
            sides,
            thresholds_ns: &[50_000],
            as_if_independent: true,
            ..Runs::default()
        };
        assert_eq!(compare(&[runs]).0[0].verdict, Verdict::Worse);
    }

    #[test]
    fn runs_of_no_one_kind_are_not_tested_and_say_what_it_takes() {
        let sides = [counts_alone(100), counts_alone(900)];
        let [a, b] = sides.each_ref().map(|series| [Part { result: 0, series }]);
        let compared = |untested| {
            let runs = Runs {
                name: "under load",
                sides: [&a, &b],
                deadline_ns: Some(50_000),
                labels: ["A", "B"],
                as_if_independent: true,
                untested,
                ..Runs::default()
            };
            compare(&[runs])
        };
        assert_eq!(compared(None).0[0].verdict, Verdict::Worse);
        let (runs, family) = compared(Some("measure both alike"));
        assert_eq!(
            (runs[0].verdict, runs[0].is_open(), family.tests),
            (Verdict::Undecided, true, 0)
        );
        let statement = &runs[0].statement;
        assert!(statement.starts_with("undecided: measure both alike; later than"), "{statement}");
        assert!(statement.ends_with(": not tested"), "{statement}");
    }

    /// Counts alone of 90 000 releases, of which so many are later than 90 µs.
    fn counts_alone(late: u64) -> LatenessSeries {
        let buckets = [(5_000, 5_001, 90_000 - late), (90_000, 90_100, late)];
        LatenessSeries::of_buckets(&buckets.map(ViewBucket::from), 0, Some(90_050))
    }

    /// The comparison of a run whose results on each side have these series.
    fn of_sides(sides: &[impl AsRef<[LatenessSeries]>; 2], thresholds_ns: &[i64]) -> RunComparison {
        let parts = sides.each_ref().map(|side| {
            let results = side.as_ref().iter().enumerate();
            results.map(|(result, series)| Part { result, series }).collect::<Vec<_>>()
        });
        let runs = Runs {
            name: "idle",
            sides: [&parts[0], &parts[1]],
            thresholds_ns,
            labels: ["A", "B"],
            ..Runs::default()
        };
        compare(&[runs]).0.remove(0)
    }

    /// The comparison of these for a deadline, as if cycles were independent where their order is
    /// not known.
    fn compared_at(
        sides: &[LatenessSeries; 2],
        deadline_ns: i64,
        disturbance: Option<&SideDisturbance>,
    ) -> RunComparison {
        let [a, b] = sides.each_ref().map(|series| [Part { result: 0, series }]);
        let runs = Runs {
            name: "idle",
            sides: [&a, &b],
            deadline_ns: Some(deadline_ns),
            labels: ["A", "B"],
            disturbance,
            as_if_independent: sides.iter().any(|series| !series.ordered),
            ..Runs::default()
        };
        compare(&[runs]).0.remove(0)
    }

    /// The comparison of 90 000 cycles a side, of which so many are later than 90 µs, for a
    /// deadline of 50 µs.
    fn at_50_us(late: [u64; 2], disturbance: Option<&SideDisturbance>) -> RunComparison {
        compared_at(&late.map(counts_alone), 50_000, disturbance)
    }

    #[test]
    fn the_deadline_of_the_question_is_the_first_answer() {
        // But for what to do where it is open.
        let first = |late| {
            let statement = at_50_us(late, None).statement;
            let mut parts = statement.split("; ").filter(|part| !part.starts_with("undecided: "));
            parts.next().unwrap_or_default().to_owned()
        };
        let counts = |late: [u64; 2]| {
            let [a, b, n] = [late[0], late[1], 90_000].map(crate::plain::grouped);
            format!(
                "later than 50.0 µs, the deadline (counted from 50.2 µs on): A {a} of {n}, \
                 B {b} of {n}: "
            )
        };
        for (late, answer) in [
            ([100, 900], "more, 9.00 times as often ["),
            ([900, 100], "fewer, 0.11 times as often ["),
            ([5, 7], "undecided, 1.40 times as often, but it may be anything from "),
            ([0, 0], "none on either side"),
        ] {
            let (first, expected) = (first(late), counts(late) + answer);
            assert!(first.starts_with(&expected), "{first}\n{expected}");
        }
        assert_eq!(at_50_us([1, 1], None).at_deadline().map(|rate| rate.n_a), Some(90_000));
    }

    #[test]
    fn a_deadline_is_counted_exactly_where_both_sides_did_and_else_its_edge_is_named() {
        // Two of each side lie between the deadline and the end of its bucket, 100 352 ns.
        let side = || {
            let mut builder = Builder::new(1_000_000, true);
            for cycle in 0..20_000 {
                let late = match cycle % 1_000 {
                    0..=2 => 150_000,
                    3 if cycle > 18_000 => 100_200,
                    _ => 5_000,
                };
                builder.push(&Sample { cycle, lateness: Span::from_ns(late), ..Sample::default() });
            }
            builder.finish(0)
        };
        let sides = [side(), side()];
        let [a, b] = sides.each_ref().map(|series| [Part { result: 0, series }]);
        let compared = |exact: &[ExactCounts]| {
            let runs = Runs {
                sides: [&a, &b],
                deadline_ns: Some(100_000),
                labels: ["A", "B"],
                exact,
                ..Runs::default()
            };
            compare(&[runs]).0.remove(0)
        };
        let counts = |late: u64| ExactCounts { threshold_ns: 100_000, later: [late; 2] };
        let answer = |exact: &[ExactCounts]| {
            let run = compared(exact);
            let rate = run.at_deadline().cloned().expect("a question");
            let edges = run.rates.iter().filter(|rate| rate.threshold_ns == 100_351.0).count();
            let counts = (rate.threshold_ns, rate.exceedances_a, rate.unsure, edges);
            (counts, run.statement.replace('\u{a0}', " "))
        };
        let (by_bucket, words) = answer(&[]);
        assert_eq!(by_bucket, (100_351.0, 60, 0, 1), "{words}");
        assert!(words.contains("the deadline (counted from 100 352 ns on): A 60 of"), "{words}");
        let (exact, words) = answer(&[counts(62)]);
        assert_eq!(exact, (100_000.0, 62, 0, 0), "{words}");
        assert!(words.contains("later than 100 µs, the deadline: A 62 of 20 000"), "{words}");
        // Counts that are none of this run are not taken.
        assert_eq!(answer(&[counts(70)]).0, by_bucket);
    }

    fn ran() -> Option<String> {
        Some("others used at least 94 % of CPU 1: rustc 94 %".to_owned())
    }

    /// Others used more of the CPU of this side.
    fn disturbed(more: DisturbedSide) -> SideDisturbance {
        let (a, b) = match more {
            DisturbedSide::A => (ran(), None),
            DisturbedSide::B => (None, ran()),
        };
        SideDisturbance { a, b, more: Some(more), ..SideDisturbance::default() }
    }

    #[test]
    fn a_difference_to_the_disadvantage_of_the_side_that_was_disturbed_is_undecided() {
        let [on_a, on_b] = [DisturbedSide::A, DisturbedSide::B].map(disturbed);
        let alike = SideDisturbance { b: ran(), more: None, ..on_a.clone() };
        let (more, fewer) = ([100, 900], [900, 100]);
        for (late, seen, verdict, withheld) in [
            (more, &on_b, Verdict::Undecided, Some(Verdict::Worse)),
            (fewer, &on_a, Verdict::Undecided, Some(Verdict::Better)),
            // It is so although that side was disturbed.
            (more, &on_a, Verdict::Worse, None),
            (fewer, &on_b, Verdict::Better, None),
            (more, &alike, Verdict::Worse, None),
        ] {
            let compared = at_50_us(late, Some(seen));
            assert_eq!((compared.verdict, compared.withheld), (verdict, withheld), "{compared:?}");
            assert_eq!(compared.is_open(), withheld.is_some(), "{compared:?}");
            assert!(compared.statement.contains(" idle"), "{}", compared.statement);
            let is_weighed = compared.statement.contains(": undecided, ");
            assert_eq!(is_weighed, withheld.is_some(), "{}", compared.statement);
            // No single test says more than all of them.
            let rates = compared.rates.iter().map(|rate| (rate.verdict, rate.withheld));
            let quantiles = compared.quantiles.iter().map(|test| (test.verdict, test.withheld));
            let tests: Vec<_> = rates.chain(quantiles).collect();
            assert!(tests.contains(&(verdict, withheld)), "{tests:?}");
            assert!(tests.iter().all(|test| [Verdict::Undecided, verdict].contains(&test.0)));
        }
        assert_eq!(at_50_us(more, None).verdict, Verdict::Worse);
        // What else ran is the change that is compared.
        for (late, seen, verdict) in
            [(fewer, &on_a, Verdict::Better), (more, &on_b, Verdict::Worse)]
        {
            let compared = SideDisturbance { is_the_change: true, ..seen.clone() };
            let compared = at_50_us(late, Some(&compared));
            assert_eq!((compared.verdict, compared.withheld), (verdict, None), "{compared:?}");
            let words = " was not idle, which is the change";
            assert!(compared.statement.ends_with(words), "{}", compared.statement);
        }
    }

    #[test]
    fn what_is_better_does_not_hide_what_others_may_account_for() {
        // Fewer of B are later than 5 µs, and more of it later than the deadline.
        let side = |some: u64, late: u64| {
            let buckets = [
                (5_000, 5_001, 90_000 - some - late),
                (20_000, 20_100, some),
                (90_000, 90_100, late),
            ];
            LatenessSeries::of_buckets(&buckets.map(ViewBucket::from), 0, Some(90_050))
        };
        let sides = [side(20_000, 100), side(5_000, 900)];
        let compared = |more| compared_at(&sides, 50_000, Some(&disturbed(more)));
        let verdicts = |compared: &RunComparison| {
            (
                compared.verdict,
                compared.withheld,
                compared.is_open(),
                of_runs(std::slice::from_ref(compared)),
            )
        };
        assert_eq!(compared_at(&sides, 50_000, None).verdict, Verdict::Mixed);
        let open = compared(DisturbedSide::B);
        let (undecided, mixed) = (Verdict::Undecided, Some(Verdict::Mixed));
        assert_eq!(verdicts(&open), (undecided, mixed, true, undecided));
        let text = open.statement.replace('\u{a0}', " ");
        for words in [
            "undecided: measure B again with nothing else on its CPU, or name it as the change \
             that you compare with --changed others; later than 50.0 µs, the deadline",
            "A 100 of 90 000, B 900 of 90 000: undecided, 9.00 times as often [",
            "; better, later than 5.",
            ", but undecided whether worse, at the deadline: others had more of the CPU of B, and ",
        ] {
            assert!(text.contains(words), "{words:?} in {text}");
        }
        assert_eq!(text.matches("9.00").count(), 1, "{text}");
        // What is worse stands where the other side was disturbed.
        let worse = compared(DisturbedSide::A);
        assert_eq!(verdicts(&worse), (Verdict::Worse, mixed, false, Verdict::Worse));
        let words = "overall worse, at the deadline, but undecided whether better, later than 5.";
        assert!(worse.statement.contains(words), "{}", worse.statement);
    }

    #[test]
    fn what_shows_no_difference_elsewhere_is_no_answer_at_the_deadline() {
        let side = |late: u64| {
            let buckets = [(5_000, 5_001, 81_000), (20_000, 20_100, 9_000), (90_000, 90_100, late)];
            LatenessSeries::of_buckets(&buckets.map(ViewBucket::from), 0, Some(90_050))
        };
        let open = compared_at(&[side(1), side(7)], 50_000, None);
        assert!(open.verdict == Verdict::Undecided && open.is_open(), "{}", open.statement);
        assert!(open.statement.starts_with("undecided: "), "{}", open.statement);
        // Of as many as tell.
        let same = compared_at(&[side(4_000), side(4_000)], 50_000, None);
        assert!(same.verdict == Verdict::Undecided && !same.is_open(), "{}", same.statement);
    }

    /// Samples of so many cycles of which each lateness from 4 to 8 µs is as frequent.
    fn even(n: i64) -> LatenessSeries {
        let mut builder = Builder::new(1_000_000, true);
        for cycle in 0..n {
            let lateness = Span::from_ns(4_000 + cycle * 7_919 % 4_000);
            builder.push(&Sample { cycle: cycle as u64, lateness, ..Sample::default() });
        }
        builder.finish(0)
    }

    /// The same as a histogram of buckets of this width, of which those of 6 µs and more are
    /// so many for each one.
    fn histogram(n: i64, width_ns: i64, more: u64) -> LatenessSeries {
        let of_bucket = |at: i64| {
            let lower_ns = 4_000 + at * width_ns;
            let count = (n * width_ns / 4_000) as u64 * if lower_ns < 6_000 { 1 } else { more };
            ViewBucket { lower_ns, upper_ns: lower_ns + width_ns, count }
        };
        let buckets: Vec<_> = (0..4_000 / width_ns).map(of_bucket).collect();
        LatenessSeries::of_buckets(&buckets, 0, Some(7_999))
    }

    #[test]
    fn a_bucket_that_holds_the_deadline_makes_no_difference() {
        let n = 4_000_000;
        // 62.5 % of the samples are later than 5.5 µs, and 75 % of the histogram lie in buckets
        // that are not over by then.
        for sides in [[histogram(n, 1_000, 1), even(n)], [even(n), histogram(n, 1_000, 1)]] {
            let compared = compared_at(&sides, 5_500, None);
            let rate = compared.at_deadline().expect("a deadline");
            assert_eq!((rate.threshold_ns, rate.verdict), (5_999.0, Verdict::Undecided));
            assert!(rate.unsure > 0 && rate.more_cycles == Some(0), "{rate:?}");
            assert_eq!(compared.verdict, Verdict::Undecided, "{}", compared.statement);
            assert!(compared.statement.contains("(counted from 6.00 µs on)"), "{compared:?}");
        }
        // A real one is found all the same, and exactly where both have the same buckets.
        for reference in [histogram(n, 1_000, 1), even(n)] {
            let unsure = u64::from(reference.ordered);
            let compared = compared_at(&[reference, histogram(n, 1_000, 3)], 5_500, None);
            let rate = compared.at_deadline().expect("a deadline");
            assert_eq!((rate.verdict, rate.unsure.min(1)), (Verdict::Worse, unsure), "{rate:?}");
            assert!(rate.lower > 1.45 && rate.upper.is_some_and(|to| to < 1.55), "{rate:?}");
        }
    }

    #[test]
    fn buckets_that_have_no_end_in_common_tell_nothing_between_them() {
        // At the end of the wide bucket: what is left is one of the narrow ones.
        let sides = [histogram(400_000, 1_000, 1), histogram(400_000, 800, 1)];
        for deadline_ns in [5_500, 5_999] {
            let compared = compared_at(&sides, deadline_ns, None);
            let rate = compared.at_deadline().expect("a deadline");
            assert_eq!((rate.threshold_ns, rate.unsure), (5_999.0, 80_000), "{rate:?}");
            assert_eq!((rate.verdict, rate.more_cycles), (Verdict::Undecided, Some(0)), "{rate:?}");
        }
        // The last of the narrow ones, of which all may be later or none.
        let sides = [histogram(400_000, 1_000, 1), histogram(400_000, 700, 2)];
        let compared = compared_at(&sides, 6_500, None);
        let rate = compared.at_deadline().expect("a deadline");
        assert_eq!((rate.verdict, rate.more_cycles), (Verdict::Undecided, None), "{rate:?}");
        assert!(compared.is_open() && rate.unsure > 0, "{compared:?}");
        let text = &compared.statement;
        assert!(text.starts_with("undecided: keep samples, or ask about the end of "), "{text}");
        assert!(text.contains(": undecided, as a bucket holds it: "), "{text}");
    }

    #[test]
    fn several_runs_are_better_only_where_none_is_open() {
        let (better, open) = (at_50_us([900, 100], None), at_50_us([5, 7], None));
        let (worse, same) = (at_50_us([100, 900], None), at_50_us([9_000, 9_000], None));
        assert!(open.is_open() && !same.is_open(), "{open:?} {same:?}");
        let verdict = |runs: [&RunComparison; 2]| of_runs(&runs.map(Clone::clone));
        assert_eq!(verdict([&better, &open]), Verdict::Undecided);
        assert_eq!(verdict([&better, &same]), Verdict::Better);
        assert_eq!(verdict([&worse, &open]), Verdict::Worse);
        assert_eq!(verdict([&better, &worse]), Verdict::Mixed);
        assert_eq!(of_runs(&[]), Verdict::Undecided);
    }

    #[test]
    fn histograms_of_several_results_a_side_are_told_apart_by_how_they_scatter() {
        let verdict = |a: &[u64], b: &[u64]| {
            let series = |late: &[u64]| late.iter().copied().map(counts_alone).collect::<Vec<_>>();
            let sides = [series(a), series(b)];
            of_sides(&sides, &[])
        };
        let worse = verdict(&[100, 110, 90], &[900, 950, 870]);
        assert_eq!(worse.verdict, Verdict::Worse, "{worse:?}");
        assert_eq!(verdict(&[900, 950, 870], &[100, 110, 90]).verdict, Verdict::Better);
        // One burst in one of them: so do the results of a side differ by themselves.
        let burst = verdict(&[100, 110, 90], &[100, 2_500, 110]);
        assert_eq!(burst.verdict, Verdict::Undecided, "{burst:?}");
        assert!(!burst.statement.contains("order of the cycles"), "{burst:?}");
        assert!(!burst.statement.contains("results of"), "{}", burst.statement);
        // Three that scatter, all below the others: by their order one in ten is so by chance.
        let below = verdict(&[20, 40, 200], &[300, 900, 2_500]);
        assert_eq!((below.verdict, below.is_open()), (Verdict::Undecided, true), "{below:?}");
        let words = "each of the 3 results of B was so late more often than each of the 3 of A, \
                     which so few do by chance alone with a probability of 10 %: give 4 results a \
                     side or more, measured in turn";
        assert!(below.statement.contains(words), "{}", below.statement);
        assert!(below.rates.iter().any(|rate| rate.apart == Some([3, 3])), "{below:?}");
        // By two of them nobody knows how they scatter.
        let few = verdict(&[100, 110], &[900, 950]);
        assert_eq!(few.verdict, Verdict::Undecided, "{few:?}");
        assert!(few.rates.iter().all(|rate| rate.p_adjusted.is_none()), "{few:?}");
    }

    #[test]
    fn what_few_results_would_not_have_told_takes_more_of_each() {
        // By the normal level 21 789 releases a side are needed, by Student's of four degrees of
        // freedom three times as many: in simulated results a ratio of 2 is found in 29 of 100
        // cases by 30 000 of a side, in 83 by 65 000.
        let side = |late: u64, n: u64| {
            let early = (5_000, 5_001, n / 10 * 9 - late);
            let buckets = [early, (20_000, 20_100, n / 10), (90_000, 90_100, late)];
            let series =
                LatenessSeries::of_buckets(&buckets.map(ViewBucket::from), 0, Some(90_050));
            [(); 3].map(|()| series.clone())
        };
        let rate_of = |late: u64, n: u64| {
            let run = of_sides(&[side(late, n), side(late, n)], &[50_000, 60_000]);
            let rate = run.rates.iter().find(|rate| rate.threshold_ns > 5e4).cloned();
            (rate.expect("of the threshold"), run)
        };
        let (few, run) = rate_of(25, 10_000);
        assert_eq!((few.n_a, few.exceedances_a + few.exceedances_b), (30_000, 150));
        assert!(few.more_cycles.is_some_and(|more| (30_000..40_000).contains(&more)), "{few:?}");
        assert!(few.is_open() && few.detectable > Some(2.0), "{few:?}");
        assert!(run.statement.contains("; run both sides about 2."), "{}", run.statement);
        let (enough, _) = rate_of(55, 22_000);
        assert_eq!(enough.more_cycles, Some(0), "{enough:?}");
        assert!(enough.detectable <= Some(2.0), "{enough:?}");
    }

    #[test]
    fn a_run_that_told_nothing_takes_more_releases_however_its_scatter_is_known() {
        for (df, df_grows) in [(f64::INFINITY, true), (12.0, true), (1.0, true), (4.0, false)] {
            for n in (1..60).map(|step| step * 4_000) {
                let dispersion = Dispersion { factor: 2.0, df, df_grows, batch: 1 };
                let late = n / 200;
                let counts = Counts { dispersion, ..counts([late, late], [n, n]) };
                let needed = releases_needed(&counts, 0.01).expect("some are late");
                let detectable = detectable(&counts, 0.01);
                let is_told = detectable.is_some_and(|ratio| ratio <= RATIO);
                assert_eq!(needed == n, is_told, "{n} {df}: {needed}, {detectable:?}");
                assert!(needed >= n && needed >= super::needed(&counts, 0.01, RATIO).unwrap_or(0));
            }
        }
    }

    #[test]
    fn histograms_of_one_machine_are_seldom_told_apart() {
        // Counts that scatter twenty times as much as independent ones do, from result to result.
        let mut rng = Rng::new(11);
        let mut draw = || {
            let bursts = (0..200).filter(|_| rng.uniform() < 0.1).count();
            counts_alone(20 * bursts as u64)
        };
        let trials = 200;
        let differing = (0..trials).filter(|_| {
            let sides = [[(); 3].map(|()| draw()), [(); 3].map(|()| draw())];
            of_sides(&sides, &[90_000]).verdict != Verdict::Undecided
        });
        // Twenty are twice as many as the confidence allows.
        let differing = differing.count();
        assert!(differing <= 20, "{differing} of {trials}");
    }

    #[test]
    fn a_side_that_one_stall_can_fill_is_not_tested() {
        let side = |n: u64, is_late: fn(u64) -> bool| {
            let mut builder = Builder::new(1_000_000, true);
            for cycle in 0..n {
                let lateness = Span::from_ns(if is_late(cycle) { 400_000 } else { 5_000 });
                builder.push(&Sample { cycle, lateness, ..Sample::default() });
            }
            builder.finish(0)
        };
        let (calm, thresholds_ns) = (side(289, |_| false), [100_000]);
        let compared = |a: &LatenessSeries, b: &LatenessSeries, period_ns| {
            let [a, b] = [a, b].map(|series| [Part { result: 0, series }]);
            let sides = [&a[..], &b];
            let runs = Runs {
                sides,
                thresholds_ns: &thresholds_ns,
                deadline_ns: Some(100_000),
                labels: ["A", "B"],
                period_ns: Some(period_ns),
                ..Runs::default()
            };
            compare(&[runs]).0.remove(0)
        };
        // Six of seven in a row: by counts alone that is far more often.
        let short = compared(&calm, &side(7, |cycle| cycle < 6), 1_000_000);
        assert!(short.verdict == Verdict::Undecided && short.is_open(), "{}", short.statement);
        let words = "undecided: measure longer: one stall may have filled a side";
        assert!(short.statement.starts_with(words), "{}", short.statement);
        let words = "A 0 of 289, B 6 of 7: not tested";
        assert!(short.statement.ends_with(words), "{}", short.statement);
        // Nor as many as would show twice as often.
        let half = |n| side(n, |cycle| cycle % 2 == 0);
        let open = compared(&half(1_000), &half(99), 1_000_000);
        assert!(open.is_open() && open.rates.iter().any(|rate| !rate.is_open()), "{open:?}");
        // It goes by time: 7.5 ms of a loop of 20 kHz are one stall, seconds of 1 Hz are none.
        let all_late = side(150, |_| true);
        assert_eq!(compared(&calm, &all_late, 50_000).verdict, Verdict::Undecided);
        assert_eq!(compared(&calm, &side(30, |_| true), 1_000_000_000).verdict, Verdict::Worse);
        // Half a second of them, with others between.
        let long = compared(&calm, &side(500, |cycle| cycle % 3 == 0), 1_000_000);
        assert_eq!(long.verdict, Verdict::Worse, "{}", long.statement);
    }

    #[test]
    fn no_releases_and_one_release_say_nothing() {
        let (none, single) = (
            Builder::new(1_000, true).finish(0),
            LatenessSeries::of_buckets(&[(1, 2, 1).into()], 0, None),
        );
        for (a, b) in [(&none, &none), (&none, &single), (&single, &none), (&single, &single)] {
            let compared = verdict_of(a, b);
            assert_eq!(compared.verdict, Verdict::Undecided);
            assert!(!compared.statement.is_empty());
        }
        assert!(compare(&[]).0.is_empty());
    }

    #[test]
    fn a_series_keeps_every_release_in_bounded_memory() {
        let mut builder = Builder::new(1_000_000, true);
        let mut cycle = 0;
        let mut missed = 0;
        let mut rng = Rng::new(5);
        let mut stalled = 0;
        for _ in 0..100_000 {
            let gap = if rng.below(100) == 0 { rng.below(50) as u64 } else { 0 };
            let late = Span::from_ns(5_000 + gap as i64 * 1_000_000);
            missed += stalled;
            cycle += 1 + stalled;
            builder.push(&Sample { cycle, lateness: late, ..Sample::default() });
            stalled = gap;
        }
        let series = builder.finish(missed + 3);
        assert!(series.chunks.len() <= CHUNKS_MAX + 1 && series.is_sound());
        assert_eq!(series.releases(), 100_000 + missed + 3);
        // Gaps that cannot all have been missed are not counted as such.
        let mut builder = Builder::new(1_000_000, true);
        for cycle in [0, 10] {
            builder.push(&Sample { cycle, ..Sample::default() });
        }
        assert_eq!(builder.finish(4).releases(), 6);
    }

    #[test]
    fn the_largest_numbers_do_no_harm() {
        let far = punctual_core::sample::CYCLE_MAX;
        for period in [0, 1, u64::MAX] {
            for lateness in [i64::MIN, -1, 0, i64::MAX] {
                let mut builder = Builder::new(period, true);
                let lateness = Span::from_ns(lateness);
                builder.push(&Sample { cycle: 0, lateness, flags: Flags::FIRST });
                builder.push(&Sample { cycle: far, lateness, flags: Flags::NONE });
                let series = builder.finish(far - 1);
                assert_eq!(series.releases(), far + 1);
                assert_eq!(verdict_of(&series, &series).verdict, Verdict::Undecided);
            }
        }
    }

    #[test]
    fn the_wakes_of_a_series_are_its_cycles_that_ran() {
        let series = |releases: bool| {
            let mut builder = Builder::new(1_000_000, true);
            let mut rng = Rng::new(9);
            let (mut cycle, mut missed) = (0, 0);
            for k in 0..20_000_u64 {
                let gap = if releases && rng.below(50) == 0 { rng.below(9) as u64 } else { 0 };
                (cycle, missed) = (cycle + 1 + gap, missed + gap);
                let lateness = Span::from_ns(5_000 + (k as i64 * 7_919) % 1_000);
                builder.push(&Sample { cycle, lateness, ..Sample::default() });
            }
            (builder.finish(missed + 2), missed + 2)
        };
        let (releases, missed) = series(true);
        let wakes = releases.wakes().expect("kept apart");
        assert_eq!((releases.releases(), wakes.releases()), (20_000 + missed, 20_000));
        assert!(wakes.of_wakes && wakes.is_sound() && releases.is_sound());
        assert_eq!((wakes.missed, wakes.max_ns), (0, Some(5_999)));
        assert!(releases.max_ns > Some(1_000_000), "a missed release was later than all wakes");
        let total =
            |series: &LatenessSeries| series.chunks.iter().fold(Vec::new(), |a, b| merged(&a, b));
        let (calm, _) = series(false);
        assert_eq!(total(&wakes), total(&calm.wakes().expect("no gaps")), "the same wakes");
        let apart = LatenessSeries { missed_chunks: Vec::new(), ..releases };
        assert_eq!(apart.wakes(), None);
    }

    #[test]
    fn a_quantile_is_compared_as_one_test() {
        let alternating = series::tests::alternating();
        let [even, odd] = [0, 1].map(|rest| alternating.of_turns(10, |turn| turn % 2 == rest));
        let p99 = quantile([&even, &odd], Probability::P99).expect("3 700 releases and more");
        assert!((8_000.0..10_000.0).contains(&p99.difference_ns), "{p99:?}");
        assert!(p99.lower_ns.is_some_and(|ns| ns > 8_000.0), "{p99:?}");
        let same = quantile([&even, &even], Probability::P99).expect("enough");
        assert!(same.lower_ns.is_some_and(|ns| ns <= 0.0) && same.upper_ns >= Some(0.0));
        let few = alternating.of_turns(100, |turn| turn == 0);
        assert_eq!(quantile([&few, &even], Probability::P99), None);
    }

    fn counts(exceedances: [u64; 2], releases: [u64; 2]) -> Counts {
        let (threshold_ns, unsure) = (0, [0; 2]);
        let (dispersion, apart) = (INDEPENDENT, None);
        Counts { threshold_ns, exceedances, unsure, releases, dispersion, apart }
    }

    /// Golden numbers of scipy: `analysis/oracles/rate_ratio.py`.
    #[test]
    fn intervals_and_p_values_are_scipys() {
        let golden = include_str!("../oracles/rate_ratio.golden");
        let mut lines = 0;
        for line in golden.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<f64> =
                line.split_whitespace().map(|field| field.parse().expect("a number")).collect();
            let [a, b, n_a, n_b, alpha, lower, upper, p] = fields[..] else { panic!("{line}") };
            let counts = counts([a as u64, b as u64], [n_a as u64, n_b as u64]);
            let interval = counts.interval(alpha);
            let near = |x: f64, y: f64| (x - y).abs() <= 1e-8 * y.abs() || x == y;
            assert!(near(interval.lower, lower), "{line}: {interval:?}");
            assert!(near(interval.upper.unwrap_or(f64::INFINITY), upper), "{line}: {interval:?}");
            assert!(near(counts.p_value(), p), "{line}: {}", counts.p_value());
            lines += 1;
        }
        assert!(lines >= 20, "{lines}");
    }

    #[test]
    fn a_p_value_and_an_interval_agree() {
        for df in [f64::INFINITY, 12.0, 2.0] {
            for factor in [1.0, 3.5] {
                for b in 0..80 {
                    let dispersion = Dispersion { factor, df, ..INDEPENDENT };
                    let counts = Counts { dispersion, ..counts([20, b], [10_000, 12_000]) };
                    let interval = counts.interval(0.01);
                    let outside = interval.lower > 1.0 || interval.upper.is_some_and(|u| u < 1.0);
                    assert_eq!(outside, counts.p_value() <= 0.01, "{b} {df} {factor}");
                }
            }
        }
    }

    #[test]
    fn nothing_against_nothing_says_nothing() {
        let none = counts([0, 0], [100, 100]);
        assert_eq!((none.p_value(), none.ratio()), (1.0, None));
        assert_eq!(none.interval(0.05), Interval { lower: 0.0, upper: None });
    }

    #[test]
    fn each_step_has_its_level_until_one_fails() {
        let tested = holm(&[0.04, 0.001, 0.02], 0.05);
        let adjusted: Vec<f64> = tested.iter().map(|test| test.adjusted).collect();
        assert_eq!(adjusted, [0.04, 0.003, 0.04]);
        let tested = holm(&[0.03, 0.001, 0.04], 0.05);
        // 0.03 · 2 fails, and so does all that follows, at the same level.
        assert_eq!(tested[0], Tested { adjusted: 0.06, level: 0.025 });
        assert_eq!(tested[2], Tested { adjusted: 0.06, level: 0.025 });
        assert!(holm(&[], 0.05).is_empty());
    }
}
