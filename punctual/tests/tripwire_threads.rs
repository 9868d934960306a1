//! The laws of the loop, held in the thread of a task and in the loop that releases it: no
//! allocation and no page fault between the first cycles and the last.
//!
//! One test alone, so that nothing else of the process disturbs it. Asserts no time.

use std::alloc::System;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual::{End, Executive, Flow, Period, Phase, Placement, RtThread, Task, WaitPolicy};
use punctual_engine::session;
use punctual_os::threads;
use punctual_os::tripwire::Counting;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

/// The turns between which a thread is watched.
const FIRST: u64 = 10;
const LAST: u64 = 60;

/// Watches the thread that calls it, from its tenth call to its sixtieth.
#[derive(Debug, Default)]
struct Wire {
    calls: u64,
    faults: u64,
    found: (u64, u64),
}

impl Wire {
    fn pass(&mut self) {
        let faults = || {
            let usage = threads::usage().expect("own usage");
            usage.minor_faults + usage.major_faults
        };
        self.calls += 1;
        if self.calls == FIRST {
            self.faults = faults();
            ALLOCATOR.arm();
        } else if self.calls == LAST {
            self.found = (ALLOCATOR.disarm(), faults() - self.faults);
        }
    }
}

#[test]
fn neither_a_task_in_a_thread_nor_the_loop_that_releases_it_allocates_or_faults() {
    let process = session::ProcessSession::enter();
    let (mut own, mut inline) = (Wire::default(), Wire::default());
    let turns = AtomicU64::new(0);
    let task = |name: &str| Task::every(name, Period::ratio(1_000_000, 1).expect("in range"));
    let thread = RtThread::any().wait(WaitPolicy::sleep());
    let (plan, _) = Executive::builder()
        .thread(thread.clone())
        .phase(Phase::Zero)
        .task(task("thread").placed(Placement::thread(RtThread::any())), |_| {
            own.pass();
            turns.fetch_add(1, Ordering::Relaxed);
        })
        .task(task("inline"), |_| {
            inline.pass();
            // Until both were watched long enough.
            let turn = turns.load(Ordering::Relaxed);
            if turn > LAST + FIRST && inline.calls > LAST { Flow::Stop } else { Flow::Continue }
        })
        .build()
        .expect("fine");
    let summary = plan.run_for(Duration::from_secs(60)).expect("it starts");
    assert_eq!(summary.end, End::Stopped);
    for (who, wire) in [("the task's thread", own), ("the loop", inline)] {
        assert!(wire.calls >= LAST, "{who} ran");
        assert_eq!(wire.found.0, 0, "{who}: allocations");
        // Where locking was refused a page may be taken away at any time.
        assert!(wire.found.1 == 0 || !process.memory_locked(), "{who}: {} faults", wire.found.1);
    }
}
