//! The events that attribution wants of a kernel, and what each is for.
//!
//! Measured on one machine with Linux 6.18 (PREEMPT_DYNAMIC none, 2 CPUs): a row's `lost_without`
//! names what became of injected causes when that event was left out.

use std::fmt::Write as _;

use crate::event::Tid;

/// The machines that an event is opened on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WantedOn {
    /// On each.
    Everywhere,
    /// In a virtual machine: it shows how much of a gap the host took.
    VirtualMachine,
    /// On hardware: a virtual machine has neither idle states nor frequencies of its own.
    Metal,
}

/// The records of an event that are kept: the filter that the kernel shall apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventFilter {
    /// Each.
    Everything,
    /// Those for which this text holds, in the kernel's own language of filters.
    Text(&'static str),
    /// Those of the followed threads.
    FollowedThreads,
    /// Those about other threads than fast loops, of whose own CPU time no figure is made.
    OthersThanFastLoops,
    /// Those of timers other than the tick, which is most of them and wakes no thread by itself.
    /// Sleeps, timerfds, timers of POSIX, of SCHED_DEADLINE and of io_uring each have a function of
    /// their own.
    NotTheTick,
}

/// The tick's function: from 6.9 on, and before.
pub const TICKS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];

/// The facts of the machine and of the measurement that filters need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FilterFacts<'a> {
    /// The followed threads.
    pub threads: &'a [Tid],
    /// Loops that wake so often that their own records are most of all.
    pub fast_loops: &'a [Tid],
    /// The address of the tick's function ([`TICKS`]); nothing where the kernel hides its
    /// addresses.
    pub tick: Option<u64>,
}

impl EventFilter {
    /// The kernel's text of it; nothing if each record is kept, as when what it needs is unknown.
    #[must_use]
    pub fn text(self, facts: &FilterFacts<'_>) -> Option<String> {
        match self {
            Self::Everything => None,
            Self::Text(text) => Some(text.to_owned()),
            Self::FollowedThreads if facts.threads.is_empty() => None,
            Self::FollowedThreads => {
                let mut text = String::new();
                for thread in facts.threads {
                    let or = if text.is_empty() { "" } else { "||" };
                    // Writing to a text does not fail.
                    let _ = write!(text, "{or}common_pid=={thread}");
                }
                Some(text)
            }
            Self::OthersThanFastLoops if facts.fast_loops.is_empty() => None,
            Self::OthersThanFastLoops => {
                let others: Vec<String> =
                    facts.fast_loops.iter().map(|tid| format!("pid!={tid}")).collect();
                Some(others.join("&&"))
            }
            Self::NotTheTick => facts.tick.map(|address| format!("function!={address:#x}")),
        }
    }
}

/// An event that attribution wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WantedEvent {
    /// Its system, `sched`.
    pub system: &'static str,
    /// Its name, `sched_switch`.
    pub name: &'static str,
    /// Those of its records that are kept; `None` where it is of the small set alone.
    pub filter: Option<EventFilter>,
    /// True where the kernel's call chain is recorded with it, which costs half a microsecond.
    pub has_chain: bool,
    /// The machines that it is opened on.
    pub on: WantedOn,
    /// Its filter in the small set that shows all real-time threads; nothing if it is not in it.
    pub top: Option<EventFilter>,
    /// True where kernels that lack it do not do what it shows: nothing is lost there.
    pub is_extra: bool,
    /// The event that kernels of another architecture have in its place: where one has that,
    /// nothing is lost.
    pub shown_by: Option<&'static str>,
    /// The evidence that is lost without it, in words.
    pub lost_without: &'static str,
}

/// A row that is opened everywhere, without filter, without a chain, and not for `top`.
const fn row(system: &'static str, name: &'static str, lost_without: &'static str) -> WantedEvent {
    WantedEvent {
        system,
        name,
        filter: Some(EventFilter::Everything),
        has_chain: false,
        on: WantedOn::Everywhere,
        top: None,
        is_extra: false,
        shown_by: None,
        lost_without,
    }
}

/// A row of an x86 vector's beginning. AArch64 has `ipi_entry` in place of all of them; its timer's
/// interrupt is one of a handler there.
const fn vector_entry(name: &'static str, lost_without: &'static str) -> WantedEvent {
    row("irq_vectors", name, lost_without).or("ipi_entry")
}

/// A row of its end.
const fn vector_exit(name: &'static str, lost_without: &'static str) -> WantedEvent {
    row("irq_vectors", name, lost_without).or("ipi_exit")
}

impl WantedEvent {
    /// Returns true where another architecture's event stands for this one. x86 has the events of
    /// AArch64 too (6.4 on), of which none comes: where a kernel has a vector, it is an x86.
    #[must_use]
    pub fn is_shown_by_another(&self, has: impl Fn(&str) -> bool) -> bool {
        let is_vector = |row: &&Self| row.system == "irq_vectors";
        let is_x86 = || WANTED.iter().filter(is_vector).any(|row| has(row.name));
        self.shown_by.is_some_and(&has) && !(is_vector(&self) && is_x86())
    }

    const fn filtered(self, filter: EventFilter) -> Self {
        Self { filter: Some(filter), ..self }
    }

    const fn chained(self) -> Self {
        Self { has_chain: true, ..self }
    }

    const fn extra(self) -> Self {
        Self { is_extra: true, ..self }
    }

    const fn or(self, shown_by: &'static str) -> Self {
        Self { shown_by: Some(shown_by), ..self }
    }

    const fn on(self, on: WantedOn) -> Self {
        Self { on, ..self }
    }

    const fn in_top(self, filter: EventFilter) -> Self {
        Self { top: Some(filter), ..self }
    }

    const fn in_top_alone(self) -> Self {
        Self { filter: None, top: Some(EventFilter::Everything), ..self }
    }
}

/// The events in the order in which they are opened; `local_timer_entry` twice, for only where it
/// interrupts a thread a call chain is worth its price. `irq_work_exit` is refused to perf, and
/// without it the entry is of no use.
pub const WANTED: &[WantedEvent] = &[
    row("timer", "hrtimer_start", "no lateness of other programs: the expiry is unknown")
        .in_top(EventFilter::NotTheTick),
    row("timer", "hrtimer_expire_entry", "no release, no lateness of the interrupt")
        .in_top(EventFilter::NotTheTick),
    // All events show it by the interrupt's end. Without, a device's waking looks like the timer's
    // that expired before it.
    row("timer", "hrtimer_expire_exit", "wakings by devices may look like those of timers")
        .in_top_alone(),
    row("timer", "hrtimer_start_expired", "timers set into the past seem to never expire (7.1 on)")
        .in_top(EventFilter::Everything)
        .extra(),
    row("timer", "hrtimer_rearm", "the timer's reprogramming is not told apart (7.1 on)").extra(),
    row("sched", "sched_waking", "nothing can be told: when a thread could run is unknown")
        .in_top(EventFilter::Text("prio<100")),
    row("sched", "sched_switch", "nothing can be told: who runs is unknown")
        .in_top(EventFilter::Text("prev_prio<100||next_prio<100")),
    vector_entry("local_timer_entry", "the host and switched-off interrupts look alike")
        .filtered(EventFilter::Text("common_pid!=0"))
        .chained(),
    vector_entry("local_timer_entry", "the timer's interrupt of an idle CPU is unknown")
        .filtered(EventFilter::Text("common_pid==0")),
    vector_exit("local_timer_exit", "the cost of reprogramming the timer is unknown"),
    row("irq", "softirq_entry", "soft interrupts are not named (62 of 92 right became 0)"),
    row("irq", "softirq_exit", "soft interrupts are not named"),
    row("irq", "irq_handler_entry", "devices are not named"),
    row("irq", "irq_handler_exit", "devices are not named"),
    vector_entry("reschedule_entry", "interrupts by other CPUs are unknown"),
    vector_exit("reschedule_exit", "interrupts by other CPUs are unknown"),
    vector_entry("call_function_entry", "interrupts by other CPUs are unknown"),
    vector_exit("call_function_exit", "interrupts by other CPUs are unknown"),
    vector_entry("call_function_single_entry", "interrupts by other CPUs are unknown"),
    vector_exit("call_function_single_exit", "interrupts by other CPUs are unknown"),
    vector_entry("thermal_apic_entry", "thermal interrupts are unknown"),
    vector_exit("thermal_apic_exit", "thermal interrupts are unknown"),
    vector_entry("error_apic_entry", "interrupts of the processor's errors are unknown"),
    vector_exit("error_apic_exit", "interrupts of the processor's errors are unknown"),
    vector_entry("spurious_apic_entry", "spurious interrupts are unknown"),
    vector_exit("spurious_apic_exit", "spurious interrupts are unknown"),
    vector_entry("x86_platform_ipi_entry", "platform interrupts are unknown"),
    vector_exit("x86_platform_ipi_exit", "platform interrupts are unknown"),
    // AArch64 has these in place of vectors.
    row("ipi", "ipi_entry", "interrupts by other CPUs are unknown").or("reschedule_entry").extra(),
    row("ipi", "ipi_exit", "interrupts by other CPUs are unknown").or("reschedule_exit").extra(),
    row("ipi", "ipi_send_cpu", "who interrupts from another CPU is unknown (6.4 on)"),
    row("ipi", "ipi_send_cpumask", "who interrupts from another CPU is unknown (6.4 on)"),
    row("csd", "csd_queue_cpu", "an interrupt's sender is guessed by time (6.4 on)"),
    row("csd", "csd_function_entry", "an interrupt's sender is guessed by time (6.4 on)"),
    row("csd", "csd_function_exit", "one interrupt by another CPU splits into two causes"),
    row("sched", "sched_migrate_task", "a move to another CPU while ready is not seen"),
    row("sched", "sched_pi_setprio", "a lent priority looks like a lower one"),
    row("task", "task_rename", "a thread keeps its first name"),
    row("nmi", "nmi_handler", "interrupts that cannot be masked are unknown"),
    row("signal", "signal_generate", "who stopped the thread is unknown (145 of 145 became 0)")
        .filtered(EventFilter::Text("sig==18||sig==19||sig==20")),
    row("exceptions", "page_fault_user", "the thread's page faults look like its code")
        .filtered(EventFilter::FollowedThreads),
    row("raw_syscalls", "sys_enter", "the thread's system calls are not named")
        .filtered(EventFilter::FollowedThreads),
    row("raw_syscalls", "sys_exit", "the thread's system calls are not named")
        .filtered(EventFilter::FollowedThreads),
    row("workqueue", "workqueue_execute_start", "what a kworker works at is not named"),
    row("sched", "sched_stat_runtime", "how much of a gap the host took is unknown")
        .filtered(EventFilter::OthersThanFastLoops)
        .on(WantedOn::VirtualMachine),
    row("power", "cpu_idle", "idle states are not named").on(WantedOn::Metal),
    row("power", "cpu_frequency", "changes of frequency are not seen").on(WantedOn::Metal),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{EventFilter, FilterFacts, WANTED, WantedEvent};
    use crate::decode::is_known;

    #[test]
    fn every_wanted_event_is_decoded() {
        for wanted in WANTED {
            assert!(is_known(wanted.system, wanted.name), "{}:{}", wanted.system, wanted.name);
        }
    }

    #[test]
    fn a_row_is_there_once_for_each_filter() {
        let mut seen = HashSet::new();
        for wanted in WANTED {
            assert!(seen.insert((wanted.name, wanted.filter)), "{}", wanted.name);
        }
    }

    #[test]
    fn what_stands_in_the_place_of_an_event_is_an_event_of_the_same_kind() {
        for wanted in WANTED {
            let Some(shown_by) = wanted.shown_by else { continue };
            let other = WANTED.iter().find(|row| row.name == shown_by).expect("it is wanted too");
            assert_eq!(other.name.ends_with("_entry"), wanted.name.ends_with("_entry"));
            let is_vector = |row: &WantedEvent| row.system == "irq_vectors";
            assert_ne!(is_vector(other), is_vector(wanted), "{}", wanted.name);
        }
    }

    #[test]
    fn top_has_the_five_events_that_were_priced_and_a_rare_one() {
        let names: Vec<_> =
            WANTED.iter().filter(|row| row.top.is_some()).map(|row| row.name).collect();
        assert_eq!(
            names,
            [
                "hrtimer_start",
                "hrtimer_expire_entry",
                "hrtimer_expire_exit",
                "hrtimer_start_expired",
                "sched_waking",
                "sched_switch"
            ]
        );
    }

    #[test]
    fn filters_are_in_the_language_of_the_kernel() {
        let nothing = FilterFacts::default();
        let facts = FilterFacts {
            threads: &[7, 12],
            fast_loops: &[8, 9],
            tick: Some(0xffff_ffff_8123_4560),
        };
        assert_eq!(EventFilter::Everything.text(&facts), None);
        assert_eq!(EventFilter::Text("sig==19").text(&nothing).as_deref(), Some("sig==19"));
        assert_eq!(EventFilter::FollowedThreads.text(&nothing), None);
        assert_eq!(
            EventFilter::FollowedThreads.text(&facts).as_deref(),
            Some("common_pid==7||common_pid==12")
        );
        assert_eq!(EventFilter::OthersThanFastLoops.text(&nothing), None);
        assert_eq!(
            EventFilter::OthersThanFastLoops.text(&facts).as_deref(),
            Some("pid!=8&&pid!=9")
        );
        assert_eq!(EventFilter::NotTheTick.text(&nothing), None);
        assert_eq!(
            EventFilter::NotTheTick.text(&facts).as_deref(),
            Some("function!=0xffffffff81234560")
        );
    }
}
