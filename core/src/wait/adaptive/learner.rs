//! Which approach suits this machine: tried, chosen, followed and doubted.
//!
//! For the adaptive wait. First each approach is tried, at the widest margin that the budget pays;
//! then the cheapest that reaches the aim is kept. Where none does, the target becomes nearly what
//! the best of them reaches, and the status reports that: more spinning would not help. Its margin
//! follows a decayed histogram of its own wakes and an integrator of late ones: online quantile
//! tracking, whose share of late wakes converges for any sequence (Gibbs & Candès 2021;
//! Angelopoulos, Barber & Bates 2024). Never allocates, reads no clock.

use super::Target;
use super::bins::Bins;
use super::learned::{LearnPhase, Learned};
use super::levels::{HOPS, LEVELS, samples, sleeps};
use crate::wait::WakePlan;

/// The least margin, ns: a poll, a stamp and the return of a call.
const MARGIN_MIN_NS: u64 = 2_000;
/// Cycles between two settings of the margin.
const REVIEW: u32 = 64;
/// Cycles after which it checks whether the target was met.
const DOUBT: u32 = 4_096;
/// Cycles after which another approach is tried again, and for how many: a cheaper one, and at the
/// default aim all of them may be late; each in turn, and more often, where the aim is missed.
const PROBE_EVERY: u32 = 1 << 16;
const PROBE_EVERY_SHORT: u32 = 1 << 13;
const PROBE: u32 = 64;
/// The cycles of an approach's turn in a calibration, and of those the first, after which the
/// machine is as the approach makes it.
const TURN: u32 = 25;
const SETTLE: u32 = 2;
/// So many times as many late wakes as were expected are another machine's.
const DOUBTFUL: f64 = 8.0;
/// Where the aim is out of reach, so much more than the least share of late wakes is as good: what
/// a calibration can tell apart, and where the price of the next late wake avoided soars.
const NEAR: f64 = 1.5;
/// Nanoseconds that the integrator moves by for a late wake.
const STEP_NS: f64 = 1_000.0;

/// Learns from how late sleeps came back.
#[derive(Clone, Debug)]
pub(super) struct Learner {
    aim: Target,
    period_ns: u64,
    budget_ns: f64,
    /// What is known of each approach.
    bins: [Bins; LEVELS],
    /// How often it sleeps a period, for each approach; 0 for one that does not fit, or whose
    /// wakes alone take more than the budget.
    sleeps: [u64; LEVELS],
    level: usize,
    phase: LearnPhase,
    /// Cycles until this phase's next step, and how many of them only lead to what is requested:
    /// the sleeps before were another approach's.
    left: u32,
    settle: u32,
    /// Turns that each approach has yet in a calibration.
    rounds: u32,
    /// The level that was chosen, and the one that was probed last.
    home: usize,
    probed: usize,
    margin_ns: u64,
    integral_ns: f64,
    reachable: bool,
    /// The share of late wakes that is followed: the aim's, or what can be had.
    target: f64,
    /// Since the last calibration.
    cycles: u64,
    late: u64,
    /// Since the last doubt.
    doubted_late: u32,
    since_doubt: u32,
    since_probe: u32,
    /// Doubts to be let pass before calibrating anew; doubles each time.
    patience: u32,
    patient: u32,
}

impl Learner {
    pub(super) fn new(aim: Target) -> Self {
        let period_ns = aim.period.as_ns();
        let budget_ns = aim.budget.clamp(0.0, 1.0) * period_ns as f64;
        let wake_ns = aim.wake_cost.as_ns() as f64;
        let mut sleeps = sleeps(period_ns);
        // One sleep there must be.
        sleeps[1..].iter_mut().filter(|n| **n as f64 * wake_ns > budget_ns).for_each(|n| *n = 0);
        let mut learner = Self {
            aim,
            period_ns,
            budget_ns,
            bins: [const { Bins::new() }; LEVELS],
            sleeps,
            level: 0,
            phase: LearnPhase::Calibrating,
            left: 0,
            settle: 0,
            rounds: 0,
            home: 0,
            probed: 0,
            margin_ns: MARGIN_MIN_NS,
            integral_ns: 0.0,
            reachable: true,
            target: aim.late,
            cycles: 0,
            late: 0,
            doubted_late: 0,
            since_doubt: 0,
            since_probe: 0,
            patience: 1,
            patient: 0,
        };
        learner.calibrate();
        learner
    }

    pub(super) fn approach(&self) -> WakePlan {
        let (hop_ns, hops) = HOPS[self.level];
        WakePlan { hop_ns, hops, margin_ns: self.margin_ns, corrected: false }
    }

    pub(super) fn learned(&self) -> Learned {
        let bins = &self.bins[self.home];
        Learned {
            phase: self.phase,
            approach: self.approach(),
            late: self.late as f64 / self.cycles.max(1) as f64,
            cycles: self.cycles,
            cpu: self.cost_ns(self.home, self.margin_ns) / self.period_ns as f64,
            reachable: self.reachable,
            extrapolated: f64::from(bins.n()) * self.aim.late < 10.0,
        }
    }

    /// One final sleep came back `late_ns` after its instant.
    pub(super) fn learn(&mut self, late_ns: u64) {
        match self.settle.checked_sub(1) {
            Some(less) => self.settle = less,
            None => self.bins[self.level].push(late_ns),
        }
        let late = late_ns > self.margin_ns;
        self.left = self.left.saturating_sub(1);
        if self.phase != LearnPhase::Calibrating {
            self.cycles += 1;
            self.late += u64::from(late);
            self.since_probe += 1;
        }
        match self.phase {
            LearnPhase::Calibrating if self.left == 0 => self.calibrated(),
            LearnPhase::Following => self.follow(late),
            LearnPhase::Probing if self.left == 0 => self.choose(),
            _ => {}
        }
    }

    /// The approaches that fit into a period.
    fn levels(&self) -> impl Iterator<Item = usize> + '_ {
        (0..LEVELS).filter(|&level| self.sleeps[level] > 0)
    }

    /// CPU time that an approach takes in a period, ns: its wakes and its spin.
    fn cost_ns(&self, level: usize, margin_ns: u64) -> f64 {
        self.wakes_ns(level) + self.bins[level].spin_ns(margin_ns)
    }

    fn wakes_ns(&self, level: usize) -> f64 {
        self.sleeps[level] as f64 * self.aim.wake_cost.as_ns() as f64
    }

    /// The widest margin that the budget pays, ns; never more than half of the period.
    fn margin_max_ns(&self, level: usize) -> u64 {
        let left_ns = self.budget_ns - self.wakes_ns(level);
        let widest = self.bins[level].margin_ns(left_ns.max(0.0));
        widest.clamp(MARGIN_MIN_NS, (self.period_ns / 2).max(MARGIN_MIN_NS))
    }

    /// All approaches, in turns: a burst of stalls then meets all of them alike.
    fn calibrate(&mut self) {
        // What was known was of another machine.
        self.bins = [const { Bins::new() }; LEVELS];
        self.integral_ns = 0.0;
        self.rounds = samples(self.period_ns, &self.sleeps).0.div_ceil(TURN);
        self.phase = LearnPhase::Calibrating;
        self.attempt(0, TURN);
    }

    /// The next cycles are of this approach, at the widest margin that the budget pays.
    fn attempt(&mut self, level: usize, cycles: u32) {
        (self.level, self.left, self.settle) = (level, cycles, SETTLE);
        self.margin_ns = self.margin_max_ns(level);
    }

    fn calibrated(&mut self) {
        let next = self.levels().find(|&level| level > self.level);
        if let Some(level) = next {
            return self.attempt(level, TURN);
        }
        self.rounds = self.rounds.saturating_sub(1);
        if self.rounds > 0 {
            return self.attempt(0, TURN);
        }
        (self.cycles, self.late) = (0, 0);
        (self.since_doubt, self.doubted_late, self.since_probe) = (0, 0, 0);
        self.choose();
    }

    /// Takes the cheapest approach that reaches the aim, or what of it can be had.
    fn choose(&mut self) {
        let had = self.levels().map(|level| self.late_at_best(level)).fold(1.0, f64::min);
        let reachable = self.levels().any(|level| self.reaches(level));
        self.reachable = reachable;
        self.target = match self.reachable {
            true => self.aim.late,
            false => (NEAR * had).clamp(self.aim.late, 1.0),
        };
        let price = |level: usize| {
            let (needed, most) = (self.needed_ns(level), self.margin_max_ns(level));
            let short = !self.reaches(level) && self.late_at_best(level) > self.target;
            (short, self.cost_ns(level, needed.min(most)))
        };
        let cheapest = self.levels().map(|level| (price(level), level));
        let chosen = cheapest.reduce(|best, other| if other.0 < best.0 { other } else { best });
        self.level = chosen.map_or(0, |(_, level)| level);
        self.home = self.level;
        self.phase = LearnPhase::Following;
        self.left = REVIEW;
        self.set_margin();
    }

    /// Whether an approach reaches the aim within the budget.
    fn reaches(&self, level: usize) -> bool {
        let needed = self.bins[level].exceeded_by_ns(self.aim.late).saturating_add(MARGIN_MIN_NS);
        needed <= self.margin_max_ns(level) && self.wakes_ns(level) <= self.budget_ns
    }

    /// The share of late wakes with the widest margin that the budget pays.
    fn late_at_best(&self, level: usize) -> f64 {
        self.bins[level].share_above(self.margin_max_ns(level))
    }

    fn needed_ns(&self, level: usize) -> u64 {
        self.bins[level].exceeded_by_ns(self.target).saturating_add(MARGIN_MIN_NS)
    }

    fn set_margin(&mut self) {
        let wanted = self.needed_ns(self.level).saturating_add(self.integral_ns as u64);
        let most = self.margin_max_ns(self.level);
        self.margin_ns = wanted.min(most);
    }

    fn follow(&mut self, late: bool) {
        let most = self.margin_max_ns(self.level) as f64;
        let step = STEP_NS * (f64::from(u8::from(late)) - self.target);
        self.integral_ns = (self.integral_ns + step).clamp(0.0, most);
        self.since_doubt += 1;
        self.doubted_late += u32::from(late);
        if self.left == 0 {
            self.left = REVIEW;
            self.set_margin();
        }
        let probe_every = if self.reachable { PROBE_EVERY } else { PROBE_EVERY_SHORT };
        if self.since_doubt >= DOUBT {
            self.doubt();
        } else if self.since_probe >= probe_every {
            self.probe();
        }
    }

    /// Late far more often than could be had, or as seldom as was held out of reach: the machine is
    /// another one than it was, and all is learned anew; in vain, it is so less and less often.
    fn doubt(&mut self) {
        let expected = self.target * f64::from(DOUBT);
        let late = f64::from(self.doubted_late);
        (self.since_doubt, self.doubted_late) = (0, 0);
        let worse = late > (DOUBTFUL * expected).max(DOUBTFUL);
        let better = !self.reachable && late <= self.aim.late * f64::from(DOUBT);
        if !worse && !better {
            (self.patience, self.patient) = (1, 0);
            return;
        }
        self.patient += 1;
        if self.patient >= self.patience {
            self.patient = 0;
            self.patience = self.patience.saturating_mul(2).min(256);
            self.calibrate();
        }
    }

    /// A few cycles of another approach, with what was known of it counted for less.
    fn probe(&mut self) {
        self.since_probe = 0;
        let (home, reachable) = (self.home, self.reachable);
        let may = |level: &usize| if reachable { *level < home } else { *level != home };
        let after = self.levels().filter(may).find(|&level| level > self.probed);
        let Some(other) = after.or_else(|| self.levels().find(may)) else { return };
        self.probed = other;
        self.phase = LearnPhase::Probing;
        self.bins[other].halve();
        self.attempt(other, PROBE);
    }
}
