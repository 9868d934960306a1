//! What each workload wants at boot: a row each.
//!
//! Data, and what of it this machine has a use for; reads nothing.

use crate::cpulist::CpuList;
use crate::facts::PreemptionModel;
use crate::rules::{Inputs, Workload};

/// A parameter that a workload wants at boot: its name, and its value on this machine; `None` where
/// this machine has no use for it.
pub(super) struct BootRow {
    pub(super) name: &'static str,
    pub(super) value: fn(&Inputs<'_>) -> Option<Option<String>>,
    pub(super) why: &'static str,
}

/// What a workload wants at boot, beyond what rules find, and which rules are not for it.
pub(super) struct Preset {
    pub(super) workload: Workload,
    pub(super) boot: &'static [BootRow],
    /// Rules whose changes are left out.
    pub(super) without: &'static [&'static str],
}

const ISOLCPUS: BootRow = BootRow {
    name: "isolcpus",
    value: |inputs| Some(Some(format!("domain,managed_irq,{}", inputs.cpus))),
    why: "The CPUs of the loop are kept free from the start of the machine on.",
};
const IRQAFFINITY: BootRow = BootRow {
    name: "irqaffinity",
    value: |inputs| Some(Some(others(inputs).to_string())),
    why: "Interrupts go to the other CPUs from the start.",
};
const RCU_NOCBS: BootRow = BootRow {
    name: "rcu_nocbs",
    value: |inputs| built(inputs, "RCU_NOCB_CPU").then(|| Some(inputs.cpus.to_string())),
    why: "RCU's callbacks run on the other CPUs.",
};
const NOHZ_FULL: BootRow = BootRow {
    name: "nohz_full",
    value: |inputs| built(inputs, "NO_HZ_FULL").then(|| Some(inputs.cpus.to_string())),
    why: "A loop that never sleeps is not interrupted by the tick.",
};
const NOCB_POLL: BootRow = BootRow {
    name: "rcu_nocb_poll",
    value: |inputs| built(inputs, "RCU_NOCB_CPU").then_some(None),
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
        boot: &[ISOLCPUS, NOHZ_FULL, IRQAFFINITY, NOCB_POLL],
        without: &["rcu.nocbs"],
    },
    Preset {
        workload: Workload::VmGuest,
        boot: &[ISOLCPUS, NOHZ_FULL, IRQAFFINITY],
        without: &["rcu.nocbs"],
    },
];

fn is_rt(inputs: &Inputs<'_>) -> bool {
    let model = inputs.facts.preemption.preemption_model.value();
    model == Some(&PreemptionModel::Rt)
}

/// Whether an option is built in, or may be.
fn built(inputs: &Inputs<'_>, option: &str) -> bool {
    inputs.settings.is_built(option) != Some(false)
}

fn others(inputs: &Inputs<'_>) -> CpuList {
    let online = inputs.facts.cpu.online_cpus.value().cloned().unwrap_or_default();
    online.difference(inputs.cpus)
}
