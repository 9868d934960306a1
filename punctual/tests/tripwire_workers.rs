//! The laws of the loop, held in a worker's thread and in the thread that posts for it: no
//! allocation and no page fault between the first cycles and the last.
//!
//! One test alone, so that nothing else of the process disturbs it. Asserts no time.

use std::alloc::System;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual::clocks::MachineClock;
use punctual::core::executive::many::Flow;
use punctual::core::time::{Instant, Span};
use punctual::core::wait::{Sleep, Wait};
use punctual::os::tripwire::Counting;
use punctual::os::usage;
use punctual::periodic::{Period, Task};
use punctual::session;
use punctual::workers::{Why, Workers};

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
            let usage = usage::of_thread().expect("own usage");
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

/// A wait of the thread that posts.
struct Watched<'w>(Option<&'w mut Wire>);

impl Wait<MachineClock> for Watched<'_> {
    fn until(
        &mut self,
        clock: &mut MachineClock,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        if let Some(wire) = &mut self.0 {
            wire.pass();
        }
        Sleep.until(clock, release, stop)
    }
}

/// Runs a worker until both threads were watched long enough.
fn run(wait: Watched<'_>, mut worker: Option<&mut Wire>) {
    let turns = AtomicU64::new(0);
    let task = Task::new("task", Period::ratio(1_000_000, 1).expect("in range"));
    let finished = Workers::new()
        .task(task, |_| {
            if let Some(wire) = &mut worker {
                wire.pass();
            }
            let all = turns.fetch_add(1, Ordering::Relaxed);
            if all > LAST + FIRST { Flow::Stop } else { Flow::Continue }
        })
        .build()
        .expect("fine")
        .run(wait, Span::from_ms(60_000), &AtomicBool::new(false));
    assert_eq!(finished.why, Why::Stopped);
}

#[test]
fn neither_a_worker_nor_who_posts_for_it_allocates_or_faults() {
    let process = session::Process::enter();
    let (mut worker, mut executive) = (Wire::default(), Wire::default());
    run(Watched(None), Some(&mut worker));
    run(Watched(Some(&mut executive)), None);
    for (who, wire) in [("worker", worker), ("executive", executive)] {
        assert!(wire.calls >= LAST, "{who} ran");
        assert_eq!(wire.found.0, 0, "{who}: allocations");
        // Where locking was refused a page may be taken away at any time.
        assert!(wire.found.1 == 0 || !process.memory_locked(), "{who}: {} faults", wire.found.1);
    }
}
