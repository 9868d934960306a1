//! The words of a report: what was refused and why, and what to know before believing the numbers.
//!
//! For `build`. Pure; the explanations themselves are in `punctual_host`.

use punctual::os::scheduler::Policy;
use punctual::session::{Attempt, Process, Refusal};
use punctual::watchdog::Force;
use punctual_host::cpulist::CpuList;
use punctual_host::explain::{self, explain};
use punctual_host::facts::Facts;
use punctual_lab::periodic::{self, End};

use super::{Refused, Session};
use crate::experiment::policy_words;

/// What the kernel granted, and what it refused with the reasons.
pub(crate) fn session<S>(outcome: &periodic::Outcome<S>, facts: &Facts) -> Session {
    Session {
        memory_locked: outcome.memory_locked,
        idle_states_held: outcome.idle_states_held,
        refused: outcome.refused.iter().map(|of| refused(of, facts)).collect(),
    }
}

/// The same where a process measured by itself.
pub(crate) fn granted<'r>(
    process: &Process,
    refusals: impl Iterator<Item = &'r Refusal>,
    facts: &Facts,
) -> Session {
    Session {
        memory_locked: process.memory_locked(),
        idle_states_held: process.idle_states_held(),
        refused: refusals.map(|of| refused(of, facts)).collect(),
    }
}

fn refused(refusal: &Refusal, facts: &Facts) -> Refused {
    Refused {
        attempt: refusal.attempt.to_string(),
        errno: refusal.errno.to_string(),
        explanation: explain(&attempt(refusal.attempt), refusal.errno.0, facts),
    }
}

/// The attempt in the words of the room that explains it.
fn attempt(attempt: Attempt) -> explain::Attempt {
    match attempt {
        Attempt::Affinity(cpu) => explain::Attempt::SetAffinity { cpus: CpuList::single(cpu) },
        Attempt::Scheduler(policy) => {
            explain::Attempt::SetScheduler { priority: policy_words(policy).1.map_or(0, u32::from) }
        }
        Attempt::LockMemory => explain::Attempt::LockMemory { bytes: None },
        Attempt::HoldIdleStates => explain::Attempt::HoldCpuDmaLatency,
        Attempt::TimerSlack => explain::Attempt::SetTimerSlack,
    }
}

/// What a reader should know; of each run the first `cold` cycles are left out.
pub(crate) fn warnings<S>(outcome: &periodic::Outcome<S>, facts: &Facts, cold: u32) -> Vec<String> {
    let mut warnings = Vec::new();
    if let End::Watchdog(force) = outcome.end {
        warnings.push(
            match force {
                Force::Demoted => {
                    "the watchdog ended a loop that did not yield: it was made SCHED_OTHER and \
                     stopped"
                }
                Force::Told => {
                    "the watchdog stopped a loop that did not yield; the kernel refused to make it \
                     SCHED_OTHER"
                }
                Force::Starved => {
                    "the watchdog stopped the run: a loop did not get its CPU, another one kept it"
                }
            }
            .to_owned(),
        );
    }
    if let Some(why) = &outcome.clock.untrusted {
        warnings.push(format!("stamps are clock_gettime, not the processor's counter: {why}"));
    }
    if outcome.runs.iter().any(|run| run.cycles > 0 && run.cycles <= u64::from(cold)) {
        warnings.push(
            "a run was so short that all its cycles were cold and are left out: measure longer, or \
             take them in with --keep-cold"
                .to_owned(),
        );
    }
    let real_time = outcome.runs.iter().all(|run| run.policy != Policy::Other);
    if !real_time && outcome.refused.iter().any(|r| matches!(r.attempt, Attempt::Scheduler(_))) {
        warnings.push(
            "measured as SCHED_OTHER: any process may run before the loop; a real-time loop on \
             this machine is late less often"
                .to_owned(),
        );
    }
    if facts.virtualization.virtualization.value().is_some_and(|name| name != "none") {
        warnings.push(
            "this is a guest: time that the host takes is in these numbers and not in its kernel's"
                .to_owned(),
        );
    }
    warnings
}
