//! Tests of what is made from counts alone: what is kept, what is refused, what is not claimed.

use super::*;
use proptest::prelude::*;
use punctual_analysis::claim::{Claim, Level};
use punctual_analysis::imported::ImportedQuantity;

fn source() -> Source {
    Source { format: "test -h", program: "test", ..Source::default() }
}

/// Ten buckets of 1 µs with a hundred values each, and `beyond` more above them.
fn builder(beyond: u64) -> RunBuilder {
    let mut run = RunBuilder::new("run", ImportedQuantity::Lateness, 1_000, &[]);
    for bucket in 0..10 {
        run.push(bucket * 1_000, bucket * 1_000 + 999, 100).expect("counted");
    }
    (run.stated.min_ns, run.stated.mean_ns) = (Some(0.0), Some(5_000.0));
    run.stated.max_ns = Some(if beyond > 0 { 70_000.0 } else { 9_000.0 });
    (run.stated.rounding_ns, run.stated.limit_ns, run.stated.n) =
        (999, Some(10_000), Some(1_000 + beyond));
    run
}

#[test]
fn values_that_went_unrecorded_weaken_what_is_claimed() {
    let outcome = |unrecorded| {
        let mut builder = RunBuilder::new("x", ImportedQuantity::Lateness, 1, &[]);
        (builder.stated.n, builder.stated.min_ns, builder.stated.max_ns) =
            (Some(10_000), Some(3_000.0), Some(9_000.0));
        (builder.stated.mean_ns, builder.stated.unrecorded) = (Some(5_000.0), unrecorded);
        builder.push(3_000, 3_000, 9_900).unwrap();
        builder.push(9_000, 9_000, 100).unwrap();
        builder.finish(&source()).unwrap().outcome
    };
    let (whole, lossy) = (outcome(0), outcome(500));
    assert_eq!(whole.claims.len(), lossy.claims.len());
    let level = |claims: &[Claim], level| -> Vec<Claim> {
        claims.iter().filter(|claim| claim.level == level).cloned().collect()
    };
    let pairs = level(&whole.claims, Level::L1);
    for (whole, lossy) in pairs.iter().zip(level(&lossy.claims, Level::L1)) {
        assert!(lossy.p > whole.p && lossy.p > Some(500.0 / 10_500.0), "{lossy:?}");
        assert!(lossy.conditions.contains("500 more went unrecorded"), "{}", lossy.conditions);
    }
    let p99 = |claims: &[Claim]| level(claims, Level::L2)[2].bound_ns;
    assert_eq!((p99(&whole.claims), p99(&lossy.claims)), (Some(9_000.0), None));
    let ask = punctual_analysis::claim::ask::Ask::parse("p(lateness>5us)<0.5").unwrap();
    let counted = lossy.counted(&ask).unwrap();
    assert_eq!((counted.least, counted.most, counted.n), (100, 600, 10_500));
}

#[test]
fn quantiles_are_at_the_upper_end_of_their_bucket() {
    let outcome = builder(0).finish(&source()).expect("sound").outcome;
    assert_eq!(outcome.cycles, 1_000);
    assert_eq!(outcome.lateness_ns.p90.map(|ns| ns >= 8_999.0), Some(true));
    assert_eq!((outcome.lateness_ns.max, outcome.missed), (Some(9_000.0), None));
    let view: Vec<_> = outcome.histogram.buckets;
    assert_eq!((view[0], view.len()), ((0, 1_000, 100), 10));
    assert_eq!(outcome.tails.exceedances(5_000), Some(500), "5.0 to 5.999 may exceed 5");
}

#[test]
fn beyond_the_histogram_nothing_is_claimed() {
    let outcome = builder(50).finish(&source()).expect("sound").outcome;
    let imported = outcome.imported.expect("imported");
    assert_eq!((imported.overflow, outcome.lateness_ns.p99), (50, None));
    assert!(outcome.lateness_ns.p90.is_some());
    let refused: Vec<_> = outcome.claims.iter().filter(|claim| !claim.given).collect();
    let is_in_the_gap = |ns: f64| (10_000.0..70_999.0).contains(&ns);
    assert!(refused.iter().all(|claim| claim.bound_ns.is_none_or(is_in_the_gap)));
    assert!(refused.iter().any(|claim| claim.level == Level::L1));
    assert!(refused.iter().any(|claim| claim.level == Level::L2 && claim.p == Some(0.99)));
    // Above the maximum the file knows: nothing was there.
    assert_eq!(outcome.tails.exceedances(100_000), Some(0));
    assert_eq!(outcome.tails.exceedances(50_000), Some(50));
}

#[test]
fn numbers_that_contradict_each_other_are_refused() {
    type Change = fn(&mut RunBuilder);
    let cases: [(Change, &str); 6] = [
        (|run| run.stated.n = Some(999), "more than the 999 counted"),
        (|run| run.stated.beyond = Some(7), "7 beyond it"),
        (|run| run.stated.max_ns = Some(7_000.0), "above the maximum"),
        (|run| run.stated.min_ns = Some(1_000.0), "below the minimum"),
        (|run| run.stated.mean_ns = Some(90_000.0), "not in this order"),
        (|run| run.stated.n = Some(1_001), "the maximum is within it"),
    ];
    for (change, word) in cases {
        let mut run = builder(0);
        change(&mut run);
        let why = run.finish(&source()).expect_err(word);
        assert!(why.contains(word), "{why}");
    }
    let mut run = RunBuilder::new("run", ImportedQuantity::Lateness, 1, &[]);
    assert!(run.push(0, 0, u64::MAX).is_err());
}

#[test]
fn values_in_order_keep_their_dependence() {
    let mut run = RunBuilder::in_order("run", ImportedQuantity::Lateness, 1_000, &[]);
    for k in 0..20_000 {
        let late = (5_000..5_040).contains(&k);
        run.push_value(if late { 90_000 } else { 5_000 }).expect("counted");
    }
    let outcome = run.finish(&source()).expect("sound").outcome;
    assert!(outcome.tails.theta_at(50_000) < 0.1, "one burst is one event");
    assert_eq!(outcome.tails.exceedances(50_000), Some(40));
    assert_eq!(outcome.lateness_ns.max, Some(90_000.0));
    assert!(outcome.lateness_ns.stddev.is_some());
}

proptest! {
    #[test]
    fn no_count_is_lost_and_no_exceedance_understated(
        counts in prop::collection::vec(0u64..50, 1..2_000), width in 1i64..5_000,
        requested in 0i64..1_000_000,
    ) {
        let mut run = RunBuilder::new("run", ImportedQuantity::Lateness, width, &[requested]);
        let mut least = 0;
        for (bucket, &count) in counts.iter().enumerate() {
            let lowest = bucket as i64 * width;
            run.push(lowest, lowest + width - 1, count).expect("counted");
            least += if lowest > requested { count } else { 0 };
        }
        let outcome = run.finish(&source()).expect("sound").outcome;
        let n: u64 = counts.iter().sum();
        prop_assert_eq!(outcome.cycles, n);
        prop_assert_eq!(outcome.lateness.count(), n);
        prop_assert_eq!(outcome.histogram.buckets.iter().map(|b| b.2).sum::<u64>(), n);
        prop_assert!(outcome.histogram.buckets.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        let exceedances = outcome.tails.exceedances(requested).unwrap();
        prop_assert!(exceedances >= least && exceedances <= n);
        prop_assert_eq!(outcome.tails.exceedances_within(requested), (least, exceedances));
    }
}
