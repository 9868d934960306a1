//! Why the kernel refused something, what to do about it, and what it costs meanwhile.
//!
//! Pure: an attempt, the error number and the facts go in, three sentences come out. The errors
//! are those of the manual pages (sched_setscheduler(2), mlock(2), sched_setaffinity(2), msr(4),
//! Documentation/power/pm_qos_interface). Numbers that are the same on every Linux architecture
//! that Rust supports are used; any other is passed on in words.

use punctual_os::Errno;
use punctual_os::rights::{RaisedLimit, Right};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choose::check_cpus;
use crate::cpulist::CpuList;
use crate::facts::{LimitPair, MachineFacts, ResourceLimit};

/// A call that the kernel refused.
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
        /// Its size in bytes, where it is known.
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
    /// Any other call.
    Other,
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

/// Explains a refusal with that error.
pub fn explain(attempt: &RefusedCall, errno: Errno, facts: &MachineFacts) -> Explanation {
    match attempt {
        RefusedCall::SetScheduler { priority } => fixed_priority(*priority, errno, facts),
        RefusedCall::SetDeadline => deadline(errno, facts),
        RefusedCall::LockMemory { bytes } => memory_lock(*bytes, errno, facts),
        RefusedCall::HoldCpuDmaLatency => cpu_dma_latency(errno, facts),
        RefusedCall::SetAffinity { cpus } => affinity(cpus, errno, facts),
        RefusedCall::ReadMsr => msr(errno, facts),
        RefusedCall::SetTimerSlack => timer_slack(errno),
        RefusedCall::CreateNetworkNamespace => network_namespace(errno, facts),
        RefusedCall::Other => {
            Explanation::new(unexplained(errno), "Try it with sudo.", "It runs without that.")
        }
    }
}

/// For what no rule knows: the number itself, and no guess.
fn unexplained(errno: Errno) -> String {
    let error = std::io::Error::from_raw_os_error(errno.0).to_string();
    let text = error.split(" (os error").next().unwrap_or_default().to_lowercase();
    let number = errno.0;
    format!("the kernel returned '{text}' (error {number}), for which there is no explanation here")
}

/// Added where the process runs in a container, since limits then come from its runtime.
fn container_hint(facts: &MachineFacts, option: &str) -> String {
    match facts.virtualization.container.value() {
        Some(name) => format!("; in this container ({name}), start it with {option}"),
        None => String::new(),
    }
}

/// Of a refused affinity.
const AFFINITY_COST: &str = "The loop is not pinned: the kernel may move it to another CPU during \
                             the run, which costs its cache contents and mixes CPUs in one result.";

fn affinity(cpus: &CpuList, errno: Errno, facts: &MachineFacts) -> Explanation {
    let (why, remedy) = match errno {
        Errno::INVAL => match check_cpus(cpus, facts) {
            Err(error) => (error.to_string(), choose_another(facts)),
            Ok(()) => (
                format!("CPU {cpus} went offline or left the cpuset after the facts were read"),
                choose_another(facts),
            ),
        },
        Errno::PERM => (
            "only the owner of a task or CAP_SYS_NICE may set its affinity".to_owned(),
            "Use sudo.".to_owned(),
        ),
        Errno::BUSY => (
            "the task is SCHED_DEADLINE, which must be free to run on every CPU of its root domain"
                .to_owned(),
            "Pin it before the policy is set, or use SCHED_FIFO.".to_owned(),
        ),
        _ => (unexplained(errno), choose_another(facts)),
    };
    Explanation::new(why, remedy, AFFINITY_COST)
}

fn choose_another(facts: &MachineFacts) -> String {
    let limits = &facts.limits;
    match limits.cpuset_cpus.value().or(limits.allowed_cpus.value()) {
        Some(cpus) => format!("Choose from CPU {cpus} with --cpu."),
        None => "Choose another one with --cpu.".to_owned(),
    }
}

/// Of a refused lock of memory.
const MEMORY_COST: &str = "Memory can be paged out, or not be mapped yet: a first touch costs \
                    microseconds, a read from disk milliseconds.";

fn memory_lock(bytes: Option<u64>, errno: Errno, facts: &MachineFacts) -> Explanation {
    let limits = &facts.limits;
    let limit = limits.memlock_limit_bytes.value();
    let capable = limits.capabilities.value().is_some_and(|caps| caps.ipc_lock);
    let namespaced = limits.user_namespace.value() == Some(&true);
    let wanted = bytes.map_or(String::new(), |bytes| format!(", {} were requested", kib(bytes)));
    match (errno, limit) {
        (Errno::PERM | Errno::NOMEM | Errno::AGAIN, Some(limit)) if !capable || namespaced => {
            let why = match limit.soft {
                ResourceLimit::AtMost(0) => "RLIMIT_MEMLOCK is 0".to_owned(),
                ResourceLimit::AtMost(bytes) => format!("RLIMIT_MEMLOCK is {}{wanted}", kib(bytes)),
                ResourceLimit::Unlimited => {
                    return Explanation::new(out_of_memory(facts), FREE, MEMORY_COST);
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
                let hint = container_hint(facts, "--ulimit memlock=-1");
                format!("Use sudo, or {}{hint}.", Right::Limited(RaisedLimit::LockMemory))
            };
            Explanation::new(format!("{why}, and {missing}"), remedy, MEMORY_COST)
        }
        (Errno::NOMEM | Errno::AGAIN, _) => {
            Explanation::new(out_of_memory(facts), FREE, MEMORY_COST)
        }
        (Errno::PERM, _) => Explanation::new(
            "locking memory needs CAP_IPC_LOCK or an RLIMIT_MEMLOCK above 0",
            "Use sudo, or: sudo setcap cap_ipc_lock+ep FILE.",
            MEMORY_COST,
        ),
        _ => Explanation::new(unexplained(errno), "Try it with sudo.", MEMORY_COST),
    }
}

const FREE: &str = "Free memory, or raise the memory limit of its control group.";

fn out_of_memory(facts: &MachineFacts) -> String {
    let bytes = facts.memory.memory_bytes.value();
    let total = bytes.map_or(String::new(), |bytes| format!(" of {} in all", kib(*bytes)));
    format!(
        "no limit forbids it, so there is too little free memory{total}, or there are too many \
             mappings"
    )
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes / 1024)
}

/// Of a refused policy.
const POLICY_COST: &str = "The loop runs as SCHED_OTHER: any other task may run before it, its \
                           sleeps are rounded up by the timer slack, and under load it can \
                           be milliseconds late.";

fn fixed_priority(priority: u32, errno: Errno, facts: &MachineFacts) -> Explanation {
    let (why, remedy) = match errno {
        Errno::PERM => permission(priority, facts),
        Errno::INVAL => (
            format!("real-time priority must be 1 to 99 (got {priority})"),
            "Choose a --priority from 1 to 99.".to_owned(),
        ),
        _ => (unexplained(errno), "Try it with sudo.".to_owned()),
    };
    Explanation::new(why, remedy, POLICY_COST)
}

/// Errno::PERM has four causes; the facts tell which ones hold.
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
    let raised = RaisedLimit::RealTime(priority);
    if let Some(LimitPair { hard, .. }) = limit {
        if hard.allows(u64::from(priority)) {
            return format!("Type: ulimit -r {priority}, then start it again.");
        }
        if let ResourceLimit::AtMost(most @ 1..) = hard {
            return format!(
                "Choose --priority {most} after typing ulimit -r {most}, or use sudo, or {raised}."
            );
        }
    }
    let hint = container_hint(facts, "--cap-add=SYS_NICE or --ulimit rtprio=99");
    format!("Use sudo, or {}{hint}.", Right::Limited(raised))
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

fn deadline(errno: Errno, facts: &MachineFacts) -> Explanation {
    let capable = facts.limits.capabilities.value().is_some_and(|caps| caps.sys_nice);
    let (why, remedy) = match errno {
        Errno::PERM if !capable => (
            "SCHED_DEADLINE needs CAP_SYS_NICE; no resource limit replaces it".to_owned(),
            "Use sudo, or: sudo setcap cap_sys_nice+ep FILE.".to_owned(),
        ),
        Errno::PERM => (
            "a SCHED_DEADLINE task must be free to run on every CPU of its root domain, and an \
             affinity narrows it"
                .to_owned(),
            "Do not pin it: make a cpuset partition of its CPUs instead, or use SCHED_FIFO."
                .to_owned(),
        ),
        Errno::BUSY => (
            "the requested bandwidth exceeds what is free: other SCHED_DEADLINE tasks and the \
             fair server reserve bandwidth, and sched_rt_runtime_us limits all"
                .to_owned(),
            "Request a smaller runtime or a longer period.".to_owned(),
        ),
        Errno::INVAL => (
            "runtime, deadline and period must be in that order, at least 1024 ns and within \
             kernel.sched_deadline_period_min_us and _max_us"
                .to_owned(),
            "Choose a period of at least 100 µs, the kernel's default bound.".to_owned(),
        ),
        _ => (unexplained(errno), "Use SCHED_FIFO.".to_owned()),
    };
    Explanation::new(why, remedy, POLICY_COST)
}

fn timer_slack(errno: Errno) -> Explanation {
    Explanation::new(
        unexplained(errno),
        "Use a real-time policy: the kernel ignores the slack for it.",
        "Sleeps of an ordinary task may end up to its slack late, 50 µs by default.",
    )
}

fn cpu_dma_latency(errno: Errno, facts: &MachineFacts) -> Explanation {
    let (why, remedy) = match errno {
        Errno::ACCES | Errno::PERM | Errno::ROFS => (
            "only root may write /dev/cpu_dma_latency by default".to_owned(),
            format!(
                "Use sudo, or {}{}.",
                Right::HoldIdleStates,
                container_hint(facts, "--device /dev/cpu_dma_latency")
            ),
        ),
        Errno::NOENT | Errno::NODEV | Errno::NXIO => (
            "there is no /dev/cpu_dma_latency: this kernel was built without CONFIG_CPU_IDLE or \
             the container does not show it"
                .to_owned(),
            format!(
                "None is needed if the kernel has no idle states to hold off{}.",
                container_hint(facts, "--device /dev/cpu_dma_latency")
            ),
        ),
        _ => (unexplained(errno), "Try it with sudo.".to_owned()),
    };
    Explanation::new(why, remedy, idle_cost(facts))
}

/// The cost of the deepest idle state, in words, where the driver states it.
fn idle_cost(facts: &MachineFacts) -> String {
    let states = facts.idle.idle_states.value().map_or(&[][..], Vec::as_slice);
    match states.iter().filter(|state| !state.disabled).max_by_key(|state| state.exit_us) {
        Some(deepest) if deepest.exit_us > 1 => format!(
            "An idle CPU may enter the idle state {}, and a wake from it takes up to {} µs more.",
            deepest.name, deepest.exit_us
        ),
        Some(_) => "Little: according to its driver, no idle state of this machine takes more \
                    than 1 µs to leave."
            .to_owned(),
        None => "An idle CPU may enter a deep idle state; how long a wake then takes is \
                    unknown."
            .to_owned(),
    }
}

fn msr(errno: Errno, facts: &MachineFacts) -> Explanation {
    let (why, remedy) = match errno {
        Errno::ACCES | Errno::PERM => (
            "only root with CAP_SYS_RAWIO may read model-specific registers, and kernel lockdown \
             (Secure Boot) forbids it to root too"
                .to_owned(),
            "Use sudo; see cat /sys/kernel/security/lockdown.".to_owned(),
        ),
        Errno::NOENT | Errno::NXIO | Errno::NODEV => (
            "there is no /dev/cpu/N/msr: the module is not loaded".to_owned(),
            "Type: sudo modprobe msr.".to_owned(),
        ),
        Errno::IO if facts.virtualization.is_guest() => (
            "the hypervisor does not expose this register to the guest".to_owned(),
            "There is none in the guest; read the register on the host.".to_owned(),
        ),
        Errno::IO => {
            ("this processor does not have the register".to_owned(), "There is none.".to_owned())
        }
        _ => (unexplained(errno), "Try it with sudo.".to_owned()),
    };
    let cost = "System management interrupts cannot be counted: the gaps that they cause look like \
                gaps of the hardware.";
    Explanation::new(why, remedy, cost)
}

fn network_namespace(errno: Errno, facts: &MachineFacts) -> Explanation {
    let why = match errno {
        Errno::PERM => "a network namespace needs CAP_SYS_ADMIN".to_owned(),
        _ => unexplained(errno),
    };
    let remedy =
        format!("Use sudo{}.", container_hint(facts, "--cap-add=SYS_ADMIN --cap-add=NET_ADMIN"));
    let cost =
        "The network load uses the loopback device: packets do not pass through a pair of devices.";
    Explanation::new(why, remedy, cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::facts::{Capabilities, IdleState, LimitPair, ResourceLimit};
    use crate::testing::Tree;

    fn machine() -> MachineFacts {
        MachineFacts::collect(&Tree::new().root())
    }

    fn capabilities(held: bool) -> Fact<Capabilities> {
        let capabilities = Capabilities {
            sys_nice: held,
            ipc_lock: held,
            sys_rawio: held,
            sys_admin: held,
            sys_resource: held,
        };
        Fact::known(capabilities, "test")
    }

    fn limit(soft: u64, hard: u64) -> Fact<LimitPair> {
        let pair =
            LimitPair { soft: ResourceLimit::AtMost(soft), hard: ResourceLimit::AtMost(hard) };
        Fact::known(pair, "test")
    }

    const FIFO: RefusedCall = RefusedCall::SetScheduler { priority: 90 };

    #[test]
    fn no_permission_at_all() {
        let mut facts = machine();
        facts.limits.capabilities = capabilities(false);
        facts.limits.rtprio_limit = limit(0, 0);
        let explanation = explain(&FIFO, Errno::PERM, &facts);
        assert_eq!(
            explanation.why,
            "RLIMIT_RTPRIO is 0, priority 90 was requested, and the process has no CAP_SYS_NICE"
        );
        for word in ["sudo", "setcap", "limits.d", "rtprio 90"] {
            assert!(explanation.remedy.contains(word), "{word}: {}", explanation.remedy);
        }
        assert!(explanation.cost.contains("SCHED_OTHER"));
    }

    #[test]
    fn a_limit_that_can_be_raised_at_once() {
        let mut facts = machine();
        facts.limits.capabilities = capabilities(false);
        facts.limits.rtprio_limit = limit(0, 95);
        assert!(explain(&FIFO, Errno::PERM, &facts).remedy.starts_with("Type: ulimit -r 90,"));
        facts.limits.rtprio_limit = limit(0, 40);
        assert!(explain(&FIFO, Errno::PERM, &facts).remedy.starts_with("Choose --priority 40"));
    }

    #[test]
    fn a_control_group_without_budget() {
        let mut facts = machine();
        facts.limits.capabilities = capabilities(true);
        let path = "/sys/fs/cgroup/cpu/user.slice/cpu.rt_runtime_us";
        facts.limits.cgroup_rt_runtime_us = Fact::known(0, path);
        let explanation = explain(&FIFO, Errno::PERM, &facts);
        assert_eq!(
            explanation.why,
            format!("its control group has no real-time budget ({path} is 0)")
        );
        assert!(explanation.remedy.contains(&format!("sudo tee {path}")));
        facts.limits.cgroup_rt_runtime_us = Fact::absent(path);
        facts.kernel.rt_group_sched = Fact::known(true, "test");
        assert!(explain(&FIFO, Errno::PERM, &facts).why.contains("CONFIG_RT_GROUP_SCHED"));
        facts.kernel.rt_group_sched = Fact::known(false, "test");
        assert!(explain(&FIFO, Errno::PERM, &facts).why.contains("security module"));
    }

    #[test]
    fn containers_and_user_namespaces() {
        let mut facts = machine();
        facts.limits.capabilities = capabilities(true);
        facts.limits.user_namespace = Fact::known(true, "test");
        facts.virtualization.container = Fact::known("podman".to_owned(), "test");
        let explanation = explain(&FIFO, Errno::PERM, &facts);
        assert!(explanation.why.contains("user namespace"));
        assert!(explanation.remedy.contains("in this container (podman)"));
    }

    #[test]
    fn memory_limit_in_kib() {
        let mut facts = machine();
        facts.limits.capabilities = capabilities(false);
        facts.limits.memlock_limit_bytes = limit(65536, 65536);
        let attempt = RefusedCall::LockMemory { bytes: Some(1 << 20) };
        for errno in [Errno::PERM, Errno::NOMEM] {
            let explanation = explain(&attempt, errno, &facts);
            assert_eq!(
                explanation.why,
                "RLIMIT_MEMLOCK is 64 KiB, 1024 KiB were requested, and the process has no \
                 CAP_IPC_LOCK"
            );
            assert!(explanation.remedy.contains("memlock unlimited"));
        }
        facts.limits.memlock_limit_bytes = limit(65536, 8 << 20);
        assert!(
            explain(&attempt, Errno::NOMEM, &facts).remedy.starts_with("Type: ulimit -l 8192,")
        );
        facts.limits.capabilities = capabilities(true);
        assert!(explain(&attempt, Errno::NOMEM, &facts).why.contains("too little free memory"));
    }

    #[test]
    fn idle_states_are_the_cost_of_not_holding_the_device() {
        let mut facts = machine();
        let state =
            |name: &str, exit_us, disabled| IdleState { name: name.into(), exit_us, disabled };
        let states = vec![state("C1", 2, false), state("C6", 133, false), state("C10", 890, true)];
        facts.idle.idle_states = Fact::known(states, "test");
        let explanation = explain(&RefusedCall::HoldCpuDmaLatency, Errno::ACCES, &facts);
        assert!(explanation.remedy.contains("udev"));
        assert!(
            explanation.cost.contains("C6") && explanation.cost.contains("133 µs"),
            "{}",
            explanation.cost
        );
        assert!(
            explain(&RefusedCall::HoldCpuDmaLatency, Errno::NOENT, &facts)
                .why
                .contains("CONFIG_CPU_IDLE")
        );
    }

    #[test]
    fn affinity_names_the_cpu() {
        let mut facts = machine();
        facts.cpu.online_cpus = Fact::known(CpuList::parse("0-1", 7).unwrap(), "test");
        let attempt = RefusedCall::SetAffinity { cpus: CpuList::single(3) };
        assert_eq!(explain(&attempt, Errno::INVAL, &facts).why, "CPU 3 is offline; online are 0-1");
    }

    #[test]
    fn every_attempt_answers_every_number() {
        let facts = machine();
        let attempts = [
            FIFO,
            RefusedCall::SetDeadline,
            RefusedCall::LockMemory { bytes: None },
            RefusedCall::HoldCpuDmaLatency,
            RefusedCall::SetAffinity { cpus: CpuList::single(0) },
            RefusedCall::ReadMsr,
            RefusedCall::SetTimerSlack,
            RefusedCall::CreateNetworkNamespace,
        ];
        for attempt in &attempts {
            for errno in -1..140 {
                let explanation = explain(attempt, Errno(errno), &facts);
                assert!(
                    !explanation.why.is_empty() && !explanation.why.ends_with('.'),
                    "{}",
                    explanation.why
                );
                assert!(explanation.cost.ends_with('.'), "{}", explanation.cost);
                assert!(
                    explanation.remedy.ends_with('.'),
                    "{attempt:?} {errno}: {}",
                    explanation.remedy
                );
            }
        }
        assert!(explain(&FIFO, Errno(38), &facts).why.contains("(error 38)"));
    }
}
