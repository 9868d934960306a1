//! `punctual analyse FILE`: judges recorded data without measuring.
//!
//! Reads the project's own sample files, told by their first bytes, and CSV, told by `--column`.
//! One pass in memory that does not grow with the file; instants need a second one to turn
//! deviations from the grid into lateness.

mod csv;
pub(super) mod samples;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use punctual::core::file::FILE_MAGIC;

use crate::Exit;
use crate::args::{AnalyseArgs, ReportArgs};
use crate::experiment;
use crate::output::{self, Json};
use crate::report::{self, Report};
use crate::stored::SAMPLES;
use crate::view;

/// Runs the subcommand.
pub(crate) fn run(args: &AnalyseArgs) -> Result<Exit> {
    output::distinct(args.report.json.as_deref(), Some(&args.file))?;
    let json = Json::open(args.report.json.as_deref())?;
    if args.column.is_none() && super::soak::is_campaign(&args.file) {
        let report = super::soak::held(&args.file, &args.report.limits)?;
        json.write(&view::json::of(&report)?, &view::text::soak(&report))?;
        return Ok(super::exit(&report));
    }
    let mut report = match &args.column {
        Some(column) => csv::read(args, column)?,
        None => recorded(args)?,
    };
    report.verdicts = report::verdicts(&report.runs);
    report.verdict = report::judge(&report.runs, &args.report.limits, report.incomplete);
    report.verdict.hold(&report.runs, &args.report.claims, report.incomplete);
    json.write(&view::json::of(&report)?, &view::text::measure(&report))?;
    Ok(super::exit(&report))
}

/// Lateness thresholds that limits and claims ask about, to be watched on the way.
fn thresholds(args: &ReportArgs) -> Vec<i64> {
    experiment::thresholds(&args.limits, &args.claims)
}

/// A file, or standard input for `-`. A directory is refused here: it opens, and does not read.
fn open(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let meta = file.metadata().with_context(|| format!("cannot read {shown}"))?;
    if meta.is_dir() {
        bail!("cannot read {shown}: it is a directory");
    }
    Ok(Box::new(file))
}

fn recorded(args: &AnalyseArgs) -> Result<Report> {
    // A directory that `check` wrote stands for the samples in it.
    let inside = args.file.join(SAMPLES);
    let path = if inside.is_file() { &inside } else { &args.file };
    let shown = path.display();
    if args.period.is_some() {
        bail!("--period: a sample file states its own; it goes with --column");
    }
    let mut reader = open(path)?;
    let mut head = [0; FILE_MAGIC.len()];
    let mut filled = 0;
    while filled < head.len() {
        match reader.read(&mut head[filled..]).with_context(|| format!("cannot read {shown}"))? {
            0 => break,
            more => filled += more,
        }
    }
    if head != FILE_MAGIC {
        bail!(
            "{shown}: no sample file of punctual's; for CSV say what a column holds, e.g. \
             --column lateness:us"
        );
    }
    samples::read(&args.report, io::Cursor::new(head).chain(reader))
        .with_context(|| path.display().to_string())
}
