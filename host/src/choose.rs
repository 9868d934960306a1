//! Which CPU to measure on, and which one is left for the helpers. Pure: facts in, words out.

use crate::cpulist::{CpuList, CpuListError};
use crate::facts::MachineFacts;
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

/// The CPU to measure on, and the one for the helpers (drain, watchdog).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Choice {
    /// The CPU to measure on.
    pub cpu: u32,
    /// Why this one, in a few words.
    pub why: String,
    /// Where the helpers run; `None` when there is no other CPU.
    pub helper: Option<u32>,
    /// Why there, in a few words.
    pub helper_why: String,
    /// True where this process has one CPU only: then nothing can watch the loop from outside.
    pub only_cpu: bool,
}

/// Why a requested CPU cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CpuError {
    /// The text is no list, or names a CPU that cannot exist.
    #[error(transparent)]
    List(#[from] CpuListError),
    /// No CPU at all.
    #[error("the list names no CPU")]
    Empty,
    /// CPUs that this machine does not have.
    #[error("this machine has no CPU {cpus}; it has {possible}")]
    Unknown {
        /// Those of the list.
        cpus: CpuList,
        /// Those that can exist.
        possible: CpuList,
    },
    /// CPUs that are switched off.
    #[error("CPU {cpus} is offline; online are {online}")]
    Offline {
        /// Those of the list.
        cpus: CpuList,
        /// Those that are not.
        online: CpuList,
    },
    /// More whole cores than others can do without.
    #[error(
        "{wanted} whole {}: CPU {cpus} has {most} that can be spared, for the core of CPU 0 is \
         left to other tasks; single CPUs can be named in a list",
        if *wanted == 1 { "core" } else { "cores" }
    )]
    TooFewCores {
        /// Cores that are wanted.
        wanted: u32,
        /// The CPUs that can be chosen.
        cpus: CpuList,
        /// Their cores, without that of CPU 0.
        most: u32,
    },
    /// CPUs that the control group does not give.
    #[error("CPU {cpus} is outside this process's cpuset, which has {reachable}")]
    OutsideCpuset {
        /// Those of the list.
        cpus: CpuList,
        /// Those that can be chosen.
        reachable: CpuList,
    },
}

/// The facts that the choice is made from.
struct Known {
    online: CpuList,
    allowed: CpuList,
    isolated: CpuList,
    /// Isolated CPUs that may be chosen.
    quiet: CpuList,
}

impl Known {
    fn of(facts: &MachineFacts) -> Self {
        let online = facts.cpu.online_cpus.value().cloned();
        let allowed = facts.limits.allowed_cpus.value().cloned();
        let online = online.or_else(|| allowed.clone()).unwrap_or_else(|| CpuList::single(0));
        let allowed = allowed.map_or_else(|| online.clone(), |list| list.intersection(&online));
        let isolated = facts.isolation.isolated().intersection(&online);
        let cpuset = facts.limits.cpuset_cpus.value();
        let cpuset = cpuset.map_or_else(|| allowed.clone(), |list| list.intersection(&online));
        // With `isolcpus` every process starts without the isolated CPUs in its affinity, and may
        // take them. An affinity that is narrower than that was set on purpose and is kept.
        let narrowed = !cpuset.difference(&isolated).difference(&allowed).is_empty();
        let reachable = if narrowed { &allowed } else { &cpuset };
        let quiet = isolated.intersection(reachable);
        Self { online, allowed, isolated, quiet }
    }
}

/// Chooses the CPU to measure on: the last isolated one that can be used, best one whose core is
/// isolated as a whole; else the last one allowed.
pub fn choose(facts: &MachineFacts) -> Choice {
    let known = Known::of(facts);
    let whole_core = |&cpu: &u32| siblings(facts, cpu).difference(&known.isolated).is_empty();
    let isolated = known.quiet.iter().rev().find(whole_core).or_else(|| known.quiet.last());
    let (cpu, why) = match isolated {
        Some(cpu) if whole_core(&cpu) => (cpu, "isolated".to_owned()),
        Some(cpu) => (cpu, "isolated, but it shares its core with a CPU that is not".to_owned()),
        None => {
            let cpu = known.allowed.last().or(known.online.last()).unwrap_or(0);
            let none = if known.isolated.is_empty() {
                "none isolated".to_owned()
            } else {
                format!("the isolated {} not permitted", known.isolated)
            };
            let which =
                if known.allowed.len() == 1 { "the only one allowed" } else { "last allowed" };
            (cpu, format!("{which}, {none}"))
        }
    };
    let (helper, helper_why) = helper(&CpuList::single(cpu), facts, &known);
    let only_cpu = helper.is_none();
    Choice { cpu, why, helper, helper_why, only_cpu }
}

/// The CPU for the helpers of a measurement on these CPUs; `None` when there is no other one.
pub fn helper_cpu(measured: &CpuList, facts: &MachineFacts) -> Option<u32> {
    helper(measured, facts, &Known::of(facts)).0
}

fn helper(measured: &CpuList, facts: &MachineFacts, known: &Known) -> (Option<u32>, String) {
    let mut siblings_of_measured = CpuList::new();
    for cpu in measured.iter() {
        siblings_of_measured = siblings_of_measured.union(&siblings(facts, cpu));
    }
    let others = known.allowed.difference(measured);
    let housekeeping = others.difference(&known.isolated);
    let apart = |list: &CpuList| list.difference(&siblings_of_measured);
    // Shared isolation costs another loop; a shared core costs this one: hence the order.
    [
        (apart(&housekeeping), "not isolated, on another core"),
        (apart(&others), "isolated too, on another core"),
        (housekeeping, "a sibling on the same core: no other core is allowed"),
        (others, "a sibling on the same core: no other core is allowed"),
    ]
    .into_iter()
    .find_map(|(list, why)| Some((Some(list.first()?), why.to_owned())))
    .unwrap_or((None, "no other CPU is allowed".to_owned()))
}

fn siblings(facts: &MachineFacts, cpu: u32) -> CpuList {
    facts.cpu.topology.value().map(|topology| topology.siblings(cpu)).unwrap_or_default()
}

/// Checks a list of requested CPUs.
///
/// # Errors
/// One line that says which CPU cannot be used, and which ones can.
pub fn check_cpus(cpus: &CpuList, facts: &MachineFacts) -> Result<(), CpuError> {
    if cpus.is_empty() {
        return Err(CpuError::Empty);
    }
    let beyond = |list: Option<&CpuList>| {
        list.map(|list| (cpus.difference(list), list.clone())).filter(|(rest, _)| !rest.is_empty())
    };
    if let Some((cpus, possible)) = beyond(facts.cpu.possible_cpus.value()) {
        return Err(CpuError::Unknown { cpus, possible });
    }
    if let Some((cpus, online)) = beyond(facts.cpu.online_cpus.value()) {
        return Err(CpuError::Offline { cpus, online });
    }
    let reachable = facts.limits.cpuset_cpus.value();
    if let Some((cpus, reachable)) = beyond(reachable) {
        return Err(CpuError::OutsideCpuset { cpus, reachable });
    }
    Ok(())
}

/// The number of cores for loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopCores {
    /// Half of them, rounded down, at least one.
    Half,
    /// One for each of so many loops.
    Each(u32),
}

impl LoopCores {
    /// Whole cores for loops, the last ones: threads of a core go together, since one slows the
    /// other. The core of CPU 0 is for other tasks: the kernel has work there that does not move.
    /// Where it is not known which CPUs share a core, each is taken for one.
    ///
    /// # Errors
    /// [`CpuError::TooFewCores`].
    pub fn choose(self, facts: &MachineFacts) -> Result<CpuList, CpuError> {
        let known = Known::of(facts);
        let reachable = known.allowed.union(&known.quiet);
        let mut cores: Vec<CpuList> = match facts.cpu.topology.value() {
            Some(topology) => topology.core_cpus.clone(),
            None => known.online.iter().map(CpuList::single).collect(),
        };
        cores.iter_mut().for_each(|core| *core = core.intersection(&known.online));
        cores.retain(|core| !core.is_empty() && core.difference(&reachable).is_empty());
        cores.sort_by_key(CpuList::first);
        let count = cores.len() as u32;
        cores.retain(|core| !core.contains(0));
        let (wanted, most) = match self {
            Self::Half => ((count / 2).max(1), cores.len() as u32),
            Self::Each(loops) => (loops, cores.len() as u32),
        };
        if wanted > most {
            return Err(CpuError::TooFewCores { wanted, cpus: reachable, most });
        }
        let last = cores.iter().rev().take(wanted as usize);
        Ok(last.fold(CpuList::new(), |cpus, core| cpus.union(core)))
    }
}

/// Reads and checks a list of CPUs as a person writes it (`3`, `2-3`, `all`, `N`).
///
/// # Errors
/// As [`CpuList::parse`] and [`check_cpus`].
pub fn parse_cpus(text: &str, facts: &MachineFacts) -> Result<CpuList, CpuError> {
    let possible = facts.cpu.possible_cpus.value().and_then(CpuList::last);
    let online = facts.cpu.online_cpus.value().and_then(CpuList::last);
    // `all` and `N` are of the CPUs that can be used now.
    let last = online.or(possible).unwrap_or(0);
    let bound = possible.unwrap_or(last).max(last);
    let symbolic = text.contains('N') || text.to_ascii_lowercase().contains("all");
    let cpus =
        CpuList::parse(text, if symbolic { last } else { bound }).map_err(|error| {
            match (error, facts.cpu.possible_cpus.value()) {
                (CpuListError::Beyond { cpu, .. }, Some(possible))
                    if cpu < u64::from(crate::cpulist::MAX_CPUS) =>
                {
                    CpuError::Unknown {
                        cpus: CpuList::single(cpu as u32),
                        possible: possible.clone(),
                    }
                }
                (error, _) => CpuError::List(error),
            }
        })?;
    check_cpus(&cpus, facts)?;
    Ok(cpus)
}

#[cfg(test)]
mod tests {
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
        let cpus = format!("0-{}", online - 1);
        facts.cpu.online_cpus = known(&cpus);
        facts.cpu.possible_cpus = known(&cpus);
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
        let requested = choose(&machine(4, 1, "3", "2-3", Some("0-3")));
        assert_eq!((requested.cpu, requested.why.as_str()), (3, "isolated"));
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
    fn loops_get_whole_cores_and_never_that_of_cpu_0() {
        let smt = machine(8, 2, "0-7", "", None);
        let chosen = |cores: LoopCores, facts: &MachineFacts| {
            cores.choose(facts).map(|cpus| cpus.to_string()).map_err(|why| why.to_string())
        };
        assert_eq!(chosen(LoopCores::Half, &smt).as_deref(), Ok("2-3,6-7"));
        assert_eq!(chosen(LoopCores::Each(1), &smt).as_deref(), Ok("3,7"));
        assert_eq!(chosen(LoopCores::Each(3), &smt).as_deref(), Ok("1-3,5-7"));
        let why = chosen(LoopCores::Each(4), &smt).expect_err("that of CPU 0");
        assert!(why.starts_with("4 whole cores: CPU 0-7 has 3 that can be spared"), "{why}");
        let two = machine(2, 1, "0-1", "", None);
        assert_eq!(chosen(LoopCores::Half, &two).as_deref(), Ok("1"));
        assert!(chosen(LoopCores::Each(2), &two).is_err());
        // Two threads of one core, and one CPU: nothing can be spared.
        for facts in [machine(2, 2, "0-1", "", None), machine(1, 1, "0", "", None)] {
            let why = chosen(LoopCores::Half, &facts).expect_err("one core");
            assert!(why.starts_with("1 whole core: CPU 0") && why.contains("has 0"), "{why}");
        }
        // Of a core that is out of reach in part, none of its threads.
        let narrow = machine(8, 2, "0-6", "", Some("0-6"));
        assert_eq!(chosen(LoopCores::Each(1), &narrow).as_deref(), Ok("2,6"));
        // Those that are isolated already are not in the affinity, and yet can be had.
        let isolated = machine(8, 2, "0-2,4-6", "3,7", Some("0-7"));
        assert_eq!(chosen(LoopCores::Each(1), &isolated).as_deref(), Ok("3,7"));
        let mut unknown = machine(4, 1, "0-3", "", None);
        unknown.cpu.topology = Fact::absent("test");
        assert_eq!(chosen(LoopCores::Half, &unknown).as_deref(), Ok("2-3"));
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
}
