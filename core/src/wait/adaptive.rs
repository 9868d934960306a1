//! A wait that learns: how early to wake, and whether to sleep in hops.
//!
//! For the executive, the library's default. A CPU, or the host of a virtual one, that sank into
//! deep idle comes back late. Short hops keep it from that, or one hop just before the release
//! makes up for it; then a small margin covers what a warm wake is late. Which of them pays differs
//! from machine to machine, so both are learned, under a CPU budget, for a given share of late
//! wakes. No decision rests only on its own consequences: every sleep that ends the plan is a
//! sample whether it was late or not, the past fades, and a cheaper plan is tried again now and
//! then.

mod bins;

use core::sync::atomic::AtomicBool;

use super::spin::Spinner;
use super::{Stalls, Wait, WaitStatus};
use crate::clock::Clock;
use crate::time::{Instant, Period, Span};
use crate::wait::{Spin, WakePlan};
use bins::Bins;

/// What a wait is to reach, and at what price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The distance of two releases.
    pub period: Period,
    /// The share of wakes that may be late, below 1, for the least CPU that this takes; 0 for the
    /// least lateness that the budget pays.
    pub late: f64,
    /// The share of the CPU that waiting may take, in (0, 1].
    pub budget: f64,
    /// CPU time of one sleep and wake, the kernel's part included.
    pub wake_cost: Span,
}

impl Target {
    /// The share of wakes that may be late, by default.
    pub const LATE: f64 = 1e-3;
    /// The share of the CPU that waiting may take, by default.
    pub const BUDGET: f64 = 0.1;

    /// One wake in a thousand late, a tenth of the CPU, 3 µs a wake.
    ///
    /// # Real-time: setup only
    pub const fn of(period: Period) -> Self {
        Self { period, late: Self::LATE, budget: Self::BUDGET, wake_cost: Span::from_us(3) }
    }
}

/// The phase of a learner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnPhase {
    /// Trying each plan in turn.
    Calibrating,
    /// Following the one that it chose.
    Following,
    /// Trying a cheaper one for a moment.
    Probing,
}

/// What a wait learned of its machine, and the lateness and cost that it reached; for reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    /// Its phase.
    pub phase: LearnPhase,
    /// The sleeps before a release.
    pub plan: WakePlan,
    /// The share of wakes since the last calibration that came after the release.
    pub late: f64,
    /// Wakes since then.
    pub cycles: u64,
    /// The share of the CPU that waiting takes, as computed from the target's cost of a wake.
    pub cpu: f64,
    /// Whether the target is within the budget on this machine, as far as is known.
    pub reachable: bool,
    /// Whether too few sleeps were seen for the target: until then the margin is as wide as a fixed
    /// one ([`Spin::FIXED`](crate::wait::Spin::FIXED)), or as the budget pays.
    pub extrapolated: bool,
    /// Late wakes since the last calibration while another plan was tried.
    pub trials_late: u64,
}

/// A wait that learns its hops and its margin.
#[derive(Clone, Debug)]
pub struct Adaptive {
    learner: Learner,
    spinner: Spinner,
    /// How late the last final sleep was, to be learned from when there is time: ns.
    seen: Option<u64>,
}

impl Adaptive {
    /// A wait without knowledge of the machine: it learns in its first two seconds or so.
    ///
    /// # Real-time: setup only
    pub fn new(target: Target) -> Self {
        Self { learner: Learner::new(target), spinner: Spinner::default(), seen: None }
    }

    /// Goes on with what another start learned of this machine: followed at once, checked, and
    /// learned anew where it does not hold. What fits no plan or not this period is ignored.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn resume(mut self, known: &Learned) -> Self {
        self.learner = self.learner.resume(known);
        self
    }

    /// About how long it learns: before that its wakes are not representative.
    ///
    /// # Real-time: setup only
    pub fn calibration(period: Period) -> Span {
        calibration(period)
    }
}

impl Wait for Adaptive {
    fn near<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        if let Some(late_ns) = self.seen.take() {
            self.learner.learn(late_ns);
        }
        let (now, late) = self.learner.plan().sleep(clock, release, stop)?;
        self.seen = late.map(|late| late.as_ns().unsigned_abs());
        Some(now)
    }

    #[inline]
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let now = self.near(clock, release, stop)?;
        if now >= release {
            return Some(now);
        }
        self.spinner.spin(clock, now, release, stop)
    }

    fn take_stalls(&mut self) -> Stalls {
        core::mem::take(&mut self.spinner.stalls)
    }

    fn status(&self) -> WaitStatus {
        let learned = Some(self.learner.learned());
        WaitStatus { plan: self.learner.plan(), learned, paused: self.spinner.paused }
    }
}

/// The plans that are tried, by what they usually cost: the length of a short sleep, ns, and
/// how many at the end. First one sleep; then a long one and one hop; then hops all the way.
const HOPS: [(u64, u32); LEVELS] = [
    (0, 0),
    (200_000, 1),
    (100_000, 1),
    (400_000, u32::MAX),
    (200_000, u32::MAX),
    (100_000, u32::MAX),
];
/// How many plans there are.
const LEVELS: usize = 6;
/// The first cycles of an plan, after which the machine is as the plan makes it.
const SETTLE: u32 = 2;
/// Cycles up to the first trial of another plan.
const PROBE_FIRST: u32 = 1 << 10;
/// How long a calibration should take, ns.
const CALIBRATION_NS: u64 = 2_000_000_000;

/// The least margin, ns: a poll, a stamp and the return of a call.
const MARGIN_MIN_NS: u64 = 2_000;
/// Cycles between two settings of the margin.
const REVIEW: u32 = 64;
/// Cycles after which it checks whether the target was met.
const DOUBT: u32 = 4_096;
/// Cycles after which it checks that first, after a start with what another one learned.
const DOUBT_FIRST: u32 = 256;
/// So many times as many late wakes as were expected are another machine's.
const DOUBTFUL: f64 = 8.0;
/// Nanoseconds that the integrator moves by for a late wake.
const STEP_NS: f64 = 1_000.0;

/// Plans are compared at a quantile that this many sleeps of each exceeded.
const BEYOND: f64 = 5.0;
/// A later plan in the list must be cheaper than an earlier one by this factor, which keeps the
/// choice of one start from the next's where two cost the same.
const CLOSE: f64 = 0.9;
/// Another plan must be cheaper than the one that is followed by this factor: closer ones swap
/// places by chance.
const CHEAPER: f64 = 0.85;

/// Sleeps from which on an plan counts as tried: fewer than a trial or the shortest calibration
/// have. Of one that another start did not pass on nothing is known: not that it costs nothing.
const TRIED: u32 = 40;

/// The share of late sleeps from which on an plan fails.
const FAILS: f64 = 0.25;

/// Where the target is out of reach, so much more than the least share of late wakes is as good:
/// what a calibration can tell apart, and where the price of the next late wake avoided soars.
const NEAR: f64 = 1.5;

/// The cycles between two trials at most: each plan in turn, at the widest margin that the budget
/// pays.
const PROBE_LAST: u32 = 1 << 16;
/// The cycles of one trial.
const PROBE: u32 = 64;
/// Sleeps of another plan above which a trial makes those before count half.
const KNOWN: u32 = 512;
/// The share of all late wakes that may come while another plan is tried.
const TRIALS: f64 = 0.1;
/// The cycles of an plan's turn in a calibration.
const TURN: u32 = 25;
/// Late wakes of a trial that are no surprise.
const SURPRISE: f64 = 2.0;

/// Learns from how late sleeps came back which plan suits this machine: tried, chosen, followed and
/// doubted.
///
/// First each plan is tried, at the widest margin that the budget pays; then the cheapest is kept,
/// all compared at a quantile that as many sleeps of each show: a tail beyond it would be chance.
/// Its margin begins as wide as a fixed one and shrinks as sleeps show that less suffices; then it
/// follows a decayed histogram of its own wakes and an integrator of late ones: online quantile
/// tracking, whose share of late wakes converges for any sequence (Gibbs & Candès 2021;
/// Angelopoulos, Barber & Bates 2024). Where the target is out of reach, nearly what can be had is
/// followed, and the status reports that: more spinning would not help. Never allocates, reads no
/// clock.
#[derive(Clone, Debug)]
struct Learner {
    target: Target,
    period_ns: u64,
    budget_ns: f64,
    /// What is known of each plan.
    bins: [Bins; LEVELS],
    /// How often it sleeps a period, for each plan; 0 for one that does not fit, or whose
    /// wakes alone take more than the budget.
    sleeps: [u64; LEVELS],
    level: usize,
    phase: LearnPhase,
    /// Cycles until this phase's next step, and how many of them only lead to what is requested:
    /// the sleeps before were another plan's.
    left: u32,
    settle: u32,
    /// Turns that each plan has yet in a calibration.
    rounds: u32,
    /// The level that was chosen, and the one that was probed last.
    home: usize,
    probed: usize,
    margin_ns: u64,
    integral_ns: f64,
    reachable: bool,
    /// The share of late wakes that is followed: the target's, or what can be had.
    share: f64,
    /// The margin until enough sleeps were seen, ns.
    start_ns: u64,
    /// The share of late wakes that another start had, which this one follows until it has
    /// calibrated itself.
    resumed_late: Option<f64>,
    /// Since the last calibration.
    cycles: u64,
    late: u64,
    trials_late: u64,
    /// In the trial that runs.
    trial_late: u32,
    /// Since the last doubt.
    doubted_late: u32,
    since_doubt: u32,
    since_probe: u32,
    probe_every: u32,
    /// Doubts to be let pass before calibrating anew; doubles each time.
    patience: u32,
    patient: u32,
}

impl Learner {
    fn new(target: Target) -> Self {
        let period_ns = target.period.as_ns();
        let budget_ns = target.budget.clamp(0.0, 1.0) * period_ns as f64;
        let wake_ns = target.wake_cost.as_ns() as f64;
        let mut sleeps = sleeps(period_ns);
        // One sleep there must be.
        sleeps[1..].iter_mut().filter(|n| **n as f64 * wake_ns > budget_ns).for_each(|n| *n = 0);
        let mut learner = Self {
            target,
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
            share: target.late,
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

    /// Goes on with what another start learned, where that fits: it is followed at once, at a
    /// margin a quarter wider until this start's own sleeps show what suffices, and doubted soon.
    fn resume(mut self, known: &Learned) -> Self {
        let plan = known.plan;
        let same = |level: &usize| HOPS[*level] == (plan.hop_ns, plan.hops);
        let Some(level) = self.levels().find(same) else { return self };
        (self.level, self.home, self.phase) = (level, level, LearnPhase::Following);
        self.start_ns = plan.margin_ns.saturating_add(plan.margin_ns / 4).max(MARGIN_MIN_NS);
        (self.left, self.since_doubt, self.settle) = (REVIEW, DOUBT - DOUBT_FIRST, SETTLE);
        self.resumed_late = Some(known.late);
        self.set_margin();
        self
    }

    fn plan(&self) -> WakePlan {
        let (hop_ns, hops) = HOPS[self.level];
        WakePlan { hop_ns, hops, margin_ns: self.margin_ns }
    }

    fn learned(&self) -> Learned {
        let bins = &self.bins[self.home];
        Learned {
            phase: self.phase,
            plan: self.plan(),
            late: self.late as f64 / self.cycles.max(1) as f64,
            cycles: self.cycles,
            cpu: self.cost_ns(self.home, self.margin_ns) / self.period_ns as f64,
            reachable: self.reachable,
            extrapolated: bins.bound_ns(self.share).is_none(),
            trials_late: self.trials_late,
        }
    }

    /// One final sleep came back `late_ns` after its instant.
    fn learn(&mut self, late_ns: u64) {
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
        let step = STEP_NS * (f64::from(u8::from(late)) - self.share);
        self.integral_ns = (self.integral_ns + step).clamp(0.0, most);
        self.since_doubt += 1;
        self.doubted_late += u32::from(late);
        if self.left == 0 {
            self.left = REVIEW;
            self.set_share();
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
            // What its own sleeps show would excuse an plan that suits another state only.
            Some(share) => self.target.late.max(share),
            None => self.share.max(self.late_at_best(self.home)),
        };
        let expected = expected * f64::from(DOUBT);
        let late = f64::from(self.doubted_late);
        (self.since_doubt, self.doubted_late) = (0, 0);
        let worse = late > (DOUBTFUL * expected).max(DOUBTFUL);
        let better = !self.reachable
            && self.target.late > 0.0
            && late <= self.target.late * f64::from(DOUBT);
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

    /// The plans that fit into a period.
    fn levels(&self) -> impl Iterator<Item = usize> + '_ {
        (0..LEVELS).filter(|&level| self.sleeps[level] > 0)
    }

    /// CPU time that an plan takes in a period, ns: its wakes and its spin.
    fn cost_ns(&self, level: usize, margin_ns: u64) -> f64 {
        self.wakes_ns(level) + self.bins[level].spin_ns(margin_ns)
    }

    fn wakes_ns(&self, level: usize) -> f64 {
        self.sleeps[level] as f64 * self.target.wake_cost.as_ns() as f64
    }

    /// The widest margin that the budget pays, ns; never more than half of the period.
    fn margin_max_ns(&self, level: usize) -> u64 {
        let left_ns = self.budget_ns - self.wakes_ns(level);
        let widest = self.bins[level].margin_ns(left_ns.max(0.0));
        widest.clamp(MARGIN_MIN_NS, (self.period_ns / 2).max(MARGIN_MIN_NS))
    }

    /// Takes the cheapest plan that reaches the target, or what of it can be had; stays with the
    /// one that is followed where no other is clearly cheaper.
    fn choose(&mut self, followed: Option<usize>) {
        let tried = |level: &usize| self.tried(*level) && !self.fails(*level);
        let least = self.levels().filter(tried).map(|level| self.bins[level].n()).min();
        let least = least.unwrap_or(0);
        let chance = BEYOND / f64::from(least.max(1));
        let share = self.target.late.max(chance).max(NEAR * self.had());
        let least_late = self.target.late <= 0.0;
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
        let chosen = prices.reduce(|best, next| {
            let ((short, cost), (best_short, best_cost)) = (next.0, best.0);
            let better = if short == best_short { cost < best_cost * CLOSE } else { best_short };
            if better { next } else { best }
        });
        self.level = chosen.map_or(followed.unwrap_or(0), |(_, level)| level);
        self.home = self.level;
        self.phase = LearnPhase::Following;
        self.left = REVIEW;
        self.set_share();
        self.set_margin();
    }

    fn tried(&self, level: usize) -> bool {
        self.bins[level].n() >= TRIED
    }

    /// The least share of late wakes that any plan has, as far as they were tried.
    fn had(&self) -> f64 {
        let tried = self.levels().filter(|&level| self.tried(level));
        tried.map(|level| self.late_at_best(level)).fold(1.0, f64::min)
    }

    /// Whether a plan is late so often, and another one so seldom, that more sleeps of it
    /// would tell nothing new.
    fn fails(&self, level: usize) -> bool {
        let late = self.late_at_best(level);
        self.tried(level) && late > FAILS && late > DOUBTFUL * self.had()
    }

    /// The share of late wakes with the widest margin that the budget pays.
    fn late_at_best(&self, level: usize) -> f64 {
        self.bins[level].share_above(self.margin_max_ns(level))
    }

    /// The target, or nearly what can be had where that is more: the share of sleeps that came back
    /// later than the widest margin of the plan that is followed. The target is out of reach where
    /// those are more than chance explains.
    fn set_share(&mut self) {
        let bins = &self.bins[self.home];
        let above = f64::from(bins.above(self.margin_max_ns(self.home)));
        let expected = self.target.late * f64::from(bins.n());
        // Two standard deviations of a Poisson count, and one more.
        let more = (above - expected - 1.0).max(0.0);
        self.reachable =
            more * more <= 4.0 * expected && self.wakes_ns(self.home) <= self.budget_ns;
        // Also where the target is only just reachable: there the margin for it is decided by a few
        // sleeps, and so by chance.
        self.share = match self.target.late <= 0.0 {
            true => self.target.late,
            false => (NEAR * above / f64::from(bins.n().max(1))).clamp(self.target.late, 1.0),
        };
    }

    fn set_margin(&mut self) {
        let most = self.margin_max_ns(self.level);
        let wanted = match self.bins[self.level].bound_ns(self.share) {
            Some(bound_ns) => bound_ns.saturating_add(MARGIN_MIN_NS),
            None if self.target.late <= 0.0 => most,
            None => self.start_ns,
        };
        self.margin_ns = wanted.saturating_add(self.integral_ns as u64).min(most);
    }

    /// All plans, in turns: a burst of stalls then meets all of them alike.
    fn calibrate(&mut self) {
        // What was known was of another machine.
        self.bins = [const { Bins::new() }; LEVELS];
        self.integral_ns = 0.0;
        self.start_ns = Spin::FIXED.as_ns().unsigned_abs();
        self.resumed_late = None;
        self.rounds = samples(self.period_ns, &self.sleeps).0.div_ceil(TURN);
        self.phase = LearnPhase::Calibrating;
        self.attempt(0, TURN);
    }

    /// The next cycles are of this plan, at the widest margin that the budget pays.
    fn attempt(&mut self, level: usize, cycles: u32) {
        (self.level, self.left, self.settle) = (level, cycles, SETTLE);
        self.trial_late = 0;
        self.margin_ns = self.margin_max_ns(level);
    }

    fn calibrated(&mut self) {
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

    /// A few cycles of another plan, at the widest margin that the budget pays; not while
    /// trials have had their share of the late wakes.
    fn probe(&mut self) {
        self.since_probe = 0;
        if self.trials_spent() {
            return;
        }
        let home = self.home;
        let is_other = |level: &usize| *level != home;
        let after = self.levels().filter(is_other).find(|&level| level > self.probed);
        let Some(level) = after.or_else(|| self.levels().find(is_other)) else { return };
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
    fn late_in_trial(&mut self) {
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

    /// The share of wakes that may be late: what is followed, or what the plan cannot avoid.
    fn permitted(&self) -> f64 {
        self.share.max(self.late_at_best(self.home))
    }
}

/// How often each plan sleeps in a period; 0 where its hops are half of it and more.
fn sleeps(period_ns: u64) -> [u64; LEVELS] {
    HOPS.map(|(hop_ns, hops)| match period_ns.checked_div(hop_ns) {
        None => 1,
        Some(fit) if fit > 2 => fit.min(u64::from(hops)) + 1,
        Some(_) => 0,
    })
}

/// Samples of each plan in a calibration: two seconds for all of them, within reason; and how
/// many plans there are.
fn samples(period_ns: u64, sleeps: &[u64; LEVELS]) -> (u32, u64) {
    let levels = sleeps.iter().filter(|&&sleeps| sleeps > 0).count().max(1) as u64;
    ((CALIBRATION_NS / period_ns / levels).clamp(50, 400) as u32, levels)
}

/// How long a calibration takes at most.
fn calibration(period: Period) -> Span {
    let (samples, levels) = samples(period.as_ns(), &sleeps(period.as_ns()));
    let cycles = u64::from(samples) * levels;
    Span::from_ns(i64::try_from(cycles.saturating_mul(period.as_ns())).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
