//! The tasks of an executive that are processes, beside its loops.
//!
//! Setup and the end are the executive's; in between a supervisor releases them.

use punctual_core::clock::Clock;
use punctual_core::time::Period;
use punctual_os::scheduler::SchedPolicy;

use super::error::ExecutiveError;
use super::process::Process;
use super::run::Run;
use super::shared::IDLE;
use crate::clocks::MachineClock;
use crate::counting::Stats as Memory;
use crate::error::Error;
use crate::process::{Over, Stop, Supervisor, TaskOutcome};
use crate::rt_thread::RtThread;
use crate::task::Task;
use crate::wait_policy::ready as ready_wait;

/// The supervisor of the tasks that are processes.
pub(super) fn supervised(
    processes: Vec<(usize, Task, Process)>,
    name: Option<String>,
    main: &RtThread,
    is_machine: bool,
) -> Result<Option<(Supervisor, Vec<usize>)>, Error> {
    if processes.is_empty() {
        return Ok(None);
    }
    if !is_machine {
        return Err(ExecutiveError::ProcessClock.into());
    }
    let mut supervisor = Supervisor::new().allow_overload();
    // Below the executive's own loop.
    let priority = match main.policy() {
        SchedPolicy::Fifo(n) | SchedPolicy::RoundRobin(n) => n.saturating_sub(1).max(2),
        _ => Supervisor::PRIORITY,
    };
    supervisor = supervisor.thread(main.clone().fifo(priority));
    if let Some(name) = name {
        supervisor = supervisor.name(name);
    }
    let mut entries = Vec::new();
    for (entry, task, process) in processes {
        entries.push(entry);
        supervisor = supervisor.task(process.spec(task));
    }
    supervisor.check()?;
    Ok(Some((supervisor, entries)))
}

/// Runs the supervisor until the executive ends; what became of its tasks.
pub(super) fn supervise<C: Clock + Clone + Send>(
    run: &Run<'_, '_, C>,
    supervisor: Supervisor,
    entries: &[usize],
) -> Option<Vec<TaskOutcome>> {
    let (_, epoch) = run.await_settled()?;
    let ready = match supervisor.epoch(epoch).build() {
        Ok(ready) => ready,
        Err(why) => {
            run.fail(why);
            return None;
        }
    };
    for (name, page) in ready.pages() {
        let mut tasks = run.shared.tasks();
        let is = |&&at: &&usize| tasks.entries[at].name == name;
        if let Some(&at) = entries.iter().find(is) {
            tasks.entries[at].stats = Some(Memory::Shared(page));
        }
    }
    let shortest: Period = ready.shortest().unwrap_or(IDLE);
    let thread = &run.shared.rules.thread;
    let mut clock = MachineClock::best();
    let at = (shortest, epoch.as_ns() % shortest.as_ns());
    let (wait, warnings) = ready_wait(&thread.wait, at, &mut clock, MachineClock::discipline);
    run.warn(warnings);
    run.ready();
    let times = run.await_go(false, || epoch)?;
    // Its own stop: that no process is left is no reason for the other tasks to stop.
    let stop = Stop::dated(&run.shared.ending.processes);
    let times = (times.from, times.end);
    let finished = ready.run_between((clock, wait), times, stop, &mut |_| ());
    let finished = finished.map_err(|why: Error| run.fail(why)).ok()?;
    if let Over::Overran(task) = &finished.over {
        run.shared.ending.overran(task);
    }
    run.refuse(&finished.refused);
    Some(finished.tasks)
}
