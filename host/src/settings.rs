//! The settings that rules about tuning look at, beyond the facts that every result has: the
//! command line, the kernel's options and log, settings by name, interrupts, boot files.
//!
//! [`KernelSettings::collect`] reads through a [`Root`] and nothing else; what it reads does not
//! depend on the values, so that a capture holds all of it. It never judges and never changes
//! anything.

mod interrupts;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cmdline::CommandLine;
use crate::fact::Fact;
use crate::facts::{CPUS, MachineFacts, SmiCount, Source};
use crate::root::{Listing, Read, Root};

pub use interrupts::{IrqLine, IrqPlace, IrqTable};

/// Options of the kernel's configuration that rules look at, without `CONFIG_`.
const OPTIONS: &[&str] = &[
    "ARCH_HAS_PREEMPT_LAZY",
    "CPUSETS",
    "CPU_ISOLATION",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_OBJECTS",
    "HIGH_RES_TIMERS",
    "IRQ_FORCED_THREADING",
    "KASAN",
    "NO_HZ_FULL",
    "OSNOISE_TRACER",
    "PREEMPT_DYNAMIC",
    "PREEMPT_RT",
    "PROVE_LOCKING",
    "RCU_NOCB_CPU",
    "RCU_NOCB_CPU_DEFAULT_ALL",
    "TIMERLAT_TRACER",
];

/// All that rules look at, beyond the facts of every result.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelSettings {
    /// The command line that the kernel was started with.
    pub command_line: Fact<CommandLine>,
    /// Of the options that rules look at, those that are set, without `CONFIG_`.
    pub options: Fact<BTreeMap<String, String>>,
    /// The lines of the kernel's log about its parameters.
    pub kernel_log: Fact<KernelLog>,
    /// The parameters of modules on the command line, and what the module shows.
    pub module_parameters: Vec<ModuleParameter>,
    /// Interrupts, where they may go and where they went.
    pub interrupts: Fact<IrqTable>,
    /// Settings that each CPU has.
    pub per_cpu: PerCpu,
    /// The files that the next boot's command line is made of.
    pub boot: Vec<BootFile>,
    /// `/proc/uptime`: seconds since the start, and seconds that CPUs idled. No setting.
    pub uptime: Fact<String>,
    /// System management interrupts while interrupts were watched; `None` where they were not, or
    /// are not counted.
    pub smi_watched: Option<u64>,
    /// Kernel, major and minor.
    pub release: Option<(u32, u32)>,
    /// The maker of an x86 processor: `GenuineIntel`. No setting.
    pub cpu_vendor: Fact<String>,
    values: BTreeMap<&'static str, Fact<String>>,
    nothing: Fact<String>,
}

impl KernelSettings {
    /// Reads everything.
    pub fn collect(root: &Root) -> Self {
        let source = Source::new(root);
        let release = crate::facts::release_numbers(&source);
        Self {
            options: source.config.clone().map(|config| {
                let set = |name: &&str| Some(((*name).to_owned(), config.value(name)?.to_owned()));
                OPTIONS.iter().filter_map(set).collect()
            }),
            kernel_log: read_kernel_log(root),
            module_parameters: module_parameters(&source),
            interrupts: interrupts::read(&source),
            per_cpu: PerCpu::read(&source),
            boot: boot_files(&source),
            release,
            cpu_vendor: source.cpu_vendor(),
            uptime: source.word("/proc/uptime"),
            smi_watched: None,
            values: single_values(&source),
            nothing: Fact::absent(""),
            command_line: source.command_line,
        }
    }

    /// A setting by its name; one that is not in the list is absent.
    pub fn value(&self, name: &str) -> &Fact<String> {
        self.values.get(name).unwrap_or(&self.nothing)
    }

    /// True where an option is built in; `None` where the configuration could not be read.
    pub fn is_built(&self, option: &str) -> Option<bool> {
        Some(self.options.value()?.get(option).is_some_and(|value| value == "y"))
    }

    /// Reads interrupts again: what has risen since is known from then on, and where they go now;
    /// and counts system management interrupts since `facts` were read.
    pub fn watch(&mut self, root: &Root, facts: &MachineFacts) {
        self.smi_watched = SmiCount::since_facts(facts, root);
        let source = Source::new(root);
        let later = interrupts::counts(&source);
        if let (Fact::Known { value: interrupts, .. }, Fact::Known { value: later, .. }) =
            (&mut self.interrupts, later)
        {
            interrupts.note_later(&source, &later);
        }
    }
}

/// Settings of one value: name, path. A sysctl has its own name; others have the end of their path.
const SETTINGS: &[(&str, &str)] = &[
    ("kernel.nmi_watchdog", "/proc/sys/kernel/nmi_watchdog"),
    ("kernel.numa_balancing", "/proc/sys/kernel/numa_balancing"),
    ("kernel.sched_rt_period_us", "/proc/sys/kernel/sched_rt_period_us"),
    ("kernel.sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"),
    ("kernel.sched_util_clamp_min_rt_default", "/proc/sys/kernel/sched_util_clamp_min_rt_default"),
    ("kernel.soft_watchdog", "/proc/sys/kernel/soft_watchdog"),
    ("kernel.timer_migration", "/proc/sys/kernel/timer_migration"),
    ("kernel.watchdog", "/proc/sys/kernel/watchdog"),
    ("kernel.watchdog_cpumask", "/proc/sys/kernel/watchdog_cpumask"),
    ("vm.compact_unevictable_allowed", "/proc/sys/vm/compact_unevictable_allowed"),
    ("vm.compaction_proactiveness", "/proc/sys/vm/compaction_proactiveness"),
    ("vm.stat_interval", "/proc/sys/vm/stat_interval"),
    ("vm.swappiness", "/proc/sys/vm/swappiness"),
    ("amd_pstate/status", "/sys/devices/system/cpu/amd_pstate/status"),
    ("current_tracer", "/sys/kernel/tracing/current_tracer"),
    ("cpu_dma_latency", "/dev/cpu_dma_latency"),
    ("default_smp_affinity", "/proc/irq/default_smp_affinity"),
    ("intel_pstate/status", "/sys/devices/system/cpu/intel_pstate/status"),
    ("iommu_groups/type", "/sys/kernel/iommu_groups/0/type"),
    ("ksm/run", "/sys/kernel/mm/ksm/run"),
    ("machinecheck/ignore_ce", "/sys/devices/system/machinecheck/machinecheck0/ignore_ce"),
    ("cpuidle.off", "/sys/module/cpuidle/parameters/off"),
    ("cpufreq.off", "/sys/module/cpufreq/parameters/off"),
    ("i915.enable_dc", "/sys/module/i915/parameters/enable_dc"),
    ("intel_idle.max_cstate", "/sys/module/intel_idle/parameters/max_cstate"),
    ("pcie_aspm.policy", "/sys/module/pcie_aspm/parameters/policy"),
    ("processor.max_cstate", "/sys/module/processor/parameters/max_cstate"),
    ("rcutree.kthread_prio", "/sys/module/rcutree/parameters/kthread_prio"),
    ("rcutree.nohz_full_patience_delay", "/sys/module/rcutree/parameters/nohz_full_patience_delay"),
    ("rcu_expedited", "/sys/kernel/rcu_expedited"),
    ("rcu_normal", "/sys/kernel/rcu_normal"),
    ("realtime", "/sys/kernel/realtime"),
    ("sched/features", "/sys/kernel/debug/sched/features"),
    ("smt/control", "/sys/devices/system/cpu/smt/control"),
    ("vulnerabilities/spectre_v2", "/sys/devices/system/cpu/vulnerabilities/spectre_v2"),
    ("workqueue/cpumask", "/sys/devices/virtual/workqueue/cpumask"),
    ("workqueue/writeback/cpumask", "/sys/devices/virtual/workqueue/writeback/cpumask"),
];

/// Services whose group of processes tells whether they run.
const SERVICES: &[&str] = &["irqbalance", "stalld", "tuned"];

/// The path of a setting.
pub fn path_of(name: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|(known, _)| *known == name).map(|(_, path)| *path)
}

fn single_values(source: &Source<'_>) -> BTreeMap<&'static str, Fact<String>> {
    let word = |path: &str| match path {
        "/dev/cpu_dma_latency" => source.device_number(path),
        _ => source.word(path),
    };
    let mut values: BTreeMap<&'static str, Fact<String>> =
        SETTINGS.iter().map(|(name, path)| (*name, word(path))).collect();
    values.extend(SERVICES.iter().map(|name| (*name, service(source, name))));
    values.insert("irqbalance.conf", irqbalance(source));
    values
}

/// "running" where systemd has a group of that service with processes.
fn service(source: &Source<'_>, name: &str) -> Fact<String> {
    let tops = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];
    let group = |top: &&str| {
        source
            .word(&format!("{top}/system.slice/{name}.service/cgroup.procs"))
            .map(|_| "running".to_owned())
    };
    // All three are looked at, so that a capture holds them.
    let found: Vec<_> = tops.iter().map(group).collect();
    let absent = Fact::absent(format!("/sys/fs/cgroup (system.slice/{name}.service)"));
    found.into_iter().fold(absent, |found, next| found.or_else(|| next))
}

/// The lines that set irqbalance's variables: what it leaves alone.
fn irqbalance(source: &Source<'_>) -> Fact<String> {
    let [debian, fedora] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"]
        .map(|path| source.word(path).map(|text| variables(&text)));
    debian.or_else(|| fedora)
}

/// The lines of irqbalance's configuration that ban CPUs or interrupts: others may hold paths.
fn variables(text: &str) -> String {
    let set = |line: &&str| line.trim_start().starts_with("IRQBALANCE_BANNED_");
    text.lines().filter(set).collect::<Vec<_>>().join("\n")
}

/// Settings of the online CPUs that have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerCpu {
    /// `power/pm_qos_resume_latency_us`: `n/a` forbids all idle states but polling, 0 allows all.
    pub resume_latency: Fact<BTreeMap<u32, String>>,
    /// `cpufreq/energy_performance_preference`.
    pub energy_preference: Fact<BTreeMap<u32, String>>,
    /// `cpufreq/scaling_governor`.
    pub governor: Fact<BTreeMap<u32, String>>,
}

impl PerCpu {
    fn read(source: &Source<'_>) -> Self {
        Self {
            resume_latency: each(source, "power/pm_qos_resume_latency_us"),
            energy_preference: each(source, "cpufreq/energy_performance_preference"),
            governor: each(source, "cpufreq/scaling_governor"),
        }
    }
}

fn each(source: &Source<'_>, name: &str) -> Fact<BTreeMap<u32, String>> {
    let mut values = BTreeMap::new();
    let mut missing = Fact::absent(format!("{CPUS}/cpu*/{name}"));
    for cpu in source.online.iter() {
        match source.word(&format!("{CPUS}/cpu{cpu}/{name}")) {
            Fact::Known { value, .. } => drop(values.insert(cpu, value)),
            Fact::Unreadable { origin, why } => missing = Fact::unreadable(origin, why),
            Fact::Absent { .. } => {}
        }
    }
    if values.is_empty() { missing } else { Fact::known(values, format!("{CPUS}/cpu*/{name}")) }
}

/// The most of them that are looked at.
const MAX_MODULE_PARAMETERS: usize = 200;

/// A parameter of a module on the command line, `module.name=value`, and what the module shows. The
/// kernel never reports one that does not exist: it may belong to a module loaded later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleParameter {
    /// As typed: `rcutree.kthread_prio`.
    pub name: String,
    /// Known where the module is there; unreadable where that was not captured.
    pub module: Fact<bool>,
    /// The value that the module shows.
    pub shown: Fact<String>,
}

fn module_parameters(source: &Source<'_>) -> Vec<ModuleParameter> {
    let params = source.command_line.value().map(|line| line.params.as_slice()).unwrap_or_default();
    let dotted =
        params.iter().filter_map(|param| param.name.split_once('.')).take(MAX_MODULE_PARAMETERS);
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    dotted
        .filter(|(module, name)| plain(module) && plain(name) && !module.is_empty())
        .map(|(module, name)| {
            let at = format!("/sys/module/{}", module.replace('-', "_"));
            let module_directory = match source.root.list(&at) {
                Listing::Names(_) => Fact::known(true, at.clone()),
                Listing::Absent => Fact::absent(at.clone()),
                Listing::Unreadable { why } => Fact::unreadable(at.clone(), why),
            };
            ModuleParameter {
                name: format!("{module}.{name}"),
                module: module_directory,
                shown: source.text(&format!("{at}/parameters/{}", name.replace('-', "_"))),
            }
        })
        .collect()
}

/// Where the log is in a captured tree; where Debian's `dmesg.service` keeps that of the boot.
const KERNEL_LOG: &str = "/var/log/dmesg";

/// Parts of the lines that rules look at.
const RELEVANT: &[&str] = &[
    "Linux version ",
    "Unknown kernel command line parameters",
    "Housekeeping:",
    "isolcpus:",
    "NO_HZ:",
    "Offload RCU callbacks",
    "Dynamic Preempt:",
    "Malformed early option",
    "Marking TSC unstable",
    "clocksource: Switched",
    "PCIe ASPM is disabled",
];

/// The kernel's log of this boot, as far as rules look at it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelLog {
    /// True where the log reaches back to the start of the kernel.
    pub complete: bool,
    /// The lines without their times.
    pub lines: Vec<String>,
}

impl KernelLog {
    fn parse(text: &str) -> Self {
        let lines: Vec<String> =
            text.lines().filter(|line| is_relevant(line)).map(without_time).collect();
        Self { complete: lines.iter().any(|line| line.starts_with("Linux version ")), lines }
    }

    /// The text behind `start` in the first line that has it.
    pub fn after(&self, start: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| Some(line.split_once(start)?.1.trim()))
    }

    /// The words of the command line that the kernel took for none of its parameters; `None`
    /// where the log does not tell: it is cut, or the kernel is older than Linux 5.14.
    pub fn unknown_parameters(&self, release: Option<(u32, u32)>) -> Option<Vec<&str>> {
        match self.after("Unknown kernel command line parameters \"") {
            Some(rest) => {
                Some(rest.split('"').next().unwrap_or_default().split_whitespace().collect())
            }
            None => (self.complete && release? >= (5, 14)).then(Vec::new),
        }
    }
}

fn is_relevant(line: &str) -> bool {
    RELEVANT.iter().any(|mark| line.contains(mark))
}

/// The text of a log that a capture keeps.
pub(crate) fn relevant(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| is_relevant(line)).collect()
}

/// A line without its level and its time.
fn without_time(line: &str) -> String {
    let line = line.strip_prefix('<').and_then(|rest| rest.split_once('>')).map_or(line, |l| l.1);
    let rest = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    rest.map_or(line, |(_, text)| text).to_owned()
}

fn read_kernel_log(root: &Root) -> Fact<KernelLog> {
    match root.read_kernel_log(KERNEL_LOG) {
        Read::Text(text) => Fact::known(KernelLog::parse(&text), "dmesg"),
        Read::Absent => Fact::absent("dmesg"),
        Read::Unreadable { why } => Fact::unreadable("dmesg", why),
    }
}

/// The setting that a loop's own session holds while it runs.
const OWN: &str = "cpu_dma_latency";

/// Settings that another program may change while something is measured, as they are at one time:
/// of the rules' settings those that a running kernel takes, where they can be read. What changes
/// by itself, and what a measurement holds itself, is not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedSettings {
    /// Settings of one value, by name: a sysctl has its own, others the end of their path.
    values: BTreeMap<String, String>,
    /// Settings that each CPU has, by the name of their file: the value by CPU.
    per_cpu: BTreeMap<String, BTreeMap<u32, String>>,
    /// Interrupts by number, and where each may go; empty where irqbalance runs, which moves them
    /// all the time.
    interrupts: BTreeMap<u32, InterruptCpus>,
}

/// The CPUs that an interrupt may go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct InterruptCpus {
    /// Its device or driver, as /proc/interrupts ends its line: a number may be another's after
    /// the next boot.
    name: String,
    /// The CPUs that it may go to, as the kernel lists them: 0-3,5.
    cpus: String,
}

/// A setting that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSetting {
    /// Its name, with the CPUs or interrupts that it is of: "scaling_governor of CPUs 0-3".
    pub name: String,
    /// The value before.
    pub from: String,
    /// The value after.
    pub to: String,
}

impl WatchedSettings {
    /// As they are now.
    pub fn read(root: &Root) -> Self {
        let source = Source::new(root);
        let mut values = BTreeMap::new();
        for (name, value) in single_values(&source) {
            let value = match value {
                Fact::Known { value, .. } => Some(value),
                Fact::Absent { .. } => SERVICES.contains(&name).then(|| "not running".to_owned()),
                Fact::Unreadable { .. } => None,
            };
            if let Some(value) = value.filter(|_| name != OWN) {
                values.insert(name.to_owned(), value);
            }
        }
        let PerCpu { resume_latency, energy_preference, governor } = PerCpu::read(&source);
        let per_cpu = [
            ("pm_qos_resume_latency_us", resume_latency),
            ("energy_performance_preference", energy_preference),
            (GOVERNOR, governor),
        ];
        let per_cpu = per_cpu
            .into_iter()
            .filter_map(|(name, each)| Some((name.to_owned(), each.value()?.clone())));
        let per_cpu = per_cpu.collect();
        let stay = values.get("irqbalance").is_none_or(|state| state != "running");
        let table = interrupts::read(&source);
        let lines = table.value().filter(|_| stay).map(|table| table.lines.as_slice());
        let allowed = |line: &IrqLine| {
            let cpus = line.allowed.value()?.to_string();
            Some((line.number, InterruptCpus { name: line.name.clone(), cpus }))
        };
        let interrupts = lines.unwrap_or_default().iter().filter_map(allowed).collect();
        Self { values, per_cpu, interrupts }
    }

    /// Those that are not the same in `later`, of one name those of the same change together; one
    /// that is known on one side alone is not known to differ.
    pub fn changed(&self, later: &Self) -> Vec<ChangedSetting> {
        let mut found: Vec<ChangedSetting> = differing(&self.values, &later.values)
            .map(|(name, from, to)| ChangedSetting {
                name: name.clone(),
                from: from.clone(),
                to: to.clone(),
            })
            .collect();
        for (name, from) in &self.per_cpu {
            let Some(to) = later.per_cpu.get(name) else { continue };
            for (cpus, from, to) in by_change(differing(from, to)) {
                let name = format!("{name} of {}", numbered("CPU", &cpus));
                found.push(ChangedSetting { name, from, to });
            }
        }
        let moved = differing(&self.interrupts, &later.interrupts)
            .filter(|(_, from, to)| from.name == to.name)
            .map(|(number, from, to)| (number, &from.cpus, &to.cpus));
        for (numbers, from, to) in by_change(moved) {
            let name = format!("CPUs of {}", numbered("interrupt", &numbers));
            found.push(ChangedSetting { name, from, to });
        }
        found
    }

    /// Without those that are one machine's alone: its interrupts, and masks of its CPUs.
    #[must_use]
    pub fn of_any_machine(&self) -> Self {
        let mut rest = self.clone();
        rest.interrupts.clear();
        rest.per_cpu.clear();
        CPU_MASKS.iter().for_each(|name| drop(rest.values.remove(*name)));
        rest
    }

    /// Without those that are facts of the machine too.
    #[must_use]
    pub fn beside_facts(&self) -> Self {
        let mut rest = self.clone();
        rest.per_cpu.remove(GOVERNOR);
        IN_FACTS.iter().for_each(|name| drop(rest.values.remove(*name)));
        rest
    }
}

const GOVERNOR: &str = "scaling_governor";

/// Settings that [`MachineFacts`] have in another form.
const IN_FACTS: &[&str] =
    &["kernel.sched_rt_period_us", "kernel.sched_rt_runtime_us", "realtime", "smt/control"];

/// Settings that are masks of CPUs.
const CPU_MASKS: &[&str] = &[
    "default_smp_affinity",
    "kernel.watchdog_cpumask",
    "workqueue/cpumask",
    "workqueue/writeback/cpumask",
];

/// The entries that are in both and not equal.
fn differing<'a, K: Ord, V: PartialEq>(
    from: &'a BTreeMap<K, V>,
    to: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, &'a V, &'a V)> {
    let differs = move |(key, from): (&'a K, &'a V)| {
        let to = to.get(key).filter(|to| *to != from)?;
        Some((key, from, to))
    };
    from.iter().filter_map(differs)
}

/// The numbers of each change, both values as text.
fn by_change<'a, V: fmt::Display + 'a>(
    changes: impl Iterator<Item = (&'a u32, &'a V, &'a V)>,
) -> impl Iterator<Item = (Vec<u32>, String, String)> {
    let mut numbers_of: BTreeMap<(String, String), Vec<u32>> = BTreeMap::new();
    for (number, from, to) in changes {
        numbers_of.entry((from.to_string(), to.to_string())).or_default().push(*number);
    }
    numbers_of.into_iter().map(|((from, to), numbers)| (numbers, from, to))
}

/// "CPU 3", "CPUs 0-3", "interrupts 24-26,30".
fn numbered(noun: &str, rising: &[u32]) -> String {
    let runs = rising.chunk_by(|number, next| number + 1 == *next);
    let ranges: Vec<String> = runs
        .filter_map(|run| match (run.first()?, run.last()?) {
            (first, last) if first == last => Some(first.to_string()),
            (first, last) => Some(format!("{first}-{last}")),
        })
        .collect();
    format!("{noun}{} {}", if rising.len() == 1 { "" } else { "s" }, ranges.join(","))
}

/// A boot loader, by where it keeps kernel parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loader {
    /// GRUB by Debian's tools: `/etc/default/grub` and its drop-ins, then `update-grub`.
    Grub,
    /// systemd-boot or a unified image by kernel-install: `/etc/kernel/cmdline`.
    SystemdBoot,
    /// Boot Loader Specification entries, changed by grubby.
    Entries,
    /// A Raspberry Pi: `cmdline.txt` on the boot partition.
    RaspberryPi,
}

/// A file with kernel parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootFile {
    /// Its path.
    pub path: String,
    /// Whose it is.
    pub loader: Loader,
    /// The parameters in it.
    pub parameters: CommandLine,
}

pub(crate) const GRUB: &str = "/etc/default/grub";
pub(crate) const DROP_INS: &str = "/etc/default/grub.d";

/// Where entries of the Boot Loader Specification lie.
pub(crate) const ENTRIES: [&str; 3] =
    ["/boot/loader/entries", "/efi/loader/entries", "/boot/efi/loader/entries"];

/// The file that kernel-install makes entries and images with.
pub(crate) const KERNEL: &str = "/etc/kernel/cmdline";

/// Files of one line, which is the command line.
pub(crate) const WHOLE: &[(&str, Loader)] = &[
    ("/boot/firmware/cmdline.txt", Loader::RaspberryPi),
    ("/boot/cmdline.txt", Loader::RaspberryPi),
    (KERNEL, Loader::SystemdBoot),
];

/// Where the kernel parameters of boot loaders are looked for, in words.
pub(crate) fn boot_places() -> String {
    let files = WHOLE.iter().map(|(whole, _)| *whole).chain([GRUB]).collect::<Vec<_>>().join(", ");
    format!("{files} and *.conf in {}", ENTRIES.join(", "))
}

/// The most files that are read of a directory.
const FILES_MAX: usize = 64;

/// True for one of these files: of them, a capture keeps the kernel parameters alone.
pub(crate) fn is_boot_file(path: &str) -> bool {
    path == GRUB
        || path.starts_with(DROP_INS)
        || is_entry(path)
        || WHOLE.iter().any(|(whole, _)| path == *whole)
}

/// True for a file below a directory of entries.
pub(crate) fn is_entry(path: &str) -> bool {
    ENTRIES.iter().any(|directory| path.starts_with(directory))
}

/// The start of the line of a shell that names what the lines below take out of GRUB's variables.
const TAKEN_OUT: &str = "for name in ";

/// The names of the parameters that a file of GRUB takes out of what is set before, in their order.
pub(crate) fn taken_out(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(taken_out_by).flat_map(str::split_whitespace)
}

fn taken_out_by(line: &str) -> Option<&str> {
    line.strip_prefix(TAKEN_OUT)?.strip_suffix("; do")
}

/// Lines of a shell that [`taken_out`] reads these names from; none without names. `body` is what
/// is done for each.
pub(crate) fn taking_out(names: &[&str], body: &str) -> String {
    match names {
        [] => String::new(),
        names => format!("{TAKEN_OUT}{}; do\n{body}done\n", names.join(" ")),
    }
}

/// The kernel parameters of a file, on one line.
pub fn kernel_words(path: &str, text: &str) -> String {
    if WHOLE.iter().any(|(whole, _)| path == *whole) {
        return text.lines().next().unwrap_or_default().to_owned();
    }
    let entries = is_entry(path);
    let mut words: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        let added = match entries {
            true => line.strip_prefix("options").map(|options| options.trim().to_owned()),
            false => assigned(line),
        };
        words.extend(added);
        if let Some(names) = taken_out_by(line) {
            // What the lines before it set.
            let stays = |word: &&str| {
                let name = word.split('=').next().unwrap_or_default();
                !names.split_whitespace().any(|gone| gone == name)
            };
            for set in &mut words {
                *set = set.split_whitespace().filter(stays).collect::<Vec<_>>().join(" ");
            }
            words.retain(|set| !set.is_empty());
        }
    }
    words.join(" ")
}

/// The kernel parameters that a line of GRUB's files sets.
fn assigned(line: &str) -> Option<String> {
    let rest = line.strip_prefix("GRUB_CMDLINE_LINUX")?;
    let (name, value) = rest.split_once('=')?;
    matches!(name, "" | "_DEFAULT").then(|| shell_words(value.trim())).flatten()
}

/// The words that a shell would assign, without what it would put in: other variables, commands.
fn shell_words(value: &str) -> Option<String> {
    if value.starts_with("$(") {
        return None;
    }
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let mut text = String::new();
    let mut letters = value.chars().skip(usize::from(quote.is_some()));
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if quote != Some('\'') => text.extend(letters.next()),
            letter if Some(letter) == quote => break,
            letter => text.push(letter),
        }
    }
    let words = text.split_whitespace().filter(|word| !word.starts_with('$'));
    Some(words.collect::<Vec<_>>().join(" "))
}

fn boot_files(source: &Source<'_>) -> Vec<BootFile> {
    let mut paths = vec![(GRUB.to_owned(), Loader::Grub)];
    let mut listed = |directory: &str, ending: &str, loader| {
        if let Listing::Names(names) = source.root.list(directory) {
            let names = names.into_iter().filter(|name| name.ends_with(ending)).take(FILES_MAX);
            paths.extend(names.map(|name| (format!("{directory}/{name}"), loader)));
        }
    };
    listed(DROP_INS, ".cfg", Loader::Grub);
    ENTRIES.iter().for_each(|directory| listed(directory, ".conf", Loader::Entries));
    paths.extend(WHOLE.iter().map(|(path, loader)| ((*path).to_owned(), *loader)));
    let mut files: Vec<BootFile> = Vec::new();
    for (path, loader) in paths {
        let Fact::Known { value: text, .. } = source.text(&path) else { continue };
        if loader == Loader::Grub {
            for earlier in files.iter_mut().filter(|file| file.loader == Loader::Grub) {
                earlier.parameters.params.retain(|p| !taken_out(&text).any(|name| p.name == name));
            }
        }
        // A captured file holds the parameters alone, as an assignment or as they are.
        let parameters = CommandLine::parse(&kernel_words(&path, &text));
        files.push(BootFile { path, loader, parameters });
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpulist::CpuList;
    use crate::testing::Tree;

    fn settings(files: &[(&str, &str)]) -> KernelSettings {
        KernelSettings::collect(&Tree::of(files).root())
    }

    #[test]
    fn interrupts_have_counts_and_affinities() {
        let tree = Tree::of(&[
            (
                "/proc/interrupts",
                "           CPU0       CPU2\n 24:  1  7  IO-APIC 5-edge  eth0\nNMI:  0  0 x\n\
                 ERR: 0\n",
            ),
            ("/proc/irq/24/smp_affinity_list", "0-2\n"),
            ("/proc/irq/24/effective_affinity_list", "2\n"),
        ]);
        let mut settings = KernelSettings::collect(&tree.root());
        let first =
            |settings: &KernelSettings| settings.interrupts.value().unwrap().lines[0].clone();
        let before = first(&settings);
        assert_eq!((before.number, before.name.as_str()), (24, "IO-APIC 5-edge eth0"));
        assert_eq!(before.counts.get(&2), Some(&7));
        assert_eq!(before.effective.value().map(ToString::to_string).as_deref(), Some("2"));
        assert!(before.risen.is_empty() && !settings.interrupts.value().unwrap().watched);
        tree.write(
            "/proc/interrupts",
            "           CPU0       CPU2\n 24:  1  9  IO-APIC 5-edge  eth0\n",
        );
        settings.watch(&tree.root(), &MachineFacts::collect(&tree.root()));
        assert_eq!(first(&settings).risen, CpuList::single(2));
        assert!(settings.interrupts.value().unwrap().watched);
    }

    #[test]
    fn management_interrupts_are_counted_while_it_is_watched() {
        let info = ("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t: fpu\n");
        let watched = |before: &str, now: &str| {
            let tree = Tree::of(&[info, ("/dev/cpu/0/msr-0x34", before)]);
            let facts = MachineFacts::collect(&tree.root());
            let mut settings = KernelSettings::collect(&tree.root());
            assert_eq!(settings.smi_watched, None);
            tree.write("/dev/cpu/0/msr-0x34", now);
            settings.watch(&tree.root(), &facts);
            settings.smi_watched
        };
        assert_eq!(watched("71", "74"), Some(3));
        assert_eq!(watched("71", "71"), Some(0));
        assert_eq!(watched("4294967295", "1"), Some(2), "it goes on from 0");
        assert_eq!(watched("71", "x"), None);
    }

    #[test]
    fn the_log_tells_what_the_kernel_did_not_know() {
        let log = "[    0.000000] Linux version 6.1.0 (x@y) #1 SMP\n\
               <5>[    0.010000] Unknown kernel command line parameters \"kthread_cpus=0 splash\", \
               will be passed to user space.\n[    0.1] other\n";
        let release = ("/proc/sys/kernel/osrelease", "6.1.0\n");
        let read = |log: &str| settings(&[release, ("/var/log/dmesg", log)]);
        let unknown = |settings: &KernelSettings| {
            let log = settings.kernel_log.value().unwrap();
            log.unknown_parameters(settings.release).map(|words| words.join(","))
        };
        let settings = read(log);
        assert_eq!(settings.kernel_log.value().unwrap().lines.len(), 2);
        assert_eq!(unknown(&settings).as_deref(), Some("kthread_cpus=0,splash"));
        assert_eq!(unknown(&read("[ 0.0] Linux version 6.1.0\n")).as_deref(), Some(""));
        assert_eq!(unknown(&read("[ 9.0] NO_HZ: x\n")), None, "the start of the log is lost");
    }

    #[test]
    fn boot_files_give_their_kernel_parameters() {
        let settings = settings(&[
            ("/etc/default/grub", "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n"),
            ("/etc/default/grub.d/50-x.cfg", "GRUB_CMDLINE_LINUX='isolcpus=2 a=\"b c\"'\n"),
            ("/boot/loader/entries/a.conf", "title T\noptions root=/dev/x nohz_full=2\n"),
            ("/boot/cmdline.txt", "console=tty1 isolcpus=3\nsecond\n"),
        ]);
        let shown: Vec<String> = settings.boot.iter().map(|f| f.parameters.to_string()).collect();
        assert_eq!(
            shown,
            ["quiet", "isolcpus=2 a=\"b c\"", "root=/dev/x nohz_full=2", "console=tty1 isolcpus=3"]
        );
        assert_eq!(settings.boot[3].loader, Loader::RaspberryPi);
    }

    #[test]
    fn parameters_of_modules_are_looked_up() {
        let settings = settings(&[
            ("/proc/cmdline", "workqueue.cpumask=1 rcutree.kthread_prio=11 none.x=1 ..=1\n"),
            ("/sys/module/rcutree/parameters/kthread_prio", "11\n"),
            ("/sys/module/workqueue/parameters/power_efficient", "N\n"),
        ]);
        let seen: Vec<(&str, bool, bool)> = settings
            .module_parameters
            .iter()
            .map(|p| (p.name.as_str(), p.module.is_known(), p.shown.is_known()))
            .collect();
        assert_eq!(
            seen,
            [
                ("workqueue.cpumask", true, false),
                ("rcutree.kthread_prio", true, true),
                ("none.x", false, false)
            ]
        );
    }

    #[test]
    fn what_changed_between_two_looks_is_named_with_both_values() {
        let tree =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/firecracker-guest-2cpu");
        let before = WatchedSettings::read(&Root::captured(tree).expect("a fixture"));
        assert_eq!(before.changed(&before), []);
        let (mut before, mut after) = (before.clone(), before);
        let was = after.values.insert("vm.stat_interval".to_owned(), "77".to_owned());
        let interrupt =
            |name: &str, cpus: &str| InterruptCpus { name: name.to_owned(), cpus: cpus.to_owned() };
        for number in [24, 25, 27] {
            before.interrupts.insert(number, interrupt("PCI-MSI eth0", "0-1"));
            after.interrupts.insert(number, interrupt("PCI-MSI eth0", "0"));
        }
        // Of another device by now.
        before.interrupts.insert(99, interrupt("PCI-MSI nvme0", "0"));
        after.interrupts.insert(99, interrupt("PCI-MSI eth1", "1"));
        // One that cannot be read any more is not known to differ.
        after.values.remove("kernel.watchdog_cpumask");
        let governor = |words: [&str; 3]| {
            let each = (0..).zip(words.map(str::to_owned)).collect();
            BTreeMap::from([(GOVERNOR.to_owned(), each)])
        };
        before.per_cpu = governor(["powersave", "powersave", "schedutil"]);
        after.per_cpu = governor(["performance"; 3]);
        let changed = before.changed(&after);
        let names: Vec<&str> = changed.iter().map(|changed| changed.name.as_str()).collect();
        let interrupts = "CPUs of interrupts 24-25,27";
        let governors = ["scaling_governor of CPUs 0-1", "scaling_governor of CPU 2"];
        assert_eq!(names, ["vm.stat_interval", governors[0], governors[1], interrupts]);
        assert_eq!((Some(&changed[0].from), changed[0].to.as_str()), (was.as_ref(), "77"));
        assert_eq!((changed[3].from.as_str(), changed[3].to.as_str()), ("0-1", "0"));
        assert!(!before.values.contains_key(OWN));
        let beside = before.beside_facts().changed(&after.beside_facts());
        let names: Vec<&str> = beside.iter().map(|changed| changed.name.as_str()).collect();
        assert_eq!(names, ["vm.stat_interval", interrupts]);
        assert_eq!(before.of_any_machine().changed(&after.of_any_machine()).len(), 1);
    }

    #[test]
    fn a_service_that_was_stopped_is_a_change() {
        let procs = "/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs";
        let before = WatchedSettings::read(&Tree::of(&[(procs, "1\n")]).root());
        let after = WatchedSettings::read(&Tree::of(&[("/proc/uptime", "1 1\n")]).root());
        let changed = before.changed(&after);
        let words: Vec<String> =
            changed.iter().map(|c| format!("{}: {} → {}", c.name, c.from, c.to)).collect();
        assert_eq!(words, ["irqbalance: running → not running"]);
    }

    #[test]
    fn a_machine_that_runs_on_has_changed_no_setting() {
        let tree = Tree::of(&[("/proc/uptime", "60.0 1.0\n"), ("/proc/sys/vm/swappiness", "60\n")]);
        let before = WatchedSettings::read(&tree.root());
        tree.write("/proc/uptime", "61.0 1.5\n");
        assert_eq!(before.changed(&WatchedSettings::read(&tree.root())), []);
        tree.write("/proc/sys/vm/swappiness", "10\n");
        assert_eq!(before.changed(&WatchedSettings::read(&tree.root())).len(), 1);
    }
}
