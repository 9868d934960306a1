//! What a limit can be about, and the figure of a run that it names.
//!
//! One table: a new metric is a variant and its row. For `limit`; judges nothing.

use punctual_core::time::Span;

use crate::imported::{Imported, ImportedQuantity};
use crate::quantile::Probability;
use crate::quantity::decimal::{Decimal, Scaled};
use crate::recording::RunFigures;

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

/// What kind of figure it is.
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
    /// How many releases it needs at least.
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
    row(Metric::Max, "max", Kind::Lateness, 1, |of| of.lateness_ns.max),
    row(Metric::Min, "min", Kind::Least, 1, |of| of.lateness_ns.min),
    row(Metric::Mean, "mean", Kind::Lateness, 1, |of| of.lateness_ns.mean),
    row(Metric::Stddev, "stddev", Kind::Lateness, 2, |of| of.lateness_ns.stddev),
    row(Metric::Missed, "missed", Kind::Count, 1, |of| of.missed.map(|missed| missed as f64)),
    row(Metric::Unrecorded, "unrecorded", Kind::Count, 1, |of| Some(of.unrecorded as f64)),
    row(Metric::JitterPp, "jitter_pp", Kind::Grid, 2, |of| of.jitters.grid_pp_ns),
    row(Metric::JitterRms, "jitter_rms", Kind::Grid, 2, |of| of.jitters.grid_rms_ns),
];

/// All metrics, for errors.
fn known() -> String {
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    format!("p50 … p99.9…, {}", names.join(", "))
}

impl Metric {
    pub(super) fn parse(name: &str) -> Result<Self, String> {
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

    pub(super) fn is_count(self) -> bool {
        self.kind() == Kind::Count
    }

    /// Releases whose lateness is not known, in words: they could have made the figure larger by an
    /// unknown amount. A quantile takes them for the latest of all.
    pub(super) fn left_open(self, outcome: &RunFigures) -> Option<String> {
        let censored = match (self, self.kind()) {
            (Self::Quantile(_), _) | (_, Kind::Least | Kind::Count) => return None,
            (_, Kind::Grid) => 0,
            (_, Kind::Lateness) => outcome.censored,
        };
        unknown(censored, outcome.unrecorded)
    }

    /// Why another program's data cannot be judged by it; `Ok` where they can.
    fn imported(self, outcome: &RunFigures, imported: &Imported) -> Result<(), String> {
        let holds = imported.holds;
        let absent = || Err(format!("{self} is not in the data of {}", imported.program));
        match self {
            Self::Missed if outcome.missed.is_some() => Ok(()),
            Self::Unrecorded if outcome.unrecorded > 0 => Ok(()),
            Self::Missed | Self::Unrecorded => absent(),
            _ if holds != ImportedQuantity::Lateness => {
                Err(format!("{self} needs lateness, but this run holds {}", holds.many()))
            }
            Self::Quantile(p) if imported.is_beyond(p, outcome.lateness.count()) => {
                let limit = imported.limit_ns.map_or_else(
                    || "which the file does not have".to_owned(),
                    |ns| format!("which ends at {}", Span::from_ns(ns)),
                );
                Err(format!("{self} is beyond the histogram of the file, {limit}"))
            }
            _ => Ok(()),
        }
    }

    /// The figure, in ns or as a count; why there is none otherwise.
    pub(super) fn measured(self, outcome: &RunFigures) -> Result<f64, String> {
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
                    return Err(format!("{self} may be among the {which}"));
                }
                let value = outcome.lateness.quantile_below(p, lost);
                (value.map(|ns| ns as f64), p.samples_needed())
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
    fn absent(self, outcome: &RunFigures, n: u64, needed: u64) -> String {
        let is_grid = self.kind() == Kind::Grid;
        if self == Self::Missed && outcome.missed.is_none() {
            return "missed: the data do not record which releases were missed".to_owned();
        }
        if let Some(imported) = outcome.imported.as_ref().filter(|_| n > 0 || is_grid) {
            format!("{self} is not in the data of {}", imported.program)
        } else if is_grid {
            format!("{self} needs a fitted grid, which this run does not have")
        } else if outcome.cycles > 0 && n == 0 {
            format!("{self} needs lateness, but this run holds none")
        } else {
            format!("{self} needs at least {needed} cycles; this run has {n}")
        }
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

    #[test]
    fn every_row_reads_as_it_shows() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(Metric::parse(row.name), Ok(row.metric));
            assert_eq!(row.metric.to_string(), row.name);
            assert!(ROWS[..at].iter().all(|other| other.metric != row.metric), "{}", row.name);
        }
    }
}
