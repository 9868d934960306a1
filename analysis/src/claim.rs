//! Claims that n cycles support, of level L0, L1 and L2 (L3 is [`crate::extremes`]).
//!
//! L0, the observed maximum with its n. L1, an upper 95 % bound of the probability that one cycle
//! is later than a bound (rule of three where no cycle was). L2, a confidence interval of each
//! quantile by order statistics, free of any distribution. L1 and L2 are adjusted for dependence
//! between cycles. None extrapolates beyond what was seen, and none covers what was not running:
//! bursts are known only after the first one, and a machine may behave differently after the next
//! boot.

pub mod anytime;
pub mod ask;
pub mod bound;
pub mod count;
pub mod dependence;
pub mod judge;
pub mod plan;

use punctual_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::plain::grouped;
use crate::quantile::Probability;
use bound::{CONFIDENCE, independent_for, p_upper, quantile_ranks_at, shown_theta};
use count::WatchedThreshold;
use dependence::{L1Bound, Tails};

pub use bound::{rounded_up, seen_share};

/// The strength of a claim, from the least on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Level {
    /// An observation: the largest of n.
    L0,
    /// A bound of a probability.
    L1,
    /// A confidence interval of a quantile.
    L2,
    /// A value rarer than the run can show, extrapolated by a model; or refused.
    L3,
}

/// One statement with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// Its level.
    pub level: Level,
    /// The claim in words.
    pub statement: String,
    /// L1: upper bound of P(lateness > `bound_ns`). L2: which quantile. L3: the probability
    /// of being later. Null for L0.
    pub p: Option<f64>,
    /// L0: the maximum. L1: the lateness it is about. L2: upper end of the interval; null where n
    /// is too small for one. L3: upper end of the interval; null when refused.
    pub bound_ns: Option<f64>,
    /// 0.95; null for an observation and for a refusal.
    pub confidence: Option<f64>,
    /// Cycles that it is based on.
    pub n: u64,
    /// True where the claim is made; false for one that was requested and is not supported.
    pub given: bool,
    /// The assumptions under which it holds, in words.
    pub conditions: String,
    /// L1: whether it holds only if late releases come alone, because too few separate clusters of
    /// them were seen to show how they come, or their order is unknown.
    #[serde(default)]
    pub alone: bool,
    /// L1: the extremal index at the threshold, in (0, 1], by which `p` is adjusted; where `alone`,
    /// `p` may be the lower bound of a lower threshold, adjusted by the index of that. Not there
    /// where the order of cycles is unknown, so that bursts would not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theta: Option<f64>,
}

/// Exceedances up to this share of the cycles make a tail worth a claim.
const TAIL_SHARE: f64 = 0.1;

/// Every claim that one run supports, in rising level: of the exceedances of its releases, and of
/// their latenesses as far as they are known.
pub fn claims(tails: &Tails, lateness: &Histogram) -> Vec<Claim> {
    let Some(max) = lateness.max() else { return Vec::new() };
    let mut claims = vec![largest(tails, max), none_above(tails, max)];
    claims.extend(thresholds(tails));
    claims.extend(Probability::SUMMARY.into_iter().filter_map(|p| quantile(tails, lateness, p)));
    claims
}

/// The thresholds of the ladder with what exceeds them, from the last that all cycles exceed to the
/// first that none does; none where the order of cycles is unknown.
pub fn watched(tails: &Tails) -> Vec<WatchedThreshold> {
    let mut watched = Vec::new();
    if !tails.is_ordered() || tails.n() == 0 {
        return watched;
    }
    for tail in tails.tails().iter().filter(|tail| tail.requested) {
        let above_ns = tail.threshold_ns;
        let (least, most) = tails.exceedances_within(above_ns);
        let L1Bound { theta, alone, .. } = tails.l1_bound(above_ns);
        if least >= tails.n() {
            watched.clear();
        }
        watched.push(WatchedThreshold { above_ns, least, most, theta, alone });
        // Missed releases exceed too.
        if most == 0 {
            break;
        }
    }
    watched
}

fn shown(ns: i64) -> Span {
    Span::from_ns(ns)
}

fn conditions(theta: f64) -> String {
    let theta = shown_theta(theta);
    format!("as recorded; extremal index at least {theta} (1: independent cycles)")
}

/// The words for releases without a sample.
fn lost_count(tails: &Tails) -> String {
    match (tails.missed, tails.unrecorded) {
        (0, 0) => String::new(),
        (missed, 0) => {
            let censored = match tails.censored() {
                0 => String::new(),
                some => format!(
                    ", and {some} of them, which no wake followed, as later than all \
                                others"
                ),
            };
            format!(
                "; {missed} missed releases count as late until the first wake after \
                    them{censored}"
            )
        }
        (0, lost) => format!("; {lost} cycles went unrecorded and count as later than all others"),
        (missed, lost) => format!(
            "; {lost} cycles went unrecorded and count as later than all others, as do {missed} \
            missed releases, because a gap does not show which of the two it is"
        ),
    }
}

/// The largest of all, whose known ones go up to `max`.
fn largest(tails: &Tails, max: i64) -> Claim {
    let (n, max) = (tails.n(), max.max(tails.censored_from_ns().unwrap_or(max)));
    let missed = match tails.missed - tails.censored() {
        0 => String::new(),
        missed => format!("; {missed} of them missed releases"),
    };
    let censored = match tails.censored() {
        0 => String::new(),
        some => {
            format!(
                "; {some} of them missed with no wake after them, at least a period late and \
                    maybe later"
            )
        }
    };
    let unrecorded = match tails.unrecorded {
        0 => String::new(),
        lost => format!("; {lost} cycles went unrecorded and may have been later"),
    };
    let at_least = if tails.unknown() > 0 { "at least " } else { "" };
    Claim {
        level: Level::L0,
        statement: format!("the largest of {} latenesses was {at_least}{}", grouped(n), shown(max)),
        p: None,
        bound_ns: Some(max as f64),
        confidence: None,
        n,
        given: true,
        conditions: format!(
            "as recorded; an observation, not a bound{missed}{censored}{unrecorded}"
        ),
        alone: false,
        theta: None,
    }
}

fn none_above(tails: &Tails, max: i64) -> Claim {
    let theta = tails.theta_at(max);
    let exceedances = tails.unknown();
    let p = p_upper(exceedances, tails.n(), theta).min(tails.p_upper_below(max));
    probability(tails, max, L1Bound { p, theta, alone: true }, exceedances)
}

/// The thresholds of the ladder that lie in the tail: those exceeded by few, and the first by none.
fn thresholds(tails: &Tails) -> Vec<Claim> {
    let mut claims = Vec::new();
    for tail in tails.tails().iter().filter(|tail| tail.requested) {
        let exceedances = tails.exceeding(tail);
        if exceedances as f64 > TAIL_SHARE * tails.n() as f64 {
            continue;
        }
        let bound = tails.l1_bound(tail.threshold_ns);
        claims.push(probability(tails, tail.threshold_ns, bound, exceedances));
        if tail.exceedances == 0 {
            break;
        }
    }
    claims
}

/// A claim of a bound of the probability that a cycle is later than `bound_ns`.
fn probability(tails: &Tails, bound_ns: i64, bound: L1Bound, exceedances: u64) -> Claim {
    let L1Bound { p, theta, alone } = bound;
    let releases = |count| match count {
        0 => "no release".to_owned(),
        1 => "1 release".to_owned(),
        more => format!("{} releases", grouped(more)),
    };
    let n = grouped(tails.n());
    let least = tails.exceedances_within(bound_ns).0;
    let count = match exceedances.saturating_sub(least) {
        some if some > 0 && tails.unrecorded == 0 => format!(
            "{} of {n} exceeded it, and {some} missed with no wake after them may have",
            releases(least)
        ),
        0 => format!("{} of {n} exceeded it", releases(exceedances)),
        _ => format!("at most {} of {n} exceeded it", releases(exceedances)),
    };
    Claim {
        level: Level::L1,
        statement: format!(
            "later than {} in at most {} of all releases{} ({count})",
            shown(bound_ns),
            rounded_up(p),
            if alone { ", if late releases come alone" } else { "" },
        ),
        p: Some(p),
        bound_ns: Some(bound_ns as f64),
        confidence: Some(CONFIDENCE),
        n: tails.n(),
        given: true,
        conditions: conditions(theta) + &lost_count(tails),
        alone,
        theta: tails.is_ordered().then_some(theta),
    }
}

/// A quantile of lateness with the ends of its interval, which claims of level L2 state; `None`
/// where n does not support the quantile.
pub fn quantile_within(tails: &Tails, lateness: &Histogram, p: Probability) -> Option<Interval> {
    let found = QuantileInterval::of(tails, lateness, p, CONFIDENCE)?;
    let end = |ns: Option<i64>| ns.map(|ns| ns as f64);
    Some(Interval { value: found.value as f64, low: end(found.lower), high: end(found.upper) })
}

/// A quantile, rounded up within its bucket, and the interval that encloses it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QuantileInterval {
    /// The quantile.
    pub(crate) value: i64,
    /// `None` where n is too small for one.
    pub(crate) lower: Option<i64>,
    /// `None` where n is too small for one, or it lies among releases of unknown lateness.
    pub(crate) upper: Option<i64>,
    /// True where it lies among those.
    is_upper_unknown: bool,
    /// The extremal index that it is adjusted by.
    theta: f64,
}

impl QuantileInterval {
    /// In rounded-out buckets; `None` where n does not support the quantile. Cycles that went
    /// unrecorded may lie on either side of it: they count as the earliest at its lower end, and as
    /// the latest at its upper end. Releases that are censored lie above it.
    pub(crate) fn of(
        tails: &Tails,
        lateness: &Histogram,
        p: Probability,
        confidence: f64,
    ) -> Option<Self> {
        let value = lateness.quantile_below(p, tails.unknown())?;
        let theta = tails.theta_at(value);
        let n = lateness.count().saturating_add(tails.unknown());
        let (lower, upper) = quantile_ranks_at(p, (n, theta), confidence);
        let lower = lower.and_then(|rank| rank.checked_sub(tails.unrecorded));
        let lower = lower.and_then(|rank| lateness.order_statistic_floor(rank));
        let is_upper_unknown = upper.is_some_and(|rank| rank > lateness.count());
        let upper = upper.and_then(|rank| lateness.order_statistic(rank));
        Some(Self { value, lower, upper, is_upper_unknown, theta })
    }
}

/// The interval of one quantile; `None` where n does not support the quantile or not even a lower
/// end.
fn quantile(tails: &Tails, lateness: &Histogram, p: Probability) -> Option<Claim> {
    let n = lateness.count();
    let QuantileInterval { lower, upper, is_upper_unknown, theta, .. } =
        QuantileInterval::of(tails, lateness, p, CONFIDENCE)?;
    let lower = lower?;
    let lost = match tails.unrecorded {
        0 => lost_count(tails),
        lost => format!("; {lost} cycles went unrecorded and may lie on either side of it"),
    };
    let percent = p.to_string();
    let percent = percent.trim_start_matches('p');
    let statement = match upper {
        Some(upper) => {
            format!("the {percent} % quantile lies from {} to {}", shown(lower), shown(upper))
        }
        None if is_upper_unknown => format!(
            "the {percent} % quantile is at least {}; no upper end is known, as it lies among the \
             {} releases of unknown lateness",
            shown(lower),
            grouped(tails.unknown())
        ),
        None => {
            let (independent, needed) = independent_for(p, n, theta);
            let clusters = match independent < n {
                true => format!(", in clusters, about {} independent ones,", grouped(independent)),
                false => String::new(),
            };
            format!(
                "the {percent} % quantile is at least {}; {} cycles{clusters} are too few for an \
                 upper end: it takes {}",
                shown(lower),
                grouped(n),
                grouped(needed)
            )
        }
    };
    Some(Claim {
        level: Level::L2,
        statement,
        p: Some(p.share()),
        bound_ns: upper.map(|ns| ns as f64),
        confidence: Some(CONFIDENCE),
        n,
        given: true,
        conditions: conditions(theta) + &lost,
        alone: false,
        theta: None,
    })
}

#[cfg(test)]
mod tests {
    use super::dependence::Exceedances;
    use super::*;

    fn claims_of(latenesses: &[i64], missed: u64) -> Vec<Claim> {
        claims_with(latenesses, missed, 0)
    }

    fn claims_with(latenesses: &[i64], missed: u64, unrecorded: u64) -> Vec<Claim> {
        let mut exceedances = Exceedances::new(0, &[]);
        let mut histogram = Histogram::new();
        for &ns in latenesses {
            exceedances.push(ns, 0, 0);
            histogram.push(ns);
        }
        claims(&exceedances.finish_with(missed, unrecorded), &histogram)
    }

    #[test]
    fn no_cycles_claim_nothing() {
        assert!(claims_of(&[], 0).is_empty());
    }

    #[test]
    fn each_level_says_what_it_rests_on() {
        let values: Vec<i64> = (0..3_000).map(|i| 5_000 + (i * 7_919) % 1_000).collect();
        let claims = claims_of(&values, 0);
        let largest = &claims[0];
        assert_eq!((largest.level, largest.bound_ns, largest.n), (Level::L0, Some(5_999.0), 3_000));
        assert_eq!((largest.p, largest.confidence), (None, None));
        let none_above = &claims[1];
        assert_eq!((none_above.level, none_above.confidence), (Level::L1, Some(0.95)));
        assert!(none_above.p.is_some_and(|p| p >= 2.9957 / 3_000.0), "{none_above:?}");
        let quantiles: Vec<&Claim> = claims.iter().filter(|c| c.level == Level::L2).collect();
        assert_eq!(quantiles.len(), 4);
        assert!(quantiles[0].bound_ns.is_some_and(|ns| (5_500.0..5_700.0).contains(&ns)));
        // 3000 cycles hold a 99.9 % quantile, but no upper end for it.
        assert_eq!((quantiles[3].p, quantiles[3].bound_ns), (Some(0.999), None));
        assert!(quantiles[3].statement.contains("too few for an upper end"));
    }

    #[test]
    fn an_upper_end_among_releases_of_unknown_lateness_takes_no_more_cycles() {
        let values: Vec<i64> = (0..10_000).map(|i| 5_000 + (i * 7_919) % 1_000).collect();
        let p99 = |claims: Vec<Claim>| {
            let claim = claims.into_iter().find(|c| c.level == Level::L2 && c.p == Some(0.99));
            claim.expect("of 10 000 cycles")
        };
        let claim = p99(claims_of(&values, 90));
        assert_eq!(claim.bound_ns, None, "{claim:?}");
        let words = "; no upper end is known, as it lies among the 90 releases of unknown lateness";
        assert!(claim.statement.ends_with(words), "{}", claim.statement);
        assert!(p99(claims_of(&values, 9)).bound_ns.is_some());
    }

    #[test]
    fn missed_releases_weaken_every_bound() {
        let values = vec![5_000; 10_000];
        let p = |missed| claims_of(&values, missed)[1].p.unwrap_or(0.0);
        assert!(p(1) > p(0) && p(100) > 0.01);
        assert!(claims_of(&values, 2)[1].conditions.contains("2 missed releases count"));
    }

    #[test]
    fn thresholds_are_watched_up_to_the_first_that_no_release_exceeds() {
        let up_to = |missed: u64| {
            let mut exceedances = Exceedances::new(1_000_000, &[]);
            for cycle in 0..1_000 {
                let before = if cycle == 500 { missed } else { 0 };
                exceedances.push(5_000 + cycle, before, 5_000);
            }
            let watched = watched(&exceedances.finish(missed));
            watched.last().map(|last| (last.above_ns, last.most))
        };
        assert_eq!(up_to(0), Some((10_000, 0)));
        // Two that never ran, which the next one came 1 and 2 ms after.
        assert_eq!(up_to(2), Some((5_000_000, 0)));
    }

    #[test]
    fn cycles_that_went_unrecorded_weaken_every_claim_and_are_named() {
        let values: Vec<i64> = (0..100_000).map(|i| 5_000 + (i * 7_919) % 1_000).collect();
        let (whole, lossy) = (claims_of(&values, 0), claims_with(&values, 0, 50));
        let at = |claims: &[Claim], level| -> Vec<Claim> {
            claims.iter().filter(|claim| claim.level == level).cloned().collect()
        };
        for (whole, lossy) in at(&whole, Level::L1).iter().zip(at(&lossy, Level::L1)) {
            assert!(lossy.p > whole.p && lossy.p > Some(50.0 / 100_050.0), "{lossy:?}");
            assert!(lossy.statement.contains("at most 50"), "{}", lossy.statement);
        }
        for (whole, lossy) in at(&whole, Level::L2).iter().zip(at(&lossy, Level::L2)) {
            assert!(lossy.bound_ns.is_none() || lossy.bound_ns >= whole.bound_ns, "{lossy:?}");
        }
        // Of 100 050 cycles 100 may exceed the 99.9 % quantile: with those lost too few are left.
        assert!(at(&whole, Level::L2).iter().any(|c| c.p == Some(0.999) && c.bound_ns.is_some()));
        assert!(!at(&lossy, Level::L2).iter().any(|c| c.p == Some(0.999) && c.bound_ns.is_some()));
        assert!(lossy.iter().all(|claim| claim.conditions.contains("50 cycles went unrecorded")));
        // As many as a file may say: nothing overflows.
        assert!(!claims_with(&values[..100], u64::MAX, u64::MAX).is_empty());
        // More than half of them lost: there is no interval of a median.
        assert!(at(&claims_with(&values[..100], 0, 200), Level::L2).is_empty());
    }
}
