//! `punctual tune apply`: the runtime settings of a plan, written one at a time, journal first.
//!
//! Writes no file that the plan does not print, and of the next boot only what `--boot` names.

use anyhow::Result;
use punctual_lab::tuning::{self, AppliedStep, StepOutcome, WantedValue, active};

use super::TuneApplyArgs;
use super::formats::Printed;
use super::{Machine, boot, boot_of, files_of, show};
use crate::exit::Exit;
use crate::format;
use crate::output::{JournalFile, JournalName, SettingsLock};

/// Runs the subcommand.
pub(crate) fn run(args: &TuneApplyArgs) -> Result<Exit> {
    let (tree, state) = (args.scope.root.root.as_deref(), &args.state.state);
    let boot = boot_of(&super::super::root(tree)?)?;
    let mut settings = SettingsLock::take(tree, &boot, "tune apply")?;
    let mut journal = JournalFile::begin(&mut settings, state, JournalName::SETTINGS)?;
    let machine = Machine::read(&args.scope)?;
    machine.leaves_cpus(&args.scope)?;
    let plan = machine.plan(&args.only)?;
    let printed = Printed {
        plan: &plan,
        cpus: &machine.scope.cpus,
        why: &machine.scope.why,
        now: machine.settings.command_line.value(),
    };
    let wanted: Vec<WantedValue> =
        plan.writes().map(|(_, path, value)| WantedValue::new(path, value)).collect();
    let mut files = files_of(&args.scope.root);
    let (mut changed, mut failed) = (0, 0);
    let done = tuning::apply(&wanted, &mut files, &mut journal, &boot, |step| {
        match step.outcome {
            StepOutcome::Applied => changed += 1,
            StepOutcome::Already => {}
            _ => failed += 1,
        }
        show(words(&step));
    });
    let undo = format::tune("revert", tree, state);
    show(format!("{changed} settings changed, {failed} refused; to undo: {undo}"));
    done?;
    if args.boot {
        failed += boot::apply(&machine, &plan, &args.scope.root, (&settings, &args.state))?.failed;
    }
    let rest = [
        (!args.boot && !plan.boot.is_empty()).then_some("boot parameters (--boot)"),
        printed.partition().map(|_| "an isolated partition (punctual isolate)"),
        (!plan.by_hand.is_empty()).then_some("what is left to a person"),
    ];
    let rest: Vec<&str> = rest.into_iter().flatten().collect();
    if !rest.is_empty() {
        let plan = format::command(&format!("punctual tune plan --cpus {}", machine.scope.cpus));
        show(format!("not applied: {}; see {plan}", rest.join(", ")));
    }
    Ok(if failed == 0 { Exit::Fine } else { Exit::Failed })
}

/// What became of a setting, as a line.
pub(in crate::command) fn words(step: &AppliedStep) -> String {
    let WantedValue { path, value } = &step.wanted;
    match &step.outcome {
        StepOutcome::Refused(why) if path.ends_with('/') => {
            format!("the control group {path} cannot be made: {why}")
        }
        StepOutcome::Applied => format!("{path}: {value}"),
        StepOutcome::Already => format!("{path}: {value} already"),
        StepOutcome::Unreadable(why) => format!("{path}: left as it is: cannot read it: {why}"),
        StepOutcome::Refused(why) => format!("{path}: {value} refused: {why}"),
        StepOutcome::Unverified(why) => {
            format!("{path}: wrote {value}, cannot read it back: {why}")
        }
        StepOutcome::Lies { shows, restored } => {
            let back =
                if *restored { "the old value is back" } else { "the old value is not back" };
            format!("{path}: wrote {value}, it shows {}; {back}", active(shows))
        }
    }
}
