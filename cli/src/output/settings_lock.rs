//! One process at a time changes settings of a machine, whichever directory its journals are in,
//! and one directory at a time has settings that are changed.
//!
//! A file of root's in /run, which nobody else can open, or of the user's own. It says who holds
//! it, and where the journals are; it goes with the last settings that are changed. Settings are
//! put back in the order of one directory's journals: of two directories, the order would be
//! anybody's guess, and settings would stay changed.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use punctual_os::{file, process};
use rustix::fs::fstat;

use super::{Dir, JournalFile, JournalName, state_dir};
use crate::format;

/// How often it is taken again where its last holder removed it meanwhile.
const TRIES: u32 = 16;
/// The most that is read of it: who holds it, and a path.
const BYTES_MAX: u64 = 16 * 1024;

/// The lock, held.
#[derive(Debug)]
pub(crate) struct SettingsLock {
    dir: Dir,
    name: String,
    file: fs::File,
    /// Whose settings: as journals name them.
    boot: String,
    /// The directory that stands for a machine.
    tree: Option<PathBuf>,
    holder: String,
    /// The directory of the journals that may have settings which are changed.
    claimed: Option<PathBuf>,
}

impl SettingsLock {
    /// Takes the lock of this machine, or of a directory that stands for one, for `command`.
    ///
    /// # Errors
    /// Where another process holds it, or another user can change the directory.
    pub(crate) fn take(tree: Option<&Path>, boot: &str, command: &str) -> Result<Self> {
        let mut name = match process::euid() {
            0 => "punctual-settings".to_owned(),
            user => format!("punctual-settings-{user}"),
        };
        if let Some(tree) = tree {
            let identity = fstat(Dir::open(tree)?).map_err(io::Error::from)?;
            name += &format!("-{:x}-{:x}", identity.st_dev, identity.st_ino);
        }
        name += ".lock";
        let dir = directory()?;
        for _ in 0..TRIES {
            let mut file = dir.private(&name)?;
            let locked = file::try_lock(file.as_raw_fd());
            let locked = locked.map_err(|why| io::Error::from_raw_os_error(why.0))?;
            let mut text = String::new();
            (&mut file).take(BYTES_MAX).read_to_string(&mut text)?;
            let mut lines = text.lines();
            // Empty where it has not written it yet.
            let holder = lines.next().filter(|holder| !holder.is_empty());
            let holder = holder.unwrap_or("another process");
            if !locked {
                let of_tree = tree.map(|tree| format!(" of {}", tree.display()));
                bail!(
                    "{holder} is changing settings{}; wait until it has ended",
                    of_tree.unwrap_or_default()
                );
            }
            let claimed = lines.next().map(PathBuf::from);
            // The last holder may have removed it before it was locked.
            if file.metadata()?.nlink() == 1 {
                let holder = format!("process {} ('punctual {command}')", std::process::id());
                let (boot, tree) = (boot.to_owned(), tree.map(Path::to_owned));
                let mut lock = Self { dir, name, file, boot, tree, holder, claimed };
                lock.write()?;
                return Ok(lock);
            }
        }
        bail!("cannot lock {}: it is removed again and again", dir.path().join(name).display())
    }

    /// Whose settings these are: as journals name them.
    pub(crate) fn boot(&self) -> &str {
        &self.boot
    }

    /// Whether they are those of a directory that stands for a machine.
    pub(crate) fn is_of_tree(&self) -> bool {
        self.tree.is_some()
    }

    /// The command that puts back what the journals in `state` have.
    pub(crate) fn revert(&self, state: &Path) -> String {
        format::tune("revert", self.tree.as_deref(), state)
    }

    /// Makes `state` the directory whose journals have the settings that are changed.
    pub(crate) fn claim(&mut self, state: &Path) -> Result<()> {
        let state = fs::canonicalize(state).with_context(|| state.display().to_string())?;
        if state.to_str().is_none_or(|state| state.contains(char::is_control)) {
            bail!("{}: journals need a directory whose name is plain UTF-8", state.display());
        }
        if self.claimed.as_ref() == Some(&state) {
            return Ok(());
        }
        if let Some(other) = &self.claimed
            && self.is_live(other).with_context(|| {
                let lock = self.dir.path().join(&self.name);
                format!(
                    "settings may be changed by {}, which {} names",
                    other.display(),
                    lock.display()
                )
            })?
        {
            bail!(
                "the journals in {} have settings that are changed; put back in another order, \
                 some would stay: first {}, or the same --state",
                other.display(),
                self.revert(other)
            );
        }
        self.claimed = Some(state);
        Ok(self.write()?)
    }

    fn is_live(&self, state: &Path) -> Result<bool> {
        let names = JournalName::RUNNING.into_iter().chain([JournalName::BOOT]);
        names.into_iter().try_fold(false, |live, name| {
            Ok(live || JournalFile::is_live(state, name, &self.boot)?)
        })
    }

    fn write(&mut self) -> io::Result<()> {
        let claimed = self.claimed.as_deref().map(Path::to_string_lossy).unwrap_or_default();
        let text = format!("{}\n{claimed}\n", self.holder);
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }
}

impl Drop for SettingsLock {
    fn drop(&mut self) {
        let live = self.claimed.as_deref().is_some_and(|state| self.is_live(state).unwrap_or(true));
        if !live {
            // Whoever has opened it meanwhile sees that it has no name any more.
            let _left = self.dir.remove(&self.name);
        }
    }
}

/// Where the lock is: for root /run, for others what is theirs.
fn directory() -> Result<Dir> {
    let run = Path::new("/run");
    if process::euid() == 0
        && let Ok(dir) = Dir::open(run)
        && fs::metadata(run).is_ok_and(|run| run.uid() == 0)
    {
        return Ok(dir);
    }
    // Who became another user may still have the variables of the one before.
    let is_own = |dir: &PathBuf| {
        fs::metadata(dir).is_ok_and(|dir| dir.is_dir() && dir.uid() == process::euid())
    };
    let users = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match users.filter(|dir| dir.is_absolute() && is_own(dir)) {
        Some(dir) => Dir::open(&dir),
        None => match state_dir(None).map(|dir| Dir::make(&dir.join("punctual"))) {
            Some(Ok(dir)) => Ok(dir),
            _ => Dir::open(&std::env::temp_dir()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scratch;
    use super::*;

    #[test]
    fn one_holds_it_and_says_who_it_is() {
        let (dir, state) = (Scratch::new("settings-lock"), Scratch::new("settings-lock-state"));
        let tree = dir.path("");
        let take = |command| SettingsLock::take(Some(&tree), "boot", command);
        let mut first = take("tune apply").expect("free");
        let why = take("isolate").expect_err("held").to_string();
        let own = format!("process {} ('punctual tune apply')", std::process::id());
        assert!(why.starts_with(&own), "{why}");
        first.claim(&state.path("")).expect("free");
        let lock = first.dir.path().join(&first.name);
        assert_eq!(fs::metadata(&lock).expect("there").mode() & 0o777, 0o600);
        drop(first);
        assert!(!lock.exists(), "nothing is changed");
        drop(take("isolate").expect("free again"));
    }
}
