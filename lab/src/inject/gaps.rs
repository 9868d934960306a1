//! When a CPU stood still, as a thread on it sees by the clock.

use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::InjectedInterval;

/// It spins for so long and then sleeps for so long, ns: so do others get its CPU.
const SPIN_NS: u64 = 8_000_000;
const SLEEP_NS: u64 = 2_000_000;
/// A sleep that ends so much later than it should was one, ns: who has the CPU meanwhile takes
/// less.
const LATE_SLEEP_NS: u64 = 10_000_000;

/// The stretches in which a thread spun, and when it did not run although it would have.
#[derive(Debug, Default)]
pub struct GapWatch {
    spans: Vec<InjectedInterval>,
    gaps: Vec<InjectedInterval>,
    late_sleeps: Vec<InjectedInterval>,
}

impl GapWatch {
    /// Two readings of the clock that lie further apart are a gap, ns: an interrupt takes less.
    pub const GAP_NS: u64 = 20_000;

    /// Has the calling thread, which runs on this CPU, spin for 8 of each 10 ms until an instant of
    /// CLOCK_MONOTONIC, or until `ends` finds after such a time that it may end.
    pub fn run(cpu: u32, until_ns: u64, ends: impl FnMut(&Self) -> bool) -> Self {
        // A signal that ends a sleep early does no harm.
        let sleep = |wake_ns| {
            let _early = sleep_until_ns(wake_ns);
        };
        Self::run_by(|| now_ns(ClockId::Monotonic), sleep, (cpu, until_ns), ends)
    }

    /// As [`Self::run`], by this clock and this sleep.
    fn run_by(
        mut clock_ns: impl FnMut() -> u64,
        mut sleep_until: impl FnMut(u64),
        (cpu, until_ns): (u32, u64),
        mut ends: impl FnMut(&Self) -> bool,
    ) -> Self {
        let mut watch = Self::default();
        let interval = |start_ns, end_ns| InjectedInterval { start_ns, end_ns, cpu };
        let mut start_ns = clock_ns();
        while start_ns < until_ns && !ends(&watch) {
            let mut last_ns = start_ns;
            while last_ns < start_ns + SPIN_NS {
                let read_ns = clock_ns();
                if read_ns - last_ns >= Self::GAP_NS {
                    watch.gaps.push(interval(last_ns, read_ns));
                }
                last_ns = read_ns;
            }
            watch.spans.push(interval(start_ns, last_ns));
            let wake_ns = last_ns + SLEEP_NS;
            sleep_until(wake_ns);
            start_ns = clock_ns();
            if start_ns >= wake_ns + LATE_SLEEP_NS {
                watch.late_sleeps.push(interval(wake_ns, start_ns));
            }
        }
        watch
    }

    /// The stretches in which it spun.
    pub fn spans(&self) -> &[InjectedInterval] {
        &self.spans
    }

    /// The gaps that it saw in them.
    pub fn gaps(&self) -> &[InjectedInterval] {
        &self.gaps
    }

    /// The first time that it did not run for at least so long, ns, spinning or asleep; of sleeps
    /// 10 ms at least.
    pub fn stood_still(&self, least_ns: u64) -> Option<InjectedInterval> {
        let is_long = |interval: &&InjectedInterval| interval.length_ns() >= least_ns;
        let long = self.gaps.iter().chain(&self.late_sleeps).filter(is_long);
        long.min_by_key(|interval| interval.start_ns).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Runs by a clock that goes on by 10 us with each reading, and by `stands` us before the
    /// reading at such an instant, us; each sleep ends so many us late.
    fn watched(stands: &[(u64, u64)], late_us: u64) -> GapWatch {
        let now = Cell::new(0);
        let clock_ns = || {
            let before = now.get();
            let stood = stands.iter().find(|(at_us, _)| *at_us * 1_000 == before);
            now.set(before + 10_000 + stood.map_or(0, |(_, us)| us * 1_000));
            now.get()
        };
        let sleep = |wake_ns: u64| now.set(wake_ns + late_us * 1_000);
        GapWatch::run_by(clock_ns, sleep, (3, 35_000_000), |_| false)
    }

    fn intervals(seen: &[InjectedInterval]) -> Vec<(u64, u64)> {
        assert!(seen.iter().all(|interval| interval.cpu == 3));
        seen.iter().map(|one| (one.start_ns / 1_000, one.end_ns / 1_000)).collect()
    }

    #[test]
    fn a_gap_is_what_lies_between_two_readings_in_a_spin() {
        let watch = watched(&[(100, 9), (509, 10), (2_019, 30_000)], 0);
        assert_eq!(intervals(watch.gaps()), [(509, 529), (2_019, 32_029)]);
        assert_eq!(intervals(watch.spans())[0], (10, 32_029));
        let stood = watch.stood_still(1_000_000).map(|gap| gap.length_ns());
        assert_eq!((stood, watch.stood_still(31_000_000)), (Some(30_010_000), None));
    }

    #[test]
    fn a_sleep_that_ends_much_too_late_is_no_gap_but_it_stood_still() {
        let (soon, late) = (watched(&[], 9_000), watched(&[], 12_000));
        assert_eq!((soon.spans().len(), soon.stood_still(0)), (2, None));
        assert!(late.gaps().is_empty());
        let stood = late.stood_still(11_000_000).map(|late| (late.start_ns, late.end_ns));
        assert_eq!(stood, Some((10_010_000, 22_020_000)));
    }

    #[test]
    fn it_ends_when_it_may() {
        let until_ns = now_ns(ClockId::Monotonic) + 10_000_000_000;
        let twice = GapWatch::run(0, until_ns, |watch| watch.spans.len() == 2);
        assert_eq!(twice.spans().len(), 2);
        assert!(GapWatch::run(0, 0, |_| false).spans().is_empty());
    }
}
