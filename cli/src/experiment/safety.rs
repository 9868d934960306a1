//! Whether an experiment could take the machine away, and whether throttling hit it.
//!
//! For the measuring subcommands, before and after. Judges by the facts of the machine that runs
//! it, whatever `--root` says.

use anyhow::{Result, bail};
use punctual::core::time::Span;
use punctual::os::scheduler::Policy;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::Facts;
use punctual_lab::periodic::{Plan, RunOutcome, SPIN_PERIOD_MIN, Stream, WaitKind};

use crate::format;

/// A real-time loop of a shorter period may find each sleep over when it asks for it, and then
/// never leaves its CPU.
const RESTLESS: Span = Span::from_us(50);

/// How near to the throttling share a loop counts as hit: throttling acts in whole ticks.
const NEAR: f64 = 0.02;

/// What real-time tasks may have, and for how long they stand still when they took it.
struct Throttling {
    share: f64,
    gap: Span,
}

impl Throttling {
    /// `None` where nothing limits real-time tasks, or nothing is known of it.
    fn of(facts: &Facts) -> Option<Self> {
        let throttling = facts.limits.rt_throttling.value()?;
        let (runtime_us, period_us) = (throttling.runtime_us, throttling.period_us);
        (runtime_us >= 0 && period_us > 0).then(|| Self {
            share: runtime_us as f64 / period_us as f64,
            gap: Span::from_us(period_us - runtime_us),
        })
    }
}

fn is_real_time(policy: Policy) -> bool {
    matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_))
}

/// The CPUs of a plan, each once.
fn cpus(plan: &Plan) -> CpuList {
    plan.streams.iter().filter_map(|stream| stream.cpu).collect()
}

/// What a plan risks on this machine, in words.
///
/// # Errors
/// When it could take the machine away for good, or cannot spin at all.
pub(crate) fn judge(plan: &Plan, here: &Facts) -> Result<Vec<String>> {
    for stream in plan.streams.iter().filter(|stream| stream.wait == WaitKind::Spin) {
        if stream.period.as_ns() < SPIN_PERIOD_MIN.as_ns().unsigned_abs() {
            bail!(
                "--wait spin: a period of {} leaves no time to rest; it must be at least {}",
                format::period(stream.period.as_ns()),
                SPIN_PERIOD_MIN
            );
        }
    }
    let restless = |stream: &&Stream| {
        is_real_time(stream.policy)
            && (stream.cpu_share() > 0.5 || stream.period.as_ns() < RESTLESS.as_ns().unsigned_abs())
    };
    let Some(throttling) = Throttling::of(here) else {
        let all = here.limits.cpuset_cpus.value().or(here.cpu.online_cpus.value());
        let none_left = all.is_none_or(|all| all.difference(&cpus(plan)).is_empty());
        if none_left && plan.streams.iter().any(|stream| restless(&stream)) {
            bail!(
                "no CPU is left beside the loop's and real-time throttling is off \
                 (kernel.sched_rt_runtime_us = -1): nothing could end a loop that does not yield"
            );
        }
        return Ok(Vec::new());
    };
    let mut warnings = Vec::new();
    for cpu in cpus(plan).iter() {
        let on_cpu = plan.streams.iter().filter(|s| s.cpu == Some(cpu) && is_real_time(s.policy));
        let demand: f64 = on_cpu.map(Stream::cpu_share).sum();
        if demand > throttling.share - NEAR {
            warnings.push(format!(
                "the loops spin for {} of CPU {cpu}, real-time tasks may have {}: throttling will \
                 hit them, as gaps of up to {}",
                format::share(demand),
                format::share(throttling.share),
                throttling.gap
            ));
        }
    }
    Ok(warnings)
}

/// Whether the loops took all that real-time tasks may have: then throttling made gaps.
pub(crate) fn hit(plan: &Plan, runs: &[RunOutcome], here: &Facts) -> Vec<String> {
    let Some(throttling) = Throttling::of(here) else { return Vec::new() };
    let conditions = plan.conditions.len();
    let mut warnings = Vec::new();
    for cpu in cpus(plan).iter() {
        let taken = |condition: usize| -> f64 {
            let on_cpu = plan.streams.iter().enumerate().filter(|(_, s)| s.cpu == Some(cpu));
            let runs = on_cpu.map(|(stream, _)| &runs[stream * conditions + condition]);
            runs.filter(|run| is_real_time(run.policy)).map(|run| run.cpu_load).sum()
        };
        let most = (0..conditions).map(taken).fold(0.0, f64::max);
        if most > throttling.share - NEAR {
            warnings.push(format!(
                "the loops took {} of CPU {cpu}, real-time tasks may have {}: throttling stopped \
                 them for up to {} at a time",
                format::share(most),
                format::share(throttling.share),
                throttling.gap
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use punctual::core::time::Period;
    use punctual_host::root::Root;

    use super::*;

    fn plan(streams: &[(u32, u64, WaitKind)]) -> Plan {
        let stream = |&(cpu, period_ns, wait)| Stream {
            cpu: Some(cpu),
            period: Period::from_ns(period_ns).expect("positive"),
            phase_ns: 0,
            policy: Policy::Fifo(90),
            wait,
        };
        Plan {
            streams: streams.iter().map(stream).collect(),
            conditions: Vec::new(),
            blocks: Vec::new(),
            housekeeping: Vec::new(),
            cold: 0,
        }
    }

    /// The captured guest: two CPUs, throttling at 95 %; or without throttling.
    fn guest(runtime_us: i64) -> Facts {
        let tree =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/firecracker-guest-2cpu");
        let mut facts = Facts::collect(&Root::captured(tree).expect("a fixture"));
        let fact = facts.limits.rt_throttling.clone();
        facts.limits.rt_throttling = fact.map(|mut throttling| {
            throttling.runtime_us = runtime_us;
            throttling
        });
        facts
    }

    #[test]
    fn one_spin_is_fine_and_two_on_one_cpu_are_told() {
        let one = plan(&[(1, 1_000_000, WaitKind::Spin)]);
        assert!(judge(&one, &guest(950_000)).expect("fine").is_empty());
        let two = plan(&[(1, 1_000_000, WaitKind::Spin), (1, 2_000_000, WaitKind::Spin)]);
        let told = judge(&two, &guest(950_000)).expect("told");
        assert!(told[0].contains("throttling will hit"), "{told:?}");
        let strict = judge(&one, &guest(500_000)).expect("told");
        assert!(strict[0].contains("500 ms"), "{strict:?}");
    }

    #[test]
    fn what_nothing_could_end_is_refused() {
        let both = plan(&[(0, 1_000_000, WaitKind::Spin), (1, 1_000_000, WaitKind::Spin)]);
        assert!(judge(&both, &guest(-1)).is_err());
        assert!(judge(&plan(&[(1, 1_000_000, WaitKind::Spin)]), &guest(-1)).is_ok());
        let short = plan(&[(0, 2_000, WaitKind::Sleep), (1, 2_000, WaitKind::Sleep)]);
        assert!(judge(&short, &guest(-1)).is_err());
        assert!(judge(&plan(&[(1, 5_000, WaitKind::Spin)]), &guest(950_000)).is_err());
    }
}
