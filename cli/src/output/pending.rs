//! A file that is written under a temporary name and then renamed.
//!
//! The only way in which the program replaces a regular file: create a temporary file, write, sync,
//! rename, sync the directory. Until the rename the old file stays as it is. The temporary name is
//! random, and the file is locked as long as its process lives: one that a kill left behind is not
//! locked, and is removed by the next that writes into the directory.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use punctual_engine::{named, temporary};
use punctual_os::{file, process};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::fs::{fchmod, fchown, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use super::dir::{Dir, FILE_MODE};

/// Names that are tried: another process may sweep a new file before it is locked.
const TRIES: u32 = 16;

/// Entries of a directory that are looked through for files left behind.
const ENTRIES_MAX: usize = 10_000;

/// A file that does not have its name yet. Dropped, it leaves nothing.
#[derive(Debug)]
pub(super) struct Pending {
    dir: Dir,
    temporary: String,
    file: File,
    placed: bool,
}

impl Pending {
    /// Makes a file in `dir`, with owner and permissions of the regular file `name` where there is
    /// one that nobody planted.
    pub(crate) fn create(dir: &Dir, name: &OsStr) -> io::Result<Self> {
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
                if let Some(old) = &old {
                    pending.take_over(old, mode)?;
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
        let temporary = temporary::name(u64::from_ne_bytes(random));
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
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Syncs the file, renames it to `name`, syncs the directory.
    pub(crate) fn place(self, name: &OsStr) -> io::Result<()> {
        self.file.sync_all()?;
        let dir = self.dir.clone();
        self.rename(name)?;
        dir.sync();
        Ok(())
    }

    /// Renames the file to `name`, and waits for no disk.
    pub(crate) fn rename(mut self, name: &OsStr) -> io::Result<()> {
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
        if !temporary::is_name(name.to_bytes()) {
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

/// Whether it is a file that this user made, under one name.
fn is_ours(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_uid == process::euid()
        && stat.st_nlink == 1
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    use punctual_testkit::skip;

    use super::super::testing::Scratch;
    use super::*;

    fn stale(random: &str) -> String {
        format!(".punctual-{random}.new")
    }

    #[test]
    fn what_a_kill_left_behind_is_removed_and_nothing_else() {
        let dir = Scratch::new("sweep");
        let there = dir.dir();
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
        std::os::unix::fs::symlink("page.new", dir.path(&stale("cccccccccccccccc"))).expect("free");
        let before = dir.names().len();
        let first = Pending::create(&there, "page".as_ref()).expect("writable");
        assert!(!dir.path(&left).exists());
        // One that is being written is not left behind.
        let second = Pending::create(&there, "page".as_ref()).expect("writable");
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
        let there = dir.dir();
        fs::write(dir.path(&stale("0123456789abcdef")), "x").expect("writable");
        assert_eq!(there.first_name(&[]).expect("readable"), None);
        there.create("lock", b"").expect("writable");
        assert_eq!(there.first_name(&["lock"]).expect("readable"), None);
        assert_eq!(there.first_name(&[]).expect("readable").as_deref(), Some("lock"));
    }

    #[test]
    fn many_that_write_the_same_name_at_once_leave_one_whole_file() {
        let dir = Scratch::new("race");
        let there = dir.dir();
        std::thread::scope(|scope| {
            for writer in 0..8_u8 {
                let there = &there;
                scope.spawn(move || {
                    for _ in 0..40 {
                        let pending = Pending::create(there, "page".as_ref()).expect("writable");
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
