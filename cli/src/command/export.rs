//! `punctual export RESULT`: samples and histograms in the formats of others.
//!
//! One pass over the samples, in memory that does not grow with them. What is cut off or damaged is
//! said on standard error; the file has its name once it is whole.

mod metrics;
mod sink;
mod source;
mod tables;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use punctual_export::hdr::{self, IntervalHistogram};
use punctual_export::openmetrics;

use crate::args::ExportArgs;
use crate::exit::Exit;
use crate::output;
use crate::report::Report;
use source::Source;
use tables::Table;

/// Runs the subcommand.
pub(crate) fn run(args: &ExportArgs) -> Result<Exit> {
    let to_terminal = args.output == Path::new("-") && io::stdout().is_terminal();
    if args.format.parquet && to_terminal {
        bail!("cannot write Parquet to a terminal: name a file with -o FILE");
    }
    let source = Source::open(&args.result)?;
    output::spare("--output", Some(&args.output), [args.result.as_path()])?;
    let warnings = if args.format.openmetrics {
        metrics(args, &source)?
    } else if args.format.hdr {
        log(args, &source)?
    } else {
        let table = if args.format.csv { Table::Csv } else { Table::Parquet };
        if args.histogram {
            histograms(args, &source, table)?
        } else {
            tables::samples(&source, table, &args.output)?
        }
    };
    warnings.iter().for_each(|warning| output::message(warning));
    Ok(Exit::Fine)
}

fn metrics(args: &ExportArgs, source: &Source) -> Result<Vec<String>> {
    let report = source.report(args.keep_cold)?;
    let families = metrics::families(&report, &source.shown)?;
    sink::write(&args.output, |out| Ok(openmetrics::write(out, &families)?))?;
    Ok(source.cut(&report))
}

fn log(args: &ExportArgs, source: &Source) -> Result<Vec<String>> {
    let report = source.histograms(args.keep_cold)?;
    let runs = intervals(&report, &source.shown)?;
    let notes = notes(&report);
    sink::write(&args.output, |out| Ok(hdr::write(out, &runs, started(&report), &notes)?))?;
    Ok(source.cut(&report))
}

fn histograms(args: &ExportArgs, source: &Source, table: Table) -> Result<Vec<String>> {
    let report = source.histograms(args.keep_cold)?;
    let runs = tables::distributions(&report, &source.shown)?;
    sink::write(&args.output, |out| tables::histograms(out, table, &runs, &report))?;
    Ok(source.cut(&report))
}

/// The runs with how long each was to run.
fn intervals(report: &Report, shown: &str) -> Result<Vec<IntervalHistogram>> {
    let runs = tables::distributions(report, shown)?;
    let durations = report.body.runs().iter().map(|run| run.setup.duration_ns.unwrap_or_default());
    let interval =
        |(lateness, ns)| IntervalHistogram { lateness, duration: Duration::from_nanos(ns) };
    Ok(runs.into_iter().zip(durations).map(interval).collect())
}

/// What stands at the head of a log.
fn notes(report: &Report) -> Vec<String> {
    let from = format!("written by punctual {}", env!("CARGO_PKG_VERSION"));
    let end = "the recording ended early, or its file is incomplete".to_owned();
    std::iter::once(from).chain(report.envelope.incomplete.then_some(end)).collect()
}

/// When the recording began, where that is known.
fn started(report: &Report) -> Option<SystemTime> {
    let at: jiff::Timestamp = report.envelope.started_at.as_deref()?.parse().ok()?;
    Some(at.into())
}
