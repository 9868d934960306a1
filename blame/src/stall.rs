//! Stretches without an event: the evidence that tells the host or the firmware from code that has
//! interrupts off.
//!
//! Three tests: what the timer's interrupt found (`symbols`); whether another CPU
//! was silent at the same time, against how often it is by chance; whether the thread that ran got
//! less CPU time than passed on the clock.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A shorter stretch without an event is not looked at, ns.
pub(crate) const STALL_NS: u64 = 10_000;
/// A coincidence that chance brings more often than this proves nothing.
const RARE: f64 = 0.05;
/// Shortfalls of CPU time that are remembered a CPU.
const SHORTFALLS: usize = 64;
/// Evidence on a stretch without an event: that the host or the firmware had the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StallEvidence {
    /// True where another CPU was silent too.
    pub(crate) is_coincident: bool,
    /// The probability of that by chance, 0..1.
    pub(crate) chance: f64,
    /// True where the thread that ran got less CPU time than passed.
    pub(crate) is_stolen: bool,
}

impl StallEvidence {
    /// The evidence of the witness whose silence is least by chance; empty where there is none.
    pub(crate) fn rarest(witnesses: impl Iterator<Item = Self>) -> Self {
        let rarest = witnesses.min_by(|a, b| {
            b.is_coincident.cmp(&a.is_coincident).then(a.chance.total_cmp(&b.chance))
        });
        rarest.unwrap_or_default()
    }

    /// Returns true where it confirms that the CPU did not run at all.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.is_stolen || self.is_coincident && self.chance <= RARE
    }
}

/// Evidence on many stretches without an event, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StallSums {
    stretches: u32,
    /// Those in which another CPU was silent too; `expected` of them are by chance.
    coincident: u32,
    expected: f32,
    /// Those of which CPU time is missing.
    stolen: u32,
}

/// A coincidence that chance alone brings at least this often says nothing.
const BY_CHANCE: f64 = 0.01;
/// From so many expected ones on, counts scatter as a normal distribution does.
const MANY: f64 = 500.0;
/// So many of its standard deviations above are rarer than [`BY_CHANCE`].
const DEVIATIONS: f64 = 2.33;

impl StallSums {
    pub(crate) const fn is_empty(&self) -> bool {
        self.stretches == 0
    }

    pub(crate) fn add(&mut self, evidence: &StallEvidence) {
        let StallEvidence { is_coincident, chance, is_stolen } = *evidence;
        self.merge(&Self {
            stretches: 1,
            coincident: u32::from(is_coincident),
            expected: chance as f32,
            stolen: u32::from(is_stolen),
        });
    }

    pub(crate) fn merge(&mut self, from: &Self) {
        self.stretches = self.stretches.saturating_add(from.stretches);
        self.coincident = self.coincident.saturating_add(from.coincident);
        self.expected += from.expected;
        self.stolen = self.stolen.saturating_add(from.stolen);
    }

    /// Returns true where more than chance shows that CPUs did not run.
    pub(crate) fn show_stops(&self) -> bool {
        self.stolen > 0 || self.is_above_chance()
    }

    /// Returns true where other CPUs were silent more often than by chance, as counts scatter
    /// (Poisson).
    fn is_above_chance(&self) -> bool {
        let (found, expected) = (f64::from(self.coincident), f64::from(self.expected));
        if expected > MANY {
            return found > expected + DEVIATIONS * expected.sqrt();
        }
        // The probability of as many, or more: 1 − Σ e^−λ λ^i / i! of those below.
        let (mut term, mut below) = ((-expected).exp(), 0.0);
        for count in 0..self.coincident {
            below += term;
            term *= expected / f64::from(count + 1);
        }
        self.coincident > 0 && 1.0 - below < BY_CHANCE
    }
}

/// The number of stretches of which CPU time is missing, and whether coincidences are more than
/// chance.
impl fmt::Display for StallSums {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stretches, coincident, expected, stolen } = *self;
        match stolen {
            0 => write!(out, "no CPU time is missing")?,
            _ => write!(out, "CPU time is missing in {stolen} of {stretches} stretches")?,
        }
        let than = if self.is_above_chance() { "more than" } else { "no more than" };
        write!(out, ", another CPU was silent in {coincident} of {stretches}, {than} by chance")?;
        write!(out, " ({expected:.1})")
    }
}

#[derive(Debug, Clone, Copy)]
struct Shortfall {
    from_ns: u64,
    to_ns: u64,
    missing_ns: u64,
}

/// CPU time that the kernel booked, against the clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct StealBook {
    tid: u32,
    since_ns: u64,
    shortfalls: VecDeque<Shortfall>,
}

impl StealBook {
    /// A thread begins to run: its time counts from now.
    pub(crate) const fn begin(&mut self, tid: u32, at_ns: u64) {
        self.tid = tid;
        self.since_ns = at_ns;
    }

    /// The kernel books CPU time (`sched_stat_runtime`).
    pub(crate) fn book(&mut self, tid: u32, at_ns: u64, took_ns: u64) {
        let from_ns = self.since_ns;
        let is_known = tid == self.tid && from_ns < at_ns;
        self.begin(tid, at_ns);
        if !is_known {
            return;
        }
        let missing_ns = (at_ns - from_ns).saturating_sub(took_ns);
        if missing_ns < STALL_NS {
            return;
        }
        if self.shortfalls.len() == SHORTFALLS {
            self.shortfalls.pop_front();
        }
        self.shortfalls.push_back(Shortfall { from_ns, to_ns: at_ns, missing_ns });
    }

    /// Returns true where more than half of a stretch is missing from the CPU time booked over it.
    /// Interrupts of the host itself are not steal: below 100 µs nothing may be missing although it
    /// stood still.
    pub(crate) fn is_stolen(&self, from_ns: u64, to_ns: u64) -> bool {
        self.shortfalls.iter().rev().any(|shortfall| {
            shortfall.from_ns <= from_ns
                && shortfall.to_ns >= to_ns
                && shortfall.missing_ns > (to_ns - from_ns) / 2
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_was_not_booked_is_stolen() {
        let mut book = StealBook::default();
        book.begin(7, 1_000);
        book.book(7, 401_000, 160_000);
        assert!(book.is_stolen(50_000, 350_000));
        // 240 µs are missing: not half of 300 µs more.
        book.begin(7, 401_000);
        book.book(7, 801_000, 260_000);
        assert!(!book.is_stolen(450_000, 750_000));
        assert!(!book.is_stolen(300_000, 500_000));
    }

    #[test]
    fn steal_begins_beyond_half_of_a_stretch_that_was_booked_whole() {
        // A stretch from 100 to 300 µs; booked from `since` to `until`, so much missing.
        let is_stolen = |since_ns: u64, until_ns: u64, missing_ns: u64| {
            let mut book = StealBook::default();
            book.begin(7, since_ns);
            book.book(7, until_ns, (until_ns - since_ns).saturating_sub(missing_ns));
            book.is_stolen(100_000, 300_000)
        };
        assert!(!is_stolen(50_000, 350_000, 100_000), "half of it");
        assert!(is_stolen(50_000, 350_000, 100_001));
        assert!(is_stolen(100_000, 300_000, 100_001), "just booked whole");
        assert!(!is_stolen(100_001, 300_000, 150_000), "its begin was booked before");
        assert!(!is_stolen(100_000, 299_999, 150_000), "its end is not booked yet");
        // More time than passed: clocks of two CPUs.
        let mut book = StealBook::default();
        book.begin(7, 1_000);
        book.book(7, 401_000, u64::MAX);
        assert!(!book.is_stolen(50_000, 350_000));
        // Of a short one the whole, but not below what is looked at.
        let is_short_stolen = |missing_ns: u64| {
            let mut book = StealBook::default();
            book.begin(7, 100_000);
            book.book(7, 120_000, 20_000 - missing_ns);
            book.is_stolen(102_000, 118_000)
        };
        assert!(!is_short_stolen(STALL_NS - 1) && is_short_stolen(STALL_NS));
    }

    #[test]
    fn coincidences_say_something_only_above_chance() {
        let sums = |stretches, coincident, expected, stolen| StallSums {
            stretches,
            coincident,
            expected,
            stolen,
        };
        let usual = sums(24, 19, 18.8, 0);
        let said = "no CPU time is missing, another CPU was silent in 19 of 24, no more than by \
                    chance (18.8)";
        assert_eq!(usual.to_string(), said);
        assert!(!usual.show_stops() && sums(24, 19, 18.8, 6).show_stops());
        let stops = sums(937, 896, 4.9, 0);
        assert!(stops.show_stops() && stops.to_string().contains(", more than by chance (4.9)"));
        for (coincident, expected, is_above) in [
            (1, 0.04, false),
            (1, 0.001, true),
            (2, 0.04, true),
            (3, 0.8, false),
            (0, 0.0, false),
            (600, 590.0, false),
            (700, 590.0, true),
        ] {
            let sums = sums(1_000, coincident, expected, 0);
            assert_eq!(sums.is_above_chance(), is_above, "{sums:?}");
        }
    }

    #[test]
    fn time_of_another_thread_is_not_compared() {
        let mut book = StealBook::default();
        book.begin(7, 1_000);
        book.book(8, 401_000, 10);
        assert!(!book.is_stolen(50_000, 350_000));
        for step in 0..200_u64 {
            book.begin(7, step * 1_000_000);
            book.book(7, step * 1_000_000 + 500_000, 0);
        }
        assert_eq!(book.shortfalls.len(), SHORTFALLS);
    }
}
