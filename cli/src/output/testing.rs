//! Help for the unit tests of outputs: a directory that goes away.

use std::fs;
use std::path::PathBuf;

use super::dir::Dir;

/// A directory of a test's own.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// A new one; `name` is unique among the tests.
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("punctual-output-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).expect("writable");
        Self(dir)
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// It, open.
    pub(crate) fn dir(&self) -> Dir {
        Dir::of_named(&self.0).expect("a directory")
    }

    /// What is in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("readable").flatten();
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in the temporary directory harms nobody.
        let _left = fs::remove_dir_all(&self.0);
    }
}
