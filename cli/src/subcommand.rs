//! What subcommands share: arguments that execute, their exit status, and how a report goes out.

use anyhow::Result;
use punctual_core::time::Span;
use punctual_report::{PlannedRun, Report};

use crate::args::Detail;
use crate::experiment::claims;
use crate::output::{self, Outputs};
use crate::view;

/// The outcome of a subcommand that could run; what could not run is an error, and exit 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All limits and claims hold.
    Fine,
    /// A limit or claim failed.
    Failed,
    /// None failed, and one needs more data than there are.
    Undecided,
    /// A command that was run ended with this status; 128 and the signal where one ended it.
    Status(u8),
}

impl Exit {
    /// The exit status that the verdict of a report requires.
    pub(crate) fn of(report: &Report) -> Self {
        let verdict = &report.envelope.verdict;
        match (verdict.ok, verdict.is_undecided()) {
            (true, _) => Self::Fine,
            (false, true) => Self::Undecided,
            (false, false) => Self::Failed,
        }
    }

    /// As `of`, or the error that occurred on the way: returned last, after everything was written.
    pub(crate) fn after(report: &Report, trouble: Option<anyhow::Error>) -> Result<Self> {
        trouble.map_or_else(|| Ok(Self::of(report)), Err)
    }
}

/// Arguments of a subcommand, which say what it does.
pub(crate) trait Execute {
    /// Does it: a report out, a view printed.
    ///
    /// # Errors
    /// Why it could not run.
    fn execute(&self) -> Result<Exit>;
}

/// Shows what the claims of a report take, and measures nothing.
pub(crate) fn planned(report: &Report, duration: Span, outputs: Outputs) -> Result<Exit> {
    let reach = |plan: &PlannedRun| claims::reach(plan, duration);
    let reached: Vec<String> = report.body.plans().iter().map(reach).collect();
    let plans = view::kinds::plans(report, &reached);
    let markdown = || punctual_document::markdown::rendered(&plans);
    outputs.write(&view::json(report)?, markdown, punctual_document::text::rendered(&plans))?;
    Ok(Exit::Fine)
}

/// Writes a report where that is requested, and its page.
pub(crate) fn write(report: &Report, outputs: Outputs) -> Result<()> {
    write_in(report, outputs, Detail::Long)
}

/// As [`write`], in as much detail as is asked for.
pub(crate) fn write_in(report: &Report, outputs: Outputs, detail: Detail) -> Result<()> {
    let (page, markdown) = (view::text(report, None, detail), || view::markdown(report));
    let shown = outputs.write(&view::json(report)?, markdown, page);
    name_failures(report, detail);
    shown
}

/// Says on standard error what failed, where the page is a line that has no room for it.
pub(crate) fn name_failures(report: &Report, detail: Detail) {
    if detail == Detail::Line {
        report.envelope.verdict.failures().for_each(|why| output::message(&why));
    }
}
