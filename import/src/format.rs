//! What the table of formats holds of each: its row.
//!
//! Plain data and two functions a row; reads nothing itself.

use std::fmt;
use std::io::Read;

use super::error::ImportError;
use super::reading::{Place, Reading};

/// A format of another program: everything in which it differs from the others.
pub struct Format {
    /// Its name, short and unique: tests, fuzz bodies and seeds go by it.
    pub name: &'static str,
    /// The programs that write it, or the ways in which one does.
    pub writers: &'static [Writer],
    /// How it is recognised.
    pub(super) sniff: Sniff,
    /// Reads a whole file, and says where that ended.
    pub(super) read: fn(&mut Reading<'_>, &mut dyn Read) -> Result<Place, ImportError>,
}

/// What writes a format, and what its files hold: a row of docs/importing.md.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// The program, as error messages and `--help` list it.
    pub program: &'static str,
    /// The kind of file: "histogram of cyclictest".
    pub file: &'static str,
    /// What makes such a file.
    pub made_with: &'static str,
    /// Which quantity it holds, and what becomes a run.
    pub holds: &'static str,
    /// How coarse its values are.
    pub resolution: &'static str,
    /// What it does not record.
    pub cannot_tell: &'static str,
}

/// What gives a format away. No two formats claim the same file: a test says so.
pub(super) enum Sniff {
    /// One line, wherever it stands in the head of the file; without its end.
    Line(fn(&str) -> bool),
    /// The head of the file, as bytes.
    Head(fn(&[u8]) -> bool),
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
