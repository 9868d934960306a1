//! A clock on the grid's timescale: the machine's, seen through the map.
//!
//! For executives that follow. All instants are the grid's; sleeps are on CLOCK_MONOTONIC, which
//! never steps, so that a reference that does can neither end a sleep early nor prolong it.

use super::map::Map;
use super::shared::Shared;
use crate::clock::Clock;
use crate::time::Instant;

/// A clock that runs on a shared map, which it borrows or has a share in.
#[derive(Clone, Debug)]
pub struct Following<S, C> {
    clock: C,
    shared: S,
    turn: u64,
    map: Map,
}

impl<S: AsRef<Shared>, C: Clock> Following<S, C> {
    /// The machine's clock through the map that is shared; `None` where none is yet.
    ///
    /// # Real-time: setup only
    pub fn new(clock: C, shared: S) -> Option<Self> {
        let turn = shared.as_ref().turn();
        let map = shared.as_ref().view()?.map;
        Some(Self { clock, shared, turn, map })
    }

    /// The map that it runs on.
    ///
    /// # Real-time: in loop
    pub fn map(&self) -> Map {
        self.map
    }

    /// The clock beneath.
    ///
    /// # Real-time: setup only
    pub fn clock_mut(&mut self) -> &mut C {
        &mut self.clock
    }

    /// Takes a new map where there is one. Bends lie ahead when they are published, so that time is
    /// continuous for readers that look before.
    #[inline]
    fn refresh(&mut self) {
        let shared = self.shared.as_ref();
        let turn = shared.turn();
        if turn != self.turn
            && let Some(view) = shared.view()
        {
            (self.turn, self.map) = (turn, view.map);
        }
    }
}

impl<S: AsRef<Shared>, C: Clock> Clock for Following<S, C> {
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

    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        Some(self.map.grid(self.clock.at_monotonic(at)?))
    }

    #[inline]
    fn relax(&mut self) {
        self.clock.relax();
    }

    #[inline]
    fn pause_until(&mut self, at: Instant) -> bool {
        self.clock.pause_until(self.map.monotonic(at))
    }
}
