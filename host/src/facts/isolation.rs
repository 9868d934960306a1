//! Isolated CPUs: by boot parameter, and by partitions of control groups.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kernel::release_numbers;
use super::{CPUS, Source, cpu_list, not_parsed};
use crate::cpulist::CpuList;
use crate::fact::Fact;
use crate::root::{Listing, Read, Root, Seen};

/// Isolation by effect (lists that the kernel shows) and by wish (boot parameters).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Isolation {
    /// CPUs outside of the scheduler's load balancing.
    pub isolated_cpus: Fact<CpuList>,
    /// CPUs whose tick can stop while one task runs; absent where the kernel cannot do it.
    pub nohz_full_cpus: Fact<CpuList>,
    /// CPUs in isolated cpuset partitions, by control groups of version 2, before Linux 6.1 in
    /// partitions of one CPU; where these have none, the CPUs that no group of version 1 balances.
    pub cpuset_isolated_cpus: Fact<CpuList>,
    /// The value of `isolcpus=`, flags included.
    pub isolcpus_parameter: Fact<String>,
    /// The value of `nohz_full=`.
    pub nohz_full_parameter: Fact<String>,
    /// The value of `rcu_nocbs=`.
    pub rcu_nocbs_parameter: Fact<String>,
    /// The value of `irqaffinity=`.
    pub irqaffinity_parameter: Fact<String>,
}

impl Isolation {
    pub(super) fn collect(source: &Source<'_>) -> Self {
        Self {
            isolated_cpus: source.cpu_list(&format!("{CPUS}/isolated")),
            nohz_full_cpus: source.cpu_list(&format!("{CPUS}/nohz_full")),
            cpuset_isolated_cpus: by_groups(source),
            isolcpus_parameter: source.parameter("isolcpus"),
            nohz_full_parameter: source.parameter("nohz_full"),
            rcu_nocbs_parameter: source.parameter("rcu_nocbs"),
            irqaffinity_parameter: source.parameter("irqaffinity"),
        }
    }

    /// The CPUs that are isolated by boot parameter or by control group.
    pub fn isolated(&self) -> CpuList {
        let none = CpuList::new();
        let booted = self.isolated_cpus.value().unwrap_or(&none);
        booted.union(self.cpuset_isolated_cpus.value().unwrap_or(&none))
    }
}

/// The first kernel with cpuset partitions that are isolated; earlier ones have those with load
/// balancing.
pub(crate) const PARTITIONS_SINCE: (u32, u32) = (6, 1);

/// The first kernel whose root group lists their CPUs (`cpuset.cpus.isolated`).
const PARTITIONS_LISTED_SINCE: (u32, u32) = (6, 8);

/// The first kernel with partitions below groups that are none (`cpuset.cpus.exclusive`).
const REMOTE_PARTITIONS_SINCE: (u32, u32) = (6, 7);

/// The most groups that are looked at for partitions.
const MAX_GROUPS: usize = 2048;

/// Why a container cannot see the partitions of its host.
const NOT_THE_ROOT: &str = "not the root of the machine's control groups";

/// Starts of the names of a group's own files; all else in its directory may be a group.
const GROUP_FILES: [&str; 10] =
    ["cgroup.", "cpu.", "cpuset.", "dmem.", "hugetlb.", "io.", "irq.", "memory.", "misc.", "pids."];

/// The CPUs that control groups isolate, as far as is seen from here.
fn by_groups(source: &Source<'_>) -> Fact<CpuList> {
    let groups = &source.cgroups;
    let of_version_2 = groups.v2.clone().and_then(|group, _| partitioned(source, &group.mount));
    let own = groups.cpuset_v1.value().filter(|_| matches!(of_version_2, Fact::Absent { .. }));
    own.and_then(|own| unbalanced(source, &own.mount)).unwrap_or(of_version_2)
}

/// The switch of a group of version 1.
const BALANCE: &str = "cpuset.sched_load_balance";

/// Its CPUs.
const EFFECTIVE_V1: &str = "cpuset.effective_cpus";

/// The CPUs that no group of version 1 balances, of those at `mount` (Linux,
/// admin-guide/cgroup-v1/cpusets, section 1.7); `None` where the topmost one does, which has all. A
/// capture has those that are balanced as one group of a name of its own.
fn unbalanced(source: &Source<'_>, mount: &str) -> Option<Fact<CpuList>> {
    let switch = source.text(&format!("{mount}/{BALANCE}"));
    switch.value().filter(|text| text.trim() == "0")?;
    // The root alone has such a file.
    if !source.text(&format!("{mount}/cgroup.sane_behavior")).is_known() {
        return Some(Fact::unreadable(switch.origin(), NOT_THE_ROOT));
    }
    let found = balanced_below(source.root, mount);
    let effective = match &found {
        Ok(balanced) => Read::Text(format!("{balanced}\n")),
        Err(why) => Read::Unreadable { why: why.clone() },
    };
    let group = format!("{mount}/balanced");
    source.root.note(&format!("{group}/{BALANCE}"), Seen::File(Read::Text("1\n".to_owned())));
    source.root.note(&format!("{group}/{EFFECTIVE_V1}"), Seen::File(effective));
    let cpus = source.cpu_list(&format!("{mount}/{EFFECTIVE_V1}"));
    Some(cpus.and_then(|cpus, _| {
        let origin = format!("{mount}/*/{BALANCE}");
        match found {
            Ok(balanced) => Fact::known(cpus.difference(&balanced), origin),
            Err(why) => Fact::unreadable(origin, why),
        }
    }))
}

/// The CPUs that groups of version 1 below `mount` balance, wherever they lie; else why they are
/// not known. Below one that does, no group has others.
fn balanced_below(root: &Root, mount: &str) -> Result<CpuList, String> {
    let mut balanced = CpuList::new();
    each_group_below(root, mount, |group| {
        match root.read_unnoted(&format!("{group}/{BALANCE}")) {
            Read::Text(switch) if switch.trim() == "0" => return Ok(true),
            Read::Text(_) => {}
            Read::Absent => return Ok(false),
            Read::Unreadable { why } => return Err(why),
        }
        balanced = balanced.union(&effective(root, &format!("{group}/{EFFECTIVE_V1}"))?);
        Ok(false)
    })?;
    Ok(balanced)
}

/// The CPUs that a group shows; none where it has no such file.
fn effective(root: &Root, path: &str) -> Result<CpuList, String> {
    match root.read_unnoted(path) {
        Read::Text(text) => cpu_list(&text).ok_or_else(|| not_parsed(&text)),
        Read::Absent => Ok(CpuList::new()),
        Read::Unreadable { why } => Err(why),
    }
}

/// Shows each group below `mount` to `visit`, and those below it where that returns true.
///
/// # Errors
/// Why not all could be seen.
fn each_group_below(
    root: &Root,
    mount: &str,
    mut visit: impl FnMut(&str) -> Result<bool, String>,
) -> Result<(), String> {
    let mut above = vec![mount.to_owned()];
    let mut groups = 0;
    while let Some(group) = above.pop() {
        let names = match root.list_unnoted(&group) {
            Listing::Names(names) => names,
            Listing::Absent => continue,
            Listing::Unreadable { why } => return Err(why),
        };
        let is_group = |name: &String| !GROUP_FILES.iter().any(|start| name.starts_with(start));
        for name in names.into_iter().filter(is_group) {
            groups += 1;
            if groups > MAX_GROUPS {
                return Err(format!("more than {MAX_GROUPS} control groups"));
            }
            let group = format!("{group}/{name}");
            if visit(&group)? {
                above.push(group);
            }
        }
    }
    Ok(())
}

/// The CPUs in isolated partitions of the groups at `mount`: by the kernel's list, or before there
/// was one, by what each partition says of itself; absent where this kernel has no such partitions,
/// unless one is isolated in effect.
fn partitioned(source: &Source<'_>, mount: &str) -> Fact<CpuList> {
    let list = source.cpu_list(&format!("{mount}/cpuset.cpus.isolated"));
    if !matches!(list, Fact::Absent { .. }) {
        return list;
    }
    let release = release_numbers(source);
    let has_none = release.is_some_and(|release| release < PARTITIONS_SINCE);
    let kind = source.text(&format!("{mount}/cgroup.type"));
    if kind.is_known() {
        // The root has no such file.
        return if has_none { list } else { Fact::unreadable(kind.origin(), NOT_THE_ROOT) };
    }
    let has_cpuset = |text: String| text.split_ascii_whitespace().any(|word| word == "cpuset");
    let found = source.text(&format!("{mount}/cgroup.controllers")).map(has_cpuset).and_then(
        |available, origin| match release {
            _ if !available => list.clone(),
            Some(release) if release < PARTITIONS_LISTED_SINCE => {
                source.text(&format!("{mount}/cgroup.subtree_control")).map(has_cpuset).and_then(
                    |on, origin| match on {
                        true => partitions(source, mount, release),
                        // No group has CPUs of its own.
                        false => Fact::known(CpuList::new(), origin),
                    },
                )
            }
            // The list is the root's alone.
            _ => Fact::unreadable(origin, NOT_THE_ROOT),
        },
    );
    if has_none && found.value().is_some_and(CpuList::is_empty) { list } else { found }
}

/// The CPUs of the isolated partitions below the group at `mount`. A capture has only that, as one
/// group of a name of its own: the others' names tell whose machine it is.
fn partitions(source: &Source<'_>, mount: &str, release: (u32, u32)) -> Fact<CpuList> {
    let found = isolated_below(source.root, mount, release);
    let effective = match &found {
        Ok(isolated) if isolated.is_empty() => None,
        Ok(isolated) => Some(Read::Text(format!("{isolated}\n"))),
        Err(why) => Some(Read::Unreadable { why: why.clone() }),
    };
    if let Some(effective) = effective {
        let group = format!("{mount}/isolated-partitions");
        let state = Read::Text("isolated\n".to_owned());
        source.root.note(&format!("{group}/cpuset.cpus.partition"), Seen::File(state));
        source.root.note(&format!("{group}/cpuset.cpus.effective"), Seen::File(effective));
    }
    let origin = format!("{mount}/*/cpuset.cpus.partition");
    match found {
        Ok(isolated) => Fact::known(isolated, origin),
        Err(why) => Fact::unreadable(origin, why),
    }
}

/// The CPUs of the isolated partitions below the group at `mount`; else why they are not known.
/// Partitions hang together, each below another one, but for those that are `remote`. Each is a
/// scheduling domain of its own, so that one of a single CPU has none to balance with: before there
/// were isolated ones, no other was (Linux, admin-guide/cgroup-v2, `cpuset.cpus.partition`).
fn isolated_below(root: &Root, mount: &str, release: (u32, u32)) -> Result<CpuList, String> {
    let mut isolated = CpuList::new();
    each_group_below(root, mount, |group| {
        let state = root.read_unnoted(&format!("{group}/cpuset.cpus.partition"));
        // Without the file the group has no CPUs of its own, nor do those below it.
        let Read::Text(state) = state else { return Ok(false) };
        let cpus = || effective(root, &format!("{group}/cpuset.cpus.effective"));
        match state.trim_end() {
            "isolated" => isolated = isolated.union(&cpus()?),
            "root" if release < PARTITIONS_SINCE => {
                let cpus = cpus()?;
                if cpus.len() == 1 {
                    isolated = isolated.union(&cpus);
                }
            }
            "root" => {}
            _ => return Ok(release >= REMOTE_PARTITIONS_SINCE),
        }
        Ok(true)
    })?;
    Ok(isolated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::MachineFacts;
    use crate::testing::Tree;

    #[test]
    fn partitions_say_of_themselves_what_earlier_kernels_do_not_list() {
        let isolated = |release: &str, more: &[(&str, &str)]| {
            let common = [
                ("/proc/self/cgroup", "0::/\n"),
                ("/proc/self/mountinfo", "3 0 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("/proc/sys/kernel/osrelease", release),
                ("/sys/fs/cgroup/cgroup.procs", "1\n"),
                ("/sys/fs/cgroup/system.slice/cpuset.cpus.partition", "member\n"),
                ("/sys/fs/cgroup/system.slice/cpuset.cpus.effective", "0-1\n"),
                ("/sys/fs/cgroup/a/cpuset.cpus.partition", "isolated\n"),
                ("/sys/fs/cgroup/a/cpuset.cpus.effective", "2\n"),
                ("/sys/fs/cgroup/a/b/cpuset.cpus.partition", "isolated\n"),
                ("/sys/fs/cgroup/a/b/cpuset.cpus.effective", "3\n"),
                ("/sys/fs/cgroup/c/cpuset.cpus.partition", "isolated invalid (x)\n"),
                ("/sys/fs/cgroup/c/cpuset.cpus.effective", "4\n"),
                ("/sys/fs/cgroup/system.slice/d/cpuset.cpus.partition", "isolated\n"),
                ("/sys/fs/cgroup/system.slice/d/cpuset.cpus.effective", "5\n"),
            ];
            let files: Vec<_> = common.iter().chain(more).copied().collect();
            MachineFacts::collect(&Tree::of(&files).root())
                .isolation
                .cpuset_isolated_cpus
                .map(|cpus| cpus.to_string())
        };
        let controllers = ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n");
        let on = ("/sys/fs/cgroup/cgroup.subtree_control", "cpuset cpu\n");
        let off = ("/sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
        let found = isolated("6.1.0-30-rt-amd64\n", &[controllers, on]);
        assert_eq!(found.value().map(String::as_str), Some("2-3"));
        // Since 6.7 one may be below a group that is none.
        let found = isolated("6.7.0\n", &[controllers, on]);
        assert_eq!(found.value().map(String::as_str), Some("2-3,5"));
        let found = isolated("6.1.0-30-rt-amd64\n", &[controllers, off]);
        assert_eq!(found.value().map(String::as_str), Some(""));
        let absent = |fact: &Fact<String>| matches!(fact, Fact::Absent { .. });
        let cpu = ("/sys/fs/cgroup/cgroup.controllers", "cpu io\n");
        assert!(absent(&isolated("6.1.0\n", &[cpu, on])));
        // A container's own root has no list, and before there was one, a kind.
        assert!(isolated("6.8.0\n", &[controllers, on]).why().is_some());
        let kind = ("/sys/fs/cgroup/cgroup.type", "domain\n");
        for files in [[controllers, on, kind], [controllers, off, kind], [cpu, off, kind]] {
            let found = isolated("6.1.0\n", &files);
            assert_eq!(found.why(), Some(NOT_THE_ROOT), "{files:?}");
        }
    }

    #[test]
    fn before_there_were_isolated_partitions_one_of_a_single_cpu_is_isolated_in_effect() {
        let isolated = |release: &str, partitions: &[(&str, &str, &str)], more: &[(&str, &str)]| {
            let tree = Tree::of(&[
                ("/proc/self/cgroup", "0::/\n"),
                ("/proc/self/mountinfo", "3 0 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("/proc/sys/kernel/osrelease", release),
                ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n"),
                ("/sys/fs/cgroup/cgroup.subtree_control", "cpuset cpu\n"),
            ]);
            for (group, state, cpus) in partitions {
                tree.write(&format!("/sys/fs/cgroup/{group}/cpuset.cpus.partition"), state);
                tree.write(&format!("/sys/fs/cgroup/{group}/cpuset.cpus.effective"), cpus);
            }
            more.iter().for_each(|(path, text)| tree.write(path, text));
            let cpus = MachineFacts::collect(&tree.root()).isolation.cpuset_isolated_cpus;
            (cpus.value().map(ToString::to_string), matches!(cpus, Fact::Absent { .. }))
        };
        let none = (None, true);
        let is = |cpus: &str| (Some(cpus.to_owned()), false);
        let one = ("one", "root\n", "3\n");
        // Each has a domain of its own, within which the load of several CPUs is balanced.
        let two = ("two", "root\n", "1-2\n");
        let below = ("two/below", "root\n", "5\n");
        assert_eq!(isolated("5.10.0\n", &[one, two, below], &[]), is("3,5"));
        assert_eq!(isolated("5.10.0\n", &[two], &[]), none);
        assert_eq!(isolated("5.10.0\n", &[("bad", "root invalid\n", "3\n")], &[]), none);
        assert_eq!(isolated("5.10.0\n", &[], &[]), none);
        let kind = ("/sys/fs/cgroup/cgroup.type", "domain\n");
        assert_eq!(isolated("5.10.0\n", &[one], &[kind]), none);
        // Later kernels say which are.
        assert_eq!(isolated("6.1.0\n", &[one, two], &[]), is(""));
    }

    /// The CPUs that groups of version 1 leave unbalanced, of four; each group with its switch and
    /// its CPUs, the topmost by its switch alone.
    fn unbalanced_of(top: &str, groups: &[(&str, &str, &str)]) -> Fact<CpuList> {
        let mounts = "3 0 0:3 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let tree = Tree::of(&[
            ("/proc/self/cgroup", "3:cpuset:/\n0::/\n"),
            ("/proc/self/mountinfo", mounts),
            ("/sys/fs/cgroup/cpuset/cgroup.sane_behavior", "0\n"),
            ("/sys/fs/cgroup/cpuset/tasks", "1\n"),
        ]);
        for (group, switch, cpus) in [("", top, "0-3\n")].iter().chain(groups) {
            tree.write(&format!("/sys/fs/cgroup/cpuset{group}/{BALANCE}"), switch);
            tree.write(&format!("/sys/fs/cgroup/cpuset{group}/{EFFECTIVE_V1}"), cpus);
        }
        MachineFacts::collect(&tree.root()).isolation.cpuset_isolated_cpus
    }

    #[test]
    fn cpus_that_no_group_of_version_1_balances_are_isolated() {
        let isolated = |top: &str, groups: &[(&str, &str, &str)]| {
            unbalanced_of(top, groups).value().map(ToString::to_string)
        };
        let is = |cpus: &str| Some(cpus.to_owned());
        let own = ("/punctual.isolated", "0\n", "1\n");
        let others = ("/punctual.others", "1\n", "0,2-3\n");
        assert_eq!(isolated("0\n", &[own, others]), is("1"));
        // With a balance of its own, of the topmost, and beside one that balances its CPU.
        assert_eq!(isolated("0\n", &[("/punctual.isolated", "1\n", "1\n"), others]), is(""));
        assert_eq!(isolated("1\n", &[own, others]), None);
        assert_eq!(isolated("0\n", &[own, ("/punctual.others", "1\n", "0-3\n")]), is(""));
        // However deep they lie: those below one without, and none that one with leaves out.
        let slice = [
            ("/system", "1\n", "0-1\n"),
            ("/machine", "0\n", "2-3\n"),
            ("/machine/rt", "0\n", "3\n"),
            ("/machine/plain", "0\n", "2\n"),
        ];
        assert_eq!(isolated("0\n", &slice), is("2-3"));
        let deep = ("/machine/plain/inside", "1\n", "2\n");
        assert_eq!(isolated("0\n", &[&slice[..], &[deep]].concat()), is("3"));
        let within = ("/system/within", "0\n", "1\n");
        assert_eq!(isolated("0\n", &[&slice[..], &[within]].concat()), is("2-3"));
        assert_eq!(isolated("0\n", &[("/a", "1\n", "two\n")]), None);
    }

    #[test]
    fn below_the_root_of_version_1_nothing_is_known() {
        let mounts = "3 0 0:3 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let files = [
            ("/proc/self/cgroup", "3:cpuset:/\n0::/\n"),
            ("/proc/self/mountinfo", mounts),
            ("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "0\n"),
            ("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-3\n"),
            ("/sys/fs/cgroup/cpuset/moonbase/cpuset.sched_load_balance", "1\n"),
            ("/sys/fs/cgroup/cpuset/moonbase/cpuset.effective_cpus", "0-2\n"),
        ];
        let facts = |root: &Root| MachineFacts::collect(root).isolation.cpuset_isolated_cpus;
        let tree = Tree::of(&files);
        assert_eq!(facts(&tree.root()).why(), Some(NOT_THE_ROOT));
        tree.write("/sys/fs/cgroup/cpuset/cgroup.sane_behavior", "0\n");
        assert_eq!(facts(&tree.root()).value().map(ToString::to_string).as_deref(), Some("3"));
    }
}
