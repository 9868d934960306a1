//! Rules about what tells the time.

use super::{CMDLINE, Finding, Inputs, Judge, Rule, read, rule, settled};
use crate::cmdline::Param;

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "Reading hpet or acpi_pm takes about 1 µs and waits for a bus, at each look at the \
              clock; the kernel falls back to them when it finds the TSC unsteady, without a word \
              but in its log.",
        verified: "clocksource0/current_clocksource and available_clocksource",
        source: "Linux, timers/timekeeping; github.com/sozu-proxy/sozu issue 500",
        ..rule("clock.clocksource", "clocksource", 7, Judge::One(clocksource))
    },
    Rule {
        why: "It decides which checks of the TSC stay on: 'nowatchdog' ends the periodic check, \
              'reliable' all of them; 'watchdog' means something else in Linux 7.2 than in 6.12.",
        cost: "A wrong TSC is no longer detected: wrong time.",
        verified: "clocksource0/current_clocksource",
        ..rule("clock.tsc", "tsc", 3, Judge::One(tsc))
    },
    Rule {
        why: "Without high resolution timers, sleeps end at the tick: 1 to 10 ms.",
        verified: "CONFIG_HIGH_RES_TIMERS and highres=",
        source: "Linux, timers/highres",
        ..rule("clock.high_resolution", "highres", 9, Judge::One(high_resolution))
    },
    Rule {
        why: "With nohz=off every CPU has its tick also while it is idle.",
        ..rule("clock.nohz", "nohz", 2, Judge::One(nohz))
    },
];

/// Clock sources whose reading is slow.
const SLOW: &[&str] = &["hpet", "acpi_pm", "jiffies", "pit", "refined-jiffies"];

fn clocksource(inputs: &Inputs<'_>) -> Finding {
    let judged = read(&inputs.facts.clock.clocksource).map(|(name, origin)| {
        if !SLOW.contains(&name.as_str()) {
            return Finding::good(name, origin);
        }
        let none = Vec::new();
        let others = inputs.facts.clock.available_clocksources.value().unwrap_or(&none);
        match others.iter().find(|name| !SLOW.contains(&name.as_str())) {
            Some(better) => Finding::improve(name, origin)
                .write("/sys/devices/system/clocksource/clocksource0/current_clocksource", better),
            None => Finding::needs_reboot(name, origin)
                .note("No other one is available: look for 'TSC' in the kernel log."),
        }
    });
    settled(judged)
}

fn tsc(inputs: &Inputs<'_>) -> Finding {
    let each = |param: &Param| settled(tsc_word(inputs, param));
    settled(inputs.typed("tsc").or_absent().map(|last| inputs.each_time(last, each)))
}

fn tsc_word(inputs: &Inputs<'_>, param: &Param) -> Result<Finding, Finding> {
    let nothing =
        |why: &str| Finding::no_effect(param.to_string(), CMDLINE).note(why).remove("tsc");
    let value = param.value.as_deref().unwrap_or_default();
    if inputs.is_x86() == Some(false) {
        return Err(nothing("Only x86 has this parameter."));
    }
    match value {
        "reliable" | "nowatchdog" | "noirqtime" | "unstable" => {}
        // Not in Linux 6.1, in 6.12.
        "recalibrate" | "watchdog" => {
            match (inputs.kernel_from((6, 2)), inputs.kernel_from((6, 12))) {
                (Some(false), _) => {
                    return Err(nothing("This kernel does not have the value yet."));
                }
                (_, Some(true)) => {}
                _ => return Err(Finding::unknown(param.to_string(), CMDLINE)),
            }
        }
        _ => return Err(nothing("The kernel knows no such value.")),
    }
    let (name, origin) = read(&inputs.facts.clock.clocksource)?;
    let found = format!("{param}; the clock source is {name}");
    Ok(match value {
        _ if name != "tsc" => Finding::no_effect(found, origin),
        "reliable" => Finding::needs_reboot(found, origin)
            .note("'nowatchdog' ends the periodic check and keeps the one at boot.")
            .boot("tsc", Some("nowatchdog".to_owned())),
        _ => Finding::good(found, origin),
    })
}

fn high_resolution(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("highres").or_good();
    if let Ok(param) = judged
        && matches!(param.value.as_deref(), Some("off" | "0" | "n" | "no"))
    {
        return Finding::conflict(param.to_string(), CMDLINE).remove("highres");
    }
    match inputs.settings.is_built("HIGH_RES_TIMERS") {
        Some(true) => Finding::good("built in", inputs.settings.options.origin()),
        Some(false) => Finding::needs_reboot("not built in", inputs.settings.options.origin()),
        None => Finding::unknown(
            "the configuration of the kernel is not readable",
            inputs.settings.options.origin(),
        ),
    }
}

fn nohz(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("nohz").or_good().map(|param| match param.value.as_deref() {
        Some("off" | "0" | "n" | "no") => {
            let finding = Finding::needs_reboot(param.to_string(), CMDLINE).remove("nohz");
            match inputs.facts.isolation.nohz_full_parameter.is_known() {
                true => Finding { verdict: super::RuleVerdict::Conflict, ..finding }
                    .note("nohz_full= needs it."),
                false => finding,
            }
        }
        _ => Finding::no_effect(param.to_string(), CMDLINE)
            .note("It is on by default.")
            .remove("nohz"),
    });
    settled(judged)
}
