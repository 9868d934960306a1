//! The cycles and the time that the claims of an experiment need, in words, before it starts.
//!
//! For the measuring subcommands. The figures are `punctual_lab::periodic::plans`'.

use punctual_core::time::Span;
use punctual_lab::periodic::{self, PeriodicPlan, RunClaim};
use punctual_report::{PlannedRun, Report};

use super::loops::{UNDER_LOAD, run_name, watch};
use crate::args::{PlanArgs, ReportArgs};
use crate::format;
use crate::output::{self, Outputs};

/// A measurement that is planned and not made, as `--plan` asks.
pub(crate) struct PlannedReport {
    /// A report without runs, with the plans of the claims.
    pub(crate) report: Report,
    /// The time that it would measure, in all.
    pub(crate) duration: Span,
    /// That time in words, and what would be measured.
    pub(crate) announced: String,
    /// Where the report goes.
    pub(crate) outputs: Outputs,
}

/// The length of a measurement, as a sentence: "measuring for 4 min 16 s".
pub(crate) fn measuring(duration: Span) -> String {
    let s = duration.as_ns() / 1_000_000_000;
    match (s / 60, s % 60) {
        (2..60, 0) => format!("measuring for {} min", s / 60),
        (2..60, rest) => format!("measuring for {} min {rest} s", s / 60),
        _ => format!("measuring for {}", format::long(duration.as_ns() as f64)),
    }
}

/// The cycles and the time that each claim takes of each run of the plan; with `merge`, of all
/// conditions but the first together.
pub(crate) fn plans(
    args: &ReportArgs,
    how: &PlanArgs,
    duration: Span,
    merge: bool,
    plan_of: &dyn Fn(Span) -> PeriodicPlan,
) -> Vec<PlannedRun> {
    let plan = plan_of(duration);
    let named = |claim: RunClaim| {
        let condition = claim.condition.map_or(UNDER_LOAD, |at| plan.conditions[at].name.as_str());
        PlannedRun {
            run: run_name(&plan, &plan.streams[claim.stream], condition),
            planned: claim.planned,
            duration_needed_ns: claim.duration_needed_ns,
        }
    };
    let theta = how.theta.unwrap_or(1.0);
    let claims = periodic::plans(&watch(args, merge), theta, duration, plan_of);
    claims.into_iter().map(named).collect()
}

/// Says on standard error how long each claim takes, by the run that has the fewest of its cycles.
pub(crate) fn announce(plans: &[PlannedRun], duration: Span) {
    let mut rest = plans;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|p| p.planned.statement == first.planned.statement);
        let (of_claim, others) = rest.split_at(same.count());
        let by_length = |a: &&PlannedRun, b: &&PlannedRun| {
            a.duration_needed_ns.total_cmp(&b.duration_needed_ns)
        };
        let shortest = of_claim.iter().filter(|p| !p.planned.enough).max_by(by_length);
        output::message(&sentence(shortest.unwrap_or(first), duration));
        rest = others;
    }
}

/// The sentence about the cycles that a claim takes, and whether a run of that length has them.
fn sentence(plan: &PlannedRun, duration: Span) -> String {
    let planned = &plan.planned;
    let needed = planned.needs.first().copied();
    let (n, needed_ns) = needed.map_or((0, 0.0), |need| (need.n, need.duration_ns));
    format!(
        "{} needs {} cycles without an exceedance ({} at {}): {}",
        planned.statement,
        format::count(n),
        format::long(needed_ns),
        format::period(planned.period_ns),
        reach(plan, duration)
    )
}

/// The sentence whether a run of that length is long enough for a claim.
pub(crate) fn reach(plan: &PlannedRun, duration: Span) -> String {
    let planned = &plan.planned;
    if planned.enough {
        let n = format::count(planned.n);
        return format!(
            "\"{}\" has {n} cycles: enough if no cycle exceeds the limit and late ones come alone; \
             where they come together it takes several times as many",
            plan.run
        );
    }
    let would_do = format::argument(plan.duration_needed_ns)
        .map_or_else(String::new, |text| format!("; measure with --duration {text}"));
    format!(
        "a run of {} gives \"{}\" {} cycles, too few to show this claim{would_do}",
        format::long(duration.as_ns() as f64),
        plan.run,
        format::count(planned.n),
    )
}

#[cfg(test)]
mod tests {
    use punctual::RtThread;
    use punctual_analysis::claim::ask::Ask;
    use punctual_core::time::Period;
    use punctual_lab::periodic::{Condition, Stream, WaitKind, interleave};

    use super::*;

    fn plan(duration: Span) -> PeriodicPlan {
        let stream = Stream {
            thread: RtThread::any().other().wait(WaitKind::Sleep),
            period: Period::from_ns(1_000_000).expect("positive"),
            phase_ns: 0,
        };
        // As check: all loads at once while there is little time.
        let loads = if duration < Span::from_ms(20_000) { 1 } else { 8 };
        let name = |at| Condition {
            name: if at == 0 { "idle".into() } else { format!("load {at}") },
            wait: None,
            library: None,
            loads: Vec::new(),
        };
        PeriodicPlan {
            streams: vec![stream],
            conditions: (0..=loads).map(name).collect(),
            blocks: interleave(loads, 1, duration),
            housekeeping: Vec::new(),
            cold: 10,
        }
    }

    fn planned(claim: &str, duration: Span) -> Vec<PlannedRun> {
        let mut args = ReportArgs::unjudged(false);
        args.claims.push(Ask::parse(claim).expect("a claim"));
        let how = PlanArgs { plan: false, theta: None };
        plans(&args, &how, duration, true, &plan)
    }

    #[test]
    fn each_run_gets_its_share_and_a_longer_one_is_named_that_really_does() {
        let plans = planned("p(missed)<1e-6", Span::from_ms(6_000));
        let runs: Vec<(&str, u64)> = plans.iter().map(|p| (p.run.as_str(), p.planned.n)).collect();
        assert_eq!(runs, [("idle", 2_990), ("under load", 2_990)]);
        // Six seconds give half to idle, hours a third: the length is that of hours.
        let hours = plans[0].duration_needed_ns / 3_600e9;
        assert!((2.49..2.52).contains(&hours), "{hours}");
        let long = Span::from_ns(plans[0].duration_needed_ns as i64);
        assert!(planned("p(missed)<1e-6", long)[0].planned.enough);
        let text = sentence(&plans[0], Span::from_ms(6_000));
        for part in [
            "2\u{a0}995\u{a0}733 cycles",
            "50 min at 1 ms",
            "too few to show this claim",
            "; measure with --duration 2.5h",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn what_nobody_can_wait_for_is_not_recommended() {
        let plans = planned("p(missed)<1e-15", Span::from_ms(60_000));
        assert!(!sentence(&plans[0], Span::from_ms(60_000)).contains("--duration"));
        let enough = planned("p(missed)<0.01", Span::from_ms(60_000));
        assert!(enough.iter().all(|plan| plan.planned.enough));
        let sentence = sentence(&enough[0], Span::from_ms(60_000));
        assert!(sentence.contains("enough if no cycle exceeds the limit and"), "{sentence}");
        assert!(sentence.ends_with("it takes several times as many"), "{sentence}");
    }
}
