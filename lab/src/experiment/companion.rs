//! What runs next to the measuring threads of an experiment: the watchdog, and the look at the
//! machine.
//!
//! Keeps to the housekeeping CPUs.

use std::io;
use std::sync::atomic::AtomicBool;
use std::thread::Scope;

use punctual::disturbance::{Disturbance, Observation, compare};
use punctual::monitor::{Progress, watch};
use punctual::spawn;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::scheduler::{self, SchedPolicy};

/// Keeps the calling thread on these CPUs. Where that is refused it runs where it may.
pub(crate) fn keep_to(cpus: &[u32]) {
    if !cpus.is_empty() {
        let mut mask = CpuMask::EMPTY;
        cpus.iter().for_each(|&cpu| mask.insert(cpu));
        let _anywhere = affinity::set(0, &mask);
    }
}

/// Watches `charges` until `done`, from a thread on the housekeeping CPUs.
///
/// # Errors
/// No thread could be had.
pub(crate) fn watchdog<'scope, 'env: 'scope, P: Fn() -> u64 + Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    housekeeping: &'env [u32],
    charges: Vec<Progress<'env, P>>,
    (stop, done): (&'env AtomicBool, &'env AtomicBool),
) -> io::Result<()> {
    spawn::scoped(scope, "punctual-watch", move || {
        keep_to(housekeeping);
        // Above the measuring threads where permitted; below them it still runs, as it has another
        // CPU, or their rests.
        let _as_it_is = scheduler::set(0, SchedPolicy::Fifo(99));
        watch(&charges, stop, done);
    })?;
    Ok(())
}

/// Looks at the machine again and again, and keeps what happened in between.
#[derive(Debug)]
pub(crate) struct Lookout {
    before: Observation,
    happened: Vec<(u64, Disturbance)>,
}

impl Lookout {
    /// The first look, at these threads and the CPUs that they are pinned to.
    pub(crate) fn new(threads: &[(i32, u32)]) -> Self {
        Self { before: Observation::look(threads), happened: Vec::new() }
    }

    /// Another look.
    pub(crate) fn look(&mut self, threads: &[(i32, u32)]) {
        self.look_while(threads, || true);
    }

    /// Another look, which counts only where `steady` holds before and after it.
    pub(crate) fn look_while(&mut self, threads: &[(i32, u32)], steady: impl Fn() -> bool) {
        if !steady() {
            return;
        }
        let after = Observation::look(threads);
        if !steady() {
            return;
        }
        let happened = compare(&self.before, &after).into_iter().map(|what| (after.at_ns, what));
        self.happened.extend(happened);
        self.before = after;
    }

    /// What happened, and when on CLOCK_MONOTONIC, in ns.
    pub(crate) fn happened(self) -> Vec<(u64, Disturbance)> {
        self.happened
    }
}

/// A policy as the kernel names it, and its priority where it has one.
pub(crate) fn policy_words(policy: SchedPolicy) -> (String, Option<u8>) {
    let (name, priority) = match policy {
        SchedPolicy::Other => ("SCHED_OTHER", None),
        SchedPolicy::Fifo(priority) => ("SCHED_FIFO", Some(priority)),
        SchedPolicy::RoundRobin(priority) => ("SCHED_RR", Some(priority)),
        SchedPolicy::Unknown(_) => ("unknown", None),
    };
    (name.to_owned(), priority)
}
