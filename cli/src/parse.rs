//! Values of the command line, from text: each refused in one line that says how to write it.
//!
//! For `args`. The grammars themselves are in `punctual_analysis`.

use anyhow::Result;
use punctual::core::time::{Period, Span};
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::import::csv::ColumnSpec;
use punctual_analysis::limit::Limit;
use punctual_analysis::quantity;
use punctual_lab::load::Loads;

/// A positive duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duration(pub(crate) Span);

/// An offset of a grid, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phase(pub(crate) u64);

impl Duration {
    /// The duration as a period.
    pub(crate) fn period(self) -> Result<Period> {
        let ns = u64::try_from(self.0.as_ns()).ok().and_then(Period::from_ns);
        ns.ok_or_else(|| anyhow::anyhow!("a period must be positive"))
    }
}

/// `500us`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    quantity::duration(text).map(Duration).map_err(|why| why.to_string())
}

/// `500us`, as a period.
pub(crate) fn period(text: &str) -> Result<Duration, String> {
    let period = quantity::period(text).map_err(|why| why.to_string())?;
    let ns = i64::try_from(period.as_ns()).map_err(|_| "longer than 292 years".to_owned())?;
    Ok(Duration(Span::from_ns(ns)))
}

/// `zero` or `50us`.
pub(crate) fn phase(text: &str) -> Result<Phase, String> {
    if text == "zero" {
        return Ok(Phase(0));
    }
    duration(text).map(|phase| Phase(phase.0.as_ns().unsigned_abs()))
}

/// `p99.9<50us`.
pub(crate) fn limit(text: &str) -> Result<Limit, String> {
    Limit::parse(text).map_err(|why| why.to_string())
}

/// `p(lateness>50us)<1e-6`.
pub(crate) fn claim(text: &str) -> Result<Ask, String> {
    Ask::parse(text).map_err(|why| why.to_string())
}

/// `0.5` or `50%`, as an extremal index.
pub(crate) fn theta(text: &str) -> Result<f64, String> {
    quantity::share(text).map(quantity::Share::as_one).map_err(|why| why.to_string())
}

/// `cpu,fork`.
pub(crate) fn loads(text: &str) -> Result<Loads, String> {
    Loads::parse(text).map_err(|why| why.to_string())
}

/// `lateness:us`.
pub(crate) fn column(text: &str) -> Result<ColumnSpec, String> {
    ColumnSpec::parse(text).map_err(|why| why.to_string())
}

/// The unit of values that do not tell it, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit(i64);

impl Unit {
    /// Its length in ns.
    pub(crate) fn ns(self) -> i64 {
        self.0
    }
}

/// `us`.
pub(crate) fn unit(text: &str) -> Result<Unit, String> {
    match text {
        "ns" => Ok(Unit(1)),
        "us" | "µs" => Ok(Unit(1_000)),
        "ms" => Ok(Unit(1_000_000)),
        "s" => Ok(Unit(1_000_000_000)),
        _ => Err("a unit of time is ns, us, ms or s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_zero_or_a_duration() {
        assert_eq!(phase("zero"), Ok(Phase(0)));
        assert_eq!(phase("50us"), Ok(Phase(50_000)));
        assert!(phase("50").is_err(), "a unit is needed");
    }

    #[test]
    fn refusals_are_one_line() {
        for refused in [duration("0s"), duration("5"), duration("-1s"), period("0us")] {
            let why = refused.expect_err("refused");
            assert!(!why.is_empty() && !why.contains('\n'), "{why}");
        }
    }
}
