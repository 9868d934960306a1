//! Where results go: checked before anything is measured, written at the end.
//!
//! For all subcommands, and the only module of the program that writes files. `opened` has files
//! that the user names, `dir` those whose names the program chooses; both are `pending` until they
//! are complete. Never reads a result.

mod boot;
mod dir;
mod inputs;
mod journal;
mod messages;
mod opened;
mod outputs;
mod pending;
mod settings_lock;
#[cfg(test)]
mod testing;
mod tree;
mod trust;
mod walk;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::format::Styled;
pub(crate) use boot::{BootFiles, TREE};
pub(crate) use dir::Dir;
pub(crate) use inputs::{distinct, spare, spare_tree};
pub(crate) use journal::{JournalFile, JournalName};
pub(crate) use messages::{line, message, page, spaced};
pub(crate) use opened::Opened;
pub(crate) use outputs::{OutputArgs, Outputs};
pub(crate) use punctual::drain::GrowingFile;
pub(crate) use settings_lock::SettingsLock;
pub(crate) use tree::TreeFiles;
pub(crate) use trust::Trust;

/// Where the JSON goes, opened.
#[derive(Debug)]
pub(crate) enum Json {
    /// Nowhere.
    None,
    /// To standard output, and nothing else goes there.
    Stdout,
    /// Into this file.
    File(Opened),
}

impl Json {
    /// Opens what `--json` names.
    pub(crate) fn open(to: Option<&Path>) -> Result<Self> {
        match to {
            None => Ok(Self::None),
            Some(path) if path == Path::new("-") => Ok(Self::Stdout),
            Some(path) => Ok(Self::File(Opened::at(path)?)),
        }
    }

    /// Writes `json`, and `text` to standard output unless the JSON is there.
    pub(crate) fn write(self, json: &str, text: impl Into<Styled>) -> Result<()> {
        let mut kept = Ok(());
        let stdout = match self {
            Self::None => text.into(),
            Self::Stdout => json.into(),
            Self::File(opened) => {
                kept = opened.write(|file| Ok(file.write_all(json.as_bytes())?));
                text.into()
            }
        };
        // The page is shown also where the file could not be written.
        let shown = page(stdout).context("cannot write to standard output");
        kept.and(shown)
    }
}

/// The directory of one run: `DIR/2026-11-21T20-01`, with seconds, then a number, where that is
/// there already. Two runs that start at once get two directories.
pub(crate) fn results_dir(under: &Path, started: jiff::Timestamp) -> Result<Dir> {
    let under = Dir::make(under)?;
    let text = started.to_string();
    let minute = text.get(..16).unwrap_or(&text).replace(':', "-");
    let second = text.get(..19).unwrap_or(&text).replace(':', "-");
    let numbered = (2..100).map(|n| format!("{second}-{n}"));
    for name in [minute, second.clone()].into_iter().chain(numbered) {
        match under.make_new(&name) {
            Ok(dir) => return Ok(dir),
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => {
                let shown = under.path().join(name);
                return Err(why).with_context(|| format!("cannot make {}", shown.display()));
            }
        }
    }
    bail!("cannot create a unique result directory in {}", under.path().display())
}

/// The directory of what lasts from one run to the next: what XDG_STATE_HOME names, else
/// `machines`, else the user's. A relative path counts as none (XDG Base Directory Specification).
pub(crate) fn state_dir(machines: Option<PathBuf>) -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let users = || absolute("HOME").map(|home| home.join(".local/state"));
    absolute("XDG_STATE_HOME").or(machines).or_else(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_gets_a_directory_of_its_own() {
        let under = std::env::temp_dir().join(format!("punctual-output-{}", std::process::id()));
        let started: jiff::Timestamp = "2026-11-21T20:01:07.5Z".parse().expect("a timestamp");
        let made: Vec<_> =
            (0..3).map(|_| results_dir(&under, started).expect("writable")).collect();
        let names: Vec<_> = made
            .iter()
            .map(|dir| dir.path().file_name().expect("named").to_string_lossy())
            .collect();
        assert_eq!(names, ["2026-11-21T20-01", "2026-11-21T20-01-07", "2026-11-21T20-01-07-2"]);
        std::fs::remove_dir_all(&under).expect("it was made here");
    }
}
