//! Names of parameters: those that tune, those that never existed, those that are for programs.
//! Data only.

/// Parameters that guides copy and no kernel has, or that do nothing: name, what to know.
pub(super) const NEVER: &[(&str, &str)] = &[
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
pub(super) const TUNING: &[&str] = &[
    "amd_idle.max_cstate",
    "amd_pstate",
    "audit",
    "clocksource",
    "cpufreq.off",
    "cpuidle.off",
    "highres",
    "idle",
    "intel_idle.max_cstate",
    "intel_pstate",
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

/// Parameters with a dot that are no parameter of a module.
pub(super) const BUILT_IN: &[&str] = &["workqueue.unbound_cpus", "lsm.debug"];

/// Modules that show each of their parameters.
pub(super) const SHOW_ALL: &[&str] = &[
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

/// What stands before the dot of parameters that programs read.
pub(super) const PROGRAMS: &[&str] = &[
    "coreos",
    "fsck",
    "ignition",
    "inst",
    "live",
    "locale",
    "luks",
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
pub(super) const FOR_PROGRAMS: &[&str] = &[
    "BOOT_IMAGE",
    "auto",
    "autoinstall",
    "boot",
    "components",
    "cloud-init",
    "cryptdevice",
    "ds",
    "emergency",
    "fips",
    "initrd",
    "live-config",
    "nomodeset",
    "noplymouth",
    "nosplash",
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
