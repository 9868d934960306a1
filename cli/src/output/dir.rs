//! An open directory, for files whose names the program chooses.
//!
//! Results, campaign states, pages, plots, baselines. They are reached through the open directory,
//! so renaming it does not divert them, and a link in the place of such a name is replaced or
//! refused, never followed. Files that the user names are in `opened`.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use punctual_engine::named;
use punctual_host::root::TreeDir;
use punctual_os::{process, user};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid, chownat, fchmod, fchown, fstat, fsync,
    mkdirat, openat, readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::stored::LATEST;

/// Permissions of a file that replaces none, before the umask.
pub(super) const FILE_MODE: Mode = Mode::from_raw_mode(0o664);

/// Permissions of a file that is its owner's alone.
const OWNERS: Mode = Mode::from_raw_mode(0o600);

/// Permissions of a directory that is made, before the umask: who may write into it decides what
/// every name in it leads to.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);

/// The tries to open a file that was removed meanwhile; whoever removes it as often keeps it away.
const TRIES: u32 = 1_024;

/// An open directory.
#[derive(Clone, Debug)]
pub(crate) struct Dir {
    at: Arc<OwnedFd>,
    path: PathBuf,
    /// True where `--trust-directory` names it, or one that it is below.
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
        let opened = walk(path, false, Trust::of_process());
        Ok(Self::reached(opened.with_context(|| format!("cannot open {}", path.display()))?, path))
    }

    /// As `open`; what is missing of it is made.
    pub(crate) fn make(path: &Path) -> Result<Self> {
        let made = walk(path, true, Trust::of_process());
        Ok(Self::reached(made.with_context(|| format!("cannot make {}", path.display()))?, path))
    }

    fn reached(reached: Reached, path: &Path) -> Self {
        let Reached { at, below_named } = reached;
        Self { at: Arc::new(at), path: path.to_owned(), below_named }
    }

    /// The directory of a file that the user named, whoever owns it.
    pub(crate) fn of_named(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let at = openat(CWD, path, DIRECTORY, Mode::empty())?;
        Ok(Self { at: Arc::new(at), path: path.to_owned(), below_named: false })
    }

    /// The directory `path` beneath this one, which no link leaves; a leading `/` is this one.
    ///
    /// # Errors
    /// Any that the kernel gives.
    pub(crate) fn beneath(&self, path: &Path) -> io::Result<Self> {
        let tree = TreeDir::from(self.at.try_clone()?);
        let path = path.strip_prefix("/").unwrap_or(path);
        let (at, path) = (Arc::new(tree.directory(path)?), self.path.join(path));
        Ok(Self { at, path, below_named: self.below_named })
    }

    /// Refuses a directory that another user can change.
    ///
    /// # Errors
    /// In one line, with the way out.
    pub(crate) fn refuse_distrusted(&self) -> io::Result<()> {
        let why = Trust::of_process().distrusted(&fstat(self)?, &self.path);
        self.refuse(why)
    }

    /// Refuses what `refuse_distrusted` does, and a directory that its group can write to: for
    /// journals, which are obeyed.
    pub(crate) fn refuse_shared(&self) -> io::Result<()> {
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
        make(&self.at, name.as_ref(), Trust::of_process())?;
        self.below(name)
    }

    /// Makes [`LATEST`] beside it lead to it: for people and scripts. A file system without links
    /// goes without, and so does a directory where something else has that name.
    pub(crate) fn be_latest(&self) {
        let Some(name) = self.path.file_name() else { return };
        let _no_links = openat(self, "..", DIRECTORY, Mode::empty()).map(|around| {
            let (at, path) = (Arc::new(around), PathBuf::new());
            Self { at, path, below_named: self.below_named }.point(LATEST, name)
        });
    }

    /// Makes the name `name` a link to `target`, whatever link it was before; anything else of that
    /// name stays, and is no error.
    fn point(&self, name: &str, target: &OsStr) -> io::Result<()> {
        let is_link = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        match statat(self, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if !is_link(&stat) => return Ok(()),
            Ok(_) | Err(Errno::NOENT) => {}
            Err(why) => return Err(why.into()),
        }
        let temporary = named::temporary(u64::from(std::process::id()));
        // One that a kill left behind.
        let _none = unlinkat(self, &temporary, AtFlags::empty());
        symlinkat(target, self, &temporary)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        if let Some((uid, gid)) = Trust::of_process().heir(&fstat(self)?) {
            chownat(self, &temporary, Some(uid), Some(gid), flags)?;
        }
        renameat(self, &temporary, self, name).inspect_err(|_| {
            let _left = unlinkat(self, &temporary, AtFlags::empty());
        })?;
        Ok(())
    }

    /// Gives a file that was just made in it to its owner, where this is root for them.
    pub(super) fn give(&self, file: &File) -> io::Result<()> {
        if let Some((uid, gid)) = Trust::of_process().heir(&fstat(self)?) {
            fchown(file, Some(uid), Some(gid))?;
        }
        Ok(())
    }

    /// The directory `name` in it, made if need be.
    fn make_below(&self, name: &OsStr) -> io::Result<Self> {
        if name == ".." {
            return Err(io::Error::from(Errno::INVAL));
        }
        made(&self.at, name, Trust::of_process())?;
        self.below(name)
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

    /// Opens a file as `private` does; `check` looks at it before its permissions are narrowed.
    pub(crate) fn checked(
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
        if stat.st_nlink == 0 {
            bail!(
                "cannot write {}: it was removed each time that it was opened, {TRIES} times; end \
                 what removes it",
                shown.display()
            );
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

    /// Returns true where there is anything of this name, a link too.
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
    pub(crate) fn entries(&self) -> io::Result<rustix::fs::Dir> {
        Ok(rustix::fs::Dir::new(self.readable()?)?)
    }

    /// Writes its names to the disk. Not every file system can; what is in the files is there in
    /// any case.
    pub(crate) fn sync(&self) {
        let _some_cannot = self.readable().map(fsync);
    }

    fn readable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(self, ".", flags, Mode::empty())?)
    }

    /// The first name in the directory, other than temporary files and `other_than`; `None` where
    /// there is no other.
    pub(crate) fn first_name(&self, other_than: &[&str]) -> io::Result<Option<String>> {
        for entry in self.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            let shown = name.to_string_lossy().into_owned();
            let known =
                ["..", "."].contains(&shown.as_str()) || named::is_temporary(name.to_bytes());
            if !known && !other_than.contains(&shown.as_str()) {
                return Ok(Some(shown));
            }
        }
        Ok(None)
    }
}

/// The flags of an open directory: to find names in it, which needs no right to list it.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Links on the way, as many as the kernel follows (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// Where the walk is.
struct Walk<'t> {
    /// Where it goes. Callers name that in their errors, so errors here name other parts only.
    to: &'t Path,
    trust: &'t Trust,
    at: OwnedFd,
    shown: PathBuf,
    /// True where this is a directory that `--trust-directory` names, or one below it.
    below_named: bool,
    /// The reason why the way to here is not trusted. A directory that is named clears it.
    distrusted: Option<String>,
}

/// A directory that was reached.
struct Reached {
    at: OwnedFd,
    /// True where `--trust-directory` names it, or one that it is below.
    below_named: bool,
}

/// Opens the directory at `path`; with `make`, creates what is missing of it.
fn walk(path: &Path, make: bool, trust: &Trust) -> Result<Reached> {
    let mut parts = parts(path);
    let mut walk = Walk::start(path, path, trust)?;
    let mut links = 0;
    while let Some(part) = parts.pop_front() {
        let shown = walk.shown.join(&part);
        let found = match statat(&walk.at, &part, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) if make && part != ".." => {
                walk.refuse_distrusted()?;
                made(&walk.at, &part, trust)
                    .and_then(|()| statat(&walk.at, &part, AtFlags::SYMLINK_NOFOLLOW))
            }
            found => found,
        };
        let found = walk.named(found, &shown)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
            walk.enter(&part, shown)?;
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return walk.named(Err(Errno::LOOP), &shown);
        }
        let target = walk.link(&part, &found, &shown)?;
        if target.is_absolute() {
            let distrusted = walk.distrusted.take();
            walk = Walk::start(&target, path, trust)?;
            if !walk.below_named {
                walk.distrusted = distrusted.or(walk.distrusted);
            }
        }
        let rest = std::mem::take(&mut parts);
        parts = self::parts(&target).into_iter().chain(rest).collect();
    }
    walk.refuse_distrusted()?;
    Ok(Reached { at: walk.at, below_named: walk.below_named })
}

/// The parts of `path` after its root or the current directory.
fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(part).collect()
}

/// Makes a directory, which must be new, for the owner of the one around it where this is root for
/// them.
fn make(at: &OwnedFd, name: &OsStr, trust: &Trust) -> Result<(), Errno> {
    mkdirat(at, name, DIRECTORY_MODE)?;
    let new = openat(at, name, DIRECTORY.union(OFlags::NOFOLLOW), Mode::empty())?;
    trust.give(&new, &fstat(at)?);
    Ok(())
}

/// [`make`], where one that another process made meanwhile is as good.
fn made(at: &OwnedFd, name: &OsStr, trust: &Trust) -> Result<(), Errno> {
    match make(at, name, trust) {
        Err(Errno::EXIST) => Ok(()),
        result => result,
    }
}

impl<'t> Walk<'t> {
    /// At the root, or in the current directory, as `path` begins.
    fn start(path: &Path, to: &'t Path, trust: &'t Trust) -> Result<Self> {
        let (from, shown) = if path.is_absolute() { ("/", "/") } else { (".", "") };
        let at = openat(CWD, from, DIRECTORY, Mode::empty()).map_err(io::Error::from);
        let at = at.with_context(|| from.to_owned())?;
        let mut walk =
            Self { to, trust, at, shown: shown.into(), below_named: false, distrusted: None };
        walk.look()?;
        Ok(walk)
    }

    /// The result of a call, its error with the name of the part.
    fn named<T>(&self, result: Result<T, Errno>, shown: &Path) -> Result<T> {
        let result = result.map_err(io::Error::from);
        if shown == self.to {
            return Ok(result?);
        }
        result.with_context(|| shown.display().to_string())
    }

    /// Goes on in the directory `part`.
    fn enter(&mut self, part: &OsStr, shown: PathBuf) -> Result<()> {
        let flags = DIRECTORY.union(OFlags::NOFOLLOW);
        self.at = self.named(openat(&self.at, part, flags, Mode::empty()), &shown)?;
        self.shown = shown;
        // Up there may be outside of what was named.
        self.below_named &= part != "..";
        self.look()
    }

    /// Checks the directory that it is in now.
    fn look(&mut self) -> Result<()> {
        let shown = if self.shown.as_os_str().is_empty() { Path::new(".") } else { &self.shown };
        let stat = self.named(fstat(&self.at), shown)?;
        self.below_named |= self.trust.is_named(&stat);
        if self.below_named {
            self.distrusted = None;
        } else if self.distrusted.is_none() {
            self.distrusted = self.trust.distrusted(&stat, shown);
        }
        Ok(())
    }

    /// Refuses to write into the directory that it is in now, unless it is trusted.
    fn refuse_distrusted(&self) -> Result<()> {
        let Some(why) = &self.distrusted else { return Ok(()) };
        let shown = if self.shown.as_os_str().is_empty() { Path::new(".") } else { &self.shown };
        bail!(
            "{why}: as root, punctual writes there only with --trust-directory {}",
            shown.display()
        )
    }

    /// Where the link `part` leads.
    fn link(&mut self, part: &OsStr, stat: &Stat, shown: &Path) -> Result<PathBuf> {
        let around = self.named(fstat(&self.at), shown)?;
        let link = format!("the symbolic link {}", shown.display());
        if let Some(why) = named::planted(&link, stat.st_uid, (around.st_mode, around.st_uid)) {
            bail!(why);
        }
        if !self.below_named && self.distrusted.is_none() {
            self.distrusted = self.trust.distrusted_link(stat, shown);
        }
        let target = self.named(readlinkat(&self.at, part, Vec::new()), shown)?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }
}

/// Set once by `main`; unit tests use the default, as without the option.
static TRUST: OnceLock<Trust> = OnceLock::new();

/// Device and inode of a directory.
type Identity = (u64, u64);

/// The directories that the program writes into as root.
///
/// Whoever can change a directory decides what a name in it leads to. As root the program therefore
/// chooses names only in directories that belong to root or to the user who became root, and in
/// those that `--trust-directory` names. Looks at the process and at directories; opens and writes
/// none.
#[derive(Debug)]
pub(crate) struct Trust {
    /// Users whose directories are trusted. `None`: all, because without root the kernel protects
    /// other users' files.
    owners: Option<Vec<u32>>,
    /// Directories that the user named.
    named: Vec<Identity>,
}

impl Trust {
    /// Takes the directories of `--trust-directory`.
    ///
    /// # Errors
    /// Names the one that is no directory.
    pub(crate) fn set(named: &[PathBuf]) -> Result<()> {
        let trust = Self { owners: owners(), named: Vec::new() };
        let named = named.iter().map(|dir| identity(dir)).collect::<Result<_>>()?;
        let _only_once = TRUST.set(Self { named, ..trust });
        Ok(())
    }

    /// The trust of this process, as [`Trust::set`] set it.
    fn of_process() -> &'static Self {
        TRUST.get_or_init(|| Self { owners: owners(), named: Vec::new() })
    }

    /// The owner of what is made in a directory: its own owner, where that is who became root. A
    /// file that `sudo` left behind as root's would be in its user's way.
    fn heir(&self, around: &Stat) -> Option<(Uid, Gid)> {
        let owners = self.owners.as_ref()?;
        let is_callers = around.st_uid != 0 && owners.contains(&around.st_uid);
        is_callers.then(|| (Uid::from_raw(around.st_uid), Gid::from_raw(around.st_gid)))
    }

    /// Gives a directory that was just made to the owner of the one around it. One that holds
    /// anything is not the one that was made.
    fn give(&self, made: &OwnedFd, around: &Stat) {
        let Some((uid, gid)) = self.heir(around) else { return };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(readable) = openat(made, ".", flags, Mode::empty()) else { return };
        let is_dots = |name: &[u8]| [&b"."[..], b".."].contains(&name);
        let is_empty = rustix::fs::Dir::read_from(&readable).is_ok_and(|mut entries| {
            entries.all(|entry| entry.is_ok_and(|entry| is_dots(entry.file_name().to_bytes())))
        });
        if is_empty && fstat(&readable).is_ok_and(|stat| stat.st_uid == 0) {
            // Else it stays root's, as everything was that an earlier version made.
            let _roots = fchown(&readable, Some(uid), Some(gid));
        }
    }

    /// Returns true where this directory was named, so that all below it is trusted.
    fn is_named(&self, dir: &Stat) -> bool {
        self.named.contains(&(dir.st_dev, dir.st_ino))
    }

    /// The reason why a directory is not trusted: another user can change it.
    fn distrusted(&self, dir: &Stat, shown: &Path) -> Option<String> {
        let owner = self.foreign_owner(dir, &format!("the directory {}", shown.display()));
        let mode = dir.st_mode & 0o7777;
        // In a sticky directory such as /tmp each user can change only its own entries.
        let open = self.owners.is_some() && mode & 0o1002 == 0o0002;
        owner.or_else(|| {
            let open = open.then(|| shown.display());
            open.map(|dir| format!("every user can write to the directory {dir} (mode {mode:04o})"))
        })
    }

    /// The reason why the journals in a directory are not trusted: users of its group can put
    /// others in their place.
    fn distrusted_group(&self, dir: &Stat, shown: &Path) -> Option<String> {
        let mode = dir.st_mode & 0o7777;
        (self.owners.is_some() && mode & 0o1020 == 0o0020).then(|| {
            format!(
                "the group {} can write to the directory {} (mode {mode:04o}): chmod g-w {}",
                dir.st_gid,
                shown.display(),
                shown.display()
            )
        })
    }

    /// The reason why a link is not trusted: another user can point it elsewhere.
    fn distrusted_link(&self, link: &Stat, shown: &Path) -> Option<String> {
        self.foreign_owner(link, &format!("the symbolic link {}", shown.display()))
    }

    fn foreign_owner(&self, stat: &Stat, named: &str) -> Option<String> {
        let owners = self.owners.as_ref()?;
        let uid = stat.st_uid;
        (!owners.contains(&uid)).then(|| format!("{named} belongs to another user (uid {uid})"))
    }
}

/// Root and the user who became root; `None` where this process is not root of the machine.
fn owners() -> Option<Vec<u32>> {
    if process::euid() != 0 || !is_machines_root() {
        return None;
    }
    // sudo and pkexec pass on who called them; the kernel keeps who logged in, for su and doas too.
    let callers =
        ["SUDO_UID", "PKEXEC_UID"].into_iter().filter_map(|name| std::env::var(name).ok());
    let login = fs::read_to_string("/proc/self/loginuid").ok();
    let users = callers.chain(login).filter_map(|text| text.trim().parse().ok());
    // (uid_t) -1: not from a login.
    Some(users.filter(|&uid| uid != u32::MAX).chain([0]).collect())
}

/// Returns true where root here is root of the machine. Root of a user namespace can write no more
/// than the user who made it.
fn is_machines_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map");
    map.map_or(true, |map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

fn identity(dir: &Path) -> Result<Identity> {
    let option = || format!("--trust-directory {}", dir.display());
    let meta = fs::metadata(dir).with_context(option)?;
    if !meta.is_dir() {
        bail!("{}: not a directory", option());
    }
    Ok((meta.dev(), meta.ino()))
}

#[cfg(test)]
impl Trust {
    /// The trust of whoever is not root.
    fn all() -> Self {
        Self { owners: None, named: Vec::new() }
    }

    /// The trust of root, behind which these users are.
    fn of_owners(owners: &[u32], named: &[&Path]) -> Self {
        let named = named.iter().map(|dir| identity(dir).expect("a directory")).collect();
        Self { owners: Some(owners.to_vec()), named }
    }
}

/// The directory of what lasts from one run to the next: what XDG_STATE_HOME names, else
/// `machines`, else the user's; under sudo that of who asked, so that both find it. A relative path
/// counts as none (XDG Base Directory Specification).
pub(crate) fn state_dir(machines: Option<PathBuf>) -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || home_of_caller().or_else(|| absolute("HOME"));
    let users = || home().map(|home| home.join(".local/state"));
    absolute("XDG_STATE_HOME").or(machines).or_else(users)
}

/// The home of the user who called `sudo`; `None` without sudo, and where it has none.
fn home_of_caller() -> Option<PathBuf> {
    let uid: u32 = std::env::var("SUDO_UID").ok()?.parse().ok()?;
    if uid == 0 || process::euid() != 0 {
        return None;
    }
    let mut bytes = vec![0; 4_096];
    let length = user::home(uid, &mut bytes).ok()??;
    bytes.truncate(length);
    Some(PathBuf::from(OsString::from_vec(bytes))).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::super::opened::Opened;
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{fs, thread};

    use punctual_testkit::skip;

    use super::super::Scratch;

    #[test]
    fn planted_links_are_replaced_or_refused_and_never_followed() {
        let (dir, elsewhere) = (Scratch::new("planted"), Scratch::new("planted-victim"));
        let victim = elsewhere.path("victim");
        fs::write(&victim, "precious").expect("writable");
        for name in ["replaced", "lock", "read", "new"] {
            symlink(&victim, dir.path(name)).expect("free");
        }
        symlink(elsewhere.path(""), dir.path("below")).expect("free");
        let opened = dir.dir();
        Opened::replace(&opened, "replaced", "ours").expect("writable");
        assert_eq!(fs::read_to_string(dir.path("replaced")).expect("there"), "ours");
        fs::write(dir.path("older"), "").expect("writable");
        opened.private("older").expect("ours");
        let older = fs::metadata(dir.path("older")).expect("there");
        assert_eq!(MetadataExt::mode(&older) & 0o777, 0o600);
        assert!(opened.private("lock").is_err_and(|why| why.to_string().contains("symbolic link")));
        assert!(opened.read("read").is_err());
        assert!(opened.create("new", b"x").is_err() && opened.create("below/x", b"x").is_err());
        assert!(opened.create("../x", b"x").is_err() && opened.create("a/../../x", b"x").is_err());
        fs::hard_link(&victim, dir.path("hard")).expect("one file system");
        assert!(opened.private("hard").is_err_and(|why| why.to_string().contains("one link")));
        Opened::replace(&opened, "hard", "ours").expect("writable");
        assert_eq!(fs::read_to_string(&victim).expect("there"), "precious");
        assert_eq!(elsewhere.names(), ["victim"]);
    }

    #[test]
    fn a_directory_that_is_renamed_is_still_the_one_that_was_opened() {
        let (dir, elsewhere) = (Scratch::new("renamed"), Scratch::new("renamed-victim"));
        let results = dir.dir().make_new("results").expect("free");
        fs::rename(dir.path("results"), dir.path("away")).expect("ours");
        symlink(elsewhere.path(""), dir.path("results")).expect("free");
        Opened::replace(&results, "result.json", "{}").expect("writable");
        results.create("a/b/c", b"x").expect("writable");
        assert!(dir.path("away/result.json").exists() && dir.path("away/a/b/c").exists());
        assert!(elsewhere.names().is_empty());
        assert!(dir.dir().make_new("results").is_err(), "it must be new");
    }

    #[test]
    fn a_file_that_is_removed_as_it_is_opened_is_made_again() {
        let dir = Scratch::new("removed");
        let (opened, done) = (dir.dir(), AtomicBool::new(false));
        let failed = thread::scope(|scope| {
            let remover = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _raced = fs::remove_file(dir.path("lock"));
                }
            });
            let failed = (0..20_000).find_map(|_| opened.private("lock").err());
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

    /// The reason why the way to `path` is refused; empty where it is not.
    fn why(path: &Path, trust: &Trust) -> String {
        walk(path, false, trust).err().map(|why| format!("{why:#}")).unwrap_or_default()
    }

    #[test]
    fn it_leads_where_the_kernel_leads_and_makes_what_is_missing() {
        let dir = Scratch::new("walk");
        let trust_all = Trust::all();
        walk(&dir.path("a/b/c"), true, &trust_all).expect("made");
        symlink("b/c", dir.path("a/relative")).expect("free");
        symlink(dir.path("a"), dir.path("absolute")).expect("free");
        for way in ["a/b/c", "a/./b//c", "a/relative", "absolute/relative", "absolute/../a/b/c/"] {
            let at = walk(&dir.path(way), false, &trust_all).expect("there").at;
            let (opened, named) =
                (fstat(at).expect("open"), fs::metadata(dir.path(way)).expect("there"));
            assert_eq!((opened.st_dev, opened.st_ino), (named.dev(), named.ino()), "{way}");
        }
        fs::write(dir.path("file"), "x").expect("writable");
        symlink("loop", dir.path("loop")).expect("free");
        for (way, words) in [("no/such", "No such"), ("file/x", "Not a dir"), ("loop", "symbolic")]
        {
            let why = why(&dir.path(way), &trust_all);
            assert!(why.contains(words), "{way}: {why}");
        }
        assert!(walk(&dir.path("file/x"), true, &trust_all).is_err());
    }

    /// The owners of the way from the root to here.
    fn owners(path: &Path) -> Vec<u32> {
        path.ancestors().flat_map(|dir| fs::metadata(dir).map(|meta| meta.uid())).collect()
    }

    #[test]
    fn a_strangers_directory_or_link_on_the_way_is_refused_unless_it_is_named() {
        if !skip::need("root", skip::is_root()) {
            return;
        }
        let dir = Scratch::new("stranger");
        for made in ["ours/below", "theirs/below"] {
            fs::create_dir_all(dir.path(made)).expect("writable");
        }
        symlink("ours", dir.path("ours-too")).expect("free");
        symlink("ours", dir.path("turned")).expect("free");
        for theirs in ["theirs", "turned"] {
            lchown(dir.path(theirs), Some(12_345), None).expect("root may");
        }
        let owners = owners(&dir.path(""));
        let strict = Trust::of_owners(&owners, &[]);
        assert_eq!(why(&dir.path("ours-too/below"), &strict), "");
        for way in ["theirs", "theirs/below", "theirs/../ours", "turned", "turned/below"] {
            let why = why(&dir.path(way), &strict);
            assert!(why.contains("another user (uid 12345)"), "{way}: {why}");
            assert!(why.contains("--trust-directory"), "{way}: {why}");
        }
        let named = |path: &str| Trust::of_owners(&owners, &[dir.path(path).as_path()]);
        assert_eq!(why(&dir.path("theirs/below"), &named("theirs")), "");
        let out_again = dir.path("theirs/below/../../turned");
        assert!(why(&out_again, &named("theirs")).contains("another user"));
        assert_eq!(why(&dir.path("turned"), &named("")), "");
        // Who owns the way to it does not matter, nor by which name it is reached.
        assert_eq!(why(&dir.path("theirs/below"), &named("theirs/below")), "");
        assert_eq!(why(&dir.path("turned/below"), &named("ours")), "");
        assert!(why(&dir.path("theirs"), &named("theirs/below")).contains("another user"));
        // Nothing is made before the way to it is trusted.
        assert!(walk(&dir.path("theirs/new/deep"), true, &strict).is_err());
        assert!(!dir.path("theirs/new").exists());
    }

    #[test]
    fn a_link_that_another_user_planted_is_refused_for_every_user() {
        if !skip::need("root", skip::is_root()) {
            return;
        }
        let dir = Scratch::new("walk-planted");
        fs::create_dir_all(dir.path("ours/below")).expect("writable");
        symlink("ours", dir.path("link")).expect("free");
        lchown(dir.path("link"), Some(12_345), None).expect("root may");
        let named = Trust::of_owners(&[0], &[dir.path("").as_path()]);
        for (mode, refused) in [(0o777, false), (0o1755, false), (0o1777, true)] {
            fs::set_permissions(dir.path(""), fs::Permissions::from_mode(mode)).expect("ours");
            for trust in [&Trust::all(), &named] {
                for way in ["link", "link/below"] {
                    let why = why(&dir.path(way), trust);
                    assert_eq!(why.contains("(uid 12345), in a directory like /tmp"), refused);
                    assert!(refused || why.is_empty(), "{way}: {mode:o}: {why}");
                }
            }
        }
    }

    #[test]
    fn one_that_every_user_may_change_is_refused_unless_it_is_sticky() {
        let dir = Scratch::new("open");
        let trust = Trust::of_owners(&owners(&dir.path("")), &[]);
        for (mode, refused) in [(0o777, true), (0o1777, false), (0o755, false), (0o775, false)] {
            fs::set_permissions(dir.path(""), fs::Permissions::from_mode(mode)).expect("ours");
            assert_eq!(why(&dir.path(""), &trust).contains("every user"), refused, "{mode:o}");
        }
    }
}
