//! All designs with one number of tasks, warm or cold, in turns.

use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::measured::{Cost, Costs, Measured, Of};
use super::stamps::Stamps;
use crate::baseline::{Ant, ArtLinux, BaselineTask, Heap, LEVELS, Punctual, Wheel, plan};

/// About how long one design runs before it is the next one's turn.
pub(super) const BLOCK: Span = Span::from_ms(3);
/// The share of the time that it rests, so that a real-time thread leaves some to others.
pub(super) const RESTS: f64 = 0.1;
/// Turns at least: a median of fewer is none.
const TURNS_MIN: usize = 3;

/// The most tasks of a design whose waits walk a queue: its cycle takes n² steps.
const WALKED_MAX: usize = 10_000;

/// A number of tasks, all due at each tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// How many tasks.
    pub n: usize,
    /// Whether all cache lines of the design are flushed before each measured part.
    pub cold: bool,
}

/// One way to keep periodic tasks, with one number of tasks that are all due at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutiveRow {
    /// "punctual"; "art-linux": the sorted wait queue; "ant": the six tables; "heap": a 4-ary heap;
    /// "wheel": a hierarchical timing wheel.
    pub design: String,
    /// How many tasks.
    pub n: usize,
    /// Whether all cache lines of the design were flushed before each measured part.
    pub cold: bool,
    /// Cycles measured in parts, and as many measured as a whole.
    pub cycles: usize,
    /// The time until all tasks are ready. All times here are medians that include the timestamps.
    pub release_ns: f64,
    /// The first task is found.
    pub dispatch_ns: f64,
    /// The last of n tasks waits for its next release.
    pub wait_ns: f64,
    /// The release, then dispatch and wait of each task, measured as a whole.
    pub cycle_ns: f64,
    /// Two timestamps with no work between them.
    pub floor_ns: f64,
}

impl Cell {
    /// Measures for about `duration`, longer where three turns take longer; rests a tenth of it, so
    /// that a real-time thread leaves some time to others. `None` when `stop` says so first.
    pub(super) fn measure(
        self,
        stamps: &Stamps,
        duration: Span,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Vec<ExecutiveRow>> {
        let task =
            |at: usize| BaselineTask { period: 1, phase: 0, level: (at * LEVELS / self.n) as u8 };
        let tasks: Vec<BaselineTask> = (0..self.n).map(task).collect();
        let plan = plan(&tasks).ok()?;
        let mut storage = plan.storage();
        let n = self.n;
        let mut designs: Vec<(&'static str, Box<dyn Measured + '_>)> = vec![
            ("punctual", Box::new(Of::new(Punctual::new(&plan, &mut storage), n))),
            ("heap", Box::new(Of::new(Heap::new(&tasks), n))),
            ("wheel", Box::new(Of::new(Wheel::new(&tasks), n))),
        ];
        if let Some(ant) = Ant::new(&tasks) {
            designs.insert(1, ("ant", Box::new(Of::new(ant, n))));
        }
        if n <= WALKED_MAX {
            designs.insert(1, ("art-linux", Box::new(Of::new(ArtLinux::new(&tasks), n))));
        }
        let end_ns = now_ns(ClockId::Monotonic) + duration.as_ns().unsigned_abs();
        let mut turns = 0;
        while turns < TURNS_MIN || now_ns(ClockId::Monotonic) < end_ns {
            for (_, design) in &mut designs {
                if stop() {
                    return None;
                }
                let before_ns = now_ns(ClockId::Monotonic);
                design.block(stamps, self.cold, stamps.ticks(BLOCK));
                let after_ns = now_ns(ClockId::Monotonic);
                let rest_ns = (after_ns - before_ns) as f64 * RESTS / (1.0 - RESTS);
                let _interrupted = sleep_until_ns(after_ns + rest_ns as u64);
            }
            turns += 1;
        }
        let row = |design: &(&'static str, Box<dyn Measured + '_>)| {
            self.row(design.0, design.1.costs(), stamps)
        };
        Some(designs.iter().map(row).collect())
    }

    fn row(self, design: &str, costs: &Costs, stamps: &Stamps) -> ExecutiveRow {
        let of = |cost: &Cost| stamps.ns(cost.ticks());
        ExecutiveRow {
            design: design.to_owned(),
            n: self.n,
            cold: self.cold,
            cycles: costs.cycles,
            release_ns: of(&costs.release),
            dispatch_ns: of(&costs.dispatch),
            wait_ns: of(&costs.wait),
            cycle_ns: of(&costs.cycle),
            floor_ns: of(&costs.floor),
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual::clocks::MachineClock;

    use super::*;

    #[test]
    fn a_cell_has_a_row_a_design_and_stops_when_told() {
        let stamps = Stamps::of(&MachineClock::best());
        for cold in [false, true] {
            let cell = Cell { n: 3, cold };
            let rows = cell.measure(&stamps, Span::from_ms(1), &mut || false).expect("not stopped");
            let names: Vec<&str> = rows.iter().map(|row| row.design.as_str()).collect();
            assert_eq!(names, ["punctual", "art-linux", "ant", "heap", "wheel"]);
            assert!(rows.iter().all(|row| row.cycles >= TURNS_MIN && row.cycle_ns > 0.0));
            assert!(cell.measure(&stamps, Span::from_ms(1), &mut || true).is_none());
        }
    }
}
