//! Round trips: a captured tree gives the facts of the machine, without its secrets.

use std::fs;
use std::path::Path;

use super::*;
use crate::fact::Fact;
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
        ("/proc/self/status", "Name:\talice\nCapEff:\t0000000000800000\nCpus_allowed_list:\t0-1\n"),
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
    assert_eq!(filter::path("/proc/sys/vm/swappiness", &scrub), "/proc/sys/vm/swappiness");
    assert_eq!(filter::path("/sys/fs/cgroup/vm.slice", &scrub), "/sys/fs/cgroup/host.slice");
}

#[test]
fn boot_files_and_the_log_are_kept_without_secrets() {
    let scrub = Scrub::new();
    let grub = "GRUB_TIMEOUT=1\nGRUB_PASSWORD=x\nGRUB_CMDLINE_LINUX=\"isolcpus=2 a.password=y\"\n";
    let kept = filter::filter("/etc/default/grub", grub, &scrub);
    assert_eq!(kept, "GRUB_CMDLINE_LINUX='isolcpus=2 a.password=removed'\n");
    assert_eq!(filter::filter("/etc/default/grub", &kept, &scrub), kept);
    let log = "[ 0.0] Linux version 6 (me@here) x\n[ 0.0] secret: y\n\
               [ 0.0] Unknown kernel command line parameters \"a token=7\", will be passed\n";
    assert_eq!(
        filter::filter("/var/log/dmesg", log, &scrub),
        "[ 0.0] Linux version 6 (builder@host) x\n\
         [ 0.0] Unknown kernel command line parameters \"a token=removed\", will be passed\n"
    );
}
