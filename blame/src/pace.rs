//! A thread's own rhythm: its period, and whether it sleeps early and spins the rest.

use std::collections::VecDeque;

/// Cycles that are looked at: the last ones.
const CYCLES: usize = 257;
/// Cycles that are needed for a margin.
const NEEDED: usize = 64;
/// Standard errors by which a slope may be off.
const STANDARD_ERRORS: f64 = 3.0;

/// One cycle: how late it began, and how long after its release the next was programmed.
#[derive(Debug, Clone, Copy)]
struct Cycle {
    lateness_ns: u64,
    end_ns: i64,
}

/// The rhythm of one thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    releases: VecDeque<u64>,
    cycles: VecDeque<Cycle>,
    margin_ns: u64,
    since_margin: usize,
    /// No margin is learnt.
    has_no_margin: bool,
}

impl Pace {
    /// A release has passed.
    pub(crate) fn release(&mut self, release_ns: u64) {
        if self.releases.back().is_some_and(|&last| last >= release_ns) {
            return;
        }
        if self.releases.len() == CYCLES {
            self.releases.pop_front();
        }
        self.releases.push_back(release_ns);
    }

    /// It is taken to have no margin.
    pub(crate) const fn learn_no_margin(&mut self) {
        self.has_no_margin = true;
    }

    /// The next timer was programmed so long after a release that began so late.
    pub(crate) fn cycle(&mut self, lateness_ns: u64, end_ns: i64) {
        if self.cycles.len() == CYCLES {
            self.cycles.pop_front();
        }
        self.cycles.push_back(Cycle { lateness_ns, end_ns });
        self.since_margin += 1;
        if self.since_margin >= NEEDED && !self.has_no_margin {
            self.since_margin = 0;
            self.margin_ns = self.learnt_margin_ns().unwrap_or(0);
        }
    }

    /// The median time between two releases, ns; `None` below three of them. Skipped releases show
    /// as multiples, which a median does not heed.
    pub(crate) fn period_ns(&self) -> Option<u64> {
        if self.releases.len() < 3 {
            return None;
        }
        let pairs = self.releases.iter().zip(self.releases.iter().skip(1));
        let mut differences: Vec<u64> = pairs.map(|(from, to)| to - from).collect();
        let middle = differences.len() / 2;
        Some(*differences.select_nth_unstable(middle).1)
    }

    /// Its margin: the time by which its timer expires before its real goal, ns; lateness up to
    /// that is taken up by spinning. 0 where it does not spin, or was not seen to.
    pub(crate) const fn margin_ns(&self) -> u64 {
        self.margin_ns
    }

    /// A thread that spins ends its cycle at one instant after its release, however late it woke,
    /// up to its margin; others end later the later they woke. The slope of the end over the
    /// lateness is 0.05 for the former and 1.07 for the latter (measured). Where ends scatter so
    /// much that it may be more than half by its standard error (waits for a lock), nothing shows.
    fn learnt_margin_ns(&self) -> Option<u64> {
        if self.cycles.len() < NEEDED {
            return None;
        }
        let mut sorted: Vec<Cycle> = self.cycles.iter().copied().collect();
        sorted.sort_unstable_by_key(|cycle| (cycle.lateness_ns, cycle.end_ns));
        let lower = &sorted[..sorted.len() * 9 / 10];
        let spread_ns = lower[lower.len() - 1].lateness_ns - lower[0].lateness_ns;
        let Slope { slope, error } = Slope::new(lower)?;
        // Below a microsecond of spread a slope is that of the noise.
        if spread_ns < 1_000 || slope.abs() + STANDARD_ERRORS * error > 0.5 {
            return None;
        }
        let mut ends: Vec<i64> = lower.iter().map(|cycle| cycle.end_ns).collect();
        let middle = ends.len() / 2;
        let usual_ns = *ends.select_nth_unstable(middle).1;
        let mut apart: Vec<u64> = ends.iter().map(|end_ns| end_ns.abs_diff(usual_ns)).collect();
        let tolerance_ns = 2_000 + 5 * *apart.select_nth_unstable(middle).1;
        let spun = |cycle: &&Cycle| cycle.end_ns.saturating_sub(usual_ns) <= tolerance_ns as i64;
        sorted.iter().filter(spun).map(|cycle| cycle.lateness_ns).max()
    }
}

/// The slope of the end over the lateness, by least squares.
struct Slope {
    slope: f64,
    /// Its standard error, by what lies off the line.
    error: f64,
}

impl Slope {
    /// `None` where the lateness never varies.
    fn new(cycles: &[Cycle]) -> Option<Self> {
        let n = cycles.len() as f64;
        let mean = |values: &dyn Fn(&Cycle) -> f64| cycles.iter().map(values).sum::<f64>() / n;
        let lateness = mean(&|cycle| cycle.lateness_ns as f64);
        let end = mean(&|cycle| cycle.end_ns as f64);
        let square = mean(&|cycle| (cycle.lateness_ns as f64 - lateness).powi(2));
        let product =
            mean(&|cycle| (cycle.lateness_ns as f64 - lateness) * (cycle.end_ns as f64 - end));
        let slope = product / square;
        let off_the_line = mean(&|cycle| {
            (cycle.end_ns as f64 - end - slope * (cycle.lateness_ns as f64 - lateness)).powi(2)
        });
        (square > 0.0).then(|| Self { slope, error: (off_the_line / (square * n)).sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_a_median() {
        let mut pace = Pace::default();
        pace.release(1_000);
        pace.release(2_000);
        assert_eq!(pace.period_ns(), None);
        for release in [3_000, 5_000, 6_000, 6_000, 7_000, 8_001] {
            pace.release(release);
        }
        assert_eq!(pace.period_ns(), Some(1_000));
    }

    fn paced(end: impl Fn(u64) -> i64) -> u64 {
        let mut pace = Pace::default();
        for cycle in 0..256_u64 {
            let rare = if cycle % 20 == 0 { cycle / 20 * 7_000 } else { 0 };
            let lateness = 15_000 + cycle * 7_919 % 20_000 + rare;
            pace.cycle(lateness, end(lateness));
        }
        pace.margin_ns()
    }

    #[test]
    fn a_thread_that_works_at_once_has_no_margin() {
        assert_eq!(paced(|lateness| lateness as i64 + 30_000), 0);
    }

    #[test]
    fn a_thread_that_spins_has_the_latest_unmoved_end_as_margin() {
        let margin = paced(|lateness| lateness.max(100_000) as i64 + 30_000);
        assert!((88_000..=104_000).contains(&margin), "{margin}");
    }

    #[test]
    fn a_thread_whose_cycles_end_at_random_shows_no_margin() {
        // Works 120 µs, and waits for a lock in each 20th cycle, by chance in early ones too.
        for seed in 0..64_u64 {
            let mut pace = Pace::default();
            for cycle in 0..256_u64 {
                let random = (cycle + seed * 1_000).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let lateness = 15_000 + random % 20_000;
                let scatter = (random >> 32) % 90_000;
                let wait = if (random >> 20).is_multiple_of(20) { 900_000 } else { 0 };
                pace.cycle(lateness, (lateness + 30_000 + scatter + wait) as i64);
                assert_eq!(pace.margin_ns(), 0, "seed {seed}, cycle {cycle}");
            }
        }
    }

    #[test]
    fn a_lateness_that_never_varies_shows_nothing() {
        let mut pace = Pace::default();
        (0..256).for_each(|_| pace.cycle(15_000, 30_000));
        assert_eq!(pace.margin_ns(), 0);
    }
}
