//! The laws of the loop, held for one of one period: no allocation and no page fault between two
//! waits.
//!
//! One test alone, so that nothing else of the process disturbs it. Asserts no time.

use std::alloc::System;
use std::path::Path;

use std::time::Duration;

use punctual::{Loop, Period, Phase, RtThread, WaitPolicy};
use punctual_os::threads;
use punctual_os::tripwire::Counting;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

/// Allocations and page faults of 200 cycles.
fn faults_and_allocations(wait: WaitPolicy, record: Option<&Path>) -> (u64, u64) {
    // No whole number of nanoseconds, so that the long division is run too.
    let thread = RtThread::any().fifo(10).wait(wait.learn_first(false));
    let builder = Loop::builder(Period::hz(3_000).expect("in range")).phase(Phase::Zero);
    let builder = builder.thread(thread);
    let builder = match record {
        Some(path) => builder.record(path),
        None => builder,
    };
    let mut control_loop = builder.start().expect("a loop");
    // Paid here: the first use of the code.
    for _ in 0..3 {
        assert!(control_loop.wait().is_some());
    }
    let before = threads::usage().expect("own usage");
    ALLOCATOR.arm();
    let cycles = (0..200).map_while(|_| control_loop.wait()).count();
    let allocations = ALLOCATOR.disarm();
    let after = threads::usage().expect("own usage");
    assert_eq!(cycles, 200);
    // Where locking was refused a page may be taken away at any time.
    let faults = if control_loop.memory_locked() {
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
    let fixed = WaitPolicy::fixed(Duration::from_micros(50));
    let adaptive = WaitPolicy::adaptive().cpu_budget(0.2);
    for wait in [WaitPolicy::sleep(), fixed, WaitPolicy::rearm(None), adaptive] {
        assert_eq!(faults_and_allocations(wait, None), (0, 0), "{wait:?}");
    }
    // The writer beside the loop allocates: its own faults and allocations are not the loop's.
    let path = std::env::temp_dir().join(format!("punctual-tripwire-{}", std::process::id()));
    let (_, faults) = faults_and_allocations(WaitPolicy::sleep(), Some(&path));
    std::fs::remove_file(&path).expect("ours");
    assert_eq!(faults, 0);
}
