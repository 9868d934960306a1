//! What the kernel wrote about its parameters while it started. Reads through the root.

use crate::fact::Fact;
use crate::root::{Read, Root};

/// Where the log is in a captured tree; where Debian's `dmesg.service` keeps that of the boot.
pub(crate) const KERNEL_LOG: &str = "/var/log/dmesg";

/// How lines begin, or what they contain, that rules look at.
const RELEVANT: &[&str] = &[
    "Linux version ",
    "Unknown kernel command line parameters",
    "Housekeeping:",
    "isolcpus:",
    "NO_HZ:",
    "Offload RCU callbacks",
    "Dynamic Preempt:",
    "Malformed early option",
    "Marking TSC unstable",
    "clocksource: Switched",
    "PCIe ASPM is disabled",
];

/// The kernel's log of this boot, as far as rules look at it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelLog {
    /// Whether the log reaches back to the start of the kernel.
    pub complete: bool,
    /// The lines without their times.
    pub lines: Vec<String>,
}

impl KernelLog {
    fn parse(text: &str) -> Self {
        let lines: Vec<String> = text.lines().filter(|line| is_relevant(line)).map(plain).collect();
        Self { complete: lines.iter().any(|line| line.starts_with("Linux version ")), lines }
    }

    /// What follows `start` in the first line that has it.
    pub fn after(&self, start: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| Some(line.split_once(start)?.1.trim()))
    }

    /// The words of the command line that the kernel took for none of its parameters; `None`
    /// where the log does not tell: it is cut, or the kernel is older than Linux 5.14.
    pub fn unknown_parameters(&self, release: Option<(u32, u32)>) -> Option<Vec<&str>> {
        match self.after("Unknown kernel command line parameters \"") {
            Some(rest) => {
                Some(rest.split('"').next().unwrap_or_default().split_whitespace().collect())
            }
            None => (self.complete && release? >= (5, 14)).then(Vec::new),
        }
    }
}

fn is_relevant(line: &str) -> bool {
    RELEVANT.iter().any(|mark| line.contains(mark))
}

/// The text of a log that a capture keeps.
pub(crate) fn relevant(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| is_relevant(line)).collect()
}

/// A line without its level and its time.
fn plain(line: &str) -> String {
    let line = line.strip_prefix('<').and_then(|rest| rest.split_once('>')).map_or(line, |l| l.1);
    let rest = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    rest.map_or(line, |(_, text)| text).to_owned()
}

pub(super) fn read(root: &Root) -> Fact<KernelLog> {
    match root.read_kernel_log(KERNEL_LOG) {
        Read::Text(text) => Fact::known(KernelLog::parse(&text), "dmesg"),
        Read::Absent => Fact::absent("dmesg"),
        Read::Unreadable { why } => Fact::unreadable("dmesg", why),
    }
}
