//! A file that is opened before the work and written after it.
//!
//! For outputs of some time. What is in it stays until it is begun, and one that was made here goes
//! away again where nothing came of the work: an empty file would look like a result.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file to write.
#[derive(Debug)]
pub(crate) struct Opened {
    file: File,
    path: PathBuf,
    /// Made here, and nothing to keep in it so far.
    passing: bool,
}

impl Opened {
    /// The file at `path`, or a new one.
    ///
    /// # Errors
    /// In one line, why it cannot be written.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true);
        let (file, passing) = match options.clone().create_new(true).open(path) {
            // A link that leads nowhere is there, and is followed.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
                (options.create(true).truncate(false).open(path), false)
            }
            made => (made, true),
        };
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file, path: path.to_owned(), passing })
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file, emptied. A pipe or a device has nothing to be taken out.
    ///
    /// # Errors
    /// In one line, why it cannot be written.
    pub(crate) fn begin(&self) -> Result<File> {
        let empty = |file: File| -> io::Result<File> {
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            Ok(file)
        };
        let begun = self.file.try_clone().and_then(empty);
        begun.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// What was written is worth having.
    pub(crate) fn keep(mut self) {
        self.passing = false;
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.passing {
            // Whoever took it away before has done the same.
            let _gone = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_made_for_nothing_goes_away_and_another_ones_stays() {
        let path = std::env::temp_dir().join(format!("punctual-opened-{}", std::process::id()));
        drop(Opened::at(&path).expect("writable"));
        assert!(!path.exists());
        let opened = Opened::at(&path).expect("writable");
        opened.begin().and_then(|mut file| Ok(file.write_all(b"one")?)).expect("writable");
        opened.keep();
        drop(Opened::at(&path).expect("writable"));
        assert_eq!(fs::read(&path).expect("it stays"), b"one");
        let again = Opened::at(&path).expect("writable");
        again.begin().and_then(|mut file| Ok(file.write_all(b"2")?)).expect("writable");
        drop(again);
        assert_eq!(fs::read(&path).expect("it stays"), b"2");
        fs::remove_file(&path).expect("it was made here");
    }
}
