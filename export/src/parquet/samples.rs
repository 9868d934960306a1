//! A table of samples as Parquet: one row a release.

use std::io::Write;

use punctual_core::sample::Sample;

use super::group::{Flags, GROUP_ROWS, Group, Numbers};
use super::schema::{self, Column, FileMetadata, Kind, OPTIONAL, REQUIRED, TableWriter};
use crate::ExportError;
use crate::row::{COLUMNS, ExportedRun, ReleaseRow, ReleaseRows, RowKind};

/// The columns of [`COLUMNS`].
const TABLE: [Column; 11] = [
    (COLUMNS[0], Kind::Text, REQUIRED),
    (COLUMNS[1], Kind::Text, REQUIRED),
    (COLUMNS[2], Kind::Int32, REQUIRED),
    (COLUMNS[3], Kind::Int64, REQUIRED),
    (COLUMNS[4], Kind::Int64, REQUIRED),
    (COLUMNS[5], Kind::Int64, REQUIRED),
    (COLUMNS[6], Kind::Int64, OPTIONAL),
    (COLUMNS[7], Kind::Int64, OPTIONAL),
    (COLUMNS[8], Kind::Bool, REQUIRED),
    (COLUMNS[9], Kind::Bool, REQUIRED),
    (COLUMNS[10], Kind::Text, REQUIRED),
];

/// A table of samples being written.
pub struct ParquetSamples<'w> {
    file: TableWriter<'w>,
    rows: ReleaseRows,
    pending: PendingGroup,
    /// A copy of the runs of `rows`, which is borrowed while a group is written.
    names: Vec<ExportedRun>,
}

/// The rows of a group that is not full yet, by column.
#[derive(Debug, Default)]
struct PendingGroup {
    /// Run and how many rows of it, in order.
    repeats: Vec<(usize, usize)>,
    cycle: Vec<i64>,
    release_ns: Vec<i64>,
    lateness_ns: Vec<i64>,
    interval_ns: Vec<i64>,
    gap_before: Vec<i64>,
    /// 1 where the two columns before have a value, else 0.
    has_previous: Vec<i16>,
    first: Vec<bool>,
    cold: Vec<bool>,
    /// The kind of rows that follow each other, in order.
    kinds: Vec<(RowKind, usize)>,
}

impl<'w> ParquetSamples<'w> {
    /// Begins a file.
    ///
    /// # Errors
    /// A writer that fails.
    pub fn begin(writer: impl Write + Send + 'w, rows: ReleaseRows) -> Result<Self, ExportError> {
        let file = schema::begin(writer, "samples", &TABLE)?;
        Ok(Self { file, names: rows.runs().to_vec(), rows, pending: PendingGroup::default() })
    }

    /// Takes in samples of run `run`, of which `unrecorded` have none so far, and the releases that
    /// were missed between them; writes where a group is full.
    ///
    /// # Errors
    /// A writer that fails; a time out of range; a gap of too many rows.
    ///
    /// # Panics
    /// When there is no such run.
    pub fn extend(
        &mut self,
        run: usize,
        samples: &[Sample],
        unrecorded: u64,
    ) -> Result<(), ExportError> {
        let Self { file, rows, pending, names } = self;
        let mut give = |row: &ReleaseRow| pending.take(file, names, run, row);
        samples.iter().try_for_each(|sample| rows.sample(run, sample, unrecorded, &mut give))
    }

    /// Takes in the releases of run `run` that were missed after the last cycle of a segment, where
    /// `missed` were missed in all.
    ///
    /// # Errors
    /// As [`Self::extend`].
    ///
    /// # Panics
    /// When there is no such run.
    pub fn ended(&mut self, run: usize, missed: u64, unrecorded: u64) -> Result<(), ExportError> {
        let Self { file, rows, pending, names } = self;
        rows.ended(run, missed, unrecorded, &mut |row| pending.take(file, names, run, row))
    }

    /// Writes the pending rows, and the end of the file with this metadata.
    ///
    /// # Errors
    /// A writer that fails.
    pub fn finish(mut self, facts: FileMetadata) -> Result<(), ExportError> {
        if !self.pending.cycle.is_empty() {
            self.pending.write(&mut self.file, &self.names)?;
        }
        schema::describe(&mut self.file, facts);
        Ok(self.file.into_inner()?.flush()?)
    }
}

impl PendingGroup {
    /// Takes in a row, and writes where that fills a group.
    fn take(
        &mut self,
        file: &mut TableWriter<'_>,
        runs: &[ExportedRun],
        run: usize,
        row: &ReleaseRow,
    ) -> Result<(), ExportError> {
        self.push(run, row);
        if self.cycle.len() == GROUP_ROWS { self.write(file, runs) } else { Ok(()) }
    }

    /// Writes all rows as a group.
    fn write(
        &mut self,
        file: &mut TableWriter<'_>,
        runs: &[ExportedRun],
    ) -> Result<(), ExportError> {
        let pending = &*self;
        let repeats = pending.repeats.iter().map(|&(run, rows)| (&runs[run], rows));
        let mut group = Group::begin(file)?;
        group.texts(repeats.clone().map(|(run, rows)| (run.run.as_str(), rows)))?;
        group.texts(repeats.clone().map(|(run, rows)| (run.condition.as_str(), rows)))?;
        group.numbers(repeats.map(|(run, rows)| (run.cpu.cast_signed(), rows)))?;
        group.all::<Numbers>(&pending.cycle)?;
        group.all::<Numbers>(&pending.release_ns)?;
        group.all::<Numbers>(&pending.lateness_ns)?;
        group.some::<Numbers>(&pending.interval_ns, &pending.has_previous)?;
        group.some::<Numbers>(&pending.gap_before, &pending.has_previous)?;
        group.all::<Flags>(&pending.first)?;
        group.all::<Flags>(&pending.cold)?;
        group.texts(pending.kinds.iter().map(|&(kind, rows)| (kind.name(), rows)))?;
        group.close()?;
        self.clear();
        Ok(())
    }

    fn push(&mut self, run: usize, row: &ReleaseRow) {
        match self.repeats.last_mut() {
            Some((last, rows)) if *last == run => *rows += 1,
            _ => self.repeats.push((run, 1)),
        }
        self.cycle.push(row.cycle);
        self.release_ns.push(row.release_ns);
        self.lateness_ns.push(row.lateness_ns);
        self.interval_ns.extend(row.interval_ns);
        self.gap_before.extend(row.gap_before);
        self.has_previous.push(row.interval_ns.is_some().into());
        self.first.push(row.first);
        self.cold.push(row.cold);
        match self.kinds.last_mut() {
            Some((kind, rows)) if *kind == row.kind => *rows += 1,
            _ => self.kinds.push((row.kind, 1)),
        }
    }

    /// Empties it and keeps its memory.
    fn clear(&mut self) {
        self.repeats.clear();
        self.cycle.clear();
        self.release_ns.clear();
        self.lateness_ns.clear();
        self.interval_ns.clear();
        self.gap_before.clear();
        self.has_previous.clear();
        self.first.clear();
        self.cold.clear();
        self.kinds.clear();
    }
}
