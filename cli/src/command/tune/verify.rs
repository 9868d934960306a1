//! `punctual tune verify`: what was applied, and what was booted with, by its effect.
//!
//! Reads and judges; changes nothing.

use std::fmt;

use anyhow::Result;
use punctual_host::rules::{self, KnobChange, KnobVerdict, RuleVerdict};
use punctual_host::settings::{IrqPlace, KernelSettings};
use punctual_host::{CpuFormat, CpuList};
use punctual_lab::tuning::{self, JournalEntry, KnobFiles as _, RevertOutcome, TuningJournal};

use super::TuneVerifyArgs;
use super::{Machine, WATCH, boot, boot_of, files_of, revert, show};
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
    let mut count = Count::default();
    let entries =
        if journal.boot == boot_of(&machine.root)? { journal.entries } else { Vec::new() };
    for entry in &entries {
        let now = files.read(&entry.path);
        let ours = now
            .is_ok_and(|now| matches!(tuning::state(entry, &now, &files), RevertOutcome::Restored));
        if !ours {
            count.bad += 1;
            show(revert::standing(entry, &files));
            continue;
        }
        let effect = Effect::of_irq(entry, &machine.settings).unwrap_or_else(|| {
            still_wanted(entry, &verdicts).map_or(Effect::Good, |of| Effect::None(of.found.clone()))
        });
        show(format!("{}: {}", entry.path, count.words(effect)));
    }
    let line = machine.settings.command_line.value();
    for param in line.into_iter().flat_map(|line| &line.params) {
        let Some(of) = verdicts.iter().find(|of| param.is(&of.knob)) else { continue };
        match of.verdict {
            RuleVerdict::Conflict | RuleVerdict::NoEffect => count.bad += 1,
            RuleVerdict::Unknown => {}
            _ => count.good += 1,
        }
        show(format!("{}: {}: {}", of.knob, of.verdict.word(), of.found));
    }
    // Several files may have the same parameters.
    let at_boot = boot::journal(&args.state)?.entries;
    let mut waiting: Vec<String> =
        at_boot.iter().flat_map(|entry| boot::waiting(entry, line)).collect();
    waiting.dedup();
    for param in waiting {
        count.bad += 1;
        show(format!("{param}: the kernel was not started with it"));
    }
    show(count.to_string());
    Ok(if count.bad == 0 { Exit::Fine } else { Exit::Failed })
}

/// What a setting that has its value does.
enum Effect {
    Good,
    /// An interrupt goes to these CPUs until it comes once more.
    Waits(CpuList),
    /// Nothing, for this reason.
    None(String),
}

impl Effect {
    /// Of where an interrupt may go: where it goes; `None` of any other setting, and of an
    /// interrupt that no device uses.
    fn of_irq(entry: &JournalEntry, settings: &KernelSettings) -> Option<Self> {
        let number =
            entry.path.strip_prefix("/proc/irq/")?.split('/').next()?.parse::<u32>().ok()?;
        let wanted = CpuFormat::of_file(&entry.path)?.parse(&entry.new)?;
        let lines = &settings.interrupts.value()?.lines;
        let line = lines.iter().find(|line| line.number == number)?;
        Some(match line.place(&wanted) {
            IrqPlace::Moved => Self::Good,
            IrqPlace::Waits(cpus) => Self::Waits(cpus),
            IrqPlace::StillOn(cpus) => {
                Self::None(format!("{} still arrives on CPU {cpus}", line.name))
            }
        })
    }
}

/// Settings by their effect.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    good: u32,
    waiting: u32,
    bad: u32,
}

impl Count {
    /// Counts a setting, and says what it does.
    fn words(&mut self, effect: Effect) -> String {
        match effect {
            Effect::Good => {
                self.good += 1;
                "in effect".to_owned()
            }
            Effect::Waits(cpus) => {
                self.waiting += 1;
                format!("set: takes effect at its next interrupt (CPU {cpus} until then)")
            }
            Effect::None(why) => {
                self.bad += 1;
                format!("set, and without effect: {why}")
            }
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let are = |n: u32| if n == 1 { "is" } else { "are" };
        let settings = if self.good == 1 { "setting" } else { "settings" };
        write!(f, "{} {settings} {} in effect", self.good, are(self.good))?;
        match self.waiting {
            0 => {}
            1 => write!(f, ", 1 waits for its next interrupt")?,
            n => write!(f, ", {n} wait for their next interrupt")?,
        }
        write!(f, ", {} {} not", self.bad, are(self.bad))
    }
}

/// The finding that still asks for what was applied.
fn still_wanted<'a>(entry: &JournalEntry, verdicts: &'a [KnobVerdict]) -> Option<&'a KnobVerdict> {
    let wants = |change: &KnobChange| match change {
        KnobChange::Write { path, .. } => *path == entry.path,
        _ => false,
    };
    verdicts.iter().find(|of| of.verdict.is_open() && of.changes.iter().any(wants))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_no_failure_and_one_is_no_plural() {
        let mut count = Count::default();
        assert_eq!(count.to_string(), "0 settings are in effect, 0 are not");
        count.words(Effect::Good);
        let waits = count.words(Effect::Waits(CpuList::single(1)));
        assert_eq!(waits, "set: takes effect at its next interrupt (CPU 1 until then)");
        let shown = "1 setting is in effect, 1 waits for its next interrupt, 0 are not";
        assert_eq!(count.to_string(), shown);
        count.words(Effect::Good);
        count.words(Effect::Waits(CpuList::single(1)));
        let none = count.words(Effect::None("virtio1-req.0 still arrives on CPU 1".to_owned()));
        assert_eq!(none, "set, and without effect: virtio1-req.0 still arrives on CPU 1");
        let shown = "2 settings are in effect, 2 wait for their next interrupt, 1 is not";
        assert_eq!((count.to_string().as_str(), count.bad), (shown, 1));
    }
}
