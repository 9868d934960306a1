//! Caveats about the numbers of an experiment, in sentences: what was refused and
//! why, what was risked, what throttling and the watchdog did.
//!
//! Pure; the explanations themselves are in `punctual_host`.

use anyhow::{Error, anyhow};
use punctual_engine::monitor::Force;
use punctual_engine::session::{Attempt, Refusal};
use punctual_host::cpulist::CpuList;
use punctual_host::explain::{self, explain};
use punctual_host::facts::MachineFacts;
use punctual_host::settings::ChangedSetting;
use punctual_lab::experiment::{
    Caution, CpuTaken, ExperimentEnd, ExperimentError, FinishedExperiment, Risk, Throttling,
    throttling,
};
use punctual_report::{self as report, Refused, RestlessCpu, Session, Warning};

use crate::format;

/// The rights that the kernel granted, and those that it refused with the reasons.
pub(crate) fn session<T>(finished: &FinishedExperiment<T>, facts: &MachineFacts) -> Session {
    Session {
        memory_locked: finished.memory_locked,
        idle_states_held: finished.idle_states_held,
        refused: finished.refused.iter().map(|refusal| refused(refusal, facts)).collect(),
        restless: finished.taken.iter().filter_map(RestlessCpu::of).collect(),
        load_cpus: Some(&finished.load_cpus).filter(|cpus| !cpus.is_empty()).cloned(),
    }
}

fn refused(refusal: &Refusal, facts: &MachineFacts) -> Refused {
    Refused {
        attempt: refusal.attempt.into(),
        errno: refusal.errno.to_string(),
        price: price(refusal.attempt).to_owned(),
        explanation: explain(&attempt(refusal.attempt), refusal.errno, facts),
    }
}

/// The price of going on without it, in a few words.
fn price(attempt: Attempt) -> &'static str {
    match attempt {
        Attempt::Affinity(_) => "the loop may be moved to another CPU",
        Attempt::Scheduler(_) => "any process can delay the loop",
        Attempt::LockMemory => "its memory may be paged out",
        Attempt::HoldIdleStates => "wakes of an idle CPU take longer",
        Attempt::TimerSlack => "sleeps end up to 50 µs later",
        _ => "the loop runs without it",
    }
}

/// The attempt in the words of the module that explains it.
fn attempt(attempt: Attempt) -> explain::RefusedCall {
    match attempt {
        Attempt::Affinity(cpu) => explain::RefusedCall::SetAffinity { cpus: CpuList::single(cpu) },
        Attempt::Scheduler(policy) => {
            explain::RefusedCall::SetScheduler { priority: policy.priority().map_or(0, u32::from) }
        }
        Attempt::LockMemory => explain::RefusedCall::LockMemory { bytes: None },
        Attempt::HoldIdleStates => explain::RefusedCall::HoldCpuDmaLatency,
        Attempt::TimerSlack => explain::RefusedCall::SetTimerSlack,
        _ => explain::RefusedCall::Other,
    }
}

/// The warnings for a reader, whatever was measured on the CPUs of `measured`.
pub(crate) fn warnings<T>(
    finished: &FinishedExperiment<T>,
    facts: &MachineFacts,
    measured: &CpuList,
) -> Vec<Warning> {
    let planned = finished.planned.iter().map(planned);
    let mut warnings: Vec<Warning> = planned.map(Warning::from).collect();
    warnings.extend(finished.taken.iter().filter_map(taken).map(Warning::from));
    warnings.extend(watchdog(&finished.end).map(str::to_owned).map(Warning::from));
    let deaths = finished.loads.iter().flat_map(|loads| report::deaths(loads));
    warnings.extend(deaths.map(Warning::from));
    warnings.extend(loads_elsewhere(measured, &finished.load_cpus).map(Warning::from));
    if let Some(why) = &finished.clock.untrusted {
        let text =
            format!("timestamps come from clock_gettime, not from the processor's counter: {why}");
        warnings.push(text.into());
    }
    if finished.refused.iter().any(|refusal| matches!(refusal.attempt, Attempt::Scheduler(_))) {
        warnings.push(Warning::NotRealTime);
    }
    if facts.virtualization.virtualization.value().is_some_and(|name| name != "none") {
        warnings.push(Warning::Guest);
    }
    warnings
}

/// The sentence that loads could not run on a CPU that was measured; `None` where they could, or
/// none were to run.
fn loads_elsewhere(measured: &CpuList, loads: &CpuList) -> Option<String> {
    let apart = measured.difference(loads);
    let first = apart.iter().next().filter(|_| !loads.is_empty())?;
    let named = |cpus: &CpuList| format!("CPU{} {cpus}", if cpus.len() == 1 { "" } else { "s" });
    Some(format!(
        "the loads ran on {}, not on the measured {}: the kernel takes no process there by itself \
         (isolcpus=, a cpuset or taskset); started by `taskset -c {first}` all threads of this \
         command run on that CPU, loads too",
        named(loads),
        named(&apart),
    ))
}

fn watchdog(end: &ExperimentEnd) -> Option<&'static str> {
    let ExperimentEnd::Watchdog(force) = end else { return None };
    Some(match force {
        Force::Demoted => {
            "the watchdog ended a loop that did not yield: it was set to SCHED_OTHER and stopped"
        }
        Force::NotDemoted => {
            "the watchdog stopped a loop that did not yield; the kernel refused to set it to \
             SCHED_OTHER"
        }
        Force::Starved => {
            "the watchdog stopped the run: a loop did not get its CPU, though it wanted it"
        }
        Force::Blocked => {
            "the watchdog stopped the run: a loop waited for something else than its release"
        }
        Force::Stuck => "the watchdog stopped the run: a loop made no progress",
        _ => "the watchdog stopped the run",
    })
}

/// The share that real-time tasks may use, and whose rule that is.
fn allowed(throttling: &Throttling) -> String {
    let share = format::share(throttling.share);
    if throttling.of_cgroup {
        format!("real-time tasks of this control group may use only {share} (cpu.rt_runtime_us)")
    } else {
        format!("real-time tasks may use only {share}")
    }
}

/// The effect of a control group's real-time budget on tasks whose demand is not known; `None`
/// where it has none of its own.
pub(crate) fn group_budget(facts: &MachineFacts) -> Option<String> {
    let throttling = throttling(facts).filter(|throttling| throttling.of_cgroup)?;
    Some(format!(
        "{} of each CPU: throttling stops those that use more for up to {} at a time",
        allowed(&throttling),
        throttling.gap
    ))
}

/// The most changed settings that are named.
const CHANGED_MOST: usize = 4;

/// The sentence that settings were changed while something was measured; `None` where none was.
pub(crate) fn changed(settings: &[ChangedSetting]) -> Option<String> {
    let text = "settings changed while it measured, so the figures are of both; measure again";
    Some(format!("{text}: {}", changes(settings)?))
}

/// The settings that are not what they were, with both values; `None` where all are.
pub(crate) fn changes(settings: &[ChangedSetting]) -> Option<String> {
    let change = |setting: &ChangedSetting| {
        format!(
            "{} was {} and is {}",
            setting.name,
            format::plain(&setting.from),
            format::plain(&setting.to)
        )
    };
    let named: Vec<String> = settings.iter().take(CHANGED_MOST).map(change).collect();
    let more = match settings.len().saturating_sub(CHANGED_MOST) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

/// The sentence about a risk of an experiment's plan.
pub(crate) fn planned(caution: &Caution) -> String {
    let Caution { cpu, share, throttling } = caution;
    format!(
        "the loops spin for {} of CPU {cpu}, but {}: throttling will stop them for up to {} at a \
         time",
        format::share(*share),
        allowed(throttling),
        throttling.gap
    )
}

/// The sentence about what real-time loops took of a CPU: that throttling hit them, or that they
/// left little to others; `None` where they left enough.
pub(crate) fn taken(taken: &CpuTaken) -> Option<String> {
    let restless = || taken.is_restless().then(|| restless(taken));
    taken.throttled().as_ref().map(throttled).or_else(restless)
}

fn restless(taken: &CpuTaken) -> String {
    let limit = match &taken.throttling {
        Some(throttling) => format!(
            "{}, and beyond it throttling stops them for up to {} at a time",
            allowed(throttling),
            throttling.gap
        ),
        None => "no throttling is known that limits them".to_owned(),
    };
    format!(
        "the loops used {} of CPU {}, so other threads there, the kernel's too, got only {}; \
         {limit}: choose a longer period, another wait or an isolated CPU",
        format::share(taken.share),
        taken.cpu,
        format::share((1.0 - taken.share).max(0.0)),
    )
}

fn throttled(caution: &Caution) -> String {
    let Caution { cpu, share, throttling } = caution;
    format!(
        "the loops used {} of CPU {cpu}, but {}: throttling may have stopped them for up to {} at \
         a time",
        format::share(*share),
        allowed(throttling),
        throttling.gap
    )
}

/// The error of an experiment that was refused.
pub(crate) fn risk(risk: &Risk) -> Error {
    match risk {
        Risk::NoCpuLeft => anyhow!(
            "every CPU is measured and real-time throttling is off (kernel.sched_rt_runtime_us is \
             -1, or as long as the period): a loop that does not yield could not be stopped; \
             leave a CPU out of --cpu, or set it to 950000"
        ),
        Risk::NoRest { period, shortest } => anyhow!(
            "--wait spin: a period of {} leaves no time to rest; it must be at least {shortest}",
            format::period(period.as_ns()),
        ),
        Risk::TooFine { option, value_ns, stamp_ns, times } => anyhow!(
            "{option} {}: one timestamp takes {stamp_ns:.0} ns here; it must be at least {times} \
             times that",
            format::period(*value_ns),
        ),
    }
}

/// The error where nothing was measured.
pub(crate) fn error(why: ExperimentError) -> Error {
    match why {
        ExperimentError::Refused(why) => risk(&why),
        ExperimentError::Signal(why) => Error::new(why).context("cannot catch SIGINT"),
        ExperimentError::Thread(why) => Error::new(why).context("cannot measure"),
        ExperimentError::Panic => anyhow!("a measuring thread panicked: this is a bug in punctual"),
        ExperimentError::Load(why)
        | ExperimentError::Source(why)
        | ExperimentError::Evidence(why) => anyhow!(why),
        ExperimentError::Follow(why) => anyhow!("the clock cannot be followed: {why}"),
        ExperimentError::Destination(why) => anyhow!(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::time::{Period, Span};

    #[test]
    fn settings_that_changed_are_named_up_to_a_few() {
        assert_eq!(changed(&[]), None);
        let setting = |name: &str| ChangedSetting {
            name: name.to_owned(),
            from: "1".to_owned(),
            to: "10".to_owned(),
        };
        let text = changed(&[setting("vm.stat_interval")]).expect("a change");
        assert!(text.ends_with("measure again: vm.stat_interval was 1 and is 10"), "{text}");
        let six = changed(&["a", "b", "c", "d", "e", "f"].map(setting)).expect("six");
        assert!(six.ends_with("d was 1 and is 10, and 2 more"), "{six}");
    }

    #[test]
    fn loads_that_cannot_run_where_it_measures_have_a_line() {
        let list = |text| CpuList::parse(text, 15).expect("a list");
        assert_eq!(loads_elsewhere(&list("3"), &list("0-3")), None);
        assert_eq!(loads_elsewhere(&list("3"), &CpuList::new()), None, "idle");
        assert_eq!(
            loads_elsewhere(&list("2-3"), &list("0-2")).as_deref(),
            Some(
                "the loads ran on CPUs 0-2, not on the measured CPU 3: the kernel takes no \
                 process there by itself (isolcpus=, a cpuset or taskset); started by `taskset \
                 -c 3` all threads of this command run on that CPU, loads too"
            )
        );
    }

    #[test]
    fn what_throttling_does_is_told_with_its_gap() {
        let throttling = Throttling { share: 0.5, gap: Span::from_ms(500), of_cgroup: false };
        let caution = Caution { cpu: 1, share: 0.9, throttling };
        let text = planned(&caution);
        assert!(text.contains("throttling will stop") && text.contains("500 ms"), "{text}");
        assert!(throttled(&caution).contains("throttling may have stopped them"));
        assert!(!text.contains("control group"), "{text}");
        let throttling = Throttling { of_cgroup: true, ..throttling };
        for text in [planned, throttled].map(|say| say(&Caution { throttling, ..caution })) {
            assert!(text.contains("of this control group may use only 50"), "{text}");
        }
        let period = Period::from_ns(5_000).expect("positive");
        let why = risk(&Risk::NoRest { period, shortest: Span::from_us(40) });
        assert_eq!(
            why.to_string(),
            "--wait spin: a period of 5 µs leaves no time to rest; it must be at least 40.0 µs"
        );
    }

    #[test]
    fn loops_that_left_little_to_others_are_told_how_much_and_what_to_do() {
        let throttling = Throttling::of(950_000, 1_000_000);
        let period = Period::from_ns(10_000);
        let took = CpuTaken { cpu: 1, share: 0.84, period, throttling };
        let plain = |text: String| text.replace(['\u{a0}', '\u{202f}'], " ");
        assert_eq!(
            taken(&took).map(plain).as_deref(),
            Some(
                "the loops used 84 % of CPU 1, so other threads there, the kernel's too, got only \
                 16 %; real-time tasks may use only 95 %, and beyond it throttling stops them for \
                 up to 50.0 ms at a time: choose a longer period, another wait or an isolated CPU"
            )
        );
        let off = taken(&CpuTaken { throttling: None, ..took }).expect("restless");
        assert!(off.contains("; no throttling is known that limits them: choose"), "{off}");
        // One sentence of a CPU: where throttling may have stopped them, that one.
        let stopped = taken(&CpuTaken { share: 0.97, ..took }).expect("throttled");
        assert!(stopped.contains("throttling may have stopped them"), "{stopped}");
        assert!(!stopped.contains("got only"), "{stopped}");
        let ran_on = taken(&CpuTaken { share: 0.999, ..took }).expect("restless");
        assert!(!ran_on.contains("stopped them") && ran_on.contains("got only"), "{ran_on}");
        // As much as a loop of this period takes that spins.
        let period = Period::from_ns(1_000_000);
        assert_eq!(taken(&CpuTaken { share: 0.9, period, ..took }), None);
    }
}
