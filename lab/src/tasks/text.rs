//! The text of a file of tasks, and the line and column of what stands in it.
//!
//! Pure.

use std::ops::Range;

use toml::Spanned;

use super::error::TaskFileError;

/// The longest file, bytes.
pub const FILE_MAX: usize = 1 << 20;

/// A file's text, by which places are found.
#[derive(Debug)]
pub(super) struct Text<'t>(&'t str);

impl<'t> Text<'t> {
    pub(super) fn of(bytes: &'t [u8]) -> Result<Self, TaskFileError> {
        if bytes.len() > FILE_MAX {
            return Err(TaskFileError::new(None, "the file is larger than 1 MiB"));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self(text)),
            Err(why) => {
                let valid = bytes.get(..why.valid_up_to()).unwrap_or_default();
                let place = place(&String::from_utf8_lossy(valid), valid.len());
                Err(TaskFileError::new(Some(place), "no UTF-8"))
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
    pub(super) fn at<T>(&self, value: &Spanned<T>, what: &str) -> TaskFileError {
        self.within(value.span(), what)
    }

    /// Something at a place that is refused.
    pub(super) fn within(&self, span: Range<usize>, what: &str) -> TaskFileError {
        TaskFileError::new(Some(place(self.0, span.start)), what)
    }

    /// What the TOML parser refused.
    pub(super) fn refused(&self, why: &toml::de::Error) -> TaskFileError {
        match why.span() {
            Some(span) => self.within(span, why.message()),
            None => TaskFileError::new(None, why.message()),
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
