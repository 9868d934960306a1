//! The control groups that keep CPUs for one command: of version 2 an isolated partition, of
//! version 1 two cpusets (kernel documents admin-guide/cgroup-v2 and cgroup-v1/cpusets).
//! Reads through the root; makes nothing.

use crate::facts::{Cgroups, PARTITIONS_SINCE};
use crate::root::Read;
use crate::{CpuList, Root};

/// The name of the group of the command.
const GROUP: &str = "punctual.isolated";
/// The name of the group of all others, in version 1.
const OTHERS: &str = "punctual.others";

/// The files written in a group, by name; the empty one is the group itself.
const IN_GROUP: [&str; 5] =
    ["", "cpuset.cpus", "cpuset.cpus.partition", "cpuset.mems", "cpuset.sched_load_balance"];
/// The files written in the group above.
const ABOVE: [&str; 2] = ["cgroup.subtree_control", "cpuset.sched_load_balance"];

/// The groups, and what is written into them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPartition {
    /// The group of the command; ends with a slash.
    pub group: String,
    /// The group of all other threads, in version 1, where no partition keeps them away.
    pub others: Option<String>,
    /// The group above.
    pub above: String,
    /// Paths and values, in this order. A path that ends with a slash is a group, to be made.
    pub settings: Vec<(String, String)>,
}

impl CpuPartition {
    /// The value of a group's setting once it is there.
    pub const MADE: &'static str = "made";

    /// Groups that keep `cpus` for a command and leave `others` for the rest. CPUs that the
    /// machine was booted without (`isolcpus=`) need no more than a group.
    ///
    /// # Errors
    /// Where this machine has no cpusets.
    pub fn of(
        root: &Root,
        (cpus, others): (&CpuList, &CpuList),
        booted: &CpuList,
        release: Option<(u32, u32)>,
    ) -> Result<Self, String> {
        let mut partition = Self::to_isolate(root, (cpus, others), release)?;
        let known = |(path, _): &(String, String)| Self::is_below(path, &partition.above);
        debug_assert!(partition.settings.iter().all(known), "{:?}", partition.settings);
        if cpus.difference(booted).is_empty() {
            // Some kernels (6.12) refuse a partition of such CPUs.
            let needless = ["cpuset.cpus.partition", "cpuset.sched_load_balance"];
            let rest = partition.others.take();
            partition.settings.retain(|(path, _)| {
                let of_rest = rest.as_ref().is_some_and(|rest| path.starts_with(rest));
                !of_rest && !needless.iter().any(|name| path.ends_with(name))
            });
        }
        Ok(partition)
    }

    /// True for a path that [`CpuPartition::of`] may name, where the groups are mounted.
    pub(super) fn has(path: &str, root: &Root) -> bool {
        let groups = Cgroups::find(root);
        let mounted = [groups.v2.value(), groups.cpuset_v1.value()];
        mounted.into_iter().flatten().any(|group| Self::is_below(path, &group.mount))
    }

    fn is_below(path: &str, above: &str) -> bool {
        let Some(rest) = path.strip_prefix(above).and_then(|rest| rest.strip_prefix('/')) else {
            return false;
        };
        match rest.split_once('/') {
            None => ABOVE.contains(&rest),
            Some((group, inside)) => [GROUP, OTHERS].contains(&group) && IN_GROUP.contains(&inside),
        }
    }

    fn to_isolate(
        root: &Root,
        (cpus, others): (&CpuList, &CpuList),
        release: Option<(u32, u32)>,
    ) -> Result<Self, String> {
        let groups = Cgroups::find(root);
        let text = |path: String| match root.read(&path) {
            Read::Text(text) => text,
            _ => String::new(),
        };
        if let Some(above) = groups.v2.value().map(|group| group.mount.clone()) {
            let has = |file: &str| {
                text(format!("{above}/{file}")).split_whitespace().any(|word| word == "cpuset")
            };
            if has("cgroup.controllers") {
                let is_on = has("cgroup.subtree_control");
                return Ok(Self::second(above, cpus, release, is_on));
            }
        }
        match groups.cpuset_v1.value() {
            Some(group) => {
                let memory = text(format!("{}/cpuset.mems", group.mount));
                Ok(Self::first(&group.mount, (cpus, others), memory.trim()))
            }
            None => Err("no control groups with the controller 'cpuset' are mounted; a container \
                         has them only where its host allows it"
                .to_owned()),
        }
    }

    fn second(above: String, cpus: &CpuList, release: Option<(u32, u32)>, is_on: bool) -> Self {
        let group = format!("{above}/{GROUP}/");
        let kind = match release {
            Some(release) if release < PARTITIONS_SINCE => "root",
            _ => "isolated",
        };
        let mut settings = Vec::new();
        if !is_on {
            settings.push((format!("{above}/cgroup.subtree_control"), "+cpuset".to_owned()));
        }
        settings.extend([
            (group.clone(), Self::MADE.to_owned()),
            (format!("{group}cpuset.cpus"), cpus.to_string()),
            (format!("{group}cpuset.cpus.partition"), kind.to_owned()),
        ]);
        Self { group, others: None, above, settings }
    }

    fn first(above: &str, (cpus, others): (&CpuList, &CpuList), memory: &str) -> Self {
        let [group, rest] = [GROUP, OTHERS].map(|name| format!("{above}/{name}/"));
        let mut settings = Vec::new();
        for (group, cpus) in [(&rest, others), (&group, cpus)] {
            settings.extend([
                (group.clone(), Self::MADE.to_owned()),
                (format!("{group}cpuset.mems"), memory.to_owned()),
                (format!("{group}cpuset.cpus"), cpus.to_string()),
            ]);
        }
        // The scheduler's domains are those of the groups that balance: of all CPUs, or of the
        // others alone.
        settings.extend([
            (format!("{group}cpuset.sched_load_balance"), "0".to_owned()),
            (format!("{above}/cpuset.sched_load_balance"), "0".to_owned()),
        ]);
        Self { group, others: Some(rest), above: above.to_owned(), settings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const V1: &str = "30 23 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
    const V2: &str = "33 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";

    fn of(files: &[(&str, &str)], release: (u32, u32)) -> Result<CpuPartition, String> {
        booted(files, "", release)
    }

    fn booted(
        files: &[(&str, &str)],
        isolated: &str,
        release: (u32, u32),
    ) -> Result<CpuPartition, String> {
        let list = |text: &str| CpuList::parse(text, 3).unwrap_or_default();
        let cpus = (&list("2-3"), &list("0-1"));
        CpuPartition::of(&Tree::of(files).root(), cpus, &list(isolated), Some(release))
    }

    fn shown(partition: &CpuPartition) -> Vec<String> {
        partition.settings.iter().map(|(path, value)| format!("{path}={value}")).collect()
    }

    #[test]
    fn version_2_has_a_partition() {
        let files = [
            ("/proc/self/cgroup", "0::/user.slice\n"),
            ("/proc/self/mountinfo", V2),
            ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n"),
            ("/sys/fs/cgroup/cgroup.subtree_control", "cpu\n"),
        ];
        let partition = of(&files, (6, 12)).unwrap();
        let group = "/sys/fs/cgroup/punctual.isolated/";
        let expected = [
            "/sys/fs/cgroup/cgroup.subtree_control=+cpuset".to_owned(),
            format!("{group}=made"),
            format!("{group}cpuset.cpus=2-3"),
            format!("{group}cpuset.cpus.partition=isolated"),
        ];
        assert_eq!(shown(&partition), expected);
        assert_eq!(partition.others, None);
        let old = of(&files, (5, 10)).unwrap();
        assert!(shown(&old).last().unwrap().ends_with("partition=root"));
        let on =
            [files[0], files[1], files[2], ("/sys/fs/cgroup/cgroup.subtree_control", "cpuset")];
        assert_eq!(shown(&of(&on, (6, 12)).unwrap()), expected[1..]);
        let already = booted(&files, "1-3", (6, 12)).unwrap();
        assert_eq!(shown(&already), expected[..3]);
        assert_eq!(shown(&booted(&files, "3", (6, 12)).unwrap()), expected);
    }

    #[test]
    fn version_1_has_a_group_for_the_others_too() {
        let files = [
            ("/proc/self/cgroup", "3:cpuset:/\n0::/\n"),
            ("/proc/self/mountinfo", V1),
            ("/sys/fs/cgroup/cpuset/cpuset.mems", "0\n"),
        ];
        let partition = of(&files, (6, 12)).unwrap();
        let writes = shown(&partition);
        assert_eq!(writes.len(), 8);
        assert_eq!(writes[0], "/sys/fs/cgroup/cpuset/punctual.others/=made");
        assert_eq!(writes[2], "/sys/fs/cgroup/cpuset/punctual.others/cpuset.cpus=0-1");
        assert_eq!(writes[7], "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance=0");
        let already = booted(&files, "2-3", (6, 12)).unwrap();
        assert_eq!(shown(&already), writes[3..6]);
        assert_eq!(already.others, None);
    }

    #[test]
    fn without_cpusets_the_reason_is_given() {
        let why = of(&[("/proc/self/cgroup", "0::/\n"), ("/proc/self/mountinfo", V2)], (6, 12));
        assert!(why.unwrap_err().contains("'cpuset'"));
    }
}
