//! The rate of CLOCK_MONOTONIC over CLOCK_MONOTONIC_RAW, which is not steered.
//!
//! For experiments, before and after a run: NTP slews the clock that releases are on, by up to
//! 500 ppm (adjtimex) or 8 % (chrony). Judges the rate only; no stamp is taken with it.

use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns};

/// Readings of which the one in the narrowest bracket counts.
const READINGS: usize = 50;

/// One reading of CLOCK_MONOTONIC_RAW between two of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    monotonic_ns: u64,
    raw_ns: u64,
    width_ns: u64,
}

/// The rate of CLOCK_MONOTONIC over that of CLOCK_MONOTONIC_RAW.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slew {
    /// (rate of CLOCK_MONOTONIC / rate of CLOCK_MONOTONIC_RAW − 1)·10⁹.
    pub ppb: f64,
    /// Off by at most this, in parts per billion.
    pub bound_ppb: f64,
    /// The time that it was measured over.
    pub over: Span,
}

impl Reading {
    /// Reads both clocks.
    ///
    /// # Real-time: setup only
    pub fn take() -> Self {
        let read = || {
            let before = now_ns(ClockId::Monotonic);
            let raw_ns = now_ns(ClockId::MonotonicRaw);
            let width_ns = now_ns(ClockId::Monotonic) - before;
            Self { monotonic_ns: before + width_ns / 2, raw_ns, width_ns }
        };
        (1..READINGS)
            .map(|_| read())
            .fold(read(), |best, next| if next.width_ns < best.width_ns { next } else { best })
    }

    /// The slew since `self`; `None` when no time has passed.
    ///
    /// # Real-time: setup only
    pub fn until(&self, later: &Self) -> Option<Slew> {
        let monotonic_ns = later.monotonic_ns.checked_sub(self.monotonic_ns)?;
        let raw_ns = later.raw_ns.checked_sub(self.raw_ns).filter(|&ns| ns > 0)?;
        // Differences before the division: the ratio of two large numbers would lose them.
        let difference_ns = monotonic_ns.cast_signed() - raw_ns.cast_signed();
        Some(Slew {
            ppb: difference_ns as f64 / raw_ns as f64 * 1e9,
            bound_ppb: (self.width_ns + later.width_ns) as f64 / 2.0 / raw_ns as f64 * 1e9,
            over: Span::from_ns(i64::try_from(raw_ns).unwrap_or(i64::MAX)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slew_and_its_bound_follow_from_two_readings() {
        let first = Reading { monotonic_ns: 1_000, raw_ns: 500, width_ns: 60 };
        let later = Reading { monotonic_ns: 1_000_051_000, raw_ns: 1_000_000_500, width_ns: 40 };
        let slew = first.until(&later).expect("a second has passed");
        assert!((slew.ppb - 50_000.0).abs() < 1e-3, "{slew:?}");
        assert!((slew.bound_ppb - 50.0).abs() < 1e-3, "{slew:?}");
        assert_eq!(first.until(&first), None);
        assert_eq!(later.until(&first), None);
    }

    #[test]
    fn this_machines_clock_is_not_ten_percent_off() {
        let first = Reading::take();
        punctual_os::clock::sleep_until_ns(first.monotonic_ns + 5_000_000).expect("no signal");
        let slew = first.until(&Reading::take()).expect("5 ms have passed");
        assert!(slew.ppb.abs() < 1e8 + slew.bound_ppb, "{slew:?}");
    }
}
