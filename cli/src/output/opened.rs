//! An output: checked before the work, written after it.
//!
//! A regular file is replaced in one step, once all of it is on the disk; until then the old file
//! stays and no new one appears. What is not a regular file (a pipe, a device, standard output) is
//! opened at once and written to directly. A link that the user named is followed where the kernel
//! would ([`named`]); a link in the place of a name that the program chose is replaced.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, bail};
use punctual_engine::drain::{BytesWritten, GrowingFile};
use punctual_engine::named;
use punctual_os::{file, process};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, StatxAttributes, StatxFlags, Uid, fchmod, fchown,
    fstat, openat, renameat, statat, statx, unlinkat,
};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use super::dir::{Dir, FILE_MODE};
use super::streams::message;

/// An output.
#[derive(Debug)]
pub(crate) struct Opened {
    to: To,
    path: PathBuf,
    /// The file, while it is written bit by bit.
    begun: OnceLock<Begun>,
}

/// A file that is being written bit by bit.
#[derive(Debug)]
struct Begun {
    file: File,
    length: BytesWritten,
    placed: Arc<AtomicBool>,
}

#[derive(Debug)]
enum To {
    /// A pipe, a device or an open file, which is written to directly.
    Stream(File),
    /// A name in a directory.
    Name(Dir, OsString),
}

/// Renames a file that is being written to its final name.
type Place = Box<dyn FnOnce() -> io::Result<()> + Send>;

impl Opened {
    /// The output that the user named.
    ///
    /// # Errors
    /// In one line, why it cannot be written.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let to = followed(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { to, path: path.to_owned(), begun: OnceLock::new() })
    }

    /// Writes `bytes` as `name` in a directory, so that they are there whole or not at all.
    pub(crate) fn replace(dir: &Dir, name: &str, bytes: impl AsRef<[u8]>) -> Result<PathBuf> {
        Self::chosen(dir, name)?.write(|file| Ok(file.write_all(bytes.as_ref())?))?;
        Ok(dir.path().join(name))
    }

    /// An output whose name the program chose.
    pub(crate) fn chosen(dir: &Dir, name: &str) -> Result<Self> {
        let path = dir.path().join(name);
        let to = replaceable(dir.clone(), name.into());
        let to = to.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { to, path, begun: OnceLock::new() })
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what `body` writes, so that it is there whole or not at all.
    pub(crate) fn write(&self, body: impl FnOnce(&mut &File) -> Result<()>) -> Result<()> {
        let written = match &self.to {
            To::Stream(stream) => body(&mut &*stream),
            To::Name(dir, name) => Pending::create(dir, name).map_err(Into::into).and_then(|new| {
                body(&mut new.file())?;
                Ok(new.place(name)?)
            }),
        };
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Begins a file that is written bit by bit: gives what `head` made of it, and what puts it in
    /// its place once it holds something. If that is dropped uncalled, everything stays as it was.
    pub(crate) fn begin<T>(
        &self,
        head: impl FnOnce(GrowingFile) -> io::Result<T>,
    ) -> Result<(T, Place)> {
        let begun = match &self.to {
            To::Stream(stream) => stream.try_clone().and_then(|file| {
                let in_place = || Ok(());
                Ok((head(GrowingFile::stream(file))?, Box::new(in_place) as Place))
            }),
            To::Name(dir, name) => self.begin_as(dir, name, head),
        };
        begun.with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn begin_as<T>(
        &self,
        dir: &Dir,
        name: &OsStr,
        head: impl FnOnce(GrowingFile) -> io::Result<T>,
    ) -> io::Result<(T, Place)> {
        let new = Pending::create(dir, name)?;
        let length = BytesWritten::default();
        let begun = head(GrowingFile::new(new.file().try_clone()?, length.clone()))?;
        // Synced now: a slow disk must not keep the drain from its samples later.
        new.file().sync_all()?;
        let (name, placed) = (name.to_owned(), Arc::new(AtomicBool::new(false)));
        let kept = Begun { file: new.file().try_clone()?, length, placed: Arc::clone(&placed) };
        let _once = self.begun.set(kept);
        let place = move || {
            new.rename(&name)?;
            placed.store(true, Ordering::Release);
            Ok(())
        };
        Ok((begun, Box::new(place)))
    }

    /// The error while a file was written bit by bit, with what it leaves of the file.
    pub(crate) fn cut_off(&self, why: &io::Error) -> anyhow::Error {
        let in_place = self.begun.get().is_none_or(|begun| begun.placed.load(Ordering::Acquire));
        let left = if in_place {
            "the file ends early, and is readable up to there unless it was changed"
        } else {
            "not written, because writing the first samples failed"
        };
        anyhow!("{}: {why}: {left}", self.path.display())
    }

    /// Ends a file that was written bit by bit: syncs it. Unless the work `failed`, which is
    /// reported elsewhere, a message says that it never took its place.
    ///
    /// # Errors
    /// It was removed, replaced or changed meanwhile, or the disk did not take it.
    pub(crate) fn finish(&self, failed: bool) -> Result<()> {
        let Some(begun) = self.begun.get() else { return Ok(()) };
        let shown = self.path.display();
        if !begun.placed.load(Ordering::Acquire) {
            if !failed {
                message(&format!("{shown}: not written, because nothing was recorded"));
            }
            return Ok(());
        }
        begun.file.sync_all().with_context(|| format!("cannot write {shown}"))?;
        if let To::Name(dir, _) = &self.to {
            dir.sync();
        }
        if begun.file.metadata().is_ok_and(|meta| meta.nlink() == 0) {
            bail!("{shown}: it was removed or replaced while it was written: its samples are lost");
        }
        begun.length.check(&begun.file).with_context(|| format!("{shown}: samples are lost"))
    }
}

/// The output that the user named: a stream as it is, else the name that its links lead to.
fn followed(path: &Path) -> Result<To> {
    if path.as_os_str().as_bytes().ends_with(b"/") || path.is_dir() {
        bail!("it is a directory");
    }
    let Some(place) = named::place(path)? else { return stream(path) };
    let Some(name) = place.file_name() else { bail!("it is a directory") };
    replaceable(Dir::of_named(place.parent().unwrap_or(Path::new("")))?, name.to_owned())
}

/// A stream: no regular file, or one that is open already. Never truncated.
fn stream(path: &Path) -> Result<To> {
    // Duplicated, so that other output follows this one instead of overwriting it.
    let same = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    Ok(To::Stream(match path.to_str() {
        Some("/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1") => same(io::stdout().as_fd())?,
        Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => same(io::stderr().as_fd())?,
        // As one that would create it: only then the kernel judges whose pipe it is.
        _ => OpenOptions::new().append(true).create(true).open(path)?,
    }))
}

/// A name that is free or can be replaced, in a directory where a file can be created.
fn replaceable(dir: Dir, name: OsString) -> Result<To> {
    match statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => {}
        Err(why) => return Err(io::Error::from(why).into()),
        Ok(old) => refuse_irreplaceable(&dir, &name, &old)?,
    }
    // The only sure way to find out; removed at once.
    drop(Pending::create(&dir, &name)?);
    Ok(To::Name(dir, name))
}

/// Refuses what could not be replaced after the work.
fn refuse_irreplaceable(dir: &Dir, name: &OsStr, old: &Stat) -> Result<()> {
    match FileType::from_raw_mode(old.st_mode) {
        FileType::Directory => bail!("it is a directory"),
        // One that may not be written is not replaced either.
        FileType::RegularFile => {
            // As one that would create it: only then the kernel judges whose file it is.
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let mode = Mode::RUSR | Mode::WUSR;
            openat(dir, name, flags | OFlags::CLOEXEC, mode).map_err(io::Error::from)?;
        }
        _ => {}
    }
    let mounted = statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    if mounted.is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)) {
        bail!("it is a mount point and cannot be replaced: name a file in a mounted directory");
    }
    let (user, around) = (process::euid(), fstat(dir).map_err(io::Error::from)?);
    if user != 0 && around.st_mode & 0o1000 != 0 && ![old.st_uid, around.st_uid].contains(&user) {
        bail!(
            "it belongs to another user, in a directory like /tmp where only the owner may \
             replace it"
        );
    }
    Ok(())
}

/// Names that are tried: another process may sweep a new file before it is locked.
const TRIES: u32 = 16;

/// Entries of a directory that are looked through for files left behind.
const ENTRIES_MAX: usize = 10_000;

/// A file that does not have its name yet. Dropped, it leaves nothing.
///
/// The only way in which the program replaces a regular file: create a temporary file, write, sync,
/// rename, sync the directory. Until the rename the old file stays as it is. The temporary name is
/// random, and the file is locked as long as its process lives: one that a kill left behind is not
/// locked, and is removed by the next that writes into the directory.
#[derive(Debug)]
struct Pending {
    dir: Dir,
    temporary: String,
    file: File,
    placed: bool,
}

impl Pending {
    /// Makes a file in `dir`, with owner and permissions of the regular file `name` where there is
    /// one that nobody planted.
    fn create(dir: &Dir, name: &OsStr) -> io::Result<Self> {
        sweep(dir);
        let old = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let around = fstat(dir)?;
        let around = (around.st_mode, around.st_uid);
        let old = old.filter(|old| {
            FileType::from_raw_mode(old.st_mode) == FileType::RegularFile
                && named::planted("", old.st_uid, around).is_none()
        });
        let mode = old.as_ref().map_or(FILE_MODE, |old| Mode::from_raw_mode(old.st_mode & 0o777));
        for _ in 0..TRIES {
            let pending = match Self::begin(dir, mode) {
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            };
            // Before it was locked, another process may have removed it as left behind.
            let locked = file::try_lock(pending.file.as_raw_fd()) != Ok(false);
            if locked && fstat(&pending.file)?.st_nlink == 1 {
                match &old {
                    Some(old) => pending.take_over(old, mode)?,
                    None => dir.give(&pending.file)?,
                }
                return Ok(pending);
            }
        }
        Err(io::Error::other(
            "temporary files in its directory are removed as soon as they are created",
        ))
    }

    fn begin(dir: &Dir, mode: Mode) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let temporary = named::temporary(u64::from_ne_bytes(random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(dir, &temporary, flags | OFlags::CLOEXEC, mode)?;
        Ok(Self { dir: dir.clone(), temporary, file: file.into(), placed: false })
    }

    /// Takes owner and permissions of the file that this one replaces. Only root can give a file
    /// away.
    fn take_over(&self, old: &Stat, mode: Mode) -> io::Result<()> {
        let (owner, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        if fchown(&self.file, Some(owner), Some(group)).is_err() {
            let _not_a_member = fchown(&self.file, None, Some(group));
        }
        // After the owner, for a change of owner takes permissions away; exact, whatever the umask.
        Ok(fchmod(&self.file, mode)?)
    }

    /// The file to write to.
    fn file(&self) -> &File {
        &self.file
    }

    /// Syncs the file, renames it to `name`, syncs the directory.
    fn place(self, name: &OsStr) -> io::Result<()> {
        self.file.sync_all()?;
        let dir = self.dir.clone();
        self.rename(name)?;
        dir.sync();
        Ok(())
    }

    /// Renames the file to `name`, and waits for no disk.
    fn rename(mut self, name: &OsStr) -> io::Result<()> {
        renameat(&self.dir, &self.temporary, &self.dir, name)?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.placed {
            // What cannot be removed now is swept by a later write.
            let _left = unlinkat(&self.dir, &self.temporary, AtFlags::empty());
        }
    }
}

/// Removes files that killed processes of this user left behind. Best effort: what cannot be opened
/// stays.
fn sweep(dir: &Dir) {
    let Ok(entries) = dir.entries() else { return };
    for entry in entries.flatten().take(ENTRIES_MAX) {
        let name = entry.file_name();
        if !named::is_temporary(name.to_bytes()) {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(dir, name, flags, Mode::empty()) else { continue };
        if fstat(&file).is_ok_and(|stat| is_ours(&stat))
            && file::try_lock(file.as_raw_fd()) == Ok(true)
        {
            let _gone: Result<(), Errno> = unlinkat(dir, name, AtFlags::empty());
        }
    }
}

/// Returns true where it is a regular file of this user, under one name.
fn is_ours(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_uid == process::euid()
        && stat.st_nlink == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
    use std::process::Command;

    use punctual_testkit::skip;

    use super::super::Scratch;

    fn replace(path: &Path, text: &str) -> Result<()> {
        Opened::at(path)?.write(|file| Ok(file.write_all(text.as_bytes())?))
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).expect("there")
    }

    #[test]
    fn the_old_one_stays_until_all_of_the_new_one_is_there() {
        let dir = Scratch::new("half");
        let page = dir.path("page.html");
        replace(&page, "one").expect("writable");
        let opened = Opened::at(&page).expect("writable");
        assert_eq!((read(&page).as_str(), dir.names().len()), ("one", 1), "nothing beside it");
        let half = opened.write(|file| {
            file.write_all(b"ha")?;
            assert_eq!(read(&page), "one");
            bail!("enough")
        });
        let why = format!("{:#}", half.expect_err("refused"));
        assert!(why.contains("cannot write") && why.contains("enough"), "{why}");
        assert_eq!((read(&page).as_str(), dir.names().len()), ("one", 1));
        opened.write(|file| Ok(file.write_all(b"two")?)).expect("writable");
        assert_eq!((read(&page).as_str(), dir.names().len()), ("two", 1));
    }

    #[test]
    fn an_output_that_is_never_written_leaves_nothing() {
        let dir = Scratch::new("never");
        let opened = Opened::at(&dir.path("new")).expect("writable");
        drop(opened.begin(|mut file| file.write_all(b"head")).expect("writable"));
        assert!(dir.names().is_empty());
        replace(&dir.path("old"), "old").expect("writable");
        let opened = Opened::at(&dir.path("old")).expect("writable");
        let (mut file, place) = opened.begin(Ok).expect("writable");
        file.write_all(b"head and ").expect("writable");
        assert_eq!((read(&dir.path("old")).as_str(), dir.names().len()), ("old", 2));
        place().expect("it takes its place");
        file.write_all(b"samples").expect("writable");
        opened.finish(false).expect("it is there");
        assert_eq!((read(&dir.path("old")).as_str(), dir.names().len()), ("head and samples", 1));
        let cut = OpenOptions::new().write(true).open(dir.path("old")).expect("writable");
        cut.set_len(5).expect("ours");
        let why = format!("{:#}", opened.finish(false).expect_err("noticed"));
        assert!(why.contains("5 bytes long, 16 were written"), "{why}");
        let why = file.write_all(b"more").expect_err("noticed").to_string();
        assert!(why.contains("another program changed it"), "{why}");
        fs::remove_file(dir.path("old")).expect("there");
        let why = opened.finish(false).expect_err("noticed").to_string();
        assert!(why.contains("removed or replaced"), "{why}");
    }

    #[test]
    fn links_that_the_user_names_are_followed_and_stay() {
        let dir = Scratch::new("links");
        fs::create_dir(dir.path("sub")).expect("writable");
        symlink("sub/page", dir.path("link")).expect("free");
        symlink(dir.path("link"), dir.path("links")).expect("free");
        for text in ["one", "two"] {
            replace(&dir.path("links"), text).expect("writable");
            assert_eq!(read(&dir.path("sub/page")), text);
        }
        let is_link = |name| dir.path(name).symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        assert!(is_link("link") && is_link("links"));
        assert_eq!(dir.names(), ["link", "links", "sub"]);
        symlink("round", dir.path("round")).expect("free");
        assert!(replace(&dir.path("round"), "x").is_err());
    }

    #[test]
    fn permissions_stay_and_what_may_not_be_written_is_refused() {
        let dir = Scratch::new("mode");
        let page = dir.path("page");
        replace(&page, "one").expect("writable");
        fs::set_permissions(&page, fs::Permissions::from_mode(0o606)).expect("ours");
        replace(&page, "two").expect("writable");
        let mode = fs::metadata(&page).expect("there").permissions().mode();
        assert_eq!((mode & 0o7777, read(&page).as_str()), (0o606, "two"));
        for (name, why) in [("", "directory"), ("no/such", "No such"), ("page/x", "Not a dir")] {
            let refused = format!("{:#}", replace(&dir.path(name), "x").expect_err("refused"));
            assert!(refused.contains("cannot write") && refused.contains(why), "{refused}");
        }
        if process::euid() != 0 {
            fs::set_permissions(&page, fs::Permissions::from_mode(0o400)).expect("ours");
            assert!(replace(&page, "x").is_err());
        }
    }

    #[test]
    fn a_pipe_is_written_to_and_not_replaced() {
        let dir = Scratch::new("pipe");
        let pipe = dir.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("it starts").success());
        // Open for both, so that nobody waits for the other end.
        let mut end = OpenOptions::new().read(true).write(true).open(&pipe).expect("a pipe");
        replace(&pipe, "through").expect("writable");
        assert!(fs::metadata(&pipe).expect("there").file_type().is_fifo());
        let mut read = [0; 7];
        end.read_exact(&mut read).expect("what was written");
        assert_eq!(&read, b"through");
        replace(Path::new("/dev/null"), "away").expect("writable");
        assert!(replace(Path::new("/dev/full"), "full").is_err());
    }

    fn stale(random: &str) -> String {
        format!(".punctual-{random}.new")
    }

    #[test]
    fn what_a_kill_left_behind_is_removed_and_nothing_else() {
        let dir = Scratch::new("sweep");
        let directory = dir.dir();
        let left = stale("0123456789abcdef");
        let others = [
            stale("0123456789abcde"),
            stale("0123456789ABCDEF"),
            ".page.html.1.new".to_owned(),
            "page.new".to_owned(),
        ];
        for name in others.iter().chain([&left]) {
            fs::write(dir.path(name), "x").expect("writable");
        }
        fs::create_dir(dir.path(&stale("aaaaaaaaaaaaaaaa"))).expect("writable");
        fs::hard_link(dir.path("page.new"), dir.path(&stale("bbbbbbbbbbbbbbbb"))).expect("free");
        symlink("page.new", dir.path(&stale("cccccccccccccccc"))).expect("free");
        let before = dir.names().len();
        let first = Pending::create(&directory, "page".as_ref()).expect("writable");
        assert!(!dir.path(&left).exists());
        // One that is being written is not left behind.
        let second = Pending::create(&directory, "page".as_ref()).expect("writable");
        assert_ne!(first.temporary, second.temporary);
        assert!(dir.path(&first.temporary).exists());
        drop((first, second));
        assert_eq!(dir.names().len(), before - 1);
    }

    #[test]
    fn a_file_that_another_user_planted_lends_neither_owner_nor_permissions() {
        if !skip::need("root", skip::is_root()) {
            return;
        }
        let dir = Scratch::new("planted-old");
        let page = dir.path("page");
        for (mode, is_kept) in [(0o755, true), (0o1777, false)] {
            fs::set_permissions(dir.path(""), fs::Permissions::from_mode(mode)).expect("ours");
            fs::write(&page, "theirs").expect("writable");
            chown(&page, Some(12_345), None).expect("root may");
            fs::set_permissions(&page, fs::Permissions::from_mode(0o602)).expect("root may");
            let pending = Pending::create(&dir.dir(), "page".as_ref()).expect("writable");
            pending.place("page".as_ref()).expect("it takes its place");
            let found = fs::metadata(&page).expect("there");
            assert_eq!(found.uid() == 12_345, is_kept, "{mode:o}");
            assert_eq!(found.mode() & 0o777 == 0o602, is_kept, "{mode:o}");
        }
    }

    #[test]
    fn the_first_name_is_that_of_no_temporary_file() {
        let dir = Scratch::new("first-name");
        let directory = dir.dir();
        fs::write(dir.path(&stale("0123456789abcdef")), "x").expect("writable");
        assert_eq!(directory.first_name(&[]).expect("readable"), None);
        directory.create("lock", b"").expect("writable");
        assert_eq!(directory.first_name(&["lock"]).expect("readable"), None);
        assert_eq!(directory.first_name(&[]).expect("readable").as_deref(), Some("lock"));
    }

    #[test]
    fn many_that_write_the_same_name_at_once_leave_one_whole_file() {
        let dir = Scratch::new("race");
        let directory = dir.dir();
        std::thread::scope(|scope| {
            for writer in 0..8_u8 {
                let directory = &directory;
                scope.spawn(move || {
                    for _ in 0..40 {
                        let pending =
                            Pending::create(directory, "page".as_ref()).expect("writable");
                        pending.file().write_all(&[b'a' + writer; 5000]).expect("writable");
                        pending.rename("page".as_ref()).expect("it takes its place");
                    }
                });
            }
        });
        let page = fs::read(dir.path("page")).expect("there");
        assert!(page.len() == 5000 && page.iter().all(|&byte| byte == page[0]));
        assert_eq!(dir.names(), ["page"]);
    }
}
