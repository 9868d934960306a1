//! Writes `perf.data` that perf itself opens: `perf script`, `perf sched latency`, `perf report`.
//!
//! After perf's `Documentation/perf.data-file-format.txt`. The tracepoints have this program's own
//! formats, which the file holds: what an event keeps is in it, and nothing else of a kernel's
//! record. Functions may be replaced by numbers, so that the file does not tell where the kernel
//! lies in memory; the file then has their names, and `capture::perf_data` finds them.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Seek, SeekFrom, Write};

use crate::capture::KernelName;
use crate::capture::perf_data::{
    FEATURE_ARCH, FEATURE_NOTE, FEATURE_RELEASE, FEATURE_TRACING_DATA, MAGIC_PERF,
};
use crate::decode::RECIPES;
use crate::encode::{Encoder, own_formats};
use crate::event::{CodeAddress, TaskName, TraceEvent, TraceKind};
use crate::format::EventFormat;
use crate::perf_record::{CONTEXT_KERNEL, record_type, sample_type};
use crate::symbols::{NAMES_MAX, Symbols};

/// Bytes of the header, of a `perf_event_attr` (PERF_ATTR_SIZE_VER5), and of a feature's entry.
const HEADER_BYTES: u64 = 104;
const ATTR_BYTES: u32 = 112;
const SECTION_BYTES: u32 = 16;

/// The fields of each sample; without an instruction perf shows no event that has a call chain.
const SAMPLE_TYPE: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::CPU
    | sample_type::RAW;

/// `sample_id_all` and `use_clockid`.
const ATTR_FLAGS: u64 = 1 << 18 | 1 << 25;

const CLOCK_MONOTONIC: u32 = 1;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const COUNT_PAGE_FAULTS: u64 = 2;

/// PERF_RECORD_FINISHED_ROUND: whoever reads may give what it held back.
const FINISHED_ROUND: u32 = 68;

/// PERF_RECORD_MISC_KERNEL: the instruction is the kernel's.
const MISC_KERNEL: u8 = 1;

/// Records in one round.
const ROUND_RECORDS: u64 = 4096;

/// Longest call chain that fits with the rest into a record of 64 KB.
const FRAMES_MAX: usize = 1024;

/// A kernel's description of a page of ftrace, without which perf does not open the formats.
const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

/// A kernel's description of a record's head in such a page.
const HEADER_EVENT: &str = "# compressed entry header\n\
    \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
    \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
    \tdata max type_len  == 28\n";

/// The treatment of the kernel's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// They are written as they are.
    Kept,
    /// Numbers take the place of functions, and the file has their names; an address without a name
    /// is 0. Timers and requests, which are only told apart, get a random name for the file.
    Numbered,
}

/// The event of perf that a record belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Counter {
    Tracepoint { id: u16, has_chain: bool },
    PageFaults,
}

impl Counter {
    /// Its identifier in the file, from 1 on.
    fn id(self) -> u64 {
        match self {
            Self::PageFaults => 1,
            Self::Tracepoint { id, has_chain } => 2 + 2 * u64::from(id) + u64::from(has_chain),
        }
    }
}

/// Writes a `perf.data`.
#[derive(Debug)]
pub struct PerfDataWriter<W> {
    out: W,
    formats: Vec<EventFormat>,
    encoder: Encoder,
    counters: BTreeMap<Counter, ()>,
    threads: Vec<TaskName>,
    symbols: Symbols,
    addresses: Addresses,
    /// A hash with random keys: no address can be found from its values.
    hider: RandomState,
    note: String,
    kernel: KernelName,
    /// The functions that were written: number or address, and name.
    functions: BTreeMap<CodeAddress, Box<str>>,
    numbers: Symbols,
    raw: Vec<u8>,
    record: Vec<u8>,
    data_bytes: u64,
    records: u64,
    lost_frames: u64,
}

impl<W: Write + Seek> PerfDataWriter<W> {
    /// Begins a file. `recorded` are the events that were switched on, by system and name, so that
    /// a reader knows them even where none of them came. `symbols` are the functions of the events'
    /// addresses.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn new<'a>(
        mut out: W,
        recorded: impl IntoIterator<Item = (&'a str, &'a str)>,
        symbols: Symbols,
        addresses: Addresses,
    ) -> io::Result<Self> {
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&[0; HEADER_BYTES as usize])?;
        let formats = own_formats();
        let encoder = Encoder::new(&formats);
        let mut counters = BTreeMap::new();
        for (system, name) in recorded {
            let is_it = |format: &&EventFormat| format.system() == system && format.name() == name;
            if let Some(format) = formats.iter().find(is_it) {
                counters.insert(Counter::Tracepoint { id: format.id(), has_chain: false }, ());
            }
        }
        Ok(Self {
            out,
            formats,
            encoder,
            counters,
            threads: Vec::new(),
            symbols,
            addresses,
            hider: RandomState::new(),
            note: String::new(),
            kernel: KernelName::default(),
            functions: BTreeMap::new(),
            numbers: Symbols::default(),
            raw: Vec::new(),
            record: Vec::new(),
            data_bytes: 0,
            records: 0,
            lost_frames: 0,
        })
    }

    /// Writes the name that a thread had when the capture began; before the first event.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn name_thread(&mut self, task: &TaskName) -> io::Result<()> {
        if self.threads.len() < crate::capture::THREAD_NAMES_MAX {
            self.threads.push(*task);
        }
        self.put_comm(task, 0, 0)
    }

    /// Writes an event. They come in the order of time.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn write(&mut self, event: &TraceEvent) -> io::Result<()> {
        match &event.kind {
            TraceKind::Lost { count } => {
                let body = [0, *count].map(u64::to_le_bytes).concat();
                self.put_unsampled(record_type::LOST, &body, event)
            }
            TraceKind::Renamed { task } => self.put_comm(task, event.at_ns, event.cpu),
            TraceKind::PageFaultExit => self.put_sample(event, Counter::PageFaults),
            _ => {
                let event = self.hidden(event);
                let mut raw = std::mem::take(&mut self.raw);
                let id = self.encoder.encode(&event, &mut raw);
                self.raw = raw;
                let Some(id) = id else { return Ok(()) };
                let has_chain = !event.chain.is_empty();
                self.put_sample(&event, Counter::Tracepoint { id, has_chain })
            }
        }
    }

    /// Frames of call chains that were left out: beyond the first 1024 of each.
    #[must_use]
    pub const fn lost_frames(&self) -> u64 {
        self.lost_frames
    }

    /// An event with the functions that the file shall have.
    fn hidden(&mut self, event: &TraceEvent) -> TraceEvent {
        let mut event = event.clone();
        match &mut event.kind {
            TraceKind::TimerStart { function, .. }
            | TraceKind::TimerExpireEntry { function, .. }
            | TraceKind::IpiSend { callback: function, .. }
            | TraceKind::CallQueued { function, .. }
            | TraceKind::CallEntry { function, .. }
            | TraceKind::WorkStart { function } => *function = self.function(*function),
            _ => {}
        }
        match &mut event.kind {
            TraceKind::TimerStart { timer: thing, .. }
            | TraceKind::TimerStartExpired { timer: thing }
            | TraceKind::TimerCancel { timer: thing }
            | TraceKind::TimerExpireEntry { timer: thing, .. }
            | TraceKind::TimerExpireExit { timer: thing }
            | TraceKind::CallQueued { request: thing, .. }
            | TraceKind::CallEntry { request: thing, .. }
            | TraceKind::CallExit { request: thing } => *thing = self.thing(*thing),
            _ => {}
        }
        for frame in &mut event.chain {
            *frame = self.function(*frame);
        }
        event
    }

    /// The number that the file has in place of the address of a timer or a request; 0 stays 0.
    fn thing(&self, address: u64) -> u64 {
        match self.addresses {
            Addresses::Kept => address,
            Addresses::Numbered if address == 0 => 0,
            // No address of a kernel, whose first bit is set.
            Addresses::Numbered => self.hider.hash_one(address) >> 1,
        }
    }

    /// Sets the kernel that was recorded.
    pub fn set_kernel(&mut self, kernel: KernelName) {
        self.kernel = kernel;
    }

    /// Sets the text that this program shall find in the file beside its events.
    pub fn set_note(&mut self, note: String) {
        self.note = note;
    }

    /// The address or number that the file has in place of a function's address; 0 where it may
    /// have none.
    pub fn function(&mut self, address: CodeAddress) -> CodeAddress {
        let Some(symbol) = self.symbols.find(address) else {
            let is_kept = self.addresses == Addresses::Kept;
            return if is_kept { address } else { 0 };
        };
        let mut name = symbol.name.to_owned();
        if let Some(module) = symbol.module {
            name.push_str(&format!(" [{module}]"));
        }
        let beginning = match self.addresses {
            Addresses::Kept => address - symbol.offset,
            Addresses::Numbered => self.numbers.number(&name),
        };
        let is_room = self.functions.len() < NAMES_MAX;
        if beginning != 0 && is_room && !self.functions.contains_key(&beginning) {
            self.functions.insert(beginning, name.into_boxed_str());
        }
        if beginning == 0 { 0 } else { beginning + symbol.offset.min(0xffff) }
    }

    fn put_sample(&mut self, event: &TraceEvent, counter: Counter) -> io::Result<()> {
        self.counters.insert(counter, ());
        self.begin(record_type::SAMPLE);
        self.put_word(counter.id());
        self.put_word(event.chain.first().copied().unwrap_or(0));
        self.put_halves(event.tid, event.tid);
        self.put_word(event.at_ns);
        self.put_halves(event.cpu, 0);
        if let Counter::Tracepoint { has_chain, .. } = counter {
            if has_chain {
                let frames = &event.chain[..event.chain.len().min(FRAMES_MAX)];
                self.lost_frames += (event.chain.len() - frames.len()) as u64;
                self.put_word(frames.len() as u64 + 1);
                self.put_word(CONTEXT_KERNEL);
                for &frame in frames {
                    self.put_word(frame);
                }
            }
            // Behind its length, so that both together are whole words.
            let bytes = (self.raw.len() + 4).next_multiple_of(8) - 4;
            self.raw.resize(bytes, 0);
            let length = u32::try_from(bytes).unwrap_or(0);
            self.record.extend(length.to_le_bytes());
            self.record.extend(&self.raw);
        }
        self.end()
    }

    fn put_comm(&mut self, task: &TaskName, at_ns: u64, cpu: u32) -> io::Result<()> {
        let mut body = [task.tid.to_le_bytes(), task.tid.to_le_bytes()].concat();
        let name = task.name.as_bytes();
        body.extend(name);
        body.resize(8 + (name.len() + 1).next_multiple_of(8), 0);
        let event = TraceEvent {
            at_ns,
            cpu,
            tid: task.tid,
            context: Default::default(),
            kind: TraceKind::PageFaultEntry,
            chain: Box::default(),
        };
        self.put_unsampled(record_type::COMM, &body, &event)
    }

    /// A record with a stamp behind it.
    fn put_unsampled(&mut self, kind: u32, body: &[u8], event: &TraceEvent) -> io::Result<()> {
        self.begin(kind);
        self.record.extend(body);
        self.put_halves(event.tid, event.tid);
        self.put_word(event.at_ns);
        self.put_halves(event.cpu, 0);
        // Of no event in particular.
        self.put_word(0);
        self.end()
    }

    fn begin(&mut self, kind: u32) {
        self.record.clear();
        self.record.extend(kind.to_le_bytes());
        self.record.extend([MISC_KERNEL, 0, 0, 0]);
    }

    fn put_word(&mut self, word: u64) {
        self.record.extend(word.to_le_bytes());
    }

    fn put_halves(&mut self, low: u32, high: u32) {
        self.record.extend(low.to_le_bytes());
        self.record.extend(high.to_le_bytes());
    }

    fn end(&mut self) -> io::Result<()> {
        // The longest call chain and record fit; a test says so.
        let size = u16::try_from(self.record.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.record[6..8].copy_from_slice(&size.to_le_bytes());
        self.out.write_all(&self.record)?;
        self.data_bytes += self.record.len() as u64;
        self.records += 1;
        if self.records.is_multiple_of(ROUND_RECORDS) {
            let round = [FINISHED_ROUND.to_le_bytes(), [0, 0, 8, 0]].concat();
            self.out.write_all(&round)?;
            self.data_bytes += round.len() as u64;
        }
        Ok(())
    }

    /// Writes the parts behind the records, and the header. Without these the file cannot be read.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn finish(mut self) -> io::Result<W> {
        // A file without an event of perf is none, either.
        self.counters.entry(Counter::PageFaults).or_default();
        let parts = self.parts();
        let table_bytes = u64::from(SECTION_BYTES) * parts.len() as u64;
        let mut at = HEADER_BYTES + self.data_bytes + table_bytes;
        let mut tail = Vec::new();
        let mut features = [0u64; 4];
        for (feature, part) in &parts {
            tail.extend([at, part.len() as u64].map(u64::to_le_bytes).concat());
            at += part.len() as u64;
            features[(feature / 64) as usize] |= 1 << (feature % 64);
        }
        parts.iter().for_each(|(_, part)| tail.extend(part));
        let ids_at = at;
        let attrs_at = ids_at + 8 * self.counters.len() as u64;
        let attr_bytes = u64::from(ATTR_BYTES + SECTION_BYTES);
        tail.extend(self.counters.keys().flat_map(|counter| counter.id().to_le_bytes()));
        for (place, &counter) in (0..).zip(self.counters.keys()) {
            tail.extend(attr(counter));
            tail.extend([ids_at + 8 * place, 8].map(u64::to_le_bytes).concat());
        }
        self.out.write_all(&tail)?;
        let attrs_bytes = attr_bytes * self.counters.len() as u64;
        let data = [HEADER_BYTES, self.data_bytes];
        let event_types = [0, 0];
        let head = [HEADER_BYTES, attr_bytes, attrs_at, attrs_bytes];
        let words = head.into_iter().chain(data).chain(event_types).chain(features);
        let header: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(MAGIC_PERF)?;
        self.out.write_all(&header)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// The parts behind the records, by the bits of the header that say they are there, in the
    /// order of these.
    fn parts(&self) -> Vec<(u32, Vec<u8>)> {
        let mut parts = vec![(FEATURE_TRACING_DATA, self.tracing_data())];
        let texts = [(FEATURE_RELEASE, &self.kernel.release), (FEATURE_ARCH, &self.kernel.machine)];
        for (feature, text) in texts {
            let Some(text) = text else { continue };
            // Up to a zero, which is counted.
            let bytes = [text.as_bytes(), b"\0"].concat();
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
            parts.push((feature, [&length[..], &bytes].concat()));
        }
        if !self.note.is_empty() {
            parts.push((FEATURE_NOTE, self.note.as_bytes().to_vec()));
        }
        parts
    }

    /// The formats, the functions and the threads.
    fn tracing_data(&self) -> Vec<u8> {
        let mut data = b"\x17\x08\x44tracing0.6\0\0\x08".to_vec();
        data.extend(4096u32.to_le_bytes());
        for (name, text) in [("header_page\0", HEADER_PAGE), ("header_event\0", HEADER_EVENT)] {
            data.extend(name.as_bytes());
            put_block(&mut data, text);
        }
        data.extend(0u32.to_le_bytes());
        let mut systems: BTreeMap<&str, Vec<&EventFormat>> = BTreeMap::new();
        for format in &self.formats {
            systems.entry(format.system()).or_default().push(format);
        }
        put_count(&mut data, systems.len());
        for (system, formats) in systems {
            data.extend(system.as_bytes());
            data.push(0);
            put_count(&mut data, formats.len());
            for format in formats {
                put_block(&mut data, format.text());
            }
        }
        let functions = self.functions.iter().map(|(address, name)| {
            let name = name.replace(" [", "\t[");
            format!("{address:016x} t {name}\n")
        });
        let functions: String = functions.collect();
        put_count(&mut data, functions.len());
        data.extend(functions.as_bytes());
        data.extend(0u32.to_le_bytes());
        let threads: Vec<u8> = self
            .threads
            .iter()
            .flat_map(|task| {
                let line_of = |byte: &u8| if *byte == b'\n' { b' ' } else { *byte };
                let name: Vec<u8> = task.name.as_bytes().iter().map(line_of).collect();
                [task.tid.to_string().as_bytes(), b" ", &name, b"\n"].concat()
            })
            .collect();
        data.extend((threads.len() as u64).to_le_bytes());
        data.extend(threads);
        data
    }
}

fn put_count(data: &mut Vec<u8>, count: usize) {
    // Of formats, and of bytes of at most `NAMES_MAX` names.
    data.extend(u32::try_from(count).unwrap_or(0).to_le_bytes());
}

fn put_block(data: &mut Vec<u8>, text: &str) {
    data.extend((text.len() as u64).to_le_bytes());
    data.extend(text.as_bytes());
}

/// A `perf_event_attr`.
fn attr(counter: Counter) -> Vec<u8> {
    let (kind, config, layout) = match counter {
        Counter::PageFaults => (TYPE_SOFTWARE, COUNT_PAGE_FAULTS, SAMPLE_TYPE & !sample_type::RAW),
        Counter::Tracepoint { id, has_chain } => {
            let chain = if has_chain { sample_type::CALLCHAIN } else { 0 };
            (TYPE_TRACEPOINT, u64::from(id), SAMPLE_TYPE | chain)
        }
    };
    let mut attr = [kind.to_le_bytes(), ATTR_BYTES.to_le_bytes()].concat();
    // config, sample_period, sample_type, read_format, flags
    attr.extend([config, 1, layout, 0, ATTR_FLAGS].map(u64::to_le_bytes).concat());
    attr.resize(92, 0);
    attr.extend(CLOCK_MONOTONIC.to_le_bytes());
    attr.resize(ATTR_BYTES as usize, 0);
    attr
}

/// All events that such a file can have, by system and name: for `recorded`.
pub fn writable() -> impl Iterator<Item = (&'static str, &'static str)> {
    RECIPES.iter().map(|recipe| (recipe.system, recipe.name))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{Addresses, FRAMES_MAX, PerfDataWriter};
    use crate::capture::perf_data::PerfDataReader;
    use crate::capture::{CaptureClock, CaptureFacts, CaptureReader, KernelName};
    use crate::encode::tests::tracepoint;
    use crate::event::{ContextFlags, ShortName, TaskName, TraceEvent, TraceKind};
    use crate::symbols::Symbols;

    const KALLSYMS: &[u8] = b"ffffffff81000000 T hrtimer_wakeup\n\
        ffffffff81000100 t do_idle\nffffffffc0a01000 t probe\t[ahci]\n";

    fn event(at_ns: u64, kind: TraceKind, chain: &[u64]) -> TraceEvent {
        let context = ContextFlags { flags: 4, preempt_depth: 1 };
        TraceEvent { at_ns, cpu: 1, tid: 7, context, kind, chain: Box::from(chain) }
    }

    fn written(events: &[TraceEvent], addresses: Addresses) -> Vec<u8> {
        let symbols = Symbols::parse(KALLSYMS).unwrap();
        let recorded = [("sched", "sched_switch"), ("kvm", "unknown")];
        let out = Cursor::new(Vec::new());
        let mut writer = PerfDataWriter::new(out, recorded, symbols, addresses).unwrap();
        writer.name_thread(&task("servo")).unwrap();
        for event in events {
            writer.write(event).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn task(name: &str) -> TaskName {
        let name = ShortName::new(name.as_bytes());
        TaskName { tid: 7, name, kernel_priority: TaskName::UNKNOWN_PRIORITY }
    }

    fn read(bytes: &[u8]) -> (Vec<TraceEvent>, CaptureFacts) {
        let mut reader = PerfDataReader::open(Cursor::new(bytes)).unwrap();
        let events = std::iter::from_fn(|| reader.next_event().unwrap()).collect();
        (events, reader.facts().clone())
    }

    fn some_events() -> Vec<TraceEvent> {
        let wakeup = 0xffff_ffff_8100_0000;
        let chain = [wakeup + 0x110, 0xffff_ffff_c0a0_1010];
        vec![
            event(
                1000,
                TraceKind::TimerStart {
                    timer: 0xffff_8880_0000_1000,
                    function: wakeup,
                    expires_ns: 5,
                    soft_expires_ns: -5,
                },
                &[],
            ),
            event(1001, TraceKind::SoftirqEntry(3), &chain),
            event(1002, TraceKind::SoftirqEntry(4), &[]),
        ]
    }

    #[test]
    fn comes_back_with_names() {
        let mut events = some_events();
        let plain = ContextFlags::default();
        for (at_ns, kind) in [
            (1003, TraceKind::Lost { count: 12 }),
            (1004, TraceKind::Renamed { task: task("servo-2") }),
            (1005, TraceKind::PageFaultExit),
        ] {
            events.push(TraceEvent { context: plain, ..event(at_ns, kind, &[]) });
        }
        let (seen, facts) = read(&written(&events, Addresses::Kept));
        assert_eq!(seen, events);
        assert_eq!(facts.clock(), &CaptureClock::Monotonic);
        assert_eq!(facts.counts().lost, 12);
        assert!(facts.threads().contains(&task("servo")));
        let names = |facts: &CaptureFacts, event: &TraceEvent| -> Vec<String> {
            let found = event.chain.iter().map(|&frame| facts.symbols().find(frame).unwrap());
            found.map(|symbol| symbol.to_string()).collect()
        };
        let expected = ["do_idle+0x10", "probe+0x10 [ahci]"];
        assert_eq!(names(&facts, &seen[1]), expected);
        assert!(facts.untold().iter().all(|untold| !untold.to_string().contains("sched_switch")));
        assert!(facts.untold().iter().any(|untold| untold.to_string().contains("sched_waking")));

        let (hidden, facts) = read(&written(&events, Addresses::Numbered));
        assert_eq!(names(&facts, &hidden[1]), expected);
        let TraceKind::TimerStart { function, .. } = hidden[0].kind else { panic!() };
        assert_eq!(facts.symbols().find(function).unwrap().to_string(), "hrtimer_wakeup");
        assert_eq!(function >> 48, 1, "an address got out");
        let TraceKind::TimerStart { timer, .. } = hidden[0].kind else { panic!() };
        assert!(timer != 0 && timer >> 63 == 0, "{timer:#x}");
        let bytes = written(&events, Addresses::Numbered);
        let high = [0, 0, 0x81, 0xff, 0xff, 0xff, 0xff];
        assert!(!bytes.windows(high.len()).any(|window| window == high));
    }

    #[test]
    fn a_note_and_the_kernel_come_back_beside_the_events() {
        let kernel = KernelName { release: Some("6.18.44".into()), machine: Some("x86_64".into()) };
        for note in ["", "{\"a\":1}", "ä"] {
            let (out, symbols) = (Cursor::new(Vec::new()), Symbols::default());
            let mut writer = PerfDataWriter::new(out, [], symbols, Addresses::Kept).unwrap();
            some_events().iter().for_each(|event| writer.write(event).unwrap());
            writer.set_note(note.to_owned());
            writer.set_kernel(kernel.clone());
            let mut bytes = writer.finish().unwrap().into_inner();
            let (events, facts) = read(&bytes);
            assert_eq!((events.len(), facts.note().unwrap_or_default()), (3, note));
            assert_eq!(*facts.kernel(), kernel);
            if note == "ä" {
                let at = bytes.windows(2).rposition(|pair| pair == note.as_bytes()).unwrap();
                bytes[at] = b'a';
                let (events, facts) = read(&bytes);
                assert_eq!((events.len(), facts.note()), (3, None));
                assert_eq!(facts.first_problem(), Some("a note that is no UTF-8"));
            }
        }
    }

    #[test]
    fn nothing_is_a_capture_too() {
        let (events, facts) = read(&written(&[], Addresses::Kept));
        assert!(events.is_empty());
        assert_eq!(*facts.kernel(), KernelName::default());
        assert_eq!(facts.first_problem(), None);
    }

    #[test]
    fn the_longest_call_chain_fits() {
        let chain = vec![0xffff_ffff_8100_0001; FRAMES_MAX + 5];
        let events = [event(1, TraceKind::SoftirqExit(1), &chain)];
        let (seen, _) = read(&written(&events, Addresses::Kept));
        assert_eq!(*seen[0].chain, chain[5..]);
    }

    #[test]
    fn each_spoiled_byte_is_read_or_refused() {
        let whole = written(&some_events(), Addresses::Kept);
        for at in (0..whole.len()).filter(|at| *at < 400 || at % 97 == 0 || at + 300 > whole.len())
        {
            for byte in [0, 0xff] {
                let mut spoiled = whole.clone();
                spoiled[at] = byte;
                let mut reader = match PerfDataReader::open(Cursor::new(&spoiled)) {
                    Ok(reader) => reader,
                    Err(why) => {
                        assert!(!why.to_string().contains('\n'), "{why}");
                        continue;
                    }
                };
                while let Ok(Some(_)) = reader.next_event() {}
            }
        }
    }

    proptest! {
        #[test]
        fn any_events_come_back(
            mut events in vec(tracepoint(), 0..60),
            chains in vec(vec(1u64 << 32..1 << 40, 0..4), 60),
        ) {
            events.retain(|event| !matches!(event.kind, TraceKind::Renamed { .. }));
            events.sort_by_key(|event| event.at_ns);
            events.dedup_by_key(|event| event.at_ns);
            for (event, chain) in events.iter_mut().zip(chains) {
                event.chain = chain.into_boxed_slice();
            }
            let (seen, facts) = read(&written(&events, Addresses::Kept));
            prop_assert_eq!(facts.first_problem(), None);
            prop_assert_eq!(seen, events);
        }

        #[test]
        fn any_bytes_behind_a_head_end(bytes in vec(any::<u8>(), 0..400)) {
            let mut whole = written(&some_events(), Addresses::Kept);
            let end = (104 + bytes.len()).min(whole.len());
            whole[104..end].copy_from_slice(&bytes[..end - 104]);
            if let Ok(mut reader) = PerfDataReader::open(Cursor::new(&whole)) {
                while let Ok(Some(_)) = reader.next_event() {}
            }
        }
    }
}
