//! What is wrong with a file of tasks, and where: one line.
//!
//! Pure; never repeats more of the file than a key.

use std::fmt;
use std::ops::Range;

use toml::Spanned;

use super::FILE_MAX;

/// What is wrong with a file of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// Line and column, from 1; `None` for the whole.
    place: Option<(usize, usize)>,
    what: String,
}

impl FileError {
    pub(super) fn new(place: Option<(usize, usize)>, what: &str) -> Self {
        // A parser of others may say it in several lines.
        let what: Vec<&str> = what.split_whitespace().collect();
        Self { place, what: what.join(" ") }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for FileError {}

/// A file's text, by which places are found.
#[derive(Debug)]
pub(super) struct Text<'t>(&'t str);

impl<'t> Text<'t> {
    pub(super) fn of(bytes: &'t [u8]) -> Result<Self, FileError> {
        if bytes.len() > FILE_MAX {
            return Err(FileError::new(None, "a file of tasks is at most 1 MiB"));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self(text)),
            Err(why) => {
                let valid = bytes.get(..why.valid_up_to()).unwrap_or_default();
                let place = place(&String::from_utf8_lossy(valid), valid.len());
                Err(FileError::new(Some(place), "no UTF-8"))
            }
        }
    }

    pub(super) fn as_str(&self) -> &'t str {
        self.0
    }

    /// The line of a value, from 1.
    pub(super) fn line<T>(&self, value: &Spanned<T>) -> usize {
        place(self.0, value.span().start).0
    }

    /// A value that is refused.
    pub(super) fn at<T>(&self, value: &Spanned<T>, what: &str) -> FileError {
        self.within(value.span(), what)
    }

    /// Something at a place that is refused.
    pub(super) fn within(&self, span: Range<usize>, what: &str) -> FileError {
        FileError::new(Some(place(self.0, span.start)), what)
    }

    /// What the TOML parser refused.
    pub(super) fn refused(&self, why: &toml::de::Error) -> FileError {
        match why.span() {
            Some(span) => self.within(span, why.message()),
            None => FileError::new(None, why.message()),
        }
    }
}

/// Line and column of a byte, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    (line, column)
}
