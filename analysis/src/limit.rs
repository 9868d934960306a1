//! Limits that turn a run into a gate: `p99.9<50us`, `max<1ms`, `missed<1`, `jitter_pp<20us`.
//!
//! Reads the expression, judges an [`RunFigures`]. A quantile that n cannot support, or a figure
//! that was not measured, counts as failed with the reason: nothing is promised that was not
//! measured.

mod metric;

use punctual_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{QuantityError, decimal::Decimal, decimal::Scaled, duration};
use crate::recording::RunFigures;
pub use metric::Metric;

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricLimit {
    metric: Metric,
    or_equal: bool,
    /// Nanoseconds, or a count.
    bound: i64,
    text: String,
}

/// The judgement of a limit on a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The limit as it was written, without spaces.
    pub text: String,
    /// Whether it holds.
    pub ok: bool,
    /// What was measured: ns, or a count; null when the run does not have it.
    pub measured: Option<f64>,
    /// One line: what was measured against what, or why it could not be.
    pub reason: String,
}

/// Why an expression is not a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit {text:?}: {why}")]
pub struct LimitError {
    text: String,
    why: String,
}

impl MetricLimit {
    /// Reads a limit.
    ///
    /// # Errors
    /// One line saying which part is wrong, with an example.
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        let refused = |why: String| {
            let shown = text.trim().chars().take(60).collect();
            LimitError { text: shown, why }
        };
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        if compact.contains('>') {
            return Err(refused(
                "a limit must be an upper bound: write < or <=, e.g. \
                               max<1ms"
                    .to_owned(),
            ));
        }
        let Some((name, rest)) = compact.split_once('<') else {
            return Err(refused("there is no <; write e.g. p99.9<50us".to_owned()));
        };
        let (or_equal, value) = match rest.strip_prefix('=') {
            Some(value) => (true, value),
            None => (false, rest),
        };
        let metric = Metric::parse(name).map_err(&refused)?;
        let bound = if metric.is_count() { count(value) } else { time(value) };
        Ok(Self { metric, or_equal, bound: bound.map_err(&refused)?, text: compact.clone() })
    }

    /// What it is about.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The lateness threshold of the limit, ns, to be watched while recording.
    pub fn threshold_ns(&self) -> Option<i64> {
        matches!(self.metric, Metric::Quantile(_) | Metric::Max).then_some(self.bound)
    }

    /// Judges a run.
    pub fn judge(&self, outcome: &RunFigures) -> Judgement {
        let judgement =
            |ok, measured, reason| Judgement { text: self.text.clone(), ok, measured, reason };
        let measured = match self.metric.measured(outcome) {
            Ok(measured) => measured,
            Err(why) => return judgement(false, None, why),
        };
        let bound = self.bound as f64;
        let ok = if self.or_equal { measured <= bound } else { measured < bound };
        if let Some(open) = self.metric.left_open(outcome).filter(|_| ok) {
            // What is known of the others is in the largest already.
            let is = if self.metric == Metric::Max { "is at least" } else { "of the others is" };
            let shown = Span::from_ns(measured.round() as i64);
            let reason = format!("{} {is} {shown}, but {open} may have been later", self.metric);
            return judgement(false, Some(measured), reason);
        }
        let relation = match (ok, self.or_equal) {
            (true, true) => "at most",
            (true, false) => "below",
            (false, true) => "above",
            (false, false) => "not below",
        };
        let reason = if self.metric.is_count() {
            format!("{} is {measured}, {relation} {}", self.metric, self.bound)
        } else {
            let shown = Span::from_ns(measured.round() as i64);
            format!("{} is {shown}, {relation} {}", self.metric, Span::from_ns(self.bound))
        };
        judgement(ok, Some(measured), reason)
    }
}

impl std::fmt::Display for MetricLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for MetricLimit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        Self::parse(text)
    }
}

fn time(text: &str) -> Result<i64, String> {
    match duration(text) {
        Ok(span) => Ok(span.as_ns()),
        Err(QuantityError::NoUnit { text, .. }) => {
            Err(format!("{text} needs a unit, e.g. {text}us"))
        }
        Err(other) => Err(other.to_string()),
    }
}

fn count(text: &str) -> Result<i64, String> {
    match Decimal::split(text.as_bytes()) {
        Some((number, [])) if !number.negative => match number.scaled(1, 0) {
            Scaled::Exact(count) => {
                i64::try_from(count).map_err(|_| format!("{text} is too large"))
            }
            _ => Err(format!("{text} is not a whole number; write e.g. missed<=0")),
        },
        Some((_, rest)) if !rest.is_empty() => {
            Err("a count takes no unit; write e.g. missed<=0".to_owned())
        }
        _ => Err("expected a count (0, 1, 2 …); write e.g. missed<=0".to_owned()),
    }
}

#[cfg(test)]
mod tests;
