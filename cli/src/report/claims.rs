//! Claims in a report: what each takes, reported before the start, and whether it was shown.
//!
//! Picks runs and words; the arithmetic is `punctual_analysis::claim`'s.

use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::judge::{Holds, Judged};
use punctual_analysis::claim::plan::Planned;
use punctual_analysis::limit::MetricLimit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a claim needs from a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlannedRun {
    /// The run's name.
    pub(crate) run: String,
    /// What it needs, and how many cycles the run will have.
    #[serde(flatten)]
    pub(crate) planned: Planned,
    /// The whole experiment's length, ns, with which this run has cycles enough for no exceedance.
    pub(crate) duration_needed_ns: f64,
}

/// A claim, judged on one run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct JudgedClaim {
    /// The run's name.
    pub(crate) run: String,
    /// The judgement.
    #[serde(flatten)]
    pub(crate) judged: Judged,
}

impl JudgedClaim {
    /// Why the whole fails, where it does.
    pub(super) fn failure(&self) -> String {
        let Judged { statement, reason, .. } = &self.judged;
        format!("{}: {statement}: {reason}", self.run)
    }

    /// How it came out, in a word: what fails is in capitals.
    pub(crate) fn word(&self) -> &'static str {
        match self.judged.holds {
            Holds::Yes => "holds",
            Holds::IfAlone => "if alone",
            Holds::No => "FALSE",
            Holds::Undecided => "OPEN",
        }
    }
}

/// Lateness thresholds that limits and claims ask about, to be watched while recording.
pub(crate) fn thresholds(limits: &[MetricLimit], claims: &[Ask]) -> Vec<i64> {
    let of_claims = claims.iter().filter_map(|ask| ask.lateness_ns());
    limits.iter().filter_map(MetricLimit::threshold_ns).chain(of_claims).collect()
}
