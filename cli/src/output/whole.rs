//! A file that has its name once it is whole.
//!
//! For every output that is written in one go. What had the name is replaced in one step, after the
//! new file is on the disk. What is no regular file (a pipe, a device) is written to directly, and
//! what a link points to is replaced, not the link.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Writes `bytes` to `path`, so that they are there whole or not at all.
pub(crate) fn replace(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    whole(path, |mut file| Ok(file.write_all(bytes.as_ref())?))
}

/// Writes what `body` writes to `path`, so that it is there whole or not at all.
pub(crate) fn whole(path: &Path, body: impl FnOnce(File) -> Result<()>) -> Result<()> {
    write(path, body).with_context(|| format!("cannot write {}", path.display()))
}

fn write(path: &Path, body: impl FnOnce(File) -> Result<()>) -> Result<()> {
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(fs::Metadata::is_dir) {
        bail!("it is a directory");
    }
    let direct = there.as_ref().is_some_and(|meta| !meta.is_file());
    // One that may not be written is not replaced either.
    let opened = there.is_some().then(|| OpenOptions::new().write(true).open(path)).transpose()?;
    if let Some(device) = opened.filter(|_| direct) {
        return body(device);
    }
    let target = if there.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let aside = aside(&target);
    // One that is there already is somebody else's: it is neither written to nor taken away.
    let file = OpenOptions::new().write(true).create_new(true).open(&aside)?;
    let written = replaced(file, &aside, &target, there.as_ref(), body);
    if written.is_err() {
        // A half is of no use to anybody; the error says why it is missing.
        let _gone = fs::remove_file(&aside);
    }
    written
}

/// The name under which `target` is written until it is whole, in the same directory.
fn aside(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    target.with_file_name(name)
}

fn replaced(
    file: File,
    aside: &Path,
    target: &Path,
    before: Option<&fs::Metadata>,
    body: impl FnOnce(File) -> Result<()>,
) -> Result<()> {
    let handle = file.try_clone()?;
    if let Some(before) = before {
        file.set_permissions(before.permissions())?;
    }
    body(file)?;
    handle.sync_all()?;
    fs::rename(aside, target)?;
    let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty());
    // The name as well. Not every file system can; the bytes are on the disk in any case.
    let _some_cannot = File::open(dir.unwrap_or(Path::new("."))).and_then(|dir| dir.sync_all());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::process::Command;

    use super::*;

    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            let name = format!("punctual-whole-{name}-{}", std::process::id());
            let dir = Self(std::env::temp_dir().join(name));
            fs::create_dir_all(&dir.0).expect("writable");
            dir
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("readable").flatten();
            let mut names: Vec<String> =
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn neighbours_and_links_stay() {
        let dir = Dir::new("links");
        let (page, link) = (dir.0.join("page.html"), dir.0.join("link"));
        fs::write(dir.0.join("page.new"), "somebody else's").expect("writable");
        replace(&page, "one").expect("writable");
        symlink(&page, &link).expect("writable");
        replace(&link, "two").expect("writable");
        assert_eq!(fs::read_to_string(&page).expect("there"), "two");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(dir.names(), ["link", "page.html", "page.new"]);
        let other = fs::read_to_string(dir.0.join("page.new")).expect("there");
        assert_eq!(other, "somebody else's");
    }

    #[test]
    fn what_fails_half_way_changes_nothing() {
        let dir = Dir::new("half");
        let page = dir.0.join("page.html");
        replace(&page, "one").expect("writable");
        let half = whole(&page, |mut file| {
            file.write_all(b"ha")?;
            bail!("enough")
        });
        let why = format!("{:#}", half.expect_err("refused"));
        assert!(why.contains("cannot write") && why.contains("enough"), "{why}");
        assert_eq!(fs::read_to_string(&page).expect("kept"), "one");
        assert_eq!(dir.names(), ["page.html"]);
        assert!(replace(&dir.0, "x").is_err_and(|why| format!("{why:#}").contains("directory")));
    }

    #[test]
    fn a_pipe_is_written_to_and_not_replaced() {
        let dir = Dir::new("pipe");
        let pipe = dir.0.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("it starts").success());
        // Open for both, so that nobody waits for the other end.
        let mut end = OpenOptions::new().read(true).write(true).open(&pipe).expect("a pipe");
        replace(&pipe, "through").expect("writable");
        assert!(fs::metadata(&pipe).expect("there").file_type().is_fifo());
        let mut read = [0; 7];
        end.read_exact(&mut read).expect("what was written");
        assert_eq!(&read, b"through");
    }
}
