//! Settings changed and put back: a journal first, then the write, then a look at what it became.
//!
//! Works on any [`KnobFiles`]: this machine's, a directory's, or a test's with faults. Before a
//! file is written, its old text is in the journal and on the disk, so that whatever ends the
//! program, a later [`revert`] can put it back. A file is put back only where its text is still the
//! one that was left there. A control group is such a file too: it is there or not, and what is
//! written inside goes with it. Never prints; never writes a file that no step names.

mod experiment;
mod files;
mod journal;

use std::io;

use punctual_host::CpuFormat;
use punctual_host::plan::value_part;
use punctual_os::Errno;

pub use experiment::{
    CountedTail, Measure, SettingSets, SettingTrial, TuningTrials, least, try_settings,
};
pub use files::{KnobFiles, MachineFiles, MovedThreads, move_threads};
pub use journal::{JournalEntry, JournalError, TuningJournal, TuningStore};

/// A value that a setting is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedValue {
    /// The setting's path.
    pub path: String,
    /// The text to write.
    pub value: String,
}

impl WantedValue {
    /// This value of this setting.
    pub fn new(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self { path: path.into(), value: value.into() }
    }
}

/// The outcome of applying one setting.
#[derive(Debug)]
pub enum StepOutcome {
    /// It has the value now.
    Applied,
    /// It had that value before: nothing was written.
    Already,
    /// It could not be read, so it was not written.
    Unreadable(io::Error),
    /// The kernel refused the value; the setting is as it was.
    Refused(io::Error),
    /// It was written, and what it became cannot be read; a revert looks at it again.
    Unverified(io::Error),
    /// The kernel took the value without an error and shows another; the old one was put back.
    Lies {
        /// The value that it showed.
        shows: String,
        /// True where the old text is there again.
        restored: bool,
    },
}

/// A setting and what became of it.
#[derive(Debug)]
pub struct AppliedStep {
    /// The setting and its value.
    pub wanted: WantedValue,
    /// Its outcome.
    pub outcome: StepOutcome,
}

impl AppliedStep {
    /// Why no right and no second try sets this here; `None` where it was set, or where the way is
    /// only closed now.
    pub fn impossible_here(&self) -> Option<&'static str> {
        let (StepOutcome::Refused(why) | StepOutcome::Unreadable(why)) = &self.outcome else {
            return None;
        };
        impossible(&self.wanted.path, Errno(why.raw_os_error()?))
    }
}

/// Why no right and no second try sets the setting at `path`, after the kernel refused it so: the
/// machine has no such thing, or the kernel keeps it to itself. `None` where the way is only closed
/// now.
fn impossible(path: &str, refusal: Errno) -> Option<&'static str> {
    let is_interrupt = path.starts_with("/proc/irq/") && path.ends_with("/smp_affinity_list");
    match (refusal, path) {
        (Errno::NOENT | Errno::NODEV | Errno::NXIO, _) => Some("this machine has no such setting"),
        (Errno::OPNOTSUPP, _) => Some("this machine's hardware or driver does not support it"),
        // write_irq_affinity (kernel/irq/proc.c): EPERM, before Linux 6.4 EIO.
        (Errno::PERM | Errno::IO, _) if is_interrupt => {
            Some("the kernel places this interrupt itself, one for each queue of its device")
        }
        // pcie_aspm_set_policy (drivers/pci/pcie/aspm.c).
        (Errno::PERM, "/sys/module/pcie_aspm/parameters/policy") => {
            Some("link power management of PCI Express is off on this machine")
        }
        _ => None,
    }
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
        let outcome = apply_step(wanted, files, store)?;
        done(AppliedStep { wanted: wanted.clone(), outcome });
    }
    Ok(())
}

fn apply_step(
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
    let mut refusal = None;
    let outcome = match written {
        Err(why) => {
            refusal = why.raw_os_error().map(Errno);
            StepOutcome::Refused(why)
        }
        Ok(()) if files.says(path, &now, value) => StepOutcome::Applied,
        Ok(()) => {
            let shows = value_part(path, &now, value).to_owned();
            let _refused = files.restore(path, &old, value);
            now = files.read(path).unwrap_or(now);
            let restored = value_part(path, &now, value) == value_part(path, &old, value);
            StepOutcome::Lies { shows, restored }
        }
    };
    // What is there now is what a revert may take for its own.
    store.append(&journal::took(path, &now, refusal)).map_err(JournalError::Store)?;
    Ok(outcome)
}

/// The outcome of reverting one setting.
#[derive(Debug)]
pub enum RevertOutcome {
    /// Its text is what it was before, byte for byte; of a file of switches, the one that was set.
    Restored,
    /// Its text was already that from before.
    AsBefore,
    /// Somebody else changed it since: it was left.
    Changed {
        /// Its value now.
        now: String,
    },
    /// It went with its interrupt, or with its CPU, which is no longer online.
    Gone,
    /// The kernel refused; it stays in the journal.
    Refused(io::Error),
    /// It was written and shows something else than before; it stays in the journal.
    Differs {
        /// The text that it shows.
        now: String,
    },
}

impl RevertOutcome {
    /// Returns true where it has to be tried again.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Differs { .. })
    }
}

/// A setting and what became of it.
#[derive(Debug)]
pub struct RevertedStep {
    /// Its entry in the journal.
    pub entry: JournalEntry,
    /// Its outcome.
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
        let groups: Vec<String> = groups.filter(|path| files::is_group(path)).cloned().collect();
        // What was written in a group that was made goes with it.
        let inside =
            |path: &str| groups.iter().any(|group| path.starts_with(group) && path != group);
        for entry in journal.entries.into_iter().rev().filter(|entry| !inside(&entry.path)) {
            let outcome = revert_step(&entry, files);
            if let RevertOutcome::Differs { now } = &outcome {
                // What is there now is this program's: the next try may put it back.
                store.end_last_line().map_err(JournalError::Store)?;
                store
                    .append(&journal::took(&entry.path, now, None))
                    .map_err(JournalError::Store)?;
            }
            open |= outcome.is_open();
            done(RevertedStep { entry, outcome });
        }
    }
    Ok(open)
}

fn revert_step(entry: &JournalEntry, files: &mut impl KnobFiles) -> RevertOutcome {
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
        left => return left,
    }
    let part = |text| value_part(&entry.path, text, &entry.new);
    let restored = files.restore(&entry.path, &entry.old, &entry.new);
    match restored.and_then(|()| files.read(&entry.path)) {
        Ok(text) if part(&text) == part(&entry.old) => RevertOutcome::Restored,
        Ok(now) => RevertOutcome::Differs { now },
        Err(why) => RevertOutcome::Refused(why),
    }
}

fn is_kernels(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/sys/")
}

/// Returns true where a setting that is not there went with an interrupt or a CPU. The others stay
/// as long as the kernel runs, and where something hides a part of /proc or /sys, it hides those
/// too.
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

/// The outcome that a revert would have for a setting that has this text now: put back, or left.
/// Reads only.
pub fn state(entry: &JournalEntry, now: &str, files: &impl KnobFiles) -> RevertOutcome {
    let part = |text| value_part(&entry.path, text, &entry.new);
    // Where the program ended before it saw what the setting became, the value says it.
    let ours = match &entry.took {
        Some(took) => part(now) == part(took),
        None => files.says(&entry.path, now, &entry.new),
    };
    if part(now) == part(&entry.old) {
        RevertOutcome::AsBefore
    } else if ours {
        RevertOutcome::Restored
    } else {
        RevertOutcome::Changed { now: entry.shown(now).to_owned() }
    }
}

/// The word that counts of a text: of a choice, the one in brackets or parentheses.
pub fn active(text: &str) -> &str {
    let text = text.trim();
    let between = |open, close| Some(text.split_once(open)?.1.split_once(close)?.0);
    between('[', ']').or_else(|| between('(', ')')).unwrap_or(text)
}

/// Returns true where the text of the setting at `path` means the value that was written: the same,
/// the same CPUs in other digits, a list of controllers that has what was added to it, or switches
/// of which one stands so.
fn says(path: &str, text: &str, value: &str) -> bool {
    if let Some(controller) = value.strip_prefix('+') {
        return text.split_whitespace().any(|word| word == controller);
    }
    let text = active(value_part(path, text, value));
    let cpus = |text: &str| CpuFormat::of_file(path)?.parse(text);
    text == value || cpus(text).is_some_and(|now| Some(now) == cpus(value))
}

#[cfg(test)]
mod tests;
