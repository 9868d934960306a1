//! Writes Perfetto's trace, which ui.perfetto.dev and its trace_processor open.
//!
//! Packets of ftrace events, which Perfetto shows as a machine's scheduling, and slices on tracks
//! of their own for what is said about them. Numbers of fields are those of Perfetto's
//! `protos/perfetto/trace`. Events that Perfetto has no message for are `generic` ones there. Times
//! are those of the events; a snapshot of clocks calls them CLOCK_MONOTONIC.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::decode::RECIPES;
use crate::encode::{NamedValue, named_values};
use crate::event::{TaskName, TraceEvent, TraceKind, Vector};

/// Most events in one packet.
const EVENTS_MAX: usize = 256;

/// Most tracks of slices.
const TRACKS_MAX: usize = 1000;

/// Fields of `TracePacket`.
mod packet {
    pub(super) const FTRACE_EVENTS: u32 = 1;
    pub(super) const PROCESS_TREE: u32 = 2;
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}

/// `BUILTIN_CLOCK_MONOTONIC` and `_BOOTTIME`.
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// The one sequence of packets that this program writes.
const SEQUENCE: u64 = 1;

/// A message of protobuf: fields one after the other.
#[derive(Debug, Default, Clone)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    fn number(&mut self, field: u32, number: u64) -> &mut Self {
        self.varint(u64::from(field) << 3);
        self.varint(number);
        self
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(&mut self, field: u32, message: &Self) -> &mut Self {
        self.bytes(field, &message.0)
    }
}

/// A slice of a track: something lasted from here to there. Those of one track nest; an outer one
/// is written before what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackSlice<'a> {
    /// The thread whose track it is, where that is one: then it lies with its scheduling.
    pub thread: Option<TaskName>,
    /// The track's name.
    pub track: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its begin, ns of the events' clock.
    pub from_ns: u64,
    /// Its end, ns of the events' clock.
    pub to_ns: u64,
}

/// Writes Perfetto's trace.
#[derive(Debug)]
pub struct PerfettoWriter<W> {
    out: W,
    /// Events of one CPU that wait for their packet.
    bundle: Message,
    bundle_cpu: u32,
    bundle_events: usize,
    tracks: BTreeMap<String, u64>,
    unshown: u64,
    has_clocks: bool,
}

impl<W: Write> PerfettoWriter<W> {
    /// Begins a trace.
    #[must_use]
    pub const fn new(out: W) -> Self {
        Self {
            out,
            bundle: Message(Vec::new()),
            bundle_cpu: 0,
            bundle_events: 0,
            tracks: BTreeMap::new(),
            unshown: 0,
            has_clocks: false,
        }
    }

    /// Writes the names of threads.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn name_threads(&mut self, threads: &[TaskName]) -> io::Result<()> {
        let mut tree = Message::default();
        for task in threads {
            let mut thread = Message::default();
            let tid = u64::from(task.tid);
            thread.number(1, tid).number(3, tid).bytes(2, task.name.to_string().as_bytes());
            tree.message(2, &thread);
        }
        let mut packet = Message::default();
        packet.message(packet::PROCESS_TREE, &tree);
        self.put(&packet)
    }

    /// Writes an event. They come in the order of time.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn write(&mut self, event: &TraceEvent) -> io::Result<()> {
        self.say_clocks(event.at_ns)?;
        if self.bundle_events > 0
            && (self.bundle_cpu != event.cpu || self.bundle_events == EVENTS_MAX)
        {
            self.flush()?;
        }
        self.bundle_cpu = event.cpu;
        if let TraceKind::Lost { .. } = event.kind {
            // lost_events: before those of this packet.
            self.flush()?;
            self.bundle.number(3, 1);
            self.bundle_events = 1;
            return Ok(());
        }
        let Some((field, body)) = ftrace(event) else { return Ok(()) };
        let mut message = Message::default();
        message.number(1, event.at_ns).number(2, u64::from(event.tid)).message(field, &body);
        self.bundle.message(2, &message);
        self.bundle_events += 1;
        Ok(())
    }

    /// Writes a slice; tracks beyond a thousand are counted instead.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn slice(&mut self, slice: &TrackSlice<'_>) -> io::Result<()> {
        self.say_clocks(slice.from_ns)?;
        let track = match self.tracks.get(slice.track) {
            Some(&track) => track,
            None if self.tracks.len() == TRACKS_MAX => {
                self.unshown += 1;
                return Ok(());
            }
            None => {
                let track = self.tracks.len() as u64 + 1;
                self.tracks.insert(slice.track.to_owned(), track);
                let mut descriptor = Message::default();
                descriptor.number(1, track).bytes(2, slice.track.as_bytes());
                if let Some(task) = slice.thread {
                    // Its process is not known: as in the tree of processes, itself.
                    let tid = u64::from(task.tid);
                    let mut thread = Message::default();
                    thread.number(1, tid).number(2, tid);
                    thread.bytes(5, task.name.to_string().as_bytes());
                    descriptor.message(4, &thread);
                }
                let mut packet = Message::default();
                packet.message(packet::TRACK_DESCRIPTOR, &descriptor);
                self.put(&packet)?;
                track
            }
        };
        let (begin, end) = (1, 2);
        for (kind, at_ns) in [(begin, slice.from_ns), (end, slice.to_ns.max(slice.from_ns))] {
            let mut event = Message::default();
            event.number(9, kind).number(11, track);
            if kind == begin {
                event.bytes(22, b"punctual").bytes(23, slice.name.as_bytes());
            }
            let mut packet = Message::default();
            packet
                .number(packet::TIMESTAMP, at_ns)
                .number(packet::TIMESTAMP_CLOCK_ID, MONOTONIC)
                .message(packet::TRACK_EVENT, &event);
            self.put(&packet)?;
        }
        Ok(())
    }

    /// Slices that were left out, for there are too many tracks.
    #[must_use]
    pub const fn unshown(&self) -> u64 {
        self.unshown
    }

    /// Perfetto takes times of ftrace for CLOCK_BOOTTIME: here both are one.
    fn say_clocks(&mut self, at_ns: u64) -> io::Result<()> {
        if self.has_clocks {
            return Ok(());
        }
        self.has_clocks = true;
        let mut snapshot = Message::default();
        for clock in [MONOTONIC, BOOTTIME] {
            let mut reading = Message::default();
            reading.number(1, clock).number(2, at_ns);
            snapshot.message(1, &reading);
        }
        snapshot.number(2, MONOTONIC);
        let mut packet = Message::default();
        packet.message(packet::CLOCK_SNAPSHOT, &snapshot);
        self.put(&packet)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.bundle_events == 0 {
            return Ok(());
        }
        let mut bundle = std::mem::take(&mut self.bundle);
        bundle.number(1, u64::from(self.bundle_cpu));
        self.bundle_events = 0;
        let mut packet = Message::default();
        packet.message(packet::FTRACE_EVENTS, &bundle);
        self.put(&packet)
    }

    fn put(&mut self, packet: &Message) -> io::Result<()> {
        let mut packet = packet.clone();
        packet.number(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
        let mut trace = Message::default();
        trace.message(1, &packet);
        self.out.write_all(&trace.0)
    }

    /// Ends the trace, and gives back what was written to.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The messages that Perfetto has: the event's name and the number of its field in `FtraceEvent`,
/// then the number of each field in the order of the table of those that are understood; 0 if
/// Perfetto has none.
const MESSAGES: &[(&str, u32, &[u32])] = &[
    ("sched_switch", 4, &[1, 2, 3, 4, 5, 6, 7]),
    ("cpu_frequency", 11, &[1, 2]),
    ("cpu_idle", 13, &[1]),
    ("sched_waking", 20, &[1, 2, 3, 5]),
    ("softirq_entry", 24, &[1]),
    ("softirq_exit", 25, &[1]),
    ("irq_handler_entry", 36, &[1, 2]),
    ("irq_handler_exit", 37, &[1]),
    ("workqueue_execute_start", 58, &[2]),
    ("task_rename", 236, &[1, 3]),
    ("signal_generate", 325, &[6, 2, 4]),
    ("sys_enter", 329, &[1]),
    ("sys_exit", 330, &[1]),
    ("sched_pi_setprio", 353, &[1, 4, 3, 2]),
    ("sched_migrate_task", 491, &[1, 2, 3, 4, 5]),
    ("hrtimer_start", 551, &[1, 2, 3, 4]),
    ("hrtimer_cancel", 552, &[1]),
    ("hrtimer_expire_entry", 553, &[1, 3, 2]),
    ("hrtimer_expire_exit", 554, &[1]),
    ("local_timer_entry", 559, &[]),
    ("local_timer_exit", 560, &[]),
];

/// `generic`, for every other event.
const GENERIC: u32 = 327;

/// The event's field in `FtraceEvent`, and its message; nothing for what is no event of ftrace.
fn ftrace(event: &TraceEvent) -> Option<(u32, Message)> {
    let (place, values) = named_values(event)?;
    let name = match event.kind {
        // Perfetto pairs the entry of a vector with its exit by name.
        TraceKind::VectorEntry(Vector::Platform) => "platform_entry",
        TraceKind::VectorExit(Vector::Platform) => "platform_exit",
        _ => RECIPES.get(place)?.name,
    };
    let mut message = Message::default();
    if let Some(&(_, field, numbers)) = MESSAGES.iter().find(|(known, ..)| *known == name) {
        for (&number, (_, value)) in numbers.iter().zip(values) {
            match value {
                NamedValue::Number(value) => message.number(number, value),
                NamedValue::Text(text) => message.bytes(number, text.as_bytes()),
            };
        }
        return Some((field, message));
    }
    message.bytes(1, name.as_bytes());
    for (key, value) in values {
        let mut field = Message::default();
        field.bytes(1, key.as_bytes());
        match value {
            NamedValue::Number(number) => field.number(5, number),
            NamedValue::Text(text) => field.bytes(3, text.as_bytes()),
        };
        message.message(2, &field);
    }
    Some((GENERIC, message))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, proptest};

    use super::{Message, PerfettoWriter, TrackSlice};
    use crate::encode::tests::tracepoint;
    use crate::event::{ContextFlags, ShortName, TaskName, TraceEvent, TraceKind, Vector};

    /// A field of a message: its number, and a number or bytes.
    #[derive(Debug, PartialEq, Eq)]
    enum Read<'a> {
        Number(u32, u64),
        Bytes(u32, &'a [u8]),
    }

    /// Takes a message apart, as the wire format of protobuf is documented.
    fn fields(mut bytes: &[u8]) -> Option<Vec<Read<'_>>> {
        fn varint(bytes: &mut &[u8]) -> Option<u64> {
            let mut number = 0u64;
            for shift in (0..64).step_by(7) {
                let (&byte, rest) = bytes.split_first()?;
                *bytes = rest;
                number |= u64::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    return Some(number);
                }
            }
            None
        }
        let mut read = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes)?;
            let field = u32::try_from(tag >> 3).ok()?;
            match tag & 7 {
                0 => read.push(Read::Number(field, varint(&mut bytes)?)),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).ok()?;
                    let (body, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    read.push(Read::Bytes(field, body));
                }
                _ => return None,
            }
        }
        Some(read)
    }

    fn event(cpu: u32, kind: TraceKind) -> TraceEvent {
        let context = ContextFlags::default();
        TraceEvent { at_ns: 1000, cpu, tid: 7, context, kind, chain: Box::default() }
    }

    /// The first field of this number.
    fn part(bytes: &[u8], wanted: u32) -> Option<&[u8]> {
        fields(bytes)?.into_iter().find_map(|read| match read {
            Read::Bytes(field, body) if field == wanted => Some(body),
            _ => None,
        })
    }

    #[test]
    fn numbers_are_those_of_protobuf() {
        let mut message = Message::default();
        message.number(1, 300).bytes(22, b"ab");
        assert_eq!(message.0, [0x08, 0xac, 0x02, 0xb2, 0x01, 2, b'a', b'b']);
        let mut message = Message::default();
        message.number(4, (-1i64).cast_unsigned());
        assert_eq!(fields(&message.0), Some(vec![Read::Number(4, u64::MAX)]));
    }

    #[test]
    fn events_lie_in_bundles_of_a_cpu() {
        let mut writer = PerfettoWriter::new(Vec::new());
        let name = ShortName::new(b"servo");
        let task = TaskName { tid: 9, name, kernel_priority: 9 };
        writer.name_threads(&[task]).unwrap();
        writer.write(&event(0, TraceKind::Waking { task, target_cpu: 3 })).unwrap();
        writer.write(&event(0, TraceKind::VectorEntry(Vector::Reschedule))).unwrap();
        writer.write(&event(1, TraceKind::Lost { count: 4 })).unwrap();
        writer.write(&event(1, TraceKind::SoftirqEntry(3))).unwrap();
        let (track, name) = ("late", "why");
        let slice = TrackSlice { thread: Some(task), track, name, from_ns: 5, to_ns: 9 };
        writer.slice(&slice).unwrap();
        let bytes = writer.finish().unwrap();
        let bundles: Vec<_> = fields(&bytes)
            .unwrap()
            .into_iter()
            .filter_map(|read| match read {
                Read::Bytes(1, packet) => part(packet, 1),
                _ => None,
            })
            .collect();
        assert_eq!(bundles.len(), 2);
        let first = fields(bundles[0]).unwrap();
        assert_eq!(first.last(), Some(&Read::Number(1, 0)));
        assert_eq!(first.len(), 3);
        let waking = part(part(bundles[0], 2).unwrap(), 20).unwrap();
        assert_eq!(
            fields(waking).unwrap(),
            [Read::Bytes(1, b"servo"), Read::Number(2, 9), Read::Number(3, 9), Read::Number(5, 3)]
        );
        assert_eq!(fields(bundles[1]).unwrap()[0], Read::Number(3, 1));
    }

    proptest! {
        #[test]
        fn any_events_are_whole_messages(events in vec(tracepoint(), 0..40)) {
            let mut writer = PerfettoWriter::new(Vec::new());
            for event in &events {
                writer.write(event).unwrap();
            }
            let bytes = writer.finish().unwrap();
            let mut seen = 0;
            for read in fields(&bytes).unwrap() {
                let Read::Bytes(1, packet) = read else { panic!("{read:?}") };
                let Some(bundle) = part(packet, 1) else { continue };
                for read in fields(bundle).unwrap() {
                    if let Read::Bytes(2, event) = read {
                        seen += 1;
                        prop_assert!(fields(event).is_some());
                    }
                }
            }
            assert_eq!(seen, events.len());
        }
    }
}
