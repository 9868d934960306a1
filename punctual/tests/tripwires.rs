//! The laws of the loop, held on this machine's real clock: no allocation and no page fault between
//! the first cycle and the last.
//!
//! One test alone, so that nothing else of the process disturbs it. Asserts no time.

use std::alloc::System;
use std::sync::atomic::{AtomicBool, AtomicU64};

use punctual::clocks::MachineClock;
use punctual::core::clock::Clock;
use punctual::core::executive::{Ended, Executive, Segment};
use punctual::core::grid::Grid;
use punctual::core::recorder::{split, words};
use punctual::core::time::{Period, Span};
use punctual::core::wait::{Sleep, Spin, Wait};
use punctual::os::scheduler::Policy;
use punctual::os::tripwire::Counting;
use punctual::os::usage;
use punctual::session;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

fn faults_and_allocations<W: Wait<MachineClock>>(wait: W) -> (u64, u64, u64) {
    let process = session::Process::enter();
    let _thread = session::Thread::enter(None, Policy::Fifo(10));
    let storage: Vec<AtomicU64> = (0..words(1024)).map(|_| AtomicU64::new(0)).collect();
    let (record, _drain, view) = split(&storage).expect("large enough");
    let mut clock = MachineClock::best();
    let start = clock.now();
    let grid = Grid::aligned(start, Period::from_ns(500_000).expect("positive"), 0);
    let segment = Segment { grid, first: 2, end: start + Span::from_ms(100), cold: 10 };
    let stop = AtomicBool::new(false);
    let mut executive = Executive { clock, wait, record };
    // Paid here, before the loop: first use of the code and of the clock.
    let warm = Segment { end: grid.release(4), ..segment };
    assert_eq!(executive.run(&warm, &stop), Ended::Finished);

    let rest = Segment { first: grid.cycle_at(executive.clock.now()), ..segment };
    let before = usage::of_thread().expect("own usage");
    ALLOCATOR.arm();
    let ended = executive.run(&rest, &stop);
    let allocations = ALLOCATOR.disarm();
    let after = usage::of_thread().expect("own usage");
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

#[test]
fn the_loop_allocates_nothing_and_faults_on_nothing() {
    ALLOCATOR.arm();
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(ALLOCATOR.disarm(), 2, "the tripwire sees what it should");
    let (allocations, faults, _) = faults_and_allocations(Sleep);
    assert_eq!((allocations, faults), (0, 0), "sleep");
    let (allocations, faults, _) = faults_and_allocations(Spin::new(Span::from_us(100)));
    assert_eq!((allocations, faults), (0, 0), "spin");
}
