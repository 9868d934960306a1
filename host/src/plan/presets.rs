//! The wishes of each workload at boot: a row each.
//!
//! Data, and what of it this machine has a use for; reads nothing.

use crate::cpulist::CpuList;
use crate::facts::PreemptionModel;
use crate::rules::{Inputs, Workload};

use super::{BootRow, Preset};

pub(super) const ISOLCPUS: BootRow = BootRow {
    name: "isolcpus",
    value: |inputs| Some(Some(format!("domain,managed_irq,{}", isolated(inputs)?))),
    why: "The CPUs of the loop are kept free from the start of the machine on.",
};
const IRQAFFINITY: BootRow = BootRow {
    name: "irqaffinity",
    value: |inputs| {
        let online = inputs.facts.cpu.online_cpus.value()?;
        let others = online.difference(&kept(inputs).unwrap_or_else(|| inputs.cpus.clone()));
        (!others.is_empty()).then(|| Some(others.to_string()))
    },
    why: "Interrupts go to the other CPUs from the start.",
};
const RCU_NOCBS: BootRow = BootRow {
    name: "rcu_nocbs",
    value: |inputs| {
        kept(inputs).filter(|_| built(inputs, "RCU_NOCB_CPU")).map(|cpus| Some(cpus.to_string()))
    },
    why: "RCU's callbacks run on the other CPUs.",
};
/// Where `nohz_full=` cannot have that effect too.
const RCU_NOCBS_INSTEAD: BootRow = BootRow {
    value: |inputs| if full(inputs).is_some() { None } else { (RCU_NOCBS.value)(inputs) },
    ..RCU_NOCBS
};
const NOHZ_FULL: BootRow = BootRow {
    name: "nohz_full",
    value: |inputs| Some(Some(full(inputs)?.to_string())),
    why: "A loop that never sleeps is not interrupted by the tick.",
};
const NOCB_POLL: BootRow = BootRow {
    name: "rcu_nocb_poll",
    value: |inputs| kept(inputs).filter(|_| built(inputs, "RCU_NOCB_CPU")).map(|_| None),
    why: "The CPUs of the loop need not wake RCU's threads.",
};
const THREADIRQS: BootRow = BootRow {
    name: "threadirqs",
    value: |inputs| (!is_rt(inputs)).then_some(None),
    why: "Interrupt handlers become threads that sound is more urgent than.",
};

/// One row a workload. Step generation is what recipes for LinuxCNC set for its CPUs, without
/// parameters that no kernel has and without a tick that a sleeping loop does not notice.
pub(super) const PRESETS: &[Preset] = &[
    Preset {
        workload: Workload::StepGeneration,
        boot: &[ISOLCPUS, IRQAFFINITY, RCU_NOCBS],
        without: &[],
    },
    Preset { workload: Workload::Servo, boot: &[ISOLCPUS, IRQAFFINITY, RCU_NOCBS], without: &[] },
    Preset {
        workload: Workload::Audio,
        boot: &[THREADIRQS],
        // The machine is used for other things: its CPUs stay everybody's.
        without: &[
            "isolation.isolcpus",
            "isolation.partition",
            "isolation.siblings",
            "interrupts.irqaffinity",
            "interrupts.default",
            "interrupts.placement",
            "interrupts.workqueue",
            "interrupts.writeback",
            "rcu.nocbs",
            "watchdogs.cpumask",
            "watchdogs.machine_check",
            "watchdogs.nmi",
        ],
    },
    Preset {
        workload: Workload::Polling,
        boot: &[ISOLCPUS, NOHZ_FULL, RCU_NOCBS_INSTEAD, IRQAFFINITY, NOCB_POLL],
        without: &["rcu.nocbs"],
    },
    Preset {
        workload: Workload::VmGuest,
        boot: &[ISOLCPUS, NOHZ_FULL, RCU_NOCBS_INSTEAD, IRQAFFINITY],
        without: &["rcu.nocbs"],
    },
];

fn is_rt(inputs: &Inputs<'_>) -> bool {
    let model = inputs.facts.preemption.preemption_model.value();
    model == Some(&PreemptionModel::Rt)
}

/// Returns true where an option is built in, or may be.
fn built(inputs: &Inputs<'_>, option: &str) -> bool {
    inputs.settings.is_built(option) != Some(false)
}

/// The CPUs that can be kept for the workload: whole cores, since one thread of a core slows the
/// other; `None` where no core would be left for other tasks.
fn kept(inputs: &Inputs<'_>) -> Option<CpuList> {
    inputs.whole_cores(inputs.cpus)
}

/// The CPUs that can be isolated.
fn isolated(inputs: &Inputs<'_>) -> Option<CpuList> {
    kept(inputs).filter(|_| built(inputs, "CPU_ISOLATION"))
}

/// The CPUs whose tick can stop: isolated ones, without the boot CPU, which keeps it.
fn full(inputs: &Inputs<'_>) -> Option<CpuList> {
    let isolated = isolated(inputs).filter(|_| inputs.keeps_the_tick().is_none())?;
    let full = isolated.difference(&CpuList::single(0));
    (!full.is_empty()).then_some(full)
}
