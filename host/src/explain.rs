//! Why the kernel refused something, what to do about it, and what it costs meanwhile.
//!
//! Pure: an attempt, the error number and the facts go in, three sentences come out. The errors
//! are those of the manual pages (sched_setscheduler(2), mlock(2), sched_setaffinity(2), msr(4),
//! Documentation/power/pm_qos_interface). Numbers that are the same on every Linux architecture
//! that Rust supports are used; any other is passed on in words.

mod affinity;
mod device;
mod memory;
mod scheduler;

use crate::cpulist::CpuList;
use crate::facts::MachineFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Error numbers of `errno-base.h`, the same everywhere.
pub(crate) mod errno {
    pub(crate) const EPERM: i32 = 1;
    pub(crate) const ENOENT: i32 = 2;
    pub(crate) const EIO: i32 = 5;
    pub(crate) const ENXIO: i32 = 6;
    pub(crate) const EAGAIN: i32 = 11;
    pub(crate) const ENOMEM: i32 = 12;
    pub(crate) const EACCES: i32 = 13;
    pub(crate) const EBUSY: i32 = 16;
    pub(crate) const ENODEV: i32 = 19;
    pub(crate) const EINVAL: i32 = 22;
    pub(crate) const EROFS: i32 = 30;
}

/// What the kernel refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedCall {
    /// `sched_setscheduler` or `sched_setattr` to `SCHED_FIFO` or `SCHED_RR`.
    SetScheduler {
        /// The requested priority, 1 to 99 as the kernel counts.
        priority: u32,
    },
    /// `sched_setattr` to `SCHED_DEADLINE`.
    SetDeadline,
    /// `mlock`, `mlock2` or `mlockall`.
    LockMemory {
        /// How much, in bytes, where it is known.
        bytes: Option<u64>,
    },
    /// Opening or writing `/dev/cpu_dma_latency`.
    HoldCpuDmaLatency,
    /// `sched_setaffinity`.
    SetAffinity {
        /// The requested CPUs.
        cpus: CpuList,
    },
    /// Reading `/dev/cpu/N/msr`.
    ReadMsr,
    /// `prctl(PR_SET_TIMERSLACK)`.
    SetTimerSlack,
    /// `unshare(CLONE_NEWNET)` for a network load.
    CreateNetworkNamespace,
}

/// Why it was refused, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The reason, as far as it is known: a clause without a full stop, to follow a colon.
    pub why: String,
    /// The remedy, as a sentence; with the command to type if one is enough.
    pub remedy: String,
    /// The consequence of going on without it, as a sentence.
    pub cost: String,
}

impl Explanation {
    fn new(why: impl Into<String>, remedy: impl Into<String>, cost: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: remedy.into(), cost: cost.into() }
    }
}

/// Explains a refusal. `errno` is the kernel's positive error number.
pub fn explain(attempt: &RefusedCall, errno: i32, facts: &MachineFacts) -> Explanation {
    match attempt {
        RefusedCall::SetScheduler { priority } => scheduler::fixed(*priority, errno, facts),
        RefusedCall::SetDeadline => scheduler::deadline(errno, facts),
        RefusedCall::LockMemory { bytes } => memory::lock(*bytes, errno, facts),
        RefusedCall::HoldCpuDmaLatency => device::cpu_dma_latency(errno, facts),
        RefusedCall::SetAffinity { cpus } => affinity::set(cpus, errno, facts),
        RefusedCall::ReadMsr => device::msr(errno, facts),
        RefusedCall::SetTimerSlack => scheduler::timer_slack(errno),
        RefusedCall::CreateNetworkNamespace => device::network_namespace(errno, facts),
    }
}

/// For what no rule knows: the number itself, and no guess.
fn unexplained(errno: i32) -> String {
    let error = std::io::Error::from_raw_os_error(errno).to_string();
    let text = error.split(" (os error").next().unwrap_or_default().to_lowercase();
    format!("the kernel returned '{text}' (error {errno}), for which there is no explanation here")
}

/// Added where the process runs in a container, since limits then come from its runtime.
fn container_hint(facts: &MachineFacts, option: &str) -> String {
    match facts.virtualization.container.value() {
        Some(name) => format!("; in this container ({name}), start it with {option}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
