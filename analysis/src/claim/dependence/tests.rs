//! Counts against counting, clusters against series that have them.

use super::*;
use crate::release::model;
use proptest::prelude::*;

fn tails(latenesses: impl IntoIterator<Item = i64>, requested: &[i64]) -> Tails {
    let mut exceedances = Exceedances::new(0, requested);
    latenesses.into_iter().for_each(|ns| exceedances.push(ns, 0, 0));
    exceedances.finish(0)
}

#[test]
fn the_ladder_holds_a_tenth_of_every_period() {
    let ladder: Vec<i64> = ladder().collect();
    assert_eq!((ladder[0], ladder[1], ladder[ladder.len() - 1]), (100, 200, 1_000_000_000));
    assert!(crate::verdict::periods_ns().all(|ns| ladder.contains(&(ns / 10))));
}

#[test]
fn neighbours_are_a_cluster_and_loners_are_not() {
    // Bursts of ten late cycles at irregular distances: θ = 1/10. One every 50: no dependence.
    let mut state = 1u64;
    let clustered = (0..5_000).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let is_late = (state >> 33).is_multiple_of(50);
        [if is_late { 90_000 } else { 5_000 }; 10]
    });
    let theta = tails(clustered, &[]).theta_at(50_000);
    assert!((0.06..=0.11).contains(&theta), "{theta}");
    let alone = (0..50_000).map(|i| if i % 50 == 0 { 90_000 } else { 5_000 });
    let theta = tails(alone, &[]).theta_at(50_000);
    assert!(theta > 0.9, "{theta}");
}

#[test]
fn one_burst_among_many_cycles_counts_as_one() {
    let burst = (0..100_000).map(|i| if (500..540).contains(&i) { 90_000 } else { 5_000 });
    let tails = tails(burst, &[]);
    assert_eq!(tails.exceedances(50_000), Some(40));
    assert!(tails.theta_at(50_000) <= 1.0 / 40.0);
    // A threshold that everything exceeds says nothing about dependence.
    assert_eq!(tails.theta_at(2_000), 1.0);
}

#[test]
fn a_gap_of_missed_releases_is_one_cluster() {
    let mut exceedances = Exceedances::new(0, &[]);
    (0..10_000).for_each(|i| exceedances.push(5_000, if i % 1_000 == 999 { 20 } else { 0 }, 5_000));
    let tails = exceedances.finish(200);
    assert_eq!((tails.n(), tails.exceedances(1_000_000)), (10_200, Some(200)));
    assert!(tails.theta_at(1_000_000) <= 0.05, "{}", tails.theta_at(1_000_000));
}

#[test]
fn cycles_that_went_unrecorded_may_all_have_been_late_and_together() {
    let lost = |unrecorded| {
        let mut exceedances = Exceedances::new(1_000_000, &[]);
        (0..10_000).for_each(|i| exceedances.push(5_000, if i == 4_000 { 40 } else { 0 }, 0));
        exceedances.finish_with(40 - unrecorded, unrecorded)
    };
    let (none, some) = (lost(0), lost(30));
    assert_eq!((none.n(), some.n()), (10_040, 10_040));
    // A missed release is late until the next wake; of one that nobody saw nothing is known, nor
    // which of the forty were missed, but that each of these was a period late.
    assert_eq!(none.exceedances(2_000_000), Some(39));
    assert_eq!(none.exceedances(50_000_000), Some(0));
    assert_eq!(some.exceedances(2_000_000), Some(40));
    assert_eq!(some.exceedances_within(2_000_000), (0, 40));
    assert_eq!(some.exceedances_within(500_000), (10, 40));
    assert_eq!(some.exceedances_within(50_000_000), (0, 40));
    assert!(none.theta_at(2_000_000) <= 1.0 / 39.0 && some.theta_at(50_000_000) <= 1.0 / 40.0);
    let p = |tails: &Tails| tails.p_upper(50_000_000).unwrap();
    assert!(p(&none) < 1e-3 && p(&some) > 40.0 / 10_040.0, "{} {}", p(&none), p(&some));
}

#[test]
fn a_missed_release_is_as_late_as_what_was_left_of_the_stall() {
    // 10.4 ms late at 1 ms: ten releases went by, 9.4 to 0.4 ms before the wake.
    let mut exceedances = Exceedances::new(1_000_000, &[]);
    exceedances.push(10_400_000, 0, 0);
    exceedances.push(5_000, 10, 10_400_000);
    let tails = exceedances.finish(10);
    let above = |ns| tails.exceedances(ns);
    assert_eq!(
        (above(10_000_000), above(5_000_000), above(2_000_000)),
        (Some(1), Some(6), Some(9))
    );
    // To a loop of this period, or a shorter one, all of them were lost.
    assert_eq!((above(500_000), above(100_000)), (Some(11), Some(11)));
}

proptest! {
    #[test]
    fn missed_releases_agree_with_the_definition(
        period in 400_000i64..2_000_000,
        cycles in prop::collection::vec((0i64..20_000_000, 0u64..30), 1..60),
        trailing in 0u64..5,
    ) {
        let mut exceedances = Exceedances::new(period, &[]);
        let (mut all, mut cycle, mut previous) = (Vec::new(), 0, 0);
        for &(ns, missed) in &cycles {
            // Releases that passed before a late wake were missed.
            let missed = if all.is_empty() { 0 } else { missed + (previous / period) as u64 };
            cycle += missed + 1;
            all.push((cycle, ns));
            exceedances.push(ns, missed, previous);
            previous = ns;
        }
        let model = model::Series::of(period, &all);
        let (known, _) = model.known();
        let missed = model.missed().len() as u64 + trailing;
        let tails = exceedances.finish(missed);
        prop_assert_eq!(tails.n(), known.len() as u64 + trailing);
        for tail in tails.tails() {
            let at = tail.threshold_ns;
            let counted = known.iter().filter(|&&ns| ns > at).count() as u64;
            // One that no wake followed may have been later than anything, and was a period.
            let surely = if at < period { trailing } else { 0 };
            prop_assert_eq!(tails.exceedances(at), Some(counted + trailing));
            prop_assert_eq!(tails.exceedances_within(at), (counted + surely, counted + trailing));
        }
    }

    #[test]
    fn counts_agree_with_counting(
        values in prop::collection::vec(
            prop_oneof![-500i64..500, 0i64..2_000_000, any::<i64>()],
            0..6_000,
        ),
        requested in prop::collection::vec(-1_000i64..1_000_000, 0..4),
    ) {
        let tails = tails(values.iter().copied(), &requested);
        prop_assert!(tails.tails().is_sorted_by(|a, b| a.threshold_ns < b.threshold_ns));
        for tail in tails.tails() {
            let counted = values.iter().filter(|&&ns| ns > tail.threshold_ns).count();
            prop_assert_eq!(tail.exceedances, counted as u64);
            let theta = tails.theta_at(tail.threshold_ns);
            prop_assert!(theta > 0.0 && theta <= 1.0);
        }
        prop_assert!(requested.iter().all(|&ns| tails.exceedances(ns).is_some()));
    }
}
