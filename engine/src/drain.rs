//! The drain: takes samples from recorders as they come, hands them on, and writes them to a file.
//!
//! For experiments, on a thread of its own, on another CPU than the loop. The file is written in
//! blocks with a checksum, closed at least every 0.5 s, so that a kill loses no more than the last
//! one. A file that cannot be written any more ends the writing, never the measuring.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::file::{
    BLOCK_SAMPLES_MAX, BlockHeader, BlockKind, FILE_VERSION, FileHeader, JSON_BYTES_MAX,
};
use punctual_core::ring::{Drain, RingView};
use punctual_core::sample::{SAMPLE_BYTES, Sample};
use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::futex::{self, Scope};

/// The time from one emptying of the rings by the drain's thread to the next: half of what a kill
/// may cost.
pub const INTERVAL: Span = Span::from_ms(200);

/// The most samples handed on, and written as one block, at a time: 16 KiB, so that a file that is
/// cut off, or a disk that is full, loses little also where the drain came late.
const BATCH: usize = 1 << 10;
const _: () = assert!(BATCH <= BLOCK_SAMPLES_MAX as usize);

/// A receiver of drained samples, in addition to the file.
pub trait Sink {
    /// Takes the next samples of run `run`, in order.
    ///
    /// # Real-time: reader side
    fn take(&mut self, run: usize, samples: &[Sample]);
}

/// A sample file that is being written.
#[derive(Debug)]
pub struct SampleFile<W: Write> {
    to: W,
    written: Vec<u64>,
    block: Vec<u8>,
    first: Option<AtFirst>,
}

/// The act that is due once the first samples are in a file.
struct AtFirst(Box<dyn FnOnce() -> io::Result<()> + Send>);

impl fmt::Debug for AtFirst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AtFirst")
    }
}

impl<W: Write> SampleFile<W> {
    /// Begins a file for `runs` runs, described by the JSON text `info`.
    ///
    /// # Errors
    /// The error of the writing; `InvalidInput` when `info` is longer than a reader accepts.
    ///
    /// # Real-time: setup only
    pub fn begin(mut to: W, info: &str, runs: usize) -> io::Result<Self> {
        let json_bytes =
            u32::try_from(info.len()).ok().filter(|&bytes| bytes <= JSON_BYTES_MAX).ok_or_else(
                || io::Error::new(io::ErrorKind::InvalidInput, "the run's facts are too long"),
            )?;
        let header = FileHeader {
            version: FILE_VERSION,
            json_bytes,
            json_crc: crc32fast::hash(info.as_bytes()),
        };
        to.write_all(&header.to_bytes())?;
        to.write_all(info.as_bytes())?;
        to.flush()?;
        let block = Vec::with_capacity(BATCH * SAMPLE_BYTES);
        Ok(Self { to, written: vec![0; runs], block, first: None })
    }

    /// Calls `act` once, when the first samples are in the file, or at its end where releases were
    /// missed and none ran: such as to put the file in the place of an older one. An error of it
    /// ends the file as an error of writing does.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn at_first_samples(
        mut self,
        act: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Self {
        self.first = Some(AtFirst(Box::new(act)));
        self
    }

    /// Writes samples, all the way to where they go.
    fn append(&mut self, run: usize, samples: &[Sample], view: &RingView<'_>) -> io::Result<()> {
        self.write(run, samples, view)?;
        self.to.flush()?;
        self.first()
    }

    /// Calls what is to be called once something is in the file.
    fn first(&mut self) -> io::Result<()> {
        self.first.take().map_or(Ok(()), |first| (first.0)())
    }

    fn write(&mut self, run: usize, samples: &[Sample], view: &RingView<'_>) -> io::Result<()> {
        encode(samples, &mut self.block);
        let header = BlockHeader {
            kind: BlockKind::Data,
            run: run as u32,
            samples: samples.len() as u32,
            first: self.written[run],
            missed: view.missed(),
            unrecorded: view.unrecorded(),
            payload_crc: crc32fast::hash(&self.block),
        };
        self.to.write_all(&header.to_bytes(crc32fast::hash))?;
        self.to.write_all(&self.block)?;
        self.written[run] += samples.len() as u64;
        Ok(())
    }

    fn end(&mut self, early: bool) -> io::Result<()> {
        let header = BlockHeader {
            kind: BlockKind::End,
            run: u32::from(early),
            samples: 0,
            first: 0,
            missed: 0,
            unrecorded: 0,
            payload_crc: crc32fast::hash(&[]),
        };
        self.to.write_all(&header.to_bytes(crc32fast::hash))?;
        self.to.flush()
    }
}

// What is done for each sample is in functions that are not generic: they are compiled here, and
// optimised, whatever the crate that drains is built with.

/// The bytes of a block of samples.
fn encode(samples: &[Sample], block: &mut Vec<u8>) {
    block.clear();
    for sample in samples {
        block.extend_from_slice(&sample.to_bytes());
    }
}

/// Takes the samples that a ring holds, [`BATCH`] at most.
fn take_batch(drain: &mut Drain<'_>, batch: &mut Vec<Sample>) {
    batch.clear();
    batch.extend(std::iter::from_fn(|| drain.pop()).take(BATCH));
}

/// All recorders of an experiment, and the receivers of their samples.
pub struct Drainage<'a, S, W: Write> {
    runs: Vec<(Drain<'a>, RingView<'a>)>,
    sink: S,
    file: Option<SampleFile<W>>,
    failed: Option<io::Error>,
    batch: Vec<Sample>,
}

impl<'a, S: Sink, W: Write> Drainage<'a, S, W> {
    /// Drains `runs`, in the order in which the file describes them, into `sink` and `file`.
    ///
    /// # Real-time: setup only
    pub fn new(runs: Vec<(Drain<'a>, RingView<'a>)>, sink: S, file: Option<SampleFile<W>>) -> Self {
        Self { runs, sink, file, failed: None, batch: Vec::with_capacity(BATCH) }
    }

    /// Empties all rings once, and closes a block for each run that had samples.
    ///
    /// # Real-time: reader side
    pub fn empty(&mut self) {
        for run in 0..self.runs.len() {
            loop {
                let (drain, view) = &mut self.runs[run];
                take_batch(drain, &mut self.batch);
                if self.batch.is_empty() {
                    break;
                }
                self.sink.take(run, &self.batch);
                if let Some(file) = &mut self.file
                    && let Err(why) = file.append(run, &self.batch, view)
                {
                    self.file = None;
                    self.failed = Some(why);
                }
            }
        }
    }

    /// Empties all rings every [`INTERVAL`] and at each request, until `requests` are over; calls
    /// `then` after each time.
    ///
    /// # Real-time: reader side
    pub fn run(&mut self, requests: &DrainRequests, mut then: impl FnMut()) {
        // Whoever waits for a flush goes on, whatever ends this.
        let _ended = DrainEnded(requests);
        loop {
            requests.rest();
            if requests.is_over() {
                return;
            }
            let requested = requests.requested.load(Ordering::Acquire);
            self.empty();
            requests.emptied(requested);
            then();
        }
    }

    /// Empties the rings a last time, writes each run's final counters and the end of the file,
    /// which says whether the recording was ended `early`. Returns the sink, and the error that
    /// stopped the writing, if one did.
    ///
    /// # Real-time: reader side
    pub fn finish(mut self, early: bool) -> (S, Option<io::Error>) {
        self.empty();
        if let Some(mut file) = self.file {
            let counters = self
                .runs
                .iter()
                .enumerate()
                .try_for_each(|(run, (_, view))| file.write(run, &[], view));
            let mut views = self.runs.iter().map(|(_, view)| view);
            let counted = views.any(|view| view.missed() + view.unrecorded() > 0);
            let ended = counters.and_then(|()| file.end(early));
            let ended = ended.and_then(|()| if counted { file.first() } else { Ok(()) });
            if let Err(why) = ended {
                self.failed = Some(why);
            }
        }
        (self.sink, self.failed)
    }
}

/// Requests to the thread that drains, from any other one. Atomic numbers and futexes alone: to end
/// it is harmless in a child of fork(2), which has no such thread; to flush is not, and would wait
/// for ever there.
#[derive(Debug, Default)]
pub struct DrainRequests {
    /// Requests to empty the rings at once, or to end, so far.
    requested: AtomicU64,
    /// Requests that were carried out; `u64::MAX` once the thread has ended.
    done: AtomicU64,
    over: AtomicBool,
}

impl DrainRequests {
    /// Has the rings emptied, and waits for it; returns at once where the draining has ended.
    ///
    /// # Real-time: setup only
    pub fn flush(&self) {
        let wanted = self.requested.fetch_add(1, Ordering::AcqRel) + 1;
        let _woken = futex::wake(&self.requested, u32::MAX, Scope::Process);
        loop {
            let done = self.done.load(Ordering::Acquire);
            if done >= wanted {
                return;
            }
            futex::wait(&self.done, done as u32, Scope::Process);
        }
    }

    /// Ends the draining: what is in the rings by now is left for [`Drainage::finish`].
    ///
    /// # Real-time: setup only
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.requested.fetch_add(1, Ordering::Release);
        let _woken = futex::wake(&self.requested, u32::MAX, Scope::Process);
    }

    /// True once [`DrainRequests::end`] was called.
    ///
    /// # Real-time: reader side
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Sleeps for [`INTERVAL`], or until the next request: for the one thread that drains.
    ///
    /// # Real-time: reader side
    pub fn rest(&self) {
        let done = self.done.load(Ordering::Relaxed);
        let until_ns = now_ns(ClockId::Monotonic) + INTERVAL.as_ns().unsigned_abs();
        // Where there are more by now it returns at once.
        futex::wait_until(&self.requested, done as u32, Scope::Process, until_ns);
    }

    /// So many requests are carried out.
    fn emptied(&self, requested: u64) {
        self.done.store(requested, Ordering::Release);
        let _woken = futex::wake(&self.done, u32::MAX, Scope::Process);
    }
}

/// Says that the draining has ended, when it is dropped.
struct DrainEnded<'a>(&'a DrainRequests);

impl Drop for DrainEnded<'_> {
    fn drop(&mut self) {
        self.0.emptied(u64::MAX);
    }
}

/// The number of bytes that were written; shared with the code that checks it at the end.
#[derive(Clone, Debug, Default)]
pub struct BytesWritten(Arc<AtomicU64>);

impl BytesWritten {
    /// Checks that `file` is as long as the bytes that were written.
    ///
    /// # Errors
    /// It is shorter or longer, or its length cannot be read.
    ///
    /// # Real-time: setup only
    pub fn check(&self, file: &File) -> io::Result<()> {
        let (written, found) = (self.0.load(Ordering::Acquire), file.metadata()?.len());
        if written == found {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "another program changed it while it was written: {found} bytes long, {written} were \
             written"
        )))
    }
}

/// The writer of such a file.
#[derive(Debug)]
pub struct GrowingFile {
    file: File,
    /// `None` for what has no length: a pipe, a terminal.
    length: Option<BytesWritten>,
}

impl GrowingFile {
    /// A new file, of which nothing was written yet.
    ///
    /// # Real-time: setup only
    pub fn new(file: File, length: BytesWritten) -> Self {
        Self { file, length: Some(length) }
    }

    /// Something without a length of its own.
    ///
    /// # Real-time: setup only
    pub fn stream(file: File) -> Self {
        Self { file, length: None }
    }
}

impl Write for GrowingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(length) = &self.length {
            length.check(&self.file)?;
        }
        let written = self.file.write(bytes)?;
        if let Some(length) = &self.length {
            length.0.fetch_add(written as u64, Ordering::Release);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use punctual_core::file::{BLOCK_HEADER_BYTES, FILE_HEADER_BYTES};
    use punctual_core::ring::{SplitRing, split, words};
    use punctual_core::sample::Flags;

    #[derive(Default)]
    struct Kept(Vec<(usize, Sample)>);

    impl Sink for Kept {
        fn take(&mut self, run: usize, samples: &[Sample]) {
            self.0.extend(samples.iter().map(|&sample| (run, sample)));
        }
    }

    fn sample(cycle: u64) -> Sample {
        Sample { cycle, lateness: Span::from_ns(7), flags: Flags::NONE }
    }

    /// The headers of all blocks in `bytes`, which must all be whole.
    fn blocks(mut bytes: &[u8]) -> Vec<BlockHeader> {
        let mut found = Vec::new();
        while let Some((header, rest)) = bytes.split_first_chunk::<BLOCK_HEADER_BYTES>() {
            let header = BlockHeader::from_bytes(header, crc32fast::hash).expect("whole");
            let (payload, rest) = rest.split_at(header.payload_bytes());
            assert_eq!(crc32fast::hash(payload), header.payload_crc);
            found.push(header);
            bytes = rest;
        }
        found
    }

    #[test]
    fn a_flush_empties_the_rings_now_and_none_waits_for_a_drain_that_has_ended() {
        let storage: Vec<AtomicU64> = (0..words(16)).map(|_| AtomicU64::new(0)).collect();
        let SplitRing { ring: mut recorder, drain, view } = split(&storage).expect("fits");
        let mut drainage =
            Drainage::new(vec![(drain, view)], Kept::default(), None::<SampleFile<Vec<u8>>>);
        let (requests, looks) = (DrainRequests::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drainage.run(&requests, || {
                    looks.fetch_add(1, Ordering::Relaxed);
                });
            });
            // A ring that was not emptied before a flush returned would lose the next 16.
            for round in 0..20 {
                (0..16).for_each(|n| recorder.push(sample(round * 16 + n)));
                requests.flush();
            }
            requests.end();
        });
        requests.flush();
        assert!(looks.load(Ordering::Relaxed) >= 20);
        assert_eq!((drainage.finish(false).0.0.len(), view.unrecorded()), (20 * 16, 0));
    }

    #[test]
    fn every_sample_reaches_sink_and_file_with_its_runs_counters() {
        let storage: Vec<Vec<AtomicU64>> =
            (0..2).map(|_| (0..words(16)).map(|_| AtomicU64::new(0)).collect()).collect();
        let SplitRing { ring: mut first, drain: drain0, view: view0 } =
            split(&storage[0]).expect("fits");
        let SplitRing { ring: mut second, drain: drain1, view: view1 } =
            split(&storage[1]).expect("fits");
        let mut bytes = Vec::new();
        let file = SampleFile::begin(&mut bytes, "{}", 2).expect("memory");
        let mut drainage =
            Drainage::new(vec![(drain0, view0), (drain1, view1)], Kept::default(), Some(file));
        (0..10).for_each(|cycle| first.push(sample(cycle)));
        drainage.empty();
        (10..40).for_each(|cycle| first.push(sample(cycle)));
        second.push(sample(3));
        second.miss(5);
        let (kept, failed) = drainage.finish(false);
        assert!(failed.is_none());
        assert_eq!(kept.0.len(), 10 + 16 + 1, "a ring of 16 takes 16 more");
        let blocks = blocks(&bytes[FILE_HEADER_BYTES + 2..]);
        let samples: u32 = blocks.iter().map(|block| block.samples).sum();
        assert_eq!(samples, 27);
        assert_eq!(blocks.last().map(|block| block.kind), Some(BlockKind::End));
        let last = |run| blocks.iter().rfind(|b| b.run == run && b.kind == BlockKind::Data);
        assert_eq!(last(0).map(|b| (b.first, b.unrecorded)), Some((26, 14)));
        assert_eq!(last(1).map(|b| (b.first, b.missed)), Some((1, 5)));
    }

    /// A disk that is full after so many bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 < bytes.len() {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_ends_the_writing_not_the_measuring() {
        let storage: Vec<AtomicU64> = (0..words(16)).map(|_| AtomicU64::new(0)).collect();
        let SplitRing { ring: mut recorder, drain, view } = split(&storage).expect("fits");
        let file = SampleFile::begin(Full(200), "{}", 1).expect("fits so far");
        let mut drainage = Drainage::new(vec![(drain, view)], Kept::default(), Some(file));
        for round in 0..4 {
            (0..8).for_each(|n| recorder.push(sample(round * 8 + n)));
            drainage.empty();
        }
        let (kept, failed) = drainage.finish(false);
        assert_eq!(kept.0.len(), 32);
        assert_eq!(failed.map(|why| why.kind()), Some(io::ErrorKind::StorageFull));
        assert!(SampleFile::begin(Full(3), "{}", 1).is_err());
    }

    /// Returns the number of calls for the first samples of a file, where this many samples and
    /// missed releases came in each of three rounds.
    fn firsts(samples: u64, missed: u64) -> usize {
        let storage: Vec<AtomicU64> = (0..words(16)).map(|_| AtomicU64::new(0)).collect();
        let SplitRing { ring: mut recorder, drain, view } = split(&storage).expect("fits");
        let called = Arc::new(AtomicUsize::new(0));
        let calls = Arc::clone(&called);
        let file =
            SampleFile::begin(Vec::new(), "{}", 1).expect("memory").at_first_samples(move || {
                calls.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
        let mut drainage = Drainage::new(vec![(drain, view)], Kept::default(), Some(file));
        drainage.empty();
        assert_eq!(called.load(Ordering::Relaxed), 0, "the head alone is nothing to keep");
        for round in 0..3 {
            (0..samples).for_each(|n| recorder.push(sample(round * samples + n)));
            recorder.miss(missed);
            drainage.empty();
            assert_eq!(called.load(Ordering::Relaxed), usize::from(samples > 0));
        }
        assert!(drainage.finish(true).1.is_none());
        called.load(Ordering::Relaxed)
    }

    #[test]
    fn a_file_takes_its_place_once_when_something_is_in_it() {
        assert_eq!(firsts(4, 0), 1);
        assert_eq!(firsts(4, 2), 1);
        assert_eq!(firsts(0, 2), 1, "no release ran, and that is a finding");
        assert_eq!(firsts(0, 0), 0);
    }

    #[test]
    fn a_place_that_cannot_be_had_is_an_error_of_the_file() {
        let storage: Vec<AtomicU64> = (0..words(16)).map(|_| AtomicU64::new(0)).collect();
        let SplitRing { ring: mut recorder, drain, view } = split(&storage).expect("fits");
        let file = SampleFile::begin(Vec::new(), "{}", 1).expect("memory");
        let file =
            file.at_first_samples(|| Err(io::Error::from(io::ErrorKind::ReadOnlyFilesystem)));
        let drainage = Drainage::new(vec![(drain, view)], Kept::default(), Some(file));
        recorder.push(sample(0));
        let (kept, failed) = drainage.finish(false);
        assert_eq!(kept.0.len(), 1);
        assert_eq!(failed.map(|why| why.kind()), Some(io::ErrorKind::ReadOnlyFilesystem));
    }
}
