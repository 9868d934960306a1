//! Files of the boot loader: each is replaced whole, so that the machine boots with the old or the
//! new one.

use std::io;
use std::path::Path;

use punctual_lab::tuning::KnobFiles;

use super::tree::Place;

/// The most that is read of a file.
const TEXT_MAX: u64 = 1 << 20;

/// What a journal names in place of a boot, before the directory that stands for a machine.
pub(crate) const TREE: &str = "files of ";

const KEPT: &str = "files of the boot loader";

/// Files on a disk, whose texts are the settings: one that is not there reads as empty, and is
/// removed where an empty text is put back.
#[derive(Debug)]
pub(crate) struct BootFiles(Place);

impl BootFiles {
    /// What a journal of these files names in place of a boot, because they stay from boot to boot:
    /// this machine's, or those of the directory that `boot` names, as a journal does.
    pub(crate) fn kept(boot: &str) -> String {
        boot.strip_prefix(TREE).map_or_else(|| KEPT.to_owned(), |tree| format!("{KEPT} of {tree}"))
    }

    /// Whether a journal that names this in place of a boot is one of such files.
    pub(super) fn are_kept(boot: &str) -> bool {
        boot == KEPT || boot.strip_prefix(KEPT).is_some_and(|tree| tree.starts_with(" of "))
    }

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
