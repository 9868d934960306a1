//! Limits that turn a run into a gate: `p99.9<50us`, `max<1ms`, `missed<1`, `jitter_pp<20us`.
//!
//! Reads the expression, judges an [`RunFigures`]. What more cycles would decide, such as a
//! quantile that n cannot support, is open; a figure that these data can never have counts as
//! failed, with the reason: nothing is promised that was not measured.

use punctual_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::imported::{Imported, ImportedQuantity};
use crate::quantile::Probability;
use crate::quantity::decimal::{Decimal, Scaled};
use crate::quantity::{QuantityError, duration};
use crate::recording::RunFigures;

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
    /// True where it holds.
    pub ok: bool,
    /// True where the data leave it open: `ok` is false then, and it is not shown to fail either.
    #[serde(default)]
    pub open: bool,
    /// The measured value: ns, or a count; null when the run does not have it.
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

    /// The metric that it limits.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The lateness threshold of the limit, ns, to be watched while recording.
    pub fn threshold_ns(&self) -> Option<i64> {
        matches!(self.metric, Metric::Quantile(_) | Metric::Max).then_some(self.bound)
    }

    /// Judges a run.
    pub fn judge(&self, outcome: &RunFigures) -> Judgement {
        let judgement = |ok, measured, reason| {
            let (text, open) = (self.text.clone(), false);
            Judgement { text, ok, open, measured, reason }
        };
        if let Some((ok, reason)) = self.beyond_histogram(outcome) {
            return judgement(ok, None, reason);
        }
        let measured = match self.metric.measured(outcome) {
            Ok(measured) => measured,
            Err(Lacking { why, open }) => {
                if let Some(reason) = self.surely_exceeded(outcome) {
                    return judgement(false, None, reason);
                }
                return Judgement { open, ..judgement(false, None, why) };
            }
        };
        let bound = self.bound as f64;
        let ok = if self.or_equal { measured <= bound } else { measured < bound };
        if let Some(later) = self.metric.left_open(outcome).filter(|_| ok) {
            // What is known of the others is in the largest already.
            let is = if self.metric == Metric::Max { "is at least" } else { "of the others is" };
            let shown = Span::from_ns(measured.round() as i64);
            let reason = format!("{} {is} {shown}, but {later} may have been later", self.metric);
            // The next wake tells how late those were that none followed; nothing tells it of those
            // that went unrecorded.
            let open = outcome.unrecorded == 0;
            return Judgement { open, ..judgement(false, Some(measured), reason) };
        }
        if !ok && let Some((least, most)) = self.between_buckets(outcome) {
            let reason = format!(
                "{} cannot be told from the buckets of the histogram: between {least} and {most} \
                 releases were later than {}; the samples decide it",
                self.metric,
                Span::from_ns(self.bound)
            );
            return Judgement { open: true, ..judgement(false, Some(measured), reason) };
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

    /// Whether it holds of a quantile that lies beyond the histogram of another program's file: it
    /// lies between the end of that and the largest value. `None` where these do not decide it.
    fn beyond_histogram(&self, outcome: &RunFigures) -> Option<(bool, String)> {
        let (Metric::Quantile(p), Some(imported)) = (self.metric, &outcome.imported) else {
            return None;
        };
        let is_lateness = imported.holds == ImportedQuantity::Lateness;
        if !is_lateness || outcome.unknown() > 0 || !imported.is_beyond(p, outcome.lateness.count())
        {
            return None;
        }
        let shown = |ns: f64| Span::from_ns(ns.round() as i64);
        let (bound_ns, bound) = (self.bound as f64, Span::from_ns(self.bound));
        let most_ns = outcome.lateness_ns.max.map(|ns| ns + imported.rounding_ns);
        if let Some(most_ns) = most_ns
            && (most_ns < bound_ns || (self.or_equal && most_ns <= bound_ns))
        {
            let reason = format!(
                "{} is at most the largest, {}, which is {} {bound}",
                self.metric,
                shown(most_ns),
                if most_ns < bound_ns { "below" } else { "at most" }
            );
            return Some((true, reason));
        }
        let least_ns = imported.limit_ns? as f64;
        (least_ns > bound_ns).then(|| {
            let reason = format!(
                "{} is at least {}, where the histogram of the file ends: above {bound}",
                self.metric,
                shown(least_ns)
            );
            (false, reason)
        })
    }

    /// Why a quantile is above the bound though it is not known itself, as it may be among releases
    /// of unknown lateness: more than it allows were later than the bound for certain.
    fn surely_exceeded(&self, outcome: &RunFigures) -> Option<String> {
        let Metric::Quantile(p) = self.metric else { return None };
        let n = outcome.lateness.count().saturating_add(outcome.unknown());
        let later = outcome.tails.counted(self.bound).least;
        let allowed = n.saturating_sub(p.rank(n));
        (p.is_supported(n) && later > allowed).then(|| {
            let bound = Span::from_ns(self.bound);
            let are = if later == 1 { "release was" } else { "releases were" };
            format!("{} is above {bound}: {later} of {n} {are} later", self.metric)
        })
    }

    /// The least and the most releases beyond its bound that the buckets of a stored histogram
    /// allow, where a quantile is on either side of it by them; `None` where they decide it.
    fn between_buckets(&self, outcome: &RunFigures) -> Option<(u64, u64)> {
        let Metric::Quantile(p) = self.metric else { return None };
        if outcome.lateness_ns.quantile(p).is_some() {
            // It is stored as it was.
            return None;
        }
        // A threshold that was not watched is decided by the histogram in full resolution.
        outcome.tails.exceedances(self.bound)?;
        let n = outcome.lateness.count().saturating_add(outcome.unknown());
        let counted = outcome.tails.counted(self.bound);
        // What went unrecorded counts as later in any case.
        let least = counted.least.saturating_add(outcome.unknown());
        let allowed = n.saturating_sub(p.rank(n));
        (counted.most > least && least <= allowed).then_some((least, counted.most))
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
        Err(error) => Err(error.to_string()),
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

/// The figure of a run that a limit is about.
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

/// The kind of its figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Of lateness; releases whose lateness is not known may have made it larger.
    Lateness,
    /// Of lateness; the smallest, which a later release does not raise.
    Least,
    /// About the fitted grid, of cycles that ran; those that went unrecorded may have made it
    /// larger.
    Grid,
    /// A number of releases or cycles.
    Count,
}

/// A metric that has a name of its own.
struct Row {
    metric: Metric,
    name: &'static str,
    kind: Kind,
    /// The fewest releases that it needs.
    needed: u64,
    figure: fn(&RunFigures) -> Option<f64>,
}

const fn row(
    metric: Metric,
    name: &'static str,
    kind: Kind,
    needed: u64,
    figure: fn(&RunFigures) -> Option<f64>,
) -> Row {
    Row { metric, name, kind, needed, figure }
}

/// All metrics but the quantiles.
static ROWS: [Row; 8] = [
    row(Metric::Max, "max", Kind::Lateness, 1, |run| run.lateness_ns.max),
    row(Metric::Min, "min", Kind::Least, 1, |run| run.lateness_ns.min),
    row(Metric::Mean, "mean", Kind::Lateness, 1, |run| run.lateness_ns.mean),
    row(Metric::Stddev, "stddev", Kind::Lateness, 2, |run| run.lateness_ns.stddev),
    row(Metric::Missed, "missed", Kind::Count, 1, |run| run.missed.map(|missed| missed as f64)),
    row(Metric::Unrecorded, "unrecorded", Kind::Count, 1, |run| Some(run.unrecorded as f64)),
    row(Metric::JitterPp, "jitter_pp", Kind::Grid, 2, |run| run.jitters.grid_pp_ns),
    row(Metric::JitterRms, "jitter_rms", Kind::Grid, 2, |run| run.jitters.grid_rms_ns),
];

/// All metrics, for errors.
fn known() -> String {
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    format!("p50 … p99.9…, {}", names.join(", "))
}

impl Metric {
    fn parse(name: &str) -> Result<Self, String> {
        if name.is_empty() {
            return Err(format!("no metric before the <; expected one of {}", known()));
        }
        match ROWS.iter().find(|row| row.name == name) {
            Some(row) => Ok(row.metric),
            None => Self::parse_quantile(name),
        }
    }

    fn parse_quantile(name: &str) -> Result<Self, String> {
        let unknown = || format!("{name} is not a metric; expected one of {}", known());
        // p99_9 is how the JSON key is spelled.
        let percent = name.strip_prefix('p').ok_or_else(unknown)?.replacen('_', ".", 1);
        let Some((number, [])) = Decimal::split(percent.as_bytes()) else { return Err(unknown()) };
        let outside = || {
            format!(
                "{name} is not a quantile: it must be between p0 and p100, e.g. \
                                 p99.9"
            )
        };
        match number.scaled(1, 7) {
            Scaled::Exact(ppb) => u64::try_from(ppb)
                .ok()
                .and_then(Probability::from_ppb)
                .map(Self::Quantile)
                .ok_or_else(outside),
            Scaled::Rounded(_) => Err(format!(
                "{name} has too many digits; the finest is \
                                              p99.9999999"
            )),
            Scaled::TooLarge => Err(outside()),
        }
    }

    /// Its row; `None` for a quantile.
    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.metric == self)
    }

    fn kind(self) -> Kind {
        self.row().map_or(Kind::Lateness, |row| row.kind)
    }

    fn is_count(self) -> bool {
        self.kind() == Kind::Count
    }

    /// Releases whose lateness is not known, in words: they could have made the figure larger by an
    /// unknown amount. A quantile takes them for the latest of all.
    fn left_open(self, outcome: &RunFigures) -> Option<String> {
        let censored = match (self, self.kind()) {
            (Self::Quantile(_), _) | (_, Kind::Least | Kind::Count) => return None,
            (_, Kind::Grid) => 0,
            (_, Kind::Lateness) => outcome.censored,
        };
        unknown(censored, outcome.unrecorded)
    }

    /// Why another program's data cannot be judged by it; `Ok` where they can.
    fn imported(self, outcome: &RunFigures, imported: &Imported) -> Result<(), Lacking> {
        let holds = imported.holds;
        let absent =
            || Err(Lacking::never(format!("{self} is not in the data of {}", imported.program)));
        match self {
            Self::Missed if outcome.missed.is_some() => Ok(()),
            Self::Unrecorded if outcome.unrecorded > 0 => Ok(()),
            Self::Missed | Self::Unrecorded => absent(),
            _ if holds != ImportedQuantity::Lateness => {
                let why = format!("{self} needs lateness, but this run holds {}", holds.many());
                Err(Lacking::never(why))
            }
            Self::Quantile(p) if imported.is_beyond(p, outcome.lateness.count()) => {
                let limit = imported.limit_ns.map_or_else(
                    || "which the file does not have".to_owned(),
                    |ns| format!("which ends at {}", Span::from_ns(ns)),
                );
                let why = format!("{self} is beyond the histogram of the file, {limit}");
                Err(Lacking::never(why))
            }
            _ => Ok(()),
        }
    }

    /// The figure, in ns or as a count; why there is none otherwise.
    fn measured(self, outcome: &RunFigures) -> Result<f64, Lacking> {
        if let Some(imported) = &outcome.imported {
            self.imported(outcome, imported)?;
        }
        let n = outcome.lateness.count();
        let rounding_ns = outcome.imported.as_ref().map_or(0.0, |imported| imported.rounding_ns);
        let (value, needed) = match self {
            Self::Quantile(p) => {
                let lost = outcome.unknown();
                if n > 0
                    && p.rank(n.saturating_add(lost)) > n
                    && let Some(which) = unknown(outcome.censored, outcome.unrecorded)
                {
                    return Err(Lacking::so_far(format!("{self} may be among the {which}")));
                }
                let value = outcome.lateness.quantile_below(p, lost).map(|ns| ns as f64);
                // A result has those of its summary as they were, finer than its buckets.
                let stored = outcome.lateness_ns.quantile(p);
                let value = value.map(|ns| stored.filter(|stored| *stored <= ns).unwrap_or(ns));
                (value, p.samples_needed())
            }
            // A run without releases lost nothing, and shows nothing.
            _ if self.is_count() && outcome.cycles == 0 && outcome.missed.unwrap_or(0) == 0 => {
                (None, 1)
            }
            _ => self.row().map_or((None, 1), |row| ((row.figure)(outcome), row.needed)),
        };
        // The extremes and the mean of another program's data may be rounded down.
        let rounded = matches!(self, Self::Max | Self::Min | Self::Mean);
        let value = value.map(|ns| if rounded { ns + rounding_ns } else { ns });
        value.ok_or_else(|| self.absent(outcome, n, needed))
    }

    /// Why there is no figure.
    fn absent(self, outcome: &RunFigures, n: u64, needed: u64) -> Lacking {
        let is_grid = self.kind() == Kind::Grid;
        if self == Self::Missed && outcome.missed.is_none() {
            let why = "missed: the data do not record which releases were missed";
            return Lacking::never(why.to_owned());
        }
        // Of another program a histogram holds every quantile that its cycles support.
        let has_too_few = matches!(self, Self::Quantile(_)) && n < needed;
        let imported = outcome.imported.as_ref().filter(|_| (n > 0 && !has_too_few) || is_grid);
        if let Some(imported) = imported {
            Lacking::never(format!("{self} is not in the data of {}", imported.program))
        } else if is_grid && outcome.cycles >= needed {
            Lacking::never(format!("{self} needs a fitted grid, which this run does not have"))
        } else if outcome.cycles > 0 && n == 0 {
            Lacking::never(format!("{self} needs lateness, but this run holds none"))
        } else {
            Lacking::so_far(format!("{self} needs at least {needed} cycles; this run has {n}"))
        }
    }
}

/// Why there is no figure.
struct Lacking {
    /// In a line.
    why: String,
    /// True where more cycles would give it.
    open: bool,
}

impl Lacking {
    /// These data can never have it.
    fn never(why: String) -> Self {
        Self { why, open: false }
    }

    /// More cycles would give it.
    fn so_far(why: String) -> Self {
        Self { why, open: true }
    }
}

/// Releases whose lateness is not known, in words; `None` where there are none.
fn unknown(censored: u64, unrecorded: u64) -> Option<String> {
    match (censored, unrecorded) {
        (0, 0) => None,
        (0, lost) => Some(format!("{lost} cycles that went unrecorded")),
        (missed, 0) => Some(format!("{missed} missed releases that no wake followed")),
        (missed, lost) => {
            Some(format!("{lost} cycles that went unrecorded and the {missed} missed releases"))
        }
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Quantile(p) => p.fmt(f),
            named => f.write_str(named.row().map_or("", |row| row.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Period;

    use crate::quantile::Probability;
    use crate::recording::{Recording, RecordingConfig};

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
        assert_eq!((open.ok, open.open, open.measured), (false, true, None));
        // 13 and the three of 103 were later than 88 µs; p99 allows one.
        let broken = judged("p99<88us");
        assert_eq!((broken.ok, broken.open), (false, false), "{broken:?}");
        assert!(broken.reason.starts_with("p99 is above 88.0 µs: "), "{broken:?}");
        for text in ["max<1s", "mean<1s", "stddev<1s"] {
            let open = judged(text);
            assert!(
                open.open && open.reason.contains("but 3 missed releases that no wake"),
                "{open:?}"
            );
            assert!(!open.ok, "{open:?}");
        }
        assert!(!judged("max<1us").open, "broken by what is known");
        assert!(judged("jitter_pp<1ms").ok, "of cycles that ran");
    }

    #[test]
    fn what_too_few_cycles_do_not_show_is_open_with_the_reason() {
        let judgement = judged("p99.9<1s", 100);
        assert_eq!((judgement.ok, judgement.open, judgement.measured), (false, true, None));
        assert_eq!(judgement.reason, "p99.9 needs at least 1000 cycles; this run has 101");
        assert_eq!(judged("p99_9<1s", 100).reason, judgement.reason);
        let empty = Recording::new(RecordingConfig::default()).finish(0);
        for text in ["jitter_pp<1s", "max<1s", "stddev<1s", "missed<1"] {
            let nothing_ran = MetricLimit::parse(text).unwrap().judge(&empty);
            assert!(!nothing_ran.ok && nothing_ran.open, "{nothing_ran:?}");
        }
    }

    #[test]
    fn what_the_data_can_never_have_fails_with_the_reason() {
        let mut figures = recording(100, 0).finish(0);
        figures.missed = None;
        let judged =
            |text: &str, figures: &RunFigures| MetricLimit::parse(text).unwrap().judge(figures);
        let unknown = judged("missed<1", &figures);
        assert!(!unknown.ok && !unknown.open && unknown.reason.contains("do not record"));
        figures.jitters.grid_pp_ns = None;
        let without_grid = judged("jitter_pp<1s", &figures);
        assert!(!without_grid.ok && !without_grid.open, "{without_grid:?}");
        assert!(without_grid.reason.contains("fitted grid"), "{without_grid:?}");
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
        let enough = judged(100, "p99<99.1us");
        assert_eq!((enough.ok, enough.measured), (true, Some(99_000.0)));
        let lost = judged(200, "p99<1s");
        assert_eq!((lost.ok, lost.open, lost.measured), (false, true, None));
        assert_eq!(lost.reason, "p99 may be among the 200 cycles that went unrecorded");
        for text in ["max<1ms", "mean<1ms", "stddev<1ms", "jitter_pp<1ms", "jitter_rms<1ms"] {
            let judgement = judged(1, text);
            assert!(
                !judgement.ok && judgement.reason.contains("but 1 cycles that went unrecorded"),
                "{text}"
            );
            assert!(!judgement.open, "no further cycle tells it: {text}");
        }
        assert!(judged(1, "min<1ms").ok && judged(1, "missed<1").ok);
        assert!(judged(1, "max<10us").reason.contains("not below"), "broken all the same");
    }

    #[test]
    fn a_quantile_within_a_bucket_of_a_stored_result_is_open_and_others_are_decided() {
        let mut recording = Recording::new(RecordingConfig {
            period: Period::from_ns(10_000_000),
            ..RecordingConfig::default()
        });
        // 1 µs to 3 ms: many octaves, so that the buckets of a result are wide.
        (0..3_000u64).for_each(|cycle| {
            let lateness = Span::from_us(cycle as i64 + 1);
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        });
        let whole = recording.finish(0);
        let text = serde_json::to_string(&whole).expect("figures");
        let judged = |text: String| {
            let stored: RunFigures = serde_json::from_str(&text).expect("the same");
            move |limit: &str| {
                let limit = MetricLimit::parse(limit).unwrap();
                let stored = stored.clone().read_back(&[limit.threshold_ns().unwrap()]);
                (limit.judge(&stored.expect("sound")), limit.judge(&whole))
            }
        };
        let judged = judged(text);
        let mut open = 0;
        for us in 2_300..2_500 {
            for metric in ["p80", "p90", "p99"] {
                let (read, exact) = judged(&format!("{metric}<{us}us"));
                assert!(!exact.open);
                match read.open {
                    true => {
                        open += 1;
                        assert!(!read.ok && read.reason.contains("buckets"), "{read:?}");
                        // Those of the summary are stored as they were.
                        assert_eq!(metric, "p80", "{read:?}");
                    }
                    false => assert_eq!(read.ok, exact.ok, "{read:?} {exact:?}"),
                }
            }
        }
        assert!((1..50).contains(&open), "{open} of 200 lie in its bucket");
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

    #[test]
    fn every_row_reads_as_it_shows() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(Metric::parse(row.name), Ok(row.metric));
            assert_eq!(row.metric.to_string(), row.name);
            assert!(ROWS[..at].iter().all(|earlier| earlier.metric != row.metric), "{}", row.name);
        }
    }
}
