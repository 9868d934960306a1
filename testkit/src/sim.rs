//! A simulated clock: time moves only when it is slept on or polled, by a script.
//!
//! For every test of what a loop runs. Deterministic; never reads the machine's clock.

use std::cell::Cell;

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Span};

/// A disturbance of one sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepNoise {
    /// The sleep comes back this much after its instant.
    Late(Span),
    /// A signal cuts the sleep short: it comes back this much before its instant.
    Interrupted(Span),
}

/// A clock whose sleeps follow a script; after its end, each comes back on time.
#[derive(Clone, Debug)]
pub struct SimClock<I> {
    /// Now.
    pub now: Instant,
    /// The disturbance of each sleep that really sleeps, in order.
    pub script: I,
    /// The cost of a poll: 1 ns at least, or a spin would never end.
    pub poll_cost: Span,
    /// The number of sleeps on it.
    pub sleeps: u64,
}

impl<I: Iterator<Item = SleepNoise>> SimClock<I> {
    /// A clock at `now` that follows `script`; a poll costs 20 ns.
    pub fn new(now: Instant, script: I) -> Self {
        Self { now, script, poll_cost: Span::from_ns(20), sleeps: 0 }
    }
}

impl<I: Iterator<Item = SleepNoise>> Clock for SimClock<I> {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn poll(&mut self) -> Instant {
        self.now += self.poll_cost;
        self.now
    }

    fn sleep_until(&mut self, at: Instant) {
        self.sleeps += 1;
        if at <= self.now {
            return;
        }
        self.now = match self.script.next().unwrap_or(SleepNoise::Late(Span::ZERO)) {
            SleepNoise::Late(by) => at + by,
            SleepNoise::Interrupted(before) => (at - before).max(self.now),
        };
    }

    fn wake(&mut self) -> Instant {
        self.now
    }

    fn relax(&mut self) {}
}

/// A clock whose time, ns, is a cell that the test holds too: it stands still but for what the test
/// adds and for sleeps, which end on time. A spin on it never ends.
#[derive(Clone, Copy, Debug)]
pub struct HeldClock<'c>(pub &'c Cell<u64>);

impl Clock for HeldClock<'_> {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.0.get())
    }

    fn poll(&mut self) -> Instant {
        self.now()
    }

    fn sleep_until(&mut self, at: Instant) {
        self.0.set(self.0.get().max(at.as_ns()));
    }

    fn wake(&mut self) -> Instant {
        self.now()
    }

    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        Some(at)
    }

    fn relax(&mut self) {}
}
