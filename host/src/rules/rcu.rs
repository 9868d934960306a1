//! Rules about RCU: where its callbacks run, how urgent its threads are, what interrupts CPUs.

use super::{CMDLINE, Finding, Inputs, Judge, Rule, Typed, read, rule, settled};

const RCU: &str = "Linux, admin-guide/kernel-parameters; admin-guide/kernel-per-CPU-kthreads";

/// The words before the list of CPUs in the kernel's log.
const OFFLOADED: &str = "Offload RCU callbacks from CPUs:";

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "RCU's callbacks run in threads that other CPUs can have, rather than in the \
              softirq of the loop's CPU.",
        cost: "A little more work on the other CPUs.",
        verified: "the kernel log (Offload RCU callbacks)",
        source: RCU,
        ..rule("rcu.nocbs", "rcu_nocbs", 5, Judge::One(nocbs))
    },
    Rule {
        why: "The threads look for callbacks themselves, so that the loop's CPU need not wake \
              them.",
        cost: "Work on the other CPUs all the time.",
        source: RCU,
        verified: "the kernel log (Offload RCU callbacks), nohz_full, else the list of rcu_nocbs",
        ..rule("rcu.nocb_poll", "rcu_nocb_poll", 2, Judge::One(nocb_poll))
    },
    Rule {
        why: "RCU's threads above the loop preempt it; below a loop that never sleeps they starve, \
              until memory runs out.",
        verified: "/sys/module/rcutree/parameters/kthread_prio",
        source: RCU,
        ..rule("rcu.kthread_prio", "rcutree.kthread_prio", 3, Judge::One(kthread_prio))
    },
    Rule {
        since: Some((6, 12)),
        why: "RCU waits before it disturbs a CPU whose tick is stopped.",
        cost: "Grace periods take longer.",
        verified: "/sys/module/rcutree/parameters/nohz_full_patience_delay",
        source: RCU,
        ..rule("rcu.patience", "rcutree.nohz_full_patience_delay", 2, Judge::One(patience))
    },
    Rule {
        why: "Expedited grace periods interrupt every CPU: fast for whoever waits, a stall for \
              the loop.",
        verified: "/sys/kernel/rcu_expedited",
        source: RCU,
        ..rule("rcu.expedited", "rcu_expedited", 5, Judge::One(expedited))
    },
    Rule {
        why: "At boot and later, expedited grace periods interrupt every CPU.",
        source: RCU,
        ..rule(
            "rcu.expedited_parameter",
            "rcupdate.rcu_expedited",
            5,
            Judge::One(expedited_parameter),
        )
    },
    Rule {
        why: "Where expedited grace periods are allowed, any driver or tool may interrupt every \
              CPU; PREEMPT_RT forbids them after boot.",
        cost: "Changing network or tracing settings takes longer.",
        verified: "/sys/kernel/rcu_normal",
        source: RCU,
        ..rule("rcu.normal", "rcu_normal", 4, Judge::One(normal))
    },
    Rule {
        why: "Once the machine is up, grace periods are no longer expedited, which is what \
              rcu_normal sets at run time.",
        cost: "Changing network or tracing settings takes longer.",
        verified: "/sys/kernel/rcu_normal",
        source: RCU,
        ..rule(
            "rcu.normal_after_boot",
            "rcupdate.rcu_normal_after_boot",
            3,
            Judge::One(normal_after_boot),
        )
    },
];

fn nocbs(inputs: &Inputs<'_>) -> Finding {
    settled(judged_nocbs(inputs))
}

fn judged_nocbs(inputs: &Inputs<'_>) -> Result<Finding, Finding> {
    let full = inputs.facts.isolation.nohz_full_cpus.value().cloned().unwrap_or_default();
    let isolated = inputs.facts.isolation.isolated();
    let param = inputs.typed("rcu_nocbs").or(|| {
        let wanted = inputs.cpus.intersection(&isolated).difference(&full);
        match inputs.settings.is_built("RCU_NOCB_CPU") {
            _ if wanted.is_empty() => Finding::not_applicable("not set", CMDLINE),
            Some(false) => Finding::not_applicable(
                "the kernel is built without CONFIG_RCU_NOCB_CPU",
                inputs.settings.options.origin(),
            ),
            _ if inputs.settings.is_built("RCU_NOCB_CPU_DEFAULT_ALL") == Some(true) => {
                Finding::not_applicable("all CPUs by default", inputs.settings.options.origin())
            }
            _ => Finding::needs_reboot("not set", CMDLINE)
                .boot("rcu_nocbs", Some(wanted.to_string())),
        }
    })?;
    let shown = param.to_string();
    let nothing =
        |why: String| Finding::no_effect(shown.clone(), CMDLINE).note(why).remove("rcu_nocbs");
    if inputs.settings.is_built("RCU_NOCB_CPU") == Some(false) {
        return Err(nothing("The kernel is built without CONFIG_RCU_NOCB_CPU.".to_owned()));
    }
    let Some(value) = param.value.as_deref() else {
        return Err(nothing(
            "Without a list no CPU is offloaded at boot; CPUs can be switched later.".to_owned(),
        ));
    };
    // kernel/rcu/tree_nocb.h, rcu_nocb_setup: "bad CPU range, all CPUs set".
    let typed = inputs.list(value).map_err(|error| {
        let finding = Finding::conflict(shown.clone(), CMDLINE).note(format!(
            "The kernel does not take the list ({error}), and offloads all CPUs in its place."
        ));
        let wanted = isolated.difference(&full);
        match wanted.is_empty() {
            true => finding.remove("rcu_nocbs"),
            false => finding.boot("rcu_nocbs", Some(wanted.to_string())),
        }
    })?;
    if !full.is_empty() && typed.difference(&full).is_empty() {
        return Err(nothing(format!("nohz_full={full} offloads the same CPUs already.")));
    }
    let online = inputs.facts.cpu.online_cpus.value().cloned().unwrap_or_default();
    let housekeeping = typed.intersection(&online).difference(&isolated).difference(&full);
    if !isolated.is_empty() && !housekeeping.is_empty() {
        return Ok(Finding::conflict(format!("{shown}; isolated: {isolated}"), CMDLINE)
            .note(format!("CPU {housekeeping} is offloaded and not isolated."))
            .boot("rcu_nocbs", Some(isolated.to_string())));
    }
    let (log, origin) = read(&inputs.settings.kernel_log)?;
    match log.after(OFFLOADED) {
        Some("(none).") if log.complete => Err(nothing("The kernel offloads none.".to_owned())),
        Some(cpus) => Ok(Finding::good(format!("{shown}; offloaded: {cpus}"), origin)),
        None if log.complete => Err(nothing("The kernel log names no such CPU.".to_owned())),
        None => Err(Finding::unknown(shown.clone(), origin)
            .note("The kernel log does not reach back to the start of the kernel.")),
    }
}

fn nocb_poll(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("rcu_nocb_poll").or_absent().map(|param| {
        let nothing = |why: &str| {
            Finding::no_effect(param.to_string(), CMDLINE).note(why).remove("rcu_nocb_poll")
        };
        if inputs.settings.is_built("RCU_NOCB_CPU") == Some(false) {
            return nothing("The kernel is built without CONFIG_RCU_NOCB_CPU.");
        }
        match offloaded(inputs) {
            Some(false) => nothing("No CPU's callbacks are offloaded."),
            Some(true) => Finding::good(param.to_string(), CMDLINE),
            None => Finding::unknown(param.to_string(), inputs.settings.kernel_log.origin())
                .note("Whether callbacks of any CPU are offloaded is not known."),
        }
    });
    settled(judged)
}

/// Returns true where any CPU's callbacks are offloaded: by the kernel's log, where it has its
/// start, else by what the kernel makes of its parameters.
fn offloaded(inputs: &Inputs<'_>) -> Option<bool> {
    let full = inputs.facts.isolation.nohz_full_cpus.value();
    if full.is_some_and(|cpus| !cpus.is_empty()) {
        return Some(true);
    }
    let log = inputs.settings.kernel_log.value();
    match log.map(|log| (log.after(OFFLOADED), log.complete)) {
        Some((Some(cpus), _)) => return Some(cpus != "(none)."),
        Some((None, true)) => return Some(false),
        _ => {}
    }
    let by_default = inputs.settings.is_built("RCU_NOCB_CPU_DEFAULT_ALL");
    match inputs.typed("rcu_nocbs") {
        Typed::Unknown(_) => None,
        Typed::No => by_default,
        // A list that the kernel does not take stands for all CPUs.
        Typed::Yes(param) => {
            let list = inputs.list(param.value.as_deref().unwrap_or_default());
            Some(list.map_or(true, |cpus| !cpus.is_empty()))
        }
    }
}

fn kthread_prio(inputs: &Inputs<'_>) -> Finding {
    let judged =
        inputs.value("rcutree.kthread_prio").map(|(value, origin)| match value.parse::<u32>() {
            Ok(priority @ 50..) => Finding::needs_reboot(format!("FIFO:{priority}"), origin)
                .note("That is as urgent as interrupt threads, or more.")
                .boot("rcutree.kthread_prio", Some("11".to_owned())),
            Ok(priority) => Finding::good(format!("{priority}"), origin),
            Err(_) => Finding::unknown(value, origin),
        });
    settled(judged)
}

fn patience(inputs: &Inputs<'_>) -> Finding {
    let full = inputs.facts.isolation.nohz_full_cpus.value().cloned().unwrap_or_default();
    let judged = inputs.value("rcutree.nohz_full_patience_delay").map(|(value, origin)| {
        let typed = matches!(inputs.typed("rcutree.nohz_full_patience_delay"), Typed::Yes(_));
        match (value, full.is_empty()) {
            (_, true) if typed => Finding::no_effect(value, origin)
                .note("No CPU has its tick stopped.")
                .remove("rcutree.nohz_full_patience_delay"),
            (_, true) => Finding::not_applicable("no CPU has its tick stopped", origin),
            ("0", false) => Finding::needs_reboot("0", origin)
                .boot("rcutree.nohz_full_patience_delay", Some("1000".to_owned())),
            _ => Finding::good(format!("{value} ms"), origin),
        }
    });
    settled(judged)
}

fn expedited(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("rcu_expedited").map(|(value, origin)| match value {
        "0" => Finding::good("0", origin),
        _ => Finding::improve(value, origin).write("/sys/kernel/rcu_expedited", "0"),
    });
    settled(judged)
}

fn expedited_parameter(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("rcupdate.rcu_expedited").or_good().map(|param| {
        if param.value.as_deref() == Some("0") {
            return Finding::good(param.to_string(), CMDLINE);
        }
        Finding::conflict(param.to_string(), CMDLINE)
            .note("It is copied from guides for throughput; it makes a real-time loop worse.")
            .remove("rcupdate.rcu_expedited")
    });
    settled(judged)
}

fn normal(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("rcu_normal").map(|(value, origin)| match value {
        "0" => Finding::improve("0", origin).write("/sys/kernel/rcu_normal", "1"),
        _ => Finding::good(value, origin),
    });
    settled(judged)
}

fn normal_after_boot(inputs: &Inputs<'_>) -> Finding {
    let name = "rcupdate.rcu_normal_after_boot";
    let judged = inputs.typed(name).or_absent().and_then(|param| {
        let nothing = |why| Finding::no_effect(param.to_string(), CMDLINE).note(why).remove(name);
        match (param.value.as_deref(), inputs.is_rt()) {
            (_, Some(true)) => {
                return Err(nothing("PREEMPT_RT does so, and has no such parameter."));
            }
            (Some("0"), Some(false)) => return Err(nothing("It is the default.")),
            _ => {}
        }
        let (value, origin) = inputs.value("rcu_normal")?;
        let found = format!("{param}; rcu_normal: {value}");
        Ok(match (value, inputs.is_rt()) {
            (_, None) => Finding::unknown(found, origin),
            ("0", _) => Finding::no_effect(found, origin).note("Something changed it since."),
            _ => Finding::good(found, origin),
        })
    });
    settled(judged)
}
