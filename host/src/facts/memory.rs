//! Memory: how much, whether it can be paged out, huge pages. Reads `/proc/meminfo` and
//! `/sys/kernel/mm`.

use super::source::{Source, bracketed, number};
use crate::fact::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// All that the kernel manages.
    pub memory_bytes: Fact<u64>,
    /// All swap space; 0 without any.
    pub swap_bytes: Fact<u64>,
    /// The mode of transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_hugepages: Fact<String>,
}

impl Memory {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        let meminfo = |name: &'static str| {
            source.parsed("/proc/meminfo", |text| kib(text, name)?.checked_mul(1024))
        };
        Self {
            memory_bytes: meminfo("MemTotal:"),
            swap_bytes: meminfo("SwapTotal:"),
            transparent_hugepages: source
                .parsed("/sys/kernel/mm/transparent_hugepage/enabled", |text| {
                    bracketed(text, '[', ']')
                }),
        }
    }
}

fn kib(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    number(line.trim().strip_suffix("kB")?)
}
