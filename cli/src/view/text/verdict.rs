//! The end of the page: warnings, what it is good for, limits, claims, what to do next.

use punctual_analysis::claim::Level;

use crate::format;
use crate::report::{ENDED_EARLY, Report};

/// Caveats about the numbers.
pub(super) fn warnings(report: &Report) -> String {
    let mut page = String::new();
    for disturbance in &report.envelope.disturbances {
        page += &(format::wrap(&format!("  during the run: {}", disturbance.what), 4) + "\n");
    }
    for warning in &report.envelope.warnings {
        page += &(format::wrap(&format!("  note: {warning}"), 4) + "\n");
    }
    if page.is_empty() { page } else { format!("\n{page}") }
}

/// What it is good for, in the unit of an application.
pub(super) fn good_for(report: &Report) -> String {
    if report.body.verdicts().is_empty() {
        return String::new();
    }
    let question = report.body.headline().and_then(|headline| headline.question.as_ref());
    let question = question.map_or("What it is good for", String::as_str);
    let mut page = format!("\n{}\n", format::wrap(question, 2));
    let subjects = report.body.verdicts().iter().map(|of| of.subject.chars().count());
    let width = subjects.max().unwrap_or(0);
    for verdict in report.body.verdicts() {
        page += &super::brief::answer(verdict, width.max(7));
    }
    page
}

/// Every claim, with what it takes for granted.
pub(super) fn claims(report: &Report) -> String {
    let mut page =
        "\nWhat can be claimed (L0: observed; L1 and L2: 95 % confidence; L3: from a model)\n"
            .to_owned();
    let level = |level| match level {
        Level::L0 => "L0",
        Level::L1 => "L1",
        Level::L2 => "L2",
        Level::L3 => "L3",
    };
    for run in report.body.runs() {
        for claim in &run.outcome.claims {
            let text = format!("  {}  {}: {}", level(claim.level), run.name, claim.statement);
            page += &(format::wrap(&text, 6) + "\n");
        }
    }
    page
}

/// Each limit on each run.
pub(super) fn limits(report: &Report) -> String {
    if report.envelope.verdict.limits.is_empty() {
        return String::new();
    }
    let mut page = "\nLimits\n".to_owned();
    for limit in &report.envelope.verdict.limits {
        let word = if limit.judgement.ok { "holds" } else { "FAILS" };
        let text = format!(
            "  {word:8}{} for {}: {}",
            limit.judgement.text, limit.run, limit.judgement.reason
        );
        page += &(format::wrap(&text, 10) + "\n");
    }
    for reason in report.envelope.verdict.reasons.iter().filter(|&reason| reason == ENDED_EARLY) {
        page += &(format::wrap(&format!("  FAILS   {reason}"), 10) + "\n");
    }
    page
}
