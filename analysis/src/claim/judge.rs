//! Judges a requested claim by a run: yes, yes if late releases come alone, no, or undecided.
//!
//! Takes counts, as a range where a histogram's bucket contains the threshold; returns a judgement
//! with its reason. Counts nothing itself; never uses the middle of a range.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::anytime;
use super::ask::{Ask, ClaimEvent};
use super::bound::{p_lower_at, p_upper_at, rounded_down, rounded_up, seen_share, shown_theta};
use super::count::{CLUSTERS_MIN, EventCount, Separate};
use super::plan::{cycles_needed, cycles_needed_at};
use crate::plain::grouped;

/// Why a run ended when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoppingRule {
    /// At its planned end, whatever it had shown.
    AsPlanned,
    /// At a time that may depend on what it had shown: bounds that are valid at any time are used.
    AtAnyTime,
    /// A campaign, which may be looked at and ended at any time: likewise.
    Campaign,
}

impl StoppingRule {
    /// True where bounds have to be valid at any time.
    fn is_at_any_time(self) -> bool {
        self != Self::AsPlanned
    }
}

/// The answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// It is shown.
    Yes,
    /// It is shown if late releases come alone: too few were seen to show how they come.
    IfAlone,
    /// It is shown to be false.
    No,
    /// Too little was seen to show either.
    Undecided,
}

/// A requested claim judged by a run, with the evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The claim: "p(lateness>50us)<1e-6".
    pub statement: String,
    /// "yes" when the upper bound lies below the claimed probability, whether late releases come
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
    /// Those of them that exceeded the threshold, at least.
    pub exceedances: Option<u64>,
    /// And at most: more than `exceedances` where only buckets are known, or cycles went
    /// unrecorded.
    pub exceedances_at_most: Option<u64>,
    /// Separate clusters of exceedances; 25 of them show how late releases come together. Null
    /// where their order is unknown.
    #[serde(default)]
    pub clusters: Option<f64>,
    /// Extremal index that the upper bound is adjusted by, in (0, 1]; 1: independent cycles.
    pub theta: Option<f64>,
    /// Cycles that show it if exceedances go on at the share seen; for "if-alone" those that show
    /// it without its assumption; null when no number of them would.
    pub n_needed: Option<u64>,
    /// The time of that many cycles; null where the period is not known either.
    pub duration_needed_ns: Option<f64>,
    /// True where the bounds hold for a run that ended at any time; false where they hold at its
    /// planned end alone.
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
    let is_at_any_time = ended.is_at_any_time();
    let upper_at = |theta| match is_at_any_time {
        false => p_upper_at(most as f64, n as f64, theta, confidence),
        true => anytime::p_upper_dependent(most, n, theta, confidence),
    };
    let refuting = counted.theta_refuting();
    let lower = match is_at_any_time {
        false => p_lower_at(least as f64, n as f64, refuting, confidence),
        true => anytime::p_lower_dependent(least, n, refuting, confidence),
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
    let theta = if holds == Holds::No { refuting } else { theta };
    let n_needed = match holds {
        Holds::IfAlone => decides(ask, counted),
        _ => cycles_needed_at(ask, most, n, theta),
    };
    // Never forecasts fewer cycles than there were, although bounds of large counts are not exact.
    let open = !is_at_any_time && holds == Holds::Undecided;
    let more = open || holds == Holds::IfAlone;
    let n_needed = n_needed.map(|needed| if more { needed.max(n + 1) } else { needed });
    let reached = Reached { holds, upper, lower, theta };
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
        at_any_time: is_at_any_time,
        ..without(ask, &reason(ask, counted, ended, &reached, n_needed))
    }
}

/// The cycles that show a claim without the assumption that late releases come alone, if they go on
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

/// The bounds that a run reached.
struct Reached {
    holds: Holds,
    /// The upper bound of the probability.
    upper: f64,
    /// The lower bound of the probability.
    lower: f64,
    /// The extremal index that they are adjusted by, in (0, 1].
    theta: f64,
}

fn reason(
    ask: &Ask,
    counted: &EventCount,
    ended: StoppingRule,
    reached: &Reached,
    n_needed: Option<u64>,
) -> String {
    let Reached { holds, upper, lower, theta } = *reached;
    let sure = ask.shown_confidence();
    let seen = seen(ask, counted);
    let at_most = || format!("at most {}, {sure} sure", rounded_up(upper));
    let mut text = match holds {
        Holds::Yes => format!("{}: {seen}", at_most()),
        Holds::IfAlone => {
            let few = too_few(counted, n_needed);
            format!("{} {}: {seen}; {few}", at_most(), if_alone(ask, theta))
        }
        Holds::No => format!("shown false: at least {}, {sure} sure: {seen}", rounded_down(lower)),
        Holds::Undecided => {
            let why = match n_needed {
                Some(needed) => format!("{} {} cycles", takes(counted), grouped(needed)),
                None => {
                    let share = |count| count as f64 / counted.n as f64;
                    let seen = seen_share(share(counted.most));
                    match counted.ordered {
                        _ if share(counted.least) < ask.p() => format!(
                            "up to {} may have exceeded it: finer buckets or a threshold \
                             between them, and every cycle recorded, would tell",
                            rounded_up(share(counted.most))
                        ),
                        true => format!(
                            "the share seen is {seen} already, so more cycles would not show it"
                        ),
                        false => format!(
                            "the share seen is {seen} already; to refute it takes the order of \
                             cycles"
                        ),
                    }
                }
            };
            format!("not shown: {}: {seen}; {why}", at_most())
        }
    };
    if counted.least < counted.most {
        text += "; the exact number is unknown: some are in the bucket of the threshold, or \
                unrecorded";
    }
    text += &match (holds, counted.separate) {
        (Holds::Yes, Separate::Evenly(clusters)) => {
            format!("; {clusters:.0} separate clusters, spread evenly over the run")
        }
        (Holds::No, _) if !counted.ordered => {
            "; however they came together: the data do not record the order of cycles".to_owned()
        }
        _ if theta < 1.0 => {
            format!("; adjusted for clusters (extremal index {})", shown_theta(theta))
        }
        (Holds::IfAlone, _) => String::new(),
        _ if counted.ordered => "; cycles taken as independent".to_owned(),
        _ => "; cycles taken as independent, because the data do not record their order: bursts \
            would widen the bound"
            .to_owned(),
    };
    let why = match ended {
        StoppingRule::AsPlanned => return text,
        StoppingRule::AtAnyTime => "because the run did not end as planned",
        StoppingRule::Campaign => "as a campaign may be looked at and ended at any time",
    };
    text + "; by the wider bound that is valid at any time, " + why
}

/// The assumption of a bound whose clusters are not shown.
fn if_alone(ask: &Ask, theta: f64) -> String {
    let things = match ask.event() {
        ClaimEvent::Lateness { .. } => "late releases",
        ClaimEvent::Interval { .. } => "such intervals",
        ClaimEvent::Missed => "missed releases",
    };
    if theta < 1.0 {
        format!("if clusters of {things} come alone")
    } else {
        format!("if {things} come alone")
    }
}

/// Why it is not shown that they come alone, and which run would show it.
fn too_few(counted: &EventCount, n_needed: Option<u64>) -> String {
    let takes = |needed: u64| format!("{} {} cycles to show that", takes(counted), grouped(needed));
    let why = match (counted.clusters(), counted.separate) {
        (None, _) => {
            return "the data do not record the order of cycles, so bursts would not \
                           show"
                .to_owned();
        }
        (Some(clusters), Separate::Unevenly(_)) if clusters >= CLUSTERS_MIN => {
            return "more of them came in one part of the run than in others, so that another run \
                   may differ"
                .to_owned();
        }
        (Some(clusters), _) if clusters >= CLUSTERS_MIN => {
            return match n_needed {
                Some(needed) => format!("as they came together here, {}", takes(needed)),
                None => "as they came together here, more cycles would not show it".to_owned(),
            };
        }
        (Some(_), _) if counted.most == 0 => {
            "a run without any cannot show whether they do".to_owned()
        }
        (Some(clusters), _) => format!(
            "{clusters:.0} separate cluster{} too few to show whether they do ({CLUSTERS_MIN} are \
             needed)",
            if clusters.round() == 1.0 { " is" } else { "s are" }
        ),
    };
    n_needed.map_or_else(|| why.clone(), |needed| format!("{why}; {}", takes(needed)))
}

/// The beginning of a forecast, which says what it is based on.
fn takes(counted: &EventCount) -> &'static str {
    if counted.most == 0 { "it takes at least" } else { "at this share, it takes about" }
}

fn seen(ask: &Ask, counted: &EventCount) -> String {
    let count = match (counted.least, counted.most) {
        (0, 0) => "none".to_owned(),
        (least, most) if least == most => grouped(least),
        (least, most) => format!("{} to {}", grouped(least), grouped(most)),
    };
    let (things, did) = match ask.event() {
        ClaimEvent::Lateness { .. } => ("releases", "exceeded it"),
        ClaimEvent::Interval { .. } => ("intervals", "exceeded it"),
        ClaimEvent::Missed => ("releases", if count == "1" { "was missed" } else { "were missed" }),
    };
    format!("{count} of {} {things} {did}", grouped(counted.n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::histogram::Bucket;

    fn judged(text: &str, least: u64, most: u64, n: u64, ended: StoppingRule) -> Judged {
        let ask = Ask::parse(text).unwrap();
        let separate = Separate::Evenly(most as f64);
        let counted = Ok(EventCount { n, least, most, theta: 1.0, separate, ordered: true });
        judge(&ask, &counted, ended, Some(1_000_000))
    }

    fn planned(text: &str, count: u64, n: u64) -> Judged {
        judged(text, count, count, n, StoppingRule::AsPlanned)
    }

    #[test]
    fn enough_too_little_and_false_are_different_answers() {
        let claim = "p(lateness>50us)<1e-3";
        let none = planned(claim, 0, 3_000);
        assert_eq!((none.holds, none.n_needed), (Holds::IfAlone, Some(34_917)));
        assert_eq!(
            none.reason,
            "at most 1.0e-3, 95 % sure if late releases come alone: none of 3\u{a0}000 releases \
             exceeded it; a run without any cannot show whether they do; it takes at least \
             34\u{a0}917 cycles to show that"
        );
        let yes = planned(claim, 25, 60_000);
        assert_eq!((yes.holds, yes.clusters), (Holds::Yes, Some(25.0)));
        assert_eq!(
            yes.reason,
            "at most 5.9e-4, 95 % sure: 25 of 60\u{a0}000 releases exceeded it; 25 separate \
             clusters, spread evenly over the run"
        );
        let alone = planned(claim, 24, 60_000);
        assert_eq!((alone.holds, alone.n_needed), (Holds::IfAlone, Some(62_500)));
        assert!(
            alone.reason.contains(
                "24 separate clusters are too few to show whether they do (25 are needed)"
            )
        );
        let short = planned(claim, 0, 2_990);
        assert_eq!((short.holds, short.n_needed), (Holds::Undecided, Some(2_996)));
        assert!(short.reason.starts_with("not shown: at most 1.1e-3"), "{}", short.reason);
        assert!(
            short.reason.contains("; it takes at least 2\u{a0}996 cycles;"),
            "{}",
            short.reason
        );
        assert_eq!(short.duration_needed_ns, Some(2_996e6));
        let few = planned(claim, 1, 3_000);
        assert!(few.reason.contains("at this share, it takes about"), "{}", few.reason);
        let false_ = planned(claim, 100, 30_000);
        assert_eq!((false_.holds, false_.n_needed), (Holds::No, None));
        assert!(false_.reason.starts_with("shown false: at least 2.8e-3"), "{}", false_.reason);
        let near = planned(claim, 31, 30_000);
        assert_eq!((near.holds, near.n_needed), (Holds::Undecided, None));
        assert!(near.reason.contains("1.03e-3 already"), "{}", near.reason);
        let missed = planned("p(missed)<0.5", 1, 100);
        assert_eq!(missed.holds, Holds::IfAlone);
        assert!(missed.reason.contains("if missed releases come alone"), "{}", missed.reason);
    }

    #[test]
    fn late_cycles_in_a_row_are_one_burst_at_least() {
        let claim = "p(lateness>50us)<1e-3";
        let in_a_row = |late: u64, ended| {
            let separate = Separate::Evenly(1.0);
            let (n, theta) = (100_000, 1.0 / late as f64);
            let counted = EventCount { n, least: late, most: late, theta, separate, ordered: true };
            judge(&Ask::parse(claim).unwrap(), &Ok(counted), ended, None)
        };
        // ln(1/0.95) of 3000 in 100 000: the share of one burst that a run meets in 1 of 20.
        let many = in_a_row(3_000, StoppingRule::AsPlanned);
        assert_eq!(many.holds, Holds::No, "{}", many.reason);
        let lower = many.p_lower.unwrap();
        assert!((lower - 0.051_293 * 0.03).abs() < 1e-7, "{lower}");
        assert!(lower <= many.p_upper.unwrap());
        let fewer = in_a_row(1_900, StoppingRule::AsPlanned);
        assert_eq!(fewer.holds, Holds::Undecided, "{}", fewer.reason);
        // The bound that is valid at any time is wider.
        assert_eq!(in_a_row(3_000, StoppingRule::AtAnyTime).holds, Holds::Undecided);
        assert_eq!(in_a_row(90_000, StoppingRule::AtAnyTime).holds, Holds::No);
    }

    #[test]
    fn a_bucket_that_is_cut_counts_as_both() {
        let bucket = |lowest_ns, highest_ns, count| Bucket { lowest_ns, highest_ns, count };
        let buckets =
            [bucket(0, 49_999, 900_000), bucket(50_000, 50_999, 7), bucket(51_000, 51_999, 2)];
        let at = |above_ns| EventCount::of_buckets(above_ns, buckets, 1);
        let cut = at(50_000);
        assert_eq!((cut.n, cut.least, cut.most), (900_010, 3, 10));
        let edge = at(50_999);
        assert_eq!((edge.least, edge.most), (3, 3), "an edge is exact");
        // Between both counts it is open; below and above them it is not.
        let holds = |p: &str| {
            judged(&format!("p(lateness>50us)<{p}"), 3, 10, 900_010, StoppingRule::AsPlanned).holds
        };
        assert_eq!(
            [holds("1e-4"), holds("1e-5"), holds("1e-7")],
            [Holds::IfAlone, Holds::Undecided, Holds::No]
        );
        let text = judged("p(lateness>50us)<1e-4", 3, 10, 900_010, StoppingRule::AsPlanned).reason;
        assert!(
            text.contains("3 to 10 of 900\u{a0}010")
                && text.contains("in the bucket of the threshold"),
            "{text}"
        );
    }

    #[test]
    fn a_run_that_ended_early_is_held_to_what_holds_at_any_time() {
        let claim = "p(lateness>50us)<1e-3";
        let early = |n| judged(claim, 0, 0, n, StoppingRule::AtAnyTime);
        assert_eq!(early(3_000).holds, Holds::Undecided);
        assert_eq!(early(4_000).holds, Holds::IfAlone);
        assert!(
            early(4_000).at_any_time
                && early(4_000).reason.contains("the run did not end as planned")
        );
        assert_eq!(judged(claim, 90, 90, 30_000, StoppingRule::AtAnyTime).holds, Holds::No);
        // A campaign is held to the same, and did end as planned.
        let campaign = judged(claim, 0, 0, 4_000, StoppingRule::Campaign);
        let words = "valid at any time, as a campaign may be looked at and ended at any time";
        assert!(campaign.at_any_time && campaign.reason.ends_with(words), "{}", campaign.reason);
        assert_eq!(
            Judged { reason: String::new(), ..campaign },
            Judged { reason: String::new(), ..early(4_000) }
        );
    }

    #[test]
    fn dependence_is_taken_off_and_reported() {
        let ask = Ask::parse("p(lateness>50us)<1e-3").unwrap();
        let separate = Separate::Evenly(0.0);
        let counted =
            EventCount { n: 4_000, least: 0, most: 0, theta: 0.5, separate, ordered: true };
        let counted = Ok(counted);
        let judged = judge(&ask, &counted, StoppingRule::AsPlanned, None);
        assert_eq!((judged.holds, judged.duration_needed_ns), (Holds::Undecided, None));
        assert_eq!(judged.n_needed, Some(5_992));
        assert!(judged.reason.contains("extremal index 0.5"), "{}", judged.reason);
    }

    #[test]
    fn clusters_that_are_few_uneven_or_unknown_leave_the_assumption() {
        let ask = Ask::parse("p(lateness>50us)<1e-2").unwrap();
        let judged = |separate, ordered| {
            let counted =
                EventCount { n: 40_000, least: 200, most: 200, theta: 1.0, separate, ordered };
            judge(&ask, &Ok(counted), StoppingRule::AsPlanned, None)
        };
        let even = judged(Separate::Evenly(200.0), true);
        let fewer = judged(Separate::Evenly(60.0), true);
        assert_eq!((even.holds, fewer.holds), (Holds::Yes, Holds::Yes));
        assert!(fewer.p_upper > even.p_upper && fewer.theta < Some(0.5), "{fewer:?}");
        let wide = judged(Separate::Evenly(26.0), true);
        let few = judged(Separate::Evenly(3.2), true);
        let uneven = judged(Separate::Unevenly(80.0), true);
        let unknown = judged(Separate::Unknown, false);
        for (judged, why) in [
            (&few, "3 separate clusters are too few to show"),
            (&uneven, "more of them came in one part of the run"),
            (&unknown, "do not record the order"),
        ] {
            assert_eq!(
                (judged.holds, judged.p_upper),
                (Holds::IfAlone, even.p_upper),
                "{judged:?}"
            );
            assert!(judged.reason.contains("if late releases come alone"), "{}", judged.reason);
            assert!(judged.reason.contains(why), "{}", judged.reason);
        }
        assert_eq!(wide.holds, Holds::Yes, "{}", wide.reason);
        assert_eq!((few.n_needed, uneven.n_needed, unknown.n_needed), (Some(312_500), None, None));
    }

    #[test]
    fn without_the_order_of_cycles_only_what_no_burst_can_be_is_shown_false() {
        let ask = Ask::parse("p(lateness>50us)<1e-3").unwrap();
        let of_histogram = |late, ended| {
            let bucket = |lowest_ns, count| Bucket { lowest_ns, highest_ns: lowest_ns, count };
            let buckets = [bucket(0, 10_000 - late), bucket(60_000, late)];
            judge(&ask, &Ok(EventCount::of_buckets(50_000, buckets, 0)), ended, None)
        };
        // Cycles that came alone would refute it: lower bound 4.3e-3.
        let some = of_histogram(60, StoppingRule::AsPlanned);
        assert_eq!((some.holds, some.n_needed), (Holds::Undecided, None), "{}", some.reason);
        let why = "6.00e-3 already; to refute it takes the order of cycles; cycles taken as \
                   independent, because the data do not record their order";
        assert!(some.reason.contains(why), "{}", some.reason);
        // Markov: 0.0513 of a share of 3 %.
        let many = of_histogram(300, StoppingRule::AsPlanned);
        assert_eq!(many.holds, Holds::No, "{}", many.reason);
        let why = "; however they came together: the data do not record the order of cycles";
        assert!(many.reason.ends_with(why), "{}", many.reason);
        assert!((many.p_lower.unwrap() - 0.051_293 * 0.03).abs() < 1e-6, "{many:?}");
        assert_eq!(of_histogram(300, StoppingRule::AtAnyTime).holds, Holds::Undecided);
        // Where a bucket has the threshold within it, no order would tell.
        let cut = Bucket { lowest_ns: 40_000, highest_ns: 60_000, count: 300 };
        let below = Bucket { lowest_ns: 0, highest_ns: 0, count: 9_700 };
        let counted = EventCount::of_buckets(50_000, [below, cut], 0);
        let wide = judge(&ask, &Ok(counted), StoppingRule::AsPlanned, None);
        assert_eq!(wide.holds, Holds::Undecided);
        let why = "up to 3.0e-2 may have exceeded it: finer buckets";
        assert!(wide.reason.contains(why) && !wide.reason.contains("refute"), "{}", wide.reason);
    }

    #[test]
    fn nothing_shows_nothing() {
        let none = planned("p(missed)<0.5", 0, 0);
        assert_eq!((none.holds, none.p_upper, none.n), (Holds::Undecided, None, None));
        let ask = Ask::parse("p(missed)<0.5").unwrap();
        let why = Err("no lateness in instants".to_owned());
        let judged = judge(&ask, &why, StoppingRule::AsPlanned, None);
        assert_eq!(
            (judged.holds, judged.reason.as_str()),
            (Holds::Undecided, "no lateness in instants")
        );
    }

    proptest! {
        #[test]
        fn no_claim_is_stronger_than_its_counts(
            n in 1u64..10_000_000, some in 0f64..1.0, more in 0f64..1.0, theta in 0.01f64..=1.0,
            exponent in 0.1f64..8.0, any in any::<bool>(),
        ) {
            let least = (n as f64 * some.powi(20)) as u64;
            let most = least + ((n - least) as f64 * more.powi(20)) as u64;
            let p = 10f64.powf(-exponent);
            let ask = Ask::parse(&format!("p(missed)<{p:e}")).unwrap();
            let ended = if any { StoppingRule::AtAnyTime } else { StoppingRule::AsPlanned };
            let separate = Separate::Evenly(most as f64 * theta);
            let counted = Ok(EventCount { n, least, most, theta, separate, ordered: true });
            let judged = judge(&ask, &counted, ended, None);
            match judged.holds {
                Holds::Yes => prop_assert!((most as f64) < p * n as f64 && most >= 25),
                Holds::IfAlone => prop_assert!((most as f64) < p * n as f64),
                Holds::No => prop_assert!(least as f64 >= p * n as f64),
                Holds::Undecided => {}
            }
            prop_assert!(judged.p_lower <= judged.p_upper && !judged.reason.contains('\n'));
        }
    }
}
