//! The records of a ring of perf, as the kernel writes them and as a `perf.data` holds them.
//!
//! Pure: bytes in, records out, borrowed from them. After `perf_event_open(2)` and Linux'
//! `include/uapi/linux/perf_event.h`. The `sample_type` of its event gives the fields of a sample;
//! its identifier gives the event. Little-endian only.

use thiserror::Error;

use crate::event::{CodeAddress, ProcessorCounts, ShortName, Tid};

/// Bits of `sample_type`.
pub mod sample_type {
    /// The instruction.
    pub const IP: u64 = 1;
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// The instant, in the event's clock.
    pub const TIME: u64 = 1 << 2;
    /// An address.
    pub const ADDR: u64 = 1 << 3;
    /// The counters' values.
    pub const READ: u64 = 1 << 4;
    /// The call chain.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// The event's identifier, somewhere.
    pub const ID: u64 = 1 << 6;
    /// The CPU.
    pub const CPU: u64 = 1 << 7;
    /// The period, without which the kernel may repeat a sample.
    pub const PERIOD: u64 = 1 << 8;
    /// The identifier of the ring's event.
    pub const STREAM_ID: u64 = 1 << 9;
    /// The bytes of a tracepoint.
    pub const RAW: u64 = 1 << 10;
    /// The event's identifier, where each sample has it: first, or last in what is no sample.
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `read_format`.
mod read_format {
    pub(super) const TOTAL_TIME_ENABLED: u64 = 1;
    pub(super) const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

/// Types of records, `PERF_RECORD_…`.
pub mod record_type {
    /// Records were dropped, for the ring was full.
    pub const LOST: u32 = 2;
    /// A thread has a new name.
    pub const COMM: u32 = 3;
    /// A thread ended.
    pub const EXIT: u32 = 4;
    /// An event is silenced until the next tick: it came too often.
    pub const THROTTLE: u32 = 5;
    /// It is no longer silenced.
    pub const UNTHROTTLE: u32 = 6;
    /// A thread began.
    pub const FORK: u32 = 7;
    /// A sample.
    pub const SAMPLE: u32 = 9;
    /// Samples were dropped.
    pub const LOST_SAMPLES: u32 = 13;
}

/// Bytes before a record's body: its type, `misc` and its whole size.
pub const HEADER_BYTES: usize = 8;

/// The mark before the kernel's part of a call chain, `PERF_CONTEXT_KERNEL`.
pub(crate) const CONTEXT_KERNEL: u64 = (-128i64).cast_unsigned();

/// The lowest of such marks, `PERF_CONTEXT_MAX`.
const CONTEXT_MAX: u64 = (-4095i64).cast_unsigned();

/// A counter of the processor that is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HardwareCounter {
    /// PERF_COUNT_HW_CPU_CYCLES.
    Cycles,
    /// PERF_COUNT_HW_INSTRUCTIONS.
    Instructions,
    /// PERF_COUNT_HW_CACHE_MISSES.
    CacheMisses,
    /// PERF_COUNT_HW_STALLED_CYCLES_BACKEND.
    StalledCycles,
}

/// The fields that the records of one event of perf have: three of its `perf_event_attr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SampleLayout {
    /// `sample_type`.
    pub sample_type: u64,
    /// `read_format`.
    pub read_format: u64,
    /// `sample_id_all`: records that are no samples have a stamp, too.
    pub is_stamped: bool,
}

impl SampleLayout {
    const fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    /// Bytes of the stamp at the end of a record that is no sample.
    fn stamp_bytes(&self) -> usize {
        if !self.is_stamped {
            return 0;
        }
        let parts = sample_type::TID
            | sample_type::TIME
            | sample_type::ID
            | sample_type::STREAM_ID
            | sample_type::CPU
            | sample_type::IDENTIFIER;
        8 * (self.sample_type & parts).count_ones() as usize
    }

    /// Bytes of a sample's body before its identifier; `None` where it has none.
    fn id_in_sample(&self) -> Option<usize> {
        if self.has(sample_type::IDENTIFIER) {
            return Some(0);
        }
        if !self.has(sample_type::ID) {
            return None;
        }
        let before = sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::ADDR;
        Some(8 * (self.sample_type & before).count_ones() as usize)
    }

    /// Bytes from the begin of the identifier to the end of a record that is no sample; `None`
    /// where it has none.
    fn id_from_end(&self) -> Option<usize> {
        if !self.is_stamped {
            return None;
        }
        if self.has(sample_type::IDENTIFIER) {
            return Some(8);
        }
        if !self.has(sample_type::ID) {
            return None;
        }
        let behind = sample_type::STREAM_ID | sample_type::CPU;
        Some(8 + 8 * (self.sample_type & behind).count_ones() as usize)
    }
}

/// One event of perf, `perf_event_attr`, and the identifiers that the kernel gave it: one a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedEvent {
    /// The fields of its records.
    pub layout: SampleLayout,
    /// Its identifiers.
    pub ids: Vec<u64>,
}

/// The events whose records share a ring or a file, by their identifiers, with the fields of their
/// records.
#[derive(Debug, Clone)]
pub struct Layouts {
    layouts: Vec<SampleLayout>,
    /// Identifier and place in `layouts`, sorted.
    by_id: Vec<(u64, u16)>,
    /// The place of identifiers, where it is the same in all events.
    id_in_sample: Option<usize>,
    id_from_end: Option<usize>,
}

impl Layouts {
    /// From all events of a ring or file.
    ///
    /// # Errors
    /// No event, too many, or several that cannot be distinguished.
    pub fn new(events: &[RecordedEvent]) -> Result<Self, LayoutsError> {
        let layouts: Vec<_> = events.iter().map(|event| event.layout).collect();
        let first = *layouts.first().ok_or(LayoutsError::Empty)?;
        if layouts.len() > usize::from(u16::MAX) {
            return Err(LayoutsError::TooMany { events: layouts.len() });
        }
        let (id_in_sample, id_from_end) = (first.id_in_sample(), first.id_from_end());
        let is_apart = layouts.iter().all(|layout| {
            layout.id_in_sample() == id_in_sample && layout.id_from_end() == id_from_end
        });
        if layouts.len() > 1 && (!is_apart || id_in_sample.is_none()) {
            return Err(LayoutsError::Alike);
        }
        let mut by_id: Vec<_> = (0..)
            .zip(events)
            .flat_map(|(place, event)| event.ids.iter().map(move |&id| (id, place)))
            .collect();
        by_id.sort_unstable();
        Ok(Self { layouts, by_id, id_in_sample, id_from_end })
    }

    /// The place of the event with this identifier, also where there is only one.
    pub(crate) fn place_of(&self, id: u64) -> Option<usize> {
        let at = self.by_id.partition_point(|&(known, _)| known < id);
        let found = self.by_id.get(at).filter(|&&(known, _)| known == id);
        found.map(|&(_, place)| usize::from(place))
    }

    /// The event with this identifier; 0 is the kernel's own identifier of none.
    fn place(&self, id: Option<u64>) -> Option<u16> {
        if self.layouts.len() == 1 {
            return Some(0);
        }
        let id = id?;
        let at = self.by_id.partition_point(|&(known, _)| known < id);
        self.by_id.get(at).filter(|&&(known, _)| known == id).map(|&(_, place)| place)
    }

    /// The first record of these bytes. Nothing if they are too few for it.
    ///
    /// # Errors
    /// A size that no record has: nothing behind it can be read.
    pub fn first<'a>(&self, bytes: &'a [u8]) -> Result<Option<SizedRecord<'a>>, RecordError> {
        let Some(header) = RecordHeader::read(bytes)? else { return Ok(None) };
        let Some(whole) = bytes.get(..header.bytes) else { return Ok(None) };
        Ok(Some(SizedRecord { record: self.record(header, whole), bytes: header.bytes }))
    }

    /// The record of this header, whose bytes are `whole`.
    fn record<'a>(&self, header: RecordHeader, whole: &'a [u8]) -> PerfRecord<'a> {
        let body = whole.get(HEADER_BYTES..).unwrap_or_default();
        let damaged = PerfRecord::Damaged { kind: header.kind };
        if header.kind == record_type::SAMPLE {
            let id = self.id_in_sample.and_then(|at| Words::new(body).skip(at)?.word());
            let Some(event) = self.place(id) else {
                return PerfRecord::Foreign;
            };
            let layout = self.layouts[usize::from(event)];
            return sample(layout, event, body).map_or(damaged, PerfRecord::Sample);
        }
        let (body, stamp) = self.stamp(body);
        let mut words = Words::new(body);
        match header.kind {
            record_type::LOST => match (words.word(), words.word()) {
                (Some(_), Some(count)) => PerfRecord::Lost { count, stamp },
                _ => damaged,
            },
            record_type::LOST_SAMPLES => {
                words.word().map_or(damaged, |count| PerfRecord::Lost { count, stamp })
            }
            record_type::COMM => match (words.halves(), words.rest) {
                (Some((pid, tid)), name) => {
                    PerfRecord::Named { tid, pid, name: ShortName::new(name), stamp }
                }
                _ => damaged,
            },
            record_type::EXIT => match (words.word(), words.halves()) {
                (Some(_), Some((tid, _))) => PerfRecord::Ended { tid, stamp },
                _ => damaged,
            },
            record_type::FORK => match (words.halves(), words.halves()) {
                (Some((pid, _)), Some((tid, _))) => PerfRecord::Began { tid, pid },
                _ => damaged,
            },
            record_type::THROTTLE => PerfRecord::Throttled { stamp },
            record_type::UNTHROTTLE => PerfRecord::Unthrottled { stamp },
            kind => PerfRecord::Skipped { kind },
        }
    }

    /// Splits what is no sample into its body and its stamp.
    fn stamp<'a>(&self, body: &'a [u8]) -> (&'a [u8], Stamp) {
        let id_at = self.id_from_end.and_then(|from_end| body.len().checked_sub(from_end));
        let id = id_at.and_then(|at| Words::new(body).skip(at)?.word());
        // What the kernel makes up without an event, such as names, has the identifier of the
        // first; in files that perf itself filled up it has 0, and the layout of the first.
        let layout = self.layouts[usize::from(self.place(id).unwrap_or(0))];
        let Some(at) = body.len().checked_sub(layout.stamp_bytes()) else {
            return (body, Stamp::default());
        };
        let (body, end) = body.split_at(at);
        let mut words = Words::new(end);
        let mut stamp = Stamp::default();
        if layout.has(sample_type::TID) {
            (stamp.pid, stamp.tid) = words.halves().unzip();
        }
        if layout.has(sample_type::TIME) {
            stamp.at_ns = words.word();
        }
        for bit in [sample_type::ID, sample_type::STREAM_ID] {
            if layout.has(bit) {
                words.word();
            }
        }
        if layout.has(sample_type::CPU) {
            stamp.cpu = words.halves().map(|(cpu, _)| cpu);
        }
        (body, stamp)
    }
}

/// The bytes of `layout` in a sample, up to those of the tracepoint.
fn sample(layout: SampleLayout, event: u16, body: &[u8]) -> Option<RingSample<'_>> {
    let mut words = Words::new(body);
    let mut sample = RingSample { event, ..RingSample::default() };
    let skipped = [sample_type::IDENTIFIER, sample_type::IP];
    for bit in skipped {
        if layout.has(bit) {
            words.word()?;
        }
    }
    if layout.has(sample_type::TID) {
        (sample.stamp.pid, sample.stamp.tid) = Some(words.halves()?).unzip();
    }
    if layout.has(sample_type::TIME) {
        sample.stamp.at_ns = Some(words.word()?);
    }
    for bit in [sample_type::ADDR, sample_type::ID, sample_type::STREAM_ID] {
        if layout.has(bit) {
            words.word()?;
        }
    }
    if layout.has(sample_type::CPU) {
        sample.stamp.cpu = Some(words.halves()?.0);
    }
    if layout.has(sample_type::PERIOD) {
        words.word()?;
    }
    if layout.has(sample_type::READ) {
        sample.counters = words.counters(layout.read_format)?;
    }
    if layout.has(sample_type::CALLCHAIN) {
        let frames = usize::try_from(words.word()?).ok()?;
        sample.chain = words.take(frames.checked_mul(8)?)?;
    }
    if layout.has(sample_type::RAW) {
        let length = words.take(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?);
        sample.raw = words.take(usize::try_from(length).ok()?)?;
    }
    Some(sample)
}

/// Takes words off the front of bytes.
#[derive(Clone, Copy)]
struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    #[inline]
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn skip(mut self, bytes: usize) -> Option<Self> {
        self.take(bytes)?;
        Some(self)
    }

    #[inline]
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*word))
    }

    #[inline]
    fn halves(&mut self) -> Option<(u32, u32)> {
        let [a, b, c, d, e, f, g, h] = self.word()?.to_le_bytes();
        Some((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])))
    }

    /// `struct read_format`, of one counter or of a group.
    fn counters(&mut self, format: u64) -> Option<CounterGroup<'a>> {
        let bytes = self.rest;
        let has = |bit: u64| usize::from(format & bit != 0);
        let times = has(read_format::TOTAL_TIME_ENABLED) + has(read_format::TOTAL_TIME_RUNNING);
        let each = 1 + has(read_format::ID) + has(read_format::LOST);
        let words = if format & read_format::GROUP == 0 {
            times + each
        } else {
            let counters = usize::try_from(self.word()?).ok()?;
            counters.checked_mul(each)?.checked_add(times)?
        };
        self.take(words.checked_mul(8)?)?;
        Some(CounterGroup { bytes: &bytes[..bytes.len() - self.rest.len()], format })
    }
}

/// The first eight bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Its type; from 64 on those that perf adds to a file.
    pub kind: u32,
    /// Its bytes with its header, 8 at least.
    pub bytes: usize,
}

impl RecordHeader {
    /// The header of the record that these bytes begin with; nothing if they are too few for it.
    ///
    /// # Errors
    /// A size that no record has.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, RecordError> {
        let Some(&[a, b, c, d, _, _, low, high]) = bytes.first_chunk() else { return Ok(None) };
        let kind = u32::from_le_bytes([a, b, c, d]);
        let size = u16::from_le_bytes([low, high]);
        if usize::from(size) < HEADER_BYTES {
            return Err(RecordError { kind, size });
        }
        Ok(Some(Self { kind, bytes: usize::from(size) }))
    }
}

/// A record, and how many bytes it takes with its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedRecord<'a> {
    /// The record.
    pub record: PerfRecord<'a>,
    /// Its bytes with its header: there the next one begins.
    pub bytes: usize,
}

/// The instant, thread and CPU of a record, as far as it has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The process of the thread.
    pub pid: Option<Tid>,
    /// The thread that ran.
    pub tid: Option<Tid>,
    /// The instant, ns of the event's clock.
    pub at_ns: Option<u64>,
    /// The CPU that it was written on.
    pub cpu: Option<u32>,
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingSample<'a> {
    /// The event that it belongs to, by its place in the layouts.
    pub event: u16,
    /// Its instant, thread and CPU.
    pub stamp: Stamp,
    /// The bytes of the tracepoint, `common_type` first; none of an event of another kind.
    pub raw: &'a [u8],
    /// The call chain as it was written, eight bytes a frame.
    chain: &'a [u8],
    /// The values of its counters; empty where they are not recorded.
    counters: CounterGroup<'a>,
}

/// The counters that a sample brings, `struct read_format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CounterGroup<'a> {
    bytes: &'a [u8],
    format: u64,
}

impl RingSample<'_> {
    /// The values of the counters in its group that `counter` knows by their identifiers; `None`
    /// where they have none.
    pub(crate) fn counts(
        &self,
        counter: impl Fn(u64) -> Option<HardwareCounter>,
    ) -> Option<ProcessorCounts> {
        let CounterGroup { bytes, format } = self.counters;
        let has = |bit: u64| format & bit != 0;
        if bytes.is_empty() || !has(read_format::ID) || !has(read_format::GROUP) {
            return None;
        }
        let mut words = Words::new(bytes);
        let count = words.word()?;
        let mut counts = ProcessorCounts::default();
        if has(read_format::TOTAL_TIME_ENABLED) {
            counts.enabled_ns = Some(words.word()?);
        }
        if has(read_format::TOTAL_TIME_RUNNING) {
            counts.running_ns = Some(words.word()?);
        }
        for _ in 0..count {
            let value = words.word()?;
            let known = counter(words.word()?);
            if has(read_format::LOST) {
                words.word()?;
            }
            match known {
                Some(HardwareCounter::Cycles) => counts.cycles = Some(value),
                Some(HardwareCounter::Instructions) => counts.instructions = Some(value),
                Some(HardwareCounter::CacheMisses) => counts.cache_misses = Some(value),
                Some(HardwareCounter::StalledCycles) => counts.stalled_cycles = Some(value),
                None => {}
            }
        }
        counts.is_some().then_some(counts)
    }

    /// The kernel's part of the call chain, innermost first.
    #[must_use]
    pub fn kernel_chain(&self) -> Box<[CodeAddress]> {
        if self.chain.is_empty() {
            return Box::default();
        }
        let mut is_kernel = false;
        let frames = self.chain.as_chunks().0.iter().map(|frame| u64::from_le_bytes(*frame));
        frames
            .filter(|&frame| {
                if frame >= CONTEXT_MAX {
                    is_kernel = frame == CONTEXT_KERNEL;
                    return false;
                }
                is_kernel
            })
            .collect()
    }
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerfRecord<'a> {
    /// A sample.
    Sample(RingSample<'a>),
    /// So many records or samples were dropped before this instant.
    Lost {
        /// Records or samples that were dropped.
        count: u64,
        /// The instant and the CPU at which that was noticed.
        stamp: Stamp,
    },
    /// A thread has this name from now on.
    Named {
        /// The thread.
        tid: Tid,
        /// Its process.
        pid: Tid,
        /// Its name.
        name: ShortName,
        /// The instant and CPU; the instant is 0 where perf made it up from /proc.
        stamp: Stamp,
    },
    /// A thread began.
    Began {
        /// The thread.
        tid: Tid,
        /// Its process.
        pid: Tid,
    },
    /// A thread ended.
    Ended {
        /// The thread.
        tid: Tid,
        /// The instant and CPU of its end.
        stamp: Stamp,
    },
    /// The kernel silences an event that comes too often.
    Throttled {
        /// The instant and CPU.
        stamp: Stamp,
    },
    /// The kernel no longer silences it.
    Unthrottled {
        /// The instant and CPU.
        stamp: Stamp,
    },
    /// A sample of an event that is unknown.
    Foreign,
    /// A record that is shorter than its layout says.
    Damaged {
        /// Its type.
        kind: u32,
    },
    /// A record of no interest.
    Skipped {
        /// Its type.
        kind: u32,
    },
}

impl PerfRecord<'_> {
    /// A thread and its process, of a record that has both.
    #[must_use]
    pub fn process(&self) -> Option<(Tid, Tid)> {
        match *self {
            Self::Sample(ref sample) => sample.stamp.tid.zip(sample.stamp.pid),
            Self::Named { tid, pid, .. } | Self::Began { tid, pid } => Some((tid, pid)),
            _ => None,
        }
    }
}

/// A size that no record has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a record of type {kind} says that it has {size} bytes; 8 are its header alone")]
pub struct RecordError {
    kind: u32,
    size: u16,
}

/// The reason for which the records of a ring or file cannot be distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LayoutsError {
    /// There is no event.
    #[error("no event was recorded")]
    Empty,
    /// There are too many.
    #[error("{events} events; at most 65535 are read")]
    TooMany {
        /// Their number.
        events: usize,
    },
    /// Several events, and their identifiers are missing or not at one place.
    #[error("several events without PERF_SAMPLE_IDENTIFIER: whose sample is whose is unknown")]
    Alike,
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    use super::{
        Layouts, LayoutsError, PerfRecord, RecordError, RecordedEvent, SampleLayout, Stamp,
        record_type, sample_type,
    };
    use crate::event::ShortName;

    const USUAL: u64 = sample_type::IDENTIFIER
        | sample_type::TID
        | sample_type::TIME
        | sample_type::CPU
        | sample_type::RAW;

    fn event(sample_type: u64, ids: &[u64]) -> RecordedEvent {
        let layout = SampleLayout { sample_type, read_format: 0, is_stamped: true };
        RecordedEvent { layout, ids: ids.to_vec() }
    }

    fn record(kind: u32, body: &[&[u8]]) -> Vec<u8> {
        let body = body.concat();
        let size = u16::try_from(8 + body.len()).unwrap();
        [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes(), &body].concat()
    }

    fn word(number: u64) -> [u8; 8] {
        number.to_le_bytes()
    }

    fn pair(low: u32, high: u32) -> [u8; 8] {
        word(u64::from(high) << 32 | u64::from(low))
    }

    const STAMP: Stamp = Stamp { pid: Some(7), tid: Some(8), at_ns: Some(1000), cpu: Some(3) };

    /// The stamp of what is no sample.
    fn end(id: u64) -> Vec<u8> {
        [pair(7, 8), word(1000), pair(3, 0), word(id)].concat()
    }

    fn read<'a>(layouts: &Layouts, bytes: &'a [u8]) -> PerfRecord<'a> {
        let first = layouts.first(bytes).unwrap().unwrap();
        assert_eq!(first.bytes, bytes.len());
        first.record
    }

    #[test]
    fn samples_are_told_apart_by_identifier() {
        let layouts = Layouts::new(&[
            event(USUAL, &[11, 12]),
            event(USUAL | sample_type::CALLCHAIN | sample_type::PERIOD, &[21]),
        ])
        .unwrap();
        let plain = record(
            record_type::SAMPLE,
            &[&word(12), &pair(7, 8), &word(1000), &pair(3, 0), &4u32.to_le_bytes(), b"abcd"],
        );
        let PerfRecord::Sample(sample) = read(&layouts, &plain) else { panic!() };
        assert_eq!((sample.event, sample.stamp, sample.raw), (0, STAMP, &b"abcd"[..]));
        assert!(sample.kernel_chain().is_empty());
        let kernel = (-128i64).cast_unsigned();
        let user = (-512i64).cast_unsigned();
        let chained = record(
            record_type::SAMPLE,
            &[
                &word(21),
                &pair(7, 8),
                &word(1000),
                &pair(3, 0),
                &word(1),
                &[word(5), word(kernel), word(100), word(200), word(user), word(300)].concat(),
                &3u32.to_le_bytes(),
                b"xyz\0\0\0\0\0",
            ],
        );
        let PerfRecord::Sample(sample) = read(&layouts, &chained) else { panic!() };
        assert_eq!((sample.event, sample.stamp, sample.raw), (1, STAMP, &b"xyz"[..]));
        assert_eq!(*sample.kernel_chain(), [100, 200]);
        let foreign = record(record_type::SAMPLE, &[&word(99)]);
        assert_eq!(read(&layouts, &foreign), PerfRecord::Foreign);
    }

    #[test]
    fn one_event_needs_no_identifier() {
        let layouts = Layouts::new(&[event(sample_type::TIME | sample_type::RAW, &[])]).unwrap();
        let bytes = record(record_type::SAMPLE, &[&word(5), &1u32.to_le_bytes(), b"a"]);
        let PerfRecord::Sample(sample) = read(&layouts, &bytes) else { panic!() };
        assert_eq!((sample.stamp.at_ns, sample.raw), (Some(5), &b"a"[..]));
    }

    #[test]
    fn identifiers_in_the_middle_do() {
        let kind = sample_type::IP | sample_type::TIME | sample_type::ID | sample_type::CPU;
        let layouts = Layouts::new(&[event(kind, &[1]), event(kind, &[2])]).unwrap();
        let bytes = record(record_type::SAMPLE, &[&word(9), &word(5), &word(2), &pair(3, 0)]);
        let PerfRecord::Sample(sample) = read(&layouts, &bytes) else { panic!() };
        assert_eq!((sample.event, sample.stamp.cpu), (1, Some(3)));
        let lost =
            record(record_type::LOST, &[&word(2), &word(4), &word(5), &word(2), &pair(3, 0)]);
        let PerfRecord::Lost { count: 4, stamp } = read(&layouts, &lost) else { panic!() };
        assert_eq!(stamp, Stamp { pid: None, tid: None, at_ns: Some(5), cpu: Some(3) });
    }

    #[test]
    fn counters_are_skipped() {
        for (read_format, words) in [(0, 1), (7, 4), (0x1f, 1 + 2 + 2 * 3), (8, 1 + 2)] {
            let layout = SampleLayout {
                sample_type: sample_type::READ | sample_type::RAW,
                read_format,
                is_stamped: true,
            };
            let layouts = Layouts::new(&[RecordedEvent { layout, ids: vec![] }]).unwrap();
            let body = [&word(2).repeat(words)[..], &1u32.to_le_bytes(), b"a"].concat();
            let bytes = record(record_type::SAMPLE, &[&body]);
            let PerfRecord::Sample(sample) = read(&layouts, &bytes) else { panic!() };
            assert_eq!(sample.raw, b"a", "{read_format:#x}");
        }
    }

    #[test]
    fn what_is_no_sample_has_its_stamp() {
        let layouts = Layouts::new(&[event(USUAL, &[11]), event(USUAL, &[12])]).unwrap();
        let lost = record(record_type::LOST, &[&word(11), &word(40), &end(12)]);
        assert_eq!(read(&layouts, &lost), PerfRecord::Lost { count: 40, stamp: STAMP });
        let lost = record(record_type::LOST_SAMPLES, &[&word(41), &end(12)]);
        assert_eq!(read(&layouts, &lost), PerfRecord::Lost { count: 41, stamp: STAMP });
        let comm = record(record_type::COMM, &[&pair(70, 71), b"servo\0\0\0", &end(0)]);
        let name = ShortName::new(b"servo");
        assert_eq!(
            read(&layouts, &comm),
            PerfRecord::Named { tid: 71, pid: 70, name, stamp: STAMP }
        );
        let fork = record(record_type::FORK, &[&pair(1, 2), &pair(3, 4), &word(5), &end(11)]);
        assert_eq!(read(&layouts, &fork).process(), Some((3, 1)));
        assert_eq!(read(&layouts, &comm).process(), Some((71, 70)));
        let exit = record(record_type::EXIT, &[&pair(1, 2), &pair(3, 4), &word(5), &end(11)]);
        assert_eq!(read(&layouts, &exit), PerfRecord::Ended { tid: 3, stamp: STAMP });
        let throttle = [&word(1)[..], &word(11), &word(0), &end(11)].concat();
        let bytes = record(record_type::THROTTLE, &[&throttle]);
        assert_eq!(read(&layouts, &bytes), PerfRecord::Throttled { stamp: STAMP });
        let bytes = record(record_type::UNTHROTTLE, &[&throttle]);
        assert_eq!(read(&layouts, &bytes), PerfRecord::Unthrottled { stamp: STAMP });
        assert_eq!(read(&layouts, &record(10, &[])), PerfRecord::Skipped { kind: 10 });
    }

    #[test]
    fn damage_is_said_and_does_not_spread() {
        let layouts = Layouts::new(&[event(USUAL, &[11])]).unwrap();
        let bytes = record(record_type::SAMPLE, &[&word(11), &pair(7, 8), &word(1000)]);
        assert_eq!(read(&layouts, &bytes), PerfRecord::Damaged { kind: record_type::SAMPLE });
        let bytes = record(record_type::LOST, &[&end(11)]);
        assert_eq!(read(&layouts, &bytes), PerfRecord::Damaged { kind: record_type::LOST });
        let too_small = [9, 0, 0, 0, 0, 0, 7, 0];
        assert_eq!(layouts.first(&too_small), Err(RecordError { kind: 9, size: 7 }));
        assert_eq!(layouts.first(&bytes[..bytes.len() - 1]), Ok(None));
        assert_eq!(layouts.first(&bytes[..7]), Ok(None));
    }

    #[test]
    fn events_that_look_alike_are_refused() {
        assert_eq!(Layouts::new(&[]).unwrap_err(), LayoutsError::Empty);
        let anonymous = event(sample_type::TIME, &[]);
        let both = [anonymous.clone(), anonymous];
        assert_eq!(Layouts::new(&both).unwrap_err(), LayoutsError::Alike);
        let apart = [event(sample_type::ID, &[1]), event(sample_type::ID | sample_type::IP, &[2])];
        assert_eq!(Layouts::new(&apart).unwrap_err(), LayoutsError::Alike);
    }

    proptest! {
        #[test]
        fn any_bytes_end(
            kinds in vec(any::<u64>(), 1..3),
            read_format in 0u64..32,
            bytes in vec(any::<u8>(), 0..300),
        ) {
            let events: Vec<_> = kinds
                .iter()
                .map(|&kind| {
                    let sample_type = kind | sample_type::IDENTIFIER;
                    let layout = SampleLayout { sample_type, read_format, is_stamped: true };
                    RecordedEvent { layout, ids: vec![kind & 3] }
                })
                .collect();
            let layouts = Layouts::new(&events).unwrap();
            let mut rest = &bytes[..];
            while let Ok(Some(first)) = layouts.first(rest) {
                if let PerfRecord::Sample(sample) = first.record {
                    let _ = sample.kernel_chain();
                }
                rest = &rest[first.bytes..];
            }
        }
    }
}
