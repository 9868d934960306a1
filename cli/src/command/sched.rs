//! `punctual sched`: policy, priority and CPUs of commands and threads, with what was refused
//! explained.

mod request;
mod run;
mod set;
mod show;
mod threads;

use anyhow::Result;

use crate::args::SchedCommand;
use crate::exit::Exit;

/// Runs the subcommand.
pub(crate) fn run(command: &SchedCommand) -> Result<Exit> {
    match command {
        SchedCommand::Run(args) => run::run(args),
        SchedCommand::Set(args) => set::run(args),
        SchedCommand::Show(args) => show::run(args),
    }
}
