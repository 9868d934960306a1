//! Writes Perfetto's trace, which ui.perfetto.dev and its trace_processor open.
//!
//! Packets of ftrace events, which Perfetto shows as a machine's scheduling, and slices on tracks
//! of their own for what is said about them. Numbers of fields are those of Perfetto's
//! `protos/perfetto/trace`. Times are those of the events; a snapshot of clocks calls them
//! CLOCK_MONOTONIC where they are.
//!
//! Perfetto makes slices of pairs (an interrupt's entry and exit, a switch and the next one) and
//! goes on with what it saw last. So what was not recorded is closed: an end without a beginning is
//! left out, one that is missing is written, and where a switch is missing or a window ends, the
//! CPU goes on with a thread that is called `(not recorded)`. Events that would begin a slice which
//! nothing ends (`hrtimer_expire_entry`, `workqueue_execute_start`), that would show functions as
//! numbers, or that Perfetto has no message for, are `generic` ones there.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::capture::{CaptureClock, KeptWindow, KernelName, THREAD_NAMES_MAX};
use crate::decode::RECIPES;
use crate::encode::{NamedValue, is_function, named_values, shape_of};
use crate::event::{ContextFlags, ShortName, TaskName, Tid, TraceEvent, TraceKind, Vector};
use crate::symbols::Symbols;
use crate::write::CaptureHead;

/// Most events in one packet.
const EVENTS_MAX: usize = 256;

/// CPUs that Perfetto takes: with one more it opens nothing of a trace.
const CPUS_MAX: u32 = 1024;

/// Pairs that are open on a CPU, one in the other: a kernel has a handful.
const OPENED_MAX: usize = 16;

/// The number of the thread `(not recorded)` of the first CPU: above all that a kernel gives
/// (PID_MAX_LIMIT). Each CPU has one, for a thread of Perfetto runs on one at a time.
const NOT_RECORDED: Tid = (1 << 22) + 1;

/// The priority that is written for a thread whose own is unknown: that of nice 0.
const USUAL_PRIORITY: i32 = 120;

/// The state of a thread of which nothing more was recorded: asleep (TASK_INTERRUPTIBLE). Perfetto
/// would show one that could run as waiting for a CPU.
const ASLEEP: u64 = 1;
/// Other states of a thread that left its CPU, as `sched_switch` has them (Linux 4.14 on): dead or
/// about to be, an idle thread of the kernel.
const DEAD: u64 = 0x10 | 0x20;
const IDLE: u64 = 0x80;

/// The numbers of tracks of threads begin here, those of others below.
const THREAD_TRACKS: u64 = 1 << 32;

/// Fields of `TracePacket`.
mod packet {
    pub(super) const FTRACE_EVENTS: u32 = 1;
    pub(super) const PROCESS_TREE: u32 = 2;
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const SYSTEM_INFO: u32 = 45;
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

/// A stretch of time on a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// Its name.
    pub name: String,
    /// Its begin, ns of the events' clock.
    pub from_ns: u64,
    /// Its end, ns of the events' clock.
    pub to_ns: u64,
    /// What is known of it, by name.
    pub notes: Vec<(&'static str, String)>,
}

/// A slice of a track, with those that lie in it, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackSlice<'a> {
    /// The thread below whose own track it lies, where there is one.
    pub thread: Option<TaskName>,
    /// The track's name.
    pub track: &'a str,
    /// The slice.
    pub whole: &'a Slice,
    /// Its parts, in the order of time.
    pub parts: &'a [Slice],
}

/// One of the tracks of a name, of which there are as many as slices overlap: its number in the
/// file, and where its last slice ends.
#[derive(Debug)]
struct Lane {
    uuid: u64,
    end_ns: u64,
}

/// A pair of events that Perfetto makes a slice of on a CPU's track, by its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opened {
    Timer,
    Irq(u32),
    Softirq(u8),
}

impl Opened {
    /// The pair that an event begins.
    const fn begun_by(kind: &TraceKind) -> Option<Self> {
        match kind {
            TraceKind::VectorEntry(Vector::LocalTimer) => Some(Self::Timer),
            TraceKind::IrqEntry { irq, .. } => Some(Self::Irq(*irq)),
            TraceKind::SoftirqEntry(vector) => Some(Self::Softirq(*vector)),
            _ => None,
        }
    }

    /// The pair that an event ends.
    const fn ended_by(kind: &TraceKind) -> Option<Self> {
        match kind {
            TraceKind::VectorExit(Vector::LocalTimer) => Some(Self::Timer),
            TraceKind::IrqExit { irq, .. } => Some(Self::Irq(*irq)),
            TraceKind::SoftirqExit(vector) => Some(Self::Softirq(*vector)),
            _ => None,
        }
    }

    const fn softirq(&self) -> Option<u8> {
        match self {
            Self::Softirq(vector) => Some(*vector),
            Self::Timer | Self::Irq(_) => None,
        }
    }

    /// The event that ends it.
    const fn closing(self) -> TraceKind {
        match self {
            Self::Timer => TraceKind::VectorExit(Vector::LocalTimer),
            Self::Irq(irq) => TraceKind::IrqExit { irq, is_handled: None },
            Self::Softirq(vector) => TraceKind::SoftirqExit(vector),
        }
    }
}

/// A CPU, as Perfetto has it after what was written.
#[derive(Debug, Default)]
struct ShownCpu {
    /// The thread that runs there; `None` before anything was written.
    running: Option<Tid>,
    /// The thread that the last recorded switch brought, whether that was written or not; `None`
    /// where events were lost behind it.
    switched_to: Option<Tid>,
    opened: Vec<Opened>,
    /// The last event, ns.
    last_ns: u64,
}

/// Writes Perfetto's trace.
#[derive(Debug)]
pub struct PerfettoWriter<W> {
    out: W,
    symbols: Symbols,
    windows: Vec<KeptWindow>,
    /// The window that the last event lay in.
    window: Option<KeptWindow>,
    /// Windows that were left: an event of them that comes late is left out.
    left: usize,
    is_monotonic: bool,
    has_release: bool,
    has_clocks: bool,
    /// Events of one CPU that wait for their packet.
    bundle: Message,
    bundle_cpu: u32,
    bundle_events: usize,
    cpus: BTreeMap<u32, ShownCpu>,
    /// The system call that a thread is in.
    calls: BTreeMap<Tid, u32>,
    /// The CPUs on which threads wait that could run.
    ready: BTreeMap<Tid, u32>,
    /// The soft interrupts that a thread served when it was preempted (PREEMPT_RT).
    preempted: BTreeMap<Tid, Vec<u8>>,
    /// True where ends of soft interrupts are recorded.
    has_softirq_ends: bool,
    /// The threads by the names that they had last.
    tasks: BTreeMap<Tid, TaskName>,
    processes: BTreeMap<Tid, Tid>,
    has_tree: bool,
    /// Tracks by thread and name.
    tracks: BTreeMap<(Option<Tid>, String), Vec<Lane>>,
    track_count: u64,
    unwritten: u64,
}

impl<W: Write> PerfettoWriter<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn new(out: W, head: CaptureHead<'_>) -> io::Result<Self> {
        let mut writer = Self {
            out,
            symbols: head.symbols,
            windows: head.kept.windows().to_vec(),
            window: None,
            left: 0,
            is_monotonic: *head.clock == CaptureClock::Monotonic,
            has_release: head.kernel.release.as_deref().is_some_and(is_understood),
            has_clocks: false,
            bundle: Message::default(),
            bundle_cpu: 0,
            bundle_events: 0,
            cpus: BTreeMap::new(),
            calls: BTreeMap::new(),
            ready: BTreeMap::new(),
            preempted: BTreeMap::new(),
            has_softirq_ends: false,
            tasks: BTreeMap::new(),
            processes: BTreeMap::new(),
            has_tree: false,
            tracks: BTreeMap::new(),
            track_count: 0,
            unwritten: 0,
        };
        let KernelName { release, machine } = head.kernel;
        let mut name = Message::default();
        for (field, text) in [(3, release), (4, machine)] {
            if let Some(text) = text {
                name.bytes(field, text.as_bytes());
            }
        }
        if !name.0.is_empty() {
            name.bytes(1, b"Linux");
            let mut info = Message::default();
            info.message(1, &name);
            let mut packet = Message::default();
            packet.message(packet::SYSTEM_INFO, &info);
            writer.put_packet(packet)?;
        }
        Ok(writer)
    }

    /// Takes in the name that a thread had first, and its process where that is known.
    pub fn name_thread(&mut self, task: &TaskName, pid: Option<Tid>) {
        self.name(task);
        if let Some(pid) = pid.filter(|_| self.processes.len() < THREAD_NAMES_MAX) {
            self.processes.insert(task.tid, pid);
        }
    }

    fn name(&mut self, task: &TaskName) {
        if self.tasks.len() < THREAD_NAMES_MAX || self.tasks.contains_key(&task.tid) {
            self.tasks.insert(task.tid, *task);
        }
    }

    /// A thread by its last name.
    fn task(&self, tid: Tid) -> TaskName {
        let name: &[u8] = match tid {
            0 => b"swapper",
            NOT_RECORDED.. => b"(not recorded)",
            _ => b"",
        };
        let made = TaskName { tid, name: ShortName::new(name), kernel_priority: USUAL_PRIORITY };
        self.tasks.get(&tid).copied().filter(|_| name.is_empty()).unwrap_or(made)
    }

    /// Writes an event. They come in the order of time.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn write(&mut self, event: &TraceEvent) -> io::Result<()> {
        if event.cpu >= CPUS_MAX {
            self.unwritten += 1;
            return Ok(());
        }
        match &event.kind {
            TraceKind::Switch { previous, next, .. } => {
                self.name(previous);
                self.name(next);
            }
            TraceKind::Waking { task, .. } | TraceKind::Renamed { task } => self.name(task),
            _ => {}
        }
        if self.enter(event.at_ns)? {
            self.show(event)?;
        }
        if let TraceKind::Switch { next, .. } = event.kind {
            self.cpus.entry(event.cpu).or_default().switched_to = Some(next.tid);
        }
        Ok(())
    }

    /// Ends the window before this instant, and begins the one that it lies in; false where it lies
    /// in none.
    fn enter(&mut self, at_ns: u64) -> io::Result<bool> {
        if self.windows.is_empty() {
            return Ok(true);
        }
        if let Some(KeptWindow { to_ns, .. }) = self.window.filter(|window| window.to_ns < at_ns) {
            self.leave_window(to_ns)?;
            self.window = None;
            self.left = self.windows.partition_point(|window| window.to_ns <= to_ns);
        }
        if let Some(KeptWindow { from_ns, .. }) = self.window {
            return Ok(from_ns <= at_ns);
        }
        let place = self.windows.partition_point(|window| window.to_ns < at_ns).max(self.left);
        self.window = self.windows.get(place).copied().filter(|window| window.from_ns <= at_ns);
        let Some(KeptWindow { from_ns, .. }) = self.window else { return Ok(false) };
        let known: Vec<(u32, Tid)> =
            self.cpus.iter().filter_map(|(&cpu, shown)| Some((cpu, shown.switched_to?))).collect();
        for (cpu, tid) in known {
            self.run_from(cpu, from_ns, tid)?;
        }
        Ok(true)
    }

    /// Writes an event, and before it what Perfetto must see to read it right.
    fn show(&mut self, event: &TraceEvent) -> io::Result<()> {
        let TraceEvent { at_ns, cpu, tid, .. } = *event;
        if let TraceKind::Lost { .. } = event.kind {
            self.lose(cpu, at_ns)?;
            // lost_events: before those of this packet.
            self.flush()?;
            self.bundle_cpu = cpu;
            self.bundle.number(3, 1);
            self.bundle_events = 1;
            return Ok(());
        }
        if shape_of(&event.kind).is_none() {
            return Ok(());
        }
        if self.cpu(cpu).running != Some(tid) {
            self.run_from(cpu, at_ns, tid)?;
        }
        if let Some(opened) = Opened::begun_by(&event.kind) {
            if let Some(depth) = self.depth_of(cpu, opened) {
                self.close(cpu, depth)?;
            }
            if self.cpu(cpu).opened.len() == OPENED_MAX {
                self.unwritten += 1;
                return Ok(());
            }
            self.cpu(cpu).opened.push(opened);
        } else if let Some(ended) = Opened::ended_by(&event.kind) {
            let Some(depth) = self.depth_of(cpu, ended) else { return Ok(()) };
            self.close(cpu, depth + 1)?;
            self.cpu(cpu).opened.pop();
            self.preempted.remove(&tid);
        }
        self.has_softirq_ends |= matches!(event.kind, TraceKind::SoftirqExit(_));
        match event.kind {
            TraceKind::Switch { previous, previous_state, next } => {
                let previous_state = match previous_state {
                    state if self.has_release => state,
                    state if TraceKind::stays_runnable(state) => 0,
                    IDLE => ASLEEP,
                    state => state,
                };
                let kind = TraceKind::Switch { previous, previous_state, next };
                self.switch(&TraceEvent { kind, ..event.clone() }, previous_state, next.tid)
            }
            TraceKind::Waking { task, target_cpu } => {
                if self.ready.len() < THREAD_NAMES_MAX {
                    self.ready.insert(task.tid, target_cpu);
                }
                self.put_event(event)
            }
            TraceKind::SyscallEntry { number } => {
                self.end_call(cpu, at_ns, tid)?;
                if self.calls.len() == THREAD_NAMES_MAX {
                    self.unwritten += 1;
                    return Ok(());
                }
                self.calls.insert(tid, number);
                self.put_event(event)
            }
            TraceKind::SyscallExit { .. } => self.end_call(cpu, at_ns, tid),
            _ => self.put_event(event),
        }
    }

    /// Writes a switch. With PREEMPT_RT it may preempt a thread that serves soft interrupts: these
    /// go on once it runs again.
    fn switch(&mut self, event: &TraceEvent, state: u64, next: Tid) -> io::Result<()> {
        let TraceEvent { at_ns, cpu, tid: previous, .. } = *event;
        let served: Vec<u8> = self.cpu(cpu).opened.iter().filter_map(Opened::softirq).collect();
        self.cpu(cpu).last_ns = at_ns;
        self.close(cpu, 0)?;
        let goes_on = self.has_softirq_ends && previous != 0 && !served.is_empty();
        if goes_on && self.preempted.len() < THREAD_NAMES_MAX {
            self.preempted.insert(previous, served);
        }
        if state & DEAD != 0 {
            self.end_call(cpu, at_ns, previous)?;
        }
        self.put_event(event)?;
        if TraceKind::stays_runnable(state) && self.ready.len() < THREAD_NAMES_MAX {
            self.ready.insert(previous, cpu);
        }
        self.ready.remove(&next);
        self.cpu(cpu).running = Some(next);
        for vector in self.preempted.remove(&next).unwrap_or_default() {
            self.cpu(cpu).opened.push(Opened::Softirq(vector));
            self.put(cpu, at_ns, next, TraceKind::SoftirqEntry(vector))?;
        }
        Ok(())
    }

    /// A switch that was not recorded: this thread runs from here on.
    fn run_from(&mut self, cpu: u32, at_ns: u64, tid: Tid) -> io::Result<()> {
        self.close(cpu, 0)?;
        self.preempted.remove(&tid);
        self.ready.remove(&tid);
        let previous = self.cpu(cpu).running.unwrap_or(NOT_RECORDED + cpu);
        if previous == tid {
            return Ok(());
        }
        let (from, to) = (self.task(previous), self.task(tid));
        let kind = TraceKind::Switch { previous: from, previous_state: ASLEEP, next: to };
        self.put(cpu, at_ns, previous, kind)?;
        self.cpu(cpu).running = Some(tid);
        Ok(())
    }

    /// Nothing more was recorded of any CPU from here on.
    fn leave_window(&mut self, at_ns: u64) -> io::Result<()> {
        let cpus: Vec<u32> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            if self.cpu(cpu).running.is_some() {
                self.run_from(cpu, at_ns, NOT_RECORDED + cpu)?;
            }
        }
        let in_calls: Vec<Tid> = self.calls.keys().copied().collect();
        for tid in in_calls {
            self.end_call(self.bundle_cpu, at_ns, tid)?;
        }
        self.preempted.clear();
        self.forget_ready(self.bundle_cpu, at_ns, |_| true)
    }

    /// Events of a CPU were lost here.
    fn lose(&mut self, cpu: u32, at_ns: u64) -> io::Result<()> {
        if let Some(tid) = self.cpu(cpu).running {
            self.end_call(cpu, at_ns, tid)?;
            self.run_from(cpu, at_ns, NOT_RECORDED + cpu)?;
        }
        self.cpu(cpu).switched_to = None;
        self.forget_ready(cpu, at_ns, |waits_on| waits_on == cpu)
    }

    /// Of threads that waited for these CPUs nothing more was recorded. To Perfetto they wait until
    /// they run: they do, for no time.
    fn forget_ready(
        &mut self,
        cpu: u32,
        at_ns: u64,
        is_one: impl Fn(u32) -> bool,
    ) -> io::Result<()> {
        let tids: Vec<Tid> = self
            .ready
            .iter()
            .filter(|(_, waits_on)| is_one(**waits_on))
            .map(|(tid, _)| *tid)
            .collect();
        let running = self.cpu(cpu).running;
        for tid in tids {
            self.run_from(cpu, at_ns, tid)?;
        }
        match running {
            Some(running) => self.run_from(cpu, at_ns, running),
            None => Ok(()),
        }
    }

    fn cpu(&mut self, cpu: u32) -> &mut ShownCpu {
        self.cpus.entry(cpu).or_default()
    }

    /// How many pairs lie around this one on a CPU; `None` where it is not open.
    fn depth_of(&mut self, cpu: u32, pair: Opened) -> Option<usize> {
        self.cpu(cpu).opened.iter().rposition(|&opened| opened == pair)
    }

    /// Ends the pairs of a CPU that are open, but for so many: with its last event.
    fn close(&mut self, cpu: u32, depth: usize) -> io::Result<()> {
        let shown = self.cpu(cpu);
        let (last_ns, tid) = (shown.last_ns, shown.running.unwrap_or(NOT_RECORDED));
        while let Some(opened) = self.cpu(cpu).opened.get(depth..).and_then(<[Opened]>::last) {
            let end = opened.closing();
            self.cpu(cpu).opened.pop();
            self.put(cpu, last_ns, tid, end)?;
        }
        Ok(())
    }

    /// Ends the system call that a thread is in, where its beginning was written.
    fn end_call(&mut self, cpu: u32, at_ns: u64, tid: Tid) -> io::Result<()> {
        match self.calls.remove(&tid) {
            // By the number that it began with: Perfetto pairs them so, and a restarted call ends
            // with another.
            Some(number) => self.put(cpu, at_ns, tid, TraceKind::SyscallExit { number }),
            None => Ok(()),
        }
    }

    fn put(&mut self, cpu: u32, at_ns: u64, tid: Tid, kind: TraceKind) -> io::Result<()> {
        let context = ContextFlags::default();
        self.put_event(&TraceEvent { at_ns, cpu, tid, context, kind, chain: Box::default() })
    }

    fn put_event(&mut self, event: &TraceEvent) -> io::Result<()> {
        self.say_clocks(event.at_ns)?;
        if self.bundle_events > 0
            && (self.bundle_cpu != event.cpu || self.bundle_events == EVENTS_MAX)
        {
            self.flush()?;
        }
        self.bundle_cpu = event.cpu;
        self.cpu(event.cpu).last_ns = event.at_ns;
        let Some((field, body)) = ftrace(event, &self.symbols) else { return Ok(()) };
        let mut message = Message::default();
        message.number(1, event.at_ns).number(2, u64::from(event.tid)).message(field, &body);
        self.bundle.message(2, &message);
        self.bundle_events += 1;
        Ok(())
    }

    /// Ends the events, of which none follows: who belongs to which process, by the last names.
    fn end_events(&mut self) -> io::Result<()> {
        if self.has_tree {
            return Ok(());
        }
        self.has_tree = true;
        match self.window.take() {
            Some(KeptWindow { to_ns, .. }) => self.leave_window(to_ns)?,
            // What was recorded to its end has pairs that never ended; calls go on.
            None => {
                let cpus: Vec<u32> = self.cpus.keys().copied().collect();
                cpus.into_iter().try_for_each(|cpu| self.close(cpu, 0))?;
            }
        }
        self.flush()?;
        let mut tree = Message::default();
        let mut pids: Vec<Tid> = self.processes.values().copied().collect();
        pids.sort_unstable();
        pids.dedup();
        for pid in pids {
            let mut process = Message::default();
            process.number(1, u64::from(pid));
            if let Some(first) = self.tasks.get(&pid) {
                // Of a single word Perfetto takes what stands before a space.
                process.bytes(3, first.name.to_string().as_bytes()).bytes(3, b"");
            }
            tree.message(1, &process);
        }
        for (&tid, &pid) in &self.processes {
            let mut thread = Message::default();
            thread.number(1, u64::from(tid)).number(3, u64::from(pid));
            if let Some(task) = self.tasks.get(&tid) {
                thread.bytes(2, task.name.to_string().as_bytes());
            }
            tree.message(2, &thread);
        }
        let mut packet = Message::default();
        packet.message(packet::PROCESS_TREE, &tree);
        self.put_packet(packet)
    }

    /// Writes a slice and its parts, behind the last event. Those of one name come in the order of
    /// their beginnings; where they overlap they lie on several tracks.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn slice(&mut self, slice: &TrackSlice<'_>) -> io::Result<()> {
        self.end_events()?;
        self.say_clocks(slice.whole.from_ns)?;
        let uuid = self.lane(slice)?;
        self.put_edge(uuid, slice.whole.from_ns, Some(slice.whole))?;
        for part in slice.parts {
            self.put_edge(uuid, part.from_ns, Some(part))?;
            self.put_edge(uuid, part.to_ns.max(part.from_ns), None)?;
        }
        self.put_edge(uuid, slice.whole.to_ns.max(slice.whole.from_ns), None)
    }

    /// The track for a slice, made where each of its name is taken.
    fn lane(&mut self, slice: &TrackSlice<'_>) -> io::Result<u64> {
        let Slice { from_ns, to_ns, .. } = *slice.whole;
        let tid = slice.thread.map(|task| task.tid);
        let lanes = self.tracks.entry((tid, slice.track.to_owned())).or_default();
        if let Some(lane) = lanes.iter_mut().find(|lane| lane.end_ns <= from_ns) {
            lane.end_ns = to_ns;
            return Ok(lane.uuid);
        }
        self.track_count += 1;
        let (uuid, is_first) = (self.track_count, lanes.is_empty());
        lanes.push(Lane { uuid, end_ns: to_ns });
        let mut descriptor = Message::default();
        descriptor.number(1, uuid).bytes(2, slice.track.as_bytes());
        if let Some(task) = slice.thread {
            let parent = THREAD_TRACKS + u64::from(task.tid);
            if is_first {
                self.describe_thread(task.tid, parent)?;
            }
            descriptor.number(5, parent);
        }
        let mut packet = Message::default();
        packet.message(packet::TRACK_DESCRIPTOR, &descriptor);
        self.put_packet(packet)?;
        Ok(uuid)
    }

    /// The track of a thread, which has no name of its own: slices would lie among its system calls
    /// there.
    fn describe_thread(&mut self, tid: Tid, uuid: u64) -> io::Result<()> {
        let mut thread = Message::default();
        // Perfetto wants a process: where none is known, one of this thread alone.
        let pid = self.processes.get(&tid).copied().unwrap_or(tid);
        thread.number(1, u64::from(pid)).number(2, u64::from(tid));
        thread.bytes(5, self.task(tid).name.to_string().as_bytes());
        let mut descriptor = Message::default();
        descriptor.number(1, uuid).message(4, &thread);
        let mut packet = Message::default();
        packet.message(packet::TRACK_DESCRIPTOR, &descriptor);
        self.put_packet(packet)
    }

    /// Writes the beginning of a slice, or the end of the last that began on the track.
    fn put_edge(&mut self, uuid: u64, at_ns: u64, begun: Option<&Slice>) -> io::Result<()> {
        let (begin, end) = (1, 2);
        let mut event = Message::default();
        event.number(9, if begun.is_some() { begin } else { end }).number(11, uuid);
        if let Some(slice) = begun {
            event.bytes(22, b"punctual").bytes(23, slice.name.as_bytes());
            for (name, value) in &slice.notes {
                let mut note = Message::default();
                note.bytes(10, name.as_bytes()).bytes(6, value.as_bytes());
                event.message(4, &note);
            }
        }
        let clock = if self.is_monotonic { MONOTONIC } else { BOOTTIME };
        let mut packet = Message::default();
        packet
            .number(packet::TIMESTAMP, at_ns)
            .number(packet::TIMESTAMP_CLOCK_ID, clock)
            .message(packet::TRACK_EVENT, &event);
        self.put_packet(packet)
    }

    /// Events that were left out: of CPUs that Perfetto refuses, or of more pairs and calls at once
    /// than are followed.
    #[must_use]
    pub const fn unwritten(&self) -> u64 {
        self.unwritten
    }

    /// Perfetto takes times of ftrace for CLOCK_BOOTTIME: here both are one, or the clock has no
    /// name.
    fn say_clocks(&mut self, at_ns: u64) -> io::Result<()> {
        if self.has_clocks || !self.is_monotonic {
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
        self.put_packet(packet)
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
        self.put_packet(packet)
    }

    fn put_packet(&mut self, mut packet: Message) -> io::Result<()> {
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
        self.end_events()?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Returns true for a release of which Perfetto takes major and minor: numbers before two dots.
fn is_understood(release: &str) -> bool {
    let mut words = release.splitn(3, '.');
    let numbers = [words.next(), words.next()];
    let is_number = |word: &Option<&str>| word.is_some_and(|word| word.parse::<u32>().is_ok());
    numbers.iter().all(is_number) && words.next().is_some()
}

/// The messages that Perfetto has: the event's name and the number of its field in `FtraceEvent`,
/// then the number of each field in the order of the table of those that are understood.
const MESSAGES: &[(&str, u32, &[u32])] = &[
    ("sched_switch", 4, &[1, 2, 3, 4, 5, 6, 7]),
    ("cpu_frequency", 11, &[1, 2]),
    ("cpu_idle", 13, &[1]),
    ("sched_waking", 20, &[1, 2, 3, 5]),
    ("softirq_entry", 24, &[1]),
    ("softirq_exit", 25, &[1]),
    ("irq_handler_entry", 36, &[1, 2]),
    ("irq_handler_exit", 37, &[1, 2]),
    ("task_rename", 236, &[1, 3]),
    ("signal_generate", 325, &[6, 2, 4]),
    ("sys_enter", 329, &[1]),
    ("sys_exit", 330, &[1]),
    ("sched_pi_setprio", 353, &[1, 4, 3, 2]),
    ("sched_migrate_task", 491, &[1, 2, 3, 4, 5]),
    ("local_timer_entry", 559, &[]),
    ("local_timer_exit", 560, &[]),
];

/// `generic`, for every other event.
const GENERIC: u32 = 327;

/// The event's field in `FtraceEvent`, and its message; nothing for what is no event of ftrace.
fn ftrace(event: &TraceEvent, symbols: &Symbols) -> Option<(u32, Message)> {
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
        match event.kind {
            TraceKind::CpuIdle { .. } => {
                message.number(2, u64::from(event.cpu));
            }
            // Perfetto has no word for what is unknown, and most have something to do.
            TraceKind::IrqExit { is_handled: None, .. } => {
                message.number(2, 1);
            }
            _ => {}
        }
        return Some((field, message));
    }
    message.bytes(1, name.as_bytes());
    for (key, value) in values {
        let mut field = Message::default();
        field.bytes(1, key.as_bytes());
        match value {
            NamedValue::Number(address) if is_function(key) => {
                field.bytes(3, symbols.words(address).as_bytes())
            }
            NamedValue::Number(number) => field.number(5, number),
            NamedValue::Text(text) => field.bytes(3, text.as_bytes()),
        };
        message.message(2, &field);
    }
    Some((GENERIC, message))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::*;
    use crate::capture::KeptWakes;
    use crate::encode::tests::tracepoint;

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

    /// A writer of a kernel that is known, without functions.
    fn writer(windows: &[(u64, u64)]) -> PerfettoWriter<Vec<u8>> {
        let kernel = &KernelName { release: Some("6.18.44".into()), machine: None };
        let (clock, symbols) = (&CaptureClock::Monotonic, Symbols::default());
        let mut kept = KeptWakes::default();
        for &(from_ns, to_ns) in windows {
            kept.add_window(KeptWindow { from_ns, to_ns }).expect("in order and apart");
        }
        PerfettoWriter::new(Vec::new(), CaptureHead { clock, kernel, symbols, kept: &kept })
            .expect("to memory")
    }

    /// The packets of a trace, and what each has in a field of this number.
    fn packets(bytes: &[u8], wanted: u32) -> Vec<&[u8]> {
        let packets = fields(bytes).expect("whole").into_iter();
        let packets = packets.filter_map(|read| match read {
            Read::Bytes(1, packet) => part(packet, wanted),
            _ => None,
        });
        packets.collect()
    }

    /// The numbers of a message by field.
    fn numbers(message: &[u8]) -> BTreeMap<u32, u64> {
        let read = fields(message).expect("whole").into_iter();
        let numbers = read.filter_map(|read| match read {
            Read::Number(field, number) => Some((field, number)),
            Read::Bytes(..) => None,
        });
        numbers.collect()
    }

    /// An event as Perfetto reads it: when, where, by whom, its message and the numbers in that.
    #[derive(Debug)]
    struct Shown {
        at_ns: u64,
        cpu: u32,
        tid: u32,
        message: u32,
        numbers: BTreeMap<u32, u64>,
    }

    /// The events of a trace, in the order in which they were written.
    fn shown(bytes: &[u8]) -> Vec<Shown> {
        let mut events = Vec::new();
        for bundle in packets(bytes, packet::FTRACE_EVENTS) {
            let cpu = u32::try_from(numbers(bundle)[&1]).expect("a CPU");
            for read in fields(bundle).expect("whole") {
                let Read::Bytes(2, event) = read else { continue };
                let head = numbers(event);
                let body = fields(event).expect("whole").into_iter().find_map(|read| match read {
                    Read::Bytes(field, body) => Some((field, body)),
                    Read::Number(..) => None,
                });
                let (message, body) = body.expect("a message");
                let tid = u32::try_from(head[&2]).expect("a thread");
                let numbers = numbers(body);
                events.push(Shown { at_ns: head[&1], cpu, tid, message, numbers });
            }
        }
        events
    }

    /// Follows a trace as Perfetto does, and gives the threads that were woken; panics where that
    /// would find an end without a beginning, a beginning that never ends, a thread that left a CPU
    /// which another one had, or one on two CPUs; of a trace that was cut to windows also where a
    /// thread, an interrupt or a call lasts beyond the last one.
    fn follow(bytes: &[u8], is_cut_to_windows: bool) -> Vec<u64> {
        let mut running: BTreeMap<u32, u64> = BTreeMap::new();
        let mut opened: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
        let mut calls: BTreeMap<u32, u64> = BTreeMap::new();
        let mut last_ns: BTreeMap<u32, u64> = BTreeMap::new();
        let mut ready: BTreeSet<u64> = BTreeSet::new();
        let mut woken = Vec::new();
        for event in shown(bytes) {
            assert!(
                last_ns.insert(event.cpu, event.at_ns).unwrap_or(0) <= event.at_ns,
                "{event:?}"
            );
            let id = event.numbers.get(&1).copied().unwrap_or(0);
            match event.message {
                4 => {
                    let left = event.numbers[&2];
                    let had = running.insert(event.cpu, event.numbers[&6]);
                    assert!(had.is_none_or(|had| had == left), "{event:?} after {had:?}");
                    assert_eq!(u64::from(event.tid), left);
                    match event.numbers[&4] {
                        state if TraceKind::stays_runnable(state) => ready.insert(left),
                        _ => ready.remove(&left),
                    };
                    ready.remove(&event.numbers[&6]);
                }
                20 => {
                    woken.push(event.numbers[&2]);
                    ready.insert(event.numbers[&2]);
                }
                24 | 36 | 559 => {
                    let open = opened.entry((event.cpu, event.message)).or_default();
                    assert!(!open.contains(&id), "{event:?}");
                    open.push(id);
                }
                25 | 37 | 560 => {
                    let open = opened.entry((event.cpu, event.message - 1)).or_default();
                    assert_eq!(open.pop(), Some(id), "{event:?}");
                }
                329 => assert_eq!(calls.insert(event.tid, id), None, "{event:?}"),
                330 => assert_eq!(calls.remove(&event.tid), Some(id), "{event:?}"),
                _ => {}
            }
            // An event is of the thread that runs; of none only before the first switch.
            let runs = running.get(&event.cpu);
            let is_its = event.message == 4 || event.message == 330;
            assert!(is_its || runs == Some(&u64::from(event.tid)), "{event:?} of {runs:?}");
        }
        if is_cut_to_windows {
            assert!(opened.values().all(Vec::is_empty) && calls.is_empty(), "{opened:?} {calls:?}");
            let is_made = |(&cpu, &tid)| tid == u64::from(NOT_RECORDED + cpu);
            assert!(running.iter().all(is_made) && ready.is_empty(), "{running:?} {ready:?}");
        }
        woken
    }

    fn named(tid: u32, name: &[u8]) -> TaskName {
        TaskName { tid, name: ShortName::new(name), kernel_priority: 9 }
    }

    fn at(at_ns: u64, cpu: u32, tid: u32, kind: TraceKind) -> TraceEvent {
        TraceEvent { at_ns, tid, ..event(cpu, kind) }
    }

    fn switch(previous: u32, next: u32) -> TraceKind {
        let (previous, next) = (named(previous, b"a"), named(next, b"b"));
        TraceKind::Switch { previous, previous_state: 1, next }
    }

    #[test]
    fn events_lie_in_bundles_of_a_cpu() {
        let mut writer = writer(&[]);
        let task = named(9, b"servo");
        writer.write(&event(0, TraceKind::Waking { task, target_cpu: 3 })).unwrap();
        writer.write(&event(0, TraceKind::VectorEntry(Vector::Reschedule))).unwrap();
        writer.write(&event(1, TraceKind::Lost { count: 4 })).unwrap();
        writer.write(&event(1, TraceKind::CpuIdle { state: 2 })).unwrap();
        let bytes = writer.finish().unwrap();
        let bundles = packets(&bytes, packet::FTRACE_EVENTS);
        assert_eq!(bundles.len(), 2);
        let first = fields(bundles[0]).unwrap();
        assert_eq!(first.last(), Some(&Read::Number(1, 0)));
        assert_eq!(first.len(), 4, "who ran, two events, the CPU");
        assert_eq!(fields(bundles[1]).unwrap()[0], Read::Number(3, 1));
        let events = shown(&bytes);
        let kinds: Vec<_> = events.iter().map(|event| (event.cpu, event.message)).collect();
        assert_eq!(kinds, [(0, 4), (0, 20), (0, GENERIC), (1, 4), (1, 13)]);
        let waking = BTreeMap::from([(2, 9), (3, 9), (5, 3)]);
        assert_eq!(events[1].numbers, waking);
        assert_eq!(events[4].numbers, BTreeMap::from([(1, 2), (2, 1)]), "the state and the CPU");
        let info = packets(&bytes, packet::SYSTEM_INFO);
        assert_eq!(part(part(info[0], 1).unwrap(), 3), Some(&b"6.18.44"[..]));
    }

    #[test]
    fn what_was_not_recorded_is_closed() {
        let timer = TraceKind::VectorEntry(Vector::LocalTimer);
        let timer_end = TraceKind::VectorExit(Vector::LocalTimer);
        let (enter, exit) = (
            |number| TraceKind::SyscallEntry { number },
            |number| TraceKind::SyscallExit { number },
        );
        let mut writer = writer(&[(100, 200), (300, 400)]);
        let events = [
            // Before a window: who runs when it begins, and nothing else.
            at(20, 0, 7, enter(1)),
            at(50, 0, 7, switch(7, 8)),
            // An end without a beginning.
            at(110, 0, 8, timer_end.clone()),
            at(120, 0, 8, enter(230)),
            at(130, 0, 8, timer.clone()),
            at(140, 0, 8, TraceKind::SoftirqEntry(9)),
            // Woken, and not seen to run.
            at(150, 0, 8, TraceKind::Waking { task: named(5, b"c"), target_cpu: 1 }),
            // Neither the soft interrupt nor the timer's ends: the window does.
            at(310, 0, 5, TraceKind::SoftirqEntry(3)),
            // Of the window before, too late.
            at(190, 0, 8, TraceKind::SoftirqEntry(1)),
            // A switch is missing.
            at(320, 0, 6, exit(230)),
            at(330, 0, 6, timer.clone()),
            at(340, 0, 6, timer),
            at(350, 0, 6, timer_end),
            at(500, 0, 6, switch(6, 7)),
            at(390, 0, 6, TraceKind::SoftirqEntry(1)),
        ];
        events.iter().for_each(|event| writer.write(event).unwrap());
        let bytes = writer.finish().unwrap();
        assert_eq!(follow(&bytes, true), [5]);
        let missing = NOT_RECORDED;
        let lines: Vec<_> =
            shown(&bytes).iter().map(|event| (event.at_ns, event.tid, event.message)).collect();
        let expected = [
            (100, missing, 4),
            (120, 8, 329),
            (130, 8, 559),
            (140, 8, 24),
            (150, 8, 20),
            (150, 8, 25),
            (150, 8, 560),
            (200, 8, 4),
            (200, 8, 330),
            (200, missing, 4),
            (200, 5, 4),
            (300, missing, 4),
            (310, 8, 4),
            (310, 5, 24),
            (310, 5, 25),
            (320, 5, 4),
            (330, 6, 559),
            (330, 6, 560),
            (340, 6, 559),
            (350, 6, 560),
            (400, 6, 4),
        ];
        assert_eq!(lines, expected);
    }

    /// The events of a trace of all that is written, by their times and messages.
    fn lines(events: &[TraceEvent]) -> Vec<(u64, u32)> {
        let mut writer = writer(&[]);
        events.iter().for_each(|event| writer.write(event).unwrap());
        let bytes = writer.finish().unwrap();
        follow(&bytes, false);
        shown(&bytes).iter().map(|event| (event.at_ns, event.message)).collect()
    }

    #[test]
    fn soft_interrupts_of_a_preempted_thread_go_on_when_it_does() {
        let softirq = |at_ns, tid| at(at_ns, 0, tid, TraceKind::SoftirqEntry(3));
        let ended = at(5, 0, 7, TraceKind::SoftirqExit(3));
        let events = [
            softirq(1, 7),
            ended.clone(),
            softirq(10, 7),
            at(20, 0, 7, switch(7, 8)),
            at(30, 0, 8, switch(8, 7)),
            at(40, 0, 7, TraceKind::SoftirqExit(3)),
        ];
        let seen = lines(&events);
        let expected = [(10, 24), (20, 25), (20, 4), (30, 4), (30, 24), (40, 25)];
        assert_eq!(seen[3..], expected);
        // Where ends are not recorded, and of an idle thread, it is over.
        let without =
            lines(&[softirq(10, 7), at(20, 0, 7, switch(7, 8)), at(30, 0, 8, switch(8, 7))]);
        assert_eq!(without, [(10, 4), (10, 24), (20, 25), (20, 4), (30, 4)]);
        let idle = [softirq(1, 0), ended, softirq(10, 0), at(20, 0, 0, switch(0, 8))];
        let idle = lines(&[&idle[..], &[at(30, 1, 8, switch(8, 0))]].concat());
        assert_eq!(idle.last(), Some(&(30, 4)));
    }

    #[test]
    fn losses_dead_threads_and_bounds_end_what_is_open() {
        let call = |at_ns, tid| at(at_ns, 0, tid, TraceKind::SyscallEntry { number: 1 });
        let lost = at(20, 0, 0, TraceKind::Lost { count: 9 });
        let seen = lines(&[call(10, 7), lost, call(30, 7)]);
        assert_eq!(seen, [(10, 4), (10, 329), (20, 330), (20, 4), (30, 4), (30, 329)]);
        let (previous, next) = (named(7, b"a"), named(8, b"b"));
        let died = TraceKind::Switch { previous, previous_state: 0x10, next };
        assert_eq!(lines(&[call(10, 7), at(20, 0, 7, died)])[2..], [(20, 330), (20, 4)]);
        // More interrupts in each other than any kernel has, and a CPU that Perfetto refuses.
        let irq = |irq| {
            let name = ShortName::new(b"nic");
            at(10, 0, 7, TraceKind::IrqEntry { irq, name })
        };
        let mut writer = writer(&[]);
        (0..20).for_each(|number| writer.write(&irq(number)).unwrap());
        writer.write(&at(10, CPUS_MAX, 7, TraceKind::SoftirqEntry(1))).unwrap();
        assert_eq!(writer.unwritten(), 5);
        let bytes = writer.finish().unwrap();
        let count = |message| shown(&bytes).iter().filter(|event| event.message == message).count();
        assert_eq!((count(36), count(37)), (OPENED_MAX, OPENED_MAX));
        let answers: Vec<_> = shown(&bytes)
            .iter()
            .filter(|event| event.message == 37)
            .map(|event| event.numbers[&2])
            .collect();
        assert_eq!(answers, [1; OPENED_MAX]);
        let releases = ["6.18.44-rt1", "6.12-rc6-amd64", "", "6.x.1", "6.1.0"];
        assert_eq!(releases.map(is_understood), [true, false, false, false, true]);
    }

    #[test]
    fn functions_have_their_names_and_threads_their_process() {
        let symbols = Symbols::parse(b"ffffffff81000000 T hrtimer_wakeup\n").unwrap();
        let kernel = KernelName::default();
        let (clock, kept) = (&CaptureClock::Unknown, &KeptWakes::default());
        let head = CaptureHead { clock, kernel: &kernel, symbols, kept };
        let mut writer = PerfettoWriter::new(Vec::new(), head).unwrap();
        writer.name_thread(&named(9, b"sh"), Some(5));
        writer.name_thread(&named(5, b"main"), Some(5));
        writer.name_thread(&named(4, b"stray"), None);
        let function = 0xffff_ffff_8100_0000;
        let kind = TraceKind::TimerExpireEntry { timer: 1, function, now_ns: 2 };
        writer.write(&at(10, 0, 9, kind)).unwrap();
        writer.write(&at(20, 0, 9, TraceKind::Renamed { task: named(9, b"servo") })).unwrap();
        let (previous, next) = (named(9, b"servo"), named(4, b"stray"));
        let preempted = TraceKind::Switch { previous, previous_state: 0x100, next };
        writer.write(&at(25, 0, 9, preempted)).unwrap();
        let slice = |from_ns, to_ns| Slice {
            name: "late".to_owned(),
            from_ns,
            to_ns,
            notes: vec![("cpu", "0".to_owned())],
        };
        // The second overlaps the first, the third none.
        for whole in [slice(10, 30), slice(20, 40), slice(30, 50)] {
            let parts = [slice(whole.from_ns, whole.to_ns)];
            let thread = Some(named(9, b"servo"));
            let (whole, parts) = (&whole, &parts[..]);
            writer.slice(&TrackSlice { thread, track: "late wakes", whole, parts }).unwrap();
        }
        let bytes = writer.finish().unwrap();
        assert!(bytes.windows(14).any(|text| text == b"hrtimer_wakeup"));
        let events = shown(&bytes);
        assert_eq!(events[1].message, GENERIC, "Perfetto would wait for its end");
        let switch = events.last().expect("a switch");
        assert_eq!((switch.message, switch.numbers[&4]), (4, 0), "4.4 has no such state");
        assert!(packets(&bytes, packet::CLOCK_SNAPSHOT).is_empty(), "nobody knows which clock");
        assert!(packets(&bytes, packet::SYSTEM_INFO).is_empty());
        let trees = packets(&bytes, packet::PROCESS_TREE);
        let processes: Vec<_> = fields(trees[0]).unwrap().into_iter().collect();
        let process = |name: &str| [&[8, 5, 26, 4][..], name.as_bytes(), &[26, 0]].concat();
        let thread = |tid: u8, name: &str| {
            [&[8, tid, 24, 5, 18, name.len() as u8][..], name.as_bytes()].concat()
        };
        let expected = [(1, process("main")), (2, thread(5, "main")), (2, thread(9, "servo"))];
        let expected = expected.each_ref().map(|(field, body)| Read::Bytes(*field, body));
        assert_eq!(processes, expected);
        let descriptors = packets(&bytes, packet::TRACK_DESCRIPTOR);
        let parents: Vec<_> =
            descriptors.iter().map(|track| numbers(track).get(&5).copied()).collect();
        let parent = numbers(descriptors[0])[&1];
        assert_eq!(parents, [None, Some(parent), Some(parent)]);
        assert_eq!(part(descriptors[0], 2), None, "it has the name of its thread");
        let edges: Vec<_> = packets(&bytes, packet::TRACK_EVENT).into_iter().map(numbers).collect();
        let edges: Vec<_> = edges.iter().map(|edge| (edge[&9], edge[&11])).collect();
        let [first, second] = [1, 2].map(|place| numbers(descriptors[place])[&1]);
        let lane = |lane| [(1, lane), (1, lane), (2, lane), (2, lane)];
        assert_eq!(edges, [lane(first), lane(second), lane(first)].concat());
    }

    /// Events of few threads, interrupts and calls, so that they meet, and losses.
    fn meeting() -> impl Strategy<Value = (u32, TraceKind)> {
        let few = 0u32..4;
        let pair = (few.clone(), 0u8..2, any::<bool>());
        let name = ShortName::new(b"nic");
        prop_oneof![
            4 => (few.clone(), few.clone(), 0usize..4).prop_map(|(from, to, place)| {
                let (previous, next) = (named(from, b"a"), named(to, b"b"));
                let previous_state = [0, 1, 0x10, TraceKind::PREEMPTED][place];
                (from, TraceKind::Switch { previous, previous_state, next })
            }),
            2 => (few.clone(), few.clone()).prop_map(|(tid, woken)| {
                (tid, TraceKind::Waking { task: named(woken, b"c"), target_cpu: woken % 3 })
            }),
            2 => pair.clone().prop_map(|(tid, vector, begins)| match begins {
                true => (tid, TraceKind::SoftirqEntry(vector)),
                false => (tid, TraceKind::SoftirqExit(vector)),
            }),
            1 => pair.clone().prop_map(move |(tid, irq, begins)| match begins {
                true => (tid, TraceKind::IrqEntry { irq: irq.into(), name }),
                false => (tid, TraceKind::IrqExit { irq: irq.into(), is_handled: None }),
            }),
            1 => pair.clone().prop_map(|(tid, _, begins)| match begins {
                true => (tid, TraceKind::VectorEntry(Vector::LocalTimer)),
                false => (tid, TraceKind::VectorExit(Vector::LocalTimer)),
            }),
            2 => pair.prop_map(|(tid, number, begins)| match begins {
                true => (tid, TraceKind::SyscallEntry { number: number.into() }),
                false => (tid, TraceKind::SyscallExit { number: number.into() }),
            }),
            1 => few.prop_map(|tid| (tid, TraceKind::Lost { count: 1 })),
        ]
    }

    proptest! {
        #[test]
        fn any_events_are_read_without_a_fault(
            events in vec((meeting(), 0u64..60, 0u32..3), 0..90),
            windows in vec(0u64..2_000, 0..5),
        ) {
            let mut edges = windows;
            edges.sort_unstable();
            edges.dedup();
            let windows: Vec<_> = edges.chunks_exact(2).map(|edge| (edge[0], edge[1])).collect();
            let mut writer = writer(&windows);
            let (mut at_ns, mut woken) = (0, Vec::new());
            for ((tid, kind), step_ns, cpu) in events {
                at_ns += step_ns;
                let has = |&(from, to): &(u64, u64)| (from..=to).contains(&at_ns);
                let is_shown = windows.is_empty() || windows.iter().any(has);
                if let (TraceKind::Waking { task, .. }, true) = (&kind, is_shown) {
                    woken.push(u64::from(task.tid));
                }
                writer.write(&at(at_ns, cpu, tid, kind)).unwrap();
            }
            let bytes = writer.finish().unwrap();
            let mut seen = follow(&bytes, !windows.is_empty());
            seen.sort_unstable();
            woken.sort_unstable();
            prop_assert_eq!(seen, woken, "none is left out");
        }

        #[test]
        fn any_fields_are_whole_messages(events in vec(tracepoint(), 0..40)) {
            let mut writer = writer(&[]);
            events.iter().for_each(|event| writer.write(event).unwrap());
            let bytes = writer.finish().unwrap();
            let tids: BTreeSet<u32> = shown(&bytes).iter().map(|event| event.tid).collect();
            let is_there = |event: &&TraceEvent| {
                event.cpu >= CPUS_MAX
                    || Opened::ended_by(&event.kind).is_some()
                    || matches!(event.kind, TraceKind::SyscallExit { .. })
                    || tids.contains(&event.tid)
            };
            prop_assert!(events.iter().all(|event| is_there(&event)));
        }
    }
}
