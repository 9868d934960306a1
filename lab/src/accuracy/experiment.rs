//! The accuracy experiment as the lifecycle of all experiments runs it.
//!
//! One thread on one CPU, with the session of a real-time loop; the ways to wait take turns, and it
//! rests a tenth of the time.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual::RtThread;
use punctual::clocks::{MachineClock, StampCost};
use punctual::session::{Refusal, ThreadSession};
use punctual_core::time::{Period, Span};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::cell::{INTERRUPTED_NS, cells, tick_ns};
use super::outcome::AccuracyOutcome;
use crate::experiment::{
    ClockFacts, Context, Demand, Experiment, ExperimentError, Measured, demand, on_one_thread,
};
use crate::load::LoadSpec;

/// The share of the time that it rests.
const RESTS: f64 = 0.1;
/// About how long a sweep takes: how often it rests.
const ROUND_NS: u64 = 3_000_000;

/// How exactly a wait ends at an instant of the counter.
#[derive(Clone, Debug)]
pub struct AccuracyExperiment {
    /// The thread: its CPU, and the policy to request.
    pub thread: RtThread,
    /// How long in all, about; each way is swept once at least.
    pub duration: Span,
}

impl Experiment for AccuracyExperiment {
    type Outcome = AccuracyOutcome;

    fn demands(&self) -> Vec<Demand> {
        let demand = |period| demand(&self.thread, period, 1.0 - RESTS);
        Period::from_ns(ROUND_NS).map(demand).into_iter().collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(self, context: Context<'_, '_>) -> Result<Measured<AccuracyOutcome>, ExperimentError> {
        let stop = context.stop;
        on_one_thread(stop, || self.measure(stop))
    }
}

impl AccuracyExperiment {
    /// On the calling thread.
    fn measure(&self, stop: &AtomicBool) -> (AccuracyOutcome, ClockFacts, Vec<Refusal>) {
        let mut clock = MachineClock::best();
        let session = ThreadSession::enter(self.thread.pinned_to(), self.thread.policy());
        let cost = StampCost::measure(&mut clock);
        let tick_ns = tick_ns(&clock);
        let mut cells = cells(&mut clock);
        let end_ns = now_ns(ClockId::Monotonic) + self.duration.as_ns().max(0).unsigned_abs();
        let stopped = || stop.load(Ordering::Relaxed);
        let mut over = stopped();
        while !over {
            for cell in &mut cells {
                let before_ns = now_ns(ClockId::Monotonic);
                cell.round(&mut clock, tick_ns);
                let after_ns = now_ns(ClockId::Monotonic);
                let rest_ns = (after_ns - before_ns) as f64 * RESTS / (1.0 - RESTS);
                let _interrupted = sleep_until_ns(after_ns + rest_ns as u64);
                if stopped() {
                    break;
                }
            }
            over = stopped() || now_ns(ClockId::Monotonic) >= end_ns;
        }
        let outcome = AccuracyOutcome {
            tick_ns,
            interrupted_from_ns: INTERRUPTED_NS as u64,
            rows: cells.iter().filter_map(|cell| cell.row(tick_ns)).collect(),
        };
        (outcome, ClockFacts::of(&clock, cost, None), session.refused().to_vec())
    }
}
