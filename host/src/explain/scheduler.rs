//! Refused scheduling policies. Pure.

use super::errno::{EBUSY, EINVAL, EPERM};
use super::{Explanation, container_hint, unexplained};
use crate::facts::{LimitPair, MachineFacts, ResourceLimit};

const COST: &str = "The loop runs as SCHED_OTHER: any other task may run before it, its sleeps \
                    are rounded up by the timer slack, and under load it can be milliseconds late.";

pub(super) fn fixed(priority: u32, errno: i32, facts: &MachineFacts) -> Explanation {
    let (why, remedy) = match errno {
        EPERM => permission(priority, facts),
        EINVAL => (
            format!("real-time priority must be 1 to 99 (got {priority})"),
            "Choose a --priority from 1 to 99.".to_owned(),
        ),
        _ => (unexplained(errno), "Try it with sudo.".to_owned()),
    };
    Explanation::new(why, remedy, COST)
}

/// EPERM has four causes; the facts tell which ones hold.
fn permission(priority: u32, facts: &MachineFacts) -> (String, String) {
    let limits = &facts.limits;
    let capable = limits.capabilities.value().is_some_and(|caps| caps.sys_nice);
    if capable && limits.user_namespace.value() == Some(&true) {
        return (
            "CAP_SYS_NICE is held only inside a user namespace, where the scheduler ignores it"
                .to_owned(),
            format!(
                "Start it outside the user namespace{}.",
                container_hint(facts, "a rootful runtime and --cap-add=SYS_NICE")
            ),
        );
    }
    let limit = limits.rtprio_limit.value();
    let within = limit.is_some_and(|limit| limit.soft.allows(u64::from(priority)));
    if capable || within {
        return group_budget(facts);
    }
    let shown = limit.map_or("unknown".to_owned(), |limit| limit.soft.to_string());
    let why = format!(
        "RLIMIT_RTPRIO is {shown}, priority {priority} was requested, and the process has no \
         CAP_SYS_NICE"
    );
    (why, raise(priority, limit, facts))
}

fn raise(priority: u32, limit: Option<&LimitPair>, facts: &MachineFacts) -> String {
    if let Some(LimitPair { hard, .. }) = limit {
        if hard.allows(u64::from(priority)) {
            return format!("Type: ulimit -r {priority}, then start it again.");
        }
        if let ResourceLimit::AtMost(most @ 1..) = hard {
            return format!(
                "Choose --priority {most} after typing ulimit -r {most}, or use sudo, or raise \
                 the limit: echo \"$USER - rtprio {priority}\" | sudo tee \
                 /etc/security/limits.d/90-rtprio.conf, then log in again."
            );
        }
    }
    format!(
        "Use sudo, or give the program the capability: sudo setcap cap_sys_nice,cap_ipc_lock+ep \
         FILE, or raise the limit: echo \"$USER - rtprio {priority}\" | sudo tee \
         /etc/security/limits.d/90-rtprio.conf, then log in again{}.",
        container_hint(facts, "--cap-add=SYS_NICE or --ulimit rtprio=99")
    )
}

/// Permitted by capability or limit, and still refused: the control group has no budget.
fn group_budget(facts: &MachineFacts) -> (String, String) {
    let budget = &facts.limits.cgroup_rt_runtime_us;
    let grouped = facts.kernel.rt_group_sched.value();
    match (budget.value(), grouped) {
        (Some(0), _) => (
            format!("its control group has no real-time budget ({} is 0)", budget.origin()),
            format!(
                "Type: echo 500000 | sudo tee {}; the groups above it need at least as much.",
                budget.origin()
            ),
        ),
        (_, Some(true)) => (
            "the kernel has CONFIG_RT_GROUP_SCHED, and the real-time budget of a control group is \
             0 until it is set"
                .to_owned(),
            "Start it from the top group: echo $$ | sudo tee /sys/fs/cgroup/cgroup.procs (version \
             1: /sys/fs/cgroup/cpu/cgroup.procs), or boot with rt_group_sched=0 where the kernel \
             knows it (Linux 6.16 and later)."
                .to_owned(),
        ),
        _ => (
            "limits and capabilities permit it, so a security module, a seccomp filter or the \
             real-time budget of a control group forbids it"
                .to_owned(),
            format!(
                "Look at the kernel log: sudo dmesg | tail{}.",
                container_hint(facts, "--security-opt seccomp=unconfined for a trial")
            ),
        ),
    }
}

pub(super) fn deadline(errno: i32, facts: &MachineFacts) -> Explanation {
    let capable = facts.limits.capabilities.value().is_some_and(|caps| caps.sys_nice);
    let (why, remedy) = match errno {
        EPERM if !capable => (
            "SCHED_DEADLINE needs CAP_SYS_NICE; no resource limit replaces it".to_owned(),
            "Use sudo, or: sudo setcap cap_sys_nice+ep FILE.".to_owned(),
        ),
        EPERM => (
            "a SCHED_DEADLINE task must be free to run on every CPU of its root domain, and an \
             affinity narrows it"
                .to_owned(),
            "Do not pin it: make a cpuset partition of its CPUs instead, or use SCHED_FIFO."
                .to_owned(),
        ),
        EBUSY => (
            "the requested bandwidth exceeds what is free: other SCHED_DEADLINE tasks and the \
             fair server reserve bandwidth, and sched_rt_runtime_us limits all"
                .to_owned(),
            "Request a smaller runtime or a longer period.".to_owned(),
        ),
        EINVAL => (
            "runtime, deadline and period must be in that order, at least 1024 ns and within \
             kernel.sched_deadline_period_min_us and _max_us"
                .to_owned(),
            "Choose a period of at least 100 µs, the kernel's default bound.".to_owned(),
        ),
        _ => (unexplained(errno), "Use SCHED_FIFO.".to_owned()),
    };
    Explanation::new(why, remedy, COST)
}

pub(super) fn timer_slack(errno: i32) -> Explanation {
    Explanation::new(
        unexplained(errno),
        "Use a real-time policy: the kernel ignores the slack for it.",
        "Sleeps of an ordinary task may end up to its slack late, 50 µs by default.",
    )
}
