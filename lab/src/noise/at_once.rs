//! Gaps that all CPUs have at once: what no scheduler and no device of one CPU does.
//!
//! The host that stops a guest and the firmware take all CPUs at once; so does the kernel's tick,
//! which is told from them by its place in its own period. Pure.

use punctual_core::time::{Instant, Span};
use punctual_engine::quiet::Gap;

use super::{AtOnce, Overlaps, WorstGap};

/// Overlaps within this of each other in the tick's period are at one place, ns.
const PLACE_NS: u64 = 40_000;
/// The place of the tick is one that this share of its periods has an overlap at, at least.
const TICK_SHARE: f64 = 0.1;

/// The times in which every CPU has a gap; each list is in order, and so is the result.
fn overlaps(cpus: &[Vec<Gap>]) -> Vec<Gap> {
    let Some((first, others)) = cpus.split_first() else { return Vec::new() };
    others.iter().fold(joined(first), |common, gaps| joined(&shared(&common, gaps)))
}

/// Gaps of which one ends where the next begins, as one.
fn joined(gaps: &[Gap]) -> Vec<Gap> {
    let mut joined: Vec<Gap> = Vec::with_capacity(gaps.len());
    for gap in gaps {
        match joined.last_mut() {
            Some(last) if last.at + last.length >= gap.at => {
                last.length = (gap.at + gap.length) - last.at;
            }
            _ => joined.push(*gap),
        }
    }
    joined
}

/// The times in both.
fn shared(a: &[Gap], b: &[Gap]) -> Vec<Gap> {
    let (mut in_a, mut in_b) = (0, 0);
    let mut overlaps = Vec::new();
    while let (Some(x), Some(y)) = (a.get(in_a), b.get(in_b)) {
        let at = x.at.max(y.at);
        let (end_a, end_b) = (x.at + x.length, y.at + y.length);
        let end = end_a.min(end_b);
        if at < end {
            overlaps.push(Gap { at, length: end - at });
        }
        if end_a <= end_b {
            in_a += 1;
        } else {
            in_b += 1;
        }
    }
    overlaps
}

/// Overlaps, added up by their place in the tick's period.
#[derive(Debug)]
pub(super) struct OverlapTally {
    cpus: usize,
    tick_ns: Option<u64>,
    places: Vec<Overlaps>,
}

impl OverlapTally {
    /// Of so many CPUs, where the tick comes every `tick_ns`.
    pub(super) fn new(cpus: usize, tick_ns: Option<u64>) -> Self {
        let tick_ns = tick_ns.filter(|&ns| ns >= 4 * PLACE_NS);
        let places = tick_ns.map_or(1, |ns| usize::try_from(ns / PLACE_NS).unwrap_or(1));
        Self { cpus, tick_ns, places: vec![Overlaps::default(); places] }
    }

    /// Takes in the gaps of each CPU in one window.
    pub(super) fn take(&mut self, cpus: &[Vec<Gap>]) {
        for overlap in overlaps(cpus) {
            let place = self.place(overlap.at);
            self.places[place].add(&Overlaps {
                count: 1,
                total_ns: overlap.length.as_ns().unsigned_abs(),
                worst: Some(WorstGap::of(overlap)),
            });
        }
    }

    fn place(&self, at: Instant) -> usize {
        let Some(tick_ns) = self.tick_ns else { return 0 };
        let place = u128::from(at.as_ns() % tick_ns) * self.places.len() as u128;
        usize::try_from(place / u128::from(tick_ns)).unwrap_or(0)
    }

    /// What there was, in `spun` of spinning; `None` for one CPU.
    pub(super) fn finish(self, spun: Span) -> Option<AtOnce> {
        if self.cpus < 2 {
            return None;
        }
        let count = self.places.len();
        let near = |middle: usize, at: usize| {
            let distance = middle.abs_diff(at);
            distance.min(count - distance) <= 1
        };
        let sum = |is_chosen: &dyn Fn(usize) -> bool| {
            let mut sum = Overlaps::default();
            let chosen = self.places.iter().enumerate().filter(|(at, _)| is_chosen(*at));
            chosen.for_each(|(_, overlaps)| sum.add(overlaps));
            sum
        };
        let ticks = self.tick_ns.map(|ns| spun.as_ns() as f64 / ns as f64);
        let around = |middle: usize| sum(&|at| near(middle, at));
        let middle = (0..count).max_by_key(|&middle| around(middle).count);
        let is_tick = |middle: &usize| {
            let count = around(*middle).count as f64;
            count > 0.0 && ticks.is_some_and(|ticks| count >= ticks * TICK_SHARE)
        };
        let middle = middle.filter(is_tick);
        let at_tick = |at: usize| middle.is_some_and(|middle| near(middle, at));
        Some(AtOnce {
            all: sum(&|_| true),
            tick: self.tick_ns.map(|_| sum(&at_tick)),
            elsewhere: sum(&|at| !at_tick(at)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gaps(pairs: &[(u64, i64)]) -> Vec<Gap> {
        let gap = |&(at, ns)| Gap { at: Instant::from_ns(at), length: Span::from_ns(ns) };
        pairs.iter().map(gap).collect()
    }

    /// The slow way: every nanosecond is looked at.
    fn model(cpus: &[Vec<Gap>]) -> Vec<Gap> {
        let within = |gaps: &[Gap], ns: u64| {
            let at = Instant::from_ns(ns);
            gaps.iter().any(|gap| gap.at <= at && at < gap.at + gap.length)
        };
        let mut runs: Vec<(u64, i64)> = Vec::new();
        for ns in 0..1_200 {
            if !cpus.is_empty() && cpus.iter().all(|gaps| within(gaps, ns)) {
                match runs.last_mut() {
                    Some((at, length)) if *at + length.unsigned_abs() == ns => *length += 1,
                    _ => runs.push((ns, 1)),
                }
            }
        }
        gaps(&runs)
    }

    fn list() -> impl Strategy<Value = Vec<Gap>> {
        prop::collection::vec((0..60u64, 1..40i64), 0..12).prop_map(|steps| {
            let mut at = 0;
            let place = |(rest, length): (u64, i64)| {
                let begin = at + rest;
                at = begin + length.unsigned_abs();
                (begin, length)
            };
            gaps(&steps.into_iter().map(place).collect::<Vec<_>>())
        })
    }

    proptest! {
        #[test]
        fn overlaps_are_those_of_the_slow_way(cpus in prop::collection::vec(list(), 0..4)) {
            prop_assert_eq!(overlaps(&cpus), model(&cpus));
        }
    }

    #[test]
    fn the_tick_is_told_from_what_comes_anywhere() {
        let tick_ns = 4_000_000;
        let mut tally = OverlapTally::new(2, Some(tick_ns));
        let tick = |k: u64| (k * tick_ns + 1_234_000 + k % 7 * 1_000, 3_000);
        let firmware = [(50_100_000, 200_000), (81_900_000, 150_000)];
        let mut listed: Vec<(u64, i64)> = (0..25).map(tick).chain(firmware).collect();
        listed.sort_unstable();
        tally.take(&[gaps(&listed), gaps(&listed)]);
        let found = tally.finish(Span::from_ms(100)).expect("two CPUs");
        assert_eq!(found.tick.as_ref().map(|tick| tick.count), Some(25));
        assert_eq!((found.all.count, found.elsewhere.count), (27, 2));
        let worst = found.elsewhere.worst.expect("two of them");
        assert_eq!((worst.at_ns, worst.length_ns), (50_100_000, 200_000));
        assert_eq!(found.elsewhere.total_ns, 350_000);
    }

    #[test]
    fn a_few_are_no_tick_and_one_cpu_has_none_at_once() {
        let some = gaps(&[(1_000, 500), (9_000_000, 500)]);
        let mut tally = OverlapTally::new(2, Some(4_000_000));
        tally.take(&[some.clone(), some.clone()]);
        let found = tally.finish(Span::from_ms(10_000)).expect("two CPUs");
        assert_eq!((found.tick.map(|tick| tick.count), found.elsewhere.count), (Some(0), 2));
        let mut unknown = OverlapTally::new(2, None);
        unknown.take(&[some.clone(), some.clone()]);
        let found = unknown.finish(Span::from_ms(10_000)).expect("two CPUs");
        assert_eq!((found.tick, found.elsewhere.count), (None, 2));
        assert!(OverlapTally::new(1, None).finish(Span::from_ms(1)).is_none());
    }
}
