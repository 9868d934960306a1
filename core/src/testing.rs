//! The made-up clock and the random numbers of this crate's tests.

use core::cell::Cell;

use crate::clock::Clock;
use crate::time::Instant;

/// A clock that the test moves on, ns. It never sleeps: a wait or a pacer of the test's stands in.
#[derive(Clone, Copy)]
pub(crate) struct Now<'c>(pub(crate) &'c Cell<u64>);

impl Clock for Now<'_> {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.0.get())
    }
    fn poll(&mut self) -> Instant {
        self.now()
    }
    fn sleep_until(&mut self, _: Instant) {
        panic!("nothing here sleeps by this clock")
    }
    fn wake(&mut self) -> Instant {
        self.now()
    }
    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        Some(at)
    }
    fn relax(&mut self) {}
}

/// A linear congruential generator: the same numbers from the same seed on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number in [0, n); n is not 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % n
    }

    /// A number in [−n, n].
    pub(crate) fn within(&mut self, n: i64) -> i64 {
        self.below(2 * n.unsigned_abs() + 1).cast_signed() - n
    }
}
