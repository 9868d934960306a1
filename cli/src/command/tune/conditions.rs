//! Settings that hold for some conditions of an experiment: applied before each block, put back
//! after it.
//!
//! By the journal of `tune experiment`, so that `tune revert` puts back what a kill leaves.

use anyhow::Result;
use punctual_lab::experiment::ConditionChanges;
use punctual_lab::tuning::{
    self, KnobFiles as _, MachineFiles, TuningJournal, WantedValue, active,
};

use super::experiment::revert;
use super::{Machine, boot_of};
use crate::args::{RootArgs, StateArgs, TuneScopeArgs, WorkloadName};
use crate::output::{JournalFile, JournalName, SettingsLock};

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
    /// As they are now.
    pub(super) fn of<'w>(writes: impl IntoIterator<Item = &'w WantedValue>) -> Self {
        let mut before: Vec<(String, Option<String>)> = Vec::new();
        for WantedValue { path, .. } in writes {
            if before.iter().all(|(known, _)| known != path) {
                before.push((path.clone(), text(path)));
            }
        }
        Self { before, applied: Vec::new(), changed: Vec::new() }
    }

    /// Looks at all of them, while none is applied. What was changed once counts as it is now.
    pub(super) fn look(&mut self) {
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
    pub(super) fn changed(&self) -> impl Iterator<Item = (&str, &str)> {
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
    /// What could not be put back.
    pub(crate) failed: Option<anyhow::Error>,
}

impl<'a> Changes<'a> {
    /// Those of each condition, none applied yet.
    pub(super) fn new(
        writes: Vec<Vec<WantedValue>>,
        (journal, boot): (&'a mut JournalFile, &'a str),
        watched: &'a mut Watched,
    ) -> Self {
        Self { writes, journal, boot, watched, failed: None }
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
    /// Those that a CPU would get for this workload. What a killed experiment left is put back.
    ///
    /// # Errors
    /// Where another one tries settings, or the rules cannot be judged.
    pub(crate) fn of(cpu: u32, workload: WorkloadName, state: &StateArgs) -> Result<Self> {
        let scope = TuneScopeArgs {
            cpus: Some(cpu.to_string()),
            workload: Some(workload),
            root: RootArgs::default(),
        };
        let machine = Machine::read(&scope)?;
        machine.leaves_cpus(&scope)?;
        let plan = machine.plan(&[])?;
        let writes: Vec<WantedValue> =
            plan.writes().map(|(_, path, value)| WantedValue::new(path, value)).collect();
        let boot = boot_of(&machine.root)?;
        let mut settings = SettingsLock::take(None, &boot, "reproduce")?;
        let mut journal = JournalFile::begin(&mut settings, &state.state, JournalName::EXPERIMENT)?;
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
        let of = |with: &bool| if *with { self.writes.clone() } else { Vec::new() };
        let journal = (&mut self.journal, self.boot.as_str());
        Changes::new(with.iter().map(of).collect(), journal, &mut self.watched)
    }

    /// What somebody else changed meanwhile, a line each.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.watched.changed().map(|(path, now)| {
            format!(
                "{path}: changed by somebody else meanwhile, and left so ({now}): what was \
                 measured with the plan's settings is void"
            )
        })
    }
}
