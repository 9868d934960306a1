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
use std::time::Duration;

use punctual_core::ring;
use punctual_core::sample::Sample;
use punctual_core::time::{Instant, Period};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::{affinity, file};

use crate::counting::{Words, words};
use crate::drain::{BytesWritten, Drainage, GrowingFile, INTERVAL, SampleFile, Sink};
use crate::error::{Error, Kind};
use crate::monitor::aside;
use crate::outcome::Samples;
use crate::spawn::{self, OwnThread};
use crate::{named, temporary};

/// The ring has room for what comes while the thread beside the loop does not run for so long.
const ROOM_S: u64 = 4;
/// The fewest and the most samples of a ring; 16 bytes each.
const RING: (u64, u64) = (1 << 12, 1 << 20);

/// What a file says of one run: a loop, or a task of an executive.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// The CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// Its period.
    pub period: Period,
    /// Where its releases lie after the epoch, ns, below the period.
    pub phase_ns: u64,
    /// From the instant that the recording begins with to its release 0, ns.
    pub offset_ns: u64,
    /// The policy of its thread.
    pub policy: SchedPolicy,
    /// The name of its wait, as in results.
    pub wait: &'static str,
}

impl Facts {
    fn json(&self, begin: Instant) -> String {
        let (policy, priority) = match self.policy {
            SchedPolicy::Fifo(priority) => ("SCHED_FIFO", priority.to_string()),
            SchedPolicy::RoundRobin(priority) => ("SCHED_RR", priority.to_string()),
            SchedPolicy::Other | SchedPolicy::Unknown(_) => ("SCHED_OTHER", "null".to_owned()),
        };
        format!(
            "{{\"name\":{},\"cpu\":{},\"period_ns\":{},\"epoch_ns\":{},\"phase_ns\":{},\
             \"policy\":\"{policy}\",\"priority\":{priority},\"wait\":\"{}\"}}",
            quoted(&self.name),
            self.cpu.unwrap_or(0),
            self.period.as_ns(),
            begin.as_ns().saturating_add(self.offset_ns),
            self.phase_ns,
            self.wait,
        )
    }
}

/// All that a file says of its runs.
fn json(runs: &[Facts], begin: Instant) -> String {
    let runs: Vec<String> = runs.iter().map(|run| run.json(begin)).collect();
    format!(
        "{{\"tool\":\"punctual library\",\"version\":\"{}\",\"runs\":[{}]}}",
        env!("CARGO_PKG_VERSION"),
        runs.join(",")
    )
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A recording in progress.
#[derive(Debug)]
pub struct LoopRecording {
    /// The instant of release 0, ns; 0 before the first wait.
    first_ns: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
    thread: OwnThread<Option<Samples>>,
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
    pub fn start(path: PathBuf, runs: Vec<Facts>) -> Result<(Self, Vec<Words>), Error> {
        let output =
            Output::create(&path).map_err(|why| Error::from(Kind::Samples(path.clone(), why)))?;
        let rings: Vec<Words> = runs.iter().map(|run| ring(run.period)).collect();
        let cpus: Vec<u32> = runs.iter().filter_map(|run| run.cpu).collect();
        let (first_ns, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let writer = Writer {
            output,
            path,
            runs,
            rings: rings.clone(),
            first_ns: Arc::clone(&first_ns),
            done: Arc::clone(&done),
        };
        let beside = aside(&cpus);
        let write = move || {
            // Where it may not go there it writes where it is.
            let _beside_the_loop = affinity::set(0, &beside);
            writer.run()
        };
        let thread = spawn::plain("punctual-drain", write).map_err(Kind::Thread)?;
        Ok((Self { first_ns, done, thread: OwnThread::new(thread) }, rings))
    }

    /// The loop begins with its release 0 at `first`.
    ///
    /// # Real-time: setup only
    pub fn begin(&self, first: Instant) {
        self.first_ns.store(first.as_ns(), Ordering::Release);
    }

    /// Waits until all samples are in the file, and says how many; `None` where nothing was
    /// recorded, and no file written.
    ///
    /// # Real-time: setup only
    pub fn finish(mut self) -> Option<Samples> {
        self.end()
    }

    fn end(&mut self) -> Option<Samples> {
        self.done.store(true, Ordering::Release);
        self.thread.unpark();
        self.thread.join()?.ok()?
    }
}

impl Drop for LoopRecording {
    fn drop(&mut self) {
        let _written = self.end();
    }
}

/// A ring for the samples of a loop of this period.
fn ring(period: Period) -> Words {
    let wanted = ROOM_S.saturating_mul(1_000_000_000) / period.as_ns();
    let samples = wanted.clamp(RING.0, RING.1).next_power_of_two();
    let ring = words(ring::words(samples as usize));
    // Made before anybody resumes it.
    let _made = ring::split(&ring);
    ring
}

/// Waits for the next look, or for the loop's end.
#[expect(clippy::disallowed_methods, reason = "no instant is meant: the loop's end cuts it short")]
fn rest() {
    std::thread::park_timeout(Duration::from_nanos(INTERVAL.as_ns().unsigned_abs()));
}

/// What the thread beside the loop has.
struct Writer {
    output: Output,
    path: PathBuf,
    runs: Vec<Facts>,
    rings: Vec<Words>,
    first_ns: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
}

impl Writer {
    fn run(self) -> Option<Samples> {
        while self.first_ns.load(Ordering::Acquire) == 0 && !self.done.load(Ordering::Acquire) {
            rest();
        }
        let first = Instant::from_ns(self.first_ns.load(Ordering::Acquire));
        let Self { output, path, runs, rings, done, .. } = self;
        let begun =
            output.writer().and_then(|to| SampleFile::begin(to, &json(&runs, first), runs.len()));
        let (file, failed) = match begun {
            Ok(file) => (Some(file.at_first_samples(output.placing())), None),
            Err(why) => (None, Some(why)),
        };
        let readers: Vec<_> = rings.iter().filter_map(|ring| ring::readers(ring)).collect();
        let views: Vec<_> = readers.iter().map(|(_, view)| *view).collect();
        let mut drainage = Drainage::new(readers, Nowhere, file);
        while !done.load(Ordering::Acquire) {
            drainage.empty();
            rest();
        }
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

/// What a umask may take from: other users may not write it, whatever the umask leaves.
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
            let until_then = place.with_file_name(temporary::name(random));
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

    /// What writes to it.
    fn writer(&self) -> io::Result<GrowingFile> {
        let file = self.file.try_clone()?;
        Ok(match &self.named {
            Some(named) => GrowingFile::new(file, named.length.clone()),
            None => GrowingFile::stream(file),
        })
    }

    /// What puts it in its place, once it has samples.
    fn placing(&self) -> impl FnOnce() -> io::Result<()> + Send + 'static {
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
    fn a_name_of_any_characters_is_one_text() {
        assert_eq!(quoted("servo"), "\"servo\"");
        assert_eq!(quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\u000ad\"");
    }

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
        assert_eq!(file::try_lock(other.as_raw_fd()), Ok(false), "a sweep leaves it");
        first.placing()().expect("it takes its place");
        assert!(first.finish().expect("nobody changed it"));
        drop((first, second));
        assert_eq!(names(), [b"run.punctual"]);
        fs::remove_dir_all(&dir).expect("it was made here");
    }
}
