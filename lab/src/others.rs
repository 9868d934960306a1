//! The other threads on the CPUs of a measurement: the CPU time of each, before and after.
//!
//! For conditions without a load, which are called idle: whether they were; and for loops that want
//! their CPU and do not get it: who has it. A census costs some milliseconds on the caller's CPU,
//! between blocks or while a loop waits.

use std::collections::HashMap;

use punctual_host::root::Root;
use punctual_host::threads::RunningThread;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler;

/// The most names that are kept of a CPU.
const NAMES_MAX: usize = 8;
/// The most processes of one name that are counted apart: 16 kB. Further ones are not counted.
const PROCESSES_MAX: usize = 1_024;

/// The threads of the machine at one moment, but for those of this process.
#[derive(Debug, Default)]
pub(crate) struct Census {
    /// Each with its CPU time so far, ns.
    threads: HashMap<i32, (RunningThread, u64)>,
}

impl Census {
    /// Reads them.
    pub(crate) fn take(root: &Root) -> Self {
        let own = own();
        let others = RunningThread::all(root).into_iter().filter(|thread| thread.pid != own);
        let timed = others.filter_map(|thread| {
            let run_ns = thread.times(root)?.run_ns;
            Some((thread.tid, (thread, run_ns)))
        });
        Self { threads: timed.collect() }
    }

    /// The threads that ran on a CPU since `before`, in `wall_ns`: those whose last CPU it is. One
    /// that moved counts where it is now; where that is more time than passed, each has its share
    /// of what did. One that ended meanwhile is not seen.
    pub(crate) fn since(&self, before: &Self, cpu: u32, wall_ns: u64) -> OthersOnCpu {
        let key = |thread: &RunningThread| (named(thread).to_owned(), RealTimePolicy::of(thread));
        self.keyed_since(before, cpu, wall_ns, key)
    }

    /// [`Census::since`], where a thread counts by a name of the caller's, and by its policy where
    /// that name does not have it.
    fn keyed_since(
        &self,
        before: &Self,
        cpu: u32,
        wall_ns: u64,
        key: impl Fn(&RunningThread) -> (String, Option<RealTimePolicy>),
    ) -> OthersOnCpu {
        let mut by_key: HashMap<(String, Option<RealTimePolicy>), NamedOthers> = HashMap::new();
        for (tid, (thread, run_ns)) in &self.threads {
            let then = before.threads.get(tid).filter(|(then, _)| then.started == thread.started);
            let ran_ns = run_ns.saturating_sub(then.map_or(0, |(_, run_ns)| *run_ns));
            if ran_ns > 0 && thread.last_cpu == cpu {
                let named = by_key.entry(key(thread));
                let named = named.or_insert_with_key(|(name, real_time)| NamedOthers {
                    name: name.clone(),
                    real_time: *real_time,
                    ..NamedOthers::default()
                });
                // Threads of the kernel are known by their names; they are of no process.
                named.add(ran_ns, (!thread.is_kernel).then_some(thread.pid));
            }
        }
        let all_ns = by_key.values().map(|named| named.ran_ns).sum::<u64>();
        let run_ns = all_ns.min(wall_ns);
        let share =
            |ns: u64| (u128::from(ns) * u128::from(run_ns) / u128::from(all_ns.max(1))) as u64;
        let threads = by_key.into_values().map(|named| named.scaled(share)).collect();
        let mut others = OthersOnCpu { wall_ns, run_ns, threads };
        others.sort();
        others
    }
}

/// Its name; of a worker of the kernel without what it works on now.
fn named(thread: &RunningThread) -> &str {
    match thread.name.split_once('-') {
        Some((worker, _)) if thread.is_kernel && worker.starts_with("kworker/") => worker,
        _ => &thread.name,
    }
}

/// Who has the CPU of loops that want it: looks at each again and again, and where one is ready
/// and did not run since the last look, at all other threads. What is shorter than two looks is not
/// seen, and what runs between two loops of this process is nobody else's.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// The last look at each, by its thread.
    looks: HashMap<i32, Look>,
}

/// A look at a loop.
#[derive(Debug)]
struct Look {
    /// The instant of the look, ns.
    at_ns: u64,
    /// Its CPU time so far, ns.
    run_ns: u64,
    /// All other threads, where it may wait for its CPU.
    census: Option<Census>,
}

impl Witness {
    /// Looks at the loop whose thread is `tid`, on `cpu`. What ran there since the last look, where
    /// the loop waited then and waits now.
    pub(crate) fn look(&mut self, root: &Root, tid: i32, cpu: u32) -> Option<OthersOnCpu> {
        let thread = RunningThread::read(root, own(), tid)?;
        let (run_ns, at_ns) = (thread.times(root)?.run_ns, now_ns(ClockId::Monotonic));
        let before = self.looks.insert(tid, Look { at_ns, run_ns, census: None })?;
        let passed_ns = at_ns.saturating_sub(before.at_ns);
        let ran_ns = run_ns.saturating_sub(before.run_ns);
        // One that is ready may run this moment. One that mostly runs needs no census at each look.
        if !thread.is_runnable || ran_ns > passed_ns / 2 {
            return None;
        }
        let census = Census::take(root);
        // Where it ran while the others were read, whoever had kept it waiting may be gone.
        let waits = ran_ns == 0 && thread.times(root).is_some_and(|now| now.run_ns == run_ns);
        let seen = before.census.filter(|_| waits).map(|before| {
            let key = |thread: &RunningThread| {
                (format!("{} ({})", thread.name, thread.policy_words()), None)
            };
            census.keyed_since(&before, cpu, passed_ns, key)
        });
        self.looks.insert(tid, Look { at_ns, run_ns, census: Some(census) });
        seen
    }
}

/// The number of this process.
fn own() -> i32 {
    std::process::id().cast_signed()
}

/// The other threads that ran on a CPU: during its blocks, or while a loop waited for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OthersOnCpu {
    /// Length of that time, ns.
    pub wall_ns: u64,
    /// CPU time of the others, ns, at most `wall_ns`.
    pub run_ns: u64,
    /// By name and real-time policy of the thread, most first.
    pub threads: Vec<NamedOthers>,
}

/// A real-time policy with its priority; the greater one goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RealTimePolicy {
    /// The priority, 1 to 99; 100 of SCHED_DEADLINE, before which none of these goes.
    rank: u32,
    /// As sched(7) numbers it.
    policy: u32,
}

impl RealTimePolicy {
    /// That of a thread; `None` of an ordinary one, and of the kernel's own.
    fn of(thread: &RunningThread) -> Option<Self> {
        let policy = thread.policy;
        let rank = if policy == scheduler::DEADLINE { 100 } else { thread.priority };
        (thread.is_real_time() && !thread.is_kernel).then_some(Self { rank, policy })
    }

    /// Its name, as sched(7) has it.
    pub fn name(self) -> &'static str {
        scheduler::policy_name(self.policy).unwrap_or_default()
    }

    /// Its priority, 1 to 99; `None` of SCHED_DEADLINE.
    pub fn priority(self) -> Option<u32> {
        Some(self.rank).filter(|_| self.policy != scheduler::DEADLINE)
    }
}

/// The threads of one name and real-time policy that ran, and their processes. A program's threads
/// have one name, often, and one of them may sleep at a priority while another computes without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedOthers {
    name: String,
    ran_ns: u64,
    real_time: Option<RealTimePolicy>,
    /// The processes that they are of, each with how long it ran, ns.
    processes: Vec<(i32, u64)>,
}

impl NamedOthers {
    /// One of them ran so long; of the process, where it is of one.
    fn add(&mut self, ran_ns: u64, pid: Option<i32>) {
        self.ran_ns += ran_ns;
        if let Some(pid) = pid {
            self.add_process(pid, ran_ns);
        }
    }

    /// Returns true where these are the same threads, by name and policy.
    fn is_of(&self, other: &Self) -> bool {
        (&self.name, self.real_time) == (&other.name, other.real_time)
    }

    fn add_process(&mut self, pid: i32, ran_ns: u64) {
        match self.processes.iter().position(|(known, _)| *known == pid) {
            Some(at) => self.processes[at].1 += ran_ns,
            None if self.processes.len() < PROCESSES_MAX => self.processes.push((pid, ran_ns)),
            None => {}
        }
    }

    /// With those that ran in a later block.
    fn merge(&mut self, later: &Self) {
        self.ran_ns += later.ran_ns;
        later.processes.iter().for_each(|&(pid, ran_ns)| self.add_process(pid, ran_ns));
    }

    fn scaled(mut self, share: impl Fn(u64) -> u64) -> Self {
        self.ran_ns = share(self.ran_ns);
        self.processes.iter_mut().for_each(|(_, ran_ns)| *ran_ns = share(*ran_ns));
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Their CPU time, ns.
    pub const fn ran_ns(&self) -> u64 {
        self.ran_ns
    }

    /// Their policy; `None` where they are no real-time threads.
    pub const fn real_time(&self) -> Option<RealTimePolicy> {
        self.real_time
    }

    /// Number of processes that they are of; 0 for threads of the kernel.
    pub const fn process_count(&self) -> usize {
        self.processes.len()
    }

    /// The process that ran longest, the only one where there is one.
    pub fn busiest_process(&self) -> Option<i32> {
        let most = self.processes.iter().max_by_key(|&&(pid, ran_ns)| (ran_ns, -pid));
        most.map(|(pid, _)| *pid)
    }
}

impl OthersOnCpu {
    /// Adds what ran in a later block.
    pub fn add(&mut self, later: &Self) {
        self.wall_ns += later.wall_ns;
        self.run_ns += later.run_ns;
        for named in &later.threads {
            match self.threads.iter_mut().find(|known| known.is_of(named)) {
                Some(known) => known.merge(named),
                None => self.threads.push(named.clone()),
            }
        }
        self.sort();
    }

    fn sort(&mut self) {
        self.threads.sort_by(|a, b| {
            let identity = a.name.cmp(&b.name).then_with(|| a.real_time.cmp(&b.real_time));
            b.ran_ns.cmp(&a.ran_ns).then(identity)
        });
        self.threads.truncate(NAMES_MAX);
    }

    /// The share of the time, in [0, 1]; `None` of no time.
    pub fn share(&self) -> Option<f64> {
        (self.wall_ns > 0).then(|| self.run_ns as f64 / self.wall_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Census {
        /// With a thread of this number, name, last CPU and CPU time; one named "sh" is younger.
        fn with(mut self, tid: i32, name: &str, last_cpu: u32, run_ns: u64) -> Self {
            let thread = RunningThread {
                pid: tid,
                tid,
                name: name.to_owned(),
                is_kernel: name.starts_with("kworker"),
                is_runnable: true,
                policy: 0,
                priority: 0,
                last_cpu,
                faults: 0,
                started: if name == "sh" { 7 } else { 0 },
            };
            self.threads.insert(tid, (thread, run_ns));
            self
        }
    }

    #[test]
    fn what_ran_there_since_is_counted_by_name() {
        let none = || Census { threads: HashMap::new() };
        let before = none()
            .with(1, "rustc", 1, 500)
            .with(2, "rustc", 0, 500)
            .with(3, "old", 1, 9)
            .with(6, "kworker/1:2-events", 1, 80);
        let after = none()
            .with(1, "rustc", 1, 800)
            .with(2, "rustc", 1, 700)
            // The number was given away to another thread meanwhile.
            .with(3, "sh", 1, 100)
            .with(4, "elsewhere", 0, 900)
            .with(5, "asleep", 1, 0)
            // It works on something else now.
            .with(6, "kworker/1:2-mm_percpu_wq", 1, 90);
        let others = after.since(&before, 1, 1_000);
        // Name, time, processes, and the one that ran longest.
        let rows = |others: &OthersOnCpu| {
            let rows = others.threads.iter();
            let row = |named: &NamedOthers| {
                (
                    named.name().to_owned(),
                    named.ran_ns(),
                    named.process_count(),
                    named.busiest_process(),
                )
            };
            rows.map(row).collect::<Vec<_>>()
        };
        let expected = |rows: [(&str, u64, usize, Option<i32>); 3]| {
            rows.map(|(name, ns, count, most)| (name.to_owned(), ns, count, most)).to_vec()
        };
        let [rustc, sh, worker] =
            [("rustc", 500, 2, Some(1)), ("sh", 100, 1, Some(3)), ("kworker/1:2", 10, 0, None)];
        assert_eq!((others.run_ns, rows(&others)), (610, expected([rustc, sh, worker])));
        assert_eq!(others.share(), Some(0.61));
        let short = after.since(&before, 1, 305);
        let halves = [rustc, sh, worker].map(|(name, ns, count, most)| (name, ns / 2, count, most));
        assert_eq!((short.run_ns, rows(&short)), (305, expected(halves)), "no more than passed");
        let mut sum = others;
        sum.add(&OthersOnCpu {
            wall_ns: 1_000,
            run_ns: 700,
            threads: vec![NamedOthers {
                name: "sh".to_owned(),
                ran_ns: 700,
                real_time: None,
                processes: vec![(3, 100), (9, 600)],
            }],
        });
        assert_eq!(rows(&sum), expected([("sh", 800, 2, Some(9)), rustc, worker]));
        assert_eq!((sum.share(), OthersOnCpu::default().share()), (Some(0.655), None));
    }

    #[test]
    fn threads_of_one_name_are_apart_by_their_real_time_policy() {
        let none = || Census { threads: HashMap::new() };
        let mut after = none().with(1, "python3", 1, 1).with(2, "python3", 1, 32);
        after = after.with(3, "python3", 1, 8).with(4, "dl", 1, 5);
        let mut set = |tid: i32, policy, priority| {
            let (thread, _) = after.threads.get_mut(&tid).expect("a thread");
            (thread.policy, thread.priority) = (policy, priority);
        };
        // It sleeps, and the one that computes is an ordinary one.
        set(1, scheduler::FIFO, 60);
        set(4, scheduler::DEADLINE, 0);
        let others = after.since(&none(), 1, 100);
        let rows = |others: &OthersOnCpu| {
            let words = |policy: Option<RealTimePolicy>| Some((policy?.name(), policy?.priority()));
            let row = |named: &NamedOthers| {
                (named.name().to_owned(), words(named.real_time()), named.ran_ns())
            };
            others.threads.iter().map(row).collect::<Vec<_>>()
        };
        let expected = |times: [u64; 3]| {
            let [ordinary_ns, deadline_ns, fifo_ns] = times;
            let python = || "python3".to_owned();
            vec![
                (python(), None, ordinary_ns),
                ("dl".to_owned(), Some(("SCHED_DEADLINE", None)), deadline_ns),
                (python(), Some(("SCHED_FIFO", Some(60))), fifo_ns),
            ]
        };
        assert_eq!(rows(&others), expected([40, 5, 1]));
        let mut sum = others.clone();
        sum.add(&others);
        assert_eq!(rows(&sum), expected([80, 10, 2]), "nor does a later block make them one");
    }

    #[test]
    fn this_process_is_not_among_them() {
        let own = std::process::id().cast_signed();
        let census = Census::take(&Root::live());
        assert!(census.threads.values().all(|(thread, _)| thread.pid != own));
    }
}
