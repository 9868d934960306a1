//! The clocks that a grid can follow, read beside CLOCK_MONOTONIC.
//!
//! For the thread that follows. May make system calls, which is why no loop reads them itself.

use std::fmt;

use punctual_core::follow::Reading;
use punctual_core::time::{Instant, Span};
use punctual_os::clock::{ClockId, now_ns};

use super::ptp::PtpClock;

/// Readings of which the one in the narrowest bracket counts.
const READINGS: usize = 10;

/// A clock that a grid can follow.
pub enum Reference {
    /// CLOCK_TAI: the time of day without leap seconds, as far as somebody set it.
    Tai,
    /// CLOCK_REALTIME: the time of day.
    Realtime,
    /// A PTP hardware clock.
    Ptp(PtpClock),
    /// Whatever the caller reads: a bus's distributed clocks, a sound card. `None` where it cannot
    /// be read now.
    Callback(Box<dyn FnMut() -> Option<Reading> + Send>),
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tai => f.write_str("Tai"),
            Self::Realtime => f.write_str("Realtime"),
            Self::Ptp(clock) => clock.fmt(f),
            Self::Callback(_) => f.write_str("Callback"),
        }
    }
}

/// CLOCK_MONOTONIC, another clock, and the width of the bracket, ns: the narrowest of some.
pub(super) fn bracket(id: ClockId) -> (u64, u64, u64) {
    let read = || {
        let before = now_ns(ClockId::Monotonic);
        let other = now_ns(id);
        let width = now_ns(ClockId::Monotonic).saturating_sub(before);
        (before + width / 2, other, width)
    };
    (1..READINGS)
        .map(|_| read())
        .fold(read(), |best, next| if next.2 < best.2 { next } else { best })
}

pub(super) fn span(ns: u64) -> Span {
    Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

impl Reference {
    /// Both clocks at one moment; `None` where the reference could not be read.
    ///
    /// # Real-time: setup only
    pub fn read(&mut self) -> Option<Reading> {
        let system = |id| {
            let (monotonic, reference, width) = bracket(id);
            let (monotonic, reference) = (Instant::from_ns(monotonic), Instant::from_ns(reference));
            Some(Reading { monotonic, reference, width: span(width) })
        };
        match self {
            Self::Tai => system(ClockId::Tai),
            Self::Realtime => system(ClockId::Realtime),
            Self::Ptp(clock) => clock.read(),
            Self::Callback(read) => read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_is_read_beside_the_monotonic_clock() {
        for mut reference in [Reference::Tai, Reference::Realtime] {
            let before = now_ns(ClockId::Monotonic);
            let reading = reference.read().expect("always there");
            assert!((before..=now_ns(ClockId::Monotonic)).contains(&reading.monotonic.as_ns()));
            assert!(reading.reference > reading.monotonic, "1970 was before the machine started");
        }
    }
}
