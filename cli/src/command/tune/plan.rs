//! `punctual tune plan`: what would be changed on this machine, or a captured one, in a format that
//! other tools read.
//!
//! Reads and plans; changes nothing.

use anyhow::Result;

use super::Machine;
use super::formats::Printed;
use crate::args::TunePlanArgs;
use crate::exit::Exit;
use crate::output::{self, Json};
use crate::view;

/// Runs the subcommand.
pub(crate) fn run(args: &TunePlanArgs) -> Result<Exit> {
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
