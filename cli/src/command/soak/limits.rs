//! Limits and claims while a campaign goes on: which are broken for good.
//!
//! A maximum or a count that is beyond its limit stays so. A quantile, or the probability of a
//! claim, is broken once a bound that holds at every look shows it with 95 % confidence, or the
//! claim's own. All else is judged at the end.

use punctual_analysis::campaign::{Campaign, Pool, Total};
use punctual_analysis::claim::anytime::p_lower_dependent;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::judge::{Holds, Judged, StoppingRule, judge};
use punctual_analysis::limit::{Metric, MetricLimit};
use punctual_analysis::recording::RunFigures;

use super::CampaignConfig;
use super::run_name;

/// How sure it must be that a quantile is beyond its limit.
const CONFIDENCE: f64 = 0.95;

/// What is broken for good, in words; each run and limit once.
pub(super) fn broken(campaign: &Campaign, config: &CampaignConfig) -> Vec<String> {
    let mut broken = Vec::new();
    for (at, run, pool, total) in runs(campaign) {
        let name = run_name(campaign, at, &pool.setup().runs[run]);
        let outcome = total.outcome();
        let limits = config.limits.iter().filter_map(|limit| limit_broken(limit, &outcome));
        broken.extend(limits.map(|why| format!("{name}: {why}")));
        for ask in &config.claims {
            let judged = claim(ask, total, pool.setup().runs[run].period_ns);
            if judged.holds == Holds::No {
                broken.push(format!("{name}: {}: {}", judged.statement, judged.reason));
            }
        }
    }
    broken
}

/// Every run of every setup in which something was recorded.
pub(super) fn runs(campaign: &Campaign) -> impl Iterator<Item = (usize, usize, &Pool, &Total)> {
    campaign.pools().iter().enumerate().flat_map(|(at, pool)| {
        let totals = pool.totals().iter().enumerate();
        let some = totals.filter(|(_, total)| total.cycles() + total.effort().missed > 0);
        some.map(move |(run, total)| (at, run, pool, total))
    })
}

fn limit_broken(limit: &MetricLimit, outcome: &RunFigures) -> Option<String> {
    let judgement = limit.judge(outcome);
    if judgement.ok || judgement.measured.is_none() {
        return None;
    }
    let reason = || format!("{}: {}", judgement.text, judgement.reason);
    match limit.metric() {
        Metric::Max | Metric::Missed | Metric::Unrecorded => Some(reason()),
        Metric::Quantile(p) => {
            let above_ns = limit.threshold_ns()?;
            let later = exceedances(outcome, above_ns);
            let theta = outcome.tails.theta_at(above_ns);
            let least = p_lower_dependent(later, outcome.tails.n(), theta, CONFIDENCE);
            (least > 1.0 - p.share()).then(reason)
        }
        _ => None,
    }
}

/// How many were later at least: counted where the threshold was watched, else what the buckets
/// surely hold.
fn exceedances(outcome: &RunFigures, above_ns: i64) -> u64 {
    let buckets = || {
        let above = outcome.lateness.buckets().filter(|bucket| bucket.lowest_ns > above_ns);
        above.map(|bucket| bucket.count).sum()
    };
    let counted = outcome.tails.exceedances(above_ns).map(|_most| {
        let (least, _most) = outcome.tails.exceedances_within(above_ns);
        least
    });
    counted.unwrap_or_else(buckets)
}

/// A claim, judged by bounds for any time: whoever runs a campaign may end it when it looks good.
pub(super) fn claim(ask: &Ask, total: &Total, period_ns: u64) -> Judged {
    judge(ask, &Ok(total.counted(ask)), StoppingRule::AtAnyTime, Some(period_ns))
}
