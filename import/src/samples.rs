//! Reads sample files block by block, up to the first damage.
//!
//! The layout is that of [`punctual_core::file`]. One block is held at a time (at most 16 MiB, and
//! never more than the bytes that really came). Every number is checked before it is used.

use std::io::{ErrorKind, Read};

use punctual_core::file::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, FILE_HEADER_BYTES, FILE_VERSION, FileHeader,
    JSON_BYTES_MAX,
};
use punctual_core::sample::{SAMPLE_BYTES, Sample};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The most runs of a file, of the project's own as of another program's.
pub const RUNS_MAX: usize = 1024;

/// One block of samples.
#[derive(Clone, Copy, Debug)]
pub struct SampleBlock<'a> {
    /// Index into [`FileInfo::runs`].
    pub run: usize,
    /// Its samples, cycles not decreasing.
    pub samples: &'a [Sample],
    /// Releases of this run that never ran, up to the end of this block.
    pub missed: u64,
    /// Samples of this run that did not fit, up to the end of this block.
    pub unrecorded: u64,
}

/// The counts of one run of a sample file, as far as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Its samples.
    pub samples: u64,
    /// Releases that never ran.
    pub missed: u64,
    /// Samples that did not fit.
    pub unrecorded: u64,
}

/// The state of reading one run.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    counts: RunCounts,
    /// The cycle of its last sample.
    cycle: u64,
}

/// The number of runs that a file describes: the elements take no memory.
#[derive(Deserialize)]
struct Described {
    runs: Vec<IgnoredAny>,
}

/// A sample file being read.
#[derive(Debug)]
pub struct SampleFileReader<R> {
    reader: R,
    info: FileInfo,
    progress: Vec<Progress>,
    at_byte: u64,
    bytes: Vec<u8>,
    samples: Vec<Sample>,
    ending: Option<FileEnding>,
}

impl<R: Read> SampleFileReader<R> {
    /// Reads the head of a file.
    ///
    /// # Errors
    /// Not a sample file, a newer one, one whose head is damaged or describes more than
    /// [`RUNS_MAX`] runs, or a reader that fails.
    pub fn open(mut reader: R) -> Result<Self, OpenError> {
        let mut head = [0; FILE_HEADER_BYTES];
        let got = read_up_to(&mut reader, &mut head)?;
        if got == 0 {
            return Err(OpenError::Empty);
        }
        let magic = &punctual_core::file::FILE_MAGIC;
        if got < head.len() && head[..got.min(magic.len())] == magic[..got.min(magic.len())] {
            return Err(OpenError::Damaged("the file ends within the first 24 bytes".to_owned()));
        }
        let header = FileHeader::from_bytes(&head).ok_or(OpenError::Foreign)?;
        if header.version > FILE_VERSION {
            return Err(OpenError::Newer(header.version));
        }
        let damaged = |why: &str| Err(OpenError::Damaged(why.to_owned()));
        if header.version != FILE_VERSION || header.json_bytes > JSON_BYTES_MAX {
            return damaged("the header contains invalid numbers");
        }
        let mut bytes = Vec::new();
        let length = u64::from(header.json_bytes);
        reader.by_ref().take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return damaged("the file ends within its description");
        }
        if crc32fast::hash(&bytes) != header.json_crc {
            return damaged("the checksum of the description does not match");
        }
        let unreadable = |error: serde_json::Error| {
            OpenError::Damaged(format!("the description cannot be read: {error}"))
        };
        // Counted first: a run takes more memory than its text.
        let described: Described = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if described.runs.len() > RUNS_MAX {
            return Err(OpenError::Runs(described.runs.len()));
        }
        let info: FileInfo = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if info.runs.iter().any(|run| run.period_ns == 0) {
            return damaged("the description has a period of 0");
        }
        Ok(Self {
            reader,
            progress: vec![Progress::default(); info.runs.len()],
            info,
            at_byte: FILE_HEADER_BYTES as u64 + length,
            bytes,
            samples: Vec::new(),
            ending: None,
        })
    }

    /// The head of the file.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// The ending of the file; `None` while there may be more.
    pub fn ending(&self) -> Option<&FileEnding> {
        self.ending.as_ref()
    }

    /// The counts of a run so far; `None` when there is no such run.
    pub fn counts(&self, run: usize) -> Option<RunCounts> {
        self.progress.get(run).map(|progress| progress.counts)
    }

    /// The next block; `None` once the file ended, one way or another ([`Self::ending`]).
    pub fn next_block(&mut self) -> Option<SampleBlock<'_>> {
        if self.ending.is_some() {
            return None;
        }
        match self.read_block() {
            Ok(header) => {
                let run = header.run as usize;
                let (missed, unrecorded) = (header.missed, header.unrecorded);
                Some(SampleBlock { run, samples: &self.samples, missed, unrecorded })
            }
            Err(ending) => {
                self.ending = Some(ending);
                None
            }
        }
    }

    fn read_block(&mut self) -> Result<BlockHeader, FileEnding> {
        let mut head = [0; BLOCK_HEADER_BYTES];
        match read_up_to(&mut self.reader, &mut head) {
            Ok(BLOCK_HEADER_BYTES) => {}
            Ok(_) => return Err(FileEnding::Incomplete),
            Err(error) => return Err(self.damaged(format!("cannot be read: {error}"))),
        }
        let Some(header) = BlockHeader::from_bytes(&head, crc32fast::hash) else {
            return Err(self.damaged("the header of a block is damaged".to_owned()));
        };
        self.check_header(&header)?;
        if header.kind == BlockKind::End {
            return Err(self.end(header.run));
        }
        self.read_payload(&header)?;
        self.check_samples(&header)?;
        let progress = &mut self.progress[header.run as usize];
        progress.counts = RunCounts {
            samples: progress.counts.samples + self.samples.len() as u64,
            missed: header.missed,
            unrecorded: header.unrecorded,
        };
        if let Some(last) = self.samples.last() {
            progress.cycle = last.cycle;
        }
        self.at_byte += (BLOCK_HEADER_BYTES + header.payload_bytes()) as u64;
        Ok(header)
    }

    /// After the end block nothing may follow.
    fn end(&mut self, how: u32) -> FileEnding {
        match read_up_to(&mut self.reader, &mut [0]) {
            Ok(0) if how == 0 => FileEnding::Complete,
            Ok(0) => FileEnding::Early,
            Ok(_) => {
                self.at_byte += BLOCK_HEADER_BYTES as u64;
                self.damaged("bytes follow the end of the file".to_owned())
            }
            Err(error) => self.damaged(format!("cannot be read: {error}")),
        }
    }

    fn check_header(&self, header: &BlockHeader) -> Result<(), FileEnding> {
        if header.kind == BlockKind::End {
            return match header.samples {
                0 => Ok(()),
                _ => Err(self.damaged("the end block contains samples".to_owned())),
            };
        }
        let Some(counts) = self.counts(header.run as usize) else {
            let runs = self.progress.len();
            return Err(self
                .damaged(format!("a block of run {}, but the file has {runs} runs", header.run)));
        };
        if header.first != counts.samples {
            let (first, samples) = (header.first, counts.samples);
            return Err(
                self.damaged(format!("a block starts at sample {first}, expected {samples}"))
            );
        }
        if header.missed < counts.missed || header.unrecorded < counts.unrecorded {
            return Err(self.damaged("a counter of a run decreased".to_owned()));
        }
        Ok(())
    }

    fn read_payload(&mut self, header: &BlockHeader) -> Result<(), FileEnding> {
        self.bytes.clear();
        let length = header.payload_bytes();
        let read = self.reader.by_ref().take(length as u64).read_to_end(&mut self.bytes);
        if let Err(error) = read {
            return Err(self.damaged(format!("cannot be read: {error}")));
        }
        if self.bytes.len() != length {
            return Err(FileEnding::Incomplete);
        }
        if crc32fast::hash(&self.bytes) != header.payload_crc {
            return Err(self.damaged("the checksum of a block does not match".to_owned()));
        }
        decode(&self.bytes, &mut self.samples);
        Ok(())
    }

    fn check_samples(&self, header: &BlockHeader) -> Result<(), FileEnding> {
        let progress = &self.progress[header.run as usize];
        let from = if progress.counts.samples > 0 { progress.cycle } else { 0 };
        match is_rising(from, &self.samples) {
            true => Ok(()),
            false => Err(self.damaged("the cycles decrease".to_owned())),
        }
    }

    fn damaged(&self, why: String) -> FileEnding {
        FileEnding::Damaged { at_byte: self.at_byte, why }
    }
}

// What is done for each sample is in functions that are not generic: they are compiled here, and
// optimised, whatever the crate that reads a file is built with.

/// The samples of a block.
fn decode(bytes: &[u8], samples: &mut Vec<Sample>) {
    let (blocks, _) = bytes.as_chunks::<SAMPLE_BYTES>();
    samples.clear();
    samples.extend(blocks.iter().map(Sample::from_bytes));
}

/// Returns true where no cycle number is below the one before, from `cycle` on.
fn is_rising(mut cycle: u64, samples: &[Sample]) -> bool {
    let mut rising = true;
    for sample in samples {
        rising &= sample.cycle >= cycle;
        cycle = sample.cycle;
    }
    rising
}

/// Reads until the buffer is full or the source ends; how many bytes came.
fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match reader.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(bytes) => got += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Reads all of `bytes` as a sample file and returns how many samples came and how it ended: the
/// whole reader behind one call, for tests and fuzzing.
///
/// # Errors
/// As [`SampleFileReader::open`].
pub fn count_samples(bytes: &[u8]) -> Result<(u64, FileEnding), OpenError> {
    let mut file = SampleFileReader::open(bytes)?;
    let mut samples = 0;
    while let Some(block) = file.next_block() {
        samples += block.samples.len() as u64;
    }
    Ok((samples, file.ending.unwrap_or(FileEnding::Incomplete)))
}

/// The head of a sample file.
///
/// Written by the recorder's drain, read by the importer. Fields of later versions are ignored,
/// missing optional ones get their defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileInfo {
    /// Name of the program that wrote it.
    #[serde(default)]
    pub tool: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// When the recording began: RFC 3339, UTC.
    #[serde(default)]
    pub started_at: String,
    /// Facts of the machine, as in the result's `machine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<serde_json::Value>,
    /// The question that it was recorded for, as in the result's `headline.question_spec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<serde_json::Value>,
    /// The runs that the blocks refer to by index.
    pub runs: Vec<RunInfo>,
}

/// One run of a sample file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// Its name: `idle`, `cpu`, …
    #[serde(default)]
    pub name: String,
    /// The name of the condition it ran under: `idle`, `cpu`, `all loads`; none in files of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The name of the run in whose figures it counts, together with others; none: it stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// CPU it ran on.
    #[serde(default)]
    pub cpu: u32,
    /// Period, ns, at least 1.
    pub period_ns: u64,
    /// Instant of release 0, ns: on CLOCK_MONOTONIC, or on the time of the clock that is followed.
    #[serde(default)]
    pub epoch_ns: u64,
    /// Offset of the grid from multiples of the period, ns.
    #[serde(default)]
    pub phase_ns: u64,
    /// The clock that the grid follows, as it was requested; none: the grid is on CLOCK_MONOTONIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// Scheduling policy, as the kernel names it.
    #[serde(default)]
    pub policy: String,
    /// Priority within the policy, as the kernel counts; none for SCHED_OTHER.
    #[serde(default)]
    pub priority: Option<u8>,
    /// Its wait policy.
    #[serde(default)]
    pub wait: String,
    /// The loads that ran at the same time.
    #[serde(default)]
    pub load: Vec<String>,
    /// The planned length, ns.
    #[serde(default)]
    pub duration_ns: u64,
    /// Cost of a time stamp, ns: smaller differences cannot be measured.
    #[serde(default)]
    pub floor_ns: Option<f64>,
    /// Which clock stamped.
    #[serde(default)]
    pub clock: String,
}

impl RunInfo {
    /// The name of its condition. In files of before that is the last part of the run's name.
    pub fn condition(&self) -> &str {
        let last = || self.name.rsplit(", ").next().unwrap_or_default();
        self.condition.as_deref().unwrap_or_else(last)
    }
}

/// Why a file could not be opened as a sample file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It does not begin as a sample file does.
    #[error("not a sample file of punctual")]
    Foreign,
    /// It has no bytes.
    #[error("the file is empty")]
    Empty,
    /// It ends, or is damaged, before the first block.
    #[error("a punctual sample file with a damaged header: {0}")]
    Damaged(String),
    /// It describes more runs than are read.
    #[error("the file describes {0} runs; at most {RUNS_MAX} are read")]
    Runs(usize),
    /// A later version wrote it.
    #[error("written by a newer punctual (layout {0}); this one reads layout {FILE_VERSION}")]
    Newer(u32),
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

/// The ending of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEnding {
    /// With its end block.
    Complete,
    /// With its end block, which marks an early end of the recording.
    Early,
    /// Cut off, as after `kill -9`: all blocks before the cut were read.
    Incomplete,
    /// Everything before the damage was read, nothing after it.
    Damaged {
        /// Offset of the block that is damaged, bytes from the start of the file.
        at_byte: u64,
        /// The defect, in words.
        why: String,
    },
}
