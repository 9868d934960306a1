//! What a limit can be about, and the figure of a run that it names.
//!
//! For `limit`. Judges nothing.

use punctual_core::time::Span;

use crate::histogram::Histogram;
use crate::import::imported::{Holds, Imported};
use crate::quantile::Probability;
use crate::quantity::decimal::{Decimal, Scaled};
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

const METRICS: &str =
    "p50 … p99.9…, max, min, mean, stddev, missed, unrecorded, jitter_pp, jitter_rms";

/// A quantile where `unrecorded` more cycles ran, taken for later than all: with lost cycles a
/// larger one of those recorded.
fn of_all(lateness: &Histogram, p: Probability, unrecorded: u64) -> Option<f64> {
    let n = lateness.count();
    let value = match unrecorded {
        0 => lateness.quantile(p),
        _ if !p.is_supported(n) => None,
        lost => lateness.order_statistic(p.rank(n.saturating_add(lost))),
    };
    value.map(|ns| ns as f64)
}

impl Metric {
    pub(super) fn parse(name: &str) -> Result<Self, String> {
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

    /// Whether cycles that went unrecorded could have made the figure larger, and it does not say
    /// by how much. A quantile takes them for the latest of all.
    pub(super) fn misses_unrecorded(self) -> bool {
        match self {
            Self::Max | Self::Mean | Self::Stddev | Self::JitterPp | Self::JitterRms => true,
            Self::Quantile(_) | Self::Min | Self::Missed | Self::Unrecorded => false,
        }
    }

    pub(super) fn is_count(self) -> bool {
        matches!(self, Self::Missed | Self::Unrecorded)
    }

    /// The figure, in ns or as a count; why there is none otherwise.
    pub(super) fn measured(self, outcome: &Outcome) -> Result<f64, String> {
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
                if n > 0 && p.rank(n.saturating_add(outcome.unrecorded)) > n {
                    return Err(format!(
                        "{self} may be one of the {} cycles that went unrecorded",
                        outcome.unrecorded
                    ));
                }
                (of_all(&outcome.lateness, p, outcome.unrecorded), p.samples_needed())
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
