//! Rules about the command line as a whole: what the kernel did not take, what contradicts itself,
//! what the next boot will have.

use super::{CMDLINE, Finding, Inputs, Judge, Rule, read, rule};
use crate::cmdline::{CommandLine, Param};
use crate::settings::{ModuleParameter, boot_places};

/// The name that the command line as a whole has.
const WHOLE: &str = "kernel command line";

/// So many parameters that change lateness are too many to know what each does.
const MANY: usize = 10;

pub(super) const RULES: &[Rule] = &[
    Rule {
        why: "A parameter that the kernel does not know is handed to the first process without an \
              error; one with a dot is not even mentioned in the log, since it could belong to a \
              module that is loaded later.",
        verified: "the kernel log (Unknown kernel command line parameters), /sys/module",
        source: "Linux, init/main.c (unknown_bootoption)",
        ..rule("boot.unknown", WHOLE, 6, Judge::Each(unknown))
    },
    Rule {
        why: "Of two values of one parameter the kernel takes the last, or neither; of some it \
              takes each, unless their words exclude each other.",
        source: "Linux, kernel/params.c",
        ..rule("boot.twice", WHOLE, 5, Judge::Each(twice))
    },
    Rule {
        why: "Boot loaders keep their own copies: an edited file counts after update-grub or its \
              like, a package update may bring back the old one.",
        verified: "/etc/default/grub and its drop-ins, /etc/kernel/cmdline, loader entries, \
                   cmdline.txt of a Raspberry Pi",
        source: "github.com/redhat-performance/tuned issues 98, 294",
        ..rule("boot.configured", "boot loader", 6, Judge::One(configured))
    },
    Rule {
        why: "Of many parameters changed at once it is not known which help and which harm: \
              change one at a time and measure it ('punctual compare').",
        source: "github.com/LinuxCNC/linuxcnc issue 4199",
        ..rule("boot.many", WHOLE, 3, Judge::One(many))
    },
];

/// The parameters, or the finding that says why there are none.
fn parameters<'a>(inputs: &'a Inputs<'_>) -> Result<&'a CommandLine, Finding> {
    read(&inputs.settings.command_line)
        .map(|(line, _)| line)
        .map_err(|missing| Finding::unknown(missing.found, missing.origin))
}

fn unknown(inputs: &Inputs<'_>) -> Vec<Finding> {
    let line = match parameters(inputs) {
        Ok(line) => line,
        Err(missing) => return vec![missing],
    };
    let log = inputs.settings.kernel_log.value();
    let release = inputs.settings.release;
    let listed = log.and_then(|log| log.unknown_parameters(release));
    let mut found: Vec<Finding> = Vec::new();
    for param in &line.params {
        let finding = never(param)
            .or_else(|| dotted(inputs, param))
            .or_else(|| listed.as_deref().and_then(|words| reported(param, words)));
        found.extend(finding.map(|finding| finding.knob(param.name.replace('-', "_"))));
    }
    if !found.is_empty() {
        return found;
    }
    let origin = inputs.settings.kernel_log.origin();
    vec![match (listed, inputs.settings.kernel_log.why()) {
        (Some(_), _) => Finding::good("the kernel knows all parameters", origin),
        (None, Some(why)) => Finding::unknown(format!("kernel log unreadable: {why}"), origin),
        (None, None) => Finding::unknown(
            "the kernel log does not record which parameters it did not know",
            origin,
        ),
    }]
}

fn never(param: &Param) -> Option<Finding> {
    let (_, note) = NEVER.iter().find(|(name, _)| param.is(name))?;
    let name = &param.name;
    Some(Finding::no_effect(param.to_string(), CMDLINE).note(*note).remove(name))
}

/// A parameter that the kernel listed as unknown, but for those that are known to be read by
/// programs or by early code. It stays: what else may read it is not known here.
fn reported(param: &Param, words: &[&str]) -> Option<Finding> {
    let shown = param.to_string();
    let listed = words.iter().any(|word| *word == shown || *word == param.name);
    let is_read = FOR_PROGRAMS.iter().chain(EARLY).any(|known| param.is(known));
    (listed && !is_read).then(|| {
        Finding::unknown(shown, "dmesg").note(
            "The kernel's table of parameters does not have it, so it was handed to the first \
             process. Programs, the initial file system or early code may read it: remove it by \
             hand where none does.",
        )
    })
}

fn dotted(inputs: &Inputs<'_>, param: &Param) -> Option<Finding> {
    let (module, name) = param.name.split_once('.')?;
    let module_name = module.replace('-', "_");
    let is_read = PROGRAMS.contains(&module)
        || EARLY_PREFIXES.contains(&module_name.as_str())
        || OF_ANY_MODULE.contains(&name)
        || BUILT_IN.iter().any(|known| param.is(known));
    if is_read {
        return None;
    }
    let is_it = |known: &&ModuleParameter| param.is(&known.name);
    let shown = inputs.settings.module_parameters.iter().find(is_it)?;
    let (origin, text) = (shown.module.origin(), param.to_string());
    if shown.shown.is_known() {
        return None;
    }
    let lists_all = SHOW_ALL.contains(&module_name.as_str());
    match (&shown.module, shown.shown.why()) {
        (crate::Fact::Known { .. }, None) if lists_all => {
            Some(Finding::no_effect(text, origin).note(format!(
                "The module {module} of this kernel has no parameter {name}: remove it by hand."
            )))
        }
        (crate::Fact::Known { .. }, None) => Some(
            Finding::unknown(text, origin)
                .note(format!("The module {module} shows no parameter {name}; it may hide it.")),
        ),
        (crate::Fact::Absent { .. }, _) => Some(Finding::unknown(text, origin).note(format!(
            "No module {module} is loaded or built in. One that is loaded later takes the \
             parameter, and a program may read it: remove it by hand where neither does."
        ))),
        (_, Some("not captured")) | (crate::Fact::Unreadable { .. }, _) => {
            Some(Finding::unknown(text, origin))
        }
        // It is there and only root may read it.
        (crate::Fact::Known { .. }, Some(_)) => None,
    }
}

/// Parameters that are set twice, to different values.
fn twice(inputs: &Inputs<'_>) -> Vec<Finding> {
    let line = match parameters(inputs) {
        Ok(line) => line,
        Err(missing) => return vec![missing],
    };
    let mut found = Vec::new();
    for name in TUNING {
        let mut values: Vec<&str> =
            line.all(name).map(|param| param.value.as_deref().unwrap_or_default()).collect();
        values.dedup();
        let adds_up = ADDED.iter().find(|(added, _)| added == name);
        let contradicts = match adds_up {
            Some((_, choices)) => {
                let words: Vec<&str> = values.iter().flat_map(|value| value.split(',')).collect();
                let chosen = |choice: &&[&str]| {
                    choice.iter().filter(|word| words.contains(*word)).count() > 1
                };
                choices.iter().any(chosen)
            }
            None => true,
        };
        if values.len() > 1 && contradicts {
            let words = line.all(name).map(Param::to_string).collect::<Vec<_>>().join(" ");
            found.push(Finding::conflict(words, CMDLINE).knob(*name));
        }
    }
    if found.is_empty() {
        found.push(Finding::good("no parameter contradicts itself", CMDLINE));
    }
    found
}

fn configured(inputs: &Inputs<'_>) -> Finding {
    let line = match parameters(inputs) {
        Ok(line) => line,
        Err(missing) => return missing,
    };
    let files = &inputs.settings.boot;
    if files.is_empty() {
        return Finding::unknown("no file of a known boot loader is readable", boot_places());
    }
    let origin = files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(", ");
    let tuning = |line: &CommandLine| -> Vec<String> {
        let known = line.params.iter().filter(|p| TUNING.iter().any(|name| p.is(name)));
        known.map(Param::to_string).collect()
    };
    let written: Vec<String> = files.iter().flat_map(|file| tuning(&file.parameters)).collect();
    let running = tuning(line);
    let missing = |from: &[String], words: &[String]| -> Vec<String> {
        words.iter().filter(|word| !from.contains(word)).cloned().collect()
    };
    let (pending, lost) = (missing(&running, &written), missing(&written, &running));
    if !pending.is_empty() {
        return Finding::needs_reboot(
            format!("written and not booted: {}", pending.join(" ")),
            origin,
        )
        .note("Run the boot loader's own tool (update-grub), then reboot.");
    }
    if !lost.is_empty() {
        return Finding::conflict(format!("running and not written: {}", lost.join(" ")), origin)
            .note("The next boot will be without them, unless another file has them.");
    }
    Finding::good("the running parameters are those that are written", origin)
}

fn many(inputs: &Inputs<'_>) -> Finding {
    let line = match parameters(inputs) {
        Ok(line) => line,
        Err(missing) => return missing,
    };
    let count = line.params.iter().filter(|p| TUNING.iter().any(|name| p.is(name))).count();
    let found = format!("{count} parameters that change how late a loop may be");
    match count {
        MANY.. => Finding::needs_reboot(found, CMDLINE),
        _ => Finding::good(found, CMDLINE),
    }
}

/// Parameters that guides copy and no kernel has, or that do nothing: name, what to know.
pub(crate) const NEVER: &[(&str, &str)] = &[
    (
        "kthread_cpus",
        "The patch was never merged; a few vendors' kernels may carry it. Move kernel threads at \
         run time, or isolate the CPUs.",
    ),
    (
        "workqueue.cpumask",
        "There is no such parameter: write /sys/devices/virtual/workqueue/cpumask, or use \
         workqueue.unbound_cpus= from Linux 6.6 on.",
    ),
    ("noirqbalance", "It went with the kernel's own balancing of interrupts in Linux 2.6.29."),
    ("noht", "It went with Linux 2.6; nosmt switches the siblings off."),
    (
        "amd_idle.max_cstate",
        "No driver of Linux is called amd_idle: processors of AMD idle by acpi_idle, which \
         processor.max_cstate limits; pm_qos_resume_latency_us limits one CPU alone.",
    ),
    ("acpi_irq_nobalance", "It is the default of machines with an IO-APIC."),
];

/// Parameters that change how late a loop may be: those that are compared with the boot files,
/// counted, and looked at for contradictions.
pub(crate) const TUNING: &[&str] = &[
    "amd_idle.max_cstate",
    "amd_iommu",
    "amd_pstate",
    "audit",
    "clocksource",
    "cpufreq.off",
    "cpuidle.off",
    "highres",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "irqaffinity",
    "irqpoll",
    "isolcpus",
    "kthread_cpus",
    "mce",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "nosoftlockup",
    "nowatchdog",
    "pcie_aspm",
    "pcie_aspm.policy",
    "preempt",
    "processor.max_cstate",
    "rcu_nocb_poll",
    "rcu_nocbs",
    "rcupdate.rcu_expedited",
    "rcupdate.rcu_normal_after_boot",
    "rcutree.kthread_prio",
    "rcutree.nohz_full_patience_delay",
    "rt_group_sched",
    "skew_tick",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
    "workqueue.cpumask",
    "workqueue.unbound_cpus",
];

/// Parameters of which the kernel takes each occurrence by itself, and of their words those that
/// exclude each other.
const ADDED: &[(&str, &[&[&str]])] = &[
    ("amd_iommu", &[]),
    ("intel_iommu", &[&["off", "on"], &["sm_off", "sm_on"]]),
    ("intel_pstate", &[&["active", "disable", "passive"]]),
    ("iommu", &[&["force", "noforce", "off"], &["nopt", "pt"]]),
    ("mce", &[&["bootlog", "nobootlog"]]),
    ("nmi_watchdog", &[&["0", "1"], &["nopanic", "panic"]]),
    ("tsc", &[&["nowatchdog", "watchdog"], &["reliable", "unstable"]]),
];

/// Returns true where the kernel takes each occurrence of a parameter by itself.
pub(super) fn adds_up(name: &str) -> bool {
    ADDED.iter().any(|(added, _)| *added == name)
}

/// Parameters with a dot that are no parameter of a module.
const BUILT_IN: &[&str] = &[
    "cgroup.memory",
    "iommu.forcedac",
    "iommu.passthrough",
    "iommu.strict",
    "lsm.debug",
    "printk.devkmsg",
    "random.trust_bootloader",
    "random.trust_cpu",
    "workqueue.unbound_cpus",
];

/// The prefixes, before the dot and with `_`, of parameters that early code of the kernel reads
/// (`early_param`): no module has these names.
const EARLY_PREFIXES: &[&str] = &["arm64", "fw_devlink", "irqchip", "kvm_arm"];

/// Parameters, behind the dot, that the kernel's loader of modules takes for each module (Linux,
/// `kernel/module/main.c`).
const OF_ANY_MODULE: &[&str] = &["async_probe", "dyndbg"];

/// Modules that show each of their parameters.
const SHOW_ALL: &[&str] = &[
    "cpufreq",
    "cpuidle",
    "haltpoll",
    "intel_idle",
    "kvm",
    "pcie_aspm",
    "processor",
    "rcupdate",
    "rcutree",
    "srcutree",
    "workqueue",
];

/// The prefixes, before the dot, of parameters that programs read.
const PROGRAMS: &[&str] = &[
    "coreos",
    "fsck",
    "ignition",
    "inst",
    "live",
    "locale",
    "luks",
    "modprobe",
    "net",
    "ostree",
    "plymouth",
    "quotacheck",
    "rauc",
    "rd",
    "snapd",
    "sysctl",
    "systemd",
    "udev",
    "vconsole",
];

/// Parameters without a dot that the boot loader, the first process or the initial file system
/// reads.
const FOR_PROGRAMS: &[&str] = &[
    "BOOT_IMAGE",
    "auto",
    "autoinstall",
    "biosdevname",
    "boot",
    "components",
    "cloud-init",
    "cryptdevice",
    "cryptopts",
    "ds",
    "emergency",
    "fips",
    "initrd",
    "ip",
    "live-config",
    "modules-load",
    "nfsroot",
    "nomodeset",
    "noplymouth",
    "nosplash",
    "ostree",
    "overlayroot",
    "persistent",
    "recovery",
    "resume",
    "rescue",
    "rhgb",
    "single",
    "splash",
    "text",
    "toram",
    "username",
    "vt.handoff",
    "zfs",
];

/// Parameters that early code of x86 looks for by itself (`cmdline_find_option`), so that kernels
/// without a handler for them list them as unknown while they are in effect.
const EARLY: &[&str] = &[
    "dis_ucode_ldr",
    "kaslr",
    "no5lvl",
    "nokaslr",
    "nopti",
    "nospec_store_bypass_disable",
    "nospectre_v2",
    "noxsave",
    "noxsaves",
    "noxsaveopt",
    "pti",
    "spec_store_bypass_disable",
    "spectre_v2",
    "spectre_v2_user",
];

#[cfg(test)]
mod tests {
    use crate::rules::RuleVerdict;
    use crate::testing::verdict;

    #[test]
    fn a_parameter_is_not_removed_because_nothing_here_knows_it() {
        let on = |words: &str, knob: &str| {
            // The kernel lists none with a dot.
            let listed = if knob.contains('.') { "" } else { words };
            let log = format!(
                "[ 0.0] Linux version 6.1.0\n[ 0.1] Unknown kernel command line parameters \
                 \"{listed}\", will be passed to user space.\n"
            );
            let files = [
                ("/proc/sys/kernel/osrelease", "6.1.0\n"),
                ("/proc/cmdline", words),
                ("/var/log/dmesg", &log),
                ("/sys/module/kvm/parameters/nx_huge_pages", "Y\n"),
            ];
            verdict(&files, None, knob).map(|judged| (judged.verdict, judged.changes.len()))
        };
        // Programs, the initial file system, kmod or early code of the kernel read these.
        for word in [
            "modprobe.blacklist=nouveau",
            "ostree=/ostree/boot.1/x",
            "ip=dhcp",
            "nfsroot=10.0.0.1:/x",
            "biosdevname=0",
            "overlayroot=tmpfs",
            "cryptopts=target=x",
            "pti=off",
            "nopti",
            "irqchip.gicv3_pseudo_nmi=1",
            "kvm-arm.mode=nvhe",
            "cgroup.memory=nokmem",
            "arm64.nosve",
            "fw_devlink.strict=1",
            "kvm.dyndbg=+p",
        ] {
            let name = word.split('=').next().unwrap().replace('-', "_");
            assert_eq!(on(word, &name), None, "{word}");
        }
        // A module may be loaded later, and a word may be a program's.
        let open = Some((RuleVerdict::Unknown, 0));
        assert_eq!(on("nouveau.modeset=0", "nouveau.modeset"), open);
        assert_eq!(on("loglevl=3", "loglevl"), open);
        // The module is there, and shows each of its parameters.
        assert_eq!(on("kvm.nx_huge=1", "kvm.nx_huge"), Some((RuleVerdict::NoEffect, 0)));
        // No kernel has it.
        assert_eq!(on("noirqbalance", "noirqbalance"), Some((RuleVerdict::NoEffect, 1)));
    }

    #[test]
    fn occurrences_that_add_up_do_not_contradict_each_other() {
        let on = |words: &str, knob: &str| {
            let files = [
                ("/proc/cmdline", words),
                ("/proc/sys/kernel/osrelease", "6.12.0\n"),
                ("/proc/sys/kernel/arch", "x86_64\n"),
                ("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n"),
                ("/proc/sys/kernel/nmi_watchdog", "0\n"),
                ("/sys/devices/system/cpu/intel_pstate/status", "passive\n"),
                ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
                ("/sys/kernel/iommu_groups/0/type", "DMA\n"),
            ];
            let judged = verdict(&files, None, knob).unwrap();
            (judged.verdict, judged.changes.len())
        };
        let pstate = |words: &str| on(words, "intel_pstate");
        let good = (RuleVerdict::Good, 0);
        assert_eq!(pstate("intel_pstate=passive intel_pstate=no_hwp"), good);
        assert_eq!(pstate("intel_pstate=passive intel_pstate=active").0, RuleVerdict::Conflict);
        // Each is judged, and none is taken away with the others.
        assert_eq!(pstate("intel_pstate=x intel_pstate=no_hwp"), (RuleVerdict::NoEffect, 0));
        assert_eq!(on("tsc=nowatchdog tsc=noirqtime", "tsc"), good);
        assert_eq!(on("tsc=reliable tsc=noirqtime", "tsc"), (RuleVerdict::NeedsReboot, 0));
        assert_eq!(on("tsc=watchdog tsc=nowatchdog", "tsc").0, RuleVerdict::Conflict);
        assert_eq!(on("mce=off mce=no_cmci", "mce"), (RuleVerdict::Conflict, 0));
        assert_eq!(on("mce=dont_log_ce mce=no_cmci", "mce"), good);
        assert_eq!(on("intel_iommu=on intel_iommu=sm_on", "intel_iommu"), good);
        let conflict = (RuleVerdict::Conflict, 0);
        assert_eq!(on("intel_iommu=on intel_iommu=off", "intel_iommu"), conflict);
        assert_eq!(on("intel_iommu=off intel_iommu=on", "intel_iommu"), conflict);
        assert_eq!(on("iommu=pt iommu=merge", "iommu").0, RuleVerdict::NoEffect);
        assert_eq!(on("nmi_watchdog=0 nmi_watchdog=panic", "nmi_watchdog"), good);
        assert_eq!(on("preempt=full preempt=none", "preempt").0, RuleVerdict::Conflict);
    }
}
