//! `punctual __load`: a load, in the process that the tool started for it. Not for people.
//!
//! Runs before anything else of the program: a load sets up its own process and nothing of ours may
//! be in its way.

use std::io::stdout;
use std::process::ExitCode;

use punctual_lab::load::run_child;

use crate::experiment::launcher;

/// Runs the load that `words` ask for, and is over.
pub(crate) fn run(words: &[String]) -> ExitCode {
    ExitCode::from(run_child(words, &launcher(), &mut stdout().lock()))
}
