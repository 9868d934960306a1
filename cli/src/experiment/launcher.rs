//! How the tool starts its own loads: this program again, with a word that selects them.

use punctual_lab::load::Reexec;

/// The word.
pub(crate) const WORD: &str = "__load";

/// Starts a load.
pub(crate) fn launcher() -> Reexec {
    Reexec::new(&[WORD])
}
