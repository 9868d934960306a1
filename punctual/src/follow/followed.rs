//! A clock on the reference's timescale that keeps its follower alive.
//!
//! For loops and executives that outlive the scope in which the follower was started, behind the C
//! API above all. As [`Following`](super::Following), but shared instead of borrowed.

use std::sync::Arc;

use punctual_core::clock::Clock;
use punctual_core::follow::Map;
use punctual_core::time::Instant;

use super::Follower;

/// A clock that runs on the map of a follower, and holds a share in it: the reference is followed
/// until the last share is dropped.
#[derive(Clone, Debug)]
pub struct FollowedClock<C> {
    clock: C,
    follower: Arc<Follower>,
    edition: u64,
    map: Map,
}

impl<C: Clock> FollowedClock<C> {
    /// This clock on the timescale of the follower's reference.
    ///
    /// # Real-time: setup only
    pub fn new(clock: C, follower: &Arc<Follower>) -> Self {
        let shared = &follower.common.shared;
        loop {
            let edition = shared.turn();
            if let Some(view) = shared.view() {
                return Self { clock, follower: Arc::clone(follower), edition, map: view.map };
            }
            std::hint::spin_loop();
        }
    }

    /// Takes a new map where there is one.
    #[inline]
    fn refresh(&mut self) {
        let shared = &self.follower.common.shared;
        let edition = shared.turn();
        if edition != self.edition
            && let Some(view) = shared.view()
        {
            (self.edition, self.map) = (edition, view.map);
        }
    }
}

impl<C: Clock> Clock for FollowedClock<C> {
    #[inline]
    fn now(&mut self) -> Instant {
        self.map.grid(self.clock.now())
    }

    #[inline]
    fn poll(&mut self) -> Instant {
        self.map.grid(self.clock.poll())
    }

    #[inline]
    fn sleep_until(&mut self, at: Instant) {
        self.refresh();
        self.clock.sleep_until(self.map.monotonic(at));
    }

    #[inline]
    fn wake(&mut self) -> Instant {
        let wake = self.clock.wake();
        self.refresh();
        self.map.grid(wake)
    }

    #[inline]
    fn relax(&mut self) {
        self.clock.relax();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::Vdso;
    use crate::follow::{Follow, Reference};

    #[test]
    fn it_is_on_the_references_time_also_when_its_maker_let_go() {
        let follower = Arc::new(Follow::new(Reference::Tai).start().expect("it can be read"));
        let mut clock = FollowedClock::new(Vdso, &follower);
        drop(follower);
        let (before, monotonic) = (clock.now(), Vdso.now());
        assert!(before > monotonic, "seconds since 1970, not since the machine started");
        let until = before + punctual_core::time::Span::from_ms(1);
        while clock.wake() < until {
            clock.sleep_until(until);
        }
        assert!(clock.poll() >= until);
    }
}
