//! Messages about tasks while they run, and the reasons why a run has failed.
//!
//! Text only; decides nothing that the supervisor has not decided.

use std::collections::BTreeMap;

use punctual::monitor::Force;
use punctual::process::{Cause, Event, Finished, Over, ProcessEnd, What};
use punctual::session::{Attempt, Refusal};
use punctual_os::scheduler::SchedPolicy;

use crate::format as show;
use crate::report::EndedBy;

/// An event in a line.
pub(super) fn line(event: &Event) -> String {
    let task = &event.task;
    match &event.what {
        What::Started(pid) => format!("{task}: started, process {pid}"),
        What::Joined(pid) => format!("{task}: process {pid} joined"),
        What::TurnedAway(why) => format!("{task}: rejected a registration: {why}"),
        What::Registered => format!("{task}: registered, its releases begin"),
        What::Refused(attempt, errno) => format!("{task}: {attempt} was refused: {errno}"),
        What::ThreadsDemoted(threads) => format!(
            "{task}: {threads} more of its threads ran under a real-time policy without waiting: \
             they were set to SCHED_OTHER"
        ),
        What::Silent => format!("{task}: ran none of its releases for a second"),
        What::Unregistered => format!("{task}: unregistered"),
        What::Dismissed(cause) => {
            format!("{task}: unregistered by the supervisor: {}", cause_of(*cause))
        }
        What::Killed(cause) => format!("{task}: ended by SIGKILL: {}", cause_of(*cause)),
        What::Ended(exit) => format!("{task}: {}", exit_of(*exit)),
        What::StartsAgain(pause) => {
            format!("{task}: restarts in {}", show::long(pause.as_ns().max(0) as f64))
        }
        What::GivenUp => format!("{task}: will not be restarted"),
    }
}

fn cause_of(cause: Cause) -> &'static str {
    match cause {
        Cause::NeverRegistered => "it did not register in time",
        Cause::Overran => "it was still running at its next release",
        Cause::Silent => "it ran none of its releases for a second",
        Cause::Invalid => "it wrote invalid results to its shared memory",
        Cause::ForeignThread => "it registered a thread that is not its own",
        Cause::Over => "it did not exit at the end of the run",
    }
}

/// How a process ended, in words.
pub(super) fn exit_of(exit: ProcessEnd) -> String {
    match exit {
        ProcessEnd::Status(0) => "exited normally".to_owned(),
        ProcessEnd::Status(status) => format!("exited with status {status}"),
        ProcessEnd::Signal(signal) => format!("killed by signal {signal}"),
        ProcessEnd::Unknown => "ended with unknown status".to_owned(),
        ProcessEnd::NotStarted(errno) => {
            format!("could not be started: {}", std::io::Error::from_raw_os_error(errno))
        }
    }
}

/// What the kernel refused, and to whom.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<String, Vec<String>>);

impl Refusals {
    /// Adds a refusal.
    pub(super) fn note(&mut self, event: &Event) {
        if let What::Refused(attempt, errno) = &event.what {
            let what = match attempt {
                // Each task asks for a priority of its own.
                Attempt::Scheduler(SchedPolicy::Fifo(_)) => format!("SCHED_FIFO ({errno})"),
                other => format!("{other} ({errno})"),
            };
            let tasks = self.0.entry(what).or_default();
            if !tasks.contains(&event.task) {
                tasks.push(event.task.clone());
            }
        }
    }

    /// The warnings of a report.
    pub(super) fn warnings(self, finished: &Finished) -> Vec<String> {
        let mut warnings: Vec<String> = self
            .0
            .into_iter()
            .map(|(what, tasks)| format!("refused: {what} for {}", tasks.join(", ")))
            .collect();
        // Of the policy more is said below.
        let others = finished
            .refused
            .iter()
            .filter(|refusal| !matches!(refusal.attempt, Attempt::Scheduler(_)));
        warnings.extend(others.map(|Refusal { attempt, errno }| {
            format!("refused: {attempt} ({errno}) for the releasing thread")
        }));
        if finished.policy == SchedPolicy::Other {
            warnings.push(
                "the releasing thread ran as SCHED_OTHER: any other process can delay the \
                 releases; root, CAP_SYS_NICE or RLIMIT_RTPRIO allows SCHED_FIFO"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// Which tasks had a process, and which of them registered.
#[derive(Debug, Default)]
pub(super) struct Registrations(BTreeMap<String, bool>);

impl Registrations {
    /// Adds an event.
    pub(super) fn note(&mut self, event: &Event) {
        match event.what {
            What::Started(_) => {
                self.0.entry(event.task.clone()).or_insert(false);
            }
            What::Registered => {
                self.0.insert(event.task.clone(), true);
            }
            _ => {}
        }
    }

    fn is_missing(&self, task: &str) -> bool {
        self.0.get(task) == Some(&false)
    }

    /// What to do about tasks that never registered.
    pub(super) fn warnings(&self) -> Vec<String> {
        let missing = self.0.iter().filter(|(_, registered)| !**registered);
        let warning = |(task, _): (&String, _)| {
            format!(
                "{task} never registered, so it had no releases: a task registers by \
                 punctual::process in Rust, punctual_register() in C, 'punctual task exec' in \
                 other languages (docs/running.md)"
            )
        };
        missing.map(warning).collect()
    }
}

/// A note about lines that were dropped because standard error was blocked.
pub(super) fn left_out(lines: u64) -> Option<String> {
    (lines > 0).then(|| format!("standard error was blocked: {lines} lines were dropped"))
}

/// What ended a run of a given length before its time.
pub(super) fn cut_short_by(finished: &Finished, timed: bool) -> Option<EndedBy> {
    let cause = match finished.over {
        Over::Finished => return None,
        Over::Stopped if finished.forced.is_some() => EndedBy::Watchdog,
        Over::Stopped => EndedBy::Interrupt,
        Over::AllGone | Over::Overran(_) => EndedBy::Task,
    };
    timed.then_some(cause)
}

/// Why the run has failed; empty where it has not.
pub(super) fn reasons(finished: &Finished, registered: &Registrations) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Over::Overran(task) = &finished.over {
        reasons.push(format!("{task} overran or ran none of its releases, and its policy is stop"));
    }
    reasons.extend(finished.forced.map(|force| {
        let how = match force {
            Force::Demoted | Force::NotDemoted => "it did not yield",
            Force::Starved => "it did not get the CPU",
            Force::Blocked => "it waited for something else than a release",
            Force::Stuck => "it made no progress",
        };
        format!("the watchdog ended the releases: {how}")
    }));
    let failed = finished.tasks.iter().filter(|task| task.failed);
    reasons.extend(failed.map(|task| {
        // What ended it says nothing of it: it waited for nothing, and the run was over.
        if registered.is_missing(&task.name) {
            return format!("{} never registered", task.name);
        }
        let exit = task.exit.map_or_else(|| "never ran".to_owned(), exit_of);
        format!("{} failed: its last process {exit}", task.name)
    }));
    reasons
}
