//! Settings changed and put back: a journal first, then the write, then a look at what it became.
//!
//! Works on any [`KnobFiles`]: this machine's, a directory's, or a test's with faults. Before a
//! file is written, its old text is in the journal and on the disk, so that whatever ends the
//! program, a later [`revert`] can put it back. A file is put back only where its text is still the
//! one that was left there. Never prints; never writes a file that no step names.

mod apply;
mod files;
mod journal;
mod revert;

pub use apply::{AppliedStep, StepOutcome, WantedValue, apply};
pub use files::{KnobFiles, MachineFiles};
pub use journal::{JournalEntry, JournalError, TuningJournal, TuningStore};
pub use revert::{RevertOutcome, RevertedStep, revert, state};

/// The word that counts of a text: of a choice, the one in brackets or parentheses.
pub fn active(text: &str) -> &str {
    let text = text.trim();
    let between = |open, close| Some(text.split_once(open)?.1.split_once(close)?.0);
    between('[', ']').or_else(|| between('(', ')')).unwrap_or(text)
}

/// Whether a text says what was written: the same, or the same mask in other digits.
fn says(text: &str, value: &str) -> bool {
    let mask = |text: &str| {
        let digits: String = text.chars().filter(|c| *c != ',').collect();
        let is_mask = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        is_mask.then(|| digits.trim_start_matches('0').to_ascii_lowercase())
    };
    let text = active(text);
    text == value || mask(text).is_some_and(|text| Some(text) == mask(value))
}

#[cfg(test)]
mod tests;
