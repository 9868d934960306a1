//! Writes the facts' files of a machine as a tree, without secrets: `OUT/proc/cmdline`, ….
//!
//! What is copied is what [`Facts::collect`] read, as a recording root wrote it down, so the two
//! cannot drift apart: the tree, opened with [`Root::captured`], gives equal facts. Each file is
//! filtered by what it is (`filter`); what was absent or unreadable stands in a manifest. This file
//! creates and writes below `OUT`, nothing else, and never overwrites.

mod filter;
pub mod manifest;

use crate::facts::Facts;
use crate::root::{Listing, Read, Root, Seen};
use crate::scrub::Scrub;
use flate2::Compression;
use flate2::write::GzEncoder;
use manifest::{MANIFEST, Manifest, Missing};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What a capture came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// The facts as the machine gave them, before anything was taken out.
    pub facts: Facts,
    /// How many files were written, the manifest not counted.
    pub files: usize,
    /// How many were looked for and not there.
    pub absent: usize,
    /// How many could not be read.
    pub unreadable: usize,
}

/// Why a capture ended early.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// There is something in the place already.
    #[error("{} is not empty; name a directory that does not exist yet", out.display())]
    NotEmpty {
        /// The directory.
        out: PathBuf,
    },
    /// Something could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Captures the machine below `root` into `out`, which is made if need be.
///
/// # Errors
/// When `out` holds something already (before anything is read), or cannot be written.
pub fn capture(root: Root, out: &Path, scrub: &Scrub) -> Result<Captured, CaptureError> {
    make_empty(out)?;
    let root = root.recording();
    let facts = Facts::collect(&root);
    let mut tree = Tree { out, manifest: Manifest::default(), files: 0 };
    for (path, seen) in root.seen() {
        tree.put(&path, seen, scrub)?;
    }
    tree.write(&format!("/{MANIFEST}"), tree.manifest.to_string().as_bytes())?;
    let count = |wanted: fn(&Missing) -> bool| {
        tree.manifest.missing.values().filter(|missing| wanted(missing)).count()
    };
    Ok(Captured {
        facts,
        files: tree.files,
        absent: count(|missing| *missing == Missing::Absent),
        unreadable: count(|missing| matches!(missing, Missing::Unreadable { .. })),
    })
}

fn make_empty(out: &Path) -> Result<(), CaptureError> {
    let failed = |source| CaptureError::Write { path: out.to_owned(), source };
    fs::create_dir_all(out).map_err(failed)?;
    match fs::read_dir(out).map_err(failed)?.next() {
        Some(_) => Err(CaptureError::NotEmpty { out: out.to_owned() }),
        None => Ok(()),
    }
}

struct Tree<'a> {
    out: &'a Path,
    manifest: Manifest,
    files: usize,
}

impl Tree<'_> {
    fn put(&mut self, path: &str, seen: Seen, scrub: &Scrub) -> Result<(), CaptureError> {
        let shown = scrub.path(path);
        let missing = match seen {
            Seen::File(Read::Text(text)) => {
                self.files += 1;
                return self.write(&shown, filter::filter(path, &text, scrub).as_bytes());
            }
            Seen::Compressed(Read::Text(text)) => {
                self.files += 1;
                return self.write_compressed(&shown, &filter::config(&text));
            }
            // The names in it come with the files below it.
            Seen::Directory(Listing::Names(_)) => Missing::Directory,
            Seen::File(Read::Absent)
            | Seen::Compressed(Read::Absent)
            | Seen::Directory(Listing::Absent) => Missing::Absent,
            Seen::File(Read::Unreadable { why })
            | Seen::Compressed(Read::Unreadable { why })
            | Seen::Directory(Listing::Unreadable { why }) => Missing::Unreadable { why },
        };
        self.manifest.missing.insert(shown, missing);
        Ok(())
    }

    /// As it was found: compressed or not by its name.
    fn write_compressed(&self, path: &str, text: &str) -> Result<(), CaptureError> {
        if !path.ends_with(".gz") {
            return self.write(path, text.as_bytes());
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let packed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
        match packed {
            Ok(packed) => self.write(path, &packed),
            Err(source) => Err(CaptureError::Write { path: self.out.join(&path[1..]), source }),
        }
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), CaptureError> {
        let at = self.out.join(path.trim_start_matches('/'));
        let made = at.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| File::create_new(&at)?.write_all(bytes))
            .map_err(|source| CaptureError::Write { path: at, source })
    }
}

#[cfg(test)]
mod tests;
