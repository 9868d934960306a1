//! The execution time of a fixed piece of work, cycle after cycle, idle and under loads: the part
//! of each period that a loop can use.
//!
//! For `measure work`. The work is always the same; what takes longer was disturbed by something
//! else: interrupts, other tasks, the host, caches and memory shared with loads. Runs one thread
//! beside the loads, never prints.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::RtThread;
use punctual_analysis::summary::{Distribution, SummaryStats};
use punctual_core::clock::Clock;
use punctual_core::cycle::{Job, Missed, Observe, Overruns};
use punctual_core::gate::Gate;
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::Sleep;
use punctual_engine::clocks::{MachineClock, StampCost};
use punctual_engine::session::{Refusal, ThreadSession};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::SchedPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError,
    ExperimentOutcome, ExperimentProgress, cpu_of, demand, on_one_thread,
};
use crate::load::LoadSpec;

/// The share of a period that the undisturbed work may take at most.
pub const WORK_SHARE_MAX: f64 = 0.8;
/// Cycles at the beginning of a condition that are not counted.
const COLD: u64 = 10;
/// Overruns in a row after which a loop sleeps for as many periods: so that it never takes its CPU
/// for good.
const REST_AFTER: u32 = 50;

/// Measures the execution time of a fixed piece of work.
#[derive(Clone, Debug)]
pub struct WorkExperiment {
    /// The thread: its CPU, and the policy to request.
    pub thread: RtThread,
    /// The period.
    pub period: Period,
    /// The kind of work.
    pub kind: WorkKind,
    /// Its execution time, undisturbed.
    pub work: Span,
    /// Time that each condition is measured for.
    pub duration: Span,
    /// The conditions: their names and loads.
    pub conditions: Vec<(String, Vec<LoadSpec>)>,
}

/// The result of the thread of a condition.
struct Done {
    piece: Piece,
    tally: WorkTally,
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

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<WorkOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let (mut tallies, mut refused): (Vec<WorkTally>, Vec<Refusal>) = (Vec::new(), Vec::new());
        let (mut piece, mut clock, mut policy) = (None, None, self.thread.policy());
        let mut no_load = None;
        for number in 0..self.conditions.len() {
            if stop.load(Ordering::Relaxed) && number > 0 {
                break;
            }
            // Measured on the idle machine, where that comes first.
            let before = piece.take();
            match loading.begin(number, self.duration) {
                Ok(()) => {}
                // What was measured before it is kept.
                Err(why) if number > 0 => {
                    (piece, no_load) = (before, Some(why));
                    break;
                }
                Err(why) => return Err(ExperimentError::Load(why)),
            }
            let progress = ExperimentProgress {
                left: self.duration,
                condition: number,
                worst: None,
                count: 0,
            };
            loading.progress(&progress);
            let measured = on_one_thread(stop, || self.measure(before, stop));
            loading.end(number);
            let ExperimentOutcome { outcome: done, clock: facts, refused: refusals, .. } =
                measured?;
            (piece, policy) = (Some(done.piece), done.policy);
            clock = clock.or(Some(facts));
            refused.extend(refusals);
            tallies.push(done.tally);
        }
        let least_ns = tallies.iter().filter_map(|tally| tally.least_ns).min().unwrap_or(0);
        let period_ns = self.period.as_ns();
        let rows = self.conditions.iter().zip(&tallies);
        let (policy, priority) = (policy.name().to_owned(), policy.priority());
        let outcome = WorkOutcome {
            kind: self.kind.name().to_owned(),
            steps: piece.as_ref().map_or(0, Piece::steps),
            least_ns,
            period_ns,
            cpu: cpu_of(&self.thread),
            policy,
            priority,
            rows: rows.map(|((name, _), tally)| tally.row(name, period_ns, least_ns)).collect(),
        };
        let end = no_load.map_or_else(|| ExperimentEnd::by(stop), ExperimentEnd::Load);
        let clock = clock.ok_or(ExperimentError::Panic)?;
        Ok(ExperimentOutcome { end, ..ExperimentOutcome::of_thread(outcome, clock, refused) })
    }
}

impl WorkExperiment {
    /// One condition, on the calling thread; with the same piece of work as those before.
    fn measure(&self, piece: Option<Piece>, stop: &AtomicBool) -> ExperimentOutcome<Done> {
        let mut clock = MachineClock::best();
        let session = ThreadSession::enter(Some(cpu_of(&self.thread)), self.thread.policy());
        let cost = StampCost::measure(&mut clock);
        let work_ns = self.work.as_ns().max(1).unsigned_abs();
        let mut piece = piece.unwrap_or_else(|| Piece::calibrate(self.kind, work_ns));
        clock.discipline();
        let period_ns = i64::try_from(self.period.as_ns()).unwrap_or(i64::MAX);
        let releases = Releases::new(clock.now() + Span::from_ns(period_ns), self.period);
        let end = releases.first() + self.duration.max(Span::ZERO);
        let observe = WorkTally { cold: COLD, ..WorkTally::default() };
        let mut gate = Gate::new(clock.clone(), Sleep, observe, releases, 0).until(end);
        while gate.wait(stop).is_ok() {
            piece.run();
            gate.count();
            if gate.observe.overruns >= REST_AFTER {
                gate.observe.overruns = 0;
                // The releases that pass meanwhile are missed.
                let rest_ns = period_ns.saturating_mul(REST_AFTER.into());
                let until = gate.clock.now() + Span::from_ns(rest_ns);
                gate.clock.sleep_until(until);
            }
        }
        let tally = gate.observe;
        let policy = session.policy();
        let facts = ClockFacts::of(&clock, cost, None);
        let done = Done { piece, tally, policy };
        ExperimentOutcome::of_thread(done, facts, session.refused().to_vec())
    }
}

/// The execution times of a fixed piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkOutcome {
    /// "integer", "memory", "mixed".
    pub kind: String,
    /// Number of its steps: the same in every cycle.
    pub steps: u64,
    /// The shortest time that it took in any cycle.
    pub least_ns: u64,
    /// The period.
    pub period_ns: u64,
    /// The CPU.
    pub cpu: u32,
    /// The policy that the thread really had: "SCHED_FIFO".
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// One for each condition.
    pub rows: Vec<WorkRow>,
}

/// The work under one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkRow {
    /// "idle", or the names of the loads.
    pub condition: String,
    /// Cycles that did the work.
    pub n: u64,
    /// Releases that passed while the loop was late or still at work.
    pub missed: u64,
    /// From the wake to the end of the work.
    pub time_ns: SummaryStats,
    /// The longest minus the shortest of these.
    pub time_range_ns: Option<f64>,
    /// From the release to the wake.
    pub lateness_ns: SummaryStats,
    /// From the release to the end of the work.
    pub done_ns: SummaryStats,
    /// Time left of each period for work.
    pub usable_ns: Usable,
}

/// The undisturbed work that fits a period: the period minus what cycles lost to lateness and
/// disturbance, which is `done_ns` minus the shortest work. Negative where cycles lost more than a
/// period; null where n is too small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usable {
    /// The time that half of the cycles have, at least.
    pub half: Option<f64>,
    /// The time that 99 % of the cycles have, at least.
    pub p99: Option<f64>,
    /// The time that 99.9 % of the cycles have, at least.
    pub p99_9: Option<f64>,
    /// The time that all n cycles have.
    pub all: Option<f64>,
}

/// One cycle: from its release to the wake, and from that to the end of the work.
#[derive(Clone, Copy, Debug)]
struct WorkCycle {
    late_ns: i64,
    took_ns: i64,
}

/// Cycles of a condition that are over, the cold ones at its beginning left out.
#[derive(Debug, Default)]
struct WorkTally {
    time: Distribution,
    lateness: Distribution,
    done: Distribution,
    n: u64,
    missed: u64,
    least_ns: Option<u64>,
    /// Cycles that are still to come and are not counted.
    cold: u64,
    /// Cycles in a row up to now whose work was not over at the next release.
    overruns: u32,
}

impl WorkTally {
    fn take(&mut self, cycle: WorkCycle) {
        self.time.push(cycle.took_ns);
        self.lateness.push(cycle.late_ns);
        self.done.push(cycle.late_ns + cycle.took_ns);
        self.n += 1;
        let took_ns = cycle.took_ns.max(0).unsigned_abs();
        self.least_ns = Some(self.least_ns.map_or(took_ns, |least_ns| least_ns.min(took_ns)));
    }

    /// The row, where the shortest work of all conditions is `least_ns`.
    fn row(&self, condition: &str, period_ns: u64, least_ns: u64) -> WorkRow {
        let (time_ns, done_ns) = (self.time.stats(), self.done.stats());
        let usable =
            |done: Option<f64>| done.map(|ns| period_ns as f64 - (ns - least_ns as f64).max(0.0));
        WorkRow {
            condition: condition.to_owned(),
            n: self.n,
            missed: self.missed,
            time_range_ns: time_ns.max.zip(time_ns.min).map(|(max, min)| max - min),
            time_ns,
            lateness_ns: self.lateness.stats(),
            usable_ns: Usable {
                half: usable(done_ns.p50),
                p99: usable(done_ns.p99),
                p99_9: usable(done_ns.p99_9),
                all: usable(done_ns.max),
            },
            done_ns,
        }
    }
}

/// Words of the memory that is walked through: 4 MiB, more than a core's own cache.
const WORDS: usize = 1 << 19;
/// From one word to the next, in words: no line twice in a row, and no page that a prefetcher would
/// guess. Odd, so that all words are met.
const STRIDE: usize = 4_099;
/// Steps that are measured at first.
const STEPS_FIRST: u64 = 64;
/// Measurements that the shortest is taken of.
const TRIES: usize = 9;

/// A kind of work, which a loop does in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Multiplications of which each waits for the one before.
    Integer,
    /// Loads and stores all over 4 MiB.
    Memory,
    /// Multiplications and memory in turn.
    Mixed,
}

impl WorkKind {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Memory => "memory",
            Self::Mixed => "mixed",
        }
    }
}

/// A piece of work of this kind.
///
/// A number of steps, the same in every cycle. Allocates at the beginning only.
#[derive(Debug)]
struct Piece {
    kind: WorkKind,
    words: Vec<u64>,
    at: usize,
    value: u64,
    steps: u64,
}

impl Piece {
    /// One that takes about `target_ns` on this CPU when nothing disturbs it: the steps are counted
    /// anew until the shortest of some measurements is long enough.
    fn calibrate(kind: WorkKind, target_ns: u64) -> Self {
        let words = if kind == WorkKind::Integer { 0 } else { WORDS };
        let mut piece = Self { kind, words: vec![1; words], at: 0, value: 1, steps: STEPS_FIRST };
        loop {
            let took_ns = piece.shortest_ns().max(1);
            if took_ns >= target_ns / 2 {
                let steps = u128::from(piece.steps) * u128::from(target_ns) / u128::from(took_ns);
                piece.steps = u64::try_from(steps).unwrap_or(u64::MAX).max(1);
                return piece;
            }
            piece.steps *= 2;
        }
    }

    fn shortest_ns(&mut self) -> u64 {
        let measure = |piece: &mut Self| {
            let before_ns = now_ns(ClockId::Monotonic);
            piece.run();
            now_ns(ClockId::Monotonic) - before_ns
        };
        (0..TRIES).map(|_| measure(self)).min().unwrap_or(0)
    }

    /// Number of its steps.
    fn steps(&self) -> u64 {
        self.steps
    }

    /// Does it once.
    #[inline(never)]
    fn run(&mut self) {
        for step in 0..self.steps {
            let memory = match self.kind {
                WorkKind::Integer => false,
                WorkKind::Memory => true,
                WorkKind::Mixed => step % 16 == 0,
            };
            if memory {
                self.at = (self.at + STRIDE) % WORDS;
                self.value = self.value.wrapping_add(self.words[self.at]);
                self.words[self.at] = self.value;
            } else {
                self.value = self.value.wrapping_mul(self.value) | 1;
            }
        }
        black_box(self.value);
    }
}

impl Observe for WorkTally {
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        self.overruns = if overruns.over_release { self.overruns + 1 } else { 0 };
        if self.cold > 0 {
            self.cold -= 1;
            return;
        }
        if self.n > 0 {
            self.missed += job.missed;
        }
        let (late, took) = (start - job.release, finish - start);
        self.take(WorkCycle { late_ns: late.as_ns(), took_ns: took.as_ns() });
    }

    fn never_ran(&mut self, _: usize, missed: Missed, _: Instant) {
        if self.n > 0 {
            self.missed += missed.count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cycles_lost_is_missing_from_their_period() {
        let mut tally = WorkTally::default();
        tally.take(WorkCycle { late_ns: 10_000, took_ns: 100_000 });
        tally.take(WorkCycle { late_ns: 900_000, took_ns: 300_000 });
        let row = tally.row("idle", 1_000_000, 90_000);
        assert_eq!(row.usable_ns.all, Some(-110_000.0));
        assert_eq!((row.time_range_ns, row.usable_ns.p99), (Some(200_000.0), None));
        assert_eq!((row.n, tally.least_ns), (2, Some(100_000)));
        let half = row.usable_ns.half.expect("two cycles");
        assert!((half - 980_000.0).abs() < 200.0, "{half}: rounded up by at most 1/1024");
    }

    #[test]
    fn a_piece_has_steps_and_longer_ones_have_more() {
        for kind in [WorkKind::Integer, WorkKind::Memory, WorkKind::Mixed] {
            let steps = |target_ns| Piece::calibrate(kind, target_ns).steps();
            let short = steps(20_000);
            assert!(short > 0, "{kind:?}");
            // A hundred times the time: ten times the steps leave room for a busy machine, on which
            // each try of one long piece may be interrupted.
            let longest = (0..5).map(|_| steps(2_000_000)).max().expect("five");
            assert!(longest > 10 * short, "{kind:?}: {short}, {longest}");
        }
    }

    #[test]
    fn all_memory_is_met() {
        let mut piece = Piece { steps: WORDS as u64, ..Piece::calibrate(WorkKind::Memory, 1_000) };
        piece.words.fill(0);
        (piece.at, piece.value) = (0, 1);
        piece.run();
        assert!(piece.words.iter().all(|word| *word > 0));
    }
}
