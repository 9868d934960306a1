//! Why a loop is late, and what to do next, as far as facts at hand show it: a table of rules.
//!
//! A rule states a fact of the machine or of the run, and a command that exists. It names no cause
//! that it did not see.

use punctual_host::facts::MachineFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::{LoadRow, Run};
use super::session::Session;
use crate::format;

/// That stalls may be the host's: also an advice.
pub(crate) const NOTE_GUEST: &str = "virtual machine: stalls caused by the host are included";

/// That the policy was refused: also in the headline.
pub(crate) const NOTE_ORDINARY: &str = "measured as SCHED_OTHER: any process can delay the loop; \
                                        a real-time loop on this machine would be late less often";

/// The most that are given.
const ADVICE_MAX: usize = 3;

/// A loop that used this much of what real-time tasks may use came near it.
const NEAR_BUDGET: f64 = 0.9;

/// Clocks of the kernel that are read from a device or counted by interrupts.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"];

/// Leaving an idle state that takes as long as an ordinary wake matters.
const IDLE_EXIT_US: u64 = 10;

/// One fact, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Advice {
    /// "host", "load", "throttling", "clock", "CPU", "idle", "frequency", "memory".
    pub(crate) topic: String,
    /// The fact.
    pub(crate) text: String,
    /// A command that shows more, or changes it; null where none does.
    pub(crate) command: Option<String>,
}

/// What rules look at.
pub(super) struct Seen<'a> {
    pub(super) facts: &'a MachineFacts,
    /// What the kernel granted; `None` where nothing was measured.
    pub(super) session: Option<&'a Session>,
    pub(super) runs: &'a [Run],
    /// One for each load.
    pub(super) rows: &'a [LoadRow],
}

/// A fact in words, and a command about it.
type Finding = (String, Option<&'static str>);

/// What finds it.
type Rule = fn(&Seen<'_>) -> Option<Finding>;

/// The rules, the most telling first: each a topic and what it finds.
const RULES: &[(&str, Rule)] = &[
    ("host", host),
    ("load", load),
    ("throttling", throttling),
    ("clock", clock),
    ("CPU", cpu),
    ("idle", idle),
    ("frequency", frequency),
    ("memory", memory),
];

/// What the rules find.
pub(super) fn of(seen: &Seen<'_>) -> Vec<Advice> {
    let found = RULES.iter().filter_map(|(topic, rule)| {
        let (text, command) = rule(seen)?;
        Some(Advice { topic: (*topic).into(), text, command: command.map(str::to_owned) })
    });
    found.take(ADVICE_MAX).collect()
}

/// The host of a virtual machine, with the steal that the kernel counted during the runs.
fn host(seen: &Seen<'_>) -> Option<Finding> {
    if !seen.facts.virtualization.is_guest() {
        return None;
    }
    // Loops on one CPU at once see the same steal.
    let by_cpu = |cpu: u32| {
        let on_cpu = || seen.runs.iter().filter(move |run| run.setup.cpu == Some(cpu));
        let of_period = |period: Option<u64>| {
            let of = on_cpu().filter(move |run| run.setup.period_ns == period);
            of.filter_map(|run| run.steal_ns).reduce(u64::saturating_add)
        };
        on_cpu().filter_map(|run| of_period(run.setup.period_ns)).max()
    };
    let mut cpus: Vec<u32> = seen.runs.iter().filter_map(|run| run.setup.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let steal_ns = cpus.iter().copied().filter_map(by_cpu).reduce(u64::saturating_add);
    let measured = match cpus.as_slice() {
        [one] => format!("CPU {one}"),
        _ => "the measured CPUs".to_owned(),
    };
    let included = "stalls of the host are included";
    let text = match steal_ns {
        None => format!("virtual machine: {included}"),
        Some(0) => format!("virtual machine, no steal counted (steps of 10 ms); {included}"),
        Some(ns) => {
            let taken = format::long(ns as f64);
            format!("the host took {taken} from {measured} (steal); {included}")
        }
    };
    Some((text, Some("punctual measure noise")))
}

/// The load under which most were missed.
fn load(seen: &Seen<'_>) -> Option<Finding> {
    let all: u64 = seen.rows.iter().map(|row| row.missed).sum();
    // Loops of several periods have a row each under the same load.
    let under = |load: &str| {
        let of = seen.rows.iter().filter(|row| row.load == load);
        of.map(|row| row.missed).sum::<u64>()
    };
    let most = seen.rows.iter().max_by_key(|row| under(&row.load))?;
    let missed = under(&most.load);
    let several = seen.rows.iter().any(|row| row.load != most.load);
    if !several || missed * 2 <= all {
        return None;
    }
    let load = &most.load;
    let text = match missed == all {
        true => format!("all {} missed under load were under {load}", format::count(all)),
        false => format!(
            "{} of the {} missed under load were under {load}",
            format::count(missed),
            format::count(all)
        ),
    };
    Some((text, None))
}

/// The share of the CPU that real-time tasks may use, where a loop came near it or a control group
/// sets it.
fn throttling(seen: &Seen<'_>) -> Option<Finding> {
    let budget = seen.facts.limits.rt_budget()?;
    let real_time = seen.runs.iter().filter(|run| run.setup.priority.is_some());
    let most = real_time.filter_map(|run| run.cpu_load).reduce(f64::max)?;
    if most < budget.share * NEAR_BUDGET && !budget.of_cgroup {
        return None;
    }
    let of = if budget.of_cgroup { " of this control group" } else { "" };
    let (share, gap) = (format::share(budget.share), format::long(budget.gap_us as f64 * 1e3));
    let used = format::share(most);
    let text = format!(
        "real-time tasks{of} may use {share} of a CPU, and then stop for {gap}; the loop used \
         {used}"
    );
    Some((text, None))
}

/// A clock that the kernel takes long to read.
fn clock(seen: &Seen<'_>) -> Option<Finding> {
    let source = seen.facts.clock.clocksource.value()?;
    if !SLOW_CLOCKS.contains(&source.as_str()) {
        return None;
    }
    let text = format!("the kernel keeps time by {source}, which takes long to read");
    Some((text, Some("dmesg | grep -i clocksource")))
}

fn cpu(seen: &Seen<'_>) -> Option<Finding> {
    let preemption = seen.facts.preemption.preemption.value();
    let preemption = preemption.filter(|name| name.as_str() != "PREEMPT_RT");
    let isolated = !seen.facts.isolation.isolated().is_empty();
    let text = match (isolated, preemption) {
        (false, Some(kernel)) => format!("no CPU is isolated, the kernel is {kernel}"),
        (false, None) => "no CPU is isolated".to_owned(),
        (true, Some(kernel)) => format!("the kernel is {kernel}"),
        (true, None) => return None,
    };
    Some((text, None))
}

/// Idle states that take long to leave, where they were not held off.
fn idle(seen: &Seen<'_>) -> Option<Finding> {
    if seen.session.is_none_or(|session| session.idle_states_held) {
        return None;
    }
    let states = seen.facts.idle.idle_states.value()?;
    let deepest = states.iter().filter(|of| !of.disabled).max_by_key(|of| of.exit_us)?;
    let text = format!(
        "idle states were not held off (/dev/cpu_dma_latency); leaving {} takes up to {} µs",
        deepest.name, deepest.exit_us
    );
    (deepest.exit_us >= IDLE_EXIT_US).then_some((text, None))
}

fn frequency(seen: &Seen<'_>) -> Option<Finding> {
    let governor = seen.facts.frequency.governor.value().filter(|word| *word != "performance")?;
    let command = "echo performance | \
                   sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    Some((format!("governor {governor}"), Some(command)))
}

fn memory(seen: &Seen<'_>) -> Option<Finding> {
    let mode = seen.facts.memory.transparent_hugepages.value()?;
    let command = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
    let text = "transparent huge pages are always on".to_owned();
    (mode == "always").then_some((text, Some(command)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_host::fact::Fact;
    use punctual_host::facts::IdleState;
    use punctual_host::root::Root;

    use super::super::run::Setup;
    use super::*;

    /// The facts of a captured guest.
    fn guest() -> MachineFacts {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
        let root = Root::captured(Path::new(dir).join("firecracker-guest-2cpu")).expect("there");
        MachineFacts::collect(&root)
    }

    fn run(period_ns: u64, steal_ns: Option<u64>, cpu_load: f64) -> Run {
        let figures = Recording::new(RecordingConfig::default()).finish(0);
        let (cpu, period_ns, priority) = (Some(1), Some(period_ns), Some(90));
        let setup = Setup { cpu, period_ns, priority, ..Setup::default() };
        let cpu_load = Some(cpu_load);
        Run { steal_ns, cpu_load, ..Run::recorded("idle".to_owned(), setup, figures) }
    }

    fn found(facts: &MachineFacts, runs: &[Run], held: bool) -> Vec<(String, String)> {
        let session = Session { memory_locked: true, idle_states_held: held, refused: Vec::new() };
        let seen = Seen { facts, session: Some(&session), runs, rows: &[] };
        let all = RULES.iter().filter_map(|(topic, rule)| Some(((*topic).into(), rule(&seen)?.0)));
        all.collect()
    }

    fn text(found: &[(String, String)], topic: &str) -> Option<String> {
        found.iter().find(|(of, _)| of == topic).map(|(_, text)| text.clone())
    }

    #[test]
    fn steal_of_loops_that_ran_at_once_is_counted_once() {
        let facts = guest();
        let host = |runs: &[Run]| text(&found(&facts, runs, true), "host").expect("a guest");
        let (ms, us) = (1_000_000, 1_000);
        // Idle and under load come one after the other; two periods run at once.
        let pair = |period| [run(period, Some(20 * ms), 0.1), run(period, Some(100 * ms), 0.1)];
        let runs: Vec<Run> = [pair(ms), pair(25 * us)].into_iter().flatten().collect();
        assert!(host(&runs).starts_with("the host took 120 ms from CPU 1"), "{}", host(&runs));
        assert!(host(&[run(ms, Some(0), 0.1)]).contains("no steal counted"));
        assert_eq!(host(&[run(ms, None, 0.1)]), "virtual machine: stalls of the host are included");
    }

    #[test]
    fn what_did_not_matter_in_this_run_is_no_advice() {
        let mut facts = guest();
        let state = |exit_us| IdleState { name: "C6".to_owned(), exit_us, disabled: false };
        facts.idle.idle_states = Fact::known(vec![state(2), state(133)], "captured");
        facts.clock.clocksource = Fact::known("hpet".to_owned(), "captured");
        let all = found(&facts, &[run(1_000_000, None, 0.94)], false);
        assert!(text(&all, "idle").is_some_and(|text| text.contains("C6 takes up to 133 µs")));
        assert!(text(&all, "clock").is_some_and(|text| text.contains("by hpet")));
        assert!(text(&all, "throttling").is_some_and(|text| text.contains("used 94 %")), "{all:?}");
        facts.clock.clocksource = Fact::known("tsc".to_owned(), "captured");
        let none = found(&facts, &[run(1_000_000, None, 0.2)], true);
        assert!(["idle", "clock", "throttling"].iter().all(|topic| text(&none, topic).is_none()));
    }
}
