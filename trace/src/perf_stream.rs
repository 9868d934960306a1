//! From records of perf to events: by the event of perf that a sample belongs to.
//!
//! Pure. For a ring that is read live as for the records of a file.

use crate::decode::{DecodeError, Decoder, RecordPlace};
use crate::event::{ContextFlags, TaskName, TraceEvent, TraceKind};
use crate::perf_record::{
    HardwareCounter, Layouts, LayoutsError, PerfRecord, RecordedEvent, RingSample, Stamp,
};

/// The source of an event of perf: what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PerfSource {
    /// A tracepoint: a sample has its bytes, which begin with its number.
    Tracepoint,
    /// The software counter of page faults: each sample is the end of one.
    PageFaults,
    /// A counter of the processor: samples of its group bring its value.
    Hardware(HardwareCounter),
    /// A tracepoint whose samples are there for the counts that they bring alone.
    Reading,
    /// Anything else: its samples are of no interest.
    Ignored,
}

/// `PERF_TYPE_HARDWARE`.
const TYPE_HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
const TYPE_SOFTWARE: u32 = 1;
/// `PERF_TYPE_TRACEPOINT`.
const TYPE_TRACEPOINT: u32 = 2;
/// `PERF_COUNT_SW_PAGE_FAULTS`, `_MIN` and `_MAJ`.
const PAGE_FAULTS: [u64; 3] = [2, 5, 6];

impl PerfSource {
    /// From `type` and `config` of a `perf_event_attr`.
    #[must_use]
    pub fn new(kind: u32, config: u64) -> Self {
        match kind {
            TYPE_TRACEPOINT => Self::Tracepoint,
            TYPE_HARDWARE => match config {
                0 => Self::Hardware(HardwareCounter::Cycles),
                1 => Self::Hardware(HardwareCounter::Instructions),
                3 => Self::Hardware(HardwareCounter::CacheMisses),
                8 => Self::Hardware(HardwareCounter::StalledCycles),
                _ => Self::Ignored,
            },
            TYPE_SOFTWARE if PAGE_FAULTS.contains(&config) => Self::PageFaults,
            _ => Self::Ignored,
        }
    }
}

/// Makes events of the records of one ring, or of one file.
#[derive(Debug, Clone)]
pub struct PerfStream {
    layouts: Layouts,
    sources: Vec<PerfSource>,
    decoder: Decoder,
}

/// The item that a record becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamItem {
    /// An event.
    Event(TraceEvent),
    /// An event without a time: the name that a thread had when the capture began.
    Named(TaskName),
    /// Nothing of interest.
    Nothing,
    /// A record that its format does not fit.
    Undecodable(DecodeError),
    /// A record that is shorter than its layout says, of this type.
    Damaged(u32),
}

impl PerfStream {
    /// A stream of these events of perf, each with its source; `decoder` is that of the kernel's
    /// tracepoints.
    ///
    /// # Errors
    /// Events whose records cannot be distinguished.
    pub fn new(
        events: &[(RecordedEvent, PerfSource)],
        decoder: Decoder,
    ) -> Result<Self, LayoutsError> {
        let recorded: Vec<_> = events.iter().map(|(event, _)| event.clone()).collect();
        let layouts = Layouts::new(&recorded)?;
        let sources = events.iter().map(|&(_, source)| source).collect();
        Ok(Self { layouts, sources, decoder })
    }

    /// The layouts of its records, by which they are distinguished.
    #[must_use]
    pub const fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// The decoder of its tracepoints.
    #[must_use]
    pub const fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The item of a record. `ring` stands in for the CPU and the instant that a record lacks: the
    /// CPU of the ring, and the time of the record before.
    #[must_use]
    pub fn item(&self, record: &PerfRecord<'_>, ring: RecordPlace) -> StreamItem {
        match *record {
            PerfRecord::Sample(ref sample) => self.sampled(sample, ring),
            PerfRecord::Lost { count, stamp } => {
                StreamItem::Event(event(TraceKind::Lost { count }, stamp, ring))
            }
            // Between both, nobody counts what is dropped.
            PerfRecord::Unthrottled { stamp } => {
                StreamItem::Event(event(TraceKind::Lost { count: 0 }, stamp, ring))
            }
            PerfRecord::Named { tid, name, stamp, .. } => {
                let task = TaskName { tid, name, kernel_priority: TaskName::UNKNOWN_PRIORITY };
                if stamp.at_ns.is_none_or(|at_ns| at_ns == 0) {
                    return StreamItem::Named(task);
                }
                StreamItem::Event(event(TraceKind::Renamed { task }, stamp, ring))
            }
            PerfRecord::Damaged { kind } => StreamItem::Damaged(kind),
            PerfRecord::Began { .. }
            | PerfRecord::Ended { .. }
            | PerfRecord::Throttled { .. }
            | PerfRecord::Foreign
            | PerfRecord::Skipped { .. } => StreamItem::Nothing,
        }
    }

    /// The reading of the processor's counters in a record, where it is a sample that brings them:
    /// an event before that of the record itself.
    #[must_use]
    pub fn counters(&self, record: &PerfRecord<'_>, ring: RecordPlace) -> Option<TraceEvent> {
        let PerfRecord::Sample(sample) = record else { return None };
        let counts = sample.counts(|id| match self.sources.get(self.layouts.place_of(id)?) {
            Some(PerfSource::Hardware(counter)) => Some(*counter),
            _ => None,
        })?;
        Some(event(TraceKind::Counters(counts), sample.stamp, ring))
    }

    fn sampled(&self, sample: &RingSample<'_>, ring: RecordPlace) -> StreamItem {
        match self.sources.get(usize::from(sample.event)) {
            Some(PerfSource::Tracepoint) => {}
            Some(PerfSource::PageFaults) => {
                return StreamItem::Event(event(TraceKind::PageFaultExit, sample.stamp, ring));
            }
            Some(PerfSource::Reading | PerfSource::Hardware(_) | PerfSource::Ignored) | None => {
                return StreamItem::Nothing;
            }
        }
        let place = placed(sample.stamp, ring);
        match self.decoder.decode(sample.raw, place, sample.kernel_chain()) {
            None => StreamItem::Nothing,
            Some(Ok(event)) => StreamItem::Event(event),
            Some(Err(why)) => StreamItem::Undecodable(why),
        }
    }
}

fn placed(stamp: Stamp, ring: RecordPlace) -> RecordPlace {
    RecordPlace { at_ns: stamp.at_ns.unwrap_or(ring.at_ns), cpu: stamp.cpu.unwrap_or(ring.cpu) }
}

fn event(kind: TraceKind, stamp: Stamp, ring: RecordPlace) -> TraceEvent {
    let RecordPlace { at_ns, cpu } = placed(stamp, ring);
    TraceEvent {
        at_ns,
        cpu,
        tid: stamp.tid.unwrap_or(0),
        context: ContextFlags::default(),
        kind,
        chain: Box::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::{PerfSource, PerfStream, StreamItem};
    use crate::decode::{Decoder, RecordPlace};
    use crate::event::{ProcessorCounts, ShortName, TaskName, TraceKind};
    use crate::format::EventFormat;
    use crate::perf_record::{PerfRecord, RecordedEvent, RingSample, SampleLayout, Stamp};

    const RING: RecordPlace = RecordPlace { at_ns: 9, cpu: 2 };
    const STAMP: Stamp = Stamp { pid: Some(6), tid: Some(7), at_ns: Some(100), cpu: Some(1) };

    fn stream() -> PerfStream {
        let text = "name: softirq_exit\nID: 3\nformat:\n\
            field:unsigned char common_flags; offset:2; size:1; signed:0;\n\
            field:int common_pid; offset:4; size:4; signed:1;\n\
            field:unsigned int vec; offset:8; size:4; signed:0;\n";
        let decoder = Decoder::new([&EventFormat::parse("irq", text).unwrap()]);
        let layout = SampleLayout {
            sample_type: crate::perf_record::sample_type::IDENTIFIER,
            ..SampleLayout::default()
        };
        let event = |id| RecordedEvent { layout, ids: vec![id] };
        let events = [
            (event(1), PerfSource::new(2, 3)),
            (event(2), PerfSource::new(1, 6)),
            (event(3), PerfSource::new(1, 9)),
        ];
        PerfStream::new(&events, decoder).unwrap()
    }

    #[test]
    fn a_sample_says_what_its_event_counts() {
        let raw = [3, 0, 4, 0, 55, 0, 0, 0, 9, 0, 0, 0];
        let sample = |event, raw| {
            let mut sample = RingSample::default();
            (sample.event, sample.stamp, sample.raw) = (event, STAMP, raw);
            PerfRecord::Sample(sample)
        };
        let StreamItem::Event(event) = stream().item(&sample(0, &raw), RING) else { panic!() };
        assert_eq!((event.at_ns, event.cpu, event.tid), (100, 1, 55));
        assert_eq!((event.kind, event.context.flags), (TraceKind::SoftirqExit(9), 4));
        let StreamItem::Event(event) = stream().item(&sample(1, &[]), RING) else { panic!() };
        assert_eq!((event.tid, event.kind), (7, TraceKind::PageFaultExit));
        assert_eq!(stream().item(&sample(2, &raw), RING), StreamItem::Nothing);
        let cut = stream().item(&sample(0, &raw[..11]), RING);
        assert!(matches!(cut, StreamItem::Undecodable(_)));
        assert_eq!(stream().item(&sample(0, &[4, 0, 1]), RING), StreamItem::Nothing);
    }

    #[test]
    fn a_reading_says_what_its_group_counted_and_nothing_else() {
        use crate::perf_record::sample_type::{IDENTIFIER, RAW, READ, TIME};
        let sample_type = IDENTIFIER | TIME | READ | RAW;
        let layout = SampleLayout { sample_type, read_format: 0b1111, is_stamped: true };
        let event = |id| RecordedEvent { layout, ids: vec![id] };
        // Identifier, time, two counters that were there for 30 ns and counted for 20.
        let words = [1_u64, 100, 2, 30, 20, 5, 1, 77, 2].map(u64::to_le_bytes).concat();
        let raw = [&12_u32.to_le_bytes()[..], &[3, 0, 4, 0, 55, 0, 0, 0, 9, 0, 0, 0]].concat();
        let head = [&9_u32.to_le_bytes()[..], &[0, 0, 96, 0]].concat();
        let bytes = [head, words, raw].concat();
        for leader in [PerfSource::Reading, PerfSource::Tracepoint] {
            let events = [(event(1), leader), (event(2), PerfSource::new(0, 0))];
            let stream = PerfStream::new(&events, stream().decoder().clone()).unwrap();
            let record = stream.layouts().first(&bytes).unwrap().unwrap().record;
            let counters = stream.counters(&record, RING).unwrap();
            let (cycles, enabled_ns, running_ns) = (Some(77), Some(30), Some(20));
            let counts =
                ProcessorCounts { cycles, enabled_ns, running_ns, ..ProcessorCounts::default() };
            assert_eq!((counters.at_ns, counters.cpu), (100, 2));
            assert_eq!(counters.kind, TraceKind::Counters(counts));
            let item = stream.item(&record, RING);
            let is_event = matches!(item, StreamItem::Event(_));
            assert_eq!(is_event, leader == PerfSource::Tracepoint, "{item:?}");
        }
    }

    #[test]
    fn what_is_lost_breaks_the_ring_that_it_was_lost_in() {
        let lost = PerfRecord::Lost { count: 4, stamp: Stamp::default() };
        let StreamItem::Event(event) = stream().item(&lost, RING) else { panic!() };
        assert_eq!((event.at_ns, event.cpu, event.kind), (9, 2, TraceKind::Lost { count: 4 }));
        let heard = PerfRecord::Unthrottled { stamp: STAMP };
        let StreamItem::Event(event) = stream().item(&heard, RING) else { panic!() };
        assert_eq!((event.cpu, event.kind), (1, TraceKind::Lost { count: 0 }));
        assert_eq!(stream().item(&PerfRecord::Damaged { kind: 2 }, RING), StreamItem::Damaged(2));
    }

    #[test]
    fn names_of_before_have_no_time() {
        let name = ShortName::new(b"servo");
        let task = TaskName { tid: 5, name, kernel_priority: TaskName::UNKNOWN_PRIORITY };
        let before = PerfRecord::Named { tid: 5, pid: 5, name, stamp: Stamp::default() };
        assert_eq!(stream().item(&before, RING), StreamItem::Named(task));
        let later = PerfRecord::Named { tid: 5, pid: 5, name, stamp: STAMP };
        let StreamItem::Event(event) = stream().item(&later, RING) else { panic!() };
        assert_eq!((event.at_ns, event.kind), (100, TraceKind::Renamed { task }));
    }
}
