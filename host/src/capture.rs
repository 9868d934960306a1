//! The facts' files of a machine as a tree, without secrets: `OUT/proc/cmdline`, ….
//!
//! What is copied is what [`MachineFacts::collect`] read, as a recording root logged it, so the two
//! cannot drift apart: the tree, opened with [`Root::captured`], gives equal facts. Each file is
//! filtered by what it is (`filter`); what was absent or unreadable stands in a manifest. Where the
//! files go is the caller's choice: nothing is written here.

mod filter;
pub mod manifest;

use crate::facts::MachineFacts;
use crate::root::{Listing, Read, Root, Seen};
use crate::scrub::Scrub;
use crate::settings::KernelSettings;
use flate2::Compression;
use flate2::write::GzEncoder;
use manifest::{MANIFEST, Manifest, Missing};
use std::io::{self, Write as _};

/// What a capture came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// The facts as the machine gave them, before anything was taken out.
    pub facts: MachineFacts,
    /// How many files were written, the manifest not counted.
    pub files: usize,
    /// How many were looked for and not there.
    pub absent: usize,
    /// How many could not be read.
    pub unreadable: usize,
}

/// Captures the machine below `root`: hands each file of the tree to `write`, with its path in the
/// tree ("proc/cmdline"), the manifest last.
///
/// # Errors
/// The first one of `write`.
pub fn capture<E: From<io::Error>>(
    root: Root,
    scrub: &Scrub,
    write: impl FnMut(&str, &[u8]) -> Result<(), E>,
) -> Result<Captured, E> {
    let root = root.recording();
    let facts = MachineFacts::collect(&root);
    // What rules look at beyond the facts: read, so that it is copied.
    let _settings = KernelSettings::collect(&root);
    let mut tree = Tree { write, manifest: Manifest::default(), files: 0 };
    for (path, seen) in root.seen() {
        tree.put(&path, seen, scrub)?;
    }
    (tree.write)(MANIFEST, tree.manifest.to_string().as_bytes())?;
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

struct Tree<W> {
    write: W,
    manifest: Manifest,
    files: usize,
}

impl<E: From<io::Error>, W: FnMut(&str, &[u8]) -> Result<(), E>> Tree<W> {
    fn put(&mut self, path: &str, seen: Seen, scrub: &Scrub) -> Result<(), E> {
        let shown = filter::path(path, scrub);
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
    fn write_compressed(&mut self, path: &str, text: &str) -> Result<(), E> {
        if !path.ends_with(".gz") {
            return self.write(path, text.as_bytes());
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text.as_bytes())?;
        self.write(path, &encoder.finish()?)
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), E> {
        (self.write)(path.trim_start_matches('/'), bytes)
    }
}

#[cfg(test)]
mod tests;
