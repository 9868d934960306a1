//! The threads of a program: by process, by number, by name; and those with a real-time policy.
//!
//! Reads /proc and policies; changes nothing.

use std::fmt;

use punctual_host::root::{Read, Root};
use punctual_host::threads::{THREADS_MAX, processes, threads_of};
use punctual_os::affinity;
use punctual_os::scheduler::{DEADLINE, FIFO, ROUND_ROBIN, SchedAttributes};

/// Bytes of a name that the kernel keeps (TASK_COMM_LEN, without its zero).
const NAME_BYTES: usize = 15;

/// The threads to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadTarget {
    /// All threads of this process.
    Process(i32),
    /// This thread.
    Thread(i32),
    /// Every thread of this name, and all threads of processes of this name. Of a longer name the
    /// first 15 bytes count.
    Name(String),
}

impl ThreadTarget {
    /// The first of these that is given, as options name them; `None` where none is given.
    pub fn given(pid: Option<i32>, tid: Option<i32>, name: Option<&str>) -> Option<Self> {
        let thread = pid.map(Self::Process).or(tid.map(Self::Thread));
        thread.or_else(|| name.map(|name| Self::Name(name.to_owned())))
    }
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedThread {
    /// Its number.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its name, as the kernel has it.
    pub name: String,
    /// Its policy; `None` where it cannot be read.
    pub policy: Option<SchedAttributes>,
    /// The CPUs that it may run on; empty where they cannot be read.
    pub cpus: Vec<u32>,
}

impl FollowedThread {
    /// Returns true where it has a real-time policy: SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
    pub fn is_real_time(&self) -> bool {
        self.policy.is_some_and(|policy| [FIFO, ROUND_ROBIN, DEADLINE].contains(&policy.policy))
    }

    fn read(root: &Root, pid: i32, tid: i32) -> Option<Self> {
        let Read::Text(name) = root.read(&format!("/proc/{pid}/task/{tid}/comm")) else {
            return None;
        };
        let cpus = affinity::get(tid).map(|mask| mask.iter().collect()).unwrap_or_default();
        let policy = SchedAttributes::get(tid).ok();
        Some(Self { tid, pid, name: name.trim_end_matches('\n').to_owned(), policy, cpus })
    }
}

/// The reason for which there is no thread to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadTargetError {
    /// There is no such process.
    NoProcess(i32),
    /// There is no such thread.
    NoThread(i32),
    /// There is none of this name.
    NoName(String),
}

impl fmt::Display for ThreadTargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Self::NoThread(tid) => write!(f, "there is no thread {tid}"),
            Self::NoName(name) => write!(
                f,
                "no thread or process is called '{name}': a name is what /proc/PID/comm has, of at \
                 most 15 bytes"
            ),
        }
    }
}

impl std::error::Error for ThreadTargetError {}

/// The threads of a target, by number.
///
/// # Errors
/// There is none.
pub fn find_threads(
    root: &Root,
    target: &ThreadTarget,
) -> Result<Vec<FollowedThread>, ThreadTargetError> {
    let found = match target {
        ThreadTarget::Process(pid) => of_process(root, *pid),
        ThreadTarget::Thread(tid) => {
            let pid = process_of(root, *tid);
            pid.and_then(|pid| FollowedThread::read(root, pid, *tid)).into_iter().collect()
        }
        ThreadTarget::Name(name) => of_name(root, name),
    };
    match (found.is_empty(), target) {
        (false, _) => Ok(found),
        (true, ThreadTarget::Process(pid)) => Err(ThreadTargetError::NoProcess(*pid)),
        (true, ThreadTarget::Thread(tid)) => Err(ThreadTargetError::NoThread(*tid)),
        (true, ThreadTarget::Name(name)) => Err(ThreadTargetError::NoName(name.clone())),
    }
}

/// Every thread of the machine with a real-time policy, by number; of at most 4 096 threads.
pub fn real_time_threads(root: &Root) -> Vec<FollowedThread> {
    let mut threads = Vec::new();
    let mut seen = 0;
    for pid in processes(root) {
        for tid in threads_of(root, pid) {
            seen += 1;
            if seen > THREADS_MAX {
                return threads;
            }
            let policy = SchedAttributes::get(tid).map(|policy| policy.policy);
            if policy.is_ok_and(|policy| [FIFO, ROUND_ROBIN, DEADLINE].contains(&policy)) {
                threads.extend(FollowedThread::read(root, pid, tid));
            }
        }
    }
    threads
}

fn of_process(root: &Root, pid: i32) -> Vec<FollowedThread> {
    let tids = threads_of(root, pid).into_iter();
    tids.filter_map(|tid| FollowedThread::read(root, pid, tid)).collect()
}

/// The line `Tgid` (proc_pid_status(5)), which /proc/TID has of every thread.
fn process_of(root: &Root, tid: i32) -> Option<i32> {
    let Read::Text(status) = root.read(&format!("/proc/{tid}/status")) else { return None };
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

fn of_name(root: &Root, name: &str) -> Vec<FollowedThread> {
    let cut = name.as_bytes().get(..NAME_BYTES).unwrap_or(name.as_bytes());
    let is_called = |path: &str| {
        let Read::Text(comm) = root.read(path) else { return false };
        comm.trim_end_matches('\n').as_bytes() == cut
    };
    let mut threads = Vec::new();
    let mut seen = 0;
    for pid in processes(root) {
        if is_called(&format!("/proc/{pid}/comm")) {
            threads.extend(of_process(root, pid));
            continue;
        }
        for tid in threads_of(root, pid) {
            seen += 1;
            if seen > THREADS_MAX {
                return threads;
            }
            if is_called(&format!("/proc/{pid}/task/{tid}/comm")) {
                threads.extend(FollowedThread::read(root, pid, tid));
            }
        }
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_engine::spawn;
    use punctual_os::process::tid;
    use std::sync::mpsc::channel;

    #[test]
    fn the_first_that_is_given_is_followed() {
        let given = ThreadTarget::given;
        assert_eq!(given(Some(1), Some(2), Some("a")), Some(ThreadTarget::Process(1)));
        assert_eq!(given(None, Some(2), Some("a")), Some(ThreadTarget::Thread(2)));
        assert_eq!(given(None, None, Some("a")), Some(ThreadTarget::Name("a".to_owned())));
        assert_eq!(given(None, None, None), None);
    }

    #[test]
    fn a_thread_is_found_by_process_number_and_name() {
        let (to_here, started) = channel();
        let (end, ends) = channel::<()>();
        let thread = spawn::plain("follow-me-please-x", move || {
            to_here.send(tid()).expect("the test waits");
            // Until the test drops its end.
            let _ended = ends.recv();
        });
        let thread = thread.expect("a thread");
        let of_thread = started.recv().expect("it started");
        let own = std::process::id().cast_signed();
        let root = Root::live();
        let find = |target| find_threads(&root, &target).expect("it lives");
        let found = find(ThreadTarget::Thread(of_thread));
        let [found] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((found.tid, found.pid), (of_thread, own));
        assert_eq!(found.name, "follow-me-pleas");
        assert!(!found.is_real_time() && !found.cpus.is_empty());
        let by_name = find(ThreadTarget::Name("follow-me-please-x".to_owned()));
        assert_eq!(by_name, std::slice::from_ref(found));
        assert!(find(ThreadTarget::Process(own)).contains(found));
        drop(end);
        thread.join().expect("no panic");
        // The kernel lists it for a moment longer.
        while find_threads(&root, &ThreadTarget::Thread(of_thread)).is_ok() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn nobody_is_an_error_that_says_whom() {
        let root = Root::live();
        let targets = [
            (ThreadTarget::Process(i32::MAX), "process 2147483647"),
            (ThreadTarget::Thread(i32::MAX), "thread 2147483647"),
            (ThreadTarget::Name("no such name".to_owned()), "'no such name'"),
        ];
        for (target, part) in targets {
            let why = find_threads(&root, &target).expect_err("there is none").to_string();
            assert!(why.contains(part) && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn real_time_threads_are_those() {
        let threads = real_time_threads(&Root::live());
        assert!(threads.iter().all(FollowedThread::is_real_time));
        assert!(threads.is_sorted_by_key(|thread| (thread.pid, thread.tid)));
    }
}
