//! The gap detector: the clock is read again and again, and what took longer is a gap.
//!
//! For the search of a quiet phase and for the noise experiment. Runs in any clock, so in a
//! simulated one too. Allocates nothing, makes no system call. No pause instruction stands between
//! two reads: in a guest it can make the host take the CPU away.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Span};

/// A gap in a spin: the CPU was elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it began.
    pub at: Instant,
    /// How long it was.
    pub length: Span,
}

/// What a spin was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spun {
    /// From its first to its last read.
    pub length: Span,
    /// How often the clock was read after the first time.
    pub reads: u64,
}

/// Spins until `end`, or until `stop` is set. Two reads that are `threshold` or more apart are a
/// gap; one that lasts beyond the end is measured whole.
///
/// # Real-time: in loop
#[inline]
pub fn spin<C: Clock>(
    clock: &mut C,
    end: Instant,
    threshold: Span,
    stop: &AtomicBool,
    mut found: impl FnMut(Gap),
) -> Spun {
    let first = clock.now();
    let (mut last, mut reads) = (first, 0);
    while last < end && !stop.load(Ordering::Relaxed) {
        let now = clock.poll();
        let length = now - last;
        if length >= threshold {
            found(Gap { at: last, length });
        }
        (last, reads) = (now, reads + 1);
    }
    Spun { length: last - first, reads }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use punctual_testkit::sim::SimClock;

    use super::*;

    /// A simulated clock whose reads take what a script says, then 20 ns each.
    struct Scripted(SimClock<std::iter::Empty<punctual_testkit::sim::SleepNoise>>, Vec<i64>);

    impl Scripted {
        fn new(begin_ns: u64, mut steps_ns: Vec<i64>) -> Self {
            steps_ns.reverse();
            Self(SimClock::new(Instant::from_ns(begin_ns), std::iter::empty()), steps_ns)
        }
    }

    impl Clock for Scripted {
        fn now(&mut self) -> Instant {
            self.0.now()
        }

        fn poll(&mut self) -> Instant {
            self.0.poll_cost = Span::from_ns(self.1.pop().unwrap_or(20));
            self.0.poll()
        }

        fn sleep_until(&mut self, at: Instant) {
            self.0.sleep_until(at);
        }

        fn wake(&mut self) -> Instant {
            self.0.wake()
        }

        fn relax(&mut self) {}
    }

    /// The slow way: all instants at which the clock was read, then every pair of neighbours.
    fn model(begin_ns: u64, steps_ns: &[i64], end_ns: u64, threshold_ns: i64) -> (Vec<Gap>, Spun) {
        let mut instants = vec![begin_ns];
        let mut steps = steps_ns.iter().copied().chain(std::iter::repeat(20));
        while instants.last().is_some_and(|&last| last < end_ns) {
            let step = steps.next().expect("endless");
            instants.push(instants.last().expect("one at least") + step.unsigned_abs());
        }
        let gaps = instants.windows(2).filter(|pair| (pair[1] - pair[0]) as i64 >= threshold_ns);
        let gap = |pair: &[u64]| Gap {
            at: Instant::from_ns(pair[0]),
            length: Span::from_ns((pair[1] - pair[0]) as i64),
        };
        let length = Span::from_ns((instants.last().expect("one") - begin_ns) as i64);
        (gaps.map(gap).collect(), Spun { length, reads: instants.len() as u64 - 1 })
    }

    /// Reads of the clock, one in nine of which takes long.
    fn steps() -> impl Strategy<Value = Vec<i64>> {
        prop::collection::vec(prop_oneof![8 => 15..60i64, 1 => 900..90_000i64], 0..400)
    }

    proptest! {
        #[test]
        fn it_finds_what_the_slow_way_finds(
            steps_ns in steps(),
            end_ns in 1_000..40_000u64,
            threshold_ns in 50..3_000i64,
        ) {
            let begin_ns = 1_000;
            let mut clock = Scripted::new(begin_ns, steps_ns.clone());
            let mut found = Vec::new();
            let (end, threshold) = (Instant::from_ns(end_ns), Span::from_ns(threshold_ns));
            let spun = spin(&mut clock, end, threshold, &AtomicBool::new(false), |gap| {
                found.push(gap);
            });
            prop_assert_eq!((found, spun), model(begin_ns, &steps_ns, end_ns, threshold_ns));
        }
    }

    #[test]
    fn a_gap_over_the_end_is_whole_and_a_stop_ends_at_once() {
        let mut clock = Scripted::new(0, vec![20, 20, 500_000]);
        let mut found = Vec::new();
        let (end, us) = (Instant::from_ns(100), Span::from_us(1));
        let spun = spin(&mut clock, end, us, &AtomicBool::new(false), |gap| found.push(gap));
        assert_eq!(found, [Gap { at: Instant::from_ns(40), length: Span::from_us(500) }]);
        assert_eq!(spun, Spun { length: Span::from_ns(500_040), reads: 3 });
        let stopped =
            spin(&mut clock, Instant::from_ns(u64::MAX), us, &AtomicBool::new(true), |_| ());
        assert_eq!(stopped, Spun { length: Span::ZERO, reads: 0 });
    }
}
