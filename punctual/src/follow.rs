//! Releases on the time of another clock than CLOCK_MONOTONIC: TAI, the time of day, PTP, a bus.
//!
//! For loops whose releases have to lie on that clock's timescale. A thread reads the reference
//! beside CLOCK_MONOTONIC and steers a map from one to the other ([`punctual_core::follow`]);
//! [`Follower::clock`] is a clock on the reference's time, for a loop or an executive. No period is
//! longer or shorter than the limit allows. Steps and stops of the reference are counted. A clock
//! that the system does not have, a bus's or a sound card's, is read by a
//! [callback](Reference::Callback).
//!
//! ```
//! use punctual::Clock;
//! use punctual::follow::{Follow, Reference};
//!
//! let follower = Follow::new(Reference::Tai).start()?;
//! let mut clock = follower.clock();
//! // Nanoseconds since 1970, not since the machine started.
//! assert!(clock.now().as_ns() > 1_000_000_000_000_000_000);
//! assert_eq!(follower.status().steps, 0);
//! # Ok::<(), punctual::Error>(())
//! ```

mod error;
mod follower;
mod ptp;
mod reference;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use punctual_core::follow::Servo;
pub use punctual_core::follow::{ClockReading, Last, ServoStatus, Settings};
use punctual_core::time::{Instant, Span};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::fork::Origin;

use crate::error::Error;
use crate::spawn;
use follower::Common;

pub(crate) use error::FollowError;
pub use follower::{FollowedClock, Follower};
#[doc(hidden)]
pub use ptp::PtpClock;
pub use reference::Reference;

/// How often the first reading is tried.
const TRIES: usize = 5;
/// How many readings determine the rate before the map is used, and the time between them.
const FIRST: usize = 16;
const FIRST_EVERY: Span = Span::from_ms(5);

/// How a reference is followed.
#[derive(Debug)]
pub struct Follow {
    reference: Reference,
    settings: Settings,
    every: Span,
    lead: Span,
    cpus: CpuMask,
}

impl Follow {
    /// Follows this reference with a reading every half second, and corrects by at most 100 parts
    /// in a million. The defaults suit loops with periods up to 100 ms.
    ///
    /// # Real-time: setup only
    pub fn new(reference: Reference) -> Self {
        let (every, lead) = (Span::from_ms(500), Span::from_ms(100));
        Self { reference, settings: Settings::default(), every, lead, cpus: CpuMask::EMPTY }
    }

    /// Sets the limit of the rate correction, the threshold of a step, and the period.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the time between two readings, at least a millisecond, and how long before it takes
    /// effect a correction is published. `lead` must be at least the longest period of all loops
    /// on this clock, and shorter than `every`.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn every(mut self, every: Span, lead: Span) -> Self {
        (self.every, self.lead) = (every, lead);
        self
    }

    /// Sets the CPUs on which the reading thread runs, where the kernel permits it [default: any].
    /// A driver may keep its CPU busy for some microseconds during each reading.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn cpus(mut self, cpus: impl IntoIterator<Item = u32>) -> Self {
        self.cpus = CpuMask::EMPTY;
        cpus.into_iter().for_each(|cpu| self.cpus.insert(cpu));
        self
    }

    /// Reads the reference for the first time, determines its rate from some more readings (80 ms),
    /// and starts the thread that goes on reading it.
    ///
    /// # Errors
    /// A setting out of range; the reference cannot be read; the thread cannot be started.
    ///
    /// # Real-time: setup only
    pub fn start(mut self) -> Result<Follower, Error> {
        self.check()?;
        let Some(first) = (0..TRIES).find_map(|_| self.reference.read()) else {
            return Err(FollowError::Unreadable(format!("{:?}", self.reference)).into());
        };
        let mut servo = Servo::new(self.settings, first);
        for _ in 1..FIRST {
            pause(FIRST_EVERY);
            if let Some(reading) = self.reference.read() {
                servo.follow(reading, reading.monotonic);
            }
        }
        servo.begin();
        let common = Arc::new(Common::new(self.settings));
        common.shared.publish(&servo);
        let (theirs, origin) = (Arc::clone(&common), Origin::here());
        let run = move || {
            if self.cpus != CpuMask::EMPTY {
                let _anywhere = affinity::set(0, &self.cpus);
            }
            let mut next = monotonic() + self.every;
            while theirs.nap(next) {
                next = next.max(monotonic()) + self.every;
                match origin.callback(|| self.reference.read()) {
                    Some(reading) => theirs.follow(&mut servo, reading, self.lead),
                    None => theirs.unread(),
                }
            }
        };
        let thread = spawn::plain("punctual-follow", run).map_err(FollowError::Thread)?;
        Ok(Follower::new(common, thread))
    }

    fn check(&self) -> Result<(), FollowError> {
        let Self { settings, every, lead, .. } = *self;
        if every < error::EVERY_MIN {
            return Err(FollowError::Every(every));
        }
        if lead < Span::ZERO || lead >= every {
            return Err(FollowError::Lead(lead, every));
        }
        let in_range = (0..=error::LIMIT_MAX_PPB).contains(&settings.limit_ppb)
            && settings.step >= Span::ZERO
            && settings.period_ns != Some(0);
        if in_range { Ok(()) } else { Err(FollowError::Settings(settings)) }
    }
}

fn monotonic() -> Instant {
    Instant::from_ns(now_ns(ClockId::Monotonic))
}

/// Sleeps for this time, also when signals arrive.
fn pause(span: Span) {
    let until = monotonic() + span;
    while monotonic() < until {
        let _interrupted = sleep_until_ns(until.as_ns());
    }
}
