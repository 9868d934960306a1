//! Whether a run supports a requested claim: yes, no, or too little to tell.
//!
//! Takes counts, as a range where a histogram's bucket contains the threshold; returns a judgement
//! with its reason. Counts nothing itself; never uses the middle of a range.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::anytime;
use super::ask::{Ask, ClaimEvent};
use super::bound::{p_lower_at, p_upper_at};
use super::plan::cycles_needed_at;
use super::{rounded_up, shown_theta};

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
        let mut counted =
            Self { n: beyond, least: beyond, most: beyond, theta: 1.0, ordered: false };
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
}

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
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// It is shown.
    Yes,
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
    /// "yes" when the upper bound lies below the claimed probability, "no" when the lower bound
    /// lies above it, "undecided" when neither does.
    pub holds: Holds,
    /// The claimed probability.
    pub p: f64,
    /// The upper bound that was reached; null without data.
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
    /// Extremal index that the bounds are adjusted by, in (0, 1]; 1: independent cycles.
    pub theta: Option<f64>,
    /// Cycles that show it if exceedances go on at the share seen; null when they would not.
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
    let (upper, lower) = match ended {
        StoppingRule::AsPlanned => (
            p_upper_at(most as f64, n as f64, theta, confidence),
            p_lower_at(least as f64, n as f64, theta, confidence),
        ),
        StoppingRule::AtAnyTime => (
            anytime::p_upper_dependent(most, n, theta, confidence),
            anytime::p_lower_dependent(least, n, theta, confidence),
        ),
    };
    let holds = if upper < ask.p() {
        Holds::Yes
    } else if lower >= ask.p() {
        Holds::No
    } else {
        Holds::Undecided
    };
    let n_needed = cycles_needed_at(ask, most, n, theta);
    // Never forecasts fewer cycles than there were, although bounds of large counts are not exact.
    let open = holds == Holds::Undecided && ended == StoppingRule::AsPlanned;
    let n_needed = n_needed.map(|needed| if open { needed.max(n + 1) } else { needed });
    Judged {
        holds,
        p_upper: Some(upper),
        p_lower: Some(lower),
        n: Some(n),
        exceedances: Some(least),
        exceedances_at_most: Some(most),
        theta: Some(theta),
        n_needed,
        duration_needed_ns: n_needed.zip(period_ns).map(|(n, ns)| n as f64 * ns as f64),
        at_any_time: ended == StoppingRule::AtAnyTime,
        ..without(ask, &reason(ask, counted, ended, (holds, upper, lower), n_needed))
    }
}

fn reason(
    ask: &Ask,
    counted: &EventCount,
    ended: StoppingRule,
    (holds, upper, lower): (Holds, f64, f64),
    n_needed: Option<u64>,
) -> String {
    let sure = ask.shown_confidence();
    let seen = seen(ask, counted);
    let mut text = match holds {
        Holds::Yes => format!("at most {}, {sure} sure: {seen}", rounded_up(upper)),
        Holds::No => format!("shown false: at least {}, {sure} sure: {seen}", rounded_down(lower)),
        Holds::Undecided => {
            let why = match n_needed {
                Some(needed) => format!("it takes {} {needed} cycles", about(counted)),
                None => {
                    let share = counted.most as f64 / counted.n as f64;
                    format!(
                        "the share seen is {} already, so more cycles would not show it",
                        rounded_up(share)
                    )
                }
            };
            format!("not shown: at most {}, {sure} sure: {seen}; {why}", rounded_up(upper))
        }
    };
    if counted.least < counted.most {
        text += "; the exact number is unknown: some are in the bucket of the threshold, or \
                unrecorded";
    }
    if counted.theta < 1.0 {
        let theta = shown_theta(counted.theta);
        text += &format!("; adjusted for clusters (extremal index {theta})");
    } else if counted.ordered {
        text += "; cycles taken as independent";
    } else {
        text += "; cycles taken as independent, because the data do not record their order: \
                bursts would widen the bound";
    }
    if ended == StoppingRule::AtAnyTime {
        text += "; by the wider bound that is valid at any time, because the run did not end as \
                planned";
    }
    text
}

/// What a forecast is based on.
fn about(counted: &EventCount) -> &'static str {
    if counted.most == 0 { "at least" } else { "at this share, about" }
}

fn seen(ask: &Ask, counted: &EventCount) -> String {
    let count = match (counted.least, counted.most) {
        (0, 0) => "none".to_owned(),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    let (things, did) = match ask.event() {
        ClaimEvent::Lateness { .. } => ("cycles", "exceeded it"),
        ClaimEvent::Interval { .. } => ("intervals", "exceeded it"),
        ClaimEvent::Missed => ("releases", if count == "1" { "was missed" } else { "were missed" }),
    };
    format!("{count} of {} {things} {did}", counted.n)
}

/// A bound with two digits, rounded down.
fn rounded_down(p: f64) -> String {
    let place = 10f64.powf(p.log10().floor() - 1.0);
    format!("{:.1e}", (p / place + 1e-9).floor() * place)
}

#[cfg(test)]
mod tests;
