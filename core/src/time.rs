//! Instants and spans of time on one timescale, as newtypes.
//!
//! For every border at which a number of nanoseconds would otherwise travel without its unit.
//! Touches nothing; never reads a clock (see `clock`), never rounds silently.
//!
//! The timescale is CLOCK_MONOTONIC throughout: an [`Instant`] is nanoseconds since that clock's
//! zero. A [`Span`] is a signed difference of two instants. A [`Period`] is an exact fraction of
//! nanoseconds.

use core::cmp::Ordering;
use core::fmt;
use core::hash::Hash;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};
use core::time::Duration;

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

    /// A span of so many seconds, to the nearest nanosecond; saturating, and empty for what is no
    /// number.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Self {
        // Half a nanosecond away from zero, for `as` cuts off: core has no rounding of its own.
        let ns = seconds * 1e9;
        Self((ns + if ns < 0.0 { -0.5 } else { 0.5 }) as i64)
    }

    /// Nanoseconds, signed.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn as_ns(self) -> i64 {
        self.0
    }

    /// Seconds, signed: the `dt` of a controller. Exact to 1 ns up to 104 days, as far as 53 bits
    /// of nanoseconds go.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Its length without its sign, saturating.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
}

impl Add for Span {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Neg for Span {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Mul<i64> for Span {
    type Output = Self;

    #[inline]
    fn mul(self, factor: i64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<i64> for Span {
    type Output = Self;

    /// Rounded towards zero.
    ///
    /// # Panics
    /// When the divisor is 0.
    #[inline]
    fn div(self, divisor: i64) -> Self {
        Self(self.0.saturating_div(divisor))
    }
}

impl Sum for Span {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl From<Duration> for Span {
    /// Saturating: what is longer than 292 years is that.
    #[inline]
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// A [`Span`] that is negative is no [`Duration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegativeSpan(Span);

impl fmt::Display for NegativeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a duration is not negative (got {}); take its abs()", self.0)
    }
}

impl core::error::Error for NegativeSpan {}

impl TryFrom<Span> for Duration {
    type Error = NegativeSpan;

    #[inline]
    fn try_from(span: Span) -> Result<Self, NegativeSpan> {
        u64::try_from(span.0).map(Self::from_nanos).map_err(|_| NegativeSpan(span))
    }
}

impl AddAssign<Span> for Instant {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl SubAssign<Span> for Instant {
    #[inline]
    fn sub_assign(&mut self, span: Span) {
        *self = *self - span;
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

/// A period of `num / den` nanoseconds, in lowest terms; from 1 ns to 2⁶² ns (146 years): 3 Hz is
/// 1 000 000 000 / 3 ns, and stays that over any number of cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Period {
    num_ns: u64,
    den: u64,
}

impl Period {
    /// The longest period, ns: a release and the one after it stay within the clock's range.
    pub const MAX_NS: u64 = 1 << 62;
    /// The shortest, 1 ns.
    pub(crate) const NS: Self = Self { num_ns: 1, den: 1 };

    /// A period of `ns` nanoseconds; `None` for 0 and above [`Period::MAX_NS`].
    ///
    /// # Real-time: setup only
    pub const fn from_ns(ns: u64) -> Option<Self> {
        Self::ratio(ns, 1)
    }

    /// The period of `hertz` cycles a second; `None` for 0, and above 10⁹.
    ///
    /// # Real-time: setup only
    pub const fn hz(hertz: u64) -> Option<Self> {
        Self::ratio(1_000_000_000, hertz)
    }

    /// A period of `num_ns / den` nanoseconds; `None` below 1 ns, above [`Period::MAX_NS`] and for
    /// a denominator of 0.
    ///
    /// # Real-time: setup only
    pub const fn ratio(num_ns: u64, den: u64) -> Option<Self> {
        if den == 0 || num_ns / den == 0 || num_ns / den > Self::MAX_NS {
            return None;
        }
        let shared = gcd(num_ns as u128, den as u128) as u64;
        Some(Self { num_ns: num_ns / shared, den: den / shared })
    }

    /// The period of one in `factor` releases, exactly; `None` where that is no period: for 0,
    /// above [`Period::MAX_NS`], and where 64 bits do not hold its fraction.
    ///
    /// # Real-time: setup only
    pub const fn checked_mul(self, factor: u64) -> Option<Self> {
        if factor == 0 {
            return None;
        }
        let shared = gcd(factor as u128, self.den as u128) as u64;
        match self.num_ns.checked_mul(factor / shared) {
            Some(num_ns) => Self::ratio(num_ns, self.den / shared),
            None => None,
        }
    }

    /// The period of `divisor` releases for each of this one, exactly; `None` where that is no
    /// period: for 0, below 1 ns, and where 64 bits do not hold its fraction.
    ///
    /// # Real-time: setup only
    pub const fn checked_div(self, divisor: u64) -> Option<Self> {
        if divisor == 0 {
            return None;
        }
        let shared = gcd(divisor as u128, self.num_ns as u128) as u64;
        match self.den.checked_mul(divisor / shared) {
            Some(den) => Self::ratio(self.num_ns / shared, den),
            None => None,
        }
    }

    /// The numerator, ns.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn num_ns(self) -> u64 {
        self.num_ns
    }

    /// The denominator; 1 for a whole number of nanoseconds.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn den(self) -> u64 {
        self.den
    }

    /// Nanoseconds, rounded down; at least 1.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.num_ns / self.den
    }

    /// Nanoseconds; `None` for a period of no whole number of them.
    #[inline]
    pub(crate) const fn whole_ns(self) -> Option<u64> {
        if self.den == 1 { Some(self.num_ns) } else { None }
    }

    /// As a span, rounded down.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn as_span(self) -> Span {
        // At most 2^62.
        Span::from_ns(self.as_ns().cast_signed())
    }

    /// Nanoseconds, rounded up: the longest distance of two releases.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn longest_ns(self) -> u64 {
        self.num_ns.div_ceil(self.den)
    }

    /// Nanoseconds as a floating-point number, for shares and sums of them.
    ///
    /// # Real-time: setup only
    pub fn as_ns_f64(self) -> f64 {
        self.num_ns as f64 / self.den as f64
    }

    /// Seconds as a floating-point number: the nominal `dt` of a controller.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn as_secs_f64(self) -> f64 {
        self.num_ns as f64 / (self.den as f64 * 1e9)
    }

    /// From release 0 to release `k`, ns: ⌊k·num/den⌋, saturating. Exact at every `k`, so that no
    /// error accumulates.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn offset_ns(self, k: u64) -> u64 {
        if self.den == 1 {
            return k.saturating_mul(self.num_ns);
        }
        let exact = k as u128 * self.num_ns as u128 / self.den as u128;
        if exact > u64::MAX as u128 { u64::MAX } else { exact as u64 }
    }

    /// From release `from` to release `to`, ns; rounded as [`Period::offset_ns`] rounds both.
    #[inline]
    pub(crate) const fn between_ns(self, from: u64, to: u64) -> u64 {
        if self.den == 1 {
            return to.saturating_sub(from).saturating_mul(self.num_ns);
        }
        self.offset_ns(to).saturating_sub(self.offset_ns(from))
    }

    /// The number of releases in the first `ns` nanoseconds: the `k` with an
    /// [`Period::offset_ns`] below `ns`, saturating.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn releases_below(self, ns: u64) -> u64 {
        if self.den == 1 {
            return ns.div_ceil(self.num_ns);
        }
        // ⌊k·num/den⌋ < ns  ⟺  k·num < ns·den, for ns is whole.
        let count = (ns as u128 * self.den as u128).div_ceil(self.num_ns as u128);
        if count > u64::MAX as u128 { u64::MAX } else { count as u64 }
    }
}

/// The greatest common divisor of two numbers; the other one where one is 0 (Euclid).
///
/// # Real-time: setup only
pub const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A [`Duration`] that is no [`Period`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPeriod(Duration);

impl fmt::Display for NoPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a period is from 1 ns to 2^62 ns, 146 years (got {:?})", self.0)
    }
}

impl core::error::Error for NoPeriod {}

impl TryFrom<Duration> for Period {
    type Error = NoPeriod;

    /// A whole number of nanoseconds; [`Period::hz`] and [`Period::ratio`] are exact for others.
    fn try_from(duration: Duration) -> Result<Self, NoPeriod> {
        let ns = u64::try_from(duration.as_nanos()).ok();
        ns.and_then(Self::from_ns).ok_or(NoPeriod(duration))
    }
}

impl From<Period> for Span {
    /// Rounded down, as [`Period::as_span`].
    #[inline]
    fn from(period: Period) -> Self {
        period.as_span()
    }
}

impl From<Period> for Duration {
    /// Rounded down.
    #[inline]
    fn from(period: Period) -> Self {
        Self::from_nanos(period.as_ns())
    }
}

impl PartialOrd for Period {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Period {
    /// By length, exactly.
    fn cmp(&self, other: &Self) -> Ordering {
        let cross = |a: &Self, b: &Self| u128::from(a.num_ns) * u128::from(b.den);
        cross(self, other).cmp(&cross(other, self))
    }
}

impl fmt::Display for Period {
    /// A whole number of nanoseconds as that: `1000000 ns`. Another one with its frequency, where
    /// that is a whole number of hertz, `22.7 µs (44.1 kHz)`, and else to a tenth of a nanosecond,
    /// `33.4 ms (33366666.7 ns)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.den == 1 {
            return write!(f, "{} ns", self.num_ns);
        }
        write!(f, "{} (", self.as_span())?;
        let (num, den) = (u128::from(self.num_ns), u128::from(self.den));
        // A period is 1 ns at least: at most 10⁹ Hz.
        let hertz = 1_000_000_000 * den / num;
        if hertz * num != 1_000_000_000 * den {
            let tenths = (20 * num + den) / (2 * den);
            return write!(f, "{}.{} ns)", tenths / 10, tenths % 10);
        }
        let (scale, mut places, unit) = match hertz {
            1_000_000.. => (1_000_000, 6, "MHz"),
            1_000.. => (1_000, 3, "kHz"),
            _ => (1, 0, "Hz"),
        };
        let (whole, mut part) = (hertz / scale, hertz % scale);
        if part == 0 {
            return write!(f, "{whole} {unit})");
        }
        while part % 10 == 0 {
            (part, places) = (part / 10, places - 1);
        }
        write!(f, "{whole}.{part:0places$} {unit})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn spans_are_added_and_scaled_and_saturate() {
        let (us, ms) = (Span::from_us(3), Span::from_ms(2));
        assert_eq!((ms + us - us, -us, us * 4, ms / 3).0, ms);
        assert_eq!([-us, us * 4, ms / 3].map(Span::as_ns), [-3_000, 12_000, 666_666]);
        assert_eq!([us, us, ms].into_iter().sum::<Span>().as_ns(), 2_006_000);
        let (mut at, mut span) = (Instant::from_ns(10), Span::from_ns(5));
        at += span;
        span -= Span::from_ns(9);
        span += Span::from_ns(1);
        assert_eq!((at.as_ns(), span.as_ns(), span.abs().as_ns()), (15, -3, 3));
        at -= Span::from_ns(20);
        assert_eq!(at.as_ns(), 0, "saturates at the zero of the clock");
        let ends = [Span::from_ns(i64::MAX), Span::from_ns(i64::MIN)];
        assert_eq!(
            [ends[0] + us, ends[0] * 2, -ends[1], ends[1].abs(), ends[1] / -1],
            [ends[0]; 5]
        );
        assert_eq!([ends[1] - us, ends[1] * 2, ends[0] * -2], [ends[1]; 3]);
    }

    #[test]
    fn spans_are_seconds_and_durations() {
        assert_eq!(Span::from_us(1_500).as_secs_f64().to_string(), "0.0015");
        for ns in [0, 1, -1, 7_613, -999_999_999, 1 << 52] {
            let span = Span::from_ns(ns);
            assert_eq!(Span::from_secs_f64(span.as_secs_f64()), span);
            let back = Duration::try_from(span);
            assert_eq!(back.map(Span::from).ok(), (ns >= 0).then_some(span));
        }
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::INFINITY).as_ns(), i64::MAX);
        assert_eq!(Span::from(Duration::MAX).as_ns(), i64::MAX);
        let refused = Duration::try_from(Span::from_us(-3)).expect_err("negative");
        assert_eq!(
            refused.to_string(),
            "a duration is not negative (got -3.00 µs); take its abs()"
        );
    }

    #[test]
    fn durations_are_periods_within_their_range() {
        let period = Period::try_from(Duration::from_micros(250)).expect("a period");
        assert_eq!(
            (period, Duration::from(period)),
            (Period::hz(4_000).unwrap(), Duration::from_micros(250))
        );
        assert_eq!(Span::from(period), Span::from_us(250));
        for bad in [Duration::ZERO, Duration::from_nanos(Period::MAX_NS + 1), Duration::MAX] {
            let refused = Period::try_from(bad).expect_err("no period").to_string();
            assert!(
                refused.starts_with("a period is from 1 ns to 2^62 ns, 146 years (got "),
                "{refused}"
            );
        }
    }

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

    #[test]
    fn only_what_can_be_kept_exactly_is_a_period() {
        assert_eq!(Period::from_ns(0), None);
        assert_eq!(Period::from_ns(7).map(Period::as_ns), Some(7));
        assert_eq!(Period::ratio(1, 2), None);
        assert_eq!(Period::ratio(1, 0), None);
        assert_eq!(Period::ratio(u64::MAX, u64::MAX), Period::from_ns(1));
        assert_eq!(Period::from_ns(Period::MAX_NS + 1), None);
        assert_eq!(Period::hz(2_000_000_000), None);
    }

    #[test]
    fn a_multiple_and_a_part_of_a_period_are_exact_or_none() {
        let third = Period::hz(3).expect("in range");
        assert_eq!(third.checked_mul(3), Period::hz(1));
        assert_eq!(third.checked_div(7), Period::hz(21));
        assert_eq!(third.checked_mul(6).and_then(|period| period.checked_div(6)), Some(third));
        assert_eq!((third.checked_mul(0), third.checked_div(0)), (None, None));
        assert_eq!(Period::NS.checked_div(2), None);
        assert_eq!(Period::NS.checked_mul(Period::MAX_NS), Period::from_ns(Period::MAX_NS));
        assert_eq!(Period::NS.checked_mul(Period::MAX_NS + 1), None);
        let fine = Period::ratio(u64::MAX, u64::MAX - 1).expect("above 1 ns");
        assert_eq!((fine.checked_mul(u64::MAX), fine.checked_div(2)), (None, None));
        assert_eq!(Period::hz(1).map(Period::as_secs_f64), Some(1.0));
        assert_eq!(third.as_secs_f64(), 1.0 / 3.0);
    }

    #[test]
    fn a_period_is_shown_without_a_fraction() {
        for (num, den, shown) in [
            (1_000_000, 1, "1000000 ns"),
            (1_000_000_000, 3, "333 ms (3 Hz)"),
            (1_000_000_000, 44_100, "22.7 µs (44.1 kHz)"),
            (1_000_000_000, 7_000, "143 µs (7 kHz)"),
            (1_000_000_000, 3_000_001, "333 ns (3.000001 MHz)"),
            (1_000_000_000, 1_001, "999 µs (1.001 kHz)"),
            // 29.97 pictures a second, and what rounds up to the next nanosecond.
            (1_001_000_000, 30, "33.4 ms (33366666.7 ns)"),
            (1_999_999, 1_000, "2.00 µs (2000.0 ns)"),
            (u64::MAX, 7, "2635249153 s (2635249153387078802.1 ns)"),
        ] {
            let period = Period::ratio(num, den).expect("in range");
            assert_eq!(period.to_string(), shown, "{num}/{den}");
        }
    }

    #[test]
    fn order_is_by_length() {
        let period = |num, den| Period::ratio(num, den).expect("in range");
        assert!(period(10, 3) < period(7, 2) && period(7, 2) < period(4, 1));
        assert_eq!(period(20, 6), period(10, 3));
    }

    #[test]
    fn three_a_second_stay_three_a_second() {
        let third = Period::hz(3).expect("in range");
        assert_eq!((third.offset_ns(1), third.longest_ns()), (333_333_333, 333_333_334));
        assert_eq!(third.offset_ns(3_000_000), 1_000_000_000_000_000);
        assert_eq!(third.offset_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn releases_below_agrees_with_counting() {
        for (num, den) in [(10, 3), (7, 2), (5, 1), (9, 7)] {
            let period = Period::ratio(num, den).expect("in range");
            for ns in 0..200 {
                let slow = (0..).find(|&k| period.offset_ns(k) >= ns).expect("unbounded");
                assert_eq!(period.releases_below(ns), slow, "{num}/{den} below {ns}");
            }
        }
    }
}
