//! Limits and permissions of this process, and the share that the scheduler takes from real-time
//! tasks. Reads `/proc/self`, `/proc/sys/kernel`, the control groups and debugfs through the
//! source.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Source, number};
use crate::cpulist::CpuList;
use crate::fact::Fact;

/// Limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessLimits {
    /// The CPUs that this process may run on now (its affinity).
    pub allowed_cpus: Fact<CpuList>,
    /// The CPUs that its control group lets it choose from.
    pub cpuset_cpus: Fact<CpuList>,
    /// The memory that it may lock, in bytes (`RLIMIT_MEMLOCK`).
    pub memlock_limit_bytes: Fact<LimitPair>,
    /// The highest real-time priority that it may take without a capability (`RLIMIT_RTPRIO`).
    pub rtprio_limit: Fact<LimitPair>,
    /// Its effective capabilities, as far as they matter here.
    pub capabilities: Fact<Capabilities>,
    /// True where its user namespace is not the first one: then capabilities do not reach the
    /// scheduler.
    pub user_namespace: Fact<bool>,
    /// The most that its sleeps may be woken late on purpose while it is no real-time task, in
    /// nanoseconds.
    pub timer_slack_ns: Fact<u64>,
    /// The share of time that real-time tasks may have in all.
    pub rt_throttling: Fact<RtThrottling>,
    /// The time that the scheduler reserves for ordinary tasks (Linux 6.12 and later); needs
    /// debugfs.
    pub fair_server: Fact<Vec<FairServer>>,
    /// The real-time budget of the own control group in microseconds a period (version 1 with
    /// `CONFIG_RT_GROUP_SCHED`); -1 is unlimited.
    pub cgroup_rt_runtime_us: Fact<i64>,
    /// The period of that budget in microseconds; results of earlier versions do not have it.
    #[serde(default = "no_period")]
    pub cgroup_rt_period_us: Fact<i64>,
}

/// The file of a control group's real-time period.
const GROUP_PERIOD: &str = "cpu.rt_period_us";

/// The period of a control group's budget until another is set, in microseconds.
const GROUP_PERIOD_US: i64 = 1_000_000;

fn no_period() -> Fact<i64> {
    Fact::absent(GROUP_PERIOD)
}

/// The budget of a CPU that the real-time tasks of this process have before the kernel stops them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RtBudget {
    /// Their share of each CPU, in [0, 1].
    pub share: f64,
    /// The time that they stand still once they have used it, in microseconds.
    pub gap_us: i64,
    /// True where it is that of the own control group, and smaller than the machine's.
    pub of_cgroup: bool,
}

impl RtBudget {
    /// `None` where it limits nothing.
    fn of(throttling: RtThrottling, of_cgroup: bool) -> Option<Self> {
        let RtThrottling { runtime_us, period_us } = throttling;
        let share = runtime_us as f64 / period_us as f64;
        let gap_us = period_us.saturating_sub(runtime_us);
        throttling.is_on().then_some(Self { share, gap_us, of_cgroup })
    }
}

/// Effective capabilities (capabilities(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// Real-time policies, affinity of others.
    pub sys_nice: bool,
    /// Locking memory without limit.
    pub ipc_lock: bool,
    /// Model-specific registers and ports.
    pub sys_rawio: bool,
    /// Much of the rest: namespaces, debugfs.
    pub sys_admin: bool,
    /// Raising hard limits.
    pub sys_resource: bool,
}

/// `kernel.sched_rt_runtime_us` and `sched_rt_period_us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RtThrottling {
    /// Time for real-time tasks in each period; -1: no limit.
    pub runtime_us: i64,
    /// The period.
    pub period_us: i64,
}

impl RtThrottling {
    /// Returns true where it limits anything: not at -1, and not at the whole period, at which the
    /// kernel never looks (kernel/sched/rt.c, `sched_rt_runtime_exceeded`).
    pub fn is_on(&self) -> bool {
        (0..self.period_us).contains(&self.runtime_us)
    }
}

/// The reservation for ordinary tasks on these CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FairServer {
    /// The CPUs that have it.
    pub cpus: CpuList,
    /// Time reserved in each period; 0: none.
    pub runtime_ns: u64,
    /// The period.
    pub period_ns: u64,
}

impl ProcessLimits {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        let limits = source.text("/proc/self/limits");
        let status = source.text("/proc/self/status");
        Self {
            allowed_cpus: field(&status, "Cpus_allowed_list", super::cpu_list),
            cpuset_cpus: cpuset(source),
            memlock_limit_bytes: LimitPair::of(&limits, "Max locked memory"),
            rtprio_limit: LimitPair::of(&limits, "Max realtime priority"),
            capabilities: field(&status, "CapEff", capabilities),
            user_namespace: source.parsed("/proc/self/uid_map", |text| {
                let mut words = text.split_ascii_whitespace();
                let whole = [words.next()?, words.next()?, words.next()?];
                Some(whole != ["0", "0", "4294967295"])
            }),
            timer_slack_ns: source.parsed("/proc/self/timerslack_ns", number),
            rt_throttling: throttling(source),
            fair_server: fair_server(source),
            cgroup_rt_runtime_us: of_group(source, "cpu.rt_runtime_us"),
            cgroup_rt_period_us: of_group(source, GROUP_PERIOD),
        }
    }

    /// The smaller budget, of the machine and of the own control group. `None` where nothing stops
    /// real-time tasks, or nothing is known of it: without the machine's throttling the kernel
    /// holds groups to no budget either (kernel/sched/rt.c, `rt_bandwidth_enabled`).
    pub fn rt_budget(&self) -> Option<RtBudget> {
        let machine = *self.rt_throttling.value()?;
        if machine.runtime_us < 0 {
            return None;
        }
        let period_us = self.cgroup_rt_period_us.value().copied().unwrap_or(GROUP_PERIOD_US);
        let runtime_us = self.cgroup_rt_runtime_us.value().copied().unwrap_or(-1);
        let group = RtBudget::of(RtThrottling { runtime_us, period_us }, true);
        let machine = RtBudget::of(machine, false);
        let budgets = machine.into_iter().chain(group);
        budgets.min_by(|a, b| a.share.total_cmp(&b.share))
    }
}

/// A number of the own control group, of the controller `cpu` of version 1.
fn of_group(source: &Source<'_>, file: &str) -> Fact<i64> {
    source.cgroups.cpu_v1.clone().and_then(|group, _| {
        let own = group.upwards().next().unwrap_or_default();
        source.parsed(&format!("{own}/{file}"), number)
    })
}

/// A line `name:\tvalue` of `/proc/self/status`.
fn field<T>(status: &Fact<String>, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
    status.clone().and_then(|text, origin| {
        let origin = format!("{origin} ({name})");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        match line.map(|value| parse(value.trim())) {
            Some(Some(value)) => Fact::known(value, origin),
            Some(None) => Fact::unreadable(origin, "not understood"),
            None => Fact::absent(origin),
        }
    })
}

/// Bit numbers of `include/uapi/linux/capability.h`.
fn capabilities(hex: &str) -> Option<Capabilities> {
    let bits = u64::from_str_radix(hex, 16).ok()?;
    let has = |bit: u32| bits & (1 << bit) != 0;
    Some(Capabilities {
        ipc_lock: has(14),
        sys_rawio: has(17),
        sys_admin: has(21),
        sys_nice: has(23),
        sys_resource: has(24),
    })
}

/// The nearest control group that says which CPUs it has.
fn cpuset(source: &Source<'_>) -> Fact<CpuList> {
    let nearest = |group: super::cgroups::Group, file: &str, origin: String| {
        let found = group.upwards().map(|at| source.cpu_list(&format!("{at}/{file}")));
        found.reduce(|nearer, further| nearer.or_else(|| further)).unwrap_or(Fact::absent(origin))
    };
    let v1 = source.cgroups.cpuset_v1.clone();
    v1.and_then(|group, origin| nearest(group, "cpuset.effective_cpus", origin)).or_else(|| {
        let v2 = source.cgroups.v2.clone();
        v2.and_then(|group, origin| nearest(group, "cpuset.cpus.effective", origin))
    })
}

fn throttling(source: &Source<'_>) -> Fact<RtThrottling> {
    let number = |name: &str| source.parsed(&format!("/proc/sys/kernel/{name}"), number::<i64>);
    number("sched_rt_runtime_us").and_then(|runtime_us, origin| {
        number("sched_rt_period_us")
            .and_then(|period_us, _| Fact::known(RtThrottling { runtime_us, period_us }, origin))
    })
}

fn fair_server(source: &Source<'_>) -> Fact<Vec<FairServer>> {
    let at = "/sys/kernel/debug/sched/fair_server";
    let mut servers: Vec<FairServer> = Vec::new();
    for cpu in source.online.iter() {
        let number = |name: &str| source.parsed(&format!("{at}/cpu{cpu}/{name}"), number::<u64>);
        let (runtime_ns, period_ns) = match (number("runtime"), number("period")) {
            (Fact::Known { value: runtime, .. }, Fact::Known { value: period, .. }) => {
                (runtime, period)
            }
            (Fact::Unreadable { origin, why }, _) | (_, Fact::Unreadable { origin, why }) => {
                return Fact::unreadable(origin, why);
            }
            _ => continue,
        };
        let alike = |s: &&mut FairServer| (s.runtime_ns, s.period_ns) == (runtime_ns, period_ns);
        match servers.iter_mut().find(alike) {
            Some(server) => server.cpus.insert(cpu),
            None => {
                servers.push(FairServer { cpus: CpuList::single(cpu), runtime_ns, period_ns });
            }
        }
    }
    if servers.is_empty() { Fact::absent(at) } else { Fact::known(servers, format!("{at}/cpu*")) }
}

/// A resource limit as getrlimit(2) has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "LimitWire", try_from = "LimitWire")]
pub enum ResourceLimit {
    /// As much as this.
    AtMost(u64),
    /// No limit; `"unlimited"` in JSON.
    Unlimited,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum LimitWire {
    Number(u64),
    Word(Cow<'static, str>),
}

impl From<ResourceLimit> for LimitWire {
    fn from(limit: ResourceLimit) -> Self {
        match limit {
            ResourceLimit::AtMost(number) => Self::Number(number),
            ResourceLimit::Unlimited => Self::Word("unlimited".into()),
        }
    }
}

impl TryFrom<LimitWire> for ResourceLimit {
    type Error = &'static str;

    fn try_from(wire: LimitWire) -> Result<Self, Self::Error> {
        match wire {
            LimitWire::Number(number) => Ok(Self::AtMost(number)),
            LimitWire::Word(word) => Self::of(&word).ok_or("a limit is a number or 'unlimited'"),
        }
    }
}

impl JsonSchema for ResourceLimit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"oneOf": [{"type": "integer", "minimum": 0}, {"const": "unlimited"}]})
    }
}

impl fmt::Display for ResourceLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(number) => write!(f, "{number}"),
            Self::Unlimited => write!(f, "unlimited"),
        }
    }
}

impl ResourceLimit {
    fn of(word: &str) -> Option<Self> {
        match word {
            "unlimited" => Some(Self::Unlimited),
            _ => number(word).map(Self::AtMost),
        }
    }

    /// True where this much is within the limit.
    pub fn allows(self, wanted: u64) -> bool {
        match self {
            Self::AtMost(limit) => wanted <= limit,
            Self::Unlimited => true,
        }
    }
}

/// A resource limit of a process: the one in force, and the one up to which the process may raise
/// it itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitPair {
    /// The limit in force.
    pub soft: ResourceLimit,
    /// The most that it can be raised to without a capability.
    pub hard: ResourceLimit,
}

impl LimitPair {
    /// The line `name` of `/proc/PID/limits`.
    fn of(limits: &Fact<String>, name: &str) -> Fact<Self> {
        limits.clone().and_then(|text, origin| {
            let origin = format!("{origin} ({name})");
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let pair = line.and_then(|line| {
                let mut words = line.split_ascii_whitespace();
                let (soft, hard) =
                    (ResourceLimit::of(words.next()?)?, ResourceLimit::of(words.next()?)?);
                Some(LimitPair { soft, hard })
            });
            match pair {
                Some(pair) => Fact::known(pair, origin),
                None => Fact::absent(origin),
            }
        })
    }
}
