//! The journals of `punctual tune` and `isolate`: a file that is locked, added to and synced.
//!
//! It has one place and is never replaced: what it says must be on the disk before a setting is
//! changed. What it says is obeyed, so it is taken from this user alone, and only where it names
//! settings that this version changes.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use punctual_host::plan::{BootPlan, is_setting};
use punctual_host::root::read_whole;
use punctual_host::{Fact, Root, identity};
use punctual_lab::tuning::{JournalEntry, TuningJournal, TuningStore};
use punctual_os::{file, process};
use rustix::fs::{Stat, fstat};

use super::dir::{Dir, state_dir};
use crate::format;

/// A journal in the directory of the program's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalName {
    /// Settings of the running machine.
    Settings,
    /// Settings that `punctual tune experiment` tries.
    Experiment,
    /// Settings that `punctual isolate` changes while its command runs.
    Isolation,
    /// Settings that `punctual measure saturation --unsafe-no-throttle` switches off.
    Throttling,
    /// Files of the boot loader.
    Boot,
}

impl JournalName {
    /// Journals of settings of the running machine, in the order in which they are put back.
    pub(crate) const RUNNING: [Self; 4] =
        [Self::Throttling, Self::Experiment, Self::Isolation, Self::Settings];

    /// The name of its file.
    const fn file(self) -> &'static str {
        match self {
            Self::Settings => "tune.journal",
            Self::Experiment => "experiment.journal",
            Self::Isolation => "isolate.journal",
            Self::Throttling => "throttling.journal",
            Self::Boot => "boot.journal",
        }
    }

    /// Returns true where a command puts its settings back at its own end: what is left of one goes
    /// first.
    const fn is_passing(self) -> bool {
        matches!(self, Self::Throttling | Self::Experiment | Self::Isolation)
    }

    /// Refuses a journal that names what this version does not change, or that is about something
    /// else: putting that back would be somebody else's will.
    fn refuse_foreign(self, bytes: &[u8]) -> io::Result<()> {
        // One that cannot be parsed is refused by who asks for it.
        let Ok(journal) = TuningJournal::parse(bytes) else { return Ok(()) };
        let at_boot = self == Self::Boot;
        let owner = SettingsOwner::parse(&journal.boot);
        let is_boot_loaders = matches!(owner, SettingsOwner::BootLoader(_));
        if !bytes.is_empty() && !journal.boot.is_empty() && at_boot != is_boot_loaders {
            return Err(io::Error::other(format!("it is about {}", journal.boot)));
        }
        let root = Root::live();
        // It is not put back, and that boot may have had other control groups.
        if let SettingsOwner::Boot(boot) = &owner
            && identity::boot(&root).value().is_some_and(|now| boot != now)
        {
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

/// Whose settings a journal has, which it names where settings of a boot name that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingsOwner {
    /// One boot of a machine, by its identifier: its settings go with it.
    Boot(String),
    /// A directory that stands for a machine: its files stay.
    Tree(String),
    /// The boot loader of this machine, or of such a directory: its files stay.
    BootLoader(Option<String>),
    /// Something that this version does not know.
    Unknown(String),
}

impl SettingsOwner {
    /// The owner of the settings of a machine, or of a directory that stands for one.
    ///
    /// # Errors
    /// Where it cannot be known which boot this is: settings of this one would be taken for those
    /// of an earlier one, which went with it.
    pub(crate) fn of(root: &Root) -> Result<Self> {
        if let Some(tree) = root.tree() {
            let tree = tree.canonicalize().with_context(|| tree.display().to_string())?;
            return Ok(Self::Tree(tree.display().to_string()));
        }
        match identity::boot(root) {
            Fact::Known { value, .. } => Ok(Self::Boot(value)),
            Fact::Absent { origin } => bail!("{UNKNOWN_BOOT}: there is no {origin}"),
            Fact::Unreadable { origin, why } => bail!("{UNKNOWN_BOOT}: {origin}: {why}"),
        }
    }

    /// The owner that a journal names.
    fn parse(named: &str) -> Self {
        if let Some(rest) = named.strip_prefix(BOOT_LOADER) {
            match rest.strip_prefix(" of ") {
                Some(tree) => return Self::BootLoader(Some(tree.to_owned())),
                None if rest.is_empty() => return Self::BootLoader(None),
                None => {}
            }
        }
        match named.strip_prefix(TREE) {
            Some(tree) => Self::Tree(tree.to_owned()),
            None if named.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') => {
                Self::Boot(named.to_owned())
            }
            None => Self::Unknown(named.to_owned()),
        }
    }

    /// The owner of the boot loader's files, on the machine whose settings these are.
    pub(crate) fn boot_loader(&self) -> Self {
        match self {
            Self::Tree(tree) => Self::BootLoader(Some(tree.clone())),
            Self::BootLoader(tree) => Self::BootLoader(tree.clone()),
            Self::Boot(_) | Self::Unknown(_) => Self::BootLoader(None),
        }
    }
}

impl fmt::Display for SettingsOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boot(named) | Self::Unknown(named) => f.write_str(named),
            Self::Tree(tree) => write!(f, "{TREE}{tree}"),
            Self::BootLoader(None) => f.write_str(BOOT_LOADER),
            Self::BootLoader(Some(tree)) => write!(f, "{BOOT_LOADER} of {tree}"),
        }
    }
}

/// The words before the directory that stands for a machine.
const TREE: &str = "files of ";
/// The words for the boot loader's files of this machine.
const BOOT_LOADER: &str = "files of the boot loader";
const UNKNOWN_BOOT: &str = "nothing is changed or put back, because it is unknown which boot of \
                            the machine this is, and whether settings went with an earlier one";

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
        let names = JournalName::RUNNING.into_iter().chain([JournalName::Boot]);
        // All of them: whether settings are changed must stay known while this directory has them.
        for kept in names {
            let is_live = Self::is_live(directory, kept, &settings.owner)?;
            if is_live && kept.is_passing() && kept != name {
                bail!(
                    "{}: a command that was killed left settings changed: first {}",
                    directory.join(kept.file()).display(),
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
        let file = dir.checked(name.file(), refuse_forged).map_err(with_way_out)?;
        if !file::try_lock(file.as_raw_fd()).map_err(|why| io::Error::from_raw_os_error(why.0))? {
            bail!(
                "another 'punctual tune' or 'punctual isolate' is changing settings; wait until it \
                 has ended"
            );
        }
        // Its name, where it is new.
        dir.sync();
        let mut journal = Self { file, name };
        let shown = directory.join(name.file());
        let bytes = journal.load().with_context(|| format!("cannot use {}", shown.display()))?;
        // One that is damaged is refused by who reads it.
        let known = TuningJournal::parse(&bytes).unwrap_or_default();
        let owner = SettingsOwner::parse(&known.boot);
        let expected = match name {
            JournalName::Boot => settings.owner.boot_loader(),
            _ => settings.owner.clone(),
        };
        let is_boot = |owner: &SettingsOwner| matches!(owner, SettingsOwner::Boot(_));
        let restarted = is_boot(&owner) && is_boot(&expected);
        if !known.entries.is_empty() && owner != expected && !restarted {
            bail!("{}: it is about {owner}, not about {expected}", shown.display());
        }
        Ok(journal)
    }

    /// Its bytes, read without a lock; `None` where there is none.
    ///
    /// # Errors
    /// Where it cannot be read, or is not to be obeyed.
    pub(crate) fn read(directory: &Path, name: JournalName) -> Result<Option<Vec<u8>>> {
        if !directory.exists() {
            return Ok(None);
        }
        let read = || {
            let dir = Dir::open(directory)?;
            let file = dir.read(name.file()).map_err(|why| match why.kind() {
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
        read().with_context(|| format!("cannot use {}", directory.join(name.file()).display()))
    }

    /// Returns true where it has settings that are changed in this boot, or for the next.
    fn is_live(directory: &Path, name: JournalName, owner: &SettingsOwner) -> Result<bool> {
        let bytes = Self::read(directory, name)?.unwrap_or_default();
        let journal = TuningJournal::parse(&bytes)?;
        let kept_by = SettingsOwner::parse(&journal.boot);
        let is_of_this = kept_by == *owner || kept_by == owner.boot_loader();
        Ok(is_of_this && journal.entries.iter().any(JournalEntry::is_changed))
    }
}

/// The error with the way out where this user may not write there: only root changes settings of
/// this machine, and whoever may write to it those of a directory.
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

/// The tries to take it where its last holder removed it meanwhile.
const TRIES: u32 = 16;
/// The most that is read of it: who holds it, and a path.
const LOCK_BYTES_MAX: u64 = 16 * 1024;

/// The lock under which settings are changed, held.
///
/// One process at a time changes settings of a machine, whichever directory its journals are in,
/// and one directory at a time has settings that are changed.
///
/// A file of root's in /run, which nobody else can open, or of the user's own. It says who holds
/// it, and where the journals are; it goes with the last settings that are changed. Settings are
/// put back in the order of one directory's journals: of two directories, the order would be
/// anybody's guess, and settings would stay changed.
#[derive(Debug)]
pub(crate) struct SettingsLock {
    dir: Dir,
    name: String,
    file: File,
    /// Whose settings.
    owner: SettingsOwner,
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
    pub(crate) fn take(tree: Option<&Path>, owner: &SettingsOwner, command: &str) -> Result<Self> {
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
            (&mut file).take(LOCK_BYTES_MAX).read_to_string(&mut text)?;
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
                let (owner, tree) = (owner.clone(), tree.map(Path::to_owned));
                let mut lock = Self { dir, name, file, owner, tree, holder, claimed };
                lock.write()?;
                return Ok(lock);
            }
        }
        bail!("cannot lock {}: it is removed again and again", dir.path().join(name).display())
    }

    /// Returns true where they are those of a directory that stands for a machine.
    fn is_of_tree(&self) -> bool {
        self.tree.is_some()
    }

    /// The command that puts back what the journals in `state` have.
    fn revert(&self, state: &Path) -> String {
        format::tune("revert", self.tree.as_deref(), state)
    }

    /// Makes `state` the directory whose journals have the settings that are changed.
    fn claim(&mut self, state: &Path) -> Result<()> {
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
        let names = JournalName::RUNNING.into_iter().chain([JournalName::Boot]);
        names.into_iter().try_fold(false, |live, name| {
            Ok(live || JournalFile::is_live(state, name, &self.owner)?)
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
    use super::super::Scratch;
    use super::*;

    fn boot() -> SettingsOwner {
        SettingsOwner::parse("b007")
    }

    #[test]
    fn owners_are_named_in_journals_and_read_from_them() {
        let boot = boot();
        let tree = SettingsOwner::Tree("/srv/laptop".to_owned());
        for (owner, named) in [
            (boot.clone(), "b007"),
            (tree.clone(), "files of /srv/laptop"),
            (boot.boot_loader(), "files of the boot loader"),
            (tree.boot_loader(), "files of the boot loader of /srv/laptop"),
            (SettingsOwner::Unknown("somebody".to_owned()), "somebody"),
        ] {
            assert_eq!((owner.to_string().as_str(), SettingsOwner::parse(named)), (named, owner));
        }
        assert_eq!(boot, SettingsOwner::Boot("b007".to_owned()));
    }

    #[test]
    fn a_journal_that_is_too_large_is_not_read_in_part() {
        let dir = Scratch::new("journal");
        let settings = SettingsLock::take(Some(&dir.path("")), &boot(), "a test").expect("free");
        let mut journal =
            JournalFile::lock(&settings, &dir.path(""), JournalName::Settings).expect("writable");
        journal.append(b"a\n").expect("writable");
        assert_eq!(journal.load().expect("readable"), b"a\n");
        journal.file.set_len(BYTES_MAX + 1).expect("writable");
        let error = journal.load().expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let error = JournalFile::read(&dir.path(""), JournalName::Settings).expect_err("too large");
        assert!(format!("{error:#}").ends_with("it has more than 16 MiB"), "{error:#}");
    }

    #[test]
    fn one_holds_it_and_says_who_it_is() {
        let (dir, state) = (Scratch::new("settings-lock"), Scratch::new("settings-lock-state"));
        let tree = dir.path("");
        let take = |command| SettingsLock::take(Some(&tree), &boot(), command);
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
