//! A priority inversion, and the mutex that ends it.
//!
//! Three FIFO threads on one CPU: the low one has the lock, the high one waits for it, the middle
//! one computes. Only where the low one is lent the priority does the high one get it meanwhile.
//! The middle one's work is bounded in CPU time; order alone is asserted.
#![allow(clippy::disallowed_types, reason = "std's mutex is what it is held against")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};

use punctual::{PiMutex, SchedPolicy};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler;
use punctual_testkit::skip;

/// A lock, held while the function runs.
type Within<'l> = &'l (dyn Fn(&mut dyn FnMut()) + Sync);

/// Returns true where the high thread had the lock before the middle one had computed for
/// `limit_ns`.
fn high_is_done_first(within: Within<'_>, cpu: u32, limit_ns: u64) -> bool {
    let (to_middle, for_middle) = channel();
    let (to_high, for_high) = channel();
    let (ready, done) = (Barrier::new(3), AtomicBool::new(false));
    let enter = |priority| {
        affinity::set(0, &CpuMask::one(cpu)).expect("one of ours");
        scheduler::set(0, SchedPolicy::Fifo(priority)).expect("the test made sure");
        ready.wait();
    };
    let (enter, done) = (&enter, &done);
    std::thread::scope(|threads| {
        threads.spawn(move || {
            enter(10);
            // The middle one takes the CPU within the lock.
            within(&mut || to_middle.send(()).expect("it waits"));
        });
        threads.spawn(move || {
            enter(30);
            for_high.recv().expect("the middle one sends");
            within(&mut || ());
            done.store(true, Ordering::Release);
        });
        let middle = threads.spawn(move || {
            enter(20);
            for_middle.recv().expect("the low one sends");
            let from_ns = now_ns(ClockId::ThreadCpu);
            // The high one takes the CPU, and waits for the lock.
            to_high.send(()).expect("it waits");
            while now_ns(ClockId::ThreadCpu) - from_ns < limit_ns {
                if done.load(Ordering::Acquire) {
                    return true;
                }
                std::hint::spin_loop();
            }
            false
        });
        middle.join().expect("no panic")
    })
}

#[test]
fn the_owner_runs_with_the_priority_of_whoever_waits() {
    if !skip::need_fifo() || !skip::need_native("priority inheritance") {
        return;
    }
    let cpu = affinity::get(0).expect("our own").iter().next().expect("it runs somewhere");
    let (plain, inherits) = (Mutex::new(()), PiMutex::new(()));
    let with_plain = |run: &mut dyn FnMut()| {
        let _guard = plain.lock().expect("no panic");
        run();
    };
    let with_inheritance = |run: &mut dyn FnMut()| {
        let _guard = inherits.lock();
        run();
    };
    // Where the middle thread waits for memory before it computes, the low one goes on meanwhile.
    let is_inverted = (0..10).any(|_| !high_is_done_first(&with_plain, cpu, 50_000_000));
    assert!(is_inverted, "there is no inversion to end");
    assert!(high_is_done_first(&with_inheritance, cpu, 2_000_000_000), "inverted");
}
