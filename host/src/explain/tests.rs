//! Refusals on machines built by code: each cause gets its own words.

use super::errno::{EACCES, EINVAL, ENOENT, ENOMEM, EPERM};
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
    let pair = LimitPair { soft: ResourceLimit::AtMost(soft), hard: ResourceLimit::AtMost(hard) };
    Fact::known(pair, "test")
}

const FIFO: RefusedCall = RefusedCall::SetScheduler { priority: 90 };

#[test]
fn no_permission_at_all() {
    let mut facts = machine();
    facts.limits.capabilities = capabilities(false);
    facts.limits.rtprio_limit = limit(0, 0);
    let said = explain(&FIFO, EPERM, &facts);
    assert_eq!(
        said.why,
        "RLIMIT_RTPRIO is 0, priority 90 was requested, and the process has no CAP_SYS_NICE"
    );
    for word in ["sudo", "setcap", "limits.d", "rtprio 90"] {
        assert!(said.remedy.contains(word), "{word}: {}", said.remedy);
    }
    assert!(said.cost.contains("SCHED_OTHER"));
}

#[test]
fn a_limit_that_can_be_raised_at_once() {
    let mut facts = machine();
    facts.limits.capabilities = capabilities(false);
    facts.limits.rtprio_limit = limit(0, 95);
    assert!(explain(&FIFO, EPERM, &facts).remedy.starts_with("Type: ulimit -r 90,"));
    facts.limits.rtprio_limit = limit(0, 40);
    assert!(explain(&FIFO, EPERM, &facts).remedy.starts_with("Choose --priority 40"));
}

#[test]
fn a_control_group_without_budget() {
    let mut facts = machine();
    facts.limits.capabilities = capabilities(true);
    let path = "/sys/fs/cgroup/cpu/user.slice/cpu.rt_runtime_us";
    facts.limits.cgroup_rt_runtime_us = Fact::known(0, path);
    let said = explain(&FIFO, EPERM, &facts);
    assert_eq!(said.why, format!("its control group has no real-time budget ({path} is 0)"));
    assert!(said.remedy.contains(&format!("sudo tee {path}")));
    facts.limits.cgroup_rt_runtime_us = Fact::absent(path);
    facts.kernel.rt_group_sched = Fact::known(true, "test");
    assert!(explain(&FIFO, EPERM, &facts).why.contains("CONFIG_RT_GROUP_SCHED"));
    facts.kernel.rt_group_sched = Fact::known(false, "test");
    assert!(explain(&FIFO, EPERM, &facts).why.contains("security module"));
}

#[test]
fn containers_and_user_namespaces() {
    let mut facts = machine();
    facts.limits.capabilities = capabilities(true);
    facts.limits.user_namespace = Fact::known(true, "test");
    facts.virtualization.container = Fact::known("podman".to_owned(), "test");
    let said = explain(&FIFO, EPERM, &facts);
    assert!(said.why.contains("user namespace"));
    assert!(said.remedy.contains("in this container (podman)"));
}

#[test]
fn memory_limit_in_kib() {
    let mut facts = machine();
    facts.limits.capabilities = capabilities(false);
    facts.limits.memlock_limit_bytes = limit(65536, 65536);
    let attempt = RefusedCall::LockMemory { bytes: Some(1 << 20) };
    for errno in [EPERM, ENOMEM] {
        let said = explain(&attempt, errno, &facts);
        assert_eq!(
            said.why,
            "RLIMIT_MEMLOCK is 64 KiB, 1024 KiB were requested, and the process has no CAP_IPC_LOCK"
        );
        assert!(said.remedy.contains("memlock unlimited"));
    }
    facts.limits.memlock_limit_bytes = limit(65536, 8 << 20);
    assert!(explain(&attempt, ENOMEM, &facts).remedy.starts_with("Type: ulimit -l 8192,"));
    facts.limits.capabilities = capabilities(true);
    assert!(explain(&attempt, ENOMEM, &facts).why.contains("too little free memory"));
}

#[test]
fn idle_states_are_the_cost_of_not_holding_the_device() {
    let mut facts = machine();
    let state = |name: &str, exit_us, disabled| IdleState { name: name.into(), exit_us, disabled };
    let states = vec![state("C1", 2, false), state("C6", 133, false), state("C10", 890, true)];
    facts.idle.idle_states = Fact::known(states, "test");
    let said = explain(&RefusedCall::HoldCpuDmaLatency, EACCES, &facts);
    assert!(said.remedy.contains("udev"));
    assert!(said.cost.contains("C6") && said.cost.contains("133 µs"), "{}", said.cost);
    assert!(
        explain(&RefusedCall::HoldCpuDmaLatency, ENOENT, &facts).why.contains("CONFIG_CPU_IDLE")
    );
}

#[test]
fn affinity_names_the_cpu() {
    let mut facts = machine();
    facts.cpu.online_cpus = Fact::known(CpuList::parse("0-1", 7).unwrap(), "test");
    let attempt = RefusedCall::SetAffinity { cpus: CpuList::single(3) };
    assert_eq!(explain(&attempt, EINVAL, &facts).why, "CPU 3 is offline; online are 0-1");
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
            let said = explain(attempt, errno, &facts);
            assert!(!said.why.is_empty() && !said.why.ends_with('.'), "{}", said.why);
            assert!(said.cost.ends_with('.'), "{}", said.cost);
            assert!(said.remedy.ends_with('.'), "{attempt:?} {errno}: {}", said.remedy);
        }
    }
    assert!(explain(&FIFO, 38, &facts).why.contains("(error 38)"));
}
