//! Files of the boot loader: each is replaced whole, so that the machine boots with the old or the
//! new one.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use punctual_lab::tuning::KnobFiles;

use super::Dir;

/// The most that is read of a file.
const TEXT_MAX: u64 = 1 << 20;

/// Files on a disk, whose texts are the settings: one that is not there reads as empty, and is
/// removed where an empty text is put back.
#[derive(Debug)]
pub(crate) struct BootFiles {
    tree: Option<PathBuf>,
}

impl BootFiles {
    /// What a journal of these files names in place of a boot: they stay from boot to boot.
    pub(crate) const KEPT: &str = "files of the boot loader";

    /// This machine's, or those of a directory that stands for a machine.
    pub(crate) fn of(tree: Option<&Path>) -> Self {
        Self { tree: tree.map(Path::to_owned) }
    }

    /// The directory and the name of a file; the directory is there, and below the tree.
    fn place<'a>(&self, path: &'a str) -> io::Result<(Dir, &'a str)> {
        let name = Path::new(path).file_name().and_then(OsStr::to_str);
        let (Some(name), Some(directory)) = (name, Path::new(path).parent()) else {
            return Err(io::Error::other("no file of a directory"));
        };
        let mut place = directory.to_owned();
        if let Some(tree) = &self.tree {
            let tree = fs::canonicalize(tree)?;
            place = fs::canonicalize(tree.join(directory.strip_prefix("/").unwrap_or(directory)))?;
            if !place.starts_with(&tree) {
                return Err(io::Error::other("a link leaves the directory"));
            }
        }
        Ok((Dir::open(&place).map_err(other)?, name))
    }
}

fn other(why: anyhow::Error) -> io::Error {
    io::Error::other(format!("{why:#}"))
}

impl KnobFiles for BootFiles {
    fn read(&self, path: &str) -> io::Result<String> {
        let (dir, name) = self.place(path)?;
        let mut text = String::new();
        if let Some(file) = dir.read(name)? {
            file.take(TEXT_MAX).read_to_string(&mut text)?;
        }
        Ok(text)
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        let (dir, name) = self.place(path)?;
        dir.replace(name, value).map_err(other)?;
        Ok(())
    }

    fn restore(&mut self, path: &str, text: &str) -> io::Result<()> {
        if !text.is_empty() {
            return self.write(path, text);
        }
        let (dir, name) = self.place(path)?;
        match dir.remove(name) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
            _ => Ok(()),
        }
    }

    fn says(&self, _: &str, text: &str, value: &str) -> bool {
        text == value
    }
}
