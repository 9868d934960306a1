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

/// The silence of another CPU in a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Silence {
    pub(crate) is_silent: bool,
    /// The probability of that by chance, 0..1.
    pub(crate) chance: f64,
}

/// Evidence on a stretch without an event: that the host or the firmware had the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StallEvidence {
    /// True where another CPU was silent too.
    pub(crate) is_coincident: bool,
    /// The probability of that by chance, 0..1: of several silent ones the least.
    pub(crate) chance: f64,
    /// True where the thread that ran got less CPU time than passed.
    pub(crate) is_stolen: bool,
    /// The CPU that is least by chance silent so long, silent or not; `None` without another one,
    /// or where that was not written.
    #[serde(default)]
    witness: Option<Silence>,
    /// True where another CPU had events meanwhile.
    #[serde(default)]
    has_worked: bool,
}

impl StallEvidence {
    /// The evidence of other CPUs, and of missing CPU time.
    pub(crate) fn new(witnesses: impl Iterator<Item = Silence>, is_stolen: bool) -> Self {
        let mut evidence = Self { is_stolen, ..Self::default() };
        let mut rarest: Option<Silence> = None;
        for silence in witnesses {
            let Silence { is_silent, chance } = silence;
            evidence.has_worked |= !is_silent;
            if is_silent && rarest.is_none_or(|rarest| chance < rarest.chance) {
                rarest = Some(silence);
            }
            // Chosen by what was known before: what is chosen by its outcome is above chance.
            if evidence.witness.is_none_or(|witness| chance < witness.chance) {
                evidence.witness = Some(silence);
            }
        }
        evidence.is_coincident = rarest.is_some();
        evidence.chance = rarest.or(evidence.witness).map_or(0.0, |silence| silence.chance);
        evidence
    }

    /// Returns true where it confirms that the CPU did not run at all.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.is_stolen || self.is_coincident && self.chance <= RARE
    }
}

/// Stretches in which another CPU was silent too.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Coincidences {
    stretches: u32,
    found: u32,
    /// So many of them are by chance.
    expected: f32,
}

/// A coincidence that chance alone brings at least this often says nothing.
const BY_CHANCE: f64 = 0.01;
/// Fewer stretches than these are not looked at alone.
const TELLING_MIN: u32 = 5;
/// From so many expected ones on, counts scatter as a normal distribution does.
const MANY: f64 = 500.0;
/// So many of its standard deviations above are rarer than [`BY_CHANCE`].
const DEVIATIONS: f64 = 2.33;

impl Coincidences {
    fn add(&mut self, Silence { is_silent, chance }: Silence) {
        let found = u32::from(is_silent);
        self.merge(&Self { stretches: 1, found, expected: chance as f32 });
    }

    fn merge(&mut self, from: &Self) {
        self.stretches = self.stretches.saturating_add(from.stretches);
        self.found = self.found.saturating_add(from.found);
        self.expected += from.expected;
    }

    /// Returns true where other CPUs were silent more often than by chance, as counts scatter
    /// (Poisson).
    fn are_above_chance(&self) -> bool {
        let (found, expected) = (f64::from(self.found), f64::from(self.expected));
        if expected > MANY {
            return found > expected + DEVIATIONS * expected.sqrt();
        }
        // The probability of as many, or more: 1 − Σ e^−λ λ^i / i! of those below.
        let (mut term, mut below) = ((-expected).exp(), 0.0);
        for count in 0..self.found {
            below += term;
            term *= expected / f64::from(count + 1);
        }
        self.found > 0 && 1.0 - below < BY_CHANCE
    }
}

/// Evidence on many stretches without an event, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StallSums {
    stretches: u32,
    /// Those with another CPU: the one that is least by chance silent so long.
    watched: Coincidences,
    /// Those of them in which its silence tells something: short ones, which chance alone makes
    /// silent, would hide them.
    telling: Coincidences,
    /// The time of those with another CPU, and of those in which one had events, ns.
    watched_ns: u64,
    worked_ns: u64,
    /// Those of which CPU time is missing.
    stolen: u32,
}

impl StallSums {
    pub(crate) const fn is_empty(&self) -> bool {
        self.stretches == 0
    }

    pub(crate) fn add(&mut self, evidence: &StallEvidence, length_ns: u64) {
        let (mut watched, mut telling) = (Coincidences::default(), Coincidences::default());
        if let Some(silence) = evidence.witness {
            watched.add(silence);
            if silence.chance <= RARE {
                telling.add(silence);
            }
        }
        self.merge(&Self {
            stretches: 1,
            watched,
            telling,
            watched_ns: if evidence.witness.is_some() { length_ns } else { 0 },
            worked_ns: if evidence.has_worked { length_ns } else { 0 },
            stolen: u32::from(evidence.is_stolen),
        });
    }

    pub(crate) fn merge(&mut self, from: &Self) {
        self.stretches = self.stretches.saturating_add(from.stretches);
        self.watched.merge(&from.watched);
        self.telling.merge(&from.telling);
        self.watched_ns = self.watched_ns.saturating_add(from.watched_ns);
        self.worked_ns = self.worked_ns.saturating_add(from.worked_ns);
        self.stolen = self.stolen.saturating_add(from.stolen);
    }

    /// The coincidences that are looked at: all where few tell something, for chances are known
    /// from what was seen before.
    const fn coincidences(&self) -> Coincidences {
        if self.telling.stretches >= TELLING_MIN { self.telling } else { self.watched }
    }

    /// Returns true where more than chance shows that CPUs did not run.
    pub(crate) fn show_stops(&self) -> bool {
        self.stolen > 0 || self.coincidences().are_above_chance()
    }

    /// Returns true where no other CPU had an event in stretches of four fifths of the time:
    /// firmware that takes one CPU takes all of them. A CPU that idles has none either, and without
    /// another one nothing speaks against it.
    pub(crate) const fn may_be_of_all_cpus(&self) -> bool {
        self.stretches > 0 && self.worked_ns.saturating_mul(5) <= self.watched_ns
    }
}

/// The number of stretches of which CPU time is missing, and whether coincidences are more than
/// chance.
impl fmt::Display for StallSums {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stolen {
            0 => write!(out, "no CPU time is missing")?,
            stolen => {
                write!(out, "CPU time is missing in {stolen} of {} stretches", self.stretches)?;
            }
        }
        let coincidences = self.coincidences();
        let Coincidences { stretches, found, expected } = coincidences;
        if stretches == 0 {
            return Ok(());
        }
        let than = if coincidences.are_above_chance() { "more than" } else { "no more than" };
        write!(out, ", another CPU was silent in {found} of {stretches}, {than} by chance")?;
        write!(out, " ({expected:.1})")
    }
}

#[derive(Debug, Clone, Copy)]
struct Shortfall {
    from_ns: u64,
    to_ns: u64,
    missing_ns: u64,
}

/// Missing time that stretches have used up, by the end of the time that was booked at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpentTime(Vec<(u64, u64)>);

impl SpentTime {
    fn of(&self, shortfall: &Shortfall) -> u64 {
        let spent = self.0.iter().filter(|(to_ns, _)| *to_ns == shortfall.to_ns);
        spent.map(|(_, spent_ns)| spent_ns).sum()
    }
}

/// CPU time that the kernel booked, against the clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct StealBook {
    tid: u32,
    since_ns: u64,
    /// The time of interrupts on this CPU when the thread's time began to count, ns.
    interrupts_before_ns: u64,
    /// The time of interrupts in all that was booked, and as much of it as was missing, ns.
    in_interrupts_ns: u64,
    left_out_ns: u64,
    shortfalls: VecDeque<Shortfall>,
}

impl StealBook {
    /// A thread begins to run: its time counts from now. All interrupts on this CPU up to now took
    /// `interrupts_ns`.
    pub(crate) const fn begin(&mut self, tid: u32, at_ns: u64, interrupts_ns: u64) {
        self.tid = tid;
        self.since_ns = at_ns;
        self.interrupts_before_ns = interrupts_ns;
    }

    /// The kernel books CPU time (`sched_stat_runtime`); interrupts as in [`Self::begin`].
    pub(crate) fn book(&mut self, tid: u32, at_ns: u64, took_ns: u64, interrupts_ns: u64) {
        let from_ns = self.since_ns;
        let is_known = tid == self.tid && from_ns < at_ns;
        let interrupted_ns = interrupts_ns.saturating_sub(self.interrupts_before_ns);
        self.begin(tid, at_ns, interrupts_ns);
        if !is_known {
            return;
        }
        let missing_ns = (at_ns - from_ns).saturating_sub(took_ns);
        let missing_ns = missing_ns.saturating_sub(self.left_out(interrupted_ns, missing_ns));
        if missing_ns < STALL_NS {
            return;
        }
        if self.shortfalls.len() == SHORTFALLS {
            self.shortfalls.pop_front();
        }
        self.shortfalls.push_back(Shortfall { from_ns, to_ns: at_ns, missing_ns });
    }

    /// The part of missing time that interrupts took, ns: a kernel that counts their time apart
    /// (CONFIG_IRQ_TIME_ACCOUNTING) leaves it out of the time of threads. One that does not shows
    /// so by what was booked.
    fn left_out(&mut self, interrupts_ns: u64, missing_ns: u64) -> u64 {
        // As of shorter stretches nothing is known of so little.
        if interrupts_ns < STALL_NS {
            return 0;
        }
        self.in_interrupts_ns = self.in_interrupts_ns.saturating_add(interrupts_ns);
        self.left_out_ns = self.left_out_ns.saturating_add(missing_ns.min(interrupts_ns));
        if self.left_out_ns < self.in_interrupts_ns / 2 { 0 } else { interrupts_ns }
    }

    /// Returns true where more than half of a stretch is missing from the CPU time booked over it,
    /// beside what others have used up; it uses up its own length of that. Interrupts of the host
    /// itself are not steal: below 100 µs nothing may be missing although it stood still.
    pub(crate) fn takes_stolen(&self, from_ns: u64, to_ns: u64, spent: &mut SpentTime) -> bool {
        let length_ns = to_ns - from_ns;
        let found = self.shortfalls.iter().rev().find_map(|shortfall| {
            let missing_ns = shortfall.missing_ns.saturating_sub(spent.of(shortfall));
            let is_stolen = shortfall.from_ns <= from_ns
                && shortfall.to_ns >= to_ns
                && missing_ns > length_ns / 2;
            is_stolen.then_some((shortfall.to_ns, missing_ns.min(length_ns)))
        });
        spent.0.extend(found);
        found.is_some()
    }

    /// As [`Self::takes_stolen`], of a stretch that is one of several in the time that was booked
    /// at once: more than half of that is missing.
    pub(crate) fn is_mostly_stolen(&self, from_ns: u64, to_ns: u64) -> bool {
        self.shortfalls.iter().rev().any(|shortfall| {
            shortfall.from_ns <= from_ns
                && shortfall.to_ns >= to_ns
                && shortfall.missing_ns > (shortfall.to_ns - shortfall.from_ns) / 2
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl StealBook {
        fn is_stolen(&self, from_ns: u64, to_ns: u64) -> bool {
            self.takes_stolen(from_ns, to_ns, &mut SpentTime::default())
        }
    }

    #[test]
    fn what_interrupts_took_is_missing_and_not_stolen() {
        // In 1 ms interrupts take 300 µs, and so much is missing beside what is stolen.
        let booked = |missing_ns: u64, times: u64| {
            let mut book = StealBook::default();
            for time in 0..times {
                let from_ns = time * 1_000_000;
                book.begin(7, from_ns, time * 300_000);
                let interrupts_ns = (time + 1) * 300_000;
                book.book(7, from_ns + 1_000_000, 1_000_000 - missing_ns, interrupts_ns);
            }
            let end_ns = times * 1_000_000;
            book.is_stolen(end_ns - 500_000, end_ns - 440_000)
        };
        assert!(!booked(305_000, 1) && booked(360_000, 1));
        // A kernel that counts interrupts as the thread's time: what is missing is stolen.
        assert!(booked(60_000, 9));
        // Of both the shorter stretch is no second one.
        let mut book = StealBook::default();
        book.begin(7, 0, 0);
        book.book(7, 1_000_000, 700_000, 0);
        let mut spent = SpentTime::default();
        assert!(book.takes_stolen(600_000, 900_000, &mut spent));
        assert!(!book.takes_stolen(100_000, 160_000, &mut spent));
        assert!(book.is_stolen(100_000, 160_000), "alone");
    }

    #[test]
    fn time_that_was_not_booked_is_stolen() {
        let mut book = StealBook::default();
        book.begin(7, 1_000, 0);
        book.book(7, 401_000, 160_000, 0);
        assert!(book.is_stolen(50_000, 350_000));
        // 240 µs are missing: not half of 300 µs more.
        book.begin(7, 401_000, 0);
        book.book(7, 801_000, 260_000, 0);
        assert!(!book.is_stolen(450_000, 750_000));
        assert!(!book.is_stolen(300_000, 500_000));
    }

    #[test]
    fn steal_begins_beyond_half_of_a_stretch_that_was_booked_whole() {
        // A stretch from 100 to 300 µs; booked from `since` to `until`, so much missing.
        let is_stolen = |since_ns: u64, until_ns: u64, missing_ns: u64| {
            let mut book = StealBook::default();
            book.begin(7, since_ns, 0);
            book.book(7, until_ns, (until_ns - since_ns).saturating_sub(missing_ns), 0);
            book.is_stolen(100_000, 300_000)
        };
        assert!(!is_stolen(50_000, 350_000, 100_000), "half of it");
        assert!(is_stolen(50_000, 350_000, 100_001));
        assert!(is_stolen(100_000, 300_000, 100_001), "just booked whole");
        assert!(!is_stolen(100_001, 300_000, 150_000), "its begin was booked before");
        assert!(!is_stolen(100_000, 299_999, 150_000), "its end is not booked yet");
        // More time than passed: clocks of two CPUs.
        let mut book = StealBook::default();
        book.begin(7, 1_000, 0);
        book.book(7, 401_000, u64::MAX, 0);
        assert!(!book.is_stolen(50_000, 350_000));
        // Of a short one the whole, but not below what is looked at.
        let is_short_stolen = |missing_ns: u64| {
            let mut book = StealBook::default();
            book.begin(7, 100_000, 0);
            book.book(7, 120_000, 20_000 - missing_ns, 0);
            book.is_stolen(102_000, 118_000)
        };
        assert!(!is_short_stolen(STALL_NS - 1) && is_short_stolen(STALL_NS));
    }

    #[test]
    fn coincidences_say_something_only_above_chance() {
        let sums = |stretches, found, expected, stolen| {
            let watched = Coincidences { stretches, found, expected };
            StallSums { stretches, watched, stolen, ..StallSums::default() }
        };
        let usual = sums(24, 19, 18.8, 0);
        let said = "no CPU time is missing, another CPU was silent in 19 of 24, no more than by \
                    chance (18.8)";
        assert_eq!(usual.to_string(), said);
        assert!(!usual.show_stops() && sums(24, 19, 18.8, 6).show_stops());
        let stops = sums(937, 896, 4.9, 0);
        assert!(stops.show_stops() && stops.to_string().contains(", more than by chance (4.9)"));
        for (found, expected, is_above) in [
            (1, 0.04, false),
            (1, 0.001, true),
            (2, 0.04, true),
            (3, 0.8, false),
            (0, 0.0, false),
            (600, 590.0, false),
            (700, 590.0, true),
        ] {
            let coincidences = Coincidences { stretches: 1_000, found, expected };
            assert_eq!(coincidences.are_above_chance(), is_above, "{coincidences:?}");
        }
    }

    fn evidence(witnesses: &[(bool, f64)]) -> StallEvidence {
        let silence = |&(is_silent, chance): &(bool, f64)| Silence { is_silent, chance };
        StallEvidence::new(witnesses.iter().map(silence), false)
    }

    #[test]
    fn stretches_that_chance_makes_silent_do_not_hide_those_that_tell() {
        let mut sums = StallSums::default();
        (0..100).for_each(|index| sums.add(&evidence(&[(index < 50, 0.5)]), 1));
        assert!(!sums.show_stops());
        assert!(sums.to_string().contains("silent in 50 of 100, no more than by chance (50.0)"));
        (0..4).for_each(|_| sums.add(&evidence(&[(true, RARE)]), 1));
        assert!(!sums.show_stops(), "few");
        sums.add(&evidence(&[(true, RARE)]), 1);
        assert!(sums.show_stops());
        assert!(sums.to_string().contains("silent in 5 of 5, more than by chance (0.2)"), "{sums}");
    }

    #[test]
    fn of_several_cpus_a_wake_is_confirmed_by_the_rarest_but_sums_do_not_choose_by_the_outcome() {
        // A is rarely silent, B mostly.
        let both = evidence(&[(true, 0.03), (true, 0.95)]);
        assert!(both.is_confirmed() && !both.has_worked);
        let idle_alone = evidence(&[(false, 0.03), (true, 0.95)]);
        assert!(idle_alone.is_coincident && !idle_alone.is_confirmed() && idle_alone.has_worked);
        // As often as chance has it: 3 of 100 of A, 95 of 100 of B.
        let mut sums = StallSums::default();
        for index in 0..100 {
            sums.add(&evidence(&[(index < 3, 0.03), (index % 20 > 0, 0.95)]), 1);
        }
        assert!(!sums.show_stops(), "{sums}");
        assert!(sums.to_string().contains("silent in 3 of 100, no more than by chance (3.0)"));
        assert!(!sums.may_be_of_all_cpus());
    }

    #[test]
    fn firmware_lets_no_cpu_work_and_a_lonely_cpu_tells_nothing() {
        let worked = |times: usize| {
            let mut sums = StallSums::default();
            (0..10).for_each(|index| sums.add(&evidence(&[(index >= times, 0.9)]), 1));
            sums.may_be_of_all_cpus()
        };
        assert!(worked(0) && worked(2) && !worked(3));
        // Short ones beside it say little.
        let mut noisy = StallSums::default();
        noisy.add(&evidence(&[(true, 0.9)]), 6_000_000);
        (0..20).for_each(|_| noisy.add(&evidence(&[(false, 0.9)]), 60_000));
        assert!(noisy.may_be_of_all_cpus());
        assert!(!StallSums::default().may_be_of_all_cpus(), "nothing was seen");
        let mut lonely = StallSums::default();
        (0..10).for_each(|_| lonely.add(&evidence(&[]), 1));
        assert!(lonely.may_be_of_all_cpus() && !lonely.show_stops());
        assert_eq!(lonely.to_string(), "no CPU time is missing");
    }

    #[test]
    fn time_of_another_thread_is_not_compared() {
        let mut book = StealBook::default();
        book.begin(7, 1_000, 0);
        book.book(8, 401_000, 10, 0);
        assert!(!book.is_stolen(50_000, 350_000));
        for step in 0..200_u64 {
            book.begin(7, step * 1_000_000, 0);
            book.book(7, step * 1_000_000 + 500_000, 0, 0);
        }
        assert_eq!(book.shortfalls.len(), SHORTFALLS);
    }
}
