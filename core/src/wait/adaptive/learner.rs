//! Which approach suits this machine: tried, chosen, followed and doubted.
//!
//! For the adaptive wait. First each approach is tried, at the widest margin that the budget pays;
//! then the cheapest is kept, all compared at a quantile that as many sleeps of each show: a tail
//! beyond it would be chance. Its margin begins as wide as a fixed one and shrinks as sleeps show
//! that less suffices; then it follows a decayed histogram of its own wakes and an integrator of
//! late ones: online quantile tracking, whose share of late wakes converges for any sequence (Gibbs
//! & Candès 2021; Angelopoulos, Barber & Bates 2024). Where the aim is out of reach, the target
//! becomes nearly what can be had, and the status reports that: more spinning would not help. Never
//! allocates, reads no clock.

use super::Target;
use super::bins::Bins;
use super::learned::{LearnPhase, Learned};
use super::levels::{HOPS, LEVELS, PROBE_FIRST, SETTLE, sleeps};
use crate::wait::{Spin, WakePlan};

/// The least margin, ns: a poll, a stamp and the return of a call.
pub(super) const MARGIN_MIN_NS: u64 = 2_000;
/// Cycles between two settings of the margin.
pub(super) const REVIEW: u32 = 64;
/// Cycles after which it checks whether the target was met.
const DOUBT: u32 = 4_096;
/// The same after a start with what another one learned.
const DOUBT_FIRST: u32 = 256;
/// So many times as many late wakes as were expected are another machine's.
pub(super) const DOUBTFUL: f64 = 8.0;
/// Nanoseconds that the integrator moves by for a late wake.
const STEP_NS: f64 = 1_000.0;

/// Learns from how late sleeps came back.
#[derive(Clone, Debug)]
pub(super) struct Learner {
    pub(super) aim: Target,
    pub(super) period_ns: u64,
    pub(super) budget_ns: f64,
    /// What is known of each approach.
    pub(super) bins: [Bins; LEVELS],
    /// How often it sleeps a period, for each approach; 0 for one that does not fit, or whose
    /// wakes alone take more than the budget.
    pub(super) sleeps: [u64; LEVELS],
    pub(super) level: usize,
    pub(super) phase: LearnPhase,
    /// Cycles until this phase's next step, and how many of them only lead to what is requested:
    /// the sleeps before were another approach's.
    pub(super) left: u32,
    pub(super) settle: u32,
    /// Turns that each approach has yet in a calibration.
    pub(super) rounds: u32,
    /// The level that was chosen, and the one that was probed last.
    pub(super) home: usize,
    pub(super) probed: usize,
    pub(super) margin_ns: u64,
    pub(super) integral_ns: f64,
    pub(super) reachable: bool,
    /// The share of late wakes that is followed: the aim's, or what can be had.
    pub(super) target: f64,
    /// The margin until enough sleeps were seen, ns.
    pub(super) start_ns: u64,
    /// The share of late wakes that another start had, which this one follows until it has
    /// calibrated itself.
    pub(super) resumed_late: Option<f64>,
    /// Since the last calibration.
    pub(super) cycles: u64,
    pub(super) late: u64,
    pub(super) trials_late: u64,
    /// In the trial that runs.
    pub(super) trial_late: u32,
    /// Since the last doubt.
    pub(super) doubted_late: u32,
    pub(super) since_doubt: u32,
    pub(super) since_probe: u32,
    pub(super) probe_every: u32,
    /// Doubts to be let pass before calibrating anew; doubles each time.
    pub(super) patience: u32,
    pub(super) patient: u32,
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
            start_ns: Spin::FIXED.as_ns().unsigned_abs(),
            resumed_late: None,
            cycles: 0,
            late: 0,
            trials_late: 0,
            trial_late: 0,
            doubted_late: 0,
            since_doubt: 0,
            since_probe: 0,
            probe_every: PROBE_FIRST,
            patience: 1,
            patient: 0,
        };
        learner.calibrate();
        learner
    }

    /// The same with what another start learned, where that fits: it is followed at once, at a
    /// margin a quarter wider until this start's own sleeps show what suffices, and doubted soon.
    pub(super) fn resume(mut self, known: &Learned) -> Self {
        let plan = known.approach;
        let same = |level: &usize| HOPS[*level] == (plan.hop_ns, plan.hops);
        let Some(level) = self.levels().find(same) else { return self };
        (self.level, self.home, self.phase) = (level, level, LearnPhase::Following);
        self.start_ns = plan.margin_ns.saturating_add(plan.margin_ns / 4).max(MARGIN_MIN_NS);
        (self.left, self.since_doubt, self.settle) = (REVIEW, DOUBT - DOUBT_FIRST, SETTLE);
        self.resumed_late = Some(known.late);
        self.set_margin();
        self
    }

    pub(super) fn approach(&self) -> WakePlan {
        let (hop_ns, hops) = HOPS[self.level];
        WakePlan { hop_ns, hops, margin_ns: self.margin_ns }
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
            extrapolated: bins.bound_ns(self.target).is_none(),
            trials_late: self.trials_late,
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
            if late && self.phase == LearnPhase::Probing {
                self.late_in_trial();
            }
        }
        match self.phase {
            LearnPhase::Calibrating if self.left == 0 => self.calibrated(),
            LearnPhase::Following => self.follow(late),
            LearnPhase::Probing if self.left == 0 => self.choose(Some(self.home)),
            _ => {}
        }
    }

    fn follow(&mut self, late: bool) {
        let most = self.margin_max_ns(self.level) as f64;
        let step = STEP_NS * (f64::from(u8::from(late)) - self.target);
        self.integral_ns = (self.integral_ns + step).clamp(0.0, most);
        self.since_doubt += 1;
        self.doubted_late += u32::from(late);
        if self.left == 0 {
            self.left = REVIEW;
            self.set_target();
            self.set_margin();
        }
        if self.since_doubt >= DOUBT {
            self.doubt();
        } else if self.since_probe >= self.probe_every {
            self.probe();
        }
    }

    /// Late far more often than could be had, or as seldom as was held out of reach: the machine is
    /// another one than it was, and all is learned anew; in vain, it is so less and less often.
    fn doubt(&mut self) {
        let expected = match self.resumed_late {
            // What its own sleeps show would excuse an approach that suits another state only.
            Some(share) => self.aim.late.max(share),
            None => self.target.max(self.late_at_best(self.home)),
        };
        let expected = expected * f64::from(DOUBT);
        let late = f64::from(self.doubted_late);
        (self.since_doubt, self.doubted_late) = (0, 0);
        let worse = late > (DOUBTFUL * expected).max(DOUBTFUL);
        let better =
            !self.reachable && self.aim.late > 0.0 && late <= self.aim.late * f64::from(DOUBT);
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
}
