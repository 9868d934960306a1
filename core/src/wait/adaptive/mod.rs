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
mod learned;
mod learner;
mod levels;

use core::sync::atomic::{AtomicBool, Ordering};

use super::spin::Spinner;
use super::{Stalls, Wait, WaitStatus, WakePlan};
use crate::clock::Clock;
use crate::time::{Instant, Period, Span};

pub use learned::{LearnPhase, Learned};
use learner::Learner;

/// What a wait is to reach, and at what price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The distance of two releases.
    pub period: Period,
    /// The share of wakes that may be late, in (0, 1).
    pub late: f64,
    /// The share of the CPU that waiting may take, in (0, 1].
    pub budget: f64,
    /// CPU time of one sleep and wake, the kernel's part included.
    pub wake_cost: Span,
}

impl Target {
    /// One wake in a thousand late, a tenth of the CPU, 3 µs a wake.
    ///
    /// # Real-time: setup only
    pub const fn of(period: Period) -> Self {
        Self { period, late: 1e-3, budget: 0.1, wake_cost: Span::from_us(3) }
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

impl WakePlan {
    /// When the next sleep ends, from `now` on; `None` when the margin has begun.
    ///
    /// # Real-time: in loop
    #[inline]
    fn next(self, now: Instant, release: Instant) -> Option<Instant> {
        let last = release.as_ns().saturating_sub(self.margin_ns);
        let away = last.checked_sub(now.as_ns()).filter(|&ns| ns > 0)?;
        if self.hop_ns == 0 {
            return Some(Instant::from_ns(last));
        }
        // A first hop of less than a quarter is joined to the one after it.
        let hops = (away - away.min(self.hop_ns / 4)) / self.hop_ns;
        Some(Instant::from_ns(last - hops.min(u64::from(self.hops)) * self.hop_ns))
    }
}

impl Adaptive {
    /// A wait without knowledge of the machine: it learns in its first two seconds or so.
    ///
    /// # Real-time: setup only
    pub fn new(aim: Target) -> Self {
        Self { learner: Learner::new(aim), spinner: Spinner::default(), seen: None }
    }

    /// About how long it learns: before that its wakes are not representative.
    ///
    /// # Real-time: setup only
    pub fn calibration(period: Period) -> Span {
        levels::calibration(period)
    }
}

impl<C: Clock> Wait<C> for Adaptive {
    fn near(&mut self, clock: &mut C, release: Instant, stop: &AtomicBool) -> Option<Instant> {
        if let Some(late_ns) = self.seen.take() {
            self.learner.learn(late_ns);
        }
        let approach = self.learner.approach();
        let last = release - Span::from_ns(i64::try_from(approach.margin_ns).unwrap_or(i64::MAX));
        let mut now = clock.poll();
        let mut slept = false;
        while let Some(at) = approach.next(now, release) {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            clock.sleep_until(at);
            now = clock.wake();
            slept = true;
        }
        if slept {
            self.seen = Some((now - last).as_ns().max(0).unsigned_abs());
        } else {
            // Nothing was slept, so nothing is anchored yet.
            now = clock.wake();
        }
        Some(now)
    }

    #[inline]
    fn until(&mut self, clock: &mut C, release: Instant, stop: &AtomicBool) -> Option<Instant> {
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
        WaitStatus { plan: self.learner.approach(), learned: Some(self.learner.learned()) }
    }
}

#[cfg(test)]
mod tests;
