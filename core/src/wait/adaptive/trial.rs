//! Approaches tried: all in turns before anything is known, one at a time later.
//!
//! For the learner. Decides which approach is tried, for how many cycles and when that ends early;
//! never which is followed.

use super::bins::Bins;
use super::choice::NEAR;
use super::learned::LearnPhase;
use super::learner::{DOUBTFUL, Learner};
use super::levels::{LEVELS, PROBE_FIRST, SETTLE, samples};
use crate::wait::Spin;

/// The cycles between two trials at most, and of one: each approach in turn, at the widest margin
/// that the budget pays.
const PROBE_LAST: u32 = 1 << 16;
const PROBE: u32 = 64;
/// Sleeps of another approach above which a trial makes those before count half.
const KNOWN: u32 = 512;
/// The share of all late wakes that may come while another approach is tried.
const TRIALS: f64 = 0.1;
/// The cycles of an approach's turn in a calibration.
const TURN: u32 = 25;
/// Late wakes of a trial that are no surprise.
const SURPRISE: f64 = 2.0;

impl Learner {
    /// All approaches, in turns: a burst of stalls then meets all of them alike.
    pub(super) fn calibrate(&mut self) {
        // What was known was of another machine.
        self.bins = [const { Bins::new() }; LEVELS];
        self.integral_ns = 0.0;
        self.start_ns = Spin::FIXED.as_ns().unsigned_abs();
        self.resumed_late = None;
        self.rounds = samples(self.period_ns, &self.sleeps).0.div_ceil(TURN);
        self.phase = LearnPhase::Calibrating;
        self.attempt(0, TURN);
    }

    /// The next cycles are of this approach, at the widest margin that the budget pays.
    fn attempt(&mut self, level: usize, cycles: u32) {
        (self.level, self.left, self.settle) = (level, cycles, SETTLE);
        self.trial_late = 0;
        self.margin_ns = self.margin_max_ns(level);
    }

    pub(super) fn calibrated(&mut self) {
        // Two turns show which fail.
        let next = self.levels().find(|&level| level > self.level && !self.fails(level));
        if let Some(level) = next {
            return self.attempt(level, TURN);
        }
        self.rounds = self.rounds.saturating_sub(1);
        if self.rounds > 0 {
            let first = self.levels().find(|&level| !self.fails(level));
            return self.attempt(first.unwrap_or(0), TURN);
        }
        (self.cycles, self.late, self.trials_late) = (0, 0, 0);
        (self.since_doubt, self.doubted_late, self.since_probe) = (0, 0, 0);
        self.probe_every = PROBE_FIRST;
        self.choose(None);
    }

    /// A few cycles of another approach, at the widest margin that the budget pays; not while
    /// trials have had their share of the late wakes.
    pub(super) fn probe(&mut self) {
        self.since_probe = 0;
        if self.trials_spent() {
            return;
        }
        let home = self.home;
        let other = |level: &usize| *level != home;
        let after = self.levels().filter(other).find(|&level| level > self.probed);
        let Some(level) = after.or_else(|| self.levels().find(other)) else { return };
        if level <= self.probed {
            // All had their turn.
            self.probe_every = (2 * self.probe_every).min(PROBE_LAST);
        }
        self.probed = level;
        self.phase = LearnPhase::Probing;
        // What was known counts for less; for little where a burst of stalls may have met it.
        let forgotten = match self.late_at_best(level) > NEAR * self.late_at_best(home) {
            true => 2,
            false => u32::from(self.bins[level].n() > KNOWN),
        };
        (0..forgotten).for_each(|_| self.bins[level].halve());
        self.attempt(level, PROBE);
    }

    /// A wake of a trial was late. It ends where it takes more of the late wakes than trials may,
    /// or is another machine's: the widest margin is no safe one where many wakes leave little of
    /// the budget.
    pub(super) fn late_in_trial(&mut self) {
        self.trials_late += 1;
        self.trial_late += 1;
        let expected = self.permitted() * f64::from(PROBE);
        if self.trials_spent() || f64::from(self.trial_late) > DOUBTFUL * expected + SURPRISE {
            self.left = 0;
        }
    }

    /// Whether trials had their share of the late wakes.
    fn trials_spent(&self) -> bool {
        self.trials_late as f64 > TRIALS * self.permitted() * self.cycles as f64
    }

    /// The share of wakes that may be late: what is followed, or what the approach cannot avoid.
    fn permitted(&self) -> f64 {
        self.target.max(self.late_at_best(self.home))
    }
}
