//! The regular file that a name given by the user leads to, and who may lead there.
//!
//! For outputs that are replaced beside their place instead of opened: the kernel, which judges the
//! links of a path that it opens, does not see those that a program reads itself. What another user
//! placed in a directory like /tmp is refused here as fs.protected_symlinks, fs.protected_fifos and
//! fs.protected_regular refuse it, whatever they are set to (Linux, admin-guide/sysctl/fs). Opens
//! nothing.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use punctual_os::process;

/// Links that are followed, as many as the kernel follows (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// A directory where every user may make a name and only its owner may remove it.
const STICKY_AND_OPEN: u32 = 0o1002;

/// The reason why an object of `owner` may have been placed by another user, in a directory of this
/// mode and owner, to catch who writes there; `None` where it is this process's or the directory's
/// owner's. `kind` names it, for the message.
///
/// # Real-time: setup only
pub fn planted(kind: &str, owner: u32, (mode, around): (u32, u32)) -> Option<String> {
    let is_planted =
        mode & STICKY_AND_OPEN == STICKY_AND_OPEN && ![process::euid(), around].contains(&owner);
    is_planted.then(|| {
        format!(
            "{kind} belongs to another user (uid {owner}), in a directory like /tmp where every \
             user may create files: name a file in another directory"
        )
    })
}

/// The place of the regular file that `path` leads to or would create, links at its end followed.
/// `None`: what is no regular file, or is an open file (a link in /proc/self/fd), which has no
/// place and is opened by `path`.
///
/// # Errors
/// The kernel would not follow the path, or another user planted part of it.
///
/// # Real-time: setup only
pub fn place(path: &Path) -> io::Result<Option<PathBuf>> {
    let processes = fs::metadata("/proc/self").ok().map(|process| process.dev());
    let mut place = path.to_owned();
    let mut links = LINKS_MAX;
    for _ in 0..=LINKS_MAX {
        refuse_planted_ways(directory(&place), processes, &mut links)?;
        let found = match place.symlink_metadata() {
            Err(why) if why.kind() == io::ErrorKind::NotFound => None,
            found => Some(found?),
        };
        let Some(found) = found else {
            return Ok(Some(place));
        };
        let around = directory(&place);
        refuse_planted(&place, &found, &fs::metadata(around)?)?;
        if !found.is_symlink() {
            // What the links lead to is what the kernel finds, which may have more to say.
            fs::metadata(path)?;
            return Ok(found.is_file().then_some(place));
        }
        if processes == Some(found.dev()) {
            return Ok(None);
        }
        place = around.join(fs::read_link(&place)?);
    }
    // The kernel gives up as early.
    Err(fs::metadata(path).err().unwrap_or_else(|| io::ErrorKind::TooManyLinks.into()))
}

/// Refuses a way to `directory` over a link that another user planted, at most this many `links`.
fn refuse_planted_ways(
    directory: &Path,
    processes: Option<u64>,
    links: &mut u32,
) -> io::Result<()> {
    let mut way = PathBuf::new();
    for part in directory.components() {
        way.push(part);
        // What cannot be looked at is not reached: the kernel says why.
        let Ok(found) = way.symlink_metadata() else { return Ok(()) };
        if !found.is_symlink() || processes == Some(found.dev()) {
            continue;
        }
        let around = self::directory(&way);
        refuse_planted(&way, &found, &fs::metadata(around)?)?;
        *links = links.checked_sub(1).ok_or(io::ErrorKind::TooManyLinks)?;
        refuse_planted_ways(&around.join(fs::read_link(&way)?), processes, links)?;
    }
    Ok(())
}

fn refuse_planted(path: &Path, found: &Metadata, around: &Metadata) -> io::Result<()> {
    let kind = if found.is_symlink() { "the symbolic link" } else { "the file" };
    let kind = format!("{kind} {}", path.display());
    match planted(&kind, found.uid(), (around.mode(), around.uid())) {
        Some(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
        None => Ok(()),
    }
}

/// The directory that a file is in, or would be.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The name of a temporary file: what stands before its random part and after it.
const TEMPORARY: (&str, &str) = (".punctual-", ".new");
/// Hexadecimal digits of the random part.
const DIGITS: usize = 16;

/// The name that a file has before it takes its place, with this random part. A file of such a name
/// that no living process has locked was left behind by a kill, and the program removes it when it
/// next writes into the directory.
///
/// # Real-time: setup only
pub fn temporary(random: u64) -> String {
    let (before, after) = TEMPORARY;
    format!("{before}{random:0DIGITS$x}{after}")
}

/// True for a name that [`temporary`] may have made.
///
/// # Real-time: setup only
pub fn is_temporary(name: &[u8]) -> bool {
    let (before, after) = TEMPORARY;
    let random = name.strip_prefix(before.as_bytes());
    let random = random.and_then(|name| name.strip_suffix(after.as_bytes()));
    let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    random.is_some_and(|random| random.len() == DIGITS && random.iter().all(digit))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use punctual_testkit::skip;

    use super::*;

    /// An empty directory of this test's own.
    fn scratch(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("punctual-named-{name}-{}", std::process::id()));
        fs::create_dir(&dir).expect("writable");
        dir
    }

    #[test]
    fn it_is_where_the_links_lead_or_an_open_file() {
        let dir = scratch("place");
        let path = dir.join("there");
        let file = File::create(&path).expect("writable");
        for (link, target) in [("link", "there"), ("links", "link"), ("dangling", "new")] {
            symlink(target, dir.join(link)).expect("free");
        }
        symlink("round", dir.join("round")).expect("free");
        assert_eq!(place(&path).expect("ours"), Some(path.clone()));
        assert_eq!(place(&dir.join("links")).expect("ours"), Some(path));
        assert_eq!(place(&dir.join("dangling")).expect("ours"), Some(dir.join("new")));
        assert!(place(&dir.join("round")).is_err());
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(place(Path::new(&open)).expect("open"), None);
        assert_eq!(place(Path::new("/dev/null")).expect("there"), None);
        fs::remove_dir_all(&dir).expect("it was made here");
    }

    #[test]
    fn what_another_user_planted_is_refused_whatever_the_kernel_would_allow() {
        let (me, stranger) = (process::euid(), process::euid().wrapping_add(1));
        for (mode, around, owner, refused) in [
            (0o1777, me, stranger, true),
            (0o1777, stranger, stranger, false),
            (0o1777, stranger, me, false),
            (0o0777, me, stranger, false),
            (0o1775, me, stranger, false),
        ] {
            let why = planted("the file x", owner, (mode, around));
            assert_eq!(why.is_some(), refused, "{mode:o} {around} {owner}");
        }
        if !skip::need("root", skip::is_root()) {
            return;
        }
        let dir = scratch("planted");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o1777)).expect("ours");
        symlink("victim", dir.join("link")).expect("free");
        lchown(dir.join("link"), Some(12_345), None).expect("root may");
        fs::create_dir(dir.join("ours")).expect("writable");
        symlink("ours", dir.join("way")).expect("free");
        lchown(dir.join("way"), Some(12_345), None).expect("root may");
        symlink("way/..", dir.join("own")).expect("free");
        symlink("way/new", dir.join("file")).expect("free");
        for planted in ["link", "way/new", "way/../new", "own/new", "file"] {
            let why = place(&dir.join(planted)).expect_err("refused");
            assert_eq!(why.kind(), io::ErrorKind::PermissionDenied, "{planted}");
            assert!(why.to_string().contains("another user (uid 12345)"), "{planted}: {why}");
        }
        assert!(place(&dir.join("ours/new")).is_ok());
        fs::remove_dir_all(&dir).expect("it was made here");
    }
}
