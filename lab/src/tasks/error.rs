//! What is wrong with a file of tasks, and where: one line.
//!
//! Pure; never repeats more of the file than a key.

use std::fmt;

/// What is wrong with a file of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFileError {
    /// Line and column, from 1; `None` for the whole.
    place: Option<(usize, usize)>,
    what: String,
}

impl TaskFileError {
    pub(super) fn new(place: Option<(usize, usize)>, what: &str) -> Self {
        // A parser of others may say it in several lines.
        let what: Vec<&str> = what.split_whitespace().collect();
        Self { place, what: what.join(" ") }
    }
}

impl fmt::Display for TaskFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for TaskFileError {}
