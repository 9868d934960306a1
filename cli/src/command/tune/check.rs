//! `punctual tune check`: the verdicts of all rules about this machine, or a captured one.
//!
//! Reads and judges; changes nothing.

use anyhow::Result;
use punctual_host::rules::{self, RuleVerdict};

use super::{Machine, WATCH};
use crate::args::TuneCheckArgs;
use crate::exit::Exit;
use crate::report::body::TuneBody;
use crate::report::{Envelope, Report};
use crate::view;

/// Runs the subcommand.
pub(crate) fn run(args: &TuneCheckArgs) -> Result<Exit> {
    args.output.spare_tree(args.scope.root.root.as_deref())?;
    let outputs = args.output.open()?;
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
    let page = view::text::rendered(&view::kinds::tune::document(&envelope, &body, args.verbose));
    let report = Report { envelope, body: body.into() };
    outputs.write(&view::json::of(&report)?, || view::markdown::page(&report), page)?;
    Ok(Exit::of(&report))
}
