//! Settings that hold for some conditions of an experiment: applied before each block, put back
//! after it.
//!
//! By the journal of `tune experiment`, so that `tune revert` puts back what a kill leaves.

use anyhow::Result;
use punctual_lab::experiment::ConditionChanges;
use punctual_lab::tuning::{self, MachineFiles, WantedValue};

use super::experiment::revert;
use super::{Machine, boot_of};
use crate::args::{RootArgs, StateArgs, TuneScopeArgs, WorkloadName};
use crate::output::{JournalFile, JournalName, SettingsLock};

/// The settings of each condition, applied for its blocks.
pub(crate) struct Changes<'a> {
    writes: Vec<Vec<WantedValue>>,
    journal: &'a mut JournalFile,
    boot: &'a str,
    /// What could not be put back.
    pub(crate) failed: Option<anyhow::Error>,
}

impl<'a> Changes<'a> {
    /// Those of each condition, none applied yet.
    pub(super) fn new(
        writes: Vec<Vec<WantedValue>>,
        journal: &'a mut JournalFile,
        boot: &'a str,
    ) -> Self {
        Self { writes, journal, boot, failed: None }
    }
}

impl ConditionChanges for Changes<'_> {
    fn begin(&mut self, condition: usize) -> Result<(), String> {
        if let Some(why) = &self.failed {
            return Err(format!("{why:#}"));
        }
        let writes = &self.writes[condition];
        // What was refused once is known, and refused again.
        let mut files = MachineFiles::live();
        let done = tuning::apply(writes, &mut files, self.journal, self.boot, |_| {});
        done.map_err(|why| why.to_string())
    }

    fn end(&mut self) {
        if let Err(why) = revert(self.journal, self.boot) {
            self.failed.get_or_insert(why);
        }
    }
}

/// All runtime settings of a plan, for an experiment that compares with and without them.
pub(crate) struct PlannedSettings {
    writes: Vec<WantedValue>,
    journal: JournalFile,
    boot: String,
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
        let writes = plan.writes().map(|(_, path, value)| WantedValue::new(path, value)).collect();
        let boot = boot_of(&machine.root)?;
        let mut settings = SettingsLock::take(None, &boot, "reproduce")?;
        let mut journal = JournalFile::begin(&mut settings, &state.state, JournalName::EXPERIMENT)?;
        revert(&mut journal, &boot)?;
        Ok(Self { writes, journal, boot, _settings: settings })
    }

    /// The paths that are written.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.writes.iter().map(|write| write.path.as_str())
    }

    /// Applied in the conditions for which `with` is true.
    pub(crate) fn changes(&mut self, with: &[bool]) -> Changes<'_> {
        let of = |with: &bool| if *with { self.writes.clone() } else { Vec::new() };
        Changes::new(with.iter().map(of).collect(), &mut self.journal, &self.boot)
    }
}
