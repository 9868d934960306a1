//! The request to stop a loop, and its instant.
//!
//! For loops, which end at the first look that finds it set: a sleeping one at its next wake, which
//! may be long after the request. Releases after the request are no releases of the run. Nothing
//! but atomic numbers, so that a signal handler may request a stop too.

use core::sync::atomic::{AtomicBool, Ordering, fence};

use crate::atomic::AtomicU64;
use crate::clock::Clock;
use crate::time::Instant;

/// A request to stop a loop.
pub trait StopRequest {
    /// The flag that waits look at.
    ///
    /// # Real-time: in loop
    fn flag(&self) -> &AtomicBool;

    /// The instant of the first request, on CLOCK_MONOTONIC; `None` where it was not, or where that
    /// is not known.
    ///
    /// # Real-time: in loop
    fn requested(&self) -> Option<Instant>;

    /// Requests it at `at`, an instant of CLOCK_MONOTONIC.
    ///
    /// # Real-time: in loop
    fn request(&self, at: Instant);

    /// The instant of the first request, on `clock`, and no later than that shows now; `None` as
    /// for [`StopRequest::requested`], and on a clock without a relation to CLOCK_MONOTONIC.
    ///
    /// # Real-time: in loop
    #[cold]
    fn requested_on(&self, clock: &mut impl Clock) -> Option<Instant> {
        let at = clock.at_monotonic(self.requested()?)?;
        Some(at.min(clock.now()))
    }
}

/// A flag alone, whose instant nobody knows: a stop that is found after a sleep is taken for one
/// from before the release that was slept for.
impl StopRequest for AtomicBool {
    #[inline]
    fn flag(&self) -> &AtomicBool {
        self
    }

    fn requested(&self) -> Option<Instant> {
        None
    }

    fn request(&self, _: Instant) {
        self.store(true, Ordering::Relaxed);
    }
}

/// A flag with the instant at which it was set.
#[derive(Debug)]
pub struct StopFlag {
    set: AtomicBool,
    /// The earliest request, ns; the largest number before there is one.
    at_ns: AtomicU64,
}

impl Default for StopFlag {
    fn default() -> Self {
        Self { set: AtomicBool::new(false), at_ns: AtomicU64::new(u64::MAX) }
    }
}

impl StopFlag {
    /// Its two words, for a signal handler that is given nothing else: the flag, and the instant,
    /// ns, of which the earliest counts. The instant is written before the flag, which releases it.
    ///
    /// # Real-time: in loop
    pub fn words(&self) -> (&AtomicBool, &AtomicU64) {
        (&self.set, &self.at_ns)
    }
}

impl StopRequest for StopFlag {
    #[inline]
    fn flag(&self) -> &AtomicBool {
        &self.set
    }

    fn requested(&self) -> Option<Instant> {
        if !self.set.load(Ordering::Relaxed) {
            return None;
        }
        // Who sees the flag sees an instant.
        fence(Ordering::Acquire);
        Some(Instant::from_ns(self.at_ns.load(Ordering::Relaxed)))
    }

    fn request(&self, at: Instant) {
        // Of several at a time the earliest counts.
        self.at_ns.fetch_min(at.as_ns(), Ordering::Relaxed);
        self.set.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_request_counts() {
        let stop = StopFlag::default();
        assert_eq!((stop.requested(), stop.flag().load(Ordering::Relaxed)), (None, false));
        for at in [50, 30, 40] {
            stop.request(Instant::from_ns(at));
            assert!(stop.flag().load(Ordering::Relaxed));
        }
        assert_eq!(stop.requested(), Some(Instant::from_ns(30)));
        let flag = AtomicBool::new(false);
        flag.request(Instant::from_ns(30));
        assert_eq!((flag.requested(), flag.load(Ordering::Relaxed)), (None, true));
    }
}
