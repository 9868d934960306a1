//! The cost of a stamp, which is the floor under every number measured with it, and of a wake.
//!
//! For experiments, at setup. Never assumes: it measures on the clock in use.

use punctual_core::clock::Clock;
use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns};

/// The cost of one call where nothing else takes the CPU meanwhile, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StampCost {
    /// Of [`Clock::now`].
    pub now_ns: f64,
    /// Of [`Clock::poll`].
    pub poll_ns: f64,
    /// Of [`Clock::wake`], which anchors as well.
    pub wake_ns: f64,
}

/// Calls in a batch, and batches: 31 000 calls of each kind, about 5 ms in all. The 3 µs of a
/// batch fit into the time that a loop of high priority leaves others.
const BATCH: u32 = 100;
const BATCHES: usize = 310;

impl StampCost {
    /// Measures `clock`, warm, on the calling thread.
    ///
    /// # Real-time: setup only
    pub fn measure(clock: &mut impl Clock) -> Self {
        let read = || now_ns(ClockId::Monotonic);
        Self {
            now_ns: undisturbed(read, || {
                clock.now();
            }),
            poll_ns: undisturbed(read, || {
                clock.poll();
            }),
            wake_ns: undisturbed(read, || {
                clock.wake();
            }),
        }
    }
}

/// Sleeps in a batch of [`wake_cost`], batches, and how long each sleep is.
const WAKES: u64 = 10;
const WAKE_BATCHES: usize = 11;
const WAKE_AFTER: Span = Span::from_us(50);

/// CPU time of one short sleep and wake, the kernel's part included: NIST's S. The median of
/// 11 batches of 10 sleeps of 50 µs, on the calling thread: time that a host takes from a virtual
/// CPU counts as the thread's, and one such turn of 10 ms would be 90 µs in a mean over all.
///
/// # Real-time: setup only
pub fn wake_cost(clock: &mut impl Clock) -> Span {
    let per_wake = typical(
        || now_ns(ClockId::ThreadCpu),
        || {
            let at = clock.now() + WAKE_AFTER;
            clock.sleep_until(at);
            clock.wake();
        },
    );
    Span::from_ns(i64::try_from(per_wake).unwrap_or(i64::MAX))
}

/// The cost of a call in the median batch, ns.
fn typical(read: impl Fn() -> u64, mut call: impl FnMut()) -> u64 {
    let mut batches = [0; WAKE_BATCHES];
    for batch in &mut batches {
        let before = read();
        (0..WAKES).for_each(|_| call());
        *batch = read().saturating_sub(before) / WAKES;
    }
    batches.sort_unstable();
    batches[WAKE_BATCHES / 2]
}

/// The cost of a call in the cheapest batch: what interrupts others is not its cost.
fn undisturbed(read: impl Fn() -> u64, mut call: impl FnMut()) -> f64 {
    let mut batch = || {
        let before = read();
        (0..BATCH).for_each(|_| call());
        (read() - before) as f64 / f64::from(BATCH)
    };
    (0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_stamp_is_not_free() {
        let cost = StampCost::measure(&mut super::super::Vdso);
        assert!(cost.now_ns > 0.0 && cost.poll_ns > 0.0 && cost.wake_ns > 0.0);
    }

    #[test]
    fn what_interrupts_is_not_the_cost_of_a_stamp() {
        let now = Cell::new(0);
        let calls = Cell::new(0);
        // Another's turn of 90 µs in two of three batches.
        let cost = undisturbed(
            || now.get(),
            || {
                calls.set(calls.get() + 1);
                let turn_ns = if calls.get() % 150 == 0 { 90_000 } else { 0 };
                now.set(now.get() + 24 + turn_ns);
            },
        );
        assert_eq!(cost, 24.0);
    }

    #[test]
    fn what_a_host_takes_for_itself_is_not_the_cost_of_a_wake() {
        let (now, calls) = (Cell::new(0), Cell::new(0));
        // 30 ms in one of eleven batches.
        let cost = typical(
            || now.get(),
            || {
                calls.set(calls.get() + 1);
                let stolen_ns = if calls.get() == 70 { 30_000_000 } else { 0 };
                now.set(now.get() + 3_000 + stolen_ns);
            },
        );
        assert_eq!(cost, 3_000);
    }

    #[test]
    fn a_wake_is_not_free() {
        assert!(wake_cost(&mut super::super::Vdso) > Span::ZERO);
    }
}
