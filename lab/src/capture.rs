//! The events of a machine's kernel, live and from all CPUs: all that it does beside a loop.
//!
//! For attribution. Tracepoints are recorded into a ring for each CPU (perf_event_open(2)); a
//! thread on another CPU than the measured ones reads them every two milliseconds, puts them in
//! order and gives them to a consumer. Only reads from tracefs; nothing is written or left
//! anywhere, also after `kill -9`: the kernel frees all of it with the process's descriptors. Where
//! it may not do that, [`counters`] are what is left. Never prints.

pub mod counters;
mod events;
mod followed;
mod offsets;
mod processes;
mod reader;
mod rings;
mod runnable;
mod windows;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use punctual_core::time::Period;
use punctual_engine::spawn::{self, OwnThread};
use punctual_host::root::{Root, open_regular, read_whole};
use punctual_host::threads::RunningProcess;
use punctual_host::tracefs::TracefsRefused;
use punctual_os::Errno;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::SchedPolicy;
use punctual_trace::event::{Tid, TraceEvent};
use punctual_trace::format::EventFormat;
use punctual_trace::symbols::{KALLSYMS_BYTES_MAX, Symbols};
use punctual_trace::wanted::TICKS;

pub use events::{MissingEvidence, MissingWhy};
pub use followed::{
    FollowedThread, ThreadTarget, ThreadTargetError, find_threads, real_time_threads,
};
pub use offsets::ClockOffsets;
pub use reader::{CaptureSoFar, CaptureTally};
pub use rings::OpenedEvent;
pub(crate) use runnable::{FIRST_NAMESPACE, runnable_threads};
pub(crate) use windows::{KeptEvents, WindowStore};

use events::KernelEvents;
use reader::Reader;
use rings::Rings;

/// Bytes of a CPU's ring, where not all CPUs' together are more than [`RINGS_BYTES_MAX`]: 4 MB
/// overflowed under foreign load, 16 MB only with a starved reader (measured, Linux 6.18).
pub const RING_BYTES: usize = 16 << 20;
/// A loop of a shorter period is a fast one, ns: at 25 µs it fills 16 MB in half a second (nine
/// events a cycle, 94 bytes each; measured, Linux 6.18).
pub const FAST_NS: u64 = 100_000;
/// Factor by which the ring of its CPU is larger, where that is allowed: it holds the second for
/// which such a loop is recorded behind a measurement, however slow the reader is.
pub const FAST_RINGS: usize = 4;
/// The most bytes of all rings, but for those of fast loops.
pub const RINGS_BYTES_MAX: usize = 1 << 30;
/// The least bytes of a ring.
pub const RING_BYTES_MIN: usize = 1 << 18;
/// The most threads whose own system calls and page faults are recorded.
pub const FOLLOWED_MAX: usize = 64;
/// The time between two looks at the reader's answer to a request, ns.
const ASKED_NS: u64 = 500_000;
/// The longest time that is waited for that answer, ns.
const ASKED_MAX_NS: u64 = 1_000_000_000;
/// The longest time that is waited until rings are empty, ns.
const DRAINED_MAX_NS: u64 = 2_000_000_000;
/// Kernel frames of a call chain.
pub const FRAMES: u16 = 16;

/// The set of events that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSet {
    /// All that attribution uses.
    Full,
    /// The few that show every real-time thread's lateness, filtered in the kernel.
    Top,
}

/// A loop of the measurement that wakes so often that most events are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastLoop {
    /// Its thread.
    pub tid: Tid,
    /// Its CPU.
    pub cpu: u32,
}

impl FastLoop {
    /// A loop of this period; `None` where that is long enough.
    pub fn of(tid: Tid, cpu: u32, period: Period) -> Option<Self> {
        (period.as_ns() < FAST_NS).then_some(Self { tid, cpu })
    }
}

/// The plan of a capture: its events, CPUs, threads, rings and reader.
#[derive(Clone, Debug)]
pub struct CapturePlan {
    set: EventSet,
    cpus: Option<Vec<u32>>,
    measured: Vec<u32>,
    threads: Vec<i32>,
    fast_loops: Vec<FastLoop>,
    process: Option<i32>,
    has_chains: bool,
    in_guest: bool,
    tick: Option<u64>,
    ring_bytes: usize,
    reader: SchedPolicy,
    has_records: bool,
}

impl CapturePlan {
    /// This set of events on all CPUs that are online, with call chains, read by a thread with
    /// SCHED_OTHER.
    pub fn new(set: EventSet) -> Self {
        Self {
            set,
            cpus: None,
            measured: Vec::new(),
            threads: Vec::new(),
            fast_loops: Vec::new(),
            process: None,
            has_chains: true,
            in_guest: false,
            tick: None,
            ring_bytes: RING_BYTES,
            reader: SchedPolicy::Other,
            has_records: false,
        }
    }

    /// On these CPUs alone: what others do to them is not seen.
    #[must_use]
    pub fn on_cpus(mut self, cpus: &[u32]) -> Self {
        self.cpus = Some(cpus.to_vec());
        self
    }

    /// The reader keeps off these CPUs, where it may run on others.
    #[must_use]
    pub fn away_from(mut self, cpus: &[u32]) -> Self {
        self.measured = cpus.to_vec();
        self
    }

    /// With the system calls and page faults of these threads, of which the first
    /// [`FOLLOWED_MAX`] count. A filter costs each system call of the machine some 40 ns.
    #[must_use]
    pub fn following(mut self, threads: &[i32]) -> Self {
        self.threads = threads.iter().copied().take(FOLLOWED_MAX).collect();
        self
    }

    /// Beside these loops: their CPUs have rings [`FAST_RINGS`] times as large, and the records of
    /// their own CPU time, of which no figure is made, are left out.
    #[must_use]
    pub fn with_fast_loops(mut self, fast_loops: Vec<FastLoop>) -> Self {
        self.fast_loops = fast_loops;
        self
    }

    /// The consumer gets the threads of this process, new ones too; their own system calls and page
    /// faults are those of [`Self::following`] alone, since filters are set once.
    #[must_use]
    pub fn of_process(mut self, pid: i32) -> Self {
        self.process = Some(pid);
        self
    }

    /// Without call chains: 0.6 µs less for each timer interrupt that interrupts a thread.
    #[must_use]
    pub fn without_chains(mut self) -> Self {
        self.has_chains = false;
        self
    }

    /// Sets whether this is a virtual machine: some events are of use only in one, others only on
    /// hardware.
    #[must_use]
    pub fn in_guest(mut self, in_guest: bool) -> Self {
        self.in_guest = in_guest;
        self
    }

    /// The kernel's symbols, by which [`EventSet::Top`] leaves the tick out: without, more is
    /// recorded.
    #[must_use]
    pub fn with_symbols(mut self, symbols: &Symbols) -> Self {
        self.tick = TICKS.iter().find_map(|name| symbols.address_of(name));
        self
    }

    /// With rings of so many bytes, made a power of two and kept between [`RING_BYTES_MIN`] and
    /// what [`RINGS_BYTES_MAX`] allows.
    #[must_use]
    pub fn with_rings(mut self, bytes: usize) -> Self {
        self.ring_bytes = bytes;
        self
    }

    /// The reader's policy.
    #[must_use]
    pub fn read_by(mut self, policy: SchedPolicy) -> Self {
        self.reader = policy;
        self
    }

    /// With [`CaptureItem::Records`], for a file.
    #[must_use]
    pub fn with_records(mut self) -> Self {
        self.has_records = true;
        self
    }
}

/// An item that a capture gives to its consumer.
#[derive(Clone, Copy, Debug)]
pub enum CaptureItem<'a> {
    /// An event; those of all CPUs are in the order of time, but for what
    /// [`CaptureTally::out_of_order`] counts.
    Event(&'a TraceEvent),
    /// The clocks, every 100 ms.
    Clocks(ClockOffsets),
    /// The threads of the followed process: at the beginning, and when they changed.
    Threads(&'a [FollowedThread]),
    /// A thread that wrote a record belongs to this process: before its first event, and when the
    /// process has another name. Of [`EventSet::Full`] alone.
    Process {
        /// The thread.
        tid: Tid,
        /// Its process.
        process: &'a RunningProcess,
    },
    /// Whole records as the kernel wrote them, before they become events; of one CPU, and in its
    /// order.
    Records {
        /// The CPU.
        cpu: u32,
        /// One after the other, each with its size (`struct perf_event_header`).
        bytes: &'a [u8],
    },
}

/// Takes the items of a capture, in its thread: it must be done in less time than passes.
pub trait CaptureConsumer: Send + 'static {
    /// Takes an item.
    fn take(&mut self, item: CaptureItem<'_>);
}

impl<F: FnMut(CaptureItem<'_>) + Send + 'static> CaptureConsumer for F {
    fn take(&mut self, item: CaptureItem<'_>) {
        self(item);
    }
}

/// The reason for which a capture is refused, with what would allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureRefused {
    /// The formats of events cannot be read.
    Tracefs(TracefsRefused),
    /// kernel.perf_event_paranoid.
    Paranoid {
        /// Its value; `None` where it could not be read.
        level: Option<i32>,
    },
    /// The kernel is locked down.
    Lockdown {
        /// integrity or confidentiality.
        mode: String,
    },
    /// A user with all rights is refused: a container's rule, or a security module.
    Sandbox {
        /// Its answer.
        why: Errno,
    },
    /// The kernel has no perf_event_open, or hides it.
    NotBuilt,
    /// Too few descriptors.
    Descriptors {
        /// So many are needed.
        needed: u64,
        /// So many are allowed.
        limit: u64,
    },
    /// Too little memory may be locked for the rings.
    LockedMemory {
        /// Bytes of the smallest ring that would do.
        needed: usize,
        /// kernel.perf_event_mlock_kb; `None` where it could not be read.
        allowed_kb: Option<u64>,
    },
    /// Not one of the events is known to this kernel, or no CPU is there to record.
    NoEvents,
    /// Anything else that the kernel refused.
    Kernel {
        /// The request that was refused.
        part: &'static str,
        /// Its answer.
        why: Errno,
    },
    /// No thread for the reader.
    Thread {
        /// The reason, in words.
        why: String,
    },
}

impl CaptureRefused {
    /// Returns true where rights are missing: then [`counters`] can show a part of it.
    pub const fn is_of_rights(&self) -> bool {
        matches!(
            self,
            Self::Tracefs(_)
                | Self::Paranoid { .. }
                | Self::Lockdown { .. }
                | Self::Sandbox { .. }
                | Self::LockedMemory { .. }
        )
    }
}

impl fmt::Display for CaptureRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tracefs(refused) => refused.fmt(f),
            Self::Paranoid { level: Some(level) } => write!(
                f,
                "kernel.perf_event_paranoid is {level}: needs root, CAP_PERFMON, or the value -1"
            ),
            Self::Paranoid { level: None } => {
                f.write_str("the kernel refuses its events to this user: needs root or CAP_PERFMON")
            }
            Self::Lockdown { mode } => write!(
                f,
                "the kernel is locked down ({mode}), which forbids its events: boot without \
                 lockdown=confidentiality"
            ),
            Self::Sandbox { why } => write!(
                f,
                "perf_event_open: {why} in spite of all rights: a container or a security module \
                 forbids it; run outside, or with --privileged"
            ),
            Self::NotBuilt => f.write_str(
                "this kernel has no perf_event_open (CONFIG_PERF_EVENTS), or a container hides it",
            ),
            Self::Descriptors { needed, limit } => write!(
                f,
                "{needed} descriptors are needed and {limit} allowed (RLIMIT_NOFILE): ulimit -n \
                 {needed}"
            ),
            Self::LockedMemory { needed, allowed_kb } => {
                write!(f, "a ring of {} kB for each CPU is not allowed", needed / 1024)?;
                if let Some(allowed_kb) = allowed_kb {
                    write!(f, " (kernel.perf_event_mlock_kb is {allowed_kb})")?;
                }
                f.write_str(": needs CAP_IPC_LOCK or a higher RLIMIT_MEMLOCK")
            }
            Self::NoEvents => f.write_str("this kernel has none of the events that are needed"),
            Self::Kernel { part, why } => write!(f, "{part}: {why}"),
            Self::Thread { why } => f.write_str(why),
        }
    }
}

impl std::error::Error for CaptureRefused {}

/// Returns true where the reader of a capture would have to run on one of these CPUs: there is no
/// other.
pub fn must_share_cpu(measured: &[u32]) -> bool {
    reader::reader_cpus(&Root::live(), measured).1
}

/// The kernel's symbols; empty where it does not give them.
pub fn kernel_symbols() -> Symbols {
    let path = std::path::Path::new("/proc/kallsyms");
    let text = open_regular(path).and_then(|file| read_whole(file, KALLSYMS_BYTES_MAX as u64));
    text.ok().and_then(|text| Symbols::parse(&text).ok()).unwrap_or_default()
}

/// Stops the reader, also of a capture that is dropped without an end.
#[derive(Debug)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A capture that goes on, until it is ended or dropped.
#[derive(Debug)]
pub struct Capture<C> {
    stop: StopOnDrop,
    so_far: Arc<reader::Gauge>,
    opened: Vec<OpenedEvent>,
    formats: Vec<EventFormat>,
    missing: Vec<MissingEvidence>,
    ended: Receiver<(C, CaptureTally)>,
    thread: OwnThread<()>,
}

/// A capture that has ended.
#[derive(Debug)]
pub struct EndedCapture<C> {
    /// The consumer, which has everything.
    pub consumer: C,
    /// The counts and times of the capture.
    pub facts: CaptureTally,
    /// The events that are still being closed.
    pub closing: ClosingCapture,
}

/// Events that a thread closes. The kernel takes some 20 ms for each, while it interrupts all CPUs
/// (measured, Linux 6.18): a measurement that comes next should wait for it, all else need not. Not
/// waited for when dropped.
#[derive(Debug)]
pub struct ClosingCapture {
    thread: OwnThread<()>,
}

impl ClosingCapture {
    /// Until all are closed.
    pub fn wait(mut self) {
        // It has nothing to say.
        let _ended = self.thread.join();
    }
}

impl<C: CaptureConsumer> Capture<C> {
    /// Opens all events, which are recorded from before it returns, and begins to give them to the
    /// consumer.
    ///
    /// # Errors
    /// The reason for which there can be none. Events that this kernel does not have are no error:
    /// [`Self::missing`].
    pub fn start(plan: &CapturePlan, consumer: C) -> Result<Self, CaptureRefused> {
        let root = Root::live();
        let events = KernelEvents::find(&root, plan)?;
        let rings = Rings::open(&root, plan, events)?;
        let (opened, formats) = (rings.opened().to_vec(), rings.formats().to_vec());
        let missing = rings.missing().to_vec();
        let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
        let so_far = Arc::new(reader::Gauge::default());
        let reader = Reader::new(plan, rings, consumer, Arc::clone(&so_far));
        let seen = Arc::clone(&stop.0);
        let (to_end, ended) = channel();
        let thread = spawn::plain("punctual-trace", move || {
            let (consumer, facts, rings) = reader.run(&seen);
            // Who dropped the capture does not ask.
            let _unasked = to_end.send((consumer, facts));
            drop(rings);
        });
        let thread = thread.map_err(|why| CaptureRefused::Thread { why: why.to_string() })?;
        let thread = OwnThread::new(thread);
        Ok(Self { stop, so_far, opened, formats, missing, ended, thread })
    }

    /// The events that are recorded.
    pub fn opened(&self) -> &[OpenedEvent] {
        &self.opened
    }

    /// The formats of this kernel's tracepoints, for a file that others shall read.
    pub fn formats(&self) -> &[EventFormat] {
        &self.formats
    }

    /// The events that are not recorded, with the evidence that is missing without them.
    pub fn missing(&self) -> &[MissingEvidence] {
        &self.missing
    }

    /// Records nothing until [`Self::resume`]; takes some two milliseconds. The events stay open,
    /// which costs the machine nearly nothing.
    pub fn pause(&self) {
        self.ask(true);
    }

    /// Records again.
    pub fn resume(&self) {
        self.ask(false);
    }

    /// Waits until the reader has done it, or is so far behind that it cannot be waited for.
    fn ask(&self, pause: bool) {
        self.so_far.ask(pause);
        let until_ns = now_ns(ClockId::Monotonic) + ASKED_MAX_NS;
        let mut looked_ns = now_ns(ClockId::Monotonic);
        while !self.so_far.is_as_asked() && looked_ns < until_ns {
            let _early = sleep_until_ns(looked_ns + ASKED_NS);
            looked_ns = now_ns(ClockId::Monotonic);
        }
    }

    /// Records nothing, and waits until what was recorded has been read, for at most two seconds:
    /// then the rings are empty.
    pub fn drain(&self) {
        self.pause();
        let until_ns = now_ns(ClockId::Monotonic) + DRAINED_MAX_NS;
        let mut looked_ns = now_ns(ClockId::Monotonic);
        while self.so_far.has_unread() && looked_ns < until_ns {
            let _early = sleep_until_ns(looked_ns + ASKED_NS);
            looked_ns = now_ns(ClockId::Monotonic);
        }
    }

    /// Its counts up to now.
    pub fn so_far(&self) -> CaptureSoFar {
        self.so_far.read()
    }

    /// Records no more, gives the rest to the consumer, and waits for that; `None` where the
    /// consumer panicked, and in a child that fork(2) made.
    pub fn end(self) -> Option<EndedCapture<C>> {
        drop(self.stop);
        if !self.thread.is_here() {
            return None;
        }
        let (consumer, facts) = self.ended.recv().ok()?;
        Some(EndedCapture { consumer, facts, closing: ClosingCapture { thread: self.thread } })
    }
}

#[cfg(test)]
mod tests;
