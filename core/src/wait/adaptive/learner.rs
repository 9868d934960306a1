//! Which approach suits this machine: tried, chosen, followed and doubted.
//!
//! For the adaptive wait. First each approach is tried, at the widest margin that the budget pays;
//! then the cheapest that reaches the aim is kept, or the best that there is, and said to be that.
//! Its margin follows a decayed histogram of its own wakes and an integrator of late ones: online
//! quantile tracking, whose share of late wakes converges for any sequence (Gibbs & Candès 2021;
//! Angelopoulos, Barber & Bates 2024). Never allocates, reads no clock.

use super::Aim;
use super::bins::Bins;
use crate::time::{Period, Span};
use crate::wait::Approach;

/// The longest sleeps that are tried, ns; 0 for one sleep a period.
const HOPS_NS: [u64; 5] = [0, 400_000, 200_000, 100_000, 50_000];
/// How long a calibration should take, ns.
const CALIBRATION_NS: u64 = 2_000_000_000;
/// The least margin, ns: a poll, a stamp and the return of a call.
const MARGIN_MIN_NS: u64 = 2_000;
/// Cycles between two settings of the margin.
const REVIEW: u32 = 64;
/// Cycles after which it asks whether the aim was met.
const DOUBT: u32 = 4_096;
/// Cycles after which a cheaper approach is tried again, and for how many: at the default aim, all
/// of them may be late.
const PROBE_EVERY: u32 = 1 << 16;
const PROBE: u32 = 64;
/// Nanoseconds that the integrator moves by for a late wake.
const STEP_NS: f64 = 1_000.0;

/// What a learner is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Trying each approach in turn.
    Calibrating,
    /// Following the one that it chose.
    Following,
    /// Trying a cheaper one for a moment.
    Probing,
}

/// What was learned, and what it reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    /// What it is about now.
    pub phase: Phase,
    /// How releases are approached.
    pub approach: Approach,
    /// The share of wakes since the last calibration that came after the release.
    pub late: f64,
    /// Wakes since then.
    pub cycles: u64,
    /// The share of the CPU that waiting takes, as computed from the aim's cost of a wake.
    pub cpu: f64,
    /// Whether the aim is within the budget on this machine, as far as is known.
    pub reachable: bool,
    /// Whether the margin rests on more than was seen: the record is too short for the aim.
    pub extrapolated: bool,
}

/// Learns from how late sleeps came back.
#[derive(Clone, Debug)]
pub(super) struct Learner {
    aim: Aim,
    period_ns: u64,
    budget_ns: f64,
    /// What is known of each approach.
    bins: [Bins; HOPS_NS.len()],
    /// The approaches that fit into a period.
    levels: usize,
    level: usize,
    phase: Phase,
    /// Samples until this phase's next step.
    left: u32,
    /// The level to go back to after a probe.
    home: usize,
    margin_ns: u64,
    integral_ns: f64,
    reachable: bool,
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

/// Samples of each approach in a calibration: two seconds for all of them, within reason.
fn samples(period_ns: u64, levels: usize) -> u32 {
    (CALIBRATION_NS / period_ns / levels as u64).clamp(50, 400) as u32
}

/// How many approaches fit into a period.
fn levels(period_ns: u64) -> usize {
    HOPS_NS.iter().filter(|&&hop_ns| hop_ns < period_ns / 2).count().max(1)
}

/// How long a calibration takes.
pub(super) fn calibration(period: Period) -> Span {
    let levels = levels(period.as_ns());
    let cycles = u64::from(samples(period.as_ns(), levels)) * levels as u64;
    Span::from_ns(i64::try_from(cycles.saturating_mul(period.as_ns())).unwrap_or(i64::MAX))
}

impl Learner {
    pub(super) fn new(aim: Aim) -> Self {
        let period_ns = aim.period.as_ns();
        let mut learner = Self {
            aim,
            period_ns,
            budget_ns: aim.budget.clamp(0.0, 1.0) * period_ns as f64,
            bins: [const { Bins::new() }; HOPS_NS.len()],
            levels: levels(period_ns),
            level: 0,
            phase: Phase::Calibrating,
            left: 0,
            home: 0,
            margin_ns: MARGIN_MIN_NS,
            integral_ns: 0.0,
            reachable: true,
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

    pub(super) fn approach(&self) -> Approach {
        Approach { hop_ns: self.hop_ns(self.level), margin_ns: self.margin_ns }
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
        self.bins[self.level].push(late_ns);
        let late = late_ns > self.margin_ns;
        self.left = self.left.saturating_sub(1);
        if self.phase != Phase::Calibrating {
            self.count(late);
        }
        match self.phase {
            Phase::Calibrating if self.left == 0 => self.calibrated(),
            Phase::Following => self.follow(late),
            Phase::Probing if self.left == 0 => self.choose(),
            _ => {}
        }
    }

    fn count(&mut self, late: bool) {
        self.cycles += 1;
        self.late += u64::from(late);
        self.since_probe += 1;
    }

    /// The approaches that fit are the one sleep and the shortest hops.
    fn index(&self, level: usize) -> usize {
        if level == 0 { 0 } else { HOPS_NS.len() - self.levels + level }
    }

    fn hop_ns(&self, level: usize) -> u64 {
        HOPS_NS[self.index(level)]
    }

    /// CPU time that an approach takes in a period, ns: its wakes and its spin.
    fn cost_ns(&self, level: usize, margin_ns: u64) -> f64 {
        self.wakes_ns(level) + self.bins[level].spin_ns(margin_ns)
    }

    fn wakes_ns(&self, level: usize) -> f64 {
        let hop_ns = self.hop_ns(level);
        let wakes = self.period_ns.checked_div(hop_ns).unwrap_or(0) + 1;
        wakes as f64 * self.aim.wake_cost.as_ns() as f64
    }

    /// The widest margin that the budget pays, ns; never more than half of the period.
    fn margin_max_ns(&self, level: usize) -> u64 {
        let left_ns = self.budget_ns - self.wakes_ns(level);
        let widest = self.bins[level].margin_ns(left_ns.max(0.0));
        widest.clamp(MARGIN_MIN_NS, (self.period_ns / 2).max(MARGIN_MIN_NS))
    }

    fn calibrate(&mut self) {
        self.left = samples(self.period_ns, self.levels);
        self.phase = Phase::Calibrating;
        self.level = 0;
        self.margin_ns = self.margin_max_ns(0);
        // What was known was of another machine.
        self.bins = [const { Bins::new() }; HOPS_NS.len()];
        self.integral_ns = 0.0;
    }

    fn calibrated(&mut self) {
        if self.level + 1 < self.levels {
            self.left = samples(self.period_ns, self.levels);
            self.level += 1;
            self.margin_ns = self.margin_max_ns(self.level);
            return;
        }
        (self.cycles, self.late) = (0, 0);
        (self.since_doubt, self.doubted_late, self.since_probe) = (0, 0, 0);
        self.choose();
    }

    /// Takes the cheapest approach that reaches the aim, or the one that comes nearest.
    fn choose(&mut self) {
        let mut best: Option<(bool, f64, usize)> = None;
        for level in 0..self.levels {
            let (needed, most) = (self.needed_ns(level), self.margin_max_ns(level));
            let reaches = needed <= most && self.wakes_ns(level) <= self.budget_ns;
            // Of those that reach it by their price; of the others by what will be late.
            let rank = match reaches {
                true => self.cost_ns(level, needed),
                false => self.bins[level].share_above(most) + self.over_budget(level),
            };
            let better = best.is_none_or(|(other, of, _)| match (reaches, other) {
                (true, false) => true,
                (false, true) => false,
                _ => rank < of,
            });
            if better {
                best = Some((reaches, rank, level));
            }
        }
        let (reaches, _, level) = best.unwrap_or((false, 0.0, 0));
        (self.reachable, self.level, self.home) = (reaches, level, level);
        self.phase = Phase::Following;
        self.left = REVIEW;
        self.set_margin();
    }

    /// An approach whose wakes alone take more than the budget is a last resort.
    fn over_budget(&self, level: usize) -> f64 {
        (self.wakes_ns(level) / self.budget_ns.max(1.0) - 1.0).max(0.0)
    }

    fn needed_ns(&self, level: usize) -> u64 {
        self.bins[level].exceeded_by_ns(self.aim.late).saturating_add(MARGIN_MIN_NS)
    }

    fn set_margin(&mut self) {
        let wanted = self.needed_ns(self.level).saturating_add(self.integral_ns as u64);
        let most = self.margin_max_ns(self.level);
        self.margin_ns = wanted.min(most);
    }

    fn follow(&mut self, late: bool) {
        let most = self.margin_max_ns(self.level) as f64;
        let step = STEP_NS * (f64::from(u8::from(late)) - self.aim.late);
        self.integral_ns = (self.integral_ns + step).clamp(0.0, most);
        self.since_doubt += 1;
        self.doubted_late += u32::from(late);
        if self.left == 0 {
            self.left = REVIEW;
            self.set_margin();
        }
        if self.since_doubt >= DOUBT {
            self.doubt();
        } else if self.since_probe >= PROBE_EVERY && self.level > 0 {
            self.probe();
        }
    }

    /// Late far more often than aimed at, or no more late where it was: the machine is another one
    /// than it was, and all is learned anew. In vain, it is so less and less often.
    fn doubt(&mut self) {
        let expected = self.aim.late * f64::from(DOUBT);
        let late = f64::from(self.doubted_late);
        (self.since_doubt, self.doubted_late) = (0, 0);
        let good =
            if self.reachable { late <= (8.0 * expected).max(8.0) } else { late <= expected };
        if good {
            (self.patience, self.patient) = (1, 0);
        } else {
            self.patient += 1;
        }
        let again = self.patient >= self.patience;
        if again {
            self.patient = 0;
            self.patience = self.patience.saturating_mul(2).min(256);
        }
        if again || good && !self.reachable {
            self.calibrate();
        }
    }

    /// A few cycles of the next cheaper approach, with what was known of it counted for less.
    fn probe(&mut self) {
        self.since_probe = 0;
        self.phase = Phase::Probing;
        self.left = PROBE;
        self.level -= 1;
        self.bins[self.level].halve();
        self.margin_ns = self.margin_max_ns(self.level);
    }
}
