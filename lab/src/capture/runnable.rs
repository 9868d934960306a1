//! The threads that run, or wait for a CPU, when a recording begins: no event shows them before the
//! first switch.
//!
//! Reads /proc; anything that a thread does meanwhile is in its events.

use std::fs;
use std::path::Path;

use punctual_blame::config::RunnableThread;
use punctual_host::root::Root;
use punctual_host::threads::RunningThread;
use punctual_os::scheduler::SchedAttributes;
use punctual_trace::event::{ShortName, TaskName};

/// The first namespace of process numbers (PROC_PID_INIT_INO, include/linux/proc_ns.h): events have
/// its numbers, /proc those of the caller's.
pub(crate) const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Every thread that runs or waits; none in a namespace whose numbers are not those of events.
pub(crate) fn runnable_threads(root: &Root) -> Vec<RunnableThread> {
    let namespace = fs::read_link("/proc/self/ns/pid");
    if namespace.map_or(true, |namespace| namespace != Path::new(FIRST_NAMESPACE)) {
        return Vec::new();
    }
    let threads = RunningThread::all(root).into_iter().filter(|thread| thread.is_runnable);
    threads.map(|thread| runnable(&thread)).collect()
}

fn runnable(thread: &RunningThread) -> RunnableThread {
    // Its niceness, which /proc has too, decides nothing here.
    let attributes = SchedAttributes::of(thread.policy);
    let kernel_priority =
        SchedAttributes { priority: thread.priority, ..attributes }.kernel_priority();
    let (tid, name) = (thread.tid.unsigned_abs(), ShortName::new(thread.name.as_bytes()));
    RunnableThread { task: TaskName { tid, name, kernel_priority }, cpu: thread.last_cpu }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_os::scheduler::{DEADLINE, FIFO, OTHER};

    #[test]
    fn priorities_are_as_the_kernel_counts() {
        let own = std::process::id().cast_signed();
        let own = RunningThread::read(&Root::live(), own, own).expect("this process");
        let kernel_priority = |policy, priority| {
            let thread = RunningThread { policy, priority, tid: 7, last_cpu: 3, ..own.clone() };
            let RunnableThread { task, cpu } = runnable(&thread);
            assert_eq!((task.tid, cpu), (7, 3));
            assert_eq!(task.name, ShortName::new(own.name.as_bytes()));
            task.kernel_priority
        };
        let found = [(FIFO, 97), (DEADLINE, 0), (OTHER, 0)]
            .map(|(policy, priority)| kernel_priority(policy, priority));
        assert_eq!(found, [2, -1, 120]);
    }

    #[test]
    fn whoever_looks_runs() {
        let is_first = fs::read_link("/proc/self/ns/pid")
            .is_ok_and(|namespace| namespace == Path::new(FIRST_NAMESPACE));
        let own = punctual_os::process::tid().unsigned_abs();
        let found = runnable_threads(&Root::live());
        assert_eq!(found.iter().any(|thread| thread.task.tid == own), is_first);
    }
}
