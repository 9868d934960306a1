//! Where settings are: this machine, or what stands for one.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use punctual_host::root::{open_regular, read_text};

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

impl<T: KnobFiles + ?Sized> KnobFiles for Box<T> {
    fn read(&self, path: &str) -> io::Result<String> {
        (**self).read(path)
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        (**self).write(path, value)
    }

    fn restore(&mut self, path: &str, text: &str) -> io::Result<()> {
        (**self).restore(path, text)
    }

    fn says(&self, path: &str, text: &str, value: &str) -> bool {
        (**self).says(path, text, value)
    }
}

/// The settings of this machine.
#[derive(Debug)]
pub struct MachineFiles;

impl MachineFiles {
    /// Those that the kernel shows now.
    pub fn live() -> Self {
        Self
    }
}

/// Writes in one call, and never creates: a setting that is not there cannot be set.
fn put(path: &str, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

impl KnobFiles for MachineFiles {
    fn read(&self, path: &str) -> io::Result<String> {
        if group::is_group(path) {
            return group::read(Path::new(path));
        }
        read_text(open_regular(Path::new(path))?, TEXT_MAX)
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        if group::is_group(path) {
            return group::write(Path::new(path), value);
        }
        put(path, value)
    }

    fn restore(&mut self, path: &str, text: &str) -> io::Result<()> {
        if group::is_group(path) {
            return self.write(path, text);
        }
        if path.ends_with(CONTROLLERS) {
            return removed(&self.read(path)?, text).try_for_each(|word| put(path, &word));
        }
        match active(text) {
            // write(2) without bytes would change nothing.
            "" => put(path, "\n"),
            word => put(path, word),
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
