//! The thread that empties the rings: every two milliseconds, a bounded amount, in order of time.
//!
//! It never waits for the kernel to wake it, and never reads a counter, for both would interrupt a
//! measured CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_host::facts::online_cpus;
use punctual_host::root::Root;
use punctual_host::threads::RunningProcess;
use punctual_os::Errno;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::perf::RECORD_BYTES_MAX;
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_trace::decode::RecordPlace;
use punctual_trace::event::{Tid, TraceEvent, TraceKind};
use punctual_trace::merge::Merge;
use punctual_trace::perf_record::PerfRecord;
use punctual_trace::perf_stream::{PerfStream, StreamItem};

use super::followed::{FollowedThread, ThreadTarget, find_threads};
use super::offsets::ClockOffsets;
use super::processes::ProcessBook;
use super::rings::{CpuRing, Rings};
use super::{CaptureConsumer, CaptureItem, CapturePlan, EventSet};

/// The time between two looks at the rings, ns.
const POLL_NS: u64 = 2_000_000;
/// An event is given on when it is this old: a CPU may stamp one, and write it so much later.
const HOLD_BACK_NS: u64 = 5_000_000;
/// Bytes that are copied at once, some of the longest records.
const BUFFER_BYTES: usize = 16 * (RECORD_BYTES_MAX + 1);
/// The most bytes of a ring that are read in one look.
const LOOK_BYTES: u64 = 8 << 20;
/// The most events that are held back, some 20 MB.
const HELD_MAX: usize = 1 << 17;
/// Bytes of the shortest records that become events: header, stamp, and the fields of a tracepoint.
const RECORD_BYTES_LEAST: usize = 48;
/// The time between two looks at the clocks, ns.
const CLOCKS_NS: u64 = 100_000_000;
/// The time between two looks at the CPUs that are online, and at threads of which no event came,
/// ns.
const MACHINE_NS: u64 = 1_000_000_000;
/// The time between two looks at threads that may have begun or ended, ns.
const THREADS_NS: u64 = 100_000_000;

/// The counts and times of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureTally {
    /// Its beginning, ns on CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// Its end, ns on CLOCK_MONOTONIC.
    pub ended_ns: u64,
    /// Events that were given on.
    pub events: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Records that the kernel dropped, for a ring was full.
    pub lost: u64,
    /// Events of a thread that, by the events before, did not run: a switch was not recorded. Of
    /// [`EventSet::Full`] alone.
    pub holes: u64,
    /// Records that were not understood.
    pub damaged: u64,
    /// Events that were given on after a later one.
    pub out_of_order: u64,
    /// Bytes of each ring.
    pub ring_bytes: usize,
    /// The most bytes that were unread in one.
    pub fullest_bytes: u64,
    /// CPU time of the reader, with that of the consumer, ns.
    pub reader_cpu_ns: u64,
    /// True where the reader had to run on a measured CPU.
    pub shares_cpu: bool,
    /// The refusal of the reader's policy.
    pub policy_refused: Option<Errno>,
    /// The most of the recorded CPUs that were offline at once.
    pub offline_cpus: u32,
    /// CPUs that came online and are not recorded, or are not part of the plan.
    pub unseen_cpus: u32,
    /// The clocks at the end.
    pub clocks: ClockOffsets,
}

/// The counts of a capture up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureSoFar {
    /// Events that were given on.
    pub events: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Records that the kernel dropped.
    pub lost: u64,
    /// CPU time of the reader, ns.
    pub reader_cpu_ns: u64,
}

/// [`CaptureSoFar`], as another thread sees it.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    events: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    reader_cpu_ns: AtomicU64,
    /// True where nothing is to be recorded for a time.
    pause: AtomicBool,
    /// True where nothing is recorded.
    is_paused: AtomicBool,
    /// True where a ring had something at the last look; false before the first one.
    has_unread: AtomicBool,
}

impl Gauge {
    /// Asks for a pause, or for its end.
    pub(super) fn ask(&self, pause: bool) {
        self.pause.store(pause, Ordering::Release);
    }

    /// Returns true where recording is paused, or goes on, as was requested last.
    pub(super) fn is_as_asked(&self) -> bool {
        self.is_paused.load(Ordering::Acquire) == self.pause.load(Ordering::Acquire)
    }

    /// Returns true where a ring had something to be read at the last look.
    pub(super) fn has_unread(&self) -> bool {
        self.has_unread.load(Ordering::Acquire)
    }

    pub(super) fn read(&self) -> CaptureSoFar {
        CaptureSoFar {
            events: self.events.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            reader_cpu_ns: self.reader_cpu_ns.load(Ordering::Relaxed),
        }
    }

    fn write(&self, facts: &CaptureTally) {
        self.events.store(facts.events, Ordering::Relaxed);
        self.bytes.store(facts.bytes, Ordering::Relaxed);
        self.lost.store(facts.lost, Ordering::Relaxed);
        self.reader_cpu_ns.store(now_ns(ClockId::ThreadCpu), Ordering::Relaxed);
    }
}

/// The state of the reader's thread.
#[derive(Debug)]
pub(super) struct Reader<C> {
    rings: Rings,
    /// The instant of the last record of each ring, ns, in their order.
    last_ns: Vec<u64>,
    merge: Merge,
    buffer: Vec<u8>,
    given: Given<C>,
    follow: Follow,
    processes: ProcessBook,
    cpus: CpuMask,
    policy: SchedPolicy,
    has_records: bool,
    gauge: Arc<Gauge>,
}

/// The consumer, with what is counted of its events.
#[derive(Debug)]
struct Given<C> {
    consumer: C,
    facts: CaptureTally,
    /// The thread that runs on each CPU, where that is known; empty where switches are filtered.
    running: Vec<Option<Tid>>,
}

impl<C: CaptureConsumer> Given<C> {
    fn give(&mut self, event: &TraceEvent) {
        self.facts.events += 1;
        if let TraceKind::Lost { count } = event.kind {
            self.facts.lost += count;
        }
        if let Some(running) = self.running.get_mut(event.cpu as usize) {
            self.facts.holes += u64::from(is_hole(running, event));
        }
        self.consumer.take(CaptureItem::Event(event));
    }

    /// Gives on the events that can have none before them.
    fn give_all(&mut self, merge: &mut Merge) {
        while let Some(event) = merge.pop() {
            self.give(&event);
        }
    }
}

/// Returns true where an event is of a thread that cannot be running; sets `running` to the thread
/// that runs after it.
fn is_hole(running: &mut Option<Tid>, event: &TraceEvent) -> bool {
    match event.kind {
        TraceKind::Lost { .. } => {
            *running = None;
            return false;
        }
        // Stamped in the thread's own namespace.
        TraceKind::PageFaultExit | TraceKind::Renamed { .. } => return false,
        _ => {}
    }
    let is_hole = running.is_some_and(|running| running != event.tid);
    *running = match &event.kind {
        TraceKind::Switch { next, .. } => Some(next.tid),
        _ => Some(event.tid),
    };
    is_hole
}

/// The process whose threads are followed.
#[derive(Debug)]
struct Follow {
    root: Root,
    process: Option<i32>,
    threads: Vec<FollowedThread>,
    /// True where a thread of any process began or ended since the last look.
    is_stale: bool,
    looked_ns: u64,
}

impl Follow {
    /// Looks at the threads of the process; returns true where there are others than before.
    fn look(&mut self, now_ns: u64) -> bool {
        let Some(pid) = self.process else { return false };
        let since = now_ns.saturating_sub(self.looked_ns);
        if since < if self.is_stale { THREADS_NS } else { MACHINE_NS } {
            return false;
        }
        (self.looked_ns, self.is_stale) = (now_ns, false);
        // A process that ended has none.
        let threads = find_threads(&self.root, &ThreadTarget::Process(pid)).unwrap_or_default();
        let changed = threads != self.threads;
        self.threads = threads;
        changed
    }
}

/// The CPUs of a reader that keeps off these, and true where it cannot keep off: those of the
/// process's first thread, else any. The caller's own are no guide: it may be the thread that is
/// measured.
pub(super) fn reader_cpus(root: &Root, measured: &[u32]) -> (CpuMask, bool) {
    let mut every_cpu = CpuMask::EMPTY;
    online_cpus(root).iter().for_each(|cpu| every_cpu.insert(cpu));
    let first = affinity::get(std::process::id().cast_signed()).unwrap_or(every_cpu);
    let without = |cpus: CpuMask| cpus.without(measured.iter().copied());
    without(first).or_else(|| without(every_cpu)).map_or((every_cpu, true), |cpus| (cpus, false))
}

impl<C: CaptureConsumer> Reader<C> {
    /// A reader of rings that are open, which begin to be filled: at once, for its thread may wait
    /// for a CPU while the starter goes on.
    pub(super) fn new(plan: &CapturePlan, rings: Rings, consumer: C, gauge: Arc<Gauge>) -> Self {
        let root = Root::live();
        let (cpus, shares_cpu) = reader_cpus(&root, &plan.measured);
        let highest = rings.cpus().max().unwrap_or(0) as usize;
        let running = match plan.set {
            EventSet::Full => vec![None; highest + 1],
            EventSet::Top => Vec::new(),
        };
        let began_ns = now_ns(ClockId::Monotonic);
        // Of a CPU that went offline since it was opened nothing comes, and that is counted.
        let _offline = rings.begin();
        let facts = CaptureTally {
            began_ns,
            ring_bytes: rings.ring_bytes(),
            shares_cpu,
            offline_cpus: rings.offline(),
            ..CaptureTally::default()
        };
        let follow = Follow {
            root,
            process: plan.process,
            threads: Vec::new(),
            is_stale: true,
            looked_ns: 0,
        };
        Self {
            last_ns: vec![0; rings.cpus().count()],
            rings,
            merge: Merge::new(HELD_MAX),
            buffer: vec![0; BUFFER_BYTES],
            given: Given { consumer, facts, running },
            follow,
            processes: ProcessBook::default(),
            cpus,
            policy: plan.reader,
            has_records: plan.has_records,
            gauge,
        }
    }

    /// Reads until it is stopped; returns the rings, which are to be closed then.
    pub(super) fn run(mut self, stop: &AtomicBool) -> (C, CaptureTally, Rings) {
        // On a CPU that went offline meanwhile it runs where the kernel puts it.
        let _anywhere = affinity::set(0, &self.cpus);
        if self.policy != SchedPolicy::Other {
            self.given.facts.policy_refused = scheduler::set(0, self.policy).err();
        }
        let (mut clocks_ns, mut machine_ns) = (0, 0);
        let mut look_ns = now_ns(ClockId::Monotonic);
        // Once at least, also where this thread gets no CPU before the end.
        self.look_at_threads(look_ns);
        while !stop.load(Ordering::Acquire) {
            let now = now_ns(ClockId::Monotonic);
            if now >= clocks_ns {
                clocks_ns = now + CLOCKS_NS;
                self.clocks();
            }
            if now >= machine_ns {
                machine_ns = now + MACHINE_NS;
                self.count_cpus();
            }
            self.look_at_threads(now);
            let had_some = self.look(now);
            self.gauge.has_unread.store(had_some, Ordering::Release);
            self.pause_as_asked();
            self.gauge.write(&self.given.facts);
            look_ns = (look_ns + POLL_NS).max(now_ns(ClockId::Monotonic));
            // A signal that ends a sleep early does no harm.
            let _early = sleep_until_ns(look_ns);
        }
        self.end()
    }

    fn look_at_threads(&mut self, now_ns: u64) {
        if self.follow.look(now_ns) {
            self.given.consumer.take(CaptureItem::Threads(&self.follow.threads));
        }
    }

    /// Records nothing while that is asked for. Events stay open: to switch them costs an
    /// interrupt of each CPU, to open and close them some hundred.
    fn pause_as_asked(&self) {
        let pause = self.gauge.pause.load(Ordering::Acquire);
        if pause == self.gauge.is_paused.load(Ordering::Relaxed) {
            return;
        }
        if pause {
            self.rings.stop();
        } else {
            // Of a CPU that is offline now nothing comes, and that is counted.
            let _offline = self.rings.begin();
        }
        self.gauge.is_paused.store(pause, Ordering::Release);
    }

    /// Stops recording, and reads what is left in the rings.
    fn end(mut self) -> (C, CaptureTally, Rings) {
        // Room for the kernel's word about what it dropped, before nothing is written any more.
        self.look(now_ns(ClockId::Monotonic));
        self.rings.stop();
        self.given.facts.ended_ns = now_ns(ClockId::Monotonic);
        while self.look(now_ns(ClockId::Monotonic)) {}
        self.merge.finish();
        self.given.give_all(&mut self.merge);
        self.clocks();
        self.count_cpus();
        self.gauge.write(&self.given.facts);
        let mut facts = self.given.facts;
        facts.out_of_order = self.merge.out_of_order();
        facts.damaged += self.merge.foreign();
        facts.reader_cpu_ns = now_ns(ClockId::ThreadCpu);
        (self.given.consumer, facts, self.rings)
    }

    fn clocks(&mut self) {
        let clocks = ClockOffsets::take();
        self.given.facts.clocks = clocks;
        self.given.consumer.take(CaptureItem::Clocks(clocks));
    }

    /// Counts the CPUs that are offline, or online and not recorded.
    fn count_cpus(&mut self) {
        let online = online_cpus(&self.follow.root);
        if online.is_empty() {
            return;
        }
        let is_on = |cpu: &u32| online.contains(*cpu);
        let recorded: Vec<u32> = self.rings.cpus().collect();
        let gone = recorded.iter().filter(|cpu| !is_on(cpu)).count();
        let unseen = online.iter().filter(|cpu| !recorded.contains(cpu)).count();
        let facts = &mut self.given.facts;
        let gone = u32::try_from(gone).unwrap_or(u32::MAX).saturating_add(self.rings.offline());
        facts.offline_cpus = facts.offline_cpus.max(gone);
        facts.unseen_cpus = facts.unseen_cpus.max(u32::try_from(unseen).unwrap_or(u32::MAX));
    }

    /// Reads the rings in turns, and gives on the events that can have none before them. Returns
    /// true where there was something.
    fn look(&mut self, now_ns: u64) -> bool {
        let (rings, stream) = self.rings.parts();
        let mut backlog = Backlog::new(rings.iter().map(|ring| ring.ring.unread()));
        let mut read = Read {
            stream,
            merge: &mut self.merge,
            given: &mut self.given,
            buffer: &mut self.buffer,
            is_stale: &mut self.follow.is_stale,
            root: &self.follow.root,
            processes: &mut self.processes,
            has_records: self.has_records,
        };
        read.given.facts.fullest_bytes = read.given.facts.fullest_bytes.max(backlog.fullest());
        let turn_bytes = turn_bytes(rings.len());
        let mut any = false;
        while let Some(place) = backlog.next(&self.last_ns) {
            let bytes = read.turn(&mut rings[place], &mut self.last_ns[place], turn_bytes);
            any |= bytes > 0;
            backlog.take(place, bytes);
            read.merge.settle(backlog.settled_ns(&self.last_ns, now_ns));
            read.given.give_all(read.merge);
        }
        read.merge.settle(backlog.settled_ns(&self.last_ns, now_ns));
        read.given.give_all(read.merge);
        any
    }
}

/// One look at the rings.
struct Read<'a, C> {
    stream: &'a PerfStream,
    merge: &'a mut Merge,
    given: &'a mut Given<C>,
    buffer: &'a mut [u8],
    is_stale: &'a mut bool,
    root: &'a Root,
    processes: &'a mut ProcessBook,
    has_records: bool,
}

/// Bytes that are read of one of so many rings before it is another's turn: of all together no more
/// than is held back, so that none goes on before what others still have.
fn turn_bytes(rings: usize) -> usize {
    let of_each = HELD_MAX / 2 * RECORD_BYTES_LEAST / rings.max(1);
    of_each.clamp(RECORD_BYTES_MAX + 1, BUFFER_BYTES)
}

/// What rings have unread in one look: those that are behind come first.
#[derive(Debug)]
struct Backlog {
    /// By ring: what was unread, and how much of it was read.
    rings: Vec<(u64, u64)>,
}

impl Backlog {
    fn new(unread: impl Iterator<Item = u64>) -> Self {
        Self { rings: unread.map(|bytes| (bytes, 0)).collect() }
    }

    /// The most that one has.
    fn fullest(&self) -> u64 {
        self.rings.iter().map(|(unread, _)| *unread).max().unwrap_or(0)
    }

    /// The place of the ring that is furthest behind; `last_ns` are the instants up to which they
    /// were read. `None` where nothing is left, or where that ring has had its share of this look:
    /// to go on with the others would give their events before what it still has.
    fn next(&self, last_ns: &[u64]) -> Option<usize> {
        let places = self.rings.iter().zip(last_ns).enumerate();
        let behind = places.filter(|(_, ((unread, read), _))| read < unread);
        let (place, ((_, read), _)) = behind.min_by_key(|(_, (_, last_ns))| **last_ns)?;
        (*read < LOOK_BYTES).then_some(place)
    }

    /// So many bytes were read of a ring; none where it has no whole record.
    fn take(&mut self, place: usize, bytes: u64) {
        let (unread, read) = &mut self.rings[place];
        *read = if bytes == 0 { *unread } else { *read + bytes };
    }

    /// The instant before which nothing comes any more, ns.
    fn settled_ns(&self, last_ns: &[u64], now_ns: u64) -> u64 {
        let behind = self.rings.iter().zip(last_ns).filter(|((unread, read), _)| read < unread);
        let first_ns = behind.map(|(_, last_ns)| *last_ns).min().unwrap_or(u64::MAX);
        first_ns.min(now_ns).saturating_sub(HOLD_BACK_NS)
    }
}

impl<C: CaptureConsumer> Read<'_, C> {
    /// Reads so many bytes of a ring at most; returns how many there were.
    fn turn(&mut self, ring: &mut CpuRing, last_ns: &mut u64, turn_bytes: usize) -> u64 {
        let taken = ring.ring.take(&mut self.buffer[..turn_bytes]);
        self.given.facts.damaged += u64::from(taken.damaged);
        self.given.facts.bytes += taken.bytes as u64;
        self.records(taken.bytes, ring.cpu, last_ns);
        taken.bytes as u64
    }

    /// So many bytes of the buffer, which are whole records of this CPU.
    fn records(&mut self, bytes: usize, cpu: u32, last_ns: &mut u64) {
        if self.has_records {
            let bytes = &self.buffer[..bytes];
            self.given.consumer.take(CaptureItem::Records { cpu, bytes });
        }
        let mut at = 0;
        while at < bytes {
            let Ok(Some(sized)) = self.stream.layouts().first(&self.buffer[at..bytes]) else {
                self.given.facts.damaged += 1;
                return;
            };
            at += sized.bytes;
            match sized.record {
                PerfRecord::Ended { .. } | PerfRecord::Began { .. } => {
                    *self.is_stale = true;
                }
                _ => {}
            }
            let item = self.stream.item(&sized.record, RecordPlace { at_ns: *last_ns, cpu });
            let has_all = !self.given.running.is_empty();
            if has_all
                && let Some((tid, process)) = news(self.processes, self.root, &sized.record, &item)
            {
                self.given.consumer.take(CaptureItem::Process { tid, process: &process });
            }
            let at = RecordPlace { at_ns: *last_ns, cpu };
            if let Some(counters) = self.stream.counters(&sized.record, at) {
                self.merge.push(counters);
            }
            match item {
                StreamItem::Event(event) => {
                    *last_ns = (*last_ns).max(event.at_ns);
                    self.merge.push(event);
                    while self.merge.is_full() {
                        let Some(event) = self.merge.pop() else { break };
                        self.given.give(&event);
                    }
                }
                StreamItem::Undecodable(_) | StreamItem::Damaged(_) => {
                    self.given.facts.damaged += 1;
                }
                StreamItem::Named(_) | StreamItem::Nothing => {}
            }
        }
    }
}

/// The process of the thread that wrote a record, where that is news: events are held back, so that
/// it comes before them.
fn news(
    processes: &mut ProcessBook,
    root: &Root,
    record: &PerfRecord<'_>,
    item: &StreamItem,
) -> Option<(Tid, RunningProcess)> {
    match (record, item) {
        (PerfRecord::Sample(sample), StreamItem::Event(event)) => {
            let (pid, tid) = sample.stamp.pid.zip(sample.stamp.tid)?;
            // The stamp is of this program's namespace, and the event of the first one.
            if tid != event.tid {
                return None;
            }
            processes.see(tid, pid, |pid| RunningProcess::read(root, i32::try_from(pid).ok()?))
        }
        (PerfRecord::Named { tid, name, .. }, _) => processes.rename(*tid, *name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_trace::event::{ContextFlags, TaskName};

    fn event(tid: Tid, kind: TraceKind) -> TraceEvent {
        let context = ContextFlags::default();
        TraceEvent { at_ns: 1, cpu: 0, tid, context, kind, chain: Box::default() }
    }

    #[test]
    fn who_cannot_be_running_is_a_hole() {
        let task = |tid| TaskName { tid, ..TaskName::default() };
        let switch = |from, to| {
            let (previous, next) = (task(from), task(to));
            event(from, TraceKind::Switch { previous, previous_state: 1, next })
        };
        let mut running = None;
        let mut hole = |event| is_hole(&mut running, &event);
        assert!(!hole(event(3, TraceKind::PageFaultEntry)), "nothing is known at first");
        assert!(!hole(switch(3, 4)));
        assert!(!hole(event(4, TraceKind::PageFaultEntry)));
        assert!(!hole(event(9, TraceKind::PageFaultExit)), "another namespace");
        assert!(hole(event(5, TraceKind::PageFaultEntry)), "4 ran");
        assert!(!hole(event(5, TraceKind::PageFaultEntry)), "counted once");
        assert!(!hole(event(5, TraceKind::Lost { count: 7 })));
        assert!(!hole(event(6, TraceKind::PageFaultEntry)), "nothing is known after a loss");
        assert!(hole(switch(7, 8)));
        assert!(!hole(event(8, TraceKind::PageFaultEntry)));
    }

    #[test]
    fn a_backlog_of_all_rings_goes_on_in_the_order_of_time() {
        const BYTES: u64 = 94;
        const EVENTS: u64 = 100_000;
        // The last: one has all of its own before the first of the others.
        for (cpus, others_begin_ns) in [(2_u64, 0), (8, 0), (24, 0), (4, EVENTS * 10_000)] {
            let mut merge = Merge::new(HELD_MAX);
            let (mut read, mut last_ns) = (vec![0; cpus as usize], vec![0; cpus as usize]);
            let turn = turn_bytes(cpus as usize) as u64 / BYTES;
            let (mut given, mut looks) = (0, 0);
            // More than is read in one look, and at once more than is held back.
            while read.iter().any(|&events| events < EVENTS) {
                let unread = read.iter().map(|events| (EVENTS - events) * BYTES);
                let mut backlog = Backlog::new(unread);
                assert!(looks > 0 || backlog.fullest() > LOOK_BYTES);
                looks += 1;
                while let Some(place) = backlog.next(&last_ns) {
                    let events = turn.min(EVENTS - read[place]);
                    for number in read[place]..read[place] + events {
                        let begin_ns = others_begin_ns * u64::from(place > 0);
                        let at_ns = begin_ns + number * 10_000 + place as u64;
                        let event = event(1, TraceKind::PageFaultEntry);
                        merge.push(TraceEvent { at_ns, cpu: place as u32, ..event });
                        last_ns[place] = at_ns;
                        while merge.is_full() {
                            given += u64::from(merge.pop().is_some());
                        }
                    }
                    read[place] += events;
                    backlog.take(place, events * BYTES);
                    merge.settle(backlog.settled_ns(&last_ns, u64::MAX));
                    given += std::iter::from_fn(|| merge.pop()).count() as u64;
                }
            }
            merge.finish();
            given += std::iter::from_fn(|| merge.pop()).count() as u64;
            assert_eq!((given, merge.out_of_order()), (cpus * EVENTS, 0), "{cpus}");
            assert!(looks <= 6, "{looks}");
        }
    }

    #[test]
    fn a_ring_without_a_whole_record_holds_nothing_up() {
        let mut backlog = Backlog::new([100, 0, 200].into_iter());
        assert_eq!((backlog.next(&[7, 1, 6]), backlog.fullest()), (Some(2), 200));
        let now_ns = 10 * HOLD_BACK_NS;
        let behind_ns = 2 * HOLD_BACK_NS;
        let last_ns = [behind_ns + 9, 0, behind_ns];
        assert_eq!(backlog.settled_ns(&last_ns, now_ns), HOLD_BACK_NS);
        backlog.take(2, 0);
        assert_eq!(backlog.next(&last_ns), Some(0));
        assert_eq!(backlog.settled_ns(&last_ns, now_ns), HOLD_BACK_NS + 9);
        backlog.take(0, 100);
        assert_eq!(backlog.next(&last_ns), None);
        assert_eq!(backlog.settled_ns(&last_ns, now_ns), now_ns - HOLD_BACK_NS);
    }

    #[test]
    fn a_reader_keeps_off_the_measured_cpus_where_there_are_others() {
        let root = Root::live();
        let online: Vec<u32> = online_cpus(&root).iter().collect();
        let (anywhere, shares) = reader_cpus(&root, &[]);
        assert!(anywhere.count() > 0 && !shares);
        let (cpus, shares) = reader_cpus(&root, &online[..1]);
        assert_eq!(shares, online.len() == 1);
        assert!(shares || !cpus.contains(online[0]));
        let (cpus, shares) = reader_cpus(&root, &online);
        assert!(shares && cpus.count() as usize == online.len());
    }

    #[test]
    fn threads_are_looked_for_when_they_may_have_changed() {
        let pid = std::process::id().cast_signed();
        let mut follow = Follow {
            root: Root::live(),
            process: Some(pid),
            threads: Vec::new(),
            is_stale: true,
            looked_ns: 0,
        };
        let second = 1_000_000_000;
        assert!(!follow.look(THREADS_NS - 1));
        assert!(follow.look(THREADS_NS), "there is this one");
        assert!(!follow.threads.is_empty());
        follow.threads.clear();
        assert!(!follow.look(second), "nothing began since");
        follow.is_stale = true;
        assert!(follow.look(second));
        follow.process = None;
        follow.threads.clear();
        assert!(!follow.look(9 * second));
    }
}
