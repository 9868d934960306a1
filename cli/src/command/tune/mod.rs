//! `punctual tune`: what of a machine's settings is wrong, and what would change it.
//!
//! Rules and plans are `host`'s; here they meet arguments and pages.

mod check;
pub(crate) mod formats;
mod plan;

use anyhow::{Context as _, Result};
use punctual_host::facts::MachineFacts;
use punctual_host::rules::{CpuScope, Inputs, Workload};
use punctual_host::settings::KernelSettings;
use punctual_host::{Root, parse_cpus};

use crate::args::{TuneCommand, TuneScopeArgs};
use crate::exit::Exit;

/// Runs the subcommand.
pub(crate) fn run(command: &TuneCommand) -> Result<Exit> {
    match command {
        TuneCommand::Check(args) => check::run(args),
        TuneCommand::Plan(args) => plan::run(args),
    }
}

/// A machine with the CPUs that are tuned.
struct Machine {
    root: Root,
    facts: MachineFacts,
    settings: KernelSettings,
    scope: CpuScope,
    workload: Option<Workload>,
}

impl Machine {
    fn read(args: &TuneScopeArgs) -> Result<Self> {
        let root = super::root(args.root.root.as_deref())?;
        let facts = MachineFacts::collect(&root);
        let requested = args.cpus.as_deref().map(|text| {
            parse_cpus(text, &facts).with_context(|| format!("--cpus {}", text.escape_debug()))
        });
        let scope = CpuScope::of(requested.transpose()?, &facts);
        let settings = KernelSettings::collect(&root);
        Ok(Self { root, facts, settings, scope, workload: args.workload.map(Into::into) })
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            facts: &self.facts,
            settings: &self.settings,
            cpus: &self.scope.cpus,
            workload: self.workload,
        }
    }
}
