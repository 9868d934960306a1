//! Counts of a processor's own counters while a CPU is measured: cache misses, mispredictions,
//! stalls. For the experiments of Maruti's paper; reads perf events and nothing else, never prints.

use punctual_host::root::{Listing, Root};
use punctual_os::Errno;
use punctual_os::perf::{CountedEvent, CounterReading, EventCounter, EventSubject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the kernel lists what counts events: a processor's own counters are "cpu" there, "cpu_"
/// and its kind where there are several, and "armv8_" and its name on AArch64.
const EVENT_SOURCES: &str = "/sys/bus/event_source/devices";

/// Why nothing is read of the processor's own counters, which the kernel refused with `why`.
pub(crate) fn no_counters(root: &Root, why: Errno) -> String {
    let is_processor =
        |name: &str| name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv8_");
    let names = match root.list(EVENT_SOURCES) {
        Listing::Names(names) => names,
        _ => Vec::new(),
    };
    match names.iter().any(|name| is_processor(name)) {
        true => format!(
            "interrupts are counted alone: the kernel refused the processor's counters ({why}); it \
             takes root, CAP_PERFMON, or kernel.perf_event_paranoid of at most 0"
        ),
        false => format!(
            "interrupts are counted alone: this machine shows no counters of the processor \
             ({EVENT_SOURCES} has none), as most virtual machines"
        ),
    }
}

/// Count of an event that the processor counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessorCount {
    /// As perf(1) names it: "cache-misses", "branch-misses", "stalled-cycles-backend".
    pub event: String,
    /// Times that it happened, by anything on the CPU; where events share the processor's counters,
    /// extrapolated from the time in which it was counted.
    pub count: f64,
}

impl ProcessorCount {
    /// Adds what was counted more.
    pub(crate) fn add(counts: &mut Vec<Self>, counted: &[Self]) {
        for more in counted {
            match counts.iter_mut().find(|own| own.event == more.event) {
                Some(own) => own.count += more.count,
                None => counts.push(more.clone()),
            }
        }
    }
}

/// Counters that are open, of all that a CPU does.
#[derive(Debug)]
pub(crate) struct ProcessorCounters(Vec<(CountedEvent, EventCounter)>);

impl ProcessorCounters {
    /// As many of these events as the processor has.
    ///
    /// # Errors
    /// Why it has none of them.
    pub(crate) fn open(events: &[CountedEvent], cpu: u32) -> Result<Self, Errno> {
        let (mut open, mut refused) = (Vec::new(), Errno::NOENT);
        for &event in events {
            match EventCounter::open(event, EventSubject::Cpu(cpu)) {
                Ok(counter) => open.push((event, counter)),
                Err(why) => refused = why,
            }
        }
        if open.is_empty() { Err(refused) } else { Ok(Self(open)) }
    }

    /// Their counts so far.
    pub(crate) fn read(&self) -> Vec<CounterReading> {
        self.0.iter().map(|(_, counter)| counter.read().unwrap_or_default()).collect()
    }

    /// The counts since `before`; an event that was never counted meanwhile is left out.
    pub(crate) fn since(&self, before: &[CounterReading]) -> Vec<ProcessorCount> {
        let counted =
            |(((event, _), after), before): ((&(CountedEvent, _), _), &CounterReading)| {
                let (event, count) = (event.name().to_owned(), happened(*before, after)?);
                Some(ProcessorCount { event, count })
            };
        self.0.iter().zip(self.read()).zip(before).filter_map(counted).collect()
    }
}

/// Times that an event happened between two readings, extrapolated from the time in which it was
/// counted; `None` where it was not.
fn happened(before: CounterReading, after: CounterReading) -> Option<f64> {
    let since =
        |value: fn(CounterReading) -> u64| value(after).saturating_sub(value(before)) as f64;
    let running_ns = since(|count| count.running_ns);
    let share = since(|count| count.enabled_ns) / running_ns;
    (running_ns > 0.0).then(|| since(|count| count.count) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_counter_is_filled_up_and_counts_are_added_by_their_event() {
        let count =
            |count, enabled_ns, running_ns| CounterReading { count, enabled_ns, running_ns };
        assert_eq!(happened(count(5, 100, 100), count(25, 300, 300)), Some(20.0));
        assert_eq!(happened(count(5, 100, 100), count(25, 300, 150)), Some(80.0));
        assert_eq!(happened(count(5, 100, 100), count(5, 300, 100)), None, "never counted");
        let counted = |event: &str, count| ProcessorCount { event: event.to_owned(), count };
        let mut counts = vec![counted("cache-misses", 2.0)];
        let more = [counted("branch-misses", 1.0), counted("cache-misses", 3.0)];
        ProcessorCount::add(&mut counts, &more);
        assert_eq!(counts, [counted("cache-misses", 5.0), counted("branch-misses", 1.0)]);
    }

    #[test]
    fn why_nothing_else_is_counted_names_the_rights_or_the_place() {
        let why = no_counters(&Root::live(), Errno::PERM);
        assert!(why.starts_with("interrupts are counted alone: "), "{why}");
        assert!(why.contains("CAP_PERFMON") || why.contains(EVENT_SOURCES), "{why}");
    }

    #[test]
    fn a_processor_that_counts_nothing_of_what_is_asked_for_says_why() {
        let none = ProcessorCounters::open(&CountedEvent::OF_PROCESSOR, 9_999);
        assert!(none.is_err_and(|why| !no_counters(&Root::live(), why).is_empty()));
    }
}
