//! Why a CSV file was refused, in one line with the place.

use super::line::LINE_BYTES_MAX;

/// A CSV file that was refused.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// Instants without a nominal period.
    #[error("instants need the nominal period: --period 500us")]
    NoPeriod,
    /// The first line is data, and the name does not determine its kind.
    #[error("no header, so the column must be named instant or lateness, not {name:?}")]
    NoHeader {
        /// The requested name.
        name: String,
    },
    /// The header has no such column.
    #[error("no column {name:?}; the columns are: {columns:?}")]
    NoColumn {
        /// The requested name.
        name: String,
        /// The header, shortened.
        columns: String,
    },
    /// A line that cannot be read as the requested column.
    #[error("line {line}: {why}: {text:?}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        why: String,
        /// Its text, shortened.
        text: String,
    },
    /// A line beyond all bounds.
    #[error("line {line}: longer than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// Its number, from 1.
        line: u64,
    },
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

/// At most 40 characters of a text, for messages; bytes that are no text are replaced.
pub fn shortened(text: &[u8]) -> String {
    // A character has at most 4 bytes, so this holds more than 40 characters.
    let text = String::from_utf8_lossy(&text[..text.len().min(400)]);
    let text = text.trim();
    if text.chars().count() <= 40 {
        return text.to_owned();
    }
    text.chars().take(39).chain(['…']).collect()
}
