//! Rules about idle states: how deep CPUs sleep, and parameters that do not do what they seem to.

use super::{CMDLINE, Finding, Inputs, Judge, Rule, Typed, Workload, read, rule, settled};

const CPUIDLE: &str = "Linux, admin-guide/pm/cpuidle";

/// An idle state that takes longer to leave, in microseconds, is one that a loop notices.
const DEEP_US: u64 = 10;

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "Leaving a deep idle state takes from 10 µs to 1 ms, at each release of a loop that \
              sleeps. This forbids them on the loop's CPU alone, without a reboot.",
        cost: "Heat, on these CPUs.",
        verified: "cpu*/power/pm_qos_resume_latency_us and the exit latencies of the states",
        source: CPUIDLE,
        ..rule("idle.resume_latency", "pm_qos_resume_latency_us", 8, Judge::One(resume_latency))
    },
    Rule {
        why: "cyclictest and punctual forbid deep idle states while they run, by holding this \
              file open; an application that does not hold it is later than what they measured.",
        cost: "Heat, on all CPUs, while the file is open.",
        verified: "the number that the device gives: the strictest request now",
        source: "Linux, power/pm_qos_interface",
        ..rule("idle.cpu_dma_latency", "cpu_dma_latency", 4, Judge::One(cpu_dma_latency))
    },
    Rule {
        why: "idle=poll forbids all idle states on all CPUs.",
        cost: "Heat; no turbo; on SMT the sibling is slowed; a virtual machine wastes its host's \
               time and may get less of it.",
        verified: "cpuidle/current_driver",
        ..rule("idle.idle", "idle", 5, Judge::One(idle))
    },
    Rule {
        why: "0 does not forbid idle states: it switches the driver intel_idle off, and acpi_idle \
              takes over with deep states of its own.",
        cost: "Heat, on all CPUs.",
        verified: "cpuidle/current_driver",
        ..rule("idle.intel_idle", "intel_idle.max_cstate", 5, Judge::One(intel_idle))
    },
    Rule {
        why: "It limits acpi_idle; intel_idle does not look at it. 0 is the same as 1.",
        cost: "Heat, on all CPUs.",
        verified: "cpuidle/current_driver",
        ..rule("idle.processor", "processor.max_cstate", 4, Judge::One(processor))
    },
    Rule {
        why: "Without cpuidle the processor's default idle state is used, which some users \
              measured to be worse; a per-CPU limit does what is wanted.",
        cost: "Heat, on all CPUs.",
        verified: "/sys/module/cpuidle/parameters/off",
        source: "Linux, admin-guide/kernel-parameters; github.com/LinuxCNC/linuxcnc issue 4199",
        ..rule("idle.cpuidle_off", "cpuidle.off", 3, Judge::One(cpuidle_off))
    },
];

fn resume_latency(inputs: &Inputs<'_>) -> Finding {
    let states = match read(&inputs.facts.idle.idle_states) {
        Ok((states, _)) => states,
        Err(finding) => return finding,
    };
    let deep: Vec<_> =
        states.iter().filter(|state| state.exit_us > DEEP_US && !state.disabled).collect();
    let judged = read(&inputs.settings.per_cpu.resume_latency).map(|(latencies, origin)| {
        if deep.is_empty() {
            return Finding::good(
                "no deep idle state is in use",
                inputs.facts.idle.idle_states.origin(),
            );
        }
        // 0 is "no limit", "n/a" is "no latency at all".
        let limited = |cpu: u32| match latencies.get(&cpu).map(String::as_str) {
            Some("n/a") => true,
            Some(us) => us.parse::<u64>().is_ok_and(|us| us > 0 && us <= DEEP_US),
            None => false,
        };
        let open = inputs.cpus.iter().filter(|cpu| !limited(*cpu)).collect::<crate::CpuList>();
        if open.is_empty() {
            return Finding::good(format!("CPU {} is limited", inputs.cpus), origin);
        }
        let names = deep.iter().map(|s| format!("{} ({} µs)", s.name, s.exit_us));
        let names = names.collect::<Vec<_>>().join(", ");
        let write = |finding: Finding, cpu: u32| {
            let at = format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
            finding.write(at, "n/a")
        };
        open.iter().fold(Finding::improve(format!("CPU {open} may enter {names}"), origin), write)
    });
    settled(judged)
}

fn cpu_dma_latency(inputs: &Inputs<'_>) -> Finding {
    let states = inputs.facts.idle.idle_states.value();
    let deep =
        states.is_some_and(|states| states.iter().any(|s| s.exit_us > DEEP_US && !s.disabled));
    let judged =
        inputs.value("cpu_dma_latency").map(|(value, origin)| match value.parse::<u64>() {
            Ok(us) if us <= DEEP_US => Finding::good(format!("{us} µs is held"), origin),
            Ok(_) if !deep => Finding::not_applicable("there are no deep idle states", origin),
            Ok(_) => Finding::improve("no process holds it", origin)
                .note("The application has to hold it, or its CPUs have to be limited for good."),
            Err(_) => Finding::unknown(value, origin),
        });
    settled(judged)
}

fn idle(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("idle").or_absent().and_then(|param| {
        let shown = param.to_string();
        let nothing =
            |why: &str| Finding::no_effect(shown.clone(), CMDLINE).note(why).remove("idle");
        let conflict =
            |why: &str| Finding::conflict(shown.clone(), CMDLINE).note(why).remove("idle");
        match (param.value.as_deref(), inputs.is_x86()) {
            (Some("poll" | "halt" | "nomwait"), Some(true)) => {}
            (Some("poll" | "halt" | "nomwait"), Some(false)) => {
                return Err(nothing("Only x86 has this parameter."));
            }
            (Some("poll" | "halt" | "nomwait"), None) => {
                return Err(Finding::unknown(shown.clone(), "/proc/sys/kernel/arch"));
            }
            (Some("mwait"), _) => return Err(nothing("The kernel no longer has 'mwait'.")),
            _ => return Err(nothing("The kernel knows no such value.")),
        }
        if param.value.as_deref() != Some("poll") {
            return Ok(Finding::good(shown.clone(), CMDLINE));
        }
        if inputs.is_guest() == Some(true) {
            return Err(conflict("In a virtual machine it spins away the host's time."));
        }
        if inputs.facts.power.power_source.is_known() && has_battery(inputs) {
            return Err(conflict("This machine runs on a battery."));
        }
        if inputs.facts.cpu.smt.value() == Some(&true) {
            return Err(conflict("SMT is on: each idle thread slows its sibling."));
        }
        if inputs.workload.is_some_and(|workload| !Workload::spins(workload)) {
            return Ok(Finding::needs_reboot(shown.clone(), CMDLINE)
                .note("A limit for the loop's CPU alone gives the same with less heat.")
                .remove("idle"));
        }
        Ok(Finding::good(shown.clone(), CMDLINE))
    });
    settled(judged)
}

fn has_battery(inputs: &Inputs<'_>) -> bool {
    inputs.facts.power.power_source.value() == Some(&crate::facts::PowerSource::Battery)
}

fn intel_idle(inputs: &Inputs<'_>) -> Finding {
    let name = "intel_idle.max_cstate";
    let judged = inputs.typed(name).or_absent().and_then(|param| {
        let shown = param.to_string();
        let polls =
            matches!(inputs.typed("idle"), Typed::Yes(p) if p.value.as_deref() == Some("poll"));
        if polls {
            return Err(Finding::conflict(format!("{shown} with idle=poll"), CMDLINE)
                .note("With idle=poll no driver is used, so the limit decides nothing.")
                .remove(name));
        }
        let driver = &inputs.facts.idle.idle_driver;
        if let Some(why) = driver.why() {
            return Err(Finding::unknown(
                format!("{shown}; driver unreadable: {why}"),
                driver.origin(),
            ));
        }
        let value = param.value.as_deref().and_then(|value| value.parse::<u32>().ok());
        let active = driver.value().map_or("none", String::as_str);
        let found = format!("{shown}; driver: {active}");
        Ok(match (value, active) {
            (Some(0), "acpi_idle") => Finding::conflict(found, driver.origin())
                .note("acpi_idle took over; also set processor.max_cstate, or remove this.")
                .remove(name),
            (Some(0), "none") => Finding::good(found, driver.origin()),
            (Some(_), "intel_idle") => Finding::good(found, driver.origin()),
            _ => Finding::no_effect(found, driver.origin())
                .note("This machine does not use intel_idle.")
                .remove(name),
        })
    });
    settled(judged)
}

fn processor(inputs: &Inputs<'_>) -> Finding {
    let name = "processor.max_cstate";
    let judged = inputs.typed(name).or_absent().and_then(|param| {
        let driver = &inputs.facts.idle.idle_driver;
        if let Some(why) = driver.why() {
            return Err(Finding::unknown(
                format!("{param}; driver unreadable: {why}"),
                driver.origin(),
            ));
        }
        let active = driver.value().map_or("none", String::as_str);
        let found = format!("{param}; driver: {active}");
        Ok(match (active, param.value.as_deref()) {
            ("acpi_idle", Some("0")) => Finding::conflict(found, driver.origin())
                .note("Write 1: 0 means the same and reads as 'none'.")
                .boot(name, Some("1".to_owned())),
            ("acpi_idle", _) => Finding::good(found, driver.origin()),
            _ => Finding::no_effect(found, driver.origin())
                .note("Only acpi_idle looks at it.")
                .remove(name),
        })
    });
    settled(judged)
}

fn cpuidle_off(inputs: &Inputs<'_>) -> Finding {
    switched_off(inputs, "cpuidle.off")
}

/// `cpuidle.off` and `cpufreq.off`: documented with `=1`, and verified by what the kernel shows.
pub(super) fn switched_off(inputs: &Inputs<'_>, name: &str) -> Finding {
    let judged = inputs.typed(name).or_absent().and_then(|param| {
        let (value, origin) = inputs.value(name).map_err(|missing| match missing.verdict {
            super::RuleVerdict::NotApplicable => {
                Finding::no_effect(format!("{param}; the kernel shows no such parameter"), CMDLINE)
                    .remove(name)
            }
            _ => missing,
        })?;
        let found = format!("{param}; the kernel shows {value}");
        let typed = !matches!(param.value.as_deref(), Some("0" | "n" | "N"));
        let on = value == "1" || value == "Y";
        Ok(match (typed, on) {
            (true, false) => Finding::no_effect(found, origin)
                .note("The documented form has =1; a limit for the loop's CPU alone is better.")
                .remove(name),
            (true, true) => Finding::needs_reboot(found, origin)
                .note("It works; a limit for the loop's CPU alone is better.")
                .remove(name),
            (false, _) => Finding::good(found, origin),
        })
    });
    settled(judged)
}
