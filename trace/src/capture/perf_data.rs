//! Reads `perf.data`, as a file and as `perf record -o -` writes it into a pipe.
//!
//! After perf's `Documentation/perf.data-file-format.txt`. Records are read one by one; they are
//! held back as long as another CPU's may be earlier, which the file says (`FINISHED_ROUND`).

use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};

use super::bytes::ByteReader;
use super::tracing_data::{MAGIC, TracingData};
use super::{
    CaptureClock, CaptureError, CaptureFacts, CaptureFormat, CaptureReader, EVENTS_HELD,
    KernelName, plain,
};
use crate::decode::{Decoder, RecordPlace};
use crate::event::TraceEvent;
use crate::merge::Merge;
use crate::perf_record::{HEADER_BYTES, RecordHeader, RecordedEvent, SampleLayout, sample_type};
use crate::perf_stream::{PerfSource, PerfStream, StreamItem};

/// The bytes that a file begins with.
pub const MAGIC_PERF: &[u8; 8] = b"PERFILE2";

/// Most events of perf in one file.
const EVENTS_MAX: u64 = 16 * 1024;

/// Most identifiers in one file: of 256 events on 8192 CPUs.
const IDS_MAX: u64 = 1 << 21;

/// Longest part TRACING_DATA, bytes.
const TRACING_DATA_MAX: usize = 128 << 20;

/// The shortest `perf_event_attr` ever, PERF_ATTR_SIZE_VER0.
const ATTR_BYTES_MIN: usize = 64;

/// The longest that is read of one, bytes: twice the newest.
const ATTR_BYTES_MAX: usize = 320;

/// The header of a file, and the one that a pipe begins with.
const FILE_HEADER_BYTES: u64 = 104;
const PIPE_HEADER_BYTES: u64 = 16;

/// Records that perf adds to those of the kernel.
mod added {
    pub(super) const FIRST: u32 = 64;
    pub(super) const ATTR: u32 = 64;
    pub(super) const TRACING_DATA: u32 = 66;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
}

/// The part TRACING_DATA, a bit of the header.
pub(crate) const FEATURE_TRACING_DATA: u32 = 1;

/// The parts with the kernel's release, as `uname -r` has it, and with the architecture, as `uname
/// -m` has it: a length and as many bytes.
pub(crate) const FEATURE_RELEASE: u32 = 4;
pub(crate) const FEATURE_ARCH: u32 = 6;

/// Longest of these, bytes.
const TEXT_BYTES_MAX: usize = 256;

/// The part with this program's note: the last bit of the header, which perf passes over.
pub(crate) const FEATURE_NOTE: u32 = 255;

/// Longest note, bytes.
pub const NOTE_BYTES_MAX: usize = 16 << 20;

/// `sample_id_all` and `use_clockid`, bits of a `perf_event_attr`.
const ATTR_SAMPLE_ID_ALL: u64 = 1 << 18;
const ATTR_USE_CLOCKID: u64 = 1 << 25;

/// One event of perf, as a file has it.
#[derive(Debug, Clone)]
struct FileEvent {
    event: RecordedEvent,
    source: PerfSource,
    tracepoint: Option<u64>,
    clock: CaptureClock,
}

impl FileEvent {
    /// From the bytes of a `perf_event_attr`; what an older one lacks is 0.
    fn new(attr: &[u8]) -> Self {
        let word = |at: usize| {
            attr.get(at..)
                .and_then(|bytes| bytes.first_chunk())
                .map_or(0, |word| u64::from_le_bytes(*word))
        };
        let half = |at: usize| {
            attr.get(at..)
                .and_then(|bytes| bytes.first_chunk())
                .map_or(0, |half| u32::from_le_bytes(*half))
        };
        let flags = word(40);
        let clock = match half(92) {
            _ if flags & ATTR_USE_CLOCKID == 0 => CaptureClock::Unknown,
            1 => CaptureClock::Monotonic,
            4 => CaptureClock::MonotonicRaw,
            id => CaptureClock::Named(format!("clock {id}").into_boxed_str()),
        };
        let layout = SampleLayout {
            sample_type: word(24),
            read_format: word(32),
            is_stamped: flags & ATTR_SAMPLE_ID_ALL != 0,
        };
        let source = PerfSource::new(half(0), word(8));
        Self {
            event: RecordedEvent { layout, ids: Vec::new() },
            source,
            tracepoint: (source == PerfSource::Tracepoint).then(|| word(8)),
            clock,
        }
    }
}

/// A part of a file.
#[derive(Debug, Clone, Copy, Default)]
struct Section {
    offset: u64,
    bytes: u64,
}

impl Section {
    fn read<R: Read>(bytes: &mut ByteReader<R>) -> Result<Self, CaptureError> {
        Ok(Self { offset: bytes.u64("head")?, bytes: bytes.u64("head")? })
    }

    fn end(self, at: u64) -> Result<u64, CaptureError> {
        self.offset.checked_add(self.bytes).ok_or_else(|| {
            let why = format!("{} bytes at {}: no file is that long", self.bytes, self.offset);
            CaptureError::damaged(at, why)
        })
    }
}

/// Reads a `perf.data`.
#[derive(Debug)]
pub struct PerfDataReader<R> {
    source: ByteReader<BufReader<R>>,
    /// The byte behind the last record; `None` of a pipe.
    end: Option<u64>,
    events: Vec<FileEvent>,
    tracing: Option<TracingData>,
    /// There from the first record of the kernel on.
    stream: Option<PerfStream>,
    record: Vec<u8>,
    merge: Merge,
    place: RecordPlace,
    latest_ns: u64,
    /// The latest time of the round before.
    round_ns: Option<u64>,
    is_done: bool,
    facts: CaptureFacts,
}

impl<R: Read + Seek> PerfDataReader<R> {
    /// Reads the head of a file, or of a pipe that was saved into one.
    ///
    /// # Errors
    /// A file that is no `perf.data`, or none that can be read.
    pub fn open(mut file: R) -> Result<Self, CaptureError> {
        file.seek(SeekFrom::Start(0))?;
        let mut head = ByteReader::new(file, 0);
        let header_bytes = header(&mut head)?;
        if header_bytes == PIPE_HEADER_BYTES {
            return Ok(Self::new(head.into_inner(), PIPE_HEADER_BYTES, None));
        }
        let attr_bytes = head.u64("head")?;
        let attrs = Section::read(&mut head)?;
        let data = Section::read(&mut head)?;
        let _event_types = Section::read(&mut head)?;
        let features = FeatureBits::read(&mut head)?;
        if data.bytes == 0 {
            return Err(CaptureError::Unsupported {
                form: Box::from("its recorder did not end it: its records have no length"),
                way_out: "record again and end perf by SIGINT",
            });
        }
        let data_end = data.end(head.at())?;
        let mut file = head.into_inner();
        let mut events = Vec::new();
        read_attrs(&mut file, attrs, attr_bytes, &mut events)?;
        let tracing = match features.section(&mut file, data_end, FEATURE_TRACING_DATA)? {
            None => None,
            Some(section) => {
                let part = (&mut file).take(section.bytes.min(TRACING_DATA_MAX as u64));
                let mut part = ByteReader::new(BufReader::new(part), section.offset);
                Some(tracing_data(&mut part)?)
            }
        };
        let note = match features.section(&mut file, data_end, FEATURE_NOTE)? {
            None => None,
            Some(section) => {
                let mut bytes = ByteReader::new(&mut file, section.offset);
                Some(bytes.block(section.bytes, NOTE_BYTES_MAX, "note")?)
            }
        };
        let kernel = KernelName {
            release: features.text(&mut file, data_end, FEATURE_RELEASE, "release")?,
            machine: features.text(&mut file, data_end, FEATURE_ARCH, "architecture")?,
        };
        file.seek(SeekFrom::Start(data.offset))?;
        let mut reader = Self::new(file, data.offset, Some(data_end));
        reader.events = events;
        reader.tracing = tracing;
        reader.facts.set_kernel(kernel);
        match note.map(String::from_utf8) {
            Some(Ok(note)) => reader.facts.set_note(note),
            Some(Err(_)) => reader.facts.refuse(|| "a note that is no UTF-8".to_owned()),
            None => {}
        }
        Ok(reader)
    }
}

/// The events of perf in the head of a file.
fn read_attrs<R: Read + Seek>(
    file: &mut R,
    attrs: Section,
    attr_bytes: u64,
    events: &mut Vec<FileEvent>,
) -> Result<(), CaptureError> {
    let section_bytes = 16;
    let is_known = (ATTR_BYTES_MIN as u64..=ATTR_BYTES_MAX as u64)
        .contains(&attr_bytes.saturating_sub(section_bytes));
    if !is_known {
        let why = format!("events of {attr_bytes} bytes; 80 to 336 are read");
        return Err(CaptureError::damaged(16, why));
    }
    let count = attrs.bytes / attr_bytes;
    if count > EVENTS_MAX {
        let why = format!("{count} events of perf; at most {EVENTS_MAX} are read");
        return Err(CaptureError::damaged(32, why));
    }
    file.seek(SeekFrom::Start(attrs.offset))?;
    let mut bytes = ByteReader::new(&mut *file, attrs.offset);
    let mut id_sections = Vec::new();
    for _ in 0..count {
        let attr = bytes.block(attr_bytes - section_bytes, ATTR_BYTES_MAX, "events")?;
        events.push(FileEvent::new(&attr));
        id_sections.push(Section::read(&mut bytes)?);
    }
    let mut ids_left = IDS_MAX;
    for (section, event) in id_sections.into_iter().zip(events) {
        let ids = section.bytes / 8;
        ids_left = ids_left.checked_sub(ids).ok_or_else(|| {
            CaptureError::damaged(section.offset, format!("more than {IDS_MAX} identifiers"))
        })?;
        file.seek(SeekFrom::Start(section.offset))?;
        let mut bytes = ByteReader::new(&mut *file, section.offset);
        for _ in 0..ids {
            event.event.ids.push(bytes.u64("identifiers")?);
        }
    }
    Ok(())
}

/// The parts that a file has behind its records, a bit for each.
#[derive(Debug, Clone, Copy)]
struct FeatureBits([u64; 4]);

impl FeatureBits {
    fn read<R: Read>(head: &mut ByteReader<R>) -> Result<Self, CaptureError> {
        let mut words = [0; 4];
        for word in &mut words {
            *word = head.u64("head")?;
        }
        Ok(Self(words))
    }

    /// The place of a part, with the file set to it: the table of them lies behind the records, one
    /// entry for each bit that is set.
    fn section<R: Read + Seek>(
        self,
        file: &mut R,
        data_end: u64,
        feature: u32,
    ) -> Result<Option<Section>, CaptureError> {
        let (word, bit) = ((feature / 64) as usize, feature % 64);
        if self.0[word] >> bit & 1 == 0 {
            return Ok(None);
        }
        let earlier: u32 = self.0[..word].iter().map(|word| word.count_ones()).sum();
        let before = earlier + (self.0[word] & ((1 << bit) - 1)).count_ones();
        let entry = data_end + u64::from(before) * 16;
        file.seek(SeekFrom::Start(entry))?;
        let section = Section::read(&mut ByteReader::new(&mut *file, entry))?;
        file.seek(SeekFrom::Start(section.offset))?;
        Ok(Some(section))
    }

    /// A part that is a text.
    fn text<R: Read + Seek>(
        self,
        file: &mut R,
        data_end: u64,
        feature: u32,
        part: &'static str,
    ) -> Result<Option<Box<str>>, CaptureError> {
        let Some(section) = self.section(file, data_end, feature)? else { return Ok(None) };
        let mut bytes = ByteReader::new(&mut *file, section.offset);
        let length = bytes.u32(part)?;
        let text = bytes.block(u64::from(length), TEXT_BYTES_MAX, part)?;
        Ok(trimmed_text(&text))
    }
}

/// A text of perf, which zeros fill up; `None` where it is empty.
fn trimmed_text(bytes: &[u8]) -> Option<Box<str>> {
    let text = plain(String::from_utf8_lossy(bytes).trim_end_matches('\0'));
    (!text.is_empty()).then(|| text.into_boxed_str())
}

/// The number of a part in a record of a pipe, and its text, where it is one.
fn feature_text(body: &[u8]) -> Option<(u32, Box<str>)> {
    let (feature, rest) = body.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let text = rest.get(..length).filter(|text| text.len() <= TEXT_BYTES_MAX)?;
    Some((u32::try_from(u64::from_le_bytes(*feature)).ok()?, trimmed_text(text)?))
}

fn tracing_data<R: Read>(bytes: &mut ByteReader<R>) -> Result<TracingData, CaptureError> {
    let at = bytes.at();
    if bytes.array("formats")? != *MAGIC {
        return Err(CaptureError::damaged(at, "formats that do not begin as they do"));
    }
    TracingData::read(bytes)
}

/// Reads the magic, and gives the bytes of the header, which tell file and pipe apart.
fn header<R: Read>(head: &mut ByteReader<R>) -> Result<u64, CaptureError> {
    let magic = head.array::<8>("head")?;
    if magic == *b"2ELIFREP" {
        return Err(CaptureError::Unsupported {
            form: Box::from("it was written on a big-endian machine"),
            way_out: "give its text: perf script --ns",
        });
    }
    if magic != *MAGIC_PERF {
        return Err(CaptureError::damaged(0, "no perf.data: it does not begin with PERFILE2"));
    }
    let bytes = head.u64("head")?;
    if matches!(bytes, FILE_HEADER_BYTES | PIPE_HEADER_BYTES) {
        return Ok(bytes);
    }
    let why = format!("a header of {bytes} bytes; 104 and, of a pipe, 16 are read");
    Err(CaptureError::damaged(8, why))
}

impl<R: Read> PerfDataReader<R> {
    /// Reads what `perf record -o -` writes, which cannot be read twice.
    ///
    /// # Errors
    /// Bytes that are no such pipe.
    pub fn open_pipe(pipe: R) -> Result<Self, CaptureError> {
        let mut head = ByteReader::new(pipe, 0);
        if header(&mut head)? == PIPE_HEADER_BYTES {
            return Ok(Self::new(head.into_inner(), PIPE_HEADER_BYTES, None));
        }
        Err(CaptureError::Unsupported {
            form: Box::from("a perf.data that cannot be read twice"),
            way_out: "give the file itself, or record with perf record -o -",
        })
    }

    /// Continues with byte `at`, which is the first of a record.
    fn new(source: R, at: u64, end: Option<u64>) -> Self {
        Self {
            source: ByteReader::new(BufReader::with_capacity(1 << 16, source), at),
            end,
            events: Vec::new(),
            tracing: None,
            stream: None,
            record: Vec::new(),
            merge: Merge::new(EVENTS_HELD),
            place: RecordPlace::default(),
            latest_ns: 0,
            round_ns: None,
            is_done: false,
            facts: CaptureFacts::new(CaptureFormat::PerfData),
        }
    }

    /// Everything about the events of perf is known: what tells their records apart is made of it.
    fn begin(&mut self) -> Result<(), CaptureError> {
        let is_tracepoint = |event: &&FileEvent| event.source == PerfSource::Tracepoint;
        let tracepoints = self.events.iter().filter(is_tracepoint);
        let ids: Vec<_> = tracepoints.clone().filter_map(|event| event.tracepoint).collect();
        for event in tracepoints.clone() {
            if event.event.layout.sample_type & sample_type::CALLCHAIN != 0 {
                self.facts.set_has_chains();
            }
        }
        if let Some(event) = tracepoints.clone().next() {
            self.facts.set_clock(event.clock.clone());
        }
        let tracing = self.tracing.take();
        if tracing.is_none() && !ids.is_empty() {
            return Err(CaptureError::Unsupported {
                form: Box::from("it has tracepoints but not their formats"),
                way_out: "give its text: perf script --ns",
            });
        }
        let decoder = match tracing {
            None => Decoder::new([]),
            Some(tracing) => {
                let is_recorded = |id: u16| ids.contains(&u64::from(id));
                for format in tracing.formats.iter().filter(|format| is_recorded(format.id())) {
                    self.facts.record(format.system(), format.name());
                }
                tracing.settle(&mut self.facts, |formats| Decoder::new(formats))
            }
        };
        for why in decoder.unusable() {
            self.facts.refuse(|| why.to_string());
        }
        let events = std::mem::take(&mut self.events);
        let events: Vec<_> = events.into_iter().map(|event| (event.event, event.source)).collect();
        let stream = PerfStream::new(&events, decoder);
        self.stream = Some(stream.map_err(|why| CaptureError::damaged(self.source.at(), why))?);
        Ok(())
    }

    /// Reads one record; returns false where there is none any more.
    fn step(&mut self) -> Result<bool, CaptureError> {
        let at = self.source.at();
        if self.end.is_some_and(|end| at >= end) {
            return Ok(false);
        }
        let mut header = [0; HEADER_BYTES];
        match self.source.fill(&mut header)? {
            HEADER_BYTES => {}
            0 if self.end.is_none() => return Ok(false),
            _ => {
                self.facts.set_cut_short();
                return Ok(false);
            }
        }
        let header_read =
            RecordHeader::read(&header).map_err(|why| CaptureError::damaged(at, why))?;
        let Some(RecordHeader { kind, bytes }) = header_read else { return Ok(false) };
        self.record.resize(bytes, 0);
        self.record[..HEADER_BYTES].copy_from_slice(&header);
        let body = &mut self.record[HEADER_BYTES..];
        if self.source.fill(body)? < body.len() {
            self.facts.set_cut_short();
            return Ok(false);
        }
        if kind >= added::FIRST {
            self.added(kind, at)?;
        } else {
            if self.stream.is_none() {
                self.begin()?;
            }
            self.taken();
        }
        Ok(true)
    }

    /// A record of the kernel.
    fn taken(&mut self) {
        let Some(stream) = &self.stream else { return };
        // It is whole and its size was looked at.
        let Ok(Some(sized)) = stream.layouts().first(&self.record) else { return };
        if let Some((tid, pid)) = sized.record.process() {
            self.facts.see_process(tid, pid);
        }
        if let Some(counters) = stream.counters(&sized.record, self.place) {
            self.merge.push(counters);
        }
        match stream.item(&sized.record, self.place) {
            StreamItem::Event(event) => {
                self.place = RecordPlace { at_ns: event.at_ns, cpu: event.cpu };
                self.latest_ns = self.latest_ns.max(event.at_ns);
                self.merge.push(event);
            }
            StreamItem::Named(task) => self.facts.name_thread(task),
            StreamItem::Nothing => self.facts.counts_mut().skipped += 1,
            StreamItem::Undecodable(why) => self.facts.refuse(|| why.to_string()),
            StreamItem::Damaged(kind) => {
                self.facts.refuse(|| format!("a record of type {kind} is too short"));
            }
        }
    }

    /// A record that perf added.
    fn added(&mut self, kind: u32, at: u64) -> Result<(), CaptureError> {
        let body = &self.record[HEADER_BYTES..];
        match kind {
            added::FINISHED_ROUND => {
                if let Some(round_ns) = self.round_ns {
                    self.merge.settle(round_ns);
                }
                self.round_ns = Some(self.latest_ns);
            }
            added::ATTR if self.stream.is_none() => {
                let size = body.get(4..).and_then(|bytes| bytes.first_chunk());
                let size = size.map_or(0, |size| u32::from_le_bytes(*size) as usize);
                let Some((attr, ids)) = body.split_at_checked(size) else {
                    let why = format!("an event of perf of {size} bytes in a shorter record");
                    return Err(CaptureError::damaged(at, why));
                };
                if self.events.len() as u64 == EVENTS_MAX {
                    let why = format!("more than {EVENTS_MAX} events of perf");
                    return Err(CaptureError::damaged(at, why));
                }
                let mut event = FileEvent::new(attr);
                event.event.ids =
                    ids.as_chunks().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
                self.events.push(event);
            }
            // Its bytes lie behind the record; how many, the record says.
            added::TRACING_DATA => {
                let size = body.first_chunk().map_or(0, |size| u32::from_le_bytes(*size));
                let part = self.source.block(u64::from(size), TRACING_DATA_MAX, "formats")?;
                if self.stream.is_none() {
                    self.tracing = Some(tracing_data(&mut ByteReader::new(Cursor::new(part), at))?);
                }
            }
            added::FEATURE => {
                let mut kernel = self.facts.kernel().clone();
                match feature_text(body) {
                    Some((FEATURE_RELEASE, text)) => kernel.release = Some(text),
                    Some((FEATURE_ARCH, text)) => kernel.machine = Some(text),
                    _ => {}
                }
                self.facts.set_kernel(kernel);
            }
            added::AUXTRACE => {
                let size = body.first_chunk().map_or(0, |size| u64::from_le_bytes(*size));
                self.source.skip(size, "records")?;
            }
            added::COMPRESSED | added::COMPRESSED2 => {
                return Err(CaptureError::Unsupported {
                    form: Box::from("its records are compressed (perf record -z)"),
                    way_out: "record without -z, or give its text: perf script --ns",
                });
            }
            _ => self.facts.counts_mut().skipped += 1,
        }
        Ok(())
    }
}

impl<R: Read> CaptureReader for PerfDataReader<R> {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, CaptureError> {
        loop {
            if let Some(event) = self.merge.pop() {
                self.facts.give(&event);
                self.facts.counts_mut().out_of_order = self.merge.out_of_order();
                return Ok(Some(event));
            }
            if self.is_done {
                return Ok(None);
            }
            if !self.step()? {
                self.is_done = true;
                self.merge.finish();
                // Without a record, what it has is still to be said.
                if self.stream.is_none() {
                    self.begin()?;
                }
            }
        }
    }

    fn facts(&self) -> &CaptureFacts {
        &self.facts
    }
}
