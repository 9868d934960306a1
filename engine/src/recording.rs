//! The samples of a loop or of an executive's tasks on their way into a file: a thread beside the
//! loops.
//!
//! Opens the file before the loop begins, and completes it at the end. A file that cannot be
//! written any more ends the recording, never the loop.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::ring;
use punctual_core::sample::Sample;
use punctual_core::time::Instant;
use punctual_os::{affinity, file};

use crate::counting::{Words, ring_of};
use crate::drain::{BytesWritten, DrainRequests, Drainage, GrowingFile, SampleFile, Sink};
use crate::error::{Error, Kind};
use crate::file_facts::{FileFacts, RunFacts};
use crate::monitor::aside;
use crate::named;
use crate::outcome::Samples;
use crate::spawn::{self, OwnThread};

/// A recording in progress.
#[derive(Debug)]
pub struct LoopRecording {
    first: Arc<FirstRelease>,
    requests: Arc<DrainRequests>,
    thread: OwnThread<Option<Samples>>,
}

/// The instant of release 0, once the loop begins; the clock's zero is one as well.
#[derive(Debug, Default)]
struct FirstRelease {
    ns: AtomicU64,
    is_known: AtomicBool,
}

impl FirstRelease {
    fn begin(&self, first: Instant) {
        self.ns.store(first.as_ns(), Ordering::Relaxed);
        self.is_known.store(true, Ordering::Release);
    }

    /// `None` before the first wait.
    fn known(&self) -> Option<Instant> {
        let is_known = self.is_known.load(Ordering::Acquire);
        is_known.then(|| Instant::from_ns(self.ns.load(Ordering::Relaxed)))
    }
}

/// Samples go to the file alone.
struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _: usize, _: &[Sample]) {}
}

impl LoopRecording {
    /// Opens the file and starts the thread; the rings that the loops write to, one a run.
    ///
    /// # Real-time: setup only
    pub fn start(path: PathBuf, runs: Vec<RunFacts>) -> Result<(Self, Vec<Words>), Error> {
        let output =
            Output::create(&path).map_err(|why| Error::from(Kind::Samples(path.clone(), why)))?;
        let rings: Vec<Words> = runs.iter().map(|run| ring_of(run.period)).collect();
        let cpus: Vec<u32> = runs.iter().filter_map(|run| run.cpu).collect();
        let (first, requests) = (Arc::<FirstRelease>::default(), Arc::<DrainRequests>::default());
        let writer = Writer {
            output,
            path,
            runs,
            rings: rings.clone(),
            first: Arc::clone(&first),
            requests: Arc::clone(&requests),
        };
        let beside = aside(&cpus);
        let write = move || {
            // Where it may not go there it writes where it is.
            let _beside_the_loop = affinity::set(0, &beside);
            writer.run()
        };
        let thread = spawn::plain("punctual-drain", write).map_err(Kind::Thread)?;
        Ok((Self { first, requests, thread: OwnThread::new(thread) }, rings))
    }

    /// The loop begins with its release 0 at `first`.
    ///
    /// # Real-time: setup only
    pub fn begin(&self, first: Instant) {
        self.first.begin(first);
    }

    /// Waits until all samples are in the file, and returns its outcome; `None` where nothing was
    /// recorded, and no file written.
    ///
    /// # Real-time: setup only
    pub fn finish(mut self) -> Option<Samples> {
        self.end()
    }

    fn end(&mut self) -> Option<Samples> {
        self.requests.end();
        self.thread.join()?.ok()?
    }
}

impl Drop for LoopRecording {
    fn drop(&mut self) {
        let _written = self.end();
    }
}

/// The state of the thread beside the loop.
struct Writer {
    output: Output,
    path: PathBuf,
    runs: Vec<RunFacts>,
    rings: Vec<Words>,
    first: Arc<FirstRelease>,
    requests: Arc<DrainRequests>,
}

impl Writer {
    fn run(self) -> Option<Samples> {
        let Self { output, path, mut runs, rings, first, requests } = self;
        while first.known().is_none() && !requests.is_over() {
            requests.rest();
        }
        // One that never began has no samples, and so no file.
        let first_ns = first.known().map_or(0, Instant::as_ns);
        runs.iter_mut().for_each(|run| run.epoch_ns = run.epoch_ns.saturating_add(first_ns));
        let facts = FileFacts {
            tool: "punctual library",
            version: env!("CARGO_PKG_VERSION"),
            started_at: None,
            machine_json: None,
            question_json: None,
            runs,
        };
        let begun =
            output.writer().and_then(|to| SampleFile::begin(to, &facts.json(), facts.runs.len()));
        let (file, failed) = match begun {
            Ok(file) => (Some(file.at_first_samples(output.placing())), None),
            Err(why) => (None, Some(why)),
        };
        let readers: Vec<_> = rings.iter().filter_map(|ring| ring::readers(ring)).collect();
        let views: Vec<_> = readers.iter().map(|(_, view)| *view).collect();
        let mut drainage = Drainage::new(readers, Nowhere, file);
        drainage.run(&requests, || ());
        let (_, stopped) = drainage.finish(false);
        let unrecorded = views.iter().map(|view| view.unrecorded()).sum();
        let count: u64 = views.iter().map(|view| view.count()).sum();
        let (failed, placed) = match (failed.or(stopped), output.finish()) {
            (Some(why), _) | (None, Err(why)) => (Some(why.to_string()), true),
            (None, Ok(placed)) => (None, placed),
        };
        placed.then(|| Samples { path, written: count - unrecorded, unrecorded, failed })
    }
}

/// The mode of a new file, from which a umask may take: other users may not write it in any case.
const FILE_MODE: u32 = 0o664;

/// Names that are tried: the program may sweep a new file before it is locked.
const TRIES: u32 = 16;

/// A sample file that is being written.
#[derive(Debug)]
struct Output {
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
    fn create(path: &Path) -> io::Result<Self> {
        // The file that a link leads to is replaced, not the link.
        let Some(place) = named::place(path)? else {
            // A directory is refused here.
            let file = OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(path)?;
            return Ok(Self { file, named: None });
        };
        place.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        for _ in 0..TRIES {
            let random = RandomState::new().build_hasher().finish();
            let until_then = place.with_file_name(named::temporary(random));
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(FILE_MODE);
            let file = match options.open(&until_then) {
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // Before it was locked, a sweep may have removed it as left behind. A file system
            // without locks has no sweeps.
            let locked = file::try_lock(file.as_raw_fd()) != Ok(false);
            if locked && file.metadata()?.nlink() == 1 {
                let (length, placed) = (BytesWritten::default(), Arc::default());
                return Ok(Self { file, named: Some(Named { until_then, place, length, placed }) });
            }
        }
        Err(io::Error::other(
            "temporary files in its directory are removed as soon as they are created",
        ))
    }

    /// The writer of the file.
    fn writer(&self) -> io::Result<GrowingFile> {
        let file = self.file.try_clone()?;
        Ok(match &self.named {
            Some(named) => GrowingFile::new(file, named.length.clone()),
            None => GrowingFile::stream(file),
        })
    }

    /// The act that puts it in its place, once it has samples.
    fn placing(&self) -> impl FnOnce() -> io::Result<()> + Send + 'static {
        let named = self.named.as_ref();
        let names = named
            .map(|named| (named.until_then.clone(), named.place.clone(), named.placed.clone()));
        move || {
            if let Some((until_then, place, placed)) = names {
                fs::rename(until_then, place)?;
                placed.store(true, Ordering::Release);
            }
            Ok(())
        }
    }

    /// Ends it; returns true where it is in its place.
    ///
    /// # Errors
    /// Another program removed, replaced or changed it meanwhile.
    fn finish(&self) -> io::Result<bool> {
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
        let entries = names();
        assert_eq!(
            (entries.len(), entries.iter().all(|name| named::is_temporary(name))),
            (2, true)
        );
        let until_then = &first.named.as_ref().expect("a regular file").until_then;
        let mode = fs::metadata(until_then).expect("there").mode();
        assert_eq!(mode & 0o113, 0, "{mode:o}: no umask lets other users write");
        let reopened = File::open(until_then).expect("readable");
        assert_eq!(file::try_lock(reopened.as_raw_fd()), Ok(false), "a sweep leaves it");
        first.placing()().expect("it takes its place");
        assert!(first.finish().expect("nobody changed it"));
        drop((first, second));
        assert_eq!(names(), [b"run.punctual"]);
        fs::remove_dir_all(&dir).expect("it was made here");
    }
}
