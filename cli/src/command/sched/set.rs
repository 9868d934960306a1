//! `punctual sched set PID`: policy and CPUs of threads that run.

use anyhow::{Result, anyhow, bail};
use punctual_host::Root;

use super::request::Request;
use super::threads;
use crate::args::SchedSetArgs;
use crate::exit::Exit;
use crate::output;

/// Runs the subcommand. Each thread is tried; the first refusal is the error.
pub(super) fn run(args: &SchedSetArgs) -> Result<Exit> {
    let request = Request::of(&args.sched)?;
    let root = Root::live();
    let processes: Vec<u32> = match args.children {
        true => args.pids.iter().flat_map(|pid| threads::with_children(&root, *pid)).collect(),
        false => args.pids.clone(),
    };
    let tids: Vec<u32> = match args.threads || args.children {
        true => processes.iter().flat_map(|pid| threads::of_process(&root, *pid)).collect(),
        false => processes,
    };
    if tids.is_empty() {
        bail!(
            "no process {} runs",
            args.pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        );
    }
    let mut refused = None;
    let mut changed = 0;
    for tid in &tids {
        match request.give(tid.cast_signed()) {
            Ok(()) => changed += 1,
            Err(why) => drop(refused.get_or_insert_with(|| anyhow!("thread {tid}: {why}"))),
        }
    }
    let shown = output::page(format!("{changed} of {} threads changed\n", tids.len()));
    refused.map_or(Ok(()), Err)?;
    shown?;
    Ok(Exit::Fine)
}
