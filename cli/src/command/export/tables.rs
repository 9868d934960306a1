//! Samples and histograms as tables: CSV and Parquet.

use std::path::Path;

use anyhow::{Context, Result, bail};
use punctual_analysis::histogram::Bucket;
use punctual_export::distribution::LatenessHistogram;
use punctual_export::name::{Distinct, plain};
use punctual_export::row::{ExportedRun, ReleaseRows};
use punctual_export::{csv, parquet};
use punctual_import::samples::{FileEnding, FileInfo, RunInfo};

use super::sink::{self, Out};
use super::source::Source;
use crate::report::{Report, Run, SCHEMA};
use crate::stored;

/// What is done with a sample file that ends too early.
const EXPORTED: &str = "its data up to there was exported";

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Csv,
    Parquet,
}

/// Writes every sample; what is wrong with the file comes back as a warning.
pub(super) fn samples(source: &Source, table: Table, output: &Path) -> Result<Vec<String>> {
    let (mut file, shown) = source.samples()?;
    let info = file.info().clone();
    let rows = ReleaseRows::new(info.runs.iter().map(row_run).collect());
    let mut warnings = Vec::new();
    sink::write(output, |out| {
        match table {
            Table::Csv => {
                let mut table = csv::CsvSamples::begin(out, rows)?;
                while let Some(block) = file.next_block() {
                    table.extend(block.run, block.samples, block.unrecorded)?;
                }
                for run in 0..info.runs.len() {
                    let (_, missed, unrecorded) = file.counts(run).unwrap_or_default();
                    table.ended(run, missed, unrecorded)?;
                }
                table.finish()?;
            }
            Table::Parquet => {
                let mut table = parquet::ParquetSamples::begin(out, rows)?;
                while let Some(block) = file.next_block() {
                    table.extend(block.run, block.samples, block.unrecorded)?;
                }
                for run in 0..info.runs.len() {
                    let (_, missed, unrecorded) = file.counts(run).unwrap_or_default();
                    table.ended(run, missed, unrecorded)?;
                }
                table.finish(facts_of(&info, file.ending(), source.stored())?)?;
            }
        }
        warnings
            .extend(stored::ended(file.ending(), EXPORTED).map(|how| format!("{shown}: {how}")));
        Ok(())
    })
    .with_context(|| shown.clone())?;
    Ok(warnings)
}

fn row_run(info: &RunInfo) -> ExportedRun {
    ExportedRun {
        run: plain(info.part_of.as_ref().unwrap_or(&info.name)),
        condition: plain(&info.name),
        cpu: info.cpu,
        period_ns: info.period_ns,
        epoch_ns: info.epoch_ns,
    }
}

/// What stands beside a table of samples.
fn facts_of(
    info: &FileInfo,
    ending: Option<&FileEnding>,
    stored: Option<&Report>,
) -> Result<parquet::FileMetadata> {
    let mut facts = general(ending != Some(&FileEnding::Complete));
    facts.push(("punctual.started_at", plain(&info.started_at)));
    facts.push(("punctual.recorder_version", plain(&info.version)));
    facts.push(("punctual.runs", serde_json::to_string(&info.runs)?));
    let machine = match (&info.machine, stored.and_then(|report| report.envelope.machine.as_ref()))
    {
        (Some(machine), _) => Some(serde_json::to_string(machine)?),
        (None, Some(machine)) => Some(serde_json::to_string(machine)?),
        (None, None) => None,
    };
    facts.extend(machine.map(|machine| ("punctual.machine", machine)));
    Ok(facts)
}

/// What stands beside every table.
fn general(incomplete: bool) -> parquet::FileMetadata {
    vec![
        ("punctual.schema", SCHEMA.to_string()),
        ("punctual.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("punctual.incomplete", incomplete.to_string()),
    ]
}

/// Writes the histogram of each run.
pub(super) fn histograms(
    out: &mut Out,
    table: Table,
    runs: &[LatenessHistogram],
    report: &Report,
) -> Result<()> {
    match table {
        Table::Csv => csv::histograms(out, runs)?,
        Table::Parquet => {
            let mut facts = general(report.envelope.incomplete);
            let started_at = report.envelope.started_at.as_deref().unwrap_or_default();
            facts.push(("punctual.started_at", plain(started_at)));
            let setups: Vec<_> =
                report.body.runs().iter().map(|run| (&run.name, &run.setup)).collect();
            facts.push(("punctual.runs", serde_json::to_string(&setups)?));
            if let Some(machine) = &report.envelope.machine {
                facts.push(("punctual.machine", serde_json::to_string(machine)?));
            }
            parquet::histograms(out, runs, facts)?;
        }
    }
    Ok(())
}

/// The lateness of every run, counted, each run with a name of its own.
pub(super) fn distributions(report: &Report, shown: &str) -> Result<Vec<LatenessHistogram>> {
    if report.body.runs().is_empty() {
        bail!("{shown}: no run in this result");
    }
    let mut names = Distinct::default();
    report
        .body
        .runs()
        .iter()
        .map(|run| distribution(run, names.name(plain(&run.name)), shown))
        .collect()
}

fn distribution(run: &Run, name: String, shown: &str) -> Result<LatenessHistogram> {
    let outcome = &run.outcome;
    let whole = |ns: f64| ns as i64;
    let of = LatenessHistogram {
        run: name,
        cpu: run.setup.cpu,
        min_ns: outcome.lateness_ns.min.map(whole),
        max_ns: outcome.lateness_ns.max.map(whole),
        mean_ns: outcome.lateness_ns.mean,
        buckets: Vec::new(),
        overflow: outcome.histogram.overflow,
    };
    // What is not known counts as later than every bucket.
    let open = |of: LatenessHistogram| LatenessHistogram {
        overflow: of.overflow.saturating_add(outcome.histogram.unknown),
        ..of
    };
    if outcome.lateness.count() > 0 {
        return Ok(open(of.with(&outcome.lateness)));
    }
    let mut last = None;
    let mut buckets = Vec::new();
    for &(lower, upper, count) in &outcome.histogram.buckets {
        let rises = last.is_none_or(|last| lower >= last) && lower < upper;
        if !rises || outcome.histogram.unit_ns != 1 {
            bail!("{shown}: result is corrupt: run \"{}\" has buckets out of order", of.run);
        }
        buckets.push(Bucket { lowest_ns: lower, highest_ns: upper - 1, count });
        last = Some(upper);
    }
    Ok(open(LatenessHistogram { buckets, ..of }))
}
