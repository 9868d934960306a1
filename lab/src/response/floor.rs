//! The instrument's floor: two threads that wake each other by a futex, with nothing around it.
//!
//! Bounded by a number of round trips and by a time for each.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use punctual::session::ThreadSession;
use punctual::spawn;
use punctual_analysis::summary::Distribution;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::futex::{self, Scope};
use punctual_os::scheduler::SchedPolicy;

use super::outcome::Floor;

/// Round trips at most and at least, the first of which are not counted.
const TRIPS: std::ops::RangeInclusive<u64> = 300..=2_000;
const COLD: u64 = 100;
/// How long all of them take, about, where the least do not take longer.
const ALL_NS: u64 = 1_000_000_000;
/// From one to the next: as from one stimulus to the next, since a CPU that idles for longer wakes
/// later, within these limits.
const APART_NS: std::ops::RangeInclusive<u64> = 100_000..=5_000_000;
/// A round trip that takes longer than this ends it.
const PATIENCE_NS: u64 = 500_000_000;

/// Measures from the first CPU to the second and back, each `period_ns`; `None` where they are one,
/// or no thread could be had.
pub(super) fn measure(
    [near, far]: [u32; 2],
    policy: SchedPolicy,
    period_ns: u64,
    stop: &AtomicBool,
) -> Option<Floor> {
    if near == far {
        return None;
    }
    let (ping, pong) = (AtomicU64::new(0), AtomicU64::new(0));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let answering = spawn::scoped(scope, "punctual-pong", || {
            let _session = ThreadSession::enter(Some(far), policy);
            while !over.load(Ordering::Acquire) {
                let seen = ping.load(Ordering::Acquire);
                if seen == pong.load(Ordering::Relaxed) {
                    futex::wait(&ping, seen as u32, Scope::Process);
                    continue;
                }
                pong.store(seen, Ordering::Release);
                let _woken = futex::wake(&pong, 1, Scope::Process);
            }
        });
        let measuring = spawn::scoped(scope, "punctual-ping", || {
            let _session = ThreadSession::enter(Some(near), policy);
            trips(&ping, &pong, period_ns, stop)
        });
        let floor = measuring.ok().and_then(|measuring| measuring.join().ok());
        over.store(true, Ordering::Release);
        if let Ok(answering) = answering {
            while !answering.is_finished() {
                ping.fetch_add(1, Ordering::Release);
                let _woken = futex::wake(&ping, 1, Scope::Process);
                thread::yield_now();
            }
        }
        floor.filter(|floor| floor.n > 0)
    })
}

/// The round trips, until one takes too long.
fn trips(ping: &AtomicU64, pong: &AtomicU64, period_ns: u64, stop: &AtomicBool) -> Floor {
    let apart_ns = period_ns.clamp(*APART_NS.start(), *APART_NS.end());
    let count = (ALL_NS / apart_ns).clamp(*TRIPS.start(), *TRIPS.end());
    let mut halves = Distribution::default();
    let mut n = 0;
    let mut next_ns = now_ns(ClockId::Monotonic);
    for trip in 1..=count {
        next_ns = (next_ns + apart_ns).max(now_ns(ClockId::Monotonic));
        let _interrupted = sleep_until_ns(next_ns);
        let begin_ns = now_ns(ClockId::Monotonic);
        ping.store(trip, Ordering::Release);
        let _woken = futex::wake(ping, 1, Scope::Process);
        while pong.load(Ordering::Acquire) != trip {
            futex::wait_until(pong, (trip - 1) as u32, Scope::Process, begin_ns + PATIENCE_NS);
            if now_ns(ClockId::Monotonic) >= begin_ns + PATIENCE_NS {
                break;
            }
        }
        let took_ns = now_ns(ClockId::Monotonic) - begin_ns;
        if took_ns >= PATIENCE_NS || stop.load(Ordering::Relaxed) {
            break;
        }
        if trip > COLD {
            halves.push((took_ns / 2).cast_signed());
            n += 1;
        }
    }
    Floor { n, half_round_trip_ns: halves.stats() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_it_and_one_cpu_has_none() {
        let stop = AtomicBool::new(true);
        assert_eq!(measure([0, 0], SchedPolicy::Other, 1_000_000, &stop), None);
        assert_eq!(measure([0, 1], SchedPolicy::Other, 1_000_000, &stop), None);
    }
}
