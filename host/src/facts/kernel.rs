//! The kernel as it was built: release, version, tick, the options that decide what is possible.
//! Reads `/proc/sys/kernel` and the kernel configuration through the source.

use super::kconfig::configured;
use super::source::{Source, number, switch};
use crate::fact::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// Its release, as `uname -r` says it.
    pub kernel: Fact<String>,
    /// Its build, as `uname -v` says it.
    pub kernel_version: Fact<String>,
    /// The architecture, as `uname -m` says it.
    pub architecture: Fact<String>,
    /// Ticks a second while a CPU is busy (`CONFIG_HZ`).
    #[serde(rename = "hz")]
    pub tick_hz: Fact<u32>,
    /// When the tick stops.
    pub no_hz: Fact<NoHz>,
    /// Whether control groups have a real-time budget, which starts at nothing.
    pub rt_group_sched: Fact<bool>,
}

/// When the tick stops, as configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoHz {
    /// Never.
    Periodic,
    /// On idle CPUs.
    Idle,
    /// On idle CPUs, and with `nohz_full=` on busy ones with one task.
    Full,
}

impl Kernel {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        Self {
            kernel: release(source),
            kernel_version: version(source),
            architecture: source.word("/proc/sys/kernel/arch"),
            tick_hz: configured(&source.config, "CONFIG_HZ", |config| {
                config.value("HZ").and_then(number)
            }),
            no_hz: configured(&source.config, "CONFIG_NO_HZ*", |config| {
                Some(if config.is_on("NO_HZ_FULL") {
                    NoHz::Full
                } else if config.is_on("NO_HZ_IDLE") {
                    NoHz::Idle
                } else {
                    NoHz::Periodic
                })
            }),
            rt_group_sched: rt_group_sched(source),
        }
    }
}

/// `uname -r`. `/proc/version` is the second choice, as it also tells who built the kernel.
pub(crate) fn release(source: &Source<'_>) -> Fact<String> {
    source.word("/proc/sys/kernel/osrelease").or_else(|| {
        source
            .parsed("/proc/version", |text| text.split_ascii_whitespace().nth(2).map(str::to_owned))
    })
}

/// `uname -v`.
pub(super) fn version(source: &Source<'_>) -> Fact<String> {
    source.word("/proc/sys/kernel/version").or_else(|| {
        source.parsed("/proc/version", |text| text.find('#').map(|at| text[at..].to_owned()))
    })
}

/// Major and minor number of a release such as `6.12.48+deb13-rt-amd64`.
pub(crate) fn release_numbers(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Built in, and not switched off: `CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED` and the parameter
/// `rt_group_sched=` came with Linux 6.16.
fn rt_group_sched(source: &Source<'_>) -> Fact<bool> {
    let name = "CONFIG_RT_GROUP_SCHED";
    let built = configured(&source.config, name, |config| Some(config.is_on("RT_GROUP_SCHED")));
    if built.value() != Some(&true) {
        return built;
    }
    if let Fact::Known { value, origin } = source.parameter("rt_group_sched")
        && let Some(on) = switch(&value)
    {
        return Fact::known(on, origin);
    }
    configured(&source.config, name, |config| {
        Some(!config.is_on("RT_GROUP_SCHED_DEFAULT_DISABLED"))
    })
}

#[cfg(test)]
mod tests {
    use super::release_numbers;

    #[test]
    fn numbers_of_a_release() {
        assert_eq!(release_numbers("6.12.48+deb13-rt-amd64"), Some((6, 12)));
        assert_eq!(release_numbers("7.0-rc1"), Some((7, 0)));
        assert_eq!(release_numbers("linux"), None);
    }
}
