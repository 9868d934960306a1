//! The laws of the loop, held while tasks are registered and removed, with and without
//! threads of their own: no allocation and no page
//! fault in the executive's thread, whatever is published to it.
//!
//! One test alone, so that nothing else of the process disturbs it. Asserts no time.

use std::alloc::System;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use punctual::{Cycle, End, Executive, Period, Phase, Placement, RtThread, Task, WaitPolicy};
use punctual_engine::session;
use punctual_os::tripwire::Counting;
use punctual_os::{affinity, threads};

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

/// Changes of each kind.
const TURNS: u64 = 100;

fn task(name: &str, us: u64) -> Task {
    Task::every(name, Period::ratio(us * 1_000, 1).expect("in range"))
}

fn faults() -> u64 {
    let usage = threads::usage().expect("own usage");
    usage.minor_faults + usage.major_faults
}

/// Watches the thread whose body calls it, from its tenth cycle until `done` is set.
#[derive(Debug, Default)]
struct Wire {
    done: AtomicBool,
    calls: AtomicU64,
    faults: AtomicU64,
    allocations: AtomicU64,
    is_reported: AtomicBool,
}

impl Wire {
    fn pass(&self) {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if calls == 10 {
            self.faults.store(faults(), Ordering::Relaxed);
            ALLOCATOR.arm();
        } else if self.done.load(Ordering::Acquire) && !self.is_reported.load(Ordering::Relaxed) {
            self.allocations.store(ALLOCATOR.disarm(), Ordering::Relaxed);
            self.faults.store(faults() - self.faults.load(Ordering::Relaxed), Ordering::Relaxed);
            self.is_reported.store(true, Ordering::Release);
        }
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

fn wait_until(is: impl Fn() -> bool) {
    while !is() {
        std::thread::yield_now();
    }
}

#[test]
fn tasks_come_and_go_and_the_loop_allocates_nothing() {
    let process = session::ProcessSession::enter();
    let cpu = affinity::get(0).expect("own").iter().last().expect("one at least");
    let (wire, guests, lost) = (Wire::default(), AtomicU64::new(0), AtomicU64::new(0));
    let mut next = None;
    let steady = |cycle: &mut Cycle<'_>| {
        wire.pass();
        let first = cycle.n - cycle.missed;
        if next.is_some_and(|next| next != first) {
            lost.fetch_add(1, Ordering::Relaxed);
        }
        next = Some(cycle.n + 1);
    };
    let (plan, _) = Executive::builder()
        .thread(RtThread::cpu(cpu).wait(WaitPolicy::sleep()))
        .phase(Phase::Zero)
        .task(task("steady", 1_000), steady)
        .build()
        .expect("fine");
    let ((), summary) = plan
        .run_with(Duration::from_secs(120), |handle| {
            wait_until(|| wire.calls() > 10);
            let quick = RtThread::any().wait(WaitPolicy::sleep());
            for turn in 0..TURNS {
                // A body with memory of its own, which is freed here.
                let (own, guests) = (vec![turn; 100], &guests);
                let body = move |cycle: &mut Cycle<'_>| {
                    guests.fetch_add(1 + own[(cycle.n % 100) as usize] - turn, Ordering::Relaxed);
                };
                let guest = match turn % 4 {
                    0 => task("guest", 700),
                    1 => task("guest", 1_000),
                    2 => task("guest", 1_000).placed(Placement::thread(quick.clone())),
                    _ => task("guest", 1_000).after("steady", Duration::from_micros(300)),
                };
                let before = guests.load(Ordering::Relaxed);
                let id = handle.add(guest, body).expect("it fits");
                wait_until(|| guests.load(Ordering::Relaxed) > before);
                let _did = handle.remove(id).expect("it is there");
            }
            wire.done.store(true, Ordering::Release);
            wait_until(|| wire.is_reported.load(Ordering::Acquire));
            handle.stop();
        })
        .expect("it starts");
    assert_eq!(summary.end, End::Stopped);
    // Of the removed ones, the last 64 are remembered.
    assert_eq!(summary.tasks.len() as u64, 1 + TURNS.min(64));
    assert_eq!(lost.into_inner(), 0, "a release was lost or doubled");
    assert_eq!(wire.allocations.into_inner(), 0, "allocations in the loop");
    if process.memory_locked() {
        assert_eq!(wire.faults.into_inner(), 0, "page faults in the loop");
    }
}
