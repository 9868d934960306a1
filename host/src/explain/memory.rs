//! Refused memory locks. Pure.

use super::errno::{EAGAIN, ENOMEM, EPERM};
use super::{Explanation, container_hint, unexplained};
use crate::facts::{MachineFacts, ResourceLimit};

const COST: &str = "Memory can be paged out, or not be mapped yet: a first touch costs \
                    microseconds, a read from disk milliseconds.";

pub(super) fn lock(bytes: Option<u64>, errno: i32, facts: &MachineFacts) -> Explanation {
    let limits = &facts.limits;
    let limit = limits.memlock_limit_bytes.value();
    let capable = limits.capabilities.value().is_some_and(|caps| caps.ipc_lock);
    let namespaced = limits.user_namespace.value() == Some(&true);
    let wanted = bytes.map_or(String::new(), |bytes| format!(", {} were requested", kib(bytes)));
    match (errno, limit) {
        (EPERM | ENOMEM | EAGAIN, Some(limit)) if !capable || namespaced => {
            let why = match limit.soft {
                ResourceLimit::AtMost(0) => "RLIMIT_MEMLOCK is 0".to_owned(),
                ResourceLimit::AtMost(bytes) => format!("RLIMIT_MEMLOCK is {}{wanted}", kib(bytes)),
                ResourceLimit::Unlimited => {
                    return Explanation::new(out_of_memory(facts), FREE, COST);
                }
            };
            let missing = if capable {
                "CAP_IPC_LOCK is valid only in its user namespace"
            } else {
                "the process has no CAP_IPC_LOCK"
            };
            let remedy = if bytes.is_some_and(|bytes| limit.hard.allows(bytes)) {
                let hard = match limit.hard {
                    ResourceLimit::AtMost(bytes) => (bytes / 1024).to_string(),
                    ResourceLimit::Unlimited => "unlimited".to_owned(),
                };
                format!("Type: ulimit -l {hard}, then start it again.")
            } else {
                format!(
                    "Use sudo, or give the program the capability: sudo setcap \
                     cap_sys_nice,cap_ipc_lock+ep FILE, or raise the limit: echo \"$USER - memlock \
                     unlimited\" | sudo tee /etc/security/limits.d/90-memlock.conf, then log in \
                     again{}.",
                    container_hint(facts, "--ulimit memlock=-1")
                )
            };
            Explanation::new(format!("{why}, and {missing}"), remedy, COST)
        }
        (ENOMEM | EAGAIN, _) => Explanation::new(out_of_memory(facts), FREE, COST),
        (EPERM, _) => Explanation::new(
            "locking memory needs CAP_IPC_LOCK or an RLIMIT_MEMLOCK above 0",
            "Use sudo, or: sudo setcap cap_ipc_lock+ep FILE.",
            COST,
        ),
        _ => Explanation::new(unexplained(errno), "Try it with sudo.", COST),
    }
}

const FREE: &str = "Free memory, or raise the memory limit of its control group.";

fn out_of_memory(facts: &MachineFacts) -> String {
    let total = facts.memory.memory_bytes.value();
    let of = total.map_or(String::new(), |bytes| format!(" of {} in all", kib(*bytes)));
    format!(
        "no limit forbids it, so there is too little free memory{of}, or there are too many \
             mappings"
    )
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes / 1024)
}
