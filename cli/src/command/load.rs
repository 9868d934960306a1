//! `punctual __load`: a load, in the process that the tool started for it. Not for people.
//!
//! Runs before anything else of the program: a load sets up its own process and nothing of ours may
//! be in its way.

use std::io::stdout;
use std::process::ExitCode;

use punctual_lab::load::{Reexec, run_child};

/// The word that selects it.
pub(crate) const WORD: &str = "__load";

/// How the tool starts its own loads: this program again.
pub(crate) fn launcher() -> Reexec {
    Reexec::new(&[WORD])
}

/// Runs the load that `words` ask for, and is over.
pub(crate) fn run(words: &[String]) -> ExitCode {
    ExitCode::from(run_child(words, &launcher(), &mut stdout().lock()))
}
