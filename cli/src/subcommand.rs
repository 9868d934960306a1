//! Common parts of subcommands: arguments that execute, their exit status, and the way out of a
//! report.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, anyhow};
use punctual_core::time::Span;
use punctual_document::Block;
use punctual_report::{Body, PlannedRun, Report};

use crate::args::Detail;
use crate::experiment::claims;
use crate::format::{self, Styled};
use crate::output::{self, Dir, Opened, Outputs, ResultForms};
use crate::pages::Page;
use crate::stored::{PAGE, RESULT};
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
    pub(crate) fn after(report: &Report, trouble: Option<Error>) -> Result<Self> {
        trouble.map_or_else(|| Ok(Self::of(report)), Err)
    }
}

/// Arguments of a subcommand, which say what it does.
pub(crate) trait Execute {
    /// Does it: a report out, a view printed.
    ///
    /// # Errors
    /// The subcommand could not run.
    fn execute(&self) -> Result<Exit>;
}

/// Shows what the claims of a report take, and measures nothing.
pub(crate) fn planned(
    report: &Report,
    (duration, announced): (Span, &str),
    outputs: Outputs,
) -> Result<Exit> {
    let reach = |plan: &PlannedRun| claims::reach(plan, duration);
    let reached: Vec<String> = report.body.plans().iter().map(reach).collect();
    let mut plans = vec![Block::words(announced)];
    plans.extend(view::kinds::plans(report, &reached));
    let forms = ResultForms {
        json: &view::json(report)?,
        markdown: &|| punctual_document::markdown::rendered(&plans),
        junit: &|| view::junit(report),
    };
    outputs.write(&forms, punctual_document::text::rendered(&plans))?;
    Ok(Exit::Fine)
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

/// Writes a report where that is requested, and its page.
pub(crate) fn write(report: &Report, outputs: Outputs) -> Result<()> {
    write_in(report, outputs, Detail::Long)
}

/// As [`write`], in as much detail as is asked for.
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

/// Where results are kept: each in a directory of its own, with its page.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ResultsArgs {
    /// Directory in which each run creates its own directory [default: punctual-results]
    #[arg(long = "results", value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl ResultsArgs {
    /// The directory of all.
    pub(crate) fn path(&self) -> &Path {
        self.dir.as_deref().unwrap_or_else(|| Path::new("punctual-results"))
    }

    /// Returns true where a directory was named.
    pub(crate) fn is_named(&self) -> bool {
        self.dir.is_some()
    }

    /// Makes the directory of a result that begins now.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn begin(&self) -> Result<Dir> {
        output::results_dir(self.path(), jiff::Timestamp::now())
            .map_err(|why| elsewhere(why, self.path(), "--results"))
    }
}

/// The way out where results cannot be kept in a directory. One that an earlier run as root left is
/// the usual reason, or a file system that cannot be written: there is another.
pub(crate) fn elsewhere(why: Error, results: &Path, option: &str) -> Error {
    let denied = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        matches!(kind, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem))
    };
    if why.chain().any(denied) {
        let results = results.display();
        return anyhow!("{why:#}; use another directory than {results} with {option} DIR");
    }
    why
}

/// As [`write_in`], and the result with its page into its directory.
pub(crate) fn write_kept(
    report: &Report,
    results: &Dir,
    outputs: Outputs,
    detail: Detail,
) -> Result<()> {
    let text = view::json(report)?;
    let shown = results.path().display().to_string();
    let page = view::text(report, Some(&shown), detail);
    // Each of them is tried: what one disk has no room for another has.
    let shown = in_forms(report, &text, outputs, page);
    name_failures(report, detail);
    let kept = Opened::replace(results, RESULT, &text);
    let drawn = Page::measured(report, results)
        .with_context(|| format!("cannot write {}", results.path().join(PAGE).display()))
        .and_then(|page| Opened::replace(results, PAGE, view::html(&page)));
    if kept.is_ok() {
        results.be_latest();
    }
    shown.and(kept).and(drawn.map(drop))
}

/// Says on standard error what a baseline says and what failed, where the page is a line that has
/// no room for it.
pub(crate) fn name_failures(report: &Report, detail: Detail) {
    if detail == Detail::Line {
        // The line of `compare` says that already.
        if !matches!(report.body, Body::Compare(_)) {
            view::kinds::held(report).iter().for_each(|held| output::message(held));
        }
        report.envelope.verdict.failures().for_each(|why| output::message(&why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_written_is_refused_with_the_option_that_names_another() {
        let refused = |errno| {
            let why = Error::from(io::Error::from_raw_os_error(errno)).context("cannot make r");
            format!("{:#}", elsewhere(why, Path::new("r"), "--results"))
        };
        // EACCES and EROFS; ENOSPC says what to do itself.
        for errno in [13, 30] {
            let why = refused(errno);
            assert!(why.starts_with("cannot make r: "), "{why}");
            assert!(why.ends_with("; use another directory than r with --results DIR"), "{why}");
        }
        assert!(!refused(28).contains("another directory"));
    }
}
