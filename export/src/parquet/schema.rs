//! The schemas of the tables, how each column is packed, and the metadata of the file.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

/// Key and text of each entry of the file's metadata. The keys begin with `punctual.`.
pub type FileMetadata = Vec<(&'static str, String)>;

/// A column: name, what it is, whether a row may lack it.
pub(super) type Column = (&'static str, Kind, Repetition);

/// Every row has a value.
pub(super) const REQUIRED: Repetition = Repetition::REQUIRED;
/// A row may have none.
pub(super) const OPTIONAL: Repetition = Repetition::OPTIONAL;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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
pub(super) type TableWriter<'w> = SerializedFileWriter<Box<dyn Write + Send + 'w>>;

/// Begins a file with one table of these columns.
pub(super) fn begin<'w>(
    writer: impl Write + Send + 'w,
    name: &str,
    columns: &[Column],
) -> Result<TableWriter<'w>, ParquetError> {
    SerializedFileWriter::new(Box::new(writer), table(name, columns)?, properties(columns))
}

/// Adds the metadata.
pub(super) fn describe(file: &mut TableWriter<'_>, facts: FileMetadata) {
    for (key, value) in facts {
        file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }
}

/// How the columns are packed.
fn properties(columns: &[Column]) -> WriterPropertiesPtr {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("punctual ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_dictionary_enabled(false)
        // Of each row group, not of each page: the pages are few.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(super::GROUP_ROWS);
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
