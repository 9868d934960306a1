//! Small sets that are counted instant by instant, and large ones that must end.

use std::collections::BTreeSet;

use super::*;
use proptest::prelude::*;

fn single(weight: u64) -> Group {
    Group { members: vec![(0, weight)], fixed: None }
}

/// The load at every instant, counted one by one.
fn slow_peak(classes: &[Class], phases: &[Vec<u64>], instants: u64) -> u64 {
    let load = |at: u64| {
        let released = classes.iter().zip(phases).flat_map(|(class, phases)| {
            class.groups.iter().zip(phases).flat_map(move |(group, phase)| {
                let due = move |of: &u64| {
                    (at + class.period - (phase + of) % class.period).is_multiple_of(class.period)
                };
                group.members.iter().filter(move |m| due(&m.0)).map(|m| m.1)
            })
        });
        released.sum::<u64>()
    };
    (0..instants).map(load).max().unwrap_or(0)
}

#[test]
fn a_hundred_tasks_of_period_100_are_released_one_a_quantum() {
    // AnT §4: "3 or 4" of Fig. 11 is not what balanced placement gives.
    let classes = [Class { period: 100, groups: vec![single(1); 100] }];
    let phases = balance(&classes);
    let peak = peak(&classes, &phases);
    assert_eq!(peak, 1);
    let distinct: BTreeSet<u64> = phases[0].iter().copied().collect();
    assert_eq!(distinct.len(), 100);
}

#[test]
fn automotive_periods_peak_at_eleven_at_most() {
    let periods = [1, 2, 5, 10, 20, 50, 100, 200, 1000];
    let groups = |n: usize| vec![single(1); n];
    // 100 tasks: 11 of each period, one more of the longest.
    let classes: Vec<Class> = periods
        .iter()
        .map(|&period| Class { period, groups: groups(if period == 1000 { 12 } else { 11 }) })
        .collect();
    let bound: f64 = classes.iter().map(|c| c.groups.len() as f64 / c.period as f64).sum();
    let phases = balance(&classes);
    let peak = peak(&classes, &phases);
    assert_eq!(peak, slow_peak(&classes, &phases, 1000));
    assert!(peak as f64 <= bound.ceil() + 1.0, "{peak} with a bound of {bound}");
}

#[test]
fn a_long_major_frame_is_bounded_from_above() {
    let classes: Vec<Class> = [3, 7, 11, 13, 17, 19, 23, 29]
        .iter()
        .map(|&period| Class { period, groups: vec![single(1); 2] })
        .collect();
    let phases = balance(&classes);
    let bound = peak(&classes, &phases);
    // Coprime periods meet whatever the phases are: one of each at least.
    assert_eq!(bound, 8);
    assert!(slow_peak(&classes, &phases, 100_000) <= bound);
}

#[test]
fn fixed_phases_stay_and_chains_keep_their_distance() {
    let chain = Group { members: vec![(0, 1), (2, 1), (4, 1)], fixed: None };
    let fixed = Group { members: vec![(0, 5)], fixed: Some(3) };
    let classes = [Class { period: 10, groups: vec![chain, fixed, single(2)] }];
    let phases = balance(&classes);
    let peak = peak(&classes, &phases);
    assert_eq!((phases[0][1], peak), (3, 5));
    assert_ne!(phases[0][2], 3);
    assert!(![1, 3, 9].contains(&phases[0][0]), "{phases:?}");
}

#[test]
fn many_distinct_periods_are_laid_out_in_bounded_work() {
    // 2 to 900: each looks at all others, unless that is too much.
    for periods in [100, 900] {
        let class = |at: u64| Class { period: 2 * at, groups: vec![single(1); 2] };
        let classes: Vec<Class> = (1..=periods).map(class).collect();
        let phases = balance(&classes);
        assert!(phases.iter().zip(&classes).all(|(phases, class)| {
            phases.len() == 2 && phases.iter().all(|&phase| phase < class.period)
        }));
        assert!(slow_peak(&classes, &phases, 500) <= peak(&classes, &phases));
    }
}

#[test]
fn awkward_periods_peak_at_the_sum_of_what_must_meet() {
    // 33 and 167 meet everything once at least; the others need two at the fullest instant.
    let periods = [10, 33, 100, 167, 200, 250, 1000];
    let class = |(at, period): (usize, u64)| Class {
        period,
        groups: vec![single(1); if at < 2 { 15 } else { 14 }],
    };
    let classes: Vec<Class> =
        periods.into_iter().enumerate().map(|(at, p)| class((at, p))).collect();
    assert_eq!(peak(&classes, &balance(&classes)), 4);
}

proptest! {
    #[test]
    fn harmonic_tasks_of_equal_weight_peak_at_the_least_there_is(
        counts in prop::collection::vec(0usize..20, 5)
    ) {
        let classes: Vec<Class> = counts
            .iter()
            .enumerate()
            .map(|(at, &n)| Class { period: 1 << at, groups: vec![single(1); n] })
            .collect();
        let phases = balance(&classes);
        let peak = peak(&classes, &phases);
        let sixteenths: u64 =
            classes.iter().map(|c| c.groups.len() as u64 * 16 / c.period).sum();
        prop_assert_eq!(peak, sixteenths.div_ceil(16));
        prop_assert_eq!(slow_peak(&classes, &phases, 16), peak);
    }

    #[test]
    fn harmonic_tasks_with_weights_stay_within_a_bound(
        weights in prop::collection::vec((0usize..5, 1u64..100), 1..60)
    ) {
        let mut classes: Vec<Class> =
            (0..5).map(|at| Class { period: 1 << at, groups: Vec::new() }).collect();
        for &(class, weight) in &weights {
            classes[class].groups.push(single(weight));
        }
        let phases = balance(&classes);
        let sixteenths: u64 = weights.iter().map(|&(class, w)| (w * 16) >> class).sum();
        let heaviest = weights.iter().map(|(_, w)| *w).max().unwrap_or(0);
        // Graham's argument: the last one at the worst instant was put where least was.
        let peak = peak(&classes, &phases);
        prop_assert!(peak * 16 <= sixteenths + 16 * heaviest, "{} {}", peak, sixteenths);
        prop_assert_eq!(slow_peak(&classes, &phases, 16), peak);
    }

    #[test]
    fn what_is_said_of_parts_is_what_all_instants_say(
        tasks in prop::collection::vec((0usize..8, 1u64..100), 1..40)
    ) {
        let periods = [2, 3, 4, 5, 6, 7, 9, 10];
        let mut classes: Vec<Class> =
            periods.iter().map(|&period| Class { period, groups: Vec::new() }).collect();
        for &(class, weight) in &tasks {
            classes[class].groups.push(single(weight));
        }
        let phases = balance(&classes);
        prop_assert_eq!(slow_peak(&classes, &phases, 1_260), peak(&classes, &phases));
    }
}
