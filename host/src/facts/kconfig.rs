//! The kernel's configuration, from the places where distributions leave it. Reads through the
//! root only; knows no option's meaning.

use super::source::text;
use crate::fact::Fact;
use crate::root::{Read, Root};
use std::collections::BTreeMap;

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

    pub(crate) fn parse(text: &str) -> Self {
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

    /// Whether an option is built in.
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
