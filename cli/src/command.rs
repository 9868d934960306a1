//! The subcommands, one file each: arguments in, a report out, a view printed, an exit code.

pub(crate) mod analyse;
pub(crate) mod baseline;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod export;
pub(crate) mod facts;
pub(crate) mod impact;
pub(crate) mod isolate;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod measure;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod respond;
pub(crate) mod run;
pub(crate) mod sched;
pub(crate) mod schema;
pub(crate) mod soak;
pub(crate) mod stimulate;
pub(crate) mod task;
pub(crate) mod tune;
pub(crate) mod unthrottled;

use anyhow::Result;
use punctual_core::time::Span;
use punctual_report::{PlannedRun, Report};

use crate::exit::Exit;
use crate::experiment::{self, root};
use crate::output::{self, Outputs};
use crate::view;
use crate::view::Detail;

/// Shows what the claims of a report take, and measures nothing.
fn planned(report: &Report, duration: Span, outputs: Outputs) -> Result<Exit> {
    let reach = |plan: &PlannedRun| experiment::reach(plan, duration);
    let reached: Vec<String> = report.body.plans().iter().map(reach).collect();
    let plans = view::kinds::plans(report, &reached);
    let markdown = || punctual_document::markdown::rendered(&plans);
    outputs.write(&view::json(report)?, markdown, punctual_document::text::rendered(&plans))?;
    Ok(Exit::Fine)
}

/// Writes a report where that is requested, and its page.
fn write(report: &Report, outputs: Outputs) -> Result<()> {
    write_in(report, outputs, Detail::Long)
}

/// The same, in so much detail.
fn write_in(report: &Report, outputs: Outputs, detail: Detail) -> Result<()> {
    let (page, markdown) = (view::text(report, None, detail), || view::markdown(report));
    let shown = outputs.write(&view::json(report)?, markdown, page);
    name_failures(report, detail);
    shown
}

/// Says on standard error what failed, where the page is a line that has no room for it.
fn name_failures(report: &Report, detail: Detail) {
    if detail == Detail::Line {
        report.envelope.verdict.failures().for_each(|why| output::message(&why));
    }
}
