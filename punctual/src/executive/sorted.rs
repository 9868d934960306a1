//! The tasks of an executive by who does their work, and what cannot be where it runs.
//!
//! For the builder. Decides nothing else.

use punctual_core::table::OnOverrun;
use punctual_os::scheduler::SchedPolicy;

use super::body::Body;
use super::entries::Entry;
use super::error::ExecutiveError;
use super::process::Process;
use super::work::{Given, Work};
use crate::error::Error;
use crate::periodic::{BuildError, Periodic};
use crate::rt_thread::RtThread;
use crate::task::{Offset, Place, Task};

/// The tasks by who does their work.
#[derive(Default)]
pub(super) struct Sorted<'env> {
    /// Of the executive's own loops.
    pub(super) bodies: Vec<(usize, Task, Body<'env>)>,
    /// In threads of their own.
    pub(super) threads: Vec<(usize, Task, Work<'env>)>,
    pub(super) processes: Vec<(usize, Task, Process)>,
}

/// The tasks by who does their work, each with its number; what cannot be where it runs.
pub(super) fn sort<'env>(
    given: Vec<Given<'env>>,
    entries: &mut Vec<Entry>,
    main: SchedPolicy,
) -> Result<Sorted<'env>, Error> {
    let mut sorted = Sorted::default();
    for Given { task, work } in given {
        let at = entries.len();
        entries.push(Entry::new(task.name.clone()));
        let cannot = |why| Err(Error::from(BuildError::Cannot(task.name.clone(), why)));
        match (work, &task.placement.0) {
            (Work::Triggered(..), Place::Cpu(_)) => {
                return cannot("a device triggers it: it needs a thread of its own");
            }
            (Work::Triggered(trigger, body), _) => {
                if let Some(why) = never_late(&task) {
                    return cannot(why);
                }
                sorted.threads.push((at, task, Work::Triggered(trigger, body)));
            }
            (Work::Process(_), Place::Cpu(_) | Place::Thread(_)) => {
                return cannot("it is a process: `Process` says where that runs");
            }
            (Work::Process(process), Place::Inline) => sorted.processes.push((at, task, *process)),
            (Work::Body(_), _) if !task.has_period() => {
                return Err(ExecutiveError::NoPeriod(task.name).into());
            }
            (Work::Body(body), Place::Thread(thread)) => {
                check_thread(&task, thread, main)?;
                sorted.threads.push((at, task, Work::Body(body)));
            }
            (Work::Body(body), _) => sorted.bodies.push((at, task, body)),
        }
    }
    check_names(&sorted)?;
    Ok(sorted)
}

/// Whether a task's thread can run so beside a main loop of this policy.
pub(super) fn check_thread(task: &Task, thread: &RtThread, main: SchedPolicy) -> Result<(), Error> {
    let fifo = |policy| match policy {
        SchedPolicy::Fifo(n) | SchedPolicy::RoundRobin(n) => n,
        _ => 0,
    };
    thread.check(task.period)?;
    let own = thread.policy.map_or(1, fifo);
    if fifo(main) > 0 && own >= fifo(main) {
        return Err(ExecutiveError::NotBelow(task.name.clone(), own, fifo(main)).into());
    }
    Ok(())
}

/// What a task without releases cannot have.
fn never_late(task: &Task) -> Option<&'static str> {
    match (task.policy, &task.phase) {
        (OnOverrun::Burst(_), _) => {
            Some("a device triggers it: it has no releases to catch up with")
        }
        (OnOverrun::Delay, _) => Some("a device triggers it: it has no phase that could move"),
        (OnOverrun::Terminate, _) => Some("a device triggers it: it has no release to be ended at"),
        (OnOverrun::Stop, _) => Some("a device triggers it: it has no release to overrun"),
        (_, Offset::At(_) | Offset::After(..)) => Some("a device triggers it: it has no phase"),
        _ if task.deadline_ns.is_some() || task.start_ns.is_some() => {
            Some("a device triggers it: without a release nothing is late")
        }
        _ => None,
    }
}

/// All that has nothing to do with where tasks run: names above all.
fn check_names(sorted: &Sorted<'_>) -> Result<(), Error> {
    let bodies = sorted.bodies.iter().map(|(_, task, _)| task);
    let threads = sorted.threads.iter().map(|(_, task, _)| task);
    let processes = sorted.processes.iter().map(|(_, task, _)| task);
    let all = bodies.chain(threads).chain(processes).cloned();
    Ok(all.fold(Periodic::new(), Periodic::task).allow_overload().check().map(drop)?)
}

/// The budgets of what runs on the main loop's CPU fit there.
pub(super) fn check_load<'t>(
    main: &RtThread,
    tasks: impl Iterator<Item = &'t Task>,
    overload: bool,
) -> Result<(), Error> {
    let elsewhere = |task: &&Task| match &task.placement.0 {
        Place::Thread(thread) => thread.cpu.is_some() && thread.cpu != main.cpu,
        _ => false,
    };
    let load: f64 = tasks.filter(|task| !elsewhere(task)).map(Task::load).sum();
    // A sum of quotients may be off by a few parts in 10¹⁶.
    if load > 1.0 + 1e-9 && !overload {
        return Err(BuildError::Overload(load).into());
    }
    Ok(())
}
