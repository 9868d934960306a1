//! Values of the command line, from text: each refused in one line that says how to write it.
//!
//! For `args`. The grammars themselves are in `punctual_analysis`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::limit::MetricLimit;
use punctual_analysis::quantity::{self, QuantityError};
use punctual_core::time::{Period, Span};
use punctual_lab::load::{self, Loads};

/// A positive duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duration(pub(super) Span);

/// The phase of a grid on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// This many ns after multiples of its period.
    At(u64),
    /// Away from the kernel's tick, as far as that is found.
    Quiet,
}

impl Phase {
    /// The offset as far as it is known before anything is measured, ns.
    pub(crate) fn at_ns(self) -> u64 {
        match self {
            Self::At(ns) => ns,
            Self::Quiet => 0,
        }
    }
}

/// `zero`, `quiet` or `50us`.
impl FromStr for Phase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "zero" => Ok(Phase::At(0)),
            "quiet" => Ok(Phase::Quiet),
            _ => duration(text).map(|phase| Phase::At(phase.0.as_ns().unsigned_abs())),
        }
    }
}

impl Duration {
    /// The duration as a period.
    pub(crate) fn period(self) -> Result<Period> {
        let ns = u64::try_from(self.0.as_ns()).ok().and_then(Period::from_ns);
        ns.ok_or_else(|| anyhow::anyhow!("period must be greater than 0"))
    }
}

/// A duration above zero, as `500us`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    quantity::duration(text).map(Duration).map_err(|why| match why {
        QuantityError::NoUnit { text, .. } if is_zero(&text) => zero(&text),
        // Which one was meant is not known: a minute is wanted more often than 60 µs.
        QuantityError::NoUnit { text, .. } => {
            format!("{text} needs a unit: {text}s, {text}ms or {text}us")
        }
        why => why.to_string(),
    })
}

/// A period, as `500us`: at most 292 years.
pub(crate) fn period(text: &str) -> Result<Duration, String> {
    let period = quantity::period(text).map_err(|why| match why {
        QuantityError::NoUnit { text, .. } if is_zero(&text) => zero(&text),
        why => why.to_string(),
    })?;
    let ns = i64::try_from(period.as_ns()).map_err(|_| "must be at most 292 years".to_owned())?;
    Ok(Duration(Span::from_ns(ns)))
}

fn is_zero(text: &str) -> bool {
    text.parse() == Ok(0.0)
}

/// A zero without a unit: with one it would still be refused, so another number is the example.
fn zero(text: &str) -> String {
    format!("{text} needs a unit, e.g. 1ms")
}

/// The default share of the CPU that an adaptive wait may take, as it is written: the library's.
pub(crate) const BUDGET: &str = "10%";

/// A share in (0, 1], as `10%` or `0.1`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    quantity::share(text).map(quantity::Share::as_one).map_err(|why| why.to_string())
}

/// A clock that a grid can follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FollowName {
    /// CLOCK_TAI.
    Tai,
    /// CLOCK_REALTIME.
    Realtime,
    /// A PTP clock, by its device.
    Device(PathBuf),
}

/// `tai`, `realtime` or a device such as `/dev/ptp0`.
impl FromStr for FollowName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "tai" => Ok(FollowName::Tai),
            "realtime" => Ok(FollowName::Realtime),
            _ if text.starts_with('/') => Ok(FollowName::Device(text.into())),
            _ => {
                Err("accepted clocks are tai, realtime and a PTP device such as /dev/ptp0"
                    .to_owned())
            }
        }
    }
}

impl fmt::Display for FollowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tai => f.write_str("tai"),
            Self::Realtime => f.write_str("realtime"),
            Self::Device(path) => path.display().fmt(f),
        }
    }
}

/// A limit, as `p99.9<50us`.
pub(crate) fn limit(text: &str) -> Result<MetricLimit, String> {
    MetricLimit::parse(text).map_err(|why| why.to_string())
}

/// A claim, as `p(lateness>50us)<1e-6`.
pub(crate) fn claim(text: &str) -> Result<Ask, String> {
    Ask::parse(text).map_err(|why| why.to_string())
}

/// Loads, as `cpu,fork`.
pub(crate) fn loads(text: &str) -> Result<Loads, String> {
    Loads::parse(text).map_err(|why| why.to_string())
}

/// The help of `--load`, in a line.
pub(crate) fn loads_help() -> String {
    format!(
        "Loads to run during the measurement, separated by commas: {}; or all, one after the \
         other",
        load::names()
    )
}

/// The help of `--load`, with what each load does.
pub(crate) fn loads_long_help() -> String {
    let each = load::LOADS.iter().map(|row| format!("\n- {}: {}", row.name, row.help));
    loads_help() + "\n" + &each.collect::<String>()
}

/// The unit of values in a file that does not name it, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit(i64);

/// `ns`, `us`, `ms` or `s`.
impl FromStr for Unit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ns" => Ok(Unit(1)),
            "us" | "µs" => Ok(Unit(1_000)),
            "ms" => Ok(Unit(1_000_000)),
            "s" => Ok(Unit(1_000_000_000)),
            _ => Err("unit must be ns, us, ms or s".to_owned()),
        }
    }
}

impl Unit {
    /// Its length in ns.
    pub(crate) fn ns(self) -> i64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_budget_is_the_librarys() {
        assert_eq!(share(BUDGET), Ok(punctual_core::wait::adaptive::Target::BUDGET));
    }

    #[test]
    fn phases_are_zero_or_a_duration() {
        let phase = str::parse::<Phase>;
        assert_eq!(phase("zero"), Ok(Phase::At(0)));
        assert_eq!(phase("50us"), Ok(Phase::At(50_000)));
        assert!(phase("50").is_err(), "a unit is needed");
    }

    #[test]
    fn clocks_have_names_or_are_devices() {
        for text in ["tai", "realtime", "/dev/ptp7"] {
            let clock = text.parse::<FollowName>().map(|clock| clock.to_string());
            assert_eq!(clock.as_deref(), Ok(text));
        }
        for text in ["", "ptp0", "TAI", "monotonic", "./ptp0"] {
            assert!(text.parse::<FollowName>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_without_a_unit_is_asked_back() {
        assert_eq!(duration("60"), Err("60 needs a unit: 60s, 60ms or 60us".to_owned()));
        let zero = Err("0 needs a unit, e.g. 1ms".to_owned());
        assert_eq!((duration("0"), period("0")), (zero.clone(), zero));
        let minutes = ["1m", "1min", "60s"].map(|text| duration(text).expect("a minute"));
        assert!(minutes.iter().all(|minute| minute.0 == Span::from_ms(60_000)), "{minutes:?}");
    }

    #[test]
    fn refusals_are_one_line() {
        for refused in [duration("0s"), duration("5"), duration("-1s"), period("0us")] {
            let why = refused.expect_err("refused");
            assert!(!why.is_empty() && !why.contains('\n'), "{why}");
        }
    }
}
