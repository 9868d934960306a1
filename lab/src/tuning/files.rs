//! Where settings are: this machine, or a directory that stands for one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::group;
use super::text::{active, says};

/// The most that is read of a setting.
const TEXT_MAX: u64 = 64 * 1024;

/// The file of a group's controllers: it takes `+cpuset` and `-cpuset`, and shows all that are on.
const CONTROLLERS: &str = "/cgroup.subtree_control";

/// The words that take away what a text has and the one before it had not.
fn removed<'a>(now: &'a str, before: &'a str) -> impl Iterator<Item = String> + 'a {
    let was = |word: &str| before.split_whitespace().any(|other| other == word);
    now.split_whitespace().filter(move |word| !was(word)).map(|word| format!("-{word}"))
}

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

    /// Whether a text that was read from `path` has the value that was written: the same word, or
    /// the same CPUs in other digits.
    fn says(&self, path: &str, text: &str, value: &str) -> bool {
        says(path, text, value)
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
        let place = tree.join(path.trim_start_matches('/'));
        let place = match place.file_name() {
            // It may have to be made first.
            Some(name) if group::is_group(path) => {
                fs::canonicalize(place.parent().unwrap_or(&tree))?.join(name)
            }
            _ => fs::canonicalize(place)?,
        };
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
        if group::is_group(path) {
            return self.place(path).map(|place| group::read(&place));
        }
        let mut text = String::new();
        File::open(self.place(path)?)?.take(TEXT_MAX).read_to_string(&mut text)?;
        Ok(text)
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        if group::is_group(path) {
            return group::write(&self.place(path)?, value);
        }
        // The kernel shows a value with a line end; a plain file keeps what it gets.
        let line = if self.tree.is_some() { format!("{value}\n") } else { value.to_owned() };
        self.put(path, &line)
    }

    fn restore(&mut self, path: &str, text: &str) -> io::Result<()> {
        if group::is_group(path) {
            return self.write(path, text);
        }
        if path.ends_with(CONTROLLERS) {
            return removed(&self.read(path)?, text).try_for_each(|word| self.put(path, &word));
        }
        match self.tree {
            Some(_) => self.put(path, text),
            // write(2) without bytes would change nothing.
            None if active(text).is_empty() => self.put(path, "\n"),
            None => self.put(path, active(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_to_a_list_of_controllers_is_taken_away() {
        let all: Vec<String> = removed("cpuset cpu io\n", "cpu\n").collect();
        assert_eq!(all, ["-cpuset", "-io"]);
        let says = |text: &str| says("/sys/fs/cgroup/cgroup.subtree_control", text, "+cpuset");
        assert!(says("cpuset cpu\n") && !says("cpu\n"));
    }
}
