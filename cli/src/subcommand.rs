//! Common parts of subcommands: arguments that execute, their exit status, and where results are
//! kept.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow};
use punctual_report::Report;

use crate::output::{self, Dir};

/// The outcome of a subcommand that could run; what could not run is an error, and exit 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All limits and claims hold.
    Fine,
    /// A limit or claim failed, or the watchdog ended the run.
    Failed,
    /// None failed, and one needs more data than there are.
    Undecided,
    /// A command that was run ended with this status; 128 and the signal where one ended it.
    Status(u8),
}

impl Exit {
    /// The exit status that the verdict of a report requires.
    pub(crate) fn of(report: &Report) -> Self {
        let verdict = &report.envelope.verdict;
        match (verdict.ok, verdict.is_undecided()) {
            (true, _) => Self::Fine,
            (false, true) => Self::Undecided,
            (false, false) => Self::Failed,
        }
    }

    /// As `of`, or the error that occurred on the way: returned last, after everything was written.
    pub(crate) fn after(report: &Report, trouble: Option<Error>) -> Result<Self> {
        trouble.map_or_else(|| Ok(Self::of(report)), Err)
    }
}

/// Arguments of a subcommand, which say what it does.
pub(crate) trait Execute {
    /// Does it: a report out, a view printed.
    ///
    /// # Errors
    /// The subcommand could not run.
    fn execute(&self) -> Result<Exit>;
}

/// The directory of results where none is named.
pub(crate) const RESULTS: &str = "punctual-results";

/// Where results are kept: each in a directory of its own, with its page.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ResultsArgs {
    /// Directory in which each run creates its own directory [default: punctual-results]
    #[arg(long = "results", value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl ResultsArgs {
    /// The directory of all.
    pub(crate) fn path(&self) -> &Path {
        self.dir.as_deref().unwrap_or_else(|| Path::new(RESULTS))
    }

    /// Returns true where a directory was named.
    pub(crate) fn is_named(&self) -> bool {
        self.dir.is_some()
    }

    /// Makes the directory of a result that begins now.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn begin(&self) -> Result<Dir> {
        output::results_dir(self.path(), jiff::Timestamp::now())
            .map_err(|why| elsewhere(why, self.path(), "--results"))
    }
}

/// The way out where results cannot be kept in a directory. One that an earlier run as root left is
/// the usual reason, or a file system that cannot be written: there is another.
pub(crate) fn elsewhere(why: Error, results: &Path, option: &str) -> Error {
    let denied = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        matches!(kind, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem))
    };
    if why.chain().any(denied) {
        let results = results.display();
        return anyhow!("{why:#}; use another directory than {results} with {option} DIR");
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_written_is_refused_with_the_option_that_names_another() {
        let refused = |errno| {
            let why = Error::from(io::Error::from_raw_os_error(errno)).context("cannot make r");
            format!("{:#}", elsewhere(why, Path::new("r"), "--results"))
        };
        // EACCES and EROFS; ENOSPC says what to do itself.
        for errno in [13, 30] {
            let why = refused(errno);
            assert!(why.starts_with("cannot make r: "), "{why}");
            assert!(why.ends_with("; use another directory than r with --results DIR"), "{why}");
        }
        assert!(!refused(28).contains("another directory"));
    }
}
