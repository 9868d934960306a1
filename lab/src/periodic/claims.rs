//! The needs of an experiment's claims: cycles and time, from its plan.
//!
//! Pure. Never changes a plan: no run becomes longer than was requested.

use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::plan::Planned;
use punctual_core::time::Span;

use super::EvaluationConfig;
use super::{ConditionBlock, PeriodicPlan};

/// The needs of a claim on one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunClaim {
    /// The stream.
    pub stream: usize,
    /// The condition; `None` for all but the first together.
    pub condition: Option<usize>,
    /// The cycles that it needs, and those that the run is to give.
    pub planned: Planned,
    /// The whole experiment's length, ns, with which this run has cycles enough for no exceedance.
    pub duration_needed_ns: f64,
}

/// One run, as the plan has it.
struct Promised {
    stream: usize,
    condition: Option<usize>,
    period_ns: u64,
    cycles: u64,
}

/// The needs of each claim of `watch` on each run of the plan for a duration, with the extremal
/// index `theta`.
pub fn plans(
    watch: &EvaluationConfig,
    theta: f64,
    duration: Span,
    plan_of: &dyn Fn(Span) -> PeriodicPlan,
) -> Vec<RunClaim> {
    let runs_of = |duration| promised(&plan_of(duration), watch);
    let now = runs_of(duration);
    let claim = |ask: &Ask, at: usize| {
        let run = &now[at];
        let planned = Planned::of(ask, theta, run.period_ns, run.cycles);
        let needed = planned.needs.first().map_or(0, |need| need.n);
        let cycles_of = |duration| runs_of(duration).get(at).map_or(0, |run| run.cycles);
        let duration_needed_ns = lengthened(duration, run.cycles, needed, cycles_of);
        RunClaim { stream: run.stream, condition: run.condition, planned, duration_needed_ns }
    };
    let claims = watch.claims.iter();
    claims
        .flat_map(|ask| (0..now.len()).map(move |at| (ask, at)))
        .map(|(ask, at)| claim(ask, at))
        .collect()
}

/// The runs of a plan and the cycles that each is to have.
fn promised(plan: &PeriodicPlan, watch: &EvaluationConfig) -> Vec<Promised> {
    let cold = if watch.keep_cold { 0 } else { u64::from(plan.cold) };
    let mut runs = Vec::new();
    for (number, stream) in plan.streams.iter().enumerate() {
        let period_ns = stream.period.as_ns();
        let cycles = |counts: &dyn Fn(usize) -> bool| -> u64 {
            let blocks = plan.blocks.iter().filter(|block| counts(block.condition));
            let cycles_of = |block: &ConditionBlock| {
                (block.length.as_ns().unsigned_abs() / period_ns).saturating_sub(cold)
            };
            blocks.map(cycles_of).sum()
        };
        let conditions = plan.conditions.len();
        // With a wait of its own a condition is not judged beside those that count as one.
        let alone = if watch.merge { conditions.min(1) } else { conditions };
        for at in 0..alone {
            let (condition, cycles) = (Some(at), cycles(&|condition| condition == at));
            runs.push(Promised { stream: number, condition, period_ns, cycles });
        }
        if (alone..conditions).any(|at| plan.counts_as_one(at)) {
            let cycles = cycles(&|condition| plan.counts_as_one(condition));
            runs.push(Promised { stream: number, condition: None, period_ns, cycles });
        }
    }
    runs
}

/// The length, ns, with which a run has `needed` cycles, where it has `cycles` at `duration`: by
/// its share, and by trying, as a longer experiment may share its time out otherwise.
fn lengthened(
    duration: Span,
    mut cycles: u64,
    needed: u64,
    cycles_of: impl Fn(Span) -> u64,
) -> f64 {
    let mut length_ns = duration.as_ns() as f64;
    for _ in 0..TRIES {
        if cycles >= needed {
            break;
        }
        let factor = if cycles == 0 { 2.0 } else { needed as f64 / cycles as f64 * SPARE };
        if length_ns * factor > LENGTH_MAX_NS {
            length_ns *= factor;
            break;
        }
        length_ns *= factor.min(STEP_MAX);
        cycles = cycles_of(Span::from_ns(length_ns as i64));
    }
    length_ns
}

const TRIES: usize = 40;
/// Cold cycles weigh less in a longer run: a share measured in a short one asks too much.
const STEP_MAX: f64 = 4.0;
/// For blocks that do not come out even.
const SPARE: f64 = 1.001;
/// A hundred years: beyond that the share alone has to do.
const LENGTH_MAX_NS: f64 = 3.2e18;

#[cfg(test)]
mod tests {
    use punctual::RtThread;
    use punctual_core::time::Period;

    use super::*;
    use crate::periodic::{Condition, Stream, WaitKind, interleave};

    fn plan(duration: Span) -> PeriodicPlan {
        let stream = Stream {
            thread: RtThread::any().other().wait(WaitKind::Sleep),
            period: Period::from_ns(1_000_000).expect("positive"),
            phase_ns: 0,
        };
        // As check: all loads at once while there is little time.
        let loads = if duration < Span::from_ms(20_000) { 1 } else { 8 };
        let condition = |at: usize| Condition {
            name: at.to_string(),
            wait: None,
            library: None,
            loads: Vec::new(),
        };
        PeriodicPlan {
            streams: vec![stream],
            conditions: (0..=loads).map(condition).collect(),
            blocks: interleave(loads, 1, duration),
            housekeeping: Vec::new(),
            cold: 10,
        }
    }

    fn planned(claim: &str, duration: Span) -> Vec<RunClaim> {
        let claims = vec![Ask::parse(claim).expect("a claim")];
        let watch = EvaluationConfig { merge: true, claims, ..EvaluationConfig::default() };
        plans(&watch, 1.0, duration, &plan)
    }

    #[test]
    fn each_run_gets_its_share_and_a_longer_one_is_named_that_really_does() {
        let plans = planned("p(missed)<1e-6", Span::from_ms(6_000));
        let cycles: Vec<_> = plans.iter().map(|p| (p.condition, p.planned.n)).collect();
        assert_eq!(cycles, [(Some(0), 2_990), (None, 2_990)]);
        // Six seconds give half to idle, hours a third: the length is that of hours.
        let hours = plans[0].duration_needed_ns / 3_600e9;
        assert!((2.49..2.52).contains(&hours), "{hours}");
        let long = Span::from_ns(plans[0].duration_needed_ns as i64);
        assert!(planned("p(missed)<1e-6", long)[0].planned.enough);
    }

    #[test]
    fn a_run_of_cold_cycles_alone_is_promised_none() {
        let loaded = |duration| PeriodicPlan { cold: 500, ..plan(duration) };
        let claims = vec![Ask::parse("p(missed)<1e-3").expect("a claim")];
        let watch = EvaluationConfig { merge: true, claims, ..EvaluationConfig::default() };
        let claims = plans(&watch, 1.0, Span::from_ms(1_000), &loaded);
        assert_eq!((claims[0].planned.n, claims[1].planned.n), (0, 0));
        let long = Span::from_ns(claims[1].duration_needed_ns as i64);
        assert!(long < Span::from_ms(20_000), "{long:?}");
        assert!(plans(&watch, 1.0, long, &loaded)[1].planned.enough);
    }
}
