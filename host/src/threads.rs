//! Threads that run, as /proc shows them: who they are, how they are scheduled, where they ran last
//! and for how long.
//!
//! Reads through a [`Root`]. A thread may end between two reads: then it is not there, which is no
//! error.

use std::collections::BTreeSet;

use punctual_os::scheduler;

use crate::cpulist::CpuList;
use crate::root::{Listing, Read, Root};

/// The most threads that are listed: more than any machine with a real-time loop has, and read in
/// some 50 ms each time.
pub const THREADS_MAX: usize = 4_096;
/// The most lists of a process's threads that are read for one answer.
const LISTS_MAX: usize = 4;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningThread {
    /// Its process.
    pub pid: i32,
    /// Its number.
    pub tid: i32,
    /// Its name, at most 15 bytes of it; a process may choose any.
    pub name: String,
    /// True for one of the kernel's own.
    pub is_kernel: bool,
    /// True where it runs or waits for a CPU.
    pub is_runnable: bool,
    /// Its policy, as sched(7) numbers them.
    pub policy: u32,
    /// Its real-time priority, 1 to 99; 0 where its policy has none.
    pub priority: u32,
    /// The CPU that it ran on last.
    pub last_cpu: u32,
    /// Its page faults so far, minor and major.
    pub faults: u64,
    /// When it was started, in ticks since boot: a number is given away again.
    pub started: u64,
}

/// The bit of a thread's flags that says it is the kernel's (PF_KTHREAD).
const KERNEL_THREAD: u64 = 0x0020_0000;

impl RunningThread {
    /// Every thread of the machine, up to [`THREADS_MAX`]: its processes in rising order.
    pub fn all(root: &Root) -> Vec<Self> {
        let threads = processes(root).into_iter().flat_map(|pid| Self::of_process(root, pid));
        threads.take(THREADS_MAX).collect()
    }

    /// The real-time threads of every process but `pid`, each with the CPUs that it may run on;
    /// one that ends meanwhile is left out.
    pub fn real_time_beside(root: &Root, pid: i32) -> Vec<(Self, CpuList)> {
        let others =
            Self::all(root).into_iter().filter(|thread| thread.pid != pid && thread.is_real_time());
        others
            .filter_map(|thread| {
                let allowed = thread.allowed(root)?;
                Some((thread, allowed))
            })
            .collect()
    }

    /// The threads of a process; none where it has ended.
    pub fn of_process(root: &Root, pid: i32) -> Vec<Self> {
        threads_of(root, pid).into_iter().filter_map(|tid| Self::read(root, pid, tid)).collect()
    }

    /// A thread of a process, as it is now; `None` where it has ended.
    pub fn read(root: &Root, pid: i32, tid: i32) -> Option<Self> {
        let Read::Text(stat) = root.read(&format!("/proc/{pid}/task/{tid}/stat")) else {
            return None;
        };
        Self::parse(pid, tid, &stat)
    }

    /// From the line of its `stat` (proc_pid_stat(5)).
    fn parse(pid: i32, tid: i32, stat: &str) -> Option<Self> {
        let (name, rest) = named(stat)?;
        // The first of the rest is field 3.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3);
        Some(Self {
            pid,
            tid,
            name: name.to_owned(),
            is_runnable: *field(3)? == "R",
            is_kernel: field(9)?.parse::<u64>().ok()? & KERNEL_THREAD != 0,
            faults: field(10)?.parse::<u64>().ok()?.saturating_add(field(12)?.parse().ok()?),
            started: field(22)?.parse().ok()?,
            last_cpu: field(39)?.parse().ok()?,
            priority: field(40)?.parse().ok()?,
            policy: field(41)?.parse().ok()?,
        })
    }

    /// Its CPU time so far.
    pub fn times(&self, root: &Root) -> Option<ThreadTimes> {
        ThreadTimes::of(root, self.pid, self.tid)
    }

    /// A line of its status (proc_pid_status(5)): `Cpus_allowed_list`.
    pub fn status(&self, root: &Root, name: &str) -> Option<String> {
        status(root, &format!("/proc/{}/task/{}/status", self.pid, self.tid), name)
    }

    /// Returns true where it has a real-time policy: SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
    pub fn is_real_time(&self) -> bool {
        let real_time = [scheduler::FIFO, scheduler::ROUND_ROBIN, scheduler::DEADLINE];
        real_time.contains(&self.policy)
    }

    /// Returns true where it may keep a thread of SCHED_FIFO with this priority waiting: where it
    /// is as high it runs until it gives way, where it is higher it takes the CPU.
    pub fn is_at_least(&self, priority: u32) -> bool {
        self.policy == scheduler::DEADLINE || (self.is_real_time() && self.priority >= priority)
    }

    /// Returns true where it may keep `other` waiting, as by `is_at_least`: before a thread of
    /// SCHED_DEADLINE the kernel runs only others of it.
    pub fn may_delay(&self, other: &Self) -> bool {
        match other.policy {
            scheduler::DEADLINE => self.policy == scheduler::DEADLINE,
            _ => self.is_at_least(other.priority),
        }
    }

    /// Its policy in words: `SCHED_FIFO 95`.
    pub fn policy_words(&self) -> String {
        policy_words(self.policy, self.priority)
    }

    /// The CPUs that it may run on.
    pub fn allowed(&self, root: &Root) -> Option<CpuList> {
        CpuList::parse(&self.status(root, "Cpus_allowed_list")?, u32::MAX).ok()
    }
}

/// A process: what it is called, and who started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningProcess {
    /// Its number.
    pub pid: i32,
    /// The process that started it, or took it over; 0 of the kernel's own.
    pub parent: i32,
    /// Its first thread's name, at most 15 bytes of it; a process may choose any.
    pub name: String,
}

impl RunningProcess {
    /// A process as it is now; `None` where it has ended.
    pub fn read(root: &Root, pid: i32) -> Option<Self> {
        let Read::Text(stat) = root.read(&format!("/proc/{pid}/stat")) else { return None };
        Self::parse(pid, &stat)
    }

    /// From the line of its `stat` (proc_pid_stat(5)), whose fourth field is the parent.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let (name, rest) = named(stat)?;
        let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(Self { pid, parent, name: name.to_owned() })
    }
}

/// The name in the line of a `stat`, which stands in brackets and may hold anything, and what
/// stands behind it.
fn named(stat: &str) -> Option<(&str, &str)> {
    let (_, rest) = stat.split_once('(')?;
    rest.rsplit_once(')')
}

/// A policy by its number, in words, with its priority where it has one.
pub fn policy_words(policy: u32, priority: u32) -> String {
    match scheduler::policy_name(policy) {
        Some(name) if [scheduler::FIFO, scheduler::ROUND_ROBIN].contains(&policy) => {
            format!("{name} {priority}")
        }
        Some(name) => name.to_owned(),
        None => format!("policy {policy}"),
    }
}

/// The CPU time of a thread, from its schedstat (Documentation/scheduler/sched-stats.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Time on a CPU, ns.
    pub run_ns: u64,
    /// Time ready without one, ns; a lower bound.
    pub wait_ns: u64,
    /// Times that it got a CPU.
    pub slices: u64,
}

impl ThreadTimes {
    /// Those of a thread so far.
    pub fn of(root: &Root, pid: i32, tid: i32) -> Option<Self> {
        let path = format!("/proc/{pid}/task/{tid}/schedstat");
        let Read::Text(text) = root.read(&path) else { return None };
        Self::parse(&text)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { run_ns: next()?, wait_ns: next()?, slices: next()? })
    }

    /// The increase since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            run_ns: self.run_ns.saturating_sub(before.run_ns),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
            slices: self.slices.saturating_sub(before.slices),
        }
    }
}

/// What the threads of this program are called, or begin with.
const OWN_NAME: &str = "punctual";

/// The name of a thread of another process in words: one that is called as the threads of this
/// program are is set apart from them.
pub fn name_of_another(name: &str) -> String {
    if name.starts_with(OWN_NAME) {
        return format!("{name} of another process");
    }
    name.to_owned()
}

/// All processes, in rising order.
pub fn processes(root: &Root) -> Vec<i32> {
    numbers(root, "/proc").into_iter().collect()
}

/// The threads of a process, in rising order; none where it has ended.
///
/// The kernel leaves one out of its list where another one ends while that is made (`next_tid` of
/// fs/proc/base.c, Linux 6.18; 2 of 36 000 lists while 8 threads ended): the list is read until it
/// names nobody new.
pub fn threads_of(root: &Root, pid: i32) -> Vec<i32> {
    let directory = format!("/proc/{pid}/task");
    united(|| numbers(root, &directory))
}

/// The union of lists, which are read until one brings nothing new, or [`LISTS_MAX`] were read.
fn united(mut list: impl FnMut() -> BTreeSet<i32>) -> Vec<i32> {
    let mut union = list();
    for _ in 1..LISTS_MAX {
        let known = union.len();
        union.extend(list());
        if union.len() == known {
            break;
        }
    }
    union.into_iter().collect()
}

/// A process with all that it started, and those started in turn: children after their parents.
pub fn with_children(root: &Root, pid: i32) -> Vec<i32> {
    let parent = |child| status(root, &format!("/proc/{child}/status"), "PPid")?.parse().ok();
    let parents: Vec<(i32, i32)> =
        processes(root).into_iter().filter_map(|child| Some((child, parent(child)?))).collect();
    let (mut pids, mut known) = (vec![pid], BTreeSet::from([pid]));
    let mut at = 0;
    while let Some(&pid) = pids.get(at) {
        let children = parents.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child);
        pids.extend(children.filter(|child| known.insert(*child)));
        at += 1;
    }
    pids
}

/// The numbers among the names of a directory.
fn numbers(root: &Root, directory: &str) -> BTreeSet<i32> {
    match root.list(directory) {
        Listing::Names(names) => names.iter().filter_map(|name| name.parse().ok()).collect(),
        Listing::Absent | Listing::Unreadable { .. } => BTreeSet::new(),
    }
}

/// A line of a status file (proc_pid_status(5)).
fn status(root: &Root, path: &str, name: &str) -> Option<String> {
    let Read::Text(text) = root.read(path) else { return None };
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(|value| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_process_has_a_name_and_a_parent() {
        let process = RunningProcess::parse(77, "77 (a) S (b c) R 12 77 77 0 -1");
        let expected = RunningProcess { pid: 77, parent: 12, name: "a) S (b c".to_owned() };
        assert_eq!(process, Some(expected));
        for damaged in ["", "77", "77 (a", "77 (a)", "77 (a) R", "77 (a) R x"] {
            assert_eq!(RunningProcess::parse(77, damaged), None, "{damaged}");
        }
    }

    #[test]
    fn a_thread_is_what_its_line_says_whatever_its_name() {
        let stat = "77 (a) S (b c) R 1 77 77 0 -1 4194368 1 0 0 0 5 6 0 0 -91 0 1 0 900 0 0 \
                    18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 3 90 1 0 0 0 0 0 0 0 0 0 0 0";
        let thread = RunningThread::parse(77, 78, stat).expect("a thread");
        assert_eq!((thread.name.as_str(), thread.last_cpu), ("a) S (b c", 3));
        assert_eq!((thread.started, thread.faults), (900, 1));
        assert_eq!((thread.policy, thread.priority, thread.is_kernel), (1, 90, false));
        let kernel = stat.replacen("4194368", "2129984", 1);
        assert!(RunningThread::parse(77, 78, &kernel).is_some_and(|thread| thread.is_kernel));
        let waits = [89, 90, 91].map(|priority| thread.is_at_least(priority));
        assert_eq!((waits, thread.policy_words().as_str()), ([true, true, false], "SCHED_FIFO 90"));
        let ordinary = RunningThread { policy: 0, priority: 0, ..thread.clone() };
        let deadline = RunningThread { policy: 6, priority: 0, ..thread.clone() };
        assert!(!ordinary.is_at_least(0) && deadline.is_at_least(99) && deadline.is_real_time());
        assert!(thread.may_delay(&thread) && !ordinary.may_delay(&thread));
        assert!(deadline.may_delay(&thread) && deadline.may_delay(&deadline));
        assert!(!thread.may_delay(&deadline), "nothing else is above SCHED_DEADLINE");
        assert!(RunningThread::parse(77, 78, "77 (short) R 1 2").is_none());
    }

    #[test]
    fn this_process_is_among_those_that_run() {
        let root = Root::live();
        let pid = std::process::id().cast_signed();
        let own = RunningThread::of_process(&root, pid);
        let main = own.iter().find(|thread| thread.tid == pid).expect("the first thread");
        assert!(!main.is_kernel && main.times(&root).is_some_and(|times| times.slices > 0));
        assert!(main.allowed(&root).is_some_and(|cpus| cpus.contains(main.last_cpu)));
        assert!(RunningThread::all(&root).iter().any(|thread| thread.tid == pid));
        assert_eq!(with_children(&root, pid)[0], pid);
        assert!(RunningThread::of_process(&root, i32::MAX).is_empty());
    }

    #[test]
    fn a_thread_that_one_list_leaves_out_is_found() {
        let union = |lists: &[&[i32]]| {
            let mut lists = lists.iter();
            let threads =
                united(|| lists.next().expect("no more is read").iter().copied().collect());
            (threads, lists.count())
        };
        // 12 ended, and 13 was left out.
        assert_eq!(union(&[&[11, 12], &[11, 13], &[11, 13]]), (vec![11, 12, 13], 0));
        assert_eq!(union(&[&[11, 12], &[11, 12], &[]]), (vec![11, 12], 1));
        // Threads that begin and end all the time do not hold it up.
        assert_eq!(union(&[&[1], &[2], &[3], &[4], &[5]]), (vec![1, 2, 3, 4], 1));
        assert!(threads_of(&Root::live(), i32::MAX).is_empty());
    }

    #[test]
    fn a_thread_that_is_called_like_those_of_this_program_is_set_apart() {
        assert_eq!(name_of_another("punctual-loop"), "punctual-loop of another process");
        assert_eq!(name_of_another("punctual"), "punctual of another process");
        assert_eq!(name_of_another("rustc"), "rustc");
    }

    #[test]
    fn times_are_three_numbers() {
        let times = ThreadTimes::parse("120 7 3\n").expect("three");
        let before = ThreadTimes { run_ns: 20, wait_ns: 9, slices: 1 };
        assert_eq!(times.since(&before), ThreadTimes { run_ns: 100, wait_ns: 0, slices: 2 });
        assert!(ThreadTimes::parse("1 2").is_none() && ThreadTimes::parse("a b c").is_none());
    }

    proptest! {
        #[test]
        fn anything_can_be_read(text in ".{0,200}") {
            let _ = RunningThread::parse(1, 1, &text);
            let _ = ThreadTimes::parse(&text);
        }
    }
}
