//! A file of another program while it is read: what was requested of it, what came out so far.
//!
//! The readers of single formats fill it in. Memory is bounded by [`RUNS_MAX`].

use crate::formats::run::{RunBuilder, Source};
use crate::text::ImportError;

pub(super) use crate::samples::RUNS_MAX;

/// What is requested of a file.
#[derive(Clone, Debug, Default)]
pub struct ImportRequest {
    /// Thresholds to watch in addition to the 1-2-5 ladder, ns.
    pub thresholds_ns: Vec<i64>,
    /// The unit of values, ns, for a file that does not state it.
    pub unit_ns: Option<i64>,
}

/// A file while it is being read.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub(super) request: &'a ImportRequest,
    pub(super) source: Source,
    pub(super) started_at: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) runs: Vec<RunBuilder>,
}

impl<'a> Reading<'a> {
    /// Of a file from which nothing was read yet.
    pub(super) fn new(request: &'a ImportRequest) -> Self {
        Self {
            request,
            source: Source::default(),
            started_at: None,
            warnings: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Takes one more run in.
    pub(super) fn add(&mut self, run: RunBuilder) -> Result<&mut RunBuilder, String> {
        if self.runs.len() == RUNS_MAX {
            return Err(format!("more than {RUNS_MAX} runs"));
        }
        self.runs.push(run);
        Ok(self.runs.last_mut().unwrap_or_else(|| unreachable!("one was just added")))
    }

    /// The unit of a file that does not state it: the requested one, else the program's default.
    pub(super) fn unit_ns(&mut self, otherwise_ns: i64, option: &str) -> i64 {
        match self.request.unit_ns {
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

    /// Notes what no run of the file records.
    pub(super) fn cannot_know(&mut self, what: &[&str]) {
        self.source.cannot_know.extend(what.iter().map(|what| (*what).to_owned()));
    }
}

/// Where the reading of a file ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Line(u64),
    Byte(u64),
}

impl Place {
    pub(super) fn refuse(self, why: impl Into<String>) -> ImportError {
        match self {
            Self::Line(line) => ImportError::line(line, why),
            Self::Byte(at_byte) => ImportError::byte(at_byte, why),
        }
    }
}
