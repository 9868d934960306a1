//! The clocks that a grid can follow, read beside CLOCK_MONOTONIC.
//!
//! For the thread that follows. May make system calls, which is why no loop reads them itself.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use punctual_core::follow::Reading;
use punctual_core::time::{Instant, Span};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::ptp::{self, How, Sample};

/// Readings of which the one in the narrowest bracket counts.
const READINGS: usize = 10;
/// CLOCK_REALTIME must not move against CLOCK_MONOTONIC by more than this while a PTP clock is
/// read, ns.
const STEADY_NS: u64 = 1_000;

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

/// A PTP hardware clock, `/dev/ptpN`.
#[derive(Debug)]
pub struct PtpClock {
    device: File,
    how: How,
}

impl PtpClock {
    /// Opens a device, and finds out how it can be read best.
    ///
    /// # Errors
    /// What the kernel says: that there is no such device, or that it is no PTP clock.
    ///
    /// # Real-time: setup only
    pub fn open(path: &Path) -> io::Result<Self> {
        let device = File::open(path)?;
        let mut why = io::Error::other("no way to read it");
        for how in How::ALL {
            match ptp::read(device.as_raw_fd(), how) {
                Ok(_) => return Ok(Self { device, how }),
                Err(errno) => why = io::Error::from_raw_os_error(errno.0),
            }
        }
        Err(why)
    }

    /// How it is read.
    ///
    /// # Real-time: setup only
    pub fn how(&self) -> How {
        self.how
    }

    fn read(&self) -> Option<Reading> {
        let offset = || {
            let (before, realtime, width) = bracket(ClockId::Realtime);
            (realtime.wrapping_sub(before), width)
        };
        let (ahead, _) = offset();
        let sample = ptp::read(self.device.as_raw_fd(), self.how).ok()?;
        let (after, width) = offset();
        reading(sample, ahead, after, width)
    }
}

/// A sample on CLOCK_MONOTONIC; `ahead` and `after` are how far CLOCK_REALTIME was ahead of that
/// before and after it. `None` when it was set in between.
fn reading(sample: Sample, ahead: u64, after: u64, width: u64) -> Option<Reading> {
    let moved = after.wrapping_sub(ahead).cast_signed().unsigned_abs();
    let wide = sample.after_ns.checked_sub(sample.before_ns)?;
    if moved > STEADY_NS + width {
        return None;
    }
    let middle = sample.before_ns + wide / 2;
    Some(Reading {
        monotonic: Instant::from_ns(middle.wrapping_sub(after)),
        reference: Instant::from_ns(sample.device_ns),
        width: span(wide.saturating_add(width)),
    })
}

/// CLOCK_MONOTONIC, another clock, and the width of the bracket, ns: the narrowest of some.
fn bracket(id: ClockId) -> (u64, u64, u64) {
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

fn span(ns: u64) -> Span {
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
    fn a_ptp_sample_is_placed_on_the_monotonic_clock() {
        let sample = Sample { before_ns: 5_000_400, device_ns: 77, after_ns: 5_000_600 };
        let placed = reading(sample, 5_000_000, 5_000_010, 20).expect("steady");
        assert_eq!(placed.monotonic, Instant::from_ns(490));
        assert_eq!(placed.reference, Instant::from_ns(77));
        assert_eq!(placed.width, Span::from_ns(220));
        assert_eq!(reading(sample, 5_000_000, 5_001_021, 20), None, "it was set in between");
        let upside_down = Sample { before_ns: 9, device_ns: 1, after_ns: 8 };
        assert_eq!(reading(upside_down, 0, 0, 0), None);
    }

    #[test]
    fn the_time_of_day_is_read_beside_the_monotonic_clock() {
        for mut reference in [Reference::Tai, Reference::Realtime] {
            let before = now_ns(ClockId::Monotonic);
            let reading = reference.read().expect("always there");
            assert!((before..=now_ns(ClockId::Monotonic)).contains(&reading.monotonic.as_ns()));
            assert!(reading.reference > reading.monotonic, "1970 was before the machine started");
        }
    }

    #[test]
    fn what_is_no_ptp_clock_is_refused() {
        let missing = PtpClock::open(Path::new("/dev/no-such-ptp")).expect_err("not there");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(PtpClock::open(Path::new("/dev/null")).is_err());
    }
}
