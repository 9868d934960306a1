//! From the bytes of a record, as a kernel wrote them, to an event.
//!
//! Pure. The fields are found by name in the formats of the kernel that wrote the record, once; a
//! record is then a few loads. A format that lacks a field which an event needs makes that event
//! unknown, and is named; nothing is taken by a kernel's version.

use thiserror::Error;

use crate::event::{CodeAddress, ContextFlags, ShortName, TaskName, TraceEvent, TraceKind, Vector};
use crate::format::{EventFormat, Field, FieldPlacement};
use crate::reasons::IpiReasons;

/// Most words of 64 CPUs that are read of a set of CPUs: 8192 CPUs, the kernel's own bound.
const MASK_WORDS_MAX: usize = 128;

/// Most fields that one event is made of.
pub(crate) const PARTS_MAX: usize = 7;

/// The event that a record becomes. Its fields stand in the row of [`RECIPES`], in the order in
/// which [`Shape::event`] takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    TimerStart,
    TimerStartExpired,
    TimerRearm,
    TimerCancel,
    TimerExpireEntry,
    TimerExpireExit,
    Waking,
    Switch,
    Migrate,
    VectorEntry(Vector),
    VectorExit(Vector),
    IrqEntry,
    IrqExit,
    SoftirqEntry,
    SoftirqExit,
    IpiSendCpu,
    IpiSendMask,
    IpiEntry,
    IpiExit,
    CallQueued,
    CallEntry,
    CallExit,
    Nmi,
    Signal,
    PageFault,
    SyscallEntry,
    SyscallExit,
    RunTime,
    PriorityLent,
    Renamed,
    WorkStart,
    CpuIdle,
    Frequency,
}

/// The way from one event of the kernel to an event: its name, and the names of its fields. A field
/// whose name begins with `?` may be missing.
#[derive(Debug)]
pub(crate) struct Recipe {
    pub(crate) system: &'static str,
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) fields: &'static [&'static str],
}

impl Recipe {
    /// Returns true where it says again what `sched_waking` says, if that is there.
    pub(crate) fn is_wakeup(&self) -> bool {
        self.name.starts_with("sched_wakeup")
    }
}

const fn recipe(
    system: &'static str,
    name: &'static str,
    shape: Shape,
    fields: &'static [&'static str],
) -> Recipe {
    Recipe { system, name, shape, fields }
}

const fn entry(name: &'static str, vector: Vector) -> Recipe {
    recipe("irq_vectors", name, Shape::VectorEntry(vector), &[])
}

const fn exit(name: &'static str, vector: Vector) -> Recipe {
    recipe("irq_vectors", name, Shape::VectorExit(vector), &[])
}

const WOKEN: &[&str] = &["comm", "pid", "prio", "target_cpu"];

/// Every event that is understood. Field names are those of Linux 5.10 to 7.2,
/// `include/trace/events`.
pub(crate) const RECIPES: &[Recipe] = &[
    recipe(
        "timer",
        "hrtimer_start",
        Shape::TimerStart,
        &["hrtimer", "function", "expires", "?softexpires"],
    ),
    recipe("timer", "hrtimer_start_expired", Shape::TimerStartExpired, &["hrtimer"]),
    recipe("timer", "hrtimer_rearm", Shape::TimerRearm, &["next_event", "?deferred"]),
    recipe("timer", "hrtimer_cancel", Shape::TimerCancel, &["hrtimer"]),
    recipe(
        "timer",
        "hrtimer_expire_entry",
        Shape::TimerExpireEntry,
        &["hrtimer", "?function", "now"],
    ),
    recipe("timer", "hrtimer_expire_exit", Shape::TimerExpireExit, &["hrtimer"]),
    recipe("sched", "sched_waking", Shape::Waking, WOKEN),
    // They say the same: of both only one kind counts, see `Decoder::new`.
    recipe("sched", "sched_wakeup", Shape::Waking, WOKEN),
    recipe("sched", "sched_wakeup_new", Shape::Waking, WOKEN),
    recipe(
        "sched",
        "sched_switch",
        Shape::Switch,
        &["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"],
    ),
    recipe(
        "sched",
        "sched_migrate_task",
        Shape::Migrate,
        &["comm", "pid", "prio", "orig_cpu", "dest_cpu"],
    ),
    recipe("sched", "sched_stat_runtime", Shape::RunTime, &["pid", "runtime"]),
    recipe(
        "sched",
        "sched_pi_setprio",
        Shape::PriorityLent,
        &["comm", "pid", "oldprio", "newprio"],
    ),
    entry("local_timer_entry", Vector::LocalTimer),
    exit("local_timer_exit", Vector::LocalTimer),
    entry("reschedule_entry", Vector::Reschedule),
    exit("reschedule_exit", Vector::Reschedule),
    entry("call_function_entry", Vector::CallFunction),
    exit("call_function_exit", Vector::CallFunction),
    entry("call_function_single_entry", Vector::CallFunctionSingle),
    exit("call_function_single_exit", Vector::CallFunctionSingle),
    entry("irq_work_entry", Vector::IrqWork),
    exit("irq_work_exit", Vector::IrqWork),
    entry("thermal_apic_entry", Vector::Platform),
    exit("thermal_apic_exit", Vector::Platform),
    entry("threshold_apic_entry", Vector::Platform),
    exit("threshold_apic_exit", Vector::Platform),
    entry("deferred_error_apic_entry", Vector::Platform),
    exit("deferred_error_apic_exit", Vector::Platform),
    entry("error_apic_entry", Vector::Platform),
    exit("error_apic_exit", Vector::Platform),
    entry("spurious_apic_entry", Vector::Platform),
    exit("spurious_apic_exit", Vector::Platform),
    entry("x86_platform_ipi_entry", Vector::Platform),
    exit("x86_platform_ipi_exit", Vector::Platform),
    recipe("irq", "irq_handler_entry", Shape::IrqEntry, &["irq", "name"]),
    recipe("irq", "irq_handler_exit", Shape::IrqExit, &["irq", "?ret"]),
    recipe("irq", "softirq_entry", Shape::SoftirqEntry, &["vec"]),
    recipe("irq", "softirq_exit", Shape::SoftirqExit, &["vec"]),
    recipe("ipi", "ipi_send_cpu", Shape::IpiSendCpu, &["cpu", "?callback"]),
    recipe("ipi", "ipi_send_cpumask", Shape::IpiSendMask, &["cpumask", "?callback"]),
    recipe("ipi", "ipi_raise", Shape::IpiSendMask, &["target_cpus", "?callback"]),
    recipe("ipi", "ipi_entry", Shape::IpiEntry, &["reason"]),
    recipe("ipi", "ipi_exit", Shape::IpiExit, &["reason"]),
    recipe("csd", "csd_queue_cpu", Shape::CallQueued, &["cpu", "csd", "func"]),
    recipe("csd", "csd_function_entry", Shape::CallEntry, &["csd", "func"]),
    recipe("csd", "csd_function_exit", Shape::CallExit, &["csd"]),
    recipe("nmi", "nmi_handler", Shape::Nmi, &["delta_ns"]),
    recipe("signal", "signal_generate", Shape::Signal, &["sig", "comm", "pid"]),
    recipe("exceptions", "page_fault_user", Shape::PageFault, &[]),
    recipe("raw_syscalls", "sys_enter", Shape::SyscallEntry, &["id"]),
    recipe("raw_syscalls", "sys_exit", Shape::SyscallExit, &["id"]),
    recipe("task", "task_rename", Shape::Renamed, &["pid", "newcomm"]),
    recipe("workqueue", "workqueue_execute_start", Shape::WorkStart, &["function"]),
    recipe("power", "cpu_idle", Shape::CpuIdle, &["state"]),
    recipe("power", "cpu_frequency", Shape::Frequency, &["state", "cpu_id"]),
];

/// Returns true where an event of this name is understood.
#[must_use]
pub fn is_known(system: &str, name: &str) -> bool {
    RECIPES.iter().any(|recipe| recipe.system == system && recipe.name == name)
}

/// The values of a record's fields, by their place in a row of [`RECIPES`]. Numbers come with their
/// sign extended; what is missing is nothing.
pub(crate) trait FieldValues {
    fn number(&self, part: usize) -> Option<u64>;
    fn name(&self, part: usize) -> Option<ShortName>;
    fn cpus(&self, part: usize) -> Option<Box<[u64]>>;
    /// The vector of the reason for which another CPU interrupts, where that is known.
    fn vector(&self, part: usize) -> Option<Vector>;
}

impl Shape {
    /// The event; nothing if a field is missing that it needs.
    pub(crate) fn event(self, values: &impl FieldValues) -> Option<TraceKind> {
        let kind = match self {
            Self::TimerStart => {
                let expires_ns = values.number(2)?.cast_signed();
                TraceKind::TimerStart {
                    timer: values.number(0)?,
                    function: values.number(1)?,
                    expires_ns,
                    soft_expires_ns: values.number(3).map_or(expires_ns, u64::cast_signed),
                }
            }
            Self::TimerStartExpired => TraceKind::TimerStartExpired { timer: values.number(0)? },
            Self::TimerRearm => TraceKind::TimerRearm {
                next_event_ns: values.number(0)?.cast_signed(),
                is_deferred: values.number(1).is_some_and(|deferred| deferred != 0),
            },
            Self::TimerCancel => TraceKind::TimerCancel { timer: values.number(0)? },
            Self::TimerExpireEntry => TraceKind::TimerExpireEntry {
                timer: values.number(0)?,
                function: values.number(1).unwrap_or(0),
                now_ns: values.number(2)?.cast_signed(),
            },
            Self::TimerExpireExit => TraceKind::TimerExpireExit { timer: values.number(0)? },
            Self::Waking => {
                TraceKind::Waking { task: task(values, [0, 1, 2])?, target_cpu: small(values, 3)? }
            }
            Self::Switch => TraceKind::Switch {
                previous: task(values, [0, 1, 2])?,
                previous_state: values.number(3)?,
                next: task(values, [4, 5, 6])?,
            },
            Self::Migrate => TraceKind::Migrate {
                task: task(values, [0, 1, 2])?,
                from_cpu: small(values, 3)?,
                to_cpu: small(values, 4)?,
            },
            Self::VectorEntry(vector) => TraceKind::VectorEntry(vector),
            Self::VectorExit(vector) => TraceKind::VectorExit(vector),
            Self::IrqEntry => TraceKind::IrqEntry { irq: small(values, 0)?, name: values.name(1)? },
            Self::IrqExit => TraceKind::IrqExit {
                irq: small(values, 0)?,
                is_handled: values.number(1).map(|handled| handled != 0),
            },
            Self::SoftirqEntry => TraceKind::SoftirqEntry(tiny(values.number(0)?)),
            Self::SoftirqExit => TraceKind::SoftirqExit(tiny(values.number(0)?)),
            Self::IpiSendCpu => TraceKind::IpiSend {
                targets: one_cpu(small(values, 0)?)?,
                callback: values.number(1).unwrap_or(0),
            },
            Self::IpiSendMask => TraceKind::IpiSend {
                targets: values.cpus(0)?,
                callback: values.number(1).unwrap_or(0),
            },
            Self::IpiEntry => TraceKind::VectorEntry(values.vector(0).unwrap_or(Vector::OtherCpu)),
            Self::IpiExit => TraceKind::VectorExit(values.vector(0).unwrap_or(Vector::OtherCpu)),
            Self::CallQueued => TraceKind::CallQueued {
                target_cpu: small(values, 0)?,
                request: values.number(1)?,
                function: values.number(2)?,
            },
            Self::CallEntry => {
                TraceKind::CallEntry { request: values.number(0)?, function: values.number(1)? }
            }
            Self::CallExit => TraceKind::CallExit { request: values.number(0)? },
            // It is signed; the clock never steps back within one handler.
            Self::Nmi => {
                let took_ns = u64::try_from(values.number(0)?.cast_signed()).unwrap_or(0);
                TraceKind::Nmi { took_ns }
            }
            Self::Signal => TraceKind::Signal {
                number: tiny(values.number(0)?),
                task: named(values.name(1)?, small(values, 2)?),
            },
            Self::PageFault => TraceKind::PageFaultEntry,
            Self::SyscallEntry => TraceKind::SyscallEntry { number: small(values, 0)? },
            Self::SyscallExit => TraceKind::SyscallExit { number: small(values, 0)? },
            Self::RunTime => {
                TraceKind::RunTime { tid: small(values, 0)?, took_ns: values.number(1)? }
            }
            Self::PriorityLent => TraceKind::PriorityLent {
                task: task(values, [0, 1, 2])?,
                to_kernel_priority: small(values, 3)?.cast_signed(),
            },
            Self::Renamed => TraceKind::Renamed { task: named(values.name(1)?, small(values, 0)?) },
            Self::WorkStart => TraceKind::WorkStart { function: values.number(0)? },
            Self::CpuIdle => TraceKind::CpuIdle { state: small(values, 0)? },
            Self::Frequency => {
                TraceKind::Frequency { khz: small(values, 0)?, cpu: small(values, 1)? }
            }
        };
        Some(kind)
    }
}

/// The lower 32 bits, which are all that the kernel's `int` and `pid_t` have.
#[expect(clippy::cast_possible_truncation, reason = "wanted")]
fn small(values: &impl FieldValues, part: usize) -> Option<u32> {
    values.number(part).map(|number| number as u32)
}

/// The number, or the largest that fits.
fn tiny(number: u64) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

fn task(values: &impl FieldValues, [name, tid, priority]: [usize; 3]) -> Option<TaskName> {
    Some(TaskName {
        tid: small(values, tid)?,
        name: values.name(name)?,
        kernel_priority: small(values, priority)?.cast_signed(),
    })
}

fn named(name: ShortName, tid: u32) -> TaskName {
    TaskName { tid, name, kernel_priority: TaskName::UNKNOWN_PRIORITY }
}

/// A set of this CPU alone; nothing beyond the kernel's own bound.
pub(crate) fn one_cpu(cpu: u32) -> Option<Box<[u64]>> {
    let cpu = usize::try_from(cpu).ok().filter(|&cpu| cpu < MASK_WORDS_MAX * 64)?;
    let mut words = vec![0; cpu / 64 + 1];
    words[cpu / 64] = 1 << (cpu % 64);
    Some(words.into_boxed_slice())
}

/// The place of a number or a name in a record.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    offset: u16,
    /// 0: the format has no such field.
    size: u16,
    is_signed: bool,
    placement: Option<FieldPlacement>,
}

impl Slot {
    fn new(field: &Field) -> Option<Self> {
        Some(Self {
            offset: u16::try_from(field.offset()).ok()?,
            size: u16::try_from(field.size()).ok()?,
            is_signed: field.is_signed(),
            placement: Some(field.placement()),
        })
    }

    fn end(self) -> usize {
        usize::from(self.offset) + usize::from(self.size)
    }

    /// Its bytes in the fixed part of a record.
    fn fixed(self, raw: &[u8]) -> Option<&[u8]> {
        raw.get(usize::from(self.offset)..self.end())
    }

    #[inline]
    fn number(self, raw: &[u8]) -> Option<u64> {
        let bytes = self.fixed(raw)?;
        let number = match *bytes {
            [a] if self.is_signed => i64::from(a.cast_signed()).cast_unsigned(),
            [a] => u64::from(a),
            [a, b] if self.is_signed => i64::from(i16::from_le_bytes([a, b])).cast_unsigned(),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] if self.is_signed => {
                i64::from(i32::from_le_bytes([a, b, c, d])).cast_unsigned()
            }
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => return None,
        };
        Some(number)
    }

    /// Its bytes, wherever they lie.
    fn bytes(self, raw: &[u8]) -> Option<&[u8]> {
        let fixed = self.fixed(raw)?;
        let from = match self.placement? {
            FieldPlacement::Fixed => return Some(fixed),
            FieldPlacement::Dynamic => 0,
            FieldPlacement::Relative => self.end(),
        };
        let &[a, b, c, d] = fixed else { return None };
        let start = from + usize::from(u16::from_le_bytes([a, b]));
        raw.get(start..start + usize::from(u16::from_le_bytes([c, d])))
    }
}

/// A format, resolved to what its event is made of.
#[derive(Debug, Clone)]
struct Row {
    /// Its place in `RECIPES`.
    recipe: usize,
    shape: Shape,
    /// The shortest record that has all fixed parts, bytes.
    bytes_min: usize,
    flags: Slot,
    preempt_count: Slot,
    pid: Slot,
    parts: [Slot; PARTS_MAX],
}

impl Row {
    fn new(place: usize, format: &EventFormat) -> Result<Self, UnusableFormat> {
        let recipe = &RECIPES[place];
        let unusable = |field: &str| UnusableFormat {
            system: Box::from(format.system()),
            name: Box::from(format.name()),
            field: Box::from(field),
        };
        let slot = |name: &str| format.field(name).and_then(Slot::new);
        let common = |name: &str| slot(name).filter(|slot| matches!(slot.size, 1 | 2 | 4 | 8));
        let mut parts = [Slot::default(); PARTS_MAX];
        for (part, &field) in parts.iter_mut().zip(recipe.fields) {
            match field.strip_prefix('?') {
                Some(optional) => *part = slot(optional).unwrap_or_default(),
                None => *part = slot(field).ok_or_else(|| unusable(field))?,
            }
        }
        // Common fields that a kernel lacks count as 0; without a thread nothing can be booked.
        let flags = common("common_flags").unwrap_or_default();
        let preempt_count = common("common_preempt_count").unwrap_or_default();
        let pid = common("common_pid").ok_or_else(|| unusable("common_pid"))?;
        let bytes_min =
            parts.iter().chain([&flags, &preempt_count, &pid]).map(|slot| slot.end()).max();
        Ok(Self {
            recipe: place,
            shape: recipe.shape,
            bytes_min: bytes_min.unwrap_or(0),
            flags,
            preempt_count,
            pid,
            parts,
        })
    }
}

/// One record, and where its parts lie.
struct Parts<'a> {
    row: &'a Row,
    raw: &'a [u8],
    reasons: &'a IpiReasons,
}

impl FieldValues for Parts<'_> {
    #[inline]
    fn number(&self, part: usize) -> Option<u64> {
        self.row.parts.get(part)?.number(self.raw)
    }

    #[inline]
    fn name(&self, part: usize) -> Option<ShortName> {
        self.row.parts.get(part)?.bytes(self.raw).map(ShortName::new)
    }

    fn cpus(&self, part: usize) -> Option<Box<[u64]>> {
        let bytes = self.row.parts.get(part)?.bytes(self.raw)?;
        let words = bytes.chunks(8).take(MASK_WORDS_MAX).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        Some(words.collect())
    }

    fn vector(&self, part: usize) -> Option<Vector> {
        self.reasons.vector(self.number(part)?)
    }
}

/// The instant and the CPU of a record, which stand beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordPlace {
    /// The instant, ns of the recorder's clock.
    pub at_ns: u64,
    /// The CPU that it was written on.
    pub cpu: u32,
}

/// Decodes the records of one kernel.
#[derive(Debug, Clone)]
pub struct Decoder {
    /// By `common_type`: the place in `rows` and 1, 0 for an event that is not understood.
    place_of: Vec<u8>,
    rows: Vec<Row>,
    unusable: Vec<UnusableFormat>,
    reasons: IpiReasons,
}

impl Decoder {
    /// Resolves these formats. Those of events that are not understood do no harm. `sched_wakeup`
    /// is understood only where `sched_waking` is not among them: both say the same.
    pub fn new<'a>(formats: impl IntoIterator<Item = &'a EventFormat>) -> Self {
        let formats: Vec<_> = formats.into_iter().collect();
        let has_waking = formats.iter().any(|format| format.name() == "sched_waking");
        Self::of_recipes(&formats, |recipe| !has_waking || !recipe.is_wakeup())
    }

    /// As [`Self::new`], of a file that has formats of events which were not recorded:
    /// `sched_wakeup` is understood too, and which of both counts shows what is read.
    pub(crate) fn of_machine<'a>(formats: impl IntoIterator<Item = &'a EventFormat>) -> Self {
        let formats: Vec<_> = formats.into_iter().collect();
        Self::of_recipes(&formats, |_| true)
    }

    fn of_recipes(formats: &[&EventFormat], is_understood: impl Fn(&Recipe) -> bool) -> Self {
        let mut decoder = Self {
            place_of: Vec::new(),
            rows: Vec::new(),
            unusable: Vec::new(),
            reasons: IpiReasons::default(),
        };
        for (place, recipe) in RECIPES.iter().enumerate() {
            if !is_understood(recipe) {
                continue;
            }
            let format = formats
                .iter()
                .find(|format| format.name() == recipe.name && format.system() == recipe.system);
            let Some(format) = format else { continue };
            match Row::new(place, format) {
                Ok(row) => decoder.add(format.id(), row),
                Err(why) => decoder.unusable.push(why),
            }
        }
        decoder
    }

    /// With the reasons of that kernel: without them, an interrupt from another CPU that has no
    /// vector of its own is [`Vector::OtherCpu`].
    #[must_use]
    pub fn with_reasons(self, reasons: IpiReasons) -> Self {
        Self { reasons, ..self }
    }

    fn add(&mut self, id: u16, row: Row) {
        let id = usize::from(id);
        if self.place_of.len() <= id {
            self.place_of.resize(id + 1, 0);
        }
        self.rows.push(row);
        // There are fewer recipes than a byte can count: a test says so.
        self.place_of[id] = u8::try_from(self.rows.len()).unwrap_or(0);
    }

    /// The formats that lack a field which their event needs.
    #[must_use]
    pub fn unusable(&self) -> &[UnusableFormat] {
        &self.unusable
    }

    /// Events that are understood.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true where no event is understood.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The place in the table of those that are understood of a record's event.
    pub(crate) fn recipe(&self, raw: &[u8]) -> Option<usize> {
        self.row(raw).map(|row| row.recipe)
    }

    fn row(&self, raw: &[u8]) -> Option<&Row> {
        let id = usize::from(u16::from_le_bytes(*raw.first_chunk()?));
        let place = usize::from(*self.place_of.get(id)?);
        self.rows.get(place.checked_sub(1)?)
    }

    /// One record, from its `common_type` on, as `PERF_SAMPLE_RAW` or a page of ftrace has it;
    /// nothing for an event that is not understood.
    ///
    /// # Errors
    /// A record that is shorter than its format says, or whose dynamic part lies outside of it.
    pub fn decode(
        &self,
        raw: &[u8],
        place: RecordPlace,
        chain: Box<[CodeAddress]>,
    ) -> Option<Result<TraceEvent, DecodeError>> {
        let &[low, high, ..] = raw else {
            return Some(Err(DecodeError::TooShort { bytes: raw.len(), needed: 2 }));
        };
        let row = self.row(raw)?;
        if raw.len() < row.bytes_min {
            let (bytes, needed) = (raw.len(), row.bytes_min);
            return Some(Err(DecodeError::TooShort { bytes, needed }));
        }
        let parts = Parts { row, raw, reasons: &self.reasons };
        let Some(kind) = row.shape.event(&parts) else {
            let id = usize::from(u16::from_le_bytes([low, high]));
            return Some(Err(DecodeError::Outside { id }));
        };
        let common = |slot: Slot| slot.number(raw).unwrap_or(0).to_le_bytes();
        let [a, b, c, d, ..] = common(row.pid);
        Some(Ok(TraceEvent {
            at_ns: place.at_ns,
            cpu: place.cpu,
            tid: u32::from_le_bytes([a, b, c, d]),
            context: ContextFlags {
                flags: common(row.flags)[0],
                preempt_depth: common(row.preempt_count)[0] & 0x0f,
            },
            kind,
            chain,
        }))
    }
}

/// A format that cannot be used: the event is unknown on that kernel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{system}:{name} of this kernel has no field `{field}`")]
pub struct UnusableFormat {
    system: Box<str>,
    name: Box<str>,
    field: Box<str>,
}

/// The reason for which a record is no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// It ends before its last field.
    #[error("a record of {bytes} bytes; its format needs {needed}")]
    TooShort {
        /// Its length, bytes.
        bytes: usize,
        /// The least bytes that its format needs.
        needed: usize,
    },
    /// A field has a size that no number has, or lies outside of the record.
    #[error("a record of event {id} has a field that lies outside of it or is no number")]
    Outside {
        /// Its `common_type`.
        id: usize,
    },
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{DecodeError, Decoder, PARTS_MAX, RECIPES, RecordPlace, one_cpu};
    use crate::event::{ContextFlags, ShortName, TaskName, TraceEvent, TraceKind, Vector};
    use crate::format::EventFormat;
    use crate::reasons::IpiReasons;

    const PLACE: RecordPlace = RecordPlace { at_ns: 5, cpu: 1 };

    /// A format of these fields behind the common ones, each `TYPE NAME`, its size and its sign.
    fn format(system: &str, name: &str, id: u16, fields: &[(&str, usize, bool)]) -> EventFormat {
        let mut text = format!(
            "name: {name}\nID: {id}\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
             \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
        );
        let mut offset = 8;
        for &(declaration, size, is_signed) in fields {
            let signed = u8::from(is_signed);
            text += &format!(
                "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
            );
            offset += size;
        }
        EventFormat::parse(system, &text).unwrap()
    }

    fn record(id: u16, body: &[&[u8]]) -> Vec<u8> {
        let mut raw = id.to_le_bytes().to_vec();
        raw.extend([0x0c, 0x12]);
        raw.extend(77i32.to_le_bytes());
        raw.extend(body.concat());
        raw
    }

    fn decoded(decoder: &Decoder, raw: &[u8]) -> TraceEvent {
        decoder.decode(raw, PLACE, Box::default()).unwrap().unwrap()
    }

    fn comm(name: &str) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    const WAKING: &[(&str, usize, bool)] = &[
        ("char comm[16]", 16, false),
        ("pid_t pid", 4, true),
        ("int prio", 4, true),
        ("int target_cpu", 4, true),
    ];

    #[test]
    fn fields_are_found_by_name_wherever_they_lie() {
        let late = format("sched", "sched_waking", 9, WAKING);
        let mut with_success = WAKING.to_vec();
        with_success.insert(3, ("int success", 4, true));
        let early = format("sched", "sched_waking", 9, &with_success);
        let head = record(9, &[&comm("servo"), &42u32.to_le_bytes(), &(-1i32).to_le_bytes()]);
        let new = [&head[..], &3u32.to_le_bytes()].concat();
        let old = [&head[..], &1u32.to_le_bytes(), &3u32.to_le_bytes()].concat();
        let event = decoded(&Decoder::new([&late]), &new);
        assert_eq!(event, decoded(&Decoder::new([&early]), &old));
        let task = TaskName { tid: 42, name: ShortName::new(b"servo"), kernel_priority: -1 };
        assert_eq!(
            event,
            TraceEvent {
                at_ns: 5,
                cpu: 1,
                tid: 77,
                context: ContextFlags { flags: 0x0c, preempt_depth: 2 },
                kind: TraceKind::Waking { task, target_cpu: 3 },
                chain: Box::default(),
            }
        );
    }

    #[test]
    fn dynamic_fields_are_followed() {
        for (declaration, start) in
            [("__data_loc char[] name", 16u32), ("__rel_loc char[] name", 0)]
        {
            let fields = [("int irq", 4, true), (declaration, 4, false)];
            let decoder = Decoder::new([&format("irq", "irq_handler_entry", 3, &fields)]);
            let location = (8 << 16 | start).to_le_bytes();
            let raw = record(3, &[&24u32.to_le_bytes(), &location, b"virtio3\0"]);
            let kind = decoded(&decoder, &raw).kind;
            assert_eq!(kind, TraceKind::IrqEntry { irq: 24, name: ShortName::new(b"virtio3") });
            let cut = decoder.decode(&raw[..raw.len() - 1], PLACE, Box::default());
            assert_eq!(cut, Some(Err(DecodeError::Outside { id: 3 })));
        }
    }

    #[test]
    fn a_set_of_cpus_has_the_bits_of_the_kernel() {
        let fields = [("__data_loc cpumask_t cpumask", 4, false), ("void * callback", 8, false)];
        let decoder = Decoder::new([&format("ipi", "ipi_send_cpumask", 3, &fields)]);
        let location = (16u32 << 16 | 20).to_le_bytes();
        let raw =
            record(3, &[&location, &9u64.to_le_bytes(), &5u64.to_le_bytes(), &1u64.to_le_bytes()]);
        let kind = decoded(&decoder, &raw).kind;
        assert_eq!(kind, TraceKind::IpiSend { targets: Box::from([5, 1]), callback: 9 });
        assert_eq!(one_cpu(64), Some(Box::from([0, 1])));
        assert_eq!(one_cpu(8192), None);
    }

    #[test]
    fn an_interrupt_from_another_cpu_has_the_vector_of_its_reason() {
        let fields = [("const char * reason", 8, false)];
        let formats =
            [("ipi_entry", 3), ("ipi_exit", 4)].map(|(name, id)| format("ipi", name, id, &fields));
        let reasons = IpiReasons::parse(b"0xffff94d498d22268 : \"Rescheduling interrupts\"\n");
        let without = Decoder::new(&formats);
        let with = without.clone().with_reasons(reasons);
        for (decoder, reason, vector) in [
            (&with, 0xffff_94d4_98d2_2268u64, Vector::Reschedule),
            (&with, 0xffff_94d4_98d2_2269, Vector::OtherCpu),
            (&without, 0xffff_94d4_98d2_2268, Vector::OtherCpu),
        ] {
            let kind = |id: u16| decoded(decoder, &record(id, &[&reason.to_le_bytes()])).kind;
            assert_eq!(kind(3), TraceKind::VectorEntry(vector));
            assert_eq!(kind(4), TraceKind::VectorExit(vector));
        }
    }

    #[test]
    fn what_a_kernel_lacks_is_named_or_replaced() {
        let full = [
            ("void * hrtimer", 8, false),
            ("void * function", 8, false),
            ("s64 expires", 8, true),
            ("s64 softexpires", 8, true),
        ];
        let decoder = Decoder::new([&format("timer", "hrtimer_start", 3, &full[..3])]);
        let numbers = [7u64, 8, 1000].map(u64::to_le_bytes);
        let raw = record(3, &[&numbers[0], &numbers[1], &numbers[2]]);
        assert_eq!(
            decoded(&decoder, &raw).kind,
            TraceKind::TimerStart {
                timer: 7,
                function: 8,
                expires_ns: 1000,
                soft_expires_ns: 1000
            }
        );
        let decoder = Decoder::new([&format("timer", "hrtimer_start", 3, &full[..2])]);
        assert!(decoder.is_empty());
        assert_eq!(
            decoder.unusable()[0].to_string(),
            "timer:hrtimer_start of this kernel has no field `expires`"
        );
        assert_eq!(decoder.decode(&raw, PLACE, Box::default()), None);
    }

    #[test]
    fn wakeups_count_only_where_wakings_are_missing() {
        let waking = format("sched", "sched_waking", 3, WAKING);
        let wakeup = format("sched", "sched_wakeup", 4, WAKING);
        assert_eq!(Decoder::new([&waking, &wakeup]).len(), 1);
        assert_eq!(Decoder::new([&wakeup]).len(), 1);
    }

    #[test]
    fn a_frequency_has_its_cpu_whichever_recorded_it() {
        let fields = [("u32 state", 4, false), ("u32 cpu_id", 4, false)];
        let decoder = Decoder::new([&format("power", "cpu_frequency", 3, &fields)]);
        let raw = |cpu: u32| record(3, &[&800_000u32.to_le_bytes(), &cpu.to_le_bytes()]);
        for cpu in [PLACE.cpu, PLACE.cpu + 1] {
            let event = decoded(&decoder, &raw(cpu));
            assert_eq!(event.kind, TraceKind::Frequency { khz: 800_000, cpu });
            assert_eq!(event.cpu, PLACE.cpu);
        }
    }

    #[test]
    fn the_table_fits_its_types() {
        assert!(RECIPES.len() < usize::from(u8::MAX));
        for recipe in RECIPES {
            assert!(recipe.fields.len() <= PARTS_MAX, "{}", recipe.name);
        }
    }

    /// Formats of every event that is understood, each field eight bytes and in the order of its
    /// row, ids counted from 1 on.
    fn formats_of_all() -> Vec<EventFormat> {
        let formats = RECIPES.iter().zip(1..).map(|(recipe, id)| {
            let fields: Vec<_> = recipe
                .fields
                .iter()
                .map(|field| match field.trim_start_matches('?') {
                    name if name.ends_with("comm") => (format!("char {name}[16]"), 16),
                    name @ ("name" | "cpumask") => (format!("__data_loc char[] {name}"), 4),
                    name => (format!("long {name}"), 8),
                })
                .collect();
            let fields: Vec<_> =
                fields.iter().map(|(text, size)| (text.as_str(), *size, false)).collect();
            format(recipe.system, recipe.name, id, &fields)
        });
        formats.collect()
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_event_or_an_error(id in 0u16..70, body in vec(any::<u8>(), 0..160)) {
            let decoder = Decoder::new(&formats_of_all());
            prop_assert_eq!(decoder.unusable(), &[]);
            let raw = record(id, &[&body]);
            for end in 0..raw.len() {
                if let Some(Err(why)) = decoder.decode(&raw[..end], PLACE, Box::default()) {
                    assert!(!why.to_string().contains('\n'));
                }
            }
        }
    }
}
