//! The claims of LinuxCNC's page, judged by today's histograms and the recipe as it is set.

use punctual_analysis::interval::Interval;
use punctual_analysis::scatter::Scatter;
use punctual_host::facts::MachineFacts;

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

/// The parts of the recipe that take effect at boot and are not set for `cpu`.
pub(super) fn missing(machine: &MachineFacts, cpu: u32) -> Vec<&'static str> {
    let isolation = &machine.isolation;
    let is_in = |cpus: Option<&punctual_host::cpulist::CpuList>| {
        cpus.is_some_and(|cpus| cpus.iter().any(|of_list| of_list == cpu))
    };
    let parts = [
        ("isolcpus", is_in(isolation.isolated_cpus.value())),
        ("nohz_full", is_in(isolation.nohz_full_cpus.value())),
        ("rcu_nocbs", isolation.rcu_nocbs_parameter.value().is_some()),
    ];
    parts.into_iter().filter(|(_, is_set)| !is_set).map(|(name, _)| name).collect()
}

/// All claims; `missing`: parts of the recipe that are not set.
pub(super) fn claims(runs: &[MeasuredLoop], missing: &[&str]) -> Vec<PaperClaim> {
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
            "Mobile processors are orders of magnitude worse than desktop ones",
        )
        .untested(
            "one machine cannot show it: it takes results of a mobile and of a desktop one, and \
             'punctual compare'",
        )
        .judged(),
    ]
}

/// The first figure.
fn before_and_after([loaded, tuned]: [Option<Scatter>; 2], missing: &[&str]) -> PaperClaim {
    let claim = "The recipe reduces latency and jitter under load";
    let why = match missing {
        [] => "the recipe is set, and what was before it is not measured: it takes a result of a \
               boot without it, and 'punctual compare' of both"
            .to_owned(),
        some => format!(
            "{} not set for the measured CPU, which takes a boot: it takes a result of now, one of \
             a boot with the recipe ('punctual tune plan' writes one for \
             this machine), and 'punctual compare' of both",
            listed(some)
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
fn tuned([loaded, with_settings]: [Option<Scatter>; 2], missing: &[&str]) -> PaperClaim {
    let claim = "Tuned, latency is some 1000s of ns, its deviation as low as 100 ns";
    let judged = PaperClaim::new("linuxcnc.claim.tuned", claim);
    let (name, loaded) = match with_settings {
        Some(_) => ("under load, with the settings of run time", with_settings),
        None => ("under load, as the machine is", loaded),
    };
    if !missing.is_empty() {
        let why = format!(
            "{} not set for the measured CPU: it takes a boot with the recipe",
            listed(missing)
        );
        return judged.untested(&why).beside(name, "µs", loaded.as_ref()).judged();
    }
    let n = loaded.map(|scatter| scatter.n);
    let deviation = |middle: Interval| middle.times(INTERVAL / DEVIATIONS);
    judged
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
        .judged()
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

    fn claim(runs: &[MeasuredLoop], missing: &[&str], id: &str) -> PaperClaim {
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
