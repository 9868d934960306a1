//! The journals of `punctual tune` and `isolate`: a file that is locked, added to and synced.
//!
//! It has one place and is never replaced: what it says must be on the disk before a setting is
//! changed. What it says is obeyed, so it is taken from this user alone, and only where it names
//! settings that this version changes.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use punctual_host::plan::{BootPlan, is_setting};
use punctual_host::root::read_whole;
use punctual_host::{Root, identity};
use punctual_lab::tuning::{JournalEntry, TuningJournal, TuningStore};
use punctual_os::{file, process};
use rustix::fs::{Stat, fstat};

use super::{BootFiles, Dir, SettingsLock};

/// A journal, by its name in the directory of the program's state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalName(&'static str);

impl JournalName {
    /// Of settings of the running machine.
    pub(crate) const SETTINGS: Self = Self("tune.journal");
    /// Of what `punctual tune experiment` tries.
    pub(crate) const EXPERIMENT: Self = Self("experiment.journal");
    /// Of what `punctual isolate` changes while its command runs.
    pub(crate) const ISOLATION: Self = Self("isolate.journal");
    /// Of what `punctual measure saturation --unsafe-no-throttle` switches off.
    pub(crate) const THROTTLING: Self = Self("throttling.journal");
    /// Of files of the boot loader.
    pub(crate) const BOOT: Self = Self("boot.journal");

    /// Those of settings that a command puts back at its own end: what is left of one goes first.
    const PASSING: [Self; 3] = [Self::THROTTLING, Self::EXPERIMENT, Self::ISOLATION];

    /// Those of settings of the running machine, in the order in which they are put back.
    pub(crate) const RUNNING: [Self; 4] =
        [Self::THROTTLING, Self::EXPERIMENT, Self::ISOLATION, Self::SETTINGS];

    /// Refuses a journal that names what this version does not change, or that is about something
    /// else: putting that back would be somebody else's will.
    fn refuse_foreign(self, bytes: &[u8]) -> io::Result<()> {
        // One that cannot be parsed is refused by who asks for it.
        let Ok(journal) = TuningJournal::parse(bytes) else { return Ok(()) };
        let at_boot = self.0 == Self::BOOT.0;
        if !bytes.is_empty()
            && !journal.boot.is_empty()
            && at_boot != BootFiles::are_kept(&journal.boot)
        {
            return Err(io::Error::other(format!("it is about {}", journal.boot)));
        }
        let root = Root::live();
        // It is not put back, and that boot may have had other control groups.
        let is_earlier =
            |boot: &str| identity::boot(&root).value().is_some_and(|this| boot != this);
        if is_boot(&journal.boot) && is_earlier(&journal.boot) {
            return Ok(());
        }
        let is_known =
            |path: &str| if at_boot { BootPlan::is_file(path) } else { is_setting(path, &root) };
        match journal.entries.iter().find(|entry| !is_known(&entry.path)) {
            None => Ok(()),
            Some(foreign) => Err(io::Error::other(format!(
                "it names {}, which this version of punctual does not change; nothing was changed",
                foreign.path
            ))),
        }
    }
}

/// The most that is read of it: some thousand settings.
const BYTES_MAX: u64 = 16 << 20;

/// The journal, open and locked.
#[derive(Debug)]
pub(crate) struct JournalFile {
    file: File,
    name: JournalName,
}

impl JournalFile {
    /// Opens it in `directory`, which is made if necessary, to change settings, and locks it.
    ///
    /// # Errors
    /// As [`JournalFile::lock`]; where a command that was killed left settings that have to be put
    /// back first, here or by another directory: put back in another order, some would stay.
    pub(crate) fn begin(
        settings: &mut SettingsLock,
        directory: &Path,
        name: JournalName,
    ) -> Result<Self> {
        let journal = Self::lock(settings, directory, name)?;
        let names = JournalName::RUNNING.into_iter().chain([JournalName::BOOT]);
        // All of them: whether settings are changed must stay known while this directory has them.
        for other in names {
            let is_passing = JournalName::PASSING.iter().any(|passing| passing.0 == other.0);
            let is_live = Self::is_live(directory, other, settings.boot())?;
            if is_live && is_passing && other.0 != name.0 {
                bail!(
                    "{}: a command that was killed left settings changed: first {}",
                    directory.join(other.0).display(),
                    settings.revert(directory)
                );
            }
        }
        settings.claim(directory)?;
        Ok(journal)
    }

    /// Opens it in `directory`, which is made if necessary, and locks it.
    ///
    /// # Errors
    /// Where it cannot be written, another process has it, or it is not to be obeyed.
    pub(crate) fn lock(
        settings: &SettingsLock,
        directory: &Path,
        name: JournalName,
    ) -> Result<Self> {
        let with_way_out = |why| with_way_out(why, settings.is_of_tree());
        let dir = Dir::make(directory).map_err(with_way_out)?;
        dir.refuse_shared()?;
        let file = dir.checked(name.0, refuse_forged).map_err(with_way_out)?;
        if !file::try_lock(file.as_raw_fd()).map_err(|why| io::Error::from_raw_os_error(why.0))? {
            bail!(
                "another 'punctual tune' or 'punctual isolate' is changing settings; wait until it \
                 has ended"
            );
        }
        // Its name, where it is new.
        dir.sync();
        let mut journal = Self { file, name };
        let shown = directory.join(name.0);
        let bytes = journal.load().with_context(|| format!("cannot use {}", shown.display()))?;
        // One that is damaged is refused by who reads it.
        let known = TuningJournal::parse(&bytes).unwrap_or_default();
        let this = match name.0 == JournalName::BOOT.0 {
            true => BootFiles::kept(settings.boot()),
            false => settings.boot().to_owned(),
        };
        let restarted = is_boot(&known.boot) && is_boot(&this);
        if !known.entries.is_empty() && known.boot != this && !restarted {
            bail!("{}: it is about {}, not about {this}", shown.display(), known.boot);
        }
        Ok(journal)
    }

    /// What is in it, without a lock; `None` where there is none.
    ///
    /// # Errors
    /// Where it cannot be read, or is not to be obeyed.
    pub(crate) fn read(directory: &Path, name: JournalName) -> Result<Option<Vec<u8>>> {
        if !directory.exists() {
            return Ok(None);
        }
        let read = || {
            let dir = Dir::open(directory)?;
            let file = dir.read(name.0).map_err(|why| match why.kind() {
                io::ErrorKind::PermissionDenied => anyhow!("only its owner can read it: try sudo"),
                _ => why.into(),
            });
            let Some(file) = file? else { return Ok(None) };
            dir.refuse_shared()?;
            refuse_forged(&fstat(&file).map_err(io::Error::from)?)?;
            let bytes = read_whole(&file, BYTES_MAX)?;
            name.refuse_foreign(&bytes)?;
            anyhow::Ok(Some(bytes))
        };
        read().with_context(|| format!("cannot use {}", directory.join(name.0).display()))
    }

    /// Whether it has settings that are changed in this boot, or for the next.
    pub(crate) fn is_live(directory: &Path, name: JournalName, boot: &str) -> Result<bool> {
        let bytes = Self::read(directory, name)?.unwrap_or_default();
        let journal = TuningJournal::parse(&bytes)?;
        let of_this = journal.boot == boot || journal.boot == BootFiles::kept(boot);
        Ok(of_this && journal.entries.iter().any(JournalEntry::is_changed))
    }
}

/// Whether a journal that names this is of a boot of this machine, this one or an earlier.
fn is_boot(named: &str) -> bool {
    named.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// With what to do where this user may not write there: only root changes settings of this machine,
/// and whoever may write to it those of a directory.
fn with_way_out(why: anyhow::Error, is_of_tree: bool) -> anyhow::Error {
    let is_refused = |cause: &io::Error| cause.kind() == io::ErrorKind::PermissionDenied;
    match why.root_cause().downcast_ref::<io::Error>() {
        Some(cause) if is_refused(cause) && process::euid() != 0 => match is_of_tree {
            true => anyhow!("{why:#}: --state DIR keeps the journal where you can write"),
            false => anyhow!("{why:#}: only root changes settings: use sudo"),
        },
        _ => why,
    }
}

/// Refuses a file that another user may have written.
fn refuse_forged(stat: &Stat) -> Result<()> {
    let (owner, mode) = (stat.st_uid, stat.st_mode & 0o7777);
    if ![process::euid(), 0].contains(&owner) {
        bail!(
            "it belongs to another user (uid {owner}), and what it says would be obeyed: if it is \
             not yours, remove it"
        );
    }
    if mode & 0o022 != 0 {
        bail!(
            "other users can write to it (mode {mode:04o}, not 0600), and what it says would be \
             obeyed: read it, then remove it or chmod 0600"
        );
    }
    if stat.st_nlink != 1 {
        bail!("it has another name elsewhere");
    }
    Ok(())
}

impl TuningStore for JournalFile {
    fn load(&mut self) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(0))?;
        let bytes = read_whole(&self.file, BYTES_MAX)?;
        self.name.refuse_foreign(&bytes)?;
        Ok(bytes)
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(line)?;
        self.file.sync_all()
    }

    fn cut(&mut self, length: usize) -> io::Result<()> {
        self.file.set_len(length as u64)?;
        self.file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scratch;
    use super::*;

    #[test]
    fn a_journal_that_is_too_large_is_not_read_in_part() {
        let dir = Scratch::new("journal");
        let settings = SettingsLock::take(Some(&dir.path("")), "boot", "a test").expect("free");
        let mut journal =
            JournalFile::lock(&settings, &dir.path(""), JournalName::SETTINGS).expect("writable");
        journal.append(b"a\n").expect("writable");
        assert_eq!(journal.load().expect("readable"), b"a\n");
        journal.file.set_len(BYTES_MAX + 1).expect("writable");
        let error = journal.load().expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let error = JournalFile::read(&dir.path(""), JournalName::SETTINGS).expect_err("too large");
        assert!(format!("{error:#}").ends_with("it has more than 16 MiB"), "{error:#}");
    }
}
