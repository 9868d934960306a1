//! Reads `trace.dat` of trace-cmd: version 6, and version 7 as it is, with zlib or with zstd.
//!
//! After trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5); a page of the kernel's ring as
//! `kernel/trace/ring_buffer.c` has it. One page, or one compressed chunk, a CPU is held.

mod page;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};

use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;

use self::page::{Page, PageItem};
use super::bytes::ByteReader;
use super::tracing_data::{MAGIC, TracingData};
use super::{CaptureClock, CaptureError, CaptureFacts, CaptureFormat, CaptureReader, KernelName};
use crate::decode::{Decoder, RECIPES, RecordPlace};
use crate::event::{ContextFlags, Tid, TraceEvent, TraceKind};

/// Most streams of one CPU each, of all buffers.
const STREAMS_MAX: usize = 1024;

/// Largest page of the kernel's ring, bytes.
const PAGE_BYTES_MAX: u32 = 64 << 10;

/// Largest chunk of compressed pages, before and after, bytes. trace-cmd makes some 40 000.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Largest part of the head, unpacked, bytes.
const SECTION_BYTES_MAX: usize = 128 << 20;

/// Longest option, bytes.
const OPTION_BYTES_MAX: usize = 4 << 20;

/// Most parts with options that are followed.
const OPTION_SECTIONS_MAX: usize = 64;

/// Longest name of an algorithm, bytes.
const NAME_BYTES_MAX: usize = 64;

/// Options, by number.
mod option {
    pub(super) const DONE: u16 = 0;
    pub(super) const BUFFER: u16 = 3;
    pub(super) const TRACECLOCK: u16 = 4;
    pub(super) const UNAME: u16 = 5;
    /// The number of CPUs; of trace-cmd as gpuvis has it, `saved_tgids`, a text.
    pub(super) const CPUCOUNT: u16 = 8;
    pub(super) const HEADER_INFO: u16 = 16;
    pub(super) const EVENT_FORMATS: u16 = 18;
    pub(super) const KALLSYMS: u16 = 19;
    pub(super) const PRINTK: u16 = 20;
    pub(super) const CMDLINES: u16 = 21;
}

/// The compression of a file's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Plain,
    Zlib,
    Zstd,
}

impl Packing {
    /// Unpacks what must have so many bytes.
    fn unpack(self, packed: &[u8], bytes: usize, at: u64) -> Result<Vec<u8>, CaptureError> {
        let mut unpacked = Vec::new();
        let most = bytes as u64 + 1;
        let done = match self {
            Self::Plain => (&mut &*packed).take(most).read_to_end(&mut unpacked).is_ok(),
            Self::Zlib => ZlibDecoder::new(packed).take(most).read_to_end(&mut unpacked).is_ok(),
            Self::Zstd => StreamingDecoder::new(packed)
                .is_ok_and(|decoder| decoder.take(most).read_to_end(&mut unpacked).is_ok()),
        };
        if done && unpacked.len() == bytes {
            return Ok(unpacked);
        }
        let why = format!("what is packed there does not unpack to {bytes} bytes");
        Err(CaptureError::damaged(at, why))
    }
}

/// The pages of one CPU.
#[derive(Debug)]
struct Stream {
    cpu: u32,
    /// The next byte that is read of the file.
    at: u64,
    /// Behind the last.
    end: u64,
    packing: Packing,
    /// Chunks that are still to come, of packed pages.
    chunks: u32,
    /// Unpacked pages, and how far they were taken.
    unpacked: Vec<u8>,
    taken: usize,
    page: Page,
}

/// An event that waits for its turn.
#[derive(Debug)]
struct Waiting {
    event: TraceEvent,
    /// Its place in the table of those that are understood; `None` where records were dropped.
    recipe: Option<usize>,
}

/// Reads a `trace.dat`.
#[derive(Debug)]
pub struct TraceDatReader<R> {
    file: BufReader<R>,
    streams: Vec<Stream>,
    /// The next event of each stream, by its time.
    firsts: BinaryHeap<Reverse<(u64, usize)>>,
    waiting: Vec<Option<Waiting>>,
    page_bytes: usize,
    page_head_bytes: usize,
    decoder: Decoder,
    facts: CaptureFacts,
}

impl<R: Read + Seek> TraceDatReader<R> {
    /// Reads the head of a file.
    ///
    /// # Errors
    /// A file that is no `trace.dat`, or none that can be read.
    pub fn open(file: R) -> Result<Self, CaptureError> {
        let mut file = BufReader::with_capacity(1 << 16, file);
        file.seek(SeekFrom::Start(0))?;
        let mut bytes = ByteReader::new(&mut file, 0);
        if bytes.array("head")? != *MAGIC {
            return Err(CaptureError::damaged(0, "no trace.dat: it does not begin as one"));
        }
        let version = bytes.array::<2>("head")?;
        let head = match &version {
            b"6\0" => Head::read_6(&mut file)?,
            b"7\0" => Head::read_7(&mut file)?,
            _ => {
                return Err(CaptureError::Unsupported {
                    form: Box::from("a trace.dat of a version that is neither 6 nor 7"),
                    way_out: "trace-cmd convert --file-version 6 makes one of it",
                });
            }
        };
        Self::new(file, head)
    }

    fn new(file: BufReader<R>, head: Head) -> Result<Self, CaptureError> {
        let page_bytes = head.tracing.page_bytes;
        let page_head_bytes = head.tracing.page_head_bytes;
        let is_possible = (64..=PAGE_BYTES_MAX).contains(&page_bytes)
            && matches!(page_head_bytes, 12 | 16)
            && head.streams.len() <= STREAMS_MAX;
        if !is_possible {
            let why = format!(
                "{} CPUs with pages of {page_bytes} bytes, {page_head_bytes} of them a head; \
                 1024, 64 to 65536, 12 or 16 are read",
                head.streams.len()
            );
            return Err(CaptureError::damaged(0, why));
        }
        let mut facts = CaptureFacts::new(CaptureFormat::TraceDat);
        facts.set_clock(head.clock);
        facts.set_kernel(head.kernel);
        head.processes.iter().for_each(|&(tid, pid)| facts.see_process(tid, pid));
        // A file has the formats of all events, whether they were switched on or not: which were
        // is known once it was read.
        let decoder = head.tracing.settle(&mut facts, |formats| Decoder::of_machine(formats));
        for why in decoder.unusable() {
            facts.refuse(|| why.to_string());
        }
        let mut reader = Self {
            file,
            waiting: head.streams.iter().map(|_| None).collect(),
            streams: head.streams,
            firsts: BinaryHeap::new(),
            page_bytes: page_bytes as usize,
            page_head_bytes,
            decoder,
            facts,
        };
        for place in 0..reader.streams.len() {
            reader.begin(place)?;
            reader.refill(place)?;
        }
        Ok(reader)
    }

    /// Of packed pages, the number of chunks comes first.
    fn begin(&mut self, place: usize) -> Result<(), CaptureError> {
        let stream = &mut self.streams[place];
        if stream.packing == Packing::Plain || stream.at == stream.end {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(stream.at))?;
        let mut bytes = ByteReader::new(&mut self.file, stream.at);
        stream.chunks = bytes.u32("records")?;
        stream.at = bytes.at();
        Ok(())
    }

    /// Puts the next event of a stream where it waits for its turn.
    fn refill(&mut self, place: usize) -> Result<(), CaptureError> {
        loop {
            let stream = &mut self.streams[place];
            let Some(item) = stream.page.next_item() else {
                if self.next_page(place)? {
                    continue;
                }
                return Ok(());
            };
            let waiting = match item {
                PageItem::Lost { at_ns, count } => Waiting {
                    event: TraceEvent {
                        at_ns,
                        cpu: stream.cpu,
                        tid: 0,
                        context: ContextFlags::default(),
                        kind: TraceKind::Lost { count },
                        chain: Box::default(),
                    },
                    recipe: None,
                },
                PageItem::Record { at_ns, start, end } => {
                    let raw = stream.page.bytes(start, end);
                    let record_place = RecordPlace { at_ns, cpu: stream.cpu };
                    match self.decoder.decode(raw, record_place, Box::default()) {
                        Some(Ok(event)) => Waiting { event, recipe: self.decoder.recipe(raw) },
                        Some(Err(why)) => {
                            self.facts.refuse(|| why.to_string());
                            continue;
                        }
                        None => {
                            self.facts.counts_mut().skipped += 1;
                            continue;
                        }
                    }
                }
                PageItem::Damaged => {
                    self.facts.refuse(|| "a page holds a record that reaches beyond it".to_owned());
                    continue;
                }
            };
            self.firsts.push(Reverse((waiting.event.at_ns, place)));
            self.waiting[place] = Some(waiting);
            return Ok(());
        }
    }

    /// Reads the next page of a stream; returns false where there is none any more.
    fn next_page(&mut self, place: usize) -> Result<bool, CaptureError> {
        let stream = &mut self.streams[place];
        let mut page = vec![0; self.page_bytes];
        if stream.packing == Packing::Plain {
            if stream.at >= stream.end {
                return Ok(false);
            }
            self.file.seek(SeekFrom::Start(stream.at))?;
            let mut bytes = ByteReader::new(&mut self.file, stream.at);
            if bytes.fill(&mut page)? < page.len() {
                self.facts.set_cut_short();
                stream.at = stream.end;
                return Ok(false);
            }
            stream.at = bytes.at();
        } else {
            while stream.unpacked.len() - stream.taken < page.len() {
                if stream.chunks == 0 {
                    return Ok(false);
                }
                self.file.seek(SeekFrom::Start(stream.at))?;
                let mut bytes = ByteReader::new(&mut self.file, stream.at);
                let (packed, unpacked) = (bytes.u32("records")?, bytes.u32("records")?);
                if unpacked as usize > CHUNK_BYTES_MAX {
                    let why = format!("a chunk of {unpacked} bytes; at most 1048576 are read");
                    return Err(CaptureError::damaged(stream.at, why));
                }
                let chunk = bytes.block(u64::from(packed), CHUNK_BYTES_MAX, "records")?;
                stream.unpacked = stream.packing.unpack(&chunk, unpacked as usize, stream.at)?;
                stream.taken = 0;
                stream.chunks -= 1;
                stream.at = bytes.at();
            }
            let end = stream.taken + page.len();
            page.copy_from_slice(&stream.unpacked[stream.taken..end]);
            stream.taken = end;
        }
        stream.page = Page::new(page, self.page_head_bytes);
        Ok(true)
    }
}

impl<R: Read + Seek> CaptureReader for TraceDatReader<R> {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, CaptureError> {
        while let Some(Reverse((_, place))) = self.firsts.pop() {
            let waited = self.waiting[place].take();
            self.refill(place)?;
            let Some(Waiting { event, recipe }) = waited else { continue };
            if let Some(recipe) = recipe {
                // Which kind of wakings counts shows in the order of time, not in that of reading.
                if self.facts.is_duplicate_waking(&RECIPES[recipe]) {
                    self.facts.counts_mut().skipped += 1;
                    continue;
                }
                self.facts.record_place(recipe);
            }
            self.facts.give(&event);
            return Ok(Some(event));
        }
        Ok(None)
    }

    fn facts(&self) -> &CaptureFacts {
        &self.facts
    }
}

/// The parts of a file before the records.
#[derive(Debug)]
struct Head {
    tracing: TracingData,
    clock: CaptureClock,
    kernel: KernelName,
    /// Threads with their processes.
    processes: Vec<(Tid, Tid)>,
    streams: Vec<Stream>,
}

impl Head {
    fn new(tracing: TracingData) -> Self {
        Self {
            tracing,
            clock: CaptureClock::Unknown,
            kernel: KernelName::default(),
            processes: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// Version 6: everything in one order.
    fn read_6<R: Read + Seek>(file: &mut BufReader<R>) -> Result<Self, CaptureError> {
        let mut bytes = ByteReader::new(&mut *file, MAGIC.len() as u64);
        // Back to the version, which TRACING_DATA has too.
        bytes.seek_to(MAGIC.len() as u64)?;
        let tracing = TracingData::read(&mut bytes)?;
        let mut head = Self::new(tracing);
        let mut cpus = bytes.u32("head")?;
        let mut buffers = Vec::new();
        loop {
            match &bytes.array::<10>("head")? {
                b"options  \0" => loop {
                    let id = bytes.u16("options")?;
                    if id == option::DONE {
                        break;
                    }
                    let size = bytes.u32("options")?;
                    let data = bytes.block(u64::from(size), OPTION_BYTES_MAX, "options")?;
                    match id {
                        option::TRACECLOCK => head.clock = chosen_clock(&data),
                        option::UNAME => head.kernel = uname(&data),
                        option::CPUCOUNT => head.take_processes(&data),
                        option::BUFFER => buffers
                            .extend(data.first_chunk().map(|offset| u64::from_le_bytes(*offset))),
                        _ => {}
                    }
                },
                b"flyrecord\0" => break,
                tag => {
                    let tag = String::from_utf8_lossy(tag).into_owned();
                    let why = format!("a part {tag:?}; options and flyrecord are read");
                    return Err(CaptureError::damaged(bytes.at(), why));
                }
            }
        }
        head.streams_6(&mut bytes, cpus)?;
        for offset in buffers {
            bytes.seek_to(offset)?;
            // An instance with other CPUs than the machine says so first.
            let mut tag = bytes.array::<10>("head")?;
            if &tag != b"flyrecord\0" {
                bytes.seek_to(offset)?;
                cpus = bytes.u32("head")?;
                tag = bytes.array::<10>("head")?;
            }
            if &tag != b"flyrecord\0" {
                return Err(CaptureError::damaged(offset, "no records of an instance there"));
            }
            head.streams_6(&mut bytes, cpus)?;
        }
        Ok(head)
    }

    /// Lines `THREAD PROCESS` of tracefs' `saved_tgids`, where the option is longer than a number.
    fn take_processes(&mut self, option: &[u8]) {
        if option.len() <= size_of::<u64>() {
            return;
        }
        let text = String::from_utf8_lossy(option);
        let line = |line: &str| {
            let (tid, pid) = line.trim_end_matches('\0').split_once(' ')?;
            Some((tid.trim().parse().ok()?, pid.trim().parse().ok()?))
        };
        self.processes.extend(text.lines().filter_map(line));
    }

    fn streams_6<R: Read>(
        &mut self,
        bytes: &mut ByteReader<R>,
        cpus: u32,
    ) -> Result<(), CaptureError> {
        for cpu in 0..cpus {
            let (offset, size) = (bytes.u64("head")?, bytes.u64("head")?);
            self.add(cpu, offset, size, Packing::Plain)?;
        }
        Ok(())
    }

    /// Version 7: sections, found by options.
    fn read_7<R: Read + Seek>(file: &mut BufReader<R>) -> Result<Self, CaptureError> {
        let mut tracing = TracingData::default();
        let start = MAGIC.len() as u64 + 2;
        let mut bytes = ByteReader::new(&mut *file, start);
        bytes.seek_to(start)?;
        tracing.read_machine(&mut bytes)?;
        let name = bytes.text(NAME_BYTES_MAX, "head")?;
        bytes.text(NAME_BYTES_MAX, "head")?;
        let packing = match name.as_str() {
            "none" => Packing::Plain,
            "zlib" => Packing::Zlib,
            "zstd" => Packing::Zstd,
            _ => {
                return Err(CaptureError::Unsupported {
                    form: format!("it is packed by {name:?}").into_boxed_str(),
                    way_out: "trace-cmd convert --compression none unpacks it",
                });
            }
        };
        let mut next = bytes.u64("head")?;
        let mut head = Self::new(tracing);
        let mut sections = 0;
        while next != 0 {
            sections += 1;
            if sections > OPTION_SECTIONS_MAX {
                let why = "more than 64 parts with options, or parts that follow each other";
                return Err(CaptureError::damaged(next, why));
            }
            let options = Section::read(&mut bytes, next, packing)?.data;
            next = head.take_options(&mut bytes, &options, packing)?;
        }
        Ok(head)
    }

    /// Takes one section with options, and gives the place of the next, bytes.
    fn take_options<R: Read + Seek>(
        &mut self,
        file: &mut ByteReader<R>,
        options: &[u8],
        packing: Packing,
    ) -> Result<u64, CaptureError> {
        let mut options = ByteReader::new(options, 0);
        loop {
            let id = options.u16("options")?;
            let size = options.u32("options")?;
            let data = options.block(u64::from(size), OPTION_BYTES_MAX, "options")?;
            let offset = data.first_chunk().map_or(0, |offset| u64::from_le_bytes(*offset));
            match id {
                option::DONE => return Ok(offset),
                option::TRACECLOCK => self.clock = chosen_clock(&data),
                option::UNAME => self.kernel = uname(&data),
                option::CPUCOUNT => self.take_processes(&data),
                option::BUFFER => self.take_buffer(file, &data, packing)?,
                option::HEADER_INFO
                | option::EVENT_FORMATS
                | option::KALLSYMS
                | option::PRINTK
                | option::CMDLINES => {
                    let section = Section::read(file, offset, packing)?;
                    let mut bytes = ByteReader::new(Cursor::new(section.data), offset);
                    match id {
                        option::HEADER_INFO => self.tracing.read_pages(&mut bytes)?,
                        option::EVENT_FORMATS => self.tracing.read_formats(&mut bytes)?,
                        option::KALLSYMS => {
                            let size = bytes.u32("symbols")?;
                            self.tracing.read_symbols(&mut bytes, size)?;
                        }
                        option::PRINTK => {
                            let size = bytes.u32("texts")?;
                            self.tracing.read_texts(&mut bytes, size)?;
                        }
                        _ => {
                            let size = bytes.u64("names of threads")?;
                            self.tracing.read_threads(&mut bytes, size)?;
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn take_buffer<R: Read + Seek>(
        &mut self,
        file: &mut ByteReader<R>,
        option: &[u8],
        packing: Packing,
    ) -> Result<(), CaptureError> {
        let mut option = ByteReader::new(option, 0);
        let offset = option.u64("options")?;
        option.text(OPTION_BYTES_MAX, "options")?;
        let clock = option.text(OPTION_BYTES_MAX, "options")?;
        let page_bytes = option.u32("options")?;
        let cpus = option.u32("options")?;
        let packing = if Section::is_packed(file, offset)? { packing } else { Packing::Plain };
        for _ in 0..cpus {
            let cpu = option.u32("options")?;
            let (offset, size) = (option.u64("options")?, option.u64("options")?);
            self.add(cpu, offset, size, packing)?;
        }
        if cpus > 0 {
            self.clock = CaptureClock::of_ftrace(&clock);
            self.tracing.page_bytes = page_bytes;
        }
        Ok(())
    }

    fn add(
        &mut self,
        cpu: u32,
        offset: u64,
        bytes: u64,
        packing: Packing,
    ) -> Result<(), CaptureError> {
        let Some(end) = offset.checked_add(bytes) else {
            let why = format!("{bytes} bytes of records at {offset}: no file is that long");
            return Err(CaptureError::damaged(offset, why));
        };
        if self.streams.len() == STREAMS_MAX {
            return Err(CaptureError::damaged(offset, "records of more than 1024 CPUs"));
        }
        if bytes == 0 {
            return Ok(());
        }
        self.streams.push(Stream {
            cpu,
            at: offset,
            end,
            packing,
            chunks: 0,
            unpacked: Vec::new(),
            taken: 0,
            page: Page::default(),
        });
        Ok(())
    }
}

/// The text `Linux name 6.18.0 x86_64`.
fn uname(option: &[u8]) -> KernelName {
    KernelName::of_uname(String::from_utf8_lossy(option).trim_end_matches('\0'))
}

/// The clock between brackets, `local global [mono] boot`.
fn chosen_clock(option: &[u8]) -> CaptureClock {
    let text = String::from_utf8_lossy(option);
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    CaptureClock::of_ftrace(chosen.map_or("", |(clock, _)| clock))
}

/// A part of a file of version 7.
struct Section {
    data: Vec<u8>,
}

impl Section {
    fn read<R: Read + Seek>(
        file: &mut ByteReader<R>,
        offset: u64,
        packing: Packing,
    ) -> Result<Self, CaptureError> {
        let (is_packed, bytes) = Self::header(file, offset)?;
        if !is_packed {
            return Ok(Self { data: file.block(bytes, SECTION_BYTES_MAX, "head")? });
        }
        let (packed, unpacked) = (file.u32("head")?, file.u32("head")?);
        if unpacked as usize > SECTION_BYTES_MAX {
            let why = format!("a part of {unpacked} bytes; at most {SECTION_BYTES_MAX} are read");
            return Err(CaptureError::damaged(offset, why));
        }
        let block = file.block(u64::from(packed), SECTION_BYTES_MAX, "head")?;
        Ok(Self { data: packing.unpack(&block, unpacked as usize, offset)? })
    }

    fn is_packed<R: Read + Seek>(
        file: &mut ByteReader<R>,
        offset: u64,
    ) -> Result<bool, CaptureError> {
        Self::header(file, offset).map(|(is_packed, _)| is_packed)
    }

    /// True where it is packed, with the bytes that it has in the file.
    fn header<R: Read + Seek>(
        file: &mut ByteReader<R>,
        offset: u64,
    ) -> Result<(bool, u64), CaptureError> {
        file.seek_to(offset)?;
        let _id = file.u16("head")?;
        let flags = file.u16("head")?;
        let _description = file.u32("head")?;
        Ok((flags & 1 != 0, file.u64("head")?))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};
    use std::path::Path;

    use super::page::{Page, PageItem};
    use super::{Head, KernelName, TraceDatReader, uname};
    use crate::capture::CaptureReader;
    use crate::event::{TraceEvent, TraceKind};

    fn events(bytes: Vec<u8>) -> Vec<TraceEvent> {
        let mut reader = TraceDatReader::open(Cursor::new(bytes)).expect("a trace.dat");
        std::iter::from_fn(|| reader.next_event().expect("whole")).collect()
    }

    #[test]
    fn a_wakeup_that_its_cpu_recorded_first_is_no_second_waking() {
        let fixture = "../fixtures/trace/6.18/trace-6.dat";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture);
        let mut bytes = std::fs::read(path).expect("the fixture");
        let whole = events(bytes.clone());
        let mut file = BufReader::new(Cursor::new(bytes.clone()));
        let head = Head::read_6(&mut file).expect("its head");
        let id = |name: &str| {
            let format = head.tracing.formats.iter().find(|format| format.name() == name);
            format.expect("its format").id().to_le_bytes()
        };
        // The first CPU begins with a waking of long after the second one's, recorded as
        // `sched_wakeup`: what it recorded before is of no interest any more.
        let (stream, page_bytes) = (&head.streams[0], head.tracing.page_bytes as usize);
        let mut first = None;
        for at in (stream.at as usize..stream.end as usize).step_by(page_bytes) {
            let page_head = head.tracing.page_head_bytes;
            let mut page = Page::new(bytes[at..at + page_bytes].to_vec(), page_head);
            while let Some(item) = page.next_item().filter(|_| first.is_none()) {
                let PageItem::Record { at_ns, start, .. } = item else { continue };
                let record = at + start..at + start + 2;
                if bytes[record.clone()] == id("sched_waking") {
                    bytes[record].copy_from_slice(&id("sched_wakeup"));
                    first = Some(at_ns);
                } else {
                    bytes[record].copy_from_slice(&[0xff; 2]);
                }
            }
        }
        let first_ns = first.expect("a waking");
        let is_waking = |event: &&TraceEvent| matches!(event.kind, TraceKind::Waking { .. });
        let wakings = |events: &[TraceEvent]| {
            events
                .iter()
                .filter(is_waking)
                .map(|event| (event.at_ns, event.cpu))
                .collect::<Vec<_>>()
        };
        let mut wanted = wakings(&whole);
        assert!(wanted[0].1 == 1 && wanted[0].0 < first_ns, "{wanted:?}");
        wanted.retain(|waking| *waking != (first_ns, 0));
        assert_eq!(wakings(&events(bytes)), wanted);
    }

    #[test]
    fn release_and_architecture_are_the_last_words_of_uname() {
        let kernel = uname(b"Linux lab 6.18.44 x86_64\0");
        assert_eq!(kernel.release.as_deref(), Some("6.18.44"));
        assert_eq!(kernel.machine.as_deref(), Some("x86_64"));
        assert_eq!(uname(b"\0"), KernelName::default());
        assert_eq!(uname(b"Linux x86_64\0").release, None);
    }
}
