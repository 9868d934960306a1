//! What rules look at: facts, settings, which CPUs and which workload it is about. Pure.

use super::Finding;
use crate::choose::choose;
use crate::cmdline::Param;
use crate::cpulist::CpuList;
use crate::fact::Fact;
use crate::facts::{MachineFacts, NoHz, PreemptionModel};
use crate::settings::KernelSettings;

/// Where the command line is.
pub(super) const CMDLINE: &str = "/proc/cmdline";

/// What the loop does between its cycles, which decides what helps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Steps of a motor: sleeps, 20 to 50 µs of period.
    StepGeneration,
    /// A control loop: sleeps, 100 µs to 10 ms of period.
    Servo,
    /// Sound: sleeps, milliseconds of period, on a machine that is used for other things.
    Audio,
    /// A loop that never sleeps.
    Polling,
    /// A virtual machine's processors on this host.
    VmGuest,
}

impl Workload {
    /// Whether its threads are always ready to run.
    pub fn spins(self) -> bool {
        matches!(self, Self::Polling | Self::VmGuest)
    }
}

/// The CPUs that are tuned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuScope {
    /// Which.
    pub cpus: CpuList,
    /// Why these, in words.
    pub why: String,
}

impl CpuScope {
    /// Those that were requested; else those that are isolated; else the one to measure on.
    pub fn of(requested: Option<CpuList>, facts: &MachineFacts) -> Self {
        if let Some(cpus) = requested {
            return Self { cpus, why: "as requested".to_owned() };
        }
        let none = CpuList::new();
        let full = facts.isolation.nohz_full_cpus.value().unwrap_or(&none);
        let isolated = facts.isolation.isolated().union(full);
        if !isolated.is_empty() {
            return Self { cpus: isolated, why: "isolated".to_owned() };
        }
        let choice = choose(facts);
        Self { cpus: CpuList::single(choice.cpu), why: choice.why }
    }
}

/// What rules look at.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The facts of every result.
    pub facts: &'a MachineFacts,
    /// What rules need beyond them.
    pub settings: &'a KernelSettings,
    /// The CPUs that are tuned.
    pub cpus: &'a CpuList,
    /// What runs on them, where that is known.
    pub workload: Option<Workload>,
}

impl Inputs<'_> {
    /// The last CPU that can be there; the last online one where the kernel does not tell.
    pub(super) fn last_cpu(&self) -> Option<u32> {
        let cpu = &self.facts.cpu;
        cpu.possible_cpus.value().or(cpu.online_cpus.value())?.last()
    }

    /// The online CPUs that are not tuned.
    pub(super) fn others(&self) -> CpuList {
        let online = self.facts.cpu.online_cpus.value().cloned().unwrap_or_default();
        online.difference(self.cpus)
    }

    /// Whether the kernel is at least this one; `None` where its release is not known.
    pub(super) fn kernel_from(&self, release: super::Release) -> Option<bool> {
        Some(self.settings.release? >= release)
    }

    /// Whether a parameter was typed: its last occurrence.
    pub(super) fn typed(&self, name: &str) -> Typed<'_> {
        match &self.settings.command_line {
            Fact::Known { value, .. } => value.last(name).map_or(Typed::No, Typed::Yes),
            Fact::Absent { .. } => Typed::Unknown("there is no /proc/cmdline"),
            Fact::Unreadable { why, .. } => Typed::Unknown(why),
        }
    }

    /// A list of CPUs that was typed; the error in the kernel's grammar.
    pub(super) fn list(&self, text: &str) -> Result<CpuList, String> {
        let last = self.last_cpu().unwrap_or(crate::cpulist::MAX_CPUS - 1);
        CpuList::parse(text, last).map_err(|error| error.to_string())
    }

    /// CPUs of a list that share a core with CPUs outside of it, those outside.
    pub(crate) fn split_siblings(&self, cpus: &CpuList) -> CpuList {
        let Some(topology) = self.facts.cpu.topology.value() else { return CpuList::new() };
        let siblings =
            cpus.iter().flat_map(|cpu| topology.siblings(cpu).iter().collect::<Vec<_>>());
        siblings.collect::<CpuList>().difference(cpus)
    }

    /// The cores of these CPUs, each with all of its threads; `None` where no CPU would be left for
    /// other tasks.
    pub(crate) fn whole_cores(&self, cpus: &CpuList) -> Option<CpuList> {
        let whole = cpus.union(&self.split_siblings(cpus));
        let online = self.facts.cpu.online_cpus.value()?;
        (!online.difference(&whole).is_empty()).then_some(whole)
    }

    /// Why this kernel cannot stop the tick of a CPU that is busy (`nohz_full=`), where that is
    /// known.
    pub(crate) fn keeps_the_tick(&self) -> Option<&'static str> {
        let built = self.settings.is_built("NO_HZ_FULL");
        let mode = self.facts.kernel.no_hz.value();
        if built == Some(false) || mode.is_some_and(|mode| *mode != NoHz::Full) {
            return Some("the kernel is built without CONFIG_NO_HZ_FULL");
        }
        // With the option the file exists.
        let shown = &self.facts.isolation.nohz_full_cpus;
        let is_absent = !shown.is_known() && shown.why().is_none();
        is_absent.then_some("the kernel shows no list of such CPUs")
    }

    /// Whether the kernel is PREEMPT_RT.
    pub(super) fn is_rt(&self) -> Option<bool> {
        let model = self.facts.preemption.preemption_model.value()?;
        Some(*model == PreemptionModel::Rt)
    }

    /// Whether this is an x86 machine.
    pub(super) fn is_x86(&self) -> Option<bool> {
        let name = self.facts.kernel.architecture.value()?;
        Some(matches!(name.as_str(), "x86_64" | "i386" | "i586" | "i686"))
    }

    /// Whether a hypervisor runs this kernel.
    pub(super) fn is_guest(&self) -> Option<bool> {
        self.facts.virtualization.virtualization.value().map(|name| name != "none")
    }

    /// A setting's value, or a finding that says why there is none.
    pub(super) fn value(&self, name: &str) -> Result<(&str, &str), Finding> {
        read(self.settings.value(name)).map(|(value, origin)| (value.as_str(), origin))
    }
}

/// A fact's value with its origin, or a finding that says why there is none.
pub(super) fn read<T>(fact: &Fact<T>) -> Result<(&T, &str), Finding> {
    match fact {
        Fact::Known { value, origin } => Ok((value, origin)),
        Fact::Absent { origin } => Err(Finding::not_applicable("absent", origin)),
        Fact::Unreadable { origin, why } => {
            Err(Finding::unknown(format!("unreadable: {why}"), origin))
        }
    }
}

/// Whether a parameter stands on the command line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Typed<'a> {
    Yes(&'a Param),
    No,
    /// The command line could not be read.
    Unknown(&'a str),
}

impl<'a> Typed<'a> {
    /// The parameter as typed, or `otherwise` where it was not; what is unknown stays unknown.
    pub(super) fn or(self, otherwise: impl FnOnce() -> Finding) -> Result<&'a Param, Finding> {
        match self {
            Self::Yes(param) => Ok(param),
            Self::No => Err(otherwise()),
            Self::Unknown(why) => Err(Finding::unknown(format!("unreadable: {why}"), CMDLINE)),
        }
    }

    /// The parameter as typed; that it is not there does not matter.
    pub(super) fn or_absent(self) -> Result<&'a Param, Finding> {
        self.or(|| Finding::not_applicable("not set", CMDLINE))
    }

    /// The parameter as typed; that it is not there is right.
    pub(super) fn or_good(self) -> Result<&'a Param, Finding> {
        self.or(|| Finding::good("not set", CMDLINE))
    }
}

/// Either way it is the finding.
pub(super) fn settled(finding: Result<Finding, Finding>) -> Finding {
    finding.unwrap_or_else(|finding| finding)
}
