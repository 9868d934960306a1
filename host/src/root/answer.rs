//! What a root answers. Types only.

use crate::capture::manifest::ManifestError;
use std::path::PathBuf;
use thiserror::Error;

/// What a file gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// Its text; bytes that are not UTF-8 are replaced.
    Text(String),
    /// There is no such file.
    Absent,
    /// There may be one, but it could not be read.
    Unreadable {
        /// Why, in the kernel's words where there are any.
        why: String,
    },
}

/// What a directory gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// Its names, sorted.
    Names(Vec<String>),
    /// There is no such directory.
    Absent,
    /// There may be one, but it could not be read.
    Unreadable {
        /// Why.
        why: String,
    },
}

/// One read through a recording root, and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A file, plain.
    File(Read),
    /// A file that may be compressed; the text is decompressed.
    Compressed(Read),
    /// A directory.
    Directory(Listing),
}

/// Why a directory cannot be a captured root.
#[derive(Debug, Error)]
pub enum RootError {
    /// It is not there, or no directory.
    #[error("cannot read the directory {}: {why}", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why.
        why: String,
    },
    /// Its list of what was missing is damaged.
    #[error("{}: {source}", path.display())]
    Manifest {
        /// The list.
        path: PathBuf,
        /// What is wrong in it.
        source: ManifestError,
    },
}
