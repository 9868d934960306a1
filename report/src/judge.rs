//! Whether every run keeps its limits and shows its claims, and what each claim takes, as it was
//! reported before the start.
//!
//! Picks runs and words; the arithmetic is `punctual_analysis`'s.

use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::judge::{Holds, Judged, StoppingRule, judge as judge_claim};
use punctual_analysis::claim::plan::Planned;
use punctual_analysis::limit::{Judgement, MetricLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Run;

/// Whether all limits and claims hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Overall {
    /// True when every limit and claim holds for every run, and when none was given. A claim that
    /// holds if late cycles come alone counts as one that holds, but with `--strict`.
    pub ok: bool,
    /// One for each limit and run.
    pub limits: Vec<JudgedLimit>,
    /// One for each claim and run.
    #[serde(default)]
    pub claims: Vec<JudgedClaim>,
    /// The reasons for a failure, one line each.
    pub reasons: Vec<String>,
}

/// A limit, judged on one run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JudgedLimit {
    /// The run's name.
    pub run: String,
    /// The judgement.
    #[serde(flatten)]
    pub judgement: Judgement,
}

impl JudgedLimit {
    /// Why the whole fails, where it does.
    fn failure(&self) -> String {
        let Judgement { text, reason, .. } = &self.judgement;
        format!("{}: {text}: {reason}", self.run)
    }
}

/// The reason for which the limits of a run fail that ended before its time.
pub const ENDED_EARLY: &str =
    "the run ended early: conditions that did not run were not checked against limits";

/// Holds every run to every limit. A run that ended before its time, or whose loads did, did not
/// show that one holds.
pub fn judge(runs: &[Run], limits: &[MetricLimit], incomplete: bool) -> Overall {
    let judged: Vec<JudgedLimit> = runs
        .iter()
        .flat_map(|run| {
            let died = run.load_died();
            limits.iter().map(move |limit| {
                let mut judgement = limit.judge(&run.outcome);
                if judgement.ok
                    && let Some(why) = &died
                {
                    judgement.ok = false;
                    judgement.reason = format!("{}, but {why}", judgement.reason);
                }
                JudgedLimit { run: run.name.clone(), judgement }
            })
        })
        .collect();
    let cut = (incomplete && !limits.is_empty()).then(|| ENDED_EARLY.to_owned());
    let failed = judged.iter().filter(|limit| !limit.judgement.ok);
    let reasons: Vec<String> = cut.into_iter().chain(failed.map(JudgedLimit::failure)).collect();
    Overall { ok: reasons.is_empty(), limits: judged, claims: Vec::new(), reasons }
}

impl Overall {
    /// Judges every run by every claim, in addition to what was judged already. A run
    /// that ended early is judged by bounds that are right whenever one stops.
    pub fn judge_claims(
        &mut self,
        runs: &[Run],
        (claims, strict): (&[Ask], bool),
        incomplete: bool,
    ) {
        let ended = if incomplete { StoppingRule::AtAnyTime } else { StoppingRule::AsPlanned };
        for run in runs {
            for ask in claims {
                let counted = run.outcome.counted(ask);
                let judged = judge_claim(ask, &counted, ended, run.setup.period_ns);
                let judged = open_where_loads_died(run, judged);
                self.add_claim(run.name.clone(), judged, strict);
            }
        }
    }

    /// Adds a claim judged on a run. One that is not shown fails, whether it is false or too little
    /// was seen; with `strict` also one that holds only if late cycles come alone.
    pub fn add_claim(&mut self, run: String, judged: Judged, strict: bool) {
        let fails = match judged.holds {
            Holds::Yes => false,
            Holds::IfAlone => strict,
            Holds::Undecided | Holds::No => true,
        };
        let claim = JudgedClaim { run, judged };
        if fails {
            self.reasons.push(claim.failure());
            self.ok = false;
        }
        self.claims.push(claim);
    }

    /// The reasons for a failure, each behind its word: FAILS, or that of a claim.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        self.reasons.iter().map(|reason| {
            let claim = self.claims.iter().find(|claim| claim.failure() == *reason);
            format!("{} {reason}", claim.map_or("FAILS", JudgedClaim::word))
        })
    }
}

/// A claim is not shown by a run whose loads died: a part of it was not under load.
pub fn open_where_loads_died(run: &Run, judged: Judged) -> Judged {
    match run.load_died() {
        Some(why) if matches!(judged.holds, Holds::Yes | Holds::IfAlone) => {
            let reason = format!("{}, but {why}", judged.reason);
            Judged { holds: Holds::Undecided, reason, ..judged }
        }
        _ => judged,
    }
}

/// What a claim needs from a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlannedRun {
    /// The run's name.
    pub run: String,
    /// What it needs, and how many cycles the run will have.
    #[serde(flatten)]
    pub planned: Planned,
    /// The whole experiment's length, ns, with which this run has cycles enough for no exceedance.
    pub duration_needed_ns: f64,
}

/// A claim, judged on one run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JudgedClaim {
    /// The run's name.
    pub run: String,
    /// The judgement.
    #[serde(flatten)]
    pub judged: Judged,
}

impl JudgedClaim {
    /// Why the whole fails, where it does.
    fn failure(&self) -> String {
        let Judged { statement, reason, .. } = &self.judged;
        format!("{}: {statement}: {reason}", self.run)
    }

    /// How it came out, in a word: what fails is in capitals.
    pub fn word(&self) -> &'static str {
        match self.judged.holds {
            Holds::Yes => "holds",
            Holds::IfAlone => "if alone",
            Holds::No => "FALSE",
            Holds::Undecided => "OPEN",
        }
    }
}

/// Lateness thresholds that limits and claims ask about, to be watched while recording.
pub fn thresholds(limits: &[MetricLimit], claims: &[Ask]) -> Vec<i64> {
    let of_claims = claims.iter().filter_map(|ask| ask.lateness_ns());
    limits.iter().filter_map(MetricLimit::threshold_ns).chain(of_claims).collect()
}
