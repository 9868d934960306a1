//! Phases that spread the releases of many tasks, so that few fall on one instant.
//!
//! For the builder, before the loop. Time is in quanta that divide every period. Tasks are placed
//! by rising period, heaviest first, each where the worst instant it meets is best; then each
//! period's tasks are taken out and placed again. With harmonic periods and equal weights the peak
//! is the least there is. Strongly NP-hard in general (Goossens, *Scheduling of Offset Free
//! Systems*, 2003); nothing is searched here.

use std::collections::BTreeSet;

use super::rate::gcd;

/// The longest major frame (LCM of the periods), in quanta, that is written out instant by instant.
const EXACT_MAX: u64 = 1 << 20;
/// How often each period's tasks are taken out and placed again.
const PASSES: usize = 2;

/// Tasks that move together, each at a fixed distance from the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Distance from the first and weight of each, in quanta; the first at 0.
    pub(super) members: Vec<(u64, u64)>,
    /// Where the first one must be; `None` when that is to be found.
    pub(super) fixed: Option<u64>,
}

/// All groups of one period.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// The period in quanta, at least 1.
    pub(super) period: u64,
    /// Its groups.
    pub(super) groups: Vec<Group>,
}

/// The phases of each class's groups, in quanta below its period.
pub(super) fn balance(classes: &[Class]) -> Vec<Vec<u64>> {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|&class| classes[class].period);
    let mut loads = Loads::new(classes);
    let mut phases = vec![Vec::new(); classes.len()];
    for &class in &order {
        phases[class] = loads.place(classes, class);
    }
    for _ in 0..PASSES {
        let peak = loads.peak(classes);
        for &class in &order {
            let before = (loads.peak(classes), loads.of[class].clone());
            loads.of[class].fill(0);
            let again = loads.place(classes, class);
            if loads.peak(classes) < before.0 {
                phases[class] = again;
            } else {
                loads.of[class] = before.1;
            }
        }
        if loads.peak(classes) == peak {
            break;
        }
    }
    phases
}

/// The highest load of any instant with these phases (an upper bound of it when the major frame is
/// longer than [`EXACT_MAX`]).
pub(super) fn peak(classes: &[Class], phases: &[Vec<u64>]) -> u64 {
    let mut loads = Loads::new(classes);
    for ((class, phases), of) in classes.iter().zip(phases).zip(&mut loads.of) {
        for (group, phase) in class.groups.iter().zip(phases) {
            for (distance, weight) in &group.members {
                let load = &mut of[((phase + distance) % class.period) as usize];
                *load = load.saturating_add(*weight);
            }
        }
    }
    loads.peak(classes)
}

/// The weight released at each residue of each period.
struct Loads {
    of: Vec<Vec<u64>>,
    /// The major frame, where it is short enough.
    major_frame: Option<u64>,
}

impl Loads {
    fn new(classes: &[Class]) -> Self {
        let lcm = classes.iter().try_fold(1u64, |lcm, class| {
            let by = gcd(u128::from(lcm), u128::from(class.period)) as u64;
            lcm.checked_mul(class.period / by).filter(|&lcm| lcm <= EXACT_MAX)
        });
        let of = classes.iter().map(|class| vec![0; class.period as usize]).collect();
        Self { of, major_frame: lcm }
    }

    /// Places one class among what is there.
    fn place(&mut self, classes: &[Class], class: usize) -> Vec<u64> {
        let Class { period, groups } = &classes[class];
        let others = self.met(classes, class);
        let own = &mut self.of[class];
        let at = |own: &[u64], r: usize| {
            let (peak, sum) = others[r];
            (peak + own[r], sum.saturating_add(own[r]))
        };
        let mut phases = vec![0; groups.len()];
        let mut order: Vec<usize> = (0..groups.len()).collect();
        let weight = |group: &Group| group.members.iter().map(|member| member.1).sum::<u64>();
        order.sort_by_key(|&g| (groups[g].fixed.is_none(), u64::MAX - weight(&groups[g])));
        let mut best: BTreeSet<((u64, u64), usize)> =
            (0..own.len()).map(|r| (at(own, r), r)).collect();
        for g in order {
            let members = &groups[g].members;
            let place = |r: u64, of: u64| ((r + of) % period) as usize;
            let phase = match groups[g].fixed {
                Some(fixed) => fixed % period,
                None if members.len() == 1 => best.first().map_or(0, |(_, r)| *r as u64),
                None => (0..*period)
                    .min_by_key(|&r| {
                        let met = members.iter().map(|m| (at(own, place(r, m.0)), m.1));
                        let peak = met.clone().map(|((peak, _), w)| peak + w).max();
                        (peak, met.map(|((_, sum), _)| sum).sum::<u64>())
                    })
                    .unwrap_or(0),
            };
            for (of, weight) in members {
                let r = place(phase, *of);
                best.remove(&(at(own, r), r));
                own[r] += weight;
                best.insert((at(own, r), r));
            }
            phases[g] = phase;
        }
        phases
    }

    /// For each residue of a class: the highest load of the others that it meets, and a measure of
    /// their sum.
    fn met(&self, classes: &[Class], class: usize) -> Vec<(u64, u64)> {
        let period = classes[class].period as usize;
        let mut met = vec![(0u64, 0u64); period];
        if let Some(total) = self.total(classes, Some(class)) {
            for (instant, load) in total.into_iter().enumerate() {
                let at = &mut met[instant % period];
                *at = (at.0.max(load), at.1.saturating_add(load));
            }
            return met;
        }
        for (other, loads) in self.of.iter().enumerate().filter(|(other, _)| *other != class) {
            let common = gcd(period as u128, u128::from(classes[other].period)) as usize;
            let mut highest = vec![(0u64, 0u64); common];
            for (r, load) in loads.iter().enumerate() {
                let at = &mut highest[r % common];
                *at = (at.0.max(*load), at.1.saturating_add(*load));
            }
            for (r, at) in met.iter_mut().enumerate() {
                let of = highest[r % common];
                *at = (at.0.saturating_add(of.0), at.1.saturating_add(of.1));
            }
        }
        met
    }

    /// The load at each instant of the major frame, without one class.
    fn total(&self, classes: &[Class], without: Option<usize>) -> Option<Vec<u64>> {
        let mut total = vec![0u64; self.major_frame? as usize];
        for (class, loads) in self.of.iter().enumerate() {
            if Some(class) != without && !loads.is_empty() {
                let period = classes[class].period as usize;
                total.chunks_mut(period).for_each(|chunk| {
                    chunk
                        .iter_mut()
                        .zip(loads)
                        .for_each(|(sum, load)| *sum = sum.saturating_add(*load));
                });
            }
        }
        Some(total)
    }

    /// The highest load of any instant, or an upper bound of it.
    fn peak(&self, classes: &[Class]) -> u64 {
        match self.total(classes, None) {
            Some(total) => total.into_iter().max().unwrap_or(0),
            None => (0..classes.len())
                .filter_map(|class| {
                    let met = self.met(classes, class);
                    let own = self.of[class].iter();
                    own.zip(met)
                        .filter(|(own, _)| **own > 0)
                        .map(|(own, met)| own.saturating_add(met.0))
                        .max()
                })
                .max()
                .unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
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
                        (at + class.period - (phase + of) % class.period)
                            .is_multiple_of(class.period)
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
    }
}
