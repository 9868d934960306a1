//! What of each file goes into a capture. Pure.
//!
//! Files in which only the kernel's own words and numbers stand are kept as they are; of files
//! about this process and of long ones, only the lines that facts are made of; everything else is
//! scrubbed as free text.

use crate::facts::{is_group_of_interest, is_root_mount};
use crate::scrub::Scrub;
use crate::settings::{is_boot_file, kernel_words, relevant};

/// Places that hold numbers, lists and the kernel's own vocabulary.
const KERNEL_WORDS: &[&str] = &[
    "/dev/cpu/",
    "/dev/cpu_dma_latency",
    "/proc/irq/",
    "/proc/self/timerslack_ns",
    "/proc/self/uid_map",
    "/proc/sys/kernel/arch",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/sched_",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/watchdog",
    "/proc/sys/vm/",
    "/sys/class/power_supply/",
    "/sys/devices/system/",
    "/sys/fs/cgroup/",
    "/sys/hypervisor/type",
    "/sys/kernel/",
    "/sys/devices/virtual/workqueue/",
    "/sys/module/",
];

/// Places whose names are the kernel's own: a host that is called `vm` does not rename them.
const KERNEL_NAMES: &[&str] = &["/proc/sys/", "/proc/irq/", "/sys/devices/", "/sys/module/"];

/// The path of a file without what tells whose machine it is.
pub(super) fn path(path: &str, scrub: &Scrub) -> String {
    let kernels = KERNEL_NAMES.iter().any(|place| path.starts_with(place));
    if kernels { path.to_owned() } else { scrub.path(path) }
}

/// The text of a file without what tells whose machine it is.
pub(super) fn filter(path: &str, text: &str, scrub: &Scrub) -> String {
    match path {
        "/proc/cmdline" => scrub.command_line(text),
        "/proc/cpuinfo" => cpuinfo(text, scrub),
        "/proc/meminfo" => starting(text, &["MemTotal:", "SwapTotal:"]),
        "/proc/stat" => starting(text, &["cpu"]),
        "/proc/self/status" => starting(text, &["CapEff:", "Cpus_allowed_list:"]),
        "/proc/self/limits" => {
            starting(text, &["Limit ", "Max locked memory", "Max realtime priority"])
        }
        // Devices are named by their addresses on the bus, and some by those on the network.
        "/proc/interrupts" => scrub.text(text),
        "/var/log/dmesg" => kernel_log(text, scrub),
        "/etc/default/irqbalance" | "/etc/sysconfig/irqbalance" => {
            starting(text, &["IRQBALANCE_BANNED_"])
        }
        _ if is_boot_file(path) => boot_file(path, text, scrub),
        _ if path.ends_with("/cgroup.procs") => if text.is_empty() { "" } else { "1\n" }.to_owned(),
        "/proc/self/cgroup" => scrub.text(&lines(text, is_group_of_interest)),
        "/proc/self/mountinfo" => scrub.path(&mountinfo(text)),
        "/proc/sys/kernel/osrelease" | "/proc/sys/kernel/version" => scrub.path(text),
        "/proc/version" => scrub.path(&without_builder(text)),
        _ if path.starts_with("/sys/firmware/acpi/") => printable(text),
        _ if KERNEL_WORDS.iter().any(|place| path.starts_with(place)) => text.to_owned(),
        _ => scrub.text(text),
    }
}

/// The lines about parameters, without who built the kernel and without secrets in parameters.
fn kernel_log(text: &str, scrub: &Scrub) -> String {
    let line = |line: &str| match line.split_once("parameters \"") {
        Some((before, rest)) => {
            let (words, after) = rest.split_once('"').unwrap_or((rest, ""));
            let words = scrub.command_line(words);
            format!("{before}parameters \"{}\"{after}", words.trim_end())
        }
        None if line.contains("Linux version ") => without_builder(line),
        None => line.to_owned(),
    };
    let lines: String = relevant(text).split_inclusive('\n').map(line).collect();
    scrub.path(&lines)
}

/// The kernel parameters of a boot loader's file, in a form that reads back.
fn boot_file(path: &str, text: &str, scrub: &Scrub) -> String {
    let words = scrub.command_line(&kernel_words(path, text));
    let words = words.trim_end();
    match path {
        _ if path.starts_with("/etc/default/grub") => format!("GRUB_CMDLINE_LINUX='{words}'\n"),
        _ if path.starts_with("/boot/loader") => format!("options {words}\n"),
        _ => format!("{words}\n"),
    }
}

/// Without the serial number that ARM boards show; names could stand in a model, not in flags.
fn cpuinfo(text: &str, scrub: &Scrub) -> String {
    let kept = lines(text, |line| !line.to_lowercase().starts_with("serial"));
    let words = ["flags", "Features", "bugs", "vmx flags"];
    let scrubbed = kept.split_inclusive('\n').map(|line| {
        let verbatim = words.iter().any(|word| line.starts_with(word));
        if verbatim { line.to_owned() } else { scrub.path(line) }
    });
    scrubbed.collect()
}

/// A kernel configuration without its strings: they hold names, paths and salts.
pub(super) fn config(text: &str) -> String {
    lines(text, |line| match line.split_once('=') {
        Some((name, value)) => name.starts_with("CONFIG_") && !value.starts_with('"'),
        None => line.starts_with("# CONFIG_") && line.ends_with(" is not set"),
    })
}

fn lines(text: &str, keep: impl Fn(&str) -> bool) -> String {
    // An empty line separates the CPUs of /proc/cpuinfo: `lines` keeps it as any other.
    text.split_inclusive('\n').filter(|line| keep(line.trim_end())).collect()
}

fn starting(text: &str, starts: &[&str]) -> String {
    lines(text, |line| starts.iter().any(|start| line.starts_with(start)))
}

/// Where control groups are, and what kind of thing the root directory is.
fn mountinfo(text: &str) -> String {
    let kept = text.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        let (kind, source) = (system.next()?, system.next()?);
        match kind {
            "cgroup" | "cgroup2" => Some(format!("{line}\n")),
            _ if is_root_mount(line) => {
                let source = if source.starts_with("/dev/") { "/dev/root" } else { "none" };
                Some(format!("{mount} - {kind} {source} rw\n"))
            }
            _ => None,
        }
    });
    kept.collect()
}

/// `Linux version 6.1 (somebody@somewhere) …`: who built it is nobody's business.
fn without_builder(text: &str) -> String {
    let parts = text.split_once('(').and_then(|(before, rest)| {
        let (_, after) = rest.split_once(')')?;
        Some(format!("{before}(builder@host){after}"))
    });
    parts.unwrap_or_else(|| text.to_owned())
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() { c } else { '.' }).collect()
}
