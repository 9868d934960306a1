//! The events and rings of all CPUs: opened together, begun together.
//!
//! A dummy event owns the ring of a CPU and leads the events that write into it, so that one
//! interruption begins all. Filters are set before that.

use punctual_host::facts::online_cpus;
use punctual_host::root::{Read, Root};
use punctual_os::Errno;
use punctual_os::descriptor::{self, DescriptorLimit};
use punctual_os::perf::{CountedEvent, EventPlan, EventSource, EventSubject, PerfEvent, PerfRing};
use punctual_trace::decode::Decoder;
use punctual_trace::format::EventFormat;
use punctual_trace::perf_record::{RecordedEvent, SampleLayout};
use punctual_trace::perf_stream::{PerfSource, PerfStream};
use punctual_trace::reasons::IpiReasons;

use super::events::{KernelEvent, KernelEvents, MissingEvidence, MissingWhy};
use super::{CapturePlan, CaptureRefused, EventSet, FAST_RINGS, RING_BYTES_MIN, RINGS_BYTES_MAX};

/// The most threads whose page faults are seen to end: two events for each on each CPU, and a
/// switch of events with each switch to it.
const FAULTING_MAX: usize = 4;
/// Descriptors that are left to everything else of this process.
const SPARE_DESCRIPTORS: u64 = 128;
/// CAP_SYS_ADMIN and CAP_PERFMON (include/uapi/linux/capability.h): each allows all events.
const ALLOWING: u64 = 1 << 21 | 1 << 38;

/// An event that is recorded, as a file of perf describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedEvent {
    /// `SYSTEM:NAME` of a tracepoint, perf's own name of another.
    pub name: String,
    /// `type` of its `struct perf_event_attr`.
    pub kind: u32,
    /// `config` of it: for a tracepoint its number.
    pub config: u64,
    /// Its fields, and its identifiers: one a CPU.
    pub recorded: RecordedEvent,
}

/// An event to be opened on each CPU.
#[derive(Debug)]
struct Row {
    source: RowSource,
    /// Without its subject.
    plan: EventPlan,
    opened: OpenedEvent,
}

/// A counter of the processor on each CPU, or the event that reads it.
#[derive(Debug)]
struct CounterRow {
    /// Without its subject.
    plan: EventPlan,
    opened: OpenedEvent,
}

/// The source of a row.
#[derive(Debug)]
enum RowSource {
    Tracepoint(Box<KernelEvent>),
    /// A counter of one thread.
    OfThread(i32),
}

/// The ring of a CPU.
#[derive(Debug)]
pub(super) struct CpuRing {
    pub(super) cpu: u32,
    pub(super) ring: PerfRing,
    /// They begin with their owner. Dropped before it: without their leader they would go on.
    _members: Vec<PerfEvent>,
    /// Counters of the processor, read with each switch; dropped before their leader.
    _counters: Vec<PerfEvent>,
    /// The leader of those: begins behind the owner, so that it comes before the switch itself.
    reading: Option<PerfEvent>,
    /// Those of threads cannot be led by an event of a CPU.
    alone: Vec<PerfEvent>,
    owner: PerfEvent,
}

/// The rings of all CPUs.
#[derive(Debug)]
pub(super) struct Rings {
    cpus: Vec<CpuRing>,
    stream: PerfStream,
    formats: Vec<EventFormat>,
    opened: Vec<OpenedEvent>,
    missing: Vec<MissingEvidence>,
    offline: u32,
    bytes: usize,
    /// The limit of descriptors that was there before, put back at the end.
    limit: Option<DescriptorLimit>,
}

impl Drop for Rings {
    fn drop(&mut self) {
        if let Some(limit) = self.limit {
            // It was allowed before.
            let _allowed = descriptor::set_limit(limit);
        }
    }
}

impl Rings {
    /// Opens them; nothing is recorded yet.
    ///
    /// # Errors
    /// The right or the room that the kernel does not grant.
    pub(super) fn open(
        root: &Root,
        plan: &CapturePlan,
        events: KernelEvents,
    ) -> Result<Self, CaptureRefused> {
        let cpus = match &plan.cpus {
            Some(cpus) => cpus.clone(),
            None => online_cpus(root).iter().collect(),
        };
        let mut opening = Opening::new(root, plan, events, cpus.len());
        let limit = opening.make_room(cpus.len())?;
        let mut opened = Vec::with_capacity(cpus.len());
        for cpu in cpus {
            opened.extend(opening.cpu(cpu)?);
        }
        let recorded = opening.recorded();
        if recorded.len() < 2 || opened.is_empty() {
            return Err(CaptureRefused::NoEvents);
        }
        let decoder = Decoder::new(&opening.formats).with_reasons(opening.reasons);
        let sources: Vec<_> =
            recorded.iter().map(|event| (event.recorded.clone(), source_of(event))).collect();
        // Each has an identifier at the same place.
        let stream = PerfStream::new(&sources, decoder).map_err(|_| CaptureRefused::NoEvents)?;
        Ok(Self {
            cpus: opened,
            stream,
            formats: opening.formats,
            opened: recorded,
            missing: opening.missing,
            offline: opening.offline,
            bytes: opening.largest,
            limit,
        })
    }

    /// Begins to record, all CPUs one after the other.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(super) fn begin(&self) -> Result<(), Errno> {
        for cpu in &self.cpus {
            // A thread that ended meanwhile has nothing to tell.
            for event in &cpu.alone {
                let _ended = event.enable();
            }
            cpu.owner.enable()?;
            // Without it, counts alone are missing.
            if let Some(reading) = &cpu.reading {
                let _refused = reading.enable();
            }
        }
        Ok(())
    }

    /// Records no more.
    pub(super) fn stop(&self) {
        for cpu in &self.cpus {
            // Of a CPU that is offline now, nothing is recorded anyway.
            let _offline = cpu.owner.disable();
            if let Some(reading) = &cpu.reading {
                let _offline = reading.disable();
            }
            for event in &cpu.alone {
                let _ended = event.disable();
            }
        }
    }

    /// The rings, and the stream that makes events of their records.
    pub(super) fn parts(&mut self) -> (&mut [CpuRing], &PerfStream) {
        (&mut self.cpus, &self.stream)
    }

    pub(super) fn opened(&self) -> &[OpenedEvent] {
        &self.opened
    }

    pub(super) fn formats(&self) -> &[EventFormat] {
        &self.formats
    }

    pub(super) fn missing(&self) -> &[MissingEvidence] {
        &self.missing
    }

    pub(super) fn offline(&self) -> u32 {
        self.offline
    }

    pub(super) fn ring_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn cpus(&self) -> impl Iterator<Item = u32> {
        self.cpus.iter().map(|cpu| cpu.cpu)
    }
}

/// A capture as it is opened.
struct Opening<'a> {
    root: &'a Root,
    owner: OpenedEvent,
    rows: Vec<Row>,
    /// Counters of the processor, led by a second event of the switches: the first goes on whatever
    /// becomes of the group. Empty where it is not wanted, or was refused.
    counters: Vec<CounterRow>,
    formats: Vec<EventFormat>,
    reasons: IpiReasons,
    missing: Vec<MissingEvidence>,
    offline: u32,
    bytes: usize,
    /// CPUs of fast loops, whose rings are larger.
    fast_cpus: Vec<u32>,
    /// Bytes of the largest ring.
    largest: usize,
}

fn opened(name: String, plan: &EventPlan) -> OpenedEvent {
    let (kind, config) = plan.kind_and_config();
    let (sample_type, read_format) = (plan.sample_type(), plan.read_format());
    let layout = SampleLayout { sample_type, read_format, is_stamped: true };
    let recorded = RecordedEvent { layout, ids: Vec::new() };
    OpenedEvent { name, kind, config, recorded }
}

/// The source of its records.
fn source_of(event: &OpenedEvent) -> PerfSource {
    let source = PerfSource::new(event.kind, event.config);
    match source {
        PerfSource::Tracepoint if event.recorded.layout.read_format != 0 => PerfSource::Reading,
        _ => source,
    }
}

/// The event that owns a ring.
fn owner_plan(cpu: u32) -> EventPlan {
    EventPlan::new(EventSource::Dummy, EventSubject::Cpu(cpu)).with_tasks()
}

impl<'a> Opening<'a> {
    fn new(root: &'a Root, plan: &CapturePlan, events: KernelEvents, cpus: usize) -> Self {
        let sees_faults = plan.set == EventSet::Full
            && events.events.iter().any(|event| event.wanted.name == "page_fault_user");
        let is_switch = |event: &&KernelEvent| event.wanted.name == "sched_switch";
        let switch = events.events.iter().find(is_switch).filter(|_| plan.set == EventSet::Full);
        let counters = switch.map_or_else(Vec::new, |switch| CounterRow::of_work(switch.id));
        let tracepoints = events.events.into_iter().map(Row::tracepoint);
        let mut rows: Vec<Row> = tracepoints.collect();
        if sees_faults {
            for &tid in plan.threads.iter().take(FAULTING_MAX) {
                rows.push(Row::of_thread("minor-faults", EventSource::MinorFaults, tid));
                rows.push(Row::of_thread("major-faults", EventSource::MajorFaults, tid));
            }
        }
        Self {
            root,
            owner: opened("dummy:HG".to_owned(), &owner_plan(0)),
            rows,
            counters,
            formats: events.formats,
            reasons: events.reasons,
            missing: events.missing,
            offline: 0,
            bytes: ring_bytes(plan.ring_bytes, cpus),
            fast_cpus: plan.fast_loops.iter().map(|fast| fast.cpu).collect(),
            largest: 0,
        }
    }

    /// Sees that there may be as many descriptors as are needed; what was allowed before, where
    /// that is more now.
    fn make_room(&self, cpus: usize) -> Result<Option<DescriptorLimit>, CaptureRefused> {
        let needed =
            (cpus * (self.rows.len() + self.counters.len() + 1)) as u64 + SPARE_DESCRIPTORS;
        let refused = |why| CaptureRefused::Kernel { part: "the limit of descriptors", why };
        let before = descriptor::limit().map_err(refused)?;
        if before.soft >= needed {
            return Ok(None);
        }
        if before.hard < needed {
            return Err(CaptureRefused::Descriptors { needed, limit: before.hard });
        }
        descriptor::set_limit(DescriptorLimit { soft: needed, ..before }).map_err(refused)?;
        Ok(Some(before))
    }

    /// Opens all events of a CPU; `None` where it is offline.
    fn cpu(&mut self, cpu: u32) -> Result<Option<CpuRing>, CaptureRefused> {
        let owner = match PerfEvent::open(&owner_plan(cpu), None) {
            Err(Errno::NODEV) => {
                self.offline += 1;
                return Ok(None);
            }
            owner => owner.map_err(|why| refusal(self.root, why))?,
        };
        let ring = self.map(cpu, &owner)?;
        self.owner.recorded.ids.push(owner.id().map_err(|why| refusal(self.root, why))?);
        let (mut members, mut alone) = (Vec::new(), Vec::new());
        let mut is_first = self.rows.iter().all(|row| row.opened.recorded.ids.is_empty());
        for row in &mut self.rows {
            match row.open(cpu, &owner) {
                Ok(event) => {
                    is_first = false;
                    match row.source {
                        RowSource::Tracepoint(_) => members.push(event),
                        RowSource::OfThread(_) => alone.push(event),
                    }
                }
                Err(MissingWhy::Refused(why)) if is_for_all(why, is_first) => {
                    return Err(refusal(self.root, why));
                }
                Err(why) => {
                    if let RowSource::Tracepoint(event) = &row.source {
                        let lacking = MissingEvidence::new(event.wanted, why);
                        if !self.missing.contains(&lacking) {
                            self.missing.push(lacking);
                        }
                    }
                }
            }
        }
        let (reading, counters) = self.counters(cpu, &owner);
        Ok(Some(CpuRing {
            cpu,
            ring,
            _members: members,
            _counters: counters,
            reading,
            alone,
            owner,
        }))
    }

    /// Opens the counters of the processor on a CPU, and the event that reads them. Where the
    /// kernel refuses that, it is missing, on all CPUs that follow too, and nothing else.
    fn counters(&mut self, cpu: u32, owner: &PerfEvent) -> (Option<PerfEvent>, Vec<PerfEvent>) {
        let mut group: Vec<PerfEvent> = Vec::new();
        let mut refused = None;
        for (place, row) in self.counters.iter_mut().enumerate() {
            match row.open(cpu, group.first(), owner) {
                Ok(event) => group.push(event),
                // A processor may lack one of them; without what reads them there are none.
                Err(why) => refused = Some(why),
            }
            if place == 0 && group.is_empty() {
                break;
            }
        }
        if group.len() > 1 {
            let reading = group.remove(0);
            return (Some(reading), group);
        }
        if let Some(why) = refused {
            self.missing.push(MissingEvidence::of_counters(why));
        }
        self.counters.clear();
        (None, Vec::new())
    }

    /// Maps the ring of a CPU, a smaller one where so much is not allowed: then all that follow are
    /// as small.
    fn map(&mut self, cpu: u32, owner: &PerfEvent) -> Result<PerfRing, CaptureRefused> {
        let fast_bytes = self.bytes.saturating_mul(FAST_RINGS);
        if self.fast_cpus.contains(&cpu)
            && let Ok(ring) = PerfRing::map(owner, fast_bytes)
        {
            self.largest = self.largest.max(fast_bytes);
            return Ok(ring);
        }
        loop {
            match PerfRing::map(owner, self.bytes) {
                Ok(ring) => {
                    self.largest = self.largest.max(self.bytes);
                    return Ok(ring);
                }
                Err(Errno::PERM | Errno::NOMEM) if self.bytes > RING_BYTES_MIN => self.bytes /= 2,
                Err(Errno::PERM) => {
                    let allowed_kb = number(self.root, "/proc/sys/kernel/perf_event_mlock_kb");
                    return Err(CaptureRefused::LockedMemory {
                        needed: RING_BYTES_MIN,
                        allowed_kb: allowed_kb.and_then(|kb| u64::try_from(kb).ok()),
                    });
                }
                Err(why) => return Err(CaptureRefused::Kernel { part: "a ring", why }),
            }
        }
    }

    /// The events that were opened, the owner first.
    fn recorded(&self) -> Vec<OpenedEvent> {
        let counters = self.counters.iter().map(|row| &row.opened);
        let rows = self.rows.iter().map(|row| &row.opened).chain(counters);
        let rows = rows.filter(|opened| !opened.recorded.ids.is_empty());
        std::iter::once(&self.owner).chain(rows).cloned().collect()
    }
}

impl Row {
    fn tracepoint(event: KernelEvent) -> Self {
        let source = EventSource::Tracepoint(event.id);
        let mut plan = EventPlan::new(source, EventSubject::Cpu(0)).with_frames(event.frames);
        if event.wanted.name == "sched_stat_runtime" {
            plan = plan.with_period();
        }
        let name = format!("{}:{}", event.wanted.system, event.wanted.name);
        let opened = opened(name, &plan);
        Self { source: RowSource::Tracepoint(Box::new(event)), plan, opened }
    }

    fn of_thread(name: &str, source: EventSource, tid: i32) -> Self {
        let plan = EventPlan::new(source, EventSubject::ThreadOnCpu(tid, 0));
        let opened = opened(name.to_owned(), &plan);
        Self { source: RowSource::OfThread(tid), plan, opened }
    }

    /// Opens it on a CPU.
    fn open(&mut self, cpu: u32, owner: &PerfEvent) -> Result<PerfEvent, MissingWhy> {
        let event = match &self.source {
            RowSource::Tracepoint(event) => {
                let opened = PerfEvent::open(&self.plan.of(EventSubject::Cpu(cpu)), Some(owner));
                let opened = opened.map_err(MissingWhy::Refused)?;
                if let Some(filter) = &event.filter {
                    opened.filter(filter).map_err(MissingWhy::Filter)?;
                }
                opened
            }
            RowSource::OfThread(tid) => {
                let subject = EventSubject::ThreadOnCpu(*tid, cpu);
                PerfEvent::open(&self.plan.of(subject), None).map_err(MissingWhy::Refused)?
            }
        };
        event.write_into(owner).map_err(MissingWhy::Refused)?;
        self.opened.recorded.ids.push(event.id().map_err(MissingWhy::Refused)?);
        Ok(event)
    }
}

impl CounterRow {
    /// The counters of the processor, behind the switch that reads them.
    fn of_work(switch: u64) -> Vec<Self> {
        let leader = (EventSource::Tracepoint(switch), "sched:sched_switch");
        let counted =
            CountedEvent::OF_WORK.map(|event| (EventSource::Counted(event), event.name()));
        let row = |(source, name): (EventSource, &str)| {
            let plan = EventPlan::new(source, EventSubject::Cpu(0)).with_counts();
            Self { plan, opened: opened(name.to_owned(), &plan) }
        };
        std::iter::once(leader).chain(counted).map(row).collect()
    }

    /// Opens it on a CPU, whose ring has this owner.
    fn open(
        &mut self,
        cpu: u32,
        leader: Option<&PerfEvent>,
        owner: &PerfEvent,
    ) -> Result<PerfEvent, Errno> {
        let event = PerfEvent::open(&self.plan.of(EventSubject::Cpu(cpu)), leader)?;
        event.write_into(owner)?;
        self.opened.recorded.ids.push(event.id()?);
        Ok(event)
    }
}

/// Returns true where a refusal is not of this event, but of all.
fn is_for_all(why: Errno, is_first: bool) -> bool {
    let is_of_rights = matches!(why, Errno::PERM | Errno::ACCES);
    matches!(why, Errno::MFILE | Errno::NFILE) || is_first && is_of_rights
}

/// The reason for which the kernel refuses all events.
fn refusal(root: &Root, why: Errno) -> CaptureRefused {
    match why {
        Errno::NOSYS => CaptureRefused::NotBuilt,
        why if is_for_all(why, false) => {
            let limit = descriptor::limit().map_or(0, |limit| limit.soft);
            CaptureRefused::Descriptors { needed: limit + 1, limit }
        }
        Errno::PERM | Errno::ACCES => {
            if let Some(mode) = lockdown(root) {
                return CaptureRefused::Lockdown { mode };
            }
            if capabilities(root).is_some_and(|effective| effective & ALLOWING != 0) {
                return CaptureRefused::Sandbox { why };
            }
            let level = number(root, "/proc/sys/kernel/perf_event_paranoid");
            CaptureRefused::Paranoid { level: level.and_then(|level| i32::try_from(level).ok()) }
        }
        why => CaptureRefused::Kernel { part: "perf_event_open", why },
    }
}

/// The mode of lockdown where it forbids perf's events (security/lockdown, LOCKDOWN_PERF).
fn lockdown(root: &Root) -> Option<String> {
    let Read::Text(text) = root.read("/sys/kernel/security/lockdown") else { return None };
    let (_, rest) = text.split_once('[')?;
    let (mode, _) = rest.split_once(']')?;
    (mode == "confidentiality").then(|| mode.to_owned())
}

/// The line `CapEff` (proc_pid_status(5)).
fn capabilities(root: &Root) -> Option<u64> {
    let Read::Text(text) = root.read("/proc/self/status") else { return None };
    let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn number(root: &Root, path: &str) -> Option<i64> {
    let Read::Text(text) = root.read(path) else { return None };
    text.trim().parse().ok()
}

/// Bytes of each of so many rings.
fn ring_bytes(wanted_bytes: usize, cpus: usize) -> usize {
    let most = previous_power(RINGS_BYTES_MAX / cpus.max(1)).max(RING_BYTES_MIN);
    let wanted_bytes = wanted_bytes.checked_next_power_of_two().unwrap_or(most);
    wanted_bytes.clamp(RING_BYTES_MIN, most)
}

/// The largest power of two that is not above `bytes`; 0 for 0.
fn previous_power(bytes: usize) -> usize {
    bytes.checked_ilog2().map_or(0, |bits| 1 << bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_powers_of_two_within_their_bounds() {
        assert_eq!(ring_bytes(16 << 20, 2), 16 << 20);
        assert_eq!(ring_bytes(5_000_000, 2), 8 << 20);
        assert_eq!(ring_bytes(16 << 20, 256), 4 << 20);
        assert_eq!(ring_bytes(0, 2), RING_BYTES_MIN);
        assert_eq!(ring_bytes(usize::MAX, 1), RINGS_BYTES_MAX);
        for cpus in [0, 1, 3, 96, 8_192] {
            for wanted_bytes in [1, 1 << 18, 3 << 20, 1 << 40] {
                let bytes = ring_bytes(wanted_bytes, cpus);
                assert!(bytes.is_power_of_two() && bytes >= RING_BYTES_MIN);
                let bytes_in_all = bytes * cpus;
                assert!(
                    bytes_in_all <= RINGS_BYTES_MAX || bytes == RING_BYTES_MIN,
                    "{cpus} {wanted_bytes}"
                );
            }
        }
    }

    fn tree(name: &str, files: &[(&str, &str)]) -> (std::path::PathBuf, Root) {
        let name = format!("punctual-rings-{name}-{}", std::process::id());
        let tree = std::env::temp_dir().join(name);
        for (path, text) in files {
            let path = tree.join(path);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
            std::fs::write(path, text).expect("writable");
        }
        let root = Root::captured(&tree).expect("readable");
        (tree, root)
    }

    #[test]
    fn a_refusal_names_what_refuses() {
        let paranoid = ("proc/sys/kernel/perf_event_paranoid", "2\n");
        let user = ("proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
        let admin = ("proc/self/status", "CapEff:\t000001ffffffffff\n");
        let locked = ("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
        let open = ("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        let reason = |name: &str, files: &[(&str, &str)], why| {
            let (tree, root) = tree(name, files);
            let refused = refusal(&root, why);
            std::fs::remove_dir_all(tree).expect("it was made here");
            let text = refused.to_string();
            assert!(!text.contains('\n') && text.len() > 20, "{text}");
            refused
        };
        let user = reason("user", &[paranoid, user, open], Errno::ACCES);
        assert_eq!(user, CaptureRefused::Paranoid { level: Some(2) });
        assert!(user.is_of_rights() && user.to_string().contains("perf_event_paranoid is 2"));
        let mode = "confidentiality".to_owned();
        let lockdown = reason("locked", &[paranoid, admin, locked], Errno::PERM);
        assert_eq!(lockdown, CaptureRefused::Lockdown { mode });
        let sandbox = reason("sandbox", &[paranoid, admin], Errno::PERM);
        assert_eq!(sandbox, CaptureRefused::Sandbox { why: Errno::PERM });
        assert_eq!(reason("built", &[admin], Errno::NOSYS), CaptureRefused::NotBuilt);
        let many = reason("many", &[admin], Errno::MFILE);
        assert!(matches!(many, CaptureRefused::Descriptors { .. }) && !many.is_of_rights());
        let odd = reason("odd", &[admin], Errno::BUSY);
        assert_eq!(odd, CaptureRefused::Kernel { part: "perf_event_open", why: Errno::BUSY });
    }
}
