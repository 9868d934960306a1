//! The process that each thread belongs to, as records of perf have it.
//!
//! Of fixed size: of two threads whose numbers share a place the later one is known, and given
//! anew. A process is read when its first thread is met, and one that ended before that has
//! no name.

use std::collections::HashMap;

use punctual_blame::programs::THREADS;
use punctual_host::threads::RunningProcess;
use punctual_trace::event::{ShortName, Tid};

/// Processes that are remembered; of more all are read anew.
const PROCESSES: usize = 1 << 12;

/// The threads that were met, with their processes.
#[derive(Debug)]
pub(super) struct ProcessBook {
    threads: Box<[(Tid, Tid)]>,
    processes: HashMap<Tid, RunningProcess>,
}

impl Default for ProcessBook {
    fn default() -> Self {
        Self { threads: vec![(0, 0); THREADS].into(), processes: HashMap::new() }
    }
}

impl ProcessBook {
    /// A thread of a process wrote a record: gives it with its process, where that is news. `read`
    /// gives a process that is not known yet.
    pub(super) fn see(
        &mut self,
        tid: Tid,
        pid: Tid,
        read: impl FnOnce(Tid) -> Option<RunningProcess>,
    ) -> Option<(Tid, RunningProcess)> {
        // The idle threads have none, and a thread that is being ended has lost it (-1).
        let is_none = |number: Tid| number == 0 || i32::try_from(number).is_err();
        let place = &mut self.threads[tid as usize % THREADS];
        if *place == (tid, pid) || is_none(tid) || is_none(pid) {
            return None;
        }
        *place = (tid, pid);
        if let Some(known) = self.processes.get(&pid) {
            // A number that was given away again is met as that of a first thread.
            let renewed = if tid == pid { read(pid) } else { None };
            let process = renewed.unwrap_or_else(|| known.clone());
            self.processes.insert(pid, process.clone());
            return Some((tid, process));
        }
        let process = read(pid)?;
        if self.processes.len() >= PROCESSES {
            self.processes.clear();
        }
        self.processes.insert(pid, process.clone());
        Some((tid, process))
    }

    /// A thread has another name: where it is the first of its process, that has it too.
    pub(super) fn rename(&mut self, tid: Tid, name: ShortName) -> Option<(Tid, RunningProcess)> {
        let process = self.processes.get_mut(&tid)?;
        process.name = name.to_string();
        Some((tid, process.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: Tid, name: &str) -> RunningProcess {
        RunningProcess { pid: pid.cast_signed(), parent: 1, name: name.to_owned() }
    }

    #[test]
    fn each_thread_is_given_once_and_its_process_read_once() {
        let mut book = ProcessBook::default();
        let cargo = process(50, "cargo");
        assert_eq!(book.see(51, 50, |_| Some(cargo.clone())), Some((51, cargo.clone())));
        let unread = |pid: Tid| panic!("{pid} is known");
        assert_eq!(book.see(51, 50, unread), None, "no news");
        assert_eq!(book.see(52, 50, unread), Some((52, cargo.clone())));
        // The first thread after an exec is read again: it may be a number given away again.
        assert_eq!(book.see(50, 50, |_| None), Some((50, cargo)));
    }

    #[test]
    fn a_process_that_takes_another_name_has_it_from_then_on() {
        let mut book = ProcessBook::default();
        book.see(51, 50, |_| Some(process(50, "sh")));
        assert_eq!(book.rename(51, ShortName::new(b"worker")), None, "not its first thread");
        let renamed = book.rename(50, ShortName::new(b"rustc"));
        assert_eq!(renamed, Some((50, process(50, "rustc"))));
        let unread = |_: Tid| None;
        assert_eq!(book.see(52, 50, unread), Some((52, process(50, "rustc"))));
    }

    #[test]
    fn what_has_no_process_is_not_given() {
        let mut book = ProcessBook::default();
        let read = |pid: Tid| Some(process(pid, "x"));
        for (tid, pid) in [(0, 0), (7, 0), (7, u32::MAX), (u32::MAX, 7)] {
            assert_eq!(book.see(tid, pid, read), None, "{tid} {pid}");
        }
        assert_eq!(book.see(8, 9, |_| None), None, "it ended");
        for pid in 1..=10_000 {
            book.see(pid, pid, read);
        }
        assert!(book.processes.len() <= PROCESSES);
    }
}
