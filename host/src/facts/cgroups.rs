//! Control groups: where the groups are that this process is in.

use super::text;
use crate::fact::Fact;
use crate::root::Root;

/// Where the groups are.
///
/// Both versions of control groups can be mounted at once, with controllers split between them
/// (cgroups(7)); `/proc/self/cgroup` says the group, `/proc/self/mountinfo` where it can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cgroups {
    /// Of version 1, `cpu` controller.
    pub cpu_v1: Fact<Group>,
    /// Of version 1, `cpuset` controller.
    pub cpuset_v1: Fact<Group>,
    /// Of version 2.
    pub v2: Fact<Group>,
    /// The lines of `/proc/self/cgroup` that count, for the signs of a container.
    pub text: Fact<String>,
    /// True where the root directory is a disk mounted as a whole, as on a machine of its own.
    pub root_is_disk: bool,
}

/// A group: the directory that is its hierarchy's top as seen from here, and its own below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub mount: String,
    /// Empty at the top, else with a leading `/`.
    below: String,
}

impl Group {
    /// The directories from the own group up to the top.
    pub(super) fn upwards(&self) -> impl Iterator<Item = String> + '_ {
        std::iter::successors(Some(self.below.as_str()), |below| {
            below.rfind('/').map(|slash| &below[..slash])
        })
        .map(|below| format!("{}{below}", self.mount))
    }
}

impl Cgroups {
    pub(crate) fn find(root: &Root) -> Self {
        let groups = text(root, "/proc/self/cgroup").map(|text| {
            text.lines().filter(|line| is_group_of_interest(line)).collect::<Vec<_>>().join("\n")
        });
        let mounts = text(root, "/proc/self/mountinfo");
        let find = |controller: &str| match (&groups, &mounts) {
            (Fact::Known { value: groups, .. }, Fact::Known { value: mounts, .. }) => {
                match group(groups, mounts, controller) {
                    Some(group) => Fact::known(group, "/proc/self/mountinfo"),
                    None => Fact::absent(match controller {
                        "" => "/proc/self/mountinfo (no control groups of version 2)".to_owned(),
                        name => format!("/proc/self/mountinfo (no {name} group of version 1)"),
                    }),
                }
            }
            (Fact::Unreadable { origin, why }, _) | (_, Fact::Unreadable { origin, why }) => {
                Fact::unreadable(origin, why)
            }
            _ => Fact::absent("/proc/self/cgroup"),
        };
        Self {
            cpu_v1: find("cpu"),
            cpuset_v1: find("cpuset"),
            v2: find(""),
            root_is_disk: mounts.value().is_some_and(|mounts| mounts.lines().any(is_whole_disk)),
            text: groups.clone(),
        }
    }
}

/// True for a line of `/proc/self/mountinfo` that mounts the root directory.
pub(crate) fn is_root_mount(line: &str) -> bool {
    line.split(' ').nth(4) == Some("/")
}

fn is_whole_disk(line: &str) -> bool {
    let source = line.split_once(" - ").and_then(|(_, system)| system.split(' ').nth(1));
    let whole = line.split(' ').nth(3) == Some("/");
    is_root_mount(line) && whole && source.is_some_and(|source| source.starts_with("/dev/"))
}

/// True for a line of `/proc/self/cgroup` about version 2 or the cpu and cpuset controllers.
pub(crate) fn is_group_of_interest(line: &str) -> bool {
    let names = line.split(':').nth(1).unwrap_or_default();
    line.starts_with("0::") || names.split(',').any(|name| matches!(name, "cpu" | "cpuset"))
}

/// Finds a controller's group; the empty name stands for version 2.
fn group(groups: &str, mounts: &str, controller: &str) -> Option<Group> {
    let path = groups.lines().find_map(|line| {
        let (id, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        let found = match controller {
            "" => id == "0" && names.is_empty(),
            _ => names.split(',').any(|name| name == controller),
        };
        found.then_some(path)
    })?;
    let mount = mounts.lines().find_map(|line| Mount::of(line, controller))?;
    // The mount may show a part of the hierarchy only, as in a container.
    let below = path.strip_prefix(mount.top.trim_end_matches('/')).unwrap_or("");
    let safe = !path.split('/').any(|part| part == "..");
    let below = if safe { below.trim_end_matches('/') } else { "" };
    Some(Group { mount: mount.point.to_owned(), below: below.to_owned() })
}

struct Mount<'a> {
    top: &'a str,
    point: &'a str,
}

impl<'a> Mount<'a> {
    fn of(line: &'a str, controller: &str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (top, point) = (fields.next()?, fields.next()?);
        let mut system = system.split(' ');
        let kind = system.next()?;
        let options = system.nth(1).unwrap_or_default();
        let found = match controller {
            "" => kind == "cgroup2",
            _ => kind == "cgroup" && options.split(',').any(|option| option == controller),
        };
        found.then_some(Self { top, point })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    #[test]
    fn finds_groups_of_both_versions() {
        let groups = "3:cpuset:/\n1:cpu,cpuacct:/user.slice\n0::/user.slice/a.scope";
        let find = |controller| group(groups, HYBRID, controller).unwrap();
        assert_eq!(find("cpuset").upwards().collect::<Vec<_>>(), ["/sys/fs/cgroup/cpuset"]);
        assert_eq!(
            find("cpu").upwards().collect::<Vec<_>>(),
            ["/sys/fs/cgroup/cpu,cpuacct/user.slice", "/sys/fs/cgroup/cpu,cpuacct"]
        );
        assert_eq!(find("").upwards().count(), 3);
        assert_eq!(group(groups, HYBRID, "memory"), None);
    }

    #[test]
    fn a_container_sees_a_part() {
        let mounts = "9 8 0:7 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw";
        let found = group("0::/docker/abc/x", mounts, "").unwrap();
        assert_eq!(found, Group { mount: "/sys/fs/cgroup".into(), below: "/x".into() });
        let outside = group("0::/../other", mounts, "").unwrap();
        assert_eq!(outside.below, "");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(
            groups in "[0-9:/a-z,.\n]{0,60}",
            mounts in "[a-z0-9 /:,\n-]{0,90}",
        ) {
            let _ = group(&groups, &mounts, "cpu").map(|g| g.upwards().count());
        }
    }
}
