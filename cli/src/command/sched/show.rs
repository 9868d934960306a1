//! `punctual sched show`: policy, priority and CPUs of threads.
//!
//! Reads, prints, changes nothing.

use anyhow::{Result, bail};
use punctual_host::Root;
use punctual_os::sched_attr::{self, SchedAttributes};

use super::request::policy_words;
use super::threads;
use crate::args::SchedShowArgs;
use crate::exit::Exit;
use crate::format;
use crate::output;

/// Runs the subcommand.
pub(super) fn run(args: &SchedShowArgs) -> Result<Exit> {
    let root = Root::live();
    let processes = match args.pid {
        Some(pid) => vec![pid],
        None => threads::processes(&root),
    };
    let mut page = format!("{:>7} {:>7}  {:28} {:16} {}\n", "PID", "TID", "POLICY", "NAME", "CPUS");
    let head = page.len();
    for pid in processes {
        for tid in threads::of_process(&root, pid) {
            let Ok(of) = sched_attr::get(tid.cast_signed()) else { continue };
            if args.pid.is_some() || is_real_time(&of) {
                page += &line(&root, pid, tid, &of);
            }
        }
    }
    match args.pid {
        Some(pid) if page.len() == head => bail!("no process {pid} runs"),
        None if page.len() == head => page = "no real-time threads\n".to_owned(),
        _ => {}
    }
    output::page(&page)?;
    Ok(Exit::Fine)
}

fn is_real_time(of: &SchedAttributes) -> bool {
    matches!(of.policy, sched_attr::FIFO | sched_attr::ROUND_ROBIN | sched_attr::DEADLINE)
}

/// A thread that ends meanwhile has no name and no CPUs.
fn line(root: &Root, pid: u32, tid: u32, of: &SchedAttributes) -> String {
    let path = format!("/proc/{pid}/task/{tid}/status");
    let field = |name: &str| {
        format::plain(&threads::status(root, &path, name).unwrap_or_else(|| "-".to_owned()))
    };
    let (name, cpus) = (field("Name"), field("Cpus_allowed_list"));
    let reset = if of.flags & sched_attr::RESET_ON_FORK == 0 { "" } else { ", reset" };
    let policy = policy_words(of) + reset;
    format!("{pid:>7} {tid:>7}  {policy:28} {name:16} {cpus}\n")
}
