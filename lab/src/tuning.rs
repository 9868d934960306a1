//! Settings changed and put back: a journal first, then the write, then a look at what it became.
//!
//! Works on any [`KnobFiles`]: this machine's, a directory's, or a test's with faults. Before a
//! file is written, its old text is in the journal and on the disk, so that whatever ends the
//! program, a later [`revert`] can put it back. A file is put back only where its text is still the
//! one that was left there. A control group is such a file too: it is there or not, and what is
//! written inside goes with it. Never prints; never writes a file that no step names.

mod apply;
mod experiment;
mod files;
mod group;
mod journal;
mod revert;
mod text;

pub use apply::{AppliedStep, StepOutcome, WantedValue, apply};
pub use experiment::{
    CountedTail, Measure, SettingSets, SettingTrial, TuningTrials, least, try_settings,
};
pub use files::{KnobFiles, MachineFiles};
pub use group::{MovedThreads, move_threads};
pub use journal::{JournalEntry, JournalError, TuningJournal, TuningStore};
pub use revert::{RevertOutcome, RevertedStep, put_back, revert, state};
pub use text::active;

#[cfg(test)]
mod tests;
