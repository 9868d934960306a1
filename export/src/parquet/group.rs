//! One row group: columns in memory, then written one after the other.

use std::io::Write;

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;

use super::schema::TableWriter;

/// Rows of a row group. Readers share work by row groups and skip them by their ranges; this many
/// take about 13 MiB until they are written.
pub const GROUP_ROWS: usize = 1 << 18;

/// Values that stand for many rows are handed on in pieces of this many.
const PIECE: usize = 1 << 10;

/// A row group being written, column by column.
pub(super) struct Group<'a, 'w>(SerializedRowGroupWriter<'a, Box<dyn Write + Send + 'w>>);

impl<'a, 'w> Group<'a, 'w> {
    /// Begins the next group of the file.
    pub(super) fn begin(file: &'a mut TableWriter<'w>) -> Result<Self, ParquetError> {
        file.next_row_group().map(Self)
    }

    /// Writes the next column: a value for every row.
    pub(super) fn all<T: DataType>(&mut self, values: &[T::T]) -> Result<(), ParquetError> {
        self.write::<T>(values, None)
    }

    /// Writes the next column: a value for some rows, in order, and for each row whether it has
    /// one.
    pub(super) fn some<T: DataType>(
        &mut self,
        values: &[T::T],
        there: &[i16],
    ) -> Result<(), ParquetError> {
        self.write::<T>(values, Some(there))
    }

    fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        there: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let mut column = self.0.next_column()?.ok_or_else(too_many)?;
        column.typed::<T>().write_batch(values, there, None)?;
        column.close()
    }

    /// Writes the next column: texts, each for so many rows.
    pub(super) fn texts<'t>(
        &mut self,
        repeats: impl Iterator<Item = (&'t str, usize)>,
    ) -> Result<(), ParquetError> {
        let of = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        self.repeats::<ByteArrayType>(repeats.map(|(text, rows)| (of(text), rows)))
    }

    /// Writes the next column: numbers, each for so many rows.
    pub(super) fn numbers(
        &mut self,
        repeats: impl Iterator<Item = (i32, usize)>,
    ) -> Result<(), ParquetError> {
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
    pub(super) fn close(self) -> Result<(), ParquetError> {
        self.0.close().map(drop)
    }
}

fn too_many() -> ParquetError {
    ParquetError::General("more columns than the schema has".to_owned())
}

/// Flags, one a row.
pub(super) type Flags = BoolType;
/// Whole numbers, one a row.
pub(super) type Numbers = Int64Type;
