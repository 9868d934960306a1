//! CSV with one instant or one lateness a line, as the one run of a report.
//!
//! Instants alone do not contain the releases: a first pass fits the grid, a second one measures
//! lateness from the earliest wake relative to it. Standard input cannot be read twice, and then
//! only grid and interval are given.

use std::path::Path;

use anyhow::{Context, Result, bail};
use punctual_analysis::claim::ask::{Ask, ClaimEvent};
use punctual_analysis::recording::{Recording, RecordingConfig, ReleaseInstants, RunFigures};
use punctual_core::time::{Instant, Period};
use punctual_import::csv::{ColumnKind, ColumnSpec, CsvFile};

use super::data::RecordedData;
use crate::args::AnalyseArgs;
use crate::format;
use crate::report::{self, Run, Setup};

/// A drift beyond this (1 %) is a wrong period rather than a clock.
const DRIFT_MAX_PPB: f64 = 1e7;

/// Reads a whole file.
pub(super) fn read(args: &AnalyseArgs, column: &ColumnSpec) -> Result<RecordedData> {
    let mut read = RecordedData::new();
    let period = args.period.map(|period| period.period()).transpose()?;
    let kind = column.kind(period.is_some());
    let first = match kind {
        ColumnKind::Lateness => ReleaseInstants::Known,
        ColumnKind::Instant => ReleaseInstants::Unknown,
    };
    let mut outcome = pass(args, column, period, first)?;
    if outcome.cycles == 0 {
        bail!("{}: no data", args.file.display());
    }
    if let (Some(grid), Some(nominal)) = (&outcome.grid, period)
        && grid.drift_ppb.abs() > DRIFT_MAX_PPB
    {
        read.envelope.warnings.push(format!(
            "the fitted period is {}, but --period is {}: unless the clock was off by that much, \
             the counts of cycles and of missed releases are wrong",
            format::ns(Some(grid.period_ns)),
            format::period(nominal.as_ns())
        ));
    }
    if let (ColumnKind::Instant, Some(line)) = (kind, outcome.line) {
        if args.file == Path::new("-") {
            read.envelope.warnings.push(
                "standard input can be read only once: the report has grid and interval, but no \
                 lateness"
                    .to_owned(),
            );
        } else {
            outcome = pass(args, column, period, ReleaseInstants::Fitted(line))?;
            read.envelope.warnings.push(
                "instants alone do not contain the releases: lateness is measured from the \
                 earliest wake relative to the fitted grid"
                    .to_owned(),
            );
        }
    }
    let setup = Setup { period_ns: period.map(Period::as_ns), ..Setup::default() };
    read.runs.push(Run::recorded(args.file.display().to_string(), setup, outcome));
    Ok(read)
}

fn pass(
    args: &AnalyseArgs,
    column: &ColumnSpec,
    period: Option<Period>,
    releases: ReleaseInstants,
) -> Result<RunFigures> {
    let shown = || args.file.display().to_string();
    let reader = super::source::open(&args.file)?;
    let mut file = CsvFile::open(reader, column.clone(), period).with_context(shown)?;
    let mut recording = Recording::new(RecordingConfig {
        period,
        epoch: Instant::from_ns(0),
        leave_out_cold: !args.report.keep_cold,
        thresholds_ns: report::thresholds(&args.report.limits, &args.report.claims),
        releases,
    })
    .watching(&watched(args, releases));
    loop {
        let block = file.next_block().with_context(shown)?;
        if block.is_empty() {
            break;
        }
        recording.extend(block);
    }
    recording.set_epoch(file.epoch().unwrap_or_default());
    let mut outcome = recording.finish(0);
    if file.kind() == ColumnKind::Lateness {
        // A column of lateness does not say which releases it leaves out.
        (outcome.missed, outcome.wakes.left_out) = (None, None);
    }
    Ok(outcome)
}

/// The claims that such data can show: latenesses alone do not show what was missed between
/// two of them.
fn watched(args: &AnalyseArgs, releases: ReleaseInstants) -> Vec<Ask> {
    let shown =
        |ask: &&Ask| releases != ReleaseInstants::Known || ask.event() != ClaimEvent::Missed;
    args.report.claims.iter().filter(shown).copied().collect()
}
