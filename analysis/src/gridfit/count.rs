//! Which release each wake belongs to, for recordings of instants alone.
//!
//! k is counted from wake to wake: the distance to the previous wake, less where that stood within
//! its period, rounded to periods. The place within the period is tracked (phase and rate), so a
//! drifting clock is drift and never a miss. A late wake followed by one that looks early is no
//! miss either: k must rise with each wake, so a count that ran ahead is pushed down by what
//! follows (a stall with its catch-up burst included), within [`LOOK_AHEAD`] wakes.
//! Streaming, constant memory.

use std::collections::VecDeque;

use punctual_core::time::Period;

/// How many later wakes can push a count down: the longest catch-up burst that is understood.
pub const LOOK_AHEAD: usize = 1024;

/// Share of a wake's place within the period that moves the tracked phase, and the rate.
const PHASE_GAIN: f64 = 1.0 / 32.0;
const RATE_GAIN: f64 = PHASE_GAIN * PHASE_GAIN / 4.0;
/// The tracked rate stays within this of nominal: beyond, the nominal period is wrong.
const RATE_MAX: f64 = 0.05;

/// A wake with the release it was assigned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedWake {
    /// k, counted from the first wake (which is 0).
    pub cycle: u64,
    /// The instant that was pushed, ns.
    pub wake_ns: u64,
}

/// Counts k from wake to wake. Push instants in order, take [`NumberedWake`] out with a delay of
/// [`LOOK_AHEAD`] wakes, then call [`Counter::finish`].
#[derive(Clone, Debug)]
pub struct Counter {
    period_ns: f64,
    /// (true period / nominal) − 1, tracked.
    rate: f64,
    /// Where the last wake stood within its period, ns, about the tracked phase.
    place_ns: f64,
    previous: Option<u64>,
    /// Cumulated rounded count of the last wake, before pushing down.
    count: i64,
    pushed: u64,
    waiting: VecDeque<u64>,
    /// (index, count − index) of waiting wakes, rising in both: the front is the window's minimum.
    lowest: VecDeque<(u64, i64)>,
    /// (k before the base is taken off) of the last wake that left.
    last_out: Option<i64>,
    base: i64,
    left: u64,
}

impl Counter {
    /// A counter for a nominal period.
    pub fn new(period: Period) -> Self {
        Self {
            period_ns: period.as_ns() as f64,
            rate: 0.0,
            place_ns: 0.0,
            previous: None,
            count: 0,
            pushed: 0,
            waiting: VecDeque::with_capacity(LOOK_AHEAD + 1),
            lowest: VecDeque::with_capacity(LOOK_AHEAD + 1),
            last_out: None,
            base: 0,
            left: 0,
        }
    }

    /// Takes in the next wake, and gives the one that [`LOOK_AHEAD`] wakes have followed. An
    /// instant before the previous one counts as equal to it.
    pub fn push(&mut self, wake_ns: u64) -> Option<NumberedWake> {
        let elapsed_ns = wake_ns.saturating_sub(self.previous.unwrap_or(wake_ns)) as f64;
        self.previous = Some(self.previous.map_or(wake_ns, |previous| previous.max(wake_ns)));
        self.count = self.count.saturating_add(self.periods_in(elapsed_ns));

        let ahead = self.count.saturating_sub_unsigned(self.pushed);
        while self.lowest.back().is_some_and(|&(_, other)| other >= ahead) {
            self.lowest.pop_back();
        }
        self.lowest.push_back((self.pushed, ahead));
        self.pushed += 1;
        self.waiting.push_back(wake_ns);
        if self.waiting.len() > LOOK_AHEAD { self.finish() } else { None }
    }

    /// Gives the oldest wake still waiting; call until `None` once all are pushed.
    pub fn finish(&mut self) -> Option<NumberedWake> {
        let wake_ns = self.waiting.pop_front()?;
        let &(at, ahead) = self.lowest.front()?;
        let mut k = ahead.saturating_add_unsigned(self.left);
        if at == self.left {
            self.lowest.pop_front();
        }
        match self.last_out {
            Some(last) => k = k.max(last.saturating_add(1)),
            None => self.base = k,
        }
        self.last_out = Some(k);
        self.left += 1;
        Some(NumberedWake { cycle: k.abs_diff(self.base), wake_ns })
    }

    /// Whole periods in what elapsed since the previous wake; follows phase and rate.
    fn periods_in(&mut self, elapsed_ns: f64) -> i64 {
        let period_ns = self.period_ns * (1.0 + self.rate);
        let place_ns = self.place_ns + elapsed_ns;
        let periods = (place_ns / period_ns).round();
        let place_ns = place_ns - periods * period_ns;
        self.place_ns = place_ns * (1.0 - PHASE_GAIN);
        self.rate = (self.rate + RATE_GAIN * place_ns / period_ns).clamp(-RATE_MAX, RATE_MAX);
        periods as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(period_ns: u64, wakes: &[u64]) -> Vec<u64> {
        let mut counter = Counter::new(Period::from_ns(period_ns).unwrap());
        let mut out: Vec<NumberedWake> =
            wakes.iter().filter_map(|&wake| counter.push(wake)).collect();
        out.extend(std::iter::from_fn(|| counter.finish()));
        assert_eq!(out.iter().map(|c| c.wake_ns).collect::<Vec<_>>(), wakes);
        out.into_iter().map(|c| c.cycle).collect()
    }

    #[test]
    fn a_late_wake_before_an_early_looking_one_is_no_miss() {
        assert_eq!(counted(100, &[0, 100, 260, 300, 400]), [0, 1, 2, 3, 4]);
        assert_eq!(counted(100, &[0, 160, 270, 300, 400]), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_catch_up_burst_is_no_miss_and_a_skip_is_one() {
        let burst = [
            0, 100, 200, 1_200, 1_201, 1_202, 1_203, 1_204, 1_205, 1_206, 1_207, 1_208, 1_209,
            1_300,
        ];
        assert_eq!(counted(100, &burst), (0..14).collect::<Vec<_>>());
        assert_eq!(counted(100, &[0, 100, 200, 1_200, 1_300]), [0, 1, 2, 12, 13]);
    }

    #[test]
    fn a_drifting_clock_is_no_miss() {
        for ppm in [-1_000i64, -20, 1_000] {
            let period = 500_000i64;
            let wakes: Vec<u64> = (0..1_000_000i64)
                .map(|k| (k * (period + period * ppm / 1_000_000) + (k * 7_919 % 40_000)) as u64)
                .collect();
            let ks = counted(500_000, &wakes);
            assert!(ks.iter().enumerate().all(|(i, &k)| i as u64 == k), "{ppm}");
        }
    }

    #[test]
    fn more_wakes_than_releases_still_rise() {
        let ks = counted(1_000_000, &vec![5; 3_000]);
        assert!(ks.is_sorted_by(|a, b| a < b));
        assert_eq!(ks.len(), 3_000);
    }

    proptest! {
        #[test]
        fn any_instants_give_rising_counts(
            mut wakes in prop::collection::vec(any::<u64>(), 1..3_000),
            period in 1u64..=Period::MAX_NS,
        ) {
            wakes.sort_unstable();
            let ks = counted(period, &wakes);
            prop_assert_eq!(ks[0], 0);
            // Rising strictly, except where the range of counts itself ends.
            prop_assert!(ks.is_sorted());
        }

        /// Releases skipped at random, lateness up to 30 % of the period, any rate within 500 ppm:
        /// the count is the truth. (The tracked rate is uncertain by some 0.1 %, which a gap of 20
        /// periods makes 2 % of one: what lateness may take up is a half less all that.)
        #[test]
        fn known_releases_are_recovered(
            steps in prop::collection::vec(
                (prop_oneof![20 => Just(1u64), 1 => 2u64..20], 0u64..300),
                2..2_000,
            ),
            rate in -500i64..500,
        ) {
            let (mut k, mut truth, mut wakes) = (0u64, vec![], vec![]);
            for (step, lateness) in steps {
                truth.push(k);
                wakes.push(k * 1_000 + ((k as i64 * rate) / 1_000 + 2_000) as u64 + lateness);
                k += step;
            }
            prop_assert_eq!(counted(1_000, &wakes), truth);
        }
    }
}
