//! Claims in a report: what each takes, said before the start, and whether it was shown.
//!
//! Picks runs and words; the arithmetic is `punctual_analysis::claim`'s.

use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::judge::{Ended, Holds, Judged, judge};
use punctual_analysis::claim::plan::Planned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Overall, Run};

/// What a claim takes of a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlannedRun {
    /// The run's name.
    pub(crate) run: String,
    /// What it takes, and what the run is to give.
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
    /// How it came out, in a word: what fails is in capitals.
    pub(crate) fn word(&self) -> &'static str {
        match self.judged.holds {
            Holds::Yes => "holds",
            Holds::No => "FALSE",
            Holds::Undecided => "OPEN",
        }
    }
}

impl Overall {
    /// Holds every run to every claim, beside what was judged already. One that is not shown fails,
    /// whether it is false or too little was seen. A run that ended early is held to bounds that
    /// are right whenever one stops.
    pub(crate) fn hold(&mut self, runs: &[Run], claims: &[Ask], incomplete: bool) {
        let ended = if incomplete { Ended::AtAnyTime } else { Ended::AsPlanned };
        for run in runs {
            for ask in claims {
                let counted = run.outcome.counted(ask);
                let judged = judge(ask, &counted, ended, run.setup.period_ns);
                if judged.holds != Holds::Yes {
                    let Judged { statement, reason, .. } = &judged;
                    self.reasons.push(format!("{}: {statement}: {reason}", run.name));
                    self.ok = false;
                }
                self.claims.push(JudgedClaim { run: run.name.clone(), judged });
            }
        }
    }
}
