//! The claims: what they take, and whether they were shown.

use punctual_analysis::claim::judge::Holds;

use crate::format;
use crate::report::Report;

/// What each claim takes with so many exceedances; for each plan, in `reached`, whether the run is
/// long enough.
pub(crate) fn plans(report: &Report, reached: &[String]) -> String {
    let mut page = String::new();
    let mut claim = None;
    for (plan, reached) in report.body.plans().iter().zip(reached) {
        let planned = &plan.planned;
        if claim != Some((&planned.statement, planned.period_ns)) {
            claim = Some((&planned.statement, planned.period_ns));
            page += &format!(
                "{} (confidence {}, extremal index {})\n  {:>11} {:>24} {:>14}\n",
                format::plain(&planned.statement),
                planned.confidence,
                planned.theta,
                "exceedances",
                "cycles",
                format!("at {}", format::period(planned.period_ns)),
            );
            for need in &planned.needs {
                page += &format!(
                    "  {:>11} {:>24} {:>14}\n",
                    need.exceedances,
                    format::count(need.n),
                    format::long(need.duration_ns)
                );
            }
        }
        page += &(format::wrap(&format!("  {reached}"), 4) + "\n");
    }
    page
}

/// Each claim on each run.
pub(super) fn judged(report: &Report) -> String {
    if report.envelope.verdict.claims.is_empty() {
        return String::new();
    }
    let mut page = "\nClaims\n".to_owned();
    for claim in &report.envelope.verdict.claims {
        let judged = &claim.judged;
        let word = claim.word();
        let takes = match (judged.holds, judged.duration_needed_ns) {
            (Holds::Undecided | Holds::IfAlone, Some(ns)) => {
                format!("; at this rate that takes {}", format::long(ns))
            }
            _ => String::new(),
        };
        let text =
            format!("  {word:7} {} for {}: {}{takes}", judged.statement, claim.run, judged.reason);
        page += &(format::wrap(&text, 10) + "\n");
    }
    page
}
