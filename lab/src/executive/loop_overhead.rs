//! The time that the loop of many tasks adds to the bare wait: with one task that does nothing and
//! the wait that learns.
//!
//! Both loops run on the machine's clock in turns, each wait between two stamps; what lies between
//! a return and the next call is the loop's own.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Flow};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Dispatch, Many};
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::adaptive::Target;
use punctual_core::wait::{Adaptive, Wait};
use punctual_engine::clocks::MachineClock;
use punctual_engine::periodic::{Periodic, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Stamps;

/// Turns of each loop.
const TURNS: i64 = 4;
/// The period of both loops, ns.
const PERIOD_NS: u64 = 1_000_000;
/// Cycles at the start of each turn that do not count.
const COLD: usize = 10;

/// The target: the executive adds no more than this, ns.
const TARGET_NS: f64 = 150.0;

/// The time that a cycle of the executive's loop adds to the bare wait, with one task that does
/// nothing and the adaptive wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopOverhead {
    /// The period.
    pub period_ns: u64,
    /// Cycles of each loop.
    pub cycles: usize,
    /// Median from a wait's return to the next call, of a loop that only waits.
    pub bare_ns: f64,
    /// Median from a wait's return to the next call, of the executive's loop with one task.
    pub executive_ns: f64,
    /// `executive_ns` less `bare_ns`.
    pub adds_ns: f64,
    /// The target: at most this.
    pub at_most_ns: f64,
    /// True where this run reached the target.
    pub reached: bool,
}

impl LoopOverhead {
    /// Measures for about `duration`; `None` when `stop` is set first, or nothing was measured.
    pub fn measure(
        clock: &mut MachineClock,
        stamps: &Stamps,
        duration: Span,
        stop: &AtomicBool,
    ) -> Option<Self> {
        let period = Period::from_ns(PERIOD_NS)?;
        let turn = Span::from_ns(duration.as_ns() / (2 * TURNS));
        let cycles_max = usize::try_from(turn.as_ns()).ok()? / PERIOD_NS as usize + 2;
        let mut wait = Stamped {
            wait: Adaptive::new(Target::of(period)),
            stamps,
            left: None,
            gaps: Vec::new(),
        };
        let (mut bare, mut executive) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            wait.begin(cycles_max);
            run_bare(clock, &mut wait, period, turn, stop)?;
            bare.extend(wait.gaps.drain(..).skip(COLD));
            wait.begin(cycles_max);
            run_executive(clock, &mut wait, turn, stop)?;
            executive.extend(wait.gaps.drain(..).skip(COLD));
        }
        let cycles = bare.len().min(executive.len());
        let (bare_ns, executive_ns) = (median(stamps, bare)?, median(stamps, executive)?);
        let adds_ns = executive_ns - bare_ns;
        Some(Self {
            period_ns: PERIOD_NS,
            cycles,
            bare_ns,
            executive_ns,
            adds_ns,
            at_most_ns: TARGET_NS,
            reached: adds_ns <= TARGET_NS,
        })
    }
}

fn run_bare(
    clock: &mut MachineClock,
    wait: &mut Stamped<'_>,
    period: Period,
    turn: Span,
    stop: &AtomicBool,
) -> Option<()> {
    let now = clock.now();
    let grid = Releases::aligned(now, period, 0);
    let mut cycle = grid.at_or_after(now) + 1;
    let last = grid.at_or_after(now + turn);
    while cycle < last {
        wait.near(clock, grid.release(cycle), stop)?;
        let wake = wait.until(clock, grid.release(cycle), stop)?;
        cycle = grid.next(cycle, wake);
    }
    Some(())
}

fn run_executive(
    clock: &mut MachineClock,
    wait: &mut Stamped<'_>,
    turn: Span,
    stop: &AtomicBool,
) -> Option<()> {
    let task = Task::every("nothing", Period::ratio(PERIOD_NS, 1)?).at(Duration::ZERO);
    let plan = Periodic::new().task(task).build().ok()?;
    let mut storage = plan.storage();
    let now = clock.now();
    let table = plan.table(Instant::from_ns(0));
    let mut state = TableState::begin(&table, storage.lend(), now)?;
    let clock = clock.clone();
    let mut many = Many { clock, wait, tasks: Nothing, observe: () };
    let _ended = many.run(&table, &mut state, now + turn, stop);
    (!stop.load(std::sync::atomic::Ordering::Relaxed)).then_some(())
}

/// A task that does nothing, where nobody can see that.
struct Nothing;

impl Dispatch for Nothing {
    #[inline(never)]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        std::hint::black_box((rank, cycle.n));
        Flow::Continue
    }
}

/// The wait between two stamps.
struct Stamped<'s> {
    wait: Adaptive,
    stamps: &'s Stamps,
    /// The stamp of its last return, in ticks.
    left: Option<u64>,
    /// From each return to the next call, in ticks.
    gaps: Vec<u64>,
}

impl Stamped<'_> {
    fn begin(&mut self, cycles_max: usize) {
        self.left = None;
        self.gaps.reserve(cycles_max);
    }

    /// The first call since the last return.
    #[inline]
    fn called(&mut self) {
        let called = self.stamps.now();
        if let Some(left) = self.left.take()
            && self.gaps.len() < self.gaps.capacity()
        {
            self.gaps.push(called - left);
        }
    }
}

impl Wait for Stamped<'_> {
    #[inline]
    fn near<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        self.called();
        self.wait.near(clock, release, stop)
    }

    #[inline]
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        self.called();
        let wake = self.wait.until(clock, release, stop);
        self.left = Some(self.stamps.now());
        wake
    }
}

/// The median, from the middle half: finer than the counter's own steps.
fn median(stamps: &Stamps, mut ticks: Vec<u64>) -> Option<f64> {
    ticks.sort_unstable();
    let n = ticks.len();
    let middle = ticks.get(n * 2 / 5..n - n * 2 / 5).filter(|middle| !middle.is_empty())?;
    Some(stamps.ns(middle.iter().sum::<u64>() as f64 / middle.len() as f64))
}
