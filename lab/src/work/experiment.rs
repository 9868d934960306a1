//! The work experiment as the lifecycle of all experiments runs it.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual::RtThread;
use punctual::clocks::{MachineClock, StampCost};
use punctual::session::{Refusal, ThreadSession};
use punctual_core::time::{Period, Span};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::SchedPolicy;

use super::outcome::{Tally, WorkCycle, WorkOutcome};
use super::piece::{Piece, WorkKind};
use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError,
    ExperimentProgress, Measured, cpu_of, demand, on_one_thread, policy_words,
};
use crate::load::LoadSpec;

/// The share of a period that the undisturbed work may take at most.
pub const WORK_SHARE_MAX: f64 = 0.8;
/// Cycles at the beginning of a condition that are not counted.
const COLD: u64 = 10;
/// Periods that a loop sleeps where it is far behind: so that it never takes its CPU for good.
const REST_AFTER: u64 = 50;

/// How long a fixed piece of work takes.
#[derive(Clone, Debug)]
pub struct WorkExperiment {
    /// The thread: its CPU, and the policy to request.
    pub thread: RtThread,
    /// The period.
    pub period: Period,
    /// What kind of work.
    pub kind: WorkKind,
    /// How long it is to take, undisturbed.
    pub work: Span,
    /// How long each condition is measured.
    pub duration: Span,
    /// The conditions: their names and loads.
    pub conditions: Vec<(String, Vec<LoadSpec>)>,
}

/// What the thread of a condition knows at its end.
struct Done {
    piece: Piece,
    tally: Tally,
    policy: SchedPolicy,
}

impl Experiment for WorkExperiment {
    type Outcome = WorkOutcome;

    fn demands(&self) -> Vec<Demand> {
        let share = (self.work.as_ns() as f64 / self.period.as_ns() as f64).min(1.0);
        vec![demand(&self.thread, self.period, share)]
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        self.conditions.clone()
    }

    fn run(self, context: Context<'_, '_>) -> Result<Measured<WorkOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let (mut tallies, mut refused): (Vec<Tally>, Vec<Refusal>) = (Vec::new(), Vec::new());
        let (mut piece, mut clock, mut policy) = (None, None, self.thread.policy());
        for number in 0..self.conditions.len() {
            if stop.load(Ordering::Relaxed) && number > 0 {
                break;
            }
            // Measured on the idle machine, where that comes first.
            let before = piece.take();
            loading.begin(number, self.duration).map_err(ExperimentError::Load)?;
            let progress = ExperimentProgress {
                left: self.duration,
                condition: number,
                worst: None,
                count: 0,
            };
            loading.progress(&progress);
            let measured = on_one_thread(stop, || self.measure(before, stop));
            loading.end(number);
            let Measured { outcome: done, clock: facts, refused: others, .. } = measured?;
            (piece, policy) = (Some(done.piece), done.policy);
            clock = clock.or(Some(facts));
            refused.extend(others);
            tallies.push(done.tally);
        }
        let least_ns = tallies.iter().filter_map(|of| of.least_ns).min().unwrap_or(0);
        let period_ns = self.period.as_ns();
        let rows = self.conditions.iter().zip(&tallies);
        let (policy, priority) = policy_words(policy);
        let outcome = WorkOutcome {
            kind: self.kind.name().to_owned(),
            steps: piece.as_ref().map_or(0, Piece::steps),
            least_ns,
            period_ns,
            cpu: cpu_of(&self.thread),
            policy,
            priority,
            rows: rows.map(|((name, _), of)| of.row(name, (period_ns, least_ns))).collect(),
        };
        let end = if stop.load(Ordering::Relaxed) {
            ExperimentEnd::Stopped
        } else {
            ExperimentEnd::Finished
        };
        let clock = clock.ok_or(ExperimentError::Panic)?;
        let (disturbances, taken) = (Vec::new(), Vec::new());
        Ok(Measured { outcome, end, clock, refused, disturbances, taken })
    }
}

impl WorkExperiment {
    /// One condition, on the calling thread; with the same piece of work as those before.
    fn measure(&self, piece: Option<Piece>, stop: &AtomicBool) -> (Done, ClockFacts, Vec<Refusal>) {
        let mut clock = MachineClock::best();
        let session = ThreadSession::enter(Some(cpu_of(&self.thread)), self.thread.policy());
        let cost = StampCost::measure(&mut clock);
        let work_ns = self.work.as_ns().max(1).unsigned_abs();
        let mut piece = piece.unwrap_or_else(|| Piece::calibrate(self.kind, work_ns));
        let mut tally = Tally::default();
        let period_ns = self.period.as_ns();
        let mut due_ns = now_ns(ClockId::Monotonic) + period_ns;
        let end_ns = due_ns + self.duration.as_ns().max(0).unsigned_abs();
        let (mut cycle, mut behind) = (0u64, 0);
        while due_ns < end_ns && !stop.load(Ordering::Relaxed) {
            let _interrupted = sleep_until_ns(due_ns);
            let wake_ns = now_ns(ClockId::Monotonic);
            if wake_ns < due_ns {
                continue;
            }
            piece.run();
            let ended_ns = now_ns(ClockId::Monotonic);
            cycle += 1;
            let passed = (ended_ns - due_ns) / period_ns;
            if cycle > COLD {
                let (late_ns, took_ns) = (wake_ns - due_ns, ended_ns - wake_ns);
                tally.take(WorkCycle { late_ns, took_ns });
                tally.missed += passed;
            }
            behind = if passed > 0 { behind + 1 } else { 0 };
            let rest = if behind >= REST_AFTER { REST_AFTER } else { 0 };
            if rest > 0 {
                tally.missed += rest;
                behind = 0;
            }
            due_ns += (passed + 1 + rest) * period_ns;
        }
        let policy = session.policy();
        let refused = session.refused().to_vec();
        (Done { piece, tally, policy }, ClockFacts::of(&clock, cost, None), refused)
    }
}
