//! Putting settings back, the last one first: only where they are still as they were left.

use std::io;

use punctual_host::CpuFormat;

use super::KnobFiles;
use super::group;
use super::journal::{self, JournalEntry, JournalError, TuningJournal, TuningStore};
use super::text::active;

/// What became of one setting.
#[derive(Debug)]
pub enum RevertOutcome {
    /// Its text is what it was before, byte for byte.
    Restored,
    /// It was that already.
    AsBefore,
    /// Somebody else changed it since: it was left.
    Changed {
        /// What it has now.
        now: String,
    },
    /// It went with its interrupt, or with its CPU, which is no longer online.
    Gone,
    /// The kernel refused; it stays in the journal.
    Refused(io::Error),
    /// It was written and shows something else than before; it stays in the journal.
    Differs {
        /// What it shows.
        now: String,
    },
}

impl RevertOutcome {
    /// Whether it has to be tried again.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Differs { .. })
    }
}

/// A setting and what became of it.
#[derive(Debug)]
pub struct RevertedStep {
    /// What the journal has of it.
    pub entry: JournalEntry,
    /// What became of it.
    pub outcome: RevertOutcome,
}

/// Puts settings back and empties the journal; where one is open, the journal stays and this can
/// be tried again. After a reboot nothing is put back: the settings went with that boot.
///
/// # Errors
/// Where the journal is foreign or damaged: nothing is changed then.
pub fn revert(
    files: &mut impl KnobFiles,
    store: &mut impl TuningStore,
    boot: &str,
    done: impl FnMut(RevertedStep),
) -> Result<(), JournalError> {
    let open = put_back(files, store, boot, done)?;
    if open { Ok(()) } else { store.clear().map_err(JournalError::Store) }
}

/// As [`revert`], and leaves the journal as it is, for who has more to do before it may go: whether
/// something has to be tried again.
///
/// # Errors
/// As [`revert`].
pub fn put_back(
    files: &mut impl KnobFiles,
    store: &mut impl TuningStore,
    boot: &str,
    mut done: impl FnMut(RevertedStep),
) -> Result<bool, JournalError> {
    let journal = TuningJournal::load(store)?;
    let mut open = false;
    if journal.boot == boot {
        let groups = journal.entries.iter().map(|entry| &entry.path);
        let groups: Vec<String> = groups.filter(|path| group::is_group(path)).cloned().collect();
        // What was written in a group that was made goes with it.
        let inside =
            |path: &str| groups.iter().any(|group| path.starts_with(group) && path != group);
        for entry in journal.entries.into_iter().rev().filter(|entry| !inside(&entry.path)) {
            let outcome = one(&entry, files);
            if let RevertOutcome::Differs { now } = &outcome {
                // What is there now is this program's: the next try may put it back.
                store.end_last_line().map_err(JournalError::Store)?;
                store.append(&journal::took(&entry.path, now)).map_err(JournalError::Store)?;
            }
            open |= outcome.is_open();
            done(RevertedStep { entry, outcome });
        }
    }
    Ok(open)
}

fn one(entry: &JournalEntry, files: &mut impl KnobFiles) -> RevertOutcome {
    let now = match files.read(&entry.path) {
        Ok(now) => now,
        Err(why) if why.kind() == io::ErrorKind::NotFound && is_gone(&entry.path, files) => {
            return RevertOutcome::Gone;
        }
        Err(why) => return RevertOutcome::Refused(why),
    };
    match state(entry, &now, files) {
        RevertOutcome::Restored => {}
        // The kernel shows a line end at least: something else lies over it.
        RevertOutcome::Changed { .. } if now.is_empty() && is_kernels(&entry.path) => {
            return RevertOutcome::Refused(io::Error::other("it is an empty file"));
        }
        other => return other,
    }
    match files.restore(&entry.path, &entry.old).and_then(|()| files.read(&entry.path)) {
        Ok(text) if text == entry.old => RevertOutcome::Restored,
        Ok(now) => RevertOutcome::Differs { now },
        Err(why) => RevertOutcome::Refused(why),
    }
}

fn is_kernels(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/sys/")
}

/// Whether a setting that is not there went with an interrupt or a CPU. The others stay as long as
/// the kernel runs, and where something hides a part of /proc or /sys, it hides those too.
fn is_gone(path: &str, files: &impl KnobFiles) -> bool {
    const CPUS: &str = "/sys/devices/system/cpu/";
    if path.starts_with("/proc/irq/") {
        return files.read("/proc/irq/default_smp_affinity").is_ok();
    }
    let cpu = path.strip_prefix(CPUS).and_then(|rest| rest.strip_prefix("cpu")?.split_once('/'));
    let online = files.read(&format!("{CPUS}online")).ok();
    let online = online.and_then(|text| CpuFormat::List.parse(&text));
    match (cpu.and_then(|(number, _)| number.parse().ok()), online) {
        (Some(cpu), Some(online)) => !online.contains(cpu),
        _ => false,
    }
}

/// What a revert would do with a setting that has this text now: put it back, or leave it.
pub fn state(entry: &JournalEntry, now: &str, files: &impl KnobFiles) -> RevertOutcome {
    // Where the program ended before it saw what the setting became, the value says it.
    let ours = match &entry.took {
        Some(took) => now == took,
        None => files.says(&entry.path, now, &entry.new),
    };
    if now == entry.old {
        RevertOutcome::AsBefore
    } else if ours {
        RevertOutcome::Restored
    } else {
        RevertOutcome::Changed { now: active(now).to_owned() }
    }
}
