//! Which approach is followed, and with which margin: what each costs, and the cheapest that
//! reaches the aim.
//!
//! For the learner: all that compares approaches. Takes no samples.

use super::learned::LearnPhase;
use super::learner::{DOUBTFUL, Learner, MARGIN_MIN_NS, REVIEW};
use super::levels::LEVELS;

/// Approaches are compared at a quantile that this many sleeps of each exceeded.
const BEYOND: f64 = 5.0;
/// A later approach in the list must be cheaper than an earlier one by this factor, which keeps the
/// choice of one start from the next's where two cost the same.
const CLOSE: f64 = 0.9;
/// Another approach must be cheaper than the one that is followed by this factor: closer ones swap
/// places by chance.
const CHEAPER: f64 = 0.85;

/// Sleeps from which on an approach counts as tried: fewer than a trial or the shortest calibration
/// have. Of one that another start did not pass on nothing is known: not that it costs nothing.
const TRIED: u32 = 40;

/// The share of late sleeps from which on an approach fails.
const FAILS: f64 = 0.25;

/// Where the aim is out of reach, so much more than the least share of late wakes is as good: what
/// a calibration can tell apart, and where the price of the next late wake avoided soars.
pub(super) const NEAR: f64 = 1.5;

impl Learner {
    /// The approaches that fit into a period.
    pub(super) fn levels(&self) -> impl Iterator<Item = usize> + '_ {
        (0..LEVELS).filter(|&level| self.sleeps[level] > 0)
    }

    /// CPU time that an approach takes in a period, ns: its wakes and its spin.
    pub(super) fn cost_ns(&self, level: usize, margin_ns: u64) -> f64 {
        self.wakes_ns(level) + self.bins[level].spin_ns(margin_ns)
    }

    pub(super) fn wakes_ns(&self, level: usize) -> f64 {
        self.sleeps[level] as f64 * self.aim.wake_cost.as_ns() as f64
    }

    /// The widest margin that the budget pays, ns; never more than half of the period.
    pub(super) fn margin_max_ns(&self, level: usize) -> u64 {
        let left_ns = self.budget_ns - self.wakes_ns(level);
        let widest = self.bins[level].margin_ns(left_ns.max(0.0));
        widest.clamp(MARGIN_MIN_NS, (self.period_ns / 2).max(MARGIN_MIN_NS))
    }

    /// Takes the cheapest approach that reaches the aim, or what of it can be had; stays with the
    /// one that is followed where no other is clearly cheaper.
    pub(super) fn choose(&mut self, followed: Option<usize>) {
        let tried = |level: &usize| self.tried(*level) && !self.fails(*level);
        let least = self.levels().filter(tried).map(|level| self.bins[level].n()).min();
        let least = least.unwrap_or(0);
        let chance = BEYOND / f64::from(least.max(1));
        let share = self.aim.late.max(chance).max(NEAR * self.had());
        let least_late = self.aim.late <= 0.0;
        let price = |level: usize| {
            let most = self.margin_max_ns(level);
            let needed = self.bins[level].exceeded_by_ns(share).saturating_add(MARGIN_MIN_NS);
            let reduction = if followed == Some(level) { CHEAPER } else { 1.0 };
            let short = needed > most && self.late_at_best(level) > share;
            let cost = match least_late {
                // How much of what the budget pays is needed: the rest is for what is rarer.
                true => needed as f64 / most as f64,
                false => self.cost_ns(level, needed.min(most)),
            };
            (short, cost * reduction)
        };
        let prices = self.levels().filter(tried).map(|level| (price(level), level));
        let chosen = prices.reduce(|best, other| {
            let ((short, cost), (best_short, best_cost)) = (other.0, best.0);
            let better = if short == best_short { cost < best_cost * CLOSE } else { best_short };
            if better { other } else { best }
        });
        self.level = chosen.map_or(followed.unwrap_or(0), |(_, level)| level);
        self.home = self.level;
        self.phase = LearnPhase::Following;
        self.left = REVIEW;
        self.set_target();
        self.set_margin();
    }

    fn tried(&self, level: usize) -> bool {
        self.bins[level].n() >= TRIED
    }

    /// The least share of late wakes that any approach has, as far as they were tried.
    fn had(&self) -> f64 {
        let tried = self.levels().filter(|&level| self.tried(level));
        tried.map(|level| self.late_at_best(level)).fold(1.0, f64::min)
    }

    /// Whether an approach is late so often, and another one so seldom, that more sleeps of it
    /// would tell nothing new.
    pub(super) fn fails(&self, level: usize) -> bool {
        let late = self.late_at_best(level);
        self.tried(level) && late > FAILS && late > DOUBTFUL * self.had()
    }

    /// The share of late wakes with the widest margin that the budget pays.
    pub(super) fn late_at_best(&self, level: usize) -> f64 {
        self.bins[level].share_above(self.margin_max_ns(level))
    }

    /// The aim, or nearly what can be had where that is more: the share of sleeps that came back
    /// later than the widest margin of the approach that is followed. The aim is out of reach where
    /// those are more than chance explains.
    pub(super) fn set_target(&mut self) {
        let bins = &self.bins[self.home];
        let above = f64::from(bins.above(self.margin_max_ns(self.home)));
        let expected = self.aim.late * f64::from(bins.n());
        // Two standard deviations of a Poisson count, and one more.
        let more = (above - expected - 1.0).max(0.0);
        self.reachable =
            more * more <= 4.0 * expected && self.wakes_ns(self.home) <= self.budget_ns;
        // Also where the aim is only just reachable: there the margin for it is decided by a few
        // sleeps, and so by chance.
        self.target = match self.aim.late <= 0.0 {
            true => self.aim.late,
            false => (NEAR * above / f64::from(bins.n().max(1))).clamp(self.aim.late, 1.0),
        };
    }

    pub(super) fn set_margin(&mut self) {
        let most = self.margin_max_ns(self.level);
        let wanted = match self.bins[self.level].bound_ns(self.target) {
            Some(bound_ns) => bound_ns.saturating_add(MARGIN_MIN_NS),
            None if self.aim.late <= 0.0 => most,
            None => self.start_ns,
        };
        self.margin_ns = wanted.saturating_add(self.integral_ns as u64).min(most);
    }
}
