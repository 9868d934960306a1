//! Captures of this machine, where that is allowed; refusals everywhere.

use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::time::Duration;

use punctual_host::root::{Read, Root};
use punctual_host::tracefs::{Tracefs, TracefsRefused};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::pages::Pages;
use punctual_os::process::tid;
use punctual_testkit::skip;
use punctual_trace::event::TraceKind;

use super::*;
use crate::inject::{InjectedInterval, Injection, InjectionPlan, RunningInjection, Victim};

/// Keeps all events, of which a test makes few.
#[derive(Default)]
struct Kept {
    events: Vec<TraceEvent>,
    clocks: Vec<ClockOffsets>,
    threads: Vec<Vec<i32>>,
    processes: HashMap<Tid, RunningProcess>,
    record_bytes: u64,
}

impl CaptureConsumer for Kept {
    fn take(&mut self, item: CaptureItem<'_>) {
        match item {
            // A machine that is busy makes some ten thousand a second.
            CaptureItem::Event(event) if self.events.len() < 1_000_000 => {
                self.events.push(event.clone());
            }
            CaptureItem::Event(_) => {}
            CaptureItem::Clocks(clocks) => self.clocks.push(clocks),
            CaptureItem::Threads(threads) => {
                self.threads.push(threads.iter().map(|thread| thread.tid).collect());
            }
            CaptureItem::Process { tid, process } => {
                self.processes.insert(tid, process.clone());
            }
            CaptureItem::Records { bytes, .. } => self.record_bytes += bytes.len() as u64,
        }
    }
}

fn started(plan: &CapturePlan) -> Capture<Kept> {
    Capture::start(plan, Kept::default()).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn the_deadlines_of_a_loop_are_seen_as_its_timers_expiries() {
    if !skip::need_tracing() {
        return;
    }
    let own = tid();
    let pid = std::process::id().cast_signed();
    let cpu = affinity::current_cpu();
    affinity::set(0, &CpuMask::one(cpu)).expect("it runs there");
    let plan = CapturePlan::new(EventSet::Full)
        .away_from(&[cpu])
        .following(&[own])
        .of_process(pid)
        .in_guest(true)
        .with_records();
    let capture = started(&plan);
    assert!(capture.opened().len() > 10, "{:?}", capture.missing());
    let begin_ns = now_ns(ClockId::Monotonic) + 2_000_000;
    let deadlines: Vec<u64> = (0..50).map(|k| begin_ns + k * 1_000_000).collect();
    for &deadline in &deadlines {
        sleep_until_ns(deadline).expect("no signal");
    }
    let mut pages = Pages::new(64 * 4_096).expect("memory");
    pages.touch();
    let EndedCapture { consumer: kept, facts, closing } = capture.end().expect("it goes on");
    closing.wait();
    assert_eq!(facts.damaged, 0, "{facts:?}");
    assert!(facts.events as usize >= kept.events.len() && facts.began_ns < begin_ns);
    assert_eq!(kept.record_bytes, facts.bytes);
    if facts.lost > 0 {
        // A machine so busy that nothing read the rings for a second: what is missing is said.
        assert!(facts.holes > 0 && facts.fullest_bytes * 2 > facts.ring_bytes as u64, "{facts:?}");
        return;
    }
    assert_eq!(kept.clocks.last(), Some(&facts.clocks));
    assert!(kept.threads.first().is_some_and(|threads| threads.contains(&own)));
    let own = own.cast_unsigned();
    let own_events = || kept.events.iter().filter(|event| event.tid == own);
    let mut armed = HashMap::new();
    for event in own_events() {
        if let TraceKind::TimerStart { soft_expires_ns, .. } = event.kind {
            armed.insert(soft_expires_ns.cast_unsigned(), event.at_ns);
        }
    }
    for deadline in deadlines {
        // One that had passed is slept for not at all.
        if let Some(&at_ns) = armed.get(&deadline) {
            assert!(at_ns < deadline + 1_000_000_000);
        }
    }
    let is_expiry = |event: &&TraceEvent| match event.kind {
        TraceKind::TimerStart { soft_expires_ns, .. } => {
            soft_expires_ns.cast_unsigned() >= begin_ns
        }
        _ => false,
    };
    assert!(own_events().filter(is_expiry).count() > 0, "not one sleep was seen");
    let process = &kept.processes[&own];
    assert_eq!(process.pid, pid);
    let parent = kept.processes.values().filter(|process| process.pid == pid);
    assert!(parent.into_iter().all(|process| process.parent > 0), "{:?}", kept.processes);
    let switched = |event: &&TraceEvent| matches!(event.kind, TraceKind::Switch { .. });
    assert!(own_events().any(|event| switched(&event)));
    let syscall = |event: &TraceEvent| matches!(event.kind, TraceKind::SyscallEntry { .. });
    assert!(own_events().any(syscall));
    assert!(kept.events.iter().all(|event| !syscall(event) || event.tid == own), "it is filtered");
    if capture_has(&kept, |kind| matches!(kind, TraceKind::PageFaultEntry)) {
        assert!(capture_has(&kept, |kind| matches!(kind, TraceKind::PageFaultExit)));
    }
    let pairs = kept.events.windows(2);
    let late = pairs.filter(|pair| pair[0].at_ns > pair[1].at_ns).count();
    assert_eq!(late as u64, facts.out_of_order, "in the order of time");
}

fn capture_has(kept: &Kept, is_it: impl Fn(&TraceKind) -> bool) -> bool {
    kept.events.iter().any(|event| is_it(&event.kind))
}

#[test]
fn top_sees_switches_of_real_time_threads_alone() {
    if !skip::need_tracing() || !skip::need_fifo() {
        return;
    }
    let symbols = kernel_symbols();
    // Loops of other tests switch far more often than this one, and keep the reader waiting.
    let plan = CapturePlan::new(EventSet::Top).with_symbols(&symbols).with_rings(1 << 23);
    let capture = started(&plan);
    assert!(capture.opened().len() <= 6, "{:?}", capture.opened());
    let (to_here, from_thread) = channel();
    let thread = spawn::plain("capture-fifo", move || {
        punctual_os::scheduler::set(0, SchedPolicy::Fifo(1)).expect("granted before");
        for _ in 0..20 {
            let _early = sleep_until_ns(now_ns(ClockId::Monotonic) + 1_000_000);
        }
        to_here.send(tid()).expect("the test waits");
    });
    let of_thread = from_thread.recv().expect("it ends").cast_unsigned();
    thread.expect("a thread").join().expect("no panic");
    let EndedCapture { consumer: kept, facts, .. } = capture.end().expect("it goes on");
    let is_rt = |priority: i32| priority < 100;
    for event in &kept.events {
        if let TraceKind::Switch { previous, next, .. } = event.kind {
            assert!(is_rt(previous.kernel_priority) || is_rt(next.kernel_priority));
        }
    }
    let is_seen = kept.events.iter().any(|event| event.tid == of_thread);
    // A machine so busy that nothing read the rings: what is missing is said.
    assert!(is_seen || facts.lost > 0, "{facts:?}");
}

#[test]
fn in_a_pause_nothing_is_recorded() {
    if !skip::need_tracing() {
        return;
    }
    let own = tid();
    let plan = CapturePlan::new(EventSet::Full).following(&[own]).with_rings(1 << 20);
    let capture = started(&plan);
    // Far longer than the clock of events may be off on a busy machine.
    const MARGIN_NS: u64 = 250_000;
    let call_for_ns = |ns| {
        let end_ns = now_ns(ClockId::Monotonic) + ns;
        while now_ns(ClockId::Monotonic) < end_ns {
            punctual_os::process::parent();
        }
    };
    // Some of them are far from both ends, however long it has no CPU in between.
    let calls = || {
        call_for_ns(2 * MARGIN_NS);
        for _ in 0..100 {
            punctual_os::process::parent();
        }
        call_for_ns(2 * MARGIN_NS);
    };
    // A reader that has no CPU does it later than is waited for.
    let is_done = || {
        while !capture.so_far.is_as_asked() {
            std::thread::yield_now();
        }
    };
    let mut pauses = Vec::new();
    for _ in 0..3 {
        capture.pause();
        is_done();
        let from_ns = now_ns(ClockId::Monotonic);
        calls();
        let to_ns = now_ns(ClockId::Monotonic);
        pauses.push((from_ns, to_ns, false));
        capture.resume();
        is_done();
        let from_ns = now_ns(ClockId::Monotonic);
        calls();
        pauses.push((from_ns, now_ns(ClockId::Monotonic), true));
    }
    let kept = capture.end().expect("it goes on").consumer;
    for (from_ns, to_ns, is_recorded) in pauses {
        let within = |event: &&TraceEvent| {
            let is_inside = (from_ns + MARGIN_NS..to_ns - MARGIN_NS).contains(&event.at_ns);
            is_inside && event.tid == own.cast_unsigned()
        };
        let seen = kept.events.iter().filter(within).count();
        assert_eq!(seen > 0, is_recorded, "{seen}");
    }
}

#[test]
fn a_ring_that_is_not_read_loses_and_says_so() {
    if !skip::need_tracing() {
        return;
    }
    let root = Root::live();
    let cpu = affinity::current_cpu();
    affinity::set(0, &CpuMask::one(cpu)).expect("it runs there");
    let plan = CapturePlan::new(EventSet::Full)
        .on_cpus(&[cpu])
        .following(&[tid()])
        .with_rings(RING_BYTES_MIN);
    let events = KernelEvents::find(&root, &plan).expect("allowed");
    let rings = Rings::open(&root, &plan, events).expect("allowed");
    let gauge = Arc::new(reader::Gauge::default());
    rings.begin().expect("ours");
    // Each makes two records of a hundred bytes or so.
    for _ in 0..20_000 {
        punctual_os::process::parent();
    }
    let reader = Reader::new(&plan, rings, Kept::default(), gauge);
    let (kept, facts, _rings) = reader.run(&AtomicBool::new(true));
    // The kernel tells of a loss with the next record that has room.
    assert!(facts.fullest_bytes > RING_BYTES_MIN as u64 / 2, "{facts:?}");
    let lost = kept.events.iter().any(|event| matches!(event.kind, TraceKind::Lost { .. }));
    assert_eq!(lost, facts.lost > 0);
    assert!(facts.lost > 0, "{facts:?}");
}

#[test]
fn a_killed_capture_leaves_nothing() {
    const CHILD: &str = "PUNCTUAL_TEST_CAPTURES";
    if std::env::var_os(CHILD).is_some() {
        let _capture = started(&CapturePlan::new(EventSet::Full).with_rings(1 << 20));
        std::fs::write(std::env::var_os("PUNCTUAL_TEST_READY").expect("given"), "").expect("ours");
        let _never = sleep_until_ns(u64::MAX / 2);
        return;
    }
    if !skip::need_tracing() {
        return;
    }
    let state = || {
        let read = |path: &str| {
            let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
            places.map(|place| std::fs::read_to_string(format!("{place}/{path}")).ok())
        };
        let files = ["set_event", "tracing_on", "current_tracer", "kprobe_events", "trace_clock"];
        (files.map(read), std::fs::read_to_string("/proc/self/mounts").ok())
    };
    let before = state();
    let ready = std::env::temp_dir().join(format!("punctual-capture-{}", std::process::id()));
    let mut child = std::process::Command::new(std::env::current_exe().expect("this test"));
    child.args(["--exact", "capture::tests::a_killed_capture_leaves_nothing"]);
    child.env(CHILD, "1").env("PUNCTUAL_TEST_READY", &ready);
    child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = child.spawn().expect("this program");
    while !ready.exists() {
        assert!(child.try_wait().expect("ours").is_none(), "it captures until it is killed");
        std::thread::yield_now();
    }
    child.kill().expect("ours");
    child.wait().expect("ours");
    std::fs::remove_file(&ready).expect("the child made it");
    assert_eq!(state(), before);
}

#[test]
fn an_attached_tracefs_has_the_kernels_events_and_no_path() {
    if !skip::need_tracing() {
        return;
    }
    let mounts = || std::fs::read_to_string("/proc/self/mounts").expect("readable");
    let before = mounts();
    let attached = Tracefs::attached().expect("root may, since Linux 5.2");
    let root = Root::live();
    let [format, lacking] =
        ["sched_switch", "no_such_event"].map(|name| attached.format(&root, "sched", name));
    assert!(matches!(&format, Read::Text(text) if text.starts_with("name: sched_switch\n")));
    assert_eq!((lacking, mounts()), (Read::Absent, before));
}

#[test]
fn what_is_injected_is_seen() {
    let both = affinity::get(0).is_ok_and(|mask| mask.contains(0) && mask.contains(1));
    if !skip::need_tracing() || !skip::need_fifo() || !skip::need("CPUs 0 and 1", both) {
        return;
    }
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("coreutils");
    let pid = child.id().cast_signed();
    let victim = Victim { cpu: 0, other_cpu: 1, priority: 10, pid, tid: pid };
    let times = (Duration::from_millis(6), Duration::from_micros(300));
    let kinds = [Injection::HigherPriority, Injection::Timers, Injection::Stop];
    for kind in kinds {
        let capture = started(&CapturePlan::new(EventSet::Full));
        while capture.so_far().events == 0 {
            let _early = sleep_until_ns(now_ns(ClockId::Monotonic) + 1_000_000);
        }
        let plan = InjectionPlan::new(kind, victim, 6, times).expect("bounded");
        let log = RunningInjection::start(plan).and_then(RunningInjection::wait);
        let log = log.unwrap_or_else(|why| panic!("{}: {why}", kind.name()));
        let ended = capture.end().expect("it goes on");
        let (own, victim) = (log.tid.cast_unsigned(), pid.cast_unsigned());
        let is_it = |event: &&TraceEvent| match event.kind {
            TraceKind::Switch { next, .. } => kind == Injection::HigherPriority && next.tid == own,
            TraceKind::TimerExpireEntry { .. } => {
                // Where the host stands still they expire after their interval.
                let begun = |log: &InjectedInterval| event.at_ns >= log.start_ns;
                kind == Injection::Timers && event.cpu == 0 && log.intervals.iter().any(begun)
            }
            TraceKind::Signal { number, task } => {
                let stops = kind == Injection::Stop && number == 19;
                stops && event.tid == own && task.tid == victim
            }
            _ => false,
        };
        let seen = ended.consumer.events.iter().filter(is_it).count();
        let expected = match kind {
            Injection::Timers => 6 * 400,
            _ => 6,
        };
        // Where the machine is so busy that events are missing, the capture says so.
        let is_whole = ended.facts.lost == 0 && ended.facts.holes == 0;
        let least = if is_whole { expected } else { expected / 2 };
        assert!(seen >= least, "{}: {seen} of {expected}, {:?}", kind.name(), ended.facts);
    }
    child.kill().expect("ours");
    child.wait().expect("ours");
}

#[test]
fn refusals_are_one_line_and_say_what_would_help() {
    let unreadable = TracefsRefused::Unreadable { path: "/sys/x".to_owned(), why: "no".to_owned() };
    let refusals = [
        (CaptureRefused::Tracefs(TracefsRefused::NotMounted), "mount"),
        (CaptureRefused::Tracefs(unreadable), "root"),
        (CaptureRefused::Paranoid { level: Some(3) }, "CAP_PERFMON"),
        (CaptureRefused::Paranoid { level: None }, "CAP_PERFMON"),
        (CaptureRefused::Lockdown { mode: "confidentiality".to_owned() }, "boot"),
        (CaptureRefused::Sandbox { why: Errno::PERM }, "container"),
        (CaptureRefused::NotBuilt, "CONFIG_PERF_EVENTS"),
        (CaptureRefused::Descriptors { needed: 3_000, limit: 1_024 }, "ulimit -n 3000"),
        (CaptureRefused::LockedMemory { needed: 1 << 18, allowed_kb: Some(516) }, "RLIMIT_MEMLOCK"),
        (CaptureRefused::NoEvents, "kernel"),
        (CaptureRefused::Kernel { part: "a ring", why: Errno::NOMEM }, "ENOMEM"),
        (CaptureRefused::Thread { why: "no thread".to_owned() }, "thread"),
    ];
    for (refused, part) in refusals {
        let text = refused.to_string();
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn without_rights_the_refusal_is_of_rights() {
    let plan = CapturePlan::new(EventSet::Full);
    match Capture::start(&plan, |_: CaptureItem<'_>| {}) {
        Ok(capture) => drop(capture),
        Err(why) if skip::is_root() => assert!(!why.to_string().is_empty()),
        Err(why) => assert!(why.is_of_rights(), "{why}"),
    }
}
