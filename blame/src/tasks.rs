//! Names of threads by their numbers, in a table of fixed size: of two that share a place, the
//! later one counts.

use punctual_trace::event::{CodeAddress, ShortName, TaskName, Tid};

use crate::programs::{THREADS, ThreadProgram};

/// Places: some 6 MB once all were used.
const PLACES: usize = THREADS;
/// Places that come together.
const CHUNK: usize = 1 << 6;

/// A thread of which nothing is known has no name, and the usual priority.
const NAMELESS: TaskName = TaskName { tid: 0, name: ShortName::EMPTY, kernel_priority: 120 };

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    task: TaskName,
    /// The function that a worker runs; 0 where none is known.
    work: CodeAddress,
    /// The begin of the interrupt whose thread it is, ns; 0 where none is known.
    anchor_ns: u64,
    program: Option<ThreadProgram>,
}

/// Names, priorities and programs of threads, followed or not.
#[derive(Debug, Clone)]
pub(crate) struct TaskTable {
    /// Chunks of places, each there from its first thread on.
    chunks: Vec<Option<Box<[Known; CHUNK]>>>,
}

impl Default for TaskTable {
    fn default() -> Self {
        Self { chunks: vec![None; PLACES / CHUNK] }
    }
}

impl TaskTable {
    /// Takes over a thread's name and priority.
    pub(crate) fn see(&mut self, task: TaskName) {
        let place = self.place_mut(task.tid);
        if place.task.tid == task.tid {
            place.task = task;
        } else {
            *place = Known { task, ..Known::default() };
        }
    }

    /// The thread of a number; without name and with the usual priority where it is not known.
    pub(crate) fn get(&self, tid: Tid) -> TaskName {
        let known = self.known(tid).task;
        if known.tid == tid && (tid != 0 || !known.name.as_bytes().is_empty()) {
            return known;
        }
        TaskName { tid, ..NAMELESS }
    }

    /// A worker begins a function.
    pub(crate) fn set_work(&mut self, tid: Tid, function: CodeAddress) {
        let place = self.place_mut(tid);
        if place.task.tid == tid {
            place.work = function;
        }
    }

    /// The function that a worker ran last.
    pub(crate) fn work(&self, tid: Tid) -> Option<CodeAddress> {
        let known = self.known(tid);
        (known.task.tid == tid && known.work != 0).then_some(known.work)
    }

    /// The thread of an interrupt was woken by one that began then.
    pub(crate) fn set_anchor(&mut self, task: TaskName, anchor_ns: u64) {
        self.see(task);
        self.place_mut(task.tid).anchor_ns = anchor_ns;
    }

    /// The begin of the interrupt that woke this thread of an interrupt, ns.
    pub(crate) fn anchor_ns(&self, tid: Tid) -> Option<u64> {
        let known = self.known(tid);
        (known.task.tid == tid && known.anchor_ns != 0).then_some(known.anchor_ns)
    }

    /// The program of a thread becomes known, mostly before its first event.
    pub(crate) fn set_program(&mut self, tid: Tid, program: ThreadProgram) {
        let place = self.place_mut(tid);
        if place.task.tid != tid {
            *place = Known { task: TaskName { tid, ..NAMELESS }, ..Known::default() };
        }
        place.program = Some(program);
    }

    /// The program of a thread.
    pub(crate) fn program(&self, tid: Tid) -> Option<ThreadProgram> {
        let known = self.known(tid);
        known.program.filter(|_| known.task.tid == tid && tid != 0)
    }

    fn known(&self, tid: Tid) -> Known {
        let place = tid as usize % PLACES;
        let chunk = self.chunks[place / CHUNK].as_ref();
        chunk.map_or_else(Known::default, |chunk| chunk[place % CHUNK])
    }

    fn place_mut(&mut self, tid: Tid) -> &mut Known {
        let place = tid as usize % PLACES;
        let chunk = &mut self.chunks[place / CHUNK];
        &mut chunk.get_or_insert_with(|| Box::new([Known::default(); CHUNK]))[place % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::ProgramOwner;

    #[test]
    fn the_later_of_two_in_one_place_counts() {
        let mut tasks = TaskTable::default();
        let first = TaskName { tid: 5, name: ShortName::new(b"kworker/0:1"), kernel_priority: 120 };
        tasks.see(first);
        tasks.set_work(5, 0x99);
        tasks.set_anchor(first, 44);
        assert_eq!(
            (tasks.get(5), tasks.work(5), tasks.anchor_ns(5)),
            (first, Some(0x99), Some(44))
        );
        let tid = 5 + PLACES as u32;
        let second = TaskName { tid, ..first };
        tasks.see(second);
        assert_eq!((tasks.get(tid), tasks.work(tid), tasks.anchor_ns(tid)), (second, None, None));
        tasks.set_work(5, 0x77);
        assert_eq!((tasks.work(5), tasks.work(tid)), (None, None));
        assert_eq!(tasks.get(5), TaskName { tid: 5, kernel_priority: 120, ..TaskName::default() });
    }

    #[test]
    fn a_program_may_be_known_before_its_thread_is_seen() {
        let mut tasks = TaskTable::default();
        let name = ShortName::new(b"rustc");
        let program = ThreadProgram { pid: 4, name, owner: ProgramOwner::Stranger };
        tasks.set_program(5, program);
        assert_eq!((tasks.program(5), tasks.program(4)), (Some(program), None));
        assert_eq!(tasks.get(5).kernel_priority, 120, "nothing else is known of it");
        let task = TaskName { tid: 5, name, kernel_priority: 9 };
        tasks.see(task);
        assert_eq!((tasks.get(5), tasks.program(5)), (task, Some(program)));
        tasks.see(TaskName { tid: 5 + PLACES as u32, ..task });
        assert_eq!(tasks.program(5), None);
    }
}
