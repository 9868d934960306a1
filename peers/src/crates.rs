//! Peers that are crates, each as a way to wait for punctual's own loop: so all of them are stamped
//! by one clock on one grid, and differ in nothing but how they wait.
//!
//! A way to wait may allocate and lock as its crate does.

mod interval;
mod plain;
mod spin;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Period};
use punctual_core::wait::{Strategy, Wait, WaitStatus};
use punctual_os::clock::{ClockId, now_ns};

pub(crate) use interval::Interval;
pub(crate) use plain::Plain;
pub(crate) use spin::SpinSleep;

/// Any way to wait, by one match for all alike: the cost of it, about a nanosecond, is in each.
pub(crate) enum Any {
    /// One of punctual's own.
    Ours(Box<Strategy>),
    /// The crate `spin_sleep`.
    SpinSleep(SpinSleep),
    /// tokio's interval.
    Tokio(Box<Interval>),
    /// One absolute sleep.
    Nanosleep(Plain),
}

impl Wait for Any {
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        match self {
            Self::Ours(wait) => wait.until(clock, release, stop),
            Self::SpinSleep(wait) => wait.until(clock, release, stop),
            Self::Tokio(wait) => wait.until(clock, release, stop),
            Self::Nanosleep(wait) => wait.until(clock, release, stop),
        }
    }

    fn status(&self) -> WaitStatus {
        match self {
            Self::Ours(wait) => wait.status(),
            Self::SpinSleep(wait) => wait.status(),
            Self::Tokio(wait) => wait.status(),
            Self::Nanosleep(wait) => wait.status(),
        }
    }
}

/// The instants of `std::time` for those of the grid: both are CLOCK_MONOTONIC, `std` hides it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Std {
    base: std::time::Instant,
    base_ns: u64,
}

impl Std {
    /// Reads both at once, as near as 50 tries come: some tens of ns.
    pub(crate) fn new() -> Self {
        let read = || {
            let before = now_ns(ClockId::Monotonic);
            let base = std::time::Instant::now();
            let width_ns = now_ns(ClockId::Monotonic) - before;
            (width_ns, Self { base, base_ns: before + width_ns / 2 })
        };
        let nearest = (0..50).map(|_| read()).min_by_key(|(width_ns, _)| *width_ns);
        nearest.map_or_else(|| read().1, |(_, read)| read)
    }

    /// The release as `std` has it; one before this was made becomes that moment.
    pub(crate) fn at(&self, release: Instant) -> std::time::Instant {
        self.base + Duration::from_nanos(release.as_ns().saturating_sub(self.base_ns))
    }
}

/// The period as `std` has it.
fn std_period(period: Period) -> Duration {
    Duration::from_nanos(period.as_ns())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use punctual_core::time::Span;
    use punctual_engine::clocks::MachineClock;
    use punctual_os::cycles;

    /// No way to wait is back before its release, but for what two clocks differ by.
    pub(crate) fn is_there_at_each_release(mut wait: impl Wait, period: Period) {
        let mut clock = MachineClock::best();
        let stop = AtomicBool::new(false);
        let mut release = clock.now() + Span::from_ms(5);
        for _ in 0..20 {
            let wake = wait.until(&mut clock, release, &stop).expect("not stopped");
            assert!((wake - release) > Span::from_us(-1), "{} of {}", wake - release, cycles::NAME);
            release += Span::from_ns(period.as_ns().cast_signed());
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(wait.until(&mut clock, release, &stop), None);
    }

    #[test]
    fn instants_of_std_keep_their_distances() {
        let std = Std::new();
        let release = Instant::from_ns(std.base_ns + 1_000);
        assert_eq!(std.at(release) - std.base, Duration::from_nanos(1_000));
        assert_eq!(std.at(Instant::from_ns(0)), std.base);
    }
}
