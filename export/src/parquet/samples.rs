//! A table of samples as Parquet: one row a release.

use std::io::Write;

use parquet::file::writer::SerializedFileWriter;
use punctual_core::sample::Sample;

use super::group::{Flags, GROUP_ROWS, Group, Numbers};
use super::schema::{self, Column, Facts, Kind, OPTIONAL, REQUIRED};
use crate::ExportError;
use crate::row::{COLUMNS, Kind as Became, Row, Rows, Run};

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
pub struct Samples<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Rows,
    held: Held,
    /// The runs, beside those of `rows`, which is busy while a group is written.
    names: Vec<Run>,
}

/// The rows of a group that is not full yet, by column.
#[derive(Debug, Default)]
struct Held {
    /// Run and how many rows of it, in order.
    stretches: Vec<(usize, usize)>,
    cycle: Vec<i64>,
    release_ns: Vec<i64>,
    lateness_ns: Vec<i64>,
    interval_ns: Vec<i64>,
    gap_before: Vec<i64>,
    /// 1 where the two columns before have a value, else 0.
    has_previous: Vec<i16>,
    first: Vec<bool>,
    cold: Vec<bool>,
    /// Of following rows what became of each, in order.
    kinds: Vec<(Became, usize)>,
}

impl<W: Write + Send> Samples<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// A writer that fails.
    pub fn begin(writer: W, rows: Rows) -> Result<Self, ExportError> {
        let schema = schema::table("samples", &TABLE)?;
        let file = SerializedFileWriter::new(writer, schema, schema::properties(&TABLE))?;
        Ok(Self { file, names: rows.runs().to_vec(), rows, held: Held::default() })
    }

    /// Takes in samples of run `run`, of which `unrecorded` have none so far, and the releases that
    /// were missed between them; writes where a group is full.
    ///
    /// # Errors
    /// A writer that fails; a time that is none; a gap of too many rows.
    ///
    /// # Panics
    /// When there is no such run.
    pub fn extend(
        &mut self,
        run: usize,
        samples: &[Sample],
        unrecorded: u64,
    ) -> Result<(), ExportError> {
        let Self { file, rows, held, names } = self;
        let mut give = |row: &Row| held.take(file, names, run, row);
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
        let Self { file, rows, held, names } = self;
        rows.ended(run, missed, unrecorded, &mut |row| held.take(file, names, run, row))
    }

    /// Writes what is still held, and the end of the file with these facts.
    ///
    /// # Errors
    /// A writer that fails.
    pub fn finish(mut self, facts: Facts) -> Result<(), ExportError> {
        if !self.held.cycle.is_empty() {
            self.held.write(&mut self.file, &self.names)?;
        }
        schema::say(&mut self.file, facts);
        Ok(self.file.into_inner()?.flush()?)
    }
}

impl Held {
    /// Takes in a row, and writes where that fills a group.
    fn take<W: Write + Send>(
        &mut self,
        file: &mut SerializedFileWriter<W>,
        runs: &[Run],
        run: usize,
        row: &Row,
    ) -> Result<(), ExportError> {
        self.push(run, row);
        if self.cycle.len() == GROUP_ROWS { self.write(file, runs) } else { Ok(()) }
    }

    /// Writes all rows as a group.
    fn write<W: Write + Send>(
        &mut self,
        file: &mut SerializedFileWriter<W>,
        runs: &[Run],
    ) -> Result<(), ExportError> {
        let held = &*self;
        let stretches = held.stretches.iter().map(|&(run, rows)| (&runs[run], rows));
        let mut group = Group(file.next_row_group()?);
        group.texts(stretches.clone().map(|(run, rows)| (run.run.as_str(), rows)))?;
        group.texts(stretches.clone().map(|(run, rows)| (run.condition.as_str(), rows)))?;
        group.numbers(stretches.map(|(run, rows)| (run.cpu.cast_signed(), rows)))?;
        group.all::<Numbers>(&held.cycle)?;
        group.all::<Numbers>(&held.release_ns)?;
        group.all::<Numbers>(&held.lateness_ns)?;
        group.some::<Numbers>(&held.interval_ns, &held.has_previous)?;
        group.some::<Numbers>(&held.gap_before, &held.has_previous)?;
        group.all::<Flags>(&held.first)?;
        group.all::<Flags>(&held.cold)?;
        group.texts(held.kinds.iter().map(|&(kind, rows)| (kind.name(), rows)))?;
        group.close()?;
        self.clear();
        Ok(())
    }

    fn push(&mut self, run: usize, row: &Row) {
        match self.stretches.last_mut() {
            Some((last, rows)) if *last == run => *rows += 1,
            _ => self.stretches.push((run, 1)),
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
        self.stretches.clear();
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
