//! Settings that an experiment changes for its conditions: applied before their blocks, put back
//! after them, and watched for changes by others.
//!
//! For `tune experiment` and `reproduce`. What is applied stands in the journal of experiments,
//! so that `tune revert` puts back what a killed one left.

use anyhow::{Error, Result, bail};
use punctual_lab::experiment::ConditionChanges;
use punctual_lab::tuning::{
    self, KnobFiles as _, MachineFiles, TuningJournal, WantedValue, active,
};

use super::{TuneScopeArgs, TunedMachine, WorkloadName, reverted_line};
use crate::args::StateArgs;
use crate::output::{JournalFile, JournalName, SettingsLock, SettingsOwner};

/// Puts back what is applied; an error where something is not as before.
pub(crate) fn revert(journal: &mut JournalFile, boot: &str) -> Result<()> {
    let mut left = Vec::new();
    tuning::revert(&mut MachineFiles::live(), journal, boot, |step| {
        if step.outcome.is_open() {
            left.push(reverted_line(&step.entry, &step.outcome));
        }
    })?;
    if !left.is_empty() {
        let left = left.join("; ");
        bail!("not put back: {left}; punctual tune revert, with the same --state, tries again");
    }
    Ok(())
}

/// Settings that nobody else should change while they are tried.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Path and text, while none of them is applied.
    before: Vec<(String, Option<String>)>,
    /// Path and text, in the block that runs now.
    applied: Vec<(String, Option<String>)>,
    /// Paths that somebody else changed, and what they have now.
    changed: Vec<(String, String)>,
}

fn text(path: &str) -> Option<String> {
    MachineFiles::live().read(path).ok()
}

impl Watched {
    /// The settings as they are now.
    pub(crate) fn of<'w>(writes: impl IntoIterator<Item = &'w WantedValue>) -> Self {
        let mut before: Vec<(String, Option<String>)> = Vec::new();
        for WantedValue { path, .. } in writes {
            if before.iter().all(|(known, _)| known != path) {
                before.push((path.clone(), text(path)));
            }
        }
        Self { before, applied: Vec::new(), changed: Vec::new() }
    }

    /// Looks at all of them, while none is applied. A setting that was changed once counts as it is
    /// now.
    pub(crate) fn look(&mut self) {
        for (path, before) in &mut self.before {
            let now = text(path);
            if now != *before {
                note(&mut self.changed, path, now.as_deref());
                *before = now;
            }
        }
    }

    /// Remembers those that were just applied, as the journal has them.
    fn begin(&mut self, journal: &mut JournalFile) -> Result<(), String> {
        let entries = TuningJournal::load(journal).map_err(|why| why.to_string())?.entries;
        let now = |path: String| (text(&path), path);
        self.applied =
            entries.into_iter().map(|entry| now(entry.path)).map(|(text, at)| (at, text)).collect();
        Ok(())
    }

    /// Looks at those that were applied, before they are put back.
    fn end(&mut self) {
        for (path, applied) in std::mem::take(&mut self.applied) {
            let now = text(&path);
            if now != applied {
                note(&mut self.changed, &path, now.as_deref());
            }
        }
    }

    /// Paths that somebody else changed meanwhile, and what each has now.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.changed.iter().map(|(path, now)| (path.as_str(), now.as_str()))
    }
}

fn note(changed: &mut Vec<(String, String)>, path: &str, now: Option<&str>) {
    let now = now.map_or("unreadable", active).to_owned();
    match changed.iter_mut().find(|(known, _)| known == path) {
        Some((_, last)) => *last = now,
        None => changed.push((path.to_owned(), now)),
    }
}

/// The settings of each condition, applied for its blocks.
pub(crate) struct Changes<'a> {
    writes: Vec<Vec<WantedValue>>,
    journal: &'a mut JournalFile,
    boot: &'a str,
    watched: &'a mut Watched,
    /// The error where something could not be put back.
    failed: Option<Error>,
}

impl<'a> Changes<'a> {
    /// The settings of each condition, none applied yet.
    pub(crate) fn new(
        writes: Vec<Vec<WantedValue>>,
        (journal, boot): (&'a mut JournalFile, &'a str),
        watched: &'a mut Watched,
    ) -> Self {
        Self { writes, journal, boot, watched, failed: None }
    }

    /// The error where something could not be put back; `None` where all was.
    pub(crate) fn into_failure(self) -> Option<Error> {
        self.failed
    }
}

impl ConditionChanges for Changes<'_> {
    fn begin(&mut self, condition: usize) -> Result<(), String> {
        if let Some(why) = &self.failed {
            return Err(format!("{why:#}"));
        }
        self.watched.look();
        let writes = &self.writes[condition];
        // What was refused once is known, and refused again.
        let mut files = MachineFiles::live();
        let done = tuning::apply(writes, &mut files, self.journal, self.boot, |_| {});
        done.map_err(|why| why.to_string())?;
        self.watched.begin(self.journal)
    }

    fn end(&mut self) {
        self.watched.end();
        if let Err(why) = revert(self.journal, self.boot) {
            self.failed.get_or_insert(why);
        }
        self.watched.look();
    }
}

/// All runtime settings of a plan, for an experiment that compares with and without them.
pub(crate) struct PlannedSettings {
    writes: Vec<WantedValue>,
    journal: JournalFile,
    boot: String,
    watched: Watched,
    _settings: SettingsLock,
}

impl PlannedSettings {
    /// The settings that a CPU would get for this workload. Those that a killed experiment left are
    /// put back.
    ///
    /// # Errors
    /// Where another one tries settings, or the rules cannot be judged.
    pub(crate) fn of(cpu: u32, workload: WorkloadName, state: &StateArgs) -> Result<Self> {
        let scope = TuneScopeArgs::of_cpus(&cpu.to_string(), Some(workload));
        let machine = TunedMachine::read(&scope)?;
        machine.leaves_cpus(&scope)?;
        let plan = machine.plan(&[])?;
        let writes: Vec<WantedValue> =
            plan.writes().map(|write| WantedValue::new(write.path, write.value)).collect();
        let owner = SettingsOwner::of(&machine.root)?;
        let boot = owner.to_string();
        let mut settings = SettingsLock::take(None, &owner, "reproduce")?;
        let mut journal = JournalFile::begin(&mut settings, &state.state, JournalName::Experiment)?;
        revert(&mut journal, &boot)?;
        let watched = Watched::of(&writes);
        Ok(Self { writes, journal, boot, watched, _settings: settings })
    }

    /// The paths that are written.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.writes.iter().map(|write| write.path.as_str())
    }

    /// Applied in the conditions for which `with` is true.
    pub(crate) fn changes(&mut self, with: &[bool]) -> Changes<'_> {
        let writes = |with: &bool| if *with { self.writes.clone() } else { Vec::new() };
        let journal = (&mut self.journal, self.boot.as_str());
        Changes::new(with.iter().map(writes).collect(), journal, &mut self.watched)
    }

    /// Warnings about settings that somebody else changed meanwhile.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.watched.changed().map(|(path, now)| {
            format!(
                "{path}: changed by somebody else meanwhile, and left so ({now}): what was \
                 measured with the plan's settings is void"
            )
        })
    }
}
