//! Isolated CPUs: by boot parameter, and by partitions of control groups.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cgroups::Group;
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
    /// CPUs in isolated cpuset partitions, by control groups of version 2; where these have none,
    /// the CPUs of the own group of version 1, where no group balances their load.
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

/// Starts of the names of a group's own files; all else in its directory is a group.
const GROUP_FILES: [&str; 10] =
    ["cgroup.", "cpu.", "cpuset.", "dmem.", "hugetlb.", "io.", "irq.", "memory.", "misc.", "pids."];

/// The CPUs that control groups isolate, as far as is seen from here.
fn by_groups(source: &Source<'_>) -> Fact<CpuList> {
    let groups = &source.cgroups;
    let of_version_2 = groups.v2.clone().and_then(|group, _| partitioned(source, &group.mount));
    let own = groups.cpuset_v1.value().filter(|_| matches!(of_version_2, Fact::Absent { .. }));
    own.and_then(|own| unbalanced(source, own)).unwrap_or(of_version_2)
}

/// The CPUs of the own group of version 1, where neither that nor one above balances the load of
/// its CPUs, nor one beside them does (Linux, admin-guide/cgroup-v1/cpusets, section 1.7); `None`
/// at the top, which has all CPUs, and where one of them does.
fn unbalanced(source: &Source<'_>, own: &Group) -> Option<Fact<CpuList>> {
    const FLAG: &str = "cpuset.sched_load_balance";
    const CPUS: &str = "cpuset.effective_cpus";
    let groups: Vec<String> = own.upwards().collect();
    let [lowest, .., _top] = &groups[..] else { return None };
    let is_off = |group: &String| {
        source.text(&format!("{group}/{FLAG}")).value().is_some_and(|flag| flag.trim() == "0")
    };
    if !groups.iter().all(is_off) {
        return None;
    }
    let cpus = source.cpu_list(&format!("{lowest}/{CPUS}"));
    let root = source.root;
    let balances = |group: &String| {
        let text = |file| match root.read_unnoted(&format!("{group}/{file}")) {
            Read::Text(text) => Some(text),
            Read::Absent | Read::Unreadable { .. } => None,
        };
        let shares = || {
            let others = cpu_list(&text(CPUS)?)?;
            Some(!others.intersection(cpus.value()?).is_empty())
        };
        text(FLAG).is_some_and(|flag| flag.trim() == "1") && shares() == Some(true)
    };
    let beside = groups[1..].iter().flat_map(|above| match root.list_unnoted(above) {
        Listing::Names(names) => names.into_iter().map(|name| format!("{above}/{name}")).collect(),
        Listing::Absent | Listing::Unreadable { .. } => Vec::new(),
    });
    let mut beside = beside.take(MAX_GROUPS);
    (cpus.is_known() && !beside.any(|group| balances(&group))).then_some(cpus)
}

/// The CPUs in isolated partitions of the groups at `mount`: by the kernel's list, or before there
/// was one, by what each partition says of itself; absent where this kernel has no such partitions.
fn partitioned(source: &Source<'_>, mount: &str) -> Fact<CpuList> {
    let list = source.cpu_list(&format!("{mount}/cpuset.cpus.isolated"));
    if !matches!(list, Fact::Absent { .. }) {
        return list;
    }
    let release = release_numbers(source);
    if release.is_some_and(|release| release < PARTITIONS_SINCE) {
        return list;
    }
    let kind = source.text(&format!("{mount}/cgroup.type"));
    if kind.is_known() {
        // The root has no such file.
        return Fact::unreadable(kind.origin(), NOT_THE_ROOT);
    }
    let has_cpuset = |text: String| text.split_ascii_whitespace().any(|word| word == "cpuset");
    source.text(&format!("{mount}/cgroup.controllers")).map(has_cpuset).and_then(
        |available, origin| match release {
            _ if !available => list,
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
    )
}

/// The CPUs of the isolated partitions below the group at `mount`. A capture has only that, as one
/// group of a name of its own: the others' names tell whose machine it is.
fn partitions(source: &Source<'_>, mount: &str, release: (u32, u32)) -> Fact<CpuList> {
    let found = isolated_below(source.root, mount, release >= REMOTE_PARTITIONS_SINCE);
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
/// Partitions hang together, each below another one, but for those that are `remote`.
fn isolated_below(root: &Root, mount: &str, remote: bool) -> Result<CpuList, String> {
    let mut isolated = CpuList::new();
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
            let state = root.read_unnoted(&format!("{group}/cpuset.cpus.partition"));
            // Without the file the group has no CPUs of its own, nor do those below it.
            let Read::Text(state) = state else { continue };
            match state.trim_end() {
                "isolated" => match root.read_unnoted(&format!("{group}/cpuset.cpus.effective")) {
                    Read::Text(text) => {
                        let cpus = cpu_list(&text).ok_or_else(|| not_parsed(&text))?;
                        isolated = isolated.union(&cpus);
                    }
                    Read::Absent => {}
                    Read::Unreadable { why } => return Err(why),
                },
                "root" => {}
                _ if remote => {}
                _ => continue,
            }
            above.push(group);
        }
    }
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
        assert!(absent(&isolated("5.10.0\n", &[controllers, on])));
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
    fn a_group_of_version_1_that_nobody_balances_is_isolated() {
        let mounts = "3 0 0:3 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let isolated = |own: &str, group_flag: &str, top_flag: &str, others: &str| {
            let own = format!("3:cpuset:{own}\n0::/\n");
            let files = [
                ("/proc/self/cgroup", own.as_str()),
                ("/proc/self/mountinfo", mounts),
                ("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", top_flag),
                ("/sys/fs/cgroup/cpuset/punctual.isolated/cpuset.sched_load_balance", group_flag),
                ("/sys/fs/cgroup/cpuset/punctual.isolated/cpuset.effective_cpus", "1\n"),
                ("/sys/fs/cgroup/cpuset/punctual.others/cpuset.sched_load_balance", "1\n"),
                ("/sys/fs/cgroup/cpuset/punctual.others/cpuset.effective_cpus", others),
            ];
            let facts = MachineFacts::collect(&Tree::of(&files).root());
            let cpus = &facts.isolation.cpuset_isolated_cpus;
            (cpus.value().map(ToString::to_string), facts.isolation.isolated().to_string())
        };
        let inside = isolated("/punctual.isolated", "0\n", "0\n", "0,2-3\n");
        assert_eq!(inside, (Some("1".to_owned()), "1".to_owned()));
        let none = (None, String::new());
        // Outside of it, with a balance of its own or above, and beside one that balances its CPU.
        assert_eq!(isolated("/", "0\n", "0\n", "0,2-3\n"), none);
        assert_eq!(isolated("/punctual.isolated", "1\n", "0\n", "0,2-3\n"), none);
        assert_eq!(isolated("/punctual.isolated", "0\n", "1\n", "0,2-3\n"), none);
        assert_eq!(isolated("/punctual.isolated", "0\n", "0\n", "0-3\n"), none);
    }
}
