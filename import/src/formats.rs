//! The formats of other programs: one row each, recognised by content; all runs of a file.
//!
//! A new format is a file here with its row, and its line in [`ALL`]. Recognition ([`detect`]), the
//! list in error messages and `--help`, fuzz bodies and the table of docs/importing.md come from
//! the rows; tests name the seeds and the fixture that a row lacks.

mod cyclictest;
mod hdr;
mod jitterdebugger;
mod latmus;
mod linuxcnc;
mod rtla;
mod run;
mod stress_ng;
mod threads;
mod xenomai;

use std::fmt;
use std::io::Read;

use crate::samples::RUNS_MAX;
use run::RunBuilder;

pub use crate::text::ImportError;
pub use run::ImportedRun;

/// Every format, in the order of the documentation.
pub static ALL: &[Format] = &[
    threads::FORMAT,
    cyclictest::HISTOGRAM,
    cyclictest::VERBOSE,
    jitterdebugger::FORMAT,
    rtla::FORMAT,
    stress_ng::FORMAT,
    latmus::FORMAT,
    xenomai::TEXT,
    xenomai::GNUPLOT,
    linuxcnc::LATENCYBINS,
    linuxcnc::LATENCY_HISTOGRAM,
    hdr::FORMAT,
];

/// The format of that name.
pub fn find(name: &str) -> Option<&'static Format> {
    ALL.iter().find(|format| format.name == name)
}

/// The programs whose files are read, each once: for error messages and `--help`.
pub fn programs() -> String {
    let mut programs: Vec<&str> = Vec::new();
    for writer in ALL.iter().flat_map(|format| format.writers) {
        if !programs.contains(&writer.program) {
            programs.push(writer.program);
        }
    }
    programs.join(", ")
}

/// A format of another program: everything in which it differs from the others.
pub struct Format {
    /// Its name, short and unique: tests, fuzz bodies and seeds go by it.
    pub name: &'static str,
    /// The programs that write it, or the ways in which one does.
    pub writers: &'static [Writer],
    /// Recognises it.
    sniff: Sniff,
    /// Reads a whole file, and says where that ended.
    read: fn(&mut Reading<'_>, &mut dyn Read) -> Result<Place, ImportError>,
}

impl PartialEq for Format {
    fn eq(&self, format: &Self) -> bool {
        self.name == format.name
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The program that writes a format, and the content of its files: a row of docs/importing.md.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// The program, as error messages and `--help` list it.
    pub program: &'static str,
    /// The kind of file: "histogram of cyclictest".
    pub file: &'static str,
    /// The command, or the library, that makes such a file.
    pub made_with: &'static str,
    /// Which quantity it holds, and what becomes a run.
    pub holds: &'static str,
    /// The resolution of its values.
    pub resolution: &'static str,
    /// The quantities that it does not record.
    pub cannot_tell: &'static str,
}

/// The mark by which a format is recognised. No two formats claim the same file, which a test
/// checks.
enum Sniff {
    /// One line, wherever it stands in the head of the file; without its end.
    Line(fn(&str) -> bool),
    /// The head of the file, as bytes.
    Head(fn(&[u8]) -> bool),
}

/// Bytes of a file that are looked at.
pub const HEAD_BYTES: usize = 1 << 16;

/// The format of a file that begins with `head` (its first [`HEAD_BYTES`], or all of it); `None`
/// for one that no program known here writes.
///
/// Looks at bytes; reads nothing. Names of files do not count.
pub fn detect(head: &[u8]) -> Option<&'static Format> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    // The head may end inside of a letter; bytes that are no text make none of what is looked for.
    let text = String::from_utf8_lossy(head);
    let first = |is_it: &dyn Fn(&Sniff) -> bool| ALL.iter().find(|format| is_it(&format.sniff));
    let by_head = first(&|sniff| matches!(sniff, Sniff::Head(is) if is(head)));
    let by_line = |line: &str| first(&|sniff| matches!(sniff, Sniff::Line(is) if is(line)));
    by_head.or_else(|| text.lines().map(str::trim_end).find_map(by_line))
}

/// All that was read of a file.
#[derive(Clone, Debug)]
pub struct Import {
    /// When the recording began, as the program wrote it.
    pub started_at: Option<String>,
    /// Warnings for a reader, before the numbers are believed.
    pub warnings: Vec<String>,
    /// Its runs, at least one.
    pub runs: Vec<ImportedRun>,
    /// True where the file does not state the unit of its values, so that a requested one counts.
    pub takes_unit: bool,
    /// True where the file says that something in its values ended the recording.
    pub ended_early: bool,
}

/// Reads a whole file of `format`.
///
/// # Errors
/// A line that the program would not write, with its place; a reader that fails.
pub fn read(
    format: &Format,
    mut reader: impl Read,
    request: &ImportRequest,
) -> Result<Import, ImportError> {
    let mut reading = Reading::new(request);
    // The place at which a contradiction shows is where the file ends.
    let last = (format.read)(&mut reading, &mut reader)?;
    let Reading { source, started_at, warnings, runs, takes_unit, ended_early, .. } = reading;
    if runs.is_empty() {
        return Err(last.refuse("the file contains no values"));
    }
    let finish = |run: RunBuilder| run.finish(&source).map_err(|why| last.refuse(why));
    let runs = runs.into_iter().map(finish).collect::<Result<_, _>>()?;
    Ok(Import { started_at, warnings, runs, takes_unit, ended_early })
}

/// The request for a file.
#[derive(Clone, Debug, Default)]
pub struct ImportRequest {
    /// Thresholds to watch in addition to the 1-2-5 ladder, ns.
    pub thresholds_ns: Vec<i64>,
    /// The unit of values, ns, for a file that does not state it.
    pub unit_ns: Option<i64>,
}

/// A file while it is being read, which the reader of its format fills in.
///
/// In bounded memory: at most [`RUNS_MAX`] runs.
#[derive(Debug)]
struct Reading<'a> {
    request: &'a ImportRequest,
    source: Source,
    started_at: Option<String>,
    warnings: Vec<String>,
    runs: Vec<RunBuilder>,
    takes_unit: bool,
    ended_early: bool,
}

impl<'a> Reading<'a> {
    /// A file from which nothing was read yet.
    fn new(request: &'a ImportRequest) -> Self {
        Self {
            request,
            source: Source::default(),
            started_at: None,
            warnings: Vec::new(),
            runs: Vec::new(),
            takes_unit: false,
            ended_early: false,
        }
    }

    /// The requested unit, of a file that does not state it.
    fn requested_unit_ns(&mut self) -> Option<i64> {
        self.takes_unit = true;
        self.request.unit_ns
    }

    /// Adds a run.
    ///
    /// # Errors
    /// More than [`RUNS_MAX`] of them.
    fn add(&mut self, run: RunBuilder) -> Result<&mut RunBuilder, String> {
        if self.runs.len() == RUNS_MAX {
            return Err(format!("more than {RUNS_MAX} runs"));
        }
        self.runs.push(run);
        Ok(self.runs.last_mut().unwrap_or_else(|| unreachable!("one was just added")))
    }

    /// The unit of a file that does not state it: the requested one, else the program's default.
    fn unit_ns(&mut self, otherwise_ns: i64, option: &str) -> i64 {
        match self.requested_unit_ns() {
            Some(unit_ns) => unit_ns,
            None => {
                self.warnings.push(format!(
                    "this format does not record its unit: read as the default, {}; if the file \
                     was made with {option}, give --unit",
                    if otherwise_ns == 1 { "1 ns" } else { "1 µs" }
                ));
                otherwise_ns
            }
        }
    }

    /// Notes facts that the file does not record of any of its runs.
    fn cannot_know(&mut self, facts: &[&str]) {
        self.source.cannot_know.extend(facts.iter().map(|fact| (*fact).to_owned()));
    }
}

/// Where the runs of a file come from; the same for all of them. Nothing in it is estimated.
#[derive(Clone, Debug, Default)]
struct Source {
    format: &'static str,
    program: &'static str,
    version: Option<String>,
    command: Option<String>,
    cannot_know: Vec<String>,
}

/// The statements of a file about one run beside its values, and how these are to be read.
///
/// A reader sets what its file has; that the numbers fit together is checked at the end, by
/// [`RunBuilder::finish`].
#[derive(Debug, Default)]
struct Stated {
    /// "thread 0", "CPU 1".
    name: String,
    cpu: Option<u32>,
    period_ns: Option<u64>,
    priority: Option<u8>,
    policy: Option<String>,
    /// Width of all buckets, ns; `None` where it grows with the value.
    width_ns: Option<i64>,
    /// Width of the widest one, or of the first where it grows with the value, ns.
    widest_ns: i64,
    /// Where the histogram ends, ns; `None` without one.
    limit_ns: Option<i64>,
    /// The number of values, where the file has it.
    n: Option<u64>,
    /// The number of values beyond the histogram, where the file has it.
    beyond: Option<u64>,
    min_ns: Option<f64>,
    mean_ns: Option<f64>,
    max_ns: Option<f64>,
    stddev_ns: Option<f64>,
    /// The most that the true min, mean and max may be above those given, ns.
    rounding_ns: i64,
    /// Quantiles given, as in [`punctual_analysis::quantile::Probability::SUMMARY`].
    quantiles_ns: [Option<f64>; 5],
    /// Releases that never ran; `None` where the program does not count them.
    missed: Option<u64>,
    /// Values that were measured and lost.
    unrecorded: u64,
    /// Facts of this run alone that the file does not record.
    cannot_know: Vec<String>,
}

/// Where the reading of a file ended.
#[derive(Clone, Copy, Debug)]
enum Place {
    Line(u64),
    Byte(u64),
}

impl Place {
    fn refuse(self, why: impl Into<String>) -> ImportError {
        match self {
            Self::Line(line) => ImportError::line(line, why),
            Self::Byte(at_byte) => ImportError::byte(at_byte, why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_a_file_name() {
        for (at, format) in ALL.iter().enumerate() {
            assert!(!ALL[..at].contains(format), "{format:?} twice");
            let plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(!format.name.is_empty() && format.name.chars().all(plain), "{format:?}");
            assert!(!format.writers.is_empty(), "{format:?}: nothing writes it");
            assert_eq!(find(format.name), Some(format));
        }
    }

    #[test]
    fn each_program_is_listed_once() {
        let programs = programs();
        assert_eq!(programs.matches("cyclictest").count(), 1, "{programs}");
        assert!(programs.starts_with("cyclictest, oslat"), "{programs}");
    }

    #[test]
    fn what_nobody_writes_is_nothing() {
        for bytes in [&b""[..], b"lateness\n7\n", b"1,2\n", b"\0\0\0\0", b"PUNCTUAL", b"\xff\xfe"] {
            assert_eq!(detect(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_line_gives_the_program_away_wherever_it_stands() {
        let name = |text: &str| detect(text.as_bytes()).map(|format| format.name);
        assert_eq!(name("# x\r\n# Histogram\r\n"), Some("cyclictest_histogram"));
        let verbose = "policy: fifo\n       0:       1:      12\n";
        assert_eq!(name(verbose), Some("cyclictest_verbose"));
        assert_eq!(name(" {\"version\": 3"), Some("threads"));
        assert_eq!(name("== Sampling period: 100 us\n"), Some("xenomai_text"));
    }

    /// The rows of the table may stand in any order: of the files that programs really wrote none
    /// is claimed by two of them.
    #[test]
    fn no_file_is_claimed_twice() {
        let peers = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/peers");
        let mut files = 0;
        for program in std::fs::read_dir(peers).expect("readable").flatten() {
            for file in std::fs::read_dir(program.path()).into_iter().flatten().flatten() {
                if file.file_name().to_string_lossy().ends_with(".golden.json") {
                    continue;
                }
                let bytes = std::fs::read(file.path()).expect("readable");
                let text = String::from_utf8_lossy(&bytes);
                let claims = |format: &&Format| match &format.sniff {
                    Sniff::Head(is) => is(&bytes),
                    Sniff::Line(is) => text.lines().map(str::trim_end).any(is),
                };
                let claimed: Vec<_> = ALL.iter().filter(claims).collect();
                assert_eq!(claimed.len(), 1, "{}: {claimed:?}", file.path().display());
                files += 1;
            }
        }
        assert!(files > ALL.len(), "{files}");
    }
}
