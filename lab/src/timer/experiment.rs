//! The timer experiment as the lifecycle of all experiments runs it.
//!
//! The waiting thread and the one behind it share a CPU; all combinations take turns in blocks of
//! 20 ms, and a tenth of the time is rest.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual::RtThread;
use punctual::clocks::{MachineClock, StampCost};
use punctual::session::{Refusal, ThreadSession};
use punctual::spawn;
use punctual_core::time::{Period, Span};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::background::{Background, Order};
use super::cell::{BLOCK_NS, Cell, DEADLINE, PATHS, Stores, paths};
use super::deadline;
use super::outcome::TimerOutcome;
use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentError, Measured, cpu_of,
    demand, on_one_thread, policy_words,
};
use crate::load::LoadSpec;

/// The shortest period: the paper's.
pub const PERIOD_MIN_NS: u64 = 15_000;
/// The share of the time that the waiting thread rests.
const RESTS: f64 = 0.1;

/// How late timers reach a thread.
#[derive(Clone, Debug)]
pub struct TimerExperiment {
    /// The waiting thread: its CPU, which it shares with what runs behind, and the policy to
    /// request.
    pub thread: RtThread,
    /// The periods.
    pub periods: Vec<Period>,
    /// What runs behind, each in turn.
    pub backgrounds: Vec<Background>,
    /// How long in all, about; each combination has a block at least.
    pub duration: Span,
    /// What else the machine does meanwhile.
    pub loads: Vec<LoadSpec>,
}

impl Experiment for TimerExperiment {
    type Outcome = TimerOutcome;

    fn demands(&self) -> Vec<Demand> {
        // Polling takes all of a block, and so may the shortest periods.
        let demand = |period| demand(&self.thread, period, 1.0 - RESTS);
        Period::from_ns(BLOCK_NS).map(demand).into_iter().collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        vec![(String::new(), self.loads.clone())]
    }

    fn run(self, context: Context<'_, '_>) -> Result<Measured<TimerOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let (order, cpu) = (Order::default(), cpu_of(&self.thread));
        loading.begin(0, self.duration).map_err(ExperimentError::Load)?;
        let measured = std::thread::scope(|scope| {
            let behind = spawn::scoped(scope, "punctual-load", || order.obey(cpu))?;
            let measured = on_one_thread(stop, || self.measure(&order, stop));
            order.give(None);
            // Its panic is one of an instruction loop: there is nothing to hand on.
            let _ended = behind.join();
            measured
        });
        loading.end(0);
        measured
    }
}

impl TimerExperiment {
    /// All combinations, those with the large array first.
    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for period in &self.periods {
            let paths = 0..PATHS.len();
            let fits =
                |path: &usize| *path != DEADLINE || period.as_ns() >= deadline::PERIOD_MIN_NS;
            for path in paths.filter(fits) {
                for &background in &self.backgrounds {
                    cells.push(Cell::new(path, period.as_ns(), background, true));
                }
            }
            for &background in &self.backgrounds {
                cells.push(Cell::new(0, period.as_ns(), background, false));
            }
        }
        cells
    }

    /// On the calling thread.
    fn measure(
        &self,
        order: &Order,
        stop: &AtomicBool,
    ) -> (TimerOutcome, ClockFacts, Vec<Refusal>) {
        let mut clock = MachineClock::best();
        let cpus = affinity::get(0).unwrap_or(CpuMask::EMPTY);
        let session = ThreadSession::enter(Some(cpu_of(&self.thread)), self.thread.policy());
        let cost = StampCost::measure(&mut clock);
        let (mut cells, mut stores, paths) = (self.cells(), Stores::new(), paths(cpus));
        let end_ns = now_ns(ClockId::Monotonic) + self.duration.as_ns().max(0).unsigned_abs();
        let stopped = || stop.load(Ordering::Relaxed);
        let mut over = stopped();
        while !over {
            for cell in &mut cells {
                let Some(path) = &paths[cell.path] else { continue };
                order.give(Some(cell.background));
                let before_ns = now_ns(ClockId::Monotonic);
                cell.block(path, &mut stores, stop);
                let after_ns = now_ns(ClockId::Monotonic);
                let rest_ns = (after_ns - before_ns) as f64 * RESTS / (1.0 - RESTS);
                let _interrupted = sleep_until_ns(after_ns + rest_ns as u64);
                if stopped() {
                    break;
                }
            }
            over = stopped() || now_ns(ClockId::Monotonic) >= end_ns;
        }
        let (policy, priority) = policy_words(session.policy());
        let outcome = TimerOutcome {
            cpu: cpu_of(&self.thread),
            policy,
            priority,
            rows: cells.iter().filter_map(Cell::row).collect(),
            deadline_refused: cells.iter().find_map(|cell| cell.refused).map(|why| why.0),
        };
        (outcome, ClockFacts::of(&clock, cost, None), session.refused().to_vec())
    }
}
