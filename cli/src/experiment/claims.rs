//! What the claims of an experiment take: reckoned from its plan, and said before it starts.
//!
//! For `check` and `measure`. Says; never changes a plan: nobody's run becomes longer than asked.

use punctual::core::time::Span;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::plan::Planned;
use punctual_lab::periodic::Plan;

use crate::args::{PlanArgs, ReportArgs};
use crate::format;
use crate::output;
use crate::report::{self, PlannedRun};

/// One run of a report, as the plan has it.
struct Promised {
    name: String,
    period_ns: u64,
    /// At most: starting a load takes from it.
    cycles: u64,
}

/// What each claim takes of each run of the plan for a duration; with `merge`, of all conditions
/// but the first together.
pub(crate) fn plans(
    asked: &ReportArgs,
    how: &PlanArgs,
    duration: Span,
    merge: bool,
    plan_of: &dyn Fn(Span) -> Plan,
) -> Vec<PlannedRun> {
    let of = |duration| promised(&plan_of(duration), merge, asked.keep_cold);
    let now = of(duration);
    let one = |ask: &Ask, at: usize| {
        let run = &now[at];
        let planned = Planned::of(ask, how.theta.unwrap_or(1.0), run.period_ns, run.cycles);
        let needed = planned.needs.first().map_or(0, |need| need.n);
        let cycles_of = |duration| of(duration).get(at).map_or(0, |run| run.cycles);
        let duration_needed_ns = lengthened(duration, run.cycles, needed, cycles_of);
        PlannedRun { run: run.name.clone(), planned, duration_needed_ns }
    };
    asked
        .claims
        .iter()
        .flat_map(|ask| (0..now.len()).map(move |at| (ask, at)))
        .map(|(ask, at)| one(ask, at))
        .collect()
}

/// The runs of a plan and the cycles that each is to have.
fn promised(plan: &Plan, merge: bool, keep_cold: bool) -> Vec<Promised> {
    let cold = if keep_cold { 0 } else { u64::from(plan.cold) };
    let mut runs = Vec::new();
    for stream in &plan.streams {
        let period_ns = stream.period.as_ns();
        let cycles = |conditions: std::ops::Range<usize>| -> u64 {
            let blocks = plan.blocks.iter().filter(|block| conditions.contains(&block.condition));
            let of = |ns: i64| (ns.unsigned_abs() / period_ns).saturating_sub(cold);
            blocks.map(|block| of(block.length.as_ns())).sum()
        };
        let mut run = |name: &str, cycles| {
            let name = report::run_name(plan, stream, name);
            runs.push(Promised { name, period_ns, cycles });
        };
        let conditions = plan.conditions.len();
        let alone = if merge { 1 } else { conditions };
        for (at, condition) in plan.conditions.iter().enumerate().take(alone) {
            run(&condition.name, cycles(at..at + 1));
        }
        if alone < conditions {
            run(report::UNDER_LOAD, cycles(alone..conditions));
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
        length_ns *= needed as f64 / cycles.max(1) as f64 * SPARE;
        if length_ns > LENGTH_MAX_NS {
            break;
        }
        cycles = cycles_of(Span::from_ns(length_ns as i64));
    }
    length_ns
}

const TRIES: usize = 5;
/// For blocks that do not come out even.
const SPARE: f64 = 1.001;
/// A hundred years: beyond that the share alone has to do.
const LENGTH_MAX_NS: f64 = 3.2e18;

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
        output::complain(&said(shortest.unwrap_or(first), duration));
        rest = others;
    }
}

/// What a claim takes, and whether one run of that length can give it, in a sentence.
fn said(plan: &PlannedRun, duration: Span) -> String {
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

/// Whether a run of that length is long enough for a claim.
pub(crate) fn reach(plan: &PlannedRun, duration: Span) -> String {
    let planned = &plan.planned;
    if planned.enough {
        let n = format::count(planned.n);
        return format!("\"{}\" has {n}, enough as long as none comes", plan.run);
    }
    let would_do = format::argument(plan.duration_needed_ns)
        .map_or_else(String::new, |text| format!("; --duration {text} would do"));
    format!(
        "this run is {} and gives \"{}\" {}, so it cannot hold this claim{would_do}",
        format::long(duration.as_ns() as f64),
        plan.run,
        format::count(planned.n),
    )
}

#[cfg(test)]
mod tests {
    use punctual::core::time::Period;
    use punctual::os::scheduler::Policy;
    use punctual_lab::periodic::{Condition, Stream, WaitKind, interleave};

    use super::*;

    fn plan(duration: Span) -> Plan {
        let stream = Stream {
            cpu: None,
            period: Period::from_ns(1_000_000).expect("positive"),
            phase_ns: 0,
            policy: Policy::Other,
            wait: WaitKind::Sleep,
        };
        // As check: all loads at once while there is little time.
        let loads = if duration < Span::from_ms(20_000) { 1 } else { 8 };
        let name = |at| Condition {
            name: if at == 0 { "idle".into() } else { format!("load {at}") },
            wait: None,
        };
        Plan {
            streams: vec![stream],
            conditions: (0..=loads).map(name).collect(),
            blocks: interleave(loads, 1, duration),
            housekeeping: Vec::new(),
            cold: 10,
        }
    }

    fn planned(claim: &str, duration: Span) -> Vec<PlannedRun> {
        let asked = ReportArgs {
            limits: Vec::new(),
            claims: vec![Ask::parse(claim).expect("a claim")],
            json: None,
            keep_cold: false,
        };
        let how = PlanArgs { plan: false, theta: None };
        plans(&asked, &how, duration, true, &plan)
    }

    #[test]
    fn each_run_gets_its_share_and_a_longer_one_is_named_that_really_does() {
        let plans = planned("p(missed)<1e-6", Span::from_ms(6_000));
        let of: Vec<(&str, u64)> = plans.iter().map(|p| (p.run.as_str(), p.planned.n)).collect();
        assert_eq!(of, [("idle", 2_990), ("under load", 2_990)]);
        // Six seconds give half to idle, hours a third: the length is that of hours.
        let hours = plans[0].duration_needed_ns / 3_600e9;
        assert!((2.49..2.52).contains(&hours), "{hours}");
        let long = Span::from_ns(plans[0].duration_needed_ns as i64);
        assert!(planned("p(missed)<1e-6", long)[0].planned.enough);
        let text = said(&plans[0], Span::from_ms(6_000));
        for part in [
            "2\u{a0}995\u{a0}733 cycles",
            "50 min at 1 ms",
            "cannot hold",
            "--duration 2.5h would do",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn what_nobody_can_wait_for_is_not_recommended() {
        let plans = planned("p(missed)<1e-15", Span::from_ms(60_000));
        assert!(!said(&plans[0], Span::from_ms(60_000)).contains("--duration"));
        let enough = planned("p(missed)<0.01", Span::from_ms(60_000));
        assert!(enough.iter().all(|plan| plan.planned.enough));
        assert!(said(&enough[0], Span::from_ms(60_000)).contains("as long as none comes"));
    }
}
