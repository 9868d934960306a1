//! The laws of the loop, held for a lone one: no allocation and no page fault between two waits.
//!
//! One test alone, so that nothing else of the process disturbs it. Asserts no time.

use std::alloc::System;

use punctual::core::time::Span;
use punctual::lone::{Options, Place, Storage};
use punctual::os::scheduler::Policy;
use punctual::os::tripwire::Counting;
use punctual::os::usage;
use punctual::periodic::Period;
use punctual::session;
use punctual::way::Way;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

/// Allocations and page faults of 200 cycles.
fn faults_and_allocations(way: Way) -> (u64, u64) {
    let process = session::Process::enter();
    let mut storage = Storage::new();
    // No whole number of nanoseconds, so that the long division is run too.
    let options = Options::new(Period::hz(3_000).expect("in range")).policy(Policy::Fifo(10));
    let options = options.way(way).place(Place::Zero).rehearse(false);
    let mut looped = options.enter(&mut storage).expect("a loop");
    // Paid here: the first use of the code.
    for _ in 0..3 {
        assert!(looped.wait().is_some());
    }
    let before = usage::of_thread().expect("own usage");
    ALLOCATOR.arm();
    let cycles = (0..200).map_while(|_| looped.wait()).count();
    let allocations = ALLOCATOR.disarm();
    let after = usage::of_thread().expect("own usage");
    assert_eq!(cycles, 200);
    // Where locking was refused a page may be taken away at any time.
    let faults = if process.memory_locked() {
        after.minor_faults + after.major_faults - before.minor_faults - before.major_faults
    } else {
        0
    };
    (allocations, faults)
}

#[test]
fn a_wait_allocates_nothing_and_faults_on_nothing() {
    ALLOCATOR.arm();
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(ALLOCATOR.disarm(), 2, "the tripwire sees what it should");
    for way in [Way::Sleep, Way::Fixed(Span::from_us(50)), Way::Rearm(None), Way::Adaptive(0.2)] {
        assert_eq!(faults_and_allocations(way), (0, 0), "{way:?}");
    }
}
