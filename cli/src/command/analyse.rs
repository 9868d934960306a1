//! `punctual analyse FILE`: judges recorded data without measuring.
//!
//! Reads the project's own sample files and those of other programs, recognised by their content,
//! and CSV, with `--column`. One pass in memory that does not grow with the file; instants need a
//! second one to turn deviations from the grid into lateness.

mod csv;
mod data;
mod foreign;
mod pasted;
pub(super) mod samples;
mod source;

use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use punctual_core::file::FILE_MAGIC;
use punctual_import::formats::{self, Format, HEAD_BYTES, detect};

use crate::args::AnalyseArgs;
use crate::exit::Exit;
use crate::report::{self, Question, Report};
use crate::stored::SAMPLES;
use crate::view::text::Detail;
use data::RecordedData;

/// Runs the subcommand.
pub(crate) fn run(args: &AnalyseArgs) -> Result<Exit> {
    args.report.output.spare([args.file.as_path()])?;
    let outputs = args.report.output.open()?;
    if args.column.is_none() && super::soak::is_campaign(&args.file) {
        let report = super::soak::judged(&args.file, &args.report)?;
        super::write_in(&report, outputs, args.report.detail(Detail::Long))?;
        return Ok(Exit::of(&report));
    }
    let RecordedData { mut envelope, runs } = match &args.column {
        Some(column) => csv::read(args, column)?,
        None => recorded(args)?,
    };
    let judged = report::of_first_wait(&runs);
    envelope.verdict = report::judge(judged, &args.report.limits, envelope.incomplete);
    let claims = (&args.report.claims[..], args.report.strict);
    envelope.verdict.judge_claims(judged, claims, envelope.incomplete);
    let question = Question { incomplete: envelope.incomplete, ..Question::default() };
    let judged = report::judged(runs, &[], &envelope, &question);
    let report = Report { envelope, body: judged.into() };
    super::write_in(&report, outputs, args.report.detail(Detail::Long))?;
    Ok(Exit::of(&report))
}

fn recorded(args: &AnalyseArgs) -> Result<RecordedData> {
    // A directory that `check` wrote stands for the samples in it.
    let inside = args.file.join(SAMPLES);
    let path = if inside.is_file() { &inside } else { &args.file };
    let shown = path.display();
    // A name that cannot be read is refused for that, whatever the other options.
    let mut reader = source::open(path)?;
    if args.period.is_some() {
        bail!("--period requires --column: a recording states its own period");
    }
    let head = source::head(&mut reader, HEAD_BYTES);
    let head = head.with_context(|| format!("cannot read {shown}"))?;
    if head.starts_with(&FILE_MAGIC) {
        let reader = io::Cursor::new(head).chain(reader);
        return samples::read(&args.report, reader).with_context(|| shown.to_string());
    }
    let Some(format) = detect(&head) else {
        if let Some((format, text)) = pasted::read(&head) {
            let reader = io::Cursor::new(text.into_bytes());
            return foreign::read(args, format, reader).with_context(|| shown.to_string());
        }
        if pasted::is_summary(&head) {
            bail!(
                "{shown}: the line of 'cyclictest -q' has only min, average and max; run \
                 cyclictest with -h 500 --json=FILE and analyse that file"
            );
        }
        bail!(
            "{shown}: unrecognised file format; accepted are sample files of punctual and files \
             of {}; for CSV, name a column, e.g. --column lateness:us",
            formats::programs()
        );
    };
    let reader = io::Cursor::new(head).chain(reader);
    foreign::read(args, format, reader).with_context(|| shown.to_string())
}

/// The format of another program's file; `None` for any other.
pub(super) fn format_of(path: &Path) -> Result<Option<&'static Format>> {
    let mut reader = source::open(path)?;
    let head = source::head(&mut reader, HEAD_BYTES);
    let head = head.with_context(|| format!("cannot read {}", path.display()))?;
    // Results of this program are JSON with versions and threads too.
    let own = head.windows(10).any(|at| at == b"\"punctual\"");
    Ok(detect(&head).filter(|_| !own))
}
