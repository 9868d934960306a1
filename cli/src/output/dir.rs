//! An open directory, for files whose names the program chooses.
//!
//! Results, campaign states, pages, plots, baselines. They are reached through the open directory,
//! so renaming it does not divert them, and a link in the place of such a name is replaced or
//! refused, never followed. Files that the user names are in `opened`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use punctual_host::root::TreeDir;
use punctual_os::process;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::fs::{fchmod, fstat, fsync, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::trust::Trust;
use super::walk::{self, DIRECTORY, Reached};

/// Permissions of a file that is its owner's alone.
const OWNERS: Mode = Mode::from_raw_mode(0o600);

/// Permissions of a directory that is made, before the umask: who may write into it decides what
/// every name in it leads to.
pub(super) const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);

/// Permissions of a file that replaces none, before the umask.
pub(super) const FILE_MODE: Mode = Mode::from_raw_mode(0o664);

/// How often a file is opened again that was removed meanwhile.
const TRIES: u32 = 16;

/// An open directory.
#[derive(Clone, Debug)]
pub(crate) struct Dir {
    at: Arc<OwnedFd>,
    path: PathBuf,
    /// Whether `--trust-directory` names it, or one that it is below.
    below_named: bool,
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.at.as_fd()
    }
}

impl Dir {
    /// The directory at `path`, to choose names in.
    ///
    /// # Errors
    /// In one line, what is missing, or that another user can change it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let opened = walk::directory(path, false, Trust::of_process());
        Ok(Self::reached(opened.with_context(|| format!("cannot open {}", path.display()))?, path))
    }

    /// As `open`; what is missing of it is made.
    pub(crate) fn make(path: &Path) -> Result<Self> {
        let made = walk::directory(path, true, Trust::of_process());
        Ok(Self::reached(made.with_context(|| format!("cannot make {}", path.display()))?, path))
    }

    fn reached(reached: Reached, path: &Path) -> Self {
        let Reached { at, below_named } = reached;
        Self { at: Arc::new(at), path: path.to_owned(), below_named }
    }

    /// The directory of a file that the user named, whoever owns it.
    pub(super) fn of_named(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let at = openat(CWD, path, DIRECTORY, Mode::empty())?;
        Ok(Self { at: Arc::new(at), path: path.to_owned(), below_named: false })
    }

    /// The directory `path` beneath this one, which no link leaves; a leading `/` is this one.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub(super) fn beneath(&self, path: &Path) -> io::Result<Self> {
        let tree = TreeDir::from(self.at.try_clone()?);
        let path = path.strip_prefix("/").unwrap_or(path);
        let (at, path) = (Arc::new(tree.directory(path)?), self.path.join(path));
        Ok(Self { at, path, below_named: self.below_named })
    }

    /// Refuses a directory that another user can change.
    ///
    /// # Errors
    /// In one line, with the way out.
    pub(super) fn refuse_distrusted(&self) -> io::Result<()> {
        let why = Trust::of_process().distrusted(&fstat(self)?, &self.path);
        self.refuse(why)
    }

    /// As `refuse_distrusted`, and where its group can write to it: for journals, which are obeyed.
    pub(super) fn refuse_shared(&self) -> io::Result<()> {
        self.refuse_distrusted()?;
        self.refuse(Trust::of_process().distrusted_group(&fstat(self)?, &self.path))
    }

    fn refuse(&self, why: Option<String>) -> io::Result<()> {
        let Some(why) = why.filter(|_| !self.below_named) else { return Ok(()) };
        let path = self.path.display();
        Err(io::Error::other(format!(
            "{why}: as root, punctual writes there only with --trust-directory {path}"
        )))
    }

    /// Its name, as it was given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory in it, which must be new.
    pub(crate) fn make_new(&self, name: &str) -> io::Result<Self> {
        mkdirat(self, name, DIRECTORY_MODE)?;
        self.below(name)
    }

    /// The directory `name` in it, made if need be.
    fn make_below(&self, name: &OsStr) -> io::Result<Self> {
        if name == ".." {
            return Err(io::Error::from(Errno::INVAL));
        }
        match mkdirat(self, name, DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => self.below(name),
            Err(why) => Err(why.into()),
        }
    }

    fn below(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        let at = openat(self, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        let below_named = self.below_named;
        Ok(Self { at: Arc::new(at), path: self.path.join(name), below_named })
    }

    /// Writes `bytes` as the new file `path` below it, in directories that are made if need be: for
    /// a tree in which nothing was before.
    pub(crate) fn create(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dirs = dirs.split('/').filter(|dir| !dir.is_empty());
        let dir = dirs.map(OsStr::new).try_fold(self.clone(), |dir, name| dir.make_below(name))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(&dir, name, flags | OFlags::CLOEXEC, FILE_MODE)?;
        File::from(file).write_all(bytes)
    }

    /// The regular file `name`, for reading, writing and locking; made empty where it is not there.
    ///
    /// Only its owner can open it, so that nobody else can lock it.
    ///
    /// # Errors
    /// Where it is a link, or has another name elsewhere.
    pub(crate) fn private(&self, name: &str) -> Result<File> {
        self.checked(name, |_| Ok(()))
    }

    /// As `private`; `check` looks at it before its permissions are narrowed.
    pub(super) fn checked(
        &self,
        name: &str,
        check: impl FnOnce(&Stat) -> Result<()>,
    ) -> Result<File> {
        let shown = self.path.join(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let open = || {
            let file = match openat(self, name, flags | OFlags::CLOEXEC, OWNERS) {
                Err(Errno::LOOP) => {
                    bail!("cannot write {}: it is a symbolic link", shown.display())
                }
                other => other.map_err(io::Error::from),
            };
            let file = file.with_context(|| format!("cannot write {}", shown.display()))?;
            let stat = fstat(&file).map_err(io::Error::from)?;
            Ok((file, stat))
        };
        let (mut file, mut stat) = open()?;
        for _ in 0..TRIES {
            if stat.st_nlink != 0 {
                break;
            }
            // Its last user removed it after it was opened.
            (file, stat) = open()?;
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink != 1 {
            bail!("cannot write {}: not a regular file with one link", shown.display());
        }
        check(&stat).with_context(|| format!("cannot use {}", shown.display()))?;
        if stat.st_mode & 0o777 != OWNERS.as_raw_mode() && stat.st_uid == process::euid() {
            // One of an earlier version, or of a strange umask. Some file systems have no
            // permissions of their own.
            let _as_it_is = fchmod(&file, OWNERS);
        }
        Ok(file.into())
    }

    /// The regular file `name`, to read; `None` where it is not there.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(self, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(io::Error::other("it is a symbolic link")),
            file => File::from(file?),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        Ok(Some(file))
    }

    /// Whether there is anything of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        statat(self, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes the file `name`.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(self, name, AtFlags::empty())?)
    }

    /// Removes it where nothing is in it.
    pub(crate) fn remove_empty(self) -> io::Result<()> {
        let around = openat(&self, "..", DIRECTORY, Mode::empty())?;
        let name = self.path.file_name().unwrap_or_default();
        Ok(unlinkat(around, name, AtFlags::REMOVEDIR)?)
    }

    /// Everything in it.
    pub(super) fn entries(&self) -> io::Result<rustix::fs::Dir> {
        Ok(rustix::fs::Dir::new(self.readable()?)?)
    }

    /// Writes its names to the disk. Not every file system can; what is in the files is there in
    /// any case.
    pub(super) fn sync(&self) {
        let _some_cannot = self.readable().map(fsync);
    }

    fn readable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(self, ".", flags, Mode::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::super::testing::Scratch;

    #[test]
    fn planted_links_are_replaced_or_refused_and_never_followed() {
        let (dir, elsewhere) = (Scratch::new("planted"), Scratch::new("planted-victim"));
        let victim = elsewhere.path("victim");
        fs::write(&victim, "precious").expect("writable");
        for name in ["replaced", "lock", "read", "new"] {
            symlink(&victim, dir.path(name)).expect("free");
        }
        symlink(elsewhere.path(""), dir.path("below")).expect("free");
        let there = dir.dir();
        there.replace("replaced", "ours").expect("writable");
        assert_eq!(fs::read_to_string(dir.path("replaced")).expect("there"), "ours");
        fs::write(dir.path("older"), "").expect("writable");
        there.private("older").expect("ours");
        let older = fs::metadata(dir.path("older")).expect("there");
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&older) & 0o777, 0o600);
        assert!(there.private("lock").is_err_and(|why| why.to_string().contains("symbolic link")));
        assert!(there.read("read").is_err());
        assert!(there.create("new", b"x").is_err() && there.create("below/x", b"x").is_err());
        assert!(there.create("../x", b"x").is_err() && there.create("a/../../x", b"x").is_err());
        fs::hard_link(&victim, dir.path("hard")).expect("one file system");
        assert!(there.private("hard").is_err_and(|why| why.to_string().contains("one link")));
        there.replace("hard", "ours").expect("writable");
        assert_eq!(fs::read_to_string(&victim).expect("there"), "precious");
        assert_eq!(elsewhere.names(), ["victim"]);
    }

    #[test]
    fn a_directory_that_is_renamed_is_still_the_one_that_was_opened() {
        let (dir, elsewhere) = (Scratch::new("renamed"), Scratch::new("renamed-victim"));
        let results = dir.dir().make_new("results").expect("free");
        fs::rename(dir.path("results"), dir.path("away")).expect("ours");
        symlink(elsewhere.path(""), dir.path("results")).expect("free");
        results.replace("result.json", "{}").expect("writable");
        results.create("a/b/c", b"x").expect("writable");
        assert!(dir.path("away/result.json").exists() && dir.path("away/a/b/c").exists());
        assert!(elsewhere.names().is_empty());
        assert!(dir.dir().make_new("results").is_err(), "it must be new");
    }

    #[test]
    fn a_file_that_is_removed_as_it_is_opened_is_made_again() {
        let dir = Scratch::new("removed");
        let (there, done) = (dir.dir(), AtomicBool::new(false));
        let failed = thread::scope(|scope| {
            let remover = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _raced = fs::remove_file(dir.path("lock"));
                }
            });
            let failed = (0..20_000).find_map(|_| there.private("lock").err());
            // Before anything can fail: the scope waits for the other thread.
            done.store(true, Ordering::Relaxed);
            remover.join().expect("no panic");
            failed
        });
        assert!(failed.is_none(), "{failed:?}");
    }

    #[test]
    fn only_an_empty_one_can_be_removed() {
        let dir = Scratch::new("empty");
        let made = dir.dir().make_new("made").expect("free");
        made.create("lock", b"").expect("writable");
        assert!(made.clone().remove_empty().is_err());
        made.remove("lock").expect("there");
        made.remove_empty().expect("empty");
        assert!(dir.names().is_empty());
    }
}
