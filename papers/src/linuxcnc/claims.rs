//! The claims of LinuxCNC's page, judged by today's histograms and the recipe as it is set.

use punctual_analysis::interval::Interval;
use punctual_analysis::scatter::Scatter;
use punctual_host::cpulist::CpuList;
use punctual_host::fact::Fact;
use punctual_host::facts::{IdleState, MachineFacts, PreemptionModel};

use crate::bench::MeasuredLoop;
use crate::claim::{ClaimTest, ClaimedBound, PaperClaim};

/// The largest value that is still "1000s of nanoseconds", µs.
const THOUSANDS: f64 = 10.0;
/// The largest value that is still "as low as 100 nanoseconds": nearer to 100 ns than to 1 µs, µs.
const HUNDRED: f64 = 0.316;
/// From 5 to 95 % in standard deviations of a normal distribution, and what an interval scatters
/// more than the two wakes that it lies between.
const DEVIATIONS: f64 = 3.29;
const INTERVAL: f64 = std::f64::consts::SQRT_2;

/// The most that leaving an idle state takes to which intel_idle.max_cstate=1 keeps a CPU, µs:
/// that of C1.
const SHALLOW_US: u64 = 3;

/// The parts of the recipe that take effect at boot and are not set for the measured CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    /// Of those that keep others from the CPU, without which no loop is tuned.
    isolating: Vec<&'static str>,
    /// Of the others that a machine shows, each of which may be why a loop is late. Those that it
    /// does not show (watchdogs, `skew_tick`) are rarer than 1 in 100 releases, and one that
    /// sleeps is not throttled.
    others: Vec<&'static str>,
}

impl Missing {
    /// Those of a machine.
    pub(super) fn of(machine: &MachineFacts, cpu: u32) -> Self {
        let isolation = &machine.isolation;
        let is_in = |cpus: Option<&CpuList>| cpus.is_some_and(|cpus| cpus.contains(cpu));
        let possible = machine.cpu.possible_cpus.value().and_then(CpuList::last);
        // The kernel drops a list with a CPU that there cannot be; of rcu_nocbs it makes all CPUs
        // of that (kernel/rcu/tree_nocb.h, rcu_nocb_setup).
        let listed = |parameter: &Fact<String>| {
            CpuList::parse(parameter.value()?, possible.unwrap_or(u32::MAX)).ok()
        };
        let offloaded = isolation.rcu_nocbs_parameter.value().is_some_and(|_| {
            listed(&isolation.rcu_nocbs_parameter).is_none_or(|cpus| cpus.contains(cpu))
        });
        let nohz_full = is_in(isolation.nohz_full_cpus.value());
        let isolating = [
            ("isolcpus", is_in(isolation.isolated_cpus.value())),
            ("nohz_full", nohz_full),
            // nohz_full moves callbacks away from the same CPUs.
            ("rcu_nocbs", nohz_full || offloaded),
        ];
        let interrupts = listed(&isolation.irqaffinity_parameter);
        let is_shallow = |state: &IdleState| state.disabled || state.exit_us <= SHALLOW_US;
        let is_awake = match &machine.idle.idle_states {
            Fact::Known { value: states, .. } => states.iter().all(is_shallow),
            Fact::Absent { .. } => true,
            Fact::Unreadable { .. } => false,
        };
        let is_rt = machine.preemption.preemption_model.value() == Some(&PreemptionModel::Rt);
        let others = [
            ("PREEMPT_RT", is_rt),
            ("irqaffinity", interrupts.is_some_and(|cpus| !cpus.contains(cpu))),
            ("nosmt", machine.cpu.smt.value() != Some(&true)),
            ("idle=poll", is_awake),
            ("cpufreq.off", !machine.frequency.frequency_driver.is_known()),
        ];
        Self { isolating: unset(isolating), others: unset(others) }
    }

    /// Both, in words: "isolcpus and nohz_full are"; empty where the recipe is whole.
    fn whole(&self) -> String {
        listed(&[&*self.isolating, &*self.others].concat())
    }
}

/// The names of parts that are not set.
fn unset<const N: usize>(parts: [(&'static str, bool); N]) -> Vec<&'static str> {
    parts.into_iter().filter(|(_, is_set)| !is_set).map(|(name, _)| name).collect()
}

/// All claims.
pub(super) fn claims(runs: &[MeasuredLoop], missing: &Missing) -> Vec<PaperClaim> {
    let scatter = |name: &str| runs.iter().find(|run| run.name == name)?.scatter_us();
    let (idle, loaded) = (scatter("idle"), scatter("linuxcnc"));
    let with_settings = scatter("linuxcnc tuned");
    vec![
        before_and_after([loaded, with_settings], missing),
        run_time([loaded, with_settings]),
        tuned([loaded, with_settings], missing),
        load(idle, loaded),
        PaperClaim::new(
            "linuxcnc.claim.mobile",
            "A mobile processor is orders of magnitude worse than the best desktop one",
        )
        .untested(
            "one machine cannot show it: it takes results of a mobile and of a desktop one, and \
             'punctual compare'",
        )
        .judged(),
    ]
}

/// The first figure.
fn before_and_after([loaded, tuned]: [Option<Scatter>; 2], missing: &Missing) -> PaperClaim {
    let claim = "The recipe reduces latency and jitter under load";
    let why = match &*missing.whole() {
        "" => "the recipe is set, and what was before it is not measured: it takes a result of a \
               boot without it, and 'punctual compare' of both"
            .to_owned(),
        some => format!(
            "{some} not set for the measured CPU, which takes a boot: it takes a result of now, \
             one of a boot with the recipe ('punctual tune plan' writes one for this machine), and \
             'punctual compare' of both"
        ),
    };
    PaperClaim::new("linuxcnc.claim.before-and-after", claim)
        .untested(&why)
        .beside("under load, as the machine is", "µs", loaded.as_ref())
        .beside("under load, with the settings of run time", "µs", tuned.as_ref())
        .judged()
}

/// A part of a scatter.
type Part = fn(&Scatter) -> Option<Interval>;

/// The part of the recipe that takes no boot: an untuned loop beside a tuned one, in turns.
fn run_time([loaded, tuned]: [Option<Scatter>; 2]) -> PaperClaim {
    let claim = "Settings of run time improve timing under load";
    let judged = PaperClaim::new("linuxcnc.claim.run-time", claim);
    let judged = match tuned {
        None => judged.untested(
            "no loop was tuned beside the untuned one: --tune runs both in turns, the second with \
             the settings of 'tune plan --for step-generation'",
        ),
        Some(_) => {
            let parts: [(&str, Part); 2] = [
                ("99 % less the least, under load, tuned over untuned", Scatter::to_p99),
                ("5 to 95 %, under load, tuned over untuned", Scatter::middle),
            ];
            parts.into_iter().fold(judged, |judged, (title, part)| {
                let sides = tuned.as_ref().and_then(part).zip(loaded.as_ref().and_then(part));
                judged.test(ClaimTest {
                    title,
                    unit: "times",
                    value: sides.and_then(|(tuned, untuned)| tuned.over(untuned)),
                    n: tuned.map(|scatter| scatter.n),
                    bound: ClaimedBound::AtMost(1.0),
                })
            })
        }
    };
    judged
        .beside("under load, untuned", "µs", loaded.as_ref())
        .beside("under load, with the settings of run time", "µs", tuned.as_ref())
        .judged()
}

/// Its conclusion: of the loop with all settings that there are.
fn tuned([loaded, with_settings]: [Option<Scatter>; 2], missing: &Missing) -> PaperClaim {
    let claim = "Tuned, latency is 1000s of ns at most, its deviation as low as 100 ns";
    let judged = PaperClaim::new("linuxcnc.claim.tuned", claim);
    let (name, loaded) = match with_settings {
        Some(_) => ("under load, with the settings of run time", with_settings),
        None => ("under load, as the machine is", loaded),
    };
    if !missing.isolating.is_empty() {
        let why = format!(
            "{} not set for the measured CPU: it takes a boot with the recipe",
            listed(&missing.isolating)
        );
        return judged.untested(&why).beside(name, "µs", loaded.as_ref()).judged();
    }
    let n = loaded.map(|scatter| scatter.n);
    let deviation = |middle: Interval| middle.times(INTERVAL / DEVIATIONS);
    let judged = judged
        .test(ClaimTest {
            title: "99 % less the least, under load",
            unit: "µs",
            value: loaded.and_then(|scatter| scatter.to_p99()),
            n,
            bound: ClaimedBound::AtMost(THOUSANDS),
        })
        .test(ClaimTest {
            title: "standard deviation of the interval that 5 to 95 % give, under load",
            unit: "µs",
            value: loaded.and_then(|scatter| scatter.middle()).map(deviation),
            n,
            bound: ClaimedBound::AtMost(HUNDRED),
        })
        .beside(name, "µs", loaded.as_ref())
        .judged();
    if missing.others.is_empty() {
        return judged;
    }
    let why = format!(
        "{} not set, which may be why: it takes a boot with the whole recipe",
        listed(&missing.others)
    );
    judged.failing_open(&why, "the recipe is not set as a whole")
}

/// "Additional load can severely affect the results".
fn load(idle: Option<Scatter>, loaded: Option<Scatter>) -> PaperClaim {
    let at_99 = |scatter: Option<Scatter>| scatter.and_then(|scatter| scatter.to_p99());
    PaperClaim::new("linuxcnc.claim.load", "Load makes latency worse")
        .test(ClaimTest {
            title: "99 % less the least, under load over idle",
            unit: "times",
            value: at_99(loaded).zip(at_99(idle)).and_then(|(loaded, idle)| loaded.over(idle)),
            n: loaded.map(|scatter| scatter.n),
            bound: ClaimedBound::AtLeast(1.0),
        })
        .beside("under load", "µs", loaded.as_ref())
        .beside("idle", "µs", idle.as_ref())
        .judged()
}

/// "isolcpus and nohz_full are".
fn listed(names: &[&str]) -> String {
    match names {
        [name] => format!("{name} is"),
        [first @ .., last] => format!("{} and {last} are", first.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use punctual_analysis::claim::judge::Holds;
    use punctual_host::root::Root;

    use super::*;
    use crate::claim::evenly;

    /// Loops idle and under load whose lateness scatters over so many ns.
    fn runs(over_ns: [i64; 2], n: usize, stall: bool) -> Vec<MeasuredLoop> {
        let named = |(name, over_ns): (&str, i64)| {
            let values = evenly(2_000, over_ns, n, stall);
            MeasuredLoop { name: name.to_owned(), ..MeasuredLoop::of_latenesses(&values, 0.1, 1) }
        };
        ["idle", "linuxcnc"].into_iter().zip(over_ns).map(named).collect()
    }

    /// `isolating`: the parts that are missing of those.
    fn claim(runs: &[MeasuredLoop], isolating: &[&'static str], id: &str) -> PaperClaim {
        let missing = Missing { isolating: isolating.to_vec(), others: Vec::new() };
        claim_of(runs, &missing, id)
    }

    fn claim_of(runs: &[MeasuredLoop], missing: &Missing, id: &str) -> PaperClaim {
        let id = format!("linuxcnc.claim.{id}");
        claims(runs, missing).into_iter().find(|claim| claim.id == id).expect("a claim")
    }

    #[test]
    fn without_the_recipe_nothing_is_told_of_it_whatever_was_measured() {
        let runs = runs([300, 500], 4_001, false);
        for id in ["before-and-after", "tuned"] {
            let open = claim(&runs, &["isolcpus", "nohz_full"], id);
            assert_eq!(open.holds, Holds::Undecided);
            assert!(open.because.contains("isolcpus and nohz_full are not set"), "{open:?}");
            assert!(!open.figures.is_empty(), "what was measured stands beside");
        }
        // With it, after is judged, and before is still missing.
        assert_eq!(claim(&runs, &[], "tuned").holds, Holds::Yes);
        let before = claim(&runs, &[], "before-and-after");
        assert!(before.because.contains("a boot without it"), "{before:?}");
        assert_eq!(before.holds, Holds::Undecided);
    }

    #[test]
    fn a_machine_of_half_the_recipe_refutes_nothing() {
        let others = vec!["idle=poll", "cpufreq.off"];
        let missing = Missing { others, ..Missing::default() };
        let late = claim_of(&runs([300, 30_000], 4_001, false), &missing, "tuned");
        assert_eq!(late.holds, Holds::Undecided);
        assert!(late.because.starts_with("idle=poll and cpufreq.off are not set"), "{late:?}");
        // What it reaches in spite of that, it reaches.
        let runs = runs([300, 500], 4_001, false);
        assert_eq!(claim_of(&runs, &missing, "tuned").holds, Holds::Yes);
        let before = claim_of(&runs, &missing, "before-and-after");
        assert!(before.because.starts_with("idle=poll and cpufreq.off are not set"), "{before:?}");
    }

    #[test]
    fn the_recipe_is_looked_for_on_the_measured_cpu() {
        let missing = |machine: &str, cpu| {
            let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
            let root = Root::captured(format!("{machines}/{machine}")).expect("a machine");
            Missing::of(&MachineFacts::collect(&root), cpu)
        };
        let isolating = |machine, cpu| missing(machine, cpu).isolating;
        let three = ["isolcpus", "nohz_full", "rcu_nocbs"];
        assert!(isolating("arm64-preempt-rt-4cpu", 3).is_empty());
        assert_eq!(isolating("arm64-preempt-rt-4cpu", 2), three);
        assert_eq!(isolating("debian-rt-guest-2cpu-tuned", 1), ["nohz_full"]);
        // rcu_nocbs=1 is none for CPU 0.
        assert_eq!(isolating("debian-rt-guest-2cpu-tuned", 0), three);
        let laptop = missing("laptop-intel-pstate", 1).others;
        assert_eq!(laptop, ["PREEMPT_RT", "irqaffinity", "nosmt", "idle=poll", "cpufreq.off"]);
        assert!(missing("debian-rt-guest-2cpu-tuned", 1).others.is_empty());
    }

    /// Loops under load, untuned and with the settings of run time.
    fn untuned_and_tuned(over_ns: [i64; 2], n: usize, stall: bool) -> Vec<MeasuredLoop> {
        let mut loops = runs(over_ns, n, stall);
        for (run, name) in loops.iter_mut().zip(["linuxcnc", "linuxcnc tuned"]) {
            run.name = name.to_owned();
        }
        loops
    }

    #[test]
    fn settings_of_run_time_are_judged_by_a_tuned_loop_beside_an_untuned_one() {
        for stall in [false, true] {
            let holds = |over_ns, n| {
                claim(&untuned_and_tuned(over_ns, n, stall), &["isolcpus"], "run-time").holds
            };
            assert_eq!(holds([30_000, 3_000], 4_001), Holds::Yes);
            assert_eq!(holds([3_000, 30_000], 4_001), Holds::No);
            assert_eq!(holds([3_000, 3_010], 4_001), Holds::Undecided);
        }
        let untuned = claim(&runs([300, 500], 4_001, false), &[], "run-time");
        assert_eq!(untuned.holds, Holds::Undecided);
        assert!(untuned.because.contains("--tune runs both in turns"), "{untuned:?}");
    }

    #[test]
    fn what_is_claimed_of_a_tuned_machine_is_judged_by_the_tuned_loop_where_there_is_one() {
        let tuned = claim(&untuned_and_tuned([30_000, 500], 4_001, false), &[], "tuned");
        assert_eq!(tuned.holds, Holds::Yes, "{tuned:?}");
        let worse = claim(&untuned_and_tuned([500, 30_000], 4_001, false), &[], "tuned");
        assert_eq!(worse.holds, Holds::No, "{worse:?}");
    }

    #[test]
    fn each_claim_that_one_boot_decides_has_all_three_verdicts_and_no_stall_reverses_one() {
        for stall in [false, true] {
            let holds = |over_ns, n, id| claim(&runs(over_ns, n, stall), &[], id).holds;
            assert_eq!(holds([300, 500], 4_001, "tuned"), Holds::Yes);
            assert_eq!(holds([300, 30_000], 4_001, "tuned"), Holds::No);
            assert_eq!(holds([300, 500], 97, "tuned"), Holds::Undecided);
            assert_eq!(holds([300, 900], 4_001, "load"), Holds::Yes);
            assert_eq!(holds([900, 300], 4_001, "load"), Holds::No);
            assert_eq!(holds([300, 302], 4_001, "load"), Holds::Undecided);
        }
        assert_eq!(claim(&[], &[], "load").holds, Holds::Undecided);
    }
}
