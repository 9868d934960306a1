//! Kernel events in rings: perf_event_open(2), its filters, and the memory that it fills.
//!
//! For captures of what a machine does beside a loop. Layouts are those of Linux,
//! include/uapi/linux/perf_event.h, as of 6.1; of `struct perf_event_attr` the first 112 bytes
//! (PERF_ATTR_SIZE_VER5, from 4.4 on), so that older kernels take them too. Forward rings alone,
//! which never overwrite what was not read. Nothing outlives the process: the kernel frees events
//! and rings with their descriptors, also after `kill -9`. Never waits, never decodes a record.

use core::ffi::{CStr, c_int, c_ulong};
use core::fmt;
use core::mem::offset_of;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::Errno;
use crate::clock::ClockId;
use crate::descriptor::{Descriptor, NONE, READ, WRITE, request};
use crate::events;
use crate::fork::Origin;

/// PERF_SAMPLE_TID: process and thread, two times four bytes.
pub const SAMPLE_TID: u64 = 1 << 1;
/// PERF_SAMPLE_TIME: when, by CLOCK_MONOTONIC.
pub const SAMPLE_TIME: u64 = 1 << 2;
/// PERF_SAMPLE_READ: what the counters of its group have counted, as [`EventPlan::read_format`]
/// says.
pub const SAMPLE_READ: u64 = 1 << 4;
/// PERF_SAMPLE_CALLCHAIN: how many addresses, and these.
pub const SAMPLE_CALLCHAIN: u64 = 1 << 5;
/// PERF_SAMPLE_CPU: the CPU, and four bytes without meaning.
pub const SAMPLE_CPU: u64 = 1 << 7;
/// PERF_SAMPLE_PERIOD: how much happened, of an event that counts more than times.
pub const SAMPLE_PERIOD: u64 = 1 << 8;
/// PERF_SAMPLE_RAW: the tracepoint's own record.
pub const SAMPLE_RAW: u64 = 1 << 10;
/// PERF_SAMPLE_IDENTIFIER: [`PerfEvent::id`], before everything else.
pub const SAMPLE_IDENTIFIER: u64 = 1 << 16;

/// The fields that each sample has, whatever its event.
const SAMPLE_ALWAYS: u64 = SAMPLE_IDENTIFIER | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_RAW;

/// The most bytes that a record has: its size is a number of 16 bits.
pub const RECORD_BYTES_MAX: usize = u16::MAX as usize;

/// The kind of event that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSource {
    /// PERF_TYPE_TRACEPOINT: the one with this number, from `events/SYSTEM/NAME/id` of tracefs.
    Tracepoint(u64),
    /// PERF_COUNT_SW_DUMMY: nothing; it owns a ring, and brings the records of
    /// [`EventPlan::with_tasks`].
    Dummy,
    /// PERF_COUNT_SW_PAGE_FAULTS_MIN: a page fault was served that needed no input.
    MinorFaults,
    /// PERF_COUNT_SW_PAGE_FAULTS_MAJ: a page fault was served that needed input.
    MajorFaults,
    /// PERF_COUNT_SW_CONTEXT_SWITCHES: a thread was switched out.
    ContextSwitches,
    /// What is counted, and makes no record of its own: samples of its leader bring the count.
    Counted(CountedEvent),
}

impl EventSource {
    /// `type` and `config` of the attributes.
    const fn numbers(self) -> (u32, u64) {
        // PERF_TYPE_SOFTWARE is 1, PERF_TYPE_TRACEPOINT is 2.
        match self {
            Self::Tracepoint(id) => (2, id),
            Self::ContextSwitches => (1, 3),
            Self::MinorFaults => (1, 5),
            Self::MajorFaults => (1, 6),
            Self::Dummy => (1, 9),
            Self::Counted(event) => event.numbers(),
        }
    }
}

/// Of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSubject {
    /// All that runs on this CPU; needs CAP_PERFMON, or perf_event_paranoid of at most 0 (−1 for
    /// tracepoints).
    Cpu(u32),
    /// This thread (0: the calling one), on any CPU.
    Thread(i32),
    /// This thread, while it is on this CPU: what it does goes into a ring of that CPU.
    ThreadOnCpu(i32, u32),
}

impl EventSubject {
    /// `pid` and `cpu` of the call.
    fn numbers(self) -> (i32, i32) {
        let number = |cpu: u32| i32::try_from(cpu).unwrap_or(i32::MAX);
        match self {
            Self::Cpu(cpu) => (-1, number(cpu)),
            Self::Thread(tid) => (tid, -1),
            Self::ThreadOnCpu(tid, cpu) => (tid, number(cpu)),
        }
    }
}

/// An event to be opened: every time that it happens makes a sample, stamped by CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPlan {
    source: EventSource,
    subject: EventSubject,
    /// Kernel frames of a call chain; 0 for none.
    frames: u16,
    /// Samples say how much happened.
    period: bool,
    /// Records of new, renamed and ended threads.
    tasks: bool,
    /// Samples bring the counts of their group.
    counts: bool,
}

/// Bits of the word of flags in `struct perf_event_attr`, counted from its lowest.
const DISABLED: u64 = 1 << 0;
const COMM: u64 = 1 << 9;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
const USE_CLOCKID: u64 = 1 << 25;

impl EventPlan {
    /// This event of these threads, without a call chain.
    ///
    /// # Real-time: setup only
    pub const fn new(source: EventSource, subject: EventSubject) -> Self {
        Self { source, subject, frames: 0, period: false, tasks: false, counts: false }
    }

    /// The same event, of these threads.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn of(mut self, subject: EventSubject) -> Self {
        self.subject = subject;
        self
    }

    /// With the kernel's part of the call chain, at most so many addresses; 0 for none.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn with_frames(mut self, frames: u16) -> Self {
        self.frames = frames;
        self
    }

    /// With [`SAMPLE_PERIOD`]. A tracepoint that counts time (`sched_stat_runtime`) makes one
    /// sample a call only so: without, one for each ns until the kernel throttles it.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn with_period(mut self) -> Self {
        self.period = true;
        self
    }

    /// With the records PERF_RECORD_COMM, PERF_RECORD_FORK and PERF_RECORD_EXIT.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn with_tasks(mut self) -> Self {
        self.tasks = true;
        self
    }

    /// With [`SAMPLE_READ`]: each sample brings what the events that it leads have counted.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn with_counts(mut self) -> Self {
        self.counts = true;
        self
    }

    /// `read_format`: how long a group was counted, and of each member its count and identifier.
    ///
    /// # Real-time: setup only
    pub const fn read_format(&self) -> u64 {
        if self.counts { TIMES | FORMAT_ID | FORMAT_GROUP } else { 0 }
    }

    /// `sample_type`: the fields of its samples, and of what follows other records.
    ///
    /// # Real-time: setup only
    pub const fn sample_type(&self) -> u64 {
        let chain = if self.frames > 0 { SAMPLE_CALLCHAIN } else { 0 };
        let period = if self.period { SAMPLE_PERIOD } else { 0 };
        let counts = if self.counts { SAMPLE_READ } else { 0 };
        SAMPLE_ALWAYS | chain | period | counts
    }

    /// `type` and `config` of `struct perf_event_attr`.
    ///
    /// # Real-time: setup only
    pub const fn kind_and_config(&self) -> (u32, u64) {
        self.source.numbers()
    }

    fn attributes(&self) -> Attributes {
        let (kind, config) = self.kind_and_config();
        let tasks = if self.tasks { COMM | TASK } else { 0 };
        let chain = if self.frames > 0 { EXCLUDE_CALLCHAIN_USER } else { 0 };
        Attributes {
            kind,
            size: ATTRIBUTES_BYTES,
            config,
            // A counter that made a sample each time would do nothing else.
            sample_period: u64::from(!matches!(self.source, EventSource::Counted(_))),
            sample_type: self.sample_type(),
            read_format: self.read_format(),
            flags: WATERMARK | SAMPLE_ID_ALL | USE_CLOCKID | tasks | chain,
            // The kernel takes the ring's length where this is longer: one wake-up a length, of
            // nobody.
            wakeup_watermark: u32::MAX,
            clockid: ClockId::Monotonic as i32,
            sample_max_stack: self.frames,
            ..Attributes::default()
        }
    }
}

/// `struct perf_event_attr`, its first 112 bytes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// PERF_ATTR_SIZE_VER5.
const ATTRIBUTES_BYTES: u32 = 112;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_BYTES as usize);
const _: () = assert!(offset_of!(Attributes, flags) == 40);
const _: () = assert!(offset_of!(Attributes, clockid) == 92);
const _: () = assert!(offset_of!(Attributes, sample_max_stack) == 108);

/// PERF_FLAG_FD_CLOEXEC.
const CLOSE_ON_EXEC: c_ulong = 1 << 3;

/// PERF_EVENT_IOC_ENABLE, _DISABLE, _SET_OUTPUT, _SET_FILTER, _ID, of kind `$`.
const ENABLE: c_ulong = request(NONE, b'$', 0, 0);
const DISABLE: c_ulong = request(NONE, b'$', 1, 0);
const SET_OUTPUT: c_ulong = request(NONE, b'$', 5, 0);
const SET_FILTER: c_ulong = request(WRITE, b'$', 6, size_of::<usize>());
const ID: c_ulong = request(READ, b'$', 7, size_of::<usize>());

/// An event that is open; closed, and no longer recorded, when dropped.
#[derive(Debug)]
pub struct PerfEvent {
    descriptor: Descriptor,
}

impl PerfEvent {
    /// `perf_event_open(&attr, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC)`: an event that is not
    /// enabled; with a leader of the same subject, one that runs whenever that is enabled, so that
    /// one interruption of the CPU begins all.
    ///
    /// Errors: `EACCES` and `EPERM` by kernel.perf_event_paranoid, lockdown or a security module,
    /// `ENODEV` for a CPU that is offline, `ESRCH` for a thread that is gone, `EMFILE`, `ENOENT`
    /// and `EINVAL` for what this kernel does not have, `ENOSYS` where it has none of it.
    ///
    /// # Real-time: setup only
    pub fn open(plan: &EventPlan, leader: Option<&Self>) -> Result<Self, Errno> {
        let mut attributes = plan.attributes();
        if leader.is_none() {
            attributes.flags |= DISABLED;
        }
        let leader = leader.map_or(-1, |leader| leader.descriptor.number());
        open(&attributes, plan.subject, leader).map(|descriptor| Self { descriptor })
    }

    /// `ioctl(event, PERF_EVENT_IOC_ID, &id)`: the number that its samples carry.
    ///
    /// # Real-time: setup only
    pub fn id(&self) -> Result<u64, Errno> {
        let mut id: u64 = 0;
        // SAFETY: writes 8 bytes, which outlive the call.
        let result = unsafe { libc::ioctl(self.descriptor.number(), ID, &raw mut id) };
        Errno::check(result.into()).map(|_| id)
    }

    /// `ioctl(event, PERF_EVENT_IOC_SET_FILTER, filter)`: records only what fits, as the kernel's
    /// Documentation/trace/events.rst, 5. Once an event.
    ///
    /// Errors: `EINVAL` for a filter that this tracepoint does not have, or an event that is none;
    /// `EEXIST` for a second one.
    ///
    /// # Real-time: setup only
    pub fn filter(&self, filter: &CStr) -> Result<(), Errno> {
        // SAFETY: the text ends with a zero and outlives the call.
        let result = unsafe { libc::ioctl(self.descriptor.number(), SET_FILTER, filter.as_ptr()) };
        Errno::check(result.into()).map(drop)
    }

    /// `ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, owner)`: its records go into that event's ring,
    /// which is mapped already.
    ///
    /// Errors: `EINVAL` for events of different CPUs.
    ///
    /// # Real-time: setup only
    pub fn write_into(&self, owner: &Self) -> Result<(), Errno> {
        let owner = owner.descriptor.number();
        // SAFETY: takes numbers only.
        let result = unsafe { libc::ioctl(self.descriptor.number(), SET_OUTPUT, owner) };
        Errno::check(result.into()).map(drop)
    }

    /// `ioctl(event, PERF_EVENT_IOC_ENABLE, 0)`. Interrupts the CPU that it is of.
    ///
    /// # Real-time: setup only
    pub fn enable(&self) -> Result<(), Errno> {
        self.switch(ENABLE)
    }

    /// `ioctl(event, PERF_EVENT_IOC_DISABLE, 0)`. Interrupts the CPU that it is of.
    ///
    /// # Real-time: setup only
    pub fn disable(&self) -> Result<(), Errno> {
        self.switch(DISABLE)
    }

    fn switch(&self, action: c_ulong) -> Result<(), Errno> {
        // SAFETY: takes numbers only.
        let result = unsafe { libc::ioctl(self.descriptor.number(), action, 0) };
        Errno::check(result.into()).map(drop)
    }
}

/// The kind of event that is counted, without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedEvent {
    /// PERF_COUNT_HW_CPU_CYCLES: cycles in which the CPU ran.
    Cycles,
    /// PERF_COUNT_HW_INSTRUCTIONS: instructions that were retired.
    Instructions,
    /// PERF_COUNT_HW_CACHE_MISSES: accesses that the last cache did not hold.
    CacheMisses,
    /// PERF_COUNT_HW_BRANCH_MISSES: branches that were mispredicted, and retired.
    BranchMisses,
    /// PERF_COUNT_HW_STALLED_CYCLES_BACKEND: cycles in which a resource was waited for.
    StalledCycles,
    /// PERF_COUNT_SW_CONTEXT_SWITCHES: not the processor's, so that every machine has it.
    ContextSwitches,
}

impl CountedEvent {
    /// Those of the processor.
    pub const OF_PROCESSOR: [Self; 3] =
        [Self::CacheMisses, Self::BranchMisses, Self::StalledCycles];

    /// Those that say how fast the processor got on with its work.
    pub const OF_WORK: [Self; 4] =
        [Self::Cycles, Self::Instructions, Self::CacheMisses, Self::StalledCycles];

    /// Its name, as perf(1) has it.
    ///
    /// # Real-time: setup only
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::CacheMisses => "cache-misses",
            Self::BranchMisses => "branch-misses",
            Self::StalledCycles => "stalled-cycles-backend",
            Self::ContextSwitches => "context-switches",
        }
    }

    /// `type` and `config` of the attributes.
    const fn numbers(self) -> (u32, u64) {
        // PERF_TYPE_HARDWARE is 0, PERF_TYPE_SOFTWARE is 1.
        match self {
            Self::Cycles => (0, 0),
            Self::Instructions => (0, 1),
            Self::CacheMisses => (0, 3),
            Self::BranchMisses => (0, 5),
            Self::StalledCycles => (0, 8),
            Self::ContextSwitches => (1, 3),
        }
    }
}

/// PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING.
const TIMES: u64 = 1 << 0 | 1 << 1;
/// PERF_FORMAT_ID and PERF_FORMAT_GROUP.
const FORMAT_ID: u64 = 1 << 2;
const FORMAT_GROUP: u64 = 1 << 3;

/// An event that is counted from its opening on, without a ring; freed when dropped.
#[derive(Debug)]
pub struct EventCounter {
    descriptor: Descriptor,
}

/// The reading of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterReading {
    /// Events since it was opened.
    pub count: u64,
    /// Time since it was opened, ns.
    pub enabled_ns: u64,
    /// Time of that in which it was counted, ns: less where events share the processor's counters.
    pub running_ns: u64,
}

impl EventCounter {
    /// `perf_event_open(&attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)`: counts from now on.
    ///
    /// Errors: those of [`PerfEvent::open`]; `ENOENT` and `EOPNOTSUPP` where this processor does
    /// not count it, or shows no counters to a guest.
    ///
    /// # Real-time: setup only
    pub fn open(event: CountedEvent, subject: EventSubject) -> Result<Self, Errno> {
        let (kind, config) = event.numbers();
        let size = ATTRIBUTES_BYTES;
        let attributes =
            Attributes { kind, size, config, read_format: TIMES, ..Attributes::default() };
        open(&attributes, subject, -1).map(|descriptor| Self { descriptor })
    }

    /// `read(counter, 24 bytes)`.
    ///
    /// # Real-time: setup only
    pub fn read(&self) -> Result<CounterReading, Errno> {
        let mut bytes = [0; 24];
        let taken = events::read(&self.descriptor, &mut bytes)?;
        let number = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at * 8..(at + 1) * 8]);
            u64::from_ne_bytes(word)
        };
        match taken == bytes.len() {
            true => Ok(CounterReading {
                count: number(0),
                enabled_ns: number(1),
                running_ns: number(2),
            }),
            false => Err(Errno::INVAL),
        }
    }
}

/// `perf_event_open(&attr, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC)`.
fn open(
    attributes: &Attributes,
    subject: EventSubject,
    leader: c_int,
) -> Result<Descriptor, Errno> {
    let (pid, cpu) = subject.numbers();
    // SAFETY: `attributes` is a perf_event_attr of the size that it states, and outlives the call;
    // the rest are numbers.
    let made = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const *attributes,
            pid,
            cpu,
            leader,
            CLOSE_ON_EXEC,
        )
    };
    Errno::check(made).map(|made| Descriptor::new(made as c_int))
}

/// `struct perf_event_mmap_page`, from `data_head` on.
#[repr(C)]
struct ControlPage {
    counters: [u8; 1024],
    data_head: AtomicU64,
    data_tail: AtomicU64,
    data_offset: u64,
    data_size: u64,
}

const _: () = assert!(offset_of!(ControlPage, data_head) == 1024);
const _: () = assert!(offset_of!(ControlPage, data_tail) == 1032);

/// The bytes that were taken from a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenRecords {
    /// So many bytes of the buffer hold whole records, one after the other.
    pub bytes: usize,
    /// So many were unread before.
    pub unread_before: u64,
    /// True where the bytes were no record: all of them were dropped.
    pub damaged: bool,
}

/// The ring of an event, and of those that write into it: read by one thread, filled by the kernel.
/// Unmapped when dropped; not passed on by fork(2), where it is empty.
pub struct PerfRing {
    area: Area,
    mapped: NonNull<u8>,
    mapped_bytes: usize,
    origin: Origin,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is read through `&mut` alone.
unsafe impl Send for PerfRing {}

impl fmt::Debug for PerfRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerfRing").field("bytes", &self.area.bytes).finish_non_exhaustive()
    }
}

impl PerfRing {
    /// `mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0)`: the ring of an
    /// event; `bytes` is a power of two, a page at least.
    ///
    /// Errors: `EINVAL` for another size; `EPERM` beyond kernel.perf_event_mlock_kb and
    /// RLIMIT_MEMLOCK without CAP_IPC_LOCK; `ENOMEM`.
    ///
    /// # Real-time: setup only
    pub fn map(event: &PerfEvent, bytes: usize) -> Result<Self, Errno> {
        let page = page_bytes();
        let mapped_bytes = bytes.checked_add(page).ok_or(Errno::INVAL)?;
        if !bytes.is_power_of_two() || bytes < page {
            return Err(Errno::INVAL);
        }
        // SAFETY: a new mapping where the kernel chooses.
        let at = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.descriptor.number(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let mapped = NonNull::new(at.cast::<u8>()).ok_or(Errno::INVAL)?;
        let control: *mut ControlPage = mapped.as_ptr().cast();
        // SAFETY: the first page holds a ControlPage, mapped as long as the ring lives.
        let head = unsafe { &raw mut (*control).data_head };
        // SAFETY: as above.
        let tail = unsafe { &raw mut (*control).data_tail };
        // The data follow at once: data_offset, which kernels before 4.1 do not say, is a page.
        let data = NonNull::new(mapped.as_ptr().wrapping_add(page)).ok_or(Errno::INVAL)?;
        let head = NonNull::new(head).ok_or(Errno::INVAL)?;
        let tail = NonNull::new(tail).ok_or(Errno::INVAL)?;
        let area = Area { head, tail, data, bytes };
        Ok(Self { area, mapped, mapped_bytes, origin: Origin::here() })
    }

    /// The bytes that are there and were not taken yet.
    ///
    /// # Real-time: reader side
    pub fn unread(&self) -> u64 {
        if self.origin.is_here() { self.area.unread() } else { 0 }
    }

    /// The bytes that it holds.
    ///
    /// # Real-time: setup only
    pub fn capacity(&self) -> usize {
        self.area.bytes
    }

    /// Loads `data_head`, copies as many whole records as the buffer holds, and frees their place
    /// by a store to `data_tail`. The buffer should hold [`RECORD_BYTES_MAX`] at least: a record
    /// that is longer than it stays where it is.
    ///
    /// # Real-time: reader side
    pub fn take(&mut self, into: &mut [u8]) -> TakenRecords {
        if self.origin.is_here() { self.area.take(into) } else { TakenRecords::default() }
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // In a child the kernel did not map it, and something else may lie there.
        if self.origin.is_here() {
            // SAFETY: the range is this mapping's own, and nothing borrows from it any more.
            unsafe { libc::munmap(self.mapped.as_ptr().cast(), self.mapped_bytes) };
        }
    }
}

/// `sysconf(_SC_PAGESIZE)`.
fn page_bytes() -> usize {
    // SAFETY: takes a number only.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Where a ring's parts lie. The writer owns the bytes from head to tail + size, the reader those
/// from tail to head.
struct Area {
    /// Written by the kernel.
    head: NonNull<AtomicU64>,
    /// Written here.
    tail: NonNull<AtomicU64>,
    data: NonNull<u8>,
    /// A power of two.
    bytes: usize,
}

/// `struct perf_event_header`: type, misc, and the size of the whole record.
const HEADER_BYTES: usize = 8;

impl Area {
    fn tail(&self) -> &AtomicU64 {
        // SAFETY: valid as long as the area, and an AtomicU64 for everybody.
        unsafe { self.tail.as_ref() }
    }

    /// With it, all that was written before it is seen.
    fn head(&self) -> u64 {
        // SAFETY: valid as long as the area, and an AtomicU64 for everybody.
        unsafe { self.head.as_ref() }.load(Ordering::Acquire)
    }

    fn unread(&self) -> u64 {
        self.head().wrapping_sub(self.tail().load(Ordering::Relaxed))
    }

    fn take(&mut self, into: &mut [u8]) -> TakenRecords {
        let head = self.head();
        let tail = self.tail().load(Ordering::Relaxed);
        let unread = head.wrapping_sub(tail);
        let unread_bytes = usize::try_from(unread).unwrap_or(usize::MAX);
        let damaged = TakenRecords { bytes: 0, unread_before: unread, damaged: true };
        if unread_bytes > self.bytes {
            self.release(head);
            return damaged;
        }
        let copied = unread_bytes.min(into.len());
        let Some(buffer) = into.get_mut(..copied) else { return damaged };
        self.copy(tail, buffer);
        let Some(bytes) = whole_records(buffer) else {
            self.release(head);
            return damaged;
        };
        self.release(tail.wrapping_add(bytes as u64));
        TakenRecords { bytes, unread_before: unread, damaged: false }
    }

    /// From here on the kernel may write over what lies before.
    fn release(&mut self, tail: u64) {
        self.tail().store(tail, Ordering::Release);
    }

    /// Copies what begins at `from`: of the reader's part, and no longer than that.
    fn copy(&self, from: u64, into: &mut [u8]) {
        let start = (from & (self.bytes as u64 - 1)) as usize;
        let first = into.len().min(self.bytes - start);
        let (near, rest) = into.split_at_mut(first);
        let source = self.data.as_ptr().wrapping_add(start);
        // SAFETY: `start + first` is within the data, which nobody writes to between tail and head;
        // `near` is a slice of this process, not of the ring.
        unsafe { core::ptr::copy_nonoverlapping(source, near.as_mut_ptr(), near.len()) };
        let source = self.data.as_ptr();
        // SAFETY: as above: what does not lie before the end lies at the beginning.
        unsafe { core::ptr::copy_nonoverlapping(source, rest.as_mut_ptr(), rest.len()) };
    }
}

/// Bytes at the beginning that are whole records; `None` where there is one that cannot be.
fn whole_records(bytes: &[u8]) -> Option<usize> {
    let mut end = 0;
    while let Some(&[_, _, _, _, _, _, low, high]) =
        bytes.get(end..end + HEADER_BYTES).and_then(|header| header.first_chunk())
    {
        let size = usize::from(u16::from_ne_bytes([low, high]));
        if size < HEADER_BYTES || size % 8 != 0 {
            return None;
        }
        if bytes.len() - end < size {
            break;
        }
        end += size;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::clock::now_ns;

    /// A ring whose kernel is the test.
    struct Simulated {
        head: AtomicU64,
        tail: AtomicU64,
        data: Vec<u8>,
    }

    impl Simulated {
        fn new(bytes: usize, start: u64) -> Self {
            let (head, tail) = (AtomicU64::new(start), AtomicU64::new(start));
            Self { head, tail, data: std::vec![0xee; bytes] }
        }

        fn area(&mut self) -> Area {
            Area {
                head: NonNull::from(&mut self.head),
                tail: NonNull::from(&mut self.tail),
                data: NonNull::new(self.data.as_mut_ptr()).expect("it has some"),
                bytes: self.data.len(),
            }
        }
    }

    /// A record of `size` bytes, filled with `mark`.
    fn record(size: u16, mark: u8) -> Vec<u8> {
        let mut record = std::vec![mark; usize::from(size)];
        record[6..8].copy_from_slice(&size.to_ne_bytes());
        record
    }

    /// Writes it as the kernel does, where there is room.
    fn write(area: &Area, record: &[u8]) -> bool {
        let head = area.head();
        let free = area.bytes as u64 - (head - area.tail().load(Ordering::Acquire));
        if free < record.len() as u64 {
            return false;
        }
        for (at, &byte) in record.iter().enumerate() {
            let place = ((head + at as u64) % area.bytes as u64) as usize;
            // SAFETY: within the data, and of the writer's part.
            unsafe { area.data.as_ptr().wrapping_add(place).write(byte) };
        }
        // SAFETY: valid as long as the area.
        unsafe { area.head.as_ref() }.store(head + record.len() as u64, Ordering::Release);
        true
    }

    #[test]
    fn what_is_written_round_the_end_is_read_as_it_was() {
        // Every place of the end within a record, every size of record and of buffer.
        for start in (0..64).step_by(8).chain([u64::from(u32::MAX) - 7]) {
            for size in (8..=48_u16).step_by(8) {
                for buffer in [size as usize, 50, 64, 100] {
                    let mut ring = Simulated::new(64, start);
                    let mut area = ring.area();
                    let (mut written, mut read) = (Vec::new(), Vec::new());
                    for mark in 0..20_u8 {
                        let new = record(size, mark);
                        if write(&area, &new) {
                            written.extend(new);
                        }
                        if mark % 3 == 0 {
                            let mut into = std::vec![0; buffer];
                            let taken = area.take(&mut into);
                            assert!(
                                !taken.damaged && taken.bytes.is_multiple_of(usize::from(size))
                            );
                            read.extend_from_slice(&into[..taken.bytes]);
                        }
                    }
                    while area.unread() > 0 {
                        let mut into = std::vec![0; buffer];
                        let taken = area.take(&mut into);
                        read.extend_from_slice(&into[..taken.bytes]);
                    }
                    assert_eq!(read, written, "start {start}, size {size}, buffer {buffer}");
                }
            }
        }
    }

    #[test]
    fn a_full_ring_keeps_what_it_has() {
        let mut ring = Simulated::new(64, 0);
        let mut area = ring.area();
        assert!((0..4).all(|mark| write(&area, &record(16, mark))));
        assert!(!write(&area, &record(16, 9)), "the writer waits for the reader");
        let mut into = [0; 40];
        let taken = area.take(&mut into);
        assert_eq!((taken.bytes, taken.unread_before), (32, 64));
        assert_eq!(into[..32], [record(16, 0), record(16, 1)].concat());
        assert!(write(&area, &record(32, 9)));
        let mut into = [0; 64];
        assert_eq!(area.take(&mut into).bytes, 64);
        assert_eq!(into, *[record(16, 2), record(16, 3), record(32, 9)].concat());
    }

    #[test]
    fn a_record_longer_than_the_buffer_stays() {
        let mut ring = Simulated::new(64, 0);
        let mut area = ring.area();
        assert!(write(&area, &record(48, 1)));
        let nothing = TakenRecords { bytes: 0, unread_before: 48, damaged: false };
        assert_eq!(area.take(&mut [0; 40]), nothing);
        assert_eq!(area.take(&mut [0; 48]).bytes, 48);
    }

    #[test]
    fn what_can_be_no_record_is_dropped_and_told() {
        for size in [0, 4, 12] {
            let mut ring = Simulated::new(64, 0);
            let mut area = ring.area();
            let mut wrong = record(16, 1);
            wrong[6..8].copy_from_slice(&u16::to_ne_bytes(size));
            assert!(write(&area, &wrong));
            let taken = area.take(&mut [0; 64]);
            assert_eq!(taken, TakenRecords { bytes: 0, unread_before: 16, damaged: true });
            assert_eq!(area.unread(), 0);
        }
        let mut ring = Simulated::new(64, 0);
        ring.head = AtomicU64::new(72);
        let mut area = ring.area();
        assert!(area.take(&mut [0; 64]).damaged, "more than it holds");
        assert_eq!(area.unread(), 0);
    }

    #[test]
    fn a_writer_beside_the_reader_is_read_in_order() {
        let mut ring = Simulated::new(256, 0);
        let mut area = ring.area();
        /// Of the writing thread.
        struct Writer(Area);
        // SAFETY: the ring outlives the scope below; one thread writes, one reads.
        unsafe impl Send for Writer {}
        let writer = Writer(Area { ..area });
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let writer = writer;
                for number in 0..5_000_u64 {
                    let mut new = record(8 + 8 * (1 + number % 4) as u16, 0);
                    new[8..16].copy_from_slice(&number.to_ne_bytes());
                    while !write(&writer.0, &new) {
                        std::thread::yield_now();
                    }
                }
            });
            let mut next = 0_u64;
            while next < 5_000 {
                let mut into = [0; 96];
                let taken = area.take(&mut into);
                assert!(!taken.damaged);
                let mut rest = &into[..taken.bytes];
                while !rest.is_empty() {
                    let size = usize::from(u16::from_ne_bytes([rest[6], rest[7]]));
                    assert_eq!(rest[8..16], next.to_ne_bytes());
                    next += 1;
                    rest = &rest[size..];
                }
                if taken.bytes == 0 {
                    std::thread::yield_now();
                }
            }
        });
    }

    /// The kernel's answer, or `None` where it refuses such events to this process.
    fn allowed<T>(answer: Result<T, Errno>) -> Option<T> {
        match answer {
            Ok(value) => Some(value),
            // Rights, a sandbox, an emulated processor.
            Err(Errno::ACCES | Errno::PERM | Errno::NOENT | Errno(libc::ENOSYS)) => None,
            Err(why) => panic!("{why}"),
        }
    }

    fn number(bytes: &[u8], at: usize) -> u64 {
        u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    #[test]
    fn page_faults_of_this_thread_are_read_with_time_and_number() {
        let plan = EventPlan::new(EventSource::MinorFaults, EventSubject::Thread(0));
        let Some(event) = allowed(PerfEvent::open(&plan, None)) else { return };
        let Some(mut ring) = allowed(PerfRing::map(&event, 1 << 16)) else { return };
        let id = event.id().expect("it has one");
        let before = now_ns(ClockId::Monotonic);
        event.enable().expect("ours");
        // Longer than what the allocator keeps: new pages.
        let pages = std::vec![1_u8; 40 * page_bytes() + (64 << 20)];
        core::hint::black_box(&pages[..40 * page_bytes()]);
        event.disable().expect("ours");
        let after = now_ns(ClockId::Monotonic);
        let mut into = std::vec![0; 1 << 16];
        let taken = ring.take(&mut into);
        assert!(taken.bytes > 0 && !taken.damaged, "{taken:?}");
        assert_eq!(ring.unread(), taken.unread_before - taken.bytes as u64);
        let first = &into[..taken.bytes];
        // PERF_RECORD_SAMPLE: identifier, pid and tid, time.
        assert_eq!(u32::from_ne_bytes([first[0], first[1], first[2], first[3]]), 9);
        assert_eq!(number(first, 8), id);
        assert_eq!(number(first, 16) >> 32, crate::process::tid().cast_unsigned().into());
        assert!((before..=after).contains(&number(first, 24)));
    }

    #[test]
    fn events_write_into_one_ring_and_a_group_begins_at_once() {
        let subject = EventSubject::Thread(0);
        let dummy = EventPlan::new(EventSource::Dummy, subject).with_tasks();
        let Some(owner) = allowed(PerfEvent::open(&dummy, None)) else { return };
        let Some(mut ring) = allowed(PerfRing::map(&owner, page_bytes())) else { return };
        let plan = EventPlan::new(EventSource::ContextSwitches, subject).with_frames(4);
        let Some(event) = allowed(PerfEvent::open(&plan, Some(&owner))) else { return };
        event.write_into(&owner).expect("of the same thread");
        let sleep = || crate::clock::sleep_until_ns(now_ns(ClockId::Monotonic) + 1_000_000);
        sleep().expect("no signal");
        assert_eq!(ring.unread(), 0, "its leader is not enabled yet");
        owner.enable().expect("ours");
        sleep().expect("no signal");
        owner.disable().expect("ours");
        let mut into = std::vec![0; ring.capacity()];
        let taken = ring.take(&mut into);
        assert!(taken.bytes > 0);
        assert_eq!(number(&into, 8), event.id().expect("it has one"));
    }

    #[test]
    fn what_the_kernel_does_not_have_is_an_error() {
        let plan = EventPlan::new(EventSource::Dummy, EventSubject::Cpu(9_999));
        assert!(PerfEvent::open(&plan, None).is_err(), "no such CPU");
        let plan = EventPlan::new(EventSource::Dummy, EventSubject::Thread(i32::MAX));
        assert!(PerfEvent::open(&plan, None).is_err(), "no such thread");
        let plan = EventPlan::new(EventSource::Dummy, EventSubject::Thread(0));
        let Some(event) = allowed(PerfEvent::open(&plan, None)) else { return };
        assert!(event.filter(c"common_pid==1").is_err(), "no tracepoint");
        assert_eq!(PerfRing::map(&event, 5_000).map(drop), Err(Errno::INVAL));
        assert_eq!(PerfRing::map(&event, 0).map(drop), Err(Errno::INVAL));
    }

    #[test]
    fn a_counter_counts_from_its_opening_on_and_tells_how_long() {
        let subject = EventSubject::Thread(0);
        let Some(counter) = allowed(EventCounter::open(CountedEvent::ContextSwitches, subject))
        else {
            return;
        };
        let sleep = || crate::clock::sleep_until_ns(now_ns(ClockId::Monotonic) + 1_000_000);
        let before = counter.read().expect("open");
        (0..3).for_each(|_| sleep().expect("no signal"));
        let after = counter.read().expect("open");
        assert!(after.count >= before.count + 3, "{before:?} {after:?}");
        assert!(after.running_ns > before.running_ns && after.enabled_ns >= after.running_ns);
    }

    #[test]
    fn what_no_processor_here_counts_is_an_error_and_what_it_counts_rises() {
        for event in CountedEvent::OF_PROCESSOR {
            // Not in most guests.
            let Ok(counter) = EventCounter::open(event, EventSubject::Thread(0)) else { continue };
            let before = counter.read().expect("open");
            let table: Vec<u64> = (0..1 << 16).collect();
            core::hint::black_box(table.iter().rev().fold(0, |sum, word| sum ^ word));
            assert!(counter.read().expect("open").enabled_ns >= before.enabled_ns);
        }
        let nowhere = EventSubject::Cpu(9_999);
        assert!(EventCounter::open(CountedEvent::ContextSwitches, nowhere).is_err());
    }

    #[test]
    fn what_is_dropped_is_closed() {
        let plan = EventPlan::new(EventSource::Dummy, EventSubject::Thread(0));
        let Some(event) = allowed(PerfEvent::open(&plan, None)) else { return };
        let path = std::format!("/proc/self/fd/{}", event.descriptor.number());
        let name = std::fs::read_link(&path).expect("open");
        assert!(name.to_string_lossy().contains("perf"), "{name:?}");
        drop(event);
        let name = std::fs::read_link(&path).ok();
        assert!(name.is_none_or(|name| !name.to_string_lossy().contains("perf_event")));
    }

    #[test]
    fn samples_say_what_they_hold() {
        let plan = EventPlan::new(EventSource::Tracepoint(7), EventSubject::Cpu(0));
        assert_eq!(plan.sample_type(), 0x1_0486);
        assert_eq!(plan.with_frames(8).sample_type(), 0x1_04a6);
        assert_eq!(plan.with_period().sample_type(), 0x1_0586);
        let attributes = plan.with_frames(8).attributes();
        assert_eq!((attributes.kind, attributes.config, attributes.sample_max_stack), (2, 7, 8));
        assert_eq!((attributes.sample_period, attributes.clockid), (1, libc::CLOCK_MONOTONIC));
        assert_eq!((plan.read_format(), attributes.read_format), (0, 0));
        let leader = plan.with_counts();
        assert_eq!((leader.sample_type(), leader.read_format()), (0x1_0496, 0xf));
        let counted = EventSource::Counted(CountedEvent::Instructions);
        let member = EventPlan::new(counted, EventSubject::Cpu(0)).with_counts().attributes();
        assert_eq!((member.kind, member.config, member.sample_period), (0, 1, 0));
        assert_eq!(member.read_format, 0xf);
    }
}
