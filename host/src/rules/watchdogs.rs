//! Rules about periodic checks that run on every CPU.

use super::{CMDLINE, Finding, Inputs, Judge, Rule, Typed, rule, settled};

const SYSCTL: &str = "Linux, admin-guide/sysctl/kernel; admin-guide/lockup-watchdogs";

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "The detector of hard lockups interrupts each CPU by a non-maskable interrupt from \
              time to time, and occupies a performance counter.",
        cost: "A CPU that hangs with interrupts off is no longer reported.",
        verified: "/proc/sys/kernel/nmi_watchdog",
        source: SYSCTL,
        ..rule("watchdogs.nmi", "kernel.nmi_watchdog", 3, Judge::One(nmi))
    },
    Rule {
        why: "The detector of soft lockups runs a thread of the highest priority on each of these \
              CPUs every few seconds.",
        cost: "A CPU that hangs in the kernel is no longer reported.",
        verified: "/proc/sys/kernel/watchdog_cpumask",
        source: SYSCTL,
        ..rule("watchdogs.cpumask", "kernel.watchdog_cpumask", 4, Judge::One(cpumask))
    },
    Rule {
        why: "It switches both detectors off at boot.",
        cost: "CPUs that hang are no longer reported.",
        verified: "/proc/sys/kernel/watchdog",
        source: SYSCTL,
        ..rule("watchdogs.nowatchdog", "nowatchdog", 2, Judge::One(nowatchdog))
    },
    Rule {
        why: "It switches the detector of soft lockups off at boot, and leaves that of hard ones.",
        cost: "A CPU that hangs in the kernel is no longer reported.",
        verified: "/proc/sys/kernel/soft_watchdog",
        source: SYSCTL,
        ..rule("watchdogs.nosoftlockup", "nosoftlockup", 2, Judge::One(nosoftlockup))
    },
    Rule {
        why: "It switches the detector of hard lockups off at boot, or on.",
        cost: "A CPU that hangs with interrupts off is no longer reported.",
        verified: "/proc/sys/kernel/nmi_watchdog",
        source: SYSCTL,
        ..rule("watchdogs.nmi_parameter", "nmi_watchdog", 2, Judge::One(nmi_parameter))
    },
    Rule {
        why: "Every five minutes a timer on each CPU looks for corrected memory errors.",
        cost: "Corrected errors are no longer counted; others still are.",
        verified: "/sys/devices/system/machinecheck/machinecheck0/ignore_ce",
        source: "Linux, arch/x86/x86_64/machinecheck",
        ..rule("watchdogs.machine_check", "machinecheck/ignore_ce", 1, Judge::One(machine_check))
    },
];

fn nmi(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("kernel.nmi_watchdog").map(|(value, origin)| match value {
        "0" => Finding::good("0", origin),
        _ => Finding::improve(value, origin).write("/proc/sys/kernel/nmi_watchdog", "0"),
    });
    settled(judged)
}

fn cpumask(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("kernel.watchdog_cpumask").and_then(|(value, origin)| {
        let (on, _) = inputs.value("kernel.watchdog")?;
        if on == "0" {
            return Ok(Finding::good("the detectors are off", origin));
        }
        let cpus = inputs.list(value).map_err(|_| Finding::unknown(value, origin))?;
        let others = inputs.others();
        if cpus.intersection(inputs.cpus).is_empty() {
            return Ok(Finding::good(format!("CPU {cpus}"), origin));
        }
        if others.is_empty() {
            return Err(Finding::not_applicable("there is no other CPU", origin));
        }
        Ok(Finding::improve(format!("CPU {cpus}"), origin)
            .write("/proc/sys/kernel/watchdog_cpumask", others.to_string()))
    });
    settled(judged)
}

fn nowatchdog(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("nowatchdog").or_absent().and_then(|param| {
        let (on, origin) = inputs.value("kernel.watchdog")?;
        let found = format!("{param}; kernel.watchdog: {on}");
        Ok(match on {
            "0" => Finding::good(found, origin),
            _ => Finding::no_effect(found, origin).note("Something switched them on again."),
        })
    });
    settled(judged)
}

fn nosoftlockup(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("nosoftlockup").or_absent().and_then(|param| {
        if matches!(inputs.typed("nowatchdog"), Typed::Yes(_)) {
            return Err(Finding::no_effect(param.to_string(), CMDLINE)
                .note("nowatchdog switches both detectors off.")
                .remove("nosoftlockup"));
        }
        let (on, origin) = inputs.value("kernel.soft_watchdog")?;
        let found = format!("{param}; kernel.soft_watchdog: {on}");
        Ok(match on {
            "0" => Finding::good(found, origin),
            _ => Finding::no_effect(found, origin).note("Something switched it on again."),
        })
    });
    settled(judged)
}

fn nmi_parameter(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("nmi_watchdog").or_absent().and_then(|last| {
        let param = inputs.joined("nmi_watchdog").unwrap_or_else(|| last.clone());
        // Beside it may stand what becomes of a machine that hangs: nmi_watchdog=panic,0.
        let mut words = param.value.as_deref().unwrap_or_default().rsplit(',');
        let value = words.find(|word| matches!(*word, "0" | "1"));
        let (now, origin) = inputs.value("kernel.nmi_watchdog")?;
        let found = format!("{param}; kernel.nmi_watchdog: {now}");
        Ok(match (value, now) {
            (Some("0"), "0") => Finding::good(found, origin),
            (Some("0"), _) => {
                Finding::no_effect(found, origin).note("Something switched it on again.")
            }
            (_, "0") => Finding::no_effect(found, origin).note("The detector is off."),
            _ => Finding::needs_reboot(found, origin)
                .note("It asks for the detector.")
                .boot("nmi_watchdog", Some("0".to_owned())),
        })
    });
    settled(judged)
}

fn machine_check(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("machinecheck/ignore_ce").map(|(value, origin)| match value {
        "0" => Finding::improve("0", origin)
            .write("/sys/devices/system/machinecheck/machinecheck0/ignore_ce", "1"),
        _ => Finding::good(value, origin),
    });
    settled(judged)
}
