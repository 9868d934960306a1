//! Limits that turn a run into a gate: `p99.9<50us`, `max<1ms`, `missed<1`, `jitter_pp<20us`.
//!
//! Reads the expression, judges an [`Outcome`]. A quantile that n cannot support, or a figure that
//! was not measured, counts as failed with the reason: what was not measured is not promised.

use punctual_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::import::imported::{Holds, Imported};
use crate::quantile::Probability;
use crate::quantity::{QuantityError, decimal::Decimal, decimal::Scaled, duration};
use crate::recording::Outcome;

/// What a limit is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A quantile of lateness.
    Quantile(Probability),
    /// Largest lateness.
    Max,
    /// Smallest lateness.
    Min,
    /// Mean lateness.
    Mean,
    /// Standard deviation of lateness.
    Stddev,
    /// Releases that never ran.
    Missed,
    /// Cycles that did not fit in the recorder.
    Unrecorded,
    /// Peak-to-peak about the fitted grid.
    JitterPp,
    /// Root mean square about the fitted grid.
    JitterRms,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    metric: Metric,
    or_equal: bool,
    /// Nanoseconds, or a count.
    bound: i64,
    text: String,
}

/// What a limit says of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The limit as it was written, without spaces.
    pub text: String,
    /// Whether it holds.
    pub ok: bool,
    /// What was measured: ns, or a count; null when the run cannot say.
    pub measured: Option<f64>,
    /// One line: what was measured against what, or why it could not be.
    pub reason: String,
}

/// Why an expression is no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit {text:?}: {why}")]
pub struct LimitError {
    text: String,
    why: String,
}

const METRICS: &str =
    "p50 … p99.9…, max, min, mean, stddev, missed, unrecorded, jitter_pp, jitter_rms";

impl Limit {
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
            return Err(refused("a limit is an upper one: write < or <=, e.g. max<1ms".to_owned()));
        }
        let Some((name, rest)) = compact.split_once('<') else {
            return Err(refused("no < in it; write e.g. p99.9<50us".to_owned()));
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

    /// A lateness threshold that it asks about, ns, to be watched while recording.
    pub fn threshold_ns(&self) -> Option<i64> {
        matches!(self.metric, Metric::Quantile(_) | Metric::Max).then_some(self.bound)
    }

    /// Judges a run.
    pub fn judge(&self, outcome: &Outcome) -> Judgement {
        let judgement =
            |ok, measured, reason| Judgement { text: self.text.clone(), ok, measured, reason };
        let measured = match self.metric.measured(outcome) {
            Ok(measured) => measured,
            Err(why) => return judgement(false, None, why),
        };
        let bound = self.bound as f64;
        let ok = if self.or_equal { measured <= bound } else { measured < bound };
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

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for Limit {
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
            _ => Err(format!("{text} is no whole number; write e.g. missed<=0")),
        },
        Some((_, rest)) if !rest.is_empty() => {
            Err("a count has no unit; write e.g. missed<=0".to_owned())
        }
        _ => Err("a count (0, 1, 2 …) is needed; write e.g. missed<=0".to_owned()),
    }
}

impl Metric {
    fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "max" => Self::Max,
            "min" => Self::Min,
            "mean" => Self::Mean,
            "stddev" => Self::Stddev,
            "missed" => Self::Missed,
            "unrecorded" => Self::Unrecorded,
            "jitter_pp" => Self::JitterPp,
            "jitter_rms" => Self::JitterRms,
            "" => return Err(format!("no metric before the <; there are {METRICS}")),
            _ => return Self::parse_quantile(name),
        })
    }

    fn parse_quantile(name: &str) -> Result<Self, String> {
        let unknown = || format!("{name} is no metric; there are {METRICS}");
        // p99_9 is how the JSON key is spelled.
        let percent = name.strip_prefix('p').ok_or_else(unknown)?.replacen('_', ".", 1);
        let Some((number, [])) = Decimal::split(percent.as_bytes()) else { return Err(unknown()) };
        let outside = || format!("{name} is no quantile; one lies between p0 and p100, e.g. p99.9");
        match number.scaled(1, 7) {
            Scaled::Exact(ppb) => u64::try_from(ppb)
                .ok()
                .and_then(Probability::from_ppb)
                .map(Self::Quantile)
                .ok_or_else(outside),
            Scaled::Rounded(_) => Err(format!("{name} is finer than p99.9999999")),
            Scaled::TooLarge => Err(outside()),
        }
    }

    /// Why another program's data cannot be held to it; `Ok` where they can.
    fn told(self, outcome: &Outcome, imported: &Imported) -> Result<(), String> {
        let holds = imported.holds;
        match self {
            Self::Missed if outcome.missed.is_some() => Ok(()),
            Self::Missed => Err(format!("missed is not in what {} tells", imported.program)),
            Self::Unrecorded if outcome.unrecorded > 0 => Ok(()),
            Self::Unrecorded => {
                Err(format!("unrecorded is not in what {} tells", imported.program))
            }
            _ if holds != Holds::Lateness => {
                Err(format!("{self} is about lateness, and this run holds {}", holds.many()))
            }
            Self::Quantile(p) if imported.is_beyond(p, outcome.lateness.count()) => {
                let limit = imported.limit_ns.map_or_else(
                    || "which it does not have".to_owned(),
                    |ns| format!("which ends at {}", Span::from_ns(ns)),
                );
                Err(format!("{self} is beyond the histogram of the file, {limit}"))
            }
            _ => Ok(()),
        }
    }

    fn is_count(self) -> bool {
        matches!(self, Self::Missed | Self::Unrecorded)
    }

    /// The figure, in ns or as a count; why there is none otherwise.
    fn measured(self, outcome: &Outcome) -> Result<f64, String> {
        if let Some(imported) = &outcome.imported {
            self.told(outcome, imported)?;
        }
        let rounding_ns = outcome.imported.as_ref().map_or(0.0, |told| told.rounding_ns);
        let stats = &outcome.lateness_ns;
        let n = outcome.lateness.count();
        let (value, needed) = match self {
            // A run that did not run has lost nothing, and shows nothing.
            Self::Missed | Self::Unrecorded
                if outcome.cycles == 0 && outcome.missed.is_none_or(|missed| missed == 0) =>
            {
                (None, 1)
            }
            Self::Missed => {
                let missed = outcome.missed.map(|missed| missed as f64);
                return missed.ok_or_else(|| "missed: the data do not say".to_owned());
            }
            Self::Unrecorded => return Ok(outcome.unrecorded as f64),
            Self::Quantile(p) => {
                (outcome.lateness.quantile(p).map(|ns| ns as f64), p.samples_needed())
            }
            Self::Max => (stats.max.map(|ns| ns + rounding_ns), 1),
            Self::Min => (stats.min.map(|ns| ns + rounding_ns), 1),
            Self::Mean => (stats.mean.map(|ns| ns + rounding_ns), 1),
            Self::Stddev => (stats.stddev, 2),
            Self::JitterPp => (outcome.jitters.grid_pp_ns, 2),
            Self::JitterRms => (outcome.jitters.grid_rms_ns, 2),
        };
        let is_grid = matches!(self, Self::JitterPp | Self::JitterRms);
        value.ok_or_else(|| {
            if let Some(imported) = outcome.imported.as_ref().filter(|_| n > 0 || is_grid) {
                format!("{self} is not in what {} tells", imported.program)
            } else if is_grid {
                format!("{self} needs a fitted grid, which this run does not give")
            } else if outcome.cycles > 0 && n == 0 {
                format!("{self} needs latenesses, and this run holds none")
            } else {
                format!("{self} needs at least {needed} cycles; this run has {n}")
            }
        })
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Quantile(p) => p.fmt(f),
            Self::Max => f.write_str("max"),
            Self::Min => f.write_str("min"),
            Self::Mean => f.write_str("mean"),
            Self::Stddev => f.write_str("stddev"),
            Self::Missed => f.write_str("missed"),
            Self::Unrecorded => f.write_str("unrecorded"),
            Self::JitterPp => f.write_str("jitter_pp"),
            Self::JitterRms => f.write_str("jitter_rms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Recording, Setup};
    use proptest::prelude::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Period;

    /// `n` cycles with latenesses 1, 2, … n µs, then one after a gap of two.
    fn outcome(n: u64) -> Outcome {
        let mut recording =
            Recording::new(Setup { period: Period::from_ns(1_000_000), ..Setup::default() });
        let sample = |cycle, us| Sample { cycle, lateness: Span::from_us(us), flags: Flags::NONE };
        (0..n).for_each(|k| recording.push(&sample(k, k as i64 + 1)));
        recording.push(&sample(n + 2, 1));
        recording.finish(0)
    }

    fn judged(text: &str, n: u64) -> Judgement {
        Limit::parse(text).unwrap().judge(&outcome(n))
    }

    #[test]
    fn limits_are_judged() {
        assert!(judged("max<101us", 100).ok && !judged("max<100us", 100).ok);
        assert!(judged("max<=100us", 100).ok);
        assert!(judged(" p50 < 60us", 100).ok && !judged("p50<40us", 100).ok);
        assert!(judged("missed<3", 10).ok && !judged("missed<=1", 10).ok);
        assert_eq!(judged("missed<1", 10).measured, Some(2.0));
        assert!(judged("mean<60us", 100).ok && judged("stddev<60us", 100).ok);
        assert!(judged("jitter_pp<1ms", 100).ok && !judged("jitter_pp<1ns", 100).ok);
        assert_eq!(judged("max<100us", 100).reason, "max is 100 µs, not below 100 µs");
        assert_eq!(judged("missed<=0", 10).reason, "missed is 2, above 0");
    }

    #[test]
    fn an_unsupported_quantile_fails_with_the_reason() {
        let judgement = judged("p99.9<1s", 100);
        assert_eq!((judgement.ok, judgement.measured), (false, None));
        assert_eq!(judgement.reason, "p99.9 needs at least 1000 cycles; this run has 101");
        assert_eq!(judged("p99_9<1s", 100).reason, judgement.reason);
        let empty = Recording::new(Setup::default()).finish(0);
        assert!(!Limit::parse("jitter_pp<1s").unwrap().judge(&empty).ok);
        assert!(!Limit::parse("max<1s").unwrap().judge(&empty).ok);
        assert!(!Limit::parse("missed<1").unwrap().judge(&empty).ok, "nothing ran");
    }

    #[test]
    fn bad_limits_get_one_clear_line() {
        for (text, part) in [
            ("p99.9", "no < in it"),
            ("max>1ms", "upper one"),
            ("max<5", "5 needs a unit, e.g. 5us"),
            ("max<", "nothing stands"),
            ("<5us", "no metric before"),
            ("latency<5us", "no metric; there are"),
            ("p100<5us", "between p0 and p100"),
            ("p99.99999999<5us", "finer than"),
            ("pqr<5us", "no metric"),
            ("missed<1us", "no unit"),
            ("missed<0.5", "no whole number"),
            ("missed<-1", "a count"),
            ("max<5Nm", "a torque"),
            ("max<0us", "zero"),
        ] {
            let message = Limit::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
            assert!(message.contains(&format!("{text:?}")) && !message.contains('\n'), "{message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = Limit::parse(&text);
        }

        #[test]
        fn quantiles_read_as_they_show(ppb in 1u64..1_000_000_000, ns in 1i64..1_000_000_000_000) {
            let p = Probability::from_ppb(ppb).unwrap();
            let limit = Limit::parse(&format!("{p} <= {ns}ns")).unwrap();
            prop_assert_eq!(limit.metric(), Metric::Quantile(p));
            prop_assert_eq!(limit.threshold_ns(), Some(ns));
        }
    }
}
