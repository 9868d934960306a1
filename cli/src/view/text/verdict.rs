//! The end of the page: warnings, what it is good for, limits, claims, what to do next.

use punctual_analysis::claim::Level;

use crate::format;
use crate::report::{Answer, ENDED_EARLY, Report};

/// What a reader should know before believing the numbers.
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
    let mut page = "\nWhat it is good for\n".to_owned();
    for verdict in report.body.verdicts() {
        let answer = match verdict.answer {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Unknown => "unknown",
        };
        page += &(format::wrap(&format!("  {answer:8}{}", verdict.statement), 10) + "\n");
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

/// Commands that work when pasted, for the results in this directory.
pub(super) fn next(results: &str) -> String {
    let program = std::env::args_os().next().map(|name| name.to_string_lossy().into_owned());
    let program = format::plain(program.as_deref().unwrap_or("punctual"));
    let results = format::plain(results);
    format!(
        "\nNext steps\n\x20 1. open the page in a browser, or send it:\n\x20      \
         {results}/report.html\n\x20 2. every claim, from the samples of this run:\n\x20      \
         {program} analyse {results}\n\x20 3. the effect on a stepper motor, with your motor's \
         data:\n\x20      {program} impact stepper --from {results} \\\n\x20        \
         --holding-torque 23ozin --step-angle 1.8deg --speed 5rev/s\n"
    )
}
