//! Quantities with dimensions, as a person writes them: `500us`, `23ozin`, `0.9deg`, `15rev/s`.
//!
//! For the command line. Reads text into newtypes; a missing unit, a wrong dimension, a value that
//! makes no sense is refused with the reason. Never guesses a unit.

pub mod decimal;
mod error;
mod units;

use punctual_core::time::{Period, Span};

use decimal::{Decimal, Scaled};
pub use error::QuantityError;
use units::Unit;

/// What kind of quantity a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// A span of time.
    Duration,
    /// A torque.
    Torque,
    /// An angle.
    Angle,
    /// A rotational speed.
    Speed,
    /// A number of events in a time.
    Rate,
    /// A part of a whole.
    Share,
    /// A length.
    Length,
    /// A speed along a line.
    LinearSpeed,
    /// Bits in a time.
    BitRate,
    /// An amount of memory.
    Size,
}

/// A torque in newton metres; finite and positive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Torque {
    nm: f64,
}

/// An angle in radians; finite and positive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Angle {
    rad: f64,
}

/// A rotational speed in radians per second; finite and positive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Speed {
    rad_s: f64,
}

/// A rate in hertz; finite and positive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Hertz {
    hz: f64,
}

/// A length in metres; finite and positive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Length {
    m: f64,
}

/// A speed along a line in metres per second; finite and positive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct LinearSpeed {
    m_s: f64,
}

/// A rate of data in bits per second; finite and positive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct BitRate {
    bit_s: f64,
}

/// An amount of memory in bytes; finite and positive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Size {
    bytes: f64,
}

/// A share in (0, 1].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share {
    of_one: f64,
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

macro_rules! newtype {
    ($name:ident, $field:ident, $from:ident, $as:ident, $parse:ident, $dimension:expr,
     $unit:literal, $example:literal) => {
        impl $name {
            #[doc = concat!("From a number of ", $unit, "; `None` unless finite and positive.")]
            pub fn $from($field: f64) -> Option<Self> {
                is_positive($field).then_some(Self { $field })
            }

            #[doc = concat!("As a number of ", $unit, ".")]
            pub fn $as(self) -> f64 {
                self.$field
            }
        }

        #[doc = concat!("Reads a quantity such as `", $example, "`.")]
        ///
        /// # Errors
        /// No number, no unit, an unknown unit, a unit of another dimension, or a value that is not
        /// positive and finite.
        pub fn $parse(text: &str) -> Result<$name, QuantityError> {
            let value = real(text, $dimension)?;
            $name::$from(value).ok_or_else(|| QuantityError::too_large(text))
        }
    };
}

newtype!(Torque, nm, from_nm, as_nm, torque, Dimension::Torque, "newton metres", "23ozin");
newtype!(Angle, rad, from_rad, as_rad, angle, Dimension::Angle, "radians", "0.9deg");
newtype!(
    Speed,
    rad_s,
    from_rad_s,
    as_rad_s,
    speed,
    Dimension::Speed,
    "radians per second",
    "15rev/s"
);
newtype!(Hertz, hz, from_hz, as_hz, rate, Dimension::Rate, "hertz", "10kHz");
newtype!(Length, m, from_m, as_m, length, Dimension::Length, "metres", "10um");
newtype!(
    LinearSpeed,
    m_s,
    from_m_s,
    as_m_s,
    linear_speed,
    Dimension::LinearSpeed,
    "metres per second",
    "10m/min"
);
newtype!(
    BitRate,
    bit_s,
    from_bit_s,
    as_bit_s,
    bit_rate,
    Dimension::BitRate,
    "bits per second",
    "1Gbit/s"
);
newtype!(Size, bytes, from_bytes, as_bytes, size, Dimension::Size, "bytes", "8KiB");

impl Share {
    /// From a number; `None` unless in (0, 1].
    pub fn from_one(of_one: f64) -> Option<Self> {
        (of_one > 0.0 && of_one <= 1.0).then_some(Self { of_one })
    }

    /// As a number in (0, 1].
    pub fn as_one(self) -> f64 {
        self.of_one
    }
}

/// Reads a share: `10%` or `0.1`.
///
/// # Errors
/// No number, an unknown or other unit, or a value outside (0, 1].
pub fn share(text: &str) -> Result<Share, QuantityError> {
    let (number, unit) = split(text, Dimension::Share)?;
    let per = if unit.is_empty() { 1.0 } else { find(text, unit, Dimension::Share)?.factor };
    let value = number_as_f64(text, number)? * per;
    Share::from_one(value)
        .ok_or_else(|| QuantityError::OutsideShare { text: text.trim().to_owned() })
}

/// Reads a positive span of time: `500us`, `1.5ms`, `2min`. Exact: no detour through floating
/// point.
///
/// # Errors
/// No number, no unit, another dimension, zero or negative, finer than 1 ns, or beyond 292 years.
pub fn duration(text: &str) -> Result<Span, QuantityError> {
    let ns = whole_ns(text)?;
    i64::try_from(ns).map(Span::from_ns).map_err(|_| QuantityError::too_large(text))
}

/// Reads a period; as [`duration`].
///
/// # Errors
/// As [`duration`], and above [`Period::MAX_NS`], 146 years.
pub fn period(text: &str) -> Result<Period, QuantityError> {
    let ns = u64::try_from(duration(text)?.as_ns()).ok();
    ns.and_then(Period::from_ns).ok_or_else(|| QuantityError::too_large(text))
}

fn whole_ns(text: &str) -> Result<i128, QuantityError> {
    let (number, unit) = split(text, Dimension::Duration)?;
    // A metre elsewhere, a minute where a duration is meant, as sleep(1) and systemd have it.
    let unit = if unit == "m" { "min" } else { unit };
    let unit = find(text, unit, Dimension::Duration)?;
    refuse_unless_positive(text, number)?;
    match number.scaled(unit.ns_factor, unit.ns_power) {
        Scaled::Exact(ns) => Ok(ns),
        Scaled::Rounded(_) => Err(QuantityError::TooFine { text: text.trim().to_owned() }),
        Scaled::TooLarge => Err(QuantityError::too_large(text)),
    }
}

fn real(text: &str, expected: Dimension) -> Result<f64, QuantityError> {
    let (number, unit) = split(text, expected)?;
    let unit = find(text, unit, expected)?;
    refuse_unless_positive(text, number)?;
    Ok(number_as_f64(text, number)? * unit.factor)
}

/// The number at the beginning, and the unit that follows it.
fn split(text: &str, expected: Dimension) -> Result<(Decimal, &str), QuantityError> {
    let text = text.trim();
    let Some((number, rest)) = Decimal::split(text.as_bytes()) else {
        return Err(QuantityError::NotANumber { text: text.to_owned(), expected });
    };
    // A number is ASCII, so this is a character boundary.
    let unit = text.get(text.len() - rest.len()..).unwrap_or_default();
    Ok((number, unit.trim_start()))
}

fn find(text: &str, unit: &str, expected: Dimension) -> Result<&'static Unit, QuantityError> {
    let text = text.trim();
    if unit.is_empty() {
        return Err(QuantityError::NoUnit { text: text.to_owned(), expected });
    }
    match units::find(unit) {
        None => Err(QuantityError::UnknownUnit { unit: unit.to_owned(), expected }),
        Some(found) if found.dimension != expected => Err(QuantityError::Dimension {
            text: text.to_owned(),
            expected,
            found: found.dimension,
        }),
        Some(found) => Ok(found),
    }
}

fn refuse_unless_positive(text: &str, number: Decimal) -> Result<(), QuantityError> {
    let text = || text.trim().to_owned();
    match (number.is_zero(), number.negative) {
        (true, _) => Err(QuantityError::Zero { text: text() }),
        (_, true) => Err(QuantityError::Negative { text: text() }),
        _ => Ok(()),
    }
}

/// The number part as a double; `number` says how long it is.
fn number_as_f64(text: &str, number: Decimal) -> Result<f64, QuantityError> {
    let text = text.trim();
    let (_, rest) = Decimal::split(text.as_bytes()).unwrap_or((number, &[]));
    let digits = text.get(..text.len() - rest.len()).unwrap_or_default();
    let value: f64 = digits.parse().map_err(|_| QuantityError::too_large(text))?;
    if value.is_finite() { Ok(value) } else { Err(QuantityError::too_large(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_exact() {
        let ns = |text| duration(text).unwrap().as_ns();
        assert_eq!(ns("500us"), 500_000);
        assert_eq!(ns(" 1.5 ms "), 1_500_000);
        assert_eq!(ns("3.6µs"), 3_600);
        assert_eq!(ns("0.1s"), 100_000_000);
        assert_eq!(ns("2min"), 120_000_000_000);
        assert_eq!(ns("1.5h"), 5_400_000_000_000);
        assert_eq!(ns("1d"), 86_400_000_000_000);
        assert_eq!(ns("1e3ns"), 1_000);
        assert_eq!(period("25us").unwrap().as_ns(), 25_000);
    }

    #[test]
    fn durations_are_refused_with_the_reason() {
        let refused = |text| duration(text).unwrap_err().to_string();
        assert_eq!(refused("500"), "500 needs a unit, e.g. 500us");
        assert_eq!(refused("0ms"), "0ms is zero; the value must be greater than 0");
        assert_eq!(refused("-5us"), "-5us is negative; the value must be greater than 0");
        assert_eq!(refused("0.5ns"), "0.5ns is not a whole number of nanoseconds");
        assert_eq!(refused("1.0001us"), "1.0001us is not a whole number of nanoseconds");
        assert_eq!(refused("1e30s"), "1e30s is too large");
        assert_eq!(refused("nan"), "nan is not a duration; write e.g. 500us");
        assert_eq!(refused(""), "expected a duration (e.g. 500us), got nothing");
        assert_eq!(
            refused("5parsec"),
            "unknown unit parsec; a duration takes ns, us, ms, s, min, h, d"
        );
        assert_eq!(refused("5Hz"), "5Hz is a rate; expected a duration (ns, us, ms, s, min, h, d)");
    }

    #[test]
    fn mechanics_have_their_units() {
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        assert!(near(torque("23ozin").unwrap().as_nm(), 0.162_415_691_7));
        assert_eq!(torque("23oz-in"), torque("23ozin"));
        assert!(near(torque("10kgcm").unwrap().as_nm(), 0.980_665));
        assert!(near(torque("500mNm").unwrap().as_nm(), 0.5));
        assert!(near(angle("1.8deg").unwrap().as_rad(), std::f64::consts::PI / 100.0));
        assert!(near(speed("15rev/s").unwrap().as_rad_s(), 30.0 * std::f64::consts::PI));
        assert!(near(speed("60rpm").unwrap().as_rad_s(), 2.0 * std::f64::consts::PI));
        assert!(near(speed("360deg/s").unwrap().as_rad_s(), 2.0 * std::f64::consts::PI));
        assert_eq!(rate("16.7kHz").unwrap().as_hz(), 16_700.0);
        assert!(near(length("10um").unwrap().as_m(), 1e-5));
        assert!(near(length("0.5in").unwrap().as_m(), 0.0127));
        assert!(near(linear_speed("6m/min").unwrap().as_m_s(), 0.1));
        assert!(near(linear_speed("60in/min").unwrap().as_m_s(), 0.0254));
        assert_eq!(bit_rate("1Gbit/s").unwrap().as_bit_s(), 1e9);
        assert_eq!(size("8KiB").unwrap().as_bytes(), 8_192.0);
    }

    #[test]
    fn a_wrong_dimension_is_refused_by_name() {
        let error = torque("0.9deg").unwrap_err();
        assert_eq!(
            error.to_string(),
            "0.9deg is an angle; expected a torque (Nm, mNm, ozin, kgcm)"
        );
        assert!(matches!(
            error,
            QuantityError::Dimension { expected: Dimension::Torque, found: Dimension::Angle, .. }
        ));
        assert_eq!(angle("7").unwrap_err().to_string(), "7 needs a unit, e.g. 7deg");
        assert!(speed("1e999rpm").is_err() && speed("0rpm").is_err() && speed("-1rpm").is_err());
    }

    #[test]
    fn shares_are_parts_of_one() {
        assert_eq!(share("10%").unwrap().as_one(), 0.1);
        assert_eq!(share("0.1").unwrap().as_one(), 0.1);
        assert_eq!(share("100%").unwrap().as_one(), 1.0);
        for bad in ["0", "0%", "1.5", "150%", "-1%", "10us", "x", "nan"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,30}") {
            let _ = (duration(&text), period(&text), torque(&text), angle(&text));
            let _ = (speed(&text), rate(&text), share(&text));
            let _ = (length(&text), linear_speed(&text), bit_rate(&text), size(&text));
        }

        #[test]
        fn durations_round_trip(ns in 1i64..i64::MAX) {
            prop_assert_eq!(duration(&format!("{ns}ns")).unwrap().as_ns(), ns);
            let us = format!("{}.{:03}us", ns / 1_000, ns % 1_000);
            prop_assert_eq!(duration(&us).unwrap().as_ns(), ns);
        }
    }
}
