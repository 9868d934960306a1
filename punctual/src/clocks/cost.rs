//! What a stamp costs: the floor under every number that is measured with it; and what a wake does.
//!
//! For experiments, at setup. Never assumes: it measures on the clock in use.

use punctual_core::clock::Clock;
use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns};

/// Median costs of one call, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StampCost {
    /// Of [`Clock::now`].
    pub now_ns: f64,
    /// Of [`Clock::poll`].
    pub poll_ns: f64,
    /// Of [`Clock::wake`], which anchors as well.
    pub wake_ns: f64,
}

/// Calls in a batch, and batches: 31 000 calls of each kind, about 5 ms in all.
const BATCH: u32 = 1_000;
const BATCHES: usize = 31;

impl StampCost {
    /// Measures `clock`, warm, on the calling thread.
    ///
    /// # Real-time: setup only
    pub fn measure(clock: &mut impl Clock) -> Self {
        Self {
            now_ns: median_cost(|| {
                clock.now();
            }),
            poll_ns: median_cost(|| {
                clock.poll();
            }),
            wake_ns: median_cost(|| {
                clock.wake();
            }),
        }
    }
}

/// Sleeps in a measurement of [`wake_cost`], and how long each is.
const WAKES: u64 = 200;
const WAKE_AFTER: Span = Span::from_us(50);

/// CPU time of one short sleep and wake, the kernel's part included: NIST's S. The mean of
/// 200 sleeps of 50 µs, on the calling thread.
///
/// # Real-time: setup only
pub fn wake_cost(clock: &mut impl Clock) -> Span {
    let before = now_ns(ClockId::ThreadCpu);
    for _ in 0..WAKES {
        let at = clock.now() + WAKE_AFTER;
        clock.sleep_until(at);
        clock.wake();
    }
    let spent = now_ns(ClockId::ThreadCpu).saturating_sub(before);
    Span::from_ns(i64::try_from(spent / WAKES).unwrap_or(i64::MAX))
}

fn median_cost(mut call: impl FnMut()) -> f64 {
    let mut costs = [0.0f64; BATCHES];
    for cost in &mut costs {
        let before = now_ns(ClockId::Monotonic);
        for _ in 0..BATCH {
            call();
        }
        *cost = (now_ns(ClockId::Monotonic) - before) as f64 / f64::from(BATCH);
    }
    costs.sort_by(f64::total_cmp);
    costs[BATCHES / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_not_free() {
        let cost = StampCost::measure(&mut super::super::Vdso);
        assert!(cost.now_ns > 0.0 && cost.poll_ns > 0.0 && cost.wake_ns > 0.0);
    }

    #[test]
    fn a_wake_is_not_free() {
        assert!(wake_cost(&mut super::super::Vdso) > Span::ZERO);
    }
}
