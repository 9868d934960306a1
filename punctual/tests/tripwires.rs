//! The laws of the loop, held on this machine's real clock: no allocation and no page fault between
//! the first cycle and the last.
//!
//! One test alone, so that nothing else of the process disturbs it. Asserts no time.

use std::alloc::System;
use std::sync::atomic::{AtomicBool, AtomicU64};

use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow, Job, Observe, Overruns};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Dispatch, Many};
use punctual_core::gate::Gate;
use punctual_core::releases::Releases;
use punctual_core::ring::{Ring, SplitRing, split, words};
use punctual_core::sample::Beginning;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::adaptive::Target;
use punctual_core::wait::{Adaptive, Sleep, Spin, Wait};
use punctual_engine::clocks::MachineClock;
use punctual_engine::periodic::{OnOverrun as Overrun, Periodic, Task};
use punctual_engine::session;
use punctual_os::scheduler::SchedPolicy;
use punctual_os::threads;
use punctual_os::tripwire::Counting;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

/// Keeps samples as a loop does that is measured.
struct Recording<'a>(Ring<'a>, Beginning);

impl Observe for Recording<'_> {
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, _: Overruns) {
        self.0.push(self.1.sample(job, start));
    }
}

fn faults_and_allocations<W: Wait>(wait: W) -> (u64, u64, u64) {
    let process = session::ProcessSession::enter();
    let _thread = session::ThreadSession::enter(None, SchedPolicy::Fifo(10));
    let storage: Vec<AtomicU64> = (0..words(1024)).map(|_| AtomicU64::new(0)).collect();
    let SplitRing { ring: record, view, .. } = split(&storage).expect("large enough");
    let mut clock = MachineClock::best();
    let start = clock.now();
    let grid = Releases::aligned(start, Period::from_ns(500_000).expect("positive"), 0);
    let stop = AtomicBool::new(false);
    let observe = Recording(record, Beginning::new(10));
    // Paid here, before the loop: first use of the code and of the clock.
    let mut warm = Gate::new(clock, wait, observe, grid, 2).until(grid.release(4));
    assert_eq!(warm.run(&stop), Ended::Finished);

    let Gate { mut clock, wait, observe, .. } = warm;
    let first = grid.at_or_after(clock.now());
    let mut gate = Gate::new(clock, wait, observe, grid, first).until(start + Span::from_ms(100));
    let before = threads::usage().expect("own usage");
    ALLOCATOR.arm();
    let ended = gate.run(&stop);
    let allocations = ALLOCATOR.disarm();
    let after = threads::usage().expect("own usage");
    assert_eq!(ended, Ended::Finished);
    assert!(view.count() > 10, "the loop ran");
    // Where locking was refused a page may be taken away at any time.
    let faults = if process.memory_locked() {
        after.minor_faults + after.major_faults - before.minor_faults - before.major_faults
    } else {
        0
    };
    (allocations, faults, view.count())
}

/// Counts its cycles; each hundredth takes longer than its period.
struct Counts(Vec<u64>);

impl Dispatch for Counts {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        self.0[rank] += 1;
        let mut clock = punctual_engine::clocks::Vdso;
        while cycle.n.is_multiple_of(100) && !cycle.overran(clock.now()) {}
        Flow::Continue
    }
}

/// The loop of many tasks, of every policy that goes on, some of which overrun.
fn many_allocations_and_faults<W: Wait>(wait: W) -> (u64, u64) {
    let process = session::ProcessSession::enter();
    let _thread = session::ThreadSession::enter(None, SchedPolicy::Fifo(10));
    let task = |name: &str, us: u64, policy| {
        Task::every(name, Period::ratio(us * 1_000, 1).expect("in range")).on_overrun(policy)
    };
    let plan = Periodic::new()
        .task(task("skip", 500, Overrun::Skip))
        .task(task("burst", 1_000, Overrun::Burst(3)))
        .task(task("delay", 2_000, Overrun::Delay))
        .task(task("terminate", 2_000, Overrun::Terminate))
        .build()
        .expect("a plan");
    let table = plan.table(Instant::from_ns(0));
    let mut storage = plan.storage();
    let mut clock = MachineClock::best();
    let start = clock.now();
    let mut state = TableState::begin(&table, storage.lend(), start).expect("its own storage");
    let stop = AtomicBool::new(false);
    let mut many = Many { clock, wait, tasks: Counts(vec![0; 4]), observe: () };
    let ended = many.run(&table, &mut state, start + Span::from_ms(10), &stop);
    assert_eq!(ended, Ended::Finished);
    let before = threads::usage().expect("own usage");
    ALLOCATOR.arm();
    let ended = many.run(&table, &mut state, start + Span::from_ms(300), &stop);
    let allocations = ALLOCATOR.disarm();
    let after = threads::usage().expect("own usage");
    assert_eq!(ended, Ended::Finished);
    assert!(many.tasks.0.iter().all(|&ran| ran > 10), "{:?}", many.tasks.0);
    let faults =
        after.minor_faults + after.major_faults - before.minor_faults - before.major_faults;
    (allocations, if process.memory_locked() { faults } else { 0 })
}

#[test]
fn the_loop_allocates_nothing_and_faults_on_nothing() {
    ALLOCATOR.arm();
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(ALLOCATOR.disarm(), 2, "the tripwire sees what it should");
    let (allocations, faults, _) = faults_and_allocations(Sleep);
    assert_eq!((allocations, faults), (0, 0), "sleep");
    let (allocations, faults, _) = faults_and_allocations(Spin::new(Span::from_us(100)));
    assert_eq!((allocations, faults), (0, 0), "spin");
    assert_eq!(many_allocations_and_faults(Sleep), (0, 0), "many, sleep");
    let period = Period::from_ns(500_000).expect("positive");
    let adaptive = Adaptive::new(Target::of(period));
    assert_eq!(many_allocations_and_faults(adaptive), (0, 0), "many, adaptive");
}
