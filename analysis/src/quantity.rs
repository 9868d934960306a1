//! Quantities with dimensions, as a person writes them: `500us`, `23ozin`, `0.9deg`, `15rev/s`.
//!
//! For the command line. Reads text into newtypes; a missing unit, a wrong dimension, a value that
//! makes no sense is refused with the reason. Never guesses a unit.

pub mod decimal;

use punctual_core::time::{Period, Span};

use decimal::{Decimal, Scaled};

/// The dimension of a unit.
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

impl Dimension {
    /// One row each: its name with the article, the units to offer, the unit of an example, a whole
    /// example.
    const fn words(self) -> Words {
        match self {
            Self::Duration => words("a duration", "ns, us, ms, s, min, h, d", "us", "500us"),
            Self::Torque => words("a torque", "Nm, mNm, ozin, kgcm", "ozin", "23ozin"),
            Self::Angle => words("an angle", "deg, rad", "deg", "0.9deg"),
            Self::Speed => {
                words("a rotational speed", "rev/s, rpm, rad/s, deg/s", "rev/s", "15rev/s")
            }
            Self::Rate => words("a rate", "Hz, kHz", "Hz", "10kHz"),
            Self::Share => words("a share", "10% or 0.1", "%", "10%"),
            Self::Length => words("a length", "m, mm, um, in", "mm", "10um"),
            Self::LinearSpeed => words(
                "a speed along a line",
                "m/s, m/min, mm/s, mm/min, in/min",
                "m/min",
                "10m/min",
            ),
            Self::BitRate => {
                words("a rate of data", "bit/s, kbit/s, Mbit/s, Gbit/s", "Mbit/s", "1Gbit/s")
            }
            Self::Size => words("an amount of memory", "B, kB, MB, KiB, MiB", "KiB", "8KiB"),
        }
    }

    /// Its name with the article.
    pub fn name(self) -> &'static str {
        self.words().name
    }

    /// The units to offer.
    pub fn units(self) -> &'static str {
        self.words().units
    }

    /// The unit of an example.
    fn example_unit(self) -> &'static str {
        self.words().example_unit
    }

    /// A whole example.
    fn example(self) -> &'static str {
        self.words().example
    }
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
    match unit_named(unit) {
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

/// A quantity that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// It does not begin with a number.
    NotANumber {
        /// The text as it was written.
        text: String,
        /// The dimension that was expected.
        expected: Dimension,
    },
    /// A bare number.
    NoUnit {
        /// The text as it was written.
        text: String,
        /// The dimension that was expected.
        expected: Dimension,
    },
    /// A unit that is not in the table.
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// The dimension that was expected.
        expected: Dimension,
    },
    /// A unit of another dimension.
    Dimension {
        /// The text as it was written.
        text: String,
        /// The dimension that was expected.
        expected: Dimension,
        /// The dimension of the unit that was written.
        found: Dimension,
    },
    /// Zero where a positive value is needed.
    Zero {
        /// The text as it was written.
        text: String,
    },
    /// Negative where a positive value is needed.
    Negative {
        /// The text as it was written.
        text: String,
    },
    /// A duration that is not a whole number of nanoseconds.
    TooFine {
        /// The text as it was written.
        text: String,
    },
    /// Beyond what can be held.
    TooLarge {
        /// The text as it was written.
        text: String,
    },
    /// A share outside (0, 1].
    OutsideShare {
        /// The text as it was written.
        text: String,
    },
}

impl QuantityError {
    fn too_large(text: &str) -> Self {
        Self::TooLarge { text: text.trim().to_owned() }
    }
}

impl std::error::Error for QuantityError {}

impl std::fmt::Display for QuantityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotANumber { text, expected } if text.is_empty() => {
                write!(f, "expected {} (e.g. {}), got nothing", expected.name(), expected.example())
            }
            Self::NotANumber { text, expected } => {
                write!(f, "{text} is not {}; write e.g. {}", expected.name(), expected.example())
            }
            Self::NoUnit { text, expected } => {
                write!(f, "{text} needs a unit, e.g. {text}{}", expected.example_unit())
            }
            Self::UnknownUnit { unit, expected } => {
                write!(f, "unknown unit {unit}; {} takes {}", expected.name(), expected.units())
            }
            Self::Dimension { text, expected, found } => write!(
                f,
                "{text} is {}; expected {} ({})",
                found.name(),
                expected.name(),
                expected.units()
            ),
            Self::Zero { text } => write!(f, "{text} is zero; the value must be greater than 0"),
            Self::Negative { text } => {
                write!(f, "{text} is negative; the value must be greater than 0")
            }
            Self::TooFine { text } => write!(f, "{text} is not a whole number of nanoseconds"),
            Self::TooLarge { text } => write!(f, "{text} is too large"),
            Self::OutsideShare { text } => {
                write!(
                    f,
                    "{text} is not a share: it must be above 0 and at most 1, e.g. 10% or \
                          0.1"
                )
            }
        }
    }
}

/// A unit.
struct Unit {
    names: &'static [&'static str],
    dimension: Dimension,
    /// Its size in the dimension's own unit (Nm, rad, rad/s, Hz, 1).
    factor: f64,
    /// Durations, exactly: `ns_factor`·10^`ns_power` ns.
    ns_factor: u32,
    ns_power: i32,
}

const fn time(names: &'static [&'static str], ns_factor: u32, ns_power: i32) -> Unit {
    Unit { names, dimension: Dimension::Duration, factor: 0.0, ns_factor, ns_power }
}

const fn other(names: &'static [&'static str], dimension: Dimension, factor: f64) -> Unit {
    Unit { names, dimension, factor, ns_factor: 0, ns_power: 0 }
}

const TURN: f64 = 2.0 * std::f64::consts::PI;

/// One avoirdupois ounce (0.028 349 523 125 kg) at 9.806 65 m/s² on one inch (0.0254 m).
const OUNCE_INCH_NM: f64 = 0.028_349_523_125 * 9.806_65 * 0.025_4;

static UNITS: [Unit; 45] = [
    time(&["ns"], 1, 0),
    time(&["us", "µs", "μs"], 1, 3),
    time(&["ms"], 1, 6),
    time(&["s"], 1, 9),
    time(&["min"], 6, 10),
    time(&["h"], 36, 11),
    time(&["d"], 864, 11),
    other(&["Nm", "N·m"], Dimension::Torque, 1.0),
    other(&["Ncm"], Dimension::Torque, 1e-2),
    other(&["mNm"], Dimension::Torque, 1e-3),
    other(&["ozin", "oz-in", "oz·in", "oz.in"], Dimension::Torque, OUNCE_INCH_NM),
    other(&["kgcm", "kg-cm", "kgf-cm"], Dimension::Torque, 0.098_066_5),
    other(&["rad"], Dimension::Angle, 1.0),
    other(&["deg", "°"], Dimension::Angle, TURN / 360.0),
    other(&["rev"], Dimension::Angle, TURN),
    other(&["rad/s"], Dimension::Speed, 1.0),
    other(&["deg/s", "°/s"], Dimension::Speed, TURN / 360.0),
    other(&["rev/s", "rps"], Dimension::Speed, TURN),
    other(&["rpm", "rev/min"], Dimension::Speed, TURN / 60.0),
    other(&["Hz", "hz"], Dimension::Rate, 1.0),
    other(&["kHz", "khz", "KHz"], Dimension::Rate, 1e3),
    other(&["MHz"], Dimension::Rate, 1e6),
    other(&["step/s", "steps/s"], Dimension::Rate, 1.0),
    other(&["kstep/s", "ksteps/s"], Dimension::Rate, 1e3),
    other(&["%"], Dimension::Share, 1e-2),
    other(&["ppm"], Dimension::Share, 1e-6),
    other(&["m"], Dimension::Length, 1.0),
    other(&["mm"], Dimension::Length, 1e-3),
    other(&["um", "µm", "μm"], Dimension::Length, 1e-6),
    other(&["in"], Dimension::Length, 0.025_4),
    other(&["m/s"], Dimension::LinearSpeed, 1.0),
    other(&["m/min"], Dimension::LinearSpeed, 1.0 / 60.0),
    other(&["mm/s"], Dimension::LinearSpeed, 1e-3),
    other(&["mm/min"], Dimension::LinearSpeed, 1e-3 / 60.0),
    other(&["in/s"], Dimension::LinearSpeed, 0.025_4),
    other(&["in/min", "ipm"], Dimension::LinearSpeed, 0.025_4 / 60.0),
    other(&["bit/s"], Dimension::BitRate, 1.0),
    other(&["kbit/s"], Dimension::BitRate, 1e3),
    other(&["Mbit/s"], Dimension::BitRate, 1e6),
    other(&["Gbit/s"], Dimension::BitRate, 1e9),
    other(&["B"], Dimension::Size, 1.0),
    other(&["kB"], Dimension::Size, 1e3),
    other(&["MB"], Dimension::Size, 1e6),
    other(&["KiB"], Dimension::Size, 1_024.0),
    other(&["MiB"], Dimension::Size, 1_048_576.0),
];

/// The unit of that name; case matters (mNm is not MNm).
fn unit_named(name: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| unit.names.contains(&name))
}

/// The words of messages for a dimension.
struct Words {
    name: &'static str,
    units: &'static str,
    example_unit: &'static str,
    example: &'static str,
}

const fn words(
    name: &'static str,
    units: &'static str,
    example_unit: &'static str,
    example: &'static str,
) -> Words {
    Words { name, units, example_unit, example }
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
