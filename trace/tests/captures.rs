//! Captures that real programs wrote, read; each is compared with what another program says of it.

use std::fs::File;
use std::io::BufReader;
use std::mem::discriminant;
use std::path::PathBuf;

use punctual_trace::capture::perf_data::PerfDataReader;
use punctual_trace::capture::text::TextReader;
use punctual_trace::capture::trace_dat::TraceDatReader;
use punctual_trace::capture::{
    CaptureClock, CaptureError, CaptureFacts, CaptureFormat, CaptureReader, KernelName, Untold,
};
use punctual_trace::event::{ProcessorCounts, TraceEvent, TraceKind};
use punctual_trace::symbols::Symbols;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/trace/6.18").join(name)
}

fn file(name: &str) -> BufReader<File> {
    let path = path(name);
    let opened = File::open(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    BufReader::new(opened)
}

struct Whole {
    events: Vec<TraceEvent>,
    facts: CaptureFacts,
}

impl Whole {
    /// Reads to the end; whatever a real program wrote is understood and in order.
    fn read(mut reader: impl CaptureReader) -> Self {
        let mut events = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            events.push(event);
        }
        let facts = reader.facts().clone();
        assert_eq!(facts.first_problem(), None);
        assert_eq!(facts.counts().events, events.len() as u64);
        assert!(!facts.is_cut_short());
        Self { events, facts }
    }

    fn text(name: &str) -> Self {
        Self::read(TextReader::new(file(name)))
    }

    fn trace_dat(name: &str) -> Self {
        Self::read(TraceDatReader::open(file(name)).unwrap())
    }

    fn has_untold(&self, text: &str) -> bool {
        self.facts.untold().iter().any(|untold| untold.to_string().contains(text))
    }

    fn chains(&self) -> usize {
        self.events.iter().filter(|event| !event.chain.is_empty()).count()
    }

    fn is_sorted(&self) -> bool {
        self.events.is_sorted_by_key(|event| event.at_ns)
    }
}

/// Asserts the fields that one event has in binary and in text alike, where the text's times have
/// such steps.
fn alike(binary: &TraceEvent, text: &TraceEvent, step_ns: u64) {
    let near = binary.at_ns.abs_diff(text.at_ns);
    assert!(near <= step_ns, "{binary:?} {text:?}");
    assert_eq!((binary.cpu, binary.tid), (text.cpu, text.tid), "{binary:?} {text:?}");
    assert_eq!(discriminant(&binary.kind), discriminant(&text.kind), "{binary:?} {text:?}");
    match (&binary.kind, &text.kind) {
        // A function is an address in one and a name in the other.
        (
            TraceKind::TimerStart { timer, expires_ns, soft_expires_ns, .. },
            TraceKind::TimerStart { timer: b, expires_ns: c, soft_expires_ns: d, .. },
        ) => assert_eq!((timer, expires_ns, soft_expires_ns), (b, c, d)),
        (
            TraceKind::TimerExpireEntry { timer, now_ns, .. },
            TraceKind::TimerExpireEntry { timer: b, now_ns: c, .. },
        ) => assert_eq!((timer, now_ns), (b, c)),
        (TraceKind::IpiSend { targets, .. }, TraceKind::IpiSend { targets: b, .. }) => {
            assert_eq!(targets, b);
        }
        (TraceKind::CallQueued { request, .. }, TraceKind::CallQueued { request: b, .. })
        | (TraceKind::CallEntry { request, .. }, TraceKind::CallEntry { request: b, .. }) => {
            assert_eq!(request, b);
        }
        (TraceKind::WorkStart { .. }, TraceKind::WorkStart { .. }) => {}
        // Text does not show in which of two ways a thread was preempted.
        (
            TraceKind::Switch { previous, next, .. },
            TraceKind::Switch { previous: b, next: c, .. },
        ) => assert_eq!((previous, next), (b, c)),
        (binary, text) => assert_eq!(binary, text),
    }
}

#[test]
fn perf_data_says_what_perf_script_prints() {
    let binary = Whole::read(PerfDataReader::open(file("perf.data")).unwrap());
    assert!(binary.is_sorted());
    assert_eq!(binary.facts.clock(), &CaptureClock::Monotonic);
    assert!(binary.chains() > 0, "call chains of the timer's interrupt");
    assert!(!binary.has_untold("expiries in"));
    assert!(binary.has_untold("no raw_syscalls:sys_enter"));
    assert!(!binary.has_untold("no sched:sched_waking"));
    assert!(binary.events.iter().any(|event| event.kind == TraceKind::PageFaultExit));
    let text = Whole::text("perf-script.txt");
    assert_eq!(text.facts.format(), CaptureFormat::PerfScript);
    assert!(text.has_untold("steps of 1000 ns"));
    // perf prints only what it knows; a part of it was kept.
    let is_printed = |event: &&TraceEvent| event.kind != TraceKind::PageFaultExit;
    let printed: Vec<_> = binary.events.iter().filter(is_printed).collect();
    let first = &text.events[0];
    let start = printed
        .iter()
        .position(|event| {
            event.at_ns / 1000 == first.at_ns / 1000
                && discriminant(&event.kind) == discriminant(&first.kind)
        })
        .unwrap();
    let numbers_and_names: Vec<_> = printed[start..].iter().zip(&text.events).collect();
    assert_eq!(numbers_and_names.len(), text.events.len());
    assert!(numbers_and_names.len() > 200);
    for (number, name) in numbers_and_names {
        alike(number, name, 1000);
    }
}

#[test]
fn a_pipe_of_perf_is_read_once() {
    let pipe = Whole::read(PerfDataReader::open_pipe(file("perf.pipe")).unwrap());
    let saved = Whole::read(PerfDataReader::open(file("perf.pipe")).unwrap());
    assert_eq!(pipe.events, saved.events);
    assert!(pipe.events.len() > 100 && pipe.is_sorted());
    assert_eq!(pipe.facts.clock(), &CaptureClock::Monotonic);
    let refused = PerfDataReader::open_pipe(file("perf.data")).unwrap_err();
    assert!(matches!(refused, CaptureError::Unsupported { .. }), "{refused}");
}

#[test]
fn compressed_perf_data_is_refused_with_a_way_out() {
    let mut reader = PerfDataReader::open(file("perf-compressed.data")).unwrap();
    let refused = std::iter::repeat_with(|| reader.next_event()).find_map(Result::err).unwrap();
    assert_eq!(
        refused.to_string(),
        "its records are compressed (perf record -z); \
         record without -z, or give its text: perf script --ns"
    );
}

#[test]
fn each_trace_dat_says_the_same() {
    let old = Whole::trace_dat("trace-6.dat");
    assert!(old.events.len() > 150 && old.is_sorted());
    for name in ["trace-7.dat", "trace-7-zstd.dat"] {
        let new = Whole::trace_dat(name);
        assert_eq!(new.events, old.events, "{name}");
        assert_eq!(new.facts.clock(), &CaptureClock::Monotonic, "{name}");
        assert_eq!(new.facts.threads(), old.facts.threads(), "{name}");
    }
    assert!(old.facts.symbols().address_of("hrtimer_wakeup").is_some());
    assert!(old.has_untold("no call chains"));
    assert!(!old.has_untold("no sched:sched_switch"));
    assert!(old.has_untold("no nmi:nmi_handler"), "it was not switched on");
}

#[test]
fn captures_say_which_threads_a_process_has_and_which_machine_it_was() {
    let binary = Whole::read(PerfDataReader::open(file("perf.data")).unwrap());
    assert!(binary.facts.has_processes());
    let pipe = Whole::read(PerfDataReader::open_pipe(file("perf.pipe")).unwrap());
    assert!(pipe.facts.has_processes());
    for facts in [&binary.facts, &pipe.facts] {
        let kernel = facts.kernel();
        assert_eq!(kernel.machine.as_deref(), Some("x86_64"));
        assert!(kernel.release.as_deref().is_some_and(|release| release.starts_with("6.18.")));
    }
    // Each thread that wrote an event has a process, and the first of a process is its own.
    let tids = binary.events.iter().map(|event| event.tid).filter(|&tid| tid != 0);
    assert!(tids.clone().count() > 0);
    let pids = std::fs::read(path("perf.data")).map(|bytes| comms(&bytes)).unwrap();
    assert!(!pids.is_empty());
    for (tid, pid) in pids {
        assert!(binary.facts.threads_of(pid).any(|known| known == tid), "{tid} of {pid}");
    }
    // trace-cmd keeps no processes.
    let tracecmd = Whole::trace_dat("trace-6.dat");
    assert!(!tracecmd.facts.has_processes());
    assert_eq!(*tracecmd.facts.kernel(), KernelName::default(), "these were kept without it");
    assert!(!Whole::text("ftrace.txt").facts.has_processes());
}

/// Threads with their processes, as the COMM records of a `perf.data` have them.
fn comms(bytes: &[u8]) -> Vec<(u32, u32)> {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, end) = (word(40), word(40) + word(48));
    let mut found = Vec::new();
    while at < end {
        if half(at) == 3 && half(at + 12) != 0 {
            found.push((half(at + 12), half(at + 8)));
        }
        at += usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
    }
    found
}

#[test]
fn trace_dat_says_what_trace_cmd_prints() {
    let binary = Whole::trace_dat("trace-6.dat");
    for (name, step_ns) in [
        ("trace-cmd-report.txt", 1000),
        ("trace-cmd-report-R.txt", 1000),
        ("trace-cmd-report-t-l.txt", 1),
    ] {
        let text = Whole::text(name);
        assert!(text.events.len() > 140, "{name}");
        for (number, name) in binary.events.iter().zip(&text.events) {
            alike(number, name, step_ns);
        }
        if step_ns == 1 {
            for (number, name) in binary.events.iter().zip(&text.events) {
                assert_eq!((number.at_ns, number.context), (name.at_ns, name.context));
            }
        }
    }
}

#[test]
fn the_text_of_ftrace_has_contexts_and_call_chains() {
    let text = Whole::text("ftrace.txt");
    assert_eq!(text.facts.format(), CaptureFormat::FtraceText);
    assert!(text.events.len() > 150);
    assert!(text.chains() > 0);
    assert!(text.events.iter().any(|event| event.context.flags & 0x08 != 0));
    assert!(text.facts.untold().contains(&Untold::Clock(CaptureClock::Unknown)));
    let chain = text.events.iter().find(|event| !event.chain.is_empty()).unwrap();
    let names: Vec<_> = chain
        .chain
        .iter()
        .filter_map(|&address| text.facts.symbols().find(address))
        .map(|symbol| symbol.name)
        .collect();
    assert!(names.contains(&"try_to_wake_up"), "{names:?}");
    let chains = Whole::text("perf-script-chains.txt");
    assert!(chains.chains() > 10);
    assert_eq!(chains.facts.time_step_ns(), 1);
}

/// A record as perf writes it.
fn record(kind: u32, body: &[u64]) -> Vec<u8> {
    let size = u16::try_from(8 + 8 * body.len()).unwrap();
    let body: Vec<u8> = body.iter().flat_map(|word| word.to_le_bytes()).collect();
    [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes(), &body].concat()
}

/// A counter of `perf record -e '{page-faults,cycles,instructions,LLC-misses}:S' -o -`, of this
/// `type` and `config`, with its identifier on a CPU.
fn counter(kind: u64, config: u64, id: u64) -> Vec<u8> {
    let mut attr = [0_u64; 14];
    (attr[0], attr[1]) = (112 << 32 | kind, config);
    // IDENTIFIER, TID, TIME, READ, CPU; times, identifiers and a group; sample_id_all.
    (attr[3], attr[4], attr[5]) = (1 << 16 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 7, 0b1111, 1 << 18);
    record(64, &[&attr[..], &[id]].concat())
}

#[test]
fn what_the_counters_of_a_group_counted_comes_before_the_event_that_brings_it() {
    let sample = |at_ns: u64, counts: [u64; 4]| {
        let [faults, cycles, instructions, foreign] = counts;
        let group = [4, 900, 800, faults, 1, cycles, 2, instructions, 3, foreign, 99];
        record(9, &[&[1, 7 << 32 | 5, at_ns, 1][..], &group].concat())
    };
    let head = [&b"PERFILE2"[..], &16_u64.to_le_bytes()].concat();
    let attrs = [counter(1, 2, 1), counter(0, 0, 2), counter(0, 1, 3)].concat();
    let records = [sample(1_000, [1, 70, 50, 4]), sample(2_000, [2, 90, 60, 4])].concat();
    let bytes = [&head[..], &attrs, &records].concat();
    let read = Whole::read(PerfDataReader::open(std::io::Cursor::new(&bytes)).unwrap());
    let counted = |cycles, instructions| {
        TraceKind::Counters(ProcessorCounts {
            cycles: Some(cycles),
            instructions: Some(instructions),
            enabled_ns: Some(900),
            running_ns: Some(800),
            ..ProcessorCounts::default()
        })
    };
    let found: Vec<_> =
        read.events.iter().map(|event| (event.at_ns, event.cpu, event.tid, &event.kind)).collect();
    let wanted = [
        (1_000, 1, 7, &counted(70, 50)),
        (1_000, 1, 7, &TraceKind::PageFaultExit),
        (2_000, 1, 7, &counted(90, 60)),
        (2_000, 1, 7, &TraceKind::PageFaultExit),
    ];
    assert_eq!(found, wanted);
    // A group that says to have more than the record holds.
    let last = bytes.len() - sample(0, [0; 4]).len();
    let mut wrong = bytes;
    wrong[last + 8 + 4 * 8] = 5;
    let mut reader = PerfDataReader::open(std::io::Cursor::new(&wrong)).unwrap();
    while reader.next_event().unwrap().is_some() {}
    assert_eq!((reader.facts().counts().events, reader.facts().counts().undecodable), (2, 1));
}

#[test]
fn threads_that_a_trace_dat_saved_have_their_processes() {
    let bytes = std::fs::read(path("trace-6.dat")).unwrap();
    let whole = Whole::trace_dat("trace-6.dat");
    assert!(!whole.facts.has_processes());
    let place = |tag: &[u8]| bytes.windows(tag.len()).position(|part| part == tag).unwrap();
    // `saved_tgids` as one more option; the records lie behind it.
    let text = b"7 5\n8 5\n9 9\n11 x\n0 0\n";
    let option = [&8_u16.to_le_bytes()[..], &(text.len() as u32).to_le_bytes(), text].concat();
    let (options, records) = (place(b"options  \0") + 10, place(b"flyrecord\0") + 10);
    let mut with = bytes.clone();
    for cpu in 0..2 {
        let at = records + 16 * cpu;
        let offset = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        with[at..at + 8].copy_from_slice(&(offset + option.len() as u64).to_le_bytes());
    }
    with.splice(options..options, option.iter().copied());
    let with = Whole::read(TraceDatReader::open(std::io::Cursor::new(with)).unwrap());
    assert_eq!(with.events, whole.events);
    assert_eq!(with.facts.processes().collect::<Vec<_>>(), [(7, 5), (8, 5), (9, 9)]);
    assert_eq!(with.facts.threads_of(5).collect::<Vec<_>>(), [7, 8]);
}

#[test]
fn a_trace_dat_that_recorded_wakeups_has_the_wakings_of_these() {
    let bytes = std::fs::read(path("trace-6.dat")).unwrap();
    let whole = Whole::trace_dat("trace-6.dat");
    let is_waking = |event: &&TraceEvent| matches!(event.kind, TraceKind::Waking { .. });
    assert!(whole.events.iter().any(|event| is_waking(&event)));
    // The formats of both are there, and their fields are the same: what was recorded as one of
    // them is the other now.
    let (waking, wakeup) = (&b"name: sched_waking\n"[..], &b"name: sched_wakeup\n"[..]);
    let place = |tag: &[u8]| bytes.windows(tag.len()).position(|part| part == tag).unwrap();
    let mut renamed = bytes.clone();
    for (at, name) in [(place(waking), wakeup), (place(wakeup), waking)] {
        renamed[at..at + name.len()].copy_from_slice(name);
    }
    let renamed = Whole::read(TraceDatReader::open(std::io::Cursor::new(renamed)).unwrap());
    assert_eq!(renamed.events, whole.events);
    assert!(!renamed.has_untold("no sched:sched_waking"));
}

/// Each cut of each file ends, with events of before or an error of one line.
#[test]
fn cut_files_end() {
    for name in ["perf.data", "perf.pipe", "trace-6.dat", "trace-7-zstd.dat"] {
        let bytes = std::fs::read(path(name)).unwrap();
        let whole = bytes.len();
        let steps = (0..whole).step_by(whole / 97).chain([whole - 1, whole / 2 + 1]);
        for end in steps {
            let cut = std::io::Cursor::new(&bytes[..end]);
            let read = if name.starts_with("perf") {
                PerfDataReader::open(cut).and_then(count)
            } else {
                TraceDatReader::open(cut).and_then(count)
            };
            if let Err(why) = read {
                assert!(!why.to_string().contains('\n'), "{why}");
            }
        }
    }
}

fn count(mut reader: impl CaptureReader) -> Result<usize, CaptureError> {
    let mut events = 0;
    while reader.next_event()?.is_some() {
        events += 1;
    }
    Ok(events)
}

#[test]
fn a_capture_without_symbols_has_none() {
    let binary = Whole::read(PerfDataReader::open(file("perf.data")).unwrap());
    assert!(binary.facts.symbols().is_empty());
    assert!(Symbols::default().find(1).is_none());
}
