//! Where settings are: this machine, or a directory that stands for one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::text::{active, says};

/// The most that is read of a setting.
const TEXT_MAX: u64 = 64 * 1024;

/// Files that hold settings, by the paths that they have on a machine.
pub trait KnobFiles {
    /// The text of a setting.
    ///
    /// # Errors
    /// As the kernel gives them.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Writes a value, in one call.
    ///
    /// # Errors
    /// As the kernel gives them.
    fn write(&mut self, path: &str, value: &str) -> io::Result<()>;

    /// Makes the text of a setting what it was: of a choice, by writing its word.
    ///
    /// # Errors
    /// As the kernel gives them.
    fn restore(&mut self, path: &str, text: &str) -> io::Result<()> {
        self.write(path, active(text))
    }

    /// Whether a text that was read has the value that was written: the same word, or the same mask
    /// in other digits.
    fn says(&self, text: &str, value: &str) -> bool {
        says(text, value)
    }
}

/// The settings of this machine, or of the directory that stands for a machine.
#[derive(Debug)]
pub struct MachineFiles {
    tree: Option<PathBuf>,
}

impl MachineFiles {
    /// This machine's.
    pub fn live() -> Self {
        Self { tree: None }
    }

    /// Those of a directory, where files are plain: they hold what is written.
    pub fn below(tree: &Path) -> Self {
        Self { tree: Some(tree.to_owned()) }
    }

    /// Where a setting is; a path that would leave the directory is none.
    fn place(&self, path: &str) -> io::Result<PathBuf> {
        let Some(tree) = &self.tree else { return Ok(PathBuf::from(path)) };
        let tree = fs::canonicalize(tree)?;
        let place = fs::canonicalize(tree.join(path.trim_start_matches('/')))?;
        match place.starts_with(&tree) {
            true => Ok(place),
            false => Err(io::Error::other("a link leaves the directory")),
        }
    }

    fn put(&self, path: &str, text: &str) -> io::Result<()> {
        // Never created: a setting that is not there cannot be set.
        let truncate = self.tree.is_some();
        let mut file = OpenOptions::new().write(true).truncate(truncate).open(self.place(path)?)?;
        file.write_all(text.as_bytes())
    }
}

impl KnobFiles for MachineFiles {
    fn read(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        File::open(self.place(path)?)?.take(TEXT_MAX).read_to_string(&mut text)?;
        Ok(text)
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        // The kernel shows a value with a line end; a plain file keeps what it gets.
        let line = if self.tree.is_some() { format!("{value}\n") } else { value.to_owned() };
        self.put(path, &line)
    }

    fn restore(&mut self, path: &str, text: &str) -> io::Result<()> {
        match self.tree {
            Some(_) => self.put(path, text),
            None => self.put(path, active(text)),
        }
    }
}
