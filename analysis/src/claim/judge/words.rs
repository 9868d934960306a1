//! Why a claim holds, or does not, in one line.
//!
//! For the judgement. Words only: decides nothing.

use super::super::ask::{Ask, ClaimEvent};
use super::super::dependence::Separate;
use super::super::{rounded_up, shown_theta};
use super::{CLUSTERS_MIN, EventCount, Holds, StoppingRule};
use crate::plain::grouped;

pub(super) fn reason(
    ask: &Ask,
    counted: &EventCount,
    ended: StoppingRule,
    (holds, upper, lower, theta): (Holds, f64, f64, f64),
    n_needed: Option<u64>,
) -> String {
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
                    let share = counted.most as f64 / counted.n as f64;
                    format!(
                        "the share seen is {} already, so more cycles would not show it",
                        rounded_up(share)
                    )
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
        _ if theta < 1.0 => {
            format!("; adjusted for clusters (extremal index {})", shown_theta(theta))
        }
        (Holds::IfAlone, _) => String::new(),
        _ if counted.ordered => "; cycles taken as independent".to_owned(),
        _ => "; cycles taken as independent, because the data do not record their order: bursts \
            would widen the bound"
            .to_owned(),
    };
    if ended == StoppingRule::AtAnyTime {
        text += "; by the wider bound that is valid at any time, because the run did not end as \
                planned";
    }
    text
}

/// The assumption of a bound whose clusters are not shown.
fn if_alone(ask: &Ask, theta: f64) -> String {
    let things = match ask.event() {
        ClaimEvent::Lateness { .. } => "late cycles",
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

/// How a forecast begins: what it is based on.
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
        ClaimEvent::Lateness { .. } => ("cycles", "exceeded it"),
        ClaimEvent::Interval { .. } => ("intervals", "exceeded it"),
        ClaimEvent::Missed => ("releases", if count == "1" { "was missed" } else { "were missed" }),
    };
    format!("{count} of {} {things} {did}", grouped(counted.n))
}

/// A bound with two digits, rounded down.
fn rounded_down(p: f64) -> String {
    let place = 10f64.powf(p.log10().floor() - 1.0);
    format!("{:.1e}", (p / place + 1e-9).floor() * place)
}
