//! Opens a directory part by part, each in the one before it.
//!
//! For directories in which the program chooses names. Each part is checked after it was opened, so
//! the directory that `trust` accepted is the one that is written into. Makes directories on
//! request; opens no file.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use punctual::named;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat};
use rustix::fs::{readlinkat, statat};
use rustix::io::Errno;

use super::dir::DIRECTORY_MODE;
use super::trust::Trust;

/// How an open directory is kept: to find names in it, which needs no right to list it.
pub(super) const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Links on the way, as many as the kernel follows (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// Where the walk is.
struct Walk<'t> {
    /// Where it goes. Callers name that in their errors, so errors here name other parts only.
    to: &'t Path,
    trust: &'t Trust,
    at: OwnedFd,
    shown: PathBuf,
    /// Whether this is a directory that `--trust-directory` names, or one below it.
    below_named: bool,
    /// Why the way to here is not trusted. A directory that is named clears it.
    distrusted: Option<String>,
}

/// A directory that was reached.
pub(super) struct Reached {
    pub(super) at: OwnedFd,
    /// Whether `--trust-directory` names it, or one that it is below.
    pub(super) below_named: bool,
}

/// Opens the directory at `path`; with `make`, creates what is missing of it.
pub(super) fn directory(path: &Path, make: bool, trust: &Trust) -> Result<Reached> {
    let mut parts = parts(path);
    let mut walk = Walk::start(path, path, trust)?;
    let mut links = 0;
    while let Some(part) = parts.pop_front() {
        let shown = walk.shown.join(&part);
        let found = match statat(&walk.at, &part, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) if make && part != ".." => {
                walk.refuse_distrusted()?;
                made(&walk.at, &part)
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

/// Makes a directory; one that another process made meanwhile is as good.
fn made(at: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    match mkdirat(at, name, DIRECTORY_MODE) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
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
        let here = if self.shown.as_os_str().is_empty() { Path::new(".") } else { &self.shown };
        let stat = self.named(fstat(&self.at), here)?;
        self.below_named |= self.trust.is_named(&stat);
        if self.below_named {
            self.distrusted = None;
        } else if self.distrusted.is_none() {
            self.distrusted = self.trust.distrusted(&stat, here);
        }
        Ok(())
    }

    /// Refuses to write into the directory that it is in now, unless it is trusted.
    fn refuse_distrusted(&self) -> Result<()> {
        let Some(why) = &self.distrusted else { return Ok(()) };
        let here = if self.shown.as_os_str().is_empty() { Path::new(".") } else { &self.shown };
        bail!(
            "{why}: as root, punctual writes there only with --trust-directory {}",
            here.display()
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

    use punctual_testkit::skip;

    use super::super::testing::Scratch;
    use super::*;

    /// Why the way to `path` is refused; empty where it is not.
    fn why(path: &Path, trust: &Trust) -> String {
        directory(path, false, trust).err().map(|why| format!("{why:#}")).unwrap_or_default()
    }

    #[test]
    fn it_leads_where_the_kernel_leads_and_makes_what_is_missing() {
        let dir = Scratch::new("walk");
        let all = Trust::all();
        directory(&dir.path("a/b/c"), true, &all).expect("made");
        symlink("b/c", dir.path("a/relative")).expect("free");
        symlink(dir.path("a"), dir.path("absolute")).expect("free");
        for way in ["a/b/c", "a/./b//c", "a/relative", "absolute/relative", "absolute/../a/b/c/"] {
            let at = directory(&dir.path(way), false, &all).expect("there").at;
            let (here, there) =
                (fstat(at).expect("open"), fs::metadata(dir.path(way)).expect("there"));
            assert_eq!((here.st_dev, here.st_ino), (there.dev(), there.ino()), "{way}");
        }
        fs::write(dir.path("file"), "x").expect("writable");
        symlink("loop", dir.path("loop")).expect("free");
        for (way, words) in [("no/such", "No such"), ("file/x", "Not a dir"), ("loop", "symbolic")]
        {
            let why = why(&dir.path(way), &all);
            assert!(why.contains(words), "{way}: {why}");
        }
        assert!(directory(&dir.path("file/x"), true, &all).is_err());
    }

    /// Who owns the way from the root to here.
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
        assert!(directory(&dir.path("theirs/new/deep"), true, &strict).is_err());
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
