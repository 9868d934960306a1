//! Phases that spread the releases of many tasks, so that few fall on one instant.
//!
//! For the builder, before the loop. Time is in quanta that divide every period. Tasks are placed
//! by rising period, heaviest first, each where the worst instant it meets is best; then each
//! period's tasks are taken out and placed again, and at last each task by itself. With harmonic
//! periods and equal weights the peak is the least there is. Strongly NP-hard in general (Goossens,
//! *Scheduling of Offset Free Systems*, 2003); nothing is searched here, and the work has a limit.
//!
//! Its worth, on 200 random sets each of 20 to 59 tasks and 5 to 9 periods, weights equal / from 1
//! to 100: periods that have no common divisor laid out apart, and whole passes, against class by
//! class over all of them: a mean peak 0 / 1 % lower with engine control's periods, 0 / 1 % with
//! divisors of 720, 6 / 6 % with 1 to 60, 12 / 9 % with 1 to 1000. Single tasks after that: 0 / 0,
//! 3 / 1, 3 / 0, 0 / 0 % lower. A hundred tasks of 10, 33, 100, 167, 200, 250, 1000: a peak of 5,
//! and of 4 with single tasks; 3, 7 … 23 (15, which is the least there is) and engine control's
//! (11) are the same either way.

use std::collections::BTreeSet;

use punctual_core::time::gcd;

/// The longest major frame (LCM of the periods), in quanta, that is written out instant by instant.
const EXACT_MAX: u64 = 1 << 20;
/// The times that each period's tasks are taken out and placed again.
const PASSES: usize = 2;
/// Instants and residues that one build looks at, at most: some tenths of a second.
const WORK_MAX: u64 = 1 << 27;
/// The same for a round of single tasks: of very many each moves the peak by little.
const SINGLES_MAX: u64 = 1 << 24;

/// Tasks that move together, each at a fixed distance from the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Distance from the first and weight of each, in quanta; the first at 0.
    pub(super) members: Vec<(u64, u64)>,
    /// The place of the first one, in quanta; `None` when that is to be found.
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
    let mut phases = vec![Vec::new(); classes.len()];
    let mut work = WORK_MAX;
    for part in parts(classes) {
        let classes_of_part: Vec<&Class> = part.iter().map(|&class| &classes[class]).collect();
        let found = balance_part(&classes_of_part, &mut work)
            .unwrap_or_else(|| classes_of_part.iter().flat_map(|class| alone(class)).collect());
        for (class, found) in part.into_iter().zip(found) {
            phases[class] = found;
        }
    }
    phases
}

/// The phases of a class among no others.
fn alone(class: &Class) -> Vec<Vec<u64>> {
    vec![Loads::new(&[class]).place(&[class], 0)]
}

/// The highest load of any instant with these phases (an upper bound of it where the major frame of
/// a part is longer than [`EXACT_MAX`]).
pub(super) fn peak(classes: &[Class], phases: &[Vec<u64>]) -> u64 {
    let of_part = |part: Vec<usize>| {
        let classes_of_part: Vec<&Class> = part.iter().map(|&class| &classes[class]).collect();
        let mut loads = Loads::new(&classes_of_part);
        for (at, class) in part.into_iter().enumerate() {
            loads.fill(at, classes_of_part[at], &phases[class]);
        }
        loads.peak(&classes_of_part)
    };
    parts(classes).into_iter().map(of_part).fold(0, u64::saturating_add)
}

/// The classes, apart where no period of one part has a common divisor with one of another: then
/// each instant of one part's major frame meets each of the other's (the Chinese remainder
/// theorem), whatever the phases are, and their peaks add up.
fn parts(classes: &[Class]) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for (class, Class { period, .. }) in classes.iter().enumerate() {
        let meets = |part: &Vec<usize>| {
            part.iter().any(|&member| gcd((*period).into(), classes[member].period.into()) > 1)
        };
        let (met, apart): (Vec<_>, Vec<_>) = parts.into_iter().partition(meets);
        parts = apart;
        parts.push(met.into_iter().flatten().chain([class]).collect());
    }
    parts
}

/// The phases of each class's groups, of one part; `None` where that would be more work than is
/// left.
fn balance_part(classes: &[&Class], work: &mut u64) -> Option<Vec<Vec<u64>>> {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|&class| classes[class].period);
    let mut loads = Loads::new(classes);
    let look = loads.look(classes);
    *work = work.checked_sub(look)?;
    let mut phases = vec![Vec::new(); classes.len()];
    for &class in &order {
        phases[class] = loads.place(classes, class);
    }
    let mut peak = loads.peak(classes);
    for _ in 0..PASSES {
        let Some(left) = work.checked_sub(look.saturating_mul(2)) else { break };
        *work = left;
        let before = phases.clone();
        for &class in &order {
            loads.clear(class);
            phases[class] = loads.place(classes, class);
        }
        let again = loads.peak(classes);
        if again >= peak {
            phases = before;
            break;
        }
        peak = again;
    }
    balance_single(classes, &mut phases, work);
    Some(phases)
}

/// Takes each task that moves by itself out, heaviest first, and places it again: no instant that
/// it comes to has more than the one that it leaves had. Only where the major frame is written out.
fn balance_single(classes: &[&Class], phases: &mut [Vec<u64>], work: &mut u64) {
    let mut loads = Loads::new(classes);
    for (at, class) in classes.iter().enumerate() {
        loads.fill(at, class, &phases[at]);
    }
    let Some(frame) = loads.frame() else { return };
    let mut singles: Vec<(u64, usize, usize)> = Vec::new();
    for (at, class) in classes.iter().enumerate() {
        for (g, group) in class.groups.iter().enumerate() {
            if let ([(0, weight)], None) = (&group.members[..], group.fixed) {
                singles.push((*weight, at, g));
            }
        }
    }
    singles.sort_by_key(|(weight, ..)| u64::MAX - weight);
    let round = frame.saturating_mul(singles.len() as u64);
    for _ in 0..PASSES {
        let Some(left) = work.checked_sub(round).filter(|_| round <= SINGLES_MAX) else { return };
        *work = left;
        let mut moved = false;
        for &(weight, at, g) in &singles {
            let phase = &mut phases[at][g];
            let to = loads.again(classes, at, *phase, weight);
            moved |= to != *phase;
            *phase = to;
        }
        if !moved {
            return;
        }
    }
}

/// The weight released at each residue of each period.
struct Loads {
    by_class: Vec<Vec<u64>>,
    /// The weight at each instant of the major frame, where that is short enough.
    total: Option<Vec<u64>>,
}

impl Loads {
    fn new(classes: &[&Class]) -> Self {
        let lcm = classes.iter().try_fold(1u64, |lcm, class| {
            let by = gcd(u128::from(lcm), u128::from(class.period)) as u64;
            lcm.checked_mul(class.period / by).filter(|&lcm| lcm <= EXACT_MAX)
        });
        let by_class = classes.iter().map(|class| vec![0; class.period as usize]).collect();
        // One class is its own major frame, however long.
        let frame = lcm.or(match classes {
            [class] => Some(class.period),
            _ => None,
        });
        Self { by_class, total: frame.map(|frame| vec![0; frame as usize]) }
    }

    /// The number of instants, or residues, that all classes visit when each looks at the others
    /// once.
    fn look(&self, classes: &[&Class]) -> u64 {
        let each = match &self.total {
            Some(total) => total.len() as u64,
            None => classes.iter().fold(0, |sum: u64, class| sum.saturating_add(class.period)),
        };
        each.saturating_mul(classes.len() as u64)
    }

    /// The length of the major frame, in quanta, where it is written out.
    fn frame(&self) -> Option<u64> {
        self.total.as_ref().map(|total| total.len() as u64)
    }

    /// Takes one weight of a class out at a residue, and puts it where it meets least: there.
    fn again(&mut self, classes: &[&Class], class: usize, residue: u64, weight: u64) -> u64 {
        self.change(class, residue, |load| load.saturating_sub(weight));
        let met = self.met(classes, class).into_iter().zip(0..);
        // Where it is, if there is no better place.
        let best = met.min_by_key(|&(met, r)| (met, r != residue)).map_or(residue, |(_, r)| r);
        self.change(class, best, |load| load.saturating_add(weight));
        best
    }

    /// Another weight at a residue of a class.
    fn change(&mut self, class: usize, residue: u64, to: impl Fn(u64) -> u64) {
        let (own, residue) = (&mut self.by_class[class], residue as usize);
        let period = own.len();
        own[residue] = to(own[residue]);
        if let Some(total) = &mut self.total {
            total[residue..].iter_mut().step_by(period).for_each(|load| *load = to(*load));
        }
    }

    /// Takes a class out.
    fn clear(&mut self, class: usize) {
        let own = &mut self.by_class[class];
        if let Some(total) = &mut self.total {
            for chunk in total.chunks_mut(own.len()) {
                chunk.iter_mut().zip(own.iter()).for_each(|(sum, load)| {
                    *sum = sum.saturating_sub(*load);
                });
            }
        }
        own.fill(0);
    }

    /// Puts the groups of a class where they are.
    fn fill(&mut self, at: usize, class: &Class, phases: &[u64]) {
        for (group, phase) in class.groups.iter().zip(phases) {
            for (distance, weight) in &group.members {
                self.change(at, (phase + distance) % class.period, |load| {
                    load.saturating_add(*weight)
                });
            }
        }
    }

    /// Places one class, which is not there yet, among what is there.
    fn place(&mut self, classes: &[&Class], class: usize) -> Vec<u64> {
        let Class { period, groups } = classes[class];
        let others = self.met(classes, class);
        let mut own = vec![0u64; others.len()];
        let at = |own: &[u64], r: usize| {
            let (peak, sum) = others[r];
            (peak.saturating_add(own[r]), sum.saturating_add(own[r]))
        };
        let mut phases = vec![0; groups.len()];
        let mut order: Vec<usize> = (0..groups.len()).collect();
        let weight = |group: &Group| group.members.iter().map(|member| member.1).sum::<u64>();
        order.sort_by_key(|&g| (groups[g].fixed.is_none(), u64::MAX - weight(&groups[g])));
        let mut best: BTreeSet<((u64, u64), usize)> =
            (0..own.len()).map(|r| (at(&own, r), r)).collect();
        for g in order {
            let members = &groups[g].members;
            let place = |r: u64, distance: u64| ((r + distance) % period) as usize;
            let phase = match groups[g].fixed {
                Some(fixed) => fixed % period,
                None if members.len() == 1 => best.first().map_or(0, |(_, r)| *r as u64),
                None => (0..*period)
                    .min_by_key(|&r| {
                        let met = members.iter().map(|m| (at(&own, place(r, m.0)), m.1));
                        let peak = met.clone().map(|((peak, _), w)| peak + w).max();
                        (peak, met.map(|((_, sum), _)| sum).sum::<u64>())
                    })
                    .unwrap_or(0),
            };
            for (distance, weight) in members {
                let r = place(phase, *distance);
                best.remove(&(at(&own, r), r));
                own[r] += weight;
                best.insert((at(&own, r), r));
            }
            phases[g] = phase;
        }
        self.put(class, own);
        phases
    }

    /// The whole weight of a class that is not there yet.
    fn put(&mut self, class: usize, own: Vec<u64>) {
        if let Some(total) = &mut self.total {
            for chunk in total.chunks_mut(own.len()) {
                chunk.iter_mut().zip(&own).for_each(|(sum, load)| *sum = sum.saturating_add(*load));
            }
        }
        self.by_class[class] = own;
    }

    /// For each residue of a class: the highest load that it meets there, and a measure of the sum.
    /// Of the class itself, which is to be placed, what is in the major frame, where that is there.
    fn met(&self, classes: &[&Class], class: usize) -> Vec<(u64, u64)> {
        let period = classes[class].period as usize;
        let mut met = vec![(0u64, 0u64); period];
        if let Some(total) = &self.total {
            for chunk in total.chunks(period) {
                for (at, load) in met.iter_mut().zip(chunk) {
                    *at = (at.0.max(*load), at.1.saturating_add(*load));
                }
            }
            return met;
        }
        for (beside, loads) in
            self.by_class.iter().enumerate().filter(|(beside, _)| *beside != class)
        {
            let common = gcd(period as u128, u128::from(classes[beside].period)) as usize;
            let mut highest = vec![(0u64, 0u64); common];
            for chunk in loads.chunks(common) {
                for (at, load) in highest.iter_mut().zip(chunk) {
                    *at = (at.0.max(*load), at.1.saturating_add(*load));
                }
            }
            for chunk in met.chunks_mut(common) {
                for (at, load) in chunk.iter_mut().zip(&highest) {
                    *at = (at.0.saturating_add(load.0), at.1.saturating_add(load.1));
                }
            }
        }
        met
    }

    /// The highest load of any instant, or an upper bound of it.
    fn peak(&self, classes: &[&Class]) -> u64 {
        if let Some(total) = &self.total {
            return total.iter().copied().max().unwrap_or(0);
        }
        let highest = |loads: &Vec<u64>| loads.iter().copied().max().unwrap_or(0);
        if self.look(classes) > WORK_MAX {
            return self.by_class.iter().map(highest).fold(0, u64::saturating_add);
        }
        let of_class = |class: usize| {
            let met = self.met(classes, class);
            let own = self.by_class[class].iter().zip(met).filter(|(own, _)| **own > 0);
            own.map(|(own, met)| own.saturating_add(met.0)).max()
        };
        (0..classes.len()).filter_map(of_class).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
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
                    let due = move |offset: &u64| {
                        (at + class.period - (phase + offset) % class.period)
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
}
