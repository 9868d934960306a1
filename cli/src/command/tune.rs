//! `punctual tune`: what of a machine's settings is wrong, what would change it, changing it and
//! putting it back.
//!
//! Rules and plans are `host`'s, changing settings is `lab`'s; here they meet arguments and pages.

pub(super) mod apply;

mod boot;

mod experiment;
pub(crate) mod formats;
pub(super) mod revert;
mod verify;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use punctual_host::facts::MachineFacts;
use punctual_host::plan::TuningPlan;
use punctual_host::rules::{self, CpuScope, Inputs, RuleVerdict, Workload};
use punctual_host::settings::KernelSettings;
use punctual_host::{Fact, Root, identity, parse_cpus};
use punctual_lab::tuning::{KnobFiles, MachineFiles};

use crate::args::{RootArgs, TuneCheckArgs, TuneCommand, TunePlanArgs, TuneScopeArgs};
use crate::exit::Exit;
use crate::output::{self, Json, TREE, TreeFiles};
use crate::report::body::TuneBody;
use crate::report::{Envelope, Report};
use crate::{format, view};
use formats::Printed;

pub(crate) use experiment::PlannedSettings;

/// Runs the subcommand.
pub(crate) fn run(command: &TuneCommand) -> Result<Exit> {
    match command {
        TuneCommand::Check(args) => check(args),
        TuneCommand::Plan(args) => plan(args),
        TuneCommand::Apply(args) => apply::run(args),
        TuneCommand::Experiment(args) => experiment::run(args),
        TuneCommand::Verify(args) => verify::run(args),
        TuneCommand::Revert(args) => revert::run(args),
        TuneCommand::Status(args) => revert::status(args),
    }
}

/// Shows a line at once. Nobody may be reading any more: what is being done goes on.
pub(super) fn show(line: impl AsRef<str>) {
    let _closed = output::page(&(format::plain(line.as_ref()) + "\n"));
}

/// How long interrupts are watched: those of a network that is in use arrive many times.
const WATCH: Duration = Duration::from_secs(1);

/// The settings of this machine, or of a captured one.
pub(super) fn files_of(args: &RootArgs) -> Box<dyn KnobFiles> {
    match &args.root {
        Some(tree) => Box::new(TreeFiles::below(tree)),
        None => Box::new(MachineFiles::live()),
    }
}

/// What a journal's settings are those of: this boot, or a directory, whose files stay.
///
/// # Errors
/// Where it cannot be known which boot this is: settings of this one would be taken for those of an
/// earlier one, which went with it.
pub(super) fn boot_of(root: &Root) -> Result<String> {
    if let Some(tree) = root.tree() {
        let tree = tree.canonicalize().with_context(|| tree.display().to_string())?;
        return Ok(format!("{TREE}{}", tree.display()));
    }
    match identity::boot(root) {
        Fact::Known { value, .. } => Ok(value),
        Fact::Absent { origin } => bail!("{UNKNOWN_BOOT}: there is no {origin}"),
        Fact::Unreadable { origin, why } => bail!("{UNKNOWN_BOOT}: {origin}: {why}"),
    }
}

const UNKNOWN_BOOT: &str = "nothing is changed or put back, because it is unknown which boot of \
                            the machine this is, and whether settings went with an earlier one";

/// A machine with the CPUs that are tuned.
pub(super) struct Machine {
    pub(super) root: Root,
    pub(super) facts: MachineFacts,
    pub(super) settings: KernelSettings,
    pub(super) scope: CpuScope,
    workload: Option<Workload>,
}

impl Machine {
    pub(super) fn read(args: &TuneScopeArgs) -> Result<Self> {
        let root = super::root(args.root.root.as_deref())?;
        let facts = MachineFacts::collect(&root);
        let requested = args.cpus.as_deref().map(|text| {
            parse_cpus(text, &facts).with_context(|| format!("--cpus {}", text.escape_debug()))
        });
        let scope = CpuScope::of(requested.transpose()?, &facts);
        let settings = KernelSettings::collect(&root);
        Ok(Self { root, facts, settings, scope, workload: args.workload.map(Into::into) })
    }

    /// That CPUs which were named leave one for the other tasks.
    pub(super) fn leaves_cpus(&self, args: &TuneScopeArgs) -> Result<()> {
        let online = self.facts.cpu.online_cpus.value().cloned().unwrap_or_default();
        if args.cpus.is_some() && online.difference(&self.scope.cpus).is_empty() {
            bail!(
                "--cpus {}: no CPU is left for other tasks; online are {online}",
                self.scope.cpus
            );
        }
        Ok(())
    }

    /// What would be changed; of all that, only these settings where some are named.
    pub(super) fn plan(&self, only: &[String]) -> Result<TuningPlan> {
        let inputs = self.inputs();
        let verdicts = rules::judge(&inputs);
        let known = |name: &&String| verdicts.iter().any(|of| of.knob == **name);
        if let Some(name) = only.iter().find(|name| !known(name)) {
            bail!(
                "--only {}: no such setting; 'punctual tune check -v' lists them",
                name.escape_debug()
            );
        }
        let mut plan = TuningPlan::of(&inputs, &verdicts, &self.root);
        match only {
            [] => plan.leave_dangerous(),
            only => plan.keep(only),
        }
        Ok(plan)
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

/// Runs the subcommand.
pub(crate) fn check(args: &TuneCheckArgs) -> Result<Exit> {
    output::spare_tree("--json", args.json.as_deref(), args.scope.root.root.as_deref())?;
    let json = Json::open(args.json.as_deref())?;
    let mut machine = Machine::read(&args.scope)?;
    let mut envelope = Envelope::of("tune check");
    if machine.root.is_live() {
        envelope.started_at = Some(jiff::Timestamp::now().to_string());
        // Counts of interrupts are compared over a while; how long it really was does not matter.
        std::thread::sleep(WATCH);
        machine.settings.watch(&machine.root);
    }
    let verdicts = rules::judge(&machine.inputs());
    let wrong = |verdict| matches!(verdict, RuleVerdict::Conflict | RuleVerdict::NoEffect);
    if args.strict {
        let wrong: Vec<_> = verdicts.iter().filter(|of| wrong(of.verdict)).collect();
        envelope.verdict.ok = wrong.is_empty();
        let reason = |of: &&rules::KnobVerdict| format!("{}: {}", of.knob, of.verdict.word());
        envelope.verdict.reasons.extend(wrong.iter().map(reason));
    }
    envelope.machine = Some(machine.facts);
    let body = TuneBody { cpus: machine.scope.cpus, why: machine.scope.why, verdicts };
    let page = view::text::tune::page(&envelope, &body, args.verbose);
    let report = Report { envelope, body: body.into() };
    json.write(&view::json::of(&report)?, &page)?;
    Ok(Exit::of(&report))
}

/// Runs the subcommand.
pub(crate) fn plan(args: &TunePlanArgs) -> Result<Exit> {
    output::spare_tree("--json", args.json.as_deref(), args.scope.root.root.as_deref())?;
    let json = Json::open(args.json.as_deref())?;
    let machine = Machine::read(&args.scope)?;
    machine.leaves_cpus(&args.scope)?;
    let plan = machine.plan(&args.only)?;
    let printed = Printed {
        plan: &plan,
        cpus: &machine.scope.cpus,
        why: &machine.scope.why,
        now: machine.settings.command_line.value(),
    };
    let text = (args.format.0.print)(&printed)?;
    json.write(&view::json::of(&plan)?, &text)?;
    Ok(Exit::Fine)
}
