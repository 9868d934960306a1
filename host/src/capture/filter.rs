//! What of each file goes into a capture. Pure.
//!
//! Files in which only the kernel's own words and numbers stand are kept as they are; of files
//! about this process and of long ones, only the lines that facts are made of; everything else is
//! scrubbed as free text.

use crate::facts::{is_group_of_interest, is_root_mount};
use crate::scrub::Scrub;

/// Places that hold numbers, lists and the kernel's own vocabulary.
const KERNEL_WORDS: &[&str] = &[
    "/dev/cpu/",
    "/proc/self/timerslack_ns",
    "/proc/self/uid_map",
    "/proc/sys/kernel/arch",
    "/proc/sys/kernel/sched_",
    "/sys/class/power_supply/",
    "/sys/devices/system/",
    "/sys/fs/cgroup/",
    "/sys/hypervisor/type",
    "/sys/kernel/",
];

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
        "/proc/self/cgroup" => scrub.text(&lines(text, is_group_of_interest)),
        "/proc/self/mountinfo" => scrub.path(&mountinfo(text)),
        "/proc/sys/kernel/osrelease" | "/proc/sys/kernel/version" => scrub.path(text),
        "/proc/version" => scrub.path(&without_builder(text)),
        _ if path.starts_with("/sys/firmware/acpi/") => printable(text),
        _ if KERNEL_WORDS.iter().any(|place| path.starts_with(place)) => text.to_owned(),
        _ => scrub.text(text),
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
