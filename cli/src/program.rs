//! This program: its version, as results name it, and how it starts itself as a load.

use punctual_lab::load::Reexec;
use punctual_report::Program;

/// The version, and the commit where this is a release build of a git clone (`build.rs`).
pub(crate) const VERSION: &str = env!("PUNCTUAL_VERSION");

/// The commit of such a build; empty in others.
const COMMIT: &str = env!("PUNCTUAL_COMMIT");

/// This program, as its results name it.
pub(crate) const PROGRAM: Program = Program {
    version: env!("CARGO_PKG_VERSION"),
    commit: if COMMIT.is_empty() { None } else { Some(COMMIT) },
};

/// The first argument of this program by which it is a load and not the tool.
pub(crate) const LOAD_WORD: &str = "__load";

/// Starts a load.
pub(crate) fn launcher() -> Reexec {
    Reexec::new(&[LOAD_WORD])
}
