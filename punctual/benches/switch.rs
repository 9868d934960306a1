//! The cost of a change of the tasks of an executive that runs:
//! `cargo bench -p punctual --bench switch`.
//!
//! Prints, for a plan that loses a task and gets another, medians of: all that the loop does for it
//! between two turns, once, at a moment with nothing to do (a run of the loop with a change less
//! one without); and the publisher's own part, beside the loop. Warm, as after the publisher wrote.

#![expect(clippy::disallowed_macros, reason = "a bench is for a person to read")]

use std::sync::atomic::{AtomicBool, AtomicU64};

use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Flow};
use punctual_core::executive::{Dispatch, Many};
use punctual_core::time::Instant;
use punctual_core::wait::Sleep;
use punctual_engine::handover::{Change, Handover, LoopRun, RunningPlan};
use punctual_engine::periodic::{Period, Periodic, Plan, Successor, Task};
use punctual_os::clock::{ClockId, now_ns};

const TURNS: usize = 31;
const EPOCH: Instant = Instant::from_ns(0);
const NOW: Instant = Instant::from_ns(7_000_000_500);

/// A moment.
struct Still;

impl Clock for Still {
    fn now(&mut self) -> Instant {
        NOW
    }
    fn poll(&mut self) -> Instant {
        NOW
    }
    fn sleep_until(&mut self, _: Instant) {}
    fn wake(&mut self) -> Instant {
        NOW
    }
    fn relax(&mut self) {}
}

/// Nothing is due at that moment.
struct Nothing;

impl Dispatch for Nothing {
    fn run(&mut self, _: usize, _: &mut Cycle<'_>) -> Flow {
        Flow::Continue
    }
}

fn task(at: usize) -> Task {
    let ms = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 10_000][at % 9];
    Task::every(format!("t{at}"), Period::ratio(ms * 1_000_000, 1).expect("in range"))
}

fn tasks(from: usize, n: usize) -> Periodic {
    (from..from + n).map(task).fold(Periodic::new().tick_ns(10_000_000), Periodic::task)
}

/// The time that the loop takes for one moment, with the change that was offered before, ns.
fn moment_ns(handover: &Handover<()>, running: &mut RunningPlan) -> u64 {
    let mut many = Many { clock: Still, wait: Sleep, tasks: Nothing, observe: () };
    let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    let run = LoopRun { from: NOW, end: NOW, stop: &stop, turns: &turns };
    let before_ns = now_ns(ClockId::Monotonic);
    let _ended = handover.run(&mut many, running, &run);
    now_ns(ClockId::Monotonic) - before_ns
}

fn once(before: &Plan, next: &Successor) -> (u64, u64) {
    let mut running = RunningPlan::new(before.clone(), EPOCH, NOW);
    let without_ns = moment_ns(&Handover::new(), &mut running);
    let handover = Handover::new();
    handover.offer(Change::new(next.clone(), EPOCH, ())).expect("the first");
    let with_ns = moment_ns(&handover, &mut running);
    let taken = handover.answer().expect("it was offered").is_ok();
    assert!(taken && running.plan() == &next.plan, "it was taken");
    (without_ns, with_ns)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    // Tests build benches too, and run them with this argument.
    let turns = if std::env::args().any(|arg| arg == "--test") { 1 } else { TURNS };
    for n in [1, 100, 1_000, 10_000] {
        let before = tasks(0, n).build().expect("a plan");
        let (mut switches, mut laid_out) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            let before_ns = now_ns(ClockId::Monotonic);
            // The first one goes, another one comes.
            let next = tasks(1, n).build_after(&before).expect("a plan");
            laid_out.push((now_ns(ClockId::Monotonic) - before_ns) as f64 / 1e3);
            let (without_ns, with_ns) = once(&before, &next);
            switches.push(with_ns.saturating_sub(without_ns) as f64 / 1e3);
        }
        println!(
            "{n:6} tasks: {:9.2} µs in the loop, once; {:11.1} µs beside it (n = {turns})",
            median(&mut switches),
            median(&mut laid_out),
        );
    }
}
