//! Plain files of a machine, or of a directory that stands for one: read whole, replaced whole.
//!
//! A path is resolved beneath the directory, which no link leaves. As root, a directory that
//! another user can change is refused.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use punctual_host::root::read_text;
use punctual_lab::tuning::KnobFiles;

use super::dir::Dir;
use super::opened::Opened;

/// The most that is read of a setting.
const TEXT_MAX: u64 = 64 * 1024;

/// Where files are.
#[derive(Debug)]
pub(super) struct Place {
    tree: Option<PathBuf>,
}

impl Place {
    /// This machine, or a directory.
    fn of(tree: Option<&Path>) -> Self {
        Self { tree: tree.map(Path::to_owned) }
    }

    /// The directory of a file, which is there, and the name in it.
    fn named<'a>(&self, path: &'a str) -> io::Result<(Dir, &'a str)> {
        let path = Path::new(path);
        let name = path.file_name().and_then(OsStr::to_str);
        let (Some(name), Some(directory)) = (name, path.parent()) else {
            return Err(io::Error::other("no file of a directory"));
        };
        let dir = match &self.tree {
            None => Dir::open(directory).map_err(other)?,
            Some(tree) => Dir::open(tree).map_err(other)?.beneath(directory)?,
        };
        dir.refuse_distrusted()?;
        Ok((dir, name))
    }

    /// The text of a file; `None` where it is not there.
    ///
    /// # Errors
    /// Also where it has more than `most` bytes: a part of it would be taken for all of it.
    fn read(&self, path: &str, most: u64) -> io::Result<Option<String>> {
        let (dir, name) = self.named(path)?;
        let Some(file) = dir.read(name)? else { return Ok(None) };
        read_text(file, most).map(Some)
    }

    /// Writes a file, so that it is there whole or as before.
    fn replace(&self, path: &str, text: &str) -> io::Result<()> {
        let (dir, name) = self.named(path)?;
        Opened::replace(&dir, name, text).map_err(other)?;
        Ok(())
    }

    /// Removes a file.
    fn remove(&self, path: &str) -> io::Result<()> {
        let (dir, name) = self.named(path)?;
        dir.remove(name)
    }

    fn has(&self, path: &str) -> io::Result<bool> {
        let (dir, name) = self.named(path)?;
        Ok(dir.has(name))
    }
}

fn other(why: anyhow::Error) -> io::Error {
    io::Error::other(format!("{why:#}"))
}

/// The settings of a directory that stands for a machine: plain files that hold what is written.
#[derive(Debug)]
pub(crate) struct TreeFiles(Place);

impl TreeFiles {
    /// The settings below a directory.
    pub(crate) fn below(tree: &Path) -> Self {
        Self(Place::of(Some(tree)))
    }
}

impl KnobFiles for TreeFiles {
    fn read(&self, path: &str) -> io::Result<String> {
        self.0.read(path, TEXT_MAX)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        // The kernel shows a value with a line end.
        self.restore(path, &format!("{value}\n"), value)
    }

    fn restore(&mut self, path: &str, text: &str, _value: &str) -> io::Result<()> {
        // Never created: a setting that is not there cannot be set.
        if !self.0.has(path)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.0.replace(path, text)
    }
}

/// The most that is read of a file.
const BOOT_TEXT_MAX: u64 = 1 << 20;

/// Files on a disk, whose texts are the settings: one that is not there reads as empty, and is
/// removed where an empty text is put back.
#[derive(Debug)]
pub(crate) struct BootFiles(Place);

impl BootFiles {
    /// This machine's, or those of a directory that stands for a machine.
    pub(crate) fn of(tree: Option<&Path>) -> Self {
        Self(Place::of(tree))
    }
}

impl KnobFiles for BootFiles {
    fn read(&self, path: &str) -> io::Result<String> {
        Ok(self.0.read(path, BOOT_TEXT_MAX)?.unwrap_or_default())
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        self.0.replace(path, value)
    }

    fn restore(&mut self, path: &str, text: &str, _value: &str) -> io::Result<()> {
        if !text.is_empty() {
            return self.write(path, text);
        }
        match self.0.remove(path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
            _ => Ok(()),
        }
    }

    fn says(&self, _: &str, text: &str, value: &str) -> bool {
        text == value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::super::Scratch;

    #[test]
    fn a_setting_is_replaced_whole_and_never_made() {
        let (dir, elsewhere) = (Scratch::new("tree"), Scratch::new("tree-outside"));
        fs::create_dir(dir.path("sys")).expect("writable");
        fs::write(dir.path("sys/knob"), "a long old text\n").expect("writable");
        fs::write(elsewhere.path("knob"), "precious").expect("writable");
        symlink(elsewhere.path(""), dir.path("out")).expect("free");
        symlink(elsewhere.path("knob"), dir.path("sys/link")).expect("free");
        let open = fs::File::open(dir.path("sys/knob")).expect("there");
        let mut files = TreeFiles::below(&dir.path(""));
        files.write("/sys/knob", "10").expect("writable");
        assert_eq!(files.read("/sys/knob").expect("readable"), "10\n");
        assert_eq!(io::read_to_string(open).expect("readable"), "a long old text\n");
        let kind = |result: io::Result<()>| result.expect_err("refused").kind();
        assert_eq!(kind(files.write("/sys/none", "1")), io::ErrorKind::NotFound);
        assert_eq!(kind(files.write("/none/none", "1")), io::ErrorKind::NotFound);
        for path in ["/out/knob", "/sys/../../knob"] {
            assert!(files.read(path).is_err() && files.write(path, "1").is_err(), "{path}");
        }
        assert!(files.read("/sys/link").is_err());
        assert_eq!(dir.names(), ["out", "sys"]);
        assert_eq!(fs::read_to_string(elsewhere.path("knob")).expect("there"), "precious");
    }

    #[test]
    fn a_pipe_is_not_waited_for_and_what_is_too_long_is_not_read_in_part() {
        let dir = Scratch::new("tree-odd");
        assert!(
            Command::new("mkfifo").arg(dir.path("pipe")).status().expect("it starts").success()
        );
        fs::write(dir.path("long"), "x".repeat(TEXT_MAX as usize + 1)).expect("writable");
        let files = TreeFiles::below(&dir.path(""));
        let why = |path: &str| files.read(path).expect_err("refused").to_string();
        assert!(why("/pipe").contains("not a regular file"), "{}", why("/pipe"));
        assert_eq!(why("/long"), "it has more than 64 KiB");
    }
}
