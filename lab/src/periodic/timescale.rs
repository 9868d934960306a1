//! What a loop's releases lie on: CLOCK_MONOTONIC, or the time of a clock that is followed.
//!
//! For the streams. Pure but for the clocks themselves.

use punctual::clocks::MachineClock;
use punctual::follow::FollowedClock;
use punctual_core::clock::Clock;
use punctual_core::time::Instant;

/// The clock of a loop. All its instants are on one timescale, which is the grid's.
pub(super) trait Timescale: Clock + Clone + Send {
    /// Takes in what was learned of its rate since it was last used. Between segments.
    fn discipline(&mut self);

    /// An instant of CLOCK_MONOTONIC on this timescale, by what is known of it now.
    fn at(&self, monotonic: Instant) -> Instant;
}

impl Timescale for MachineClock {
    fn discipline(&mut self) {
        Self::discipline(self);
    }

    fn at(&self, monotonic: Instant) -> Instant {
        monotonic
    }
}

impl Timescale for FollowedClock {
    fn discipline(&mut self) {
        self.clock_mut().discipline();
        // A wake takes the latest map, which may have been bent while no loop ran.
        self.wake();
    }

    fn at(&self, monotonic: Instant) -> Instant {
        self.map().grid(monotonic)
    }
}
