//! The exit status of a subcommand that could run.
//!
//! What could not run is an error, and `main` turns that into exit 2. Never ends the process.

use anyhow::Result;

use crate::report::Report;

/// The outcome of a subcommand that could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All limits and claims hold.
    Fine,
    /// A limit or claim failed.
    Failed,
    /// A command that was run ended with this status; 128 and the signal where one ended it.
    Status(u8),
}

impl Exit {
    /// The exit status that the verdict of a report requires.
    pub(crate) fn of(report: &Report) -> Self {
        if report.envelope.verdict.ok { Self::Fine } else { Self::Failed }
    }

    /// As `of`, or the error that occurred on the way: returned last, after everything was written.
    pub(crate) fn after(report: &Report, trouble: Option<anyhow::Error>) -> Result<Self> {
        trouble.map_or_else(|| Ok(Self::of(report)), Err)
    }
}
