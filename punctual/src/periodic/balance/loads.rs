//! The weight that is released at each residue of each period, and what meets it.
//!
//! For [`super::balance`]. Instant by instant where the major frame is short, else by bounds.

use std::collections::BTreeSet;

use super::{Class, EXACT_MAX, Group, WORK_MAX};
use crate::gcd::gcd;

/// The weight released at each residue of each period.
pub(super) struct Loads {
    of: Vec<Vec<u64>>,
    /// The weight at each instant of the major frame, where that is short enough.
    total: Option<Vec<u64>>,
}

impl Loads {
    pub(super) fn new(classes: &[&Class]) -> Self {
        let lcm = classes.iter().try_fold(1u64, |lcm, class| {
            let by = gcd(u128::from(lcm), u128::from(class.period)) as u64;
            lcm.checked_mul(class.period / by).filter(|&lcm| lcm <= EXACT_MAX)
        });
        let of = classes.iter().map(|class| vec![0; class.period as usize]).collect();
        // One class is its own major frame, however long.
        let frame = lcm.or(match classes {
            [class] => Some(class.period),
            _ => None,
        });
        Self { of, total: frame.map(|frame| vec![0; frame as usize]) }
    }

    /// How many instants, or residues, all classes visit when each looks at the others once.
    pub(super) fn look(&self, classes: &[&Class]) -> u64 {
        let one = match &self.total {
            Some(total) => total.len() as u64,
            None => classes.iter().fold(0, |sum: u64, class| sum.saturating_add(class.period)),
        };
        one.saturating_mul(classes.len() as u64)
    }

    /// How long the major frame is, where it is written out.
    pub(super) fn frame(&self) -> Option<u64> {
        self.total.as_ref().map(|total| total.len() as u64)
    }

    /// Takes one weight of a class out at a residue, and puts it where it meets least: there.
    pub(super) fn again(
        &mut self,
        classes: &[&Class],
        class: usize,
        residue: u64,
        weight: u64,
    ) -> u64 {
        self.change(class, residue, |load| load.saturating_sub(weight));
        let met = self.met(classes, class).into_iter().zip(0..);
        // Where it is, if there is no better place.
        let best = met.min_by_key(|&(met, r)| (met, r != residue)).map_or(residue, |(_, r)| r);
        self.change(class, best, |load| load.saturating_add(weight));
        best
    }

    /// Another weight at a residue of a class.
    fn change(&mut self, class: usize, residue: u64, to: impl Fn(u64) -> u64) {
        let (own, residue) = (&mut self.of[class], residue as usize);
        let period = own.len();
        own[residue] = to(own[residue]);
        if let Some(total) = &mut self.total {
            total[residue..].iter_mut().step_by(period).for_each(|load| *load = to(*load));
        }
    }

    /// Takes a class out.
    pub(super) fn clear(&mut self, class: usize) {
        let own = &mut self.of[class];
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
    pub(super) fn fill(&mut self, at: usize, class: &Class, phases: &[u64]) {
        for (group, phase) in class.groups.iter().zip(phases) {
            for (distance, weight) in &group.members {
                self.change(at, (phase + distance) % class.period, |load| {
                    load.saturating_add(*weight)
                });
            }
        }
    }

    /// Places one class, which is not there yet, among what is there.
    pub(super) fn place(&mut self, classes: &[&Class], class: usize) -> Vec<u64> {
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
            let place = |r: u64, of: u64| ((r + of) % period) as usize;
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
            for (of, weight) in members {
                let r = place(phase, *of);
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
        self.of[class] = own;
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
        for (other, loads) in self.of.iter().enumerate().filter(|(other, _)| *other != class) {
            let common = gcd(period as u128, u128::from(classes[other].period)) as usize;
            let mut highest = vec![(0u64, 0u64); common];
            for chunk in loads.chunks(common) {
                for (at, load) in highest.iter_mut().zip(chunk) {
                    *at = (at.0.max(*load), at.1.saturating_add(*load));
                }
            }
            for chunk in met.chunks_mut(common) {
                for (at, of) in chunk.iter_mut().zip(&highest) {
                    *at = (at.0.saturating_add(of.0), at.1.saturating_add(of.1));
                }
            }
        }
        met
    }

    /// The highest load of any instant, or an upper bound of it.
    pub(super) fn peak(&self, classes: &[&Class]) -> u64 {
        if let Some(total) = &self.total {
            return total.iter().copied().max().unwrap_or(0);
        }
        let highest = |loads: &Vec<u64>| loads.iter().copied().max().unwrap_or(0);
        if self.look(classes) > WORK_MAX {
            return self.of.iter().map(highest).fold(0, u64::saturating_add);
        }
        let of_class = |class: usize| {
            let met = self.met(classes, class);
            let own = self.of[class].iter().zip(met).filter(|(own, _)| **own > 0);
            own.map(|(own, met)| own.saturating_add(met.0)).max()
        };
        (0..classes.len()).filter_map(of_class).max().unwrap_or(0)
    }
}
