//! All runs of another program's file.
//!
//! [`read`] hands the bytes to the reader of the format, and returns runs with what the file does
//! not record. Pure; memory is bounded by a fixed number of runs.

use std::io::Read;

pub use super::error::ImportError;
use super::format::Format;
pub use super::reading::ImportRequest;
use super::reading::Reading;
pub use super::run::ImportedRun;
use super::run::RunBuilder;

/// What a file holds.
#[derive(Clone, Debug)]
pub struct Import {
    /// When the recording began, as the program wrote it.
    pub started_at: Option<String>,
    /// What a reader should know before believing the numbers.
    pub warnings: Vec<String>,
    /// Its runs, at least one.
    pub runs: Vec<ImportedRun>,
}

/// Reads a whole file of `format`.
///
/// # Errors
/// What the program would not write, with its place; a reader that fails.
pub fn read(
    format: &Format,
    mut reader: impl Read,
    request: &ImportRequest,
) -> Result<Import, ImportError> {
    let mut reading = Reading::new(request);
    // The place at which a contradiction shows is where the file ends.
    let last = (format.read)(&mut reading, &mut reader)?;
    let Reading { source, started_at, warnings, runs, .. } = reading;
    if runs.is_empty() {
        return Err(last.refuse("the file contains no values"));
    }
    let finish = |run: RunBuilder| run.finish(&source).map_err(|why| last.refuse(why));
    let runs = runs.into_iter().map(finish).collect::<Result<_, _>>()?;
    Ok(Import { started_at, warnings, runs })
}
