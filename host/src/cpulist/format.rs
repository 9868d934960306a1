//! The two ways in which files of the kernel show CPUs, and which file shows which.
//!
//! `0,2` is CPUs 0 and 2 in a list, and CPU 1 in a mask: a text says nothing without its file.
//! Pure.

use super::{CpuList, MAX_CPUS};

/// Bits of one group of a mask.
const GROUP: u32 = 32;

/// How a file shows CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuFormat {
    /// Numbers and ranges, `0-3,5`.
    List,
    /// Hexadecimal bits in groups of 32, the highest first, `3,00000000`.
    Mask,
}

impl CpuFormat {
    /// That of the file at `path`, by the name that the kernel gives such files; `None` for one
    /// that shows no CPUs, or that is not known.
    pub fn of_file(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        match name {
            // A list in spite of its name: proc_do_large_bitmap.
            "watchdog_cpumask" | "cpuset.cpus" | "cpuset.cpus.exclusive" | "cpuset.mems" => {
                Some(Self::List)
            }
            _ if name.ends_with("_list") => Some(Self::List),
            "smp_affinity"
            | "default_smp_affinity"
            | "effective_affinity"
            | "affinity_hint"
            | "cpumask"
            | "tracing_cpumask"
            | "rps_cpus"
            | "xps_cpus" => Some(Self::Mask),
            _ => None,
        }
    }

    /// The CPUs of a text in this format; `None` for one that is not.
    pub fn parse(self, text: &str) -> Option<CpuList> {
        match self {
            Self::List => CpuList::parse(text, MAX_CPUS - 1).ok(),
            Self::Mask => mask(text.trim()),
        }
    }

    /// The CPUs as a text in this format.
    pub fn show(self, cpus: &CpuList) -> String {
        match self {
            Self::List => cpus.to_string(),
            Self::Mask => {
                let highest = cpus.last().unwrap_or(0) / GROUP;
                let bits = |group: u32| {
                    let set = |bit: u32| u32::from(cpus.contains(group * GROUP + bit)) << bit;
                    (0..GROUP).map(set).sum::<u32>()
                };
                let first = format!("{:x}", bits(highest));
                (0..highest).rev().fold(first, |text, group| format!("{text},{:08x}", bits(group)))
            }
        }
    }
}

/// Groups of up to 32 bits: leading zeros of a group may be left out, as for the kernel.
fn mask(text: &str) -> Option<CpuList> {
    let mut cpus = CpuList::new();
    for (group, digits) in (0..).zip(text.rsplit(',')) {
        let is_group = (1..=8).contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            && group < MAX_CPUS / GROUP;
        let bits = is_group.then(|| u32::from_str_radix(digits, 16).ok()).flatten()?;
        let set = (0..GROUP).filter(|bit| bits & (1 << bit) != 0);
        set.for_each(|bit| cpus.insert(group * GROUP + bit));
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_groups_of_32_bits_and_a_list_has_none() {
        for (text, shown, again) in [
            ("f\n", "0-3", "f"),
            ("0000000f", "0-3", "f"),
            ("0F", "0-3", "f"),
            ("3,00000000", "32-33", "3,00000000"),
            ("0,2", "1", "2"),
            ("1,0", "32", "1,00000000"),
            ("00000000", "", "0"),
        ] {
            let cpus = CpuFormat::Mask.parse(text).expect("a mask");
            assert_eq!((cpus.to_string().as_str(), text), (shown, text));
            assert_eq!(CpuFormat::Mask.show(&cpus), again, "{text}");
        }
        for text in ["", "g", "-1", "0x3", "123456789", "1,,2", "0-3"] {
            assert_eq!(CpuFormat::Mask.parse(text), None, "{text}");
        }
        let list = CpuFormat::List.parse("0,2\n").expect("a list");
        assert_eq!((list.to_string(), CpuFormat::List.show(&list)), ("0,2".into(), "0,2".into()));
    }

    #[test]
    fn a_file_is_known_by_its_name() {
        for (path, format) in [
            ("/proc/irq/25/smp_affinity_list", Some(CpuFormat::List)),
            ("/proc/irq/25/smp_affinity", Some(CpuFormat::Mask)),
            ("/proc/irq/default_smp_affinity", Some(CpuFormat::Mask)),
            ("/proc/sys/kernel/watchdog_cpumask", Some(CpuFormat::List)),
            ("/sys/devices/virtual/workqueue/writeback/cpumask", Some(CpuFormat::Mask)),
            ("/sys/class/net/eth0/queues/rx-0/rps_cpus", Some(CpuFormat::Mask)),
            ("/sys/fs/cgroup/x/cpuset.cpus", Some(CpuFormat::List)),
            ("/sys/fs/cgroup/x/cpuset.cpus.partition", None),
            ("/proc/sys/vm/stat_interval", None),
        ] {
            assert_eq!(CpuFormat::of_file(path), format, "{path}");
        }
    }
}
