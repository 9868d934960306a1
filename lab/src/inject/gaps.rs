//! When a CPU stood still, as a thread on it sees by the clock.

use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::InjectedInterval;

/// It spins for so long and then sleeps for so long, ns: so do others get its CPU.
const SPIN_NS: u64 = 8_000_000;
const SLEEP_NS: u64 = 2_000_000;
/// Two readings of the clock that lie further apart are a gap, ns: an interrupt takes less.
const GAP_NS: u64 = 20_000;
/// A sleep that ends so much later than it should was one, ns: who has the CPU meanwhile takes
/// less.
const LATE_SLEEP_NS: u64 = 10_000_000;

/// The stretches in which a thread spun, and the gaps that it saw in them and behind its sleeps.
#[derive(Debug, Default)]
pub struct GapWatch {
    spans: Vec<InjectedInterval>,
    gaps: Vec<InjectedInterval>,
}

impl GapWatch {
    /// Has the calling thread, which runs on this CPU, spin for 8 of each 10 ms until an instant of
    /// CLOCK_MONOTONIC, or until `ends` finds after such a time that it may end.
    pub fn run(cpu: u32, until_ns: u64, mut ends: impl FnMut(&Self) -> bool) -> Self {
        let mut watch = Self::default();
        let interval = |start_ns, end_ns| InjectedInterval { start_ns, end_ns, cpu };
        let mut start_ns = now_ns(ClockId::Monotonic);
        while start_ns < until_ns && !ends(&watch) {
            let mut last_ns = start_ns;
            while last_ns < start_ns + SPIN_NS {
                let read_ns = now_ns(ClockId::Monotonic);
                if read_ns - last_ns >= GAP_NS {
                    watch.gaps.push(interval(last_ns, read_ns));
                }
                last_ns = read_ns;
            }
            watch.spans.push(interval(start_ns, last_ns));
            let wake_ns = last_ns + SLEEP_NS;
            // A signal that ends a sleep early does no harm.
            let _early = sleep_until_ns(wake_ns);
            start_ns = now_ns(ClockId::Monotonic);
            if start_ns >= wake_ns + LATE_SLEEP_NS {
                watch.gaps.push(interval(wake_ns, start_ns));
            }
        }
        watch
    }

    /// The stretches in which it spun.
    pub fn spans(&self) -> &[InjectedInterval] {
        &self.spans
    }

    /// The gaps that it saw, of 20 µs and more; behind a sleep of 10 ms and more.
    pub fn gaps(&self) -> &[InjectedInterval] {
        &self.gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_it_may_and_knows_when_it_looked() {
        let begin_ns = now_ns(ClockId::Monotonic);
        let twice = GapWatch::run(0, begin_ns + 10_000_000_000, |watch| watch.spans.len() == 2);
        let end_ns = now_ns(ClockId::Monotonic);
        let [first, second] = twice.spans() else { panic!("{twice:?}") };
        assert!(begin_ns <= first.start_ns && second.end_ns <= end_ns);
        assert!(first.end_ns + SLEEP_NS <= second.start_ns);
        assert!([first, second].iter().all(|span| span.length_ns() >= SPIN_NS));
        assert!(twice.gaps().iter().all(|gap| gap.length_ns() >= GAP_NS), "{twice:?}");
        let none = GapWatch::run(0, begin_ns, |_| false);
        assert!(none.spans().is_empty() && none.gaps().is_empty());
    }
}
