//! `punctual tune verify`: what was applied, and what was booted with, by its effect.
//!
//! Reads and judges; changes nothing.

use anyhow::Result;
use punctual_host::rules::{self, KnobChange, KnobVerdict, RuleVerdict};
use punctual_lab::tuning::{self, JournalEntry, KnobFiles as _, RevertOutcome, TuningJournal};

use super::{Machine, WATCH, boot, boot_of, files_of, revert, show};
use crate::args::TuneVerifyArgs;
use crate::exit::Exit;
use crate::output::{JournalFile, JournalName};

/// Runs the subcommand.
pub(crate) fn run(args: &TuneVerifyArgs) -> Result<Exit> {
    let bytes = JournalFile::read(&args.state.state, JournalName::SETTINGS)?.unwrap_or_default();
    let journal = TuningJournal::parse(&bytes)?;
    let mut machine = Machine::read(&args.scope)?;
    if machine.root.is_live() {
        // As for check: how long it really was does not matter.
        std::thread::sleep(WATCH);
        machine.settings.watch(&machine.root);
    }
    let verdicts = rules::judge(&machine.inputs());
    let files = files_of(&args.scope.root);
    let (mut good, mut bad) = (0, 0);
    let entries = if journal.boot == boot_of(&machine.root) { journal.entries } else { Vec::new() };
    for entry in &entries {
        let now = files.read(&entry.path);
        let ours = now
            .is_ok_and(|now| matches!(tuning::state(entry, &now, &files), RevertOutcome::Restored));
        let line = match (ours, still_wanted(entry, &verdicts)) {
            (false, _) => revert::standing(entry, &files),
            (true, Some(of)) => format!("{}: set, and without effect: {}", entry.path, of.found),
            (true, None) => {
                good += 1;
                show(format!("{}: in effect", entry.path));
                continue;
            }
        };
        bad += 1;
        show(line);
    }
    let line = machine.settings.command_line.value();
    for param in line.into_iter().flat_map(|line| &line.params) {
        let Some(of) = verdicts.iter().find(|of| param.is(&of.knob)) else { continue };
        match of.verdict {
            RuleVerdict::Conflict | RuleVerdict::NoEffect => bad += 1,
            RuleVerdict::Unknown => {}
            _ => good += 1,
        }
        show(format!("{}: {}: {}", of.knob, of.verdict.word(), of.found));
    }
    // Several files may have the same parameters.
    let at_boot = boot::journal(&args.state)?.entries;
    let mut waiting: Vec<String> =
        at_boot.iter().flat_map(|entry| boot::waiting(entry, line)).collect();
    waiting.dedup();
    for param in waiting {
        bad += 1;
        show(format!("{param}: the kernel was not started with it"));
    }
    show(format!("{good} settings are in effect, {bad} are not"));
    Ok(if bad == 0 { Exit::Fine } else { Exit::Failed })
}

/// The finding that still asks for what was applied.
fn still_wanted<'a>(entry: &JournalEntry, verdicts: &'a [KnobVerdict]) -> Option<&'a KnobVerdict> {
    let wants = |change: &KnobChange| match change {
        KnobChange::Write { path, .. } => *path == entry.path,
        _ => false,
    };
    verdicts.iter().find(|of| of.verdict.is_open() && of.changes.iter().any(wants))
}
