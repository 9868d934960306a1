//! The units that are understood: one row each.
//!
//! For the parser. Data only.

use super::Dimension;

/// A unit.
pub(super) struct Unit {
    names: &'static [&'static str],
    pub(super) dimension: Dimension,
    /// How many of the dimension's own unit (Nm, rad, rad/s, Hz, 1) it is.
    pub(super) factor: f64,
    /// Durations, exactly: `ns_factor`·10^`ns_power` ns.
    pub(super) ns_factor: u32,
    pub(super) ns_power: i32,
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
    other(&["Hz"], Dimension::Rate, 1.0),
    other(&["kHz"], Dimension::Rate, 1e3),
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
pub(super) fn find(name: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| unit.names.contains(&name))
}

/// How messages describe a dimension.
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
    pub(super) fn example_unit(self) -> &'static str {
        self.words().example_unit
    }

    /// A whole example.
    pub(super) fn example(self) -> &'static str {
        self.words().example
    }
}
