//! The choice on machines built by code.

use super::*;
use crate::fact::Fact;
use crate::facts::Topology;
use crate::testing::Tree;

fn list(text: &str) -> CpuList {
    CpuList::parse(text, 63).unwrap()
}

/// `allowed`, `isolated`, `cpuset` on a machine of `online` CPUs in cores of `threads`.
fn machine(
    online: u32,
    threads: u32,
    allowed: &str,
    isolated: &str,
    cpuset: Option<&str>,
) -> MachineFacts {
    let mut facts = MachineFacts::collect(&Tree::new().root());
    let known = |text: &str| Fact::known(list(text), "test");
    let all = format!("0-{}", online - 1);
    facts.cpu.online_cpus = known(&all);
    facts.cpu.possible_cpus = known(&all);
    facts.limits.allowed_cpus = known(allowed);
    facts.isolation.isolated_cpus = known(isolated);
    if let Some(cpuset) = cpuset {
        facts.limits.cpuset_cpus = known(cpuset);
    }
    // As on many servers: CPU n and CPU n + online/threads share a core.
    let cores = online / threads;
    let core_cpus = (0..cores).map(|core| (0..threads).map(|t| core + t * cores).collect());
    let topology = Topology { packages: 1, cores, core_cpus: core_cpus.collect() };
    facts.cpu.topology = Fact::known(topology, "test");
    facts
}

#[test]
fn last_allowed_without_isolation() {
    let choice = choose(&machine(2, 1, "0-1", "", Some("0-1")));
    assert_eq!((choice.cpu, choice.why.as_str()), (1, "last allowed, none isolated"));
    assert_eq!((choice.helper, choice.only_cpu), (Some(0), false));
}

#[test]
fn isolated_although_not_in_the_first_affinity() {
    let choice = choose(&machine(4, 1, "0-2", "3", Some("0-3")));
    assert_eq!((choice.cpu, choice.why.as_str()), (3, "isolated"));
    assert_eq!(choice.helper, Some(0));
}

#[test]
fn an_affinity_set_on_purpose_is_kept() {
    let choice = choose(&machine(4, 1, "1", "3", Some("0-3")));
    assert_eq!(choice.cpu, 1);
    assert_eq!(choice.why, "the only one allowed, the isolated 3 not permitted");
    assert!(choice.only_cpu);
    let asked = choose(&machine(4, 1, "3", "2-3", Some("0-3")));
    assert_eq!((asked.cpu, asked.why.as_str()), (3, "isolated"));
}

#[test]
fn isolated_outside_of_the_cpuset_is_out_of_reach() {
    let choice = choose(&machine(4, 1, "0-2", "3", Some("0-2")));
    assert_eq!(
        (choice.cpu, choice.why.as_str()),
        (2, "last allowed, the isolated 3 not permitted")
    );
}

#[test]
fn a_core_isolated_as_a_whole_is_better() {
    // Cores: {0,4} {1,5} {2,6} {3,7}; of 7's core only one half is isolated.
    let choice = choose(&machine(8, 2, "0,1,3-5", "2,6-7", Some("0-7")));
    assert_eq!((choice.cpu, choice.why.as_str()), (6, "isolated"));
    let half = choose(&machine(8, 2, "0-6", "7", Some("0-7")));
    assert_eq!(half.cpu, 7);
    assert!(half.why.starts_with("isolated, but it shares its core"));
}

#[test]
fn the_helper_avoids_the_sibling() {
    let facts = machine(4, 2, "0-3", "", None);
    assert_eq!(helper_cpu(&list("0"), &facts), Some(1));
    assert_eq!(helper_cpu(&list("0-1"), &facts), Some(2), "a sibling, as nothing else is left");
    assert_eq!(helper_cpu(&list("0-3"), &facts), None);
    let isolated = machine(4, 1, "0-3", "1-3", None);
    assert_eq!(helper_cpu(&list("0"), &isolated), Some(1));
}

#[test]
fn nothing_known_is_cpu_0() {
    let choice = choose(&MachineFacts::collect(&Tree::new().root()));
    assert_eq!((choice.cpu, choice.only_cpu), (0, true));
}

#[test]
fn wrong_cpus_get_one_clear_line() {
    let mut facts = machine(4, 1, "0-3", "", Some("0-2"));
    facts.cpu.online_cpus = Fact::known(list("0,2-3"), "test");
    let line = |text: &str| parse_cpus(text, &facts).unwrap_err().to_string();
    assert_eq!(line("9"), "this machine has no CPU 9; it has 0-3");
    assert_eq!(line("0-1"), "CPU 1 is offline; online are 0,2-3");
    assert_eq!(line("3"), "CPU 3 is outside this process's cpuset, which has 0-2");
    assert_eq!(line(""), "the list names no CPU");
    assert!(line("one").starts_with("'one' is not a CPU list"));
    assert!(line("99999999999").contains("beyond the last CPU"));
    assert_eq!(parse_cpus("0,2", &facts), Ok(list("0,2")));
    assert_eq!(line("2-N"), "CPU 3 is outside this process's cpuset, which has 0-2");
}
