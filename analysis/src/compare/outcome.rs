//! The result of a comparison, as plain data: the JSON key `compare`.
//!
//! Holds; computes nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How B compares with A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B is late less often, or less late.
    Better,
    /// B is late more often, or later.
    Worse,
    /// Better in one place of the distribution and worse in another.
    Mixed,
    /// No significant difference; there may be one all the same
    /// ([`RunComparison::is_open`]).
    Undecided,
}

/// How often two runs exceed one threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateRatio {
    /// An exceedance is a release whose lateness is above this. A missed release counts with the
    /// lateness that the stall caused, and at least a period.
    pub threshold_ns: f64,
    /// Exceedances of A.
    pub exceedances_a: u64,
    /// Exceedances of B.
    pub exceedances_b: u64,
    /// Releases of A, missed ones included.
    pub n_a: u64,
    /// Releases of B.
    pub n_b: u64,
    /// Rate of B over rate of A; null where A has no exceedance.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub lower: f64,
    /// Upper end; null where A has no exceedance.
    pub upper: Option<f64>,
    /// By how much the counts scatter more than those of independent cycles, at least 1; both
    /// counts are divided by it before the test.
    pub dispersion: f64,
    /// p value of equal rates.
    pub p_value: f64,
    /// The same adjusted for all tests of the comparison; null where it is no test.
    pub p_adjusted: Option<f64>,
    /// What it says.
    pub verdict: Verdict,
    /// Cycles that each side would need beyond those it has, to detect a ratio of 2 four times in
    /// five; 0 where a ratio of 2 would have been detected. Null where nothing exceeds the
    /// threshold.
    pub more_cycles: Option<u64>,
    /// Whether only the dependence of the cycles keeps the difference from being significant: with
    /// independent ones it would be.
    #[serde(default)]
    pub clustered: bool,
    /// The smallest ratio that would have been detected four times in five; null where none up to
    /// 1000 would.
    #[serde(default)]
    pub detectable: Option<f64>,
}

impl RateRatio {
    /// Whether it says neither: no difference was seen, and twice as often would not have been.
    pub fn is_open(&self) -> bool {
        self.verdict == Verdict::Undecided && self.more_cycles != Some(0)
    }
}

/// One quantile of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantileDifference {
    /// Which, as a share in (0, 1).
    pub p: f64,
    /// Of A: missed releases count with the lateness that the stall caused; within 1/128.
    pub a_ns: f64,
    /// Of B.
    pub b_ns: f64,
    /// B − A.
    pub difference_ns: f64,
    /// Lower end of its interval, the width of a bucket included; null where n is too small or
    /// there are too many tests.
    pub lower_ns: Option<f64>,
    /// Upper end.
    pub upper_ns: Option<f64>,
    /// p value of equal quantiles; null where n is too small.
    pub p_value: Option<f64>,
    /// Why they were not tested, with what a test takes; null where they were.
    #[serde(default)]
    pub untested: Option<String>,
    /// The same adjusted for all tests of the comparison.
    pub p_adjusted: Option<f64>,
    /// What it says.
    pub verdict: Verdict,
}

/// One run of B, compared with the run of A of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunComparison {
    /// The run.
    pub name: String,
    /// The verdict of all its tests together.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub statement: String,
    /// Releases of A, missed ones included.
    pub n_a: u64,
    /// Releases of B.
    pub n_b: u64,
    /// Missed releases of A.
    pub missed_a: u64,
    /// Missed releases of B.
    pub missed_b: u64,
    /// The largest lateness of A: shown, never compared.
    pub max_a_ns: Option<f64>,
    /// The largest lateness of B.
    pub max_b_ns: Option<f64>,
    /// Whether releases of A may have been later than that.
    #[serde(default)]
    pub max_a_open: bool,
    /// Whether releases of B may have been.
    #[serde(default)]
    pub max_b_open: bool,
    /// Exceedances, thresholds rising.
    pub rates: Vec<RateRatio>,
    /// Quantiles, rising.
    pub quantiles: Vec<QuantileDifference>,
}

impl RunComparison {
    /// Whether it says neither: the counts differ and clusters may account for that, or nowhere
    /// would twice as often have been detected.
    pub fn is_open(&self) -> bool {
        let nowhere = self.rates.iter().all(RateRatio::is_open);
        let clustered = self.rates.iter().any(|rate| rate.clustered);
        self.verdict == Verdict::Undecided && (nowhere || clustered)
    }
}

/// How many tests were done, and the confidence of all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Family {
    /// Tests of all runs and pairs.
    pub tests: u64,
    /// The probability that no test reports a difference when there is none.
    pub confidence: f64,
}
