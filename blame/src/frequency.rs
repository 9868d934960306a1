//! The frequency of a CPU, and the part of a wake that a lower one than usual explains.
//!
//! Of fixed size. As far as `power:cpu_frequency` shows it, whichever CPU recorded that.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Frequencies of a CPU whose times are kept apart.
const KNOWN: usize = 64;
/// The latest changes that are remembered.
const CHANGES: usize = 64;
/// A lower frequency than the usual one by less than this changes nothing that could be seen.
const RATIO_MIN: f64 = 1.2;
/// Factor beyond the frequency's own from which on a longer time has another cause.
const TOLERANCE: f64 = 1.25;

/// A CPU that runs at a lower frequency than it usually does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlowClock {
    /// The frequency at which it ran longest, kHz.
    pub(crate) usual_khz: u32,
    /// The one at which it runs, kHz.
    pub(crate) khz: u32,
}

impl SlowClock {
    /// Factor by which the same work takes longer.
    pub(crate) fn ratio(self) -> f64 {
        f64::from(self.usual_khz) / f64::from(self.khz.max(1))
    }

    /// Returns true where it explains a stretch of `length_ns` that is `usual_ns` at most
    /// otherwise.
    pub(crate) fn explains(self, length_ns: u64, usual_ns: u64) -> bool {
        let most_ns = usual_ns as f64 * self.ratio() * TOLERANCE;
        usual_ns > 0 && length_ns > usual_ns && length_ns as f64 <= most_ns
    }
}

/// The frequencies of one CPU.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClockBook {
    /// Each frequency, kHz, with the time for which it ran at it, ns.
    times: Vec<(u32, u64)>,
    /// Changes, each its instant in ns and the frequency in kHz, oldest first; the last one holds.
    changes: VecDeque<(u64, u32)>,
}

impl ClockBook {
    /// It runs at this frequency from now on.
    pub(crate) fn change(&mut self, at_ns: u64, khz: u32) {
        if let Some(&(since_ns, before)) = self.changes.back() {
            self.add(before, at_ns.saturating_sub(since_ns));
        }
        if self.changes.len() == CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((at_ns, khz));
    }

    /// Changes may have been missed: the frequency is not known until the next.
    pub(crate) fn forget(&mut self, at_ns: u64) {
        if let Some(&(since_ns, khz)) = self.changes.back() {
            self.add(khz, at_ns.saturating_sub(since_ns));
        }
        self.changes.clear();
    }

    fn add(&mut self, khz: u32, time_ns: u64) {
        if let Some((_, sum_ns)) = self.times.iter_mut().find(|(known, _)| *known == khz) {
            *sum_ns = sum_ns.saturating_add(time_ns);
            return;
        }
        if self.times.len() == KNOWN
            && let Some(least) = (0..KNOWN).min_by_key(|&place| self.times[place].1)
        {
            self.times.swap_remove(least);
        }
        self.times.push((khz, time_ns));
    }

    /// The lower frequency than usual at which it ran all that time; `None` where it ran at none,
    /// or that is not known.
    pub(crate) fn slow_in(&self, from_ns: u64, to_ns: u64) -> Option<SlowClock> {
        let behind = self.changes.iter().rposition(|(at_ns, _)| *at_ns <= from_ns)?;
        let is_changed = self.changes.get(behind + 1).is_some_and(|(at_ns, _)| *at_ns < to_ns);
        let (_, khz) = self.changes[behind];
        let (since_ns, last) = *self.changes.back()?;
        let so_far = |known: u32, time_ns: u64| match known == last {
            true => time_ns.saturating_add(to_ns.saturating_sub(since_ns)),
            false => time_ns,
        };
        let usual = self.times.iter().max_by_key(|(known, time_ns)| so_far(*known, *time_ns));
        let slow = SlowClock { usual_khz: usual?.0, khz };
        (!is_changed && slow.ratio() >= RATIO_MIN).then_some(slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_frequency_is_the_one_that_it_ran_at_longest() {
        let mut book = ClockBook::default();
        assert_eq!(book.slow_in(0, 10), None);
        book.change(100, 3_000_000);
        assert_eq!(book.slow_in(150, 160), None, "nothing else is known");
        book.change(1_000, 1_000_000);
        let slow = SlowClock { usual_khz: 3_000_000, khz: 1_000_000 };
        assert_eq!(book.slow_in(1_000, 1_100), Some(slow));
        assert_eq!(book.slow_in(990, 1_100), None, "it changed meanwhile");
        assert_eq!(book.slow_in(50, 60), None, "before the first change");
        book.change(1_200, 2_900_000);
        assert_eq!(book.slow_in(1_300, 1_400), None, "nearly as fast");
        assert_eq!(book.slow_in(1_050, 1_100), Some(slow), "as it was then");
        book.forget(1_500);
        assert_eq!(book.slow_in(1_600, 1_700), None);
        book.change(1_800, 1_000_000);
        assert_eq!(book.slow_in(1_800, 1_900), Some(slow), "what was usual stays");
    }

    #[test]
    fn a_frequency_explains_what_is_in_proportion() {
        let slow = SlowClock { usual_khz: 3_200_000, khz: 800_000 };
        assert_eq!(slow.ratio(), 4.0);
        for (length_ns, explains) in
            [(1_000, false), (1_001, true), (4_000, true), (5_000, true), (5_001, false)]
        {
            assert_eq!(slow.explains(length_ns, 1_000), explains, "{length_ns}");
        }
        assert!(!slow.explains(4_000, 0), "nothing is usual yet");
    }

    #[test]
    fn it_stays_of_its_size() {
        let mut book = ClockBook::default();
        for step in 0..10_000 {
            book.change(u64::from(step) * 10, step);
        }
        assert!(book.times.len() <= KNOWN && book.changes.len() <= CHANGES);
        book.change(u64::MAX, 0);
        assert!(book.slow_in(u64::MAX, u64::MAX).is_some_and(|slow| slow.ratio() > 1.0));
    }
}
