//! Size and power on simulated runs whose truth is known; bad and extreme input.

use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;

use super::series::{Builder, CHUNKS_MAX, LatenessSeries, merged};
use super::*;
use crate::rng::Rng;

/// A body of 5 µs and more, and bursts of geometric length `mean` that are later than 100 µs:
/// one release in 1/`rate` begins one.
pub(super) fn run(rng: &mut Rng, n: u64, rate: f64, mean: f64) -> LatenessSeries {
    let mut builder = Builder::new(1_000_000, true);
    let mut late = false;
    for cycle in 0..n {
        late = if late { rng.uniform() >= 1.0 / mean } else { rng.uniform() < rate };
        let ns = if late {
            100_000.0 * (1.0 + rng.exponential())
        } else {
            5_000.0 * (1.0 + 0.1 * rng.exponential())
        };
        builder.push(&Sample { cycle, lateness: Span::from_ns(ns as i64), ..Sample::default() });
    }
    builder.finish(0)
}

pub(super) fn verdict_of(a: &LatenessSeries, b: &LatenessSeries) -> RunComparison {
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
    let rate = compared.rates.iter().find(|rate| rate.clustered).expect("none against thousands");
    assert!(rate.is_open() && rate.dispersion > 100.0, "{rate:?}");
    let text = compared.statement.replace('\u{a0}', " ");
    assert!(text.starts_with("undecided: later than "), "{text}");
    assert!(text.contains(" of 200 000 against 0 of 200 000"), "{text}");
    assert!(text.contains("they come in clusters, and all ") && text.contains(" ratio "), "{text}");
    let far = compared.quantiles.iter().find(|of| of.p == 0.99).expect("of 200 000");
    assert!(far.a_ns < 50_000.0 && far.b_ns > 1e6 && far.p_value.is_none(), "{far:?}");
    let why = far.untested.as_deref().expect("a reason").replace('\u{a0}', " ");
    assert!(why.starts_with("of 200 000 releases the 2 000 beyond it count as about "), "{why}");
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
    let (none, one) =
        (Builder::new(1_000, true).finish(0), LatenessSeries::of_buckets(&[(1, 2, 1)], 0, None));
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
