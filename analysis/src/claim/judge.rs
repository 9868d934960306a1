//! Whether a run supports a requested claim: yes, yes if late cycles come alone, no, or undecided.
//!
//! Takes counts, as a range where a histogram's bucket contains the threshold; returns a judgement
//! with its reason. Counts nothing itself; never uses the middle of a range.

mod words;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::anytime;
use super::ask::Ask;
use super::bound::{p_lower_at, p_upper_at};
use super::dependence::Separate;
use super::plan::{cycles_needed, cycles_needed_at};

/// What was counted of one event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventCount {
    /// Cycles, or intervals, or releases: the number of trials.
    pub n: u64,
    /// The event happened at least this often.
    pub least: u64,
    /// And at most this often; the same where it was counted exactly.
    pub most: u64,
    /// Extremal index to use, in (0, 1]; 1: independent.
    pub theta: f64,
    /// How many separate clusters they came in.
    pub separate: Separate,
    /// Whether the order of cycles was known, so that bursts would have shown.
    pub ordered: bool,
}

impl EventCount {
    /// From buckets (lowest value, highest value, count; ns): a bucket that contains the threshold
    /// counts as 0 at least and as all of it at most. `beyond` more values lie above all buckets.
    /// Buckets do not show dependence, so θ is 1 and `ordered` is false.
    pub fn of_buckets(
        above_ns: i64,
        buckets: impl IntoIterator<Item = (i64, i64, u64)>,
        beyond: u64,
    ) -> Self {
        let (n, least, most) = (beyond, beyond, beyond);
        let separate = Separate::Unknown;
        let mut counted = Self { n, least, most, theta: 1.0, separate, ordered: false };
        for (lowest_ns, highest_ns, count) in buckets {
            counted.n += count;
            counted.least += if lowest_ns > above_ns { count } else { 0 };
            counted.most += if highest_ns > above_ns { count } else { 0 };
        }
        counted
    }

    /// The same where `unseen` more were not recorded: each of them may be the event.
    #[must_use]
    pub fn with_unseen(self, unseen: u64) -> Self {
        let n = self.n.saturating_add(unseen);
        Self { n, most: self.most.saturating_add(unseen), ..self }
    }

    /// How many separate clusters they came in; `None` where their order is unknown.
    fn clusters(&self) -> Option<f64> {
        match self.separate {
            Separate::Evenly(count) | Separate::Unevenly(count) if self.ordered => Some(count),
            _ => None,
        }
    }

    /// The extremal index with which the upper bound holds however late cycles come together, as
    /// far as the run shows it; `None` where too few separate clusters show it, or they came more
    /// often in one part of the run.
    pub fn theta_shown(&self) -> Option<f64> {
        let Separate::Evenly(clusters) = self.separate else { return None };
        (clusters >= CLUSTERS_MIN && self.ordered).then(|| {
            // The share of the exceedances that count as independent: that of separate clusters.
            let share = (clusters / self.most as f64).min(1.0);
            self.theta.min(2.0 * share / (1.0 + share))
        })
    }
}

/// Separate clusters that show how late cycles come together: with as many, by simulation
/// (`examples/claims_simulated.rs`), at most one answer in twenty is a wrong yes.
pub const CLUSTERS_MIN: f64 = 25.0;

/// Why a run ended when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoppingRule {
    /// At its planned end, whatever it had shown.
    AsPlanned,
    /// At a time that may depend on what it had shown: bounds that are valid at any time are used.
    AtAnyTime,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// It is shown.
    Yes,
    /// It is shown if late cycles come alone: too few were seen to show how they come.
    IfAlone,
    /// It is shown to be false.
    No,
    /// Too little was seen to show either.
    Undecided,
}

/// Whether a run supports a requested claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The claim: "p(lateness>50us)<1e-6".
    pub statement: String,
    /// "yes" when the upper bound lies below the claimed probability, whether late cycles come
    /// alone or together; "if-alone" when it does only if they come no more together than was seen,
    /// and too few separate clusters of them were seen to show that; "no" when the lower bound lies
    /// above the claimed probability; "undecided" otherwise.
    pub holds: Holds,
    /// The claimed probability.
    pub p: f64,
    /// The upper bound that was reached; for "if-alone" on its assumption; null without data.
    pub p_upper: Option<f64>,
    /// The lower bound that was reached; null without data.
    pub p_lower: Option<f64>,
    /// The confidence of each of the two, in [0.5, 1).
    pub confidence: f64,
    /// Cycles that it is based on, missed releases included; for intervals, their number; null
    /// without data.
    pub n: Option<u64>,
    /// How many of them exceeded the threshold, at least.
    pub exceedances: Option<u64>,
    /// And at most: more than `exceedances` where only buckets are known, or cycles went
    /// unrecorded.
    pub exceedances_at_most: Option<u64>,
    /// Separate clusters of exceedances; 25 of them show how late cycles come together. Null where
    /// their order is unknown.
    #[serde(default)]
    pub clusters: Option<f64>,
    /// Extremal index that the upper bound is adjusted by, in (0, 1]; 1: independent cycles.
    pub theta: Option<f64>,
    /// Cycles that show it if exceedances go on at the share seen; for "if-alone" those that show
    /// it without its assumption; null when no number of them would.
    pub n_needed: Option<u64>,
    /// The time of that many cycles; null where the period is not known either.
    pub duration_needed_ns: Option<f64>,
    /// Whether the bounds hold for a run that ended at any time, not at its planned end alone.
    pub at_any_time: bool,
    /// In one line, why.
    pub reason: String,
}

/// Judges a claim by its counts, or by the reason why there are none.
pub fn judge(
    ask: &Ask,
    counted: &Result<EventCount, String>,
    ended: StoppingRule,
    period_ns: Option<u64>,
) -> Judged {
    match counted {
        Ok(counted) if counted.n > 0 => by_counts(ask, counted, ended, period_ns),
        Ok(_) => without(ask, "the run recorded no such values"),
        Err(why) => without(ask, why),
    }
}

fn without(ask: &Ask, why: &str) -> Judged {
    Judged {
        statement: ask.to_string(),
        holds: Holds::Undecided,
        p: ask.p(),
        p_upper: None,
        p_lower: None,
        confidence: ask.confidence(),
        n: None,
        exceedances: None,
        exceedances_at_most: None,
        clusters: None,
        theta: None,
        n_needed: None,
        duration_needed_ns: None,
        at_any_time: false,
        reason: why.to_owned(),
    }
}

fn by_counts(
    ask: &Ask,
    counted: &EventCount,
    ended: StoppingRule,
    period_ns: Option<u64>,
) -> Judged {
    let EventCount { n, least, most, theta, .. } = *counted;
    let confidence = ask.confidence();
    let upper_at = |theta| match ended {
        StoppingRule::AsPlanned => p_upper_at(most as f64, n as f64, theta, confidence),
        StoppingRule::AtAnyTime => anytime::p_upper_dependent(most, n, theta, confidence),
    };
    let lower = match ended {
        StoppingRule::AsPlanned => p_lower_at(least as f64, n as f64, theta, confidence),
        StoppingRule::AtAnyTime => anytime::p_lower_dependent(least, n, theta, confidence),
    };
    let shown = counted.theta_shown().map(|theta| (upper_at(theta), theta));
    let (upper, theta) = shown.filter(|(p, _)| *p < ask.p()).unwrap_or((upper_at(theta), theta));
    let holds = if upper >= ask.p() {
        if lower >= ask.p() { Holds::No } else { Holds::Undecided }
    } else if shown.is_some_and(|(p, _)| p < ask.p()) {
        Holds::Yes
    } else {
        Holds::IfAlone
    };
    let n_needed = match holds {
        Holds::IfAlone => decides(ask, counted),
        _ => cycles_needed_at(ask, most, n, theta),
    };
    // Never forecasts fewer cycles than there were, although bounds of large counts are not exact.
    let open = ended == StoppingRule::AsPlanned && holds == Holds::Undecided;
    let more = open || holds == Holds::IfAlone;
    let n_needed = n_needed.map(|needed| if more { needed.max(n + 1) } else { needed });
    Judged {
        holds,
        p_upper: Some(upper),
        p_lower: Some(lower),
        n: Some(n),
        exceedances: Some(least),
        exceedances_at_most: Some(most),
        clusters: counted.clusters(),
        theta: Some(theta),
        n_needed,
        duration_needed_ns: n_needed.zip(period_ns).map(|(n, ns)| n as f64 * ns as f64),
        at_any_time: ended == StoppingRule::AtAnyTime,
        ..without(ask, &words::reason(ask, counted, ended, (holds, upper, lower, theta), n_needed))
    }
}

/// The cycles that show a claim without the assumption that late cycles come alone, if they go on
/// as seen: as many as have clusters enough, or a bound narrow enough.
fn decides(ask: &Ask, counted: &EventCount) -> Option<u64> {
    if let Some(theta) = counted.theta_shown() {
        return cycles_needed_at(ask, counted.most, counted.n, theta);
    }
    let clusters = counted.clusters()?;
    if clusters >= CLUSTERS_MIN {
        return None;
    }
    let at_this_share = (counted.n as f64 * CLUSTERS_MIN / clusters).ceil();
    match counted.most {
        // None was seen: as many as it takes where the share is just below the claimed one.
        0 => Some(cycles_needed(ask, CLUSTERS_MIN as u64, counted.theta)),
        _ => Some(at_this_share as u64),
    }
}

#[cfg(test)]
mod tests;
