//! Tables as Parquet files, for DuckDB, Polars, Arrow and all others.
//!
//! Parquet 1.0 pages with the encodings of version 2 (DELTA_BINARY_PACKED, RLE) and no compression:
//! packed differences are as small as what a general compressor makes of plain numbers. One row
//! group is held at a time ([`GROUP_ROWS`] rows).

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use punctual_core::sample::Sample;

use crate::ExportError;
use crate::distribution::{self, LatenessHistogram};
use crate::row::{self, ExportedRun, ReleaseRow, ReleaseRows, RowKind};

/// Key and text of each entry of the file's metadata. The keys begin with `punctual.`.
pub type FileMetadata = Vec<(&'static str, String)>;

/// A column: name, what it is, whether a row may lack it.
type Column = (&'static str, Kind, Repetition);

/// Every row has a value.
const REQUIRED: Repetition = Repetition::REQUIRED;
/// A row may have none.
const OPTIONAL: Repetition = Repetition::OPTIONAL;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Few different texts.
    Text,
    /// One of few whole numbers.
    Int32,
    /// A whole number.
    Int64,
    /// A flag.
    Bool,
}

/// The schema of a table.
fn table(name: &str, columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let field = |&(name, kind, repetition): &Column| {
        let physical = match kind {
            Kind::Text => Physical::BYTE_ARRAY,
            Kind::Int32 => Physical::INT32,
            Kind::Int64 => Physical::INT64,
            Kind::Bool => Physical::BOOLEAN,
        };
        let logical = (kind == Kind::Text).then_some(LogicalType::String);
        let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        builder.with_logical_type(logical).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    Type::group_type_builder(name).with_fields(fields).build().map(Arc::new)
}

/// A file being written. Where to is not a parameter of its type: the library's writers, which are
/// large, are then compiled here once, and not in each program that writes.
type TableWriter<'w> = SerializedFileWriter<Box<dyn Write + Send + 'w>>;

/// Begins a file with one table of these columns.
fn begin<'w>(
    writer: impl Write + Send + 'w,
    name: &str,
    columns: &[Column],
) -> Result<TableWriter<'w>, ParquetError> {
    SerializedFileWriter::new(Box::new(writer), table(name, columns)?, properties(columns))
}

/// Adds the metadata.
fn describe(file: &mut TableWriter<'_>, facts: FileMetadata) {
    for (key, value) in facts {
        file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }
}

/// The encoding and compression of all columns.
fn properties(columns: &[Column]) -> WriterPropertiesPtr {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("punctual ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_dictionary_enabled(false)
        // Of each row group, not of each page: the pages are few.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(GROUP_ROWS);
    for &(name, kind, _) in columns {
        let path = ColumnPath::from(name);
        properties = match kind {
            Kind::Text | Kind::Int32 => properties.set_column_dictionary_enabled(path, true),
            Kind::Bool => properties.set_column_encoding(path, Encoding::RLE),
            Kind::Int64 => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    Arc::new(properties.build())
}

/// Rows of a row group. Readers share work by row groups and skip them by their ranges; this many
/// take about 13 MiB until they are written.
pub const GROUP_ROWS: usize = 1 << 18;

/// Values that stand for many rows are handed on in pieces of this many.
const PIECE: usize = 1 << 10;

/// A row group being written, column by column.
struct Group<'a, 'w>(SerializedRowGroupWriter<'a, Box<dyn Write + Send + 'w>>);

impl<'a, 'w> Group<'a, 'w> {
    /// Begins the next group of the file.
    fn begin(file: &'a mut TableWriter<'w>) -> Result<Self, ParquetError> {
        file.next_row_group().map(Self)
    }

    /// Writes the next column: a value for every row.
    fn all<T: DataType>(&mut self, values: &[T::T]) -> Result<(), ParquetError> {
        self.write::<T>(values, None)
    }

    /// Writes the next column: a value for some rows, in order, and for each row whether it has
    /// one.
    fn some<T: DataType>(&mut self, values: &[T::T], present: &[i16]) -> Result<(), ParquetError> {
        self.write::<T>(values, Some(present))
    }

    fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        present: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let mut column = self.0.next_column()?.ok_or_else(too_many)?;
        column.typed::<T>().write_batch(values, present, None)?;
        column.close()
    }

    /// Writes the next column: texts, each for so many rows.
    fn texts<'t>(
        &mut self,
        repeats: impl Iterator<Item = (&'t str, usize)>,
    ) -> Result<(), ParquetError> {
        let bytes = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        self.repeats::<ByteArrayType>(repeats.map(|(text, rows)| (bytes(text), rows)))
    }

    /// Writes the next column: numbers, each for so many rows.
    fn numbers(&mut self, repeats: impl Iterator<Item = (i32, usize)>) -> Result<(), ParquetError> {
        self.repeats::<Int32Type>(repeats)
    }

    fn repeats<T: DataType>(
        &mut self,
        repeats: impl Iterator<Item = (T::T, usize)>,
    ) -> Result<(), ParquetError> {
        let mut column = self.0.next_column()?.ok_or_else(too_many)?;
        for (value, rows) in repeats {
            let piece = vec![value; rows.min(PIECE)];
            let mut left = rows;
            while left > 0 {
                let now = left.min(PIECE);
                column.typed::<T>().write_batch(&piece[..now], None, None)?;
                left -= now;
            }
        }
        column.close()
    }

    /// Ends the group.
    fn close(self) -> Result<(), ParquetError> {
        self.0.close().map(drop)
    }
}

fn too_many() -> ParquetError {
    ParquetError::General("more columns than the schema has".to_owned())
}

/// Flags, one a row.
type Flags = BoolType;
/// Whole numbers, one a row.
type Numbers = Int64Type;

/// The columns of [`row::COLUMNS`].
const SAMPLE_COLUMNS: [Column; 11] = [
    (row::COLUMNS[0], Kind::Text, REQUIRED),
    (row::COLUMNS[1], Kind::Text, REQUIRED),
    (row::COLUMNS[2], Kind::Int32, REQUIRED),
    (row::COLUMNS[3], Kind::Int64, REQUIRED),
    (row::COLUMNS[4], Kind::Int64, REQUIRED),
    (row::COLUMNS[5], Kind::Int64, REQUIRED),
    (row::COLUMNS[6], Kind::Int64, OPTIONAL),
    (row::COLUMNS[7], Kind::Int64, OPTIONAL),
    (row::COLUMNS[8], Kind::Bool, REQUIRED),
    (row::COLUMNS[9], Kind::Bool, REQUIRED),
    (row::COLUMNS[10], Kind::Text, REQUIRED),
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
        let file = begin(writer, "samples", &SAMPLE_COLUMNS)?;
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
        describe(&mut self.file, facts);
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

/// The columns of [`distribution::COLUMNS`].
const HISTOGRAM_COLUMNS: [Column; 5] = [
    (distribution::COLUMNS[0], Kind::Text, REQUIRED),
    (distribution::COLUMNS[1], Kind::Int32, OPTIONAL),
    (distribution::COLUMNS[2], Kind::Int64, OPTIONAL),
    (distribution::COLUMNS[3], Kind::Int64, OPTIONAL),
    (distribution::COLUMNS[4], Kind::Int64, REQUIRED),
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
    write(begin(writer, "histograms", &HISTOGRAM_COLUMNS)?, runs, facts)
}

fn write(
    mut file: TableWriter<'_>,
    runs: &[LatenessHistogram],
    facts: FileMetadata,
) -> Result<(), ExportError> {
    describe(&mut file, facts);
    for run in runs {
        let rows = run.buckets.len() + usize::from(run.overflow > 0);
        if rows == 0 {
            continue;
        }
        let mut group = Group::begin(&mut file)?;
        group.texts(std::iter::once((run.run.as_str(), rows)))?;
        let cpu = vec![run.cpu.unwrap_or_default().cast_signed(); rows];
        let present = vec![i16::from(run.cpu.is_some()); rows];
        group.some::<Int32Type>(if run.cpu.is_some() { &cpu } else { &[] }, &present)?;
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

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row as Read};
    use punctual_analysis::histogram::Bucket;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Span;

    use super::{GROUP_ROWS, ParquetSamples, histograms};
    use crate::distribution::LatenessHistogram;
    use crate::row::{COLUMNS, ExportedRun, ReleaseRow, ReleaseRows, RowKind};

    fn runs() -> Vec<ExportedRun> {
        let run = |run: &str, condition: &str, cpu| ExportedRun {
            run: run.to_owned(),
            condition: condition.to_owned(),
            cpu,
            period_ns: 1_000_000,
            epoch_ns: 500,
        };
        vec![run("idle", "idle", 1), run("under load", "cpu", 0)]
    }

    /// A file as the library reads it.
    struct Table {
        rows: Vec<Read>,
        /// Key and value.
        facts: Vec<(String, String)>,
        row_groups: usize,
    }

    fn read(bytes: Vec<u8>) -> Table {
        // The library reads what is a `Bytes` or a file; its own type comes along with the reader.
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let meta = reader.metadata();
        let facts = meta.file_metadata().key_value_metadata().cloned().unwrap_or_default();
        let facts =
            facts.into_iter().map(|fact| (fact.key, fact.value.unwrap_or_default())).collect();
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        Table { rows, facts, row_groups: meta.num_row_groups() }
    }

    #[test]
    fn samples_come_back_across_row_groups() {
        let n = GROUP_ROWS as u64 + 1_000;
        let mut bytes = Vec::new();
        let mut table = ParquetSamples::begin(&mut bytes, ReleaseRows::new(runs())).unwrap();
        let mut expected = Vec::new();
        let mut rows = ReleaseRows::new(runs());
        for block in 0..n.div_ceil(500) {
            let run = usize::from(block % 3 == 0);
            let samples: Vec<Sample> = (block * 500..n.min(block * 500 + 500))
                .map(|k| Sample {
                    cycle: k + block * 2,
                    lateness: Span::from_ns((k * 7_919 % 90_001) as i64 - 3),
                    flags: if k % 5_000 == 0 {
                        Flags::FIRST.with(Flags::COLD)
                    } else {
                        Flags::NONE
                    },
                })
                .collect();
            table.extend(run, &samples, 0).unwrap();
            for sample in &samples {
                let mut give = |row: &ReleaseRow| {
                    expected.push((run, *row));
                    Ok(())
                };
                rows.sample(run, sample, 0, &mut give).unwrap();
            }
        }
        assert!(expected.iter().any(|(_, row)| row.kind == RowKind::Missed), "gaps between blocks");
        table.finish(vec![("punctual.schema", "1".to_owned())]).unwrap();
        let Table { rows: read, facts, row_groups } = read(bytes);
        assert_eq!((read.len(), row_groups), (expected.len(), 2));
        assert!(facts.contains(&("punctual.schema".to_owned(), "1".to_owned())));
        for (read, (run, row)) in read.iter().zip(&expected) {
            same(read, &runs()[*run], row);
        }
    }

    fn same(read: &Read, run: &ExportedRun, row: &ReleaseRow) {
        let optional = |value: Option<i64>| value.map_or(Field::Null, Field::Long);
        let expected = [
            Field::Str(run.run.clone()),
            Field::Str(run.condition.clone()),
            Field::Int(run.cpu.cast_signed()),
            Field::Long(row.cycle),
            Field::Long(row.release_ns),
            Field::Long(row.lateness_ns),
            optional(row.interval_ns),
            optional(row.gap_before),
            Field::Bool(row.first),
            Field::Bool(row.cold),
            Field::Str(row.kind.name().to_owned()),
        ];
        let columns: Vec<(String, Field)> =
            read.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect();
        let expected: Vec<(String, Field)> =
            COLUMNS.iter().map(|&name| name.to_owned()).zip(expected).collect();
        assert_eq!(columns, expected);
    }

    #[test]
    fn a_table_without_samples_is_a_table_too() {
        let mut bytes = Vec::new();
        ParquetSamples::begin(&mut bytes, ReleaseRows::new(runs()))
            .unwrap()
            .finish(Vec::new())
            .unwrap();
        assert_eq!(read(bytes).rows.len(), 0);
    }

    #[test]
    fn histograms_come_back_with_an_open_bucket() {
        let histogram = |run: &str, cpu, overflow| LatenessHistogram {
            run: run.to_owned(),
            cpu,
            buckets: vec![
                Bucket { lowest_ns: -2, highest_ns: -1, count: 3 },
                Bucket { lowest_ns: 0, highest_ns: 99, count: u64::MAX },
            ],
            overflow,
            ..LatenessHistogram::default()
        };
        let mut bytes = Vec::new();
        let runs =
            [histogram("a", Some(3), 0), histogram("b", None, 5), LatenessHistogram::default()];
        histograms(&mut bytes, &runs, Vec::new()).unwrap();
        let rows: Vec<Vec<Field>> = read(bytes)
            .rows
            .iter()
            .map(|row| row.get_column_iter().map(|(_, field)| field.clone()).collect())
            .collect();
        let text = |text: &str| Field::Str(text.to_owned());
        assert_eq!(rows.len(), 5);
        assert_eq!(
            rows[0],
            [text("a"), Field::Int(3), Field::Long(-2), Field::Long(0), Field::Long(3)]
        );
        assert_eq!(rows[1][4], Field::Long(i64::MAX), "counts beyond the format's are the largest");
        assert_eq!(rows[4], [text("b"), Field::Null, Field::Null, Field::Null, Field::Long(5)]);
    }
}
