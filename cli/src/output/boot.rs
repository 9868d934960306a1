//! Files of the boot loader: each is replaced whole, so that the machine boots with the old or the
//! new one.

use std::io;
use std::path::Path;

use punctual_lab::tuning::KnobFiles;

use super::tree::Place;

/// The most that is read of a file.
const TEXT_MAX: u64 = 1 << 20;

/// Files on a disk, whose texts are the settings: one that is not there reads as empty, and is
/// removed where an empty text is put back.
#[derive(Debug)]
pub(crate) struct BootFiles(Place);

impl BootFiles {
    /// What a journal of these files names in place of a boot: they stay from boot to boot.
    pub(crate) const KEPT: &str = "files of the boot loader";

    /// This machine's, or those of a directory that stands for a machine.
    pub(crate) fn of(tree: Option<&Path>) -> Self {
        Self(Place::of(tree))
    }
}

impl KnobFiles for BootFiles {
    fn read(&self, path: &str) -> io::Result<String> {
        Ok(self.0.read(path, TEXT_MAX)?.unwrap_or_default())
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        self.0.replace(path, value)
    }

    fn restore(&mut self, path: &str, text: &str) -> io::Result<()> {
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
