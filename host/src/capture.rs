//! The facts' files of a machine as a tree, without secrets: `OUT/proc/cmdline`, ….
//!
//! Copied is what [`MachineFacts::collect`] read, as a recording root logged it, so the two cannot
//! drift apart: the tree, opened with [`Root::captured`], gives equal facts. Each file is filtered
//! by what it is; what was absent or unreadable stands in a manifest. Where the files go is the
//! caller's choice: nothing is written here.

pub mod manifest;

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::facts::{MachineFacts, is_group_of_interest, is_root_mount};
use crate::root::{Listing, Read, Root, Seen};
use crate::scrub::Scrub;
use crate::settings::{
    KernelSettings, is_boot_file, is_entry, kernel_words, relevant, taken_out, taking_out,
};
use manifest::{MANIFEST, Manifest, Missing};

/// The outcome of a capture.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// The facts as the machine gave them, before anything was taken out.
    pub facts: MachineFacts,
    /// The number of files written, the manifest not counted.
    pub files: usize,
    /// The number of files looked for and not there.
    pub absent: usize,
    /// The number of files that could not be read.
    pub unreadable: usize,
}

/// Captures the machine below `root`: hands each file of the tree to `write`, with its path in the
/// tree ("proc/cmdline"), the manifest last.
///
/// # Errors
/// The first one of `write`.
pub fn capture<E: From<io::Error>>(
    root: Root,
    scrub: &Scrub,
    write: impl FnMut(&str, &[u8]) -> Result<(), E>,
) -> Result<Captured, E> {
    let root = root.recording();
    let facts = MachineFacts::collect(&root);
    // What rules look at beyond the facts: read, so that it is copied.
    let _settings = KernelSettings::collect(&root);
    let mut tree = Tree { write, manifest: Manifest::default(), files: 0 };
    for (path, seen) in root.seen() {
        tree.put(&path, seen, scrub)?;
    }
    (tree.write)(MANIFEST, tree.manifest.to_string().as_bytes())?;
    let count = |wanted: fn(&Missing) -> bool| {
        tree.manifest.missing.values().filter(|missing| wanted(missing)).count()
    };
    Ok(Captured {
        facts,
        files: tree.files,
        absent: count(|missing| *missing == Missing::Absent),
        unreadable: count(|missing| matches!(missing, Missing::Unreadable { .. })),
    })
}

struct Tree<W> {
    write: W,
    manifest: Manifest,
    files: usize,
}

impl<E: From<io::Error>, W: FnMut(&str, &[u8]) -> Result<(), E>> Tree<W> {
    fn put(&mut self, path: &str, seen: Seen, scrub: &Scrub) -> Result<(), E> {
        let shown = shown_path(path, scrub);
        let missing = match seen {
            Seen::File(Read::Text(text)) => {
                self.files += 1;
                return self.write(&shown, filter(path, &text, scrub).as_bytes());
            }
            Seen::Compressed(Read::Text(text)) => {
                self.files += 1;
                return self.write_compressed(&shown, &relevant_options(&text));
            }
            // The names in it come with the files below it.
            Seen::Directory(Listing::Names(_)) => Missing::Directory,
            Seen::File(Read::Absent)
            | Seen::Compressed(Read::Absent)
            | Seen::Directory(Listing::Absent) => Missing::Absent,
            Seen::File(Read::Unreadable { why })
            | Seen::Compressed(Read::Unreadable { why })
            | Seen::Directory(Listing::Unreadable { why }) => Missing::Unreadable { why },
        };
        self.manifest.missing.insert(shown, missing);
        Ok(())
    }

    /// As it was found: compressed or not by its name.
    fn write_compressed(&mut self, path: &str, text: &str) -> Result<(), E> {
        if !path.ends_with(".gz") {
            return self.write(path, text.as_bytes());
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text.as_bytes())?;
        self.write(path, &encoder.finish()?)
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), E> {
        (self.write)(path.trim_start_matches('/'), bytes)
    }
}

// Files in which only the kernel's own words and numbers stand are kept as they are; of files
// about this process and of long ones, only the lines that facts are made of; everything else is
// scrubbed as free text.

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
fn shown_path(path: &str, scrub: &Scrub) -> String {
    let kernels = KERNEL_NAMES.iter().any(|place| path.starts_with(place));
    if kernels { path.to_owned() } else { scrub.path(path) }
}

/// The text of a file without what tells whose machine it is.
fn filter(path: &str, text: &str, scrub: &Scrub) -> String {
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
        _ if path.starts_with("/etc/default/grub") => {
            let names: Vec<&str> = taken_out(text).collect();
            taking_out(&names, "  :\n") + &format!("GRUB_CMDLINE_LINUX='{words}'\n")
        }
        _ if is_entry(path) => format!("options {words}\n"),
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
fn relevant_options(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::fact::Fact;
    use crate::settings::ENTRIES;
    use crate::testing;

    /// Captures into a directory.
    fn captured(root: Root, out: &testing::Tree, scrub: &Scrub) -> Captured {
        let write = |path: &str, bytes: &[u8]| -> io::Result<()> {
            assert!(!out.path().join(path).exists(), "{path} twice");
            out.write(path, bytes);
            Ok(())
        };
        capture(root, scrub, write).unwrap()
    }

    /// A machine whose facts are full of names.
    fn machine() -> testing::Tree {
        let hex = "0123456789abcdef".repeat(4);
        testing::Tree::of(&[
            (
                "/proc/cmdline",
                "root=UUID=4c1a5c3e-0001-4a3b-9c8d-0123456789ab ip=10.0.0.9 isolcpus=1 \
             rd.luks.name=4c1a5c3e-0002-4a3b-9c8d-0123456789ab=moonbase \
             cifsroot=//hidden-server/share wpa=hunter2 x.devname=enxdeadbeef0001",
            ),
            (
                "/proc/cpuinfo",
                "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd03\n\n\
             Serial\t: 10000000c0ffee\nModel\t: Board of alice\n",
            ),
            (
                "/proc/interrupts",
                "           CPU0       CPU1\n\
              24:          5          0   PCI-MSIX-0000:01:00.0   0-edge   enxdeadbeef0002-rx-0\n\
              25:          0          7   PCI-MSI 524288-edge   nvmf-192.168.7.9\n\
              26:          0          7   PCI-MSI 524289-edge   nvmf-fd00:1234::77\n",
            ),
            ("/proc/version", "Linux version 6.1.0 (alice@anvil) (gcc) #1 SMP PREEMPT_RT\n"),
            (
                "/proc/config.gz",
                "CONFIG_HZ=1000\nCONFIG_BUILD_SALT=\"anvil\"\n# CONFIG_NO_HZ is not set\n",
            ),
            (
                "/proc/self/status",
                "Name:\talice\nCapEff:\t0000000000800000\nCpus_allowed_list:\t0-1\n",
            ),
            ("/proc/self/cgroup", &format!("9:memory:/alice\n0::/docker/{hex}\n")),
            (
                "/proc/self/mountinfo",
                "8 1 8:1 / / rw - ext4 /dev/anvil rw\n\
             9 8 0:7 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
            ),
            (&format!("/sys/fs/cgroup/docker/{hex}/cpuset.cpus.effective"), "0-1\n"),
            ("/sys/devices/system/cpu/online", "0-1\n"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("/sys/class/power_supply/hid-de:ad:be:ef:00:01/type", "Battery\n"),
            ("/sys/class/power_supply/hid-de:ad:be:ef:00:01/scope", "Device\n"),
            ("/sys/class/dmi/id/product_name", "anvil\n"),
            ("/sys/class/dmi/id/product_serial", "SN-77\n"),
            ("/etc/passwd", "alice:x:1000:1000::/home/alice:/bin/sh\n"),
            ("/etc/hostname", "anvil\n"),
        ])
    }

    fn everything_below(dir: &Path, found: &mut String) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            found.push_str(path.file_name().unwrap().to_str().unwrap());
            found.push('\n');
            if path.is_dir() {
                everything_below(&path, found);
            } else if path.extension().is_none_or(|kind| kind != "gz") {
                found.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn nothing_of_a_secret_is_left() {
        let (tree, out) = (machine(), testing::Tree::new());
        let scrub = Scrub::of(&tree.root());
        let done = captured(tree.root(), &out, &scrub);
        let mut found = String::new();
        everything_below(out.path(), &mut found);
        for secret in [
            "alice", "anvil", "4c1a", "10.0.0.9", "c0ffee", "de:ad", "SN-77", "cdef0", "deadbeef",
            "moonbase", "hidden", "hunter", "192.168", "fd00",
        ] {
            assert!(!found.contains(secret), "{secret} in\n{found}");
        }
        let config = Root::captured(out.path()).unwrap().read_compressed("/proc/config.gz");
        let kept = "CONFIG_HZ=1000\n# CONFIG_NO_HZ is not set\n";
        assert_eq!(config, Read::Text(kept.to_owned()));
        assert_eq!(done.facts.cpu.machine_model.value().unwrap(), "anvil");
        let again = MachineFacts::collect(&out.root());
        assert_eq!(again.cpu.machine_model.value().unwrap(), "host");
        assert_eq!(again.limits.cpuset_cpus.value(), done.facts.limits.cpuset_cpus.value());
        assert_eq!(again.virtualization, done.facts.virtualization);
        assert_eq!(again.preemption, done.facts.preemption);
    }

    #[test]
    fn of_partitions_the_cpus_are_kept_and_no_names_of_groups() {
        let group = "/sys/fs/cgroup/lxc.payload.moonbase";
        let files = [
            ("/proc/sys/kernel/osrelease", "6.1.0\n"),
            ("/proc/self/cgroup", "0::/init.scope\n"),
            ("/proc/self/mountinfo", "9 8 0:7 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"),
            ("/sys/fs/cgroup/cgroup.controllers", "cpuset\n"),
            ("/sys/fs/cgroup/cgroup.subtree_control", "cpuset\n"),
            ("/sys/fs/cgroup/init.scope/cpuset.cpus.partition", "member\n"),
            ("/sys/fs/cgroup/init.scope/cpuset.cpus.effective", "0-1\n"),
            (&format!("{group}.db/cpuset.cpus.partition"), "member\n"),
            (&format!("{group}/cpuset.cpus.partition"), "isolated\n"),
        ];
        let effective = format!("{group}/cpuset.cpus.effective");
        let cpus = |text: &str| {
            let tree = testing::Tree::of(&files);
            tree.write(&effective, text);
            let out = testing::Tree::new();
            let done = captured(tree.root(), &out, &Scrub::new());
            let mut found = String::new();
            everything_below(out.path(), &mut found);
            assert!(!found.contains("moonbase"), "{found}");
            let again = MachineFacts::collect(&out.root());
            assert_eq!(again.isolation, done.facts.isolation);
            assert_eq!(again.limits, done.facts.limits);
            again.isolation.cpuset_isolated_cpus
        };
        assert_eq!(cpus("2-3\n").value().unwrap().to_string(), "2-3");
        assert_eq!(cpus("two\n").why(), Some("cannot parse 'two'"));
        assert!(cpus("\n").value().unwrap().is_empty());
    }

    #[test]
    fn of_groups_of_version_1_the_balanced_cpus_are_kept_and_no_names() {
        let top = "/sys/fs/cgroup/cpuset";
        let mounts = "9 8 0:7 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let tree = testing::Tree::of(&[
            ("/proc/self/cgroup", "3:cpuset:/\n"),
            ("/proc/self/mountinfo", mounts),
            (&format!("{top}/cgroup.sane_behavior"), "0\n"),
            (&format!("{top}/cpuset.sched_load_balance"), "0\n"),
            (&format!("{top}/cpuset.effective_cpus"), "0-3\n"),
            (&format!("{top}/moonbase/cpuset.sched_load_balance"), "0\n"),
            (&format!("{top}/moonbase/cpuset.effective_cpus"), "0-2\n"),
            (&format!("{top}/moonbase/b/cpuset.sched_load_balance"), "1\n"),
            (&format!("{top}/moonbase/b/cpuset.effective_cpus"), "0-1\n"),
        ]);
        let out = testing::Tree::new();
        let done = captured(tree.root(), &out, &Scrub::new());
        let mut found = String::new();
        everything_below(out.path(), &mut found);
        assert!(!found.contains("moonbase"), "{found}");
        let isolated = MachineFacts::collect(&out.root()).isolation.cpuset_isolated_cpus;
        assert_eq!(isolated, done.facts.isolation.cpuset_isolated_cpus);
        assert_eq!(isolated.value().unwrap().to_string(), "2-3");
    }

    #[test]
    fn this_machine_survives_the_round_trip() {
        let out = testing::Tree::new();
        let done = captured(Root::live(), &out, &Scrub::of(&Root::live()));
        assert!(done.files > 10, "{done:?}");
        let mut expected = done.facts;
        let again = MachineFacts::collect(&out.root());
        // Names of this host may stand in here; all else must be equal.
        expected.cpu.machine_model = again.cpu.machine_model.clone();
        expected.kernel.kernel = again.kernel.kernel.clone();
        expected.kernel.kernel_version = again.kernel.kernel_version.clone();
        let scrubbed = |fact: &Fact<_>| serde_json::to_string(fact).unwrap().contains("0000000");
        if scrubbed(&again.limits.cpuset_cpus) {
            expected.limits.cpuset_cpus = again.limits.cpuset_cpus.clone();
        }
        assert_eq!(again, expected);
    }

    #[test]
    fn refused_and_missing_files_stay_so() {
        let out = testing::Tree::new();
        let tree = testing::Tree::of(&[(
            "/MANIFEST",
            "punctual capture 1\nunreadable\t/sys/devices/system/cpu/isolated\tpermission denied\n\
         absent\t/sys/class/power_supply\n",
        )]);
        let done = captured(tree.root(), &out, &Scrub::new());
        assert_eq!(done.facts, MachineFacts::collect(&out.root()));
        assert!(done.unreadable > 0 && done.absent > 0);
        let isolated = done.facts.isolation.isolated_cpus;
        assert_eq!(isolated.why(), Some("permission denied"));
        assert_eq!(done.facts.power.power_source.why(), None);
    }

    #[test]
    fn the_first_error_of_writing_ends_it() {
        let mut left = 3;
        let full = capture(machine().root(), &Scrub::new(), |_, _| {
            left -= 1;
            if left == 0 { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
        });
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(left, 0, "nothing is written after it");
    }

    #[test]
    fn a_host_named_like_a_directory_of_the_kernel_renames_none() {
        let scrub = Scrub::new().host("vm");
        assert_eq!(shown_path("/proc/sys/vm/swappiness", &scrub), "/proc/sys/vm/swappiness");
        assert_eq!(shown_path("/sys/fs/cgroup/vm.slice", &scrub), "/sys/fs/cgroup/host.slice");
    }

    #[test]
    fn boot_files_and_the_log_are_kept_without_secrets() {
        let scrub = Scrub::new();
        let grub =
            "GRUB_TIMEOUT=1\nGRUB_PASSWORD=x\nGRUB_CMDLINE_LINUX=\"isolcpus=2 a.password=y\"\n";
        let kept = filter("/etc/default/grub", grub, &scrub);
        assert_eq!(kept, "GRUB_CMDLINE_LINUX='isolcpus=2 a.password=removed'\n");
        assert_eq!(filter("/etc/default/grub", &kept, &scrub), kept);
        for directory in ENTRIES {
            let path = format!("{directory}/a.conf");
            let kept = filter(&path, "title T\noptions root=/dev/x\noptions isolcpus=2\n", &scrub);
            assert_eq!(kernel_words(&path, &kept), "root=/dev/x isolcpus=2", "{path}: {kept}");
        }
        let log = "[ 0.0] Linux version 6 (me@here) x\n[ 0.0] secret: y\n\
               [ 0.0] Unknown kernel command line parameters \"a token=7\", will be passed\n";
        assert_eq!(
            filter("/var/log/dmesg", log, &scrub),
            "[ 0.0] Linux version 6 (builder@host) x\n\
         [ 0.0] Unknown kernel command line parameters \"a token=removed\", will be passed\n"
        );
    }
}
