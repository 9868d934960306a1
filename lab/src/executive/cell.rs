//! All designs with one number of tasks, warm or cold, in turns.

use punctual::core::time::Span;
use punctual::os::clock::{ClockId, now_ns, sleep_until_ns};

use super::WALKED_MAX;
use super::measured::{Cost, Costs, Measured, Of};
use super::stamps::Stamps;
use crate::baseline::{Ant, ArtLinux, Heap, LEVELS, Punctual, Task, Wheel, plan};

/// About how long one design runs before it is the next one's turn.
const BLOCK: Span = Span::from_ms(3);
/// Turns at least: a median of fewer is none.
const TURNS_MIN: usize = 3;

/// A number of tasks, all due at each tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// How many tasks.
    pub n: usize,
    /// Whether all cache lines of the design are flushed before each measured stretch.
    pub cold: bool,
}

/// What one design cost: medians, in ns, the stamps included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// "punctual", "art-linux", "ant", "heap", "wheel".
    pub design: &'static str,
    /// Its tasks.
    pub cell: Cell,
    /// Cycles of each kind.
    pub cycles: usize,
    /// All of them become ready.
    pub release_ns: f64,
    /// The first is found.
    pub dispatch_ns: f64,
    /// The last waits.
    pub wait_ns: f64,
    /// Release, then dispatch and wait of each, as a whole.
    pub cycle_ns: f64,
    /// Two stamps with nothing between.
    pub floor_ns: f64,
}

impl Cell {
    /// Measures for about `duration`, longer where three turns take longer; rests a tenth of it, so
    /// that a real-time thread leaves some time to others. `None` when `stop` says so first.
    pub fn measure(
        self,
        stamps: &Stamps,
        duration: Span,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Vec<Row>> {
        let task = |at: usize| Task { period: 1, phase: 0, level: (at * LEVELS / self.n) as u8 };
        let tasks: Vec<Task> = (0..self.n).map(task).collect();
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
                let _interrupted = sleep_until_ns(after_ns + (after_ns - before_ns) / 9);
            }
            turns += 1;
        }
        let row = |design: &(&'static str, Box<dyn Measured + '_>)| {
            self.row(design.0, design.1.costs(), stamps)
        };
        Some(designs.iter().map(row).collect())
    }

    fn row(self, design: &'static str, costs: &Costs, stamps: &Stamps) -> Row {
        let of = |cost: &Cost| stamps.ns(cost.ticks());
        Row {
            design,
            cell: self,
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
            let names: Vec<&str> = rows.iter().map(|row| row.design).collect();
            assert_eq!(names, ["punctual", "art-linux", "ant", "heap", "wheel"]);
            assert!(rows.iter().all(|row| row.cycles >= TURNS_MIN && row.cycle_ns > 0.0));
            assert!(cell.measure(&stamps, Span::from_ms(1), &mut || true).is_none());
        }
    }
}
