//! Rules about frequency: governor, preference, drivers, power supply, links.

use super::idle::switched_off;
use super::{CMDLINE, Finding, Inputs, Judge, Rule, RuleVerdict, read, rule, settled};
use crate::cmdline::Param;
use crate::facts::PowerSource;
use crate::settings::path_of;
use std::collections::BTreeMap;

const CPUFREQ: &str = "Linux, admin-guide/pm/cpufreq";

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "A CPU that slowed down while it was idle wakes a loop at a low frequency; changing \
              it takes time on some processors.",
        cost: "Heat.",
        verified: "cpufreq/scaling_governor of each CPU",
        source: CPUFREQ,
        ..rule("frequency.governor", "scaling_governor", 6, Judge::One(governor))
    },
    Rule {
        why: "It tells the processor whether to save energy or to run fast.",
        cost: "Heat.",
        verified: "cpufreq/energy_performance_preference of each CPU",
        source: "Linux, admin-guide/pm/intel_pstate; amd-pstate",
        ..rule("frequency.preference", "energy_performance_preference", 4, Judge::One(preference))
    },
    Rule {
        why: "It chooses how Intel's driver works; disabled, acpi-cpufreq takes over, often \
              without turbo.",
        verified: "/sys/devices/system/cpu/intel_pstate/status and scaling_driver",
        source: "Linux, admin-guide/pm/intel_pstate",
        ..rule("frequency.intel_pstate", "intel_pstate", 3, Judge::One(intel_pstate))
    },
    Rule {
        why: "It chooses how AMD's driver works; 'active' and 'guided' came after Linux 6.1.",
        verified: "/sys/devices/system/cpu/amd_pstate/status",
        source: "Linux, admin-guide/pm/amd-pstate",
        ..rule("frequency.amd_pstate", "amd_pstate", 3, Judge::One(amd_pstate))
    },
    Rule {
        why: "Without cpufreq the frequency stays what the firmware set, often not the highest.",
        verified: "/sys/module/cpufreq/parameters/off",
        ..rule("frequency.cpufreq_off", "cpufreq.off", 3, Judge::One(cpufreq_off))
    },
    Rule {
        why: "Above its nominal frequency a CPU is as fast as heat and the other CPUs let it be: \
              the time that work takes varies, while most of it gets shorter. Measure it: \
              'punctual measure work' with and without.",
        cost: "Speed.",
        verified: "intel_pstate/no_turbo, else cpufreq/boost",
        source: "Linux, admin-guide/pm/cpufreq (frequency boost support)",
        ..rule("frequency.boost", "boost", 2, Judge::One(boost))
    },
    Rule {
        why: "On a battery, firmware and services save power by slowing CPUs down.",
        verified: "/sys/class/power_supply",
        source: "Linux, ABI/testing/sysfs-class-power",
        ..rule("frequency.battery", "power supply", 4, Judge::One(battery))
    },
    Rule {
        why: "'off' does not switch power management of PCI Express links off: the kernel leaves \
              what the firmware set.",
        verified: "/sys/module/pcie_aspm/parameters/policy",
        source: "Linux 6.12, admin-guide/kernel-parameters (\"Don't touch ASPM configuration at \
                 all\")",
        ..rule("frequency.aspm_off", "pcie_aspm", 3, Judge::One(aspm_off))
    },
    Rule {
        why: "A PCI Express link that sleeps takes microseconds to wake: device input and output \
              of a loop waits for it.",
        cost: "Power.",
        verified: "/sys/module/pcie_aspm/parameters/policy",
        source: "Linux, admin-guide/kernel-parameters",
        ..rule("frequency.aspm_policy", "pcie_aspm.policy", 3, Judge::One(aspm_policy))
    },
    Rule {
        why: "The driver of Intel graphics powers its display engine down and up, which has been \
              seen to stall CPUs for about 1 ms.",
        cost: "Power.",
        verified: "/sys/module/i915/parameters/enable_dc",
        source: "github.com/redhat-performance/tuned issue 719; LinuxCNC issue 4087",
        ..rule("frequency.i915", "i915.enable_dc", 5, Judge::One(i915))
    },
];

/// A setting of each CPU that should be `wanted` on the CPUs of the loop.
fn each_cpu(inputs: &Inputs<'_>, fact: &crate::Fact<BTreeMap<u32, String>>, file: &str) -> Finding {
    let judged = read(fact).map(|(values, origin)| {
        let changed: Vec<(u32, &String)> = inputs
            .cpus
            .iter()
            .filter_map(|cpu| Some((cpu, values.get(&cpu)?)))
            .filter(|(_, value)| *value != "performance")
            .collect();
        let Some((_, first)) = changed.first() else {
            return Finding::good("performance", origin);
        };
        let cpus = changed.iter().map(|(cpu, _)| *cpu).collect::<crate::CpuList>();
        let write = |finding: Finding, cpu: u32| {
            let at = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}");
            finding.write(at, "performance")
        };
        cpus.iter().fold(Finding::improve(format!("CPU {cpus}: {first}"), origin), write)
    });
    settled(judged)
}

fn governor(inputs: &Inputs<'_>) -> Finding {
    each_cpu(inputs, &inputs.settings.per_cpu.governor, "scaling_governor")
}

fn preference(inputs: &Inputs<'_>) -> Finding {
    let fact = &inputs.settings.per_cpu.energy_preference;
    each_cpu(inputs, fact, "energy_performance_preference")
}

fn intel_pstate(inputs: &Inputs<'_>) -> Finding {
    let each = |param: &Param| settled(intel_pstate_word(inputs, param));
    settled(inputs.typed("intel_pstate").or_absent().map(|last| inputs.each_time(last, each)))
}

fn intel_pstate_word(inputs: &Inputs<'_>, param: &Param) -> Result<Finding, Finding> {
    let value = param.value.as_deref().unwrap_or_default();
    let (status, origin) = match inputs.value("intel_pstate/status") {
        Ok(status) => status,
        Err(missing) if missing.verdict == RuleVerdict::Unknown => return Err(missing),
        // Disabled, the driver goes before it shows a status.
        Err(_) => {
            let (driver, origin) = other_driver(inputs, param, "GenuineIntel", "Intel")?;
            let found = format!("{param}; driver: {driver}");
            return Ok(match value {
                "disable" => Finding::needs_reboot(found, origin)
                    .note("The governor 'performance' gives steady frequency with turbo.")
                    .remove("intel_pstate"),
                _ => Finding::no_effect(found, origin),
            });
        }
    };
    let found = format!("{param}; status: {status}");
    Ok(match value {
        "active" | "passive" if status == value => Finding::good(found, origin),
        "no_hwp" | "hwp_only" | "support_acpi_ppc" | "per_cpu_perf_limits" | "force" => {
            Finding::good(found, origin)
        }
        _ => Finding::no_effect(found, origin),
    })
}

fn amd_pstate(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("amd_pstate").or_absent().and_then(|param| {
        let value = param.value.as_deref().unwrap_or_default();
        let nothing = |why: &str| {
            Finding::no_effect(param.to_string(), CMDLINE).note(why).remove("amd_pstate")
        };
        if matches!(value, "active" | "guided") && inputs.kernel_from((6, 3)) == Some(false) {
            return Err(nothing("This kernel has 'passive' and 'disable' only."));
        }
        match inputs.value("amd_pstate/status") {
            Ok((status, origin)) if status == value => {
                Ok(Finding::good(format!("{param}; status: {status}"), origin))
            }
            Ok((status, origin)) => {
                Ok(Finding::no_effect(format!("{param}; status: {status}"), origin))
            }
            Err(missing) if missing.verdict == RuleVerdict::Unknown => Err(missing),
            // Disabled, the driver goes before it shows a status; earlier ones show none.
            Err(_) => {
                let (driver, origin) = other_driver(inputs, param, "AuthenticAMD", "AMD")?;
                let found = format!("{param}; driver: {driver}");
                Ok(match (value, driver) {
                    ("passive", "amd-pstate") => Finding::good(found, origin),
                    ("disable", driver) if !driver.starts_with("amd-pstate") => {
                        Finding::good(found, origin)
                    }
                    _ => Finding::no_effect(found, origin),
                })
            }
        }
    });
    settled(judged)
}

/// The driver that sets frequencies where that of the processor's maker shows no status, or the
/// finding about a parameter of that maker's.
fn other_driver<'a>(
    inputs: &'a Inputs<'_>,
    param: &Param,
    vendor: &str,
    maker: &str,
) -> Result<(&'a str, &'a str), Finding> {
    let found = &inputs.settings.cpu_vendor;
    if let Some(why) = found.why() {
        return Err(Finding::unknown(format!("{param}; unreadable: {why}"), found.origin()));
    }
    if found.value().is_none_or(|found| found != vendor) {
        return Err(Finding::no_effect(param.to_string(), found.origin())
            .note(format!("This machine does not have {maker}'s driver."))
            .remove(&param.name));
    }
    let driver = &inputs.facts.frequency.frequency_driver;
    match driver.value() {
        Some(name) => Ok((name, driver.origin())),
        None => Err(Finding::unknown(format!("{param}; no driver is known"), driver.origin())
            .note("Without one it is not known whether the parameter is the reason.")),
    }
}

fn cpufreq_off(inputs: &Inputs<'_>) -> Finding {
    switched_off(inputs, "cpufreq.off")
}

fn boost(inputs: &Inputs<'_>) -> Finding {
    let judged = read(&inputs.facts.frequency.boost).map(|(permitted, origin)| match permitted {
        false => Finding::good("off", origin),
        true => {
            let off = if origin.ends_with("no_turbo") { "1" } else { "0" };
            Finding::improve("on", origin).write(origin, off)
        }
    });
    settled(judged)
}

fn battery(inputs: &Inputs<'_>) -> Finding {
    let judged = read(&inputs.facts.power.power_source).map(|(source, origin)| match source {
        PowerSource::Mains => Finding::good("mains", origin),
        PowerSource::Battery => Finding::improve("battery", origin).note("Connect the supply."),
    });
    settled(judged)
}

fn aspm_off(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.typed("pcie_aspm").or_good().map(|param| match param.value.as_deref() {
        Some("off") => Finding::no_effect(param.to_string(), CMDLINE)
            .remove("pcie_aspm")
            .boot("pcie_aspm.policy", Some("performance".to_owned())),
        _ => Finding::good(param.to_string(), CMDLINE),
    });
    settled(judged)
}

fn aspm_policy(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("pcie_aspm.policy").map(|(text, origin)| {
        let path = path_of("pcie_aspm.policy").unwrap_or_default();
        match bracketed(text) {
            Some("performance") => Finding::good("performance", origin),
            Some(policy) => Finding::improve(policy, origin).write(path, "performance"),
            None => Finding::unknown(text, origin),
        }
    });
    settled(judged)
}

/// The choice that is active: the word in brackets.
fn bracketed(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

fn i915(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("i915.enable_dc").map(|(value, origin)| match value {
        "0" => Finding::good("0", origin),
        _ => Finding::needs_reboot(value, origin).boot("i915.enable_dc", Some("0".to_owned())),
    });
    settled(judged)
}

#[cfg(test)]
mod tests {
    use crate::rules::RuleVerdict;
    use crate::testing::verdict;

    #[test]
    fn a_driver_that_was_disabled_shows_no_status() {
        let on = |words: &str, vendor: &str, driver: &str, knob: &str| {
            let info = format!("processor\t: 0\nvendor_id\t: {vendor}\n");
            let files = [
                ("/proc/cmdline", words),
                ("/proc/sys/kernel/osrelease", "6.12.0\n"),
                ("/proc/cpuinfo", info.as_str()),
                ("/sys/devices/system/cpu/online", "0-3\n"),
                ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", driver),
            ];
            let judged = verdict(&files, None, knob).unwrap();
            (judged.verdict, judged.changes.len())
        };
        let intel = |words, vendor, driver| on(words, vendor, driver, "intel_pstate");
        let amd = |words, vendor, driver| on(words, vendor, driver, "amd_pstate");
        let (disable, acpi) = ("intel_pstate=disable", "acpi-cpufreq\n");
        assert_eq!(intel(disable, "GenuineIntel", acpi), (RuleVerdict::NeedsReboot, 1));
        assert_eq!(intel(disable, "GenuineIntel", ""), (RuleVerdict::Unknown, 0));
        assert_eq!(intel(disable, "AuthenticAMD", acpi), (RuleVerdict::NoEffect, 1));
        let passive = "intel_pstate=passive";
        assert_eq!(intel(passive, "GenuineIntel", acpi), (RuleVerdict::NoEffect, 0));
        let disable = "amd_pstate=disable";
        assert_eq!(amd(disable, "AuthenticAMD", acpi), (RuleVerdict::Good, 0));
        assert_eq!(amd(disable, "GenuineIntel", acpi), (RuleVerdict::NoEffect, 1));
        let passive = "amd_pstate=passive";
        assert_eq!(amd(passive, "AuthenticAMD", "amd-pstate\n"), (RuleVerdict::Good, 0));
        assert_eq!(amd(passive, "AuthenticAMD", acpi), (RuleVerdict::NoEffect, 0));
    }
}
