//! The boot parameters of a plan: written into the files of the boot loader, looked at after the
//! next boot, put back.
//!
//! Writes only the files that the plan names, journal first, and runs the boot loader's own program
//! once they are written.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use punctual_host::Root;
use punctual_host::cmdline::{CommandLine, Param};
use punctual_host::plan::{BootPlan, GRUBBY, TuningPlan};
use punctual_host::settings::kernel_words;
use punctual_lab::tuning::{
    self, JournalEntry, KnobFiles as _, RevertOutcome, StepOutcome, TuningJournal,
    TuningStore as _, WantedValue,
};

use super::AS_APPLIED;
use crate::args::{RootArgs, StateArgs};
use crate::format;
use crate::output::{BootFiles, JournalFile, JournalName, SettingsLock, SettingsOwner};
use crate::settings::{TunedMachine, show};

/// The numbers of a boot loader's files that are as requested, and that are not.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BootFilesOutcome {
    pub(super) done: u32,
    pub(super) failed: u32,
}

/// Writes the boot parameters of a plan.
pub(super) fn apply(
    machine: &TunedMachine,
    plan: &TuningPlan,
    args: &RootArgs,
    (settings, state): (&SettingsLock, &StateArgs),
) -> Result<BootFilesOutcome> {
    let mut outcome = BootFilesOutcome::default();
    if plan.boot.is_empty() {
        show("no boot parameter changes");
        return Ok(outcome);
    }
    let boot = BootPlan::of(plan, &machine.root);
    if boot.files.is_empty() {
        show(by_hand(plan, boot.loader, &lacking(&machine.root, args)));
        return Ok(BootFilesOutcome { failed: 1, ..outcome });
    }
    let wanted: Vec<WantedValue> = boot
        .files
        .into_iter()
        .map(|file| WantedValue { path: file.path, value: file.text })
        .collect();
    let mut files = BootFiles::of(args.path());
    let mut journal = JournalFile::lock(settings, &state.state, JournalName::Boot)?;
    let kept = SettingsOwner::of(&machine.root)?.boot_loader().to_string();
    tuning::apply(&wanted, &mut files, &mut journal, &kept, |step| {
        let path = &step.wanted.path;
        let parameters = parameters(path, &step.wanted.value);
        let line = match &step.outcome {
            StepOutcome::Applied => format!("{path}: {parameters}"),
            StepOutcome::Already => format!("{path}: {parameters} already"),
            StepOutcome::Unreadable(why) => {
                format!("{path}: left as it is: cannot read it: {why}")
            }
            StepOutcome::Refused(why) => format!("{path}: cannot write it: {why}"),
            StepOutcome::Unverified(why) => {
                format!("{path}: written, and cannot be read back: {why}")
            }
            StepOutcome::Lies { .. } => format!("{path}: was changed by another program meanwhile"),
        };
        match step.outcome {
            StepOutcome::Applied | StepOutcome::Already => outcome.done += 1,
            _ => outcome.failed += 1,
        }
        show(line);
    })?;
    if outcome.failed == 0 {
        let again = "the same command runs it again";
        let ran = boot.then.is_none_or(|program| run(program, args, again));
        outcome.failed += u32::from(!ran);
        let verify = format::command("punctual tune verify");
        show(format!("{}: takes effect at the next boot; after it: {verify}", boot.loader));
    }
    Ok(outcome)
}

/// Puts the files back, and runs the boot loader's program for them. Only then the journal is
/// emptied: where anything ends this before, the next one runs the program again.
pub(super) fn revert(
    root: &Root,
    args: &RootArgs,
    (settings, state): (&SettingsLock, &StateArgs),
) -> Result<BootFilesOutcome> {
    let mut outcome = BootFilesOutcome::default();
    let mut programs = Vec::new();
    let mut journal = JournalFile::lock(settings, &state.state, JournalName::Boot)?;
    let mut files = BootFiles::of(args.path());
    let kept = SettingsOwner::of(root)?.boot_loader().to_string();
    let open = tuning::put_back(&mut files, &mut journal, &kept, |step| {
        let path = &step.entry.path;
        if !step.outcome.is_open() {
            // Also of a file that somebody else changed since: the program may have failed before.
            let program = BootPlan::then_of(path, root);
            programs.extend(program.filter(|program| !programs.contains(program)));
        }
        let line = match &step.outcome {
            RevertOutcome::Restored | RevertOutcome::AsBefore => {
                outcome.done += 1;
                format!("{path}: as before")
            }
            RevertOutcome::Changed { .. } => {
                format!("{path}: left: changed since by somebody else")
            }
            RevertOutcome::Gone => format!("{path}: no longer there"),
            RevertOutcome::Refused(why) => {
                format!("{path}: cannot write it: {why}; try again later")
            }
            RevertOutcome::Differs { .. } => {
                format!("{path}: changed while it was put back; try again later")
            }
        };
        show(line);
        outcome.failed +=
            u32::from(!matches!(step.outcome, RevertOutcome::Restored | RevertOutcome::AsBefore));
    })?;
    let again = "the same command runs it again";
    let failed = programs.into_iter().filter(|program| !run(program, args, again)).count();
    if failed == 0 && !open {
        journal.clear().context("cannot empty the journal")?;
    }
    outcome.failed += u32::try_from(failed).unwrap_or(u32::MAX);
    Ok(outcome)
}

/// The journal of these files.
pub(super) fn journal(state: &StateArgs) -> Result<TuningJournal> {
    let bytes = JournalFile::read(&state.state, JournalName::Boot)?.unwrap_or_default();
    Ok(TuningJournal::parse(&bytes)?)
}

/// A file of the journal, its parameters and how it is now: where the kernel was not started with
/// some of them, those.
pub(super) fn standing(
    entry: &JournalEntry,
    args: &RootArgs,
    now: Option<&CommandLine>,
) -> Vec<String> {
    let JournalEntry { path, new, .. } = entry;
    let files = BootFiles::of(args.path());
    let (parameters, state) = match files.read(path).map(|text| tuning::state(entry, &text, &files))
    {
        Ok(RevertOutcome::Restored) => match waiting(entry, now) {
            waiting if waiting.is_empty() => (parameters(path, new), AS_APPLIED.to_owned()),
            waiting => (waiting.join(" "), "not before the next boot".to_owned()),
        },
        Ok(RevertOutcome::AsBefore) => (String::new(), "as before".to_owned()),
        Ok(_) => (String::new(), "changed since by somebody else".to_owned()),
        Err(why) => (String::new(), format!("cannot read it: {why}")),
    };
    vec![path.clone(), parameters, state]
}

/// Parameters that were written into a file.
pub(super) fn written(entry: &JournalEntry) -> Vec<Param> {
    let mut written = CommandLine::parse(&kernel_words(&entry.path, &entry.new)).params;
    let before = CommandLine::parse(&kernel_words(&entry.path, &entry.old));
    written.retain(|param| !before.params.contains(param));
    written
}

/// Parameters of a file that the kernel was not started with.
fn waiting(entry: &JournalEntry, now: Option<&CommandLine>) -> Vec<String> {
    let written = written(entry).into_iter();
    let waits = written.filter(|param| now.is_none_or(|now| !now.params.contains(param)));
    waits.map(|param| format::plain(&param.to_string())).collect()
}

/// The parameters in a file's text.
fn parameters(path: &str, text: &str) -> String {
    format::plain(&kernel_words(path, text))
}

/// What was looked for, and in which copy, where no boot loader is known.
fn lacking(root: &Root, args: &RootArgs) -> String {
    let copy = args.path().map(|path| format!(" below {}", path.display())).unwrap_or_default();
    format!("{}{copy}", BootPlan::lacking(root))
}

/// The instruction for a person where the files are not known, or are another program's. `lacking`
/// says what was looked for.
fn by_hand(plan: &TuningPlan, loader: &str, lacking: &str) -> String {
    let set = plan.command_line(&CommandLine::default()).to_string();
    let gone: Vec<&str> = plan.boot.iter().filter_map(|step| step.from.as_deref()).collect();
    let (set, gone) = (format::plain(&set), format::plain(&gone.join(" ")));
    if loader == GRUBBY {
        let command = format!("grubby --update-kernel=ALL --remove-args='{gone}' --args='{set}'");
        return format!("not applied: the entries take their options from a variable: {command}");
    }
    let gone = if gone.is_empty() { gone } else { format!("; take out of it: {gone}") };
    let lacking = format::plain(lacking);
    format!(
        "not applied: no boot loader that is known ({lacking}); add to the kernel command line: \
         {set}{gone}"
    )
}

/// Runs the boot loader's program; whether it succeeded. `again` says what runs it again.
fn run(program: &[&str], args: &RootArgs, again: &str) -> bool {
    let [command, rest @ ..] = program else { return true };
    if args.path().is_some() {
        show(format!("then, on that machine: {}", program.join(" ")));
        return true;
    }
    let ran = Command::new(command).args(rest).stdin(Stdio::null()).output();
    let failed = match ran {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            Some(format!("{}: {}", output.status, format::plain(last)))
        }
        Err(why) => Some(why.to_string()),
    };
    let line = program.join(" ");
    match failed {
        None => show(format!("ran {line}")),
        Some(ref why) => show(format!("{line} failed: {why}; {again}")),
    }
    failed.is_none()
}
