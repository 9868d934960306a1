//! Refused affinities. Pure.

use super::errno::{EBUSY, EINVAL, EPERM};
use super::{Explanation, unexplained};
use crate::choose::check_cpus;
use crate::cpulist::CpuList;
use crate::facts::MachineFacts;

const COST: &str = "The loop is not pinned: the kernel may move it to another CPU during the run, \
                    which costs its cache contents and mixes CPUs in one result.";

pub(super) fn set(cpus: &CpuList, errno: i32, facts: &MachineFacts) -> Explanation {
    let (why, remedy) = match errno {
        EINVAL => match check_cpus(cpus, facts) {
            Err(error) => (error.to_string(), choose_another(facts)),
            Ok(()) => (
                format!("CPU {cpus} went offline or left the cpuset after the facts were read"),
                choose_another(facts),
            ),
        },
        EPERM => (
            "only the owner of a task or CAP_SYS_NICE may set its affinity".to_owned(),
            "Use sudo.".to_owned(),
        ),
        EBUSY => (
            "the task is SCHED_DEADLINE, which must be free to run on every CPU of its root domain"
                .to_owned(),
            "Pin it before the policy is set, or use SCHED_FIFO.".to_owned(),
        ),
        _ => (unexplained(errno), choose_another(facts)),
    };
    Explanation::new(why, remedy, COST)
}

fn choose_another(facts: &MachineFacts) -> String {
    let limits = &facts.limits;
    match limits.cpuset_cpus.value().or(limits.allowed_cpus.value()) {
        Some(cpus) => format!("Choose from CPU {cpus} with --cpu."),
        None => "Choose another one with --cpu.".to_owned(),
    }
}
