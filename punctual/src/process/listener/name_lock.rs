//! A name that one supervisor has: a file that is locked, and gone with its holder.
//!
//! For the supervisor's socket. A lock goes with the process however that ends, so that a file left
//! by one that was killed holds nothing. Who ends in good order removes the file while the lock
//! still holds; a process that opened the file before that then locks one without a name, detects
//! this, and tries again with the file that has the name.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use punctual_os::fork::Origin;
use punctual_os::lock;

/// How often a file may be removed between its opening and its locking, before that is an error.
const TRIES: usize = 100;

/// A name that is held.
#[derive(Debug)]
pub(in super::super) struct NameLock {
    origin: Origin,
    path: PathBuf,
    _lock: File,
}

impl NameLock {
    /// Takes the name that this file stands for; `None` where another process has it, until that
    /// has ended.
    pub(in super::super) fn take(path: &Path) -> io::Result<Option<Self>> {
        for _ in 0..TRIES {
            let file = File::options().create(true).truncate(false).write(true).open(path)?;
            let locked = lock::try_exclusive(file.as_raw_fd());
            if !locked.map_err(|why| io::Error::from_raw_os_error(why.0))? {
                return Ok(None);
            }
            if is_at(&file, path)? {
                let origin = Origin::here();
                return Ok(Some(Self { origin, path: path.to_owned(), _lock: file }));
            }
        }
        Err(io::Error::other("it is removed again and again"))
    }
}

/// Whether this is the file that stands there.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(why) => Err(why),
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            return;
        }
        // Left behind it is in nobody's way. The lock goes after this.
        let _left = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("punctual-held-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_name_is_one_holders_and_leaves_nothing() {
        let path = path("one");
        let held = NameLock::take(&path).expect("writable").expect("free");
        assert!(NameLock::take(&path).expect("writable").is_none());
        drop(held);
        assert!(!path.exists());
        // As one that was killed leaves it.
        drop(File::create(&path).expect("writable"));
        assert!(NameLock::take(&path).expect("writable").is_some());
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_lost_its_name_holds_nothing() {
        let path = path("lost");
        let file = File::create(&path).expect("writable");
        assert!(is_at(&file, &path).expect("readable"));
        fs::remove_file(&path).expect("ours");
        assert!(!is_at(&file, &path).expect("readable"));
        drop(File::create(&path).expect("writable"));
        assert!(!is_at(&file, &path).expect("readable"), "another one stands there");
        fs::remove_file(&path).expect("ours");
    }

    #[test]
    fn of_many_that_come_and_go_one_has_it_at_a_time() {
        let (path, inside, taken) = (path("many"), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let Some(held) = NameLock::take(&path).expect("writable") else { continue };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        taken.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(held);
                    }
                });
            }
        });
        assert!(taken.load(Ordering::SeqCst) > 0 && !path.exists());
    }
}
