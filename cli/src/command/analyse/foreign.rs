//! Another program's file, as runs of a report.
//!
//! What it cannot tell goes with each run (`imported`), what its unit was taken for into the
//! warnings.

use std::io::Read;

use anyhow::Result;
use punctual_import::formats::{self, Format, ImportRequest};

use super::data::RecordedData;
use crate::args::AnalyseArgs;
use crate::report::{self, Run, Setup};

/// Reads a whole file of `format`.
pub(super) fn read(args: &AnalyseArgs, format: &Format, reader: impl Read) -> Result<RecordedData> {
    let of_intervals = args.report.claims.iter().filter_map(|ask| ask.interval_ns());
    let request = ImportRequest {
        thresholds_ns: report::thresholds(&args.report.limits, &args.report.claims)
            .into_iter()
            .chain(of_intervals)
            .collect(),
        unit_ns: args.unit.map(|unit| unit.ns()),
    };
    let import = formats::read(format, reader, &request)?;
    let mut read = RecordedData::new();
    read.envelope.started_at = import.started_at;
    read.envelope.warnings = import.warnings;
    for run in import.runs {
        let setup = Setup {
            cpu: run.cpu,
            period_ns: run.period_ns,
            policy: run.policy,
            priority: run.priority,
            ..Setup::default()
        };
        read.runs.push(Run::recorded(run.name, setup, run.outcome));
    }
    Ok(read)
}
