//! A capture cut down to its late wakes, and files of captures for other programs.
//!
//! Writes into whatever it is given; opens nothing. A `perf.data` of it gives the same answer again
//! ([`super::ReadCapture`]): beside the events it has the facts by which wakes were judged.

use std::collections::BTreeMap;
use std::io::{self, Seek, Write};

use punctual_blame::keep::LateWake;
use punctual_blame::outcome::BlameOutcome;
use punctual_blame::recall::Recall;
use punctual_trace::capture::{CaptureClock, KeptThread, KeptWakes, KeptWindow, KernelName};
use punctual_trace::event::{TaskName, Tid, TraceEvent};
use punctual_trace::symbols::Symbols;
use punctual_trace::write::CaptureHead;
use punctual_trace::write::ndjson::NdjsonWriter;
use punctual_trace::write::perf_data::{Addresses, PerfDataWriter};
use punctual_trace::write::perfetto::{PerfettoWriter, Slice, TrackSlice};
use punctual_trace::write::text::TextWriter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blamed::BlamedWake;
use super::named::NamedThreads;
use crate::capture::KeptEvents;

/// The part of a recording that was kept as a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptCounts {
    /// Late wakes whose events are in it.
    pub wakes: u64,
    /// Late wakes for whose events there was no room, 64 MB of all windows: a capture has them as
    /// they were judged.
    pub dropped: u64,
    /// Windows that lack their beginning, since too much happened meanwhile: a capture has their
    /// wakes as they were judged, and marks these as not whole.
    pub cut: u64,
    /// Events, each once.
    pub events: u64,
}

/// The part of a recording that is kept, apart from its outcome.
#[derive(Debug)]
pub(super) struct KeptRecording {
    pub(super) events: KeptEvents,
    pub(super) symbols: Symbols,
    /// The events that were recorded, `SYSTEM:NAME`.
    pub(super) recorded: Vec<String>,
    /// Threads with their processes.
    pub(super) processes: BTreeMap<Tid, Tid>,
    /// The kernel that was recorded.
    pub(super) kernel: KernelName,
}

/// The events around late wakes, with what is needed to judge them again.
#[derive(Debug)]
pub struct KeptCapture {
    events: KeptEvents,
    outcome: BlameOutcome,
    symbols: Symbols,
    recorded: Vec<String>,
    /// The processes of the threads that it names.
    processes: BTreeMap<Tid, Tid>,
    kernel: KernelName,
    /// These threads, with the names that they had first, by number.
    threads: Vec<TaskName>,
}

impl KeptCapture {
    pub(super) fn new(kept: KeptRecording, outcome: BlameOutcome) -> Self {
        let KeptRecording { events, symbols, recorded, mut processes, kernel } = kept;
        let mut named = NamedThreads::default();
        events.events().for_each(|event| named.see(event));
        let threads: Vec<TaskName> = named.tasks().copied().collect();
        let is_named = |tid: &Tid| threads.binary_search_by_key(tid, |task| task.tid).is_ok();
        processes.retain(|tid, _| is_named(tid));
        Self { events, outcome, symbols, recorded, processes, kernel, threads }
    }

    /// The counts of its wakes and events.
    pub fn counts(&self) -> KeptCounts {
        KeptCounts {
            wakes: self.events.wakes(),
            dropped: self.events.missing(),
            cut: self.events.cut(),
            events: self.events.events().count() as u64,
        }
    }

    /// Writes it as a `perf.data`.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn write_perf_data<W: Write + Seek>(&self, out: W, addresses: Addresses) -> io::Result<()> {
        let recorded = self.recorded.iter().filter_map(|name| name.split_once(':'));
        let mut writer = PerfDataWriter::new(out, recorded, self.symbols.clone(), addresses)?;
        for task in &self.threads {
            writer.name_thread(task)?;
        }
        for event in self.events.events() {
            writer.write(event)?;
        }
        let has = |tid, release_ns| self.events.has_whole((tid, release_ns));
        let recall = self.outcome.recall(has, |address| writer.function(address));
        let (processes, windows) = (self.processes.clone(), self.events.windows().to_vec());
        let note = Note { punctual_blame: FORM, recall, processes, windows };
        writer.set_note(serde_json::to_string(&note)?);
        writer.set_kernel(self.kernel.clone());
        writer.finish()?;
        Ok(())
    }

    /// Writes it in another form, and returns the number of events that this left out.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn write<W: Write>(&self, form: EventForm, out: W) -> io::Result<u64> {
        let thresholds = self
            .outcome
            .threads
            .iter()
            .map(|thread| (thread.figures.task.tid, thread.table.threshold_ns.unwrap_or(0)));
        let kept = kept_wakes(self.events.windows(), thresholds).map_err(io::Error::other)?;
        let head = CaptureHead {
            clock: &CaptureClock::Monotonic,
            kernel: &self.kernel,
            symbols: self.symbols.clone(),
            kept: &kept,
        };
        let mut writer = EventFile::begin(form, out, head)?;
        writer.name_threads(&self.threads, |tid| self.processes.get(&tid).copied())?;
        for event in self.events.events() {
            writer.write(event)?;
        }
        writer.finish(&self.outcome)
    }
}

/// The number of the form of [`Note`].
const FORM: u32 = 1;

/// The note of a `perf.data` of this program, which it has beside its events.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    punctual_blame: u32,
    recall: Recall,
    /// Threads with their processes; empty where that was not written.
    #[serde(default)]
    processes: BTreeMap<Tid, Tid>,
    /// The times of which it has every event, ns, in their order and apart; empty where that was
    /// not written.
    #[serde(default)]
    windows: Vec<(u64, u64)>,
}

impl Note {
    /// From its text: the facts of the capture's late wakes, the processes of its threads, what it
    /// was cut down to. An error is why it cannot be used.
    pub(super) fn read(text: &str) -> Result<(Recall, BTreeMap<Tid, Tid>, KeptWakes), String> {
        let note: Self = serde_json::from_str(text).map_err(|why| why.to_string())?;
        match note.punctual_blame {
            FORM => {
                let kept = kept_wakes(&note.windows, note.recall.thresholds())?;
                Ok((note.recall, note.processes, kept))
            }
            form => Err(format!("it is of form {form}, and form {FORM} is read")),
        }
    }
}

/// What a capture is cut down to: its windows, and each thread with the lateness beyond which its
/// wakes were late, ns. An error is why that cannot be.
fn kept_wakes(
    windows: &[(u64, u64)],
    thresholds: impl Iterator<Item = (Tid, u64)>,
) -> Result<KeptWakes, &'static str> {
    let mut kept = KeptWakes::default();
    for &(from_ns, to_ns) in windows {
        kept.add_window(KeptWindow { from_ns, to_ns })?;
    }
    for (tid, late_over_ns) in thresholds {
        kept.add_thread(KeptThread { tid, late_over_ns })?;
    }
    Ok(kept)
}

/// The form in which events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventForm {
    /// Perfetto's trace, with late wakes and their parts as slices.
    Perfetto,
    /// NDJSON of this program.
    Ndjson,
    /// Text as ftrace prints it.
    Text,
}

/// A file of events.
#[derive(Debug)]
enum Writer<W> {
    Perfetto(Box<PerfettoWriter<W>>),
    Ndjson(NdjsonWriter<W>),
    Text(TextWriter<W>),
}

/// Writes events in one of the forms.
#[derive(Debug)]
pub(super) struct EventFile<W>(Writer<W>);

impl<W: Write> EventFile<W> {
    pub(super) fn begin(form: EventForm, out: W, head: CaptureHead<'_>) -> io::Result<Self> {
        Ok(Self(match form {
            EventForm::Perfetto => Writer::Perfetto(Box::new(PerfettoWriter::new(out, head)?)),
            EventForm::Ndjson => {
                let mut writer = NdjsonWriter::new(out, head.clock, head.symbols)?;
                writer.write_kept(head.kept)?;
                Writer::Ndjson(writer)
            }
            EventForm::Text => {
                let mut writer = TextWriter::new(out, head.clock, head.symbols)?;
                writer.write_kept(head.kept)?;
                Writer::Text(writer)
            }
        }))
    }

    /// Writes the names that threads had first, and the processes of those of which `process` knows
    /// it.
    pub(super) fn name_threads(
        &mut self,
        threads: &[TaskName],
        process: impl Fn(Tid) -> Option<Tid>,
    ) -> io::Result<()> {
        match &mut self.0 {
            Writer::Perfetto(writer) => {
                threads.iter().for_each(|task| writer.name_thread(task, process(task.tid)));
                Ok(())
            }
            Writer::Ndjson(writer) => {
                threads.iter().try_for_each(|task| writer.name_thread(task, process(task.tid)))
            }
            Writer::Text(writer) => {
                threads.iter().for_each(|task| writer.name_thread(task));
                Ok(())
            }
        }
    }

    pub(super) fn write(&mut self, event: &TraceEvent) -> io::Result<()> {
        match &mut self.0 {
            Writer::Perfetto(writer) => writer.write(event),
            Writer::Ndjson(writer) => writer.write(event),
            Writer::Text(writer) => writer.write(event),
        }
    }

    /// Ends it, with the late wakes and their causes where the form has a place for these. Returns
    /// the number of events that the form has none for.
    pub(super) fn finish(self, outcome: &BlameOutcome) -> io::Result<u64> {
        match self.0 {
            Writer::Perfetto(mut writer) => {
                let mut wakes: Vec<_> = outcome.worst.iter().chain(&outcome.sample).collect();
                wakes.sort_by_key(|wake| wake.release_ns);
                wakes.into_iter().try_for_each(|wake| slice(&mut writer, wake, outcome))?;
                let unwritten = writer.unwritten();
                writer.finish().map(|_| unwritten)
            }
            Writer::Ndjson(writer) => writer.finish().map(|_| 0),
            Writer::Text(writer) => {
                let unwritten = writer.unwritten();
                writer.finish().map(|_| unwritten)
            }
        }
    }
}

/// A late wake as a slice from its release to its first instruction, below the thread's own track,
/// and in it one for each stretch of the same cause on a CPU.
fn slice<W: Write>(
    writer: &mut PerfettoWriter<W>,
    wake: &LateWake,
    outcome: &BlameOutcome,
) -> io::Result<()> {
    let late_us = wake.lateness_ns() as f64 / 1e3;
    let whole = Slice {
        name: format!("late {late_us:.1} us: {}", outcome.main_name(wake)),
        from_ns: wake.release_ns,
        to_ns: wake.ran_ns,
        notes: Vec::new(),
    };
    let blamed = BlamedWake::of(wake, outcome);
    let parts = blamed.stretches().into_iter().map(|stretch| {
        let from_ns = wake.release_ns.saturating_add(stretch.after_ns);
        let notes = vec![("cpu", stretch.cpu.to_string()), ("rules", stretch.rules.join(", "))];
        let to_ns = from_ns.saturating_add(stretch.length_ns);
        Slice { name: stretch.marked_cause(), from_ns, to_ns, notes }
    });
    let parts: Vec<Slice> = parts.collect();
    let (thread, track) = (Some(wake.task), "late wakes");
    writer.slice(&TrackSlice { thread, track, whole: &whole, parts: &parts })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::atomic::AtomicBool;

    use punctual::RtThread;
    use punctual_blame::blame::Blame;
    use punctual_blame::config::{BlameConfig, LateThreshold, Platform};
    use punctual_core::time::{Period, Span};
    use punctual_os::affinity;
    use punctual_testkit::skip;
    use punctual_trace::event::{ContextFlags, TraceKind};

    use super::super::{
        BlameExperiment, BlameSubject, ReadCapture, ReadCaptureError, RecordedMachine,
    };
    use super::*;
    use crate::capture::ThreadTarget;

    #[test]
    fn a_note_of_another_form_is_refused() {
        for note in ["", "{}", "{\"punctual_blame\":1}", "[1]", "{\"punctual_blame\":1,\"x\":2}"] {
            let why = Note::read(note).expect_err(note);
            assert!(!why.is_empty() && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn events_without_a_place_in_a_form_are_counted() {
        let (kernel, kept) = (KernelName::default(), KeptWakes::default());
        let outcome = Blame::new(BlameConfig::default()).finish();
        let left_out = |form, cpu| {
            let (clock, symbols) = (&CaptureClock::Monotonic, Symbols::default());
            let head = CaptureHead { clock, kernel: &kernel, symbols, kept: &kept };
            let mut writer = EventFile::begin(form, Vec::new(), head).expect("memory");
            let (context, kind) = (ContextFlags::default(), TraceKind::PageFaultExit);
            let event = TraceEvent { at_ns: 5, cpu, tid: 7, context, kind, chain: Box::default() };
            writer.write(&event).expect("memory");
            writer.finish(&outcome).expect("memory")
        };
        assert_eq!(left_out(EventForm::Ndjson, u32::MAX), 0);
        assert_eq!(left_out(EventForm::Text, 0), 1, "no tracepoint");
        assert_eq!([0, u32::MAX].map(|cpu| left_out(EventForm::Perfetto, cpu)), [0, 1]);
    }

    /// Three tenths of a second of a loop with late wakes enough, so that the windows of all of
    /// them fit also where the machine is busy; `None` where that may not be recorded.
    fn recorded() -> Option<KeptCapture> {
        if !skip::need_tracing() {
            return None;
        }
        let cpu = affinity::get(0).expect("known").iter().next().expect("one");
        let period = Period::from_ns(1_000_000).expect("above zero");
        let thread = RtThread::cpu(cpu);
        let experiment = BlameExperiment {
            subject: BlameSubject::Loop { thread: thread.clone(), period },
            duration: Span::from_ms(300),
            late: LateThreshold::Above(5_000),
            loads: (String::new(), Vec::new()),
            machine: RecordedMachine {
                platform: Platform::VirtualMachine,
                kernel: None,
                smi_cpu: None,
            },
            stop_over: None,
            keeps: true,
        };
        let stop = AtomicBool::new(false);
        let recorded = experiment.own_loop(&thread, period, &stop, &mut |_| {});
        let result = recorded.unwrap_or_else(|why| panic!("{why:?}")).result;
        Some(result.kept.expect("it was to be kept"))
    }

    /// Everything that is said of a wake.
    fn said(wake: &LateWake, outcome: &BlameOutcome) -> String {
        let parts = wake.parts.iter().map(|part| {
            let cause = outcome.part_name(wake, &part.cause);
            (part.from_ns, part.to_ns, part.cpu, cause, part.rule, part.certainty)
        });
        let chain: Vec<_> = wake.chain.iter().map(|&frame| outcome.function(frame)).collect();
        format!(
            "{:?} {} {} {} {} {} {:?} {chain:?}",
            wake.task,
            wake.release_ns,
            wake.ran_ns,
            wake.ran_from_ns,
            outcome.main_name(wake),
            wake.is_whole,
            parts.collect::<Vec<_>>(),
        )
    }

    #[test]
    fn each_kept_wake_is_judged_again_as_it_was() {
        let Some(mut kept) = recorded() else { return };
        // Where others keep the CPU for the whole of it, again.
        for _ in 0..20 {
            if kept.counts().wakes <= 50 {
                kept = recorded().expect("as before");
            }
        }
        assert!(kept.counts().wakes > 50, "{:?}", kept.counts());
        let counts = kept.counts();
        assert_eq!((counts.dropped, counts.cut), (0, 0), "there is room for all");
        for addresses in [Addresses::Kept, Addresses::Numbered] {
            let mut file = Cursor::new(Vec::new());
            kept.write_perf_data(&mut file, addresses).expect("to memory");
            let read = ReadCapture::read(&mut file, None, None).expect("what was written");
            let own = ThreadTarget::Process(std::process::id().cast_signed());
            let of_process = ReadCapture::read(&mut file, Some(&own), None).expect("its process");
            assert_eq!(of_process.blamed, read.blamed, "of one thread alone");
            let other = ReadCapture::read(&mut file, Some(&ThreadTarget::Process(1)), None);
            assert!(matches!(other, Err(ReadCaptureError::Process { pid: 1, .. })), "{other:?}");
            let wakes = |outcome: &BlameOutcome| -> Vec<String> {
                let wakes = outcome.worst.iter().chain(&outcome.sample);
                wakes.map(|wake| said(wake, outcome)).collect()
            };
            let (again, before) = (wakes(&read.outcome), wakes(&kept.outcome));
            assert_eq!(again.len(), before.len(), "{addresses:?}");
            for (again, before) in again.iter().zip(&before) {
                assert_eq!(again, before, "{addresses:?}");
            }
        }
    }

    #[test]
    fn other_forms_have_its_windows_and_no_wake_between_them() {
        let Some(kept) = recorded() else { return };
        let late = |outcome: &BlameOutcome| -> BTreeMap<u64, u64> {
            let wakes = outcome.worst.iter().chain(&outcome.sample);
            wakes.map(|wake| (wake.ran_ns, wake.lateness_ns())).collect()
        };
        let before = late(&kept.outcome);
        for form in [EventForm::Ndjson, EventForm::Text] {
            let mut file = Cursor::new(Vec::new());
            kept.write(form, &mut file).expect("to memory");
            let read = ReadCapture::read(&mut file, None, None).expect("what was written");
            assert!(read.untold[0].contains("around late wakes alone"), "{:?}", read.untold);
            assert_eq!(read.outcome.table.threshold_ns, Some(5_000), "not rounded");
            let again = late(&read.outcome);
            // Of a wake that is later the window may not reach back to where its timer was set.
            let is_near = |(_, lateness_ns): &(&u64, &u64)| **lateness_ns < 5_000_000;
            let lost = before.iter().filter(is_near).filter(|(ran, _)| !again.contains_key(ran));
            assert_eq!(lost.count(), 0, "{form:?}: {} of {}", again.len(), before.len());
            assert!(again.len() <= before.len(), "{form:?}");
            for (ran_ns, lateness_ns) in again {
                // The offset of a timer's clock, some ns, is estimated there.
                let known_ns = before.get(&ran_ns).copied();
                let is_near = |known_ns: u64| known_ns.abs_diff(lateness_ns) < 1_000;
                let is_known = known_ns.is_some_and(is_near);
                assert!(is_known, "{form:?}: {ran_ns}: {lateness_ns}, {known_ns:?}");
            }
            // Once more, into the form that it has.
            let mut copy = Vec::new();
            read.write(&mut file, form, &mut copy).expect("to memory");
            let windows = |bytes: &[u8]| {
                let text = String::from_utf8_lossy(bytes).into_owned();
                text.lines()
                    .filter(|line| line.contains("window\"") || line.contains("window:"))
                    .count()
            };
            assert_eq!(windows(&copy), windows(file.get_ref()), "{form:?}");
            assert!(windows(&copy) > 0, "{form:?}");
        }
    }

    #[test]
    fn what_is_said_of_wakes_lies_in_perfettos_tracks_of_threads() {
        let Some(kept) = recorded() else { return };
        let mut forms = Vec::new();
        for form in [EventForm::Perfetto, EventForm::Ndjson, EventForm::Text] {
            let mut out = Vec::new();
            kept.write(form, &mut out).expect("to memory");
            forms.push(String::from_utf8_lossy(&out).into_owned());
        }
        let wake = &kept.outcome.worst[0];
        let main = kept.outcome.main_name(wake);
        assert!(forms[0].contains("late wakes") && forms[0].contains("(not recorded)"));
        assert!(forms[0].contains(&main), "{main}");
        let events = kept.counts().events as usize;
        assert!(forms[1].lines().count() > events);
        assert!(forms[1].contains(&format!("{{\"pid\":{},\"thread\"", std::process::id())));
        assert!(forms[2].contains("sched_switch: prev_comm="));
    }
}
