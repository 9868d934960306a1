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
mod tests {
    use super::*;
    use crate::quantile::Probability;
    use crate::recording::{Recording, RecordingConfig};
    use proptest::prelude::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Period;

    /// `n` cycles of 1 ms with latenesses 1, 2, … n µs, then one after `missed` releases.
    fn recording(n: u64, missed: u64) -> Recording {
        let mut recording = Recording::new(RecordingConfig {
            period: Period::from_ns(1_000_000),
            ..RecordingConfig::default()
        });
        let sample = |cycle, us| Sample { cycle, lateness: Span::from_us(us), flags: Flags::NONE };
        (0..n).for_each(|k| recording.push(&sample(k, k as i64 + 1)));
        recording.push(&sample(n + missed, 1));
        recording
    }

    fn judged(text: &str, n: u64) -> Judgement {
        MetricLimit::parse(text).unwrap().judge(&recording(n, 0).finish(0))
    }

    fn judged_with_missed(text: &str, n: u64, missed: u64) -> Judgement {
        MetricLimit::parse(text).unwrap().judge(&recording(n, missed).finish(0))
    }

    #[test]
    fn limits_are_judged() {
        assert!(judged("max<101us", 100).ok && !judged("max<100us", 100).ok);
        assert!(judged("max<=100us", 100).ok);
        assert!(judged(" p50 < 60us", 100).ok && !judged("p50<40us", 100).ok);
        let missed = |text| judged_with_missed(text, 10, 2);
        assert!(missed("missed<3").ok && !missed("missed<=1").ok);
        assert_eq!(missed("missed<1").measured, Some(2.0));
        assert!(judged("mean<60us", 100).ok && judged("stddev<60us", 100).ok);
        assert!(judged("jitter_pp<1ms", 100).ok && !judged("jitter_pp<1ns", 100).ok);
        assert_eq!(judged("max<100us", 100).reason, "max is 100 µs, not below 100 µs");
        assert_eq!(missed("missed<=0").reason, "missed is 2, above 0");
    }

    #[test]
    fn missed_releases_break_the_limits_that_their_lateness_breaks() {
        // Ten wakes of 1 to 10 µs; two releases waited 2.001 and 1.001 ms for the eleventh.
        let judged = |text| judged_with_missed(text, 10, 2);
        assert_eq!(judged("max<2ms").reason, "max is 2.00 ms, not below 2.00 ms");
        assert_eq!(judged("max<2ms").measured, Some(2_001_000.0));
        assert!(
            judged("p50<8us").ok && !judged("p90<1ms").ok,
            "12 of 13 are at most 1.001 ms late"
        );
        assert!(!judged("mean<100us").ok);
        // Of one that no wake followed nothing more is known than that it was a period late.
        let outcome = recording(100, 0).finish_with(3, 0);
        let judged = |text: &str| MetricLimit::parse(text).unwrap().judge(&outcome);
        assert!(judged("p90<1ms").ok && judged("p50<1ms").ok && judged("min<1ms").ok);
        let open = judged("p99<1s");
        assert_eq!(open.reason, "p99 may be among the 3 missed releases that no wake followed");
        assert_eq!((open.ok, open.measured), (false, None));
        for text in ["max<1s", "mean<1s", "stddev<1s"] {
            let open = judged(text);
            assert!(
                !open.ok && open.reason.contains("but 3 missed releases that no wake"),
                "{open:?}"
            );
        }
        assert!(judged("jitter_pp<1ms").ok, "of cycles that ran");
    }

    #[test]
    fn an_unsupported_quantile_fails_with_the_reason() {
        let judgement = judged("p99.9<1s", 100);
        assert_eq!((judgement.ok, judgement.measured), (false, None));
        assert_eq!(judgement.reason, "p99.9 needs at least 1000 cycles; this run has 101");
        assert_eq!(judged("p99_9<1s", 100).reason, judgement.reason);
        let empty = Recording::new(RecordingConfig::default()).finish(0);
        assert!(!MetricLimit::parse("jitter_pp<1s").unwrap().judge(&empty).ok);
        assert!(!MetricLimit::parse("max<1s").unwrap().judge(&empty).ok);
        assert!(!MetricLimit::parse("missed<1").unwrap().judge(&empty).ok, "nothing ran");
    }

    #[test]
    fn what_went_unrecorded_may_have_been_later() {
        let mut recording = Recording::new(RecordingConfig {
            period: Period::from_ns(1_000_000),
            ..RecordingConfig::default()
        });
        (0..10_000i64).for_each(|k| {
            let (cycle, lateness) = (k as u64, Span::from_us(k / 100));
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        });
        let judged = |unrecorded, text| {
            MetricLimit::parse(text).unwrap().judge(&recording.clone().finish_with(0, unrecorded))
        };
        assert!(judged(0, "p99<99us").ok && judged(0, "max<1ms").ok);
        // 100 of 10 100 are 0.99 %: the last recorded one stands for the 99 % quantile.
        let all = judged(100, "p99<99.1us");
        assert_eq!((all.ok, all.measured), (true, Some(99_000.0)));
        let lost = judged(200, "p99<1s");
        assert_eq!((lost.ok, lost.measured), (false, None));
        assert_eq!(lost.reason, "p99 may be among the 200 cycles that went unrecorded");
        for text in ["max<1ms", "mean<1ms", "stddev<1ms", "jitter_pp<1ms", "jitter_rms<1ms"] {
            let judgement = judged(1, text);
            assert!(
                !judgement.ok && judgement.reason.contains("but 1 cycles that went unrecorded"),
                "{text}"
            );
        }
        assert!(judged(1, "min<1ms").ok && judged(1, "missed<1").ok);
        assert!(judged(1, "max<10us").reason.contains("not below"), "broken all the same");
    }

    #[test]
    fn bad_limits_get_one_clear_line() {
        for (text, part) in [
            ("p99.9", "there is no <"),
            ("max>1ms", "must be an upper bound"),
            ("max<5", "5 needs a unit, e.g. 5us"),
            ("max<", "got nothing"),
            ("<5us", "no metric before"),
            ("latency<5us", "not a metric; expected one of"),
            ("p100<5us", "must be between p0 and p100"),
            ("p99.99999999<5us", "the finest is p99.9999999"),
            ("pqr<5us", "not a metric"),
            ("missed<1us", "no unit"),
            ("missed<0.5", "not a whole number"),
            ("missed<-1", "a count"),
            ("max<5Nm", "a torque"),
            ("max<0us", "zero"),
        ] {
            let message = MetricLimit::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
            assert!(message.contains(&format!("{text:?}")) && !message.contains('\n'), "{message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = MetricLimit::parse(&text);
        }

        #[test]
        fn quantiles_read_as_they_show(ppb in 1u64..1_000_000_000, ns in 1i64..1_000_000_000_000) {
            let p = Probability::from_ppb(ppb).unwrap();
            let limit = MetricLimit::parse(&format!("{p} <= {ns}ns")).unwrap();
            prop_assert_eq!(limit.metric(), Metric::Quantile(p));
            prop_assert_eq!(limit.threshold_ns(), Some(ns));
        }
    }
}
