//! The sample file of a recording: written under another name until it has samples.
//!
//! Until then an older file of its name stays, and a recording without samples leaves nothing. What
//! is no regular file (a pipe, `/dev/null`) is written to directly. A kill before the first samples
//! leaves the other name behind: hidden, with the number of the process in it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::drain::{BytesWritten, GrowingFile};

/// Tells the recordings of this process apart.
static RECORDINGS: AtomicU64 = AtomicU64::new(0);

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
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            // A directory is refused here.
            return Ok(Self { file: OpenOptions::new().append(true).open(path)?, named: None });
        }
        // The file that a link leads to is replaced, not the link.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = place.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_string_lossy();
        let number = RECORDINGS.fetch_add(1, Ordering::Relaxed);
        let until_then = format!(".{name}.{}.{number}.new", std::process::id());
        let until_then = place.with_file_name(until_then);
        let file = OpenOptions::new().write(true).create_new(true).open(&until_then)?;
        let (length, placed) = (BytesWritten::default(), Arc::default());
        Ok(Self { file, named: Some(Named { until_then, place, length, placed }) })
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
