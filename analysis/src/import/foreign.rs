//! All runs of another program's file.
//!
//! One door for twelve formats: [`read`] sends the bytes to the reader of the format, and gives
//! back runs with what the file cannot tell. Pure; memory is bounded by [`RUNS_MAX`].

use std::io::Read;

pub use super::detect::Format;
pub use super::error::ImportError;
pub use super::told::Run;
use super::told::{Source, Told};
use super::{cyclictest, hdr, jitterdebugger, latmus, linuxcnc, rtla, stress_ng, threads, xenomai};

/// The most runs of a file: each takes about 300 KiB.
pub const RUNS_MAX: usize = 1024;

/// What is asked of a file.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Thresholds to watch beside the 1-2-5 ladder, ns.
    pub thresholds_ns: Vec<i64>,
    /// The unit of values, ns, for a file that does not tell it.
    pub unit_ns: Option<i64>,
}

/// What a file holds.
#[derive(Clone, Debug)]
pub struct Import {
    /// When the recording began, as the program wrote it.
    pub started_at: Option<String>,
    /// What a reader should know before believing the numbers.
    pub warnings: Vec<String>,
    /// Its runs, at least one.
    pub runs: Vec<Run>,
}

/// A file while it is being read.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub(super) asked: &'a Asked,
    pub(super) source: Source,
    pub(super) started_at: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) runs: Vec<Told>,
}

impl Reading<'_> {
    /// Takes one more run in.
    pub(super) fn add(&mut self, run: Told) -> Result<&mut Told, String> {
        if self.runs.len() == RUNS_MAX {
            return Err(format!("more than {RUNS_MAX} runs"));
        }
        self.runs.push(run);
        Ok(self.runs.last_mut().unwrap_or_else(|| unreachable!("one was just added")))
    }

    /// The unit of a file that does not tell it: the one asked for, else the program's default.
    pub(super) fn unit_ns(&mut self, otherwise_ns: i64, option: &str) -> i64 {
        match self.asked.unit_ns {
            Some(unit_ns) => unit_ns,
            None => {
                self.warnings.push(format!(
                    "this format does not tell its unit: read as the default, {}; if it was made \
                     with {option}, give --unit",
                    if otherwise_ns == 1 { "1 ns" } else { "1 µs" }
                ));
                otherwise_ns
            }
        }
    }

    /// Says what no run of the file can tell.
    pub(super) fn cannot_know(&mut self, what: &[&str]) {
        self.source.cannot_know.extend(what.iter().map(|what| (*what).to_owned()));
    }
}

/// Reads a whole file of `format`.
///
/// # Errors
/// What the program would not write, with its place; a reader that fails.
pub fn read(format: Format, reader: impl Read, asked: &Asked) -> Result<Import, ImportError> {
    let mut reading = Reading {
        asked,
        source: Source::default(),
        started_at: None,
        warnings: Vec::new(),
        runs: Vec::new(),
    };
    let file = &mut reading;
    // The place at which a contradiction shows is where the file ends.
    let last = match format {
        Format::Threads => threads::read(file, reader)?,
        Format::CyclictestHistogram => cyclictest::histogram(file, reader)?,
        Format::CyclictestVerbose => cyclictest::verbose(file, reader)?,
        Format::JitterdebuggerSamples => jitterdebugger::samples(file, reader)?,
        Format::Rtla => rtla::read(file, reader)?,
        Format::StressNg => stress_ng::read(file, reader)?,
        Format::Latmus => latmus::read(file, reader)?,
        Format::XenomaiText => xenomai::text(file, reader)?,
        Format::XenomaiGnuplot => xenomai::gnuplot(file, reader)?,
        Format::Latencybins => linuxcnc::latencybins(file, reader)?,
        Format::LatencyHistogram => linuxcnc::latency_histogram(file, reader)?,
        Format::HdrLog => hdr::read(file, reader)?,
    };
    let Reading { source, started_at, warnings, runs, .. } = reading;
    if runs.is_empty() {
        return Err(last.refuse("it ends without any values"));
    }
    let finish = |told: Told| told.finish(&source).map_err(|why| last.refuse(why));
    let runs = runs.into_iter().map(finish).collect::<Result<_, _>>()?;
    Ok(Import { started_at, warnings, runs })
}

/// Where the reading of a file ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
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
