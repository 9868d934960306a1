//! The layers between the kernel and the hardware: a hypervisor, a container.
//!
//! On x86 the CPU flag `hypervisor` decides whether there is one; DMI, ACPI and the clock sources
//! only name it. On ARM the device tree and DMI decide. Reads through the source.

use super::Source;
use super::available;
use crate::fact::Fact;
use crate::root::{Listing, Read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An ACPI table's header: signature, length, …, the maker at byte 10 (ACPI 6.5, 5.2.6).
const ACPI_HEADER_BYTES: u64 = 36;

/// The name of a hypervisor of which nothing more could be read.
const UNNAMED: &str = "unknown hypervisor";

/// Virtualization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Virtualization {
    /// The hypervisor's name, `none`, or `unknown hypervisor`; absent where nothing tells.
    pub virtualization: Fact<String>,
    /// The container that this process seems to be in; absent without a sign of one.
    pub container: Fact<String>,
}

impl Virtualization {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        Self { virtualization: hypervisor(source), container: container(source) }
    }

    /// True where a hypervisor was found.
    pub fn is_guest(&self) -> bool {
        self.virtualization.value().is_some_and(|name| name != "none")
    }

    /// Returns true where two names may be one hypervisor's, of which one was read with fewer
    /// rights: root alone may read what tells `kvm (firecracker)` from `kvm`, or names it at all.
    pub fn is_one_reading(a: &str, b: &str) -> bool {
        let is_less = |less: &str, more: &str| match less {
            UNNAMED => more != "none",
            _ => more.strip_prefix(less).is_some_and(|detail| detail.starts_with(" (")),
        };
        a == b || is_less(a, b) || is_less(b, a)
    }
}

fn hypervisor(source: &Source<'_>) -> Fact<String> {
    let flagged = source.cpuinfo.value().and_then(|info| info.flag("hypervisor"));
    let flags = "/proc/cpuinfo (flags)";
    match flagged {
        Some(false) => Fact::known("none".to_owned(), flags),
        Some(true) => named(source).or_else(|| Fact::known(UNNAMED.to_owned(), flags)),
        None => without_flag(source),
    }
}

/// The name, from the most to the least specific sign.
fn named(source: &Source<'_>) -> Fact<String> {
    source
        .word("/sys/hypervisor/type")
        .or_else(|| by_acpi(source))
        .or_else(|| by_dmi(source))
        .or_else(|| by_clocksource(source))
}

fn without_flag(source: &Source<'_>) -> Fact<String> {
    let tree = "/sys/firmware/devicetree/base";
    let node = source.text(&format!("{tree}/hypervisor/compatible")).map(|text| {
        let first = text.split('\0').next().unwrap_or_default();
        first.split_once(',').map_or(first, |(_, name)| name).to_owned()
    });
    let found = node.or_else(|| named(source));
    if found.is_known() {
        return found;
    }
    // A tree of QEMU's or Firecracker's virtual board without a node that names it.
    match source.text(&format!("{tree}/compatible")) {
        Fact::Known { value, origin } if value.contains("dummy-virt") => {
            Fact::known(UNNAMED.to_owned(), origin)
        }
        Fact::Known { origin, .. } => Fact::known("none".to_owned(), origin),
        missing => missing.or_else(|| found),
    }
}

/// Firecracker has no DMI; its ACPI tables name it. Only root may read them.
fn by_acpi(source: &Source<'_>) -> Fact<String> {
    let path = "/sys/firmware/acpi/tables/DSDT";
    match source.root.read_head(path, ACPI_HEADER_BYTES) {
        Read::Text(header) if header.contains("FIRECK") => {
            Fact::known("kvm (firecracker)".to_owned(), path)
        }
        _ => Fact::absent(path),
    }
}

/// Texts that makers of virtual machines write into DMI: a part of vendor and product, and the
/// name.
const DMI: &[(&str, &str)] = &[
    ("KVM", "kvm"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("Xen", "xen"),
    ("Microsoft Corporation Virtual Machine", "hyper-v"),
    ("Amazon EC2", "amazon"),
    ("Google", "google"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("OpenStack", "kvm"),
];

fn by_dmi(source: &Source<'_>) -> Fact<String> {
    let at = "/sys/class/dmi/id";
    let vendor = source.word(&format!("{at}/sys_vendor"));
    let product = source.word(&format!("{at}/product_name"));
    let words = [vendor.value(), product.value()].map(|word| word.map_or("", String::as_str));
    let names = words.join(" ");
    let found = DMI.iter().find(|(part, _)| names.contains(part));
    // `m5.metal`: a cloud's own machine without a hypervisor.
    match found.filter(|_| !names.contains("metal")) {
        Some((_, name)) => {
            Fact::known((*name).to_owned(), format!("{at}/sys_vendor, product_name"))
        }
        None => Fact::absent(format!("{at}/sys_vendor")),
    }
}

fn by_clocksource(source: &Source<'_>) -> Fact<String> {
    available(source).and_then(|names, origin| {
        let signs = [("kvm-clock", "kvm"), ("hyperv", "hyper-v"), ("xen", "xen")];
        let found =
            signs.into_iter().find(|(sign, _)| names.iter().any(|name| name.starts_with(sign)));
        match found {
            Some((_, name)) => Fact::known(name.to_owned(), origin),
            None => Fact::absent(origin),
        }
    })
}

fn container(source: &Source<'_>) -> Fact<String> {
    if let Fact::Known { value, origin } = source.word("/run/systemd/container") {
        return Fact::known(value, origin);
    }
    for (path, name) in [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")] {
        // Guests are made from container images too, and keep the file.
        if !source.cgroups.root_is_disk && matches!(source.root.read(path), Read::Text(_)) {
            return Fact::known(name.to_owned(), path);
        }
    }
    let secrets = "/var/run/secrets/kubernetes.io";
    if matches!(source.root.list(secrets), Listing::Names(_)) {
        return Fact::known("kubernetes".to_owned(), secrets);
    }
    source.cgroups.text.clone().and_then(|text, origin| {
        let signs = [
            ("kubepods", "kubernetes"),
            ("docker", "docker"),
            ("libpod", "podman"),
            ("lxc", "lxc"),
        ];
        match signs.into_iter().find(|(sign, _)| text.contains(sign)) {
            Some((_, name)) => Fact::known(name.to_owned(), origin),
            None => Fact::absent(origin),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::MachineFacts;
    use crate::testing::Tree;

    fn facts(files: &[(&str, &str)]) -> MachineFacts {
        MachineFacts::collect(&Tree::of(files).root())
    }

    #[test]
    fn hypervisors_by_their_signs() {
        let name = |files: &[(&str, &str)]| {
            facts(files).virtualization.virtualization.value().cloned().unwrap_or("-".to_owned())
        };
        let guest = ("/proc/cpuinfo", "flags\t: fpu hypervisor\n");
        let metal = ("/proc/cpuinfo", "flags\t: fpu\n");
        let vendor = |name| ("/sys/class/dmi/id/sys_vendor", name);
        let product = |name| ("/sys/class/dmi/id/product_name", name);
        let sources = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
        assert_eq!(name(&[metal, vendor("QEMU")]), "none");
        assert_eq!(name(&[guest]), "unknown hypervisor");
        assert_eq!(name(&[guest, vendor("QEMU"), product("Standard PC")]), "qemu");
        assert_eq!(name(&[guest, vendor("VMware, Inc.")]), "vmware");
        let surface = [guest, vendor("Microsoft Corporation"), product("Surface Pro")];
        assert_eq!(name(&surface), "unknown hypervisor");
        let hyper_v = [guest, vendor("Microsoft Corporation"), product("Virtual Machine")];
        assert_eq!(name(&hyper_v), "hyper-v");
        assert_eq!(name(&[guest, (sources, "tsc kvm-clock \n")]), "kvm");
        let tables = "/sys/firmware/acpi/tables/DSDT";
        assert_eq!(name(&[guest, (tables, "DSDT....FIRECKFCVMDSDT")]), "kvm (firecracker)");
        assert_eq!(name(&[guest, ("/sys/hypervisor/type", "xen\n"), vendor("Xen")]), "xen");
        let board = ("/sys/firmware/devicetree/base/compatible", "raspberrypi,4\0brcm,bcm2711\0");
        let node = ("/sys/firmware/devicetree/base/hypervisor/compatible", "linux,kvm\0");
        assert_eq!(name(&[board]), "none");
        assert_eq!(name(&[board, node]), "kvm");
        assert_eq!(name(&[]), "-");
    }

    #[test]
    fn a_name_that_root_alone_can_read_is_the_same_hypervisor() {
        let is_one = |a: &str, b: &str| {
            let one = Virtualization::is_one_reading(a, b);
            assert_eq!(one, Virtualization::is_one_reading(b, a), "{a} {b}");
            one
        };
        assert!(is_one("kvm", "kvm (firecracker)") && is_one("kvm", "kvm"));
        assert!(is_one("unknown hypervisor", "kvm (firecracker)"));
        assert!(!is_one("kvm", "xen") && !is_one("none", "kvm (firecracker)"));
        assert!(!is_one("none", "unknown hypervisor") && !is_one("absent", "kvm"));
        assert!(!is_one("kvm (firecracker)", "kvm (other)") && !is_one("kvm", "kvmtool"));
    }

    #[test]
    fn containers_by_their_signs() {
        let name = |path: &str, text: &str| {
            facts(&[(path, text)]).virtualization.container.value().cloned().unwrap_or_default()
        };
        assert_eq!(name("/.dockerenv", ""), "docker");
        assert_eq!(name("/run/systemd/container", "systemd-nspawn\n"), "systemd-nspawn");
        assert_eq!(name("/proc/self/cgroup", "0::/kubepods.slice/x\n"), "kubernetes");
        assert_eq!(name("/proc/self/cgroup", "0::/\n"), "");
        let disk = "/proc/self/mountinfo";
        let guest = |mount| facts(&[("/.dockerenv", ""), (disk, mount)]).virtualization.container;
        assert!(!guest("27 1 254:0 / / rw - ext4 /dev/vda rw\n").is_known());
        assert!(guest("27 1 0:50 / / rw - overlay overlay rw\n").is_known());
    }
}
