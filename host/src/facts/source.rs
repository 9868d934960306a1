//! What the groups of facts share: the root, the files that several of them need, and reading a
//! file as a value. Reads through the root only.

use super::cgroup::Cgroups;
use super::cpu::CpuInfo;
use super::kernel::KernelConfig;
use crate::cmdline::CommandLine;
use crate::cpulist::{CpuList, MAX_CPUS};
use crate::fact::Fact;
use crate::root::{Read, Root};

/// Where the CPUs are described.
pub(crate) const CPUS: &str = "/sys/devices/system/cpu";

/// The root and what was read of it once for all.
pub(crate) struct Source<'r> {
    pub(crate) root: &'r Root,
    pub(crate) cpuinfo: Fact<CpuInfo>,
    pub(crate) command_line: Fact<CommandLine>,
    pub(crate) config: Fact<KernelConfig>,
    pub(crate) cgroups: Cgroups,
    /// CPUs that can be run on now; CPU 0 alone where the kernel does not say.
    pub(crate) online: CpuList,
}

impl<'r> Source<'r> {
    pub(crate) fn new(root: &'r Root) -> Self {
        let online = parsed(root, &format!("{CPUS}/online"), cpu_list);
        Self {
            root,
            cpuinfo: text(root, "/proc/cpuinfo").map(|text| CpuInfo::parse(&text)),
            command_line: text(root, "/proc/cmdline").map(|text| CommandLine::parse(&text)),
            config: KernelConfig::find(root),
            cgroups: Cgroups::find(root),
            online: online.value().cloned().unwrap_or_else(|| CpuList::single(0)),
        }
    }

    /// A file's text without the white space and the NULs at its end.
    pub(crate) fn text(&self, path: &str) -> Fact<String> {
        text(self.root, path)
    }

    /// A file of one word; an empty one is absent.
    pub(crate) fn word(&self, path: &str) -> Fact<String> {
        self.text(path).and_then(|text, origin| match text.as_str() {
            "" => Fact::absent(origin),
            _ => Fact::known(text, origin),
        })
    }

    /// A device that gives one number of four bytes; a captured one is text.
    pub(crate) fn device_number(&self, path: &str) -> Fact<String> {
        match self.root.read_device_number(path) {
            Read::Text(text) => Fact::known(text.trim().to_owned(), path),
            Read::Absent => Fact::absent(path),
            Read::Unreadable { why } => Fact::unreadable(path, why),
        }
    }

    /// A file as a value; text that `parse` does not take is unreadable.
    pub(crate) fn parsed<T>(&self, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
        parsed(self.root, path, parse)
    }

    /// A file of one CPU list.
    pub(crate) fn cpu_list(&self, path: &str) -> Fact<CpuList> {
        self.parsed(path, cpu_list)
    }

    /// The value of a kernel parameter's last occurrence.
    pub(crate) fn parameter(&self, name: &str) -> Fact<String> {
        let origin = format!("/proc/cmdline ({name}=)");
        match &self.command_line {
            Fact::Known { value, .. } => match value.value(name) {
                Some(value) => Fact::known(value.to_owned(), origin),
                None => Fact::absent(origin),
            },
            Fact::Absent { .. } => Fact::absent(origin),
            Fact::Unreadable { why, .. } => Fact::unreadable(origin, why),
        }
    }
}

/// One number, signed or not.
pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

/// `0` or `1`, `N` or `Y`.
pub(crate) fn switch(text: &str) -> Option<bool> {
    match text.trim() {
        "0" | "N" => Some(false),
        "1" | "Y" => Some(true),
        _ => None,
    }
}

/// A list as the kernel prints it. Older kernels print `(null)` for a mask that was never made.
pub(crate) fn cpu_list(text: &str) -> Option<CpuList> {
    match text.trim() {
        "(null)" => Some(CpuList::new()),
        text => CpuList::parse(text, MAX_CPUS - 1).ok(),
    }
}

/// The word in brackets of `always [madvise] never`.
pub(crate) fn bracketed(text: &str, open: char, close: char) -> Option<String> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close)?.0.to_owned())
}

pub(crate) fn text(root: &Root, path: &str) -> Fact<String> {
    match root.read(path) {
        Read::Text(text) => {
            let end = |c: char| c.is_whitespace() || c == '\0';
            Fact::known(text.trim_end_matches(end).to_owned(), path)
        }
        Read::Absent => Fact::absent(path),
        Read::Unreadable { why } => Fact::unreadable(path, why),
    }
}

fn parsed<T>(root: &Root, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
    text(root, path).and_then(|text, origin| match parse(&text) {
        Some(value) => Fact::known(value, origin),
        None => {
            let start: String = text.chars().take(40).collect();
            Fact::unreadable(origin, format!("cannot parse '{}'", start.escape_debug()))
        }
    })
}
