//! Changing settings, one at a time: journal, write, look.

use std::io;

use super::KnobFiles;
use super::journal::{self, JournalError, TuningJournal, TuningStore};

/// A value that a setting is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedValue {
    /// The setting's path.
    pub path: String,
    /// What to write.
    pub value: String,
}

impl WantedValue {
    /// This value of this setting.
    pub fn new(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self { path: path.into(), value: value.into() }
    }
}

/// What became of one setting.
#[derive(Debug)]
pub enum StepOutcome {
    /// It has the value now.
    Applied,
    /// It had it before.
    Already,
    /// It could not be read, so it was not written.
    Unreadable(io::Error),
    /// The kernel refused the value; the setting is as it was.
    Refused(io::Error),
    /// It was written, and what it became cannot be read; a revert looks at it again.
    Unverified(io::Error),
    /// The kernel took the value without an error and shows another; the old one was put back.
    Lies {
        /// What it showed.
        shows: String,
        /// Whether the old text is there again.
        restored: bool,
    },
}

/// A setting and what became of it.
#[derive(Debug)]
pub struct AppliedStep {
    /// What was wanted.
    pub wanted: WantedValue,
    /// What became of it.
    pub outcome: StepOutcome,
}

/// Gives settings their values, in order. `done` sees each step at once.
///
/// A journal of an earlier boot is started anew: its settings went with that boot. One of this boot
/// is continued, so that a revert goes back to the beginning.
///
/// # Errors
/// Where the journal is foreign or damaged, before anything is changed; where it could not be kept,
/// before the setting that it could not keep is touched. The steps until then stand in the journal.
pub fn apply(
    wanted: &[WantedValue],
    files: &mut impl KnobFiles,
    store: &mut impl TuningStore,
    boot: &str,
    mut done: impl FnMut(AppliedStep),
) -> Result<(), JournalError> {
    let known = TuningJournal::load(store)?;
    if known.boot != boot || known.entries.is_empty() {
        store.clear().map_err(JournalError::Store)?;
        store.append(&journal::head(boot)).map_err(JournalError::Store)?;
    } else {
        store.end_last_line().map_err(JournalError::Store)?;
    }
    for wanted in wanted {
        let outcome = one(wanted, files, store)?;
        done(AppliedStep { wanted: wanted.clone(), outcome });
    }
    Ok(())
}

fn one(
    wanted: &WantedValue,
    files: &mut impl KnobFiles,
    store: &mut impl TuningStore,
) -> Result<StepOutcome, JournalError> {
    let WantedValue { path, value } = wanted;
    let old = match files.read(path) {
        Ok(old) => old,
        Err(why) => return Ok(StepOutcome::Unreadable(why)),
    };
    if files.says(path, &old, value) {
        return Ok(StepOutcome::Already);
    }
    store.append(&journal::about_to(path, &old, value)).map_err(JournalError::Store)?;
    let written = files.write(path, value);
    let mut now = match files.read(path) {
        Ok(now) => now,
        Err(why) => return Ok(StepOutcome::Unverified(why)),
    };
    let outcome = match written {
        Err(why) => StepOutcome::Refused(why),
        Ok(()) if files.says(path, &now, value) => StepOutcome::Applied,
        Ok(()) => {
            let shows = now.clone();
            let _refused = files.restore(path, &old);
            now = files.read(path).unwrap_or(now);
            StepOutcome::Lies { shows, restored: now == old }
        }
    };
    // What is there now is what a revert may take for its own.
    store.append(&journal::took(path, &now)).map_err(JournalError::Store)?;
    Ok(outcome)
}
