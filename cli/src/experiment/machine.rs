//! The machine that a result names, and the one that measures.
//!
//! With `--root` they are two: facts are those of a captured machine.

use std::path::Path;

use anyhow::Result;
use punctual_host::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_host::rules::{self, Inputs};
use punctual_host::settings::{KernelSettings, WatchedSettings};

use super::words;
use crate::report::Findings;

/// What is known of both.
pub(crate) struct Machine {
    /// Where facts are read.
    pub(crate) root: Root,
    /// What is known of the machine that the result names.
    pub(crate) facts: MachineFacts,
    /// What is known of the machine that measures, by which CPUs are chosen.
    pub(crate) here: MachineFacts,
    /// Its settings before anything is measured.
    settings: WatchedSettings,
    /// Says so where they are two.
    pub(crate) foreign: Option<String>,
}

impl Machine {
    /// This machine; with `captured`, the one whose facts are there.
    ///
    /// # Errors
    /// When a captured machine cannot be read.
    pub(crate) fn of(captured: Option<&Path>) -> Result<Self> {
        let root = root(captured)?;
        let facts = MachineFacts::collect(&root);
        let here =
            if captured.is_some() { MachineFacts::collect(&Root::live()) } else { facts.clone() };
        let foreign = captured.map(|dir| {
            format!("the facts come from {}, the measurements from this machine", dir.display())
        });
        let settings = WatchedSettings::read(&Root::live());
        Ok(Self { root, facts, here, settings, foreign })
    }

    /// What the rules about tuning find on a CPU.
    pub(crate) fn findings(&self, cpu: u32) -> Findings {
        let cpus = CpuList::single(cpu);
        let settings = KernelSettings::collect(&self.root);
        let inputs =
            Inputs { facts: &self.facts, settings: &settings, cpus: &cpus, workload: None };
        Findings { cpus: cpus.to_string(), verdicts: rules::judge(&inputs) }
    }

    /// That settings of the machine that measures are not what they were.
    pub(crate) fn changed(&self) -> Option<String> {
        words::changed(&self.settings.changed(&WatchedSettings::read(&Root::live())))
    }

    /// Whether the facts are those of another machine.
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }
}

/// Where facts are read: this machine, or one that was captured.
pub(crate) fn root(captured: Option<&Path>) -> Result<Root> {
    Ok(match captured {
        None => Root::live(),
        Some(dir) => Root::captured(dir)?,
    })
}
