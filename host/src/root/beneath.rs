//! Files opened without waiting and without acting, and beneath a directory that no path leaves.
//!
//! The kernel resolves each path in one call, so that nobody can turn a link between a look and an
//! opening. Never makes, changes or removes anything.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::fs::{fstat, openat, openat2, stat};
use rustix::io::Errno;

use super::Read;

/// The most attempts at a path that others rename meanwhile (openat2(2), EAGAIN).
const TRIES: u32 = 32;

/// Opens the regular file at `path` for reading.
///
/// Nothing else is opened for reading: a FIFO would wait, a device may act.
///
/// # Errors
/// As the kernel gives them; where it is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    check(&stat(path)?)?;
    regular(openat(CWD, path, READ, Mode::empty())?)
}

/// All that a file has, `most` bytes of it at most.
///
/// # Errors
/// Where it cannot be read, and where it has more: a part would be taken for the whole.
pub fn read_whole(file: impl io::Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::take(file, most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let most = if most < 1 << 20 { (most >> 10, "KiB") } else { (most >> 20, "MiB") };
        let why = format!("it has more than {} {}", most.0, most.1);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// As [`read_whole`], of a text.
///
/// # Errors
/// Also where it is not UTF-8.
pub fn read_text(file: impl io::Read, most: u64) -> io::Result<String> {
    String::from_utf8(read_whole(file, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Opens a directory of this machine, to list it.
pub(super) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, LIST, Mode::empty())?)
}

/// For reading; waits for nobody.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// For the names in a directory.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// For a look, or the way on: opens no device.
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

fn check(stat: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        _ => Err(io::Error::other("not a regular file")),
    }
}

/// The file that was opened, which may be another than the one that was looked at.
fn regular(opened: OwnedFd) -> io::Result<File> {
    check(&fstat(&opened)?)?;
    Ok(opened.into())
}

/// An open directory, beneath which paths are opened: no link, no `..` and no renaming leads out.
#[derive(Debug)]
pub struct TreeDir(OwnedFd);

impl From<OwnedFd> for TreeDir {
    fn from(directory: OwnedFd) -> Self {
        Self(directory)
    }
}

impl TreeDir {
    /// The directory at `path`, whose links are followed.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, path, LOOK | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// Opens a regular file for reading; a leading `/` of `path` is this directory.
    ///
    /// # Errors
    /// As [`open_regular`]; where a link leaves the directory.
    pub fn file(&self, path: &Path) -> io::Result<File> {
        let look = self.resolved(path, LOOK).map_err(in_words)?;
        check(&fstat(&look)?)?;
        regular(self.resolved(path, READ).map_err(in_words)?)
    }

    /// Opens a directory, to list it.
    ///
    /// # Errors
    /// As the kernel gives them; where a link leaves the directory.
    pub fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        self.resolved(path, LIST).map_err(in_words)
    }

    fn resolved(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = path.strip_prefix("/").unwrap_or(path);
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES {
            match openat2(&self.0, path, flags, Mode::empty(), how) {
                Err(Errno::AGAIN) => {}
                // Before Linux 5.6, and where a filter of system calls does not know the call.
                Err(Errno::NOSYS | Errno::PERM) => return self.walked(path, flags),
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    /// As `resolved`, part by part; of links, none is followed.
    fn walked(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut parts = path.components().peekable();
        let mut at = openat(&self.0, ".", LOOK, Mode::empty())?;
        while let Some(part) = parts.next() {
            let name = match part {
                Component::CurDir => Path::new("."),
                Component::Normal(name) => Path::new(name),
                _ => return Err(Errno::XDEV),
            };
            let last = parts.peek().is_none();
            let flags = if last { flags } else { LOOK | OFlags::DIRECTORY };
            at = openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(at)
    }
}

/// That a path is absolute, without `..`.
pub(super) fn absolute(path: &str) -> Result<(), Read> {
    let mut parts = Path::new(path).components();
    let absolute = parts.next() == Some(Component::RootDir);
    if !absolute || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Err(Read::Unreadable { why: "not an absolute path without '..'".to_owned() });
    }
    Ok(())
}

/// An error of a path that would leave the directory, in words.
fn in_words(why: Errno) -> io::Error {
    match why {
        Errno::XDEV => io::Error::other("a link leaves the captured tree"),
        why => why.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::Tree;

    #[test]
    fn without_the_call_the_way_is_walked_and_no_link_is_followed() {
        let tree = Tree::of(&[("/proc/a", "x"), ("/b", "")]);
        symlink("proc", tree.path().join("link")).unwrap();
        let dir = TreeDir::open(tree.path()).unwrap();
        let walked = |path: &str| dir.walked(Path::new(path), OFlags::RDONLY | OFlags::CLOEXEC);
        assert!(walked("proc/a").is_ok() && walked("./b").is_ok() && walked(".").is_ok());
        assert!(walked("link/a").is_err() && walked("link").is_err() && walked("none").is_err());
        assert_eq!(walked("../x").unwrap_err(), Errno::XDEV);
        assert_eq!(walked("/etc/passwd").unwrap_err(), Errno::XDEV);
        assert!(dir.file(Path::new("link/a")).is_ok(), "by the call, a link inside is followed");
    }
}
