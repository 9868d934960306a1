//! A table of histograms as Parquet: one row a bucket.

use std::io::Write;

use parquet::data_type::Int32Type;

use super::group::{Group, Numbers};
use super::schema::{self, Column, FileMetadata, Kind, OPTIONAL, REQUIRED, TableWriter};
use crate::ExportError;
use crate::distribution::{COLUMNS, LatenessHistogram};

/// The columns of [`COLUMNS`].
const TABLE: [Column; 5] = [
    (COLUMNS[0], Kind::Text, REQUIRED),
    (COLUMNS[1], Kind::Int32, OPTIONAL),
    (COLUMNS[2], Kind::Int64, OPTIONAL),
    (COLUMNS[3], Kind::Int64, OPTIONAL),
    (COLUMNS[4], Kind::Int64, REQUIRED),
];

/// Writes histograms as one table, a row group a run: lower ≤ value < upper; what is in no bucket
/// ends in a row without bounds.
///
/// # Errors
/// A writer that fails.
pub fn histograms(
    writer: impl Write + Send,
    runs: &[LatenessHistogram],
    facts: FileMetadata,
) -> Result<(), ExportError> {
    write(schema::begin(writer, "histograms", &TABLE)?, runs, facts)
}

fn write(
    mut file: TableWriter<'_>,
    runs: &[LatenessHistogram],
    facts: FileMetadata,
) -> Result<(), ExportError> {
    schema::describe(&mut file, facts);
    for run in runs {
        let rows = run.buckets.len() + usize::from(run.overflow > 0);
        if rows == 0 {
            continue;
        }
        let mut group = Group::begin(&mut file)?;
        group.texts(std::iter::once((run.run.as_str(), rows)))?;
        let cpu = vec![run.cpu.unwrap_or_default().cast_signed(); rows];
        let there = vec![i16::from(run.cpu.is_some()); rows];
        group.some::<Int32Type>(if run.cpu.is_some() { &cpu } else { &[] }, &there)?;
        let mut bounded = vec![1; run.buckets.len()];
        bounded.resize(rows, 0);
        let lower: Vec<i64> = run.buckets.iter().map(|bucket| bucket.lowest_ns).collect();
        group.some::<Numbers>(&lower, &bounded)?;
        // Exact: no bucket ends beyond ±2⁴² ns.
        let above =
            |bucket: &punctual_analysis::histogram::Bucket| bucket.highest_ns.saturating_add(1);
        let upper: Vec<i64> = run.buckets.iter().map(above).collect();
        group.some::<Numbers>(&upper, &bounded)?;
        let overflow = (run.overflow > 0).then_some(run.overflow);
        let counts = run.buckets.iter().map(|bucket| bucket.count).chain(overflow);
        let counts: Vec<i64> =
            counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX)).collect();
        group.all::<Numbers>(&counts)?;
        group.close()?;
    }
    Ok(file.into_inner()?.flush()?)
}
