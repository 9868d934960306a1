//! The description of a run that another program recorded: which quantity its values are, how
//! coarse they are, and what they do not record.
//!
//! Plain data, part of [`crate::recording::RunFigures`]; reads nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantile::Probability;
use crate::summary::SummaryStats;

/// Which quantity of the glossary the values of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImportedQuantity {
    /// wake − release.
    Lateness,
    /// Start of the timer's interrupt handler − release: the first part of a lateness.
    InterruptLateness,
    /// wake − previous wake − period, signed.
    Interval,
    /// A time that the CPU was elsewhere, inside a spin.
    Stall,
    /// From a stimulus to the answer.
    Response,
}

impl ImportedQuantity {
    /// Several of them, in words.
    pub fn many(self) -> &'static str {
        match self {
            Self::Lateness => "latenesses",
            Self::InterruptLateness => "latenesses of the interrupt",
            Self::Interval => "intervals",
            Self::Stall => "stalls",
            Self::Response => "responses",
        }
    }

    /// One of them, in a word.
    pub fn one(self) -> &'static str {
        match self {
            Self::Lateness => "lateness",
            Self::InterruptLateness => "lateness of the interrupt",
            Self::Interval => "interval",
            Self::Stall => "stall",
            Self::Response => "response",
        }
    }

    /// The words of a claim for one that is above a bound: "later than".
    pub fn above(self) -> &'static str {
        match self {
            Self::Lateness | Self::InterruptLateness => "later than",
            Self::Interval | Self::Stall | Self::Response => "longer than",
        }
    }
}

/// The quantity that another program's data hold, and the facts that they do not record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// The format: "cyclictest --json".
    pub format: String,
    /// The program that wrote it.
    pub program: String,
    /// Its version; null where the file does not record it.
    pub version: Option<String>,
    /// Its command line; null where the file does not record it.
    pub command: Option<String>,
    /// Which quantity of the glossary the values are.
    pub holds: ImportedQuantity,
    /// The nine numbers of that quantity; min, mean and max as the program printed them, quantiles
    /// at the upper end of their bucket, null where the file does not record them.
    pub values_ns: SummaryStats,
    /// Width of a bucket, or of the unit of the values; null where it grows with the value.
    pub resolution_ns: Option<f64>,
    /// A true value is at most this much above the printed min, mean and max.
    pub rounding_ns: f64,
    /// Where the program's histogram ends; null where there is none.
    pub limit_ns: Option<i64>,
    /// Values beyond the program's histogram: no more is known of them.
    pub overflow: u64,
    /// Facts that the file does not record, one line each.
    pub cannot_know: Vec<String>,
}

impl Imported {
    /// The least and the most of what lies beyond the program's histogram, ns, where the largest
    /// value that it printed is `max_ns`; `None` where that is none, or below the histogram's end.
    pub fn beyond_ns(&self, max_ns: Option<f64>) -> Option<(i64, i64)> {
        let (least_ns, most_ns) = (self.limit_ns?, (max_ns? + self.rounding_ns).ceil() as i64);
        (least_ns <= most_ns).then_some((least_ns, most_ns))
    }

    /// True where the quantile of n values lies beyond the program's histogram.
    pub(super) fn is_beyond(&self, p: Probability, n: u64) -> bool {
        p.is_supported(n)
            && p.rank(n) > n - self.overflow.min(n)
            && self.values_ns.quantile(p).is_none()
    }
}
