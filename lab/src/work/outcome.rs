//! What the work experiment gives: plain data, as results hold it.
//!
//! The doc comments are the descriptions in the schema of results.

use punctual_analysis::summary::{Distribution, SummaryStats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a fixed piece of work took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkOutcome {
    /// "integer", "memory", "mixed".
    pub kind: String,
    /// How many steps it has: the same in every cycle.
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
    /// What is left of each period for work.
    pub usable_ns: Usable,
}

/// The undisturbed work that fits a period: the period minus what cycles lost to lateness and
/// disturbance, which is `done_ns` minus the shortest work. Negative where cycles lost more than a
/// period; null where n is too small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usable {
    /// In half of the cycles.
    pub half: Option<f64>,
    /// In 99 % of them.
    pub p99: Option<f64>,
    /// In 99.9 % of them.
    pub p99_9: Option<f64>,
    /// In all of the n.
    pub all: Option<f64>,
}

/// A cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkCycle {
    pub(super) late_ns: u64,
    pub(super) took_ns: u64,
}

/// Cycles of a condition that are over.
#[derive(Debug, Default)]
pub(super) struct Tally {
    time: Distribution,
    lateness: Distribution,
    done: Distribution,
    n: u64,
    pub(super) missed: u64,
    pub(super) least_ns: Option<u64>,
}

impl Tally {
    pub(super) fn take(&mut self, cycle: WorkCycle) {
        self.time.push(cycle.took_ns.cast_signed());
        self.lateness.push(cycle.late_ns.cast_signed());
        self.done.push((cycle.late_ns + cycle.took_ns).cast_signed());
        self.n += 1;
        self.least_ns = Some(self.least_ns.map_or(cycle.took_ns, |of| of.min(cycle.took_ns)));
    }

    /// The row, where the shortest work of all conditions is `least_ns`.
    pub(super) fn row(&self, condition: &str, (period_ns, least_ns): (u64, u64)) -> WorkRow {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cycles_lost_is_missing_from_their_period() {
        let mut tally = Tally::default();
        tally.take(WorkCycle { late_ns: 10_000, took_ns: 100_000 });
        tally.take(WorkCycle { late_ns: 900_000, took_ns: 300_000 });
        let row = tally.row("idle", (1_000_000, 90_000));
        assert_eq!(row.usable_ns.all, Some(-110_000.0));
        assert_eq!((row.time_range_ns, row.usable_ns.p99), (Some(200_000.0), None));
        assert_eq!((row.n, tally.least_ns), (2, Some(100_000)));
        let half = row.usable_ns.half.expect("two cycles");
        assert!((half - 980_000.0).abs() < 200.0, "{half}: rounded up by at most 1/1024");
    }
}
