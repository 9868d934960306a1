//! Instants and spans of time on one timescale, as newtypes.
//!
//! For every border at which a number of nanoseconds would otherwise travel without its unit.
//! Touches nothing; never reads a clock (see `clock`), never rounds silently.
//!
//! The timescale is CLOCK_MONOTONIC throughout: an [`Instant`] is nanoseconds since that clock's
//! zero. A [`Span`] is a signed difference of two instants. A [`Period`] is an exact fraction of
//! nanoseconds.

mod period;

use core::fmt;
use core::ops::{Add, Sub};

pub use period::Period;

/// An instant on CLOCK_MONOTONIC, in nanoseconds since its zero. Range: 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A signed span of time in nanoseconds. Range: ± 292 years; arithmetic saturates at its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Instant {
    /// The instant `ns` nanoseconds after the zero of CLOCK_MONOTONIC.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the zero of CLOCK_MONOTONIC.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0
    }
}

impl Span {
    /// The empty span.
    pub const ZERO: Self = Self(0);

    /// A span of `ns` nanoseconds.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn from_ns(ns: i64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds, saturating.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn from_us(us: i64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds, saturating.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// Nanoseconds, signed.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn as_ns(self) -> i64 {
        self.0
    }
}

impl Sub for Instant {
    type Output = Span;

    /// The signed span from `earlier` to `self`, saturating at the ends of [`Span`].
    #[inline]
    fn sub(self, earlier: Self) -> Span {
        if self.0 >= earlier.0 {
            Span(i64::try_from(self.0 - earlier.0).unwrap_or(i64::MAX))
        } else {
            Span(i64::try_from(earlier.0 - self.0).map_or(i64::MIN, |ns| -ns))
        }
    }
}

impl Add<Span> for Instant {
    type Output = Self;

    /// The instant `span` later (earlier when negative), saturating at the clock's ends.
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add_signed(span.0))
    }
}

impl Sub<Span> for Instant {
    type Output = Self;

    #[inline]
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_add_signed(span.0.saturating_neg()))
    }
}

impl fmt::Display for Span {
    /// Three significant figures in the unit that fits: `72 ns`, `7.61 µs`, `1.30 ms`, `2.00 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let (unit_ns, unit) = match magnitude {
            0..=999 => return write!(f, "{} ns", self.0),
            1_000..=999_499 => (1_000, "µs"),
            999_500..=999_499_999 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        // Integer arithmetic in thousandths of the unit, so that this needs no floating point.
        let decimals = match magnitude / unit_ns {
            0..=9 => 2,
            10..=99 => 1,
            _ => 0,
        };
        let scale = 10u64.pow(decimals);
        let rounded = (u128::from(magnitude) * u128::from(scale) + u128::from(unit_ns) / 2)
            / u128::from(unit_ns);
        let (whole, part) = (rounded / u128::from(scale), rounded % u128::from(scale));
        let sign = if self.0 < 0 { "-" } else { "" };
        match decimals {
            0 => write!(f, "{sign}{whole} {unit}"),
            _ => write!(f, "{sign}{whole}.{part:0width$} {unit}", width = decimals as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_signed_and_saturates() {
        let (early, late) = (Instant::from_ns(10), Instant::from_ns(25));
        assert_eq!((late - early).as_ns(), 15);
        assert_eq!((early - late).as_ns(), -15);
        assert_eq!((Instant::from_ns(u64::MAX) - Instant::from_ns(0)).as_ns(), i64::MAX);
        assert_eq!((Instant::from_ns(0) - Instant::from_ns(u64::MAX)).as_ns(), i64::MIN);
    }

    #[test]
    fn shifting_saturates_at_the_clocks_ends() {
        assert_eq!(Instant::from_ns(5) - Span::from_ns(9), Instant::from_ns(0));
        assert_eq!(Instant::from_ns(u64::MAX) + Span::from_ns(9), Instant::from_ns(u64::MAX));
    }

    #[test]
    fn a_span_shows_three_figures_and_its_unit() {
        let shown = |ns| std::format!("{}", Span::from_ns(ns));
        assert_eq!(shown(72), "72 ns");
        assert_eq!(shown(999), "999 ns");
        assert_eq!(shown(7_609), "7.61 µs");
        assert_eq!(shown(-12_345), "-12.3 µs");
        assert_eq!(shown(999_499), "999 µs");
        assert_eq!(shown(999_500), "1.00 ms");
        assert_eq!(shown(1_300_000), "1.30 ms");
        assert_eq!(shown(2_000_000_000), "2.00 s");
        assert_eq!(shown(9_996), "10.00 µs");
    }
}
