//! What a model of an application needs of a recording: statistics, each with its evidence.
//!
//! Holds numbers that were found elsewhere, or one that a person gives. An observed maximum keeps
//! its n, a probability keeps its confidence; nothing is extrapolated.

use punctual_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::bound::{CONFIDENCE, p_upper};
use crate::claim::{Claim, Level};
use crate::recording::RunFigures;

/// A statistic and its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Basis {
    /// Which one: "largest lateness".
    pub statistic: String,
    /// Its value.
    pub value_ns: f64,
    /// L0 for what was seen, L1 or L2 for a bound; null for a value that was given.
    pub level: Option<Level>,
    /// Cycles that it is based on; null when not given.
    pub n: Option<u64>,
    /// Upper bound of the probability that a cycle is beyond the value; null where none is known.
    pub p: Option<f64>,
    /// Of that bound: 0.95.
    pub confidence: Option<f64>,
}

/// A statistic that a recording lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data have no {0}")]
pub struct Lack(pub &'static str);

/// P(lateness > `above_ns`) is at most `p`, with 95 % confidence, by `n` cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The lateness, ns.
    pub above_ns: f64,
    /// The probability, in [0, 1].
    pub p: f64,
    /// The level of the claim behind it.
    pub level: Level,
}

/// The statistics of one run, or a value given in place of them. Times in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Cycles; `None` when not known.
    pub n: Option<u64>,
    /// Nominal period.
    pub period_ns: Option<f64>,
    /// Smallest, mean and largest lateness.
    pub lateness_ns: [Option<f64>; 3],
    /// Largest interval, signed: what the longest wait from wake to wake had above the period. A
    /// missed release is a period of it.
    pub interval_max_ns: Option<f64>,
    /// Largest |interval|.
    pub interval_max_abs_ns: Option<f64>,
    /// Standard deviation of the interval.
    pub interval_stddev_ns: Option<f64>,
    /// Peak-to-peak about the fitted grid.
    pub grid_pp_ns: Option<f64>,
    /// Root mean square about the fitted grid.
    pub grid_rms_ns: Option<f64>,
    /// The known bounds of the tail.
    pub bounds: Vec<Bound>,
    /// True where a person gave it.
    pub given: bool,
}

impl Timing {
    /// The statistics of a run with the given nominal period.
    pub fn of(outcome: &RunFigures, period_ns: Option<u64>) -> Self {
        let lateness = &outcome.lateness_ns;
        Self {
            n: Some(counted(outcome)),
            period_ns: period_ns.map(|ns| ns as f64),
            lateness_ns: [lateness.min, lateness.mean, lateness.max],
            interval_max_ns: outcome.interval_ns.max,
            interval_max_abs_ns: outcome.jitters.interval_max_abs_ns,
            interval_stddev_ns: outcome.interval_ns.stddev,
            grid_pp_ns: outcome.grid.as_ref().map(|grid| grid.jitter_pp_ns),
            grid_rms_ns: outcome.grid.as_ref().map(|grid| grid.rms_ns),
            bounds: outcome.claims.iter().filter_map(bound).collect(),
            given: false,
        }
    }

    /// One value, in ns, that stands for whatever statistic a model uses; seen as the largest of
    /// `n` cycles where that is given.
    pub fn given(value_ns: f64, n: Option<u64>) -> Self {
        let value = Some(value_ns);
        let p = n.filter(|&n| n > 0).map(|n| p_upper(0, n, 1.0));
        Self {
            n,
            period_ns: None,
            lateness_ns: [Some(0.0), value, value],
            interval_max_ns: value,
            interval_max_abs_ns: value,
            interval_stddev_ns: value,
            grid_pp_ns: value,
            grid_rms_ns: value,
            bounds: p
                .map(|p| Bound { above_ns: value_ns, p, level: Level::L1 })
                .into_iter()
                .collect(),
            given: true,
        }
    }

    /// The nominal period, ns: `given` before that of the run.
    ///
    /// # Errors
    /// Neither is known.
    pub fn period_ns(&self, given: Option<f64>) -> Result<f64, Lack> {
        given.or(self.period_ns).filter(|ns| *ns > 0.0).ok_or(Lack("period"))
    }

    /// The mean lateness.
    ///
    /// # Errors
    /// It is not known; the same for all that follow.
    pub fn mean_lateness(&self) -> Result<Basis, Lack> {
        self.seen("mean lateness", self.lateness_ns[1], None)
    }

    /// The largest lateness, with how rare a later one is.
    ///
    /// # Errors
    /// It is not known.
    pub fn largest_lateness(&self) -> Result<Basis, Lack> {
        let max = self.lateness_ns[2];
        let p = max.and_then(|max| self.p_above(max)).map(|bound| bound.p);
        self.seen("largest lateness", max, p)
    }

    /// Largest less smallest lateness.
    ///
    /// # Errors
    /// It is not known.
    pub fn lateness_range(&self) -> Result<Basis, Lack> {
        let [min, _, max] = self.lateness_ns;
        self.seen("range of lateness", max.zip(min).map(|(max, min)| max - min), None)
    }

    /// What the longest wait from wake to wake had above the period; 0 where none had.
    ///
    /// # Errors
    /// It is not known.
    pub fn longest_gap(&self) -> Result<Basis, Lack> {
        self.seen("largest interval", self.interval_max_ns.map(|ns| ns.max(0.0)), None)
    }

    /// The largest |interval|.
    ///
    /// # Errors
    /// It is not known.
    pub fn largest_interval(&self) -> Result<Basis, Lack> {
        self.seen("largest |interval|", self.interval_max_abs_ns, None)
    }

    /// The standard deviation of the interval.
    ///
    /// # Errors
    /// It is not known.
    pub fn interval_stddev(&self) -> Result<Basis, Lack> {
        self.seen("standard deviation of the interval", self.interval_stddev_ns, None)
    }

    /// The peak-to-peak about the fitted grid.
    ///
    /// # Errors
    /// It is not known.
    pub fn grid_pp(&self) -> Result<Basis, Lack> {
        self.seen("peak-to-peak about the grid", self.grid_pp_ns, None)
    }

    /// The root mean square about the fitted grid.
    ///
    /// # Errors
    /// It is not known.
    pub fn grid_rms(&self) -> Result<Basis, Lack> {
        self.seen("rms about the grid", self.grid_rms_ns, None)
    }

    /// The lowest bound of P(lateness > `above_ns`) that the recording supports: the bound of any
    /// smaller lateness is one too. `None` when nothing is known up to there.
    pub fn p_above(&self, above_ns: f64) -> Option<Bound> {
        let below = self.bounds.iter().filter(|bound| bound.above_ns <= above_ns);
        below.copied().min_by(|a, b| a.p.total_cmp(&b.p))
    }

    /// The smallest lateness that is exceeded with a probability of at most `p`; `None` when the
    /// recording does not support one.
    pub fn exceeded_by(&self, p: f64) -> Option<Bound> {
        let rare = self.bounds.iter().filter(|bound| bound.p <= p);
        rare.copied().min_by(|a, b| a.above_ns.total_cmp(&b.above_ns))
    }

    /// A probability as a basis.
    pub(super) fn tail(&self, bound: Bound) -> Basis {
        Basis {
            statistic: "share of cycles later".to_owned(),
            value_ns: bound.above_ns,
            level: (!self.given).then_some(bound.level),
            n: self.n,
            p: Some(bound.p),
            confidence: Some(CONFIDENCE),
        }
    }

    fn seen(
        &self,
        statistic: &'static str,
        value_ns: Option<f64>,
        p: Option<f64>,
    ) -> Result<Basis, Lack> {
        let value_ns = value_ns.filter(|ns| ns.is_finite()).ok_or(Lack(statistic))?;
        Ok(Basis {
            statistic: statistic.to_owned(),
            value_ns,
            level: (!self.given).then_some(Level::L0),
            n: self.n,
            p,
            confidence: p.map(|_| CONFIDENCE),
        })
    }
}

impl Basis {
    /// In words: the statistic, its value, its evidence.
    pub fn words(&self) -> String {
        let value = Span::from_ns(self.value_ns.round() as i64);
        let no_bound = if self.p.is_some() { "" } else { ", not a bound" };
        let from = match (self.level, self.n) {
            (None, None) => "as given".to_owned(),
            (None, Some(n)) => format!("as given for {n} cycles"),
            (Some(_), Some(n)) => format!("observed in {n} cycles{no_bound}"),
            (Some(_), None) => format!("observed{no_bound}"),
        };
        let tail = match (self.p, self.confidence) {
            (Some(p), Some(confidence)) => {
                format!("; later with p ≤ {p:.1e} at {:.0} % confidence", confidence * 100.0)
            }
            _ => String::new(),
        };
        match self.level {
            Some(level @ (Level::L1 | Level::L2)) => {
                let n = self.n.unwrap_or(0);
                format!("{level:?}: {} than {value}, from {n} cycles{tail}", self.statistic)
            }
            Some(level) => format!("{level:?}: {} {value}, {from}{tail}", self.statistic),
            None => format!("{} {value}, {from}{tail}", self.statistic),
        }
    }
}

/// The number of cycles that its figures are of: cold ones that were left out are in no claim.
fn counted(outcome: &RunFigures) -> u64 {
    let seen = outcome.claims.iter().find(|claim| claim.level == Level::L0);
    seen.map_or(outcome.cycles, |claim| claim.n)
}

/// The bound of the tail in a claim, where it has one.
fn bound(claim: &Claim) -> Option<Bound> {
    let (p, above_ns) = (claim.p?, claim.bound_ns?);
    let p = match claim.level {
        Level::L1 => p,
        // The upper end of the interval of the quantile at p: at most 1 − p is above it.
        Level::L2 => 1.0 - p,
        _ => return None,
    };
    (claim.given && (0.0..=1.0).contains(&p)).then_some(Bound { above_ns, p, level: claim.level })
}
