//! The kernel as it was built: release, version, tick, the options that decide what is possible.
//! Reads `/proc/sys/kernel` and the kernel configuration through the source.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Source, number, switch, text};
use crate::fact::Fact;
use crate::root::{Read, Root};

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
    /// True where control groups have a real-time budget, which starts at nothing.
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

impl Kernel {
    /// `uname -r` and `uname -m` of the kernel that runs here; `None` where they cannot be read, as
    /// the second before 6.1.
    pub fn uname(root: &Root) -> [Option<String>; 2] {
        ["osrelease", "arch"]
            .map(|name| text(root, &format!("/proc/sys/kernel/{name}")).value().cloned())
    }
}

/// `uname -r`. `/proc/version` is the second choice, as it also tells who built the kernel.
fn release(source: &Source<'_>) -> Fact<String> {
    source.word("/proc/sys/kernel/osrelease").or_else(|| {
        source
            .parsed("/proc/version", |text| text.split_ascii_whitespace().nth(2).map(str::to_owned))
    })
}

/// Major and minor number of the kernel; `None` where it does not say.
pub(crate) fn release_numbers(source: &Source<'_>) -> Option<(u32, u32)> {
    release(source).value().and_then(|release| numbers(release))
}

/// `uname -v`.
pub(super) fn version(source: &Source<'_>) -> Fact<String> {
    source.word("/proc/sys/kernel/version").or_else(|| {
        source.parsed("/proc/version", |text| text.find('#').map(|at| text[at..].to_owned()))
    })
}

/// Major and minor number of a release such as `6.12.48+deb13-rt-amd64`.
fn numbers(release: &str) -> Option<(u32, u32)> {
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

/// The options that are set, without `CONFIG_`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KernelConfig {
    options: BTreeMap<String, String>,
}

impl KernelConfig {
    /// The first that is found of `/proc/config.gz`, `/boot/config-RELEASE` and
    /// `/lib/modules/RELEASE/config`.
    pub(crate) fn find(root: &Root) -> Fact<Self> {
        let mut found = Self::at(root, "/proc/config.gz");
        let release = text(root, "/proc/sys/kernel/osrelease");
        if let Some(release) = release.value() {
            for path in
                [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]
            {
                found = found.or_else(|| Self::at(root, &path));
            }
            if let Fact::Absent { origin } = &mut found {
                *origin = format!("/proc/config.gz, /boot/config-{release}");
            }
        }
        found
    }

    fn at(root: &Root, path: &str) -> Fact<Self> {
        match root.read_compressed(path) {
            Read::Text(text) => Fact::known(Self::parse(&text), path),
            Read::Absent => Fact::absent(path),
            Read::Unreadable { why } => Fact::unreadable(path, why),
        }
    }

    fn parse(text: &str) -> Self {
        let options = text.lines().filter_map(|line| {
            let (name, value) = line.trim().strip_prefix("CONFIG_")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        Self { options: options.collect() }
    }

    /// An option's value as written: `y`, `m`, a number, a quoted string.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// True where an option is built in.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.value(name) == Some("y")
    }
}

/// A fact that the configuration decides: `name` says which option in the origin.
pub(crate) fn configured<T>(
    config: &Fact<KernelConfig>,
    name: &str,
    decide: impl FnOnce(&KernelConfig) -> Option<T>,
) -> Fact<T> {
    match config {
        Fact::Known { value, origin } => {
            let origin = format!("{origin} ({name})");
            match decide(value) {
                Some(value) => Fact::known(value, origin),
                None => Fact::absent(origin),
            }
        }
        Fact::Absent { origin } => Fact::absent(origin),
        Fact::Unreadable { origin, why } => Fact::unreadable(origin, why),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kernel, numbers};
    use crate::root::Root;

    #[test]
    fn the_kernel_that_runs_tells_its_release() {
        let [release, _] = Kernel::uname(&Root::live());
        assert!(release.is_some_and(|release| release.contains('.') && release.trim() == release));
    }

    #[test]
    fn numbers_of_a_release() {
        assert_eq!(numbers("6.12.48+deb13-rt-amd64"), Some((6, 12)));
        assert_eq!(numbers("7.0-rc1"), Some((7, 0)));
        assert_eq!(numbers("linux"), None);
    }
}
