//! Counts of a processor's counters around a wake, where they were recorded with the switches.
//!
//! Of fixed size. Counts are of the CPU: they are a thread's where it ran from one reading to the
//! next, as it does between two switches.

use std::collections::VecDeque;

use punctual_trace::event::ProcessorCounts;
use serde::{Deserialize, Serialize};

/// The latest readings of a CPU that are remembered.
const READINGS: usize = 1_024;

/// A switch and its reading, which are recorded by two events of perf one behind the other, are no
/// farther apart, ns: a slow processor takes several µs for both.
const SAME_NS: u64 = 20_000;

/// The counts of a stretch; `None` of a counter that was not recorded, or did not count then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedStretch {
    /// Cycles.
    pub cycles: Option<u64>,
    /// Instructions.
    pub instructions: Option<u64>,
    /// Accesses that the last cache did not hold.
    pub cache_misses: Option<u64>,
    /// Cycles in which a resource was waited for.
    pub stalled_cycles: Option<u64>,
}

impl CountedStretch {
    /// The counts between two readings. Where the counters ran for a part of it only, they are
    /// extrapolated to all of it.
    fn between(before: ProcessorCounts, after: ProcessorCounts) -> Self {
        let since = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        let enabled_ns = since(after.enabled_ns, before.enabled_ns);
        let share = match enabled_ns.zip(since(after.running_ns, before.running_ns)) {
            Some((enabled_ns, running_ns)) if enabled_ns > 0 => {
                running_ns as f64 / enabled_ns as f64
            }
            _ => 1.0,
        };
        let counted = |now, then| {
            let count = since(now, then).filter(|_| share > 0.0)?;
            Some(if share < 1.0 { (count as f64 / share) as u64 } else { count })
        };
        Self {
            cycles: counted(after.cycles, before.cycles),
            instructions: counted(after.instructions, before.instructions),
            cache_misses: counted(after.cache_misses, before.cache_misses),
            stalled_cycles: counted(after.stalled_cycles, before.stalled_cycles),
        }
    }

    /// Both together, as far as both were counted.
    fn and(self, more: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Self {
            cycles: sum(self.cycles, more.cycles),
            instructions: sum(self.instructions, more.instructions),
            cache_misses: sum(self.cache_misses, more.cache_misses),
            stalled_cycles: sum(self.stalled_cycles, more.stalled_cycles),
        }
    }

    /// Returns true where one of them was counted.
    fn is_some(&self) -> bool {
        *self != Self::default()
    }
}

/// The counts around a late wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WakeCounts {
    /// On its CPU, from the last switch before its release to its own.
    pub wait: Option<CountedStretch>,
    /// While its thread ran in the cycle before, preemptions left out.
    pub cycle: Option<CountedStretch>,
}

/// The readings of one CPU.
#[derive(Debug, Clone, Default)]
pub(crate) struct CounterBook {
    readings: VecDeque<(u64, ProcessorCounts)>,
}

impl CounterBook {
    pub(crate) fn read(&mut self, at_ns: u64, counts: ProcessorCounts) {
        if self.readings.len() == READINGS {
            self.readings.pop_front();
        }
        self.readings.push_back((at_ns, counts));
    }

    /// Readings may have been missed.
    pub(crate) fn forget(&mut self) {
        self.readings.clear();
    }

    /// The reading that belongs to an event of this instant.
    pub(crate) fn at(&self, at_ns: u64) -> Option<ProcessorCounts> {
        let is_of_it = |(read_ns, _): &&(u64, ProcessorCounts)| at_ns - read_ns <= SAME_NS;
        self.readings.back().filter(is_of_it).map(|(_, counts)| *counts)
    }

    /// The counts from the last reading at or before `from_ns` to that of `at_ns`; `None` where one
    /// of these is missing.
    pub(crate) fn since(&self, from_ns: u64, at_ns: u64) -> Option<CountedStretch> {
        let after = self.at(at_ns)?;
        let behind = self.readings.partition_point(|(read_ns, _)| *read_ns <= from_ns);
        let (_, before) = self.readings.get(behind.checked_sub(1)?)?;
        Some(CountedStretch::between(*before, after)).filter(CountedStretch::is_some)
    }
}

/// The counts of one thread's turns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WorkCounts {
    /// The reading at the begin of its present turn.
    since: Option<ProcessorCounts>,
    /// The sum of its turns since it answered a release; `None` where one of them was not counted.
    sum: Option<CountedStretch>,
}

impl WorkCounts {
    /// It begins to run.
    pub(crate) const fn begin(&mut self, counts: Option<ProcessorCounts>) {
        self.since = counts;
    }

    /// It stops to run.
    pub(crate) fn end(&mut self, counts: Option<ProcessorCounts>) {
        let turn = self.since.take().zip(counts);
        let turn = turn.map(|(before, after)| CountedStretch::between(before, after));
        self.sum = self.sum.zip(turn).map(|(sum, turn)| sum.and(turn));
    }

    /// The cycle before goes on: it has these counts, and its thread ran no code of its own since.
    pub(crate) const fn go_on(&mut self, cycle: Option<CountedStretch>) {
        self.sum = cycle;
    }

    /// It answers a release, and the next cycle begins: returns the counts of the one before.
    pub(crate) fn next_cycle(&mut self) -> Option<CountedStretch> {
        let zero = Some(0);
        let none = CountedStretch {
            cycles: zero,
            instructions: zero,
            cache_misses: zero,
            stalled_cycles: zero,
        };
        self.sum.replace(none).filter(|sum| sum.is_some() && *sum != none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(cycles: u64, time_ns: Option<(u64, u64)>) -> ProcessorCounts {
        ProcessorCounts {
            cycles: Some(cycles),
            enabled_ns: time_ns.map(|(enabled_ns, _)| enabled_ns),
            running_ns: time_ns.map(|(_, running_ns)| running_ns),
            ..ProcessorCounts::default()
        }
    }

    fn cycles(stretch: Option<CountedStretch>) -> Option<u64> {
        stretch?.cycles
    }

    #[test]
    fn a_stretch_begins_with_the_last_reading_before_it() {
        let mut book = CounterBook::default();
        (1..=4).for_each(|step| book.read(step * 100_000, counts(step * 100, None)));
        assert_eq!(cycles(book.since(250_000, 400_000)), Some(200));
        assert_eq!(cycles(book.since(200_000, 400_000 + SAME_NS)), Some(200), "a slow processor");
        assert_eq!(book.since(90_000, 400_000), None, "nothing was read before");
        assert_eq!(book.since(250_000, 400_001 + SAME_NS), None, "nothing was read then");
        book.read(500_000, ProcessorCounts { instructions: Some(4), ..ProcessorCounts::default() });
        assert_eq!(book.since(250_000, 500_000), None, "another counter");
        book.forget();
        assert_eq!(book.at(500_000), None);
        for step in 0..10_000 {
            book.read(step, counts(step, None));
        }
        assert_eq!(book.readings.len(), READINGS);
    }

    #[test]
    fn counters_that_others_had_meanwhile_are_filled_up() {
        let stretch =
            |time_ns| CountedStretch::between(counts(100, Some((10, 10))), counts(400, time_ns));
        assert_eq!(stretch(Some((30, 30))).cycles, Some(300));
        assert_eq!(stretch(Some((30, 20))).cycles, Some(600));
        assert_eq!(stretch(Some((30, 10))).cycles, None, "they did not count");
        let back = CountedStretch::between(counts(400, None), counts(100, None));
        assert_eq!(back.cycles, None, "a counter that runs backwards is none");
    }

    #[test]
    fn a_cycle_is_the_sum_of_its_turns() {
        let mut work = WorkCounts::default();
        let turn = |work: &mut WorkCounts, from, to| {
            work.begin(from);
            work.end(to);
        };
        let at = |cycles| Some(counts(cycles, None));
        assert_eq!(work.next_cycle(), None, "the first begins somewhere");
        turn(&mut work, at(100), at(150));
        turn(&mut work, at(900), at(920));
        let cycle = work.next_cycle();
        assert_eq!(cycles(cycle), Some(70));
        assert_eq!(cycle.and_then(|cycle| cycle.instructions), None);
        turn(&mut work, at(1_000), None);
        assert_eq!(work.next_cycle(), None, "a turn was not counted");
        assert_eq!(work.next_cycle(), None, "it did not run");
    }
}
