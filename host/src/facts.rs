//! Everything that is known about the machine, each thing with its origin.
//!
//! [`MachineFacts::collect`] is the one entry: it reads through a [`Root`] and nothing else, never
//! fails and never changes anything. The names of the fields are the keys of the JSON, which is
//! flat. Absent and unreadable things are values ([`Fact`]).

mod cgroups;
mod cpu;
mod frequency;
mod idle;
mod isolation;
mod kernel;
mod limits;
mod power;
mod preemption;
mod virtualization;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cmdline::CommandLine;
use crate::cpulist::{CpuList, MAX_CPUS};
use crate::fact::Fact;
use crate::root::{Read, Root};
use cpu::CpuInfo;
use kernel::KernelConfig;

pub(crate) use cgroups::{Cgroups, is_group_of_interest, is_root_mount};
pub use cpu::{Cpu, Topology};
pub use frequency::{Frequency, FrequencyRange};
pub use idle::{Idle, IdleState};
pub use isolation::Isolation;
pub(crate) use isolation::PARTITIONS_SINCE;
pub(crate) use kernel::release_numbers;
pub use kernel::{Kernel, NoHz};
pub use limits::{
    Capabilities, FairServer, LimitPair, ProcessLimits, ResourceLimit, RtBudget, RtThrottling,
};
pub(crate) use power::counts_smi;
pub use power::{Power, PowerSource, SmiCount};
pub use preemption::{Preemption, PreemptionMode, PreemptionModel};
pub use virtualization::Virtualization;

/// Facts about a machine; the `machine` object of a result. Serialises flat: the keys of all groups
/// stand side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// The processors.
    #[serde(flatten)]
    pub cpu: Cpu,
    /// The kernel as it was built and started.
    #[serde(flatten)]
    pub kernel: Kernel,
    /// The model and the mode of preemption of the kernel.
    #[serde(flatten)]
    pub preemption: Preemption,
    /// The hypervisor and the container between the kernel and the hardware.
    #[serde(flatten)]
    pub virtualization: Virtualization,
    /// The clock sources, in use and available.
    #[serde(flatten)]
    pub clock: ClockSources,
    /// Which CPUs are kept free of others' work.
    #[serde(flatten)]
    pub isolation: Isolation,
    /// The frequencies of the CPUs: driver, governor, range, boost.
    #[serde(flatten)]
    pub frequency: Frequency,
    /// The idle states of the CPUs, and who chooses them.
    #[serde(flatten)]
    pub idle: Idle,
    /// The limits and permissions of this process.
    #[serde(flatten)]
    pub limits: ProcessLimits,
    /// Memory, swap and huge pages.
    #[serde(flatten)]
    pub memory: Memory,
    /// Where the current comes from, and what firmware and host took.
    #[serde(flatten)]
    pub power: Power,
}

impl MachineFacts {
    /// Reads everything. Takes a few milliseconds, more on machines with many CPUs; nothing that
    /// is missing makes it fail.
    pub fn collect(root: &Root) -> Self {
        let source = Source::new(root);
        let virtualization = Virtualization::collect(&source);
        Self {
            cpu: Cpu::collect(&source),
            kernel: Kernel::collect(&source),
            preemption: Preemption::collect(&source),
            clock: ClockSources::collect(&source),
            isolation: Isolation::collect(&source),
            frequency: Frequency::collect(&source),
            idle: Idle::collect(&source),
            limits: ProcessLimits::collect(&source),
            memory: Memory::collect(&source),
            power: Power::collect(&source, &virtualization),
            virtualization,
        }
    }
}

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// The clock sources that the kernel reads time from: `/sys/devices/system/clocksource`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockSources {
    /// The one in use.
    pub clocksource: Fact<String>,
    /// Those that the kernel would take, best first.
    pub available_clocksources: Fact<Vec<String>>,
}

impl ClockSources {
    fn collect(source: &Source<'_>) -> Self {
        Self {
            clocksource: source.word(&format!("{CLOCKSOURCE}/current_clocksource")),
            available_clocksources: available(source),
        }
    }
}

/// The clock sources that the kernel would take.
fn available(source: &Source<'_>) -> Fact<Vec<String>> {
    source
        .word(&format!("{CLOCKSOURCE}/available_clocksource"))
        .map(|text| text.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Memory, swap space and huge pages: `/proc/meminfo` and `/sys/kernel/mm`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// All that the kernel manages.
    pub memory_bytes: Fact<u64>,
    /// All swap space; 0 without any.
    pub swap_bytes: Fact<u64>,
    /// The mode of transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_hugepages: Fact<String>,
}

impl Memory {
    fn collect(source: &Source<'_>) -> Self {
        let meminfo = |name: &'static str| {
            source.parsed("/proc/meminfo", |text| kib(text, name)?.checked_mul(1024))
        };
        Self {
            memory_bytes: meminfo("MemTotal:"),
            swap_bytes: meminfo("SwapTotal:"),
            transparent_hugepages: source
                .parsed("/sys/kernel/mm/transparent_hugepage/enabled", |text| {
                    bracketed(text, '[', ']')
                }),
        }
    }
}

fn kib(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    number(line.trim().strip_suffix("kB")?)
}

/// Where the CPUs are described.
pub(crate) const CPUS: &str = "/sys/devices/system/cpu";

/// The CPUs that are online; none where the kernel does not say.
pub fn online_cpus(root: &Root) -> CpuList {
    parsed(root, &format!("{CPUS}/online"), cpu_list).value().cloned().unwrap_or_default()
}

/// The root and what was read of it once for all.
pub(crate) struct Source<'r> {
    pub root: &'r Root,
    cpuinfo: Fact<CpuInfo>,
    pub command_line: Fact<CommandLine>,
    pub config: Fact<KernelConfig>,
    cgroups: Cgroups,
    /// CPUs that can be run on now; CPU 0 alone where the kernel does not say.
    pub online: CpuList,
}

impl<'r> Source<'r> {
    pub(crate) fn new(root: &'r Root) -> Self {
        let online = online_cpus(root);
        Self {
            root,
            cpuinfo: text(root, "/proc/cpuinfo").map(|text| CpuInfo::parse(&text)),
            command_line: text(root, "/proc/cmdline").map(|text| CommandLine::parse(&text)),
            config: KernelConfig::find(root),
            cgroups: Cgroups::find(root),
            online: if online.is_empty() { CpuList::single(0) } else { online },
        }
    }

    /// The maker of an x86 processor, as `/proc/cpuinfo` names it: `GenuineIntel`.
    pub(crate) fn cpu_vendor(&self) -> Fact<String> {
        self.cpuinfo.clone().and_then(|info, origin| {
            let origin = format!("{origin} (vendor_id)");
            match info.field("vendor_id") {
                Some(vendor) => Fact::known(vendor.to_owned(), origin),
                None => Fact::absent(origin),
            }
        })
    }

    /// A file's text without the white space and the NULs at its end.
    pub(crate) fn text(&self, path: &str) -> Fact<String> {
        text(self.root, path)
    }

    /// A file of one word; an empty one is absent.
    pub(crate) fn word(&self, path: &str) -> Fact<String> {
        self.text(path).and_then(|text, origin| match text.as_str() {
            "" => Fact::absent(origin),
            _ => Fact::known(text, origin),
        })
    }

    /// A device that gives one number of four bytes; a captured one is text.
    pub(crate) fn device_number(&self, path: &str) -> Fact<String> {
        match self.root.read_device_number(path) {
            Read::Text(text) => Fact::known(text.trim().to_owned(), path),
            Read::Absent => Fact::absent(path),
            Read::Unreadable { why } => Fact::unreadable(path, why),
        }
    }

    /// A file as a value; text that `parse` does not take is unreadable.
    pub(crate) fn parsed<T>(&self, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
        parsed(self.root, path, parse)
    }

    /// A file of one CPU list.
    pub(crate) fn cpu_list(&self, path: &str) -> Fact<CpuList> {
        self.parsed(path, cpu_list)
    }

    /// The value of a kernel parameter's last occurrence.
    fn parameter(&self, name: &str) -> Fact<String> {
        let origin = format!("/proc/cmdline ({name}=)");
        match &self.command_line {
            Fact::Known { value, .. } => match value.value(name) {
                Some(value) => Fact::known(value.to_owned(), origin),
                None => Fact::absent(origin),
            },
            Fact::Absent { .. } => Fact::absent(origin),
            Fact::Unreadable { why, .. } => Fact::unreadable(origin, why),
        }
    }
}

/// One number, signed or not.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

/// `0` or `1`, `N` or `Y`.
fn switch(text: &str) -> Option<bool> {
    match text.trim() {
        "0" | "N" => Some(false),
        "1" | "Y" => Some(true),
        _ => None,
    }
}

/// A list as the kernel prints it. Older kernels print `(null)` for a mask that was never made.
fn cpu_list(text: &str) -> Option<CpuList> {
    match text.trim() {
        "(null)" => Some(CpuList::new()),
        text => CpuList::parse(text, MAX_CPUS - 1).ok(),
    }
}

/// The word in brackets of `always [madvise] never`.
fn bracketed(text: &str, open: char, close: char) -> Option<String> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close)?.0.to_owned())
}

fn text(root: &Root, path: &str) -> Fact<String> {
    match root.read(path) {
        Read::Text(text) => {
            let end = |c: char| c.is_whitespace() || c == '\0';
            Fact::known(text.trim_end_matches(end).to_owned(), path)
        }
        Read::Absent => Fact::absent(path),
        Read::Unreadable { why } => Fact::unreadable(path, why),
    }
}

fn parsed<T>(root: &Root, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
    text(root, path).and_then(|text, origin| match parse(&text) {
        Some(value) => Fact::known(value, origin),
        None => Fact::unreadable(origin, not_parsed(&text)),
    })
}

/// Why a file with this text has no value.
fn not_parsed(text: &str) -> String {
    let start: String = text.trim_end().chars().take(40).collect();
    format!("cannot parse '{}'", start.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::testing::Tree;

    fn facts(files: &[(&str, &str)]) -> MachineFacts {
        MachineFacts::collect(&Tree::of(files).root())
    }

    const RELEASE: &str = "/proc/sys/kernel/osrelease";
    const CMDLINE: &str = "/proc/cmdline";
    const CONFIG: &str = "/proc/config.gz";

    #[test]
    fn the_configuration_is_found_where_distributions_put_it() {
        let debian = facts(&[
            (RELEASE, "6.1.0\n"),
            ("/boot/config-6.1.0", "CONFIG_HZ=250\nCONFIG_NO_HZ_IDLE=y\n"),
        ]);
        assert_eq!(debian.kernel.tick_hz, Fact::known(250, "/boot/config-6.1.0 (CONFIG_HZ)"));
        assert_eq!(debian.kernel.no_hz.value(), Some(&NoHz::Idle));
        let none = facts(&[(RELEASE, "6.1.0\n")]);
        assert_eq!(none.kernel.tick_hz, Fact::absent("/proc/config.gz, /boot/config-6.1.0"));
    }

    #[test]
    fn rt_group_sched_can_be_switched_off() {
        let grouped = |config: &str, cmdline: &str| {
            *facts(&[(CONFIG, config), (CMDLINE, cmdline)]).kernel.rt_group_sched.value().unwrap()
        };
        assert!(grouped("CONFIG_RT_GROUP_SCHED=y", ""));
        assert!(!grouped("CONFIG_HZ=250", "rt_group_sched=1"));
        assert!(!grouped("CONFIG_RT_GROUP_SCHED=y", "rt_group_sched=0"));
        let disabled = "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y";
        assert!(!grouped(disabled, ""));
        assert!(grouped(disabled, "rt_group_sched=1"));
    }

    /// A laptop: two cores of two threads, Intel's own hardware, one CPU switched off.
    #[test]
    fn a_machine_without_hypervisor() {
        let cpus = "/sys/devices/system/cpu";
        let tree = Tree::of(&[
            (
                "/proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: GenuineIntel\n\
             model name\t: Intel(R) Core(TM) i5-1135G7 @ 2.40GHz\n\
             flags\t\t: fpu tsc constant_tsc nonstop_tsc\n\n",
            ),
            ("/sys/devices/system/cpu/online", "0-2\n"),
            ("/sys/devices/system/cpu/possible", "0-3\n"),
            ("/sys/devices/system/cpu/offline", "3\n"),
            ("/sys/devices/system/cpu/smt/active", "1\n"),
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n"),
            ("/sys/class/dmi/id/sys_vendor", "Maker\n"),
            ("/sys/class/dmi/id/product_name", "Book 3\n"),
            ("/dev/cpu/0/msr-0x34", "71"),
        ]);
        for (cpu, core) in [(0, "0,2"), (1, "1"), (2, "0,2")] {
            tree.write(&format!("{cpus}/cpu{cpu}/topology/core_cpus_list"), format!("{core}\n"));
            tree.write(&format!("{cpus}/cpu{cpu}/topology/physical_package_id"), "0\n");
        }
        let found = MachineFacts::collect(&tree.root());
        assert_eq!(found.cpu.cpu_model.value().unwrap(), "Intel(R) Core(TM) i5-1135G7 @ 2.40GHz");
        assert_eq!(found.cpu.machine_model.value().unwrap(), "Maker Book 3");
        assert_eq!((found.cpu.cpus.value(), found.cpu.smt.value()), (Some(&3), Some(&true)));
        assert_eq!(found.cpu.tsc_nonstop.value(), Some(&true));
        let topology = found.cpu.topology.value().unwrap();
        assert_eq!((topology.packages, topology.cores), (1, 2));
        assert_eq!(topology.siblings(0).to_string(), "2");
        assert!(topology.siblings(1).is_empty());
        assert_eq!(found.frequency.boost.value(), Some(&false), "no_turbo is its opposite");
        assert_eq!(found.virtualization.virtualization.value().unwrap(), "none");
        assert_eq!(found.power.smi_count.value(), Some(&71));
        let choice = crate::choose(&found);
        assert_eq!((choice.cpu, choice.helper), (2, Some(1)), "not CPU 0, the sibling");
    }

    #[test]
    fn limits_of_the_process() {
        let found = facts(&[
            (
                "/proc/self/limits",
                "Max locked memory         8388608              unlimited            bytes     \n\
             Max realtime priority     0                    95                   \n",
            ),
            ("/proc/self/status", "CapEff:\t0000000000800000\nCpus_allowed_list:\t0-2,5\n"),
            ("/proc/self/uid_map", "         0       1000          1\n"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
            ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ])
        .limits;
        let memlock = found.memlock_limit_bytes.value().unwrap();
        assert_eq!(
            *memlock,
            LimitPair { soft: ResourceLimit::AtMost(8 << 20), hard: ResourceLimit::Unlimited }
        );
        assert_eq!(found.rtprio_limit.value().unwrap().hard, ResourceLimit::AtMost(95));
        let caps = found.capabilities.value().unwrap();
        assert!(caps.sys_nice && !caps.ipc_lock);
        assert_eq!(found.allowed_cpus.value().unwrap().to_string(), "0-2,5");
        assert_eq!(found.user_namespace.value(), Some(&true));
        assert_eq!(found.rt_throttling.value().unwrap().runtime_us, -1);
    }

    #[test]
    fn fair_servers_are_grouped() {
        let at = "/sys/kernel/debug/sched/fair_server";
        let tree = Tree::of(&[("/sys/devices/system/cpu/online", "0-3\n")]);
        for cpu in 0..4 {
            let runtime = if cpu == 3 { "0\n" } else { "50000000\n" };
            tree.write(&format!("{at}/cpu{cpu}/runtime"), runtime);
            tree.write(&format!("{at}/cpu{cpu}/period"), "1000000000\n");
        }
        let servers =
            MachineFacts::collect(&tree.root()).limits.fair_server.value().cloned().unwrap();
        let shown: Vec<_> = servers.iter().map(|s| (s.cpus.to_string(), s.runtime_ns)).collect();
        assert_eq!(shown, [("0-2".to_owned(), 50_000_000), ("3".to_owned(), 0)]);
    }

    #[test]
    fn budgets_and_cpusets_of_the_own_group() {
        let found = facts(&[
            ("/proc/self/cgroup", "3:cpuset:/a/b\n2:cpu,cpuacct:/a/b\n0::/\n"),
            (
                "/proc/self/mountinfo",
                "1 0 0:1 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
             2 0 0:2 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
             3 0 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("/sys/fs/cgroup/cpuset/a/cpuset.effective_cpus", "2-3\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.rt_runtime_us", "0\n"),
            ("/sys/fs/cgroup/unified/cpuset.cpus.isolated", "3\n"),
            ("/sys/devices/system/cpu/isolated", "1\n"),
            ("/sys/devices/system/cpu/nohz_full", "  (null)\n"),
        ]);
        assert_eq!(found.limits.cgroup_rt_runtime_us.value(), Some(&0));
        assert_eq!(found.limits.cgroup_rt_period_us.value(), None);
        assert_eq!(found.limits.cpuset_cpus.value().unwrap().to_string(), "2-3");
        assert_eq!(found.isolation.isolated().to_string(), "1,3");
        assert!(found.isolation.nohz_full_cpus.value().unwrap().is_empty());
    }

    #[test]
    fn nonsense_is_unreadable_and_says_what_stood_there() {
        let found = facts(&[
            ("/sys/devices/system/cpu/online", "zero\n"),
            ("/proc/stat", "cpu 1 2\n"),
            ("/proc/self/status", "CapEff:\txyz\n"),
        ]);
        assert_eq!(found.cpu.online_cpus.why(), Some("cannot parse 'zero'"));
        assert!(found.power.steal_ticks.why().is_some());
        assert!(found.limits.capabilities.why().is_some());
    }

    #[test]
    fn json_is_flat_and_reads_back() {
        let found = MachineFacts::collect(&Root::live());
        let json = serde_json::to_value(&found).unwrap();
        let keys = [
            "cpu_model",
            "cpus",
            "kernel",
            "preemption",
            "virtualization",
            "clocksource",
            "isolated_cpus",
            "governor",
            "hz",
            "no_hz",
            "smt",
            "topology",
            "fair_server",
        ];
        for key in keys {
            let fact = json[key].as_object().unwrap_or_else(|| panic!("{key} is no fact"));
            assert!(fact.contains_key("value") && fact.contains_key("origin"), "{key}");
        }
        assert_eq!(serde_json::from_value::<MachineFacts>(json.clone()).unwrap(), found);
        let schema = serde_json::to_value(schemars::schema_for!(MachineFacts)).unwrap();
        for key in json.as_object().unwrap().keys() {
            assert!(schema["properties"].get(key).is_some(), "{key} is not in the schema");
        }
    }

    #[test]
    fn the_smaller_budget_of_real_time_tasks_counts() {
        let budget = |machine: &str, group: &str| {
            let found = facts(&[
                ("/proc/self/cgroup", "2:cpu:/a\n"),
                (
                    "/proc/self/mountinfo",
                    "2 0 0:2 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
                ),
                ("/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us", group),
                ("/sys/fs/cgroup/cpu/a/cpu.rt_period_us", "500000\n"),
                ("/proc/sys/kernel/sched_rt_runtime_us", machine),
                ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ]);
            found
                .limits
                .rt_budget()
                .map(|budget| ((budget.share * 100.0) as u32, budget.gap_us, budget.of_cgroup))
        };
        assert_eq!(budget("950000\n", "50000\n"), Some((10, 450_000, true)));
        assert_eq!(budget("950000\n", "490000\n"), Some((95, 50_000, false)));
        assert_eq!(budget("950000\n", "-1\n"), Some((95, 50_000, false)));
        assert_eq!(budget("-1\n", "50000\n"), None, "nothing is held to a budget then");
    }
}
