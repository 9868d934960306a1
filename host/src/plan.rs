//! A plan of changes: what the rules would change on one machine, while it runs and at its next
//! boot. Pure but for reading the values of now through the root; nothing is changed here.

use crate::Root;
use crate::cmdline::{CommandLine, Param};
use crate::root::Read;
use crate::rules::{Inputs, KnobChange, KnobVerdict};
use crate::settings::KernelSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod files;
mod loader;
mod partition;
mod presets;

use presets::{BootRow, PRESETS};

pub use files::is_setting;
pub use loader::{BootPlan, BootText, GRUBBY, grub_lines};
pub use partition::CpuPartition;

/// One change, with what it replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// The rule that wants it.
    pub id: String,
    /// The knob.
    pub knob: String,
    /// Why.
    pub why: String,
    /// What it costs.
    pub cost: String,
    /// What is there now; null where it could not be read, or is not set.
    pub from: Option<String>,
    /// What is changed.
    pub change: KnobChange,
}

/// What cannot be planned: somebody has to do it by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByHand {
    /// The knob.
    pub knob: String,
    /// What was found.
    pub found: String,
    /// Why, and what to do.
    pub why: String,
}

/// All changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuningPlan {
    /// While the machine runs, in this order.
    pub runtime: Vec<PlanStep>,
    /// Boot parameters, in this order.
    pub boot: Vec<PlanStep>,
    /// What is left to a person.
    pub by_hand: Vec<ByHand>,
}

/// Rules whose changes nobody gets who did not name the setting.
const DANGEROUS: [&str; 1] = ["watchdogs.machine_check"];

/// Rules whose settings keep interrupts, work, timers of others and deep idle states away from
/// CPUs, and cost the other CPUs nothing else.
const ISOLATION: [&str; 7] = [
    "idle.resume_latency",
    "interrupts.default",
    "interrupts.placement",
    "interrupts.workqueue",
    "interrupts.writeback",
    "scheduler.timer_migration",
    "watchdogs.cpumask",
];

impl TuningPlan {
    /// The changes that the verdicts ask for, and those of the workload. `root` gives the values
    /// that files have now.
    pub fn of(inputs: &Inputs<'_>, verdicts: &[KnobVerdict], root: &Root) -> Self {
        let preset = PRESETS.iter().find(|preset| Some(preset.workload) == inputs.workload);
        let without = preset.map_or(&[][..], |preset| preset.without);
        let mut plan = Self { runtime: Vec::new(), boot: Vec::new(), by_hand: Vec::new() };
        let wanted = verdicts.iter().filter(|verdict| !without.contains(&verdict.id.as_str()));
        for verdict in wanted {
            if verdict.changes.is_empty() && verdict.verdict.is_open() {
                plan.by_hand.push(ByHand {
                    knob: verdict.knob.clone(),
                    found: verdict.found.clone(),
                    why: verdict.why.clone(),
                });
            }
            for change in &verdict.changes {
                plan.take(step(verdict, change.clone()), inputs.settings, root);
            }
        }
        plan.by_hand.extend(preset.and_then(|preset| preset.split(inputs)));
        for row in preset.map_or(&[][..], |preset| preset.boot) {
            if let Some(value) = (row.value)(inputs) {
                plan.want(row, value, inputs.settings);
            }
        }
        plan
    }

    /// The files that are written while the machine runs, each with its step and value.
    pub fn writes(&self) -> impl Iterator<Item = (&PlanStep, &str, &str)> {
        self.runtime.iter().filter_map(|step| match &step.change {
            KnobChange::Write { path, value } => Some((step, path.as_str(), value.as_str())),
            _ => None,
        })
    }

    /// Leaves only the changes of these knobs.
    pub fn keep(&mut self, knobs: &[String]) {
        let wanted = |knob: &String| knobs.contains(knob);
        self.runtime.retain(|step| wanted(&step.knob));
        self.boot.retain(|step| wanted(&step.knob));
        self.by_hand.retain(|by_hand| wanted(&by_hand.knob));
    }

    /// Leaves only what keeps CPUs for a command while the machine runs, groups left out
    /// ([`CpuPartition`]).
    pub fn keep_isolation(&mut self) {
        let wanted = |step: &PlanStep| ISOLATION.contains(&step.id.as_str());
        self.runtime.retain(wanted);
        self.boot.clear();
        self.by_hand.clear();
    }

    /// Leaves out what takes diagnostics of the hardware away: such a change has to be named.
    pub fn leave_dangerous(&mut self) {
        let (left, runtime) =
            self.runtime.drain(..).partition(|step| DANGEROUS.contains(&step.id.as_str()));
        self.runtime = runtime;
        let left: Vec<PlanStep> = left;
        self.by_hand.extend(left.into_iter().map(|step| ByHand {
            why: format!("{} {} It is changed only if it is named: --only.", step.why, step.cost),
            found: step.from.unwrap_or_default(),
            knob: step.knob,
        }));
    }

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.runtime.is_empty() && self.boot.is_empty()
    }

    fn take(&mut self, mut step: PlanStep, settings: &KernelSettings, root: &Root) {
        match &step.change {
            // Where debugfs is not mounted, or a driver is gone, there is nothing to write.
            KnobChange::Write { path, .. } if root.read(path) == Read::Absent => {}
            // What a journal could not put back is not changed either.
            KnobChange::Write { path, .. } if !files::is_planned(path) => {
                debug_assert!(false, "{path} is not in the list of settings");
            }
            KnobChange::Write { path, value } => {
                step.from = current(root, path);
                let same = step.from.as_deref() == Some(value);
                let known = self.runtime.iter().any(|other| other.change == step.change);
                if !same && !known {
                    self.runtime.push(step);
                }
            }
            KnobChange::Partition { .. } => self.runtime.push(step),
            KnobChange::Boot { name, .. } | KnobChange::Remove { name } => {
                step.from = typed(settings, name);
                let name = name.clone();
                self.boot.retain(|other| boot_name(&other.change) != Some(name.as_str()));
                self.boot.push(step);
            }
        }
    }

    /// What the workload wants wins over what a rule found; what is there already is left.
    fn want(&mut self, row: &BootRow, value: Option<String>, settings: &KernelSettings) {
        let wanted = Param { name: row.name.to_owned(), value: value.clone() }.to_string();
        let from = typed(settings, row.name);
        self.boot.retain(|other| boot_name(&other.change) != Some(row.name));
        if from.as_deref() == Some(wanted.as_str()) {
            return;
        }
        self.boot.push(PlanStep {
            id: "workload".to_owned(),
            knob: row.name.to_owned(),
            why: row.why.to_owned(),
            cost: String::new(),
            from,
            change: KnobChange::Boot { name: row.name.to_owned(), value },
        });
    }

    /// A command line with the boot parameters of this plan: each is replaced where it stands, new
    /// ones are added at the end.
    pub fn command_line(&self, now: &CommandLine) -> CommandLine {
        let mut line = now.clone();
        for step in &self.boot {
            match &step.change {
                KnobChange::Remove { name } => line.params.retain(|param| !param.is(name)),
                KnobChange::Boot { name, value } => {
                    let new = Param { name: name.clone(), value: value.clone() };
                    let at = line.params.iter().position(|param| param.is(name));
                    line.params.retain(|param| !param.is(name));
                    let at = at.unwrap_or(line.params.len()).min(line.params.len());
                    line.params.insert(at, new);
                }
                KnobChange::Write { .. } | KnobChange::Partition { .. } => {}
            }
        }
        line
    }
}

fn step(verdict: &KnobVerdict, change: KnobChange) -> PlanStep {
    PlanStep {
        id: verdict.id.clone(),
        knob: verdict.knob.clone(),
        why: verdict.why.clone(),
        cost: verdict.cost.clone(),
        from: None,
        change,
    }
}

/// The name of a boot parameter that a change is about.
fn boot_name(change: &KnobChange) -> Option<&str> {
    match change {
        KnobChange::Boot { name, .. } | KnobChange::Remove { name } => Some(name),
        KnobChange::Write { .. } | KnobChange::Partition { .. } => None,
    }
}

/// What a file has now; of a choice, the word in brackets or parentheses.
fn current(root: &Root, path: &str) -> Option<String> {
    let Read::Text(text) = root.read(path) else { return None };
    let text = text.trim();
    let between = |open, close| Some(text.split_once(open)?.1.split_once(close)?.0);
    Some(between('[', ']').or_else(|| between('(', ')')).unwrap_or(text).to_owned())
}

/// A parameter as it stands on the command line.
fn typed(settings: &KernelSettings, name: &str) -> Option<String> {
    let line = settings.command_line.value()?;
    let words: Vec<String> = line.all(name).map(Param::to_string).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests;
