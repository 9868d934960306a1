//! Compares two runs: significant differences, and the cycles needed to detect one.
//!
//! Ratios of exceedance rates at common thresholds (exact), differences of quantiles
//! ([`bootstrap`]), both adjusted for dependence and for how many tests there are. Maxima are never
//! compared: the largest of n depends more on n and on chance than on the machine. Pure; the series
//! come from samples or from a baseline, bounded in size ([`series`]).

pub mod bootstrap;
mod dispersion;
pub mod distributions;
mod outcome;
mod rates;
pub mod series;

use crate::claim::bound::CONFIDENCE;
use crate::quantile::Probability;
use crate::summary::SummaryStats;
use bootstrap::{Quantiles, quantiles};
pub use dispersion::Part;
pub use outcome::{Family, QuantileDifference, RateRatio, RunComparison, Verdict};
use rates::{Counts, Tested, detectable, holm, releases_needed, thresholds, would_have_detected};
use series::LatenessSeries;

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
        comparison.statement = outcome::statement(&comparison, self.is_testable());
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

/// How a quantile of B differs from that of A, as one test; `None` where a side has too few
/// releases to show it.
///
/// For runs that took turns and are compared in turns that did not choose what is compared.
pub fn quantile(sides: [&LatenessSeries; 2], p: Probability) -> Option<QuantileDifference> {
    let ordered = sides.iter().all(|series| series.ordered);
    let [a, b] = sides.map(|series| [Part { result: 0, series }]);
    let found = quantiles([&a, &b], [None; 2], ordered);
    let of = found.iter().find(|of| of.p == p)?;
    let alpha = 1.0 - CONFIDENCE;
    let test = of.is_tested().then(|| holm(&[of.p_value()], alpha));
    Some(quantile_difference(of, test.and_then(|tested| tested.first().copied()), alpha))
}

#[cfg(test)]
mod tests {
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Span;

    use super::series::{Builder, CHUNKS_MAX, LatenessSeries, merged};
    use super::*;
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
        let runs = Runs {
            name: "idle",
            sides: [&a, &b],
            shown: [None; 2],
            thresholds_ns: &[],
            as_if_independent: false,
        };
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
        assert!(same.rates.iter().any(|rate| rate.more_cycles.is_some_and(|more| more > 0)));
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
        assert!(text.starts_with("undecided: later than "), "{text}");
        assert!(text.contains(" of 200 000 against 0 of 200 000"), "{text}");
        assert!(
            text.contains("they come in clusters, and all ") && text.contains(" ratio "),
            "{text}"
        );
        let far = compared.quantiles.iter().find(|of| of.p == 0.99).expect("of 200 000");
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
        let whys: Vec<_> = short.quantiles.iter().filter_map(|of| of.untested.as_deref()).collect();
        assert_eq!(whys, ["3 of 300 releases lie beyond it; 20 are needed on each side"]);
    }

    #[test]
    fn a_single_burst_is_no_difference() {
        let calm: Vec<i64> = (0..20_000).map(|i| 5_000 + (i * 7_919) % 1_000).collect();
        let of = |latenesses: &[i64]| {
            let mut builder = Builder::new(1_000_000, true);
            for (cycle, &ns) in latenesses.iter().enumerate() {
                let cycle = cycle as u64;
                builder.push(&Sample { cycle, lateness: Span::from_ns(ns), ..Sample::default() });
            }
            builder.finish(0)
        };
        let mut burst = calm.clone();
        burst[7_000..7_040].fill(500_000);
        let compared = verdict_of(&of(&calm), &of(&burst));
        let rate = compared.rates.iter().find(|rate| rate.exceedances_a == 0).expect("the burst");
        assert!(rate.exceedances_b >= 20 && rate.dispersion > 10.0, "{rate:?}");
        assert_eq!(rate.verdict, Verdict::Undecided, "{rate:?}");
    }

    #[test]
    fn a_histogram_alone_has_no_verdict_unless_requested() {
        let a = LatenessSeries::of_buckets(
            &[(5_000, 5_001, 90_000), (90_000, 90_100, 100)],
            0,
            Some(90_050),
        );
        let b = LatenessSeries::of_buckets(
            &[(5_000, 5_001, 90_000), (90_000, 90_100, 900)],
            0,
            Some(90_050),
        );
        assert_eq!(verdict_of(&a, &b).verdict, Verdict::Undecided);
        assert!(verdict_of(&a, &b).statement.contains("order of the cycles"));
        let [a, b] = [&a, &b].map(|series| [Part { result: 0, series }]);
        let sides = [&a[..], &b[..]];
        let runs = Runs {
            name: "x",
            sides,
            shown: [None; 2],
            thresholds_ns: &[50_000],
            as_if_independent: true,
        };
        assert_eq!(compare(&[runs]).0[0].verdict, Verdict::Worse);
    }

    #[test]
    fn no_releases_and_one_release_say_nothing() {
        let (none, one) = (
            Builder::new(1_000, true).finish(0),
            LatenessSeries::of_buckets(&[(1, 2, 1)], 0, None),
        );
        for (a, b) in [(&none, &none), (&none, &one), (&one, &none), (&one, &one)] {
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
        let (all, missed) = series(true);
        let wakes = all.wakes().expect("kept apart");
        assert_eq!((all.releases(), wakes.releases()), (20_000 + missed, 20_000));
        assert!(wakes.of_wakes && wakes.is_sound() && all.is_sound());
        assert_eq!((wakes.missed, wakes.max_ns), (0, Some(5_999)));
        assert!(all.max_ns > Some(1_000_000), "a missed release was later than all wakes");
        let total =
            |series: &LatenessSeries| series.chunks.iter().fold(Vec::new(), |a, b| merged(&a, b));
        let (calm, _) = series(false);
        assert_eq!(total(&wakes), total(&calm.wakes().expect("no gaps")), "the same wakes");
        let apart = LatenessSeries { missed_chunks: Vec::new(), ..all };
        assert_eq!(apart.wakes(), None);
    }

    #[test]
    fn a_quantile_is_compared_as_one_test() {
        let all = series::tests::alternating();
        let [even, odd] = [0, 1].map(|rest| all.of_turns(10, |turn| turn % 2 == rest));
        let p99 = quantile([&even, &odd], Probability::P99).expect("3 700 releases and more");
        assert!((8_000.0..10_000.0).contains(&p99.difference_ns), "{p99:?}");
        assert!(p99.lower_ns.is_some_and(|ns| ns > 8_000.0), "{p99:?}");
        let same = quantile([&even, &even], Probability::P99).expect("enough");
        assert!(same.lower_ns.is_some_and(|ns| ns <= 0.0) && same.upper_ns >= Some(0.0));
        let few = all.of_turns(100, |turn| turn == 0);
        assert_eq!(quantile([&few, &even], Probability::P99), None);
    }
}
