//! From an event to the bytes of a record: the inverse of `decode`.
//!
//! Pure. For captures that this program writes, and for tests, which thereby speak the format of
//! any kernel. What an event does not keep of a record is 0 in it.

use crate::decode::{PARTS_MAX, RECIPES, Shape};
use crate::event::{ShortName, TaskName, TraceEvent, TraceKind, Vector};
use crate::format::{EventFormat, Field, FieldPlacement};

/// The value of one field.
#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    Number(u64),
    Name(ShortName),
    Cpus(&'a [u64]),
}

/// The fields of an event, in the order of its row in the table of those that are understood.
type Parts<'a> = [Option<Part<'a>>; PARTS_MAX];

/// The record that an event becomes, and its fields; `None` of one that is no tracepoint.
fn taken_apart(kind: &TraceKind) -> Option<(Shape, Parts<'_>)> {
    let number = |number: u64| Some(Part::Number(number));
    let signed = |number: i64| Some(Part::Number(number.cast_unsigned()));
    let small = |number: u32| Some(Part::Number(u64::from(number)));
    let level = |level: i32| Some(Part::Number(i64::from(level).cast_unsigned()));
    let name = |task: &TaskName| Some(Part::Name(task.name));
    let nothing = row(&[]);
    Some(match kind {
        TraceKind::TimerStart { timer, function, expires_ns, soft_expires_ns } => (
            Shape::TimerStart,
            row(&[
                number(*timer),
                number(*function),
                signed(*expires_ns),
                signed(*soft_expires_ns),
            ]),
        ),
        TraceKind::TimerStartExpired { timer } => {
            (Shape::TimerStartExpired, row(&[number(*timer)]))
        }
        TraceKind::TimerRearm { next_event_ns, is_deferred } => {
            (Shape::TimerRearm, row(&[signed(*next_event_ns), small(u32::from(*is_deferred))]))
        }
        TraceKind::TimerCancel { timer } => (Shape::TimerCancel, row(&[number(*timer)])),
        TraceKind::TimerExpireEntry { timer, function, now_ns } => {
            (Shape::TimerExpireEntry, row(&[number(*timer), number(*function), signed(*now_ns)]))
        }
        TraceKind::TimerExpireExit { timer } => (Shape::TimerExpireExit, row(&[number(*timer)])),
        TraceKind::Waking { task, target_cpu } => (
            Shape::Waking,
            row(&[name(task), small(task.tid), level(task.kernel_priority), small(*target_cpu)]),
        ),
        TraceKind::Switch { previous, previous_state, next } => (
            Shape::Switch,
            row(&[
                name(previous),
                small(previous.tid),
                level(previous.kernel_priority),
                number(*previous_state),
                name(next),
                small(next.tid),
                level(next.kernel_priority),
            ]),
        ),
        TraceKind::Migrate { task, from_cpu, to_cpu } => (
            Shape::Migrate,
            row(&[
                name(task),
                small(task.tid),
                level(task.kernel_priority),
                small(*from_cpu),
                small(*to_cpu),
            ]),
        ),
        // The other reasons have an event of their own, as on x86.
        TraceKind::VectorEntry(Vector::OtherCpu) => (Shape::IpiEntry, nothing),
        TraceKind::VectorExit(Vector::OtherCpu) => (Shape::IpiExit, nothing),
        TraceKind::VectorEntry(vector) => (Shape::VectorEntry(*vector), nothing),
        TraceKind::VectorExit(vector) => (Shape::VectorExit(*vector), nothing),
        TraceKind::IrqEntry { irq, name } => {
            (Shape::IrqEntry, row(&[small(*irq), Some(Part::Name(*name))]))
        }
        TraceKind::IrqExit { irq, is_handled } => {
            let handled = is_handled.and_then(|is_handled| small(u32::from(is_handled)));
            (Shape::IrqExit, row(&[small(*irq), handled]))
        }
        TraceKind::SoftirqEntry(vector) => (Shape::SoftirqEntry, row(&[small(u32::from(*vector))])),
        TraceKind::SoftirqExit(vector) => (Shape::SoftirqExit, row(&[small(u32::from(*vector))])),
        TraceKind::IpiSend { targets, callback } => {
            if let Some(cpu) = only_cpu(targets) {
                (Shape::IpiSendCpu, row(&[small(cpu), number(*callback)]))
            } else {
                (Shape::IpiSendMask, row(&[Some(Part::Cpus(targets)), number(*callback)]))
            }
        }
        TraceKind::CallQueued { target_cpu, request, function } => {
            (Shape::CallQueued, row(&[small(*target_cpu), number(*request), number(*function)]))
        }
        TraceKind::CallEntry { request, function } => {
            (Shape::CallEntry, row(&[number(*request), number(*function)]))
        }
        TraceKind::CallExit { request } => (Shape::CallExit, row(&[number(*request)])),
        TraceKind::Nmi { took_ns } => (Shape::Nmi, row(&[number(*took_ns)])),
        TraceKind::Signal { number: signal, task } => {
            (Shape::Signal, row(&[small(u32::from(*signal)), name(task), small(task.tid)]))
        }
        TraceKind::PageFaultEntry => (Shape::PageFault, nothing),
        TraceKind::SyscallEntry { number } => (Shape::SyscallEntry, row(&[small(*number)])),
        TraceKind::SyscallExit { number } => (Shape::SyscallExit, row(&[small(*number)])),
        TraceKind::RunTime { tid, took_ns } => {
            (Shape::RunTime, row(&[small(*tid), number(*took_ns)]))
        }
        TraceKind::PriorityLent { task, to_kernel_priority } => (
            Shape::PriorityLent,
            row(&[
                name(task),
                small(task.tid),
                level(task.kernel_priority),
                level(*to_kernel_priority),
            ]),
        ),
        TraceKind::Renamed { task } => (Shape::Renamed, row(&[small(task.tid), name(task)])),
        TraceKind::WorkStart { function } => (Shape::WorkStart, row(&[number(*function)])),
        TraceKind::CpuIdle { state } => (Shape::CpuIdle, row(&[small(*state)])),
        TraceKind::Frequency { khz, cpu } => (Shape::Frequency, row(&[small(*khz), small(*cpu)])),
        TraceKind::PageFaultExit | TraceKind::Counters(_) | TraceKind::Lost { .. } => {
            return None;
        }
    })
}

/// Fields, and none behind them.
fn row<'a>(values: &[Option<Part<'a>>]) -> Parts<'a> {
    let mut parts = [None; PARTS_MAX];
    for (part, value) in parts.iter_mut().zip(values) {
        *part = *value;
    }
    parts
}

/// The record that an event becomes; `None` of one that is no tracepoint.
pub(crate) fn shape_of(kind: &TraceKind) -> Option<Shape> {
    taken_apart(kind).map(|(shape, _)| shape)
}

/// The value of a field, as text or number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedValue {
    Number(u64),
    Text(String),
}

/// Returns true for a field that has the address of a function.
pub(crate) fn is_function(field: &str) -> bool {
    matches!(field, "function" | "func" | "callback")
}

/// The place of an event in the table of those that are understood, and its fields by name.
pub(crate) fn named_values(event: &TraceEvent) -> Option<(usize, Vec<(&'static str, NamedValue)>)> {
    let (shape, parts) = taken_apart(&event.kind)?;
    let place = RECIPES.iter().position(|recipe| recipe.shape == shape)?;
    let names = RECIPES[place].fields.iter().map(|name| name.trim_start_matches('?'));
    let values = names.zip(parts).filter_map(|(name, part)| {
        let value = match part? {
            Part::Number(number) => NamedValue::Number(number),
            Part::Name(name) => NamedValue::Text(name.to_string()),
            Part::Cpus(cpus) => {
                let words = cpus.iter().rev().map(|word| format!("{word:016x}"));
                NamedValue::Text(words.collect::<Vec<_>>().join(","))
            }
        };
        Some((name, value))
    });
    Some((place, values.collect()))
}

/// The CPU of a set of one.
fn only_cpu(cpus: &[u64]) -> Option<u32> {
    let (last, before) = cpus.split_last()?;
    let is_only = last.count_ones() == 1 && before.iter().all(|&word| word == 0);
    let cpu = before.len() * 64 + last.trailing_zeros() as usize;
    u32::try_from(cpu).ok().filter(|_| is_only)
}

/// The places of one event's fields in a record.
#[derive(Debug, Clone)]
struct Row {
    shape: Shape,
    id: u16,
    /// Bytes of its fixed part.
    bytes: usize,
    kind: Option<Field>,
    flags: Option<Field>,
    preempt_count: Option<Field>,
    pid: Option<Field>,
    parts: Vec<Option<Field>>,
}

/// Writes records as one kernel would.
#[derive(Debug, Clone)]
pub struct Encoder {
    rows: Vec<Row>,
}

impl Encoder {
    /// For these formats. Events without one are not written.
    pub fn new<'a>(formats: impl IntoIterator<Item = &'a EventFormat>) -> Self {
        let formats: Vec<_> = formats.into_iter().collect();
        let mut rows = Vec::new();
        for recipe in RECIPES {
            let is_its = |format: &&&EventFormat| {
                format.name() == recipe.name && format.system() == recipe.system
            };
            let Some(format) = formats.iter().find(is_its) else { continue };
            let field = |name: &str| format.field(name.trim_start_matches('?')).cloned();
            let ends = format.fields().iter().map(|field| field.offset() + field.size());
            rows.push(Row {
                shape: recipe.shape,
                id: format.id(),
                bytes: ends.max().unwrap_or(0),
                kind: field("common_type"),
                flags: field("common_flags"),
                preempt_count: field("common_preempt_count"),
                pid: field("common_pid"),
                parts: recipe.fields.iter().map(|name| field(name)).collect(),
            });
        }
        Self { rows }
    }

    /// Puts the record of an event into `raw`, in place of what was there, and gives the number of
    /// its event; nothing for an event without a format, or that is no tracepoint.
    pub fn encode(&self, event: &TraceEvent, raw: &mut Vec<u8>) -> Option<u16> {
        raw.clear();
        let (shape, parts) = taken_apart(&event.kind)?;
        let row = self.rows.iter().find(|row| row.shape == shape)?;
        raw.resize(row.bytes, 0);
        let common = [
            (&row.kind, u64::from(row.id)),
            (&row.flags, u64::from(event.context.flags)),
            (&row.preempt_count, u64::from(event.context.preempt_depth)),
            (&row.pid, u64::from(event.tid)),
        ];
        for (field, number) in common {
            if let Some(field) = field {
                put_number(raw, field, number);
            }
        }
        for (field, part) in row.parts.iter().zip(parts) {
            let (Some(field), Some(part)) = (field, part) else { continue };
            match part {
                Part::Number(number) => put_number(raw, field, number),
                Part::Name(name) if field.placement() == FieldPlacement::Fixed => {
                    let start = field.offset();
                    let bytes = name.as_bytes();
                    let length = bytes.len().min(field.size());
                    raw[start..start + length].copy_from_slice(&bytes[..length]);
                }
                Part::Name(name) => put_behind(raw, field, &[name.as_bytes(), &[0]].concat()),
                Part::Cpus(cpus) => {
                    let bytes: Vec<_> = cpus.iter().flat_map(|word| word.to_le_bytes()).collect();
                    put_behind(raw, field, &bytes);
                }
            }
        }
        Some(row.id)
    }
}

/// The lower bytes of a number, as many as its field has.
fn put_number(raw: &mut [u8], field: &Field, number: u64) {
    let bytes = number.to_le_bytes();
    let length = field.size().min(bytes.len());
    raw[field.offset()..field.offset() + length].copy_from_slice(&bytes[..length]);
}

/// Puts bytes behind the record, and their place into the field.
fn put_behind(raw: &mut Vec<u8>, field: &Field, bytes: &[u8]) {
    let counted_from = match field.placement() {
        FieldPlacement::Relative => field.offset() + field.size(),
        FieldPlacement::Fixed | FieldPlacement::Dynamic => 0,
    };
    let start = raw.len() - counted_from;
    raw.extend_from_slice(bytes);
    put_number(raw, field, (bytes.len() as u64) << 16 | start as u64);
}

/// The first number of the formats that this program has for itself.
const OWN_ID: u16 = 1000;

/// Formats of every event that is understood, of no kernel: for captures that this program writes.
#[must_use]
pub fn own_formats() -> Vec<EventFormat> {
    let texts = RECIPES
        .iter()
        .zip(OWN_ID..)
        .map(|(recipe, id)| (recipe.system, own_format(recipe.name, id, recipe.fields)));
    texts.filter_map(|(system, text)| EventFormat::parse(system, &text).ok()).collect()
}

/// One of them: the common fields, then those that the event is made of, printed as kernels do.
fn own_format(name: &str, id: u16, fields: &[&str]) -> String {
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    let mut offset = 0;
    let mut add = |text: &mut String, declaration: &str, size: usize, is_signed: bool| {
        let signed = u8::from(is_signed);
        offset = usize::next_multiple_of(offset, size.min(8));
        text.push_str(&format!(
            "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
        ));
        offset += size;
    };
    add(&mut text, "unsigned short common_type", 2, false);
    add(&mut text, "unsigned char common_flags", 1, false);
    add(&mut text, "unsigned char common_preempt_count", 1, false);
    add(&mut text, "int common_pid", 4, true);
    text.push('\n');
    let (mut printed, mut values) = (String::new(), String::new());
    for field in fields.iter().map(|field| field.trim_start_matches('?')) {
        let (kind, size, is_signed, shown) = match field {
            "hrtimer" | "csd" | "reason" => ("void *", 8, false, "%p"),
            "function" | "func" | "callback" => ("void *", 8, false, "%ps"),
            "cpumask" | "target_cpus" => ("__data_loc cpumask_t", 4, false, "%s"),
            "expires" | "softexpires" | "now" | "next_event" | "delta_ns" => {
                ("s64", 8, true, "%lld")
            }
            "prev_state" | "id" => ("long", 8, true, "%ld"),
            "runtime" => ("u64", 8, false, "%llu"),
            "state" | "cpu_id" | "cpu" | "vec" => ("unsigned int", 4, false, "%u"),
            field if field.ends_with("comm") || field == "name" => ("char", 16, false, "%s"),
            _ => ("int", 4, true, "%d"),
        };
        let array = if kind == "char" { "[16]" } else { "" };
        add(&mut text, &format!("{kind} {field}{array}"), size, is_signed);
        let space = if printed.is_empty() { "" } else { " " };
        printed.push_str(&format!("{space}{field}={shown}"));
        values.push_str(&match kind {
            "__data_loc cpumask_t" => format!(", __get_bitmask({field})"),
            "s64" => format!(", (long long)REC->{field}"),
            "u64" => format!(", (unsigned long long)REC->{field}"),
            _ => format!(", REC->{field}"),
        });
    }
    text.push_str(&format!("\nprint fmt: \"{printed}\"{values}\n"));
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use proptest::collection::vec;
    use proptest::prelude::{
        Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };

    use super::{Encoder, own_formats};
    use crate::decode::{Decoder, RECIPES, RecordPlace};
    use crate::event::{ContextFlags, ShortName, TaskName, TraceEvent, TraceKind, Vector};
    use crate::format::EventFormat;
    use crate::wanted::WANTED;

    /// The formats of one kernel of `fixtures/trace`.
    fn formats_of(kernel: &str) -> Vec<EventFormat> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/trace").join(kernel);
        let mut formats = Vec::new();
        for system in fs::read_dir(root.join("events")).unwrap() {
            let system = system.unwrap();
            let name = system.file_name().into_string().unwrap();
            for event in fs::read_dir(system.path()).unwrap() {
                let text = fs::read_to_string(event.unwrap().path().join("format")).unwrap();
                formats.push(EventFormat::parse(&name, &text).unwrap());
            }
        }
        formats
    }

    const KERNELS: [&str; 5] = ["5.10", "6.1", "6.12", "6.18", "7.2"];

    /// Wanted events that are not there, as far as their absence is a fact of the kernel.
    #[test]
    fn kernels_have_what_they_have() {
        let ipi = ["ipi_send_cpu", "ipi_send_cpumask"];
        let csd = ["csd_queue_cpu", "csd_function_entry", "csd_function_exit"];
        let new = ["hrtimer_start_expired", "hrtimer_rearm"];
        let arm64 = ["ipi_entry", "ipi_exit"];
        let before_6_4 = [&new[..], &arm64, &ipi, &csd].concat();
        let before_7_1 = [&new[..], &arm64].concat();
        let missing = BTreeMap::from([
            ("5.10", before_6_4.clone()),
            ("6.1", before_6_4),
            ("6.12", before_7_1.clone()),
            ("6.18", before_7_1),
            ("7.2", arm64.to_vec()),
        ]);
        for kernel in KERNELS {
            let formats = formats_of(kernel);
            assert_eq!(Decoder::new(&formats).unusable(), [], "{kernel}");
            let is_missing = |name: &&str| formats.iter().all(|format| format.name() != *name);
            let lacks: Vec<_> = WANTED.iter().map(|row| row.name).filter(is_missing).collect();
            assert_eq!(lacks, missing[kernel], "{kernel}");
        }
    }

    fn name() -> impl Strategy<Value = ShortName> {
        "[ -~]{0,15}".prop_map(|name| ShortName::new(name.as_bytes()))
    }

    fn task() -> impl Strategy<Value = TaskName> {
        (any::<u32>(), name(), -1i32..140).prop_map(|(tid, name, kernel_priority)| TaskName {
            tid,
            name,
            kernel_priority,
        })
    }

    fn nameless() -> impl Strategy<Value = TaskName> {
        task().prop_map(|task| TaskName { kernel_priority: TaskName::UNKNOWN_PRIORITY, ..task })
    }

    fn vector() -> impl Strategy<Value = Vector> {
        prop_oneof![
            Just(Vector::LocalTimer),
            Just(Vector::Reschedule),
            Just(Vector::CallFunction),
            Just(Vector::CallFunctionSingle),
            Just(Vector::IrqWork),
            Just(Vector::Platform),
            Just(Vector::OtherCpu),
        ]
    }

    fn of_timers() -> impl Strategy<Value = TraceKind> {
        (any::<u64>(), any::<u64>(), any::<i64>(), any::<i64>(), any::<bool>(), 0..6).prop_map(
            |(timer, function, expires_ns, soft_expires_ns, is_deferred, which)| match which {
                0 => TraceKind::TimerStart { timer, function, expires_ns, soft_expires_ns },
                1 => TraceKind::TimerStartExpired { timer },
                2 => TraceKind::TimerRearm { next_event_ns: expires_ns, is_deferred },
                3 => TraceKind::TimerCancel { timer },
                4 => TraceKind::TimerExpireEntry { timer, function, now_ns: expires_ns },
                _ => TraceKind::TimerExpireExit { timer },
            },
        )
    }

    fn of_tasks() -> impl Strategy<Value = TraceKind> {
        (task(), task(), nameless(), any::<u64>(), any::<u32>(), any::<u32>(), 0..7).prop_map(
            |(task, next, nameless, number, small, cpu, which)| match which {
                0 => TraceKind::Waking { task, target_cpu: cpu },
                1 => TraceKind::Switch { previous: task, previous_state: number, next },
                2 => TraceKind::Migrate { task, from_cpu: small, to_cpu: cpu },
                3 => TraceKind::Signal { number: small.to_le_bytes()[0], task: nameless },
                4 => TraceKind::RunTime { tid: small, took_ns: number },
                5 => TraceKind::PriorityLent { task, to_kernel_priority: next.kernel_priority },
                _ => TraceKind::Renamed { task: nameless },
            },
        )
    }

    fn of_interrupts() -> impl Strategy<Value = TraceKind> {
        (vector(), name(), any::<u32>(), any::<u64>(), any::<u64>(), 0..16).prop_map(
            |(vector, name, small, number, function, which)| match which {
                0 => TraceKind::VectorEntry(vector),
                1 => TraceKind::VectorExit(vector),
                2 => TraceKind::IrqEntry { irq: small, name },
                3 => TraceKind::IrqExit { irq: small, is_handled: Some(small % 2 == 0) },
                4 => TraceKind::SoftirqEntry(small.to_le_bytes()[0]),
                5 => TraceKind::SoftirqExit(small.to_le_bytes()[0]),
                6 => TraceKind::CallQueued { target_cpu: small, request: number, function },
                7 => TraceKind::CallEntry { request: number, function },
                8 => TraceKind::CallExit { request: number },
                9 => TraceKind::Nmi { took_ns: number >> 1 },
                10 => TraceKind::PageFaultEntry,
                11 => TraceKind::SyscallEntry { number: small },
                12 => TraceKind::SyscallExit { number: small },
                13 => TraceKind::WorkStart { function },
                14 => TraceKind::CpuIdle { state: small },
                _ => TraceKind::Frequency { khz: small, cpu: small >> 20 },
            },
        )
    }

    fn of_sets() -> impl Strategy<Value = TraceKind> {
        let one = (0u32..8192).prop_filter_map("beyond", crate::decode::one_cpu);
        let many = vec(any::<u64>(), 1..5).prop_map(Vec::into_boxed_slice);
        (prop_oneof![one, many], any::<u64>())
            .prop_map(|(targets, callback)| TraceKind::IpiSend { targets, callback })
    }

    /// Any event that a tracepoint can be.
    pub(crate) fn tracepoint() -> impl Strategy<Value = TraceEvent> {
        let kind = prop_oneof![of_timers(), of_tasks(), of_interrupts(), of_sets()];
        (any::<u64>(), 0u32..8192, any::<u32>(), any::<u8>(), 0u8..16, kind).prop_map(
            |(at_ns, cpu, tid, flags, preempt_depth, kind)| TraceEvent {
                at_ns,
                cpu,
                tid,
                context: ContextFlags { flags, preempt_depth },
                kind,
                chain: Box::default(),
            },
        )
    }

    #[test]
    fn there_is_a_format_for_each() {
        let formats = own_formats();
        assert_eq!(formats.len(), RECIPES.len());
        // As `sched_wakeup` says the same as `sched_waking`.
        assert_eq!(Decoder::new(&formats).len(), RECIPES.len() - 2);
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(event in tracepoint()) {
            let formats = own_formats();
            let mut raw = vec![7; 3];
            let id = Encoder::new(&formats).encode(&event, &mut raw).unwrap();
            assert_eq!(raw[..2], id.to_le_bytes());
            let place = RecordPlace { at_ns: event.at_ns, cpu: event.cpu };
            let decoded = Decoder::new(&formats).decode(&raw, place, Box::default());
            prop_assert_eq!(decoded, Some(Ok(event)));
        }

        #[test]
        fn every_kernel_says_the_same(events in vec(tracepoint(), 20)) {
            for kernel in KERNELS {
                let formats = formats_of(kernel);
                let (encoder, decoder) = (Encoder::new(&formats), Decoder::new(&formats));
                let mut raw = Vec::new();
                for event in &events {
                    if encoder.encode(event, &mut raw).is_none() {
                        continue;
                    }
                    let place = RecordPlace { at_ns: event.at_ns, cpu: event.cpu };
                    let decoded = decoder.decode(&raw, place, Box::default());
                    prop_assert_eq!(decoded, Some(Ok(event.clone())), "{}", kernel);
                    for end in 0..raw.len() {
                        let cut = decoder.decode(&raw[..end], place, Box::default());
                        prop_assert!(cut.is_some() || end < 2);
                    }
                }
            }
        }
    }
}
