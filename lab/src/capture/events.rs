//! The wanted events that this kernel has, with their formats.
//!
//! Reads formats from tracefs, whose events have other numbers on each kernel.

use std::ffi::CString;
use std::fmt;

use punctual_host::root::{Read, Root};
use punctual_host::tracefs::Tracefs;
use punctual_os::Errno;
use punctual_trace::decode::Decoder;
use punctual_trace::format::EventFormat;
use punctual_trace::reasons::IpiReasons;
use punctual_trace::wanted::{EventFilter, FilterFacts, WANTED, WantedEvent, WantedOn};

use super::{CapturePlan, CaptureRefused, EventSet};

/// An event that is to be opened.
#[derive(Clone, Debug)]
pub(super) struct KernelEvent {
    pub(super) wanted: &'static WantedEvent,
    pub(super) id: u64,
    pub(super) filter: Option<CString>,
    pub(super) frames: u16,
}

/// All events that are to be opened, with their formats.
#[derive(Debug, Default)]
pub(super) struct KernelEvents {
    pub(super) events: Vec<KernelEvent>,
    pub(super) formats: Vec<EventFormat>,
    /// Those of this kernel, where it has events whose records need them.
    pub(super) reasons: IpiReasons,
    pub(super) missing: Vec<MissingEvidence>,
}

/// The reason for which an event is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingWhy {
    /// This kernel does not have it.
    NotInKernel,
    /// Its format is not understood.
    Format {
        /// The reason, in words.
        why: String,
    },
    /// The kernel refused it.
    Refused(Errno),
    /// The kernel refused its filter.
    Filter(Errno),
}

/// An event that is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingEvidence {
    /// Its system.
    pub system: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The reason for which it is not recorded.
    pub why: MissingWhy,
    /// The evidence that is missing without it, in words.
    pub lost: &'static str,
}

impl MissingEvidence {
    /// The processor's counters, which the kernel refused.
    pub(super) const fn of_counters(why: Errno) -> Self {
        let lost =
            "cycles, instructions, cache misses and stalls around late wakes are not counted";
        Self { system: "processor", name: "counters", why: MissingWhy::Refused(why), lost }
    }

    pub(super) fn new(wanted: &WantedEvent, why: MissingWhy) -> Self {
        Self { system: wanted.system, name: wanted.name, why, lost: wanted.lost_without }
    }
}

impl fmt::Display for MissingEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ", self.system, self.name)?;
        match &self.why {
            MissingWhy::NotInKernel => f.write_str("is not in this kernel")?,
            MissingWhy::Format { why } => f.write_str(why)?,
            MissingWhy::Refused(why) => write!(f, "was refused ({why})")?,
            MissingWhy::Filter(why) => write!(f, "takes no filter here ({why})")?,
        }
        write!(f, ": {}", self.lost)
    }
}

impl KernelEvents {
    /// Looks for the events that the plan needs.
    ///
    /// # Errors
    /// No tracefs, or none that may be read.
    pub(super) fn find(root: &Root, plan: &CapturePlan) -> Result<Self, CaptureRefused> {
        let tracefs = Tracefs::find(root).map_err(CaptureRefused::Tracefs)?;
        let threads: Vec<u32> =
            plan.threads.iter().filter_map(|&tid| u32::try_from(tid).ok()).collect();
        let fast_loops: Vec<u32> = plan.fast_loops.iter().map(|fast| fast.tid).collect();
        let facts = FilterFacts { threads: &threads, fast_loops: &fast_loops, tick: plan.tick };
        let mut found = Self::default();
        for wanted in WANTED {
            let Some(filter) = wanted_filter(wanted, plan) else { continue };
            match format_of(root, &tracefs, wanted) {
                Ok(format) => found.add(wanted, format, filter.text(&facts), plan.has_chains),
                Err(why) => found.lack(MissingEvidence::new(wanted, why)),
            }
        }
        found.drop_shown();
        if found.has("ipi_entry") {
            found.take_reasons(tracefs.texts(root));
        }
        Ok(found)
    }

    /// Takes the texts by which interrupts from other CPUs have their kinds.
    fn take_reasons(&mut self, texts: Read) {
        let why = match texts {
            Read::Text(texts) => {
                self.reasons = IpiReasons::parse(texts.as_bytes());
                MissingWhy::Format { why: "names no interrupt".to_owned() }
            }
            Read::Absent => MissingWhy::NotInKernel,
            Read::Unreadable { why } => MissingWhy::Format { why },
        };
        if self.reasons.is_empty() {
            let lost = "what interrupts by other CPUs ask for is unknown";
            self.lack(MissingEvidence { system: "tracefs", name: "printk_formats", why, lost });
        }
    }

    fn has(&self, name: &str) -> bool {
        self.events.iter().any(|event| event.wanted.name == name)
    }

    /// What another event of this kernel shows is not missing.
    fn drop_shown(&mut self) {
        let shown: Vec<&str> = WANTED
            .iter()
            .filter(|wanted| wanted.is_shown_by_another(|other| self.has(other)))
            .map(|wanted| wanted.name)
            .collect();
        self.missing.retain(|missing| !shown.contains(&missing.name));
    }

    fn add(
        &mut self,
        wanted: &'static WantedEvent,
        format: EventFormat,
        filter: Option<String>,
        has_chains: bool,
    ) {
        // No text of these has a zero.
        let filter = filter.and_then(|text| CString::new(text).ok());
        let frames = if wanted.has_chain && has_chains { super::FRAMES } else { 0 };
        self.events.push(KernelEvent { wanted, id: format.id().into(), filter, frames });
        if !self.formats.iter().any(|known| known.id() == format.id()) {
            self.formats.push(format);
        }
    }

    fn lack(&mut self, lacking: MissingEvidence) {
        if !self.missing.contains(&lacking) {
            self.missing.push(lacking);
        }
    }
}

/// The filter with which the plan opens an event; `None` where it does not.
fn wanted_filter(wanted: &WantedEvent, plan: &CapturePlan) -> Option<EventFilter> {
    let on = match wanted.on {
        WantedOn::Everywhere => true,
        WantedOn::VirtualMachine => plan.in_guest,
        WantedOn::Metal => !plan.in_guest,
    };
    let filter = match plan.set {
        EventSet::Full => wanted.filter,
        EventSet::Top => wanted.top,
    };
    // Of nobody's, all would be recorded.
    let of_nobody = filter == Some(EventFilter::FollowedThreads) && plan.threads.is_empty();
    filter.filter(|_| on && !of_nobody)
}

fn format_of(
    root: &Root,
    tracefs: &Tracefs,
    wanted: &WantedEvent,
) -> Result<EventFormat, MissingWhy> {
    match tracefs.format(root, wanted.system, wanted.name) {
        Read::Absent => Err(MissingWhy::NotInKernel),
        Read::Unreadable { why } => Err(MissingWhy::Format { why }),
        Read::Text(text) => {
            let format = EventFormat::parse(wanted.system, &text);
            let format = format.map_err(|why| MissingWhy::Format { why: why.to_string() })?;
            match Decoder::new([&format]).unusable() {
                [] => Ok(format),
                [why, ..] => Err(MissingWhy::Format { why: why.to_string() }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::tracefs::TracefsRefused;
    use punctual_trace::event::Vector;

    use crate::testing::Tree;

    fn format(name: &str, id: u32) -> String {
        format!(
            "name: {name}\nID: {id}\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
        )
    }

    #[test]
    fn without_tracefs_the_way_out_is_told() {
        let tree = Tree::new(&[]);
        let refused = KernelEvents::find(&tree.root(), &CapturePlan::new(EventSet::Full));
        let why = refused.expect_err("there is none");
        assert_eq!(why, CaptureRefused::Tracefs(TracefsRefused::NotMounted));
        assert!(why.to_string().contains("mount -t tracefs"), "{why}");
    }

    #[test]
    fn what_the_kernel_has_is_opened_and_the_rest_is_missing() {
        let softirq = format("softirq_entry", 7)
            + "\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n";
        let timer = format("local_timer_entry", 9);
        let events = "sys/kernel/debug/tracing/events";
        let [softirq_path, timer_path, bad_path] =
            ["irq/softirq_entry", "irq_vectors/local_timer_entry", "irq/softirq_exit"]
                .map(|event| format!("{events}/{event}/format"));
        let tree =
            Tree::new(&[(&softirq_path, &softirq), (&timer_path, &timer), (&bad_path, "ID: no\n")]);
        let plan = CapturePlan::new(EventSet::Full).following(&[5, 6]);
        let found = KernelEvents::find(&tree.root(), &plan).expect("in debugfs");
        let ids: Vec<u64> = found.events.iter().map(|event| event.id).collect();
        assert_eq!(ids, [9, 9, 7], "the timer with a chain and without");
        assert_eq!(found.formats.len(), 2);
        let frames: Vec<u16> = found.events.iter().map(|event| event.frames).collect();
        assert_eq!(frames, [super::super::FRAMES, 0, 0]);
        assert!(found.events[0].filter.is_some() && found.events[2].filter.is_none());
        let why = |name: &str| {
            let missing = found.missing.iter().find(|missing| missing.name == name);
            missing.map(|missing| missing.why.clone())
        };
        assert_eq!(why("sched_switch"), Some(MissingWhy::NotInKernel));
        assert!(matches!(why("softirq_exit"), Some(MissingWhy::Format { .. })));
        assert_eq!(why("softirq_entry"), None);
        for missing in &found.missing {
            let text = missing.to_string();
            assert!(text.contains(missing.name) && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn interrupts_from_other_cpus_are_events_of_either_kind() {
        let events = "sys/kernel/tracing/events";
        let path = |event: &str| format!("{events}/{event}/format");
        let reason = "\tfield:const char * reason;\toffset:8;\tsize:8;\tsigned:0;\n";
        let ipi = ["ipi_entry", "ipi_exit"].map(|name| format(name, 3) + reason);
        let texts = "0x6 : \"Rescheduling interrupts\"\n";
        let arm64 = Tree::new(&[
            (&path("ipi/ipi_entry"), &ipi[0]),
            (&path("ipi/ipi_exit"), &ipi[1]),
            ("sys/kernel/tracing/printk_formats", texts),
        ]);
        let names = ["reschedule_entry", "reschedule_exit"];
        let vectors = names.map(|name| format(name, 5));
        let x86 = Tree::new(&[
            (&path("irq_vectors/reschedule_entry"), &vectors[0]),
            (&path("irq_vectors/reschedule_exit"), &vectors[1]),
            // x86 has it too, from 6.4 on.
            (&path("ipi/ipi_entry"), &ipi[0]),
            ("sys/kernel/tracing/printk_formats", texts),
        ]);
        let plan = CapturePlan::new(EventSet::Full);
        let [arm64, x86] = [arm64, x86].map(|tree| KernelEvents::find(&tree.root(), &plan));
        let (arm64, x86) = (arm64.expect("there"), x86.expect("there"));
        let lacks = |found: &KernelEvents, name: &str| {
            found.missing.iter().any(|missing| missing.name == name)
        };
        assert!(!lacks(&arm64, "reschedule_entry") && !lacks(&arm64, "call_function_exit"));
        assert!(!lacks(&arm64, "local_timer_entry") && !lacks(&arm64, "thermal_apic_exit"));
        assert!(!lacks(&x86, "ipi_entry") && lacks(&x86, "call_function_exit"));
        assert!(lacks(&x86, "local_timer_entry") && lacks(&x86, "thermal_apic_exit"));
        assert_eq!(arm64.reasons.vector(6), Some(Vector::Reschedule));
        assert!(!lacks(&arm64, "printk_formats") && !lacks(&x86, "printk_formats"));
        let untold = Tree::new(&[
            (&path("ipi/ipi_entry"), &ipi[0]),
            ("sys/kernel/tracing/printk_formats", "0x6 : \"rcu\"\n"),
        ]);
        let untold = KernelEvents::find(&untold.root(), &plan).expect("there");
        let lines: Vec<String> = untold.missing.iter().map(ToString::to_string).collect();
        let expected = "tracefs:printk_formats names no interrupt: what interrupts by other CPUs \
                        ask for is unknown";
        assert!(lines.iter().any(|line| line == expected), "{lines:?}");
    }

    #[test]
    fn own_system_calls_are_those_of_somebody() {
        let named = |plan: &CapturePlan, name: &str| {
            let wanted = WANTED.iter().find(|wanted| wanted.name == name).expect("wanted");
            wanted_filter(wanted, plan)
        };
        let full = CapturePlan::new(EventSet::Full);
        assert_eq!(named(&full, "sys_enter"), None);
        let one = full.clone().following(&[1]);
        assert_eq!(named(&one, "sys_enter"), Some(EventFilter::FollowedThreads));
        assert_eq!(named(&CapturePlan::new(EventSet::Top).following(&[1]), "sys_enter"), None);
        assert!(named(&CapturePlan::new(EventSet::Top), "sched_switch").is_some());
        let guest = full.clone().in_guest(true);
        assert_eq!(
            (named(&full, "cpu_idle").is_some(), named(&guest, "cpu_idle").is_some()),
            (true, false)
        );
    }
}
