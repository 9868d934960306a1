//! The sample file of a recording: written under another name until it has samples.
//!
//! Until then an older file of its name stays, and a recording without samples leaves nothing. What
//! is no regular file (a pipe, `/dev/null`) is written to directly. A kill before the first samples
//! leaves the other name behind, hidden and without a lock: the program removes it when it next
//! writes into that directory.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_os::lock;

use crate::drain::{BytesWritten, GrowingFile};
use crate::{named, temporary};

/// What a umask may take from: other users may not write it, whatever the umask leaves.
const FILE_MODE: u32 = 0o664;

/// Names that are tried: the program may sweep a new file before it is locked.
const TRIES: u32 = 16;

/// A sample file that is being written.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    named: Option<Named>,
}

/// A regular file, which takes its place later.
#[derive(Debug)]
struct Named {
    until_then: PathBuf,
    place: PathBuf,
    length: BytesWritten,
    placed: Arc<AtomicBool>,
}

impl Output {
    /// Creates the file.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        // The file that a link leads to is replaced, not the link.
        let Some(place) = named::place(path)? else {
            // A directory is refused here.
            let file = OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(path)?;
            return Ok(Self { file, named: None });
        };
        place.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        for _ in 0..TRIES {
            let random = RandomState::new().build_hasher().finish();
            let until_then = place.with_file_name(temporary::name(random));
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(FILE_MODE);
            let file = match options.open(&until_then) {
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // Before it was locked, a sweep may have removed it as left behind. A file system
            // without locks has no sweeps.
            let locked = lock::try_exclusive(file.as_raw_fd()) != Ok(false);
            if locked && file.metadata()?.nlink() == 1 {
                let (length, placed) = (BytesWritten::default(), Arc::default());
                return Ok(Self { file, named: Some(Named { until_then, place, length, placed }) });
            }
        }
        Err(io::Error::other(
            "temporary files in its directory are removed as soon as they are created",
        ))
    }

    /// What writes to it.
    pub(super) fn writer(&self) -> io::Result<GrowingFile> {
        let file = self.file.try_clone()?;
        Ok(match &self.named {
            Some(named) => GrowingFile::new(file, named.length.clone()),
            None => GrowingFile::stream(file),
        })
    }

    /// What puts it in its place, once it has samples.
    pub(super) fn placing(&self) -> impl FnOnce() -> io::Result<()> + Send + 'static {
        let named = self.named.as_ref();
        let names = named.map(|of| (of.until_then.clone(), of.place.clone(), of.placed.clone()));
        move || {
            if let Some((until_then, place, placed)) = names {
                fs::rename(until_then, place)?;
                placed.store(true, Ordering::Release);
            }
            Ok(())
        }
    }

    /// Ends it; whether it is in its place.
    ///
    /// # Errors
    /// Another program removed, replaced or changed it meanwhile.
    pub(super) fn finish(&self) -> io::Result<bool> {
        let Some(named) = &self.named else { return Ok(true) };
        if !named.placed.load(Ordering::Acquire) {
            return Ok(false);
        }
        if self.file.metadata()?.nlink() == 0 {
            return Err(io::Error::other(
                "it was removed or replaced while it was written: its samples are lost",
            ));
        }
        named.length.check(&self.file)?;
        Ok(true)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(named) = &self.named
            && !named.placed.load(Ordering::Acquire)
        {
            // Nothing else has this name.
            let _gone = fs::remove_file(&named.until_then);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_it_has_samples_it_is_a_locked_temporary_file_and_leaves_nothing() {
        let name = format!("punctual-output-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).expect("writable");
        let names = || {
            let entries = fs::read_dir(&dir).expect("readable").map(|entry| entry.expect("fine"));
            entries.map(|entry| entry.file_name().into_encoded_bytes()).collect::<Vec<_>>()
        };
        let path = dir.join("run.punctual");
        let first = Output::create(&path).expect("writable");
        let second = Output::create(&path).expect("writable");
        let there = names();
        assert_eq!((there.len(), there.iter().all(|name| temporary::is_name(name))), (2, true));
        let until_then = &first.named.as_ref().expect("a regular file").until_then;
        let mode = fs::metadata(until_then).expect("there").mode();
        assert_eq!(mode & 0o113, 0, "{mode:o}: no umask lets other users write");
        let other = File::open(until_then).expect("readable");
        assert_eq!(lock::try_exclusive(other.as_raw_fd()), Ok(false), "a sweep leaves it");
        first.placing()().expect("it takes its place");
        assert!(first.finish().expect("nobody changed it"));
        drop((first, second));
        assert_eq!(names(), [b"run.punctual"]);
        fs::remove_dir_all(&dir).expect("it was made here");
    }
}
