//! Checks that an experiment cannot take the machine away, and that throttling did not hit it.
//!
//! Before and after each experiment. The rules are the library's ([`punctual_engine::safety`]), the
//! facts those of the machine that measures. Pure.

use punctual_core::time::{Period, Span};
use punctual_engine::safety::{self, Machine, NoCpuLeft};
pub use punctual_engine::safety::{Caution, CpuTaken, Demand, Throttling};
use punctual_host::cpulist::CpuList;
use punctual_host::facts::{MachineFacts, RtBudget};

/// The share of its CPU that a real-time thread took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// The CPU.
    pub cpu: u32,
    /// The condition.
    pub condition: usize,
    /// Its CPU time over wall time, in [0, 1].
    pub share: f64,
    /// The time between two of its releases; `None` where it has none.
    pub period: Option<Period>,
}

/// The reason for which an experiment is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Risk {
    /// No CPU is left for anything but its threads, and real-time throttling is off: nothing could
    /// end one that does not yield.
    NoCpuLeft,
    /// It spins through its period and has no time to rest.
    NoRest {
        /// The period.
        period: Period,
        /// The shortest that it may have.
        shortest: Span,
    },
    /// The clock is too slow for what was requested: so many of its stamps must fit.
    TooFine {
        /// The option: "--period".
        option: &'static str,
        /// Its value, ns.
        value_ns: u64,
        /// The cost of a stamp, ns.
        stamp_ns: f64,
        /// Number of stamps that must fit.
        times: f64,
    },
}

/// The limit of real-time threads by these facts; `None` where nothing limits them, or nothing is
/// known of it.
pub fn throttling(facts: &MachineFacts) -> Option<Throttling> {
    let RtBudget { share, gap_us, of_cgroup } = facts.limits.rt_budget()?;
    Some(Throttling { share, gap: Span::from_us(gap_us), of_cgroup })
}

/// The part of these facts that decides whether the machine can be taken away.
fn machine(facts: &MachineFacts) -> Machine {
    let cpus = facts.limits.cpuset_cpus.value().or(facts.cpu.online_cpus.value());
    Machine { cpus: cpus.map(|cpus| cpus.iter().collect()), throttling: throttling(facts) }
}

/// The risks of threads with these demands on this machine.
///
/// # Errors
/// When they could take the machine away for good.
pub fn judge(demands: &[Demand], facts: &MachineFacts) -> Result<Vec<Caution>, Risk> {
    safety::judge(demands, &machine(facts)).map_err(|NoCpuLeft| Risk::NoCpuLeft)
}

/// The share of each CPU that real-time threads took, under the condition in which they took most
/// of it.
pub(super) fn cpus_taken(taken: &[Taken], facts: &MachineFacts) -> Vec<CpuTaken> {
    let throttling = machine(facts).throttling;
    let cpus: CpuList = taken.iter().map(|taken| taken.cpu).collect();
    let most = |cpu: u32| {
        let on_cpu = || taken.iter().filter(move |taken| taken.cpu == cpu);
        let under = |condition: usize| -> f64 {
            on_cpu().filter(|taken| taken.condition == condition).map(|taken| taken.share).sum()
        };
        let share = on_cpu().map(|taken| under(taken.condition)).fold(0.0, f64::max);
        let period = on_cpu().filter_map(|taken| taken.period).min();
        CpuTaken { cpu, share, period, throttling }
    };
    cpus.iter().map(most).collect()
}

#[cfg(test)]
mod tests {
    use punctual::RtThread;
    use punctual_host::fact::Fact;

    use super::*;
    use crate::periodic::{PeriodicPlan, Stream, WaitKind};
    use crate::testing::guest;

    fn stream(cpu: u32, period_ns: u64, wait: WaitKind) -> Stream {
        Stream {
            thread: RtThread::cpu(cpu).fifo(90).wait(wait),
            period: Period::from_ns(period_ns).expect("positive"),
            phase_ns: 0,
        }
    }

    fn demands(streams: &[Stream]) -> Vec<Demand> {
        let plan = PeriodicPlan {
            streams: streams.to_vec(),
            conditions: Vec::new(),
            blocks: Vec::new(),
            housekeeping: Vec::new(),
            cold: 0,
        };
        plan.demands()
    }

    #[test]
    fn one_spin_is_fine_and_two_on_one_cpu_are_named() {
        let single = demands(&[stream(1, 1_000_000, WaitKind::Spin)]);
        assert!(judge(&single, &guest(950_000)).expect("fine").is_empty());
        let two =
            demands(&[stream(1, 1_000_000, WaitKind::Spin), stream(1, 2_000_000, WaitKind::Spin)]);
        let named = judge(&two, &guest(950_000)).expect("named");
        assert_eq!(named.len(), 1);
        assert!(named[0].cpu == 1 && (named[0].share - 1.8).abs() < 1e-9, "{named:?}");
        let strict = judge(&single, &guest(500_000)).expect("named");
        assert_eq!(strict[0].throttling.gap, Span::from_ms(500));
    }

    #[test]
    fn the_budget_of_a_control_group_is_named_before_and_after() {
        let mut facts = guest(950_000);
        facts.limits.cgroup_rt_runtime_us = Fact::known(100_000, "cpu.rt_runtime_us");
        let spin = demands(&[stream(1, 1_000_000, WaitKind::Spin)]);
        let named = judge(&spin, &facts).expect("named");
        let group = Throttling { share: 0.1, gap: Span::from_ms(900), of_cgroup: true };
        assert_eq!(named[0].throttling, group);
        let throttled = |share| {
            let taken = cpus_taken(&[Taken { cpu: 1, condition: 0, share, period: None }], &facts);
            taken[0].throttled()
        };
        assert_eq!(throttled(0.1).expect("all of it").throttling, group);
        assert_eq!(throttled(0.08), None);
        let sleep = demands(&[stream(1, 1_000_000, WaitKind::Sleep)]);
        assert_eq!(judge(&sleep, &facts), Ok(vec![]), "it takes less than a tenth");
    }

    #[test]
    fn what_nothing_could_end_is_refused() {
        let two_spins =
            demands(&[stream(0, 1_000_000, WaitKind::Spin), stream(1, 1_000_000, WaitKind::Spin)]);
        assert_eq!(judge(&two_spins, &guest(-1)), Err(Risk::NoCpuLeft));
        assert_eq!(
            judge(&demands(&[stream(1, 1_000_000, WaitKind::Spin)]), &guest(-1)),
            Ok(vec![])
        );
        let short =
            demands(&[stream(0, 2_000, WaitKind::Sleep), stream(1, 2_000, WaitKind::Sleep)]);
        assert_eq!(judge(&short, &guest(-1)), Err(Risk::NoCpuLeft));
    }

    #[test]
    fn throttling_hits_the_condition_that_took_most() {
        let taken = |condition, share| Taken { cpu: 1, condition, share, period: None };
        let throttled = |taken: &[Taken], runtime_us| {
            let taken = cpus_taken(taken, &guest(runtime_us));
            assert_eq!(taken.len(), 1);
            taken[0].throttled()
        };
        assert_eq!(throttled(&[taken(0, 0.5), taken(1, 0.4)], 950_000), None);
        let hit = throttled(&[taken(0, 0.5), taken(1, 0.5), taken(1, 0.45)], 950_000);
        assert!((hit.expect("hit").share - 0.95).abs() < 1e-9, "{hit:?}");
        assert_eq!(throttled(&[taken(0, 1.0)], -1), None);
    }

    #[test]
    fn loops_of_one_cpu_are_restless_together_by_the_shortest_period() {
        let taken = |cpu, condition, share, period_us: u64| Taken {
            cpu,
            condition,
            share,
            period: Period::from_ns(period_us * 1_000),
        };
        let restless = |taken: &[Taken]| -> Vec<u32> {
            let taken = cpus_taken(taken, &guest(950_000));
            taken.iter().filter(|taken| taken.is_restless()).map(|taken| taken.cpu).collect()
        };
        let alone = [taken(0, 0, 0.4, 10), taken(1, 0, 0.4, 1_000)];
        assert_eq!(restless(&alone), [0; 0]);
        let together = [taken(1, 0, 0.4, 10), taken(1, 0, 0.4, 1_000)];
        assert_eq!(restless(&together), [1]);
        let in_turn = [taken(1, 0, 0.4, 10), taken(1, 1, 0.4, 1_000)];
        assert_eq!(restless(&in_turn), [0; 0], "one condition after the other");
    }
}
