//! The executive's costs as the lifecycle of all experiments measures them.
//!
//! One thread on one CPU, with the session of a real-time loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use punctual::RtThread;
use punctual::clocks::{MachineClock, StampCost};
use punctual::session::{Refusal, ThreadSession};
use punctual::spawn;
use punctual_core::time::{Period, Span};

use super::cell::{Cell, ExecutiveRow, RESTS};
use super::loop_overhead::LoopOverhead;
use super::ratios::{Ratio, ratios};
use super::stamps::Stamps;
use crate::experiment::{
    ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError, Measured, demand,
};
use crate::load::LoadSpec;

/// The share of the time that the turn of the loop is measured in, and the least.
const TURN_SHARE: i64 = 6;
const TURN_MIN: Span = Span::from_ms(400);

/// What releasing, dispatching and waiting cost.
#[derive(Clone, Debug)]
pub struct ExecutiveExperiment {
    /// Where, and the policy to ask for.
    pub thread: RtThread,
    /// The numbers of tasks, all due at once.
    pub sizes: Vec<u32>,
    /// How long in all, about.
    pub duration: Span,
}

/// What it gives.
#[derive(Clone, Debug)]
pub struct ExecutiveOutcome {
    /// One row a design and number of tasks, warm and cold.
    pub rows: Vec<ExecutiveRow>,
    /// How the rows stand to each other.
    pub ratios: Vec<Ratio>,
    /// What a turn of the loop costs; `None` when it was stopped before.
    pub turn: Option<LoopOverhead>,
}

impl Experiment for ExecutiveExperiment {
    type Outcome = ExecutiveOutcome;

    fn demands(&self) -> Vec<Demand> {
        let period = Period::from_ns(super::cell::BLOCK.as_ns().unsigned_abs());
        let demand = |period| demand(&self.thread, period, 1.0 - RESTS);
        period.map(demand).into_iter().collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(self, context: Context<'_, '_>) -> Result<Measured<Self::Outcome>, ExperimentError> {
        let stop = context.stop;
        let (outcome, clock, refused) = thread::scope(|scope| {
            let measuring = spawn::scoped(scope, "punctual-measure", || self.measure(stop))?;
            measuring.join().map_err(|_| ExperimentError::Panic)
        })?;
        let end = if stop.load(Ordering::Relaxed) {
            ExperimentEnd::Stopped
        } else {
            ExperimentEnd::Finished
        };
        let (disturbances, taken) = (Vec::new(), Vec::new());
        Ok(Measured { outcome, end, clock, refused, disturbances, taken })
    }
}

impl ExecutiveExperiment {
    /// On the calling thread.
    fn measure(&self, stop: &AtomicBool) -> (ExecutiveOutcome, ClockFacts, Vec<Refusal>) {
        let mut clock = MachineClock::best();
        let session = ThreadSession::enter(self.thread.pinned_to(), self.thread.policy());
        let stamps = Stamps::of(&clock);
        let cost = StampCost::measure(&mut clock);
        let for_turn = Span::from_ns(self.duration.as_ns() / TURN_SHARE).max(TURN_MIN);
        let sizes = self.sizes.iter();
        let cells: Vec<Cell> =
            sizes.flat_map(|&n| [false, true].map(|cold| Cell { n: n as usize, cold })).collect();
        let count = i64::try_from(cells.len()).unwrap_or(i64::MAX).max(1);
        let share = Span::from_ns((self.duration.as_ns() - for_turn.as_ns()).max(0) / count);
        let mut stopped = || stop.load(Ordering::Relaxed);
        let mut rows = Vec::new();
        for cell in cells {
            rows.extend(cell.measure(&stamps, share, &mut stopped).unwrap_or_default());
        }
        let turn = LoopOverhead::measure(&mut clock, &stamps, for_turn, stop);
        let costs = ExecutiveOutcome { ratios: ratios(&rows), rows, turn };
        (costs, ClockFacts::of(&clock, cost, None), session.refused().to_vec())
    }
}
