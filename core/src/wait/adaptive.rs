//! A wait that learns: how early to wake, and whether to sleep in hops.
//!
//! For the executive, the library's default. A CPU, or the host of a virtual one, that sank into
//! deep idle comes back late. Short hops keep it from that, or one hop just before the release
//! makes up for it; then a small margin covers what a warm wake is late. Which of them pays differs
//! from machine to machine, so both are learned, under a CPU budget, for a given share of late
//! wakes. No decision rests only on its own consequences: every sleep that ends the approach is a
//! sample whether it was late or not, the past fades, and a cheaper approach is tried again now and
//! then.

mod bins;
mod choice;
mod learned;
mod learner;
mod levels;
mod trial;

use core::sync::atomic::AtomicBool;

use super::spin::Spinner;
use super::{Stalls, Wait, WaitStatus};
use crate::clock::Clock;
use crate::time::{Instant, Period, Span};

pub use learned::{LearnPhase, Learned};
use learner::Learner;

/// What a wait is to reach, and at what price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The distance of two releases.
    pub period: Period,
    /// The share of wakes that may be late, below 1, for the least CPU that this takes; 0 for the
    /// least lateness that the budget pays.
    pub late: f64,
    /// The share of the CPU that waiting may take, in (0, 1].
    pub budget: f64,
    /// CPU time of one sleep and wake, the kernel's part included.
    pub wake_cost: Span,
}

impl Target {
    /// The share of wakes that may be late, by default.
    pub const LATE: f64 = 1e-3;
    /// The share of the CPU that waiting may take, by default.
    pub const BUDGET: f64 = 0.1;

    /// One wake in a thousand late, a tenth of the CPU, 3 µs a wake.
    ///
    /// # Real-time: setup only
    pub const fn of(period: Period) -> Self {
        Self { period, late: Self::LATE, budget: Self::BUDGET, wake_cost: Span::from_us(3) }
    }
}

/// A wait that learns its hops and its margin.
#[derive(Clone, Debug)]
pub struct Adaptive {
    learner: Learner,
    spinner: Spinner,
    /// How late the last final sleep was, to be learned from when there is time: ns.
    seen: Option<u64>,
}

impl Adaptive {
    /// A wait without knowledge of the machine: it learns in its first two seconds or so.
    ///
    /// # Real-time: setup only
    pub fn new(aim: Target) -> Self {
        Self { learner: Learner::new(aim), spinner: Spinner::default(), seen: None }
    }

    /// The same with what another start learned of this machine: followed at once, checked, and
    /// learned anew where it does not hold. What fits no approach or not this period is ignored.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn resume(mut self, known: &Learned) -> Self {
        self.learner = self.learner.resume(known);
        self
    }

    /// About how long it learns: before that its wakes are not representative.
    ///
    /// # Real-time: setup only
    pub fn calibration(period: Period) -> Span {
        levels::calibration(period)
    }
}

impl Wait for Adaptive {
    fn near<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        if let Some(late_ns) = self.seen.take() {
            self.learner.learn(late_ns);
        }
        let (now, late) = self.learner.approach().sleep(clock, release, stop)?;
        self.seen = late.map(|late| late.as_ns().unsigned_abs());
        Some(now)
    }

    #[inline]
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let now = self.near(clock, release, stop)?;
        if now >= release {
            return Some(now);
        }
        self.spinner.spin(clock, now, release, stop)
    }

    fn take_stalls(&mut self) -> Stalls {
        core::mem::take(&mut self.spinner.stalls)
    }

    fn status(&self) -> WaitStatus {
        let learned = Some(self.learner.learned());
        WaitStatus { plan: self.learner.approach(), learned, paused: self.spinner.paused }
    }
}

#[cfg(test)]
mod tests;
