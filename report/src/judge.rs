//! Judgements of every run by its limits and claims, and the cycles that each claim needs, as
//! reported before the start.
//!
//! Picks runs and words; the arithmetic is `punctual_analysis`'s.

use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::judge::{Holds, Judged, StoppingRule, judge as judge_claim};
use punctual_analysis::claim::plan::Planned;
use punctual_analysis::limit::{Judgement, MetricLimit};
use punctual_analysis::verdict::Stands;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Run;
use crate::verdict::{Answer, Verdict};

/// The judgement over all limits and claims.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Overall {
    /// True when every limit and claim holds for every run, and when none was given. A claim that
    /// holds if late releases come alone counts as one that holds, but with `--strict`. False
    /// without any reason for a failure where something is `open`.
    pub ok: bool,
    /// One for each limit and run.
    pub limits: Vec<JudgedLimit>,
    /// One for each claim and run.
    #[serde(default)]
    pub claims: Vec<JudgedClaim>,
    /// The reasons for a failure, one line each.
    reasons: Vec<String>,
    /// The subject of each of `reasons`, in the same order; empty in results of before.
    #[serde(default)]
    reasons_about: Vec<About>,
    /// Judgements that are not decided, one line each: limits, claims, comparisons and answers that
    /// need more data than there are.
    #[serde(default)]
    open: Vec<String>,
    /// The subject of each of `open`, in the same order; empty in results of before.
    #[serde(default)]
    open_about: Vec<About>,
    /// What holds only if late releases come alone, one line each: claims without `--strict`, and
    /// answers with `--gate`.
    #[serde(default)]
    assumed: Vec<String>,
    /// The result that judgements which are not decided count as.
    #[serde(skip)]
    undecided: UndecidedAs,
}

/// The result that a judgement counts as which needs more data than there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UndecidedAs {
    /// Neither: all else holds, and this is not known.
    #[default]
    Itself,
    /// One that holds.
    Held,
    /// One that fails.
    Failed,
}

/// The subject of a reason. Places are counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum About {
    /// One of `limits`.
    Limit {
        /// Its place.
        at: usize,
    },
    /// One of `claims`.
    Claim {
        /// Its place.
        at: usize,
    },
    /// One of the answers, `verdicts`; of `measure wait` the only one, that to its deadline.
    Answer {
        /// Its place.
        at: usize,
    },
    /// A run that is held against another.
    Run {
        /// The place of its pair of sides in `compare.pairs`.
        pair: usize,
        /// Its place in `runs` of that.
        at: usize,
    },
    /// All that is worse than the reference, as one.
    Worse,
    /// That it could not be held against the reference.
    Uncompared,
    /// A release that was later than `--stop-over` allows.
    StopOver,
    /// Limits that were not checked, as the run ended before its time.
    EndedEarly,
    /// That there is no cycle that counts.
    Unmeasured,
    /// The measurement itself, what is none of these, or what a newer version says.
    #[default]
    #[serde(other)]
    Other,
}

/// A judgement that failed or is open: its sentence and its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason<'a> {
    /// The sentence.
    pub text: &'a str,
    /// The subject of the sentence.
    pub about: About,
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
    /// The result in a word: a failure, and what is open, in capitals.
    pub fn word(&self) -> &'static str {
        match (self.judgement.ok, self.judgement.open) {
            (true, _) => "holds",
            (false, true) => "OPEN",
            (false, false) => "FAILS",
        }
    }

    /// The sentence of the failure, with the run's name.
    pub(crate) fn failure(&self) -> String {
        let Judgement { text, reason, .. } = &self.judgement;
        format!("{}: {text}: {reason}", self.run)
    }
}

/// The reason why limits are open in a run that ended before its time, beside those that are
/// judged.
const ENDED_EARLY: &str =
    "the run ended early: conditions that did not run were not checked against limits";

/// The reason why a result without a cycle that counts is open.
const UNMEASURED: &str = "nothing was measured: no run has a cycle that counts";

/// Holds every run to every limit. A run that ended before its time, or whose loads did, can show
/// that one is broken, and not that it holds: it is open. `undecided` is for what is judged after
/// this too.
pub fn judge(
    runs: &[Run],
    limits: &[MetricLimit],
    incomplete: bool,
    undecided: UndecidedAs,
) -> Overall {
    let judged: Vec<JudgedLimit> = runs
        .iter()
        .flat_map(|run| {
            let died = run.load_died();
            limits.iter().map(move |limit| {
                let mut judgement = limit.judge(&run.outcome);
                let ended = incomplete.then_some("the run ended early");
                if judgement.ok
                    && let Some(why) = died.as_deref().or(ended)
                {
                    (judgement.ok, judgement.open) = (false, true);
                    judgement.reason = format!("{}, but {why}", judgement.reason);
                }
                JudgedLimit { run: run.name.clone(), judgement }
            })
        })
        .collect();
    let mut verdict = Overall::none(undecided);
    if incomplete && !limits.is_empty() {
        verdict.leave_open(About::EndedEarly, ENDED_EARLY.to_owned());
    }
    for (at, limit) in judged.iter().enumerate().filter(|(_, limit)| !limit.judgement.ok) {
        let about = About::Limit { at };
        match limit.judgement.open {
            true => verdict.leave_open(about, limit.failure()),
            false => verdict.fail_about(about, limit.failure()),
        }
    }
    Overall { limits: judged, ..verdict }
}

impl Overall {
    /// Nothing to hold yet.
    pub fn none(undecided: UndecidedAs) -> Self {
        Self { ok: true, undecided, ..Self::default() }
    }

    /// Fails, for this reason, which is about nothing that is judged by itself.
    pub fn fail(&mut self, reason: String) {
        self.fail_about(About::Other, reason);
    }

    /// Fails, for this reason.
    pub fn fail_about(&mut self, about: About, reason: String) {
        // Those of results of before are about nothing that is known.
        self.reasons_about.resize(self.reasons.len(), About::Other);
        self.reasons.push(reason);
        self.reasons_about.push(about);
        self.ok = false;
    }

    /// Leaves this open; what that counts as was chosen before.
    pub fn leave_open(&mut self, about: About, reason: String) {
        if self.undecided == UndecidedAs::Failed {
            return self.fail_about(about, reason);
        }
        self.open_about.resize(self.open.len(), About::Other);
        self.open.push(reason);
        self.open_about.push(about);
        self.ok &= self.undecided == UndecidedAs::Held;
    }

    /// The reasons for a failure.
    pub fn reasons(&self) -> impl Iterator<Item = Reason<'_>> {
        told_apart(&self.reasons, &self.reasons_about)
    }

    /// Judgements that are not decided, each with its sentence and subject.
    pub fn open(&self) -> impl Iterator<Item = Reason<'_>> {
        told_apart(&self.open, &self.open_about)
    }

    /// Returns true where it fails by a reason with this subject.
    pub(crate) fn fails_by(&self, about: About) -> bool {
        self.reasons().any(|reason| reason.about == about)
    }

    /// Returns true where a limit, `--stop-over` among them, or a claim failed: else it was the
    /// watchdog, a task, or what else ends a run. In results of before, whose reasons have no
    /// subject, a claim that holds if late releases come alone counts as one that holds.
    pub fn fails_by_criteria(&self) -> bool {
        let fails = |limit: &JudgedLimit| !limit.judgement.ok && !limit.judgement.open;
        let is_criterion =
            |about| matches!(about, About::Limit { .. } | About::Claim { .. } | About::StopOver);
        self.limits.iter().any(fails)
            || self.claims.iter().any(|claim| claim.judged.holds == Holds::No)
            || self.reasons().any(|reason| is_criterion(reason.about))
    }

    /// Returns true where it fails by a run that is worse than what it is held against, or that
    /// cannot be held against it.
    pub fn fails_by_comparison(&self) -> bool {
        let is_compared =
            |about| matches!(about, About::Run { .. } | About::Worse | About::Uncompared);
        self.reasons().any(|reason| is_compared(reason.about))
    }

    /// Returns true where it could not be held against the reference.
    pub fn is_uncompared(&self) -> bool {
        self.fails_by(About::Uncompared)
    }

    /// Returns true where a judgement with this subject is open.
    pub(crate) fn is_open(&self, about: About) -> bool {
        self.open().any(|reason| reason.about == about)
    }

    /// The result that judgements which are not decided count as.
    pub(crate) fn counts_undecided_as(&self) -> UndecidedAs {
        self.undecided
    }

    /// Tells whether nothing failed, and not everything is decided.
    pub fn is_undecided(&self) -> bool {
        !self.ok && self.reasons.is_empty() && !self.open.is_empty()
    }

    /// Leaves open, whatever the question, what has no cycle that counts in any run: nothing
    /// failed, and nothing holds.
    pub fn judge_measured(&mut self, runs: &[Run]) {
        if runs.iter().all(Run::is_empty) {
            self.leave_open(About::Unmeasured, UNMEASURED.to_owned());
        }
    }

    /// Holds the answers to a question to it: a "no" fails.
    pub fn judge_answers(&mut self, verdicts: &[Verdict]) {
        let measured = verdicts.iter().enumerate().filter(|(_, verdict)| verdict.is_measured());
        for (at, verdict) in measured {
            let (about, reason) = (About::Answer { at }, verdict.sentence());
            match verdict.answer {
                Answer::Yes if verdict.stands == Some(Stands::IfAlone) => self.assumed.push(reason),
                Answer::Yes => {}
                Answer::No => self.fail_about(about, reason),
                Answer::Unknown => self.leave_open(about, reason),
            }
        }
    }

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

    /// Adds a claim judged on a run. One that is false fails, with `strict` also one that holds
    /// only if late releases come alone; one for which too little was seen is left open.
    pub fn add_claim(&mut self, run: String, judged: Judged, strict: bool) {
        let claim = JudgedClaim { run, judged };
        let about = About::Claim { at: self.claims.len() };
        match claim.judged.holds {
            Holds::Yes => {}
            Holds::IfAlone if !strict => self.assumed.push(claim.failure()),
            Holds::IfAlone | Holds::No => self.fail_about(about, claim.failure()),
            Holds::Undecided => self.leave_open(about, claim.failure()),
        }
        self.claims.push(claim);
    }

    /// What holds only if late releases come alone, each behind its words.
    pub fn assumptions(&self) -> impl Iterator<Item = String> {
        self.assumed.iter().map(|sentence| format!("if alone {sentence}"))
    }

    /// The reasons for a failure and what is open, each behind its word: FAILS, OPEN, or that of a
    /// claim.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        let failed = self.reasons().map(|Reason { text, about }| {
            let claim = match about {
                About::Claim { at } => self.claims.get(at),
                _ => None,
            };
            format!("{} {text}", claim.map_or("FAILS", JudgedClaim::word))
        });
        failed.chain(self.open().map(|reason| format!("OPEN {}", reason.text)))
    }
}

/// Sentences, each with what it is about.
fn told_apart<'a>(texts: &'a [String], abouts: &'a [About]) -> impl Iterator<Item = Reason<'a>> {
    let abouts = abouts.iter().copied().chain(std::iter::repeat(About::Other));
    texts.iter().zip(abouts).map(|(text, about)| Reason { text, about })
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

/// The needs of a claim in a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlannedRun {
    /// The run's name.
    pub run: String,
    /// The cycles that it needs, and those that the run will have.
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
    /// The sentence of the failure, with the run's name.
    pub(crate) fn failure(&self) -> String {
        let Judged { statement, reason, .. } = &self.judged;
        format!("{}: {statement}: {reason}", self.run)
    }

    /// The result in a word: a failure, and what is open, in capitals.
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
