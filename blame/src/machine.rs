//! The machine that is recorded, beside its events: its platform, its files, and the threads that
//! ran when the recording began.

use std::collections::BTreeSet;

use punctual_trace::event::TaskName;
use serde::{Deserialize, Serialize};

/// The platform that the kernel runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    /// Not known: what depends on it is said for both.
    #[default]
    Unknown,
    /// A virtual machine: what leaves no event is the host's.
    VirtualMachine,
    /// The machine itself: what leaves no event is the firmware's (SMI, secure monitor).
    Metal,
}

/// Files of the kernel by which a setting is changed: advice names one only where the machine that
/// was recorded has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KernelFiles(BTreeSet<String>);

impl KernelFiles {
    pub(crate) const PREEMPT: &str = "/sys/kernel/debug/sched/preempt";
    pub(crate) const FAIR_SERVER_DIR: &str = "/sys/kernel/debug/sched/fair_server";
    pub(crate) const DMA_LATENCY: &str = "/dev/cpu_dma_latency";
    pub(crate) const NMI_WATCHDOG: &str = "/proc/sys/kernel/nmi_watchdog";
    pub(crate) const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    pub(crate) const GROUP_RT_RUNTIME: &str = "/sys/fs/cgroup/cpu/cpu.rt_runtime_us";

    /// Those that advice could name, but for files of single interrupts and CPUs.
    pub const CANDIDATES: [&str; 5] = [
        Self::PREEMPT,
        Self::DMA_LATENCY,
        Self::NMI_WATCHDOG,
        Self::RT_RUNTIME,
        Self::GROUP_RT_RUNTIME,
    ];
    /// Directories with a folder for each CPU or each interrupt, and the name of the file in it.
    pub const FOLDERS: [(&str, &str); 2] =
        [(Self::FAIR_SERVER_DIR, "runtime"), ("/proc/irq", "smp_affinity_list")];

    /// The files at these paths, which the machine has.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = String>) -> Self {
        Self(paths.into_iter().collect())
    }

    /// The path, where the machine has it.
    pub(crate) fn find(&self, path: impl AsRef<str>) -> Option<&str> {
        self.0.get(path.as_ref()).map(String::as_str)
    }
}

/// The facts of a machine by which causes are named and judged. A capture of late wakes keeps them
/// beside its other facts, whose struct refuses unknown keys for both.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CapturedMachine {
    /// The platform that the kernel runs on.
    pub platform: Platform,
    /// Major and minor of the kernel's release, where known.
    pub kernel: Option<(u32, u32)>,
    /// System management interrupts during the capture (`msr/smi/`), where they were counted.
    #[serde(default)]
    pub smi_count: Option<u64>,
    /// The most that leaving each idle state takes, as its driver says, us, from shallow to deep
    /// (`cpuidle/state*/latency`); empty where that is not known.
    #[serde(default)]
    pub idle_exits_us: Vec<u64>,
    /// The files of the machine that advice may name.
    #[serde(default, rename = "kernel_files")]
    pub files: KernelFiles,
    /// Its CPUs that are online; empty where they are not known.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// Offsets of timers' clocks ahead of that of the events, ns: REALTIME, TAI, BOOTTIME. Those
    /// that are missing are learnt from expiries, to about a microsecond.
    pub clock_offsets_ns: Vec<i64>,
}

/// An idle state is left within this time beyond twice what its driver says, ns: the clock rises
/// and caches are cold.
const IDLE_EXIT_MORE_NS: u64 = 100_000;
/// Leaving a state of which nothing is known takes no longer than this, ns: the slowest of
/// intel_idle's tables, C7S of Bay Trail (drivers/idle/intel_idle.c, Linux 6.18).
const IDLE_EXIT_NS_MAX: u64 = 10_000_000;

impl CapturedMachine {
    /// The time beyond which it is not the idle state that a CPU was late by, ns; `state` is its
    /// number, where known. `None` where a host runs the CPU, or may: it comes back at any time.
    pub(crate) fn longest_idle_exit_ns(&self, state: Option<u32>) -> Option<u64> {
        let of_state = |state: u32| self.idle_exits_us.get(state as usize).copied();
        let deepest = || self.idle_exits_us.iter().max().copied();
        let exit_us = state.and_then(of_state).or_else(deepest);
        let doubled = |us: u64| us.saturating_mul(2_000).saturating_add(IDLE_EXIT_MORE_NS);
        (self.platform == Platform::Metal).then(|| exit_us.map_or(IDLE_EXIT_NS_MAX, doubled))
    }

    /// Returns true where the firmware interrupted the machine itself at least as often as wakes of
    /// a thread were late without an event. That many of them passed unseen beside another cause
    /// is possible.
    pub(crate) fn counts_firmware(&self, stopped_wakes: u64) -> bool {
        let is_each_counted = |&count: &u64| stopped_wakes > 0 && count >= stopped_wakes;
        self.platform == Platform::Metal && self.smi_count.as_ref().is_some_and(is_each_counted)
    }

    /// The online CPUs beside this one, as taskset(1) takes them; `None` where none is known.
    pub(crate) fn cpus_beside(&self, cpu: u32) -> Option<String> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for &other in self.cpus.iter().filter(|&&other| other != cpu) {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == other => *last = other,
                _ => runs.push((other, other)),
            }
        }
        let words = |&(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        let list: Vec<String> = runs.iter().map(words).collect();
        (!list.is_empty()).then(|| list.join(","))
    }
}

/// A thread that ran, or waited for a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnableThread {
    /// The thread.
    pub task: TaskName,
    /// The CPU that it ran on last.
    pub cpu: u32,
}

/// A look at the threads of the machine, right before the first event that counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingBegin {
    /// The instant at which recording began, ns on the events' clock.
    pub at_ns: u64,
    /// The threads that ran or waited for a CPU then.
    pub runnable: Vec<RunnableThread>,
}
