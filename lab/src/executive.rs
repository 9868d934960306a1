//! The costs of the executive: to release many tasks, to dispatch the first, to let one wait,
//! compared with the ways of others.
//!
//! For `measure executive`. Measures on the calling thread, in blocks that take turns, so that a
//! drift of the machine hits all designs alike; never prints.

mod loop_overhead;

use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::RtThread;
use punctual_analysis::interval::Interval;
use punctual_core::time::{Period, Span};
use punctual_engine::clocks::{MachineClock, StampCost, counter_rate};
use punctual_engine::session::ThreadSession;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::{cycles, memory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::baseline::{BaselineTask, Design, Heap, LEVELS, Punctual, Visit, Wheel, plan};
use crate::experiment::{
    ClockFacts, Context, Demand, Experiment, ExperimentError, ExperimentOutcome, demand,
    on_one_thread,
};
use crate::load::LoadSpec;
pub use loop_overhead::LoopOverhead;

/// The share of the time that the turn of the loop is measured in, and the least.
const TURN_SHARE: i64 = 6;
const TURN_MIN: Span = Span::from_ms(400);

/// Measures the costs of releasing, dispatching and waiting.
#[derive(Clone, Debug)]
pub struct ExecutiveExperiment {
    /// The thread that it runs on: its CPU and the policy that it is to have.
    pub thread: RtThread,
    /// The numbers of tasks, all due at once.
    pub sizes: Vec<u32>,
    /// Time of all designs and sizes together, about.
    pub duration: Span,
    /// Designs that are compared with this crate's own, in the order of rows.
    pub rivals: Vec<Rival>,
}

/// The costs of all designs.
#[derive(Clone, Debug)]
pub struct ExecutiveOutcome {
    /// One row a design and number of tasks, warm and cold.
    pub rows: Vec<ExecutiveRow>,
    /// Ratios between the rows, each with its target.
    pub ratios: Vec<Ratio>,
    /// Cost of a turn of the loop; `None` when it was stopped before.
    pub turn: Option<LoopOverhead>,
}

impl Experiment for ExecutiveExperiment {
    type Outcome = ExecutiveOutcome;

    fn demands(&self) -> Vec<Demand> {
        let period = Period::from_ns(BLOCK.as_ns().unsigned_abs());
        let demand = |period| demand(&self.thread, period, 1.0 - RESTS);
        period.map(demand).into_iter().collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<Self::Outcome>, ExperimentError> {
        let stop = context.stop;
        on_one_thread(stop, || self.measure(stop))
    }
}

impl ExecutiveExperiment {
    /// On the calling thread.
    fn measure(&self, stop: &AtomicBool) -> ExperimentOutcome<ExecutiveOutcome> {
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
            rows.extend(
                cell.measure(&self.rivals, &stamps, share, &mut stopped).unwrap_or_default(),
            );
        }
        let turn = LoopOverhead::measure(&mut clock, &stamps, for_turn, stop);
        let costs = ExecutiveOutcome { ratios: ratios(&rows), rows, turn };
        let facts = ClockFacts::of(&clock, cost, None);
        ExperimentOutcome::of_thread(costs, facts, session.refused().to_vec())
    }
}

/// About how long one design runs before it is the next one's turn.
const BLOCK: Span = Span::from_ms(3);
/// The share of the time that it rests, so that a real-time thread leaves some to others.
const RESTS: f64 = 0.1;
/// Turns at least: a median of fewer is none.
const TURNS_MIN: usize = 3;

/// A number of tasks, all due at each tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    /// Number of tasks, at least 1.
    pub n: usize,
    /// True where all cache lines of the design are flushed before each measured part.
    pub cold: bool,
}

/// A way to keep periodic tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DesignName {
    /// The table of the library's executive.
    Punctual,
    /// The sorted wait queue of ART-Linux.
    ArtLinux,
    /// The six tables of AnT.
    Ant,
    /// A 4-ary heap.
    Heap,
    /// A hierarchical timing wheel.
    Wheel,
}

impl fmt::Display for DesignName {
    /// As results have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Punctual => "punctual",
            Self::ArtLinux => "art-linux",
            Self::Ant => "ant",
            Self::Heap => "heap",
            Self::Wheel => "wheel",
        })
    }
}

/// One way to keep periodic tasks, with one number of tasks that are all due at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutiveRow {
    /// The design.
    pub design: DesignName,
    /// Number of tasks.
    pub n: usize,
    /// True where all cache lines of the design were flushed before each measured part.
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
    /// `release_ns` with the interval of the median of blocks; null in results of before.
    #[serde(default)]
    pub release_interval_ns: Option<Interval>,
    /// `wait_ns` likewise.
    #[serde(default)]
    pub wait_interval_ns: Option<Interval>,
    /// `cycle_ns` likewise.
    #[serde(default)]
    pub cycle_interval_ns: Option<Interval>,
}

impl Cell {
    /// Measures for about `duration`, longer where three turns take longer; rests a tenth of it, so
    /// that a real-time thread leaves some time to others. `None` when `stop` says so first.
    fn measure(
        self,
        rivals: &[Rival],
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
        let mut designs: Vec<(DesignName, Box<dyn MeasuredDesign + '_>)> = vec![(
            DesignName::Punctual,
            Box::new(DesignUnderTest::new(Punctual::new(&plan, &mut storage), n)),
        )];
        for rival in rivals {
            if let Some(design) = (rival.keep)(&tasks) {
                designs.push((rival.name, design));
            }
        }
        designs.push((DesignName::Heap, Box::new(DesignUnderTest::new(Heap::new(&tasks), n))));
        designs.push((DesignName::Wheel, Box::new(DesignUnderTest::new(Wheel::new(&tasks), n))));
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
        let row = |design: &(DesignName, Box<dyn MeasuredDesign + '_>)| {
            self.row(design.0, design.1.costs(), stamps)
        };
        Some(designs.iter().map(row).collect())
    }

    fn row(self, design: DesignName, costs: &Costs, stamps: &Stamps) -> ExecutiveRow {
        let in_ns = |cost: &Cost| stamps.ns(cost.ticks());
        let between = |cost: &Cost| Some(cost.median()?.rising(|ticks| stamps.ns(ticks)));
        ExecutiveRow {
            design,
            n: self.n,
            cold: self.cold,
            cycles: costs.cycles,
            release_ns: in_ns(&costs.release),
            dispatch_ns: in_ns(&costs.dispatch),
            wait_ns: in_ns(&costs.wait),
            cycle_ns: in_ns(&costs.cycle),
            floor_ns: in_ns(&costs.floor),
            release_interval_ns: between(&costs.release),
            wait_interval_ns: between(&costs.wait),
            cycle_interval_ns: between(&costs.cycle),
        }
    }
}

/// One measured part, in ticks: the middle of each block.
#[derive(Clone, Debug, Default)]
struct Cost {
    block: Vec<u64>,
    blocks: Vec<f64>,
}

impl Cost {
    #[inline]
    fn push(&mut self, ticks: u64) {
        self.block.push(ticks);
    }

    /// Ends a block: the mean of the middle half, which is finer than the counter's own steps (ten
    /// nanoseconds on some machines) and takes no notice of interrupts.
    fn end_block(&mut self) {
        self.block.sort_unstable();
        let n = self.block.len();
        let middle = &self.block[n / 4..n - n / 4];
        if !middle.is_empty() {
            self.blocks.push(middle.iter().sum::<u64>() as f64 / middle.len() as f64);
        }
        self.block.clear();
    }

    /// The median of all blocks.
    fn ticks(&self) -> f64 {
        self.median().map_or(f64::NAN, |median| median.value)
    }

    /// The same with its interval; `None` without a block.
    fn median(&self) -> Option<Interval> {
        Interval::median(&self.blocks)
    }
}

/// The costs of a design, in parts and as a whole.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    release: Cost,
    dispatch: Cost,
    wait: Cost,
    cycle: Cost,
    floor: Cost,
    /// Cycles of each kind.
    cycles: usize,
}

/// A design that the caller compares with this crate's own.
#[derive(Clone, Copy, Debug)]
pub struct Rival {
    /// Its name in results.
    pub name: DesignName,
    /// The design with these tasks; `None` where it has no way to keep them, or takes too long.
    pub keep: fn(&[BaselineTask]) -> Option<Box<dyn MeasuredDesign>>,
}

/// A design, and what it cost so far: [`DesignUnderTest`].
pub trait MeasuredDesign {
    /// Runs pairs of cycles for about `ticks`, one at least; before each measured part all cache
    /// lines of the design are flushed when it is to be cold.
    fn block(&mut self, stamps: &Stamps, cold: bool, ticks: u64);

    /// Its costs so far.
    fn costs(&self) -> &Costs;
}

/// A design of `n` tasks.
///
/// All tasks are due at each tick. Two kinds of cycle take turns: one in parts (the release, the
/// first dispatch, the wait of the last), one as a whole.
#[derive(Debug)]
pub struct DesignUnderTest<D> {
    design: D,
    n: usize,
    costs: Costs,
}

/// Sends all memory that it is shown out of the caches.
#[derive(Clone, Copy, Debug)]
pub struct Flush;

impl Visit for Flush {
    fn part<T>(&mut self, part: &[T]) {
        memory::flush(part);
    }
}

impl<D: Design> DesignUnderTest<D> {
    /// A design that keeps `n` tasks of a period of one tick.
    pub fn new(design: D, n: usize) -> Self {
        Self { design, n, costs: Costs::default() }
    }

    fn chill(&self, cold: bool) {
        if cold {
            self.design.visit(&mut Flush);
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<D::Job> {
        let job = self.design.dispatch();
        if let Some(job) = &job {
            black_box(D::number(job));
        }
        job
    }

    /// A cycle in parts. `None` when a task was not ready that should be.
    #[inline(never)]
    fn parts(&mut self, stamps: &Stamps, cold: bool) -> Option<()> {
        self.chill(cold);
        let before = stamps.now();
        self.design.release();
        let released = stamps.now();
        self.chill(cold);
        let first = stamps.now();
        let mut job = self.dispatch()?;
        let dispatched = stamps.now();
        for _ in 1..self.n {
            self.design.wait(job);
            job = self.dispatch()?;
        }
        self.chill(cold);
        let last = stamps.now();
        self.design.wait(job);
        let waited = stamps.now();
        let floor = stamps.now();
        self.costs.release.push(released - before);
        self.costs.dispatch.push(dispatched - first);
        self.costs.wait.push(waited - last);
        self.costs.floor.push(floor - waited);
        Some(())
    }

    /// A whole cycle.
    #[inline(never)]
    fn whole(&mut self, stamps: &Stamps, cold: bool) -> Option<()> {
        self.chill(cold);
        let before = stamps.now();
        self.design.release();
        for _ in 0..self.n {
            let job = self.dispatch()?;
            self.design.wait(job);
        }
        let after = stamps.now();
        self.costs.cycle.push(after - before);
        self.costs.cycles += 1;
        Some(())
    }
}

impl<D: Design> MeasuredDesign for DesignUnderTest<D> {
    fn block(&mut self, stamps: &Stamps, cold: bool, ticks: u64) {
        let begun = stamps.now();
        loop {
            let went = self.parts(stamps, cold).and_then(|()| self.whole(stamps, cold));
            if went.is_none() || stamps.now() - begun >= ticks {
                break;
            }
        }
        let Costs { release, dispatch, wait, cycle, floor, .. } = &mut self.costs;
        [release, dispatch, wait, cycle, floor].into_iter().for_each(Cost::end_block);
    }

    fn costs(&self) -> &Costs {
        &self.costs
    }
}

/// Takes stamps in ticks of the finest clock that may be trusted, for short spans: nothing is
/// anchored. The counter is read in order, so that what stands between two stamps happens between
/// them.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    counter: bool,
    ns_a_tick: f64,
}

impl Stamps {
    /// Of the counter where the clock is one, else of CLOCK_MONOTONIC.
    pub fn of(clock: &MachineClock) -> Self {
        match counter_rate(clock) {
            Some(rate) if rate.hz > 0.0 => Self { counter: true, ns_a_tick: 1e9 / rate.hz },
            _ => Self { counter: false, ns_a_tick: 1.0 },
        }
    }

    /// Now, in ticks.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        if self.counter { cycles::ordered() } else { now_ns(ClockId::Monotonic) }
    }

    /// About how many ticks a time has.
    pub fn ticks(&self, time: Span) -> u64 {
        (time.as_ns() as f64 / self.ns_a_tick) as u64
    }

    /// A number of ticks in ns.
    pub fn ns(&self, ticks: f64) -> f64 {
        ticks * self.ns_a_tick
    }
}

/// The ratio of two rows, with warm caches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// "release", "cycle", "wait".
    pub what: String,
    /// The design whose time is divided by that of "punctual".
    pub design: DesignName,
    /// Its number of tasks.
    pub n: usize,
    /// The number of tasks of "punctual".
    pub n_punctual: usize,
    /// As measured, including the timestamps.
    pub raw: f64,
    /// With the floor subtracted from both; null if the divisor is then not positive.
    pub less_floor: Option<f64>,
    /// The target for the ratio without the floor: at least this.
    pub at_least: Option<f64>,
    /// Or at most this.
    pub at_most: Option<f64>,
    /// True where this run reached the target.
    pub reached: bool,
}

/// The target for a ratio without the floor.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    /// That much or more.
    AtLeast(f64),
    /// That much or less.
    AtMost(f64),
}

/// Reads the time of one kind from a row, ns.
type RowTime = fn(&ExecutiveRow) -> f64;

/// Two rows whose times are compared, and the target for their ratio.
struct Comparison {
    /// "release", "cycle", "wait".
    kind: &'static str,
    time: RowTime,
    design: DesignName,
    n: usize,
    n_punctual: usize,
    target: Target,
}

const fn compare(
    (kind, time): (&'static str, RowTime),
    (design, n): (DesignName, usize),
    n_punctual: usize,
    target: Target,
) -> Comparison {
    Comparison { kind, time, design, n, n_punctual, target }
}

const COMPARISONS: [Comparison; 7] = [
    compare(
        ("release", |row| row.release_ns),
        (DesignName::ArtLinux, 100),
        100,
        Target::AtLeast(5.0),
    ),
    compare(("release", |row| row.release_ns), (DesignName::Ant, 100), 100, Target::AtLeast(5.0)),
    compare(
        ("release", |row| row.release_ns),
        (DesignName::ArtLinux, 1_000),
        1_000,
        Target::AtLeast(30.0),
    ),
    compare(
        ("release", |row| row.release_ns),
        (DesignName::Ant, 1_000),
        1_000,
        Target::AtLeast(30.0),
    ),
    compare(("cycle", |row| row.cycle_ns), (DesignName::ArtLinux, 100), 100, Target::AtLeast(25.0)),
    compare(("cycle", |row| row.cycle_ns), (DesignName::Ant, 100), 100, Target::AtLeast(2.0)),
    compare(("wait", |row| row.wait_ns), (DesignName::Punctual, 100_000), 1, Target::AtMost(2.0)),
];

/// The figures that these rows allow, of warm designs.
fn ratios(rows: &[ExecutiveRow]) -> Vec<Ratio> {
    let row = |design: DesignName, n: usize| {
        rows.iter().find(|row| row.design == design && row.n == n && !row.cold)
    };
    let ratio = |compared: &Comparison| {
        let rival = row(compared.design, compared.n)?;
        let own = row(DesignName::Punctual, compared.n_punctual)?;
        let time = compared.time;
        let less = |row: &ExecutiveRow| time(row) - row.floor_ns;
        let less_floor = (less(own) > 0.0).then(|| less(rival) / less(own));
        let (at_least, at_most) = match compared.target {
            Target::AtLeast(least) => (Some(least), None),
            Target::AtMost(most) => (None, Some(most)),
        };
        Some(Ratio {
            what: compared.kind.to_owned(),
            design: compared.design,
            n: compared.n,
            n_punctual: compared.n_punctual,
            raw: time(rival) / time(own),
            less_floor,
            at_least,
            at_most,
            reached: reached(compared.target, less_floor),
        })
    };
    COMPARISONS.iter().filter_map(ratio).collect()
}

fn reached(target: Target, figure: Option<f64>) -> bool {
    match (target, figure) {
        (Target::AtLeast(least), Some(figure)) => figure >= least,
        (Target::AtMost(most), Some(figure)) => figure <= most,
        // Nothing is left of the divisor: no quotient is too small, and none is known.
        (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_engine::clocks::MachineClock;

    #[test]
    fn a_cell_has_a_row_a_design_and_stops_when_told() {
        let stamps = Stamps::of(&MachineClock::best());
        let heap: fn(&[BaselineTask]) -> Option<Box<dyn MeasuredDesign>> =
            |tasks| Some(Box::new(DesignUnderTest::new(Heap::new(tasks), tasks.len())));
        let rivals = [
            Rival { name: DesignName::ArtLinux, keep: heap },
            Rival { name: DesignName::Ant, keep: |_| None },
        ];
        for cold in [false, true] {
            let measure = |stop: bool| {
                let (cell, length) = (Cell { n: 3, cold }, Span::from_ms(1));
                cell.measure(&rivals, &stamps, length, &mut || stop)
            };
            let rows = measure(false).expect("not stopped");
            let names: Vec<String> = rows.iter().map(|row| row.design.to_string()).collect();
            assert_eq!(names, ["punctual", "art-linux", "heap", "wheel"]);
            assert!(rows.iter().all(|row| row.cycles >= TURNS_MIN && row.cycle_ns > 0.0));
            assert!(measure(true).is_none());
        }
    }

    fn row(design: DesignName, n: usize, ns: f64) -> ExecutiveRow {
        ExecutiveRow {
            design,
            n,
            cold: false,
            cycles: 9,
            release_ns: ns,
            dispatch_ns: ns,
            wait_ns: ns,
            cycle_ns: ns,
            floor_ns: 20.0,
            release_interval_ns: None,
            wait_interval_ns: None,
            cycle_interval_ns: None,
        }
    }

    #[test]
    fn a_cost_has_the_interval_of_its_blocks_and_one_slow_block_moves_no_end_of_it() {
        let mut cost = Cost::default();
        for ticks in 100..140 {
            [1, ticks, ticks, 9_000].into_iter().for_each(|ticks| cost.push(ticks));
            cost.end_block();
        }
        let calm = cost.median().expect("blocks");
        assert_eq!(cost.ticks(), calm.value);
        assert!(calm.low.is_some_and(|low| (105.0..119.0).contains(&low)), "{calm}");
        cost.blocks[7] = 1e9;
        let stalled = cost.median().expect("blocks");
        let near =
            |a: Option<f64>, b: Option<f64>| (a.expect("an end") - b.expect("an end")).abs() <= 1.0;
        assert!(near(stalled.low, calm.low) && near(stalled.high, calm.high), "{stalled}");
    }

    #[test]
    fn the_floor_is_taken_off_both_sides() {
        let rows = [
            row(DesignName::Punctual, 100, 30.0),
            row(DesignName::Ant, 100, 60.0),
            row(DesignName::Ant, 50, 9.0),
        ];
        let figures = ratios(&rows);
        let shown = |r: &Ratio| (r.what.clone(), r.raw, r.less_floor, r.reached);
        let shown: Vec<_> = figures.iter().map(shown).collect();
        let figure = |kind: &str, reached| (kind.to_owned(), 2.0, Some(4.0), reached);
        assert_eq!(shown, [figure("release", false), figure("cycle", true)]);
    }

    #[test]
    fn cold_rows_are_left_out_and_no_figure_stands_on_nothing() {
        let mut cold = row(DesignName::Punctual, 100, 30.0);
        cold.cold = true;
        assert!(ratios(&[cold, row(DesignName::Ant, 100, 60.0)]).is_empty());
        let figures =
            ratios(&[row(DesignName::Punctual, 1, 20.0), row(DesignName::Punctual, 100_000, 25.0)]);
        assert_eq!(figures.len(), 1);
        assert_eq!((figures[0].less_floor, figures[0].reached), (None, false));
    }
}
