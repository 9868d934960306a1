//! Evidence without rights: the kernel's counters around each late wake.
//!
//! A thread on another CPU reads them every ten milliseconds: interrupts and soft interrupts of the
//! CPU, steal, the CPU time of the measured thread and of the others. A counter that rose around a
//! late wake coincided with it, and no more can be said. Measured (2 CPUs, Linux 6.18):
//! /proc/interrupts takes 24 µs, /proc/softirqs 1, /proc/stat 2, a schedstat 0.3. The wait in
//! schedstat is a lower bound alone: it is 0 for most wakes of real-time threads, however late they
//! were.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use punctual_engine::spawn;
use punctual_host::counts::{CountTable, RisenCount, StealTicks};
use punctual_host::root::Root;
use punctual_host::threads::{RunningThread, ThreadTimes};
use punctual_os::affinity;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::CaptureRefused;

/// The time between two reads, ns.
const EVERY_NS: u64 = 10_000_000;
/// The time between two looks at which threads there are, ns.
const THREADS_NS: u64 = 1_000_000_000;
/// Reads that are kept: ten seconds.
const KEPT: usize = 1_000;
/// The most threads whose CPU time is read each time.
const COUNTED_MAX: usize = 64;

/// The thread whose late wakes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterPlan {
    /// The CPU that the thread runs on.
    pub cpu: u32,
    /// Its process.
    pub pid: i32,
    /// Its number.
    pub tid: i32,
}

/// Another thread that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRise {
    /// Its process.
    pub pid: i32,
    /// Its number.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// The rise of its times, on any CPU, ns.
    pub times: ThreadTimes,
}

/// The counters that rose between two reads; `None`, not zero, of those that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterDelta {
    /// The first read, ns on CLOCK_MONOTONIC.
    pub from_ns: u64,
    /// The second read, ns on CLOCK_MONOTONIC.
    pub to_ns: u64,
    /// Interrupts of the CPU, those that came most often first.
    pub interrupts: Option<Vec<RisenCount>>,
    /// Its soft interrupts, likewise.
    pub softirqs: Option<Vec<RisenCount>>,
    /// Time that the host took of the CPU, in steps of 10 ms: what is shorter is not in it.
    pub steal_ticks: Option<u64>,
    /// The measured thread. One that computes all the time and has less run time than time passed
    /// was robbed of the rest.
    pub own: Option<ThreadTimes>,
    /// The others that ran, longest first; of those that were looked at.
    pub others: Vec<ThreadRise>,
}

/// A read of all counters.
#[derive(Clone, Debug, Default)]
struct Snapshot {
    at_ns: u64,
    cpu: u32,
    interrupts: Option<CountTable>,
    softirqs: Option<CountTable>,
    steal: StealTicks,
    own: Option<ThreadTimes>,
    others: Vec<ThreadRise>,
}

impl Snapshot {
    fn take(root: &Root, plan: &CounterPlan, threads: &[RunningThread]) -> Self {
        let others = threads.iter().filter_map(|thread| {
            let (times, name) = (thread.times(root)?, thread.name.clone());
            Some(ThreadRise { pid: thread.pid, tid: thread.tid, name, times })
        });
        Self {
            at_ns: now_ns(ClockId::Monotonic),
            cpu: plan.cpu,
            interrupts: CountTable::read_for(root, "/proc/interrupts", plan.cpu),
            softirqs: CountTable::read_for(root, "/proc/softirqs", plan.cpu),
            steal: StealTicks::read(root),
            own: ThreadTimes::of(root, plan.pid, plan.tid),
            others: others.collect(),
        }
    }

    fn since(&self, before: &Self) -> CounterDelta {
        let thread = |now: &ThreadRise| {
            let then = before.others.iter().find(|then| then.tid == now.tid)?;
            let times = now.times.since(&then.times);
            (times.run_ns > 0).then(|| ThreadRise { times, ..now.clone() })
        };
        let mut others: Vec<ThreadRise> = self.others.iter().filter_map(thread).collect();
        others.sort_by_key(|thread| std::cmp::Reverse(thread.times.run_ns));
        let risen = |now: &Option<CountTable>, then: &Option<CountTable>| {
            now.as_ref()?.risen(then.as_ref()?, self.cpu)
        };
        CounterDelta {
            from_ns: before.at_ns,
            to_ns: self.at_ns,
            interrupts: risen(&self.interrupts, &before.interrupts),
            softirqs: risen(&self.softirqs, &before.softirqs),
            steal_ticks: self.steal.since(&before.steal, self.cpu),
            own: self.own.zip(before.own).map(|(now, then)| now.since(&then)),
            others,
        }
    }
}

/// Threads whose last CPU is this one, but for the measured one.
fn threads_on(root: &Root, plan: &CounterPlan) -> Vec<RunningThread> {
    let is_other = |thread: &RunningThread| thread.tid != plan.tid && thread.last_cpu == plan.cpu;
    RunningThread::all(root).into_iter().filter(is_other).take(COUNTED_MAX).collect()
}

/// The counters that are used instead of events, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterFallback {
    /// The reason for which there are no events.
    pub why: CaptureRefused,
}

impl fmt::Display for CounterFallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; meanwhile counters around each late wake are used, which say what coincided and \
             not what caused it",
            self.why
        )
    }
}

/// Reads counters until it is dropped.
#[derive(Debug)]
pub struct CounterWatch {
    kept: Arc<Mutex<VecDeque<Snapshot>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CounterWatch {
    /// Begins to read, on any CPU but that of the thread where there is another.
    ///
    /// # Errors
    /// No thread could be had.
    pub fn start(plan: CounterPlan) -> std::io::Result<Self> {
        let kept = Arc::new(Mutex::new(VecDeque::with_capacity(KEPT)));
        let stop = Arc::new(AtomicBool::new(false));
        let (into, seen) = (Arc::clone(&kept), Arc::clone(&stop));
        let thread = spawn::plain("punctual-count", move || watch(&plan, &into, &seen))?;
        Ok(Self { kept, stop, thread: Some(thread) })
    }

    /// The counters that rose from the last read before an instant to the first after another, ns;
    /// `None` where one of them is not there: too long ago, or still to come.
    pub fn around(&self, from_ns: u64, to_ns: u64) -> Option<CounterDelta> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        between(&kept, from_ns, to_ns)
    }
}

/// See [`CounterWatch::around`].
fn between(kept: &VecDeque<Snapshot>, from_ns: u64, to_ns: u64) -> Option<CounterDelta> {
    let after = kept.partition_point(|read| read.at_ns <= from_ns);
    let before = kept.get(after.checked_sub(1)?)?;
    let end = kept.partition_point(|read| read.at_ns < to_ns);
    Some(kept.get(end)?.since(before))
}

fn watch(plan: &CounterPlan, kept: &Mutex<VecDeque<Snapshot>>, stop: &AtomicBool) {
    if let Ok(mut cpus) = affinity::get(0) {
        cpus.remove(plan.cpu);
        // With one CPU alone there is no other.
        let _only_one = affinity::set(0, &cpus);
    }
    let root = Root::live();
    let mut threads = Vec::new();
    let mut looked_ns = None;
    let mut next_ns = now_ns(ClockId::Monotonic);
    while !stop.load(Ordering::Acquire) {
        if looked_ns.is_none_or(|looked_ns| next_ns >= looked_ns + THREADS_NS) {
            looked_ns = Some(next_ns);
            threads = threads_on(&root, plan);
        }
        let read = Snapshot::take(&root, plan, &threads);
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(read);
        drop(kept);
        next_ns = (next_ns + EVERY_NS).max(now_ns(ClockId::Monotonic));
        // A signal that ends a sleep early does no harm.
        let _early = sleep_until_ns(next_ns);
    }
}

impl Drop for CounterWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn rise(name: &str, count: u64) -> RisenCount {
        RisenCount { name: name.to_owned(), count }
    }

    fn counted(count: u64) -> (Option<CountTable>, StealTicks) {
        let table = format!("  CPU1\nLOC: {count}\nRES: {}\nSPU: 4\n", 3 * count);
        let stat = format!("cpu1 1 2 3 4 5 6 7 {count}\n");
        let tree = Tree::new(&[("proc/interrupts", &table), ("proc/stat", &stat)]);
        let root = tree.root();
        (CountTable::read_for(&root, "/proc/interrupts", 1), StealTicks::read(&root))
    }

    fn snapshot(at_ns: u64, count: u64) -> Snapshot {
        let thread = |tid, run_ns| ThreadRise {
            pid: 1,
            tid,
            name: format!("t{tid}"),
            times: ThreadTimes { run_ns, wait_ns: 0, slices: 1 },
        };
        let (interrupts, steal) = counted(count);
        Snapshot {
            at_ns,
            cpu: 1,
            interrupts,
            softirqs: None,
            steal,
            own: Some(ThreadTimes { run_ns: 10 * count, wait_ns: count, slices: count }),
            others: vec![thread(7, count), thread(8, 5 * count), thread(9, 4)],
        }
    }

    #[test]
    fn what_rose_is_told_most_first() {
        let delta = snapshot(20, 12).since(&snapshot(10, 10));
        assert_eq!((delta.from_ns, delta.to_ns, delta.steal_ticks), (10, 20, Some(2)));
        assert_eq!(delta.interrupts, Some(vec![rise("RES", 6), rise("LOC", 2)]));
        assert_eq!(delta.softirqs, None, "unknown, not zero");
        let own = ThreadTimes { run_ns: 20, wait_ns: 2, slices: 2 };
        assert_eq!(delta.own, Some(own));
        let others: Vec<(i32, u64)> =
            delta.others.iter().map(|thread| (thread.tid, thread.times.run_ns)).collect();
        assert_eq!(others, [(8, 10), (7, 2)]);
    }

    #[test]
    fn the_reads_around_a_wake_are_the_nearest_that_enclose_it() {
        let kept: VecDeque<Snapshot> = (1..=5).map(|at| snapshot(10 * at, at)).collect();
        let around = |from, to| between(&kept, from, to).map(|delta| (delta.from_ns, delta.to_ns));
        assert_eq!(around(23, 27), Some((20, 30)));
        assert_eq!(around(20, 30), Some((20, 30)));
        assert_eq!(around(20, 31), Some((20, 40)));
        assert_eq!(around(9, 12), None, "before the first");
        assert_eq!(around(45, 51), None, "after the last");
        // The slow way.
        for from in 0..60 {
            for to in from..60 {
                let before = (1..=5).map(|at| 10 * at).rfind(|&at| at <= from);
                let after = (1..=5).map(|at| 10 * at).find(|&at| at >= to);
                assert_eq!(around(from, to), before.zip(after), "{from} to {to}");
            }
        }
    }

    #[test]
    fn a_fallback_says_why_and_what_instead() {
        let why = CaptureRefused::Paranoid { level: Some(2) };
        let text = CounterFallback { why }.to_string();
        assert!(text.contains("perf_event_paranoid is 2") && text.contains("counters"), "{text}");
    }

    #[test]
    fn a_watch_tells_of_the_thread_that_it_watches() {
        let (pid, tid) = (std::process::id().cast_signed(), punctual_os::process::tid());
        let cpu = affinity::current_cpu();
        let watch = CounterWatch::start(CounterPlan { cpu, pid, tid }).expect("a thread");
        let from_ns = loop {
            let from_ns = now_ns(ClockId::Monotonic);
            let kept = watch.kept.lock().expect("whole");
            if kept.front().is_some_and(|read| read.at_ns <= from_ns) {
                break from_ns;
            }
            drop(kept);
            std::thread::yield_now();
        };
        // Some CPU time between two reads, whatever the machine does meanwhile.
        let used_ns = now_ns(ClockId::ThreadCpu) + 2_000_000;
        while now_ns(ClockId::ThreadCpu) < used_ns {
            std::hint::spin_loop();
        }
        let to_ns = now_ns(ClockId::Monotonic);
        let delta = loop {
            if let Some(delta) = watch.around(from_ns, to_ns) {
                break delta;
            }
            std::thread::yield_now();
        };
        assert!(delta.from_ns <= from_ns && delta.to_ns >= to_ns);
        // A kernel without CONFIG_SCHED_INFO has no schedstat.
        assert!(delta.own.is_none_or(|own| own.run_ns > 0), "{delta:?}");
    }
}
