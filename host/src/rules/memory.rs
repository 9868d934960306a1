//! Rules about memory: paging, huge pages, what moves or samples pages.

use super::{CMDLINE, Finding, Inputs, Judge, Rule, RuleVerdict, Typed, read, rule, settled};
use crate::cmdline::Param;
use crate::settings::path_of;

const VM: &str = "Linux, admin-guide/sysctl/vm";

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "An IOMMU translates the addresses of devices: each of their transfers is mapped and \
              unmapped by the CPU that starts it, and with 'DMA' its cache is flushed each time. \
              Loops without devices do not see it.",
        cost: "Security: with iommu=pt a device can reach all memory.",
        verified: "/sys/kernel/iommu_groups/0/type, from Linux 5.11 on",
        source: "Linux, ABI/testing/sysfs-kernel-iommu_groups; admin-guide/kernel-parameters",
        ..rule("memory.iommu", "iommu", 1, Judge::Each(iommu))
    },
    Rule {
        why: "A page that was paged out takes milliseconds to come back. What is locked \
              (mlockall) stays; other processes and the kernel's own waits do not.",
        cost: "Without swap, memory that runs out ends processes.",
        verified: "SwapTotal of /proc/meminfo",
        source: VM,
        ..rule("memory.swap", "swap", 3, Judge::One(swap))
    },
    Rule {
        why: "The higher, the sooner pages of processes are paged out.",
        verified: "/proc/sys/vm/swappiness",
        source: VM,
        ..rule("memory.swappiness", "vm.swappiness", 2, Judge::One(swappiness))
    },
    Rule {
        why: "Making huge pages moves memory, stops processes at a page fault and interrupts all \
              CPUs of a process.",
        cost: "Large heaps need more entries of the TLB.",
        verified: "the word in brackets of transparent_hugepage/enabled",
        source: "Linux, admin-guide/mm/transhuge",
        ..rule("memory.huge_pages", "transparent_hugepage", 4, Judge::One(huge_pages))
    },
    Rule {
        why: "The kernel takes pages away for a moment to see who uses them: page faults in the \
              loop.",
        cost: "Memory may stay on a distant node.",
        verified: "/proc/sys/kernel/numa_balancing",
        source: "Linux, admin-guide/sysctl/kernel",
        ..rule("memory.numa_balancing", "kernel.numa_balancing", 4, Judge::One(numa_balancing))
    },
    Rule {
        why: "Merging equal pages makes them read-only: the next write is a page fault.",
        cost: "More memory is used.",
        verified: "/sys/kernel/mm/ksm/run",
        source: "Linux, admin-guide/mm/ksm",
        ..rule("memory.ksm", "ksm/run", 4, Judge::One(ksm))
    },
    Rule {
        why: "Compaction may move locked pages: a page fault in a loop that locked its memory.",
        cost: "Fewer huge pages can be made.",
        verified: "/proc/sys/vm/compact_unevictable_allowed",
        source: VM,
        ..rule(
            "memory.compact_unevictable",
            "vm.compact_unevictable_allowed",
            4,
            Judge::One(compact_unevictable),
        )
    },
    Rule {
        why: "Compaction in the background moves pages and interrupts CPUs.",
        cost: "Fewer huge pages can be made.",
        verified: "/proc/sys/vm/compaction_proactiveness",
        source: VM,
        ..rule("memory.compaction", "vm.compaction_proactiveness", 2, Judge::One(compaction))
    },
    Rule {
        why: "Once in this many seconds each CPU that is not isolated folds its counters.",
        verified: "/proc/sys/vm/stat_interval",
        source: VM,
        ..rule("memory.stat_interval", "vm.stat_interval", 1, Judge::One(stat_interval))
    },
];

/// Judges what an IOMMU does with the addresses of devices, and what was typed about it.
fn iommu(inputs: &Inputs<'_>) -> Vec<Finding> {
    let kind = inputs.value("iommu_groups/type");
    let is_old = inputs.kernel_from((5, 11)) == Some(false);
    let typed = inputs.joined("iommu");
    let mut found = vec![match (&kind, &typed) {
        (Err(missing), Some(param)) if is_off(param) && !is_unknown(missing) => {
            Finding::good(param.to_string(), CMDLINE)
        }
        (Err(missing), _) if is_old && !is_unknown(missing) => {
            Finding::unknown("before Linux 5.11 the kernel does not show it", &*missing.origin)
        }
        (Err(missing), _) => missing.clone(),
        (Ok((kind @ ("DMA" | "DMA-FQ"), origin)), Some(param)) if has(param, "pt") => {
            Finding::no_effect(format!("{param}; {kind}"), *origin)
                .note("The kernel translates all the same, for these devices at least.")
        }
        (Ok(("identity", origin)), _) => Finding::good("identity: no translation", *origin),
        (Ok(("DMA-FQ", origin)), _) => Finding::needs_reboot("DMA-FQ: translated", *origin)
            .note("Flushed in bundles. Measure what 'iommu=pt' gains."),
        (Ok((kind, origin)), _) => Finding::needs_reboot(format!("{kind}: translated"), *origin)
            .note("Measure what 'iommu=pt' gains, or 'iommu.strict=0', which flushes in bundles."),
    }];
    for name in ["intel_iommu", "amd_iommu"] {
        let Some(param) = inputs.joined(name) else { continue };
        let finding = match &kind {
            Err(missing) if is_unknown(missing) || is_old => {
                Finding::unknown(format!("{param}; {}", missing.found), &*missing.origin)
            }
            Err(missing) if !is_off(&param) => {
                Finding::no_effect(format!("{param}; no device has an IOMMU"), &*missing.origin)
                    .note("It is off in the firmware (VT-d, AMD-Vi), or there is none.")
                    .remove(name)
            }
            Ok((kind, origin)) if is_off(&param) => {
                Finding::no_effect(format!("{param}; {kind}"), *origin)
                    .note("An IOMMU of another kind is in use.")
                    .remove(name)
            }
            Err(_) => Finding::good(param.to_string(), CMDLINE),
            Ok((kind, origin)) => Finding::good(format!("{param}; {kind}"), *origin),
        };
        found.push(inputs.kept_if_repeated(name, finding).knob(name));
    }
    found
}

fn is_unknown(missing: &Finding) -> bool {
    missing.verdict == RuleVerdict::Unknown
}

/// Returns true where a parameter of an IOMMU switches it off: of Intel's words on and off the last
/// counts (intel_iommu_setup); the others know off alone.
fn is_off(param: &Param) -> bool {
    let mut words = param.value.as_deref().unwrap_or_default().split(',');
    let is_switch = |word: &&str| *word == "off" || param.is("intel_iommu") && *word == "on";
    words.rfind(is_switch) == Some("off")
}

/// Returns true where a word is among those of a parameter.
fn has(param: &Param, word: &str) -> bool {
    param.value.as_deref().unwrap_or_default().split(',').any(|part| part == word)
}

fn swap(inputs: &Inputs<'_>) -> Finding {
    let judged = read(&inputs.facts.memory.swap_bytes).map(|(bytes, origin)| match bytes {
        0 => Finding::good("none", origin),
        _ => Finding::improve(format!("{} MiB", bytes >> 20), origin)
            .note("Lock the loop's memory, or run swapoff."),
    });
    settled(judged)
}

fn swappiness(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("vm.swappiness").map(|(value, origin)| {
        let none = inputs.facts.memory.swap_bytes.value() == Some(&0);
        match value.parse::<u32>() {
            _ if none => Finding::not_applicable("there is no swap", origin),
            Ok(..=10) => Finding::good(value, origin),
            Ok(_) => Finding::improve(value, origin).write("/proc/sys/vm/swappiness", "10"),
            Err(_) => Finding::unknown(value, origin),
        }
    });
    settled(judged)
}

fn huge_pages(inputs: &Inputs<'_>) -> Finding {
    let fact = &inputs.facts.memory.transparent_hugepages;
    let judged = read(fact).map(|(mode, origin)| {
        let typed = match inputs.typed("transparent_hugepage") {
            Typed::Yes(param) => param.value.as_deref(),
            _ => None,
        };
        match typed {
            Some(value) if value != mode && mode == "always" => {
                Finding::no_effect(format!("transparent_hugepage={value}; active: {mode}"), origin)
                    .note("Something changed it after boot.")
                    .write("/sys/kernel/mm/transparent_hugepage/enabled", value)
            }
            _ if mode == "always" => Finding::improve(mode, origin)
                .write("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
            _ => Finding::good(mode, origin),
        }
    });
    settled(judged)
}

/// A setting that should have one value.
fn should_be(inputs: &Inputs<'_>, name: &str, wanted: &str) -> Finding {
    let judged = inputs.value(name).map(|(value, origin)| {
        if value == wanted {
            return Finding::good(value, origin);
        }
        Finding::improve(value, origin).write(path_of(name).unwrap_or_default(), wanted)
    });
    settled(judged)
}

fn numa_balancing(inputs: &Inputs<'_>) -> Finding {
    should_be(inputs, "kernel.numa_balancing", "0")
}

fn ksm(inputs: &Inputs<'_>) -> Finding {
    let judged = inputs.value("ksm/run").map(|(value, origin)| match value {
        "1" => Finding::improve("1", origin).write("/sys/kernel/mm/ksm/run", "0"),
        _ => Finding::good(value, origin),
    });
    settled(judged)
}

fn compact_unevictable(inputs: &Inputs<'_>) -> Finding {
    should_be(inputs, "vm.compact_unevictable_allowed", "0")
}

fn compaction(inputs: &Inputs<'_>) -> Finding {
    should_be(inputs, "vm.compaction_proactiveness", "0")
}

fn stat_interval(inputs: &Inputs<'_>) -> Finding {
    let judged =
        inputs.value("vm.stat_interval").map(|(value, origin)| match value.parse::<u32>() {
            Ok(10..) => Finding::good(format!("{value} s"), origin),
            Ok(_) => Finding::improve(format!("{value} s"), origin)
                .write("/proc/sys/vm/stat_interval", "10"),
            Err(_) => Finding::unknown(value, origin),
        });
    settled(judged)
}
