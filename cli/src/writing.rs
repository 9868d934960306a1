//! Results written: in the forms that options name, as the page that a command shows, and into the
//! directory where they are kept.
//!
//! For commands, at their end. Nothing that a view is made of may need it: an experiment of
//! `measure`, whose section is part of a view, gives a [`Measurement`] for the command line to
//! write.

use anyhow::{Context as _, Result};
use punctual_document::{Block, markdown, text};
use punctual_report::{Body, PlannedRun, Report, Run};

use crate::args::Detail;
use crate::experiment::claims::{self, PlannedReport};
use crate::format::Styled;
use crate::measuring::{FinishedMeasuring, Measurement};
use crate::output::{self, Dir, Opened, Outputs, ResultForms};
use crate::pages::Page;
use crate::stored::{LATEST, PAGE, RESULT};
use crate::subcommand::Exit;
use crate::view::{self, kinds};

/// Writes what came of a measurement, then keeps it as the baseline that it may be.
pub(crate) fn finish(measurement: Measurement) -> Result<Exit> {
    let finished = match measurement {
        Measurement::Planned(plan) => return planned(*plan),
        Measurement::Finished(finished) => *finished,
    };
    let FinishedMeasuring { report, outputs, detail, baseline, trouble } = finished;
    write_in(&report, outputs, detail)?;
    if let Some((gate, runs)) = baseline {
        gate.keep(&report, &runs)?;
    }
    Exit::after(&report, trouble)
}

/// Shows what the claims of a report take, and measures nothing.
pub(crate) fn planned(plan: PlannedReport) -> Result<Exit> {
    let PlannedReport { report, duration, announced, outputs } = plan;
    let reach = |plan: &PlannedRun| claims::reach(plan, duration);
    let reached: Vec<String> = report.body.plans().iter().map(reach).collect();
    let mut plans = vec![Block::words(announced)];
    plans.extend(kinds::plans(&report, &reached));
    let forms = ResultForms {
        json: &view::json(&report)?,
        markdown: &|| markdown::rendered(&plans),
        junit: &|| view::junit(&report),
    };
    outputs.write(&forms, text::rendered(&plans))?;
    Ok(Exit::Fine)
}

/// Writes a report where that is requested, and its page.
pub(crate) fn write(report: &Report, outputs: Outputs) -> Result<()> {
    write_in(report, outputs, Detail::Long)
}

/// As [`write`], in this much detail.
pub(crate) fn write_in(report: &Report, outputs: Outputs, detail: Detail) -> Result<()> {
    let shown = write_page(report, outputs, view::text(report, None, detail));
    name_failures(report, detail);
    shown
}

/// Writes a report in each form that is requested; `json` is one of them.
fn in_forms(report: &Report, json: &str, outputs: Outputs, page: Styled) -> Result<()> {
    let (markdown, junit) = (|| view::markdown(report), || view::junit(report));
    outputs.write(&ResultForms { json, markdown: &markdown, junit: &junit }, page)
}

/// Writes a report where that is requested, with this page.
pub(crate) fn write_page(report: &Report, outputs: Outputs, page: Styled) -> Result<()> {
    in_forms(report, &view::json(report)?, outputs, page)
}

/// As [`write_in`], and the result with its page into its directory.
pub(crate) fn write_kept(
    report: &Report,
    results: &Dir,
    outputs: Outputs,
    detail: Detail,
) -> Result<()> {
    let text = view::json(report)?;
    let kept = Opened::replace(results, RESULT, &text);
    let shown = results.path().display().to_string();
    // A page that there is no room for is not named.
    let page = view::text(report, Some(shown.as_str()).filter(|_| kept.is_ok()), detail);
    // Each of them is tried: what one disk has no room for another has.
    let shown = in_forms(report, &text, outputs, page);
    name_failures(report, detail);
    let drawn = Page::measured(report, results)
        .with_context(|| format!("cannot write {}", results.path().join(PAGE).display()))
        .and_then(|page| Opened::replace(results, PAGE, view::html(&page)));
    let runs = report.body.runs();
    let is_empty = !runs.is_empty() && runs.iter().all(Run::is_empty);
    match &kept {
        // What was measured before stays the latest.
        Ok(_) if is_empty => output::message(&format!(
            "nothing was measured: the result is kept in {}, and '{LATEST}' does not lead to it",
            results.path().display()
        )),
        Ok(_) => results.be_latest(),
        Err(_) => {}
    }
    shown.and(kept).and(drawn.map(drop))
}

/// Says on standard error what a baseline says, what holds by an assumption and what failed, where
/// the page is a line that has no room for it.
fn name_failures(report: &Report, detail: Detail) {
    if detail == Detail::Line {
        // The line of `compare` says that already.
        if !matches!(report.body, Body::Compare(_)) {
            kinds::held(report).iter().for_each(|held| output::message(held));
        }
        let verdict = &report.envelope.verdict;
        verdict.assumptions().chain(verdict.failures()).for_each(|why| output::message(&why));
    }
}
