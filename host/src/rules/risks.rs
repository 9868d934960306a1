//! Rules about what is dangerous, and about what is no setting: the kernel's build, tools.

use super::{CMDLINE, Finding, Inputs, Judge, Rule, RuleVerdict, read, rule, settled};
use crate::cmdline::Param;
use crate::facts::counts_smi;

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "Switching mitigations off makes system calls and switches of context cheaper; a \
              loop of few system calls gains next to nothing.",
        cost: "Security: any program can read the memory of others.",
        verified: "/proc/cmdline and /sys/devices/system/cpu/vulnerabilities",
        ..rule("risks.mitigations", "mitigations", 3, Judge::One(mitigations))
    },
    Rule {
        why: "It ends the check for memory errors with its timer of five minutes.",
        cost: "Uncorrected memory errors go unseen and corrupt data.",
        ..rule("risks.mce", "mce", 3, Judge::One(mce))
    },
    Rule {
        why: "Auditing adds to each system call where rules are loaded; without rules it costs \
              next to nothing.",
        cost: "What a security policy may demand.",
        ..rule("risks.audit", "audit", 1, Judge::One(audit))
    },
    Rule {
        why: "A kernel built to find its own mistakes checks each lock and each allocation, with \
              interrupts off for milliseconds.",
        verified: "CONFIG_PROVE_LOCKING, KASAN, DEBUG_OBJECTS, DEBUG_ATOMIC_SLEEP",
        source: "Linux, core-api/real-time",
        ..rule("risks.debug_kernel", "CONFIG_PROVE_LOCKING", 8, Judge::One(debug_kernel))
    },
    Rule {
        why: "A system management interrupt takes a CPU, often all of them, to the firmware for \
              tens of microseconds to milliseconds, and no setting of the kernel prevents it. \
              'punctual measure noise' shows how long they last.",
        cost: "What the firmware does by them: legacy USB, fans, watching over memory errors.",
        verified: "MSR_SMI_COUNT (0x34) of processors of Intel, twice, a second apart, and \
                   /proc/uptime",
        source: "Intel SDM volume 4; Linux, trace/hwlat_detector",
        ..rule("risks.smi", "SMI", 7, Judge::One(smi))
    },
    Rule {
        why: "In a virtual machine the tracers hwlat and osnoise report time that the host took as \
              hardware latency: it is no system management interrupt.",
        verified: "the processor's flag 'hypervisor', DMI, the device tree; current_tracer",
        source: "Linux, trace/osnoise-tracer; trace/hwlat_detector",
        ..rule("risks.hwlat_in_guest", "current_tracer", 1, Judge::One(tracer_in_guest))
    },
    Rule {
        why: "The tracers timerlat and osnoise tell what delayed a loop.",
        verified: "CONFIG_TIMERLAT_TRACER and CONFIG_OSNOISE_TRACER",
        source: "Linux, trace/timerlat-tracer",
        ..rule("risks.tracers", "CONFIG_TIMERLAT_TRACER", 0, Judge::One(tracers))
    },
];

fn mitigations(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("mitigations").or_good().map(|param| {
        let off = param.value.as_deref().is_some_and(|value| value.split(',').any(|v| v == "off"));
        if !off {
            return Finding::good(param.to_string(), CMDLINE);
        }
        let state = inputs.settings.value("vulnerabilities/spectre_v2").value();
        let state = state.map(|text| format!("; spectre_v2: {text}")).unwrap_or_default();
        Finding::conflict(format!("{param}{state}"), CMDLINE)
            .note("It is never a default here.")
            .remove("mitigations")
    });
    settled(judged)
}

fn mce(inputs: &Inputs<'_>) -> Finding {
    let word = |param: &Param| match param.value.as_deref() {
        _ if inputs.is_x86() == Some(false) => Finding::no_effect(param.to_string(), CMDLINE)
            .note("Only x86 has this parameter.")
            .remove("mce"),
        Some("off") => Finding::conflict(param.to_string(), CMDLINE)
            .note("machinecheck/ignore_ce ends the timer alone, at run time.")
            .remove("mce"),
        Some("ignore_ce") => Finding::needs_reboot(param.to_string(), CMDLINE)
            .note("machinecheck/ignore_ce does the same at run time.")
            .remove("mce"),
        _ => Finding::good(param.to_string(), CMDLINE),
    };
    settled(inputs.typed("mce").or_good().map(|last| inputs.each_time(last, word)))
}

fn audit(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("audit").or_good().map(|param| match param.value.as_deref() {
        Some("0" | "off") => Finding::needs_reboot(param.to_string(), CMDLINE)
            .note("Measure whether it gains anything.")
            .remove("audit"),
        _ => Finding::good(param.to_string(), CMDLINE),
    });
    settled(judged)
}

fn debug_kernel(inputs: &Inputs<'_>) -> Finding {
    let origin = inputs.settings.options.origin();
    let names = ["PROVE_LOCKING", "KASAN", "DEBUG_OBJECTS", "DEBUG_ATOMIC_SLEEP"];
    let states = names.map(|name| (name, inputs.settings.is_built(name)));
    if states.iter().any(|(_, state)| state.is_none()) {
        return Finding::unknown("the configuration of the kernel is not readable", origin);
    }
    let on: Vec<&str> = states.iter().filter(|s| s.1 == Some(true)).map(|s| s.0).collect();
    match on.is_empty() {
        true => Finding::good("none is built in", origin),
        false => Finding::needs_reboot(format!("built in: {}", on.join(", ")), origin)
            .note("Use a kernel without them."),
    }
}

/// From so many a minute on they are no rare event.
const SMI_A_MINUTE: f64 = 1.0;
/// In an uptime shorter than this, those of the start would count for many, in s.
const SMI_UPTIME_S: f64 = 3_600.0;

fn smi(inputs: &Inputs<'_>) -> Finding {
    let fact = &inputs.facts.power.smi_count;
    let judged = match read(fact) {
        Err(missing) if missing.verdict == RuleVerdict::NotApplicable => {
            if counts_smi(inputs.facts) {
                Finding::unknown("no such file", fact.origin())
                    .note("Type: sudo modprobe msr, and judge again as root.")
            } else {
                Finding::not_applicable(
                    "not counted: no processor of Intel, or a guest",
                    missing.origin,
                )
            }
        }
        Err(missing) => missing,
        Ok((count, origin)) => smi_of(inputs, *count, origin),
    };
    settled(Ok(judged))
}

fn smi_of(inputs: &Inputs<'_>, count: u64, origin: &str) -> Finding {
    let why = "Switch legacy USB, fan control and the like off in the firmware, or ask its maker.";
    let uptime_s = inputs.settings.uptime.value();
    let uptime_s = uptime_s.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let rate = uptime_s.filter(|s| *s >= SMI_UPTIME_S).map(|s| count as f64 * 60.0 / s);
    match (inputs.settings.smi_watched, rate) {
        _ if count == 0 => Finding::good("none since the processor was reset", origin),
        (Some(watched @ 1..), _) => {
            let found = format!("{watched} while it was watched, {count} since the reset");
            Finding::needs_reboot(found, origin).note(why)
        }
        (_, Some(rate)) if rate >= SMI_A_MINUTE => {
            let found = format!("{count} since the reset, {rate:.0} a minute of uptime");
            Finding::needs_reboot(found, origin).note(why)
        }
        (_, Some(rate)) => {
            let found = format!("{count} since the reset, {:.1} an hour at most", rate * 60.0);
            Finding::good(found, origin)
        }
        (Some(_), None) => Finding::good(format!("{count} since the reset, none watched"), origin),
        (None, None) => Finding::unknown(format!("{count} since the reset"), origin)
            .note("Over how long is not known: the machine runs for less than an hour."),
    }
}

fn tracer_in_guest(inputs: &Inputs<'_>) -> Finding {
    let fact = &inputs.facts.virtualization.virtualization;
    match inputs.is_guest() {
        None => Finding::unknown("whether there is a hypervisor is not known", fact.origin()),
        Some(false) => Finding::good("no hypervisor", fact.origin()),
        Some(true) => settled(inputs.value("current_tracer").map(|(tracer, origin)| {
            if !["hwlat", "osnoise"].contains(&tracer) {
                return Finding::good(tracer, origin);
            }
            let name = fact.value().map_or("", String::as_str);
            Finding::no_effect(format!("{tracer}, in a virtual machine ({name})"), origin)
                .note("Use 'punctual measure noise', which tells steal apart.")
        })),
    }
}

fn tracers(inputs: &Inputs<'_>) -> Finding {
    let origin = inputs.settings.options.origin();
    let built = ["TIMERLAT_TRACER", "OSNOISE_TRACER"].map(|name| inputs.settings.is_built(name));
    match built {
        [None, _] | [_, None] => {
            Finding::unknown("the configuration of the kernel is not readable", origin)
        }
        [Some(true), Some(true)] => Finding::good("built in", origin),
        _ => Finding::needs_reboot("not built in", origin)
            .note("Another kernel may have them; they do not make a loop earlier."),
    }
}
