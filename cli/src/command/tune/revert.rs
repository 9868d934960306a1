//! `punctual tune revert` and `status`: what was applied, and putting it back.
//!
//! Writes only settings of the journal that still are as they were left.

use anyhow::Result;
use punctual_host::settings::KernelSettings;
use punctual_lab::tuning::{self, JournalEntry, KnobFiles, RevertOutcome, TuningJournal, active};

use super::TuneStateArgs;
use super::{boot, boot_of, files_of, show};
use crate::exit::Exit;
use crate::output::{JournalFile, JournalName, SettingsLock};

/// Runs `revert`.
pub(crate) fn run(args: &TuneStateArgs) -> Result<Exit> {
    let state = &args.state.state;
    let at_boot = !boot::journal(&args.state)?.entries.is_empty();
    let mut names = Vec::new();
    for name in JournalName::RUNNING {
        let bytes = JournalFile::read(state, name)?;
        names.extend(bytes.is_some_and(|bytes| !bytes.is_empty()).then_some(name));
    }
    if names.is_empty() && !at_boot {
        show("nothing is applied");
        return Ok(Exit::Fine);
    }
    let root = super::super::root(args.root.root.as_deref())?;
    let this = boot_of(&root)?;
    let settings = SettingsLock::take(args.root.root.as_deref(), &this, "tune revert")?;
    // All of them before any is put back: where one is not to be obeyed, nothing is changed.
    let lock = |name| JournalFile::lock(&settings, state, name);
    let journals: Vec<JournalFile> = names.into_iter().map(lock).collect::<Result<_>>()?;
    let (mut restored, mut left) = (0, 0);
    if at_boot {
        let outcome = boot::revert(&root, &args.root, (&settings, &args.state))?;
        (restored, left) = (outcome.done, outcome.failed);
    }
    for mut journal in journals {
        if earlier_boot(&TuningJournal::load(&mut journal)?, &this) {
            show("the machine was restarted since: its settings are those of the boot");
        }
        tuning::revert(&mut files_of(&args.root), &mut journal, &this, |step| {
            match step.outcome {
                RevertOutcome::Restored | RevertOutcome::AsBefore => restored += 1,
                _ => left += 1,
            }
            show(words(&step.entry, &step.outcome));
        })?;
    }
    show(format!("{restored} settings are as before, {left} are not"));
    Ok(if left == 0 { Exit::Fine } else { Exit::Failed })
}

/// Runs `status`.
pub(crate) fn status(args: &TuneStateArgs) -> Result<Exit> {
    let root = super::super::root(args.root.root.as_deref())?;
    let at_boot = boot::journal(&args.state)?.entries;
    if !at_boot.is_empty() {
        let settings = KernelSettings::collect(&root);
        let now = settings.command_line.value();
        at_boot.iter().for_each(|entry| show(boot::standing(entry, &args.root, now)));
    }
    let mut nothing = at_boot.is_empty();
    for name in JournalName::RUNNING {
        let bytes = JournalFile::read(&args.state.state, name)?.unwrap_or_default();
        let journal = TuningJournal::parse(&bytes)?;
        if journal.entries.is_empty() {
            continue;
        }
        nothing = false;
        if earlier_boot(&journal, &boot_of(&root)?) {
            show("the machine was restarted since: nothing of the journal is in effect");
            continue;
        }
        let files = files_of(&args.root);
        journal.entries.iter().for_each(|entry| show(standing(entry, &files)));
    }
    if nothing {
        show("nothing is applied");
    }
    Ok(Exit::Fine)
}

/// Whether a journal is of a boot before this one.
fn earlier_boot(journal: &TuningJournal, boot: &str) -> bool {
    !journal.entries.is_empty() && journal.boot != boot
}

/// How a setting stands now.
pub(super) fn standing(entry: &JournalEntry, files: &impl KnobFiles) -> String {
    let JournalEntry { path, old, new, .. } = entry;
    let change = format!("{path}: {} -> {new}", active(old));
    match files.read(path).map(|now| tuning::state(entry, &now, files)) {
        Ok(RevertOutcome::Restored) => change,
        Ok(RevertOutcome::AsBefore) => format!("{change}: as before"),
        Ok(RevertOutcome::Changed { now }) => format!("{change}: changed since to {now}"),
        Ok(_) => format!("{change}: unknown"),
        Err(why) => format!("{change}: cannot read it: {why}"),
    }
}

/// What became of a setting, as a line.
pub(in crate::command) fn words(entry: &JournalEntry, outcome: &RevertOutcome) -> String {
    let (path, old) = (&entry.path, active(&entry.old));
    match outcome {
        RevertOutcome::Restored => format!("{path}: {old}"),
        RevertOutcome::AsBefore => format!("{path}: {old} already"),
        RevertOutcome::Changed { now } => {
            format!("{path}: left at {now}: changed since by somebody else; it was {old}")
        }
        RevertOutcome::Gone => format!("{path}: no longer there"),
        RevertOutcome::Refused(why) => format!("{path}: {old} refused: {why}; try again later"),
        RevertOutcome::Differs { now } => {
            format!("{path}: wrote {old}, it shows {}; try again later", active(now))
        }
    }
}
