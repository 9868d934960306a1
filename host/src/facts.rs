//! Everything that is known about the machine, each thing with its origin.
//!
//! [`MachineFacts::collect`] is the one entry: it reads through a [`Root`] and nothing else, never
//! fails and never changes anything. One file a group; the names of the fields are the keys of the
//! JSON, which is flat. Absent and unreadable things are values ([`Fact`]).

mod cgroup;
mod clock;
mod cpu;
mod cpuinfo;
mod frequency;
mod idle;
mod isolation;
mod kconfig;
mod kernel;
mod limits;
mod memory;
mod power;
mod preemption;
mod resource_limit;
pub(crate) mod source;
mod virtualization;

pub(crate) use cgroup::{Cgroups, is_group_of_interest, is_root_mount};
pub use clock::ClockSources;
pub use cpu::{Cpu, Topology};
pub use frequency::{Frequency, FrequencyRange};
pub use idle::{Idle, IdleState};
pub use isolation::Isolation;
pub use kernel::{Kernel, NoHz};
pub(crate) use kernel::{release, release_numbers};
pub use limits::{Capabilities, FairServer, ProcessLimits, RtBudget, RtThrottling};
pub use memory::Memory;
pub use power::{Power, PowerSource};
pub use preemption::{Preemption, PreemptionMode, PreemptionModel};
pub use resource_limit::{LimitPair, ResourceLimit};
pub use virtualization::Virtualization;

use crate::root::Root;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use source::Source;

#[cfg(doc)]
use crate::fact::Fact;

/// What is known about a machine; the `machine` object of a result. Serialises flat: the keys of
/// all groups stand side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// The processors.
    #[serde(flatten)]
    pub cpu: Cpu,
    /// The kernel as it was built and started.
    #[serde(flatten)]
    pub kernel: Kernel,
    /// How the kernel may be preempted.
    #[serde(flatten)]
    pub preemption: Preemption,
    /// What lies between the kernel and the hardware.
    #[serde(flatten)]
    pub virtualization: Virtualization,
    /// What time is read from.
    #[serde(flatten)]
    pub clock: ClockSources,
    /// Which CPUs are kept free of others' work.
    #[serde(flatten)]
    pub isolation: Isolation,
    /// How fast the CPUs are let run.
    #[serde(flatten)]
    pub frequency: Frequency,
    /// How deep they sleep.
    #[serde(flatten)]
    pub idle: Idle,
    /// What this process is allowed.
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

#[cfg(test)]
mod tests;
