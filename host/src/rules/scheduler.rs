//! Rules about the scheduler: preemption and timers.

use super::{CMDLINE, Finding, Inputs, Judge, Rule, read, rule, settled};
use crate::facts::{PreemptionMode, PreemptionModel};

const PREEMPT: &str = "/sys/kernel/debug/sched/preempt";

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "With PREEMPT_RT a real-time thread waits for short critical sections only; without \
              it, for whatever the kernel does.",
        cost: "A few percent of throughput.",
        verified: "uname -v, else /sys/kernel/realtime, else the configuration",
        source: "Linux 6.12 has it; Documentation/core-api/real-time",
        ..rule("scheduler.preempt_rt", "PREEMPT_RT", 9, Judge::One(preempt_rt))
    },
    Rule {
        why: "Only kernels with the former patch set have this file, so programs that look for it \
              take a mainline PREEMPT_RT kernel for an ordinary one: look at uname -v.",
        verified: "uname -v and /sys/kernel/realtime",
        source: "github.com/LinuxCNC/linuxcnc issues 3262, 3303; libfranka 207",
        ..rule("scheduler.realtime_file", "/sys/kernel/realtime", 1, Judge::One(realtime_file))
    },
    Rule {
        why: "The mode decides where the kernel lets a thread be preempted: 'full' outside of \
              critical sections, 'lazy' as full for real-time threads, 'none' at the return to \
              user space.",
        cost: "A little throughput.",
        verified: "the mode in parentheses in /sys/kernel/debug/sched/preempt; uname -v does not \
                   have it",
        source: "Linux, admin-guide/kernel-parameters; commit 7dadeaa6e851 (7.0)",
        ..rule("scheduler.preempt", "preempt", 7, Judge::One(preempt))
    },
    Rule {
        why: "With the governor schedutil, real-time threads ask for this share of the highest \
              frequency; below 1024 they start at a lower one.",
        cost: "Heat.",
        verified: "/proc/sys/kernel/sched_util_clamp_min_rt_default",
        source: "Linux, scheduler/sched-util-clamp",
        ..rule(
            "scheduler.util_clamp",
            "kernel.sched_util_clamp_min_rt_default",
            3,
            Judge::One(util_clamp),
        )
    },
    Rule {
        why: "Timers of other CPUs may move to the loop's CPU while theirs idle. Opinions differ: \
              TuneD sets 0, OpenShift's profiles 1.",
        cost: "Idle CPUs wake for their own timers.",
        verified: "/proc/sys/kernel/timer_migration",
        source: "Linux, admin-guide/sysctl/kernel; TuneD realtime profiles",
        ..rule(
            "scheduler.timer_migration",
            "kernel.timer_migration",
            2,
            Judge::One(timer_migration),
        )
    },
    Rule {
        why: "The ticks of all CPUs come at once and compete for locks; shifted, they do not. \
              Loops of one period on several CPUs are shifted too.",
        cost: "More power: CPUs wake at different times.",
        ..rule("scheduler.skew_tick", "skew_tick", 2, Judge::One(skew_tick))
    },
];

fn preempt_rt(inputs: &Inputs<'_>) -> Finding {
    let judged =
        read(&inputs.facts.preemption.preemption_model).map(|(model, origin)| match model {
            PreemptionModel::Rt => Finding::good("PREEMPT_RT", origin),
            model => Finding::needs_reboot(model.word(), origin)
                .note("Install a PREEMPT_RT kernel, such as linux-image-rt-amd64 of Debian."),
        });
    settled(judged)
}

fn realtime_file(inputs: &Inputs<'_>) -> Finding {
    let file = inputs.settings.value("realtime");
    match (inputs.is_rt(), file.value().map(String::as_str), file.why()) {
        (None, ..) => Finding::unknown(
            "the preemption model is not known",
            inputs.facts.preemption.preemption_model.origin(),
        ),
        (_, _, Some(why)) => Finding::unknown(format!("unreadable: {why}"), file.origin()),
        (Some(false), None, _) => Finding::not_applicable("absent", file.origin()),
        (Some(true), None, _) => Finding::no_effect("absent on a PREEMPT_RT kernel", file.origin()),
        (Some(_), Some(value), _) => Finding::good(value, file.origin()),
    }
}

fn preempt(inputs: &Inputs<'_>) -> Finding {
    settled(judged_preempt(inputs))
}

fn judged_preempt(inputs: &Inputs<'_>) -> Result<Finding, Finding> {
    let facts = &inputs.facts.preemption;
    let param = inputs.typed("preempt").or(|| without_preempt(inputs))?;
    let shown = param.to_string();
    let nothing =
        |why: &str| Finding::no_effect(shown.clone(), CMDLINE).note(why).remove("preempt");
    let value = param.value.as_deref().unwrap_or_default();
    let known = ["none", "voluntary", "full", "lazy"].contains(&value);
    let from = |release| inputs.kernel_from(release);
    let restricted = inputs.settings.is_built("ARCH_HAS_PREEMPT_LAZY") != Some(false);
    match value {
        _ if !known => return Err(nothing("The kernel knows no such mode.")),
        "none" | "voluntary" if from((7, 0)) == Some(true) && restricted => {
            return Err(nothing("Linux 7.0 has only 'full' and 'lazy' on this architecture."));
        }
        "lazy" if from((6, 13)) == Some(false) => {
            return Err(nothing("The mode came with Linux 6.13."));
        }
        _ => {}
    }
    if inputs.is_rt() == Some(true) && !facts.preemption_mode.is_known() {
        return Err(nothing("A PREEMPT_RT kernel that cannot switch takes no mode."));
    }
    let built = inputs.settings.is_built("PREEMPT_DYNAMIC");
    let model = facts.preemption_model.value();
    if built == Some(false)
        || model.is_some_and(|m| !matches!(m, PreemptionModel::Dynamic | PreemptionModel::Rt))
    {
        return Err(nothing("The kernel is built without CONFIG_PREEMPT_DYNAMIC."));
    }
    let (mode, origin) = read(&facts.preemption_mode)?;
    let found = format!("{shown}; active: {}", mode.word());
    if !origin.starts_with(PREEMPT) {
        let logged = inputs.settings.kernel_log.value().and_then(|l| l.after("Dynamic Preempt:"));
        if logged != Some(value) {
            return Err(Finding::unknown(shown, PREEMPT)
                .note("The active mode cannot be read: debugfs is refused or not mounted."));
        }
    } else if mode.word() != value {
        return Err(Finding::no_effect(found, origin).note("Another mode is active."));
    }
    Ok(mode_finding(*mode, found, origin))
}

fn mode_finding(mode: PreemptionMode, found: String, origin: &str) -> Finding {
    match mode {
        PreemptionMode::Full | PreemptionMode::Lazy => Finding::good(found, origin),
        _ => {
            let improve = Finding::improve(found, origin);
            // The mode is in the kernel's log too, where debugfs is not mounted.
            let improve = match origin.starts_with(PREEMPT) {
                true => improve.write(PREEMPT, "full"),
                false => improve,
            };
            improve.boot("preempt", Some("full".to_owned()))
        }
    }
}

fn without_preempt(inputs: &Inputs<'_>) -> Finding {
    let facts = &inputs.facts.preemption;
    let judged = read(&facts.preemption_mode)
        .map(|(mode, origin)| mode_finding(*mode, format!("active: {}", mode.word()), origin));
    settled(judged)
}

fn util_clamp(inputs: &Inputs<'_>) -> Finding {
    let name = "kernel.sched_util_clamp_min_rt_default";
    let judged = inputs.value(name).map(|(value, origin)| match value {
        "1024" => Finding::good(value, origin),
        _ => Finding::improve(value, origin)
            .write("/proc/sys/kernel/sched_util_clamp_min_rt_default", "1024"),
    });
    settled(judged)
}

fn timer_migration(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("kernel.timer_migration").map(|(value, origin)| match value {
        "0" => Finding::good("0", origin),
        _ => Finding::improve(value, origin).write("/proc/sys/kernel/timer_migration", "0"),
    });
    settled(judged)
}

fn skew_tick(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("skew_tick").or_absent().map(|param| {
        match (param.value.as_deref(), inputs.others().is_empty()) {
            (Some("1"), false) => Finding::good(param.to_string(), CMDLINE),
            (Some("1"), true) => Finding::no_effect(param.to_string(), CMDLINE)
                .note("There is one CPU only.")
                .remove("skew_tick"),
            _ => Finding::no_effect(param.to_string(), CMDLINE).note("Only 1 switches it on."),
        }
    });
    settled(judged)
}
